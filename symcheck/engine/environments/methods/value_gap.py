"""What a broken symmetry can cost in value: epsilon_R, epsilon_T and the bound on the optimal value gap.

    |Q*(s, a) - Q*(g s, g a)| <= (epsilon_R + discount * epsilon_T * S) / (1 - discount)

Finite MDPs are solved instead, and the gap itself is given, beside epsilon_R and epsilon_T (a total variation). Where
pairs of single outcomes are compared, both epsilons are the largest that were seen, lower estimates of suprema, and the
number is an estimate that says so. Deterministic outcomes are point masses, whose total variation is 1 as soon as
anything differs; so epsilon_T is their Wasserstein-1 distance, with coordinates in units of their standard deviation,
and S says what a displacement by that much was seen to cost: two copies that far apart follow one sequence of actions,
and their discounted rewards are compared. That sequence shows no more than the difference of optimal values could be,
and a random one usually less. A pair that ends on one side only counts as total variation 1, and S is then the largest
span of returns that the rewards seen allow. Where dynamics are random, `law_gap` compares laws. Whole episodes of a
black box say nothing about values at given (s, a): under the uniform policy even a broken symmetry may leave the law of
returns as it is.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from symcheck.engine.environments.cases.pairs import Measurement, Part
from symcheck.engine.environments.subject.coordinates import Vector, finite
from symcheck.engine.results import PropertyResult
from symcheck.engine.statistics import largest_fraction

if TYPE_CHECKING:
    from symcheck.engine.environments.methods.exact import TabularEvidence
    from symcheck.engine.environments.methods.paired import PairedEvidence

EQUATIONS = ("reward_invariance", "transition_invariance", "termination_invariance")
_NEIGHBOURS = 24  # pairs of nearby states that are followed
_NOT_NOW = "What it costs in value was not estimated"
_NO_GAP = {
    "trajectory": "What it costs in value cannot be told from whole episodes (values belong to states that are set)"
}
_LONGEST = 60  # steps; at a discount of 0.9 later rewards weigh less than 0.2%
TOTAL_VARIATION = "total variation"
WASSERSTEIN = "Wasserstein-1, coordinates in standard deviations"


@dataclasses.dataclass(frozen=True)
class ValueGap:
    """A bound on the gap of optimal values between a pair (s, a) and its image.

    Attributes:
        value: in units of return.
        epsilon_reward: largest difference of (expected) rewards.
        epsilon_transition: largest distance of next-state laws.
        distance: which distance that is.
        discount: of the returns.
        confidence: that at most `exceeding` of the pairs drawn as here exceed the epsilons; 1 where all are enumerated.
        exceeding: that fraction; 0 where all were enumerated.
        noise: where laws were sampled, how much (epsilon_reward, epsilon_transition) would be if the laws were equal.
    """

    value: float
    epsilon_reward: float
    epsilon_transition: float
    distance: str
    discount: float
    confidence: float
    exceeding: float
    noise: tuple[float, float] | None = None

    def bound(self) -> dict[str, Any]:
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

    def said(self) -> str:
        """As a clause."""
        sampled = "; both are the largest that were seen, lower estimates of suprema" if self.exceeding > 0 else ""
        if self.noise is not None:
            sampled += f", of samples: equal laws would show {self.noise[0]:.2g} and {self.noise[1]:.2g}"
        return (
            f"the optimal values of a pair and its image differ by at most {self.value:.3g} at discount "
            f"{self.discount:g} (epsilon_R {self.epsilon_reward:.2g}, epsilon_T {self.epsilon_transition:.2g} in "
            f"{self.distance}{sampled})"
        )


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
    equations = {one.name: one.verdict for one in results if one.name in EQUATIONS}
    failed = [name for name, verdict in equations.items() if verdict == "failed"]
    if not failed or "undecided" in equations.values():
        return list(results)
    measure = getattr(evidence, "value_gap", None)
    gap = None if measure is None else measure({name.removesuffix("_invariance") for name in failed}, discount)
    return [one if one.name not in failed else _judged(one, gap, accept) for one in results]


def _judged(result: PropertyResult, gap: ValueGap | None, accept: float | None) -> PropertyResult:
    if gap is None:
        why = f"{_NO_GAP.get(result.method, _NOT_NOW)}, so --accept-gap does not apply."
        return (
            result
            if accept is None
            else dataclasses.replace(
                result,
                notes=(
                    *result.notes,
                    f"{why}",
                ),
            )
        )
    if accept is None:
        return dataclasses.replace(result, bound=gap.bound())
    if not gap.value <= accept:
        text = f"The value gap exceeds the {accept:g} of --accept-gap: {gap.said()}. {result.detail}"
        return dataclasses.replace(result, bound=gap.bound(), notes=(text,))
    text = f"approximate: within the {accept:g} of --accept-gap, {gap.said()}. {result.detail}"
    return dataclasses.replace(result, verdict="passed", bound=gap.bound(), notes=(text,))


def table_gap(evidence: TabularEvidence, discount: float) -> ValueGap:
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
    pairs = np.array([(state, action, image, moved) for _, state, action, image, moved in evidence.imaged()])
    value = float(np.abs(optimal[pairs[:, 0], pairs[:, 1]] - optimal[pairs[:, 2], pairs[:, 3]]).max())
    return ValueGap(value, reward, transition, TOTAL_VARIATION, discount, 1.0, 0.0)


def paired_gap(evidence: PairedEvidence, failed: set[str], discount: float) -> ValueGap:
    """The estimate from compared pairs.

    Args:
        evidence: the pairs.
        failed: the parts that are violated; what holds contributes nothing.
        discount: in [0, 1).

    Returns:
        The estimate; at most the span of returns that the rewards seen allow.
    """
    from symcheck.mdp.bounds import value_gap_bound

    measured = evidence.measured
    span = span_of(measured, discount)
    epsilon_reward = evidence.largest("reward") if "reward" in failed else 0.0
    epsilon, scale, distance = 0.0, 0.0, WASSERSTEIN
    if "termination" in failed:
        epsilon, scale, distance = 1.0, span, TOTAL_VARIATION
    elif "transition" in failed:
        epsilon = _displacement(evidence)
        scale = cost_of(evidence, epsilon, discount) / epsilon if 0 < epsilon < math.inf else math.inf
        if not math.isfinite(scale):
            epsilon, scale, distance = 1.0, span, TOTAL_VARIATION
    if not math.isfinite(epsilon_reward):  # NaN is paid on one side: no number bounds what that costs
        return ValueGap(math.inf, math.inf, epsilon, distance, discount, 1 - evidence.bench.options.alpha, 0.0)
    lipschitz = None if distance == TOTAL_VARIATION else scale
    value = value_gap_bound(epsilon_reward, epsilon, discount, value_span=scale, lipschitz=lipschitz)
    alpha = evidence.bench.options.alpha
    exceeding = largest_fraction(0, evidence.checked, alpha)
    return ValueGap(min(value, span), epsilon_reward, epsilon, distance, discount, 1 - alpha, exceeding)


def span_of(measured: Measurement, discount: float) -> float:
    """The largest span of returns that the rewards seen allow, 0 for ever among them.

    An episode that ends pays 0 for ever; that none ended among the samples does not say that none can.
    """
    rewards = finite(np.concatenate([measured.left.rewards, measured.right.rewards]))
    return float(np.ptp(np.append(rewards, 0.0))) / (1 - discount)


def _displacement(evidence: PairedEvidence) -> float:
    """The largest distance between g T(s, a) and T(g s, g a), coordinates in units of their standard deviation."""
    part: Part = "transition"
    comparison = evidence.pairs.comparison(part, evidence.measured)
    spread = finite(comparison.actual).std(axis=0)
    scaled = comparison.residual() / np.where(spread > 0, spread, 1.0)
    return max(float(scaled.max()), evidence.largest(part, spread))


def cost_of(evidence: PairedEvidence, distance: float, discount: float, *, seeded: bool = False) -> float:
    """Largest difference of discounted rewards of two copies that start this far apart and act alike; inf: unknown.

    Args:
        evidence: the pairs.
        distance: in standard deviations of the states' coordinates.
        discount: in [0, 1).
        seeded: give both copies the same noise, by resetting with one seed first.

    Returns:
        In units of return.
    """
    pairs, rng = evidence.pairs, evidence.bench.rng("value gap")
    cases = evidence.drawn.cases
    states = [case.situation.state for case in cases]
    if not all(isinstance(state, np.ndarray) and state.dtype.kind == "f" for state in states[:1]):
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
            ends = [state.astype(start.dtype) for state in (start, other)]
            returns = [_followed(evidence, state, actions, discount, seed) for state in ends]
        except Exception:  # a neighbour need not be a state
            continue
        worst = max(worst, abs(returns[1] - returns[0]))
    return worst


def _followed(
    evidence: PairedEvidence, state: Vector, actions: Sequence[Any], discount: float, seed: int | None
) -> float:
    stepper = evidence.pairs.stepper
    if seed is not None:
        stepper.reset(seed=seed)
    stepper.poke(state)
    total, weight = 0.0, 1.0
    for action in actions:
        step = stepper.step(action)
        total += weight * float(finite(np.array(step.reward)))
        weight *= discount
        if step.terminated or step.truncated:
            break
    return total
