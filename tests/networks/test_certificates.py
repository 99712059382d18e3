"""Certificates: what one holds, and that its checker accepts no other."""

from __future__ import annotations

import ast
import copy
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from certificate_mutants import bits_of, certificate_of, flipped, is_accepted, residual, seal
from net_catalogue import Draw, GridNet, linear, mirror, mirror_mlp, turn
from torch import nn

import symcheck.certificate_checker
from symcheck.certificate_checker import EXACT_CLAIM, PRODUCT_CLAIM, RejectedError, check, evaluate, unpack
from symcheck.engine.networks.graph.certificate import packed
from symcheck.engine.networks.graph.nodes import NoCertificateError
from symcheck.groups import catalog
from symcheck.representations import constructors
from symcheck.symmetry.symmetry import Symmetry

INPUTS = np.random.default_rng(0).normal(size=(6, 4)) * np.array([1.0, 1.0, 3.0, 3.0, 10.0, 30.0])[:, None]
SIGNS = torch.tensor([-1.0, -1.0, 1.0, 1.0]).double()
VISIBLE = 1e-12
"""A residual over the output's scale that is more than float64 rounding in these networks."""


def small_net() -> nn.Module:
    """Six units whose mirror images are their negatives, a residual sum, a product and a head of two outputs."""
    draw = Draw(3)
    w, b, v, u = draw(3, 4), draw(3), draw(1, 3), draw(1, 3)

    class Small(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = linear(torch.cat([w, -w]), torch.cat([b, b]))
            self.head = linear(torch.cat([torch.cat([v, u], 1), torch.cat([u, v], 1)]))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            h = self.first(x)
            return self.head(torch.relu(h) + 0.5 * torch.tanh(h).clamp(-0.5, 0.5))

    return Small()


@pytest.fixture(scope="module")
def small() -> dict[str, Any]:
    return certificate_of(small_net(), mirror())


def test_the_checker_is_one_short_file_that_imports_numpy_and_the_standard_library_alone() -> None:
    source = Path(symcheck.certificate_checker.__file__).read_text()
    imports = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Import | ast.ImportFrom)]
    names = {alias.name for node in imports if isinstance(node, ast.Import) for alias in node.names}
    names |= {str(node.module) for node in imports if isinstance(node, ast.ImportFrom)}
    assert {name.split(".")[0] for name in names} - set(sys.stdlib_module_names) == {"numpy"}
    assert len(source.splitlines()) <= 400


def test_a_certificate_is_accepted_and_computes_what_the_network_computes(small: dict[str, Any]) -> None:
    check(small)
    wanted = small_net().double()(torch.from_numpy(INPUTS)).detach().numpy()
    for x, y in zip(INPUTS, wanted, strict=True):
        assert np.abs(evaluate(small, x)["output"] - y).max() <= 1e-12 * (1 + np.abs(y).max())
    assert residual(small, INPUTS) < VISIBLE


def judge_flips(document: dict[str, Any], count: int | None, inputs: Any) -> int:
    """Flip bits of every kind; a certificate that is accepted with a new digest must be equivariant when it runs."""
    bits = bits_of(document)
    chosen = bits if count is None else random.Random(0).sample(bits, count)
    rejected = 0
    for place, (path, bit) in enumerate(chosen):
        if place % 10 == 0 or count is None:
            assert not is_accepted(flipped(document, path, bit, sealed=False)), (path, bit)
        mutant = flipped(document, path, bit, sealed=True)
        if is_accepted(mutant):
            assert residual(mutant, inputs) < VISIBLE, (path, bit)
        else:
            rejected += 1
    return rejected


def test_flipped_bits_are_rejected_unless_what_they_leave_is_equivariant(small: dict[str, Any]) -> None:
    assert judge_flips(small, 250, INPUTS[:4]) > 230


