"""A quadrotor that hovers at a target, symmetric under O(2): rotations about the vertical and a vertical mirror.

The observation is the state: position and velocity relative to the target in the world's frame, the three body axes
as columns of the rotation matrix, one after the other, and the angular velocity in the body's frame. Actions are
collective thrust and three torques in the body's frame, each in -1..1. A rotation about the vertical rotates every
world vector and leaves body quantities unchanged, so no action leaves its box. The mirror of the world's x axis, with
the body mirrored in its own y axis, reverses roll and yaw.

    m dv/dt = thrust b3 - m g e3 - drag v        J dw/dt = torque - w x J w - damping w        dR/dt = R [w]

One step is 0.02 s: semi-implicit Euler for velocities, the exact exponential for the attitude. The same function steps
one quadrotor or many (`gymnasium.make_vec`).
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from symcheck.array_types import Bools, Floats

DT = 0.02
GRAVITY, MASS, DRAG = 9.81, 1.0, 0.1
INERTIA: Floats = np.array([0.02, 0.02, 0.035])
TORQUE: Floats = np.array([0.2, 0.2, 0.1])  # torques of a full action, in newton metres
DAMPING = 0.02
REACH = 4.0  # distance from the target, in metres, at which an episode terminates
EPISODE_LIMIT = 250
SIZE = 18
# Position, velocity, then the body axes b1, b2, b3, then the angular velocity.
_AXES = slice(6, 15)


def step_many(states: Floats, actions: Floats) -> tuple[Floats, Floats, Bools]:
    """One step of n quadrotors.

    Args:
        states: shape (n, 18).
        actions: shape (n, 4), in -1..1.

    Returns:
        Next states (n, 18), rewards (n,) and whether each episode terminates (n,).
    """
    position, velocity, rates = states[:, :3], states[:, 3:6], states[:, 15:]
    axes = states[:, _AXES].reshape(-1, 3, 3)  # axes[:, k] is the body axis k in the world
    spun = INERTIA * rates
    rates = rates + DT * (TORQUE * actions[:, 1:] - np.cross(rates, spun) - DAMPING * rates) / INERTIA
    # Columns of R exp([w] dt): the new axes are combinations of the old ones.
    turned = np.einsum("njk,njx->nkx", _exponential(DT * rates), axes)
    thrust = MASS * GRAVITY * (1 + 0.5 * actions[:, :1])
    weight = np.array([0.0, 0.0, -MASS * GRAVITY])
    velocity = velocity + DT * (thrust * turned[:, 2] + weight - DRAG * velocity) / MASS
    position = position + DT * velocity
    following = np.concatenate([position, velocity, turned.reshape(-1, 9), rates], axis=1)
    distance = np.sqrt((position**2).sum(axis=1))
    # Upright and near the target, slowly and with little effort.
    rewards = turned[:, 2, 2] - distance - 0.1 * np.sqrt((velocity**2).sum(axis=1))
    rewards = rewards - 0.01 * (rates**2).sum(axis=1) - 0.05 * (actions**2).sum(axis=1)
    return following, rewards, (distance > REACH) | (turned[:, 2, 2] < 0)


def _exponential(vectors: Floats) -> Floats:
    """exp([v]) for stacked v, shape (n, 3, 3), by Rodrigues' formula."""
    angles = np.sqrt((vectors**2).sum(axis=1))[:, None, None]
    cross = np.zeros((len(vectors), 3, 3))
    cross[:, [2, 0, 1], [1, 2, 0]] = vectors
    cross[:, [1, 2, 0], [2, 0, 1]] = -vectors
    # np.sinc(x) = sin(pi x) / (pi x): finite at 0.
    first = np.sinc(angles / np.pi)
    second = 0.5 * np.sinc(angles / (2 * np.pi)) ** 2
    return np.asarray(np.eye(3) + first * cross + second * (cross @ cross), dtype=np.float64)


def start_many(rng: np.random.Generator, count: int) -> Floats:
    """Start states, (count, 18): near the target, nearly upright, with any heading."""
    states = np.zeros((count, SIZE))
    states[:, :6] = rng.normal(scale=[0.5] * 3 + [0.2] * 3, size=(count, 6))
    heading = rng.uniform(-np.pi, np.pi, size=count)
    yaw = _exponential(np.stack([np.zeros(count), np.zeros(count), heading], axis=1))
    tilt = _exponential(rng.normal(scale=[0.2, 0.2, 0.0], size=(count, 3)))
    # Columns are body axes, which are stored one after the other.
    states[:, _AXES] = (yaw @ tilt).transpose(0, 2, 1).reshape(count, 9)
    states[:, 15:] = rng.normal(scale=0.2, size=(count, 3))
    return states


