"""`symcheck`: the application, its commands, and the handling of interrupts.

Importing this module imports neither torch nor gymnasium, so `symcheck --help` is fast.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from symcheck import __version__
from symcheck.cli import (
    atlas,
    audit_policy,
    basis,
    card,
    check_certificate,
    discover,
    doctor,
    explain,
    replay,
    report,
    run,
    settings,
    settings_list,
    verify_env,
    verify_game,
    verify_mirror,
    verify_net,
)
from symcheck.cli.exit_codes import ExitCode
from symcheck.errors import SymcheckError, shortened


class _Commands(TyperGroup):
    """The group of commands; rejected input is shortened in error messages."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except Exception as error:
            message = vars(error).get("message")  # typer's usage errors have one, the exit of a command does not
            if isinstance(message, str):
                vars(error)["message"] = shortened(message)
            raise


app = typer.Typer(
    name="symcheck",
    cls=_Commands,
    help="Check symmetries of reinforcement-learning problems, and prove that networks are equivariant.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,  # rich's tracebacks show local variables, including those of a user's environment
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 proved or passed, 1 failed, 2 unusable input, 3 undecided, 4 crashed, 130 interrupted.",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"symcheck {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


app.command("verify-env")(verify_env.command)
app.command("verify-net")(verify_net.command)
app.command("verify-mirror")(verify_mirror.command)
app.command("verify-game")(verify_game.command)
app.command("audit-policy")(audit_policy.command)
app.command("check-certificate")(check_certificate.command)
app.command("run")(run.command)
app.command("replay")(replay.command)
app.command("explain")(explain.command)
app.command("report")(report.command)
app.command("discover")(discover.command)
app.command("atlas")(atlas.command)
app.command("basis")(basis.command)
app.command("card")(card.command)
app.command("settings")(settings_list.command)
app.command("doctor")(doctor.command)


def main() -> None:
    """Run the application; the console script. Settings of the project are the options' defaults."""
    try:
        # Read when the command runs, not on import: settings depend on the current folder.
        app(default_map=settings.command_defaults(settings.find_settings(Path.cwd())))
    except SymcheckError as error:  # invalid settings; commands report their own
        typer.echo(f"symcheck: {error}", err=True)
        sys.exit(ExitCode.UNUSABLE)
