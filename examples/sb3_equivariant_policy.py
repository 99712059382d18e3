"""A Stable-Baselines3 policy that respects CartPole's mirror, proved before and after training.

python examples/sb3_equivariant_policy.py                                  # needs the extra "sb3"; saves sb3_policy.zip
symcheck verify-net sb3_policy.zip --symmetry cartpole/mirror --trust      # the saved agent, in another process

An ordinary `MlpPolicy` is asked too, and fails: nothing makes it symmetric, and training does not either.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import torch
from stable_baselines3 import PPO
from stable_baselines3.common.policies import ActorCriticPolicy
from torch import Tensor, nn

import symcheck as sc
from symcheck.nn import BasisLinear, EquivariantSequential, PointwiseNonlinearity

C2 = sc.groups.cyclic(2)
MIRROR = sc.Symmetry("cart-pole mirror", C2, observation=[[-1, -1, -1, -1]], action=[[1, 0]])
HIDDEN = sc.representations.regular(C2)


class Body(nn.Module):
    """What Stable-Baselines3 calls an MLP extractor: features (batch, 4) in, latents of actor and critic out."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.latent_dim_pi = self.latent_dim_vf = channels * HIDDEN.dim
        self.layers = EquivariantSequential(
            BasisLinear(MIRROR.observation_representation, HIDDEN, 1, channels),
            PointwiseNonlinearity(HIDDEN, "relu"),
            BasisLinear(HIDDEN, HIDDEN, channels, channels),
            PointwiseNonlinearity(HIDDEN, "relu"),
        )

    def forward(self, features: Tensor) -> tuple[Tensor, Tensor]:
        latent = self.forward_actor(features)
        return latent, latent

    def forward_actor(self, features: Tensor) -> Tensor:
        return self.layers(features.unsqueeze(1)).flatten(1)

    def forward_critic(self, features: Tensor) -> Tensor:
        return self.forward_actor(features)


class Head(nn.Module):
    """A basis layer on flat latents: (batch, channels * |G|) to (batch, dim of the output)."""

    def __init__(self, output: sc.representations.Representation, channels: int) -> None:
        super().__init__()
        self.layer = BasisLinear(HIDDEN, output, channels, 1)

    def forward(self, latent: Tensor) -> Tensor:
        return self.layer(latent.unflatten(1, (-1, HIDDEN.dim))).flatten(1)


class EquivariantPolicy(ActorCriticPolicy):
    """An actor-critic policy of basis layers: equivariant logits, invariant value."""

    channels = 32

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **{**options, "ortho_init": False})  # basis layers initialise themselves

    def _build_mlp_extractor(self) -> None:
        self.mlp_extractor = Body(self.channels)

    def _build(self, lr_schedule: Callable[[float], float]) -> None:
        super()._build(lr_schedule)
        self.action_net = Head(MIRROR.action_representation, self.channels)
        self.value_net = Head(sc.representations.trivial(C2, 1), self.channels)
        self.optimizer = self.optimizer_class(self.parameters(), lr=lr_schedule(1), **self.optimizer_kwargs)


def trained(policy: type[ActorCriticPolicy] | str, steps: int) -> tuple[PPO, str, str]:
    """An agent and the verdicts on its network before and after training."""
    agent = PPO(policy, "CartPole-v1", n_steps=256, seed=0, device="cpu")
    before = sc.verify_net(agent.policy, MIRROR).verdict
    agent.learn(steps)
    return agent, before, sc.verify_net(agent.policy, MIRROR).verdict


def main(steps: int, out: str) -> dict[str, tuple[str, str]]:
    """Train both policies; the verdicts before and after, by name."""
    torch.set_num_threads(1)
    verdicts = {}
    for name, policy in (("equivariant", EquivariantPolicy), ("mlp", "MlpPolicy")):
        agent, *pair = trained(policy, steps)
        verdicts[name] = (pair[0], pair[1])
        print(f"{name:12} before training: {pair[0]:7} after {steps} steps: {pair[1]}")
        if name == "equivariant":
            agent.save(out)
    return verdicts


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--out", default="sb3_policy.zip")
    main(**vars(parser.parse_args()))
