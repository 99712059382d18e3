"""The outputs of a network, as a list of named tensors."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import torch

from symcheck.errors import TargetError


def named_outputs(result: Any, path: str = "output") -> dict[str, torch.Tensor]:
    """The floating-point tensors in a network's output, with their paths.

    Args:
        result: a tensor, or tuples, lists, mappings and dataclasses of them; None counts as absent.
        path: name of the whole.

    Returns:
        Path ("output", "output[1]", "output['value']", "output.value") to tensor, in order.

    Raises:
        TargetError: the output contains a distribution, or something that is not a tensor.

    Example:
        >>> list(named_outputs((torch.zeros(1, 2), {"value": torch.zeros(1)})))
        ['output[0]', "output[1]['value']"]
    """
    if isinstance(result, torch.Tensor):
        return {path: result}
    if result is None:
        return {}
    # Tested before mappings: some distributions are iterable.
    if isinstance(result, torch.distributions.Distribution):
        names = ", ".join(result.arg_constraints) or "logits"
        raise TargetError(
            f"{path} is a {type(result).__name__} distribution, and distributions cannot be compared as numbers.",
            where="network",
            remedy=f"Wrap the network so that it returns the distribution's parameters ({names}) as tensors.",
        )
    tensors: dict[str, torch.Tensor] = {}
    if isinstance(result, Mapping) or is_tensordict(result):
        for key, item in result.items():
            tensors |= named_outputs(item, f"{path}[{key!r}]")
        return tensors
    if isinstance(result, list | tuple):
        for i, item in enumerate(result):
            tensors |= named_outputs(item, f"{path}[{i}]")
        return tensors
    if dataclasses.is_dataclass(result) and not isinstance(result, type):
        for field in dataclasses.fields(result):
            tensors |= named_outputs(getattr(result, field.name), f"{path}.{field.name}")
        return tensors
    raise TargetError(
        f"the network must return tensors, or tuples, lists, mappings and dataclasses of tensors, but {path} is of "
        f"type {type(result).__name__}.",
        where="network",
        remedy="Wrap the network so that it returns tensors.",
    )


def is_tensordict(item: Any) -> bool:
    """Whether an object is a mapping of tensors with a batch size, as in the package tensordict."""
    return all(hasattr(item, name) for name in ("batch_size", "items", "select"))
