"""The turns and flips that a game's rules have are found with their moves, and those that they lack are refused."""

import numpy as np
import pytest
from board_games import Columns, Lines, Movers
from library_games import TurnByTurn, TurnByTurnFromTheLeft
from typer.testing import CliRunner

import symcheck as sc
from symcheck.cli.main import app


class Slope(Lines):
    """Three in a row, column or falling diagonal: no rising one, so that no flip and no quarter turn is left."""

    def getGameEnded(self, board, player):
        for who in (1, -1):
            m = board == who
            lines = (m[:, :-2] & m[:, 1:-1] & m[:, 2:]).any() or (m[:-2] & m[1:-1] & m[2:]).any()
            if lines or (m[:-2, :-2] & m[1:-1, 1:-1] & m[2:, 2:]).any():
                return 1 if who == player else -1
        return 1e-4 if board.all() else 0


@pytest.mark.parametrize(
    ("game", "group", "refused"),
    [
        (Columns(3, 3), {"name": "C2", "order": 2}, 6),
        (Movers(), {"name": "D4", "order": 8}, 0),
        pytest.param(Slope(3), {"name": "C2 x C2", "order": 4}, 4, marks=pytest.mark.slow),
        pytest.param(TurnByTurn(), {"name": "C2", "order": 2}, 2, marks=pytest.mark.long),
    ],
    ids=["columns", "movers", "slope", "pettingzoo"],
)
def test_the_group_of_the_rules_is_found(game, group, refused):
    found = sc.discover_game(game, samples=40)
    assert found.group == group, found.to_text()
    assert sum(item.verdict in ("rejected", "failed") for item in found.tried) == refused, found.to_text()
    assert sc.verify_game(game, found.symmetries, samples=40).verdict == found.verdict


def test_a_game_without_a_symmetry_has_none():
    found = sc.discover_game(TurnByTurnFromTheLeft(), samples=40)
    assert (found.verdict, found.group) == ("failed", {"name": "trivial", "order": 1})
    assert not found.images
    assert "no rotation or flip of the board was verified" in found.to_text()


@pytest.mark.long
def test_the_command_writes_a_function_that_verify_game_takes(tmp_path, monkeypatch):
    from pathlib import Path

    monkeypatch.chdir(tmp_path)
    source = Path(__file__).with_name("board_games.py").read_text(encoding="utf-8")
    (tmp_path / "mine.py").write_text(source, encoding="utf-8")
    runner = CliRunner()
    seen = runner.invoke(app, ["discover", "mine.py:Movers", "--out", "images.py", "--samples", "30"])
    assert seen.exit_code == 0, seen.output
    assert "D4, order 8" in seen.output
    again = runner.invoke(app, ["verify-game", "mine.py:Movers", "--symmetries", "images.py:symmetries"])
    assert again.exit_code == 0, again.output
    assert "(D4)" in again.output
    quiet = runner.invoke(app, ["discover", "mine.py:Movers", "--quiet", "--samples", "30"])
    assert quiet.output.strip() == "D4"


def test_moves_of_a_rearranged_policy_are_read_off_play():
    class Shuffled(Columns):
        order = (2, 0, 1)

        def getNextState(self, board, player, action):
            return super().getNextState(board, player, self.order[action])

        def getValidMoves(self, board, player):
            return super().getValidMoves(board, player)[list(self.order)]

    found = sc.discover_game(Shuffled(3, 3))
    # Columns 0 and 2 are exchanged: they are moves 1 and 0.
    assert found.verdict == "proved"
    assert np.array_equal(found.images[0].places, [1, 0, 2])
