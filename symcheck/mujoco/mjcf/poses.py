"""Reads positions and orientations in MJCF: quaternion, axis and angle, Euler angles, axes, or two end points."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from symcheck.array_types import Floats
from symcheck.errors import TargetError
from symcheck.mujoco.isometry import matrix_of
from symcheck.mujoco.mjcf.document import Attributes

_SHORT = 1e-10  # a vector shorter than this has no direction


@dataclass(frozen=True)
class Pose:
    """The pose of a frame relative to its parent frame.

    Attributes:
        position: the position in metres, (3,).
        rotation: (3, 3).
    """

    position: Floats
    rotation: Floats

    def inside(self, inner: Pose) -> Pose:
        """Convert a pose relative to this frame to one relative to its parent frame."""
        return Pose(self.position + self.rotation @ inner.position, self.rotation @ inner.rotation)


HERE = Pose(np.zeros(3), np.eye(3))


@dataclass(frozen=True)
class Angles:
    """The angle conventions of a file.

    Attributes:
        unit: the angular unit in radians.
        order: the axes of Euler angles; lower-case axes rotate with the frame, upper-case axes are fixed.
    """

    unit: float
    order: str

    @classmethod
    def of(cls, compiler: Attributes) -> Angles:
        """The compiler's settings; by default degrees, and axes x, y, z that rotate with the frame."""
        order = compiler.text("eulerseq", "xyz")
        if len(order) != 3 or set(order.lower()) - set("xyz"):
            raise TargetError(f"expected three of x, y, z in eulerseq, got {order!r}.", where=compiler.where)
        return cls(1.0 if compiler.text("angle", "degree") == "radian" else math.pi / 180, order)

    def pose(self, attributes: Attributes) -> Pose:
        """The pose given by `pos` and one of the orientation attributes."""
        return Pose(attributes.triple("pos"), self.rotation(attributes))

    def rotation(self, attributes: Attributes) -> Floats:
        """The rotation matrix of the orientation attribute that is given; the identity without one.

        Raises:
            TargetError: a quaternion or axis of length 0.
        """
        for _, values in reversed(attributes.chain):
            for key in ("quat", "axisangle", "euler", "xyaxes", "zaxis"):
                if key in values:
                    return self._read_orientation(key, attributes)
        return np.eye(3)

    def _read_orientation(self, key: str, attributes: Attributes) -> Floats:
        widths = {"quat": 4, "axisangle": 4, "euler": 3, "xyaxes": 6, "zaxis": 3}
        numbers = attributes.row(key, (0.0,) * widths[key])
        if key == "quat":
            return matrix_of(_unit(numbers, key, attributes))
        if key == "axisangle":
            return _turn(_unit(numbers[:3], key, attributes), numbers[3] * self.unit)
        if key == "zaxis":
            return onto_z(_unit(numbers, key, attributes))
        if key == "xyaxes":
            x = _unit(numbers[:3], key, attributes)
            y = _unit(numbers[3:] - (numbers[3:] @ x) * x, key, attributes)
            return np.stack([x, y, np.cross(x, y)], axis=1)
        turned = np.eye(3)
        for letter, angle in zip(self.order, numbers, strict=True):
            one = _turn(np.eye(3)["xyz".index(letter.lower())], angle * self.unit)
            # A rotation about a moving axis multiplies on the right, one about a fixed axis on the left.
            turned = turned @ one if letter.islower() else one @ turned
        return turned


def onto_z(direction: Floats) -> Floats:
    """The shortest rotation that maps the z axis to a unit vector, (3, 3)."""
    across = np.cross([0.0, 0.0, 1.0], direction)
    length = float(np.linalg.norm(across))
    # Opposite to z, any horizontal axis is possible: use x, like MuJoCo's compiler.
    axis = across / length if length > _SHORT else np.array([1.0, 0.0, 0.0])
    return _turn(axis, math.atan2(length, float(direction[2])))


def _turn(axis: Floats, angle: float) -> Floats:
    return matrix_of(np.concatenate([[math.cos(angle / 2)], math.sin(angle / 2) * axis]))


def _unit(vector: Floats, key: str, attributes: Attributes) -> Floats:
    length = float(np.linalg.norm(vector))
    if not length > _SHORT:
        raise TargetError(f"{key} has length 0.", where=attributes.where)
    return np.asarray(vector / length)
