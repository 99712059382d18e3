"""Work in a child process: its answer comes back, and however it ends, this process goes on."""

import os
import signal
import time
from typing import Any, NoReturn

import pytest

from symcheck.api import isolation
from symcheck.errors import SymcheckError


def crash() -> NoReturn:
    os.kill(os.getpid(), signal.SIGSEGV)
    raise AssertionError("still here")


def refuse() -> NoReturn:
    raise RuntimeError("no display")


def hang() -> None:
    time.sleep(60)


def test_what_the_work_changes_stays_in_the_child() -> None:
    changed: list[int] = []

    def work() -> str:
        changed.append(1)
        return os.environ["SYMCHECK_TEST"]

    assert isolation.in_child(work, {"SYMCHECK_TEST": "set"}) == "set"
    assert changed == []
    assert "SYMCHECK_TEST" not in os.environ


def test_a_large_answer_comes_back_whole() -> None:
    assert isolation.in_child(lambda: "x" * 3_000_000, {}) == "x" * 3_000_000


@pytest.mark.parametrize(
    ("work", "message"), [(crash, "SIGSEGV"), (refuse, "RuntimeError: no display"), (hang, "did not finish in time")]
)
def test_a_child_that_ends_badly_is_a_message(work: Any, message: str) -> None:
    before = time.monotonic()
    with pytest.raises(SymcheckError, match=message):
        isolation.in_child(work, {}, time_limit=0.5 if work is hang else 30)
    assert time.monotonic() - before < 20


def test_no_child_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    fork = os.fork

    def recorded() -> int:
        child = fork()
        made.append(child)
        return child

    monkeypatch.setattr(os, "fork", recorded)
    for work in (crash, refuse):
        with pytest.raises(SymcheckError):
            isolation.in_child(work, {})
    assert len(made) == 2
    for child in made:  # other tests may have children of their own
        with pytest.raises(ChildProcessError):
            os.waitpid(child, os.WNOHANG)


def test_the_first_back_end_that_works_is_taken() -> None:
    def draw() -> str:
        backend = os.environ[isolation.VARIABLE]
        if backend == "egl":
            crash()
        return backend

    assert isolation.with_backends(draw, isolation.HEADLESS) == "osmesa"


def test_where_no_back_end_works_each_is_named_with_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(isolation.VARIABLE, raising=False)
    expected = (
        r"with MUJOCO_GL unset, .*no display; with MUJOCO_GL=egl, .*no display.* Set MUJOCO_GL to an installed back end"
    )
    with pytest.raises(SymcheckError, match=expected):
        isolation.with_backends(refuse, (None, "egl"))


def test_where_processes_cannot_be_forked_nothing_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.system", lambda: "Windows")
    with pytest.raises(SymcheckError, match="cannot isolate"):
        isolation.in_child(refuse, {})


def test_an_environment_with_a_part_of_an_opengl_library_is_known_by_it() -> None:
    class Viewer:
        __module__ = "pyglet.window"

    class Plain:
        pass

    class Drawing:
        def __init__(self) -> None:
            self.viewer = Viewer()

    assert isolation.draws_with_opengl(Drawing())
    assert not isolation.draws_with_opengl(Plain())
