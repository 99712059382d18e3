"""Determinism checks: the same input gives the same output in every call, copy and batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from symcheck.array_types import Floats
from symcheck.engine.networks.samples.entry_scales import difference, output_scale
from symcheck.engine.networks.samples.rounding import MARGIN, Rounding
from symcheck.engine.networks.subject.claims import InputClaim, OutputClaim
from symcheck.engine.networks.subject.subject import Subject

MIXED = 1e-9
"""Relative difference up to which two float64 evaluations of the same input count as equal (in a batch and alone, or
first and later). It is far above rounding, and far below the effect of another sample or call."""


@dataclass(frozen=True)
class Repeatability:
    """Whether two outputs of a network can be compared.

    Attributes:
        stochastic: whether two outputs for one input differ because random numbers are drawn.
        remembers: whether the output depends on earlier calls.
    """

    stochastic: bool
    remembers: bool


def check_repeatability(subject: Subject, draw: Callable[[int, int], Floats]) -> Repeatability:
    """Run the same inputs again, on the same copy and on a fresh one.

    Args:
        subject: the network.
        draw: maps a stream index and a count to inputs.

    Returns:
        Why the function changes from call to call: at most one of the two.
    """
    differs = _answers_twice_differently(subject, draw(4, 4))
    remembers = _has_memory(subject, draw(6, 4), differs)
    # A network with memory also gives two different outputs; it is not reported as stochastic.
    return Repeatability(stochastic=differs and not remembers, remembers=remembers)


def _answers_twice_differently(subject: Subject, x: Floats) -> bool:
    # Test the deployed network too: it may draw random numbers only in lower precision.
    first, second = subject.run(x, exact=False), subject.run(x, exact=False)
    return any(not np.array_equal(first[path], second[path], equal_nan=True) for path in first)


def _has_memory(subject: Subject, x: Floats, differs: bool) -> bool:
    """Whether earlier inputs change the output: a copy's first output differs, and not by chance."""
    first = subject.run_afresh(x)
    # Run twice: state from the first call may affect only the second one.
    if not any(_are_different(first, subject.run(x, exact=True)) for _ in range(2)):
        return False
    # If fresh copies differ from each other, the network draws random numbers; if they agree, it has memory.
    return not differs or not _are_different(first, subject.run_afresh(x))


def residual_of_mixed_batch(
    subject: Subject, inputs: InputClaim, outputs: Sequence[OutputClaim], x: Floats
) -> float | None:
    """The residual of a batch of three, if its samples affect each other.

    Args:
        subject: the network.
        inputs: the action on inputs.
        outputs: the claimed action on outputs.
        x: the batch, shape (3, *shape).

    Returns:
        The largest residual relative to the output's scale; None if samples do not affect each other.
    """
    whole = subject.run(x, exact=True)
    if not _influence_each_other(subject, x, whole):
        return None
    worst = 0.0
    for generator in range(len(inputs.motions)):
        moved = subject.run(inputs.apply(generator, x), exact=True)
        for claim in outputs:
            wanted = claim.apply(generator, whole[claim.path], x)
            gap = difference(wanted, moved[claim.path]).max(initial=0.0)
            worst = max(worst, float(gap / output_scale(wanted, moved[claim.path])))
    return worst


def _influence_each_other(subject: Subject, x: Floats, whole: dict[str, Floats]) -> bool:
    """Whether outputs for the same input differ alone and in the batch, by more than rounding."""
    inputs = [x[k : k + 1] for k in range(len(x))]
    alone = [subject.run(each, exact=True) for each in inputs]
    single = {path: np.concatenate([answers[path] for answers in alone]) for path in whole}
    if not _are_different(single, whole):
        return False
    # If the terms of an output cancel for every input, it consists of rounding. One draw may leave one input unchanged.
    rounding = Rounding(subject, 0)
    drawn = [rounding.noise(each, answers) for each, answers in zip(inputs, alone, strict=True)]
    for path in whole:
        noise = [sizes[path] for sizes in drawn if path in sizes]
        gap = difference(whole[path], single[path]).max(axis=0)
        if not noise or (gap > MARGIN * np.max(noise, axis=0)).any():
            return True
    return False


def _are_different(usual: dict[str, Floats], other: dict[str, Floats]) -> bool:
    """Whether any outputs differ by more than rounding; outputs that are entirely NaN do not count."""
    for path, answers in usual.items():
        gap = difference(other[path], answers)
        gap[np.isnan(other[path]) & np.isnan(answers)] = 0.0
        if np.isfinite(answers).any() and bool((gap > MIXED * output_scale(answers)).any()):
            return True
    return False
