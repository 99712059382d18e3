"""Parts of the capture and of exported graphs by themselves: comparisons, codes, domains of leaves, options."""

from __future__ import annotations

import functools
import logging
import math
import os
import sys
import time
import warnings
from time import perf_counter
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.fx.experimental.proxy_tensor import make_fx

from symcheck.engine.networks import gathering
from symcheck.engine.networks.blame import layers
from symcheck.engine.networks.capture import computations
from symcheck.engine.networks.capture.computations import Moving, are_alike, are_constants_held
from symcheck.engine.networks.capture.library_settings import setting_read
from symcheck.engine.networks.capture.read_attributes import compares_identities, read_outside, without_caches
from symcheck.engine.networks.options import NetOptions
from symcheck.engine.networks.subject import onnx_quantised
from symcheck.engine.networks.subject.domain import Domain, Joint, OneHot
from symcheck.engine.networks.subject.onnx_quantised import fold_constants, numbers
from symcheck.errors import OptionError

RNG = np.random.default_rng
NAN, INF = float("nan"), float("inf")


def test_a_joint_domain_is_that_of_its_leaves_one_after_the_other() -> None:
    picture = Domain(np.zeros((2, 2)), np.full((2, 2), 3.0), np.ones((2, 2), bool))
    number = Domain(np.array([-1.0]), np.array([INF]), np.zeros(1, bool))
    value = OneHot(np.zeros(3), np.ones(3), np.ones(3, bool))
    joint = Joint.of([picture, number, value])
    assert joint.low.tolist() == [0, 0, 0, 0, -1, 0, 0, 0]
    assert joint.high.tolist() == [3, 3, 3, 3, INF, 1, 1, 1]
    assert joint.whole.tolist() == [True] * 4 + [False] + [True] * 3
    for x in (joint.draw(RNG(0), 40), joint.corners(RNG(0), 40)):
        assert x.shape == (40, 8)
        assert joint.contains(x).all()
        assert picture.contains(x[:, :4].reshape(-1, 2, 2)).all()
        assert (x[:, 5:].sum(axis=1) == 1).all()
    given = np.array([[4.0, 0.4, 1.6, -1.0, -7.0, 0.1, 0.9, 0.3]])
    assert joint.clip(given).tolist() == [[3.0, 0.0, 2.0, 0.0, -1.0, 0.0, 1.0, 0.0]]
    right = np.array([[3.0, 0.0, 2.0, 0.0, -1.0, 0.0, 1.0, 0.0]])
    for place, wrong in ((0, 3.5), (4, -1.5), (7, 1.0)):
        broken = right.copy()
        broken[0, place] = wrong
        assert joint.contains(np.concatenate([right, broken])).tolist() == [True, False]
    assert [leaf.shape for leaf in joint._leaves(given)] == [(1, 2, 2), (1, 1), (1, 3)]


STEP = ("aten.add", [Moving(0), 2.0])


@pytest.mark.parametrize(
    ("left", "right", "alike", "across"),
    [
        (2.0, 2.0, True, True),
        (2.0, 2.0 * (1 + 0.9e-6), True, True),
        (2.0, 2.0 * (1 + 1.1e-6), False, False),
        (NAN, NAN, True, True),
        (NAN, 1.0, False, False),
        (INF, INF, True, True),
        (INF, -INF, False, False),
        (INF, 3e38, False, False),
        (1e31, 9e37, False, True),
        (0.9e30, 1.1e31, False, False),
        (-1e31, 1e32, False, False),
        (1e-6, 1e-8, False, True),
        (0.9e-5, 1e-20, False, True),
        (1.1e-5, 1e-8, False, False),
        (1e-6, -1e-6, False, False),
        (Moving(1), Moving(1), True, True),
        (Moving(1), Moving(2), False, False),
        (Moving(1), 1.0, False, False),
        ("sum", "sum", True, True),
        ("sum", "mean", False, False),
        (3, 3, True, True),
        (3, 4, False, False),
        (None, None, True, True),
        (torch.float32, torch.float64, True, True),
        (torch.float32, torch.int64, False, False),
        (torch.tensor([1, 2]), torch.tensor([1, 2]), True, True),
        (torch.tensor([1, 2]), torch.tensor([1, 3]), False, False),
        (torch.tensor([1, 2]), torch.tensor([1.0, 2.0]), False, False),
        (torch.zeros(2), torch.zeros(3), False, False),
        (torch.tensor([1.0, 1e-9]), torch.tensor([1.0, 2e-9]), True, True),
        (torch.tensor([1e-9]), torch.tensor([2e-9]), False, True),
    ],
)
def test_arguments_of_two_graphs_are_alike_up_to_a_tolerance(left: Any, right: Any, alike: bool, across: bool) -> None:
    mine, others = [("op", [left])], [("op", [right])]
    assert are_alike(mine, others, 1e-6) is alike
    assert are_alike(mine, others, 1e-6, across_dtypes=True) is across
    assert are_alike([STEP, *mine], [STEP, *others], 1e-6) is alike


