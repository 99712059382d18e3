"""The terminal says the same words, one line per property that holds, a block per failure."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace

from rich.console import Console

from symcheck.engine.results import RunResult
from symcheck.verdict import Facts, decide
from symcheck_reports import terminal, words


def _printed(
    results: list[RunResult] | RunResult, *, colour: bool = False, quiet: bool = False, width: int = 80
) -> str:
    stream = io.StringIO()
    console = Console(file=stream, width=width, force_terminal=colour, color_system="standard" if colour else None)
    terminal.print_run(results, console, quiet=quiet)
    return stream.getvalue()


def test_a_passing_run_takes_one_line_per_property_and_a_summary(passing_run: RunResult) -> None:
    lines = _printed(passing_run).splitlines()
    for result in passing_run.properties:
        assert sum(f" {result.name} " in line for line in lines) == 1
    assert words.verdict_sentence(passing_run) in lines[-2]


def test_lines_are_not_wrapped_even_on_a_narrow_console(passing_run: RunResult) -> None:
    assert _printed(passing_run, width=40) == _printed(passing_run, width=400)


def test_a_failing_property_is_the_block_of_the_house_style(failing_run: RunResult) -> None:
    text = _printed(failing_run)
    assert (
        "\ntransition_invariance FAILED  CartPole-v1 under C2\n  at        g = g, s = [0, 0.5, 0, 0], a = 1\n" in text
    )
    assert "  residual  3.1e-02 in theta" in text
    assert "  likely    (a) theta and theta_dot carry different signs in the symmetry\n            (b) " in text
    assert "  again     symcheck replay report.json\n" in text


def test_an_undecided_property_says_what_would_decide_it(failing_run: RunResult) -> None:
    assert "--max-time 10 would decide it" in _printed(failing_run)


def test_a_reason_that_several_properties_share_is_printed_once(passing_run: RunResult) -> None:
    late, few = decide(Facts(checked=3, least=9, time_up=True)), decide(Facts(checked=3, least=9))
    reasons = [late, late, few, *[late] * (len(passing_run.properties) - 3)]
    changed = (
        replace(p, verdict=verdict, reason=reason, notes=(), bound=None)
        for p, (verdict, reason) in zip(passing_run.properties, reasons, strict=True)
    )
    text = _printed(replace(passing_run, properties=tuple(changed)))
    assert text.count("undecided  ") == len(reasons) + 1
    assert text.count("The time budget ran out") == 2
    assert text.count("9 checks are needed") == 1


def test_quiet_prints_failures_and_one_line_per_run(failing_run: RunResult, passing_run: RunResult) -> None:
    assert _printed(passing_run, quiet=True).count("\n") == 1
    quiet = _printed(failing_run, quiet=True)
    assert "FAILED" in quiet
    assert "reward_invariance" not in quiet


def test_several_runs_end_with_their_count(several_runs: list[RunResult]) -> None:
    assert _printed(several_runs).rstrip().endswith("3 symmetries checked: 2 failed, 1 passed.")


def test_colour_changes_no_word(failing_run: RunResult) -> None:
    coloured = _printed(failing_run, colour=True)
    assert "\x1b[" in coloured
    plain = Console(file=io.StringIO())
    assert words.verdict_sentence(failing_run) in coloured
    assert plain is not None


def test_outside_text_cannot_write_escape_sequences_or_markup(hostile_run: RunResult) -> None:
    text = _printed(hostile_run)
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "<script>alert(1)</script>" in text


def test_square_brackets_are_text_and_not_markup(passing_run: RunResult) -> None:
    run = RunResult("env", "[red]Mine[/red]", "m", {"name": "C2", "order": 2}, passing_run.properties, 0.01, 0)
    assert "[red]Mine[/red]" in _printed(run)


def test_terminal_output_is_as_agreed(several_runs: list[RunResult], gold: Callable[[str, str], None]) -> None:
    gold("several.txt", _printed(several_runs))


def test_a_network_that_is_tested_on_samples_only_says_why(passing_run: RunResult) -> None:
    why = "samples: the proof could not trace the group action through layer 3"
    passed = replace(passing_run, kind="net", method_reason=why)
    assert f"method: {why}" in "\n".join(line.plain for line in terminal.run_lines(passed))
    proved = replace(passed, properties=tuple(replace(p, verdict="proved") for p in passed.properties))
    for run in (proved, replace(passed, kind="env")):
        assert "method:" not in "\n".join(line.plain for line in terminal.run_lines(run))
