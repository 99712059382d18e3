"""What a run over a game shows: a counterexample in few moves, drawn as boards; reports, replay, the command line."""

import json
import re

import jsonschema
import numpy as np
import pytest
from board_games import Columns
from typer.testing import CliRunner

import symcheck as sc
from symcheck.cli.main import app
from symcheck_reports import boards
from symcheck_reports.json import schema

GAMES = """
import sys
sys.path.insert(0, {root!r})
from board_games import Columns

class NotReversed(Columns):
    def getSymmetries(self, board, pi):
        return [(board, pi), (board[:, ::-1], pi)]

class Silent(Columns):
    getSymmetries = None

class Broken(Columns):
    def getNextState(self, board, player, action):
        raise RuntimeError("no engine")

def mirror(board, pi):
    return [(board, pi), (board[:, ::-1], pi[::-1])]

def number(board, pi):
    return 3
"""


class NotReversed(Columns):
    def getSymmetries(self, board, pi):
        return [(board, pi), (board[:, ::-1], pi)]


@pytest.fixture
def games(tmp_path, monkeypatch):
    from pathlib import Path

    root = str(Path(__file__).parent)
    (tmp_path / "games.py").write_text(GAMES.format(root=root), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_stones_stand_in_the_middle_of_their_cells():
    rows = [["X", "O", "5"], ["X", "O", "5"]]
    picture = str(boards.figure({"rows": rows, "moved": [], "marks": []}, name="board", caption="Board"))
    cells = re.findall(r'd="M(\d+) (\d+)l(\d+) 0 0 (\d+)', picture)
    stones = re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)"', picture)
    middles = [(int(x) + int(width) / 2, int(y) + int(height) / 2) for x, y, width, height in cells]
    assert [tuple(map(float, at)) for at in stones] == [middles[i] for i in (0, 1, 3, 4)]
    # The same margin on all sides of the cells.
    sides = [int(side) for side in re.search(r'viewBox="0 0 (\d+) (\d+)"', picture).groups()]
    first, last = cells[0], cells[-1]
    assert [int(last[k]) + int(last[k + 2]) + int(first[k]) for k in (0, 1)] == sides


def test_the_counterexample_takes_few_moves_and_is_drawn():
    report = sc.verify_game(NotReversed(4, 5), samples=40)
    example = report["legal_moves"].counterexample
    # A column must be full before a legal move disagrees: four stones.
    assert len(example.state["moves"]) == 4
    position, image = (np.array(board) for board in (example.observation, example.image_observation))
    assert np.array_equal(image, position[:, ::-1])
    assert set(example.expected) ^ set(example.actual) == {int(c) for c in np.flatnonzero(position[0] != image[0])}
    text = report.to_text()
    assert "board     the position" in text
    assert "[.]" in text
    page = report.to_html()
    assert page.count('class="limit"') >= 2
    assert "SYM302" in report.to_markdown()


def test_json_follows_the_schema_and_a_report_is_replayed(games):
    runner = CliRunner()
    seen = runner.invoke(app, ["verify-game", "games.py:NotReversed", "--samples", "40", "--json", "r.json"])
    assert seen.exit_code == 1, seen.output
    data = json.loads((games / "r.json").read_text())
    jsonschema.validate(data, schema())
    assert data["kind"] == "game"
    assert [item["name"] for item in data["properties"]] == [
        "group_axioms", "legal_moves", "next_state", "outcome", "policy_map", "distinct_images",
    ]  # fmt: skip
    again = runner.invoke(app, ["replay", "r.json"])
    assert again.exit_code == 1, again.output
    for name in ("legal_moves", "next_state", "policy_map"):
        assert f"{name} FAILED" in again.output
    data["properties"][1]["counterexample"]["state"] = {"moves": [99]}
    (games / "r.json").write_text(json.dumps(data))
    refused = runner.invoke(app, ["replay", "r.json"])
    assert refused.exit_code == 2
    assert "do not fit this game" in refused.output


def test_a_function_of_images_may_be_given_beside_the_game(games):
    runner = CliRunner()
    right = ["verify-game", "games.py:NotReversed", "--symmetries", "games.py:mirror", "--samples", "20"]
    assert runner.invoke(app, right).exit_code == 0
    assert runner.invoke(app, [*right, "--junit", "j.xml", "--html", "p.html", "--quiet"]).exit_code == 0
    assert "legal_moves" in (games / "j.xml").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["games.py:Silent"], "claims no symmetries"),
        (["games.py:Broken"], "getNextState raised RuntimeError: no engine"),
        (["games.py:mirror"], "raised TypeError"),
        (["games.py:Columns", "--symmetries", "games.py:number"], "number must return a list"),
        (["games.py:Columns", "--adapter", "chess"], "expected an adapter"),
        (["games.py:Columns", "--samples", "0"], "--samples"),
        (["tic_tac_toe", "--adapter", "alphazero"], "expected module:name"),
    ],
)
def test_what_cannot_be_used_ends_with_one_message_and_exit_two(games, arguments, message):
    seen = CliRunner().invoke(app, ["verify-game", *arguments])
    assert seen.exit_code == 2, seen.output
    assert message in " ".join(seen.output.split())


def test_run_takes_games(games):
    (games / "symcheck.toml").write_text('[[checks]]\ngame = "games.py:NotReversed"\nsymmetries = "games.py:mirror"\n')
    seen = CliRunner().invoke(app, ["run"])
    assert seen.exit_code == 0, seen.output
