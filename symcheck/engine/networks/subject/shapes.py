"""The shape of a network's input, if the user did not give it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from symcheck.entries.forms import AffineEntry, TreeEntry
from symcheck.entries.lie_forms import ElementEntry
from symcheck.errors import SpecError
from symcheck.symmetry.symmetry import Symmetry


def input_shape(net: nn.Module, symmetry: Symmetry, given: tuple[int, ...] | None) -> tuple[int, ...]:
    """The shape of one input, without the batch axis.

    Args:
        net: the network.
        symmetry: the claim; a vector length in it determines the shape.
        given: the user's value, or None.

    Returns:
        The given shape; otherwise the symmetry's vector length, an `example_input` of the network, the size of its
        first linear layer if the symmetry can act on it, or the smallest size on which the symmetry can act.

    Raises:
        SpecError: none of these sources determines the shape.
    """
    if given is not None:
        return given
    example = _example(net)
    size = _vector_length(symmetry)
    if size is not None:
        # An example with the same number of entries may be an image.
        if example is not None and _count(example) == size:
            return example
        return (size,)
    if example is not None:
        return example
    first, least = _first_layer(net), _least_length(symmetry)
    # the first linear layer may take features that are computed from the input
    if isinstance(first, nn.Linear) and first.in_features >= least:
        return (first.in_features,)
    if least:
        return (least,)
    raise SpecError(
        "the shape of the network's input cannot be determined from the symmetry or the network.",
        where="--input-shape",
        remedy="Give the shape of one input (--input-shape 1,21,21), name an environment (--env ID), or give the "
        "network an attribute example_input.",
    )


def mismatch(net: nn.Module, shape: tuple[int, ...]) -> SpecError | None:
    """The message for a network that did not run on inputs of a shape, if its first layer expects another size."""
    first = _first_layer(net)
    if not isinstance(first, nn.Linear) or first.in_features == shape[-1]:
        return None
    return SpecError(
        f"acts on {_count(shape)} components, but the network's first layer takes {first.in_features}.",
        where="observation",
        remedy="Give the symmetry of this network's input, or the shape of the input with --input-shape.",
    )


def _vector_length(symmetry: Symmetry) -> int | None:
    return next((entry.dim for entry in symmetry.observation if isinstance(entry, AffineEntry)), None)


def _least_length(symmetry: Symmetry) -> int:
    """The smallest vector length on which rotations of a continuous group can act; 0 if there are none."""
    return max((entry.least for entry in symmetry.observation if isinstance(entry, ElementEntry)), default=0)


def example_shapes(net: nn.Module, symmetry: Symmetry) -> Any:
    """The shapes, without the batch axis, of an `example_input` that is a dictionary or tuple of tensors.

    Args:
        net: the network.
        symmetry: the claim; only claims with one entry per sub-space concern such inputs.

    Returns:
        A dictionary or tuple of shapes; None if there is no such example.
    """
    if not any(isinstance(entry, TreeEntry) for entry in symmetry.observation):
        return None
    example: Any = getattr(net, "example_input", None)
    if isinstance(example, Mapping):
        shapes: Any = {key: _shape(item) for key, item in example.items()}
        return None if None in shapes.values() else shapes
    if isinstance(example, tuple | list):
        shapes = tuple(_shape(item) for item in example)
        return None if None in shapes else shapes
    return None


def _example(net: nn.Module) -> tuple[int, ...] | None:
    return _shape(getattr(net, "example_input", None))


def _shape(example: Any) -> tuple[int, ...] | None:
    if not isinstance(example, torch.Tensor) and not hasattr(example, "shape"):
        return None
    shape = tuple(int(n) for n in example.shape)
    # An example with one axis is one input; with more, the first is its batch.
    return shape[1:] if len(shape) > 1 else shape


def _first_layer(net: nn.Module) -> nn.Module | None:
    # The first module that has parameters itself; containers have none.
    return next((m for m in net.modules() if next(m.parameters(recurse=False), None) is not None), None)


def _count(shape: tuple[int, ...]) -> int:
    count = 1
    for n in shape:
        count *= n
    return count
