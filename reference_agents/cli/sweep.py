"""`reference-agents sweep`: several networks of a task, at every learning rate and with every seed.

DIR/sweep.json the run folders in the order of training; written before the first training begins
DIR/TASK-NETWORK  one run folder for each network
DIR/report.html   the page, once all are trained
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from reference_agents.checkpoint import folder_name, refuse_differences, started_in
from reference_agents.cli.report import write_report
from reference_agents.cli.request import Request, build_job
from reference_agents.cli.train import INTERRUPTED, part_count, prepare, resume
from reference_agents.record import is_finished, prepare_folder
from reference_agents.tasks import resolve_network, resolve_task
from symcheck.errors import OptionError, TargetError
from symcheck.files import write_file

SWEEP_FILE = "sweep.json"
SCHEMA = "reference-agents-sweep/1"


def run_sweep(request: Request, networks: Sequence[str] | None) -> int:
    """Train one network after the other, each as one stacked program, and write the page; returns the worst exit code.

    Args:
        request: the options; seeds and learning rates default to the paper's.
        networks: the networks; None for those of the paper.

    Raises:
        OptionError: an input cannot be used; raised before the first training starts.
        TargetError: there is no sweep to resume.
    """
    if request.resume is not None:
        out, folders = request.resume, _read_folders(request.resume)
        if networks is not None:
            trained = [started_in(folder).job.network.name for folder in folders]
            refuse_differences({"network": ", ".join(trained)}, {"network": ", ".join(networks)}, "options")
    else:
        out, folders = request.out, _begin(request, networks)
    console, worst = Console(stderr=True), 0
    for number, folder in enumerate(folders, start=1):
        # Networks that were finished before the sweep was stopped are not trained again.
        if is_finished(folder):
            console.print(f"{folder} has already been trained", highlight=False, soft_wrap=True)
            continue
        if not request.quiet:
            console.print(f"{number} of {len(folders)}: {folder.name}", highlight=False, soft_wrap=True)
        # The network is taken from the folder's job; one in the request would be compared with it.
        code = resume(replace(request, network=None), folder)
        if code == INTERRUPTED:
            console.print(
                f"continue with all networks: reference-agents sweep --resume {out}", highlight=False, soft_wrap=True
            )
            return code
        # Exit codes increase with severity: 0 done, 1 not equivariant.
        worst = max(worst, code)
    write_report(out)
    return worst


def _begin(request: Request, networks: Sequence[str] | None) -> list[Path]:
    """Prepare a folder for every network, after checking that all of them are usable."""
    task = resolve_task(request.task_name, request.symmetry)
    filled = replace(
        request,
        seeds=task.sweep.seeds if request.seeds is None else request.seeds,
        learning_rates=request.learning_rates or tuple(map(str, task.sweep.learning_rates)),
    )
    names = [resolve_network(task, name).name for name in (task.sweep.networks if networks is None else networks)]
    # Networks with equal names would share a folder.
    if len(set(names)) < len(names):
        raise OptionError(f"each network can be given only once, got {', '.join(names)}.", where="--network")
    requests = [replace(filled, network=name) for name in names]
    # Every job is built before any folder is made: a mistake in the last network leaves nothing behind.
    jobs = [build_job(network_request) for network_request in requests]
    if (request.out / SWEEP_FILE).exists():
        raise OptionError(
            f"{str(request.out)!r} already contains a sweep.",
            where="--out",
            remedy=f"Resume the sweep (--resume {request.out}), or name another folder.",
        )
    parts = part_count(request)
    folders = [prepare_folder(request.out, folder_name(job)) for job in jobs]
    for network_request, job, folder in zip(requests, jobs, folders, strict=True):
        prepare(network_request, job, folder, parts)
    document = {"schema": SCHEMA, "command": request.command, "runs": [folder.name for folder in folders]}
    # Last, so that a sweep with this file is complete.
    write_file(request.out / SWEEP_FILE, (json.dumps(document, indent=2) + "\n").encode())
    return folders


def _read_folders(folder: Path) -> list[Path]:
    try:
        document = json.loads((folder / SWEEP_FILE).read_text(encoding="utf-8"))
        return [folder / str(name) for name in document["runs"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise TargetError(
            f"{str(folder)!r} is not the folder of a sweep: {SWEEP_FILE} cannot be read ({type(error).__name__}).",
            where="--resume",
            remedy="To resume a single training run: reference-agents train --resume RUN",
        ) from error
