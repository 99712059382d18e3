"""Fixed points of symmetries, at which the structure of the dynamics is measured.

Most reflections are about zero, or about the reference pose of a robot. A reflection about another point maps
equilibria to equilibria. Candidates about equilibria are tested too; they are affine maps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from gymnasium import spaces

from symcheck.array_types import Floats
from symcheck.discovery.laboratory import Laboratory
from symcheck.discovery.scales import group_by_scale
from symcheck.discovery.structure import is_steppable, neutral_actions
from symcheck.errors import TargetError

# up to this number of state coordinates, reflections about points other than zero are searched for
_MOST_FOR_AFFINE = 8
_MOST_WITH_COUNTS = 16  # the same, if some of them are whole numbers
_NEWTON_STEPS = 25
_POLISHING = 3  # further Newton steps near the equilibrium; each adds the digits of the difference quotient
# Tolerances relative to the spread, for double and single precision: the largest change in one step at an equilibrium,
# and the width of difference quotients, about the square root of the rounding unit.
_AT_REST = {False: 1e-10, True: 1e-5}
_DIFFERENCE = {False: 1e-5, True: 1e-2}
_SAME = 1e-7
_RELATED = 1e-6  # relative to the spread: states that vary less in a direction satisfy a linear relation
_NEAR = {False: 1e-9, True: 1e-4}  # a number this close to a simple one is replaced by it
_SIMPLE = sorted({k * math.pi / n for n in (1, 2, 3, 4, 6) for k in range(-2 * n, 2 * n + 1)})


@dataclass(frozen=True)
class Centre:
    """A point fixed by the candidates.

    Attributes:
        point: the state, shape (dim,).
        what: its description.
        affine: whether maps that fix it may have an offset.
    """

    point: Floats
    what: str
    affine: bool

    @property
    def is_probed(self) -> bool:
        """Whether the point consists of integers, like the states."""
        return bool((self.point == np.rint(self.point)).all())


def centres(lab: Laboratory) -> list[Centre]:
    """The possible centres, most likely first, without duplicates.

    Args:
        lab: the environment.

    Returns:
        At least one.
    """
    candidates = [_pose(lab) or _zero(lab)]
    if lab.dim <= _MOST_FOR_AFFINE and not lab.is_whole:
        candidates += [centre for centre in (_equilibrium(lab), _middle(lab)) if centre is not None]
    if lab.is_whole and is_steppable(lab, (centre := middle_of_whole(lab)).point):
        candidates.append(centre)
    if (mixed := _middle_of_counts(lab)) is not None:
        candidates.append(mixed)
    scale = np.where(lab.spread > 0, lab.spread, 1.0)
    kept: list[Centre] = []
    for centre in candidates:
        if all((np.abs(centre.point - other.point) / scale).max() > _SAME for other in kept):
            kept.append(centre)
    return kept


def is_reached(lab: Laboratory, centre: Centre) -> bool:
    """Whether a centre satisfies the linear relations of all visited states, such as that some numbers add up to one.

    Args:
        lab: the environment.
        centre: a possible centre.

    Returns:
        Whether it lies in the affine hull of the visited states, apart from coordinates that never change.
    """
    used = np.flatnonzero(lab.spread > 0)
    seen = lab.states[:, used] / lab.spread[used]
    middle = seen.mean(axis=0)
    # Eigenvalues are squared singular values; rounding, 1e-16 of the largest, is far below the limit.
    squares, axes = np.linalg.eigh((seen - middle).T @ (seen - middle))
    spanned = axes[:, squares > _RELATED**2 * squares.max(initial=0.0)].T
    away = centre.point[used] / lab.spread[used] - middle
    return bool(np.abs(away - away @ spanned.T @ spanned).max(initial=0.0) <= _RELATED)


def middle_of_whole(lab: Laboratory) -> Centre:
    """The middle of the visited range of each integer coordinate, about which values may be reversed."""
    return Centre(
        (lab.states.min(axis=0) + lab.states.max(axis=0)) / 2, "the centre of the visited states", affine=True
    )


def _middle_of_counts(lab: Laboratory) -> Centre | None:
    """Zero, with the middle of the visited range in the coordinates of whole numbers (a mode, a mask of actions).

    None if all or none of the coordinates are whole numbers, or if too many of these are reversed about a half.
    """
    counts = (lab.states == np.rint(lab.states)).all(axis=0) & (lab.spread > 0)
    if lab.is_whole or not counts.any() or lab.dim > _MOST_WITH_COUNTS:
        return None
    point = np.where(counts, middle_of_whole(lab).point, _zero(lab).point)
    what = "zero, and the middle of the visited range of each integer coordinate"
    return Centre(point, what, affine=True) if is_steppable(lab, point) else None


def _pose(lab: Laboratory) -> Centre | None:
    """The reference pose of a MuJoCo model."""
    base = lab.stepper.base
    parts = [getattr(base, name, None) for name in ("init_qpos", "init_qvel")]
    if any(part is None for part in parts):
        return None
    point = np.concatenate([np.asarray(part, dtype=np.float64).reshape(-1) for part in parts])
    return Centre(point, "the pose in which the model is defined", affine=False) if len(point) == lab.dim else None


def _zero(lab: Laboratory) -> Centre:
    """Zero in every coordinate whose values include it; a typical value in the others."""
    low, high = lab.states.min(axis=0) - lab.spread, lab.states.max(axis=0) + lab.spread
    point = np.where((low <= 0) & (high >= 0), 0.0, _typical(lab))
    return Centre(point, "zero", affine=False)


def _typical(lab: Laboratory) -> Floats:
    """A visited value of each coordinate; one value for those of similar scale and place, which may be exchanged."""
    point: Floats = np.median(lab.states, axis=0)
    for group in group_by_scale(lab.spread, lab.starts):
        near = float(np.exp(np.log(lab.spread[group]).mean()))
        order = group[np.argsort(point[group], kind="stable")]
        for alike in np.split(order, np.flatnonzero(np.diff(point[order]) > near) + 1):
            point[alike] = point[alike[len(alike) // 2]]
    return point


def _middle(lab: Laboratory) -> Centre | None:
    """The middle of the observation box, if observations are the state."""
    space = lab.observation_space
    if not lab.shows_state or not isinstance(space, spaces.Box):
        return None
    low, high = (np.asarray(bound, dtype=np.float64).reshape(-1) for bound in (space.low, space.high))
    if not (np.isfinite(low) & np.isfinite(high)).all() or (np.abs(high) > 1e30).any():
        return None
    return Centre((low + high) / 2, "the centre of the box", affine=True)


def _equilibrium(lab: Laboratory) -> Centre | None:
    """An equilibrium (no change on average over actions), by Newton's method from the start states."""
    starts = lab.starts
    point = np.median(starts if len(starts) else lab.states, axis=0)
    scale = np.where(lab.spread > 0, lab.spread, 1.0)
    single = lab.is_single
    polished = 0
    try:
        for _ in range(_NEWTON_STEPS):
            drift = _drift(lab, point)
            polished += (np.abs(drift) / scale).max() <= _AT_REST[single]
            if polished > _POLISHING:
                # Coordinates in which every value is an equilibrium (a cart's position) are set to zero.
                rest = _with_free_at_zero(lab, point, scale, _AT_REST[single])
                return Centre(_simplify_point(rest, scale, _NEAR[single]), "an equilibrium", affine=True)
            step = _newton_step(lab, point, drift, scale, _DIFFERENCE[single])
            if not np.isfinite(step).all() or (np.abs(step) > 100 * scale).any():
                return None
            point = point - step
    except TargetError:
        return None
    return None


