"""The hook for rsl_rl on stand-ins with the call signatures of its versions; the real one is in the slow tier."""

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
    assert {iteration for _, _, iteration in training.writer.scalars} == {7}


def test_an_equivariant_policy_has_no_residual():
    training = runner(0.0, 2)
    training.alg.actor_critic.act_inference.bias.data.zero_()
    seen = {}
    log_residual(training, MIRROR, log=lambda name, value, _: seen.update({name: value}))
    training.alg.update()
    assert seen["Symmetry/residual_max"] < 1e-6


def test_what_is_no_runner_is_refused():
    with pytest.raises(sc.errors.TargetError, match=r"alg\.update"):
        log_residual(SimpleNamespace(), MIRROR)
    with pytest.raises(sc.errors.OptionError, match="every"):
        log_residual(runner(0.0, 2), MIRROR, every=0)
