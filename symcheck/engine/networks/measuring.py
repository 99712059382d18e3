"""Residuals of f(Lx) = K f(x) on families of inputs, at two precisions."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from symcheck.array_types import Floats
from symcheck.engine.networks.claims import InputClaim, OutputClaim
from symcheck.engine.networks.sampling import Family
from symcheck.engine.networks.subject import Subject

TIE = 1e-9
"""Two actions whose float64 outputs are closer than this, over the output's scale, are tied: at fixed points they must
be, and which of them comes out first is rounding."""
CANCELLED = 1e-3
"""Outputs smaller than this, over those of the first family, have cancelled: their rounding is that of larger terms."""
TINY = 1e-300
"""Stands for the scale of an output that is zero throughout, so that ratios are defined."""


@dataclass
class Worst:
    """The input with the largest residual over its family's output scale.

    Attributes:
        relative: the residual over the scale of this output in this family of inputs.
        residual: largest |K f(x) - f(Lx)| over the output's entries.
        scale: largest |f| of this output in this family.
        generator: which one.
        path: which output.
        x: the input, shape (*shape,).
        family: where it was drawn.
    """

    relative: float
    residual: float
    scale: float
    generator: int
    path: str
    x: Floats
    family: str


@dataclass
class Spread:
    """Over all inputs: the smallest and largest value of each entry of one output."""

    low: Floats
    high: Floats

    @property
    def is_constant(self) -> bool:
        """Whether the output never changes beyond float64 rounding (1e-13 of its size)."""
        return bool((difference(self.low, self.high) <= 1e-13 * output_scale(self.low, self.high)).all())


@dataclass
class Deployed:
    """How the network as deployed behaves beside its float64 copy, over output scale.

    Of a network deployed in other arithmetic than torch's, on inputs of the first family only: integers saturate
    outside the range that they were calibrated for.

    Attributes:
        residual: largest |K f(x) - f(Lx)|.
        noise: largest |f - f64| of any output.
        flips: inputs whose preferred action does not move along.
        decisions: inputs whose preferred action was compared.
    """

    residual: float = 0.0
    noise: float = 0.0
    flips: int = 0
    decisions: int = 0


@dataclass
class Measured:
    """What the samples show.

    Attributes:
        pairs: (input, generator) pairs examined.
        violations: those beyond 1e-5 of the output scale.
        relative: largest residual over output scale, float64 copy.
        worst: where it was; None if nothing was tested.
        nan: an input on which some output is NaN, else None.
        nan_path: which output.
        spreads: per output.
        deployed: the deployed network's own figures.
        scales: per output, its scale in the first family.
        moved: whether any input differed from its image.
        families: names of the families tested.
        searched: inputs tried beside the pairs, in search of one that shows a fault of the weights.
        time_up: whether the time budget ended before every input was tested.
    """

    pairs: int = 0
    violations: int = 0
    relative: float = 0.0
    worst: Worst | None = None
    nan: Floats | None = None
    nan_path: str = ""
    nan_generator: int = 0
    spreads: dict[str, Spread] = field(default_factory=dict)
    scales: dict[str, float] = field(default_factory=dict)
    deployed: Deployed = field(default_factory=Deployed)
    moved: bool = False
    families: list[str] = field(default_factory=list)
    searched: int = 0
    time_up: bool = False

    @property
    def constant_outputs(self) -> list[str]:
        """Paths of the outputs that never changed."""
        return [path for path, spread in self.spreads.items() if spread.is_constant]


def measure(
    subject: Subject,
    inputs: InputClaim,
    outputs: Sequence[OutputClaim],
    groups: Sequence[Family],
    *,
    deadline: float | None = None,
    tick: Callable[[int], None] = lambda pairs: None,
    into: Measured | None = None,
) -> Measured:
    """Residuals of every generator on every family.

    Args:
        subject: the network.
        inputs: how inputs move.
        outputs: how outputs should move.
        groups: inputs to test.
        deadline: `time.monotonic()` after which no further block starts; the first block is always tested.
        tick: called with the number of pairs examined so far.
        into: figures to add to.

    Returns:
        What was found.
    """
    result = into or Measured()
    for family in groups:
        for block in _blocks(family, subject):
            # At least one block is measured, so that a deadline in the past does not mean no evidence.
            if deadline is not None and result.pairs and time.monotonic() > deadline:
                result.time_up = True
                return result
            _measure_block(result, subject, inputs, outputs, block)
            tick(result.pairs)
    return result


def _blocks(family: Family, subject: Subject) -> list[Family]:
    """Blocks of a family small enough that a deadline is met within a few passes."""
    size = max(1, int(np.prod(subject.shape)))
    # At most about 4 million entries in a pass, at least 32 inputs.
    rows = max(32, 4_000_000 // size)
    return [replace(family, inputs=family.inputs[i : i + rows]) for i in range(0, len(family.inputs), rows)]


def _measure_block(
    result: Measured, subject: Subject, inputs: InputClaim, outputs: Sequence[OutputClaim], family: Family
) -> None:
    x = family.inputs
    # Both precisions, once for all generators.
    before = {exact: subject.run(x, exact=exact) for exact in (True, False)}
    if family.name not in result.families:
        result.families.append(family.name)
    for generator in range(len(inputs.motions)):
        moved = inputs.apply(generator, x)
        # A group that moves no input tests nothing.
        result.moved = result.moved or not np.array_equal(moved, x)
        after = {exact: subject.run(moved, exact=exact) for exact in (True, False)}
        result.pairs += len(x)
        violating = np.zeros(len(x), dtype=bool)
        for claim in outputs:
            y, z = before[True][claim.path], after[True][claim.path]
            wanted = claim.apply(generator, y, x)
            _widen_spread(result, claim.path, y)
            # The deployed network may overflow where its float64 copy does not.
            bad = _is_nan(wanted, z, before[False][claim.path])
            if bad.any() and result.nan is None:
                result.nan = x[int(np.argmax(bad))].copy()
                result.nan_path, result.nan_generator = claim.path, generator
            relative = _residual(result, claim, family, generator, wanted, z)
            violating |= relative > 1e-5  # the published level above which an output has failed
            scale = _family_scale(result, claim.path, family, output_scale(y, z))
            # Of other arithmetic than torch's, only the first family, of ordinary inputs, is compared.
            if not subject.artefact or family.name == result.families[0]:
                _compare_deployed(result.deployed, claim, generator, x, before, after, scale)
        result.violations += int(violating.sum())


def difference(left: Floats, right: Floats) -> Floats:
    """|left - right|, with equal infinities (masked actions) counted as equal and NaN as infinite."""
    with np.errstate(invalid="ignore"):
        gap = np.abs(left - right)
    # inf - inf is NaN; equal infinities agree.
    gap[left == right] = 0.0
    gap[np.isnan(gap)] = np.inf
    return gap


def _is_nan(*sides: Floats) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """Rows in which some side is no number; an infinity on one side only is a residual as any other."""
    return np.asarray(np.any([np.isnan(side).any(axis=1) for side in sides], axis=0))


def _widen_spread(result: Measured, path: str, y: Floats) -> None:
    low, high = y.min(axis=0), y.max(axis=0)
    earlier = result.spreads.get(path)
    if earlier is not None:
        low, high = np.minimum(low, earlier.low), np.maximum(high, earlier.high)
    result.spreads[path] = Spread(low, high)


def output_scale(*values: Floats) -> float:
    """The largest finite |value|, at least `TINY`."""
    sizes = [np.abs(v[np.isfinite(v)]).max(initial=0.0) for v in values]
    return max(float(max(sizes)), TINY)


def _family_scale(result: Measured, path: str, family: Family, own: float) -> float:
    # The first family of an output sets its usual scale.
    """The output's scale in a family: its own, but not far below that of the first family (see `Family.borrows`)."""
    reference = result.scales.setdefault(path, own)
    return max(own, reference if family.borrows else CANCELLED * reference)


