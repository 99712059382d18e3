"""Compares results of `discover` with known symmetries: worlds with a known largest group, and the atlas.

    python benchmarks/discover_table.py --write             # search all, write rows and docs/discover-table.md
    python benchmarks/discover_table.py --write NAME ...    # regenerate some rows
    python benchmarks/discover_table.py NAME ...            # look, and write nothing
    python benchmarks/discover_table.py --seed 1            # another seed, which is never written
    python benchmarks/discover_table.py --page              # the page from the rows, without a search

Of a world, "known" is the order of the largest group of the searched forms, by brute force over all maps or by
construction (`tests/discovery/worlds_with_known_groups.py`). Of an environment of the atlas it is the largest group
that is recorded there as holding. Exit code 1 where something found is false, or something known is missed and not said
open.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "discovery"))

import worlds_with_known_groups as known_groups  # noqa: E402 - the path above leads to it

import symcheck as sc  # noqa: E402
from symcheck.envs import atlas  # noqa: E402

ROWS, PAGE = ROOT / "benchmarks" / "discover_table.json", ROOT / "docs" / "discover-table.md"
_SAMPLES = 2_000
_MOST_SECONDS = 120.0  # wall-clock limit of a search; unfinished searches are marked as open

_HEAD = """# Discover: results and known symmetries

Each row is one run of `symcheck discover NAME --samples 2000 --max-time 120` with seed 0. *Known* is the order of the
largest group among the searched forms. For a small world, this order is known from brute force over all maps, or by
construction if there are too many maps. For an environment of the [atlas](atlas.md), it is the order of the largest
symmetry that the atlas records as exact. *Open* means that the report does not claim to have decided every map.
{summary}

`python benchmarks/discover_table.py --write` regenerates this page. The slow test `test_the_table_of_discover_holds`
repeats each search of a world and compares the result with its row.
"""


def names() -> tuple[list[str], list[str]]:
    """The small worlds and the environments of the atlas."""
    return list(known_groups.WORLDS), sorted({each.environments[0] for each in atlas.entries()})


def order_in_atlas(name: str) -> float:
    """The order of the largest symmetry of an environment that the atlas records as exact; 1 for none."""
    claims = [each for each in atlas.entries() if name in each.environments and each.claim]
    return max((each.symmetry().group.order for each in claims), default=1)


def row_of(name: str, seed: int = 0) -> dict[str, Any]:
    """One search, as plain data; `found` is null if the environment cannot be built here."""
    world = known_groups.WORLDS.get(name)
    known = order_in_atlas(name) if world is None else known_groups.known_order(world())
    row: dict[str, Any] = {"name": name, "world": world is not None, "known": _written(known)}
    started = time.process_time()
    try:
        target = name if world is None else world
        result = sc.discover(target, samples=_SAMPLES, max_time=_MOST_SECONDS, seed=seed).result
    except sc.errors.SymcheckError as error:
        return {**row, "found": None, "why": error.problem}
    return {
        **row,
        "found": result.group["name"],
        "order": _written(result.group["order"]),
        "verdict": result.verdict,
        "open": not result.complete,
        "seconds": round(time.process_time() - started, 1),
    }


def judge_row(row: dict[str, Any]) -> str:
    """`false` if a larger group is found than the known one, `missed` if a smaller one is found and nothing is open.

    Else "".
    """
    if row["found"] is None:
        return ""
    found, known = float(row["order"]), float(row["known"])
    # The atlas records claimed symmetries: an environment may have more.
    if found > known and row["world"]:
        return "false"
    return "missed" if found < known and not row["open"] else ""


def write_page(rows: list[dict[str, Any]]) -> str:
    """The page, as Markdown."""
    searched = [row for row in rows if row["found"] is not None]
    wrong = {kind: sum(judge_row(row) == kind for row in searched) for kind in ("false", "missed")}
    exact = sum(float(row["order"]) == float(row["known"]) for row in searched if row["world"])
    worlds = sum(row["world"] for row in searched)
    summary = (
        f"For {exact} of {worlds} worlds, the result is exactly the known group. The result is "
        f"false (a larger group than the known one) in {wrong['false']} of the {len(searched)} rows. A known group was "
        f"missed, in a row that is not marked as open, in {wrong['missed']} rows."
    )
    lines = [_HEAD.format(summary=summary)]
    for title, of_worlds in (("Small worlds", True), ("Environments of the atlas", False)):
        lines += [
            f"\n## {title}\n",
            "| environment | known | found | verdict | open | CPU |",
            "|---|---|---|---|---|---|",
        ]
        lines += [_line(row) for row in rows if row["world"] == of_worlds]
    return "\n".join(lines) + "\n"


def _line(row: dict[str, Any]) -> str:
    known = _number(row["known"])
    if row["found"] is None:
        return f"| {row['name']} | {known} | not searched: {row['why']} | | | |"
    order = "" if row["order"] in (1, row["known"]) else f", order {_number(row['order'])}"
    flag = f" **{judge_row(row)}**" if judge_row(row) else ""
    is_open = "open" if row["open"] else ""
    return (
        f"| {row['name']} | {known} | {row['found']}{order}{flag} | {row['verdict']} | {is_open} | {row['seconds']} s |"
    )


def _written(order: float) -> Any:
    return "Infinity" if math.isinf(order) else int(order)


def _number(order: Any) -> str:
    return "infinite" if order == "Infinity" else f"{order:,}"


def main() -> int:
    """Search, print, and write if requested."""
    parser = argparse.ArgumentParser(description="Results of discover, with the known symmetries.")
    parser.add_argument("names", nargs="*", help="environments; all when left out")
    parser.add_argument("--write", action="store_true", help="write the rows and the page")
    parser.add_argument("--page", action="store_true", help="write the page from the rows")
    parser.add_argument("--seed", type=int, default=0, help="of every search; the page has the rows of seed 0")
    parser.add_argument("--worlds", action="store_true", help="only the small worlds")
    given = parser.parse_args()
    if given.seed and given.write:
        parser.error("--write expects --seed 0: the page has the rows of seed 0")
    order = [name for part in names() for name in part]
    rows = {row["name"]: row for row in (json.loads(ROWS.read_text()) if ROWS.exists() else [])}
    for name in [] if given.page else given.names or (names()[0] if given.worlds else order):
        rows[name] = row_of(name, given.seed)
        print(_line(rows[name]), flush=True)
        if given.write:  # row by row: a stopped run keeps its finished rows
            kept = [rows[each] for each in order if each in rows]
            ROWS.write_text("[\n" + ",\n".join(json.dumps(row) for row in kept) + "\n]\n")
    kept = [rows[each] for each in order if each in rows]
    if given.write or given.page:
        PAGE.write_text(write_page(kept))
    return int(any(judge_row(row) for row in kept))


if __name__ == "__main__":
    raise SystemExit(main())
