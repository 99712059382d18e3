"""Presentations read off a stabilizer chain present the group, and matrices of large groups are checked by them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from symcheck.errors import GroupError, RepresentationError
from symcheck.groups import catalog, chain_presentation, large, presentation
from symcheck.groups.element import Element, Word
from symcheck.groups.group import Group
from symcheck.representations import constructors


def cycles(n: int, *listed: Sequence[int]) -> Element:
    """One-based cycles, as group theorists write them."""
    images = list(range(n))
    for cycle in listed:
        for a, b in zip(cycle, [*cycle[1:], cycle[0]], strict=True):
            images[a - 1] = b - 1
    return Element(tuple(images))


def mathieu() -> Group:
    """M11, of order 7,920: in no catalogue."""
    return Group([cycles(11, list(range(1, 12))), cycles(11, [3, 7, 11, 8], [4, 10, 5, 6])], name="M11")


def presented_order(generators: int, relators: Sequence[Word]) -> int:
    """By coset enumeration (sympy)."""
    from sympy.combinatorics.fp_groups import FpGroup
    from sympy.combinatorics.free_groups import free_group

    free, *letters = free_group(" ".join(f"x{i}" for i in range(generators)))
    words = []
    for relator in relators:
        word = free.identity
        for letter in relator:
            word = word * letters[letter]
        words.append(word)
    return int(FpGroup(free, words).order())


def derived(generators: Sequence[Element]) -> tuple[Word, ...]:
    return chain_presentation.derive(generators, *large.chain(generators), "G")


@pytest.mark.parametrize(
    "group",
    [
        catalog.symmetric(3),
        catalog.dihedral(6),
        catalog.quaternion(),
        catalog.product(catalog.cyclic(2), catalog.symmetric(3)),
        catalog.trivial(),
        pytest.param(catalog.symmetric(4), marks=pytest.mark.slow),  # coset enumeration in Python takes its time
        pytest.param(catalog.alternating(5), marks=pytest.mark.slow),
    ],
    ids=lambda group: group.name,
)
def test_the_relators_of_a_chain_present_the_group(group: Group) -> None:
    relators = derived(group.generators)
    assert all(group.evaluate(word).is_identity for word in relators)
    assert presented_order(len(group.generators), relators) == group.order


@settings(max_examples=10, deadline=None)
@given(st.lists(st.permutations(range(4)), min_size=1, max_size=2))
def test_the_relators_present_whatever_a_few_permutations_generate(images: list[list[int]]) -> None:
    group = Group([Element(tuple(p)) for p in images], name="G")
    relators = derived(group.generators)
    assert all(group.evaluate(word).is_identity for word in relators)
    assert presented_order(len(images), relators) == group.order


def test_a_group_too_large_for_its_cayley_graph_has_relators() -> None:
    group = mathieu()
    assert group.order > presentation.LIMIT
    assert group.relators[:2] == ((0,) * 11, (1,) * 4)
    assert all(group.evaluate(word).is_identity for word in group.relators)


def test_matrices_of_a_large_group_are_checked_and_a_wrong_one_is_refused() -> None:
    group = mathieu()
    matrices = [np.eye(11)[:, list(g.images)] for g in group.generators]
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(11, 11)))[0]
    rho = constructors.from_matrices(group, [turn @ m @ turn.T for m in matrices])
    assert rho.dim == 11
    inverse = [turn @ m @ turn.T for m in (matrices[0], matrices[1].T)]  # of the right orders, but no homomorphism
    with pytest.raises(RepresentationError, match="not a representation of M11: the relation"):
        constructors.from_matrices(group, inverse)


def test_relators_too_long_to_be_of_use_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chain_presentation, "LARGEST", 100)
    group = mathieu()
    with pytest.raises(GroupError, match="more than 100 letters"):
        _ = group.relators
    with pytest.raises(RepresentationError, match=r"matrices of M11 .* cannot be checked: the derived presentation"):
        constructors.from_matrices(group, [np.array([[0.6, 0.8], [-0.8, 0.6]])] * 2)


def test_relators_are_counted_to_the_letter(monkeypatch: pytest.MonkeyPatch) -> None:
    generators = catalog.dihedral(6).generators
    letters = sum(len(word) for word in derived(generators))
    monkeypatch.setattr(chain_presentation, "LARGEST", letters)
    assert derived(generators)
    monkeypatch.setattr(chain_presentation, "LARGEST", letters - 1)
    with pytest.raises(GroupError, match=f"more than {letters - 1} letters"):
        derived(generators)
