"""Comparisons, drawings and hypotheses about games, each by itself, on boards written out by hand."""

from types import SimpleNamespace

import numpy as np
import pytest
from board_games import Columns, Lines

from symcheck.engine.games import axioms, causes, comparing, drawing, positions, repeating
from symcheck.engine.games.causes import Seen, numbers_of_cells
from symcheck.engine.games.comparing import Comparison, Tally, Violation
from symcheck.engine.games.context import GameContext
from symcheck.engine.games.group import group_of
from symcheck.engine.games.images import Image, Probe
from symcheck.engine.games.options import GameOptions
from symcheck.engine.games.positions import Player, Reached, gather_positions
from symcheck.engine.games.rules import Rules
from symcheck.errors import TargetError
from symcheck.games.alphazero import AlphaZeroGame


def violation(expected=None, actual=None, *, image=0, action=None, board=None, moves=None, where="there", actions=9):
    board = np.zeros((3, 3), int) if board is None else board
    images = tuple(Image(np.asarray(board), bytes([k]), moves, actions) for k in range(image + 1))
    rules = SimpleNamespace(game=SimpleNamespace(actions=actions))
    node = SimpleNamespace(board=board, images=images, rules=rules, outcome=None)
    return Violation(Reached(node, (1, 2)), image, action, expected, actual, where, 1.0)


# --- comparing


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (None, None, True),
        (None, (0.0,), False),
        ((0.0,), None, False),
        ((1.0, -1.0), (1.0, -1.0), True),
        ((1.0,), (1.0, 1.0), False),
        ((1.0, -1.0), (-1.0, 1.0), False),
        ((1.0,), (1.0 + 0.9e-9,), True),
        ((1.0,), (1.0 + 1.2e-9,), False),
        ((1e4,), (1e4 + 1e-8,), False),
        ((1e4,), (2e4,), False),
    ],
)
def test_outcomes_are_the_same_to_a_billionth_whatever_their_size(one, other, same):
    assert comparing._same_outcome(one, other) == same


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ([4], "move 4"),
        ([1, 2], "moves 1, 2"),
        ([0, 1, 2, 3, 4, 5], "moves 0, 1, 2, 3, 4, 5"),
        ([0, 1, 2, 3, 4, 5, 6], "moves 0, 1, 2, 3, 4, 5 and others"),
    ],
)
def test_up_to_six_moves_are_listed(wrong, told):
    assert comparing._places(np.array(wrong)) == told


def test_the_first_entry_that_differs_is_named_and_all_are_counted():
    one = np.zeros((2, 3))
    other = one.copy()
    assert comparing._differing(one, other) == ("the board", 0.0)
    other[1, 0] = other[1, 2] = 5
    assert comparing._differing(one, other) == ("board[1, 0]", 2.0)
    assert comparing._differing(one, np.zeros((3, 2))) == ("the board", 1.0)
    assert comparing._differing({"a": 1}, one) == ("the board", 1.0)
    assert comparing._differing(one, {"a": 1}) == ("the board", 1.0)


@pytest.mark.parametrize(
    ("moves", "images", "told"),
    [
        (None, 2, "a permutation of the entries of pi"),
        ([0, 1, 2], 2, None),
        ([0, 2, 1], 2, [0, 1, 2]),
        ([0, 1, 2], 1, None),
        ([2, 1, 0], 1, None),
        ([0, 2, 1], 1, "a permutation of another position"),
    ],
)
def test_a_policy_image_is_the_same_permutation_at_every_position(moves, images, told):
    rules = SimpleNamespace(probe=Probe(np.array([1, 2, 3])))
    comparison = Comparison([np.array([0, 1, 2]), np.array([2, 1, 0])])
    places = None if moves is None else np.array(moves)
    image = Image(None, b"", places, 3)
    node = SimpleNamespace(images=[image] * images, rules=rules)
    found = list(comparison._fixed(Reached(node), 0, image))
    assert [v.expected for v in found] == ([] if told is None else [told])
    if told == [0, 1, 2]:
        assert (found[0].where, found[0].residual) == ("pi[1]", 2.0)
    other = Image(None, b"", None, 2)
    (wrong,) = comparison._fixed(Reached(node), 1, other)
    assert (wrong.actual, wrong.where) == ("2 entries", "policy image 1")


