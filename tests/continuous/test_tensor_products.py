"""Tensor products of vectors are proved under turns; where a law is missing, samples decide and say which."""

import pytest
import torch

import symcheck as sc

TURNS = sc.Symmetry(
    "turn",
    sc.groups.so(3),
    observation={"representation": "2*vector + scalar"},
    action={"representation": "vector + 2*scalar"},
)


def coupling(spoilt=0.0):
    """Scalar and vector parts of v (x) w: inner and cross product, as constants (9, 5); one number planted."""
    table = torch.zeros(3, 3, 5, dtype=torch.float64)
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        table[i, j, k], table[j, i, k] = 1.0, -1.0
    for i in range(3):
        table[i, i, 3] = 1.0
    table[0, 0, 3] += spoilt
    return table


class TensorProduct(torch.nn.Module):
    """v (x) w through constants, gated by a scalar, beside zeros that are filled in as e3nn fills irreps."""

    def __init__(self, spoilt=0.0, last=torch.sigmoid):
        super().__init__()
        self.register_buffer("table", coupling(spoilt))
        self.last = last

    def forward(self, x):
        v, w, s = x[..., :3], x[..., 3:6], x[..., 6:]
        both = torch.einsum("bi,bj,ijk->bk", v, w, self.table.to(x.dtype))
        empty = torch.cat([torch.zeros_like(both[..., :4]), self.last(s)], -1)
        return both * self.last(s) + empty


def run(net):
    return sc.verify_net(net, TURNS, samples=200)["network_equivariance"]


def test_a_tensor_product_with_gates_is_proved():
    assert run(TensorProduct()).verdict == "proved"


def test_one_wrong_number_of_its_constants_is_refused():
    assert run(TensorProduct(1e-3)).verdict == "failed"


class Written(TensorProduct):
    """The same, written into a tensor in place."""

    def forward(self, x):
        filled = x.new_zeros(len(x), 5)
        filled.narrow(1, 0, 5).copy_(super().forward(x))
        return filled


def test_what_is_written_in_place_is_proved_and_refused_alike():
    assert run(Written()).verdict == "proved"
    assert run(Written(1e-3)).verdict == "failed"


@pytest.mark.long
def test_where_no_law_is_known_samples_decide_and_the_operator_is_named():
    result = run(TensorProduct(last=torch.special.bessel_j0))
    assert result.verdict == "passed"
    (note,) = [note for note in result.notes if note.code == "no_certificate"]
    assert "bessel_j0" in note.fields["reason"].fields["step"]
    assert run(TensorProduct(1e-3, last=torch.special.bessel_j0)).verdict == "failed"


@pytest.mark.slow
@pytest.mark.parametrize("double", [True, False])
def test_products_of_e3nn_are_proved_where_their_constants_are_exact(double):
    pytest.importorskip("e3nn")
    from e3nn import o3

    irreps = o3.Irreps("4x0e + 3x1o + 2x2e")
    torch.manual_seed(0)
    torch.set_default_dtype(torch.float64 if double else torch.float32)
    try:
        product = o3.FullyConnectedTensorProduct(irreps, irreps, "3x0e + 1x1o")
    finally:
        torch.set_default_dtype(torch.float32)

    class Squared(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.product = product

        def forward(self, x):
            return self.product(x, x)

    acts = {"observation": {"representation": str(irreps)}, "action": {"representation": "3x0e + 1x1o"}}
    result = sc.verify_net(Squared(), sc.Symmetry("turn", sc.groups.so(3), **acts), samples=200)
    # Its Clebsch-Gordan coefficients are stored in the type that it is built in: float32 rounds them.
    assert result["network_equivariance"].verdict == ("proved" if double else "passed")
