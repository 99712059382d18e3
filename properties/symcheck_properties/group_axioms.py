"""The maps form a group action: every relation of the group changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from symcheck.engine.registry import register
from symcheck.engine.results import PropertyResult

if TYPE_CHECKING:
    from symcheck.engine.environments.runner import EnvContext


@register("group_axioms", kind="env", order=10, claim="L_gh = L_g L_h and K_gh^s = K_g^{hs} K_h^s")
def group_axioms(context: EnvContext) -> PropertyResult:
    """L and K obey the relations of the group.

    Data is checked exactly; callables on sampled states and actions.

    Args:
        context: the run.

    Returns:
        proved for data, else passed or failed on samples.

    Source: van der Pol et al. (2020), section 3.1; state-dependent K composes as in their definition.
    """
    return context.judge_axioms("group_axioms")
