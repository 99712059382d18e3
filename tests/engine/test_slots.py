"""Vector environments are verified as they are: slots, automatic resets, and leaks between slots."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

import symcheck
from symcheck.api.report import Report
from symcheck.errors import TargetError
from symcheck.groups import catalog
from symcheck.symmetry.symmetry import Symmetry

FLIP = Symmetry("flip", catalog.cyclic(2), [[-1, -1]], [[1, 0]])


class Herd(VectorEnv[Any, Any, Any]):
    """Points on a line that exist in batches only; each fault is planted by name."""

    def __init__(
        self, count: int = 6, fault: str = "", noise: float = 0.0, mode: Any = AutoresetMode.NEXT_STEP
    ) -> None:
        self.num_envs = count
        self.metadata = {"autoreset_mode": mode}
        self.single_observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float64)
        self.single_action_space = spaces.Discrete(2)
        self.observation_space = batch_space(self.single_observation_space, count)
        self.action_space = batch_space(self.single_action_space, count)
        self._fault, self._noise, self._mode = fault, noise, mode
        self.s = np.zeros((count, 2))
        self._over = np.zeros(count, dtype=bool)

    def _starts(self, count: int) -> Any:
        starts = self.np_random.normal(0, 0.3, (count, 2))
        return np.tile(starts[:1], (count, 1)) if self._fault == "same starts" else starts

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        """Start near the centre."""
        super().reset(seed=seed)
        mask = (options or {}).get("reset_mask", np.ones(self.num_envs, dtype=bool))
        self.s[mask] = self._starts(int(mask.sum()))
        self._over[mask] = False
        return self.s.copy(), {}

    def step(self, actions: Any) -> Any:
        """Push every point."""
        push = np.where(actions == 1, 0.3, -0.3)
        v = 0.9 * self.s[:, 1] + push + self._noise * self.np_random.normal(size=self.num_envs)
        if self._fault == "wind":
            v += 0.01
        if self._fault == "leak":
            v += 0.05 * np.roll(self.s[:, 0], 1)
        if self._fault == "windy slot":
            v[-1] += 0.01
        self.s = np.stack([self.s[:, 0] + 0.1 * v, v], axis=1)
        ended = np.abs(self.s[:, 0]) > 1
        reward, info = -np.abs(self.s[:, 0]), {}
        if self._mode == AutoresetMode.NEXT_STEP:
            self.s[self._over] = self._starts(int(self._over.sum()))
            ended[self._over], reward[self._over] = False, 0.0
            self._over = ended
        elif self._mode == AutoresetMode.SAME_STEP and ended.any():
            info = {} if self._fault == "forgotten" else {"final_obs": self.s.copy()}
            self.s[ended] = self._starts(int(ended.sum()))
        return self.s.copy(), reward, ended, np.zeros(self.num_envs, dtype=bool), info


class OpenHerd(Herd):
    """The same; whoever registers access can put its points anywhere."""


symcheck.register_state_access(
    OpenHerd, set=lambda env, states: env.s.__setitem__(..., states), get=lambda env: env.s.copy(), batched=True
)


def _verify(make: Callable[[], Any], **options: Any) -> Report:
    return symcheck.verify_env(make, FLIP, samples=options.pop("samples", 600), **options)


def _verdicts(report: Report) -> dict[str, str]:
    return {one.name: one.verdict for one in report.results[0].properties}


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_a_sound_batch_passes_whatever_resets_its_slots(mode: AutoresetMode) -> None:
    report = _verify(lambda: OpenHerd(mode=mode))
    assert report.verdict == "passed"
    transition = next(one for one in report.results[0].properties if one.name == "transition_invariance")
    assert transition.method == "paired"
    assert transition.checked >= 600


def test_last_observations_that_nobody_kept_are_not_compared_with_new_starts() -> None:
    assert _verify(lambda: OpenHerd(fault="forgotten", mode=AutoresetMode.SAME_STEP)).verdict == "passed"


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_wind_in_every_slot_fails_with_a_counterexample(mode: AutoresetMode) -> None:
    report = _verify(lambda: OpenHerd(fault="wind", mode=mode))
    broken = next(one for one in report.results[0].properties if one.name == "transition_invariance")
    assert broken.verdict == "failed"
    assert broken.counterexample is not None
    assert broken.counterexample.residual == pytest.approx(0.02, rel=1e-6)


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_a_slot_that_leaks_into_its_neighbour_is_named(noise: float) -> None:
    report = _verify(lambda: OpenHerd(fault="leak", noise=noise))
    assert report.verdict == "undecided"
    reason = report.results[0].method_reason
    assert reason.code == "slots_leak"
    assert reason == report["transition_invariance"].reason
    assert reason.fields["coordinate"].startswith("observation[")
    assert reason.fields["first"] != reason.fields["again"]
    assert "Slots influence each other" in str(reason)


def test_a_leak_shows_in_seeded_episodes_where_states_cannot_be_set() -> None:
    assert _verify(lambda: Herd(fault="leak", noise=0.1)).results[0].method_reason.code == "slots_leak"
    assert _verify(lambda: Herd(noise=0.1)).results[0].method_reason.code == "method_trajectory"


def test_random_slots_are_compared_as_distributions() -> None:
    assert _verify(lambda: OpenHerd(noise=0.2)).verdict == "passed"
    found = _verdicts(_verify(lambda: OpenHerd(noise=0.02, fault="wind"), samples=1500))
    assert found["transition_invariance"] == "failed"


def test_one_windy_slot_is_no_sound_batch() -> None:
    assert _verify(lambda: OpenHerd(count=3, fault="windy slot"), samples=1500).verdict != "passed"


def test_a_black_box_batch_is_tested_by_episodes_of_all_its_slots() -> None:
    report = _verify(lambda: Herd(noise=0.1), samples=1000)
    assert report.verdict == "passed"
    assert report.results[0].properties[1].method == "trajectory"
    assert "failed" in _verdicts(_verify(lambda: Herd(noise=0.02, fault="wind"), samples=2000)).values()


@pytest.mark.long
def test_slots_that_start_alike_are_not_taken_for_independent_starts() -> None:
    for seed in range(3):
        assert _verify(lambda: OpenHerd(count=32, fault="same starts"), seed=seed).verdict == "passed"


@pytest.mark.parametrize("mode", ["vector_entry_point", "sync"])
def test_a_batch_from_make_vec_is_verified_and_a_broken_claim_is_refuted(mode: str) -> None:
    def make() -> Any:
        return gym.make_vec("CartPole-v1", num_envs=7, vectorization_mode=mode)

    assert symcheck.verify_env(make(), samples=400).verdict == "passed"  # the atlas knows the id
    wrong = Symmetry("wrong", catalog.cyclic(2), [[-1, -1, -1, -1]], [[0, 1]])
    assert symcheck.verify_env(make, wrong, samples=400).verdict == "failed"


def test_a_wrapper_around_the_batch_is_part_of_what_is_verified() -> None:
    class OneSided(gym.vector.VectorRewardWrapper):
        def rewards(self, rewards: Any) -> Any:
            return rewards + 0.01 * (self.env.unwrapped.state[0] > 0)  # type: ignore[attr-defined]

    found = _verdicts(symcheck.verify_env(lambda: OneSided(gym.make_vec("CartPole-v1", num_envs=5)), samples=400,
                                          symmetry="cartpole/mirror"))  # fmt: skip
    assert found["reward_invariance"] == "failed"
    assert found["transition_invariance"] == "passed"


def test_states_that_are_not_one_for_each_slot_are_refused() -> None:
    class Short(Herd):
        pass

    symcheck.register_state_access(Short, set=lambda env, s: None, get=lambda env: env.s[:2], batched=True)
    with pytest.raises(TargetError, match="expected get\\(env\\) to return 6 states, one for each slot, got 2"):
        _verify(Short)


def test_a_single_environment_is_asked_for_where_one_is_needed() -> None:
    with pytest.raises(TargetError, match="vector environment of 2 slots"):
        symcheck.envs.targets.resolve_environment(gym.make_vec("CartPole-v1", num_envs=2)).single()


def test_the_command_line_takes_a_batch(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from symcheck.cli.main import app

    file = tmp_path / "batch.py"
    file.write_text("import gymnasium\ndef make():\n    return gymnasium.make_vec('CartPole-v1', num_envs=16)\n")
    command = ["verify-env", f"{file}:make", "--symmetry", "cartpole/mirror", "--samples", "300"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    assert "paired checks" in done.output


class Ranging(gym.Env[Any, Any]):
    """A point that starts within its width, and moves by as much: fair at every width."""

    observation_space = spaces.Box(-np.inf, np.inf, (1,), np.float64)
    action_space = spaces.Discrete(2)

    def __init__(self, width: float, drift: float = 0.0) -> None:
        self._width, self._drift, self.x = width, drift, 0.0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        """Start anywhere within the width."""
        super().reset(seed=seed)
        self.x = self._width * float(self.np_random.uniform(-1, 1))
        return np.array([self.x]), {}

    def step(self, action: Any) -> Any:
        """Push."""
        self.x = 0.9 * self.x + self._width * (0.3 if action else -0.3) + self._drift
        return np.array([self.x]), 0.0, False, False, {}


def _levels(drift: float = 0.0) -> Any:
    """Slots of two levels that take turns, as curricula lay them out."""
    return gym.vector.SyncVectorEnv(
        [lambda w=width: gym.wrappers.TimeLimit(Ranging(w, drift), 20) for width in (1.0, 2.0, 1.0, 2.0)]
    )


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_slots_of_different_levels_that_are_fair_each_are_not_accused(seed: int) -> None:
    flip = Symmetry("flip", catalog.cyclic(2), [[-1]], [[1, 0]])
    report = symcheck.verify_env(_levels, flip, samples=1000, seed=seed, alpha=1e-4)  # no chance of a false alarm
    assert report["initial_invariance"].verdict == "passed"
    assert report["transition_invariance"].verdict == "passed"
    blown = symcheck.verify_env(lambda: _levels(0.2), flip, samples=1000, seed=seed, alpha=1e-4)
    assert blown["transition_invariance"].verdict == "failed"
