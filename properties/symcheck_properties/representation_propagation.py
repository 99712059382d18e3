"""The group action can be traced through every operation, including those that only move or pool entries.

Whether this is possible depends on strides, paddings and window sizes, not on weights: a stride of 2 commutes with a
rotation of the image only at some sizes, for any weights.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from symcheck.engine.equations import PROPAGATION
from symcheck.engine.registry import register
from symcheck.engine.results import PropertyResult
from symcheck.statements.statement import state
from symcheck.verdict import Facts, decide

if TYPE_CHECKING:
    from symcheck.engine.networks.context import NetContext
    from symcheck.engine.networks.subject.values import LayerRecord


def _geometric_failure(context: NetContext) -> LayerRecord | None:
    """The operation at fault if the first failure does not concern weights and some output shows it."""
    failure = None if context.proof is None else context.proof.first_failure
    # A failure with a residual concerns weights and is reported by layer_certificate.
    if failure is None or failure.residual is not None or context.assessment.verdict != "failed":
        return None
    return failure


def _applies(context: NetContext) -> bool:
    if not context.repeatable or context.proof is None:
        return False
    if context.proof.is_by_comparison:
        return False  # graphs were compared as a whole, so no operation was followed
    return context.proof.level in ("exact", "rounded") or _geometric_failure(context) is not None


@register(
    PROPAGATION.name,
    kind="net",
    order=20,
    claim=PROPAGATION.claim,
    meaning=PROPAGATION.meaning,
    applies=_applies,
)
def check_representation_propagation(context: NetContext) -> PropertyResult:
    """Check that the group action can be traced through every operation; the first one that breaks it is named."""
    # A network without recorded operations counts as one operation: 0 would mean that nothing was checked.
    operations = max(1, 0 if context.proof is None else len(context.proof.records))
    failure = _geometric_failure(context)
    if failure is None:
        facts = Facts(operations * len(context.inputs.motions), exhaustive=True, quantity=PROPAGATION.noun)
        note = state("operations_followed", shape=list(context.subject.shape))
    else:
        facts = Facts(operations, violations=1, exhaustive=True, quantity=PROPAGATION.noun)
        place = {"layer": failure.name, "kind": failure.kind, "source": failure.source}
        note = state("operation_at_fault", **place, cause=failure.cause)
    verdict, reason = decide(facts)
    return PropertyResult(
        name=PROPAGATION.name,
        verdict=verdict,
        method="certificate",
        checked=facts.checked,
        violations=facts.violations,
        counterexample=None if failure is None else context.counterexample,
        causes=() if failure is None else context.causes,
        notes=(note,),
        location=None if failure is None else failure.name,
        reason=reason,
        facts=facts,
    )
