"""The sentences say what the evidence says, and never more."""

from __future__ import annotations

import dataclasses

import gymnasium as gym
import pytest

from symcheck.engine.results import Counterexample, PropertyResult, RunResult
from symcheck.statements.statement import free, state
from symcheck.verdict import Verdict
from symcheck_reports import html, markdown, terminal, units, words
from symcheck_reports.bounds import bound_sentence
from symcheck_reports.model import run_view


def _run(*properties: PropertyResult, kind: str = "env", **changes: object) -> RunResult:
    settings = {"group": {"name": "C2", "order": 2}, "alpha": 0.01, "seed": 0, **changes}
    return RunResult(kind, "Mine-v0", "mirror", properties=properties, **settings)  # type: ignore[arg-type]


def _property(
    verdict: Verdict, checked: int = 100, method: str = "paired", name: str = "reward_invariance", **more: object
) -> PropertyResult:
    return PropertyResult(name, verdict, method, checked, **more)  # type: ignore[arg-type]


def test_a_pass_names_its_number_of_checks(passing_run: RunResult) -> None:
    assert words.verdict_sentence(passing_run) == (
        "CartPole-v1 is symmetric under cart-pole mirror, according to 20,000 paired checks and 2,000 distribution "
        "checks."
    )


def test_the_smallest_number_of_checks_stands_for_a_method() -> None:
    run = _run(_property("passed", 500), _property("passed", 20000, name="transition_invariance"))
    assert "500 paired checks" in words.verdict_sentence(run)
    assert "20,000" not in words.verdict_sentence(run)


def test_proved_is_said_only_when_everything_is_proved() -> None:
    assert "proved for every state" in words.verdict_sentence(_run(_property("proved")))
    mixed = words.verdict_sentence(_run(_property("proved"), _property("passed", 7, name="termination_invariance")))
    assert "proved" not in mixed
    assert ", according to 7 paired checks" in mixed


def test_a_failure_names_what_fails_and_where(failing_network: RunResult) -> None:
    sentence = words.verdict_sentence(failing_network)
    assert "is not equivariant" in sentence
    assert "layer_certificate and network_equivariance fail at layer body.2" in sentence


def test_an_interrupted_run_is_undecided_however_much_passed() -> None:
    sentence = words.verdict_sentence(_run(_property("passed"), interrupted=True))
    assert "is undecided: the run was interrupted" in sentence


def test_nothing_checked_is_said() -> None:
    assert words.verdict_sentence(_run()).endswith("nothing was checked.")


def test_an_approximate_symmetry_is_called_approximate() -> None:
    held = _property("passed", approximate=True, accepted_by="accept_gap")
    assert words.verdict_sentence(_run(held)) == (
        "Mine-v0 is approximately symmetric under mirror, according to 100 paired checks; the violation of "
        "reward_invariance is accepted by --accept-gap."
    )
    failed = _property("failed", name="transition_invariance")
    assert "approximately" not in words.verdict_sentence(_run(held, failed))


def test_violations_accepted_in_two_ways_are_told_apart() -> None:
    run = _run(
        _property("passed", approximate=True, accepted_by="accept_gap"),
        _property("passed", approximate=True, accepted_by="baseline", name="transition_invariance"),
        _property("passed", approximate=True, accepted_by="baseline", name="termination_invariance"),
    )
    assert words.verdict_sentence(run).endswith(
        "; the violations of transition_invariance and termination_invariance are accepted by baseline and the "
        "violation of reward_invariance is accepted by --accept-gap."
    )


def test_a_name_makes_no_symmetry_approximate() -> None:
    """A baseline file, a layer, a symmetry or a note that is called approximate says nothing about the verdict."""
    held = _property("passed", name="approximate_value_head", notes=("accepted up to 1 in approximate.toml",))
    run = dataclasses.replace(_run(held), symmetry="exact mirror")
    named = dataclasses.replace(run, target="approximate.py:approximate_value_head")
    for result in (run, named):
        assert "approximately" not in words.verdict_sentence(result)
        assert words.qualifications(result.properties[0]) == []
        assert '<span class="sub nb">approximate</span>' not in html.render_run(result)


def test_a_failure_that_is_small_is_said_to_be_approximate_everywhere() -> None:
    failed = _property("failed", approximate=True, violations=3)
    run = _run(failed)
    assert words.property_lines(failed, run)[0] == "reward_invariance FAILED (approximate)  Mine-v0 under C2"
    assert terminal.failure_lines(failed, run)[0].plain == words.property_lines(failed, run)[0]
    assert "| **failed** (approximate) |" in markdown.render(run)
    assert '<span class="sub nb">approximate</span>' in html.render_run(run)


