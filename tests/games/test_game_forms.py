"""Games as people write them: boards in any container, images in any form, chance, memory, and moves about no cell."""

import dataclasses

import numpy as np
import pytest
from board_games import Columns, Lines

import symcheck as sc
from symcheck.errors import TargetError


class Stones:
    """A board as an object, with a cache that no rule looks at."""

    def __init__(self, grid):
        self.grid, self.looked_at = np.array(grid), []


@dataclasses.dataclass
class Record:
    grid: np.ndarray
    looked_at: int = dataclasses.field(default=0, compare=False)


def as_bits(grid):
    # Bit 62 is above the whole numbers that float64 tells apart: a key of doubles would merge neighbouring cells.
    return [(1 << 62) + sum(1 << i for i in np.flatnonzero(grid.ravel() == who)) for who in (1, -1)]


def from_bits(bits, shape=(4, 5)):
    one, other = (np.array([int(b) >> i & 1 for i in range(20)]) for b in bits)
    return (one - other).reshape(shape)


def from_cells(cells, shape=(4, 5)):
    grid = np.zeros(shape, int)
    for cell, stone in cells.items():
        grid[cell] = stone
    return grid


def as_cells(grid):
    cells = [(int(i), int(j)) for i, j in np.argwhere(grid)]
    # In whatever order: equal mappings are equal boards.
    return {cell: int(grid[cell]) for cell in (cells if grid.sum() else cells[::-1])}


LETTERS = {1: "X", -1: "O", 0: "."}
FORMS = {
    "a mapping of cells": (as_cells, from_cells),
    "a board and a count": (lambda g: (g, int((g != 0).sum())), lambda b: b[0]),
    "rows of text": (
        lambda g: ["".join(LETTERS[int(c)] for c in row) for row in g],
        lambda b: np.array([[{"X": 1, "O": -1, ".": 0}[c] for c in row] for row in b]),
    ),
    "bits of two numbers": (as_bits, from_bits),
    "bits in an array": (lambda g: np.array(as_bits(g), dtype=np.uint64), from_bits),
    "nested tuples": (lambda g: tuple(map(tuple, g.tolist())), np.array),
    "a dataclass": (lambda g: Record(g, int(g.sum())), lambda b: b.grid),
    "an object": (Stones, lambda b: b.grid),
}


class InForm(Columns):
    """`Columns` whose boards have another form."""

    right = True

    def __init__(self, form):
        super().__init__(4, 5)
        self.write, self.read = FORMS[form]
        if form == "an object":
            self.stringRepresentation = lambda board: board.grid.tobytes()

    def getInitBoard(self):
        return self.write(super().getInitBoard())

    def getNextState(self, board, player, action):
        board, player = super().getNextState(self.read(board).copy(), player, action)
        return self.write(board), player

    def getValidMoves(self, board, player):
        if isinstance(board, Stones):
            board.looked_at.append(player)
        return super().getValidMoves(self.read(board), player)

    def getGameEnded(self, board, player):
        return super().getGameEnded(self.read(board), player)

    def getCanonicalForm(self, board, player):
        return self.write(self.read(board) * player)

    def getSymmetries(self, board, pi):
        images = super().getSymmetries(self.read(board), pi)
        return [(self.write(image), p if self.right else pi) for image, p in images]


class InFormNotReversed(InForm):
    right = False


@pytest.mark.parametrize("form", FORMS)
def test_boards_may_have_any_form(form):
    report = sc.verify_game(InForm(form), samples=20)
    assert report.verdict == "passed", report.to_text()
    wrong = sc.verify_game(InFormNotReversed(form), samples=20)
    failed = {item.name for item in wrong if item.verdict == "failed"}
    assert failed == {"legal_moves", "next_state", "policy_map"} or failed == {"next_state", "policy_map"}, (
        wrong.to_text()
    )


def mirror(board, pi):
    return [(board, pi), (board[:, ::-1], pi[::-1])]


BUFFER = np.zeros((2, 4, 5), int), np.zeros((2, 5))


def in_one_buffer(board, pi):
    for k, (image, p) in enumerate(mirror(board, pi)):
        BUFFER[0][k], BUFFER[1][k] = image, p
    return list(zip(*BUFFER, strict=True))


IMAGES = {
    "a generator": lambda board, pi: (pair for pair in mirror(board, pi)),
    "arrays alone": lambda board, pi: [(board, pi), (board[:, ::-1], pi.reshape(1, 5)[:, ::-1])],
    "nested lists": lambda board, pi: [(image.tolist(), p) for image, p in mirror(board, pi)],
    "floats": lambda board, pi: [(image.astype(np.float32), tuple(p)) for image, p in mirror(board, pi)],
    "one buffer": in_one_buffer,
}


@pytest.mark.parametrize("form", IMAGES)
def test_images_may_have_any_form(form):
    assert sc.verify_game(Columns(4, 5), symmetries=IMAGES[form], samples=20).verdict == "passed"


