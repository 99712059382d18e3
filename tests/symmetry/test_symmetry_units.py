"""Finite claims one part at a time: words, exact images, agents, spaces, formulas, files."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from symcheck import groups
from symcheck import representations as reps
from symcheck.entries.forms import parse_entry
from symcheck.entries.lie_forms import LieEntry
from symcheck.errors import SpecError
from symcheck.symmetry import compositions
from symcheck.symmetry.blocks import (
    Block,
)
from symcheck.symmetry.claimed_maps import corner_images, read_agents, signed_images
from symcheck.symmetry.exact_images import images_are_exact
from symcheck.symmetry.space_maps import fit
from symcheck.symmetry.spec import parse_group, symmetry_from_mapping
from symcheck.symmetry.symmetry import Symmetry
from symcheck.symmetry.text import describe

C2, C3, C4, S3 = (groups.named(n) for n in ("C2", "C3", "C4", "S3"))
EPS32 = float(np.finfo(np.float32).eps)
BOX = spaces.Box(-1, 1, (2,), np.float32)


# --- finite claims


@pytest.mark.parametrize("word", [(), (0,), (1,), (0, 1), (1, 0), (0, 0, 1)])
def test_words_of_a_group_that_is_not_abelian_apply_their_last_letter_first(word: tuple[int, ...]) -> None:
    rho = reps.natural(S3)
    symmetry = Symmetry("s", S3, rho, rho, state=rho)
    box = spaces.Box(-1, 1, (3,))
    bound = symmetry.bind(box, box)
    matrix = np.eye(3)
    for letter in word:
        matrix = matrix @ rho.matrix(S3.generators[letter])
    values = np.random.default_rng(0).uniform(-1, 1, size=(4, 3))
    for apply, batch in (
        (bound.observation, bound.observation_batch),
        (bound.state, bound.state_batch),
        (lambda w, a: bound.action(w, a, None), lambda w, a: bound.action_batch(w, a, None)),
    ):
        np.testing.assert_allclose(batch(word, values), values @ matrix.T)
        np.testing.assert_allclose(apply(word, values[0]), matrix @ values[0])
    assert bound.label(word) == (" ".join(S3.generator_names[i] for i in word) or "identity")


def test_one_generator_has_the_name_of_the_symmetry_and_powers() -> None:
    bound = Symmetry("turn", C4, [["-2", "+1"]], ["identity"]).bind(BOX, spaces.Discrete(2))
    assert [bound.label((0,) * k) for k in range(4)] == ["identity", "turn", "turn^2", "turn^3"]
    assert bound.note is None
    assert not bound.may_leave((0,))
    assert bound.drawn((0,)) == (0,)
    assert bound.tested_words == bound.compared_words == ((0,),)
    with pytest.raises(SpecError, match="no map of the internal state"):
        bound.state((0,), np.zeros(2))


@pytest.mark.parametrize(
    ("written", "exact"),
    [
        ("identity", True),
        ([-1, 1], True),
        ({"matrix": [[0.6, 0.8], [0.8, -0.6]]}, False),
        ({"signs": [-1, 1], "offset": [1, 0]}, False),
        (lambda v: -v, True),
        (lambda v: v[::-1], True),
        (lambda v: 1 - v, False),
        (lambda v: 0.5 * v, False),
        (lambda v: np.array([v[0], v[0]]), True),
        (lambda v: v * v, False),
        (lambda v: np.array([v[0] + v[1], v[1]]), False),
    ],
)
def test_images_are_exact_where_every_component_goes_to_one_with_a_sign(written: Any, exact: bool) -> None:
    bound = Symmetry("m", C2, [written], ["identity"]).bind(spaces.Box(-9, 9, (2,), np.float64), spaces.Discrete(2))
    assert images_are_exact(bound, (0,), lambda: np.array([0.3, 0.7])) == exact
    dense = {"matrix": [[0.6, 0.8], [0.8, -0.6]]}
    stated = Symmetry("m", C2, [[-1, 1]], ["identity"], state=[dense]).bind(BOX, spaces.Discrete(2))
    assert not images_are_exact(stated, (0,), lambda: np.zeros(2))


@pytest.mark.parametrize("operator", ["rot90", "flip_ud", "flip_lr", "transpose", "identity"])
def test_corners_move_as_pixels_do(operator: str) -> None:
    entry = parse_entry(operator, "")
    images = corner_images(entry)
    corners = np.zeros((2, 2, 4))
    corners.reshape(4, 4)[:] = np.eye(4)
    moves = {
        "rot90": np.rot90, "flip_ud": np.flipud, "flip_lr": np.fliplr,
        "transpose": lambda f: f.swapaxes(0, 1), "identity": lambda f: f,
    }  # fmt: skip
    moved = moves[operator](corners).reshape(4, 4)
    assert [int(np.flatnonzero(moved[:, k])[0]) + 1 for k in range(4)] == images
    with pytest.raises(SpecError, match="expected a spatial operator"):
        corner_images(parse_entry([1, -1], ""))
    assert signed_images(parse_entry(["-2", "+1"], "")) == [-2, 1]
    with pytest.raises(SpecError, match="dense matrix"):
        signed_images(parse_entry({"matrix": [[0.6, 0.8], [0.8, -0.6]]}, ""))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([{}], "for each of 2 generators"),
        ("ab", "for each of 2 generators"),
        ([{"a": "b"}, {}], r"agents\[0\]: expected a permutation"),
        ([{}, {"a": "b", "b": "b"}], r"agents\[1\]: expected a permutation"),
        ([{}, 3], "for each of 2 generators"),
    ],
)
def test_agents_are_one_permutation_for_each_generator(given: Any, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        read_agents(given, 2)
    assert read_agents([{}, {"a": "b", "b": "a"}], 2) == ({}, {"a": "b", "b": "a"})


# --- spaces


@pytest.mark.parametrize(
    ("entry", "space", "message"),
    [
        ([1, 0], spaces.Discrete(3), "acts on 2 values, but the space has 3"),
        ([-1], spaces.Discrete(2), "acts on 1 value, but the space has 2"),
        ([-1, 1], spaces.Discrete(2), "must be a permutation of the 2 values"),
        ([1, -1, 1], BOX, "acts on 3 components, but the space has 2"),
        ([1, -1], spaces.Box(0, 9, (2,), np.uint8), "negates components"),
        ([1, -1], spaces.MultiBinary(2), "negates components"),
        ([1, 0], spaces.MultiDiscrete([2, 3]), r"maps \[1, 2\] to \[2.*, 1.*\], which is not in"),
        ({"signs": [-1, -1], "offset": [1, 1]}, spaces.MultiDiscrete([2, 3]), "which is not in"),
        ([1, 0], spaces.Dict({"a": BOX, "b": BOX}), r"cannot act on the space Dict.*\{ a = \.\.\., b = \.\.\. \}"),
        ("rot90", spaces.Box(0, 1, (2, 3)), "needs square images, but the space has 2x3"),
        ("transpose", spaces.Box(0, 1, (4, 2, 3)), "needs square images, but the space has 2x3"),
        (
            {"spatial": "rot90", "axes": [0, 1]},
            spaces.Box(0, 1, (2, 3, 3)),
            "needs square images, but the space has 2x3",
        ),
        ("flip_lr", spaces.Box(0, 1, (3,)), "last two axes of an image"),
        ("flip_lr", spaces.Discrete(3), "last two axes of an image"),
        ({"spatial": "flip_lr", "axes": [0, 1]}, spaces.Box(0, 1, (3, 3)), "images with channels"),
        ("flip_lr", spaces.Box(0, 1, (5, 5, 4)), "looks like channels"),
        ({"a": [1, 0]}, BOX, "needs a Dict or Tuple space"),
        ({"c": [1, 0]}, spaces.Dict({"a": BOX}), r"names sub-spaces \['c'\]"),
        ({"2": [1, 0]}, spaces.Tuple([BOX, BOX]), r"names sub-spaces \[2\]"),
    ],
)
def test_an_entry_that_does_not_fit_names_both(entry: Any, space: Any, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        fit(parse_entry(entry, ""), space, "there")


@pytest.mark.parametrize(
    ("entry", "space"),
    [
        ("flip_lr", spaces.Box(0, 1, (5, 5, 5))),
        ("flip_lr", spaces.Box(0, 1, (4, 5, 4))),
        ("flip_ud", spaces.Box(0, 1, (2, 3))),
        ("flip_lr", spaces.MultiBinary((2, 3))),
        ([1, 0], spaces.MultiDiscrete([3, 3])),
        ({"signs": [-1, -1], "offset": [1, 2]}, spaces.MultiDiscrete([2, 3])),
        ({"signs": [-1, -1], "offset": [1, 1]}, spaces.MultiBinary(2)),
        ({"signs": [-1, -1], "offset": [7, 8]}, spaces.MultiDiscrete([2, 3], start=[3, 3])),
        ([-1, -1], spaces.Box(-9, 9, (2,), np.int8)),
    ],
)
def test_an_entry_that_fits_maps_batches_as_it_maps_values(entry: Any, space: Any) -> None:
    fitted = fit(parse_entry(entry, ""), space, "there")
    space.seed(0)
    values = np.stack([space.sample() for _ in range(5)])
    images = fitted.batch(values)
    assert images.shape == values.shape
    for value, image in zip(values, images, strict=True):
        np.testing.assert_array_equal(fitted.image(value), image)
        assert space.contains(image.astype(space.dtype))
    assert len(fitted.batch(values[:0])) == 0


def test_a_discrete_space_that_starts_elsewhere_is_permuted_there() -> None:
    fitted = fit(parse_entry([2, 0, 1], ""), spaces.Discrete(3, start=-1), "action[0]")
    assert [int(fitted.image(k)) for k in (-1, 0, 1)] == [1, -1, 0]
    assert fitted.batch(np.array([1, -1])).tolist() == [0, 1]


def test_states_have_the_size_of_their_entry() -> None:
    fitted = fit(parse_entry([1, -1], ""), None, "state[0]")
    with pytest.raises(SpecError, match=r"state\[0\]: expected a vector of 2 components, got shape \(3,\)"):
        fitted.image(np.zeros(3))
    with pytest.raises(SpecError, match="expected a vector of 2 components"):
        fitted.batch(np.zeros((4, 3)))
    lie = compositions.compose([compositions.Step(LieEntry(planes=((0, 2, 1.0),)), 0.5)], None, None)
    maps = fit(lie, None, "state, turn")
    assert maps.image(np.ones(3)).shape == (3,)
    assert maps.batch(np.ones((2, 5))).shape == (2, 5)
    assert maps.batch(np.ones((0, 5))).shape == (0, 5)
    with pytest.raises(SpecError, match="expected a vector of 3 components, got 2"):
        maps.image(np.ones(2))
    fixed = compositions.compose([compositions.Step(LieEntry(shift=np.ones(2)), 0.5)], None, None)
    with pytest.raises(SpecError, match="expected a vector of 2 components, got 3"):
        fit(fixed, None, "state").image(np.ones(3))


# --- texts and files


@pytest.mark.parametrize(
    ("entry", "symbol", "told"),
    [
        ([1, 2, 0], "a", "0 -> 1 -> 2 -> 0"),
        ([1, 0, 3, 2], "a", "0 <-> 1, 2 <-> 3"),
        ([0, 2, 1], "a", "1 <-> 2"),
        ([0, 1], "a", "unchanged"),
        ({"matrix": [[0.5, -2], [0, 0]], "offset": [0, 3]}, "s", "(s0, s1) -> (0.5 s0 - 2 s1, 3)"),
        ({"matrix": [[-1, 1], [0, 0]], "offset": [-1.5, 0]}, "o", "(o0, o1) -> (-o0 + o1 - 1.5, 0)"),
        ([-1] * 12, "o", None),
        ([-1] * 13, "o", "moves 0 and negates 13 of 13 components"),
        ([1, 0, *range(2, 13)], "o", "moves 2 and negates 0 of 13 components"),
        ({"matrix": (np.eye(13) * 2).tolist()}, "o", "a dense 13x13 matrix"),
        ("rot90", "o", "rot90 of the last two axes"),
        ({"spatial": "rot90", "axes": [0, 1]}, "o", "rot90 of the two axes before the last"),
        ({"x": [-1], "y": "identity"}, "o", "x: (o0) -> (-o0); y: unchanged"),
    ],
)
def test_an_entry_reads_as_a_formula(entry: Any, symbol: str, told: str | None) -> None:
    text = describe(parse_entry(entry, ""), symbol)
    assert text == (told or f"({', '.join(f'o{i}' for i in range(12))}) -> ({', '.join(f'-o{i}' for i in range(12))})")


def test_named_components_are_listed_where_they_move() -> None:
    names = [f"n{i}" for i in range(14)]
    few, many = {"n0": "-n1", "n1": "n0"}, {name: f"-{name}" for name in names}
    for written, told in ((few, "n0 -> -n1, n1 -> n0"), (many, "moves 0 and negates 14 of 14 components")):
        group, entries = (C4, few) if written is few else (C2, many)
        symmetry = Symmetry("m", group, [Block("b", [entries], names=names)], ["identity"])
        bound = symmetry.bind(spaces.Box(-1, 1, (14,)), spaces.Discrete(2))
        assert bound.claim["observation"] == [f"m: b: {told}"]
        assert bound.claim["action"] == ["m: unchanged"]
        assert "state" not in bound.claim
        assert bound.column_labels("observation") == {None: tuple(f"b {name}" for name in names)}
        assert bound.column_labels("action") == {}


@pytest.mark.parametrize(
    ("text", "order"),
    [("C2 x D4", 16), ("C2 × C3", 6), ("product(C2, C3 x C2)", None), ("cyclic(5)", 5), ("C2 x C2 x C2", 8)],
)
def test_groups_are_read_by_name(text: str, order: int | None) -> None:
    if order is None:
        with pytest.raises(SpecError):
            parse_group(text, "group")
    else:
        assert parse_group(text, "group").order == order


def test_fields_that_are_missing_or_unknown_are_all_named() -> None:
    with pytest.raises(SpecError, match=r"is missing group, action; has unknown fields actions, tribe"):
        symmetry_from_mapping({"name": "m", "observation": [], "actions": [], "tribe": ""}, "file")
    data = {"name": "m", "group": "C2", "observation": [[-1]], "action": [[1, 0]]}
    assert symmetry_from_mapping(data, "file").initial
    assert not symmetry_from_mapping({**data, "initial": False}, "file").initial
    assert symmetry_from_mapping(data, "file").state is None
    assert symmetry_from_mapping({**data, "state": [[-1, 1]]}, "file").state is not None
    for wrong in (1, "true", None):
        with pytest.raises(SpecError, match="expected initial = true or false"):
            symmetry_from_mapping({**data, "initial": wrong}, "file")
