"""Trainings on a device other than the processor, with their graphs: run where there is none, on a simulated one."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.utils._pytree import tree_map

from reference_agents.catalog import find_task
from reference_agents.device import graph
from reference_agents.device.loop import DeviceLoop, train_on_device
from reference_agents.networks import actor_critic
from reference_agents.settings import preset
from reference_agents.tasks import resolve_network
from reference_agents.trainer import Job, Training, train
from tests.agents.simulated_device import DEVICE, SimulatedDevice

pytestmark = pytest.mark.long

OWN_NETWORK = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden, self.policy, self.value = torch.nn.Linear(4, 8), torch.nn.Linear(8, 2), torch.nn.Linear(8, 1)

    def forward(self, x):
        y = torch.tanh(self.hidden(x))
        return self.policy(y), self.value(y)
"""


def _job(task_name: str, network: str, device: str, *, updates: int = 5, preset_name: str = "paper") -> Job:
    settings = preset(task_name, preset_name)
    settings = dataclasses.replace(
        settings,
        decorrelation_steps=3,
        steps=updates * settings.batch,
        evaluation_every=updates * settings.batch,
        evaluation_episodes=3,
    )
    task = find_task(task_name)
    return Job(task, resolve_network(task, network), (0, 1), (0.001, 0.01), settings, device)


def _found(training: Training) -> tuple[np.ndarray, np.ndarray]:
    return training.network.parameters.values.cpu().numpy(), np.array(training.returns)


def _assert_same(one: tuple[np.ndarray, np.ndarray], other: tuple[np.ndarray, np.ndarray]) -> None:
    assert np.array_equal(one[0], other[0])
    assert np.array_equal(one[1], other[1], equal_nan=True)


@pytest.mark.usefixtures("same_products")
@pytest.mark.parametrize(
    ("task", "network", "preset_name"),
    [
        ("cartpole", "equivariant", "paper"),
        ("gridworld", "cnn", "tuned"),
        pytest.param("cartpole", "averaged", "tuned", marks=pytest.mark.slow),
        pytest.param("gridworld", "equivariant", "paper", marks=pytest.mark.slow),
        pytest.param("gridworld", "symmetrized", "paper", marks=pytest.mark.slow),
        pytest.param("cartpole", "random-deep", "paper", marks=pytest.mark.slow),
    ],
)
def test_recorded_updates_and_evaluations_train_to_the_same_bits(
    simulated: SimulatedDevice, task: str, network: str, preset_name: str
) -> None:
    with simulated:
        on_device = _found(train_on_device(_job(task, network, DEVICE, preset_name=preset_name)))
    _assert_same(on_device, _found(train_on_device(_job(task, network, "cpu", preset_name=preset_name))))


def test_an_update_on_a_device_neither_copies_nor_waits(simulated: SimulatedDevice) -> None:
    with simulated:
        loop = DeviceLoop(_job("cartpole", "equivariant", DEVICE), torch.Generator().manual_seed(0))
        loop.decorrelate()
        before = len(simulated.transfers)
        for _ in range(graph.WARM_UP + 2):
            loop.update()
        assert len(simulated.transfers) == before
        loop.evaluate()
    assert [one.size for one in simulated.transfers[before:]] == [4 * 8]  # the returns of four runs


def test_a_graph_that_reads_what_was_made_before_it_trains_to_other_bits(
    simulated: SimulatedDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = _found(train_on_device(_job("cartpole", "mlp", "cpu")))
    refresh = actor_critic.ActorCritic.refresh

    class Stale(DeviceLoop):
        """Forgets to build what is derived from the parameters anew at the start of an update."""

        def _one_update(self) -> None:
            with monkeypatch.context() as patch:
                patch.setattr(actor_critic.ActorCritic, "refresh", lambda network: patch.undo())
                super()._one_update()
            assert actor_critic.ActorCritic.refresh is refresh

    monkeypatch.setattr("reference_agents.device.loop.DeviceLoop", Stale)
    with simulated:
        stale = _found(train_on_device(_job("cartpole", "mlp", DEVICE)))
    assert not np.array_equal(stale[0], whole[0])


@pytest.mark.usefixtures("same_products")
@pytest.mark.parametrize(
    ("task", "network"),
    [("cartpole", "equivariant"), ("cartpole", "augmented"), ("gridworld", "cnn"), ("gridworld", "nullspace")],
)
def test_played_on_the_processor_and_learned_on_a_device_ends_in_the_same_bits(
    simulated: SimulatedDevice, task: str, network: str
) -> None:
    with simulated:
        on_device = _found(train(_job(task, network, DEVICE, updates=2)))
    _assert_same(on_device, _found(train(_job(task, network, "cpu", updates=2))))


def test_a_users_own_network_trains_on_a_device(simulated: SimulatedDevice, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN_NETWORK)
    name = f"{tmp_path / 'own.py'}:Net"
    with simulated:
        on_device = _found(train(_job("cartpole", name, DEVICE, updates=2)))
    _assert_same(on_device, _found(train(_job("cartpole", name, "cpu", updates=2))))


@contextlib.contextmanager
def _refused(message: str) -> Iterator[None]:
    with pytest.raises(RuntimeError, match=message):
        yield


def test_the_simulated_device_refuses_what_a_gpu_refuses(simulated: SimulatedDevice) -> None:
    with simulated:
        there, here = torch.ones(3, device=DEVICE), torch.ones(3)
        with _refused("same device"):
            there + here
        with pytest.raises((TypeError, RuntimeError)):
            there.numpy()
        assert (there + 1.0).cpu().tolist() == [2.0, 2.0, 2.0]
        generator = torch.Generator()
        for work in (
            lambda: there.sum().item(),
            lambda: there[there > 0],
            lambda: there.cpu(),
            lambda: torch.tensor([1.0], device=DEVICE),
        ):
            with _refused("while a graph is recorded"):
                simulated.record(work, generator)  # type: ignore[arg-type]


def test_a_recorded_graph_runs_nothing_at_first_and_draws_new_numbers_each_time(simulated: SimulatedDevice) -> None:
    generator = torch.Generator().manual_seed(0)
    expected = torch.rand(2, 3, generator=torch.Generator().manual_seed(0)).sum(0)
    with simulated:
        total = torch.zeros(3, device=DEVICE)

        def work() -> None:
            total.add_(torch.rand(3, device=DEVICE, generator=generator))

        replay = simulated.record(work, generator)
        assert total.tolist() == [0.0, 0.0, 0.0]
        replay()
        replay()
        assert total.tolist() == expected.tolist()


def _copied(state: object) -> object:
    return tree_map(lambda one: one.clone() if isinstance(one, torch.Tensor) else one, state)


@pytest.mark.parametrize(("task", "network"), [("cartpole", "augmented"), ("gridworld", "random")])
def test_a_training_on_a_device_goes_on_from_its_checkpoint_bit_for_bit(
    simulated: SimulatedDevice, task: str, network: str
) -> None:
    states: list[object] = []
    with simulated:
        whole = _found(
            train(_job(task, network, DEVICE, updates=4), on_checkpoint=lambda state: states.append(_copied(state())))
        )
        resumed = _found(train(_job(task, network, DEVICE, updates=4), resume_from=states[1]))  # type: ignore[arg-type]
    _assert_same(resumed, whole)
