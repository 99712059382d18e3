"""`reference-agents sweep`: every network of a task, at every learning rate, with every seed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from reference_agents.cli.train import INTERRUPTED, Request, build_job, run_training
from reference_agents.tasks import resolve_network, resolve_task


@dataclass(frozen=True)
class SweepRequest:
    """What the user typed, as typed; None where the paper's choice is meant."""

    task: str
    networks: tuple[str, ...] | None
    seeds: int | None
    learning_rates: tuple[str, ...] | None
    steps: int | None
    preset: str | None
    device: str
    out: Path
    quiet: bool
    command: str
    processes: int = 1
    executor: str = "local"
    scheduler: str | None = None


def run_sweep(request: SweepRequest) -> int:
    """Train one network after the other, each as one stacked program; the worst exit code.

    Raises:
        OptionError: for anything that cannot be used, before the first training starts.
    """
    task = resolve_task(request.task)
    names = request.networks if request.networks is not None else task.sweep.networks
    rates = request.learning_rates
    if rates is None:
        rates = tuple(map(str, task.sweep.learning_rates))
    requests = [
        Request(
            request.task,
            resolve_network(task, name).name,
            task.sweep.seeds if request.seeds is None else request.seeds,
            rates,
            request.steps,
            request.preset,
            request.device,
            request.out,
            request.quiet,
            request.command,
            processes=request.processes,
            executor=request.executor,
            scheduler=request.scheduler,
        )
        for name in names
    ]
    for one in requests:
        build_job(one)
    worst = 0
    for one in requests:
        code = run_training(one)
        if code == INTERRUPTED:
            return code
        worst = max(worst, code)
    return worst
