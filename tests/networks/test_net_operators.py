"""Every operator's rule computes what torch computes: a proof about another function proves nothing."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from certificate_mutants import certificate_of
from torch import nn

from symcheck.certificate_checker import evaluate
from symcheck.engine.networks.blame.running import entries_at
from symcheck.engine.networks.capture.capture import _Sizes, capture_network
from symcheck.engine.networks.graph.entries import Entries, constant
from symcheck.engine.networks.graph.interpreter import follow
from symcheck.engine.networks.graph.nodes import BATCH, Graph, NoCertificateError
from symcheck.engine.networks.graph.operators import OPERATORS
from symcheck.groups import catalog
from symcheck.symmetry.symmetry import Symmetry


def filters(like: torch.Tensor, *shape: int) -> torch.Tensor:
    return torch.arange(float(np.prod(shape)), dtype=torch.float64).mul(0.7).sin().view(shape).to(like)


def overwritten(t: torch.Tensor) -> torch.Tensor:
    """What an operator in place returns is what it wrote to, not what it wrote."""
    return (t * 1.0).add_(t[:, :1]).mul_(t[:, 1:2]) + (t * 1.0).fill_(0.5)


def spread(like: torch.Tensor, *places: int) -> torch.Tensor:
    return torch.tensor(places).expand(len(like), 3, len(places))


def put(t: torch.Tensor, *, accumulate: bool) -> torch.Tensor:
    """Entries of the last axis, two of them in the same place where they are added."""
    places = torch.tensor([0, 2, 2] if accumulate else [0, 2, 3])
    rows = t.permute(2, 1, 0).clone()  # batches stand last
    return rows.index_put((places,), t.permute(2, 1, 0)[1:] * 2.0, accumulate=accumulate).permute(2, 1, 0)


def written_through_a_view(t: torch.Tensor) -> torch.Tensor:
    copy = t * 1.0
    copy.view(-1, 12)[:, 1:3].mul_(5.0)
    return copy


# Blocks of shape (3, 4): no two axes are as long, so that a rule cannot take one for the other.
RULES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "cumsum of rows": lambda t: t.cumsum(1),
    "cumsum of columns": lambda t: t.cumsum(2),
    "sorted rows": lambda t: t.sort(1).values,
    "sorted downwards": lambda t: t.sort(-1, descending=True).values,
    "topk": lambda t: t.topk(2, 1).values,
    "median": lambda t: t.median(1).values,
    "prod": lambda t: t.prod(1),
    "amin": lambda t: t.amin(1),
    "population variance": lambda t: t.var(2, correction=0),
    "adaptive average": lambda t: F.adaptive_avg_pool1d(t, 3),
    "adaptive maximum": lambda t: F.adaptive_max_pool1d(t, 3),
    "average": lambda t: F.avg_pool1d(t, 2, stride=1, padding=1),
    "maximum": lambda t: F.max_pool1d(t, 3, stride=2, padding=1),
    "reflected": lambda t: F.pad(t, (1, 2), mode="reflect"),
    "convolution": lambda t: F.conv1d(t, filters(t, 2, 3, 3), filters(t, 2), stride=2, padding=2),
    "dilated": lambda t: F.conv1d(t, filters(t, 2, 3, 2), dilation=2),
    "transposed": lambda t: F.conv_transpose1d(t, filters(t, 3, 2, 3), stride=2, padding=1, output_padding=1),
    "bilinear": lambda t: F.bilinear(t[:, 0], t[:, 1], filters(t, 3, 4, 4), filters(t, 3)),
    "products of blocks": lambda t: t @ t.mT,
    "in place": overwritten,
    "power": lambda t: (t.abs() + 0.5) ** 1.5,
    "add": lambda t: torch.add(t, t[:, :1], alpha=0.5),
    "atan2": lambda t: torch.atan2(t[:, 0], t[:, 1]),
    "softplus": lambda t: F.softplus(t, beta=2.0, threshold=1.0),
    "put": lambda t: put(t, accumulate=False) + 10 * put(t, accumulate=True),
    "rounded": torch.round,
    "shrunk": lambda t: F.hardshrink(t, 0.7) + 10 * F.softshrink(t, 0.3) + 100 * F.threshold(t, 0.2, 20.0),
}
# Capturing them takes a second and a half.
MORE_RULES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "gelu": F.gelu,
    "gelu by tanh": lambda t: F.gelu(t, approximate="tanh"),
    "hardswish": F.hardswish,
    "mish": F.mish,
    "erfc": torch.erfc,
    "log sigmoid": F.logsigmoid,
    "reciprocal root": lambda t: (t.abs() + 0.5).rsqrt().reciprocal(),
    "steps": lambda t: t.floor() + 100 * t.ceil() + 1e4 * t.trunc() + 1e6 * t.sign(),
    "clamped": lambda t: t.clamp(-0.5, 0.7) + 10 * t.clamp(max=0.3) + 100 * F.relu6(t),
    "slopes": lambda t: F.prelu(t, filters(t, 3)) + F.leaky_relu(t, 0.2),
    "elu": lambda t: F.elu(t, 0.7) + 10 * F.celu(t, 0.7) + 100 * F.selu(t),
    "where": lambda t: torch.where(t > t[:, :1], t, -2.0 * t),
    "either and both": lambda t: torch.where((t > 0.5) | (t <= -0.9), torch.where((t > -1) & (t < 2), t, 7.0), 5.0),
    "masked": lambda t: t.masked_fill(t <= 0.1, 3.0),
    "padded": lambda t: F.pad(t, (1, 2, 0, 1), value=0.4),
    "means": lambda t: t.mean(1, keepdim=True) + t.mean((1, 2), keepdim=True) + t.sum(2, keepdim=True),
    "scatter_add": lambda t: t.scatter_add(2, spread(t, 0, 1, 1), t[:, :, :3]),
    "scatter": lambda t: t.scatter(2, spread(t, 0, 3), t[:, :, 1:3]),
    "largest scattered": lambda t: t.scatter_reduce(2, spread(t, 0, 1, 1), t[:, :, 1:], "amax"),
    "through a view": written_through_a_view,
    "subtracted": lambda t: 1 - torch.sub(t, t[:, :1], alpha=0.5),
    "divided": lambda t: t / (t[:, :1].abs() + 1),
    "square and cube": lambda t: t**2 + t**3,
    "extremes": lambda t: torch.minimum(t, t[:, :1]) + 10 * torch.fmax(t, t[:, :1]),
    "batch norm": lambda t: F.batch_norm(t, filters(t, 3), filters(t, 3).abs() + 0.5, filters(t, 3) + 1, filters(t, 3)),
    "group norm": lambda t: F.group_norm(t, 3, filters(t, 3), filters(t, 3)),
    "grouped": lambda t: F.conv1d(t, filters(t, 6, 1, 2), groups=3),
    "attention": lambda t: F.scaled_dot_product_attention(t, t.sin(), t.cos()),
    "softmax": lambda t: t.softmax(1) + 10 * t.log_softmax(2),
    "plane": lambda t: F.adaptive_avg_pool2d(t, (2, 3)),
    "columns of constants": lambda t: filters(t, 5, 4) @ t.mT + 10 * (t @ filters(t, 4, 5)).mT,
    "products of cumulated": lambda t: t.cumprod(1),
}


class Everything(nn.Module):
    def __init__(self, rules: dict[str, Callable[[torch.Tensor], torch.Tensor]]) -> None:
        super().__init__()
        self.rules = rules

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([rule(x.view(-1, 3, 4)).reshape(x.shape[0], -1) for rule in self.rules.values()], -1)


class Calling(nn.Module):
    def __init__(self, function: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(x)


@pytest.mark.parametrize("rules", [RULES, pytest.param(MORE_RULES, marks=pytest.mark.long)], ids=["first", "more"])
def test_rules_compute_what_torch_computes(rules: dict[str, Callable[[torch.Tensor], torch.Tensor]]) -> None:
    x = torch.from_numpy(np.random.default_rng(0).normal(size=(2, 12)) * np.array([[1.0], [30.0]]))
    net = Everything(rules)
    sizes = [rule(x.view(-1, 3, 4)).reshape(len(x), -1).shape[1] for rule in rules.values()]
    still = Symmetry("still", catalog.cyclic(2), [list(range(12))], [list(range(sum(sizes)))])
    document = certificate_of(net, still)
    for row, wanted in zip(x, net(x), strict=True):
        off = np.abs(evaluate(document, row.numpy())["output"] - wanted.numpy()) / (1 + wanted.abs().numpy())
        worst = [part.max() for part in np.split(off, np.cumsum(sizes)[:-1])]
        assert {name: gap for name, gap in zip(rules, worst, strict=True) if gap > 1e-13} == {}


@pytest.mark.parametrize(("size", "refused"), [(64, False), (1024, True)])
def test_an_operator_that_is_known_by_its_calls_alone_has_a_million_arguments_at_most(size: int, refused: bool) -> None:
    captured = capture_network(Calling(lambda x: x.logcumsumexp(1)).double(), (size,))
    with pytest.raises(NoCertificateError) if refused else nullcontext() as raised:
        follow(captured, (size,), unknown=True)
    assert raised is None or raised.value.reason.code == "SYM192"


def test_an_operator_of_another_library_is_not_taken_for_the_one_of_torch_with_its_name() -> None:
    @torch.library.custom_op("other_library::tanh", mutates_args=())
    def even(x: torch.Tensor) -> torch.Tensor:
        return x.abs()

    even.register_fake(torch.empty_like)
    captured = capture_network(Calling(even).double(), (4,))
    with pytest.raises(NoCertificateError) as raised:
        follow(captured, (4,))
    assert (raised.value.reason.code, raised.value.reason.fields["operation"]) == ("SYM190", "other_library::tanh")


# Operators as torch calls them after capture; a capture of each would take a hundred times as long.
_UNARY = """abs acos asin asinh atan atanh ceil cos cosh erf erfc exp expm1 floor gelu hardsigmoid hardswish hardtanh
leaky_relu log log1p log2 log_sigmoid_forward mish neg reciprocal relu relu6 round rsqrt sgn sigmoid sign silu sin sinh
softplus sqrt tan tanh trunc"""
ALONE: list[tuple[Any, ...]] = [
    *((name,) for name in _UNARY.split()),
    ("clamp", -0.5, 0.7), ("clamp", None, 0.3), ("clamp", -0.5), ("clamp", 0.7, -0.5), ("clamp_max", 0.3),
    ("clamp_min", 0.3), ("elu", 0.7), ("elu", 1.6, 1.1, 0.5), ("gelu", {"approximate": "tanh"}), ("hardshrink", 0.7),
    ("hardtanh", -2, 3), ("leaky_relu", 0.2), ("pow", 3.0), ("pow", -2.0), ("softplus", 2.0, 1.0), ("softshrink", 0.3),
    ("threshold", 0.2, 20.0),
]  # fmt: skip


@pytest.mark.parametrize("call", ALONE, ids=lambda call: " ".join(map(str, call)))
def test_the_rule_of_an_operator_of_one_number_computes_what_torch_computes(call: tuple[Any, ...]) -> None:
    name, *given = call
    more = given.pop() if given and isinstance(given[-1], dict) else {}
    graph = Graph()
    made = OPERATORS[name](graph, Entries(torch.from_numpy(graph.input((1,), BATCH)), torch.float64), *given, **more)
    entry = int((made[0] if isinstance(made, tuple) else made).array[0, 0]) // BATCH
    numbers = torch.cat([torch.linspace(-7.3, 7.3, 74), torch.tensor([0.0, 0.2, 0.3, -0.5, 0.7, 25.0, -25.0])]).double()
    wanted = getattr(torch.ops.aten, name)(numbers, *given, **more)
    wanted = wanted[0] if isinstance(wanted, tuple) else wanted
    np.testing.assert_allclose(entries_at(graph, numbers[:, None].numpy())[entry], wanted, rtol=1e-12, atol=1e-15)


SCATTERED: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("scatter_add", (), {}),
    ("scatter", (), {"reduce": "add"}),
    ("scatter", (), {"reduce": "multiply"}),
    ("scatter_reduce", ("sum",), {}),
    ("scatter_reduce", ("prod",), {"include_self": False}),
    ("scatter_reduce", ("amax",), {}),
    ("scatter_reduce", ("amin",), {"include_self": False}),
    ("scatter_reduce", ("mean",), {}),
]


@pytest.mark.parametrize(("name", "how", "more"), SCATTERED)
def test_the_rule_of_what_is_scattered_computes_what_torch_computes(
    name: str, how: tuple[Any, ...], more: dict[str, Any]
) -> None:
    graph, places = Graph(), torch.tensor([[3, 1, 1, 0]])
    x = Entries(torch.from_numpy(graph.input((8,), 1)), torch.float64)
    target, source = (Entries(x.ids[:, part], x.dtype) for part in (slice(0, 4), slice(4, 8)))
    made = OPERATORS[name](graph, target, 1, constant(graph, places), source, *how, **more)
    numbers = torch.from_numpy(np.random.default_rng(0).normal(size=(5, 8)))
    wanted = getattr(torch.ops.aten, name)(numbers[:, :4], 1, places.expand(5, 4), numbers[:, 4:], *how, **more)
    values = entries_at(graph, numbers.numpy())[made.array[0].astype(int) // BATCH].T
    np.testing.assert_allclose(values, wanted, rtol=1e-12)


@pytest.mark.parametrize("kind", ["symint", "symfloat", "symbool"])
def test_whatever_is_read_from_values_is_remembered(kind: str) -> None:
    sizes = _Sizes()
    assert not sizes.depends_on_values
    getattr(sizes, f"create_unbacked_{kind}")()
    assert sizes.depends_on_values
