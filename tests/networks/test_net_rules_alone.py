"""Every rule of an operator against torch, called as after capture; forms without a rule are refused by name."""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._pytree import tree_flatten, tree_map

from symcheck.engine.networks.blame.running import entries_at
from symcheck.engine.networks.capture.places import Place
from symcheck.engine.networks.graph import interpreter, ties, unknown
from symcheck.engine.networks.graph.chosen_places import indicators_of
from symcheck.engine.networks.graph.entries import Entries, constant
from symcheck.engine.networks.graph.interpreter import compute
from symcheck.engine.networks.graph.nodes import BATCH, Graph, NoCertificateError
from symcheck.engine.networks.graph.products import windows_of
from symcheck.engine.networks.subject.precision import float64_default
from symcheck.statements.statement import state

SIZE = 48
"""Numbers of one input, which all arguments that depend on it share."""


class Given:
    """An argument that depends on the input: the shape of one sample, from this number of the input on."""

    def __init__(self, *shape: int, start: int = 0) -> None:
        self.shape, self.start = shape, start

    def of(self, whole: torch.Tensor) -> torch.Tensor:
        return whole[:, self.start : self.start + math.prod(self.shape)].reshape(len(whole), *self.shape)


def table(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(seed).normal(size=shape))


class Made:
    """A call inside a call."""

    def __init__(self, *call: Any) -> None:
        self.call = call


def target_of(name: str) -> Any:
    operator, _, overload = name.partition(".")
    return getattr(getattr(torch.ops.aten, operator), overload or "default")


def keywords_of(call: Sequence[Any]) -> tuple[str, tuple[Any, ...], dict[str, Any]]:
    name, *args = call
    more = args.pop() if args and isinstance(args[-1], dict) else {}
    return name, tuple(args), more


def followed(graph: Graph, ids: torch.Tensor, call: Sequence[Any]) -> Any:
    """The result of a call on ids."""
    name, args, more = keywords_of(call)

    def entries(item: Any) -> Any:
        if isinstance(item, Made):
            return followed(graph, ids, item.call)
        if isinstance(item, Given):
            return Entries(item.of(ids).clone(), torch.float64)
        return constant(graph, item) if isinstance(item, torch.Tensor) else item

    args, more = tree_map(entries, (args, more))
    return compute(graph, target_of(name), args, more)


def computed(numbers: torch.Tensor, call: Sequence[Any]) -> Any:
    """The result of torch."""
    name, args, more = keywords_of(call)

    def tensors(item: Any) -> Any:
        if isinstance(item, Made):
            return computed(numbers, item.call)
        return item.of(numbers).clone() if isinstance(item, Given) else item

    args, more = tree_map(tensors, (args, more))
    return target_of(name)(*args, **more)


X, Y, V, IMAGE, LINE = Given(3, 4), Given(3, 4, start=12), Given(4, start=5), Given(2, 4, 4), Given(3, 6)
BOOL, OTHER = Made("gt.Scalar", X, 0.3), Made("lt.Scalar", Y, 0.4)
WHOLE = Made("_to_copy", Made("clamp", Made("mul.Scalar", X, 3.0), -5.0, 5.0), {"dtype": torch.int64})
W, B = table(5, 4), table(5, seed=1)
NEVER = torch.tensor([[True, False, True, False]])

