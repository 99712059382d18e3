"""The report files of a command: their paths are checked before the run and written after it."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from symcheck.cli.exit_codes import FailOn, code_of, parse_fail_on
from symcheck.engine.option_fields import option
from symcheck.engine.options import REPORTS
from symcheck.errors import SymcheckError

if TYPE_CHECKING:
    from symcheck.api.report import Report


@dataclass(frozen=True)
class Outputs:
    """The requested report files, and the verdicts that exit non-zero."""

    fail_on: str = option(
        "failed,undecided",
        "Verdicts that give a non-zero exit code: failed, undecided or failed,undecided.",
        panel=REPORTS,
        is_shared=True,
    )
    html: Path | None = option(None, "Write one self-contained HTML page.", kind=Path, panel=REPORTS, is_shared=True)
    json: Path | None = option(
        None, "Write the results as JSON, schema symcheck/2.", kind=Path, panel=REPORTS, is_shared=True
    )
    junit: Path | None = option(None, "Write JUnit XML for CI.", kind=Path, panel=REPORTS, is_shared=True)
    markdown: Path | None = option(
        None, "Append Markdown, for a GitHub step summary.", kind=Path, panel=REPORTS, is_shared=True
    )
    quiet: bool = option(False, "Print the verdict only.", kind=bool, panel=REPORTS, is_shared=True)

    def check(self) -> frozenset[FailOn]:
        """Reject paths that cannot be written, before any work is done, and read --fail-on.

        Raises:
            SymcheckError: a folder that does not exist, two outputs in one file, or an unknown verdict.
        """
        from symcheck.files import check_outputs

        check_outputs({"--html": self.html, "--json": self.json, "--junit": self.junit, "--markdown": self.markdown})
        return parse_fail_on(self.fail_on)

    def finish(self, report: Report, fail_on: frozenset[FailOn]) -> None:
        """Write the requested files, print the verdict and exit with the exit code.

        Raises:
            typer.Exit: with the run's code.
            SymcheckError: a file could not be written; the others are.
        """
        self.publish(report)
        raise typer.Exit(code_of(report.verdict, interrupted=report.interrupted, fail_on=fail_on))

    def publish(self, report: Report, *, is_shown: bool = True) -> None:
        """Write the requested files and print the verdict.

        Args:
            report: the report of one or more runs.
            is_shown: whether to print the report on the terminal too.

        Raises:
            SymcheckError: a file could not be written; the others are.
        """
        from symcheck.api.report import Report
        from symcheck.api.reproduce import with_reproduction
        from symcheck.files import write_text

        report = Report([with_reproduction(result, self.json) for result in report.results])
        if is_shown:
            self.show(report)
        writers = (
            (self.html, report.to_html, False),
            (self.json, report.to_json, False),
            (self.junit, report.to_junit, False),
            # Read the size when writing: the whole summary must stay below GitHub's limit.
            (self.markdown, lambda: report.to_markdown(after=_file_size(self.markdown)), True),
        )
        # If one file cannot be written, still write the others.
        problems: list[SymcheckError] = []
        for path, render, append in writers:
            if path is not None:
                try:
                    write_text(path, render(), append=append)
                except SymcheckError as error:
                    problems.append(error)
                    continue
                if not self.quiet:
                    typer.echo(f"written: {path}")
        if problems:
            raise SymcheckError(" ".join(str(problem) for problem in problems))

    def show(self, report: Report) -> None:
        """Print the verdict of each property, or only the verdict of the run if the command is quiet."""
        from rich.console import Console

        from symcheck_reports import annotations, terminal

        if self.quiet:
            typer.echo(report.verdict)
            return
        wide_enough = None if sys.stdout.isatty() else 100  # rich assumes a width of 80 for a pipe
        terminal.print_run(report.results, Console(width=wide_enough, highlight=False))
        # Workflow commands are read from standard output; elsewhere they would be noise.
        if os.environ.get("GITHUB_ACTIONS") == "true":
            typer.echo(annotations.render(report.results), nl=False)


def _file_size(path: Path | None) -> int:
    return path.stat().st_size if path is not None and path.is_file() else 0
