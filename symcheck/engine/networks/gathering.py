"""Evidence on one network: families of inputs first, then targeted searches if these show no violation."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from symcheck.array_types import Floats
from symcheck.engine.clock import TimeUp, not_after
from symcheck.engine.networks.blame.proof import Proof, units_at_fault
from symcheck.engine.networks.options import DEFAULT_SAMPLES, NetOptions
from symcheck.engine.networks.samples.ascent import activate_units, climb_residual
from symcheck.engine.networks.samples.measuring import Measured, measure
from symcheck.engine.networks.samples.ruler import EXACT, ROUNDED, Ruler
from symcheck.engine.networks.samples.sampling import Family, families
from symcheck.engine.networks.samples.search import revealing_inputs
from symcheck.engine.networks.subject.claims import InputClaim, OutputClaim
from symcheck.engine.networks.subject.domain import Domain
from symcheck.engine.networks.subject.subject import PRODUCTS, Subject
from symcheck.engine.networks.verdicts import is_wrong_weight

SMALL_INPUT = 64
"""Maximum number of input entries for which the default number of samples is drawn in full."""
PROVED_INPUT = 320
"""With a proof, an input counts as having this many entries: 2,000 pairs are enough to compare the proof with the
network."""
LEAST_SAMPLES = 256
FEWEST_SAMPLES = 48
CLIMBED = 16
"""Samples per starting point of the ascent: one ascent costs sixteen forward and sixteen backward passes."""


def gather_evidence(
    subject: Subject,
    inputs: InputClaim,
    outputs: Sequence[OutputClaim],
    proof: Proof | None,
    options: NetOptions,
    observations: Floats | None,
    ruler: Ruler,
    *,
    domain: Domain | None = None,
    deadline: float = math.inf,
    progress: Callable[[int, int], None],
) -> Measured:
    """Residuals on drawn inputs, on inputs from gradient ascent, and on inputs that activate the units at fault.

    Args:
        subject: the network.
        inputs: the action on inputs.
        outputs: the claimed action on outputs.
        proof: the result from the weights; None if there is none.
        options: how much to test.
        observations: inputs to test in addition to the generated ones, shape (n, *shape).
        ruler: the scales of outputs.
        domain: the domain of inputs; None if no observation space is known.
        deadline: `time.monotonic()` after which no forward pass starts, except for those of the first block.
        progress: called with the number of pairs examined and the number planned.

    Returns:
        The result.
    """
    # (seed, 2): a separate stream.
    rng = np.random.default_rng((options.seed, 2))
    generators = len(inputs.motions)
    # A pair is one input and one generator.
    wanted = max(1, number_of_samples(subject, proof, options) // generators)
    groups, left_out = _keep_inside(families(inputs, wanted, rng, observations, domain), inputs, domain)
    total = sum(len(group.inputs) for group in groups) * generators

    def tick(pairs: int) -> None:
        progress(pairs, max(pairs, total))

    measured = Measured(left_out=left_out * generators)

    def test(found: list[Family]) -> None:
        inside, _ = _keep_inside(found, inputs, domain)
        measure(subject, inputs, outputs, inside, ruler, deadline=deadline, tick=tick, into=measured)

    try:
        measure(subject, inputs, outputs, groups, ruler, deadline=deadline, tick=tick, into=measured)
        with not_after(deadline):
            if groups and _is_worth_climbing(proof, measured):
                starts = _starts(measured, groups)
                # an ascent costs 32 passes per starting point, so with few samples there are fewer of these
                starts = starts[: max(1, min(len(starts), wanted // CLIMBED))]
                test(climb_residual(subject, inputs, outputs, starts, domain))
            # Activate both: a weight has an effect only if its unit and its input unit are active.
            for units in units_at_fault(proof) if _has_silent_fault(proof, measured) else ():
                test(activate_units(subject, inputs, units, rng, domain))
            # The long search comes last: it costs the most, and is needed only if no violation was found so far.
            if _has_silent_fault(proof, measured):
                shown, measured.searched = revealing_inputs(
                    subject, inputs, outputs, rng, EXACT, ruler, domain=domain, most=options.samples
                )
                test(shown)
    except TimeUp:
        measured.time_up = True
    return measured


def _keep_inside(groups: list[Family], inputs: InputClaim, domain: Domain | None) -> tuple[list[Family], int]:
    """Families without inputs whose image lies outside the observation space, and the number left out."""
    if domain is None:
        return groups, 0
    kept: list[Family] = []
    left_out = 0
    for family in groups:
        inside = domain.keeps(inputs, family.inputs)
        left_out += int((~inside).sum())
        if inside.any():
            kept.append(replace(family, inputs=family.inputs[inside]))
    return kept, left_out


def number_of_samples(subject: Subject, proof: Proof | None, options: NetOptions) -> int:
    """The requested number; by default 10,000 pairs, fewer for large inputs and networks."""
    if options.samples is not None:
        return options.samples
    size = int(np.prod(subject.shape))
    if proof is not None and proof.level == "exact":
        size = max(size, PROVED_INPUT)
    affordable = PRODUCTS // subject.cost
    least = max(FEWEST_SAMPLES, min(LEAST_SAMPLES, affordable))
    return max(least, min(DEFAULT_SAMPLES, DEFAULT_SAMPLES * SMALL_INPUT // size, affordable))


def _is_worth_climbing(proof: Proof | None, measured: Measured) -> bool:
    proved = proof is not None and proof.level == "exact"
    return not proved and measured.nan is None and measured.relative <= ROUNDED  # a larger residual has failed already


def _has_silent_fault(proof: Proof | None, measured: Measured) -> bool:
    """Whether a weight is wrong although no output has shown it so far."""
    failure = None if proof is None else proof.first_failure
    return failure is not None and is_wrong_weight(failure) and measured.nan is None and measured.relative <= EXACT


def _starts(measured: Measured, groups: list[Family]) -> Floats:
    """Starting points of the ascent: the worst input, then the first of the first family."""
    first = groups[0].inputs[:15]
    return first if measured.worst is None else np.concatenate([measured.worst.x[None], first])
