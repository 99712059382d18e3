"""Do the tests notice when the code is wrong? Scores of sampled mutants, by package group.

    python benchmarks/mutation.py record [TEST ...]        which test runs which line: the default suite, or these again
    python benchmarks/mutation.py run [GROUP ...] [--count 15] [--seed 0] [--limit 60] [--jobs 2] [--again|--tests PATH]
    python benchmarks/mutation.py list GROUP               the sampled mutants, without running them

`record` copies the working tree to build/mutation and runs the tests once under coverage; do it again after the code
has changed. `run` changes one place at a time in another copy and runs the tests that run the changed lines, fastest
first, until one fails; with `--tests` it needs no recording and runs these files and folders in the given order. The
working tree itself is never changed. Limits are CPU seconds; a mutant with which the tests run past the limit is
killed. Survivors are printed, and benchmarks/equivalent_mutants.toml says which of them change nothing that a test
could see, and why.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import json
import os
import queue
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path

import coverage
from mutants import Mutant, mutants_of

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "mutation"
EQUIVALENT = Path(__file__).with_name("equivalent_mutants.toml")
SOURCES = ("symcheck", "properties/symcheck_properties", "reports/symcheck_reports", "reference_agents")

# Glob patterns from the root; a file belongs to the first group that has it.
GROUPS: dict[str, tuple[str, ...]] = {
    "groups": ("symcheck/groups/**/*.py", "symcheck/representations/**/*.py"),
    "intertwiners": ("symcheck/intertwiners/**/*.py",),
    "mdp": ("symcheck/mdp/**/*.py",),
    "mujoco": ("symcheck/mujoco/**/*.py",),
    "statistics": (
        "symcheck/engine/**/statistics*.py",
        "symcheck/engine/**/sequential.py",
        "symcheck/statistics/**/*.py",
    ),
    "graphs": ("symcheck/engine/networks/graph/**/*.py", "symcheck/certificate_checker.py"),
    "networks": ("symcheck/engine/networks/**/*.py",),
    "environments": ("symcheck/engine/environments/**/*.py",),
    "symmetry": ("symcheck/symmetry/**/*.py",),
    "mirrors": (
        "symcheck/mirror_functions/**/*.py",
        "symcheck/engine/mirrors/**/*.py",
        "symcheck/engine/policies/**/*.py",
    ),
    "games": ("symcheck/games/**/*.py", "symcheck/engine/games/**/*.py"),
    "discovery": ("symcheck/discovery/**/*.py",),
    "nn": ("symcheck/nn/**/*.py",),
    "learning": ("reference_agents/learning/**/*.py", "reference_agents/environments/**/*.py"),
    "reports": ("reports/symcheck_reports/**/*.py",),
}
Key = tuple[str, ...]
_NEW_FILE = 0.2  # seconds to import one more file of tests
_START = 10.0  # CPU seconds to start Python, pytest and torch, with a margin of safety
_WAIT = 10  # wall time of a mutant as a multiple of its limit: the machine may be busy, or the process asleep


@dataclass(frozen=True)
class Outcome:
    """What the tests did with a mutant: killed, timeout, survived or unreached, by how many tests, in how long."""

    mutant: Mutant
    verdict: str
    tests: int
    seconds: float


def sample(files: list[str], count: int, *, seed: str) -> list[Mutant]:
    """Mutants of these files, at most one per line: first the lines are drawn, then a change of each."""
    rng = random.Random(seed)
    places: dict[tuple[str, int], list[Mutant]] = {}
    for path in files:
        for mutant in mutants_of(path, (ROOT / path).read_text(encoding="utf-8")):
            places.setdefault((path, mutant.line), []).append(mutant)
    chosen = rng.sample(sorted(places), min(count, len(places)))
    return [rng.choice(places[place]) for place in chosen]


def files_by_group() -> dict[str, list[str]]:
    """The modules of every group."""
    taken: set[str] = set()
    groups = {}
    for name, patterns in GROUPS.items():
        files = {p.relative_to(ROOT).as_posix() for pattern in patterns for p in ROOT.glob(pattern)} - taken
        taken |= files
        groups[name] = sorted(files)
    return groups


class Recording:
    """The tests that run a line, with their times in seconds."""

    def __init__(self, folder: Path) -> None:
        self.seconds: dict[str, float] = json.loads((folder / "seconds.json").read_text(encoding="utf-8"))
        self._data = coverage.CoverageData(basename=str(folder / "coverage"))
        self._data.read()
        self._lines: dict[str, dict[int, list[str]]] = {}

    def tests(self, mutant: Mutant, *, seconds: float) -> list[str]:
        """Tests that may detect a mutant, fastest first, with a limited total time.

        After the tests that run its lines come other tests of the same files that run its module: the lines run by a
        shared fixture are recorded only for the first test that uses it.
        """
        if mutant.path not in self._lines:
            self._lines[mutant.path] = self._data.contexts_by_lineno(mutant.path)
        lines = self._lines[mutant.path]
        running = {test for line in mutant.lines for test in lines.get(line, ())} & self.seconds.keys()
        files = {_file(test) for test in running}
        module = {test for tests in lines.values() for test in tests} & self.seconds.keys()
        beside = {test for test in module - running if _file(test) in files}
        chosen: list[str] = []
        imported: set[str] = set()
        for test in sorted(running, key=self.seconds.__getitem__) + sorted(beside, key=self.seconds.__getitem__):
            cost = self.seconds[test] + (_NEW_FILE if _file(test) not in imported else 0.0)
            if cost <= seconds:
                seconds -= cost
                imported.add(_file(test))
                chosen.append(test)
        return chosen


class Listed:
    """Explicitly given tests, the same for every mutant: files in the given order, files of a folder by name."""

    def __init__(self, paths: list[str]) -> None:
        self._files: list[str] = []
        for path in paths:
            inside = sorted((ROOT / path).rglob("test_*.py")) if (ROOT / path).is_dir() else [ROOT / path]
            self._files += [file.relative_to(ROOT).as_posix() for file in inside]

    def tests(self, mutant: Mutant, *, seconds: float) -> list[str]:
        """All tests, whatever their duration: the time limit of a mutant ends them."""
        return list(dict.fromkeys(self._files))


def _file(test: str) -> str:
    return test.split("::")[0]


class Tree:
    """A copy of the working tree in which modules may be changed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shutil.rmtree(folder, ignore_errors=True)
        listed = ["git", "ls-files", "-co", "--exclude-standard", "-z"]
        names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
        for name in filter(None, names):
            if (ROOT / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, folder / name)
        self._stamp = time.time()

    def pytest(self, *arguments: str, coverage_file: Path | None = None, limit: float | None = None) -> tuple[int, str]:
        """Run pytest here, in a child process; the exit status (-1 past the limit) and the end of its output."""
        start = [sys.executable, "-m"]
        if coverage_file is not None:
            start += ["coverage", "run", "--append", f"--data-file={coverage_file}", f"--rcfile={_settings()}", "-m"]
        paths = [self.folder, self.folder / "properties", self.folder / "reports", Path(__file__).parent]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths)), "OMP_NUM_THREADS": "1"}
        command = [*start, "pytest", "-q", "-p", "mutation_plugin", "-p", "no:cacheprovider", "--hypothesis-seed=0"]
        with (self.folder.with_name(f"{self.folder.name}.log")).open("w+", encoding="utf-8") as log:
            child = subprocess.Popen(
                [*command, *arguments], cwd=self.folder, env=environment, stdout=log, stderr=log, start_new_session=True
            )
            try:
                if limit is not None:
                    resource.prlimit(child.pid, resource.RLIMIT_CPU, (int(limit), int(limit)))
                status = child.wait(None if limit is None else _WAIT * limit)
            except subprocess.TimeoutExpired:
                status = -1
            finally:
                _end(child)
            log.seek(0)
            return status, log.read()[-2000:]

    def judge(self, mutant: Mutant, tests: list[str], *, limit: float) -> Outcome:
        """Run these tests on a mutant until one fails."""
        if not tests:
            return Outcome(mutant, "unreached", 0, 0.0)
        started = time.monotonic()
        chosen = self.folder.with_name(f"{self.folder.name}.json")
        chosen.write_text(json.dumps(tests), encoding="utf-8")
        self._write(mutant.path, mutant.source)
        try:
            status, _ = self.pytest("-x", f"--run-ids={chosen}", *sorted({_file(test) for test in tests}), limit=limit)
        finally:
            self._write(mutant.path, (ROOT / mutant.path).read_text(encoding="utf-8"))
        late = {-1: "timeout", -signal.SIGXCPU: "timeout", -signal.SIGKILL: "timeout"}
        verdict = {0: "survived", 5: "survived", **late}.get(status, "killed")
        return Outcome(mutant, verdict, len(tests), time.monotonic() - started)

    def remove(self) -> None:
        """Remove the copy, and the files written next to it."""
        shutil.rmtree(self.folder)
        for suffix in ("log", "json"):
            self.folder.with_name(f"{self.folder.name}.{suffix}").unlink(missing_ok=True)

    def _write(self, path: str, text: str) -> None:
        """Python identifies a compiled module by its modification time in seconds, so versions need different times."""
        self._stamp += 2
        (self.folder / path).write_text(text, encoding="utf-8")
        os.utime(self.folder / path, (self._stamp, self._stamp))


