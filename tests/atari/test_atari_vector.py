import functools

import gymnasium as gym
import numpy as np
import pytest

from symcheck.envs.atari.checks import spread_seeds as spread
from symcheck.envs.atari.images import AtariImageEnv
from symcheck.envs.atari.vector import AtariVector
from symcheck.envs.atari.vector import _is_reflected as is_reflected
from symcheck.errors import OptionError, TargetError


@functools.cache  # every test resets what it gets; emulators take a while to load
def games(name: str, count: int, **arguments) -> AtariVector:
    return another(name, count, **arguments)


def another(name: str, count: int, **arguments) -> AtariVector:
    return AtariVector(name, count, num_threads=1, **arguments)


def actions(vector: AtariVector, steps: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, vector.single_action_space.n, (steps, vector.num_envs))


@pytest.mark.parametrize(("name", "symmetrized"), [("pong", False), ("breakout", True)])
def test_the_vectorised_pipeline_shows_what_a_single_emulator_shows(name: str, symmetrized: bool):
    vector = games(name, 2, symmetrized=symmetrized)
    shown, info = vector.reset(seed=5)
    singles = []
    for at in range(2):
        env = AtariImageEnv(name)
        env._symmetrized = False
        seen, _ = env.reset(seed=0, options={"noops": int(info["frames"][at]) - 1})
        env._reflected = bool(info["reflected"][at])
        seen = np.flip(seen, env._axis) if env._reflected else seen
        assert np.array_equal(shown[at], seen)
        env._stack.frames[0] = seen
        singles.append(env)
    ended = 0
    for row in actions(vector, 160):
        shown, rewards, terminated, truncated, info = vector.step(row)
        for at, env in enumerate(singles):
            seen, reward, term, trunc, single = env.step(row[at])
            assert (reward, term, trunc) == (rewards[at], terminated[at], truncated[at])
            last = info["final_obs"] if term else shown
            assert np.array_equal(last[at], seen)
            if info["game_over"][at]:
                return
            assert single["lives"] == info["lives"][at]
            if term:
                ended += 1
                env._goes_on = False
                env._reflected = bool(info["reflected"][at])
                assert np.array_equal(env._observe(env._shown, afresh=True), shown[at])
    assert ended > 0 or name == "pong"


def test_a_symmetrised_pong_plays_some_games_reflected_and_some_not():
    drawn = [is_reflected(seed, game, 5) for seed in range(100) for game in range(10)]
    assert 450 <= sum(drawn) <= 550  # three deviations of 1,000 fair coins are 47
    vector = games("pong", 2, symmetrized=True)
    reflected = vector.reset(seed=1)[1]["reflected"]
    assert reflected.tolist() == [is_reflected(seed, 0, 0) for seed in spread(1, 2)]


def test_each_life_of_a_symmetrised_game_is_drawn_anew():
    # episodes of one game that were all the same way round would not be independent
    vector = games("breakout", 2, symmetrized=True)
    seen = {bool(one) for one in vector.reset(seed=1)[1]["reflected"]}
    for row in actions(vector, 300):
        _, _, terminated, _, info = vector.step(row)
        seen |= {bool(one) for one in info["reflected"][terminated]}
    assert seen == {True, False}
    single = AtariImageEnv("breakout", symmetrized=True)
    ways = set()
    single.reset(seed=0)
    for _ in range(12):
        while not single.step(0)[2]:
            pass
        ways.add(single.reset()[1]["reflected"])
    assert ways == {True, False}


def test_a_plain_pong_is_never_reflected():
    assert not games("pong", 2).reset(seed=1)[1]["reflected"].any()


def test_a_reflected_game_shows_the_flipped_images_of_the_same_game_under_swapped_actions():
    plain, mirrored = games("pong", 2), games("pong", 2, symmetrized=True)
    plain.reset(seed=1)
    mirrored.reset(seed=1)
    mirrored._reflected[:] = True
    mirrored._stacks.frames[:] = np.flip(plain._stacks.frames, -2)
    swap = np.array(plain.game.swapped)
    for row in actions(plain, 60):
        one, two = plain.step(row), mirrored.step(swap[row])
        assert np.array_equal(np.flip(one[0], -2), two[0])
        assert np.array_equal(one[1], two[1])


