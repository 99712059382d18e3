"""Claims on environments whose state is built in: what holds passes, and one wrong entry of the state map fails."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.experimental.functional import FuncEnv

import symcheck_properties  # noqa: F401
from symcheck.engine.environments.runner import run_env
from symcheck.engine.options import EnvOptions
from symcheck.engine.results import PropertyResult
from symcheck.envs.state_access.carried import CarriedState, carried_over
from symcheck.envs.targets import resolve_environment
from symcheck.errors import MissingExtraError
from symcheck.groups import catalog
from symcheck.statements.statement import Statement
from symcheck.symmetry.symmetry import Symmetry

C2, C4 = catalog.cyclic(2), catalog.cyclic(4)


def judged(target: Any, symmetry: Symmetry, samples: int = 300, **kwargs: Any) -> dict[str, PropertyResult]:
    make = resolve_environment(target, env_kwargs=kwargs).make
    result = run_env(make, symmetry, options=EnvOptions(samples=samples), target="claimed", command="")
    return {one.name: one for one in result.properties}


def verdicts(results: dict[str, PropertyResult]) -> set[str]:
    return {one.verdict for one in results.values()}


def turned(state: Any) -> Any:
    """A MiniGrid state turned by a quarter, clockwise on the screen: (column, row) goes to (size - 1 - row, column)."""
    size = find_size(state)
    cells = np.asarray(state[9 : 9 + 5 * size * size]).reshape(size, size, 5)
    places = np.concatenate([state[:2], state[9 + 5 * size * size :]]).reshape(-1, 2)
    places = np.stack([size - 1 - places[:, 1], places[:, 0]], axis=1)
    image = state.copy()
    image[:2], image[2] = places[0], (state[2] + 1) % 4
    image[9 : 9 + 5 * size * size] = np.moveaxis(cells, 1, 0)[::-1].ravel()  # cell (i, j) moves to (size - 1 - j, i)
    image[9 + 5 * size * size :] = places[1:].ravel()
    return image


def find_size(state: Any) -> int:
    return int(((len(state) - 9) / 5) ** 0.5)


def turned_view(obs: Any) -> Any:
    return {**obs, "direction": np.int64((obs["direction"] + 1) % 4)}


TURN = Symmetry("turn", C4, [turned_view], [lambda a, obs: a], state=[turned], initial=False)


@pytest.mark.parametrize(
    "env_id",
    [
        "MiniGrid-Empty-Random-6x6-v0",
        "MiniGrid-DoorKey-6x6-v0",
        "MiniGrid-GoToDoor-6x6-v0",
        pytest.param("MiniGrid-MemoryS7-v0", marks=pytest.mark.slow),
        pytest.param("MiniGrid-PutNear-6x6-N2-v0", marks=pytest.mark.slow),
        pytest.param("MiniGrid-Dynamic-Obstacles-Random-6x6-v0", marks=pytest.mark.slow),
    ],
)
def test_a_turned_grid_world_is_the_same_world_to_its_agent(env_id: str) -> None:
    pytest.importorskip("minigrid")
    results = judged(env_id, TURN)
    assert verdicts(results) == {"passed"}, results


def test_turning_the_grid_without_the_agent_s_direction_fails() -> None:
    pytest.importorskip("minigrid")

    def half_turned(state: Any) -> Any:
        image = turned(state)
        image[2] = state[2]
        return image

    claim = Symmetry("turn", C4, [lambda obs: obs], [lambda a, obs: a], state=[half_turned], initial=False)
    assert judged("MiniGrid-DoorKey-6x6-v0", claim)["transition_invariance"].verdict == "failed"


def lander_map() -> dict[str, Any]:
    """x to 20 - x for the three bodies, legs exchanged, ground reversed; see `state_access.box2d`."""
    matrix, offset = np.zeros((33, 33)), np.zeros(33)
    signs = np.array([-1, 1, -1, -1, 1, -1])
    for image, source in ((0, 0), (1, 2), (2, 1)):
        matrix[range(6 * image, 6 * image + 6), range(6 * source, 6 * source + 6)] = signs
        offset[6 * image] = 20
    matrix[[18, 19, 20, 21], [19, 18, 20, 21]] = [1, 1, -1, -1]
    matrix[range(22, 33), range(32, 21, -1)] = 1
    return {"matrix": matrix, "offset": offset}


LANDER = ["-1", "+2", "-3", "+4", "-5", "-6", "+8", "+7"]


@pytest.mark.long
def test_a_mirrored_lander_lands_mirrored() -> None:
    pytest.importorskip("Box2D")
    claim = Symmetry("mirror", C2, [LANDER], [[0, 3, 2, 1]], state=[lander_map()])
    assert verdicts(judged("LunarLander-v3", claim, samples=600)) == {"proved", "passed"}


@pytest.mark.long
def test_a_mirrored_lander_whose_contacts_are_not_exchanged_fails() -> None:
    pytest.importorskip("Box2D")
    wrong = lander_map()
    wrong["matrix"][18:20, 18:20] = np.eye(2)  # the legs change places, their contacts do not
    claim = Symmetry("mirror", C2, [[*LANDER[:6], "+7", "+8"]], [[0, 3, 2, 1]], state=[wrong])
    assert judged("LunarLander-v3", claim, samples=600)["transition_invariance"].verdict == "failed"


@pytest.mark.slow
def test_the_legs_of_bipedalwalker_cannot_be_exchanged_because_their_hips_differ() -> None:
    pytest.importorskip("Box2D")
    legs = [*range(4), *range(9, 14), *range(4, 9), *range(14, 24)]
    bodies = [*range(6), *range(18, 30), *range(6, 18), 31, 30]
    claim = Symmetry("legs", C2, [legs], [[2, 3, 0, 1]], state=[bodies], initial=False)
    failed = judged("BipedalWalker-v3", claim, samples=60)["transition_invariance"]
    assert failed.verdict == "failed"
    # Box2D measures the two hips from -0.05 and +0.05, the angles of the bodies when they are joined.
    env = gym.make("BipedalWalker-v3", disable_env_checker=True).unwrapped
    env.reset(seed=0)
    assert [round(env.joints[i].GetReferenceAngle(), 6) for i in (0, 2)] == [-0.05, 0.05]


class Walk(FuncEnv):  # type: ignore[misc]
    """A walk on the integers in Gymnasium's functional form; `limit` ends it on the right."""

    observation_space = gym.spaces.Box(-99, 99, (1,), np.float64)
    action_space = gym.spaces.Discrete(2)
    limit = 5

    def initial(self, rng: Any, params: Any = None) -> Any:
        return np.array([float(rng.integers(-1, 2))])

    def transition(self, state: Any, action: Any, rng: Any, params: Any = None) -> Any:
        return state + (1 if action else -1)

    def observation(self, state: Any, rng: Any, params: Any = None) -> Any:
        return state.copy()

    def reward(self, state: Any, action: Any, next_state: Any, rng: Any, params: Any = None) -> float:
        return -float(abs(next_state[0]))

    def terminal(self, state: Any, rng: Any, params: Any = None) -> bool:
        return bool(state[0] >= self.limit or state[0] <= -5)


