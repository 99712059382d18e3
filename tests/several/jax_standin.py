"""What symcheck uses of JAX, in NumPy, so that CI runs the adapters: `jit` and `vmap` return the function itself.

Functions are written for arrays with slots along the first axis, as `vmap` would make them.
"""

from __future__ import annotations

import dataclasses
import types

import numpy as np


def _children(value):
    """(rebuild, parts) of a container; None of a leaf."""
    if isinstance(value, dict):
        return (lambda parts: dict(zip(value, parts, strict=True))), list(value.values())
    if hasattr(value, "_asdict"):
        return (lambda parts: type(value)(*parts)), list(value)
    if isinstance(value, tuple | list):
        return type(value), list(value)
    if dataclasses.is_dataclass(value):
        names = [field.name for field in dataclasses.fields(value)]
        return (lambda parts: type(value)(*parts)), [getattr(value, name) for name in names]
    return None


def leaves(value):
    inner = _children(value)
    return [value] if inner is None else [leaf for part in inner[1] for leaf in leaves(part)]


def tree_map(function, first, *others):
    inner = _children(first)
    if inner is None:
        return function(first, *others)
    parts = zip(inner[1], *(_children(other)[1] for other in others), strict=True)
    return inner[0]([tree_map(function, *part) for part in parts])


def unflatten(structure, values):
    rest = iter(values)
    return tree_map(lambda _: next(rest), structure)


def module():
    """A module to stand at `sys.modules["jax"]`."""
    made = types.ModuleType("jax")
    made.jit = made.vmap = lambda function: function
    made.numpy = np
    made.tree = types.SimpleNamespace(leaves=leaves, map=tree_map, unflatten=unflatten, structure=lambda value: value)
    made.random = types.SimpleNamespace(
        PRNGKey=lambda seed: np.array([0, seed], np.uint32),
        split=lambda key, n: np.random.default_rng(key).integers(0, 2**32, (n, 2), dtype=np.uint32),
    )
    return made
