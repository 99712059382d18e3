"""What a page says beside verdicts: shared evidence once, precisions, decisions, laws, and bounds on lost value."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symcheck.engine.results import Counterexample, PropertyResult, RunResult
from symcheck.statements import statement
from symcheck.statements.statement import Statement, as_paragraph, free, state
from symcheck_reports import html
from symcheck_reports.evidence import share_notes
from symcheck_reports.model import run_view
from symcheck_reports.sections.precision import decision_sentence
from symcheck_reports.templating import folded

REGION = "2058 pairs drawn from 1000 states: 26 start states, 474 from rollouts"


def test_what_two_properties_say_alike_stands_on_the_page_once(passing_run: RunResult) -> None:
    notes = {"reward_invariance": (REGION, "Rewards are exact."), "termination_invariance": (REGION, "173 end")}
    changed = tuple(dataclasses.replace(p, notes=notes.get(p.name, ())) for p in passing_run.properties)  # type: ignore[arg-type]
    page = html.render_run(dataclasses.replace(passing_run, properties=changed))
    assert page.count(REGION) == 1
    assert f"reward_invariance, termination_invariance</span>: <bdi>{REGION}.</bdi>" in page
    assert "Rewards are exact." in page
    assert "173 end." in page


def test_what_one_property_says_twice_is_not_shared() -> None:
    shared, own = share_notes([("reward", [free(REGION), free(REGION)]), ("end", [])])
    assert shared == ()
    assert own == [[free(REGION), free(REGION)], []]


def test_notes_with_other_numbers_are_not_shared() -> None:
    notes = [state("accepted", size=size, limit=1.0, file="accepted.toml", why="") for size in (0.25, 0.5)]
    assert share_notes([("reward", notes[:1]), ("end", notes[1:])]) == ((), [notes[:1], notes[1:]])


def test_a_note_about_the_verdict_stays_beside_it_even_where_another_property_has_the_same() -> None:
    accepted = state("accepted", size=0.5, limit=1.0, file="accepted.toml", why="the track leans by a degree")
    assert share_notes([("reward", [accepted]), ("end", [accepted])]) == ((), [[accepted], [accepted]])


NOTES = st.lists(st.text(alphabet="ab (;). ", max_size=80).map(free), max_size=3)


@given(st.lists(NOTES, max_size=4))
def test_no_note_is_lost_and_none_is_said_of_another_property(noted: list[list[Statement]]) -> None:
    shared, own = share_notes([(str(i), notes) for i, notes in enumerate(noted)])
    for i, notes in enumerate(noted):
        everything = " ".join([as_paragraph(own[i]), *(text for names, text in shared if str(i) in names)])
        assert all(as_paragraph([note]) in everything for note in notes)
        assert all(note in notes for note in own[i])
        assert all(any(as_paragraph([note]) in text for note in notes) for names, text in shared if str(i) in names)


@given(st.text(alphabet="abc(). ", max_size=600))
def test_folding_a_text_keeps_all_of_it(text: str) -> None:
    lead, rest = folded(text)
    assert "".join((lead + rest).split()) == "".join(text.split())


def test_a_network_page_has_a_row_per_precision_and_counts_flips(failing_network: RunResult) -> None:
    page = html.render_run(failing_network)
    assert "Precision and decisions</h2>" in page
    assert page.count("float32 as deployed</bdi></th>") == 1
    assert "3 of 9,951 decisions (0.03%) flip" in page


def test_a_note_that_the_page_has_a_table_of_is_not_said_in_prose_as_well(
    failing_network: RunResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    tabled = {"sentence": "as deployed in {{ dtype }}, 3 decisions flip", "shown": "table"}
    monkeypatch.setitem(statement.table("notes"), "test_tabled", tabled)  # type: ignore[arg-type]
    *rest, last = failing_network.properties
    noted = dataclasses.replace(last, notes=(*last.notes, state("test_tabled", dtype="float32")))
    assert "as deployed in float32" not in html.render_run(
        dataclasses.replace(failing_network, properties=(*rest, noted))
    )
    untabled = dataclasses.replace(noted, per_coordinate=())
    assert "As deployed in float32" in html.render_run(
        dataclasses.replace(failing_network, properties=(*rest, untabled))
    )


def test_precisions_are_no_coordinates_of_the_residual_figure(failing_network: RunResult) -> None:
    rows = run_view(failing_network).properties[-1].residuals
    assert [name for name, _, _ in rows] == ["network_equivariance"]


def test_an_environment_has_no_precision_section(passing_run: RunResult) -> None:
    assert "Precision and decisions" not in html.render_run(passing_run)


@pytest.mark.parametrize(("flips", "verb"), [(1, ") flips:"), (2, ") flip:")])
def test_the_verb_agrees_with_the_number_of_flips(flips: int, verb: str) -> None:
    assert verb in decision_sentence(100, flips)


def test_an_approximate_symmetry_says_what_it_can_cost(approximate_run: RunResult) -> None:
    page = html.render_run(approximate_run)
    assert "What the violations can cost</h2>" in page
    assert "<strong>about 0.84</strong>" in page
    assert "It is not a bound" in page
    assert "<dt>discount</dt><dd><bdi>0.99</bdi></dd>" in page


def _costing(run: RunResult, **changes: dict[str, object]) -> str:
    """The page of a run whose properties cost that much, each like the last one of the run."""
    *rest, last = run.properties
    assert last.bound is not None
    costly = [dataclasses.replace(last, name=name, bound={**last.bound, **more}) for name, more in changes.items()]
    return html.render_run(dataclasses.replace(run, properties=(*rest, *costly)))


def test_an_exact_gap_is_a_bound_and_says_that_all_values_are_known(approximate_run: RunResult) -> None:
    page = _costing(approximate_run, transition_invariance={"estimate": "exact", "confidence": None})
    assert "<strong>at most 0.84</strong>" in page
    assert "All optimal values were computed" in page
    assert "an estimate" not in page


def test_an_estimated_gap_says_how_many_pairs_may_differ_more(approximate_run: RunResult) -> None:
    page = _costing(approximate_run, transition_invariance={"exceeding_fraction": 0.015})
    assert "<dt>larger differences</dt><dd><bdi>in at most 1.5% of pairs (99% confidence)</bdi></dd>" in page


def test_equal_costs_are_said_once_and_others_apart(approximate_run: RunResult) -> None:
    both: dict[str, dict[str, object]] = {"transition_invariance": {}, "reward_invariance": {}}
    assert _costing(approximate_run, **both).count("<dt>value gap</dt>") == 1
    both["reward_invariance"] = {"value": 0.9}
    assert _costing(approximate_run, **both).count("<dt>value gap</dt>") == 2


def test_an_accepted_violation_is_not_headed_as_a_failure(approximate_run: RunResult) -> None:
    page = html.render_run(approximate_run)
    assert "transition_invariance holds approximately: the largest violation</h3>" in page
    assert "transition_invariance fails" not in page


def test_the_environments_own_pictures_are_shown_with_their_captions(approximate_run: RunResult) -> None:
    page = html.render_run(approximate_run)
    assert page.count('<img src="data:image/png;base64,') == 4
    assert 'alt="g s, the image under g, drawn by the environment"' in page


def test_a_picture_that_is_no_picture_is_left_out(approximate_run: RunResult) -> None:
    *rest, last = approximate_run.properties
    assert last.counterexample is not None
    example = dataclasses.replace(last.counterexample, pictures=(("s", "https://elsewhere.example/x.png"),))
    run = dataclasses.replace(approximate_run, properties=(*rest, dataclasses.replace(last, counterexample=example)))
    assert "elsewhere" not in html.render_run(run)


def test_distributions_are_compared_value_by_value() -> None:
    example = Counterexample(
        "g", 0, None, 0, [[0, 3 / 4], [1, 1 / 4]], [[0, 1 / 4], [1, 1 / 4], [4, 3 / 8], [5, 1 / 8]], 1 / 2,
        "distribution of the next state", image_observation=0, image_action=1,
    )  # fmt: skip
    failed = PropertyResult("transition_invariance", "failed", "exact", 44, 44, counterexample=example)
    run = RunResult("env", "Lake-v1", "flip", {"name": "C2", "order": 2}, (failed,), 0.01, 0)
    table = run_view(run).counterexamples[0].tables[-1]
    assert [row[0] for row in table.rows] == ["0", "1", "4", "5"]
    assert [row[3] for row in table.rows] == ["-5.0e-01", "0", "3.8e-01", "1.2e-01"]
    assert table.marked == {0, 2, 3}
    assert table.caption == "The distribution of the next observation: probabilities"


@pytest.mark.parametrize(("gap", "shown"), [(2e-16, "0"), (9e-16, "0"), (1.1e-15, "1.1e-15"), (3e-15, "3.0e-15")])
def test_equal_probabilities_are_written_with_equal_digits_and_differ_by_nothing(gap: float, shown: str) -> None:
    sides = [[0, 1 / 3], [1, 2 / 3]], [[0, 1 / 3 + gap], [1, 2 / 3 - gap]]
    example = Counterexample("g", 0, None, 0, *sides, gap, "distribution of the next state")
    failed = PropertyResult("transition_invariance", "failed", "exact", 44, 44, counterexample=example)
    run = RunResult("env", "Lake-v1", "flip", {"name": "C2", "order": 2}, (failed,), 0.01, 0)
    table = run_view(run).counterexamples[0].tables[-1]
    assert [row[1:3] for row in table.rows] == [("0.33333333", "0.33333333"), ("0.66666667", "0.66666667")]
    assert [row[3].lstrip("-\N{MINUS SIGN}") for row in table.rows] == [shown, shown]
    assert bool(table.marked) == (shown != "0")


def test_pairs_that_are_no_probabilities_are_compared_entry_by_entry() -> None:
    example = Counterexample("g", 0, None, 0, [[0.5, 0.9], [0.25, 0.5]], [[0.5, 0.9], [0.25, 0.75]], 0.25, "[1, 1]")
    failed = PropertyResult("transition_invariance", "failed", "exact", 44, 44, counterexample=example)
    run = RunResult("env", "Grid-v1", "flip", {"name": "C2", "order": 2}, (failed,), 0.01, 0)
    rows = run_view(run).counterexamples[0].tables[-1].rows
    assert [row[0] for row in rows] == ["next s[0, 0]", "next s[0, 1]", "next s[1, 0]", "next s[1, 1]"]


def test_a_layer_that_cannot_be_followed_is_no_fault_of_a_network_that_passes(failing_network: RunResult) -> None:
    passed = tuple(
        dataclasses.replace(p, verdict="passed", counterexample=None, location=None) for p in failing_network.properties
    )
    page = html.render_run(dataclasses.replace(failing_network, properties=passed))
    assert "The chain breaks" not in page
    assert '<span class="verdict is-undecided">not followed</span>' in page


def test_the_row_that_the_residual_names_is_marked_even_where_another_differs_more(failing_run: RunResult) -> None:
    views = run_view(failing_run).counterexamples
    view = next(v for v in views if v.property_name == "transition_invariance")
    example = next(p.counterexample for p in failing_run.properties if p.name == "transition_invariance")
    assert example is not None
    far = dataclasses.replace(example, actual=[9.0, *list(example.actual)[1:]])
    changed = tuple(
        dataclasses.replace(p, counterexample=far) if p.name == "transition_invariance" else p
        for p in failing_run.properties
    )
    again = run_view(dataclasses.replace(failing_run, properties=changed)).counterexamples
    marked = next(v for v in again if v.property_name == "transition_invariance").tables[-1].marked
    assert marked == view.tables[-1].marked


def test_the_reason_why_a_property_is_undecided_stays_beside_it() -> None:
    reason = state("time_up", checked=40)
    names = ("reward_invariance", "termination_invariance")
    open_ones = tuple(PropertyResult(name, "undecided", "paired", 40, reason=reason) for name in names)
    view = run_view(RunResult("env", "Mine-v0", "flip", {"name": "C2", "order": 2}, open_ones, 0.01, 0))
    assert view.shared == ()
    assert [p.detail for p in view.properties] == [as_paragraph([reason])] * 2


def test_pictures_go_before_the_page_grows_beyond_its_budget(approximate_run: RunResult) -> None:
    *rest, last = approximate_run.properties
    assert last.counterexample is not None
    heavy = tuple((caption, uri + "A" * 30_000) for caption, uri in last.counterexample.pictures)
    failed = dataclasses.replace(
        last, verdict="failed", counterexample=dataclasses.replace(last.counterexample, pictures=heavy)
    )
    run = dataclasses.replace(approximate_run, properties=(*rest, failed))
    few, many = html.render_run([run] * 3), html.render_run([run] * 8)
    assert few.count("<img ") == 12
    assert many.count("<img ") == 0
    assert "Pictures are left out to keep this page small" in many
    assert many.count("<h3>transition_invariance fails</h3>") == 8
    assert len(many.encode()) <= html.BUDGET_BYTES


def test_a_single_number_is_called_by_the_coordinate_it_is_of() -> None:
    example = Counterexample("g", None, None, None, 0.1, 0.4, 0.3, "observation[2]")
    failed = PropertyResult(
        "initial_invariance", "failed", "distribution", 63, 1, 4.8, counterexample=example, p_value=0.002
    )
    run = RunResult("env", "Cart-v1", "flip", {"name": "C2", "order": 2}, (failed,), 0.01, 0)
    view = run_view(run)
    table = view.counterexamples[0].tables[-1]
    assert table.caption == "What the claim requires, and what was measured, on average"
    assert [row[0] for row in table.rows] == ["observation[2]"]
    assert (view.properties[0].residual, view.properties[0].tolerance) == ("–", "–")  # a statistic beside its p-value


def test_a_region_that_the_evidence_names_is_not_named_again() -> None:
    region = free("200 states: 3 where episodes start, 197 from rollouts")
    bound = {"kind": "violation_fraction", "value": 0.01, "confidence": 0.99, "region": region}
    drawn = Statement("", {"text": f"300 pairs drawn from {region}", "region": region})
    axioms = PropertyResult("group_axioms", "passed", "samples", 400, bound=bound, notes=(free("Relations hold."),))
    held = [
        PropertyResult(name, "passed", "paired", 300, bound=bound, notes=(drawn,))
        for name in ("reward_invariance", "termination_invariance")
    ]
    run = RunResult("env", "Mine-v0", "flip", {"name": "C2", "order": 2}, (axioms, *held), 0.01, 0)
    page = html.render_run(run)
    assert page.count(region.text) == 1
    assert "400 sampled checks" in page
    assert f"Region tested: <bdi>{region}</bdi>" in html.render_run(dataclasses.replace(run, properties=(axioms,)))


def test_where_distributions_were_compared_the_page_says_why_no_step_is_drawn() -> None:
    example = Counterexample("g", None, None, None, 0.1, 0.4, 0.3, "state[1]")
    failed = PropertyResult(
        "transition_invariance", "failed", "distribution", 300, 1, 0.3, counterexample=example, p_value=0.002
    )
    run = RunResult("env", "Mine-v0", "flip", {"name": "C2", "order": 2}, (failed,), 0.01, 0)
    assert "No picture: <bdi>two distributions were compared, so no single step is shown." in html.render_run(run)
