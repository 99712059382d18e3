"""The determinism check: repeats steps before any statement about a symmetry.

The same (s, a) is set and stepped twice, with other states in between. If the outcomes differ, either the environment
is random, or some state is not restored by setting; seeding distinguishes the two. The set-versus-reached check is part
of it. If set states behave differently from states that rollouts reach, and the outcome changes after another reset,
some quantity is sampled at the start of an episode and kept. The pair (s, a) then has a distribution of outcomes.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from symcheck.array_types import Floats
from symcheck.engine.environments.cases.pool import Pool, Visit
from symcheck.engine.environments.controls.set_vs_reached import SetVersusReached, compare_set_with_reached
from symcheck.engine.equations import STEP_PARTS, Part
from symcheck.envs.state_access.generators import global_generators
from symcheck.envs.stepping.same_seed import reset_all
from symcheck.envs.stepping.step_differences import FAR_ABOVE, Loss, compare_steps, measure_loss
from symcheck.envs.stepping.stepper import Step, Stepper
from symcheck.spaces.coordinates import finite
from symcheck.spaces.values import numeric
from symcheck.statements.statement import Statement, state
from symcheck.verdict import ReasonCode

Behaviour = Literal["deterministic", "stochastic", "leaky"]
_REPEATED = 60
_ENDS = 6  # number of terminating steps taken before the repetitions
# Numbers of distinct states, and of actions, on which setting must have an effect. A sensor that drops out under three
# of ten seeds, for any state, hides all twelve states with probability 1 in two million.
_TRIED, _ACTIONS = 6, 12
# Number of seeded repetitions. If seeds had no effect, all would agree with probability e^-8, even if differences are
# four times rarer than observed.
_EXPECTED = 4 * 8
_MORE = 12  # number of rounds: an event in 1% of the steps is missed with probability 0.1%
_MOST = 0.75  # smallest fraction of repeating pairs; the others are repeated without success
_LEAKS = 4  # number of repetitions for measuring the surviving state
# Fractions of a spread: with a loss above the first, no violation can be shown; with a loss below the second, a pass is
# valid.
_MOST_LOST, _NEGLIGIBLE = 1e-2, 1e-6
# tolerance for iterative solvers, which stop early; larger differences are not rounding
_NOISE_FLOAT64, _NOISE_FLOAT32 = 1e-9, 1e-5


@dataclass(frozen=True)
class DeterminismCheck:
    """The result of the check.

    Attributes:
        behaviour: "deterministic", "stochastic" (random, given the state) or "leaky" (setting does not restore all
            state).
        finding: the behaviour as a statement; for a leaky environment, the reason why nothing is decided.
        caution: why a pass would not be trusted although steps repeat; None if there is no reason.
        noise: the difference that repeated steps may show, per part: rounding, or the small loss of setting.
        reset_first: whether the environment repeats only if it is reset before each state is set.
        repeating: parts that repeated although the dynamics are random.
        mostly: parts that repeated in most of the pairs, including `repeating`.
        loss: the difference between steps from states reached and states set, if that is the caution.
        touched: the parts that the caution affects.
    """

    behaviour: Behaviour
    finding: Statement
    caution: Statement | None = None
    noise: dict[Part, Floats] = field(default_factory=dict)
    reset_first: bool = False
    repeating: frozenset[Part] = frozenset()
    mostly: frozenset[Part] = frozenset()
    loss: Loss | None = None
    touched: frozenset[Part] = frozenset(STEP_PARTS)


def check_determinism(stepper: Stepper, pool: Pool, rng: np.random.Generator) -> DeterminismCheck:
    """Repeat steps, and compare set states with reached ones.

    Args:
        stepper: the environment, with state access.
        pool: states to test; its visits come from rollouts.
        rng: selects states and orders.

    Returns:
        The result. Only the environment's own state is changed.
    """
    picked = rng.integers(0, len(pool.situations), size=_REPEATED)
    states = [pool.situations[i].state for i in picked]
    actions = [stepper.env.action_space.sample() for _ in states]
    first = _step_in_order(stepper, states, actions, range(len(states)))
    for visit in _draw_last_steps(pool, rng):  # the environment may behave differently after an episode has ended
        stepper.outcome(visit.situation.state, visit.action)
    second = _step_in_order(stepper, states, actions, rng.permutation(len(states)))
    apart, noise = _compare_steps(stepper, first, second)
    if apart:
        return _explain_differences(stepper, pool, states, actions, apart, rng)
    reached = compare_set_with_reached(stepper, pool, rng)
    if reached.caution is not None:
        # Randomness that is too rare for two rounds would look like hidden state in comparisons of more steps.
        orders = (rng.permutation(len(states)) for _ in range(_MORE))
        apart = sum(_compare_steps(stepper, first, _step_in_order(stepper, states, actions, at))[0] for at in orders)
        if apart:
            return _explain_differences(stepper, pool, states, actions, apart / _MORE, rng)
        if episodes_differ := _check_between_resets(stepper, states, actions, reached.caution, rng):
            return episodes_differ
        if cleared := _check_after_resets(stepper, pool, rng):
            return replace(cleared, noise=noise)
    finding = state(
        "control_repeats", pairs=len(states), after_refusal=stepper.reset_first, remarks=list(reached.remarks)
    )
    check = DeterminismCheck("deterministic", finding, reached.caution, noise, reset_first=stepper.reset_first)
    return replace(check, loss=reached.loss, touched=reached.touched)


def _draw_last_steps(pool: Pool, rng: np.random.Generator) -> list[Visit]:
    """A sample of steps that ended an episode."""
    return [pool.ends[i] for i in rng.permutation(len(pool.ends))[:_ENDS]]


def _check_after_resets(stepper: Stepper, pool: Pool, rng: np.random.Generator) -> DeterminismCheck | None:
    """The check with a reset before each state, to clear traces of earlier steps (an "episode over" flag)."""
    if stepper.reset_first:
        return None
    with stepper.resetting_first():
        reached = compare_set_with_reached(stepper, pool, rng)
    return None if reached.caution is not None else _repeats_after_resets(reached)


def _repeats_after_resets(reached: SetVersusReached) -> DeterminismCheck:
    """The result for an environment that repeats if it is reset before each state."""
    finding = state("control_resets", remarks=list(reached.remarks))
    check = DeterminismCheck("deterministic", finding, reached.caution, reset_first=True)
    return replace(check, loss=reached.loss, touched=reached.touched)


def _check_between_resets(
    stepper: Stepper, states: list[Any], actions: list[Any], caution: Statement, rng: np.random.Generator
) -> DeterminismCheck | None:
    """The result if steps repeat only until the next reset, which samples something that states do not hold."""
    first_seed, second_seed = (int(seed) for seed in rng.integers(0, 2**30, size=2))
    after = [_step_seeded(stepper, states, actions, range(len(states)), seed) for seed in (first_seed, second_seed)]
    # Later draws must not repeat those of the check.
    stepper.reset(seed=int(rng.integers(0, 2**30)))
    apart = _compare_steps(stepper, *after)[0]
    if not apart:
        return None
    if _ignores_seeds(stepper, states, actions, after[0], first_seed, apart, rng):
        return _hidden_state_survives(stepper, states, actions, after[0], first_seed, rng)
    # All steps of an episode share one draw: only a reset before each state makes pairs independent.
    finding, repeating = state("control_random_until_reset"), _repeating_parts(*after)
    return DeterminismCheck("stochastic", finding, caution, reset_first=True, repeating=repeating)


def _step_in_order(stepper: Stepper, states: list[Any], actions: list[Any], order: Any) -> list[Step]:
    steps: dict[int, Step] = {}
    for i in order:
        steps[int(i)] = stepper.outcome(states[int(i)], actions[int(i)])
    return [steps[i] for i in range(len(states))]


def _compare_steps(stepper: Stepper, first: list[Step], second: list[Step]) -> tuple[int, dict[Part, Floats]]:
    """The number of steps that differ beyond rounding, and the largest differences if none does."""
    coordinates = stepper.codec.coordinates
    compared = compare_steps(coordinates, first, second)
    # A single float32 coordinate means that the state was converted to float32.
    single = bool((coordinates.epsilon > 1e-10).any())
    allowed = _NOISE_FLOAT32 if single else _NOISE_FLOAT64
    # Integers have no rounding: any difference counts.
    limit = np.append(np.where(coordinates.epsilon > 0, allowed, 0.0), allowed)
    alike = ~compared.ends & (compared.residual <= limit * (1.0 + finite(np.abs(compared.first)))).all(axis=1)
    apart = int((~alike).sum())
    largest = compared.residual.max(axis=0)
    # One number for all coordinates, because a solver stops for all of them together.
    return apart, {} if apart else {"transition": largest[:-1].max(keepdims=True), "reward": largest[-1:]}


def _explain_differences(
    stepper: Stepper, pool: Pool, states: list[Any], actions: list[Any], apart: float, rng: np.random.Generator
) -> DeterminismCheck:
    """Why `apart` repetitions differ: setting has no effect, a leak, randomness, or state that a reset clears."""
    first_seed, second_seed = (int(seed) for seed in rng.integers(0, 2**30, size=2))
    if _setting_has_no_effect(stepper, states, actions, first_seed):
        access = None if stepper.access is None else stepper.access.source
        return DeterminismCheck("leaky", state(ReasonCode.SETTING_HAS_NO_EFFECT.value, access=access))
    forward = _step_seeded(stepper, states, actions, range(len(states)), first_seed)
    if _ignores_seeds(stepper, states, actions, forward, first_seed, apart, rng):
        return _hidden_state_survives(stepper, states, actions, forward, first_seed, rng)
    seeds = [second_seed + 1000 * k for k in range(_count_rounds(apart))]
    others = [_step_seeded(stepper, states, actions, range(len(states)), seed) for seed in seeds]
    # Later steps must draw new noise, not that of the check, and different noise for a different seed of the run.
    stepper.reset(seed=int(rng.integers(0, 2**30)))
    if not any(_compare_steps(stepper, forward, other)[0] for other in others):
        with stepper.resetting_first():
            return _repeats_after_resets(compare_set_with_reached(stepper, pool, rng))
    repeating, mostly = (
        frozenset.intersection(*(_repeating_parts(forward, other, share=least) for other in others))
        for least in (1.0, _MOST)
    )
    # A reset before each state redraws quantities fixed within an episode, so that pairs are independent.
    finding = state("control_random")
    return DeterminismCheck("stochastic", finding, reset_first=True, repeating=repeating, mostly=mostly)


def _count_rounds(apart: float) -> int:
    """The number of rounds of repetitions: the search for rare differences continues while time allows."""
    return int(np.clip(np.ceil(_EXPECTED / apart), 1, _EXPECTED))


def _ignores_seeds(
    stepper: Stepper,
    states: list[Any],
    actions: list[Any],
    known: list[Step],
    seed: int,
    apart: float,
    rng: np.random.Generator,
) -> bool:
    """Whether steps differ from known steps with the same seed; without seeds, the fraction `apart` differs."""
    orders = (rng.permutation(len(states)) for _ in range(_count_rounds(apart)))
    return any(_compare_steps(stepper, known, _step_seeded(stepper, states, actions, at, seed))[0] for at in orders)


def _hidden_state_survives(
    stepper: Stepper, states: list[Any], actions: list[Any], known: list[Step], seed: int, rng: np.random.Generator
) -> DeterminismCheck:
    """The result if setting loses state that no seed restores; a small loss is tolerated and reported."""
    orders = (rng.permutation(len(states)) for _ in range(_LEAKS))
    others = [_step_seeded(stepper, states, actions, at, seed) for at in orders]
    loss = measure_loss(
        stepper.codec.coordinates, [compare_steps(stepper.codec.coordinates, known, other) for other in others]
    )
    spec = getattr(stepper.env, "spec", None)
    registered = spec is not None and getattr(spec, "nondeterministic", None) is False
    leak = state(ReasonCode.HIDDEN_STATE_SURVIVES.value, registered_deterministic=registered, **loss.fields())
    if loss.ends or loss.share.max() > _MOST_LOST:
        return DeterminismCheck("leaky", leak)
    reset_all(stepper, int(rng.integers(0, 2**30)))
    dim = stepper.codec.coordinates.dim
    noise: dict[Part, Floats] = {
        "transition": FAR_ABOVE * loss.of("transition", dim),
        "reward": FAR_ABOVE * loss.of("reward", 1),
    }
    share, fields = float(loss.share.max()), loss.fields()
    finding = state("control_repeats_nearly", pairs=len(states), share=share, times=FAR_ABOVE, **fields)
    return DeterminismCheck("deterministic", finding, leak if share > _NEGLIGIBLE else None, noise)


def _setting_has_no_effect(stepper: Stepper, states: list[Any], actions: list[Any], seed: int) -> bool:
    """Whether different states give the same outcome for each tested action, so that they were never set."""
    distinct = {known.tobytes(): held for held in states if (known := numeric(held)) is not None}
    # With too few distinct states, the effect of setting cannot be tested.
    if len(distinct) < _TRIED:
        return False
    with global_generators():
        for k, action in enumerate(actions[:_ACTIONS]):  # each under a separate seed, because noise may hide the state
            outcomes = set()
            for held in list(distinct.values())[:_TRIED]:
                reset_all(stepper, seed + k)
                step = stepper.outcome(held, action)
                outcomes.add((step.flat.tobytes(), step.reward, step.terminated))
            if len(outcomes) > 1:
                return False
    return True


def _repeating_parts(first: list[Step], second: list[Step], *, share: float = 1.0) -> frozenset[Part]:
    """The parts that agree exactly under two seeds, in at least the given share of the pairs."""
    pairs = list(zip(first, second, strict=True))
    alike: dict[Part, list[bool]] = {
        "reward": [a.reward == b.reward or (np.isnan(a.reward) and np.isnan(b.reward)) for a, b in pairs],
        "termination": [a.terminated == b.terminated for a, b in pairs],
        "transition": [np.array_equal(a.flat, b.flat, equal_nan=True) for a, b in pairs],
    }
    return frozenset(part for part, agree in alike.items() if np.mean(agree) >= share)


def _step_seeded(stepper: Stepper, states: list[Any], actions: list[Any], order: Any, seed: int) -> list[Step]:
    steps: dict[int, Step] = {}
    with global_generators():
        for i in order:
            reset_all(stepper, seed + int(i))
            steps[int(i)] = stepper.outcome(states[int(i)], actions[int(i)])
    return [steps[i] for i in range(len(states))]
