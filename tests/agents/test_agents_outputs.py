"""What a run is turned into: files for other programs, films, tables, logs; and what a terminal shows meanwhile."""

from __future__ import annotations

import csv
import dataclasses
import importlib
import io
import sys
import types
from pathlib import Path

import numpy as np
import pytest
import torch
from rich.console import Console
from typer.testing import CliRunner

from reference_agents import deploy, film, record
from reference_agents.catalog import find_network, find_task
from reference_agents.cli import live, sweep
from reference_agents.cli.app import app
from reference_agents.cli.report import step_ratio
from reference_agents.deploy import write_network
from reference_agents.encoding.environment import encoded_environment
from reference_agents.loading import load_network
from reference_agents.logs import TensorBoardLog, WandbLog
from reference_agents.settings import Settings
from reference_agents.tasks import resolve_task
from reference_agents.trainer import Job, Progress
from symcheck.errors import MissingExtraError, TargetError

SHORT = ["--seeds", "2", "--steps", "400", "--evaluation-every", "400", "--evaluation-episodes", "2", "--quiet"]


def _run(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, " ".join(result.output.split())


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sweep of two small trainings."""
    folder = tmp_path_factory.mktemp("outputs") / "sweep"
    code, _ = _run("sweep", "cartpole", "--network", "equivariant,mlp", "--learning-rate", "0.01", *SHORT,
                   "--out", folder)  # fmt: skip
    assert code == 0
    return folder


class TestExport:
    """One file that needs nothing of this package."""

    @pytest.mark.long
    @pytest.mark.filterwarnings("ignore")
    def test_an_onnx_model_computes_what_the_network_does_and_is_proved_equivariant(
        self, runs: Path, tmp_path: Path
    ) -> None:
        runtime = pytest.importorskip("onnxruntime")
        pytest.importorskip("onnxscript")
        from symcheck.cli.main import app as symcheck

        target = tmp_path / "policy.onnx"
        code, output = _run("export", runs / "cartpole-equivariant", "--out", target)
        assert code == 0
        assert "its outputs differ from the network's by at most" in output
        observations = np.random.default_rng(1).standard_normal((7, 4)).astype(np.float32)
        policy, value = runtime.InferenceSession(target).run(["policy", "value"], {"observation": observations})
        expected = load_network(runs / "cartpole-equivariant")(torch.from_numpy(observations))
        np.testing.assert_allclose(policy, expected[0].detach(), atol=1e-5)  # float32 sums in another order
        np.testing.assert_allclose(value, expected[1].detach(), atol=1e-5)
        verified = CliRunner().invoke(symcheck, ["verify-net", str(target), "--symmetry", "cartpole/mirror"])
        assert verified.exit_code == 0
        assert "proved for every input" in " ".join(verified.output.split())

    def test_a_state_dict_is_that_of_the_network(self, runs: Path, tmp_path: Path) -> None:
        assert _run("export", runs / "cartpole-mlp", "--seed", "1", "--out", tmp_path / "w.pt")[0] == 0
        state = torch.load(tmp_path / "w.pt", weights_only=True)
        expected = load_network(runs / "cartpole-mlp", seed=1).state_dict()
        assert state.keys() == expected.keys()
        assert all(torch.equal(state[name], expected[name]) for name in state)

    def test_an_export_that_computes_something_else_is_not_written(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def broken(network: torch.nn.Module, shape: tuple[int, ...]) -> tuple[bytes, deploy.Run]:
            def run(observations: np.ndarray) -> deploy.Outputs:
                with torch.no_grad():
                    policy, value = network(torch.from_numpy(observations))
                return policy.numpy() + 1e-3, value.numpy()

            return b"", run

        class Net(torch.nn.Module):
            def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
                return x[:, :2], x[:, :1]

        monkeypatch.setitem(deploy._FORMS, ".pt2", broken)
        with pytest.raises(
            TargetError, match=r"differ from those of the original by up to 0\.001 on 64 random observations"
        ):
            write_network(Net(), (4,), tmp_path / "net.pt2")
        assert not list(tmp_path.iterdir())

    def test_another_suffix_is_refused_with_those_that_there_are(self, runs: Path, tmp_path: Path) -> None:
        code, output = _run("export", runs / "cartpole-mlp", "--out", tmp_path / "policy.h5")
        assert code == 2
        assert "--out: expected a file ending in .pt2, .onnx, .pt, got" in output


class TestFilm:
    """An episode as a picture that moves."""

    def test_a_film_shows_every_step_of_the_episode_that_it_tells_of(self, runs: Path, tmp_path: Path) -> None:
        imageio = pytest.importorskip("imageio.v2")
        pytest.importorskip("pygame")
        target = tmp_path / "episode.gif"
        code, output = _run("evaluate", runs / "cartpole-mlp", "--episodes", "2", "--video", target)
        assert code == 0
        steps = int(output.split(" steps, return ")[0].rsplit(" ", 1)[1])
        assert f"{steps} steps, return {steps:.2f}" in output
        frames = imageio.mimread(target)
        assert frames[0].shape[:2] == (400, 600)
        # equal neighbours are stored as one frame
        assert 2 <= len(frames) <= steps + 1

    def test_a_film_plays_the_environment_to_its_end(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        written: list[int] = []
        world = encoded_environment("symcheck/PredatorPrey-v0", "", scaled=False)
        monkeypatch.setattr(film, "_write", lambda frames, target, fps: written.append(len(frames)))
        steps, total = film.film(world, lambda x, u: 0, (1,), tmp_path / "x.gif", seed=3)
        assert written == [steps + 1]
        assert total == pytest.approx(-0.1 * steps) or total == pytest.approx(1.0 - 0.1 * (steps - 1))

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("film.avi", "--video: expected a file ending in .gif or .mp4"),
            ("missing/film.gif", "--video: there is no folder"),
        ],
    )
    def test_a_film_that_cannot_be_written_is_refused_before_anything_is_played(
        self, runs: Path, tmp_path: Path, name: str, message: str
    ) -> None:
        code, output = _run("evaluate", runs / "cartpole-mlp", "--video", tmp_path / name)
        assert code == 2
        assert message in output

    def test_without_the_extra_the_message_carries_the_install_line(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def missing(name: str) -> None:
            raise ImportError(name)

        monkeypatch.setattr(importlib, "import_module", missing)
        with pytest.raises(MissingExtraError, match=r"pip install 'symcheck\[video\]'"):
            film.check_film(tmp_path / "film.gif")

    def test_an_environment_that_draws_nothing_is_named(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        cartpole = encoded_environment("CartPole-v1", "", scaled=False)
        with pytest.raises(
            TargetError, match=r"'CartPole-v1' cannot be made with render_mode='rgb_array' \(no pictures\)"
        ):
            film.film(dataclasses.replace(cartpole, remake=_refuses), lambda x, u: 0, (1,), tmp_path / "x.gif", seed=0)


def _refuses(*_: object, **__: object) -> None:
    raise ValueError("no pictures")


class TestTable:
    """Every curve of a folder in one table."""

    def test_a_table_has_every_point_of_every_run(self, runs: Path, tmp_path: Path) -> None:
        assert _run("curves", runs, "--out", tmp_path / "curves.csv")[0] == 0
        rows = list(csv.DictReader(io.StringIO((tmp_path / "curves.csv").read_text())))
        assert {row["network"] for row in rows} == {"equivariant", "mlp"}
        expected = [
            (record.load(path).network, curve.seed, steps, return_)
            for path in record.find_runs(runs)
            for curve in record.load(path).curves
            for steps, return_ in zip(curve.env_steps, curve.returns, strict=True)
        ]
        found = [(row["network"], int(row["seed"]), int(row["env_steps"]), float(row["mean_return"])) for row in rows]
        assert found == expected

    def test_parquet_holds_the_same_columns(self, runs: Path, tmp_path: Path) -> None:
        parquet = pytest.importorskip("pyarrow.parquet")
        assert _run("curves", runs, runs / "cartpole-mlp", "--out", tmp_path / "curves.parquet")[0] == 0
        table = parquet.read_table(tmp_path / "curves.parquet").to_pydict()
        assert len(table["mean_return"]) == 2 * 2 * 2  # networks, seeds, evaluations; the run named twice counts once
        assert table["learning_rate"] == [0.01] * 8
        assert all(isinstance(steps, int) for steps in table["env_steps"])

    def test_another_suffix_and_a_folder_without_runs_are_refused(self, runs: Path, tmp_path: Path) -> None:
        assert "--out: expected a file ending in .csv or .parquet" in _run("curves", runs, "--out", "x.xlsx")[1]
        code, output = _run("curves", tmp_path, "--out", tmp_path / "x.csv")
        assert code == 2
        assert "contains no run" in output


class TestTensorBoard:
    """Logs that TensorBoard reads."""

    JOB = Job(
        find_task("cartpole"), find_network(find_task("cartpole"), "mlp"), (0, 1, 2), (0.001, 0.01), Settings(steps=800)
    )

    def test_every_evaluation_is_there_once_with_its_quartiles(self, tmp_path: Path) -> None:
        accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
        log = TensorBoardLog(tmp_path, self.JOB)
        first, second = np.arange(6.0), np.array([1.0, np.nan, 3.0, np.nan, np.nan, np.nan])
        for returns, at in ((first, 0), (first, 0), (second, 400)):
            log(Progress(at, 800, returns, at))
        assert _scalars(accumulator, tmp_path, "lr0.001-seed1", "return") == [(0, 1.0)]
        assert _scalars(accumulator, tmp_path, "lr0.01-seed2", "return") == [(0, 5.0)]
        assert _scalars(accumulator, tmp_path, "lr0.001", "return/50%") == [(0, 1.0), (400, 2.0)]
        assert _scalars(accumulator, tmp_path, "lr0.001", "return/75%") == [(0, 1.5), (400, 2.5)]
        assert _scalars(accumulator, tmp_path, "lr0.01", "return/25%") == [(0, 3.5)]

    def test_a_resumed_training_writes_its_logs_anew(self, tmp_path: Path) -> None:
        accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
        for _ in range(2):
            TensorBoardLog(tmp_path, self.JOB)(Progress(0, 800, np.arange(6.0), 0))
        assert _scalars(accumulator, tmp_path, "lr0.001-seed0", "return") == [(0, 0.0)]

    def test_the_command_line_writes_them(self, tmp_path: Path) -> None:
        accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
        code, _ = _run("train", "cartpole", "--network", "mlp", *SHORT, "--tensorboard", "--out", tmp_path)
        assert code == 0
        saved = record.load(tmp_path / "cartpole-mlp").curves[1]
        logged = _scalars(accumulator, tmp_path / "cartpole-mlp", "lr0.001-seed1", "return")
        assert logged == [(s, float(np.float32(r))) for s, r in zip(saved.env_steps, saved.returns, strict=True)]


def _scalars(accumulator: object, folder: Path, name: str, tag: str) -> list[tuple[int, float]]:
    events = accumulator.EventAccumulator(str(folder / "tensorboard" / name))  # type: ignore[attr-defined]
    events.Reload()
    return [(event.step, event.value) for event in events.Scalars(tag)]


class RecordedWandb(types.ModuleType):
    """The calls of W&B that a log makes, kept instead of sent."""

    def __init__(self, *, refuses: bool = False) -> None:
        super().__init__("wandb")
        self.refuses, self.started, self.logged, self.finished = refuses, {}, [], 0
        self.metrics: list[tuple[str, str | None]] = []

    def init(self, **options: object) -> RecordedWandb:
        if self.refuses:
            raise ValueError("api_key not configured (no-tty).\nCall wandb.login()")
        self.started = options
        return self

    def define_metric(self, name: str, step_metric: str | None = None) -> None:
        self.metrics.append((name, step_metric))

    def log(self, scalars: dict[str, float]) -> None:
        self.logged.append(scalars)

    def finish(self) -> None:
        self.finished += 1


class TestWandb:
    """Logs for Weights & Biases."""

    def test_every_evaluation_is_sent_once_without_runs_that_stopped(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        wandb = RecordedWandb()
        monkeypatch.setitem(sys.modules, "wandb", wandb)
        monkeypatch.delenv("WANDB_PROJECT", raising=False)
        log = WandbLog(tmp_path / "cartpole-mlp", TestTensorBoard.JOB)
        second = np.array([1.0, np.nan, 3.0, np.nan, np.nan, np.nan])
        for returns, at in ((np.arange(6.0), 0), (np.arange(6.0), 0), (second, 400)):
            log(Progress(at, 800, returns, at))
        log.close()
        assert [scalars["env_steps"] for scalars in wandb.logged] == [0, 400]
        assert wandb.logged[0]["lr0.01-seed2/return"] == 5.0
        assert wandb.logged[0]["lr0.001/return/50%"] == 1.0
        assert "lr0.001-seed1/return" not in wandb.logged[1]
        assert "lr0.01/return/50%" not in wandb.logged[1]
        assert wandb.metrics == [("env_steps", None), ("*", "env_steps")]
        assert (wandb.started["project"], wandb.started["name"]) == ("reference-agents", "cartpole-mlp")
        assert wandb.started["config"]["steps"] == 800  # type: ignore[index]
        assert wandb.finished == 1

    def test_a_refusal_is_one_message_that_names_the_option(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, "wandb", RecordedWandb(refuses=True))
        code, output = _run("train", "cartpole", "--network", "mlp", *SHORT, "--wandb", "--out", tmp_path)
        assert code == 2
        assert "--wandb: Weights & Biases could not start a run (ValueError: api_key not configured" in output
        assert "WANDB_MODE=offline" in output


class TestLive:
    """The bar and the curve in a terminal."""

    def test_a_terminal_shows_the_curve_once_there_are_a_few_points(self) -> None:
        console = Console(file=io.StringIO(), force_terminal=True, width=80, height=30)
        shown = live.Display("cartpole mlp", 1_000, console)
        shown(Progress(80, 1_000, np.array([20.0, 30.0]), 0))
        console.print(shown)
        assert "┤" not in console.file.getvalue()  # type: ignore[attr-defined]
        for steps, value in ((250, 100.0), (500, 400.0)):
            shown(Progress(steps, 1_000, np.array([value - 10, value + 10, np.nan]), steps))
        console.print(shown)
        drawn = console.file.getvalue()  # type: ignore[attr-defined]
        assert "median return 400" in drawn
        assert "405 ┤" in drawn
        assert "1,000" in drawn

    def test_a_rising_curve_is_drawn_from_the_lower_left_to_the_upper_right(self) -> None:
        lines = live.plot([0, 100], [(0.0, 0.0, 0.0), (10.0, 10.0, 10.0)], 100, 8, 4)
        where = [[column for column, cell in enumerate(line[11:]) if cell != " "] for line in lines[:4]]
        assert where == [[6, 7], [4, 5], [2, 3], [0, 1]]

    def test_what_is_not_trained_yet_is_left_blank(self) -> None:
        lines = live.plot([0, 50], [(1.0, 1.0, 1.0)] * 2, 100, 20, 2)
        assert max(len(line) for line in lines[:2]) <= 11 + 11

    def test_without_a_terminal_a_line_is_written_now_and_then(self, monkeypatch: pytest.MonkeyPatch) -> None:
        now = [0.0]
        monkeypatch.setattr(live.time, "monotonic", lambda: now[0])
        console = Console(file=io.StringIO(), force_terminal=False, width=80)
        with live.display("cartpole mlp", 1_000, console, hidden=False) as shown:
            for seconds in (1.0, 59.0, 61.0, 62.0):
                now[0] = seconds
                shown(Progress(int(5 * seconds), 1_000, np.array([20.0]), 0))
        text = console.file.getvalue()  # type: ignore[attr-defined]
        assert text == "cartpole mlp: 305 of 1,000 steps, about 2 min left, median return 20\n"

    def test_quiet_says_nothing(self) -> None:
        console = Console(file=io.StringIO(), force_terminal=True)
        with live.display("cartpole mlp", 1_000, console, hidden=True) as shown:
            shown(Progress(80, 1_000, np.array([20.0]), 0))
        assert console.file.getvalue() == ""  # type: ignore[attr-defined]


class TestSweep:
    """Several networks, resumed as a whole."""

    def test_a_sweep_draws_its_page_and_names_its_runs(self, runs: Path) -> None:
        assert sweep._read_folders(runs) == [runs / "cartpole-equivariant", runs / "cartpole-mlp"]
        page = (runs / "report.html").read_text()
        assert "equivariant" in page
        assert "mlp" in page

    def test_a_sweep_that_was_stopped_trains_only_what_is_left(
        self, runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        trained: list[str] = []
        original = sweep.resume

        def resume(request: object, folder: Path) -> int:
            trained.append(folder.name)
            return original(request, folder) if len(trained) != 2 else 130  # type: ignore[arg-type]

        monkeypatch.setattr(sweep, "resume", resume)
        arguments = ("sweep", "cartpole", "--network", "equivariant,mlp", "--learning-rate", "0.01", *SHORT)
        code, output = _run(*arguments, "--out", tmp_path)
        assert code == 130
        assert f"continue with all networks: reference-agents sweep --resume {tmp_path}" in output
        assert not (tmp_path / "report.html").exists()
        code, output = _run("sweep", "--resume", tmp_path, "--quiet")
        assert code == 0
        assert "cartpole-equivariant has already been trained" in output
        assert trained == ["cartpole-equivariant", "cartpole-mlp", "cartpole-mlp"]
        for name in ("cartpole-equivariant", "cartpole-mlp"):
            assert (tmp_path / name / "curves.csv").read_bytes() == (runs / name / "curves.csv").read_bytes()

    def test_a_second_sweep_into_a_folder_is_refused(self, runs: Path) -> None:
        code, output = _run("sweep", "cartpole", "--network", "mlp", *SHORT, "--out", runs)
        assert code == 2
        assert "already contains a sweep" in output

    def test_a_sweep_of_other_networks_is_not_resumed(self, runs: Path) -> None:
        code, output = _run("sweep", "--resume", runs, "--network", "mlp")
        assert code == 2
        assert "network was equivariant, mlp and is now mlp" in output

    def test_a_folder_that_is_no_sweep_is_refused(self, tmp_path: Path) -> None:
        code, output = _run("sweep", "--resume", tmp_path)
        assert code == 2
        assert "is not the folder of a sweep: sweep.json cannot be read" in output

    def test_a_network_named_twice_is_refused(self, tmp_path: Path) -> None:
        assert (
            "each network can be given only once"
            in _run("sweep", "cartpole", "--network", "mlp,mlp", "--out", tmp_path)[1]
        )


class TestTask:
    """What is trained: a task, or an environment of the atlas, under one of its symmetries."""

    def test_an_environment_of_gymnasium_is_named_by_its_id(self, tmp_path: Path) -> None:
        short = ("--seeds", "1", "--steps", "512", "--evaluation-episodes", "1", "--set", "decorrelation_steps=5")
        code, output = _run("train", "--env", "Acrobot-v1", *short, "--out", tmp_path)
        assert code == 0
        assert "proved proved" in output
        assert record.load(tmp_path / "acrobot-equivariant").environment == "Acrobot-v1"

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (
                ["cartpole", "--env", "Acrobot-v1"],
                "--env: TASK and --env cannot be combined, got 'cartpole' and 'Acrobot-v1'",
            ),
            ([], "TASK: neither TASK nor --env was given"),
            (
                ["cartpole", "--symmetry", "pendulum/mirror"],
                "--symmetry: the atlas has no symmetry 'pendulum/mirror' of",
            ),
            (
                ["--env", "MountainCar-v0"],
                "--symmetry: network 'equivariant' needs a symmetry, but none was given",
            ),
            (
                ["cartpole", "--set", "steps=80", "--steps", "80"],
                "--set: each setting can be given only once, but these are given twice: steps",
            ),
            (["--env", "ALE/Pong-v5"], "The task 'pong' plays it: reference-agents train pong."),
            (["cartpole", "--evaluation-every", "0"], "expected 1 or more steps between evaluations"),
            (["cartpole", "--set", "discount=2"], "--set: expected discount to lie in (0, 1], got 2.0."),
            (
                ["cartpole", "--scheduler", "tcp://x:1"],
                "--scheduler: the address of a scheduler also requires --executor dask",
            ),
            (["cartpole", "--set", "input_scale=-1"], "input_scale to be a finite number, 0 or more, got -1.0"),
        ],
    )
    def test_what_cannot_be_trained_is_refused(self, tmp_path: Path, arguments: list[str], message: str) -> None:
        code, output = _run("train", *arguments, "--out", tmp_path)
        assert code == 2
        assert message in output
        assert not list(tmp_path.iterdir())

    def test_channels_shrink_by_the_root_of_the_groups_order(self) -> None:
        turned = resolve_task("gridworld", "predator-prey/rotations-and-reflections")
        assert turned.networks["equivariant"].channels == (5, 11, 181)  # 16, 32 and 512 over the root of 8
        assert turned.networks["cnn"].channels == (16, 32, 512)

    @pytest.mark.slow
    def test_a_network_of_the_grid_worlds_whole_symmetry_is_proved(self, tmp_path: Path) -> None:
        name = "predator-prey/rotations-and-reflections"
        short = ("--seeds", "1", "--steps", "80", "--evaluation-episodes", "1", "--set", "decorrelation_steps=5")
        code, output = _run("train", "gridworld", "--symmetry", name, *short, "--out", tmp_path)
        assert code == 0
        assert "proved proved" in output
        saved = record.load(tmp_path / "gridworld-equivariant")
        assert saved.symmetry == name
        assert load_network(tmp_path / "gridworld-equivariant")(torch.zeros(1, 1, 21, 21))[0].shape == (1, 5)


def test_the_ratio_of_steps_counts_runs_that_never_got_there() -> None:
    reference, slow = np.full(9, 1_000.0), np.array([3_000.0] * 5 + [np.inf] * 4)
    ratio = step_ratio(reference, slow)
    assert ratio.value == 3.0
    assert ratio.low == 3.0
    assert ratio.high == np.inf
    assert np.isnan(step_ratio(np.full(3, np.inf), slow).value)


def test_an_interval_of_the_ratio_covers_the_truth_at_its_level() -> None:
    rng = np.random.default_rng(0)
    covered = 0
    for trial in range(100):
        reference, others = 1_000 * rng.lognormal(0, 0.3, 25), 2_000 * rng.lognormal(0, 0.3, 25)
        ratio = step_ratio(reference, others, resamples=300, seed=trial)
        covered += ratio.low <= 2.0 <= ratio.high
    # 95 of 100 are expected; below 85 has a probability under 1e-4
    assert covered >= 85
