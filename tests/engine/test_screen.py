"""Batched forms give the environment's own numbers, are believed for that environment alone, and accuse nobody."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.classic_control import cartpole as upstream

import symcheck_properties  # noqa: F401
from symcheck.engine.environments.methods import pair_sample, selection
from symcheck.engine.environments.methods.screen import Screen, Screened
from symcheck.engine.environments.runner import run_env
from symcheck.engine.options import EnvOptions
from symcheck.engine.results import RunResult
from symcheck.envs import atlas
from symcheck.envs.models import BatchModel, Transitions, find_model
from symcheck.envs.state_access import find_state_access
from symcheck.groups import catalog
from symcheck.symmetry.symmetry import Symmetry

MODELLED = ["CartPole-v1", "Pendulum-v1", "MountainCar-v0", "MountainCarContinuous-v0", "Acrobot-v1"]

pytestmark = pytest.mark.skipif(
    find_model(gym.make("CartPole-v1")) is None or np.lib.NumpyVersion(np.__version__) < "2.0.0",
    reason="batched forms are transcribed from Gymnasium 1.4 on NumPy 2; elsewhere states are stepped one at a time",
)


def _mirror() -> Symmetry:
    return atlas.entry("cartpole/mirror").symmetry()


def _run(make: Callable[[], gym.Env[Any, Any]], symmetry: Symmetry, **options: Any) -> RunResult:
    return run_env(make, symmetry, options=EnvOptions(**options), target="environment", command="")


def _checked(result: RunResult, name: str) -> int:
    return next(one.checked for one in result.properties if one.name == name)


@pytest.mark.parametrize("env_id", MODELLED)
def test_a_batched_form_gives_the_numbers_of_its_environment_bit_for_bit(env_id: str) -> None:
    env = gym.make(env_id)
    model, access = find_model(env), find_state_access(env.unwrapped)
    assert model is not None
    assert access is not None
    assert access.sample is not None
    assert access.get is not None
    assert access.observe is not None
    env.reset(seed=0)
    env.action_space.seed(0)
    states = np.asarray(access.sample(np.random.default_rng(0), 1500), dtype=np.float64)
    actions = [env.action_space.sample() for _ in states]
    seen = model.step(states, np.stack(actions))
    for i, (state, action) in enumerate(zip(states, actions, strict=True)):
        access.set(env.unwrapped, state)
        obs, reward, terminated, _, _ = env.unwrapped.step(action)
        assert np.array_equal(obs, seen.observations[i])
        assert obs.dtype == seen.observations.dtype
        assert (float(reward), terminated) == (seen.rewards[i], seen.terminated[i])
        assert np.array_equal(access.get(env.unwrapped), seen.states[i])
    assert all(np.array_equal(access.observe(s), o) for s, o in zip(states, model.observe(states), strict=True))
    assert [access.ended(s) for s in states] == model.ended(states).tolist()


class Windy(upstream.CartPoleEnv):
    """Another environment under the same roof."""

    def step(self, action: Any) -> Any:
        """Push, with wind."""
        obs, *rest = super().step(action)  # type: ignore[no-untyped-call]
        return (obs + np.float32(1e-4), *rest)


@pytest.mark.parametrize(
    "make",
    [
        Windy,
        lambda: gym.wrappers.TransformReward(gym.make("CartPole-v1"), lambda reward: reward),
        lambda: gym.wrappers.FlattenObservation(gym.make("CartPole-v1")),
        lambda: gym.make("CartPole-v1", render_mode="rgb_array"),
        lambda: gym.make("Blackjack-v1"),
    ],
)
def test_another_environment_has_no_batched_form(make: Callable[[], gym.Env[Any, Any]]) -> None:
    assert find_model(make()) is None


def test_a_method_replaced_on_the_instance_or_in_the_class_has_no_batched_form(monkeypatch: pytest.MonkeyPatch) -> None:
    env = gym.make("CartPole-v1")
    env.unwrapped.step = lambda action: (np.zeros(4, np.float32), 0.0, False, False, {})  # type: ignore[method-assign]
    assert find_model(env) is None
    original = upstream.CartPoleEnv.step
    monkeypatch.setattr(upstream.CartPoleEnv, "step", lambda self, action: original(self, action))  # type: ignore[no-untyped-call]
    assert find_model(gym.make("CartPole-v1")) is None


def test_the_parameters_of_the_instance_are_those_of_its_batched_form() -> None:
    moon = gym.make("CartPole-v1")
    moon.unwrapped.gravity = 1.6  # type: ignore[attr-defined]
    earth = find_model(gym.make("CartPole-v1"))
    lunar = find_model(moon)
    state, push = np.array([[0.0, 0.0, 0.1, 0.0]]), np.array([1])
    assert earth is not None
    assert lunar is not None
    assert earth.step(state, push).states[0, 3] != lunar.step(state, push).states[0, 3]


def test_a_hundred_thousand_pairs_are_checked_where_a_batch_costs_little() -> None:
    result = _run(lambda: gym.make("CartPole-v1"), _mirror())
    assert result.verdict == "passed"
    assert _checked(result, "transition_invariance") >= 100_000
    bound = result.properties[1].bound
    assert bound is not None
    assert bound["value"] < 1e-4


def test_fewer_samples_than_the_default_are_not_made_more() -> None:
    result = _run(lambda: gym.make("CartPole-v1"), _mirror(), samples=500)
    assert 500 <= _checked(result, "transition_invariance") < 600


def test_a_wrong_map_is_found_by_the_screen_and_shown_by_the_environment() -> None:
    wrong = Symmetry("wrong", catalog.cyclic(2), [[-1, -1, 1, -1]], [[1, 0]])
    result = _run(lambda: gym.make("CartPole-v1"), wrong)
    broken = next(one for one in result.properties if one.name == "transition_invariance")
    assert broken.verdict == "failed"
    assert broken.counterexample is not None
    assert broken.violations > 50_000
    signs = [cause.fields for cause in broken.causes if cause.code == "SYM014"]
    assert {"sign": "-1", "coordinate": "observation[2]"} in signs


def test_ends_that_no_pair_stepped_by_hand_shows_are_found_by_the_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The goal of the mountain car is reached in few of the pairs: none of twenty shows that it has no image."""
    monkeypatch.setattr(pair_sample, "BY_HAND", 20)
    result = _run(lambda: gym.make("MountainCar-v0"), atlas.entry("mountaincar/valley").symmetry(), samples=3000)
    broken = next(one for one in result.properties if one.name == "termination_invariance")
    assert broken.verdict == "failed"
    assert broken.counterexample is not None


