"""Products of one-parameter groups and discrete generators as entries: matrices for data, callables otherwise."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from symcheck.entries.forms import AffineEntry, Entry, FunctionEntry, IdentityEntry, SpatialEntry, TreeEntry
from symcheck.entries.lie_forms import ElementEntry, LieEntry, LieFunctionEntry, affine_of
from symcheck.errors import SpecError
from symcheck.spaces.values import numeric
from symcheck.symmetry.elements import Factors
from symcheck.symmetry.lie_spaces import size_of, subspaces

if TYPE_CHECKING:
    import gymnasium as gym

    from symcheck.array_types import Ints
    from symcheck.symmetry.claimed_maps import ClaimedMaps


class Seen(NamedTuple):
    """Observed values; their spread determines the amounts of translations."""

    observations: Sequence[Any]
    states: Sequence[Any]


class Step(NamedTuple):
    """The entry of one factor: of a Lie generator with its amount, or of a discrete generator with None."""

    entry: Any
    amount: float | None

    def call(self, value: Any, *context: Any) -> Any:
        """The image of one value."""
        return _call(self.entry, self.amount, value, context)


def steps_of(claim: ClaimedMaps, part: str, factors: Factors) -> list[Step]:
    """The entries of one part, factor by factor."""
    discrete = getattr(claim, part)
    return [Step(discrete[i] if t is None else claim.algebra[part][i], t) for i, t in factors]


def compose(steps: Sequence[Step], space: gym.Space[Any] | None, context: Sequence[Step] | None) -> Entry:
    """The product of factors as one entry; `context` are the factors of observations, for actions."""
    moving = [step for step in steps if not isinstance(step.entry, IdentityEntry)]
    if not moving:
        return IdentityEntry()
    trees = [step.entry.children for step in moving if isinstance(step.entry, TreeEntry)]
    if trees:
        below = subspaces(space)
        keys = {key for children in trees for key in children}
        inner: dict[Any, Entry] = {}
        for key in sorted(keys, key=str):
            some = [Step(_child(step.entry, key), step.amount) for step in steps]
            known = below.get(key, below.get(int(key) if str(key).isdigit() else key))
            inner[key] = compose(some, known, context)
        return TreeEntry(inner)
    if any(calls(step.entry) for step in steps):
        return FunctionEntry(_Composite(steps, context))
    discrete = [step.entry for step in moving if isinstance(step.entry, AffineEntry)]
    if len(discrete) == len(moving):
        return reduce(_affine_product, discrete)
    if any(isinstance(step.entry, SpatialEntry) for step in moving):
        return moving[0].entry if len(moving) == 1 else FunctionEntry(_Composite(moving, None))
    product = ElementEntry(tuple((step.entry, float(step.amount or 0.0)) for step in moving))
    size = size_of(space)
    return product if size is None else product.sized(size)  # type: ignore[return-value]


def _affine_product(a: AffineEntry, b: AffineEntry) -> AffineEntry:
    """The map that applies b first; signed permutations stay exact, and permutations of values stay such."""
    if a.is_signed_permutation and b.is_signed_permutation:
        a_sign, b_index = cast("Ints", a.sign), cast("Ints", b.index)
        return AffineEntry(index=cast("Ints", a.index)[b_index], sign=a_sign[b_index] * cast("Ints", b.sign))
    return affine_of(a.homogeneous() @ b.homogeneous())


def _child(entry: Any, key: Any) -> Any:
    return entry.children.get(key, IdentityEntry()) if isinstance(entry, TreeEntry) else entry


class _Composite:
    """Apply the factors of an element in sequence, the last one first: K_gh^s = K_g^{hs} K_h^s."""

    def __init__(self, steps: Sequence[Step], context: Sequence[Step] | None) -> None:
        self._steps, self._context = tuple(steps), None if context is None else tuple(context)
        names = [getattr(getattr(step.entry, "function", None), "__name__", "") for step in steps]
        self.__name__ = " ".join(name for name in names if name) or "composite"

    def __call__(self, value: Any, *context: Any) -> Any:
        if self._context is None:
            for step in reversed(self._steps):
                value = step.call(value)
            return value
        observation = context[0] if context else None
        for step, shown in zip(reversed(self._steps), reversed(self._context), strict=True):
            value = step.call(value, observation)
            observation = shown.call(observation)
        return value


def _call(entry: Any, amount: float | None, value: Any, context: tuple[Any, ...]) -> Any:
    match entry:
        case IdentityEntry():
            return value
        case LieFunctionEntry(function):
            return function(value, *context, amount)
        case FunctionEntry(function):
            return function(value, *context)
        case TreeEntry(children):
            if isinstance(value, Mapping):
                return {k: _call(children[k], amount, v, context) if k in children else v for k, v in value.items()}
            return tuple(_call(children[k], amount, v, context) if k in children else v for k, v in enumerate(value))
        case LieEntry():
            array = np.asarray(value)
            flat = ElementEntry(((entry, float(amount or 0.0)),)).sized(array.size).apply(array.reshape(-1))
            return flat.reshape(array.shape)
        case SpatialEntry():
            return entry.apply(np.asarray(value))
        case AffineEntry():
            array = np.asarray(value)
            if array.ndim == 0 and (images := entry.permutation()) is not None:
                return images[int(array)]
            return entry.apply(array.reshape(-1)).reshape(array.shape)
    raise SpecError(f"expected an entry, got {type(entry).__name__}.")


def calls(entry: Any) -> bool:
    """Whether an entry, or an entry nested in it, is a callable."""
    if isinstance(entry, TreeEntry):
        return any(calls(child) for child in entry.children.values())
    return isinstance(entry, FunctionEntry | LieFunctionEntry)


def amounts(symmetry: ClaimedMaps, seen: Seen) -> Callable[[int], float]:
    """The size of each translation: the spread of the components that it shifts, divided by their coefficient."""

    def amount(i: int) -> float:
        for part, values in (("observation", seen.observations), ("state", seen.states)):
            entries = symmetry.algebra.get(part)
            ratios = [] if entries is None or not len(values) else _ratios(entries[i], values)
            if ratios:
                return float(np.mean(ratios))
        return 1.0

    return amount


def _ratios(entry: Any, values: Sequence[Any]) -> list[float]:
    if isinstance(entry, TreeEntry):
        some = entry.children.items()
        return [r for key, child in some for r in _ratios(child, [_below(value, key) for value in values])]
    if not isinstance(entry, LieEntry) or entry.shift is None:
        return []
    flats = [vector for value in values if (vector := numeric(value)) is not None and vector.size == len(entry.shift)]
    if not flats:
        return []
    spread = np.nanstd(np.stack(flats), axis=0)
    moved = np.flatnonzero(entry.shift)
    # A component that never varies has no spread: an amount of 1.
    return [float(spread[j] if spread[j] > 0 else 1.0) / abs(float(entry.shift[j])) for j in moved]


def _below(value: Any, key: Any) -> Any:
    return value[int(key)] if isinstance(value, tuple) else value[key]
