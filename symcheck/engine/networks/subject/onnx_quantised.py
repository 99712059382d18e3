"""Quantised nodes of ONNX graphs as the floating-point functions that they approximate.

Structure is tested without rounding: quantising an activation counts as the identity, like casts, and integer products
are products of the represented numbers. One effect is more than rounding: exporters drop a ReLU before codes that start
at zero, because saturation has the same effect. The effect of rounding and saturation is measured by running the file
itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F  # noqa: N812

from symcheck.array_types import Array

LEAST_CODE = -127
"""As in `artefacts`: -128 counts as -127, the smallest code with a counterpart of the opposite sign."""


def numbers(codes: Array, scale: Any, zero: Any, axis: int = 1) -> npt.NDArray[np.float64]:
    """(code - zero) * scale, per tensor or along an axis.

    Args:
        codes: integers, any shape.
        scale: one number, or one per entry of the axis.
        zero: likewise.
        axis: the axis of scales and zeros that are vectors.

    Returns:
        An array of the codes' shape.

    Example:
        >>> numbers(np.array([-128, 127], dtype=np.int8), 0.5, 0).tolist()
        [-63.5, 63.5]
    """
    scale, zero = (_along(np.asarray(item), codes.ndim, axis) for item in (scale, zero))
    wide = codes.astype(np.float64)
    if codes.dtype == np.int8:
        wide = np.where(zero == 0, np.maximum(wide, LEAST_CODE), wide)
    return np.asarray((wide - zero) * np.asarray(scale, dtype=np.float64))


def _along(item: Array, ndim: int, axis: int) -> Array:
    if item.size == 1:
        return item.reshape(())
    shape = [1] * ndim
    # Shape -1 along the axis and 1 elsewhere, for broadcasting.
    shape[axis] = -1
    return item.reshape(shape)


def fold_constants(
    kind: str,
    inputs: Sequence[str],
    output: str,
    attributes: dict[str, Any],
    stored: Callable[[str], Array | None],
    store: Callable[[str, Array], None],
) -> bool:
    """Replace quantised weights by the numbers they represent, once; return whether the node is done.

    Args:
        kind: the kind of the node.
        inputs: names of its inputs.
        output: name of its output.
        attributes: the attributes of the node.
        stored: a constant by name, None if it is computed.
        store: stores a floating-point constant under a name.
    """
    if kind == "DequantizeLinear":
        codes, scale = stored(inputs[0]), stored(inputs[1])
        if codes is None or scale is None or codes.dtype.kind not in "iu":
            # Codes that are computed while the graph runs have no fixed values.
            return False
        zero = stored(inputs[2]) if len(inputs) > 2 else None
        store(output, numbers(codes, scale, 0 if zero is None else zero, attributes.get("axis", 1)))
        return True
    if kind in ("MatMulInteger", "ConvInteger"):
        codes = stored(inputs[1])
        if codes is not None and codes.dtype.kind in "iu":
            zero = stored(inputs[3]) if len(inputs) > 3 and inputs[3] else None
            # The scale is applied by a later node; the zero point belongs to the columns of a matrix or the filters of
            # a convolution.
            store(inputs[1], numbers(codes, 1.0, 0 if zero is None else zero, codes.ndim - 1 if kind[0] == "M" else 0))
    return False


def _quantise(a: dict[str, Any], x: torch.Tensor, scale: Any, zero: Any = None) -> torch.Tensor:
    """The identity; a ReLU (or its mirror image) if the codes start or end at zero."""
    if isinstance(zero, np.ndarray) and zero.size == 1 and zero.dtype.kind in "iu":
        limits = np.iinfo(zero.dtype)
        # If the zero point is the smallest code, negative numbers are not representable.
        if int(zero.item()) == limits.min:
            return torch.relu(x)
        if int(zero.item()) == limits.max:
            return torch.neg(torch.relu(torch.neg(x)))
    return x


def _quantise_dynamically(a: dict[str, Any], x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, Array]:
    # Scale 1 and zero point 0: quantising by the input's own range is rounding only.
    return x, torch.ones(()), np.zeros((), dtype=np.int64)


def _conv_integer(a: dict[str, Any], x: torch.Tensor, w: torch.Tensor, *zeros: Any) -> torch.Tensor:
    axes = w.ndim - 2
    pads = list(a.get("pads") or [0] * (2 * axes))
    x = F.pad(x, [n for i in reversed(range(axes)) for n in (pads[i], pads[axes + i])])
    strides, dilations = a.get("strides", [1] * axes), a.get("dilations", [1] * axes)
    function = F.conv2d if axes == 2 else F.conv1d
    return function(x, w, None, tuple(strides), 0, tuple(dilations), a.get("group", 1))


QUANTISED: dict[str, Callable[..., Any]] = {
    "QuantizeLinear": _quantise,
    "DequantizeLinear": lambda a, x, *rest: x,
    "DynamicQuantizeLinear": _quantise_dynamically,
    "MatMulInteger": lambda a, x, w, *zeros: torch.matmul(x, w),
    "ConvInteger": _conv_integer,
}
"""Supported kinds of nodes: map attributes and operands to results."""
