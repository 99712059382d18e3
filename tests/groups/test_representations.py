"""Representations: the homomorphism law, characters, and what is refused."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pytest

from symcheck import groups
from symcheck import representations as reps
from symcheck.errors import RepresentationError, SymcheckError
from symcheck.groups.group import Group
from symcheck.representations.representation import Representation, same

C2, C3, C4, D4, S3, S4, B3, Q8 = (groups.named(n) for n in ("C2", "C3", "C4", "D4", "S3", "S4", "B3", "Q8"))
TURN = np.array([[np.cos(2 * np.pi / 3), -np.sin(2 * np.pi / 3)], [np.sin(2 * np.pi / 3), np.cos(2 * np.pi / 3)]])
SHEAR = np.array([[1.0, 100.0], [0.0, 1.0]])
SHEARED = reps.from_matrices(C3, [SHEAR @ TURN @ np.linalg.inv(SHEAR)])
HALF = groups.subgroup(D4, [D4.generators[1]])
CATALOGUE: list[Representation] = [
    reps.trivial(C4, 3),
    reps.sign(S4),
    reps.sign(D4),
    reps.regular(C4),
    reps.regular(S3),
    reps.regular(Q8),
    reps.regular(groups.product(C2, S3)),
    reps.permutation(C4, [[0, 2, 3, 4, 1]]),
    reps.signed_permutation(C2, [["-1", "+3", "+2"]]),
    reps.standard(S4),
    reps.standard(D4),
    reps.standard(B3),
    reps.standard(groups.alternating(4)),
    reps.rotation(C3),
    reps.rotation(groups.dihedral(5), 2),
    SHEARED,
    reps.dual(SHEARED),
    reps.image_grid(D4, 3, 3, ["rot90", "flip_lr"]),
    reps.with_grid(reps.regular(C4), 4, 4, ["rot90"]),
    reps.tensor(reps.standard(S4), reps.natural(S4)),
    reps.direct_sum(reps.sign(S4), reps.standard(S4)),
    reps.induce(reps.sign(HALF, [-1]), to=D4),
    reps.induce(reps.rotation(C3), to=C3),
    reps.restrict(reps.standard(D4), to=HALF),
    reps.from_matrices(C3, [TURN.astype(np.float32)]),
]
IDS = [rho.name for rho in CATALOGUE]


@pytest.mark.parametrize("rho", CATALOGUE, ids=IDS)
def test_the_matrix_of_a_product_is_the_product_of_the_matrices(rho: Representation) -> None:
    elements = rho.group.elements()
    scale = max(float(np.abs(rho.matrix(g)).max()) for g in elements)
    for g in elements[:12]:
        for h in elements[-12:]:
            # Products of dim terms of size scale^2 round by a few ulp each.
            assert np.abs(rho.matrix(g * h) - rho.matrix(g) @ rho.matrix(h)).max() <= 1e-13 * rho.dim * scale**2


@pytest.mark.parametrize("rho", CATALOGUE, ids=IDS)
def test_characters_are_the_traces_and_constant_on_classes(rho: Representation) -> None:
    traces = [float(np.trace(rho.matrix(g))) for g in rho.group.elements()]
    np.testing.assert_allclose(rho.characters(), traces, atol=1e-9)  # traces of entries up to 1e4: 1e4 ulp
    np.testing.assert_allclose([rho.character(g) for g in rho.group.elements()], traces, atol=1e-9)
    for members in rho.group.conjugacy_classes():
        assert np.ptp([rho.character(g) for g in members]) <= 1e-9


@pytest.mark.parametrize("rho", CATALOGUE, ids=IDS)
def test_the_character_has_an_integer_norm(rho: Representation) -> None:
    norm = reps.inner_product(rho, rho)
    assert norm == pytest.approx(round(norm), abs=1e-9)
    assert round(norm) >= 1


@pytest.mark.parametrize(
    ("rho", "norm"),
    [
        (reps.standard(S4), 1),
        (reps.standard(D4), 1),
        (reps.standard(B3), 1),
        (reps.rotation(C3), 2),
        (reps.regular(Q8), 8),
        (reps.natural(S4), 2),
    ],
)
def test_irreducible_representations_have_norm_one_and_complex_ones_two(rho: Representation, norm: int) -> None:
    assert reps.intertwiner_dimension(rho, rho) == norm


@pytest.mark.parametrize("combine", [reps.inner_product, reps.intertwiner_dimension, reps.multiplicity])
def test_characters_of_two_groups_of_one_order_are_not_compared(combine: Callable[..., float]) -> None:
    with pytest.raises(RepresentationError, match=r"same group as first: got 'C4'.*'C2 x C2'"):
        combine(reps.regular(C4), reps.regular(groups.product(C2, C2)))


def test_multiplicities_of_a_regular_representation_are_the_dimensions() -> None:
    assert reps.multiplicity(reps.standard(S4), reps.regular(S4)) == 3
    assert reps.multiplicity(reps.sign(S4), reps.regular(S4)) == 1
    assert reps.multiplicity(reps.rotation(C3), reps.regular(C3)) == 1


def test_frobenius_reciprocity_holds() -> None:
    rho = reps.sign(HALF, [-1])
    for sigma in (reps.standard(D4), reps.regular(D4), reps.sign(D4), reps.trivial(D4)):
        restricted = reps.restrict(sigma, to=HALF)
        assert reps.inner_product(reps.induce(rho, to=D4), sigma) == pytest.approx(reps.inner_product(rho, restricted))


def test_rot90_moves_pixels_as_numpy_does() -> None:
    image = np.random.default_rng(0).normal(size=(5, 5))
    operators = {"rot90": np.rot90(image), "flip_ud": image[::-1], "flip_lr": image[:, ::-1], "transpose": image.T}
    orders = {"rot90": C4, "flip_ud": C2, "flip_lr": C2, "transpose": C2}
    for name, expected in operators.items():
        rho = reps.image_grid(orders[name], 5, 5, [name])
        moved = rho.matrix(rho.group.generators[0]) @ image.ravel()
        np.testing.assert_array_equal(moved.reshape(5, 5), expected)


def test_a_permutation_sends_component_i_to_p_of_i() -> None:
    rho = reps.permutation(C3, [[1, 2, 0]])
    np.testing.assert_array_equal(rho.matrix(C3.generators[0]) @ np.array([10, 20, 30]), [30, 10, 20])


def test_matrices_stored_in_float32_become_a_representation_in_float64() -> None:
    rho = reps.from_matrices(C3, [TURN.astype(np.float32)])
    cube = np.linalg.matrix_power(rho.matrix(C3.generators[0]), 3)
    assert np.abs(cube - np.eye(2)).max() < 1e-14  # three products of entries below 1
    assert np.abs(rho.matrix(C3.generators[0]) - TURN).max() < 1e-7  # float32 entries


def test_nearly_integer_matrices_become_exact_signed_permutations() -> None:
    quarter = np.array([[np.cos(np.pi / 2), -1.0], [1.0, np.cos(np.pi / 2)]])
    rho = reps.from_matrices(C4, [quarter])
    assert isinstance(rho, reps.SignedPermutationRepresentation)
    assert rho.matrix(C4.generators[0]).dtype == np.int64


def test_representations_are_the_same_by_content_and_not_by_name() -> None:
    assert same(reps.regular(C2), reps.permutation(C2, [[1, 0]]))
    assert not same(reps.regular(C4), reps.permutation(C4, [[3, 0, 1, 2]]))
    assert not same(reps.trivial(C2), reps.trivial(C3))


def test_a_zero_has_no_sign_in_the_content_of_a_representation() -> None:
    zeros = [np.block([[TURN, sign * np.zeros((2, 1))], [sign * np.zeros((1, 2)), np.eye(1)]]) for sign in (1.0, -1.0)]
    plus, minus = (reps.MatrixRepresentation(C3, [m], name="turn and one") for m in zeros)
    assert same(plus, minus)
    assert plus.content == minus.content
    assert plus.portable_content == minus.portable_content


def test_tensors_of_a_huge_group_take_no_enumeration() -> None:
    start = time.perf_counter()
    S30 = groups.symmetric(30)
    pairs = reps.tensor(reps.natural(S30), reps.natural(S30))
    reps.permutation(S30, [g.images for g in S30.generators])
    assert pairs.dim == 900
    assert time.perf_counter() - start < 2  # measured 0.02 s


def test_images_of_a_huge_group_without_presentation_are_checked_by_its_order() -> None:
    swap, cycle = [1, 0, *range(2, 10)], [*range(1, 10), 0]
    G = groups.from_permutations([swap, cycle])
    assert reps.permutation(G, [swap, cycle]).dim == 10
    assert reps.sign(G).dim == 1
    with pytest.raises(RepresentationError, match="pairs"):
        reps.permutation(G, [cycle, swap])


def test_one_matrix_of_few_digits_may_be_singular_beside_others_of_many() -> None:
    # The smallest singular value is a millionth of the largest entry: within 100 units of float32, not of float64.
    V4, far = groups.klein_four(), np.array([[1.0, 1000.0], [0.0, -1.0]])
    assert reps.from_matrices(V4, [np.eye(2), far]).dim == 2
    for matrices in ([np.eye(2), far.astype(np.float32)], [far.astype(np.float32), np.eye(2)]):
        with pytest.raises(RepresentationError, match="singular"):
            reps.from_matrices(V4, matrices)


def _refused(build: object, message: str) -> None:
    with pytest.raises(SymcheckError, match=message):
        build()  # type: ignore[operator]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            lambda: reps.from_matrices(C2, [[[0, -1], [1, 0]]]),
            r"not a representation of C2: the relation r\^2 = e.* by 2",
        ),
        (lambda: reps.from_matrices(C4, [[[0, 0, 1], [1, 0, 0], [0, 1, 0]]]), r"the relation r\^4 = e fails"),
        (lambda: reps.from_matrices(C4, [TURN]), r"r\^4 = e fails.*rounding allows"),
        (lambda: reps.from_matrices(C3, [TURN + 1e-6]), r"r\^3 = e fails: .* by \d"),
        (lambda: reps.from_matrices(D4, [np.eye(2), [[1, 1], [0, 1]]]), r"s\^2 = e fails"),
        (lambda: reps.from_matrices(C2, [[[1, 0], [0, 0]]]), "singular"),
        (lambda: reps.from_matrices(C2, [np.zeros((2, 2))]), "singular"),
        (lambda: reps.from_matrices(C2, [[[np.nan]]]), "finite"),
        (lambda: reps.from_matrices(C2, [[[1, 0]]]), "square"),
        (lambda: reps.from_matrices(C2, [[[1j]]]), "real numbers"),
        (lambda: reps.from_matrices(C2, []), "one entry per generator"),
        (lambda: reps.from_matrices(D4, [np.eye(2)]), r"one entry per generator of D4 \(2: r, s\), got 1"),
        (lambda: reps.from_matrices(D4, [np.eye(2), np.eye(3)]), "same dimension"),
        (lambda: reps.permutation(C2, [[0, 0]]), "expected a permutation of 0..1"),
        (lambda: reps.permutation(C2, [[0.0, 1.0]]), "expected a permutation"),  # type: ignore[list-item]
        (lambda: reps.permutation(C2, [[1, 2, 0]]), r"r\^2 = e fails"),
        (lambda: reps.signed_permutation(C2, [[1, 1, 2]]), "use each of 1..3 once"),
        (lambda: reps.signed_permutation(C2, [["a"]]), "signed one-based"),
        (lambda: reps.signed_permutation(C2, [["-1", "-1"]]), "expected images that use each of 1..2 once"),
        (lambda: reps.signed_permutation(C2, [3]), "one entry per generator"),  # type: ignore[list-item]
        (lambda: reps.regular(4), "expected a group, got 4"),  # type: ignore[arg-type]
        (lambda: reps.from_matrices(reps.regular(C2), [[[1]]]), "expected a group"),  # type: ignore[arg-type]
        (lambda: reps.dual(3), "expected a representation, got 3"),  # type: ignore[arg-type]
        (lambda: reps.direct_sum(C2), "expected a representation"),  # type: ignore[arg-type]
        (lambda: reps.restrict(reps.regular(C4), to=4), "expected a group"),  # type: ignore[arg-type]
        (lambda: reps.trivial(C2, 0), "positive dimension"),
        (lambda: reps.sign(C3, [-1]), r"r\^3 = e fails"),
        (lambda: reps.sign(C2, [2]), "1 or -1"),
        (lambda: reps.rotation(S3), "cyclic or dihedral"),
        (lambda: reps.standard(groups.symmetric(1)), "no standard"),
        (lambda: reps.image_grid(C4, 3, 4, ["rot90"]), "must be square; got 3 x 4"),
        (lambda: reps.image_grid(C2, 3, 3, ["rot90"]), r"r\^2 = e fails"),
        (lambda: reps.image_grid(C2, 3, 3, ["rotate"]), "no spatial operator"),
        (lambda: reps.image_grid(C2, 0, 3, ["flip_ud"]), "positive height"),
        (lambda: reps.image_grid(C4, 3, 3, "rot90"), "Write"),
        (lambda: reps.tensor(reps.regular(C2), reps.regular(C3)), "same group"),
        (lambda: reps.direct_sum(), "at least one"),
        (lambda: reps.restrict(reps.regular(C4), to=D4), "not an element"),
        (lambda: reps.induce(reps.regular(C3), to=D4), "not a subgroup"),
    ],
)
def test_what_is_no_representation_is_refused(build: object, message: str) -> None:
    _refused(build, message)


def test_a_relation_between_generators_is_checked_and_not_only_their_orders() -> None:
    abelian: Group = groups.product(C2, C2)
    a, b = [[1, 0, 2], [0, 2, 1]]
    _refused(lambda: reps.permutation(abelian, [a, b]), r"r1 r2 r1 r2 = e fails")
