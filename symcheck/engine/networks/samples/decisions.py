"""Tests whether the preferred action of an output that is read as a decision transforms as claimed.

If the claim permutes the entries of an output, an agent takes the action with the largest logit. A decision is clear if
the best two entries differ by more than one thousandth of the output's spread. A clear decision that does not transform
as claimed is another action, even if the residual is small relative to the largest entry.
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
"""Largest fraction of clear decisions that may violate the claim before the network fails: the published level."""


@dataclass
class Decisions:
    """Counts of clear decisions.

    Attributes:
        compared: the number compared.
        flipped: the number of these that violate the claim.
        rounded: the number of those that are close enough for rounding to explain them.
    """

    compared: int = 0
    flipped: int = 0
    rounded: int = 0

    @property
    def too_many(self) -> bool:
        """Whether more decisions violate the claim than allowed, not counting those explained by rounding."""
        return self.flipped - self.rounded > FLIPPED * self.compared

    @property
    def in_doubt(self) -> bool:
        """Whether more decisions violate the claim than allowed, counting those explained by rounding."""
        return self.flipped > FLIPPED * self.compared


def is_decision(claim: OutputClaim, outputs: Sequence[OutputClaim]) -> bool:
    """Whether an output is read as logits: the claim permutes its entries, and no output is its deviation.

    Args:
        claim: the claim of the output.
        outputs: the claims of all outputs; means of a Gaussian policy are returned with its deviations.
    """
    if claim.role != "action" or claim.size < 2 or any(item.role == "action_scale" for item in outputs):
        return False
    return all(isinstance(motion, SignedPermutation) and bool((motion.sign > 0).all()) for motion in claim.motions)


def margins(values: Floats) -> Floats:
    """The margin between the best and the next entry, shape (n,); 0 if both are infinite or one is NaN."""
    best = np.partition(values, -2, axis=1)[:, -2:]
    with np.errstate(invalid="ignore"):
        margin = best[:, 1] - best[:, 0]
    return np.where(np.isnan(margin), 0.0, margin)


def staying_behind(wanted: Floats, actual: Floats, spread: float) -> tuple[Bools, Bools]:
    """Which decisions are clear, and which of these violate the claim.

    Args:
        wanted: K f(x), shape (n, actions).
        actual: f(Lx), the same shape.
        spread: the spread of the output.

    Example:
        >>> wanted, actual = np.array([[1.0, 0.0], [1.0, 0.9999]]), np.array([[0.0, 1.0], [0.0, 1.0]])
        >>> [rows.tolist() for rows in staying_behind(wanted, actual, 1.0)]
        [[True, False], [True, False]]
    """
    number = ~(np.isnan(wanted).any(axis=1) | np.isnan(actual).any(axis=1))
    # an output without spread makes no decision: its largest entry is due to rounding
    clear = number & (margins(wanted) > CLEAR * spread) & (spread > 0)
    return clear, clear & (wanted.argmax(axis=1) != actual.argmax(axis=1))
