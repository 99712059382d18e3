"""ONNX files are judged as ONNX Runtime runs them, quantised networks as integers; their structure apart from both."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from net_catalogue import mirror, mirror_mlp
from torch import nn

from symcheck.engine.networks.options import NetOptions
from symcheck.engine.networks.runner import run_net
from symcheck.engine.networks.subject.artefacts import artefact_of, dequantise, structural
from symcheck.engine.networks.subject.onnx_graph import load_onnx
from symcheck.engine.networks.subject.onnx_quantised import QUANTISED, fold_constants, numbers
from symcheck.engine.results import PropertyResult, RunResult
from symcheck.errors import TargetError

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*torch.ao.quantization:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:torch.quantize_per:UserWarning"),
    pytest.mark.filterwarnings("ignore:Please use quant_min:UserWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]


def whole(result: RunResult) -> PropertyResult:
    return next(p for p in result.properties if p.name == "network_equivariance")


def layers_of(net: nn.Module) -> list[tuple[np.ndarray, np.ndarray]]:
    linear = (m for m in net.modules() if isinstance(m, nn.Linear))
    return [(m.weight.detach().numpy(), m.bias.detach().numpy()) for m in linear]


def write_mlp(
    file: Path,
    net: nn.Module,
    *,
    batch: int | str = "n",
    stored: type[np.floating] = np.float32,
    codes: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray, np.ndarray]] | None = None,
    activations: tuple[float, int] | None = None,
    after: str = "",
) -> Path:
    """A graph of Gemm and Relu; weights stored in a dtype or as codes; activations quantised; a node at the end."""
    onnx = pytest.importorskip("onnx", reason="the extra 'onnx' is not installed")
    pytest.importorskip("onnxruntime", reason="the extra 'onnx' is not installed")
    from onnx import TensorProto, helper, numpy_helper

    nodes, constants, last = [], [], "x"

    def keep(name: str, array: np.ndarray) -> str:
        constants.append(numpy_helper.from_array(array, name))
        return name

    layers = layers_of(net)
    for i, (weight, bias) in enumerate(layers):
        if activations is not None:
            scale, zero = keep(f"s{i}", np.float32(activations[0])), keep(f"z{i}", np.uint8(activations[1]))
            nodes.append(helper.make_node("QuantizeLinear", [last, scale, zero], [f"q{i}"]))
            nodes.append(helper.make_node("DequantizeLinear", [f"q{i}", scale, zero], [f"d{i}"]))
            last = f"d{i}"
        if codes is not None:
            code, scale_w, zero_w = codes(weight)
            names = [keep(f"c{i}", code), keep(f"t{i}", scale_w), keep(f"u{i}", zero_w)]
            nodes.append(helper.make_node("DequantizeLinear", names, [f"w{i}"], axis=0))
        elif stored is not np.float32:
            nodes.append(helper.make_node("Cast", [keep(f"h{i}", weight.astype(stored))], [f"w{i}"], to=1))
        else:
            keep(f"w{i}", weight)
        nodes.append(helper.make_node("Gemm", [last, f"w{i}", keep(f"b{i}", bias)], [f"y{i}"], f"layer{i}", transB=1))
        last = f"y{i}"
        if i < len(layers) - 1:
            nodes.append(helper.make_node("Relu", [last], [f"r{i}"]))
            last = f"r{i}"
    nodes.append(helper.make_node(after or "Identity", [last], ["out"]))
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [batch, n]) for name, n in (("x", 4), ("out", 2))]
    graph = helper.make_graph(nodes, "net", ends[:1], ends[1:], constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), str(file))
    return file


def symmetric_codes(weight: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    scale = np.float32(np.abs(weight).max() / 127)
    return np.round(weight / scale).astype(np.int8), scale, np.int8(0)


def truncated_codes(weight: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Codes cut off instead of rounded: w and -w come to lie one step apart."""
    scale = np.float32(np.abs(weight).max() / 127)
    return np.floor(weight / scale).clip(-127).astype(np.int8), scale, np.int8(0)


def test_a_float_file_is_proved_and_its_deployed_numbers_are_the_runtimes(tmp_path: Path) -> None:
    result = whole(run_net(load_onnx(write_mlp(tmp_path / "net.onnx", mirror_mlp())), mirror()))
    assert result.verdict == "proved"
    assert "As deployed (float32, ONNX Runtime)" in result.detail
    assert result.per_coordinate[1]["name"] == "float32, ONNX Runtime as deployed"
    assert 0 < result.per_coordinate[1]["noise"] < 1e-5


