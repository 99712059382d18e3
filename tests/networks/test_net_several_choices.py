"""Policies that choose several values at once: the claim acts on vectors of integers, the network returns logits."""

from types import SimpleNamespace

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces
from torch import nn

import symcheck as sc
from symcheck.engine.networks.samples.decisions import staying_behind
from symcheck.errors import SpecError

C2 = sc.groups.cyclic(2)
PAIRS = spaces.MultiDiscrete([3, 3])
UNEQUAL = spaces.MultiDiscrete([2, 3])
BITS = spaces.MultiBinary(2)
REVERSED = {"signs": [-1, -1], "offset": [2, 2]}
FLIPPED = {"signs": [-1, -1], "offset": [1, 1]}


class Policy(nn.Module):
    """The average of a free network over the two elements, which act on logits by the given matrix."""

    def __init__(self, actions, logits, *, unequal=0.0):
        super().__init__()
        torch.manual_seed(0)
        self.action_space = actions
        self.register_buffer("logits", torch.tensor(logits, dtype=torch.float32))
        self.free = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, len(logits)))
        self.register_buffer("shift", unequal * torch.eye(len(logits))[0])

    def forward(self, x):
        image = -x[:, [1, 0]]
        return self.free(x) + self.free(image) @ self.logits + self.shift


def signed(*images):
    """The matrix that sends entry j to |images[j]| - 1, with its sign; written by columns."""
    matrix = np.zeros((len(images), len(images)))
    for j, image in enumerate(images):
        matrix[abs(image) - 1, j] = np.sign(image)
    return matrix.T.tolist()


CLAIMS = {
    "components exchanged": (PAIRS, [1, 0], signed(4, 5, 6, 1, 2, 3)),
    "values reversed": (PAIRS, REVERSED, signed(3, 2, 1, 6, 5, 4)),
    "both, as a callable": (PAIRS, lambda action, _: 2 - action[::-1], signed(6, 5, 4, 3, 2, 1)),
    "one component of two sizes": (UNEQUAL, {"signs": [-1, 1], "offset": [1, 0]}, signed(2, 1, 3, 4, 5)),
    "bits exchanged": (BITS, [1, 0], signed(2, 1)),
    "bits flipped": (BITS, FLIPPED, signed(-1, -2)),
    "two logits for each bit": (BITS, FLIPPED, signed(2, 1, 4, 3)),
}


def check(policy, entry, **options):
    return sc.verify_net(policy, sc.Symmetry("swap", C2, [["-2", "-1"]], [entry]), samples=300, **options)


@pytest.mark.parametrize("name", CLAIMS)
def test_logits_move_with_the_values_they_stand_for(name):
    actions, entry, matrix = CLAIMS[name]
    assert check(Policy(actions, matrix), entry).verdict in ("passed", "proved")
    assert check(Policy(actions, matrix, unequal=1.0), entry).verdict == "failed"


@pytest.mark.parametrize("name", CLAIMS)
def test_logits_that_move_in_another_way_are_refuted(name):
    actions, entry, matrix = CLAIMS[name]
    others = [m for a, _, m in CLAIMS.values() if len(m) == len(matrix) and m != matrix] or [np.eye(len(matrix))]
    for other in others:
        assert check(Policy(actions, other), entry).verdict == "failed"


class Elevators(gym.Env):
    observation_space = spaces.Box(-1.0, 1.0, (2,), np.float32)
    action_space = PAIRS

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.np_random.uniform(-1, 1, 2).astype(np.float32), {}

    def step(self, action):
        return self.np_random.uniform(-1, 1, 2).astype(np.float32), 0.0, False, False, {}


def test_a_network_without_spaces_takes_the_action_space_of_the_environment():
    policy = Policy(PAIRS, CLAIMS["values reversed"][2])
    del policy.action_space
    assert check(policy, REVERSED, env=Elevators).verdict in ("passed", "proved")
    assert check(policy, REVERSED, action_space=PAIRS).verdict in ("passed", "proved")
    assert check(policy, [1, 0], env=Elevators).verdict == "failed"
    with pytest.raises(SpecError, match="name the environment: --env ID"):
        check(policy, REVERSED)


def test_a_map_that_is_no_permutation_of_values_is_refused():
    mixing = lambda action, _: np.array([action[0], (action[0] + action[1]) % 3])  # noqa: E731
    with pytest.raises(SpecError, match="permutes components, or the values of one"):
        check(Policy(PAIRS, np.eye(6)), mixing)
    at_the_left = lambda action, seen: action if seen[0] < 0 else 2 - action  # noqa: E731
    with pytest.raises(SpecError, match="depends on the state"):
        check(Policy(PAIRS, np.eye(6)), at_the_left, space=spaces.Box(-1.0, 1.0, (2,), np.float32))


class Loud(nn.Module):
    """Logits of two components, the first a hundred thousand times as large; the second may break the mirror."""

    action_space = PAIRS

    def __init__(self, lean):
        super().__init__()
        self.lean = lean

    def forward(self, x):
        first = 1e5 * torch.stack([-x[:, 0], 0 * x[:, 0], x[:, 0]], 1)
        second = torch.stack([-x[:, 1], 0 * x[:, 1], x[:, 1] + self.lean], 1)
        return torch.cat([first, second], 1)


def test_each_component_decides_on_its_own_scale():
    mirror = sc.Symmetry("mirror", C2, [[-1, -1]], [REVERSED])
    assert sc.verify_net(Loud(0.0), mirror, input_shape=(2,)).verdict in ("passed", "proved")
    broken = sc.verify_net(Loud(0.4), mirror, input_shape=(2,))
    assert broken.verdict == "failed"


def test_a_joint_decision_violates_the_claim_if_one_of_its_choices_does():
    wanted = np.array([[5.0, 0.0, 1.0, 0.0], [5.0, 0.0, 1.0, 0.9999], [5.0, 4.9999, 1.0, 0.9999]])
    actual = np.array([[5.0, 0.0, 0.0, 1.0], [5.0, 0.0, 0.0, 1.0], [0.0, 5.0, 0.0, 1.0]])
    clear, flipped, margin = staying_behind(wanted, actual, np.ones(4), (slice(0, 2), slice(2, 4)))
    assert clear.tolist() == [True, True, False]
    assert flipped.tolist() == [True, False, False]
    assert margin.tolist() == [1.0, 0.0, 0.0]


def test_a_bit_is_decided_by_the_sign_of_its_logit():
    wanted, actual = (
        np.array([[2.0, -3.0], [2.0, -3.0], [0.0005, 3.0]]),
        np.array([[1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]]),
    )
    clear, flipped, margin = staying_behind(wanted, actual, np.ones(2), (slice(0, 1), slice(1, 2)))
    assert clear.tolist() == [True, True, True]
    assert flipped.tolist() == [False, True, False]
    assert margin.tolist() == [0.0, 3.0, 0.0]


def test_spaces_of_a_loaded_policy_are_those_of_the_policy_inside():
    inner = Policy(PAIRS, CLAIMS["values reversed"][2])
    wrapper = nn.Sequential(inner)
    wrapper.structured_input = SimpleNamespace(action_space=PAIRS)
    assert check(wrapper, REVERSED).verdict in ("passed", "proved")
