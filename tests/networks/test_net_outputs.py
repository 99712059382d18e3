"""Outputs of every structure and role are compared with their own action."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from net_catalogue import Draw, GridNet, Lambda, linear, mirror, mirror_mlp, turn
from torch import nn

from symcheck.engine.networks.options import NetOptions
from symcheck.engine.networks.runner import run_net
from symcheck.errors import TargetError
from symcheck.groups import catalog
from symcheck.representations import signed_permutation
from symcheck.symmetry.symmetry import Symmetry


def reacher() -> Symmetry:
    """Four numbers negated; two continuous actions exchanged, one of them with a sign."""
    return Symmetry("arms", catalog.cyclic(4), observation=[["+2", "-1", "+4", "-3"]], action=[["+2", "-1"]])


def continuous() -> nn.Module:
    """Means W x with K W = W L, for L and K the same turn of two pairs and one pair; deviations exp(b), constant."""
    draw = Draw(0)
    a, b, c, d = (draw(1).item() for _ in range(4))
    first = torch.tensor([[a, -b, c, -d], [b, a, d, c]])
    return linear(first)


def test_a_continuous_mean_moves_with_its_signed_representation() -> None:
    assert run_net(continuous(), reacher()).verdict == "proved"


def test_deviations_forget_the_signs() -> None:
    net = Lambda(lambda x, n: (n(x), n(x).abs()), continuous())
    good = run_net(net, reacher(), options=NetOptions(outputs=("action", "action_scale")))
    assert good.verdict == "proved"
    assert run_net(net, reacher(), options=NetOptions(outputs=("action", "action"))).verdict == "failed"


def test_a_log_deviation_that_is_a_parameter_counts_although_it_is_constant() -> None:
    class Agent(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.mean = continuous()
            self.log_std = nn.Parameter(torch.zeros(2))

        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            mean = self.mean(x)
            return mean, self.log_std.expand_as(mean)

    agent = Agent()
    # beside a mean, what is the same for every input is taken for its deviations
    for options in (NetOptions(outputs=("action", "action_scale"), samples=64), NetOptions(samples=64)):
        result = run_net(agent, reacher(), options=options)
        assert result.verdict == "proved"
        with torch.no_grad():
            agent.log_std[0] = 1.0
        failed = run_net(agent, reacher(), options=options)
        assert failed.verdict == "failed"
        causes = next(item.causes for item in failed.properties if item.name == "network_equivariance")
        assert causes[0].code == "SYM133"
        assert "argmax" not in str(failed.properties[-1].notes)
        with torch.no_grad():
            agent.log_std[0] = 0.0


def test_a_predicted_observation_moves_as_observations_do() -> None:
    net = linear(torch.eye(4) * 0.5)
    assert run_net(net, reacher(), options=NetOptions(outputs=("observation",))).verdict == "proved"


def test_a_predicted_image_moves_at_its_own_size() -> None:
    draw = Draw(1)
    w = draw(1, 1, 1, 1).expand(1, 1, 3, 3).clone()
    layer = nn.Conv2d(1, 1, 3, bias=False)
    layer.weight = nn.Parameter(w)
    options = NetOptions(outputs=("observation",), input_shape=(1, 9, 9), samples=200)
    assert run_net(layer, turn(), options=options).verdict == "proved"


def test_entries_and_representations_may_be_given_per_output() -> None:
    two = Lambda(lambda x, n: n(x).flip(-1), mirror_mlp())
    group = mirror().group
    swap = signed_permutation(group, [[2, 1]])
    for given in ([[1, 0]], swap):
        assert run_net(two, mirror(), options=NetOptions(outputs=(given,))).verdict == "proved"


@pytest.mark.parametrize(
    "wrap",
    [
        lambda x, n: {"logits": n(x)[0], "value": n(x)[1]},
        lambda x, n: [n(x)[0], (n(x)[1],)],
        lambda x, n: (n(x)[0], n(x)[1].squeeze(-1)),
        lambda x, n: (n(x)[0].unsqueeze(1), n(x)[1], None),
    ],
    ids=["dictionary", "nested", "squeezed", "with a gap"],
)
def test_structures_of_outputs_are_flattened(wrap: Callable[..., object]) -> None:
    assert run_net(Lambda(wrap, mirror_mlp(value=True)), mirror()).verdict == "proved"


def test_masked_actions_compare_as_equal_infinities() -> None:
    def masked(x: torch.Tensor, net: nn.Module) -> torch.Tensor:
        y = net(x)
        return torch.cat([y, torch.full_like(y[:, :1], float("-inf"))], -1)

    symmetry = Symmetry("mirror", catalog.cyclic(2), observation=[[-1] * 4], action=[[1, 0, 2]])
    assert run_net(Lambda(masked, mirror_mlp()), symmetry).verdict in ("passed", "proved")


def test_a_state_dependent_action_map_is_tested_on_every_input() -> None:
    def swap_if_moving(action: int, obs: object) -> int:
        return 1 - action

    symmetry = Symmetry("mirror", catalog.cyclic(2), observation=[[-1] * 4], action=[swap_if_moving])
    result = run_net(mirror_mlp(), symmetry, options=NetOptions(samples=200))
    assert result.verdict == "passed"
    assert run_net(nn.Linear(4, 2), symmetry, options=NetOptions(samples=200)).verdict == "failed"


def test_a_norm_of_vectors_is_judged_in_train_mode_too() -> None:
    shared = mirror_mlp(between=nn.BatchNorm1d)
    torch.manual_seed(0)
    plain = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 2))
    assert run_net(shared, mirror(), options=NetOptions(mode="train", samples=200)).verdict == "passed"
    assert run_net(plain, mirror(), options=NetOptions(mode="train", samples=200)).verdict == "failed"


def test_train_mode_is_judged_on_request() -> None:
    result = run_net(
        GridNet(middle=nn.BatchNorm2d(16)),
        turn(),
        options=NetOptions(mode="train", input_shape=(1, 21, 21), samples=200),
    )
    assert result.verdict == "passed"


def test_an_output_of_whole_numbers_is_never_proved_in_passing() -> None:
    class Both(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = mirror_mlp()

        def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
            return {"logits": self.net(x), "action": torch.zeros(len(x), 1, dtype=torch.int64)}

    result = run_net(Both(), mirror(), options=NetOptions(samples=100))
    found = next(item for item in result.properties if item.name == "network_equivariance")
    assert result.verdict == found.verdict == "undecided"
    assert found.method == "sampled"
    assert found.bound is None
    assert found.reason is not None
    assert found.reason.code == "not_judged"
    assert found.reason.fields["outputs"] == {"output['action']": "int64"}
    assert "output['action'] (int64)" in found.detail


def test_a_network_of_whole_numbers_alone_is_told_which() -> None:
    class Choice(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x[:, :2].argmax(1)

    with pytest.raises(TargetError, match=r"real numbers; .*torch\.int64"):
        run_net(Choice(), mirror(), options=NetOptions(samples=100))
