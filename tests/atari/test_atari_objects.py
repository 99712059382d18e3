import numpy as np
import pytest

from reference_agents.atari.evidence import Part, measure
from symcheck.envs.atari.games import GAMES
from symcheck.envs.atari.machine import Machine
from symcheck.envs.atari.objects import BALL, OPPONENT, PADDLE, STATE_SIZE, PongObjectsEnv, SettablePongEnv
from symcheck.errors import OptionError, TargetError


@pytest.fixture(scope="module")
def env() -> SettablePongEnv:
    made = SettablePongEnv()
    made.reset(seed=0)
    return made


def play(env: SettablePongEnv, steps: int, seed: int) -> list[dict]:
    rng = np.random.default_rng(seed)
    return [env.step(int(rng.integers(6)))[0] for _ in range(steps)]


def same(one: list[dict], two: list[dict]) -> bool:
    return all(np.array_equal(a[k], b[k]) for a, b in zip(one, two, strict=True) for k in a)


def test_a_state_that_is_set_goes_on_as_the_game_did(env: SettablePongEnv):
    for seed in range(4):
        play(env, 17, seed)
        state = env.get_state()
        reached = play(env, 25, seed + 10)
        play(env, 5, seed + 20)
        env.set_state(state)
        assert np.array_equal(env.get_state(), state)
        assert same(play(env, 25, seed + 10), reached)


def test_a_state_that_is_set_pays_what_the_game_paid(env: SettablePongEnv):
    env.reset(seed=0)
    rng = np.random.default_rng(0)
    met = []
    for _ in range(500):
        state, action = env.get_state(), int(rng.integers(6))
        met.append((state, action, env.step(action)[1]))
    other = SettablePongEnv()
    other.reset(seed=5)
    again = []
    for state, action, _ in met:
        other.set_state(state)
        again.append(other.step(action)[1])
    paid = [reward for _, _, reward in met]
    assert again == paid
    assert sum(reward != 0 for reward in paid) > 3


def test_positions_are_rows_from_the_axis_as_the_screen_shows_them(env: SettablePongEnv):
    env.reset(seed=1)
    checked = 0
    for seed in range(3):
        seen = play(env, 15, seed)[-1]
        screen = env.machine.screen()[34:194]
        opponent = np.flatnonzero(screen[:, 17] == screen[:, 17].max())
        ball = np.argwhere(screen[:, 24:136] == 236)
        if len(opponent) == 16:
            assert opponent.mean() + 34 - 113 == pytest.approx(seen["opponent"][0], abs=1)
        if len(ball) == 8 and seen["ball"].any():
            # the screen lags the memory by one frame of at most four rows
            assert ball[:, 0].mean() + 34 - 113 == pytest.approx(seen["ball"][0], abs=4)
            checked += 1
    assert checked


def test_the_reflected_state_shows_the_reflected_observation(env: SettablePongEnv):
    env.reset(seed=2)
    play(env, 30, 0)
    state = env.get_state()
    before = env._observe(env.machine.screen(), afresh=True)
    state[:7] *= -1
    env.set_state(state)
    after = env._observe(env.machine.screen(), afresh=True)
    # memory holds whole numbers, so that an axis between two of them costs nothing and one on a number half a row
    assert np.allclose(after["ball"], before["ball"] * [-1, 1, -1, 1])
    assert np.allclose(after["opponent"], -before["opponent"])
    assert np.allclose(after["paddle"], -before["paddle"])


def test_a_ball_that_is_not_there_stays_away_in_the_reflected_state(env: SettablePongEnv):
    env.reset(seed=3, options={"noops": 0})
    state = env.get_state()
    assert not env.machine.ram()[BALL]
    state[:7] *= -1
    env.set_state(state)
    assert env.machine.ram()[BALL] == 0
    assert not play(env, 1, 0)[0]["ball"].any()


def test_a_knob_beyond_its_range_is_stopped_there(env: SettablePongEnv):
    state = env.get_state()
    state[6] = 1e6
    env.set_state(state)
    assert env.machine.knob == 790_196


def test_a_state_of_another_size_is_refused(env: SettablePongEnv):
    with pytest.raises(OptionError, match=rf"expected a state of shape \({STATE_SIZE},\), got \(3,\)"):
        env.set_state(np.zeros(3))


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_a_state_that_is_not_finite_is_refused_with_its_place(env: SettablePongEnv, number: float):
    state = env.get_state()
    state[9] = number
    with pytest.raises(OptionError, match=f"expected finite numbers, got {number} at index 9"):
        env.set_state(state)