def _residual(
    result: Measured, claim: OutputClaim, family: Family, generator: int, wanted: Floats, actual: Floats
) -> Floats:
    scale = _family_scale(result, claim.path, family, output_scale(wanted, actual))
    gap = difference(wanted, actual).max(axis=1, initial=0.0)
    relative = gap / scale
    i = int(np.argmax(relative))
    if result.worst is None or relative[i] > result.worst.relative:
        result.worst = Worst(
            float(relative[i]), float(gap[i]), scale, generator, claim.path, family.inputs[i].copy(), family.name
        )
        result.relative = float(relative[i])
    return np.asarray(relative)


def _compare_deployed(
    deployed: Deployed,
    claim: OutputClaim,
    generator: int,
    x: Floats,
    before: dict[bool, dict[str, Floats]],
    after: dict[bool, dict[str, Floats]],
    scale: float,
) -> None:
    y, z = before[False][claim.path], after[False][claim.path]
    wanted = claim.apply(generator, y, x)
    deployed.residual = max(deployed.residual, float(difference(wanted, z).max(initial=0.0)) / scale)
    noise = max(
        float(difference(y, before[True][claim.path]).max(initial=0.0)),
        float(difference(z, after[True][claim.path]).max(initial=0.0)),
    )
    deployed.noise = max(deployed.noise, noise / scale)
    if claim.role == "action" and claim.size > 1 and not (np.isnan(wanted).any() or np.isnan(z).any()):
        # The two largest outputs: their distance tells whether a decision is tied.
        top = np.sort(before[True][claim.path], axis=1)[:, -2:]
        decided = top[:, 1] - top[:, 0] > TIE * scale
        deployed.decisions += int(decided.sum())
        # A decision flips where the claim's argmax is not the argmax on Lx.
        deployed.flips += int((wanted.argmax(axis=1) != z.argmax(axis=1))[decided].sum())