def test_graphs_with_other_operators_or_numbers_of_arguments_differ() -> None:
    assert are_alike([STEP], [STEP], 0.0)
    assert not are_alike([STEP], [STEP, STEP], 0.0)
    assert not are_alike([STEP], [("aten.sub", STEP[1])], 0.0)
    assert not are_alike([STEP], [("aten.add", [Moving(0)])], 0.0)


def test_constants_are_held_by_the_dtype_that_computes_with_them() -> None:
    for number, single in (
        (1.0, True),
        (0.0, True),
        (3e38, True),
        (1e39, False),
        (-1e39, False),
        (1e-44, True),
        (1e-46, False),
        (-1e-46, False),
        (INF, True),
        (NAN, True),
    ):
        for item in (number, torch.tensor([1.0, number], dtype=torch.float64)):
            steps = [("op", [Moving(0), item])]
            assert are_constants_held(steps, torch.float32) is single, number
            assert are_constants_held(steps, torch.float16) is single
            assert are_constants_held(steps, torch.float64)
    assert are_constants_held([("op", [torch.tensor([1.0]), 10**50, "x"])], torch.float32)


def last_node(function: Any, *inputs: torch.Tensor) -> Any:
    graph = make_fx(function)(*inputs).graph
    (output,) = [node for node in graph.nodes if node.op == "output"]
    return output.all_input_nodes[-1]


X = torch.randn(4, 5)


@pytest.mark.parametrize(
    ("function", "kept"),
    [
        (lambda x: torch.ops.aten.slice.Tensor(x, 1), True),
        (lambda x: torch.ops.aten.slice.Tensor(x, 1, 0, 2**63 - 1), True),
        (lambda x: torch.ops.aten.slice.Tensor(x, 1, None, None), True),
        (lambda x: torch.ops.aten.slice.Tensor(x, 1, 0, 5), False),
        (lambda x: torch.ops.aten.slice.Tensor(x, 1, 1), False),
        (lambda x: torch.ops.aten.slice.Tensor(x, 1, 0, 2**63 - 1, 2), False),
        (lambda x: x.clone(), True),
        (lambda x: x.detach(), True),
        (lambda x: x.double(), True),
        (lambda x: x.long(), False),
        (lambda x: (x > 0).float(), False),
        (lambda x: x + 0, False),
    ],
)
def test_operators_that_keep_every_value_are_left_out(function: Any, kept: bool) -> None:
    assert computations._keeps_all(last_node(function, X)) is kept


def test_operators_of_the_input_are_listed_with_what_does_not_depend_on_it() -> None:
    module = make_fx(lambda w, x: (x.clone() @ (w * 2)).view(-1, 4) + torch.ones(4))(torch.ones(5, 4), X)
    state = {"w": torch.full((5, 4), 3.0)}
    steps = computations.moving_steps(module, state, None, 4)
    assert [name for name, _ in steps] == ["input", "aten.mm.default", "aten.view.default", "aten.add.Tensor", "output"]
    product, view, total, output = (arguments for _, arguments in steps[1:])
    assert (product[0], isinstance(product[0], Moving)) == (0, True)
    assert torch.equal(product[1], torch.full((5, 4), 6.0))
    assert view == [1, 4, 4]
    assert (total[0], total[1].tolist()) == (2, [1.0] * 4)
    assert output == [3]
    empty = last_node(lambda x: torch.empty(3), X)
    assert computations._evaluate_node(empty, (), {}, int) == ("empty", (3,))


