"""What `discover` finds beside what there is: worlds whose largest group is known, and the environments of the atlas.

    python benchmarks/discover_table.py             # the worlds, as Markdown
    python benchmarks/discover_table.py --atlas     # the atlas
    python benchmarks/discover_table.py NAME ...    # some of either

Of a world, "known" is the order of the largest group of the searched forms, by brute force over all maps or by
construction (`tests/discovery/worlds_with_known_groups.py`). Of an environment of the atlas it says which claims are
recorded there as holding. Exit code 1 where something printed is false, or something known is missed and not said open.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "discovery"))

import worlds_with_known_groups as known_groups

import symcheck as sc
from symcheck.envs import atlas

_MOST_SECONDS = 120.0  # of a search by the wall clock; what it leaves open is said to be open


def main() -> int:
    """Print the table."""
    words = sys.argv[1:]
    names = [word for word in words if not word.startswith("--")]
    print("| environment | known | found | verdict | CPU |\n|---|---|---|---|---|")
    wrong = 0
    for name in names or ([] if "--atlas" in words else list(known_groups.WORLDS)):
        if name in known_groups.WORLDS:
            wrong += _world(name)
        else:
            _environment(name)
    if "--atlas" in words:
        for name in sorted({each.environments[0] for each in atlas.entries()}):
            _environment(name)
    return int(wrong > 0)


def _search(target: Any) -> tuple[Any, float]:
    started = time.process_time()
    found = sc.discover(target, max_time=_MOST_SECONDS).result
    return found, time.process_time() - started


def _world(name: str) -> bool:
    make = known_groups.WORLDS[name]
    order = known_groups.known_order(make())
    found, seconds = _search(make)
    size = found.group["order"]
    said = "" if size == order else " **false**" if size > order else " (open)" if not found.complete else " **missed**"
    print(f"| {name} | {order:,} | {found.group['name']}{said} | {found.verdict} | {seconds:.1f} s |", flush=True)
    return "**" in said


def _environment(name: str) -> None:
    claims = [each for each in atlas.entries() if name in each.environments and each.claim]
    held = ", ".join(each.name for each in claims) or "none recorded"
    try:
        found, seconds = _search(name)
    except sc.errors.SymcheckError as error:
        print(f"| {name} | {held} | refused: {error} | | |", flush=True)
        return
    said = "" if found.complete else " (open)"
    print(f"| {name} | {held} | {found.group['name']}{said} | {found.verdict} | {seconds:.1f} s |", flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
