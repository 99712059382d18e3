"""Images of boards with the permutation of moves that play leaves possible."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from symcheck.discovery import game_images
from symcheck.discovery.game_images import (
    BoardMap,
    FoundImage,
    as_function,
    board_maps,
    find_image,
    tried_images,
)
from symcheck.errors import TargetError

RNG = np.random.default_rng


class Filling:
    """Two players fill the cells of a grid in turn; the canonical board has the mover's cells as 1."""

    actions = 4
    rows, columns = 2, 2
    moves = np.arange(4)
    """The cell that each action fills."""

    def start(self) -> Any:
        return np.zeros((self.rows, self.columns), dtype=int)

    def legal(self, state: Any) -> Any:
        free = (state.reshape(-1) == 0)[self.moves]
        return free if len(free) == self.actions else np.append(free, False)

    def step(self, state: Any, action: int) -> Any:
        after = state.copy()
        after.reshape(-1)[self.moves[action]] = 1
        return -after

    def outcome(self, state: Any) -> Any:
        return None if (state == 0).any() else (0.0,)

    def board(self, state: Any) -> Any:
        return state

    def state_of(self, board: Any) -> Any:
        return np.array(board)


def test_maps_of_boards_are_those_of_numpy_and_their_code_is_the_same() -> None:
    square, wide = np.arange(9).reshape(3, 3), np.arange(6).reshape(2, 3)
    usual = {
        "half turn": np.rot90(square, 2), "columns reversed": np.fliplr(square), "rows reversed": np.flipud(square),
        "quarter turn": np.rot90(square), "three quarter turns": np.rot90(square, 3),
        "other diagonal": np.fliplr(np.rot90(square)), "diagonal": np.flipud(np.rot90(square)),
    }  # fmt: skip
    maps = board_maps(square)
    assert {item.name for item in maps} == set(usual)
    for item in maps:
        np.testing.assert_array_equal(item(square), usual[item.name])
        np.testing.assert_array_equal(eval(item.code, {"np": np, "board": square}), usual[item.name])
    assert [item.name for item in board_maps(wide)] == ["half turn", "columns reversed", "rows reversed"]
    (row,) = board_maps([1, 2, 3])
    assert (row.name, row([1, 2, 3]).tolist(), row.code) == ("reversed", [3, 2, 1], "np.flip(board, 0)")
    assert board_maps({"a": 1}) == board_maps(np.zeros((2, 2, 2, 2))) == ()
    for shape, axes in (((3, 4, 4), (1, 2)), ((4, 4, 3), (0, 1)), ((2, 3, 5), (1, 2)), ((5, 3, 2), (0, 1)),
                        ((4, 4, 4), (1, 2)), ((3, 3, 4), (0, 1)), ((2, 3, 2), (1, 2))):  # fmt: skip
        assert {item.axes for item in board_maps(np.zeros(shape))} == {axes}, shape


def test_the_permutation_of_moves_is_inferred_from_play() -> None:
    game: Any = Filling()
    cells = np.arange(4).reshape(2, 2)
    for board_map in board_maps(cells):
        image = find_image(game, board_map, RNG(0))
        assert not isinstance(image, str)
        moved = board_map(cells).reshape(-1)
        assert image.places.tolist() == [int(np.flatnonzero(moved == cell)[0]) for cell in range(4)]
        assert image.seen.all()
        board, policy = image(cells, [0.1, 0.2, 0.3, 0.4])
        np.testing.assert_array_equal(board, board_map(cells))
        assert [policy[image.places[a]] for a in range(4)] == [0.1, 0.2, 0.3, 0.4]
    game.moves = np.array([2, 0, 3, 1])
    shuffled = find_image(game, board_maps(cells)[1], RNG(0))
    assert not isinstance(shuffled, str)
    assert shuffled.places.tolist() == [2, 3, 0, 1]


def spoiled(**methods: Any) -> Any:
    return type("Spoiled", (Filling,), methods)()


