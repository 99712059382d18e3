"""Learning curves of other trainers: read as they were written, and drawn beside ours."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from reference_agents.cli.app import app
from reference_agents.other_trainers import POINTS, read_other_results
from symcheck.errors import TargetError


def monitor(file: Path, episodes: list[tuple[float, int, float]]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    rows = "\n".join(f"{r},{length},{t}" for r, length, t in episodes)
    file.write_text(f'#{{"t_start": 1.0, "env_id": "CartPole-v1"}}\nr,l,t\n{rows}\n')


def test_monitor_files_are_seeds_of_their_folder_and_points_are_means_of_episodes(tmp_path: Path) -> None:
    # Episodes of 10 steps whose returns are their numbers.
    for seed, episodes in enumerate((100, 120)):
        monitor(tmp_path / "ppo" / f"seed{seed}.monitor.csv", [(float(i), 10, float(i)) for i in range(episodes)])
    (result,) = read_other_results(tmp_path)
    assert (result.name, result.environment, [curve.seed for curve in result.curves]) == ("ppo", "CartPole-v1", [0, 1])
    for curve in result.curves:
        # Up to the 1,000 steps of the shorter run: 20 steps, two episodes, to each of 50 points.
        assert curve.env_steps == tuple(range(20, 1001, 20))
        assert curve.returns == tuple(2 * i + 0.5 for i in range(POINTS))


def test_versions_rates_and_places_tell_runs_apart_and_a_line_being_written_is_left_out(tmp_path: Path) -> None:
    for name in ("Hopper-v4", "Hopper-v5", "lr0.01", "lr0.001", "one/PPO_1", "two/PPO_1"):
        monitor(tmp_path / f"{name}.monitor.csv", [(1.0, 10, float(i)) for i in range(9)])
    with (tmp_path / "Hopper-v4.monitor.csv").open("a") as file:
        file.write("2.0,1")
    results = read_other_results(tmp_path)
    assert [result.name for result in results] == [
        "Hopper-v4", "Hopper-v5", "lr0.001", "lr0.01", "one/PPO", "two/PPO",
    ]  # fmt: skip
    assert {len(result.curves) for result in results} == {1}
    assert {curve.env_steps[-1] for result in results for curve in result.curves} == {90}


def test_an_exported_chart_is_read_by_its_steps(tmp_path: Path) -> None:
    chart = tmp_path / "chart.csv"
    chart.write_text('"global_step","a - r"\n300,"3"\n,"9"\n100,"1"\n')
    (result,) = read_other_results(chart)
    (curve,) = result.curves
    assert (curve.env_steps[-1], curve.returns[-1], 9.0 in curve.returns) == (300, 3.0, False)


def test_numbered_monitor_files_are_environments_of_one_run(tmp_path: Path) -> None:
    for run in ("ppo_1", "ppo_2"):
        for env in range(2):
            monitor(tmp_path / run / f"{env}.monitor.csv", [(env, 10, i + 0.1 * env) for i in range(50)])
    (result,) = read_other_results(tmp_path)
    assert (result.name, [curve.seed for curve in result.curves]) == ("ppo", [1, 2])
    # Steps of both environments, their episodes in turn.
    assert result.curves[0].env_steps[-1] == 1_000
    assert set(result.curves[0].returns) == {0.5}


def test_an_exported_chart_has_a_run_for_each_column(tmp_path: Path) -> None:
    chart = tmp_path / "chart.csv"
    chart.write_text(
        '"Step","sac-seed0 - eval","sac-seed0 - eval__MIN","sac-seed1 - eval","mlp - eval"\n'
        '100,"1","0","2",""\n200,"3","0","","5"\n'
    )
    mlp, sac = read_other_results(chart)
    assert (sac.name, [curve.seed for curve in sac.curves]) == ("sac", [0, 1])
    # Up to the last step that both seeds have logged.
    assert (sac.curves[0].env_steps[-1], sac.curves[0].returns[-1], sac.curves[1].returns[-1]) == (100, 1.0, 2.0)
    assert np.isnan(sac.curves[0].returns[0])
    assert (mlp.curves[0].env_steps[-1], mlp.curves[0].returns[-1]) == (200, 5.0)


def test_tensorboard_events_are_read_by_the_scalar_that_trainers_call_a_return(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="the extra 'logs' is not installed")
    from torch.utils.tensorboard import SummaryWriter

    for run, tag in (("A2C_1", "rollout/ep_rew_mean"), ("other", "loss")):
        with SummaryWriter(str(tmp_path / run)) as writer:
            for step in (10, 20):
                writer.add_scalar(tag, step / 2, step)
    (result,) = read_other_results(tmp_path / "A2C_1")
    assert (result.name, result.curves[0].seed, result.curves[0].returns[-1]) == ("A2C", 1, 10.0)
    with pytest.raises(TargetError, match=r"rollout/ep_rew_mean.*got loss"):
        read_other_results(tmp_path / "other")


def test_what_is_no_result_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "bad.monitor.csv").write_text("no header\n")
    (tmp_path / "bad.csv").write_text("a,b\n1,2\n")
    for path, words in ((tmp_path, "Monitor file"), (tmp_path / "bad.csv", "Weights & Biases")):
        outcome = CliRunner().invoke(app, ["compare", str(path), "--out", str(tmp_path / "page.html")])
        assert outcome.exit_code == 2
        assert words in outcome.output
    assert not (tmp_path / "page.html").exists()


def test_results_of_other_trainers_are_drawn_beside_ours(tmp_path: Path) -> None:
    for seed in range(2):
        monitor(tmp_path / "sb3" / "mlp" / f"seed{seed}.monitor.csv", [(20.0, 20, float(i)) for i in range(20)])
    ours = ["train", "cartpole", "--network", "mlp", "--seeds", "2", "--steps", "160", "--evaluation-every", "80"]
    small = ["--evaluation-episodes", "2", "--set", "decorrelation_steps=5", "--out", str(tmp_path / "ours"), "--quiet"]
    assert CliRunner().invoke(app, [*ours, *small]).exit_code == 0
    page = tmp_path / "page.html"
    both = [str(tmp_path / "ours"), str(tmp_path / "sb3")]
    assert CliRunner().invoke(app, ["compare", *both, "--out", str(page)]).exit_code == 0
    written = page.read_text()
    assert "mlp (other trainer)" in written
    assert "the training episodes that ended since the previous point" in written
    assert "nan" not in written.replace("finance", "").split("<body")[1].split("<script")[0].lower()
    # four runs are drawn, none left out; another trainer's learning rate is unknown and not named
    assert "shown of" not in written
    assert "learning rate –" not in written
