"""Costs of violated equations by themselves: which epsilons count, accumulated differences, neighbours that drift."""

from __future__ import annotations

import dataclasses
import math
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from symcheck.engine.environments.cases.pairs import Comparison
from symcheck.engine.environments.methods import value_gap
from symcheck.engine.environments.methods.value_gap import (
    TOTAL_VARIATION,
    WASSERSTEIN,
    ComparedPairs,
    ValueGap,
    cost_of,
    paired_gap,
    table_gap,
    with_value_gap,
)
from symcheck.engine.results import PropertyResult
from symcheck.engine.statistics import largest_fraction
from symcheck.spaces.coordinates import Coordinates

RNG = np.random.default_rng
DISCOUNT = 0.5


def coordinates(dim: int) -> Coordinates:
    ones = np.ones(dim)
    return Coordinates(tuple(f"x[{j}]" for j in range(dim)), ones * 2.0**-53, 0 * ones, -np.inf * ones, np.inf * ones)


def column(values: Any) -> Any:
    return np.asarray(values, float).reshape(-1, 1)


class Chain:
    """Pairs on the chain 3 -> 2 -> 1 -> end; action 1 goes on, action 0 stays. Rewards of action 1 differ by 0.1."""

    def __init__(self, **changes: Any) -> None:
        self.states = [3, 2, 1, 3, 2, 1]
        self.actions = [1, 1, 1, 0, 0, 0]
        self.following = [2, 1, 0, 3, 2, 1]
        self.ended = [False, False, True, False, False, False]
        self.rewards = [1.0, 1.0, 1.0, 0.0, 0.0, 0.0]
        self.others = [1.1, 0.9, 1.1, 0.0, 0.0, 0.0]
        for name, value in changes.items():
            setattr(self, name, value)

    def compared(self, largest: Any = None, **changes: Any) -> ComparedPairs:
        cases = [
            SimpleNamespace(situation=SimpleNamespace(obs=s, state=np.array([float(s)])), action=a)
            for s, a in zip(self.states, self.actions, strict=True)
        ]
        left = SimpleNamespace(
            flat=column(self.following), terminated=np.array(self.ended), rewards=np.array(self.rewards)
        )
        measured = SimpleNamespace(cases=cases, left=left, right=SimpleNamespace(rewards=np.array(self.others)))
        sides = {
            "reward": (column(self.rewards), column(self.others)),
            "transition": (column(self.following) + 0.3, column(self.following)),
        }

        def comparison(part: Any, given: Any) -> Comparison:
            assert given is measured
            return Comparison(part, coordinates(1), *sides[part])

        codec = SimpleNamespace(flatten_batch=column)
        stepper = SimpleNamespace(codec=codec, action_codec=SimpleNamespace(flatten_batch=column))
        pairs: Any = SimpleNamespace(stepper=stepper, comparison=comparison)
        sizes = {"reward": 0.1, "transition": 0.3}
        fields: dict[str, Any] = {
            "pairs": pairs,
            "drawn": measured,
            "measured": measured,
            "largest": largest or (lambda part, unit: float(np.max(sizes[part] / np.asarray(unit)))),
            "checked": 1000,
            "alpha": 0.01,
            "discount": DISCOUNT,
            "rng": RNG(0),
        }
        return ComparedPairs(**{**fields, **changes})


def test_differences_of_rewards_are_summed_along_the_worst_path() -> None:
    # Going on pays a tenth more or less in each of three states, and staying first only delays it.
    gap = paired_gap(Chain().compared(), {"reward"})
    assert gap.value == pytest.approx(0.1 * (1 + DISCOUNT + DISCOUNT**2))
    assert (gap.epsilon_reward, gap.epsilon_transition, gap.distance) == (0.1, 0.0, WASSERSTEIN)
    assert (gap.discount, gap.confidence) == (DISCOUNT, 0.99)
    assert gap.exceeding == largest_fraction(0, 1000, 0.01) > 0
    # States that rarely recur have no path: then every later step may differ as much.
    lost = paired_gap(Chain(following=[2.5, 1.5, 0.5, 3, 2, 1]).compared(), {"reward"})
    assert lost.value == pytest.approx(0.1 / (1 - DISCOUNT))
    # The end of an episode ends the sum.
    short = paired_gap(Chain(ended=[False, True, True, False, False, False]).compared(), {"reward"})
    assert short.value == pytest.approx(0.1 * (1 + DISCOUNT))


