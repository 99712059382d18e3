"""Likely causes of a violation, most likely first, each with the correction that would make the claim hold.

Corrections are tested: see `symcheck.engine.environments.causes.corrections`. After them come the places where the
claim breaks, and the frequency.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from symcheck.engine.environments.cases.edges import Tie
from symcheck.engine.environments.cases.pairs import Case, Measurement, Pairs
from symcheck.engine.environments.causes import subgroups
from symcheck.engine.environments.causes.corrections import corrections
from symcheck.engine.environments.causes.violations import Violations
from symcheck.envs.stepping.stepper import Steps
from symcheck.statements.statement import Statement, state
from symcheck.symmetry.exits import find_excess

# minimum number of violations that share a value, and largest fraction of all pairs with that value
_FEWEST_SHARED, _MOST_SHARED = 8, 0.6
_MOST_SHOWN = 12  # maximum number of coordinates of a next state


def likely_causes(violations: Violations, case: Case, shown: Measurement, tie: Tie | None) -> list[Statement]:
    """Likely causes of one property's violations.

    Args:
        violations: the measurements.
        case: the shrunk counterexample.
        shown: its measurement.
        tie: a one-sided threshold, if that explains the violations.

    Returns:
        Statements with SYM codes, most likely first.
    """
    pairs, part = violations.pairs, violations.part
    if tie is not None:
        name = pairs.comparison("transition", violations.measured).coordinates.names[tie.coordinate]
        end = tie.threshold if tie.closed_above else -tie.threshold
        return [state("SYM021", coordinate=name, ends_at=end, goes_on_at=-end)]
    causes = [
        *([_end_on_one_side(shown)] if part == "termination" else []),
        # If rounding decides, a map that changes less preserves more digits, without being a better correction.
        *(corrections(violations, case) if part != "observation" and not violations.rounded else []),
        *([_next_states_differ(violations) or _reward_term(violations)] if part == "reward" else []),
        subgroups.what_holds(violations),
        *_places(violations),
        subgroups.breaking_actions(violations),
        flattened_order(pairs),
        state("SYM026") if violations.share > 0.999 else state("SYM027", share=violations.share),
    ]
    return [cause for cause in causes if cause is not None]


def _end_on_one_side(shown: Measurement) -> Statement:
    sides = sorted((shown.left, shown.right), key=lambda side: not side.terminated[0] and not _is_cut(side))
    ends, goes_on = (side.flat[0][:_MOST_SHOWN].tolist() for side in sides)
    cut = _is_cut(sides[0]) and not sides[0].terminated[0]
    more = {"truncated": True} if cut else {}
    return state("SYM022", ends=ends, goes_on=goes_on, dimensions=int(shown.left.flat.shape[1]), **more)


def _is_cut(side: Steps) -> bool:
    return side.truncated is not None and bool(side.truncated[0])


def _next_states_differ(violations: Violations) -> Statement | None:
    """The cause that next states differ whenever rewards do: then no reward term is at fault."""
    transition = violations.exceeding(violations.pairs.comparison("transition", violations.measured))
    rows = violations.confirmed
    return state("SYM056", pairs=len(rows)) if transition[rows].all() else None


def _reward_term(violations: Violations) -> Statement | None:
    """A coordinate to which the difference of rewards is proportional."""
    measured, rows = violations.measured, np.array(violations.confirmed)
    gap = (measured.right.rewards - measured.left.rewards)[rows]
    if len(rows) < 8 or not np.isfinite(gap).all() or np.ptp(gap) == 0:
        return None
    codec = violations.pairs.stepper.codec
    before = codec.flatten_batch([measured.cases[row].situation.obs for row in rows])
    for of_next_state, values in ((False, before), (True, measured.left.flat[rows])):
        for name, column in zip(codec.coordinates.names, values.T, strict=True):
            # Two points always lie on a line.
            if not np.isfinite(column).all() or len(np.unique(np.abs(column))) < 2 or len(np.unique(column)) < 3:
                continue
            slope = float(column @ gap / (column @ column)) if column.any() else 0.0
            # Proportional up to 0.1%: a term that is odd under g contributes twice its value.
            if np.abs(gap - slope * column).max() <= 1e-3 * np.abs(gap).max():
                return state("SYM020", factor=slope, coordinate=name, of_next_state=of_next_state)
    return None


def _places(violations: Violations) -> list[Statement]:
    """Where the violations lie: images outside the space, one side stopped at a bound, or one side of a threshold."""
    pairs, measured, confirmed = violations.pairs, violations.measured, violations.confirmed
    leaving = [find_excess(measured.cases[row].image.obs, pairs.stepper.codec) for row in confirmed]
    excesses = [excess for excess in leaving if excess is not None]
    causes = []
    if len(excesses) * 2 > len(leaving):
        first = excesses[0]
        fields = {"coordinate": first.coordinate, "value": first.value, "bound": first.bound, "side": first.side}
        causes.append(state("SYM024", **fields))
    within = [row for row, excess in zip(confirmed, leaving, strict=True) if excess is None]
    return [*causes, *_wall(pairs, measured, within), *_shared_value(pairs, measured, confirmed)]


def _shared_value(pairs: Pairs, measured: Measurement, rows: list[int]) -> list[Statement]:
    """A value that all violations and only few other pairs have."""
    if len(rows) < _FEWEST_SHARED:
        return []
    states = pairs.stepper.codec.flatten_batch([case.situation.obs for case in measured.cases])
    actions = pairs.stepper.action_codec.flatten_batch([case.action for case in measured.cases])
    names = [*pairs.stepper.action_codec.coordinates.names, *pairs.stepper.codec.coordinates.names]
    for name, column in zip(names, np.concatenate([actions, states], axis=1).T, strict=True):
        same = column == column[rows[0]]
        if same[rows].all() and same.mean() < _MOST_SHARED:
            return [state("SYM030", coordinate=name, value=float(column[rows[0]]))]
    return []


def _wall(pairs: Pairs, measured: Measurement, rows: list[int]) -> list[Statement]:
    """A coordinate of the next state that is at its bound on exactly one side, in all violations."""
    coordinates = pairs.stepper.codec.coordinates
    for j, name in enumerate(coordinates.names if rows else ()):
        for side, bounds in (("lower", coordinates.low), ("upper", coordinates.high)):
            if not np.isfinite(bounds[j]):
                continue
            close = 1e-6 * max(1.0, abs(bounds[j]))  # bounds are declared in float32
            left = np.abs(measured.left.flat[:, j] - bounds[j]) <= close
            right = np.abs(measured.right.flat[:, j] - bounds[j]) <= close
            stopped = left ^ right
            # If nearly all pairs stop on one side only, this does not distinguish violations.
            if stopped[rows].all() and stopped.mean() < 0.9:
                return [state("SYM023", coordinate=name, side=side, bound=float(bounds[j]))]
    return []


def flattened_order(pairs: Pairs) -> Statement | None:
    """The order in which FlattenObservation put the parts of a Dict; None if the stack has no such layer."""
    layer: Any = pairs.stepper.env
    while isinstance(layer, gym.Wrapper):
        inner = layer.env.observation_space
        if isinstance(layer, gym.wrappers.FlattenObservation) and isinstance(inner, spaces.Dict):
            parts = [{"key": str(key), "size": spaces.flatdim(child)} for key, child in inner.spaces.items()]
            return state("SYM025", parts=parts)
        layer = layer.env
    return None
