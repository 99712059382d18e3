"""The parts of layers one by one: formulas, limits from both sides, sizes of images, gains, and what errors name."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import nn

from symcheck import groups
from symcheck import representations as reps
from symcheck.errors import SymcheckError
from symcheck.intertwiners.build import intertwiner_basis
from symcheck.nn import (
    BasisConv2d,
    BasisLinear,
    EquivariantBatchNorm,
    EquivariantHeads,
    EquivariantLayerNorm,
    EquivariantSequential,
    FlattenPixels,
    GatedNonlinearity,
    GlobalAveragePool,
    GlobalMaxPool,
    InvariantProducts,
    MergeChannels,
    NormNonlinearity,
    PointwiseNonlinearity,
    SplitChannels,
    TensorProduct,
    to_dense,
)
from symcheck.nn.conv import _pair
from symcheck.nn.field_type import FieldType, check_channels, exchanges_axes, moving, require_match
from symcheck.nn.kept import Kept
from symcheck.nn.nonlinearity import NAMED, ODD, is_pointwise, named_activation
from symcheck.nn.orthogonal import orthogonal_
from symcheck.nn.sequential import PlainHeads, step_type
from symcheck.representations.representation import Representation

C2, C3, C4, S3 = (groups.named(n) for n in ("C2", "C3", "C4", "S3"))
FOUR, MIRROR, TURN = reps.regular(C4), reps.signed_permutation(C2, [[-1, 2]]), reps.rotation(C3)
SHEARED = reps.from_matrices(C2, [[[-1, 1], [0, 1]]])


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


# --- types


@pytest.mark.parametrize(
    ("given", "shape"),
    [
        (FieldType(MIRROR, 3), (3, 2)),
        (FieldType(MIRROR, 3, flat=True), (6,)),
        (FieldType(MIRROR, 3, ("flip_ud",)), None),
        (FieldType(MIRROR, 3, ("flip_ud",), (4, 5)), (3, 2, 4, 5)),
        (FieldType(MIRROR, 3, ("flip_ud",), (4, 5), flat=True), (6, 4, 5)),
    ],
)
def test_a_type_knows_its_shape_where_the_size_is_known(given: FieldType, shape: tuple[int, ...] | None) -> None:
    assert given.shape == shape
    assert str(given).startswith(f"3 x {MIRROR.name} of C2")
    assert ("over pixels that move by flip_ud" in str(given)) == (given.spatial is not None)
    assert str(given).endswith(", flat") == given.flat


@pytest.mark.parametrize(
    "other",
    [
        FieldType(FOUR, 3, ("rot90",), flat=True),
        FieldType(FOUR, 2, ("rot90",)),
        FieldType(FOUR, 3, ("identity",)),
        FieldType(FOUR, 3),
        FieldType(reps.permutation(C4, [[3, 0, 1, 2]]), 3, ("rot90",)),
    ],
)
def test_types_fit_only_if_all_parts_but_the_size_agree(other: FieldType) -> None:
    wanted = FieldType(FOUR, 3, ("rot90",))
    require_match(FieldType(FOUR, 3, ("rot90",), (5, 5)), wanted, where="here")
    with pytest.raises(SymcheckError, match=r"here: the types do not fit: expected 3 x .*, got "):
        require_match(other, wanted, where="here")


@pytest.mark.parametrize("value", [0, -1, True, 1.0, "1", None])
def test_channels_are_a_positive_number(value: object) -> None:
    assert check_channels(np.int64(1), "c") == 1
    with pytest.raises(SymcheckError, match="c: expected a positive number of channels, got "):
        check_channels(value, "c")


@pytest.mark.parametrize(
    ("operators", "rows", "columns", "exchanged"),
    [
        (["identity"], False, False, False),
        (["flip_ud"], True, False, False),
        (["flip_lr"], False, True, False),
        (["flip_lr", "flip_ud"], True, True, False),
        (["rot180"], True, True, False),
        (["identity", "rot90"], True, True, True),
        (["transpose"], True, True, True),
    ],
)
def test_operators_move_rows_and_columns_as_arrays_say(
    operators: list[str], rows: bool, columns: bool, exchanged: bool
) -> None:
    assert moving(operators) == (rows, columns)
    assert exchanges_axes(operators) == exchanged


# --- nonlinearities


@pytest.mark.parametrize("name", NAMED)
def test_exactly_the_odd_functions_are_taken_as_odd(name: str) -> None:
    module = NAMED[name]()
    x = torch.linspace(-3, 3, 101, dtype=torch.float64)
    assert torch.allclose(module(-x), -module(x)) == isinstance(module, ODD)
    assert is_pointwise(module)
    if isinstance(module, ODD):
        assert PointwiseNonlinearity(MIRROR, name).activation is not None
    else:
        with pytest.raises(SymcheckError, match=f"{type(module).__name__} is not odd"):
            PointwiseNonlinearity(MIRROR, name)
    PointwiseNonlinearity(FOUR, name)
    if name == "identity":
        PointwiseNonlinearity(TURN, name)
    else:
        with pytest.raises(SymcheckError, match="matrices mix components"):
            PointwiseNonlinearity(TURN, name)


def test_an_activation_is_a_name_a_function_a_class_or_a_module() -> None:
    given = nn.PReLU()
    assert named_activation(given) is given
    assert isinstance(named_activation("elu"), nn.ELU)
    assert isinstance(named_activation(torch.tanh), nn.Tanh)
    assert isinstance(named_activation(nn.Mish), nn.Mish)
    assert is_pointwise(given)
    assert not is_pointwise(nn.PReLU(2))
    assert not is_pointwise(nn.Softmax(-1))
    with pytest.raises(SymcheckError, match="no activation is called 'sin'"):
        named_activation(torch.sin)


@pytest.mark.parametrize("pixels", [(), (2, 3)])
@pytest.mark.parametrize("scale", [1e-2, 1.0, 1e4])
def test_norms_are_shifted_and_directions_kept(pixels: tuple[int, ...], scale: float) -> None:
    layer = NormNonlinearity(TURN, 3).double()
    with torch.no_grad():
        layer.bias.copy_(torch.tensor([0.5, -0.5, -20.0]) * scale)
    x = scale * torch.randn(4, 3, 2, *pixels, dtype=torch.float64)
    made, length = layer(x), x.norm(dim=2, keepdim=True)
    bias = layer.bias.reshape(1, 3, 1, *(1,) * len(pixels))
    np.testing.assert_allclose(made.detach(), (x / length * (length + bias).clamp_min(0)).detach(), rtol=1e-12)
    assert not made[:, 2].any()
    zero = torch.zeros(1, 3, 2, *pixels, dtype=torch.float64, requires_grad=True)
    layer(zero).sum().backward()
    assert torch.isfinite(zero.grad).all()
    assert not layer(zero).any()


@pytest.mark.parametrize("pixels", [(), (2, 3)])
def test_a_gate_scales_its_own_vector_by_its_first_component(pixels: tuple[int, ...]) -> None:
    gate = GatedNonlinearity(TURN)
    x = torch.randn(4, 3, 3, *pixels, dtype=torch.float64)
    expected = x[:, :, 1:] / (1 + torch.exp(-x[:, :, :1]))
    np.testing.assert_allclose(gate(x), expected, rtol=1e-12)
    assert gate.input_representation.dim == 3
    made = gate.propagate(FieldType(gate.input_representation, 5, None))
    assert (made.rho, made.channels) == (TURN, 5)


@pytest.mark.parametrize(
    "make",
    [
        lambda rho: NormNonlinearity(rho, 1), lambda rho: InvariantProducts(rho, 1),
        lambda rho: EquivariantBatchNorm(rho, 1), lambda rho: EquivariantLayerNorm(rho, 1),
    ],
)  # fmt: skip
def test_lengths_need_an_orthogonal_representation(make: Callable[[Representation], nn.Module]) -> None:
    make(TURN)
    with pytest.raises(SymcheckError, match=r"is not orthogonal, so norms are not invariant"):
        make(SHEARED)
    with pytest.raises(SymcheckError, match="expected a representation"):
        make("C3")  # type: ignore[arg-type]


# --- normalisation


@pytest.mark.parametrize("rho", [FOUR, TURN], ids=["permutes", "turns"])
@pytest.mark.parametrize("momentum", [0.1, 0.7])
def test_running_statistics_are_shared_by_components(rho: Representation, momentum: float) -> None:
    layer = EquivariantBatchNorm(rho, 3, momentum=momentum).double()
    x = 2 * torch.randn(64, 3, rho.dim, dtype=torch.float64) + 1
    layer(x)
    flat = x.transpose(0, 1).reshape(3, -1)
    wanted = flat.var(dim=1) if rho is FOUR else flat.square().mean(dim=1)
    np.testing.assert_allclose(layer.running_square, 1 - momentum + momentum * wanted, rtol=1e-12)
    np.testing.assert_allclose(layer.running_mean, momentum * flat.mean(dim=1) if rho is FOUR else 0, rtol=1e-12)
    before = layer.running_square.clone()
    layer.eval()(x)
    assert torch.equal(layer.running_square, before)
    assert (layer.bias is not None) == (rho is FOUR)
    assert (EquivariantBatchNorm(rho, 1).eps, EquivariantBatchNorm(rho, 1).momentum) == (1e-5, 0.1)
    assert EquivariantLayerNorm(rho, 1).eps == 1e-5


@pytest.mark.parametrize("eps", [1e-5, 0.5])
def test_normalisations_follow_their_formulas_in_every_mode(eps: float) -> None:
    x = torch.randn(6, 3, 2, 2, 3, dtype=torch.float64)
    weight = torch.tensor([0.5, 2.0, -1.0], dtype=torch.float64)
    wide = weight.reshape(1, 3, 1, 1, 1)
    batch, layer = EquivariantBatchNorm(TURN, 3, eps=eps).double(), EquivariantLayerNorm(TURN, 3, eps=eps).double()
    with torch.no_grad():
        batch.weight.copy_(weight)
        layer.weight.copy_(weight)
    square = x.square().mean(dim=(0, 2, 3, 4), keepdim=True)
    np.testing.assert_allclose(batch(x).detach(), x / (square + eps).sqrt() * wide, rtol=1e-12)
    batch.eval()
    running = batch.running_square.reshape(1, 3, 1, 1, 1)
    np.testing.assert_allclose(batch(x).detach(), x / (running + eps).sqrt() * wide, rtol=1e-12)
    square = x.square().mean(dim=(1, 2, 3, 4), keepdim=True)
    np.testing.assert_allclose(layer(x).detach(), x / (square + eps).sqrt() * wide, rtol=1e-12)


@pytest.mark.parametrize("mode", [True, False])
@pytest.mark.parametrize("rho", [FOUR, MIRROR], ids=["permutes", "signs"])
def test_a_plain_normalisation_repeats_numbers_over_components(rho: Representation, mode: bool) -> None:
    layer = EquivariantBatchNorm(rho, 2, eps=0.1, momentum=0.3, images=mode).double().train(mode)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([2.0, 3.0]))
        layer.running_mean.copy_(torch.tensor([0.5, -0.5]) if layer.centred else torch.zeros(2))
        layer.running_square.copy_(torch.tensor([4.0, 5.0]))
        if layer.bias is not None:
            layer.bias.copy_(torch.tensor([6.0, 7.0]))
    plain = layer.materialize()
    assert isinstance(plain, nn.BatchNorm2d if mode else nn.BatchNorm1d)
    assert (plain.training, plain.eps, plain.momentum) == (mode, 0.1, 0.3)
    assert plain.weight.tolist() == [2.0] * rho.dim + [3.0] * rho.dim
    assert plain.running_var.tolist() == [4.0] * rho.dim + [5.0] * rho.dim
    assert plain.bias.tolist() == ([6.0] * 4 + [7.0] * 4 if rho is FOUR else [0.0] * 4)
    assert plain.running_mean.tolist() == ([0.5] * 4 + [-0.5] * 4 if rho is FOUR else [0.0] * 4)
    norm = EquivariantLayerNorm(rho, 2, eps=0.2).train(mode)
    if rho is MIRROR:
        with pytest.raises(SymcheckError, match="no plain torch counterpart"):
            norm.materialize()
    else:
        made = norm.materialize()
        assert (made.eps, made.num_groups, made.num_channels, made.training) == (0.2, 1, 8, mode)


# --- pools and shapes


@pytest.mark.parametrize(("pool", "reduce"), [(GlobalMaxPool, torch.amax), (GlobalAveragePool, torch.mean)])
def test_a_pool_reduces_pixels_only(pool: type, reduce: Callable[..., torch.Tensor]) -> None:
    x = torch.randn(2, 3, 4, 5, 6)
    torch.testing.assert_close(pool()(x), reduce(x.flatten(3), dim=3))
    torch.testing.assert_close(pool().materialize()(x.flatten(1, 2)), reduce(x.flatten(3), dim=3).flatten(1))
    made = pool().propagate(FieldType(FOUR, 3, ("rot90",), (5, 5)))
    assert (made.channels, made.spatial, made.size, made.flat) == (3, None, None, False)
    for wrong in (FieldType(FOUR, 3), FieldType(FOUR, 3, ("rot90",), flat=True)):
        with pytest.raises(SymcheckError, match="expected images"):
            pool().propagate(wrong)


def test_a_maximum_is_for_permutations_only() -> None:
    GlobalMaxPool(FOUR)
    for rho in (MIRROR, TURN):
        with pytest.raises(SymcheckError, match="a maximum does not commute"):
            GlobalMaxPool(rho)
        with pytest.raises(SymcheckError, match="a maximum does not commute"):
            GlobalMaxPool().propagate(FieldType(rho, 1, ("flip_ud",)))
    assert GlobalAveragePool(TURN).propagate(FieldType(TURN, 1, ("identity",))).rho is TURN


def test_rearranging_keeps_the_order_of_numbers() -> None:
    x = torch.arange(2 * 6 * 4 * 5.0).reshape(2, 6, 4, 5)
    split = SplitChannels(MIRROR, 3, spatial=["flip_ud"], size=(4, 5))
    assert split.input_type.shape == (6, 4, 5)
    parts = split(x)
    assert parts.shape == (2, 3, 2, 4, 5)
    for channel in range(3):
        assert torch.equal(parts[:, channel], x[:, 2 * channel : 2 * channel + 2])
    assert torch.equal(MergeChannels()(parts), x)
    assert torch.equal(FlattenPixels()(parts), x.reshape(2, 3, 40))
    assert torch.equal(FlattenPixels().materialize()(x), x.reshape(2, 120))
    assert split.propagate(split.input_type).flat is False
    assert MergeChannels().propagate(FieldType(MIRROR, 3)).flat
    with pytest.raises(SymcheckError, match="expected separate channels"):
        MergeChannels().propagate(FieldType(MIRROR, 3, flat=True))
    for wrong in (
        FieldType(MIRROR, 3),
        FieldType(MIRROR, 3, ("flip_ud",)),
        FieldType(MIRROR, 3, ("flip_ud",), (4, 5), flat=True),
    ):
        with pytest.raises(SymcheckError, match="expected images of known size"):
            FlattenPixels().propagate(wrong)
    made = FlattenPixels().propagate(FieldType(MIRROR, 3, ("flip_ud",), (4, 5)))
    assert (made.rho.dim, made.channels, made.spatial) == (40, 3, None)
    (g,) = C2.generators
    image = torch.randn(2, 4, 5)
    mirrored = torch.einsum("ij,jhw->ihw", torch.tensor(np.asarray(MIRROR.matrix(g), np.float32)), image.flip(1))
    np.testing.assert_array_equal(made.rho.matrix(g) @ image.flatten().numpy(), mirrored.flatten())
    assert SplitChannels(MIRROR).input_type.channels == 1


# --- convolutions


@pytest.mark.parametrize(
    ("size", "kernel", "stride", "padding", "made"),
    [
        ((7, 7), 3, 1, 0, (5, 5)),
        ((7, 7), 3, 2, 0, (3, 3)),
        ((7, 7), 7, 1, 0, (1, 1)),
        ((7, 7), 3, 2, 1, (4, 4)),
        ((3, 3), 5, 1, 1, (1, 1)),
    ],
)
def test_the_size_of_an_output_is_that_of_torch(
    size: tuple[int, int], kernel: int, stride: int, padding: int, made: tuple[int, int]
) -> None:
    layer = BasisConv2d(FOUR, FOUR, 1, 2, kernel, spatial=["rot90"], stride=stride, padding=padding)
    assert layer.output_size(size) == made == tuple(layer(torch.zeros(1, 1, 4, *size)).shape[-2:])
    taken = FieldType(FOUR, 1, ("rot90",), size)
    assert layer.propagate(taken).size == made
    assert layer.propagate(FieldType(FOUR, 1, ("rot90",))).size is None
    sized = BasisConv2d(FOUR, FOUR, 1, 2, kernel, spatial=["rot90"], stride=stride, padding=padding, input_size=size)
    assert sized.propagate(FieldType(FOUR, 1, ("rot90",))).size == made
    plain = layer.materialize()
    assert (plain.stride, plain.padding, plain.kernel_size) == ((stride,) * 2, (padding,) * 2, (kernel,) * 2)


@pytest.mark.parametrize(
    ("size", "stride", "padding", "sizes"), [(8, 2, 0, "7, 9"), (8, 3, 0, "6, 9"), (8, 3, 1, "7, 10")]
)
def test_sizes_that_work_are_the_nearest(size: int, stride: int, padding: int, sizes: str) -> None:
    layer = BasisConv2d(FOUR, FOUR, 1, 1, 3, spatial=["rot90"], stride=stride, padding=padding)
    near = [n for n in range(size - stride, size + stride + 1) if (n + 2 * padding - 3) % stride == 0]
    assert ", ".join(map(str, near)) == sizes
    with pytest.raises(SymcheckError, match=f"stride {stride} does not commute with rot90 at size {size}: .*{sizes}"):
        layer.output_size((size, size))
    for n in near:
        layer.output_size((n, n))


def test_each_axis_has_its_own_kernel_stride_and_padding() -> None:
    layer = BasisConv2d(
        MIRROR, MIRROR, 1, 1, (3, 2), spatial=["flip_ud"], stride=(2, 3), padding=(1, 0), input_size=(5, 9)
    )
    assert layer.output_size((5, 9)) == (3, 3)  # (5 + 2 - 3) / 2 + 1 and (9 - 2) // 3 + 1
    assert layer(torch.zeros(1, 1, 2, 5, 9)).shape == (1, 1, 2, 3, 3)
    with pytest.raises(SymcheckError, match="stride 2 does not commute with flip_ud at size 6"):
        layer.output_size((6, 9))
    with pytest.raises(SymcheckError, match=r"the filter \(2\) is larger than the padded image \(1\)"):
        layer.output_size((5, 1))
    with pytest.raises(SymcheckError, match=r"the filter \(3\) is larger than the padded image \(2\)"):
        layer.output_size((0, 9))
    layer.output_size((1, 2))


@pytest.mark.parametrize(("value", "least", "read"), [(1, 1, (1, 1)), ((0, 2), 0, (0, 2)), ([3, 1], 1, (3, 1))])
def test_strides_and_paddings_are_one_integer_or_two(value: object, least: int, read: tuple[int, int]) -> None:
    assert _pair(value, "stride", least=least) == read  # type: ignore[arg-type]
    for wrong in (least - 1, (least, least - 1), (least - 1, least), (1,), (1, 1, 1), 1.5):
        with pytest.raises(SymcheckError, match=f"stride: expected one or two integers of at least {least}"):
            _pair(wrong, "stride", least=least)  # type: ignore[arg-type]


# --- linear layers


@pytest.mark.parametrize("init", ["xavier", "he"])
@pytest.mark.parametrize("gain", [1.0, 0.01, 3.0])
def test_an_initial_weight_has_the_variance_of_its_initialiser(init: str, gain: float) -> None:
    layer = BasisLinear(FOUR, reps.regular(C4), 60, 40, init=init)  # type: ignore[arg-type]
    layer.reset_parameters(gain=gain, generator=torch.Generator().manual_seed(0))
    weight = layer.materialize().weight.detach()
    wanted = 2 / (240 + 160) if init == "xavier" else 2 / 240
    # 9,600 independent coefficients: the variance is known to 4 sqrt(2 / 9600) of itself, 6%.
    assert float(weight.var()) == pytest.approx(wanted * gain**2, rel=0.06)
    assert not layer.materialize().bias.any()


@pytest.mark.parametrize("gain", [0.01, 1.0, 100.0])
@pytest.mark.parametrize(("rho_in", "rho_out"), [(FOUR, FOUR), (reps.natural(S3), reps.regular(S3)), (TURN, TURN)])
def test_orthogonal_weights_have_singular_values_of_the_gain_or_zero(
    rho_in: Representation, rho_out: Representation, gain: float
) -> None:
    layer = orthogonal_(BasisLinear(rho_in, rho_out, 3, 5).double(), gain, generator=torch.Generator().manual_seed(1))
    values = torch.linalg.svdvals(layer.materialize().weight) / gain
    assert (((values - 1).abs() < 1e-9) | (values < 1e-9)).all()
    assert values.max() > 0.5
    x = torch.randn(4, 3, rho_in.dim, dtype=torch.float64)
    for K, L in zip(rho_out.generator_matrices, rho_in.generator_matrices, strict=True):
        moved = layer(x @ torch.tensor(np.asarray(L, float)).T)
        np.testing.assert_allclose(
            moved.detach(), (layer(x) @ torch.tensor(np.asarray(K, float)).T).detach(), atol=1e-9 * gain
        )
    empty = BasisLinear(TURN, reps.trivial(C3), 2, 2)
    assert orthogonal_(empty) is empty
    skewed = orthogonal_(BasisLinear(SHEARED, SHEARED, 2, 2), gain)
    assert torch.isfinite(skewed.materialize().weight).all()


@pytest.mark.parametrize("basis", ["equivariant", "nullspace", "random"])
def test_a_weight_is_the_sum_of_coefficients_times_basis_matrices(basis: str) -> None:
    for rho_in, rho_out in ((FOUR, FOUR), (MIRROR, reps.regular(C2)), (TURN, reps.regular(C3))):
        layer = BasisLinear(rho_in, rho_out, 2, 3, basis=basis).double()  # type: ignore[arg-type]
        matrices = intertwiner_basis(rho_in, rho_out, kind=basis).matrices()  # type: ignore[arg-type]
        weight = np.einsum("ocr,rij->oicj", layer.coefficients.detach().numpy(), matrices)
        plain = layer.materialize().weight.detach().numpy()
        np.testing.assert_allclose(plain, weight.reshape(plain.shape), atol=1e-13)
        x = torch.randn(7, 2, rho_in.dim, dtype=torch.float64)
        expected = np.einsum("oicj,bcj->boi", weight, x)
        np.testing.assert_allclose(layer(x).detach(), expected, atol=1e-12)
        with torch.no_grad():
            np.testing.assert_allclose(layer(x), expected, atol=1e-12)
        assert f"rank {len(matrices)}" in repr(layer)


# --- products


@pytest.mark.parametrize(("rho_out", "rank"), [(reps.trivial(S3), 2), (reps.natural(S3), 5), (reps.sign(S3), 1)])
def test_a_tensor_product_is_bilinear_and_sums_over_its_basis(rho_out: Representation, rank: int) -> None:
    rho = reps.natural(S3)
    layer = TensorProduct(rho, rho, rho_out, 2, 3).double()
    assert layer.basis.shape == (rank, rho_out.dim, 3, 3)
    x, y = (torch.randn(5, 2, 3, dtype=torch.float64) for _ in range(2))
    expected = torch.einsum("dcr,roij,bci,bcj->bdo", layer.weight, layer.basis, x, y)
    np.testing.assert_allclose(layer(x, y).detach(), expected.detach(), atol=1e-12)
    np.testing.assert_allclose(layer(x).detach(), layer(x, x).detach())
    np.testing.assert_allclose(layer(2 * x, -3 * y).detach(), -6 * layer(x, y).detach(), atol=1e-11)
    made = layer.propagate(FieldType(rho, 2))
    assert (made.rho, made.channels) == (rho_out, 3)


def test_the_weights_of_a_product_start_at_unit_variance_of_the_result() -> None:
    layer = TensorProduct(FOUR, FOUR, FOUR, 30, 50)
    rank = layer.basis.shape[0]
    assert float(layer.weight.detach().std()) == pytest.approx((30 * rank) ** -0.5, rel=0.05)
    with pytest.raises(SymcheckError, match=r"no product of .* transforms like"):
        TensorProduct(reps.trivial(C2), reps.trivial(C2), reps.sign(C2), 1, 1)
    for wrong in (FieldType(FOUR, 29), FieldType(reps.permutation(C4, [[3, 0, 1, 2]]), 30)):
        with pytest.raises(SymcheckError, match="TensorProduct: the types do not fit"):
            layer.propagate(wrong)
    mixed = TensorProduct(FOUR, reps.trivial(C4), FOUR, 1, 1)
    with pytest.raises(SymcheckError, match="the types do not fit"):
        mixed.propagate(FieldType(FOUR, 1))


def test_inner_products_are_those_of_every_pair_once() -> None:
    layer = InvariantProducts(TURN, 3)
    x = torch.randn(4, 3, 2)
    expected = torch.stack([(x[:, i] * x[:, j]).sum(-1) for i in range(3) for j in range(i, 3)], dim=1)
    torch.testing.assert_close(layer(x), expected.unsqueeze(-1))
    made = layer.propagate(FieldType(TURN, 3))
    assert (made.channels, made.rho.dim) == (6, 1)
    assert layer(x).shape == (4, 6, 1)


# --- kept weights


@pytest.mark.parametrize("biased", [True, False])
def test_a_kept_weight_holds_only_for_its_own_unchanged_parameters(biased: bool) -> None:
    weight, bias = torch.randn(3, 4), torch.randn(3) if biased else None
    kept = Kept.of(weight, bias, weight, bias)
    assert kept.holds(weight, bias)
    assert not kept.holds(weight.clone(), bias)
    assert not kept.holds(None, bias)
    assert not kept.holds(weight, torch.randn(3))
    weight.data[2, 3] = torch.nextafter(weight.data[2, 3], torch.tensor(9.0))
    assert not kept.holds(weight, bias)
    kept = Kept.of(weight, bias, weight, bias)
    if bias is not None:
        bias.data[0] += 1
        assert not kept.holds(weight, bias)
    kept = Kept.of(weight, bias, weight, bias)
    weight.data = weight.data.clone()
    assert not kept.holds(weight, bias)


# --- networks


def test_a_sequence_counts_and_indexes_its_layers() -> None:
    net = EquivariantSequential(BasisLinear(MIRROR, reps.regular(C2), 1, 4), nn.ReLU(), MergeChannels())
    assert len(net) == 3
    assert net[1] is list(net)[1]
    assert isinstance(net[1], nn.ReLU)
    assert net.output_type.flat
    assert [type(m).__name__ for m in net.materialize()] == ["Linear", "ReLU"]
    with pytest.raises(SymcheckError, match=r"here: BasisLinear.*the types do not fit"):
        step_type(net[0], FieldType(MIRROR, 2), where="here")
    with pytest.raises(SymcheckError, match="here: Dropout is not known to be equivariant"):
        step_type(nn.Dropout(), FieldType(MIRROR, 2), where="here")
    given = FieldType(reps.regular(C2), 2)
    assert step_type(nn.ReLU(), given, where="here") is given


@pytest.mark.parametrize("training", [True, False])
def test_a_plain_network_keeps_the_mode_the_order_of_heads_and_the_function(training: bool) -> None:
    hidden = reps.regular(C2)
    body = EquivariantSequential(BasisLinear(MIRROR, hidden, 2, 4), nn.Tanh())
    heads = {"value": BasisLinear(hidden, reps.trivial(C2), 4, 1), "action": BasisLinear(hidden, MIRROR, 4, 3)}
    net = EquivariantHeads(body, heads).train(training)
    x = torch.randn(5, 2, 2)
    plain = to_dense(net)
    assert isinstance(plain, PlainHeads)
    assert plain.training == training
    for made, expected in zip(plain(x), net(x), strict=True):
        torch.testing.assert_close(made, expected.flatten(1))
    assert [tuple(out.shape) for out in net(x)] == [(5, 1, 1), (5, 3, 2)]
    with pytest.raises(SymcheckError, match="must be the last one"):
        net.propagate(FieldType(MIRROR, 2))
    with pytest.raises(SymcheckError, match="expected a torch module, got 3"):
        to_dense(3)  # type: ignore[arg-type]


def test_layers_inside_a_users_network_keep_their_axes() -> None:
    class Own(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = BasisConv2d(MIRROR, FOUR2, 1, 2, 3, spatial=["flip_ud"])
            self.act = PointwiseNonlinearity(FOUR2)
            self.pool = nn.ModuleList([GlobalMaxPool(), GlobalAveragePool()])
            self.flat = FlattenPixels()
            self.merge = MergeChannels()

        def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
            hidden = self.act(self.first(x))
            return [hidden, *(pool(hidden) for pool in self.pool), self.flat(hidden), self.merge(hidden)]

    FOUR2 = reps.regular(C2)
    net = Own()
    x = torch.randn(3, 1, 2, 5, 6)
    plain = to_dense(net)
    assert not any(isinstance(m, BasisConv2d | PointwiseNonlinearity | GlobalMaxPool) for m in plain.modules())
    for made, expected in zip(plain(x), net(x), strict=True):
        torch.testing.assert_close(made, expected)
    with pytest.raises(SymcheckError, match="NormNonlinearity has no plain torch counterpart"):
        to_dense(nn.Sequential(NormNonlinearity(MIRROR, 1)))


def test_without_a_layout_nothing_is_known_of_the_input() -> None:
    assert math.prod(BasisLinear(MIRROR, MIRROR, 3, 1).example_input.shape) == 6
    assert BasisLinear(MIRROR, MIRROR, 3, 1).double().example_input.dtype == torch.float64
    for layer in (MergeChannels(), BasisConv2d(MIRROR, MIRROR, 1, 1, 3, spatial=["flip_ud"])):
        assert not hasattr(layer, "example_input")


def test_a_network_takes_its_input_size_or_that_of_its_first_layer() -> None:
    def layers(**given: tuple[int, int]) -> tuple[nn.Module, nn.Module]:
        return BasisConv2d(MIRROR, MIRROR, 1, 2, 3, spatial=["flip_ud"], **given), FlattenPixels()

    sized = EquivariantSequential(*layers(), input_size=(5, 6))
    assert sized.input_type.size == (5, 6)
    assert (sized.output_type.rho.dim, sized.output_type.channels) == (2 * 3 * 4, 2)
    own = EquivariantSequential(*layers(input_size=(4, 4)))
    assert (own.input_type.size, own.output_type.rho.dim) == ((4, 4), 2 * 2 * 2)
    assert EquivariantSequential(*layers(input_size=(4, 4)), input_size=(5, 6)).input_type.size == (5, 6)
