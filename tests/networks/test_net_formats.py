"""Saved networks of other tools are read as modules that the proof can follow, or refused with the remedy."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from net_catalogue import Heads, mirror, mirror_mlp
from torch import nn

from symcheck.engine.networks.runner import run_net
from symcheck.engine.networks.subject.adapters import adapt_agent
from symcheck.engine.networks.subject.onnx_graph import OPERATIONS, OnnxModule, load_onnx
from symcheck.engine.networks.subject.onnx_shapes import HOST, on_host
from symcheck.engine.networks.subject.targets import resolve_network
from symcheck.errors import MissingExtraError, TargetError
from symcheck.groups import catalog
from symcheck.symmetry.symmetry import Symmetry


def test_a_missing_extra_gives_the_install_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    monkeypatch.setitem(sys.modules, "stable_baselines3", None)
    for suffix, extra in ((".onnx", "onnx"), (".zip", "sb3")):
        file = tmp_path / f"net{suffix}"
        file.write_bytes(b"")
        with pytest.raises(MissingExtraError, match=rf"symcheck\[{extra}\]"):
            resolve_network(str(file))


X = torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(0))
W = torch.randn(4, 3, 3, 3, generator=torch.Generator().manual_seed(1))
V = torch.randn(2, 6, generator=torch.Generator().manual_seed(2))
# Shifts so large that no sum cancels: float32 is then right to its last digits.
CHANNELS = torch.tensor([[2.0, 1.0, 0.5], [40.0, 50.0, 60.0], [1.0, -1.0, 0.0], [0.5, 2.0, 3.0]])
SCALE, SHIFT, MEAN, VARIANCE = CHANNELS[:, :, None, None]
M = torch.randn(5, 6, generator=torch.Generator().manual_seed(3))


@pytest.mark.parametrize(
    ("kind", "attributes", "operands", "wanted"),
    [
        ("Gemm", {"transB": 1}, (V, M, torch.ones(5)), F.linear(V, M, torch.ones(5))),
        ("Gemm", {"alpha": 2.0}, (V, M.T.contiguous()), 2.0 * V @ M.T),
        ("Conv", {"strides": [2, 2], "pads": [1, 1, 1, 1]}, (X, W), F.conv2d(X, W, stride=2, padding=1)),
        ("Conv", {"pads": [1, 0, 0, 0]}, (X, W), F.conv2d(F.pad(X, (0, 0, 1, 0)), W)),
        ("MaxPool", {"kernel_shape": [2, 2], "strides": [2, 2]}, (X,), F.max_pool2d(X, 2)),
        ("AveragePool", {"kernel_shape": [2, 2], "strides": [2, 2]}, (X,), F.avg_pool2d(X, 2)),
        ("GlobalMaxPool", {}, (X,), X.amax((2, 3), keepdim=True)),
        ("Flatten", {"axis": 1}, (X,), X.flatten(1)),
        ("Reshape", {}, (X, torch.tensor([0, -1])), X.reshape(2, -1)),
        ("Transpose", {"perm": [0, 2, 3, 1]}, (X,), X.permute(0, 2, 3, 1)),
        ("ReduceMean", {"axes": [2, 3], "keepdims": 0}, (X,), X.mean((2, 3))),
        ("Unsqueeze", {}, (V, torch.tensor([1])), V.unsqueeze(1)),
        ("Squeeze", {"axes": [1]}, (V.unsqueeze(1),), V),
        ("Clip", {}, (V, torch.tensor(-0.5), torch.tensor(0.5)), V.clamp(-0.5, 0.5)),
        ("Concat", {"axis": 1}, (V, V), torch.cat([V, V], 1)),
        ("Slice", {}, (X, np.array([1]), np.array([2**62]), np.array([-1])), X[..., 1:]),
        ("Gather", {"axis": 1}, (V, np.array(2)), V[:, 2]),
        ("Gather", {"axis": 1}, (V, np.array([2, -1])), V[:, [2, 5]]),
        ("Where", {}, (V > 0, V, np.array(2)), torch.where(V > 0, V, torch.tensor(2.0))),
        ("Greater", {}, (V, np.array(0)), V > 0),
        ("LessOrEqual", {}, (V, M[:2]), M[:2] >= V),
        ("Equal", {}, (V, V), torch.ones(2, 6, dtype=torch.bool)),
        ("And", {}, (V > 0, M[:2] > 0), (V > 0) & (M[:2] > 0)),
        ("Not", {}, (V > 0,), V <= 0),
        ("Pow", {}, (V, np.array(2)), V * V),
        ("Max", {}, (V, M[:2], torch.zeros(1)), torch.maximum(V, M[:2]).clamp_min(0.0)),
        ("PRelu", {}, (V, M[0]), F.relu(V) - M[0] * F.relu(-V)),
        ("Einsum", {"equation": "bi,oi->bo"}, (V, M), V @ M.T),
        ("Expand", {}, (V[:1], np.array([3, 1])), V[:1].repeat(3, 1)),
        ("Cast", {"to": 1}, (V.double(),), V.double()),
        ("Cast", {"to": 1}, (V > 0,), (V > 0).float()),
        ("Cast", {"to": 7}, (3 * V,), (3 * V).trunc()),
        ("Cast", {"to": 9}, (V,), V != 0),
        ("LeakyRelu", {"alpha": 0.2}, (V,), F.leaky_relu(V, 0.2)),
        ("Elu", {"alpha": 0.5}, (V,), torch.where(V > 0, V, 0.5 * V.expm1())),
        ("Gelu", {"approximate": "tanh"}, (V,), F.gelu(V, approximate="tanh")),
        ("Softmax", {"axis": 1}, (X,), X.exp() / X.exp().sum(1, keepdim=True)),
        ("LogSoftmax", {}, (X,), X - X.logsumexp(-1, keepdim=True)),
        (
            "LayerNormalization",
            {"epsilon": 0.1},
            (V, M[0], M[1]),
            (V - V.mean(1, keepdim=True)) / (V.var(1, correction=0, keepdim=True) + 0.1).sqrt() * M[0] + M[1],
        ),
        # As trained: with the stored mean and variance of each channel, whatever the batch.
        ("BatchNormalization", {"epsilon": 0.1}, (X, *CHANNELS), (X - MEAN) / (VARIANCE + 0.1).sqrt() * SCALE + SHIFT),
    ],
)
def test_a_node_computes_what_torch_does(
    kind: str, attributes: dict[str, object], operands: tuple[torch.Tensor, ...], wanted: torch.Tensor
) -> None:
    assert torch.allclose(OPERATIONS[kind](attributes, *operands), wanted)


@pytest.mark.parametrize(
    ("kind", "attributes", "operands", "wanted"),
    [
        ("Shape", {}, (X,), [2, 3, 8, 8]),
        ("Shape", {"start": 1, "end": 3}, (X,), [3, 8]),
        ("Slice", {}, (np.arange(5), np.array([1]), np.array([4])), [1, 2, 3]),
        ("Gather", {}, (np.array([7, 8, 9]), np.array(1)), 8),
        ("Concat", {"axis": 0}, (np.array([2]), np.array([3, 4])), [2, 3, 4]),
        ("Div", {}, (np.array([-7, 7]), np.array([2, 2])), [-3, 3]),
        ("Mod", {}, (np.array([-1]), np.array([3])), [2]),
        ("Unsqueeze", {}, (np.array(4), np.array([0])), [4]),
        ("Squeeze", {}, (np.array([4]), None), 4),
    ],
)
def test_arithmetic_on_shapes_happens_on_the_host(kind, attributes, operands, wanted) -> None:
    assert on_host(kind, operands)
    np.testing.assert_array_equal(HOST[kind](attributes, *operands), wanted)


@pytest.mark.parametrize(
    ("kind", "attributes", "operands", "what"),
    [
        ("Gather", {"axis": 1}, (V, np.array([[0, 1], [1, 0]])), "a table of indices"),
        ("Slice", {}, (V, np.array([5]), np.array([0]), np.array([1]), np.array([-1])), "a negative step"),
        ("Conv", {"auto_pad": "SAME_UPPER"}, (X, W), "auto_pad SAME_UPPER"),
        ("AveragePool", {"kernel_shape": [2, 2], "pads": [0, 0, 1, 1]}, (X,), "unequal padding"),
    ],
)
def test_a_form_of_a_node_that_is_not_read_is_named_with_what_to_give_instead(kind, attributes, operands, what) -> None:
    with pytest.raises(TargetError, match=rf"unsupported form: .*{what}.*Give the PyTorch module"):
        OPERATIONS[kind](attributes, *operands)


class _Tensor(SimpleNamespace):
    """What the package onnx calls a tensor, with the array in it."""


def graph_of(net: Heads) -> SimpleNamespace:
    """A graph as the package onnx gives it, of an MLP with two heads."""
    tensors, nodes, last = [], [], "x"
    for i, layer in enumerate(net.body):
        if isinstance(layer, nn.Linear):
            tensors += _parameters(layer, str(i))
            nodes.append(_node("Gemm", [last, f"w{i}", f"b{i}"], f"h{i}"))
        else:
            nodes.append(_node("Relu", [last], f"h{i}"))
        last = f"h{i}"
    for name in ("policy", "value"):
        tensors += _parameters(getattr(net, name), name)
        nodes.append(_node("Gemm", [last, f"w{name}", f"b{name}"], name))
    names = [SimpleNamespace(name=name) for name in ("policy", "value")]
    return SimpleNamespace(initializer=tensors, input=[SimpleNamespace(name="x")], output=names, node=nodes)


@pytest.mark.parametrize(("floor", "verdict"), [(0.0, "proved"), (0.25, "failed")])
def test_a_choice_by_a_comparison_is_followed(floor: float, verdict: str, onnx_package: None) -> None:
    """relu(h) - relu(-h) is odd, written with Where; with another choice on one side it is not."""
    weight = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    tensors = [_Tensor(name="w", array=weight), _Tensor(name="zero", array=np.float32(0.0))]
    tensors.append(_Tensor(name="floor", array=np.float32(floor)))
    steps = [("MatMul", ["x", "wt"], "h"), ("Greater", ["h", "zero"], "above"), ("Less", ["h", "floor"], "below")]
    steps += [("Where", ["above", "h", "zero"], "up"), ("Where", ["below", "h", "zero"], "down")]
    tensors.append(_Tensor(name="wt", array=weight.T.copy()))
    nodes = [_node(*step) for step in [*steps, ("Add", ["up", "down"], "y")]]
    graph = SimpleNamespace(
        initializer=tensors, input=[SimpleNamespace(name="x")], output=[SimpleNamespace(name="y")], node=nodes
    )
    negated = Symmetry("odd", catalog.cyclic(2), observation=[[-1] * 4], action=[[-1] * 3])
    assert run_net(OnnxModule(graph), negated).verdict == verdict


def _parameters(layer: nn.Linear, name: str) -> list[_Tensor]:
    weight, bias = layer.weight.detach().numpy(), layer.bias.detach().numpy()
    return [_Tensor(name=f"w{name}", array=weight), _Tensor(name=f"b{name}", array=bias)]


def _node(kind: str, inputs: list[str], output: str) -> SimpleNamespace:
    attribute = [SimpleNamespace(name="transB", value=1)] if kind == "Gemm" else []
    return SimpleNamespace(op_type=kind, name=f"/{output}/{kind}", input=inputs, output=[output], attribute=attribute)


@pytest.fixture
def onnx_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """The two functions of the package onnx that building a graph uses."""
    fake = ModuleType("onnx")
    fake.__spec__ = ModuleSpec("onnx", None)  # torch looks whether there is the package
    fake.numpy_helper = SimpleNamespace(to_array=lambda tensor: np.array(tensor.array))  # type: ignore[attr-defined]
    fake.helper = SimpleNamespace(get_attribute_value=lambda item: item.value)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "onnx", fake)


@pytest.mark.usefixtures("onnx_package")
def test_a_graph_is_proved_and_a_fault_in_it_is_named_by_its_node() -> None:
    net = mirror_mlp(value=True)
    assert run_net(OnnxModule(graph_of(net)), mirror()).verdict == "proved"
    with torch.no_grad():
        net.body[2].weight[3, 5] *= 1.001
    result = run_net(OnnxModule(graph_of(net)), mirror())
    assert {p.location for p in result.properties if p.verdict == "failed"} == {"nodes.h2/Gemm"}


def test_a_corrupt_file_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("onnx", reason="the extra 'onnx' is not installed")
    file = tmp_path / "net.onnx"
    file.write_bytes(b"not a graph")
    with pytest.raises(TargetError, match="ONNX"):
        load_onnx(file)


class _Policy(nn.Module):
    """The parts of a Stable-Baselines3 actor-critic policy that are used."""

    def __init__(self) -> None:
        super().__init__()
        heads = mirror_mlp(value=True)
        self.mlp_extractor = _Extractor(heads.body)
        self.action_net, self.value_net = heads.policy, heads.value

    def extract_features(self, observations: torch.Tensor) -> torch.Tensor:
        return observations.flatten(1)


class _Extractor(nn.Module):
    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.body = body

    def forward(self, features: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        hidden = self.body(features)
        return hidden, hidden


def test_an_actor_critic_policy_is_judged_by_its_parameters_under_its_own_names() -> None:
    policy = _Policy()
    assert run_net(policy, mirror()).verdict == "proved"
    with torch.no_grad():
        policy.mlp_extractor.body[2].weight[3, 5] *= 1.001
    result = run_net(policy, mirror())
    assert {p.location for p in result.properties if p.verdict == "failed"} == {"mlp_extractor.body.2"}


class Agent(nn.Module):
    """An agent with separate actor and critic and no forward."""

    def __init__(self, deviation: float | None = None) -> None:
        super().__init__()
        heads = mirror_mlp(value=True)
        self.actor = nn.Sequential(*heads.body, heads.policy)
        self.critic = nn.Sequential(*mirror_mlp(seed=1, value=True).body, mirror_mlp(seed=1, value=True).value)
        if deviation is not None:
            self.actor_logstd = nn.Parameter(torch.tensor([[0.0, deviation]]))


def test_an_agent_without_a_forward_is_judged_by_its_actor_and_critic() -> None:
    agent = Agent()
    assert run_net(agent, mirror()).verdict == "proved"
    with torch.no_grad():
        agent.critic[2].weight[3, 5] *= 1.001
    result = run_net(agent, mirror())
    assert {p.location for p in result.properties if p.verdict == "failed"} == {"critic.2"}


def test_log_deviations_of_an_agent_move_with_its_action() -> None:
    assert run_net(Agent(0.0), mirror()).verdict == "proved"
    assert run_net(Agent(0.5), mirror()).verdict == "failed"


def test_a_module_without_a_forward_or_an_actor_is_refused() -> None:
    with pytest.raises(TargetError, match="neither a forward"):
        adapt_agent(nn.ModuleList([nn.Linear(2, 2)]))


def test_a_stable_baselines_file_is_not_loaded_without_trust(tmp_path: Path) -> None:
    pytest.importorskip("stable_baselines3", reason="the extra 'sb3' is not installed")
    file = tmp_path / "agent.zip"
    file.write_bytes(b"")
    with pytest.raises(TargetError, match="--trust"):
        resolve_network(str(file))
