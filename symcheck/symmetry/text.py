"""Describes the action of a symmetry in words, for terminal, page and messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from symcheck.entries.forms import AffineEntry, Entry, FunctionEntry, IdentityEntry, SpatialEntry, TreeEntry
from symcheck.entries.lie_forms import ElementEntry

if TYPE_CHECKING:
    from symcheck.symmetry.blocks import Block
    from symcheck.symmetry.claimed_maps import ClaimedMaps

_LONGEST_LISTED = 12


def claim(symmetry: ClaimedMaps, label: Callable[[Sequence[int]], str]) -> dict[str, list[str]]:
    """How each generator acts on each part, one string per generator.

    Args:
        symmetry: the claim.
        label: names an element given as a word.

    Returns:
        {"observation": [...], "action": [...]} and "state" if the symmetry has state entries.
    """
    # A symmetry without state entries makes no claim about internal states.
    parts = {"observation": symmetry.observation, "action": symmetry.action, "state": symmetry.state or ()}
    whole = {
        part: [f"{label((i,))}: {describe(entry, part[0])}" for i, entry in enumerate(entries)]
        for part, entries in parts.items()
        if entries
    }
    return {**whole, **_claim_of_blocks(symmetry, label)}


def _claim_of_blocks(symmetry: ClaimedMaps, label: Callable[[Sequence[int]], str]) -> dict[str, list[str]]:
    """How each generator acts, block by block."""
    lines = {}
    for part, tables in symmetry.blocks.items():
        blocks = [(key, block) for key, listed in tables.items() for block in listed]
        lines[part] = [
            f"{label((i,))}: "
            + "; ".join(
                f"{block.name if key is None else f'{key} {block.name}'}: {_block_text(block, block.map[i], part[0])}"
                for key, block in blocks
            )
            for i in range(len(symmetry.group.generators))
        ]
    return lines


def _block_text(block: Block, entry: Entry, symbol: str) -> str:
    """One block's entry: by the names of its components if they have names, otherwise as a formula."""
    if block.names is None or not isinstance(entry, AffineEntry) or entry.index is None or entry.sign is None:
        return describe(entry, symbol)
    # List only components that move or change sign.
    moved = [
        f"{name} -> {'-' if s < 0 else ''}{block.names[i]}"
        for k, (name, i, s) in enumerate(zip(block.names, entry.index, entry.sign, strict=True))
        if i != k or s < 0
    ]
    if not moved:
        return "unchanged"
    return ", ".join(moved) if len(moved) <= _LONGEST_LISTED else _count_changes(entry)


def describe(entry: Entry | ElementEntry, symbol: str) -> str:
    """One entry as a formula.

    Args:
        entry: how one generator acts.
        symbol: the letter of its components.

    Returns:
        For instance "(o0, o1) -> (-o0, o1)"; long vectors are counted instead.

    Example:
        >>> from symcheck.entries.forms import parse_entry
        >>> describe(parse_entry(["-2", "+1"], ""), "s")
        '(s0, s1) -> (s1, -s0)'
        >>> describe(parse_entry([1, 0], ""), "a")
        '0 <-> 1'
    """
    match entry:
        case IdentityEntry():
            return "unchanged"
        case SpatialEntry(operator, channels_last):
            return f"{operator} of the {'two axes before the last' if channels_last else 'last two axes'}"
        case FunctionEntry(function):
            return f"callable {getattr(function, '__name__', type(function).__name__)}"
        case TreeEntry(children):
            return "; ".join(f"{key}: {describe(child, symbol)}" for key, child in children.items()) or "unchanged"
        case AffineEntry():
            return _affine(entry, symbol)
        case ElementEntry(factors):
            return "; ".join(
                _affine(factor, symbol)
                if isinstance(factor, AffineEntry)
                else f"{factor.describe(symbol)}, t = {t:.6g}"
                for factor, t in factors
            )


def _affine(entry: AffineEntry, symbol: str) -> str:
    # Write permutations of values as cycles, and those of components as a formula.
    if (images := entry.permutation()) is not None and symbol == "a":
        return _cycles(images)
    if entry.dim > _LONGEST_LISTED:
        return _count_changes(entry)
    source = ", ".join(f"{symbol}{i}" for i in range(entry.dim))
    matrix = entry.dense()
    offset = np.zeros(entry.dim) if entry.offset is None else entry.offset
    image = ", ".join(_row_formula(row, shift, symbol) for row, shift in zip(matrix, offset, strict=True))
    return f"({source}) -> ({image})"


def _row_formula(row: Sequence[float], shift: float, symbol: str) -> str:
    # Terms with coefficient 0 are left out; a row of zeros shows its offset.
    terms = [_term(coefficient, f"{symbol}{i}") for i, coefficient in enumerate(row) if coefficient]
    if shift or not terms:
        terms.append(f"{shift:+.6g}")
    # "+x0" becomes "+ x0"; a leading plus is dropped below.
    text = " ".join(f"{term[0]} {term[1:]}" for term in terms)
    return text[2:] if text.startswith("+ ") else f"-{text[2:]}"


def _term(coefficient: float, name: str) -> str:
    sign = "-" if coefficient < 0 else "+"
    size = abs(coefficient)
    return f"{sign}{name}" if size == 1 else f"{sign}{size:.6g} {name}"


def _cycles(images: Sequence[int] | np.ndarray[tuple[int], np.dtype[np.int64]]) -> str:
    visited: set[int] = set()
    cycles = []
    # Each cycle from its smallest value; fixed values have cycles of length 1 and are left out.
    for first in range(len(images)):
        cycle = []
        value = first
        while value not in visited:
            visited.add(value)
            cycle.append(value)
            value = int(images[value])
        if len(cycle) == 2:
            cycles.append(f"{cycle[0]} <-> {cycle[1]}")
        elif len(cycle) > 2:
            cycles.append(" -> ".join(map(str, [*cycle, cycle[0]])))
    return ", ".join(cycles) or "unchanged"


def _count_changes(entry: AffineEntry) -> str:
    if entry.index is None or entry.sign is None:
        return f"a dense {entry.dim}x{entry.dim} matrix"
    moved = int((entry.index != np.arange(entry.dim)).sum())
    negated = int((entry.sign < 0).sum())
    return f"moves {moved} and negates {negated} of {entry.dim} components"
