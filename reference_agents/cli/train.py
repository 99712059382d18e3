"""`reference-agents train`: check what was asked, train with a progress bar, save, and say what came of it."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table

from reference_agents.assemble import save_training
from reference_agents.checkpoint import Checkpointer, read, refuse_other_job
from reference_agents.dask_executor import train_on_dask
from reference_agents.record import Record, prepare_folder
from reference_agents.settings import preset, preset_name
from reference_agents.shards import train_in_processes
from reference_agents.tasks import resolve_network, resolve_task
from reference_agents.trainer import Job, State, train
from reference_agents.trainer import Progress as TrainingProgress
from reference_agents.vectorised import RESUMABLE
from reference_agents.verification import DIVERGED, NOT_CLAIMED
from symcheck.errors import OptionError, suggestion

DONE, NOT_EQUIVARIANT, INTERRUPTED = 0, 1, 130
EXECUTORS = ("local", "dask")
DEFAULT_NETWORK, DEFAULT_SEEDS = "equivariant", 5


@dataclass(frozen=True)
class Request:
    """What the user typed, as typed; None where nothing was said."""

    task: str
    network: str | None
    seeds: int | None
    learning_rates: tuple[str, ...] | None
    steps: int | None
    preset: str | None
    device: str | None
    out: Path
    quiet: bool
    command: str
    evaluation_every: int | None = None
    evaluation_episodes: int | None = None
    resume: Path | None = None
    processes: int = 1
    executor: str = "local"
    scheduler: str | None = None


def run_training(request: Request) -> int:
    """Train, save and summarise; the exit code.

    Raises:
        OptionError: for anything that cannot be used, before training starts.
        TargetError: where there is nothing to resume.
    """
    if request.resume is not None:
        return _resume(request, request.resume)
    job = build_job(request)
    folder = prepare_folder(request.out, _folder_name(job))
    plan = _Plan(
        job,
        folder,
        preset_name(job.task.name, request.preset),
        request.command,
        processes=request.processes,
        executor=request.executor,
        scheduler=request.scheduler,
    )
    return _train(plan, quiet=request.quiet)


def _resume(request: Request, folder: Path) -> int:
    checkpoint = read(folder)
    asked = {
        "task": resolve_task(request.task).name,
        "network": request.network,
        "seeds": request.seeds,
        "learning-rate": None if request.learning_rates is None else _rates(request.learning_rates),
        "steps": request.steps,
        "preset": request.preset,
        "device": request.device,
    }
    refuse_other_job(checkpoint, asked)
    _device(checkpoint.job.device)
    plan = _Plan(checkpoint.job, folder, checkpoint.preset, checkpoint.command, state=checkpoint.state)
    return _train(plan, quiet=request.quiet)


def _folder_name(job: Job) -> str:
    """Task and network; of a network in a file, the file's name and the factory's."""
    return re.sub(r"[^\w.-]+", "-", f"{job.task.name}-{job.network.name.rpartition('/')[2]}")


@dataclass(frozen=True)
class _Plan:
    """What is trained, where it is saved, and how."""

    job: Job
    folder: Path
    preset: str
    command: str
    processes: int = 1
    executor: str = "local"
    scheduler: str | None = None
    state: State | None = None


def _train(plan: _Plan, *, quiet: bool) -> int:
    job, console = plan.job, Console(stderr=True)
    total = job.settings.updates * job.settings.batch
    checkpointer = Checkpointer(plan.folder, job, preset=plan.preset, command=plan.command)
    with _progress_bar(console, hidden=quiet) as bar:
        shown = bar.add_task(f"{job.task.name} {job.network.name}", total=total, returns="")

        def advance(progress: TrainingProgress) -> None:
            bar.update(shown, completed=progress.env_steps, returns=_median_text(progress))

        offer = checkpointer.offer if job.task.environment in RESUMABLE else None
        try:
            if plan.executor == "dask":
                training = train_on_dask(job, scheduler=plan.scheduler, workers=plan.processes, on_progress=advance)
            elif plan.processes > 1:
                training = train_in_processes(job, plan.processes, on_progress=advance)
            else:
                training = train(job, on_progress=advance, on_checkpoint=offer, resume_from=plan.state)
            record = save_training(training, plan.folder, preset_name=plan.preset, command=plan.command)
        except OSError as error:
            raise OptionError(f"could not write {str(plan.folder)!r} ({error.strerror}).", where="--out") from error
    _summarise(record, plan.folder, Console())
    if record.interrupted:
        console.print("interrupted; what was finished is saved")
        return INTERRUPTED
    checkpointer.done()
    claims = job.network.claims_equivariance
    return NOT_EQUIVARIANT if claims and any(run.after.verdict == "failed" for run in record.runs) else DONE


def build_job(request: Request) -> Job:
    """The job that the user asked for.

    Raises:
        OptionError: naming the option, what was expected and what was given.
    """
    task = resolve_task(request.task)
    network = resolve_network(task, request.network or DEFAULT_NETWORK)
    seeds = DEFAULT_SEEDS if request.seeds is None else request.seeds
    if seeds < 1:
        raise OptionError(f"expected a number of seeds of 1 or more, got {seeds}.", where="--seeds")
    if request.executor not in EXECUTORS:
        raise OptionError(
            f"unknown executor {request.executor!r}.",
            where="--executor",
            remedy=suggestion(request.executor, EXECUTORS),
        )
    if request.processes < 1:
        raise OptionError(f"expected a number of processes of 1 or more, got {request.processes}.", where="--processes")
    if request.steps is not None and request.steps < 1:
        raise OptionError(f"expected a number of steps of 1 or more, got {request.steps}.", where="--steps")
    settings = preset(task.name, preset_name(task.name, request.preset)).with_changes(
        steps=request.steps,
        evaluation_every=request.evaluation_every,
        evaluation_episodes=request.evaluation_episodes,
    )
    rates: tuple[float, ...] = (network.learning_rate,)
    if request.learning_rates is not None:
        rates = _rates(request.learning_rates)
    return Job(task, network, tuple(range(seeds)), rates, settings, _device(request.device or "cpu"))


def _rates(texts: Sequence[str]) -> tuple[float, ...]:
    return tuple(sorted({_learning_rate(text) for text in texts}))


def _learning_rate(text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = math.nan
    if not (math.isfinite(rate) and rate > 0):
        raise OptionError(
            f"expected positive numbers separated by commas, got {text!r}.",
            where="--learning-rate",
            remedy="For instance 0.01 or 0.01,0.001.",
        )
    return rate


def _device(name: str) -> str:
    if name not in ("cpu", "cuda"):
        raise OptionError(f"expected 'cpu' or 'cuda', got {name!r}.", where="--device")
    if name == "cuda" and not torch.cuda.is_available():
        raise OptionError(
            f"expected a CUDA device, but torch {torch.__version__} sees none.",
            where="--device",
            remedy="Use --device cpu.",
        )
    return name


def _progress_bar(console: Console, *, hidden: bool) -> Progress:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TaskProgressColumn(),
        TimeRemainingColumn(),
        TextColumn("left  {task.fields[returns]}"),
    )
    disabled = hidden or not console.is_terminal
    return Progress(*columns, console=console, transient=True, disable=disabled)


def _median_text(progress: TrainingProgress) -> str:
    if not progress.returns.size:
        return ""
    running = progress.returns[~np.isnan(progress.returns)]
    return f"median return {np.median(running):.0f}" if running.size else "every run diverged"


def _summarise(record: Record, folder: Path, console: Console) -> None:
    goal = "threshold" if record.threshold is None else f"{record.threshold:g}"
    headers = ("learning rate", "seed", "final return", f"steps to {goal}", "network before", "after")
    table = Table(*headers, box=None, padding=(0, 2, 0, 0), title_justify="left")
    for run in record.runs:
        final = f"diverged at {run.stopped_at:,}" if run.stopped_at is not None else _number(run.final_return)
        reached = "not reached" if run.steps_to_threshold is None else f"{run.steps_to_threshold:,}"
        before, after = (verification.verdict or _UNVERIFIED[verification] for verification in (run.before, run.after))
        table.add_row(f"{run.learning_rate:g}", str(run.seed), final, reached, before, after)
    console.print(table)
    for rate in dict.fromkeys(run.learning_rate for run in record.runs):
        if record.threshold is not None:
            console.print(_median_sentence(record, rate, record.threshold), highlight=False)
    seconds = record.training_seconds
    steps = sum(curve.env_steps[-1] for curve in record.curves if curve.env_steps)
    speed = f", {steps / seconds:,.0f} environment steps a second" if seconds else ""
    console.print(
        f"{len(record.runs)} runs, {seconds:.1f} s training{speed}, {record.evaluation_seconds:.1f} s evaluating",
        highlight=False,
    )
    console.print(
        f"saved in {folder}; draw with: reference-agents report {folder.parent}", highlight=False, soft_wrap=True
    )


def _median_sentence(record: Record, rate: float, threshold: float) -> str:
    """When the median over the seeds first reaches the threshold; a run that stopped counts as worse than any."""
    curves = [curve for curve in record.curves if curve.learning_rate == rate]
    returns = np.nan_to_num(np.array([curve.returns for curve in curves]), nan=-math.inf)
    above = np.median(returns, axis=0) >= threshold
    at = f"learning rate {rate:g}: the median of {len(curves)} seeds"
    if not above.any():
        return f"{at} does not reach {threshold:g}"
    return f"{at} reaches {threshold:g} after {curves[0].env_steps[int(np.argmax(above))]:,} steps"


_UNVERIFIED = {NOT_CLAIMED: "no claim", DIVERGED: "diverged"}


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"
