"""Proofs from weights by themselves: entries run one by one, records of small layers, outputs against their claim."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from symcheck.engine.networks.blame import layers, proof, running
from symcheck.engine.networks.blame.proof import Compared, Proof, follow_action, same_numbers, units_at_fault
from symcheck.engine.networks.blame.running import Run, entries_at, values_of
from symcheck.engine.networks.capture.capture import capture_network
from symcheck.engine.networks.graph.nodes import BATCH, Graph
from symcheck.engine.networks.subject.claims import InputClaim, OutputClaim
from symcheck.engine.networks.subject.values import AffineMap, LayerRecord, SignedPermutation

ANY: Any = None
RNG = np.random.default_rng


def permutation(*images: int) -> SignedPermutation:
    """From one-based images with signs."""
    return SignedPermutation.from_signed_images(list(images))


def test_the_entries_of_a_graph_are_those_of_its_functions() -> None:
    graph = Graph()
    x = graph.input((3,), 1)[0]
    weight, bias = graph.constants(np.array([[1.0, 2.0, 3.0], [0.0, -1.0, 4.0]])), graph.constants(np.array([0.5, 1.0]))
    y = graph.linear(x[None], weight, bias, "linear")[0]
    z = graph.linear(x[None], weight, None, "linear")[0]
    power = graph.pointwise("pow", (3.0,), [y], "pow")
    beside = graph.pointwise("where", (), [graph.constants(np.array([1.0, 0.0])), y, z], "where")
    least = graph.reduce("place", y[None], "place", (0.0,))
    product = graph.reduce("prod", np.stack([y, z], axis=-1), "product")
    inputs = RNG(0).normal(size=(5, 3))
    values = entries_at(graph, inputs)
    assert values.shape == (graph.entries, 5)

    def at(ids: Any) -> Any:
        return values[(np.asarray(ids) // BATCH).astype(int)]

    W, b = np.array([[1.0, 2.0, 3.0], [0.0, -1.0, 4.0]]), np.array([0.5, 1.0])
    expected = inputs @ W.T
    np.testing.assert_allclose(at(y).T, expected + b)
    np.testing.assert_allclose(at(z).T, expected)
    np.testing.assert_allclose(at(power).T, (expected + b) ** 3)
    np.testing.assert_allclose(at(least)[0], (expected + b).min(axis=1))
    np.testing.assert_allclose(at(product).T, expected * (expected + b))
    np.testing.assert_allclose(at(beside)[0], (expected + b)[:, 0])
    entry = (np.asarray(y) // BATCH).astype(int)
    mixed = values_of(graph, np.array([[entry[0], -1]]), values)
    np.testing.assert_allclose(mixed[0, 0], values[entry[0]])
    np.testing.assert_allclose(mixed[0, 1], graph.numbers(np.array([-1]))[0])


def test_long_nodes_are_run_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = Graph()
    x = graph.input((7,), 1)[0]
    graph.pointwise("sin", (), [x], "sin")
    inputs = RNG(0).normal(size=(4, 7))
    whole = entries_at(graph, inputs)
    monkeypatch.setattr(running, "_CHUNK", 8)
    np.testing.assert_array_equal(entries_at(graph, inputs), whole)
    np.testing.assert_allclose(whole[7:].T, np.sin(inputs))


def test_a_network_is_run_entry_by_entry_up_to_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = Graph()
    x = graph.input((7,), 1)[0]
    graph.pointwise("sin", (), [x], "sin")
    run = Run(graph, np.zeros((4, 7)), [])
    monkeypatch.setattr(running, "MOST_NUMBERS", 28)
    assert run.is_small
    monkeypatch.setattr(running, "MOST_NUMBERS", 27)
    assert not Run(graph, np.zeros((4, 7)), []).is_small


def test_partners_have_the_same_values_at_the_image_up_to_sign_and_distance() -> None:
    graph = Graph()
    graph.input((4,), 1)
    x = RNG(0).normal(size=(6, 4))
    x[:, 3] = np.inf
    images = x[:, [1, 0, 2, 3]] * [1.0, -1.0, 1.0, 1.0]
    run = Run(graph, x, [images])
    partners, sign = run.partners(0, np.arange(4), 1e-9)
    assert partners.tolist() == [1, 0, 2, -1]
    assert sign.tolist() == [1, -1, 1, 1]
    size = np.abs(images[:, 0]).max()
    for off, hit in ((0.99e-6, True), (1.01e-6, False)):
        moved = images.copy()
        moved[2, 0] += off * size
        near = max(np.abs(moved[:, 0]).max(), 1e-3)
        assert (Run(graph, x, [moved]).partners(0, np.array([0]), 1e-6 * size / near)[0] >= 0).tolist() == [hit]
    small = Run(graph, 1e-9 * np.abs(RNG(1).normal(size=(6, 4))), [np.zeros((6, 4))])
    assert (small.partners(0, np.arange(4), 1e-5)[0] >= 0).all()  # below a thousandth, distances are absolute


def record(name: str, level: Any = "exact", sizes: Any = (0, 0), **more: Any) -> LayerRecord:
    return LayerRecord(name, "Linear", level, sizes=sizes, **more)


def test_units_that_show_a_fault_are_its_own_and_those_of_the_layer_before() -> None:
    first, other = record("first", sizes=(3, 8)), record("other", sizes=(8, 5))
    wrong = record("wrong", "failed", (8, 2), units=(0, 1, 2), inputs=(4, 5, 6))
    found = units_at_fault(Proof("failed", [first, other, wrong, record("later", sizes=(2, 8))]))
    assert found == [
        [("wrong", 0), ("first", 4)], [("wrong", 0), ("first", 5)],
        [("wrong", 1), ("first", 4)], [("wrong", 1), ("first", 5)],
    ]  # fmt: skip
    assert units_at_fault(Proof("failed", [wrong])) == [[("wrong", 0)], [("wrong", 1)]]
    bias = record("bias", "failed", (8, 2), units=(1,))
    assert units_at_fault(Proof("failed", [first, bias])) == [[("bias", 1)]]
    dense = record("dense", "failed", (8, 2), inputs=(3,))
    assert units_at_fault(Proof("failed", [first, dense])) == [[("first", 3)]]
    assert (
        units_at_fault(Proof("failed", [dense]))
        == units_at_fault(Proof("exact", [first]))
        == units_at_fault(None)
        == []
    )


def test_numbers_are_the_same_up_to_a_billionth_of_the_largest() -> None:
    left = np.array([1.0, 100.0])
    assert same_numbers(left, left + np.array([0.99e-7, 0.0]))
    assert not same_numbers(left, left + np.array([1.01e-7, 0.0]))
    assert not same_numbers(left, left[:1])
    assert not same_numbers(left, np.array([1.0, np.nan]))
    assert same_numbers(np.array([np.inf]), np.array([np.inf]))


@pytest.mark.parametrize(
    ("level", "compared", "by_comparison"),
    [("exact", Compared(1), True), ("exact", None, False), ("rounded", Compared(1), False), (None, Compared(1), False)],
)
def test_an_exact_comparison_of_graphs_tells_nothing_about_layers(
    level: Any, compared: Any, by_comparison: bool
) -> None:
    assert Proof(level, compared=compared).is_by_comparison is by_comparison


@pytest.mark.parametrize(
    ("motion", "role", "y", "fields"),
    [
        (permutation(2, 1), "action", [3.0, 3.0], None),
        (permutation(2, 1), "action", [3.0, 4.0], {}),
        (permutation(-1, 2), "given", [0.0, 4.0], None),
        (permutation(2, 1), "action_scale", [3.0, 4.0], {"deviations": True}),
    ],
)
def test_a_constant_output_is_a_fixed_point_of_its_claim(motion: Any, role: str, y: Any, fields: Any) -> None:
    walk: Any = SimpleNamespace(records=[])
    proof._judge_constant(walk, np.array([y]), OutputClaim("output", role, 2, (motion,)))
    if fields is None:
        assert walk.records == []
    else:
        (made,) = walk.records
        assert (made.level, made.name, made.cause.code, dict(made.cause.fields)) == (
            "failed",
            "output",
            "SYM133",
            fields,
        )


def test_rows_of_weights_are_moved_by_the_claim_with_the_rounding_of_the_product() -> None:
    rows = RNG(0).normal(size=(3, 4))
    turn = permutation(2, -3, 1)
    moved, noise = layers._moved_by_claim(turn, rows)
    np.testing.assert_array_equal(moved, turn.apply(rows.T).T)
    assert noise == 0.0
    affine = AffineMap(RNG(1).normal(size=(3, 3)), np.array([1.0, 2.0, 3.0]))
    moved, noise = layers._moved_by_claim(affine, rows)
    expected = affine.matrix @ rows
    expected[:, -1] += affine.offset
    np.testing.assert_allclose(moved, expected)
    eps = np.finfo(float).eps
    size = (np.abs(affine.matrix) @ np.abs(rows)).max() + 3.0
    assert noise == pytest.approx(5 * eps * size)


def graph_action(motion: Any) -> Any:
    """An action on three inputs alone."""
    graph = Graph()
    graph.input((3,), 1)
    made: Any = SimpleNamespace(graph=graph, motions=[motion], where=np.full((1, 3), -1), sign=np.ones((1, 3), int))
    if isinstance(motion, SignedPermutation):
        made.where[0, motion.index], made.sign[0, motion.index] = np.arange(3), motion.sign
    made.images_of = lambda x, generator: (made.where[0][x], made.sign[0][x], made.where[0][x] >= 0)
    made.canonical = lambda ids: np.asarray(ids)
    return made


def test_weights_before_and_after_an_action_compute_the_same_of_moved_inputs() -> None:
    rows, x = RNG(0).normal(size=(2, 4)), RNG(1).normal(size=3)

    def outputs(table: Any, at: Any) -> Any:
        return table[:, :-1] @ at + table[:, -1]

    for motion in (permutation(2, -3, 1), AffineMap(RNG(2).normal(size=(3, 3)), np.array([1.0, 2.0, 3.0]))):
        walk: Any = SimpleNamespace(action=graph_action(motion))
        made = layers.LayerWalk._moved_rows(walk, np.arange(3), rows, 0)
        assert made is not None
        moved, noise = made
        image = motion.apply(x) if isinstance(motion, SignedPermutation) else motion.matrix @ x + motion.offset
        np.testing.assert_allclose(outputs(moved, x), outputs(rows, image))
        assert (noise == 0.0) is isinstance(motion, SignedPermutation)
        assert noise < 1e-13
    walk = SimpleNamespace(action=graph_action(permutation(2, 3, 1)))
    assert layers.LayerWalk._moved_rows(walk, np.array([0, 1]), rows[:, [0, 1, 3]], 0) is None  # 1 moves to 2
    twice = layers.LayerWalk._moved_rows(
        SimpleNamespace(action=graph_action(permutation(2, 1, 3))),
        np.array([0, 0, 1, 1]),
        RNG(0).normal(size=(1, 5)),
        0,
    )  # type: ignore[arg-type]
    assert twice is not None
    assert twice[1] > 0


class Mlp(nn.Module):
    """Two layers that commute with exchanging halves of four inputs and both outputs."""

    def __init__(self, change: Any = None, activation: Any = torch.tanh) -> None:
        super().__init__()
        self.hidden, self.head, self.activation = nn.Linear(4, 4), nn.Linear(4, 2), activation
        rng = RNG(3)
        with torch.no_grad():
            for layer, count in ((self.hidden, 2), (self.head, 1)):
                half = torch.from_numpy(rng.normal(size=(count, 4)))
                layer.weight.copy_(torch.cat([half, half.roll(2, dims=1)]))
                layer.bias.copy_(torch.from_numpy(rng.normal(size=count)).repeat(2))
            self.double()
            if change is not None:
                change(self)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.head(self.activation(self.hidden(x)))
        return y


INPUTS = InputClaim((4,), (permutation(3, 4, 1, 2),))
LOGITS = (OutputClaim("output", "action", 2, (permutation(2, 1),)),)


def followed(change: Any = None, *, outputs: Any = LOGITS, **more: Any) -> Proof:
    net = Mlp(change, **({"activation": more.pop("activation")} if "activation" in more else {}))
    captured: Any = capture_network(net, (4,))
    return follow_action(captured, INPUTS, outputs, RNG(0).normal(size=(12, 4)), **more)


def test_a_right_network_is_exact_with_a_record_of_each_layer() -> None:
    made = followed(names=lambda name: f"net.{name}")
    assert (made.level, made.reason, made.by_values) == ("exact", None, False)
    assert [(each.name, each.kind, each.level, each.sizes) for each in made.records] == [
        ("net.hidden", "Linear", "exact", (4, 4)), ("net.head", "Linear", "exact", (4, 2))]  # fmt: skip
    assert made.records[0].images[0].index.tolist() == [2, 3, 0, 1]
    assert all(each.residual == 0.0 and each.certain and each.matched for each in made.records)
    assert made.bound == 0.0


def wrong(layer: str, row: int, column: int, size: float) -> Any:
    def change(net: Any) -> None:
        getattr(net, layer).weight[row, column] += size

    return change


@pytest.mark.parametrize(
    ("layer", "row", "column", "place"),
    [("hidden", 1, 2, "unit"), ("head", 0, 3, "output"), ("hidden", 3, 0, "unit"), ("head", 1, 1, "output")],
)
def test_one_wrong_weight_is_found_at_its_layer_with_its_unit_and_input(
    layer: str, row: int, column: int, place: str
) -> None:
    made = followed(wrong(layer, row, column, 0.5))
    failure = made.first_failure
    assert (made.level, failure is not None) == ("failed", True)
    assert failure is not None
    assert failure.name == layer
    assert failure.residual == pytest.approx(0.5)
    assert row in failure.units
    assert column in failure.inputs
    assert f"{place} {row}" in failure.place
    assert [each.level for each in made.records if each is not failure] == ["exact"]


def test_a_rounded_weight_is_told_from_a_wrong_one_by_float32_units() -> None:
    made = followed(wrong("hidden", 1, 2, 1e-7))
    assert made.level == "rounded"
    assert [each.level for each in made.records] == ["rounded", "exact"]
    assert 0 < (made.records[0].ulps or 0.0) <= 4
    assert made.bound is not None
    assert 0 < made.bound < 1e-5


def test_an_output_that_moves_otherwise_than_claimed_fails_at_its_head() -> None:
    made = followed(outputs=(OutputClaim("output", "invariant", 2, (permutation(1, 2),)),))
    failure = made.first_failure
    assert failure is not None
    assert (made.level, failure.name) == ("failed", "head")
    assert failure.cause is not None
    assert (failure.cause.code, failure.cause.fields["role"]) == ("SYM131", "invariant")


def test_an_output_whose_claim_is_a_callable_is_left_to_samples() -> None:
    made = followed(outputs=(OutputClaim("output", "given", 2, (lambda y, x: y,)),))
    assert made.level is None
    assert made.reason is not None
    assert made.reason.reason.code == "SYM162"


def test_an_operator_without_a_rule_ends_the_proof_where_it_stands() -> None:
    made = followed(activation=torch.special.i0)
    assert made.level is None
    assert made.reason is not None
    assert made.reason.reason.code == "SYM190"
    assert [each.name for each in made.records] == ["hidden"]
    broken = followed(wrong("hidden", 1, 2, 0.5), activation=torch.special.i0)
    assert broken.level == "failed"
    assert broken.reason is not None


def test_given_permutations_are_checked_instead_of_searched() -> None:
    right = {0: [permutation(3, 4, 1, 2)], 1: [permutation(2, 1)]}
    assert followed(given=right).level == "exact"
    forged = {0: [permutation(4, 3, 1, 2)]}
    assert followed(given=forged).level == "failed"
    of_another_size = {0: [permutation(2, 1)]}
    assert followed(given=of_another_size).level == "exact"
