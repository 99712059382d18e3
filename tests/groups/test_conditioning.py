"""Representations far from orthogonal: what is computed is as accurate as their condition allows, and the certificate
says how accurate that is."""

from __future__ import annotations

from typing import cast

import mpmath
import numpy as np
import pytest

from symcheck import groups
from symcheck import representations as reps
from symcheck.intertwiners import IntertwinerBasis, intertwiner_basis
from symcheck.intertwiners.dense_basis import DenseBasis
from symcheck.intertwiners.oblique import SOLVED_LIMIT
from symcheck.representations.representation import Representation

EPS = float(np.finfo(np.float64).eps)
C3, S3, D4 = (groups.named(n) for n in ("C3", "S3", "D4"))
CONDITIONS = [1e1, 1e2, 1e3, 1e4]


def skewed(rho: Representation, condition: float, *, seed: int = 0) -> tuple[Representation, np.ndarray]:
    """The representation S rho S^-1, and S."""
    matrices, S = skewed_matrices(rho, condition, seed=seed)
    return reps.from_matrices(rho.group, matrices), S


def skewed_matrices(rho: Representation, condition: float, *, seed: int = 0) -> tuple[list[np.ndarray], np.ndarray]:
    """The generators' matrices of S rho S^-1, right to the last place, and S.

    S has the given condition number and stretches none of the coordinates' own directions.
    """
    rng = np.random.default_rng(seed)
    left, right = (np.linalg.qr(rng.normal(size=(rho.dim, rho.dim)))[0] for _ in range(2))
    S = left @ np.diag(np.geomspace(1, condition, rho.dim)) @ right
    exact = mpmath.matrix(S.tolist())
    with mpmath.workdps(50):
        inverse = exact**-1
        moved = [exact * mpmath.matrix(np.asarray(m, dtype=float).tolist()) * inverse for m in rho.generator_matrices]
    return [_rounded(m) for m in moved], S


def _rounded(matrix: mpmath.matrix) -> np.ndarray:
    return np.array([[float(entry) for entry in row] for row in matrix.tolist()])


def exact_rows(rho: Representation, left: np.ndarray, right: np.ndarray) -> list[list[mpmath.mpf]]:
    """left W right^-1 for intertwiners W of an orthogonal representation with itself, flattened, to 50 digits."""
    exact, inverse = mpmath.matrix(left.tolist()), mpmath.matrix(right.tolist()) ** -1
    inner = orthonormal_intertwiners(rho)
    return [[entry for line in (exact * W * inverse).tolist() for entry in line] for W in inner]


def orthonormal_intertwiners(rho: Representation) -> list[mpmath.matrix]:
    basis = intertwiner_basis(rho, rho)
    lengths = [mpmath.sqrt(float(n)) for n in basis.squared_norms]
    return [mpmath.matrix(W.tolist()) / n for W, n in zip(basis.matrices().astype(float), lengths, strict=True)]


def exact_span(rho: Representation, S: np.ndarray) -> np.ndarray:
    """Orthonormal rows that span the intertwiners of S rho S^-1 with itself."""
    kept: list[list[mpmath.mpf]] = []
    with mpmath.workdps(50):
        for row in exact_rows(rho, S, S):
            rest = row
            for other in kept:
                along = mpmath.fdot(rest, other)
                rest = [a - along * b for a, b in zip(rest, other, strict=True)]
            length = mpmath.sqrt(mpmath.fdot(rest, rest))
            kept.append([a / length for a in rest])
    return np.array([[float(a) for a in row] for row in kept])


def exact_operator(rho: Representation, S_in: np.ndarray, S_out: np.ndarray) -> np.ndarray:
    """The Reynolds operator from S_in rho S_in^-1 to S_out rho S_out^-1 as a matrix that multiplies flattened rows.

    P(W) = sum over orthonormal intertwiners B of rho of <S_out^-T B S_in^T, W> S_out B S_in^-1.
    """
    with mpmath.workdps(50):
        rows = mpmath.matrix(exact_rows(rho, S_out, S_in))
        inverse = [mpmath.matrix(S.tolist()) ** -1 for S in (S_in, S_out)]
        moved = [inverse[1].T * B * mpmath.matrix(S_in.tolist()).T for B in orthonormal_intertwiners(rho)]
        dual = mpmath.matrix([[entry for line in V.tolist() for entry in line] for V in moved])
        return _rounded(dual.T * rows)


