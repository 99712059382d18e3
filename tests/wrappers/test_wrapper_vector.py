"""The vector wrappers: the same maps as the single ones, in every autoreset mode."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import symcheck as sc
from symcheck.wrappers import Quotient, VectorQuotient, VectorRandomSymmetry

C3 = sc.groups.cyclic(3)
CYCLE = sc.Symmetry("cycle", C3, [[1, 2, 0]], [[1, 2, 0]])
CARTPOLE = sc.Symmetry("mirror", sc.groups.cyclic(2), [[-1, -1, -1, -1]], [[1, 0]])
WRAPPERS = [VectorQuotient, VectorRandomSymmetry]
NAMES = np.array(["e", "r", "r^2"])
START = np.array([0.1, 0.3, 0.2], dtype=np.float32)


class _Short(gym.Env[Any, Any]):
    """An episode of `length` steps; every observation is the start plus the step number in all components."""

    observation_space = spaces.Box(-10, 10, (3,), np.float32)
    action_space = spaces.Discrete(3)

    def __init__(self, length: int, received: list[int]) -> None:
        self._length, self._received, self._at = length, received, 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._at = 0
        return START.copy(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self._received.append(int(action))
        self._at += 1
        return START + np.float32(self._at), 1.0, self._at == self._length, False, {}


def _vector(mode: AutoresetMode, lengths: tuple[int, ...] = (2, 3, 5, 4)) -> tuple[SyncVectorEnv, list[list[int]]]:
    received: list[list[int]] = [[] for _ in lengths]
    makers = [lambda n=n, r=r: _Short(n, r) for n, r in zip(lengths, received, strict=True)]
    return SyncVectorEnv(makers, autoreset_mode=mode), received


def _turned(element: str, at: int) -> np.ndarray:
    return np.roll(START, int(np.flatnonzero(element == NAMES)[0])) + np.float32(at)


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_an_element_lasts_exactly_one_episode(mode: AutoresetMode) -> None:
    vector, _ = _vector(mode)
    envs = VectorRandomSymmetry(vector, CYCLE)
    shown, infos = envs.reset(seed=0)
    elements, place = infos["group_element"].copy(), np.zeros(4, dtype=int)
    changes = 0
    ended = np.zeros(4, dtype=bool)
    for _ in range(60):
        shown, _, terminated, _, infos = envs.step(np.zeros(4, dtype=np.int64))
        begins = ended if mode == AutoresetMode.NEXT_STEP else terminated
        for row in range(4):
            place[row] = 0 if begins[row] else place[row] + 1
            now = infos["group_element"][row]
            if not begins[row]:
                assert now == elements[row]
            changes += now != elements[row]
            np.testing.assert_allclose(shown[row], _turned(now, place[row]), atol=1e-6)
            if mode == AutoresetMode.SAME_STEP and terminated[row]:
                last = (2, 3, 5, 4)[row]
                np.testing.assert_allclose(infos["final_obs"][row], _turned(elements[row], last), atol=1e-6)
        elements, ended = infos["group_element"].copy(), terminated
    assert changes > 10


def test_masked_resets_draw_for_the_masked_only() -> None:
    vector, _ = _vector(AutoresetMode.DISABLED, (3, 3, 3, 3))
    envs = VectorRandomSymmetry(vector, CYCLE)
    envs.reset(seed=0)
    drawn = set()
    for _ in range(30):
        for _ in range(3):
            _, _, terminated, _, _ = envs.step(np.zeros(4, dtype=np.int64))
        assert terminated.all()
        envs.reset(options={"reset_mask": np.array([True, True, True, True])})
        mask = np.array([True, False, False, False])
        kept = envs.reset(options={"reset_mask": mask})[1]["group_element"].copy()
        _, infos = envs.reset(options={"reset_mask": mask})
        assert (infos["group_element"][1:] == kept[1:]).all()
        drawn.add(infos["group_element"][0])
    assert drawn == {"e", "r", "r^2"}


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_actions_are_mapped_back_environment_by_environment(wrapper: type) -> None:
    vector, received = _vector(AutoresetMode.NEXT_STEP, (50, 50, 50, 50))
    envs = wrapper(vector, CYCLE)
    shown, _ = envs.reset(seed=1)
    for _ in range(10):
        shown = envs.step(shown.argmax(axis=1))[0]
    assert received == [[1] * 10] * 4


def test_the_vector_quotient_shows_what_the_single_one_shows() -> None:
    singles = [Quotient(gym.make("CartPole-v1"), CARTPOLE) for _ in range(3)]
    envs = VectorQuotient(gym.make_vec("CartPole-v1", 3, vectorization_mode="sync"), CARTPOLE)
    shown, _ = envs.reset(seed=5)
    expected = [env.reset(seed=5 + i)[0] for i, env in enumerate(singles)]
    np.testing.assert_array_equal(shown, expected)
    rng = np.random.default_rng(0)
    for _ in range(8):
        actions = rng.integers(0, 2, 3)
        shown, *_ = envs.step(actions)
        np.testing.assert_array_equal(shown, [e.step(a)[0] for e, a in zip(singles, actions, strict=True)])


def test_the_last_observation_of_the_quotient_is_a_representative() -> None:
    vector, _ = _vector(AutoresetMode.SAME_STEP, (1, 2, 2, 2))
    envs = VectorQuotient(vector, CYCLE)
    envs.reset(seed=0)
    infos = envs.step(np.zeros(4, dtype=np.int64))[4]
    np.testing.assert_allclose(infos["final_obs"][0], [1.3, 1.2, 1.1], atol=1e-6)


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_seeds_repeat_whole_runs(wrapper: type) -> None:
    runs = []
    for _ in range(2):
        envs = wrapper(gym.make_vec("CartPole-v1", 4), CARTPOLE)
        shown = [envs.reset(seed=7)[0]]
        shown += [envs.step(np.array([0, 1, 0, 1]))[0] for _ in range(40)]
        runs.append(np.stack(shown))
    np.testing.assert_array_equal(runs[0], runs[1])


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_what_is_shown_lies_in_the_space_that_is_promised(wrapper: type) -> None:
    envs = wrapper(gym.make_vec("Pendulum-v1", 5), sc.Symmetry("m", sc.groups.cyclic(2), [[1, -1, -1]], [[-1]]))
    shown, _ = envs.reset(seed=0)
    for _ in range(20):
        assert envs.observation_space.contains(shown)
        shown, *_ = envs.step(envs.action_space.sample())


def test_structured_observations_are_mapped_in_batches() -> None:
    class Pair(gym.Env[Any, Any]):
        observation_space = spaces.Dict({"place": spaces.Box(-5, 5, (2,)), "lamp": spaces.Discrete(2)})
        action_space = spaces.Box(-1, 1, (2,))

        def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
            super().reset(seed=seed)
            return {"place": self.np_random.uniform(-1, 1, 2).astype(np.float32), "lamp": np.int64(1)}, {}

        def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
            return {"place": np.asarray(action, np.float32), "lamp": np.int64(0)}, 0.0, False, False, {}

    flip = sc.Symmetry("flip", sc.groups.cyclic(2), [{"place": [-1, 1]}], [[-1, 1]])
    envs = VectorQuotient(SyncVectorEnv([Pair] * 6), flip)
    shown, _ = envs.reset(seed=0)
    assert shown["place"].shape == (6, 2)
    assert (shown["place"][:, 0] >= 0).all()
    after, *_ = envs.step(np.full((6, 2), 0.5, dtype=np.float32))
    np.testing.assert_array_equal(after["place"], np.full((6, 2), 0.5))
