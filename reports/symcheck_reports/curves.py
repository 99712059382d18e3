"""The learning-curve page: `render_curves` turns a `CurveModel` into one self-contained HTML document."""

from __future__ import annotations

from symcheck_reports.curve_model import CurveModel


def render_curves(model: CurveModel) -> str:
    """The page as text; filled in by the next commit."""
    raise NotImplementedError
