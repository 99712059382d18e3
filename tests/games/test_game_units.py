"""Parts of the checks of games by themselves: boards and policies that move together, keys, and limits."""

import copy
import dataclasses

import numpy as np
import pytest

from symcheck.engine.games import shrinking
from symcheck.engine.games.comparing import Tally
from symcheck.engine.games.images import Probe, move
from symcheck.errors import TargetError
from symcheck.games import boards
from symcheck.games.alphazero import AlphaZeroGame
from symcheck.games.game import ask_for_images, board_key, call, copy_of, in_form_of, is_plain, numbers
from symcheck.games.opening import is_game, open_game

RNG = np.random.default_rng(0)
LISTS = {
    "square": (boards.square, 8),
    "half_turn": (boards.half_turn, 2),
    "mirror": (boards.mirror, 2),
    "diagonals": (boards.diagonals, 4),
}


@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize("passes", [False, True], ids=["cells", "cells and a pass"])
def test_the_policy_moves_as_the_cells_of_the_board_do(name, passes):
    function, count = LISTS[name]
    cells = RNG.permutation(9).reshape(3, 3)
    pi = [*(cells / 10.0).reshape(-1), *([0.95] if passes else [])]
    for board, planes in (
        (cells, lambda image: [image]),
        (np.stack([cells, 2 * cells]), list),
        (np.stack([cells, 2 * cells], axis=-1), lambda image: list(np.moveaxis(image, -1, 0))),
    ):
        images = function(board, pi)
        assert len(images) == count
        assert len({image.tobytes() for image, _ in images}) == count
        assert np.array_equal(images[0][0], board)
        for image, moved in images:
            assert image.shape == board.shape
            for k, plane in enumerate(planes(image)):
                np.testing.assert_allclose(plane.reshape(-1) / (1 + k) / 10.0, moved[:9])
            assert moved[9:] == ([0.95] if passes else [])


def test_images_are_those_of_their_names():
    cells = np.arange(6).reshape(2, 3)
    pi = (cells / 10).reshape(-1)
    assert np.array_equal(boards.mirror(cells, pi)[1][0], cells[:, ::-1])
    assert np.array_equal(boards.half_turn(cells, pi)[1][0], cells[::-1, ::-1])
    four = np.arange(4).reshape(2, 2)
    _, turned, across, along = (image for image, _ in boards.diagonals(four, four.reshape(-1)))
    assert (turned.tolist(), across.tolist(), along.tolist()) == ([[3, 2], [1, 0]], [[0, 2], [1, 3]], [[3, 1], [2, 0]])
    assert [image.tolist() for image, _ in boards.square(four, four.reshape(-1))][1] == [[1, 3], [0, 2]]


def test_a_policy_of_columns_moves_as_the_columns_do_and_others_are_refused():
    board = np.arange(42).reshape(6, 7)
    assert boards.mirror(board, [0, 1, 2, 3, 4, 5, 6])[1][1] == [6, 5, 4, 3, 2, 1, 0]
    planes_last = np.stack([board, board], axis=-1)
    image, moved = boards.mirror(planes_last, [0, 1, 2, 3, 4, 5, 6])[1]
    assert np.array_equal(image, planes_last[:, ::-1])
    assert moved == [6, 5, 4, 3, 2, 1, 0]
    image, _ = boards.mirror(np.stack([board, board]), [0, 1, 2, 3, 4, 5, 6])[1]
    assert np.array_equal(image, np.stack([board, board])[:, :, ::-1])
    for entries in (6, 41, 44):
        with pytest.raises(TargetError, match=f"pi has {entries} entries.* 42 cells.* 7 columns"):
            boards.mirror(board, [0.0] * entries)
    for shape in ((3,), (2, 2, 2, 2)):
        with pytest.raises(TargetError, match="expected a grid, or planes of one"):
            boards.mirror(np.zeros(shape), [0.0])


@dataclasses.dataclass
class Told:
    cells: list
    seen: int = dataclasses.field(default=0, compare=False)


class Plain:
    def __init__(self, cells):
        self.cells = cells


