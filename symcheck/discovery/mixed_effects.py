"""Joint effects of two real coordinates: an effect of their product is invisible to single probes.

The body axes of a quadrotor change by products of axes and rates. At zero, changing one coordinate does not show such a
product. The mixed effect of two probes, antisymmetrised in each, is exactly invariant under every symmetry that fixes
the centre, like the table of single effects.
"""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np

from symcheck.array_types import Floats
from symcheck.discovery.laboratory import Laboratory
from symcheck.discovery.structure import FLOOR, Structure, mean_outcome, neutral_actions, probes_at
from symcheck.errors import TargetError

_MOST_COORDINATES = 48  # the table has (2 dim)^3 entries, 7 MB
_MOST_STEPS = 40_000
_LOOKING = 0.3  # of the time budget
_ROUNDINGS = 64  # rounding units of the four next states whose difference is a mixed effect


def with_mixed(lab: Laboratory, structure: Structure) -> Structure | None:
    """The structure extended by the joint effects of every two coordinates.

    Args:
        lab: the environment.
        structure: the structure measured at the centre.

    Returns:
        The structure with `mixed`; None if steps are random, states are integers, or there are too many coordinates.
    """
    sizes = probes_at(lab, structure.centre)
    used = np.flatnonzero(sizes > 0)
    neutral = neutral_actions(lab)
    steps = 2 * len(used) * (len(used) - 1) * len(neutral)
    if lab.kind != "deterministic" or lab.is_whole or lab.dim > _MOST_COORDINATES or steps > _MOST_STEPS:
        return None
    mixed = np.zeros((lab.dim, lab.dim, lab.dim))
    for j, k in itertools.combinations(used, 2):
        if not lab.in_time(_LOOKING):
            return None
        first, second = sizes[j] * np.eye(lab.dim)[j], sizes[k] * np.eye(lab.dim)[k]
        corners = [structure.centre + a * first + b * second for a, b in itertools.product((1, -1), repeat=2)]
        try:
            both, upper, lower, neither = (mean_outcome(lab, corner, neutral) for corner in corners)
        except TargetError:  # outside the allowed states: nothing is known about this pair
            continue
        mixed[j, k] = mixed[k, j] = lab.difference(upper, both) - lab.difference(neither, lower)
    return replace(structure, mixed=over_literals(mixed), mixed_floor=np.repeat(_floor(lab, structure, mixed), 2))


def _floor(lab: Laboratory, structure: Structure, mixed: Floats) -> Floats:
    """The threshold below which a mixed effect counts as zero: a share of the largest, and above rounding."""
    rounding = np.finfo(np.float32 if lab.is_single else np.float64).eps
    numbers = np.abs(structure.centre) + np.abs(lab.states).max(axis=0)
    return np.asarray(np.maximum(FLOOR * np.abs(mixed).max(axis=(0, 1)), _ROUNDINGS * rounding * numbers))


def over_literals(mixed: Floats) -> Floats:
    """Extend a table to literals of both signs: reversing a probe or an effect changes the sign.

    Args:
        mixed: effect on coordinate i of probing j and k together, shape (dim, dim, dim), indices j, k, i.

    Returns:
        Shape (2 dim, 2 dim, 2 dim).

    Example:
        >>> over_literals(np.ones((1, 1, 1)))[0].tolist()
        [[1.0, -1.0], [-1.0, 1.0]]
    """
    signs = np.tile([1.0, -1.0], len(mixed))
    full = mixed.repeat(2, axis=0).repeat(2, axis=1).repeat(2, axis=2)
    return np.asarray(full * signs[:, None, None] * signs[None, :, None] * signs[None, None, :])
