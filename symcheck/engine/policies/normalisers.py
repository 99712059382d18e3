"""Statistics of observation normalisers: averaging over the group, and finding where they differ from the average.

In a mixture over the group, x and g x are equally likely. Normalisation with its statistics therefore commutes with g.
For signed permutations, the mean is the average of the transformed means, and the variance is the average of the
transformed variances plus the variance of the transformed means.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from symcheck.array_types import Floats
from symcheck.engine.policies.images import image_of
from symcheck.entries.forms import AffineEntry, Entry, IdentityEntry, TreeEntry
from symcheck.errors import SpecError
from symcheck.symmetry.symmetry import Symmetry

_MEANS = ("mean", "_mean", "running_mean", "obs_mean")
_VARIANCES = ("var", "_var", "running_var", "obs_var")
_DEVIATIONS = ("std", "_std", "obs_std")


def symmetrise_normaliser(state: Any, symmetry: Symmetry) -> Any:
    """The same normaliser with symmetric statistics: normalisation commutes with the symmetry.

    mean' = 1/|G| sum_g L_g mean and var' = 1/|G| sum_g (L_g var + (L_g mean - mean')^2): the statistics of the data
    together with all its images.

    Args:
        state: Stable-Baselines3's `VecNormalize` or `RunningMeanStd`, rsl_rl's `EmpiricalNormalization`, any module or
            object with a mean and a variance, or a mapping of mean, var and count.
        symmetry: acts on observations of the same length.

    Returns:
        A new object of the same kind; for `VecNormalize` a copy around the same environments.

    Raises:
        SpecError: no mean and variance were found, their length differs, or no per-column normaliser commutes with the
            symmetry's map of observations.

    Example:
        >>> from symcheck.groups import catalog
        >>> mirror = Symmetry("mirror", catalog.cyclic(2), observation=[["-2", "-1"]], action=[[1]])
        >>> repaired = symmetrise_normaliser({"mean": [1.0, 3.0], "var": [4.0, 6.0], "count": 9}, mirror)
        >>> repaired["mean"].tolist(), repaired["var"].tolist()
        ([-1.0, 1.0], [9.0, 9.0])

    Source: the law of total variance over the group.
    """
    if hasattr(state, "obs_rms"):
        # VecNormalize: its environments are shared, its statistics are new.
        repaired = copy.copy(state)
        repaired.obs_rms = _by_key(state.obs_rms, symmetry)
        return repaired
    return _by_key(state, symmetry)


def _by_key(state: Any, symmetry: Symmetry) -> Any:
    """A dictionary of statistics (Dict observations), averaged key by key."""
    if isinstance(state, Mapping) and not _named(state, _MEANS):
        return {key: _repair(value, entries_of(symmetry, key), symmetry) for key, value in state.items()}
    return _repair(state, entries_of(symmetry, None), symmetry)


def entries_of(symmetry: Symmetry, key: Any) -> list[Entry]:
    """The entries of one key of the observation, one per generator; of the whole observation for None.

    Raises:
        SpecError: the observation has no keys.
    """
    return list(symmetry.observation) if key is None else [_child(entry, key) for entry in symmetry.observation]


def _child(entry: Entry, key: Any) -> Entry:
    if not isinstance(entry, TreeEntry):
        raise SpecError("expected one entry per key, as in the statistics.", where="observation")
    return entry.children.get(key, IdentityEntry())


def _repair(state: Any, entries: list[Entry], symmetry: Symmetry) -> Any:
    mean_name, variance_name = _names_in(state)
    mean, variance = _array(_get(state, mean_name)), _array(_get(state, variance_name))
    if variance_name in _DEVIATIONS:
        variance = variance**2
    new_mean, new_variance = average(mean, variance, entries, symmetry)
    repaired = dict(state) if isinstance(state, Mapping) else copy.deepcopy(state)
    _set(repaired, mean_name, new_mean)
    _set(repaired, variance_name, np.sqrt(new_variance) if variance_name in _DEVIATIONS else new_variance)
    for name in _DEVIATIONS:
        # Attributes derived from the variance must be updated too; properties need no update.
        kept = name in repaired if isinstance(repaired, Mapping) else name in _stored(repaired)
        if kept and name != variance_name:
            _set(repaired, name, np.sqrt(new_variance))
    return repaired


def average(mean: Floats, variance: Floats, entries: list[Entry], symmetry: Symmetry) -> tuple[Floats, Floats]:
    """Mean and variance of a mixture over the group.

    Args:
        mean: the mean of every column, any shape of the right size.
        variance: the same.
        entries: one per generator.
        symmetry: for its group.

    Returns:
        Both, in the shape of the input.

    Raises:
        SpecError: wrong length, or a matrix that mixes columns of unequal variance.
    """
    group = symmetry.group
    if not math.isfinite(group.order):
        raise SpecError(
            f"expected a finite group, got {group.name}.",
            where="symmetry",
            remedy="Statistics per column can be averaged over a finite group only. Claim a finite subgroup.",
        )
    shape = mean.shape
    flat, spread = mean.reshape(1, -1), variance.reshape(-1)
    means, variances = [], []
    for g in group.elements():
        word = tuple(group.word(g))
        means.append(np.asarray(image_of(entries, word, flat, "observation"))[0])
        variances.append(_moved_variance(entries, word, spread))
    new_mean = np.mean(means, axis=0)
    new_variance = np.mean([v + (m - new_mean) ** 2 for m, v in zip(means, variances, strict=True)], axis=0)
    _refuse_mixture(entries, new_variance)
    return new_mean.reshape(shape), new_variance.reshape(shape)


def _moved_variance(entries: list[Entry], word: tuple[int, ...], variance: Floats) -> Floats:
    for letter in reversed(word):
        entry = entries[letter]
        if isinstance(entry, AffineEntry):
            # For independent columns, the squared matrix entries act on variances.
            variance = np.square(AffineEntry(entry.matrix, entry.index, entry.sign).dense()) @ variance
        elif not isinstance(entry, IdentityEntry):
            raise SpecError(
                "expected a map of vectors given as data (signs, images or a matrix).",
                where="observation",
                remedy="Statistics per column can be averaged over signed permutations and matrices.",
            )
    return variance


def _refuse_mixture(entries: list[Entry], variance: Floats) -> None:
    """Reject a matrix that mixes columns of unequal variance, with which no per-column normaliser commutes."""
    for entry in entries:
        if isinstance(entry, AffineEntry) and entry.index is None:
            matrix = entry.dense()
            off = np.abs(matrix * np.sqrt(variance)[None, :] - np.sqrt(variance)[:, None] * matrix)
            if off.max(initial=0.0) > 1e-9 * np.sqrt(variance.max(initial=0.0)):
                raise SpecError(
                    "the entry mixes columns with different variances, so it does not commute with any "
                    "normaliser that acts column by column.",
                    where="observation",
                    remedy="Normalise these columns with a common standard deviation.",
                )


def has_statistics(state: Any) -> bool:
    """Whether an object has a mean and a variance, as buffers or attributes."""
    names = _stored(state)
    return any(name in names for name in _MEANS) and any(name in names for name in (*_VARIANCES, *_DEVIATIONS))


def statistics_of(state: Any) -> tuple[Floats, Floats]:
    """Mean and variance of an object, flattened.

    Raises:
        SpecError: the object has none.
    """
    mean_name, variance_name = _names_in(state)
    variance = _array(_get(state, variance_name)).reshape(-1)
    return _array(_get(state, mean_name)).reshape(-1), variance**2 if variance_name in _DEVIATIONS else variance


def _names_in(state: Any) -> tuple[str, str]:
    mean, variance = _named(state, _MEANS), _named(state, (*_VARIANCES, *_DEVIATIONS))
    if mean is None or variance is None:
        held = sorted(state) if isinstance(state, Mapping) else type(state).__name__
        raise SpecError(
            f"expected a normaliser with a mean and a variance, got {held}.",
            where="state",
            remedy="Give SB3's VecNormalize or RunningMeanStd, rsl_rl's EmpiricalNormalization, or {mean, var, count}.",
        )
    return mean, variance


def _named(state: Any, names: tuple[str, ...]) -> str | None:
    held = state if isinstance(state, Mapping) else _stored(state)
    return next((name for name in names if name in held), None)


def _stored(state: Any) -> dict[str, Any]:
    """The object's own attributes, and the buffers and parameters of a module."""
    stored = dict(getattr(state, "__dict__", {}))
    for table in ("_buffers", "_parameters"):
        stored |= {name: value for name, value in stored.get(table, {}).items() if value is not None}
    return stored


def _get(state: Any, name: str) -> Any:
    return state[name] if isinstance(state, Mapping) else getattr(state, name)


def _set(state: Any, name: str, value: Floats) -> None:
    before = _get(state, name)
    if hasattr(before, "detach"):
        import torch

        # In place, so that a buffer remains the same object.
        with torch.no_grad():
            before.copy_(torch.as_tensor(value, dtype=before.dtype, device=before.device).reshape(before.shape))
        return
    kept = np.asarray(value, dtype=np.asarray(before).dtype if np.asarray(before).dtype.kind == "f" else np.float64)
    if isinstance(state, dict):
        state[name] = kept
    else:
        setattr(state, name, kept)


def _array(value: Any) -> Floats:
    value = value.detach().cpu().numpy() if hasattr(value, "detach") else value
    return np.asarray(value, dtype=np.float64)
