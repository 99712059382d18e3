"""Do the tests notice when the code is wrong? Scores of sampled mutants, by package group.

    python benchmarks/mutation.py record [TEST ...]        which test runs which line: the default suite, or these again
    python benchmarks/mutation.py run [GROUP ...] [--count 15] [--seed 0] [--limit 60] [--jobs 2] [--again]
    python benchmarks/mutation.py list GROUP               the sampled mutants, without running them

`run` changes one place at a time in a copy of the working tree and runs tests until one fails. With a recording, these
are the tests that run the changed lines, fastest first. Without one, they are the test files with the shortest chain of
imports to the changed module. `record` runs the tests once under coverage in another copy; do it again after the code
has changed. The working tree itself is never changed. Tests of at most `--limit` CPU seconds are run on a mutant, and a
mutant with which they take more than twice their time is killed. Survivors are printed, and
benchmarks/equivalent_mutants.toml says which of them change nothing that a test could see, and why.

Every run of the tests is a fork of this process, which has already imported the third-party modules that they use.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import json
import math
import multiprocessing
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
import tomllib
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import coverage
import pytest
from mutant_tests import Nearest, Recording, file_of, times_of
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
_START = 10.0  # CPU seconds to collect the tests and to import what this process has not, with a margin of safety
_POLL = 0.02  # seconds between looks at a child
_BROKEN = 99  # exit status of a run that could not start its tests
_PYTEST = ("-q", "-p", "mutation_plugin", "-p", "no:cacheprovider", "--hypothesis-seed=0")
_SHARED = ("-W", "ignore::pytest.PytestAssertRewriteWarning")  # this process has already imported some plugins
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
        """Run pytest here, in a fork of this process; the exit status (-1 past the limit) and the end of its output."""
        log = self.folder.with_name(f"{self.folder.name}.log")
        child = os.fork()
        if child == 0:
            self._run_and_exit(arguments, log, coverage_file, limit)
        end = time.monotonic() + _WAIT * (limit or math.inf)
        ended, status = os.waitpid(child, os.WNOHANG)
        while not ended and time.monotonic() < end:
            time.sleep(_POLL)
            ended, status = os.waitpid(child, os.WNOHANG)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)  # its own children too
        if not ended:
            os.waitpid(child, 0)
        return os.waitstatus_to_exitcode(status) if ended else -1, log.read_text(encoding="utf-8")[-2000:]

    def _run_and_exit(
        self, arguments: tuple[str, ...], log: Path, coverage_file: Path | None, limit: float | None
    ) -> NoReturn:
        """What the fork does: nothing of it may return into the code of its parent."""
        status = _BROKEN
        try:
            os.setsid()
            output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            for stream in (1, 2):
                os.dup2(output, stream)
            if limit is not None:
                resource.setrlimit(resource.RLIMIT_CPU, (int(limit), int(limit)))
            os.chdir(self.folder)
            paths = [str(self.folder / name) for name in ("", "properties", "reports")]
            paths.append(str(Path(__file__).parent))
            os.environ["PYTHONPATH"] = os.pathsep.join(paths)
            sys.path[:0] = paths
            sys.argv = ["pytest"]
            measuring = coverage.Coverage(str(coverage_file), config_file=str(_settings())) if coverage_file else None
            with measuring.collect() if measuring else contextlib.nullcontext():
                status = int(pytest.main([*_PYTEST, *_SHARED, *arguments]))
            if measuring is not None:
                measuring.save()
        except BaseException:  # also what pytest itself lets pass: this process ends here
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)

    def judge(self, mutant: Mutant, tests: list[str], *, limit: float) -> Outcome:
        """Run these tests on a mutant until one fails."""
        if not tests:
            return Outcome(mutant, "unreached", 0, 0.0)
        started = time.monotonic()
        chosen = self.folder.with_name(f"{self.folder.name}.json")
        chosen.write_text(json.dumps(tests), encoding="utf-8")
        self._write(mutant.path, mutant.source)
        try:
            status, output = self.pytest(
                "-x", f"--run-ids={chosen}", *sorted({file_of(test) for test in tests}), limit=limit
            )
        finally:
            self._write(mutant.path, (ROOT / mutant.path).read_text(encoding="utf-8"))
        if status == _BROKEN:
            raise RuntimeError(f"the tests of {mutant.path}:{mutant.line} did not run: {output}")
        late = {-1: "timeout", -signal.SIGXCPU: "timeout", -signal.SIGKILL: "timeout"}
        verdict = {0: "survived", 5: "survived", **late}.get(status, "killed")
        return Outcome(mutant, verdict, len(tests), time.monotonic() - started)

    def measure(self, file: str, seconds: float) -> dict[str, float]:
        """The tests of a file that pass here in a limited time, with their seconds."""
        times = self.folder.with_name(f"{self.folder.name}.json")
        times.unlink(missing_ok=True)
        self.pytest(f"--record-seconds={times}", f"--record-limit={seconds}", file)
        return times_of(times)

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
    before = times_of(seconds)
    new = json.loads((BUILD / "new.json").read_text(encoding="utf-8"))
    seconds.write_text(json.dumps({**new, "seconds": {**before, **new["seconds"]}}), encoding="utf-8")
    print(output)
    return status


def judge_all(
    mutants: list[Mutant], recording: Recording | Nearest, *, limit: float, jobs: int, settled: dict[Key, str]
) -> list[Outcome]:
    """Test mutants in copies of the working tree, one copy per job; mutants with a known verdict are not run."""
    waiting = [mutant for mutant in mutants if mutant.key not in settled]
    chosen = [recording.tests(mutant, seconds=limit) for mutant in waiting]
    limits = [2 * limit + _START] * len(waiting)
    folder = BUILD / f"workers-{os.getpid()}"
    fork = multiprocessing.get_context("fork")
    try:
        with concurrent.futures.ProcessPoolExecutor(jobs, fork, _start_worker, (folder,)) as pool:
            judged = dict(zip((m.key for m in waiting), pool.map(_judge, waiting, chosen, limits), strict=True))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return [judged.get(mutant.key) or Outcome(mutant, settled[mutant.key], 0, 0.0) for mutant in mutants]


_worker: list[Tree] = []  # the copy of a worker process


def _start_worker(folder: Path) -> None:
    _worker.append(Tree(folder / str(os.getpid())))


def _judge(mutant: Mutant, tests: list[str], limit: float) -> Outcome:
    """What a worker process does with a mutant."""
    outcome = _worker[0].judge(mutant, tests, limit=limit)
    print(f"{outcome.verdict:<10}{outcome.seconds:>6.1f} s  {mutant.path}:{mutant.line}", file=sys.stderr, flush=True)
    return outcome


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
    parser.add_argument("--limit", type=float, default=60.0, help="CPU seconds of tests a mutant")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--again", action="store_true", help="run only what earlier runs have not killed")
    given = parser.parse_intermixed_args()
    if given.command == "record":
        return record(given.names)
    drawn_by_group = {
        name: sample(files, given.count, seed=f"{given.seed}:{name}")
        for name, files in files_by_group().items()
        if name in (given.names or GROUPS)
    }
    if given.command == "list":
        for mutant in (mutant for drawn in drawn_by_group.values() for mutant in drawn):
            print(f"{mutant.path}:{mutant.line}\n  - {mutant.before}\n  + {mutant.after}")
        return 0
    unchanged = Tree(BUILD / f"unchanged-{os.getpid()}")
    recording = Recording(BUILD) if (BUILD / "coverage").exists() else Nearest(ROOT, unchanged.measure)
    settled = equivalent_mutants() | (killed_before() if given.again else {})
    table = []
    for name in given.names or GROUPS:
        mutants = drawn_by_group[name]
        outcomes = judge_all(mutants, recording, limit=given.limit, jobs=given.jobs, settled=settled)
        keep_killed(outcomes)
        table.append((name, *score(outcomes), len(outcomes)))
        print(f"{name}: {table[-1][1]} of {table[-1][2]}", flush=True)
        print_survivors(outcomes)
    unchanged.remove()
    print(f"\n{'group':<26}{'mutants':>8}{'not equivalent':>16}{'killed':>8}{'score':>7}")
    for name, killed, of, drawn in table:
        print(f"{name:<26}{drawn:>8}{of:>16}{killed:>8}{killed / max(of, 1):>7.0%}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