class Averaged(nn.Module):
    """Any network, averaged over the mirror: no layer carries the action by itself."""

    def __init__(self) -> None:
        super().__init__()
        draw = Draw(5)
        self.inner = nn.Sequential(linear(draw(5, 4), draw(5)), nn.GELU(), linear(draw(2, 5)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        largest = self.inner(x).sort(-1).values[:, -1:] + self.inner(-x).sort(-1).values[:, -1:]
        return 0.5 * (self.inner(x) + self.inner(-x).flip(1)) * largest


class Lengths(nn.Module):
    """A vector in the plane times a function of its length."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(0.75))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.tanh(self.scale * x.square().sum(1, keepdim=True))


def fifth() -> Symmetry:
    """A fifth of a turn, in the plane of the input and of the output."""
    matrix = constructors.rotation(catalog.cyclic(5)).matrix(catalog.cyclic(5).generators[0])
    return Symmetry("fifth", catalog.cyclic(5), observation=[matrix.tolist()], action=[matrix.tolist()])


@pytest.mark.parametrize(
    ("build", "symmetry", "tolerance"),
    [(Averaged, mirror, EXACT_CLAIM), (Lengths, fifth, PRODUCT_CLAIM)],
    ids=["an average", "a matrix"],
)
def test_flipped_bits_where_no_layer_carries_the_action_by_itself(
    build: Callable[[], nn.Module], symmetry: Callable[[], Symmetry], tolerance: str
) -> None:
    document = certificate_of(build(), symmetry())
    assert document["claim"]["tolerance"] == tolerance
    size = document["input"]["shape"][0]
    assert residual(document, INPUTS[:, :size]) < VISIBLE
    # most bits of a weight inside an average may be flipped: what is left is an average
    assert judge_flips(document, 60, INPUTS[:3, :size]) > 15


@pytest.mark.parametrize("off", [1e-9, 0.25])
def test_a_vector_that_is_scaled_by_one_component_has_no_certificate(off: float) -> None:
    class Wrong(Lengths):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return super().forward(x) * (1 + off * x[:, :1])

    with pytest.raises(NoCertificateError):
        certificate_of(Wrong(), fifth())


@pytest.mark.slow
def test_all_flipped_bits_of_a_small_network(small: dict[str, Any]) -> None:
    assert judge_flips(small, None, INPUTS) > 0.9 * len(bits_of(small))


@pytest.mark.slow
def test_thousands_of_flipped_bits_of_convolutions() -> None:
    document = certificate_of(GridNet(), turn(), input_shape=(1, 21, 21))
    inputs = np.random.default_rng(0).normal(size=(2, 441))
    assert judge_flips(document, 3000, inputs) > 2700


def change(document: dict[str, Any], edit: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    mutant = copy.deepcopy(document)
    edit(mutant)
    return seal(mutant)


def node(document: dict[str, Any], **wanted: str) -> dict[str, Any]:
    found: dict[str, Any] = next(
        item for item in document["nodes"] if all(item.get(key) == value for key, value in wanted.items())
    )
    return found


EDITS: dict[str, Callable[[dict[str, Any]], object]] = {
    "a function that is not odd": lambda d: node(d, function="tanh").update(function="exp"),
    "the least of a number and its bounds": lambda d: node(d, function="place").update(parameters=[0.0]),
    "a place that is none": lambda d: node(d, function="place").update(parameters=[3.0]),
    "a parameter too many": lambda d: node(d, function="tanh").update(parameters=[0.5]),
    "an unknown function": lambda d: node(d, function="relu").update(function="os.system"),
    "arguments too many": lambda d: node(d, function="relu").update(x=node(d, function="place")["x"]),
    "no bias": lambda d: node(d, name="first").update(bias=None),
    "a node left out": lambda d: d["nodes"].remove(node(d, function="relu")),
    "a node twice": lambda d: d["nodes"].insert(2, node(d, op="input")),
    "no output": lambda d: d.update(outputs=[]),
    "an action left out": lambda d: node(d, op="input").update(actions=[]),
    "another generator": lambda d: d["claim"]["generators"].append("second"),
    "a claim that nobody made": lambda d: d["claim"].update(tolerance="none"),
    "another shape": lambda d: d["weights"]["first.weight"].update(shape=[4, 6]),
    "an output that stays": lambda d: d["outputs"][0].update(
        actions=[{**d["outputs"][0]["actions"][0], "index": d["outputs"][0]["entries"]}]
    ),
    "text in place of a node": lambda d: d["nodes"].append("node"),
}


# without a bias, or with tanh replaced by a function that permutations pass, the network may stay equivariant
@pytest.mark.parametrize("name", EDITS)
def test_edited_certificates_are_rejected_unless_they_stay_equivariant(small: dict[str, Any], name: str) -> None:
    mutant = change(small, EDITS[name])
    assert mutant["digest"] != small["digest"]
    if is_accepted(mutant):
        assert name in ("a function that is not odd", "the least of a number and its bounds", "no bias")
        assert residual(mutant, INPUTS) < VISIBLE


def test_odd_functions_of_signed_entries_must_stay_odd() -> None:
    draw = Draw(2)
    net = nn.Sequential(linear(draw(3, 4)), nn.Hardtanh(-0.5, 0.5), linear(draw(2, 3)))
    odd = Symmetry("odd", catalog.cyclic(2), observation=[[-1, -1, -1, -1]], action=[[-1, -1]])
    document = certificate_of(net, odd)
    assert is_accepted(document)
    for parameters in ([0.0], [2.0], []):
        mutant = change(document, lambda d, p=parameters: node(d, function="place").update(parameters=p))
        assert not is_accepted(mutant), parameters
    for bounds in ([0.25, -0.5], [0.5, -0.25]):
        value = packed(np.array(bounds), small=False)
        mutant = change(document, lambda d, v=value: node(d, op="constant").update(value=v))
        assert not is_accepted(mutant), bounds


def test_a_weight_off_by_a_millionth_has_no_certificate_and_is_rejected_in_one() -> None:
    net = mirror_mlp()
    document = certificate_of(net, mirror())
    with torch.no_grad():
        net[2].weight[3, 5] *= 1 + 1e-6
    with pytest.raises(NoCertificateError) as caught:
        certificate_of(net, mirror())
    assert (caught.value.reason.code, caught.value.reason.fields) == ("SYM194", {"layer": "2"})
    weights = np.array(unpack(document["weights"]["2.weight"]))
    weights[3, 5] *= np.float32(1 + 1e-6)
    mutant = change(document, lambda d: d["weights"].update({"2.weight": packed(weights, small=False)}))
    with pytest.raises(RejectedError, match="output 'output': generator 0: entry 0 does not transform as claimed"):
        check(mutant)


def test_given_weights_must_be_those_of_the_certificate(small: dict[str, Any]) -> None:
    weights = {name: np.array(unpack(stored)) for name, stored in small["weights"].items()}
    check(small, weights)
    weights["head.weight"][0, 0] = np.nextafter(weights["head.weight"][0, 0], np.float32(9))
    with pytest.raises(RejectedError, match=r"weights: head\.weight"):
        check(small, weights)
    del weights["head.weight"]
    with pytest.raises(RejectedError, match=r"weights: head\.weight"):
        check(small, weights)


class Objects(nn.Module):
    """Two objects of two numbers each, through one layer that treats them alike."""

    def __init__(self, layer: Callable[[], nn.Module]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.layer, self.read = nn.Linear(2, 4), layer(), nn.Linear(4, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.embed(x.reshape(x.shape[0], 2, 2))
        h = self.layer(h) if not isinstance(self.layer, nn.GRUCell) else self.layer(h.reshape(-1, 4))
        return self.read(h).reshape(x.shape[0], 2)


@pytest.mark.parametrize(
    "layer",
    [lambda: nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), lambda: nn.GRUCell(4, 4)],
    ids=["attention and layer norms", "recurrent cell"],
)
def test_layers_that_treat_objects_alike_have_certificates(layer: Callable[[], nn.Module]) -> None:
    exchange = Symmetry("exchange", catalog.cyclic(2), observation=[[2, 3, 0, 1]], action=[[1, 0]])
    document = certificate_of(Objects(layer), exchange)
    assert residual(document, INPUTS) < 1e-10
    (moved,) = (unpack(action["index"]) for action in document["outputs"][0]["actions"])
    assert moved.tolist() == [1, 0]


def test_an_operator_in_a_form_that_nothing_was_written_for_ends_the_certificate(monkeypatch) -> None:
    from symcheck.engine.networks.graph import operators

    monkeypatch.setitem(operators.OPERATORS, "addmm", lambda graph, x: x)
    with pytest.raises(NoCertificateError) as caught:
        certificate_of(mirror_mlp(), mirror())
    assert caught.value.reason.fields["operation"] == "aten.addmm.default"


@pytest.mark.parametrize("off", [0.0, 1e-11])
def test_nodes_that_nothing_reads_hide_no_difference_of_weights(off: float) -> None:
    def action(index: list[int]) -> dict[str, Any]:
        return {"index": packed(np.array(index, dtype="<i4")), "sign": packed(np.ones(len(index), dtype="i1"))}

    wide = {"op": "linear", "x": packed(np.zeros((1, 2000), dtype="<i4")), "weight": packed(np.ones((1, 2000)))}
    total = {
        "op": "linear",
        "x": packed(np.array([[0, 1]], dtype="<i4")),
        "weight": packed(np.array([[0.3, 0.3 + off]])),
    }
    inputs = {"op": "input", "size": 2, "actions": [action([1, 0])]}
    nodes = [inputs, *({**node, "bias": None, "name": ""} for node in (*[wide] * 60, total))]
    document = {
        "schema": "symcheck-certificate/2",
        "claim": {"generators": ["swap"], "tolerance": PRODUCT_CLAIM},
        "input": {"shape": [2]},
        "weights": {},
        "nodes": nodes,
        "outputs": [{"path": "y", "entries": packed(np.array([62], dtype="<i4")), "actions": [action([0])]}],
    }
    assert is_accepted(seal(document)) is (off == 0)


def test_a_constant_that_is_no_number_is_refused() -> None:
    with pytest.raises(RejectedError, match="a constant is NaN"):
        symcheck.certificate_checker._Terms().constant(float("nan"))


def test_weights_that_carry_the_action_in_their_product_alone_are_multiplied() -> None:
    """In (A x) . (B x) only A^T B keeps the action: A is any matrix."""
    a, action = torch.from_numpy(np.random.default_rng(0).normal(size=(4, 4))), torch.diag(SIGNS)
    form = torch.from_numpy(np.random.default_rng(1).normal(size=(4, 4)))
    b = torch.linalg.inv(a).T @ (form + action @ form @ action)

    class Form(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = linear(a), linear(b)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return (self.first(x) * self.second(x)).sum(1, keepdim=True)

    kept = Symmetry("form", catalog.cyclic(2), [{"signs": SIGNS.int().tolist()}], [[0]])
    assert certificate_of(Form(), kept)["claim"]["tolerance"] == PRODUCT_CLAIM
