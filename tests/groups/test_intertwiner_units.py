"""The parts of which bases are made, one by one, against brute force: orbits, projections, roots, blocks, pictures."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import cast

import numpy as np
import pytest

from symcheck import groups
from symcheck import representations as reps
from symcheck.errors import OptionError, RepresentationError, SymcheckError
from symcheck.groups.continuous import ContinuousGroup
from symcheck.intertwiners import build, conv_intertwiner_basis, intertwiner_basis, lie_build, lie_pairs, orbits
from symcheck.intertwiners.basis import Certificate
from symcheck.intertwiners.dense_basis import Complement, RandomRows, gaussian, orthonormal_rows
from symcheck.intertwiners.highest_weights import connected_intertwiners, simple_roots
from symcheck.intertwiners.isotypic import LARGEST, isotypic_blocks
from symcheck.intertwiners.lie_build import lie_basis
from symcheck.intertwiners.oblique import ObliqueProjection, SplitProjection, largest_entry, null_rows
from symcheck.intertwiners.orbit_basis import OrbitBasis, OrbitComplementBasis
from symcheck.intertwiners.reynolds import SUMMED_LIMIT, Reynolds, invariant_root, orthogonal_form, transversals
from symcheck.intertwiners.summary import HIDDEN_LIMIT, filter_table, layer_table, pictures
from symcheck.representations.lie import LieRepresentation
from symcheck.representations.lie_characters import torus
from symcheck.representations.representation import Representation
from symcheck.representations.signed_images import SignedImages

C1, C2, C3, C4, D4, S3, S4, Q8 = (groups.named(n) for n in ("C1", "C2", "C3", "C4", "D4", "S3", "S4", "Q8"))
SHEAR = np.array([[1.0, 3.0], [0.0, 2.0]])
TURN = np.asarray(reps.rotation(C3).generator_matrices[0])
SHEARED = reps.from_matrices(C3, [SHEAR @ TURN @ np.linalg.inv(SHEAR)])


def random_images(rng: np.random.Generator, dim: int, *, signed: bool = True) -> SignedImages:
    sign = rng.choice([-1, 1], size=dim) if signed else np.ones(dim, dtype=int)
    return SignedImages(rng.permutation(dim), sign)


def matrix(images: SignedImages) -> np.ndarray:
    """e_j -> sign_j e_index(j)."""
    made = np.zeros((images.dim, images.dim))
    made[images.index, np.arange(images.dim)] = images.sign
    return made


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("dim_out", "dim_in"), [(1, 1), (2, 3), (4, 2), (5, 5)])
def test_the_image_of_an_entry_is_the_product_of_both_images(dim_out: int, dim_in: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    K, L = random_images(rng, dim_out), random_images(rng, dim_in)
    (image,) = orbits.entry_maps([K], [L])
    assert image.dim == dim_out * dim_in
    # K E L^-1 for every unit matrix E; L^-1 = L^T.
    np.testing.assert_array_equal(matrix(image), np.kron(matrix(K), matrix(L)))


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_orbits_are_the_fixed_vectors_of_all_maps(seed: int, signed: bool) -> None:
    rng = np.random.default_rng(seed)
    dim = int(rng.integers(1, 9))
    # Few cycles of mixed signs, so that some orbits vanish and some do not.
    maps = [random_images(rng, dim, signed=signed) for _ in range(int(rng.integers(1, 3)))]
    found = orbits.find(maps)
    equations = np.concatenate([matrix(m) - np.eye(dim) for m in maps])
    assert found.count == dim - np.linalg.matrix_rank(equations)
    rows = np.zeros((found.count, dim))
    for entry in range(dim):
        if found.sign[entry]:
            rows[found.index[entry], entry] = found.sign[entry]
        else:
            assert found.index[entry] == 0
    assert not (equations @ rows.T).any()
    first = [int(np.flatnonzero(row)[0]) for row in rows]
    assert first == sorted(first)  # numbered by their first entries, whose sign is 1
    assert all(row[k] == 1 for row, k in zip(rows, first, strict=True))
    assert found.sign.dtype == np.int8


def signed_pairs() -> list[tuple[Representation, Representation]]:
    mixed = reps.direct_sum(reps.signed_permutation(C2, [[-1, -1, 1]]), reps.permutation(C2, [[1, 0]]))
    return [(mixed, reps.permutation(C2, [[1, 0, 2]])), (reps.regular(S3), reps.natural(S3)), (mixed, reps.sign(C2))]


@pytest.mark.parametrize(("rho_in", "rho_out"), signed_pairs())
def test_the_complement_of_an_orbit_basis_completes_it_row_by_row(
    rho_in: Representation, rho_out: Representation
) -> None:
    kept, removed = (intertwiner_basis(rho_in, rho_out, kind=kind) for kind in build.KINDS[:2])
    assert isinstance(kept, OrbitBasis)
    assert isinstance(removed, OrbitComplementBasis)
    rows = np.concatenate([kept.matrices(), removed.matrices()]).reshape(-1, kept.size)
    gram = rows @ rows.T
    np.testing.assert_array_equal(gram, np.diag(np.concatenate([kept.squared_norms, removed.squared_norms])))
    assert len(rows) == kept.size == rho_in.dim * rho_out.dim
    # Helmert's rows: after the ones comes minus their number; a vanishing entry stands alone.
    for row in removed.matrices().reshape(-1, kept.size):
        places = np.flatnonzero(row)
        if len(places) == 1:
            assert kept.orbits.sign[places[0]] == 0
            assert row[places[0]] == 1
        else:
            sizes = row[places] * kept.orbits.sign[places]
            assert sizes.tolist() == [1] * (len(places) - 1) + [1 - len(places)]
            orbit = np.flatnonzero((kept.orbits.index == kept.orbits.index[places[0]]) & (kept.orbits.sign != 0))
            assert places.tolist() == orbit[: len(places)].tolist()


@pytest.mark.parametrize("kind", build.KINDS)
@pytest.mark.parametrize("lead", [(), (1,), (4,), (2, 3)])
@pytest.mark.parametrize(
    ("rho_in", "rho_out"),
    [*signed_pairs(), (reps.rotation(C3), reps.regular(C3)), (reps.rotation(C3), reps.trivial(C3)), (SHEARED, SHEARED)],
)
def test_leading_axes_are_carried_along(
    rho_in: Representation, rho_out: Representation, lead: tuple[int, ...], kind: build.Kind
) -> None:
    basis = intertwiner_basis(rho_in, rho_out, kind=kind)
    rng = np.random.default_rng(0)
    given, weights = rng.normal(size=(*lead, basis.rank)), rng.normal(size=(*lead, *basis.shape))
    made, found, projected = basis.combine(given), basis.coefficients(weights), basis.project(weights)
    assert made.shape == projected.shape == (*lead, *basis.shape)
    assert found.shape == (*lead, basis.rank)
    rows = basis.matrices().reshape(basis.rank, basis.size)
    for index in itertools.product(*map(range, lead)):
        # Sums of at most 25 terms of order 1.
        np.testing.assert_allclose(made[index].ravel(), given[index] @ rows, atol=1e-12)
        expected = rows @ weights[index].ravel() / basis.squared_norms
        np.testing.assert_allclose(found[index], expected, atol=1e-12)
        np.testing.assert_allclose(projected[index], basis.project(weights[index]), atol=1e-12)


@pytest.mark.parametrize("scale", [1e-2, 1.0, 1e4])
def test_a_projection_is_linear_in_the_size_of_the_weight(scale: float) -> None:
    for rho_in, rho_out in [(reps.regular(S3), reps.natural(S3)), (SHEARED, reps.rotation(C3))]:
        for kind in build.KINDS:
            basis = intertwiner_basis(rho_in, rho_out, kind=kind)
            weight = np.random.default_rng(1).normal(size=basis.shape)
            np.testing.assert_allclose(basis.project(scale * weight), scale * basis.project(weight), rtol=1e-9)


def test_a_basis_says_which_shape_it_expected() -> None:
    basis = intertwiner_basis(reps.regular(C3), reps.trivial(C3))
    for wrong in (np.zeros(3), np.zeros((3, 1)), np.zeros((1, 4)), np.zeros((1, 3, 1))):
        with pytest.raises(SymcheckError, match=r"\(\.\.\., 1, 3\), got " + str(wrong.shape).replace("(", r"\(")[:-1]):
            basis.project(wrong)
    for wrong in (np.zeros(2), np.zeros((1, 2)), np.float64(1)):
        with pytest.raises(SymcheckError, match=r"coefficients \(\.\.\., 1\)"):
            basis.combine(wrong)
    assert basis.combine(np.zeros((0, 1))).shape == (0, 1, 3)


@pytest.mark.parametrize(
    ("norm", "shown"), [(9.99, False), (10.0, True), (12.5, True)]
)  # below 10, an amplification takes no digit
def test_a_certificate_shows_the_amplification_from_ten_on(norm: float, shown: bool) -> None:
    text = str(Certificate("numeric", 0.0, 1e-12, 2, 2, "characters", projection_norm=norm))
    assert ("project amplifies rounding" in text) == shown
    assert "rank 2 = 2 by characters" in text
    assert Certificate("exact", 0.0, 0.0, 1, 1, "orbits").projection_norm == 1.0
    assert Certificate("exact", 0.0, 0.0, 1, 1, "orbits").span_error == 0.0
    assert Certificate("exact", 0.0, 0.0, 1, 1, "orbits").projection_residual == 0.0


@pytest.mark.parametrize(("rank", "size"), [(0, 3), (1, 3), (2, 5), (4, 4)])
def test_a_complement_is_orthogonal_to_its_rows_and_has_what_they_lack(rank: int, size: int) -> None:
    rows = orthonormal_rows(gaussian(rank, size, 5)) if rank else np.zeros((0, size))
    complement = Complement(rows)
    both = np.concatenate([rows, complement()])
    np.testing.assert_allclose(both @ both.T, np.eye(size), atol=1e-14)
    sample = np.random.default_rng(0).normal(size=(3, size))
    np.testing.assert_allclose(complement.project(sample), sample @ complement().T @ complement(), atol=1e-14)


def test_orthonormal_rows_are_those_of_gram_and_schmidt_with_a_positive_diagonal() -> None:
    samples = np.random.default_rng(2).normal(size=(4, 6))
    expected: list[np.ndarray] = []
    for sample in samples:
        rest = sample - sum((row * (row @ sample) for row in expected), np.zeros(6))
        expected.append(rest / np.linalg.norm(rest))
    np.testing.assert_allclose(orthonormal_rows(samples), expected, atol=1e-13)
    assert orthonormal_rows(samples).flags["C_CONTIGUOUS"]


def test_random_rows_are_orthonormal_and_differ_by_seed() -> None:
    first, second = RandomRows(5, 0)(), RandomRows(5, 1)()
    np.testing.assert_allclose(first @ first.T, np.eye(5), atol=1e-14)
    assert np.abs(first - second).max() > 0.1
    np.testing.assert_array_equal(first, RandomRows(5, 0)())
    assert gaussian(2, 3, 0).shape == (2, 3)


def test_generators_are_paired_one_by_one() -> None:
    one, two = reps.regular(C2), reps.regular(groups.product(C2, C2))
    with pytest.raises(ValueError, match="zip"):
        null_rows(one, two, 1)
    with pytest.raises(ValueError, match="zip"):
        orbits.entry_maps(
            [SignedImages(np.array([0]), np.array([1]))] * 2, [SignedImages(np.array([0]), np.array([1]))]
        )
    with pytest.raises(ValueError, match="zip"):
        build._residual(np.ones((1, 8)), one, two)


@pytest.mark.parametrize("dual", [False, True])
@pytest.mark.parametrize(
    ("rho_in", "rho_out", "rank"),
    [(SHEARED, reps.regular(C3), 2), (reps.regular(C3), SHEARED, 2), (SHEARED, reps.trivial(C3), 0)],
)
def test_null_rows_solve_the_equations_and_state_their_condition(
    rho_in: Representation, rho_out: Representation, rank: int, dual: bool
) -> None:
    rows, condition = null_rows(rho_in, rho_out, rank, dual=dual)
    (K,), (L,) = rho_out.generator_matrices, rho_in.generator_matrices
    K, L = (np.asarray(m, dtype=float).T if dual else np.asarray(m, dtype=float) for m in (K, L))
    assert rows.shape == (rank, rho_in.dim * rho_out.dim)
    for W in rows.reshape(-1, rho_out.dim, rho_in.dim):
        np.testing.assert_allclose(K @ W, W @ L, atol=1e-13)  # entries of at most 6
    np.testing.assert_allclose(rows @ rows.T, np.eye(rank), atol=1e-13)
    operator = [np.ravel(K @ E - E @ L) for E in np.eye(rows.shape[1]).reshape(-1, rho_out.dim, rho_in.dim)]
    sizes = np.linalg.svd(np.array(operator), compute_uv=False)
    assert condition == pytest.approx(sizes[0] / sizes[len(sizes) - rank - 1], rel=1e-6)


def test_every_generator_counts_alike_in_the_condition_of_the_equations() -> None:
    group = groups.product(C2, C2)
    skewed = SHEAR * np.array([[100.0], [1.0]])
    reflection = skewed @ np.diag([1.0, -1.0]) @ np.linalg.inv(skewed)
    rho = reps.MatrixRepresentation(group, [reflection, np.diag([1.0, 1.0])], name="one far", check=False)
    _, condition = null_rows(rho, rho, 2)
    scale = np.abs(reflection).max()
    K = np.kron(reflection, np.eye(2)) - np.kron(np.eye(2), reflection.T)
    sizes = np.linalg.svd(K / scale, compute_uv=False)
    assert condition == pytest.approx(sizes[0] / sizes[1], rel=1e-6)


def test_generators_of_unequal_size_are_scaled_one_by_one() -> None:
    group = groups.product(C2, C2)
    skewed = SHEAR * np.array([[100.0], [1.0]])
    far = skewed @ np.diag([1.0, -1.0]) @ np.linalg.inv(skewed)
    near = np.diag([1.0, -1.0])
    rho = reps.MatrixRepresentation(group, [far, near], name="far and near", check=False)
    _, condition = null_rows(rho, rho, 1)
    stacked = []
    for K in (far, near):
        stacked.append((np.kron(K, np.eye(2)) - np.kron(np.eye(2), K.T)) / np.abs(K).max())
    sizes = np.linalg.svd(np.concatenate(stacked), compute_uv=False)
    assert condition == pytest.approx(sizes[0] / sizes[-2], rel=1e-6)
    assert np.abs(far).max() > 10


def test_equations_without_a_constraint_have_condition_one() -> None:
    trivial = reps.MatrixRepresentation(C2, [np.eye(2)], name="identity")
    rows, condition = null_rows(trivial, trivial, 4)
    assert (rows.shape, condition) == ((4, 4), 1.0)


def test_the_largest_entry_is_at_least_one_and_ignores_signs() -> None:
    small = reps.MatrixRepresentation(C2, [np.array([[0.6, 0.8], [0.8, -0.6]])], name="small")
    assert largest_entry(small) == 1.0
    big = reps.MatrixRepresentation(C2, [np.array([[1.0, -7.0], [0.0, -1.0]])], name="big")
    assert largest_entry(big) == 7.0


def test_an_oblique_projection_keeps_its_rows_and_removes_what_the_dual_does_not_see() -> None:
    rng = np.random.default_rng(0)
    rows, dual = (orthonormal_rows(rng.normal(size=(2, 5))) for _ in range(2))
    projection = ObliqueProjection(rows, dual)
    np.testing.assert_allclose(projection(rows), rows, atol=1e-12)
    unseen = Complement(dual)()
    np.testing.assert_allclose(projection(unseen), 0, atol=1e-12)
    assert projection.norm == pytest.approx(np.linalg.norm(projection(np.eye(5)), 2), rel=1e-9)
    assert ObliqueProjection(rows[:0], dual[:0]).norm == 0.0
    split = SplitProjection(rows, projection)
    sample = rng.normal(size=(3, 5))
    np.testing.assert_allclose(split(sample), projection(sample), atol=1e-12)
    np.testing.assert_allclose(split(1e4 * rows), 1e4 * rows, atol=1e4 * 1e-14)


REYNOLDS = [
    (reps.regular(S3), reps.natural(S3)),
    (SHEARED, reps.rotation(C3)),
    (reps.rotation(C3), SHEARED),
    (SHEARED, SHEARED),
    (reps.standard(S4), reps.natural(S4)),
]


@pytest.mark.parametrize(("rho_in", "rho_out"), REYNOLDS)
def test_the_average_is_the_sum_over_all_elements(rho_in: Representation, rho_out: Representation) -> None:
    average = Reynolds.between(rho_in, rho_out)
    assert average.shape == (rho_out.dim, rho_in.dim)
    weights = np.random.default_rng(0).normal(size=(3, rho_out.dim, rho_in.dim))
    elements = rho_in.group.elements()
    expected = sum(rho_out.matrix(~g) @ weights @ rho_in.matrix(g) for g in elements) / len(elements)
    found = average(weights.reshape(3, -1))
    np.testing.assert_allclose(found, expected.reshape(3, -1), atol=1e-12)
    units = average(np.eye(average.shape[0] * average.shape[1]))
    assert np.linalg.norm(units, 2) <= average.norm_bound * (1 + 1e-9)
    conditions = [float(np.linalg.cond(r)) for r in (average.root_in, average.root_out) if r is not None]
    assert average.norm_bound == pytest.approx(np.prod(conditions))


@pytest.mark.parametrize("rho", [SHEARED, reps.regular(D4), reps.standard(S4)])
def test_the_orthogonal_form_is_orthogonal_and_similar(rho: Representation) -> None:
    form, root = orthogonal_form(rho)
    assert (root is None) == rho.is_orthogonal
    change = np.eye(rho.dim) if root is None else root
    for g in rho.group.elements():
        straight = np.asarray(form.matrix(g), dtype=float)
        np.testing.assert_allclose(straight @ straight.T, np.eye(rho.dim), atol=1e-12)
        np.testing.assert_allclose(straight @ change, change @ rho.matrix(g), atol=1e-12)


def test_the_invariant_root_is_that_of_the_mean_inner_product() -> None:
    inner = np.mean([np.asarray(SHEARED.matrix(g)).T @ SHEARED.matrix(g) for g in C3.elements()], axis=0)
    root = invariant_root(SHEARED)
    np.testing.assert_allclose(root.T @ root, inner, atol=1e-12)
    assert root[1, 0] == 0


@pytest.mark.parametrize(
    ("group", "single"), [(groups.cyclic(SUMMED_LIMIT), True), (groups.symmetric(7), False)], ids=["2000", "5040"]
)
def test_groups_of_up_to_2000_elements_are_summed_over_directly(group: groups.Group, single: bool) -> None:
    sets = transversals(group)
    assert (len(sets) == 1) == single
    assert np.prod([len(some) for some in sets]) == group.order


def test_products_of_the_transversals_are_all_elements() -> None:
    from symcheck.groups import large

    sets = large.transversals(S4.generators)
    made = {S4.identity}
    for some in sets:
        made = {a * b for a in made for b in some}
    assert made == set(S4.elements())
    assert np.prod([len(some) for some in sets]) == 24


def test_the_cache_keeps_the_most_recently_used_bases_and_no_large_one(monkeypatch: pytest.MonkeyPatch) -> None:
    build.clear_cache()
    monkeypatch.setattr(build, "CACHED", 2)
    rhos = [reps.trivial(C2, n) for n in (1, 2, 3)]
    first = intertwiner_basis(rhos[0], rhos[0])
    intertwiner_basis(rhos[1], rhos[1])
    assert intertwiner_basis(rhos[0], rhos[0]) is first  # now the most recently used
    second = intertwiner_basis(rhos[2], rhos[2])
    assert len(build._cache) == 2
    assert intertwiner_basis(rhos[0], rhos[0]) is first
    assert intertwiner_basis(rhos[2], rhos[2]) is second
    build.clear_cache()
    assert not build._cache
    monkeypatch.setattr(build, "CACHED_ENTRIES", 4)
    at_limit = intertwiner_basis(rhos[1], rhos[1])
    assert intertwiner_basis(rhos[1], rhos[1]) is at_limit
    beyond = intertwiner_basis(rhos[1], rhos[2])
    assert intertwiner_basis(rhos[1], rhos[2]) is not beyond
    build.clear_cache()


def test_the_seed_matters_to_random_bases_only() -> None:
    rho = reps.regular(C2)
    for kind in ("equivariant", "nullspace"):
        kind = cast(build.Kind, kind)
        assert intertwiner_basis(rho, rho, kind=kind, seed=3) is intertwiner_basis(rho, rho, kind=kind)
    assert intertwiner_basis(rho, rho, kind="random", seed=3) is not intertwiner_basis(rho, rho, kind="random")


@pytest.mark.parametrize(
    ("given", "read"), [(1, (1, 1)), (3, (3, 3)), ((2, 5), (2, 5)), ([4, 1], (4, 1)), (np.int64(2), (2, 2))]
)
def test_a_kernel_size_is_one_number_or_two(given: object, read: tuple[int, int]) -> None:
    assert build.read_kernel_size(given) == read  # type: ignore[arg-type]


@pytest.mark.parametrize("given", [0, -1, (0, 1), (1, 0), (1,), (1, 2, 3), 1.5, "3", (2, 2.5), None])
def test_any_other_kernel_size_is_refused_by_name(given: object) -> None:
    with pytest.raises(OptionError, match=r"kernel_size: expected one or two positive integers, got "):
        build.read_kernel_size(given)  # type: ignore[arg-type]


def test_filters_of_a_group_that_is_not_abelian_agree_with_brute_force() -> None:
    spatial, size = ["rot90", "flip_lr"], 3
    operators: dict[str, Callable[[np.ndarray], np.ndarray]] = {"rot90": np.rot90, "flip_lr": np.fliplr}
    rho_in, rho_out = reps.natural(D4), reps.sign(D4)
    basis = conv_intertwiner_basis(rho_in, rho_out, size, spatial=spatial)
    units = np.eye(basis.size).reshape(-1, *basis.shape)
    equations = []
    for name, K, L in zip(spatial, rho_out.generator_matrices, rho_in.generator_matrices, strict=True):
        turned = np.array([[[operators[name](f) for f in row] for row in unit] for unit in units])
        moved = np.einsum("ij,njkyx,kl->nilyx", K, turned, np.linalg.inv(L))
        equations.append((moved - units).reshape(len(units), -1).T)
    rank = basis.size - np.linalg.matrix_rank(np.concatenate(equations))
    assert basis.rank == rank > 0
    rows = basis.matrices().reshape(rank, -1)
    assert np.abs(np.concatenate(equations) @ rows.T).max() < 1e-12


CONTINUOUS: list[ContinuousGroup] = [
    groups.so(2),
    groups.so(3),
    groups.so(4),
    groups.so(5),
    groups.o(3),
    groups.product(groups.so(2), groups.so(3)),
    groups.product(groups.so(4), groups.so(2), groups.so(5)),
]


@pytest.mark.parametrize("group", CONTINUOUS, ids=str)
def test_simple_roots_are_the_weights_of_their_operators(group: ContinuousGroup) -> None:
    rank = sum(f.n // 2 for f in group.factors)
    roots = simple_roots(group)
    assert len(roots) == rank - sum(f.n == 2 for f in group.factors)
    assert np.linalg.matrix_rank(np.array([root for _, root in roots]).reshape(-1, rank)) == len(roots)
    parts = []
    for factor in range(len(group.factors)):
        rho = reps.vector(group, factor=factor) if len(group.factors) > 1 else reps.vector(group)
        parts.append(rho)
    whole = reps.direct_sum(*parts)
    assert isinstance(whole, LieRepresentation)
    for coefficients, root in roots:
        assert len(root) == rank
        E = np.tensordot(coefficients, np.array(whole.algebra), 1)
        assert np.abs(E).max() > 0.5
        for (i, sign), weight in zip(torus(group), root, strict=True):
            H = 1j * sign * whole.algebra[i]
            turned = H @ E - E @ H
            # [H, E] = weight E, the sign of i being a convention that all roots share
            assert np.abs(turned - weight * E).max() < 1e-12 or np.abs(turned + weight * E).max() < 1e-12


@pytest.mark.parametrize("group", [groups.so(2), groups.so(3), groups.so(4)], ids=str)
def test_connected_intertwiners_are_orthonormal_and_commute(group: ContinuousGroup) -> None:
    a = reps.tensor(reps.vector(group), reps.vector(group))
    b = reps.direct_sum(reps.vector(group), a)
    assert isinstance(a, LieRepresentation)
    assert isinstance(b, LieRepresentation)
    rows = connected_intertwiners(a, b)
    np.testing.assert_allclose(rows @ rows.T, np.eye(len(rows)), atol=1e-12)
    W = rows.reshape(-1, b.dim, a.dim)
    for K, L in zip(b.algebra, a.algebra, strict=True):
        np.testing.assert_allclose(K @ W, W @ L, atol=1e-12)
    assert connected_intertwiners(reps.trivial(group), reps.vector(group)).shape == (0, group.factors[0].n)  # type: ignore[arg-type]


def test_the_rows_kept_do_not_depend_on_the_rows_given() -> None:
    group = groups.o(2)
    a = reps.tensor(reps.vector(group), reps.vector(group))
    assert isinstance(a, LieRepresentation)
    rows = connected_intertwiners(a, a)
    mixed = np.linalg.qr(np.random.default_rng(0).normal(size=(len(rows), len(rows))))[0] @ rows
    for predicted in (3, None):
        first, second = (lie_pairs._keep_solutions(some, a, a, predicted) for some in (rows, mixed))
        assert len(first) == 3
        np.testing.assert_allclose(first, second, atol=1e-12)
        np.testing.assert_allclose(first @ first.T, np.eye(3), atol=1e-12)


def test_directions_that_no_equation_constrains_are_kept() -> None:
    group = groups.translations(1)
    nothing = reps.from_algebra(group, [np.zeros((2, 2))])
    assert intertwiner_basis(nothing, nothing).rank == 4
    galilean = reps.from_algebra(group, [[[0, 1], [0, 0]]])
    basis = intertwiner_basis(galilean, nothing)
    assert basis.rank == 2
    W = basis.matrices()
    np.testing.assert_allclose(W @ np.array([[0.0, 1.0], [0.0, 0.0]]), 0, atol=1e-12)


@pytest.mark.parametrize("group", [groups.so(2), groups.o(2), groups.so(3), groups.o(3)], ids=str)
def test_a_skewed_continuous_representation_is_made_orthogonal(group: ContinuousGroup) -> None:
    straight = reps.vector(group)
    change = np.eye(straight.dim) + np.triu(np.ones((straight.dim, straight.dim)), 1)
    back = np.linalg.inv(change)
    skewed = reps.from_algebra(
        group, [change @ a @ back for a in straight.algebra], [change @ m @ back for m in straight.matrices]
    )
    form, root = lie_pairs.orthogonal_form(skewed)
    assert root is not None
    for A, given in zip(form.algebra, skewed.algebra, strict=True):
        np.testing.assert_allclose(A, -A.T, atol=1e-12)
        np.testing.assert_allclose(A @ root, root @ given, atol=1e-10)
    for M, given in zip(form.matrices, skewed.matrices, strict=True):
        np.testing.assert_allclose(M @ M.T, np.eye(len(M)), atol=1e-10)
        np.testing.assert_allclose(M @ root, root @ given, atol=1e-10)
    assert lie_pairs.orthogonal_form(straight)[1] is None
    pair = lie_pairs.solve_pair(skewed, straight)
    units = np.eye(straight.dim**2).reshape(-1, straight.dim, straight.dim)
    P = pair.project(units).reshape(len(units), -1)
    np.testing.assert_allclose(P @ P, P, atol=1e-10)
    np.testing.assert_allclose(pair.rows @ P, pair.rows, atol=1e-10)
    assert np.linalg.norm(P, 2) <= pair.norm_bound * (1 + 1e-9)
    assert np.trace(P) == pytest.approx(len(pair.rows))


def test_blocks_are_ordered_by_summands_copies_and_small_basis() -> None:
    group = groups.so(2)
    v, t = reps.vector(group), reps.trivial(group)
    rho_in, rho_out = reps.direct_sum(v, t, v), reps.direct_sum(t, v, t)
    assert isinstance(rho_in, LieRepresentation)
    assert isinstance(rho_out, LieRepresentation)
    basis = lie_basis(rho_in, rho_out)
    # From 2 vectors and 1 scalar to 1 vector and 2 scalars: 2 * 2 and 2 * 1.
    assert basis.rank == 6 == sum(block.rank for block in basis.blocks)
    assert basis.shape == (4, 5)
    places = [np.argwhere(np.abs(m) > 1e-9) for m in basis.matrices()]
    corners = [tuple(p.min(axis=0)) for p in places]
    assert corners == [(0, 2), (3, 2), (1, 0), (1, 0), (1, 3), (1, 3)]
    np.testing.assert_array_equal(basis.squared_norms, np.ones(6))
    weight = np.random.default_rng(0).normal(size=(2, 3, 4, 5))
    rows = basis.matrices().reshape(6, -1)
    np.testing.assert_allclose(basis.coefficients(weight), weight.reshape(2, 3, -1) @ rows.T, atol=1e-12)
    np.testing.assert_allclose(
        basis.project(weight).reshape(2, 3, -1), (weight.reshape(2, 3, -1) @ rows.T) @ rows, atol=1e-12
    )
    nothing = lie_basis(v, t)  # type: ignore[arg-type]
    assert nothing.rank == 0
    assert nothing.coefficients(np.ones((3, 1, 2))).shape == (3, 0)
    assert not nothing.project(np.ones((3, 1, 2))).any()


def _solutions(rows: np.ndarray, group: ContinuousGroup) -> lie_pairs.PairSolutions:
    shape = (group.factors[0].n,) * 2
    return lie_pairs.PairSolutions(rows, rows, None, None, shape, compact=True)


@pytest.mark.parametrize("size", [1.0, 5.0])
def test_the_residual_of_a_continuous_basis_is_that_of_the_worst_generator(size: float) -> None:
    group = groups.o(2)
    rho = reps.from_algebra(group, [size * np.array([[0.0, -1.0], [1.0, 0.0]])], [np.diag([1.0, -1.0])])
    assert isinstance(rho, LieRepresentation)
    for W in (np.eye(2), np.array([[0.0, -1.0], [1.0, 0.0]]), np.diag([1.0, -1.0]), np.array([[1.0, 2.0], [3.0, 4.0]])):
        left = [np.abs(K @ W - W @ K).max() / max(1.0, np.abs(K).max()) for K in (rho.algebra[0], rho.matrices[0])]
        found = lie_build._equation_residual(_solutions(W.reshape(1, 4), group), rho, rho)
        assert found == pytest.approx(max(left))


@pytest.mark.parametrize(("part", "refused"), [(0.9, False), (1.1, True)])
def test_a_continuous_basis_may_leave_a_trillionth_times_its_condition(
    part: float, refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = groups.so(2)
    sheared = reps.from_algebra(group, [SHEAR @ np.array([[0.0, -1.0], [1.0, 0.0]]) @ np.linalg.inv(SHEAR)])
    assert isinstance(sheared, LieRepresentation)
    norm = lie_pairs.solve_pair(sheared, sheared).norm_bound
    assert norm > 5
    straight = lie_basis(reps.trivial(group), reps.trivial(group)).certificate  # type: ignore[arg-type]
    assert straight.projection_norm == 1.0
    monkeypatch.setattr(lie_build, "_equation_residual", lambda *args: part * 1e-12 * norm)
    if refused:
        with pytest.raises(RepresentationError, match=r"rank 2 is not accurate enough: its residual is .* \(at most "):
            lie_basis(sheared, sheared)
    else:
        certificate = lie_basis(sheared, sheared).certificate
        assert certificate.tolerance == pytest.approx(1e-12 * norm)
        assert certificate.residual == pytest.approx(part * 1e-12 * norm)
        assert certificate.projection_norm == norm
        assert certificate.span_error == pytest.approx(norm * np.finfo(float).eps)
        assert (certificate.predicted_rank, certificate.predicted_by) == (2, "characters")


ISOTYPIC = [
    (reps.regular(C3), reps.direct_sum(reps.regular(C3), reps.trivial(C3))),
    (reps.regular(D4), reps.natural(D4)),
    (reps.natural(S4), reps.regular(S4)),
    (reps.rotation(C4), reps.regular(C4)),
    (reps.direct_sum(reps.rotation(C3), reps.trivial(C3, 2)), reps.regular(C3)),
]


@pytest.mark.parametrize(("rho_in", "rho_out"), ISOTYPIC)
def test_isotypic_blocks_multiply_as_the_basis_matrices_do(rho_in: Representation, rho_out: Representation) -> None:
    basis = intertwiner_basis(rho_in, rho_out)
    blocks = isotypic_blocks(basis)
    assert blocks is not None
    made = np.zeros((basis.rank, rho_out.dim, rho_in.dim))
    for block in blocks:
        for side in (block.coordinates_in, block.coordinates_out):
            np.testing.assert_allclose(side.T @ side, np.eye(side.shape[1]), atol=1e-12)
        copies_in, copies_out, rank = block.weights.shape
        assert rank == basis.rank
        assert block.products == block.columns * copies_in * copies_out
        assert block.coordinates_in.shape == (rho_in.dim, block.columns * copies_in)
        assert block.coordinates_out.shape == (rho_out.dim, block.columns * copies_out)
        for column in range(block.columns):
            into = block.coordinates_in[:, column * copies_in : (column + 1) * copies_in]
            out = block.coordinates_out[:, column * copies_out : (column + 1) * copies_out]
            made += np.einsum("op,qpk,iq->koi", out, block.weights, into)
    np.testing.assert_allclose(made, basis.matrices(), atol=1e-10)


def test_only_equivariant_bases_of_orthogonal_representations_have_blocks() -> None:
    assert isotypic_blocks(intertwiner_basis(reps.regular(C3), reps.regular(C3), kind="nullspace")) is None
    assert isotypic_blocks(intertwiner_basis(reps.regular(C3), reps.regular(C3), kind="random")) is None
    assert isotypic_blocks(intertwiner_basis(reps.rotation(C3), reps.trivial(C3))) is None
    assert isotypic_blocks(intertwiner_basis(SHEARED, reps.rotation(C3))) is None
    assert isotypic_blocks(intertwiner_basis(reps.rotation(C3), SHEARED)) is None
    assert isotypic_blocks(intertwiner_basis(reps.regular(Q8), reps.regular(Q8))) is None
    assert isotypic_blocks(conv_intertwiner_basis(reps.regular(C2), reps.regular(C2), 3, spatial=["flip_lr"])) is None
    widest = reps.trivial(C1, LARGEST)
    assert isotypic_blocks(intertwiner_basis(widest, reps.trivial(C1))) is not None
    assert isotypic_blocks(intertwiner_basis(reps.trivial(C1), reps.trivial(C1, LARGEST + 1))) is None


def test_a_table_of_layers_says_how_many_weights_are_shared() -> None:
    rows = {row.name: row for row in layer_table(reps.natural(S3), reps.permutation(S3, [[0, 1]] * 2))}
    assert list(rows) == [
        "observation -> hidden", "hidden -> hidden", "hidden -> action", "hidden -> value", "observation -> action",
        "observation -> value",
    ]  # fmt: skip
    row = rows["observation -> hidden"]
    assert (row.shape, row.rank, row.nullspace_rank, row.dense, row.dense_bias) == ((6, 3), 3, 15, 18, 6)
    assert row.sharing == 6.0
    assert (row.bias_rank, rows["observation -> action"].bias_rank, rows["observation -> value"].bias_rank) == (1, 2, 1)
    assert (row.source, row.target) == (reps.natural(S3).name, reps.regular(S3).name)
    assert row.basis.rank == row.certificate.rank == 3


@pytest.mark.parametrize(("order", "rows"), [(HIDDEN_LIMIT, 6), (HIDDEN_LIMIT + 1, 2)])
def test_hidden_layers_are_regular_up_to_512_elements(order: int, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    group = groups.cyclic(order)
    from symcheck.intertwiners import summary

    monkeypatch.setattr(
        summary, "intertwiner_basis", lambda a, b: intertwiner_basis(reps.trivial(C1), reps.trivial(C1))
    )
    assert len(layer_table(reps.trivial(group), reps.trivial(group))) == rows
    hidden = reps.trivial(group, 2)
    assert len(layer_table(reps.trivial(group), reps.trivial(group), hidden=hidden)) == 6


def test_a_table_of_filters_has_two_rows_for_each_size() -> None:
    rows = filter_table(reps.trivial(C2), reps.regular(C2), ["flip_ud"], kernel_sizes=[1, 2])
    assert [row.name for row in rows] == [
        "image -> hidden, 1 x 1", "hidden -> hidden, 1 x 1", "image -> hidden, 2 x 2", "hidden -> hidden, 2 x 2",
    ]  # fmt: skip
    assert [row.rank for row in rows] == [1, 2, 4, 8]
    names = [row.name for row in filter_table(reps.trivial(C2), reps.regular(C2), ["flip_ud"])]
    assert [name.split(", ")[1] for name in names[::2]] == ["3 x 3", "5 x 5", "7 x 7"]


def test_pictures_keep_signs_and_scale_by_the_largest_entry() -> None:
    basis = intertwiner_basis(reps.regular(S3), reps.natural(S3), kind="nullspace")
    shown = pictures(basis)
    assert len(shown) == 12 < basis.rank
    for picture, row in zip(shown, basis.matrices(), strict=False):
        np.testing.assert_allclose(picture * np.abs(row).max(), row, atol=1e-12)
    assert len(pictures(basis, count=3)) == 3
    few = intertwiner_basis(reps.regular(S3), reps.natural(S3))
    assert len(pictures(few)) == few.rank == 3
    filters = conv_intertwiner_basis(reps.regular(C2), reps.trivial(C2, 3), (2, 5), spatial=["flip_lr"])
    for picture, row in zip(pictures(filters), filters.matrices(), strict=False):
        assert picture.shape == (3 * 2, 2 * 5)
        for out, into in itertools.product(range(3), range(2)):
            np.testing.assert_array_equal(picture[2 * out : 2 * out + 2, 5 * into : 5 * into + 5], row[out, into])


@pytest.mark.parametrize(("residual", "refused"), [(0.9, False), (1.1, True)])
def test_a_dense_basis_may_leave_the_residual_of_rounding_and_no_more(
    residual: float, refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    build.clear_cache()
    for name, limit in (("_residual", build.ROUNDING), ("_missing", build.MISSING)):
        with monkeypatch.context() as patch:
            patch.setattr(build, name, lambda *args, limit=limit: residual * limit)
            if refused:
                with pytest.raises(RepresentationError, match=r"rank 2 is not accurate enough: .* does not contain"):
                    intertwiner_basis(reps.rotation(C3), reps.rotation(C3))
            else:
                assert intertwiner_basis(reps.rotation(C3), reps.rotation(C3)).rank == 2
        build.clear_cache()


def test_a_span_that_misses_a_direction_is_noticed_and_measured() -> None:
    average = Reynolds.between(reps.rotation(C3), reps.rotation(C3))
    rows = build._averaged_rows(average, 2)
    assert build._missing(rows, average) < 1e-14
    samples = gaussian(2, 4, 1_000)
    averaged = average.straight(samples)
    for kept in (rows[:1], rows[:0]):
        outside = averaged - averaged @ kept.T @ kept
        assert build._missing(kept, average) == pytest.approx(np.abs(outside).max() / np.abs(samples).max())
    assert build._residual(rows[:0], reps.rotation(C3), reps.rotation(C3)) == 0.0
    off = rows + 1e-3
    W = off.reshape(2, 2, 2)
    expected = np.abs(TURN @ W - W @ TURN).max()
    assert build._residual(off, reps.rotation(C3), reps.rotation(C3)) == pytest.approx(expected)
    (K,) = SHEARED.generator_matrices
    expected = np.abs(K @ W - W @ TURN).max() / np.abs(K).max()
    assert np.abs(K).max() > 1.5
    assert build._residual(off, reps.rotation(C3), SHEARED) == pytest.approx(expected)


@pytest.mark.parametrize(("off", "refused"), [(0.9e-3, False), (1.1e-3, True)])
def test_the_trace_of_an_average_is_a_whole_number(off: float, refused: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    from symcheck.representations import characters

    monkeypatch.setattr(characters, "can_enumerate", lambda a, b: False)
    rho = reps.rotation(C3)
    average = Reynolds.between(rho, rho)
    monkeypatch.setattr(Reynolds, "__call__", lambda self, flat: np.diag([2.0 + off, 0, 0, 0]))
    if refused:
        with pytest.raises(RepresentationError, match=r"trace 2\.0011"):
            build._dense_rank(rho, rho, average)
    else:
        assert build._dense_rank(rho, rho, average) == (2, "trace")
