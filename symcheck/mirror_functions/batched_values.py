"""Batches of observations and actions as tables: one row per sample, one column per component.

Mirror functions receive tensors, or dictionaries of tensors, on some device. All checks refer to rows and columns, so a
`Layout` converts values of one space to a float64 table (n, columns) and back, and describes columns in words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from symcheck.array_types import Bools, Floats
from symcheck.errors import SpecError

# larger bounds (3.4e38 for a velocity) mean "no bound"; for smaller ones, float32 still resolves a column of ones
_WIDEST = 1e4


@dataclass(frozen=True)
class Leaf:
    """One array of a value: a whole vector, or one entry of a dictionary.

    Attributes:
        path: the keys that lead to it; () for a value that is one array.
        shape: the shape of one unbatched value.
        start: its first column in the table.
        dtype: the dtype of its values.
        low: the lower bounds, flattened; -inf if there is none.
        high: the upper bounds, flattened; +inf if there is none.
        first: the smallest value of a Discrete space; None for arrays of numbers.
    """

    path: tuple[Any, ...]
    shape: tuple[int, ...]
    start: int
    dtype: np.dtype[Any]
    low: Floats
    high: Floats
    first: int | None = None

    @property
    def size(self) -> int:
        """The number of columns."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def columns(self) -> slice:
        """The columns of this array in the table."""
        return slice(self.start, self.start + self.size)

    @property
    def is_vector(self) -> bool:
        """Whether the values are numbers that maps may combine linearly, and not labels."""
        return self.first is None


@dataclass(frozen=True)
class Layout:
    """The table layout of observations or of actions.

    Attributes:
        name: "observation" or "action", for messages.
        leaves: the arrays, in the order of their columns; at least one.
    """

    name: str
    leaves: tuple[Leaf, ...]

    @property
    def width(self) -> int:
        """The number of columns."""
        return sum(leaf.size for leaf in self.leaves)

    @property
    def is_one_array(self) -> bool:
        """Whether a value is one array, not a dictionary."""
        return len(self.leaves) == 1 and not self.leaves[0].path

    def sample(self, rng: np.random.Generator, n: int) -> Floats:
        """Random values, shape (n, width): uniform between bounds, normal without bounds."""
        low = np.concatenate([leaf.low for leaf in self.leaves])
        high = np.concatenate([leaf.high for leaf in self.leaves])
        bounded = (np.abs(low) <= _WIDEST) & (np.abs(high) <= _WIDEST)
        # Uniform if both bounds are usable; otherwise placeholders 0 and 1, which `free` replaces.
        inner = np.where(bounded, low, 0.0), np.where(bounded, high, 1.0)
        # Normal around the point of the interval nearest to 0.
        free = np.clip(0.0, low, high) + rng.normal(size=(n, self.width))
        free = np.where(free < low, 2 * low - free, np.where(free > high, 2 * high - free, free))  # half-lines
        # (n, width).
        drawn = np.where(bounded, rng.uniform(*inner, size=(n, self.width)), free)
        for leaf in self.leaves:
            if not np.issubdtype(leaf.dtype, np.floating):
                # Integers within +-1,000: bounds of int64 would overflow in `high + 1`.
                low, high = (np.clip(bound, -1_000, 1_000).astype(np.int64) for bound in (leaf.low, leaf.high))
                drawn[:, leaf.columns] = rng.integers(low, high + 1, size=(n, leaf.size))
        return np.asarray(drawn, dtype=np.float64)

    def arrays(self, table: Floats, floating: npt.DTypeLike, *, all_floating: bool = False) -> dict[Any, Any] | Any:
        """Convert a table to arrays: one array, or a nested dictionary of arrays.

        Args:
            table: shape (n, width).
            floating: the dtype for leaves of floats.
            all_floating: whether to convert integers to that dtype too.
        """
        parts = []
        for leaf in self.leaves:
            floats = all_floating or np.issubdtype(leaf.dtype, np.floating)
            part = table[:, leaf.columns].reshape(len(table), *leaf.shape)
            parts.append(part.astype(floating if floats else leaf.dtype))
        if self.is_one_array:
            return parts[0]
        # Keys of nested dictionaries become nested dictionaries again.
        return _nest_arrays({leaf.path: array for leaf, array in zip(self.leaves, parts, strict=True)})

    def table(self, value: Any) -> Floats:
        """Convert arrays or tensors, stacked along the first axis, to a table.

        Raises:
            SpecError: a leaf is missing or has the wrong shape.
        """
        parts = []
        for leaf in self.leaves:
            array = to_array(_at(value, leaf, self.name))
            if array.shape[1:] != leaf.shape or array.ndim == 0:
                raise SpecError(
                    f"expected {self.describe(leaf)} of shape (rows, {', '.join(map(str, leaf.shape))}), "
                    f"got {array.shape}.",
                    where="from_augmentation",
                )
            parts.append(array.reshape(len(array), -1).astype(np.float64))
        # All leaves of a value have the same number of rows.
        rows = sorted({len(part) for part in parts})
        if len(rows) > 1:
            raise SpecError(f"expected {self.name}s of equal length, got {rows} rows.", where="from_augmentation")
        return np.concatenate(parts, axis=1)

    def describe(self, leaf: Leaf) -> str:
        """A leaf in words, for instance "observation['policy']"."""
        return self.name + "".join(f"[{key!r}]" for key in leaf.path)

    def words(self, mask: Bools) -> str:
        """Describe selected columns in words.

        Args:
            mask: shape (width,).

        Returns:
            For instance "observation columns 45 to 220".
        """
        parts = []
        for leaf in self.leaves:
            chosen = np.flatnonzero(mask[leaf.columns])
            if len(chosen):
                noun = "column" if len(chosen) == 1 else "columns"
                parts.append(f"{self.describe(leaf)} {noun} {ranges(chosen.tolist())}")
        return " and ".join(parts)


