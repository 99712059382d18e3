"""Starts that follow what was played before have no one law; starts that a seed decides, or that none does, have."""

import gymnasium as gym
import numpy as np
import pytest

import symcheck as sc

mirror = sc.Symmetry("mirror", sc.groups.cyclic(2), [[-1, -1]], [[1, 0]])


class Point(gym.Env):
    observation_space = gym.spaces.Box(-np.inf, np.inf, (2,), np.float64)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, centre=0.0):
        self.centre = centre

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x = self.np_random.uniform(-0.3, 0.3, 2) + self.centre
        return self.x.copy(), {}

    def step(self, action):
        speed = 0.9 * self.x[1] + 0.3 * (2 * action - 1)
        self.x = np.array([self.x[0] + 0.1 * speed, speed])
        return self.x.copy(), -float(self.x[0] ** 2), False, False, {}


class RunningScale(gym.ObservationWrapper):
    """The mean and variance of all that was seen so far, as many training scripts keep them."""

    count, mean, squares = 1, np.zeros(2), np.ones(2)

    def observation(self, obs):
        self.count += 1
        apart = obs - self.mean
        self.mean = self.mean + apart / self.count
        self.squares = self.squares + apart * (obs - self.mean)
        return (obs - self.mean) / np.sqrt(self.squares / self.count)


class DropsTheSeed(gym.Wrapper):
    def reset(self, *, seed=None, options=None):
        return self.env.reset()


class DrawsGlobally(Point):
    def reset(self, *, seed=None, options=None):
        self.x = np.random.uniform(-0.3, 0.3, 2) + self.centre  # noqa: NPY002 - which is what the row is about
        return self.x.copy(), {}


def limited(env):
    return gym.wrappers.TimeLimit(env, 30)


@pytest.mark.parametrize("seed", range(3))
def test_running_statistics_are_no_asymmetry_of_the_start(seed):
    report = sc.verify_env(lambda: RunningScale(limited(Point())), mirror, samples=1000, seed=seed)
    assert report.verdict in ("passed", "undecided")
    unsure = [one.reason for one in report if one.verdict == "undecided"]
    assert all(one.code in ("start_follows_past", "start_asymmetric") for one in unsure)
    assert all(one.fields.get("start", "undecided") == "undecided" for one in unsure)


def test_running_statistics_of_a_shifted_start_are_said_to_survive():
    report = sc.verify_env(lambda: RunningScale(limited(Point(0.2))), mirror, samples=2000)
    assert report["initial_invariance"].verdict == "undecided"
    assert report["initial_invariance"].reason.code == "start_follows_past"
    followed = report["transition_invariance"].reason
    assert (followed.code, followed.fields["start"]) == ("start_asymmetric", "undecided")
    assert "the start distribution may not be symmetric" in str(followed)


@pytest.mark.parametrize("world", [Point, lambda centre: DropsTheSeed(Point(centre)), DrawsGlobally])
def test_a_shifted_start_fails_whether_or_not_a_seed_decides_it(world):
    report = sc.verify_env(lambda: limited(world(0.2)), mirror, samples=200)
    assert report["initial_invariance"].verdict == "failed"


def test_a_setter_that_is_given_frames_is_told_of_get():
    class Settable(Point):
        pass

    sc.register_state_access(Settable, set=lambda env, state: setattr(env, "x", np.array(state)))
    with pytest.raises(sc.errors.TargetError, match=r"State access has no get, so set receives .*\(3, 2\)"):
        sc.verify_env(
            lambda: gym.wrappers.FrameStackObservation(limited(Settable()), 3),
            sc.Symmetry("mirror", sc.groups.cyclic(2), [lambda obs: -obs], [[1, 0]]),
            samples=100,
        )
