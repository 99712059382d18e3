"""The value gap of a broken symmetry: epsilon_R, epsilon_T and the bound on the gap of optimal values.

    |Q*(s, a) - Q*(g s, g a)| <= (epsilon_R + discount * epsilon_T * S) / (1 - discount)

Finite MDPs are solved, and the gap itself is reported next to epsilon_R and epsilon_T (a total variation). If pairs of
single outcomes are compared, both epsilons are the largest observed values. The suprema may be larger, so the result is
labelled as an estimate. Deterministic outcomes are point masses, whose total variation is 1 as soon as anything
differs. Therefore epsilon_T is their Wasserstein-1 distance, with coordinates in units of their standard deviation, and
S is the observed cost of a displacement of that size: two copies at that distance follow the same action sequence, and
their discounted rewards are compared. That cost is a lower estimate of the difference of optimal values. If rewards
differ and few states recur, the differences are accumulated along the worst path through them. A pair that terminates
on one side only counts as total variation 1, and S is then the largest span of returns possible with the observed
rewards. For random dynamics, `distribution_gap` compares distributions. Whole episodes of a black box carry no
information about values at given (s, a): under the uniform policy even a broken symmetry may leave the distribution of
returns unchanged.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symcheck.array_types import Floats
from symcheck.engine.acceptance import accept_violation
from symcheck.engine.accumulated import accumulated_difference
from symcheck.engine.environments.cases.pairs import Measurement, Pairs
from symcheck.engine.equations import BY_PART, STEP_PARTS, Part
from symcheck.engine.results import PropertyResult
from symcheck.engine.statistics import largest_fraction
from symcheck.spaces.coordinates import finite
from symcheck.statements.statement import Statement, state
from symcheck.verdict import Acceptance

_NEIGHBOURS = 96  # number of pairs of nearby states that are followed
_LONGEST = 60  # number of steps; at a discount of 0.9, later rewards have a weight below 0.2%
TOTAL_VARIATION = "total variation"
WASSERSTEIN = "Wasserstein-1, coordinates in standard deviations"


@dataclasses.dataclass(frozen=True)
class ValueGap:
    """A bound on the gap of optimal values between a pair (s, a) and its image.

    Attributes:
        value: the value in units of return.
        epsilon_reward: largest difference of (expected) rewards.
        epsilon_transition: largest distance of next-state distributions.
        distance: the kind of distance.
        discount: the discount of the returns.
        confidence: confidence that at most the fraction `exceeding` of such pairs exceed the epsilons; 1 if all are
            enumerated.
        exceeding: that fraction; 0 if all were enumerated.
        noise: the values that sampling error would give (epsilon_reward, epsilon_transition) if the distributions were
            equal; only if distributions were sampled.
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
        """The gap in the form of `PropertyResult.bound`."""
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
        """The gap as a clause of a note."""
        fields = {name: getattr(self, name) for name in ("value", "discount", "epsilon_reward", "epsilon_transition")}
        noise = {} if self.noise is None else {"noise": list(self.noise)}
        return state("value_gap", **fields, **noise, distance=self.distance, sampled=self.exceeding > 0)


