"""Representations of continuous groups, ranks from characters, bases against a brute-force null space."""

from __future__ import annotations

import time
from contextlib import nullcontext

import numpy as np
import pytest

import symcheck as sc
from symcheck.errors import GroupError, RepresentationError
from symcheck.intertwiners import intertwiner_basis, lie_build, lie_pairs
from symcheck.intertwiners.build import clear_cache
from symcheck.intertwiners.lie_pairs import solve_pair
from symcheck.representations.lie import LieRepresentation
from symcheck.representations.lie_checks import check_lie_relations
from symcheck.symmetry.spec import parse_group

G, R = sc.groups, sc.representations


def powers(group, k: int) -> LieRepresentation:
    return R.tensor(*[R.vector(group)] * k)


def brute_force_rank(a: LieRepresentation, b: LieRepresentation) -> int:
    pairs = [*zip(a.algebra, b.algebra, strict=True), *zip(a.matrices, b.matrices, strict=True)]
    equations = [np.kron(K, np.eye(a.dim)) - np.kron(np.eye(b.dim), L.T) for L, K in pairs]
    # Squares of singular values: whole numbers in these examples, or 0 up to rounding.
    return int((np.linalg.eigvalsh(sum(E.T @ E for E in equations)) < 1e-9).sum())


CASES = [
    # Ranks of tensor powers: diagrams of pairings (Brauer), with the determinant where reflections are missing.
    ("so(3)", "tensor(3)", "tensor(3)", 15),
    ("so(3)", "tensor(2)", "vector", 1),
    ("o(3)", "tensor(2)", "vector", 0),
    ("o(3)", "tensor(2)", "axial", 1),
    ("so(2)", "tensor(2)", "tensor(2)", 6),
    ("o(2)", "tensor(2)", "tensor(2)", 3),
    ("so(2)", "irrep(3)", "irrep(3)", 2),
    ("so(2)", "irrep(3)", "irrep(2)", 0),
    ("o(2)", "irrep(2)", "irrep(2)", 1),
    ("so(4)", "tensor(2)", "tensor(2)", 4),
    ("o(4)", "tensor(2)", "tensor(2)", 3),
    ("so(5)", "tensor(2)", "tensor(2)", 3),
    ("so(3)", "irrep(2) + irrep(1) + scalar", "tensor(2)", 3),
    ("o(3)", "2x0e + 1x1o + 1x2e", "1x1e + 1x2o + 1x2e", 1),
    ("o(2)", "vector + pseudoscalar", "vector + pseudoscalar + scalar", 2),
]


@pytest.mark.parametrize(("name", "source", "target", "rank"), CASES)
def test_ranks_are_those_of_characters_and_of_brute_force(name: str, source: str, target: str, rank: int) -> None:
    group = parse_group(name, "group")
    a, b = (R.named_representation(group, text) for text in (source, target))
    basis = intertwiner_basis(a, b)
    assert basis.rank == rank == R.intertwiner_dimension(a, b) == brute_force_rank(a, b)
    assert basis.certificate.predicted_rank == rank
    assert f"rank {rank} = {rank} by characters" in str(basis.certificate)
    assert basis.certificate.residual < 1e-12
    rows = basis.matrices().reshape(rank, basis.size)
    assert np.abs(rows @ rows.T - np.eye(rank)).max(initial=0) < 1e-12


