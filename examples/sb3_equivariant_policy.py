"""A Stable-Baselines3 policy that is equivariant under CartPole's mirror, proved before and after training.

python examples/sb3_equivariant_policy.py                                  # needs the extra "sb3"; saves sb3_policy.zip
symcheck verify-net sb3_policy.zip --symmetry cartpole/mirror --trust      # the saved agent, in another process

An ordinary `MlpPolicy` is verified too, and fails: neither its architecture nor training makes it equivariant.
"""

from __future__ import annotations

import argparse

import torch
from stable_baselines3 import PPO
from stable_baselines3.common.policies import ActorCriticPolicy

import symcheck as sc
from symcheck.sb3 import EquivariantActorCriticPolicy, SymmetryCallback

MIRROR = "cartpole/mirror"
POLICIES: dict[str, tuple[type[ActorCriticPolicy] | str, dict[str, str]]] = {
    "equivariant": (EquivariantActorCriticPolicy, {"symmetry": MIRROR}),
    "mlp": ("MlpPolicy", {}),
}


def main(steps: int, out: str) -> dict[str, tuple[str, str]]:
    """Train both policies; returns the verdicts before and after, by name."""
    torch.set_num_threads(1)
    verdicts = {}
    for name, (policy, options) in POLICIES.items():
        agent = PPO(policy, "CartPole-v1", n_steps=256, seed=0, device="cpu", policy_kwargs=options)
        before = sc.verify_net(agent.policy, MIRROR).verdict
        # Logs symmetry/residual_max and related scalars together with the trainer's own.
        watch = SymmetryCallback(MIRROR)
        agent.learn(steps, callback=watch)
        verdicts[name] = (before, sc.verify_net(agent.policy, MIRROR).verdict)
        residual = watch.residuals["residual_max"]
        print(f"{name:12} before: {before:7} after {steps} steps: {verdicts[name][1]:7} residual {residual:.1e}")
        if name == "equivariant":
            agent.save(out)
    return verdicts


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--out", default="sb3_policy.zip")
    main(**vars(parser.parse_args()))
