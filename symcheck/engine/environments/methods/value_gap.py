"""What a broken symmetry can cost in value: epsilon_R, epsilon_T and the bound on the optimal value gap.

    |Q*(s, a) - Q*(g s, g a)| <= (epsilon_R + discount * epsilon_T * S) / (1 - discount)

Finite MDPs are solved instead, and the gap itself is given, beside epsilon_R and epsilon_T (a total variation). Where
pairs of single outcomes are compared, both epsilons are the largest that were seen, lower estimates of suprema, and the
number is an estimate that says so. Deterministic outcomes are point masses, whose total variation is 1 as soon as
anything differs; so epsilon_T is their Wasserstein-1 distance, with coordinates in units of their standard deviation,
and S says what a displacement by that much was seen to cost: two copies that far apart follow one sequence of actions,
and their discounted rewards are compared. That sequence shows no more than the difference of optimal values could be,
and a random one usually less. Rewards that differ where next states are those of a few states are added up along the
worst way through them. A pair that ends on one side only counts as total variation 1, and S is then the largest
span of returns that the rewards seen allow. Where dynamics are random, `distribution_gap` compares distributions. Whole
episodes of a black box say nothing about values at given (s, a): under the uniform policy even a broken symmetry may
leave the distribution of returns as it is.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from symcheck.array_types import Floats
from symcheck.engine.acceptance import accept_violation
from symcheck.engine.accumulated import accumulated_difference
from symcheck.engine.environments.cases.pairs import Measurement, Pairs
from symcheck.engine.environments.cases.workbench import Workbench
from symcheck.engine.environments.subject.placement import Word
from symcheck.engine.equations import BY_PART, STEP_PARTS, Part
from symcheck.engine.results import PropertyResult
from symcheck.engine.statistics import largest_fraction
from symcheck.spaces.coordinates import finite
from symcheck.statements.statement import Statement, state
from symcheck.verdict import Acceptance

_NEIGHBOURS = 96  # pairs of nearby states that are followed
_LONGEST = 60  # steps; at a discount of 0.9 later rewards weigh less than 0.2%
TOTAL_VARIATION = "total variation"
WASSERSTEIN = "Wasserstein-1, coordinates in standard deviations"


@dataclasses.dataclass(frozen=True)
class ValueGap:
    """A bound on the gap of optimal values between a pair (s, a) and its image.

    Attributes:
        value: in units of return.
        epsilon_reward: largest difference of (expected) rewards.
        epsilon_transition: largest distance of next-state distributions.
        distance: which distance that is.
        discount: of the returns.
        confidence: that at most `exceeding` of the pairs drawn as here exceed the epsilons; 1 where all are enumerated.
        exceeding: that fraction; 0 where all were enumerated.
        noise: where distributions were sampled, how much (epsilon_reward, epsilon_transition) would be if they were
            equal.
    """

    value: float
    epsilon_reward: float
    epsilon_transition: float
    distance: str
    discount: float
    confidence: float
    exceeding: float
    noise: tuple[float, float] | None = None

    def to_bound(self) -> dict[str, Any]:
        """As `PropertyResult.bound` holds it."""
        sampled = self.exceeding > 0
        return {
            "kind": "value_gap",
            "value": self.value,
            "epsilon_reward": self.epsilon_reward,
            "epsilon_transition": self.epsilon_transition,
            "transition_distance": self.distance,
            "discount": self.discount,
            "confidence": self.confidence if sampled else None,
            "estimate": "from lower estimates of suprema" if sampled else "exact",
            **({"exceeding_fraction": self.exceeding} if sampled else {}),
            **({} if self.noise is None else {"noise_reward": self.noise[0], "noise_transition": self.noise[1]}),
        }

    def note(self) -> Statement:
        """As a clause of a note."""
        fields = {name: getattr(self, name) for name in ("value", "discount", "epsilon_reward", "epsilon_transition")}
        noise = {} if self.noise is None else {"noise": list(self.noise)}
        return state("value_gap", **fields, **noise, distance=self.distance, sampled=self.exceeding > 0)


class EnumeratedPairs(Protocol):
    """The pairs (s, a) of a finite MDP and their images."""

    bench: Workbench

    def epsilons(self) -> tuple[float, float]:
        """(epsilon_R, epsilon_T)."""

    def iterate_cases(self) -> Iterator[tuple[Word, int, int, int, int]]:
        """(g, s, a, g s, g a) of every case."""


@dataclasses.dataclass(frozen=True)
class ComparedPairs:
    """Pairs of single outcomes, as a gap is estimated from them.

    Attributes:
        pairs: steps more of them.
        drawn: pairs drawn at random.
        measured: these and others.
        largest: the largest residual of a part, in units given by coordinate.
        checked: how many pairs the epsilons were seen on.
        alpha: of the run.
        discount: of the returns, in [0, 1).
        rng: picks neighbours.
    """

    pairs: Pairs
    drawn: Measurement
    measured: Measurement
    largest: Callable[[Part, Floats | float], float]
    checked: int
    alpha: float
    discount: float
    rng: np.random.Generator

    @property
    def span(self) -> float:
        """The largest span of returns that the rewards seen allow, 0 for ever among them.

        An episode that ends pays 0 for ever; that none ended among the samples does not say that none can.
        """
        rewards = finite(np.concatenate([self.measured.left.rewards, self.measured.right.rewards]))
        return float(np.ptp(np.append(rewards, 0.0))) / (1 - self.discount)


def with_value_gap(
    results: Sequence[PropertyResult], evidence: Any, *, discount: float, accept: float | None
) -> list[PropertyResult]:
    """The results, with what violated equations cost in value, and passed where the project accepts that much.

    Args:
        results: of the whole run.
        evidence: of the method; whole episodes know no epsilons.
        discount: of the returns, in [0, 1).
        accept: the largest accepted gap, in units of return; None accepts none.

    Returns:
        The same properties. Group law, observation and start are not about values: their verdicts stay.
    """
    verdicts = {result.name: result.verdict for result in results}
    parts = {BY_PART[part].name: str(part) for part in STEP_PARTS if BY_PART[part].name in verdicts}
    failed = {name: part for name, part in parts.items() if verdicts[name] == "failed"}
    # An undecided equation may be violated by any amount: no gap bounds what it costs.
    if not failed or any(verdicts[name] == "undecided" for name in parts):
        return list(results)
    measure = getattr(evidence, "value_gap", None)
    gap = None if measure is None else measure(set(failed.values()), discount)
    return [result if result.name not in failed else _with_gap(result, gap, accept) for result in results]


def _with_gap(result: PropertyResult, gap: ValueGap | None, accept: float | None) -> PropertyResult:
    if gap is not None:
        result = dataclasses.replace(result, bound=gap.to_bound())
    if accept is None:
        return result
    if gap is None:
        note = state("gap_unknown", method=result.method)
        return dataclasses.replace(result, notes=(*result.notes, note))
    accepted = state("gap_accepted", limit=accept, gap=gap.note())
    refused = state("gap_not_accepted", limit=accept, gap=gap.note())
    return accept_violation(result, Acceptance("accept_gap", gap.value, accept), accepted, refused)


def table_gap(evidence: EnumeratedPairs, discount: float) -> ValueGap:
    """The gap itself, for an enumerated MDP: its optimal values are known.

    Args:
        evidence: the table and the symmetry.
        discount: in [0, 1).

    Returns:
        The largest |Q*(s, a) - Q*(g s, g a)|, beside the epsilons.
    """
    from symcheck.mdp.solving import value_iteration  # loads scipy
    from symcheck.mdp.tabular import TabularMDP

    reward, transition = evidence.epsilons()
    optimal = value_iteration(TabularMDP.from_gymnasium(evidence.bench.pairs.stepper.env, discount=discount)).q_values
    rows = np.array([(state, action, image, moved) for _, state, action, image, moved in evidence.iterate_cases()])
    value = float(np.abs(optimal[rows[:, 0], rows[:, 1]] - optimal[rows[:, 2], rows[:, 3]]).max())
    return ValueGap(value, reward, transition, TOTAL_VARIATION, discount, 1.0, 0.0)


def paired_gap(compared: ComparedPairs, failed: set[str]) -> ValueGap:
    """The estimate from compared pairs.

    Args:
        compared: the pairs.
        failed: the parts that are violated; what holds contributes nothing.

    Returns:
        The estimate; at most the span of returns that the rewards seen allow.
    """
    from symcheck.mdp.bounds import value_gap_bound

    span, discount, alpha = compared.span, compared.discount, compared.alpha
    epsilon_reward = compared.largest("reward", 1.0) if "reward" in failed else 0.0
    epsilon, scale, distance = 0.0, 0.0, WASSERSTEIN
    # An end on one side only outweighs any displacement of next states.
    if "termination" in failed:
        epsilon, scale, distance = 1.0, span, TOTAL_VARIATION
    elif "transition" in failed:
        epsilon = _displacement(compared)
        scale = cost_of(compared, epsilon) / epsilon if 0 < epsilon < math.inf else math.inf
        if not math.isfinite(scale):
            epsilon, scale, distance = 1.0, span, TOTAL_VARIATION
    if not math.isfinite(epsilon_reward):  # NaN is paid on one side: no number bounds what that costs
        return ValueGap(math.inf, math.inf, epsilon, distance, discount, 1 - alpha, 0.0)
    lipschitz = None if distance == TOTAL_VARIATION else scale
    value = value_gap_bound(epsilon_reward, epsilon, discount, value_span=scale, lipschitz=lipschitz)
    if failed == {"reward"} and (along := _along_steps(compared)) is not None:
        value = min(value, along)
    exceeding = largest_fraction(0, compared.checked, alpha)
    return ValueGap(min(value, span), epsilon_reward, epsilon, distance, discount, 1 - alpha, exceeding)


def _along_steps(compared: ComparedPairs) -> float | None:
    """What the rewards' differences add up to along the worst way through the pairs; None if states are many."""
    measured, stepper = compared.measured, compared.pairs.stepper
    comparison = compared.pairs.comparison("reward", measured)
    return accumulated_difference(
        finite(stepper.codec.flatten_batch([case.situation.obs for case in measured.cases])),
        stepper.action_codec.flatten_batch([case.action for case in measured.cases]),
        finite(measured.left.flat),
        measured.left.terminated,
        finite(comparison.residual()[:, 0]),
        compared.discount,
    )


