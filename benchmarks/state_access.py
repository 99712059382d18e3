"""Cost of reading and setting a state relative to a step, and differences between steps from set and reached states.

    python benchmarks/state_access.py

One process, times interleaved by round, the shortest of all rounds. Ratios to the time of a step are meaningful,
absolute times are not. The last two columns are medians over steps of a uniform policy, repeated in another order with
the same random numbers.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np

from symcheck.envs.state_access import StateAccess, find_state_access
from symcheck.envs.state_access.generators import random_state, set_random_state
from symcheck.envs.targets import resolve_environment
from symcheck.spaces.coordinates import SpaceCodec

ENVIRONMENTS = (
    "CartPole-v1", "Pendulum-v1", "FrozenLake-v1", "Blackjack-v1", "Ant-v5", "Walker2d-v5", "LunarLander-v3",
    "BipedalWalker-v3", "CarRacing-v3", "MiniGrid-DoorKey-8x8-v0", "ALE/Pong-v5",
)  # fmt: skip
ROUNDS, SECONDS, STEPS = 5, 0.05, 60


def rate(calls: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Seconds per call, the shortest of interleaved rounds."""
    best = dict.fromkeys(calls, np.inf)
    for _ in range(ROUNDS):
        for name, call in calls.items():
            started, count = time.perf_counter(), 0
            while time.perf_counter() - started < SECONDS:
                call()
                count += 1
            best[name] = min(best[name], (time.perf_counter() - started) / count)
    return best


def gaps(env: gym.Env[Any, Any], access: StateAccess) -> tuple[float, float]:
    """Median differences of observations and rewards between steps and the same steps from set states."""
    base, codec = env.unwrapped, SpaceCodec(env.observation_space, "observation")
    assert access.get is not None
    env.reset(seed=0)
    env.action_space.seed(0)
    taken = []
    for _ in range(STEPS):
        state, random, action = access.get(base), random_state(base, access), env.action_space.sample()
        obs, reward, terminated, truncated, _ = env.step(action)
        taken.append((state, random, action, codec.flatten(obs), float(reward)))
        if terminated or truncated:
            env.reset()
    observed, paid = [], []
    for i in np.random.default_rng(0).permutation(STEPS):
        state, random, action, flat, reward = taken[int(i)]
        set_random_state(base, random, access)
        access.set(base, state)
        obs, again, *_ = base.step(action)
        observed.append(np.abs(codec.flatten(obs) - flat).max())
        paid.append(abs(float(again) - reward))
    return float(np.median(observed)), float(np.median(paid))


def main() -> None:
    """Print one row per environment."""
    warnings.simplefilter("ignore")
    print(f"{'environment':26}{'step us':>10}{'get/step':>10}{'set/step':>10}{'observation':>13}{'reward':>10}")
    for env_id in ENVIRONMENTS:
        arguments = {"repeat_action_probability": 0.0} if env_id.startswith("ALE") else {}
        env: Any = resolve_environment(env_id, env_kwargs=arguments).make()
        access = find_state_access(env.unwrapped)
        assert access is not None
        assert access.get is not None
        difference = gaps(env, access)
        env.reset(seed=0)
        state, get = access.get(env.unwrapped), access.get

        def step(env: gym.Env[Any, Any] = env) -> None:
            if any(env.step(env.action_space.sample())[2:4]):
                env.reset()

        base = env.unwrapped
        seconds = rate({"step": step, "get": partial(get, base), "set": partial(access.set, base, state)})
        print(
            f"{env_id:26}{1e6 * seconds['step']:10.0f}{seconds['get'] / seconds['step']:10.2f}"
            f"{seconds['set'] / seconds['step']:10.2f}{difference[0]:13.1e}{difference[1]:10.1e}"
        )


if __name__ == "__main__":
    main()