def test_moves_that_contradict_every_next_state_are_charged_to_the_policy():
    comparison = Comparison([])
    comparison._implied = {
        (0, 3): comparing._Implied(5, {7, 6}, [Reached(None, (1,)), Reached(None, (2,))]),
        (1, 4): comparing._Implied(5, set(), [Reached(None, (3,))]),
    }
    tallies = {name: Tally() for name in comparing.PARTS}
    comparison.judge_implied(tallies)
    tally = tallies["policy_map"]
    assert (tally.checked, tally.violated) == (2, 2)
    assert [(v.position.moves, v.image, v.action, v.expected, v.actual, v.where) for v in tally.examples] == [
        ((1,), 0, 3, [6, 7], [5], "pi[3]"),
        ((2,), 0, 3, [6, 7], [5], "pi[3]"),
    ]
    assert comparison.misplaced(0) == [3]
    assert comparison.misplaced(1) == []


# --- drawings


@pytest.mark.parametrize(
    ("board", "grid"),
    [
        ([1, 0, -1], [[1, 0, -1]]),
        ([[1, 2], [3, 4]], [[1, 2], [3, 4]]),
        (np.stack([np.eye(2), 1 - np.eye(2)]), [[1, 2], [2, 1]]),
        (np.stack([np.eye(2), np.zeros((2, 2))]), [[1, 0], [0, 1]]),
        (np.stack([np.eye(2), np.eye(2)]), [[1, 0, 1, 0], [0, 1, 0, 1]]),
        (np.stack([-np.eye(2), np.zeros((2, 2))]), [[-1, 0, 0, 0], [0, -1, 0, 0]]),
        (np.eye(3)[:, :, None][:, :2], [[1, 0], [0, 1], [0, 0]]),
        (np.zeros((26,)), [[0] * 26]),
        (np.zeros((27,)), None),
        (np.zeros((2, 27)), None),
        (np.zeros((0,)), None),
        (np.zeros((1, 1, 1, 1)), None),
        (5, None),
        ({"a": 1}, None),
    ],
)
def test_a_board_is_drawn_as_a_grid_with_one_number_for_each_plane(board, grid):
    made = drawing.grid_of(board)
    assert (None if made is None else made.tolist()) == grid


@pytest.mark.parametrize(
    ("shape", "axis"), [((2, 5, 5), 0), ((5, 5, 5), 0), ((7, 5, 5), 0), ((3, 4, 5), 0), ((5, 4, 5), 0), ((5, 4, 2), 2)]
)
def test_planes_come_first_where_rows_and_columns_are_alike_or_planes_are_fewer(shape, axis):
    assert drawing._plane_axis(shape) == axis


@pytest.mark.parametrize(
    ("value", "symbol"), [(0, "."), (1, "X"), (-1, "O"), (2.0, "2"), (-3, "-3"), (0.25, "0.25"), (1 / 3, "0.33")]
)
def test_stones_have_symbols_and_other_numbers_are_written_out(value, symbol):
    assert drawing._symbol(value) == symbol


@pytest.mark.parametrize(
    ("moves", "shape", "actions", "cells"),
    [
        ([0, 5, 8], (3, 3), 9, [[0, 0], [1, 2], [2, 2]]),
        ([9, 4], (3, 3), 10, [[1, 1]]),
        ([None, 3], (2, 3), 6, [[1, 0]]),
        ([0, 35], (3, 3), 36, [[0, 0], [2, 2]]),
        ([7], (3, 3), 36, [[0, 1]]),
        ([36], (3, 3), 37, []),
        ([2, 6], (6, 7), 7, [[0, 2], [0, 6]]),
        ([2], (6, 7), 8, []),
        ([17], (3, 3), 17, []),
        ([1], (3, 3), 18, [[0, 0]]),
        ([4, 12], (2, 3, 3), 18, [[0, 2], [2, 0]]),
        ([2], (4,), 4, [[0, 2]]),
        ([2], (2, 2, 2, 2), 16, []),
    ],
)
def test_moves_are_placed_on_their_cells_or_above_their_columns(moves, shape, actions, cells):
    assert drawing._cells(moves, np.zeros(shape), actions) == cells


