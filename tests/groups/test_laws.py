"""Laws over generated groups and representations: the appendix of the paper, character theory, composition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from symcheck import representations as reps
from symcheck.errors import RepresentationError
from symcheck.groups.element import Element
from symcheck.groups.group import Group
from symcheck.intertwiners import build, intertwiner_basis
from symcheck.representations.representation import Representation
from symcheck_properties import strategies

law = settings(
    max_examples=60, deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.filter_too_much]
)


def pairs(count: int = 2, max_dim: int = 8, max_order: int = 12) -> st.SearchStrategy[tuple[Representation, ...]]:
    """Representations of one group."""

    def of(group: Group) -> st.SearchStrategy[tuple[Representation, ...]]:
        return st.tuples(*[strategies.representations(group, max_dim=max_dim)] * count)

    return strategies.groups(max_order).flatmap(of)


def with_elements(count: int) -> st.SearchStrategy[tuple[Group, tuple[Element, ...]]]:
    return strategies.groups().flatmap(
        lambda G: st.tuples(st.just(G), st.tuples(*[strategies.group_elements(G)] * count))
    )


def scale(*representations: Representation) -> float:
    """The largest entry of any generator's matrix: what rounding is relative to."""
    return max(1.0, *(float(np.abs(m).max()) for rho in representations for m in rho.generator_matrices))


def weight(seed: int, rho_in: Representation, rho_out: Representation) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).normal(size=(rho_out.dim, rho_in.dim))


@law
@given(with_elements(3))
def test_groups_are_associative_and_have_inverses(drawn: tuple[Group, tuple[Element, ...]]) -> None:
    G, (f, g, h) = drawn
    assert (f * g) * h == f * (g * h)
    assert g * ~g == ~g * g == G.identity
    assert ~(g * h) == ~h * ~g
    assert g**g.order == G.identity
    assert G.order % g.order == 0
    assert G.evaluate(G.word(g)) == g


@law
@given(pairs(1), st.data())
def test_representations_are_homomorphisms(drawn: tuple[Representation], data: st.DataObject) -> None:
    (rho,) = drawn
    g, h = (data.draw(strategies.group_elements(rho.group)) for _ in range(2))
    # Words of a few letters, each product rounding by dim ulp of the square of the largest entry.
    assert np.abs(rho.matrix(g * h) - rho.matrix(g) @ rho.matrix(h)).max() <= 1e-12 * rho.dim * scale(rho) ** 3


@law
@given(pairs(), st.integers(0, 99))
def test_the_reynolds_operator_makes_fixes_and_repeats_intertwiners(
    drawn: tuple[Representation, Representation], seed: int
) -> None:
    rho_in, rho_out = drawn
    basis = intertwiner_basis(rho_in, rho_out)
    symmetrized = basis.project(weight(seed, rho_in, rho_out))
    size = scale(rho_in, rho_out) ** 4 * max(1.0, float(np.abs(symmetrized).max()))
    for K, L in zip(rho_out.generator_matrices, rho_in.generator_matrices, strict=True):
        assert np.abs(K @ symmetrized - symmetrized @ L).max() <= 1e-12 * size
    assert np.abs(basis.project(symmetrized) - symmetrized).max() <= 1e-12 * size
    intertwiner = basis.combine(np.random.default_rng(seed).normal(size=basis.rank))
    assert np.abs(basis.project(intertwiner) - intertwiner).max(initial=0) <= 1e-12 * size * (
        1 + np.abs(intertwiner).max()
    )


@law
@given(pairs())
def test_the_rank_is_the_character_formula(drawn: tuple[Representation, Representation]) -> None:
    rho_in, rho_out = drawn
    elements = rho_in.group.elements()
    total = sum(rho_out.character(g) * rho_in.character(~g) for g in elements) / len(elements)
    bias = sum(rho_out.character(g) for g in elements) / len(elements)
    assert intertwiner_basis(rho_in, rho_out).rank == round(total)
    assert intertwiner_basis(reps.trivial(rho_in.group), rho_out).rank == round(bias)


