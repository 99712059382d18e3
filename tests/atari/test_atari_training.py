import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from reference_agents import verification
from reference_agents.atari.environment import AtariGames
from reference_agents.catalog import find_network, find_task
from reference_agents.checkpoint import Started, begin, started_in
from reference_agents.cli.app import app
from reference_agents.film import film
from reference_agents.loading import load_network
from reference_agents.randomness import Purpose
from reference_agents.settings import preset
from reference_agents.trainer import Job, train
from reference_agents.vectorised import encoding_of, whole_episodes
from symcheck.errors import OptionError


def job(task: str = "pong", network: str = "cnn", *, seeds: tuple[int, ...] = (0,), **changes) -> Job:
    the_task = find_task(task)
    # four environments: MKL's products have the same bits alone and in company for multiples of four rows
    short = {"steps": 80, "environments": 4, "decorrelation_steps": 6, "evaluation_every": 40}
    settings = preset(task, "paper").with_changes(**{**short, **changes})
    plan = find_network(the_task, network).with_quirks({"input_scale": settings.input_scale})
    return Job(the_task, plan, seeds, (plan.learning_rate,), settings)


def test_paper_settings_are_the_papers():
    settings = preset("pong", "paper")
    assert (settings.algorithm, settings.environments, settings.horizon) == ("a2c", 4, 5)
    assert 4 * settings.steps == 15_000_000
    assert (settings.discount, settings.gae_lambda, settings.entropy_coefficient) == (0.99, 1.0, 0.01)
    assert (settings.value_coefficient, settings.max_gradient_norm) == (0.5, 1.0)
    assert settings.evaluation == "training"


def test_games_of_all_runs_have_one_vectoriser_and_bytes_for_images():
    games = AtariGames("pong", [0, 1], 2, threads=1)
    shown = games.reset()
    assert shown.shape == (2, 2, 4, 80, 80)
    assert shown.dtype == np.uint8
    step = games.step(np.zeros((2, 2), dtype=np.int64))
    assert step.observation.shape == step.final_observation.shape == shown.shape
    assert step.reward.shape == step.score.shape == step.game_over.shape == (2, 2)


def test_a_runs_games_do_not_depend_on_the_other_runs():
    together, alone = AtariGames("breakout", [3, 4], 1, threads=1), AtariGames("breakout", [4], 1, threads=1)
    assert np.array_equal(together.reset()[1:], alone.reset())
    for action in (2, 3, 0, 2) * 10:
        one = together.step(np.full((2, 1), action))
        two = alone.step(np.full((1, 1), action))
        assert np.array_equal(one.observation[1:], two.observation)


def test_evaluations_play_whole_games_for_the_score():
    learns = AtariGames("breakout", [0], 1, threads=1)
    plays = AtariGames("breakout", [0], 1, purpose=Purpose.EVALUATION_ENVIRONMENT, threads=1)
    for games, lives in ((learns, True), (plays, False)):
        games.reset()
        ended = [games.step(np.zeros((1, 1), dtype=np.int64)).terminated.any() for _ in range(60)]
        assert any(ended) is lives


def test_some_games_cannot_stand_still_while_others_go_on():
    games = AtariGames("pong", [0], 2, threads=1)
    games.reset()
    with pytest.raises(NotImplementedError, match="cannot pause"):
        games.step(np.zeros((1, 2), dtype=np.int64), active=np.array([[True, False]]))


@pytest.mark.slow
def test_two_runs_in_one_program_train_as_they_would_alone():
    together = train(job(seeds=(0, 1)))
    alone = train(job(seeds=(1,)))
    assert torch.equal(together.network.parameters.values[1], alone.network.parameters.values[0])
    assert not torch.equal(together.network.parameters.values[0], together.network.parameters.values[1])
    assert not torch.equal(together.initial_parameters, together.network.parameters.values)


@pytest.mark.long
@pytest.mark.parametrize(
    "network", ["augmented", *(pytest.param(name, marks=pytest.mark.slow) for name in ("equivariant", "averaged"))]
)
def test_a_training_that_was_stopped_goes_on_bit_for_bit(network: str):
    states = []
    whole = train(job(network=network), on_checkpoint=lambda state: states.append(_copied(state())))
    resumed = train(job(network=network), resume_from=states[1])
    assert torch.equal(whole.network.parameters.values, resumed.network.parameters.values)
    assert whole.env_steps == resumed.env_steps


def _copied(state):
    import io

    buffer = io.BytesIO()
    torch.save(state, buffer)
    buffer.seek(0)
    return torch.load(buffer, weights_only=True)


