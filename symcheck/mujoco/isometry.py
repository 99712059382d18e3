"""Isometries of space that can be symmetries of a robot: reflections in a plane and rotations about an axis.

Positions and forces are *polar* vectors and transform by the orthogonal matrix M itself. Angular velocities, torques
and the axes of hinges are *axial* vectors and transform by det(M) M: a wheel that rolls forward still rolls forward in
the mirror, although its axle is reflected.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from symcheck.array_types import Floats
from symcheck.errors import SpecError

_NORMALS = {"xz": 1, "zx": 1, "yz": 0, "zy": 0, "xy": 2, "yx": 2}
_AXES = {"x": 0, "y": 1, "z": 2}
ROUNDING = 1e-9  # kinematic chains have errors of 1e-15 per link; files have at least six digits


@dataclass(frozen=True)
class Isometry:
    """x -> M (x - c) + c.

    Attributes:
        name: the name in reports.
        matrix: M, orthogonal, shape (3, 3).
        through: c, a fixed point, in metres, shape (3,).
        order: the smallest number of applications that gives the identity.
    """

    name: str
    matrix: Floats
    order: int
    through: Floats = field(default_factory=lambda: np.zeros(3))

    @property
    def determinant(self) -> int:
        """-1 for reflections, +1 for rotations."""
        return 1 if np.linalg.det(self.matrix) > 0 else -1

    def point(self, points: Floats) -> Floats:
        """The images of points, shape (..., 3), in metres."""
        # About the fixed point, not about the origin.
        moved = (np.asarray(points) - self.through) @ self.matrix.T + self.through
        return np.asarray(moved)

    def polar(self, vectors: Floats) -> Floats:
        """The images of velocities, forces and other polar vectors, shape (..., 3)."""
        return np.asarray(np.asarray(vectors) @ self.matrix.T)

    def axial(self, vectors: Floats) -> Floats:
        """The images of angular velocities, torques and axes of rotation, shape (..., 3)."""
        # Cross products change their sign under reflections: det(M) M.
        return self.determinant * self.polar(vectors)


def reflection(plane: str | Sequence[float], through: Sequence[float] = (0.0, 0.0, 0.0)) -> Isometry:
    """The reflection in a plane.

    Args:
        plane: "xz", "yz" or "xy", or the plane's normal vector, three numbers, not all zero.
        through: a point of the plane, in metres.

    Returns:
        The isometry, of order 2.

    Raises:
        SpecError: no such plane, or no normal vector.

    Example:
        >>> reflection("xz").polar(np.array([1.0, 2.0, 3.0])).tolist()
        [1.0, -2.0, 3.0]
        >>> reflection("xz").axial(np.array([1.0, 2.0, 3.0])).tolist()
        [-1.0, 2.0, -3.0]
    """
    normal = _normal(plane)
    name = f"mirror in the {plane} plane" if isinstance(plane, str) else f"mirror across {_format_vector(normal)}"
    # The Householder reflection I - 2 n n^T.
    return Isometry(name, whole(np.eye(3) - 2 * np.outer(normal, normal)), 2, _point(through))


def rotation(axis: str, order: int, through: Sequence[float] = (0.0, 0.0, 0.0)) -> Isometry:
    """The counter-clockwise rotation about a coordinate axis by 1/order of a full turn.

    Args:
        axis: "x", "y" or "z".
        order: 2 for half a turn, 4 for a quarter.
        through: a point of the axis, in metres.

    Returns:
        The isometry.

    Raises:
        SpecError: no such axis or order.

    Example:
        >>> rotation("z", 4).polar(np.array([1.0, 0.0, 5.0])).tolist()
        [0.0, 1.0, 5.0]
    """
    if axis not in _AXES:
        raise SpecError(f"expected an axis, 'x', 'y' or 'z', got {axis!r}.", where="axis")
    if not isinstance(order, int) or order < 2:
        raise SpecError(
            f"expected the order of a rotation, a whole number of at least 2, got {order!r}.", where="order"
        )
    # The two other axes, in cyclic order, so that the turn is counter-clockwise.
    j, k = ((_AXES[axis] + step) % 3 for step in (1, 2))
    cosine, sine = math.cos(2 * math.pi / order), math.sin(2 * math.pi / order)
    matrix = np.eye(3)
    matrix[j, j] = matrix[k, k] = cosine
    matrix[k, j], matrix[j, k] = sine, -sine
    return Isometry(f"rotation by 1/{order} turn about {axis}", whole(matrix), order, _point(through))


def _normal(plane: str | Sequence[float]) -> Floats:
    if isinstance(plane, str):
        if plane not in _NORMALS:
            raise SpecError(
                f"expected a plane, 'xz', 'yz' or 'xy', or its normal vector, got {plane!r}.",
                where="plane",
                remedy="Left and right are usually mirrored in 'xz', front and back in 'yz'.",
            )
        return np.asarray(np.eye(3)[_NORMALS[plane]])
    try:
        normal = np.asarray(plane, dtype=np.float64)
    except (TypeError, ValueError):
        normal = np.zeros(0)
    if normal.shape != (3,) or not np.isfinite(normal).all() or not normal.any():
        raise SpecError(f"expected a normal vector of three numbers that are not all 0, got {plane!r}.", where="plane")
    # Normalise the plane's normal vector.
    return np.asarray(normal / np.linalg.norm(normal))


def _point(through: Sequence[float]) -> Floats:
    try:
        point = np.asarray(through, dtype=np.float64)
    except (TypeError, ValueError):
        point = np.zeros(0)
    if point.shape != (3,) or not np.isfinite(point).all():
        raise SpecError(f"expected a point, three numbers in metres, got {through!r}.", where="through")
    return point


def whole(values: Floats) -> Floats:
    """Round values that differ from an integer by rounding error only."""
    nearest = np.round(values)
    return np.where(np.abs(values - nearest) < ROUNDING, nearest + 0.0, values)


def quaternion_of(matrix: Floats) -> Floats:
    """The unit quaternion (w, x, y, z) of a proper rotation matrix; its first nonzero entry is positive."""
    from scipy.spatial.transform import Rotation

    # SciPy puts w last, MuJoCo first.
    x, y, z, w = Rotation.from_matrix(matrix).as_quat()
    quaternion = whole(np.array([w, x, y, z]))
    # q and -q are the same orientation: the first non-zero entry determines the sign.
    leading = quaternion[np.flatnonzero(np.abs(quaternion) > ROUNDING)[0]]
    return quaternion if leading > 0 else -quaternion


def matrix_of(quaternion: Floats) -> Floats:
    """The rotation matrix of a quaternion (w, x, y, z) of any nonzero norm.

    Example:
        >>> matrix_of(np.array([2.0, 0.0, 0.0, 0.0])).diagonal().tolist()
        [1.0, 1.0, 1.0]
    """
    from scipy.spatial.transform import Rotation

    w, x, y, z = quaternion
    return np.asarray(Rotation.from_quat([x, y, z, w]).as_matrix())


def quaternion_map(left: Floats, right: Floats) -> Floats:
    """The 4x4 matrix of q -> left * q * conjugate(right), for unit quaternions (w, x, y, z).

    Example:
        >>> half_turn = np.array([0.0, 0.0, 1.0, 0.0])
        >>> np.diag(quaternion_map(half_turn, half_turn)).tolist()
        [1.0, -1.0, 1.0, -1.0]
    """
    w, x, y, z = left
    times_left = np.array([[w, -x, -y, -z], [x, w, -z, y], [y, z, w, -x], [z, -y, x, w]])
    # The conjugate.
    w, x, y, z = right * np.array([1.0, -1.0, -1.0, -1.0])
    times_right = np.array([[w, -x, -y, -z], [x, w, z, -y], [y, -z, w, x], [z, y, -x, w]])
    # Left and right multiplications commute, so one matrix represents q -> a q b*.
    return np.asarray(times_left @ times_right)


def _format_vector(vector: Floats) -> str:
    return f"({', '.join(f'{value:.6g}' for value in vector)})"
