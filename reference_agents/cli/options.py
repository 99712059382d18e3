"""The options that several commands share."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_type_hints

import typer

from reference_agents.cli import completion

TaskName = Annotated[
    str | None,
    typer.Argument(
        metavar="TASK",
        help="A task listed by `reference-agents list`.",
        show_default=False,
        autocompletion=completion.tasks,
    ),
]
Env = Annotated[
    str | None,
    typer.Option(
        "--env",
        metavar="TARGET",
        help="The environment, instead of TASK: a Gymnasium id, module:factory or file.py:factory.",
        show_default=False,
        autocompletion=completion.environments,
    ),
]
Symmetry = Annotated[
    str | None,
    typer.Option(
        "--symmetry",
        metavar="SPEC",
        help="The symmetry: an atlas entry, a .toml file or file.py:name. Default: that of the task.",
        show_default=False,
        autocompletion=completion.symmetries,
    ),
]
Changes = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Change a setting of the preset. Can be repeated.",
        show_default=False,
        autocompletion=completion.changes,
    ),
]
TensorBoard = Annotated[bool, typer.Option("--tensorboard", help="Write TensorBoard logs into the run (extra logs).")]
Wandb = Annotated[bool, typer.Option("--wandb", help="Send evaluations to Weights & Biases (extra wandb).")]
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.")]
Seeds = Annotated[
    int | None, typer.Option("--seeds", help="Number of seeds; the seeds are 0, 1, ...", show_default=False)
]
LearningRates = Annotated[
    str | None,
    typer.Option(
        "--learning-rate",
        metavar="X,Y,...",
        help=("One or more learning rates; every seed is trained with each of them."),
        show_default=False,
    ),
]
Steps = Annotated[
    int | None,
    typer.Option("--steps", help="Environment steps of each run. Default: the preset's number.", show_default=False),
]
Preset = Annotated[
    str | None,
    typer.Option(
        "--preset",
        help="paper, paper-code, tuned or control. Default: paper if the paper has the task, control for continuous "
        "actions, otherwise tuned.",
        show_default=False,
        autocompletion=completion.presets,
    ),
]
Engine = Annotated[
    str | None,
    typer.Option(
        "--engine",
        help="auto (the default), torch, or compiled (PPO on vectors in C, three times as fast).",
        show_default=False,
        autocompletion=completion.engines,
    ),
]
Device = Annotated[
    str | None,
    typer.Option("--device", help="cpu (the default) or cuda.", show_default=False, autocompletion=completion.devices),
]
Out = Annotated[Path, typer.Option("--out", metavar="DIR", help="The folder of runs.")]
Processes = Annotated[
    int | None,
    typer.Option("--processes", help="Distribute the seeds over this many processes. Default: 1.", show_default=False),
]
Executor = Annotated[
    str,
    typer.Option("--executor", help="local, or dask: a Dask cluster.", autocompletion=completion.executors),
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        "--scheduler",
        metavar="ADDRESS",
        help="Address of the Dask scheduler. Default: a new local cluster.",
        show_default=False,
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress bar.")]
MaxEpisodeSteps = Annotated[
    int | None,
    typer.Option(
        "--max-episode-steps",
        help="Truncate episodes after this many steps. Default: 1,000 if TARGET has no limit.",
        show_default=False,
    ),
]
EvaluationEvery = Annotated[
    int | None,
    typer.Option(
        "--evaluation-every",
        help="Environment steps between evaluations. Default: the preset's number.",
        show_default=False,
    ),
]
EvaluationEpisodes = Annotated[
    int | None,
    typer.Option(
        "--evaluation-episodes", help="Episodes per evaluation. Default: the preset's number.", show_default=False
    ),
]


_CommandT = TypeVar("_CommandT", bound=Callable[..., Any])


def _every_training(
    task: TaskName = None,
    network: str | None = None,
    env: Env = None,
    symmetry: Symmetry = None,
    seeds: Seeds = None,
    learning_rate: LearningRates = None,
    steps: Steps = None,
    preset: Preset = None,
    evaluation_every: EvaluationEvery = None,
    evaluation_episodes: EvaluationEpisodes = None,
    max_episode_steps: MaxEpisodeSteps = None,
    setting: Changes = None,
    device: Device = None,
    engine: Engine = None,
    out: Out = Path("runs"),
    resume: Path | None = None,
    processes: Processes = None,
    executor: Executor = "local",
    scheduler: Scheduler = None,
    tensorboard: TensorBoard = False,
    wandb: Wandb = False,
    quiet: Quiet = False,
) -> None:
    """The options of a training run, in the order of its help."""


def of_training(*, network: Any, resume: Any) -> Callable[[_CommandT], _CommandT]:
    """Give a command the options of a training run in place of its `**given`.

    Args:
        network: the option `--network`; its help text depends on the command.
        resume: the option `--resume`, likewise.

    Returns:
        A decorator that returns the command itself, with the signature that typer reads.
    """
    # Annotations are strings here (PEP 563); typer needs the objects.
    hints = get_type_hints(_every_training, include_extras=True)
    hints |= {"network": Annotated[str | None, network], "resume": Annotated[Path | None, resume]}
    signature = inspect.signature(_every_training)
    parameters = [item.replace(annotation=hints[name]) for name, item in signature.parameters.items()]

    def decorate(command: _CommandT) -> _CommandT:
        command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        command.__annotations__ = {item.name: item.annotation for item in parameters}
        return command

    return decorate
