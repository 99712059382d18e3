"""Groups: orders, presentations, words; and what is refused."""

from __future__ import annotations

import inspect
import math
import pickle
import time
from pathlib import Path

import numpy as np
import pytest
from sympy.combinatorics.fp_groups import FpGroup
from sympy.combinatorics.free_groups import free_group

from symcheck import groups, representations
from symcheck.errors import GroupError
from symcheck.groups import catalog, constructions, large, presentation
from symcheck.groups.element import Element, Word
from symcheck.groups.group import Group

C3, C4 = groups.cyclic(3), groups.cyclic(4)
CATALOGUE = [
    (groups.trivial(), 1),
    (groups.cyclic(1), 1),
    (groups.cyclic(2), 2),
    (groups.cyclic(5), 5),
    (groups.dihedral(1), 2),
    (groups.dihedral(2), 4),
    (groups.dihedral(3), 6),
    (groups.dihedral(4), 8),
    (groups.symmetric(1), 1),
    (groups.symmetric(2), 2),
    (groups.symmetric(3), 6),
    (groups.symmetric(4), 24),
    (groups.symmetric(5), 120),
    (groups.alternating(2), 1),
    (groups.alternating(3), 3),
    (groups.alternating(4), 12),
    (groups.alternating(5), 60),
    (groups.hyperoctahedral(1), 2),
    (groups.hyperoctahedral(2), 8),
    (groups.hyperoctahedral(3), 48),
    (groups.klein_four(), 4),
    (groups.quaternion(), 8),
    (groups.product(groups.cyclic(2), groups.dihedral(3)), 12),
    (groups.semidirect(C3, groups.cyclic(2), [[~C3.generators[0]]]), 6),
    (groups.from_permutations([[1, 0, 2, 3], [0, 1, 3, 2], [2, 3, 0, 1]]), 8),
    (groups.from_permutations([[0, 1, 2], [1, 2, 0]]), 3),
    (groups.from_matrices([[[0, -1], [1, 0]], [[1, 0], [0, -1]]]), 8),
]
IDS = [f"{g.name}-{n}" for g, n in CATALOGUE]


def presented_order(group: Group) -> int:
    """The order of the abstract group that the relators present, by coset enumeration."""
    free, *letters = free_group([f"x{i}" for i in range(len(group.generators))])
    words = []
    for relator in group.relators:
        word = free.identity
        for letter in relator:
            word = word * letters[letter]
        words.append(word)
    return int(FpGroup(free, words).order())


@pytest.mark.parametrize(("group", "order"), CATALOGUE, ids=IDS)
def test_the_order_is_the_number_of_elements(group: Group, order: int) -> None:
    assert group.order == order == len(set(group.elements())) == large.order(group.generators)


@pytest.mark.parametrize(("group", "order"), CATALOGUE, ids=IDS)
def test_the_relators_present_the_group_and_not_a_larger_one(group: Group, order: int) -> None:
    assert all(group.evaluate(word).is_identity for word in group.relators)
    assert presented_order(group) == order


@pytest.mark.parametrize(("group", "order"), CATALOGUE, ids=IDS)
def test_a_derived_presentation_presents_the_group(group: Group, order: int) -> None:
    bare = Group(group.generators, name=group.name)
    assert bare.relators == presentation.derive(bare.generators, {g: bare.word(g) for g in bare.elements()})
    assert presented_order(bare) == order


@pytest.mark.parametrize("word", [(), (0,), (1, 0, 1), (1, 1, 0, 1), (0, 1, 1, 0)])
def test_full_powers_vanish_from_a_word_wherever_they_stand(word: Word) -> None:
    longer = {word}
    for _ in range(2):  # the second may stand inside the first, which is whole again when it has gone
        longer = {
            (*w[:at], *power, *w[at:]) for w in longer for at in range(len(w) + 1) for power in [(0, 0), (1, 1, 1)]
        }
    assert {presentation._without_full_powers(w, (2, 3)) for w in longer} == {word}


@pytest.mark.parametrize(("group", "order"), CATALOGUE, ids=IDS)
def test_every_word_spells_its_element(group: Group, order: int) -> None:
    assert group.elements()[0] == group.identity
    assert all(group.evaluate(group.word(g)) == g for g in group.elements())
    assert len({group.element_name(g) for g in group.elements()}) == order


@pytest.mark.parametrize(("group", "order"), CATALOGUE, ids=IDS)
def test_conjugacy_classes_partition_the_group(group: Group, order: int) -> None:
    classes = group.conjugacy_classes()
    assert sum(map(len, classes)) == order == len({g for c in classes for g in c})
    assert all(order % len(c) == 0 for c in classes)


