"""From evidence to verdict: what the weights prove, what the samples show, and which of the two decides.

Where weights were matched they decide, in float32 ulps: the output alone cannot tell one wrong weight among thousands
from rounding. Where they were not, the residual of the float64 copy over the output's scale decides. A layer that looks
wrong accuses nothing unless some output shows it: symmetric accidents are symmetric.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from symcheck.engine.networks.measuring import Measured
from symcheck.engine.networks.proof import Proof
from symcheck.engine.networks.values import LayerRecord
from symcheck.engine.verdict import Verdict

EXACT = 1e-12
"""Residual of the float64 copy over output scale up to which an output is exact: the published level."""
ROUNDED = 1e-5
"""The same, up to which its weights were rounded: the published level."""
BORNE_OUT = 1e-9
"""Residual up to which samples bear out an exact proof: float64 rounding, even of deep networks, stays far below."""
FAR = 0.1
"""Noise of the deployed network over output scale beyond which its float64 copy says nothing about it."""
FLIPPED = 0.01
"""Share of decisions that may flip in a network deployed in other arithmetic before its structure stops vouching for
it: 8-bit networks of the size of control policies flip a few in a thousand, all of them nearly tied."""


@dataclass(frozen=True)
class Decision:
    """The verdict on f(Lx) = K f(x), and on what it rests.

    Attributes:
        verdict: of the network as a whole.
        tolerance: what relative residuals were compared with.
        rounded: whether weights, or outputs, are off by rounding.
        record: the layer at fault; None where none is known.
        location: its name; None where the verdict is not failed.
        why: one sentence.
    """

    verdict: Verdict
    tolerance: float
    rounded: bool
    record: LayerRecord | None
    location: str | None
    why: str


def decide(
    proof: Proof | None,
    measured: Measured,
    *,
    strict: bool,
    excused: Collection[str] = (),
    coarse: bool = False,
    artefact: str = "",
    not_judged: Mapping[str, str] | None = None,
) -> Decision:
    """The verdict that proof and samples allow, never stronger than they are.

    Args:
        proof: what the weights said; None where the action is known only as a callable.
        measured: what the samples showed.
        strict: whether rounded weights fail.
        excused: outputs that may be constant as long as some other is not: deviations that are parameters.
        coarse: whether samples come from the network as deployed, for want of a float64 copy.
        artefact: what the network is deployed as, where that is no floating-point torch: then `proved` is said of the
            structure only if what is deployed rounds no more than float32 does.
        not_judged: path and dtype of outputs that are no real numbers: how they transform was not asked, so that the
            rest can show a violation and cannot rule one out.

    Returns:
        The decision.
    """
    judged = _of_judged_outputs(proof, measured, strict=strict, excused=excused, coarse=coarse, artefact=artefact)
    if not not_judged or judged.verdict not in ("proved", "passed"):
        return judged
    outputs = ", ".join(f"{path or 'output'} ({dtype.removeprefix('torch.')})" for path, dtype in not_judged.items())
    why = f"not judged, since only real numbers have a residual: {outputs}; leave them out of what forward returns"
    return Decision("undecided", judged.tolerance, False, None, None, f"{why}. Of the other outputs: {judged.why}")


def of_mixed_batches(alone: Decision, residual: float) -> Decision:
    """What can be said of a network whose samples influence each other in a batch.

    Args:
        alone: the decision on inputs that were run one by one.
        residual: how far a batch is from moving as claimed, over the output's scale.

    Returns:
        At most `passed`, as nothing was proved of batches; `undecided` where a batch does not move as claimed.
    """
    if alone.verdict not in ("proved", "passed"):
        return alone
    if residual <= ROUNDED:
        why = f"samples of a batch influence each other, and a batch of three moves as claimed; one by one, {alone.why}"
        return replace(alone, verdict="passed", why=why)
    why = (
        f"one by one, {alone.why}; but samples of a batch influence each other, and a batch of three is off by "
        f"{residual:.1e} of the output's scale: take out of forward what mixes samples (a mean over the batch axis, a "
        "reshape across it, the batch's size)"
    )
    return Decision("undecided", ROUNDED, False, None, None, why)


def _of_judged_outputs(
    proof: Proof | None, measured: Measured, *, strict: bool, excused: Collection[str], coarse: bool, artefact: str
) -> Decision:
    """The verdict on the outputs that are real numbers, as deployed."""
    structure = _of_structure(proof, measured, strict=strict, excused=excused, coarse=coarse, artefact=artefact)
    if not artefact or coarse or structure.verdict not in ("proved", "passed") or measured.deployed.noise <= ROUNDED:
        return structure
    deployed = measured.deployed
    off = f"as deployed ({artefact}) outputs differ from it by {deployed.noise:.1e} of their scale"
    if deployed.decisions:
        off += f", and {deployed.flips} of {deployed.decisions} decisions flip"
    if deployed.flips > FLIPPED * deployed.decisions:
        why = f"the structure holds, but {off}; quantise it more finely, or symmetrically"
        return Decision("undecided", ROUNDED, False, None, None, why)
    return replace(structure, verdict="passed", why=f"the structure holds ({structure.why}); {off}")


def _of_structure(
    proof: Proof | None, measured: Measured, *, strict: bool, excused: Collection[str], coarse: bool, artefact: str
) -> Decision:
    """The verdict on the float64 copy, or on the network as deployed where there is none."""
    if measured.nan is not None:
        return Decision("failed", ROUNDED, False, None, None, f"{measured.nan_path} is NaN on an input")
    if proof is not None and _wrong_weight(proof) and measured.relative > EXACT:
        return _failed(proof, measured, EXACT, "a layer does not carry the action, and the output shows it")
    if coarse and ROUNDED < measured.relative <= FAR:
        why = "only the deployed precision can be run, whose rounding may be as large as this residual"
        if measured.deployed.decisions:
            why += f" ({measured.deployed.flips} of {measured.deployed.decisions} decisions flip)"
        return Decision("undecided", ROUNDED, False, None, None, f"{why}; verify the network before it was quantised")
    if measured.relative > ROUNDED:
        return _failed(proof, measured, ROUNDED, "the output does not move as claimed")
    vacuous = _vacuous(measured, excused)
    if vacuous:
        if measured.relative > EXACT:
            return _failed(proof, measured, EXACT, "a constant output is not what the claim says")
        return Decision("undecided", EXACT, False, None, None, vacuous)
    if measured.deployed.noise > FAR:
        why = f"the deployed network differs from its float64 copy by {measured.deployed.noise:.1e} of the output scale"
        remedy = (
            "give observations of the range that it was calibrated for (--env)"
            if artefact
            else "judge it without the cast that does this"
        )
        return Decision("undecided", ROUNDED, False, None, None, f"{why}; {remedy}")
    if proof is not None and proof.level == "exact" and measured.relative <= BORNE_OUT:
        return Decision("proved", EXACT, False, None, None, "every layer carries the action exactly, for every input")
    if proof is not None and proof.level == "rounded":
        return _rounded(proof, measured, strict, "weights rounded: layers carry the action up to float32 rounding")
    if measured.relative > EXACT:
        return _rounded(proof, measured, strict, "weights rounded: the outputs are off by rounding")
    return Decision("passed", EXACT, False, None, None, "no violation beyond float64 rounding")


def _wrong_weight(proof: Proof) -> bool:
    """Whether weights were matched and one of them is wrong; layers that could not be matched are judged by outputs."""
    failure = proof.first_failure
    return proof.level == "failed" and failure is not None and is_wrong_weight(failure)


def is_wrong_weight(record: LayerRecord) -> bool:
    """Whether a failed layer was matched, so that a difference is a wrong weight and no symmetric accident."""
    return record.certain and record.residual is not None


def _vacuous(measured: Measured, excused: Collection[str]) -> str:
    constant = measured.constant_outputs
    if len(constant) < len(measured.spreads):
        constant = [path for path in constant if path not in excused]
    if constant:
        return f"{', '.join(constant)} has no spread: it is the same for every input, so the claim holds of nothing"
    if not measured.moved:
        return "every input tested is a fixed point of every generator: the claim says nothing about them"
    return ""


def _rounded(proof: Proof | None, measured: Measured, strict: bool, why: str) -> Decision:
    record = _least_exact(proof)
    if strict:
        location = record.name if record is not None else _last_followed(proof, measured)
        return Decision("failed", EXACT, True, record, location, f"{why} (--strict)")
    return Decision("passed", ROUNDED, True, record, None, why)


def _least_exact(proof: Proof | None) -> LayerRecord | None:
    if proof is None:
        return None
    off = [record for record in proof.records if record.level == "rounded"]
    return max(off, key=lambda record: record.ulps or 0.0, default=None)


def _failed(proof: Proof | None, measured: Measured, tolerance: float, why: str) -> Decision:
    record = None if proof is None else proof.first_failure or _least_exact(proof)
    location = record.name if record is not None else _last_followed(proof, measured)
    return Decision("failed", tolerance, False, record, location, why)


def _last_followed(proof: Proof | None, measured: Measured) -> str:
    """Where following ended, else the output that failed."""
    if proof is not None and proof.reason is not None:
        module = proof.reason.where.split(" (")[0]
        return module if module not in ("", "forward") else proof.reason.where
    return measured.worst.path if measured.worst is not None else "output"
