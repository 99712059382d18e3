"""Action maps from the effects of actions: planted worlds, and limits from both sides."""

import contextlib
import itertools
from types import SimpleNamespace

import gymnasium as gym
import numpy as np
import pytest

from symcheck.discovery.action_values import ActionValues
from symcheck.discovery.actions import (
    ActionProbes,
    _list_telling,
    list_few,
    matching_action_map,
    refuse_large,
    try_actions,
)
from symcheck.discovery.black_box import _QuadraticModel
from symcheck.discovery.maps import SignedMap
from symcheck.discovery.rollouts import Rollouts
from symcheck.errors import TargetError


class World:
    """A laboratory whose steps add the effect of the action, in a box relative to its middle; the reward is its pay."""

    kind, is_whole, repeats = "deterministic", False, 1

    def __init__(self, effects, pay=None, box=None):
        self.effects = np.asarray(effects, dtype=float)
        self.pay = np.zeros(len(self.effects)) if pay is None else np.asarray(pay, dtype=float)
        self.action_space = gym.spaces.Discrete(len(self.effects)) if box is None else box
        self.values = ActionValues(self.action_space) if box is None else None
        self.rng = np.random.default_rng(0)
        self.dim = self.effects.shape[1]
        self.noise = (np.zeros(self.dim), 0.0)
        self.states = self.rng.normal(size=(50, self.dim))

    def in_time(self, share=1.0):
        return True

    def outcomes(self, states, actions, *, most=1):
        if self.values is not None:
            moved, paid = self.effects[list(actions)], self.pay[list(actions)]
        else:
            centred = np.array(actions) - (self.action_space.low + self.action_space.high) / 2
            moved, paid = centred @ self.effects, centred @ self.pay
        return SimpleNamespace(states=states + moved, rewards=paid, ended=np.zeros(len(states)))

    def difference(self, expected, actual):
        return actual - expected

    def match(self, state_map):
        return matching_action_map(self, state_map, try_actions(self, np.ones(self.dim)))


@pytest.mark.parametrize(
    ("space", "told"),
    [
        (gym.spaces.Discrete(64), ""),
        (gym.spaces.Discrete(65), "the search can match at most 64 discrete actions, but there are 65"),
        (gym.spaces.MultiDiscrete([32, 32]), ""),
        (gym.spaces.MultiDiscrete([32, 33]), "at most 64 values of all action components together, but there are 65"),
        (gym.spaces.MultiBinary(32), ""),
        (gym.spaces.MultiBinary(33), "but there are 66"),
        (gym.spaces.Box(-1, 1, (500,)), ""),
        (
            gym.spaces.Tuple([gym.spaces.Discrete(2)]),
            "only Discrete, MultiDiscrete, MultiBinary and Box actions can be",
        ),
        (
            gym.spaces.Dict(a=gym.spaces.Discrete(2)),
            "only Discrete, MultiDiscrete, MultiBinary and Box actions can be",
        ),
    ],
    ids=str,
)
def test_spaces_with_more_values_than_can_be_matched_are_refused(space, told):
    with pytest.raises(TargetError, match=told) if told else contextlib.nullcontext():
        refuse_large(space)


@pytest.mark.parametrize("count", range(1, 6))
def test_all_permutations_of_up_to_four_actions_are_listed_once(count):
    listed = list_few(World(np.zeros((count, 2))))
    expected = set(itertools.permutations(range(count))) if count <= 4 else set()
    assert {each.index for each in listed} == expected
    assert len(listed) == len(expected)


@pytest.mark.parametrize("size", range(1, 4))
def test_all_signed_permutations_of_up_to_two_components_are_listed_about_the_middle(size):
    low, high = np.arange(1.0, size + 1), np.arange(1.0, size + 1) * 3
    listed = list_few(World(np.eye(size), box=gym.spaces.Box(low, high, dtype=np.float64)))
    assert len({(each.index, each.sign) for each in listed}) == len(listed) == {1: 2, 2: 8, 3: 0}[size]
    for each in listed:
        np.testing.assert_allclose(each.apply((low + high)[None] / 2), (low + high)[None] / 2)


def test_only_components_and_values_of_one_action_are_listed():
    several = World(np.zeros((4, 2)))
    several.action_space = gym.spaces.MultiDiscrete([2, 2])
    several.values = ActionValues(several.action_space)
    assert list_few(several) == []


def test_further_states_are_kept_while_they_tell_actions_apart_that_no_earlier_one_did():
    rng = np.random.default_rng(1)
    for _ in range(30):
        first, more = rng.integers(0, 2, (1, 6, 1)), rng.integers(0, 2, (20, 6, 1)) * (rng.random((20, 6, 1)) < 0.3)

        def classes(rows):
            return len({tuple(column) for column in np.reshape(rows, (-1, 6)).T.tolist()})

        kept = _list_telling(first, more)
        grown = [classes(np.concatenate([first, more[kept[:n]]])) for n in range(len(kept) + 1)]
        assert kept == sorted(set(kept))
        assert all(before < after for before, after in itertools.pairwise(grown))
        assert grown[-1] == classes(np.concatenate([first, more]))
    # at most eight: each of nine states distinguishes one more action
    assert len(_list_telling(np.zeros((1, 10, 1)), np.eye(9, 10)[:, :, None])) == 8


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_actions_move_as_their_effects_do(order):
    """f(s, a) = s + e_a: L permutes the unit effects, so K does the same."""
    world = World(np.vstack([np.eye(3), -np.eye(3)]))
    for sign in itertools.product((1, -1), repeat=3):
        state_map = SignedMap.of(order, sign)
        action_map = world.match(state_map)
        np.testing.assert_allclose(state_map.apply(world.effects), world.effects[list(action_map.index)])


