"""From evidence to facts: what the weights prove, what the samples show, and which of the two decides.

Where weights were matched they decide, in float32 ulps: the output alone cannot tell one wrong weight among thousands
from rounding. Where they were not, the residual of the float64 copy over the output's scale decides. A layer that does
not match is reported only if some output violates the claim: a network can be equivariant by coincidence.

This module fills in the `Facts`, with the layer at fault and the grounds; `symcheck.verdict.decide` judges them.
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
"""Residual up to which samples bear out an exact proof: float64 rounding, even of deep networks, stays far below."""
FAR = 0.1
"""Noise of the deployed network over output scale beyond which its float64 copy says nothing about it."""


@dataclass(frozen=True)
class Assessment:
    """What proof and samples say of f(Lx) = K f(x), and on what that rests.

    Attributes:
        facts: what was compared and seen; they decide.
        tolerance: what relative residuals were compared with.
        rounded: whether weights, or outputs, are off by rounding.
        record: the layer at fault, or of those that are off by rounding the worst; None where none is known.
        location: the name of the layer at fault; None where nothing is violated.
        grounds: on what the verdict rests, as notes.
    """

    facts: Facts
    tolerance: float
    rounded: bool = False
    record: LayerRecord | None = None
    location: str | None = None
    grounds: tuple[Statement, ...] = ()

    @property
    def decision(self) -> Decision:
        """The verdict that the facts earn, with its reason."""
        return decide(self.facts)

    @property
    def verdict(self) -> Verdict:
        """The verdict alone."""
        return self.decision.verdict

    @property
    def holds(self) -> bool:
        """Whether nothing speaks against the claim, so that further doubts can be added."""
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
    """What proof and samples allow to say, never more than they show.

    Args:
        proof: what the weights said; None where the action is known only as a callable.
        measured: what the samples showed.
        strict: whether rounded weights fail.
        excused: outputs that may be constant as long as some other is not: deviations that are parameters.
        coarse: whether samples come from the network as deployed, for want of a float64 copy.
        artefact: what the network is deployed as, where that is no floating-point torch: then `proved` is said of the
            structure only if what is deployed rounds no more than float32 does.
        not_judged: path and dtype of outputs that are not real numbers: how they transform was not asked, so that the
            rest can show a violation and cannot rule one out.

    Returns:
        The facts, with the layer at fault and the grounds.
    """
    # The structure first; doubts can only weaken what holds.
    structure = _assess_structure(proof, measured, strict=strict, excused=excused, coarse=coarse, artefact=artefact)
    if not structure.holds:
        return structure
    if artefact and not coarse and measured.deployed.noise > ROUNDED:
        structure = _as_deployed(structure, measured, artefact)
    if not_judged:
        outputs = {path or "output": dtype.removeprefix("torch.") for path, dtype in not_judged.items()}
        # before other doubts: outputs that nobody looked at outweigh what is said of the others
        return _doubt(structure, state(ReasonCode.NOT_JUDGED.value, outputs=outputs), first=True)
    return structure


def assess_mixed_batches(alone: Assessment, residual: float) -> Assessment:
    """What can be said of a network whose samples influence each other in a batch.

    Args:
        alone: what inputs showed that were run one by one.
        residual: how far a batch is from moving as claimed, over the output's scale.

    Returns:
        Never exhaustive, as nothing was proved of batches; in doubt where a batch does not move as claimed.
    """
    if not alone.holds:
        return alone
    # One input at a time the proof holds, of batches it says nothing.
    alone = replace(alone, facts=replace(alone.facts, exhaustive=False))
    if residual <= ROUNDED:
        return replace(alone, grounds=(state("batch_moves"), *alone.grounds))
    return _doubt(alone, state(ReasonCode.MIXED_BATCHES.value, residual=residual))


def assess_changing_calls(alone: Assessment, what: str) -> Assessment:
    """What can be said of a network of which a call changes something that a later one may read.

    Args:
        alone: what the calls that were made showed.
        what: what they change.

    Returns:
        In doubt where nothing is violated: samples are calls of a network that is not yet the one of later calls.
    """
    if not alone.holds:
        return alone
    return _doubt(alone, state(ReasonCode.CALLS_CHANGE_STATE.value, what=what))


def assess_by_gradients(usual: Assessment) -> Assessment:
    """What can be said of a network that answers otherwise while gradients are recorded.

    Args:
        usual: what its answers without gradients showed; nothing is violated.

    Returns:
        In doubt: samples are calls without gradients.
    """
    return _doubt(usual, state(ReasonCode.ANSWERS_BY_GRADIENTS.value))


def layer_facts(record: LayerRecord, *, shown: bool) -> Facts:
    """What the weights of one layer say of it.

    Args:
        record: the layer's record.
        shown: whether some output violates the claim; else a layer that does not match is in doubt only.

    Returns:
        Facts under which an exact layer is proved and a rounded one passed.
    """
    violations = int(record.level == "failed")
    silent = None if shown else state(ReasonCode.NO_OUTPUT_SHOWS.value, layer=record.name)
    return Facts(
        checked=1, violations=violations, exhaustive=record.level == "exact", quantity="layer", unattributed=silent
    )


def _assess_structure(
    proof: Proof | None, measured: Measured, *, strict: bool, excused: Collection[str], coarse: bool, artefact: str
) -> Assessment:
    """What is said of the float64 copy, or of the network as deployed where there is none."""
    facts = Facts(measured.pairs, quantity="output", moved=measured.moved, time_up=measured.time_up)
    if measured.nan is not None:
        grounds = (state("output_nan", output=measured.nan_path),)
        return Assessment(_with_violations(facts, measured), ROUNDED, grounds=grounds)
    # A wrong weight that outputs show fails at the exact level, however small its effect.
    if proof is not None and _has_wrong_weight(proof) and measured.relative > EXACT:
        return _failing(facts, proof, measured, EXACT, state("fault_shown"))
    decisions = _decisions_that_stay(measured)
    if decisions is not None:
        return _failing(facts, proof, measured, CLEAR, decisions)
    # Without a float64 copy, residuals up to FAR may be the arithmetic's own.
    if coarse and ROUNDED < measured.relative <= FAR:
        why = state(ReasonCode.COARSE_RESIDUAL.value, residual=measured.relative, **_flips(measured))
        return Assessment(replace(_with_violations(facts, measured), unattributed=why), ROUNDED)
    if measured.relative > ROUNDED:
        return _failing(facts, proof, measured, ROUNDED, state("output_off"))
    constant = _constant_outputs(proof, measured, excused)
    if constant or not measured.moved:
        # the claim still says something of a constant output: that it is a fixed point of K
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
    # A proof counts where the samples bear it out.
    if proof is not None and proof.level == "exact" and measured.relative <= BORNE_OUT:
        ground = state("layers_exact")
        if proof.compared is not None:
            ground = state("graphs_equal", terms=proof.compared.terms, kind=proof.compared.kind)
        # The certificate vouches for the float64 copy; code that rounds by itself is tested.
        facts = replace(facts, exhaustive=proof.certificate is not None and not measured.deployed.coarser)
        return Assessment(facts, EXACT, grounds=(ground,))
    if proof is not None and proof.level == "rounded":
        return _assess_rounded(facts, proof, measured, strict, state("weights_rounded", strict=strict))
    if measured.relative > EXACT:
        return _assess_rounded(facts, proof, measured, strict, state("outputs_rounded", strict=strict))
    return Assessment(facts, EXACT, grounds=(state("no_violation"),))


def _decisions_that_stay(measured: Measured) -> Statement | None:
    """That too many clear decisions do not transform with it, in float64 or as deployed; None where they do."""
    for exact, decisions in ((True, measured.decisions), (False, measured.deployed.clear)):
        if decisions.too_many:
            flips = decisions.flipped - decisions.rounded
            return state("decisions_stay", exact=exact, flips=flips, decisions=decisions.compared)
    return None


def _doubt_of_rounding(proof: Proof | None, measured: Measured, artefact: str) -> Statement | None:
    """What keeps the deployed network, or samples alone, from being believed; None where nothing does."""
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
    """What is left of a structure that holds, where other arithmetic than torch's runs it and rounds visibly."""
    sizes = {"artefact": artefact, "noise": measured.deployed.noise, **_flips(measured)}
    # The weights vouch for the float64 copy only.
    facts = replace(structure.facts, exhaustive=False)
    return replace(structure, facts=facts, grounds=(state("deployed_differs", **sizes), *structure.grounds))