SAME = [
    ([[0, 1]], np.array([[0.0, 1.0]])), ([[0, 1]], ((False, True),)), (np.array([-0.0]), [0]), (3, 3.0), (True, 1),
    (np.int8(3), 3), ({"a": 1, "b": 2}, {"b": 2.0, "a": 1}), ({1, 2}, frozenset({2, 1})), (Told([1], 5), Told([1], 6)),
    (Plain([1]), Plain([1.0])), (np.asfortranarray([[1, 2], [3, 4]]), [[1, 2], [3, 4]]), ((1, "a"), [1, "a"]),
    (np.array([2**53]), [2.0**53]),
]  # fmt: skip
OTHER = [
    ([[0, 1]], [[0], [1]]), ([0, 1], [1, 0]), (3, 4), (3.5, 3), ({"a": 1}, {"b": 1}), ({"a": 1}, {"a": 2}), ({1}, {2}),
    ("a", "b"), ("1", 1), (None, 0), (Told([1]), Told([2])), (Plain([1]), Plain([2])), ((1, "a"), (1, "b")),
    (np.array([2**53]), np.array([2**53 + 1])), (np.array([2**60]), np.array([2**60 + 1])),
    (np.array([-(2**53) - 1]), np.array([-(2**53)])),
    (np.array([2**64 - 1], dtype=np.uint64), np.array([2**64 - 2], dtype=np.uint64)),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other"), SAME)
def test_equal_boards_have_equal_keys(one, other):
    assert board_key(one) == board_key(other)


@pytest.mark.parametrize(("one", "other"), OTHER)
def test_other_boards_have_other_keys(one, other):
    assert board_key(one) != board_key(other)


def test_boards_of_numbers_are_read_and_set_in_the_form_of_the_game():
    assert numbers([[1, 2], [3]]) is None
    assert numbers(3) is None
    assert numbers(["a"]) is None
    assert numbers([[True]]).shape == (1, 1)
    first = np.zeros((1, 2), dtype=np.int8)
    made = in_form_of(first, [[0.0, 1.0]])
    assert (made.dtype, made.tolist()) == (np.int8, [[0, 1]])
    assert in_form_of(first, [[0.5, 1.0]]).dtype == np.float64
    assert in_form_of(first, "text") == "text"
    assert in_form_of("text", [[1]]) == [[1]]
    assert in_form_of(((0, 0), (0, 0)), np.array([[1, 2], [3, 4]])) == ((1, 2), (3, 4))
    same = np.ones((1, 2), dtype=np.int8)
    assert in_form_of(first, same) is same
    for plain in ([[1]], {"a": [1, "b"]}, None, 2.5, (1, {2}), np.zeros(2)):
        assert is_plain(plain)
    for other in (object(), [object()], {"a": object()}, Told([1])):
        assert not is_plain(other)
    board = np.zeros(2)
    copied = copy_of(board)
    copied[0] = 1
    assert board[0] == 0
    nested = [[0]]
    copy_of(nested)[0].append(1)
    assert nested == [[0]]


def test_a_function_of_images_is_asked_with_lists_and_then_with_arrays_on_copies():
    board, policy = [[0, 1]], np.array([0.25, 0.75])

    def needs_arrays(given, pi):
        given[0][0] = 9
        return ((given, pi[::-1].reshape(1, 2)) for _ in range(2))

    def needs_an_array(given, pi):
        return [(given, pi.reshape(2, 1))]

    with pytest.raises(TargetError, match="images must return a list of"):
        ask_for_images("images", lambda given, pi: needs_arrays(given, list(pi)), board, policy)
    pairs = ask_for_images("images", needs_arrays, board, policy)
    assert board == [[0, 1]]
    assert [moved.tolist() for _, moved in pairs] == [[0.75, 0.25]] * 2
    pairs = ask_for_images("images", needs_an_array, board, policy)
    assert [moved.tolist() for _, moved in pairs] == [[0.25, 0.75]]
    with pytest.raises(TargetError, match="images must return at least one image, but returned none"):
        ask_for_images("images", lambda given, pi: [], board, policy)
    with pytest.raises(TargetError, match="images must return a list of"):
        ask_for_images("images", lambda given, pi: 3, board, policy)
    with pytest.raises(TargetError, match="step raised ZeroDivisionError"):
        call("step", lambda: 1 / 0)


@pytest.mark.parametrize(("off", "read"), [(0.009, True), (-0.009, True), (0.011, False), (-0.011, False)])
def test_entries_of_a_policy_are_read_up_to_a_hundredth_of_their_distance(off, read):
    probe = Probe.draw(7, 3)
    assert sorted(probe.ranks.tolist()) == list(range(1, 8))
    assert probe.policy.sum() == pytest.approx(1.0)
    places = RNG.permutation(7)
    moved = move(places, probe.policy)
    assert probe.read(moved).tolist() == places.tolist()
    moved[2] += off / 28
    found = probe.read(moved)
    assert (found is not None) == read
    assert probe.read(moved[:6]) is None
    for wrong in (np.full(7, np.nan), np.full(7, 1 / 28), np.arange(7) / 28, np.arange(2, 9) / 28):
        assert probe.read(wrong) is None


def test_shorter_games_lack_one_part():
    made = list(shrinking._shorter((1, 2, 3, 4)))
    assert made == [(3, 4), (1, 4), (1, 2), (2, 3, 4), (1, 3, 4), (1, 2, 4), (1, 2, 3)]
    assert list(shrinking._shorter((1,))) == []


def test_the_first_400_violations_are_kept_and_all_are_counted():
    tally = Tally()
    tally.add(list(range(399)), checked=500)
    tally.add([])
    tally.add([399, 400, 401])
    tally.add([402])
    assert (tally.checked, tally.violated, tally.examples) == (503, 403, list(range(400)))


class Line:
    """Two cells; a player fills one; the game ends when both are full."""

    def getInitBoard(self):
        return np.zeros(2, dtype=np.int8)

    def getActionSize(self):
        return 2

    def getNextState(self, board, player, action):
        board[action] = player
        return board, -player

    def getValidMoves(self, board, player):
        return (board == 0).astype(int)

    def getGameEnded(self, board, player):
        return 0 if (board == 0).any() else 1e-4

    def getCanonicalForm(self, board, player):
        return board * player

    def getSymmetries(self, board, pi):
        return [(board, pi), (board[::-1], pi[::-1])]


def opened(**changed):
    game = Line()
    for name, function in changed.items():
        setattr(game, name, function)
    return AlphaZeroGame(game, None, "line", "getSymmetries")


def test_states_are_boards_of_the_player_to_move_and_stay_as_they_were():
    game = opened()
    start = game.start()
    after = game.step(start, 1)
    assert (start.tolist(), after.tolist(), after.dtype) == ([0, 0], [0, -1], np.int8)
    assert game.legal(after).tolist() == [True, False]
    board, canonical = game.before_canonical(after, 0)
    assert (board.tolist(), canonical(board).tolist()) == ([1, -1], [-1, 1])
    assert (game.outcome(after), game.outcome(canonical(board))) == (None, (1e-4,))
    assert (game.actions, game.is_whole, game.board(after) is after) == (2, True, True)
    assert game.state_of([0.0, -1.0]).dtype == np.int8
    assert game.key(after) == game.board_key([0, -1])
    assert [image.tolist() for image, _ in game.images(after, np.array([0.25, 0.75]))] == [[0, -1], [-1, 0]]


@pytest.mark.parametrize(
    ("name", "answer", "message"),
    [
        ("getActionSize", 0, "a whole number above 0, got 0"), ("getActionSize", True, "got True"),
        ("getActionSize", 2.0, "got 2.0"), ("getValidMoves", [1], "getValidMoves must return 2 numbers"),
        ("getValidMoves", ["a", "b"], "getValidMoves must return 2 numbers"),
        ("getValidMoves", [1, np.nan], "0 or 1 for each move, got NaN"),
        ("getNextState", np.zeros(3), r"getNextState to return \(board, player\)"),
        ("getGameEnded", "no", "to return a number, got 'no'"),
        ("getGameEnded", np.nan, "to return a number, got NaN"),
        ("getSymmetries", [(np.zeros((2, 2)), [1, 0])], r"boards of shape \(2,\)"),
    ],
)  # fmt: skip
def test_an_answer_of_another_form_is_refused_by_its_function(name, answer, message):
    def use():
        game = opened(**{name: lambda *given: copy.copy(answer)})
        state = game.start()
        game.legal(state), game.outcome(state), game.step(state, 0)

    with pytest.raises(TargetError, match=message):
        use()


def test_a_game_is_told_by_its_functions():
    assert is_game(f"{__file__}:Line")
    assert not is_game(f"{__file__}:Told")
    assert not is_game("Line")
    assert open_game(Line).label == "Line"
    with pytest.raises(TargetError, match="Plain lacks getInitBoard, getActionSize"):
        open_game(Plain([1]), adapter="alphazero")
    with pytest.raises(TargetError, match=r"expected a function .* got int"):
        open_game(Line, symmetries=3)
    with pytest.raises(TargetError, match="claims no symmetries"):
        AlphaZeroGame(type("Bare", (Line,), {"getSymmetries": None})(), None, "bare", "x")