def test_codes_are_the_numbers_that_they_stand_for() -> None:
    codes = np.array([[-128, 0, 127], [1, 2, 3]], dtype=np.int8)
    assert numbers(codes, 0.5, 0).tolist() == [[-63.5, 0.0, 63.5], [0.5, 1.0, 1.5]]
    assert numbers(codes, 0.5, 1)[0, 0] == -64.5  # with a zero point no code is left out
    by_row = numbers(codes, np.array([1.0, 10.0]), np.array([0, 1]), axis=0)
    assert by_row.tolist() == [[-127.0, 0.0, 127.0], [0.0, 10.0, 20.0]]
    assert numbers(np.array([0, 255], np.uint8), 2.0, 128).tolist() == [-256.0, 254.0]
    assert numbers(codes, np.array([2.0]), np.array([0])).tolist()[1] == [2.0, 4.0, 6.0]


def folded(kind: str, inputs: Any, constants: dict[str, Any], **attributes: Any) -> tuple[bool, dict[str, Any]]:
    stored: dict[str, Any] = {}
    done = fold_constants(kind, inputs, "out", attributes, constants.get, stored.__setitem__)
    return done, {name: item.tolist() for name, item in stored.items()}


def test_stored_codes_are_folded_and_computed_ones_are_not() -> None:
    codes = np.array([[1, 2], [3, 4]], dtype=np.int8)
    known: dict[str, Any] = {"w": codes, "s": np.array(0.5), "z": np.array(1, np.int8), "f": np.ones((2, 2))}
    assert folded("DequantizeLinear", ["w", "s", "z"], known) == (True, {"out": [[0.0, 0.5], [1.0, 1.5]]})
    assert folded("DequantizeLinear", ["w", "s"], known) == (True, {"out": [[0.5, 1.0], [1.5, 2.0]]})
    by_row = {**known, "s": np.array([1.0, 10.0])}
    assert folded("DequantizeLinear", ["w", "s"], by_row, axis=0) == (True, {"out": [[1.0, 2.0], [30.0, 40.0]]})
    assert folded("DequantizeLinear", ["w", "s"], by_row) == (True, {"out": [[1.0, 20.0], [3.0, 40.0]]})
    for inputs in (["x", "s"], ["w", "x"], ["f", "s"]):
        assert folded("DequantizeLinear", inputs, known) == (False, {})
    zeros = {**known, "z": np.array([0, 1], np.int8)}
    assert folded("MatMulInteger", ["x", "w", "", "z"], zeros) == (False, {"w": [[1.0, 1.0], [3.0, 3.0]]})
    assert folded("ConvInteger", ["x", "w", "", "z"], zeros) == (False, {"w": [[1.0, 2.0], [2.0, 3.0]]})
    for inputs in (["x", "w"], ["x", "w", "", ""], ["x", "w", "z"]):
        assert folded("MatMulInteger", inputs, zeros) == (False, {"w": [[1.0, 2.0], [3.0, 4.0]]})
    assert folded("MatMulInteger", ["x", "f"], known) == (False, {})
    assert folded("MatMulInteger", ["w", "x"], known) == (False, {})
    assert folded("Add", ["w", "s"], known) == (False, {})


def test_codes_from_zero_on_are_a_relu() -> None:
    x = torch.tensor([-2.0, 3.0])

    def quantised(zero: Any) -> list[float]:
        made: list[float] = onnx_quantised._quantise({}, x, 0.5, zero).tolist()
        return made

    assert quantised(np.array(0, np.uint8)) == [0.0, 3.0]
    assert quantised(np.array(-128, np.int8)) == [0.0, 3.0]
    assert quantised(np.array(255, np.uint8)) == [-2.0, 0.0]
    assert quantised(np.array(127, np.int8)) == [-2.0, 0.0]
    for zero in (np.array(1, np.uint8), np.array(0, np.int8), np.array(0.0), np.zeros(2, np.uint8), None):
        assert quantised(zero) == [-2.0, 3.0]
    same, scale, point = onnx_quantised._quantise_dynamically({}, x)
    assert (same is x, float(scale), int(point)) == (True, 1.0, 0)
    picture, kernel = torch.randn(1, 2, 5, 6), torch.randn(4, 1, 2, 3)
    made = onnx_quantised._conv_integer(
        {"pads": [1, 0, 2, 3], "strides": [2, 1], "dilations": [1, 2], "group": 2}, picture, kernel
    )
    padded = torch.nn.functional.pad(picture, (0, 3, 1, 2))
    torch.testing.assert_close(made, torch.nn.functional.conv2d(padded, kernel, None, (2, 1), 0, (1, 2), 2))
    row, filters = torch.randn(1, 2, 7), torch.randn(3, 2, 3)
    torch.testing.assert_close(onnx_quantised._conv_integer({}, row, filters), torch.nn.functional.conv1d(row, filters))


