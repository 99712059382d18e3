"""`symcheck discover`: search an environment for symmetries."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from symcheck.cli import arguments
from symcheck.cli.derive import values_of, with_options
from symcheck.cli.exit_codes import ExitCode, reports_mistakes
from symcheck.cli.outputs import Outputs
from symcheck.discovery.options import DiscoverOptions

if TYPE_CHECKING:
    from symcheck.api.discover import Discovered


@with_options(DiscoverOptions, Outputs, leave_out=("fail_on", "junit", "markdown"))
@reports_mistakes
def command(
    target: arguments.Environment,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            help="Write the symmetry found as a SPEC file (.toml) for verify-env, or, for a game, as a Python file for "
            "verify-game --symmetries.",
        ),
    ] = None,
    adapter: Annotated[
        str | None, typer.Option(help="TARGET is a game of this library: alphazero, openspiel, pgx or pettingzoo.")
    ] = None,
    **given: Any,
) -> None:
    """Search an environment or a board game for symmetries, verify each candidate, and write the result to a file.

    Exit codes: 0 found and verified, 1 every candidate was rejected, 2 unusable input, 3 something is undecided.

    Example: symcheck discover CartPole-v1 --out cartpole.toml
    """
    from symcheck.games.opening import is_game

    if adapter is not None or is_game(target):
        from symcheck.cli.discover_game import discover_board

        raise typer.Exit(discover_board(target, adapter, out, given))
    chosen = values_of(DiscoverOptions, given)
    html, json_path, quiet = (given[name] for name in ("html", "json_path", "quiet"))
    from symcheck.files import check_outputs

    check_outputs({"--out": out, "--html": html, "--json": json_path})
    from symcheck.api.discover import discover
    from symcheck.cli.watching import watched

    with watched(Outputs(quiet=quiet), max_time=chosen.get("max_time"), reports=False) as emit:
        discovered = discover(target, emit=emit, **chosen)
    _print_discovery(discovered, quiet=quiet, show_spec=out is None)
    _write(discovered, out, html, json_path, quiet=quiet)
    raise typer.Exit(_code(discovered))


def _print_discovery(found: Discovered, *, quiet: bool, show_spec: bool) -> None:
    from rich.console import Console

    from symcheck_reports.discovery_terminal import print_discovery

    if quiet:
        typer.echo(found.result.group["name"] if found.result.found else "none")
        return
    wide_enough = None if sys.stdout.isatty() else 100  # rich assumes a width of 80 for a pipe
    print_discovery(found.model(), Console(width=wide_enough, highlight=False), show_spec=show_spec)


def _write(found: Discovered, out: Path | None, html: Path | None, json_path: Path | None, *, quiet: bool) -> None:
    # The search succeeded nevertheless: this is a remark, not an error.
    if out is not None and not found.spec:
        typer.echo(f"not written: {out}, because no symmetry that a SPEC file can express was verified", err=True)
        out = None
    for path, save in ((out, found.save_spec), (html, found.save_html), (json_path, found.save_json)):
        if path is not None:
            save(path)
            if not quiet:
                typer.echo(f"written: {path}")


def _code(found: Discovered) -> ExitCode:
    if found.result.interrupted:
        return ExitCode.INTERRUPTED
    if found.result.found:
        return ExitCode.GOOD
    return ExitCode.UNDECIDED if found.verdict == "undecided" else ExitCode.FAILED
