"""How fast the stacked program trains CartPole with the paper's PPO settings, and how that compares.

    python benchmarks/training.py [--runs 175] [--steps 3200] [--rounds 3] [--sb3-steps 8000]

One thread throughout. Networks are timed in interleaved rounds, evaluation left out; medians are printed. Where
Stable-Baselines3 is installed (extra `sb3`), one of its PPO runs with the same settings and widths is timed in the same
rounds: it trains one run at a time, so its steps a second are those of a sweep too.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import time
from collections.abc import Callable

import torch

from reference_agents.catalog import find_network, find_task
from reference_agents.settings import Settings, preset
from reference_agents.trainer import Job, train

RATES = (0.01, 0.05, 0.001, 0.005, 0.0001, 0.0003, 0.0005)


def stacked(network: str, runs: int, steps: int) -> float:
    """Environment steps a second of all runs together, learning included."""
    task = find_task("cartpole")
    settings = preset("cartpole", "paper").with_changes(steps=steps, evaluation_every=10**9, evaluation_episodes=1)
    rates = RATES if runs % len(RATES) == 0 else RATES[:1]
    job = Job(task, find_network(task, network), tuple(range(runs // len(rates))), rates, settings)
    return runs * settings.updates * settings.batch / train(job).training_seconds


def stable_baselines(steps: int, settings: Settings) -> float:
    """Environment steps a second of one PPO run of Stable-Baselines3 with the same settings."""
    from stable_baselines3 import PPO
    from stable_baselines3.common.env_util import make_vec_env

    model = PPO(
        "MlpPolicy",
        make_vec_env("CartPole-v1", n_envs=settings.environments, seed=0),
        learning_rate=0.001,
        n_steps=settings.horizon,
        batch_size=settings.batch // settings.minibatches,
        n_epochs=settings.epochs,
        gamma=settings.discount,
        gae_lambda=settings.gae_lambda,
        clip_range=settings.clip,
        normalize_advantage=False,
        ent_coef=settings.entropy_coefficient,
        vf_coef=settings.value_coefficient,
        max_grad_norm=settings.max_gradient_norm,
        policy_kwargs={"net_arch": [64, 128], "activation_fn": torch.nn.ReLU},
        seed=0,
        device="cpu",
    )
    started = time.perf_counter()
    model.learn(steps)
    return steps / (time.perf_counter() - started)


def main() -> None:
    """Time what the command line asks for, and print medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=175)
    parser.add_argument("--steps", type=int, default=3_200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sb3-steps", type=int, default=8_000)
    given = parser.parse_args()
    torch.set_num_threads(1)
    subjects: dict[str, Callable[[], float]] = {
        f"{network}, {runs} runs stacked": lambda network=network, runs=runs: stacked(network, runs, given.steps)
        for network in ("mlp", "equivariant")
        for runs in (1, given.runs)
    }
    try:
        import stable_baselines3  # noqa: F401
    except ImportError:
        print("Stable-Baselines3 is not installed; only the stacked program is timed")
    else:
        settings = preset("cartpole", "paper")
        subjects["Stable-Baselines3 PPO, MLP"] = lambda: stable_baselines(given.sb3_steps, settings)
    measured: dict[str, list[float]] = {name: [] for name in subjects}
    for _ in range(given.rounds):
        for name, measure in subjects.items():
            measured[name].append(measure())
    medians = {name: statistics.median(values) for name, values in measured.items()}
    peer = medians.get("Stable-Baselines3 PPO, MLP")
    for name, speed in medians.items():
        ratio = f"   {speed / peer:6.1f} times Stable-Baselines3" if peer else ""
        print(f"{name:32} {speed:10,.0f} environment steps a second{ratio}")
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB")


if __name__ == "__main__":
    main()
