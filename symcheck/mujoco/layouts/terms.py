"""The transformation of every term of a layout: the matrix of one frame under one isometry, and the component names.

Row i of a matrix gives component i of the image; a row with -1 in column j is the negated component j.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from symcheck.array_types import Floats
from symcheck.errors import SpecError
from symcheck.mujoco.isometry import quaternion_map, quaternion_of, whole
from symcheck.mujoco.layouts.document import WrittenTerm, check_count, read_names
from symcheck.mujoco.layouts.grids import image_labels, image_matrix, scan_labels, scan_matrix
from symcheck.mujoco.layouts.robot import Driven, Robot

_XYZ = ("x", "y", "z")
Matrix = Callable[[int], Any]
"""From a generator's number to the matrix of one frame."""


@dataclass(frozen=True)
class Orders:
    """The default joint orders of terms.

    Attributes:
        joints: the joint order of joint terms.
        action: the order of the action and of the last action.
    """

    joints: tuple[Driven, ...]
    action: tuple[Driven, ...]


@dataclass(frozen=True)
class LaidTerm:
    """One term on a robot.

    Attributes:
        written: the term as written.
        labels: a name for each component of a frame.
        matrices: one per generator, each of shape (dim, dim).
        bodies: for `point`, the bodies whose positions it contains; () for other terms.
        driven: for joint terms, the joint or actuator of every component; () for other terms.
    """

    written: WrittenTerm
    labels: tuple[str, ...]
    matrices: tuple[sparse.csr_array, ...]
    bodies: tuple[int, ...] = ()
    driven: tuple[Driven, ...] = ()

    @property
    def dim(self) -> int:
        """The number of components of one frame."""
        return len(self.labels)


def lay_term(robot: Robot, written: WrittenTerm, orders: Orders) -> LaidTerm:
    """Determine how a term transforms.

    Args:
        robot: the robot with its images.
        written: the term.
        orders: joint orders of the layout.

    Returns:
        The term, with one matrix per generator.

    Raises:
        SpecError: an argument of the wrong kind; joints, feet or bodies that do not exist or have no image; or a term
            that the isometry does not map to itself.
    """
    labels, matrix, members = _KINDS[written.kind](robot, written, orders)
    generators = range(len(robot.pairings))
    bodies = tuple(member for member in members if isinstance(member, int))
    driven = tuple(member for member in members if isinstance(member, Driven))
    return LaidTerm(written, tuple(labels), tuple(_as_sparse(matrix(k)) for k in generators), bodies, driven)


def _as_sparse(matrix: sparse.csr_array | Floats) -> sparse.csr_array:
    return matrix if isinstance(matrix, sparse.csr_array) else sparse.csr_array(whole(matrix))


_Laid = tuple[Sequence[str], Matrix, Sequence[int | Driven]]


def _polar(robot: Robot, written: WrittenTerm, orders: Orders) -> _Laid:
    return _XYZ, robot.base_isometry, ()


def _axial(robot: Robot, written: WrittenTerm, orders: Orders) -> _Laid:
    return _XYZ, lambda k: _determinant(robot, k) * robot.base_isometry(k), ()


def _world_polar(robot: Robot, written: WrittenTerm, orders: Orders) -> _Laid:
    return _XYZ, lambda k: robot.pairings[k].isometry.matrix, ()


def _world_axial(robot: Robot, written: WrittenTerm, orders: Orders) -> _Laid:
    return _XYZ, lambda k: _determinant(robot, k) * robot.pairings[k].isometry.matrix, ()


def _determinant(robot: Robot, generator: int) -> int:
    return robot.pairings[generator].isometry.determinant


def _scalar(robot: Robot, written: WrittenTerm, orders: Orders) -> _Laid:
    return ("value",), lambda k: np.eye(1), ()


def _pseudoscalar(robot: Robot, written: WrittenTerm, orders: Orders) -> _Laid:
    return ("value",), lambda k: _determinant(robot, k) * np.eye(1), ()


def _constant(robot: Robot, written: WrittenTerm, orders: Orders) -> _Laid:
    size = check_count(written.arguments["size"], f"{written.where}, size")
    return [str(i) for i in range(size)], lambda k: np.eye(size), ()


