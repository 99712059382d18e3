"""The paper's preprocessing once more, one game and one screen at a time, as the oracle of the vectorised pipeline."""

from typing import Any

import ale_py
import numpy as np
import pytest
from ale_py import roms

from symcheck.envs.atari import vector as pipeline
from symcheck.envs.atari.images import AtariImageEnv
from symcheck.envs.atari.machine import Machine
from symcheck.envs.atari.vector import AtariVector

pytestmark = pytest.mark.long

SWAPPED = {"pong": [0, 1, 3, 2, 5, 4], "breakout": [0, 1, 3, 2]}
FIRE = 1
BLACK = np.zeros((80, 80), dtype=np.uint8)


class Naive:
    """One game of one emulator; nothing of it is the package's."""

    def __init__(self, game: str):
        self.game = game
        self.ale = ale_py.ALEInterface()
        self.ale.setFloat("repeat_action_probability", 0.0)
        self.ale.loadROM(str(roms.get_rom_path(game)))
        self.actions = self.ale.getMinimalActionSet()

    def screen(self) -> np.ndarray:
        return np.array(self.ale.getScreenGrayscale()).reshape(210, 160)

    def image(self) -> np.ndarray:
        screen = self.shown.astype(int)
        if self.game == "breakout":
            screen[189:196, :8] = screen[189:196, 152:] = 0
        rows = screen[34:194]
        if self.game == "pong":
            small = rows[::2, ::2]
        else:
            small = (rows[::2, ::2] + rows[1::2, ::2] + rows[::2, 1::2] + rows[1::2, 1::2] + 2) // 4
        if self.reflected:
            small = small[::-1] if self.game == "pong" else small[:, ::-1]
        return small.astype(np.uint8)

    def start(self, noops: int, reflected: bool) -> np.ndarray:
        self.ale.reset_game()
        self.ale.act(self.actions[FIRE])
        for _ in range(noops):
            self.ale.act(self.actions[0])
        self.steps, self.serves, self.lives = 0, False, self.ale.lives()
        self.shown = self.third = self.screen()
        return self.next_episode(reflected)

    def next_episode(self, reflected: bool) -> np.ndarray:
        self.reflected = reflected
        self.images = [BLACK, BLACK, BLACK, self.image()]
        return np.array(self.images)

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool]:
        """The image, the score, and whether the game is over and a life lost."""
        if self.reflected:
            action = SWAPPED[self.game][action]
        if self.serves:
            action = FIRE
        score, fourth = 0.0, self.shown
        for frame in range(4):
            score += self.ale.act(self.actions[action])
            if self.ale.game_over():
                break  # ale-py's vectoriser looks at no further screen
            if frame == 2:
                self.third = self.screen()
            elif frame == 3:
                fourth = self.screen()
        self.shown = np.maximum(self.third, fourth)
        self.images = [*self.images[1:], self.image()]
        self.steps += 1
        over = self.ale.game_over()
        lost = not over and self.ale.lives() < self.lives
        self.lives, self.serves = self.ale.lives(), lost and self.game == "breakout"
        return np.array(self.images), score, over, lost


class Spied:
    """The vectoriser, whose count of frames since the last reset tells with how many no-ops a game began."""

    def __init__(self, emulators: Any):
        self.emulators = emulators

    def step(self, actions):
        return self.noted(self.emulators.step(actions))

    def reset(self, **arguments):
        return self.noted(self.emulators.reset(**arguments))

    def noted(self, answer):
        self.noops = answer[-1]["episode_frame_number"] - 1
        return answer


def followed(vector: AtariVector, steps: int, *, clips: bool, lives_end: bool, horizon: int) -> dict[str, int]:
    """Play at random and compare everything with naive games; how many games and episodes ended, by cause."""
    spy = vector._emulators = Spied(vector._emulators)
    game, count = vector.game.name, vector.num_envs
    shown, info = vector.reset(seed=3)
    naive = [Naive(game) for _ in range(count)]
    for at, one in enumerate(naive):
        assert np.array_equal(one.start(int(spy.noops[at]), bool(info["reflected"][at])), shown[at])
    ended = {"over": 0, "lost": 0, "truncated": 0}
    handed_out, as_they_were = [], []
    for actions in np.random.default_rng(0).integers(0, len(SWAPPED[game]), (steps, count)):
        shown, rewards, terminated, truncated, info = vector.step(actions)
        for at, one in enumerate(naive):
            image, score, over, lost = one.step(int(actions[at]))
            cut = one.steps >= horizon and not over
            assert info["score"][at] == score
            assert rewards[at] == (np.sign(score) if clips else score)
            assert terminated[at] == (over or (lost and lives_end))
            assert truncated[at] == cut
            assert info["game_over"][at] == (over or cut)
            if terminated[at] or cut:
                assert np.array_equal(info["final_obs"][at], image)
                way = bool(info["reflected"][at])
                image = one.start(int(spy.noops[at]), way) if over or cut else one.next_episode(way)
            assert np.array_equal(shown[at], image)
            assert info["lives"][at] == one.lives
            for cause, holds in (("over", over), ("lost", lost), ("truncated", cut)):
                ended[cause] += bool(holds)
        for array in (shown, rewards, terminated, truncated, *info.values()):
            handed_out.append(array)
            as_they_were.append(array.copy())
    for one, two in zip(handed_out, as_they_were, strict=True):
        assert np.array_equal(one, two)  # no buffer is used again
    return ended


