"""Environments that only Gymnasium steps: nothing made up between episodes, and streams of their own."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

from reference_agents.catalog import TASKS, find_network
from reference_agents.encoding.environment import keep_object
from reference_agents.environments.gymnasium_vector import GymnasiumVector
from reference_agents.randomness import Purpose, episode_seed
from reference_agents.settings import preset
from reference_agents.tasks import own_task, resolve_network, resolve_task
from reference_agents.trainer import Job, train
from symcheck.errors import OptionError, TargetError


class Counting(gym.Env):
    """Counts its steps, in one buffer that it reuses; episodes end after three steps, by time alone."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (2,), np.float32)
    action_space = gym.spaces.Box(-1.0, 1.0, (1,), np.float32)

    def __init__(self) -> None:
        self._buffer = np.zeros(2, np.float32)

    def reset(self, *, seed=None, options=None):  # type: ignore[no-untyped-def]
        super().reset(seed=seed)
        self._buffer[:] = 0.0, self.np_random.random()
        return self._buffer, {}

    def step(self, action):  # type: ignore[no-untyped-def]
        assert self.action_space.contains(action)
        self._buffer[0] += 1.0
        return self._buffer, float(action[0]), False, bool(self._buffer[0] == 3.0), {}


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(
        gym.registry, "Counting-v0", gym.spec("CartPole-v1").__class__("Counting-v0", entry_point=Counting)
    )


def test_the_final_observation_survives_an_environment_that_reuses_its_buffer() -> None:
    vector = GymnasiumVector("Counting-v0", [0], 2)
    assert vector.reset()[0, :, 0].tolist() == [0, 0]
    seen, final = [], []
    for _ in range(6):
        step = vector.step(np.full((1, 2, 1), 5.0, dtype=np.float32))
        seen.append(step.observation[0, 0, 0])
        final.append(step.final_observation[0, 0, 0])
        assert step.reward.tolist() == [[1.0, 1.0]]
        assert not step.terminated.any()
        assert step.truncated.all() == (final[-1] == 3.0)
    assert seen == [1, 2, 0, 1, 2, 0]
    assert final == [1, 2, 3, 1, 2, 3]


def test_an_inactive_environment_is_not_stepped() -> None:
    vector = GymnasiumVector("Counting-v0", [0], 2)
    vector.reset()
    step = vector.step(np.zeros((1, 2, 1), np.float32), active=np.array([[True, False]]))
    assert step.observation[0, :, 0].tolist() == [1, 0]


def test_every_environment_has_a_stream_of_its_own_whatever_the_company() -> None:
    together, alone = GymnasiumVector("Counting-v0", [3, 4], 5).reset(), GymnasiumVector("Counting-v0", [4], 5).reset()
    assert np.array_equal(together[1], alone[0])
    assert len(np.unique(together[..., 1])) == 10
    evaluation = GymnasiumVector("Counting-v0", [4], 5, purpose=Purpose.EVALUATION_ENVIRONMENT).reset()
    assert not np.intersect1d(evaluation[..., 1], alone[..., 1]).size


def test_neighbouring_seeds_share_no_environment_seed() -> None:
    places = [(seed, environment, episode) for seed in range(20) for environment in range(10) for episode in range(10)]
    seeds = [episode_seed(seed, Purpose.ENVIRONMENT, 0, environment, episode) for seed, environment, episode in places]
    assert len(np.unique(seeds)) == 2_000


def test_an_episode_is_the_scalar_environments() -> None:
    vector = GymnasiumVector("Acrobot-v1", [1], 2)
    first = vector.reset()
    scalar = gym.make("Acrobot-v1")
    observation, _ = scalar.reset(seed=episode_seed(1, Purpose.ENVIRONMENT, 0, 1, 0))
    assert first[0, 1].tobytes() == observation.tobytes()
    for action in (0, 2, 2, 1, 0):
        step = vector.step(np.array([[1, action]]))
        observation, reward, *_ = scalar.step(action)
        assert step.observation[0, 1].tobytes() == observation.tobytes()
        assert step.reward[0, 1] == reward
    scalar.close()


def test_random_actions_cover_the_space() -> None:
    uniforms = np.random.default_rng(0).random((1, 1000, 1))
    pendulum = GymnasiumVector("Pendulum-v1", [0], 1).random_actions(uniforms)
    assert pendulum.min() < -1.9
    assert pendulum.max() > 1.9
    assert sorted(np.unique(GymnasiumVector("Acrobot-v1", [0], 1).random_actions(uniforms))) == [0, 1, 2]


def test_a_continuous_run_alone_equals_the_same_run_in_company_bit_for_bit() -> None:
    task = TASKS["pendulum"]
    settings = preset("pendulum", "tuned").with_changes(
        steps=512, environments=2, horizon=32, minibatches=4, epochs=2, decorrelation_steps=20,
        evaluation_every=512, evaluation_episodes=2,
    )  # fmt: skip
    network = find_network(task, "equivariant")
    company = train(Job(task, network, (0, 1, 2), (0.001, 0.01), settings))
    alone = train(Job(task, network, (1,), (0.01,), settings))
    position = company.job.runs.index((0.01, 1))
    assert company.network.parameters.values[position].tolist() == alone.network.parameters.values[0].tolist()
    assert np.array(company.returns)[:, position].tolist() == np.array(alone.returns)[:, 0].tolist()


@pytest.mark.slow
def test_the_equivariant_network_swings_the_pendulum_up_within_60_000_steps() -> None:
    task = TASKS["pendulum"]
    settings = preset("pendulum", "tuned").with_changes(steps=60_000, evaluation_every=5_000)
    training = train(Job(task, find_network(task, "equivariant"), (0, 1, 2), (0.001,), settings))
    assert np.median(training.returns, axis=1).max() > task.threshold


def test_an_environment_is_found_by_the_name_of_its_task_or_by_its_id() -> None:
    assert resolve_task("Acrobot-v1") is resolve_task("acrobot")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("cartpol", "unknown task 'cartpol'. Did you mean 'cartpole'"),
        (
            "MountainCar-v0",
            "network 'equivariant' needs a symmetry, but none was given, and the atlas claims none for MountainCar",
        ),
        ("CartPol-v1", "got 'CartPol-v1'; no such id is registered. Did you mean 'CartPole-v1'"),
    ],
)
def test_what_is_neither_a_task_nor_in_the_atlas_has_no_equivariant_network(name: str, message: str) -> None:
    with pytest.raises((OptionError, TargetError)) as refusal:
        resolve_network(resolve_task(name), "equivariant")
    assert message in str(refusal.value)


class Texts(Counting):
    observation_space = gym.spaces.Dict({"say": gym.spaces.Text(5)})


def test_an_id_that_gymnasium_cannot_make_and_spaces_that_cannot_be_encoded_are_refused() -> None:
    with pytest.raises(TargetError, match="got 'Nothing-v0'; no such id is registered"):
        GymnasiumVector("Nothing-v0", [0], 1)
    with pytest.raises(TargetError, match=r"observation\['say'\]: expected numeric observations of fixed size"):
        own_task(keep_object(Texts, "Texts"), None)
