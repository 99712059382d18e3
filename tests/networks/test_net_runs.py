"""A run reports what it did: events, the chain of layers, interruption, and nothing that it did not see."""

from __future__ import annotations

import pytest
import torch
from net_catalogue import GridNet, Lambda, mirror, mirror_mlp, turn
from torch import nn

from symcheck.engine.events import Event, PropertyFinished, PropertyStarted, RunFinished, RunStarted
from symcheck.engine.networks.options import NetOptions
from symcheck.engine.networks.runner import run_net


def test_events_come_in_order_and_end_with_the_result() -> None:
    seen: list[Event] = []
    result = run_net(mirror_mlp(), mirror(), emit=seen.append)
    assert isinstance(seen[0], RunStarted)
    assert seen[-1] == RunFinished(result)
    started = [event.name for event in seen if isinstance(event, PropertyStarted)]
    finished = [event.result.name for event in seen if isinstance(event, PropertyFinished)]
    assert started == finished == [p.name for p in result.properties]
    assert started == ["group_axioms", "representation_propagation", "layer_certificate", "network_equivariance"]


def test_an_interrupt_keeps_what_was_finished_and_leaves_the_rest_undecided() -> None:
    def impatient(event: Event) -> None:
        if event == PropertyStarted("layer_certificate"):
            raise KeyboardInterrupt

    result = run_net(mirror_mlp(), mirror(), emit=impatient)
    verdicts = {p.name: p.verdict for p in result.properties}
    assert result.interrupted
    assert result.verdict == "undecided"
    assert verdicts["group_axioms"] == "proved"
    assert verdicts["layer_certificate"] == verdicts["network_equivariance"] == "undecided"
    reasons = [p.reason for p in result.properties if p.verdict == "undecided"]
    assert [reason.code for reason in reasons if reason is not None] == ["interrupted"] * 2
    assert result.method_reason.code == "method_interrupted"


def test_the_chain_of_layers_says_how_each_of_them_is_moved() -> None:
    result = run_net(GridNet(), turn(), options=NetOptions(input_shape=(1, 21, 21), samples=100))
    assert [layer["name"] for layer in result.layers] == ["conv1", "conv2", "hidden", "policy", "value"]
    assert "rot90" in result.layers[0]["representation"]
    assert result.layers[0]["source"].startswith("net_catalogue.py:")
    assert result.to_dict()["layers"][0]["residual"] == 0.0


def test_what_was_not_followed_is_named_with_its_line() -> None:
    net = Lambda(lambda x, n: torch.logcumsumexp(n(x), -1).flip(-1), mirror_mlp())
    result = run_net(net, mirror())
    fields = result.method_reason.fields
    assert result.method_reason.code == "method_not_followed"
    assert fields["why"].fields["operation"] == "logcumsumexp"
    assert "test_net_runs.py:" in fields["source"]
    assert "logcumsumexp is not an operator that certificates support" in str(result.method_reason)


def test_a_wrong_weight_of_a_dead_unit_changes_nothing_and_is_mentioned() -> None:
    net = mirror_mlp()
    with torch.no_grad():
        other = int((net[0].weight + net[0].weight[5]).abs().sum(1).argmin())
        net[2].weight[:, [5, other]] = 0.0
        net[0].weight[5, 0] *= 1.001
    result = run_net(net, mirror())
    found = result.properties[-1]
    assert result.verdict == "proved"
    cause = found.causes[0]
    assert (cause.code, cause.fields["layer"]) == ("SYM138", "0")
    assert cause.fields["units"]
    assert "layer 0: unit" in str(cause)
    assert "no output violates the claim on the" in found.detail
    assert [layer["verdict"] for layer in result.layers] == ["undecided", "proved", "proved"]


def test_a_unit_that_fires_on_one_input_in_a_hundred_thousand_is_caught() -> None:
    net = mirror_mlp()
    with torch.no_grad():
        other = int((net[0].weight + net[0].weight[5]).abs().sum(1).argmin())
        net[0].bias[[5, other]] = -100.0
        net[2].weight[3, 5] *= 1.1
    assert run_net(net, mirror()).verdict == "failed"


class Hidden(nn.Module):
    """Answers with a symmetric network when gradients are on, and with another when they are off."""

    def __init__(self) -> None:
        super().__init__()
        self.shown = mirror_mlp()
        torch.manual_seed(0)
        self.used = nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.shown(x) if torch.is_grad_enabled() else self.used(x)


