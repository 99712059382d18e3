"""Networks proved by comparing the graphs of f(Lx) and K f(x): what is inside an average does not matter."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
import pytest
import torch
from certificate_mutants import is_certified, why_not_certified
from torch import Tensor, nn
from torch.distributions import Normal
from tricky_networks import CLAIM, SWAP

from symcheck.engine.networks.capture.batch_axis import why_samples_meet
from symcheck.engine.networks.capture.capture import capture_network
from symcheck.engine.networks.capture.gate import capture_every_call
from symcheck.engine.networks.graph.interpreter import follow
from symcheck.engine.networks.graph.nodes import NoCertificateError
from symcheck.engine.networks.options import NetOptions
from symcheck.engine.networks.runner import run_net
from symcheck.engine.networks.subject.claims import InputClaim, OutputClaim
from symcheck.engine.networks.subject.values import Opaque, SignedPermutation

FEW = NetOptions(samples=32)
PAIR = [1, 0]


def permutation(images: list[int]) -> SignedPermutation:
    """From one-based images with signs."""
    return SignedPermutation.from_signed_images(images)


SWAPPED = InputClaim((4,), (permutation([2, 1, 4, 3]),))
EXCHANGED = (OutputClaim("output", "action", 2, (permutation([2, 1]),)),)


class Inner(nn.Module):
    """A network without any symmetry, with a normalisation, a sort and a softmax inside."""

    def __init__(self, outputs: int = 2) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(3)
        self.first, self.norm, self.last = nn.Linear(4, 6), nn.LayerNorm(6), nn.Linear(6, outputs)
        for parameter in self.parameters():
            parameter.data = torch.randn(parameter.shape, generator=generator)

    def forward(self, x: Tensor) -> Tensor:
        hidden = torch.nn.functional.silu(self.norm(self.first(x)))
        y: Tensor = self.last(hidden.sort(-1).values.softmax(-1))
        return y


class Smooth(nn.Module):
    """A network whose units are equal on no region."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2))

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)


class Net(nn.Module):
    """A function of an input and of a network inside."""

    def __init__(self, function: Callable[[nn.Module, Tensor], Tensor], inner: nn.Module | None = None) -> None:
        super().__init__()
        self.inner = Inner() if inner is None else inner
        self.function = function
        self.register_buffer("swap", torch.eye(4)[SWAP])
        self.register_buffer("exchange", torch.eye(2)[PAIR])

    def forward(self, x: Tensor) -> Tensor:
        return self.function(self, x)


def same_graph(function: Callable[[nn.Module, Tensor], Tensor], inner: nn.Module | None = None) -> bool:
    """Whether the comparison shows it, of a graph that treats samples alike and apart."""
    captured = capture_network(Net(function, inner).double().eval(), (4,))
    if why_samples_meet(captured) is not None:
        return False
    return is_certified(captured, SWAPPED, EXCHANGED)


def stacked(net: nn.Module, x: Tensor) -> Tensor:
    y = net.inner(torch.stack([x, x[:, SWAP]], 1))
    return torch.stack([y[:, 0], y[:, 1, PAIR]]).mean(0)


def joined(net: nn.Module, x: Tensor) -> Tensor:
    straight, turned = net.inner(torch.cat([x, x[:, SWAP]])).chunk(2)
    return (straight + turned.flip(1)) / 2


def written(net: nn.Module, x: Tensor) -> Tensor:
    y, z = net.inner(x), net.inner(x[:, SWAP])
    out = torch.empty_like(y)
    out[:, 0], out[:, 1] = y[:, 0] + z[:, 1], y[:, 1] + z[:, 0]
    return out


def tied(net: nn.Module, x: Tensor) -> Tensor:
    return torch.cat([net.inner(x)[:, :1], net.inner(x[:, SWAP])[:, :1]], 1)


