"""From infinitesimal rotations to claims for every angle: SO(2) or SO(3), combined with the finite group if possible.

A family proposed by the null space is verified at a generic angle, like any claim of a continuous group. If it holds, a
verified mirror extends it to O(2), and other verified elements that commute with it extend it to a product.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

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

_WHOLE = 5e-3  # rates come from difference quotients, as in `rotations`
_SMALL = 0.5  # radians: far from the branch cut of the logarithm
_ANGLES = tuple(np.pi * k / 12 for k in range(1, 24))


@dataclass(frozen=True)
class Family:
    """A claim of a continuous group.

    Attributes:
        fields: the fields of the SPEC file.
        claim: the symmetry.
    """

    fields: dict[str, Any]
    claim: Symmetry

    @staticmethod
    def of(fields: dict[str, Any]) -> Family:
        """The claim defined by the fields.

        Raises:
            SymcheckError: the fields do not define a claim.
        """
        return Family(fields, symmetry_from_mapping(fields, fields["name"]))


def family_of(lab: Laboratory, generator: Generator, where: Spaces) -> Family:
    """The claim that an infinitesimal rotation holds for every angle.

    Args:
        lab: the environment.
        generator: the infinitesimal rotation.
        where: the spaces for which entries are written.

    Returns:
        The claim, of SO(2).

    Raises:
        SymcheckError: the rotation shifts angles (no map of numbers is periodic), rates are not integers, or
            observations do not transform linearly.
    """
    if generator.shift.any():
        raise SymcheckError(
            "the rotation shifts angles, and the data of a SPEC file cannot express this for SO(2).", where="rotation"
        )
    rates = np.concatenate([generator.state.ravel(), generator.action.ravel()])
    # A quaternion rotates by half the angle of the body: then one turn of the group is two turns of the fastest plane.
    factor = next((k for k in (1, 2) if np.abs(k * rates - np.rint(k * rates)).max() < _WHOLE), 0)
    if not factor:
        raise SymcheckError(
            "the rotation rates in its planes are not integer multiples of a common rate.", where="rotation"
        )
    state, action = np.rint(factor * generator.state), np.rint(factor * generator.action)
    made: dict[str, Any] = {"name": f"{lab.label} turn", "group": "so(2)"}
    if lab.shows_state:
        made["observation"] = [_entry(state)]
    else:
        from scipy.linalg import expm, logm  # loads scipy

        turn, acting = expm(_SMALL * state), expm(_SMALL * action)
        matrix, _ = observation_matrix(lab, lambda x: x @ turn.T, acting)
        made["observation"] = [_entry(np.rint(np.real(logm(matrix)) / _SMALL))]
        made["state"] = [_entry(state)]
    made["action"] = [_entry(action)]
    return Family.of(made)


def spatial_family(families: Sequence[Family]) -> Family | None:
    """The claim for every rotation of space, if three of the rotations are those about x, y and z.

    Args:
        families: claims of SO(2), not verified.

    Returns:
        The claim of SO(3); None if no three rotations have its brackets.
    """
    # About x, y and z: rotations of components (2, 3), (3, 1) and (1, 2).
    ordered = sorted(families, key=lambda each: _first_plane(each), reverse=True)
    for three in itertools.combinations(ordered, 3):
        for order in ((0, 1, 2), (0, 2, 1)):
            signs = _signs_of_brackets([three[i] for i in order])
            if signs is not None:
                parts = [part for part in ("observation", "action", "state") if part in three[0].fields]
                fields: dict[str, Any] = {
                    part: [_reverse(three[i].fields[part][0], sign) for i, sign in zip(order, signs, strict=True)]
                    for part in parts
                }
                name = three[0].fields["name"].removesuffix(" turn") + " rotations"
                return Family.of({"name": name, "group": "so(3)", **fields})
    return None


def _signs_of_brackets(three: Sequence[Family]) -> tuple[int, ...] | None:
    """Signs for which [x, y] = z, [y, z] = x and [z, x] = y hold in every part; None if there are none."""
    for signs in ((1, -1, 1), *itertools.product((1, -1), repeat=3)):
        if all(
            _closes([_lie_matrix(each.fields[part][0], sign) for each, sign in zip(three, signs, strict=True)])
            for part in three[0].fields
            if part in ("observation", "action", "state")
        ):
            return signs
    return None


def _first_plane(family: Family) -> list[int]:
    lie = family.fields["observation"][0]
    return [] if lie == "identity" else sorted(lie["rotate"][0])


def _closes(matrices: Sequence[Floats]) -> bool:
    size = max(len(matrix) for matrix in matrices)
    x, y, z = (np.pad(matrix, (0, size - len(matrix))) for matrix in matrices)
    return all(np.allclose(a @ b - b @ a, c) for a, b, c in ((x, y, z), (y, z, x), (z, x, y)))


def _lie_matrix(lie: Any, sign: int) -> Floats:
    """The matrix of an entry of a Lie generator; its size is the largest component that the entry names."""
    if lie == "identity":
        return np.zeros((0, 0))
    size = 1 + max(max(pair) for pair in lie["rotate"])
    generator = np.zeros((size, size))
    for (i, j), rate in zip(lie["rotate"], lie.get("frequency", [1] * len(lie["rotate"])), strict=True):
        generator[j, i], generator[i, j] = sign * rate, -sign * rate
    return generator


def _reverse(lie: Any, sign: int) -> Any:
    """The entry of the rotation in the given or the opposite direction."""
    if lie == "identity" or sign > 0:
        return lie
    return {**lie, "rotate": [pair[::-1] for pair in lie["rotate"]]}


def _entry(generator: Floats) -> Any:
    """A Lie generator as rotating planes, with their frequencies if not all are 1."""
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
        family: the family of rotations, SO(2).
        group: the verified finite group; None if there is none.
        where: the spaces for which entries are written.

    Yields:
        O(2) if an element reverses the rotation; products with cyclic groups if one commutes with it and is not itself
        a rotation of the family.
    """
    if family.claim.group.name == "SO(3)":
        return
    beside: list[Family] = []
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
            beside.append(_join_parts(family, f"product(so(2), cyclic({candidate.order}))", parts))
    yield from beside


