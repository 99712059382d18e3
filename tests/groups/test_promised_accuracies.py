"""The accuracies that the docstrings promise, from both sides, and checks that are independent of what they check."""

from __future__ import annotations

import numpy as np
import pytest

from symcheck import groups
from symcheck import representations as reps
from symcheck.errors import RepresentationError
from symcheck.intertwiners import build, intertwiner_basis
from symcheck.representations import characters, representation
from symcheck.representations.representation import Representation

C2, C3, D4, S3, S4 = (groups.named(n) for n in ("C2", "C3", "D4", "S3", "S4"))
TURN = np.array([[np.cos(2 * np.pi / 3), -np.sin(2 * np.pi / 3)], [np.sin(2 * np.pi / 3), np.cos(2 * np.pi / 3)]])
REFLECTION = np.array([[np.cos(1.0), np.sin(1.0)], [np.sin(1.0), -np.cos(1.0)]])  # no signed permutation


@pytest.mark.parametrize(
    ("dtype", "accuracy"), [(np.float64, 1e-9), (np.float32, 500 * float(np.finfo(np.float32).eps))]
)
def test_entries_are_accepted_up_to_the_accuracy_of_their_dtype_and_no_further(
    dtype: type[np.floating], accuracy: float
) -> None:
    # (1 + d)^2 differs from 1 by 2 d, and the relation r^2 = e allows the accuracy once per letter.
    within, beyond = (((1 + f * accuracy) * REFLECTION).astype(dtype) for f in (0.9, 1.1))
    rho = reps.from_matrices(C2, [within])
    square = rho.matrix(C2.generators[0]) @ rho.matrix(C2.generators[0])
    assert np.abs(square - np.eye(2)).max() < 1e-14  # moved to the nearest true representation: a few ulp
    with pytest.raises(RepresentationError, match=r"r\^2 = e fails"):
        reps.from_matrices(C2, [beyond])


def test_nearly_whole_entries_are_whole_up_to_the_accuracy_and_no_further() -> None:
    swap = np.array([[0.0, 1.0], [1.0, 0.0]])
    near, far = (swap + f * 1e-9 * np.array([[1.0, 0.0], [0.0, -1.0]]) for f in (0.9, 1.1))
    assert isinstance(reps.from_matrices(C2, [near]), reps.SignedPermutationRepresentation)
    assert not isinstance(reps.from_matrices(C2, [far]), reps.SignedPermutationRepresentation)