def test_a_constant_outcome_that_passes_is_said_to_be_constant_by_every_writer() -> None:
    held = _property("passed", reason=state("constant", quantity="reward", value="0"))
    run, remark = _run(held), "constant: every reward was 0"
    assert remark in terminal.property_lines(held)[0].plain
    assert remark.capitalize() in "\n".join(words.property_lines(held, run))
    assert remark in markdown.render(run).replace("\\", "")
    assert remark.capitalize() in html.render_run(run)
    assert words.remark(_property("passed")) == ""


def test_the_reason_comes_first_and_alone_where_there_is_room_for_one_sentence() -> None:
    open_one = _property(
        "undecided", reason=state("nan_only", quantity="reward", value="NaN"), notes=("seen on 9 states",)
    )
    assert dict(words.labelled_lines(open_one))["because"] == (
        "Every reward was NaN on both sides, so nothing could be compared. Seen on 9 states."
    )
    assert words.reason_text(open_one) == "Every reward was NaN on both sides, so nothing could be compared."
    assert words.reason_text(_property("undecided", notes=("seen on 9 states",))) == "Seen on 9 states."


@pytest.mark.parametrize("verdict", ["proved", "passed", "failed", "undecided"])
@pytest.mark.parametrize("kind", ["env", "net", "mirror", "policy", "game"])
def test_every_verdict_makes_one_sentence(verdict: Verdict, kind: str) -> None:
    sentence = words.verdict_sentence(_run(_property(verdict), kind=kind))
    assert sentence.endswith(".")
    assert sentence.count(". ") == 0


def test_the_summary_counts_the_worst_first(several_runs: list[RunResult]) -> None:
    assert words.summary_sentence(several_runs) == "3 symmetries checked: 2 failed, 1 passed."
    assert words.summary_sentence([]) == "Nothing was checked."


def test_networks_under_one_symmetry_are_counted_as_networks() -> None:
    one = _run(_property("proved"), kind="net")
    two = [one, dataclasses.replace(one, target="another")]
    assert words.summary_sentence(two) == "2 networks checked: 2 proved."
    assert words.summary_sentence([one, one]) == "2 symmetries checked: 2 proved."
    policies = [dataclasses.replace(run, kind="policy") for run in two]
    assert words.summary_sentence(policies) == "2 policies checked: 2 proved."


@pytest.mark.parametrize(
    ("bound", "text"),
    [
        (None, ""),
        ({"kind": "tv", "value": None}, ""),
        (
            {"kind": "sup_cdf_distance", "value": 0.05, "confidence": 0.9},
            "sup cdf distance at most 0.05 (90% confidence)",
        ),
        (
            {"kind": "mean_shift", "value": 0.13, "unit": "standard deviations", "confidence": 0.9},
            "a shift of every outcome by 0.13 standard deviations would be detected with 90% power",
        ),
        (
            {"kind": "mean_shift", "value": 0.21, "shift": 0.13, "confidence": 0.9},
            "a change of the mean by 0.21 (0.13 if all outcomes shift equally) would be detected with 90% power",
        ),
        (
            {"kind": "mean_shift", "value": 0.15, "shift": 0.13, "unit": "standard deviations"},
            "a change of the mean by 0.15 standard deviations would be detected",
        ),
        ({"kind": "value_gap", "value": 3.0, "estimate": "exact"}, "optimal values differ by at most 3"),
        (
            {"kind": "value_gap", "value": 325.7, "estimate": "from samples", "confidence": 0.99},
            "optimal values differ by at most about 326 (an estimate from the largest observed differences)",
        ),
        ({"kind": "violation_fraction", "value": 3e-4}, "at most 0.03% of cases could violate the claim"),
        ({"kind": "output_residual", "value": "Infinity"}, "output residual at most Infinity"),
    ],
)
def test_bounds_are_read_as_they_are_given(bound: dict[str, object] | None, text: str) -> None:
    assert bound_sentence(bound) == text


def test_the_region_can_be_said_once_for_all() -> None:
    bound = {"kind": "violation_fraction", "value": 3e-4, "confidence": 0.99, "region": "rollouts"}
    assert "region: rollouts" in bound_sentence(bound)
    assert "rollouts" not in bound_sentence(bound, with_region=False)
    assert bound_sentence({**bound, "region": free("rollouts")}) == bound_sentence(bound)


def test_a_statistical_failure_reports_its_p_value() -> None:
    result = PropertyResult("initial_invariance", "failed", "distribution", 2000, p_value=1.2e-6)
    assert words.residual_sentence(result) == ""
    assert "(p = 1.2e-06)" in words.evidence(result)


