"""The record that says how one environment's state is set, read, sampled and seen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from symcheck.statements.statement import Statement


class Origin(StrEnum):
    """Who says how a state is set. What is built in is known to restore whole states; others are asked by controls."""

    BUILT_IN = "built_in"
    REGISTERED = "registered"
    OWN_METHODS = "own_methods"
    REPLAYED = "replayed"
    GIVEN = "given"


@dataclass(frozen=True)
class StateAccess:
    """State access of one unwrapped environment.

    Attributes:
        set: puts the environment into a state and clears what earlier pokes left behind.
        what: whose state it is and what it holds, a name for reports ("CartPole", "MuJoCo: qpos and qvel").
        origin: who says so.
        get: reads the state; None if the observation is the state.
        sample: proposes n states; None if only reached states may be set.
        observe: the observation that a state shows, unwrapped; None if that is not known without a step.
        from_observation: the state that shows an observation; None if the observation does not determine it.
        angles: state coordinates that live on a circle of 2 pi.
        box: a box of numbers is the set of states, so single coordinates may be edited (edges, shrinking).
        ended: whether a state is terminal, so that nothing may be claimed about steps from it.
        batched: `set` and `get` act on whole batches of a vector environment, slot i holding row i.
        in_slots: whether it is the access of an environment inside each slot of a vector environment.
        inexact: what setting a state does not restore; empty if it restores everything.
        get_random: reads the state of the environment's random generators; None if they are NumPy's `np_random`.
        set_random: puts it back.
        from_report: makes a state of what a JSON report holds; None if that is an array of numbers.
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
        """Where this access comes from, for reports.

        Example:
            >>> StateAccess(lambda env, state: None, "CartPole", Origin.BUILT_IN).source.text
            'built in for CartPole'
        """
        return Statement(f"access_{self.origin}", {"what": self.what, "in_slots": self.in_slots})
