"""Entries are told apart by their form, and refused with what was expected and given."""

import re

import gymnasium as gym
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from symcheck.entries.forms import (
    AffineEntry,
    FunctionEntry,
    IdentityEntry,
    SpatialEntry,
    TreeEntry,
    parse_entry,
)
from symcheck.entries.numbers import number
from symcheck.errors import SpecError
from symcheck.symmetry.space_maps import fit
from symcheck.symmetry.text import describe


@given(st.permutations(range(6)))
def test_a_permutation_sends_component_i_to_p_i(p):
    entry = parse_entry(p, "x")
    image = entry.apply(np.arange(6.0))
    for i in range(6):
        assert image[p[i]] == i


@given(st.permutations(range(1, 6)), st.lists(st.sampled_from([1, -1]), min_size=5, max_size=5))
def test_signed_images_send_basis_vectors_to_signed_basis_vectors(images, signs):
    entry = parse_entry([f"{s * i:+d}" for i, s in zip(images, signs, strict=True)], "x")
    for j in range(5):
        image = entry.apply(np.eye(5)[j])
        assert image[images[j] - 1] == signs[j]
        assert np.count_nonzero(image) == 1


@given(st.permutations(range(5)), st.lists(st.sampled_from([1, -1]), min_size=5, max_size=5))
def test_a_matrix_that_is_a_signed_permutation_is_recognised_as_one(p, signs):
    matrix = np.zeros((5, 5))
    matrix[p, np.arange(5)] = signs
    entry = parse_entry(matrix, "x")
    assert entry.matrix is None
    np.testing.assert_array_equal(entry.dense(), matrix)


@pytest.mark.parametrize("wrap", [np.asarray, scipy.sparse.csr_array, lambda m: [list(row) for row in m]])
def test_matrices_may_be_arrays_sparse_or_nested_lists(wrap):
    rotation = np.array([[0.0, -1.0], [1.0, 0.0]])
    np.testing.assert_array_equal(parse_entry(wrap(rotation), "x").dense(), rotation)


def test_a_tensor_is_read_as_a_matrix():
    import torch

    half = 0.5 * np.sqrt(3)
    entry = parse_entry(torch.tensor([[-0.5, -half], [half, -0.5]], dtype=torch.float64), "x")
    np.testing.assert_array_equal(entry.dense(), [[-0.5, -half], [half, -0.5]])


def test_signs_and_offset_make_an_affine_map():
    entry = parse_entry({"signs": [-1, -1], "offset": ["-pi/3", 0]}, "x")
    # one rounding of the sum: exact in float64 up to its last place
    np.testing.assert_allclose(entry.apply(np.array([0.5, 2.0])), [-np.pi / 3 - 0.5, -2.0], rtol=1e-15)


def test_float32_stays_float32_and_signed_permutations_do_not_round():
    x = np.array([0.1, 0.2], dtype=np.float32)
    image = parse_entry(["-2", "+1"], "x").apply(x)
    assert image.dtype == np.float32
    np.testing.assert_array_equal(image, np.array([0.2, -0.1], dtype=np.float32))


@pytest.mark.parametrize(
    ("written", "kind"),
    [
        ("rot90", SpatialEntry),
        ("identity", IdentityEntry),
        (lambda obs: obs, FunctionEntry),
        ({"image": "flip_lr", "velocity": [-1]}, TreeEntry),
        (("rot90", [1, 0]), TreeEntry),
        ((1, 0), AffineEntry),
        (("-1", "+2"), AffineEntry),
        ([[1, 0], [0, 1]], AffineEntry),
    ],
)
def test_each_form_is_recognised(written, kind):
    assert isinstance(parse_entry(written, "x"), kind)


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ([0, 0], r"observation\[0\]: expected a permutation of 0..1 or 2 signs \(\+1 or -1\), got \[0, 0\]"),
        ([2, 1], "expected a permutation"),
        (["-1", "-1"], "use each of 1..2 once"),
        ([[1, 2, 3]], r"expected a square matrix, got shape \(1, 3\)"),
        ([[np.nan]], "expected finite numbers"),
        ("rot91", "Did you mean 'rot90'"),
        ({"matrix": [[1]], "signs": [1]}, "got both"),
        ({"signs": [1, 1], "offset": [1]}, "its offset must have 2 numbers"),
        (3, "expected a square matrix"),
        ({"signs": [1], "offset": ["__import__('os')"]}, "expected a number, or an expression"),
        (None, "expected"),
    ],
)
def test_what_is_no_entry_is_refused_with_expected_and_given(written, message):
    with pytest.raises(SpecError, match=message):
        parse_entry(written, "observation[0]")


@pytest.mark.parametrize("text", ["pi", "-pi/3", "sqrt(3)/2", "2*cos(0)", "+1.5e-3"])
def test_expressions_of_numbers_are_evaluated(text):
    from math import cos, pi, sqrt

    assert number(text, "x") == eval(text, {"pi": pi, "sqrt": sqrt, "cos": cos})


@pytest.mark.parametrize("text", ["2**9999", "open('x')", "(1,)", "x", "1/0", "sqrt(-1)", "'a'", ""])
def test_anything_else_is_never_run(text):
    with pytest.raises(SpecError, match="expected a number"):
        number(text, "x")


