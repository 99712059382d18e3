"""Training speed of the stacked program with the paper's settings, compared with Stable-Baselines3.

    python benchmarks/training.py [--task cartpole|gridworld] [--runs N] [--steps N] [--rounds 3] [--peer-steps 8000]
                                  [--engine auto|torch|compiled]

Environment steps a CPU second, learning included, on one thread; CPU time, because it bears other work on the machine
better than wall time does. Subjects are timed in interleaved rounds after one round that is thrown away; medians are
printed. Where Stable-Baselines3 is installed (extra `sb3`), its PPO (CartPole) or A2C (grid world) with the same
settings and the same plain network is timed in the same rounds: it trains one run at a time, so its speed is that of a
sweep too.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from reference_agents.catalog import find_network, find_task
from reference_agents.compiled.engine import AUTO, ENGINES, choose_engine
from reference_agents.settings import Settings, preset
from reference_agents.trainer import Job, train
from symcheck.envs.registration import register

RATES = {"cartpole": (0.01, 0.05, 0.001, 0.005, 0.0001, 0.0003, 0.0005), "gridworld": (0.001, 0.003)}
NETWORKS = {"cartpole": ("mlp", "equivariant"), "gridworld": ("cnn", "equivariant")}
RUNS = {"cartpole": 175, "gridworld": 8}
STEPS = {"cartpole": 1_600, "gridworld": 3_200}


def stacked(task_name: str, network: str, runs: int, steps: int, engine: str = AUTO) -> float:
    """Environment steps per CPU second of all runs together."""
    task = find_task(task_name)
    settings = preset(task_name, "paper").with_changes(
        steps=steps, evaluation_every=10**9, evaluation_episodes=1, decorrelation_steps=0
    )
    rates = RATES[task_name] if runs % len(RATES[task_name]) == 0 else RATES[task_name][:1]
    plan = find_network(task, network)
    engine = choose_engine(engine, task, plan, settings)[0]
    job = Job(task, plan, tuple(range(runs // len(rates))), rates, settings, engine=engine)
    started = time.process_time()
    train(job)
    return runs * settings.updates * settings.batch / (time.process_time() - started)


def stable_baselines(task_name: str, steps: int, settings: Settings) -> float:
    """Environment steps per CPU second of one run of Stable-Baselines3 with the same settings."""
    from stable_baselines3 import A2C, PPO
    from stable_baselines3.common.env_util import make_vec_env

    register()
    task = find_task(task_name)
    shared: dict[str, Any] = {
        "env": make_vec_env(task.environment, n_envs=settings.environments, seed=0),
        "learning_rate": 0.001,
        "n_steps": settings.horizon,
        "gamma": settings.discount,
        "gae_lambda": settings.gae_lambda,
        "normalize_advantage": False,
        "ent_coef": settings.entropy_coefficient,
        "vf_coef": settings.value_coefficient,
        "max_grad_norm": settings.max_gradient_norm,
        "seed": 0,
        "device": "cpu",
    }
    if task_name == "cartpole":
        model: Any = PPO(
            "MlpPolicy",
            batch_size=settings.batch // settings.minibatches,
            n_epochs=settings.epochs,
            clip_range=settings.clip,
            policy_kwargs={"features_extractor_class": _trunk(), "net_arch": []},
            **shared,
        )
    else:
        arguments = {"features_extractor_class": _convolutions(), "net_arch": [], "normalize_images": False}
        model = A2C("MlpPolicy", use_rms_prop=False, policy_kwargs=arguments, **shared)
    started = time.process_time()
    model.learn(steps)
    return steps / (time.process_time() - started)


def _trunk() -> type:
    """The paper's hidden layers, shared by policy and value as in this project, as a features extractor."""
    from stable_baselines3.common.torch_layers import BaseFeaturesExtractor

    class Trunk(BaseFeaturesExtractor):
        def __init__(self, observation_space: Any) -> None:
            super().__init__(observation_space, 128)
            layers = torch.nn.Linear(4, 64), torch.nn.ReLU(), torch.nn.Linear(64, 128), torch.nn.ReLU()
            self.layers = torch.nn.Sequential(*layers)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.layers(x)

    return Trunk


def _convolutions() -> type:
    """The paper's CNN as a features extractor of Stable-Baselines3."""
    from stable_baselines3.common.torch_layers import BaseFeaturesExtractor

    class Convolutions(BaseFeaturesExtractor):
        def __init__(self, observation_space: Any) -> None:
            super().__init__(observation_space, 512)
            self.layers = torch.nn.Sequential(
                torch.nn.Conv2d(1, 16, 7, 2),
                torch.nn.ReLU(),
                torch.nn.Conv2d(16, 32, 5),
                torch.nn.ReLU(),
                torch.nn.AdaptiveMaxPool2d(1),
                torch.nn.Flatten(),
                torch.nn.Linear(32, 512),
                torch.nn.ReLU(),
            )

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.layers(x.float())

    return Convolutions


def main() -> None:
    """Run the measurements requested on the command line, and print medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", choices=tuple(RATES), default="cartpole")
    parser.add_argument("--runs", type=int)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peer-steps", type=int, default=8_000)
    parser.add_argument("--engine", choices=ENGINES, default=AUTO)
    given = parser.parse_args()
    torch.set_num_threads(1)
    many, steps = given.runs or RUNS[given.task], given.steps or STEPS[given.task]
    subjects: dict[str, Callable[[], float]] = {
        f"{network}, {runs} runs": partial(
            stacked, given.task, network, runs, steps if runs > 1 else given.peer_steps, given.engine
        )
        for network in NETWORKS[given.task]
        for runs in (1, many)
    }
    peer = "Stable-Baselines3, 1 run"
    try:
        import stable_baselines3  # noqa: F401
    except ImportError:
        print("Stable-Baselines3 is not installed; only the stacked program is timed")
    else:
        subjects[peer] = partial(stable_baselines, given.task, given.peer_steps, preset(given.task, "paper"))
    measured: dict[str, list[float]] = {name: [] for name in subjects}
    for round_ in range(given.rounds + 1):
        for name, measure in subjects.items():
            speed = measure()
            if round_:
                measured[name].append(speed)
    medians = {name: statistics.median(speeds) for name, speeds in measured.items()}
    for name, speed in medians.items():
        ratio = f"  {speed / medians[peer]:5.1f} times Stable-Baselines3" if peer in medians else ""
        print(f"{name:26} {speed:9,.0f} environment steps per CPU second{ratio}")
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB")


if __name__ == "__main__":
    main()
