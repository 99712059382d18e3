"""The parts of a proof on documents and graphs written by hand: ties, stray steps, uneven terms, and written nodes."""

from __future__ import annotations

import copy
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from certificate_mutants import seal
from test_certificate_checker import action, floats, ints, pair

from symcheck.certificate_checker import EXACT_CLAIM, PRODUCT_CLAIM, Checker, RejectedError, check, unpack
from symcheck.engine.networks.graph import making, ties, unbounded
from symcheck.engine.networks.graph.certificate import _Writer, needed_nodes
from symcheck.engine.networks.graph.interpreter import Followed
from symcheck.engine.networks.graph.nodes import BATCH, Graph, NoCertificateError, Node, codes_of_rows
from symcheck.engine.networks.graph.ranges import ranges_within

FLOAT32 = np.finfo(np.float32)


def pointwise(function: str, *rows: list[int], parameters: tuple[float, ...] = ()) -> dict[str, Any]:
    node = {"op": "pointwise", "name": "", "x": ints(*rows), "function": function}
    return {**node, "parameters": list(parameters)}


def linear(rows: list[list[int]], weight: list[list[float]], bias: float | None = None) -> dict[str, Any]:
    return {"op": "linear", "name": "w", "x": ints(*rows), "weight": floats(*weight),
            "bias": None if bias is None else floats(*[bias] * len(weight))}  # fmt: skip


def document(*nodes: dict[str, Any], entry: int, on: dict[str, Any], out: dict[str, Any]) -> dict[str, Any]:
    """One output of a network of two numbers."""
    return {
        "schema": "symcheck-certificate/2",
        "claim": {"generators": ["g"], "tolerance": EXACT_CLAIM},
        "input": {"shape": [2]},
        "weights": {},
        "nodes": [{"op": "input", "size": 2, "actions": [on]}, *nodes],
        "outputs": [{"path": "y", "entries": ints(entry), "actions": [out]}],
    }


SWAP, STAY, TURN = action([1, 0]), action([0]), action([0, 1], [-1, -1])


def larger(weight: list[float], on: dict[str, Any], *, bias: float | None = None) -> dict[str, Any]:
    """One of the inputs, and the negative of the other, as a comparison says."""
    return document(
        linear([[0, 1]], [weight], bias), pointwise("positive", [2]), pointwise("where", [3, 0, 1]),
        entry=4, on=on, out=STAY,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("weight", "sign", "equation"),
    [([1.0, -1.0], 1, "x[0] = x[1]"), ([-3.0, 3.0], 1, "x[0] = x[1]"), ([1.0, 1.0], -1, "x[0] = -x[1]")],
)
def test_a_comparison_of_two_entries_holds_but_where_they_are_equal(
    weight: list[float], sign: int, equation: str
) -> None:
    exchanged = larger(weight, action([1, 0], [sign, sign]))
    if sign < 0:  # where(x > -y, x, -y)
        exchanged["nodes"][1:] = [
            linear([[0, 1]], [weight]), pointwise("positive", [2]), linear([[1]], [[-1.0]]),
            pointwise("where", [3, 0, 4]),
        ]  # fmt: skip
        exchanged["outputs"][0]["entries"] = ints(5)
    with pytest.raises(RejectedError, match="does not transform as claimed"):
        check(seal(exchanged))
    assert ties.ties_of(exchanged) == (equation,)


def test_an_entry_is_compared_with_zero_and_two_equations_are_in_order() -> None:
    nodes = [pointwise("positive", [0], [1]), pointwise("zero", [2], [3]), linear([[0], [1]], [[-1.0]]),
             pointwise("where", [4, 6, 0], [5, 7, 1])]  # fmt: skip
    absolute = document(*nodes, entry=9, on=TURN, out=STAY)
    assert ties.ties_of(absolute) == ("x[0] = 0", "x[1] = 0")


@pytest.mark.parametrize(
    ("weight", "bias"), [([1.0, -2.0], None), ([1.0, -1.0], 0.5)], ids=["another multiple", "a bias"]
)
def test_a_comparison_that_the_action_does_not_turn_round_is_no_tie(weight: list[float], bias: float | None) -> None:
    assert ties.ties_of(larger(weight, SWAP, bias=bias)) is None


def compared_after(function: str) -> dict[str, Any]:
    """The larger of two numbers by a comparison of a function of theirs."""
    return document(
        pointwise(function, [0], [1]), linear([[2, 3]], [[1.0, -1.0]]), pointwise("positive", [4]),
        pointwise("where", [5, 0, 1]), entry=6, on=SWAP, out=STAY,
    )  # fmt: skip


