"""`reference-agents`: what it writes, what it says, and how it refuses."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from reference_agents import record
from reference_agents.cli.app import app
from reference_agents.cli.report import build_model
from reference_agents.loading import load_equivariant_network, load_network
from symcheck import files
from symcheck.errors import TargetError

SHORT = ["--seeds", "2", "--steps", "800"]


def _run(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one run of the MLP at two learning rates."""
    folder = tmp_path_factory.mktemp("runs")
    code, output = _run(
        "train", "cartpole", "--network", "mlp", "--learning-rate", "0.01,0.001", *SHORT, "--out", folder
    )
    assert code == 0
    assert "learning rate 0.001: the median of 2 seeds does not reach 475" in " ".join(output.split())
    return folder


def test_a_run_leaves_a_record_curves_and_weights(runs: Path) -> None:
    folder = runs / "cartpole-mlp"
    document = json.loads((folder / "record.json").read_text())
    assert document["schema"] == "reference-agents/1"
    assert document["settings"]["clip"] == 0.1
    # PyPI's CUDA builds leave the part after "+" out of the distribution's version
    assert torch.__version__.partition("+")[0] == document["versions"]["torch"].partition("+")[0]
    assert [(run["learning_rate"], run["seed"]) for run in document["runs"]] == [
        (0.001, 0),
        (0.001, 1),
        (0.01, 0),
        (0.01, 1),
    ]
    lines = (folder / "curves.csv").read_text().splitlines()
    assert lines[0] == "learning_rate,seed,env_steps,mean_return"
    assert len(lines) == 1 + 4 * 3
    assert sorted(path.name for path in (folder / "weights").iterdir()) == [
        "lr0.001-seed0.pt", "lr0.001-seed1.pt", "lr0.01-seed0.pt", "lr0.01-seed1.pt",
    ]  # fmt: skip


def test_a_record_read_back_is_the_record_written(runs: Path, tmp_path: Path) -> None:
    first = record.load(runs / "cartpole-mlp")
    record.save(first, tmp_path)
    assert record.load(tmp_path) == first


def test_a_trained_network_is_rebuilt_from_its_folder(runs: Path) -> None:
    module = load_network(runs / "cartpole-mlp", learning_rate=0.01, seed=1)
    logits, value = module(torch.zeros(3, 4))
    assert logits.shape == (3, 2)
    assert value.shape == (3, 1)
    with pytest.raises(TargetError, match=r"has no trained run .* seed 7.*Available: learning rate 0\.001 seed 0"):
        load_network(runs / "cartpole-mlp", seed=7)


def test_the_network_file_of_a_run_rebuilds_each_of_its_networks(runs: Path) -> None:
    namespace: dict[str, object] = {"__file__": str(runs / "cartpole-mlp" / "network.py")}
    exec((runs / "cartpole-mlp" / "network.py").read_text(), namespace)
    first, other = namespace["network"](), namespace["lr0_01_seed1"]()  # type: ignore[operator]
    assert not torch.equal(first.policy.weight, other.policy.weight)


def test_training_again_keeps_the_first_run(runs: Path, tmp_path: Path) -> None:
    for _ in range(2):
        assert _run("train", "cartpole", "--network", "mlp", "--seeds", "1", "--steps", "80", "--out", tmp_path)[0] == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cartpole-mlp", "cartpole-mlp-2"]


def test_the_report_shows_every_network_and_the_better_rate(runs: Path) -> None:
    code, output = _run("report", runs)
    assert code == 0
    assert "report.html" in output
    page = (runs / "report.html").read_text()
    assert "CartPole-v1" in page
    assert "mlp" in page
    model = build_model([(runs / "cartpole-mlp", record.load(runs / "cartpole-mlp"))])
    assert [network.chosen for network in model.networks].count(True) == 1
    assert model.threshold == 475
    assert [curve.seed for curve in model.networks[0].curves] == [0, 1]


def _sweep_of(seeds: int) -> record.Record:
    """A record of two rates; the second is better on even seeds, the first on odd ones."""
    nothing = record.Verification(None, "")
    rates = (0.1, 0.2)
    runs = [(rate, seed) for rate in rates for seed in range(seeds)]
    heights = {(0.1, 0): 1.0, (0.1, 1): 9.0, (0.2, 0): 2.0, (0.2, 1): 3.0}
    return record.Record(
        "cartpole", "CartPole-v1", "cartpole/mirror", "mlp", "dense", (64,), 1, 475.0, "paper", {}, "", "cpu", {}, "",
        False, 1.0, 1.0,
        tuple(record.RunRecord(seed, rate, None, None, None, None, nothing, nothing) for rate, seed in runs),
        tuple(record.Curve(seed, rate, (0, 1), (heights[rate, seed % 2],) * 2) for rate, seed in runs),
    )  # fmt: skip