def _end(child: subprocess.Popen[bytes]) -> None:
    """End a child and its descendants."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def _settings() -> Path:
    file = BUILD / "coveragerc"
    file.write_text(f"[run]\nrelative_files = true\nsource = {','.join(SOURCES)}\n", encoding="utf-8")
    return file


def record(tests: list[str]) -> int:
    """Run the default suite, or some of its files again, and store which test runs which line."""
    BUILD.mkdir(parents=True, exist_ok=True)
    data, seconds = BUILD / "coverage", BUILD / "seconds.json"
    if not tests:
        for file in (data, seconds, BUILD / "killed.json"):
            file.unlink(missing_ok=True)
    status, output = Tree(BUILD / "tree").pytest(f"--record-seconds={BUILD / 'new.json'}", *tests, coverage_file=data)
    before = json.loads(seconds.read_text(encoding="utf-8")) if seconds.exists() else {}
    new = json.loads((BUILD / "new.json").read_text(encoding="utf-8"))
    seconds.write_text(json.dumps({**before, **new}), encoding="utf-8")
    print(output)
    return status


def judge_all(
    mutants: list[Mutant], recording: Recording | Listed, *, limit: float, jobs: int, settled: dict[Key, str]
) -> list[Outcome]:
    """Test mutants in copies of the working tree, one copy per job; mutants with a known verdict are not run."""
    trees: queue.Queue[Tree] = queue.Queue()
    for i in range(min(jobs, sum(mutant.key not in settled for mutant in mutants))):
        trees.put(Tree(BUILD / f"worker-{os.getpid()}-{i}"))

    def judge(mutant: Mutant) -> Outcome:
        if mutant.key in settled:
            return Outcome(mutant, settled[mutant.key], 0, 0.0)
        tree = trees.get()
        try:
            outcome = tree.judge(mutant, recording.tests(mutant, seconds=limit - _START), limit=limit)
        finally:
            trees.put(tree)
        place = f"{mutant.path}:{mutant.line}"
        print(f"{outcome.verdict:<10}{outcome.seconds:>6.1f} s  {place}", file=sys.stderr, flush=True)
        return outcome

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        outcomes = list(pool.map(judge, mutants))
    while not trees.empty():
        trees.get().remove()
    return outcomes


def equivalent_mutants() -> dict[Key, str]:
    """The changes without an observable effect."""
    entries = tomllib.loads(EQUIVALENT.read_text(encoding="utf-8")).get("mutant", [])
    return {(entry["where"], entry["before"], entry["after"]): "equivalent" for entry in entries}


def killed_before() -> dict[Key, str]:
    """The mutants killed by runs since the last full recording."""
    file = BUILD / "killed.json"
    return {tuple(key): "killed" for key in json.loads(file.read_text(encoding="utf-8"))} if file.exists() else {}


def keep_killed(outcomes: list[Outcome]) -> None:
    """Store the killed mutants, for `--again`."""
    killed = killed_before() | {o.mutant.key: "killed" for o in outcomes if o.verdict in ("killed", "timeout")}
    (BUILD / "killed.json").write_text(json.dumps(list(killed)), encoding="utf-8")


def print_survivors(outcomes: list[Outcome]) -> None:
    """Each mutant that no test detected."""
    for outcome in outcomes:
        if outcome.verdict in ("survived", "unreached"):
            m = outcome.mutant
            print(f"  {outcome.verdict} {m.path}:{m.line} in {m.where or 'the module'} ({outcome.tests} tests)")
            print(f"    - {m.before}\n    + {m.after}")


def score(outcomes: list[Outcome]) -> tuple[int, int]:
    """The number of killed mutants, and the number of mutants that are not known to be equivalent."""
    verdicts = [outcome.verdict for outcome in outcomes]
    equivalent = verdicts.count("equivalent")
    return verdicts.count("killed") + verdicts.count("timeout"), len(verdicts) - equivalent


def main() -> int:
    """Parse the command line, and run one of the three commands."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["record", "run", "list"])
    parser.add_argument("names", nargs="*", help="tests for record, groups for run and list")
    parser.add_argument("--count", type=int, default=15, help="mutants a group")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=float, default=60.0, help="CPU seconds a mutant")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--again", action="store_true", help="run only what earlier runs have not killed")
    parser.add_argument("--tests", action="append", default=[], help="a file or folder, instead of a recording")
    given = parser.parse_intermixed_args()
    if given.command == "record":
        return record(given.names)
    table, groups = [], files_by_group()
    settled = equivalent_mutants() | (killed_before() if given.again else {})
    for name in given.names or GROUPS:
        mutants = sample(groups[name], given.count, seed=f"{given.seed}:{name}")
        if given.command == "list":
            print(*(f"{m.path}:{m.line}\n  - {m.before}\n  + {m.after}" for m in mutants), sep="\n")
            continue
        recording = Listed(given.tests) if given.tests else Recording(BUILD)
        outcomes = judge_all(mutants, recording, limit=given.limit, jobs=given.jobs, settled=settled)
        keep_killed(outcomes)
        table.append((name, *score(outcomes), len(outcomes)))
        print(f"{name}: {table[-1][1]} of {table[-1][2]}", flush=True)
        print_survivors(outcomes)
    if table:
        print(f"\n{'group':<26}{'mutants':>8}{'not equivalent':>16}{'killed':>8}{'score':>7}")
    for name, killed, of, drawn in table:
        print(f"{name:<26}{drawn:>8}{of:>16}{killed:>8}{killed / max(of, 1):>7.0%}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
