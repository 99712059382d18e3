"""Rate of correct verdicts on every planted fault and every correct world, at many seeds.

    python benchmarks/planted_faults.py --seeds 10 --minutes 10
    python benchmarks/planted_faults.py --seeds 40 --only sound --match noise

Cases are those of `tests/defects/environments`: planted faults (`faults`), worlds that break their contract (`broken`)
and correct worlds (`sound`); and the faults and twins of `tests/engine/test_kinds_of_faults.py`, as "kind: ...". The
fastest cases come first; cases that do not fit into the time limit are listed. A row is printed for each case with a
wrong verdict at any seed, with all verdicts, then one line per table. Exits with 1 if a correct world failed more often
than alpha allows.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scipy.stats import binom
from typer.testing import CliRunner

from symcheck.cli.main import app
from symcheck.engine.environments.runner import run_env
from symcheck.engine.options import EnvOptions

HERE = Path(__file__).parent.parent / "tests" / "defects" / "environments"
sys.path[:0] = [str(HERE), str(HERE.parent.parent / "engine")]
SURE = 1e-3  # a false-alarm rate with a smaller probability under alpha is reported


KINDS = [  # (name, faulty world, its twin, property)
    ("a hidden clock", "Clock", "EvenClock", "transition_invariance"),
    ("the first step", "FirstPush", "Cart", "transition_invariance"),
    ("width under one action", "WideNoise", "Noisy", "transition_invariance"),
    ("one number of sixty", "Windy", "Long", "transition_invariance"),
    ("correlation under one action, set", "Correlated", "AlwaysCorrelated", "transition_invariance"),
    ("slips now and then, set", "SlipsRight", "Slips", "transition_invariance"),
    ("repeats mostly, set", "IcyAndDragging", "Icy", "transition_invariance"),
    ("cut short on the right", "Cut", "CutEvenly", "termination_invariance"),
    ("cut short on the right, set", "CutSettable", "CutEvenlySettable", "termination_invariance"),
    ("paid at the end", "PaidAtTheEndOnTheRight", "PaidAtTheEnd", "reward_invariance"),
]


@dataclass(frozen=True)
class Case:
    """One subject and its correct verdict.

    Attributes:
        table: "faults", "broken" or "sound".
        name: of the subject.
        check: maps a seed to (whether the verdict was right, the verdict in words).
    """

    table: str
    name: str
    check: Callable[[int], tuple[bool, str]]


def cases(samples: int, alpha: float) -> Iterator[Case]:
    """Every case of the catalogues."""
    import test_bad_environments
    import test_kinds_of_faults
    import test_planted_faults
    import test_sound_environments
    from faulty_worlds import FAULTY
    from sound_worlds import SOUND

    def verdicts(make: Any, symmetry: Any, seed: int, more: dict[str, Any] | None = None) -> dict[str, str]:
        options = EnvOptions(**{"samples": samples, "alpha": alpha, **(more or {}), "seed": seed})
        found = run_env(make, symmetry, options=options, target="case", command="")
        return {one.name: one.verdict for one in found.properties}

    def fault(make: Any, symmetry: Any, planted: set[str], follows: set[str], more: Any = None) -> Any:
        def check(seed: int) -> tuple[bool, str]:
            found = verdicts(make, symmetry, seed, more)
            failed = {name for name, verdict in found.items() if verdict == "failed"}
            missed, accused = planted - failed, failed - planted - follows
            said = [f"{name} {found.get(name, 'untested')}" for name in sorted(missed)]
            return not (missed or accused), ", ".join([*said, *(f"{name} accused" for name in sorted(accused))])

        return check

    def sound(make: Any, symmetry: Any, more: Any = None) -> Any:
        def check(seed: int) -> tuple[bool, str]:
            found = verdicts(make, symmetry, seed, more)
            wrong = {name: verdict for name, verdict in found.items() if verdict not in ("passed", "proved")}
            return not wrong, ", ".join(f"{name} {verdict}" for name, verdict in sorted(wrong.items()))

        return check

    def broken(environment: str, symmetry: str, code: int) -> Any:
        file = HERE / "bad_environments.py"
        words = ["verify-env", f"{file}:{environment}", "--symmetry", f"{file}:{symmetry}", "--samples", "500"]

        def check(seed: int) -> tuple[bool, str]:
            found = CliRunner().invoke(app, [*words, "--seed", str(seed)]).exit_code
            return found == code, f"exit {found}, not {code}"

        return check

    ends = {"reward_invariance", "termination_invariance"}
    for row in FAULTY:
        planted, follows = set(row.fails.split()), set(row.also.split())
        yield Case("faults", row.name, fault(row.make, row.symmetry, planted, follows, row.options))
    for one in test_planted_faults.FAULTS:
        follows = ends if "transition_invariance" in one.fails else set()
        yield Case("faults", one.name, fault(one.env, one.symmetry, set(one.fails) - follows, follows))
    for row in SOUND:
        yield Case("sound", row.name, sound(row.make, row.symmetry, row.options))
    for env, symmetry in test_sound_environments.SOUND:
        yield Case("sound", env.__name__, sound(env, symmetry))
    everything = {"reward_invariance", "transition_invariance", "termination_invariance"}
    for name, faulty, twin, broken_part in KINDS:
        worlds = [getattr(test_kinds_of_faults, world) for world in (faulty, twin)]
        claims = [test_kinds_of_faults.mirror(getattr(world, "size", 2)) for world in worlds]
        follows = everything - {broken_part}
        yield Case("faults", f"kind: {name}", fault(worlds[0], claims[0], {broken_part}, follows))
        yield Case("sound", f"kind: {name}", sound(worlds[1], claims[1]))
    for environment, name, code, _ in test_bad_environments.CASES:
        yield Case("broken", f"{environment} {name}", broken(environment, name, code))


def sweep(chosen: list[Case], seeds: range, minutes: float) -> tuple[dict[int, Counter[str]], int]:
    """(what was said of each case, by its place in the list, with "" for right verdicts; seeds that were finished)."""
    until = time.monotonic() + 60 * minutes
    found: dict[int, Counter[str]] = {at: Counter() for at in range(len(chosen))}
    cost = dict.fromkeys(found, 0.0)
    for done, seed in enumerate(seeds):
        for at in sorted(found, key=lambda one: cost[one]):
            if time.monotonic() > until:
                return found, done
            begun = time.monotonic()
            right, said = chosen[at].check(seed)
            cost[at] = time.monotonic() - begun
            found[at]["" if right else said] += 1
    return found, len(seeds)


def main() -> int:
    """Run the cases and print the results."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--samples", type=int, default=3000)
    parser.add_argument("--alpha", type=float, default=0.01)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--only", choices=["faults", "sound", "broken"])
    parser.add_argument("--match", default="", help="part of a case's name")
    given = parser.parse_args()
    chosen = [
        case
        for case in cases(given.samples, given.alpha)
        if given.only in (None, case.table) and given.match.lower() in case.name.lower()
    ]
    found, finished = sweep(chosen, range(given.first, given.first + given.seeds), given.minutes)
    suspicious = 0
    for table in ("faults", "sound", "broken"):
        counts = {at: count for at, count in found.items() if chosen[at].table == table}
        for at, count in counts.items():
            if count.total() == count[""]:
                continue
            accused = sum(times for said, times in count.items() if "failed" in said)
            odds = float(binom.sf(accused - 1, count.total(), given.alpha)) if table == "sound" and accused else 1.0
            suspicious += odds < SURE
            note = f"  (alpha explains this with p = {odds:.1g})" if odds < SURE else ""
            said = "; ".join(f"{times}: {what}" for what, times in count.most_common() if what)
            print(f"{table:7s} {chosen[at].name}: {count['']} of {count.total()} right. {said}{note}")
        if counts:
            total, right = sum(c.total() for c in counts.values()), sum(c[""] for c in counts.values())
            print(f"{table:7s} {len(counts)} cases, {right} of {total} verdicts right")
    print(
        f"{finished} of {given.seeds} seeds for every case" + ("" if finished == given.seeds else ": the time was up")
    )
    return 1 if suspicious else 0


if __name__ == "__main__":
    sys.exit(main())
