"""The action can be followed through every operation: what only moves, pools or combines entries carries it too.

Strides, paddings and window sizes decide here, not weights: a stride of 2 commutes with a turn of the image at some
sizes only, whatever was learned.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from symcheck.engine.registry import register
from symcheck.engine.results import PropertyResult

if TYPE_CHECKING:
    from symcheck.engine.networks.context import NetContext
    from symcheck.engine.networks.values import LayerRecord


def _geometric_failure(context: NetContext) -> LayerRecord | None:
    """The operation at fault where the first failure is not about weights, and some output shows it."""
    failure = None if context.proof is None else context.proof.first_failure
    if failure is None or failure.residual is not None or context.decision.verdict != "failed":
        return None
    return failure


def _applies(context: NetContext) -> bool:
    if not context.repeatable or context.proof is None:
        return False
    return context.proof.level in ("exact", "rounded") or _geometric_failure(context) is not None


@register(
    "representation_propagation", kind="net", order=20, claim="each operation carries the action on", applies=_applies
)
def check_representation_propagation(context: NetContext) -> PropertyResult:
    """Every operation was followed, or the first one that cannot carry the action is named."""
    records = () if context.proof is None else context.proof.records
    failure = _geometric_failure(context)
    if failure is None:
        return PropertyResult(
            name="representation_propagation",
            verdict="proved",
            method="certificate",
            checked=max(1, len(records)) * len(context.inputs.motions),
            notes=(f"The action was followed through every operation for inputs of shape {context.subject.shape}.",),
        )
    return PropertyResult(
        name="representation_propagation",
        verdict="failed",
        method="certificate",
        checked=max(1, len(records)),
        violations=1,
        counterexample=context.counterexample,
        causes=context.causes,
        notes=(f"{failure.name} ({failure.kind}, {failure.source}): {failure.cause}.",),
        location=failure.name,
    )
