"""Bases of intertwiners: right rank, right subspace, and nothing accepted that is no representation."""

from __future__ import annotations

import time

import numpy as np
import pytest

from symcheck import groups
from symcheck import representations as reps
from symcheck.errors import OptionError, RepresentationError, SymcheckError
from symcheck.groups.group import Element, Group
from symcheck.intertwiners import IntertwinerBasis, build, conv_intertwiner_basis, intertwiner_basis, orbits
from symcheck.representations.representation import Representation
from symcheck.representations.signed_images import SignedImages
from tests.oracles.algorithm1 import algorithm1, largest_angle, symmetrize

C2, C3, C4, D4, S3, S4, B3, Q8 = (groups.named(n) for n in ("C2", "C3", "C4", "D4", "S3", "S4", "B3", "Q8"))
TURN = np.array([[np.cos(2 * np.pi / 3), -np.sin(2 * np.pi / 3)], [np.sin(2 * np.pi / 3), np.cos(2 * np.pi / 3)]])
SHEAR = np.array([[1.0, 100.0], [0.0, 1.0]])
MIRROR = reps.signed_permutation(C2, [[-1, -1, -1, -1]])
SWAP = reps.permutation(C2, [[1, 0]])
NO_OP_AND_FOUR = reps.permutation(C4, [[0, 2, 3, 4, 1]])
SHEARED = reps.from_matrices(C3, [SHEAR @ TURN @ np.linalg.inv(SHEAR)])
PAIRS = reps.tensor(reps.natural(S4), reps.natural(S4))

CASES: list[tuple[str, Representation, Representation, int]] = [
    ("cart-pole policy", MIRROR, SWAP, 4),
    ("cart-pole value: nothing but zero", MIRROR, reps.trivial(C2), 0),
    ("C3 regular, where the inverse matters", reps.regular(C3), reps.regular(C3), 3),
    ("grid-world policy", reps.regular(C4), NO_OP_AND_FOUR, 5),
    ("quarter turns: complex type", reps.rotation(C4), reps.rotation(C4), 2),
    ("third turns: irrational", reps.rotation(C3), reps.rotation(C3), 2),
    ("third turns from float32", reps.from_matrices(C3, [TURN.astype(np.float32)]), reps.rotation(C3), 2),
    ("no third turn is invariant", reps.rotation(C3), reps.trivial(C3), 0),
    ("D4 regular, not 20", reps.regular(D4), reps.regular(D4), 8),
    ("S3 regular", reps.regular(S3), reps.regular(S3), 6),
    ("pairs to pairs: Bell number 4", PAIRS, PAIRS, 15),
    ("signed permutations of 3", reps.standard(B3), reps.standard(B3), 1),
    ("far from orthogonal", SHEARED, SHEARED, 2),
    ("far from orthogonal, to orthogonal", SHEARED, reps.rotation(C3), 2),
    ("quaternions: quaternionic type", reps.regular(Q8), reps.regular(Q8), 8),
    ("standard to natural", reps.standard(S4), reps.natural(S4), 1),
    ("standard squared to standard", reps.tensor(reps.standard(S4), reps.standard(S4)), reps.standard(S4), 1),
    ("mixed signed and dense", reps.regular(S3), reps.standard(S3), 2),
]
IDS = [name for name, *_ in CASES]


def flat(basis: IntertwinerBasis) -> np.ndarray:
    return basis.matrices().reshape(basis.rank, basis.size)


@pytest.mark.parametrize(("rho_in", "rho_out", "rank"), [c[1:] for c in CASES], ids=IDS)
def test_rank_and_subspace_agree_with_algorithm_1(rho_in: Representation, rho_out: Representation, rank: int) -> None:
    basis = intertwiner_basis(rho_in, rho_out)
    nullspace = intertwiner_basis(rho_in, rho_out, kind="nullspace")
    kept, removed = algorithm1(rho_in, rho_out)
    assert basis.rank == rank == len(kept) == basis.certificate.predicted_rank
    # Both sides are orthonormal to rounding, 1e-13 of entries up to 1e4: 1e-8 for the sheared case.
    assert largest_angle(flat(basis), kept) < 1e-8
    assert largest_angle(flat(nullspace), removed) < 1e-8


