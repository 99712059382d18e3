"""The claim on a network's outputs: f(L_g x) = K_g f(x) for every input x.

It is proved when every layer is certified, tested otherwise; either way it is tried on samples at two precisions, and a
failure comes with the smallest input found.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from symcheck.engine.registry import register
from symcheck.engine.results import PropertyResult
from symcheck.engine.statistics import largest_fraction

if TYPE_CHECKING:
    from symcheck.engine.networks.context import NetContext

UNIT = "max norm over output entries, relative to the output's scale"


@register("network_equivariance", kind="net", order=40, claim="f(L_g x) = K_g f(x)")
def check_network_equivariance(context: NetContext) -> PropertyResult:
    """The verdict on the outputs, with the residual of the float64 copy and the deployed network's own noise."""
    if context.stochastic:
        return _stochastic(context)
    if context.remembers:
        return _with_memory(context)
    decision, measured = context.decision, context.measured
    proved = decision.verdict == "proved"
    return PropertyResult(
        name="network_equivariance",
        verdict=decision.verdict,
        method="certificate" if proved else "sampled",
        checked=measured.pairs,
        violations=_violations(context),
        max_residual=measured.relative if measured.nan is None else float("nan"),
        tolerance=decision.tolerance,
        unit=UNIT,
        bound=_bound(context),
        counterexample=context.counterexample,
        causes=context.causes,
        notes=(_detail(context),),
        location=decision.location,
        per_coordinate=_precisions(context),
    )


def _precisions(context: NetContext) -> tuple[dict[str, Any], ...]:
    """The residual at both precisions, the deployed network's own noise, and how many decisions flip."""
    measured, deployed = context.measured, context.measured.deployed
    if measured.nan is not None:
        return ()
    tolerance = context.decision.tolerance
    rows: list[dict[str, Any]] = [
        {"name": "float64 copy", "max_residual": measured.relative, "tolerance": tolerance, "kind": "precision"},
        {
            "name": f"{context.subject.deployed_as} as deployed",
            "max_residual": deployed.residual,
            "tolerance": None,
            "noise": deployed.noise,
            "kind": "precision",
        },
    ]
    if deployed.decisions:
        flips = {"checked": deployed.decisions, "violations": deployed.flips}
        rows.append({"name": "argmax decisions", "kind": "decisions", **flips})
    return tuple(rows)


def _violations(context: NetContext) -> int:
    if context.decision.verdict != "failed":
        return 0
    return max(1, context.measured.violations)


def _stochastic(context: NetContext) -> PropertyResult:
    seeded = context.options.noise_seed is not None
    remedy = (
        "its noise does not come from torch's generator: freeze it in the network"
        if seeded
        else "give --noise-seed N, which seeds torch before every call so that both sides draw the same noise"
    )
    return PropertyResult(
        name="network_equivariance",
        verdict="undecided",
        method="sampled",
        checked=1,
        unit=UNIT,
        causes=("the network is stochastic: dropout, noise layers or sampling inside forward",),
        notes=(f"stochastic: the network answers twice differently on the same input; {remedy}.",),
    )


def _with_memory(context: NetContext) -> PropertyResult:
    training = "judge it in eval mode, the default, or " if context.subject.training else ""
    return PropertyResult(
        name="network_equivariance",
        verdict="undecided",
        method="sampled",
        checked=1,
        unit=UNIT,
        causes=("the network keeps something between calls: a recurrent state, statistics, or its first input",),
        notes=(
            "memory: the answer to an input depends on the calls before it, so that two answers cannot be compared; "
            f"{training}let forward take what it keeps as an input (a dictionary or tuple of tensors) and return it.",
        ),
    )


def _bound(context: NetContext) -> dict[str, Any] | None:
    decision, proof = context.decision, context.proof
    if decision.verdict != "passed":
        return None
    deployed = context.measured.deployed
    if context.is_coarser_deployed and deployed.decisions:
        return {
            "kind": "violation_fraction",
            "value": largest_fraction(deployed.flips, deployed.decisions, context.options.alpha),
            "confidence": 1.0 - context.options.alpha,
            "region": f"decisions as deployed ({context.subject.deployed_as}), {context.measured.families[0]}",
        }
    if proof is not None and proof.level == "rounded" and proof.bound is not None:
        return {
            "kind": "output_residual",
            "value": proof.bound,
            "confidence": 1.0,
            "region": f"every input with entries in [-{proof.box:g}, {proof.box:g}]",
        }
    return {
        "kind": "violation_fraction",
        "value": 1.0 - context.options.alpha ** (1.0 / max(1, context.measured.pairs)),
        "confidence": 1.0 - context.options.alpha,
        "region": context.region,
    }


def _detail(context: NetContext) -> str:
    decision, measured = context.decision, context.measured
    sentences = [decision.why[0].upper() + decision.why[1:] + "."]
    if context.silent_fault:
        sentences.append(f"{context.silent_fault[0].upper()}{context.silent_fault[1:]}.")
    if measured.nan is None:
        sentences.append(
            f"Largest residual {measured.relative:.1e} of the output's scale over {measured.pairs} pairs, on "
            f"{'the network as deployed' if context.subject.coarse else 'a float64 copy'} ({context.region})."
        )
        deployed = measured.deployed
        flips = f"; {deployed.flips} of {deployed.decisions} argmax decisions flip" if deployed.decisions else ""
        sentences.append(
            f"As deployed ({context.subject.deployed_as}): residual {deployed.residual:.1e}, own rounding noise "
            f"{deployed.noise:.1e}{flips}."
        )
    if context.subject.runtime_problem:
        sentences.append(f"{context.subject.runtime_problem}.")
    if context.options.outputs is None:
        roles = ", ".join(f"{claim.path} as {claim.role}" for claim in context.outputs)
        sentences.append(f"By their sizes, outputs move so: {roles}.")
    if context.subject.one_by_one:
        why = "only one fits" if context.batch_residual is None else "samples of a batch influence each other"
        sentences.append(f"Inputs were run one by one: {why}.")
    return " ".join(sentences)
