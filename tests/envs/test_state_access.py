"""State access: what is registered wins, and what is built in shows what it sets."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from symcheck.envs import state_access
from symcheck.envs.state_access import access as lookup
from symcheck.envs.state_access import find_state_access, register_state_access
from symcheck.envs.state_access.record import Origin
from symcheck.errors import OptionError

CLASSIC = ["CartPole-v1", "MountainCar-v0", "MountainCarContinuous-v0", "Pendulum-v1", "Acrobot-v1"]


@pytest.mark.parametrize("env_id", CLASSIC)
def test_built_in_access_sets_reads_and_shows_states(env_id: str) -> None:
    env = gym.make(env_id, disable_env_checker=True)
    access = find_state_access(env.unwrapped)
    assert access is not None
    assert access.get is not None
    assert access.observe is not None
    assert access.from_observation is not None
    assert access.sample is not None
    obs, _ = env.reset(seed=0)
    np.testing.assert_array_equal(access.observe(access.get(env.unwrapped)), obs)
    for state in access.sample(np.random.default_rng(0), 20):
        access.set(env.unwrapped, state)
        np.testing.assert_array_equal(access.get(env.unwrapped), state)
        shown = access.observe(state)
        # The observation is rounded to float32, once; the state found from it shows nearly the same again.
        np.testing.assert_allclose(access.observe(access.from_observation(shown)), shown, atol=1e-6, rtol=1e-6)


def test_setting_clears_cartpole_s_count_of_steps_beyond_the_end() -> None:
    env = gym.make("CartPole-v1").unwrapped
    env.reset(seed=0)
    access = find_state_access(env)
    assert access is not None
    for _ in range(2):
        access.set(env, np.array([2.39, 5.0, 0.0, 0.0]))
        assert env.step(1)[1:3] == (1.0, True)


def test_thresholds_are_those_of_the_instance() -> None:
    env = gym.make("CartPole-v1").unwrapped
    env.x_threshold = 9.0
    access = find_state_access(env)
    assert access is not None
    assert not access.ended(np.array([5.0, 0, 0, 0]))
    assert access.ended(np.array([9.5, 0, 0, 0]))


def _families() -> list[str]:
    modules = (info.name for info in pkgutil.iter_modules(state_access.__path__, f"{state_access.__name__}."))
    return [name for name in modules if hasattr(importlib.import_module(name), "built_in")]


@pytest.mark.parametrize("family", _families())
def test_every_module_with_built_in_access_is_looked_up(family: str) -> None:
    # The slots of a vector environment are looked up apart, by whatever their own class has.
    asked = (*lookup._FAMILIES, lookup.vector.built_in)
    assert importlib.import_module(family).built_in in asked, f"{family} is missing from _FAMILIES in access.py"


def test_registered_access_overrides_what_is_built_in_and_is_inherited() -> None:
    from gymnasium.envs.classic_control.pendulum import PendulumEnv

    class Mine(PendulumEnv):
        pass

    class Child(Mine):
        pass

    register_state_access(Mine, set=lambda env, state: None)
    for env, origin, text in (
        (Mine(), Origin.REGISTERED, "registered for Mine"),
        (Child(), Origin.REGISTERED, "registered for Mine"),
        (PendulumEnv(), Origin.BUILT_IN, "built in for Pendulum"),
    ):
        access = find_state_access(env)
        assert access is not None
        assert (access.origin, str(access.source)) == (origin, text)


def test_get_state_and_set_state_are_used_where_an_environment_has_both() -> None:
    class Own:
        def get_state(self) -> Any:
            return self.s

        def set_state(self, state: Any) -> None:
            self.s = state

    class TwoArguments(Own):
        def set_state(self, qpos: Any, qvel: Any) -> None:  # type: ignore[override]
            pass

    access = find_state_access(Own())
    assert access is not None
    assert (access.origin, str(access.source)) == (Origin.OWN_METHODS, "get_state and set_state")
    assert find_state_access(TwoArguments()) is None
    assert find_state_access(object()) is None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"env_class": 3, "set": print}, "expected a class, got 3"),
        ({"env_class": int, "set": 3}, r"register_state_access\(set=\): expected a callable"),
        ({"env_class": int, "set": print, "get": 3}, r"register_state_access\(get=\)"),
    ],
)
def test_a_registration_that_cannot_work_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        register_state_access(**given)


def test_a_batched_registration_is_found_as_batched() -> None:
    class Batch:
        pass

    register_state_access(Batch, set=lambda env, states: None, get=lambda env: np.zeros((2, 3)), batched=True)
    access = find_state_access(Batch())
    assert access is not None
    assert access.batched
