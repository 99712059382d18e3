"""PPO in one file, in the style of CleanRL, with separate actor and critic networks of basis layers.

python examples/single_file_loop.py --steps 20000

The agent is proved equivariant every ten updates, inside the loop. A proof from the weights takes milliseconds, draws
no random numbers and does not change the agent.
"""

from __future__ import annotations

import argparse

import gymnasium as gym
import torch
from torch import Tensor, nn
from torch.distributions import Categorical

import symcheck as sc
from symcheck.nn import BasisLinear, EquivariantSequential, PointwiseNonlinearity

C2 = sc.groups.cyclic(2)
MIRROR = sc.Symmetry("cart-pole mirror", C2, observation=[[-1, -1, -1, -1]], action=[[1, 0]])


def network(output: sc.representations.Representation, channels: int = 32) -> nn.Module:
    """Observations (batch, 4) to (batch, dim of the output)."""
    hidden = sc.representations.regular(C2)
    return nn.Sequential(
        nn.Unflatten(1, (1, 4)),
        EquivariantSequential(
            BasisLinear(MIRROR.observation_representation, hidden, 1, channels),
            PointwiseNonlinearity(hidden, "relu"),
            BasisLinear(hidden, hidden, channels, channels),
            PointwiseNonlinearity(hidden, "relu"),
            BasisLinear(hidden, output, channels, 1),
        ),
        nn.Flatten(),
    )


class Agent(nn.Module):
    """It has no `forward`: verify-net calls `actor` and `critic`."""

    def __init__(self) -> None:
        super().__init__()
        self.actor = network(MIRROR.action_representation)
        self.critic = network(sc.representations.trivial(C2, 1))

    def act(self, observations: Tensor, actions: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        policy = Categorical(logits=self.actor(observations))
        actions = policy.sample() if actions is None else actions
        return actions, policy.log_prob(actions), policy.entropy(), self.critic(observations).squeeze(-1)


def advantages(rewards: Tensor, values: Tensor, ended: Tensor, discount: float = 0.99, decay: float = 0.95) -> Tensor:
    """Generalised advantage estimates; `values` has one row more than `rewards`, and an end stops the bootstrap."""
    found = torch.zeros_like(rewards)
    running = torch.zeros_like(rewards[0])
    for t in reversed(range(len(rewards))):
        error = rewards[t] + discount * values[t + 1] * ~ended[t] - values[t]
        running = error + discount * decay * ~ended[t] * running
        found[t] = running
    return found


def train(steps: int, seed: int = 0, envs: int = 8, horizon: int = 64) -> list[str]:
    """The verdicts on the agent every ten updates, and at the end."""
    torch.manual_seed(seed)
    agent = Agent()
    optimizer = torch.optim.Adam(agent.parameters(), lr=3e-3)
    same_step = {"autoreset_mode": gym.vector.AutoresetMode.SAME_STEP}
    vector = gym.make_vec("CartPole-v1", num_envs=envs, vectorization_mode="sync", vector_kwargs=same_step)
    observation = torch.as_tensor(vector.reset(seed=seed)[0])
    verdicts = []
    updates = max(1, steps // (envs * horizon))
    for update in range(updates):
        observations, actions, log_probs, rewards, values, ended = [], [], [], [], [], []
        for _ in range(horizon):
            with torch.no_grad():
                action, log_prob, _, value = agent.act(observation)
            following, reward, terminated, truncated, _ = vector.step(action.numpy())
            observations.append(observation)
            actions.append(action)
            log_probs.append(log_prob)
            values.append(value)
            rewards.append(torch.as_tensor(reward, dtype=torch.float32))
            ended.append(torch.as_tensor(terminated | truncated))
            observation = torch.as_tensor(following)
        with torch.no_grad():
            values.append(agent.act(observation)[3])
        advantage = advantages(torch.stack(rewards), torch.stack(values), torch.stack(ended))
        returns = (advantage + torch.stack(values[:-1])).flatten()
        advantage = advantage.flatten()
        batch, old = torch.cat(observations), torch.cat(log_probs)
        for rows in torch.randperm(len(batch)).repeat(4).split(128):
            _, log_prob, entropy, value = agent.act(batch[rows], torch.cat(actions)[rows])
            ratio = (log_prob - old[rows]).exp()
            scaled = (advantage[rows] - advantage[rows].mean()) / (advantage[rows].std() + 1e-8)
            policy_loss = -torch.min(ratio * scaled, ratio.clamp(0.8, 1.2) * scaled).mean()
            loss = policy_loss + 0.5 * (value - returns[rows]).square().mean() - 0.01 * entropy.mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            optimizer.step()
        if update % 10 == 0 or update == updates - 1:
            verdicts.append(sc.verify_net(agent, MIRROR).verdict)
            length = horizon * envs / max(1, int(torch.stack(ended).sum()))
            print(f"update {update:3}: mean episode about {length:.0f} steps, network {verdicts[-1]}")
    vector.close()
    return verdicts


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    train(**vars(parser.parse_args()))
