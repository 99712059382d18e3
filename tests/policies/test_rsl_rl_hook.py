"""The hook for rsl_rl on stand-ins with the call signatures of its versions; the real one is in the slow tier."""

import re
import sys
from types import SimpleNamespace

import pytest
import torch
from torch import nn

import symcheck as sc
from symcheck.mirror_functions.tensor_groups import TensorGroups
from symcheck.rsl_rl import log_residual

MIRROR = sc.Symmetry("mirror", sc.groups.cyclic(2), observation=[["+2", "+1"]], action=[[1, 0]])


class Writer:
    def __init__(self):
        self.scalars = []

    def add_scalar(self, name, value, iteration):
        self.scalars.append((name, value, iteration))


def network(offset):
    net = nn.Linear(2, 2)
    with torch.no_grad():
        net.weight.copy_(torch.tensor([[1.0, 0.2], [0.2, 1.0]]))
        net.bias.copy_(torch.tensor([0.0, offset]))
    return net


def runner(offset, version):
    observations = torch.randn(5, 8, 2)
    net = network(offset)
    if version == 2:
        parts = {
            "storage": SimpleNamespace(observations=observations),
            "actor_critic": SimpleNamespace(act_inference=net),
        }
    else:
        grouped = TensorGroups({"policy": observations, "critic": torch.randn(5, 8, 3)})
        parts = {"storage": SimpleNamespace(observations=grouped), "actor": lambda obs: net(obs["policy"])}
    algorithm = SimpleNamespace(update=lambda: {"loss": 1.0}, **parts)
    return SimpleNamespace(alg=algorithm, writer=Writer(), current_learning_iteration=7)


@pytest.mark.parametrize("version", [2, 5])
def test_the_residual_of_one_side_is_written_beside_the_trainers_scalars(version):
    training = runner(0.114, version)
    log_residual(training, MIRROR, every=2)
    results = [training.alg.update() for _ in range(3)]
    assert results == [{"loss": 1.0}] * 3
    values = {name: value for name, value, _ in training.writer.scalars}
    assert values["Symmetry/residual_max"] == pytest.approx(0.114, rel=1e-5)
    # Of three updates the first and the third.
    assert len(training.writer.scalars) == 6
    assert {iteration for _, _, iteration in training.writer.scalars} == {7, 9}


def test_an_equivariant_policy_has_no_residual():
    training = runner(0.0, 2)
    training.alg.actor_critic.act_inference.bias.data.zero_()
    seen = {}
    log_residual(training, MIRROR, log=lambda name, value, _: seen.update({name: value}))
    training.alg.update()
    assert seen["Symmetry/residual_max"] < 1e-6


class EmpiricalNormalization(nn.Module):
    """As in rsl_rl 2: applied outside the policy, and what it returns is stored."""

    def __init__(self, mean):
        super().__init__()
        self.register_buffer("_mean", torch.tensor([mean]))
        self.register_buffer("_std", torch.ones(1, len(mean)))
        self.seen = 0

    def forward(self, x):
        self.seen += len(x) if self.training else 0
        return (x - self._mean) / (self._std + 1e-2)

    def inverse(self, y):
        return y * (self._std + 1e-2) + self._mean


@pytest.mark.parametrize(("mean", "residual"), [((0.3, -0.3), 0.0), ((0.3, 0.3), 0.6 * 1.2 / 1.01)])
def test_observations_that_are_stored_normalised_are_moved_as_observations(mean, residual):
    """The mirror exchanges and negates: statistics of opposite means are symmetric, equal ones are one-sided."""
    training = runner(0.0, 2)
    mirror = sc.Symmetry("mirror", sc.groups.cyclic(2), observation=[["-2", "-1"]], action=[["-2", "-1"]])
    training.obs_normalizer = EmpiricalNormalization(mean)
    training.alg.actor_critic.act_inference.bias.data.zero_()
    log_residual(training, mirror)
    training.alg.update()
    values = {name: value for name, value, _ in training.writer.scalars}
    assert values["Symmetry/residual_max"] == pytest.approx(residual, abs=1e-5)
    # What is measured adds nothing to the statistics.
    assert training.obs_normalizer.seen == 0


def test_scalars_go_to_tensorboard_and_are_read_back(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from torch.utils.tensorboard import SummaryWriter

    training = runner(0.114, 2)
    training.writer = SummaryWriter(str(tmp_path))
    log_residual(training, MIRROR)
    training.alg.update()
    training.writer.close()
    events = EventAccumulator(str(tmp_path)).Reload()
    assert set(events.Tags()["scalars"]) == {f"Symmetry/residual_{kind}" for kind in ("max", "mean", "relative")}
    (event,) = events.Scalars("Symmetry/residual_max")
    assert (event.step, event.value) == (7, pytest.approx(0.114, rel=1e-5))


class Run:
    """Weights & Biases by its call form: `wandb.run` is set between init and finish, `wandb.log(values, step=...)`."""

    def __init__(self, active=True):
        self.run, self.logged = object() if active else None, []

    def log(self, values, step=None):
        assert all(isinstance(value, float) for value in values.values())
        self.logged.append((values, step))


@pytest.mark.parametrize("active", [True, False])
def test_scalars_go_to_an_active_run_of_weights_and_biases(active, monkeypatch):
    wandb = Run(active)
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    training = runner(0.114, 2)
    training.writer = None
    log_residual(training, MIRROR)
    training.alg.update()
    names = {name for values, _ in wandb.logged for name in values}
    assert names == ({f"Symmetry/residual_{kind}" for kind in ("max", "mean", "relative")} if active else set())
    assert all(step == 7 for _, step in wandb.logged)


def test_a_tensorboard_writer_and_an_active_run_both_get_the_scalars(monkeypatch):
    wandb = Run()
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    training = runner(0.114, 2)
    log_residual(training, MIRROR)
    training.alg.update()
    assert len(training.writer.scalars) == 3
    assert len(wandb.logged) == 3


def test_a_writer_that_passes_on_to_the_run_is_not_logged_twice(monkeypatch):
    wandb = Run()
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    training = runner(0.114, 2)
    training.writer = type("WandbSummaryWriter", (Writer,), {})()
    log_residual(training, MIRROR)
    training.alg.update()
    assert len(training.writer.scalars) == 3
    assert wandb.logged == []


@pytest.mark.slow
def test_scalars_are_in_the_summary_of_a_real_run_of_weights_and_biases(tmp_path, capfd):
    wandb = pytest.importorskip("wandb")
    run = wandb.init(mode="offline", dir=str(tmp_path), project="mirror")
    training = runner(0.125, 2)
    training.writer = None
    log_residual(training, MIRROR)
    training.alg.update()
    run.finish()  # prints the summary
    printed = "".join(capfd.readouterr())
    (largest,) = re.findall(r"Symmetry/residual_max (0\.\d+)", printed)
    assert float(largest) == pytest.approx(0.125, rel=1e-3)
    assert re.search(r"Symmetry/residual_mean 0\.\d", printed)
    assert re.search(r"Symmetry/residual_relative 0\.\d", printed)


def test_what_is_no_runner_is_refused():
    with pytest.raises(sc.errors.TargetError, match=r"alg\.update"):
        log_residual(SimpleNamespace(), MIRROR)
    with pytest.raises(sc.errors.OptionError, match="every"):
        log_residual(runner(0.0, 2), MIRROR, every=0)
