"""The record of functions that set, read, sample and observe the state of one environment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from symcheck.statements.statement import Statement


class Origin(StrEnum):
    """The origin of an access. Built-in access restores complete states; any other access is tested by controls."""

    BUILT_IN = "built_in"
    REGISTERED = "registered"
    OWN_METHODS = "own_methods"
    REPLAYED = "replayed"
    GIVEN = "given"


@dataclass(frozen=True)
class StateAccess:
    """State access of one unwrapped environment.

    Attributes:
        set: puts the environment into a state and clears traces of earlier states.
        what: a name for reports: the environment and the contents of the state ("CartPole", "MuJoCo: qpos and qvel").
        origin: the origin of the access.
        get: reads the state; None if the observation is the state.
        sample: proposes n states; None if only reached states may be set.
        observe: the unwrapped observation of a state; None if it is not known without a step.
        from_observation: the state that belongs to an observation; None if the observation does not determine it.
        angles: state coordinates that are angles modulo 2 pi.
        box: whether the set of states is a box, so that single coordinates may be edited (edges, shrinking).
        ended: whether a state is terminal; no claim is made about steps from terminal states.
        batched: whether `set` and `get` act on whole batches of a vector environment; slot i has row i.
        in_slots: whether it is the access of the environment inside each slot of a vector environment.
        inexact: the parts of the state that setting does not restore; empty if it restores everything.
        get_random: reads the state of the environment's random generators; None if they are NumPy's `np_random`.
        set_random: restores it.
        from_report: converts the value in a JSON report to a state; None if that value is an array of numbers.
    """

    set: Callable[[Any, Any], None]
    what: str
    origin: Origin = Origin.GIVEN
    get: Callable[[Any], Any] | None = None
    sample: Callable[[np.random.Generator, int], Sequence[Any] | npt.NDArray[Any]] | None = None
    observe: Callable[[Any], Any] | None = None
    from_observation: Callable[[Any], Any] | None = None
    angles: tuple[int, ...] = ()
    box: bool = False
    ended: Callable[[Any], bool] = lambda state: False
    batched: bool = False
    in_slots: bool = False
    inexact: tuple[Statement, ...] = ()
    get_random: Callable[[Any], Any] | None = None
    set_random: Callable[[Any, Any], None] | None = None
    from_report: Callable[[Any], Any] | None = None

    @property
    def source(self) -> Statement:
        """The source of this access, for reports.

        Example:
            >>> StateAccess(lambda env, state: None, "CartPole", Origin.BUILT_IN).source.text
            'built in for CartPole'
        """
        return Statement(f"access_{self.origin}", {"what": self.what, "in_slots": self.in_slots})
