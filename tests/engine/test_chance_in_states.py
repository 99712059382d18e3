"""A state that holds a random generator still has a law of next states, and no single one."""

import copy
import random

import gymnasium as gym
import numpy as np
import pytest

import symcheck as sc
from symcheck.envs.state_access.generators import without_chance
from symcheck.envs.state_access.record import StateAccess
from symcheck.statements.statement import Statement


class Windy(gym.Env):
    """A point in a wind; its state is a copy of every attribute, the generator among them, as checkpoints hold it."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (2,), np.float64)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, mean=0.0):
        self.mean = mean

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x = self.np_random.uniform(-0.3, 0.3, 2)
        return self.x.copy(), {}

    def step(self, action):
        push = 0.3 * (2 * action - 1) + self.np_random.normal(self.mean, 0.1)
        self.x = np.array([self.x[0] + 0.1 * self.x[1], 0.9 * self.x[1] + push])
        return self.x.copy(), -float(self.x[0] ** 2), False, False, {}

    def get_state(self):
        return copy.deepcopy(self.__dict__)

    def set_state(self, state):
        self.__dict__.update(copy.deepcopy(state))


class Reseeding(Windy):
    """Its setter begins the same noise each time."""

    def get_state(self):
        return {"x": self.x.copy()}

    def set_state(self, state):
        self.x = state["x"].copy()
        self._np_random = np.random.default_rng(7)


class OwnGenerator(Windy):
    """Its wind comes from a generator that is made once, and that no reset seeds."""

    def __init__(self, mean=0.0):
        super().__init__(mean)
        self.wind = np.random.default_rng(3)

    def step(self, action):
        self._np_random = self.wind
        return super().step(action)

    def get_state(self):
        return {"x": self.x.copy()}

    def set_state(self, state):
        self.x = state["x"].copy()


mirror = sc.Symmetry(
    "mirror", sc.groups.cyclic(2), [[-1, -1]], [[1, 0]], state=[lambda held: {**held, "x": -held["x"]}]
)


@pytest.mark.parametrize("world", [Windy, Reseeding])
@pytest.mark.parametrize(("mean", "verdict"), [(0.0, "passed"), (0.1, "failed")])
def test_noise_that_a_set_state_would_repeat_is_judged_by_its_distribution(world, mean, verdict):
    report = sc.verify_env(lambda: gym.wrappers.TimeLimit(world(mean), 30), mirror, samples=400)
    assert report.verdict == verdict
    assert report["transition_invariance"].method == "distribution"
    assert Statement("inexact_generators") in report.results[0].method_reason.fields["inexact"]
    assert "they are not part of the state" in str(report.results[0].method_reason)


@pytest.mark.parametrize(("mean", "verdict"), [(0.0, "passed"), (0.1, "failed")])
def test_noise_of_a_generator_that_no_reset_seeds_is_no_hidden_state(mean, verdict):
    report = sc.verify_env(lambda: gym.wrappers.TimeLimit(OwnGenerator(mean), 30), mirror, samples=400)
    assert report.verdict == verdict
    assert report["transition_invariance"].method == "distribution"


class Many:
    """What draws from generators of every kind, and restores some of them."""

    def __init__(self, restored):
        self.numbers = np.random.default_rng(0)
        self.old = np.random.RandomState(0)
        self.plain = random.Random(0)
        self.restored = restored

    def get(self):
        return {name: copy.deepcopy(getattr(self, name)) for name in self.restored}

    def put(self, state):
        self.__dict__.update(copy.deepcopy(state))

    def draw(self):
        return self.numbers.random(), self.old.random_sample(), self.plain.random()


@pytest.mark.parametrize("restored", [("numbers",), ("old",), ("plain",), ("numbers", "old", "plain")])
def test_no_generator_is_put_back_and_none_is_disturbed(restored):
    env, untouched = Many(restored), Many(restored)
    given = StateAccess(lambda target, state: target.put(state), "my own", get=lambda target: target.get())
    access = without_chance(env, given)
    state = given.get(env)
    assert env.draw() == untouched.draw()
    access.set(env, state)
    assert env.draw() == untouched.draw()
    given.set(env, state)
    assert env.draw() != untouched.draw()


def test_a_setter_that_leaves_generators_alone_is_left_alone():
    given = StateAccess(lambda target, state: None, "my own", get=lambda target: 0)
    assert without_chance(Many(()), given) is given


def test_a_setter_that_raises_is_reported_where_it_is_used_and_not_here():
    def refuse(target, state):
        raise ValueError("not now")

    given = StateAccess(refuse, "my own", get=lambda target: 0)
    assert without_chance(Many(()), given) is given
