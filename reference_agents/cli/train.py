"""`reference-agents train`: check the options, train with a live display, save, and print a summary."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from reference_agents.assemble import save_training
from reference_agents.checkpoint import (
    Checkpointer,
    Started,
    begin,
    checkpoint_path,
    folder_name,
    lock_folder,
    read_state,
    refuse_other_job,
    remove_checkpoints,
    started_in,
)
from reference_agents.cli.live import announce, display, tell_all
from reference_agents.cli.request import Request, build_job, changes, check_device, check_execution, learning_rates
from reference_agents.cli.summary import summarise
from reference_agents.compiled.engine import AUTO, TORCH, choose_engine
from reference_agents.dask_executor import cluster_threads, train_on_dask
from reference_agents.device.loop import runs_on_device, train_on_device, why_on_host
from reference_agents.encoding.environment import short_label
from reference_agents.logs import TensorBoardLog, WandbLog
from reference_agents.record import Record, is_finished, prepare_folder
from reference_agents.settings import preset_name
from reference_agents.shards import Report, split, train_in_processes
from reference_agents.tasks import resolve_network, resolve_task
from reference_agents.trainer import Job, Training, train
from reference_agents.vectorised import episode_limit, offers_action_masks
from symcheck.errors import OptionError, TargetError

# Exit codes; 130 is 128 + SIGINT, as shells report it.
DONE, NOT_EQUIVARIANT, ALL_DIVERGED, INTERRUPTED = 0, 1, 3, 130


def run_training(request: Request) -> int:
    """Train, save and summarise; returns the exit code.

    Raises:
        OptionError: an input cannot be used (before training starts), or the disk is full at the end.
        TargetError: there is nothing to resume.
        MissingExtraError: the extra of an option is not installed.
    """
    if request.resume is not None:
        return resume(request, request.resume)
    job, parts = build_job(request), part_count(request)
    folder = prepare_folder(request.out, folder_name(job))
    with lock_folder(folder):
        return carry_out(request, prepare(request, job, folder, parts), folder)


def prepare(request: Request, job: Job, folder: Path, parts: int) -> Started:
    """Write the description of a training run into an empty folder.

    Raises:
        OptionError: the description cannot be written.
    """
    preset = preset_name(job.task.name, request.preset, continuous=job.task.continuous)
    started = Started(job, preset, request.command, split(job, parts))
    try:
        begin(folder, started)
    except OSError as error:
        raise _unwritable(folder, error) from error
    return started


def part_count(request: Request) -> int:
    """The number of parts into which the seeds are split: one per process, or per thread of an existing cluster.

    Raises:
        OptionError: the scheduler cannot be reached.
    """
    if request.processes is None and request.scheduler is not None:
        return cluster_threads(request.scheduler)
    return request.processes or 1


def resume(request: Request, folder: Path) -> int:
    """Resume the training run of a folder; returns the exit code."""
    check_execution(request)
    started = started_in(folder)
    with lock_folder(folder):
        return _resume_locked(request, folder, started)


def _resume_locked(request: Request, folder: Path, started: Started) -> int:
    if is_finished(folder):
        raise TargetError(
            f"the training run in {str(folder)!r} is complete, so there is nothing to resume.",
            where="--resume",
            remedy=f"Draw its curves with: reference-agents report {folder}",
        )
    # Resolved to the spelling of the recorded name; None if it was not given.
    network = None if request.network is None else resolve_network(started.job.task, request.network).name
    named = request.task is not None or request.env is not None
    asked = {
        "task": resolve_task(request.task_name).name if named else None,
        "symmetry": request.symmetry,
        "network": network,
        "seeds": request.seeds,
        "learning-rate": None if request.learning_rates is None else learning_rates(request.learning_rates),
        "preset": request.preset,
        "device": request.device,
        "engine": None if request.engine == AUTO else request.engine,
        **changes(request),
    }
    refuse_other_job(started, asked)
    return carry_out(request, started, folder)


def carry_out(request: Request, started: Started, folder: Path) -> int:
    """Train a prepared job from its existing checkpoints, save and summarise it; returns the exit code."""
    check_device(started.job.device)
    job, console = started.job, Console(stderr=True)
    # If the training began with the compiled engine, it must continue with it.
    asked = job.engine if job.engine != TORCH else request.engine or AUTO
    note = choose_engine(asked, job.task, job.network, job.settings, job.device)[1]
    title = f"{short_label(job.task.name)} {short_label(job.network.name)}"
    # Whole updates: the last batch may exceed the requested number of steps.
    total = job.settings.updates * job.settings.batch
    kinds = [kind for kind, asked in ((TensorBoardLog, request.tensorboard), (WandbLog, request.wandb)) if asked]
    logs = [kind(folder, job) for kind in kinds]
    say = announce(console)
    with display(title, total, console, hidden=request.quiet) as shown:
        if (limit := unstated_limit(job)) is not None:
            say(
                f"{job.task.environment} has no time limit; episodes are truncated after {limit:,} steps "
                "(--max-episode-steps)"
            )
        if offers_action_masks(job.task):
            say(
                f"{short_label(job.task.environment)} provides action masks, which training does not use: the policy "
                "may choose any action"
            )
        if note:
            say(note)
        plan = _Plan(started, folder, request, tell_all([shown, *logs]), say)
        try:
            training = plan.train()
            record = save_training(training, folder, preset_name=started.preset, command=started.command)
        except OSError as error:
            raise _unwritable(folder, error) from error
        finally:
            for log in logs:
                log.close()
    summarise(record, folder, Console())
    if record.interrupted:
        console.print(
            f"interrupted; what was finished is saved; continue with: reference-agents train --resume {folder}",
            highlight=False,
            soft_wrap=True,
        )
        return INTERRUPTED
    # Only after a training run that reached its end; an interrupted one is resumed from its checkpoints.
    remove_checkpoints(folder, len(started.parts))
    code = exit_code(record, job)
    if code == ALL_DIVERGED:
        first = min(run.stopped_at or 0 for run in record.runs)
        say(
            f"every run diverged, the first after {first:,} steps: their gradients became NaN or infinite; try a lower "
            "--learning-rate, or smaller rewards"
        )
    return code


def unstated_limit(job: Job) -> int | None:
    """The default limit of episode steps if neither the user nor the environment gives one; otherwise None."""
    return None if job.settings.max_episode_steps else episode_limit(job.task, 0)


def exit_code(record: Record, job: Job) -> int:
    """1 if a network that claims to be equivariant is not; 3 if every run stopped early."""
    if all(run.stopped_at is not None for run in record.runs):
        return ALL_DIVERGED
    claims = job.network.claims_equivariance
    return NOT_EQUIVARIANT if claims and any(run.after.verdict == "failed" for run in record.runs) else DONE


@dataclass(frozen=True)
class _Plan:
    """How a training run is executed."""

    started: Started
    folder: Path
    request: Request
    on_progress: Report
    say: Callable[[str], None]

    def train(self) -> Training:
        """Train with the requested executor, from existing checkpoints."""
        job, parts = self.started.job, self.started.parts
        files = [checkpoint_path(self.folder, part, len(parts)) for part in range(len(parts))]
        processes = self.request.processes or len(parts)
        if self.request.executor == "dask":
            return train_on_dask(
                job,
                parts,
                scheduler=self.request.scheduler,
                workers=processes,
                checkpoints=files,
                on_progress=self.on_progress,
            )
        # In one process only: the device loop has a single random stream for all runs.
        if job.device == "cuda" and len(parts) == 1 and runs_on_device(job):
            self.say("entirely on the GPU, without checkpoints")
            return train_on_device(job, on_progress=self.on_progress)
        if job.device == "cuda":
            reason = why_on_host(job) or f"there are {len(parts)} parts"
            self.say(f"environments are stepped on the CPU, which is slower: {reason}")
        if len(parts) > 1:
            return train_in_processes(job, parts, processes=processes, checkpoints=files, on_progress=self.on_progress)
        writer, state = Checkpointer(files[0], on_problem=self.say), read_state(files[0])
        return train(job, on_progress=self.on_progress, on_checkpoint=writer.offer, resume_from=state)


def _unwritable(folder: Path, error: OSError) -> OptionError:
    return OptionError(
        f"could not write to {str(folder)!r} ({error.strerror or error}).",
        where="--out",
        remedy="Everything saved before is kept; free some space, then continue with: "
        f"reference-agents train --resume {folder}",
    )
