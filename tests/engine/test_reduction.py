"""Wide observations are reduced by a fixed function; what is symmetric stays so, and faults are still found."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

import symcheck_properties  # noqa: F401
from symcheck.engine.environments.runner import run_env
from symcheck.engine.options import EnvOptions
from symcheck.groups import catalog
from symcheck.spaces.coordinates import SpaceCodec
from symcheck.spaces.reduction import reduction
from symcheck.symmetry.symmetry import Symmetry


class Screen(gym.Env[Any, Any]):
    """A bright square that is pushed left and right on a screen of 60 x 60 pixels; wind blows to one side."""

    observation_space = spaces.Box(0, 255, (60, 60, 3), np.uint8)
    action_space = spaces.Discrete(2)

    def __init__(self, wind: float = 0.0) -> None:
        self._wind = wind
        self.at = 0.0

    def _shown(self) -> Any:
        picture = np.zeros((60, 60, 3), np.uint8)
        middle = 30 + int(np.clip(np.trunc(self.at), -24, 24))
        picture[20:40, middle - 5 : middle + 5] = 200
        return picture

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        """Start near the middle."""
        super().reset(seed=seed)
        self.at = float(self.np_random.normal(0, 6))
        return self._shown(), {}

    def step(self, action: Any) -> Any:
        """Push."""
        self.at = 0.9 * self.at + (4.0 if action else -4.0) + self._wind + float(self.np_random.normal())
        return self._shown(), -abs(self.at), False, False, {}


def _verdicts(wind: float, seed: int = 0) -> dict[str, str]:
    mirror = Symmetry("mirror", catalog.cyclic(2), [lambda obs: obs[:, ::-1].copy()], [[1, 0]])
    options = EnvOptions(samples=1500, method="trajectory", seed=seed)
    make = lambda: gym.wrappers.TimeLimit(Screen(wind), 20)  # noqa: E731
    result = run_env(make, mirror, options=options, target="screen", command="")
    return {one.name: one.verdict for one in result.properties}


def test_a_symmetric_screen_passes_as_a_black_box() -> None:
    assert set(_verdicts(0.0).values()) == {"passed"}


def test_wind_on_a_screen_is_found() -> None:
    assert _verdicts(2.5)["transition_invariance"] == "failed"


def test_pixels_are_averaged_over_blocks_that_keep_the_total() -> None:
    codec = SpaceCodec(spaces.Box(0, 255, (48, 60, 3), np.uint8), "observation")
    view = reduction(codec)
    picture = np.random.default_rng(0).integers(0, 256, size=(48, 60, 3))
    blocks = view.apply(picture.reshape(1, -1).astype(float)).reshape(12, 12, 3)
    assert blocks[0, 0, 1] == pytest.approx(picture[:4, :5, 1].mean())
    assert blocks.mean() == pytest.approx(picture.mean())
    assert len(set(view.coordinates.names)) == view.coordinates.dim


def test_narrow_observations_are_left_alone() -> None:
    codec = SpaceCodec(spaces.Box(-1, 1, (1, 21, 21), np.float32), "observation")
    assert reduction(codec).coordinates is codec.coordinates


def test_a_wide_vector_is_reduced_by_the_same_function_each_time() -> None:
    codec = SpaceCodec(spaces.Box(-1, 1, (3000,), np.float32), "observation")
    flat = np.random.default_rng(0).normal(size=(2, 3000))
    flat[0, 7] = np.nan
    one, two = reduction(codec), reduction(codec)
    assert one.coordinates.dim == one.apply(flat).shape[1] < 300
    assert np.array_equal(one.apply(flat), two.apply(flat))
    assert np.isfinite(one.apply(flat)).all()
