"""The weights of every layer commute with the group: rho_out(g) W = W rho_in(g), where the rows of W give rho_out.

A failure is located at the first layer whose weights do not commute. Differences are measured in float32 units in the
last place for every dtype.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from symcheck.engine.equations import LAYER
from symcheck.engine.registry import register
from symcheck.engine.results import Counterexample, PropertyResult
from symcheck.statements.statement import Statement, state
from symcheck.verdict import Facts, decide

if TYPE_CHECKING:
    from symcheck.engine.networks.context import NetContext
    from symcheck.engine.networks.subject.values import LayerRecord


def _applies(context: NetContext) -> bool:
    """Applies if every layer is certified, or if one is at fault and an output shows it.

    Otherwise only samples count.
    """
    if not context.repeatable or context.proof is None or context.proof.is_by_comparison:
        return False
    if context.proof.level in ("exact", "rounded"):
        return bool(_weighed_records(context))
    # A failure with a residual concerns weights; one without is geometric and is reported by
    # representation_propagation.
    failure = context.proof.first_failure
    return context.assessment.verdict == "failed" and failure is not None and failure.residual is not None


@register(LAYER.name, kind="net", order=30, claim=LAYER.claim, meaning=LAYER.meaning, applies=_applies)
def check_layer_certificate(context: NetContext) -> PropertyResult:
    """Check the weights of each layer against the permutation of its units; the first failing layer is named."""
    proof, records = context.proof, _weighed_records(context)
    failure = None if proof is None else proof.first_failure
    # The record to show: the one at fault, otherwise the one with the largest residual.
    record = failure or max(records, key=lambda r: r.residual or 0.0)
    rounded = failure is None and proof is not None and proof.level == "rounded"
    # With --strict a rounded layer counts as a violation.
    violated = failure is not None or (rounded and context.options.strict)
    facts = Facts(
        # Every layer is compared once for each generator.
        checked=len(records) * len(context.inputs.motions),
        # With --strict, a rounded layer is a violation without a failed record; hence the larger of the two counts.
        violations=max(sum(r.level == "failed" for r in records), int(violated)),
        exhaustive=not rounded,
        quantity=LAYER.noun,
    )
    verdict, reason = decide(facts)
    failed = verdict == "failed"
    return PropertyResult(
        name=LAYER.name,
        verdict=verdict,
        method="certificate",
        checked=facts.checked,
        violations=facts.violations,
        max_residual=record.residual,
        tolerance=None if not record.relative or record.residual is None else _tolerance(record),
        unit=LAYER.unit,
        bound=_output_bound(context) if verdict == "passed" else None,
        counterexample=_counterexample(context, record) if failed else None,
        causes=context.causes if failed else (),
        notes=(_note(record, len(records), off=failure is not None, rounded=rounded),),
        location=record.name if failed else None,
        reason=reason,
        facts=facts,
    )


def _weighed_records(context: NetContext) -> list[LayerRecord]:
    return [] if context.proof is None else [record for record in context.proof.records if record.residual is not None]


def _note(record: LayerRecord, layers: int, *, off: bool, rounded: bool) -> Statement:
    if not off and not rounded:
        return state("layers_carry", count=layers)
    return state(
        "layer_difference",
        layer=record.name,
        kind=record.kind,
        source=record.source,
        residual=record.residual,
        ulps=record.ulps,
        place=record.place,
        rounded=rounded,
    )


def _output_bound(context: NetContext) -> dict[str, object] | None:
    proof = context.proof
    if proof is None or proof.bound is None:
        return None
    region = state("region_box", box=proof.box)
    return {"kind": "output_residual", "value": proof.bound, "confidence": 1.0, "region": region}


def _counterexample(context: NetContext, record: LayerRecord) -> Counterexample | None:
    """The entry of the layer that is wrong, with the input whose outputs show it."""
    shown = context.counterexample
    if shown is None or record.values is None:
        return shown
    expected, actual = record.values
    where = f"{record.name}: {record.place}" if record.name else record.place
    return replace(
        shown, expected=expected, actual=actual, residual=record.residual or 0.0, where=where, image_observation=None
    )


def _tolerance(record: LayerRecord) -> float | None:
    """Four float32 ulps at the entry at fault, in weight units."""
    if not record.ulps or record.residual is None:
        return None
    return 4.0 * record.residual / record.ulps
