"""Residuals of f(Lx) = K f(x) on families of inputs, at two precisions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from symcheck.array_types import Bools, Floats
from symcheck.engine.clock import not_after
from symcheck.engine.networks.samples.decisions import Decisions, is_decision, staying_behind
from symcheck.engine.networks.samples.entry_scales import STILL, EntryScales, difference, entry_gaps, output_scale
from symcheck.engine.networks.samples.rounding import EPSILON
from symcheck.engine.networks.samples.ruler import ROUNDED, VISIBLE, Block, Ruler, move_sizes
from symcheck.engine.networks.samples.sampling import Family
from symcheck.engine.networks.subject.claims import InputClaim, OutputClaim
from symcheck.engine.networks.subject.subject import PASS, Subject

_ALIKE = 0.1  # residual over distance to float64; a code path that breaks the symmetry has both of the same size
FEWEST = 4
"""Minimum number of inputs in a block."""
_CLOSE = 4.0  # a margin below this multiple of the rounding error is decided by rounding


@dataclass
class Worst:
    """The input with the largest residual relative to the scale of its output entry.

    Attributes:
        relative: the residual relative to that scale.
        residual: |K f(x) - f(Lx)| of the entry.
        scale: the scale of the entry.
        generator: index of the generator.
        path: path of the output.
        x: the input, shape (*shape,).
        family: the family from which it was drawn.
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
    """The smallest and largest value of each entry of one output over all inputs."""

    low: Floats
    high: Floats

    @property
    def is_constant(self) -> bool:
        """Whether the output never changes beyond float64 rounding of its size."""
        return bool((difference(self.low, self.high) <= STILL * output_scale(self.low, self.high)).all())


@dataclass
class Deployed:
    """Figures of the deployed network, relative to its float64 copy, in units of the output scale.

    For a network that is not deployed in torch, only inputs of the first family are used, because integers saturate
    outside their calibrated range.

    Attributes:
        residual: largest |K f(x) - f(Lx)|.
        noise: largest |f - f64| of any output.
        unexplained: the largest noise that rounding in its dtype does not explain.
        flips: clear decisions that violate the claim.
        decisions: clear decisions that were compared.
        rounded: the number of `flips` that rounding explains.
        coarser: whether its own code rounds more than its dtype does, equally on both sides of the claim.
        beyond: largest residual relative to the rounding of its dtype; 0 if it is not deployed in torch.
    """

    residual: float = 0.0
    noise: float = 0.0
    unexplained: float = 0.0
    flips: int = 0
    decisions: int = 0
    rounded: int = 0
    beyond: float = 0.0
    coarser: bool = False

    @property
    def clear(self) -> Decisions:
        """The decisions compared."""
        return Decisions(self.decisions, self.flips, self.rounded)


@dataclass
class Flip:
    """An input with a clear decision that violates the claim.

    Attributes:
        x: the input, shape (*shape,).
        generator: index of the generator.
        path: the path of the output.
        margin: the margin between the best and the next entry.
        exact: whether the float64 copy makes this decision; otherwise the deployed network.
    """

    x: Floats
    generator: int
    path: str
    margin: float
    exact: bool