def _newton_step(lab: Laboratory, point: Floats, drift: Floats, scale: Floats, difference: float) -> Floats:
    columns = [(_drift(lab, point + shift) - drift) / difference for shift in np.diag(difference * scale)]
    step: Floats = np.linalg.lstsq(np.stack(columns, axis=1), drift, rcond=1e-6)[0] * scale
    return step


def _simplify_point(point: Floats, scale: Floats, near: float) -> Floats:
    """The point with nearby multiples of pi and short decimals substituted."""
    simple = point.copy()
    for j, value in enumerate(point):
        options = [*_SIMPLE, round(float(value), 4)]
        best = min(options, key=lambda option: abs(option - value))
        if abs(best - value) <= near * scale[j]:
            simple[j] = best
    return simple


def _with_free_at_zero(lab: Laboratory, point: Floats, scale: Floats, at_rest: float) -> Floats:
    freed = point.copy()
    for j in range(lab.dim):
        moved = freed.copy()
        moved[j] = 0.0
        if (np.abs(_drift(lab, moved)) / scale).max() <= at_rest:
            freed = moved
    return freed


def _drift(lab: Laboratory, state: Floats) -> Floats:
    """The change of a state in one step, averaged over integer actions, or under the middle action."""
    actions = neutral_actions(lab)
    followed = lab.outcomes(np.repeat(state[None], len(actions), axis=0), actions).states
    moved: Floats = lab.difference(state, followed).mean(axis=0)
    return moved