def distance(rows: np.ndarray, span: np.ndarray) -> float:
    """The sine of the largest angle between rows and a span of orthonormal rows."""
    return float(np.linalg.norm(rows - (rows @ span.T) @ span, 2))


def rows_of(basis: IntertwinerBasis) -> np.ndarray:
    return basis.matrices().reshape(basis.rank, basis.size)


def within_rounding(rows: np.ndarray, span: np.ndarray, span_error: float) -> bool:
    # A backward stable decomposition is exact for equations whose n entries are off by an ulp or two, as storing the
    # matrices is: that turns the span by the condition of the equations, which the certificate states.
    return distance(rows, span) <= 2 * rows.shape[1] * span_error


@pytest.mark.parametrize("condition", CONDITIONS)
def test_matrices_that_are_right_to_the_last_place_stay_as_they_are(condition: float) -> None:
    for base in (reps.regular(C3), reps.rotation(C3), reps.regular(D4)):
        for seed in range(3):
            given, _ = skewed_matrices(base, condition, seed=seed)
            kept = reps.from_matrices(base.group, given).generator_matrices
            assert all(np.array_equal(a, b) for a, b in zip(given, kept, strict=True))


def test_matrices_of_a_skewed_representation_that_were_stored_in_float32_are_moved_to_a_true_one() -> None:
    given = [m.astype(np.float32) for m in skewed_matrices(reps.regular(C3), 10)[0]]
    (moved,) = reps.from_matrices(C3, given).generator_matrices
    as_stored, as_moved = (np.linalg.matrix_power(m.astype(float), 3) - np.eye(3) for m in (given[0], moved))
    # An ulp of float32 before, a few ulp of float64 after, both times entries of size 10 in products of three.
    assert np.abs(as_stored).max() > 1e-8
    assert np.abs(as_moved).max() < 10**2 * 3 * 3 * EPS


@pytest.mark.parametrize("condition", CONDITIONS)
def test_the_span_is_as_right_as_the_certificate_says(condition: float) -> None:
    for seed in range(3):
        rho, S = skewed(reps.regular(C3), condition, seed=seed)
        basis = intertwiner_basis(rho, rho)
        # The equations are those of the orthogonal representation, of condition 1.2, moved by S on both sides.
        assert basis.certificate.span_error <= 2 * condition**2 * EPS
        assert within_rounding(rows_of(basis), exact_span(reps.regular(C3), S), basis.certificate.span_error)


def test_a_span_that_lost_three_digits_would_be_noticed() -> None:
    rho, S = skewed(reps.regular(C3), 1e4)
    span = exact_span(reps.regular(C3), S)
    basis = intertwiner_basis(rho, rho)
    nudge = np.random.default_rng(0).normal(size=(basis.rank, basis.size))
    error = basis.certificate.span_error
    assert not within_rounding(rows_of(basis) + 1e3 * error * nudge, span, error)


@pytest.mark.parametrize(
    ("rho", "condition"),
    # The relators of S3 have up to 15 letters: far beyond 1e3 their products round by a few per cent.
    [
        *((reps.regular(C3), c) for c in CONDITIONS),
        *((reps.standard(S3), c) for c in CONDITIONS[:-1]),
        (reps.regular(D4), 1e3),
    ],
)
def test_the_certificate_says_how_far_projecting_amplifies_rounding(rho: Representation, condition: float) -> None:
    (far, S), (other, T), unit = skewed(rho, condition), skewed(rho, condition, seed=5), np.eye(rho.dim)
    for (rho_in, S_in), (rho_out, S_out) in [
        ((far, S), (far, S)),
        ((far, S), (rho, unit)),
        ((rho, unit), (far, S)),
        ((far, S), (other, T)),
    ]:
        basis = intertwiner_basis(rho_in, rho_out)
        P = exact_operator(rho, S_in, S_out)
        norm = float(np.linalg.norm(P, 2))
        # Both bases are known to `span_error`, and what they are off by is divided by their angle, 1 / norm.
        accuracy = 2 * basis.size * basis.certificate.span_error * norm
        assert basis.certificate.projection_norm == pytest.approx(norm, rel=accuracy)
        units = np.eye(basis.size).reshape(-1, *basis.shape)
        assert np.abs(basis.project(units).reshape(P.shape) - P).max() <= accuracy * norm
        # An ulp of a weight that the operator lengthens: no method can keep weights of the span better than that.
        assert basis.certificate.projection_residual <= basis.size * EPS * norm
        weights = basis.combine(np.random.default_rng(2).normal(size=(4, basis.rank)))
        largest = float(np.abs(weights).max())
        assert np.abs(basis.project(weights) - weights).max() <= basis.size * EPS * norm * largest


