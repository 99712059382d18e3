"""Stable-Baselines3 PPO on plain CartPole, on its quotient by the mirror, and on randomly mirrored episodes.

python examples/sb3_wrappers.py                    # needs the extra "sb3"; two minutes
python examples/sb3_wrappers.py --steps 5000 --seeds 1

PPO itself is unchanged: the symmetry is in the wrapper. Each policy is then tested for equivariance. The plain policy
fails. The augmented policy fails too: it was trained on mirrored states, but nothing enforces equivariance. The lifted
quotient policy passes with residual 0.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from statistics import median
from typing import Any

import gymnasium as gym
from stable_baselines3 import PPO
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from torch import Tensor, nn

import symcheck as sc
from symcheck.wrappers import Quotient, RandomSymmetry, lifted_network

MIRROR = sc.Symmetry("cart-pole mirror", sc.groups.cyclic(2), observation=[[-1, -1, -1, -1]], action=[[1, 0]])
WRAPPERS: dict[str, Callable[[gym.Env[Any, Any]], gym.Env[Any, Any]]] = {
    "plain": lambda env: env,
    "RandomSymmetry": lambda env: RandomSymmetry(env, MIRROR),
    "Quotient": lambda env: Quotient(env, MIRROR),
}


class Logits(nn.Module):
    """The action logits (batch, 2) of a Stable-Baselines3 policy."""

    def __init__(self, agent: PPO) -> None:
        super().__init__()
        self.policy = agent.policy

    def forward(self, observation: Tensor) -> Tensor:
        logits: Tensor = self.policy.get_distribution(observation).distribution.logits
        return logits


def trained(wrapper: str, seed: int, steps: int) -> tuple[PPO, float]:
    """The agent, and its mean return over 20 episodes of the same wrapped environment."""
    env = Monitor(WRAPPERS[wrapper](gym.make("CartPole-v1")))
    agent = PPO("MlpPolicy", env, seed=seed, n_steps=512, batch_size=64, learning_rate=1e-3, device="cpu")
    agent.learn(steps)
    mean, _ = evaluate_policy(agent, env, n_eval_episodes=20)
    return agent, float(mean)


def verdict(wrapper: str, agent: PPO) -> str:
    """Whether the policy is equivariant; a policy on the quotient is first lifted to CartPole's own observations."""
    net: nn.Module = Logits(agent)
    if wrapper == "Quotient":
        net = lifted_network(net, MIRROR, env=gym.make("CartPole-v1"))
    report = sc.verify_net(net, MIRROR, input_shape=(4,))
    worst = max(result.max_residual or 0.0 for result in report.results[0].properties)
    return f"{report.verdict} (largest residual {worst:.2g})"


def main() -> None:
    """Train, evaluate and verify each agent, and print one line for it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=15_000)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    for wrapper in WRAPPERS:
        runs = [trained(wrapper, seed, options.steps) for seed in range(options.seeds)]
        returns = [mean for _, mean in runs]
        shown = ", ".join(f"{value:.0f}" for value in returns)
        print(f"{wrapper:<16} return {median(returns):5.0f} ({shown})   policy {verdict(wrapper, runs[0][0])}")


if __name__ == "__main__":
    main()
