"""Do the slots of a vector environment leave each other alone?

The control comes before any statement about one of them: with the same seed, the same (s, a) in the same slot must give
the same outcome whatever the other slots hold and do. Where states cannot be set, the first steps after seeded resets
are compared instead, as long as no slot ends (automatic resets may draw from a common generator).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symcheck.engine.environments.cases.pool import Pool
from symcheck.engine.environments.subject.coordinates import Vector
from symcheck.engine.environments.subject.slots import Outcomes, SlotStepper

_TRIALS = 6
_STEPS = 12  # of the comparison of seeded episodes
# Arithmetic on whole batches may round a row otherwise beside other rows: a few thousand units of float32 and float64.
_SAME_FLOAT32, _SAME_FLOAT64 = 1e-4, 1e-11


def leakage(stepper: SlotStepper, pool: Pool, rng: np.random.Generator) -> str:
    """What one slot's outcome has to do with the others, in words.

    Args:
        stepper: the vector environment.
        pool: states to try.
        rng: picks slots, states and seeds.

    Returns:
        "" where nothing was found, or where the environment does not repeat under a seed.
    """
    if stepper.slots.count < 2:
        return ""
    try:
        settable = stepper.access is not None and bool(pool.situations) and pool.situations[0].state is not None
        check = _by_setting if settable else _by_seeds
        return next(filter(None, (check(stepper, pool, rng) for _ in range(_TRIALS))), "")
    finally:
        stepper.reset(seed=int(rng.integers(2**30)))


def _by_setting(stepper: SlotStepper, pool: Pool, rng: np.random.Generator) -> str:
    slots, seed = stepper.slots, int(rng.integers(2**30))
    k = int(rng.integers(slots.count))
    states = [_drawn(pool, rng) for _ in range(slots.count)]
    actions, others = slots.actions(), slots.actions()
    others[k] = actions[k]
    changed = [state if j == k else _drawn(pool, rng) for j, state in enumerate(states)]

    def outcome(held: Sequence[Any], taken: Sequence[Any]) -> Vector:
        stepper.reset(seed=seed)
        return _seen(stepper, stepper.placed(held, taken), k)

    first = outcome(states, actions)
    if _apart(stepper, first, outcome(states, actions)) >= 0:
        return ""
    if _apart(stepper, first, outcome(changed, others)) < 0:
        return ""
    for j in rng.permutation(slots.count)[:32]:
        one = [changed[i] if i == j else state for i, state in enumerate(states)]
        act = [others[i] if i == j else action for i, action in enumerate(actions)]
        at = _apart(stepper, first, again := outcome(one, act))
        if at >= 0:
            return _said(stepper, k, f"slot {j} holds", at, first, again)
    again = outcome(changed, others)
    return _said(stepper, k, "the others hold", _apart(stepper, first, again), first, again)


def _by_seeds(stepper: SlotStepper, pool: Pool, rng: np.random.Generator) -> str:
    slots, seed = stepper.slots, int(rng.integers(2**30))
    k = int(rng.integers(slots.count))
    actions = [slots.actions() for _ in range(_STEPS)]
    others = [slots.actions() for _ in range(_STEPS)]
    for own, other in zip(actions, others, strict=True):
        other[k] = own[k]
    runs = [_episode(stepper, seed, some, k) for some in (actions, actions, others)]
    for first, again, elsewhere in zip(*runs, strict=False):
        if _apart(stepper, first, again) >= 0:
            return ""
        if (at := _apart(stepper, first, elsewhere)) >= 0:
            return _said(stepper, k, "the others do", at, first, elsewhere)
    return ""


def _episode(stepper: SlotStepper, seed: int, actions: list[list[Any]], k: int) -> list[Vector]:
    stepper.reset(seed=seed)
    found = []
    for taken in actions:
        seen = stepper.slots.step(taken, read=False)
        found.append(_seen(stepper, seen, k))
        if (seen.terminated | seen.truncated).any():
            break
    return found


def _drawn(pool: Pool, rng: np.random.Generator) -> Any:
    return pool.situations[int(rng.integers(len(pool.situations)))].state


def _seen(stepper: SlotStepper, seen: Outcomes, k: int) -> Vector:
    flat = stepper.codec.flatten(seen.observations[k])
    return np.concatenate([flat, [seen.rewards[k], float(seen.terminated[k])]])


def _apart(stepper: SlotStepper, one: Vector, other: Vector) -> int:
    """The first number in which two outcomes differ, -1 where they do not."""
    epsilon = np.concatenate([stepper.codec.coordinates.epsilon, [1e-7, 0.0]])
    allowed = np.select([epsilon > 1e-10, epsilon > 0], [_SAME_FLOAT32, _SAME_FLOAT64], 0.0)
    with np.errstate(invalid="ignore"):
        gap = np.where((one == other) | (np.isnan(one) & np.isnan(other)), 0.0, np.abs(one - other))
    over = np.flatnonzero(~(gap <= allowed * (1 + np.abs(np.nan_to_num(one)))))
    return int(over[0]) if len(over) else -1


def _said(stepper: SlotStepper, k: int, whose: str, at: int, one: Vector, other: Vector) -> str:
    name = [*stepper.codec.coordinates.names, "reward", "terminated"][at]
    return (
        f"slot control failed: the same (s, a) in slot {k}, with the same seed, gave another outcome when "
        f"what {whose} was changed ({name}: {one[at]:.6g} against {other[at]:.6g}). "
        "Slots leak into each other; no statement about the symmetry of one of them is possible"
    )
