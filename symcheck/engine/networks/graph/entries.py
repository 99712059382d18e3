"""Tensors of ids, and the operators that only rearrange entries: torch's own, run on the ids."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from symcheck.array_types import Floats
from symcheck.engine.networks.graph.nodes import Graph, NoCertificateError
from symcheck.statements.statement import state

_MOVING_NAMES = (
    "view _unsafe_view reshape permute t transpose unsqueeze squeeze expand flatten unflatten select slice split "
    "split_with_sizes unbind cat stack flip roll repeat clone alias detach _to_copy contiguous lift_fresh_copy lift "
    "reflection_pad1d reflection_pad2d reflection_pad3d replication_pad1d replication_pad2d replication_pad3d "
    "as_strided diagonal tril triu index_select narrow movedim swapaxes rot90 channel_shuffle pixel_shuffle "
    "pixel_unshuffle im2col view_as_real _reshape_alias unfold upsample_nearest1d upsample_nearest2d "
    "upsample_nearest3d _upsample_nearest_exact2d expand_as view_as _conj unsafe_split unsafe_chunk chunk copy "
    "slice_scatter select_scatter gather diag_embed repeat_interleave "
)
MOVING = frozenset(_MOVING_NAMES.split())
"""Operators whose result holds entries of their arguments."""
INDEXED = frozenset(["index", "_unsafe_index", "index_select", "gather", "repeat_interleave"])
"""Operators that take integer tensors as arguments."""
ZEROING = frozenset(["tril", "triu", "diag_embed", "im2col"])
"""Operators that fill in zeros."""


@dataclass(eq=False)
class Entries:
    """A tensor of ids, with the dtype of the tensor that it represents."""

    ids: torch.Tensor
    dtype: torch.dtype

    @property
    def array(self) -> Floats:
        """The ids as an array."""
        return np.asarray(self.ids.numpy())

    @property
    def is_constant(self) -> bool:
        """Whether no entry depends on the input."""
        return bool((self.ids < 0).all())

    def like(self, ids: Any) -> Entries:
        """Other ids, with the same dtype."""
        # `ascontiguousarray` gives arrays without axes one axis
        return Entries(torch.from_numpy(np.ascontiguousarray(ids, dtype=np.float64)).reshape(np.shape(ids)), self.dtype)


def constant(graph: Graph, tensor: torch.Tensor, name: str = "") -> Entries:
    """The ids of a tensor of numbers."""
    dense = tensor if tensor.layout == torch.strided else tensor.to_dense()
    numbers = dense.detach().cpu().to(torch.float64).numpy()
    return Entries(torch.from_numpy(np.array(graph.constants(numbers, name))), tensor.dtype)


def as_tensor(graph: Graph, entries: Entries) -> torch.Tensor:
    """The numbers of a constant."""
    return torch.from_numpy(np.array(graph.numbers(entries.array))).reshape(entries.ids.shape).to(entries.dtype)


def mapped(item: Any, change: Any) -> Any:
    """A nested argument with a function applied to its `Entries`."""
    if isinstance(item, Entries):
        return change(item)
    if isinstance(item, list | tuple):
        return type(item)(mapped(part, change) for part in item)
    if isinstance(item, dict):
        return {key: mapped(part, change) for key, part in item.items()}
    return item


def leaves(item: Any) -> list[Entries]:
    """All `Entries` in a nested argument."""
    if isinstance(item, Entries):
        return [item]
    parts = item.values() if isinstance(item, dict) else item if isinstance(item, list | tuple) else ()
    return [entries for part in parts for entries in leaves(part)]


def move(graph: Graph, name: str, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run an operator that only rearranges entries.

    Raises:
        NoCertificateError: the rearrangement depends on the input.
    """
    if target._overloadname == "dtype":  # the bits of numbers, read as other numbers
        raise NoCertificateError(state("SYM190", operation=f"{name} as another dtype"))
    given = leaves((args, kwargs))
    dtype = given[0].dtype
    kwargs = {key: item for key, item in kwargs.items() if key not in ("dtype", "layout", "device", "pin_memory")}
    if name == "_to_copy":
        return Entries(given[0].ids.clone(), dtype)

    def ids(entries: Entries) -> torch.Tensor:
        if entries.dtype == dtype or entries.dtype.is_floating_point or entries is given[0]:
            whole = name in INDEXED and entries is not given[0]
            return as_tensor(graph, entries) if whole and entries.is_constant else entries.ids
        if name in INDEXED and entries.is_constant:
            return as_tensor(graph, entries)
        raise NoCertificateError(state("SYM190", operation=name))

    if name == "view" and not graph.writes:  # no operator writes through the view, so a copy is equivalent
        target = torch.ops.aten.reshape.default
    result = target(*mapped(args, ids), **mapped(kwargs, ids))
    if name in ZEROING:
        zero = float(graph.constants(np.zeros(1))[0])
        # detect filled positions: ids are shifted while the operator runs, so that only filled positions are 0
        shifted = target(*mapped(args, lambda e: ids(e) + _AWAY), **kwargs)
        result = torch.where(shifted == 0, torch.tensor(zero, dtype=torch.float64), shifted - _AWAY)
    return _wrapped(result, dtype)


_AWAY = 2.0**50
"""Added to ids so that none is 0."""


def _wrapped(result: Any, dtype: torch.dtype) -> Any:
    if isinstance(result, torch.Tensor):
        return Entries(result, dtype)
    return type(result)(_wrapped(item, dtype) for item in result)
