"""Gymnax environments as a batch: pure functions of a state, all slots stepped by one compiled `vmap`.

The state is read and set as one vector a slot: the leaves of its pytree in JAX's order, flattened. Nothing here is
imported before such an environment is named.
"""

from __future__ import annotations

import importlib
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from symcheck.array_types import Floats
from symcheck.errors import MissingExtraError, TargetError, described

PREFIX = "gymnax:"
_SLOTS = 500
_FUNCTIONS = ("step_env", "reset_env", "observation_space", "action_space")


def is_pure(value: Any) -> bool:
    """Whether a value is an environment of gymnax's kind; imports nothing to ask.

    Example:
        >>> is_pure(3)
        False
    """
    if isinstance(value, type | gym.Env | VectorEnv):
        return False
    return hasattr(value, "default_params") and all(callable(getattr(value, name, None)) for name in _FUNCTIONS)


def make_named(text: str) -> JaxBatch:
    """The batch of an environment that gymnax has a name for, "gymnax:CartPole-v1".

    Raises:
        MissingExtraError: gymnax is not installed.
        TargetError: it has no environment of that name.
    """
    try:
        gymnax = importlib.import_module("gymnax")
    except ImportError as error:
        raise MissingExtraError("jax", needed_for=text) from error
    try:
        env, params = gymnax.make(text.removeprefix(PREFIX))
    except Exception as error:
        raise TargetError(f"gymnax has no environment {text!r}: {described(error)[:200]}.", where="TARGET") from error
    return JaxBatch(env, params)


class JaxBatch(VectorEnv[Any, Any, Any]):
    """Many copies of one pure environment; slots that are over wait for `reset` with a mask.

    Args:
        env: the environment.
        params: its parameters; its default ones when left out.
        slots: how many copies.
    """

    def __init__(self, env: Any, params: Any = None, slots: int = _SLOTS) -> None:
        self._jax = jax = importlib.import_module("jax")
        self.pure = env
        params = env.default_params if params is None else params
        self.num_envs = slots
        self.metadata = {"autoreset_mode": AutoresetMode.DISABLED}
        self.single_observation_space = _as_gymnasium(env.observation_space(params))
        self.single_action_space = _as_gymnasium(env.action_space(params))
        self.observation_space = batch_space(self.single_observation_space, slots)
        self.action_space = batch_space(self.single_action_space, slots)

        def step(key: Any, state: Any, action: Any) -> tuple[Any, ...]:
            observation, after, reward, ended, _ = env.step_env(key, state, action, params)
            cut = env.is_truncated(after, params) if hasattr(env, "is_truncated") else False
            return observation, after, reward, ended, cut

        # One call for all slots, compiled once.
        self._step = jax.jit(jax.vmap(step))
        self._reset = jax.jit(jax.vmap(lambda key: env.reset_env(key, params)))
        self.state: Any = None

    def _keys(self) -> Any:
        return self._jax.random.split(self._jax.random.PRNGKey(int(self.np_random.integers(2**31))), self.num_envs)

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Reset all slots, or those of `options["reset_mask"]`."""
        super().reset(seed=seed)
        observations, fresh = self._reset(self._keys())
        mask = (options or {}).get("reset_mask")
        if mask is None or self.state is None:
            self.state = fresh
        else:
            self.state = self._jax.tree.map(lambda new, old: _where(mask, new, old), fresh, self.state)
        return np.array(observations), {}

    def step(self, actions: Any) -> tuple[Any, Floats, Any, Any, dict[str, Any]]:
        """Step all slots."""
        observations, self.state, rewards, ended, cut = self._step(self._keys(), self.state, actions)
        rewards = np.asarray(rewards, dtype=np.float64)
        return np.array(observations), rewards, np.array(ended, dtype=bool), np.array(cut, dtype=bool), {}

    def read_states(self) -> Floats:
        """The states of all slots, one row each."""
        leaves = self._jax.tree.leaves(self.state)
        return np.concatenate([np.asarray(x, dtype=np.float64).reshape(self.num_envs, -1) for x in leaves], axis=1)

    def put_states(self, states: Any) -> None:
        """Put every slot into a state."""
        rows = np.asarray(states, dtype=np.float64)
        leaves, form = self._jax.tree.flatten(self.state)
        placed, at = [], 0
        for leaf in leaves:
            width = int(np.prod(leaf.shape[1:]))
            placed.append(self._jax.numpy.asarray(rows[:, at : at + width].reshape(leaf.shape), dtype=leaf.dtype))
            at += width
        self.state = self._jax.tree.unflatten(form, placed)


def _where(mask: Any, new: Any, old: Any) -> Any:
    return np.where(np.reshape(mask, (-1,) + (1,) * (np.ndim(new) - 1)), new, old).astype(new.dtype)


def _as_gymnasium(space: Any) -> spaces.Space[Any]:
    """A space of gymnax as one of Gymnasium's."""
    if hasattr(space, "n"):
        return spaces.Discrete(int(space.n))
    if hasattr(space, "low") and hasattr(space, "shape"):
        dtype = np.dtype(space.dtype)
        low, high = (np.broadcast_to(np.asarray(bound, dtype), space.shape) for bound in (space.low, space.high))
        return spaces.Box(low, high, tuple(space.shape), dtype.type)
    raise TargetError(
        f"expected a Box or Discrete space of gymnax, got {type(space).__name__}.",
        where="TARGET",
        remedy="Environments with other spaces are not checked.",
    )
