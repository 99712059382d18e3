"""Terms on a grid: height scans around the base, and images.

The points of a scan lie on a grid centred at the base; the value at point p goes to point M p. The axes of an image are
reversed or rotated together with the scene.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import sparse

from symcheck.array_types import Floats, Ints
from symcheck.errors import SpecError
from symcheck.mujoco.layouts.document import WrittenTerm, check_count

_LETTERS = "chwxy"
_BETWEEN = 1e-6  # in half steps of a grid: an image farther from every point lies between points


def scan_labels(written: WrittenTerm) -> list[str]:
    """A name for every point of the scan: its row and column.

    Raises:
        SpecError: invalid sizes, order or origin.
    """
    rows, cols, _ = _scan_shape(written)
    return [f"[{i},{j}]" for i in range(rows) for j in range(cols)]


def scan_matrix(written: WrittenTerm, local: Floats) -> sparse.csr_array:
    """The matrix that transforms a scan.

    Args:
        written: the term.
        local: the isometry in the frame of the base, shape (3, 3).

    Returns:
        A permutation, shape (rows * cols, rows * cols).

    Raises:
        SpecError: the grid is not mapped to itself.
    """
    rows, cols, inner = _scan_shape(written)
    i, j = (part.ravel() for part in np.indices((rows, cols)))
    # Twice the distance from the centre, in integer steps: rows run over one axis, columns over the other.
    along_rows, along_cols = 2 * i - (rows - 1), 2 * j - (cols - 1)
    points = np.stack([along_cols, along_rows] if inner == "x" else [along_rows, along_cols])
    return _point_permutation(points, local[:2, :2], written)


def _point_permutation(points: Any, planar: Floats, written: WrittenTerm) -> sparse.csr_array:
    moved = planar @ points
    places = {tuple(point): k for k, point in enumerate(points.T.tolist())}
    images = np.zeros(points.shape[1], dtype=np.int64)
    for column, point in enumerate(np.rint(moved).astype(np.int64).T.tolist()):
        image = places.get(tuple(point))
        if image is None or np.abs(moved[:, column] - point).max() > _BETWEEN:
            raise SpecError(
                "the grid is not mapped to itself. A rotation by 90 degrees needs as many rows as "
                "columns. If the base is rotated in the file, the grid must lie along the world axes.",
                where=written.where,
            )
        images[column] = image
    return permutation_matrix(images)


def permutation_matrix(images: Ints) -> sparse.csr_array:
    """The matrix that moves component i to position `images[i]`."""
    size = len(images)
    return sparse.csr_array((np.ones(size), (images, np.arange(size))), shape=(size, size))


def _scan_shape(written: WrittenTerm) -> tuple[int, int, str]:
    """Rows, columns, and the axis (x or y) of the inner loop."""
    arguments = written.arguments
    rows, cols = (check_count(arguments[name], f"{written.where}, {name}") for name in ("rows", "cols"))
    order, origin = arguments.get("order", "xy"), arguments.get("origin", "centre")
    if order not in ("xy", "yx"):
        raise SpecError(
            f'expected order = "xy" (x is the inner loop) or "yx" (y is), got {order!r}.', where=written.where
        )
    if origin not in ("centre", "center"):
        raise SpecError(f'expected origin = "centre", got {origin!r}.', where=written.where)
    return rows, cols, order[0]


def image_labels(written: WrittenTerm) -> list[str]:
    """A name for every pixel: its position.

    Raises:
        SpecError: an invalid shape or invalid axes.
    """
    shape, _ = _image_axes(written)
    return [f"[{','.join(map(str, place))}]" for place in np.ndindex(*shape)]


def image_matrix(written: WrittenTerm, local: Floats) -> sparse.csr_array:
    """The matrix that transforms an image.

    Axes are letters: "c" channels, "h" and "w" a camera's height and width (a mirror reverses the width), "x" and "y" a
    map from above.

    Args:
        written: the term.
        local: the isometry in the frame of the base, shape (3, 3).

    Returns:
        A permutation.

    Raises:
        SpecError: the isometry does not map the image to itself.
    """
    shape, axes = _image_axes(written)
    planar = local[:2, :2]
    places = np.indices(shape).reshape(len(shape), -1)
    moved = places.copy()
    if "w" in axes:
        # For a camera that looks forward, only the mirror in the xz plane maps its image to itself.
        if not np.allclose(planar, np.diag([1, -1])):
            raise SpecError(
                "a forward camera's view is mapped to itself only by the mirror in the xz plane, not by this isometry.",
                where=written.where,
                remedy='Use axes "x" and "y" for maps seen from above.',
            )
        moved[axes.index("w")] = shape[axes.index("w")] - 1 - places[axes.index("w")]
    if "x" in axes and "y" in axes:
        spatial = [axes.index("x"), axes.index("y")]
        sizes = np.array([[shape[axis]] for axis in spatial])
        centred = 2 * places[spatial] - (sizes - 1)
        turned = planar @ centred
        moved[spatial] = (np.rint(turned).astype(np.int64) + sizes - 1) // 2
        between = np.abs(turned - np.rint(turned)).max() > _BETWEEN
        if between or (moved[spatial] < 0).any() or (moved[spatial] >= sizes).any():
            raise SpecError(
                "this isometry does not map the image to itself. A rotation by 90 degrees needs a square "
                "image, and smaller rotations move pixels to positions between pixels.",
                where=written.where,
            )
    return permutation_matrix(np.asarray(np.ravel_multi_index(tuple(moved), shape), dtype=np.int64))


def _image_axes(written: WrittenTerm) -> tuple[tuple[int, ...], str]:
    where = f"{written.where}, shape"
    shape = written.arguments["shape"]
    if not isinstance(shape, list | tuple) or len(shape) not in (2, 3):
        raise SpecError(f"expected a list of two or three sizes, got {shape!r}.", where=where)
    sizes = tuple(check_count(size, where) for size in shape)
    given = written.arguments.get("axes", "hw" if len(sizes) == 2 else "chw")
    axes = "".join(given) if isinstance(given, list | tuple) and all(isinstance(a, str) for a in given) else given
    known = isinstance(axes, str) and len(set(axes)) == len(axes) == len(sizes) and set(axes) <= set(_LETTERS)
    if not known or ("x" in axes) != ("y" in axes) or ("w" in axes) == ("x" in axes):
        raise SpecError(
            f"expected one letter per size: c, h and w, or c, x and y; got {given!r}.",
            where=f"{written.where}, axes",
            remedy='For instance axes = "chw", or "yx" for a map from above.',
        )
    if math.prod(sizes) > 65_536:
        raise SpecError(f"an image of {math.prod(sizes):,} values is too large for a layout.", where=where)
    return sizes, axes