@pytest.mark.parametrize("dtype", [np.int64, np.int8, np.uint8])
def test_whole_numbers_turned_over_stay_of_their_type(dtype):
    turned = parse_entry({"signs": [-1, -1], "offset": [2, 2]}, "x")
    for values in (np.array([0, 1], dtype), np.array([[0, 1], [2, 2]], dtype)):
        image = turned.apply(values)
        assert image.dtype == dtype
        np.testing.assert_array_equal(image.astype(int), 2 - values.astype(int))


def test_whole_numbers_under_an_integer_matrix_stay_of_their_type():
    swap = parse_entry({"matrix": [[0, 1], [1, 0]], "offset": [1, 0]}, "x")
    assert swap.apply(np.array([5, 7], np.uint8)).dtype == np.uint8
    np.testing.assert_array_equal(swap.apply(np.array([5, 7], np.uint8)), [8, 5])


def test_whole_numbers_whose_images_do_not_fit_their_type_do_not_wrap_around():
    np.testing.assert_array_equal(parse_entry({"signs": [-1], "offset": [1]}, "x").apply(np.array([3], np.uint8)), [-2])
    np.testing.assert_array_equal(
        parse_entry({"signs": [1], "offset": [0.5]}, "x").apply(np.array([3], np.uint8)), [3.5]
    )


@pytest.mark.parametrize(
    "written",
    [
        ["-2", "+1", "+3"],
        {"signs": [-1, 1], "offset": ["pi/3", 0]},
        {"matrix": [[0, 2.5, 0], [-0.25, 0, 1], [0, 0, 0]], "offset": [0, -1.5, 0]},
        {"matrix": [[0.6, -0.8], [0.8, 0.6]]},
        {"matrix": [[0, 0], [0, 1]], "offset": [3, 0]},
    ],
)
def test_a_formula_computes_what_the_entry_does(written):
    entry = parse_entry(written, "")
    source, image = describe(entry, "x").split(" -> ")
    assert source == f"({', '.join(f'x{i}' for i in range(entry.dim))})"
    values = np.random.default_rng(0).normal(size=entry.dim)
    formulas = re.sub(r"(\d) x", r"\1 * x", image.strip("()")).split(", ")
    computed = [eval(formula, {f"x{i}": value for i, value in enumerate(values)}) for formula in formulas]
    np.testing.assert_allclose(computed, entry.apply(values), rtol=1e-5, atol=1e-5)  # six digits are printed
    assert not image.startswith("(+")


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ([2, 0, 1, 3], "0 -> 2 -> 1 -> 0"),
        ([1, 0, 3, 2], "0 <-> 1, 2 <-> 3"),
        ([0, 1], "unchanged"),
        ([1, 0, *range(2, 40)], "0 <-> 1"),
    ],
)
def test_a_permutation_of_actions_is_told_in_cycles(entry, told):
    assert describe(parse_entry(entry, ""), "a") == told


def test_long_vectors_are_counted():
    long = parse_entry(["-2", "+1", *(f"{s}{i}" for i, s in zip(range(3, 41), "+-" * 19, strict=True))], "")
    assert describe(long, "o") == "moves 2 and negates 20 of 40 components"
    assert describe(parse_entry({"matrix": (np.eye(40) * 0.5).tolist()}, ""), "o") == "a dense 40x40 matrix"


def test_channels_last_are_left_where_the_axes_say_so() -> None:
    picture = np.arange(7 * 7 * 3).reshape(7, 7, 3)
    space = gym.spaces.Box(0, 255, (7, 7, 3), np.int64)
    columns = fit(parse_entry({"spatial": "flip_lr", "axes": [0, 1]}, "observation[0]"), space, "observation[0]")
    assert np.array_equal(columns.image(picture), picture[:, ::-1])
    assert np.array_equal(columns.batch(picture[None]), picture[None, :, ::-1])
    written = fit(parse_entry({"spatial": "flip_lr", "axes": [1, 2]}, "observation[0]"), space, "observation[0]")
    assert np.array_equal(written.image(picture), picture[..., ::-1])
    first = gym.spaces.Box(0, 255, (3, 7, 7), np.int64)
    plain = fit(parse_entry("flip_lr", "observation[0]"), first, "observation[0]")
    assert np.array_equal(plain.image(picture.T), picture.T[..., ::-1])


@pytest.mark.parametrize("shape", [(7, 7, 3), (10, 10, 7), (8, 8, 17), (20, 10, 8), (2, 2, 1)])
def test_a_last_axis_that_looks_like_channels_is_refused_with_both_readings(shape: tuple[int, int, int]) -> None:
    space = gym.spaces.Box(0, 255, shape, np.int64)
    with pytest.raises(SpecError, match=r"looks like channels") as refused:
        fit(parse_entry("flip_lr", "observation[0]"), space, "observation[0]")
    assert "axes = [0, 1]" in str(refused.value)
    assert "axes = [1, 2]" in str(refused.value)
    with pytest.raises(SpecError, match=r"expected axes = \[0, 1\]"):
        parse_entry({"spatial": "flip_lr", "axes": [0, 2]}, "observation[0]")


@pytest.mark.parametrize("shape", [(3, 7, 7), (17, 8, 8), (3, 5, 7), (8, 8, 8), (1, 1, 5), (16, 84, 96)])
def test_channels_first_are_read_without_axes(shape: tuple[int, int, int]) -> None:
    picture = np.arange(np.prod(shape)).reshape(shape)
    columns = fit(parse_entry("flip_lr", ""), gym.spaces.Box(0, picture.max(), shape, np.int64), "")
    assert np.array_equal(columns.image(picture), picture[..., ::-1])