def test_functions_are_equal_on_a_thin_set_only_if_they_are_analytic() -> None:
    for function in sorted(ties._ANALYTIC - {"prod"}):
        assert ties.ties_of(compared_after(function)) == ("two compared entries are equal",), function
    for function in ("relu", "absolute", "floor", "sign", "trunc"):
        assert ties.ties_of(compared_after(function)) is None, function
    constants = compared_after("tanh")
    constants["nodes"].insert(0, {"op": "constant", "value": floats(2.0)})
    for node in constants["nodes"][2:]:
        node["x"] = ints(*(unpack(node["x"]) + 1).tolist())
    constants["nodes"][3]["x"], constants["nodes"][3]["weight"] = ints([0, 3, 4]), floats([0.0, 1.0, -1.0])
    constants["outputs"][0]["entries"] = ints(7)
    assert ties.ties_of(constants) == ("two compared entries are equal",)


def test_a_claim_without_comparisons_is_not_evaluated_again(monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[Any] = []

    def counted(document: Any) -> Checker:
        built.append(document)
        return Checker(document)

    monkeypatch.setattr(ties, "Checker", counted)
    assert ties.ties_of(pair()) is None
    assert not built
    assert ties.ties_of(larger([1.0, -1.0], SWAP)) is not None
    assert ties.ties_of(larger([1.0, -1.0], action([0, 1]))) is None  # nothing turns round
    assert ties.ties_of(document(pointwise("positive", [0]), entry=2, on=SWAP, out=STAY)) is None  # it does not hold
    assert len(built) == 3


def test_the_first_step_whose_terms_are_met_at_no_input_is_named() -> None:
    def stray_of(broken: dict[str, Any]) -> tuple[str, dict[str, Any]] | None:
        told = making._first_stray(broken)
        return None if told is None else (told.code, dict(told.fields))

    assert stray_of(pair()) is None
    wrong_claim = pair()
    wrong_claim["outputs"][0]["actions"] = [action([0, 1])]
    assert stray_of(wrong_claim) is None
    wrong_weight = pair(PRODUCT_CLAIM)
    wrong_weight["weights"]["w"] = floats([2.0, 3.0], [3.0, 2.5])
    assert stray_of(wrong_weight) == ("SYM194", {"layer": "w"})
    turned = document(linear([[0, 1]], [[1.0, 1.0]]), pointwise("tanh", [2]), entry=3, on=TURN, out=STAY)
    assert stray_of(turned) is None  # the terms at L x are the negatives of those at x
    for name, told in (("e", "e"), ("", "exp")):
        turned["nodes"][2] = {**pointwise("exp", [2]), "name": name}
        assert stray_of(turned) == ("SYM197", {"operation": told})
    later = document(pointwise("tanh", [0], [1]), linear([[0, 1]], [[1.0, 2.0]]), entry=4, on=SWAP, out=STAY)
    later["nodes"].append(pointwise("exp", [4]))
    assert stray_of(later) == ("SYM194", {"layer": "w"})
    unreadable = copy.deepcopy(wrong_weight)
    unreadable["nodes"].insert(1, pointwise("nothing", [0], [1]))
    assert stray_of(unreadable) is None


def graph_of_roots(on: dict[str, Any], out: dict[str, Any]) -> tuple[Graph, dict[str, Any]]:
    """sqrt(x) * 0 + y, without the term that vanishes: nodes of a graph, and its document."""
    graph = Graph()
    x = graph.input((2,), BATCH)
    root = graph.pointwise("sqrt", (), (x,), "root")
    weight = graph.constants(np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]))
    graph.linear(np.concatenate([x, root[:, :1]], axis=1), weight, None, "w")
    nodes = [pointwise("sqrt", [0], [1]), linear([[0, 1, 2]], [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])]
    made = document(*nodes, entry=4, on=on, out=out)
    return graph, made


def test_both_sides_of_a_claim_must_depend_on_the_same_values_that_may_be_undefined() -> None:
    graph, made = graph_of_roots(SWAP, STAY)
    made["outputs"][0] = {"path": "y", "entries": ints(2, 3), "actions": [SWAP]}
    assert unbounded.uneven_dependence(made, graph, graph.nodes) == ""
    made["outputs"][0] = {"path": "y", "entries": ints(4, 5), "actions": [action([0, 1])]}
    assert unbounded.uneven_dependence(made, graph, graph.nodes) == "sqrt"
    made["outputs"][0]["entries"] = ints(0, 1)
    assert unbounded.uneven_dependence(made, graph, graph.nodes) == ""
    # constants of the document come before the nodes of the graph
    shifted = copy.deepcopy(made)
    shifted["nodes"].insert(0, {"op": "constant", "value": floats(3.0)})
    for node in shifted["nodes"][2:]:
        node["x"] = ints(*(unpack(node["x"]) + 1).tolist())
    for entries, told in ((ints(3, 4), ""), (ints(5, 6), "sqrt"), (ints(0, 0), "")):
        shifted["outputs"][0] = {"path": "y", "entries": entries, "actions": [SWAP]}
        assert unbounded.uneven_dependence(shifted, graph, graph.nodes) == told


