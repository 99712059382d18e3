"""Methods and attributes of tensors, classified by the information that they give to the network's own code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

_READERS_NAMES = "item tolist numpy __bool__ __float__ __int__ __index__ __complex__ __contains__ "
READERS = frozenset(_READERS_NAMES.split())
"""Methods that return numbers to Python: constants for parameters, but not for values that depend on the input."""
SHOWING = frozenset(
    ["__repr__", "__format__", "__array__", "__dlpack__", "data_ptr", "storage", "untyped_storage", "__reduce_ex__"]
)
"""Methods that reveal a tensor's values or address; without values their result is meaningless."""
_ASKING_NAMES = "_version is_inference _is_view is_shared is_pinned is_set_to is_neg is_conj is_coalesced get_device"
ASKING_THE_CALL = frozenset(_ASKING_NAMES.split())
"""Methods that reveal how a call is made, or where a tensor is stored."""
_TOLD_NAMES = "H T mH mT data device dtype grad_dtype imag itemsize name names nbytes ndim real shape"
TOLD = frozenset(_TOLD_NAMES.split())
"""Attributes that describe a tensor's values; all others reveal how a call is made, or where it runs."""


_WRITING_NAMES = "__set__ __setitem__ __iadd__ __isub__ __imul__ __itruediv__ __ifloordiv__ __imod__ __ipow__"
_WRITING = frozenset(_WRITING_NAMES.split())


def writes_single_precision(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether a call writes into a floating tensor that was not created inside the float64 copy.

    Inside that copy all new tensors are float64. A write into a tensor of another dtype goes to a converted copy and is
    lost.

    Args:
        name: the name of the torch function.
        args: the positional arguments.
        kwargs: the keyword arguments.
    """
    in_place = name in _WRITING or (name.endswith("_") and not name.startswith("_"))
    written = [args[0] if in_place and args else None, kwargs.get("out")]
    tensors = [item for item in written if isinstance(item, torch.Tensor)]
    if not tensors:
        return False
    with torch._C.DisableTorchFunction():  # with overrides active, every floating tensor would report float64
        return any(item.is_floating_point() and item.dtype != torch.float64 for item in tensors)
