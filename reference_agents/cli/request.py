"""The options that the user gave, and the job built from them."""

from __future__ import annotations

import importlib
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from reference_agents.cli.completion import DEVICES, EXECUTORS
from reference_agents.compiled.engine import AUTO, choose_engine
from reference_agents.networks.user import settings_of_module
from reference_agents.settings import default_rate, parse_changes, preset, preset_name
from reference_agents.tasks import resolve_network, resolve_task
from reference_agents.trainer import Job
from reference_agents.vectorised import check_environment
from symcheck.errors import MissingExtraError, OptionError, suggestion

# The default network and number of seeds.
DEFAULT_NETWORK, DEFAULT_SEEDS = "equivariant", 5


@dataclass(frozen=True)
class Request:
    """The options as given; None for options that were not given."""

    task: str | None
    network: str | None
    seeds: int | None
    learning_rates: tuple[str, ...] | None
    steps: int | None
    preset: str | None
    device: str | None
    out: Path
    quiet: bool
    command: str
    env: str | None = None
    symmetry: str | None = None
    evaluation_every: int | None = None
    evaluation_episodes: int | None = None
    max_episode_steps: int | None = None
    changes: tuple[str, ...] = ()
    tensorboard: bool = False
    wandb: bool = False
    resume: Path | None = None
    processes: int | None = None
    executor: str = "local"
    engine: str | None = None
    scheduler: str | None = None

    @property
    def task_name(self) -> str:
        """The name of the task or environment.

        Raises:
            OptionError: neither was given, or both.
        """
        if self.task is not None and self.env is not None:
            raise OptionError(f"TASK and --env cannot be combined, got {self.task!r} and {self.env!r}.", where="--env")
        name = self.task if self.env is None else self.env
        if name is None:
            raise OptionError("neither TASK nor --env was given.", where="TASK", remedy="See: reference-agents list")
        return name


def check_execution(request: Request) -> None:
    """Reject unknown executors, invalid numbers of processes, and options whose extra is missing.

    Raises:
        OptionError: an option is invalid; the message names it.
        MissingExtraError: a Dask cluster, TensorBoard logs or Weights & Biases without their packages.
    """
    if request.executor not in EXECUTORS:
        raise OptionError(
            f"unknown executor {request.executor!r}.",
            where="--executor",
            remedy=suggestion(request.executor, EXECUTORS),
        )
    if request.processes is not None and request.processes < 1:
        raise OptionError(f"expected 1 or more processes, got {request.processes}.", where="--processes")
    if request.scheduler is not None and request.executor != "dask":
        raise OptionError("the address of a scheduler also requires --executor dask.", where="--scheduler")
    if request.executor == "dask":
        _require("distributed", "distributed", needed_for="--executor dask")
    if request.tensorboard:
        _require("tensorboard", "logs", needed_for="--tensorboard")
    if request.wandb:
        _require("wandb", "wandb", needed_for="--wandb")


def _require(package: str, extra: str, *, needed_for: str) -> None:
    # Imported now, so that a missing package ends the command before the training begins.
    try:
        importlib.import_module(package)
    except ImportError as error:
        raise MissingExtraError(extra, needed_for=needed_for) from error


def build_job(request: Request) -> Job:
    """Build the job from the options.

    Raises:
        OptionError: an option cannot be used; the message gives the option, the expected and the given value.
        TargetError: an environment or a network cannot be used.
    """
    check_execution(request)
    task = resolve_task(request.task_name, request.symmetry)
    check_environment(task)
    network = resolve_network(task, request.network or DEFAULT_NETWORK)
    seeds = DEFAULT_SEEDS if request.seeds is None else request.seeds
    if seeds < 1:
        raise OptionError(f"expected 1 or more seeds, got {seeds}.", where="--seeds")
    named = {
        "--steps": ("steps", request.steps),
        "--evaluation-every": ("steps between evaluations", request.evaluation_every),
        "--evaluation-episodes": ("episodes of an evaluation", request.evaluation_episodes),
        "--max-episode-steps": ("steps of an episode", request.max_episode_steps),
    }
    for option, (quantity, number) in named.items():
        if number is not None and number < 1:
            raise OptionError(f"expected 1 or more {quantity}, got {number}.", where=option)
    # The preset first, then each change over it.
    chosen = preset_name(task.name, request.preset, continuous=task.continuous)
    settings = preset(task.name, chosen).with_changes(**changes(request))
    if network.basis == "user":
        settings = settings_of_module(settings, changes(request), where="--set")
    # Returns of training episodes come batch by batch: an interval shorter than a batch would be empty.
    if settings.evaluation == "training" and settings.batch > settings.evaluation_every:
        raise OptionError(
            f"evaluations must be at least one update ({settings.batch} steps) apart.", where="--evaluation-every"
        )
    given = request.learning_rates
    rate = default_rate(task.name, chosen, network.name, network.learning_rate)
    rates = (rate,) if given is None else learning_rates(given)
    network = network.with_quirks(asdict(settings))
    device = check_device(request.device or "cpu")
    engine = choose_engine(request.engine or AUTO, task, network, settings, device)[0]
    return Job(task, network, tuple(range(seeds)), rates, settings, device, engine)


def changes(request: Request) -> dict[str, object]:
    """The settings that the user changed, by name.

    Raises:
        OptionError: an unknown setting, a value of the wrong type, or a setting given twice.
    """
    given: dict[str, object] = {
        "steps": request.steps,
        "evaluation_every": request.evaluation_every,
        "evaluation_episodes": request.evaluation_episodes,
        "max_episode_steps": request.max_episode_steps,
    }
    stated = {name: value for name, value in given.items() if value is not None}
    changed = parse_changes(request.changes)
    # `--steps 10 --set steps=20` gives one setting two values.
    if twice := sorted(stated.keys() & changed.keys()):
        raise OptionError(
            f"each setting can be given only once, but these are given twice: {', '.join(twice)}.", where="--set"
        )
    return {**stated, **changed}


def learning_rates(texts: Sequence[str]) -> tuple[float, ...]:
    """Learning rates in increasing order, without duplicates.

    Raises:
        OptionError: anything but positive numbers.
    """
    return tuple(sorted({_learning_rate(text) for text in texts}))


def _learning_rate(text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        # NaN fails the test below, with the same message as infinite and negative numbers.
        rate = math.nan
    if not (math.isfinite(rate) and rate > 0):
        raise OptionError(
            f"expected positive numbers separated by commas, got {text!r}.",
            where="--learning-rate",
            remedy="For instance 0.01 or 0.01,0.001.",
        )
    return rate


def check_device(name: str) -> str:
    """The device, if it is available.

    Raises:
        OptionError: the device is not available.
    """
    if name not in DEVICES:
        raise OptionError(f"expected 'cpu' or 'cuda', got {name!r}.", where="--device")
    if name == "cuda" and not torch.cuda.is_available():
        raise OptionError(
            f"expected a CUDA device, but torch {torch.__version__} sees none.",
            where="--device",
            remedy="Use --device cpu.",
        )
    return name
