"""Reads one part of a claim of a continuous group: an entry per Lie generator, then one per discrete generator.

Instead of a list, a part may be `{ representation = "2*vector + scalar" }`, a `Representation`, or (Dict and Tuple
spaces) a mapping of these by key. Data is checked here against the brackets, periods and relations of the group; the
property `group_axioms` checks callables on samples.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from symcheck.array_types import Floats
from symcheck.entries.forms import (
    AffineEntry,
    Entry,
    FunctionEntry,
    IdentityEntry,
    SpatialEntry,
    TreeEntry,
    parse_entry,
)
from symcheck.entries.lie_forms import ContinuousEntry, LieEntry, LieFunctionEntry, parse_lie_entry
from symcheck.errors import RepresentationError, SpecError
from symcheck.groups.continuous import ContinuousGroup
from symcheck.representations.lie import LieRepresentation
from symcheck.representations.lie_checks import check_lie_relations
from symcheck.representations.named_parts import named_representation
from symcheck.representations.representation import Representation
from symcheck.symmetry.blocks import is_blocks

ACCURACY = 1e-9
"""Tolerance of entries: they are often typed with nine digits, like the matrices of finite groups."""
Both = tuple[tuple[ContinuousEntry, ...], tuple[Entry, ...]]


def read_part(written: Any, group: ContinuousGroup, part: str) -> Both:
    """The entries of one part.

    Args:
        written: any of the forms listed in the module's docstring.
        group: the continuous group.
        part: "observation", "action" or "state", for messages.

    Returns:
        The entries of the Lie generators, and those of the discrete generators.

    Raises:
        SpecError: an unknown form, or not one entry per generator.
        RepresentationError: a representation of another group, or a string that does not name a representation.
    """
    if is_blocks(written):
        raise SpecError(
            f"named blocks need a finite group, got {group.name}.",
            where=part,
            remedy='Write {"representation": "vector + 2*scalar"}, whose parts follow one another as blocks do.',
        )
    if isinstance(written, Mapping) and set(written) == {"representation"}:
        named = written["representation"]
        rho = named if isinstance(named, Representation) else named_representation(group, named, where=part)
        return _of_representation(rho, group, part)
    if isinstance(written, Representation):
        return _of_representation(written, group, part)
    if isinstance(written, Mapping) and written:
        return _by_key({key: read_part(child, group, f"{part}[{key!r}]") for key, child in written.items()}, group)
    names, count = group.entry_names, len(group.algebra)
    items = list(written) if isinstance(written, list | tuple) else None
    whole = items is not None and all(isinstance(item, Mapping) and set(item) == {"representation"} for item in items)
    if items and whole:  # one string per sub-space of a Tuple
        return _by_key({i: read_part(child, group, f"{part}[{i}]") for i, child in enumerate(items)}, group)
    if items is None or len(items) != len(names):
        given = f"{type(written).__name__} {written!r:.120}" if items is None else f"{len(items)}"
        raise SpecError(
            f"expected {len(names)} {'entry' if len(names) == 1 else 'entries'} for {group.name}, Lie generators first "
            f"({', '.join(names)}); got {given}.",
            where=part,
            remedy=f'Write a list, or {part} = {{ representation = "vector" }}.',
        )
    lie = tuple(parse_lie_entry(item, f"{part}[{i}]") for i, item in enumerate(items[:count]))
    return lie, tuple(parse_entry(item, f"{part}[{count + i}]") for i, item in enumerate(items[count:]))


def _of_representation(rho: Representation, group: ContinuousGroup, part: str) -> Both:
    if not isinstance(rho, LieRepresentation) or rho.group != group:
        raise RepresentationError(
            f"the representation must belong to the group {group.name!r} of the symmetry, but belongs to "
            f"{rho.group.name!r}.",
            where=part,
            remedy="Build the symmetry and the representation from the same group object.",
        )
    lie = tuple(LieEntry(matrix=matrix) for matrix in rho.algebra)
    return lie, tuple(parse_entry(matrix, part) for matrix in rho.matrices)


def _by_key(children: Mapping[Any, Both], group: ContinuousGroup) -> Both:
    """Entries of sub-spaces as one tree per generator."""
    lie = [TreeEntry({key: both[0][i] for key, both in children.items()}) for i in range(len(group.algebra))]  # type: ignore[misc]
    discrete = [TreeEntry({key: both[1][i] for key, both in children.items()}) for i in range(len(group.generators))]
    return tuple(lie), tuple(discrete)


def check_part(group: ContinuousGroup, lie: Sequence[ContinuousEntry], discrete: Sequence[Entry], part: str) -> None:
    """Reject data entries that are not a representation of the continuous group.

    Raises:
        RepresentationError: a bracket, a frequency or a relation fails.
        SpecError: entries that differ in size, or forms that cannot be combined.
    """
    every: list[Any] = [*lie, *discrete]
    if any(isinstance(entry, TreeEntry) for entry in every):
        if not all(isinstance(entry, TreeEntry | IdentityEntry) for entry in every):
            raise SpecError("expected every generator's entry to be a mapping (or tuple), got a mixture.", where=part)
        for key in sorted({key for entry in every if isinstance(entry, TreeEntry) for key in entry.children}, key=str):
            inner: list[Any] = [
                entry.children.get(key, IdentityEntry()) if isinstance(entry, TreeEntry) else entry for entry in every
            ]
            check_part(group, inner[: len(lie)], inner[len(lie) :], f"{part}[{key!r}]")
        return
    if any(isinstance(entry, FunctionEntry | LieFunctionEntry) for entry in every):
        return
    moving = [entry for entry in lie if isinstance(entry, LieEntry)]
    spatial = any(isinstance(entry, SpatialEntry) for entry in discrete)
    if spatial and moving:
        raise SpecError(
            "spatial operators act on images, but a Lie generator cannot act on images.",
            where=part,
            remedy="Use a finite group such as C4 for images.",
        )
    if spatial or (not moving and not any(isinstance(entry, AffineEntry) for entry in discrete)):
        return
    dim = common_size(lie, discrete, part)
    algebra, matrices = homogeneous(lie, discrete, dim)
    try:
        check_lie_relations(group, algebra, matrices, accuracy=ACCURACY, name=part)
    except RepresentationError as error:
        raise RepresentationError(error.problem, where=error.where, remedy=error.remedy) from error


def common_size(lie: Sequence[ContinuousEntry], discrete: Sequence[Entry], part: str) -> int:
    """The number of components on which all entries act: the given size, or the smallest one that fits.

    Raises:
        SpecError: two different sizes are given, or a rotation names a component beyond the size.
    """
    sizes = {entry.size for entry in lie if isinstance(entry, LieEntry) and entry.size is not None}
    sizes |= {entry.dim for entry in discrete if isinstance(entry, AffineEntry)}
    if len(sizes) > 1:
        raise SpecError(f"expected entries of the same size, got sizes {sorted(sizes)}.", where=part)
    least = max([entry.least for entry in lie if isinstance(entry, LieEntry)], default=1)
    size = next(iter(sizes), least)
    if least > size:
        raise SpecError(
            f"the entry rotates component {least - 1}, but other entries act on {size} components.", where=part
        )
    return size


def homogeneous(
    lie: Sequence[ContinuousEntry], discrete: Sequence[Entry], dim: int
) -> tuple[list[Floats], list[Floats]]:
    """All entries as homogeneous matrices on (x, 1), which compose as affine maps do."""
    still = np.zeros((dim + 1, dim + 1))
    algebra = [entry.homogeneous_generator(dim) if isinstance(entry, LieEntry) else still for entry in lie]
    unit = np.eye(dim + 1)
    return algebra, [entry.homogeneous() if isinstance(entry, AffineEntry) else unit for entry in discrete]


def shifts_by_translation(group: ContinuousGroup, lie: Sequence[ContinuousEntry]) -> bool:
    """Whether a translation shifts any component of the given entries."""
    return any(not group.turns(i) and _shifts(entry) for i, entry in enumerate(lie))


def _shifts(entry: Any) -> bool:
    if isinstance(entry, TreeEntry):
        return any(_shifts(child) for child in entry.children.values())
    return isinstance(entry, LieEntry) and entry.shift is not None and bool(entry.shift.any())


def part_representation(
    group: ContinuousGroup, lie: Sequence[ContinuousEntry], discrete: Sequence[Entry], part: str
) -> LieRepresentation:
    """The linear representation given by data entries on one vector.

    Raises:
        SpecError: a shift, a callable, an image or a sub-space, which have no linear representation.
    """
    every: list[Any] = [*lie, *discrete]
    plain = all(isinstance(entry, LieEntry | AffineEntry | IdentityEntry) for entry in every)
    affine = any(
        (isinstance(entry, LieEntry) and _shifts(entry))
        or (isinstance(entry, AffineEntry) and entry.offset is not None)
        for entry in every
    )
    if affine:
        raise SpecError(
            f"the {part} entries contain shifts, so they have no linear representation.",
            where=f"{part}_representation",
            remedy="Use relative coordinates (differences of positions), because shifts do not change them.",
        )
    if not plain or all(isinstance(entry, IdentityEntry) for entry in every):
        raise SpecError(
            f"expected {part} entries that are linear data on a vector (rotate, algebra, matrices, signs).",
            where=f"{part}_representation",
            remedy="Layers need data of a known size: write the map as { rotate = ... } or { representation = ... }.",
        )
    dim = common_size(lie, discrete, part)
    algebra = [entry.generator(dim)[0] if isinstance(entry, LieEntry) else np.zeros((dim, dim)) for entry in lie]
    matrices = [entry.dense() if isinstance(entry, AffineEntry) else np.eye(dim) for entry in discrete]
    return LieRepresentation(group, algebra, matrices, name=part, check=False)
