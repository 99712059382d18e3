"""Controls that come before any statement about a symmetry: does the environment agree with itself?

*Repeating*: the same (s, a), set twice with other states in between. If the outcomes differ, either the environment is
random, or something survives setting the state; the two are told apart by seeding.
*Reaching*: (s, a) as a rollout met it, against (s, a) set. If the outcomes differ, the state that is set is not the
whole state, and a pass would speak about states that no episode visits.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from symcheck.engine.environments.coordinates import Vector, finite, scalar_coordinate
from symcheck.engine.environments.pairs import Part
from symcheck.engine.environments.pool import Pool
from symcheck.engine.environments.stepper import Step, Stepper, numeric

Behaviour = Literal["deterministic", "stochastic", "leaky"]
_REPEATED = 60
_TRIED, _ACTIONS = 6, 3  # distinct states, and actions, on which setting must have an effect
# A share of visits that may differ: rollouts reach states with more digits than the observation shows, and a few sit
# at jumps (walls, thresholds) where a last digit matters.
_MAY_DIFFER = 0.05
_NOISE_FLOAT64, _NOISE_FLOAT32 = 1e-9, 1e-5  # iterative solvers stop early; above this it is no rounding
_REACHED_FLOAT64, _REACHED_FLOAT32 = 1e-7, 1e-3  # the same for reaching, where the state itself was rounded


@dataclass(frozen=True)
class Control:
    """What the controls found.

    Attributes:
        behaviour: "deterministic", "stochastic" (random, given the state) or "leaky" (something survives setting).
        text: the finding in words.
        caution: why a pass may not be believed although steps repeat; "" where nothing speaks against it.
        noise: largest difference between repetitions, per part, where they agree up to rounding.
        reset_first: the environment repeats itself only when it is reset before each state is set.
        repeating: parts that repeated although the dynamics are random.
    """

    behaviour: Behaviour
    text: str
    caution: str = ""
    noise: dict[Part, float] = field(default_factory=dict)
    reset_first: bool = False
    repeating: frozenset[Part] = frozenset()


def identity_control(stepper: Stepper, pool: Pool, rng: np.random.Generator) -> Control:
    """Repeat steps, and compare stepping with setting.

    Args:
        stepper: the environment, with state access.
        pool: states to try; its visits are what rollouts met.
        rng: picks states and orders.

    Returns:
        What was found.
    """
    picked = rng.integers(0, len(pool.situations), size=_REPEATED)
    states = [pool.situations[i].state for i in picked]
    actions = [stepper.env.action_space.sample() for _ in states]
    first = _stepped(stepper, states, actions, range(len(states)))
    second = _stepped(stepper, states, actions, rng.permutation(len(states)))
    agree, noise = _agreement(stepper, first, second)
    if not agree:
        return _not_repeating(stepper, states, actions, rng)
    caution, remark = _reaching(stepper, pool, rng)
    text = f"identity control passed: {len(states)} pairs (s, a), set and stepped twice, gave the same outcome{remark}"
    return Control("deterministic", text, caution, noise)


def _stepped(stepper: Stepper, states: list[Any], actions: list[Any], order: Any) -> list[Step]:
    steps: dict[int, Step] = {}
    for i in order:
        steps[int(i)] = stepper.outcome(states[int(i)], actions[int(i)])
    return [steps[i] for i in range(len(states))]


def _agreement(stepper: Stepper, first: list[Step], second: list[Step]) -> tuple[bool, dict[Part, float]]:
    """Whether two sets of steps agree up to rounding, and the largest differences."""
    coordinates = stepper.codec.coordinates
    one, two = np.stack([step.flat for step in first]), np.stack([step.flat for step in second])
    gaps = coordinates.residual(one, two)
    single = bool((coordinates.epsilon > 1e-10).any())
    allowed = _NOISE_FLOAT32 if single else _NOISE_FLOAT64
    scale = 1.0 + finite(np.abs(one))
    paid, again = (np.array([[step.reward] for step in steps]) for steps in (first, second))
    rewards = scalar_coordinate("reward", epsilon=0.0).residual(paid, again)
    sizes = 1.0 + finite(np.abs(paid))
    ended = all(a.terminated == b.terminated for a, b in zip(first, second, strict=True))
    # Whole numbers have no rounding: any difference counts.
    limit = np.where(coordinates.epsilon > 0, allowed, 0.0)
    agree = ended and bool((gaps <= limit * scale).all()) and bool((rewards <= allowed * sizes).all())
    return agree, {"transition": float(gaps.max()), "reward": float(rewards.max())} if agree else {}


def _not_repeating(stepper: Stepper, states: list[Any], actions: list[Any], rng: np.random.Generator) -> Control:
    one, two = (int(seed) for seed in rng.integers(0, 2**30, size=2))
    if _without_effect(stepper, states, actions, one):
        return Control(
            "leaky",
            f"identity control failed: setting a state has no effect ({_accessed(stepper)}): from "
            "different states the same action and seed lead to the same outcome; no statement about the "
            "symmetry is possible",
        )
    forward = _seeded(stepper, states, actions, range(len(states)), one)
    backward = _seeded(stepper, states, actions, rng.permutation(len(states)), one)
    if not _agreement(stepper, forward, backward)[0]:
        return Control(
            "leaky",
            "identity control failed: the same (s, a) gave different s', also with the same seed. Hidden state "
            "survives reset / set_state, or there is randomness that no seed reaches; no statement about the symmetry "
            f"is possible{_claimed(stepper)}",
        )
    other = _seeded(stepper, states, actions, range(len(states)), two)
    # What follows must draw its own noise, not that of the control, and other noise for another seed of the run.
    stepper.reset(seed=int(rng.integers(0, 2**30)))
    if _agreement(stepper, forward, other)[0]:
        return Control(
            "deterministic",
            "identity control passed after a reset before each state: something survives setting the state alone",
            reset_first=True,
        )
    return Control(
        "stochastic",
        "identity control: the same (s, a) gave different s', and the same with the same seed: the dynamics are "
        "random. Whether a state that is set behaves as one that is reached was not compared",
        reset_first=True,  # whatever an episode remembers is drawn anew, so that pairs are independent
        repeating=_repeating(forward, other),
    )


def _without_effect(stepper: Stepper, states: list[Any], actions: list[Any], seed: int) -> bool:
    """Whether different states lead to one outcome, for each of some actions: then they were never set."""
    distinct = {known.tobytes(): state for state in states if (known := numeric(state)) is not None}
    if len(distinct) < _TRIED:
        return False
    found = set()
    with _global_generators():
        for action in actions[:_ACTIONS]:
            outcomes = set()
            for state in list(distinct.values())[:_TRIED]:
                _seed_all(seed)
                stepper.reset(seed=seed)
                step = stepper.outcome(state, action)
                outcomes.add((step.flat.tobytes(), step.reward, step.terminated))
            found.add(len(outcomes))
    return found == {1}


def _accessed(stepper: Stepper) -> str:
    return "no state access" if stepper.access is None else stepper.access.source


def _claimed(stepper: Stepper) -> str:
    """That the environment was registered as deterministic, where it was."""
    spec = getattr(stepper.env, "spec", None)
    said = spec is not None and getattr(spec, "nondeterministic", None) is False
    return ", although it is registered as deterministic (nondeterministic=False)" if said else ""


def _repeating(first: list[Step], second: list[Step]) -> frozenset[Part]:
    """The parts that agree exactly under two seeds."""
    pairs = list(zip(first, second, strict=True))
    found: set[Part] = set()
    if all(a.reward == b.reward or (np.isnan(a.reward) and np.isnan(b.reward)) for a, b in pairs):
        found.add("reward")
    if all(a.terminated == b.terminated for a, b in pairs):
        found.add("termination")
    if all(np.array_equal(a.flat, b.flat, equal_nan=True) for a, b in pairs):
        found.add("transition")
    return frozenset(found)


def _seeded(stepper: Stepper, states: list[Any], actions: list[Any], order: Any, seed: int) -> list[Step]:
    steps: dict[int, Step] = {}
    with _global_generators():
        for i in order:
            _seed_all(seed + int(i))
            stepper.reset(seed=seed + int(i))
            steps[int(i)] = stepper.outcome(states[int(i)], actions[int(i)])
    return [steps[i] for i in range(len(states))]


def _seed_all(seed: int) -> None:
    np.random.seed(seed)  # noqa: NPY002 - environments that draw from the global generator
    random.seed(seed)


@contextmanager
def _global_generators() -> Iterator[None]:
    """Leave the process-wide generators as they were found."""
    numpy_state, python_state = np.random.get_state(), random.getstate()  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(numpy_state)  # noqa: NPY002
        random.setstate(python_state)


def _reaching(stepper: Stepper, pool: Pool, rng: np.random.Generator) -> tuple[str, str]:
    """(caution, remark): what setting a state loses of a state that was reached.

    Some simulators lag by one step right after a state is set (positions of bodies in MuJoCo). What has caught up one
    step later is no hidden state, and is only remarked.
    """
    inside = [i for i, visit in enumerate(pool.visits[:-1]) if not (visit.step.terminated or visit.step.truncated)]
    picked = [inside[i] for i in rng.permutation(len(inside))[:_REPEATED]]
    if not picked:
        return "", ""
    seen = np.stack([pool.visits[i].step.flat for i in inside])
    typical = np.sqrt(np.mean(finite(seen) ** 2, axis=0))
    first, second = [], []
    for i in picked:
        stepper.poke(pool.visits[i].situation.state)
        first.append(_mismatch(stepper, pool.visits[i].step, stepper.step(pool.visits[i].action), typical))
        second.append(_mismatch(stepper, pool.visits[i + 1].step, stepper.step(pool.visits[i + 1].action), typical))
    lost, late = [where for where in first if where], [where for where in second if where]
    if len(late) > _MAY_DIFFER * len(picked):
        return (
            f"{len(late)} of {len(picked)} states behave differently when they are set than when a rollout reaches "
            f"them (first in {late[0]}): hidden state that state access does not restore; register get and set for it"
        ), ""
    if len(lost) > _MAY_DIFFER * len(picked):
        return "", f"; {lost[0]} differs on the first step after a state is set, on both sides alike, and not later"
    return "", ""


def _mismatch(stepper: Stepper, reached: Step, again: Step, typical: Vector) -> str:
    """Where two steps differ beyond what rounding of the state explains; "" where they do not."""
    coordinates = stepper.codec.coordinates
    single = bool((coordinates.epsilon > 1e-10).any())
    allowed = _REACHED_FLOAT32 if single else _REACHED_FLOAT64
    gap = coordinates.residual(reached.flat, again.flat)
    scale = 1.0 + typical + finite(np.abs(reached.flat))
    if (~(gap <= allowed * scale)).any():
        return coordinates.names[int(np.argmax(gap / scale))]
    gap = scalar_coordinate("reward", epsilon=0.0).residual(np.array([reached.reward]), np.array([again.reward]))
    if gap[0] > allowed * (1 + float(finite(np.abs(np.array(again.reward))))):
        return "reward"
    return "" if again.terminated == reached.terminated else "terminated"
