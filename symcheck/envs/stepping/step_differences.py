"""Differences between the outcomes of two lists of steps, which measure the loss due to setting states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from symcheck.array_types import Bools, Floats
from symcheck.envs.stepping.stepper import Step
from symcheck.spaces.coordinates import Coordinates, finite, scalar_coordinate

FAR_ABOVE = 10.0  # safety factor on the largest measured loss: both sides have a loss, and rare losses may be larger
_RARE = 0.1  # fraction of values at either end that is ignored for the spread


@dataclass(frozen=True)
class StepDifferences:
    """Differences between corresponding steps.

    Attributes:
        first: the next observations and rewards of the first list, shape (n, dim + 1).
        residual: the differences of the second list from the first, shape (n, dim + 1).
        ends: whether exactly one of the two steps ended the episode, shape (n,).
    """

    first: Floats
    residual: Floats
    ends: Bools


@dataclass(frozen=True)
class Loss:
    """The largest differences between outcomes of the same (s, a) stepped under two conditions.

    Attributes:
        names: the dim + 1 names of coordinates and reward.
        largest: differences of next observations and rewards, shape (dim + 1,).
        share: the same, divided by the spread of the values; infinite if the spread is 0.
        ends: the share of pairs of steps in which exactly one ended the episode.
    """

    names: tuple[str, ...]
    largest: Floats
    share: Floats
    ends: float

    def of(self, part: str, dim: int) -> Floats:
        """The largest differences of one property, shape (dim,).

        Internal states, which are compared in addition to the observation, are assumed to lose as much as the worst
        coordinate of the observation.

        Args:
            part: "reward", or any other property, which is about observations.
            dim: the number of compared coordinates.
        """
        if part == "reward":
            return self.largest[-1:]
        known = self.largest[:-1][:dim]
        return np.append(known, np.full(dim - len(known), known.max(initial=0.0)))

    def fields(self) -> dict[str, object]:
        """The coordinate with the largest loss relative to its spread, as fields of a statement."""
        worst = int(np.argmax(self.share))
        lost = float(self.largest[worst])
        return {"lost": lost, "lost_in": self.names[worst]} if 0 < lost < np.inf else {}


def compare_steps(coordinates: Coordinates, first: Sequence[Step], second: Sequence[Step]) -> StepDifferences:
    """Compare corresponding steps of two lists.

    Args:
        coordinates: the coordinates of the observations.
        first: at least one step.
        second: a list of the same length.
    """
    shown, again = (np.stack([step.flat for step in steps]) for steps in (first, second))
    paid, paid_again = (np.array([[step.reward] for step in steps]) for steps in (first, second))
    rewards = scalar_coordinate("reward", epsilon=0.0).residual(paid, paid_again)
    residual = np.concatenate([coordinates.residual(shown, again), rewards], axis=1)
    ends = np.array([a.terminated != b.terminated for a, b in zip(first, second, strict=True)])
    return StepDifferences(np.concatenate([shown, paid], axis=1), residual, ends)


def measure_loss(coordinates: Coordinates, differences: Sequence[StepDifferences]) -> Loss:
    """The largest differences.

    Args:
        coordinates: the coordinates of the observations.
        differences: at least one.
    """
    largest = np.max([one.residual.max(axis=0) for one in differences], axis=0)
    low, high = np.quantile(finite(np.concatenate([one.first for one in differences])), (_RARE, 1 - _RARE), axis=0)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        share = np.where(largest > 0, largest / (high - low), 0.0)
    ends = float(np.concatenate([one.ends for one in differences]).mean())
    return Loss((*coordinates.names, "reward"), largest, share, ends)
