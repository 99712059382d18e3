"""Termination is invariant: a transition terminates if and only if its image does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from symcheck.engine.equations import TERMINATION
from symcheck.engine.registry import register
from symcheck.engine.results import PropertyResult

if TYPE_CHECKING:
    from symcheck.engine.environments.runner import EnvContext


@register(TERMINATION.name, kind="env", order=50, claim=TERMINATION.claim, meaning=TERMINATION.meaning)
def termination_invariance(context: EnvContext) -> PropertyResult:
    """T(L_g s, K_g^s a) terminates if and only if T(s, a) does.

    Args:
        context: the run.

    Returns:
        The verdict of the run's method.

    Source: van der Pol et al. (2020), equation 5, with the end of an episode as an absorbing state.
    """
    return context.judge(TERMINATION.name, "termination")