def test_a_failure_block_has_place_claim_size_and_cause(failing_run: RunResult) -> None:
    failure = next(p for p in failing_run.properties if p.verdict == "failed")
    said = dict(words.labelled_lines(failure))
    assert said["at"] == "g = g, s = [0, 0.5, 0, 0], a = 1"
    assert said["expected"].startswith("T(g s, g a) = g T(s, a): [-0.01,")
    assert said["residual"].startswith("3.1e-02 in theta")
    assert said["likely"].startswith("(a) theta")
    assert said["again"] == "symcheck replay report.json"


def test_the_causes_go_on_after_the_alphabet() -> None:
    lettered = words.causes_lettered([free(f"cause {i}") for i in range(28)])
    assert lettered[25].startswith("(z)")
    assert lettered[27].startswith("(28)")


def test_an_unknown_property_is_shown_under_its_own_name() -> None:
    assert words.property_words(_property("passed", name="my_new_claim")).meaning == "my new claim"


def test_a_property_of_ones_own_prints_its_own_equation_everywhere() -> None:
    own = {"equation": "E(g s) = E(s)", "meaning": "the image has the same energy"}
    failed = _property("failed", name="energy_invariance", violations=1, **own)
    assert dict(words.labelled_lines(failed))["expected"] == "E(g s) = E(s)"
    page = html.render_run(_run(failed))
    assert "E(g s) = E(s)" in page
    assert "the image has the same energy" in page
    renamed = _property("passed", equation="R(g s) = R(s)")
    assert words.property_words(renamed).equation == "R(g s) = R(s)"
    assert words.property_words(renamed).meaning == "the transformed step has the same reward"


def test_values_that_differ_in_the_eighth_digit_are_not_printed_alike(failing_network: RunResult) -> None:
    failure = failing_network.properties[2]
    assert words.measurement(failure) not in words.expectation(failure)


def test_a_failed_property_without_an_input_still_says_its_layer(failing_network: RunResult) -> None:
    assert words.place_sentence(failing_network.properties[1]) == "layer body.2"


def test_dataclasses_stay_as_they_were_after_rendering(failing_run: RunResult) -> None:
    before = dataclasses.replace(failing_run)
    for result in failing_run.properties:
        words.property_lines(result, failing_run)
    assert failing_run == before


@pytest.mark.parametrize(
    ("state", "observation", "is_said"),
    [
        (None, [0.5], False),
        ([0.5], [0.5], False),
        ([0.2], [0.20000000298], False),  # the observation is the state in float32
        ([1.0, 0.0], [0.540302, 0.841471, 0.0], True),
        ([0.5], [0.25], True),
    ],
)
def test_a_state_that_the_observation_shows_already_is_not_repeated(
    state: list[float] | None, observation: list[float], is_said: bool
) -> None:
    example = Counterexample("g", observation, state, None, None, None, 1.0, "x")
    failure = PropertyResult("transition_invariance", "failed", "paired", 1, 1, counterexample=example)
    assert ("state = " in words.place_sentence(failure)) == is_said


def test_the_coordinates_of_a_known_environment_have_names_and_units_on_its_page(failing_run: RunResult) -> None:
    known, unknown = (html.render_run(dataclasses.replace(failing_run, target=t)) for t in ("CartPole-v1", "Mine-v1"))
    assert "<bdi>s<wbr>[2] (theta, rad)</bdi>" in known
    assert "theta, rad" not in unknown
    assert "<bdi>s<wbr>[2]</bdi>" in unknown


@pytest.mark.parametrize("known", ["CartPole-v1", "MountainCar-v0", "Pendulum-v1", "Acrobot-v1"])
def test_a_known_environment_has_a_name_for_each_coordinate_and_no_other(known: str) -> None:
    size = gym.make(known).observation_space.shape
    assert size is not None
    assert all(units.label(known, f"observation[{i}]") for i in range(size[0]))
    assert units.label(known, f"observation[{size[0]}]") == ""


def test_a_network_s_residual_says_which_size_is_over_the_output_s_scale() -> None:
    example = Counterexample("g", [1.0], None, None, [0.1, 0.2], [0.1, 0.3], 0.1, "output[1]")
    failed = PropertyResult(
        "network_equivariance", "failed", "sampled", 100, 3, 0.42, 1e-12, "over the scale", counterexample=example
    )
    assert words.residual_sentence(failed) == (
        "1.0e-01 in output[1] (absolute); largest over all inputs 4.2e-01 (over the scale), tolerance 1.0e-12"
    )
    table = run_view(_run(failed, kind="net")).counterexamples[0].tables[-1]
    assert [row[0] for row in table.rows] == ["output[0]", "output[1]"]
    assert table.marked == {1}


def test_a_test_statistic_stands_in_no_table_of_residuals() -> None:
    start = PropertyResult("initial_invariance", "passed", "distribution", 500, max_residual=2.7, p_value=0.4)
    assert run_view(_run(start)).properties[0].residuals == ()