@dataclass
class Measured:
    """The result from samples.

    Attributes:
        pairs: (input, generator) pairs examined.
        violations: the number of those beyond 1e-5 of the output scale.
        relative: largest residual over output scale, float64 copy.
        worst: the input where it occurred; None if nothing was tested.
        nan: an input for which some output is NaN; None if there is none.
        nan_path: path of that output.
        spreads: per output.
        deployed: figures of the deployed network.
        decisions: clear decisions of the float64 copy.
        flip: the clearest decision that violates the claim; None if there is none.
        swamped: the number of pairs in which rounding is as large as a violation.
        vanishing: outputs that consist of rounding only, if this was tested.
        left_out: the number of inputs whose image lies outside the observation space.
        moved: whether any input differed from its image.
        families: names of the families tested.
        searched: the number of further inputs tried in the search for one that shows a fault of the weights.
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
    decisions: Decisions = field(default_factory=Decisions)
    flip: Flip | None = None
    swamped: int = 0
    vanishing: set[str] = field(default_factory=set)
    left_out: int = 0
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
    ruler: Ruler,
    *,
    deadline: float = math.inf,
    tick: Callable[[int], None] = lambda pairs: None,
    into: Measured | None = None,
) -> Measured:
    """Residuals of every generator on every family.

    Args:
        subject: the network.
        inputs: the action on inputs.
        outputs: the claimed action on outputs.
        groups: inputs to test.
        ruler: the scales of outputs.
        deadline: `time.monotonic()` after which no forward pass starts, except for the first block.
        tick: called with the number of pairs examined so far.
        into: figures to be updated.

    Returns:
        The result.

    Raises:
        TimeUp: the deadline has passed; `into` contains the result until then.
    """
    result = into or Measured()
    for family in groups:
        for rows in _blocks(family, subject):
            # At least one block is measured, so that a deadline in the past does not mean no evidence.
            with not_after(deadline if result.pairs else math.inf):
                _measure_block(result, subject, inputs, outputs, rows, ruler)
            tick(result.pairs)
    return result


def _blocks(family: Family, subject: Subject) -> list[Family]:
    """Blocks of a family, small enough to meet a deadline within a few passes."""
    size = max(1, int(np.prod(subject.shape)))
    # At most about 4 million entries in a pass, at least 32 inputs; fewer if each of them is expensive.
    rows = min(max(32, 4_000_000 // size), max(FEWEST, PASS // subject.cost))
    return [replace(family, inputs=family.inputs[i : i + rows]) for i in range(0, len(family.inputs), rows)]


@dataclass(frozen=True, eq=False)
class _Pair:
    """Both sides of the claim on one output under one generator.

    Attributes:
        claim: the claim of the output.
        generator: index of the generator.
        decides: whether the output is read as a decision.
        scales: the scales of the output.
        wanted: K f(x) of the float64 copy (True) and as deployed (False), shape (n, size).
        actual: f(Lx), likewise.
    """

    claim: OutputClaim
    generator: int
    decides: bool
    scales: EntryScales
    wanted: dict[bool, Floats]
    actual: dict[bool, Floats]


def _measure_block(
    result: Measured,
    subject: Subject,
    inputs: InputClaim,
    outputs: Sequence[OutputClaim],
    family: Family,
    ruler: Ruler,
) -> None:
    x = family.inputs
    # Both precisions, once for all generators.
    before = {exact: subject.run(x, exact=exact) for exact in (True, False)}
    block = ruler.block(x, before[True], borrows=family.borrows)
    if family.name not in result.families:
        result.families.append(family.name)
    for generator in range(len(inputs.motions)):
        moved = inputs.apply(generator, x)
        # If every input is fixed by the group, the test is vacuous.
        result.moved = result.moved or not np.array_equal(moved, x)
        after = {exact: subject.run(moved, exact=exact) for exact in (True, False)}
        violating, swamped = np.zeros(len(x), dtype=bool), 0
        for claim in outputs:
            wanted = {exact: claim.apply(generator, before[exact][claim.path], x) for exact in (True, False)}
            actual = {exact: after[exact][claim.path] for exact in (True, False)}
            _widen_spread(result, claim.path, before[True][claim.path])
            # The deployed network may overflow where its float64 copy does not.
            bad = _is_nan(wanted[True], actual[True], before[False][claim.path])
            if bad.any() and result.nan is None:
                result.nan = x[int(np.argmax(bad))].copy()
                result.nan_path, result.nan_generator = claim.path, generator
            scales = block.scales(claim.path, actual[True])
            pair = _Pair(claim, generator, is_decision(claim, outputs), scales, wanted, actual)
            relative, sizes, rounded = block.relative_gaps(claim, generator, wanted[True], actual[True], scales)
            _keep_worst(result, pair, family, relative, sizes)
            violating |= relative.max(axis=1, initial=0.0) > ROUNDED
            swamped = max(swamped, rounded)
            _count_decisions(result, pair, block, x, exact=True)
            # If the deployed arithmetic is not torch's, only the first family (ordinary inputs) is compared.
            if not subject.artefact or family.name == result.families[0]:
                _compare_deployed(result, subject, pair, block, x, before, after)
        result.pairs += len(x)
        result.violations += int(violating.sum())
        result.swamped += swamped
    result.vanishing |= ruler.vanishing


def _is_nan(*sides: Floats) -> Bools:
    """Rows in which either side is NaN; an infinity on one side only is an ordinary residual."""
    return np.asarray(np.any([np.isnan(side).any(axis=1) for side in sides], axis=0))


def _widen_spread(result: Measured, path: str, y: Floats) -> None:
    low, high = y.min(axis=0), y.max(axis=0)
    earlier = result.spreads.get(path)
    if earlier is not None:
        low, high = np.minimum(low, earlier.low), np.maximum(high, earlier.high)
    result.spreads[path] = Spread(low, high)


def _keep_worst(result: Measured, pair: _Pair, family: Family, relative: Floats, sizes: Floats) -> None:
    if not relative.size:
        return
    i, j = (int(place) for place in np.unravel_index(int(np.argmax(relative)), relative.shape))
    if result.worst is None or relative[i, j] > result.worst.relative:
        result.relative = float(relative[i, j])
        gap = float(entry_gaps(pair.wanted[True], pair.actual[True], pair.scales)[i, j])
        result.worst = Worst(
            result.relative, gap, float(sizes[j]), pair.generator, pair.claim.path, family.inputs[i].copy(), family.name
        )


def _count_decisions(result: Measured, pair: _Pair, block: Block, x: Floats, *, exact: bool) -> None:
    if not pair.decides:
        return
    wanted, actual = pair.wanted[exact], pair.actual[exact]
    clear, flipped, margin = staying_behind(wanted, actual, pair.scales.spread, pair.claim.choices)
    counted = result.decisions if exact else Decisions()
    counted.compared += int(clear.sum())
    counted.flipped += int(flipped.sum())
    if flipped.any():
        noise = block.noise(pair.claim, pair.generator, EPSILON if exact else block.deployed_epsilon)
        rounded = flipped & (margin <= _CLOSE * noise.max(axis=1))
        counted.rounded += int(rounded.sum())
        clearest = int(np.argmax(np.where(flipped & ~rounded, margin, -1.0)))
        better = result.flip is None or (exact, margin[clearest]) > (result.flip.exact, result.flip.margin)
        if better and flipped[clearest] and not rounded[clearest]:
            result.flip = Flip(x[clearest].copy(), pair.generator, pair.claim.path, float(margin[clearest]), exact)
    if not exact:
        deployed = result.deployed
        deployed.decisions += counted.compared
        deployed.flips += counted.flipped
        deployed.rounded += counted.rounded


def _compare_deployed(
    result: Measured,
    subject: Subject,
    pair: _Pair,
    block: Block,
    x: Floats,
    before: dict[bool, dict[str, Floats]],
    after: dict[bool, dict[str, Floats]],
) -> None:
    deployed, path, scales = result.deployed, pair.claim.path, pair.scales
    gap = entry_gaps(pair.wanted[False], pair.actual[False], scales)
    noises = [entry_gaps(side[False][path], side[True][path], scales) for side in (before, after)]
    sizes = scales.filled
    if max(float((item / sizes).max(initial=0.0)) for item in (gap, *noises)) > VISIBLE:
        sizes = block.sizes_where_it_cancels(path, scales)
    deployed.residual = max(deployed.residual, float((gap / sizes).max(initial=0.0)))
    deployed.noise = max(deployed.noise, *(float((item / sizes).max(initial=0.0)) for item in noises))
    _count_decisions(result, pair, block, x, exact=False)
    if subject.artefact or subject.coarse:
        deployed.unexplained = max(deployed.unexplained, deployed.noise)
        return
    # K moves the noise of f(x) to other entries as well
    noises[0] = move_sizes(pair.claim.motions[pair.generator], noises[0])
    explained = block.deployed_rounding(pair.claim, pair.generator, pair.wanted[False], sizes, gap, *noises)
    # the residual of the float64 copy is tested separately, so it is subtracted
    structural = entry_gaps(pair.wanted[True], pair.actual[True], scales)
    further = np.where(gap > structural, gap - np.where(gap > structural, structural, 0.0), 0.0)
    beyond = further > explained
    # If code rounds by itself, equally on both sides, its distance to float64 is much larger than the residual.
    own = np.maximum(*(np.where(np.isfinite(noise), noise, 0.0).max(axis=0, initial=0.0) for noise in noises))
    alike = beyond & (further <= _ALIKE * own)
    deployed.coarser = deployed.coarser or bool(alike.any())
    deployed.beyond = max(deployed.beyond, float((np.where(alike, 0.0, further) / explained).max(initial=0.0)))
    if subject.noise_seed is not None:  # the same seed draws other numbers in another dtype
        return
    for noise in noises:
        left = np.where(noise > explained, noise / sizes, 0.0)
        deployed.unexplained = max(deployed.unexplained, float(left.max(initial=0.0)))
