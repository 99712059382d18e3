"""`symcheck discover` for a board game: its rotations and flips, and a Python file with the image function."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from symcheck.cli.exit_codes import ExitCode


def discover_board(target: str, adapter: str | None, out: Path | None, given: Mapping[str, Any]) -> ExitCode:
    """Search, print and write.

    Args:
        target: the game.
        adapter: as for verify-game.
        out: the file to which the image function is written.
        given: the options of `discover`.

    Returns:
        The exit code.

    Raises:
        SymcheckError: the game, an option or a path cannot be used.
    """
    from symcheck.api.discover_game import discover_game
    from symcheck.files import check_outputs

    html, json_path, quiet = (given[name] for name in ("html", "json_path", "quiet"))
    check_outputs({"--out": out, "--html": html, "--json": json_path})
    options = {name: given[name] for name in ("samples", "max_time", "alpha", "seed")}
    discovered = discover_game(target, adapter=adapter, **options)
    holds = discovered.verdict in ("passed", "proved")
    typer.echo((discovered.group["name"] if holds else "none") if quiet else discovered.to_text().rstrip())
    if out is not None and not holds:
        typer.echo(f"not written: {out}, because no symmetry was verified", err=True)
    writers = [(out, discovered.save)] if holds else []
    if discovered.report is not None:
        writers += [(html, discovered.report.save_html), (json_path, discovered.report.save_json)]
    for path, save in writers:
        if path is not None:
            save(path)
            if not quiet:
                typer.echo(f"written: {path}")
    return ExitCode.GOOD if holds else ExitCode.UNDECIDED if discovered.verdict == "undecided" else ExitCode.FAILED
