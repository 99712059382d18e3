"""The loop: runs are independent, seeds reproduce them, and agents learn what can be learnt."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Sequence

import numpy as np
import pytest
import torch

from reference_agents import trainer, vectorised
from reference_agents.catalog import find_network, find_task
from reference_agents.environments.vector import Step
from reference_agents.learning.distributions import Categorical
from reference_agents.learning.rollout import Collector, Rollout
from reference_agents.networks.actor_critic import ActorCritic
from reference_agents.networks.build import build_plan
from reference_agents.randomness import Purpose, UniformStreams, generator
from reference_agents.settings import Settings, preset
from reference_agents.trainer import Job, train
from symcheck.array_types import Array, Bools

TASK = find_task("cartpole")
SHORT = preset("cartpole", "tuned").with_changes(
    steps=1_600, evaluation_every=800, evaluation_episodes=5, decorrelation_steps=50
)


def _job(network: str, seeds: Sequence[int], rates: Sequence[float] = (0.01,), settings: Settings = SHORT) -> Job:
    return Job(TASK, find_network(TASK, network), tuple(seeds), tuple(rates), settings)


@pytest.mark.parametrize("network", ["mlp", pytest.param("equivariant", marks=pytest.mark.long)])
def test_a_run_alone_equals_the_same_run_in_company_bit_for_bit(network: str) -> None:
    company = train(_job(network, (0, 1, 2, 3), (0.001, 0.01)))
    position = company.job.runs.index((0.01, 2))
    for seeds in ((2,), (2, 0), (3, 1, 2)):
        other = train(_job(network, seeds))
        place = seeds.index(2)
        assert torch.equal(other.network.parameters.values[place], company.network.parameters.values[position])
        assert np.array_equal(np.array(other.returns)[:, place], np.array(company.returns)[:, position])


def test_a_seed_reproduces_its_run_and_another_seed_does_not() -> None:
    first, second, other = train(_job("mlp", (0,))), train(_job("mlp", (0,))), train(_job("mlp", (1,)))
    assert torch.equal(first.network.parameters.values, second.network.parameters.values)
    assert np.array_equal(first.returns, second.returns)
    assert not np.array_equal(first.returns, other.returns)


def test_global_random_state_changes_nothing_and_is_left_alone() -> None:
    torch.manual_seed(1)
    first = train(_job("mlp", (0,)))
    torch.manual_seed(2)
    np.random.seed(2)  # noqa: NPY002 - the legacy state is what must not matter
    before = torch.random.get_rng_state()
    second = train(_job("mlp", (0,)))
    assert torch.equal(first.network.parameters.values, second.network.parameters.values)
    assert torch.equal(before, torch.random.get_rng_state())


def test_evaluations_happen_at_the_first_update_past_each_multiple_and_change_no_training() -> None:
    often = train(_job("mlp", (0,), settings=SHORT.with_changes(evaluation_every=500)))
    seldom = train(_job("mlp", (0,), settings=SHORT.with_changes(evaluation_every=5_000)))
    assert often.env_steps == [0, 560, 1040, 1520, 1600]
    assert seldom.env_steps == [0, 1600]
    assert torch.equal(often.network.parameters.values, seldom.network.parameters.values)


def test_a_run_that_diverges_is_named_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    clean = train(_job("mlp", (0, 1)))
    monkeypatch.setattr(trainer.Learner, "update", poisoned_at(5))
    training = train(_job("mlp", (0, 1)))
    assert training.stopped == {0: 5 * SHORT.batch}
    assert np.isnan(np.array(training.returns)[1:, 0]).all()
    assert np.array_equal(np.array(training.returns)[:, 1], np.array(clean.returns)[:, 1])
    assert torch.equal(training.network.parameters.values[1], clean.network.parameters.values[1])


def poisoned_at(update: int) -> Callable[..., torch.Tensor]:
    """The learner's update, with advantages that are not finite in one of them."""
    original, updates = trainer.Learner.update, itertools.count(1)

    def poisoned(learner: trainer.Learner, rollout: Rollout) -> torch.Tensor:
        if next(updates) == update:
            rollout.advantages[0] = float("nan")
        return original(learner, rollout)

    return poisoned


def test_a_checkpoint_names_the_run_that_the_update_before_it_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[dict[int, int]] = []
    monkeypatch.setattr(trainer.Learner, "update", poisoned_at(3))
    train(_job("mlp", (0, 1)), on_checkpoint=lambda state: found.append(state()["stopped"]))
    assert found[1:4] == [{}, {0: 3 * SHORT.batch}, {0: 3 * SHORT.batch}]


def test_an_interrupt_leaves_the_run_named_that_the_update_before_it_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(progress: trainer.Progress) -> None:
        if progress.env_steps == 3 * SHORT.batch:
            raise KeyboardInterrupt

    monkeypatch.setattr(trainer.Learner, "update", poisoned_at(3))
    training = train(_job("mlp", (0, 1)), on_progress=interrupt)
    assert training.interrupted
    assert training.stopped == {0: 3 * SHORT.batch}


def test_an_interrupt_keeps_what_was_finished() -> None:
    def interrupt(progress: trainer.Progress) -> None:
        if progress.env_steps >= 960:
            raise KeyboardInterrupt

    training = train(_job("mlp", (0,)), on_progress=interrupt)
    assert training.interrupted
    assert training.env_steps == [0, 800]