@pytest.mark.parametrize("target", [Walk(), Walk, lambda: Walk()], ids=["instance", "class", "factory"])
def test_functional_environments_are_given_a_state_and_checked(target: Any) -> None:
    flip = Symmetry("flip", C2, [[-1]], [[1, 0]])
    assert verdicts(judged(target, flip)) == {"proved", "passed"}


def test_a_functional_environment_that_ends_earlier_on_one_side_fails() -> None:
    flip = Symmetry("flip", C2, [[-1]], [[1, 0]])
    results = judged(Walk({"limit": 4}), flip)
    assert results["termination_invariance"].verdict == "failed"
    assert results["transition_invariance"].verdict == "passed"


def test_toy_text_can_be_set_where_a_wrapper_hides_its_table() -> None:
    def wrapped() -> gym.Env[Any, Any]:
        lake = gym.make("FrozenLake-v1", desc=["SFF", "FHF", "FFG"], is_slippery=False, disable_env_checker=True)
        return gym.wrappers.TransformReward(lake, lambda r: 2 * r)

    transpose = Symmetry("transpose", C2, [[3 * (i % 3) + i // 3 for i in range(9)]], [[3, 2, 1, 0]])
    results = judged(wrapped, transpose)
    assert results["transition_invariance"].method == "paired"
    assert verdicts(results) == {"passed", "proved"}


def test_a_claim_that_moves_nothing_finds_no_violation_where_states_are_set_and_is_undecided() -> None:
    same = Symmetry("none", C2, [lambda obs: obs], [lambda a, obs: a])

    def wrapped() -> gym.Env[Any, Any]:
        return gym.wrappers.TransformReward(gym.make("CliffWalking-v1", disable_env_checker=True), lambda r: 2 * r)

    results = judged(wrapped, same)
    assert results.pop("group_axioms").verdict == "passed"
    for result in results.values():
        assert (result.verdict, result.violations, result.reason) == ("undecided", 0, Statement("nothing_moves"))
        assert result.checked > 100


@pytest.mark.long
def test_blackjack_is_set_by_both_hands() -> None:
    def fours_and_sixes_for_fives(hands: Any) -> Any:
        """Cards are drawn with replacement: hands of one sum are one state to the rules."""
        exchanged = {(1, 0, 1): (0, 2, 0), (0, 2, 0): (1, 0, 1)}
        image = hands.copy()
        image[3:6] = exchanged.get(tuple(int(count) for count in hands[3:6]), hands[3:6])
        return image

    right = Symmetry("cards", C2, [lambda obs: obs], [lambda a, obs: a], state=[fours_and_sixes_for_fives])
    assert verdicts(judged("Blackjack-v1", right)) == {"passed"}

    def ace_for_ten(hands: Any) -> Any:
        image = hands.copy()
        image[[0, 9]] = hands[[9, 0]]
        return image

    wrong = Symmetry("cards", C2, [lambda obs: obs], [lambda a, obs: a], state=[ace_for_ten])
    assert judged("Blackjack-v1", wrong)["observation_equivariance"].verdict == "failed"


def test_pong_s_ram_is_set_and_a_ball_that_flies_elsewhere_is_seen() -> None:
    ball = 49

    def mirrored(ram: Any) -> Any:
        image = ram.copy()
        image[ball] = (205 + 49 - int(ram[ball])) % 256
        return image

    claim = Symmetry("flip", C2, [mirrored], [lambda a, obs: a], state=[mirrored], initial=False)
    kwargs = {"obs_type": "ram", "frameskip": 1, "repeat_action_probability": 0.0}
    results = judged("ALE/Pong-v5", claim, samples=60, **kwargs)
    assert results["transition_invariance"].verdict == "failed"


def test_jax_environments_are_set_and_checked() -> None:
    pytest.importorskip("jax")
    pytest.importorskip("flax")
    mirror = Symmetry("mirror", C2, [[-1] * 4], [[1, 0]])
    assert verdicts(judged("phys2d/CartPole-v1", mirror, samples=100)) == {"proved", "passed"}


def test_the_package_of_an_id_is_imported_or_named(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("minigrid")
    assert resolve_environment("MiniGrid-Empty-5x5-v0").env_id == "MiniGrid-Empty-5x5-v0"
    import symcheck.envs.targets as targets

    monkeypatch.setitem(targets._PACKAGES, "NoSuchGrid-", ("no_such_package", "minigrid"))
    with pytest.raises(MissingExtraError, match=r"NoSuchGrid-5x5-v0 needs the optional extra 'minigrid'"):
        resolve_environment("NoSuchGrid-5x5-v0")


def test_a_state_keeps_the_rest_of_its_world_through_arithmetic_and_copies() -> None:
    state = CarriedState(np.arange(4.0), rest="registers")
    for image in (state.copy(), state[::-1], -state, carried_over(np.zeros(4), state)):
        assert image.rest == "registers"
    assert carried_over("no array", state) == "no array"
    assert not hasattr(carried_over(np.zeros(4), np.zeros(4)), "rest")
