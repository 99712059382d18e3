"""`verify-net --env` under turns: a Box is square, so inputs whose image lies outside it are left out and counted."""

import gymnasium as gym
import numpy as np
import torch

import symcheck as sc

TURN = {"rotate": [[0, 1]]}
SO2 = sc.Symmetry("turn", sc.groups.so(2), observation=[TURN], action=[TURN])


class Square(gym.Env):
    """Observations in a square, or in a thin rectangle that hardly any turn keeps."""

    action_space = gym.spaces.Box(-1.0, 1.0, (2,))

    def __init__(self, width=1.0, height=1.0):
        self.observation_space = gym.spaces.Box(np.float32([-width, -height]), np.float32([width, height]))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.observation_space.seed(seed)
        return self.observation_space.sample(), {}

    def step(self, action):
        return self.observation_space.sample(), 0.0, False, False, {}


class OnlyInside(torch.nn.Module):
    """Turns along wherever both lie in the square, and answers something else outside it."""

    def forward(self, x):
        outside = x.abs().amax(-1, keepdim=True) > 1.0 + 1e-6
        return torch.where(outside, x * torch.tensor([1.0, 3.0], dtype=x.dtype), x * (x**2).sum(-1, keepdim=True))


class Stretched(torch.nn.Module):
    """Stretches the second axis beyond a radius."""

    def forward(self, x):
        far = (x**2).sum(-1, keepdim=True) > 0.04
        return torch.where(far, x * torch.tensor([1.0, 1.2], dtype=x.dtype), x)


def run(net, env, **options):
    return sc.verify_net(net, SO2, env=env, samples=300, **options)["network_equivariance"]


def test_inputs_whose_image_leaves_the_box_are_left_out_and_counted():
    result = run(OnlyInside(), Square())
    assert result.verdict == "passed"
    (note,) = [note for note in result.notes if note.code == "images_outside_space"]
    assert note.fields["left"] > 0
    assert note.fields["kept"] > note.fields["left"]


def test_a_fault_inside_is_found_and_shown_with_its_image_inside():
    # Unit vectors, the plainest inputs of all, lie outside this square.
    result = run(Stretched(), Square(0.5, 0.5))
    assert result.verdict == "failed"
    for shown in (result.counterexample.observation, result.counterexample.image_observation):
        assert np.abs(np.array(shown)).max() <= 0.5 + 1e-6


def test_a_box_that_few_turns_keep_is_undecided():
    result = run(OnlyInside(), Square(height=0.05))
    assert result.verdict == "undecided"
    assert result.reason.code == "outside_space"


def test_a_finite_group_of_the_square_leaves_nothing_out():
    quarter = np.array([[0, -1], [1, 0]])
    symmetry = sc.Symmetry("quarters", sc.groups.cyclic(4), observation=[quarter], action=[quarter])
    result = sc.verify_net(OnlyInside(), symmetry, env=Square(), samples=300)["network_equivariance"]
    assert result.verdict == "passed"
    assert not [note for note in result.notes if note.code == "images_outside_space"]