def test_rewards_tell_actions_apart_that_move_alike():
    effects = [[1.0, 0.0], [1.0, 0.0], [-1.0, 0.0], [-1.0, 0.0]]
    world = World(effects, pay=[0.0, 1.0, 1.0, 0.0])
    assert world.match(SignedMap.of([0, 1], [-1, 1])).index == (3, 2, 1, 0)
    assert world.match(SignedMap.identity(2)).is_identity


@pytest.mark.parametrize(("dim", "expected"), [(3, (2, 0, 1)), (4, (0, 1, 2))])
def test_actions_without_effect_move_with_their_coordinates_if_there_is_one_for_each(dim, expected):
    turned = SignedMap.of([2, 0, 1, *range(3, dim)])
    assert World(np.zeros((3, dim))).match(turned).index == expected


def test_components_of_a_box_move_as_their_effects_do_and_keep_within_their_widths():
    rng = np.random.default_rng(2)
    box = gym.spaces.Box(np.array([-1.0, 0.0]), np.array([1.0, 2.0]), dtype=np.float64)
    for order, sign in itertools.product(itertools.permutations(range(2)), itertools.product((1, -1), repeat=2)):
        world, state_map = World(np.eye(2), box=box), SignedMap.of(order, sign)
        action_map = world.match(state_map)
        centred, middle = rng.uniform(-1, 1, (5, 2)), np.array([0.0, 1.0])
        np.testing.assert_allclose(action_map.apply(centred + middle) - middle, state_map.apply(centred))
    wide = World(np.eye(2), box=gym.spaces.Box(np.array([-1.0, -2.0]), np.array([1.0, 2.0]), dtype=np.float64))
    assert wide.match(SignedMap.of([1, 0])).index == (0, 1)


def test_probes_of_random_steps_are_more_and_each_has_the_scale_given():
    world = World(np.eye(2))
    counts = {}
    for kind, whole in (("deterministic", False), ("stochastic", True), ("stochastic", False)):
        world.kind, world.is_whole = kind, whole
        probes = try_actions(world, np.ones(2))
        assert isinstance(probes, ActionProbes)
        assert probes.outcomes.shape == (len(probes.states), 2, 4)
        np.testing.assert_allclose(probes.outcomes[..., :2], probes.states[:, None] + world.effects)
        counts[kind, whole] = len(probes.states)
    assert counts == {("deterministic", False): 4, ("stochastic", True): 8, ("stochastic", False): 24}


def _rollouts(values, follow, pay):
    """Steps of four numbers, each 0 or 1, under actions that act on one of them each."""
    rng = np.random.default_rng(0)
    before, chosen = rng.integers(0, 2, (800, 4)).astype(float), rng.integers(0, 4, 800)
    actions = values.indicators(chosen)
    rewards = pay(before, actions)
    return Rollouts(before, follow(before, actions), actions, rewards, np.zeros(800, bool), np.arange(800) // 8)


@pytest.mark.parametrize(
    ("follow", "pay"),
    [
        (lambda before, acts: np.abs(before - acts), lambda before, acts: np.zeros(len(before))),
        (lambda before, acts: before, lambda before, acts: (before * acts).sum(axis=1)),
    ],
    ids=["switches", "arms"],
)
@pytest.mark.parametrize("index", [(1, 0, 2, 3), (1, 2, 3, 0)])
def test_a_model_matches_actions_whose_mean_effect_on_observations_is_zero(follow, pay, index):
    """A switch is turned on as often as off, and an arm that is pulled changes nothing but the reward."""
    values = ActionValues(gym.spaces.Discrete(4))
    lab = SimpleNamespace(values=values, action_space=values.space)
    model = _QuadraticModel(_rollouts(values, follow, pay))
    assert model.match_actions(lab, SignedMap.of(index)).index == index


def test_a_model_matches_components_of_a_box():
    rng = np.random.default_rng(1)
    before, actions = rng.normal(size=(800, 2)), rng.uniform(-1, 1, (800, 2))
    rollouts = Rollouts(before, 0.9 * before + 0.1 * actions, actions, before[:, 0], before[:, 0] > 9, np.arange(800))
    lab = SimpleNamespace(values=None, action_space=gym.spaces.Box(-1.0, 1.0, (2,)))
    matched = _QuadraticModel(rollouts).match_actions(lab, SignedMap.of([1, 0], [-1, 1]))
    assert (matched.index, matched.sign) == ((1, 0), (-1, 1))