class IdentityEnvironment:
    """The observation shows which of two actions is rewarded; every episode is one step long."""

    observation_shape = (4,)
    action_numbers = 1

    def __init__(self, seeds, environments, *, purpose=Purpose.ENVIRONMENT, index=0):  # type: ignore[no-untyped-def]
        self._streams = UniformStreams(seeds, purpose, (environments,), index=index)

    def random_actions(self, uniforms: np.ndarray) -> Array:
        return (2 * uniforms[..., 0]).astype(np.int64)

    def reset(self) -> np.ndarray:
        self._right = (self._streams.next() < 0.5).astype(np.int64)
        signs = (2 * self._right - 1).astype(np.float32)
        return np.stack([signs, signs, signs, signs], -1)

    def step(self, actions: Array, *, active: Bools | None = None) -> Step:
        reward = (actions == self._right).astype(np.float32)
        observation = self.reset()
        ended = np.ones(reward.shape, dtype=bool)
        return Step(observation, observation, reward, ended, ~ended)


@pytest.mark.long
@pytest.mark.parametrize("algorithm", ["ppo", "a2c"])
@pytest.mark.parametrize("network", ["mlp", "equivariant"])
def test_an_agent_learns_to_name_what_it_sees(monkeypatch: pytest.MonkeyPatch, algorithm: str, network: str) -> None:
    monkeypatch.setitem(vectorised._ENVIRONMENTS, "cartpole", IdentityEnvironment)
    settings = SHORT.with_changes(algorithm=algorithm, steps=8_000, evaluation_every=8_000, evaluation_episodes=100)
    training = train(_job(network, (0, 1, 2), (0.003,), settings))
    assert training.returns[0].max() < 0.75
    assert training.returns[-1].min() > 0.95


class CountingEnvironment:
    """Episodes of `limit` steps that end by time alone; the observation counts the steps."""

    observation_shape = (4,)
    action_numbers = 1
    limit = 3

    def __init__(self, seeds, environments):  # type: ignore[no-untyped-def]
        self._count = np.zeros((len(seeds), environments), dtype=np.int64)

    def _observe(self) -> np.ndarray:
        return np.repeat(self._count[..., None], 4, axis=-1).astype(np.float32)

    def reset(self) -> np.ndarray:
        self._count[:] = 0
        return self._observe()

    def step(self, actions: Array, *, active: Bools | None = None) -> Step:
        self._count += 1
        final = self._observe()
        truncated = self._count >= self.limit
        self._count[truncated] = 0
        reward = np.ones(truncated.shape, np.float32)
        return Step(self._observe(), final, reward, np.zeros_like(truncated), truncated)


@pytest.mark.parametrize("time_limit_is_terminal", [False, True])
def test_a_time_limit_bootstraps_from_the_last_observation_of_its_own_episode(time_limit_is_terminal: bool) -> None:
    settings = dataclasses.replace(
        SHORT, environments=2, horizon=5, decorrelation_steps=0, minibatches=2, discount=0.9,
        time_limit_is_terminal=time_limit_is_terminal,
    )  # fmt: skip
    network = ActorCritic(build_plan(TASK, find_network(TASK, "mlp")), [0], torch.device("cpu"))
    rollout = Collector(CountingEnvironment([0], 2), [0], settings, Categorical(), torch.device("cpu")).collect(network)

    def value(count: float) -> float:
        return float(network.forward(torch.full((1, 1, 4), count))[1])

    after_limit = 0.0 if time_limit_is_terminal else value(3.0)
    first = [1 + 0.9 + 0.81 + 0.729 * after_limit, 1 + 0.9 + 0.81 * after_limit, 1 + 0.9 * after_limit]
    second = [1 + 0.9 + 0.81 * value(2.0), 1 + 0.9 * value(2.0)]
    # the batch is flattened over time, then environments; float32 sums of a few terms
    assert rollout.returns[0].view(5, 2)[:, 0].tolist() == pytest.approx(first + second, rel=1e-5)
    assert rollout.observations[0].view(5, 2, 4)[:, 1, 0].tolist() == [0, 1, 2, 0, 1]


def test_streams_of_different_seeds_and_purposes_share_no_number() -> None:
    streams = [generator(seed, purpose, index) for seed in (0, 1) for purpose in Purpose for index in (0, 1)]
    numbers = np.concatenate([stream.random(1000) for stream in streams])
    assert len(np.unique(numbers)) == len(numbers)


def test_uniform_streams_do_not_depend_on_their_block_size_or_on_company() -> None:
    one = UniformStreams([3], Purpose.ACTIONS, (2,), block=1)
    many = UniformStreams([9, 3], Purpose.ACTIONS, (2,), block=7)
    for _ in range(20):
        assert np.array_equal(one.next()[0], many.next()[1])


@pytest.mark.slow
def test_the_equivariant_network_reaches_475_within_20_000_steps_and_before_the_mlp() -> None:
    settings = preset("cartpole", "paper").with_changes(steps=40_000)
    first = {}
    for name in ("equivariant", "mlp"):
        plan = find_network(TASK, name)
        training = train(Job(TASK, plan, (0, 1, 2, 3, 4), (plan.learning_rate,), settings))
        median = np.median(training.returns, axis=1)
        first[name] = training.env_steps[int(np.argmax(median >= 475))] if (median >= 475).any() else settings.steps
    assert first["equivariant"] <= 20_000
    assert first["equivariant"] < first["mlp"]
