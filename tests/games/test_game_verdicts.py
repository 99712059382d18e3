"""Right games pass, and each kind of fault fails the properties that it breaks, under its own finding code."""

from types import SimpleNamespace

import numpy as np
import pytest
from board_games import Columns, Cube, LastMove, Lines, Movers

import symcheck as sc
from symcheck.engine.games.causes import _positions_to_look_at
from symcheck.engine.games.comparing import Violation
from symcheck.engine.games.positions import Player, Reached, gather_positions
from symcheck.engine.games.rules import Rules
from symcheck.engine.games.shrinking import shrink
from symcheck.games.alphazero import AlphaZeroGame

MOVES = {"legal_moves", "next_state", "policy_map"}


class PolicyStays(Lines):
    def getSymmetries(self, board, pi):
        return [(image, pi) for image, _ in super().getSymmetries(board, pi)]


class NotReversed(Columns):
    def getSymmetries(self, board, pi):
        return [(board, pi), (board[:, ::-1], pi)]


class FlippedBefore(Lines):
    def getSymmetries(self, board, pi):
        cells = np.reshape(pi[:-1], board.shape)
        images = []
        for k in range(4):
            for flip in (False, True):
                turned = np.rot90(board, k)
                before = np.fliplr(cells) if flip else cells
                images.append((np.fliplr(turned) if flip else turned, np.rot90(before, k)))
        return [(b, [*p.ravel().tolist(), pi[-1]]) for b, p in images]


class TurnedBack(Lines):
    def getSymmetries(self, board, pi):
        cells = np.reshape(pi[:-1], board.shape)
        return [(np.rot90(board, k), [*np.rot90(cells, -k).ravel().tolist(), pi[-1]]) for k in range(4)]


class PassInFront(Lines):
    def getSymmetries(self, board, pi):
        return [(image, [p[-1], *p[:-1]]) for image, p in super().getSymmetries(board, pi)]


class DirectionsStay(Movers):
    directions = staticmethod(lambda p, k: p)


class LastMoveStays(LastMove):
    turned = staticmethod(lambda plane, k: plane)


class OtherReshape(Cube):
    board_axis = staticmethod(lambda board: np.fliplr(board.reshape(9, 3)).reshape(3, 3, 3))


class Twice(Lines):
    def getSymmetries(self, board, pi):
        return super().getSymmetries(board, pi) * 2


class OneMissing(Lines):
    def getSymmetries(self, board, pi):
        return super().getSymmetries(board, pi)[:-1]


class WithoutIdentity(Lines):
    def getSymmetries(self, board, pi):
        return super().getSymmetries(board, pi)[1:]


class SometimesWithoutIdentity(Lines):
    def getSymmetries(self, board, pi):
        return super().getSymmetries(board, pi)[int(np.sum(board != 0) % 2) :]


class FlippedBeforeWithoutIdentity(FlippedBefore):
    def getSymmetries(self, board, pi):
        return super().getSymmetries(board, pi)[1:]


class FlipsAlone(Cube):
    """One flip along each axis: neither the position itself nor a product of two flips."""

    def getSymmetries(self, board, pi):
        cells = np.reshape(pi, (3, 3, 3))
        return [(np.flip(board, axis), np.flip(cells, axis).ravel().tolist()) for axis in range(3)]


class OneDiagonal(Columns):
    sides = staticmethod(lambda stones: (stones,))


class TurnsForTheOther(Lines):
    def getCanonicalForm(self, board, player):
        return board if player == 1 else -board[::-1]


class TurnedColumns(Columns):
    def getSymmetries(self, board, pi):
        return [(board, pi), (np.rot90(board, 2), pi[::-1])]


class EntryLost(Lines):
    def getSymmetries(self, board, pi):
        return [(image, [*p[:-1], p[0]]) for image, p in super().getSymmetries(board, pi)]


class ByPosition(Lines):
    def getSymmetries(self, board, pi):
        images = super().getSymmetries(board, pi)
        return images if board.sum() % 2 else images[::-1]


class Quarter(Columns):
    def getSymmetries(self, board, pi):
        return [(board, pi), (np.rot90(board), pi)]


