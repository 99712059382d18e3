"""Run work that may crash its process, such as drawing with OpenGL, in a child process.

A graphics driver that is missing or broken does not always raise: it can abort, crash or hang, and no exception
handler stops that. In a child process, only the picture is lost, not the verification before it. The child is forked,
so it has the current environment (factories and instances need not be picklable). It returns only its result; its
changes to the environment do not affect the parent.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import pickle
import platform
import select
import signal
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from symcheck.errors import SymcheckError

T = TypeVar("T")
# MuJoCo's rendering back ends if the user names none; in this order, because osmesa is slower.
HEADLESS = ("egl", "osmesa")
VARIABLE = "MUJOCO_GL"
# Twenty pictures of Humanoid take 6 s on one core without a GPU; after this time the child counts as hanging.
TIME_LIMIT = 60.0
_OPENGL = ("mujoco", "OpenGL", "dm_control", "pyglet", "moderngl", "panda3d", "pybullet")
_ANSWER, _FAILURE = b"+", b"-"


def draws_with_opengl(env: Any) -> bool:
    """Whether an environment contains objects of a library that draws with OpenGL.

    Args:
        env: an unwrapped environment.

    Example:
        >>> draws_with_opengl(object())
        False
    """
    owners = [*type(env).__mro__, *(type(value) for value in getattr(env, "__dict__", {}).values())]
    return any(owner.__module__.partition(".")[0] in _OPENGL or owner.__name__ == "MujocoEnv" for owner in owners)


def backends(environ: dict[str, str] | None = None) -> tuple[str | None, ...]:
    """The rendering back ends to try, in order; only the user's choice if there is one.

    Args:
        environ: the environment variables; None uses those of this process.

    Returns:
        Values of `MUJOCO_GL` to try; None leaves it unchanged.

    Example:
        >>> backends({}), backends({"MUJOCO_GL": "osmesa"}), backends({"DISPLAY": ":0"})
        (('egl', 'osmesa'), (None,), (None, 'egl', 'osmesa'))
    """
    variables = os.environ if environ is None else environ
    if variables.get(VARIABLE):
        return (None,)
    return (None, *HEADLESS) if variables.get("DISPLAY") or variables.get("WAYLAND_DISPLAY") else HEADLESS


def with_backends(work: Callable[[], T], choices: Sequence[str | None], *, time_limit: float = TIME_LIMIT) -> T:
    """Run work in a child process, with the first back end under which it succeeds.

    Args:
        work: the function to call; its return value is pickled.
        choices: values of `MUJOCO_GL` to try, each in its own child process.
        time_limit: the time limit for each, in seconds.

    Raises:
        SymcheckError: the work fails under every back end; the message gives each outcome and the setting to change.

    Example:
        >>> import os
        >>> with_backends(lambda: os.environ["MUJOCO_GL"], ["egl"])
        'egl'
    """
    ends = []
    for choice in choices:
        try:
            return in_child(work, {} if choice is None else {VARIABLE: choice}, time_limit=time_limit)
        except SymcheckError as error:
            ends.append(f"with {_name(choice)}, {error.problem}")
    raise SymcheckError(
        f"rendering failed here: {'; '.join(ends)}.",
        remedy=f"Set {VARIABLE} to an installed back end (egl, osmesa, or glfw if there is a display).",
    )


def _name(choice: str | None) -> str:
    value = os.environ.get(VARIABLE) if choice is None else choice
    return f"{VARIABLE}={value}" if value else f"{VARIABLE} unset"


def in_child(work: Callable[[], T], environ: dict[str, str], *, time_limit: float = TIME_LIMIT) -> T:
    """Run work in a forked child process.

    Args:
        work: the function to call there; its return value is pickled.
        environ: environment variables to set there first.
        time_limit: seconds after which the child is killed.

    Returns:
        The return value of `work`.

    Raises:
        SymcheckError: the work raised, was killed by a signal or took too long, or forking is not safe here.

    Example:
        >>> in_child(lambda: 6 * 7, {})
        42
    """
    if platform.system() != "Linux":  # forking is unavailable, or unsafe after a graphics library was loaded
        raise SymcheckError("this system cannot isolate the rendering from the verification")
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _child(work, environ, writing)
    # Otherwise the parent would keep the writing end open, and reading would never end.
    os.close(writing)
    try:
        answer = _read_until_closed(reading, time_limit)
    finally:
        os.close(reading)
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)  # the child has finished its work, but might not exit by itself
        status = os.waitpid(child, 0)[1]
    opened: T = _unpack_answer(answer, status)
    return opened


def _child(work: Callable[[], Any], environ: dict[str, str], writing: int) -> None:
    """Send the result and exit, without the parent's handlers, exit functions and buffered output."""
    try:
        faulthandler.disable()  # a crash here is a result and must not print a report on the terminal
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1)
        os.dup2(silent, 2)  # drivers print errors there, below Python
        os.environ.update(environ)
        answer = _ANSWER + pickle.dumps(work())
    except BaseException as error:  # every exception ends the child: the caller's code must not run twice
        answer = _FAILURE + f"{type(error).__name__}: {error}".encode("utf-8", "replace")
    with contextlib.suppress(OSError), os.fdopen(writing, "wb") as stream:
        stream.write(answer)
    os._exit(0)


def _read_until_closed(reading: int, time_limit: float) -> bytes | None:
    """Everything that the child writes until it closes the pipe; None if it does not do so within the limit."""
    end = time.monotonic() + time_limit
    parts: list[bytes] = []
    # Read continuously: a result larger than the pipe's buffer would block the child forever.
    while select.select([reading], [], [], max(0.0, end - time.monotonic()))[0]:
        part = os.read(reading, 1 << 16)
        if not part:
            return b"".join(parts)
        parts.append(part)
    return None


def _unpack_answer(answer: bytes | None, status: int) -> Any:
    if answer is None:
        raise SymcheckError("it did not finish in time")
    if answer.startswith(_ANSWER):
        return pickle.loads(answer[1:])  # safe to unpickle: written by the child, which is the same program
    if answer.startswith(_FAILURE):
        raise SymcheckError(answer[1:].decode("utf-8"))
    # SIGKILL is always sent; it has an effect only if the child had not exited.
    killed = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    name = signal.Signals(killed).name if killed in set(signal.Signals) else f"exit status {status}"
    raise SymcheckError(f"the process ended unexpectedly ({name})")
