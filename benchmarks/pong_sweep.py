"""Train the networks of Pong or Breakout in parallel for a budget of frames, and write the page that compares them.

    python benchmarks/pong_sweep.py [--task pong] [--frames 15000000] [--seeds 5] [--device cuda] [--out sweep]

Made for one GPU and 16 cores: each network is one process that trains all of its seeds as one program, its environments
in one vectoriser; the cores are shared out among the processes. A sweep that was stopped, by Ctrl-C, by the machine or
in one of its processes, is gone on with by the same command; another budget needs another folder. The page is
OUT/report.html; everything else is as `reference-agents train` leaves it. Exit codes: 0 success, 1 a network could not
be trained, 2 nothing could be trained (with one message), 130 stopped by the user.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from reference_agents import record
from reference_agents.catalog import find_network, find_task
from reference_agents.cli.request import Request, build_job
from symcheck.errors import OptionError, SymcheckError

PROGRAM = (sys.executable, "-c", "from reference_agents.cli import main; main()")
FRAMES_PER_STEP = 4


def share_out(cores: Sequence[int], parts: int) -> list[list[int]]:
    """The cores of each process: about equal numbers; shared if there are fewer cores than processes."""
    if len(cores) < parts:
        return [[cores[part % len(cores)]] for part in range(parts)]
    return [list(cores[part::parts]) for part in range(parts)]


def command(task: str, network: str, given: argparse.Namespace, out: Path) -> list[str]:
    """The command line of one network; it resumes a stopped training and rejects a different budget."""
    started = out / f"{task}-{network}"
    steps = -(-given.frames // FRAMES_PER_STEP)
    arguments = [*PROGRAM, "train", task, "--network", network, "--device", given.device, "--quiet"]
    arguments += ["--seeds", str(given.seeds), "--steps", str(steps)]
    for setting in given.set:
        arguments += ["--set", setting]
    return [*arguments, *(("--resume", str(started)) if (started / "job.json").exists() else ("--out", str(out)))]


def check(task: str, network: str, given: argparse.Namespace) -> None:
    """Reject options that `reference-agents train` rejects, and a budget other than that of an existing training.

    Raises:
        SymcheckError: the message names the option, the expected and the given value.
    """
    if given.frames < 1:
        raise OptionError(f"expected 1 or more, got {given.frames}.", where="--frames")
    steps, out = -(-given.frames // FRAMES_PER_STEP), given.out
    asked = Request(
        task, network, given.seeds, None, steps, None, given.device, out, True, "", changes=tuple(given.set)
    )
    job, folder = build_job(asked), out / f"{task}-{network}"
    if not record.is_finished(folder):
        return
    there = record.load(folder)
    budget, seeds = there.settings["steps"], len(there.runs)
    if (budget, seeds) != (job.settings.steps, len(job.seeds)):
        raise OptionError(
            f"expected the budget of the training in {str(folder)!r}, {FRAMES_PER_STEP * budget:,} frames and {seeds} "
            f"seeds, got {given.frames:,} and {given.seeds}.",
            where="--frames",
            remedy="Give that budget, or another folder with --out.",
        )


def start(arguments: Sequence[str], cores: Sequence[int], log: Path) -> subprocess.Popen[bytes]:
    """One process on some of the cores; its output goes to a file. It receives Ctrl-C only through this script."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with log.open("ab") as file:
        process = subprocess.Popen(
            arguments, stdout=file, stderr=subprocess.STDOUT, env=environment, start_new_session=True
        )
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(process.pid, cores)  # the games use one thread per available core
    return process


@contextlib.contextmanager
def stopping_all(running: Mapping[str, subprocess.Popen[bytes]]) -> Iterator[None]:
    """Pass a stop request to every process, once, and let each save its state."""

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    except KeyboardInterrupt:
        for process in running.values():
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
        for process in running.values():
            process.wait()
        raise
    finally:
        signal.signal(signal.SIGTERM, before)


def main(texts: Sequence[str] | None = None) -> int:
    """The exit code of the command line."""
    try:
        return sweep(texts)
    except SymcheckError as error:
        print(f"pong_sweep: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("pong_sweep: stopped; what was trained is saved; go on with the same command", file=sys.stderr)
        return 130


def sweep(texts: Sequence[str] | None = None) -> int:
    """Train the networks given on the command line; returns 0, or 1 if a network could not be trained.

    Raises:
        SymcheckError: an option is invalid; raised before anything is written.
    """
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
    for name in networks:
        check(task.name, name, given)
    given.out.mkdir(parents=True, exist_ok=True)
    todo = [name for name in networks if not record.is_finished(given.out / f"{task.name}-{name}")]
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(os.cpu_count() or 1))
    started = time.perf_counter()
    running: dict[str, subprocess.Popen[bytes]] = {}
    with stopping_all(running):
        for name, share in zip(todo, share_out(cores, max(1, len(todo))), strict=False):
            log = given.out / f"{task.name}-{name}.log"
            running[name] = start(command(task.name, name, given, given.out), share, log)
            print(f"{name} on cores {share}, log in {log}", flush=True)
        for process in running.values():
            process.wait()
    codes = {name: process.returncode for name, process in running.items()}
    for name, code in codes.items():
        if code:
            print(f"{name} ended with code {code}; see {given.out / f'{task.name}-{name}.log'}")
    print(f"{len(codes)} networks in {time.perf_counter() - started:,.0f} s")
    subprocess.run([*PROGRAM, "report", str(given.out)], check=False)
    return 1 if any(codes.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
