"""Random batches for a mirror function: each term takes values that are possible on a robot."""

from __future__ import annotations

import numpy as np

from symcheck.array_types import Floats
from symcheck.mujoco.layouts.laid_out import LaidGroup


def draw(group: LaidGroup, rng: np.random.Generator, rows: int) -> Floats:
    """Random vectors of a group.

    Orientations are proper rotations, so that a function that normalises quaternions or orthogonalises matrices is
    tested on valid inputs. All other columns are normally distributed, so that each takes both signs.

    Args:
        group: the group with its terms.
        rng: the random generator.
        rows: the number of rows.

    Returns:
        Shape (rows, width).
    """
    table = np.zeros((rows, group.width))
    columns: dict[tuple[int, int], list[int]] = {}
    for place, column in enumerate(group.columns):
        columns.setdefault((column.term, column.frame), []).append(place)
    for (term, _), places in columns.items():
        kind = group.terms[term].written.kind
        table[:, places] = _draw_term(kind, group.terms[term].labels, rng, rows)
    return table


def _draw_term(kind: str, labels: tuple[str, ...], rng: np.random.Generator, rows: int) -> Floats:
    size = len(labels)
    if kind in ("quat", "rotation", "rot6d"):
        quaternions = rng.normal(size=(rows, 4))
        quaternions /= np.linalg.norm(quaternions, axis=1, keepdims=True)
        # The half with w >= 0, to which simulators normalise.
        quaternions *= np.where(quaternions[:, :1] < 0, -1.0, 1.0)
        if kind == "quat":
            return np.asarray(quaternions)[:, ["wxyz".index(letter) for letter in labels]]
        matrices = _matrices(quaternions)
        ordered = matrices if kind == "rotation" else np.swapaxes(matrices[:, :, :2], 1, 2)
        return np.asarray(ordered.reshape(rows, size))
    if kind == "euler_xyz":
        # Away from the singularity at a pitch of a quarter turn.
        return rng.uniform(-1.2, 1.2, size=(rows, size))
    if kind == "gravity":
        vectors = rng.normal(size=(rows, size))
        return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))
    if kind == "contacts":
        return rng.integers(0, 2, size=(rows, size)).astype(np.float64)
    return np.asarray(rng.normal(size=(rows, size)))


def _matrices(quaternions: Floats) -> Floats:
    from scipy.spatial.transform import Rotation

    # SciPy puts w last.
    return np.asarray(Rotation.from_quat(quaternions[:, [1, 2, 3, 0]]).as_matrix())
