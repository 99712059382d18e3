"""Parts of the network checks by themselves: against brute force, closed forms, and limits from both sides."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from torch import nn
from torch.fx.experimental.proxy_tensor import make_fx

from symcheck import Symmetry
from symcheck.certificate_checker import FUNCTIONS
from symcheck.engine.networks.blame import action, bounds, orders
from symcheck.engine.networks.blame.parts import are_answers, parts_of, span_of
from symcheck.engine.networks.blame.squares import SQUARES
from symcheck.engine.networks.capture.places import Place
from symcheck.engine.networks.capture.places_in_range import may_divide_by_zero, upper_bound
from symcheck.engine.networks.capture.shared_memory import root_of, source_of, written_into
from symcheck.engine.networks.graph.nodes import BATCH, Graph, Step
from symcheck.engine.networks.samples import rounding, ruler
from symcheck.engine.networks.samples.entry_scales import EntryScales
from symcheck.engine.networks.samples.location import first_nonfinite_module
from symcheck.engine.networks.subject.logits import logits_claim
from symcheck.engine.networks.subject.outputs import named_outputs
from symcheck.engine.networks.subject.shapes import example_shapes, input_shape, mismatch
from symcheck.engine.networks.subject.values import AffineMap, SignedPermutation
from symcheck.errors import SpecError, TargetError
from symcheck.groups import catalog

RNG = np.random.default_rng


def test_the_symmetries_of_a_square_do_what_their_names_say() -> None:
    image = np.arange(9.0).reshape(3, 3)
    usual = {
        "the identity": image, "flip_ud": np.flipud(image), "flip_lr": np.fliplr(image), "rot180": np.rot90(image, 2),
        "transpose": image.T, "rot90": np.rot90(image), "rot270": np.rot90(image, 3),
        "the antidiagonal transpose": np.rot90(image, 2).T,
    }  # fmt: skip
    assert {square.name for square in SQUARES} == set(usual)
    for square in SQUARES:
        np.testing.assert_array_equal(square.apply(image), usual[square.name])
        np.testing.assert_array_equal(square.apply(np.stack([image, -image]))[1], -usual[square.name])


def test_rows_are_found_at_their_first_place_and_equal_entries_in_turn() -> None:
    table = np.array([[1, 2], [3, 4], [1, 2], [5, 6]])
    assert orders.rows_among(np.array([[3, 4], [1, 2], [5, 6], [2, 1]]), table).tolist() == [1, 0, 3, -1]
    values = np.array([7, 3, 7, 9])
    assert orders.partners_alike(np.array([9, 7, 3, 7]), values).tolist() == [3, 0, 1, 2]
    assert orders.partners_alike(np.array([7, 7, 7, 4]), values).tolist() == [0, 2, -1, -1]
    assert orders.partners_alike(np.array([4, 3]), np.array([3, 4])).tolist() == [1, 0]
    assert orders.partners_alike(np.array([4, 5]), np.array([3, 4])).tolist() == [1, -1]


@pytest.mark.parametrize("seed", range(8))
def test_orders_of_rows_bring_images_and_signs_to_the_rows(seed: int) -> None:
    rng = RNG(seed)
    size, rows = int(rng.integers(2, 6)), int(rng.integers(1, 7))
    kinds = [(rng.permutation(size), rng.choice([-1, 1], size)) for _ in range(int(rng.integers(1, 3)))]
    x = rng.permuted(np.tile(np.arange(10), (rows, 1)), axis=1)[:, :size]
    if seed % 2:
        x[:, 1] = x[:, 0]  # an entry twice in each row
    images, sign = np.empty_like(x), np.empty_like(x)
    for row in range(rows):
        source, signs = kinds[row % len(kinds)]
        images[row, source], sign[row, source] = x[row], signs
    if seed % 4 == 2:
        sign[0, 0] = 0
    told = orders.orders_of_rows(images, sign, x)
    assert sorted(np.concatenate([chosen for *_, chosen in told]).tolist()) == list(range(rows))
    for source, signs, chosen in told:
        assert set(signs.tolist()) <= {-1, 1}
        np.testing.assert_array_equal(images[chosen][:, source], x[chosen])
        own = sign[chosen][:, source]
        assert ((own == signs) | (own == 0)).all()
    assert orders.orders_of_rows(images[:0], sign[:0], x[:0]) == []
    if not seed % 2 and len(kinds) == 1:
        assert len(told) == 1


def test_one_order_serves_all_rows_unless_signs_or_equal_columns_forbid_it() -> None:
    x = np.array([[0, 1, 2], [3, 4, 5]])
    images, sign = x[:, [1, 2, 0]], np.array([[1, -1, 1], [1, 0, 1]])
    ((source, signs, chosen),) = orders.orders_of_rows(images, sign, x)
    assert (source.tolist(), signs.tolist(), chosen.tolist()) == ([2, 0, 1], [1, 1, -1], [0, 1])
    sign[1, 1] = 1
    assert len(orders.orders_of_rows(images, sign, x)) == 2
    many = np.stack([np.roll(np.arange(100), k) for k in range(80)])
    assert len(orders.orders_of_rows(np.tile(np.arange(100), (80, 1)), np.ones((80, 100), int), many)) == (
        orders.MOST_ORDERS + 1
    )


def graph_of_calls() -> tuple[Graph, Any]:
    graph = Graph()
    x = graph.input((2,), BATCH)
    first = graph.pointwise("tanh", (), (x,), "t")
    second = graph.pointwise("exp", (), (first,), "e")
    third = graph.pointwise("sin", (), (second,), "s")
    fx_node: Any = SimpleNamespace(meta={"val": torch.ones(2, dtype=torch.bool)})
    one, two = Place("a", "Tanh"), Place("b", "Sin")
    graph.steps = [Step(one, fx_node, (x,), 1, 2, first), Step(one, fx_node, (first,), 2, 3, second),
                   Step(two, fx_node, (second, np.array([-1.0])), 3, 4, third)]  # fmt: skip
    return graph, fx_node


def test_consecutive_operators_at_one_place_are_one_call_with_its_nodes_and_entries() -> None:
    graph, fx_node = graph_of_calls()
    parts = parts_of(graph)
    assert [(part.place.module, part.first, part.last, len(part.steps)) for part in parts] == [
        ("", 0, 1, 0), ("a", 1, 3, 2), ("b", 3, 4, 1)]  # fmt: skip
    assert [span_of(graph, part) for part in parts] == [(0, 2), (2, 6), (6, 8)]
    assert [part.reads.tolist() for part in parts] == [[], [0, 1, 2, 3], [4, 5]]
    assert [are_answers(part) for part in parts] == [False, True, True]
    fx_node.meta["val"] = torch.ones(2)
    assert not are_answers(parts[1])
    del graph.steps[1]
    assert [(part.place.module, part.first, part.last) for part in parts_of(graph)] == [
        ("", 0, 1), ("a", 1, 2), ("", 2, 3), ("b", 3, 4)]  # fmt: skip
    assert span_of(graph, parts_of(graph)[2]) == (4, 6)


def bounded(build: Any, drift: float, *, gap: float = 0.0, box: float = 2.0) -> tuple[Graph, bounds.Bounds]:
    """Bounds of a graph over inputs whose images differ from their claim by a drift."""
    graph = Graph()
    x = graph.input((2,), BATCH)
    build(graph, x)
    none = np.zeros(graph.entries, bool)
    known: Any = SimpleNamespace(where=np.zeros((1, graph.entries), int), rounded=none, mixed=none)
    gaps = {node.start: np.full((len(node.weight), node.x.shape[1] + 1), gap) for node in graph.nodes
            if node.op == "linear" and node.weight is not None and gap}  # fmt: skip
    made = bounds.Bounds(graph, known, gaps, box)
    made.drift[:2] = drift
    for node in graph.nodes[1:]:
        size, moved = made._of_node(node)
        made._take(np.arange(node.start, node.start + node.size), size, moved)
    return graph, made


SMOOTH = ["relu", "tanh", "sin", "cos", "sigmoid", "erf", "absolute", "arctan", "arcsinh"]


@pytest.mark.parametrize("function", SMOOTH)
def test_slopes_bound_functions_and_are_attained(function: str) -> None:
    slope, start = bounds._SLOPES[function]
    x = np.linspace(-6, 6, 24_001)
    values = FUNCTIONS[function][1](x)
    steepest = np.abs(np.diff(values) / np.diff(x)).max()
    assert 0.98 * slope <= steepest <= slope * (1 + 1e-6)
    assert abs(abs(float(FUNCTIONS[function][1](np.zeros(1))[0])) - start) < 1e-12
    _, made = bounded(lambda graph, x: graph.pointwise(function, (), (x,), "f"), 0.125)
    assert made.size[2:].tolist() == [2.0 * slope + start] * 2
    assert made.drift[2:].tolist() == [0.125 * slope] * 2


def test_bounds_of_layers_products_and_extremes_are_those_of_their_terms() -> None:
    weight = np.array([[1.0, -2.0], [0.0, 3.0]])

    def layer(graph: Graph, x: Any) -> None:
        graph.linear(x, graph.constants(weight), graph.constants(np.array([0.5, -1.0])), "w")

    _, made = bounded(layer, 0.25)
    assert made.size[2:].tolist() == [2.0 * 3.0 + 0.5, 2.0 * 3.0 + 1.0]
    assert made.drift[2:].tolist() == [0.75, 0.75]
    graph, made = bounded(layer, 0.25, gap=0.1)
    np.testing.assert_allclose(made.drift[2:], 0.75 + 2 * 0.1 * 2.0 + 0.1)
    np.testing.assert_allclose(made.of_rows(graph.nodes[1], np.array([1]), np.full((1, 3), 0.5)), 0.75 + 2.0 + 0.5)

    def product(graph: Graph, x: Any) -> None:
        graph.reduce("prod", np.stack([x[:, 0], x[:, 1]], axis=-1), "p")
        graph.reduce("place", np.stack([x[:, 0], x[:, 1]], axis=-1), "m", (1.0,))

    _, made = bounded(product, 0.5)
    assert (made.size[2], made.drift[2]) == (4.0, 2.5 * 2.5 - 4.0)
    assert (made.size[3], made.drift[3]) == (2.0, 0.5)
    _, made = bounded(lambda graph, x: graph.pointwise("elu", (2.0, 1.5, 0.5), (x,), "e"), 0.1)
    assert (made.size[2], made.drift[2]) == (3.0, pytest.approx(0.15))
    _, made = bounded(lambda graph, x: graph.pointwise("elu", (3.0, 1.5, 0.5), (x,), "e"), 0.1)
    assert made.size[2] == 2.0 * 2.25
    for most, known in ((4.0, True), (3.9, False)):
        _, made = bounded(lambda graph, x, most=most: graph.pointwise("softplus", (2.0, most), (x,), "s"), 0.1)
        assert bool(made.drift[2] == 0.1) is known
        assert made.size[2] == (2.0 + math.log(2) / 2 if known else np.inf)
    _, made = bounded(lambda graph, x: graph.pointwise("exp", (), (x,), "e"), 0.1)
    assert np.isinf(made.drift[2:]).all()


def test_zero_times_infinity_is_zero_in_a_bound() -> None:
    weights = np.array([[0.0, 1.0], [2.0, 0.0], [0.0, 0.0]])
    assert bounds._times(weights, np.array([np.inf, 3.0])).tolist() == [3.0, np.inf, 0.0]
    assert bounds._times(weights, np.array([1.0, 3.0])).tolist() == [3.0, 2.0, 0.0]


class Layered(nn.Module):
    def __init__(self, features: int = 4) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(features, 3), nn.Linear(3, 2)

    def forward(self, x: torch.Tensor) -> Any:
        return self.second(torch.relu(self.first(x)))


def vector(dim: int) -> Symmetry:
    return Symmetry("claim", catalog.cyclic(2), observation=[list(reversed(range(dim)))], action=[[1, 0]])


def test_the_shape_of_an_input_is_given_claimed_shown_or_that_of_the_first_layer() -> None:
    net: Any = Layered()
    pictures = Symmetry("claim", catalog.cyclic(2), observation=["flip_lr"], action=[[1, 0]])
    assert input_shape(net, vector(6), (2, 3)) == (2, 3)
    assert input_shape(net, vector(6), None) == (6,)
    assert input_shape(net, pictures, None) == (4,)
    net.example_input = torch.zeros(5, 2, 3)
    assert input_shape(net, vector(6), None) == (2, 3)
    assert input_shape(net, vector(7), None) == (7,)
    assert input_shape(net, pictures, None) == (2, 3)
    net.example_input = torch.zeros(8)
    assert input_shape(net, pictures, None) == (8,)
    with pytest.raises(SpecError, match="input cannot be determined"):
        input_shape(nn.Sequential(nn.Conv2d(1, 2, 3), nn.Linear(2, 2)), pictures, None)
    assert mismatch(Layered(), (2, 4)) is None
    wrong = mismatch(Layered(), (2, 5))
    assert wrong is not None
    assert "acts on 10 components, but the network's first layer takes 4" in str(wrong)
    assert mismatch(nn.Conv2d(1, 2, 3), (5,)) is None
    assert example_shapes(net, pictures) is None


def test_outputs_are_named_by_their_path_and_what_is_no_tensor_is_refused() -> None:
    one, two = torch.zeros(1, 2), torch.zeros(1)
    assert named_outputs(one, "y") == {"y": one}
    assert list(named_outputs([one, None, {"v": (two,)}])) == ["output[0]", "output[2]['v'][0]"]
    assert named_outputs(None) == {}
    with pytest.raises(TargetError, match="output is a Normal distribution"):
        named_outputs(torch.distributions.Normal(one, one + 1.0))
    with pytest.raises(TargetError, match=r"but output\[1\] is of type float"):
        named_outputs((one, 2.0))


def test_logits_of_several_choices_are_permuted_with_the_values() -> None:
    swap = Symmetry("claim", catalog.cyclic(2), observation=[[1, 0]], action=[[1, 0]])
    several, bits = spaces.MultiDiscrete([3, 3]), spaces.MultiBinary(2)
    claim = logits_claim(swap, several, None, {"y": (6,)}, (2,))
    assert claim is not None
    entry: Any = claim.entries[0]
    assert len(claim.entries) == 1
    assert (entry.index.tolist(), entry.sign.tolist()) == ([3, 4, 5, 0, 1, 2], [1] * 6)
    assert claim.choices == (slice(0, 3), slice(3, 6))
    assert logits_claim(swap, several, None, {"y": (2, 3)}, (2,)) is not None
    assert logits_claim(swap, several, None, {"y": (5,)}, (2,)) is None
    assert logits_claim(swap, spaces.Discrete(6), None, {"y": (6,)}, (2,)) is None
    for size, index in ((2, [1, 0]), (4, [2, 3, 0, 1])):
        claim = logits_claim(swap, bits, None, {"y": (size,)}, (2,))
        assert claim is not None
        entry = claim.entries[0]
        assert entry.index.tolist() == index
        assert claim.choices == ((slice(0, 1), slice(1, 2)) if size == 2 else (slice(0, 2), slice(2, 4)))
    single = logits_claim(swap, spaces.MultiDiscrete([1, 1]), None, {"y": (2,)}, (2,))
    assert single is not None
    assert single.choices == ()


def test_sizes_of_rounding_move_without_signs_and_add_up() -> None:
    sizes = np.array([[1.0, 2.0, 4.0]])
    turned = SignedPermutation(np.array([2, 0, 1]), np.array([1, -1, 1]))
    assert ruler.move_sizes(turned, sizes).tolist() == [[2.0, 4.0, 1.0]]
    mixed = AffineMap(np.array([[1.0, -1.0, 0.0], [0.0, 0.0, 0.5], [0.0, 0.0, 0.0]]), np.ones(3))
    assert ruler.move_sizes(mixed, sizes).tolist() == [[3.0, 2.0, 0.0]]
    unknown: Any = object()
    assert ruler.move_sizes(unknown, sizes).tolist() == [[4.0, 4.0, 4.0]]


def compared(gap: float, noise: float, *, coarse: bool = False, rounded: Any = None) -> tuple[float, int]:
    """The relative residual of one entry of size 1, and whether rounding is as large as a violation."""
    subject: Any = SimpleNamespace(coarse=coarse)
    measure = ruler.Ruler(subject, np.zeros((40, 1)), 0, weights_rounded=rounded is not None)
    before = {"y": np.zeros((2, 1))}
    drawn: list[int] = []

    def shaken(x: Any, usual: Any, epsilon: float, draw: int = 0) -> dict[str, Any]:
        drawn.append(draw)
        return {"y": np.full((2, 1), noise if epsilon == rounding.EPSILON else float(rounded or 0.0))}

    measure.rounding = SimpleNamespace(noise=shaken, terms=lambda x, scales: {})  # type: ignore[assignment]
    measure.__dict__["reference"] = {"y": EntryScales(np.ones(1), np.ones(1), np.full(1, np.inf))}
    block = measure.block(np.zeros((2, 1)), before)
    claim: Any = SimpleNamespace(path="y", size=1, motions=[SignedPermutation(np.array([0]), np.array([1]))])
    scales = EntryScales(np.ones(1), np.ones(1), np.full(1, np.inf))
    actual = np.full((2, 1), gap)
    relative, sizes, swamped = block.relative_gaps(claim, 0, np.zeros((2, 1)), actual, scales)
    assert sizes.tolist() == [1.0]
    if noise > ruler.AMPLIFIED and gap > ruler.EXACT and not coarse:
        assert drawn[:3] == [0, 1, 2]  # the effect of one draw may be small by chance
    return float(relative[0, 0]), swamped


def test_a_residual_is_excused_by_64_times_the_effect_of_one_rounding_and_no_more() -> None:
    assert compared(1e-13, 0.0) == (1e-13, 0)
    assert compared(1e-3, 1.0, coarse=True) == (1e-3, 0)
    for gap, noise, excused in ((6.3e-11, 1e-12, True), (6.6e-11, 1e-12, False), (1e-9, 0.0, False),
                                (6e-9, 1e-10, True), (7e-9, 1e-10, False)):  # fmt: skip
        relative, swamped = compared(gap, noise)
        assert swamped == 0
        assert relative == (pytest.approx(1e-12 * gap / (64 * noise), rel=1e-3) if excused else gap)
    # one unit in the last place has the effect of a violation: nothing is judged there, and it is counted
    relative, swamped = compared(0.5, 2e-5)
    assert (relative <= 1e-12, swamped) == (True, 2)
    relative, swamped = compared(0.5, 0.9e-5)
    assert (relative, swamped) == (0.5, 0)
    assert compared(5e-4, 0.9e-5)[1] == 2


def test_rounded_weights_excuse_what_they_explain_if_they_were_matched_so() -> None:
    assert compared(5e-5, 0.0, rounded=1e-6)[0] == pytest.approx(1e-5 * 5e-5 / 64e-6)
    assert compared(7e-5, 0.0, rounded=1e-6)[0] == 7e-5
    assert compared(5e-6, 0.0, rounded=1e-6)[0] == 5e-6
    assert compared(5e-5, 0.0)[0] == 5e-5


def test_the_spread_of_terms_is_the_range_of_their_middle() -> None:
    column = np.linspace(0.0, 1.0, 201)
    values = np.stack([column, column * 2 + 5, np.full(201, np.nan), np.where(column == 1, np.inf, column)], axis=1)
    assert rounding._spread_of(values) == pytest.approx([0.9, 1.8, 0.0, 0.9], abs=6e-3)
    outlier = column.copy()
    outlier[-1] = 1e9
    assert rounding._spread_of(outlier[:, None])[0] < 1.0


def test_a_shaken_copy_moves_every_floating_number_by_one_part_and_nothing_else() -> None:
    net: Any = Layered()
    net.held = torch.ones(3)
    net.register_buffer("count", torch.tensor([3]))
    assert rounding._shaken_copy(net, 0.0, (1,)) == net
    copy: Any = rounding._shaken_copy(net, 1e-3, (1,))
    assert copy is not net
    for before, after in zip([*net.parameters(), net.held], [*copy.parameters(), copy.held], strict=True):
        ratio = (after / before - 1.0).abs().detach()
        assert torch.allclose(ratio, torch.full_like(ratio, 1e-3), rtol=1e-3)
    signs = torch.cat([(after > before).flatten() for before, after in
                       zip(net.parameters(), copy.parameters(), strict=True)])  # fmt: skip
    assert 0 < signs.float().mean() < 1
    assert copy.count.tolist() == [3]
    again: Any = rounding._shaken_copy(net, 1e-3, (1,))
    other: Any = rounding._shaken_copy(net, 1e-3, (2,))
    assert torch.equal(again.first.weight, copy.first.weight)
    assert not torch.equal(other.first.weight, copy.first.weight)


class Failing(nn.Module):
    def __init__(self, value: float) -> None:
        super().__init__()
        self.early, self.late, self.value = nn.Identity(), nn.Identity(), value

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        made: torch.Tensor = self.late(self.early(x) * self.value)
        return made


def test_the_first_module_with_a_bad_value_from_good_ones_is_named() -> None:
    class Exploding(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x / 0.0

    def subject(net: nn.Module, raises: bool = False) -> Any:
        def run(x: Any, exact: bool) -> None:
            net(torch.from_numpy(x))
            if raises:
                raise TargetError("late", where="", remedy="")

        return SimpleNamespace(modules=lambda exact: dict(net.named_modules()), run=run)

    x = np.ones(2)
    bad = nn.Sequential(nn.Identity(), Exploding(), nn.Identity())
    assert first_nonfinite_module(subject(bad), x) == "1"
    assert first_nonfinite_module(subject(bad, raises=True), x) == "1"
    assert first_nonfinite_module(subject(nn.Sequential(nn.Identity())), x) is None
    assert first_nonfinite_module(subject(nn.Sequential(nn.Identity()), raises=True), x) is None
    assert first_nonfinite_module(subject(Failing(math.inf)), x) == ""  # in between its layers
    assert not bad[1]._forward_hooks


def traced(function: Any, *inputs: torch.Tensor) -> Any:
    """The node of the last operator of a function."""
    graph = make_fx(function, tracing_mode="fake")(*inputs).graph
    (output,) = [node for node in graph.nodes if node.op == "output"]
    return output.all_input_nodes[-1]


X, K = torch.randn(5, 4), torch.arange(4)
BOUNDS: dict[str, tuple[Any, int | None]] = {
    "a comparison": (lambda x: x > 0, 2),
    "an input": (lambda x: x, None),
    "a place": (lambda x: x.argmax(1), 4),
    "a place along the first axis": (lambda x: x.argmin(0), 5),
    "a place in all": (lambda x: x.argmax(), None),
    "an order": (lambda x: x.argsort(1), 4),
    "places of a sort": (lambda x: x.sort(0)[1], 5),
    "places of the largest": (lambda x: x.topk(2, 1)[1], 4),
    "values of a sort": (lambda x: x.sort(0)[0], None),
    "a bounded number": (lambda x: x.argmax(1).clamp(0, 2), 3),
    "bounds of one number": (lambda x: x.long().clamp(2, 2), 3),
    "a bound below zero": (lambda x: x.long().clamp(-1, 2), None),
    "bounds the wrong way": (lambda x: x.long().clamp(3, 2), None),
    "a remainder": (lambda x: x.long() % 7, 7),
    "a remainder by a negative number": (lambda x: x.long() % -7, None),
    "a reshaped place": (lambda x: x.argmax(1).view(5, 1).expand(5, 2).flip(0), 4),
    "a converted place": (lambda x: x.argmax(1).to(torch.int32), 4),
    "a place as a float": (lambda x: x.argmax(1).float(), None),
    "a place in few bits": (lambda x: x.argmax(1).to(torch.int8), None),
    "zeros": (lambda x: torch.zeros(3, dtype=torch.long), 1),
    "zeros like another": (lambda x: torch.zeros_like(x, dtype=torch.long), 1),
    "a bucket": (lambda x: torch.bucketize(x, torch.tensor([0.0, 1.0, 2.0])), 4),
    "a place in a table": (lambda x: torch.searchsorted(torch.tensor([0.0, 1.0]), x), 3),
    "a sum": (lambda x: x.argmax(1) + 1, None),
    "constants": (lambda x: torch.tensor([0, 6, 2]).clone(), 7),
    "constants below zero": (lambda x: torch.tensor([0, -1, 2]).clone(), None),
}


@pytest.mark.parametrize("name", list(BOUNDS))
def test_integers_have_the_bound_of_their_operator(name: str) -> None:
    function, bound = BOUNDS[name]
    assert upper_bound(traced(function, X)) == bound


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (lambda x, k: k // k.flip(0), True), (lambda x, k: k % k.flip(0), True), (lambda x, k: torch.fmod(k, k), True),
        (lambda x, k: k // 3, False), (lambda x, k: x // x, False), (lambda x, k: k / k, False),
        (lambda x, k: torch.div(k, k, rounding_mode="floor"), True), (lambda x, k: k + k, False),
        (lambda x, k: x[0] // k, False), (lambda x, k: k.abs(), False),
    ],
)  # fmt: skip
def test_whole_numbers_are_divided_by_numbers_that_may_be_zero(function: Any, told: bool) -> None:
    assert may_divide_by_zero(traced(function, X, K)) is told


def test_views_share_the_memory_of_their_source_and_writes_name_what_they_change() -> None:
    def through(x: torch.Tensor) -> torch.Tensor:
        return x[0].unsqueeze(0).t()

    node = traced(through, X)
    assert source_of(node) is not None
    assert root_of(node).op == "placeholder"
    own = traced(lambda x: (x + 1).view(-1), X)
    assert root_of(own).op == "call_function"
    assert source_of(root_of(own)) is None
    assert root_of(traced(lambda x: x.sort(1)[0], X)).op == "call_function"
    assert source_of(traced(lambda x: x.clone(), X)) is None
    written = traced(lambda x: x.clone().add_(1), X)
    assert [str(item.target) for item in written_into(written)] == ["aten.clone.default"]
    assert written_into(traced(lambda x: x + 1, X)) == []
    placeholder = next(iter(written.graph.nodes))
    assert written_into(placeholder) == []
    assert source_of(placeholder) is None


@pytest.mark.parametrize("near", [action.ROUNDED, 1e-12])
def test_entries_without_an_image_are_looked_for_among_values_if_one_of_a_few_has_one(near: float) -> None:
    asked: list[int] = []

    def looked(count: int, found: Any, *, small: bool = True, known: int = 0) -> Any:
        """Entries of one node, of which those found have the next one as their image."""

        def partners(generator: int, entries: Any, near: float) -> Any:
            asked.append(len(entries))
            hit = np.isin(entries, found)
            return np.where(hit, entries + 1, -1), np.where(hit, -1, 0)

        made: Any = object.__new__(action.Action)
        where = np.full((1, count + 1), -1)
        where[0, :known] = 7
        fields = {
            "motions": [None], "where": where, "sign": np.zeros((1, count + 1), int),
            "_same": np.arange(count + 2) * 10,
            "rounded": np.zeros(count + 1, bool), "by_values": False,
            "run": SimpleNamespace(is_small=small, partners=partners),
        }  # fmt: skip
        for name, item in fields.items():
            setattr(made, name, item)
        asked.clear()
        node: Any = SimpleNamespace(start=0, size=count)
        made._look_among_values(node, near)
        return made

    made = looked(4, [1, 2])
    assert (made.where[0].tolist(), made.sign[0].tolist()) == ([-1, 20, 30, -1, -1], [0, -1, -1, 0, 0])
    assert made.by_values
    assert made.rounded.tolist() == [False, near == action.ROUNDED, near == action.ROUNDED, False, False]
    assert asked == [4, 4]
    none = looked(4, [])
    assert (none.by_values, none.where.max(), asked) == (False, -1, [4])
    looked(action.PROBED * 10, [3])  # not among those that are probed
    assert asked == [action.PROBED]
    looked(action.PROBED * 10, [20])
    assert asked == [action.PROBED, action.PROBED * 10]
    looked(4, [1], small=False)
    assert asked == []
    looked(4, [1], known=4)
    assert asked == []
    looked(4, [3], known=2)
    assert asked == [2, 2]
