"""Equivariant layers: the law at both precisions, after everything that is done to networks; and refusals."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from symcheck import groups
from symcheck import representations as reps
from symcheck.errors import SymcheckError
from symcheck.nn import (
    BasisConv2d,
    BasisLinear,
    EquivariantHeads,
    EquivariantSequential,
    FlattenPixels,
    GatedNonlinearity,
    GlobalAveragePool,
    GlobalMaxPool,
    MergeChannels,
    NormNonlinearity,
    PointwiseNonlinearity,
    SplitChannels,
    to_dense,
)
from symcheck.nn.field_type import FieldType
from symcheck.representations.representation import Representation

C2, C3, C4, D4, S3 = (groups.named(n) for n in ("C2", "C3", "C4", "D4", "S3"))
MIRROR = reps.signed_permutation(C2, [[-1, -1, -1, -1]])
SWAP = reps.permutation(C2, [[1, 0]])
COMPASS = reps.permutation(C4, [[0, 2, 3, 4, 1]])
ROT90 = ["rot90"]


def cart_pole() -> EquivariantHeads:
    hidden = reps.regular(C2)
    body = EquivariantSequential(
        BasisLinear(MIRROR, hidden, 1, 64),
        nn.ReLU(),
        BasisLinear(hidden, hidden, 64, 64),
        PointwiseNonlinearity(hidden, "relu"),
    )
    return EquivariantHeads(
        body, {"action": BasisLinear(hidden, SWAP, 64, 1), "value": BasisLinear(hidden, reps.trivial(C2), 64, 1)}
    )


def grid_world() -> EquivariantHeads:
    one, four = reps.trivial(C4), reps.regular(C4)
    body = EquivariantSequential(
        SplitChannels(one, 1, spatial=ROT90),
        BasisConv2d(one, four, 1, 8, 7, spatial=ROT90, stride=2),
        nn.ReLU(),
        BasisConv2d(four, four, 8, 16, 5, spatial=ROT90),
        nn.ReLU(),
        GlobalMaxPool(four),
        BasisLinear(four, four, 16, 32, init="he"),
        nn.ReLU(),
        input_size=(21, 21),
    )
    action = EquivariantSequential(BasisLinear(four, COMPASS, 32, 1), MergeChannels())
    value = EquivariantSequential(BasisLinear(four, one, 32, 1), MergeChannels())
    return EquivariantHeads(body, {"action": action, "value": value})


def act(rho: Representation, x: Tensor, axis: int, g: int = 0, spatial: str | None = None) -> Tensor:
    """rho of generator g on an axis, and the spatial operator on the last two."""
    matrix = torch.as_tensor(np.asarray(rho.matrix(rho.group.generators[g]), dtype=float)).to(x)
    moved = torch.tensordot(x, matrix, dims=([axis], [1])).movedim(-1, axis)
    operators: dict[str, Callable[[Tensor], Tensor]] = {
        "rot90": lambda t: torch.rot90(t, 1, (-2, -1)),
        "flip_lr": lambda t: t.flip(-1),
        "flip_ud": lambda t: t.flip(-2),
        "transpose": lambda t: t.transpose(-2, -1),
    }
    return moved if spatial is None else operators[spatial](moved)


PRECISIONS = [(torch.float32, 2e-6), (torch.float64, 4e-15)]
"""Residual over output scale: sums of up to a few hundred products, 16 ulp of each dtype."""
MATRIX3 = reps.rotation(C3)
LINEAR = [
    (MIRROR, reps.regular(C2)),
    (reps.regular(C4), COMPASS),
    (reps.regular(D4), reps.standard(D4)),
    (MATRIX3, reps.regular(C3)),
    (reps.tensor(reps.natural(S3), reps.natural(S3)), reps.standard(S3)),
    (MIRROR, reps.trivial(C2)),
    (MATRIX3, reps.trivial(C3, 2)),
]


def residual(given: Tensor, expected: Tensor) -> float:
    difference = (given - expected).detach().abs().max()
    return float(difference / expected.detach().abs().max().clamp_min(1))


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(0)


def with_bias(layer: nn.Module) -> nn.Module:
    for name, parameter in layer.named_parameters():
        if "bias" in name:
            nn.init.normal_(parameter)
    return layer


@pytest.mark.parametrize(("dtype", "tolerance"), PRECISIONS)
@pytest.mark.parametrize(("rho_in", "rho_out"), LINEAR, ids=lambda rho: rho.name)
def test_a_linear_layer_is_equivariant_whatever_its_coefficients(
    rho_in: Representation, rho_out: Representation, dtype: torch.dtype, tolerance: float
) -> None:
    layer = with_bias(BasisLinear(rho_in, rho_out, 3, 5)).to(dtype)
    x = torch.randn(7, 3, rho_in.dim, dtype=dtype)
    for g in range(len(rho_in.group.generators)):
        assert residual(layer(act(rho_in, x, 2, g)), act(rho_out, layer(x), 2, g)) <= tolerance


@pytest.mark.parametrize("kind", ["nullspace", "random"])
def test_the_controls_are_not_equivariant(kind: str) -> None:
    layer = BasisLinear(MIRROR, reps.regular(C2), 3, 5, basis=kind)  # type: ignore[arg-type]
    x = torch.randn(7, 3, 4)
    assert residual(layer(act(MIRROR, x, 2)), act(reps.regular(C2), layer(x), 2)) > 0.1


@pytest.mark.parametrize(("dtype", "tolerance"), PRECISIONS)
@pytest.mark.parametrize(
    ("group", "spatial", "rho_in", "rho_out", "kernel", "stride"),
    [
        (C4, ["rot90"], reps.trivial(C4), reps.regular(C4), 7, 2),
        (C4, ["rot90"], reps.regular(C4), reps.regular(C4), 5, 1),
        (C4, ["rot90"], reps.rotation(C4), reps.regular(C4), 3, 1),
        (D4, ["rot90", "flip_lr"], reps.regular(D4), reps.standard(D4), 3, 2),
        (C2, ["flip_ud"], reps.regular(C2), reps.sign(C2), (3, 4), (2, 3)),
    ],
)
def test_a_convolution_turns_with_its_image(
    group: groups.Group,
    spatial: list[str],
    rho_in: Representation,
    rho_out: Representation,
    kernel: int,
    stride: int,
    dtype: torch.dtype,
    tolerance: float,
) -> None:
    layer = BasisConv2d(rho_in, rho_out, 2, 3, kernel, spatial=spatial, stride=stride, input_size=(21, 21))
    layer = with_bias(layer).to(dtype)  # type: ignore[assignment]
    x = torch.randn(2, 2, rho_in.dim, 21, 21, dtype=dtype)
    for g, operator in enumerate(spatial):
        moved = layer(act(rho_in, x, 2, g, operator))
        assert residual(moved, act(rho_out, layer(x), 2, g, operator)) <= tolerance


@pytest.mark.parametrize(
    "rank_zero", [BasisLinear(MIRROR, reps.trivial(C2), 2, 3), BasisLinear(MATRIX3, reps.trivial(C3), 2, 3)]
)
def test_a_layer_of_rank_zero_has_no_free_weight_and_says_so(rank_zero: BasisLinear) -> None:
    assert rank_zero.coefficients.numel() == 0
    assert "rank 0" in repr(rank_zero)
    rank_zero.bias_coefficients.data.fill_(2.0)  # type: ignore[union-attr]
    out = rank_zero(torch.randn(4, 2, rank_zero.basis.shape[1]))
    assert torch.equal(out, torch.full((4, 3, 1), 2.0))
    out.sum().backward()
    assert torch.equal(rank_zero.materialize().weight, torch.zeros(3, 2 * rank_zero.basis.shape[1]))


def test_a_bias_that_must_vanish_is_left_out() -> None:
    layer = BasisLinear(reps.rotation(C3), reps.rotation(C3), 2, 3)
    assert layer.bias_coefficients is not None
    assert layer.bias_coefficients.numel() == 0
    assert layer.materialize().bias is None


@pytest.mark.parametrize("make", [cart_pole, grid_world])
def test_a_plain_copy_computes_the_same_function(make: Callable[[], EquivariantHeads]) -> None:
    net = with_bias(make())
    dense = to_dense(net)
    x = torch.randn(6, 1, 4) if make is cart_pole else torch.rand(6, 1, 21, 21)
    assert not any(type(module).__module__.startswith("symcheck") for module in dense.modules() if module is not dense)
    for given, expected in zip(dense(x), net(x), strict=True):
        assert residual(given, expected.flatten(1)) < 1e-6  # the same sums in another order
    flat = x.flatten(1) if make is cart_pole else x
    assert all(torch.equal(a, b) for a, b in zip(dense(flat), dense(x), strict=True))
    before = [p.clone() for p in net.parameters()]
    for parameter in dense.parameters():
        parameter.data.zero_()
    assert all(torch.equal(a, b) for a, b in zip(before, net.parameters(), strict=True))


class Own(nn.Module):
    """A user's network with its own forward."""

    def __init__(self) -> None:
        super().__init__()
        four = reps.regular(C4)
        self.conv = BasisConv2d(reps.trivial(C4), four, 2, 3, 3, spatial=ROT90)
        self.act = PointwiseNonlinearity(four)
        self.pool = GlobalMaxPool()
        self.mean = GlobalAveragePool()
        self.tail = EquivariantSequential(BasisLinear(four, four, 3, 2), nn.ReLU(), BasisLinear(four, COMPASS, 2, 1))

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.act(self.conv(x[:, :, None]))
        return self.tail(self.pool(hidden) + self.mean(hidden))[:, 0]


