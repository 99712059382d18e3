"""Functions whose results depend on more than their arguments: on a clock, files, randomness, or how a call is made."""

from __future__ import annotations

import functools
import random
import time
import types
from typing import Any

import numpy as np
import torch

from symcheck.engine.networks.capture.own_code import is_own_class

_OUTSIDE_NAMES = (
    "time os posix random _random secrets uuid datetime threading _thread socket subprocess io _io select gc "
    "inspect ctypes _ctypes tempfile pathlib weakref "
)
OUTSIDE = frozenset(_OUTSIDE_NAMES.split())
"""Modules whose functions depend on more than their arguments: clocks, environment variables, files, randomness,
memory."""
_PURE_NAMES = (
    "builtins math cmath operator _operator functools _functools itertools collections _collections _collections_abc "
    "typing types abc _abc enum copy copyreg contextlib dataclasses numbers re _sre fractions "
    "bisect _bisect heapq _heapq array struct _struct keyword"
)
PURE = frozenset(_PURE_NAMES.split())
"""Standard-library modules whose functions depend on their arguments only."""
_OPERATORS = tuple(f"torch._C._{name}" for name in ["nn", "fft", "linalg", "special", "sparse"])
_ASKING_NAMES = (
    "id hash __import__ globals vars dir open input exec eval compile breakpoint cache_info cache_clear geterr "
    "get_printoptions locals is_grad_enabled is_inference_mode_enabled is_autocast_enabled "
    "is_autocast_cpu_enabled _getframe is_contiguous stride storage_offset data_ptr getrefcount is_compiling "
    "get_default_dtype result_type promote_types can_cast "
    "is_anomaly_enabled get_num_threads initial_seed get_rng_state perf_counter monotonic "
    "_is_functional_tensor fromfile memmap get_device is_shared "
)
ASKING = frozenset(_ASKING_NAMES.split())
"""Functions that reveal how a call is made, or where a tensor is stored, but not its values."""
_CHANCE = (random.Random, np.random.RandomState, np.random.Generator, torch.Generator)
SCALARS = (type(None), bool, int, float, complex, str, bytes)
PLAIN = (*SCALARS, tuple, list, dict, set, frozenset)
Cached = functools._lru_cache_wrapper
"""The type of functions decorated with `functools.cache` or `lru_cache`."""
FUNCTIONS = (
    *(types.BuiltinFunctionType, types.MethodDescriptorType, types.ClassMethodDescriptorType),
    *(types.MethodWrapperType, types.WrapperDescriptorType),
)
"""The kinds of compiled functions, bound or not."""


def asks_more_than_its_arguments(function: Any) -> bool:
    """Whether the result of a compiled function may depend on more than its arguments; True if unknown."""
    owner, name = getattr(function, "__self__", None), getattr(function, "__name__", "")
    owner = getattr(function, "__objclass__", None) if owner is None else owner
    if name in ASKING or isinstance(owner, _CHANCE):
        return True
    if function is time.sleep:  # it returns nothing
        return False
    if owner is None or isinstance(owner, PLAIN):
        module = getattr(function, "__module__", None) or ""
    elif isinstance(owner, types.ModuleType | type):
        module = owner.__name__ if isinstance(owner, types.ModuleType) else owner.__module__
    else:
        module = type(owner).__module__
    if isinstance(owner, type) and is_own_class(owner):
        return False
    # torch keeps operators in separate modules from the functions that read or change settings
    if isinstance(owner, types.ModuleType) and module.startswith("torch"):
        return not module.startswith(_OPERATORS)
    return bool(module) and module.partition(".")[0] not in (*PURE, "torch", "numpy")
