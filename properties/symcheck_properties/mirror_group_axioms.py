"""The blocks of a mirror function form the group: the first is the identity, and block i after block j is block k."""

from __future__ import annotations

from typing import TYPE_CHECKING

from symcheck.engine.equations import GROUP_AXIOMS
from symcheck.engine.registry import register
from symcheck.engine.results import PropertyResult
from symcheck.verdict import Facts, decide

if TYPE_CHECKING:
    from symcheck.engine.mirrors.context import MirrorContext


def _applies(context: MirrorContext) -> bool:
    return context.function is not None


@register(
    GROUP_AXIOMS.name,
    kind="mirror",
    order=10,
    claim=GROUP_AXIOMS.claim,
    meaning=GROUP_AXIOMS.meaning,
    applies=_applies,
)
def check_mirror_axioms(context: MirrorContext) -> PropertyResult:
    """Check the composition of blocks on random batches.

    Args:
        context: the run.

    Returns:
        passed, or failed with the columns that do not return to their values.
    """
    from symcheck.engine.mirrors.axioms import check_axioms  # loads the readers of models

    seen = check_axioms(context)
    facts = Facts(checked=seen.checked, violations=seen.violations, quantity=GROUP_AXIOMS.noun)
    verdict, reason = decide(facts)
    return PropertyResult(
        name=GROUP_AXIOMS.name,
        verdict=verdict,
        method="samples",
        checked=facts.checked,
        violations=facts.violations,
        max_residual=seen.largest,
        unit=GROUP_AXIOMS.unit,
        causes=seen.causes,
        notes=seen.notes,
        reason=reason,
        facts=facts,
    )
