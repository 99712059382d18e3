"""A robot's model is its own mirror image: every parameter that a simulator reads equals that of its counterpart."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from symcheck.engine.equations import MODEL_SYMMETRY
from symcheck.engine.registry import register
from symcheck.engine.results import PropertyResult
from symcheck.statements.statement import Statement, state
from symcheck.verdict import Facts, decide

if TYPE_CHECKING:
    from symcheck.engine.mirrors.context import MirrorContext

_SHOWN = 8


def _applies(context: MirrorContext) -> bool:
    return context.function is None


@register(
    MODEL_SYMMETRY.name,
    kind="mirror",
    order=40,
    claim=MODEL_SYMMETRY.claim,
    meaning=MODEL_SYMMETRY.meaning,
    applies=_applies,
)
def check_model_symmetry(context: MirrorContext) -> PropertyResult:
    """Check every parameter against its image; differences above the tolerance are violations.

    Args:
        context: the run.

    Returns:
        passed, or failed with the largest differences; smaller ones are noted.
    """
    tolerance = context.options.tolerance
    large = [item for item in context.differences if not item.relative <= tolerance]
    small = context.differences[len(large) :]
    sizes = [item.relative for item in context.differences]
    facts = Facts(
        checked=context.elements,
        violations=len(large) + len(context.unpaired),
        quantity=MODEL_SYMMETRY.noun,
    )
    verdict, reason = decide(facts)
    return PropertyResult(
        name=MODEL_SYMMETRY.name,
        verdict=verdict,
        method="model",
        checked=facts.checked,
        violations=facts.violations,
        max_residual=math.inf if context.unpaired else max(sizes, default=0.0),
        tolerance=tolerance,
        unit=MODEL_SYMMETRY.unit,
        causes=_causes(context, len(large)) if verdict == "failed" else (),
        notes=(
            *([state("model_small_differences", count=len(small), tolerance=tolerance)] if small else []),
            *(state("model_remark", text=text) for text in context.remarks),
        ),
        approximate=bool(small) and verdict == "passed",
        reason=reason,
        facts=facts,
    )


def _causes(context: MirrorContext, large: int) -> tuple[Statement, ...]:
    missing = [state("SYM241", isometry=isometry, problem=text) for isometry, text in context.unpaired]
    differing = [
        state(
            "SYM240",
            element=item.element,
            counterpart=item.counterpart,
            quantity=item.quantity,
            expected=list(item.expected),
            actual=list(item.actual),
            relative=item.relative,
            difference=str(item),
        )
        for item in context.differences[:large]
    ]
    listed = [*missing, *differing]
    more = [state("SYM242", count=len(listed) - _SHOWN)] if len(listed) > _SHOWN else []
    return (*listed[:_SHOWN], *more)
