"""Continuous groups: elements, names, decompositions, the elements that runs test."""

from __future__ import annotations

import math
from types import SimpleNamespace

import gymnasium as gym
import numpy as np
import pytest

import symcheck as sc
from symcheck.entries.forms import TreeEntry
from symcheck.entries.lie_forms import LieEntry
from symcheck.errors import GroupError, SpecError
from symcheck.groups.continuous import ContinuousGroup
from symcheck.symmetry import compositions, lie_spaces
from symcheck.symmetry.compositions import Seen
from symcheck.symmetry.elements import axiom_words, generic_angles, generic_elements, plane_rotations, uniform_element
from symcheck.symmetry.spec import parse_group

G = sc.groups
COMPACT = [G.so(2), G.o(2), G.so(3), G.o(3), G.so(4), G.o(4), G.so(5), G.product(G.cyclic(3), G.so(2), G.so(3))]
ALL = [*COMPACT, G.se(2), G.e(2), G.se(3), G.e(3), G.translations(1), G.translations(3), G.se(1), G.e(1)]


def spell(group: ContinuousGroup, factors: list[tuple[int, float | None]]):
    element = group.identity
    for i, t in factors:
        element = element * (group.generators[i] if t is None else group.exp(i, t))
    return element


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("SO(2)", ("turn",)),
        ("o(2)", ("turn", "reflection")),
        ("so(3)", ("turn_x", "turn_y", "turn_z")),
        ("O(3)", ("turn_x", "turn_y", "turn_z", "inversion")),
        ("so(4)", ("turn_01", "turn_02", "turn_03", "turn_12", "turn_13", "turn_23")),
        ("translations(2)", ("shift_x", "shift_y")),
        ("SE(2)", ("shift_x", "shift_y", "turn")),
        ("e(2)", ("shift_x", "shift_y", "turn", "reflection")),
        ("product(C2, so(2))", ("turn", "r")),
        ("C2 x so(2)", ("turn", "r")),
        ("so(2) x D3 x SO(2)", ("turn1", "turn3", "r", "s")),
    ],
)
def test_names_list_lie_generators_first(text: str, names: tuple[str, ...]) -> None:
    group = parse_group(text, "group")
    assert isinstance(group, ContinuousGroup)
    assert group.entry_names == names
    assert group.order == math.inf


@pytest.mark.parametrize("text", ["so(1)", "SO(0)", "o(true)", "so(2", "so(2) x ", "so(99)", "sp(2)"])
def test_a_name_of_no_group_is_refused(text: str) -> None:
    with pytest.raises(SpecError):
        parse_group(text, "group")


def test_elements_cannot_be_listed_and_only_compact_groups_are_sampled() -> None:
    with pytest.raises(GroupError, match="infinitely many"):
        G.so(2).elements()
    with pytest.raises(GroupError, match="not compact"):
        G.se(2).sample(np.random.default_rng(0))
    with pytest.raises(GroupError, match="finite number"):
        G.so(2).exp(0, math.nan)
    with pytest.raises(GroupError, match="Lie generator"):
        G.so(2).exp(1, 0.0)
    assert G.so(3).compact
    assert not G.translations(1).compact


def test_turns_are_counter_clockwise_and_about_x_y_z() -> None:
    quarter = [G.so(3).exp(i, math.pi / 2).parts[0] for i in range(3)]
    # About x: y to z; about y: z to x; about z: x to y.
    for turn, (source, image) in zip(quarter, [(1, 2), (2, 0), (0, 1)], strict=True):
        assert np.allclose(turn @ np.eye(3)[source], np.eye(3)[image])


@pytest.mark.parametrize("group", COMPACT, ids=lambda group: group.name)
def test_every_haar_element_is_exponentials_and_a_word(group: ContinuousGroup) -> None:
    rng = np.random.default_rng(1)
    for _ in range(5):
        g, h = group.sample(rng), group.sample(rng)
        assert g * ~g == group.identity
        assert g in group
        assert g * h in group
        vectors, word = group.decompose(g)
        assert len(vectors) == sum(factor.turns for factor in group.factors)
        assert all(k < len(group.generators) for k in word)


def test_haar_elements_are_uniform() -> None:
    rng = np.random.default_rng(0)
    columns = np.array([G.so(3).sample(rng).parts[0][:, 0] for _ in range(4_000)])
    # Means of 4,000 uniform unit vectors and of their squares, five standard errors.
    assert np.abs(columns.mean(axis=0)).max() < 5 * math.sqrt(1 / 3 / 4_000)
    assert np.abs((columns**2).mean(axis=0) - 1 / 3).max() < 5 * math.sqrt(4 / 45 / 4_000)


