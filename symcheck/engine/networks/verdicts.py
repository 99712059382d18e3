"""From evidence to facts: the result from the weights, the result from the samples, and which of the two decides.

If weights were matched, they decide, in float32 ulps, because the output alone cannot distinguish one wrong weight
among thousands from rounding. Otherwise the residual of the float64 copy relative to the output's scale decides. A
layer that does not match is reported only if some output violates the claim: a network can be equivariant by
coincidence.

This module fills in the `Facts`, with the layer at fault and the supporting notes; `symcheck.verdict.decide` decides.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from symcheck.engine.networks.blame.proof import Proof
from symcheck.engine.networks.samples.decisions import CLEAR
from symcheck.engine.networks.samples.measuring import Measured
from symcheck.engine.networks.samples.ruler import EXACT, ROUNDED
from symcheck.engine.networks.subject.values import LayerRecord
from symcheck.statements.statement import Statement, state
from symcheck.verdict import MOST_SWAMPED, Decision, Facts, ReasonCode, Verdict, decide

BORNE_OUT = 1e-9
"""Largest residual at which samples confirm an exact proof; float64 rounding is far smaller even in deep networks."""
FAR = 0.1
"""Noise of the deployed network over output scale above which its float64 copy does not represent it."""


@dataclass(frozen=True)
class Assessment:
    """The combined result of proof and samples for f(Lx) = K f(x), with its grounds.

    Attributes:
        facts: the facts that decide.
        tolerance: the limit for relative residuals.
        rounded: whether weights, or outputs, differ by rounding.
        record: the layer at fault, or the worst layer that differs by rounding; None if none is known.
        location: the name of the layer at fault; None if nothing is violated.
        grounds: the grounds of the verdict, as notes.
    """

    facts: Facts
    tolerance: float
    rounded: bool = False
    record: LayerRecord | None = None
    location: str | None = None
    grounds: tuple[Statement, ...] = ()

    @property
    def decision(self) -> Decision:
        """The verdict from the facts, with its reason."""
        return decide(self.facts)

    @property
    def verdict(self) -> Verdict:
        """The verdict alone."""
        return self.decision.verdict

    @property
    def holds(self) -> bool:
        """Whether there is no evidence against the claim; then further doubts can be added."""
        return not self.facts.violations and not self.facts.doubts


def assess(
    proof: Proof | None,
    measured: Measured,
    *,
    strict: bool,
    excused: Collection[str] = (),
    coarse: bool = False,
    artefact: str = "",
    not_judged: Mapping[str, str] | None = None,
) -> Assessment:
    """The conclusion that proof and samples support.

    Args:
        proof: the result from the weights; None if the action is known only as a callable.
        measured: the result from samples.
        strict: whether rounded weights count as failures.
        excused: outputs that may be constant as long as another one is not: deviations that are parameters.
        coarse: whether samples come from the deployed network, because there is no float64 copy.
        artefact: the deployed form, if it is not floating-point torch; then `proved` refers to the structure, and only
            if the deployed form rounds no more than float32.
        not_judged: path and dtype of outputs that are not real numbers; they were not compared, so the others can show
            a violation but cannot exclude one.

    Returns:
        The facts, with the layer at fault and the grounds.
    """
    # Decide the structure first; doubts can only weaken a positive result.
    structure = _assess_structure(proof, measured, strict=strict, excused=excused, coarse=coarse, artefact=artefact)
    if not structure.holds:
        return structure
    if artefact and not coarse and measured.deployed.noise > ROUNDED:
        structure = _as_deployed(structure, measured, artefact)
    if not_judged:
        outputs = {path or "output": dtype.removeprefix("torch.") for path, dtype in not_judged.items()}
        return _doubt(structure, state(ReasonCode.NOT_JUDGED.value, outputs=outputs))
    return structure


def assess_mixed_batches(alone: Assessment, residual: float) -> Assessment:
    """The conclusion for a network whose samples affect each other in a batch.

    Args:
        alone: the result for inputs that were run separately.
        residual: the residual of a batch relative to the output's scale.

    Returns:
        Facts that are never exhaustive, because nothing was proved about batches; in doubt if a batch violates the
        claim.
    """
    if not alone.holds:
        return alone
    # The proof holds for one input at a time; it does not cover batches.
    alone = replace(alone, facts=replace(alone.facts, exhaustive=False))
    if residual <= ROUNDED:
        return replace(alone, grounds=(state("batch_moves"), *alone.grounds))
    return _doubt(alone, state(ReasonCode.MIXED_BATCHES.value, residual=residual))


def assess_changing_calls(alone: Assessment, what: str) -> Assessment:
    """The conclusion for a network whose calls change state that later calls may read.

    Args:
        alone: the result of the calls that were made.
        what: the state that they change.

    Returns:
        In doubt if nothing is violated, because later calls may compute another function than the sampled ones.
    """
    if not alone.holds:
        return alone
    return _doubt(alone, state(ReasonCode.CALLS_CHANGE_STATE.value, what=what))


def assess_by_gradients(usual: Assessment) -> Assessment:
    """The result for a network that computes a different function while gradients are recorded.

    Args:
        usual: the result without gradients, in which nothing is violated.

    Returns:
        In doubt, because samples are calls without gradients.
    """
    return _doubt(usual, state(ReasonCode.ANSWERS_BY_GRADIENTS.value))


def layer_facts(record: LayerRecord, *, shown: bool) -> Facts:
    """The facts from the weights of one layer.

    Args:
        record: the layer's record.
        shown: whether any output violates the claim; otherwise a layer that does not match is only in doubt.

    Returns:
        Facts that make an exact layer proved and a rounded layer passed.
    """
    violations = int(record.level == "failed")
    silent = None if shown else state(ReasonCode.NO_OUTPUT_SHOWS.value, layer=record.name)
    return Facts(
        checked=1, violations=violations, exhaustive=record.level == "exact", quantity="layer", unattributed=silent
    )


def _assess_structure(
    proof: Proof | None, measured: Measured, *, strict: bool, excused: Collection[str], coarse: bool, artefact: str
) -> Assessment:
    """The conclusion for the float64 copy, or for the deployed network if there is none."""
    facts = Facts(measured.pairs, quantity="output", moved=measured.moved, time_up=measured.time_up)
    if measured.nan is not None:
        grounds = (state("output_nan", output=measured.nan_path),)
        return Assessment(_with_violations(facts, measured), ROUNDED, grounds=grounds)
    # A wrong weight that outputs show fails at the exact level, however small its effect.
    if proof is not None and _has_wrong_weight(proof) and measured.relative > EXACT:
        return _failing(facts, proof, measured, EXACT, state("fault_shown"))
    decisions = _decisions_that_stay(measured, coarse=coarse)
    if decisions is not None:
        return _failing(facts, proof, measured, CLEAR, decisions)
    # Without a float64 copy, residuals up to FAR may be due to the deployed arithmetic.
    if coarse and ROUNDED < measured.relative <= FAR:
        why = state(ReasonCode.COARSE_RESIDUAL.value, residual=measured.relative, **_flips(measured))
        return Assessment(replace(_with_violations(facts, measured), unattributed=why), ROUNDED)
    if measured.relative > ROUNDED:
        return _failing(facts, proof, measured, ROUNDED, state("output_off"))
    constant = _constant_outputs(proof, measured, excused)
    if constant or not measured.moved:
        # a constant output must still be a fixed point of K
        if measured.relative > EXACT:
            return _failing(facts, proof, measured, EXACT, state("constant_off"))
        doubts = (state(ReasonCode.CONSTANT_OUTPUT.value, outputs=constant),) if constant else ()
        return Assessment(replace(facts, doubts=doubts), EXACT)
    if measured.deployed.unexplained > FAR:
        noise = state(ReasonCode.DEPLOYED_NOISE.value, noise=measured.deployed.noise, artefact=artefact)
        return Assessment(replace(facts, doubts=(noise,)), ROUNDED)
    doubt = _doubt_of_rounding(proof, measured, artefact)
    if doubt is not None:
        return Assessment(replace(facts, doubts=(doubt,)), ROUNDED)
    # A proof counts only if the samples confirm it.
    if proof is not None and proof.level == "exact" and measured.relative <= BORNE_OUT:
        ground = state("layers_exact")
        if proof.compared is not None:
            ground = state("graphs_equal", terms=proof.compared.terms, kind=proof.compared.kind)
        # The certificate covers the float64 copy; code that rounds by itself is tested.
        facts = replace(facts, exhaustive=proof.certificate is not None and not measured.deployed.coarser)
        return Assessment(facts, EXACT, grounds=(ground,))
    if proof is not None and proof.level == "rounded":
        return _assess_rounded(facts, proof, measured, strict, state("weights_rounded", strict=strict))
    if measured.relative > EXACT:
        return _assess_rounded(facts, proof, measured, strict, state("outputs_rounded", strict=strict))
    return Assessment(facts, EXACT, grounds=(state("no_violation", coarse=coarse),))


def _decisions_that_stay(measured: Measured, *, coarse: bool) -> Statement | None:
    """The finding that too many clear decisions violate the claim, in float64 or as deployed; None if not."""
    for exact, decisions in ((not coarse, measured.decisions), (False, measured.deployed.clear)):
        if decisions.too_many:
            flips = decisions.flipped - decisions.rounded
            return state("decisions_stay", exact=exact, flips=flips, decisions=decisions.compared)
    return None


def _doubt_of_rounding(proof: Proof | None, measured: Measured, artefact: str) -> Statement | None:
    """Why the deployed network, or samples alone, are not trusted; None if there is no reason."""
    deployed = measured.deployed
    if deployed.clear.in_doubt:
        return state(ReasonCode.DECISIONS_FLIP.value, artefact=artefact, noise=deployed.noise, **_flips(measured))
    if deployed.beyond > 1.0:
        return state(ReasonCode.DEPLOYED_OFF.value, residual=deployed.residual, times=deployed.beyond)
    proved = proof is not None and proof.level == "exact"
    if not proved and measured.swamped > MOST_SWAMPED * measured.pairs:
        return state(ReasonCode.ROUNDING_AMPLIFIED.value, share=measured.swamped / measured.pairs)
    if not proved and measured.left_out > measured.pairs:
        return state(ReasonCode.OUTSIDE_SPACE.value, left=measured.left_out, kept=measured.pairs)
    return None


def _as_deployed(structure: Assessment, measured: Measured, artefact: str) -> Assessment:
    """The remaining conclusion for a structure that holds, if the deployed form is not torch and rounds visibly."""
    sizes = {"artefact": artefact, "noise": measured.deployed.noise, **_flips(measured)}
    # The weights only give evidence on the float64 copy.
    facts = replace(structure.facts, exhaustive=False)
    return replace(structure, facts=facts, grounds=(state("deployed_differs", **sizes), *structure.grounds))


def _flips(measured: Measured) -> dict[str, int]:
    return {"flips": measured.deployed.flips, "decisions": measured.deployed.decisions}


def _doubt(assessment: Assessment, doubt: Statement) -> Assessment:
    facts = replace(assessment.facts, doubts=(*assessment.facts.doubts, doubt))
    return replace(assessment, facts=facts, rounded=False, record=None)


def _with_violations(facts: Facts, measured: Measured) -> Facts:
    # A fault of the weights may lie below the level at which pairs are counted: count at least one violation.
    return replace(facts, violations=max(1, measured.violations))


def _has_wrong_weight(proof: Proof) -> bool:
    """Whether matched weights include a wrong one; layers that could not be matched are tested by their outputs."""
    failure = proof.first_failure
    return proof.level == "failed" and failure is not None and is_wrong_weight(failure)


def is_wrong_weight(record: LayerRecord) -> bool:
    """Whether a failed layer was matched, so that a difference is a wrong weight and not a coincidence."""
    return record.certain and record.residual is not None


def _constant_outputs(proof: Proof | None, measured: Measured, excused: Collection[str]) -> list[str]:
    constant = measured.constant_outputs
    # In samples, an output that vanishes up to rounding is a constant; weights can show that its terms transform as
    # claimed.
    if proof is None or proof.level != "exact":
        constant = [*constant, *sorted(measured.vanishing - set(constant))]
    # Deviations (`excused`) may be constant while other outputs vary.
    if len(constant) < len(measured.spreads):
        constant = [path for path in constant if path not in excused]
    return constant


def _assess_rounded(
    facts: Facts, proof: Proof | None, measured: Measured, strict: bool, ground: Statement
) -> Assessment:
    record = _least_exact(proof)
    if not strict:
        return Assessment(facts, ROUNDED, rounded=True, record=record, grounds=(ground,))
    location = record.name if record is not None else _last_followed(proof, measured)
    return Assessment(_with_violations(facts, measured), EXACT, True, record, location, (ground,))


def _least_exact(proof: Proof | None) -> LayerRecord | None:
    if proof is None:
        return None
    off = [record for record in proof.records if record.level == "rounded"]
    return max(off, key=lambda record: record.ulps or 0.0, default=None)


def _failing(facts: Facts, proof: Proof | None, measured: Measured, tolerance: float, ground: Statement) -> Assessment:
    record = None if proof is None else proof.first_failure or _least_exact(proof)
    location = record.name if record is not None else _last_followed(proof, measured)
    return Assessment(_with_violations(facts, measured), tolerance, False, record, location, (ground,))


def _last_followed(proof: Proof | None, measured: Measured) -> str:
    """The place where following ended, or the failed output."""
    if proof is not None and proof.reason is not None:
        return proof.reason.location
    return measured.worst.path if measured.worst is not None else "output"
