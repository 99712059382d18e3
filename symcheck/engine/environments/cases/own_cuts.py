"""Tests whether truncation by the environment itself is determined by the set state.

Truncation at a position (leaving the track) is compared like a termination. Truncation by a counter that setting a
state does not restore carries no information about (s, a), and is not compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from symcheck.engine.environments.cases.pool import Pool, Visit
from symcheck.envs.stepping.stepper import Stepper
from symcheck.statements.statement import Statement, state

_TRIED = 40  # number of truncated steps, and of other steps
_LEAST = 0.9  # fraction of either kind that must recur; not all, because a state may lie at a threshold


@dataclass(frozen=True)
class OwnCuts:
    """Rollout steps that the environment itself truncated, and others.

    Attributes:
        stepper: the environment.
        cut: a sample of truncated steps; empty if states are known to determine truncation.
        going: a sample of the other steps.
    """

    stepper: Stepper
    cut: Sequence[Visit]
    going: Sequence[Visit]

    @cached_property
    def follow_states(self) -> bool:
        """Whether truncation recurs when states are set; evaluated last, when counters have grown."""
        return all(
            np.mean([self.stepper.outcome(v.situation.state, v.action).truncated == v.step.truncated for v in some])
            >= _LEAST
            for some in (self.cut, self.going)
            if some
        )

    @property
    def note(self) -> Statement:
        """The note on whether truncation is compared, attached to the verdict on termination."""
        return state("own_cuts_compared" if self.follow_states else "own_cuts_not_compared")


def own_cuts(stepper: Stepper, pool: Pool, longest: int | None, rng: np.random.Generator) -> OwnCuts | None:
    """The steps that the environment itself truncated; None if there are none.

    Args:
        stepper: the environment, with state access.
        pool: provides the visits of rollouts.
        longest: the number of steps after which a time limit outside the environment truncates episodes.
        rng: selects among them.
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
