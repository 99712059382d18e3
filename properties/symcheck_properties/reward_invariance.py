"""The reward is invariant under the symmetry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from symcheck.engine.equations import REWARD
from symcheck.engine.registry import register
from symcheck.engine.results import PropertyResult

if TYPE_CHECKING:
    from symcheck.engine.environments.runner import EnvContext


@register(REWARD.name, kind="env", order=30, claim=REWARD.claim, meaning=REWARD.meaning)
def reward_invariance(context: EnvContext) -> PropertyResult:
    """R(L_g s, K_g^s a) = R(s, a).

    Args:
        context: the run.

    Returns:
        The verdict of the run's method.

    Source: van der Pol et al. (2020), equation 4.
    """
    return context.judge(REWARD.name, "reward")
