"""`reference-agents`: the application and its commands.

Importing this module imports neither torch nor gymnasium: `reference-agents --help` answers at once.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from symcheck.errors import SymcheckError

UNUSABLE, INTERRUPTED = 2, 130

app = typer.Typer(
    name="reference-agents",
    help="Train equivariant networks and their baselines, many seeds at once, and draw their learning curves.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 done, 1 a network that should be equivariant is not, 2 unusable input, 130 interrupted.",
)


@app.command("train")
def train(
    task: Annotated[str, typer.Argument(metavar="TASK", help="What to learn; see `reference-agents list`.")],
    network: Annotated[str, typer.Option("--network", help="Which network.")] = "equivariant",
    seeds: Annotated[int, typer.Option("--seeds", help="How many seeds, from 0 on.")] = 5,
    learning_rate: Annotated[
        str | None, typer.Option("--learning-rate", metavar="X,Y,...", help="One or several; each with every seed.")
    ] = None,
    steps: Annotated[int | None, typer.Option("--steps", help="Environment steps of each run.")] = None,
    preset: Annotated[
        str, typer.Option("--preset", help="paper or tuned: where the other settings come from.")
    ] = "paper",
    device: Annotated[str, typer.Option("--device", help="cpu or cuda.")] = "cpu",
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="The folder of runs.")] = Path("runs"),
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bar.")] = False,
) -> None:
    """Train all seeds of one network at all learning rates, as one program."""
    from reference_agents.cli.train import Request, run_training

    rates = None if learning_rate is None else tuple(part.strip() for part in learning_rate.split(","))
    request = Request(task, network, seeds, rates, steps, preset, device, out, quiet, _command_line())
    _exit_with(lambda: run_training(request))


@app.command("report")
def report(folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder of runs.")]) -> None:
    """Write DIR/report.html: learning curves with quartiles, steps to the threshold, settings, verdicts."""
    from reference_agents.cli.report import write_report

    _exit_with(lambda: write_report(folder))


@app.command("list")
def list_() -> None:
    """List the tasks and the networks that each of them takes."""
    from reference_agents.cli.listing import print_listing

    print_listing()


def _exit_with(command: Callable[[], int]) -> None:
    """Run a command; a user's mistake becomes one message and code 2, an interrupt 130."""
    try:
        code = command()
    except SymcheckError as error:
        typer.echo(f"reference-agents: {error}", err=True)
        raise typer.Exit(UNUSABLE) from error
    except KeyboardInterrupt as error:
        typer.echo("interrupted before anything was finished", err=True)
        raise typer.Exit(INTERRUPTED) from error
    raise typer.Exit(code)


def _command_line() -> str:
    import shlex

    return shlex.join(["reference-agents", *sys.argv[1:]])


def main() -> None:
    """Run the application; the console script."""
    try:
        app()
    except KeyboardInterrupt:
        typer.echo("interrupted", err=True)
        sys.exit(INTERRUPTED)