def test_a_learning_rate_is_chosen_on_the_even_seeds_and_reported_on_the_odd_ones() -> None:
    model = build_model([(Path("run"), _sweep_of(6))])
    chosen = next(network for network in model.networks if network.chosen)
    assert chosen.learning_rate == 0.2
    assert [curve.seed for curve in chosen.curves] == [1, 3, 5]
    assert "they did not influence the choice" in model.choice_rule


def test_a_choice_on_few_seeds_says_that_it_favours() -> None:
    model = build_model([(Path("run"), _sweep_of(3))])
    assert [len(network.curves) for network in model.networks] == [3, 3]
    assert "favours" in model.choice_rule


@pytest.mark.parametrize(
    ("folders", "names"),
    [
        (["a/mlp"], ["mlp"]),
        (["a/mlp", "a/mlp-2"], ["mlp (mlp)", "mlp (mlp-2)"]),
        (["a/x/mlp", "b/x/mlp", "b/mlp"], ["mlp (a/x/mlp)", "mlp (b/mlp)", "mlp (b/x/mlp)"]),
        (["mlp", "a/mlp"], ["mlp (a/mlp)", "mlp (mlp)"]),
    ],
)
def test_runs_of_one_network_are_told_apart_by_as_much_of_their_paths_as_it_takes(
    folders: list[str], names: list[str]
) -> None:
    model = build_model([(Path(folder), _sweep_of(3)) for folder in folders])
    assert list(dict.fromkeys(network.name for network in model.networks)) == names


def test_list_names_every_network_without_importing_torch() -> None:
    script = (
        "import sys; from reference_agents.cli.app import app\n"
        "try: app(['list'])\n"
        "except SystemExit: pass\n"
        "print([name for name in ('torch', 'gymnasium', 'scipy') if name in sys.modules])"
    )
    output = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert output.rstrip().endswith("[]")
    for name in ("cartpole", "equivariant", "nullspace", "random", "mlp-wide", "equivariant-deep"):
        assert name in output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["cartpol"], r"TASK: unknown task 'cartpol'. Did you mean 'cartpole'\?"),
        (["cartpole", "--network", "equivarient"], r"--network: .*'equivarient'. Did you mean 'equivariant'\?"),
        (["cartpole", "--preset", "papr"], r"--preset: unknown preset 'papr'.* Did you mean 'paper'\?"),
        (["cartpole", "--seeds", "0"], r"--seeds: expected 1 or more .*, got 0"),
        (["cartpole", "--seeds", "-3"], r"--seeds: expected 1 or more .*, got -3"),
        (["cartpole", "--executor", "dsk"], r"--executor: unknown executor 'dsk'. Did you mean 'dask'\?"),
        (["cartpole", "--processes", "0"], r"--processes: expected 1 or more .*, got 0"),
        (["cartpole", "--steps", "0"], r"--steps: expected 1 or more .*, got 0"),
        (["cartpole", "--learning-rate", "fast"], r"--learning-rate: expected positive numbers .* got 'fast'"),
        (["cartpole", "--learning-rate", "0.1,-1"], r"--learning-rate: expected positive numbers .* got '-1'"),
        (["cartpole", "--learning-rate", "nan"], r"--learning-rate: expected positive numbers .* got 'nan'"),
        (["cartpole", "--device", "tpu"], r"--device: expected 'cpu' or 'cuda', got 'tpu'"),
    ],
)
def test_what_cannot_be_trained_exits_2_with_one_message(arguments: list[str], message: str, tmp_path: Path) -> None:
    code, output = _run("train", *arguments, "--out", tmp_path / "runs")
    assert code == 2
    assert re.search(message, " ".join(output.split()))
    assert "Traceback" not in output
    assert not (tmp_path / "runs").exists()


