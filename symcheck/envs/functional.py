"""Converts Gymnasium's functional environments (`FuncEnv`) to stateful ones, with NumPy's random numbers.

A `FuncEnv` is a set of functions (initial state, transition, observation, reward, termination) without stored state.
`FunctionalEnv` keeps the state between calls and passes `np_random` to those functions as `rng`. For functions that
need JAX's random keys, use Gymnasium's `FunctionalJaxEnv`.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym


class FunctionalEnv(gym.Env[Any, Any]):
    """A stateful environment around a `FuncEnv`.

    Args:
        func_env: the functions.

    Example:
        >>> import numpy as np
        >>> from gymnasium.experimental.functional import FuncEnv
        >>> class Walk(FuncEnv):
        ...     observation_space = gym.spaces.Box(-9, 9, (1,))
        ...     action_space = gym.spaces.Discrete(2)
        ...     def initial(self, rng, params=None):
        ...         return np.zeros(1)
        ...     def transition(self, state, action, rng, params=None):
        ...         return state + (1 if action else -1)
        ...     def observation(self, state, rng, params=None):
        ...         return state.astype(np.float32)
        ...     def reward(self, state, action, next_state, rng, params=None):
        ...         return -float(abs(next_state[0]))
        ...     def terminal(self, state, rng, params=None):
        ...         return bool(abs(state[0]) > 5)
        >>> env = FunctionalEnv(Walk())
        >>> _ = env.reset(seed=0)
        >>> env.step(1)[:3]
        (array([1.], dtype=float32), -1.0, False)
    """

    def __init__(self, func_env: Any) -> None:
        self.func_env = func_env
        self.observation_space = func_env.observation_space
        self.action_space = func_env.action_space
        self.state: Any = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Draw an initial state."""
        super().reset(seed=seed)
        self.state = self.func_env.initial(self.np_random)
        return self.func_env.observation(self.state, self.np_random), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Apply the functions to the current state."""
        state, rng = self.state, self.np_random
        # All four functions see the state before the step is kept.
        following = self.func_env.transition(state, action, rng)
        observation = self.func_env.observation(following, rng)
        reward = self.func_env.reward(state, action, following, rng)
        terminated = self.func_env.terminal(following, rng)
        self.state = following
        # Functional environments have no truncation; wrappers provide it.
        return observation, float(reward), bool(terminated), False, {}


def is_functional(value: Any) -> bool:
    """Whether a value is a `FuncEnv`; imports nothing for values that are not.

    Example:
        >>> is_functional(3)
        False
    """
    # By name along the method resolution order, to avoid importing the experimental module.
    return any(
        f"{base.__module__}:{base.__name__}" == "gymnasium.experimental.functional:FuncEnv"
        for base in type(value).__mro__
    )