def test_a_half_turn_has_a_logarithm() -> None:
    half = G.so(4).exp(0, math.pi) * G.so(4).exp(5, math.pi)
    vectors, word = G.so(4).decompose(half)
    rho = sc.representations.vector(G.so(4))
    assert word == ()
    assert np.allclose(rho.matrix(half), -np.eye(4))
    assert np.isclose(np.linalg.norm(vectors[0]), math.pi * 2**0.5)


@pytest.mark.parametrize("group", ALL, ids=lambda group: group.name)
def test_axiom_words_are_relations_of_the_group(group: ContinuousGroup) -> None:
    for word in axiom_words(group, lambda i: 2.0):
        assert spell(group, word) == group.identity


@pytest.mark.parametrize("group", ALL, ids=lambda group: group.name)
def test_tested_elements_are_as_many_as_generate_a_dense_subgroup(group: ContinuousGroup) -> None:
    expected = len(group.generators)
    for factor in group.factors:
        expected += (1 if factor.n == 2 else 2) * factor.turns + (factor.n + 1) * factor.translates
    elements = generic_elements(group, np.random.default_rng(0), lambda i: 3.0)
    assert len(elements) == expected
    again = generic_elements(group, np.random.default_rng(0), lambda i: 3.0)
    assert elements == again


@pytest.mark.parametrize("n", [2, 3, 4, 5])
@pytest.mark.parametrize("seed", range(4))
def test_generic_angles_move_every_harmonic_up_to_eight(n: int, seed: int) -> None:
    group = G.so(n)
    angles = generic_angles(group.factors[0], np.random.default_rng(seed))
    matrix = spell(group, list(enumerate(angles))).parts[0]
    own = np.sort(np.abs(np.angle(np.linalg.eigvals(matrix))))[n % 2 :]
    phi = np.linspace(0, 2 * math.pi, 10_000)
    for k in range(1, 9):
        for angle in own:
            # The harmonic has the range 2; the difference that the angle makes must have at least half of it.
            assert np.ptp(np.cos(k * (phi + angle)) - np.cos(k * phi)) >= 1.0 - 1e-6


@pytest.mark.parametrize("n", [2, 3, 4])
def test_rotations_are_products_of_plane_rotations(n: int) -> None:
    rotation = G.so(n).sample(np.random.default_rng(2)).parts[0]
    product = np.eye(n)
    for (i, j), angle in plane_rotations(rotation):
        turn = np.eye(n)
        turn[i, i] = turn[j, j] = math.cos(angle)
        turn[j, i], turn[i, j] = math.sin(angle), -math.sin(angle)
        product = product @ turn
    assert np.allclose(product, rotation)


def test_uniform_elements_are_haar() -> None:
    rng = np.random.default_rng(3)
    group = G.so(3)
    columns = np.array([spell(group, list(uniform_element(group, rng).factors)).parts[0][:, 2] for _ in range(2_000)])
    assert np.abs(columns.mean(axis=0)).max() < 5 * math.sqrt(1 / 3 / 2_000)


def test_a_claim_bound_without_a_seed_is_tested_at_the_elements_of_seed_zero():
    box = gym.spaces.Box(-1, 1, (2,))
    bound = sc.Symmetry("turn", G.so(2), [{"rotate": [[0, 1]]}], [{"rotate": [[0, 1]]}]).bind(box, box)
    seeded = [bound.at_tested_elements(seed, lambda: Seen((), ())) for seed in (0, 1)]
    images = [each.observation((0,), np.array([1.0, 0.0])) for each in (bound, *seeded)]
    np.testing.assert_array_equal(images[0], images[1])
    assert np.abs(images[0] - images[2]).max() > 1e-3


@pytest.mark.parametrize("container", [tuple, dict])
def test_an_amount_is_the_spread_of_what_is_shifted_wherever_it_stands(container: type) -> None:
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(2, 50, 2)) * [1.0, 3.0]
    keys = (0, 1) if container is tuple else ("near", "far")
    spaces = [gym.spaces.Box(-9, 9, (2,)), gym.spaces.Box(-9, 9, (2,))]
    space = gym.spaces.Tuple(spaces) if container is tuple else gym.spaces.Dict(dict(zip(keys, spaces, strict=True)))
    assert lie_spaces.subspaces(space) == dict(zip(keys, spaces, strict=True))
    assert lie_spaces.subspaces(spaces[0]) == {}
    values = [
        container(pair) if container is tuple else dict(zip(keys, pair, strict=True))
        for pair in zip(first, second, strict=True)
    ]
    shifted = TreeEntry({keys[0]: LieEntry(shift=np.array([0.0, -2.0])), keys[1]: LieEntry(shift=np.array([1.0, 0.0]))})
    claim = SimpleNamespace(algebra={"observation": [shifted]})
    amount = compositions.amounts(claim, Seen(values, []))
    assert amount(0) == pytest.approx((first[:, 1].std() / 2 + second[:, 0].std()) / 2)
    assert compositions.amounts(claim, Seen([], []))(0) == 1.0
