"""The elements of a continuous group that runs test.

If both sides of the claim are continuous in the element, the elements under which it holds form a closed subgroup. Two
generic elements generate a dense subgroup of a compact connected Lie group; one generic angle does so for a circle, and
n + 1 generic amounts for the translations along n axes. An element is a word in Lie generators with one amount each.

An angle is drawn such that, for every harmonic k up to 8, rotation changes cos(k phi) somewhere by at least half its
amplitude: 2 |sin(k angle / 2)| >= 1/2 (no angle changes all eight by more than 0.69 of their amplitude). Up to k = 32
the change is at least a tenth. A defect with a fourfold or eightfold pattern is therefore never tested at an angle
under which it is invariant.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from symcheck.array_types import Floats
from symcheck.errors import SpecError
from symcheck.groups.continuous import ContinuousGroup
from symcheck.groups.lie_factors import Factor, haar

HARMONICS = 8
"""Every harmonic up to this one is changed by at least `MOVED`."""
MOVED = 0.5
"""The smallest change of cos(k phi), relative to its amplitude of 1."""
_FURTHER, _FURTHER_MOVED = 32, 0.1
_DRAWS = 4_000


Factors: TypeAlias = Sequence[tuple[int, float | None]]
"""(Lie generator, amount) or (discrete generator, None); the last acts first."""


@dataclass(frozen=True)
class Tested:
    """One element, as a word.

    Attributes:
        word: names of generators; the last acts first.
        parameters: one amount per Lie generator in the word, in its order.
        factors: (number of the Lie generator, amount), or (number of the discrete generator, None).

    Example:
        >>> str(Tested(("turn",), (1.5,), ((0, 1.5),)))
        'turn(1.5)'
    """

    word: tuple[str, ...]
    parameters: tuple[float, ...]
    factors: tuple[tuple[int, float | None], ...]

    def __str__(self) -> str:
        amounts = iter(self.parameters)
        return " ".join(
            f"{name}({next(amounts):.6g})" if t is not None else name
            for name, (_, t) in zip(self.word, self.factors, strict=True)
        )


def element(group: ContinuousGroup, factors: Sequence[tuple[int, float | None]]) -> Tested:
    """The element given by factors."""
    names = tuple(group.algebra[i] if t is not None else group.generator_names[i] for i, t in factors)
    return Tested(names, tuple(float(t) for _, t in factors if t is not None), tuple(factors))


def read_element(group: ContinuousGroup, word: str, parameters: Sequence[float]) -> Tested:
    """Read an element from the names in a report.

    Args:
        group: the continuous group.
        word: names of generators, with spaces between.
        parameters: one amount per Lie generator in the word.

    Returns:
        The element.

    Raises:
        SpecError: a name that is not a generator's, or the wrong number of amounts.

    Example:
        >>> from symcheck.groups.continuous import o
        >>> read_element(o(2), "turn reflection", [0.5]).factors
        ((0, 0.5), (0, None))
    """
    names, amounts = word.split(), list(parameters)
    known = {*group.algebra, *group.generator_names}
    if not set(names) <= known or len(amounts) != sum(name in group.algebra for name in names):
        raise SpecError(
            f"{group.name} has no element {word!r} with {len(amounts)} parameters, which the report names.",
            where="group_element",
            remedy="Replay the report with its original symmetry.",
        )
    left = iter(amounts)
    return element(
        group,
        [
            (group.algebra.index(name), float(next(left)))
            if name in group.algebra
            else (group.generator_names.index(name), None)
            for name in names
        ],
    )


def generic_elements(group: ContinuousGroup, rng: np.random.Generator, amount: Callable[[int], float]) -> list[Tested]:
    """The elements that runs test: generic elements of every factor, then the discrete generators.

    Args:
        group: the continuous group.
        rng: the generator that draws them.
        amount: the size of a translation, by Lie generator.

    Returns:
        One element (for a circle) or two per factor of rotations, n + 1 per factor of translations, and every discrete
        generator.
    """
    chosen: list[Tested] = []
    for k, factor in enumerate(group.factors):
        own = [i for i, (owner, _) in enumerate(group.lie_places) if owner == k]
        shifts, turns = own[: factor.shifts], own[factor.shifts :]
        for _ in range(len(shifts) + 1 if shifts else 0):
            # Amounts of both signs, with magnitudes between a third and all of the size.
            amounts = [amount(i) * rng.uniform(1 / 3, 1) * rng.choice([-1.0, 1.0]) for i in shifts]
            chosen.append(element(group, list(zip(shifts, amounts, strict=True))))
        for _ in range((1 if len(turns) == 1 else 2) if turns else 0):
            angles = generic_angles(factor, rng)
            chosen.append(element(group, list(zip(turns, angles, strict=True))))
    return [*chosen, *(element(group, [(h, None)]) for h in range(len(group.generators)))]


def generic_angles(factor: Factor, rng: np.random.Generator) -> list[float]:
    """One angle per rotation generator of a factor.

    Their product also changes each harmonic up to 8 by half or more.
    """
    best, score = [0.0] * len(factor.planes), -1.0
    for _ in range(_DRAWS):
        angles = [float(angle) for angle in rng.uniform(0.0, 2 * math.pi, size=len(factor.planes))]
        own = angles if len(angles) == 1 else _angles_of(factor, angles)
        reached = min(_least_moved(angle, HARMONICS) for angle in own)
        further = min(_least_moved(angle, _FURTHER) for angle in own)
        if reached >= MOVED and further >= _FURTHER_MOVED:
            return angles
        # In many dimensions few products satisfy this for all angles: use the best of those drawn.
        if min(reached, MOVED) + min(further, _FURTHER_MOVED) > score:
            best, score = angles, min(reached, MOVED) + min(further, _FURTHER_MOVED)
    return best


def _least_moved(angle: float, harmonics: int) -> float:
    """The smallest 2 |sin(k angle / 2)| of k = 1, ..., harmonics."""
    return float(np.abs(2 * np.sin(np.arange(1, harmonics + 1) * angle / 2)).min())


def _angles_of(factor: Factor, angles: Sequence[float]) -> list[float]:
    """The angles by which a product of rotations rotates its invariant planes."""
    whole = np.eye(factor.size)
    for i, angle in enumerate(angles):
        whole = whole @ np.asarray(factor.exp(factor.shifts + i, angle))
    values = np.angle(np.linalg.eigvals(whole[: factor.n, : factor.n]))
    # Eigenvalues come in pairs; for odd n the axis, with angle 0, is omitted.
    return [float(value) for value in np.sort(np.abs(values))[factor.n % 2 :: 2]]


def uniform_element(group: ContinuousGroup, rng: np.random.Generator) -> Tested:
    """A Haar element of the compact connected part, as a word in rotation generators."""
    factors: list[tuple[int, float | None]] = []
    for k, factor in enumerate(group.factors):
        if not factor.turns:
            continue
        own = [i for i, (owner, _) in enumerate(group.lie_places) if owner == k][factor.shifts :]
        if len(own) == 1:
            factors.append((own[0], float(rng.uniform(0.0, 2 * math.pi))))
            continue
        for plane, angle in plane_rotations(haar(factor.n, rng, special=True)):
            forward = plane in factor.planes
            place = factor.planes.index(plane if forward else plane[::-1])
            factors.append((own[place], angle if forward else -angle))
    return element(group, factors)


def plane_rotations(rotation: Floats) -> list[tuple[tuple[int, int], float]]:
    """A rotation as a product of rotations of coordinate planes (Givens), the last acting first.

    Args:
        rotation: shape (n, n), determinant 1.

    Returns:
        ((i, j), angle); e_i rotates towards e_j.

    Example:
        >>> plane_rotations(np.array([[0.0, -1.0], [1.0, 0.0]]))
        [((0, 1), 1.5707963267948966)]
    """
    left, found = rotation.copy(), []
    for i, j in itertools.combinations(range(len(rotation)), 2):
        # The rotation by -angle sets entry (j, i) to 0 and entry (i, i) to the positive length.
        angle = math.atan2(left[j, i], left[i, i])
        cos, sin = math.cos(angle), math.sin(angle)
        left[[i, j]] = np.array([[cos, sin], [-sin, cos]]) @ left[[i, j]]
        found.append(((i, j), angle))
    return found


def axiom_words(group: ContinuousGroup, amount: Callable[[int], float]) -> list[list[tuple[int, float | None]]]:
    """Products that equal the identity, on which callables are tested.

    Args:
        group: the continuous group.
        amount: the size of a translation, by Lie generator.

    Returns:
        For each Lie generator, exp(s) exp(t) exp(-s - t), and exp(2 pi) for rotations; for each pair, a commutator or a
        conjugate by a quarter turn; for each discrete generator, its relations, alone and with the Lie generators.
    """
    words: list[list[tuple[int, float | None]]] = []
    count = len(group.algebra)
    size = [1.0 if group.turns(i) else amount(i) for i in range(count)]
    for i in range(count):
        words.append([(i, 0.7 * size[i]), (i, 1.1 * size[i]), (i, -1.8 * size[i])])
        if group.turns(i):
            words.append([(i, 2 * math.pi)])
    for i, j, bracket in group.brackets:
        s, t = 0.7 * size[i], 1.1 * size[j]
        if not bracket.any():
            words.append([(i, s), (j, t), (i, -s), (j, -t)])
        elif group.turns(i) or group.turns(j):
            # exp(pi/2 A_i) A_j exp(-pi/2 A_i) = [A_i, A_j] if A_i rotates A_j into another generator.
            a, b, sign = (i, j, 1.0) if group.turns(i) else (j, i, -1.0)
            k = int(np.flatnonzero(bracket)[0])
            size_b = 1.1 * size[b]
            words.append([(a, math.pi / 2), (b, size_b), (a, -math.pi / 2), (k, -sign * float(bracket[k]) * size_b)])
    words += [[(letter, None) for letter in relator] for relator in group.relators]
    for h in range(len(group.generators)):
        inverse: list[tuple[int, float | None]] = [(h, None)] * (group.order_of(h) - 1)
        for i, row in enumerate(group.adjoint(h)):
            k = int(np.flatnonzero(row)[0])
            t = 0.9 * size[i]
            words.append([(h, None), (i, t), *inverse, (k, -float(row[k]) * t)])
    return words
