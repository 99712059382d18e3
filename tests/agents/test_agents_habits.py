"""The habits of the paper's published code, each of which is a setting."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from reference_agents.catalog import find_network, find_task
from reference_agents.environments.vector import Step
from reference_agents.equivariant_export import to_equivariant_module
from reference_agents.evaluation import play_window
from reference_agents.export import export_module
from reference_agents.learning.distributions import Categorical
from reference_agents.learning.rollout import FinishedEpisodes
from reference_agents.networks.actor_critic import ActorCritic
from reference_agents.networks.build import build_plan
from reference_agents.settings import Settings, parse_changes, preset
from reference_agents.trainer import Job, train
from symcheck.errors import OptionError

SHORT = {"steps": 400, "evaluation_every": 80, "evaluation_episodes": 2, "decorrelation_steps": 5}


def test_initial_biases_have_the_deviation_of_xaviers_weights_from_one_input() -> None:
    task = find_task("cartpole")
    quirks = {"bias_gain": 2.0}
    for name in ("mlp", "equivariant"):
        plan = build_plan(task, find_network(task, name).with_quirks(quirks))
        assert all(layer.initial_bias(np.random.default_rng(0).random) is not None for layer in plan.layers)
        layer = plan.layers[1]
        draws = [layer.initial_bias(np.random.default_rng(seed).random) for seed in range(200)]
        entries = np.concatenate([np.einsum("rio,rde->do", bias, layer.bias_basis).ravel() for bias in draws])
        # at least 12,800 independent entries: the relative error of a variance is below 4%
        assert entries.var() == pytest.approx(4.0 * 2.0 / (1 + layer.outputs), rel=0.1)


def test_without_that_habit_biases_start_at_zero() -> None:
    task = find_task("cartpole")
    network = ActorCritic(build_plan(task, find_network(task, "mlp")), [0], torch.device("cpu"))
    biases = [value for name, value in network.parameters.of_run(0).items() if name.endswith(".bias")]
    assert len(biases) == 4
    assert not any(bias.any() for bias in biases)


@pytest.mark.parametrize("name", ["equivariant", "cnn", "symmetrized"])
def test_a_scaled_input_is_the_network_of_the_scaled_image(name: str) -> None:
    task = find_task("gridworld")
    plain, scaled = find_network(task, name), find_network(task, name).with_quirks({"input_scale": 0.25})
    job = Job(task, scaled, (0,), (0.001,), preset("gridworld", "paper").with_changes(**SHORT, input_scale=0.25))
    parameters = train(replace(job, settings=job.settings.with_changes(steps=80))).network.parameters.of_run(0)
    image = torch.rand(5, 1, 21, 21)
    expected = export_module(task, plain, parameters)(0.25 * image)
    actual = export_module(task, scaled, parameters)(image)
    # float32: the scale is a power of two, so that only sums of biases differ
    torch.testing.assert_close(actual, expected, rtol=1e-5, atol=1e-5)
    if name == "equivariant":
        torch.testing.assert_close(
            to_equivariant_module(task, scaled, parameters)(image), expected, rtol=1e-4, atol=1e-5
        )


class Episodes:
    """Two environments: one ends after every step with return 1, the other after every three steps with return 9."""

    observation_shape, action_numbers = (1,), 1

    def __init__(self, seeds: list[int], environments: int, **_: object) -> None:
        self._time = 0

    def reset(self) -> np.ndarray:
        return np.zeros((1, 2, 1), np.float32)

    def step(self, actions: np.ndarray, *, active: None = None) -> Step:
        self._time += 1
        ended = np.array([[True, self._time % 3 == 0]])
        return Step(self.reset(), self.reset(), np.array([[1.0, 3.0]], np.float32), ended, np.zeros((1, 2), bool))


def _window(steps: int) -> float:
    def policy(observations: np.ndarray, running: None = None) -> torch.Tensor:
        return torch.zeros(1, 2, 2)

    return play_window(policy, Categorical(), Episodes, [0], environments=2, steps=steps, index=0).item()  # type: ignore[arg-type]


def test_in_a_window_every_episode_that_finishes_counts_once_so_that_short_ones_weigh_more() -> None:
    assert _window(6) == (6 * 1 + 2 * 9) / 8
    assert _window(7) == (7 * 1 + 2 * 9) / 9


def test_the_returns_of_training_episodes_are_those_that_ended_since_the_last_look() -> None:
    finished = FinishedEpisodes(runs=2, environments=2)
    finished.add(np.array([[1.0, 2.0], [5.0, 5.0]], np.float32), np.array([[False, True], [False, False]]))
    assert finished.take().tolist()[0] == 2.0
    assert np.array_equal(finished.take(), [2.0, np.nan], equal_nan=True)
    finished.add(np.array([[1.0, 4.0], [5.0, 5.0]], np.float32), np.ones((2, 2), bool))
    assert finished.take().tolist() == [(2.0 + 4.0) / 2, 10.0]


def test_an_episode_that_was_under_way_when_training_began_is_not_counted() -> None:
    finished = FinishedEpisodes(runs=1, environments=2, begun=True)
    finished.add(np.array([[1.0, 7.0]], np.float32), np.array([[True, False]]))
    assert np.isnan(finished.take()).all()
    finished.add(np.array([[3.0, 7.0]], np.float32), np.array([[True, True]]))
    assert finished.take().tolist() == [3.0]


@pytest.mark.parametrize("task", ["cartpole", "gridworld"])
def test_the_preset_of_the_papers_code_trains(task: str) -> None:
    settings = preset(task, "paper-code").with_changes(**SHORT)
    the_task = find_task(task)
    network = find_network(the_task, "equivariant").with_quirks({"bias_gain": settings.bias_gain})
    training = train(Job(the_task, network, (0, 1), (0.001,), settings))
    assert len(training.returns) == 6
    assert np.isfinite(training.returns[-1]).all()


def test_training_episodes_are_the_curve_where_the_settings_say_so() -> None:
    task = find_task("cartpole")
    settings = preset("cartpole", "paper").with_changes(**SHORT, evaluation="training")
    training = train(Job(task, find_network(task, "mlp"), (0,), (0.001,), settings))
    assert np.isnan(training.returns[0]).all()
    # a policy that has hardly learned keeps the pole up for about twenty steps
    assert 10 < np.nanmean(training.returns) < 40


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("clip=0.2", {"clip": 0.2}),
        ("time-limit-is-terminal=no", {"time_limit_is_terminal": False}),
        ("horizon=8", {"horizon": 8}),
        ("evaluation=window", {"evaluation": "window"}),
    ],
)
def test_a_setting_is_read_as_a_value_of_its_type(text: str, expected: dict[str, object]) -> None:
    assert parse_changes([text]) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("clp=0.2", r"--set: expected NAME=VALUE with the name of a setting, got 'clp=0.2'. Did you mean 'clip'"),
        ("clip", r"--set: expected a value of type float for clip, got ''"),
        ("horizon=2.5", r"--set: expected a value of type int for horizon, got '2.5'"),
        ("time_limit_is_terminal=perhaps", r"expected a value of type bool"),
    ],
)
def test_a_setting_that_cannot_be_read_is_refused(text: str, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        parse_changes([text])


def test_settings_out_of_range_are_all_named() -> None:
    with pytest.raises(OptionError, match=r"evaluation to be one of .*got 'other'; bias_gain to be .* got -1"):
        Settings(evaluation="other", bias_gain=-1.0)  # type: ignore[arg-type]
