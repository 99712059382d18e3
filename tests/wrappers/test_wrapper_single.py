"""The single-environment wrappers: Gymnasium's checks, what the agent sees, what the environment receives."""

from __future__ import annotations

import warnings
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env

import symcheck as sc
from symcheck.errors import SpecError
from symcheck.mdp.tabular import TabularMDP
from symcheck.wrappers import Quotient, RandomSymmetry

C2, C4, D4 = sc.groups.cyclic(2), sc.groups.cyclic(4), sc.groups.dihedral(4)
CARTPOLE = sc.Symmetry("mirror", C2, [[-1, -1, -1, -1]], [[1, 0]])
PENDULUM = sc.Symmetry("mirror", C2, [[1, -1, -1]], [[-1]])
SQUARE = sc.Symmetry("square", D4, ["rot90", "flip_ud"], [[0, 2, 3, 4, 1], [0, 3, 2, 1, 4]])
LAKE = sc.Symmetry("diagonal", C2, [np.arange(16).reshape(4, 4).T.reshape(-1).tolist()], [[3, 2, 1, 0]])
OPEN_LAKE = {"desc": ["SFFF", "FFFF", "FFFF", "FFFG"]}
CASES = [
    ("CartPole-v1", {}, CARTPOLE),
    ("Pendulum-v1", {}, PENDULUM),
    ("symcheck:symcheck/PredatorPrey-v0", {}, SQUARE),
    ("FrozenLake-v1", OPEN_LAKE, LAKE),
]
WRAPPERS = [Quotient, RandomSymmetry]


@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize(("name", "kwargs", "symmetry"), CASES)
def test_gymnasium_s_checker_passes(name: str, kwargs: dict[str, Any], symmetry: sc.Symmetry, wrapper: type) -> None:
    env = wrapper(gym.make(name, **kwargs), symmetry)
    with warnings.catch_warnings():
        # The checker wants the unwrapped environment; a wrapper is what is being checked here. Pendulum's and
        # CartPole's own advice about infinite or asymmetric bounds is not about the wrapper either.
        warnings.filterwarnings("ignore", message=r".*(different from the unwrapped version|we recommend|infinity).*")
        check_env(env, skip_render_check=True)


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_a_wrapped_environment_can_be_made_again_from_its_spec(wrapper: type) -> None:
    env = wrapper(gym.make("CartPole-v1"), CARTPOLE)
    assert env.spec is not None
    again = gym.make(env.spec)
    np.testing.assert_array_equal(env.reset(seed=3)[0], again.reset(seed=3)[0])
    assert isinstance(again, wrapper)


