"""Lifted networks are equivariant whatever was learned, and wrapped environments have symmetric laws."""

from __future__ import annotations

import math
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces

import symcheck as sc
from symcheck.envs import predator_prey
from symcheck.errors import SpecError
from symcheck.wrappers import Quotient, RandomSymmetry, lifted_network
from symcheck.wrappers.orbit import leading, leading_one

CARTPOLE = sc.Symmetry("mirror", sc.groups.cyclic(2), [[-1, -1, -1, -1]], [[1, 0]])
SQUARE = sc.Symmetry("square", sc.groups.dihedral(4), ["rot90", "flip_ud"], [[0, 2, 3, 4, 1], [0, 3, 2, 1, 4]])
CYCLE = sc.Symmetry("cycle", sc.groups.cyclic(3), [[1, 2, 0]], [[1, 2, 0]])


class _ThreeEnv(gym.Env[Any, Any]):
    observation_space = spaces.Box(-10, 10, (3,), np.float32)
    action_space = spaces.Discrete(3)


def _mlp(inputs: int, outputs: int, dtype: torch.dtype = torch.float32) -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Flatten(), torch.nn.Linear(inputs, 16), torch.nn.Tanh(), torch.nn.Linear(16, outputs)
    ).to(dtype)


def test_verify_net_passes_the_lifted_network_and_fails_the_plain_one() -> None:
    env = gym.make("CartPole-v1")
    net = _mlp(4, 2)
    assert sc.verify_net(net, CARTPOLE, samples=500).verdict == "failed"
    report = sc.verify_net(lifted_network(net, CARTPOLE, env=env), CARTPOLE, samples=500, input_shape=(4,))
    assert report.verdict == "passed"
    assert max(p.max_residual or 0.0 for p in report.results[0].properties) == 0.0


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_direction_is_right_in_a_group_of_order_three(dtype: torch.dtype) -> None:
    lifted = lifted_network(_mlp(3, 3, dtype), CYCLE, env=_ThreeEnv())
    s = torch.randn(200, 3, dtype=dtype, generator=torch.Generator().manual_seed(1))
    turned = s.roll(1, dims=1)
    torch.testing.assert_close(lifted(turned), lifted(s).roll(1, dims=1), rtol=0, atol=0)


def test_fixed_observations_get_invariant_answers() -> None:
    lifted = lifted_network(_mlp(3, 3, torch.float64), CYCLE, env=_ThreeEnv())
    answer = lifted(torch.full((1, 3), 0.5, dtype=torch.float64))
    # A mean of three numbers in three orders: a rounding unit or two of each.
    torch.testing.assert_close(answer, answer.mean().expand(1, 3), rtol=1e-14, atol=0)


def test_images_are_lifted_through_all_eight_elements() -> None:
    env = gym.make("symcheck:symcheck/PredatorPrey-v0")
    lifted = lifted_network(_mlp(441, 5, torch.float64), SQUARE, env=env)
    images = torch.as_tensor(predator_prey.images().reshape(49, 1, 21, 21), dtype=torch.float64)
    turned = torch.rot90(images, dims=(-2, -1))
    expected = torch.empty(49, 5, dtype=torch.float64)
    expected[:, [0, 2, 3, 4, 1]] = lifted(images)
    torch.testing.assert_close(lifted(turned), expected, rtol=1e-13, atol=1e-15)


def test_values_are_left_as_they_are_and_other_widths_are_refused() -> None:
    class Both(torch.nn.Module):
        def __init__(self, width: int) -> None:
            super().__init__()
            self.width = width

        def forward(self, x: torch.Tensor) -> Any:
            return x[:, : self.width], x.square().sum(1, keepdim=True) + x[:, :1]

    logits, value = lifted_network(Both(2), CARTPOLE, env=gym.make("CartPole-v1"))(torch.randn(5, 4))
    assert (logits.shape, value.shape) == ((5, 2), (5, 1))
    with pytest.raises(SpecError, match=r"must have 2 components \(action\) or 1 component \(invariant\)"):
        lifted_network(Both(3), CARTPOLE, env=gym.make("CartPole-v1"))(torch.randn(5, 4))


