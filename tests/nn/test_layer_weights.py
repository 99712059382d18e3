"""How coefficients become weights: both gathers agree, derivatives of derivatives, transforms, and what is kept."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable

import pytest
import torch
from torch import nn

from symcheck import groups
from symcheck import representations as reps
from symcheck.intertwiners.build import intertwiner_basis
from symcheck.nn import BasisConv2d, BasisLinear, orthogonal_
from symcheck.nn.expansion import (
    ENTRY_LIMIT,
    EntryExpansion,
    LinearExpansion,
    RowExpansion,
    SingleExpansion,
    linear_expansion,
)
from symcheck.representations.representation import Representation

C2, C3, C4, D4 = (groups.named(n) for n in ("C2", "C3", "C4", "D4"))
MIRROR = reps.signed_permutation(C2, [[-1, -1, -1, -1]])
PAIRS = [
    (MIRROR, reps.regular(C2), 1, 64),
    (reps.regular(C2), reps.sign(C2), 16, 1),
    (reps.regular(D4), reps.regular(D4), 3, 2),
    (reps.tensor(reps.regular(C2), MIRROR), MIRROR, 2, 3),
]


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(0)


def expanded(expansion: LinearExpansion, coefficients: torch.Tensor) -> torch.Tensor:
    gather, factors = expansion.constants()
    factors = None if factors is None else factors.to(coefficients)
    return expansion.to_plain(expansion.expand(coefficients, gather, factors))


@pytest.mark.parametrize(("rho_in", "rho_out", "channels_in", "channels_out"), PAIRS)
def test_gathering_entries_and_gathering_rows_make_the_same_weight(
    rho_in: Representation, rho_out: Representation, channels_in: int, channels_out: int
) -> None:
    basis = intertwiner_basis(rho_in, rho_out)
    ways = [kind(basis, channels_out, channels_in) for kind in (EntryExpansion, RowExpansion)]
    coefficients = nn.Parameter(torch.randn(ways[0].stored_shape))
    entries, rows = (expanded(way, coefficients) for way in ways)
    assert torch.equal(entries, rows)
    assert torch.equal(entries, ways[0].plain(coefficients))
    collected = torch.randn_like(entries)
    by_entry, by_row = (torch.autograd.grad(w, coefficients, collected)[0] for w in (entries, rows))
    torch.testing.assert_close(by_entry, by_row)


@pytest.mark.parametrize("rho_out", [reps.regular(C3), reps.trivial(C3)], ids=["rank 2", "rank 0"])
def test_a_single_input_channel_of_a_dense_basis_makes_the_same_weight(rho_out: Representation) -> None:
    basis = intertwiner_basis(reps.rotation(C3), rho_out)
    ways = [kind(basis, 5, 1) for kind in (SingleExpansion, RowExpansion)]
    coefficients = nn.Parameter(torch.randn(ways[0].stored_shape))
    single, rows = (expanded(way, coefficients) for way in ways)
    torch.testing.assert_close(single, rows)
    torch.testing.assert_close(single, ways[0].plain(coefficients))


def test_small_weights_are_gathered_by_entry_and_large_ones_by_row() -> None:
    basis = intertwiner_basis(reps.regular(C2), reps.regular(C2))
    channels = math.isqrt(ENTRY_LIMIT // basis.size)
    assert isinstance(linear_expansion(basis, channels, channels), EntryExpansion)
    assert isinstance(linear_expansion(basis, channels + 1, channels), RowExpansion)
    rotation = intertwiner_basis(reps.rotation(C3), reps.rotation(C3))
    assert type(linear_expansion(rotation, 1, 2)) is RowExpansion
    assert type(linear_expansion(rotation, 2, 1)) is SingleExpansion


@pytest.mark.parametrize(
    "layer",
    [
        BasisLinear(MIRROR, reps.regular(C2), 1, 2),
        BasisLinear(reps.regular(C2), reps.regular(C2), 64, 32),
        BasisLinear(reps.rotation(C3), reps.regular(C3), 2, 2, bias=False),
    ],
    ids=["entries", "rows", "dense"],
)
def test_second_derivatives_are_those_of_the_plain_layer(layer: BasisLinear) -> None:
    layer = copy.deepcopy(layer).double()
    x = torch.randn(2, *layer._in, dtype=torch.float64, requires_grad=True)
    plain = layer.materialize()

    def curvature(run: nn.Module, given: torch.Tensor) -> torch.Tensor:
        out = run(given).reshape(2, -1)
        first = torch.autograd.grad(out.tanh().square().sum(), given, create_graph=True)[0]
        return torch.autograd.grad(first.square().sum(), given)[0].reshape(2, -1)

    torch.testing.assert_close(curvature(layer, x), curvature(plain, x.detach().flatten(1).requires_grad_()))
    few = layer.weight_coefficients.numel() <= 64  # the numeric check costs one pass a number
    if few:
        torch.autograd.gradgradcheck(
            lambda c: torch.func.functional_call(layer, {"weight_coefficients": c}, (x,)),
            (layer.weight_coefficients.detach().requires_grad_(),),
        )
        assert torch.autograd.gradcheck(lambda given: layer(given).square(), (x,))


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0,), (2, 0, 3)])
@pytest.mark.parametrize("bias", [True, False])
def test_any_number_of_leading_axes_with_and_without_autograd(shape: tuple[int, ...], bias: bool) -> None:
    layer = BasisLinear(reps.regular(C4), reps.regular(C4), 3, 2, bias=bias)
    x = torch.randn(*shape, 3, 4)
    recorded = layer(x)
    assert recorded.shape == (*shape, 2, 4)
    with torch.no_grad():
        for _ in range(2):
            torch.testing.assert_close(layer(x), recorded.detach())
        strided = torch.randn(*shape, 4, 3).transpose(-1, -2)
        torch.testing.assert_close(layer(strided), layer(strided.contiguous()))


def test_one_kept_weight_serves_inputs_of_changing_shapes() -> None:
    layer = BasisLinear(reps.regular(C4), reps.regular(C4), 3, 2)
    with torch.no_grad():
        for lead in ((5,), (2,), (5,), (2, 5), ()):
            x = torch.randn(*lead, 3, 4)
            torch.testing.assert_close(layer(x).flatten(-2), layer.materialize()(x.flatten(-2)))
        with pytest.raises(Exception, match=r"expected an input of shape \(\.\.\., 3, 4\), got \(\)"):
            layer(torch.tensor(1.0))
        with pytest.raises(Exception, match=r"got \(4, 3\)"):
            layer(torch.randn(4, 3))


MOVES: dict[str, Callable[[nn.Parameter], None]] = {
    "one bit": lambda p: p.data.view(-1)[-1:].copy_(torch.nextafter(p.data.view(-1)[-1:], torch.tensor(9.0))),
    "the sign of zero": lambda p: p.data.view(-1)[:1].neg_(),
    "other memory": lambda p: setattr(p, "data", p.data.flip(0)),
    "other strides of the same memory": lambda p: setattr(p, "data", p.data.transpose(0, 2)),
}


@pytest.mark.parametrize(
    ("move", "name"),
    [(move, "weight_coefficients") for move in MOVES] + [(move, "bias_coefficients") for move in list(MOVES)[:3]],
)
def test_a_kept_weight_is_dropped_after_the_smallest_change_behind_torchs_back(move: str, name: str) -> None:
    layer = BasisLinear(reps.regular(C4), reps.regular(C4), 3, 3)
    parameter = getattr(layer, name)
    with torch.no_grad():
        parameter.normal_()
        parameter.view(-1)[0] = 0.0
        x = torch.randn(2, 3, 4)
        layer(x)
        kept = layer.keep_weight()
        assert kept is layer.keep_weight()
        version = parameter._version
        MOVES[move](parameter)
        assert parameter._version == version, "torch notices this one by itself"
        assert layer.keep_weight() is not kept
        if parameter.is_contiguous():
            torch.testing.assert_close(layer(x).flatten(1), layer.materialize()(x.flatten(1)), rtol=0, atol=1e-6)


def test_a_parametrized_coefficient_is_worked_out_in_every_pass() -> None:
    layer = BasisLinear(reps.regular(C4), reps.regular(C4), 3, 2)
    x = torch.randn(2, 3, 4)
    with torch.no_grad():
        layer(x)  # keeps the weight of the bare coefficients
        single = layer.materialize()
        nn.utils.parametrizations.weight_norm(layer, "weight_coefficients")
        layer.parametrizations.weight_coefficients.original0.mul_(2)
        layer.bias_coefficients.zero_()
        torch.testing.assert_close(layer(x).flatten(1), 2 * (single(x.flatten(1)) - single.bias))


@pytest.mark.parametrize("kept", [True, False])
def test_a_batch_of_inputs_maps_over_a_layer_with_and_without_a_kept_weight(kept: bool) -> None:
    layer = BasisLinear(reps.regular(C4), reps.regular(C4), 3, 2)
    x = torch.randn(5, 2, 3, 4)
    with torch.set_grad_enabled(not kept):
        expected = layer(x)
        torch.testing.assert_close(torch.func.vmap(layer)(x), expected)


def test_gradients_by_functional_call_are_those_by_backward() -> None:
    layer = BasisLinear(MIRROR, reps.regular(C2), 1, 3)
    x = torch.randn(5, 1, 4)
    parameters = dict(layer.named_parameters())
    given = torch.func.grad(lambda p: torch.func.functional_call(layer, p, (x,)).square().sum())(parameters)
    layer(x).square().sum().backward()
    for name, parameter in parameters.items():
        torch.testing.assert_close(given[name], parameter.grad)


@pytest.mark.parametrize(("rho_in", "channels_in", "channels_out"), [(MIRROR, 1, 3), (reps.regular(C2), 64, 64)])
def test_gradients_are_the_same_on_a_machine_that_asks_for_deterministic_operations(
    rho_in: Representation, channels_in: int, channels_out: int
) -> None:
    layer = BasisLinear(rho_in, reps.regular(C2), channels_in, channels_out)
    x = torch.randn(5, channels_in, rho_in.dim)
    (expected,) = torch.autograd.grad(layer(x).square().sum(), layer.weight_coefficients)
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True)
    try:
        (given,) = torch.autograd.grad(layer(x).square().sum(), layer.weight_coefficients)
    finally:
        torch.use_deterministic_algorithms(before)
    assert expected.abs().max() > 0
    torch.testing.assert_close(given, expected)


@pytest.mark.parametrize("channels", [2, 64])
def test_autocast_multiplies_a_kept_weight_in_half_precision_too(channels: int) -> None:
    layer = BasisLinear(reps.regular(C4), reps.regular(C4), channels, channels)
    x = torch.randn(3, channels, 4)
    with torch.no_grad():
        exact = layer(x)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            rounded = layer(x)
    assert rounded.dtype == torch.bfloat16
    torch.testing.assert_close(rounded.float(), exact, rtol=0.05, atol=0.05)  # 8 bits of mantissa


@pytest.mark.filterwarnings("ignore:`torch.jit.trace:DeprecationWarning")
def test_a_trace_taken_while_a_weight_is_kept_works_at_other_sizes() -> None:
    layer = BasisLinear(MIRROR, reps.regular(C2), 1, 3)
    x = torch.randn(5, 1, 4)
    with torch.no_grad():
        layer(x)
        traced = torch.jit.trace(layer, (x,))
        other = torch.randn(2, 1, 4)
        torch.testing.assert_close(traced(other), layer(other))


def test_a_convolution_drops_its_kept_filter_likewise() -> None:
    layer = BasisConv2d(reps.trivial(C4), reps.regular(C4), 1, 2, 3, spatial=["rot90"])
    x = torch.randn(1, 1, 1, 5, 5)
    with torch.no_grad():
        layer(x)
        layer.weight_coefficients.data.view(-1)[-1:].add_(1.0)
        torch.testing.assert_close(layer(x).flatten(1, 2), layer.materialize()(x.flatten(1, 2)))


@pytest.mark.parametrize(
    ("rho_in", "rho_out", "reached"),
    [
        (reps.regular(D4), reps.regular(D4), 24),
        (reps.regular(C4), reps.trivial(C4), 3),
        (reps.natural(D4), reps.regular(D4), 12),
        (reps.sign(D4), reps.natural(D4), 0),
    ],
    ids=["all", "mean", "corners", "nothing"],
)
def test_every_direction_is_lengthened_by_the_gain_or_lost(
    rho_in: Representation, rho_out: Representation, reached: int
) -> None:
    layer = orthogonal_(BasisLinear(rho_in, rho_out, 3, 4), 2.0, generator=torch.Generator().manual_seed(0))
    values = torch.linalg.svdvals(layer.materialize().weight.double())
    expected = torch.where(torch.arange(len(values)) < reached, 2.0, 0.0).double()
    # float32 weights of size one
    torch.testing.assert_close(values, expected, rtol=0, atol=1e-5)
