"""The options that verify-env and verify-net share, each declared once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

_REPORTS = "Reports"
_BUDGET = "Budget"

Samples = Annotated[
    int | None,
    typer.Option(
        help="Pairs (input, group element) to test; the method's default when left out.", rich_help_panel=_BUDGET
    ),
]
MaxTime = Annotated[
    float | None,
    typer.Option(help="Stop after this many seconds; what is unfinished is undecided.", rich_help_panel=_BUDGET),
]
Alpha = Annotated[float, typer.Option(help="Probability of a false alarm over the whole run.", rich_help_panel=_BUDGET)]
Seed = Annotated[int, typer.Option(help="The same seed gives the same verdict.", rich_help_panel=_BUDGET)]
FailFast = Annotated[
    bool,
    typer.Option(
        "--fail-fast", help="Stop at the first property that fails; the rest is undecided.", rich_help_panel=_BUDGET
    ),
]
AcceptGap = Annotated[
    float | None,
    typer.Option(
        "--accept-gap",
        help="Pass as approximate what costs at most this much optimal value, in units of return.",
        rich_help_panel=_REPORTS,
    ),
]
Discount = Annotated[
    float, typer.Option(help="Discount of the returns that --accept-gap is about.", rich_help_panel=_REPORTS)
]
Baseline = Annotated[
    Path | None,
    typer.Option(
        "--baseline", help="Accepted approximate symmetries and their sizes, TOML or JSON.", rich_help_panel=_REPORTS
    ),
]
FailOnOption = Annotated[
    str,
    typer.Option(
        "--fail-on", help="What exits non-zero: failed, undecided or failed,undecided.", rich_help_panel=_REPORTS
    ),
]
Html = Annotated[Path | None, typer.Option("--html", help="Write one self-contained page.", rich_help_panel=_REPORTS)]
Json = Annotated[
    Path | None, typer.Option("--json", help="Write the results, schema symcheck/2.", rich_help_panel=_REPORTS)
]
Junit = Annotated[Path | None, typer.Option("--junit", help="Write JUnit XML for a CI.", rich_help_panel=_REPORTS)]
Markdown = Annotated[
    Path | None,
    typer.Option("--markdown", help="Append Markdown, as a step summary needs.", rich_help_panel=_REPORTS),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print the verdict only.", rich_help_panel=_REPORTS)]