@pytest.mark.parametrize(
    ("game", "steps", "arguments"),
    [
        ("breakout", 270, {"symmetrized": True}),
        ("breakout", 270, {"episodic_life": False, "clip_rewards": False}),
        ("breakout", 110, {"symmetrized": True, "horizon": 37}),
        ("pong", 60, {"symmetrized": True, "horizon": 25}),
        pytest.param("pong", 2_000, {"symmetrized": True, "horizon": 27_000}, marks=pytest.mark.slow),
        pytest.param("breakout", 2_000, {"symmetrized": True}, marks=pytest.mark.slow),
    ],
)
def test_whole_games_are_those_of_a_naive_pipeline(game: str, steps: int, arguments: dict):
    vector = AtariVector(game, 2, num_threads=2, **arguments)
    rules = {"clips": arguments.get("clip_rewards", True), "lives_end": arguments.get("episodic_life", True)}
    horizon = arguments.get("horizon", 27_000)
    ended = followed(vector, steps, **rules, horizon=horizon)
    assert (ended["truncated"] > 0) == (horizon < 100)
    assert ended["over"] > 0 or horizon < 100
    assert ended["lost"] > 0 or game == "pong"


def test_a_game_over_in_the_third_frame_of_a_step_ends_with_the_vectorisers_image():
    vector = AtariVector("breakout", 1, num_threads=1, episodic_life=False)
    _, info = vector.reset(seed=1)
    single = AtariImageEnv("breakout", episodic_life=False)
    single.reset(options={"noops": int(info["frames"][0]) - 1})
    policy, over = np.random.default_rng(80), False
    while not over:
        before = single.machine._ale.getEpisodeFrameNumber()
        action = int(policy.integers(4))
        _, _, terminated, _, info = vector.step(np.array([action]))
        image, _, over, _, _ = single.step(action)
        assert over == terminated[0]
    assert single.machine._ale.getEpisodeFrameNumber() - before == 3
    assert np.array_equal(image, info["final_obs"][0])


@pytest.mark.parametrize("drawn_by", ["machine", pytest.param("vectoriser", marks=pytest.mark.slow)])
def test_no_ops_are_0_to_28_and_0_is_drawn_twice_as_often(drawn_by: str):
    # ale-py draws 0 to 29 presses, of which fire, pressed in any case, is one
    if drawn_by == "machine":
        rng = np.random.default_rng(0)
        drawn = np.array([Machine.draw_noops(rng) for _ in range(1_000)])
    else:
        vector = AtariVector("pong", 40, num_threads=1)
        vector.reset(seed=0)
        drawn = np.concatenate([vector.reset()[1]["frames"] - 1 for _ in range(25)])
    assert set(drawn.tolist()) == set(range(29))
    # of 1,000 draws 67 zeros and 33 of each other number are expected, give or take three times 8 and 6
    assert 43 <= (drawn == 0).sum() <= 91
    assert 15 <= (drawn == 14).sum() <= 51


def test_the_number_of_threads_changes_nothing():
    one, two = (AtariVector("breakout", 2, num_threads=threads, symmetrized=True) for threads in (1, 2))
    assert np.array_equal(one.reset(seed=7)[0], two.reset(seed=7)[0])
    for actions in np.random.default_rng(0).integers(0, 4, (30, 2)):
        for a, b in zip(one.step(actions)[:4], two.step(actions)[:4], strict=True):
            assert np.array_equal(a, b)


def test_the_games_take_a_thread_for_each_core_that_the_process_may_use(monkeypatch: pytest.MonkeyPatch):
    threads = []
    monkeypatch.setattr(pipeline, "_vectoriser", lambda game, count, asked: threads.append(asked))
    monkeypatch.setattr("os.sched_getaffinity", lambda process: {3, 5, 7}, raising=False)
    for count, asked in ((2, 0), (20, 0), (20, 6)):
        AtariVector("pong", count, num_threads=asked)
    assert threads == [2, 3, 6]


def test_games_beyond_a_block_of_one_seed_are_restored_bit_for_bit(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pipeline, "_BLOCK", 2)
    first, second = (AtariVector("breakout", 1, num_threads=1, symmetrized=True, horizon=130) for _ in range(2))
    first.reset(seed=2)
    games, restored = [0], False
    while games[-1] < 3:  # the second block of seeds begins with the third game
        going_on = first.step(np.array([0]))
        games.append(int(first._played[0]))
        if restored:
            again = second.step(np.array([0]))
            assert all(np.array_equal(a, b) for a, b in zip(going_on[:4], again[:4], strict=True))
        elif games[-10:] == [1] * 10:
            second.restore(first.state())
            assert np.array_equal(first.observations, second.observations)
            restored = True
    assert restored


def test_games_that_were_begun_without_a_seed_are_restored_too():
    first, second = (AtariVector("pong", 2, num_threads=1) for _ in range(2))
    shown, _ = first.reset()
    second.reset(seed=0)
    second.restore(first.state())
    assert np.array_equal(second.observations, shown)
    for _ in range(20):
        assert np.array_equal(first.step(np.array([2, 3]))[0], second.step(np.array([2, 3]))[0])
