"""Shapes of geoms: their size, bounding radius, mass and inertia, as computed by MuJoCo's compiler."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from symcheck.array_types import Floats
from symcheck.errors import TargetError
from symcheck.mujoco.mjcf.document import Attributes
from symcheck.mujoco.mjcf.poses import Angles, Pose, onto_z

PLANE, SPHERE, CAPSULE, ELLIPSOID, CYLINDER, BOX = 0, 2, 3, 4, 5, 6  # mjtGeom
SHAPES = {
    "plane": PLANE,
    "sphere": SPHERE,
    "capsule": CAPSULE,
    "ellipsoid": ELLIPSOID,
    "cylinder": CYLINDER,
    "box": BOX,
}
_SIZES = {PLANE: 0, SPHERE: 1, CAPSULE: 2, ELLIPSOID: 3, CYLINDER: 2, BOX: 3}
_DENSITY = 1000.0  # kg / m^3, the default


@dataclass(frozen=True)
class Mass:
    """The mass properties of a body or of a part of it, in the frame of the body.

    Attributes:
        mass: the mass in kg.
        centre: the centre of mass, in metres, (3,).
        inertia: the inertia tensor about the centre of mass, (3, 3).
    """

    mass: float
    centre: Floats
    inertia: Floats


@dataclass(frozen=True)
class Shape:
    """One geom or site.

    Attributes:
        kind: its value in mjtGeom.
        size: the size as MuJoCo stores it, (3,).
        pose: its pose in the frame of its body.
    """

    kind: int
    size: Floats
    pose: Pose

    @property
    def reach(self) -> float:
        """The radius of the sphere about its position that contains it; 0 for a plane."""
        a, b, c = (float(x) for x in self.size)
        return {
            PLANE: 0.0,
            SPHERE: a,
            CAPSULE: a + b,
            CYLINDER: math.hypot(a, b),
            ELLIPSOID: max(a, b, c),
            BOX: math.hypot(a, b, c),
        }[self.kind]

    def weigh(self, attributes: Attributes) -> Mass | None:
        """The mass properties of the shape, from `mass` or `density`; None if it has no mass."""
        volume, shape = _solid(self.kind, self.size)
        mass = attributes.number("mass") if "mass" in attributes else attributes.number("density", _DENSITY) * volume
        if not mass or not volume:
            return None
        turned = self.pose.rotation
        return Mass(mass, self.pose.position, mass * (turned @ np.diag(shape) @ turned.T))


def read_shape(attributes: Attributes, angles: Angles) -> Shape | None:
    """The shape of a geom or site; None if it is a mesh, a height field or another shape from a file.

    Raises:
        TargetError: no such type, or sizes are missing.
    """
    name = attributes.text("type", "sphere")
    if name in ("mesh", "hfield", "sdf") or "mesh" in attributes or "hfield" in attributes:
        return None
    if name not in SHAPES:
        raise TargetError(
            f"expected type {', '.join(SHAPES)}, mesh, hfield or sdf, got {name!r}.", where=attributes.where
        )
    kind, given, ends = SHAPES[name], attributes.numbers("size"), attributes.numbers("fromto")
    pose = angles.pose(attributes)
    size = np.zeros(3)
    size[: min(3, len(given))] = given[:3]
    if len(ends) == 6 and kind in (CAPSULE, CYLINDER, BOX, ELLIPSOID):
        # The z axis points from the second end to the first.
        along = ends[:3] - ends[3:]
        length = float(np.linalg.norm(along))
        if not length:
            raise TargetError("the two ends of fromto coincide.", where=attributes.where)
        if kind in (BOX, ELLIPSOID):
            size[1:] = size[0], length / 2
        else:
            size[1] = length / 2
        pose = Pose((ends[:3] + ends[3:]) / 2, onto_z(along / length))
    if np.any(size[: _SIZES[kind]] <= 0):
        raise TargetError(
            f"expected {_SIZES[kind]} positive sizes of a {name}, got {given.tolist()}.", where=attributes.where
        )
    return Shape(kind, size, pose)


def _solid(kind: int, size: Floats) -> tuple[float, Floats]:
    """The volume of a solid, and its three moments of inertia for a mass of 1."""
    a, b, c = (float(x) for x in size)
    if kind == SPHERE:
        return 4 / 3 * math.pi * a**3, np.full(3, 0.4 * a * a)
    if kind == ELLIPSOID:
        return 4 / 3 * math.pi * a * b * c, np.array([b * b + c * c, a * a + c * c, a * a + b * b]) / 5
    if kind == BOX:
        return 8 * a * b * c, np.array([b * b + c * c, a * a + c * c, a * a + b * b]) / 3
    if kind == CYLINDER:
        across = (3 * a * a + 4 * b * b) / 12
        return 2 * math.pi * a * a * b, np.array([across, across, a * a / 2])
    if kind == CAPSULE:
        tube, ball = 2 * math.pi * a * a * b, 4 / 3 * math.pi * a**3
        tube_share, ball_share = tube / (tube + ball), ball / (tube + ball)
        # The centre of mass of a half ball lies 3/8 of the radius beyond the end of the cylinder.
        across = tube_share * (3 * a * a + 4 * b * b) / 12 + ball_share * (0.4 * a * a + b * b + 0.75 * a * b)
        return tube + ball, np.array([across, across, tube_share * a * a / 2 + ball_share * 0.4 * a * a])
    return 0.0, np.zeros(3)


def join_masses(parts: list[Mass]) -> Mass:
    """Combine several masses about their common centre, by the parallel axis theorem."""
    total = sum(part.mass for part in parts)
    if not total:
        return Mass(0.0, np.zeros(3), np.zeros((3, 3)))
    centre = sum((part.mass * part.centre for part in parts), np.zeros(3)) / total
    inertia = np.zeros((3, 3))
    for part in parts:
        offset = part.centre - centre
        inertia += part.inertia + part.mass * (offset @ offset * np.eye(3) - np.outer(offset, offset))
    return Mass(float(total), centre, inertia)


def read_inertial(element: Attributes, angles: Angles) -> Mass:
    """The mass properties given by an `<inertial>` element."""
    pose = angles.pose(element)
    if "fullinertia" in element:
        xx, yy, zz, xy, xz, yz = element.row("fullinertia", (0.0,) * 6)
        tensor = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    else:
        tensor = np.diag(element.triple("diaginertia"))
    return Mass(element.number("mass"), pose.position, pose.rotation @ tensor @ pose.rotation.T)


def adjust(mass: Mass, compiler: Attributes) -> Mass:
    """Adjust a moving body's mass to the bounds set by the compiler."""
    bound, balance = compiler.number("boundinertia"), compiler.text("balanceinertia") == "true"
    least = compiler.number("boundmass")
    moments, axes = np.linalg.eigh(mass.inertia)
    if balance and moments[0] + moments[1] < moments[2]:
        moments = np.full(3, moments.mean())
    moments = np.maximum(moments, bound)
    return Mass(max(mass.mass, least), mass.centre, axes @ np.diag(moments) @ axes.T)
