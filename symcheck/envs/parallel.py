"""Several agents as one environment: PettingZoo's parallel form, one joint observation and one joint action.

Rewards and terminations belong to agents, and the image of a step assigns them to the images of the agents. Every
episode therefore watches one agent, drawn at the start: the reward and termination of the episode are those of this
agent, and the observation identifies it. The claim r_h(i)(g s, g a) = r_i(s, a) for every agent is then ordinary reward
invariance.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from symcheck.array_types import Floats
from symcheck.envs.teams import Team, is_team
from symcheck.errors import SpecError, TargetError
from symcheck.symmetry.agents import joint_symmetry
from symcheck.symmetry.symmetry import Symmetry

_LAST = 0.5
_FUNCTIONS = ("observation_space", "action_space", "reset", "step")


def is_parallel(value: Any) -> bool:
    """Whether a value is an environment of several agents that act at once; imports nothing.

    Example:
        >>> is_parallel(3)
        False
    """
    return is_team(value) or (
        not isinstance(value, type | gym.Env | gym.vector.VectorEnv)
        and hasattr(value, "possible_agents")
        and not hasattr(value, "agent_iter")
        and all(callable(getattr(value, name, None)) for name in _FUNCTIONS)
    )


class ParallelEnvironment(gym.Env[Any, Any]):
    """All agents of a parallel environment as one agent; each episode watches one of them.

    Args:
        parallel: the environment.

    Attributes:
        agents: names of all agents, in the environment's order.
    """

    def __init__(self, parallel: Any) -> None:
        self.parallel = parallel
        self.agents = tuple(map(str, parallel.possible_agents))
        self._names = dict(zip(self.agents, parallel.possible_agents, strict=True))
        flag = spaces.Box(0.0, 1.0, (1,), np.float32)
        self.observation_spaces = {a: parallel.observation_space(name) for a, name in self._names.items()}
        self.action_spaces = {a: parallel.action_space(name) for a, name in self._names.items()}
        self.observation_space = spaces.Dict(
            {
                a: spaces.Dict({"alive": flag, "observation": space, "watched": flag})
                for a, space in self.observation_spaces.items()
            }
        )
        self.action_space = spaces.Dict(self.action_spaces)
        self.watched = self.agents[0]
        self._seen: Mapping[Any, Any] = {}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Reset all agents, and draw the watched agent."""
        super().reset(seed=seed)
        given = self.parallel.reset(seed=seed, options=options)
        # Older versions return only observations.
        self._seen = _of_those_there(given[0] if isinstance(given, tuple) else given)
        self.watched = self.agents[int(self.np_random.integers(len(self.agents)))]
        return self._observe(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Step all agents that are alive; reward and termination are those of the watched agent."""
        actions = {name: action[a] for a, name in self._names.items() if name in self.parallel.agents}
        seen, rewards, terminations, truncations, _ = self.parallel.step(actions)
        self._seen = _of_those_there(seen)
        name = self._names[self.watched]
        ended = bool(terminations.get(name, False))
        truncated = bool(truncations.get(name, False)) or (not self.parallel.agents and not ended)
        return self._observe(), float(rewards.get(name, 0.0)), ended, truncated, {}

    def _observe(self) -> dict[str, Any]:
        acting = set(self.parallel.agents)
        return {
            a: {
                # The last observation of an agent, at the step that ends it, is transformed like any other.
                "alive": _flag(1.0 if name in acting else _LAST if name in self._seen else 0.0),
                "observation": self._seen[name] if name in self._seen else blank(self.observation_spaces[a]),
                "watched": _flag(float(a == self.watched)),
            }
            for a, name in self._names.items()
        }

    def close(self) -> None:
        """Close the environment."""
        self.parallel.close()


def remedy_of_agents(value: Any) -> str | None:
    """The remedy for agents that do not act at once; None for values without agents.

    Example:
        >>> remedy_of_agents(3) is None
        True
    """
    if not hasattr(value, "possible_agents"):
        return None
    if hasattr(value, "agent_iter"):
        return (
            "The agents of this environment act in turn. For a board game, use verify-game with "
            "--adapter pettingzoo; for other environments, pass pettingzoo.utils.aec_to_parallel(env)."
        )
    missing = [f"{name}()" for name in _FUNCTIONS if not callable(getattr(value, name, None))]
    return f"PettingZoo's parallel API also requires {', '.join(missing)}." if missing else None


class SettableParallelEnvironment(ParallelEnvironment):
    """A parallel environment with `get_state` and `set_state`; flags for the watched agent follow the state."""

    def get_state(self) -> Floats:
        """The environment's state as a vector, followed by a flag for each agent."""
        inner = np.asarray(self.parallel.get_state(), dtype=np.float64).ravel()
        return np.concatenate([inner, [float(a == self.watched) for a in self.agents]])

    def set_state(self, state: Any) -> None:
        """Put the environment into a state, and watch the flagged agent."""
        vector = np.asarray(state, dtype=np.float64)
        count = len(self.agents)
        self.watched = self.agents[int(vector[-count:].argmax())]
        self.parallel.set_state(vector[:-count])


def as_one(parallel: Any) -> ParallelEnvironment:
    """The environment of all agents.

    Args:
        parallel: an environment in PettingZoo's parallel form, or one of Gymnasium with a list of rewards.

    Raises:
        TargetError: the environment has no agents.
    """
    if isinstance(parallel, gym.Env):
        parallel = Team(parallel)
    if not parallel.possible_agents:
        raise TargetError("the environment does not list its possible_agents.", where="TARGET")
    settable = all(callable(getattr(parallel, name, None)) for name in ("get_state", "set_state"))
    return SettableParallelEnvironment(parallel) if settable else ParallelEnvironment(parallel)


def claim_of_agents(env: Any, symmetry: Symmetry) -> Symmetry:
    """Convert a claim about one agent, with permutations of agents, to a claim about all agents together.

    Args:
        env: the environment of all agents, or None if there is one agent.
        symmetry: the claim as written.

    Raises:
        SpecError: the claim permutes agents, but the environment has one agent.
    """
    if isinstance(env, ParallelEnvironment):
        return joint_symmetry(symmetry, env.agents, env.observation_spaces, env.action_spaces)
    if symmetry.agents is not None:
        raise SpecError(
            "the claim permutes agents, but this environment has one agent.",
            where="Symmetry.agents",
            remedy="Give an environment with PettingZoo's parallel API, or leave agents out.",
        )
    return symmetry


def blank(space: spaces.Space[Any]) -> Any:
    """Zeros in place of the observation of an agent that has left.

    Example:
        >>> blank(spaces.Box(-1, 1, (2,))).tolist(), blank(spaces.Discrete(3))
        ([0.0, 0.0], 0)
    """
    if isinstance(space, spaces.Dict):
        return {key: blank(inner) for key, inner in space.spaces.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(blank(inner) for inner in space.spaces)
    if isinstance(space, spaces.Discrete):
        return int(space.start)
    return np.zeros(space.shape or (), dtype=space.dtype)


def _of_those_there(seen: Mapping[Any, Any]) -> dict[Any, Any]:
    """Observations of the present agents; for others, environments give None or omit them."""
    return {name: view for name, view in seen.items() if view is not None}


def _flag(value: float) -> Any:
    return np.array([value], dtype=np.float32)
