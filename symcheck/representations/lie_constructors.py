"""Ready-made representations of continuous groups: vectors, pseudoscalars, irreps, and those given by an algebra.

For a product group they represent its only factor with rotations; all other factors act trivially. If several factors
have rotations, `factor=i` selects one. `inflate` does the same for any representation of a factor.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symcheck.array_types import Floats
from symcheck.errors import RepresentationError
from symcheck.groups.continuous import ContinuousGroup
from symcheck.groups.group import Group
from symcheck.representations.lie import LieRepresentation
from symcheck.representations.representation import Representation, require_representation


def require_continuous(G: Any, where: str) -> ContinuousGroup:
    """The group, if it is continuous.

    Raises:
        RepresentationError: the group is not continuous.
    """
    if not isinstance(G, ContinuousGroup):
        given = f"{G.name} (finite)" if isinstance(G, Group) else f"{G!r} ({type(G).__name__})"
        raise RepresentationError(
            f"expected a continuous group, got {given}.",
            where=where,
            remedy="Make a group with symcheck.groups, for instance so(3) or o(2).",
        )
    return G


def lie_trivial(G: ContinuousGroup, dim: int = 1) -> LieRepresentation:
    """Every element acts as the identity."""
    zeros, unit = [np.zeros((dim, dim))] * len(G.algebra), [np.eye(dim)] * len(G.generators)
    return LieRepresentation(G, zeros, unit, name="scalar" if dim == 1 else f"{dim} scalars", check=False)


def vector(G: ContinuousGroup, *, factor: int | None = None) -> LieRepresentation:
    """Vectors that rotate with space and are unchanged by translations: relative positions, velocities, forces.

    Args:
        G: a group with a factor of rotations.
        factor: the index of the factor, if there are several.

    Returns:
        The representation of dimension n.

    Raises:
        RepresentationError: there is no factor of rotations, or there are several and `factor` does not select one.

    Example:
        >>> from symcheck.groups import so
        >>> vector(so(3)).algebra[2].tolist()
        [[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """
    k = _turning_factor(G, factor, "vector")
    n = G.factors[k].n
    mirrors = [np.asarray(m)[:n, :n] for m in G.factors[k].discrete]
    turns = [np.asarray(a)[:n, :n] * (i >= G.factors[k].shifts) for i, a in enumerate(G.factors[k].algebra_matrices)]
    return _inflated(G, k, turns, mirrors, n, "vector")


def pseudoscalar(G: ContinuousGroup, *, factor: int | None = None) -> LieRepresentation:
    """The determinant: quantities that a reflection negates, such as angular velocity in the plane.

    Args:
        G: a group with a factor of rotations.
        factor: as in `vector`.

    Returns:
        The representation of dimension 1.

    Raises:
        RepresentationError: as in `vector`.

    Example:
        >>> from symcheck.groups import o
        >>> pseudoscalar(o(2)).matrices[0].tolist()
        [[-1.0]]
    """
    k = _turning_factor(G, factor, "pseudoscalar")
    zeros = [np.zeros((1, 1))] * len(G.factors[k].algebra)
    return _inflated(G, k, zeros, [-np.eye(1)] * len(G.factors[k].discrete), 1, "pseudoscalar")


def pseudovector(G: ContinuousGroup, *, factor: int | None = None) -> LieRepresentation:
    """det(g) g: angular velocities, torques and other axial vectors.

    Args:
        G: a group with a factor of rotations.
        factor: as in `vector`.

    Returns:
        The representation of dimension n.

    Raises:
        RepresentationError: as in `vector`.

    Example:
        >>> from symcheck.groups import o
        >>> pseudovector(o(3)).matrices[0].tolist()
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    k = _turning_factor(G, factor, "pseudovector")
    polar = vector(G, factor=k)
    signs = [-1.0 if owner == k else 1.0 for owner, _ in G.discrete_places]
    matrices = [sign * matrix for sign, matrix in zip(signs, polar.matrices, strict=True)]
    return LieRepresentation(G, polar.algebra, matrices, name="axial", check=False)


def irrep(G: ContinuousGroup, k: int, *, parity: int | None = None, factor: int | None = None) -> LieRepresentation:
    """The irreducible representation of frequency k (plane) or degree k (space).

    In the plane (cos k phi, sin k phi), of dimension 2. In space the real spherical harmonics of degree k in e3nn's
    order (y is the polar axis), of dimension 2k + 1, so that `irrep(G, 1)` is `vector(G)`.

    Args:
        G: a group that has rotations in two or three dimensions as a factor.
        k: the frequency, at least 1, or the degree, at least 0.
        parity: the sign of the inversion of O(3), 1 or -1; (-1)^k by default, as for spherical harmonics.
        factor: as in `vector`.

    Returns:
        The representation.

    Raises:
        RepresentationError: the dimension is not 2 or 3, or there is no such k or parity.

    Example:
        >>> from symcheck.groups import so
        >>> irrep(so(2), 2).algebra[0].tolist(), irrep(so(3), 2).dim
        ([[0.0, -2.0], [2.0, 0.0]], 5)

    Source: the basis is that of M. Geiger and T. Smidt, "e3nn: Euclidean Neural Networks" (2022), appendix.
    """
    at = _turning_factor(G, factor, "irrep")
    n = G.factors[at].n
    if n not in (2, 3):
        raise RepresentationError(f"irreps are available in two and three dimensions, got n = {n}.", where="irrep")
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < (1 if n == 2 else 0):
        least = "a frequency of at least 1" if n == 2 else "a degree of at least 0"
        raise RepresentationError(f"expected {least}, got k = {k!r}.", where="irrep")
    if parity is not None and (n == 2 or not G.factors[at].reflects or parity not in (1, -1)):
        raise RepresentationError(
            f"expected parity = 1 or -1 of O(3), got {parity!r} for {G.name}.", where="irrep(parity)"
        )
    sign = float((-1) ** k if parity is None else parity)
    if n == 2:
        turns: list[Floats] = [np.array([[0.0, -k], [k, 0.0]])]
        # The reflection of the first axis maps phi to pi - phi.
        mirrors = [sign * np.diag([1.0, -1.0])]
    else:
        turns = list(harmonic_turns(int(k)))
        # For E(3), the reflection of the first axis is the inversion followed by a half turn about it.
        mirrors = [sign * np.eye(2 * k + 1)]
        if G.factors[at].reflects and not G.factors[at].is_inverted:
            mirrors = [sign * _half_turn(turns[0])]
    shifts = [np.zeros_like(turns[0])] * G.factors[at].shifts
    mirrors = mirrors[: len(G.factors[at].discrete)]
    name = f"irrep({k})" if parity is None else f"irrep({k}{'e' if parity > 0 else 'o'})"
    return _inflated(G, at, [*shifts, *turns], mirrors, len(turns[0]), name)


def _half_turn(turn: Floats) -> Floats:
    from scipy.linalg import expm

    return np.asarray(np.rint(expm(np.pi * turn)), dtype=np.float64)  # diagonal signs on the harmonics, up to rounding


def harmonic_turns(degree: int) -> tuple[Floats, Floats, Floats]:
    """Rotations about x, y and z on real spherical harmonics Y with polar axis y: d/dt Y(R_t v) = A Y(v).

    Args:
        degree: l.

    Returns:
        Three (2l + 1, 2l + 1) skew matrices; component l + m is cos(m phi), l - m is sin(m phi), phi from z to x.
    """
    orders = np.arange(-degree, degree + 1)
    size = 2 * degree + 1
    # <m + 1| J_+ |m> = sqrt(l (l + 1) - m (m + 1)), in the frame with polar axis Z = y, X = z and Y = x.
    raising = np.diag(np.sqrt(degree * (degree + 1) - orders[:-1] * (orders[:-1] + 1.0)), -1).astype(complex)
    momenta = [(raising + raising.T) / 2, (raising - raising.T) / 2j, np.diag(orders).astype(complex)]
    change = np.zeros((size, size), dtype=complex)
    change[degree, degree] = 1.0
    for m in range(1, degree + 1):
        # sqrt(2) (-1)^m times real and imaginary part of Y_m, with Y_-m = (-1)^m conj(Y_m).
        change[degree + m, [degree + m, degree - m]] = np.array([(-1.0) ** m, 1.0]) / np.sqrt(2)
        change[degree - m, [degree + m, degree - m]] = np.array([(-1.0) ** m, -1.0]) / (1j * np.sqrt(2))
    # Y(R v) = conj(D(R)) Y(v), so the derivative along axis k is i conj(J_k).
    along_z, along_x, along_y = ((change @ (1j * j.conj()) @ change.conj().T).real for j in momenta)
    return along_x, along_y, along_z


def from_algebra(
    G: ContinuousGroup, matrices: Sequence[Any], generators: Sequence[Any] = (), *, name: str | None = None
) -> LieRepresentation:
    """The representation with the given matrices of the Lie generators and the discrete generators.

    Args:
        G: the continuous group.
        matrices: for each Lie generator, a square matrix A (n, n) such that exp(t A) represents its one-parameter
            group.
        generators: for each discrete generator, an invertible matrix (n, n).
        name: the name in reports.

    Returns:
        The representation of dimension n.

    Raises:
        RepresentationError: wrong numbers or sizes, a bracket, a frequency or a relation that fails.

    Example:
        >>> from symcheck.groups import so
        >>> from_algebra(so(2), [[[0, -1], [1, 0]]]).dim
        2
    """
    require_continuous(G, "from_algebra")
    return LieRepresentation(G, matrices, list(generators), name=name or f"matrices({G.name})")


def inflate(rho: Representation, G: ContinuousGroup, *, factor: int) -> LieRepresentation:
    """A representation of one factor, extended to the product; all other factors act trivially.

    Args:
        rho: a representation of the factor, finite or continuous.
        G: the product.
        factor: the index of the factor.

    Returns:
        The representation of G, of the same dimension.

    Raises:
        RepresentationError: no such factor, or rho represents a different group.

    Example:
        >>> from symcheck.groups import cyclic, product, so
        >>> from symcheck.representations.constructors import regular
        >>> inflate(regular(cyclic(2)), product(cyclic(2), so(2)), factor=0).dim
        2
    """
    require_representation(rho, "inflate")
    require_continuous(G, "inflate")
    if isinstance(factor, bool) or not isinstance(factor, int) or not 0 <= factor < len(G.factors):
        raise RepresentationError(f"expected factor 0..{len(G.factors) - 1}, got {factor!r}.", where="inflate(factor)")
    own = G.factors[factor]
    whole = own.finite if own.finite is not None else ContinuousGroup([own])
    if rho.group != whole:
        raise RepresentationError(
            f"factor {factor} of {G.name} is {own.name}, but the representation belongs to {rho.group.name}.",
            where="inflate",
        )
    algebra = rho.algebra if isinstance(rho, LieRepresentation) else ()
    return _inflated(
        G, factor, algebra, [np.asarray(m, dtype=np.float64) for m in rho.generator_matrices], rho.dim, rho.name
    )


def _turning_factor(G: Any, factor: int | None, where: str) -> int:
    """The number of the factor with rotations."""
    group = require_continuous(G, where)
    turning = [k for k, each in enumerate(group.factors) if each.turns]
    if factor is None and len(turning) == 1:
        return turning[0]
    if isinstance(factor, int) and not isinstance(factor, bool) and factor in turning:
        return factor
    raise RepresentationError(
        f"expected the index of a rotation factor of {group.name}, one of {turning}, got factor = {factor!r}.",
        where=where,
    )


def _inflated(
    G: ContinuousGroup, k: int, algebra: Sequence[Floats], matrices: Sequence[Floats], dim: int, name: str
) -> LieRepresentation:
    """Matrices of factor k, and zeros and identities for all others."""
    every = [algebra[i] if owner == k else np.zeros((dim, dim)) for owner, i in G.lie_places]
    discrete = [matrices[i] if owner == k else np.eye(dim) for owner, i in G.discrete_places]
    return LieRepresentation(G, every, discrete, name=name, check=False)