def _command(robot: Robot, written: WrittenTerm, orders: Orders) -> _Laid:
    def matrix(k: int) -> Floats:
        local = robot.base_isometry(k)
        if np.abs(local[:2, 2]).max() > 1e-9 or np.abs(local[2, :2]).max() > 1e-9:
            raise SpecError(
                "the z axis of the base is not vertical in the file, so the mirror mixes forward, "
                "sideways and turning speed.",
                where=written.where,
                remedy="Write the command as vector, axial and scalar terms.",
            )
        moved = np.zeros((3, 3))
        # Two components of a polar vector and one of an axial vector.
        moved[:2, :2], moved[2, 2] = local[:2, :2], _determinant(robot, k) * local[2, 2]
        return moved

    return ("vx", "vy", "wz"), matrix, ()


def _joints(robot: Robot, written: WrittenTerm, orders: Orders) -> _Laid:
    default = orders.action if written.kind == "last_action" else orders.joints
    given = written.arguments.get("order")
    signed = written.arguments.get("sign", written.kind != "per_joint")
    if not isinstance(signed, bool):
        raise SpecError(f"expected sign = true or false, got {signed!r}.", where=written.where)
    where = f"{written.where}, order"
    if given is None:
        listed = default
    elif isinstance(given, str):
        listed = robot.joints(_named_order(given, where), where)
    elif written.kind == "last_action":
        listed = robot.actions(read_names(given, where), where)
    else:
        listed = robot.joints(read_names(given, where), where)
    if not listed:
        raise SpecError(
            f"{robot.label} has no joints with one degree of freedom (hinges or slides).",
            where=written.where,
            remedy="For ball and free joints, use the terms quat, rotation or vector.",
        )
    labels = [driven.label for driven in listed]
    return labels, lambda k: driven_matrix(robot, listed, k, written.where, signed=signed), listed


def _named_order(given: str, where: str) -> str:
    if given not in ("model", "urdf", "breadth_first"):
        raise SpecError(f'expected "model", "urdf", "breadth_first" or a list of names, got {given!r}.', where=where)
    return given


def driven_matrix(robot: Robot, listed: Sequence[Driven], generator: int, where: str, *, signed: bool = True) -> Floats:
    """The matrix of a term with one component per joint or actuator.

    Args:
        robot: the robot with its images.
        listed: joints or actuators, in order.
        generator: the index of the generator.
        where: how messages name the place.
        signed: whether components carry the sign of their joint.

    Returns:
        Shape (n, n).

    Raises:
        SpecError: an image is not listed.
    """
    places = {(driven.section, driven.index): i for i, driven in enumerate(listed)}
    matrix = np.zeros((len(listed), len(listed)))
    for column, driven in enumerate(listed):
        section, image, sign = robot.driven_image(driven, generator)
        if (section, image) not in places:
            raise SpecError(
                f"the order omits the image of {driven.label}, {_name(robot, section, image)}.",
                where=where,
                remedy="List the joints of both sides.",
            )
        matrix[places[section, image], column] = sign if signed else 1
    return matrix


def _name(robot: Robot, section: Any, index: int) -> str:
    names = {i: name for name, i in robot._names_of(section).items()}
    return names.get(index, f"{section} {index}")


def _feet(robot: Robot, written: WrittenTerm, orders: Orders) -> _Laid:
    names = written.arguments.get("feet")
    where = f"{written.where}, feet"
    feet = robot.feet(None if names is None else read_names(names, where), orders.joints, where)
    given = written.arguments.get("parts")
    parts = ("",) if given is None else read_names(given, f"{written.where}, parts")
    # Part by part: all feet of the first part, then of the next.
    labels = [f"{foot.label} {part}".strip() for part in parts for foot in feet]

    def matrix(k: int) -> Floats:
        exchange = np.zeros((len(feet), len(feet)))
        for column, image in enumerate(robot.foot_images(feet, k, where)):
            exchange[image, column] = 1
        return np.asarray(np.kron(np.eye(len(parts)), exchange), dtype=np.float64)

    return labels, matrix, ()


def _clock(robot: Robot, written: WrittenTerm, orders: Orders) -> _Laid:
    shift = written.arguments["shift"]
    if shift not in ("half", "none"):
        raise SpecError(
            f'expected shift = "half" (the image is half a cycle later) or "none", got {shift!r}.', where=written.where
        )
    # A shift by half a cycle negates sine and cosine.
    return ("sin", "cos"), lambda k: (-1 if shift == "half" else 1) * np.eye(2), ()


