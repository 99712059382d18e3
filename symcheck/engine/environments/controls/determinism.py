"""Controls that come before any statement about a symmetry: does the environment agree with itself?

*Repeating*: the same (s, a), set twice with other states in between. If the outcomes differ, either the environment is
random, or something survives setting the state; the two are told apart by seeding. Whether states that are set behave
as those that rollouts reach is looked at beside it (`reaching`); where they do not, and another reset leads to another
outcome, something is drawn when an episode starts and kept, so that (s, a) has a law and no single outcome.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from symcheck.engine.environments.cases.pairs import Part
from symcheck.engine.environments.cases.pool import Pool, Visit
from symcheck.engine.environments.controls.set_vs_reached import Reached, reaching
from symcheck.engine.environments.subject.coordinates import finite, scalar_coordinate
from symcheck.engine.environments.subject.stepper import Step, Stepper, numeric
from symcheck.envs.state_access.generators import reset_seeded

Behaviour = Literal["deterministic", "stochastic", "leaky"]
_REPEATED = 60
_ENDS = 6  # steps that end an episode, taken before the repetitions
_REFUSED = " with a reset before each state, without which step() refuses to go on"
# Distinct states, and actions, on which setting must have an effect. A sensor that drops out under three seeds in ten,
# whatever the state, hides all twelve once in two million times.
_TRIED, _ACTIONS = 6, 12
# Repetitions that would differ if no seed reached what differed: all agree by chance once in e^8, even where they
# differ four times less often than they were seen to.
_EXPECTED = 4 * 8
_MORE = 12  # rounds: what happens in a hundredth of the steps is missed once in a thousand times
_NOISE_FLOAT64, _NOISE_FLOAT32 = 1e-9, 1e-5  # iterative solvers stop early; above this it is no rounding


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
    for visit in _last_steps(pool, rng):  # what follows an end may be another environment
        stepper.outcome(visit.situation.state, visit.action)
    second = _stepped(stepper, states, actions, rng.permutation(len(states)))
    apart, noise = _agreement(stepper, first, second)
    if apart:
        return _not_repeating(stepper, pool, states, actions, apart, rng)
    found = reaching(stepper, pool, rng)
    if found.caution:
        # Chance that is too rare for two rounds looks like a hidden state to whoever compares more steps.
        orders = (rng.permutation(len(states)) for _ in range(_MORE))
        apart = sum(_agreement(stepper, first, _stepped(stepper, states, actions, order))[0] for order in orders)
        if apart:
            return _not_repeating(stepper, pool, states, actions, apart / _MORE, rng)
        if kept := _kept(stepper, states, actions, found.caution, rng):
            return kept
        if cleared := _cleared(stepper, pool, rng):
            return replace(cleared, noise=noise)
    text = (
        f"identity control passed{_REFUSED if stepper.reset_first else ''}: {len(states)} pairs (s, a), set and "
        f"stepped twice, gave the same outcome{found.remark}"
    )
    return Control("deterministic", text, found.caution, noise, reset_first=stepper.reset_first)


def _last_steps(pool: Pool, rng: np.random.Generator) -> list[Visit]:
    """Some steps that ended an episode."""
    return [pool.ends[i] for i in rng.permutation(len(pool.ends))[:_ENDS]]


def _cleared(stepper: Stepper, pool: Pool, rng: np.random.Generator) -> Control | None:
    """The control where a reset before each state takes back what setting it does not, as a mark that all is over."""
    if stepper.reset_first:
        return None
    stepper.reset_first = True
    found = reaching(stepper, pool, rng)
    stepper.reset_first = not found.caution
    return None if found.caution else _resetting(found)


def _resetting(found: Reached) -> Control:
    """The control of an environment that repeats itself where it is reset before each state."""
    return Control(
        "deterministic",
        "identity control passed after a reset before each state: something survives setting the state alone"
        f"{found.remark}",
        found.caution,
        reset_first=True,
    )


def _kept(
    stepper: Stepper, states: list[Any], actions: list[Any], caution: str, rng: np.random.Generator
) -> Control | None:
    """The control where steps repeat only until the next reset, which draws something that states do not hold."""
    one, two = (int(seed) for seed in rng.integers(0, 2**30, size=2))
    after = [_seeded(stepper, states, actions, range(len(states)), seed) for seed in (one, two)]
    stepper.reset(seed=int(rng.integers(0, 2**30)))
    apart = _agreement(stepper, *after)[0]
    if not apart:
        return None
    if _unseeded(stepper, states, actions, after[0], one, apart, rng):
        return _leaky(stepper)
    return Control(
        "stochastic",
        "identity control: the same (s, a) gave the same s' until the next reset, and then another one: something is "
        "drawn when an episode starts, so that (s, a) has a law",
        caution,
        reset_first=True,
        repeating=_repeating(*after),
    )


def _stepped(stepper: Stepper, states: list[Any], actions: list[Any], order: Any) -> list[Step]:
    steps: dict[int, Step] = {}
    for i in order:
        steps[int(i)] = stepper.outcome(states[int(i)], actions[int(i)])
    return [steps[i] for i in range(len(states))]


def _agreement(stepper: Stepper, first: list[Step], second: list[Step]) -> tuple[int, dict[Part, float]]:
    """How many of two lists of steps differ beyond rounding, and the largest differences where none does."""
    coordinates = stepper.codec.coordinates
    one, two = np.stack([step.flat for step in first]), np.stack([step.flat for step in second])
    gaps = coordinates.residual(one, two)
    single = bool((coordinates.epsilon > 1e-10).any())
    allowed = _NOISE_FLOAT32 if single else _NOISE_FLOAT64
    scale = 1.0 + finite(np.abs(one))
    paid, again = (np.array([[step.reward] for step in steps]) for steps in (first, second))
    rewards = scalar_coordinate("reward", epsilon=0.0).residual(paid, again)
    sizes = 1.0 + finite(np.abs(paid))
    ended = np.array([a.terminated == b.terminated for a, b in zip(first, second, strict=True)])
    # Whole numbers have no rounding: any difference counts.
    limit = np.where(coordinates.epsilon > 0, allowed, 0.0)
    alike = ended & (gaps <= limit * scale).all(axis=1) & (rewards <= allowed * sizes).all(axis=1)
    apart = int((~alike).sum())
    return apart, {} if apart else {"transition": float(gaps.max()), "reward": float(rewards.max())}


def _not_repeating(
    stepper: Stepper, pool: Pool, states: list[Any], actions: list[Any], apart: float, rng: np.random.Generator
) -> Control:
    """What makes `apart` of the repetitions differ: setting does nothing, a leak, chance, or what a reset clears."""
    one, two = (int(seed) for seed in rng.integers(0, 2**30, size=2))
    if _without_effect(stepper, states, actions, one):
        return Control(
            "leaky",
            f"identity control failed: setting a state has no effect ({_accessed(stepper)}): from "
            "different states the same action and seed lead to the same outcome; no statement about the "
            "symmetry is possible",
        )
    forward = _seeded(stepper, states, actions, range(len(states)), one)
    if _unseeded(stepper, states, actions, forward, one, apart, rng):
        return _leaky(stepper)
    others = [_seeded(stepper, states, actions, range(len(states)), two + 1000 * k) for k in range(_rounds(apart))]
    # What follows must draw its own noise, not that of the control, and other noise for another seed of the run.
    stepper.reset(seed=int(rng.integers(0, 2**30)))
    if not any(_agreement(stepper, forward, other)[0] for other in others):
        stepper.reset_first = True
        return _resetting(reaching(stepper, pool, rng))
    return Control(
        "stochastic",
        "identity control: the same (s, a) gave different s', and the same with the same seed: the dynamics are random",
        reset_first=True,  # whatever an episode remembers is drawn anew, so that pairs are independent
        repeating=frozenset.intersection(*(_repeating(forward, other) for other in others)),
    )


def _rounds(apart: float) -> int:
    """How often repetitions are repeated: what differs now and then is looked for as long as it takes."""
    return int(np.clip(np.ceil(_EXPECTED / apart), 1, _EXPECTED))


def _unseeded(
    stepper: Stepper,
    states: list[Any],
    actions: list[Any],
    known: list[Step],
    seed: int,
    apart: float,
    rng: np.random.Generator,
) -> bool:
    """Whether steps differ from those known of the same seed, in an environment where `apart` of them usually do."""
    orders = (rng.permutation(len(states)) for _ in range(_rounds(apart)))
    return any(_agreement(stepper, known, _seeded(stepper, states, actions, order, seed))[0] for order in orders)


def _leaky(stepper: Stepper) -> Control:
    return Control(
        "leaky",
        "identity control failed: the same (s, a) gave different s', also with the same seed. Hidden state "
        "survives reset / set_state, or there is randomness that no seed reaches; no statement about the symmetry "
        f"is possible{_claimed(stepper)}",
    )


def _without_effect(stepper: Stepper, states: list[Any], actions: list[Any], seed: int) -> bool:
    """Whether different states lead to one outcome, for each of some actions: then they were never set."""
    distinct = {known.tobytes(): state for state in states if (known := numeric(state)) is not None}
    if len(distinct) < _TRIED:
        return False
    with global_generators():
        for k, action in enumerate(actions[:_ACTIONS]):  # each under a seed of its own: noise may hide the state
            outcomes = set()
            for state in list(distinct.values())[:_TRIED]:
                reset_all(stepper, seed + k)
                step = stepper.outcome(state, action)
                outcomes.add((step.flat.tobytes(), step.reward, step.terminated))
            if len(outcomes) > 1:
                return False
    return True


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
    with global_generators():
        for i in order:
            reset_all(stepper, seed + int(i))
            steps[int(i)] = stepper.outcome(states[int(i)], actions[int(i)])
    return [steps[i] for i in range(len(states))]


def reset_all(stepper: Stepper, seed: int) -> Any:
    """Reset under a seed that reaches every generator, and return the observation."""
    return reset_seeded(stepper.env, seed, lambda: stepper.reset(seed=seed))


@contextmanager
def global_generators() -> Iterator[None]:
    """Leave the process-wide generators as they were found."""
    numpy_state, python_state = np.random.get_state(), random.getstate()  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(numpy_state)  # noqa: NPY002
        random.setstate(python_state)