def test_the_lifted_network_acts_as_the_agent_inside_the_wrapper_does() -> None:
    base = gym.make("CartPole-v1")
    env, net = Quotient(base, CARTPOLE), _mlp(4, 2)
    lifted = lifted_network(net, CARTPOLE, env=base)
    shown, _ = env.reset(seed=0)
    for _ in range(15):
        raw = torch.as_tensor(np.array(base.unwrapped.state, dtype=np.float32))[None]
        inside = int(net(torch.as_tensor(shown)[None]).argmax())
        mapped = env._bound.action(env._elements.inverses[env._element], inside, shown)
        assert int(lifted(raw).argmax()) == int(mapped)
        shown, _, terminated, _, _ = env.step(inside)
        if terminated:
            break


def _windy() -> gym.Env[Any, Any]:
    """CartPole with a push to the right: not symmetric."""
    from gymnasium.envs.classic_control.cartpole import CartPoleEnv

    class Windy(CartPoleEnv):
        def step(self, action: Any) -> Any:
            x, v, angle, rate = self.state
            self.state = (x, v + 0.05, angle, rate)
            return super().step(action)

    return gym.wrappers.TimeLimit(Windy(), 200)


@pytest.mark.parametrize(("wrapped", "verdict"), [(False, "failed"), (True, "passed")])
def test_random_symmetry_makes_any_law_symmetric(wrapped: bool, verdict: str) -> None:
    """By trajectories, which see what the agent sees: the wind is found without the wrapper and gone with it."""

    def make() -> gym.Env[Any, Any]:
        return RandomSymmetry(_windy(), CARTPOLE) if wrapped else _windy()

    report = sc.verify_env(make, CARTPOLE, method="trajectory", samples=3_000)
    assert report.verdict == verdict


def test_the_leading_images_of_a_whole_orbit_are_the_same() -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(-1, 2, (200, 3)).astype(float)
    images = [np.roll(x, k, axis=1) for k in range(3)]
    alive = leading(images, 200)
    stacked = np.stack(images)
    for row in range(200):
        shown = stacked[alive[:, row], row]
        assert (shown == shown[0]).all()
        assert tuple(shown[0]) == max(tuple(image[row]) for image in images)
        assert alive[:, row].sum() == sum(tuple(image[row]) == tuple(shown[0]) for image in images)


def test_short_vectors_are_compared_as_the_general_way_compares_them() -> None:
    rng = np.random.default_rng(1)
    for _ in range(50):
        x = rng.integers(-1, 2, 3).astype(np.float32)
        images = [np.roll(x, k) for k in range(3)]
        general = leading([image[None] for image in images], 1)[:, 0]
        np.testing.assert_array_equal(leading_one(images, copies=True), general)
        np.testing.assert_array_equal(leading_one(images, copies=False), general)
    hole = [np.array([np.nan, 1.0]), np.array([1.0, np.nan])]
    assert leading_one(hole, copies=True).any()


def _leading_points(ulps: int) -> np.ndarray:
    """The point of an octagon that each of its corners is led to, where one of two tied corners is rounded up.

    The corners at plus and minus 22.5 degrees share their first component; the lower one's is made larger by `ulps`.
    """
    angles = [math.pi / 8 + math.pi / 4 * k for k in range(8)]
    corners = np.array([[math.cos(angle), math.sin(angle)] for angle in angles]).astype(np.float32)
    corners[7, 0] = corners[0, 0] + ulps * np.spacing(corners[0, 0])
    images = np.stack([np.roll(corners, -k, axis=0) for k in range(8)])  # turned k times, corner p is corner p + k
    alive = leading(list(images), 8)
    return np.stack([images[alive[:, row], row][0] for row in range(8)])


@pytest.mark.parametrize("ulps", [0, 1, 8, 64])
def test_rounding_does_not_choose_the_representative(ulps: int) -> None:
    """Two images tie in the first component up to rounding: the second decides."""
    upper = [math.cos(math.pi / 8), math.sin(math.pi / 8)]
    np.testing.assert_allclose(_leading_points(ulps), np.tile(upper, (8, 1)), rtol=2e-7)  # an ulp of float32


def test_a_first_component_that_is_larger_by_more_than_rounding_chooses_the_representative() -> None:
    assert (_leading_points(1_000)[:, 1] < 0).all()


def test_no_observations_have_no_answers() -> None:
    lifted = lifted_network(_mlp(4, 2), CARTPOLE, env=gym.make("CartPole-v1"))
    assert lifted(torch.zeros(0, 4)).shape == (0, 2)
