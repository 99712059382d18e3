"""Characters of compact continuous groups as Laurent polynomials on a maximal torus, and ranks from them.

On the component of the group that contains h, the character is f(theta) = tr rho(exp(theta . H) h), a sum of exp(i w
theta) over integer weights w. The mean of a class function over that component is the constant term of f times the
product of (1 - exp(i a theta)) over positive roots a (Weyl's formula; C_{m-1} for the reflections of O(2m)), so the
number of intertwiners is computed in integers, before any basis.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from symcheck.array_types import Floats
from symcheck.errors import RepresentationError
from symcheck.groups.continuous import ContinuousGroup
from symcheck.groups.element import Word
from symcheck.groups.lie_factors import Factor
from symcheck.representations.lie import LieRepresentation

Weight = tuple[int, ...]
Polynomial = dict[Weight, complex]
_COMPONENTS = 5_000
"""Largest number of components (conjugacy classes of the discrete part) that are summed over."""


@dataclass(frozen=True)
class Component:
    """A component of the group, up to conjugation.

    Attributes:
        planes: the Lie generators of its maximal torus, with the sign that makes them rotate e_i towards e_i+1.
        word: a word in the discrete generators for the element h.
        roots: positive roots of the mean over the component, as weights of that torus.
        share: the share of this component in all components.
    """

    planes: tuple[tuple[int, float], ...]
    word: Word
    roots: tuple[Weight, ...]
    share: float


def lie_dimension(rho_in: LieRepresentation, rho_out: LieRepresentation) -> int:
    """The number of independent matrices W that intertwine, from characters alone.

    Args:
        rho_in: a representation of a compact group.
        rho_out: a representation of the same group.

    Returns:
        The dimension, 0 included.

    Raises:
        RepresentationError: the characters do not sum to an integer.

    Example:
        >>> from symcheck.groups import so
        >>> from symcheck.representations.lie_constructors import vector
        >>> lie_dimension(vector(so(2)), vector(so(2))), lie_dimension(vector(so(3)), vector(so(3)))
        (2, 1)

    Source: H. Weyl, "The Classical Groups" (1939), chapter VII.
    """
    total = 0.0 + 0.0j
    for component in components(rho_in.group):
        weighted = {
            tuple(-w for w in weight): value.conjugate() for weight, value in torus_character(rho_in, component).items()
        }
        for root in component.roots:
            weighted = _times_one_minus(weighted, root)
        outer = torus_character(rho_out, component)
        # The constant term of the product.
        constant = sum(value * outer.get(tuple(-w for w in weight), 0.0) for weight, value in weighted.items())
        total += component.share * constant
    if abs(total - round(total.real)) > 1e-3:
        raise RepresentationError(
            f"the characters predict {total.real:.6f} intertwiners, which is not an integer: the matrices "
            "are too ill-conditioned.",
            where="intertwiner_dimension",
            remedy="Change to a basis in which the matrices are orthogonal.",
        )
    return round(total.real)


def components(group: ContinuousGroup) -> Iterator[Component]:
    """The components of a compact group, one from each conjugacy class."""
    choices = [_choices(group, k, factor) for k, factor in enumerate(group.factors)]
    if np.prod([float(len(some)) for some in choices]) > _COMPONENTS:
        raise RepresentationError(
            f"{group.name} has too many components for its characters to be summed.", where="intertwiner_dimension"
        )
    for row in itertools.product(*choices):
        ranks = [len(each.planes) for each in row]
        roots: list[Weight] = []
        for k, each in enumerate(row):
            before, after = sum(ranks[:k]), sum(ranks[k + 1 :])
            roots += [(0,) * before + root + (0,) * after for root in each.roots]
        planes = tuple(plane for each in row for plane in each.planes)
        word = tuple(letter for each in row for letter in each.word)
        yield Component(planes, word, tuple(roots), float(np.prod([each.share for each in row])))


def _choices(group: ContinuousGroup, k: int, factor: Factor) -> list[Component]:
    letters = [i for i, (owner, _) in enumerate(group.discrete_places) if owner == k]
    if factor.finite is not None:
        finite = factor.finite
        classes = finite.conjugacy_classes()
        return [
            Component((), tuple(letters[i] for i in finite.word(some[0])), (), len(some) / finite.order)
            for some in classes
        ]
    own = [i for i, (owner, _) in enumerate(group.lie_places) if owner == k]
    share = 0.5 if factor.reflects else 1.0
    identity = Component(_torus(factor, own, 0), (), _roots("D" if factor.n % 2 == 0 else "B", factor.n // 2), share)
    if not factor.reflects:
        return [identity]
    if factor.is_inverted:  # the inversion commutes with everything
        return [identity, Component(identity.planes, (letters[0],), identity.roots, share)]
    # The reflection of the first axis fixes the planes of the axes from the third on.
    rank = factor.n // 2 - 1
    return [identity, Component(_torus(factor, own, 2), (letters[0],), _roots("C", rank), share)]


def _torus(factor: Factor, own: list[int], first: int) -> tuple[tuple[int, float], ...]:
    """The rotations of planes (first, first + 1), (first + 2, first + 3), ... among the factor's Lie generators."""
    chosen = []
    for i in range(first, factor.n - 1, 2):
        forward = (i, i + 1) in factor.planes
        plane = factor.planes.index((i, i + 1) if forward else (i + 1, i))
        chosen.append((own[factor.shifts + plane], 1.0 if forward else -1.0))
    return tuple(chosen)


