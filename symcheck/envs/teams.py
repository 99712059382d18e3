"""Gymnasium environments of several agents in PettingZoo's parallel form: tuples of observations, actions and rewards.

Libraries such as rware and lbforaging use this form: two `Tuple` spaces with one space per agent, `n_agents`, and a
list of rewards. Agents are named `agent_0`, `agent_1`, ... in the order of the tuples; all act until the episode ends.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces


def is_team(value: Any) -> bool:
    """Whether an environment returns a list of rewards, one for each part of its actions.

    Example:
        >>> is_team(gym.make("CartPole-v1"))
        False
    """
    if not isinstance(value, gym.Env):
        return False
    seen, acted = getattr(value, "observation_space", None), getattr(value, "action_space", None)
    if not isinstance(seen, spaces.Tuple) or not isinstance(acted, spaces.Tuple) or len(seen) != len(acted):
        return False
    return getattr(value.unwrapped, "n_agents", None) == len(acted) and _gives_rewards(value, len(acted))


def _gives_rewards(env: gym.Env[Any, Any], count: int) -> bool:
    """Whether a step of a copy, if it can be copied, returns that number of rewards."""
    try:
        probe = copy.deepcopy(env)
    except Exception:  # an environment may contain anything
        probe = env
    try:
        probe.reset(seed=0)
        probe.action_space.seed(0)
        rewards: Any = probe.step(probe.action_space.sample())[1]
        return bool(np.shape(rewards) == (count,))
    except Exception:  # the run will report the error
        return False


class Team:
    """An environment of several agents in PettingZoo's parallel form.

    Args:
        env: an environment with `Tuple` spaces and a list of rewards.

    Attributes:
        possible_agents: `agent_0`, `agent_1`, ...
        agents: the acting agents; empty after the end of the episode.
    """

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        self.env = env
        seen, acted = env.observation_space, env.action_space
        if not isinstance(seen, spaces.Tuple) or not isinstance(acted, spaces.Tuple):
            raise TypeError(f"both spaces must be Tuple spaces with one entry for each agent, got {seen} and {acted}")
        self.possible_agents = [f"agent_{i}" for i in range(len(acted))]
        self.agents = list(self.possible_agents)
        self._observed = dict(zip(self.possible_agents, seen.spaces, strict=True))
        self._acted = dict(zip(self.possible_agents, acted.spaces, strict=True))

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        """The space of one agent."""
        return self._observed[agent]

    def action_space(self, agent: str) -> spaces.Space[Any]:
        """The space of one agent."""
        return self._acted[agent]

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, Any]:
        """Observations by agent."""
        observations, _ = self.env.reset(seed=seed, options=options)
        self.agents = list(self.possible_agents)
        return self._by_agent(observations), {}

    def step(self, actions: dict[str, Any]) -> tuple[Any, Any, Any, Any, Any]:
        """Observations, rewards and terminations by agent."""
        acting = [actions[agent] for agent in self.possible_agents]
        rewards: Any  # one reward per agent instead of a single number
        observations, rewards, ended, truncated, _ = self.env.step(tuple(acting))
        ends = [bool(np.all(end)) for end in (ended, truncated)]
        if any(ends):
            self.agents = []
        flags = [dict.fromkeys(self.possible_agents, end) for end in ends]
        return self._by_agent(observations), self._by_agent(rewards), flags[0], flags[1], {}

    def _by_agent(self, values: Sequence[Any]) -> dict[str, Any]:
        return dict(zip(self.possible_agents, values, strict=True))

    def close(self) -> None:
        """Close the environment."""
        self.env.close()
