"""Copies that nobody waits for: on a device that is as late as it may be, trainings have the bits of the processor."""

from __future__ import annotations

import dataclasses
from collections import Counter, deque

import numpy as np
import pytest
import torch
from torch.utils._pytree import tree_map

from reference_agents import trainer
from reference_agents.catalog import find_network, find_task
from reference_agents.learning import transfer
from reference_agents.learning.distributions import Categorical, Gaussian
from reference_agents.learning.rollout import Collector, Rollout
from reference_agents.learning.transfer import Download, Uploads
from reference_agents.networks.actor_critic import ActorCritic
from reference_agents.networks.build import build_plan
from reference_agents.settings import preset
from reference_agents.tasks import resolve_network
from reference_agents.trainer import Job, Training, train
from tests.agents.simulated_device import DEVICE, SimulatedDevice, Transfer
from tests.agents.test_agents_training import CountingEnvironment, poisoned_at

THERE, TASK = torch.device(DEVICE), find_task("cartpole")


def _pong(network: str, device: str, *, updates: int = 3) -> Job:
    """Two runs of Pong whose curve is that of the training itself: whole games would take long."""
    task, settings = find_task("pong"), preset("pong", "paper")
    settings = dataclasses.replace(
        settings,
        environments=2,
        horizon=3,
        decorrelation_steps=2,
        steps=updates * 6,
        evaluation_every=updates * 6,
        evaluation="training",
    )
    return Job(task, resolve_network(task, network), (0, 1), (0.001,), settings, device)


def _assert_same(one: Training, other: Training) -> None:
    assert torch.equal(one.network.parameters.values.cpu(), other.network.parameters.values.cpu())
    assert np.array_equal(np.array(one.returns), np.array(other.returns), equal_nan=True)
    assert one.stopped == other.stopped


@pytest.mark.long
@pytest.mark.usefixtures("same_products")
@pytest.mark.parametrize(
    "network",
    [
        "augmented",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("cnn", "equivariant", "extractor", "averaged")),
    ],
)
def test_stacked_runs_of_pong_train_and_resume_to_the_bits_of_the_processor(
    simulated: SimulatedDevice, network: str
) -> None:
    states: list[object] = []
    with simulated:
        whole = train(_pong(network, DEVICE), on_checkpoint=lambda state: states.append(_copied(state())))
        resumed = train(_pong(network, DEVICE), resume_from=states[0])  # type: ignore[arg-type]
        on_processor = train(_pong(network, "cpu"))
        _assert_same(whole, on_processor)
        _assert_same(resumed, on_processor)


def _copied(state: object) -> object:
    return tree_map(lambda one: one.clone() if isinstance(one, torch.Tensor) else one, state)


class OneForAll(Uploads):
    """Sends everything through the same page-locked bytes, without asking whether they are still being read."""

    memory: torch.Tensor | None = None

    def send(self, array: np.ndarray) -> torch.Tensor:
        given = torch.from_numpy(array)
        if self._device.type == "cpu":
            return given
        if OneForAll.memory is None:
            OneForAll.memory = torch.empty(2**20, dtype=torch.uint8, pin_memory=True)
        part = OneForAll.memory[: given.nbytes].view(given.dtype).view(given.shape)
        part.copy_(given)
        return part.to(self._device, non_blocking=True)


