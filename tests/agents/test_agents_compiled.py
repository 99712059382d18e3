"""The compiled engine: the same equations as torch's, bits that repeat, and words where it cannot be had."""

from __future__ import annotations

import dataclasses
import platform
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from reference_agents.catalog import Task, find_network, find_task
from reference_agents.checkpoint import deserialise, serialise
from reference_agents.cli.app import app
from reference_agents.compiled import library
from reference_agents.compiled.engine import choose_engine
from reference_agents.compiled.kernel import Kernel
from reference_agents.compiled.learner import CompiledLearner, CompiledNetwork
from reference_agents.environments.cartpole import CartPoleVector
from reference_agents.evaluation import play
from reference_agents.learning.distributions import Categorical, Distribution, Gaussian, MultiCategorical
from reference_agents.learning.learner import Learner
from reference_agents.learning.rollout import Rollout
from reference_agents.networks.actor_critic import ActorCritic
from reference_agents.networks.build import build_plan
from reference_agents.settings import Settings
from reference_agents.trainer import Job, State, train
from symcheck.array_types import Array, Bools, Floats
from symcheck.errors import OptionError

SMALL = Settings(environments=4, horizon=5, epochs=2, minibatches=2, decorrelation_steps=0, evaluation_episodes=2)


@pytest.fixture(autouse=True)
def _compiler() -> None:
    try:
        library.load_library()
    except library.NoCompilerError as error:
        pytest.skip(str(error))


def _networks(task: Task, name: str, *, apart: bool = False, **changes: Any) -> tuple[ActorCritic, ActorCritic]:
    network = dataclasses.replace(find_network(task, name), bias_gain=1.0, separate_bodies=apart)
    plan = dataclasses.replace(build_plan(task, network), **changes)
    first, second = (ActorCritic(plan, (0, 1, 2), torch.device("cpu")) for _ in range(2))
    return first, second


def _rollout(network: ActorCritic, task: Task, policy: Distribution, batch: int) -> Rollout:
    draw = torch.Generator().manual_seed(0)
    observations = torch.randn(3, batch, *task.observation_shape, generator=draw)
    numbers, values = network.forward(observations)
    actions = torch.from_numpy(policy.sample(numbers, np.random.default_rng(0).random((3, *policy.noise_shape(batch)))))
    # Old probabilities off by a tenth, so that some ratios are clipped.
    old = policy.log_probability(numbers, actions) + 0.1 * torch.randn(3, batch, generator=draw)
    advantages, returns = (torch.randn(3, batch, generator=draw) for _ in range(2))
    return Rollout(observations, actions, old, advantages, values + returns)


GAUSSIAN = {"normalise_advantages": True, "bound_penalty": 0.5}


@pytest.mark.parametrize(
    ("task_name", "name", "policy", "plan", "settings"),
    [
        ("cartpole", "mlp", Categorical(), {}, {}),
        ("cartpole", "equivariant", Categorical(), {}, {"clip": 0.05}),
        ("cartpole", "nullspace", Categorical(), {}, {}),
        ("cartpole", "random", Categorical(), {"masked": (1,)}, {}),
        ("cartpole", "extractor", Categorical(), {"input_scale": 0.5}, {}),
        ("acrobot", "equivariant-deep", Categorical(), {}, {"normalise_advantages": True}),
        ("acrobot", "mlp", MultiCategorical((2, 1)), {}, {}),
        ("pendulum", "equivariant", Gaussian(1, np.array([0.05])), {}, GAUSSIAN),
        ("pendulum", "nullspace", Gaussian(1), {}, {}),
        ("pendulum", "mlp", Gaussian(1, np.array([0.05])), {"apart": True}, GAUSSIAN),
        ("pendulum", "equivariant", Gaussian(1), {"apart": True}, {}),
        ("cartpole", "nullspace", Categorical(), {"apart": True}, {}),
        ("cartpole", "extractor", Categorical(), {"apart": True}, {}),
    ],
)
def test_a_step_takes_the_gradient_that_torch_takes(
    task_name: str, name: str, policy: Distribution, plan: dict[str, Any], settings: dict[str, Any]
) -> None:
    task = find_task(task_name)
    once = SMALL.with_changes(epochs=1, minibatches=1, **settings)
    by_torch, by_kernel = _networks(task, name, **plan)
    rollout = _rollout(by_torch, task, policy, once.batch)
    kernel = Kernel(by_kernel, once, policy)
    compiled = CompiledNetwork(by_kernel, kernel)
    for ours, theirs in zip(
        compiled.forward(rollout.observations), by_torch.forward(rollout.observations), strict=True
    ):
        # float32 sums of up to 128 products of size 1, in another order
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)
    learner = CompiledLearner(compiled, kernel, [0.001] * 3, (0, 1, 2), once, policy)
    assert learner.update(rollout).all()
    assert Learner(by_torch, [0.001] * 3, (0, 1, 2), once, policy).update(rollout).all()
    # Adam's first mean is a tenth of the clipped gradient.
    first, second = learner.state()["optimiser"]["first"], learner.state()["optimiser"]["second"]
    expected = by_torch.parameters.gradients
    # gradients are clipped to norm 1; sums of 20 steps in float32
    torch.testing.assert_close(first * 10.0, expected, atol=2e-6, rtol=1e-4)
    torch.testing.assert_close(second * 1000.0, expected.square(), atol=2e-6, rtol=1e-3)
    # Where a gradient is not within rounding of zero, Adam's first step is the learning rate.
    clear = expected.abs() > 1e-5
    torch.testing.assert_close(
        by_kernel.parameters.values[clear], by_torch.parameters.values[clear], atol=1e-6, rtol=1e-5
    )


