"""Games of OpenSpiel, Pgx and PettingZoo where they are installed, and a small game in the words of each."""

import sys

import numpy as np
import pytest
from library_games import (
    Dealt,
    PureRow,
    PureRowFirstCellTaken,
    TurnByTurn,
    TurnByTurnFromTheLeft,
    Wrapped,
    jax_without_compiler,
)
from typer.testing import CliRunner

import symcheck as sc
from symcheck.cli.main import app
from symcheck.errors import TargetError
from symcheck.games import boards

LIBRARIES = [("openspiel", "pyspiel"), ("pgx", "pgx"), ("pettingzoo", "pettingzoo")]
# PettingZoo calls its games by other names.
NAMES = {("pettingzoo", "tic_tac_toe"): "tictactoe_v3", ("pettingzoo", "connect_four"): "connect_four_v3"}


@pytest.mark.parametrize(("adapter", "module"), LIBRARIES)
@pytest.mark.parametrize(
    ("name", "images", "verdict"),
    [
        ("tic_tac_toe", "square", "passed"),
        ("connect_four", "mirror", "passed"),
        ("connect_four", "half_turn", "failed"),
    ],
)
def test_a_game_of_a_library_has_the_group_of_its_rules(adapter, module, name, images, verdict):
    pytest.importorskip(module)
    name = NAMES.get((adapter, name), name)
    report = sc.verify_game(name, f"symcheck.games.boards:{images}", adapter=adapter, samples=20)
    assert report.verdict == verdict, report.to_text()


@pytest.mark.parametrize(("adapter", "module"), LIBRARIES)
def test_a_missing_library_ends_with_its_install_line(adapter, module, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    seen = CliRunner().invoke(
        app, ["verify-game", "tic_tac_toe", "--adapter", adapter, "--symmetries", "symcheck.games.boards:square"]
    )
    assert seen.exit_code == 2
    assert "symcheck[games]" in " ".join(seen.output.split())


class Kind:
    def __init__(self, chance):
        self.dynamics, self.chance_mode, self.information = (
            type("E", (), {"name": name})() for name in ("SEQUENTIAL", chance, "PERFECT_INFORMATION")
        )
        self.provides_observation_tensor = True


class State:
    """Tic-tac-toe on one row of four cells in OpenSpiel's words; whoever fills the row's end cells first wins."""

    def __init__(self, cells=(0, 0, 0, 0)):
        self.cells = cells

    def legal_actions(self):
        return [i for i, c in enumerate(self.cells) if c == 0]

    def child(self, action):
        player = 1 + self.current_player()
        return State(tuple(player if i == action else c for i, c in enumerate(self.cells)))

    def current_player(self):
        return -4 if self.is_terminal() else sum(c != 0 for c in self.cells) % 2

    def is_terminal(self):
        return all(self.cells) or self.cells[0] == self.cells[-1] != 0

    def returns(self):
        if self.cells[0] != self.cells[-1] or not self.cells[0]:
            return [0.0, 0.0]
        return [1.0, -1.0] if self.cells[0] == 1 else [-1.0, 1.0]

    def observation_tensor(self, player):
        return [float(c == k) for k in (1, 2) for c in self.cells]


class Row:
    """A game with the functions that symcheck uses of OpenSpiel's."""

    def __init__(self, chance="DETERMINISTIC"):
        self.chance = chance

    def get_type(self):
        return Kind(self.chance)

    def observation_tensor_shape(self):
        return [2, 1, 4]

    def num_distinct_actions(self):
        return 4

    def new_initial_state(self):
        return State()


def test_images_of_observations_are_reached_by_playing_the_moved_moves():
    assert sc.verify_game(Row(), boards.half_turn).verdict == "passed"


def test_a_policy_that_stays_fails_where_observations_are_no_states():
    report = sc.verify_game(Row(), lambda board, pi: [(board, pi), (np.flip(board, 2), pi)])
    failed = {item.name for item in report if item.verdict == "failed"}
    assert {"next_state", "policy_map"} <= failed or {"next_state"} == failed, report.to_text()


def test_a_game_with_chance_is_refused():
    with pytest.raises(TargetError, match="without chance"):
        sc.verify_game(Row("EXPLICIT_STOCHASTIC"), boards.half_turn)


def test_a_policy_of_another_length_is_refused():
    with pytest.raises(TargetError, match="one entry for each of the 4 cells"):
        boards.square(np.zeros((2, 2)), [0.5, 0.5, 0.0])


@pytest.mark.parametrize(
    ("game", "verdict"),
    [
        (TurnByTurn(), "passed"),
        (Wrapped(TurnByTurn()), "passed"),
        (TurnByTurnFromTheLeft(), "failed"),
        (PureRow(), "passed"),
        (PureRowFirstCellTaken(), "failed"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else value,
)
def test_a_game_in_the_words_of_a_library_is_played_as_it_is(game, verdict, monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", jax_without_compiler())
    report = sc.verify_game(game, boards.half_turn, samples=20)
    assert report.verdict == verdict, report.to_text()
    assert report["group_axioms"].verdict == "passed"


def test_cards_that_the_seed_deals_are_refused():
    with pytest.raises(TargetError, match="without chance"):
        sc.verify_game(Dealt(), boards.half_turn)


def test_observations_without_legal_moves_are_refused():
    blind = TurnByTurn()
    blind.observe = lambda agent: np.zeros(3)
    with pytest.raises(TargetError, match="dictionaries with 'observation' and 'action_mask'"):
        sc.verify_game(blind, boards.half_turn)
