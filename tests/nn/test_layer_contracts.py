"""What every layer promises: which types it takes and makes, its closed form, and a plain copy with trained numbers."""

from __future__ import annotations

import copy
import importlib
import inspect
import pkgutil
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import symcheck.nn
from symcheck import groups
from symcheck import representations as reps
from symcheck.errors import SymcheckError
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
from symcheck.nn.field_type import EquivariantModule, FieldType
from symcheck.representations.representation import same

C2, C3, C4 = groups.cyclic(2), groups.cyclic(3), groups.cyclic(4)
FOUR, OTHER = reps.regular(C4), reps.permutation(C4, [[3, 0, 1, 2]])
SIGNED = reps.signed_permutation(C4, [[2, -1]])
MOVES = ("rot90",)
GATE = GatedNonlinearity(FOUR)

# Layers on 3 channels, what they take and what they make.
LAYERS: dict[str, tuple[EquivariantModule, FieldType, FieldType]] = {
    "BasisLinear": (BasisLinear(FOUR, SIGNED, 3, 2), FieldType(FOUR, 3), FieldType(SIGNED, 2)),
    "BasisConv2d": (
        BasisConv2d(FOUR, SIGNED, 3, 2, 3, spatial=list(MOVES)),
        FieldType(FOUR, 3, MOVES),
        FieldType(SIGNED, 2, MOVES),
    ),
    "PointwiseNonlinearity": (PointwiseNonlinearity(FOUR), FieldType(FOUR, 3), FieldType(FOUR, 3)),
    "NormNonlinearity": (NormNonlinearity(FOUR, 3), FieldType(FOUR, 3), FieldType(FOUR, 3)),
    "GatedNonlinearity": (GATE, FieldType(GATE.input_representation, 3), FieldType(FOUR, 3)),
    "EquivariantBatchNorm": (EquivariantBatchNorm(FOUR, 3), FieldType(FOUR, 3), FieldType(FOUR, 3)),
    "EquivariantLayerNorm": (EquivariantLayerNorm(FOUR, 3), FieldType(FOUR, 3), FieldType(FOUR, 3)),
    "SplitChannels": (SplitChannels(FOUR, 3), FieldType(FOUR, 3, flat=True), FieldType(FOUR, 3)),
}
ANY_CHANNELS = ("PointwiseNonlinearity", "GatedNonlinearity")
IMAGES = FieldType(FOUR, 3, MOVES, (4, 4))
# Layers that take several types or make one that is not written down here.
LAYERS_AND_INPUTS: dict[str, tuple[EquivariantModule, FieldType]] = {
    **{name: (layer, taken) for name, (layer, taken, _) in LAYERS.items()},
    "BasisConv2d": (LAYERS["BasisConv2d"][0], IMAGES),
    "FlattenPixels": (FlattenPixels(), IMAGES),
    "GlobalAveragePool": (GlobalAveragePool(FOUR), IMAGES),
    "GlobalMaxPool": (GlobalMaxPool(FOUR), IMAGES),
    "InvariantProducts": (InvariantProducts(FOUR, 3), FieldType(FOUR, 3)),
    "MergeChannels": (MergeChannels(), FieldType(FOUR, 3)),
    "TensorProduct": (TensorProduct(FOUR, FOUR, SIGNED, 3, 2), FieldType(FOUR, 3)),
}
WITHOUT_PLAIN = ("GatedNonlinearity", "InvariantProducts", "NormNonlinearity", "TensorProduct")
CONTAINERS = ("EquivariantHeads", "EquivariantSequential")  # theirs are the whole networks of test_layers.py


def test_every_layer_is_exported_and_stands_above() -> None:
    modules = [
        importlib.import_module(f"symcheck.nn.{info.name}") for info in pkgutil.iter_modules(symcheck.nn.__path__)
    ]
    defined = {
        name
        for module in modules
        for name, kind in vars(module).items()
        if inspect.isclass(kind) and issubclass(kind, EquivariantModule) and not inspect.isabstract(kind)
    }
    assert defined - set(symcheck.nn.__all__) == set()
    assert defined - set(CONTAINERS) == set(LAYERS_AND_INPUTS)


def transform(kind: FieldType, x: Tensor) -> Tensor:
    """What the generator of C4 does to an activation of a type."""
    matrix = torch.as_tensor(np.asarray(kind.rho.matrix(kind.rho.group.generators[0]), dtype=float))
    parts = x.unflatten(1, (kind.channels, kind.rho.dim)) if kind.flat else x
    moved = torch.tensordot(parts, matrix, dims=([2], [1])).movedim(-1, 2)
    moved = moved if kind.spatial is None else torch.rot90(moved, 1, (-2, -1))
    return moved.flatten(1, 2) if kind.flat else moved


