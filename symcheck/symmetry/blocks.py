"""Observations written as named blocks: each part of a long vector with its own name, size and map.

    [[observation.blocks]]
    name = "joint_pos"
    names = ["FL_hip", "FL_knee", "FR_hip", "FR_knee"]
    history = 3
    map = [{ FL_hip = "-FR_hip", FR_hip = "-FL_hip", FL_knee = "FR_knee", FR_knee = "FL_knee" }]

The length of a block is given by `size`, by its number of `names`, or by `shape`: rows and columns (and channels, last)
of a grid. With `history` it contains that many frames, in the `layout` "frames" (frame after frame) or "components"
(all frames of one component, then of the next). `map` has one entry per generator: any entry that a `Symmetry` takes
for a vector, a spatial operator if the block is a grid, or names: {name = "-other"} maps component `name` to `other`
with its sign changed; names that are left out are fixed. An entry acts on every frame in the same way, except for a
callable, which gets the columns of all frames. Blocks are listed in order and must cover the whole vector.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from symcheck.entries.forms import (
    SPATIAL_OPERATORS,
    AffineEntry,
    Entry,
    FunctionEntry,
    IdentityEntry,
    SpatialEntry,
    parse_entry,
)
from symcheck.errors import SpecError, suggestion

_LAYOUTS = ("frames", "components")
_MOST_COLUMNS = 10_000_000  # each column takes an index and a sign in memory


@dataclass(frozen=True)
class Block:
    """One part of a vector.

    Attributes:
        name: the name in reports.
        map: one entry per generator, for one frame of the block; a callable gets all columns of the block.
        size: the number of components of a frame; left out if `names` or `shape` is given.
        names: a name for every component of a frame.
        history: the number of frames in the block.
        layout: "frames" or "components", whichever varies slowest.
        shape: (rows, columns) if a frame is a grid; (rows, columns, channels) for images with channels last.

    Example:
        >>> Block("velocity", [[1, -1, 1]], size=3, history=2).width
        6
    """

    name: str
    map: Sequence[Any]
    size: int | None = None
    names: Sequence[str] | None = None
    history: int = 1
    layout: str = "frames"
    shape: tuple[int, ...] | None = None

    @property
    def count(self) -> int:
        """The number of components of one frame."""
        if self.names is not None:
            return len(self.names)
        if self.shape is not None:
            return math.prod(int(side) for side in self.shape)
        return int(self.size or 0)

    @property
    def width(self) -> int:
        """The number of columns of the block in the vector, over all frames."""
        return self.count * self.history

    def labels(self) -> tuple[str, ...]:
        """A name for every column: the block, the component, and the frame if there are several."""
        if self.names is not None:
            inside = [f"{self.name} {name}" for name in self.names]
        elif self.shape is not None:
            inside = [f"{self.name}[{','.join(map(str, place))}]" for place in np.ndindex(*self.shape)]
        else:
            inside = [f"{self.name}[{i}]" for i in range(self.count)]
        if self.history == 1:
            return tuple(inside)
        if self.layout == "frames":
            # Frame-major: all components of frame 0 first.
            return tuple(f"{label}, frame {k}" for k in range(self.history) for label in inside)
        return tuple(f"{label}, frame {k}" for label in inside for k in range(self.history))


def is_blocks(written: Any) -> bool:
    """Whether a part of a symmetry was written as a list of blocks, or as a table that contains one."""
    if isinstance(written, Mapping):
        return "blocks" in written
    # Blocks built in Python come as Block objects, from data files as tables.
    return isinstance(written, list | tuple) and bool(written) and all(isinstance(item, Block) for item in written)


def parse_blocks(written: Any, part: str, generators: int) -> tuple[Block, ...]:
    """Read blocks and check each one separately.

    Args:
        written: `{"blocks": [...]}`, or a list of `Block`.
        part: "observation", "action" or "state", for messages.
        generators: the number of entries that every map must have.

    Returns:
        The blocks, their maps parsed into entries on one frame.

    Raises:
        SpecError: a field that is missing, unknown or of the wrong kind; every message names the block.

    Example:
        >>> blocks = parse_blocks({"blocks": [{"name": "v", "size": 2, "map": [[1, -1]]}]}, "observation", 1)
        >>> blocks[0].map[0].sign
        array([ 1, -1])
    """
    items = written["blocks"] if isinstance(written, Mapping) else written
    if isinstance(written, Mapping) and set(written) != {"blocks"}:
        others = ", ".join(sorted(set(written) - {"blocks"}))
        raise SpecError(f"the table has fields besides its blocks: {others}.", where=part)
    if not isinstance(items, list | tuple) or not items:
        raise SpecError(f"expected a list of blocks, got {items!r}.", where=f"{part}.blocks")
    blocks = tuple(_parse_block(_block(item, part, i), part, generators) for i, item in enumerate(items))
    names: set[str] = set()
    for block in blocks:
        if block.name in names:
            raise SpecError(f"two blocks are called {block.name!r}.", where=f"{part}.blocks")
        names.add(block.name)
    return blocks


def _block(item: Any, part: str, position: int) -> Block:
    if isinstance(item, Block):
        return item
    where = f"{part}.blocks[{position}]"
    if not isinstance(item, Mapping):
        raise SpecError(f"expected a table with name, size and map, got {item!r}.", where=where)
    # The fields of the dataclass are the fields of the table.
    known = [declared.name for declared in fields(Block)]
    unknown = [key for key in item if key not in known]
    missing = [key for key in ("name", "map") if key not in item]
    if unknown:
        raise SpecError(
            f"the block has unknown fields {', '.join(unknown)}.", where=where, remedy=suggestion(unknown[0], known)
        )
    if missing:
        raise SpecError(
            f"the block is missing {', '.join(missing)}.", where=where, remedy=f"Fields are {', '.join(known)}."
        )
    return Block(**item)


def _parse_block(block: Block, part: str, generators: int) -> Block:
    where = f"{part} block {block.name!r}"
    _check_fields(block, where)
    maps = block.map
    if not isinstance(maps, list | tuple) or len(maps) != generators:
        given = len(maps) if isinstance(maps, list | tuple) else repr(maps)
        raise SpecError(
            f"the map must have one entry for each generator ({generators} in all), got {given}.",
            where=where,
            remedy="Write a list: map = [first generator's entry, ...].",
        )
    entries = [_parse_map(block, item, f"{where}, map[{i}]") for i, item in enumerate(maps)]
    changes = {declared.name: getattr(block, declared.name) for declared in fields(Block)}
    # Create a new block, because the given one may be shared between symmetries.
    return Block(**{**changes, "map": tuple(entries)})


def _check_fields(block: Block, where: str) -> None:
    if not isinstance(block.name, str) or not block.name.strip():
        raise SpecError(f"expected a name, got {block.name!r}.", where=where)
    if block.names is not None and not _are_names(block.names):
        raise SpecError(f"expected distinct names, got {block.names!r}.", where=where)
    if block.shape is not None and not _is_shape(block.shape):
        raise SpecError(f"expected shape = [rows, columns], got {block.shape!r}.", where=where)
    if block.size is not None and not _is_count(block.size):
        raise SpecError(f"expected a size of 1 or more, got {block.size!r}.", where=where)
    if block.names is None and block.shape is None and block.size is None:
        raise SpecError("the block has no size, no names and no shape.", where=where, remedy="Write size = n.")
    if block.size is not None and block.size != block.count:
        raise SpecError(f"the block has size {block.size}, but its names or shape give {block.count}.", where=where)
    if block.names is not None and block.shape is not None:
        raise SpecError("the block has both names and a shape, but only one of them is allowed.", where=where)
    if not _is_count(block.history):
        raise SpecError(f"expected a history of 1 frame or more, got {block.history!r}.", where=where)
    if block.width > _MOST_COLUMNS:
        raise SpecError(f"expected at most {_MOST_COLUMNS:,} columns, got {block.width:,}.", where=where)
    if block.layout not in _LAYOUTS:
        raise SpecError(
            f"expected layout 'frames' or 'components', got {block.layout!r}.",
            where=where,
            remedy=suggestion(str(block.layout), _LAYOUTS),
        )


def _is_shape(shape: Any) -> bool:
    return isinstance(shape, list | tuple) and len(shape) in (2, 3) and all(_is_count(side) for side in shape)


def _are_names(names: Any) -> bool:
    listed = isinstance(names, list | tuple) and bool(names) and all(isinstance(name, str) for name in names)
    return listed and len(set(names)) == len(names)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _parse_map(block: Block, written: Any, where: str) -> Entry:
    # A mapping without "matrix" or "signs" maps names to names.
    if isinstance(written, Mapping) and not ({"matrix", "signs"} & set(written)):
        return _by_name(block, written, where)
    entry = parse_entry(written, where)
    if isinstance(entry, SpatialEntry):
        entry = _on_grid(block, entry, where)
    if isinstance(entry, IdentityEntry):
        # Written out at the block's size, so that blocks can be joined.
        return AffineEntry(index=np.arange(block.count), sign=np.ones(block.count, dtype=np.int64))
    if isinstance(entry, AffineEntry) and entry.dim != block.count:
        raise SpecError(f"the map acts on {entry.dim} components, but the block has {block.count}.", where=where)
    if not isinstance(entry, AffineEntry | FunctionEntry):
        raise SpecError(f"expected a map of {block.count} components, got {written!r}.", where=where)
    return entry


def _by_name(block: Block, written: Mapping[Any, Any], where: str) -> AffineEntry:
    if block.names is None:
        raise SpecError("the map uses names, but the block has none.", where=where, remedy="Give names = [...].")
    names = list(block.names)
    index, sign = np.arange(len(names)), np.ones(len(names), dtype=np.int64)
    for source, image in written.items():
        # "-b" is component b with its sign changed.
        target = image.lstrip("+-") if isinstance(image, str) else str(image)
        for name in (source, target):
            if name not in names:
                raise SpecError(
                    f"the map uses the name {name!r}, which is not in the block.",
                    where=where,
                    remedy=suggestion(name, names),
                )
        # index[j] is the position of component j in the image.
        index[names.index(source)] = names.index(target)
        sign[names.index(source)] = -1 if str(image).startswith("-") else 1
    # Two components have the same image: probably only half of a swap was given.
    twice = sorted({names[i] for i in index if (index == i).sum() > 1})
    if twice:
        raise SpecError(
            f"several components have the same image: {', '.join(twice)}.",
            where=where,
            remedy='An exchange needs both directions: { a = "b", b = "a" }.',
        )
    return AffineEntry(index=index, sign=sign)


def _on_grid(block: Block, entry: SpatialEntry, where: str) -> AffineEntry:
    if block.shape is None:
        raise SpecError(
            f"{entry.operator!r} acts on a grid, but the block has no shape.",
            where=where,
            remedy="Write shape = [rows, columns].",
        )
    # Grids of rows and columns get one channel; operators act on the first two axes.
    numbered = np.arange(block.count).reshape(*block.shape, *([1] if len(block.shape) == 2 else []))
    # Operators act on the last two axes: move the channel axis to the front and back.
    source = np.moveaxis(SPATIAL_OPERATORS[entry.operator](np.moveaxis(numbered, -1, 0)), 0, -1)
    if source.shape != numbered.shape:
        sides = "x".join(map(str, block.shape[:2]))
        raise SpecError(f"{entry.operator!r} needs a square grid; the block has {sides}.", where=where)
    index = np.empty(block.count, dtype=np.int64)
    # source[p] is the component that moves to position p; index is its inverse.
    index[source.reshape(-1)] = np.arange(block.count)
    return AffineEntry(index=index, sign=np.ones(block.count, dtype=np.int64))


def frame_entry(block: Block, generator: int) -> Entry:
    """The entry of one generator on all frames of a block, `block.width` numbers.

    Args:
        block: parsed.
        generator: the position of the generator.

    Returns:
        An affine map, or a callable on the block's columns.
    """
    entry: Entry = block.map[generator]
    if block.history == 1 or not isinstance(entry, AffineEntry):
        return entry
    frames, count = block.history, block.count
    slow = block.layout == "frames"
    # columns[k, j] is the column of component j in frame k.
    columns = (
        np.arange(frames * count).reshape(frames, count) if slow else np.arange(frames * count).reshape(count, frames).T
    )
    offset = None
    if entry.offset is not None:
        offset = np.empty(frames * count)
        offset[columns] = entry.offset
    if entry.index is not None and entry.sign is not None:
        index, sign = np.empty(frames * count, dtype=np.int64), np.empty(frames * count, dtype=np.int64)
        # The same signed permutation in every frame.
        index[columns], sign[columns] = columns[:, entry.index], entry.sign
        return AffineEntry(index=index, sign=sign, offset=offset)
    matrix, same = entry.dense(), np.eye(frames)
    # Frames are the slow axis in one layout and the fast axis in the other.
    dense = np.asarray(np.kron(same, matrix) if slow else np.kron(matrix, same), dtype=np.float64)
    return AffineEntry(matrix=dense, offset=offset)


def joined_entry(blocks: Sequence[Block], generator: int) -> Entry:
    """The entry of one generator on the whole vector.

    Args:
        blocks: parsed.
        generator: the position of the generator.

    Returns:
        A signed permutation if the entry of every block is one; a callable if the entry of any block is one.

    Example:
        >>> blocks = parse_blocks([Block("p", [[1, 0]], size=2), Block("v", [[-1]], size=1)], "state", 1)
        >>> joined_entry(blocks, 0).apply(np.array([1.0, 2.0, 3.0]))
        array([ 2.,  1., -3.])
    """
    entries = [frame_entry(block, generator) for block in blocks]
    affine = [entry for entry in entries if isinstance(entry, AffineEntry)]
    # A callable in one block makes the whole map a callable.
    if len(affine) < len(entries):
        return FunctionEntry(_Piecewise(blocks, entries))
    offset = np.concatenate([np.zeros(part.dim) if part.offset is None else part.offset for part in affine])
    # The start of each block in the whole vector.
    starts = np.cumsum([0, *(part.dim for part in affine)])
    if all(part.index is not None for part in affine):
        index = np.concatenate(
            [part.index + start for part, start in zip(affine, starts, strict=False) if part.index is not None]
        )
        sign = np.concatenate([part.sign for part in affine if part.sign is not None])
        return AffineEntry(index=index, sign=sign, offset=offset if offset.any() else None)
    # Block diagonal: blocks do not mix.
    matrix = np.zeros((starts[-1], starts[-1]))
    for part, start in zip(affine, starts, strict=False):
        matrix[start : start + part.dim, start : start + part.dim] = part.dense()
    return AffineEntry(matrix=matrix, offset=offset if offset.any() else None)


class _Piecewise:
    """Map blocks one by one; a callable receives its own columns, flattened."""

    def __init__(self, blocks: Sequence[Block], entries: Sequence[Entry]) -> None:
        self._blocks = blocks
        self._entries = entries
        self.__name__ = "of the blocks " + ", ".join(block.name for block in blocks)

    def __call__(self, value: Any, *context: Any) -> Any:
        array = np.asarray(value)
        flat, pieces, start = array.reshape(-1), [], 0
        for block, entry in zip(self._blocks, self._entries, strict=True):
            part = flat[start : start + block.width]
            start += block.width
            pieces.append(
                entry.apply(part) if isinstance(entry, AffineEntry) else _call_function(block, entry, part, context)
            )
        return np.concatenate(pieces).astype(array.dtype).reshape(array.shape)


def _call_function(block: Block, entry: Entry, part: Any, context: tuple[Any, ...]) -> Any:
    where = f"block {block.name!r}"
    if not isinstance(entry, FunctionEntry):
        raise SpecError(f"expected a callable, got {type(entry).__name__}.", where=where)
    # A copy: the callable may write into its argument.
    image = np.asarray(entry.function(part.copy(), *context)).reshape(-1)
    if image.size != part.size or image.dtype.kind not in "iufb":
        raise SpecError(
            f"the callable must return {part.size} numbers, but returned {image.size} values ({image.dtype}).",
            where=where,
        )
    return image


def check_columns(blocks: Sequence[Block], size: int, part: str) -> None:
    """Reject blocks that do not cover a vector; the message names the superfluous or missing columns.

    Args:
        blocks: parsed.
        size: the size of the vector.
        part: "observation", "action" or "state".

    Raises:
        SpecError: the widths do not add up to `size`.

    Example:
        >>> check_columns([Block("v", [[1, 1]], size=2)], 2, "observation")
    """
    total = sum(block.width for block in blocks)
    if total == size:
        return
    table, start = [], 0
    # The columns of each block, for the message.
    for block in blocks:
        table.append(f"{block.name}: columns {start} to {start + block.width - 1}")
        start += block.width
    if total < size:
        rest = f"columns {total} to {size - 1} are left over" if size - total > 1 else f"column {total} is left over"
    else:
        rest = f"the last block ends {total - size} columns beyond the vector"
    raise SpecError(
        f"the blocks have {total} columns, but the space has {size}: {rest} ({'; '.join(table)}).",
        where=f"{part}.blocks",
        remedy="Correct a size or history, or add the block that is missing.",
    )


def labels_of(blocks: Sequence[Block]) -> tuple[str, ...]:
    """A name for every column of the vector."""
    return tuple(label for block in blocks for label in block.labels())