def test_what_is_deployed_is_run_by_the_runtime_and_not_by_the_translation(tmp_path: Path) -> None:
    net = load_onnx(write_mlp(tmp_path / "net.onnx", mirror_mlp()))
    net.runtime = lambda inputs: (torch.zeros(len(inputs[0]), 2),)
    result = whole(run_net(net, mirror()))
    assert result.verdict == "undecided"
    assert result.reason is not None
    assert result.reason.code == "deployed_noise"
    assert (
        1.0 <= result.reason.fields["noise"] < 1.2
    )  # the largest |f| over how far f lies to either side of its middle
    assert "differs from its float64 copy by 1." in result.detail


def test_another_dtype_is_asked_of_the_translation(tmp_path: Path) -> None:
    net = load_onnx(write_mlp(tmp_path / "net.onnx", mirror_mlp()))
    assert "As deployed (float64)" in whole(run_net(net, mirror(), options=NetOptions(dtype="float64"))).detail
    assert net.runtime is not None


def test_a_file_without_a_runtime_says_that_its_translation_ran(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write_mlp(tmp_path / "net.onnx", mirror_mlp())
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    result = whole(run_net(load_onnx(file), mirror()))
    assert result.verdict == "proved"
    assert "ONNX Runtime is not installed, so the translated graph was run instead." in result.detail


@pytest.mark.parametrize("batch", [1, 3])
def test_a_file_for_one_batch_size_is_fed_batches_of_that_size(tmp_path: Path, batch: int) -> None:
    free, fixed = (write_mlp(tmp_path / f"{n}.onnx", mirror_mlp(), batch=n) for n in ("n", batch))
    x = torch.randn(7, 4)
    torch.testing.assert_close(load_onnx(fixed)(x), load_onnx(free)(x), rtol=1e-5, atol=1e-6)
    assert whole(run_net(load_onnx(fixed), mirror(), options=NetOptions(samples=64))).verdict == "proved"


@pytest.mark.parametrize(
    "options",
    [{"stored": np.float16}, {"codes": symmetric_codes}, {"codes": symmetric_codes, "activations": (0.05, 128)}],
    ids=["float16", "int8 weights", "int8 QDQ"],
)
def test_a_rounded_file_keeps_its_structure_and_is_not_called_proved_where_the_runtime_is_coarser(
    options: dict, tmp_path: Path
) -> None:
    file = write_mlp(tmp_path / "net.onnx", mirror_mlp(), **options)
    result = whole(run_net(load_onnx(file), mirror()))
    if "activations" not in options:  # weights alone are rounded alike on both sides: the file itself is symmetric
        assert result.verdict == "proved"
        return
    assert result.verdict == "passed"
    assert "the float64 copy satisfies the claim" in result.detail.lower()
    assert result.per_coordinate[1]["noise"] > 1e-3
    assert result.bound is not None
    assert "ONNX Runtime" in str(result.bound["region"])


def test_weights_whose_codes_are_cut_off_lose_the_structure(tmp_path: Path) -> None:
    file = write_mlp(tmp_path / "net.onnx", mirror_mlp(), codes=truncated_codes)
    result = run_net(load_onnx(file), mirror())
    assert {p.location for p in result.properties if p.verdict == "failed"} == {"nodes.layer0"}


def test_a_runtime_whose_decisions_flip_is_not_vouched_for_by_its_structure(tmp_path: Path) -> None:
    file = write_mlp(tmp_path / "net.onnx", mirror_mlp(), codes=symmetric_codes, activations=(1.0, 100))
    result = whole(run_net(load_onnx(file), mirror()))
    assert result.verdict == "undecided"
    assert result.reason is not None
    assert result.reason.code == "deployed_noise"
    assert result.reason.fields["noise"] > 0.1
    assert "argmax decisions flip" in result.detail


def test_codes_that_start_at_zero_stand_for_a_relu() -> None:
    x = torch.tensor([-1.0, 2.0])
    quantise = QUANTISED["QuantizeLinear"]
    assert quantise({}, x, 0.1, np.array(0, dtype=np.uint8)).tolist() == [0.0, 2.0]
    assert quantise({}, x, 0.1, np.array(255, dtype=np.uint8)).tolist() == [-1.0, 0.0]
    assert quantise({}, x, 0.1, np.array(7, dtype=np.uint8)).tolist() == [-1.0, 2.0]
    assert quantise({}, x, 0.1).tolist() == [-1.0, 2.0]


def test_integer_products_are_those_of_the_numbers_that_codes_stand_for() -> None:
    codes, zero = np.array([[1, 5], [3, 3]], dtype=np.uint8), np.array(3, dtype=np.uint8)
    kept: dict[str, np.ndarray] = {}
    stored = {"w": codes, "z": zero}.get
    assert not fold_constants("MatMulInteger", ["q", "w", "zx", "z"], "y", {}, stored, kept.__setitem__)
    np.testing.assert_array_equal(kept["w"], [[-2.0, 2.0], [0.0, 0.0]])
    x = torch.tensor([[1.0, 10.0]], dtype=torch.float64)
    made, scale, _ = QUANTISED["DynamicQuantizeLinear"]({}, x)
    product = QUANTISED["MatMulInteger"]({}, made, torch.from_numpy(kept["w"]), None, None) * scale
    assert product.tolist() == [[-2.0, 2.0]]
    filters = torch.ones(1, 1, 2, 2)
    image = torch.arange(9.0).reshape(1, 1, 3, 3)
    assert QUANTISED["ConvInteger"]({"pads": [0, 0, 1, 1]}, image, filters).shape == (1, 1, 3, 3)
    per_row = numbers(np.array([[1, 2], [3, 4]], dtype=np.int8), np.array([1.0, 10.0]), np.array([0, 1]), 0)
    np.testing.assert_array_equal(per_row, [[1, 2], [20, 30]])


def test_the_smallest_code_has_no_counterpart_and_counts_as_the_next() -> None:
    weight = torch.quantize_per_tensor(torch.tensor([-1.01, 1.0]), 1 / 127, 0, torch.qint8)
    assert weight.int_repr().tolist() == [-128, 127]
    low, high = dequantise(weight).tolist()
    assert low == -high
    np.testing.assert_array_equal(numbers(np.array([-128, 127], dtype=np.int8), 1.0, 0), [-127.0, 127.0])


def dynamic(net: nn.Module) -> nn.Module:
    return torch.ao.quantization.quantize_dynamic(net, {nn.Linear}, dtype=torch.qint8)


def test_an_int8_network_is_judged_by_its_dequantised_weights_and_its_own_decisions() -> None:
    net = dynamic(mirror_mlp(value=True))
    assert artefact_of(net) == "int8"
    result = run_net(net, mirror())
    found = whole(result)
    assert result.verdict == "passed"
    assert next(p for p in result.properties if p.name == "layer_certificate").verdict == "proved"
    assert "As deployed (int8)" in found.detail
    assert "argmax decisions flip" in found.detail
    assert found.per_coordinate[1]["noise"] > 1e-4
    assert found.bound is not None


def test_a_fault_that_survives_quantisation_is_named() -> None:
    net = mirror_mlp()
    with torch.no_grad():
        net[2].weight[3, 5] += 0.3
    result = run_net(dynamic(net), mirror())
    assert {p.location for p in result.properties if p.verdict == "failed"} == {"2"}


def test_a_statically_quantised_network_has_a_float_counterpart() -> None:
    torch.manual_seed(0)
    parts = [
        nn.Conv2d(1, 2, 3),
        nn.ReLU(),
        nn.Conv2d(2, 2, 3),
        nn.Flatten(),
        nn.Linear(18, 6),
        nn.ReLU(),
        nn.Linear(6, 2),
    ]
    quantiser = torch.ao.quantization
    net = nn.Sequential(quantiser.QuantStub(), *parts, quantiser.DeQuantStub()).eval()
    fused = quantiser.fuse_modules(net, [["1", "2"], ["5", "6"]])
    fused.qconfig = quantiser.get_default_qconfig("fbgemm")
    prepared = quantiser.prepare(fused)
    x = torch.randn(200, 1, 7, 7)
    prepared(x)
    integers = quantiser.convert(prepared)
    counterpart = structural(quantiser.convert(prepared)).double()
    assert artefact_of(integers) == "int8"
    assert artefact_of(counterpart) == ""
    wanted = net.double()(x.double())
    assert (counterpart(x.double()) - wanted).abs().max() < 0.05 * wanted.abs().max()  # weights in steps of 1/127
    assert (integers(x).double() - counterpart(x.double())).abs().max() < 0.1 * wanted.abs().max()


@pytest.mark.parametrize(
    ("after", "gain", "verdict", "why"),
    [
        ("Round", 1.0, "passed", "No violation beyond the rounding of the deployed network"),
        ("HardSigmoid", 1.001, "undecided", "whose rounding error may be as large as the residual"),
        ("HardSigmoid", 1.2, "failed", "clear decisions do not transform as claimed as deployed"),
    ],
)
def test_a_node_without_a_translation_leaves_the_file_to_the_runtime(
    after: str, gain: float, verdict: str, why: str, tmp_path: Path
) -> None:
    net = mirror_mlp()
    with torch.no_grad():
        net[-1].weight[0] *= gain
    result = whole(run_net(load_onnx(write_mlp(tmp_path / "net.onnx", net, after=after)), mirror()))
    assert result.verdict == verdict
    assert why in result.detail
    assert f"Only ONNX Runtime runs the file, because symcheck cannot translate {after}." in result.detail
    assert "own rounding noise" not in result.detail
    assert [item["name"] for item in result.per_coordinate[:2]] == [
        "all inputs, as deployed",
        "float32, ONNX Runtime as deployed",
    ]


def test_a_node_without_a_translation_needs_the_runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write_mlp(tmp_path / "net.onnx", mirror_mlp(), after="HardSigmoid")
    with pytest.raises(TargetError, match="HardSigmoid, so the file can be run only on the CPU and in its own dtype"):
        run_net(load_onnx(file), mirror(), options=NetOptions(dtype="float64"))
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(TargetError, match=r"cannot translate its nodes HardSigmoid.*Install onnxruntime"):
        load_onnx(file)


@pytest.mark.parametrize(("name", "gain", "verdict"), [("Fine", 1.0, "proved"), ("Relu", 1.01, "failed")])
def test_a_function_of_the_file_is_what_it_says_whatever_its_name(
    name: str, gain: float, verdict: str, tmp_path: Path
) -> None:
    """A function may have the name of an operator in a domain of its own."""
    file = write_mlp(tmp_path / "net.onnx", mirror_mlp())
    import onnx
    from onnx import helper, numpy_helper

    standard, own = helper.make_opsetid("", 17), helper.make_opsetid("own", 1)
    gains = numpy_helper.from_array(np.float32([gain, 1.0]))
    steps = [helper.make_node("Constant", [], ["k"], value=gains), helper.make_node("Mul", ["a", "k"], ["b"])]
    model = onnx.load(str(file))
    model.graph.node[-1].op_type, model.graph.node[-1].domain = name, "own"
    model.functions.append(helper.make_function("own", name, ["a"], ["b"], steps, [standard]))
    model.opset_import.append(own)
    onnx.save(model, str(file))
    assert whole(run_net(load_onnx(file), mirror())).verdict == verdict


def test_an_operator_of_another_domain_is_not_taken_for_the_standard_one(tmp_path: Path) -> None:
    file = write_mlp(tmp_path / "net.onnx", mirror_mlp(), after="Relu")
    import onnx

    model = onnx.load(str(file))
    model.graph.node[-1].domain = "own"
    model.opset_import.append(onnx.helper.make_opsetid("own", 1))
    onnx.save(model, str(file))
    with pytest.raises(TargetError, match=r"cannot translate its nodes own\.Relu"):
        load_onnx(file)


@pytest.mark.parametrize(("gain", "verdict"), [(1.0, "proved"), (1.01, "failed")])
def test_an_operator_of_the_runtime_that_equals_the_standard_one_is_translated(
    gain: float, verdict: str, tmp_path: Path
) -> None:
    net = mirror_mlp()
    with torch.no_grad():
        net[-1].weight[0] *= gain
    file = write_mlp(tmp_path / "net.onnx", net, after="Gelu")
    import onnx

    model = onnx.load(str(file))
    model.graph.node[-1].domain = "com.microsoft"
    model.opset_import.append(onnx.helper.make_opsetid("com.microsoft", 1))
    onnx.save(model, str(file))
    loaded = load_onnx(file)
    assert loaded.runtime is not None
    assert whole(run_net(loaded, mirror())).verdict == verdict
