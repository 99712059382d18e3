"""Describes the action of a claim of a continuous group in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from symcheck.entries.forms import TreeEntry
from symcheck.entries.lie_forms import LieEntry, LieFunctionEntry
from symcheck.groups.continuous import ContinuousGroup
from symcheck.symmetry.text import describe

if TYPE_CHECKING:
    from symcheck.symmetry.claimed_maps import ClaimedMaps
    from symcheck.symmetry.elements import Tested


def claim_lines(symmetry: ClaimedMaps, elements: Sequence[Tested]) -> dict[str, list[str]]:
    """Describe the action of each generator on each part, and the tested elements.

    Args:
        symmetry: a symmetry of a continuous group.
        elements: the elements that a run tests.

    Returns:
        {"observation": [...], "action": [...], "state": [...] if there is one, "tested": [...]}.
    """
    group = symmetry.group
    names = group.algebra if isinstance(group, ContinuousGroup) else ()
    lines = {}
    for part, lie in symmetry.algebra.items():
        discrete = getattr(symmetry, part) or ()
        texts = [f"{name}: {lie_text(entry, part[0])}" for name, entry in zip(names, lie, strict=True)]
        texts += [
            f"{name}: {describe(entry, part[0])}" for name, entry in zip(group.generator_names, discrete, strict=True)
        ]
        lines[part] = texts
    return {**lines, "tested": [str(each) for each in elements]}


def lie_text(entry: Any, symbol: str) -> str:
    """One entry of a Lie generator as a formula in t.

    Example:
        >>> lie_text(LieEntry(planes=((0, 1, 2.0),)), "o")
        '(o0, o1) turns by 2 t'
    """
    if isinstance(entry, LieEntry):
        return entry.describe(symbol)
    if isinstance(entry, LieFunctionEntry):
        return f"callable {getattr(entry.function, '__name__', type(entry.function).__name__)}"
    if isinstance(entry, TreeEntry):
        return "; ".join(f"{key}: {lie_text(child, symbol)}" for key, child in entry.children.items()) or "unchanged"
    return "unchanged"
