"""Normalising wrappers: fresh statistics are gathered, the user's stay, and one-sided ones are named."""

import gymnasium as gym
import numpy as np
import pytest

import symcheck as sc
from symcheck.envs.stepping.stepper import Stepper
from symcheck.groups import catalog

SAMPLES = 400
GROUP = catalog.cyclic(2)
mirror = sc.Symmetry("mirror", GROUP, observation=[[1, -1, -1]], action=[[-1]])
with_state = sc.Symmetry("mirror", GROUP, observation=[[1, -1, -1]], action=[[-1]], state=[[-1, -1]])


def normalised(steps=0, *, mean=None):
    env = gym.wrappers.NormalizeObservation(gym.make("Pendulum-v1"))
    env.reset(seed=0)
    env.action_space.seed(0)
    for _ in range(steps):
        env.step(env.action_space.sample())
    if mean is not None:
        env.obs_rms.mean, env.obs_rms.var, env.obs_rms.count = np.array(mean), np.array([0.4, 0.5, 2.0]), 1000
    return env


def fresh():
    return gym.wrappers.NormalizeObservation(gym.make("Pendulum-v1"))


def symmetrised():
    return normalised(mean=[0.3, 0.0, 0.0])


def test_fresh_statistics_are_gathered_and_frozen_and_those_of_the_user_stay():
    warmed, kept = fresh(), normalised(50)
    before = kept.obs_rms.mean.copy()
    assert Stepper(warmed, None, "fresh", seed=0).warmed
    assert not Stepper(kept, None, "kept", seed=0).warmed
    assert warmed.obs_rms.count > 500
    assert abs(warmed.obs_rms.mean[0]) > 0
    assert not warmed.update_running_mean
    assert np.array_equal(kept.obs_rms.mean, before)


def test_the_statistics_of_rewards_are_gathered_too_and_break_nothing():
    env = gym.wrappers.NormalizeReward(gym.make("Pendulum-v1"))
    Stepper(env, None, "rewards", seed=0)
    assert env.return_rms.count > 500
    assert not env.update_running_mean
    report = sc.verify_env(lambda: gym.wrappers.NormalizeReward(gym.make("Pendulum-v1")), with_state, samples=SAMPLES)
    assert report.verdict == "passed"


def test_one_sided_statistics_fail_and_name_their_wrapper():
    failed = sc.verify_env(fresh, with_state, samples=SAMPLES)["transition_invariance"]
    assert failed.verdict == "failed"
    assert failed.max_residual > 1e-3
    assert failed.causes[0].code == "SYM032"
    assert failed.causes[0].fields["wrapper"] == "NormalizeObservation"


@pytest.mark.parametrize("claim", [mirror, with_state])
def test_symmetric_statistics_pass(claim):
    report = sc.verify_env(symmetrised, claim, samples=SAMPLES)
    assert report["transition_invariance"].verdict == "passed"
    assert report["initial_invariance"].verdict == "passed"


def test_a_shift_below_the_power_of_episodes_is_undecided_and_says_why():
    report = sc.verify_env(lambda: normalised(mean=[0.3, 1e-5, 0.0]), mirror, samples=SAMPLES)
    assert report["transition_invariance"].reason.code == "statistics_asymmetric"
    assert report["transition_invariance"].verdict == report["initial_invariance"].verdict == "undecided"


class Cycle(gym.Env):
    """Three numbers that the cyclic group exchanges, one after the other."""

    observation_space = gym.spaces.Box(-10.0, 10.0, (3,))
    action_space = gym.spaces.Box(-1.0, 1.0, (3,))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x = self.np_random.uniform(-1.0, 1.0, 3)
        return self.x.astype(np.float32), {}

    def step(self, action):
        self.x = 0.9 * self.x + action
        return self.x.astype(np.float32), 0.0, False, False, {}


def test_the_statistic_that_is_named_differs_from_its_image_under_the_map_itself_not_under_its_inverse():
    env = gym.wrappers.NormalizeObservation(gym.wrappers.TimeLimit(Cycle(), 5))
    env.obs_rms.mean, env.obs_rms.var, env.obs_rms.count = np.array([0.0, 2.0, 0.0]), np.ones(3), 1000
    cycle = sc.Symmetry("cycle", catalog.cyclic(3), observation=[[1, 2, 0]], action=[[1, 2, 0]])
    cause = sc.verify_env(lambda: env, cycle, samples=20)["initial_invariance"].causes[0]
    assert cause.code == "SYM032"
    # Component 1 moves to place 2.
    assert [cause.fields[name] for name in ("coordinate", "value", "image")] == ["observation[1]", 2.0, 0.0]


def vec_normalised(*, mean=None):
    vec_env = pytest.importorskip("stable_baselines3.common.vec_env")
    env = vec_env.VecNormalize(vec_env.DummyVecEnv([lambda: gym.make("Pendulum-v1")] * 2))
    if mean is not None:
        env.obs_rms.mean, env.obs_rms.var, env.obs_rms.count = np.array(mean), np.array([0.4, 0.5, 2.0]), 1000
    return env


def vector_normalised():
    return gym.wrappers.vector.NormalizeObservation(gym.make_vec("Pendulum-v1", 2, vectorization_mode="sync"))


@pytest.mark.parametrize(
    ("env", "wrapper"), [(vec_normalised, "VecNormalize"), (vector_normalised, "NormalizeObservation")]
)
def test_the_one_sided_statistics_of_a_vector_environment_are_named(env, wrapper):
    report = sc.verify_env(env, mirror, samples=100)
    assert report.verdict == "failed"
    first = report["initial_invariance"].causes[0]
    assert (first.code, first.fields["wrapper"], first.fields["steps"]) == ("SYM032", wrapper, 500)
    assert report["transition_invariance"].verdict != "passed"


def test_symmetric_statistics_of_vec_normalize_pass_and_the_environment_given_keeps_learning():
    env = vec_normalised(mean=[0.3, 0.0, 0.0])
    report = sc.verify_env(env, mirror, samples=100)
    assert (report.verdict, report.results[0].target) == ("passed", "VecNormalize")
    assert env.training
