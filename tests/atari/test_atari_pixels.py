import sys

import numpy as np
import pytest

from reference_agents.atari.evidence import measure
from symcheck.envs.atari.games import GAMES, find_game, rom_path
from symcheck.envs.atari.images import AtariImageEnv
from symcheck.envs.atari.pixels import FrameStacks, field, observe, reduce_field
from symcheck.envs.atari.vector import AtariVector
from symcheck.errors import TargetError


def screens(count: int = 3) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (count, 210, 160), dtype=np.uint8)


def test_the_field_is_rows_34_to_193():
    given = screens()
    assert np.array_equal(field(given), given[:, 34:194])


def test_every_second_row_and_column_is_kept():
    given = screens()
    reduced = reduce_field(field(given), "every_second")
    assert reduced.shape == (3, 80, 80)
    assert np.array_equal(reduced, given[:, 34:194:2, ::2])


def test_means_round_halves_up():
    given = screens()
    exact = field(given).reshape(3, 80, 2, 80, 2).mean(axis=(2, 4))
    assert np.array_equal(reduce_field(field(given), "means"), np.floor(exact + 0.5).astype(np.uint8))


def test_the_flip_of_every_second_row_is_r_to_226_minus_r_of_the_screen():
    given = screens()
    reflected = np.zeros_like(given)
    rows = np.arange(34, 193)
    reflected[:, 226 - rows] = given[:, rows]
    kept = reduce_field(field(reflected), "every_second")
    flipped = np.flip(reduce_field(field(given), "every_second"), -2)
    assert np.array_equal(kept[:, :79], flipped[:, :79])  # row 192, the last one, comes from row 34, the first


@pytest.mark.parametrize("axis", [-2, -1])
def test_the_flip_of_means_is_the_flip_of_the_full_field(axis: int):
    given = field(screens())
    flipped = np.flip(given, axis)
    assert np.array_equal(reduce_field(flipped, "means"), np.flip(reduce_field(given, "means"), axis))


def test_the_flip_of_every_second_column_is_not_the_flip_of_the_full_field():
    given = field(screens())
    reduced = reduce_field(np.flip(given, -1), "every_second")
    assert not np.array_equal(reduced, np.flip(reduce_field(given, "every_second"), -1))


def test_breakouts_corners_are_painted_black_and_nothing_else_is():
    given = np.full((1, 210, 160), 9, dtype=np.uint8)
    observe(given, GAMES["breakout"], "means")
    black = np.argwhere(given[0] == 0)
    assert {tuple(row) for row in black} == {(r, c) for r in range(189, 196) for c in (*range(8), *range(152, 160))}


def test_pongs_screen_is_not_painted():
    given = np.full((1, 210, 160), 9, dtype=np.uint8)
    assert observe(given, GAMES["pong"], "every_second").min() == 9


def test_stacks_hold_the_last_four_frames_oldest_first():
    stacks = FrameStacks(2)
    for value in range(1, 7):
        stacks.push(np.full((2, 80, 80), value, dtype=np.uint8))
    assert stacks.frames[1, :, 0, 0].tolist() == [3, 4, 5, 6]


def test_a_stack_that_restarts_is_black_before_its_first_frame_and_leaves_the_others():
    stacks = FrameStacks(2)
    for value in range(1, 5):
        stacks.push(np.full((2, 80, 80), value, dtype=np.uint8))
    stacks.restart(np.array([False, True]), np.full((2, 80, 80), 9, dtype=np.uint8))
    assert stacks.frames[:, :, 5, 5].tolist() == [[1, 2, 3, 4], [0, 0, 0, 9]]


@pytest.mark.parametrize("shape", [(210, 159), (3, 80, 80), (210,)])
def test_screens_of_another_shape_are_refused_with_both_shapes(shape: tuple[int, ...]):
    with pytest.raises(TargetError, match=r"expected grey screens \(\.\.\., 210, 160\) of uint8, got shape"):
        field(np.zeros(shape, dtype=np.uint8))


def test_screens_of_floats_are_refused():
    with pytest.raises(TargetError, match="of float64"):
        field(np.zeros((210, 160)))


def test_an_unknown_game_is_refused_with_the_nearest_name():
    with pytest.raises(TargetError, match=r"unknown game 'ponk'\. Did you mean 'pong'\?"):
        find_game("ponk")


def test_a_missing_rom_names_the_file_and_the_folder(monkeypatch: pytest.MonkeyPatch):
    from ale_py import roms

    monkeypatch.setattr(roms, "get_rom_path", lambda name: None)
    with pytest.raises(TargetError, match=r"the ROM pong\.bin, which is part of ale-py, is missing from .*roms"):
        rom_path(GAMES["pong"])


@pytest.mark.parametrize("make", [AtariVector, AtariImageEnv, measure])
def test_an_ale_py_that_cannot_be_imported_is_said_with_its_remedy(make, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "ale_py", None)
    with pytest.raises(TargetError, match=r"pong needs ale-py, which cannot be imported \(.*Install it with"):
        make("pong")


def test_actions_swap_in_pairs_in_both_games():
    for game in GAMES.values():
        assert [game.swapped[game.swapped[a]] for a in range(len(game.actions))] == list(range(len(game.actions)))
