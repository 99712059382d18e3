"""From an infinitesimal rotation to a claim of every angle: SO(2), with what of the finite group goes beside it.

A family that the null space proposes is verified at a generic angle, as any claim of a continuous group is. Where it
holds, a mirror that was verified too makes O(2) of it, and other verified elements that commute with it a product.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import expm, logm

from symcheck.array_types import Floats
from symcheck.discovery.claims import Spaces, action_entry, observation_entry
from symcheck.discovery.elements import Recognised
from symcheck.discovery.laboratory import Laboratory
from symcheck.discovery.observation_maps import observation_matrix
from symcheck.discovery.rotations import Generator
from symcheck.entries.forms import AffineEntry, parse_entry
from symcheck.errors import SymcheckError
from symcheck.symmetry.spec import symmetry_from_mapping
from symcheck.symmetry.symmetry import Symmetry

_WHOLE = 5e-3  # rates are read off difference quotients, as in `rotations`
_SMALL = 0.5  # radians: far from where logarithms branch
_ANGLES = tuple(np.pi * k / 12 for k in range(1, 24))


@dataclass(frozen=True)
class Family:
    """A claim of a continuous group.

    Attributes:
        fields: of the SPEC file.
        claim: the symmetry.
    """

    fields: dict[str, Any]
    claim: Symmetry

    @staticmethod
    def of(fields: dict[str, Any]) -> Family:
        """The claim that the fields make.

        Raises:
            SymcheckError: they make none.
        """
        return Family(fields, symmetry_from_mapping(fields, fields["name"]))


def family_of(lab: Laboratory, generator: Generator, where: Spaces) -> Family:
    """The claim of every angle of an infinitesimal rotation.

    Args:
        lab: the environment.
        generator: what was found.
        where: what entries are written for.

    Returns:
        The claim, of SO(2).

    Raises:
        SymcheckError: angles move along (no map of numbers is periodic), rates are not whole, or observations follow
            no linear map.
    """
    if generator.shift.any():
        raise SymcheckError("angles move along, which no data of SO(2) says.", where="rotation")
    rates = np.concatenate([generator.state.ravel(), generator.action.ravel()])
    # A quaternion turns by half of what the body does: then one turn of the group is two of the fastest plane.
    factor = next((k for k in (1, 2) if np.abs(k * rates - np.rint(k * rates)).max() < _WHOLE), 0)
    if not factor:
        raise SymcheckError("the rates of its planes are no whole multiples of one.", where="rotation")
    state, action = np.rint(factor * generator.state), np.rint(factor * generator.action)
    made: dict[str, Any] = {"name": f"{lab.label} turn", "group": "so(2)"}
    if lab.shows_state:
        made["observation"] = [_entry(state)]
    else:
        turn, acting = expm(_SMALL * state), expm(_SMALL * action)
        matrix, _ = observation_matrix(lab, lambda x: x @ turn.T, acting)
        made["observation"] = [_entry(np.rint(np.real(logm(matrix)) / _SMALL))]
        made["state"] = [_entry(state)]
    made["action"] = [_entry(action)]
    return Family.of(made)


def _entry(generator: Floats) -> Any:
    """A Lie generator as planes that rotate, with their frequencies where not all are 1."""
    planes = []
    for i, j in zip(*np.triu_indices(len(generator), 1), strict=True):
        rate = generator[j, i]
        if rate:
            planes.append(([int(i), int(j)] if rate > 0 else [int(j), int(i)], int(abs(rate))))
    if not planes:
        return "identity"
    written: dict[str, Any] = {"rotate": [pair for pair, _ in planes]}
    if any(rate != 1 for _, rate in planes):
        written["frequency"] = [rate for _, rate in planes]
    return written


def with_finite_part(family: Family, group: Recognised | None, where: Spaces) -> Iterator[Family]:
    """Larger claims: the family with a verified mirror, or with verified elements that commute with it.

    Args:
        family: of SO(2).
        group: the finite group that was verified; None for none.
        where: what entries are written for.

    Yields:
        O(2) where an element reverses the turn, products with cyclic groups where one commutes with it and is no turn.
    """
    for candidate in () if group is None else group.generators:
        parts = {
            "observation": observation_entry(candidate, where),
            "action": action_entry(candidate, where),
            **({"state": candidate.state.spec_entry()} if where.has_state else {}),
        }
        signs = {part: _relation(family.fields[part][0], entry) for part, entry in parts.items()}
        moving = {sign for sign in signs.values() if sign is not None}
        if moving == {-1} and candidate.order == 2:
            yield _join_parts(family, "o(2)", parts)
        elif moving == {1} and not _is_turn(family.fields, parts):
            yield _join_parts(family, f"product(so(2), cyclic({candidate.order}))", parts)


def _join_parts(family: Family, group: str, parts: dict[str, Any]) -> Family:
    both = {part: [*family.fields[part], entry] for part, entry in parts.items()}
    return Family.of({**family.fields, "group": group, **both})


def _matrices(lie: Any, written: Any) -> tuple[Floats, Floats] | None:
    """The Lie generator and the finite map as matrices; None where the one does not move or the other is no matrix."""
    entry = None if isinstance(written, str) else parse_entry(written, "entry")
    if lie == "identity" or not isinstance(entry, AffineEntry) or entry.offset is not None:
        return None
    generator = np.zeros((entry.dim, entry.dim))
    frequency = lie.get("frequency", [1] * len(lie["rotate"]))
    for (i, j), rate in zip(lie["rotate"], frequency, strict=True):
        generator[j, i], generator[i, j] = rate, -rate
    return generator, entry.dense()


def _relation(lie: Any, written: Any) -> int | None:
    """1 where the map commutes with the turn, -1 where it reverses it, 0 where it does neither; None of no turn."""
    both = _matrices(lie, written)
    if both is None:
        return None
    generator, matrix = both
    conjugated = matrix @ generator @ np.linalg.inv(matrix)
    if np.allclose(conjugated, generator):
        return 1
    return -1 if np.allclose(conjugated, -generator) else 0


def _is_turn(fields: dict[str, Any], parts: dict[str, Any]) -> bool:
    """Whether a finite map is the turn by some angle itself, and adds nothing."""
    pairs = {part: _matrices(fields[part][0], entry) for part, entry in parts.items()}
    for angle in _ANGLES:
        fits = True
        for part, both in pairs.items():
            if both is not None:
                fits = fits and np.allclose(expm(angle * both[0]), both[1])
            else:
                entry = parse_entry(parts[part], part)
                still = not isinstance(entry, AffineEntry) or np.allclose(entry.dense(), np.eye(entry.dim))
                fits = fits and still
        if fits:
            return True
    return False