@pytest.mark.parametrize(("rho_in", "rho_out", "rank"), [c[1:] for c in CASES], ids=IDS)
def test_every_basis_matrix_intertwines_every_element(
    rho_in: Representation, rho_out: Representation, rank: int
) -> None:
    basis = intertwiner_basis(rho_in, rho_out)
    for g in rho_in.group.elements():
        difference = rho_out.matrix(g) @ basis.matrices() - basis.matrices() @ rho_in.matrix(g)
        allowed = 0.0 if basis.certificate.kind == "exact" else _word_rounding(rho_in, g) + _word_rounding(rho_out, g)
        assert np.abs(difference).max(initial=0) <= allowed


def _word_rounding(rho: Representation, g: Element) -> float:
    """What rounds when a matrix with entries below 1 meets rho(g), a product of generators: their sizes multiply.

    A product of n factors rounds, entry by entry, by at most n dim ulp of the product of absolute values, and by as
    much again when it is applied to a matrix of n ulp itself (Higham, "Accuracy and Stability", sections 3.5 and 3.7).
    """
    word = rho.group.word(g)
    sizes = np.eye(rho.dim)
    for letter in word:
        sizes = sizes @ np.abs(rho.generator_matrices[letter])
    return 2 * (len(word) + 2) * rho.dim * float(np.finfo(float).eps) * float(sizes.sum(axis=1).max())


@pytest.mark.parametrize(("rho_in", "rho_out", "rank"), [c[1:] for c in CASES], ids=IDS)
@pytest.mark.parametrize("kind", ["equivariant", "nullspace", "random"])
def test_basis_matrices_are_orthogonal_and_integer_or_orthonormal(
    rho_in: Representation, rho_out: Representation, rank: int, kind: build.Kind
) -> None:
    basis = intertwiner_basis(rho_in, rho_out, kind=kind)
    gram = flat(basis) @ flat(basis).T
    # Integer rows are orthogonal exactly; float rows to a few ulp of 1.
    tolerance = 0 if basis.matrices().dtype == np.int64 else 1e-12
    assert np.abs(gram - np.diag(basis.squared_norms)).max(initial=0) <= tolerance
    exact = isinstance(rho_in, reps.SignedPermutationRepresentation) and isinstance(
        rho_out, reps.SignedPermutationRepresentation
    )
    assert (basis.matrices().dtype == np.int64) == (exact and kind != "random")
    assert basis.certificate.kind == ("exact" if exact else "numeric")


@pytest.mark.parametrize(("rho_in", "rho_out", "rank"), [c[1:] for c in CASES], ids=IDS)
def test_the_three_kinds_split_the_space(rho_in: Representation, rho_out: Representation, rank: int) -> None:
    equivariant, nullspace, random = (intertwiner_basis(rho_in, rho_out, kind=kind) for kind in build.KINDS)
    assert equivariant.rank + nullspace.rank == random.rank == rho_in.dim * rho_out.dim
    crossed = flat(equivariant).astype(float) @ flat(nullspace).T.astype(float)
    assert np.abs(crossed).max(initial=0) <= 1e-12


@pytest.mark.parametrize(("rho_in", "rho_out", "rank"), [c[1:] for c in CASES], ids=IDS)
def test_projecting_is_the_reynolds_operator(rho_in: Representation, rho_out: Representation, rank: int) -> None:
    basis = intertwiner_basis(rho_in, rho_out)
    weights = np.random.default_rng(1).normal(size=(2, 3, rho_out.dim, rho_in.dim))
    expected = symmetrize(weights.reshape(6, rho_out.dim, rho_in.dim), rho_in, rho_out).reshape(weights.shape)
    scale = max(1.0, float(np.abs(expected).max()))
    np.testing.assert_allclose(basis.project(weights), expected, atol=1e-10 * scale)  # sums of |G| rounded terms
    twice = basis.project(basis.project(weights))
    np.testing.assert_allclose(twice, basis.project(weights), atol=1e-10 * scale)