@pytest.mark.parametrize("name", ["breakout", pytest.param("pong", marks=pytest.mark.slow)])
def test_a_restored_state_goes_on_bit_for_bit(name: str):
    first = games(name, 2, symmetrized=True, horizon=90)
    first.reset(seed=2)
    for row in actions(first, 150):
        first.step(row)
    second = another(name, 2, symmetrized=True, horizon=90)
    second.reset(seed=99)
    second.restore(first.state())
    for row in actions(first, 110, seed=1):
        one, two = first.step(row), second.step(row)
        assert all(np.array_equal(a, b) for a, b in zip(one[:4], two[:4], strict=True))
        assert np.array_equal(one[4]["lives"], two[4]["lives"])


def test_a_seed_repeats_every_game_and_another_seed_does_not():
    vector = games("pong", 2)
    frames = [vector.reset(seed=seed)[1]["frames"].tolist() for seed in (3, 3, 4)]
    assert frames[0] == frames[1] != frames[2]


def test_no_two_environments_share_a_stream():
    assert len(set(spread(0, 16))) == 16


def test_a_game_is_truncated_at_the_horizon_and_a_new_one_begins():
    vector = games("pong", 2, horizon=5)
    vector.reset(seed=0)
    for step in range(5):
        _, _, terminated, truncated, info = vector.step(np.zeros(2, dtype=int))
        assert truncated.tolist() == [step == 4] * 2
    assert not terminated.any()
    assert info["final_obs"].any()
    assert vector._elapsed.tolist() == [0, 0]


def test_a_lost_life_ends_the_episode_and_not_the_game():
    vector = games("breakout", 1)
    vector.reset(seed=0)
    for _ in range(120):
        shown, _, terminated, _, info = vector.step(np.array([0]))
        if terminated[0]:
            break
    assert terminated[0]
    assert not info["game_over"][0]
    assert info["lives"][0] == 4
    assert not shown[0, :3].any()
    assert shown[0, 3].any()


def test_the_first_action_of_a_later_life_is_fire_whatever_was_asked_for():
    vector = games("breakout", 1)
    vector.reset(seed=0)
    asked = np.array([3])
    assert vector._translate_actions(asked).tolist() == [3]
    while not vector.step(np.array([0]))[2][0]:
        pass
    assert vector._translate_actions(asked).tolist() == [vector.game.fire]
    vector.step(asked)
    assert vector._translate_actions(asked).tolist() == [3]


def test_without_episodic_lives_only_the_game_over_ends_an_episode():
    vector = games("breakout", 1, episodic_life=False)
    vector.reset(seed=0)
    lives = []
    for row in actions(vector, 1200):
        _, _, terminated, _, info = vector.step(row)
        lives.append(int(info["lives"][0]))
        if terminated[0]:
            break
    assert terminated[0]
    assert min(lives) == 1


def test_rewards_are_signs_and_the_score_is_what_the_game_gave():
    vector = games("breakout", 2)
    vector.reset(seed=0)
    seen = set()
    for row in actions(vector, 300):
        _, rewards, _, _, info = vector.step(row)
        assert np.array_equal(rewards, np.sign(info["score"]))
        seen.update(info["score"].tolist())
    assert seen >= {0.0, 1.0}


def test_observations_are_not_overwritten_by_later_steps():
    vector = games("pong", 2)
    first = vector.reset(seed=0)[0]
    kept = first.copy()
    for row in actions(vector, 30):
        vector.step(row)
    assert np.array_equal(first, kept)


def test_observations_lie_in_the_declared_space():
    vector = games("pong", 2)
    assert vector.observation_space.contains(vector.reset(seed=0)[0])
    assert vector.observation_space.contains(vector.step(np.array([2, 3]))[0])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([0], r"expected an integer array of shape \(2,\), got an array of shape \(1,\)"),
        ([0.0, 1.0], "dtype float64"),
        ([0, 6], r"expected actions from 0 to 5, got \[0, 6\]"),
    ],
)
def test_actions_that_cannot_be_used_are_refused(given: list[float], message: str):
    vector = games("pong", 2)
    vector.reset(seed=0)
    with pytest.raises(OptionError, match=message):
        vector.step(np.array(given))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"game": "tennis"}, "unknown game 'tennis'"),
        ({"num_envs": 0}, "num_envs: expected 1 or more, got 0"),
        ({"horizon": 0}, "horizon: expected 1 or more"),
        ({"num_envs": 2.5}, r"num_envs: expected a whole number, 1 or more, got 2\.5"),
        ({"horizon": "9"}, "horizon: expected a whole number, 1 or more, got '9'"),
        ({"num_threads": -1}, "num_threads: expected 0 or more, got -1"),
        ({"reduction": "crop"}, "expected 'every_second' or 'means', got 'crop'"),
    ],
)
def test_options_that_cannot_be_used_are_refused(arguments: dict, message: str):
    with pytest.raises((OptionError, TargetError), match=message):
        AtariVector(**arguments)