def torus(group: ContinuousGroup) -> tuple[tuple[int, float], ...]:
    """The Lie generators of a maximal torus, with the sign that makes them rotate e_i towards e_i+1."""
    planes: list[tuple[int, float]] = []
    for k, factor in enumerate(group.factors):
        if factor.turns:
            planes += _torus(factor, [i for i, (owner, _) in enumerate(group.lie_places) if owner == k], 0)
    return tuple(planes)


def _roots(kind: str, rank: int) -> tuple[Weight, ...]:
    """Positive roots of B, C or D: e_i +- e_j for i < j, and e_i (B) or 2 e_i (C)."""
    unit = np.eye(rank, dtype=int)
    roots = [unit[i] + sign * unit[j] for i in range(rank) for j in range(i + 1, rank) for sign in (1, -1)]
    roots += [unit[i] * {"B": 1, "C": 2}[kind] for i in range(rank)] if kind != "D" else []
    return tuple(tuple(int(x) for x in root) for root in roots)


def torus_character(rho: LieRepresentation, component: Component) -> Polynomial:
    """Tr rho(exp(theta . H) h) as a Laurent polynomial in exp(i theta)."""
    store: dict[Component, Polynomial] = rho.__dict__.setdefault("_torus_characters", {})
    if component not in store:
        store[component] = _character(rho, component)
    return store[component]


def _character(rho: LieRepresentation, component: Component) -> Polynomial:
    if rho.form == "sum":
        total: Polynomial = {}
        # Equal summands are usually the same object.
        counted: dict[int, tuple[LieRepresentation, int]] = {}
        for part in rho.operands:
            counted[id(part)] = (part, counted.get(id(part), (part, 0))[1] + 1)
        for part, count in counted.values():
            for weight, value in torus_character(part, component).items():
                total[weight] = total.get(weight, 0.0) + count * value
        return total
    if rho.form == "tensor":
        product: Polynomial = {(0,) * len(component.planes): 1.0 + 0.0j}
        for part in rho.operands:
            product = _times(product, torus_character(part, component))
        return product
    weights, vectors, inverse = weight_vectors(rho, [sign * rho.algebra[i] for i, sign in component.planes])
    image = np.eye(rho.dim)
    for letter in component.word:
        image = image @ rho.matrices[letter]
    # h commutes with its torus and preserves weight spaces, so its trace is the sum of its diagonal entries there.
    diagonal = np.einsum("ij,ji->i", inverse @ image, vectors)
    made: Polynomial = {}
    for weight, value in zip(weights, diagonal, strict=True):
        made[weight] = made.get(weight, 0.0) + complex(value)
    return {weight: value for weight, value in made.items() if abs(value) > 1e-9}


def weight_vectors(rho: LieRepresentation, torus: list[Floats]) -> tuple[list[Weight], np.ndarray, np.ndarray]:
    """Weights and simultaneous eigenvectors (columns) of commuting rotations, and the inverse of their matrix."""
    if not torus:
        return [()] * rho.dim, np.eye(rho.dim), np.eye(rho.dim)
    # Irrational coefficients: equal values mean equal weights.
    generic = sum(np.sqrt(prime) * h for prime, h in zip(_PRIMES, torus, strict=False))
    if rho.is_orthogonal:
        _, vectors = np.linalg.eigh(-1j * generic)
        inverse = vectors.conj().T
    else:
        _, vectors = np.linalg.eig(generic.astype(complex))
        inverse = np.linalg.inv(vectors)
    rows = [np.rint(np.einsum("ij,ji->i", inverse @ h, vectors).imag).astype(int) for h in torus]
    return [tuple(int(w) for w in column) for column in zip(*rows, strict=True)], vectors, inverse


_PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53)


def _times(a: Mapping[Weight, complex], b: Mapping[Weight, complex]) -> Polynomial:
    product: Polynomial = {}
    for first, x in a.items():
        for second, y in b.items():
            weight = tuple(p + q for p, q in zip(first, second, strict=True))
            product[weight] = product.get(weight, 0.0) + x * y
    return product


def _times_one_minus(a: Mapping[Weight, complex], root: Weight) -> Polynomial:
    """A times (1 - exp(i root theta))."""
    product = dict(a)
    for weight, value in a.items():
        moved = tuple(p + q for p, q in zip(weight, root, strict=True))
        product[moved] = product.get(moved, 0.0) - value
    return product
