"""Terminal output: one line per property with its verdict, failures in full, and the summary last.

The words are those of the page (`symcheck_reports.words`). External text is never interpreted as markup, and its
control characters are shown as escapes. Lines are not wrapped, so a log can be searched.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from symcheck.engine.results import PropertyResult, RunResult
from symcheck.statements.statement import as_sentence
from symcheck.verdict import Verdict
from symcheck_reports import words
from symcheck_reports.bounds import bound_sentence, region_parts
from symcheck_reports.evidence import is_warning
from symcheck_reports.formatting import one_line, scientific, seconds

_STYLES: dict[Verdict, str] = {
    "proved": "bold green",
    "passed": "green",
    "failed": "bold red",
    "undecided": "bold yellow",
}
_COLUMNS_SHOWN = 40
_VERDICT_WIDTH = len("undecided")


def print_run(results: Sequence[RunResult] | RunResult, console: Console, *, quiet: bool = False) -> None:
    """Print one or more runs, the summary last.

    Args:
        results: the runs, in order.
        console: the console, which also decides about colour.
        quiet: whether to print only failures and the one-line summary of each run.

    Example:
        >>> held = PropertyResult("reward_invariance", "passed", "paired", 500)
        >>> run = RunResult("env", "Mine-v0", "mirror", {"name": "C2", "order": 2}, (held,), 0.01, 0)
        >>> print_run(run, Console(width=100, color_system=None), quiet=True)
        passed     Mine-v0 is symmetric under mirror, according to 500 paired checks.
    """
    runs = [results] if isinstance(results, RunResult) else list(results)
    for index, run in enumerate(runs):
        if index and not quiet:
            console.print()
        for line in run_lines(run, quiet=quiet):
            _print_line(console, line)
    if len(runs) > 1:
        if not quiet:
            console.print()
        _print_line(console, Text(words.summary_sentence(runs), style="bold"))


def _print_line(console: Console, line: Text) -> None:
    console.print(line, soft_wrap=True, highlight=False)


def run_lines(run: RunResult, *, quiet: bool = False) -> list[Text]:
    """All lines of one run.

    Args:
        run: the run.
        quiet: whether to leave out the header and the properties that hold.

    Returns:
        One `rich.text.Text` per line.
    """
    lines = [] if quiet else [_header(run), Text()]
    width = max((len(one_line(p.name, 60)) for p in run.properties), default=0)
    for index, result in enumerate(run.properties):
        is_repeated = any(_shares_reason(result, following) for following in run.properties[index + 1 : index + 2])
        if result.verdict == "failed":
            lines += [*([Text()] if lines and lines[-1] else []), *failure_lines(result, run), Text()]
        elif not quiet:
            lines += property_lines(result, width, with_reason=not is_repeated)
    if not quiet:
        lines += _columns(run)
        lines += _regions(run)
        lines += _without_proof(run)
        lines += [Text()] if lines[-1] else []
    return [*lines, *_summary(run, quiet)]


def _regions(run: RunResult) -> list[Text]:
    """The regions to which the bounds refer, without repetition."""
    stated = (p.bound["region"] for p in run.properties if p.bound and p.bound.get("region"))
    regions = dict.fromkeys(str(part) for region in stated for part in region_parts(region))
    gap = " " * _VERDICT_WIDTH
    return [Text.assemble(gap, "  ", (f"region: {one_line(region, 300)}", "dim")) for region in regions]


def _without_proof(run: RunResult) -> list[Text]:
    """Why a network is tested on samples only."""
    if run.kind != "net" or run.verdict != "passed" or not str(run.method_reason):
        return []
    return [Text.assemble(" " * _VERDICT_WIDTH, "  ", (f"method: {one_line(str(run.method_reason), 300)}", "dim"))]


def _columns(run: RunResult) -> list[Text]:
    """The wrong columns of a mirror function, the first few."""
    lines = []
    for column in run.columns[:_COLUMNS_SHOWN]:
        place = one_line(f"{column['group']}[{column['index']}] {column['term']} {column['name']}", 80)
        text = f"expected {column['expected']}, found {column['found']}"
        lines.append(Text.assemble("  ", place.ljust(44), "  ", one_line(text, 200), "  ", (column["code"], "dim")))
    more = len(run.columns) - _COLUMNS_SHOWN
    return [*lines, Text(f"  and {more} more columns")] if more > 0 else lines


def _header(run: RunResult) -> Text:
    return Text.assemble((words.target_name(run), "bold"), f" under {words.claim_name(run)}")


def _shares_reason(result: PropertyResult, following: PropertyResult) -> bool:
    """Whether the next property is undecided for the same reason, which is then printed below the last of them only."""
    undecided = all(p.verdict == "undecided" and not p.causes for p in (result, following))
    return undecided and result.detail == following.detail


def property_lines(result: PropertyResult, width: int = 0, *, with_reason: bool = True) -> list[Text]:
    """The line of a passing or undecided property: verdict, name, evidence, residual, bound.

    Args:
        result: the property.
        width: the width of the column of names.
        with_reason: whether to append the reason of an undecided property.

    Returns:
        One line, followed by its reason and likely causes.
    """
    parts = [words.evidence(result)]
    if (largest := words.largest_residual(result)) is not None:
        against = f" (tolerance {scientific(result.tolerance)})" if result.tolerance is not None else ""
        parts.append(f"largest residual {scientific(largest)}{against}")
    if bound := bound_sentence(result.bound, with_region=False):
        parts.append(bound)
    parts += filter(None, [words.remark(result), ", ".join(words.qualifications(result))])
    name = one_line(result.name, 60).ljust(width)
    lines = [Text.assemble(_verdict(result.verdict), "  ", name, "  ", ("; ".join(parts), "dim"))]
    if with_reason and (result.verdict == "undecided" or words.qualifications(result)):
        lines.append(_labelled("because", one_line(result.detail, 1000)))
        lines += [_labelled("likely", cause) for cause in words.causes_lettered(result.causes)]
    else:
        lines += [_labelled("note", as_sentence(note.text)) for note in result.notes if is_warning(note)]
    return lines


def failure_lines(result: PropertyResult, run: RunResult) -> list[Text]:
    """The block of a failed property: place, claim, residual, likely causes, how to reproduce it."""
    group = one_line(str(run.group.get("name", "the group")), 40)
    name = (one_line(result.name, 60), "bold")
    beside = f" ({', '.join(qualified)})" if (qualified := words.qualifications(result)) else ""
    subject = f"{beside}  {words.target_name(run)} under {group}"
    head = Text.assemble(name, " ", ("FAILED", _STYLES["failed"]), subject)
    return [head, *(_labelled(label, text) for label, text in words.labelled_lines(result))]


def _labelled(label: str, text: str) -> Text:
    return Text.assemble("  ", (label.ljust(8), "dim"), "  ", text)


def _verdict(verdict: Verdict) -> Text:
    return Text(verdict.ljust(_VERDICT_WIDTH), style=_STYLES[verdict])


def _summary(run: RunResult, quiet: bool) -> list[Text]:
    line = Text.assemble(_verdict(run.verdict), "  ", words.verdict_sentence(run))
    if quiet:
        return [line]
    facts = f"{seconds(run.duration_s)}, seed {run.seed}, alpha {run.alpha:g} over the whole run"
    return [line, Text.assemble(" " * (_VERDICT_WIDTH + 2), (facts, "dim"))]