def test_a_missing_cuda_device_exits_2(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    code, output = _run("train", "cartpole", "--device", "cuda", "--out", tmp_path)
    assert code == 2
    assert "sees none. Use --device cpu." in " ".join(output.split())


def test_an_output_folder_that_is_a_file_exits_2_before_training(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    code, output = _run("train", "cartpole", *SHORT, "--out", tmp_path / "file")
    assert code == 2
    assert "--out: the folder" in " ".join(output.split())


def test_reporting_on_a_folder_without_runs_exits_2(tmp_path: Path) -> None:
    for folder, what in ((tmp_path, "contains no run"), (tmp_path / "missing", "does not exist")):
        code, output = _run("report", folder)
        assert code == 2
        assert what in " ".join(output.split())


def test_reporting_on_a_damaged_run_exits_2_and_names_it(tmp_path: Path) -> None:
    (tmp_path / "record.json").write_text("{")
    code, output = _run("report", tmp_path)
    assert code == 2
    assert tmp_path.name in "".join(output.split())


def test_a_crash_while_writing_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    files.write_file(path, b"old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        files.write_file(path, b"new")
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


@pytest.mark.long
def test_ctrl_c_saves_what_was_finished_and_exits_130(tmp_path: Path) -> None:
    script = (
        "import os, signal, sys\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # background jobs of a shell ignore it
        "from reference_agents.learning.learner import Learner\n"
        "update, calls = Learner.update, []\n"
        "def interrupting(self, rollout):\n"
        "    calls.append(None)\n"
        "    if len(calls) == 12: os.kill(os.getpid(), signal.SIGINT)\n"
        "    return update(self, rollout)\n"
        "Learner.update = interrupting\n"
        "from reference_agents.cli.app import app\n"
        "words = ['train', 'cartpole', '--network', 'mlp', '--seeds', '2', '--engine', 'torch']\n"
        f"app([*words, '--out', {str(tmp_path)!r}])\n"
    )
    process = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert process.returncode == 130, process.stderr
    assert "Traceback" not in process.stderr
    saved = record.load(tmp_path / "cartpole-mlp")
    assert saved.interrupted
    assert saved.curves[0].env_steps == (0, 560)
    assert np.isfinite(saved.curves[0].returns).all()
    assert _run("report", tmp_path)[0] == 0


def test_the_record_of_an_equivariant_network_says_that_it_is_proved_before_and_after(tmp_path: Path) -> None:
    code, output = _run("train", "cartpole", "--network", "equivariant", *SHORT, "--out", tmp_path)
    assert code == 0
    assert output.count("proved") == 4
    saved = record.load(tmp_path / "cartpole-equivariant")
    layers, plain = (
        load(tmp_path / "cartpole-equivariant", seed=1) for load in (load_equivariant_network, load_network)
    )
    observations = torch.randn(3, 4)
    # float32 sums of up to 128 terms, in another order
    torch.testing.assert_close(layers(observations)[0], plain(observations)[0], rtol=1e-4, atol=1e-4)
    assert {run.before.verdict for run in saved.runs} == {run.after.verdict for run in saved.runs} == {"proved"}


def test_a_learning_rate_that_diverges_is_named_and_the_other_goes_on(tmp_path: Path) -> None:
    arguments = ("--network", "equivariant", "--seeds", "1", "--steps", "160", "--learning-rate", "0.01,1e30")
    code, output = _run("train", "cartpole", *arguments, "--out", tmp_path)
    assert code == 0
    assert "diverged at 80" in output
    good, bad = record.load(tmp_path / "cartpole-equivariant").runs
    assert (good.stopped_at, good.after.verdict) == (None, "proved")
    assert (bad.stopped_at, bad.weights, bad.final_return, bad.after.verdict) == (80, None, None, None)
    assert "diverged" in bad.after.detail
    assert _run("report", tmp_path)[0] == 0


@pytest.mark.long
def test_the_grid_world_trains_from_the_same_command(tmp_path: Path) -> None:
    arguments = ("gridworld", "--network", "equivariant", "--preset", "tuned", "--seeds", "1", "--steps", "160")
    assert _run("train", *arguments, "--out", tmp_path)[0] == 0
    logits, value = load_network(tmp_path / "gridworld-equivariant")(torch.zeros(2, 1, 21, 21))
    assert logits.shape == (2, 5)
    assert value.shape == (2, 1)


@pytest.mark.long
def test_a_sweep_trains_every_network_it_is_given_into_one_folder(tmp_path: Path) -> None:
    code, _ = _run("sweep", "cartpole", "--network", "mlp,equivariant", "--learning-rate", "0.01,0.001", *SHORT,
                   "--out", tmp_path)  # fmt: skip
    assert code == 0
    saved = [record.load(path) for path in record.find_runs(tmp_path)]
    assert [(one.network, len(one.runs)) for one in saved] == [("equivariant", 4), ("mlp", 4)]


def test_a_sweep_with_one_unknown_network_trains_none(tmp_path: Path) -> None:
    code, output = _run("sweep", "cartpole", "--network", "mlp,cnn", *SHORT, "--out", tmp_path / "runs")
    assert code == 2
    assert "has no network 'cnn'" in " ".join(output.split())
    assert not (tmp_path / "runs").exists()


def test_evaluating_a_run_plays_every_network_and_is_reproducible(runs: Path) -> None:
    code, output = _run("evaluate", runs / "cartpole-mlp", "--episodes", "3")
    assert code == 0
    assert len([line for line in output.splitlines() if line.startswith("0.0")]) == 4
    assert _run("evaluate", runs / "cartpole-mlp", "--episodes", "3")[1] == output
    assert _run("evaluate", runs / "cartpole-mlp", "--episodes", "3", "--greedy")[1] != output


def test_one_episode_has_no_standard_error(runs: Path) -> None:
    output = _run("evaluate", runs / "cartpole-mlp", "--episodes", "1")[1]
    assert "1 episode of CartPole-v1" in output
    assert "nan" not in output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["--episodes", "0"], "--episodes: expected 1 or more episodes"), (["--seed", "-1"], "--seed: expected a seed")],
)
def test_an_evaluation_that_cannot_be_made_exits_2(runs: Path, arguments: list[str], message: str) -> None:
    code, output = _run("evaluate", runs / "cartpole-mlp", *arguments)
    assert code == 2
    assert message in " ".join(output.split())


