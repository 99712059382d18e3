"""Recurrent layers, attention and three-dimensional convolutions are proved, and a fault in one is named."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from net_catalogue import mirror
from torch import Tensor, nn
from torch.nn import functional

from symcheck.api.verify_net import verify_net
from symcheck.engine.networks.options import NetOptions
from symcheck.engine.networks.runner import run_net
from symcheck.engine.results import RunResult
from symcheck.groups import catalog
from symcheck.symmetry.symmetry import Symmetry

UNITS = 8


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(0)


def partners(rows: Tensor) -> Tensor:
    """Units 0 and 1 exchanged, 2 and 3, ..."""
    return rows.reshape(-1, 2, *rows.shape[1:]).flip(1).reshape(rows.shape)


def tied(cell: nn.Module, gates: int) -> nn.Module:
    """A recurrent layer whose hidden units are exchanged in pairs when its input changes sign."""
    with torch.no_grad():
        for name, parameter in cell.named_parameters():
            for gate in parameter.view(gates, UNITS, -1):
                moved = partners(gate)
                if name in ("weight_ih", "weight_ih_l0"):
                    moved = -moved
                elif "weight" in name:
                    moved = partners(moved.T).T
                gate.copy_((gate + moved) / 2)
    return cell


def head() -> nn.Linear:
    layer = nn.Linear(UNITS, 2)
    with torch.no_grad():
        layer.weight[1] = partners(layer.weight[0])
        layer.bias[1] = layer.bias[0]
    return layer


class TwoSteps(nn.Module):
    """A cell that sees the same input twice."""

    def __init__(self, cell: nn.Module) -> None:
        super().__init__()
        self.cell, self.head = cell, head()

    def forward(self, x: Tensor) -> Tensor:
        state = self.cell(x)
        state = self.cell(x, state)
        return self.head(state[0] if isinstance(state, tuple) else state)


class LastOfSequence(nn.Module):
    def __init__(self, rnn: nn.Module) -> None:
        super().__init__()
        self.rnn, self.head = rnn, head()

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.rnn(x)[0][:, -1])


GATES = {"GRU": 3, "LSTM": 4, "RNN": 1}


def cell_net(kind: str) -> nn.Module:
    return TwoSteps(tied(getattr(nn, f"{kind}Cell")(4, UNITS), GATES[kind]))


def sequence_net(kind: str) -> nn.Module:
    return LastOfSequence(tied(getattr(nn, kind)(4, UNITS, num_layers=2, batch_first=True), GATES[kind]))


def failed_at(result: RunResult) -> set[str | None]:
    return {p.location for p in result.properties if p.verdict == "failed"}


SEQUENCE = Symmetry("signs", catalog.cyclic(2), observation=[[-1] * 20], action=[[1, 0]])
OF_SEQUENCE = NetOptions(samples=100, input_shape=(5, 4))


@pytest.mark.parametrize("kind", GATES)
def test_a_cell_whose_gates_are_exchanged_alike_is_proved_and_one_wrong_weight_is_found(kind: str) -> None:
    net = cell_net(kind)
    assert run_net(net, mirror(), options=NetOptions(samples=100)).verdict == "proved"
    with torch.no_grad():
        net.cell.weight_hh[-1, 3] *= 1.0001
    assert failed_at(run_net(net, mirror(), options=NetOptions(samples=100))) == {"cell"}


def test_gates_that_are_exchanged_differently_are_not_proved() -> None:
    net = cell_net("GRU")
    with torch.no_grad():  # the update gate belongs to the next pair of units
        for parameter in net.cell.parameters():
            gate = parameter.view(3, UNITS, -1)[1]
            gate.copy_(gate.roll(1, 0))
    assert run_net(net, mirror(), options=NetOptions(samples=100)).verdict == "failed"


@pytest.mark.parametrize("kind", ["RNN", *(pytest.param(kind, marks=pytest.mark.long) for kind in ("GRU", "LSTM"))])
def test_layers_over_a_sequence_are_proved_and_one_wrong_weight_is_found(kind: str) -> None:
    net = sequence_net(kind)
    assert run_net(net, SEQUENCE, options=OF_SEQUENCE).verdict == "proved"
    with torch.no_grad():
        net.rnn.weight_hh_l1[-1, 3] *= 1.0001
    assert failed_at(run_net(net, SEQUENCE, options=OF_SEQUENCE)) == {"rnn"}


@pytest.mark.parametrize("kind", ["GRU", pytest.param("LSTM", marks=pytest.mark.long)])
def test_the_hidden_state_of_a_sequence_of_observations_moves_as_the_report_says(kind: str) -> None:
    net = sequence_net(kind)
    report = verify_net(net, mirror(), input_shape=(3, 4), samples=64)
    rho = report.hidden_representation
    assert report.verdict == "proved"
    assert rho is not None
    x = torch.randn(2, 3, 4)
    usual, moved = (net.rnn(item)[1] for item in (x, -x))
    usual, moved = (item[0] if kind == "LSTM" else item for item in (usual, moved))
    states = [item.transpose(0, 1).reshape(2, -1).detach().numpy() for item in (usual, moved)]
    assert np.abs(states[1] - states[0] @ rho.matrix(rho.group.generators[0]).T).max() < 1e-6
    with torch.no_grad():
        net.rnn.weight_hh_l1[-1, 3] *= 1.1
    assert verify_net(net, mirror(), input_shape=(3, 4), samples=64).hidden_representation is None


class Tokens(nn.Module):
    """Five tokens of six channels through attention, averaged at the end."""

    def __init__(self, layer: Callable[[Tensor], Tensor], positions: bool = False) -> None:
        super().__init__()
        self.layer, self.last = layer, nn.Linear(6, 3)
        self.positions = nn.Parameter(torch.randn(5, 6)) if positions else None

    def forward(self, x: Tensor) -> Tensor:
        x = x if self.positions is None else x + self.positions
        made = self.layer(x, x, x)[0] if isinstance(self.layer, nn.MultiheadAttention) else self.layer(x)
        return self.last((x + made).relu().mean(1))


def attention(**options: object) -> nn.MultiheadAttention:
    return nn.MultiheadAttention(6, 2, batch_first=True, **options)


NEXT = [(t + 1) % 5 * 6 + c for t in range(5) for c in range(6)]
TOKENS = Symmetry("the next token", catalog.cyclic(5), observation=[NEXT], action=[[0, 1, 2]])
OF_TOKENS = NetOptions(samples=100, input_shape=(5, 6))


@pytest.mark.parametrize(
    "layer",
    [
        attention,
        lambda: attention(bias=False),
        pytest.param(
            lambda: nn.TransformerEncoderLayer(6, 3, 12, batch_first=True, norm_first=True), marks=pytest.mark.long
        ),
    ],
    ids=["attention", "without biases", "encoder layer"],
)
def test_attention_does_not_care_about_the_order_of_tokens(layer: Callable[[], nn.Module]) -> None:
    assert run_net(Tokens(layer()), TOKENS, options=OF_TOKENS).verdict == "proved"


def test_positions_added_to_tokens_are_named() -> None:
    assert failed_at(run_net(Tokens(attention(), positions=True), TOKENS, options=OF_TOKENS)) == {"positions"}


class OddAttention(nn.Module):
    """Queries, keys and values change sign with the input, scores do not."""

    def __init__(self, causal: bool, shared: bool = True) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(6, 4, bias=not shared) for _ in range(3))
        self.last, self.causal = nn.Linear(4, 2, bias=False), causal
        with torch.no_grad():
            self.last.weight[1] = -self.last.weight[0]

    def forward(self, x: Tensor) -> Tensor:
        parts = self.query(x), self.key(x), self.value(x)
        return self.last(functional.scaled_dot_product_attention(*parts, is_causal=self.causal)[:, -1])


OPPOSITE = Symmetry("all signs", catalog.cyclic(2), observation=[[-1] * 30], action=[[1, 0]])


@pytest.mark.parametrize("causal", [True, False])
def test_signs_pass_through_attention(causal: bool) -> None:
    assert run_net(OddAttention(causal), OPPOSITE, options=OF_TOKENS).verdict == "proved"
    assert run_net(OddAttention(causal, shared=False), OPPOSITE, options=OF_TOKENS).verdict == "failed"


def test_a_causal_order_is_not_carried_by_a_shift_of_tokens() -> None:
    net = Tokens(nn.Identity())
    net.layer = Causal()
    assert run_net(net, TOKENS, options=OF_TOKENS).verdict == "failed"
    net.layer.causal = False
    assert run_net(net, TOKENS, options=OF_TOKENS).verdict == "proved"


class Causal(nn.Module):
    causal = True

    def forward(self, x: Tensor) -> Tensor:
        return functional.scaled_dot_product_attention(x, x, x, is_causal=self.causal)


class Video(nn.Module):
    """Filters over depth, height and width, in pairs that are each other's reflection in depth."""

    def __init__(self, **options: object) -> None:
        super().__init__()
        self.conv, self.last = nn.Conv3d(1, 4, 3, **options), nn.Linear(4, 2)
        with torch.no_grad():
            for i in (0, 2):
                self.conv.weight[i + 1] = self.conv.weight[i].flip(1)
                self.conv.bias[i + 1] = self.conv.bias[i]
            self.last.weight[1], self.last.bias[1] = partners(self.last.weight[0]), self.last.bias[0]

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.conv(x[:, None]).relu().amax((2, 3, 4)))