def test_the_layers_inside_a_users_own_module_are_replaced_in_place() -> None:
    net = Own().eval()
    dense = to_dense(net)
    x = torch.randn(3, 2, 9, 9)
    assert not any(isinstance(m, BasisLinear | BasisConv2d) for m in dense.modules())
    assert not dense.training
    assert residual(dense(x), net(x)) < 1e-6


def test_materialized_layers_act_on_channel_major_axes() -> None:
    layer = with_bias(BasisLinear(reps.regular(C4), COMPASS, 3, 2))
    x = torch.randn(5, 3, 4)
    torch.testing.assert_close(layer.materialize()(x.reshape(5, 12)), layer(x).reshape(5, 10))
    conv = with_bias(BasisConv2d(reps.regular(C4), reps.regular(C4), 3, 2, 3, spatial=ROT90, padding=1))
    y = torch.randn(5, 3, 4, 7, 7)
    torch.testing.assert_close(conv.materialize()(y.reshape(5, 12, 7, 7)), conv(y).reshape(5, 8, 7, 7))


def test_gradient_steps_keep_the_network_equivariant() -> None:
    net = grid_world()
    optimizer = torch.optim.Adam(net.parameters(), 1e-2)
    for _ in range(5):
        x = torch.rand(8, 1, 21, 21)
        logits, value = net(x)
        loss = logits.softmax(-1)[:, 1].mean() + (value - x.mean()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    x = torch.rand(4, 1, 21, 21)
    logits, value = net(x)
    turned, same_value = net(torch.rot90(x, 1, (-2, -1)))
    assert residual(turned, act(COMPASS, logits, 1)) < 1e-5  # float32 sums over 4,000 terms
    assert residual(same_value, value) < 1e-5


def test_double_is_exact_and_not_a_cast_of_float32_rows() -> None:
    layer = BasisLinear(MATRIX3, MATRIX3, 2, 2).double()
    x = torch.randn(4, 2, 2, dtype=torch.float64)
    assert residual(layer(act(MATRIX3, x, 2)), act(MATRIX3, layer(x), 2)) < 1e-15
    back = layer.float().double()
    assert residual(back(act(MATRIX3, x, 2)), act(MATRIX3, back(x), 2)) < 1e-15


@pytest.mark.parametrize("init", ["xavier", "he"])
@pytest.mark.parametrize("kind", ["equivariant", "nullspace", "random"])
@pytest.mark.parametrize(
    ("rho_in", "rho_out"), [LINEAR[0], LINEAR[1], LINEAR[4], (reps.standard(D4), reps.standard(D4))]
)
def test_the_materialised_weight_has_the_variance_asked_for(
    rho_in: Representation, rho_out: Representation, kind: str, init: str
) -> None:
    layer = BasisLinear(rho_in, rho_out, 200, 150, basis=kind, init=init)  # type: ignore[arg-type]
    weight = layer.materialize().weight.detach()
    wanted = 2 / sum(weight.shape) if init == "xavier" else 2 / weight.shape[1]
    free = layer.coefficients.numel()
    # The mean of `free` squared normals spreads by sqrt(2 / free); five of those.
    assert float(weight.square().mean()) == pytest.approx(wanted, rel=5 * (2 / free) ** 0.5)
    layer.reset_parameters(gain=0.01)
    assert float(layer.materialize().weight.detach().square().mean()) == pytest.approx(
        wanted * 1e-4, rel=5 * (2 / free) ** 0.5
    )


def test_a_filter_has_the_variance_asked_for() -> None:
    weight = BasisConv2d(reps.trivial(C4), reps.regular(C4), 40, 40, 7, spatial=ROT90).materialize().weight.detach()
    assert float(weight.square().mean()) == pytest.approx(2 / (40 * 49), rel=0.02)


def test_a_checkpoint_holds_coefficients_and_a_fingerprint_only() -> None:
    layer = BasisLinear(reps.regular(C4), COMPASS, 3, 2)
    assert sorted(layer.state_dict()) == ["bias_coefficients", "fingerprint", "weight_coefficients"]
    other = BasisLinear(reps.regular(C4), COMPASS, 3, 2)
    buffer = io.BytesIO()
    torch.save(layer.state_dict(), buffer)
    buffer.seek(0)
    other.load_state_dict(torch.load(buffer, weights_only=True))
    x = torch.randn(2, 3, 4)
    assert torch.equal(layer(x), other(x))


def test_a_checkpoint_of_other_bases_is_refused() -> None:
    layer = BasisLinear(reps.regular(C4), COMPASS, 3, 2)
    for other in (
        BasisLinear(reps.regular(C4), reps.permutation(C4, [[0, 4, 1, 2, 3]]), 3, 2),
        BasisLinear(reps.regular(C4), COMPASS, 3, 2, basis="nullspace"),
    ):
        with pytest.raises(SymcheckError, match="written for other bases"):
            other.load_state_dict(layer.state_dict())
    net, broken = grid_world(), grid_world().state_dict()
    broken["body.layers.1.fingerprint"] = torch.zeros_like(broken["body.layers.1.fingerprint"])
    with pytest.raises(SymcheckError, match=r"body\.layers\.1.*other bases"):
        net.load_state_dict(broken)


@pytest.mark.parametrize("make", [cart_pole, grid_world])
def test_copies_and_pickles_compute_the_same_function(make: Callable[[], nn.Module]) -> None:
    net = make()
    x = torch.randn(2, 1, 4) if make is cart_pole else torch.rand(2, 1, 21, 21)
    with torch.no_grad():
        expected = net(x)
        for twin in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
            assert all(torch.equal(a, b) for a, b in zip(twin(x), expected, strict=True))


@pytest.mark.parametrize("change", ["in place", "data", "load", "step", "assign"])
def test_a_kept_weight_follows_every_change_of_the_coefficients(change: str) -> None:
    layer = BasisLinear(reps.regular(C4), COMPASS, 3, 2)
    other = BasisLinear(reps.regular(C4), COMPASS, 3, 2)
    x = torch.randn(2, 3, 4)
    with torch.no_grad():
        before = layer(x)
        assert torch.equal(layer(x), before)
        if change == "in place":
            layer.coefficients.copy_(other.coefficients)
        elif change == "data":
            layer.coefficients.data.copy_(other.coefficients)
        elif change == "load":
            layer.load_state_dict(other.state_dict())
        elif change == "assign":
            layer.weight_coefficients = other.weight_coefficients
        else:
            layer.weight_coefficients.grad = layer.weight_coefficients - other.weight_coefficients
            torch.optim.SGD([layer.weight_coefficients], 1.0).step()
        torch.testing.assert_close(layer(x), other(x))
        assert not torch.allclose(layer(x), before)


def test_gradients_flow_twice_after_a_kept_weight() -> None:
    layer = BasisLinear(reps.regular(C4), COMPASS, 3, 2)
    x = torch.randn(2, 3, 4)
    with torch.no_grad():
        layer(x)
    for _ in range(2):
        layer(x).sum().backward()
    assert layer.weight_coefficients.grad is not None
    assert torch.autograd.gradcheck(layer.double(), torch.randn(2, 3, 4, dtype=torch.float64, requires_grad=True))


def test_fx_export_and_trace_see_the_same_function() -> None:
    net = cart_pole().eval()
    x = torch.randn(3, 1, 4)
    batch = torch.export.Dim("batch")
    exported = torch.export.export(net, (x,), dynamic_shapes={"x": {0: batch}}).module()
    graph = torch.fx.symbolic_trace(net)
    y = torch.randn(5, 1, 4)
    for twin in (exported, graph):
        assert all(torch.equal(a, b) for a, b in zip(twin(y), net(y), strict=True))


def test_export_sees_images() -> None:
    net = grid_world().eval()
    x = torch.rand(2, 1, 21, 21)
    exported = torch.export.export(net, (x,)).module()
    assert all(torch.equal(a, b) for a, b in zip(exported(x), net(x), strict=True))


def test_storage_without_values_is_filled_with_constants_again() -> None:
    layer = BasisLinear(MATRIX3, reps.regular(C3), 2, 2)
    shell = copy.deepcopy(layer).to("meta").to_empty(device="cpu")
    shell.load_state_dict(layer.state_dict())
    x = torch.randn(3, 2, 2)
    assert torch.equal(shell(x), layer(x))
    image = BasisConv2d(reps.regular(C4), reps.regular(C4), 1, 2, 3, spatial=ROT90)
    shell_image = copy.deepcopy(image).to_empty(device="cpu")
    shell_image.load_state_dict(image.state_dict())
    y = torch.randn(1, 1, 4, 5, 5)
    assert torch.equal(shell_image(y), image(y))


def test_a_projected_tensor_stays_a_tensor() -> None:
    basis = BasisLinear(reps.regular(C4), COMPASS, 1, 1).basis
    weight = torch.randn(3, 5, 4)
    projected = basis.project(weight)
    assert projected.dtype == torch.float32
    np.testing.assert_allclose(projected.numpy(), basis.project(weight.numpy()), rtol=1e-6)


def test_a_compiled_network_follows_its_coefficients() -> None:
    net = cart_pole()
    compiled = torch.compile(net, backend="eager", fullgraph=True)
    x = torch.randn(3, 1, 4)
    with torch.no_grad():
        compiled(x)
        for parameter in net.parameters():
            parameter.mul_(2)
        for given, expected in zip(compiled(x), net(x), strict=True):
            torch.testing.assert_close(given, expected)


def test_mixed_precision_runs_and_stays_close() -> None:
    net = cart_pole()
    x = torch.randn(3, 1, 4)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        rounded = net(x)[0]
    assert rounded.dtype == torch.bfloat16
    assert residual(rounded.float(), net(x)[0]) < 0.05  # 8 bits of mantissa


def test_pixels_flatten_into_components_and_stay_equivariant() -> None:
    rho = reps.regular(C2)
    flat = reps.with_grid(rho, 4, 4, ["flip_ud"])
    net = EquivariantSequential(
        SplitChannels(reps.trivial(C2), 4, spatial=["flip_ud"]),
        BasisConv2d(reps.trivial(C2), rho, 4, 3, 4, spatial=["flip_ud"], stride=4),
        nn.ReLU(),
        FlattenPixels(),
        BasisLinear(flat, SWAP, 3, 1),
        MergeChannels(),
        input_size=(16, 16),
    )
    x = torch.rand(2, 4, 16, 16)
    assert residual(net(x.flip(-2)), net(x).flip(-1)) < 2e-6
    assert residual(to_dense(net)(x), net(x)) < 1e-6


def test_norm_and_gated_nonlinearities_commute_with_rotations() -> None:
    rho = reps.rotation(C3)
    norm = with_bias(NormNonlinearity(rho, 4)).double()
    gate = GatedNonlinearity(rho)
    x = torch.randn(5, 4, 2, dtype=torch.float64)
    y = torch.randn(5, 4, 3, dtype=torch.float64)
    assert residual(norm(act(rho, x, 2)), act(rho, norm(x), 2)) < 1e-15
    assert residual(gate(act(gate.input_representation, y, 2)), act(rho, gate(y), 2)) < 1e-15
    assert torch.isfinite(norm(torch.zeros(1, 4, 2))).all()
    net = EquivariantSequential(
        BasisLinear(rho, gate.input_representation, 1, 4), gate, norm.float(), BasisLinear(rho, rho, 4, 1)
    )
    z = torch.randn(3, 1, 2)
    assert residual(net(act(rho, z, 2)), act(rho, net(z), 2)) < 2e-6


REFUSALS: list[tuple[Callable[[], object], str]] = [
    (lambda: PointwiseNonlinearity(MIRROR), "ReLU does not commute .* changes signs and ReLU is not odd"),
    (lambda: PointwiseNonlinearity(MATRIX3, "tanh"), "mix components.*NormNonlinearity"),
    (lambda: PointwiseNonlinearity(SWAP, nn.Softmax(-1)), "not known to act entrywise"),
    (lambda: PointwiseNonlinearity(SWAP, "relus"), "Did you mean 'relu'"),
    (lambda: PointwiseNonlinearity(SWAP, nn.PReLU(3)), "not known"),
    (lambda: GlobalMaxPool(MIRROR), "a maximum does not commute"),
    (lambda: NormNonlinearity(reps.from_matrices(C2, [[[-1, 1], [0, 1]]]), 1), "orthogonal"),
    (lambda: BasisLinear(MIRROR, reps.regular(C4), 1, 1), "same group"),
    (lambda: BasisLinear(MIRROR, SWAP, 0, 1), "positive number of channels"),
    (lambda: BasisLinear(MIRROR, SWAP, 1, 1, init="xaver"), "Did you mean 'xavier'"),  # type: ignore[arg-type]
    (lambda: BasisLinear(MIRROR, SWAP, 1, 1)(torch.zeros(2, 4)), r"expected an input of shape \(\.\.\., 1, 4\)"),
    (lambda: EquivariantSequential(), "first module"),
    (lambda: EquivariantSequential(nn.ReLU()), "first module"),
    (
        lambda: EquivariantSequential(BasisLinear(MIRROR, SWAP, 1, 4), BasisLinear(SWAP, SWAP, 3, 1)),
        r"\[1\].*do not fit",
    ),
    (lambda: EquivariantSequential(BasisLinear(SWAP, MIRROR, 1, 4), nn.ReLU()), r"\[1\].*not odd"),
    (lambda: EquivariantSequential(BasisLinear(SWAP, SWAP, 1, 4), nn.Dropout()), "not known to be equivariant"),
    (lambda: EquivariantSequential(BasisLinear(SWAP, SWAP, 1, 4), GlobalMaxPool()), "expected images"),
    (lambda: EquivariantHeads(EquivariantSequential(BasisLinear(SWAP, SWAP, 1, 4)), {}), "at least one head is needed"),
    (
        lambda: conv(stride=2, input_size=(22, 22)),
        r"stride 2 does not commute with rot90 at size 22.*Sizes that work: 21, 23",
    ),
    (lambda: conv(stride=(1, 2)), "exchanges height and width"),
    (lambda: conv(padding=(1, 2)), "exchanges height and width"),
    (lambda: conv(input_size=(21, 23)), "images must be square"),
    (lambda: conv(input_size=(5, 5)), "larger than the padded image"),
    (lambda: conv(stride=0), "at least 1"),
    (lambda: conv()(torch.zeros(1, 1, 21, 21)), "expected images of shape"),
    (lambda: EquivariantSequential(conv(), FlattenPixels()), "known size"),
]


def conv(**options: object) -> BasisConv2d:
    return BasisConv2d(reps.trivial(C4), reps.regular(C4), 1, 2, 7, spatial=ROT90, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(("build", "message"), REFUSALS)
def test_what_breaks_equivariance_is_refused_with_the_reason(build: Callable[[], object], message: str) -> None:
    with pytest.raises(SymcheckError, match=message):
        build()


def test_a_network_says_which_input_it_takes() -> None:
    assert grid_world().example_input.shape == (1, 1, 21, 21)
    assert cart_pole().double().example_input.dtype == torch.float64
    assert cart_pole().example_input.shape == (1, 1, 4)
    assert getattr(conv(), "example_input", None) is None
    assert getattr(GlobalMaxPool(), "example_input", None) is None


def test_an_odd_function_is_accepted_on_signed_components() -> None:
    assert PointwiseNonlinearity(MIRROR, "tanh").propagate(FieldType(MIRROR, 3)).channels == 3


def test_along_an_axis_that_no_element_moves_any_stride_will_do() -> None:
    layer = BasisConv2d(SWAP, SWAP, 1, 1, 3, spatial=["flip_lr"], stride=(2, 1), input_size=(6, 5))
    assert layer.output_size((6, 5)) == (2, 3)


def test_many_networks_run_as_one_with_stacked_coefficients() -> None:
    layer, *others = (BasisLinear(reps.regular(C4), COMPASS, 3, 2) for _ in range(4))
    parameters, buffers = torch.func.stack_module_state(others)
    x = torch.randn(5, 3, 4)
    stacked = torch.func.vmap(lambda p, b: torch.func.functional_call(layer, (p, b), (x,)))(parameters, buffers)
    for given, other in zip(stacked, others, strict=True):
        torch.testing.assert_close(given, other(x))


def test_inference_mode_keeps_the_weight_and_training_goes_on() -> None:
    net = cart_pole()
    x = torch.randn(3, 1, 4)
    with torch.inference_mode():
        first, second = net(x)[0], net(x)[0]
    assert torch.equal(first, second)
    net(x)[0].sum().backward()
    with torch.no_grad():
        assert torch.equal(net(x)[0], first)


def test_bfloat16_networks_run_with_and_without_autograd() -> None:
    net = cart_pole().bfloat16()
    x = torch.randn(3, 1, 4).bfloat16()
    expected = net(x)[0]
    with torch.no_grad():
        for _ in range(2):
            assert residual(net(x)[0].float(), expected.float()) < 0.05  # 8 bits of mantissa
