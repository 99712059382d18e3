"""The table of games in the documentation: its rows are those of the benchmark, and their verdicts are right."""

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def _load():
    spec = importlib.util.spec_from_file_location("benchmark_games", ROOT / "benchmarks" / "games.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


GAMES = _load()
MODULES = {"OpenSpiel": "pyspiel", "Pgx": "pgx", "PettingZoo": "pettingzoo"}


def test_the_page_has_the_table_of_the_benchmark():
    assert GAMES.table() in (ROOT / "docs" / "games.md").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("row", GAMES.ROWS, ids=lambda row: f"{row.library} {row.game} {row.words}")
def test_a_row_of_the_table_is_right(row):
    pytest.importorskip(MODULES[row.library])
    assert GAMES.right(row)
