"""Compares Stable-Baselines3's PPO with a plain policy and with `symcheck.sb3.EquivariantActorCriticPolicy`.

python benchmarks/sb3_policies.py planar                       # two rotors in a plane, C2; 5 seeds of 16,384 steps
python benchmarks/sb3_policies.py quadrotor --steps 204800     # symcheck/Quadrotor-v0, O(2)

Both policies have two trunks of 64 and 64 units, Stable-Baselines3's gains, and the same settings and number of steps.
Every run is evaluated on 16 episodes with the mean action, on environments with other seeds, and its network is
verified. `--out` keeps a Monitor CSV of the training episodes, in a folder for each policy.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor

import symcheck as sc
from symcheck.sb3 import EquivariantActorCriticPolicy

COUNT = 8
GRAVITY, SECONDS = 9.81, 0.05


class PlanarQuadrotor(gym.Env):
    """Two rotors hold a beam at the origin: x, z, cos and sin of the tilt, three velocities; thrusts in [-1, 1]."""

    metadata = {"render_modes": []}  # noqa: RUF012

    def __init__(self) -> None:
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, (7,), np.float32)
        self.action_space = gym.spaces.Box(-1.0, 1.0, (2,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start near the origin, nearly level."""
        super().reset(seed=seed)
        reach = np.array([1.0, 1.0, 0.3, 0.2, 0.2, 0.2])
        self.place, self.speed = np.split(self.np_random.uniform(-reach, reach), 2)
        return self.look(), {}

    def look(self) -> np.ndarray:
        """The observation."""
        x, z, tilt = self.place
        return np.array([x, z, np.cos(tilt), np.sin(tilt), *self.speed], np.float32)

    def step(self, action: np.ndarray) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Simulate 0.05 s."""
        thrust = np.clip(action.astype(float), -1.0, 1.0)
        lift = GRAVITY * (1.0 + thrust.mean())  # 0 is hovering
        tilt = self.place[2]
        turning = 0.5 * GRAVITY * (thrust[1] - thrust[0])
        self.speed = self.speed + SECONDS * np.array([-lift * np.sin(tilt), lift * np.cos(tilt) - GRAVITY, turning])
        self.place = self.place + SECONDS * self.speed
        x, z, tilt = self.place
        crashed = max(abs(x), abs(z)) > 3.0 or abs(tilt) > 1.5
        cost = 0.3 * (x * x + z * z) + 0.1 * self.speed[2] ** 2 + 0.05 * float(thrust @ thrust)
        return self.look(), 1.0 - cost - 10.0 * crashed, bool(crashed), False, {}


MIRROR = sc.Symmetry("left-right", sc.groups.cyclic(2), observation=[[-1, 1, 1, -1, -1, 1, -1]], action=[[1, 0]])
TASKS: dict[str, tuple[Callable[[], gym.Env], sc.Symmetry | str, int]] = {
    "planar": (lambda: gym.wrappers.TimeLimit(PlanarQuadrotor(), 200), MIRROR, 16_384),
    "quadrotor": (lambda: gym.make("symcheck/Quadrotor-v0"), "quadrotor/yaw-and-mirror", 204_800),
}


def environments(make: Callable[[], gym.Env], seed: int, file: Path | None = None) -> VecMonitor:
    """Eight copies; training episodes are written to a Monitor CSV."""
    vector = VecMonitor(DummyVecEnv([make] * COUNT), None if file is None else str(file))
    vector.seed(seed)
    return vector


def train(task: str, policy: str, seed: int, steps: int, out: Path | None) -> tuple[float, str]:
    """The mean return after training, and the verdict on the network."""
    make, symmetry, _ = TASKS[task]
    file = None
    if out is not None:
        file = out / policy / f"seed{seed}.monitor.csv"
        file.parent.mkdir(parents=True, exist_ok=True)
    options = {"symmetry": symmetry} if policy == "equivariant" else {}
    kind = EquivariantActorCriticPolicy if options else "MlpPolicy"
    vector = environments(make, seed, file)
    settings = {"n_steps": 256, "batch_size": 256, "learning_rate": 1e-3, "device": "cpu", "seed": seed}
    agent = PPO(kind, vector, policy_kwargs=options, **settings)
    agent.learn(steps)
    mean, _ = evaluate_policy(agent, environments(make, 1_000 + seed), 16)
    return float(mean), sc.verify_net(agent.policy, symmetry).verdict


def main(task: str, steps: int | None, seeds: int, out: Path | None) -> None:
    """Print one line for each run, then the means."""
    torch.set_num_threads(1)
    steps = steps or TASKS[task][2]
    returns: dict[str, list[float]] = {"plain": [], "equivariant": []}
    for seed in range(seeds):
        for policy, reached in returns.items():
            start = time.perf_counter()
            mean, verdict = train(task, policy, seed, steps, out)
            reached.append(mean)
            print(f"{policy:12} seed {seed}  {mean:8.1f}  {verdict:7} {time.perf_counter() - start:6.1f} s", flush=True)
    for policy, reached in returns.items():
        print(f"{policy:12} mean {np.mean(reached):.1f}, least {min(reached):.1f} of {seeds} seeds, {steps:,} steps")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("task", choices=list(TASKS))
    parser.add_argument("--steps", type=int)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path)
    main(**vars(parser.parse_args()))