def test_images_that_the_rules_do_not_keep_are_refused_with_the_reason() -> None:
    columns = board_maps(np.zeros((2, 2)))[1]

    def only(self: Any, state: Any) -> Any:
        legal = Filling.legal(self, state)
        legal[0] &= bool(state.any())  # the first cell is not the first move
        return legal

    def early(self: Any, state: Any) -> Any:
        return (1.0,) if state[0, 0] else Filling.outcome(self, state)

    def marked(self: Any, state: Any, action: int) -> Any:
        after = Filling.step(self, state, action)
        if action == 0:
            after[1, 0] = 7
        return after

    assert find_image(spoiled(outcome=early), columns, RNG(0)) == "a game ends, but its image does not"
    told = find_image(spoiled(step=marked), columns, RNG(0))
    assert told == "a move has no image: no move of the image leads to the image of the next board"
    told = find_image(spoiled(legal=only), columns, RNG(0))
    assert told == "a move has no image: no move of the image leads to the image of the next board"

    def fewer(self: Any, state: Any) -> Any:
        legal = Filling.legal(self, state)
        if state[0, 0]:
            legal[np.flatnonzero(legal)[:1]] = False
        return legal

    told = find_image(spoiled(legal=fewer, outcome=lambda self, state: None if np.count_nonzero(state) < 2 else (0.0,)),
                      columns, RNG(0))  # fmt: skip
    assert told == "an image has more or fewer legal moves"
    unset = spoiled(state_of=lambda self, board: None)
    unset.rows, unset.columns = 1, 4
    (half, *_) = board_maps(unset.start())
    image = find_image(unset, half, RNG(0))
    assert not isinstance(image, str)
    assert image.places.tolist() == [3, 2, 1, 0]  # reached by the images of its moves

    def set_back(self: Any, board: Any) -> Any:
        return Filling.start(self)

    told = find_image(spoiled(state_of=set_back), columns, RNG(0))
    assert told == "the images of its moves do not reach the image of a position"


def test_a_move_that_was_never_legal_is_mapped_as_the_other_images_compose() -> None:
    def with_pass(self: Any, state: Any) -> Any:
        return np.append(Filling.legal(self, state)[:4], False)

    game = spoiled(legal=with_pass)
    game.actions = 5
    for board_map, image in tried_images(game, 0):
        assert not isinstance(image, str), board_map.name
        assert image.places[4] == 4
        assert image.seen.tolist() == [True] * 4 + [False]

    def refusing(self: Any, board: Any) -> Any:
        if not np.array_equal(board, np.zeros((2, 2))):
            raise TargetError("no such board", where="", remedy="")
        return np.array(board)

    told = tried_images(spoiled(state_of=refusing), 0)
    assert [image for _, image in told] == ["no such board"] * 7


def test_partial_permutations_are_completed_by_fixed_entries_first() -> None:
    for given, whole in (([-1, -1], [0, 1]), ([1, -1, -1], [1, 0, 2]), ([2, -1, 0], [2, 1, 0]),
                         ([-1, 2, -1, 1], [0, 2, 3, 1]), ([3, 2, 1, 0], [3, 2, 1, 0])):  # fmt: skip
        assert game_images._complete(np.array(given)).tolist() == whole


@pytest.mark.parametrize("original", [True, False])
def test_images_as_a_function_start_with_the_position_itself(original: bool) -> None:
    board_map = BoardMap("m", 0, 1, (0, 1))
    images = as_function([FoundImage(board_map, np.array([1, 0]), np.ones(2, bool))], original=original)
    made = images(np.array([[1, 2]]), [0.25, 0.75])
    assert len(made) == (2 if original else 1)
    board, policy = made[-1]
    assert (board.tolist(), policy) == ([[2, 1]], [0.75, 0.25])
    if original:
        assert (made[0][0].tolist(), made[0][1]) == ([[1, 2]], [0.25, 0.75])


def test_two_maps_determine_the_moves_of_their_product() -> None:
    half, columns, rows = board_maps(np.zeros((2, 3)))
    seen = np.array([True, True, False])
    images = [FoundImage(half, np.array([1, 0, 2]), seen), FoundImage(columns, np.array([1, 0, 2]), seen),
              FoundImage(rows, np.array([0, 1, 2]), np.array([False, False, False]))]  # fmt: skip
    made = game_images._agree_on_unseen(images, (2, 3))
    assert [image.places.tolist() for image in made] == [[1, 0, 2], [1, 0, 2], [0, 1, 2]]
    guessed = FoundImage(half, np.array([3, 0, 1, 2]), np.array([True, False, False, False]))
    whole = [FoundImage(columns, np.array([1, 0, 3, 2]), np.ones(4, bool)),
             FoundImage(rows, np.array([2, 3, 0, 1]), np.ones(4, bool))]  # fmt: skip
    made = game_images._agree_on_unseen([guessed, *whole], (2, 3))
    assert [image.places.tolist() for image in made] == [[3, 2, 1, 0], [1, 0, 3, 2], [2, 3, 0, 1]]