BACKWARD = [(4 - d) * 36 + place for d in range(5) for place in range(36)]
DEPTH = Symmetry("frames backward", catalog.cyclic(2), observation=[BACKWARD], action=[[1, 0]])
OF_VIDEO = NetOptions(samples=50, input_shape=(5, 6, 6))


@pytest.mark.parametrize("options", [{}, {"padding": 1}, {"stride": (2, 1, 1)}, {"dilation": (2, 1, 1)}])
def test_a_convolution_over_depth_is_proved_under_a_flip_of_the_depth(options: dict) -> None:
    assert run_net(Video(**options), DEPTH, options=OF_VIDEO).verdict == "proved"


def test_a_wrong_filter_over_depth_and_a_stride_that_does_not_fit_are_found() -> None:
    net = Video()
    with torch.no_grad():
        net.conv.weight[0, 0, 1, 1, 1] *= 1.0001
    assert failed_at(run_net(net, DEPTH, options=OF_VIDEO)) == {"conv"}
    assert run_net(Video(stride=(3, 1, 1), padding=(1, 0, 0)), DEPTH, options=OF_VIDEO).verdict == "failed"


def test_dropout_between_layers_does_nothing_in_eval_mode() -> None:
    net = nn.Sequential(nn.Unflatten(1, (5, 4)), LastOfSequence(tied(nn.LSTM(4, UNITS, batch_first=True), 4)))
    net[1].rnn.dropout = 0.5
    result = run_net(net, SEQUENCE, options=NetOptions(samples=100, input_shape=(20,)))
    assert result.verdict == "proved"
