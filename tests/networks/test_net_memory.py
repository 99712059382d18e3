"""What makes a network another function from call to call, or from batch to batch: never `proved`, and named."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from net_catalogue import Draw, linear, mirror, mirror_mlp, swap_blocks
from torch import nn

from symcheck.engine.networks.capture.own_code import is_own_file
from symcheck.engine.networks.context import NetContext
from symcheck.engine.networks.options import NetOptions
from symcheck.engine.networks.runner import run_net
from symcheck.engine.results import PropertyResult


def judged(net: nn.Module, **options: Any) -> PropertyResult:
    result = run_net(net, mirror(), options=NetOptions(samples=100, **options))
    found = next(p for p in result.properties if p.name == "network_equivariance")
    assert result.verdict == found.verdict
    return found


class Around(nn.Module):
    """An equivariant network with something around it."""

    def __init__(self) -> None:
        super().__init__()
        self.net = mirror_mlp(16)


class CentredByItsFirstInput(Around):
    """Its first input settles a shift, as layers do that initialise themselves from data."""

    shift: torch.Tensor | None = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.shift is None:
            self.shift = x.mean(0)
        return self.net(x - self.shift)


class Recurrent(nn.Module):
    """An equivariant cell whose hidden state stays among its attributes."""

    def __init__(self) -> None:
        super().__init__()
        draw = Draw()
        first = draw(8, 4)
        self.embed, self.cell = linear(torch.cat([first, -first])), nn.GRUCell(16, 16, bias=False)
        with torch.no_grad():
            for weight in (self.cell.weight_ih, self.cell.weight_hh):
                weight.copy_(torch.cat([swap_blocks(draw, 8, 8) for _ in range(3)]))
        self.head = linear(swap_blocks(draw, 1, 8))
        self.hidden: torch.Tensor | None = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.hidden is None or len(self.hidden) != len(x):
            self.hidden = x.new_zeros(len(x), 16)
        self.hidden = self.cell(torch.relu(self.embed(x)), self.hidden)
        return self.head(self.hidden)


class RunningMean(Around):
    """Centres its inputs by a mean that it goes on estimating, in eval mode too."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.mean = self.mean + 0.1 * (x.mean(0) - self.mean)
        return self.net(x - self.mean)


class KeepsWhatChangesNothing(Around):
    """Keeps its last answer and makes a constant when first called, as many modules do."""

    last, scale = None, None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.scale is None:
            self.scale = torch.full((4,), 0.5)
        self.last = self.net(x * self.scale)
        return self.last


@pytest.mark.parametrize("kind", [CentredByItsFirstInput, Recurrent, RunningMean])
def test_a_network_whose_answer_depends_on_the_calls_before_is_undecided_and_its_memory_named(
    kind: type[nn.Module],
) -> None:
    for options in ({}, {"noise_seed": 0}):
        found = judged(kind(), **options)
        assert found.verdict == "undecided"
        assert found.reason is not None
        assert found.reason.code == "memory"
        assert "noise" not in found.detail
        assert found.causes[0].code == "SYM153"
        assert "stores state between calls" in str(found.causes[0])


def test_weights_that_change_with_every_call_in_train_mode_are_a_memory_and_eval_mode_is_named() -> None:
    net = mirror_mlp(16)
    nn.utils.parametrizations.spectral_norm(net[2])
    found = judged(net, mode="train")
    assert found.verdict == "undecided"
    assert "eval mode" in found.detail
    assert judged(net).verdict == "proved"


def test_what_a_network_draws_is_noise_and_no_memory() -> None:
    found = judged(mirror_mlp(16, between=lambda n: nn.Dropout(0.5)), mode="train")
    assert found.verdict == "undecided"
    assert found.reason is not None
    assert found.reason.code == "stochastic"
    assert "--noise-seed" in found.detail


def test_what_is_kept_without_changing_an_answer_is_no_memory() -> None:
    assert judged(KeepsWhatChangesNothing()).verdict == "proved"


class CountsCalls(Around):
    """What a counter does later no run shows."""

    calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return self.net(x)


