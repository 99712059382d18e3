"""The training that stays on one device, run here on the processor: environments, optimiser and learning."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from reference_agents.catalog import find_network, find_task
from reference_agents.checkpoint import Started
from reference_agents.cli import train as command
from reference_agents.device.adam import DeviceAdam
from reference_agents.device.environments import CartPoleDevice, PredatorPreyDevice, cart_dynamics
from reference_agents.device.loop import DeviceLoop, runs_on_device, train_on_device, why_on_host
from reference_agents.environments import cartpole
from reference_agents.environments.predator_prey import PredatorPreyVector
from reference_agents.learning.optimiser import StackedAdam
from reference_agents.networks.parameters import Layout, StackedParameters
from reference_agents.settings import Settings, preset
from reference_agents.trainer import Job, train
from symcheck.errors import OptionError

CPU = torch.device("cpu")


class Numbers:
    """Stands for the streams of an environment in NumPy; remembers what it gave."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._rng, self._shape = np.random.default_rng(0), shape

    def next(self) -> np.ndarray:
        self.last = self._rng.random(self._shape)
        return self.last


@pytest.mark.parametrize("coded", [True, False])
def test_the_grid_world_is_bit_for_bit_the_one_in_numpy(coded: bool) -> None:
    vector, device = PredatorPreyVector([0, 1], 30, coded=coded), PredatorPreyDevice(2, 30, CPU, coded=coded)
    numbers = vector._streams = Numbers((2, 30, 6))  # type: ignore[assignment]
    first = vector.reset()
    device.reset(torch.from_numpy(numbers.last))
    assert np.array_equal(device.observe().numpy(), first)
    rng, ends = np.random.default_rng(1), 0
    for step in range(250):
        actions, active = rng.integers(0, 5, (2, 30)), rng.random((2, 30)) < 0.9 if step < 100 else None
        one = vector.step(actions, active=active)
        mask = None if active is None else torch.from_numpy(active)
        other = device.step(torch.from_numpy(actions), torch.from_numpy(numbers.last), active=mask)
        assert np.array_equal(device.observe().numpy(), one.observation)
        assert np.array_equal(other.final_observation.numpy(), one.final_observation)
        assert np.array_equal(other.reward.numpy(), one.reward)
        assert np.array_equal(other.terminated.numpy(), one.terminated)
        assert np.array_equal(other.truncated.numpy(), one.truncated)
        ends += int((one.terminated | one.truncated).sum())
    assert ends > 100


def test_a_cart_moves_as_in_numpy_up_to_the_last_bits_of_sines() -> None:
    rng = np.random.default_rng(0)
    states, actions = rng.uniform(-0.3, 0.3, (1_000, 4)), rng.integers(0, 2, 1_000)
    following = cart_dynamics(torch.from_numpy(states), torch.from_numpy(actions)).numpy()
    # sines and cosines may differ by one unit in the last place; what they enter is of order ten times a step of 0.02
    np.testing.assert_allclose(following, cartpole.dynamics(states, actions), rtol=0, atol=1e-15)


def test_cartpole_ends_and_restarts_as_in_numpy() -> None:
    vector, device = cartpole.CartPoleVector([0, 1], 20), CartPoleDevice(2, 20, CPU)
    numbers = vector._starts = Numbers((2, 20, 4))  # type: ignore[assignment]
    vector.reset()
    device.reset(torch.from_numpy(numbers.last))
    rng, ends = np.random.default_rng(1), 0
    for _ in range(600):
        # pushed towards where the pole falls, some poles stay up until the time limit
        actions = np.where(rng.random((2, 20)) < 0.02, rng.integers(0, 2, (2, 20)), _upright(vector.states))
        one = vector.step(actions)
        other = device.step(torch.from_numpy(actions), torch.from_numpy(numbers.last))
        assert np.array_equal(other.terminated.numpy(), one.terminated)
        assert np.array_equal(other.truncated.numpy(), one.truncated)
        np.testing.assert_allclose(other.final_observation.numpy(), one.final_observation, atol=1e-6)
        device.states.copy_(torch.from_numpy(vector.states))
        ends += int((one.terminated | one.truncated).sum())
    assert ends >= 40


def _upright(states: np.ndarray) -> np.ndarray:
    return (states[..., 2] + 0.3 * states[..., 3] > 0).astype(np.int64)


def _buffers() -> StackedParameters:
    layout = Layout()
    layout.add("weight", (3, 11))
    return StackedParameters(layout, 4, CPU)


def test_the_optimiser_takes_the_steps_of_the_stacked_one() -> None:
    one, other, rates = _buffers(), _buffers(), [0.1, 0.1, 0.003, 0.003]
    stacked, device = StackedAdam(one, rates, 1.0), DeviceAdam(other, rates, 1.0)
    generator = torch.Generator().manual_seed(0)
    for step in range(50):
        gradients = torch.randn(one.gradients.shape, generator=generator) * 10.0 ** (step % 5 - 3)
        if step == 20:
            gradients[2, 5] = torch.nan
        one.gradients.copy_(gradients)
        other.gradients.copy_(gradients)
        assert torch.equal(torch.isfinite(stacked.step()), torch.isfinite(device.step()))
        # float32, in another order of the same operations
        torch.testing.assert_close(other.values, one.values, rtol=1e-5, atol=1e-6)


