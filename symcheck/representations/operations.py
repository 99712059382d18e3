"""Constructs representations from others: sums, products, duals, restriction and induction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

import numpy as np

from symcheck.array_types import Floats
from symcheck.errors import RepresentationError
from symcheck.groups.element import Element
from symcheck.groups.group import Group
from symcheck.representations import constructors, restriction, validation
from symcheck.representations.lie import LieRepresentation, lie_dual, lie_sum, lie_tensor
from symcheck.representations.representation import (
    MatrixRepresentation,
    Representation,
    SignedPermutationRepresentation,
    require_representation,
    require_same_group,
)
from symcheck.representations.signed_images import SignedImages


def direct_sum(*representations: Representation) -> Representation:
    """The direct sum: block diagonal, each summand acts on its own components.

    Args:
        *representations: at least one, all of the same group.

    Returns:
        The representation whose dimension is the sum of theirs.

    Raises:
        RepresentationError: no summand, or different groups.

    Example:
        >>> from symcheck.groups import cyclic
        >>> from symcheck.representations.constructors import regular, trivial
        >>> direct_sum(trivial(cyclic(4)), regular(cyclic(4))).dim
        5
    """
    if (lie := _continuous(representations, "direct_sum")) is not None:
        return lie_sum(lie)
    return _combine(representations, _signed_sum, _matrix_sum, " + ")


def tensor(*representations: Representation) -> Representation:
    """The tensor product (Kronecker product): component (i, j) has the index i * dim_second + j.

    Args:
        *representations: at least one, all of the same group.

    Returns:
        The representation whose dimension is the product of theirs.

    Raises:
        RepresentationError: no factor, or different groups.

    Example:
        >>> from symcheck.groups import symmetric
        >>> from symcheck.representations.constructors import natural
        >>> tensor(natural(symmetric(4)), natural(symmetric(4))).dim
        16
    """
    if (lie := _continuous(representations, "tensor")) is not None:
        return lie_tensor(lie)
    return _combine(representations, _signed_tensor, _matrix_tensor, " x ")


def _continuous(parts: Sequence[Representation], function: str) -> list[LieRepresentation] | None:
    """The operands if they represent a continuous group; otherwise None."""
    _require_alike(parts, function)
    lie = [part for part in parts if isinstance(part, LieRepresentation)]
    return lie if len(lie) == len(parts) else None


def _require_alike(parts: Sequence[Representation], function: str) -> None:
    if not parts:
        raise RepresentationError("expected at least one representation, got none.", where=function)
    require_representation(parts[0], "the first representation")
    for number, part in enumerate(parts[1:], 2):
        require_same_group(parts[0], part, names=("the first representation", f"number {number}"))


def _combine(
    parts: Sequence[Representation],
    signed: Callable[[SignedImages, SignedImages], SignedImages],
    dense: Callable[[Floats, Floats], Floats],
    symbol: str,
) -> Representation:
    group, name = parts[0].group, symbol.join(part.name for part in parts)
    # Exact if all parts are exact; one dense part makes the result dense.
    exact = [part for part in parts if isinstance(part, SignedPermutationRepresentation)]
    if len(exact) == len(parts):
        images = [reduce(signed, row) for row in zip(*(part.images for part in exact), strict=True)]
        return SignedPermutationRepresentation(group, images, name=name, check=False)
    rows = zip(*(part.generator_matrices for part in parts), strict=True)
    matrices = [reduce(dense, [np.asarray(m, dtype=np.float64) for m in row]) for row in rows]
    # No check is needed: sums and products satisfy every relation that their parts satisfy.
    return MatrixRepresentation(group, matrices, name=name, check=False)


def _signed_sum(a: SignedImages, b: SignedImages) -> SignedImages:
    # The second summand's components come after the first one's.
    return SignedImages(np.concatenate([a.index, a.dim + b.index]), np.concatenate([a.sign, b.sign]))


def _matrix_sum(a: Floats, b: Floats) -> Floats:
    result = np.zeros((len(a) + len(b), len(a) + len(b)))
    result[: len(a), : len(a)], result[len(a) :, len(a) :] = a, b
    return result


def _matrix_tensor(a: Floats, b: Floats) -> Floats:
    return np.asarray(np.kron(a, b), dtype=np.float64)


def _signed_tensor(a: SignedImages, b: SignedImages) -> SignedImages:
    # Component (i, j) has number i * b.dim + j, as in numpy's Kronecker product.
    index = (a.index[:, None] * b.dim + b.index).ravel()
    return SignedImages(index, (a.sign[:, None] * b.sign).ravel())


def dual(rho: Representation) -> Representation:
    """The dual rho(g^-1)^T; for orthogonal representations the representation itself.

    Args:
        rho: a representation.

    Returns:
        A representation of the same dimension.

    Example:
        >>> from symcheck.groups import cyclic
        >>> from symcheck.representations.constructors import regular
        >>> dual(regular(cyclic(3))).dim
        3
    """
    require_representation(rho, "dual")
    if isinstance(rho, LieRepresentation):
        return lie_dual(rho)
    # rho(g^-1)^T = rho(g) if the matrices are orthogonal.
    if rho.is_orthogonal:
        return rho
    matrices = [np.linalg.inv(np.asarray(m, dtype=np.float64)).T for m in rho.generator_matrices]
    return MatrixRepresentation(rho.group, matrices, name=f"dual of {rho.name}", check=False)


def restrict(rho: Representation, *, to: Group, images: Sequence[Element] | None = None) -> Representation:
    """The restriction to a subgroup: the same matrices, for its elements only.

    Args:
        rho: a representation of G.
        to: a subgroup of G, whose generators are elements of G; of a continuous G any finite group.
        images: for continuous G, the element of G that corresponds to each generator of the subgroup. Known by
            default for C_n and D_n in SO(2) and O(2): r rotates by 2 pi / n, s reflects.

    Returns:
        The representation of the subgroup.

    Raises:
        GroupError: a generator of the subgroup is not an element of G.

    Example:
        >>> from symcheck.groups import dihedral, subgroup
        >>> from symcheck.representations.constructors import regular
        >>> D4 = dihedral(4)
        >>> restrict(regular(D4), to=subgroup(D4, [D4.generators[0]])).group.order
        4
    """
    require_representation(rho, "restrict")
    validation.require_group(to, "restrict(to)")
    if isinstance(rho, LieRepresentation):
        return restriction.restrict_to_finite(rho, to, images)
    name = f"{rho.name} restricted to {to.name}"
    # Words in G's generators: images of the subgroup's generators are products of known matrices.
    words = [rho.group.word(g) for g in to.generators]
    if isinstance(rho, SignedPermutationRepresentation):
        return SignedPermutationRepresentation(to, [rho.evaluate(w) for w in words], name=name, check=False)
    return MatrixRepresentation(to, [rho.matrix(g) for g in to.generators], name=name, check=False)


def induce(rho: Representation, *, to: Group) -> Representation:
    """The representation of G induced by a representation of a subgroup H: one copy of rho for each coset of H.

    With representatives t_k of the cosets and g t_k = t_l h, g maps copy k to copy l by rho(h).

    Args:
        rho: a representation of a subgroup H, whose elements are elements of G.
        to: the group G, small enough to list.

    Returns:
        The representation of G of dimension [G : H] * dim; copies come one after the other.

    Raises:
        RepresentationError: H is not a subgroup of G.

    Example:
        >>> from symcheck.groups import dihedral, subgroup
        >>> from symcheck.representations.constructors import trivial
        >>> D4 = dihedral(4)
        >>> induce(trivial(subgroup(D4, [D4.generators[1]])), to=D4).dim
        4
    """
    require_representation(rho, "induce")
    validation.require_group(to, "induce(to)")
    inside = set(rho.group.elements())
    if not all(h in to for h in rho.group.generators):
        raise RepresentationError(f"{rho.group.name} is not a subgroup of {to.name}.", where="induce")
    coset: dict[Element, int] = {}
    representatives: list[Element] = []
    # The first element found in each left coset t H represents it; the identity represents H.
    for g in to.elements():
        if g not in coset:
            # Mark all of g H at once, so that each coset is visited once.
            coset.update({g * h: len(representatives) for h in inside})
            representatives.append(g)
    name = f"{rho.name} induced to {to.name}"
    blocks = [_moves(g, representatives, coset) for g in to.generators]
    if isinstance(rho, SignedPermutationRepresentation):
        images = [_signed_blocks(rho, moves) for moves in blocks]
        return SignedPermutationRepresentation(to, images, name=name, check=False)
    return constructors.from_matrices(to, [_matrix_blocks(rho, moves) for moves in blocks], name=name)


def _moves(g: Element, representatives: Sequence[Element], coset: dict[Element, int]) -> list[tuple[int, Element]]:
    """For each coset k: its image l, and the element h of H with g t_k = t_l h."""
    targets = [coset[g * t] for t in representatives]
    # h = t_l^-1 g t_k, with l the coset that g t_k lies in.
    return [(k, ~representatives[k] * g * t) for k, t in zip(targets, representatives, strict=True)]


def _signed_blocks(rho: SignedPermutationRepresentation, moves: Sequence[tuple[int, Element]]) -> SignedImages:
    parts = [(k, rho.image(h)) for k, h in moves]
    # Copy k of rho maps to copy l, with rho(h) acting on its components.
    index = np.concatenate([k * rho.dim + image.index for k, image in parts])
    return SignedImages(index, np.concatenate([image.sign for _, image in parts]))


def _matrix_blocks(rho: Representation, moves: Sequence[tuple[int, Element]]) -> Floats:
    d = rho.dim
    result = np.zeros((len(moves) * d, len(moves) * d))
    for k, (target, h) in enumerate(moves):
        # Block column k (the source) has its only block in row `target`.
        result[target * d : (target + 1) * d, k * d : (k + 1) * d] = rho.matrix(h)
    return result
