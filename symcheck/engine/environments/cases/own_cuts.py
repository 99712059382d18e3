"""Episodes that the environment itself cuts short: does the state that is set decide where?

A position that leaves the track is compared like an end; a counter that setting a state does not restore is not: then
a cut says nothing about (s, a).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from symcheck.engine.environments.cases.pool import Pool, Visit
from symcheck.envs.stepping.stepper import Stepper
from symcheck.statements.statement import Statement, state

_TRIED = 40  # steps that were cut short, and as many that were not
_LEAST = 0.9  # share of either that has to come out as reached: a state may sit at a threshold


@dataclass(frozen=True)
class OwnCuts:
    """Steps of roll-outs that the environment itself cut short, and others.

    Attributes:
        stepper: the environment.
        cut: some that were cut short; none of either where it is known that states decide.
        going: some that went on.
    """

    stepper: Stepper
    cut: Sequence[Visit]
    going: Sequence[Visit]

    @cached_property
    def follow_states(self) -> bool:
        """Whether cuts recur where states are set; asked after all pairs were stepped, when counters have grown."""
        return all(
            np.mean([self.stepper.outcome(v.situation.state, v.action).truncated == v.step.truncated for v in some])
            >= _LEAST
            for some in (self.cut, self.going)
            if some
        )

    @property
    def note(self) -> Statement:
        """Whether they are compared, to be said with the verdict on ends."""
        return state("own_cuts_compared" if self.follow_states else "own_cuts_not_compared")


def own_cuts(stepper: Stepper, pool: Pool, longest: int | None, rng: np.random.Generator) -> OwnCuts | None:
    """The steps that the environment itself cut short; None where there are none.

    Args:
        stepper: the environment, with state access.
        pool: its visits are what roll-outs met.
        longest: steps after which something outside the environment cuts episodes short.
        rng: picks among them.
    """
    number = 0
    cut: list[Visit] = []
    going: list[Visit] = []
    for visit in pool.visits:
        number = 1 if visit.situation.origin == "start" else number + 1
        if visit.step.terminated or number == longest:
            continue
        (cut if visit.step.truncated else going).append(visit)
    if stepper.batched or not cut or not going:
        return None
    picked = ([some[i] for i in rng.permutation(len(some))[:_TRIED]] for some in (cut, going))
    return OwnCuts(stepper, *picked)
