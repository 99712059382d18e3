"""Products by isotypic blocks: the same function and gradients as the dense product, from the width where they pay."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import torch
from torch.autograd import forward_ad

from symcheck import groups
from symcheck.intertwiners.build import intertwiner_basis
from symcheck.intertwiners.isotypic import isotypic_blocks
from symcheck.nn import BasisLinear
from symcheck.nn.block_product import FEWEST_INPUTS, BlockProduct
from symcheck.representations import direct_sum, from_matrices, natural, regular, signed_permutation, trivial
from symcheck.representations.representation import Representation

C2, C3, C4, D4, S3, S4 = (
    groups.cyclic(2), groups.cyclic(3), groups.cyclic(4), groups.dihedral(4), groups.symmetric(3), groups.symmetric(4),
)  # fmt: skip


@pytest.mark.parametrize(
    ("group", "products"), [(C2, 2), (C3, 5), (C4, 6), (groups.cyclic(8), 14), (D4, 12), (S3, 10), (S4, 64)], ids=str
)
def test_regular_features_take_the_sum_of_cubed_dimensions(group: groups.Group, products: int) -> None:
    basis = intertwiner_basis(regular(group), regular(group))
    blocks = isotypic_blocks(basis)
    assert blocks is not None
    assert sum(block.products for block in blocks) == products


def test_two_copies_of_complex_type_are_joined_by_complex_numbers() -> None:
    rho = direct_sum(regular(C3), regular(C3))
    blocks = isotypic_blocks(intertwiner_basis(rho, rho))
    assert blocks is not None
    (block,) = (block for block in blocks if block.width == 2)
    numbers = block.weights.reshape(2, 2, 2, 2, -1).transpose(0, 2, 4, 1, 3)
    turn = np.array([[0.0, 1.0], [-1.0, 0.0]])
    np.testing.assert_allclose(numbers @ turn, turn @ numbers, atol=1e-12)  # some units of rounding of entries up to 1
    assert np.abs(numbers).max() > 0.1


def _rotation(angle: float) -> Representation:
    c, s = np.cos(angle), np.sin(angle)
    return from_matrices(C3, [np.array([[c, -s], [s, c]])])


# x -> x + 1 and x -> 2x modulo 7: the trivial representation, and one of complex type in three complex dimensions.
ORDER_21 = natural(groups.from_permutations([[1, 2, 3, 4, 5, 6, 0], [0, 2, 4, 6, 1, 3, 5]]))
SIGN = signed_permutation(C2, [[-1, -1, -1, -1]])
PAIRS = {
    "regular C2": (regular(C2), regular(C2)),
    "regular D4": (regular(D4), regular(D4)),
    "regular S4": (regular(S4), regular(S4)),
    "signs to regular: the bias lies where no weight reaches": (SIGN, regular(C2)),
    "invariants among others": (direct_sum(regular(C4), trivial(C4, 2)), direct_sum(trivial(C4, 1), regular(C4))),
    "complex type, several copies": (
        direct_sum(_rotation(2 * np.pi / 3), regular(C3)), direct_sum(regular(C3), _rotation(-2 * np.pi / 3)),
    ),
    "complex type, several columns": (ORDER_21, ORDER_21),
}  # fmt: skip


@pytest.mark.parametrize("name", PAIRS)
def test_blocks_are_the_dense_product_with_its_gradients(name: str) -> None:
    torch.manual_seed(0)
    layer = BasisLinear(*PAIRS[name], 3, 2).double()
    with torch.no_grad():
        assert layer.bias_coefficients is not None
        layer.bias_coefficients.normal_()
    blocks = isotypic_blocks(layer.basis)
    assert blocks is not None
    product = BlockProduct(layer.basis, blocks, 3, 2)
    x = torch.randn(5, 7, 3, layer.basis.rho_in.dim, dtype=torch.float64, requires_grad=True)
    given = (x, *layer.parameters())
    dense, by_blocks = layer(x), product(x, layer.weight_coefficients, layer._expand_bias())
    assert dense.shape == by_blocks.shape
    assert torch.allclose(dense, by_blocks, rtol=0, atol=1e-12)
    y = torch.randn_like(dense)
    gradients = (torch.autograd.grad(output, given, y) for output in (dense, by_blocks))
    for wanted, actual in zip(*gradients, strict=True):
        assert torch.allclose(wanted, actual, rtol=0, atol=1e-11)


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")  # torch's own, of forward derivatives
def test_pairs_are_derived_twice_forward_and_in_batches_as_the_dense_product() -> None:
    layer = BasisLinear(regular(C2), regular(C2), 3, 2).double()
    blocks = isotypic_blocks(layer.basis)
    assert blocks is not None
    product = BlockProduct(layer.basis, blocks, 3, 2)
    assert product._pairs is not None
    given = (torch.randn(4, 3, 2).double(), layer.weight_coefficients.detach(), torch.randn(2).double())

    def by_blocks(x: torch.Tensor, coefficients: torch.Tensor, free: torch.Tensor) -> torch.Tensor:
        return product(x, coefficients, free[:, None].expand(2, 2).reshape(-1)).tanh()

    inputs = tuple(part.requires_grad_() for part in given)
    assert torch.autograd.gradcheck(by_blocks, inputs, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(by_blocks, inputs)
    tangents = tuple(torch.randn_like(part) for part in inputs)
    _, wanted = torch.autograd.functional.hvp(lambda *parts: by_blocks(*parts).sum(), inputs, tangents)
    with forward_ad.dual_level():
        duals = [forward_ad.make_dual(part, tangent) for part, tangent in zip(inputs, tangents, strict=True)]
        gradients = torch.autograd.grad(by_blocks(*duals).sum(), duals)
        for gradient, expected in zip(gradients, wanted, strict=True):
            assert torch.allclose(forward_ad.unpack_dual(gradient).tangent, expected, rtol=0, atol=1e-12)
    stacked = torch.randn(5, 4, 3, 2).double()
    mapped = torch.func.vmap(lambda x: by_blocks(x, *given[1:]))(stacked)
    assert torch.allclose(mapped, by_blocks(stacked, *given[1:]), rtol=0, atol=1e-12)
    assert torch.allclose(product(given[0], given[1], None), product(given[0], given[1], torch.zeros(4).double()))


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")
def test_gradients_of_pairs_have_tangents_and_come_in_batches() -> None:
    layer = BasisLinear(regular(C2), regular(C2), 3, 2).double()
    blocks = isotypic_blocks(layer.basis)
    assert blocks is not None
    product = BlockProduct(layer.basis, blocks, 3, 2)
    x, tangent, y = (torch.randn(4, channels, 2).double() for channels in (3, 3, 2))
    forms = {"dense": layer, "by blocks": lambda x: product(x, layer.weight_coefficients, layer._expand_bias())}
    tangents, batches = {}, {}
    for name, form in forms.items():
        with forward_ad.dual_level():
            loss = (form(forward_ad.make_dual(x, tangent)).tanh() * y).sum()
            (gradient,) = torch.autograd.grad(loss, layer.weight_coefficients)
            tangents[name] = forward_ad.unpack_dual(gradient).tangent
        several = torch.stack([y, -3.0 * y])
        batches[name] = torch.autograd.grad(form(x), layer.weight_coefficients, several, is_grads_batched=True)[0]
    assert torch.allclose(tangents["by blocks"], tangents["dense"], rtol=0, atol=1e-12)
    assert torch.allclose(batches["by blocks"], batches["dense"], rtol=0, atol=1e-12)


def test_what_has_no_blocks_stays_dense() -> None:
    shear = from_matrices(C2, [np.array([[1.0, 1.0], [0.0, -1.0]])])
    quaternions = regular(groups.quaternion())
    for rho in (shear, quaternions):
        assert isotypic_blocks(intertwiner_basis(rho, rho)) is None
    two = regular(C2)
    assert isotypic_blocks(intertwiner_basis(two, two, kind="nullspace")) is None
    assert BlockProduct.where_it_pays(intertwiner_basis(quaternions, quaternions), 64, 64) is None


def test_a_wide_layer_trains_by_blocks_and_answers_as_its_plain_layer() -> None:
    torch.manual_seed(0)
    two = regular(C2)
    assert BasisLinear(two, two, 64, 64)._by_blocks is None
    wide = BasisLinear(two, two, 192, 192)
    x = torch.randn(FEWEST_INPUTS, 192, 2)
    calls: list[torch.Size] = []

    class Counted(BlockProduct):
        def __call__(self, *given: torch.Tensor) -> torch.Tensor:
            calls.append(given[0].shape)
            return super().__call__(*given)

    assert wide._by_blocks is not None
    wide._by_blocks.__class__ = Counted
    trained = wide(x)
    assert calls == [x.shape]
    # Inference, few inputs and weights that are not trained take the dense product.
    with torch.no_grad():
        answer = wide(x)
    wide(x[:4])
    copied = copy.deepcopy(wide).requires_grad_(False)
    copied(x.requires_grad_())
    assert len(calls) == 1
    assert torch.allclose(trained, answer, rtol=0, atol=2e-5)
    assert torch.equal(trained, trained.contiguous())
    assert torch.allclose(wide(x.flip(-1)), trained.flip(-1), rtol=0, atol=2e-5)


def test_a_copy_of_a_wide_layer_is_trained_apart() -> None:
    two = regular(C2)
    wide = BasisLinear(two, two, 192, 192)
    x = torch.randn(FEWEST_INPUTS, 192, 2)
    wide(x)
    again = pickle.loads(pickle.dumps(wide)).double()
    assert torch.allclose(again(x.double()), wide(x).double(), rtol=0, atol=2e-5)