@pytest.mark.parametrize(("group", "order"), CATALOGUE, ids=IDS)
def test_groups_survive_pickling(group: Group, order: int) -> None:
    twin = pickle.loads(pickle.dumps(group))
    assert (twin, twin.order, twin.relators, twin.name) == (group, order, group.relators, group.name)


def test_every_group_that_can_be_built_is_exported_and_in_the_list_above() -> None:
    public = {
        name
        for module in (catalog, constructions)
        for name, f in inspect.getmembers(module, inspect.isfunction)
        if f.__module__ == module.__name__ and not name.startswith("_")
    }
    # Continuous groups have no list of elements; their tests are in tests/continuous.
    continuous = {"ContinuousGroup", "e", "o", "se", "so", "translations"}
    assert public == set(groups.__all__) - {"Element", "Group"} - continuous
    # A short name and a subgroup's elements build nothing new.
    text = Path(__file__).read_text(encoding="utf-8").partition("IDS = ")[0]
    assert [name for name in sorted(public - {"named", "subgroup"}) if f"(groups.{name}(" not in text] == []


def test_a_presentation_with_a_missing_relator_would_be_noticed() -> None:
    free_product = Group(groups.klein_four().generators, name="V4", relators=[(0, 0), (1, 1), (0, 1) * 4])
    assert presented_order(free_product) == 8


def test_the_right_factor_acts_first() -> None:
    r, s = groups.dihedral(4).generators
    assert (r * s).images == tuple(r.images[s.images[i]] for i in range(4))
    assert r * s != s * r
    assert r * ~r == groups.dihedral(4).identity


def test_identities_among_the_generators_are_kept() -> None:
    group = groups.from_permutations([[0, 1, 2], [1, 2, 0], [0, 1, 2]])
    assert [g.is_identity for g in group.generators] == [True, False, True]


def test_groups_are_equal_by_their_generators() -> None:
    assert groups.cyclic(4) == groups.cyclic(4)
    assert groups.cyclic(4) != groups.klein_four()
    assert groups.product(groups.cyclic(2), groups.cyclic(2)) == groups.klein_four()


def test_the_order_of_a_huge_group_needs_no_list() -> None:
    n = 30
    assert groups.symmetric(n).order == math.factorial(n)
    cycle = [*range(1, 12), 0]
    assert groups.from_permutations([[1, 0, *range(2, 12)], cycle]).order == math.factorial(12)
    with pytest.raises(GroupError, match="exceed the limit of 100,000 elements"):
        groups.symmetric(n).elements()


def test_a_word_in_a_huge_group_spells_its_element() -> None:
    group = groups.symmetric(10)
    g = Element(tuple(np.random.default_rng(0).permutation(10).tolist()))
    assert group.evaluate(group.word(g)) == g
    assert g in group
    assert Element((1, 0)) not in group


def test_an_element_outside_is_not_contained() -> None:
    rotations = groups.from_permutations([[1, 2, 3, 0]])
    assert Element((1, 0, 2, 3)) not in rotations
    with pytest.raises(GroupError, match="is not an element"):
        groups.subgroup(rotations, [Element((1, 0, 2, 3))])


def test_the_largest_catalogue_groups_are_built_at_once() -> None:
    start = time.perf_counter()
    assert groups.cyclic(100_000).order == 100_000
    assert groups.symmetric(1_000).generators[1].order == 1_000
    assert time.perf_counter() - start < 2  # measured 0.05 s


def test_words_of_polygons_with_many_corners_are_read_off_the_first_corner() -> None:
    for group in (groups.cyclic(50_000), groups.dihedral(50_000)):
        for g in (group.generators[0] ** 3, group.generators[-1] * group.generators[0] ** 7):
            assert group.evaluate(group.word(g)) == g
        assert Element((1, 0, *range(2, 50_000))) not in group


def test_a_product_with_a_factor_that_has_no_presentation_is_still_a_group() -> None:
    huge = groups.from_permutations([[1, 0, *range(2, 10)], [*range(1, 10), 0]])
    assert groups.product(huge, groups.cyclic(2)).order == 2 * math.factorial(10)


def test_a_subgroup_keeps_its_generators() -> None:
    D4 = groups.dihedral(4)
    half = groups.subgroup(D4, [D4.generators[0] ** 2, D4.generators[1]])
    assert (half.order, half.generator_names) == (4, ("r^2", "s"))


def test_matrices_far_from_orthogonal_still_close() -> None:
    a = 2 * np.pi / 3
    rotation = np.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]])
    shear = np.array([[1, 1e2], [0, 1]])
    assert groups.from_matrices([shear @ rotation @ np.linalg.inv(shear)]).order == 3
    assert groups.from_matrices([rotation.astype(np.float32)]).order == 3


