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
from gymnasium import spaces
from torch import nn

from symcheck.engine.networks.subject.claims import InputClaim, Motion, entry_motion, joined_motion
from symcheck.engine.networks.subject.integers import as_integers, whole_leaves
from symcheck.engine.networks.subject.outputs import is_tensordict
from symcheck.engine.networks.subject.precision import copy_network
from symcheck.engine.networks.subject.shapes import example_shapes
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
        whole: the leaves that the network receives as integers, as returned by `integers.whole_leaves`.
    """

    def __init__(self, net: nn.Module, shapes: Shapes, whole: Mapping[Any, int | None] | None = None) -> None:
        super().__init__()
        self.structured_input = net
        self.shapes = dict(shapes)
        self.whole = dict(whole or {})
        # decided before the first call, so that this call computes the same as later ones
        self._takes_tensordict = takes_tensordict(net, self.shapes)

    def forward(self, flat: torch.Tensor) -> Any:
        """Split (batch, size) into the leaves and run the network on them."""
        leaves: dict[Any, torch.Tensor] = {}
        start = 0
        for key, shape in self.shapes.items():
            size = math.prod(shape)
            leaf = flat[:, start : start + size].reshape(-1, *shape)
            leaves[key] = as_integers(leaf, self.whole[key]) if key in self.whole else leaf
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


def of_leaves(net: nn.Module, symmetry: Symmetry, given: Any, space: Any) -> tuple[FlatInput, InputClaim] | None:
    """A network of several tensors as a network of their flat vector, and the action on that vector.

    Args:
        net: the network; copied before any run.
        symmetry: the claim.
        given: the user's input shape, or None.
        space: the observation space, or None.

    Returns:
        None if neither the user, an example, the space nor the claim says that the network takes several tensors.

    Raises:
        SpecError: an entry names a missing leaf, does not fit its leaf, or is a callable.
    """
    leaves, known = shapes_of(example_shapes(net, symmetry) if given is None else given), leaf_shapes(space)
    if leaves is None and given is None:
        leaves = known or claimed_shapes(net, symmetry)
    if leaves is None:
        return None
    if leaves == known:  # the domain has the order of the space
        return FlatInput(net, known, whole_leaves(net, space, known)), flat_claim(symmetry, known)
    return FlatInput(net, leaves), flat_claim(symmetry, leaves)


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


def leaf_shapes(space: Any) -> dict[Any, tuple[int, ...]] | None:
    """Leaf shapes of a Dict (by key) or Tuple (by position); None for other spaces, or parts without a fixed size.

    A Discrete leaf is the one-hot vector on which a permutation of its values acts.

    Example:
        >>> from gymnasium import spaces
        >>> leaf_shapes(spaces.Dict(gear=spaces.Discrete(3), at=spaces.Box(-1, 1, (2,))))
        {'gear': (3,), 'at': (2,)}
    """
    if not isinstance(space, spaces.Dict | spaces.Tuple):
        return None
    parts = space.spaces.items() if isinstance(space, spaces.Dict) else enumerate(space.spaces)
    shapes = {key: (int(part.n),) if isinstance(part, spaces.Discrete) else part.shape for key, part in parts}
    return None if None in shapes.values() else {key: shape for key, shape in shapes.items() if shape is not None}


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
