"""The weights of every layer carry the action: rho_out(g) W = W rho_in(g) with a rho_out found from the rows of W.

The first layer whose weights do not is the location of a failure. Differences are judged in float32 units in the last
place, whatever the dtype.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from symcheck.engine.registry import register
from symcheck.engine.results import Counterexample, PropertyResult

if TYPE_CHECKING:
    from symcheck.engine.networks.context import NetContext
    from symcheck.engine.networks.values import LayerRecord


def _applies(context: NetContext) -> bool:
    """Where every layer is certified, or one is at fault and an output shows it; else samples stand alone."""
    if not context.repeatable or context.proof is None:
        return False
    if context.proof.level in ("exact", "rounded"):
        return bool(_weighed(context))
    failure = context.proof.first_failure
    return context.decision.verdict == "failed" and failure is not None and failure.residual is not None


@register(
    "layer_certificate", kind="net", order=30, claim="rho_out(g) W = W rho_in(g), rho_out(g) b = b", applies=_applies
)
def check_layer_certificate(context: NetContext) -> PropertyResult:
    """The weights of each layer against the permutation of its units; the first that fails is named."""
    proof, records = context.proof, _weighed(context)
    failure = None if proof is None else proof.first_failure
    record = failure or max(records, key=lambda r: r.residual or 0.0)
    if failure is not None:
        return _result(
            context,
            record,
            "failed",
            f"{record.name} ({record.kind}, {record.source}): {_difference(record)}.".lstrip(),
        )
    if proof is not None and proof.level == "rounded":
        verdict = "failed" if context.options.strict else "passed"
        layer = f" is in {record.name}" if record.name else ""
        detail = f"Weights rounded: the largest difference{layer}: {_difference(record)}."
        return _result(context, record, verdict, detail)
    what = f"{len(records)} layers with weights" if len(records) != 1 else "1 layer with weights"
    return _result(
        context, record, "proved", f"{what} carry the action exactly; permutations were found from their rows."
    )


def _weighed(context: NetContext) -> list[LayerRecord]:
    return [] if context.proof is None else [record for record in context.proof.records if record.residual is not None]


def _difference(record: LayerRecord) -> str:
    return f"residual {record.residual:.2e} ({record.ulps:.3g} float32 ulps), {record.place}"


def _result(context: NetContext, record: LayerRecord, verdict: str, detail: str) -> PropertyResult:
    failed = verdict == "failed"
    proof = context.proof
    bound = None
    if verdict == "passed" and proof is not None and proof.bound is not None:
        region = f"every input with entries in [-{proof.box:g}, {proof.box:g}]"
        bound = {"kind": "output_residual", "value": proof.bound, "confidence": 1.0, "region": region}
    return PropertyResult(
        name="layer_certificate",
        verdict=verdict,  # type: ignore[arg-type]
        method="certificate",
        checked=len(_weighed(context)) * len(context.inputs.motions),
        violations=sum(r.level == "failed" for r in _weighed(context)) or int(failed),
        max_residual=record.residual,
        tolerance=None if not record.relative or record.residual is None else _tolerance(record),
        unit="max norm over weights and biases of a layer",
        bound=bound,
        counterexample=_counterexample(context, record) if failed else None,
        causes=context.causes if failed else (),
        notes=(detail,),
        location=record.name if failed else None,
    )


def _counterexample(context: NetContext, record: LayerRecord) -> Counterexample | None:
    """The entry of the layer that is wrong, with the input whose outputs show it."""
    found = context.counterexample
    if found is None or record.values is None:
        return found
    expected, actual = record.values
    where = f"{record.name}: {record.place}" if record.name else record.place
    return replace(
        found, expected=expected, actual=actual, residual=record.residual or 0.0, where=where, image_observation=None
    )


def _tolerance(record: LayerRecord) -> float | None:
    """Four float32 ulps at the entry at fault, in weight units."""
    if not record.ulps or record.residual is None:
        return None
    return 4.0 * record.residual / record.ulps