@pytest.mark.slow
def test_the_curve_is_the_mean_score_of_the_games_that_ended():
    training = train(job(steps=2_400, environments=2, evaluation_every=2_400, decorrelation_steps=0))
    assert training.env_steps == [0, 2_400]
    assert np.isnan(training.returns[0]).all()
    assert -21 <= training.returns[1][0] <= -15  # two games or three of hardly any skill


@pytest.mark.long
@pytest.mark.parametrize(
    "task",
    [
        "pong-symmetrized",
        pytest.param("breakout", marks=pytest.mark.slow),
        pytest.param("pong", marks=pytest.mark.slow),
    ],
)
def test_training_from_the_command_line_leaves_a_run_that_reports(
    task: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(verification, "SAMPLES", 20)  # the proof is the same
    arguments = ["train", task, "--network", "extractor", "--seeds", "1", "--steps", "60", "--out", str(tmp_path)]
    changes = [text for pair in ("decorrelation_steps=2", "environments=2") for text in ("--set", pair)]
    result = CliRunner().invoke(app, [*arguments, *changes, "--quiet"])
    assert result.exit_code == 0, result.output
    record = json.loads((tmp_path / f"{task}-extractor" / "record.json").read_text())
    run = record["runs"][0]
    assert run["before"]["detail"].startswith("features proved")
    assert run["after"]["detail"].startswith("features proved")
    assert CliRunner().invoke(app, ["report", str(tmp_path)]).exit_code == 0
    page = (tmp_path / "report.html").read_text()
    assert "verify-net: extractor features proved." in page
    assert "minibatches" not in page  # a setting of PPO
    assert load_network(tmp_path / f"{task}-extractor").example_input.shape == (1, 4, 80, 80)


@pytest.mark.slow
def test_a_trained_network_plays_whole_games_and_is_filmed(tmp_path: Path):
    arguments = [
        "train",
        "pong",
        "--network",
        "cnn",
        "--seeds",
        "1",
        "--steps",
        "60",
        "--out",
        str(tmp_path),
        "--quiet",
    ]
    assert CliRunner().invoke(app, arguments).exit_code == 0
    film = tmp_path / "game.gif"
    evaluated = ["evaluate", str(tmp_path / "pong-cnn"), "--episodes", "1", "--video", str(film)]
    result = CliRunner().invoke(app, evaluated)
    assert result.exit_code == 0, result.output
    assert film.read_bytes()[:4] == b"GIF8"


def test_a_film_shows_a_whole_game_and_its_score(tmp_path: Path):
    # five lives of Breakout: the environment that agents learn on would end with the first
    task = find_task("breakout")
    steps, score = film(
        encoding_of(task), lambda image, _: 0, (1,), tmp_path / "game.gif", seed=0, arguments=whole_episodes(task)
    )
    assert steps > 100
    assert score == int(score)
    assert whole_episodes(find_task("cartpole")) == {}


def test_a_training_on_games_names_the_emulator_it_depends_on(tmp_path: Path):
    for task, named in (("pong", True), ("cartpole", False)):
        the_task, settings = find_task(task), preset(task, "paper")
        plan = find_network(the_task, "equivariant").with_quirks(dataclasses.asdict(settings))
        the_job = Job(the_task, plan, (0,), (0.1,), settings)
        begin(tmp_path, Started(the_job, "paper", "", (the_job,)))
        document = json.loads((tmp_path / "job.json").read_text())
        assert ("ale-py" in document["versions"]) == named
        assert started_in(tmp_path).job == the_job
    begin(tmp_path, Started(job(), "paper", "", (job(),)))
    document = json.loads((tmp_path / "job.json").read_text())
    document["versions"]["ale-py"] = "0.1"
    (tmp_path / "job.json").write_text(json.dumps(document))
    with pytest.raises(OptionError, match=r"ale-py was 0\.1 and is now"):
        started_in(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "ponk"], "unknown task 'ponk'. Did you mean 'pong'?"),
        (["train", "pong", "--network", "mlp"], "task 'pong' has no network 'mlp'"),
    ],
)
def test_what_cannot_be_trained_exits_2_with_one_message(arguments: list[str], message: str):
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())


def test_a_missing_rom_exits_2_and_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("ale_py.roms.get_rom_path", lambda name: None)
    result = CliRunner().invoke(app, ["train", "pong", "--out", str(tmp_path / "runs")])
    assert result.exit_code == 2
    assert "the ROM pong.bin, which is part of ale-py, is missing" in " ".join(result.output.split())
    assert not (tmp_path / "runs").exists()
