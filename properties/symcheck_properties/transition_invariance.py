"""The dynamics commute with the symmetry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from symcheck.engine.equations import TRANSITION
from symcheck.engine.registry import register
from symcheck.engine.results import PropertyResult

if TYPE_CHECKING:
    from symcheck.engine.environments.runner import EnvContext


@register(TRANSITION.name, kind="env", order=40, claim=TRANSITION.claim, meaning=TRANSITION.meaning)
def transition_invariance(context: EnvContext) -> PropertyResult:
    """T(L_g s' | L_g s, K_g^s a) = T(s' | s, a).

    Args:
        context: the run.

    Returns:
        The verdict of the run's method.

    Source: van der Pol et al. (2020), equation 5.
    """
    return context.judge(TRANSITION.name, "transition")
