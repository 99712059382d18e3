"""What a broken symmetry is said to cost is never less than it costs: small MDPs that are solved beside."""

from __future__ import annotations

import itertools
import math
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

import symcheck as sc
from symcheck.engine.environments.methods.value_gap import TOTAL_VARIATION, ValueGap, with_value_gap
from symcheck.engine.results import PropertyResult
from symcheck.groups import catalog
from symcheck.symmetry.symmetry import Symmetry

DISCOUNT = 0.9
EXCHANGE, OTHER = [1, 0, 3, 2], [1, 0]
SWAPPED = Symmetry("exchange", catalog.cyclic(2), [EXCHANGE], [OTHER])
Outcomes = list[tuple[float, int, float, bool]]


class Small(gym.Env[Any, Any]):
    """Four states and two actions, exchanged in pairs; some (s, a) break it."""

    def __init__(self, table: dict[int, dict[int, Outcomes]], *, shows_table: bool) -> None:
        self.observation_space, self.action_space = spaces.Discrete(4), spaces.Discrete(2)
        self.table, self.initial_state_distrib = table, np.full(4, 0.25)
        if shows_table:
            self.P = table

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        """Start anywhere."""
        super().reset(seed=seed)
        self.s = int(self.np_random.integers(4))
        return self.s, {}

    def step(self, action: Any) -> Any:
        """Draw from the table."""
        outcomes = self.table[self.s][int(action)]
        _, self.s, reward, ended = outcomes[int(self.np_random.choice(len(outcomes), p=[p for p, *_ in outcomes]))]
        return self.s, reward, ended, False, {}


sc.register_state_access(Small, set=lambda env, state: setattr(env, "s", int(state)))


def _table(seed: int, *, spread: int) -> dict[int, dict[int, Outcomes]]:
    """A random table that is symmetric, but for one (s, a), which is another one altogether."""
    rng = np.random.default_rng(seed)

    def drawn() -> Outcomes:
        chances = rng.dirichlet(np.ones(spread))
        return [(float(p), int(rng.integers(4)), round(float(rng.normal()), 3), False) for p in chances]

    table: dict[int, dict[int, Outcomes]] = {s: {} for s in range(4)}
    for s, a in itertools.product((0, 2), range(2)):
        table[s][a] = drawn()
        table[EXCHANGE[s]][OTHER[a]] = [(p, EXCHANGE[to], r, ended) for p, to, r, ended in table[s][a]]
    table[int(rng.integers(4))][int(rng.integers(2))] = drawn()
    return table


def _true_gap(table: dict[int, dict[int, Outcomes]]) -> tuple[float, np.ndarray[Any, Any]]:
    """Oracle: value iteration in plain loops; the gap and the optimal values."""
    values = np.zeros(4)
    for _ in range(400):
        q = np.array(
            [
                [sum(p * (r + DISCOUNT * (not e) * values[t]) for p, t, r, e in table[s][a]) for a in (0, 1)]
                for s in range(4)
            ]
        )
        values = q.max(axis=1)
    return max(abs(q[s, a] - q[EXCHANGE[s], OTHER[a]]) for s, a in itertools.product(range(4), (0, 1))), values


def _bound(report: Any) -> dict[str, Any]:
    bounds = [report[f"{part}_invariance"].bound for part in ("reward", "transition")]
    found: dict[str, Any] = next(one for one in bounds if one is not None and one["kind"] == "value_gap")
    return found


@pytest.mark.parametrize("seed", [0, 1, 2, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(3, 6))])
def test_the_gap_of_an_enumerated_mdp_is_its_gap(seed: int) -> None:
    table = _table(seed, spread=3)
    gap, values = _true_gap(table)
    bound = _bound(sc.verify_env(lambda: Small(table, shows_table=True), SWAPPED, discount=DISCOUNT))
    assert bound["value"] == pytest.approx(gap, rel=1e-6)
    # The epsilons beside it bound it too, in the published form.
    costs = (bound["epsilon_reward"], bound["epsilon_transition"], DISCOUNT)
    assert gap <= sc.mdp.value_gap_bound(*costs, value_span=float(np.ptp(values))) * (1 + 1e-9)


@pytest.mark.parametrize(("spread", "method"), [(1, "paired"), (3, "distribution")])
def test_an_estimate_over_all_states_and_actions_is_no_less_than_the_gap(spread: int, method: str) -> None:
    estimated = 0
    for seed in range(3):
        table = _table(seed, spread=spread)
        report = sc.verify_env(
            lambda table=table: Small(table, shows_table=False), SWAPPED, discount=DISCOUNT, samples=400, method=method
        )
        if report["reward_invariance"].verdict != "failed" and report["transition_invariance"].verdict != "failed":
            continue  # too small for the laws to be told apart
        bound, (gap, _) = _bound(report), _true_gap(table)
        rewards = [r for actions in table.values() for outcomes in actions.values() for _, _, r, _ in outcomes]
        span = (max(*rewards, 0.0) - min(*rewards, 0.0)) / (1 - DISCOUNT)
        assert bound["value"] >= gap
        assert bound["value"] <= span * (1 + 1e-9)  # no return is further off than rewards allow
        estimated += 1
    assert estimated >= 2


def _result(part: str, verdict: Any) -> PropertyResult:
    return PropertyResult(f"{part}_invariance", verdict, "paired", checked=100)


class _Evidence:
    """Knows a gap of 1 and which parts it was asked about."""

    asked: set[str] | None = None

    def value_gap(self, failed: set[str], discount: float) -> ValueGap:
        """The gap."""
        self.asked = failed
        return ValueGap(1.0, 1.0, 0.0, TOTAL_VARIATION, discount, 0.99, 1e-3)


def test_no_gap_is_accepted_while_an_equation_is_undecided() -> None:
    evidence = _Evidence()
    results = [_result("reward", "failed"), _result("transition", "undecided"), _result("termination", "passed")]
    assert with_value_gap(results, evidence, discount=0.9, accept=100.0) == results
    assert evidence.asked is None
    results[1] = _result("transition", "passed")
    accepted = with_value_gap(results, evidence, discount=0.9, accept=1.0)
    assert [one.verdict for one in accepted] == ["passed"] * 3
    assert evidence.asked == {"reward"}
    assert with_value_gap(results, evidence, discount=0.9, accept=math.nextafter(1.0, 0.0))[0].verdict == "failed"
