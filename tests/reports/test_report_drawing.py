"""The small drawing modules: SVG, scales and PNG."""

from __future__ import annotations

import re
import struct
import xml.etree.ElementTree as ET
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from symcheck_reports import png, svg
from symcheck_reports.sections import residuals
from symcheck_reports.sections.counterexamples import picture_uri
from symcheck_reports.views import Picture


@given(st.text(), st.text())
def test_any_text_stays_text_in_a_figure(name: str, value: str) -> None:
    drawn = svg.element("text", name, class_=value)
    parsed = ET.fromstring(drawn)
    assert len(parsed) == 0
    assert set(parsed.attrib) == {"class"}


@given(st.lists(st.tuples(st.floats(-999, 999), st.floats(-999, 999)), min_size=1, max_size=30))
def test_a_path_ends_where_its_last_point_is(points: list[tuple[float, float]]) -> None:
    numbers = [float(n) for n in re.findall(r"-?\d+(?:\.\d+)?", svg.path(points))]
    # Every step is rounded to a tenth of a unit from where the pen really is, so errors do not add up.
    assert sum(numbers[0::2]) == pytest.approx(points[-1][0], abs=0.06)
    assert sum(numbers[1::2]) == pytest.approx(points[-1][1], abs=0.06)


def test_a_logarithmic_scale_gives_decades_equal_lengths() -> None:
    scale = svg.Scale(1e-3, 1e3, 0, 60, log=True)
    assert [scale(10.0**e) for e in (-3, -1, 1, 3)] == pytest.approx([0, 20, 40, 60])
    assert scale(1e9) == 60


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6))
def test_ticks_lie_inside_and_are_evenly_spaced(low: float, length: float) -> None:
    found = svg.ticks(low, low + length)
    assert 1 <= len(found) <= 12
    slack = 1e-6 * (abs(low) + length)
    assert all(low - slack <= tick <= low + length + slack for tick in found)


def test_a_png_decodes_to_the_pixels_that_went_in() -> None:
    file = png.encode_grey([[0, 128], [255, 7]])
    width, height, depth, colour = struct.unpack(">IIBB", file[16:26])
    assert (width, height, depth, colour) == (2, 2, 8, 0)
    start = file.index(b"IDAT") + 4
    (length,) = struct.unpack(">I", file[start - 8 : start - 4])
    assert zlib.decompress(file[start : start + length]) == bytes([0, 0, 128, 0, 255, 7])


@pytest.mark.parametrize(
    ("shape", "values"),
    [
        ((2, 3), [[0, 1, 2], [3, 4, 5]]),
        ((2, 2, 3), [[[0, 1, 2], [3, 4, 5]], [[0, 0, 0], [5, 5, 5]]]),
        ((2, 2, 2), [[[0, 1], [2, 3]], [[4, 5], [0, 0]]]),
        ((6, 5, 4), [[[0] * 4] * 5] * 6),
    ],
)
def test_grids_of_every_layout_become_images(shape: tuple[int, ...], values: object) -> None:
    assert picture_uri(Picture("x", values, shape, 0.0, 5.0)).startswith("data:image/png;base64,iVBOR")


@pytest.mark.parametrize(
    ("residual", "tolerance", "text"),
    [
        (0.0, 1.0, "0"),
        (1e-3, 1e-6, "1.0e+03"),
        (1e-6, 0.0, "∞"),
        (float("nan"), 1.0, "∞"),
        (0.0, 0.0, "0"),
        (1.0, None, "–"),
    ],
)
def test_a_residual_without_room_is_infinite_and_nan_is_never_within(
    residual: float, tolerance: float | None, text: str
) -> None:
    assert residuals.ratio_text(residuals.Row("r", residual, tolerance, False).ratio) == text


def test_what_exceeds_its_tolerance_is_named_in_the_description_and_has_another_shape() -> None:
    rows = [residuals.Row("fine", 1e-9, 1e-6, False), residuals.Row("wrong", 1e-3, 1e-6, False)]
    drawn = residuals.draw(rows, "figure")
    assert isinstance(drawn, Markup)
    parsed = ET.fromstring(drawn)
    assert "Above tolerance: wrong." in str(parsed.find("desc").text)  # type: ignore[union-attr]
    assert len(parsed.findall("circle")) == 1
    assert len([p for p in parsed.findall("path") if p.get("class") == "over"]) == 1


def test_next_states_that_were_compared_as_vectors_are_drawn_as_pictures() -> None:
    import numpy as np

    from symcheck.engine.results import Counterexample, PropertyResult, RunResult
    from symcheck_reports import model

    start, after = np.arange(30.0).reshape(5, 6), np.arange(30.0)[::-1]
    shown = Counterexample("g", start, None, 0, after, after + 1, 1.0, "observation[0][0]", "", start[:, ::-1])
    result = PropertyResult("transition_invariance", "failed", "paired", 1, 1, counterexample=shown)
    run = RunResult("env", "X", "flip", {"name": "C2", "order": 2}, (result,), 0.01, 0)
    (view,) = model.run_view(run).counterexamples
    assert [picture.shape for picture in view.pictures] == [(5, 6)] * 4
    assert view.pictures[2].values == after.reshape(5, 6).tolist()