def test_a_wrong_next_state_is_drawn_in_four_boards():
    board, expected, actual = (np.zeros((3, 3), int) for _ in range(3))
    board[0, 0], expected[2, 2], actual[2, 1] = 1, -1, -1
    turned = np.arange(9)[::-1]
    drawn = drawing.draw("next_state", violation(expected, actual, action=1, board=board, moves=turned))
    assert [caption for caption, _ in drawn] == [
        "the position and the move",
        "image 0 and the image of the move",
        "expected: the image of the next position",
        "the next position of the image",
    ]
    assert [d["moved"] for _, d in drawn] == [[[0, 1]], [[2, 1]], [], []]
    assert [d["marks"] for _, d in drawn] == [[], [], [[2, 1], [2, 2]], [[2, 1], [2, 2]]]
    assert drawn[0][1]["rows"] == [["X", ".", "."], [".", ".", "."], [".", ".", "."]]
    assert drawn[3][1]["rows"][2] == [".", "O", "."]
    without = drawing.draw("next_state", violation(expected, {"a": 1}, action=1, board=board))
    assert [d["moved"] for _, d in without] == [[[0, 1]], [], []]
    assert [d["marks"] for _, d in without] == [[], [], []]


def test_wrong_legal_moves_are_marked_where_they_disagree():
    turned = np.arange(9)[::-1]
    drawn = drawing.draw("legal_moves", violation([0, 1, 2], [1, 2, 5], moves=turned))
    assert [d["marks"] for _, d in drawn] == [[], [[0, 0], [1, 2]]]
    assert [d["moved"] for _, d in drawn] == [[[2, 2], [1, 0]], []]
    assert drawn[1][0] == "image 0; marked: moves that disagree"
    for expected, actual in ((None, [1]), ([1], "a reason")):
        drawn = drawing.draw("legal_moves", violation(expected, actual, moves=turned))
        assert [(d["marks"], d["moved"]) for _, d in drawn] == [([], []), ([], [])]


def test_a_misplaced_entry_of_the_policy_is_marked_where_it_stands_and_where_it_leads():
    drawn = drawing.draw("policy_map", violation([4, 5], [3], action=2, image=1))
    assert drawn[1][0] == "image 1; marked: where pi has the move; in parentheses: where it leads"
    assert [(d["marks"], d["moved"]) for _, d in drawn] == [([], [[0, 2]]), ([[1, 0]], [[1, 1], [1, 2]])]
    for part, action in (("policy_map", None), ("outcome", 3)):
        drawn = drawing.draw(part, violation((1.0,), (0.0,), action=action, image=1))
        assert [(caption, d["marks"], d["moved"]) for caption, d in drawn] == [
            ("the position", [], []), ("image 1", [], []),
        ]  # fmt: skip


# --- hypotheses


@pytest.mark.parametrize(
    ("shape", "actions", "cells"),
    [
        ((3, 3), 9, [9]),
        ((3, 3), 12, [9]),
        ((3, 3), 13, []),
        ((3, 3), 8, []),
        ((3, 3), 18, [9]),
        ((2, 2), 5, [4]),
        ((2, 2), 6, []),
        ((2, 3), 8, [6]),
        ((2, 3), 9, []),
        ((1, 1), 5, []),
        ((6, 7), 7, []),
        ((2, 3, 4), 24, [24, 12, 6]),
        ((2, 3, 4), 12, [12, 6]),
        ((2, 3, 4), 6, [6]),
    ],
)
def test_up_to_three_moves_and_a_third_of_the_cells_may_be_about_no_cell(shape, actions, cells):
    assert numbers_of_cells(shape, actions) == cells


def context(shape=(3, 3), actions=9, *, reference=(), tallies=None, twins=()):
    node = SimpleNamespace(board=np.zeros(shape), outcome=None)
    return SimpleNamespace(
        game=SimpleNamespace(actions=actions),
        positions=SimpleNamespace(reached=(Reached(node, (), twins),)),
        comparison=SimpleNamespace(reference=tuple(reference), twin=lambda position, k: None),
        tallies={name: Tally() for name in comparing.PARTS} | (tallies or {}),
    )