def test_texts_and_single_numbers_are_read_as_on_the_command_line() -> None:
    assert NetOptions(outputs="action,invariant").outputs == ("action", "invariant")
    assert NetOptions(outputs=["action"]).outputs == ["action"]
    assert NetOptions(input_shape="1,21,21").input_shape == (1, 21, 21)
    assert NetOptions(input_shape=4).input_shape == (4,)
    assert NetOptions(input_shape=(2, 3)).input_shape == (2, 3)
    for wrong in (
        {"samples": 0},
        {"seed": -1},
        {"noise_seed": -1},
        {"mode": "test"},
        {"dtype": "int8"},
        {"input_shape": (0,)},
        {"input_shape": True},
        {"input_shape": 2.5},
        {"input_shape": {"a": 3.5}},
        {"input_shape": ((2,), (0,))},
        {"samples": 1.5},
    ):
        with pytest.raises(OptionError):
            NetOptions(**wrong)
    for right in (
        {"samples": 1},
        {"seed": 0},
        {"noise_seed": 0},
        {"mode": "train"},
        {"dtype": "torch.float16"},
        {"input_shape": {"a": (2,), "b": [1, 3]}},
    ):
        NetOptions(**right)


LOG = logging.getLogger("a test")


def logs(x: Any) -> Any:
    LOG.info("x")
    return x


def reads(function: Any, **held: Any) -> str:
    net = nn.Identity()
    for name, item in held.items():
        setattr(net, name, item)
    return setting_read(net, {function.__code__: function.__globals__}, {})


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (lambda x: x + math.pi, ""),
        (lambda x: x if sys.flags.optimize else -x, "sys.flags"),
        (lambda x: x.sum(), ""),
        (lambda x: x * os.environ.get("A", 1), "os.environ"),
        (lambda x: x * np.inf, ""),
        (lambda x: x if warnings.filters else -x, "warnings.filters"),
        (logs, ""),
        (lambda x: x if LOG.level else -x, "LOG"),
        (lambda x: x + sys.maxsize, ""),
        (lambda x: torch.relu(x), ""),
    ],
)
def test_settings_of_libraries_are_told_by_their_dotted_name(function: Any, told: str) -> None:
    assert reads(function).startswith(told)
    assert bool(reads(function)) is bool(told)


def helper(function: Any) -> Any:
    return function


def passes(x: Any) -> Any:
    return x * helper(perf_counter)


def calls(x: Any) -> Any:
    return x * helper(perf_counter())


def passes_by_module(x: Any) -> Any:
    return x * helper(time.perf_counter)


def calls_by_module(x: Any) -> Any:
    return x * helper(time.perf_counter())


@pytest.mark.parametrize(
    ("function", "told"),
    [(passes, "perf_counter"), (calls, ""), (passes_by_module, "time.perf_counter"), (calls_by_module, "")],
)
def test_a_clock_that_is_passed_on_is_told_because_its_calls_are_not_seen(function: Any, told: str) -> None:
    assert reads(function) == told


def test_modules_that_a_network_holds_are_followed_too() -> None:
    def forward(self: Any, x: Any) -> Any:
        return x if self.library.flags.optimize else -x

    assert reads(forward, library=sys) != ""
    assert reads(forward) == ""

    def writing(x: Any) -> Any:
        torch.some_setting = 3  # type: ignore[attr-defined]
        return x

    assert reads(writing) == "torch.some_setting"


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (lambda x: x.to("cuda:0"), "cuda:0"),
        (lambda x: x.device.type == "cpu", "device.type"),
        (lambda x: x.to("cpu"), ""),
        (lambda x: x.to(x.device), ""),
        (lambda x: x.device == torch.device("cpu"), "device"),
        (lambda x: np.datetime64("now"), "datetime64"),
        (lambda x: x.__hash__(), "__hash__"),
        (lambda x: x.mean(), ""),
    ],
)
def test_code_that_asks_where_it_runs_is_told_by_the_name(function: Any, told: str) -> None:
    assert read_outside({function.__code__: function.__globals__}) == told