RULES: list[tuple[Any, ...]] = [
    # sums, products and comparisons
    ("add.Tensor", X, Y), ("add.Tensor", X, Y, {"alpha": 3}), ("add.Tensor", X, 2.5),
    ("sub.Tensor", X, Y, {"alpha": 2}),
    ("sub.Tensor", X, Y), ("rsub.Scalar", X, 2.0), ("mul.Tensor", X, Y), ("mul.Scalar", X, -2.0), ("div.Tensor", X, Y),
    ("div.Scalar", X, 4.0), ("maximum", X, Y), ("minimum", X, Y), ("fmax", X, Y), ("fmin", X, Y), ("atan2", X, Y),
    *((f"{name}.Tensor", X, Y) for name in ("eq", "ne", "gt", "ge", "lt", "le")),
    *((f"{name}.Scalar", Made("round", X), 1.0) for name in ("eq", "ne", "gt", "ge", "lt", "le")),
    *((f"{name}.Tensor", X, X) for name in ("eq", "ne", "gt", "ge", "lt", "le")),
    ("gt.Scalar", Made("exp", X), 0.0), ("gt.Scalar", Made("exp", X), 1.0), ("gt.Scalar", Made("exp", X), -1.0),
    ("logical_and", BOOL, OTHER), ("logical_or", BOOL, OTHER), ("logical_not", BOOL),
    ("bitwise_and.Tensor", BOOL, OTHER), ("bitwise_or.Tensor", BOOL, OTHER), ("logical_not", X),
    ("pow.Tensor_Scalar", X, 1), ("pow.Tensor_Scalar", X, 2), ("pow.Tensor_Scalar", X, 3), ("pow.Tensor_Scalar", X, 4),
    ("pow.Tensor_Scalar", Made("exp", X), 0.5),
    # in place: the operator of the same overload
    ("add_.Tensor", X, Y, {"alpha": 3}), ("sub_.Scalar", X, 2.0), ("mul_.Tensor", X, 2.0), ("div_.Tensor", X, Y),
    ("relu_", X), ("clamp_", X, -0.5, 0.7), ("copy_", X, Y), ("fill_.Scalar", X, 2.0), ("zero_", X),
    ("masked_fill_.Scalar", X, OTHER, 3.0),
    # choices and bounds
    ("where.self", BOOL, X, Y), ("where.self", NEVER, X, Y), ("where.ScalarOther", BOOL, X, 2.0),
    ("where.ScalarSelf", BOOL, 2.0, Y), ("masked_fill.Scalar", X, OTHER, 3.0),
    ("masked_fill.Scalar", BOOL, OTHER, True),
    ("masked_fill.Tensor", X, OTHER, torch.tensor(2.0)), ("clamp.Tensor", X, table(4), table(4) + 0.5),
    ("clamp.Tensor", X, table(4) + 0.5, table(4)), ("clamp.Tensor", X, Y, None), ("clamp.Tensor", X, None, Y),
    ("clamp.Tensor", X, Y, table(4)), ("hardtanh", X), ("hardtanh", X, -0.2, 0.9),
    ("relu6", Made("mul.Scalar", X, 9.0)),
    ("_prelu_kernel", X, table(1, 4)), ("leaky_relu", X), ("elu", X), ("softplus", X), ("hardshrink", X),
    ("softshrink", X),
    # dtypes
    ("_to_copy", Made("clamp", X, -5.0, 5.0), {"dtype": torch.int64}),
    ("_to_copy", Made("clamp", X, -5.0, 5.0), {"dtype": torch.int8}), ("_to_copy", BOOL, {"dtype": torch.float64}),
    ("_to_copy", X, {"dtype": torch.bool}), ("_to_copy", WHOLE, {"dtype": torch.float64}), ("_to_copy", X),
    ("_to_copy", torch.tensor([0.0, 2.7, -1.2]), {"dtype": torch.int64}), ("_to_copy", table(3)),
    ("add.Tensor", WHOLE, 1), ("mul.Tensor", WHOLE, WHOLE), ("sum.dim_IntList", BOOL, [1]), ("abs", WHOLE),
    # sums, extremes and normalisations along axes
    *((name, X, [1]) for name in ("sum.dim_IntList", "mean.dim", "amax", "amin")),
    *((name, X, [1, 2], True) for name in ("sum.dim_IntList", "mean.dim", "amax", "amin")),
    *((name, X, [-1], True) for name in ("sum.dim_IntList", "mean.dim", "amax", "amin")),
    ("prod.dim_int", X, 1), ("prod.dim_int", X, -1, True), ("max.dim", X, 1), ("min.dim", X, 2, True),
    ("var.correction", X, [1]), ("var.correction", X, [1, 2], {"correction": 0, "keepdim": True}),
    ("var.correction", X, [2], {"correction": None}), ("var.correction", X, [2], {"correction": 2}),
    ("var_mean.correction", X, [1]), ("var_mean.correction", X, [1, 2], {"correction": 0, "keepdim": True}),
    ("cumsum", X, 1), ("cumsum", X, -1), ("sort", X), ("sort", X, 1, True), ("topk", X, 2), ("topk", X, 2, 1, False),
    ("median.dim", X, 1), ("median.dim", X, 2), ("median.dim", X, 2, True),
    ("_softmax", X, 1, False), ("_log_softmax", X, -1, False),
    ("_native_batch_norm_legit_no_training", X, B[:3], B[2:], table(3, seed=2), table(3).abs() + 0.1, 0.1, 1e-3),
    ("_native_batch_norm_legit_no_training", X, None, None, table(3, seed=2), table(3).abs() + 0.1, 0.1, 0.5),
    ("native_layer_norm", X, [4], B[:4], B[1:], 1e-3), ("native_layer_norm", X, [3, 4], None, None, 0.5),
    # windows
    ("max_pool2d_with_indices", IMAGE, [2, 2]), ("max_pool2d_with_indices", IMAGE, [3, 3], [1, 2], [1, 1]),
    ("max_pool2d_with_indices", IMAGE, [2, 1], [1, 1], [0, 0], [2, 1]), ("max_pool2d_with_indices", IMAGE, [2]),
    ("avg_pool2d", IMAGE, [2, 2]), ("avg_pool2d", IMAGE, [3, 2], [1, 1], [1, 0]),
    ("avg_pool2d", IMAGE, [2, 2], [], [0, 0], False, False),
    ("avg_pool2d", IMAGE, [2, 2], [2, 2], [0, 0], False, True, 3),
    ("avg_pool2d", IMAGE, [2, 2], [2, 2], [0, 0], True), ("_adaptive_avg_pool2d", IMAGE, [3, 2]),
    ("adaptive_max_pool2d", IMAGE, [3, 2]),
    ("convolution", LINE, table(2, 3, 2), B[:2], [2], [1], [1], False, [0], 1),
    ("convolution", LINE, table(2, 3, 2), None, [1], [0], [3], False, [0], 1),
    ("convolution", LINE, table(6, 1, 3), table(6), [1], [1], [1], False, [0], 3),
    ("convolution", LINE, table(3, 2, 3), table(2), [2], [1], [1], True, [1], 1),
    ("convolution", LINE, table(3, 2, 3), None, [1], [1], [2], True, [0], 3),
    ("convolution", IMAGE, table(3, 2, 3, 2), table(3), [1, 2], [2, 0], [1, 1], False, [0, 0], 1),
    ("convolution", IMAGE, table(2, 3, 2, 3), None, [2, 1], [0, 1], [1, 1], True, [1, 0], 1),
    ("upsample_bilinear2d", IMAGE, [5, 6], False), ("upsample_bicubic2d", IMAGE, [3, 7], True),
    ("upsample_linear1d", LINE, [9], False), ("upsample_nearest2d", IMAGE, [8, 4]),
    ("im2col", IMAGE, [2, 3], [1, 1], [1, 0], [2, 1]),
    # matrices
    ("mm", V, W.T), ("addmm", B, V, W.T), ("addmm", table(1, 5), V, W.T),
    ("bmm", X, Given(4, 3, start=12)), ("bmm", X, table(3, 4, 5)), ("bmm", table(3, 5, 3), X),
    ("baddbmm", Given(3, 5, start=24), X, table(1, 4, 5).repeat(3, 1, 1)), ("matmul", X, W.T),
    ("matmul", table(5, 3), X),
    ("matmul", X, table(4)), ("matmul", X, table(3, 4, 5)), ("matmul", X, Given(4, 3, start=12)),
    ("_trilinear", V, table(5, 4, 3), Given(3, start=9), [1, 3], [0], [1, 2], [2, 3]),
    # entries that are moved
    ("tril", X), ("triu", X, 1), ("diag_embed", V), ("diag_embed", V, 1), ("constant_pad_nd", X, [1, 2, 0, 1], 0.5),
    ("constant_pad_nd", X, [-1, 1]), ("constant_pad_nd", BOOL, [1, 1], 2), ("cat", [X, Y], 1), ("stack", [X, Y], -1),
    ("flip", X, [1]), ("roll", X, [1], [2]), ("index.Tensor", X, [None, torch.tensor([2, 0, 0])]),
    ("index_select", X, 2, torch.tensor([3, 1])), ("gather", X, 1, torch.tensor([[[2, 0, 1, 1]]] * BATCH)),
    ("slice.Tensor", X, 2, 1, 4, 2), ("expand", Given(1, 4), [BATCH, 3, 4]), ("reflection_pad1d", X, [1, 2]),
    ("slice_scatter", X, Given(3, 2, start=30), 2, 1, 3), ("select_scatter", X, V, 1, 2), ("repeat", X, [1, 2, 1]),
    # entries that are written
    ("index_put", X, [None, torch.tensor([2, 0])], Given(2, 4, start=20)),
    ("index_put", X, [None, torch.tensor([2, 2])], Given(2, 4, start=20), True),
    ("index_add", X, 1, torch.tensor([2, 0, 2]), Y), ("scatter.src", X, 2, torch.tensor([[[2, 0]]] * BATCH), Y),
    ("scatter.value", X, 2, torch.tensor([[[2, 0]]] * BATCH), 7.0),
    ("scatter.value_reduce", X, 2, torch.tensor([[[2, 0]]] * BATCH), 7.0, {"reduce": "multiply"}),
    ("scatter_add", X, 1, torch.tensor([[[2, 2, 0, 1], [1, 2, 0, 0]]] * BATCH), Y),
    *(("index_reduce", X, 1, torch.tensor([2, 0, 2]), Y, how) for how in ("amax", "amin", "prod", "mean")),
    *(("index_reduce", X, 1, torch.tensor([2, 0, 2]), Y, how, {"include_self": False}) for how in ("prod", "mean")),
    *(("scatter_reduce.two", X, 1, torch.tensor([[[2, 2, 0, 1]]] * BATCH), Y, how) for how in ("sum", "mean", "amin")),
    # the positions of largest entries
    ("argmax", V, 1), ("argmin", X, 2, True), ("eq.Scalar", Made("argmax", X, 1), 2),
    ("ne.Scalar", Made("argmax", X, 1), 0),
    ("eq.Tensor", Made("argmax", V, 1, True), torch.arange(5)), ("eq.Scalar", Made("argmin", V, 1), 1.5),
    ("eq.Tensor", torch.arange(-1, 5), Made("argmax", V, 1, True)),
    ("gather", X, 1, Made("argmax", Y, 1, True)), ("embedding", table(4, 2), Made("argmax", X, 2)),
    ("index.Tensor", X, [torch.arange(BATCH), Made("argmax", Given(3, start=12), 1)]),
]  # fmt: skip


