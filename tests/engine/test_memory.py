"""Verifying again and again holds no memory: nothing of a finished run is kept anywhere."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path
from typing import Any, ClassVar

import gymnasium as gym
import pytest
from gymnasium.envs.classic_control.cartpole import CartPoleEnv
from gymnasium.envs.classic_control.pendulum import PendulumEnv

import symcheck

_STATM = Path("/proc/self/statm")
_PAGE = 4096


class Tracked(CartPoleEnv):
    """A cart-pole whose instances can be counted."""

    alive: ClassVar[weakref.WeakSet[Any]] = weakref.WeakSet()

    def __init__(self) -> None:
        super().__init__()
        Tracked.alive.add(self)


class Broken(PendulumEnv):
    """A pendulum with a fault, so that counterexamples and causes are made."""

    def step(self, u: Any) -> Any:
        """Step, and pay for turning one way."""
        obs, reward, *rest = super().step(u)  # type: ignore[no-untyped-call]
        return obs, float(reward) + 0.01 * bool(obs[2] > 0), *rest


def test_an_environment_is_let_go_when_its_report_is_made() -> None:
    reports = [symcheck.verify_env(Tracked, "cartpole/mirror", samples=20) for _ in range(3)]
    gc.collect()
    assert len(reports) == 3
    assert len(Tracked.alive) == 0


@pytest.mark.slow
@pytest.mark.skipif(not _STATM.exists(), reason="resident memory is read from /proc")
def test_a_thousand_verifications_do_not_grow() -> None:
    subjects = [
        (lambda: gym.make("CartPole-v1"), "cartpole/mirror", "auto"),
        (Broken, "pendulum/mirror", "auto"),
        (lambda: gym.make("Acrobot-v1"), "acrobot/mirror", "auto"),
        (lambda: gym.make("CartPole-v1"), "cartpole/mirror", "trajectory"),
        (lambda: gym.make_vec("CartPole-v1", num_envs=8), "cartpole/mirror", "auto"),
    ]
    sizes = []
    for i in range(1000):
        make, symmetry, method = subjects[i % len(subjects)]
        symcheck.verify_env(make, symmetry, samples=20, method=method, seed=i)  # type: ignore[arg-type]
        if i % 100 == 99:
            gc.collect()
            sizes.append(int(_STATM.read_text().split()[1]) * _PAGE)
    # Arrays come and go, so that the heap breathes; a leak of 10 kB a run would show as 8 MB between these two.
    assert max(sizes[-3:]) - max(sizes[1:4]) < 6e6, sizes