def test_violations_never_exceed_the_pairs_checked_where_everything_is_violated() -> None:
    wrong = Symmetry("wrong", catalog.cyclic(2), [[2, 3, 0, 1]], [[0, 1]])
    result = _run(lambda: gym.make("CartPole-v1"), wrong)
    broken = next(one for one in result.properties if one.name == "transition_invariance")
    assert broken.violations > 0.9 * broken.checked
    assert all(one.violations <= one.checked for one in result.properties)


def test_a_pair_that_several_properties_suspect_is_stepped_again_once_and_counts_for_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[Screened] = []
    honest = Screen.run

    def run(self: Screen, count: int, proceed: Callable[[], bool]) -> Screened:
        seen.append(honest(self, count, proceed))
        return seen[-1]

    monkeypatch.setattr(Screen, "run", run)
    exchanged = Symmetry("wrong", catalog.cyclic(2), [[2, 3, 0, 1]], [[0, 1]])
    result = _run(lambda: gym.make("CartPole-v1"), exchanged)
    (found,) = seen
    assert found.suspects is not None
    differ = found.suspects.left.terminated != found.suspects.right.terminated
    ended = found.tallies["termination"]
    assert ended.asked == differ.sum()  # also of those that were picked for their transitions
    assert 0 < ended.not_asked == ended.suspicious - ended.asked
    assert sum(tally.asked for tally in found.tallies.values()) > len(found.suspects.cases)
    broken = next(one for one in result.properties if one.name == "termination_invariance")
    assert broken.verdict == "failed"


def _lying(model: BatchModel, where: Callable[[Any], Any]) -> BatchModel:
    def step(states: Any, actions: Any) -> Transitions:
        seen = model.step(states, actions)
        seen.rewards[where(states)] += 1.0
        return seen

    return dataclasses.replace(model, step=step)


@pytest.mark.parametrize("share", [1.0, 0.001])
def test_a_batched_form_that_lies_accuses_nobody(share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = find_model

    def find(env: Any) -> BatchModel | None:
        model = honest(env)
        assert model is not None
        return _lying(model, lambda states: (states[:, 0] > 0) & (states[:, 1] > 3.0 - 6.0 * share))

    monkeypatch.setattr(selection, "find_model", find)
    result = _run(lambda: gym.make("CartPole-v1"), _mirror())
    assert result.verdict == "passed"
    assert _checked(result, "reward_invariance") < 11_000  # nothing that the liar stepped counts
