"""Training speed of whole sweeps on one CUDA device: environments, rollouts and updates as one graph.

    python benchmarks/gpu.py [--device cuda] [--updates 500] [--rounds 3] [--check]

Environment steps a second of wall time, learning included and evaluation left out, medians over rounds after the graph
was captured: 120 runs of the grid world (20 seeds, the paper's 6 learning rates) and 175 of CartPole (25 seeds, 7
learning rates), all with the paper's settings; then what one evaluation of each takes, and four stacked runs of Pong
beside four single ones (`atari.py stacking`). `--check` trains CartPole for 20,000 steps as well, on the device and by
the program on the processor, and compares the medians of 25 seeds. Made to fit ten minutes. With `--device cpu` the
same code runs without a graph, which says nothing about speed.
"""

from __future__ import annotations

import argparse
import dataclasses
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import torch

from reference_agents.catalog import NetworkPlan, Task, find_network, find_task
from reference_agents.device import graph
from reference_agents.device.loop import DeviceLoop, train_on_device
from reference_agents.settings import Settings, preset
from reference_agents.trainer import Job, train

SUBJECTS = (("gridworld", "equivariant"), ("gridworld", "cnn"), ("cartpole", "equivariant"), ("cartpole", "mlp"))
PONG_RUNS = 4
GOALS = {("gridworld", "equivariant"): 1_000_000, ("cartpole", "equivariant"): 1_500_000}


def job(task_name: str, network: str, device: str) -> Job:
    """The paper's sweep of one network."""
    task = find_task(task_name)
    seeds = tuple(range(task.sweep.seeds))
    rates = tuple(sorted(task.sweep.learning_rates))
    settings = preset(task_name, "paper")
    return Job(task, _network(task, network, settings), seeds, rates, settings, device)


def _network(task: Task, name: str, settings: Settings) -> NetworkPlan:
    """A network with the initial biases and the input scale of its preset."""
    return find_network(task, name).with_quirks(dataclasses.asdict(settings))


def speed(loop: DeviceLoop, updates: int, rounds: int) -> list[float]:
    """Environment steps per second of each round."""
    subject, speeds = loop.job, []
    for _ in range(graph.WARM_UP + 2):
        loop.update()
    for _ in range(rounds):
        _wait(subject.device)
        started = time.perf_counter()
        for _ in range(updates):
            loop.update()
        _wait(subject.device)
        steps = len(subject.runs) * updates * subject.settings.batch
        speeds.append(steps / (time.perf_counter() - started))
    return speeds


def evaluation_seconds(loop: DeviceLoop) -> float:
    """Seconds of one evaluation after the graph was captured."""
    seconds = 0.0
    for _ in range(graph.WARM_UP + 2):
        _wait(loop.job.device)
        started = time.perf_counter()
        loop.evaluate()
        seconds = time.perf_counter() - started
    return seconds


def _wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def check(device: str) -> None:
    """Medians of 25 seeds at 20,000 steps, on the device and by the stacked program on the processor."""
    settings = preset("cartpole", "paper").with_changes(steps=20_000, evaluation_every=5_000)
    task = find_task("cartpole")
    subject = Job(task, _network(task, "equivariant", settings), tuple(range(25)), (0.01,), settings, device)
    for name, training in (
        ("device", train_on_device(subject)),
        ("stacked", train(dataclasses.replace(subject, device="cpu"))),
    ):
        medians = np.nanmedian(np.array(training.returns), axis=1)
        points = zip(training.env_steps, medians, strict=True)
        print(f"{name:8} " + ", ".join(f"{median:.0f} at {steps:,}" for steps, median in points))


def main() -> None:
    """Run the measurements requested on the command line, and print medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--updates", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--evaluations", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--pong-steps", type=int, default=4_000, help="of each run; 0 leaves Pong out")
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    if given.device == "cuda" and not torch.cuda.is_available():
        parser.error("there is no CUDA device here; --device cpu runs the same code without a graph")
    torch.set_num_threads(1)
    name = torch.cuda.get_device_name() if given.device == "cuda" else "cpu"
    print(f"{name}, torch {torch.__version__}, float32 products: {torch.get_float32_matmul_precision()} precision")
    for task, network in SUBJECTS:
        loop = DeviceLoop(job(task, network, given.device), graph.seeded_generator(given.device, 0))
        median = statistics.median(speed(loop, given.updates, given.rounds))
        goal = f"  goal {GOALS[task, network]:,}" if (task, network) in GOALS else ""
        print(
            f"{task:10} {network:12} {len(loop.job.runs)} runs  {median:11,.0f} environment steps per second{goal}",
            flush=True,
        )
        if given.evaluations:
            print(f"{'':33} {evaluation_seconds(loop):11.2f} s an evaluation", flush=True)
    if given.device == "cuda":
        print(f"peak memory {torch.cuda.max_memory_allocated() / 2**30:.2f} GiB")
    if given.pong_steps:
        print(f"pong, {PONG_RUNS} runs; goal: stacked 2.0 x one by one", flush=True)
        program = Path(__file__).with_name("atari.py")
        steps = ["--runs", str(PONG_RUNS), "--steps", str(given.pong_steps), "--rounds", str(given.rounds)]
        subprocess.run([sys.executable, program, "stacking", "--device", given.device, *steps], check=True)
    if given.check:
        check(given.device)


if __name__ == "__main__":
    main()
