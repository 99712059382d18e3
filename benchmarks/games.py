"""Games of OpenSpiel, Pgx and PettingZoo under the groups usually claimed for them, as a table for docs/games.md.

    python benchmarks/games.py            prints the table (needs the extra games)
    python benchmarks/games.py --check    exits with 1 if a verdict is not the expected one

`tests/games/test_game_table.py` runs the rows again in the slow tier, and compares the table in the page with them.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import symcheck as sc
from symcheck.games import boards

SAMPLES = 40


def hex_half_turn(board: Any, pi: list[float]) -> list[tuple[Any, list[float]]]:
    """Half a turn of OpenSpiel's Hex, whose planes name the edges that stones are connected to."""
    turned = np.rot90(np.asarray(board), 2, (1, 2))
    # Stones connected to one edge of a player's are connected to the other one of theirs.
    return [(board, pi), (turned[[0, 2, 1, 3, 4, 5, 7, 6, 8]], pi[::-1])]


@dataclass(frozen=True)
class Row:
    """A game, its claimed images, and the expected verdict.

    Attributes:
        game: in words.
        library: the library.
        name: the library's name of the game.
        images: a function, or "discovered" for the images that `discover_game` finds.
        words: the images in words.
        expected: the group if the claim holds, otherwise the reason.
        holds: whether the claim holds.
    """

    game: str
    library: str
    name: str
    images: Callable[..., Any] | str
    words: str
    expected: str
    holds: bool = True


_COLOURS = "a rotation by 90 degrees exchanges the colours of the first stones"
_GOALS = "a rotation by 90 degrees exchanges the goals of the players"
ROWS = (
    Row("tic-tac-toe", "OpenSpiel", "tic_tac_toe", boards.square, "`square`", "D4"),
    Row("tic-tac-toe", "Pgx", "tic_tac_toe", boards.square, "`square`", "D4"),
    Row("tic-tac-toe", "PettingZoo", "tictactoe_v3", boards.square, "`square`", "D4"),
    Row("connect four", "OpenSpiel", "connect_four", boards.mirror, "`mirror`", "C2"),
    Row("connect four", "OpenSpiel", "connect_four", boards.half_turn, "`half_turn`", "stones fall down", False),
    Row("connect four", "Pgx", "connect_four", boards.mirror, "`mirror`", "C2"),
    Row("connect four", "PettingZoo", "connect_four_v3", boards.mirror, "`mirror`", "C2"),
    Row("Othello", "OpenSpiel", "othello", boards.diagonals, "`diagonals`", "C2 x C2"),
    Row("Othello", "OpenSpiel", "othello", boards.square, "`square`", _COLOURS, False),
    Row("Othello", "Pgx", "othello", boards.diagonals, "`diagonals`", "C2 x C2"),
    Row("Go, 5 x 5", "OpenSpiel", "go(board_size=5)", boards.square, "`square`", "D4"),
    Row("Go, 9 x 9", "Pgx", "go_9x9", boards.square, "`square`", "D4"),
    Row("Hex, 11 x 11", "Pgx", "hex", boards.half_turn, "`half_turn`", "C2"),
    Row(
        "Hex, 5 x 5",
        "OpenSpiel",
        "hex(board_size=5)",
        boards.half_turn,
        "`half_turn`",
        "each plane represents particular edges",
        False,
    ),
    Row("Hex, 5 x 5", "OpenSpiel", "hex(board_size=5)", hex_half_turn, "half turn that exchanges these planes", "C2"),
    Row("Hex, 5 x 5", "OpenSpiel", "hex(board_size=5)", boards.square, "`square`", _GOALS, False),
    Row("breakthrough, 5 x 5", "OpenSpiel", "breakthrough(rows=5,columns=5)", "discovered", "discovered", "C2"),
    Row(
        "chess",
        "OpenSpiel",
        "chess",
        "discovered",
        "discovered",
        "king and queen are different pieces, and castling is not symmetric",
        False,
    ),
)


def measure(row: Row) -> tuple[bool, str]:
    """Whether the claim holds, and the group that is claimed or discovered."""
    adapter = row.library.lower()
    if row.images == "discovered":
        found = sc.discover_game(row.name, adapter=adapter, samples=SAMPLES)
        return found.verdict in ("passed", "proved"), str(found.group["name"])
    report = sc.verify_game(row.name, row.images, adapter=adapter, samples=SAMPLES)
    return report.verdict in ("passed", "proved"), str(report.results[0].group["name"])


def right(row: Row) -> bool:
    """Whether the verdict is as expected and, for a group that holds, the group's name too."""
    holds, group = measure(row)
    return holds == row.holds and (not holds or group == row.expected)


def table() -> str:
    """The rows as Markdown, with the verdicts that are right."""
    lines = ["| game | library | images | verdict |", "|---|---|---|---|"]
    for row in ROWS:
        verdict = f"passed, {row.expected}" if row.holds else f"failed: {row.expected}"
        lines.append(f"| {row.game} | {row.library} | {row.words} | {verdict} |")
    return "\n".join(lines)


def main() -> int:
    """Print the table; with --check, measure every row."""
    parser = argparse.ArgumentParser(description="Games and their groups.")
    parser.add_argument("--check", action="store_true", help="measure every row")
    if not parser.parse_args().check:
        print(table())
        return 0
    warnings.simplefilter("ignore")
    wrong = 0
    for row in ROWS:
        fine = right(row)
        wrong += not fine
        print(f"{'right' if fine else 'WRONG'}  {row.game}, {row.library}, {row.words}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