def _job(task_name: str, network: str, **changes: object) -> Job:
    settings = dataclasses.replace(preset(task_name, "paper"), decorrelation_steps=20, **changes)  # type: ignore[arg-type]
    task = find_task(task_name)
    return Job(task, find_network(task, network), tuple(range(5)), (0.001, 0.01), settings)


@pytest.mark.parametrize(("task", "network"), [("cartpole", "mlp"), ("gridworld", "cnn"), ("cartpole", "averaged")])
def test_a_training_on_the_device_fills_in_what_any_training_does(task: str, network: str) -> None:
    job = _job(task, network, steps=320, evaluation_every=160, evaluation_episodes=2)
    seen: list[int] = []
    training = train_on_device(job, on_progress=lambda progress: seen.append(progress.env_steps))
    assert training.env_steps == seen == [0, 160, 320]
    assert np.array(training.returns).shape == (3, 10)
    assert not training.interrupted
    assert not training.stopped
    assert not torch.equal(training.initial_parameters, training.network.parameters.values)
    assert torch.equal(training.initial_parameters, train(job).initial_parameters)


def test_the_time_limit_bootstraps_where_it_is_not_terminal() -> None:
    job = _job("cartpole", "mlp", steps=160, evaluation_every=160, evaluation_episodes=1, time_limit_is_terminal=False)
    assert np.isfinite(train_on_device(job).returns[-1]).all()


def test_a_run_that_diverges_on_the_device_is_named_and_leaves_the_others_finite() -> None:
    job = _job("cartpole", "mlp", steps=160, evaluation_every=80, evaluation_episodes=1)
    loop = DeviceLoop(job, torch.Generator().manual_seed(0))
    loop.network.parameters.values[3] = torch.nan
    loop.update()
    assert loop.finite.tolist() == [run != 3 for run in range(10)]
    assert torch.isfinite(loop.network.parameters.values[[0, 1, 2, *range(4, 10)]]).all()


@pytest.mark.parametrize(
    ("task", "network", "fits"),
    [("cartpole", "equivariant", True), ("cartpole", "augmented", False), ("pendulum", "equivariant", False)],
)
def test_what_is_not_written_for_a_device_is_refused(task: str, network: str, fits: bool) -> None:
    the_task = find_task(task)
    job = Job(the_task, find_network(the_task, network), (0,), (0.001,), Settings())
    assert runs_on_device(job) is fits
    if not fits:
        with pytest.raises(OptionError, match="--device: expected one of cartpole, gridworld with a built-in network"):
            DeviceLoop(job, torch.Generator())


@pytest.mark.parametrize(
    ("task", "network", "changes", "reason"),
    [
        ("cartpole", "equivariant", {}, ""),
        ("cartpole", "augmented", {}, "the network is augmented"),
        ("acrobot", "mlp", {}, "the task is not cartpole or gridworld"),
        (
            "cartpole",
            "mlp",
            {"evaluation": "window", "target_divergence": 0.01},
            "target_divergence is 0.01, evaluation is window",
        ),
    ],
)
def test_what_keeps_a_training_from_the_device_is_said(
    monkeypatch: pytest.MonkeyPatch, task: str, network: str, changes: dict[str, Any], reason: str
) -> None:
    the_task = find_task(task)
    job = Job(the_task, find_network(the_task, network), (0,), (0.001,), Settings(**changes), "cuda")
    assert why_on_host(job) == reason
    said: list[str] = []
    for name in ("train", "train_on_device"):
        monkeypatch.setattr(command, name, lambda *given, **named: None)
    request: Any = SimpleNamespace(processes=1, executor="local")
    started = Started(job, "paper", "", (job,))
    command._Plan(started, Path("nowhere"), request, lambda progress: None, said.append).train()
    slower = f"environments are stepped on the CPU, which is slower: {reason}"
    assert said[0].startswith(slower if reason else "entirely on the GPU")


@pytest.mark.slow
@pytest.mark.parametrize(("task", "steps", "better_than"), [("cartpole", 12_000, 300.0), ("gridworld", 20_000, 0.0)])
def test_on_the_device_agents_learn_as_the_stacked_program_does(task: str, steps: int, better_than: float) -> None:
    job = _job(task, "equivariant", steps=steps, evaluation_every=steps, evaluation_episodes=10)
    job = dataclasses.replace(
        job, seeds=tuple(range(9)), learning_rates=(find_network(job.task, "equivariant").learning_rate,)
    )
    ours, theirs = train_on_device(job).returns[-1], train(job).returns[-1]
    assert np.median(ours) > better_than
    assert np.median(theirs) > better_than