def _label(call: Any) -> str:
    name, args, more = keywords_of(call)
    return " ".join([name, *(str(item) for item in args if isinstance(item, int | float | list)), *map(str, more)])[:60]


@pytest.mark.parametrize("call", RULES, ids=_label)
def test_a_rule_computes_the_numbers_and_the_dtype_that_torch_computes(call: tuple[Any, ...]) -> None:
    graph = Graph()
    ids = torch.from_numpy(graph.input((SIZE,), BATCH))
    numbers = torch.from_numpy(np.random.default_rng(3).normal(size=(BATCH, SIZE)))
    with float64_default():
        made, wanted = followed(graph, ids, call), computed(numbers, call)
    values = entries_at(graph, numbers.numpy())
    pairs = list(zip(tree_flatten(made)[0], tree_flatten(wanted)[0], strict=False))
    assert pairs
    for result, tensor in pairs:
        if result is None:  # positions, which have no rule
            continue
        array = result.array.astype(np.int64)
        got = np.where(
            array < 0, graph.numbers(np.minimum(array, -1)), values[np.maximum(array, 0) // BATCH, array % BATCH]
        )
        np.testing.assert_allclose(got, tensor.double().numpy(), rtol=1e-12, atol=1e-13)
        assert result.dtype == tensor.dtype


# The call, and the operation that the refusal names.
REFUSED: list[tuple[tuple[Any, ...], str]] = [
    (("div.Tensor_mode", X, 2.0, {"rounding_mode": "floor"}), "div with rounding"),
    (("rsub.Scalar", X, 2.0, 3), "rsub"),
    (("add.Tensor", BOOL, OTHER), "a sum of booleans"),
    (("bitwise_and.Tensor", WHOLE, WHOLE), "bitwise_and of integers"),
    (("round.decimals", X, {"decimals": 1}), "round with decimals"),
    (("pow.Tensor_Tensor", X, Y), "pow with an exponent that depends on the input"),
    (("pow.Scalar", 2.0, X), "pow with an exponent that depends on the input"),
    (("addmm", B, V, W.T, {"beta": 2}), "addmm with factors"),
    (("addmm", B, V, W.T, {"alpha": 2}), "addmm with factors"),
    (("_to_copy", X, {"dtype": torch.int32}), "a cast of numbers that may be out of range for int32"),
    (("index_add", X, 1, torch.tensor([0, 1, 2]), Y, {"alpha": 2}), "index_add with a factor"),
    (("index_put", X, [None, torch.tensor([2, 2])], Given(2, 4)), "several entries written at one index"),
    (("index_put", WHOLE, [None, torch.tensor([2, 0])], Given(2, 4)), "numbers written into a tensor of another dtype"),
    (("index_add", WHOLE, 1, torch.tensor([2, 0, 2]), WHOLE), "combining integers"),
    (("scatter_add", X, 1, Made("argmax", Y, 1, True), Y), "writing at indices that depend on the input"),
    (("convolution", LINE, Given(2, 3, 2), None, [1], [0], [1], False, [0], 1), "weights that depend on the input"),
    (("convolution", LINE, table(3, 2, 3), None, [2], [3], [1], True, [0], 1), "convolution that crops"),
    (("max_pool2d_with_indices", IMAGE, [3, 3], [2, 2], [0, 0], [1, 1], True), "pooling over partial windows"),
    (("avg_pool2d", IMAGE, [2, 2], [2, 2], [1, 1], False, False), "average pooling that excludes padding"),
    (("argmax", X), "argmax"),
    (("argmax", Given(1, 4), 1), "argmax"),
    (("argmax", Given(17), 1), "argmax"),
    (("median", X), "median of all entries"),
    (("_to_copy", X, {"dtype": torch.int64}), "a cast of numbers that may be out of range for int64"),
    (("neg", Made("_to_copy", BOOL, {"dtype": torch.uint8})), "neg of numbers that may be out of range for uint8"),
    (("copy_", torch.zeros(3, 4, dtype=torch.int64), X), "a cast to integers"),
    (("fill_.Tensor", torch.zeros(3, dtype=torch.int64), torch.tensor(2.5)), "a cast to integers"),
    (("add.Tensor", Made("empty.memory_format", [3, 4]), X), "add of NaN or of memory that was never written"),
    (("_to_copy", torch.tensor([torch.nan]), {"dtype": torch.int64}), "_to_copy of NaN"),
    (("digamma", X), "digamma"),
    (("i0", X), "i0"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "operation"), REFUSED, ids=lambda item: item if isinstance(item, str) else "")
def test_a_form_without_a_rule_is_refused_by_name(call: tuple[Any, ...], operation: str) -> None:
    graph = Graph()
    ids = torch.from_numpy(graph.input((SIZE,), BATCH))
    with float64_default(), pytest.raises(NoCertificateError) as raised:
        followed(graph, ids, call)
    assert raised.value.reason.code == "SYM190"
    assert operation in raised.value.reason.fields["operation"]


def test_sixteen_candidates_are_compared_and_uninitialised_memory_may_be_overwritten() -> None:
    graph = Graph()
    ids = torch.from_numpy(graph.input((SIZE,), BATCH))
    assert followed(graph, ids, ("argmax", Given(16), 1)).ids.shape == (BATCH,)
    written = followed(
        graph, ids, ("index_put", Made("empty.memory_format", [BATCH, 3, 4]), [None, torch.arange(3)], X)
    )
    assert torch.equal(written.ids, X.of(ids))
    with pytest.raises(NoCertificateError) as raised:
        followed(graph, ids, ("mm", Given(4), table(4, 2) / 0.0))
    assert raised.value.reason.code == "SYM191"


def test_places_are_known_only_if_every_one_is_that_of_a_largest_entry_among_equally_many() -> None:
    graph = Graph()
    ids = torch.from_numpy(graph.input((SIZE,), BATCH))
    three, four = (followed(graph, ids, ("argmax", Given(n), 1, True)) for n in (3, 4))
    smallest = followed(graph, ids, ("argmin", Given(3), 1, True))
    given, fixed = Entries(ids[:, :1], torch.int64), constant(graph, torch.ones(BATCH, 1, dtype=torch.int64))

    def joined(*parts: Entries) -> Entries:
        return Entries(torch.cat([part.ids for part in parts], 1), torch.int64)

    for parts in ((three,), (four,), (three, smallest), (three, three, smallest)):
        known = indicators_of(graph, joined(*parts))
        assert known is not None
        assert known.shape == (BATCH, len(parts), 4 if parts[0] is four else 3)
    for parts in ((given,), (fixed,), (three, given), (given, three), (three, fixed), (three, four), (four, smallest)):
        assert indicators_of(graph, joined(*parts)) is None


def test_the_first_entry_of_an_input_is_no_constant_bound() -> None:
    """Of a network without a batch axis, the first entry has the number 0; a bound above the other is no median."""
    graph = Graph()
    ids = graph.input((3,), 1)
    x, low = (Entries(torch.from_numpy(ids[0, k : k + 1].copy()), torch.float64) for k in (2, 0))
    high = constant(graph, torch.tensor([0.5], dtype=torch.float64))
    made = compute(graph, target_of("clamp.Tensor"), (x, low, high), {})
    numbers = np.array([[3.0, 0.0, 4.0], [3.0, 0.0, -1.0], [-2.0, 0.0, 0.25], [-2.0, 0.0, 4.0]])
    values = entries_at(graph, numbers)[made.array.astype(np.int64) // BATCH]
    wanted = np.minimum(np.maximum(numbers[:, 2], numbers[:, 0]), 0.5)
    np.testing.assert_allclose(values[0], wanted)


def test_an_operator_with_a_place_is_a_step_of_the_graph() -> None:
    graph = Graph()
    x = Entries(torch.from_numpy(graph.input((2,), BATCH)), torch.float64)
    module = make_fx(torch.tanh)(torch.zeros(BATCH, 2, dtype=torch.float64))
    given, node = (item for item in module.graph.nodes if item.op != "output")
    for place in (None, Place("layer", "Tanh")):
        node.meta["place"] = place
        made = interpreter._follow_one(graph, node, {given: x}, None)
    (step,) = graph.steps
    assert (step.place.module, step.operator, step.first, step.last) == ("layer", node, 2, 3)
    np.testing.assert_array_equal(step.given[0], x.array)
    np.testing.assert_array_equal(step.ids, made.array)


def test_windows_need_a_step_and_a_spacing_along_every_axis() -> None:
    ids = np.arange(16.0).reshape(1, 1, 4, 4)
    whole = windows_of(ids, (2, 2), (2, 1), [(0, 0), (0, 0)], (1, 2), -1.0)
    assert whole.shape == (1, 2, 2, 1, 4)
    assert whole[0, 1, 1, 0].tolist() == [9.0, 11.0, 13.0, 15.0]
    for stride, dilation in (((1,), (1, 1)), ((1, 1), (1,))):
        with pytest.raises(ValueError, match="zip"):
            windows_of(ids, (2, 2), stride, [(0, 0), (0, 0)], dilation, -1.0)


@pytest.mark.parametrize("axis", [0, 1])
def test_rows_of_constants_become_equal_if_they_differ_by_rounding_alone(
    axis: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interpreter, "axis_of", lambda value, size: axis)
    node: Any = SimpleNamespace(meta={"val": torch.empty(1)})
    rows = table(1, 5).expand(2 * BATCH, 5).clone()  # two batches, one after the other
    rows[BATCH:] += 1.0
    for off, equal in ((1e-15, True), (1e-13, True), (1e-9, False)):
        differing = rows * (1.0 + off * table(2 * BATCH, 5, seed=1).sign())
        graph = Graph()
        made = constant(graph, differing.swapaxes(0, axis).contiguous())
        interpreter._make_alike(graph, node, [made])
        numbers = graph.numbers(made.ids.swapaxes(0, axis).numpy())
        batches = numbers.reshape(2, BATCH, 5)
        assert (batches == batches[:, :1]).all() == equal
        np.testing.assert_allclose(numbers, differing, rtol=1e-12 if equal else 0)


def test_an_output_reads_its_own_sample_in_the_same_way_in_every_sample() -> None:
    graph = Graph()
    ids = torch.from_numpy(graph.input((4,), BATCH))
    one = graph.constants(np.ones(1))

    def entries_of(made: torch.Tensor, *, samples: int = BATCH, batched: bool = True) -> list[int]:
        return interpreter._entries_of_one(graph, Entries(made, torch.float64), samples, batched).tolist()

    assert entries_of(ids[:, [2, 0]]) == [2, 0]
    fixed = torch.from_numpy(np.broadcast_to(one, (BATCH, 1)).copy())
    assert entries_of(torch.cat([ids[:, 3:], fixed], 1)) == [3, int(one[0])]
    assert entries_of(ids.reshape(-1)[: BATCH * 4], batched=False) == [0, 1, 2, 3]
    assert entries_of(ids[:1, :2], samples=1, batched=False) == [0, 1]
    mixed, elsewhere, sometimes = ids[:, :1].roll(1, 0), ids[:, :1].clone(), ids[:, :1].clone()
    elsewhere[1] = ids[1, 1]
    sometimes[1] = int(one[0])
    first = fixed.clone()
    first[1] = ids[1, 0]
    numbers = np.broadcast_to([2.0, -3.0], (BATCH, 2)).copy()
    assert graph.numbers(entries_of(torch.from_numpy(graph.constants(numbers)))).tolist() == [2.0, -3.0]
    numbers[2, 1] *= 1.0 + 1e-13
    entries_of(torch.from_numpy(graph.constants(numbers)))
    numbers[2, 1] *= 1.0 + 1e-9
    differing = torch.from_numpy(graph.constants(numbers))
    for made in (mixed, elsewhere, sometimes, first, ids.T, ids[: BATCH - 1], differing):
        with pytest.raises(NoCertificateError) as raised:
            entries_of(made)
        assert raised.value.reason.code == "SYM193"


@pytest.mark.parametrize("axis", range(4))
@pytest.mark.parametrize("place", range(4))
def test_an_operator_gets_its_slices_along_the_batch_axis_and_constants_in_their_places(axis: int, place: int) -> None:
    shape, seen = (2, 3, 4), []
    whole = (*shape[:axis], BATCH, *shape[axis:])
    given = [(Entries(torch.zeros(whole, dtype=torch.int64), torch.float64), axis),
             (Entries(torch.zeros(2, dtype=torch.int64), torch.float32), None)]  # fmt: skip

    def run(tensors: list[torch.Tensor]) -> list[torch.Tensor]:
        seen.append(tensors)
        return [tensors[0].movedim(axis, place), tensors[1] * 2]

    call: Any = SimpleNamespace(name_with=lambda *told: "sort", dtypes=[torch.float64, torch.float32], run=run)
    rows = np.concatenate([table(5, 24).numpy(), np.tile([7.0, 8.0], (5, 1))], axis=1)
    fixed = np.zeros(26, dtype=bool)
    fixed[[3, 24, 25]] = True
    rows[:, 3] = 6.0
    slices = unknown._Slices(call, given, [place, None], fixed, rows[0, fixed])
    results = slices.run(rows[:, ~fixed])
    whole_input, constants = seen[0]
    np.testing.assert_array_equal(whole_input.movedim(axis, 0).numpy(), rows[:, :24].reshape(5, *shape))
    assert whole_input.shape == (*shape[:axis], 5, *shape[axis:])
    assert (constants.tolist(), constants.dtype) == ([7.0, 8.0], torch.float32)
    np.testing.assert_array_equal(results[0].numpy(), rows[:, :24].reshape(5, *shape))
    assert results[1].tolist() == [[14.0, 16.0]]
    picked = slices.picking(0, 24)(*rows[:, ~fixed].T, np.array([1.0, 24.0, 2.0, 4.0, 5.0]))
    assert picked.tolist() == rows[np.arange(5), [0, 23, 1, 3, 4]].tolist()


@pytest.mark.parametrize(("most", "refused"), [(12, False), (11, True)])
def test_an_operator_of_slices_is_refused_if_its_results_have_more_arguments_than_allowed(
    most: int, refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of the 4 numbers of the result is a function of all 3 numbers given."""
    monkeypatch.setattr(unknown, "_MOST_ARGUMENTS", most)
    graph = Graph()
    given = Entries(torch.from_numpy(graph.input((3,), 1))[0], torch.float64)
    node = SimpleNamespace(meta={"val": torch.empty(4)}, name="sort")
    call: Any = SimpleNamespace(name_with=lambda *told: "sort", dtypes=[torch.float64], node=node)
    if refused:
        with pytest.raises(NoCertificateError) as raised:
            unknown._slice_by_slice(graph, call, [(given, None)], None)
        assert raised.value.reason.code == "SYM192"
    else:
        assert unknown._slice_by_slice(graph, call, [(given, None)], None).ids.shape == (4,)


def test_a_rule_that_raises_is_replaced_by_an_unknown_function_or_refused_for_its_own_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    node: Any = SimpleNamespace(target=target_of("sin"), args=(), users=[])
    own = NoCertificateError(state("SYM191"))

    def computed_with(error: Exception | None, fallback: Any) -> Any:
        def compute_or_raise(*_: Any) -> str:
            if error is not None:
                raise error
            return "by its rule"

        monkeypatch.setattr(interpreter, "compute", compute_or_raise)
        return interpreter._computed_or_unknown(Graph(), node, {}, ((), {}), fallback)

    for error in (own, TypeError("a form without a rule")):
        assert computed_with(error, lambda node, values: "as an unknown function") == "as an unknown function"
        for fallback in (None, lambda node, values: None):
            with pytest.raises(NoCertificateError) as raised:
                computed_with(error, fallback)
            assert raised.value.reason.code == ("SYM191" if error is own else "SYM190")
            named = None if error is own else "aten.sin.default"
            assert raised.value.reason.fields.get("operation") == named
    assert computed_with(None, lambda node, values: "as an unknown function") == "by its rule"


def test_ties_name_the_entry_and_opposite_comparisons_are_negations() -> None:
    for shape in ((5,), (2, 3), (2, 3, 4)):
        names = ["x" + "".join(f"[{k}]" for k in place) for place in np.ndindex(shape)]
        assert [ties._input_entry(entry, shape) for entry in range(len(names))] == names
    known: dict[Any, int] = {}
    terms: Any = SimpleNamespace(
        apply=lambda name, parameters, x: known.setdefault((name, tuple(parameters), x), 10 + len(known))
    )
    comparisons = ties._Comparisons(terms)
    above, below = terms.apply("positive", [], (3,)), terms.apply("positive", [], (-3,))
    assert comparisons.ties == {3}
    assert below == terms.apply("zero", [], (above,)) != above
    assert terms.apply("zero", [], (below,)) == above
    assert terms.apply("where", [], (below, 1, 2)) == terms.apply("where", [], (above, 2, 1))
    assert terms.apply("where", [], (above, 1, 2)) != terms.apply("where", [], (above, 2, 1))
    assert terms.apply("positive", [], (4,)) not in (above, below)
    assert comparisons.ties == {3}