_PROCESSORS = {"x86-64": {"sse2"}, "x86-64-v2": {"sse4_2"}, "x86-64-v3": {"avx2", "fma"}, "x86-64-v4": {"avx512vl"}}
"""Levels of x86 by the flags that a processor needs; registers have 16, 16, 32 and 64 bytes."""


def _processor_flags() -> set[str]:
    cpu = Path("/proc/cpuinfo")
    lines = cpu.read_text(encoding="utf-8").splitlines() if cpu.exists() else []
    return set(next((line.split() for line in lines if line.startswith("flags")), []))


@pytest.fixture
def _for_processor(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Build for one level of processors, in a cache of its own."""
    if not _PROCESSORS[request.param] <= _processor_flags():
        pytest.skip(f"this processor is not an {request.param}")
    flags = [f"-march={request.param}" if flag == "-march=native" else flag for flag in library._FLAGS]
    monkeypatch.setattr(library, "_FLAGS", tuple(flags))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    library.load_library.cache_clear()
    yield
    library.load_library.cache_clear()


@pytest.mark.long
@pytest.mark.parametrize("_for_processor", _PROCESSORS, indirect=True)
@pytest.mark.usefixtures("_for_processor")
def test_registers_of_every_width_take_the_gradient_that_torch_takes() -> None:
    for task, name, policy in (
        ("cartpole", "mlp", Categorical()), ("cartpole", "equivariant", Categorical()),
        ("pendulum", "nullspace", Gaussian(1)),
    ):  # fmt: skip
        test_a_step_takes_the_gradient_that_torch_takes(task, name, policy, {}, {})


@pytest.mark.long
@pytest.mark.parametrize("level", _PROCESSORS)
def test_the_sums_of_a_product_stay_in_registers(level: str, tmp_path: Path) -> None:
    """A tile that is larger than the registers is stored and loaded at every step of its sums, 10 times as slow."""
    compiler = shutil.which("gcc")
    if compiler is None or platform.machine() != "x86_64":
        pytest.skip("gcc for x86 is needed")
    flags = [f"-march={level}" if flag == "-march=native" else flag for flag in library._FLAGS if flag != "-shared"]
    assembly = tmp_path / "learn.s"
    built = subprocess.run([compiler, *flags, "-S", str(library._SOURCE), "-o", str(assembly)], check=False)
    if built.returncode:
        pytest.skip(f"this gcc does not know {level}")
    text = assembly.read_text(encoding="utf-8")
    strips = re.findall(r"^(strip[^\n]*):\n(.*?)^\t\.size\t\1", text, re.MULTILINE | re.DOTALL)
    assert strips
    for name, body in strips:
        assert re.search(r"mulps|fmadd", body), name
        assert not re.search(r"\tv?mov[au]ps\t%[xyz]mm\d+, [^\n]*\(%r[sb]p", body), name


def _job(network: str, seeds: tuple[int, ...], rates: tuple[float, ...], task: str = "cartpole", **changes: Any) -> Job:
    the_task = find_task(task)
    settings = SMALL.with_changes(**{"steps": 200, "evaluation_every": 100, **changes})
    return Job(the_task, find_network(the_task, network), seeds, rates, settings, engine="compiled")


@pytest.mark.parametrize(
    ("task", "network"), [("cartpole", "equivariant"), ("pendulum", "mlp"), ("acrobot", "augmented")]
)
def test_a_run_alone_and_in_company_has_the_same_bits(task: str, network: str) -> None:
    moving = {"linear_decay": True, "target_divergence": 0.01}
    company = train(_job(network, (0, 1, 2), (0.001, 0.01), task, **moving))
    alone = train(_job(network, (1,), (0.01,), task, **moving))
    assert company.job.runs[4] == alone.job.runs[0]
    assert torch.equal(company.network.parameters.values[4], alone.network.parameters.values[0])
    assert [point[4] for point in company.returns] == [point[0] for point in alone.returns]


def test_a_training_that_was_stopped_goes_on_to_the_same_bits() -> None:
    job, states = _job("equivariant", (0, 1), (0.01,), target_divergence=0.01), list[State]()
    whole = train(job)

    def stop(state: Callable[[], State]) -> None:
        states.append(deserialise(serialise(state())))
        if len(states) == 3:
            raise KeyboardInterrupt

    assert train(job, on_checkpoint=stop).interrupted
    resumed = train(job, resume_from=states[-1])
    assert torch.equal(resumed.network.parameters.values, whole.network.parameters.values)
    assert np.array_equal(resumed.returns, whole.returns)


def test_a_run_whose_numbers_are_not_finite_stops_alone() -> None:
    by_torch, network = _networks(find_task("cartpole"), "equivariant")
    rollout = _rollout(by_torch, find_task("cartpole"), Categorical(), SMALL.batch)
    rollout.returns[1, 3] = torch.inf
    kernel = Kernel(network, SMALL, Categorical())
    learner = CompiledLearner(CompiledNetwork(network, kernel), kernel, [0.001] * 3, (0, 1, 2), SMALL, Categorical())
    assert learner.update(rollout).tolist() == [True, False, True]
    assert torch.isfinite(network.parameters.values).all()


def test_only_the_rows_that_are_wanted_are_computed() -> None:
    by_torch, network = _networks(find_task("cartpole"), "equivariant")
    compiled = CompiledNetwork(network, Kernel(network, SMALL, Categorical()))
    observations = torch.randn(3, 7, 4, generator=torch.Generator().manual_seed(1))
    wanted = np.random.default_rng(0).random((3, 7)) < 0.5
    wanted[2] = False
    part, whole = compiled.forward(observations, wanted=wanted)[0], compiled.forward(observations)[0]
    assert torch.equal(part[wanted], whole[wanted])
    assert not part[~wanted].any()
    torch.testing.assert_close(whole, by_torch.forward(observations)[0], atol=1e-5, rtol=1e-5)


def test_an_evaluation_of_cartpole_plays_what_the_environment_plays(monkeypatch: pytest.MonkeyPatch) -> None:
    # Long enough for episodes that the time limit ends; biases make one action more likely in the middle.
    job = _job("equivariant", (0, 1), (0.01, 0.05), steps=1_600, evaluation_every=400, evaluation_episodes=3, epochs=4)
    by_loop = train(job)

    def by_environment(network: CompiledNetwork, seeds: Sequence[int], *, episodes: int, index: int) -> Floats:
        def policy(observations: Array, running: Bools | None = None) -> torch.Tensor:
            return network.forward(torch.from_numpy(observations), wanted=running)[0]

        return play(policy, Categorical(), CartPoleVector, seeds, episodes=episodes, index=index)

    monkeypatch.setattr("reference_agents.trainer.play_carts", by_environment)
    expected = train(job)
    assert np.array_equal(by_loop.returns, expected.returns)
    assert np.max(expected.returns) == 500.0


def test_the_network_that_comes_out_is_equivariant_and_the_record_names_the_engine(tmp_path: Path) -> None:
    words = ["train", "cartpole", "--seeds", "1", "--steps", "80", "--evaluation-episodes", "1", "--quiet"]
    words += ["--set", "decorrelation_steps=0", "--out", str(tmp_path)]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    record = (tmp_path / "cartpole-equivariant" / "record.json").read_text(encoding="utf-8")
    assert ", compiled)" in record
    assert '"proved"' in record


def test_without_a_compiler_torch_trains_and_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(library.shutil, "which", lambda name: None)
    library.load_library.cache_clear()
    try:
        words = ["train", "cartpole", "--seeds", "1", "--steps", "80", "--evaluation-episodes", "1", "--out"]
        words += [str(tmp_path), "--set", "decorrelation_steps=0"]
        result = CliRunner().invoke(app, words)
        assert result.exit_code == 0, result.output
        assert "no C compiler" in result.output
        refused = CliRunner().invoke(app, [*words, "--engine", "compiled"])
        assert refused.exit_code == 2
        assert "the compiled engine requires a C compiler" in refused.output
    finally:
        library.load_library.cache_clear()


def test_a_compiler_that_fails_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CC", "false")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    library.load_library.cache_clear()
    try:
        with pytest.raises(library.NoCompilerError, match="false could not build the C code"):
            library.load_library()
    finally:
        library.load_library.cache_clear()


@pytest.mark.parametrize(
    ("task", "network", "settings"),
    [
        ("gridworld", "equivariant", Settings(algorithm="a2c")),
        ("cartpole", "mlp", Settings(algorithm="a2c")),
        ("cartpole", "symmetrized", Settings()),
    ],
)
def test_what_cannot_be_compiled_stays_with_torch(task: str, network: str, settings: Settings) -> None:
    the_task = find_task(task)
    plan = find_network(the_task, network)
    assert choose_engine("auto", the_task, plan, settings) == ("torch", "")
    with pytest.raises(OptionError, match="the compiled engine supports only PPO on the CPU"):
        choose_engine("compiled", the_task, plan, settings)


def test_an_engine_that_there_is_not_is_refused() -> None:
    task = find_task("cartpole")
    with pytest.raises(OptionError, match="unknown engine 'compild'"):
        choose_engine("compild", task, find_network(task, "mlp"), Settings())
