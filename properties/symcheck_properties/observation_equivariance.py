"""If the internal state differs from the observation: the observation of g s is g applied to the observation of s."""

from __future__ import annotations

from typing import TYPE_CHECKING

from symcheck.engine.equations import OBSERVATION
from symcheck.engine.registry import register
from symcheck.engine.results import PropertyResult

if TYPE_CHECKING:
    from symcheck.engine.environments.runner import EnvContext


def _shows_state(context: EnvContext) -> bool:
    return context.shows_state


@register(
    OBSERVATION.name, kind="env", order=20, claim=OBSERVATION.claim, meaning=OBSERVATION.meaning, applies=_shows_state
)
def observation_equivariance(context: EnvContext) -> PropertyResult:
    """obs(L_state s) = L_obs obs(s).

    Args:
        context: the run.

    Returns:
        The verdict; skipped if the observation is the state.

    Source: the consistency of the two maps in a symmetry with `state=`.
    """
    return context.judge(OBSERVATION.name, "observation")
