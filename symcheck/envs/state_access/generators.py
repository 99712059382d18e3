"""The random numbers of an environment, read and put back, so that a random step can be taken again.

They are no part of a state: where both sides of a pair drew the same noise, a biased one would be hidden. They are
needed where an environment is to be left as it was found, and where stepping is compared with setting.
"""

from __future__ import annotations

import copy
from typing import Any

from symcheck.envs.state_access.record import StateAccess


def random_state(env: Any, access: StateAccess | None = None) -> Any:
    """The state of an unwrapped environment's generators.

    Args:
        env: the unwrapped environment.
        access: of this environment; None for NumPy's `np_random` alone.

    Returns:
        Something for `set_random_state`.
    """
    if access is not None and access.get_random is not None:
        return access.get_random(env)
    return copy.deepcopy(env.np_random.bit_generator.state)


def set_random_state(env: Any, state: Any, access: StateAccess | None = None) -> None:
    """Put the generators of an unwrapped environment back; where that puts back more (ALE), set the state after it.

    Args:
        env: the unwrapped environment.
        state: what `random_state` returned.
        access: the same as there.

    Example:
        >>> import gymnasium
        >>> env = gymnasium.make("CartPole-v1").unwrapped
        >>> before = random_state(env)
        >>> first = env.np_random.random()
        >>> set_random_state(env, before)
        >>> env.np_random.random() == first
        True
    """
    if access is not None and access.set_random is not None:
        access.set_random(env, state)
        return
    env.np_random.bit_generator.state = copy.deepcopy(state)
