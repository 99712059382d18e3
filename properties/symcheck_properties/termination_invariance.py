"""Episodes end on both sides alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

from symcheck.engine.registry import register
from symcheck.engine.results import PropertyResult

if TYPE_CHECKING:
    from symcheck.engine.environments.runner import EnvContext


@register("termination_invariance", kind="env", order=50, claim="T(L_g s, K_g^s a) terminates as T(s, a) does")
def termination_invariance(context: EnvContext) -> PropertyResult:
    """T(L_g s, K_g^s a) terminates as T(s, a) does.

    Args:
        context: the run.

    Returns:
        The verdict of the run's method.

    Source: van der Pol et al. (2020), equation 5, with the end of an episode as an absorbing state.
    """
    return context.judge("termination_invariance", "termination")