class OnOneBoard(Columns):
    """Plays every move on the same array."""

    def getInitBoard(self):
        self.board = np.zeros(self.shape, int)
        return self.board

    def getNextState(self, board, player, action):
        self.board[:], player = super().getNextState(board, player, action)
        return self.board, player

    def getCanonicalForm(self, board, player):
        board *= player
        return board


def test_a_game_may_play_on_one_array():
    assert sc.verify_game(OnOneBoard(4, 5), samples=20).verdict == "passed"


class Dice(Columns):
    """After some moves a die drops a stone of the other player."""

    def __init__(self, share):
        super().__init__(5, 7)
        self.rng, self.share = np.random.default_rng(0), share

    def getNextState(self, board, player, action):
        board, player = super().getNextState(board, player, action)
        if not board[0].all() and self.rng.random() < self.share:
            board, _ = super().getNextState(board, player, int(self.rng.choice(np.flatnonzero(board[0] == 0))))
        return board, player


class Remembers(Columns):
    """No move follows right of the last one, which no board shows."""

    last = -1

    def getNextState(self, board, player, action):
        self.last = action
        return super().getNextState(board, player, action)

    def getValidMoves(self, board, player):
        legal = super().getValidMoves(board, player)
        return legal * (np.arange(7) != (self.last + 1) % 7) if legal.sum() > 2 else legal


@pytest.mark.parametrize("game", [Dice(1.0), Dice(0.1), Remembers(5, 7)], ids=["dice", "rare dice", "memory"])
def test_chance_and_memory_are_not_blamed_on_images(game):
    report = sc.verify_game(game, samples=30)
    assert report.verdict == "undecided", report.to_text()
    assert "the function of its images, gives different results" in report.to_text()
    assert not [item for item in report if item.verdict in ("failed", "proved")]


def test_what_chance_does_not_touch_is_still_refuted():
    report = sc.verify_game(Dice(0.5), symmetries=lambda b, pi: [(b, pi), (b[:, ::-1], pi)], samples=60)
    assert report["legal_moves"].verdict == "failed", report.to_text()
    assert report["legal_moves"].violations > 0


def test_images_drawn_at_random_are_undecided():
    rng = np.random.default_rng(0)
    report = sc.verify_game(
        Lines(4), symmetries=lambda b, pi: [Lines(4).getSymmetries(b, pi)[i] for i in (0, rng.integers(8))], samples=20
    )
    assert report.verdict == "undecided", report.to_text()
    assert report["group_axioms"].reason.code == "not_repeatable"


class Unplayable(Columns):
    def getValidMoves(self, board, player):
        return np.zeros(5)


class OverAtOnce(Columns):
    def getGameEnded(self, board, player):
        return 1


class MovesOfNan(Columns):
    def getValidMoves(self, board, player):
        return np.full(5, np.nan)


class EndsInNan(Columns):
    def getGameEnded(self, board, player):
        return np.nan


def refuses_the_second(board, pi):
    yield board, pi
    raise AssertionError("no second image")


@pytest.mark.parametrize(
    ("game", "symmetries", "message"),
    [
        (Unplayable, None, "no move is legal at its start"),
        (OverAtOnce, None, "the game is over at its start"),
        (MovesOfNan, None, "getValidMoves to return 0 or 1 for each move, got NaN"),
        (EndsInNan, None, "getGameEnded to return a number, got NaN"),
        (Columns, refuses_the_second, "AssertionError: no second image"),
        (Columns, lambda b, pi: [(x == 1, p, 0) for x, p in mirror(b, pi)], "a list of .board, policy."),
        (Columns, lambda b, pi: [(np.stack([x, -x]), p) for x, p in mirror(b, pi)], r"every image has shape .2"),
    ],
)
def test_what_is_no_game_and_no_image_is_refused_and_not_judged(game, symmetries, message):
    with pytest.raises(TargetError, match=message):
        sc.verify_game(game(4, 5), symmetries=symmetries, samples=20)


class PassOrSwap(Lines):
    """`Lines` with a second move about no cell: in place of a second stone, change colours."""

    def getActionSize(self):
        return self.n**2 + 2

    def getNextState(self, board, player, action):
        if action == self.n**2 + 1:
            return -board, -player
        return super().getNextState(board, player, action)

    def getValidMoves(self, board, player):
        return np.array([*super().getValidMoves(board, player), (board != 0).sum() == 1], int)

    def getSymmetries(self, board, pi):
        return [(image, [*p[:-1], *pi[-2:]]) for image, p in super().getSymmetries(board, pi[:-1])]


class PassAndSwapExchanged(PassOrSwap):
    def getSymmetries(self, board, pi):
        images = super().getSymmetries(board, pi)
        return [images[0], *((image, [*p[:-2], p[-1], p[-2]]) for image, p in images[1:])]


def test_several_moves_about_no_cell_stay():
    assert sc.verify_game(PassOrSwap(4), samples=30).verdict == "passed"
    report = sc.verify_game(PassAndSwapExchanged(4), samples=30)
    causes = [cause for item in report for cause in item.causes if cause.code == "SYM305"]
    assert report["legal_moves"].verdict == "failed"
    assert (
        "the last 2 entries of the policy vector, which belong to no cell, do not keep their places" in causes[0].text
    )
