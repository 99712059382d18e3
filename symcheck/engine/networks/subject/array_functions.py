"""Functions of arrays as networks: modules of Equinox and Flax, bound `apply` functions, any function of one array.

They cannot be captured, so samples decide: in float64 if the code supports it, otherwise as deployed.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, cast

import numpy as np
import torch
from torch import nn

_BATCHES = (5, 7)
"""Two batch sizes: a function takes batches if its outputs have these sizes as first axis."""


class ArrayFunction(nn.Module):
    """A function of an array, for a batch or for one input, as a module of tensors.

    Args:
        function: maps an array to arrays, or to tuples, lists and mappings of them.
    """

    def __init__(self, function: Callable[[Any], Any]) -> None:
        super().__init__()
        self.function = function
        self._takes_batches: bool | None = None

    def forward(self, inputs: torch.Tensor) -> Any:
        """The function's outputs on inputs of shape (n, *shape), as tensors.

        Raises:
            TypeError: the function returns float32 for float64 input, so it has no exact copy.
        """
        x = inputs.detach().cpu().numpy()
        with _jax_in_float64() if x.dtype == np.float64 else nullcontext():
            return self._run(x)

    def _run(self, x: Any) -> Any:
        if self._takes_batches is None:
            self._takes_batches = all(self._keeps_rows(np.zeros((n, *x.shape[1:]), x.dtype)) for n in _BATCHES)
        result = self.function(x) if self._takes_batches else self._one_by_one(x)
        if x.dtype == np.float64 and "float32" in _dtypes(result):
            raise TypeError("the function computes in float32")
        return _as_tensors(result)

    def _keeps_rows(self, x: Any) -> bool:
        try:
            leaves = _leaves(_as_tensors(self.function(x)))
        except Exception:  # a function of one input may reject a batch with any exception
            return False
        return bool(leaves) and all(leaf.dim() > 0 and len(leaf) == len(x) for leaf in leaves)

    def _one_by_one(self, x: Any) -> Any:
        # Only if JAX is loaded can a function take its arrays.
        jax = sys.modules.get("jax")
        if jax is not None and hasattr(jax, "vmap"):
            try:
                return jax.vmap(self.function)(x)
            except Exception:  # code that reads concrete values is run row by row
                pass
        return _stack_rows([self.function(row) for row in x])


def _jax_in_float64() -> AbstractContextManager[Any]:
    """While active, JAX computes with float64 inputs in float64, whatever the dtype of the weights."""
    jax = sys.modules.get("jax")
    if hasattr(jax, "enable_x64"):
        return cast(AbstractContextManager[Any], cast(Any, jax).enable_x64(True))
    older: Any = sys.modules.get("jax.experimental")
    return cast(AbstractContextManager[Any], older.enable_x64()) if hasattr(older, "enable_x64") else nullcontext()


def is_array_function(item: Any) -> bool:
    """Whether an object can be called with one array: it is not a class, and one argument has no default.

    Example:
        >>> is_array_function(lambda x: -x), is_array_function(lambda: None), is_array_function(nn.Linear)
        (True, False, False)
    """
    if isinstance(item, type | nn.Module) or not callable(item):
        return False
    try:
        parameters = inspect.signature(item).parameters.values()
    except (TypeError, ValueError):  # compiled code without a signature
        return False
    places = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    required = [p for p in parameters if p.default is inspect.Parameter.empty and p.kind in places]
    return len(required) == 1


def _as_tensors(result: Any) -> Any:
    """Arrays in tuples, lists and mappings as tensors; other values are unchanged, and rejected as outputs."""
    if isinstance(result, Mapping):
        return {key: _as_tensors(item) for key, item in result.items()}
    if isinstance(result, tuple | list):
        return [_as_tensors(item) for item in result]
    if isinstance(result, torch.Tensor) or not hasattr(result, "__array__"):
        return result
    return torch.from_numpy(np.array(result))


def _dtypes(result: Any) -> set[str]:
    """The dtypes of the function's own arrays, before any conversion to tensors."""
    if isinstance(result, Mapping):
        result = list(result.values())
    if isinstance(result, tuple | list):
        return {dtype for item in result for dtype in _dtypes(item)}
    return {str(getattr(result, "dtype", "")).removeprefix("torch.")}


def _leaves(outputs: Any) -> list[torch.Tensor]:
    if isinstance(outputs, dict):
        outputs = list(outputs.values())
    if isinstance(outputs, list):
        return [leaf for item in outputs for leaf in _leaves(item)]
    return [outputs] if isinstance(outputs, torch.Tensor) else []


def _stack_rows(rows: list[Any]) -> Any:
    """Outputs of single inputs, stacked as a batch."""
    first = rows[0]
    if isinstance(first, Mapping):
        return {key: _stack_rows([row[key] for row in rows]) for key in first}
    if isinstance(first, tuple | list):
        return [_stack_rows([row[i] for row in rows]) for i in range(len(first))]
    return np.stack([np.asarray(row) for row in rows]) if hasattr(first, "__array__") else first