def test_evaluating_what_is_not_a_run_exits_2(tmp_path: Path) -> None:
    code, output = _run("evaluate", tmp_path)
    assert code == 2
    assert "is not a run folder" in " ".join(output.split())


def test_comparing_folders_draws_their_runs_on_one_page(runs: Path, tmp_path: Path) -> None:
    assert _run("train", "cartpole", "--network", "mlp-wide", *SHORT, "--out", tmp_path)[0] == 0
    assert _run("compare", runs, tmp_path, "--out", tmp_path / "page.html")[0] == 0
    page = (tmp_path / "page.html").read_text()
    assert "mlp-wide" in page
    assert "0.001" in page
    code, output = _run("compare", runs, tmp_path, "--out", tmp_path / "missing" / "page.html")
    assert code == 2
    assert "cannot be written" in " ".join(output.split())


def test_runs_of_two_tasks_get_a_page_each_and_cannot_be_compared(tmp_path: Path) -> None:
    for task, network in (("cartpole", "mlp"), ("gridworld", "cnn")):
        arguments = ("--network", network, "--preset", "tuned", "--seeds", "1", "--steps", "80")
        assert _run("train", task, *arguments, "--out", tmp_path)[0] == 0
    # "tuned" has a rate of its own for each network of the grid world; the paper's is 0.003.
    assert [run.learning_rate for run in record.load(tmp_path / "gridworld-cnn").runs] == [0.001]
    assert _run("report", tmp_path)[0] == 0
    assert sorted(path.name for path in tmp_path.glob("*.html")) == ["report-cartpole.html", "report-gridworld.html"]
    code, output = _run("compare", tmp_path, "--out", tmp_path / "page.html")
    assert code == 2
    assert "expected runs of one task, got runs of cartpole and gridworld" in " ".join(output.split())


def test_an_exported_network_computes_the_same_for_any_batch(runs: Path, tmp_path: Path) -> None:
    arguments = ("--learning-rate", "0.01", "--seed", "1", "--out", tmp_path / "policy.pt2")
    assert _run("export", runs / "cartpole-mlp", *arguments)[0] == 0
    exported = torch.export.load(tmp_path / "policy.pt2").module()
    observations = torch.randn(7, 4)
    expected = load_network(runs / "cartpole-mlp", learning_rate=0.01, seed=1)(observations)
    for one, other in zip(exported(observations), expected, strict=True):
        torch.testing.assert_close(one, other)
    code, output = _run("export", runs / "cartpole-mlp", "--out", tmp_path / "missing" / "policy.pt2")
    assert code == 2
    assert "cannot be written" in " ".join(output.split())


def test_an_interrupt_during_imports_exits_130_without_a_traceback() -> None:
    script = (
        "import sys\n"
        "from reference_agents.cli import main\n"
        "class Interrupting:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'typer': raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupting())\n"
        "main()\n"
    )
    process = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert process.returncode == 130
    assert process.stderr == "interrupted\n"