def seen(given, implied, *, misplaced=None, unmatched=0, moves_board=True, index=1):
    places = None if given is None else np.array(given)
    wrong = frozenset(implied if misplaced is None else misplaced)
    return Seen(index, places, implied, wrong, unmatched, moves_board)


TURN = np.rot90(np.arange(9).reshape(3, 3)).ravel()  # entry p of the image comes from TURN[p]
PLACES = np.argsort(TURN).tolist()
BACK = TURN.tolist()
IDENTITY = list(range(9))


@pytest.mark.parametrize(
    ("facts", "code"),
    [
        (seen(None, {}), "SYM310"),
        (seen(PLACES, dict(enumerate(PLACES)), moves_board=False), "SYM316"),
        (seen(IDENTITY, dict(enumerate(PLACES))), "SYM301"),
        (seen(BACK, dict(enumerate(PLACES))), "SYM304"),
        (seen(PLACES, dict(enumerate(PLACES))), "SYM313"),
        (seen(PLACES, {}), "SYM313"),
        (seen([1, 0, *range(2, 9)], dict(enumerate(PLACES))), "SYM309"),
        (seen([1, 0, *range(2, 9)], dict(enumerate(PLACES)), misplaced=[]), "SYM313"),
    ],
)
def test_the_first_hypothesis_that_explains_everything_is_the_cause(facts, code):
    assert causes._kind_of(facts, context()) == code


def test_wrong_moves_are_those_whose_place_is_misplaced_and_not_implied():
    assert seen([1, 0, 2], {0: 1, 1: 2, 2: 0}).wrong() == [1, 2]
    assert seen([1, 0, 2], {0: 1, 1: 2, 2: 0}, misplaced=[2]).wrong() == [2]
    assert seen(None, {0: 1}).wrong() == []


def test_columns_that_should_be_reversed_are_told_from_cells():
    reversed_columns = {a: 6 - a for a in range(7)}
    same = list(range(7))
    assert causes._kind_of(seen(same, reversed_columns), context((6, 7), 7)) == "SYM302"
    assert causes._kind_of(seen(same, {0: 6, 1: 4}), context((6, 7), 7)) == "SYM301"
    assert causes._kind_of(seen(IDENTITY, {a: 8 - a for a in range(9)}), context()) == "SYM301"


def test_a_pass_that_moves_is_told_from_one_that_stays():
    ten = context(actions=10)
    moved, stays = [9, *range(9)], [*PLACES, 9]
    assert causes._extra_moves(ten) == [9]
    assert causes._extra_moves(context()) == []
    assert causes._extra_moves(context(actions=12)) == [9, 10, 11]
    assert causes._kind_of(seen(moved, {9: 9, 0: 2}), ten) == "SYM305"
    assert causes._kind_of(seen(moved, {0: 2}), ten) == "SYM305"
    assert causes._kind_of(seen(moved, {9: 3, 0: 2}), ten) != "SYM305"
    assert causes._kind_of(seen(stays, {9: 9, **dict(enumerate(PLACES))}), ten) == "SYM313"


@pytest.mark.parametrize("cell_major", [True, False])
def test_channels_that_stay_while_cells_move_are_told_in_both_orders(cell_major):
    def place(cell, channel):
        return cell * 4 + channel if cell_major else channel * 9 + cell

    turn_channel = {c: (c + 1) % 4 for c in range(4)}
    pairs = [(cell, channel) for cell in range(9) for channel in range(4)]
    given = np.zeros(36, int)
    implied = {}
    for cell, channel in pairs:
        given[place(cell, channel)] = place(PLACES[cell], channel)
        implied[place(cell, channel)] = place(PLACES[cell], turn_channel[channel])
    assert causes._kind_of(seen(given, implied), context(actions=36)) == "SYM306"
    implied[place(0, 0)] = place(5, 1)
    assert causes._kind_of(seen(given, implied), context(actions=36)) != "SYM306"


def test_a_flip_before_the_turn_is_conjugate_to_the_right_map():
    flip = np.arange(9).reshape(3, 3)[:, ::-1].ravel()
    places = np.array(PLACES)
    # Right: b = other(a); given: conjugate of it by `places`.
    implied = {a: int(flip[a]) for a in range(9)}
    given = np.empty(9, int)
    given[places] = places[flip]
    facts = seen(given, implied)
    assert causes._kind_of(facts, context(reference=[None, places])) == "SYM303"
    assert causes._kind_of(facts, context(reference=[None])) != "SYM303"