def test_no_gap_exceeds_the_span_of_the_returns() -> None:
    chain = Chain(rewards=[1.0, 1.0, 1.0, 0.0, 0.0, 0.0], others=[3.0, 0.5, 1.0, 0.0, 0.0, 0.0])
    compared = chain.compared(largest=lambda part, unit: 2.0)
    assert compared.span == 3.0 / (1 - DISCOUNT)
    assert paired_gap(compared, {"reward", "termination"}).value == compared.span
    ended = paired_gap(compared, {"termination"})
    assert (ended.epsilon_reward, ended.epsilon_transition, ended.distance) == (0.0, 1.0, TOTAL_VARIATION)
    # Above: discount x span / (1 - discount) = span at a discount of a half.
    assert ended.value == pytest.approx(DISCOUNT * compared.span / (1 - DISCOUNT))
    # Episodes may end, and then every reward is 0.
    assert Chain(rewards=[2.0] * 6, others=[2.5] * 6).compared().span == 2.5 / (1 - DISCOUNT)
    assert Chain(rewards=[-2.0] * 6, others=[-1.0] * 6).compared().span == 2.0 / (1 - DISCOUNT)


def test_a_displacement_costs_what_neighbours_at_that_distance_lose(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []

    def cost(compared: Any, distance: float) -> float:
        asked.append(distance)
        return 0.02

    monkeypatch.setattr(value_gap, "cost_of", cost)
    compared = Chain().compared()
    gap = paired_gap(compared, {"transition"})
    distance = 0.3 / np.std([2, 1, 0, 3, 2, 1])
    assert asked == [pytest.approx(distance)]
    assert (gap.epsilon_reward, gap.distance) == (0.0, WASSERSTEIN)
    assert gap.epsilon_transition == pytest.approx(distance)
    assert gap.value == pytest.approx(DISCOUNT * 0.02 / (1 - DISCOUNT))
    both = paired_gap(compared, {"transition", "reward"})
    assert both.value == pytest.approx((0.1 + DISCOUNT * 0.02) / (1 - DISCOUNT))


@pytest.mark.parametrize(("distance", "cost"), [(0.0, 0.5), (math.inf, 0.5), (0.2, math.inf)])
def test_displacements_without_a_known_cost_count_as_other_places(
    distance: float, cost: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(value_gap, "cost_of", lambda compared, distance: cost)
    compared = Chain().compared(largest=lambda part, unit: distance)
    gap = paired_gap(compared, {"transition"})
    assert (gap.epsilon_transition, gap.distance) == (1.0, TOTAL_VARIATION)
    assert gap.value == pytest.approx(min(compared.span, DISCOUNT * compared.span / (1 - DISCOUNT)))


def test_rewards_that_are_no_numbers_on_one_side_bound_nothing() -> None:
    gap = paired_gap(Chain().compared(largest=lambda part, unit: math.nan), {"reward"})
    assert (gap.value, gap.epsilon_reward, gap.exceeding, gap.confidence) == (math.inf, math.inf, 0.0, 0.99)


class Drifting:
    """x' = x + a, paying x, ending beyond a limit."""

    def __init__(self, limit: float = math.inf, refuses: bool = False) -> None:
        self.limit, self.refuses = limit, refuses
        self.seeds: list[int | None] = []
        self.held: list[Any] = []
        self.env = SimpleNamespace(action_space=SimpleNamespace(sample=lambda: 0.0))

    def reset(self, *, seed: int | None = None) -> None:
        self.seeds.append(seed)

    def poke(self, state: Any) -> None:
        if self.refuses:
            raise ValueError("not a state")
        self.held.append(np.array(state))
        self.x = np.array(state)

    def step(self, action: Any) -> Any:
        self.x = self.x + action
        return SimpleNamespace(reward=float(self.x[0]), terminated=self.x[0] > self.limit, truncated=False)


def drifting(stepper: Drifting, states: Any, discount: float = DISCOUNT) -> Any:
    cases = [SimpleNamespace(situation=SimpleNamespace(state=state)) for state in states]
    pairs = SimpleNamespace(stepper=stepper)
    return SimpleNamespace(pairs=pairs, rng=RNG(1), drawn=SimpleNamespace(cases=cases), discount=discount)


def test_neighbours_lie_at_the_distance_asked_for_in_standard_deviations() -> None:
    states = [np.array([float(x), 10.0 * y]) for x, y in RNG(0).normal(size=(50, 2))]
    spread = np.stack(states).std(axis=0)
    stepper = Drifting()
    cost = cost_of(drifting(stepper, states), 0.25)
    starts, others = stepper.held[::2], stepper.held[1::2]
    assert len(starts) == len(others) == 96
    apart = [np.linalg.norm((b - a) / spread) for a, b in zip(starts, others, strict=True)]
    np.testing.assert_allclose(apart, 0.25)
    # A displacement stays, and is paid at every one of the 60 steps.
    worst = max(abs(b[0] - a[0]) for a, b in zip(starts, others, strict=True))
    assert cost == pytest.approx(worst * (1 - DISCOUNT**60) / (1 - DISCOUNT))
    assert stepper.seeds == []


def test_neighbours_share_their_noise_if_they_are_seeded() -> None:
    stepper = Drifting()
    cost_of(drifting(stepper, [np.array([0.0]), np.array([1.0])]), 0.1, seeded=True)
    assert len(stepper.seeds) == 2 * 96
    assert stepper.seeds[::2] == stepper.seeds[1::2]
    assert len(set(stepper.seeds)) > 90


def test_an_end_stops_the_rewards_and_what_is_no_state_is_left_out() -> None:
    states = [np.array([0.0]), np.array([2.0])]
    # Both sides end after their first step, so that only one reward differs.
    assert cost_of(drifting(Drifting(limit=-10.0), states), 0.1) == pytest.approx(0.1)
    assert cost_of(drifting(Drifting(refuses=True), states), 0.1) == 0.0
    for other in ((0, 1), (np.array([0]), np.array([1])), ({"x": 0.0}, {"x": 1.0})):
        assert cost_of(drifting(Drifting(), other), 0.1) == math.inf
    single = Drifting()
    cost_of(drifting(single, [state.astype(np.float32) for state in states]), 0.1)
    assert {held.dtype for held in single.held} == {np.dtype(np.float32)}


def test_the_gap_of_a_table_is_the_largest_difference_of_optimal_values() -> None:
    # Two states that pay 1 and 3 for ever, and exchange under the claim.
    class Pays(gym.Env[Any, Any]):
        observation_space, action_space = gym.spaces.Discrete(2), gym.spaces.Discrete(2)
        P = {s: {a: [(1.0, s, (1.0, 3.0)[s] - a, False)] for a in (0, 1)} for s in (0, 1)}  # noqa: RUF012

    cases = [(0, 0, 1, 0), (1, 0, 0, 0), (0, 1, 1, 1), (1, 1, 0, 1)]
    gap = table_gap(Pays(), (2.0, 0.0), cases, 0.9)
    assert gap.value == pytest.approx(2.0 / (1 - 0.9))
    assert dataclasses.replace(gap, value=0.0) == ValueGap(0.0, 2.0, 0.0, TOTAL_VARIATION, 0.9, 1.0, 0.0)
    # Only the given cases count: one action of one state against the other action there.
    assert table_gap(Pays(), (1.0, 0.0), [(0, 0, 0, 1)], 0.9).value == pytest.approx(1.0)


GAP = ValueGap(2.0, 0.5, 0.25, WASSERSTEIN, 0.9, 0.99, 0.01)


def test_a_gap_is_written_as_an_estimate_with_its_share_or_as_exact() -> None:
    sampled, exact = GAP.to_bound(), dataclasses.replace(GAP, exceeding=0.0, confidence=1.0).to_bound()
    assert (sampled["value"], sampled["confidence"], sampled["exceeding_fraction"]) == (2.0, 0.99, 0.01)
    assert sampled["estimate"] != exact["estimate"] == "exact"
    assert exact["confidence"] is None
    assert "exceeding_fraction" not in exact
    assert not {"noise_reward", "noise_transition"} & {*sampled, *exact}
    noisy = dataclasses.replace(GAP, noise=(0.1, 0.2))
    assert (noisy.to_bound()["noise_reward"], noisy.to_bound()["noise_transition"]) == (0.1, 0.2)
    assert noisy.note().fields["noise"] == [0.1, 0.2]
    assert "noise" not in GAP.note().fields
    assert (GAP.note().fields["sampled"], GAP.note().fields["value"]) == (True, 2.0)


def results(**verdicts: Any) -> list[PropertyResult]:
    return [PropertyResult(name, verdict, "paired", checked=1) for name, verdict in verdicts.items()]


def test_only_violated_equations_of_single_steps_carry_a_gap() -> None:
    asked: list[Any] = []

    def measure(failed: Any, discount: float) -> ValueGap:
        asked.append((failed, discount))
        return GAP

    evidence = SimpleNamespace(value_gap=measure)
    given = results(
        reward_invariance="failed", transition_invariance="passed", initial_invariance="failed", group_axioms="failed"
    )
    told = with_value_gap(given, evidence, discount=0.9, accept=None)
    assert asked == [({"reward"}, 0.9)]
    assert told[0].bound == GAP.to_bound()
    assert told[1:] == given[1:]
    undecided = results(reward_invariance="failed", transition_invariance="undecided")
    assert with_value_gap(undecided, evidence, discount=0.9, accept=None) == undecided
    passed = results(reward_invariance="passed", initial_invariance="failed")
    assert with_value_gap(passed, evidence, discount=0.9, accept=9.0) == passed
    assert len(asked) == 1


@pytest.mark.parametrize("evidence", [SimpleNamespace(), SimpleNamespace(value_gap=lambda failed, discount: None)])
def test_a_gap_that_is_not_known_accepts_nothing_and_says_so(evidence: Any) -> None:
    given = results(reward_invariance="failed")
    assert with_value_gap(given, evidence, discount=0.9, accept=None) == given
    (told,) = with_value_gap(given, evidence, discount=0.9, accept=100.0)
    assert (told.verdict, told.bound) == ("failed", None)
    assert [note.code for note in told.notes] == ["gap_unknown"]
    assert told.notes[0].fields["method"] == "paired"