class WarmsUp(Around):
    """After a thousand calls, counted in a buffer, another network."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))
        self.other = nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return self.net(x) + (self.calls > 1000) * self.other(x)


@pytest.mark.parametrize("kind", [CountsCalls, WarmsUp])
def test_a_network_that_changes_with_its_calls_is_undecided_and_what_changes_is_named(kind: type[nn.Module]) -> None:
    result = judged(kind())
    assert result.verdict == "undecided"
    assert result.reason is not None
    assert result.reason.code == "calls_change_state"
    assert result.reason.fields["what"] == "the network"


def test_a_network_that_has_changed_with_its_calls_fails() -> None:
    net = WarmsUp()
    net.calls += 1000
    assert judged(net).verdict == "failed"


class OtherInBatches(Around):
    """Equivariant for one input; with more than one at a time another network."""

    def __init__(self) -> None:
        super().__init__()
        self.other = nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.net(x) if len(x) == 1 else self.net(x) + 0.1 * self.other(x)


class AxesMixedUp(Around):
    """A reshape across the batch axis, which one input at a time does not show."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        answers = self.net(x)
        return answers.t().reshape(answers.shape)


class WithTheMean(Around):
    """Adds a share of the batch's mean: equivariant in any batch, but proved of single inputs only."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        answers = self.net(x)
        return answers + 0.1 * answers.mean(0)


@pytest.mark.parametrize("kind", [OtherInBatches, AxesMixedUp])
def test_a_network_that_is_equivariant_one_input_at_a_time_only_is_undecided(kind: type[nn.Module]) -> None:
    found = judged(kind())
    assert found.verdict == "undecided"
    assert found.reason is not None
    assert found.reason.code == "mixed_batches"
    assert found.reason.fields["residual"] > 1e-5
    assert "samples of a batch influence each other" in found.detail.lower()


@pytest.mark.parametrize("off", [0.0, 1e-6])
def test_a_value_whose_terms_cancel_is_not_taken_for_one_that_mixes_its_batch(off: float) -> None:
    """The units are odd and come in pairs of opposite sign, so the value is the rounding of its terms."""

    class Tied(nn.Module):
        def __init__(self, seed: int) -> None:
            super().__init__()
            draw = Draw(seed)
            w, a, b, u = draw(6, 4), draw(6, 6), draw(6, 6), draw(1, 6)
            self.first = linear(torch.cat([w, -w]))
            self.second = linear(torch.cat([torch.cat([a, b], 1), torch.cat([b, a], 1)]))
            self.policy = linear(torch.cat([torch.cat([u, 2 * u], 1), torch.cat([2 * u, u], 1)]))
            self.value = linear(torch.cat([u, u], 1))

        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            h = torch.tanh(self.second(torch.tanh(self.first(x))))
            return self.policy(h), self.value(h) + off * h.abs().mean()

    options = NetOptions(samples=64, outputs=("action", "invariant"))
    mixed = [NetContext(Tied(seed), mirror(), options, lambda event: None).batch_residual for seed in range(4)]
    assert all((residual is None) == (off == 0) for residual in mixed)


def test_a_network_that_mixes_its_batch_symmetrically_is_passed_and_not_proved() -> None:
    found = judged(WithTheMean())
    assert found.verdict == "passed"
    assert "batch_moves" in [note.code for note in found.notes]
    assert "a batch of three transforms as claimed" in found.detail


class ChangedUnseen(Around):
    """Hidden units are changed in place where torch tells nobody, on inputs larger than any that are tried."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = self.net[0](x)
        with torch._C.DisableTorchFunction():  # as compiled extensions do
            hidden.add_((hidden > 1e6) * torch.arange(16))
        return self.net[4](torch.relu(self.net[2](torch.relu(hidden))))


def test_what_is_changed_in_place_where_torch_tells_nobody_is_followed() -> None:
    result = run_net(ChangedUnseen(), mirror(), options=NetOptions(samples=100))
    assert result.verdict == "passed"
    why = result.method_reason.fields["why"]
    assert (why.code, why.fields["operation"]) == ("SYM197", "multiply")


@pytest.mark.parametrize(("package", "own"), [("equinox", False), ("flax", False), ("policies", True)])
def test_names_that_libraries_of_pure_functions_keep_are_no_memory_of_the_network(package, own):
    assert is_own_file(f"/usr/lib/python3/site-packages/{package}/module.py") == own
