"""Train the networks of Pong or Breakout side by side for a budget of frames, and write the page that compares them.

    python benchmarks/pong_sweep.py [--task pong] [--frames 15000000] [--seeds 5] [--device cuda] [--out sweep]

Made for one GPU and 16 cores: each network is one process that trains all of its seeds as one program, its environments
in one vectoriser; the cores are shared out among the processes. A budget that was not finished is gone on with by the
same command. The page is OUT/report.html; everything else is as `reference-agents train` leaves it.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from reference_agents.catalog import find_network, find_task

PROGRAM = (sys.executable, "-c", "from reference_agents.cli import main; main()")
FRAMES_PER_STEP = 4


def share_out(cores: Sequence[int], parts: int) -> list[list[int]]:
    """Cores for each process: about equally many, shared where there are fewer cores than processes."""
    if len(cores) < parts:
        return [[cores[part % len(cores)]] for part in range(parts)]
    return [list(cores[part::parts]) for part in range(parts)]


def command(task: str, network: str, given: argparse.Namespace, out: Path) -> list[str]:
    """The command line of one network; it goes on with a training that was stopped."""
    started = out / f"{task}-{network}"
    steps = -(-given.frames // FRAMES_PER_STEP)
    arguments = [*PROGRAM, "train", task, "--network", network, "--device", given.device, "--quiet"]
    if (started / "job.json").exists():
        return [*arguments, "--resume", str(started)]
    arguments += ["--seeds", str(given.seeds), "--steps", str(steps), "--out", str(out)]
    for setting in given.set:
        arguments += ["--set", setting]
    return arguments


def start(arguments: Sequence[str], cores: Sequence[int], log: Path) -> subprocess.Popen[bytes]:
    """One process on some of the cores; what it says goes to a file."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with log.open("ab") as file:
        process = subprocess.Popen(arguments, stdout=file, stderr=subprocess.STDOUT, env=environment)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(process.pid, cores)  # the vectoriser starts as many threads as it may use cores
    return process


def main(texts: Sequence[str] | None = None) -> int:
    """Train what the command line asks for; 0, or 1 where a network could not be trained."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", default="pong")
    parser.add_argument("--networks", default="equivariant,extractor,nullspace,random,cnn,augmented,averaged")
    parser.add_argument("--frames", type=int, default=15_000_000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--out", type=Path, default=Path("sweep"))
    given = parser.parse_args(texts)
    task = find_task(given.task)
    networks = [find_network(task, name.strip()).name for name in given.networks.split(",")]
    given.out.mkdir(parents=True, exist_ok=True)
    todo = [name for name in networks if not (given.out / f"{task.name}-{name}" / "record.json").exists()]
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(os.cpu_count() or 1))
    started, running = time.perf_counter(), {}
    for name, share in zip(todo, share_out(cores, max(1, len(todo))), strict=False):
        log = given.out / f"{task.name}-{name}.log"
        running[name] = start(command(task.name, name, given, given.out), share, log)
        print(f"{name} on cores {share}, log in {log}")
    codes = {name: process.wait() for name, process in running.items()}
    for name, code in codes.items():
        if code:
            print(f"{name} ended with code {code}; see {given.out / f'{task.name}-{name}.log'}")
    print(f"{len(codes)} networks in {time.perf_counter() - started:,.0f} s")
    subprocess.run([*PROGRAM, "report", str(given.out)], check=False)
    return 1 if any(codes.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
