"""A cart between two walls, pushed left or right, in the words of gymnax, Brax, jumanji and Pgx; `wind` is a fault."""

from __future__ import annotations

import dataclasses
import types
from typing import Any, NamedTuple

import numpy as np

WALL = 1.5


def drawn(key):
    """Place and speed of each slot, from its key."""
    return np.random.default_rng(key.ravel()).uniform(-0.5, 0.5, (2, *key.shape[:-1])).astype(np.float32)


def moved(x, v, push, wind):
    v = np.asarray(0.9 * v + 0.2 * push + wind, np.float32)
    x = np.asarray(x + v, np.float32)
    return x, v, -abs(x), abs(x) > WALL


def begun(key):
    x, v = drawn(key)
    return Cart(x, v, np.zeros(x.shape, np.int32))


def pair(x, v):
    return np.stack([x, v], axis=-1).astype(np.float32)


class Cart(NamedTuple):
    x: Any
    v: Any
    time: Any


def space(**fields):
    return types.SimpleNamespace(**fields)


class Gymnax:
    default_params = None

    def __init__(self, wind=0.0):
        self.wind = wind

    def observation_space(self, params):
        return space(low=-np.inf, high=np.inf, shape=(2,), dtype=np.float32)

    def action_space(self, params):
        return space(n=2)

    def get_obs(self, state, params=None, key=None):
        return pair(state.x, state.v)

    def reset_env(self, key, params):
        state = begun(key)
        return self.get_obs(state), state

    def step_env(self, key, state, action, params):
        x, v, reward, ended = moved(state.x, state.v, 2 * action - 1, self.wind)
        after = Cart(x, v, state.time + np.int32(1))
        return self.get_obs(after), after, reward, ended, {}

    def is_truncated(self, state, params):
        return state.time >= 30


@dataclasses.dataclass
class BraxState:
    pipeline_state: Any
    obs: Any
    reward: Any
    done: Any
    info: Any

    def replace(self, **changes):
        return dataclasses.replace(self, **changes)


class Pipeline(NamedTuple):
    q: Any
    qd: Any
    momentum: Any  # follows from the speed: no part of the state that is set


class Brax:
    backend, observation_size, action_size = "standin", 2, 1

    def __init__(self, wind=0.0):
        self.wind = wind

    def pipeline_init(self, q, qd):
        return Pipeline(np.asarray(q), np.asarray(qd), 2 * np.asarray(qd))

    def shown(self, pipeline):
        return np.concatenate([pipeline.q, pipeline.qd], axis=-1).astype(np.float32)

    def reset(self, rng):
        x, v = drawn(rng)
        pipeline = self.pipeline_init(x[..., None], v[..., None])
        return BraxState(pipeline, self.shown(pipeline), 0 * x, 0 * x, {})

    def step(self, state, action):
        now = state.pipeline_state
        x, v, reward, ended = moved(now.q[..., 0], now.momentum[..., 0] / 2, action[..., 0], self.wind)
        pipeline = self.pipeline_init(x[..., None], v[..., None])
        return BraxState(pipeline, self.shown(pipeline), reward, ended.astype(np.float32), {})


class Seen(NamedTuple):
    cart: Any
    sides: Any


class Timestep(NamedTuple):
    step_type: Any
    reward: Any
    discount: Any
    observation: Any


class Jumanji:
    """The cart's place and speed, and which side it is on; a limit of 30 steps."""

    observation_spec = space(
        _specs={
            "cart": space(shape=(2,), dtype=np.float32),
            "sides": space(minimum=False, maximum=True, shape=(2,), dtype=bool),
        }
    )
    action_spec = space(num_values=2, shape=(), dtype=np.int32)

    def __init__(self, wind=0.0):
        self.wind = wind

    def shown(self, state):
        return Seen(pair(state.x, state.v), np.stack([state.x < 0, state.x > 0], axis=-1))

    def reset(self, key):
        state = begun(key)
        return state, Timestep(0, 0.0, 1.0, self.shown(state))

    def step(self, state, action):
        x, v, reward, ended = moved(state.x, state.v, 2 * action - 1, self.wind)
        after = Cart(x, v, state.time + np.int32(1))
        over = ended | (after.time >= 30)
        return after, Timestep(np.where(over, 2, 1), reward, (~ended).astype(np.float32), self.shown(after))


class PgxState(NamedTuple):
    cart: Any
    observation: Any
    rewards: Any
    terminated: Any
    truncated: Any


class Pgx:
    num_players, num_actions = 1, 2

    def __init__(self, wind=0.0):
        self.wind = wind

    def state(self, cart, reward, ended):
        seen = pair(cart.x, cart.v)
        return PgxState(cart, seen, np.asarray(reward, np.float32)[..., None], ended, ended & False)

    def init(self, key):
        return self.state(cart := begun(key), 0 * cart.x, cart.x > np.inf)

    def step(self, state, action, key):
        x, v, reward, ended = moved(state.cart.x, state.cart.v, 2 * action - 1, self.wind)
        return self.state(Cart(x, v, state.cart.time + np.int32(1)), reward, ended)


class TwoPlayers(Pgx):
    num_players = 2
