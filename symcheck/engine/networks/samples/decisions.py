"""Outputs that are read as decisions: does the preferred action move along?

An agent takes the action with the largest logit. Of an output whose entries the claim permutes, a decision is clear
where the best two entries differ by more than a thousandth of the output's spread; a clear decision that does not move
along is another action, however small the residual is beside the largest number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from symcheck.array_types import Bools, Floats
from symcheck.engine.networks.subject.claims import OutputClaim
from symcheck.engine.networks.subject.values import SignedPermutation

CLEAR = 1e-3
"""Margin of a clear decision over the output's spread: the published level."""
FLIPPED = 0.01
"""Share of clear decisions that may stay behind before the network has failed: the published level."""


@dataclass
class Decisions:
    """Clear decisions that were compared.

    Attributes:
        compared: how many.
        flipped: of these, how many did not move along.
        rounded: of those, how many are so close that rounding explains them.
    """

    compared: int = 0
    flipped: int = 0
    rounded: int = 0

    @property
    def too_many(self) -> bool:
        """Whether more of them stayed behind, beyond what rounding explains, than may."""
        return self.flipped - self.rounded > FLIPPED * self.compared

    @property
    def in_doubt(self) -> bool:
        """Whether more of them stayed behind, rounding or not, than may."""
        return self.flipped > FLIPPED * self.compared


def is_decision(claim: OutputClaim, outputs: Sequence[OutputClaim]) -> bool:
    """Whether an output is read as logits: the claim permutes its entries and no output is its deviation.

    Args:
        claim: of the output.
        outputs: the claims of all outputs; means of a Gaussian policy stand beside its deviations.
    """
    if claim.role != "action" or claim.size < 2 or any(item.role == "action_scale" for item in outputs):
        return False
    return all(isinstance(motion, SignedPermutation) and bool((motion.sign > 0).all()) for motion in claim.motions)


def margins(values: Floats) -> Floats:
    """By how much the best entry exceeds the next, shape (n,); 0 where both are infinite or one is NaN."""
    best = np.partition(values, -2, axis=1)[:, -2:]
    with np.errstate(invalid="ignore"):
        margin = best[:, 1] - best[:, 0]
    return np.where(np.isnan(margin), 0.0, margin)


def staying_behind(wanted: Floats, actual: Floats, spread: float) -> tuple[Bools, Bools]:
    """Which decisions are clear, and which of these do not transform with it.

    Args:
        wanted: K f(x), shape (n, actions).
        actual: f(Lx), the same shape.
        spread: of the output.

    Example:
        >>> wanted, actual = np.array([[1.0, 0.0], [1.0, 0.9999]]), np.array([[0.0, 1.0], [0.0, 1.0]])
        >>> [rows.tolist() for rows in staying_behind(wanted, actual, 1.0)]
        [[True, False], [True, False]]
    """
    number = ~(np.isnan(wanted).any(axis=1) | np.isnan(actual).any(axis=1))
    # an output without spread decides nothing: its largest entry is rounding
    clear = number & (margins(wanted) > CLEAR * spread) & (spread > 0)
    return clear, clear & (wanted.argmax(axis=1) != actual.argmax(axis=1))