@pytest.mark.parametrize(
    ("seed", "message"),
    [
        ([1, 2, 3], "expected one seed, or 2, got 3"),
        (-1, "seed: expected 0 or more, got -1"),
        ([-1, 2], "seed: expected 0 or more, got -1"),
        (0.5, r"seed: expected a whole number, 0 or more, got 0\.5"),
        ([0.5, 2], r"seed: expected a whole number, 0 or more, got 0\.5"),
        ("ab", "seed: expected a whole number, 0 or more, got 'ab'"),
    ],
)
def test_seeds_that_cannot_be_used_are_refused(seed, message: str):
    with pytest.raises(OptionError, match=message):
        games("pong", 2).reset(seed=seed)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"games": [b""]}, "expected the state of 2 environments, got 1"),
        ({"game": "breakout"}, "expected a state with game = 'pong', got 'breakout'"),
        ({"symmetrized": True}, "expected a state with symmetrized = False, got True"),
        ({"games": [b"\x06", b""]}, "actions at most 5; got 1 steps and actions up to 6"),
        ({"games": [bytes(27_000), b""]}, "games must have fewer than 27,000 steps"),
    ],
)
def test_states_of_other_environments_are_refused_and_the_games_go_on(changes: dict, message: str):
    vector = games("pong", 2)
    vector.reset(seed=0)
    with pytest.raises(TargetError, match=message):
        vector.restore({**vector.state(), **changes})
    assert vector.step(np.array([0, 0]))[0].any()


@pytest.mark.parametrize("state", [{"seeds": [1, 2]}, None, b"pickled"])
def test_what_is_no_state_is_refused(state):
    with pytest.raises(TargetError, match="expected a value returned by `state`, with seeds, played, games, got"):
        games("pong", 2).restore(state)


def test_a_state_that_an_earlier_version_wrote_is_restored():
    vector = games("pong", 2)
    shown, _ = vector.reset(seed=6)
    old = {key: vector.state()[key] for key in ("seeds", "played", "games")}
    vector.reset(seed=7)
    vector.restore(old)
    assert np.array_equal(vector.observations, shown)


def test_games_that_have_not_begun_or_are_closed_cannot_go_on():
    vector = another("pong", 1)
    for use in (lambda: vector.step(np.array([0])), vector.state, lambda: vector.restart(np.array([True]))):
        with pytest.raises(TargetError, match=r"the games have not been reset yet\. Call reset first"):
            use()
    vector.close()
    with pytest.raises(TargetError, match="the emulators have been closed"):
        vector.reset()


def test_only_games_that_are_named_are_abandoned():
    vector = games("pong", 2)
    vector.reset(seed=0)
    before = vector.step(np.array([2, 3]))[0]
    assert np.array_equal(vector.restart(np.array([False, False])), before)
    after = vector.restart(np.array([False, True]))
    assert np.array_equal(after[0], before[0])
    assert not after[1, :3].any()
    for wrong in ([True], [0, 1]):
        with pytest.raises(OptionError, match=r"expected truth values of shape \(2,\)"):
            vector.restart(np.array(wrong))


@pytest.mark.parametrize("action", [6, -1, 1.0, "up", None])
def test_an_action_that_the_single_environment_has_not_is_refused(action):
    env = AtariImageEnv("pong")
    env.reset(seed=0)
    with pytest.raises(OptionError, match="action: expected"):
        env.step(action)


@pytest.mark.parametrize("noops", [-1, 30, 1.5, "a"])
def test_no_ops_that_cannot_be_played_are_refused(noops):
    with pytest.raises(OptionError, match=r"options\['noops'\]: expected .*0 to 29, got"):
        AtariImageEnv("pong").reset(options={"noops": noops})


@pytest.mark.parametrize("env_id", ["symcheck/SymmetrizedBreakout-v0"])
def test_registered_environments_pass_gymnasiums_own_checker(env_id: str):
    from gymnasium.utils.env_checker import check_env

    import symcheck  # noqa: F401 - registers the ids

    env = gym.make(env_id)
    check_env(env.unwrapped, skip_render_check=True)
    env.close()


def test_a_reflected_game_is_rendered_reflected():
    env = AtariImageEnv("pong", symmetrized=True, render_mode="rgb_array")
    for seed in range(20):
        _, info = env.reset(seed=seed)
        if info["reflected"]:
            break
    assert info["reflected"]
    assert np.array_equal(env.render(), env.machine.colours()[::-1])
