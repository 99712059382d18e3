"""A user's own module trains like the others, is verified, and is refused where it does not fit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import reference_agents
from reference_agents import record
from reference_agents.catalog import TASKS
from reference_agents.cli.app import app
from reference_agents.loading import load_network
from reference_agents.networks.factory import make_network
from reference_agents.settings import preset
from reference_agents.tasks import resolve_network
from reference_agents.trainer import Job, train
from symcheck.errors import OptionError, TargetError

SOURCE = '''
import torch
from torch import nn


class Plain(nn.Module):
    def __init__(self, inputs=4, actions=2):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(inputs, 32), nn.LayerNorm(32), nn.Tanh())
        self.policy, self.value = nn.Linear(32, actions), nn.Linear(32, 1)

    def forward(self, x):
        h = self.body(x)
        return self.policy(h), self.value(h)


class Odd(nn.Module):
    """An odd logit difference and an even value: equivariant by construction."""

    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 16, bias=False)
        self.policy, self.value = nn.Linear(16, 1, bias=False), nn.Linear(16, 1)

    def forward(self, x):
        h = torch.tanh(self.body(x))
        side = self.policy(h)
        return torch.cat([side, -side], dim=1), self.value(h * h)


def pendulum():
    return Plain(3, 1)


def three_logits():
    return Plain(4, 3)


def batch_norm():
    return nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), Heads())


class Heads(nn.Module):
    def __init__(self):
        super().__init__()
        self.both = nn.Linear(4, 3)

    def forward(self, x):
        y = self.both(x)
        return y[:, :2], y[:, 2]


def one_output():
    return nn.Linear(4, 2)


def not_a_module():
    return 3


def wrong_input():
    return Plain(7, 2)
'''
CARTPOLE = TASKS["cartpole"]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("user") / "mine.py"
    path.write_text(SOURCE)
    return path


@pytest.mark.parametrize(("task", "name"), [("cartpole", "Plain"), ("pendulum", "pendulum")])
def test_gradients_are_those_of_each_runs_own_module(source: Path, task: str, name: str) -> None:
    plan = resolve_network(TASKS[task], f"{source}:{name}")
    network = make_network(TASKS[task], plan, [0, 1], torch.device("cpu"))
    observations = torch.randn(2, 6, *TASKS[task].observation_shape, generator=torch.Generator().manual_seed(0))
    numbers, values = network.forward(observations, keep=True)
    d_numbers, d_values = torch.randn_like(numbers), torch.randn_like(values)
    network.backward(d_numbers, d_values)
    gradients = network.parameters.layout.views(network.parameters.gradients)
    for run in range(2):
        parameters = {k: v.requires_grad_() for k, v in network.parameters.of_run(run).items()}
        own = {k: v for k, v in parameters.items() if k != "log_deviation"}
        policy, value = torch.func.functional_call(network._module, own, (observations[run],))  # type: ignore[attr-defined]
        if "log_deviation" in parameters:
            policy = torch.cat([policy, parameters["log_deviation"].expand_as(policy)], dim=1)
        loss = (policy * d_numbers[run]).sum() + (value[:, 0] * d_values[run]).sum()
        for key, expected in zip(parameters, torch.autograd.grad(loss, list(parameters.values())), strict=True):
            # float32 sums of at most 32 terms, in another order
            torch.testing.assert_close(gradients[key][run], expected, rtol=1e-4, atol=1e-5)


def test_seeds_draw_different_parameters_and_reproduce_them_whatever_the_global_state(source: Path) -> None:
    plan = resolve_network(CARTPOLE, f"{source}:Plain")
    torch.manual_seed(1)
    before = torch.random.get_rng_state()
    first = make_network(CARTPOLE, plan, [0, 1], torch.device("cpu")).parameters.values
    assert torch.equal(before, torch.random.get_rng_state())
    torch.manual_seed(2)
    second = make_network(CARTPOLE, plan, [1], torch.device("cpu")).parameters.values
    assert torch.equal(first[1], second[0])
    assert not torch.equal(first[0], first[1])


@pytest.mark.long
def test_a_users_network_learns(source: Path) -> None:
    settings = preset("cartpole", "paper").with_changes(steps=8_000, evaluation_every=8_000)
    training = train(Job(CARTPOLE, resolve_network(CARTPOLE, f"{source}:Odd"), (0, 1, 2), (0.01,), settings))
    assert np.median(training.returns[-1]) > 3 * np.median(training.returns[0])


@pytest.mark.long
def test_the_command_line_trains_verifies_and_reloads_it(source: Path, tmp_path: Path) -> None:
    for name in ("Odd", "Plain"):
        arguments = ["train", "cartpole", "--network", f"{source}:{name}", "--seeds", "2", "--steps", "400"]
        result = CliRunner().invoke(app, [*arguments, "--out", str(tmp_path)])
        assert result.exit_code == 0, result.output
    odd, plain = (record.load(tmp_path / f"cartpole-mine.py-{name}") for name in ("Odd", "Plain"))
    assert {run.after.verdict for run in odd.runs} <= {"passed", "proved"}
    assert {run.after.verdict for run in plain.runs} == {"failed"}
    logits, value = load_network(tmp_path / "cartpole-mine.py-Odd", seed=1)(torch.ones(3, 4))
    assert torch.equal(logits[:, 0], -logits[:, 1])
    assert value.shape == (3, 1)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "three_logits",
            r"expected a pair of outputs of shapes \(batch, 2\) and \(batch, 1\), got \[\(2, 3\), \(2, 1\)\]",
        ),
        ("one_output", r"expected a pair of outputs .* got Tensor"),
        ("batch_norm", r"modules with buffers are not supported, but .* has 1.running_mean"),
        ("not_a_module", r"expected a factory without arguments that returns a module .* it returned int"),
        ("wrong_input", r"expected a factory without arguments that returns a module for observations \(batch, 4\)"),
        ("missing", r"does not define 'missing'"),
    ],
)
def test_what_does_not_fit_is_refused_and_says_why(source: Path, name: str, message: str) -> None:
    with pytest.raises(TargetError, match=message):
        resolve_network(CARTPOLE, f"{source}:{name}")


def test_from_python_settings_that_the_module_handles_itself_are_left_out_and_refused(source: Path) -> None:
    small = {"environments": 1, "horizon": 16, "minibatches": 2, "epochs": 1, "evaluation_episodes": 1}
    network = f"{source}:pendulum"
    result = reference_agents.train("pendulum", network=network, seeds=1, steps=16, settings=small)
    settings = result.training.job.settings
    # The preset has both for the built-in networks.
    assert preset("pendulum", "control").normalise_observations
    assert preset("pendulum", "control").separate_bodies
    assert (settings.normalise_observations, settings.separate_bodies, settings.policy_gain) == (False, False, 1.0)
    with pytest.raises(OptionError, match="normalise_observations cannot be set for a network of your own"):
        reference_agents.train("pendulum", network=network, settings={"normalise_observations": True})
