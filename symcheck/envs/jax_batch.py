"""Batches of pure JAX environments; one compiled `vmap` steps all slots.

The state of each slot is read and set as one vector of the flattened arrays that determine it: all leaves of its pytree
in JAX's order, unless fewer determine the state in that library.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from symcheck.array_types import Floats
from symcheck.envs.jax_libraries import read_environment
from symcheck.envs.models.model import BatchModel, Transitions, never
from symcheck.errors import TargetError

_SLOTS = 500


class JaxBatch(VectorEnv[Any, Any, Any]):
    """Many copies of one pure environment; finished slots wait for `reset` with a mask.

    Args:
        env: an environment of gymnax, Brax, jumanji or Pgx.
        slots: the number of copies; 500 by default.

    Attributes:
        pure: the environment.
        is_pure: True, because slots are identical and independent, so they may explore in parallel.
    """

    is_pure = True

    def __init__(self, env: Any, slots: int | None = None) -> None:
        self._jax = jax = importlib.import_module("jax")
        self.pure = env
        functions = read_environment(env)
        self.num_envs = slots = _SLOTS if slots is None else slots
        self.metadata = {"autoreset_mode": AutoresetMode.DISABLED}
        self.single_observation_space = functions.observation_space
        self.single_action_space = functions.action_space
        self.observation_space = batch_space(self.single_observation_space, slots)
        self.action_space = batch_space(self.single_action_space, slots)
        self._parts = functions.parts or jax.tree.leaves
        self._observe = None if functions.observe is None else jax.jit(jax.vmap(functions.observe))
        self._put = None if functions.put is None else jax.jit(jax.vmap(functions.put))
        numpy = jax.numpy

        def step(seed: Any, states: Any, actions: Any) -> Any:
            return jax.vmap(functions.step)(_keys(seed), states, actions)

        def reset(seed: Any) -> Any:
            return jax.vmap(functions.reset)(_keys(seed))

        def refresh(seed: Any, states: Any, mask: Any) -> tuple[Any, Any]:
            """New initial states where the mask is true; the other states are unchanged."""
            observations, fresh = reset(seed)
            chosen = jax.tree.map(
                lambda new, old: numpy.where(mask.reshape((-1,) + (1,) * (new.ndim - 1)), new, old), fresh, states
            )
            return observations, chosen

        def _keys(seed: Any) -> Any:
            return jax.random.split(jax.random.PRNGKey(seed), slots)

        # One call for all slots, compiled once; keys are drawn inside.
        self._step, self._reset, self._refresh = jax.jit(step), jax.jit(reset), jax.jit(refresh)
        self.state: Any = None

    def _draw(self) -> int:
        return int(self.np_random.integers(2**31))

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Reset all slots, or those of `options["reset_mask"]`."""
        super().reset(seed=seed)
        mask = (options or {}).get("reset_mask")
        if mask is None or self.state is None:
            observations, self.state = self._reset(self._draw())
        else:
            observations, self.state = self._refresh(self._draw(), self.state, np.asarray(mask))
        return self._jax.tree.map(np.array, observations), {}

    def step(self, actions: Any) -> tuple[Any, Floats, Any, Any, dict[str, Any]]:
        """Step all slots."""
        observations, self.state, rewards, ended, cut = self._step(self._draw(), self.state, actions)
        rewards = np.asarray(rewards, dtype=np.float64)
        if rewards.shape != (self.num_envs,):
            raise TargetError(
                f"expected one reward per step, got {rewards.shape[1:]} of {type(self.pure).__name__}.", where="TARGET"
            )
        seen = self._jax.tree.map(np.array, observations)
        ended, cut = (np.broadcast_to(np.asarray(flag, dtype=bool), rewards.shape).copy() for flag in (ended, cut))
        return seen, rewards, ended, cut, {}

    def read_states(self) -> Floats:
        """The states of all slots, one row each."""
        parts = [self._as_numbers(part).reshape(self.num_envs, -1) for part in self._parts(self.state)]
        return np.concatenate([part.astype(np.float64) for part in parts], axis=1)

    def put_states(self, states: Any) -> None:
        """Put every slot into a state."""
        rows = np.asarray(states, dtype=np.float64)
        placed, at = [], 0
        for part in self._parts(self.state):
            form = self._as_numbers(part)
            width = int(np.prod(form.shape[1:]))
            values = rows[:, at : at + width].reshape(form.shape).astype(form.dtype)
            placed.append(self._like(part, values))
            at += width
        if self._put is not None:
            self.state = self._put(self.state, placed)
        else:
            self.state = self._jax.tree.unflatten(self._jax.tree.structure(self.state), placed)

    def batched_form(self) -> BatchModel | None:
        """The same functions on any number of states; None if the observation cannot be computed from a state."""
        if self._observe is None or not self._shows_what_it_says(self._observe):
            return None
        return BatchModel(
            f"the compiled step of {type(self.pure).__name__}", self._step_rows, self._observe_rows, never
        )

    def _shows_what_it_says(self, observe: Callable[[Any], Any]) -> bool:
        """Whether the observation computed from a fresh state equals the one that `reset` returned."""
        seen, _ = self.reset()
        try:
            return np.array_equal(np.asarray(observe(self.state)), seen, equal_nan=True)
        except Exception:  # an observation that needs more than the state, for instance a key, cannot be computed
            return False

    def _step_rows(self, states: Floats, actions: Any) -> Transitions:
        return Transitions(*self._in_pieces(self._step_some, states, np.asarray(actions)))

    def _step_some(self, states: Floats, actions: Any) -> tuple[Any, ...]:
        self.put_states(states)
        observations, rewards, ended, _, _ = self.step(actions)
        return self.read_states(), observations, rewards, ended

    def _observe_rows(self, states: Floats) -> Any:
        return self._in_pieces(self._observe_some, states)[0]

    def _in_pieces(self, function: Callable[..., tuple[Any, ...]], *arrays: Any) -> list[Any]:
        if self.state is None:
            self.reset()
        results = [[row[:count] for row in function(*some)] for count, some in _cut(self.num_envs, *arrays)]
        return [np.concatenate(rows) for rows in zip(*results, strict=True)]

    def _observe_some(self, states: Floats) -> tuple[Any]:
        if self._observe is None:
            raise ValueError("the environment has no function from state to observation")
        self.put_states(states)
        return (np.asarray(self._observe(self.state)),)

    def _as_numbers(self, part: Any) -> Any:
        """Convert a JAX array to NumPy; random keys of the newer type become their numbers."""
        return np.asarray(self._jax.random.key_data(part) if _is_key(part) else part)

    def _like(self, part: Any, values: Any) -> Any:
        return self._jax.random.wrap_key_data(values) if _is_key(part) else values


def _cut(size: int, *arrays: Any) -> Iterator[tuple[int, tuple[Any, ...]]]:
    """Chunks of equal size, so that nothing is compiled twice; the last chunk is padded with its last row."""
    for start in range(0, len(arrays[0]), size):
        pieces = [array[start : start + size] for array in arrays]
        count = len(pieces[0])
        yield count, tuple(np.concatenate([p, np.repeat(p[-1:], size - count, axis=0)]) for p in pieces)


def _is_key(part: Any) -> bool:
    return str(part.dtype).startswith("key<")