@pytest.mark.parametrize(
    ("rho_in", "rho_out"),
    [
        (reps.regular(S3), reps.natural(S3)),
        (reps.regular(D4), reps.sign(D4)),
        (reps.rotation(C3), reps.regular(C3)),
        (reps.standard(S4), reps.natural(S4)),
    ],
)
@pytest.mark.parametrize("error", [-1, 1])
def test_a_rank_that_the_characters_do_not_confirm_is_refused(
    rho_in: Representation, rho_out: Representation, error: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    build.clear_cache()
    certificate = intertwiner_basis(rho_in, rho_out).certificate
    elements = rho_in.group.elements()
    product = sum(float(np.trace(rho_out.matrix(g))) * float(np.trace(rho_in.matrix(~g))) for g in elements)
    assert (certificate.predicted_rank, certificate.predicted_by) == (round(product / len(elements)), "characters")
    build.clear_cache()
    honest = characters.intertwiner_dimension
    monkeypatch.setattr(characters, "intertwiner_dimension", lambda a, b: honest(a, b) + error)
    with pytest.raises(RepresentationError, match=r"predict|misses|residual"):
        intertwiner_basis(rho_in, rho_out)
    build.clear_cache()


@pytest.mark.parametrize(
    ("group", "by"),
    [
        (groups.product(groups.dihedral(10), groups.dihedral(125)), "characters"),
        (groups.product(groups.cyclic(3), groups.cyclic(1667)), "orbits"),
    ],
    ids=["5000", "5001"],
)
def test_characters_confirm_orbits_of_groups_of_up_to_5000_elements(group: groups.Group, by: str) -> None:
    certificate = intertwiner_basis(reps.trivial(group, 2), reps.trivial(group)).certificate
    assert (certificate.rank, certificate.predicted_rank, certificate.predicted_by) == (2, 2, by)


def test_the_trace_confirms_dense_bases_of_groups_too_large_to_sum_over(monkeypatch: pytest.MonkeyPatch) -> None:
    reflection = reps.MatrixRepresentation(C2, [np.array([[0.6, 0.8], [0.8, -0.6]])], name="reflection")
    assert intertwiner_basis(reflection, reflection).certificate.predicted_by == "characters"
    monkeypatch.setattr(characters, "can_enumerate", lambda a, b: False)
    build.clear_cache()
    certificate = intertwiner_basis(reflection, reflection).certificate
    build.clear_cache()
    assert (certificate.rank, certificate.predicted_rank, certificate.predicted_by) == (2, 2, "trace")


@pytest.mark.parametrize("place", [0, 1])
def test_the_residual_is_that_of_the_generator_that_fits_worst(place: int) -> None:
    # One generator is the identity and fits exactly; the other turns by an angle that rounds.
    group = groups.product(C3, C3)
    matrices = [np.eye(2), np.eye(2)]
    matrices[place] = np.diag([1.0, 3.0]) @ TURN @ np.diag([1.0, 1 / 3])
    rho = reps.MatrixRepresentation(group, matrices, name="one factor turns")
    basis = intertwiner_basis(rho, rho)
    left = max(float(np.abs(matrices[place] @ B - B @ matrices[place]).max()) for B in basis.matrices())
    assert basis.certificate.residual * np.abs(matrices[place]).max() == pytest.approx(left, rel=0.5, abs=0)
    assert left > 0


def test_the_complement_of_everything_is_empty() -> None:
    trivial = reps.MatrixRepresentation(C2, [np.eye(2)], name="dense identity")
    assert intertwiner_basis(trivial, trivial).rank == 4
    nothing = intertwiner_basis(trivial, trivial, kind="nullspace")
    assert nothing.matrices().shape == (0, 2, 2)
    np.testing.assert_allclose(nothing.project(np.ones((1, 2, 2))), 0, atol=1e-14)  # 1 minus itself, to a few ulp


def test_matrices_are_listed_up_to_the_limit_and_no_further(monkeypatch: pytest.MonkeyPatch) -> None:
    rho = reps.from_matrices(C2, [REFLECTION])  # 2 elements in dimension 2: 8 entries
    monkeypatch.setattr(representation, "LISTING_LIMIT", 2)
    assert rho.all_matrices().shape == (2, 2, 2)
    monkeypatch.setattr(representation, "LISTING_LIMIT", 1)
    with pytest.raises(RepresentationError, match="do not fit in memory"):
        reps.from_matrices(C2, [REFLECTION]).all_matrices()


@pytest.mark.parametrize(
    ("rho_in", "rho_out", "rank"),
    [
        (reps.standard(S4), reps.standard(S4), 1),
        (reps.standard(S4), reps.natural(S4), 1),
        (reps.standard(S4), reps.sign(S4), 0),
        (reps.rotation(C3), reps.regular(C3), 2),
    ],
)
def test_without_characters_the_rank_is_the_trace_of_the_average(
    rho_in: Representation, rho_out: Representation, rank: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    build.clear_cache()
    monkeypatch.setattr(characters, "ENUMERATION_LIMIT", 0)
    basis = intertwiner_basis(rho_in, rho_out)
    build.clear_cache()
    assert basis.rank == rank  # Schur's lemma
    for K, L in zip(rho_out.generator_matrices, rho_in.generator_matrices, strict=True):
        assert np.abs(K @ basis.matrices() - basis.matrices() @ L).max(initial=0) < 1e-12  # entries of at most 1


def test_a_random_basis_without_a_seed_is_that_of_seed_zero() -> None:
    rho = reps.regular(C2)
    for make in (
        lambda **given: intertwiner_basis(rho, rho, kind="random", **given),
        lambda **given: build.conv_intertwiner_basis(rho, rho, 3, spatial=["flip_ud"], kind="random", **given),
    ):
        np.testing.assert_array_equal(make().matrices(), make(seed=0).matrices())
        assert not np.allclose(make().matrices(), make(seed=1).matrices())


@pytest.mark.parametrize(
    ("rho_in", "rho_out"),
    [(reps.regular(S3), reps.natural(S3)), (reps.rotation(C3), reps.regular(C3)), (reps.sign(D4), reps.trivial(D4))],
)
def test_a_weight_is_the_sum_of_its_projections(rho_in: Representation, rho_out: Representation) -> None:
    weight = np.random.default_rng(0).normal(size=(2, rho_out.dim, rho_in.dim))
    kept, removed, all_of_it = (intertwiner_basis(rho_in, rho_out, kind=kind).project(weight) for kind in build.KINDS)
    # Averages of |G| terms of order 1: a few ulp.
    np.testing.assert_allclose(kept + removed, weight, atol=1e-14)
    np.testing.assert_allclose(all_of_it, weight, atol=1e-14)
    np.testing.assert_allclose((kept * removed).sum(axis=(1, 2)), 0, atol=1e-14)
    assert np.abs(removed).max() > 0.1