def test_a_plane_that_stays_is_the_one_in_which_next_boards_differ():
    shape = (3, 4, 4)
    wanted, got = np.zeros(shape), np.zeros(shape)
    got[2, 1, 1] = 1
    tally = Tally(examples=[violation(wanted, got, image=1), violation(wanted, got, image=1)])
    facts = seen(range(16), {}, unmatched=3)
    assert causes._still_plane(context(shape, 16, tallies={"next_state": tally})) == 2
    assert causes._kind_of(facts, context(shape, 16, tallies={"next_state": tally})) == "SYM307"
    assert (
        causes._kind_of(seen(range(16), {}, unmatched=0), context(shape, 16, tallies={"next_state": tally})) == "SYM313"
    )
    got_too = got.copy()
    got_too[0, 0, 0] = 1
    two = Tally(examples=[violation(wanted, got, image=1), violation(wanted, got_too, image=1)])
    assert causes._still_plane(context(shape, 16, tallies={"next_state": two})) is None
    assert causes._still_plane(context(shape, 16, tallies={"next_state": tally}), image=0) is None
    assert causes._still_plane(context(shape, 16), image=None) is None
    assert causes._still_plane(context(tallies={"next_state": tally})) is None
    wide, differs = np.zeros((5, 4, 2)), np.zeros((5, 4, 2))
    differs[3, 2, 1] = 1
    tally = Tally(examples=[violation(wide, differs, image=1)])
    assert causes._still_plane(context((5, 4, 2), 20, tallies={"next_state": tally})) == 1


def test_an_image_of_another_shape_is_named_where_boards_are_set():
    legal = Tally(examples=[violation(image=1, where="the image")])
    facts = seen(PLACES, {})
    assert causes._kind_of(facts, context(tallies={"legal_moves": legal})) == "SYM314"
    assert causes._kind_of(facts, context(tallies={"legal_moves": legal}, twins=(None,))) == "SYM313"
    assert causes._kind_of(seen(PLACES, {0: PLACES[0]}), context(tallies={"legal_moves": legal})) == "SYM313"
    assert causes._kind_of(seen(PLACES, {}, index=0), context(tallies={"legal_moves": legal})) == "SYM313"
    varying = Tally(examples=[violation(image=1, action=None)])
    assert causes._kind_of(facts, context(tallies={"policy_map": varying})) == "SYM311"
    moved = Tally(examples=[violation(image=1, action=3)])
    assert causes._kind_of(facts, context(tallies={"policy_map": moved})) == "SYM313"


@pytest.mark.parametrize(("count", "told"), [(1, "image 0"), (2, "images 0, 1"), (6, None), (7, None)])
def test_up_to_six_images_are_listed(count, told):
    text = causes._list_images(range(count))
    assert text == (told or "images 0, 1, 2, 3, 4, 5" + (" and 1 more" if count == 7 else ""))


# --- positions, axioms, groups


def alphazero(game, symmetries=None):
    return AlphaZeroGame(game, symmetries, "game", "symmetries")


@pytest.mark.parametrize(("items", "most"), [(5, 60), (60, 60), (61, 60), (119, 60), (120, 60), (1_000, 60), (39, 20)])
def test_selections_are_evenly_spaced_and_have_the_first_and_the_last(items, most):
    chosen = list(positions.spread(range(items), most))
    assert len(chosen) == min(items, most)
    assert (chosen[0], chosen[-1]) == (0, items - 1)
    gaps = np.diff(chosen)
    assert gaps.min() >= 1
    assert gaps.max() - gaps.min() <= 1


def test_a_game_is_ended_after_the_longest_number_of_moves(monkeypatch):
    monkeypatch.setattr(positions, "_LONGEST", 3)
    player = Player(Rules(alphazero(Columns(6, 7)), 0))
    game = positions._play_game(player, np.random.default_rng(0), avoid_ends=True)
    assert [len(position.moves) for position in game] == [0, 1, 2, 3]
    assert player.replay(game[-1].moves).node.board_key == game[-1].node.board_key
    assert player.replay((0, 99)) is None
    assert player.replay(()).moves == ()