@pytest.mark.parametrize("part", [0.9, 1.1])
def test_a_projection_may_move_the_basis_by_a_billionth_and_no_further(
    part: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = lie_pairs.PairSolutions.project
    monkeypatch.setattr(lie_pairs.PairSolutions, "project", lambda self, rows: honest(self, rows) + part * 1e-9)
    vector = R.vector(G.so(3))
    with nullcontext() if part < 1 else pytest.raises(RepresentationError, match="is not accurate enough"):
        assert lie_build.lie_basis(vector, vector).rank == 1


def test_products_with_finite_groups_count_both() -> None:
    group = G.product(G.cyclic(3), G.so(2))
    regular = R.inflate(R.regular(G.cyclic(3)), group, factor=0)
    a, b = R.tensor(regular, R.vector(group)), R.direct_sum(R.vector(group), regular)
    # C3's three characters each with the two of the turn; the trivial one of them once.
    assert (intertwiner_basis(a, a).rank, intertwiner_basis(a, b).rank) == (6, 2)
    assert brute_force_rank(a, a) == 6
    assert brute_force_rank(a, b) == 2


def test_two_factors_that_turn_are_told_apart() -> None:
    group = G.product(G.so(2), G.so(3))
    with pytest.raises(RepresentationError, match="factor"):
        R.vector(group)
    flat, space = R.vector(group, factor=0), R.vector(group, factor=1)
    assert intertwiner_basis(flat, flat).rank == 2
    assert intertwiner_basis(space, space).rank == 1
    assert intertwiner_basis(R.tensor(flat, space), R.tensor(flat, space)).rank == 2


def test_groups_that_are_not_compact_take_the_null_space() -> None:
    group = G.e(2)
    motion = R.from_algebra(group, group.factors[0].algebra_matrices, [group.factors[0].discrete[0]])
    basis = intertwiner_basis(motion, R.trivial(group))
    assert basis.rank == 1 == brute_force_rank(motion, R.trivial(group))
    assert basis.certificate.predicted_rank is None
    assert "rank 1 of the null space" in str(basis.certificate)
    assert basis.certificate.kind == "numeric"
    shifts = G.translations(1)
    galilean = R.from_algebra(shifts, [[[0, 1], [0, 0]]])
    assert intertwiner_basis(galilean, galilean).rank == 2
    weight = np.random.default_rng(0).normal(size=(2, 2))
    rows = intertwiner_basis(galilean, galilean).matrices().reshape(2, 4)
    assert np.allclose(intertwiner_basis(galilean, galilean).project(weight).ravel(), rows.T @ (rows @ weight.ravel()))


def test_a_skewed_basis_is_solved_and_projected_by_the_mean_over_the_group() -> None:
    group = G.o(3)
    change = np.random.default_rng(0).normal(size=(3, 3))
    back, polar = np.linalg.inv(change), R.vector(group)
    skewed = R.from_algebra(
        group, [change @ a @ back for a in polar.algebra], [change @ m @ back for m in polar.matrices]
    )
    basis = intertwiner_basis(skewed, polar)
    assert basis.rank == 1
    weight = np.random.default_rng(1).normal(size=(3, 3))
    # The mean over the group is the one projection that no element changes, before or after.
    g = group.sample(np.random.default_rng(2))
    moved = polar.matrix(~g) @ weight @ skewed.matrix(g)
    assert np.allclose(basis.project(moved), basis.project(weight))
    assert np.allclose(basis.project(basis.project(weight)), basis.project(weight))


def test_many_copies_are_kept_as_blocks() -> None:
    group = G.so(3)
    rho = R.direct_sum(*[R.vector(group)] * 64, *[R.trivial(group)] * 64)
    intertwiner_basis(R.vector(group), R.vector(group))  # imports and the compiler's first call
    clear_cache()
    started = time.perf_counter()
    basis = intertwiner_basis(rho, rho)
    assert basis.rank == 8_192
    assert time.perf_counter() - started < 0.2
    coefficients = np.random.default_rng(0).normal(size=basis.rank)
    weight = basis.combine(coefficients)
    assert np.allclose(basis.coefficients(weight), coefficients)
    turn = rho.matrix(group.exp(1, 0.7))
    assert np.abs(turn @ weight - weight @ turn).max() < 1e-12
    assert np.allclose(basis.project(weight), weight)


def test_controls_complete_the_space() -> None:
    group = G.so(3)
    a, b = R.vector(group), powers(group, 2)
    assert intertwiner_basis(a, b, kind="nullspace").rank == 26
    assert intertwiner_basis(a, b, kind="random").rank == 27


REFUSED = [
    (lambda: R.from_algebra(G.so(2), [[[0, -0.5], [0.5, 0]]]), "frequency 0.5"),
    (lambda: R.from_algebra(G.so(2), [[[0.1, -1], [1, 0.1]]]), "similar to a skew-symmetric"),
    (lambda: R.from_algebra(G.so(2), [[[0, 1], [0, 0]]]), "similar to a skew-symmetric"),
    (lambda: R.from_algebra(G.so(3), [np.zeros((3, 3)), *R.vector(G.so(3)).algebra[1:]]), r"\[turn_x, turn_y\]"),
    (lambda: R.from_algebra(G.o(2), [[[0, -1], [1, 0]]], [np.eye(2)]), "reflection turn"),
    (lambda: R.from_algebra(G.o(2), [[[0, -1], [1, 0]]], [np.diag([-2.0, 2.0])]), "reflection\\^2"),
    (lambda: R.from_algebra(G.translations(2), [[[0, 1], [0, 0]], [[0, 0], [1, 0]]]), r"\[shift_x, shift_y\] = 0"),
    (lambda: R.from_algebra(G.so(2), []), "expected 1 matrices"),
    (lambda: R.from_algebra(G.so(2), [[[0, np.nan], [1, 0]]]), "finite"),
    (lambda: R.from_algebra(G.so(2), [[[0, -1, 0], [1, 0, 0]]]), "square"),
    (lambda: R.irrep(G.so(2), 0), "frequency"),
    (lambda: R.irrep(G.so(4), 1), "two and three"),
    (lambda: R.irrep(G.so(3), 1, parity=1), "parity"),
    (lambda: R.regular(G.so(2)), "finite group"),
    (lambda: R.named_representation(G.so(3), "2*vektor"), "vektor"),
    (lambda: R.named_representation(G.so(3), "2**vector"), r"such as '2\*vector' or '1x1o', got '2\*\*vector'"),
    (lambda: R.named_representation(G.so(3), "vector(2)"), "such as"),
    (lambda: R.named_representation(G.so(3), "irrep"), "such as"),
    (lambda: R.named_representation(G.so(2), "1x1o"), "e3nn"),
    (lambda: R.named_representation(G.so(3), "0*vector"), "no components"),
    (lambda: intertwiner_basis(R.vector(G.so(3)), R.vector(G.o(3))), "same group"),
    (lambda: R.vector(G.cyclic(2)), "continuous group"),
]


@pytest.mark.parametrize(("make", "message"), REFUSED)
def test_what_is_no_representation_is_refused_by_name(make, message: str) -> None:
    with pytest.raises((RepresentationError, GroupError), match=message):
        make()


@pytest.mark.parametrize(("shears", "bound"), [((0, 10), 1e2), ((10, 0), 1e2), ((10, 10), 5e3)])
def test_no_projection_lengthens_by_more_than_its_certificate_says(shears: tuple[float, float], bound: float) -> None:
    quarter = np.array([[0.0, -1.0], [1.0, 0.0]])
    forms = [np.array([[1.0, shear], [0.0, 1.0]]) for shear in shears]
    group = G.so(2)
    a, b = (R.from_algebra(group, [form @ quarter @ np.linalg.inv(form)]) for form in forms)
    # Beside a summand of condition 1, which the norm is the larger of.
    basis = intertwiner_basis(R.direct_sum(a, R.vector(group)), R.direct_sum(b, R.vector(group)))
    units = np.eye(basis.size).reshape(-1, 4, 4)
    lengthens = float(np.linalg.norm(basis.project(units).reshape(basis.size, -1), 2))
    assert bound / 2 < lengthens <= basis.certificate.projection_norm * (1 + 1e-9)


@pytest.mark.parametrize("error", [-1, 1])
def test_another_number_of_solutions_than_characters_predict_is_refused(
    error: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rho = R.from_algebra(G.so(2), R.vector(G.so(2)).algebra)
    assert len(solve_pair(rho, rho).rows) == 2
    monkeypatch.setattr(lie_pairs, "lie_dimension", lambda a, b: 2 + error)
    with pytest.raises(RepresentationError, match=rf"rank 2, but characters predict {2 + error}: .* ill-conditioned"):
        solve_pair(rho, rho)


def test_spin_one_half_is_refused() -> None:
    sigma = [np.array([[0, 1], [1, 0]]), np.array([[0, -1j], [1j, 0]]), np.array([[1, 0], [0, -1]])]
    real = [np.block([[m.real, -m.imag], [m.imag, m.real]]) for m in (-0.5j * s for s in sigma)]
    with pytest.raises(RepresentationError, match=r"frequency 0\.5"):
        R.from_algebra(G.so(3), real)


@pytest.mark.parametrize("degree", [1, 2, 3, 4])
def test_irreps_of_space_turn_real_spherical_harmonics(degree: int) -> None:
    group = G.so(3)
    rho = R.irrep(group, degree)
    check_lie_relations(group, rho.algebra, [], accuracy=1e-12, name="irrep")
    g = group.sample(np.random.default_rng(degree))
    v = np.random.default_rng(7).normal(size=3)
    assert np.allclose(harmonics(degree, g.parts[0] @ v), rho.matrix(g) @ harmonics(degree, v))


def harmonics(degree: int, v: np.ndarray) -> np.ndarray:
    """Homogeneous harmonics of e3nn's order: y is the polar axis, l - m is sin(m phi) and l + m is cos(m phi)."""
    from numpy.polynomial import polynomial
    from numpy.polynomial.legendre import leg2poly

    x, y, z = v
    r = np.linalg.norm(v)
    derivative = leg2poly(np.eye(degree + 1)[degree])
    made = np.zeros(2 * degree + 1)
    for m in range(degree + 1):
        norm = np.sqrt(np.prod([1.0 / k for k in range(degree - m + 1, degree + m + 1)]) * (2 if m else 1))
        polar = norm * polynomial.polyval(y / r, derivative) * r ** (degree - m)
        around = (z + 1j * x) ** m
        made[degree + m] = polar * around.real
        if m:
            made[degree - m] = polar * around.imag
        derivative = polynomial.polyder(derivative)
    return made


def test_the_first_irrep_is_the_vector() -> None:
    for group in (G.so(2), G.o(2), G.so(3), G.o(3), G.e(2), G.e(3)):
        for a, b in zip(
            (*R.vector(group).algebra, *R.vector(group).matrices),
            (*R.irrep(group, 1).algebra, *R.irrep(group, 1).matrices),
            strict=True,
        ):
            assert np.allclose(a, b)


def test_matrices_multiply_as_elements_do() -> None:
    rng = np.random.default_rng(0)
    for group in (G.so(2), G.o(3), G.so(4), G.product(G.cyclic(2), G.so(3))):
        rho = R.direct_sum(R.vector(group), powers(group, 2), R.pseudovector(group))
        g, h = group.sample(rng), group.sample(rng)
        assert np.allclose(rho.matrix(g * h), rho.matrix(g) @ rho.matrix(h))
        assert np.allclose(rho.matrix(group.identity), np.eye(rho.dim))


def test_restriction_to_finite_subgroups() -> None:
    quarter = R.restrict(R.irrep(G.so(2), 2), to=G.cyclic(4))
    assert quarter.matrix(G.cyclic(4).generators[0]).tolist() == [[-1, 0], [0, -1]]
    assert R.restrict(R.vector(G.o(2)), to=G.dihedral(3)).dim == 2
    space, octahedral = G.so(3), G.symmetric(4)
    # The cube's rotations permute its four diagonals: a half turn about an edge swaps two, a quarter turn cycles all.
    quarter_z, quarter_x = space.exp(2, np.pi / 2), space.exp(0, np.pi / 2)
    edge = quarter_z * quarter_x * quarter_z
    cube = R.restrict(R.vector(space), to=octahedral, images=[edge, quarter_z])
    assert cube.dim == 3
    assert intertwiner_basis(cube, cube).rank == 1
    degree_two = R.restrict(R.irrep(space, 2), to=octahedral, images=[edge, quarter_z])
    # d orbitals split into two irreducible parts under the cube's rotations.
    assert intertwiner_basis(degree_two, degree_two).rank == 2
    with pytest.raises(RepresentationError, match="relation"):
        R.restrict(R.vector(space), to=octahedral, images=[quarter_z, edge])
    with pytest.raises(RepresentationError, match="images"):
        R.restrict(R.vector(space), to=octahedral)
