"""Reads a robot from a URDF without a simulator: links, joints, masses and limits as arrays.

The arrays have the names and meanings of `mujoco.MjModel`, limited to those used for pairing and comparing, so the same
code mirrors a URDF. Links are in depth-first order, children in the order of the file; links at fixed joints are not
merged. Collision shapes and meshes are not read.
"""

from __future__ import annotations

import math
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from symcheck.array_types import Floats
from symcheck.errors import TargetError
from symcheck.mujoco.isometry import Isometry
from symcheck.mujoco.reference import Reference

_TYPES = {"floating": 0, "prismatic": 2, "revolute": 3, "continuous": 3}
_NONE = np.zeros(0)


@dataclass(frozen=True)
class _Link:
    """One link: its element, the joint that carries it, and the number of its parent."""

    element: Any
    joint: Any
    parent: int


class UrdfModel:
    """A URDF as arrays with the names of `mujoco.MjModel`.

    Args:
        text: the text of the file.
        label: names it in messages.

    Attributes:
        document_order: indices of the movable joints in the order in which the file lists them.
        names: section to names.

    Raises:
        TargetError: not a URDF, invalid numbers, joints that do not form a tree, or an unknown kind of joint.
    """

    def __init__(self, text: str, label: str) -> None:
        root = _parse(text, label)
        self._label = label
        listed = root.findall("joint")
        links = self._order_links(root, listed)
        self.nbody, self.ngeom, self.nsite, self.nu = len(links) + 1, 0, 0, 0
        self.ntendon = self.neq = self.nmesh = self.npair = self.nexclude = self.nwrap = self.na = 0
        self.body_parentid = np.array([0, *(link.parent for link in links)])
        self._joints = [
            (body, link.joint) for body, link in enumerate(links, 1) if link.joint is not None and self._kind(link) >= 0
        ]
        self.njnt = len(self._joints)
        numbers = {joint.get("name"): i for i, (_, joint) in enumerate(self._joints)}
        self.document_order = [
            numbers[joint.get("name")]
            for joint in listed
            if joint.get("name") in numbers and joint.get("type") != "floating"
        ]
        self.names = {
            "body": ["world", *(str(link.element.get("name")) for link in links)],
            "joint": [str(joint.get("name")) for _, joint in self._joints],
        }
        self._read_joints()
        self._read_bodies(links)
        self.opt = SimpleNamespace(gravity=np.array([0.0, 0.0, -9.81]), wind=np.zeros(3), solver=2, iterations=0)
        self.geom_type = self.exclude_signature = np.zeros(0, dtype=int)
        self.body_geomadr = self.body_geomnum = np.zeros(self.nbody, dtype=int)

    def _order_links(self, root: Any, listed: list[Any]) -> list[_Link]:
        elements = {link.get("name"): link for link in root.findall("link")}
        carrying = {_name_in(joint, "child"): joint for joint in listed}
        unknown = [
            name
            for joint in listed
            for name in (_name_in(joint, "parent"), _name_in(joint, "child"))
            if name not in elements
        ]
        roots = [name for name in elements if name not in carrying]
        if unknown or len(roots) != 1:
            problem = (
                f"joints name links that do not exist: {', '.join(map(str, unknown))}"
                if unknown
                else f"expected one link without a parent, got {len(roots)}: {', '.join(map(str, roots)) or 'none'}"
            )
            raise TargetError(f"{problem}.", where=self._label)
        ordered: list[_Link] = []

        def visit(name: Any, parent: int) -> None:
            ordered.append(_Link(elements[name], carrying.get(name), parent))
            place = len(ordered)
            for joint in listed:
                if _name_in(joint, "parent") == name:
                    visit(_name_in(joint, "child"), place)

        visit(roots[0], 0)
        return ordered

    def _kind(self, link: _Link) -> int:
        kind = link.joint.get("type")
        if kind == "fixed":
            return -1
        if kind not in _TYPES:
            raise TargetError(
                f"joint {link.joint.get('name')!r} has the unsupported type {kind!r}; supported types are "
                f"{', '.join(_TYPES)} and fixed.",
                where=self._label,
            )
        return _TYPES[kind]

    def _read_joints(self) -> None:
        joints = [joint for _, joint in self._joints]
        self.jnt_type = np.array([_TYPES[joint.get("type")] for joint in joints], dtype=int)
        self.jnt_bodyid = np.array([body for body, _ in self._joints], dtype=int)
        widths = np.where(self.jnt_type == 0, 7, 1), np.where(self.jnt_type == 0, 6, 1)
        self.jnt_qposadr, self.jnt_dofadr = (np.concatenate([[0], np.cumsum(w)])[:-1].astype(int) for w in widths)
        self.nq, self.nv = (int(w.sum()) for w in widths)
        self.qpos0 = np.zeros(self.nq)
        self.qpos0[[int(start) + 3 for start in self.jnt_qposadr[self.jnt_type == 0]]] = 1.0
        self.qpos_spring = self.qpos0
        limits = [joint.find("limit") for joint in joints]
        bounded = [joint.get("type") in ("revolute", "prismatic") for joint in joints]
        self.jnt_limited = np.array(bounded, dtype=int)
        self.jnt_range = np.array(
            [[self._number(limit, "lower"), self._number(limit, "upper")] for limit in limits]
        ).reshape(-1, 2)
        effort = np.array([self._number(limit, "effort") for limit in limits])
        self.jnt_actfrclimited = (effort > 0).astype(int)
        self.jnt_actfrcrange = np.stack([-effort, effort], axis=1) if len(effort) else np.zeros((0, 2))
        self.jnt_stiffness = np.zeros(self.njnt)
        self.jnt_velocity = np.array([self._number(limit, "velocity") for limit in limits])
        dynamics = [joint.find("dynamics") for joint in joints]
        # One row per velocity coordinate; a floating joint has six.
        self.dof_damping, self.dof_frictionloss = np.zeros(self.nv), np.zeros(self.nv)
        for start, element in zip(self.jnt_dofadr, dynamics, strict=True):
            self.dof_damping[start] = self._number(element, "damping")
            self.dof_frictionloss[start] = self._number(element, "friction")

    def _read_bodies(self, links: list[_Link]) -> None:
        count = self.nbody
        self.body_jntnum, self.body_jntadr = np.zeros(count, dtype=int), np.full(count, -1)
        for i, body in enumerate(self.jnt_bodyid):
            self.body_jntnum[body], self.body_jntadr[body] = 1, i
        self.body_mass, self.body_gravcomp = np.zeros(count), np.zeros(count)
        position, rotation = np.zeros((count, 3)), np.tile(np.eye(3), (count, 1, 1))
        centre, inertia = np.zeros((count, 3)), np.zeros((count, 3, 3))
        for body, link in enumerate(links, 1):
            if link.joint is not None:
                shift, turned = self._origin(link.joint)
                position[body] = position[link.parent] + rotation[link.parent] @ shift
                rotation[body] = rotation[link.parent] @ turned
            inertial = link.element.find("inertial")
            shift, turned = self._origin(inertial)
            centre[body] = position[body] + rotation[body] @ shift
            if inertial is not None:
                self.body_mass[body] = self._number(inertial.find("mass"), "value")
                axes = rotation[body] @ turned
                inertia[body] = axes @ self._tensor(inertial.find("inertia")) @ axes.T
        self._poses = position, rotation, centre, inertia

    def _tensor(self, element: Any) -> Floats:
        xx, yy, zz, xy, xz, yz = (self._number(element, name) for name in ("ixx", "iyy", "izz", "ixy", "ixz", "iyz"))
        return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])

    def _origin(self, element: Any) -> tuple[Floats, Floats]:
        """Offset and rotation of an element's origin."""
        from scipy.spatial.transform import Rotation

        origin = None if element is None else element.find("origin")
        shift, angles = self._triple(origin, "xyz"), self._triple(origin, "rpy")
        # Roll, pitch and yaw about fixed axes.
        return shift, np.asarray(Rotation.from_euler("xyz", angles).as_matrix())

    def _triple(self, element: Any, name: str, default: str = "0 0 0") -> Floats:
        text = default if element is None else element.get(name, default)
        try:
            values = np.array([float(word) for word in text.split()])
        except ValueError:
            values = _NONE
        if values.shape != (3,) or not np.isfinite(values).all():
            raise TargetError(
                f"expected three finite numbers in {name}, got {text!r}.",
                where=self._label,
                remedy="Expand the file first (xacro robot.urdf.xacro > robot.urdf)." if "$" in text else None,
            )
        return values

    def _number(self, element: Any, name: str) -> float:
        text = "0" if element is None else element.get(name, "0")
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        # A joint without limits may be given with infinite limits.
        if math.isnan(number):
            raise TargetError(f"expected a number in {name}, got {text!r}.", where=self._label)
        return number

    def reference(self, _isometry: Isometry, *, slide_home: bool) -> Reference:
        """The poses with all joints at 0; no body slides in the world."""
        position, rotation, centre, inertia = self._poses
        axes = []
        for body, joint in self._joints:
            axis = self._triple(joint.find("axis"), "xyz", "1 0 0")
            length = float(np.linalg.norm(axis))
            if not length and joint.get("type") != "floating":
                raise TargetError(f"joint {joint.get('name')!r} has the axis 0 0 0.", where=self._label)
            axes.append(rotation[body] @ (axis / length if length else axis))
        spread = float(np.ptp(np.concatenate([position[1:], centre[1:]]), axis=0).max())
        return Reference(
            self.qpos0.copy(),
            position.copy(),
            rotation.copy(),
            centre.copy(),
            inertia.copy(),
            np.array(axes).reshape(-1, 3),
            position[self.jnt_bodyid].copy(),
            np.zeros((0, 3)),
            np.zeros((0, 3, 3)),
            np.zeros((0, 3)),
            np.zeros((0, 3, 3)),
            # 1e-6: keeps the extent of a single point positive.
            max(spread, 1e-6),
        )


def is_urdf(text: str) -> bool:
    """Whether XML text is a URDF: its root is `robot`.

    Example:
        >>> is_urdf("<?xml version='1.0'?><robot name='r'/>"), is_urdf("<mujoco/>"), is_urdf("<robot")
        (True, False, False)
    """
    try:
        return str(_root(text).tag) == "robot"
    except ElementTree.ParseError:
        return False


def _root(text: str) -> Any:
    # An encoding declaration applies to the file, not to decoded text.
    return ElementTree.fromstring(text.encode("utf-8") if "encoding" in text[:100] else text)


def _parse(text: str, label: str) -> Any:
    try:
        root = _root(text)
    except ElementTree.ParseError as error:
        raise TargetError(f"expected a URDF, got text that is not XML: {error}.", where=label) from error
    if root.tag != "robot":
        raise TargetError(f"expected a URDF with a <robot>, got <{root.tag}>.", where=label)
    return root


def _name_in(joint: Any, which: str) -> Any:
    element = joint.find(which)
    return None if element is None else element.get("link")