def test_a_symmetrised_game_shows_reflected_numbers_and_has_no_state_to_set():
    with pytest.raises(OptionError, match="does not contain its current orientation"):
        SettablePongEnv(symmetrized=True)
    hidden = PongObjectsEnv(symmetrized=True)
    assert not hasattr(hidden, "set_state")
    plain = PongObjectsEnv()
    for seed in range(20):
        seen, info = hidden.reset(seed=seed, options={"noops": 5})
        if info["reflected"]:
            break
    shown = plain.reset(seed=0, options={"noops": 5})[0]
    assert np.array_equal(seen["opponent"], -shown["opponent"])
    swap = plain.game.swapped
    for action in (2, 4, 3, 0, 5) * 6:
        seen, shown = hidden.step(swap[action])[0], plain.step(action)[0]
    assert np.array_equal(seen["ball"], shown["ball"] * np.array([-1, 1, -1, 1], dtype=np.float32))
    assert np.array_equal(seen["paddle"], -shown["paddle"])


@pytest.fixture(scope="module")
def pong() -> dict[str, Part]:
    return {part.name: part for part in measure("pong", samples=60, seed=1)}


@pytest.fixture(scope="module")
def breakout() -> dict[str, Part]:
    return {part.name: part for part in measure("breakout", samples=60, seed=1)}


@pytest.mark.parametrize("game", ["pong", "breakout"])
def test_the_ball_flies_alike_in_every_pair(game: str, request: pytest.FixtureRequest):
    flight = request.getfixturevalue(game)["ball in flight"]
    assert flight.checked > 20
    assert flight.exact == flight.checked


@pytest.mark.parametrize(
    ("part", "least"), [("opponent's paddle", 8), ("serve", 5), ("player's reach", 3), ("opponent's returns", 1)]
)
def test_what_breaks_pong_is_found_with_its_size(part: str, least: float, pong: dict[str, Part]):
    assert pong[part].exact < pong[part].checked
    assert pong[part].size >= least


def test_the_players_paddle_is_alike_in_most_steps(pong: dict[str, Part]):
    assert pong["player's paddle"].exact > 0.6 * pong["player's paddle"].checked


def test_breakouts_serve_depends_on_the_frame_and_begins_every_game_alike(breakout: dict[str, Part]):
    serve = breakout["serve"]
    assert (serve.checked, serve.exact, serve.size) == (60, 0, 126)
    assert "column 80 right, column 142 left, column 16 right, column 78 left;" in serve.text
    assert serve.text.endswith("a game's first always column 78 left")


def test_breakouts_paddle_reaches_eight_columns_further_on_one_side(breakout: dict[str, Part]):
    assert breakout["paddle's reach"].size == 8


@pytest.mark.parametrize(
    ("game", "own", "other"), [("pong", "every_second", "means"), ("breakout", "means", "every_second")]
)
def test_each_games_own_reduction_commutes_with_its_axis_and_the_other_does_not(
    game: str, own: str, other: str, request: pytest.FixtureRequest
):
    parts = request.getfixturevalue(game)
    assert parts[f"reduction {own}"].exact == 60
    assert parts[f"reduction {other}"].exact < 50


def test_evidence_about_an_unknown_game_or_of_no_samples_is_refused():
    with pytest.raises(TargetError, match="unknown game 'ponk'"):
        measure("ponk")
    with pytest.raises(OptionError, match="expected 1 sample or more, got 0"):
        measure("pong", samples=0)


def test_memory_bytes_are_where_the_docstring_says(env: SettablePongEnv):
    env.reset(seed=4)
    before = env.machine.ram()
    for _ in range(20):
        env.step(2)
    up = env.machine.ram()
    for _ in range(20):
        env.step(3)
    down = env.machine.ram()
    assert up[PADDLE] < before[PADDLE] < down[PADDLE]
    assert 20 <= int(down[OPPONENT]) <= 210


@pytest.mark.parametrize("game", ["pong", "breakout"])
def test_a_game_started_from_the_saved_beginning_is_a_game_after_a_real_reset(game: str):
    reset, loaded = Machine(GAMES[game]), Machine(GAMES[game])
    rng = np.random.default_rng(0)
    for noops in (3, 17, 8):
        reset._fresh = None  # so that it really resets
        reset.start(noops)
        loaded.start(noops)
        for action in rng.integers(len(GAMES[game].actions), size=250).tolist():
            assert reset.act(action) == loaded.act(action)
            assert (reset.lives, reset.over) == (loaded.lives, loaded.over)
            assert np.array_equal(reset.ram(), loaded.ram())
        assert np.array_equal(reset.screen(), loaded.screen())
