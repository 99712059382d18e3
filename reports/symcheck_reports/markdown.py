"""Markdown for pull requests and step summaries: a table of verdicts, then failures in full.

External text is in code spans or escaped, so it can neither format the comment nor mention users. The report stays
below the size at which GitHub drops a whole step summary.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from symcheck.engine.results import PropertyResult, RunResult, overall_verdict
from symcheck_reports import words
from symcheck_reports.bounds import bound_sentence
from symcheck_reports.formatting import clean, one_line, plural, scientific

# GitHub drops a step summary above 1,024 kB entirely; this leaves room for other output of the job.
BUDGET_BYTES = 900_000
_COLUMNS_SHOWN = 60  # maximum number of rows of wrong columns; a robot has 12 to 60 joints
_WORDS_OF_VERDICT = {"proved": "proved", "passed": "passed", "failed": "**failed**", "undecided": "**undecided**"}
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>()#+\-.!|~@&])")


def render(results: Sequence[RunResult] | RunResult, *, budget: int = BUDGET_BYTES) -> str:
    """The report as GitHub-flavoured Markdown that ends with a newline.

    Args:
        results: one or more runs.
        budget: the largest number of bytes; less than `BUDGET_BYTES` if text is appended to a summary.

    Returns:
        At most `budget` bytes of UTF-8 (at least a verdict and a note). Passes are left out first, then the ends of
        long failures; omissions are counted.

    Example:
        >>> held = PropertyResult("reward_invariance", "passed", "paired", 500)
        >>> run = RunResult("env", "Mine-v0", "mirror", {"name": "C2", "order": 2}, (held,), 0.01, 0)
        >>> print(render(run).splitlines()[0])
        ## symcheck: passed
    """
    runs = [results] if isinstance(results, RunResult) else list(results)
    verdict = overall_verdict(run.verdict for run in runs)
    lead = words.verdict_sentence(runs[0]) if len(runs) == 1 else words.summary_sentence(runs)
    head = f"## symcheck: {verdict}\n\n{escaped(lead)}\n\n"
    ordered = sorted(runs, key=lambda run: run.verdict in ("passed", "proved"))
    return head + _fitting([_run_section(run, several=len(runs) > 1) for run in ordered], budget - len(head.encode()))


def _fitting(parts: Sequence[str], budget: int) -> str:
    """As many complete parts as fit, failures first, and the number of omitted ones."""
    note_bytes = 200
    kept, used = [], 0
    for part in parts:
        size = len(part.encode("utf-8"))
        if used + size > budget - note_bytes:
            break
        kept.append(part)
        used += size
    left_out = len(parts) - len(kept)
    note = f"{plural(left_out, 'run')} left out to keep this summary small; the JSON report has them all.\n"
    return "".join(kept) + (note if left_out else "")


def _run_section(run: RunResult, *, several: bool) -> str:
    lines = [f"### {escaped(words.verdict_sentence(run))}", ""] if several else []
    lines += ["| property | verdict | evidence | residual | tolerance |", "|---|---|---|---:|---:|"]
    lines += [_property_row(result) for result in run.properties]
    lines.append("")
    for result in run.properties:
        if result.verdict in ("failed", "undecided"):
            lines += [*_details(result, run), ""]
    lines += _wrong_columns(run)
    facts = "; ".join(f"{name} {text}" for name, text in words.facts(run))
    lines.append(f"<sub>{escaped(facts)}</sub>")
    if run.command:
        lines += ["", *_fenced([clean(run.command)])]
    text = "\n".join([*lines, "", ""])
    return text if len(text.encode("utf-8")) < BUDGET_BYTES // 2 else _cut(text, BUDGET_BYTES // 2)


def _wrong_columns(run: RunResult) -> list[str]:
    """The wrong columns of a mirror function, one row each."""
    if not run.columns:
        return []
    lines = ["| column | term | name | expected | found | code |", "|---|---|---|---|---|---|"]
    for column in run.columns[:_COLUMNS_SHOWN]:
        place = f"{column['group']}[{column['index']}]"
        cells = (place, *(str(column[key]) for key in ("term", "name", "expected", "found", "code")))
        lines.append("| " + " | ".join(escaped(cell) for cell in cells) + " |")
    more = len(run.columns) - _COLUMNS_SHOWN
    return [*lines, "", *([f"{plural(more, 'more column')} in the JSON report.", ""] if more > 0 else [])]


def _cut(text: str, budget: int) -> str:
    shortened = text.encode("utf-8")[:budget].decode("utf-8", errors="ignore")
    fence = "\n" + "`" * 16 if shortened.count("\n```") % 2 else ""
    return f"{shortened}{fence}\n\nThe rest is left out to keep this summary small; the JSON report has all of it.\n\n"


def _property_row(result: PropertyResult) -> str:
    cells = (
        f"`{_code(result.name, 60)}`",
        _WORDS_OF_VERDICT[result.verdict] + _verdict_with_qualifications(result),
        escaped("; ".join(filter(None, (words.evidence(result), bound_sentence(result.bound), words.remark(result))))),
        scientific(words.largest_residual(result)),
        scientific(result.tolerance),
    )
    return "| " + " | ".join(cells) + " |"


def _verdict_with_qualifications(result: PropertyResult) -> str:
    texts = [escaped(text) for text in words.qualifications(result)]
    return f" ({', '.join(texts)})" if texts else ""


def _details(result: PropertyResult, run: RunResult) -> list[str]:
    return _fenced(words.property_lines(result, run))


def _fenced(lines: Sequence[str]) -> list[str]:
    longest = max((len(run) for line in lines for run in re.findall("`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}text", *lines, fence]


def _code(text: str, limit: int) -> str:
    return one_line(text, limit).replace("`", "'").replace("|", "\\|")


def escaped(text: str) -> str:
    r"""Escape text so that Markdown shows it literally.

    Example:
        >>> print(escaped("a_b <b> @me"))
        a\_b \<b\> \@me
    """
    return _SPECIAL.sub(r"\\\1", clean(text).replace("\n", " "))