@pytest.mark.parametrize(
    ("function", "compares"),
    [
        (lambda a, b: a is b, True),
        (lambda a, b: a is None, False),
        (lambda a, b: a in b, True),
        (lambda a, b: a + b, False),
        (lambda a, b: a == b, True),
        (lambda a, b: a == 3, False),
        (lambda a, b: a < b, False),
        (lambda a, b: a.eq(b), True),
    ],
)
def test_identities_are_compared_unless_with_a_constant(function: Any, compares: bool) -> None:
    assert compares_identities([function.__code__]) is compares


def test_caches_are_disabled_inside_a_block_and_put_back() -> None:
    class Net(nn.Module):
        @functools.cache  # noqa: B019
        def kept(self) -> int:
            return 1

    calls: list[int] = []

    def twice(k: int) -> int:
        calls.append(k)
        return k

    scope: dict[str, Any] = {"twice": functools.cache(twice), "plain": len}
    before, caches = dict(scope), {id(scope["twice"]), id(Net.__dict__["kept"])}
    with without_caches(Net(), {(lambda: None).__code__: scope}) as disabled:
        scope["twice"](2)
        scope["twice"](2)
        assert scope["plain"] is len
        assert caches <= disabled
    assert calls == [2, 2]
    assert scope == before


def test_the_planned_pairs_are_inputs_times_generators(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[int, int]] = []
    families = [SimpleNamespace(inputs=np.zeros((4, 2))), SimpleNamespace(inputs=np.zeros((3, 2)))]
    wanted: list[int] = []

    def drawn(inputs: Any, count: int, *given: Any) -> Any:
        wanted.append(count)
        return families

    monkeypatch.setattr(gathering, "families", drawn)
    monkeypatch.setattr(gathering, "number_of_samples", lambda *given: 30)
    monkeypatch.setattr(gathering, "_is_worth_climbing", lambda *given: False)
    monkeypatch.setattr(gathering, "_has_silent_fault", lambda *given: False)

    def measure(*given: Any, tick: Any, into: Any, **more: Any) -> None:
        tick(5)
        tick(50)

    monkeypatch.setattr(gathering, "measure", measure)
    inputs: Any = SimpleNamespace(motions=[1, 2, 3])
    gather: Any = gathering.gather_evidence
    gather(None, inputs, [], None, NetOptions(), None, None, progress=lambda done, of: told.append((done, of)))
    assert told == [(5, 21), (50, 50)]
    monkeypatch.setattr(gathering, "number_of_samples", lambda *given: 2)
    gather(None, inputs, [], None, NetOptions(), None, None, progress=lambda done, of: None)
    assert [(count, type(count)) for count in wanted] == [(10, int), (1, int)]


def test_a_bound_is_the_largest_drift_of_the_outputs(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []
    drift = np.array([0.0, 0.5, 2.0, INF, 0.25])

    def bounds(graph: Any, action: Any, gaps: Any, box: float) -> Any:
        given.append((gaps, box))
        return SimpleNamespace(drift=drift, of_rows=lambda *told: 0.0)

    def head(start: int, size: int, gap: Any) -> Any:
        return SimpleNamespace(
            node=SimpleNamespace(start=start, size=size),
            weighed=SimpleNamespace(gap=gap),
            record=SimpleNamespace(bound=None),
        )

    monkeypatch.setattr(layers, "Bounds", bounds)
    heads = [head(1, 2, "a gap"), head(3, 1, None)]
    made: Any = SimpleNamespace(graph=None, action=None, _heads=heads, _claimed=[])
    bound: Any = layers.LayerWalk.bound
    assert bound(made, {"y": np.array([1, 4, -2])}, 3.0) == 0.5
    assert given == [({1: "a gap"}, 3.0)]
    assert [each.record.bound for each in heads] == [2.0, None]
    assert bound(made, {"y": np.array([1, 4]), "z": np.array([2])}, 3.0) == 2.0
    assert bound(made, {"y": np.array([1, 3])}, 3.0) is None
