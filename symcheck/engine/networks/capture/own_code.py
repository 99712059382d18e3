"""Which code is the network's own, and neither torch's, the standard library's nor ours."""

from __future__ import annotations

import sysconfig
import types
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

LIBRARY = tuple(str(Path(path)) for path in (sysconfig.get_paths()["stdlib"], Path(torch.__file__).parent))
PACKAGES = ("site-packages", "dist-packages")
_BESIDE_NAMES = (
    "sympy mpmath networkx typing_extensions filelock fsspec jinja2 triton "
    "_pytest pytest pluggy coverage hypothesis debugpy pydevd absl rich loguru sentry_sdk "
    "jax jaxlib jaxtyping equinox flax wadler_lindig"
)
_BESIDE = frozenset(_BESIDE_NAMES.split())
"""Packages that torch itself runs while it captures, tools that watch or receive what is logged, and libraries of pure
functions: what those keep between calls are compiled functions and their names."""
GENERATED = ("<eval_with_key", "<frozen", "<__array_function__")
"""Names of what is no file: graphs of torch, imports, calls of NumPy. A user's own code in a prompt has others."""
_OWN = str(Path(__file__).parents[3])


def is_importing(frame: types.FrameType | None, outermost: types.FrameType) -> bool:
    """Whether a frame runs because something is imported: a finder, or the body of a module.

    Torch imports parts of itself when they are first needed, and what packages do then is no code of the network.

    Args:
        frame: that runs.
        outermost: below which is looked; it may run in an import itself.
    """
    while frame is not None and frame is not outermost:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def is_own_code(file: str, names: Mapping[str, Any]) -> bool:
    """Whether code of this file, with these globals, is the network's own.

    What is typed at a prompt, or made by `exec` for a dataclass, has no file: it belongs to the module of its globals.
    """
    if not file.startswith("<"):
        return is_own_file(file)
    origin = names.get("__file__")
    if str(names.get("__name__")).startswith("namedtuple_"):  # made by the standard library
        return False
    return not file.startswith(GENERATED) and (origin is None or is_own_file(str(origin)))


@cache
def is_own_file(file: str) -> bool:
    """Whether code of this file is the network's own, and neither torch's, the standard library's nor ours."""
    if file.startswith(GENERATED):
        return False
    if any(part in file for part in PACKAGES):
        parts = {Path(part).stem for part in Path(file).parts}
        return not file.startswith((LIBRARY[1], str(Path(np.__file__).parent), _OWN)) and not _BESIDE & parts
    return not file.startswith((*LIBRARY, _OWN))
