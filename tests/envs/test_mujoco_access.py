"""MuJoCo: the simulator is reset before a state is set, so that nothing of the last one survives."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

from symcheck.envs.state_access import find_state_access

pytest.importorskip("mujoco", reason="the mujoco extra is not installed")


def test_the_same_state_steps_alike_whatever_was_set_before() -> None:
    env = gym.make("Hopper-v5", disable_env_checker=True)
    env.reset(seed=0)
    access = find_state_access(env.unwrapped)
    assert access is not None
    assert access.get is not None
    state = access.get(env.unwrapped)
    action = np.full(3, 0.3)
    outcomes = []
    for other in (state, state * 1.1):
        access.set(env.unwrapped, other)
        for _ in range(5):
            env.step(-action)
        access.set(env.unwrapped, state)
        outcomes.append(env.step(action)[0])
    np.testing.assert_array_equal(*outcomes)
