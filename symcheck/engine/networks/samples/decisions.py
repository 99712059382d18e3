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

    Logits of bits may also change their sign.

    Args:
        claim: the claim of the output.
        outputs: the claims of all outputs; means of a Gaussian policy are returned with its deviations.
    """
    if claim.role != "action" or any(item.role == "action_scale" for item in outputs):
        return False
    if claim.choices:
        return True
    return claim.size > 1 and all(
        isinstance(motion, SignedPermutation) and bool((motion.sign > 0).all()) for motion in claim.motions
    )


def staying_behind(
    wanted: Floats, actual: Floats, spread: Floats, choices: Sequence[slice] = ()
) -> tuple[Bools, Bools, Floats]:
    """Which decisions are clear, which of these violate the claim, and by what margin.

    If an agent chooses several values at once, its decision is clear if one of the choices is, and violates the claim
    if a clear choice does.

    Args:
        wanted: K f(x), shape (n, actions).
        actual: f(Lx), the same shape.
        spread: the spread of each entry, shape (actions,).
        choices: the logits of each choice; a single logit is chosen by its sign. By default, one choice of all entries.

    Returns:
        Three arrays of shape (n,); margins are those of clear choices that violate the claim, otherwise 0.

    Example:
        >>> wanted, actual = np.array([[1.0, 0.0], [1.0, 0.9999]]), np.array([[0.0, 1.0], [0.0, 1.0]])
        >>> [rows.tolist() for rows in staying_behind(wanted, actual, np.ones(2))]
        [[True, False], [True, False], [1.0, 0.0]]
    """
    number = ~(np.isnan(wanted).any(axis=1) | np.isnan(actual).any(axis=1))
    clear, flipped, margin = np.zeros(len(wanted), bool), np.zeros(len(wanted), bool), np.zeros(len(wanted))
    for choice in choices or (slice(None),):
        before, after = _alternatives(wanted[:, choice]), _alternatives(actual[:, choice])
        least, gap = CLEAR * spread[choice].max(initial=0.0), _margins(before)
        # an output without spread makes no decision: its largest entry is due to rounding
        is_clear = number & (gap > least) & (least > 0)
        flips = is_clear & (before.argmax(axis=1) != after.argmax(axis=1))
        clear, flipped = clear | is_clear, flipped | flips
        margin = np.where(flips, np.maximum(margin, gap), margin)
    return clear, flipped, margin


def _alternatives(logits: Floats) -> Floats:
    """The scores of the alternatives of one choice: a bit is 1 if its logit is positive."""
    return logits if logits.shape[1] > 1 else np.concatenate([np.zeros_like(logits), logits], axis=1)


def _margins(values: Floats) -> Floats:
    """The margin between the best and the next entry, shape (n,); 0 if both are infinite or one is NaN."""
    best = np.partition(values, -2, axis=1)[:, -2:]
    with np.errstate(invalid="ignore"):
        margin = best[:, 1] - best[:, 0]
    return np.where(np.isnan(margin), 0.0, margin)
