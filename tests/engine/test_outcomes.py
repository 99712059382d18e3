"""What stood on both sides of a quantity: numbers that vary, one value throughout, or nothing to compare."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from symcheck.engine.outcomes import Outcomes, outcomes_of

NAN, INF = np.nan, np.inf


@pytest.mark.parametrize(
    ("rows", "outcomes"),
    [
        ([[1.0], [2.0]], Outcomes(True, "", None)),
        ([[2.5], [2.5]], Outcomes(True, "", "2.5")),
        ([[0.0], [-0.0]], Outcomes(True, "", "0")),
        ([[NAN], [NAN]], Outcomes(False, "NaN", None)),
        ([[INF], [INF]], Outcomes(False, "infinite", None)),
        ([[-INF], [INF]], Outcomes(True, "", None)),
        ([[NAN], [INF]], Outcomes(True, "", None)),
        ([[NAN, INF], [NAN, INF]], Outcomes(False, "NaN", None)),
        ([[NAN, 1.0], [NAN, 2.0]], Outcomes(True, "", None)),
        ([[1.0, 2.0], [1.0, 2.0]], Outcomes(True, "", "[1.0, 2.0]")),
    ],
)
def test_rows_are_compared_where_something_could_have_differed(rows: Any, outcomes: Outcomes) -> None:
    both = np.array(rows)
    assert outcomes_of(both, both) == outcomes
    assert outcomes_of(both[:1], both[1:]) == outcomes


def test_a_value_that_differs_between_the_sides_is_no_constant() -> None:
    assert outcomes_of(np.zeros((5, 1)), np.ones((5, 1))).constant is None


def test_no_rows_are_no_reason_to_call_them_anything() -> None:
    assert outcomes_of(np.zeros((0, 2)), np.zeros((0, 2))) == Outcomes(True, "", None)
