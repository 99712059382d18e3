"""How far apart the outcomes of two lists of steps are, and what a way of setting states loses by that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from symcheck.array_types import Bools, Floats
from symcheck.envs.stepping.stepper import Step
from symcheck.spaces.coordinates import Coordinates, finite, scalar_coordinate

FAR_ABOVE = 10.0  # times the largest loss that was met: two sides lose, and larger losses are rarer than those met
_RARE = 0.1  # share of the values on either side that do not count for how far they spread


@dataclass(frozen=True)
class StepDifferences:
    """Differences between steps, one by one.

    Attributes:
        first: the next observations and rewards of the first list, shape (n, dim + 1).
        residual: how far those of the second are from them, shape (n, dim + 1).
        ends: whether just one of the two ended the episode, shape (n,).
    """

    first: Floats
    residual: Floats
    ends: Bools


@dataclass(frozen=True)
class Loss:
    """What becomes of the same (s, a) stepped under two circumstances, at most.

    Attributes:
        names: of coordinates and reward, dim + 1 of them.
        largest: differences of next observations and rewards, shape (dim + 1,).
        share: the same, as shares of how far the values spread; infinite if they do not.
        ends: share of the steps of which just one ended the episode.
    """

    names: tuple[str, ...]
    largest: Floats
    share: Floats
    ends: float

    def of(self, part: str, dim: int) -> Floats:
        """The largest differences of one property, shape (dim,).

        What is compared beyond the observation, internal states, may lose as much as any number of the observation.

        Args:
            part: "reward", or another one, which is of observations.
            dim: how many numbers are compared.
        """
        if part == "reward":
            return self.largest[-1:]
        known = self.largest[:-1][:dim]
        return np.append(known, np.full(dim - len(known), known.max(initial=0.0)))

    def fields(self) -> dict[str, object]:
        """The number that loses most for its spread, and how much, as fields of a statement."""
        worst = int(np.argmax(self.share))
        lost = float(self.largest[worst])
        return {"lost": lost, "lost_in": self.names[worst]} if 0 < lost < np.inf else {}


def compare_steps(coordinates: Coordinates, first: Sequence[Step], second: Sequence[Step]) -> StepDifferences:
    """Compare two lists of steps, one by one.

    Args:
        coordinates: of the observations.
        first: at least one step.
        second: as many.
    """
    shown, again = (np.stack([step.flat for step in steps]) for steps in (first, second))
    paid, paid_again = (np.array([[step.reward] for step in steps]) for steps in (first, second))
    rewards = scalar_coordinate("reward", epsilon=0.0).residual(paid, paid_again)
    residual = np.concatenate([coordinates.residual(shown, again), rewards], axis=1)
    ends = np.array([a.terminated != b.terminated for a, b in zip(first, second, strict=True)])
    return StepDifferences(np.concatenate([shown, paid], axis=1), residual, ends)


def measure_loss(coordinates: Coordinates, differences: Sequence[StepDifferences]) -> Loss:
    """The largest of some differences.

    Args:
        coordinates: of the observations.
        differences: at least one.
    """
    largest = np.max([one.residual.max(axis=0) for one in differences], axis=0)
    low, high = np.quantile(finite(np.concatenate([one.first for one in differences])), (_RARE, 1 - _RARE), axis=0)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        share = np.where(largest > 0, largest / (high - low), 0.0)
    ends = float(np.concatenate([one.ends for one in differences]).mean())
    return Loss((*coordinates.names, "reward"), largest, share, ends)