@pytest.mark.parametrize("rho", [reps.rotation(C3), reps.standard(S3)], ids=lambda rho: rho.name)
def test_projecting_between_orthogonal_representations_amplifies_nothing(rho: Representation) -> None:
    certificate = intertwiner_basis(rho, rho).certificate
    assert certificate.projection_norm == 1
    assert certificate.projection_residual <= 4 * EPS  # sums of |G| products of entries of at most 1
    assert "amplifies" not in str(certificate)


def test_a_certificate_names_the_amplification_where_there_is_one() -> None:
    rho, _ = skewed(reps.regular(C3), 1e3)
    certificate = intertwiner_basis(rho, rho).certificate
    assert f"project amplifies rounding by {certificate.projection_norm:.1e}" in str(certificate)


@pytest.mark.parametrize("condition", CONDITIONS)
def test_the_residual_does_not_grow_with_the_condition(condition: float) -> None:
    for rho in (reps.regular(C3), reps.rotation(C3), reps.regular(D4)):
        far, _ = skewed(rho, condition)
        certificate = intertwiner_basis(far, far).certificate
        # Relative to the largest entry; two products of dim terms round by dim ulp each.
        assert certificate.residual <= 4 * rho.dim * EPS
        assert certificate.tolerance <= 1e-11


def test_no_intertwiners_between_skewed_representations_is_a_basis_too() -> None:
    rho, _ = skewed(reps.rotation(C3), 1e3)
    basis = intertwiner_basis(rho, reps.trivial(C3))
    assert (basis.rank, basis.certificate.projection_norm, basis.certificate.residual) == (0, 0, 0)
    assert not basis.project(np.ones((1, 2))).any()


def test_coefficients_mean_the_same_matrices_whichever_way_the_rows_were_found() -> None:
    """Rows are those of Gram and Schmidt on averaged samples, to the accuracy that averaging has."""
    from symcheck.intertwiners import build
    from symcheck.intertwiners.reynolds import Reynolds

    rho, _ = skewed(reps.regular(C3), 1e2)
    average = Reynolds.between(rho, rho)
    averaged = build._orthonormal(average.back(build._averaged_rows(average, 3)))
    # Averaging rounds by the product of both condition numbers, 1e4, and Gram-Schmidt by as much again.
    np.testing.assert_allclose(rows_of(intertwiner_basis(rho, rho)), averaged, atol=1e4 * 1e4 * EPS)


def test_matrices_too_large_to_be_solved_are_averaged_and_bounded() -> None:
    rho, _ = skewed(reps.regular(groups.cyclic(25)), 10)
    basis = cast(DenseBasis, intertwiner_basis(rho, rho))
    assert basis.size > SOLVED_LIMIT
    assert basis.rank == 25
    weights = basis.combine(np.random.default_rng(2).normal(size=(2, basis.rank)))
    # At least the norm: no weight is lengthened by more.
    sample = np.random.default_rng(3).normal(size=(20, *basis.shape))
    lengthened = np.linalg.norm(basis.project(sample), axis=(1, 2)) / np.linalg.norm(sample, axis=(1, 2))
    assert 1 < basis.certificate.projection_norm <= 1.1 * 10**2  # the square of the condition number, and rounding
    assert lengthened.max() <= basis.certificate.projection_norm
    allowed = basis.size * EPS * basis.certificate.projection_norm * float(np.abs(weights).max())
    assert np.abs(basis.project(weights) - weights).max() <= allowed
