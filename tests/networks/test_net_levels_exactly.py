"""A value exactly at a published level still belongs to the better side, and each conclusion names its grounds."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from test_net_verdicts import measured, proof

from symcheck.engine.networks import gathering, runner
from symcheck.engine.networks.blame.proof import Compared, Proof
from symcheck.engine.networks.gathering import number_of_samples
from symcheck.engine.networks.options import DEFAULT_SAMPLES, NetOptions
from symcheck.engine.networks.samples.decisions import CLEAR, Decisions, is_decision, staying_behind
from symcheck.engine.networks.samples.measuring import Deployed
from symcheck.engine.networks.samples.ruler import EXACT, ROUNDED
from symcheck.engine.networks.samples.sampling import Family
from symcheck.engine.networks.subject.claims import InputClaim, OutputClaim
from symcheck.engine.networks.subject.subject import PRODUCTS
from symcheck.engine.networks.subject.values import LayerRecord, Opaque, SignedPermutation
from symcheck.engine.networks.verdicts import (
    BORNE_OUT,
    FAR,
    assess,
    assess_by_gradients,
    assess_changing_calls,
    assess_mixed_batches,
    is_wrong_weight,
    layer_facts,
)
from symcheck.engine.registry import Property
from symcheck.engine.results import PropertyResult
from symcheck.statements.statement import state
from symcheck.verdict import Facts, ReasonCode, decide

ANY: Any = None


def above(level: float) -> float:
    return math.nextafter(level, math.inf)


def conclusion(made: Any) -> tuple[str, str | None, list[str]]:
    reason = made.decision.reason
    return made.verdict, None if reason is None else reason.code, [ground.code for ground in made.grounds]


@pytest.mark.parametrize(
    ("level", "relative", "more", "expected"),
    [
        ("exact", BORNE_OUT, {}, ("proved", None, ["layers_exact"])),
        ("exact", above(BORNE_OUT), {}, ("passed", None, ["outputs_rounded"])),
        (None, EXACT, {}, ("passed", None, ["no_violation"])),
        (None, above(EXACT), {}, ("passed", None, ["outputs_rounded"])),
        (None, EXACT, {"strict": True}, ("passed", None, ["no_violation"])),
        (None, above(EXACT), {"strict": True}, ("failed", None, ["outputs_rounded"])),
        (None, ROUNDED, {}, ("passed", None, ["outputs_rounded"])),
        (None, above(ROUNDED), {}, ("failed", None, ["output_off"])),
        ("rounded", EXACT, {}, ("passed", None, ["weights_rounded"])),
        ("failed", EXACT, {}, ("passed", None, ["no_violation"])),
        ("failed", above(EXACT), {}, ("failed", None, ["fault_shown"])),
        (None, ROUNDED, {"coarse": True}, ("passed", None, ["outputs_rounded"])),
        (None, above(ROUNDED), {"coarse": True}, ("undecided", "coarse_residual", [])),
        (None, FAR, {"coarse": True}, ("undecided", "coarse_residual", [])),
        (None, above(FAR), {"coarse": True}, ("failed", None, ["output_off"])),
    ],
)
def test_a_residual_at_a_level_is_still_within_it(level: Any, relative: float, more: Any, expected: Any) -> None:
    made = assess(None if level is None else proof(level), measured(relative), **{"strict": False, **more})
    assert conclusion(made) == expected
    if made.verdict == "failed":
        assert made.tolerance == {"output_off": ROUNDED}.get(expected[2][0], EXACT)


@pytest.mark.parametrize("relative", [EXACT, above(EXACT)])
@pytest.mark.parametrize("constant", [True, False])
def test_a_constant_or_unmoved_output_may_be_off_by_float64_rounding(relative: float, constant: bool) -> None:
    found = measured(relative, moved=constant)
    if constant:
        found.spreads["output"].high[:] = found.spreads["output"].low
    made = assess(None, found, strict=False)
    off = relative > EXACT
    assert made.verdict == ("failed" if off else "undecided")
    assert [ground.code for ground in made.grounds] == (["constant_off"] if off else [])
    if not off:
        reason = ReasonCode.CONSTANT_OUTPUT if constant else ReasonCode.NOTHING_MOVES
        assert conclusion(made)[1] == reason.value


@pytest.mark.parametrize(
    ("deployed", "more", "code"),
    [
        (Deployed(noise=1.0, unexplained=FAR), {}, None),
        (Deployed(noise=1.0, unexplained=above(FAR)), {}, "deployed_noise"),
        (Deployed(beyond=1.0), {}, None),
        (Deployed(beyond=above(1.0)), {}, "deployed_off"),
        (Deployed(noise=ROUNDED), {"artefact": "int8"}, None),
    ],
)
def test_the_deployed_network_may_be_off_up_to_its_limits(deployed: Deployed, more: Any, code: str | None) -> None:
    assert conclusion(assess(proof("exact"), measured(1e-15, deployed=deployed), strict=False, **more))[1] == code


def test_a_deployed_form_that_rounds_more_than_float32_is_tested_and_not_proved() -> None:
    def concluded(noise: float, **more: Any) -> Any:
        found = measured(1e-15, deployed=Deployed(noise=noise, flips=1, decisions=2))
        found.deployed.rounded = 1
        found.deployed.flips, found.deployed.rounded, found.deployed.decisions = 0, 0, 200
        return conclusion(assess(proof("exact"), found, strict=False, **more))

    assert concluded(ROUNDED, artefact="int8") == ("proved", None, ["layers_exact"])
    assert concluded(above(ROUNDED), artefact="int8") == ("passed", None, ["deployed_differs", "layers_exact"])
    assert concluded(above(ROUNDED)) == ("proved", None, ["layers_exact"])


@pytest.mark.parametrize(
    ("swamped", "left_out", "level", "code"),
    [
        (5, 0, None, None),
        (6, 0, None, "rounding_amplified"),
        (0, 100, None, None),
        (0, 101, None, "outside_space"),
        (6, 101, "exact", None),
        (6, 0, "rounded", "rounding_amplified"),
    ],
)
def test_samples_alone_are_doubted_where_too_many_are_swamped_or_left_out(
    swamped: int, left_out: int, level: Any, code: str | None
) -> None:
    made = assess(
        None if level is None else proof(level), measured(1e-15, swamped=swamped, left_out=left_out), strict=False
    )
    assert conclusion(made)[1] == code


def test_outputs_that_were_not_compared_are_named_with_their_dtype() -> None:
    made = assess(
        proof("exact"), measured(0.0), strict=False, not_judged={"output[1]": "torch.int64", "": "torch.complex64"}
    )
    assert conclusion(made)[:2] == ("undecided", ReasonCode.NOT_JUDGED.value)
    assert made.facts.doubts[0].fields["outputs"] == {"output[1]": "int64", "output": "complex64"}


def test_an_exact_graph_comparison_tells_its_terms() -> None:
    found = replace(proof("exact"), compared=Compared(12, kind="matrices"))
    made = assess(found, measured(1e-15), strict=False)
    assert conclusion(made) == ("proved", None, ["graphs_equal"])
    assert made.grounds[0].fields == {"terms": 12, "kind": "matrices"}
    uncertified = replace(proof("exact"), certificate=None)
    assert conclusion(assess(uncertified, measured(1e-15), strict=False)) == ("passed", None, ["layers_exact"])


def test_what_was_found_alone_is_weakened_by_batches_calls_and_gradients_but_a_violation_stays() -> None:
    holds, broken = (assess(proof("exact"), measured(relative), strict=False) for relative in (1e-15, 0.5))
    assert conclusion(assess_mixed_batches(holds, ROUNDED)) == ("passed", None, ["batch_moves", "layers_exact"])
    assert conclusion(assess_mixed_batches(holds, above(ROUNDED)))[:2] == ("undecided", ReasonCode.MIXED_BATCHES.value)
    changed = assess_changing_calls(holds, "a list")
    assert conclusion(changed)[:2] == ("undecided", ReasonCode.CALLS_CHANGE_STATE.value)
    assert changed.facts.doubts[0].fields["what"] == "a list"
    assert conclusion(assess_by_gradients(holds))[1] == ReasonCode.ANSWERS_BY_GRADIENTS.value
    for again in (assess_mixed_batches(broken, 1.0), assess_changing_calls(broken, "a list")):
        assert again is broken
    assert (holds.holds, broken.holds, changed.holds) == (True, False, False)


@pytest.mark.parametrize(
    ("level", "shown", "verdict"),
    [
        ("exact", False, "proved"),
        ("exact", True, "proved"),
        ("rounded", True, "passed"),
        ("rounded", False, "passed"),
        ("failed", True, "failed"),
        ("failed", False, "undecided"),
    ],
)
def test_a_layer_that_fails_is_only_in_doubt_if_no_output_shows_it(level: Any, shown: bool, verdict: str) -> None:
    facts = layer_facts(LayerRecord("hidden", "Linear", level, 1.0, 1.0, 1.0), shown=shown)
    assert (decide(facts).verdict, facts.checked, facts.quantity) == (verdict, 1, "layer")


@pytest.mark.parametrize(
    ("certain", "residual", "wrong"), [(True, 0.1, True), (True, 0.0, True), (True, None, False), (False, 0.1, False)]
)
def test_only_a_matched_weight_is_called_wrong(certain: bool, residual: Any, wrong: bool) -> None:
    assert is_wrong_weight(LayerRecord("x", "Linear", "failed", residual, certain=certain)) is wrong


@pytest.mark.parametrize(
    ("compared", "flipped", "rounded", "many", "doubt"),
    [(100, 1, 0, False, False), (100, 2, 0, True, True), (100, 2, 1, False, True), (0, 0, 0, False, False),
     (99, 1, 0, True, True), (99, 1, 1, False, True)],
)  # fmt: skip
def test_one_clear_decision_in_a_hundred_may_flip(
    compared: int, flipped: int, rounded: int, many: bool, doubt: bool
) -> None:
    decisions = Decisions(compared, flipped, rounded)
    assert (decisions.too_many, decisions.in_doubt) == (many, doubt)


def claim(role: str = "action", size: int = 2, *, sign: int = 1, choices: Any = ()) -> OutputClaim:
    motion: Any = SignedPermutation(np.arange(size)[::-1].copy(), np.array([sign, *[1] * (size - 1)]))
    return OutputClaim("output", role, size, (motion,), choices)


def test_logits_are_permuted_and_stand_alone() -> None:
    assert is_decision(claim(), [claim()])
    assert not is_decision(claim("invariant"), [])
    assert not is_decision(claim(sign=-1), [])
    assert is_decision(claim(sign=-1, choices=(slice(0, 1), slice(1, 2))), [])
    assert not is_decision(claim(size=1), [])
    assert not is_decision(claim(), [claim(), claim("action_scale")])
    assert not is_decision(OutputClaim("output", "action", 2, (lambda y, x: y,)), [])


def test_a_margin_at_the_level_is_not_clear_and_clear_choices_are_judged_one_by_one() -> None:
    spread = np.array([1.0, 2.0])
    wanted = np.array([[2 * CLEAR, 0.0], [above(2 * CLEAR), 0.0], [np.nan, 0.0], [np.inf, np.inf]])
    clear, flipped, margin = staying_behind(wanted, wanted[:, ::-1], spread)
    assert clear.tolist() == [False, True, False, False]
    assert flipped.tolist() == [False, True, False, False]
    assert margin.tolist() == [0.0, above(2 * CLEAR), 0.0, 0.0]
    assert not staying_behind(wanted, wanted[:, ::-1], np.zeros(2))[0].any()  # no spread, no decision
    bits = (slice(0, 1), slice(1, 2))
    before, after = np.array([[0.5, -0.5], [0.5, 0.7]]), np.array([[0.5, 0.5], [-0.1, -0.1]])
    clear, flipped, margin = staying_behind(before, after, np.ones(2), bits)
    assert (clear.tolist(), flipped.tolist()) == ([True, True], [True, True])
    np.testing.assert_allclose(margin, [0.5, 0.7])


@pytest.mark.parametrize(
    ("shape", "cost", "level", "asked", "count"),
    [
        ((4,), 1, None, None, DEFAULT_SAMPLES),
        ((64,), 1, None, None, DEFAULT_SAMPLES),
        ((128,), 1, None, None, DEFAULT_SAMPLES // 2),
        ((4,), 1, "exact", None, DEFAULT_SAMPLES * 64 // 320),
        ((4,), 1, "rounded", None, DEFAULT_SAMPLES),
        ((640,), 1, "exact", None, DEFAULT_SAMPLES // 10),
        ((3, 500, 500), 1, None, None, 256),
        ((4,), PRODUCTS, None, None, 48),
        ((4,), PRODUCTS // 100, None, None, 100),
        ((4,), PRODUCTS, "exact", 7, 7),
    ],
)
def test_fewer_samples_are_drawn_for_larger_inputs_and_costlier_networks(
    shape: Any, cost: int, level: Any, asked: Any, count: int
) -> None:
    subject: Any = SimpleNamespace(shape=shape, cost=cost)
    made = number_of_samples(subject, None if level is None else proof(level), NetOptions(samples=asked))
    assert made == count


def test_a_search_uphill_needs_an_open_question_and_a_wrong_weight_one_that_no_output_shows() -> None:
    worth, silent = gathering._is_worth_climbing, gathering._has_silent_fault
    assert worth(None, measured(ROUNDED))
    assert not worth(None, measured(above(ROUNDED)))
    assert not worth(proof("exact"), measured(0.0))
    assert worth(proof("rounded"), measured(0.0))
    assert not worth(None, measured(0.0, nan=np.zeros(2)))
    assert silent(proof("failed"), measured(EXACT))
    assert not silent(proof("failed"), measured(above(EXACT)))
    assert not silent(proof("failed"), measured(0.0, nan=np.zeros(2)))
    assert not silent(proof("exact"), measured(0.0))
    assert not silent(None, measured(0.0))
    unmatched = proof("failed")
    unmatched.records[0].certain = False
    assert not silent(unmatched, measured(0.0))


def test_an_ascent_starts_at_the_worst_input_and_fifteen_ordinary_ones() -> None:
    inputs = np.arange(40.0).reshape(20, 2)
    groups = [Family("first", inputs), Family("second", inputs + 100)]
    starts = gathering._starts(measured(0.0), groups)
    np.testing.assert_array_equal(starts, [[0.0, 0.0], *inputs[:15]])
    none = measured(0.0)
    none.worst = None
    np.testing.assert_array_equal(gathering._starts(none, groups), inputs[:15])


@pytest.mark.parametrize(("samples", "starts"), [(1, 1), (31, 1), (32, 2), (47, 2), (48, 3), (10_000, 16)])
def test_an_ascent_has_a_starting_point_for_every_sixteen_samples(
    samples: int, starts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def climb(subject: Any, inputs: Any, outputs: Any, given: Any, domain: Any) -> list[Family]:
        asked.append(len(given))
        return [Family("climbed", given)]

    def measure(subject: Any, inputs: Any, outputs: Any, groups: Any, *told: Any, into: Any, **more: Any) -> None:
        into.worst = measured(0.0).worst
        into.families += [family.name for family in groups]

    monkeypatch.setattr(gathering, "climb_residual", climb)
    monkeypatch.setattr(gathering, "measure", measure)
    inputs: Any = InputClaim((2,), (SignedPermutation(np.array([1, 0]), np.array([1, 1])),))
    options = NetOptions(samples=samples)
    subject: Any = SimpleNamespace(shape=(2,), cost=1)
    made = gathering.gather_evidence(subject, inputs, (), None, options, None, ANY, progress=lambda done, planned: None)
    assert asked == [starts]
    assert made.families[-1] == "climbed"
    assert len(made.families) > 1


def test_inputs_whose_image_leaves_the_space_are_left_out_and_counted() -> None:
    groups = [Family("a", np.arange(6.0)[:, None]), Family("b", np.full((2, 1), 9.0), borrows=True)]
    domain: Any = SimpleNamespace(keeps=lambda claim, x: x[:, 0] < 4)
    kept, left = gathering._keep_inside(groups, ANY, domain)
    assert (left, [family.name for family in kept]) == (4, ["a"])
    np.testing.assert_array_equal(kept[0].inputs, np.arange(4.0)[:, None])
    assert gathering._keep_inside(groups, ANY, None) == (groups, 0)


def context(**more: Any) -> Any:
    given: dict[str, Any] = {
        "stochastic": False, "remembers": False, "proof": proof("exact"), "batch_residual": None,
        "subject": SimpleNamespace(coarse=False, training=False),
    }  # fmt: skip
    return SimpleNamespace(**(given | more))


OPEN = Opaque(state("SYM154", operation="cumsum"), "tail", "net.py:3")
FAILED = Proof("failed", [], replace(OPEN, record=LayerRecord("x", "Linear", "failed", 1.0)))


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({}, "method_certificate"),
        ({"stochastic": True, "remembers": True}, "method_stochastic"),
        ({"remembers": True}, "method_memory"),
        ({"subject": SimpleNamespace(coarse=True, training=True)}, "method_coarse"),
        ({"subject": SimpleNamespace(coarse=False, training=True)}, "method_training"),
        ({"proof": None}, "method_callable"),
        ({"proof": Proof(None, [], OPEN)}, "method_not_followed"),
        ({"proof": FAILED}, "method_layer_fails"),
        ({"proof": Proof("failed", [])}, "method_layer_fails"),
        ({"proof": Proof("rounded", [])}, "method_certificate"),
        ({"proof": Proof("exact", [], compared=Compared(3))}, "method_compared"),
    ],
)
def test_the_reason_for_a_method_is_what_prevented_a_proof_first(given: Any, code: str) -> None:
    assert runner._method_reason(context(**given), False).code == code
    assert runner._method_reason(context(**given), True).code == "method_interrupted"


def test_a_method_says_whether_inputs_run_one_by_one() -> None:
    for residual, alone in ((None, False), (0.5, True)):
        for made in (context(batch_residual=residual),
                     context(batch_residual=residual, proof=Proof("exact", [], compared=Compared(3)))):  # fmt: skip
            assert runner._method_reason(made, False).fields["one_by_one"] is alone


def test_an_interrupt_leaves_the_rest_open_and_a_deadline_only_one_property() -> None:
    def item(name: str, check: Any, applies: bool = True) -> Property:
        return Property(name, "net", 0, f"claim of {name}", "", check, lambda made: applies)

    def passed(made: Any) -> PropertyResult:
        verdict, reason = decide(Facts(checked=1))
        return PropertyResult("x", verdict, "sampled", checked=1, reason=reason)

    def raising(error: BaseException) -> Any:
        def check(made: Any) -> PropertyResult:
            raise error

        return check

    events: list[Any] = []
    late = runner._check((item("a", raising(runner.TimeUp())), item("b", passed)), ANY, events.append)
    assert [each.verdict for each in late[0]] == ["undecided", "passed"]
    assert (late[1], late[0][0].reason.code) == (False, ReasonCode.TIME_UP.value)  # type: ignore[union-attr]
    stopped = runner._check(
        (item("a", passed), item("b", raising(KeyboardInterrupt())), item("c", passed)), ANY, events.append
    )
    assert [each.verdict for each in stopped[0]] == ["passed", "undecided", "undecided"]
    assert stopped[1]
    assert {each.reason.code for each in stopped[0][1:]} == {ReasonCode.INTERRUPTED.value}  # type: ignore[union-attr]
    assert runner._check((item("a", passed, applies=False), item("b", passed)), ANY, events.append)[0] == [
        replace(passed(ANY), equation="claim of b")
    ]


@pytest.mark.parametrize(
    ("verdict", "made", "code"),
    [
        ("failed", proof("exact"), "certificate_not_proved"),
        ("undecided", proof("exact"), "certificate_not_proved"),
        ("passed", None, "certificate_not_proved"),
        ("passed", Proof(None), "certificate_not_proved"),
        ("passed", Proof("rounded"), "certificate_written"),
        ("proved", replace(proof("exact"), certificate={"nodes": [1, 2]}), "certificate_written"),
    ],
)
def test_a_certificate_is_written_of_what_passed_and_was_followed(
    verdict: Any, made: Any, code: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setattr(runner, "certify", lambda context: {"nodes": [1, 2, 3]})
    results = [PropertyResult(name, verdict if name == runner.NETWORK.name else "passed", "x", checked=1)
               for name in ("other", runner.NETWORK.name)]  # fmt: skip
    path = tmp_path / "certificate.json"
    told = runner._with_certificate(results, context(proof=made), path)
    assert told[0].notes == ()
    (note,) = told[1].notes
    assert note.code == code
    assert path.exists() is (code == "certificate_written")
    if path.exists():
        assert note.fields["nodes"] == (2 if verdict == "proved" else 3)
