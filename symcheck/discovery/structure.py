"""The effect of every coordinate and every action on every coordinate, at a fixed point of the symmetries.

A symmetry x -> c + P (x - c) that fixes the point c maps the probe c + d e_j to the probe c +- d e_i, and the outcome
of one to the outcome of the other. The tables of effects below are therefore exactly invariant, however nonlinear the
dynamics are. A signed permutation is a permutation of the 2n *literals* +e_j and -e_j that commutes with negation, so
one table indexed by literals suffices; actions are further literals.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from symcheck.array_types import Floats
from symcheck.discovery.action_values import MOST_LISTED, ActionValues
from symcheck.discovery.laboratory import Laboratory
from symcheck.discovery.result import Sensitivities
from symcheck.discovery.scales import probe_sizes
from symcheck.errors import TargetError

_ACTION_PROBE = 0.5  # fraction of the way from the middle of a Box action to its bound
# Effects are compared loosely, so that an approximate symmetry reaches verification, which measures its violation.
RELATIVE = 0.02
FLOOR = 0.01  # relative to the largest effect on the same coordinate
CHANCE = 10.0  # standard deviations of one outcome; five for a comparison of two differences of outcomes
_UNBOUNDED_ACTION = 1.0  # probe of an action component without bounds
_MOST_STEPS = 40_000  # at a centre halfway between whole numbers, where each outcome is averaged over many states
_DRAWN_RELATIVE = 0.3  # relative tolerance if there are too many joint actions to average over all of them


@dataclass(frozen=True)
class Joint:
    """Estimated numbers for every two state literals that a symmetry preserves.

    Attributes:
        table: shape (2 dim, 2 dim).
        floor: error bound of each entry, same shape.
    """

    table: Floats
    floor: Floats


@dataclass(frozen=True)
class Structure:
    """Effects as a table over literals.

    Literals are numbered 2 j for +e_j and 2 j + 1 for -e_j, state coordinates first. The components of a Box action
    follow in the same way. The values of integer actions follow with one number each and have no negation.

    Attributes:
        centre: the state c, shape (dim,).
        table: table[p, q]: the increase of literal p when literal q is probed, shape (2 dim, literals).
        drift: the increase of literal p without a probe, shape (2 dim,).
        floor: per state literal, the threshold below which effects count as zero.
        literals: the literals of every variable: one for a discrete action, two for everything else.
        dim: number of state coordinates.
        fixed: coordinates that never change; maps fix them.
        relative: effects that differ by at most this fraction of the larger count as equal.
        pairs: for two state literals, their joint effect, as numbers that a symmetry preserves; -1 is compatible with
            any number. None if that was not measured. Shape (2 dim, 2 dim).
        mixed: mixed[p, q, r]: the increase of literal r when p and q are probed together, beyond their separate
            effects; None if that was not measured. Shape (2 dim, 2 dim, 2 dim).
        mixed_floor: per literal r, the threshold below which that counts as zero.
        parts: the part of the observation that each coordinate belongs to and stays in; None for one part.
        joint: numbers for every two state literals, such as how often they increase together.
        has_effects: whether effects were measured; otherwise the table is zero and excludes no map.
    """

    centre: Floats
    table: Floats
    drift: Floats
    floor: Floats
    literals: tuple[tuple[int, ...], ...]
    dim: int
    fixed: tuple[int, ...]
    relative: float = RELATIVE
    pairs: npt.NDArray[np.int64] | None = None
    mixed: Floats | None = None
    mixed_floor: Floats | None = None
    parts: tuple[int, ...] | None = None
    joint: tuple[Joint, ...] = ()
    has_effects: bool = True


def halves_of(lab: Laboratory, centre: Floats) -> npt.NDArray[np.intp]:
    """The coordinates that take whole numbers only and for which the centre is halfway between two of them."""
    return np.flatnonzero((lab.states == np.rint(lab.states)).all(axis=0) & (centre != np.rint(centre)))


def is_steppable(lab: Laboratory, centre: Floats) -> bool:
    """Whether the states next to a centre halfway between whole numbers are few enough to step from each of them."""
    halves = len(halves_of(lab, centre))
    probes = 2 * lab.dim + (
        lab.values.total if lab.values is not None else 2 * int(np.prod(lab.action_space.shape or 1))
    )
    return not halves or 2**halves * probes * len(neutral_actions(lab)) * lab.repeats <= _MOST_STEPS


def probes_at(lab: Laboratory, centre: Floats) -> Floats:
    """The size of the probe along every coordinate: half a unit where the centre is halfway between whole numbers."""
    sizes = probe_sizes(lab.spread, lab.is_whole, lab.starts)
    halves = halves_of(lab, centre)
    sizes[halves] = np.where(sizes[halves] > 0, 0.5, 0.0)
    return sizes


def effects_at(lab: Laboratory, centre: Floats) -> Structure:
    """Probe every coordinate and every action at a centre.

    Args:
        lab: the environment.
        centre: the state c, shape (dim,).

    Returns:
        The table. The cost is about 2 dim (number of discrete actions, or 1) + 2 (components of a Box action) steps.

    Raises:
        TargetError: the environment rejects the centre.
    """
    sizes = probes_at(lab, centre)
    neutral = neutral_actions(lab)
    base = mean_outcome(lab, centre, neutral)
    states = _state_effects(lab, centre, sizes, neutral, base)
    actions = _action_effects(lab, centre, base)
    table = np.concatenate([states, actions], axis=0)
    by_chance, _ = lab.noise
    if not len(halves_of(lab, centre)):
        by_chance = np.maximum(by_chance, lab.noise_at(centre, neutral[0]))
    floor = np.maximum(np.maximum(FLOOR * np.abs(table).max(axis=0), 1e-12), CHANCE * by_chance)
    literals: list[tuple[int, ...]] = [(2 * j, 2 * j + 1) for j in range(lab.dim)]
    first = 2 * lab.dim
    if lab.values is not None:
        literals += [(first + a,) for a in range(len(actions))]
    else:
        literals += [(first + 2 * k, first + 2 * k + 1) for k in range(len(actions) // 2)]
    return Structure(
        centre,
        both_signs(table),
        both_signs((base - centre)[None])[:, 0],
        np.repeat(floor, 2),
        tuple(literals),
        lab.dim,
        tuple(int(j) for j in np.flatnonzero(sizes == 0)),
        _DRAWN_RELATIVE if lab.values is not None and lab.values.joint > MOST_LISTED else RELATIVE,
    )


def without_effects(lab: Laboratory, centre: Floats) -> Structure:
    """A table for a centre that is no state, such as zero if some numbers add up to one: it excludes no map.

    Args:
        lab: the environment.
        centre: the point c, shape (dim,).

    Returns:
        The table over state literals only, to be refined by what was measured elsewhere.
    """
    literals = tuple((2 * j, 2 * j + 1) for j in range(lab.dim))
    fixed = tuple(int(j) for j in np.flatnonzero(lab.spread == 0))
    nothing, table = np.zeros(2 * lab.dim), np.zeros((2 * lab.dim, 2 * lab.dim))
    return Structure(centre, table, nothing, np.ones(2 * lab.dim), literals, lab.dim, fixed, has_effects=False)


def both_signs(rows: Floats) -> Floats:
    """Extend a table of probes (rows) and coordinates (columns) to literals of both signs."""
    table: Floats = np.repeat(rows.T, 2, axis=0) * np.tile([1.0, -1.0], rows.shape[1])[:, None]
    return table


def neutral_actions(lab: Laboratory) -> list[Any]:
    """The actions over which a step is averaged: all integer actions, or the middle of a Box."""
    if lab.values is not None:
        return [lab.values.action(base) for base in lab.values.bases]
    return [middle_action(lab.action_space)]


def middle_action(space: spaces.Space[Any]) -> Any:
    """The middle of a Box of actions, with zeros for unbounded components; for other spaces, any fixed action.

    Example:
        >>> middle_action(spaces.Box(0.0, 2.0, (1,))).tolist()
        [1.0]
    """
    if not isinstance(space, spaces.Box):
        space.seed(0)
        return space.sample()
    return action_middle(space).astype(space.dtype).reshape(space.shape)


def action_middle(space: spaces.Box) -> Floats:
    """The middle of every component, or 0 if a bound is missing; flat float64."""
    low, high = (np.asarray(bound, dtype=np.float64).reshape(-1) for bound in (space.low, space.high))
    bounded = np.isfinite(low) & np.isfinite(high)
    return np.asarray(np.where(bounded, (np.where(bounded, low, 0.0) + np.where(bounded, high, 0.0)) / 2, 0.0))


def action_reach(space: spaces.Box) -> Floats:
    """Half the width of every component, or 1 if a bound is missing; flat float64."""
    low, high = (np.asarray(bound, dtype=np.float64).reshape(-1) for bound in (space.low, space.high))
    bounded = np.isfinite(low) & np.isfinite(high)
    width = np.where(bounded, high, 0.0) - np.where(bounded, low, 0.0)
    return np.asarray(np.where(bounded, width / 2, _UNBOUNDED_ACTION))


def probe_actions(space: spaces.Box) -> list[Any]:
    """For every component, the middle action with that component increased and decreased; 2 x components actions."""
    middle, reach = action_middle(space), action_reach(space)
    probes = []
    for k in range(len(middle)):
        for direction in (1.0, -1.0):
            moved = middle.copy()
            moved[k] += direction * _ACTION_PROBE * reach[k]
            probes.append(moved.astype(space.dtype).reshape(space.shape))
    return probes


def mean_outcome(lab: Laboratory, state: Floats, actions: list[Any]) -> Floats:
    """The next state, averaged over some actions.

    A coordinate of whole numbers that is halfway between two of them stands for both: the change is averaged over them.
    A map that preserves the centre permutes these states, so the average is as invariant as a single outcome.
    """
    halves = halves_of(lab, state) if is_steppable(lab, state) else np.zeros(0, dtype=np.intp)
    steps = np.array(list(itertools.product((-0.5, 0.5), repeat=len(halves))))
    corners = np.repeat(state[None], len(steps), axis=0)
    corners[:, halves] += steps
    starts = np.repeat(corners, len(actions), axis=0)
    followed = lab.outcomes(starts, actions * len(corners)).states
    mean: Floats = state + lab.difference(starts, followed).mean(axis=0)
    return mean


def _state_effects(lab: Laboratory, centre: Floats, sizes: Floats, neutral: list[Any], base: Floats) -> Floats:
    """Rows over probes +e_0, -e_0, +e_1, ...: the changes beyond the probe itself."""
    rows = np.zeros((2 * lab.dim, lab.dim))
    for j in np.flatnonzero(sizes > 0):
        for k, direction in enumerate((1.0, -1.0)):
            step = np.zeros(lab.dim)
            step[j] = direction * sizes[j]
            try:
                moved = mean_outcome(lab, centre + step, neutral)
            except TargetError:  # outside the allowed states: nothing is known about this probe
                continue
            rows[2 * j + k] = lab.difference(base, moved) - step
    return rows


def _action_effects(lab: Laboratory, centre: Floats, base: Floats) -> Floats:
    if lab.values is not None:
        probes = [lab.values.with_literal(literal) for literal in range(lab.values.total)]
    elif isinstance(lab.action_space, spaces.Box):
        probes = [[action] for action in probe_actions(lab.action_space)]
    else:
        return np.zeros((0, lab.dim))
    return lab.difference(base, np.stack([mean_outcome(lab, centre, each) for each in probes]))


def sensitivities_of(structure: Structure, prefix: str, values: ActionValues | None) -> Sensitivities:
    """The table of effects in the form that pages draw: positive literals only, each row scaled to its largest.

    Args:
        structure: the table.
        prefix: the name of the coordinates, "state" or "observation".
        values: the literals of integer actions; None for other actions.

    Returns:
        Names and rows.
    """
    columns = [own[0] for own in structure.literals]
    # Every second row and column belongs to a positive literal.
    rows = structure.table[0::2][:, columns]
    largest = np.abs(rows).max(axis=1, keepdims=True)
    scaled = rows / np.where(largest > 0, largest, 1.0)
    names = [f"{prefix}[{j}]" for j in range(structure.dim)]
    if values is None:
        names += [f"action[{k}]" for k in range(len(columns) - structure.dim)]
    elif values.single:
        names += [f"action = {k}" for k in range(values.total)]
    else:
        names += [f"action[{k}] = {v}" for k, n in enumerate(values.counts) for v in range(n)]
    return Sensitivities(tuple(names), tuple(map(tuple, scaled.tolist())), tuple(structure.centre.tolist()))
