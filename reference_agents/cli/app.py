"""`reference-agents`: the application and its commands.

Importing this module imports neither torch nor gymnasium, so `reference-agents --help` is fast.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from reference_agents.cli import completion, options
from symcheck.errors import SymcheckError
from symcheck.streams import INTERRUPTED

# Exit code for input that cannot be used.
UNUSABLE = 2

app = typer.Typer(
    name="reference-agents",
    help="Train equivariant networks and their baselines, many seeds at once, and draw their learning curves.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 done, 1 a network that should be equivariant is not, 2 unusable input, "
    "3 every run diverged, 130 interrupted.",
)


@app.command("train")
@options.of_training(
    network=typer.Option(
        "--network",
        help="The name of a network, or file.py:factory. Default: equivariant.",
        show_default=False,
        autocompletion=completion.network,
    ),
    resume=typer.Option("--resume", metavar="RUN", help="Resume a training run that was stopped.", show_default=False),
)
def train(**given: Any) -> None:
    """Train one network with several seeds (5 by default) and learning rates, all in one program.

    Example: reference-agents train cartpole --network equivariant --seeds 5
    """
    from reference_agents.cli.request import Request
    from reference_agents.cli.train import run_training

    request = Request(**_as_fields(given))
    _exit_with(lambda: run_training(request))


@app.command("sweep")
@options.of_training(
    network=typer.Option(
        "--network",
        metavar="A,B,...",
        help="Networks to train. Default: those of the paper.",
        show_default=False,
        autocompletion=completion.network_list,
    ),
    resume=typer.Option("--resume", metavar="DIR", help="Resume a sweep that was stopped.", show_default=False),
)
def sweep(network: str | None, **given: Any) -> None:
    """Train several networks. By default, seeds and learning rates are those of the paper.

    Example: reference-agents sweep cartpole --preset paper --processes 2 --out sweep
    """
    from reference_agents.cli.request import Request
    from reference_agents.cli.sweep import run_sweep

    request = Request(network=None, **_as_fields(given))
    _exit_with(lambda: run_sweep(request, _words(network)))


@app.command("evaluate")
def evaluate(
    run: options.RunFolder,
    episodes: Annotated[int, typer.Option("--episodes", help="Number of episodes for each network.")] = 100,
    greedy: Annotated[
        bool, typer.Option("--greedy", help="Take the most likely action instead of a sampled one.")
    ] = False,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the episodes.")] = 0,
    video: Annotated[
        Path | None,
        typer.Option(
            "--video",
            metavar="FILE",
            help=("Record an episode of the best network, as .gif or .mp4."),
            show_default=False,
        ),
    ] = None,
) -> None:
    """Play episodes with every trained network of a run.

    Example: reference-agents evaluate runs/cartpole-equivariant --greedy --video episode.gif
    """
    from reference_agents.cli.evaluate import evaluate_run

    _exit_with(lambda: evaluate_run(run, episodes=episodes, greedy=greedy, seed=seed, video=video))


@app.command("export")
def export(
    run: options.RunFolder,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="The file to write: policy.pt2, .onnx or .pt.")],
    learning_rate: Annotated[
        float | None, typer.Option("--learning-rate", help="Learning rate of the run to export. Default: the first.")
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Seed of the run to export. Default: the first.")] = None,
) -> None:
    """Write one trained network as a torch.export program (.pt2), an ONNX model (.onnx) or a state_dict (.pt).

    Example: reference-agents export runs/cartpole-equivariant --out policy.onnx
    """
    from reference_agents.cli.export import export_run

    _exit_with(lambda: export_run(run, out, learning_rate=learning_rate, seed=seed))


@app.command("report")
def report(folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder of runs.")]) -> None:
    """Write DIR/report.html: learning curves with quartiles, steps to the threshold, settings, verdicts.

    Example: reference-agents report runs
    """
    from reference_agents.cli.report import write_report

    _exit_with(lambda: write_report(folder))


@app.command("compare")
def compare(
    folders: Annotated[
        list[Path],
        typer.Argument(
            metavar="DIR...",
            help="Folders of runs of one task, or results of other trainers: Monitor or TensorBoard files, "
            "a W&B chart as .csv.",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="The page to write.")] = Path("compare.html"),
) -> None:
    """Write one page that draws the runs of several folders together.

    Example: reference-agents compare runs sweep --out compare.html
    """
    from reference_agents.cli.report import write_comparison

    _exit_with(lambda: write_comparison(folders, out))


@app.command("curves")
def curves(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR...", help="Folders of runs.")],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="The table to write: .csv or .parquet.")],
) -> None:
    """Write all learning curves below the given folders as one table.

    Example: reference-agents curves runs --out curves.parquet
    """
    from reference_agents.cli.curves import write_curves

    _exit_with(lambda: write_curves(folders, out))


@app.command("list")
def list_(
    folder: Annotated[
        Path | None, typer.Argument(metavar="DIR", help="A folder of runs to list.", show_default=False)
    ] = None,
    settings: Annotated[bool, typer.Option("--settings", help="List the settings that --set can change.")] = False,
) -> None:
    """List the tasks and their networks, the settings, or the runs below a folder.

    Example: reference-agents list --settings
    """
    from reference_agents.cli.listing import print_listing, print_runs, print_settings

    def show() -> int:
        if settings:
            print_settings()
        elif folder is not None:
            print_runs(folder)
        else:
            print_listing()
        return 0

    _exit_with(show)


def _exit_with(command: Callable[[], int]) -> None:
    """Run a command; a user's mistake becomes one message and code 2, an interrupt 130."""
    try:
        with _terminate_as_interrupt():
            code = command()
    # Only errors of symcheck become one line; any other error is a defect and keeps its traceback.
    except SymcheckError as error:
        typer.echo(f"reference-agents: {error}", err=True)
        raise typer.Exit(UNUSABLE) from error
    except KeyboardInterrupt as error:
        typer.echo("interrupted before anything was finished", err=True)
        raise typer.Exit(INTERRUPTED) from error
    raise typer.Exit(code)


@contextlib.contextmanager
def _terminate_as_interrupt() -> Iterator[None]:
    """Handle SIGTERM, as sent by a cluster's scheduler, like Ctrl-C: the finished part of a training run is saved."""
    # Only the main thread may set handlers.
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _as_fields(given: dict[str, Any]) -> dict[str, Any]:
    """The fields of a `Request` from typer's arguments."""
    learning_rate, setting = given.pop("learning_rate"), given.pop("setting")
    return {
        **given,
        "learning_rates": _words(learning_rate),
        "changes": tuple(setting or ()),
        "command": _command_line(),
    }


def _words(text: str | None) -> tuple[str, ...] | None:
    return None if text is None else tuple(word.strip() for word in text.split(","))


def _command_line() -> str:
    import shlex

    # The program's name instead of a path, so that the recorded command can be pasted anywhere.
    return shlex.join(["reference-agents", *sys.argv[1:]])
