"""The claim on a network's outputs: f(L_g x) = K_g f(x) for every input x.

It is proved by a certificate, or otherwise tested. In both cases it is evaluated on samples at two precisions, and a
failure comes with the smallest counterexample found.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from symcheck.engine.equations import NETWORK
from symcheck.engine.registry import register
from symcheck.engine.results import PropertyResult
from symcheck.engine.statistics import largest_fraction
from symcheck.statements.statement import Statement, state
from symcheck.verdict import Facts, ReasonCode, decide

if TYPE_CHECKING:
    from symcheck.engine.networks.context import NetContext


@register(NETWORK.name, kind="net", order=40, claim=NETWORK.claim, meaning=NETWORK.meaning)
def check_network_equivariance(context: NetContext) -> PropertyResult:
    """Check the outputs, with the residual of the float64 copy and the rounding of the deployed network."""
    # A network that gives different outputs for the same input, or depends on earlier calls, defines no function f.
    if context.stochastic:
        seeded = context.options.noise_seed is not None
        return _not_comparable(state(ReasonCode.STOCHASTIC.value, seeded=seeded), state("SYM150"))
    if context.remembers:
        return _not_comparable(state(ReasonCode.MEMORY.value, training=context.subject.training), state("SYM153"))
    assessment, measured = context.assessment, context.measured
    verdict, reason = decide(assessment.facts)
    return PropertyResult(
        name=NETWORK.name,
        verdict=verdict,
        method="certificate" if verdict == "proved" else "sampled",
        checked=measured.pairs,
        # An undecided result keeps its doubts in the facts; only a `failed` verdict counts violations.
        violations=assessment.facts.violations if verdict == "failed" else 0,
        max_residual=measured.relative if measured.nan is None else float("nan"),
        tolerance=assessment.tolerance,
        unit=NETWORK.unit,
        bound=_pass_bound(context),
        counterexample=context.counterexample,
        causes=context.causes,
        notes=_notes(context),
        location=assessment.location if verdict == "failed" else None,
        per_coordinate=_precisions(context),
        reason=reason,
        facts=assessment.facts,
    )


def _not_comparable(doubt: Statement, cause: Statement) -> PropertyResult:
    """The result if the same input gives two different outputs."""
    facts = Facts(checked=1, quantity=NETWORK.noun, doubts=(doubt,))
    verdict, reason = decide(facts)
    return PropertyResult(
        NETWORK.name, verdict, "sampled", checked=1, unit=NETWORK.unit, causes=(cause,), reason=reason, facts=facts
    )


def _precisions(context: NetContext) -> tuple[dict[str, Any], ...]:
    """The residual at both precisions, the deployed network's own noise, and the number of decisions that flip."""
    measured, deployed, coarse = context.measured, context.measured.deployed, context.subject.coarse
    # NaN has no size to compare at either precision.
    if measured.nan is not None:
        return ()
    tolerance = context.assessment.tolerance
    rows: list[dict[str, Any]] = [
        {
            "name": "all inputs, as deployed" if coarse else "float64 copy",
            "max_residual": measured.relative,
            "tolerance": tolerance,
            "kind": "precision",
        },
        {
            "name": f"{context.subject.deployed_as} as deployed",
            "max_residual": deployed.residual,
            "tolerance": None,
            "noise": None if coarse else deployed.noise,
            "kind": "precision",
        },
    ]
    if deployed.decisions:
        flips = {"checked": deployed.decisions, "violations": deployed.flips}
        rows.append({"name": "argmax decisions", "kind": "decisions", **flips})
    return tuple(rows)


def _pass_bound(context: NetContext) -> dict[str, Any] | None:
    """The violations that a pass excludes: for all inputs if proved, otherwise for the sampled distribution."""
    proof, deployed, alpha = context.proof, context.measured.deployed, context.options.alpha
    if context.assessment.verdict != "passed":
        return None
    # If the deployed arithmetic is coarser than float32, the bound is on decisions, not on residuals.
    if context.is_coarser_deployed and deployed.decisions:
        family = context.measured.families[0]
        return {
            "kind": "violation_fraction",
            "value": largest_fraction(deployed.flips, deployed.decisions, alpha),
            "confidence": 1.0 - alpha,
            "region": state("region_decisions", deployed=context.subject.deployed_as, family=family),
        }
    if proof is not None and proof.level == "rounded" and proof.bound is not None:
        region = state("region_box", box=proof.box)
        return {"kind": "output_residual", "value": proof.bound, "confidence": 1.0, "region": region}
    # With zero violations in n independent pairs, a fraction p is excluded at level alpha if (1 - p)^n = alpha.
    return {
        "kind": "violation_fraction",
        "value": 1.0 - alpha ** (1.0 / max(1, context.measured.pairs)),
        "confidence": 1.0 - alpha,
        "region": context.region,
    }


def _notes(context: NetContext) -> tuple[Statement, ...]:
    """The basis of the verdict, and how the network was run."""
    subject, measured, deployed = context.subject, context.measured, context.measured.deployed
    notes = list(context.assessment.grounds)
    if context.silent_fault is not None:
        notes.append(context.silent_fault)
    compared = None if context.proof is None else context.proof.compared
    if compared is not None and compared.ties:
        notes.append(state("off_ties", ties=list(compared.ties)))
    missing = None if context.proof is None else context.proof.missing
    if missing is not None:
        notes.append(state("no_certificate", reason=missing))
    if measured.nan is None:
        sizes = {"residual": measured.relative, "pairs": measured.pairs, "coarse": subject.coarse}
        notes.append(state("largest_residual", **sizes, region=context.region))
        flips = {"flips": deployed.flips, "decisions": deployed.decisions}
        noise = {"residual": deployed.residual, "noise": None if subject.coarse else deployed.noise, **flips}
        notes.append(state("deployed_precision", deployed=subject.deployed_as, **noise))
    if measured.left_out:
        notes.append(state("images_outside_space", left=measured.left_out, kept=measured.pairs))
    if measured.time_up:
        notes.append(state("stopped_early", pairs=measured.pairs))
    if subject.runtime_problem is not None:
        notes.append(subject.runtime_problem)
    if context.options.outputs is None:
        notes.append(state("roles_by_size", roles={claim.path: claim.role for claim in context.outputs}))
    if context.adapter_note is not None:
        notes.append(context.adapter_note)
    if subject.one_by_one:
        notes.append(state("one_by_one", mixed=context.batch_residual is not None))
    return tuple(notes)
