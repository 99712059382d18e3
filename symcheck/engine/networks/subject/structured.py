"""Networks that take dictionaries or tuples of tensors, as networks of one flat vector.

The flat vector is the concatenation of the leaves; a wrapper splits it again. A symmetry with one entry per sub-space
becomes one block-diagonal action on the flat vector.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import torch
from torch import nn

from symcheck.engine.networks.subject.claims import InputClaim, Motion, entry_motion, joined_motion
from symcheck.engine.networks.subject.outputs import is_tensordict
from symcheck.engine.networks.subject.precision import copy_network
from symcheck.entries.forms import AffineEntry, IdentityEntry, TreeEntry
from symcheck.errors import SpecError
from symcheck.symmetry.symmetry import Symmetry

Shapes: TypeAlias = Mapping[Any, tuple[int, ...]]


class FlatInput(nn.Module):
    """A network of a dictionary (or tuple, or `TensorDict`) of tensors, as a network of one flat vector.

    A network that takes a `TensorDict` often returns the same one with its results added; its inputs are then not
    counted as outputs.

    Args:
        net: the network; its module names get the prefix `subject.WRAPPED`.
        shapes: maps each key to the shape of its leaf, without the batch axis; keys 0, 1, ... for a tuple.
    """

    def __init__(self, net: nn.Module, shapes: Shapes) -> None:
        super().__init__()
        self.structured_input = net
        self.shapes = dict(shapes)
        # decided before the first call, so that this call computes the same as later ones
        self._takes_tensordict = takes_tensordict(net, self.shapes)

    def forward(self, flat: torch.Tensor) -> Any:
        """Split (batch, size) into the leaves and run the network on them."""
        leaves: dict[Any, torch.Tensor] = {}
        start = 0
        for key, shape in self.shapes.items():
            size = math.prod(shape)
            leaves[key] = flat[:, start : start + size].reshape(-1, *shape)
            start += size
        # Keys 0, 1, 2, ... stand for a tuple.
        if list(leaves) == list(range(len(leaves))):
            return self.structured_input(tuple(leaves.values()))
        if not self._takes_tensordict:
            return self.structured_input(leaves)
        made = self.structured_input(as_tensordict(leaves))
        if not is_tensordict(made):
            return made
        wanted = getattr(self.structured_input, "out_keys", None) or [key for key in made.keys() if key not in leaves]  # noqa: SIM118
        return {key: made[key] for key in wanted}


def as_tensordict(leaves: Mapping[str, torch.Tensor]) -> Any:
    """The leaves as a `TensorDict` of their common batch axis."""
    return sys.modules["tensordict"].TensorDict(dict(leaves), batch_size=[next(iter(leaves.values())).shape[0]])


def takes_tensordict(net: nn.Module, shapes: Shapes) -> bool:
    """Whether a network takes a `TensorDict`: it declares its keys, or does not run on a plain dictionary.

    The package is only considered if the network's own code has loaded it. A copy of the network runs, on zeros.
    """
    if "tensordict" not in sys.modules:
        return False
    if hasattr(net, "in_keys"):
        return True
    dtype = next((item.dtype for item in net.parameters() if item.is_floating_point()), torch.float32)
    try:
        with torch.no_grad():
            copied = copy_network(net, device=torch.device("cpu")).eval()
            copied({key: torch.zeros(2, *shape, dtype=dtype) for key, shape in shapes.items()})
    except Exception:  # its code may raise any exception on a dictionary; errors on the other type are reported there
        return True
    return False


def shapes_of(given: Any) -> dict[Any, tuple[int, ...]] | None:
    """Leaf shapes, if an input shape is a mapping or a sequence of shapes; None if it is one shape.

    Example:
        >>> shapes_of({"image": (1, 9, 9), "speed": (2,)})["speed"]
        (2,)
        >>> shapes_of((1, 9, 9)) is None
        True
    """
    if isinstance(given, Mapping):
        return {key: tuple(shape) for key, shape in given.items()}
    if isinstance(given, Sequence) and given and all(isinstance(item, Sequence) for item in given):
        return {i: tuple(shape) for i, shape in enumerate(given)}
    return None


def claimed_shapes(net: nn.Module, symmetry: Symmetry) -> dict[Any, tuple[int, ...]] | None:
    """The shapes of named vectors from the claim's entries, if the network runs on such a dictionary.

    Args:
        net: the network; copied before any run.
        symmetry: the claim.

    Returns:
        None if an entry has no fixed length, or if the network does not run.
    """
    trees = [entry for entry in symmetry.observation if isinstance(entry, TreeEntry)]
    children = {key: child for entry in trees for key, child in entry.children.items()}
    shapes: dict[Any, tuple[int, ...]] = {
        key: (child.dim,) for key, child in children.items() if isinstance(child, AffineEntry)
    }
    if not shapes or len(shapes) < len(children):
        return None
    try:
        with torch.no_grad():
            FlatInput(copy_network(net, device=torch.device("cpu")).eval(), shapes)(
                torch.zeros(2, sum(math.prod(shape) for shape in shapes.values()))
            )
    except Exception:  # its code may raise any exception on unsupported inputs
        return None
    return shapes


def flat_claim(symmetry: Symmetry, shapes: Shapes) -> InputClaim:
    """The symmetry's observation entries on the flat vector of all leaves.

    Args:
        symmetry: the claim, with one entry per sub-space; a missing entry is the identity.
        shapes: the shapes of the leaves, in their order in the flat vector.

    Raises:
        SpecError: an entry names a missing leaf, does not fit its leaf, or is a callable.
    """
    motions: list[Motion] = []
    for i, entry in enumerate(symmetry.observation):
        if not isinstance(entry, TreeEntry | IdentityEntry):
            raise SpecError(
                f"expected a mapping of entries, one per leaf of {list(shapes)}, got {type(entry).__name__}.",
                where=f"observation[{i}]",
            )
        children = entry.children if isinstance(entry, TreeEntry) else {}
        unknown = [key for key in children if key not in shapes]
        # Leaves missing from the mapping are fixed; names that are not leaves are errors.
        if unknown:
            raise SpecError(f"expected leaves of {list(shapes)}, got {unknown}.", where=f"observation[{i}]")
        parts = [
            entry_motion(children.get(key, IdentityEntry()), shape, f"observation[{i}][{key!r}]", f"input {key!r}")
            for key, shape in shapes.items()
        ]
        motions.append(joined_motion(parts, f"observation[{i}]"))
    return InputClaim((sum(math.prod(shape) for shape in shapes.values()),), tuple(motions))
