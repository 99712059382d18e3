"""Shape arithmetic in exported ONNX graphs: NumPy on the host, on integers only.

A `Reshape` to (batch, 64, 2) is exported as a dozen nodes that read the batch size and assemble the shape. None of them
depends on the network's values, so none is traced.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symcheck.array_types import Ints


def on_host(kind: str, operands: Sequence[Any]) -> bool:
    """Whether a node is shape arithmetic: it reads a shape, or all its inputs are integers on the host.

    Example:
        >>> on_host("Add", [np.array([1]), np.array([2])]), on_host("Relu", [np.array([1])])
        (True, False)
    """
    if kind == "Shape":
        return True
    given = [operand for operand in operands if operand is not None]
    return kind in HOST and bool(given) and all(isinstance(operand, np.ndarray | np.generic) for operand in given)


def _shape(a: dict[str, Any], x: Any) -> Ints:
    return np.array(tuple(x.shape)[slice(a.get("start", 0), a.get("end"))], dtype=np.int64)


def _slice(a: dict[str, Any], x: Ints, starts: Ints, ends: Ints, axes: Any = None, steps: Any = None) -> Ints:
    chosen = range(len(starts)) if axes is None else axes.tolist()
    strides = [1] * len(starts) if steps is None else steps.tolist()
    for axis, start, end, step in zip(chosen, starts.tolist(), ends.tolist(), strides, strict=True):
        # Move the sliced axis to the front and back.
        x = np.moveaxis(np.moveaxis(x, axis, 0)[start:end:step], 0, axis)
    return x


def _axes_argument(a: dict[str, Any], axes: Any) -> tuple[int, ...]:
    return tuple(int(axis) for axis in (a.get("axes", ()) if axes is None else axes.tolist()))


def _squeeze(a: dict[str, Any], x: Ints, axes: Any = None) -> Ints:
    # None squeezes all axes of size 1.
    return np.squeeze(x, axis=_axes_argument(a, axes) or None)


def _divide(a: dict[str, Any], x: Ints, y: Ints) -> Ints:
    return np.asarray(np.trunc(x / y), dtype=np.int64)  # ONNX truncates integer division toward zero


HOST: dict[str, Callable[..., Any]] = {
    "Shape": _shape,
    "Slice": _slice,
    "Gather": lambda a, x, indices: np.take(x, indices, axis=a.get("axis", 0)),
    "Concat": lambda a, *xs: np.concatenate([np.atleast_1d(x) for x in xs], axis=a["axis"]),
    "Add": lambda a, x, y: x + y,
    "Sub": lambda a, x, y: x - y,
    "Mul": lambda a, x, y: x * y,
    "Div": _divide,
    "Mod": lambda a, x, y: np.fmod(x, y) if a.get("fmod") else np.mod(x, y),
    "Reshape": lambda a, x, shape: np.reshape(x, shape.tolist()),
    "Unsqueeze": lambda a, x, axes=None: np.expand_dims(x, _axes_argument(a, axes)),
    "Squeeze": _squeeze,
    "Cast": lambda a, x: x,
    "Identity": lambda a, x: x,
}
"""Every kind of node that is evaluated on the host: maps attributes and operands to a NumPy array."""