def _flips(measured: Measured) -> dict[str, int]:
    return {"flips": measured.deployed.flips, "decisions": measured.deployed.decisions}


def _doubt(assessment: Assessment, doubt: Statement, *, first: bool = False) -> Assessment:
    doubts = assessment.facts.doubts
    facts = replace(assessment.facts, doubts=(doubt, *doubts) if first else (*doubts, doubt))
    return replace(assessment, facts=facts, rounded=False, record=None)


def _with_violations(facts: Facts, measured: Measured) -> Facts:
    # A fault of the weights shows below the level at which pairs are counted: it is one violation at least.
    return replace(facts, violations=max(1, measured.violations))


def _has_wrong_weight(proof: Proof) -> bool:
    """Whether weights were matched and one of them is wrong; layers that could not be matched are judged by outputs."""
    failure = proof.first_failure
    return proof.level == "failed" and failure is not None and is_wrong_weight(failure)


def is_wrong_weight(record: LayerRecord) -> bool:
    """Whether a failed layer was matched, so that a difference is a wrong weight and no symmetric accident."""
    return record.certain and record.residual is not None


def _constant_outputs(proof: Proof | None, measured: Measured, excused: Collection[str]) -> list[str]:
    constant = measured.constant_outputs
    # What vanishes up to rounding is a constant to samples; weights say of its terms that they move as claimed.
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
    """Where following ended, else the output that failed."""
    if proof is not None and proof.reason is not None:
        return proof.reason.location
    return measured.worst.path if measured.worst is not None else "output"