AVERAGES: dict[str, Callable[[nn.Module, Tensor], Tensor]] = {
    "half a sum": lambda net, x: 0.5 * (net.inner(x) + net.inner(x[:, SWAP]).flip(1)),
    "matrices": lambda net, x: torch.stack([net.inner(x), net.inner(x @ net.swap.T) @ net.exchange]).mean(0),
    "an axis of elements": stacked,
    "batches behind each other": joined,
    "written entry by entry": written,
    "tied copies": tied,
    "the largest": lambda net, x: torch.maximum(net.inner(x), net.inner(x[:, SWAP]).flip(1)),
    "mapped": lambda net, x: torch.vmap(lambda row: net.inner.first(row) + net.inner.first(row[SWAP]).roll(3))(x)[
        :, [0, 3]
    ],
    "a distribution": lambda net, x: torch.distributions.Normal(tied(net, x), tied(net, x).exp()).mean,
    "a sum by places": lambda net, x: torch.zeros_like(x[:, :2]).index_add(
        1, torch.tensor([0, 1, 1, 0]), torch.cat([net.inner(x), net.inner(x[:, SWAP])], 1)
    ),
}
INSIDE: dict[str, Callable[[nn.Module, Tensor], Tensor]] = {
    "where entries are after sorting": lambda net, x: net.inner(x.sort(1).values) * x.argsort(1)[:, :2],
    "a mixture of experts": lambda net, x: net.inner(x).gather(1, net.inner(x).topk(2, 1).indices),
    "a table of classes": lambda net, x: net.table(torch.bucketize(x, torch.tensor([-1.0, 0.5]).double())).sum(1),
    "the most likely": lambda net, x: net.inner(x) * net.inner(x).argmax(1, keepdim=True),
    "a special function": lambda net, x: torch.special.i0e(net.inner(x)),
    "places from the input": lambda net, x: torch.zeros_like(x).scatter(1, x.argsort(1), x.tanh())[:, :2],
    "a bilinear form": lambda net, x: net.form(x, x),
    "a turned board": lambda net, x: net.inner(torch.rot90(x.reshape(-1, 2, 2), 1, (1, 2)).reshape(-1, 4)),
    "rows of a table": lambda net, x: x.new_zeros(x.shape[0], 2).scatter_reduce(
        1, torch.tensor([0, 1, 1, 0]).expand(x.shape[0], 4), x.exp(), "amax"),
    "probabilities": lambda net, x: torch.distributions.Categorical(probs=net.inner(x).softmax(1)).probs,
    "a root of a positive number": lambda net, x: Normal(net.inner(x), x[:, :2].exp().sqrt()).stddev,
    "a scale above zero": lambda net, x: Normal(x[:, :2], nn.functional.elu(net.inner(x)) + 1).scale,
}  # fmt: skip


