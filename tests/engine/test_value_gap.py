"""What a broken symmetry costs in value: exact where the MDP is known, an estimate elsewhere, accepted on request."""

from __future__ import annotations

import itertools
import math
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.envs.classic_control.pendulum import PendulumEnv

import symcheck
from symcheck.engine.options import EnvOptions
from symcheck.engine.results import PropertyResult
from symcheck.errors import OptionError
from symcheck.groups import catalog
from symcheck.symmetry.symmetry import Symmetry

PENDULUM = "pendulum/mirror"


def _of(report: Any, name: str) -> PropertyResult:
    found: PropertyResult = next(one for one in report.results[0].properties if one.name == name)
    return found


class Bonus(gym.Wrapper[Any, Any, Any, Any]):
    """A reward that is 0.001 higher on one side."""

    def step(self, action: Any) -> Any:
        """Step, and add the bonus."""
        obs, reward, *rest = self.env.step(action)
        return obs, float(reward) + 1e-3 * bool(obs[2] > 0), *rest


class Windy(PendulumEnv):
    """A pendulum on which a small torque acts."""

    def step(self, u: Any) -> Any:
        """Step under wind."""
        return super().step(np.asarray(u) + np.float32(0.01))  # type: ignore[no-untyped-call]


class Ring(gym.Env[Any, Any]):
    """Five cells in a ring; going one way pays `bonus` more, and slips `slip` more often."""

    def __init__(self, bonus: float = 0.0, slip: float = 0.0) -> None:
        self.observation_space, self.action_space = spaces.Discrete(5), spaces.Discrete(2)
        self.initial_state_distrib = np.full(5, 0.2)
        self.P = {
            s: {
                a: [
                    (0.8 - slip * a, (s + (1 if a else -1)) % 5, 1.0 * (s == 0) + bonus * a, False),
                    (0.2 + slip * a, s, 0.0, False),
                ]
                for a in range(2)
            }
            for s in range(5)
        }

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        """Start anywhere."""
        super().reset(seed=seed)
        self.s = int(self.np_random.integers(5))
        return self.s, {}

    def step(self, action: Any) -> Any:
        """Draw from the table."""
        outcomes = self.P[self.s][int(action)]
        _, self.s, reward, ended = outcomes[int(self.np_random.choice(2, p=[one[0] for one in outcomes]))]
        return self.s, reward, ended, False, {}


MIRROR = Symmetry("mirror", catalog.cyclic(2), [[0, 4, 3, 2, 1]], [[1, 0]])


def _true_gap(env: Ring, discount: float) -> float:
    """Oracle: value iteration in plain loops."""
    values = [0.0] * 5
    for _ in range(3000):
        q = [[sum(p * (r + discount * values[t]) for p, t, r, _ in env.P[s][a]) for a in range(2)] for s in range(5)]
        values = [max(row) for row in q]
    pairs = itertools.product(range(5), range(2))
    return max(abs(q[s][a] - q[(5 - s) % 5][1 - a]) for s, a in pairs)


@pytest.mark.parametrize(("bonus", "slip"), [(0.01, 0.0), (0.0, 0.05), (0.02, 0.03)])
def test_the_gap_of_a_known_mdp_is_the_gap_of_its_optimal_values(bonus: float, slip: float) -> None:
    env = Ring(bonus, slip)
    report = symcheck.verify_env(lambda: env, MIRROR, discount=0.9)
    bound = _of(report, "reward_invariance").bound or _of(report, "transition_invariance").bound
    assert bound is not None
    assert bound["kind"] == "value_gap"
    assert bound["value"] == pytest.approx(_true_gap(env, 0.9), rel=1e-6)
    # Expected rewards differ by at most what was planted; distributions by exactly the slip.
    assert bound["epsilon_transition"] == pytest.approx(slip, abs=1e-12)
    value = symcheck.mdp.value_gap_bound(bound["epsilon_reward"], slip, 0.9, reward_range=1.0 + bonus)
    assert bound["value"] <= value


def test_a_reward_that_is_off_costs_epsilon_over_one_minus_discount() -> None:
    report = symcheck.verify_env(lambda: Bonus(gym.make("Pendulum-v1")), PENDULUM, samples=800, discount=0.9)
    bound = _of(report, "reward_invariance").bound
    assert report.verdict == "failed"
    assert bound is not None
    assert bound["value"] == pytest.approx(1e-3 / 0.1, rel=1e-6)
    assert bound["epsilon_transition"] == 0
    assert bound["estimate"] == "from lower estimates of suprema"
    assert bound["exceeding_fraction"] < 0.01


def test_a_gap_below_what_is_accepted_passes_as_approximate_and_one_above_fails() -> None:
    def verify(accept: float) -> Any:
        options: dict[str, Any] = {"samples": 800, "discount": 0.9, "accept_gap": accept}
        return symcheck.verify_env(lambda: Bonus(gym.make("Pendulum-v1")), PENDULUM, **options)

    accepted, refused = verify(0.02), verify(0.005)
    assert accepted.verdict == "passed"
    within, beyond = _of(accepted, "reward_invariance"), _of(refused, "reward_invariance")
    assert (within.approximate, within.accepted_by) == (True, "accept_gap")
    assert within.detail.startswith("Within the 0.02 allowed by --accept-gap")
    assert within.notes[0].fields["gap"].fields["value"] == within.bound["value"] <= 0.02  # type: ignore[index]
    assert within.counterexample is not None
    assert within.violations > 0
    assert refused.verdict == "failed"
    assert beyond.accepted_by is None
    assert beyond.notes[0].fields["gap"].fields["value"] > 0.005
    assert "exceeds the 0.005 allowed by --accept-gap" in beyond.detail