def test_nothing_is_evaluated_again_if_no_value_may_be_undefined(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unbounded, "Checker", None)
    graph = Graph()
    graph.pointwise("tanh", (), (graph.input((2,), BATCH),), "t")
    assert unbounded.uneven_dependence(pair(), graph, graph.nodes) == ""


@pytest.mark.parametrize("product", [False, True])
def test_sums_and_products_may_leave_float32_from_its_largest_number_on(product: bool) -> None:
    def leaves(factor: float, x_size: float = 1.0) -> list[bool]:
        graph = Graph()
        x = graph.input((2,), BATCH)
        if product:
            fixed = np.broadcast_to(graph.constants(np.full(1, factor)), x.shape)
            graph.reduce("prod", np.stack([x, fixed], axis=-1), "p")
        else:
            graph.linear(x, graph.constants(np.diag([factor, factor])), None, "w")
        beyond: list[bool] = unbounded._leaves_float32(
            graph, graph.nodes[-1], ranges_within(graph, x_size, 0.0)
        ).tolist()
        return beyond

    most, least = float(FLOAT32.max), float(FLOAT32.tiny)
    for factor, beyond in ((1.0, False), (most, False), (np.nextafter(most, np.inf), True), (-2 * most, True),
                           (least, False), (np.nextafter(least, 0), True), (-least / 2, True)):  # fmt: skip
        assert leaves(float(factor)) == [beyond, beyond], factor
    if not product:
        assert leaves(0.0) == [False, False]  # zero is a number of float32
    assert leaves(most, np.inf) == [False, False]  # a value that is not finite is no sum of finite numbers


def test_exponentials_overflow_from_the_logarithm_of_the_largest_number_on() -> None:
    most = float(np.log(float(FLOAT32.max)))

    def may(function: str, low: float, high: float) -> bool:
        """Of a number between two bounds."""
        graph = Graph()
        x = graph.pointwise("tanh", (), (graph.input((1,), BATCH),), "t")
        weight, bias = np.array([[(high - low) / 2]]), np.array([(high + low) / 2])
        scaled = graph.linear(x, graph.constants(weight), graph.constants(bias), "w")
        graph.pointwise(function, (), (scaled,), function)
        return bool(unbounded._may_be_infinite(graph, graph.nodes[-1])[0])

    for function in ("exp", "expm1", "sinh", "cosh"):
        assert not may(function, -1.0, most - 1e-6)
        assert may(function, -1.0, most + 1e-6)
        assert may(function, -most - 1e-6, 1.0) == (function in ("sinh", "cosh"))
        assert not may(function, -most + 1e-6, 1.0)
    assert not may("tanh", -1000.0, 1000.0)
    assert may("sqrt", -1e-3, 1.0)
    assert not may("sqrt", 1e-3, 1.0)


def test_sources_are_carried_along_as_sets() -> None:
    rng = np.random.default_rng(0)
    cones = unbounded._Cones()
    sets: list[set[int]] = []
    for step in range(40):
        columns, units = (0, 1) if step < 2 else (int(rng.integers(1, 4)), int(rng.integers(1, 3)))
        rows = int(rng.integers(1, 4))
        x = rng.integers(0, max(len(sets), 1), size=(rows, columns))
        start, size = len(sets), rows * units
        own = start + np.flatnonzero(rng.random(size) < 0.3)
        cones.add(x, own, size)
        sets += [set[int]().union(*(sets[k] for k in row)) for row in x.tolist() for _ in range(units)]
        for source in own.tolist():
            sets[source].add(source)
    assert [set(cones.of(entry)) for entry in range(len(sets))] == sets
    assert cones.of(0) is cones.of(next(k for k in range(1, len(sets)) if sets[k] == sets[0]))