@pytest.mark.long
@pytest.mark.usefixtures("same_products")
def test_a_buffer_that_is_written_while_it_is_read_trains_to_other_bits(
    simulated: SimulatedDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(OneForAll, "memory", None)
    monkeypatch.setattr("reference_agents.learning.rollout.Uploads", OneForAll)
    with simulated:
        training = train(_pong("cnn", DEVICE, updates=1)).network.parameters.values.cpu()
        expected = train(_pong("cnn", "cpu", updates=1)).network.parameters.values
    assert not torch.equal(training, expected)


@pytest.mark.usefixtures("same_products")
def test_a_download_that_is_read_before_it_has_arrived_stops_runs_that_are_well(
    simulated: SimulatedDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Download, "get", lambda download: download._arriving)
    with simulated:
        assert train(_pong("cnn", DEVICE, updates=1)).stopped == {0: 6, 1: 6}


@pytest.mark.usefixtures("same_products")
def test_an_update_of_pong_waits_once_a_step_and_sends_nothing_twice(
    simulated: SimulatedDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[tuple[int, ...]] = []
    marks: list[tuple[int, int, int]] = []

    class Noted(transfer._Buffer):
        def __init__(self, like: torch.Tensor) -> None:
            super().__init__(like)
            made.append(tuple(like.shape))

    monkeypatch.setattr(transfer, "_Buffer", Noted)
    with simulated:
        train(
            _pong("augmented", DEVICE, updates=4),
            on_progress=lambda _: marks.append((len(simulated.transfers), len(simulated.waits), len(made))),
        )
    (first, waited_first, made_first), (last, waited_last, made_last) = marks[2:4]  # the third update
    pairs, steps = 2 * 2, 3
    assert Counter(simulated.transfers[first:last]) == {
        Transfer("up", pairs * 4 * 80 * 80, waited=False): steps,  # screens as bytes; the last serve two batches
        Transfer("up", steps * pairs * 8, waited=False): 2,  # actions, and which element moves each pair
        Transfer("up", steps * pairs * 4, waited=False): 1,  # rewards
        Transfer("up", steps * pairs * 1, waited=False): 2,  # where a task and where an episode ended
        Transfer("down", pairs * 6 * 4, waited=True): steps,  # logits of six actions
        Transfer("down", 2, waited=False): 1,  # whether the runs' gradients were finite
    }
    assert waited_last - waited_first == steps
    # Page-locked buffers are made once. Both flags of a batch are on their way together.
    assert made_first == made_last
    assert Counter(made) == {(2, 2, 4, 80, 80): 1, (3, 2, 2): 4, (2, 6): 1}


class Overwriting(Uploads):
    """One buffer of each shape, whether or not it is still being read."""

    def _free(self, given: torch.Tensor) -> transfer._Buffer:
        buffers = self._buffers.setdefault((given.shape, given.dtype), deque())
        if not buffers:
            buffers.append(transfer._Buffer(given))
        return buffers[0]


def _cut_off(device: str) -> Rollout:
    """A batch in which a time limit ends episodes, so that two observations of a shape are sent in one step."""
    settings = dataclasses.replace(
        preset("cartpole", "paper"), environments=2, horizon=4, decorrelation_steps=0, time_limit_is_terminal=False
    )
    network = ActorCritic(build_plan(TASK, find_network(TASK, "mlp")), [0], torch.device(device))
    collector = Collector(CountingEnvironment([0], 2), [0], settings, Categorical(), torch.device(device))
    return collector.collect(network)


@pytest.mark.parametrize(("uploads", "same"), [(Uploads, True), (Overwriting, False)])
def test_the_observations_on_both_sides_of_a_time_limit_do_not_overwrite_each_other(
    simulated: SimulatedDevice, monkeypatch: pytest.MonkeyPatch, uploads: type[Uploads], same: bool
) -> None:
    expected = _cut_off("cpu")
    monkeypatch.setattr("reference_agents.learning.rollout.Uploads", uploads)
    with simulated:
        found = _cut_off(DEVICE)
        assert torch.equal(found.returns.cpu(), expected.returns) is same


def test_a_queue_of_copies_takes_a_buffer_each_and_gives_them_back(simulated: SimulatedDevice) -> None:
    with simulated:
        uploads = Uploads(THERE)
        for _ in range(3):  # rounds
            array, sent = np.zeros(2, dtype=np.float32), []
            for number in range(4):
                array[:] = number
                sent.append(uploads.send(array))
            assert not simulated.waits or simulated.waits[-1] != "event"
            assert [one.tolist() for one in sent] == [[number, number] for number in range(4)]
        assert len(simulated.locked) == 4


def test_what_is_sent_keeps_its_shape_and_dtype(simulated: SimulatedDevice) -> None:
    arrays = (np.arange(6, dtype=np.uint8).reshape(2, 3), np.array([True, False]), np.zeros((0, 4), dtype=np.float32))
    with simulated:
        for array in (*arrays, arrays[0].T):
            sent = Uploads(THERE).send(array)
            assert sent.device.type == DEVICE
            assert np.array_equal(sent.cpu().numpy(), array)
            assert sent.dtype is torch.from_numpy(array).dtype


def test_on_the_processor_nothing_is_copied() -> None:
    array = np.zeros(3)
    assert Uploads(torch.device("cpu")).send(array).data_ptr() == array.ctypes.data
    tensor = torch.zeros(3)
    assert Download(tensor).get() is tensor


def test_a_gaussian_policy_comes_down_in_one_copy(simulated: SimulatedDevice) -> None:
    numbers, uniforms = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(0)), np.full((2, 3, 2), 0.3)
    with simulated:
        drawn = Gaussian(2).sample(numbers.to(DEVICE), uniforms)
        assert simulated.transfers[1:] == [Transfer("down", numbers.nbytes, waited=True)]
    assert np.array_equal(drawn, Gaussian(2).sample(numbers, uniforms))


def test_a_run_that_diverges_on_a_device_is_named_and_leaves_the_others_bits(
    simulated: SimulatedDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = preset("cartpole", "paper").with_changes(steps=400, evaluation_every=400, decorrelation_steps=2)
    settings = dataclasses.replace(settings, evaluation_episodes=2)
    job = Job(TASK, find_network(TASK, "mlp"), (0, 1), (0.001,), settings)

    def trained(device: str) -> Training:
        with monkeypatch.context() as patch:
            patch.setattr(trainer.Learner, "update", poisoned_at(2))
            return train(dataclasses.replace(job, device=device))

    expected = trained("cpu")
    assert expected.stopped == {0: 2 * settings.batch}
    with simulated:
        _assert_same(trained(DEVICE), expected)


def test_a_download_is_what_was_there_when_it_was_asked_for(simulated: SimulatedDevice) -> None:
    with simulated:
        there = torch.ones(3, device=DEVICE)
        download = Download(there)
        there.mul_(2.0)
        assert download.get().tolist() == [1.0, 1.0, 1.0]
        assert simulated.waits == ["event"]


def test_the_simulated_device_reads_page_locked_memory_late_and_other_memory_at_once(
    simulated: SimulatedDevice,
) -> None:
    with simulated:
        locked, plain = torch.ones(3, pin_memory=True), torch.ones(3)
        assert locked.is_pinned()
        assert not plain.is_pinned()
        assert plain.pin_memory().is_pinned()
        late, early = (one.to(DEVICE, non_blocking=True) for one in (locked, plain))
        sums = (late.sum(), early.sum())
        assert not simulated.waits
        locked.zero_()
        plain.zero_()
        assert [one.item() for one in sums] == [0.0, 3.0]
        late = locked.to(DEVICE)  # waits
        locked.fill_(5.0)
        assert late.tolist() == [0.0, 0.0, 0.0]


def test_the_simulated_device_writes_page_locked_memory_late(simulated: SimulatedDevice) -> None:
    with simulated:
        there, event = torch.ones(2, device=DEVICE), simulated.event()
        assert event.query()  # nothing is waited for
        locked, plain = torch.zeros(2, pin_memory=True), torch.zeros(2)
        arriving = there.to("cpu", non_blocking=True)
        assert arriving.is_pinned()
        locked.copy_(there, non_blocking=True)
        event.record()
        assert (arriving.tolist(), locked.tolist(), event.query()) == ([0.0, 0.0], [0.0, 0.0], False)
        event.synchronize()
        assert (arriving.tolist(), locked.tolist(), event.query()) == ([1.0, 1.0], [1.0, 1.0], True)
        assert simulated.waits == ["event"]
        plain.copy_(there, non_blocking=True)  # not page-locked: the copy waits
        assert plain.tolist() == [1.0, 1.0]
        assert len(simulated.waits) == 2
