"""Outside text becomes harmless, numbers become readable."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from symcheck_reports import formatting


@given(st.text(st.characters()))
def test_cleaned_text_is_valid_xml_and_utf8(text: str) -> None:
    cleaned = formatting.clean(text)
    cleaned.encode("utf-8")
    element = ET.Element("a")
    element.text = cleaned
    assert ET.fromstring(ET.tostring(element)).text in (cleaned, cleaned or None)


@given(st.text(st.characters()))
def test_cleaned_text_cannot_move_a_cursor_or_turn_the_direction(text: str) -> None:
    cleaned = formatting.clean(text)
    assert not any(ord(c) < 32 and c not in "\n\t" for c in cleaned)
    assert not set(cleaned) & set("\x1b\x7f\x9b\u202e\u202d\u2066\u2067\u200f")


@pytest.mark.parametrize("text", ["plain", "Größe", "左右", "a\nb\tc", "🜁"])
def test_harmless_text_is_left_alone(text: str) -> None:
    assert formatting.clean(text) == text


@given(st.text(min_size=1), st.integers(9, 200))
def test_one_line_is_one_line_and_never_longer_than_its_limit(text: str, limit: int) -> None:
    line = formatting.one_line(text, limit)
    assert "\n" not in line
    assert len(line) <= limit


def test_a_very_long_name_keeps_its_beginning_and_its_end() -> None:
    line = formatting.one_line("start" + "x" * 10_000 + "end", 40)
    assert line.startswith("start")
    assert line.endswith("end")
    assert "…" in line


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0312, "3.1e-02"),
        (0, "0"),
        (0.0, "0"),
        (None, "–"),
        (math.nan, "NaN"),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
        ("NaN", "NaN"),
    ],
)
def test_residuals_keep_nan_and_infinity_visible(value: float | str | None, text: str) -> None:
    assert formatting.scientific(value) == text


def test_a_small_fraction_is_never_rounded_to_nothing() -> None:
    assert formatting.percent(3e-9) == "3e-07%"
    assert formatting.percent(0.999) == "99.9%"


def test_two_float32_neighbours_look_different_at_nine_digits() -> None:
    one = float(np.float32(0.1))
    next_one = float(np.nextafter(np.float32(0.1), np.float32(1)))
    assert formatting.number(one, 9) != formatting.number(next_one, 9)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.array([0.0, 0.5]), "[0, 0.5]"),
        ((1, [2, 3]), "[1, [2, 3]]"),
        ({"goal": [1.5], "on": True}, "{goal: [1.5], on: true}"),
        (7, "7"),
        (np.float32(np.nan), "NaN"),
        (np.zeros((84, 84)), "7,056 numbers, all 0"),
    ],
)
def test_observations_are_written_as_people_write_them(value: object, text: str) -> None:
    assert formatting.compact(value) == text


def test_a_long_dense_vector_says_its_size_and_its_first_entries() -> None:
    text = formatting.compact(np.arange(1, 101) * 1.0)
    assert text.startswith("100 numbers, the first: 1, 2, 3")


@pytest.mark.parametrize(
    ("value", "shape"),
    [([[1, 2], [3, 4]], (2, 2)), ([], (0,)), ([[1], [2, 3]], None), ({"a": 1}, None), (1.0, ()), ([[[1]]], (1, 1, 1))],
)
def test_only_regular_nesting_has_a_shape(value: object, shape: tuple[int, ...] | None) -> None:
    assert formatting.shape_of(value) == shape


def test_leaves_are_placed_as_python_indexes_them() -> None:
    value = {"image": [[1, 2], [3, 4]], "inner": {"x": 5}}
    places = [place for place, _ in formatting.leaves(value)]
    assert places == ["image[0, 0]", "image[0, 1]", "image[1, 0]", "image[1, 1]", "inner.x"]
