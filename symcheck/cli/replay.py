"""`symcheck replay`: reproduce a counterexample in a new process."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from symcheck.cli.exit_codes import FailOn, code_of, reports_mistakes


@reports_mistakes
def command(
    file: Annotated[
        Path,
        typer.Argument(help="A JSON report of verify-env, verify-net, verify-mirror, verify-game or audit-policy."),
    ],
    trust: Annotated[
        bool, typer.Option("--trust", help="Also import code from outside the current folder and the report's folder.")
    ] = False,
) -> None:
    """Reproduce the counterexamples of a JSON report. Exit codes: 0 none fails now, 1 one still fails, 3 undecided.

    The command of the report is printed first. The code that it names is then imported and run.

    Example: symcheck replay report.json
    """
    from rich.console import Console

    from symcheck.api.replay import replay
    from symcheck_reports import terminal

    report = replay(file, trust=trust, announce=lambda line: typer.echo(f"replaying: {line}\n"))
    terminal.print_run(report.results, Console(highlight=False))
    # Any verdict other than a pass exits non-zero: an undecided counterexample is not resolved.
    raise typer.Exit(code_of(report.verdict, interrupted=False, fail_on=frozenset(FailOn)))