class Parts(nn.Module):
    """What the functions above are made of."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.inner, self.table, self.form = nn.Linear(4, 2), nn.Embedding(3, 2), nn.Bilinear(4, 4, 2)


@pytest.mark.parametrize("name", INSIDE)
def test_an_average_over_operators_without_a_rule_is_shown_and_one_fault_beside_it_is_not(name: str) -> None:
    parts, function = Parts(), INSIDE[name]

    def average_with(off: float) -> Callable[[nn.Module, Tensor], Tensor]:
        return lambda net, x: function(net.inner, x) + function(net.inner, x[:, SWAP]).flip(1) + off * x[:, :1]

    assert same_graph(average_with(0.0), parts)
    assert not same_graph(average_with(1e-9), parts)


def test_another_constant_inside_is_another_function() -> None:
    def split(at: float) -> Callable[[nn.Module, Tensor], Tensor]:
        def function(net: nn.Module, x: Tensor) -> Tensor:
            classes = [torch.bucketize(z, torch.tensor([b]).double()) for z, b in ((x, 0.5), (x[:, SWAP], at))]
            return torch.cat([classes[0].sum(1, keepdim=True), classes[1].sum(1, keepdim=True)], 1) * 1.0

        return function

    assert not same_graph(split(0.25))


def test_a_scale_that_may_be_zero_or_negative_is_no_positive_one() -> None:
    for scale in (
        lambda y: y.relu(),
        lambda y: nn.functional.elu(y) + 0.99,
        lambda y: y.abs(),
        lambda y: y.tanh() + 1e-3,
    ):
        net = Net(lambda net, x, scale=scale: torch.distributions.Normal(x[:, :2], scale(tied(net, x))).scale)
        captured = capture_network(net.double().eval(), (4,))
        with pytest.raises(NoCertificateError):
            follow(captured, (4,))


FAULTS: dict[str, Callable[[nn.Module, Tensor], Tensor]] = {
    "an offset": lambda net, x: AVERAGES["half a sum"](net, x) + torch.tensor([1e-7, 0.0]),
    "another weight": lambda net, x: 0.5 * net.inner(x) + (0.5 + 1e-12) * net.inner(x[:, SWAP]).flip(1),
    "actions that are not exchanged": lambda net, x: net.inner(x) + net.inner(x[:, SWAP]),
    "another element": lambda net, x: net.inner(x) + net.inner(x[:, [2, 3, 0, 1]]).flip(1),
    "a missing element": lambda net, x: net.inner(x) + net.inner(x).flip(1),
    "one branch that is not averaged": lambda net, x: AVERAGES["half a sum"](net, x) + 1e-9 * net.inner(x),
    "a copy with a sign": lambda net, x: torch.cat([net.inner(x)[:, :1], -net.inner(x[:, SWAP])[:, :1]], 1),
    "a copy of another output": lambda net, x: torch.cat([net.inner(x)[:, :1], net.inner(x[:, SWAP])[:, 1:]], 1),
    "a difference": lambda net, x: net.inner(x) - net.inner(x[:, SWAP]).flip(1),
    "memory that was never written": lambda net, x: torch.empty_like(x)[:, :2] + tied(net, x),
    "batches in another order": lambda net, x: net.inner(torch.cat([x, x[:, SWAP]]))[::2].flip(1),
}  # fmt: skip


@pytest.mark.parametrize("name", AVERAGES)
def test_an_average_or_a_tied_copy_is_shown_whatever_is_inside(name: str) -> None:
    assert same_graph(AVERAGES[name])


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_outside_of_the_average_is_not_shown(name: str) -> None:
    assert not same_graph(FAULTS[name])


def test_an_average_is_proved_and_one_with_a_fault_fails() -> None:
    result = run_net(Net(AVERAGES["half a sum"]), CLAIM, options=FEW)
    assert result.verdict == "proved"
    assert result.method_reason is not None
    assert result.method_reason.code == "method_compared"
    faulty = Net(lambda net, x: AVERAGES["half a sum"](net, x) + torch.tensor([1e-3, 0.0]))
    assert run_net(faulty, CLAIM, options=FEW).verdict == "failed"


@pytest.mark.long
def test_an_average_over_four_turns_holds_in_any_order_and_not_without_one() -> None:
    turn, count = permutation([2, 3, 4, 1]), 4
    claim = InputClaim((4,), (turn,))
    invariant = (OutputClaim("output", "invariant", 2, (permutation([1, 2]),)),)

    def summed(shifts: list[int]) -> bool:
        net = Net(lambda net, x: sum(net.inner(x.roll(k, 1)) for k in shifts)).double()  # type: ignore[arg-type,return-value]
        return is_certified(capture_network(net, (4,)), claim, invariant)

    assert summed(list(range(count)))
    assert summed([2, 0, 3, 1])
    assert not summed([0, 1, 2])
    assert not summed([0, 1, 2, 2])


def test_a_check_of_arguments_that_may_fail_ends_the_proof() -> None:
    def checked(net: nn.Module, x: Tensor) -> Tensor:
        try:
            torch.distributions.Normal(x, net.inner(x)[:, :1] + 1e3)  # positive, but not for every input
        except ValueError:
            return net.inner(x)
        return tied(net, x)

    assert not same_graph(checked)
    net = Net(AVERAGES["a distribution"]).double().eval()
    captured = capture_every_call(net, None, (4,), 0, alone=False)
    assert not isinstance(captured, Opaque)
    assert captured.assumptions == 2  # checks of both parameters, which are left for the certificate to show


def canonical(net: nn.Module, x: Tensor) -> Tensor:
    return torch.where(x[:, :1] > x[:, 1:2], net.inner(x), net.inner(x[:, SWAP]).flip(1))


def test_a_canonical_form_names_the_inputs_on_which_it_may_break() -> None:
    captured = capture_network(Net(canonical).double(), (4,))
    refusal = why_not_certified(captured, SWAPPED, EXCHANGED)
    assert refusal is not None
    assert refusal.ties == ("x[0] = x[1]",)
    result = run_net(Net(canonical), CLAIM, options=FEW)
    assert result.verdict != "proved"
    assert any(note.code == "off_ties" for item in result.properties for note in item.notes)


READS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "rows by number": lambda table, place: table[torch.arange(table.shape[0]), place],
    "gathered": lambda table, place: table.gather(1, place[:, None, None].expand(-1, 1, 2))[:, 0],
    "one-hot": lambda table, place: (torch.nn.functional.one_hot(place, 3)[:, :, None] * table).sum(1),
}


@pytest.mark.parametrize("read", READS)
def test_what_is_read_at_the_place_of_the_largest_invariant_is_followed(read: str) -> None:
    def read_by(key: Callable[[Tensor], Tensor]) -> Callable[[nn.Module, Tensor], Tensor]:
        def forward(net: nn.Module, x: Tensor) -> Tensor:
            y = tied(net, x)
            place = torch.stack([y.sum(1), key(y), y.prod(1)], 1).argmax(1)
            return READS[read](torch.stack([y, y.tanh(), y**2], 1), place)

        return forward

    assert same_graph(read_by(lambda y: (y * y).sum(1)))
    assert not same_graph(read_by(lambda y: y[:, 0]))


def test_a_choice_between_entries_that_the_action_exchanges_names_its_ties() -> None:
    def by_input(net: nn.Module, x: Tensor) -> Tensor:
        first = (x[:, :2].argmax(1) == 0)[:, None]
        return torch.where(first, net.inner(x), net.inner(x[:, SWAP]).flip(1))

    def by_score(net: nn.Module, x: Tensor) -> Tensor:
        return torch.nn.functional.one_hot(tied(net, x.tanh()).tanh().argmin(1), 2).double()

    ties = {"x[0] = x[1]": by_input, "two compared entries are equal": by_score}
    for tie, forward in ties.items():
        refusal = why_not_certified(capture_network(Net(forward, Smooth()).double(), (4,)), SWAPPED, EXCHANGED)
        assert refusal is not None
        assert refusal.ties == (tie,)


def test_forces_of_an_energy_are_followed_through_the_gradient() -> None:
    def forces(net: nn.Module, x: Tensor, offset: float = 0.0) -> Tensor:
        with torch.enable_grad():
            at = x.detach().requires_grad_()
            energy = net.inner(at).sum() + net.inner(at[:, SWAP]).sum() + offset * at[:, 0].sum()
            (slope,) = torch.autograd.grad(energy, at, create_graph=True)
        return slope[:, :2]

    assert same_graph(forces, Smooth())
    assert not same_graph(functools.partial(forces, offset=1.0), Smooth())


def test_units_that_are_equal_on_whole_regions_are_no_ties() -> None:
    def by_units(net: nn.Module, x: Tensor) -> Tensor:
        first = x[:, :1].relu() > x[:, 1:2].relu()
        return torch.where(first, net.inner(x), net.inner(x[:, SWAP]).flip(1))

    refusal = why_not_certified(capture_network(Net(by_units).double(), (4,)), SWAPPED, EXCHANGED)
    assert refusal is not None
    assert not refusal.ties


def test_units_in_another_order_are_the_same_sum_and_one_weight_off_is_another() -> None:
    order = np.random.default_rng(0).permutation(6)

    def reordered(off: float) -> bool:
        inner = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 1))
        twin = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 1))
        twin[0].weight.data, twin[0].bias.data = inner[0].weight.data[order], inner[0].bias.data[order]
        twin[2].weight.data, twin[2].bias.data = inner[2].weight.data[:, order], inner[2].bias.data
        twin[2].weight.data = twin[2].weight.data.double()
        twin[2].weight.data[0, 2] += off
        both = nn.ModuleList([inner, twin]).double()
        return same_graph(lambda net, x: torch.cat([net.inner[0](x), net.inner[1](x[:, SWAP])], 1), both)

    assert reordered(0.0)
    assert not reordered(1e-9)


@pytest.mark.parametrize(
    ("squash", "tie"),
    [(lambda x: x, "x[0] = x[1]"), (torch.tanh, "two compared entries are equal")],
    ids=["input", "unit"],
)
def test_a_comparison_of_two_inputs_names_them_where_they_tie(squash: Callable[[Tensor], Tensor], tie: str) -> None:
    def by_halves(net: nn.Module, x: Tensor) -> Tensor:
        return torch.where(x[:, :1] > squash(x[:, 1:2]), net.inner(x), -net.inner(-x))

    negated = InputClaim((4,), (permutation([-1, -2, -3, -4]),))
    odd = (OutputClaim("output", "action", 2, (permutation([-1, -2]),)),)
    refusal = why_not_certified(capture_network(Net(by_halves).double(), (4,)), negated, odd)
    assert refusal is not None
    assert refusal.ties == (tie,)