@law
@given(pairs())
def test_basis_and_nullspace_are_orthogonal_and_fill_the_space(drawn: tuple[Representation, Representation]) -> None:
    kept, removed = (intertwiner_basis(*drawn, kind=kind) for kind in build.KINDS[:2])
    assert kept.rank + removed.rank == kept.size
    a, b = (basis.matrices().reshape(basis.rank, basis.size).astype(float) for basis in (kept, removed))
    assert np.abs(a @ b.T).max(initial=0) <= 1e-12
    for rows, basis in ((a, kept), (b, removed)):
        assert np.abs(rows @ rows.T - np.diag(basis.squared_norms)).max(initial=0) <= 1e-12


@law
@given(pairs(3, max_dim=6), st.integers(0, 99))
def test_intertwiners_compose(drawn: tuple[Representation, Representation, Representation], seed: int) -> None:
    first, second, third = drawn
    rng = np.random.default_rng(seed)
    low, high, through = (intertwiner_basis(*p) for p in ((first, second), (second, third), (first, third)))
    composed = high.combine(rng.normal(size=high.rank)) @ low.combine(rng.normal(size=low.rank))
    tolerance = 1e-11 * scale(*drawn) ** 4 * max(1.0, float(np.abs(composed).max()))
    assert np.abs(through.project(composed) - composed).max() <= tolerance


@law
@given(pairs(3, max_dim=4))
def test_ranks_add_up_over_sums_and_move_across_products(
    drawn: tuple[Representation, Representation, Representation],
) -> None:
    a, b, c = drawn
    assert (
        intertwiner_basis(reps.direct_sum(a, b), c).rank == intertwiner_basis(a, c).rank + intertwiner_basis(b, c).rank
    )
    moved = intertwiner_basis(a, reps.tensor(reps.dual(b), c))
    assert intertwiner_basis(reps.tensor(a, b), c).rank == moved.rank


@law
@given(pairs(2, max_dim=6), st.integers(0, 2**16))
def test_the_rank_does_not_depend_on_the_basis_of_the_space(
    drawn: tuple[Representation, Representation], seed: int
) -> None:
    rho_in, rho_out = drawn
    skewed = strategies._skew_basis(rho_in, seed)
    assert intertwiner_basis(skewed, rho_out).rank == intertwiner_basis(rho_in, rho_out).rank


@law
@given(pairs(2, max_dim=6), st.integers(0, 2**16), st.integers(0, 3))
def test_a_change_of_basis_up_to_a_thousand_to_one_keeps_the_rank(
    drawn: tuple[Representation, Representation], seed: int, exponent: int
) -> None:
    rho_in, rho_out = drawn
    rng = np.random.default_rng(seed)
    left, right = (np.linalg.qr(rng.normal(size=(rho_in.dim, rho_in.dim)))[0] for _ in range(2))
    change = left @ np.diag(np.logspace(0, -exponent, rho_in.dim)) @ right
    matrices = [change @ np.asarray(m, dtype=float) @ np.linalg.inv(change) for m in rho_in.generator_matrices]
    changed = reps.from_matrices(rho_in.group, matrices)
    assert intertwiner_basis(changed, rho_out).rank == intertwiner_basis(rho_in, rho_out).rank


@law
@given(pairs(1, max_dim=6), st.integers(0, 2**16), st.floats(-5, 0))
def test_one_wrong_entry_is_never_accepted(drawn: tuple[Representation], seed: int, exponent: float) -> None:
    (rho,) = drawn
    rng = np.random.default_rng(seed)
    matrices = [np.asarray(m, dtype=float).copy() for m in rho.generator_matrices]
    chosen = matrices[int(rng.integers(len(matrices)))]
    chosen[int(rng.integers(rho.dim)), int(rng.integers(rho.dim))] += 10.0**exponent
    identity = np.eye(rho.dim)
    residual = max(float(np.abs(reps_product(matrices, word) - identity).max()) for word in rho.group.relators)
    if residual > 1e-6:
        with pytest.raises(RepresentationError, match=r"fails|singular"):
            reps.from_matrices(rho.group, matrices)


def reps_product(matrices: list[np.ndarray[Any, Any]], word: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """The product that a word spells, letter by letter."""
    result = np.eye(len(matrices[0]))
    for letter in word:
        result = result @ matrices[letter]
    return result