class TwoFaced(nn.Module):
    """Counts its own calls and turns asymmetric after some."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = mirror_mlp()
        self.calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        y = self.inner(x)
        return y if self.calls < 8 else y + torch.tensor([1.0, 0.0], dtype=y.dtype)


@pytest.mark.parametrize("net", [Hidden, TwoFaced])
def test_a_network_that_behaves_otherwise_when_watched_is_not_proved(net: type[nn.Module]) -> None:
    assert run_net(net(), mirror()).verdict in ("failed", "undecided")


class SingleOnly(nn.Module):
    """Refuses inputs of another precision than float32."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = mirror_mlp()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.element_size() != 4:
            raise TypeError("float32 only")
        return self.inner(x)


def test_a_network_without_a_float64_copy_is_judged_as_deployed() -> None:
    result = run_net(SingleOnly(), mirror())
    assert result.verdict == "passed"
    assert result.method_reason.code == "method_coarse"
    assert "no float64 copy" in str(result.method_reason)
    torch.manual_seed(0)
    bad = SingleOnly()
    bad.inner = nn.Linear(4, 2)
    assert run_net(bad, mirror()).verdict == "failed"


class Hooked(nn.Module):
    """A forward hook that spoils one unit."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = mirror_mlp()
        self.inner[2].register_forward_hook(lambda module, inputs, output: output * torch.linspace(1, 2, 64).to(output))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x)


def test_a_hook_that_breaks_the_symmetry_is_seen() -> None:
    result = run_net(Hooked(), mirror())
    assert result.verdict == "failed"


class Overridden(nn.Linear):
    """A linear layer whose forward is its own."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x) + torch.arange(64, dtype=x.dtype)


def test_a_subclass_with_a_forward_of_its_own_is_not_taken_for_its_base() -> None:
    net = mirror_mlp()
    layer = Overridden(4, 64)
    layer.load_state_dict(net[0].state_dict())
    net[0] = layer
    assert run_net(net, mirror()).verdict == "failed"


def test_in_place_changes_of_a_value_used_elsewhere_end_the_proof() -> None:
    def inplace(x: torch.Tensor, net: nn.Module) -> torch.Tensor:
        hidden = net[0](x)
        seen = hidden.view(-1, 64)
        seen[:, 0] = 0.0
        return net[4](torch.relu(net[2](torch.relu(hidden))))

    result = run_net(Lambda(inplace, mirror_mlp()), mirror())
    assert result.verdict == "failed"


def test_a_script_inside_a_network_is_not_taken_for_a_constant() -> None:
    class Scripted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = mirror_mlp()
            self.offset = lambda x: torch.from_numpy(x.detach().double().numpy().copy())

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.inner(x) + self.offset(x)[:, :1] * torch.tensor([1.0, 0.0]).to(x)

    assert run_net(Scripted(), mirror()).verdict == "failed"


class Scaled(nn.Module):
    """A network whose outputs are multiplied by one number that is drawn."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = mirror_mlp(16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x) * (1 + 0.1 * torch.rand(1, dtype=x.dtype))


def test_paired_noise_that_keeps_the_symmetry_passes_and_is_never_proved() -> None:
    assert run_net(Scaled(), mirror(), options=NetOptions(samples=64, noise_seed=1)).verdict == "passed"
    assert run_net(Scaled(), mirror(), options=NetOptions(samples=64)).verdict == "undecided"


def test_a_cast_to_the_whole_numbers_of_another_tensor_is_no_change_of_precision() -> None:
    def rounded(x: torch.Tensor, net: nn.Module) -> torch.Tensor:
        return net(x.to(tensor=torch.zeros(1, dtype=torch.int64)).to(net[0].weight.dtype))

    def bounded(x: torch.Tensor, net: nn.Module) -> torch.Tensor:
        return rounded(x.clamp(-1e9, 1e9), net)

    few = NetOptions(samples=64)
    assert run_net(Lambda(bounded, mirror_mlp(16)), mirror(), options=few).verdict == "proved"
    # numbers beyond the longest whole number, and their images, become the same one
    assert run_net(Lambda(rounded, mirror_mlp(16)), mirror(), options=few).verdict == "passed"
