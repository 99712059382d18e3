"""Built-in state access for Gymnasium's classic control: CartPole, MountainCar, Pendulum and Acrobot.

Their state is a short float64 vector, and every point of a box is a state. Thresholds are read from the instance, so
subclasses with different limits are sampled within their own. Classes are recognised by name along the MRO, so a lookup
imports nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from symcheck.array_types import Floats
from symcheck.envs.state_access.record import Origin, StateAccess


def built_in(env: Any) -> StateAccess | None:
    """The built-in access of an unwrapped environment, or None for unknown classes.

    Args:
        env: the unwrapped environment; subclasses of the known classes count.

    Returns:
        Access with `get`, `observe`, `sample` and, where the observation determines the state, `from_observation`.
    """
    for base in type(env).__mro__:
        maker = _MAKERS.get(f"{base.__module__}:{base.__name__}")
        if maker is not None:
            return maker(env)
    return None


def _state_of(env: Any) -> Floats:
    """The state in the dtype that the environment computes in (float32 in MountainCarContinuous after a step)."""
    return np.array(env.state) if isinstance(env.state, np.ndarray) else np.array(env.state, dtype=np.float64)


def _set_vector(env: Any, state: Any) -> None:
    single = getattr(state, "dtype", None) == np.float32
    env.state = np.array(state, dtype=np.float32 if single else np.float64)


def _box(low: Floats, high: Floats) -> Callable[[np.random.Generator, int], Floats]:
    def sample(rng: np.random.Generator, n: int) -> Floats:
        return rng.uniform(low, high, size=(n, len(low)))

    return sample


def cartpole(env: Any) -> StateAccess:
    """Access for a cart-pole, with thresholds read from the instance; its state is its observation in float64."""
    # Velocities have no limit; a random policy seldom exceeds 3 within an episode.
    limits = np.array([env.x_threshold, 3.0, env.theta_threshold_radians, 3.0])

    def set_state(target: Any, state: Any) -> None:
        target.state = np.array(state, dtype=np.float64)
        target.steps_beyond_terminated = None  # otherwise setting a state would count as a step after the end

    return StateAccess(
        set_state,
        "CartPole",
        Origin.BUILT_IN,
        get=_state_of,
        sample=_box(-limits, limits),
        observe=lambda state: np.array(state, dtype=np.float32),
        from_observation=lambda obs: np.array(obs, dtype=np.float64),
        box=True,
        ended=lambda state: bool(abs(state[0]) > limits[0] or abs(state[2]) > limits[2]),
    )


def _mountain_car(env: Any) -> StateAccess:
    low = np.array([env.min_position, -env.max_speed])
    high = np.array([env.max_position, env.max_speed])

    return StateAccess(
        _set_vector,
        "MountainCar",
        Origin.BUILT_IN,
        get=_state_of,
        sample=_box(low, high),
        observe=lambda state: np.array(state, dtype=np.float32),
        from_observation=lambda obs: np.array(obs, dtype=np.float64),
        box=True,
        ended=lambda state: bool(state[0] >= env.goal_position and state[1] >= env.goal_velocity),
    )


def _continuous_mountain_car(env: Any) -> StateAccess:
    access = _mountain_car(env)
    box = access.sample

    def sample(rng: np.random.Generator, n: int) -> npt.NDArray[np.float32]:
        return np.asarray(box(rng, n), dtype=np.float32) if box is not None else np.zeros((0, 2), dtype=np.float32)

    return replace(access, sample=sample)  # its states are float32 from the first step on


def _pendulum(env: Any) -> StateAccess:
    high = np.array([np.pi, env.max_speed])

    def set_state(target: Any, state: Any) -> None:
        _set_vector(target, state)
        target.last_u = None

    return StateAccess(
        set_state,
        "Pendulum",
        Origin.BUILT_IN,
        get=_state_of,
        sample=_box(-high, high),
        observe=lambda s: np.array([np.cos(s[0]), np.sin(s[0]), s[1]], dtype=np.float32),
        from_observation=lambda o: np.array([np.arctan2(float(o[1]), float(o[0])), float(o[2])]),
        angles=(0,),
        box=True,
    )


def _acrobot(env: Any) -> StateAccess:
    high = np.array([np.pi, np.pi, env.MAX_VEL_1, env.MAX_VEL_2])

    return StateAccess(
        _set_vector,
        "Acrobot",
        Origin.BUILT_IN,
        get=_state_of,
        sample=_box(-high, high),
        observe=lambda s: np.array(
            [np.cos(s[0]), np.sin(s[0]), np.cos(s[1]), np.sin(s[1]), s[2], s[3]], dtype=np.float32
        ),
        from_observation=lambda o: np.array(
            [
                np.arctan2(float(o[1]), float(o[0])),
                np.arctan2(float(o[3]), float(o[2])),
                float(o[4]),
                float(o[5]),
            ]
        ),
        angles=(0, 1),
        box=True,
        ended=lambda s: bool(-np.cos(s[0]) - np.cos(s[1] + s[0]) > 1.0),
    )


_PACKAGE = "gymnasium.envs.classic_control"
_MAKERS: dict[str, Callable[[Any], StateAccess]] = {
    f"{_PACKAGE}.cartpole:CartPoleEnv": cartpole,
    f"{_PACKAGE}.mountain_car:MountainCarEnv": _mountain_car,
    f"{_PACKAGE}.continuous_mountain_car:Continuous_MountainCarEnv": _continuous_mountain_car,
    f"{_PACKAGE}.pendulum:PendulumEnv": _pendulum,
    f"{_PACKAGE}.acrobot:AcrobotEnv": _acrobot,
}
