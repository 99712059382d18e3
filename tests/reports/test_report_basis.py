"""The page of bases: ranks in words and numbers, and matrices drawn so that sign needs no colour."""

from __future__ import annotations

import dataclasses
import xml.etree.ElementTree as ET
from collections.abc import Callable

import pytest

from symcheck_reports import basis_page
from symcheck_reports.basis_model import BasisModel
from symcheck_reports.basis_page import render_basis


def _paths(matrix: list[list[float]], tile: tuple[int, ...] = ()) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for part in ET.fromstring(basis_page.hinton(matrix, "figure", "title", tile)).iter("path"):
        found.setdefault(part.attrib["class"], []).append(part.attrib["d"])
    return found


def test_positive_weights_are_filled_negative_ones_hollow_and_zeros_absent() -> None:
    paths = _paths([[1.0, 0.0], [-1.0, 0.5]])
    assert paths["plus"][0].count("M") == 2
    assert paths["minus"][0].count("M") == 1


def test_a_larger_weight_is_a_larger_square() -> None:
    small, large = (float(_paths([[w]])["plus"][0].split("h")[1].split("v")[0]) for w in (0.25, 1.0))
    assert large == pytest.approx(2 * small, abs=0.1)  # areas are as the weights; lengths are rounded to a tenth


def test_nan_is_drawn_as_nothing() -> None:
    assert _paths([[float("nan"), float("inf")]])["plus"] == [""]


def test_filters_are_separated_by_lines() -> None:
    assert len(_paths([[0.0] * 6] * 6, (3, 3))["axis"]) == 2
    assert "axis" not in _paths([[0.0] * 6] * 6)


def test_a_layer_without_a_free_weight_is_said_to_be_zero(basis_model: BasisModel) -> None:
    text = render_basis(basis_model)
    assert "observation → value has no free weight: only the zero layer commutes" in text
    assert "no free weight" not in render_basis(dataclasses.replace(basis_model, layers=basis_model.layers[:2]))


def test_ranks_stand_beside_the_dense_layer(basis_model: BasisModel) -> None:
    text = render_basis(basis_model)
    assert "observation → hidden has 4 free weights where a dense layer has 8." in text
    assert "The first 1 of 9 basis matrices." in text


def test_a_matrix_too_large_to_read_is_not_drawn(basis_model: BasisModel) -> None:
    huge = dataclasses.replace(basis_model.layers[0], pictures=[[[1.0] * 100] * 100])
    assert "The basis, drawn" not in render_basis(dataclasses.replace(basis_model, layers=[huge]))


def test_no_layer_is_an_error(basis_model: BasisModel) -> None:
    with pytest.raises(ValueError, match="at least one layer"):
        render_basis(dataclasses.replace(basis_model, layers=[]))


def test_the_page_is_as_agreed(basis_model: BasisModel, gold: Callable[[str, str], None]) -> None:
    gold("basis.html", render_basis(basis_model))
