"""The script that scores the tests tells a mutant that a test notices from one that no test can."""

from __future__ import annotations

import functools
import subprocess
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARKS = str(Path(__file__).parents[2] / "benchmarks")
MODULE = '''\
"""Two comparisons: at equality one matters and the other does not."""


def is_positive(x: int) -> bool:
    return x > 0


def larger(a: int, b: int) -> int:
    if not isinstance(a, int):
        raise TypeError(f"expected {1 + 1} whole numbers")
    return a if a > b else b


def unused(x: int) -> int:
    return x + 1
'''
TESTS = """\
from tiny import is_positive, larger


def test_zero_is_not_positive():
    assert is_positive(1)
    assert not is_positive(0)


def test_the_larger_is_found():
    assert larger(1, 2) == larger(2, 1) == larger(2, 2) == 2
"""


@pytest.fixture
def mutation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script, at work on a repository of one module."""
    pytest.importorskip("coverage")
    monkeypatch.syspath_prepend(BENCHMARKS)
    import mutation

    (tmp_path / "tiny.py").write_text(MODULE)
    (tmp_path / "test_tiny.py").write_text(TESTS)
    (tmp_path / ".gitignore").write_text("build/\n")
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    for name, value in (("ROOT", tmp_path), ("BUILD", tmp_path / "build"), ("SOURCES", (".",))):
        monkeypatch.setattr(mutation, name, value)
    return mutation


@pytest.mark.slow
def test_a_mutant_that_a_test_notices_is_killed_and_an_equivalent_one_survives(mutation: ModuleType) -> None:
    assert mutation.record([]) == 0
    mutants = {(m.before, m.after): m for m in mutation.mutants_of("tiny.py", MODULE)}
    verdicts = {
        ("return x > 0", "return (x >= 0)"): "killed",
        ("return x > 0", "return not (x > 0)"): "killed",
        ("return a if a > b else b", "return a if (a >= b) else b"): "survived",
        ("return x + 1", "return (x - 1)"): "unreached",
    }
    judge = functools.partial(mutation.judge_all, recording=mutation.Recording(mutation.BUILD), limit=60, jobs=2)
    outcomes = judge(list(map(mutants.__getitem__, verdicts)), settled={})
    assert [outcome.verdict for outcome in outcomes] == list(verdicts.values())
    assert [outcome.tests for outcome in outcomes] == [2, 2, 2, 0]  # what runs the line, then its neighbours
    assert mutation.score(outcomes) == (2, 4)
    unchanged = mutation.Tree(mutation.BUILD / "unchanged")
    nearest = mutation.Nearest(mutation.ROOT, unchanged.measure)
    assert nearest.files("tiny.py") == ["test_tiny.py"]
    near = mutation.judge_all([outcome.mutant for outcome in outcomes], nearest, limit=60, jobs=1, settled={})
    assert [outcome.verdict for outcome in near] == ["killed", "killed", "survived", "survived"]
    assert [outcome.tests for outcome in near] == [2, 2, 2, 2]
    mutation.keep_killed(outcomes)
    known = {outcomes[2].mutant.key: "equivalent", **mutation.killed_before()}
    assert mutation.score(judge([o.mutant for o in outcomes], settled=known)) == (2, 3)
    assert (mutation.ROOT / "tiny.py").read_text() == MODULE


@pytest.mark.slow
def test_what_changes_a_text_alone_is_no_mutant(mutation: ModuleType) -> None:
    raising = [m for m in mutation.mutants_of("tiny.py", MODULE) if "TypeError" in m.before]
    assert [m.after for m in raising] == ["pass"]
    assert not any('"""' in m.before for m in mutation.mutants_of("tiny.py", MODULE))


@pytest.mark.slow
def test_the_same_seed_draws_the_same_mutants(mutation: ModuleType) -> None:
    keys = [[m.key for m in mutation.sample(["tiny.py"], 4, seed=seed)] for seed in ("0:a", "0:a", "1:a")]
    assert keys[0] == keys[1]
    assert len(set(keys[0])) == 4


@pytest.mark.slow
def test_every_equivalent_mutant_is_a_mutant_of_one_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reason given for one place does not excuse another, and none stays when its code has gone."""
    pytest.importorskip("coverage")
    monkeypatch.syspath_prepend(BENCHMARKS)
    import mutation

    files = [file for group in mutation.files_by_group().values() for file in group]
    sources = [(file, (mutation.ROOT / file).read_text(encoding="utf-8")) for file in files]
    mutants = Counter(m.key for file, source in sources for m in mutation.mutants_of(file, source))
    assert {key: mutants[key] for key in mutation.equivalent_mutants() if mutants[key] != 1} == {}
