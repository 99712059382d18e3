"""Speed of simulation and training on the Atari games, and how symmetric the games are.

    python benchmarks/atari.py pipeline  [--game pong] [--environments 16] [--rounds 5]
    python benchmarks/atari.py training  [--network cnn] [--steps 2000] [--rounds 3]
    python benchmarks/atari.py stacking  [--device cuda] [--runs 4] [--steps 4000]
    python benchmarks/atari.py evidence  [--samples 2000]

`pipeline`: environment steps per CPU second, compared with ale-py's own vectoriser (84 x 84, four frames, its default)
and the same without resizing and stacking. `training`: the whole A2C loop of one run with the paper's settings,
compared with Stable-Baselines3's A2C on the same network with Gymnasium's preprocessing (extra `sb3`, and
opencv-python-headless). `stacking`: four runs as one program, compared with four single runs in sequence. `evidence`:
the causes and sizes of the asymmetry of each game. Subjects are timed in interleaved rounds in one process; the first
round is discarded, and medians are printed. CPU time is less sensitive to other load than wall time; on a GPU, wall
time is measured.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import torch

from reference_agents.catalog import find_network, find_task
from reference_agents.settings import preset
from reference_agents.trainer import Job, Progress, train
from symcheck.envs.atari.vector import AtariVector

Clock = Callable[[], float]


def pipeline_speed(make: Callable[[], Any], actions: int, environments: int, steps: int) -> float:
    """Environment steps per CPU second of a vectoriser, without its first step."""
    games = make()
    games.reset(seed=1)
    drawn = np.random.default_rng(0).integers(0, actions, (steps + 1, environments))
    games.step(drawn[0])
    started = time.process_time()
    for row in drawn[1:]:
        games.step(row)
    return steps * environments / (time.process_time() - started)


def pipelines(game: str, environments: int, steps: int) -> dict[str, Callable[[], float]]:
    """The pipeline, and the bare vectoriser in two forms."""
    from ale_py import AtariVectorEnv

    bare = partial(AtariVectorEnv, game, environments, num_threads=1, autoreset_mode="SameStep")
    screens = partial(bare, img_height=210, img_width=160, stack_num=1)
    ours = partial(AtariVector, game, environments, num_threads=1)
    actions = len(ours().game.actions)
    subjects = {"ale-py, 84 x 84, four frames": bare, "ale-py, screens as they are": screens, "pipeline": ours}
    return {name: partial(pipeline_speed, make, actions, environments, steps) for name, make in subjects.items()}


def training_speed(network: str, runs: int, steps: int, device: str, clock: Clock) -> float:
    """Environment steps per second of all runs together, including updates, without the first update."""
    task = find_task("pong")
    settings = preset("pong", "paper").with_changes(steps=steps, decorrelation_steps=0, evaluation_every=10**9)
    plan = find_network(task, network).with_quirks({"input_scale": settings.input_scale})
    marks: list[float] = []

    def mark(progress: Progress) -> None:
        # Waiting after every update would prevent device and host from working in parallel.
        if device == "cuda" and progress.env_steps in (settings.batch, settings.updates * settings.batch):
            torch.cuda.synchronize()
        marks.append(clock())

    train(Job(task, plan, tuple(range(runs)), (plan.learning_rate,), settings, device), on_progress=mark)
    return runs * settings.batch * (settings.updates - 1) / (marks[-1] - marks[1])  # marks[0]: before the first update


def one_by_one(network: str, runs: int, steps: int, device: str, clock: Clock) -> float:
    """The same for the same number of single runs in sequence."""
    speeds = [training_speed(network, 1, steps, device, clock) for _ in range(runs)]
    return runs / sum(1 / speed for speed in speeds)


def stable_baselines_speed(steps: int) -> float:
    """Environment steps per CPU second of Stable-Baselines3's A2C with the same network, settings and size."""
    import ale_py
    import gymnasium as gym
    from gymnasium.wrappers import AtariPreprocessing
    from stable_baselines3 import A2C
    from stable_baselines3.common.atari_wrappers import ClipRewardEnv
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.vec_env import DummyVecEnv, VecFrameStack, VecTransposeImage

    gym.register_envs(ale_py)
    settings = preset("pong", "paper")

    def make() -> Any:
        plain = gym.make("ALE/Pong-v5", frameskip=1, repeat_action_probability=0.0)
        return ClipRewardEnv(AtariPreprocessing(plain, screen_size=80, noop_max=30, grayscale_newaxis=True))

    games = VecTransposeImage(VecFrameStack(DummyVecEnv([make] * settings.environments), 4))
    model = A2C(
        "CnnPolicy", games, learning_rate=1e-4, n_steps=settings.horizon, gamma=settings.discount,
        gae_lambda=settings.gae_lambda, ent_coef=settings.entropy_coefficient, vf_coef=settings.value_coefficient,
        max_grad_norm=settings.max_gradient_norm, use_rms_prop=False, normalize_advantage=False, seed=0, device="cpu",
        policy_kwargs={"features_extractor_class": _screen_features(), "net_arch": []},
    )  # fmt: skip
    marks: list[float] = []

    class Mark(BaseCallback):
        def _on_step(self) -> bool:
            return True

        def _on_rollout_start(self) -> None:
            marks.append(time.process_time())

    model.learn(steps, callback=Mark())
    return settings.batch * (len(marks) - 2) / (marks[-1] - marks[1])