class OnlyFallen(TurnedColumns):
    """Refuses what it makes itself: boards whose stones float."""

    def getSymmetries(self, board, pi):
        if ((board[:-1] != 0) & (board[1:] == 0)).any():
            raise ValueError("a stone floats")
        return super().getSymmetries(board, pi)


FAULTS = [
    (PolicyStays(4), MOVES, "SYM301"),
    (NotReversed(4, 6), MOVES, "SYM302"),
    (FlippedBefore(4), {*MOVES, "group_axioms"}, "SYM303"),
    (TurnedBack(4), MOVES, "SYM304"),
    (PassInFront(4), {*MOVES, "group_axioms"}, "SYM305"),
    (DirectionsStay(), MOVES, "SYM306"),
    (LastMoveStays(4), {"next_state"}, "SYM307"),
    (Twice(4), {"distinct_images"}, "SYM308"),
    (OtherReshape(), MOVES, "SYM309"),
    (EntryLost(4), {"legal_moves", "policy_map"}, "SYM310"),
    (TurnsForTheOther(4), {"next_state"}, "SYM312"),
    (TurnedColumns(4, 6), {"next_state"}, "SYM313"),
    (Quarter(4, 6), {"legal_moves"}, "SYM314"),
    (OneDiagonal(3, 3), {"outcome"}, "SYM317"),
    (SometimesWithoutIdentity(4), {"group_axioms", "next_state"}, "SYM318"),
    (FlippedBeforeWithoutIdentity(4), {*MOVES, "group_axioms"}, "SYM321"),
    (OneMissing(4), {"group_axioms"}, "SYM319"),
    (OnlyFallen(3, 4), {"group_axioms", *MOVES} - {"policy_map"}, "SYM320"),
]


@pytest.mark.parametrize(("game", "failing", "code"), FAULTS, ids=[type(row[0]).__name__ for row in FAULTS])
def test_a_planted_fault_fails_what_it_breaks_and_is_named(game, failing, code):
    report = sc.verify_game(game, samples=40)
    failed = {item.name for item in report if item.verdict == "failed"}
    # A board that is no board of the game breaks everything that is asked of it.
    assert failed >= failing if code in ("SYM314", "SYM313") else failed == failing, report.to_text()
    assert code in {cause.code for item in report for cause in item.causes}, report.to_text()


@pytest.mark.parametrize("game", [Lines(4), Columns(4, 6), LastMove(4), Cube()], ids=lambda g: type(g).__name__)
def test_a_right_game_passes(game):
    report = sc.verify_game(game, samples=40)
    assert report.verdict == "passed", report.to_text()
    assert {item.max_residual for item in report} == {0.0, None}


@pytest.mark.parametrize(
    ("game", "products"), [(WithoutIdentity(4), 0), (FlipsAlone(), 6)], ids=["all but it", "flips"]
)
def test_a_list_beside_the_original_need_not_be_a_whole_group(game, products):
    report = sc.verify_game(game, samples=40)
    assert report.verdict == "passed", report.to_text()
    reason = report["group_axioms"].reason
    assert (reason.code, reason.fields["left_out"]) == ("images_beside_original", products)
    assert "the position itself is not among its images" in report.to_text()


@pytest.mark.parametrize(("game", "group"), [(Columns(3, 3), "C2"), (Movers(), "C4")])
def test_a_small_game_is_proved(game, group):
    report = sc.verify_game(game)
    assert report.verdict == "proved", report.to_text()
    assert report.results[0].group["name"] == group
    assert "every position" in report.to_text()


class Corridor:
    """Plays a game of so many positions in a row, with one move at each but the last."""

    rules = SimpleNamespace(game=SimpleNamespace(is_whole=True))

    def __init__(self, positions):
        self.nodes = [SimpleNamespace(outcome=None, board_key=i, place=i) for i in range(positions)]

    def start(self):
        return Reached(self.nodes[0])

    def legal_moves(self, position):
        return np.arange(int(position.node.place + 1 < len(self.nodes)))

    def play(self, position, action):
        return Reached(self.nodes[position.node.place + 1])


