"""Reads the bodies of an MJCF file, depth first, with their joints, geoms and sites."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from symcheck.errors import TargetError
from symcheck.mujoco.mjcf.document import Attributes, Document, needs_simulator
from symcheck.mujoco.mjcf.poses import HERE, Angles, Pose
from symcheck.mujoco.mjcf.shapes import SPHERE, Mass, Shape, join_masses, read_inertial, read_shape

JOINT_TYPES = {"free": 0, "ball": 1, "slide": 2, "hinge": 3}


@dataclass(frozen=True)
class Part:
    """A joint, geom or site: its attributes, and its pose in the frame of its body.

    Attributes:
        attributes: its attributes, including those of its class.
        shape: the shape of a geom or site; None for joints.
        frame: the combined frame of the `<frame>` elements around it, relative to the body.
    """

    attributes: Attributes
    shape: Shape | None = None
    frame: Pose = HERE


@dataclass
class Body:
    """One body.

    Attributes:
        name: "" without one.
        parent: the index of its parent; the world is 0.
        pose: its pose in the frame of its parent.
        gravcomp: the fraction of gravity that is compensated.
        joints: its joints, in the order of the file; the first joint of a free body is its free joint.
        geoms: its geoms whose shape is read.
        sites: all of its sites.
        inertial: the mass properties in the file; None if they follow from the geoms.
    """

    name: str
    parent: int
    pose: Pose
    gravcomp: float = 0.0
    joints: list[Part] = field(default_factory=list)
    geoms: list[Part] = field(default_factory=list)
    sites: list[Part] = field(default_factory=list)
    inertial: Mass | None = None


class Tree:
    """All bodies of a document.

    Attributes:
        bodies: all bodies, depth first, starting with the world.
        unread: names of geoms whose shape comes from a file, by body.
        left_out: sentences on the parts that were not read.

    Raises:
        TargetError: invalid numbers or types, or unsupported settings.
    """

    def __init__(self, document: Document) -> None:
        self._document = document
        self.angles = Angles.of(document.compiler)
        self.bodies = [Body("world", 0, HERE)]
        self.unread: dict[int, list[str]] = {}
        if document.compiler.text("coordinate", "local") != "local":
            raise TargetError("global coordinates are not supported.", where=document.label)
        for name in ("alignfree", "fusestatic"):
            if document.compiler.text(name) == "true":
                raise needs_simulator(f'compiler {name}="true"', document.label)
        for world in document.root.findall("worldbody"):
            self._walk(world, 0, world.get("childclass", ""), HERE)

    def mass_of(self, number: int) -> tuple[Mass, bool]:
        """The mass properties of a body, and whether a part of them comes from shapes that are not read."""
        body, rule = self.bodies[number], self._document.compiler.text("inertiafromgeom", "auto")
        if body.inertial is not None and rule != "true":
            return body.inertial, False
        if rule == "false":
            return Mass(0.0, HERE.position, HERE.rotation * 0.0), False
        low, high = self._document.compiler.row("inertiagrouprange", (0, 5))
        inside = [part for part in body.geoms if low <= part.attributes.number("group") <= high]
        weighed = [part.shape.weigh(part.attributes) for part in inside if part.shape is not None]
        return join_masses([mass for mass in weighed if mass is not None]), number in self.unread

    def _walk(self, element: Any, number: int, childclass: str, frame: Pose) -> None:
        for child in element:
            if child.tag in ("joint", "freejoint", "geom", "site", "inertial", "body", "frame"):
                getattr(self, f"_read_{child.tag}")(child, number, childclass, frame)

    def _read_frame(self, element: Any, number: int, childclass: str, frame: Pose) -> None:
        inner = frame.inside(self.angles.pose(self._plain(element)))
        self._walk(element, number, element.get("childclass") or childclass, inner)

    def _read_body(self, element: Any, number: int, childclass: str, frame: Pose) -> None:
        attributes = self._plain(element)
        pose = frame.inside(self.angles.pose(attributes))
        self.bodies.append(Body(element.get("name", ""), number, pose, attributes.number("gravcomp")))
        self._walk(element, len(self.bodies) - 1, element.get("childclass") or childclass, HERE)

    def _read_inertial(self, element: Any, number: int, _childclass: str, frame: Pose) -> None:
        mass = read_inertial(self._plain(element), self.angles)
        turned = frame.rotation
        centre = frame.position + turned @ mass.centre
        self.bodies[number].inertial = Mass(mass.mass, centre, turned @ mass.inertia @ turned.T)

    def _read_freejoint(self, element: Any, number: int, _childclass: str, frame: Pose) -> None:
        if element.get("align") == "true":
            raise needs_simulator('freejoint align="true"', self._document.label)
        values = {**element.attrib, "type": "free"}
        where = self._plain(element).where
        self._add_joint(number, Part(Attributes((("joint", values),), where), frame=frame))

    def _read_joint(self, element: Any, number: int, childclass: str, frame: Pose) -> None:
        attributes = self._document.attributes(element, childclass)
        kind = attributes.text("type", "hinge")
        if kind not in JOINT_TYPES:
            raise TargetError(f"expected type {', '.join(JOINT_TYPES)}, got {kind!r}.", where=attributes.where)
        self._add_joint(number, Part(attributes, frame=frame))

    def _add_joint(self, number: int, joint: Part) -> None:
        if number == 0:
            raise TargetError("the world has no joints.", where=joint.attributes.where)
        if joint.attributes.text("type") == "free" and self.bodies[number].parent:
            raise TargetError("a free joint is allowed only in a body at the top level.", where=joint.attributes.where)
        self.bodies[number].joints.append(joint)

    def _read_geom(self, element: Any, number: int, childclass: str, frame: Pose) -> None:
        attributes = self._document.attributes(element, childclass)
        shape = read_shape(attributes, self.angles)
        if shape is None:
            name = element.get("name") or attributes.text("mesh") or attributes.text("hfield") or "unnamed"
            self.unread.setdefault(number, []).append(name)
            return
        placed = Shape(shape.kind, shape.size, frame.inside(shape.pose))
        self.bodies[number].geoms.append(Part(attributes, placed, frame))

    def _read_site(self, element: Any, number: int, childclass: str, frame: Pose) -> None:
        attributes = self._document.attributes(element, childclass)
        pose = self.angles.pose(attributes)
        if "fromto" in attributes:
            shape = read_shape(attributes, self.angles)
            pose = pose if shape is None else shape.pose
        # Only the position of a site is used.
        size = attributes.numbers("size", (0.005, 0.005, 0.005))
        self.bodies[number].sites.append(Part(attributes, Shape(SPHERE, size, frame.inside(pose)), frame))

    def _plain(self, element: Any) -> Attributes:
        """Attributes of elements that have no default class."""
        where = f"{self._document.label}: {element.tag} {element.get('name') or ''}".rstrip()
        return Attributes(((element.tag, dict(element.attrib)),), where)