def test_entries_of_ten_thousand_do_not_hide_the_group() -> None:
    rng = np.random.default_rng(0)
    for name in ("C5", "S3", "D4", "B3"):
        rho = representations.natural(groups.named(name))
        left, right = (np.linalg.qr(rng.normal(size=(rho.dim, rho.dim)))[0] for _ in range(2))
        change = left @ np.diag(np.logspace(0, -4, rho.dim)) @ right
        matrices = [change @ m @ np.linalg.inv(change) for m in rho.generator_matrices]
        assert groups.from_matrices(matrices).order == rho.group.order


def test_integer_matrices_far_from_orthogonal_keep_their_small_orbit() -> None:
    n = 7  # S_8 on the root lattice, in the basis of simple roots
    reflections = []
    for i in range(n):
        m = np.eye(n, dtype=int)
        m[i] = [-1 if j == i else int(abs(i - j) == 1) for j in range(n)]
        reflections.append(m)
    assert groups.from_matrices(reflections).order == math.factorial(8)


def test_signed_permutation_matrices_close_on_few_vectors() -> None:
    swap, cycle, flip = np.eye(8)[[1, 0, *range(2, 8)]], np.roll(np.eye(8), 1, axis=0), np.diag([-1] + [1] * 7)
    assert groups.from_matrices([swap, cycle, flip]).order == 2**8 * math.factorial(8)


@pytest.mark.parametrize("dtypes", [(np.float32, np.float32), (np.float64, np.float32), (np.float32, np.float64)])
def test_the_matrix_given_with_the_fewest_digits_decides_which_vectors_are_the_same(dtypes: tuple[type, type]) -> None:
    c, s = np.cos(np.pi / 60), np.sin(np.pi / 60)
    still, turn = np.eye(2), np.array([[c, -s], [s, c]])
    in_order = [still, turn] if dtypes[1] is np.float32 else [turn, still]
    assert groups.from_matrices([m.astype(d) for m, d in zip(in_order, dtypes, strict=True)]).order == 120


@pytest.mark.parametrize(
    ("matrices", "message"),
    [
        ([[[1, 1], [0, 1]]], "do not generate a finite group, or its order"),
        (
            [[[np.cos(1), -np.sin(1)], [np.sin(1), np.cos(1)]]],
            "do not generate a finite group, or its order",
        ),
        ([[[2, 0], [0, 1]]], "of no finite order: it has an eigenvalue of modulus 2"),
        ([[[1, 0], [0, 0]]], "singular"),
        ([[[np.nan]]], r"expected finite numbers, got nan at \[0, 0\]"),
        ([[[1, 0, 0], [0, 1, 0]]], "expected a square matrix"),
        ([[[1.0]], np.eye(2)], "same size"),
        ([], "at least one matrix"),
        ([[["a"]]], "expected real numbers"),
        ([[[1, 2], [3]]], "rectangular"),
    ],
)
def test_matrices_that_generate_no_finite_group_are_refused(matrices: list[object], message: str) -> None:
    with pytest.raises(GroupError, match=message):
        groups.from_matrices(matrices)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: groups.cyclic(0), "cyclic.*at least 1, got n = 0"),
        (lambda: groups.dihedral(True), "at least 1"),
        (lambda: groups.symmetric(2.5), "at least 1"),  # type: ignore[arg-type]
        (lambda: groups.from_permutations([[0, 0]]), r"permutations\[0\]: expected a permutation of 0..1"),
        (lambda: groups.from_permutations([]), "at least one generator"),
        (lambda: groups.from_permutations([[0, 1], [0, 1, 2]]), "same number of points"),
        (lambda: groups.cyclic(10**9), "at most 100,000, got n = 1,000,000,000"),
        (lambda: groups.symmetric(5000), "at most 1,000"),
        (lambda: groups.product(), "at least one group, got none"),
        (lambda: groups.product(C3, 3), "expected groups, got 3"),  # type: ignore[arg-type]
        (lambda: groups.named("C4x"), "no group is called"),
        (lambda: groups.named("E8"), "no group is called"),
        (
            lambda: groups.semidirect(C4, C3, [[~C4.generators[0]]]),
            "relations",
        ),
        (
            lambda: groups.semidirect(C4, C3, [[C4.generators[0] ** 2]]),
            "one-to",
        ),
        (lambda: groups.cyclic(3).generators[0] * groups.cyclic(4).generators[0], "same group"),
        (lambda: Group([Element((1, 0))], name="C3", relators=[(0, 0, 0)]), "is not the identity"),
    ],
)
def test_unusable_descriptions_are_refused(build: object, message: str) -> None:
    with pytest.raises(GroupError, match=message):
        build()  # type: ignore[operator]


@pytest.mark.parametrize("name", ["C4", "D4", "S3", "A5", "B3", "V4", "Q8"])
def test_a_short_name_finds_its_group(name: str) -> None:
    assert groups.named(name).name == name
    assert groups.named(f"{name} x C2").order == 2 * groups.named(name).order
