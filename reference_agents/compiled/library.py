"""Builds `learn.c` with the machine's C compiler, once for each compiler, processor and source.

The library is stored in the user's cache. If there is no compiler, or it fails, an error with the reason is raised, and
the caller continues without it.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from pathlib import Path

_SOURCE = Path(__file__).with_name("learn.c")
# Sums are not reordered, because results must not depend on the register width. The `errno` of a square root is not
# used.
_FLAGS = ("-O3", "-march=native", "-ffp-contract=fast", "-fno-math-errno", "-shared", "-fPIC", "-std=gnu11")
_SECONDS = 120


class NoCompilerError(Exception):
    """`learn.c` cannot be used; the message gives the reason."""


@functools.cache
def load_library() -> ctypes.CDLL:
    """The compiled `learn.c`.

    Raises:
        NoCompilerError: there is no compiler, or its output cannot be loaded.
    """
    compiler = shutil.which(os.environ.get("CC") or "cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        raise NoCompilerError("no C compiler (cc, gcc or clang, or the one in CC) was found")
    digest = hashlib.sha256(_SOURCE.read_bytes())
    digest.update(repr((compiler, _FLAGS, platform.machine(), _processor())).encode())
    built = _cache_folder() / f"learn-{digest.hexdigest()[:24]}.so"
    try:
        if not built.exists():
            _run_compiler(compiler, built)
        library = ctypes.CDLL(str(built))
    except (OSError, subprocess.SubprocessError) as error:
        detail = getattr(error, "stderr", None) or error
        raise NoCompilerError(f"{compiler} could not build the C code ({str(detail).strip()[:300]})") from error
    for sizes in (library.matrix_floats, library.scratch_floats):
        sizes.restype = ctypes.c_int64
    for work in (library.prepare, library.answer, library.play_carts, library.learn):
        work.restype = None
    return library


def _run_compiler(compiler: str, built: Path) -> None:
    built.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=built.parent) as folder:
        made = Path(folder) / "learn.so"
        command = [compiler, *_FLAGS, str(_SOURCE), "-o", str(made), "-lm"]
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=_SECONDS)
        # Written atomically, because two processes may build at the same time.
        made.replace(built)


def _cache_folder() -> Path:
    root = os.environ.get("XDG_CACHE_HOME")
    return (Path(root) if root else Path.home() / ".cache") / "symcheck" / "compiled"


def _processor() -> str:
    """The properties on which `-march=native` depends; several machines may share a cache."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return "\n".join(line for line in lines[:40] if line.startswith(("model", "flags", "Features", "CPU part")))