def ranges(numbers: Sequence[int]) -> str:
    """Format ascending numbers as at most six ranges.

    Example:
        >>> ranges([3, 45, 46, 47])
        '3, 45 to 47'
    """
    runs: list[list[int]] = []
    for n in numbers:
        # Ascending: a number extends the last range or begins a new one.
        if runs and runs[-1][1] == n - 1:
            runs[-1][1] = n
        else:
            runs.append([n, n])
    shown = [str(a) if a == b else f"{a} to {b}" for a, b in runs]
    return ", ".join(shown if len(shown) <= 6 else [*shown[:5], f"and {len(shown) - 5} more ranges"])


def to_array(value: Any) -> npt.NDArray[Any]:
    """Convert a tensor on any device, or any array-like value, to a NumPy array."""
    if hasattr(value, "detach"):
        value = value.detach().cpu()
        # NumPy has no bfloat16.
        value = value.float() if str(getattr(value, "dtype", "")) == "torch.bfloat16" else value
        return np.asarray(value.numpy())
    return np.asarray(value)


def layout_of_space(name: str, space: Any) -> Layout:
    """The layout of a Gymnasium space: Box, Discrete, MultiBinary, MultiDiscrete, or a Dict of these.

    Raises:
        SpecError: any other space.
    """
    leaves: list[Leaf] = []
    _add_leaves(space, (), leaves, name)
    return Layout(name, tuple(leaves))


def _add_leaves(space: Any, path: tuple[Any, ...], leaves: list[Leaf], name: str) -> None:
    from gymnasium import spaces

    # Leaves are consecutive: each begins at the end of the previous one.
    start = leaves[-1].start + leaves[-1].size if leaves else 0
    match space:
        case spaces.Dict():
            for key, child in space.spaces.items():
                _add_leaves(child, (*path, key), leaves, name)
        case spaces.Discrete():
            low = np.array([space.start], dtype=np.float64)
            leaves.append(Leaf(path, (), start, np.dtype(np.int64), low, low + space.n - 1, int(space.start)))
        case spaces.Box():
            low, high = (np.asarray(bound, dtype=np.float64).reshape(-1) for bound in (space.low, space.high))
            leaves.append(Leaf(path, space.shape, start, np.dtype(space.dtype), low, high))
        case spaces.MultiBinary() | spaces.MultiDiscrete():
            # MultiBinary has no nvec: two values each.
            top = getattr(space, "nvec", np.full(space.shape, 2)).reshape(-1).astype(np.float64) - 1
            leaves.append(Leaf(path, tuple(space.shape), start, np.dtype(np.int64), 0 * top, top))
        case _:
            raise SpecError(
                f"expected {name}s in a Box, Discrete, MultiBinary, MultiDiscrete or Dict space, got {space}.",
                where="from_augmentation, env",
                remedy="Batched functions take tensors or dictionaries of tensors.",
            )


def layout_of_value(name: str, value: Any) -> Layout:
    """The layout of a batch that an environment without declared spaces returned.

    Args:
        name: "observation" or "action".
        value: a tensor, or a mapping of them, with the batch first.
    """
    leaves: list[Leaf] = []
    for path, array in _walk(value, ()):
        shape = tuple(int(size) for size in array.shape[1:])
        size = int(np.prod(shape, dtype=np.int64))
        start = leaves[-1].start + leaves[-1].size if leaves else 0
        # Without declared bounds everything is allowed.
        infinite = np.full(size, np.inf)
        leaves.append(Leaf(path, shape, start, np.dtype(np.float32), -infinite, infinite))
    return Layout(name, tuple(leaves))


def _walk(value: Any, path: tuple[Any, ...]) -> list[tuple[tuple[Any, ...], Any]]:
    if hasattr(value, "keys"):
        return [item for key in value.keys() for item in _walk(value[key], (*path, key))]  # noqa: SIM118 (TensorDict)
    return [(path, value)]


def _at(value: Any, leaf: Leaf, name: str) -> Any:
    for key in leaf.path:
        if not hasattr(value, "keys") or key not in list(value.keys()):
            held = list(value.keys()) if hasattr(value, "keys") else type(value).__name__
            raise SpecError(
                f"the entry {key!r} of the {name}s was given, so it must also be returned; got {held}.",
                where="from_augmentation",
                remedy="Return every observation group that is passed in.",
            )
        value = value[key]
    if hasattr(value, "keys"):
        raise SpecError(f"expected {name}s as one tensor, got a dictionary.", where="from_augmentation")
    return value


def _nest_arrays(flat: Mapping[tuple[Any, ...], Any]) -> dict[Any, Any]:
    tree: dict[Any, Any] = {}
    for path, array in flat.items():
        node = tree
        for key in path[:-1]:
            node = node.setdefault(key, {})
        node[path[-1]] = array
    return tree
