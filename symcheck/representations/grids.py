"""Image grids: the action of rotations and flips on pixels and filters.

An operator acts on the last two axes about the centre, as the NumPy operation does (`numpy.rot90`, `[::-1, :]`, `[:,
::-1]`, transposition). It acts on filters in the same way as on images.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from symcheck.array_types import Ints
from symcheck.errors import RepresentationError, suggestion
from symcheck.groups.group import Group
from symcheck.representations import operations, validation
from symcheck.representations.representation import (
    Representation,
    SignedPermutationRepresentation,
    require_representation,
)
from symcheck.representations.signed_images import SignedImages

OPERATORS: dict[str, Callable[[Ints], Ints]] = {
    "identity": lambda grid: grid,
    "rot90": lambda grid: np.rot90(grid, 1),
    "rot180": lambda grid: np.rot90(grid, 2),
    "rot270": lambda grid: np.rot90(grid, 3),
    "flip_ud": lambda grid: grid[::-1, :],
    "flip_lr": lambda grid: grid[:, ::-1],
    "transpose": lambda grid: grid.T,
    "anti_transpose": lambda grid: np.rot90(grid, 2).T,
}
"""Spatial operators by name; "rot90" is counter-clockwise, like `numpy.rot90`."""
SQUARE_ONLY = frozenset({"rot90", "rot270", "transpose", "anti_transpose"})
"""Operators that exchange height and width."""


def check_spatial(group: Group, spatial: Sequence[str], *, size: tuple[int, int], where: str = "spatial") -> None:
    """Rejects spatial operators that are unknown, do not fit the size, or violate a relation of the group.

    Args:
        group: the group.
        spatial: one operator name per generator.
        size: height and width in pixels.
        where: the name of the argument in messages.

    Raises:
        RepresentationError: the message names the invalid operator or relation.

    Example:
        >>> from symcheck.groups import cyclic
        >>> check_spatial(cyclic(4), ["rot90"], size=(7, 7))
    """
    # A plain string is iterable and would count as a list of letters.
    if isinstance(spatial, str) or not hasattr(spatial, "__iter__"):
        raise RepresentationError(
            f"expected one operator per generator of {group.name}, got {spatial!r}.",
            where=where,
            remedy=f"Write a list, for instance [{spatial!r}]."
            if isinstance(spatial, str)
            else "Write a list of names.",
        )
    validation.check_count(group, len(spatial), where)
    for label, operator in zip(group.generator_names, spatial, strict=True):
        if operator not in OPERATORS:
            remedy = suggestion(str(operator), OPERATORS)
            raise RepresentationError(f"no spatial operator is called {operator!r}.", where=where, remedy=remedy)
        if operator in SQUARE_ONLY and size[0] != size[1]:
            raise RepresentationError(
                f"{operator} (generator {label}) exchanges height and width, so the grid must be square; "
                f"got {size[0]} x {size[1]}.",
                where=where,
                remedy="Use a square size, or a group without that generator.",
            )
    _check_relations(group, tuple(spatial), where)


@lru_cache(maxsize=256)
def _check_relations(group: Group, spatial: tuple[str, ...], where: str) -> None:
    """Check the relations on 3 x 3 pixels, which distinguish all eight operators; smaller filters might not."""
    SignedPermutationRepresentation(group, [_images(name, 3, 3) for name in spatial], name=where)


@lru_cache(maxsize=256)
def _images(operator: str, height: int, width: int) -> SignedImages:
    # moved[p] is the pixel that moves to position p; `index`, its inverse, gives the image of each pixel.
    moved = OPERATORS[operator](np.arange(height * width).reshape(height, width)).ravel()
    index = np.empty_like(moved)
    index[moved] = np.arange(height * width)
    return SignedImages(index, np.ones(height * width, dtype=np.int64))


def image_grid(G: Group, height: int, width: int, spatial: Sequence[str]) -> SignedPermutationRepresentation:
    """The action of spatial operators on the height * width pixels, flattened row by row.

    Args:
        G: the group.
        height: rows.
        width: columns.
        spatial: one operator name per generator: a key of `OPERATORS`.

    Returns:
        The permutation representation of dimension height * width.

    Raises:
        RepresentationError: an unknown operator, a non-square grid under rot90 or transpose, or a relation that fails.

    Example:
        >>> from symcheck.groups import cyclic
        >>> image_grid(cyclic(4), 2, 2, ["rot90"]).images[0].index
        array([2, 0, 3, 1])
    """
    validation.require_group(G, "image_grid")
    if not all(isinstance(n, int | np.integer) and n >= 1 for n in (height, width)):
        raise RepresentationError(f"expected a positive height and width, got {height} x {width}.", where="image_grid")
    # Check square sizes and relations first: the cached construction below is not checked again.
    check_spatial(G, spatial, size=(height, width))
    return _grid(G, int(height), int(width), tuple(spatial))


@lru_cache(maxsize=64)
def _grid(G: Group, height: int, width: int, spatial: tuple[str, ...]) -> SignedPermutationRepresentation:
    images = [_images(name, height, width) for name in spatial]
    return SignedPermutationRepresentation(G, images, name=f"{height} x {width} grid", check=False)


def with_grid(rho: Representation, height: int, width: int, spatial: Sequence[str]) -> Representation:
    """The action on images whose pixels transform by rho; it transforms components and pixels together.

    Args:
        rho: the representation on the component axis.
        height: rows.
        width: columns.
        spatial: one operator name per generator.

    Returns:
        The representation of dimension dim * height * width, the flattened (dim, height, width).

    Raises:
        RepresentationError: as for `image_grid`.

    Example:
        >>> from symcheck.groups import cyclic
        >>> from symcheck.representations.constructors import regular
        >>> with_grid(regular(cyclic(4)), 5, 5, ["rot90"]).dim
        100
    """
    require_representation(rho, "with_grid")
    # Components are the slow axis, as in (channels, height, width) arrays.
    return operations.tensor(rho, image_grid(rho.group, height, width, spatial))
