"""The order of a run by itself: which properties are judged, what ends a run early, and which result it keeps."""

from __future__ import annotations

import dataclasses
import time
from types import SimpleNamespace
from typing import Any

import pytest

from symcheck.engine.clock import Clock, TimeUp
from symcheck.engine.environments import runner
from symcheck.engine.environments.runner import EnvContext, _run
from symcheck.engine.equations import STEP_PARTS
from symcheck.engine.options import EnvOptions
from symcheck.engine.registry import Property
from symcheck.engine.results import PropertyResult
from symcheck.errors import TargetError
from symcheck.statements.statement import state
from symcheck.verdict import ReasonCode

ANY: Any = None


def result(name: str, verdict: Any = "passed", **more: Any) -> PropertyResult:
    return PropertyResult(name, verdict, "paired", checked=1, **more)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs properties that say what they are told, on an environment that is not there."""

    def call(*given: tuple[str, Any], clock: Any = None, bench: Any = None, **options: Any) -> Any:
        """Each property is its name with a verdict, or with what happens when it is checked."""
        events: list[Any] = []
        told = EnvOptions(**options)
        made = SimpleNamespace(
            options=told,
            interrupted=False,
            pairs=SimpleNamespace(bound=SimpleNamespace(note="an element's note")),
            **(bench or {}),
        )

        def check(name: str, outcome: Any) -> Any:
            def judge(context: Any) -> PropertyResult:
                assert context.bench is made
                if callable(outcome):
                    outcome(made)
                    return result(name)
                return result(name, outcome)

            return judge

        entries = [
            Property(
                name, "env", i, f"claim of {name}", f"meaning of {name}", check(name, outcome), lambda context: True
            )
            for i, (name, outcome) in enumerate(given)
        ]

        def prepare(*told: Any) -> Any:
            made.clock = told[-1]
            if clock is not None:
                clock(made.clock)
            return made

        def gap(results: Any, evidence: Any, *, discount: float, accept: Any) -> Any:
            events.append(("gap", evidence, discount, accept))
            return [dataclasses.replace(each, method="with gap") for each in results]

        monkeypatch.setattr(runner, "prepare", prepare)
        monkeypatch.setattr(runner, "choose_method", lambda bench: SimpleNamespace(evidence="evidence", reason="why"))
        monkeypatch.setattr(runner, "name_statistics", lambda result, pairs: result)
        monkeypatch.setattr(runner, "with_value_gap", gap)
        results, context, interrupted = _run(ANY, ANY, told, "target", events.append, entries, time.monotonic())
        return SimpleNamespace(results=results, context=context, interrupted=interrupted, events=events)

    return call


def verdicts(made: Any) -> list[tuple[str, str]]:
    return [(each.name, each.verdict) for each in made.results]


def reasons(made: Any) -> list[str | None]:
    return [None if each.reason is None else each.reason.code for each in made.results]


def test_properties_are_judged_in_order_and_described_by_what_they_registered(run: Any) -> None:
    made = run(("b", "passed"), ("a", "undecided"))
    assert verdicts(made) == [("b", "passed"), ("a", "undecided")]
    assert [each.equation for each in made.results] == ["claim of b", "claim of a"]
    assert [each.meaning for each in made.results] == ["meaning of b", "meaning of a"]
    names = [getattr(event, "name", None) or event.result.name for event in made.events]
    assert names == ["b", "b", "a", "a"]
    assert not made.interrupted


def test_costs_are_measured_after_a_failure_only(run: Any) -> None:
    made = run(("a", "failed"), ("b", "passed"), discount=0.75, accept_gap=3.0)
    assert made.events[-1] == ("gap", "evidence", 0.75, 3.0)
    assert [each.method for each in made.results] == ["with gap", "with gap"]
    assert [each.method for each in run(("a", "passed"), ("b", "undecided")).results] == ["paired", "paired"]
    fast = run(("a", "failed"), fail_fast=True)
    assert [each.method for each in fast.results] == ["paired"]


def test_fail_fast_judges_nothing_after_a_failure(run: Any) -> None:
    made = run(("a", "passed"), ("b", "failed"), ("c", "failed"), fail_fast=True)
    assert verdicts(made) == [("a", "passed"), ("b", "failed"), ("c", "undecided")]
    assert reasons(made)[-1] == ReasonCode.FAIL_FAST.value
    assert verdicts(run(("a", "failed"), ("b", "passed")))[-1] == ("b", "passed")


def interrupt(bench: Any) -> None:
    bench.interrupted = True
    bench.clock.stop(KeyboardInterrupt())


def test_after_an_interrupt_only_equations_of_single_steps_are_judged(run: Any) -> None:
    made = run(("a", interrupt), ("b", "passed"), ("reward_invariance", "failed"), ("transition_invariance", "passed"))
    assert verdicts(made) == [
        ("a", "passed"),
        ("b", "undecided"),
        ("reward_invariance", "failed"),
        ("transition_invariance", "passed"),
    ]
    assert reasons(made)[1] == ReasonCode.INTERRUPTED.value
    assert made.interrupted
    assert [each.method for each in made.results if each.name == "reward_invariance"] == ["paired"]  # no costs


def refuse(bench: Any) -> None:
    bench.interrupted = True
    bench.clock.stop(TargetError("step raised", where="step", remedy=""))


def test_a_broken_environment_is_an_error_unless_a_violation_was_found_before(run: Any) -> None:
    with pytest.raises(TargetError, match="step raised"):
        run(("a", refuse), ("reward_invariance", "passed"))
    with pytest.raises(TargetError, match="step raised"):
        run(("a", refuse), ("reward_invariance", "undecided"))
    kept = run(("a", refuse), ("reward_invariance", "failed"))
    assert verdicts(kept) == [("a", "passed"), ("reward_invariance", "failed")]
    assert not kept.interrupted  # it was no Ctrl-C


def raising(error: BaseException) -> Any:
    def outcome(bench: Any) -> None:
        raise error

    return outcome


def test_a_property_that_runs_out_of_time_is_undecided_and_the_others_go_on(run: Any) -> None:
    made = run(("a", raising(TimeUp())), ("b", "passed"))
    assert verdicts(made) == [("a", "undecided"), ("b", "passed")]
    assert reasons(made)[0] == ReasonCode.TIME_UP.value
    assert not made.interrupted


def test_ctrl_c_leaves_the_finished_properties_and_the_others_undecided(run: Any) -> None:
    made = run(("a", "failed"), ("b", raising(KeyboardInterrupt())), ("c", "passed"))
    assert verdicts(made) == [("a", "failed"), ("b", "undecided"), ("c", "undecided")]
    assert reasons(made)[1:] == [ReasonCode.INTERRUPTED.value] * 2
    assert made.interrupted
    assert made.context is not None


@pytest.mark.parametrize(
    ("error", "reason", "interrupted"),
    [(KeyboardInterrupt(), ReasonCode.INTERRUPTED, True), (TimeUp(), ReasonCode.TIME_UP, False)],
)
def test_a_run_that_ends_before_its_first_property_has_no_context(
    error: BaseException, reason: ReasonCode, interrupted: bool, run: Any
) -> None:
    def stop(clock: Clock) -> None:
        raise error

    made = run(("a", "passed"), ("b", "passed"), clock=stop)
    assert verdicts(made) == [("a", "undecided"), ("b", "undecided")]
    assert reasons(made) == [reason.value] * 2
    assert (made.context, made.interrupted) == (None, interrupted)


def test_the_time_of_a_run_is_that_of_its_options(run: Any) -> None:
    seen: list[Clock] = []
    run(("a", "passed"), clock=seen.append, max_time=100.0)
    run(("a", "passed"), clock=seen.append)
    assert [clock.is_limited for clock in seen] == [True, False]
    assert seen[0].in_time()


def context_of(
    axioms: str, parts: dict[Any, str], monkeypatch: pytest.MonkeyPatch, *, data: bool = True, fast: bool = False
) -> Any:
    asked: list[Any] = []

    def judge(name: str, bench: Any) -> PropertyResult:
        asked.append(bench)
        return result(name, axioms)

    monkeypatch.setattr(runner, "judge_axioms", judge)
    monkeypatch.setattr(runner, "only_data", lambda bench: data)
    bench: Any = SimpleNamespace(options=SimpleNamespace(fail_fast=fast))
    evidence = SimpleNamespace(judge=lambda name, part: result(name, parts.get(part, "passed")))
    chosen: Any = SimpleNamespace(evidence=evidence, bench="gathered", reason="why", remarks={})
    return EnvContext(bench, chosen).judge_axioms("group_axioms"), asked, bench


def test_a_broken_group_law_tells_whether_the_equations_hold_nevertheless(monkeypatch: pytest.MonkeyPatch) -> None:
    def causes(parts: dict[Any, str], axioms: str = "failed", **more: Any) -> list[tuple[str, dict[str, Any]]]:
        told, _, _ = context_of(axioms, parts, monkeypatch, **more)
        return [(cause.code, dict(cause.fields)) for cause in told.causes]

    assert causes({}) == [("SYM003", {})]
    assert causes({"reward": "undecided"}) == [("SYM004", {"undecided": ["reward"]})]
    assert causes({"reward": "undecided", "transition": "failed"}) == [("SYM004", {"failed": ["transition"]})]
    everything = dict.fromkeys(STEP_PARTS, "failed")
    assert causes(everything) == [("SYM004", {"failed": list(STEP_PARTS)})]
    for verdict in ("passed", "proved", "undecided"):
        assert causes(everything, verdict) == []
    assert causes(everything, fast=True) == []


def test_maps_of_data_need_no_states_and_callables_use_those_of_the_method(monkeypatch: pytest.MonkeyPatch) -> None:
    _, asked, bench = context_of("proved", {}, monkeypatch)
    assert asked == [bench]
    assert context_of("passed", {}, monkeypatch, data=False)[1] == ["gathered"]


def test_a_remark_about_a_part_is_added_to_its_result_alone() -> None:
    note = state("same_seed_differs", noun="reward", number=3)
    evidence = SimpleNamespace(judge=lambda name, part: result(name))
    context = EnvContext(ANY, ANY)
    context._chosen = SimpleNamespace(evidence=evidence, remarks={"reward": note})  # type: ignore[assignment]
    assert context.judge("reward_invariance", "reward").notes == (note,)
    assert context.judge("transition_invariance", "transition").notes == ()


def test_a_method_that_judges_starts_itself_is_asked_first() -> None:
    def context(**evidence: Any) -> EnvContext:
        made = EnvContext(ANY, ANY)
        start = SimpleNamespace(judge=lambda name: f"start of {name}")
        made._chosen = SimpleNamespace(evidence=SimpleNamespace(**evidence), start=start)  # type: ignore[assignment]
        return made

    assert context().judge_start("x") == "start of x"
    assert context(judge_start=lambda name: f"own {name}").judge_start("x") == "own x"


@pytest.mark.parametrize(
    ("kind", "observe", "shows"),
    [("map", "known", True), ("map", None, False), ("observation", "known", False), ("inverse", "known", False)],
)
def test_an_observation_is_compared_with_the_state_where_both_are_known_and_differ(
    kind: str, observe: Any, shows: bool
) -> None:
    placement = SimpleNamespace(kind=kind, access=SimpleNamespace(observe=observe))
    bench: Any = SimpleNamespace(pairs=SimpleNamespace(placement=placement))
    assert EnvContext(bench).shows_state is shows


@pytest.mark.parametrize(("initial", "claims"), [(True, True), (False, False)])
def test_a_start_is_checked_if_the_claim_includes_it(initial: bool, claims: bool) -> None:
    bound = SimpleNamespace(symmetry=SimpleNamespace(initial=initial))
    bench: Any = SimpleNamespace(pairs=SimpleNamespace(bound=bound))
    assert EnvContext(bench).claims_start is claims


def test_the_reason_for_a_method_is_known_once_it_was_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen: list[Any] = []

    def choose(bench: Any) -> Any:
        chosen.append(bench)
        return SimpleNamespace(reason="why")

    monkeypatch.setattr(runner, "choose_method", choose)
    bench: Any = "bench"
    context = EnvContext(bench)
    assert context.reason.code == "method_not_chosen"
    assert context.chosen is context.chosen
    assert chosen == ["bench"]
    assert context.reason == "why"
