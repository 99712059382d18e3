"""Elements of continuous groups by their matrices, and representations that are written as text."""

from __future__ import annotations

import math

import numpy as np
import pytest

from symcheck.errors import GroupError, RepresentationError
from symcheck.groups import cyclic, dihedral, o, so, symmetric
from symcheck.groups.lie_element import SAME, LieElement
from symcheck.representations.lie_constructors import vector
from symcheck.representations.named_parts import named_representation
from symcheck.representations.restriction import restrict_to_finite, usual_images


def turn(angle: float) -> np.ndarray:
    return np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])


SWAP = cyclic(2).generators[0]


def test_elements_are_multiplied_inverted_and_raised_part_by_part() -> None:
    g, h = LieElement([turn(0.3), SWAP]), LieElement([turn(0.5), SWAP])
    product = g * h
    np.testing.assert_allclose(np.asarray(product.parts[0]), turn(0.8), atol=1e-15)
    assert product.parts[1] == SWAP * SWAP
    assert (g * ~g).is_identity
    assert (~g * g).is_identity
    assert g**3 == g * g * g
    assert g**-2 == ~g * ~g
    assert (g**0).is_identity
    assert not g.is_identity
    assert not LieElement([np.eye(2), SWAP]).is_identity
    shear = LieElement([np.array([[1.0, 1.0], [0.0, 1.0]])])
    assert shear * g.__class__([turn(0.3)]) != g.__class__([turn(0.3)]) * shear


def test_elements_are_equal_up_to_rounding_and_no_further() -> None:
    g = LieElement([turn(0.3), SWAP])
    for off, equal in ((0.5 * SAME, True), (2 * SAME, False)):
        moved = turn(0.3)
        moved[0, 1] += off
        assert (LieElement([moved, SWAP]) == g) is equal
        identity = np.eye(2)
        identity[1, 0] -= off
        assert LieElement([identity]).is_identity is equal
    other = LieElement([turn(0.3), SWAP * SWAP])
    assert g != other
    assert g != LieElement([turn(0.3)])
    assert g != turn(0.3)
    assert hash(g) == hash(LieElement([turn(0.9), SWAP])) != hash(other)
    assert repr(LieElement([np.eye(2)])) == "LieElement([[1. 0.] [0. 1.]])"


def test_elements_of_different_groups_have_no_product_and_no_order() -> None:
    g = LieElement([turn(0.3)])
    for other in (LieElement([np.eye(3)]), LieElement([SWAP]), SWAP, LieElement([turn(0.1), SWAP])):
        with pytest.raises(GroupError, match="both factors must be elements of the same group"):
            g * other
    with pytest.raises(GroupError, match="order"):
        _ = g.order
    with pytest.raises(TypeError):
        g * 3  # type: ignore[operator]


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8])
def test_usual_images_of_finite_groups_turn_by_their_order(n: int) -> None:
    (rotation,) = usual_images(so(2), cyclic(n))
    np.testing.assert_allclose(vector(so(2)).matrix(rotation), turn(2 * math.pi / n), atol=1e-12)
    restricted = restrict_to_finite(vector(so(2)), cyclic(n), None)
    assert np.allclose(np.linalg.matrix_power(restricted.matrix(cyclic(n).generators[0]), n), np.eye(2))
    if n > 2:
        images = usual_images(o(2), dihedral(n))
        assert len(images) == 2
        determinants = [round(float(np.linalg.det(vector(o(2)).matrix(g)))) for g in images]
        assert determinants == [1, -1]
    assert len(usual_images(o(2), cyclic(n))) == 1


def test_restrictions_without_usual_images_name_what_is_missing() -> None:
    for group, to in ((so(2), dihedral(3)), (so(3), cyclic(4)), (so(2), symmetric(3))):
        with pytest.raises(RepresentationError, match=r"the elements of .* cannot be determined"):
            usual_images(group, to)
    with pytest.raises(RepresentationError, match=r"expected a finite subgroup, got SO\(2\)"):
        restrict_to_finite(vector(so(2)), so(2), None)
    g = so(2).exp(0, math.pi / 2)
    assert restrict_to_finite(vector(so(2)), cyclic(4), [g]).dim == 2
    for images in ([], [g, g], [SWAP], [so(3).exp(0, 1.0)]):
        with pytest.raises(RepresentationError, match="expected one element of"):
            restrict_to_finite(vector(so(2)), cyclic(4), images)
    with pytest.raises(RepresentationError):
        restrict_to_finite(vector(so(2)), cyclic(3), [g])  # the relation does not hold


@pytest.mark.parametrize(
    ("text", "dim"),
    [("scalar", 1), ("vector", 3), ("2*vector + 3*scalar + axial", 12), ("tensor(2)", 9), ("tensor(0)", 1),
     ("irrep(2)", 5), ("2 * irrep(1)+pseudoscalar", 7), ("2x0e + 1x1o", 5), ("1e", 3), ("3x2o", 15)],
)  # fmt: skip
def test_parts_are_read_with_their_multiplicities(text: str, dim: int) -> None:
    made = named_representation(o(3), text)
    assert (made.dim, made.name) == (dim, " + ".join(piece.strip() for piece in text.split("+")))


def test_parts_behave_under_the_inversion_as_their_parity_says() -> None:
    inversion = LieElement([-np.eye(3)])
    signs = {"scalar": 1, "pseudoscalar": -1, "vector": -1, "axial": 1, "tensor(2)": 1, "tensor(3)": -1, "0e": 1,
             "0o": -1, "1e": 1, "1o": -1, "2e": 1, "2o": -1}  # fmt: skip
    for text, sign in signs.items():
        made = named_representation(o(3), text)
        np.testing.assert_allclose(made.matrix(inversion), sign * np.eye(made.dim), atol=1e-9)
    order = named_representation(o(3), "vector + scalar").matrix(inversion)
    np.testing.assert_allclose(np.diag(order), [-1, -1, -1, 1], atol=1e-9)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("vektor", "expected parts such as"),
        ("vector(2)", "expected parts such as"),
        ("irrep", "expected parts such as"),
        ("", "expected parts such as"),
        ("0*vector", "has no components"),
        ("3334*vector", "more than 10,000"),
        ("tensor(9)", "more than 10,000"),
        ("cube(2)", "no part is called 'cube'"),
        ("3 vector", "expected parts such as"),
    ],
)
def test_parts_that_cannot_be_read_are_named(text: str, message: str) -> None:
    with pytest.raises(RepresentationError, match=message):
        named_representation(o(3), text)
    assert named_representation(o(3), "3333*vector").dim == 9999


def test_e3nn_describes_rotations_in_space_only() -> None:
    with pytest.raises(RepresentationError, match="describe representations of rotations in space"):
        named_representation(o(2), "1x1o")
    assert named_representation(so(3), "1x1o + 1x1e").dim == 6
    with pytest.raises(RepresentationError, match="expected text"):
        named_representation(so(3), 3)  # type: ignore[arg-type]
