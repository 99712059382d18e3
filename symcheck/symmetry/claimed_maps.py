"""The checked data of a claim: a group, and how it acts on observations, actions and internal states.

`Symmetry` is the public class; this base class holds all data that is needed to bind a symmetry to spaces and to
describe it.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from symcheck.entries.forms import (
    SPATIAL_OPERATORS,
    AffineEntry,
    Entry,
    FunctionEntry,
    IdentityEntry,
    SpatialEntry,
    TreeEntry,
    parse_entry,
)
from symcheck.entries.lie_forms import ContinuousEntry
from symcheck.errors import RepresentationError, SpecError
from symcheck.groups.continuous import ContinuousGroup
from symcheck.groups.group import Group
from symcheck.representations import constructors
from symcheck.representations.representation import Representation
from symcheck.symmetry.blocks import Block, is_blocks, joined_entry, parse_blocks
from symcheck.symmetry.elements import Tested, read_element
from symcheck.symmetry.lie_claims import check_part, part_representation, read_part, shifts_by_translation

_SHOWN = 24  # maximum number of components of an entry that a message repeats


def read_agents(given: Any, count: int) -> tuple[dict[str, str], ...]:
    """One permutation of agents for each generator.

    Raises:
        SpecError: the wrong number of mappings, or one that is not a permutation.

    Example:
        >>> read_agents([{"a": "b", "b": "a"}], 1)
        ({'a': 'b', 'b': 'a'},)
    """
    where = "Symmetry.agents"
    is_list = isinstance(given, Sequence) and not isinstance(given, str)
    if not is_list or len(given) != count or not all(isinstance(item, Mapping) for item in given):
        raise SpecError(f"expected a mapping of agents for each of {count} generators, got {given!r}.", where=where)
    for i, mapping in enumerate(given):
        if sorted(map(str, mapping)) != sorted(map(str, mapping.values())):
            raise SpecError(
                f"expected a permutation of agents, got {dict(mapping)}.",
                where=f"{where}[{i}]",
                remedy='Name each agent once on both sides, for instance { a = "b", b = "a" }.',
            )
    return tuple({str(a): str(b) for a, b in mapping.items()} for mapping in given)


class ClaimedMaps:
    """One entry per generator for each part, checked against the relations of the group.

    Args and errors are those of `symcheck.symmetry.symmetry.Symmetry`.

    Example:
        >>> from symcheck.groups import catalog
        >>> ClaimedMaps("mirror", catalog.cyclic(2), [[-1, -1]], [[1, 0]]).action_representation.dim
        2
    """

    def __init__(
        self,
        name: str,
        group: Group,
        observation: Any,
        action: Any,
        *,
        state: Any = None,
        initial: bool = True,
        agents: Sequence[Mapping[str, str]] | None = None,
    ) -> None:
        if not isinstance(name, str) or not name.strip():
            raise SpecError(f"expected a name, got {name!r}.", where="Symmetry.name")
        if not isinstance(group, Group):
            raise SpecError(
                f"expected a group, got {group!r} ({type(group).__name__}).",
                where="Symmetry.group",
                remedy="Make a group with symcheck.groups, for instance symcheck.groups.cyclic(2).",
            )
        self.name = name
        self.group = group
        self.written = {"observation": observation, "action": action, "state": state}
        self.initial = bool(initial)
        self.agents = None if agents is None else read_agents(agents, len(group.generators))
        self.blocks: dict[str, dict[Any, tuple[Block, ...]]] = {}
        self.algebra: dict[str, tuple[ContinuousEntry, ...]] = {}
        self.pinned_element: Tested | None = None
        self.observation = self._entries(observation, "observation")
        self.action = self._entries(action, "action")
        self.state = None if state is None else self._entries(state, "state")
        for part, entries in (("observation", self.observation), ("action", self.action), ("state", self.state or ())):
            if part not in self.algebra and not self._is_by_agent(entries):
                check_relations(group, entries, part)
        self._check_start()

    def _is_by_agent(self, entries: Sequence[Entry]) -> bool:
        """Whether entries are given by agent and agents are permuted.

        Relations then hold only for all agents together.
        """
        named = {name for mapping in self.agents or () for name in mapping}
        return any(isinstance(entry, TreeEntry) and bool(named & set(entry.children)) for entry in entries)

    def _check_start(self) -> None:
        """Reject a claim that the start distribution is invariant under shifts; no distribution is."""
        group = self.group
        if not self.initial or not isinstance(group, ContinuousGroup):
            return
        shifted = [part for part, entries in self.algebra.items() if shifts_by_translation(group, entries)]
        if shifted and shifted != ["action"]:
            raise SpecError(
                "initial = true is impossible, because no start distribution is invariant under shifts.",
                where=f"Symmetry.{shifted[0]}",
                remedy="Set initial = false.",
            )

    def pinned(self, word: str, parameters: Sequence[float]) -> Self:
        """The same claim, tested at one element of its continuous group.

        Args:
            word: names of generators, as in a report.
            parameters: one amount per Lie generator in the word.

        Returns:
            A copy; for a finite group, the claim itself.

        Raises:
            SpecError: the word is not one of the group.
        """
        if not isinstance(self.group, ContinuousGroup):
            return self
        made = copy.copy(self)
        made.pinned_element = read_element(self.group, word, parameters)
        return made

    @property
    def is_continuous(self) -> bool:
        """Whether the group is continuous; runs then test some of its elements."""
        return isinstance(self.group, ContinuousGroup)

    def _entries(self, written: Any, part: str) -> tuple[Entry, ...]:
        """The entries of one part.

        If it is given as named blocks, these are stored under their key (None for the whole part).

        For continuous groups, the entries of the discrete generators; those of Lie generators are stored in `algebra`.
        """
        if isinstance(self.group, ContinuousGroup):
            self.algebra[part], discrete = read_part(written, self.group, part)
            check_part(self.group, self.algebra[part], discrete, part)
            return discrete
        # Blocks for the whole part, or one table of blocks per key of a Dict space.
        if not is_blocks(written) and not (
            isinstance(written, dict) and written and all(is_blocks(child) for child in written.values())
        ):
            return _entries(written, self.group, part)
        count = len(self.group.generators)
        tables = {None: written} if is_blocks(written) else written
        self.blocks[part] = parsed = {
            key: parse_blocks(table, part if key is None else f"{part}[{key!r}]", count)
            for key, table in tables.items()
        }
        # Check block by block, so that the message names the block.
        for blocks in parsed.values():
            for block in blocks:
                check_relations(self.group, tuple(block.map), f"{part} block {block.name!r}")
        if None in parsed:
            # Blocks of the whole part are stored under the key None.
            return tuple(joined_entry(parsed[None], i) for i in range(count))
        return tuple(TreeEntry({key: joined_entry(blocks, i) for key, blocks in parsed.items()}) for i in range(count))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, group={self.group.name})"

    @property
    def observation_representation(self) -> Representation:
        """The linear representation on the flattened observation, for the first layer of a network.

        Raises:
            SpecError: the observation entries are not linear data on a vector.
        """
        return self._part_representation(self.observation, "observation")

    @property
    def action_representation(self) -> Representation:
        """The linear representation on action vectors: one-hot (and policy) vectors for discrete actions.

        Raises:
            SpecError: the action entries are not linear data on a vector.
        """
        return self._part_representation(self.action, "action")

    def _part_representation(self, entries: Sequence[Entry], part: str) -> Representation:
        if isinstance(self.group, ContinuousGroup):
            return part_representation(self.group, self.algebra[part], entries, part)
        return _representation(self.group, entries, part)


def _entries(written: Any, group: Group, part: str) -> tuple[Entry, ...]:
    if isinstance(written, Representation):
        # Groups are compared by their generators: a representation of another group has other relations.
        if written.group != group:
            raise RepresentationError(
                f"the representation must belong to the group {group.name!r} (order {group.order}) of the "
                f"symmetry, but belongs to {written.group.name!r} (order {written.group.order}).",
                where=part,
                remedy="Build the symmetry and the representation from the same group object.",
            )
        # One matrix per generator, read in the same way as other entries.
        written = [written.matrix(g) for g in group.generators]
    count = len(group.generators)
    items = _as_list(written)
    if items is None or len(items) != count:
        given = f"{type(written).__name__} {written!r}" if items is None else f"{len(items)}"
        raise SpecError(
            f"expected {count} {'entry' if count == 1 else 'entries'}, one per generator of {group.name}; got {given}.",
            where=part,
            remedy=_suggest_brackets(written, part)
            if count == 1
            else f"Write a list: {part}=[first generator's entry, ...].",
        )
    return tuple(parse_entry(item, f"{part}[{i}]") for i, item in enumerate(items))


def _suggest_brackets(written: Any, part: str) -> str:
    """The entry of the only generator, for the message: the likely mistake is a missing pair of brackets."""
    entry = written if isinstance(written, str) else _as_list(written)
    if entry and len(entry) <= _SHOWN and all(isinstance(item, str | int | float) for item in entry):
        return f"Put the entry into a list: {part} = [{entry!r}]."
    return f"Write a list: {part} = [the generator's entry]."


def _as_list(written: Any) -> list[Any] | None:
    # Strings and dictionaries are not sequences of entries, one per generator.
    if isinstance(written, str | dict) or callable(written):
        return None
    if isinstance(written, Sequence) or hasattr(written, "__array__"):
        return list(written)
    return None


def check_relations(group: Group, entries: Sequence[Entry], part: str) -> None:
    """Reject data entries whose images violate a relation of the group.

    Args:
        group: the group that the entries claim to represent.
        entries: one per generator; the property `group_axioms` checks entries with callables.
        part: "observation", "action" or "state", for the message.

    Raises:
        RepresentationError: a relation fails.
        SpecError: the entries differ in size.
    """
    if any(isinstance(entry, TreeEntry) for entry in entries):
        _check_tree(group, entries, part)
        return
    # A callable cannot be checked beforehand; runs check it on samples.
    if any(isinstance(entry, FunctionEntry) for entry in entries):
        return
    affine = [entry for entry in entries if isinstance(entry, AffineEntry)]
    spatial = [entry for entry in entries if isinstance(entry, SpatialEntry)]
    # Identities take the size of the others.
    if affine and not spatial:
        _affine_representation(group, _fill_identities(entries, affine, part), part)
    elif spatial and not affine:
        # Spatial operators are checked on the corners of a square, which distinguish them.
        _refuse_unless(group, [corner_images(entry) for entry in entries], part)


def _fill_identities(entries: Sequence[Entry], affine: Sequence[AffineEntry], part: str) -> list[AffineEntry]:
    """The entries with identities written out at the size of the others."""
    sizes = sorted({entry.dim for entry in affine})
    if len(sizes) > 1:
        raise SpecError(f"expected entries of the same size, got sizes {sizes}.", where=part)
    n = sizes[0]
    unit = AffineEntry(index=np.arange(n), sign=np.ones(n, dtype=np.int64))
    return [entry if isinstance(entry, AffineEntry) else unit for entry in entries]


def _affine_representation(group: Group, entries: Sequence[AffineEntry], part: str) -> Representation:
    if all(entry.is_signed_permutation for entry in entries):
        return _refuse_unless(group, [signed_images(entry) for entry in entries], part)
    # With offsets, use matrices on (x, 1), where affine maps compose as matrices.
    linear = all(entry.offset is None for entry in entries)
    matrices = [entry.dense() if linear else entry.homogeneous() for entry in entries]
    try:
        # The relations of the group are checked by the constructor.
        return constructors.from_matrices(group, matrices)
    except RepresentationError as error:
        raise RepresentationError(error.problem, where=part, remedy=error.remedy) from error


def _refuse_unless(group: Group, images: Sequence[Sequence[int]], part: str) -> Representation:
    try:
        return constructors.signed_permutation(group, images)
    except RepresentationError as error:
        raise RepresentationError(error.problem, where=part, remedy=error.remedy) from error


def _check_tree(group: Group, entries: Sequence[Entry], part: str) -> None:
    if not all(isinstance(entry, TreeEntry | IdentityEntry) for entry in entries):
        raise SpecError("expected every generator's entry to be a mapping (or tuple), got a mixture.", where=part)
    trees = [entry.children if isinstance(entry, TreeEntry) else {} for entry in entries]
    # Sub-spaces are mapped separately: relations hold for each key.
    for key in sorted({key for tree in trees for key in tree}, key=str):
        check_relations(group, [tree.get(key, IdentityEntry()) for tree in trees], f"{part}[{key!r}]")


def signed_images(entry: AffineEntry) -> list[int]:
    """The signed one-based images of a signed permutation entry; entry j is the image of component j.

    Raises:
        SpecError: the entry is not a signed permutation.
    """
    if entry.index is None or entry.sign is None:
        raise SpecError("expected a signed permutation, got a dense matrix.")
    return [int(s * (i + 1)) for i, s in zip(entry.index, entry.sign, strict=True)]


def corner_images(entry: Entry) -> list[int]:
    """The permutation of the four corners of a square by a spatial operator, as one-based images.

    Raises:
        SpecError: the entry is neither a spatial operator nor the identity.
    """
    if isinstance(entry, IdentityEntry):
        return [1, 2, 3, 4]
    if not isinstance(entry, SpatialEntry):
        raise SpecError(f"expected a spatial operator, got {_in_words(entry)[0]}.")
    # source[p] is the corner that moves to position p; its inverse gives the image of each corner.
    source = SPATIAL_OPERATORS[entry.operator](np.arange(4).reshape(2, 2)).ravel()
    return [int(image) + 1 for image in np.argsort(source)]


def _in_words(entry: Entry) -> tuple[str, str]:
    """The kind of an entry in words, and the alternative that layers accept if it is not a linear map of a vector."""
    if isinstance(entry, SpatialEntry):
        return f"{entry.operator!r}", "For images, use spatial operators: BasisConv2d(..., spatial=[...])."
    if isinstance(entry, TreeEntry):
        return "a mapping of sub-spaces", (
            "Flatten the sub-spaces (gymnasium.wrappers.FlattenObservation) and write the same symmetry for the "
            "vector, block by block in the order of the space's keys."
        )
    if isinstance(entry, FunctionEntry):
        return "a callable", "Layers need the map as data: signs, a permutation or a matrix."
    if isinstance(entry, IdentityEntry):
        return "the identity", "Write the identity with its size: a list with 1 for each component."
    if entry.offset is not None:
        return "a map with an offset", "Affine maps become linear when the network's input is centred first."
    return "data on a vector", ""


def _representation(group: Group, entries: Sequence[Entry], part: str) -> Representation:
    affine = [entry for entry in entries if isinstance(entry, AffineEntry)]
    vectorial = all(isinstance(entry, AffineEntry | IdentityEntry) for entry in entries)
    # A linear representation needs data on one vector, without offsets.
    if not affine or not vectorial or any(entry.offset is not None for entry in affine):
        # List each kind of obstacle once, in the order of the entries.
        obstacles = list(dict.fromkeys(_in_words(entry) for entry in entries))
        raise SpecError(
            f"expected {part} entries that are linear data on a vector (signs, permutations, matrices); "
            f"got {' and '.join(words for words, _ in obstacles)}.",
            where=f"{part}_representation",
            remedy=" ".join(dict.fromkeys(remedy for _, remedy in obstacles if remedy)),
        )
    return _affine_representation(group, _fill_identities(entries, affine, part), part)
