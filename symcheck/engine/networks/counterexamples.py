"""A failing input made small, and both sides of the claim on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from symcheck.engine.networks.claims import OutputClaim
from symcheck.engine.networks.measuring import difference
from symcheck.engine.networks.shrinking import shrink
from symcheck.engine.networks.values import FloatArray
from symcheck.engine.results import Counterexample

if TYPE_CHECKING:
    from symcheck.engine.networks.context import NetContext

KEEP = 0.01
"""A smaller input must show at least this fraction of the residual, over scale, that the first one showed: what is left
is then the same fault and no rounding."""


def counterexample_of(context: NetContext) -> Counterexample | None:
    """The worst input of a failed run, shrunk."""
    measured = context.measured
    if measured.nan is not None:
        generator = measured.nan_generator
        x = shrink(measured.nan, lambda batch: _is_nan(context, batch, generator))
        return described(context, x, generator, measured.nan_path)
    worst = measured.worst
    if worst is None:
        return None
    claim = next(one for one in context.outputs if one.path == worst.path)
    threshold = max(context.decision.tolerance, KEEP * worst.relative)

    def fails(batch: FloatArray) -> npt.NDArray[np.bool_]:
        y, z = sides(context, claim, worst.generator, batch)
        gap = difference(y, z).max(axis=1, initial=0.0)
        if np.isinf(threshold):  # infinite on one side only
            return np.asarray(np.isinf(gap))
        finite = [np.where(np.isfinite(side), np.abs(side), 0.0).max(axis=1, initial=0.0) for side in (y, z)]
        scale = np.maximum(*finite)
        # a small output among large ones carries their rounding: never compare with less than 1 % of the family's scale
        return np.asarray(gap > threshold * np.maximum(scale, KEEP * worst.scale))

    x = shrink(worst.x, fails) if bool(fails(worst.x[None])[0]) else worst.x
    return described(context, x, worst.generator, worst.path)


def sides(
    context: NetContext, claim: OutputClaim, generator: int, x: FloatArray, *, exact: bool = True
) -> tuple[FloatArray, FloatArray]:
    """K f(x) and f(Lx) for stacked inputs, each of shape (n, size)."""
    before = context.subject.run(x, exact=exact)[claim.path]
    after = context.subject.run(context.inputs.apply(generator, x), exact=exact)[claim.path]
    return claim.apply(generator, before, x), after


def _is_nan(context: NetContext, batch: FloatArray, generator: int) -> npt.NDArray[np.bool_]:
    moved = context.inputs.apply(generator, batch)
    bad = np.zeros(len(batch), dtype=bool)
    for exact in (True, False):
        for inputs in (batch, moved):
            for values in context.subject.run(inputs, exact=exact).values():
                bad |= np.isnan(values).any(axis=1)
    return bad


def described(context: NetContext, x: FloatArray, generator: int, path: str) -> Counterexample:
    """One input with both sides of the claim on one output, computed in float64.

    Args:
        context: the run.
        x: the input, shape (*shape,).
        generator: which one.
        path: which output.
    """
    claim = next(one for one in context.outputs if one.path == path)
    expected, actual = (side[0] for side in sides(context, claim, generator, x[None]))
    nan = np.isnan(expected) | np.isnan(actual)
    gap = difference(expected, actual)
    place, residual = (int(np.argmax(nan)), float("nan")) if nan.any() else (int(np.argmax(gap)), float(gap.max()))
    return Counterexample(
        group_element=context.element(generator),
        observation=x.tolist(),
        state=None,
        action=None,
        expected=expected.tolist(),
        actual=actual.tolist(),
        residual=residual,
        where=f"{path}[{place}]" if claim.size > 1 else path,
        image_observation=context.inputs.apply(generator, x[None])[0].tolist(),
    )
