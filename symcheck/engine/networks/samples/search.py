"""Searches many simple inputs for one that shows a fault known from the weights."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from symcheck.array_types import Floats
from symcheck.engine.networks.samples.ruler import Ruler
from symcheck.engine.networks.samples.sampling import Family
from symcheck.engine.networks.subject.claims import InputClaim, OutputClaim
from symcheck.engine.networks.subject.domain import Domain
from symcheck.engine.networks.subject.subject import Subject

MOST_INPUTS = 400_000
PRODUCTS = 3_000_000_000
"""Multiplications that the search may cost on one side of the claim: about two seconds on one core."""
# Maximum number of inputs in a block, and number of worst inputs kept from the first block that shows the fault.
BLOCK = 10_000
KEPT = 64


def revealing_inputs(
    subject: Subject,
    inputs: InputClaim,
    outputs: Sequence[OutputClaim],
    rng: np.random.Generator,
    threshold: float,
    ruler: Ruler,
    *,
    domain: Domain | None = None,
    most: int | None = None,
) -> tuple[list[Family], int]:
    """Inputs whose outputs violate the claim, from a long search over directions and scales in float64.

    Args:
        subject: the network.
        inputs: the action on inputs.
        outputs: the claimed action on outputs.
        rng: the source of randomness.
        threshold: residual relative to output scale above which an input shows the fault.
        ruler: the scales of outputs.
        domain: the domain of inputs; None if unknown.
        most: maximum number of inputs; None for as many as the budget allows.

    Returns:
        The worst inputs of the first block that shows it, or nothing; and the number of inputs tried.
    """
    size = max(1, int(np.prod(inputs.shape)))
    cost = max(subject.cost, size)
    # As many as the budget affords, at least a tenth of a block.
    wanted = int(min(MOST_INPUTS, max(BLOCK // 10, PRODUCTS // cost)))
    wanted = wanted if most is None else min(wanted, most)
    rows = max(1, min(BLOCK, 4_000_000 // size))
    tried = 0
    while tried < wanted:
        # Scales from 0.01 to 100, evenly in the logarithm.
        scale = 10.0 ** rng.uniform(-2, 2)
        x = scale * rng.normal(size=(min(rows, wanted - tried), *inputs.shape))
        x = x if domain is None else domain.draw(rng, len(x), scale)
        tried += len(x)
        worst = _residuals(subject, inputs, outputs, x, ruler)
        if worst.max(initial=0.0) > threshold:
            return [Family("a long search at scales 0.01 to 100", x[np.argsort(-worst)[:KEPT]])], tried
    return [], tried


def _residuals(
    subject: Subject,
    inputs: InputClaim,
    outputs: Sequence[OutputClaim],
    x: Floats,
    ruler: Ruler,
) -> Floats:
    """The largest residual relative to output scale of each input, shape (n,)."""
    before = subject.run(x, exact=True)
    block = ruler.block(x, before)
    worst = np.zeros(len(x))
    for generator in range(len(inputs.motions)):
        after = subject.run(inputs.apply(generator, x), exact=True)
        for claim in outputs:
            wanted = claim.apply(generator, before[claim.path], x)
            scales = block.scales(claim.path, after[claim.path])
            relative, _, _ = block.relative_gaps(claim, generator, wanted, after[claim.path], scales)
            worst = np.maximum(worst, relative.max(axis=1, initial=0.0))
    return worst