@pytest.mark.parametrize(("rho_in", "rho_out", "rank"), [c[1:] for c in CASES], ids=IDS)
@pytest.mark.parametrize("kind", ["equivariant", "nullspace", "random"])
def test_coefficients_and_weights_translate_back_and_forth(
    rho_in: Representation, rho_out: Representation, rank: int, kind: build.Kind
) -> None:
    basis = intertwiner_basis(rho_in, rho_out, kind=kind)
    given = np.random.default_rng(2).normal(size=(5, basis.rank))
    weights = basis.combine(given)
    np.testing.assert_allclose(weights.reshape(5, -1), given @ flat(basis), atol=1e-12)
    np.testing.assert_allclose(basis.coefficients(weights), given, atol=1e-10)
    # A weight of the span is known to an ulp per entry, and the projection sends each entry where its matrix says: up
    # to 5e7 times larger for the sheared representation. Both products sum `size` terms.
    P = np.abs(basis.project(np.eye(basis.size).reshape(-1, *basis.shape)).reshape(basis.size, basis.size))
    allowed = 2 * basis.size * float(np.finfo(float).eps) * (np.abs(weights).reshape(5, -1) @ P).max(initial=0)
    assert np.abs(basis.project(weights) - weights).max(initial=0) <= allowed


@pytest.mark.parametrize(
    ("group", "spatial", "kernel", "rho_in", "rho_out", "rank"),
    [
        (C4, ["rot90"], 5, reps.regular(C4), reps.regular(C4), 100),
        (C4, ["rot90"], 7, reps.trivial(C4), reps.regular(C4), 49),
        (C4, ["rot90"], 4, reps.trivial(C4), reps.trivial(C4), 4),
        (C4, ["rot90"], 3, reps.rotation(C4), reps.regular(C4), 18),
        (D4, ["rot90", "flip_lr"], 3, reps.regular(D4), reps.regular(D4), 72),
        (C2, ["flip_ud"], (3, 5), reps.sign(C2), reps.trivial(C2), 5),
        (C3, ["identity"], (2, 3), reps.rotation(C3), reps.rotation(C3), 12),
    ],
)
def test_filters_turn_as_images_do(
    group: Group,
    spatial: list[str],
    kernel: int | tuple[int, int],
    rho_in: Representation,
    rho_out: Representation,
    rank: int,
) -> None:
    basis = conv_intertwiner_basis(rho_in, rho_out, kernel, spatial=spatial)
    assert basis.rank == rank
    operators = {
        "rot90": lambda f: np.rot90(f, axes=(-2, -1)),
        "flip_ud": lambda f: f[..., ::-1, :],
        "flip_lr": lambda f: f[..., ::-1],
        "identity": lambda f: f,
    }
    for g, name in zip(group.generators, spatial, strict=True):
        K, L = np.asarray(rho_out.matrix(g), dtype=float), np.asarray(rho_in.matrix(g), dtype=float)
        moved = np.einsum("ij,njkyx,kl->nilyx", K, operators[name](basis.matrices().astype(float)), np.linalg.inv(L))
        np.testing.assert_allclose(moved, basis.matrices(), atol=1e-12)  # products of rounded entries below 1


def test_a_filter_whose_operator_does_not_move_anything_still_needs_a_homomorphism() -> None:
    with pytest.raises(RepresentationError, match=r"r\^2 = e fails"):
        conv_intertwiner_basis(reps.regular(C2), reps.regular(C2), 1, spatial=["rot90"])


def test_a_basis_is_cached_by_content_and_never_by_name() -> None:
    build.clear_cache()
    first = intertwiner_basis(reps.regular(C4), reps.regular(C4))
    assert intertwiner_basis(reps.regular(C4), reps.regular(C4)) is first
    other = reps.permutation(C4, [[3, 0, 1, 2]])
    other.name = reps.regular(C4).name
    second = intertwiner_basis(reps.regular(C4), other)
    assert second is not first
    assert not np.array_equal(second.matrices(), first.matrices())


def test_fingerprints_tell_contents_apart() -> None:
    rho = reps.regular(C4)
    made = [
        intertwiner_basis(rho, rho),
        intertwiner_basis(rho, rho, kind="nullspace"),
        intertwiner_basis(rho, rho, kind="random"),
        intertwiner_basis(rho, rho, kind="random", seed=1),
        intertwiner_basis(rho, reps.permutation(C4, [[3, 0, 1, 2]])),
        conv_intertwiner_basis(rho, rho, 3, spatial=["rot90"]),
        conv_intertwiner_basis(rho, rho, 3, spatial=["rot270"]),
        intertwiner_basis(reps.rotation(C3), reps.rotation(C3)),
        intertwiner_basis(SHEARED, reps.rotation(C3)),
    ]
    assert len({basis.fingerprint for basis in made}) == len(made)


