"""CarRacing: the same (s, a) by stepping and by setting, and a car on the mirrored track drives mirrored."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from symcheck.envs.state_access import find_state_access
from symcheck.envs.state_access.carried import carried_over

pytest.importorskip("Box2D", reason="the box2d extra is not installed")
pytestmark = pytest.mark.filterwarnings("ignore:.*pkg_resources|.*pygame")
LEFT_RIGHT = np.array([-1.0, 1.0, 1.0])


def driven(steps: int = 30) -> tuple[Any, Any, list[Any]]:
    env = gym.make("CarRacing-v3", disable_env_checker=True).unwrapped
    access = find_state_access(env)
    assert access is not None
    assert access.get is not None
    env.reset(seed=0)
    rng, taken = np.random.default_rng(0), []
    for _ in range(steps):
        action = np.array([rng.uniform(-1, 1), rng.uniform(0, 1), rng.uniform(0, 0.2)], dtype=np.float32)
        before = access.get(env)
        _, reward, *_ = env.step(action)
        taken.append((before, action, reward, access.get(env)))
    return env, access, taken


def mirrored(state: Any) -> Any:
    """x to -x: angles, horizontal and angular velocities, steering and the side change sign, wheels change sides."""
    numbers = np.array(state)
    bodies = (numbers[:30].reshape(5, 6) * [-1, 1, -1, -1, 1, -1])[[0, 2, 1, 4, 3]]
    controls = (numbers[30:50].reshape(4, 5) * [1, 1, -1, 1, 1])[[1, 0, 3, 2]]
    image = np.concatenate([bodies.ravel(), controls.ravel(), numbers[50:53], -numbers[53:]])
    return carried_over(image.astype(np.float32), state)


def test_a_race_goes_on_as_it_did_and_pays_what_it_paid() -> None:
    env, access, taken = driven()
    for before, action, reward, after in [taken[i] for i in (17, 0, 29, 5, 11)]:
        access.set(env, before)
        _, again, *_ = env.step(action)
        # Impulses that joints remember are missing: some float32 units of positions of a hundred.
        np.testing.assert_allclose(access.get(env), after, atol=1e-4)
        assert again == pytest.approx(reward, abs=1e-4)


def test_a_mirrored_car_on_the_mirrored_track_drives_mirrored() -> None:
    env, access, taken = driven()
    for before, action, reward, after in [taken[i] for i in (3, 0, 20)]:
        access.set(env, mirrored(before))
        _, again, *_ = env.step((action * LEFT_RIGHT).astype(np.float32))
        np.testing.assert_allclose(access.get(env), mirrored(after), atol=1e-4)
        assert again == pytest.approx(reward, abs=1e-4)
        np.testing.assert_array_equal(mirrored(mirrored(before)), before)


def test_a_reset_brings_the_track_back_to_its_own_side() -> None:
    env, access, taken = driven(2)
    access.set(env, mirrored(taken[1][0]))
    assert access.get(env)[53] == -1
    env.reset(seed=1)
    assert access.get(env)[53] == 1