@dataclasses.dataclass(frozen=True)
class ComparedPairs:
    """Pairs of single outcomes, from which a gap is estimated.

    Attributes:
        pairs: builds and steps more of them.
        drawn: pairs drawn at random.
        measured: these and other pairs.
        largest: the largest residual of a part, in units given by coordinate.
        checked: the number of pairs behind the epsilons.
        alpha: the alpha of the run.
        discount: the discount of the returns, in [0, 1).
        rng: selects neighbours.
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
        """The largest span of returns possible with the observed rewards, including a reward of 0 forever.

        After an episode ends, every reward is 0. Episodes may end even if none of the samples did.
        """
        rewards = finite(np.concatenate([self.measured.left.rewards, self.measured.right.rewards]))
        return float(np.ptp(np.append(rewards, 0.0))) / (1 - self.discount)


def with_value_gap(
    results: Sequence[PropertyResult], evidence: Any, *, discount: float, accept: float | None
) -> list[PropertyResult]:
    """The results with the value gap of violated equations; passed if the project accepts a gap of that size.

    Args:
        results: the results of the whole run.
        evidence: the evidence of the method; whole episodes have no epsilons.
        discount: the discount of the returns, in [0, 1).
        accept: the largest accepted gap, in units of return; None accepts none.

    Returns:
        The same properties. Group law, observation and start do not concern values, so their verdicts are unchanged.
    """
    verdicts = {result.name: result.verdict for result in results}
    parts = {BY_PART[part].name: str(part) for part in STEP_PARTS if BY_PART[part].name in verdicts}
    failed = {name: part for name, part in parts.items() if verdicts[name] == "failed"}
    # An undecided equation may be violated by any amount, so no gap bounds the loss.
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


def table_gap(env: Any, epsilons: tuple[float, float], cases: Sequence[Sequence[int]], discount: float) -> ValueGap:
    """The gap itself, for an enumerated MDP, whose optimal values can be computed.

    Args:
        env: the environment, with its table.
        epsilons: (epsilon_R, epsilon_T).
        cases: (s, a, g s, g a) of every case.
        discount: in [0, 1).

    Returns:
        The largest |Q*(s, a) - Q*(g s, g a)|, with the epsilons.
    """
    from symcheck.mdp.solving import value_iteration  # loads scipy
    from symcheck.mdp.tabular import TabularMDP

    optimal = value_iteration(TabularMDP.from_gymnasium(env, discount=discount)).q_values
    states, actions, images, moved = np.array(cases).T
    value = float(np.abs(optimal[states, actions] - optimal[images, moved]).max())
    return ValueGap(value, *epsilons, TOTAL_VARIATION, discount, 1.0, 0.0)


def paired_gap(compared: ComparedPairs, failed: set[str]) -> ValueGap:
    """The estimate from compared pairs.

    Args:
        compared: the pairs.
        failed: the violated parts; the others contribute nothing.

    Returns:
        The estimate; at most the span of returns possible with the observed rewards.
    """
    from symcheck.mdp.bounds import value_gap_bound

    span, discount, alpha = compared.span, compared.discount, compared.alpha
    epsilon_reward = compared.largest("reward", 1.0) if "reward" in failed else 0.0
    epsilon, scale, distance = 0.0, 0.0, WASSERSTEIN
    # A termination on one side only outweighs any displacement of next states.
    if "termination" in failed:
        epsilon, scale, distance = 1.0, span, TOTAL_VARIATION
    elif "transition" in failed:
        epsilon = _displacement(compared)
        scale = cost_of(compared, epsilon) / epsilon if 0 < epsilon < math.inf else math.inf
        if not math.isfinite(scale):
            epsilon, scale, distance = 1.0, span, TOTAL_VARIATION
    if not math.isfinite(epsilon_reward):  # the reward is NaN on one side, so the loss is unbounded
        return ValueGap(math.inf, math.inf, epsilon, distance, discount, 1 - alpha, 0.0)
    lipschitz = None if distance == TOTAL_VARIATION else scale
    value = value_gap_bound(epsilon_reward, epsilon, discount, value_span=scale, lipschitz=lipschitz)
    if failed == {"reward"} and (along := _along_steps(compared)) is not None:
        value = min(value, along)
    exceeding = largest_fraction(0, compared.checked, alpha)
    return ValueGap(min(value, span), epsilon_reward, epsilon, distance, discount, 1 - alpha, exceeding)


def _along_steps(compared: ComparedPairs) -> float | None:
    """The reward differences accumulated along the worst path through the pairs; None if there are many states."""
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
    """Largest difference of discounted rewards of two copies at this distance with equal actions; inf if unknown.

    Args:
        compared: the pairs.
        distance: the distance in standard deviations of the states' coordinates.
        seeded: whether both copies get the same noise, by a reset with the same seed.

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
        except Exception:  # a neighbouring vector need not be a state
            continue
        worst = max(worst, abs(returns[1] - returns[0]))
    return worst


def _follow(compared: ComparedPairs, start: Floats, actions: Sequence[Any], seed: int | None) -> float:
    """The discounted return of an action sequence from a state."""
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