def test_sampled_positions_are_distinct_and_counted_by_their_games():
    player = Player(Rules(alphazero(Columns(6, 7)), 0))
    made = positions._sample(player, np.random.default_rng(0), 30, None)
    assert len({p.node.board_key for p in made.reached}) == len(made.reached) == 30
    assert made.longest >= max(len(p.moves) for p in made.reached)
    one = positions._sample(player, np.random.default_rng(0), 30, -1.0)  # past the deadline after one game
    assert one.games == 1
    assert one.longest == len(one.reached[-1].moves)
    assert list(positions._choose_plies(10, 4, np.random.default_rng(0)))[-1] == 9
    assert len(list(positions._choose_plies(10, 4, np.random.default_rng(0)))) == 4
    assert list(positions._choose_plies(1, 4, np.random.default_rng(0))) == [0]


def test_the_logarithm_of_positions_counts_moves_without_their_order():
    player = Player(Rules(alphazero(Lines()), 0))
    game = positions._play_game(player, np.random.default_rng(0), avoid_ends=True)
    plies = [len(player.legal_moves(p)) for p in game[:-1]]
    expected = max(
        sum(np.log(plies[: k + 1])) - float(positions.math.lgamma((k + 1) / 2 + 1)) for k in range(len(plies))
    )
    assert positions._log_positions(player, game) == pytest.approx(expected)


def test_a_game_without_a_first_move_is_refused():
    class Over(Lines):
        def getGameEnded(self, board, player):
            return 1

    with pytest.raises(TargetError, match="the game is over at its start"):
        gather_positions(Player(Rules(alphazero(Over()), 0)), 10, 0, None)

    class Stuck(Lines):
        def getValidMoves(self, board, player):
            return super().getValidMoves(board, player) * 0

    with pytest.raises(TargetError, match="no move is legal at its start"):
        gather_positions(Player(Rules(alphazero(Stuck()), 0)), 10, 0, None)


def lists(symmetries, *, samples=12):
    run = GameContext(alphazero(Columns(4, 4), symmetries), GameOptions(samples=samples))
    return run, axioms.check_axioms(run.positions, None)


def half(board, pi):
    return [(board, pi), (board[:, ::-1], pi[::-1])]


def test_images_of_images_are_counted_with_the_positions_themselves():
    run, seen_axioms = lists(half)
    assert seen_axioms.checked == len(run.positions.reached) * (1 + 2 * 2)
    assert (seen_axioms.violated, seen_axioms.no_identity, seen_axioms.not_closed) == (0, [], [])
    assert seen_axioms.is_complete
    assert not seen_axioms.without_identity
    assert group_of(run) == {"name": "C2", "order": 2}
    assert run.classes == [[0], [1]]
    assert run.moves_something


def test_a_list_beside_the_original_leaves_out_products_and_conflicts_are_named():
    run, alone = lists(lambda board, pi: [(board[:, ::-1], pi[::-1])])
    assert alone.without_identity
    assert (alone.violated, alone.left_out, alone.conflicting) == (0, 0, [])
    assert group_of(run)["name"] == "1 image"
    _, stays = lists(
        lambda board, pi: [(board[:, ::-1], pi[[1, 2, 3, 0]] if hasattr(pi, "shape") else [*pi[1:], pi[0]])]
    )
    assert stays.violated == len(stays.conflicting) == 1
    assert stays.conflicting[0][1:] == (0, 0)


def test_one_image_that_moves_nothing_is_the_trivial_group():
    run, _ = lists(lambda board, pi: [(board, pi)])
    assert group_of(run) == {"name": "trivial", "order": 1}
    assert not run.moves_something
    assert run.classes == [[0]]
    twice, _ = lists(lambda board, pi: [(board, pi), (board, pi)])
    assert twice.classes == [[0, 1]]


def test_a_game_that_answers_alike_is_repeatable_and_tested_to_the_end():
    run = GameContext(alphazero(Columns(4, 4), half), GameOptions(samples=3))
    reached = run.positions.reached
    assert repeating.images_repeat(run.game, reached, 0)
    assert repeating.count_unrepeatable(run.game, reached, 0) == 0
    assert (run.is_exhaustive, run.time_up, run.tested) == (False, False, 3)
