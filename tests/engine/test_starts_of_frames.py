"""Starts that differ from their images in products of coordinates alone: right-handed axes and left-handed ones."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

import symcheck as sc


class Frames(gym.Env):
    """A random direction in the plane, the one a quarter turn to its left, and numbers that say nothing."""

    action_space = spaces.Discrete(2)

    def __init__(self, silent=8):
        self.silent, self.observation_space = silent, spaces.Box(-5.0, 5.0, (6 + silent,), np.float64)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        turn = self.np_random.uniform(0, 2 * np.pi)
        first, second = [np.cos(turn), np.sin(turn), 0.0], [-np.sin(turn), np.cos(turn), 0.0]
        self._shown = np.concatenate([first, second, self.np_random.uniform(-1, 1, self.silent)])
        return self._shown.copy(), {}

    def step(self, action):
        return self._shown.copy(), 0.0, False, False, {}


@pytest.mark.parametrize(
    ("mirror", "verdict"),
    [
        ([-1, 1, 1, -1, 1, 1], "failed"),  # left becomes right
        ([-1, 1, 1, 1, -1, -1], "passed"),  # and the second direction is reversed: left again
    ],
)
def test_a_mirror_of_axes_is_told_from_one_that_keeps_their_hand(mirror, verdict):
    claim = sc.Symmetry("mirror", sc.groups.cyclic(2), observation=[[*mirror, *[1] * 8]], action=[[1, 0]])
    assert sc.verify_env(Frames, claim, samples=600)["initial_invariance"].verdict == verdict


@pytest.mark.parametrize(("silent", "verdict"), [(20, "failed"), (21, "passed")])
def test_products_of_starts_are_compared_up_to_24_coordinates_that_differ(silent, verdict):
    # Four of the six coordinates of the axes differ between starts.
    claim = sc.Symmetry(
        "mirror", sc.groups.cyclic(2), observation=[[-1, 1, 1, -1, 1, 1, *[1] * silent]], action=[[1, 0]]
    )
    report = sc.verify_env(lambda: Frames(silent), claim, samples=100)
    assert report["initial_invariance"].verdict == verdict
