"""`symcheck report`: an index page over a folder of reports."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from symcheck.cli.exit_codes import reports_mistakes
from symcheck.errors import TargetError


@reports_mistakes
def command(folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder with JSON reports.")]) -> None:
    """Write DIR/index.html, a table of all verdicts found below DIR, with links to their pages.

    Example: symcheck report reports
    """
    from symcheck.files import write_text
    from symcheck_reports import index

    if not folder.is_dir():
        raise TargetError(f"expected a folder, got {folder}.", where="DIR", remedy="Check the path.")
    listed = index.read_folder(folder)
    if not listed.entries and not listed.pages and not listed.unreadable:
        raise TargetError(
            f"there are no JSON reports in {folder} or its subfolders.",
            where="DIR",
            remedy=f"Write a report: symcheck verify-env CartPole-v1 --json {folder}/cartpole.json",
        )
    typer.echo(f"written: {write_text(folder / index.INDEX_NAME, index.render_index(listed))}")
