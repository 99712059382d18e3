"""One far-off value switches no check off, and where rounding decides nothing is said from single pairs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import symcheck as sc
from symcheck.engine.features import normal_scores
from symcheck.engine.scales import bulk, swamped_rows, typical_sizes

C2 = sc.groups.cyclic(2)


class World(gym.Env[Any, Any]):
    """A cart that is mirrored by changing both signs; what it shows beside its state, and what it pays, is given."""

    noise = 0.0

    def __init__(self) -> None:
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, self.see(np.zeros(2)).shape, np.float32)
        self.action_space = gym.spaces.Discrete(2)

    def see(self, s: Any) -> Any:
        """The state, rounded."""
        return np.array(s, np.float32)

    def pay(self, s: Any) -> float:
        """A cost."""
        return -float(s[0] ** 2)

    def move(self, s: Any, push: int) -> Any:
        """Push and glide."""
        v = 0.9 * s[1] + 0.1 * push
        return np.array([s[0] + 0.1 * v, v])

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        """Start around 0."""
        super().reset(seed=seed)
        self.s = 0.4 * self.np_random.normal(size=2)
        return self.see(self.s), {}

    def step(self, action: Any) -> Any:
        """Move, and be moved by noise."""
        self.s = self.move(self.s, 2 * int(action) - 1)
        self.s[1] += self.noise * self.np_random.normal() if self.noise else 0.0
        return self.see(self.s), self.pay(self.s), bool(abs(self.s[0]) > 2), False, {}

    def get_state(self) -> Any:
        """Both numbers."""
        return self.s.copy()

    def set_state(self, state: Any) -> None:
        """Put it there."""
        self.s = np.array(state, float)


def beside(largest: float, fault: float) -> Callable[[Any, Any], Any]:
    """A range sensor that shows its largest number near the middle, and on the right a little too much."""

    def see(_: Any, s: Any) -> Any:
        near = 1 - abs(s[0]) + fault * (s[0] > 0)
        return np.array([*s, largest if abs(s[0]) < 0.05 else near], np.float32)

    return see


def penalty(fault: float) -> Callable[[Any, Any], float]:
    """A penalty of -1e15 in the middle, and on the right a little less cost."""
    return lambda _, s: -1e15 if abs(s[0]) < 0.1 else -float(s[0] ** 2) + fault * (s[0] > 0)


def explode(fault: float) -> Callable[[Any, Any, int], Any]:
    """A simulator that blows up where it is fast, and drifts a little elsewhere."""

    def move(self: Any, s: Any, push: int) -> Any:
        following = World.move(self, s, push)
        return following * 1e15 if abs(following[1]) > 0.5 else following + np.array([fault, 0.0])

    return move


def high(fault: float) -> Callable[[Any, Any], Any]:
    """An altitude of 100 km in float32, which has few digits left for what changes of it."""
    return lambda _, s: np.array([*s, 1e5 + abs(s[0]) + fault * (s[0] > 0)], np.float32)


def turns(count: int, drift: float) -> Callable[[Any, Any, int], Any]:
    """Turns of the odd logistic map, which lose a bit each; then a drift."""

    def move(_: Any, s: Any, push: int) -> Any:
        x = float(np.sin(s[0]))
        for _turn in range(count):
            x = float(np.sign(x)) * 4 * abs(x) * (1 - abs(x))
        return np.array([0.9 * x + drift, 0.9 * s[1] + 0.1 * push])

    return move


def hashed(share: float) -> Callable[[Any, Any, int], Any]:
    """A jump by the last bits of the state."""

    def move(self: Any, s: Any, push: int) -> Any:
        jump = hash(float(s[0])) % 1000 < 1000 * share
        return World.move(self, s, push) + np.array([0.01 * jump, 0.0])

    return move


def world(noise: float = 0.0, **methods: Any) -> type[World]:
    """A world with other methods."""
    return type("Other", (World,), {"noise": noise, **methods})


def mirror(shown: int, *, state: bool = True) -> sc.Symmetry:
    """Both signs change; what is shown beside the state stays."""
    return sc.Symmetry(
        "mirror",
        C2,
        observation=[[-1, -1, *[1] * (shown - 2)]],
        action=[[1, 0]],
        state=[[-1, -1]] if state else None,
    )


@pytest.mark.parametrize("largest", [1e6, float(np.finfo(np.float32).max)])
@pytest.mark.parametrize("noise", [0.0, 0.02])
def test_a_largest_reading_hides_no_fault_of_the_others(largest: float, noise: float) -> None:
    for fault, verdict in ((0.0, "passed"), (0.3, "failed")):
        report = sc.verify_env(world(noise, see=beside(largest, fault)), mirror(3), samples=1000)
        assert report["transition_invariance"].verdict == verdict


def test_episodes_and_starts_of_a_black_box_show_it_too() -> None:
    class Closed(gym.Wrapper[Any, Any, Any, Any]):
        """Nothing of the state can be reached."""

        @property
        def unwrapped(self) -> Any:
            return self

    for fault, verdict in ((0.0, "passed"), (0.3, "failed")):
        made = world(0.02, see=beside(1e6, fault))
        report = sc.verify_env(lambda made=made: Closed(made()), mirror(3, state=False), samples=4000)
        assert report["initial_invariance"].verdict == verdict
        assert (report["transition_invariance"].verdict == "passed") == (verdict == "passed")


def test_a_penalty_of_a_thousand_billions_hides_no_fault_of_the_other_rewards() -> None:
    for fault, verdict in ((0.0, "passed"), (1e-3, "failed")):
        report = sc.verify_env(world(pay=penalty(fault)), mirror(2), samples=1000)
        assert report["reward_invariance"].verdict == verdict


def test_a_simulator_that_blows_up_hides_no_drift_elsewhere() -> None:
    for fault, verdict in ((0.0, "passed"), (1e-3, "failed")):
        report = sc.verify_env(world(move=explode(fault)), mirror(2), samples=1000)
        assert report["transition_invariance"].verdict == verdict


@pytest.mark.parametrize("fault", [0.0, 0.1])
def test_a_tolerance_as_wide_as_the_values_spread_passes_nothing(fault: float) -> None:
    found = sc.verify_env(world(see=high(fault)), mirror(3), samples=1000, method="paired")["transition_invariance"]
    assert (found.verdict, found.reason.code) == ("undecided", "rounding_decides")  # type: ignore[union-attr]
    assert any(note.code == "pairs_swamped" for note in found.notes)


@pytest.mark.long
def test_amplified_rounding_is_undecided_by_pairs_and_decided_by_distributions() -> None:
    drifting = world(move=turns(60, 0.01))
    pairs = sc.verify_env(drifting, mirror(2), samples=1000, method="paired")["transition_invariance"]
    assert (pairs.verdict, pairs.reason.code) == ("undecided", "rounding_decides")  # type: ignore[union-attr]
    assert any(note.code == "pairs_within_rounding" for note in pairs.notes)
    report = sc.verify_env(drifting, mirror(2), samples=1000)
    assert report["transition_invariance"].verdict == "failed"
    assert report["transition_invariance"].method == "distribution"
    assert report["termination_invariance"].method == "paired"
    assert report.results[0].method_reason.code == "method_distribution_swamped"


def test_the_same_map_without_the_drift_is_not_accused() -> None:
    assert sc.verify_env(world(move=turns(60, 0.0)), mirror(2), samples=1000).verdict == "passed"
    few = sc.verify_env(world(move=turns(3, 0.0)), mirror(2), samples=1000)["transition_invariance"]
    assert (few.verdict, few.method) == ("passed", "paired")


def test_outcomes_that_jump_with_the_last_bits_do_not_pass_by_pairs() -> None:
    found = sc.verify_env(world(move=hashed(0.2)), mirror(2), samples=1000, method="paired")["transition_invariance"]
    assert found.verdict in ("undecided", "failed")
    assert sc.verify_env(world(move=hashed(0.0)), mirror(2), samples=1000)["transition_invariance"].verdict == "passed"


def test_sizes_and_bulks_are_those_of_most_values_and_hold_long_tails() -> None:
    rng, epsilon = np.random.default_rng(0), np.full(1, 1e-16)
    values = rng.normal(size=(2000, 1))
    for tail in (values, values**2, values**6, np.exp(3 * values), values / rng.normal(size=(2000, 1))):
        assert not bulk(tail, epsilon).far.any()
    plain = typical_sizes(values, epsilon)
    values[: len(values) // 2] = 1e20 * rng.normal(size=(1000, 1))
    assert typical_sizes(values, epsilon) < 5 * plain
    assert bulk(values, epsilon).far.sum() == 1000


def test_a_coordinate_that_varies_by_rounding_only_swamps_nothing() -> None:
    rng = np.random.default_rng(0)
    norms = (1 + np.finfo(np.float32).eps * rng.integers(-2, 3, size=(500, 1))).astype(np.float64)
    limits, epsilon = np.full((500, 1), 2e-6), np.full(1, float(np.finfo(np.float32).eps))
    assert not swamped_rows(norms, norms, limits, epsilon).any()
    assert swamped_rows(1e5 + norms, 1e5 + norms + rng.random((500, 1)), 1e5 * limits, epsilon).all()


def test_near_values_of_a_dense_range_are_no_ties() -> None:
    rng = np.random.default_rng(0)
    dense = rng.normal(size=(5000, 1))
    assert len(np.unique(normal_scores(dense, np.full(1, 1e-2)))) > 4500
    atoms = np.repeat([[0.0], [1.0]], 50, axis=0) + 1e-4 * rng.random((100, 1))
    assert len(np.unique(normal_scores(atoms, np.full(1, 1e-2)))) == 2