def test_an_entry_reads_its_source_or_the_nonzero_columns_of_its_row() -> None:
    checker: Any = Checker(pair(PRODUCT_CLAIM))
    assert [unbounded._read_by(action([2, 0, 1]), unit, 3, checker).tolist() for unit in range(3)] == [[2], [0], [1]]
    matrix = {"matrix": floats([1.0, 0.0, -2.0], [0.0, 0.0, 0.0], [0.0, 3.0, 0.0]), "offset": floats(0.0, 0.0, 0.0)}
    assert [unbounded._read_by(matrix, unit, 3, checker).tolist() for unit in range(3)] == [[0, 2], [], [1]]


def test_constants_have_their_own_places_and_equal_ones_a_joint_code() -> None:
    graph = Graph()
    first = graph.constants(np.arange(6.0).reshape(2, 3), "layer.weight")
    second = graph.constants(np.array([2.0, -0.0, 7.0]), "scale")
    many = graph.constants(np.linspace(0.0, 1.0, 5000))
    assert first.tolist() == [[-1, -2, -3], [-4, -5, -6]]
    assert second.tolist() == [-7, -8, -9]
    assert graph.numbers(first).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert graph.numbers(many)[[0, -1]].tolist() == [0.0, 1.0]
    assert graph.places == 9 + 5000
    names = [graph.layer(ids, "other") for ids in (first, first[1, 2], second, second[2], many)]
    assert names == ["layer", "layer", "scale", "scale", "other"]
    codes = graph.coded(np.array([[5, -3, -7], [0, -1, -8]]))
    assert codes[:, 0].tolist() == [5, 0]
    assert codes[0, 1] == codes[0, 2] != codes[1, 1] == codes[1, 2]
    assert graph.numbers_of(codes[:, 1]).tolist() == [2.0, 0.0]
    assert graph.code_of(-0.0) == graph.code_of(0.0) == codes[1, 1]
    assert graph.coded(np.array([3, 4])).tolist() == [3, 4]


def test_rows_have_equal_codes_exactly_if_they_are_equal() -> None:
    rng = np.random.default_rng(1)
    for columns in (1, 2, 5):
        first, second = rng.integers(-2, 2, size=(20, columns)), rng.integers(-2, 2, size=(30, columns))
        codes = codes_of_rows(first, second)
        assert list(map(len, codes)) == [20, 30]
        rows, joint = np.concatenate([first, second]), np.concatenate(codes)
        equal = (rows[:, None] == rows[None]).all(axis=2)
        assert (equal == (joint[:, None] == joint[None])).all()


def test_a_node_of_equal_rows_is_one_row_and_its_size_counts_products() -> None:
    graph = Graph()
    x = graph.input((4,), BATCH)
    assert graph.size == 0
    twice = graph.pointwise("tanh", (), (x[:, [0, 1, 0, 3]],), "t")
    assert [node.size for node in graph.nodes] == [4, 3]
    assert (twice[:, 0] == twice[:, 2]).all()
    assert len(np.unique(twice[0])) == 3
    assert (graph.size, graph.entries) == (3, 7)
    made = graph.linear(x[:, None, :2], graph.constants(np.ones((5, 2))), graph.constants(np.ones(5)), "w")
    assert made.shape == (BATCH, 1, 5)
    assert (graph.size, graph.entries) == (3 + 2 * 5, 12)
    assert not graph.are_positive(x)
    assert graph.are_positive(graph.pointwise("exp", (), (x,), "e"))
    assert [graph.are_positive(graph.constants(np.full(2, number))) for number in (1e-9, 0.0, -1.0)] == [
        True, False, False]  # fmt: skip
    elsewhere = x[:, :2].copy()
    elsewhere[1] = x[1, 2:]
    for rows in (x[:, 0][None], elsewhere, x.T, x[:, :1].repeat([1, 2, 1], axis=0)):
        with pytest.raises(NoCertificateError) as raised:
            graph.reduce("prod", rows, "p")
        assert raised.value.reason.code == "SYM193"


