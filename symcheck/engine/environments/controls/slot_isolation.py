"""Checks that the slots of a vector environment do not influence each other.

This check precedes any statement about a single slot: with the same seed, the same (s, a) in the same slot must give
the same outcome for any states and actions of the other slots. If states cannot be set, the first steps after seeded
resets are compared instead, until a slot ends (automatic resets may share a random generator).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symcheck.array_types import Floats
from symcheck.engine.environments.cases.pool import Pool
from symcheck.envs.stepping.slots import Outcomes, SlotStepper
from symcheck.statements.statement import Statement, state
from symcheck.verdict import ReasonCode

_TRIALS = 6
_STEPS = 12  # number of steps of seeded episodes that are compared
# Batched arithmetic may round a row differently depending on other rows: a few thousand units of float32 and float64.
_SAME_FLOAT32, _SAME_FLOAT64 = 1e-4, 1e-11


def find_slot_leak(stepper: SlotStepper, pool: Pool, rng: np.random.Generator) -> Statement | None:
    """The dependence of one slot's outcome on the others, if there is any.

    Args:
        stepper: the vector environment.
        pool: states to test.
        rng: selects slots, states and seeds.

    Returns:
        None if no dependence was found, or if the environment does not repeat under a seed.
    """
    if stepper.slots.count < 2:
        return None
    try:
        settable = stepper.access is not None and bool(pool.situations) and pool.situations[0].state is not None
        check = _by_setting if settable else _by_seeds
        leaks = (check(stepper, pool, rng) for _ in range(_TRIALS))
        return next((leak for leak in leaks if leak is not None), None)
    finally:
        stepper.reset(seed=int(rng.integers(2**30)))


def _by_setting(stepper: SlotStepper, pool: Pool, rng: np.random.Generator) -> Statement | None:
    slots, seed = stepper.slots, int(rng.integers(2**30))
    k = int(rng.integers(slots.count))
    states = [_draw_state(pool, rng) for _ in range(slots.count)]
    actions, others = slots.actions(), slots.actions()
    # The tested slot has the same state and action; everything else is changed.
    others[k] = actions[k]
    changed = [state if j == k else _draw_state(pool, rng) for j, state in enumerate(states)]

    def outcome(held: Sequence[Any], taken: Sequence[Any]) -> Floats:
        stepper.reset(seed=seed)
        return _outcome_of(stepper, stepper.step_from_states(held, taken), k)

    first = outcome(states, actions)
    if _first_difference(stepper, first, outcome(states, actions)) >= 0:
        return None
    at = _first_difference(stepper, first, whole := outcome(changed, others))
    if at < 0:
        return None
    # Change one neighbour at a time, to name the one that leaks.
    for j in map(int, rng.permutation(slots.count)[:32]):
        states_one_changed = [changed[i] if i == j else state for i, state in enumerate(states)]
        actions_one_changed = [others[i] if i == j else action for i, action in enumerate(actions)]
        again = outcome(states_one_changed, actions_one_changed)
        if (place := _first_difference(stepper, first, again)) >= 0:
            return _leak(stepper, k, place, first, again, settable=True, other=j)
    return _leak(stepper, k, at, first, whole, settable=True)


def _by_seeds(stepper: SlotStepper, pool: Pool, rng: np.random.Generator) -> Statement | None:
    slots, seed = stepper.slots, int(rng.integers(2**30))
    k = int(rng.integers(slots.count))
    actions = [slots.actions() for _ in range(_STEPS)]
    others = [slots.actions() for _ in range(_STEPS)]
    for own, other in zip(actions, others, strict=True):
        other[k] = own[k]
    runs = [_episode(stepper, seed, some, k) for some in (actions, actions, others)]
    for first, again, elsewhere in zip(*runs, strict=False):
        if _first_difference(stepper, first, again) >= 0:
            return None
        if (at := _first_difference(stepper, first, elsewhere)) >= 0:
            return _leak(stepper, k, at, first, elsewhere, settable=False)
    return None


def _episode(stepper: SlotStepper, seed: int, actions: list[list[Any]], k: int) -> list[Floats]:
    stepper.reset(seed=seed)
    outcomes = []
    for taken in actions:
        outcome = stepper.slots.step(taken, read=False)
        outcomes.append(_outcome_of(stepper, outcome, k))
        if (outcome.terminated | outcome.truncated).any():
            break
    return outcomes


def _draw_state(pool: Pool, rng: np.random.Generator) -> Any:
    return pool.situations[int(rng.integers(len(pool.situations)))].state


def _outcome_of(stepper: SlotStepper, seen: Outcomes, k: int) -> Floats:
    flat = stepper.codec.flatten(seen.observations[k])
    return np.concatenate([flat, [seen.rewards[k], float(seen.terminated[k])]])


def _first_difference(stepper: SlotStepper, one: Floats, other: Floats) -> int:
    """Index of the first number in which two outcomes differ, -1 if they do not."""
    epsilon = np.concatenate([stepper.codec.coordinates.epsilon, [1e-7, 0.0]])
    allowed = np.select([epsilon > 1e-10, epsilon > 0], [_SAME_FLOAT32, _SAME_FLOAT64], 0.0)
    with np.errstate(invalid="ignore"):
        gap = np.where((one == other) | (np.isnan(one) & np.isnan(other)), 0.0, np.abs(one - other))
    over = np.flatnonzero(~(gap <= allowed * (1 + np.abs(np.nan_to_num(one)))))
    return int(over[0]) if len(over) else -1


def _leak(stepper: SlotStepper, k: int, at: int, before: Floats, after: Floats, **fields: object) -> Statement:
    name = [*stepper.codec.coordinates.names, "reward", "terminated"][at]
    code = ReasonCode.SLOTS_LEAK.value
    return state(code, slot=k, coordinate=name, first=float(before[at]), again=float(after[at]), **fields)
