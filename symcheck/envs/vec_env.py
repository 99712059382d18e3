"""Converts vector environments of Stable-Baselines3, with their wrappers, to those of Gymnasium.

The two report the end of an episode differently: Stable-Baselines3 returns one flag, marks a time limit in the info of
the slot, and stores the last observation there. A VecEnv is recognised by its class, without an import.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

_PACKAGE = "stable_baselines3.common.vec_env"


def is_vec_env(candidate: object) -> bool:
    """Whether an object is a vector environment of Stable-Baselines3, wrapped or not.

    Example:
        >>> is_vec_env("CartPole-v1")
        False
    """
    parents = type(candidate).__mro__
    return any(parent.__name__ == "VecEnv" and parent.__module__.startswith(_PACKAGE) for parent in parents)


class VecEnvBatch(VectorEnv[Any, Any, Any]):
    """A vector environment of Stable-Baselines3 as one of Gymnasium with autoreset in the same step.

    Args:
        venv: the vector environment with its wrappers; `VecNormalize` keeps its statistics.
    """

    def __init__(self, venv: Any) -> None:
        self.venv = venv
        self.num_envs = int(venv.num_envs)
        self.single_observation_space, self.single_action_space = venv.observation_space, venv.action_space
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self.metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}

    def __deepcopy__(self, memo: dict[int, Any]) -> VecEnvBatch:
        """A copy with copies of all layers, statistics included."""
        return VecEnvBatch(_copy_layers(self.venv))

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Reset all slots with consecutive seeds."""
        if seed is not None:
            self.venv.seed(seed)
        return self.venv.reset(), {}

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Step all slots; `final_obs` contains the last observations of finished slots."""
        observations, rewards, over, infos = self.venv.step(actions)
        over = np.array(over, dtype=np.bool_)
        cut = over & np.array([bool(info.get("TimeLimit.truncated", False)) for info in infos])
        final = np.empty(self.num_envs, dtype=object)
        for k in np.flatnonzero(over):
            final[k] = infos[k]["terminal_observation"]
        return observations, rewards, over & ~cut, cut, {"final_obs": final, "_final_obs": over}

    def close(self, **kwargs: Any) -> None:
        """Close the slots."""
        self.venv.close()


def _copy_layers(venv: Any) -> Any:
    """Copy a stack, innermost layer first, because `VecNormalize` does not copy the environment that it wraps."""
    inner = vars(venv).get("venv")
    if inner is None:
        return copy.deepcopy(venv)
    below = _copy_layers(inner)
    layer = copy.deepcopy(venv, {id(inner): below})
    if vars(layer).get("venv") is None:
        layer.set_venv(below)
    return layer
