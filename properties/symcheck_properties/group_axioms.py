"""The maps form a group action: every relation of the group acts as the identity."""

from __future__ import annotations

from typing import TYPE_CHECKING

from symcheck.engine.equations import GROUP_AXIOMS
from symcheck.engine.registry import register
from symcheck.engine.results import PropertyResult

if TYPE_CHECKING:
    from symcheck.engine.environments.runner import EnvContext


@register(GROUP_AXIOMS.name, kind="env", order=10, claim=GROUP_AXIOMS.claim, meaning=GROUP_AXIOMS.meaning)
def group_axioms(context: EnvContext) -> PropertyResult:
    """L and K obey the relations of the group.

    Data is checked exactly; callables on sampled states and actions.

    Args:
        context: the run.

    Returns:
        proved for data, otherwise passed or failed on samples.

    Source: van der Pol et al. (2020), section 3.1; state-dependent K composes as in their definition.
    """
    return context.judge_axioms(GROUP_AXIOMS.name)