def _screen_features() -> type:
    """The paper's CNN as a features extractor of Stable-Baselines3."""
    from stable_baselines3.common.torch_layers import BaseFeaturesExtractor

    class Features(BaseFeaturesExtractor):
        def __init__(self, observation_space: Any) -> None:
            super().__init__(observation_space, 512)
            self.layers = torch.nn.Sequential(
                torch.nn.Conv2d(4, 16, 8, 4), torch.nn.ReLU(), torch.nn.Conv2d(16, 32, 5, 2), torch.nn.ReLU(),
                torch.nn.Flatten(), torch.nn.Linear(2048, 512), torch.nn.ReLU(),
            )  # fmt: skip

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.layers(x)

    return Features


def medians(
    subjects: Mapping[str, Callable[[], float]], rounds: int, *, tell: Callable[[str], None] = lambda text: None
) -> dict[str, float]:
    """Each subject once per round, interleaved; the first round is discarded."""
    measured: dict[str, list[float]] = {name: [] for name in subjects}
    for round_ in range(rounds + 1):
        for name, measure in subjects.items():
            started = time.perf_counter()
            speed = measure()
            tell(f"round {round_}: {name} {speed:,.0f}, after {time.perf_counter() - started:.1f} s")
            if round_:
                measured[name].append(speed)
    return {name: statistics.median(speeds) for name, speeds in measured.items()}


def describe(device: str) -> str:
    """The device, torch's version and precision settings, and the number of cores for the games."""
    name = torch.cuda.get_device_name() if device == "cuda" else "cpu"
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    precision = torch.get_float32_matmul_precision()
    return f"{name}, torch {torch.__version__}, float32 products: {precision} precision, {cores} cores"


def show(found: Mapping[str, float], baseline: str, second: str) -> None:
    """One line per subject, with its ratio to the baseline."""
    for name, speed in found.items():
        print(f"{name:34} {speed:9,.0f} environment steps a {second}  {speed / found[baseline]:5.2f} x {baseline}")


def main() -> None:
    """Run the measurements requested on the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("pipeline", "training", "stacking", "evidence"))
    parser.add_argument("--game", choices=("pong", "breakout"), default="pong")
    parser.add_argument("--network", default="cnn")
    parser.add_argument("--environments", type=int, default=16)
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("--steps", type=int, default=2_000)
    parser.add_argument("--samples", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    given = parser.parse_args()
    torch.set_num_threads(1)
    if given.what == "pipeline":
        found = medians(pipelines(given.game, given.environments, given.steps // given.environments), given.rounds)
        show(found, "ale-py, 84 x 84, four frames", "CPU second")
    elif given.what == "training":
        ours = f"one run, {given.network}"
        subjects = {
            ours: partial(training_speed, given.network, 1, given.steps, "cpu", time.process_time),
            "Stable-Baselines3": partial(stable_baselines_speed, given.steps),
        }
        show(medians(subjects, given.rounds), "Stable-Baselines3", "CPU second")
    elif given.what == "stacking":
        shared = (given.network, given.runs, given.steps, given.device, time.perf_counter)
        subjects = {"stacked": partial(training_speed, *shared), "one by one": partial(one_by_one, *shared)}
        print(describe(given.device))
        show(medians(subjects, given.rounds, tell=partial(print, flush=True)), "one by one", "second")
    else:
        from reference_agents.atari.evidence import measure

        for part in measure(given.game, samples=given.samples, seed=0):
            print(part)


if __name__ == "__main__":
    main()
