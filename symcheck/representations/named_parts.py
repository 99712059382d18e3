"""Representations of continuous groups written as text: "2*vector + 3*scalar + axial", and e3nn's "2x0e + 1x1o".

Parts come in the order in which they are listed. `tensor(k)` has n^k components, row-major. In e3nn's strings a part is
multiplicity x degree and parity (e even, o odd under the inversion); on SO(3) the parity is ignored.
"""

from __future__ import annotations

import re

from symcheck.errors import RepresentationError, suggestion
from symcheck.groups.continuous import ContinuousGroup
from symcheck.representations.lie import LieRepresentation, lie_sum, lie_tensor
from symcheck.representations.lie_constructors import (
    irrep,
    lie_trivial,
    pseudoscalar,
    pseudovector,
    require_continuous,
    vector,
)

_PART = re.compile(r"(?:(\d+)\s*\*\s*)?([a-z_]+)(?:\(\s*(\d+)\s*\))?")
_E3NN = re.compile(r"(?:(\d+)\s*x\s*)?(\d+)([eo])")
_NAMES = ("scalar", "pseudoscalar", "vector", "axial", "tensor(k)", "irrep(k)")
_MOST = 10_000
"""Components of one representation that is written as text."""


def named_representation(G: ContinuousGroup, text: str, *, where: str = "representation") -> LieRepresentation:
    """The representation described by a string.

    Args:
        G: the continuous group.
        text: for instance "2*vector + 3*scalar + axial", or "2x0e + 1x1o".
        where: the place named in error messages.

    Returns:
        The direct sum of the parts, in their order.

    Raises:
        RepresentationError: an unknown part; the message names it.

    Example:
        >>> from symcheck.groups import o
        >>> named_representation(o(3), "2*vector + scalar").dim, named_representation(o(3), "2x0e + 1x1o").dim
        (7, 5)
    """
    require_continuous(G, where)
    if not isinstance(text, str):
        raise RepresentationError(f"expected text such as '2*vector + scalar', got {text!r}.", where=where)
    parts: list[LieRepresentation] = []
    for piece in text.split("+"):
        count, part = _read(G, piece.strip(), where)
        if not count >= 1 or sum(p.dim for p in parts) + count * part.dim > _MOST:
            raise RepresentationError(f"{piece.strip()!r} has no components, or more than {_MOST:,}.", where=where)
        parts += [part] * count
    made = lie_sum(parts)
    made.name = " + ".join(piece.strip() for piece in text.split("+"))
    return made


def _read(G: ContinuousGroup, piece: str, where: str) -> tuple[int, LieRepresentation]:
    if (match := _E3NN.fullmatch(piece)) is not None:
        return int(match[1] or 1), _from_e3nn(G, int(match[2]), match[3], where)
    match = _PART.fullmatch(piece)
    if match is None or (match[3] is None) != (match[2] in ("scalar", "pseudoscalar", "vector", "axial")):
        raise RepresentationError(
            f"expected parts such as '2*vector' or '1x1o', got {piece!r}.",
            where=where,
            remedy=f"Parts are {', '.join(_NAMES)}, and the parts of e3nn.",
        )
    count, name, degree = int(match[1] or 1), match[2], int(match[3] or 0)
    match name:
        case "scalar":
            return count, lie_trivial(G)
        case "pseudoscalar":
            return count, pseudoscalar(G)
        case "vector":
            return count, vector(G)
        case "axial":
            return count, pseudovector(G)
        case "irrep":
            return count, irrep(G, degree)
        case "tensor":
            polar = vector(G)
            if polar.dim ** max(degree, 1) > _MOST:
                raise RepresentationError(f"{piece!r} has more than {_MOST:,} components.", where=where)
            return count, lie_tensor([polar] * degree) if degree else lie_trivial(G)
    raise RepresentationError(f"no part is called {name!r}.", where=where, remedy=suggestion(name, _NAMES))


def _from_e3nn(G: ContinuousGroup, degree: int, letter: str, where: str) -> LieRepresentation:
    turning = [factor for factor in G.factors if factor.turns]
    if len(turning) != 1 or turning[0].n != 3:
        raise RepresentationError(
            f"e3nn's strings describe representations of rotations in space, but the group is {G.name}.",
            where=where,
            remedy=f"Parts are {', '.join(_NAMES)}.",
        )
    parity = {"e": 1, "o": -1}[letter] if turning[0].reflects else None
    return irrep(G, degree, parity=parity)
