"""A stand-in for `tensordict.TensorDict`, for checking mirror functions if tensordict is not installed.

It contains named tensors with one leading batch axis, and supports the operations that mirror functions use: `repeat`,
`clone`, `batch_size`, indexing by rows and by names, `torch.cat`. It is not a replacement for training.
"""

from __future__ import annotations

import contextlib
import importlib.util
import sys
import types
from collections.abc import Callable, ItemsView, Iterator, Mapping, Sequence, ValuesView
from typing import Any

import torch


class TensorGroups:
    """Tensors by name that share their first axis.

    Args:
        source: name to tensor, or to another mapping of them.
        batch_size: the length of the first axis; read from the first tensor when left out.
        device: unused; tensors have their own device.

    Example:
        >>> groups = TensorGroups({"policy": torch.zeros(3, 2)}).repeat(2)
        >>> groups.batch_size, groups["policy"].shape
        (torch.Size([6]), torch.Size([6, 2]))
    """

    def __init__(
        self, source: Mapping[str, Any] | None = None, batch_size: Any = None, device: Any = None, **_: Any
    ) -> None:
        self._tensors: dict[str, Any] = {}
        self._rows = _rows_in(batch_size)
        for name, value in (source or {}).items():
            self[name] = value

    def __setitem__(self, key: Any, value: Any) -> None:
        if isinstance(key, str):
            value = TensorGroups(value) if isinstance(value, Mapping) else value
            self._rows = len(value) if self._rows is None else self._rows
            self._tensors[key] = value
            return
        # Rows of every tensor, from groups of the same names.
        for name in self._tensors:
            self._tensors[name][key] = value[name] if isinstance(value, TensorGroups | Mapping) else value

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            return self._tensors[key]
        if isinstance(key, tuple) and key and all(isinstance(part, str) for part in key):
            inner = self._tensors[key[0]]
            return inner if len(key) == 1 else inner[key[1] if len(key) == 2 else key[1:]]
        return self._map(lambda tensor: tensor[key])

    def __contains__(self, key: object) -> bool:
        return key in self._tensors

    def __len__(self) -> int:
        return self._rows or 0

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __delitem__(self, key: str) -> None:
        del self._tensors[key]

    def keys(self, *_: Any, **__: Any) -> list[str]:
        """The names."""
        return list(self._tensors)

    def items(self, *_: Any, **__: Any) -> ItemsView[str, Any]:
        """Names and tensors."""
        return self._tensors.items()

    def values(self, *_: Any, **__: Any) -> ValuesView[Any]:
        """The tensors."""
        return self._tensors.values()

    def get(self, key: str, default: Any = None) -> Any:
        """One tensor, or a default."""
        return self._tensors.get(key, default)

    def set(self, key: str, value: Any, **_: Any) -> TensorGroups:
        """Put one tensor."""
        self[key] = value
        return self

    def update(self, other: Any, **_: Any) -> TensorGroups:
        """Put several tensors."""
        for name, value in other.items():
            self[name] = value
        return self

    def pop(self, key: str, *default: Any) -> Any:
        """Take one tensor out."""
        return self._tensors.pop(key, *default)

    def select(self, *names: str, **_: Any) -> TensorGroups:
        """Some of the tensors."""
        return TensorGroups({name: self._tensors[name] for name in names}, self._rows)

    def exclude(self, *names: str, **_: Any) -> TensorGroups:
        """All other tensors."""
        return TensorGroups({name: value for name, value in self._tensors.items() if name not in names}, self._rows)

    def to_dict(self, *_: Any, **__: Any) -> dict[str, Any]:
        """A plain dictionary."""
        return dict(self._tensors)

    @property
    def batch_size(self) -> torch.Size:
        """The first axis."""
        return torch.Size([len(self)])

    @property
    def shape(self) -> torch.Size:
        """The batch size; groups have no other axis."""
        return self.batch_size

    def size(self, dim: int | None = None) -> Any:
        """The batch size, or its only number."""
        return self.batch_size if dim is None else self.batch_size[dim]

    @property
    def batch_dims(self) -> int:
        """The number of batch axes, 1."""
        return 1

    @property
    def device(self) -> Any:
        """That of the first tensor."""
        return next((value.device for value in self._tensors.values()), None)

    @property
    def dtype(self) -> Any:
        """That of the first tensor."""
        return next((value.dtype for value in self._tensors.values()), None)

    def clone(self, *_: Any, **__: Any) -> TensorGroups:
        """Copies of all tensors."""
        return self._map(lambda tensor: tensor.clone())

    def copy(self) -> TensorGroups:
        """A new container of the same tensors."""
        return self._map(lambda tensor: tensor)

    def detach(self) -> TensorGroups:
        """Tensors without gradients."""
        return self._map(lambda tensor: tensor.detach())

    def to(self, *arguments: Any, **options: Any) -> TensorGroups:
        """A copy on another device or in another dtype."""
        return self._map(lambda tensor: tensor.to(*arguments, **options))

    def contiguous(self) -> TensorGroups:
        """The same tensors in contiguous memory."""
        return self._map(lambda tensor: tensor.contiguous())

    def apply(self, function: Callable[[Any], Any], *_: Any, **__: Any) -> TensorGroups:
        """Apply a function to every tensor."""
        return self._map(function)

    def repeat(self, *times: Any) -> TensorGroups:
        """The batch repeated `times` times, block after block."""
        count = _rows_in(times) or 1
        return self._map(
            lambda value: (
                value.repeat(count, *([1] * (value.dim() - 1)))
                if isinstance(value, torch.Tensor)
                else value.repeat(count)
            )
        )

    def repeat_interleave(self, repeats: int, dim: int = 0) -> TensorGroups:
        """Every row `repeats` times."""
        return self._map(lambda value: value.repeat_interleave(repeats, dim=dim))

    def expand(self, *_: Any) -> TensorGroups:
        """The object itself, because groups have one batch axis."""
        return self

    def _map(self, convert: Callable[[Any], Any]) -> TensorGroups:
        return TensorGroups({name: convert(value) for name, value in self._tensors.items()})

    @classmethod
    def __torch_function__(
        cls, function: Any, types_: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """`torch.cat`, `torch.stack`, `torch.clone` and similar functions, name by name."""
        options = dict(kwargs or {})
        first = args[0] if args else options.pop("tensors", None)
        if isinstance(first, TensorGroups):
            return first._map(lambda value: function(value, *args[1:], **options))
        parts = list(first or [])
        names = parts[0].keys()
        return TensorGroups({name: function([part[name] for part in parts], *args[1:], **options) for name in names})


def _rows_in(batch_size: Any) -> int | None:
    if batch_size is None:
        return None
    while isinstance(batch_size, Sequence):
        if not batch_size:
            return None
        batch_size = batch_size[0]
    return int(batch_size)


def tensordict_is_installed() -> bool:
    """Whether the real package can be imported."""
    try:
        return importlib.util.find_spec("tensordict") is not None
    except ValueError:  # a stand-in without a spec
        return False


@contextlib.contextmanager
def tensordict_at_hand() -> Iterator[None]:
    """Make `from tensordict import TensorDict` work: with the real package, or temporarily with the stand-in."""
    if "tensordict" in sys.modules or tensordict_is_installed():
        yield
        return
    module = types.ModuleType("tensordict")
    for name in ("TensorDict", "TensorDictBase"):
        setattr(module, name, TensorGroups)
    sys.modules["tensordict"] = module
    try:
        yield
    finally:
        sys.modules.pop("tensordict", None)


def tensor_groups(tensors: Mapping[str, Any], rows: int) -> Any:
    """A TensorDict of tensors: a real one if tensordict is installed."""
    if tensordict_is_installed():
        from tensordict import TensorDict  # type: ignore[import-not-found, unused-ignore]

        return TensorDict(dict(tensors), batch_size=[rows])
    return TensorGroups(tensors, rows)