def test_a_fingerprint_does_not_depend_on_the_last_place() -> None:
    nudged = np.nextafter(TURN, 2)
    first = intertwiner_basis(reps.rotation(C3), reps.rotation(C3))
    second = intertwiner_basis(reps.from_matrices(C3, [nudged]), reps.from_matrices(C3, [nudged]))
    assert first.fingerprint == second.fingerprint
    np.testing.assert_allclose(first.matrices(), second.matrices(), atol=1e-12)  # the same rows, up to rounding


def test_the_average_over_a_large_group_runs_along_its_stabilizer_chain() -> None:
    S7 = groups.symmetric(7)
    basis = intertwiner_basis(reps.tensor(reps.standard(S7), reps.standard(S7)), reps.standard(S7))
    assert basis.rank == basis.certificate.predicted_rank == 1
    assert basis.certificate.residual < 1e-12


def test_large_orbits_are_found_in_seconds_from_generators_alone() -> None:
    start = time.perf_counter()
    S30 = groups.symmetric(30)
    pairs = reps.tensor(reps.natural(S30), reps.natural(S30))
    basis = intertwiner_basis(pairs, pairs)
    assert (basis.rank, basis.certificate.predicted_by) == (15, "orbits")
    assert time.perf_counter() - start < 3  # measured 0.13 s


def test_a_rank_above_4096_is_not_cut_off() -> None:
    rho = reps.direct_sum(*[reps.regular(C2)] * 46)
    assert intertwiner_basis(rho, rho).rank == 4232


def test_orbits_that_meet_their_negative_vanish() -> None:
    found = orbits.find([SignedImages(np.array([1, 2, 0, 3]), np.array([1, 1, -1, 1]))])
    assert found.count == 1
    assert found.sign.tolist() == [0, 0, 0, 1]


def test_labels_agree_with_a_union_find_on_random_maps() -> None:
    rng = np.random.default_rng(3)
    for _ in range(50):
        n = int(rng.integers(1, 40))
        maps = [rng.permutation(n) for _ in range(2)]
        parent = list(range(n))
        for _ in range(n):
            parent = [min(parent[i], *(parent[int(m[i])] for m in maps)) for i in range(n)]
            for m in maps:
                for i in range(n):
                    parent[int(m[i])] = min(parent[int(m[i])], parent[i])
        assert orbits.components(maps).tolist() == parent


def _conv(rho: Representation, kernel_size: object, spatial: list[str]) -> IntertwinerBasis:
    return conv_intertwiner_basis(rho, rho, kernel_size, spatial=spatial)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: intertwiner_basis(reps.regular(C4), reps.regular(D4)), RepresentationError, "'C4' .order 4.*'D4'"),
        (lambda: intertwiner_basis(SWAP, SWAP, kind="equivarient"), OptionError, "Did you mean 'equivariant'"),  # type: ignore[arg-type]
        (
            lambda: conv_intertwiner_basis(reps.regular(C4), reps.regular(C4), (3, 5), spatial=["rot90"]),
            SymcheckError,
            "3 x 5",
        ),
        (lambda: intertwiner_basis(SWAP, 3), SymcheckError, "rho_out: expected a representation, got 3"),  # type: ignore[arg-type]
        (lambda: intertwiner_basis(C2, SWAP), SymcheckError, "rho_in: expected a representation"),  # type: ignore[arg-type]
        (lambda: _conv(SWAP, 0, ["flip_ud"]), OptionError, "positive"),
        (lambda: _conv(SWAP, (1, 2, 3), ["flip_ud"]), OptionError, "positive"),
        (
            lambda: conv_intertwiner_basis(SWAP, SWAP, 3, spatial=["flip_ud"] * 2),
            SymcheckError,
            "one entry per generator",
        ),
        (lambda: intertwiner_basis(SWAP, MIRROR).project(np.zeros((2, 4))), SymcheckError, r"\(out, in\)"),
        (lambda: intertwiner_basis(SWAP, SWAP).combine(np.zeros(3)), SymcheckError, "coefficients"),
    ],
)
def test_unusable_requests_are_refused(make: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()  # type: ignore[operator]


def test_matrices_that_lie_about_their_group_never_give_a_wrong_rank() -> None:
    broken = reps.MatrixRepresentation(C3, [TURN + 1e-3], name="broken", check=False)
    with pytest.raises(RepresentationError):
        intertwiner_basis(broken, broken)
