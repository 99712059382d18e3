"""The action on entries by itself: functions, products, constants and layers of small graphs, entry by entry."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from symcheck.certificate_checker import FUNCTIONS
from symcheck.engine.networks.blame import action as acting
from symcheck.engine.networks.blame.action import Action, Constants, Weighed
from symcheck.engine.networks.blame.matching import match_rows
from symcheck.engine.networks.graph.nodes import BATCH, Graph, Node
from symcheck.engine.networks.subject.values import AffineMap, SignedPermutation

SWAP = SignedPermutation(np.array([1, 0, 2]), np.array([1, 1, 1]))
NEGATE = SignedPermutation(np.arange(3), np.array([-1, -1, -1]))
TURN = SignedPermutation(np.array([1, 2, 0]), np.array([1, -1, 1]))


class Built:
    """A graph of three inputs, and the action on it; nothing is found by running the network."""

    def __init__(self, motion: Any) -> None:
        self.graph = Graph()
        self.x = self.graph.input((3,), 1)[0]
        self.motion = motion

    def call(self, function: str, *columns: Any, parameters: Any = ()) -> Any:
        arguments = [np.asarray(column, float) for column in columns]
        return self.graph.pointwise(function, parameters, arguments, function)

    def constants(self, *numbers: float) -> Any:
        return self.graph.constants(np.array(numbers))

    def action(self) -> tuple[Action, list[Any]]:
        run: Any = SimpleNamespace(is_small=False)
        made = Action(self.graph, [self.motion], run)
        results = [made.pass_node(node, lambda generator, moved, rows: match_rows(moved, rows))
                   for node in self.graph.nodes]  # fmt: skip
        return made, results


def images(made: Action, ids: Any, of: Any = None) -> list[tuple[int, int] | None]:
    """For each entry the place among `of` of its image, with its sign."""
    entries = (np.asarray(ids) // BATCH).astype(int).reshape(-1)
    places = {int(e): k for k, e in reversed(list(enumerate((np.asarray(ids if of is None else of) // BATCH)
                                                            .astype(int).reshape(-1))))}  # fmt: skip
    found: list[tuple[int, int] | None] = []
    for entry in entries:
        image = int(made.where[0, entry])
        found.append(None if image < 0 else (places[image], int(made.sign[0, entry])))
    return found


@pytest.mark.parametrize(
    ("motion", "expected"),
    [
        (SWAP, [(1, 1), (0, 1), (2, 1)]),
        (NEGATE, [(0, -1), (1, -1), (2, -1)]),
        (TURN, [(2, 1), (0, 1), (1, -1)]),
    ],
)
def test_the_image_of_an_input_is_the_entry_that_moves_to_its_place(motion: Any, expected: Any) -> None:
    built = Built(motion)
    made, results = built.action()
    assert images(made, built.x) == expected
    assert results == [None]
    vectors = np.array([3.0, 5.0, 7.0])
    for j, (source, sign) in enumerate(expected):
        assert motion.apply(vectors)[j] == sign * vectors[source]


@pytest.mark.parametrize(
    ("function", "parameters", "parity"),
    [("tanh", (), -1), ("sin", (), -1), ("cos", (), 1), ("absolute", (), 1), ("exp", (), 0), ("relu", (), 0),
     ("pow", (2.0,), 1), ("pow", (3.0,), -1), ("pow", (0.5,), 0), ("sigmoid", (), 0)],
)  # fmt: skip
def test_a_function_carries_signs_exactly_if_it_is_even_or_odd(function: str, parameters: Any, parity: int) -> None:
    node = Node("pointwise", 0, 1, np.zeros((1, 1), int), function, parameters)
    assert acting._parity(node) == parity
    at = np.array([0.3, 1.7])
    both = [FUNCTIONS[function][1](sign * at, *parameters) for sign in (1.0, -1.0)] if parity else []
    if parity:
        np.testing.assert_allclose(both[1], parity * both[0])
    for motion, sign in ((SWAP, 1), (NEGATE, parity)):
        built = Built(motion)
        y = built.call(function, built.x, parameters=parameters)
        found = images(built.action()[0], y)
        order = [1, 0, 2] if motion is SWAP else [0, 1, 2]
        assert found == ([(k, sign) for k in order] if sign else [None] * 3)


def test_the_middle_of_a_sorted_row_is_odd_and_no_other_place_is() -> None:
    def parity(place: float, count: int) -> int:
        return acting._parity(Node("reduce", 0, 1, np.zeros((1, count), int), "place", (place,)))

    assert [parity(place, 3) for place in (0.0, 1.0, 2.0)] == [0, -1, 0]
    assert [parity(place, 4) for place in (1.0, 2.0)] == [0, 0]


def test_products_multiply_the_signs_of_their_factors_in_any_order() -> None:
    built = Built(TURN)
    x = built.x
    pairs = built.graph.reduce("prod", np.stack([[x[0], x[1]], [x[1], x[2]], [x[2], x[0]]]), "product")
    made, results = built.action()
    # x -> (x2, x0, -x1): x0 x1 -> x2 x0, x1 x2 -> -x0 x1, x2 x0 -> -x1 x2
    assert images(made, pairs) == [(2, 1), (0, -1), (1, -1)]
    assert results[-1] is None


def test_a_choice_keeps_its_condition_and_may_negate_both_values() -> None:
    built = Built(NEGATE)
    x = built.x
    squares = built.call("pow", x, parameters=(2.0,))
    positive = built.call("positive", squares)
    chosen = built.call("where", positive, x, x[[1, 2, 0]])
    wrong = built.call("where", x, x, x[[1, 2, 0]])
    made, _ = built.action()
    assert images(made, positive) == [(0, 1), (1, 1), (2, 1)]
    assert images(made, chosen) == [(0, -1), (1, -1), (2, -1)]
    assert images(made, wrong) == [None] * 3
    built = Built(NEGATE)
    half = built.call("where", built.call("positive", built.call("pow", built.x, parameters=(2.0,))), built.x,
                      built.call("absolute", built.x))  # fmt: skip
    assert images(built.action()[0], half) == [None] * 3


def test_opposite_constants_stand_beside_opposite_arguments() -> None:
    built = Built(NEGATE)
    fixed = built.constants(1.0, 1.0, 1.0)
    chosen = built.call("where", fixed, built.x, built.call("tanh", built.x))
    assert images(built.action()[0], chosen) == [(0, -1), (1, -1), (2, -1)]
    graph = Graph()
    made: Any = object.__new__(Action)
    made.graph = graph
    codes = np.array([graph.code_of(2.0), graph.code_of(-3.0), 5, graph.code_of(0.0)])
    opposite = made._opposite(codes)
    assert opposite[2] == 5
    assert graph.numbers_of(opposite[[0, 1, 3]]).tolist() == [-2.0, 3.0, 0.0]
    assert opposite[3] == codes[3]


def layer(weight: Any, bias: Any, motion: Any = SWAP) -> tuple[Any, Action, Any]:
    built = Built(motion)
    ids = built.graph.constants(np.array(weight, float), "hidden.weight")
    b = None if bias is None else built.graph.constants(np.array(bias, float), "hidden.bias")
    y = built.graph.linear(built.x[None], ids, b, "linear")[0]
    made, results = built.action()
    return y, made, results[-1]


EQUAL = [[1.0, 2.0, 3.0], [2.0, 1.0, 3.0], [5.0, 5.0, -1.0]]


def test_units_move_as_their_weights_do() -> None:
    y, made, weighed = layer(EQUAL, [1.0, 1.0, 2.0])
    assert isinstance(weighed, Weighed)
    assert images(made, y) == [(1, 1), (0, 1), (2, 1)]
    assert (weighed.found, weighed.certain, len(weighed.images), len(weighed.judgements)) == (True, True, 1, 1)
    assert weighed.worst is not None
    assert (weighed.worst.level, weighed.worst.residual) == ("exact", 0.0)
    assert weighed.gap is not None
    assert weighed.gap.max() == 0.0
    assert weighed.images[0].index.tolist() == [1, 0, 2]
    assert weighed.inputs[0].index.tolist() == [1, 0, 2]
    np.testing.assert_array_equal(weighed.rows, np.column_stack([EQUAL, [1.0, 1.0, 2.0]]))


def test_signs_of_units_follow_those_of_their_inputs_unless_a_bias_forbids_it() -> None:
    y, made, _ = layer(EQUAL, None, NEGATE)
    assert images(made, y) == [(0, -1), (1, -1), (2, -1)]
    opposite = [[1.0, 2.0, 3.0], [-1.0, -2.0, -3.0], [0.5, 0.25, 4.0], [-0.5, -0.25, -4.0]]
    y, made, _ = layer(opposite, [1.0, 1.0, 2.0, 2.0], NEGATE)
    assert images(made, y) == [(1, 1), (0, 1), (3, 1), (2, 1)]


def test_one_wrong_weight_leaves_the_images_and_shows_in_the_gap() -> None:
    wrong = [*EQUAL[:2], [5.0, 5.5, -1.0]]
    y, made, weighed = layer(wrong, [1.0, 1.0, 2.0])
    assert images(made, y) == [(1, 1), (0, 1), (2, 1)]
    assert weighed.worst.level == "failed"
    assert weighed.worst.residual == weighed.gap.max() == 0.5
    assert np.flatnonzero(weighed.gap.max(axis=1)).tolist() == [2]


def test_unrelated_units_have_no_image() -> None:
    y, made, weighed = layer([[1.0, 2.0, 3.0], [7.0, -1.0, 0.5], [0.1, 9.0, 2.0]], [1.0, 2.0, 3.0], TURN)
    assert images(made, y) == [None] * 3
    assert (weighed.found, weighed.certain) == (False, False)
    assert not made.known((y // BATCH).astype(int)).any()


def test_equal_units_share_their_image_and_equal_columns_are_added_up() -> None:
    y, made, weighed = layer([EQUAL[0], EQUAL[0], EQUAL[1]], [1.0, 1.0, 1.0])
    assert images(made, y) == [(2, 1), (2, 1), (0, 1)]
    assert weighed.classes.tolist() == [0, 0, 1]
    built = Built(SWAP)
    weight = built.graph.constants(np.array([[1.0, 2.0, 3.0, 4.0]]), "hidden.weight")
    twice = built.x[[0, 1, 0, 1]]
    built.graph.linear(twice[None], weight, None, "linear")
    made, results = built.action()
    np.testing.assert_array_equal(results[-1].rows, [[4.0, 6.0, 0.0]])
    assert len(results[-1].arguments) == 2


@pytest.mark.parametrize("scale", [True, False])
def test_constants_that_scale_or_shift_entries_must_move_with_them(scale: bool) -> None:
    def passed(numbers: Any, motion: Any = SWAP) -> tuple[Any, Action, Any]:
        built = Built(motion)
        fixed = built.constants(*numbers)
        if scale:
            y = built.graph.reduce("prod", np.stack([built.x, fixed], axis=-1), "product")
        else:
            y = built.graph.add([built.x, fixed], [1.0, 1.0], "add")
        made, results = built.action()
        return y, made, results[-1]

    y, made, result = passed([2.0, 2.0, 5.0])
    assert images(made, y) == [(1, 1), (0, 1), (2, 1)]
    assert result is None
    y, made, result = passed([2.0, 2.0 + 1e-7, 5.0])
    assert isinstance(result, Constants)
    assert (result.scale, result.found) == (scale, True)
    assert result.worst is not None
    assert result.worst.residual == pytest.approx(1e-7, rel=1e-3)
    assert images(made, y) == [(1, 1), (0, 1), (2, 1)]
    assert made.rounded[(y // BATCH).astype(int)[:2]].all()


def test_a_matrix_that_mixes_inputs_is_matched_by_the_weights_that_it_gives() -> None:
    angle = np.pi / 2
    turn = np.array([[np.cos(angle), -np.sin(angle), 0.0], [np.sin(angle), np.cos(angle), 0.0], [0.0, 0.0, 1.0]])
    rows = np.array([[1.0, 2.0, 3.0]])
    for _ in range(3):
        rows = np.concatenate([rows, rows[-1:] @ turn])
    y, made, weighed = layer(rows, [1.0] * 4, AffineMap(turn, np.zeros(3)))
    assert images(made, y) == [(1, 1), (2, 1), (3, 1), (0, 1)]
    assert weighed.worst.level == "exact"
    assert made.mixed[:3].all()
    assert (made.where[0, :3] == -1).all()
    shift = np.array([0.0, 0.0, 2.0])
    y, made, weighed = layer(rows, [1.0] * 4, AffineMap(turn, shift))
    assert weighed.worst.level == "failed"


def test_scaled_and_shifted_components_of_a_mixed_input_keep_their_source() -> None:
    built = Built(AffineMap(np.diag([1.0, -1.0, 1.0]), np.zeros(3)))
    fixed = built.constants(2.0, 3.0, 4.0)
    scaled = built.graph.reduce("prod", np.stack([built.x, fixed], axis=-1), "product")
    shifted = built.graph.add([scaled, built.constants(10.0, 20.0, 30.0)], [-1.0, 1.0], "add")
    made, _ = built.action()
    for ids, scale, offset in ((scaled, [2.0, 3.0, 4.0], [0.0] * 3), (shifted, [-2.0, -3.0, -4.0], [10.0, 20.0, 30.0])):
        entries = (ids // BATCH).astype(int)
        assert made._source[entries].tolist() == [0, 1, 2]
        np.testing.assert_allclose(made._scale[entries], scale)
        np.testing.assert_allclose(made._offset[entries], offset)
        assert made.mixed[entries].all()


def test_blocks_of_units_that_rotate_are_noticed_in_rows_and_in_strides() -> None:
    rng = np.random.default_rng(0)
    turn = np.array([[0.6, -0.8], [0.8, 0.6]])
    rows = rng.normal(size=(6, 5))
    moved = (turn @ rows.reshape(3, 2, 5)).reshape(6, 5)
    assert acting._turns_blocks(moved, rows)
    strided = np.einsum("ij,jbk->ibk", turn, rows.reshape(2, 3, 5)).reshape(6, 5)
    assert acting._turns_blocks(strided, rows)
    assert not acting._turns_blocks(rng.normal(size=(6, 5)), rows)
    assert not acting._turns_blocks(1.01 * moved, rows)
    assert not acting._turns_blocks(np.zeros((6, 5)), np.zeros((6, 5)))
    assert not acting._turns_blocks(turn @ rows[:2], rows[:2])  # one block is the whole layer
    assert acting._in_blocks(rows, 2)[1].tolist() == rows[2:4].tolist()
    assert acting._by_strides(rows, 2)[1].tolist() == rows[[1, 4]].tolist()


def test_constants_are_their_own_images_and_unknown_entries_are_none() -> None:
    built = Built(SWAP)
    made, _ = built.action()
    made.where[0, 2] = -1
    assert made.known(np.array([-3, 0, 2])).tolist() == [True, True, False]
    moved, sign, known = made.images_of(np.array([-3, 0, 2]), 0)
    assert (moved[:2].tolist(), sign.tolist(), known.tolist()) == ([-3, 1], [1, 1, 1], [True, True, False])