def test_wind_is_a_small_wasserstein_distance_with_a_finite_cost() -> None:
    report = symcheck.verify_env(Windy, PENDULUM, samples=800, discount=0.9)
    bound = _of(report, "transition_invariance").bound
    assert bound is not None
    assert bound["transition_distance"].startswith("Wasserstein-1")
    # 3 dt torque / (m l^2) = 0.0015 on either side, in units of the speed's spread of about 4.
    assert 1e-4 < bound["epsilon_transition"] < 2e-3
    assert 0 < bound["value"] < 100


def test_a_pair_that_ends_on_one_side_is_total_variation_and_costs_all_that_rewards_allow() -> None:
    class Narrow(gym.Wrapper[Any, Any, Any, Any]):
        def step(self, action: Any) -> Any:
            obs, reward, terminated, *rest = self.env.step(action)
            return obs, reward, bool(terminated or obs[0] > 2.0), *rest

    report = symcheck.verify_env(lambda: Narrow(gym.make("CartPole-v1")), "cartpole/mirror", samples=1500, discount=0.9)
    bound = _of(report, "termination_invariance").bound
    assert bound is not None
    assert bound["transition_distance"] == "total variation"
    assert bound["value"] == pytest.approx(10.0)  # rewards of 1, for ever or not at all


def test_a_start_that_is_off_is_no_matter_of_values() -> None:
    class Tilted(gym.Wrapper[Any, Any, Any, Any]):
        def reset(self, **keywords: Any) -> Any:
            obs, info = self.env.reset(**keywords)
            return obs + np.float32(0.05), info

    report = symcheck.verify_env(
        lambda: Tilted(gym.make("CartPole-v1")), "cartpole/mirror", samples=500, accept_gap=1e9
    )
    assert _of(report, "initial_invariance").verdict == "failed"
    assert report.verdict == "failed"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"discount": 1.0}, "--discount: expected a discount in \\[0, 1\\), got 1.0"),
        ({"discount": math.nan}, "--discount"),
        ({"accept_gap": -1.0}, "--accept-gap: expected a value gap of 0 or more, in units of return, got -1.0"),
        ({"accept_gap": math.nan}, "--accept-gap"),
        ({"accept_gap": True}, "--accept-gap"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        EnvOptions(**options)


def test_a_method_without_epsilons_says_that_it_cannot_accept() -> None:
    class Box(gym.ObservationWrapper[Any, Any, Any]):
        def observation(self, observation: Any) -> Any:
            return observation * np.array([1, 1, 1, 2.0], np.float32)

    wrong = Symmetry("wrong", catalog.cyclic(2), [[-1, -1, -1, -1]], [[0, 1]])
    report = symcheck.verify_env(
        lambda: Box(gym.make("CartPole-v1")), wrong, method="trajectory", samples=800, accept_gap=1e9
    )
    failed = [one for one in report.results[0].properties if one.verdict == "failed"]
    assert failed
    assert all((one.notes[-1].code, one.notes[-1].fields["method"]) == ("gap_unknown", "trajectory") for one in failed)
    assert all("--accept-gap does not apply" in one.detail for one in failed)


class Chain(gym.Env[Any, Any]):
    """Walk to 0 from either side: it pays 1.0 when entered from the left and 1.1 from the right."""

    observation_space = gym.spaces.Box(-6, 6, (1,), np.float64)
    action_space = gym.spaces.Discrete(2)
    ends = True

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        """Start on either side."""
        super().reset(seed=seed)
        self.x = float(self.np_random.choice([-1, 1]) * self.np_random.integers(1, 6))
        return np.array([self.x]), {}

    def step(self, action: Any) -> Any:
        """One step to the left or to the right."""
        new = float(np.clip(self.x + 2 * int(action) - 1, -6, 6))
        paid = (1.0 if self.x < 0 else 1.1) * (new == 0 != self.x)
        self.x = new
        return np.array([new]), float(paid), self.ends and new == 0, False, {}

    def get_state(self) -> Any:
        """The place."""
        return np.array([self.x])

    def set_state(self, state: Any) -> None:
        """Be there."""
        self.x = float(state[0])


class EndlessChain(Chain):
    """Nothing ends: 0 may be entered again and again."""

    ends = False


@pytest.mark.parametrize("samples", [300, 2000])
def test_a_reward_that_is_off_once_an_episode_costs_itself_once(samples: int) -> None:
    mirror = Symmetry("mirror", catalog.cyclic(2), [[-1]], [[1, 0]])
    result = _of(symcheck.verify_env(Chain, mirror, samples=samples), "reward_invariance")
    assert result.bound is not None
    assert result.bound["value"] == pytest.approx(0.1)


def test_a_reward_that_is_off_again_and_again_costs_what_it_adds_up_to() -> None:
    mirror = Symmetry("mirror", catalog.cyclic(2), [[-1]], [[1, 0]])
    result = _of(symcheck.verify_env(EndlessChain, mirror, samples=3000), "reward_invariance")
    assert result.bound is not None
    # In and out again: 0.1 every second step.
    assert result.bound["value"] == pytest.approx(0.1 / (1 - 0.99**2))
