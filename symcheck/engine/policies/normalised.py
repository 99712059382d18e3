"""The observation columns that a normaliser inside a policy reads, and its asymmetric statistics.

With Dict observations, a normaliser may read one key or several concatenated keys (rsl_rl's actors, policies with one
module per key). Its recorded inputs show which.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from symcheck.array_types import Floats
from symcheck.engine.policies.calling import Answer
from symcheck.engine.policies.images import image_of
from symcheck.engine.policies.normalisers import average, entries_of, statistics_of
from symcheck.errors import SpecError
from symcheck.symmetry.symmetry import Symmetry

if TYPE_CHECKING:
    from collections.abc import Mapping

_ONE_SIDED = 1e-3  # relative to the deviation: smaller differences of statistics are due to chance


@dataclass(frozen=True)
class Normalised:
    """A normaliser and the columns that it reads.

    Attributes:
        module: the module of the policy.
        keys: the keys of the observation, in column order; None if the observation is one array.
        shapes: the shapes of one observation under each key.
    """

    module: nn.Module
    keys: tuple[Any, ...] | None
    shapes: tuple[tuple[int, ...], ...]

    def move(self, observations: Any, symmetry: Symmetry, word: tuple[int, ...], values: Floats) -> Floats:
        """The image of normalised values, (N, width), transformed like the observations that they represent."""
        if self.keys is None:
            return np.asarray(image_of(symmetry.observation, word, values, "observation"))
        held: dict[Any, Any] = dict(observations)
        for key, shape, part in zip(self.keys, self.shapes, self._parts(values), strict=True):
            held[key] = part.reshape(len(part), *shape)
        moved = image_of(symmetry.observation, word, held, "observation")
        return np.concatenate([np.asarray(moved[key]).reshape(len(values), -1) for key in self.keys], axis=1)

    def one_sided_columns(self, symmetry: Symmetry) -> list[dict[str, Any]]:
        """Columns whose statistics differ from those of their images, with the key if there are keys."""
        columns = []
        mean, variance = (np.asarray(s).reshape(1, -1) for s in statistics_of(self.module))
        for key, (means, variances) in zip(
            self.keys or (None,), zip(self._parts(mean), self._parts(variance), strict=True), strict=True
        ):
            try:
                found = _find_one_sided(means[0], variances[0], entries_of(symmetry, key), symmetry)
            except SpecError:
                continue  # per-column statistics cannot be averaged under this map
            columns += [column if key is None else {"key": key, **column} for column in found]
        return columns

    def _parts(self, table: Floats) -> list[Floats]:
        """The columns of each key."""
        widths = [int(np.prod(shape)) for shape in self.shapes]
        return list(np.split(table, np.cumsum(widths)[:-1], axis=1))


def read_normalised(module: nn.Module, answer: Answer, observations: Any, dtype: torch.dtype) -> Normalised | None:
    """Find the columns that a normaliser reads; None if it reads no columns of the observation.

    Args:
        module: a module with column statistics.
        answer: the output of the policy, with the recorded inputs of the module.
        observations: one array, or a mapping of arrays.
        dtype: the dtype of the policy's input.
    """
    given = answer.given.get(module)
    size = statistics_of(module)[0].size
    if given is None or given.shape != answer.seen[module].shape or given.shape[1] != size:
        return None
    single = not isinstance(observations, dict)
    keys = _keys_in(given, {"": observations} if single else observations, dtype)
    if keys is None:
        return None
    if single:
        return Normalised(module, None, (observations.shape[1:],))
    return Normalised(module, keys, tuple(observations[key].shape[1:] for key in keys))


def _keys_in(given: Floats, observations: Mapping[Any, Floats], dtype: torch.dtype) -> tuple[Any, ...] | None:
    """The keys whose concatenated values are the given columns."""
    flat = {
        key: torch.as_tensor(value, dtype=dtype).double().numpy().reshape(len(value), -1)
        for key, value in observations.items()
    }
    keys: list[Any] = []
    start = 0
    while start < given.shape[1]:
        fitting = (
            key
            for key, table in flat.items()
            if key not in keys and table.shape[1] and np.array_equal(given[:, start : start + table.shape[1]], table)
        )
        key = next(fitting, None)
        if key is None:
            return None
        keys.append(key)
        start += flat[key].shape[1]
    return tuple(keys)


def _find_one_sided(mean: Floats, variance: Floats, entries: list[Any], symmetry: Symmetry) -> list[dict[str, Any]]:
    new_mean, new_variance = average(mean, variance, entries, symmetry)
    deviation = np.sqrt(np.maximum(new_variance, np.finfo(np.float64).tiny))
    off = np.maximum(np.abs(mean - new_mean) / deviation, np.abs(np.sqrt(variance) / deviation - 1))
    return [
        {"column": c, "mean": float(mean[c]), "symmetric_mean": float(new_mean[c]), "relative": float(off[c])}
        for c in np.flatnonzero(~(off <= _ONE_SIDED)).tolist()
    ]