class _Echo(gym.Env[Any, Any]):
    """Shows what it is told and remembers the actions it gets; three components, three actions."""

    observation_space = spaces.Box(-10, 10, (3,), np.float32)
    action_space = spaces.Discrete(3)

    def __init__(self, start: list[float]) -> None:
        self.start = np.array(start, dtype=np.float32)
        self.received: list[int] = []

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        return self.start.copy(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.received.append(int(action))
        return self.start.copy(), 0.0, False, False, {}


CYCLE = sc.Symmetry("cycle", sc.groups.cyclic(3), [[1, 2, 0]], [[1, 2, 0]])


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_actions_are_mapped_back_by_the_inverse_in_a_group_of_order_three(wrapper: type) -> None:
    """The agent picks the place of the largest component it sees; the environment must receive the largest it has."""
    for seed in range(12):
        base = _Echo([0.1, 0.3, 0.2])
        env = wrapper(base, CYCLE)
        seen, _ = env.reset(seed=seed)
        for _ in range(2):
            seen = env.step(int(np.argmax(seen)))[0]
        assert base.received == [1, 1]


def test_an_orbit_has_one_representative() -> None:
    shown = []
    for turn in range(3):
        env = Quotient(_Echo(np.roll([0.1, 0.3, 0.2], turn).tolist()), CYCLE)
        shown.append(env.reset(seed=0)[0].tolist())
    assert shown[0] == shown[1] == shown[2]
    np.testing.assert_allclose(shown[0], [0.3, 0.2, 0.1], atol=1e-7)


def test_a_fixed_observation_is_answered_with_all_images_of_the_action_alike() -> None:
    """In the middle all three elements lead to the representative; 600 draws of three, five standard deviations."""
    base = _Echo([0.5, 0.5, 0.5])
    env = Quotient(base, CYCLE, rng=np.random.default_rng(0))
    env.reset()
    for _ in range(600):
        env.step(0)
    counts = np.bincount(base.received, minlength=3)
    assert np.abs(counts - 200).max() <= 5 * np.sqrt(600 * 2 / 9)


def test_random_symmetry_keeps_its_element_through_an_episode() -> None:
    env = RandomSymmetry(_Echo([0.1, 0.3, 0.2]), CYCLE)
    seen = set()
    for seed in range(30):
        first, info = env.reset(seed=seed)
        for _ in range(3):
            shown, _, _, _, later = env.step(0)
            assert later["group_element"] == info["group_element"]
            np.testing.assert_array_equal(shown, first)
        seen.add(info["group_element"])
    assert seen == {"e", "r", "r^2"}


def test_elements_are_drawn_alike() -> None:
    env = RandomSymmetry(_Echo([0.1, 0.3, 0.2]), CYCLE, rng=np.random.default_rng(1))
    names = [env.reset()[1]["group_element"] for _ in range(600)]
    counts = np.array([names.count(name) for name in ("e", "r", "r^2")])
    assert np.abs(counts - 200).max() <= 5 * np.sqrt(600 * 2 / 9)


def test_state_dependent_action_maps_are_asked_about_what_the_agent_saw() -> None:
    asked = []

    def swapped(action: Any, state: Any) -> np.int64:
        asked.append(int(state))
        return np.int64(1 - action)

    line = sc.Symmetry("swap", C2, [[3, 2, 1, 0]], [swapped])

    class Line(gym.Env[Any, Any]):
        observation_space, action_space = spaces.Discrete(4), spaces.Discrete(2)

        def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
            super().reset(seed=seed)
            return np.int64(1), {}

        def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
            assert action == 0
            return np.int64(1), 0.0, False, False, {}

    env = Quotient(Line(), line)
    assert env.reset()[0] == 2
    env.step(np.int64(1))
    assert asked == [2]


def test_structured_observations_and_actions_are_mapped() -> None:
    class Pair(gym.Env[Any, Any]):
        observation_space = spaces.Dict({"place": spaces.Box(-5, 5, (2,)), "lamp": spaces.Discrete(2)})
        action_space = spaces.Box(-1, 1, (2,))

        def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
            super().reset(seed=seed)
            return {"place": np.array([-1, 2], dtype=np.float32), "lamp": np.int64(1)}, {}

        def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
            return {"place": action, "lamp": np.int64(0)}, 0.0, False, False, {}

    flip = sc.Symmetry("flip", C2, [{"place": [-1, 1]}], [[-1, 1]])
    env = Quotient(Pair(), flip)
    shown, _ = env.reset(seed=0)
    assert (shown["place"].tolist(), shown["lamp"]) == ([1.0, 2.0], 1)
    after, *_ = env.step(np.array([0.5, 0.25], dtype=np.float32))
    assert after["place"].tolist() == [0.5, 0.25]  # -0.5 reached the environment and was folded again
    assert env.observation_space == Pair.observation_space


def test_images_outside_the_box_widen_it() -> None:
    class Valley(_Echo):
        observation_space = spaces.Box(np.array([-1.2, 0, 0], np.float32), np.array([0.6, 1, np.inf], np.float32))

    about = sc.Symmetry("about", C2, [{"signs": [-1, 1, -1], "offset": [-1.0, 0.0, 0.0]}], [[0, 1, 2]])
    space = Quotient(Valley([0, 0, 0]), about).observation_space
    assert isinstance(space, spaces.Box)
    np.testing.assert_allclose(space.low, [-1.6, 0.0, -np.inf], atol=1e-6)
    np.testing.assert_allclose(space.high, [0.6, 1.0, np.inf], atol=1e-6)


def test_a_symmetry_that_does_not_fit_is_refused_at_once() -> None:
    with pytest.raises(SpecError, match="4"):
        Quotient(gym.make("Pendulum-v1"), CARTPOLE)
    with pytest.raises(SpecError, match="symmetry: expected a Symmetry, got str"):
        RandomSymmetry(gym.make("Pendulum-v1"), "pendulum/mirror")  # type: ignore[arg-type]


def test_a_group_too_large_to_enumerate_is_refused_with_the_way_out() -> None:
    class Many(_Echo):
        observation_space = spaces.Box(-1, 1, (9,), np.float32)
        action_space = spaces.Discrete(9)

    S9 = sc.groups.symmetric(9)
    images = [list(g.images) for g in S9.generators]
    with pytest.raises(SpecError, match=r"S9 has 362,880 elements.*Use a symmetry under a subgroup"):
        Quotient(Many([0] * 9), sc.Symmetry("all", S9, images, images))


def test_the_quotient_of_the_lake_visits_representatives_only() -> None:
    env = Quotient(gym.make("FrozenLake-v1", **OPEN_LAKE), LAKE)
    allowed = {max(s, int(np.arange(16).reshape(4, 4).T.reshape(-1)[s])) for s in range(16)}
    rng = np.random.default_rng(0)
    visited = set()
    for seed in range(20):
        state, _ = env.reset(seed=seed)
        done = False
        while not done:
            visited.add(int(state))
            state, _, terminated, truncated, _ = env.step(np.int64(rng.integers(4)))
            done = terminated or truncated
    assert visited <= allowed
    assert len(visited) > 5


def test_learning_on_the_quotient_is_learning_on_the_smaller_mdp() -> None:
    """Counts on the quotient estimate the abstract MDP of the symmetry: same optimal values as the original."""
    mdp = TabularMDP.from_gymnasium("FrozenLake-v1", **OPEN_LAKE)
    h = mdp.homomorphism_from(LAKE)
    assert h.abstract_mdp.n_states == 10
    best = sc.mdp.policy_iteration(mdp).values
    abstract = sc.mdp.policy_iteration(h.abstract_mdp)
    np.testing.assert_allclose(h.lift_values(abstract.values), best, atol=1e-10)


def test_the_checker_finds_a_wrapper_that_forgets_its_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    from symcheck.wrappers.randomness import Dice

    monkeypatch.setattr(Dice, "seed", lambda self, seed: None)
    env = RandomSymmetry(gym.make("CartPole-v1"), CARTPOLE, rng=np.random.default_rng(0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(AssertionError):
            _checked_often(env)


def _checked_often(env: gym.Env[Any, Any]) -> None:
    for _ in range(10):
        check_env(env, skip_render_check=True)


TURNED = {"rotate": [[0, 1]]}
PLANE = spaces.Box(-10, 10, (2,), np.float64)
PLANE_AND_IMAGE = spaces.Dict({"plane": PLANE, "image": spaces.Box(0, 1, (2, 2), np.float64)})
BY_HAND = [
    (
        sc.Symmetry("plane", sc.groups.o(2), [TURNED, [1, -1]], [TURNED, [1, -1]]),
        PLANE,
        PLANE,
    ),
    (
        sc.Symmetry(
            "image and plane",
            sc.groups.product(C4, sc.groups.so(2)),
            [{"plane": TURNED}, {"image": "rot90"}],
            ["identity", [1, 2, 3, 0]],
        ),
        PLANE_AND_IMAGE,
        spaces.Discrete(4, start=2),
    ),
]


@pytest.mark.parametrize(("symmetry", "seen", "acted"), BY_HAND, ids=["O(2)", "C4 x SO(2)"])
def test_elements_of_rotations_and_discrete_generators_are_drawn_and_undone(
    symmetry: sc.Symmetry, seen: spaces.Space[Any], acted: spaces.Space[Any]
) -> None:
    class Shown(gym.Env[Any, Any]):
        observation_space, action_space = seen, acted
        taken: Any = None

        def reset(
            self, *, seed: int | None = None, options: dict[str, Any] | None = None
        ) -> tuple[Any, dict[str, Any]]:
            plane, image = np.array([3.0, 1.0]), np.array([[0.0, 0.1], [0.2, 0.3]])
            return plane if seen is PLANE else {"plane": plane, "image": image}, {}

        def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
            self.taken = action
            return self.reset()[0], 0.0, False, False, {}

    inner = Shown()
    env = RandomSymmetry(inner, symmetry, rng=np.random.default_rng(0))
    turned, corners, determinants = [], set(), set()
    for _ in range(40):
        obs, _ = env.reset()
        plane = obs if seen is PLANE else obs["plane"]
        turned.append(plane)
        angle = np.arctan2(plane[1], plane[0])
        np.testing.assert_allclose(np.hypot(*plane), np.sqrt(10))  # a rotation or reflection
        if seen is PLANE:
            action = np.array([0.5, 0.25])
            env.step(action)
            first, image = np.array([3.0, 1.0]), plane
            # The element that takes (3, 1) to the image is a turn or a turned reflection: undone in one of two ways.
            turn = angle - np.arctan2(*first[::-1])
            flip = angle + np.arctan2(*first[::-1])
            undone = [
                np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]]) @ action,
                np.array([[np.cos(flip), np.sin(flip)], [np.sin(flip), -np.cos(flip)]]) @ action,
            ]
            matches = [np.allclose(inner.taken, other) for other in undone]
            assert any(matches), image
            determinants.add(matches.index(True))
        else:
            quarter = next(k for k in range(4) if np.array_equal(np.rot90([[0.0, 0.1], [0.2, 0.3]], k), obs["image"]))
            env.step(np.int64(2))
            assert inner.taken == 2 + (-quarter) % 4
            corners.add(quarter)
    assert len({tuple(np.round(plane, 9)) for plane in turned}) == 40
    assert determinants == ({0, 1} if seen is PLANE else set())
    assert corners == (set() if seen is PLANE else {0, 1, 2, 3})
