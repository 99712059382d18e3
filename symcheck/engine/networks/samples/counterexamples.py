"""Shrinks a failing input, and computes both sides of the claim on it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from symcheck.array_types import Floats
from symcheck.engine.clock import TimeUp, not_after
from symcheck.engine.networks.samples.decisions import staying_behind
from symcheck.engine.networks.samples.entry_scales import EntryScales, difference, entry_gaps
from symcheck.engine.networks.samples.measuring import Flip, Measured
from symcheck.engine.networks.samples.ruler import ROUNDED
from symcheck.engine.networks.samples.shrinking import Fails, shrink
from symcheck.engine.networks.subject.claims import InputClaim, OutputClaim
from symcheck.engine.networks.subject.domain import Domain
from symcheck.engine.networks.subject.subject import PRODUCTS, Subject
from symcheck.engine.results import Counterexample

FEWEST_TRIED = 48
"""Minimum number of simpler inputs to try, if time allows."""
KEEP = 0.01
"""A smaller input must keep at least this fraction of the first input's residual over scale. It then shows the same
fault, and not rounding."""


@dataclass(frozen=True, eq=False)
class ClaimedNetwork:
    """A network with its claims.

    Attributes:
        subject: the network.
        inputs: the action on inputs.
        outputs: the claimed action on outputs.
        elements: a readable name of each generator.
        domain: the domain of inputs and their images; None if no observation space is known.
        deadline: `time.monotonic()` after which no simpler input is sought.
    """

    subject: Subject
    inputs: InputClaim
    outputs: tuple[OutputClaim, ...]
    elements: tuple[str, ...]
    domain: Domain | None = None
    deadline: float = math.inf

    def output(self, path: str) -> OutputClaim:
        """The claim on the output with that path."""
        return next(claim for claim in self.outputs if claim.path == path)

    def shrink(self, x: Floats, fails: Fails) -> Floats:
        """A simpler failing input, with its images inside the observation space; x itself if there is none.

        The search ends at the deadline, or when it has taken a few seconds.
        """
        left = max(FEWEST_TRIED, PRODUCTS // self.subject.cost)

        def fails_inside(batch: Floats) -> npt.NDArray[np.bool_]:
            nonlocal left
            inside = np.ones(len(batch), dtype=bool) if self.domain is None else self.domain.keeps(self.inputs, batch)
            inside[left:] = False
            left -= int(inside.sum())
            try:
                with not_after(self.deadline):
                    inside[inside] = fails(batch[inside]) if inside.any() else False
            except TimeUp:
                left = 0
                return np.zeros(len(batch), dtype=bool)
            return inside

        # An ascent may have ended outside the space; then the input is not shrunk.
        return shrink(x, fails_inside) if bool(fails_inside(x[None])[0]) else x


def shrink_worst(
    claimed: ClaimedNetwork, measured: Measured, tolerance: float, scales: Mapping[str, EntryScales]
) -> Counterexample | None:
    """The worst input of a failed run, shrunk.

    Args:
        claimed: the network with the claims.
        measured: the result from samples.
        tolerance: the limit for relative residuals.
        scales: the scales of the outputs on ordinary inputs.

    Returns:
        The counterexample; None if no input was tested.
    """
    if measured.nan is not None:
        # NaN has no residual: a smaller input only has to give NaN again.
        generator = measured.nan_generator
        x = claimed.shrink(measured.nan, lambda batch: _is_nan(claimed, batch, generator))
        return describe_input(claimed, x, generator, measured.nan_path)
    worst, flip = measured.worst, measured.flip
    if flip is not None and (worst is None or worst.relative <= ROUNDED):
        return _shrink_flip(claimed, flip, scales[flip.path].spread)
    if worst is None:
        return None
    claim = claimed.output(worst.path)
    # A smaller input must keep a visible part of the residual, and stay above the tolerance.
    threshold = max(tolerance, KEEP * worst.relative)

    def fails(batch: Floats) -> npt.NDArray[np.bool_]:
        y, z = both_sides(claimed, claim, worst.generator, batch)
        if np.isinf(threshold):  # infinite on one side of the claim only
            return np.asarray(np.isinf(difference(y, z)).any(axis=1))
        return np.asarray(relative_to_entries(y, z, scales[worst.path]).max(axis=1, initial=0.0) > threshold)

    # Rounding of another batch size may hide a residual at the tolerance; then the input stays.
    x = claimed.shrink(worst.x, fails)
    return describe_input(claimed, x, worst.generator, worst.path)


def _shrink_flip(claimed: ClaimedNetwork, flip: Flip, spread: Floats) -> Counterexample:
    """The input of a clear decision that violates the claim, shrunk at the precision at which it violates the claim."""
    claim = claimed.output(flip.path)

    def fails(batch: Floats) -> npt.NDArray[np.bool_]:
        wanted, actual = both_sides(claimed, claim, flip.generator, batch, exact=flip.exact)
        return staying_behind(wanted, actual, spread, claim.choices)[1]

    x = claimed.shrink(flip.x, fails)
    return describe_input(claimed, x, flip.generator, flip.path, exact=flip.exact)


def relative_to_entries(wanted: Floats, actual: Floats, scales: EntryScales) -> Floats:
    """Residuals relative to the entries' size on these inputs, at least a fraction (`KEEP`) of their usual scale.

    Args:
        wanted: K f(x), shape (n, size).
        actual: f(Lx), likewise.
        scales: the scales of the output on ordinary inputs.
    """
    sides = [np.where(np.isfinite(side), np.abs(side), 0.0) for side in (wanted, actual)]
    # An entry that is small relative to its usual scale carries the rounding of larger terms; an offset is not a scale.
    sizes = np.clip(np.maximum(*sides), KEEP * scales.filled, scales.filled)
    return np.asarray(entry_gaps(wanted, actual, scales) / sizes)


def both_sides(
    claimed: ClaimedNetwork, claim: OutputClaim, generator: int, x: Floats, *, exact: bool = True
) -> tuple[Floats, Floats]:
    """K f(x) and f(Lx) for stacked inputs, in float64 or as deployed, each of shape (n, size)."""
    before = claimed.subject.run(x, exact=exact)[claim.path]
    after = claimed.subject.run(claimed.inputs.apply(generator, x), exact=exact)[claim.path]
    return claim.apply(generator, before, x), after


def _is_nan(claimed: ClaimedNetwork, batch: Floats, generator: int) -> npt.NDArray[np.bool_]:
    moved = claimed.inputs.apply(generator, batch)
    bad = np.zeros(len(batch), dtype=bool)
    # At both precisions, and for both sides of the claim.
    for exact in (True, False):
        for inputs in (batch, moved):
            for values in claimed.subject.run(inputs, exact=exact).values():
                bad |= np.isnan(values).any(axis=1)
    return bad


def describe_input(
    claimed: ClaimedNetwork, x: Floats, generator: int, path: str, *, exact: bool = True
) -> Counterexample:
    """One input with both sides of the claim on one output, computed in float64 or as deployed.

    Args:
        claimed: the network with the claims.
        x: the input, shape (*shape,).
        generator: index of the generator.
        path: path of the output.
        exact: whether to use the float64 copy.
    """
    claim = claimed.output(path)
    expected, actual = (side[0] for side in both_sides(claimed, claim, generator, x[None], exact=exact))
    nan = np.isnan(expected) | np.isnan(actual)
    gap = difference(expected, actual)
    # The first NaN entry if there is one, otherwise the entry with the largest difference.
    place, residual = (int(np.argmax(nan)), float("nan")) if nan.any() else (int(np.argmax(gap)), float(gap.max()))
    return Counterexample(
        group_element=claimed.elements[generator],
        observation=x.tolist(),
        state=None,
        action=None,
        expected=expected.tolist(),
        actual=actual.tolist(),
        residual=residual,
        where=f"{path}[{place}]" if claim.size > 1 else path,
        image_observation=claimed.inputs.apply(generator, x[None])[0].tolist(),
    )
