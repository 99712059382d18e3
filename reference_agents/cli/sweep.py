"""`reference-agents sweep`: several networks of a task, at every learning rate, with every seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from reference_agents.cli.train import INTERRUPTED, Request, build_job, run_training
from reference_agents.tasks import resolve_network, resolve_task


def run_sweep(request: Request, networks: Sequence[str] | None) -> int:
    """Train one network after the other, each as one stacked program; the worst exit code.

    Args:
        request: what the user typed; seeds and learning rates are the paper's where nothing was said.
        networks: which; the paper's for None.

    Raises:
        OptionError: for anything that cannot be used, before the first training starts.
    """
    task = resolve_task(request.task)
    names = task.sweep.networks if networks is None else networks
    filled = replace(
        request,
        seeds=task.sweep.seeds if request.seeds is None else request.seeds,
        learning_rates=request.learning_rates or tuple(map(str, task.sweep.learning_rates)),
    )
    requests = [replace(filled, network=resolve_network(task, name).name) for name in names]
    for one in requests:
        build_job(one)
    worst = 0
    for one in requests:
        code = run_training(one)
        if code == INTERRUPTED:
            return code
        worst = max(worst, code)
    return worst