def _join_parts(family: Family, group: str, parts: dict[str, Any]) -> Family:
    both = {part: [*family.fields[part], entry] for part, entry in parts.items()}
    return Family.of({**family.fields, "group": group, **both})


def _matrices(lie: Any, written: Any) -> tuple[Floats, Floats] | None:
    """The Lie generator and the finite map as matrices; None if the first is zero or the second is not linear."""
    entry = None if isinstance(written, str) else parse_entry(written, "entry")
    if lie == "identity" or not isinstance(entry, AffineEntry) or entry.offset is not None:
        return None
    generator = np.zeros((entry.dim, entry.dim))
    frequency = lie.get("frequency", [1] * len(lie["rotate"]))
    for (i, j), rate in zip(lie["rotate"], frequency, strict=True):
        generator[j, i], generator[i, j] = rate, -rate
    return generator, entry.dense()


def _relation(lie: Any, written: Any) -> int | None:
    """1 if the map commutes with the rotation, -1 if it reverses it, 0 if neither; None without a rotation."""
    both = _matrices(lie, written)
    if both is None:
        return None
    generator, matrix = both
    conjugated = matrix @ generator @ np.linalg.inv(matrix)
    if np.allclose(conjugated, generator):
        return 1
    return -1 if np.allclose(conjugated, -generator) else 0


def _is_turn(fields: dict[str, Any], parts: dict[str, Any]) -> bool:
    """Whether a finite map is a rotation of the family, so that it adds nothing."""
    from scipy.linalg import expm  # loads scipy

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
