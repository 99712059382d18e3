"""Calls a mirror function, and rejects invalid return values.

The convention of robot-learning libraries: `fn(env, obs, actions)` returns `(obs, actions)`; each is the |G| images of
the batch stacked block after block, the identity first, or `None` if it was not given.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from symcheck.array_types import Bools, Floats
from symcheck.errors import SpecError
from symcheck.mirror_functions.batched_values import Layout

WHERE = "from_augmentation"
Library = Literal["torch", "tensordict", "numpy"]


@dataclass(frozen=True)
class BatchedFunction:
    """A mirror function on tables.

    Attributes:
        function: `fn(env, obs, actions)`.
        env: the environment that is passed to the function.
        observation: the table layout of observations.
        action: the table layout of actions.
        order: |G|, the required number of blocks.
        library: the type of values passed to the function: torch tensors, TensorDicts of them, or NumPy arrays.
        floating: the dtype of floats passed to the function.
        device: the device of the tensors.
        extra: further keyword arguments.
        all_floating: whether integers are passed as floats too.
    """

    function: Callable[..., Any]
    env: Any
    observation: Layout
    action: Layout
    order: int
    library: Library = "torch"
    floating: str = "float32"
    device: Any = "cpu"
    extra: Mapping[str, Any] = field(default_factory=dict)
    all_floating: bool = False

    def blocks(self, observations: Floats | None, actions: Floats | None) -> tuple[Floats | None, Floats | None]:
        """The images under every block.

        Args:
            observations: shape (n, observation columns), or None.
            actions: shape (n, action columns), or None.

        Returns:
            The same halves, each of shape (|G|, n, columns), float64; None if None was given.

        Raises:
            SpecError: the function raised, changed its input, or returned a value of the wrong form.
        """
        # Build arrays for each call, so that a function that writes into its input does not change the tables.
        given = self._convert_values(self.observation, observations), self._convert_values(self.action, actions)
        try:
            answer = self._call(*given)
        except Exception as error:
            raise self._describe_failure(error, observations, actions) from error
        # Check this before reading the result, which may contain changed inputs.
        self._check_untouched(given, (observations, actions))
        if not isinstance(answer, tuple | list) or len(answer) != 2:
            raise SpecError(
                f"expected {self._name} to return (observations, actions), got {type(answer).__name__}"
                f"{f' of {len(answer)}' if isinstance(answer, tuple | list) else ''}.",
                where=WHERE,
            )
        observed = self._half(answer[0], observations, self.observation)
        return observed, self._half(answer[1], actions, self.action)

    @property
    def _name(self) -> str:
        return getattr(self.function, "__name__", type(self.function).__name__)

    def _call(self, observations: Any, actions: Any) -> Any:
        names = _parameter_names(self.function)
        # Pass by name if the parameters are in a different order from the convention.
        if {"env", "obs", "actions"} <= set(names) and names[:3] != ["env", "obs", "actions"]:
            return self.function(env=self.env, obs=observations, actions=actions, **self.extra)
        return self.function(self.env, observations, actions, **self.extra)

    def _convert_values(self, layout: Layout, table: Floats | None) -> Any:
        if table is None:
            return None
        arrays = layout.arrays(table, self.floating, all_floating=self.all_floating)
        if self.library == "numpy":
            return arrays
        # Imported here, so that NumPy functions are checked without torch.
        import torch

        tensors = _map(arrays, lambda array: torch.as_tensor(np.ascontiguousarray(array), device=self.device))
        if self.library == "tensordict" and isinstance(tensors, dict):
            from tensordict import TensorDict  # type: ignore[import-not-found, unused-ignore]

            return TensorDict(tensors, batch_size=[len(table)])
        return tensors

    def _describe_failure(self, error: Exception, observations: Floats | None, actions: Floats | None) -> SpecError:
        # The omitted half is the likely cause.
        missing = "obs" if observations is None else "actions" if actions is None else None
        lead = f"{self._name} raised {type(error).__name__}: {error}"
        if missing is not None:
            return SpecError(
                f"{lead} when {missing} is None.",
                where=WHERE,
                remedy=f"The convention passes None for a missing half: return None for it and do not use {missing}.",
            )
        return SpecError(
            f"{lead} (given {self.library} values, {self.floating}).",
            where=WHERE,
            remedy="The function is called as fn(env, obs, actions) with batches, as the training library calls it.",
        )

    def _check_untouched(self, given: tuple[Any, Any], tables: tuple[Floats | None, Floats | None]) -> None:
        for value, table, layout in zip(given, tables, (self.observation, self.action), strict=True):
            if table is None:
                # A missing half has nothing to compare.
                continue
            # Convert to the same dtypes, otherwise rounding would count as a change.
            before = layout.table(layout.arrays(table, self.floating, all_floating=self.all_floating))
            changed = columns_where(layout.table(value) != before)
            if changed.any():
                raise SpecError(
                    f"{self._name} changes its input in place: {layout.words(changed)} differ after the call.",
                    where=WHERE,
                    remedy=(
                        "Clone the input before you negate or rearrange its columns. The block of the "
                        "identity must be the unchanged batch."
                    ),
                )

    def _half(self, answer: Any, given: Floats | None, layout: Layout) -> Floats | None:
        if given is None:
            if answer is not None:
                raise SpecError(
                    f"{layout.name}s were not given, so the function must return None for them, but it "
                    f"returned {type(answer).__name__}.",
                    where=WHERE,
                )
            return None
        if answer is None:
            raise SpecError(
                f"{layout.name}s were given, so the function must return {layout.name}s, but it returned None.",
                where=WHERE,
            )
        table = layout.table(answer)
        n = len(given)
        # Report a wrong count in blocks if it is divisible, otherwise in rows.
        if len(table) != n * self.order:
            whole = f"{len(table) // n} blocks" if len(table) % n == 0 else f"{len(table)} rows"
            raise SpecError(
                f"expected {self.order} blocks of {layout.name}s, one per element of the group, "
                f"got {whole} for a batch of {n}.",
                where=WHERE,
                remedy="Stack the images of the whole batch, starting with the identity, or name their group.",
            )
        if not np.isfinite(table).all():
            bad = layout.words(columns_where(~np.isfinite(table)))
            raise SpecError(f"{self._name} returned NaN or infinity in {bad}.", where=WHERE)
        # (elements, samples, columns): block k holds the images under the k-th element.
        return table.reshape(self.order, n, layout.width)


def choose_library(candidate: BatchedFunction, observations: Floats, actions: Floats) -> BatchedFunction:
    """The same function with the type of values that it accepts: tensors, TensorDicts or NumPy arrays.

    Args:
        candidate: the function, with its device.
        observations: a batch, shape (n, columns).
        actions: a batch, shape (n, columns).

    Raises:
        SpecError: the function accepts no kind of value; the message gives its error for tensors.
    """
    refused: SpecError | None = None
    missing = False
    # Use the first kind of value that the function accepts; tensors are most common.
    for library in ("torch", "tensordict", "numpy"):
        attempt = replace(candidate, library=library)
        try:
            attempt.blocks(observations, actions)
        except ImportError:
            missing = True
            continue
        except SpecError as error:
            if error.__cause__ is None:  # it accepted the input; report the problem of its result
                return attempt
            # Report the first error, which concerns the most common kind.
            refused = refused or error
            continue
        return attempt
    if missing and refused is not None:
        raise SpecError(
            f"{candidate._name} appears to take a TensorDict, but the package tensordict is not installed: "
            f"{refused.problem}",
            where=WHERE,
            remedy="Install it with: pip install tensordict",
        ) from refused.__cause__
    raise refused or SpecError("accepts neither torch tensors nor NumPy arrays.", where=WHERE)


def precise(function: BatchedFunction, observations: Floats, actions: Floats | None) -> BatchedFunction:
    """The same function on float64 if it accepts float64 and gives the same results."""
    # The same random inputs in float32 and float64.
    wide = replace(function, floating="float64")
    try:
        pairs = zip(
            function.blocks(observations, actions),
            wide.blocks(observations, actions),
            strict=True,
        )
        same = all(a is None or b is None or close(a, b).all() for a, b in pairs)
    except SpecError:
        return function
    return wide if same else function


def close(a: npt.NDArray[np.float64], b: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """Equality up to the rounding of float32 maps, column by column of the last axis.

    A wrong sign or position changes a column by the size of its values; 1e-5 of that size allows for constants written
    in float32. A column may be a sum of larger ones: a few hundred products, each rounded to 6e-8 of the largest value,
    add up to an error below 4e-6 of it.
    """
    # The size of each column over all samples: rounding is relative to it, not to the entry.
    sizes = np.maximum(np.abs(a), np.abs(b)).reshape(-1, a.shape[-1]).max(axis=0, initial=0.0)
    # 1e-5 of the column for a few float32 operations, 4e-6 of the widest for sums over columns.
    return np.asarray(np.abs(a - b) <= 1e-5 * sizes + 4e-6 * sizes.max(initial=0.0))


def columns_where(mask: Bools) -> Bools:
    """The columns (last axis) with any true entry."""
    return np.asarray(mask.reshape(-1, mask.shape[-1]).any(axis=0), dtype=np.bool_)


def _parameter_names(function: Callable[..., Any]) -> list[str]:
    try:
        return list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return []


def accepts(function: Callable[..., Any], name: str) -> bool:
    """Whether a function has a parameter of this name."""
    return name in _parameter_names(function)


def _map(value: Any, convert: Callable[[Any], Any]) -> Any:
    if isinstance(value, dict):
        return {key: _map(item, convert) for key, item in value.items()}
    return convert(value)