def _quaternion(robot: Robot, written: WrittenTerm, orders: Orders) -> _Laid:
    order = written.arguments.get("order", "wxyz")
    if order not in ("wxyz", "xyzw"):
        raise SpecError(f'expected order = "wxyz" or "xyzw", got {order!r}.', where=written.where)

    def matrix(k: int) -> Floats:
        isometry, sign = robot.pairings[k].isometry, _determinant(robot, k)
        # R -> M R N^T; det(M) M and det(M) N are proper rotations, which have quaternions.
        moved = quaternion_map(quaternion_of(sign * isometry.matrix), quaternion_of(sign * robot.base_isometry(k)))
        # q and -q are the same orientation: choose the sign that keeps the upright orientation fixed.
        moved = moved if moved[0, 0] >= 0 else -moved
        turned = ["wxyz".index(letter) for letter in order]
        return moved[np.ix_(turned, turned)]

    return tuple(order), matrix, ()


def _rotation(robot: Robot, written: WrittenTerm, orders: Orders) -> _Laid:
    # vec(M R N^T) = (M x N) vec(R), rows first.
    labels = [f"R{i}{j}" for i in range(3) for j in range(3)]
    return labels, lambda k: np.kron(robot.pairings[k].isometry.matrix, robot.base_isometry(k)), ()


def _first_columns(robot: Robot, written: WrittenTerm, orders: Orders) -> _Laid:
    def matrix(k: int) -> Floats:
        isometry, local = robot.pairings[k].isometry.matrix, robot.base_isometry(k)
        if np.abs(local[:2, 2]).max() > 1e-9:
            raise SpecError("the first two columns of M R N^T depend on the third column of R.", where=written.where)
        # Column j of M R N^T is the sum of M times column i of R, with weights N[j, i].
        return np.asarray(np.kron(local[:2, :2], isometry), dtype=np.float64)

    return [f"R{i}{j}" for j in range(2) for i in range(3)], matrix, ()


def _euler(robot: Robot, written: WrittenTerm, orders: Orders) -> _Laid:
    def matrix(k: int) -> Floats:
        isometry, local = robot.pairings[k].isometry.matrix, robot.base_isometry(k)
        # Euler angles transform linearly only if the isometry preserves every axis and the base is not rotated.
        if np.abs(isometry - np.diag(np.diag(isometry))).max() > 1e-9 or np.abs(isometry - local).max() > 1e-9:
            raise SpecError(
                f"Euler angles have no linear image under the {robot.pairings[k].isometry.name} here.",
                where=written.where,
                remedy="Use the terms quat, rot6d or rotation, or check the mirror alone.",
            )
        return _determinant(robot, k) * isometry

    return ("roll", "pitch", "yaw"), matrix, ()


def _points(robot: Robot, written: WrittenTerm, orders: Orders) -> _Laid:
    given = written.arguments["body"]
    names = (given,) if isinstance(given, str) else read_names(given, f"{written.where}, body")
    bodies = []
    for name in names:
        foot = robot._foot(name, f"{written.where}, body")
        if foot.section != "body" or len(foot.members) != 1:
            raise SpecError(f"expected the name of a body, got {name!r}.", where=f"{written.where}, body")
        bodies.append(foot.members[0])
    labels = [f"{name} {axis}" for name in names for axis in _XYZ]
    # The image of each body can be found only among the other points of the group.
    return labels, lambda k: np.zeros((len(labels), len(labels))), bodies


def _scan(robot: Robot, written: WrittenTerm, orders: Orders) -> _Laid:
    return scan_labels(written), lambda k: scan_matrix(written, robot.base_isometry(k)), ()


def _image(robot: Robot, written: WrittenTerm, orders: Orders) -> _Laid:
    return image_labels(written), lambda k: image_matrix(written, robot.base_isometry(k)), ()


_KINDS: dict[str, Callable[[Robot, WrittenTerm, Orders], _Laid]] = {
    "base_lin_vel": _polar,
    "gravity": _polar,
    "base_ang_vel": _axial,
    "vector": _world_polar,
    "axial": _world_axial,
    "scalar": _scalar,
    "pseudoscalar": _pseudoscalar,
    "constant": _constant,
    "command": _command,
    "joint_pos": _joints,
    "joint_vel": _joints,
    "joint_torque": _joints,
    "per_joint": _joints,
    "last_action": _joints,
    "contacts": _feet,
    "phase": _feet,
    "clock": _clock,
    "quat": _quaternion,
    "rotation": _rotation,
    "rot6d": _first_columns,
    "euler_xyz": _euler,
    "point": _points,
    "scan": _scan,
    "image": _image,
}
