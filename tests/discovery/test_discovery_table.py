"""The page of what `discover` finds: written from its rows, complete, and true when searched again."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import discover_table

ROWS = json.loads(discover_table.ROWS.read_text())
WORLDS = [row for row in ROWS if row["world"]]


def test_the_page_is_what_the_rows_say_and_nothing_is_false_or_missed():
    worlds, environments = discover_table.names()
    assert [row["name"] for row in ROWS] == [*worlds, *environments]
    assert discover_table.PAGE.read_text() == discover_table.write_page(ROWS)
    assert [row["name"] for row in ROWS if discover_table.judge_row(row)] == []


@pytest.mark.parametrize(
    ("order", "is_open", "said"), [(8, False, ""), (16, True, "false"), (4, False, "missed"), (4, True, "")]
)
def test_a_row_is_judged_by_what_is_known(order, is_open, said):
    row = {
        "name": "Plane",
        "world": True,
        "known": 8,
        "found": "G",
        "order": order,
        "open": is_open,
        "verdict": "passed",
    }
    assert discover_table.judge_row(row) == said
    assert (f"**{said}**" in discover_table.write_page([{**row, "seconds": 1.0}])) == bool(said)


@pytest.mark.slow
@pytest.mark.parametrize("row", WORLDS, ids=lambda row: row["name"])
def test_the_table_of_discover_holds(row):
    again = discover_table.row_of(row["name"])
    assert discover_table.judge_row(again) == ""
    # A slower machine may leave more open; what it decides is the same.
    assert again["open"] or (again["known"], again["order"]) == (row["known"], row["order"])
