"""The record of one environment's batched form.

A batched form is always validated: the engine first compares its results with steps of the environment bit for bit, and
repeats every violation in the environment before reporting it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from symcheck.array_types import Floats


class Transitions(NamedTuple):
    """The result of stepping n states at once.

    Attributes:
        states: next internal states, shape (n, dim), float64.
        observations: next observations, shape (n, *shape), in the environment's dtype.
        rewards: shape (n,), float64.
        terminated: shape (n,), bool.
    """

    states: Floats
    observations: npt.NDArray[Any]
    rewards: Floats
    terminated: npt.NDArray[np.bool_]


@dataclass(frozen=True)
class BatchModel:
    """The batched form of one environment instance, with that instance's parameters.

    Attributes:
        source: a description for reports.
        step: maps (states of shape (n, dim), stacked actions) to the transitions.
        observe: maps states of shape (n, dim) to their observations.
        ended: maps states to whether they are already terminal, shape (n,); no claim is made about steps from terminal
            states.
        state_showing: maps observations to their states, float64; None if the observation is the state.
    """

    source: str
    step: Callable[[Floats, npt.NDArray[Any]], Transitions]
    observe: Callable[[Floats], npt.NDArray[Any]]
    ended: Callable[[Floats], npt.NDArray[np.bool_]]
    state_showing: Callable[[npt.NDArray[Any]], Floats] | None = None


def never(states: Floats) -> npt.NDArray[np.bool_]:
    """No state is terminal.

    Example:
        >>> never(np.zeros((2, 1))).tolist()
        [False, False]
    """
    return np.zeros(len(states), dtype=np.bool_)