def _spaces() -> tuple[Any, Any]:
    return gym.spaces.Box(-np.inf, np.inf, (SIZE,), np.float32), gym.spaces.Box(-1.0, 1.0, (4,), np.float32)


class QuadrotorEnv(gym.Env[npt.NDArray[np.float32], npt.NDArray[np.float32]]):
    """The environment, registered as `symcheck/Quadrotor-v0` with a time limit of 250 steps (5 seconds).

    Example:
        >>> env = QuadrotorEnv()
        >>> observation, _ = env.reset(seed=0)
        >>> observation.shape, env.action_space.shape
        ((18,), (4,))
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 - as Gymnasium declares it

    def __init__(self, render_mode: str | None = None) -> None:
        self.render_mode = render_mode
        self.observation_space, self.action_space = _spaces()
        self._state: Floats = np.zeros(SIZE)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[npt.NDArray[np.float32], dict[str, Any]]:
        """Start near the target, nearly upright."""
        super().reset(seed=seed, options=options)
        self._state = start_many(self.np_random, 1)[0]
        return self._state.astype(np.float32), {}

    def step(
        self, action: npt.NDArray[np.float32]
    ) -> tuple[npt.NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Fly for 0.02 seconds."""
        acted: Floats = np.clip(np.asarray(action, dtype=np.float64), -1.0, 1.0)
        states, rewards, ended = step_many(self._state[None], acted[None])
        self._state = states[0]
        return self._state.astype(np.float32), float(rewards[0]), bool(ended[0]), False, {}

    def get_state(self) -> Floats:
        """Position, velocity, body axes and angular velocity, shape (18,)."""
        return self._state.copy()

    def set_state(self, state: npt.ArrayLike) -> None:
        """Put the quadrotor into a state, shape (18,)."""
        self._state = np.array(state, dtype=np.float64).reshape(SIZE)


class QuadrotorVectorEnv(VectorEnv[npt.NDArray[np.float32], npt.NDArray[np.float32], npt.NDArray[Any]]):
    """Many quadrotors in one array: `gymnasium.make_vec("symcheck/Quadrotor-v0", n)`; resets at the next step.

    Args:
        num_envs: the number of quadrotors.
        max_episode_steps: the time limit.
        render_mode: None.

    Example:
        >>> envs = QuadrotorVectorEnv(3)
        >>> envs.reset(seed=0)[0].shape, envs.step(np.zeros((3, 4)))[1].shape
        ((3, 18), (3,))
    """

    metadata: dict[str, Any] = {"render_modes": [], "autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012

    def __init__(
        self, num_envs: int = 1, max_episode_steps: int = EPISODE_LIMIT, render_mode: str | None = None
    ) -> None:
        self.num_envs, self.render_mode, self.spec = num_envs, render_mode, None
        self.single_observation_space, self.single_action_space = _spaces()
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._limit = max_episode_steps
        self._states: Floats = np.zeros((num_envs, SIZE))
        self._ages: npt.NDArray[np.int64] = np.zeros(num_envs, dtype=np.int64)
        self._over: Bools = np.zeros(num_envs, dtype=np.bool_)

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[npt.NDArray[np.float32], dict[str, Any]]:
        """Start a new episode of every quadrotor."""
        # One stream for all quadrotors: use the first seed of a list.
        super().reset(seed=next((s for s in seed if s is not None), None) if isinstance(seed, list) else seed)
        self._states = start_many(self.np_random, self.num_envs)
        self._ages[:], self._over[:] = 0, False
        return self._states.astype(np.float32), {}

    def step(
        self, actions: npt.NDArray[np.float32]
    ) -> tuple[npt.NDArray[np.float32], Floats, Bools, Bools, dict[str, Any]]:
        """Fly for 0.02 seconds; quadrotors whose episode is over restart instead."""
        fresh = self._over
        states, rewards, ended = step_many(self._states, np.clip(np.array(actions, dtype=np.float64), -1.0, 1.0))
        if fresh.any():
            states[fresh] = start_many(self.np_random, int(fresh.sum()))
            rewards[fresh], ended[fresh] = 0.0, False
        self._ages = np.where(fresh, 0, self._ages + 1)
        late = (self._ages >= self._limit) & ~fresh
        self._states, self._over = states, ended | late
        return states.astype(np.float32), rewards, ended, late, {}

    def get_state(self) -> Floats:
        """All states, shape (num_envs, 18)."""
        return self._states.copy()

    def set_state(self, states: npt.ArrayLike) -> None:
        """Set the states of all quadrotors, shape (num_envs, 18); their episodes continue."""
        self._states = np.array(states, dtype=np.float64).reshape(self.num_envs, SIZE)
        self._over[:] = False
        self._ages[:] = 0
