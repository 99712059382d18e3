"""The start distribution is invariant."""

from __future__ import annotations

from typing import TYPE_CHECKING

from symcheck.engine.equations import START
from symcheck.engine.registry import register
from symcheck.engine.results import PropertyResult

if TYPE_CHECKING:
    from symcheck.engine.environments.runner import EnvContext


def _claims_start(context: EnvContext) -> bool:
    return context.claims_start


@register(START.name, kind="env", order=60, claim=START.claim, meaning=START.meaning, applies=_claims_start)
def initial_invariance(context: EnvContext) -> PropertyResult:
    """P(s_0) = P(L_g s_0).

    Args:
        context: the run.

    Returns:
        The verdict; skipped if the symmetry has `initial=False`.

    Source: returns need this property and optimal policies do not, so it is checked separately.
    """
    return context.judge_start(START.name)