@pytest.mark.parametrize("name", LAYERS_AND_INPUTS)
def test_a_layer_commutes_with_the_group_and_so_does_its_plain_copy(name: str) -> None:
    torch.manual_seed(0)
    layer, taken = copy.deepcopy(LAYERS_AND_INPUTS[name])
    layer.double()
    for parameter in layer.parameters():
        nn.init.normal_(parameter)
    size = taken.size or ()
    x = torch.randn(5, taken.channels, taken.rho.dim, *size, dtype=torch.float64)
    x = x.flatten(1, 2) if taken.flat else x
    layer(x)  # a batch normalisation in training mode sees its first batch
    layer.eval()
    made, kind = layer(x), layer.propagate(taken)
    assert made.shape[1:3].numel() == kind.channels * kind.rho.dim if kind.flat else made.shape[1] == kind.channels
    # Each output is a sum of at most a few hundred products of numbers of size one.
    torch.testing.assert_close(layer(transform(taken, x)), transform(kind, made), rtol=0, atol=1e-12)
    if name in WITHOUT_PLAIN:
        with pytest.raises(SymcheckError, match="no plain torch counterpart"):
            layer.materialize()
    else:
        flat = x if taken.flat else x.flatten(1, 2)
        plain = layer.materialize()(flat)
        torch.testing.assert_close(plain.flatten(1), made.flatten(1), rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_takes_its_type_and_says_what_it_makes(name: str) -> None:
    layer, taken, made = LAYERS[name]
    given = layer.propagate(taken)
    assert same(given.rho, made.rho)
    assert (given.channels, given.spatial, given.flat) == (made.channels, made.spatial, made.flat)


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_refuses_another_representation_another_layout_and_other_channels(name: str) -> None:
    layer, taken, _ = LAYERS[name]
    others = [FieldType(OTHER, 3, taken.spatial, flat=taken.flat)]
    if name != "PointwiseNonlinearity":
        others.append(FieldType(taken.rho, 3, taken.spatial, flat=not taken.flat))
    if name not in ANY_CHANNELS:
        others.append(FieldType(taken.rho, 4, taken.spatial, flat=taken.flat))
    for other in others:
        with pytest.raises(SymcheckError, match="the types do not fit") as refused:
            layer.propagate(other)
        assert str(refused.value.where).startswith(name)
        assert f"expected {taken}, got {other}." in refused.value.problem


@pytest.mark.parametrize("rho", [SIGNED, reps.rotation(C3)], ids=lambda rho: rho.name)
@pytest.mark.parametrize("pixels", [(), (5, 4)])
def test_batch_normalisation_of_lengths_follows_its_formula(rho: reps.Representation, pixels: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    norm = EquivariantBatchNorm(rho, 3, eps=0.5, momentum=0.25).double()
    nn.init.normal_(norm.weight)
    x = 2 * torch.randn(16, 3, rho.dim, *pixels, dtype=torch.float64)
    shape = (1, 3, 1, *(1,) * len(pixels))
    square = x.movedim(1, 0).flatten(1).square().mean(dim=1)
    torch.testing.assert_close(norm(x), x * ((square + 0.5).rsqrt() * norm.weight).reshape(shape))
    torch.testing.assert_close(norm.running_square, 0.75 * torch.ones(3).double() + 0.25 * square)
    norm.eval()
    kept = norm.running_square.clone()
    torch.testing.assert_close(norm(x), x * ((kept + 0.5).rsqrt() * norm.weight).reshape(shape))
    assert torch.equal(norm.running_square, kept)


@pytest.mark.parametrize("rho", [FOUR, SIGNED], ids=lambda rho: rho.name)
@pytest.mark.parametrize("pixels", [(), (5, 4)])
def test_layer_normalisation_follows_its_formula(rho: reps.Representation, pixels: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    norm = EquivariantLayerNorm(rho, 3, eps=0.5).double()
    for parameter in norm.parameters():
        nn.init.normal_(parameter)
    x = 1 + torch.randn(6, 3, rho.dim, *pixels, dtype=torch.float64)
    shape = (1, 3, 1, *(1,) * len(pixels))
    mean = x.flatten(1).mean(dim=1) if rho is FOUR else torch.zeros(6).double()
    centred = x - mean.reshape(6, 1, 1, *(1,) * len(pixels))
    square = centred.flatten(1).square().mean(dim=1).reshape(6, 1, 1, *(1,) * len(pixels))
    expected = centred * (square + 0.5).rsqrt() * norm.weight.reshape(shape)
    if norm.bias is not None:
        expected = expected + norm.bias.reshape(shape)
    assert (norm.bias is not None) == (rho is FOUR)
    torch.testing.assert_close(norm(x), expected)


@pytest.mark.parametrize(
    "make",
    [
        lambda: EquivariantBatchNorm(FOUR, 3, eps=0.5, momentum=0.25),
        lambda: EquivariantBatchNorm(SIGNED, 3, eps=0.5, momentum=0.25),
        lambda: EquivariantLayerNorm(FOUR, 3, eps=0.5),
    ],
)
def test_a_plain_copy_has_the_trained_weights_and_biases(make: Callable[[], nn.Module]) -> None:
    torch.manual_seed(0)
    norm = make().double()
    for parameter in norm.parameters():
        nn.init.normal_(parameter)
    dim = norm.rho.dim
    norm(3 + torch.randn(16, 3, dim).double())
    norm.eval()
    x = 1 + torch.randn(6, 3, dim).double()
    plain = norm.materialize()
    assert not plain.training
    torch.testing.assert_close(plain(x.flatten(1)).unflatten(1, (3, dim)), norm(x))
    assert all(not torch.equal(p, torch.zeros_like(p)) for p in norm.parameters())
    assert getattr(plain, "momentum", 0.25) == 0.25


def test_norms_and_gates_follow_their_formulas() -> None:
    torch.manual_seed(0)
    x = torch.randn(5, 3, 5, dtype=torch.float64)
    scalar, vector = x[:, :, :1], x[:, :, 1:]
    torch.testing.assert_close(GATE(x), vector / (1 + torch.exp(-scalar)))
    norm = NormNonlinearity(FOUR, 3).double()
    nn.init.normal_(norm.bias)
    length = vector.norm(dim=2, keepdim=True)
    expected = vector / length * (length + norm.bias[None, :, None]).clamp_min(0)
    torch.testing.assert_close(norm(vector), expected)


class Pooled(nn.Module):
    """A user's network that pools pixels and keeps its channels apart."""

    def __init__(self, pool: nn.Module) -> None:
        super().__init__()
        self.pool = pool

    def forward(self, x: Tensor) -> Tensor:
        """The pooled channels and components."""
        pooled: Tensor = self.pool(x)
        return pooled


@pytest.mark.parametrize(("make", "oracle"), [(GlobalMaxPool, torch.amax), (GlobalAveragePool, torch.mean)])
def test_a_pool_inside_a_users_network_keeps_channels_apart(
    make: type[nn.Module], oracle: Callable[..., Tensor]
) -> None:
    x = torch.randn(2, 3, 4, 6, 5)
    dense = to_dense(Pooled(make()))
    torch.testing.assert_close(dense(x), oracle(x, dim=(-2, -1)))
    torch.testing.assert_close(make().materialize()(x.flatten(1, 2)), oracle(x, dim=(-2, -1)).flatten(1))


@pytest.mark.parametrize(
    ("body", "heads"),
    [
        (EquivariantSequential(BasisLinear(FOUR, FOUR, 1, 2)), {}),
        (GlobalMaxPool(), {"value": BasisLinear(FOUR, FOUR, 1, 1)}),
    ],
)
def test_heads_need_a_body_that_knows_its_input_and_one_of_them(
    body: EquivariantModule, heads: dict[str, EquivariantModule]
) -> None:
    with pytest.raises(SymcheckError, match="the body must declare its input type, and at least one head is needed"):
        EquivariantHeads(body, heads)


@pytest.mark.parametrize("lead", [(), (7,), (7, 2), (2, 1, 3)])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("grad", [True, False])
def test_a_linear_layer_maps_every_leading_shape_as_its_plain_copy(
    lead: tuple[int, ...], bias: bool, grad: bool
) -> None:
    torch.manual_seed(0)
    layer = BasisLinear(FOUR, reps.direct_sum(FOUR, SIGNED), 3, 2, bias=bias)
    for parameter in layer.parameters():
        nn.init.normal_(parameter)
    x = torch.randn(*lead, 3, 4)
    with torch.set_grad_enabled(grad):
        torch.testing.assert_close(layer(x).flatten(-2), layer.materialize()(x.flatten(-2)), rtol=1e-5, atol=1e-5)
    with torch.set_grad_enabled(grad), pytest.raises(SymcheckError, match=r"expected an input of shape \(\.\.\., 3, 4"):
        layer(torch.randn(*lead, 4, 3))


@pytest.mark.parametrize("bias", [True, False])
def test_a_plain_copy_says_what_it_takes_and_makes(bias: bool) -> None:
    linear = BasisLinear(FOUR, SIGNED, 3, 5, bias=bias).materialize()
    assert (linear.in_features, linear.out_features) == (12, 10) == linear.weight.shape[::-1]
    image = BasisConv2d(FOUR, FOUR, 3, 5, (3, 3), spatial=list(MOVES), stride=2, padding=1, bias=bias).eval()
    conv = image.materialize()
    assert (conv.in_channels, conv.out_channels) == (12, 20) == (conv.weight.shape[1], conv.weight.shape[0])
    assert (conv.kernel_size, conv.stride, conv.padding) == ((3, 3), (2, 2), (1, 1))
    assert (conv.bias is not None) == bias
    assert not conv.training