def test_constants_are_computed_and_only_what_depends_on_the_input_becomes_a_node() -> None:
    graph = Graph()
    x = graph.input((2,), BATCH)
    fixed = np.broadcast_to(graph.constants(np.array([2.0, 3.0])), (BATCH, 2))
    assert graph.numbers(graph.pointwise("pow", (2.0,), (fixed,), "p"))[0].tolist() == [4.0, 9.0]
    assert graph.numbers(graph.reduce("prod", fixed, "p")).tolist() == [6.0] * BATCH
    assert graph.numbers(graph.largest(fixed, "m")).tolist() == [3.0] * BATCH
    weight, bias = graph.constants(np.array([[1.0, -1.0], [2.0, 2.0]])), graph.constants(np.array([0.5, 0.0]))
    assert graph.numbers(graph.linear(fixed, weight, bias, "w"))[1].tolist() == [-0.5, 10.0]
    assert graph.numbers(graph.linear(fixed, weight, None, "w"))[1].tolist() == [-1.0, 10.0]
    assert len(graph.nodes) == 1
    mixed = graph.pointwise("tanh", (), (np.concatenate([x, fixed], axis=1),), "t")
    assert (mixed[:, :2] >= 0).all()
    assert np.allclose(graph.numbers(mixed[:, 2:]), np.tanh([2.0, 3.0]))
    assert graph.nodes[-1].size == 2
    nested = graph.add([graph.add([x[:, 0], x[:, 1]], [1.0, -1.0], "add"), x[:, 1]], [-1.0, 1.0], "add")
    assert nested.shape == (BATCH,)
    signs = graph.nodes[-1].signs
    assert signs is not None
    assert (graph.nodes[-1].x.tolist(), signs.tolist()) == ([[0, 1, 1]], [-1.0, 1.0, 1.0])
    assert not graph.nodes[-1].has_weights
    assert Node("linear", 0, 1, np.zeros((1, 1), np.int64), weight=np.zeros((1, 1), np.int64), name="w").has_weights
    for number in (np.inf, np.nan):
        for weights in ((np.array([[1.0, number]]), np.ones(1)), (np.ones((1, 2)), np.array([number]))):
            with pytest.raises(NoCertificateError) as raised:
                graph.linear(x, graph.constants(weights[0]), graph.constants(weights[1]), "w")
            assert raised.value.reason.code == "SYM191"


def test_only_nodes_that_outputs_read_are_needed_and_the_input_always() -> None:
    graph = Graph()
    x = graph.input((2,), BATCH)
    first = graph.pointwise("tanh", (), (x[:, 0],), "t")
    graph.pointwise("exp", (), (x[:, 1],), "unread")
    second = graph.pointwise("sin", (), (first,), "s")

    def needed(*ids: np.ndarray) -> list[str]:
        outputs = {str(k): np.asarray(item, np.int64).reshape(-1) for k, item in enumerate(ids)}
        claims: Any = [SimpleNamespace(path=path) for path in outputs]
        return [node.name or node.op for node in needed_nodes(Followed(graph, outputs), claims)]

    assert needed(second[:1] // BATCH) == ["input", "t", "s"]
    assert needed(first[:1] // BATCH) == ["input", "t"]
    assert needed(np.array([-1])) == ["input"]
    assert needed(first[:1] // BATCH, np.array([3])) == ["input", "t", "unread"]


def test_numbers_are_written_as_the_parameter_that_they_are() -> None:
    graph = Graph()
    weights = {"a.weight": np.arange(6.0).reshape(2, 3), "b": np.array([4.0, 8.0])}
    ids = {name: graph.constants(numbers, name).astype(np.int64) for name, numbers in weights.items()}
    literal = graph.constants(np.array([0.0, 9.0])).astype(np.int64)
    graph.input((1,), BATCH)
    writer = _Writer(graph, [], weights, [np.array([literal[1], ids["b"][0], ids["a.weight"][1, 1]])])
    assert [sorted(node["value"].keys() & {"name", "entries"}) for node in writer.nodes] == [
        [], ["entries", "name"], ["entries", "name"]]  # fmt: skip
    assert unpack(writer.table(np.array([[literal[1], ids["b"][0], ids["a.weight"][1, 1]]]))).tolist() == [[0, 1, 2]]

    def written(item: np.ndarray) -> tuple[str, list[Any] | None]:
        stored = writer.number(item)
        if "name" not in stored:
            return "", unpack(stored).tolist()
        return stored["name"], unpack(stored["entries"]).tolist() if "entries" in stored else None

    whole = ids["a.weight"]
    assert written(whole) == ("a.weight", None)
    assert written(ids["b"]) == ("b", None)
    assert written(whole.T.copy()) == ("a.weight", [[0, 3], [1, 4], [2, 5]])
    assert written(whole[1]) == ("a.weight", [3, 4, 5])
    assert written(ids["b"][::-1].copy()) == ("b", [1, 0])
    assert written(np.array([whole[0, 2], literal[0]])) == ("a.weight", [2, 6])  # a zero beside its entries
    assert written(np.array([whole[0, 2], literal[1]])) == ("", [2.0, 9.0])
    assert written(np.array([whole[0, 2], ids["b"][1]])) == ("", [2.0, 8.0])
    assert written(literal) == ("", [0.0, 9.0])
    assert set(writer.weights) == set(weights)
