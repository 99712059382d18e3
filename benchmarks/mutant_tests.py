"""Which tests may detect a mutant: those that a recording says run its lines, or those nearest to it by imports."""

from __future__ import annotations

import contextlib
import importlib
import json
import re
import subprocess
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import coverage
from mutants import Mutant

_IMPORT = re.compile(r"^ *(?:from ([\w.]+) import (\([^)]*\)|.*)|import (.*))", re.MULTILINE)
_NEW_FILE = 0.2  # seconds to import one more file of tests


class Recording:
    """The tests that run a line, with their times in seconds."""

    def __init__(self, folder: Path) -> None:
        self.seconds = times_of(folder / "seconds.json")
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
        files = {file_of(test) for test in running}
        module = {test for tests in lines.values() for test in tests} & self.seconds.keys()
        beside = {test for test in module - running if file_of(test) in files}
        ordered = sorted(running, key=self.seconds.__getitem__) + sorted(beside, key=self.seconds.__getitem__)
        chosen: list[str] = []
        imported: set[str] = set()
        for test in ordered:
            cost = self.seconds[test] + (_NEW_FILE if file_of(test) not in imported else 0.0)
            if cost <= seconds:
                seconds -= cost
                imported.add(file_of(test))
                chosen.append(test)
        return chosen


class Nearest:
    """Without a recording: the test files with the shortest chain of imports to a module.

    Of two files at the same distance, the one that imports fewer modules comes first. A file is measured when it is
    first chosen, because tests that fail without a mutant cannot detect one.
    """

    def __init__(self, root: Path, measure: Callable[[str, float], dict[str, float]]) -> None:
        self._measure = measure
        self._times: dict[str, tuple[float, dict[str, float]]] = {}  # with the seconds for which a file was measured
        listed = ["git", "ls-files", "-co", "--exclude-standard", "*.py"]
        names = subprocess.run(listed, cwd=root, capture_output=True, text=True, check=True).stdout.split()
        files = [name for name in names if (root / name).is_file()]
        modules = {_module_name(name): name for name in files}
        self._imports = {name: set(_find_imports(root, name, modules)) for name in files}
        self._importers: dict[str, list[str]] = {}
        for name, imported in self._imports.items():
            for other in imported:
                self._importers.setdefault(other, []).append(name)

    def tests(self, mutant: Mutant, *, seconds: float) -> list[str]:
        """Tests of the nearest files, fastest first in each of them, with a limited total time.

        The files that import the module itself share the time, so that one file of slow tests does not exclude the
        others; after them, a file gets at most half of the time that is left.
        """
        chosen: list[str] = []
        files = self.files(mutant.path)
        direct = sum(file in self._importers.get(mutant.path, ()) for file in files)
        for place, file in enumerate(files):
            if seconds < _LEAST:
                break
            share = max(_LEAST, seconds / max(2, direct - place))
            limit, times = self._times.get(file, (0.0, {}))
            if share >= 2 * limit and sum(times.values()) >= limit:  # not measured, or not to its end
                times = self._measure(file, share)
                self._times[file] = share, times
            share -= _NEW_FILE
            for test, cost in sorted(times.items(), key=lambda item: item[1]):
                if cost <= share:
                    share, seconds = share - cost, seconds - cost
                    chosen.append(test)
            seconds -= _NEW_FILE
        return chosen

    def files(self, module: str) -> list[str]:
        """The test files that import a module directly or not, nearest first."""
        distance, reached = {module: 0}, [module]
        for at in reached:
            for name in self._importers.get(at, ()):
                if name not in distance:
                    distance[name] = distance[at] + 1
                    reached.append(name)
        tests = [name for name in reached if Path(name).name.startswith("test_")]
        return sorted(tests, key=lambda name: (distance[name], len(self._imports[name]), name))


_LEAST = 1.0  # seconds of tests for which another file is not worth importing


def file_of(test: str) -> str:
    """The file of a test."""
    return test.split("::")[0]


def times_of(file: Path) -> dict[str, float]:
    """The seconds of the recorded tests.

    Also imports here what they imported from outside the tree, so that later forks of this process need not.
    """
    if not file.exists():  # nothing was recorded
        return {}
    recorded = json.loads(file.read_text(encoding="utf-8"))
    with warnings.catch_warnings(), contextlib.redirect_stderr(None):
        warnings.simplefilter("ignore")
        for module in recorded["modules"]:
            with contextlib.suppress(Exception):
                importlib.import_module(module)
    return dict(recorded["seconds"])


def _module_name(name: str) -> str:
    """The name under which a file is imported. Tests import their helpers by the last part alone."""
    parts = Path(name).with_suffix("").parts
    if "tests" in parts:
        return parts[-1]
    parts = parts[1:] if parts[0] in ("properties", "reports") else parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _find_imports(root: Path, name: str, modules: dict[str, str]) -> Iterator[str]:
    """The files that a file imports, in functions too, and the conftest beside a test."""
    for package, names, whole in _IMPORT.findall((root / name).read_text(encoding="utf-8")):
        inner = {f"{package}.{each}" for each in re.findall(r"\w+", names)}
        imported = inner | set(re.findall(r"[\w.]+", whole)) | (set() if inner <= modules.keys() else {package})
        yield from (modules[each] for each in imported & modules.keys())
    conftest = Path(name).with_name("conftest.py")
    if Path(name).name.startswith("test_") and (root / conftest).is_file():
        yield conftest.as_posix()
