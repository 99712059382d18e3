"""`symcheck card`: a block for a model card, or a badge, from a JSON report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from symcheck.cli.exit_codes import reports_mistakes
from symcheck.errors import OptionError, SymcheckError


@reports_mistakes
def command(
    file: Annotated[Path, typer.Argument(help="A JSON report.")],
    badge: Annotated[
        Path | None, typer.Option(help="Write a badge: SVG, or the JSON that a badge service reads (.json).")
    ] = None,
) -> None:
    """Print the results of a report as a Markdown block for a model card.

    Example: symcheck card report.json --badge symmetry.svg
    """
    from symcheck.documents import UnreadableError, read_json
    from symcheck.files import write_text
    from symcheck_reports import card

    try:
        runs = card.read_runs(read_json(file))
    except OSError as error:
        raise SymcheckError(f"the file cannot be read: {error.strerror or error}.", where=str(file)) from error
    except (UnreadableError, ValueError) as error:
        raise SymcheckError(f"expected a JSON report, got: {error}.", where=str(file)) from error
    if badge is not None and badge.suffix not in (".svg", ".json"):
        raise OptionError(f"expected an .svg or a .json file, got {badge}.", where="--badge")
    typer.echo(card.render(runs), nl=False)
    if badge is not None:
        write_text(badge, card.badge_svg(runs) if badge.suffix == ".svg" else card.badge_json(runs))
        typer.echo(f"written: {badge}", err=True)
