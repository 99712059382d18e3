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
    task: Annotated[str, typer.Argument(metavar="TASK", help="A task of `reference-agents list`, or a Gymnasium id.")],
    network: Annotated[str | None, typer.Option("--network", help="Which network; equivariant if left out.")] = None,
    seeds: Annotated[int | None, typer.Option("--seeds", help="How many seeds, from 0 on; 5 if left out.")] = None,
    learning_rate: Annotated[
        str | None, typer.Option("--learning-rate", metavar="X,Y,...", help="One or several; each with every seed.")
    ] = None,
    steps: Annotated[int | None, typer.Option("--steps", help="Environment steps of each run.")] = None,
    preset: Annotated[
        str | None, typer.Option("--preset", help="paper or tuned; the paper's where it has the task.")
    ] = None,
    device: Annotated[str | None, typer.Option("--device", help="cpu or cuda; cpu if left out.")] = None,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="The folder of runs.")] = Path("runs"),
    resume: Annotated[
        Path | None, typer.Option("--resume", metavar="RUN", help="Go on with a training that was stopped.")
    ] = None,
    processes: Annotated[int, typer.Option("--processes", help="Spread the seeds over this many processes.")] = 1,
    executor: Annotated[str, typer.Option("--executor", help="local, or dask: a Dask cluster.")] = "local",
    scheduler: Annotated[
        str | None, typer.Option("--scheduler", metavar="ADDRESS", help="Of the Dask cluster; a local one if left out.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bar.")] = False,
) -> None:
    """Train all seeds of one network at all learning rates, as one program."""
    from reference_agents.cli.train import Request, run_training

    request = Request(
        task,
        network,
        seeds,
        _words(learning_rate),
        steps,
        preset,
        device,
        out,
        quiet,
        _command_line(),
        resume,
        processes,
    )
    _exit_with(lambda: run_training(request))


@app.command("sweep")
def sweep(
    task: Annotated[str, typer.Argument(metavar="TASK", help="What to learn; see `reference-agents list`.")],
    preset: Annotated[
        str | None, typer.Option("--preset", help="paper or tuned; the paper's where it has the task.")
    ] = None,
    networks: Annotated[
        str | None, typer.Option("--network", metavar="A,B,...", help="Which networks; the paper's where left out.")
    ] = None,
    seeds: Annotated[
        int | None, typer.Option("--seeds", help="How many seeds; the paper's number where left out.")
    ] = None,
    learning_rate: Annotated[
        str | None, typer.Option("--learning-rate", metavar="X,Y,...", help="The paper's grid where left out.")
    ] = None,
    steps: Annotated[int | None, typer.Option("--steps", help="Environment steps of each run.")] = None,
    device: Annotated[str, typer.Option("--device", help="cpu or cuda.")] = "cpu",
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="The folder of runs.")] = Path("runs"),
    processes: Annotated[int, typer.Option("--processes", help="Spread the seeds over this many processes.")] = 1,
    executor: Annotated[str, typer.Option("--executor", help="local, or dask: a Dask cluster.")] = "local",
    scheduler: Annotated[
        str | None, typer.Option("--scheduler", metavar="ADDRESS", help="Of the Dask cluster; a local one if left out.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bar.")] = False,
) -> None:
    """Train every network of a task at every learning rate with every seed, one network after the other."""
    from reference_agents.cli.sweep import SweepRequest, run_sweep

    request = SweepRequest(
        task,
        _words(networks),
        seeds,
        _words(learning_rate),
        steps,
        preset,
        device,
        out,
        quiet,
        _command_line(),
        processes,
    )
    _exit_with(lambda: run_sweep(request))


@app.command("evaluate")
def evaluate(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.")],
    episodes: Annotated[int, typer.Option("--episodes", help="How many episodes of each network.")] = 100,
    greedy: Annotated[bool, typer.Option("--greedy", help="Take the likeliest action, not a sampled one.")] = False,
    seed: Annotated[int, typer.Option("--seed", help="Of the episodes.")] = 0,
) -> None:
    """Play episodes with every trained network of a run."""
    from reference_agents.cli.evaluate import evaluate_run

    _exit_with(lambda: evaluate_run(run, episodes=episodes, greedy=greedy, seed=seed))


@app.command("export")
def export(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.")],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="The file to write, for instance policy.pt2.")],
    learning_rate: Annotated[
        float | None, typer.Option("--learning-rate", help="Which; the first if left out.")
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Which; the first if left out.")] = None,
) -> None:
    """Write one trained network as a torch.export file (.pt2)."""
    from reference_agents.cli.export import export_run

    _exit_with(lambda: export_run(run, out, learning_rate=learning_rate, seed=seed))


@app.command("report")
def report(folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder of runs.")]) -> None:
    """Write DIR/report.html: learning curves with quartiles, steps to the threshold, settings, verdicts."""
    from reference_agents.cli.report import write_report

    _exit_with(lambda: write_report(folder))


@app.command("compare")
def compare(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR...", help="Folders of runs of one task.")],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="The page to write.")] = Path("compare.html"),
) -> None:
    """Write one page that draws the runs of several folders together."""
    from reference_agents.cli.report import write_comparison

    _exit_with(lambda: write_comparison(folders, out))


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


def _words(text: str | None) -> tuple[str, ...] | None:
    return None if text is None else tuple(word.strip() for word in text.split(","))


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