def _displacement(compared: ComparedPairs) -> float:
    """The largest distance between g T(s, a) and T(g s, g a), coordinates in units of their standard deviation."""
    comparison = compared.pairs.comparison("transition", compared.measured)
    spread = finite(comparison.actual).std(axis=0)
    return compared.largest("transition", spread)


def cost_of(compared: ComparedPairs, distance: float, *, seeded: bool = False) -> float:
    """Largest difference of discounted rewards of two copies that start this far apart and act alike; inf: unknown.

    Args:
        compared: the pairs.
        distance: in standard deviations of the states' coordinates.
        seeded: give both copies the same noise, by resetting with one seed first.

    Returns:
        In units of return.
    """
    pairs, rng, cases = compared.pairs, compared.rng, compared.drawn.cases
    states = [case.situation.state for case in cases]
    if not (isinstance(states[0], np.ndarray) and states[0].dtype.kind == "f"):
        return math.inf
    spread = np.stack(states).std(axis=0)
    worst = 0.0
    for row in rng.integers(len(cases), size=_NEIGHBOURS):
        start = np.asarray(states[int(row)])
        direction = rng.normal(size=start.shape)
        other = start + spread * direction * (distance / np.linalg.norm(direction))
        actions = [pairs.stepper.env.action_space.sample() for _ in range(_LONGEST)]
        try:
            seed = int(rng.integers(2**30)) if seeded else None
            copies = [held.astype(start.dtype) for held in (start, other)]
            returns = [_follow(compared, held, actions, seed) for held in copies]
        except Exception:  # a neighbour need not be a state
            continue
        worst = max(worst, abs(returns[1] - returns[0]))
    return worst


def _follow(compared: ComparedPairs, start: Floats, actions: Sequence[Any], seed: int | None) -> float:
    """The discounted rewards of a sequence of actions from a state."""
    stepper = compared.pairs.stepper
    if seed is not None:
        stepper.reset(seed=seed)
    stepper.poke(start)
    total, weight = 0.0, 1.0
    for action in actions:
        step = stepper.step(action)
        total += weight * float(finite(np.array(step.reward)))
        weight *= compared.discount
        if step.terminated or step.truncated:
            break
    return total