@pytest.mark.parametrize(("positions", "complete"), [(20_000, True), (20_001, False)])
def test_a_game_of_at_most_20_000_positions_is_enumerated(positions, complete):
    reached = gather_positions(Corridor(positions), samples=4, seed=0, deadline=None)
    assert reached.is_complete == complete
    assert not complete or len(reached.reached) == positions


@pytest.mark.parametrize(("moves", "attempts"), [(4, 7), (400, 300), (401, 0)])
def test_a_counterexample_is_shortened_by_300_attempts_if_it_has_400_moves(moves, attempts):
    tried = []
    player = SimpleNamespace(replay=tried.append)  # no shorter game is legal
    violation = Violation(SimpleNamespace(moves=tuple(range(moves))), 0, None, 1, 2, "there", 1.0)
    assert shrink(violation, "policy_map", None, player) is violation
    assert len(tried) == attempts


def test_moves_of_an_image_are_read_off_20_violations_and_20_positions_of_all_lengths():
    reached = list(range(100))
    examples = [SimpleNamespace(position=f"violation {k}") for k in range(30)]
    looked_at = _positions_to_look_at(SimpleNamespace(positions=SimpleNamespace(reached=reached)), examples)
    assert looked_at == [*(example.position for example in examples[:20]), *(round(k * 99 / 19) for k in range(20))]


def test_a_policy_image_that_depends_on_the_position_is_named():
    report = sc.verify_game(ByPosition(4), samples=40)
    result = report["policy_map"]
    assert result.verdict == "failed"
    assert "SYM311" in {cause.code for cause in result.causes}


def test_positions_are_those_of_legal_play_and_none_lies_past_an_end():
    game = AlphaZeroGame(Lines(), None, "Lines", "getSymmetries")
    positions = gather_positions(Player(Rules(game, 0)), 10, 0, None)
    # The known number of positions of tic-tac-toe that play from the empty board reaches.
    assert positions.is_complete
    assert len(positions.reached) == 5478


def test_a_large_game_is_sampled_to_its_ends():
    game = AlphaZeroGame(Columns(6, 7), None, "Columns", "getSymmetries")
    positions = gather_positions(Player(Rules(game, 0)), 60, 0, None)
    assert not positions.is_complete
    assert len(positions.reached) == 60
    assert any(position.node.outcome is not None for position in positions.reached)
    # Half of the games avoid early ends: some are much longer than random ones.
    assert positions.longest > 20


class Forgetful(Columns):
    calls = 0

    def getValidMoves(self, board, player):
        self.calls += 1
        legal = super().getValidMoves(board, player)
        return legal * (self.calls % 7 != 0) if legal.sum() > 3 else legal


def test_a_game_that_answers_differently_the_second_time_is_undecided_where_nothing_fails():
    game = Forgetful(4, 6)
    report = sc.verify_game(game, symmetries=lambda board, pi: [(board, pi), (board[:, ::-1], pi[::-1])], samples=40)
    assert report.verdict in ("failed", "undecided")
    assert all(item.verdict not in ("passed", "proved") for item in report if item.name == "outcome")


def test_an_image_that_moves_nothing_is_undecided():
    report = sc.verify_game(Columns(4, 6), symmetries=lambda board, pi: [(board, pi)], samples=20)
    assert report.verdict == "undecided"
    assert report["legal_moves"].reason.code == "nothing_moves"


def test_lists_without_equal_images_have_no_fixed_places():
    def without_repetitions(board, pi):
        images = Lines(4).getSymmetries(board, pi)
        return list({np.asarray(image).tobytes(): (image, p) for image, p in images[::-1]}.values())

    report = sc.verify_game(Lines(4), symmetries=without_repetitions, samples=40)
    assert report["next_state"].verdict == report["legal_moves"].verdict == "passed", report.to_text()


def test_the_time_limit_ends_the_run():
    report = sc.verify_game(Lines(4), samples=100_000, max_time=0.05)
    assert report.results[0].duration_s < 20
    assert all(item.verdict in ("passed", "undecided") for item in report)
