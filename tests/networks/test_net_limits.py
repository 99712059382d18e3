"""The budget of a run: time, and the number of samples by the cost of a network."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from net_catalogue import Lambda, mirror, mirror_mlp
from torch import nn

from symcheck.engine.networks.context import NetContext
from symcheck.engine.networks.gathering import number_of_samples
from symcheck.engine.networks.options import NetOptions
from symcheck.engine.networks.subject.subject import Subject

SECONDS = [0.0]
"""The time of a simulated clock, which advances by a second in each forward pass."""


class Slow(nn.Module):
    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        SECONDS[0] += 1.0
        return self.net(x)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    SECONDS[0] = 0.0
    watch = SimpleNamespace(monotonic=lambda: SECONDS[0])
    monkeypatch.setattr("symcheck.engine.clock.time", watch)
    monkeypatch.setattr("symcheck.engine.networks.context.time", watch)


def wrong() -> nn.Module:
    torch.manual_seed(0)
    return Slow(nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2)))


@pytest.mark.parametrize("limit", [1e-3, 40.0])
def test_no_search_starts_a_forward_pass_after_the_time_budget(clock: None, limit: float) -> None:
    context = NetContext(wrong(), mirror(), NetOptions(samples=64, max_time=limit), lambda event: None)
    context.check_fit()
    context.measured.families  # noqa: B018 (evidence is gathered here)
    gathered = SECONDS[0]
    assert context.assessment.verdict == "failed"
    assert context.counterexample is not None
    assert context.causes
    # one block of samples, and the passes that describe the counterexample, are always made
    assert gathered <= 50.0
    assert SECONDS[0] <= gathered + 5.0


def test_without_a_limit_a_counterexample_is_shrunk_by_many_passes(clock: None) -> None:
    context = NetContext(wrong(), mirror(), NetOptions(samples=64), lambda event: None)
    assert context.measured.pairs >= 64
    gathered = SECONDS[0]
    assert context.counterexample is not None
    assert len(context.causes) > 0
    assert gathered > 60.0
    assert SECONDS[0] > gathered + 10.0


def test_a_proof_may_take_half_of_the_time_budget(clock: None) -> None:
    limits = {limit: NetOptions(samples=64, max_time=limit) for limit in (20.0, 1000.0)}
    contexts = {
        limit: NetContext(mirror_mlp(), mirror(), options, lambda event: None) for limit, options in limits.items()
    }
    short, long = contexts[20.0], contexts[1000.0]
    SECONDS[0] = 10.5
    assert short.proof is not None
    assert short.proof.reason is not None
    assert (short.proof.level, short.proof.reason.reason.code) == (None, "SYM163")
    assert short.assessment.verdict == "passed"
    assert long.proof is not None
    assert long.proof.level == "exact"
    assert long.assessment.verdict == "proved"


def test_a_network_that_runs_on_one_input_at_a_time_is_tested_on_fewer_inputs() -> None:
    def samples_of(net: nn.Module, shape: tuple[int, ...], *, alone: bool = False) -> int:
        subject = Subject(net, shape)
        subject = subject.taking_one_by_one() if alone else subject
        return number_of_samples(subject, None, NetOptions())

    attention = nn.TransformerEncoderLayer(8, 2, 8, batch_first=True)
    assert samples_of(attention, (3, 8)) == 10_000
    assert samples_of(attention, (3, 8), alone=True) < 1_000
    assert samples_of(Lambda(lambda x: 2 * x), (4,), alone=True) == 10_000


def test_the_cost_of_a_pass_includes_products_outside_of_linear_layers() -> None:
    weight = torch.ones(64, 64).double()
    multiplied = Subject(Lambda(lambda x: torch.einsum("bi,io->bo", x.double(), weight)), (64,)).cost
    linear = Subject(nn.Linear(64, 64, bias=False), (64,)).cost
    assert linear >= 64 * 64
    assert 64 * 64 <= multiplied < 3 * linear
    recurrent = Subject(Lambda(lambda x, net: net(x)[0], nn.LSTM(4, 32, batch_first=True)), (5, 4)).cost
    assert recurrent >= 5 * 4 * 32 * (4 + 32)
    assert Subject(Lambda(lambda x: np.pi * x), (4,)).cost < 1_000
