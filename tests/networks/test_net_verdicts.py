"""The verdict that proof and samples allow together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from symcheck.engine.networks.blame.proof import Proof
from symcheck.engine.networks.samples.measuring import Deployed, Measured, Spread, Worst
from symcheck.engine.networks.subject.values import LayerRecord, Opaque
from symcheck.engine.networks.verdicts import assess, assess_mixed_batches
from symcheck.statements.statement import state


def measured(relative: float, **changes: Any) -> Measured:
    worst = Worst(relative, relative, 1.0, 0, "output", np.zeros(2), "normal at scale 1")
    found = Measured(pairs=100, relative=relative, worst=worst, moved=True)
    found.spreads["output"] = Spread(np.zeros(2), np.ones(2))
    for name, value in changes.items():
        setattr(found, name, value)
    return found


def proof(level: str | None) -> Proof:
    record = LayerRecord("hidden", "Linear", level if level in ("rounded", "failed") else "exact", 1e-8, 3.0, 1e-7)  # type: ignore[arg-type]
    reason = None if level else Opaque(state("SYM154", operation="cumsum"), "tail", "net.py:3")
    certificate: dict[str, Any] | None = {} if level == "exact" else None
    return Proof(level, [record], reason, certificate=certificate)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("level", "relative", "strict", "verdict"),
    [
        ("exact", 1e-15, False, "proved"),
        ("exact", 1e-15, True, "proved"),
        ("exact", 1e-7, False, "passed"),
        ("exact", 1e-3, False, "failed"),
        ("rounded", 1e-11, False, "passed"),
        ("rounded", 1e-11, True, "failed"),
        ("rounded", 1e-3, False, "failed"),
        ("failed", 1e-8, False, "failed"),
        ("failed", 1e-14, False, "passed"),
        (None, 1e-13, False, "passed"),
        (None, 1e-13, True, "passed"),
        (None, 1e-6, False, "passed"),
        (None, 1e-6, True, "failed"),
        (None, 1e-4, False, "failed"),
    ],
)
def test_weights_decide_where_they_were_matched_and_outputs_elsewhere(
    level: str | None, relative: float, strict: bool, verdict: str
) -> None:
    decision = assess(proof(level), measured(relative), strict=strict)
    assert decision.verdict == verdict
    if verdict == "failed":
        assert decision.location == {None: "tail", "exact": "output"}.get(level, "hidden")


def test_units_that_could_not_be_matched_leave_the_judgement_to_outputs() -> None:
    unmatched = proof("failed")
    unmatched.records[0].certain = False
    assert assess(unmatched, measured(1e-7), strict=False).verdict == "passed"
    assert assess(unmatched, measured(1e-7), strict=True).verdict == "failed"
    assert assess(unmatched, measured(1e-4), strict=False).verdict == "failed"


def test_without_any_proof_the_output_is_the_location() -> None:
    decision = assess(None, measured(0.5), strict=False)
    assert decision.verdict == "failed"
    assert decision.location == "output"


def test_nan_fails_whatever_the_weights_say() -> None:
    found = measured(0.0, nan=np.zeros(2), nan_path="output")
    assert assess(proof("exact"), found, strict=False).verdict == "failed"


def test_a_constant_output_is_undecided_unless_it_is_excused_and_another_is_not() -> None:
    found = measured(0.0)
    found.spreads["output"] = Spread(np.ones(2), np.ones(2))
    assert assess(proof("exact"), found, strict=False).verdict == "undecided"
    assert assess(proof("exact"), found, strict=False, excused=["output"]).verdict == "undecided"
    found.spreads["other"] = Spread(np.zeros(2), np.ones(2))
    assert assess(proof("exact"), found, strict=False, excused=["output"]).verdict == "proved"


def test_inputs_that_never_move_prove_nothing() -> None:
    assert assess(None, measured(0.0, moved=False), strict=False).verdict == "undecided"


def test_noise_that_hides_everything_is_undecided() -> None:
    found = measured(1e-15)
    found.deployed.noise = found.deployed.unexplained = 0.5
    assert assess(proof("exact"), found, strict=False).verdict == "undecided"


def test_a_coarse_residual_may_be_quantisation() -> None:
    assert assess(None, measured(1e-3), strict=False, coarse=True).verdict == "undecided"
    assert assess(None, measured(0.5), strict=False, coarse=True).verdict == "failed"
    assert assess(None, measured(1e-7), strict=False, coarse=True).verdict == "passed"


def deployed(noise: float, flips: int = 0) -> Measured:
    figures = Deployed(residual=noise, noise=noise, unexplained=noise, flips=flips, decisions=1000)
    return measured(1e-15, deployed=figures)


@pytest.mark.parametrize(("relative", "verdict"), [(0.9e-9, "proved"), (1.1e-9, "passed")])
def test_samples_bear_out_an_exact_proof_up_to_1e_9(relative: float, verdict: str) -> None:
    assert assess(proof("exact"), measured(relative), strict=False).verdict == verdict


@pytest.mark.parametrize(("noise", "verdict"), [(0.09, "proved"), (0.11, "undecided")])
def test_rounding_up_to_a_tenth_of_the_output_leaves_the_structure_to_be_judged(noise: float, verdict: str) -> None:
    assert assess(proof("exact"), deployed(noise), strict=False).verdict == verdict


@pytest.mark.parametrize(("relative", "verdict"), [(0.9e-5, "passed"), (0.09, "undecided"), (0.11, "failed")])
def test_a_residual_at_the_deployed_precision_alone_may_be_its_rounding(relative: float, verdict: str) -> None:
    assert assess(None, measured(relative), strict=False, coarse=True).verdict == verdict


@pytest.mark.parametrize(
    ("noise", "flips", "verdict"),
    [(0.9e-5, 0, "proved"), (1.1e-5, 0, "passed"), (1e-3, 10, "passed"), (1e-3, 11, "failed")],
)
def test_one_decision_in_a_hundred_may_flip_in_other_arithmetic(noise: float, flips: int, verdict: str) -> None:
    assert assess(proof("exact"), deployed(noise, flips), strict=False, artefact="int8").verdict == verdict


@pytest.mark.parametrize(("residual", "verdict"), [(0.9e-5, "passed"), (1.1e-5, "undecided")])
def test_a_mixed_batch_must_move_within_the_level_of_outputs(residual: float, verdict: str) -> None:
    alone = assess(proof("exact"), measured(1e-15), strict=False)
    assert assess_mixed_batches(alone, residual).verdict == verdict


def test_the_least_exact_of_several_rounded_layers_is_the_location_and_a_wrong_one_comes_first() -> None:
    several = proof("rounded")
    several.records += [LayerRecord("worst", "Linear", "rounded", 1e-8, 3.9, 1e-7)]
    several.records += [LayerRecord("last", "Linear", "rounded", 1e-8, 0.1, 1e-7)]
    assert assess(several, measured(1e-11), strict=True).location == "worst"
    several.records += [LayerRecord("wrong", "Linear", "failed", 1e-3, 1e4, 1e-2)]
    several.level = "failed"
    assert assess(several, measured(1e-4), strict=False).location == "wrong"


def test_a_constant_output_off_by_more_than_rounding_has_failed() -> None:
    found = measured(1e-8)
    found.spreads["output"] = Spread(np.ones(2), np.ones(2))
    assert assess(proof("exact"), found, strict=False).verdict == "failed"
