"""The parts of a model to which a layout refers: base, joint orders of common libraries, feet, and their images.

A robot is paired with its image once for every generator of the layout's group. Elements without a counterpart are
allowed if no term of the layout needs them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from symcheck.array_types import Floats
from symcheck.errors import SpecError, suggestion
from symcheck.groups import catalog
from symcheck.groups.group import Group
from symcheck.mujoco import maps
from symcheck.mujoco.actuation import site_image
from symcheck.mujoco.elements import name_of, title
from symcheck.mujoco.images import Pairing
from symcheck.mujoco.isometry import Isometry, reflection, rotation
from symcheck.mujoco.layouts.document import WrittenLayout
from symcheck.mujoco.loading import LoadedModel
from symcheck.mujoco.pairing import pair_model

_FREE, _BALL = 0, 1
_ON_JOINTS = (0, 1)  # mjTRN_JOINT, mjTRN_JOINTINPARENT
Section = Literal["joint", "actuator"]


@dataclass(frozen=True)
class Driven:
    """One component of a joint vector: the coordinate of a joint, or the control of an actuator.

    Attributes:
        label: the name in the layout or the model.
        section: "joint" or "actuator".
        index: the index in the model.
    """

    label: str
    section: Section
    index: int


@dataclass(frozen=True)
class Foot:
    """One foot: an element, or all bodies with a prefix.

    Attributes:
        label: the name in the layout or the model.
        section: "body", "geom" or "site".
        members: indices in the model.
    """

    label: str
    section: Literal["body", "geom", "site"]
    members: tuple[int, ...]


@dataclass(frozen=True)
class Robot:
    """A model and its images under the generators of a group.

    Attributes:
        model: a `mujoco.MjModel`, or a `UrdfModel`.
        label: the name in reports.
        group: the group.
        pairings: one per generator.
        base: the body whose velocity and orientation are observed.
    """

    model: Any
    label: str
    group: Group
    pairings: tuple[Pairing, ...]
    base: int

    def base_isometry(self, generator: int) -> Floats:
        """The isometry N in the frame of the base, shape (3, 3).

        Raises:
            SpecError: the base has no image.
        """
        pairing = self.pairings[generator]
        if pairing.bodies[self.base] < 0:
            raise SpecError(
                f"the base, {title(self.model, 'body', self.base)}, has no image under the {pairing.isometry.name}.",
                where=self.label,
                remedy="Try another plane.",
            )
        return maps.local(pairing, self.base)

    def joints(self, order: str | tuple[str, ...], where: str) -> tuple[Driven, ...]:
        """The single-axis joints (hinges and slides), in a given order.

        Args:
            order: "model", "urdf", "breadth_first", or names of joints or actuators.
            where: how messages name the place.

        Raises:
            SpecError: an order that the model does not have, or unknown names.
        """
        if not isinstance(order, str):
            return self._named(order, where, ("joint", "actuator"))
        return tuple(Driven(self._joint_label(i), "joint", i) for i in self.joint_order(order, where))

    def actions(self, names: Sequence[str], where: str) -> tuple[Driven, ...]:
        """The joints and actuators of an action; a name shared by an actuator and a joint means the actuator."""
        return self._named(names, where, ("actuator", "joint"))

    def joint_order(self, order: str, where: str) -> list[int]:
        """Indices of the single-axis joints in one of the named orders.

        Raises:
            SpecError: "urdf" for a model that is not a URDF.
        """
        model = self.model
        if order == "urdf":
            listed = getattr(model, "document_order", None)
            if listed is None:
                raise SpecError(
                    'the order "urdf" requires a URDF file, but this model is not a URDF file.',
                    where=where,
                    remedy='Give the URDF as model, write "model", "breadth_first", or list the names.',
                )
            return list(listed)
        bodies = range(int(model.nbody)) if order == "model" else self._breadth_first()
        return [joint for body in bodies for joint in self._joints_of(body)]

    def _breadth_first(self) -> list[int]:
        # Breadth first; MuJoCo numbers siblings in the order of the file.
        ordered, level = [0], [0]
        while level:
            level = [i for parent in level for i in range(1, self.model.nbody) if self.model.body_parentid[i] == parent]
            ordered += level
        return ordered

    def _joints_of(self, body: int) -> list[int]:
        first, count = int(self.model.body_jntadr[body]), int(self.model.body_jntnum[body])
        return [i for i in range(first, first + count) if self.model.jnt_type[i] not in (_FREE, _BALL)]

    def _joint_label(self, joint: int) -> str:
        return name_of(self.model, "joint", joint) or f"joint {joint}"

    def _named(self, names: Sequence[str], where: str, sections: tuple[Section, Section]) -> tuple[Driven, ...]:
        tables = {section: self._names_of(section) for section in sections}
        chosen: list[Driven] = []
        unknown: list[str] = []
        for name in names:
            section = next((s for s in sections if _match(name, tables[s])), None)
            if section is None:
                unknown.append(name)
            else:
                chosen.append(Driven(name, section, tables[section][_match(name, tables[section])]))
        if unknown:
            known = [name for section in sections for name in tables[section]]
            raise SpecError(
                f"the order contains names that are neither joints nor actuators of {self.label}: "
                f"{', '.join(unknown)}.",
                where=where,
                remedy=suggestion(unknown[0], known),
            )
        return tuple(chosen)

    def _names_of(self, section: Section) -> dict[str, int]:
        if section == "joint":
            return {self._joint_label(i): i for i in self.joint_order("model", "")}
        return {name: i for i in range(int(self.model.nu)) if (name := name_of(self.model, "actuator", i))}

    def driven_image(self, driven: Driven, generator: int) -> tuple[Section, int, int]:
        """The image of a joint or actuator: section, index and sign.

        Raises:
            SpecError: the element has no image.
        """
        pairing = self.pairings[generator]
        images, signs = (
            (pairing.joints, pairing.joint_signs)
            if driven.section == "joint"
            else (pairing.actuators, pairing.actuator_signs)
        )
        if images[driven.index] < 0:
            raise SpecError(
                f"{title(self.model, driven.section, driven.index)} has no image under the {pairing.isometry.name}."
                + (f" {pairing.unpaired[0]}." if pairing.unpaired else ""),
                where=self.label,
                remedy="Remove this element from the layout, or try another plane.",
            )
        return driven.section, int(images[driven.index]), int(signs[driven.index])

    def feet(self, names: Sequence[str] | None, order: Sequence[Driven], where: str) -> tuple[Foot, ...]:
        """The named feet, or by default the leaf bodies in the order of the joints that carry them.

        Raises:
            SpecError: a name that is not a body, site or geom, nor the beginning of a body's name; or no leaf bodies.
        """
        if names is None:
            return self._leaves(order, where)
        return tuple(self._foot(name, where) for name in names)

    def _foot(self, name: str, where: str) -> Foot:
        sections: tuple[tuple[Literal["body", "geom", "site"], Any], ...] = (
            ("body", self.model.nbody),
            ("site", self.model.nsite),
            ("geom", self.model.ngeom),
        )
        for section, count in sections:
            for i in range(int(count)):
                if name_of(self.model, section, i) == name:
                    return Foot(name, section, (i,))
        bodies = [name_of(self.model, "body", i) for i in range(int(self.model.nbody))]
        members = tuple(i for i, body in enumerate(bodies) if name and body.startswith(name))
        if not members:
            raise SpecError(
                f"{name!r} is not a body, site or geom of {self.label}, and no body's name begins with it.",
                where=where,
                remedy=suggestion(name, bodies),
            )
        return Foot(name, "body", members)

    def _leaves(self, order: Sequence[Driven], where: str) -> tuple[Foot, ...]:
        model = self.model
        parents = {int(i) for i in model.body_parentid[1:]}
        place = {self._joint_of(driven): k for k, driven in enumerate(order)}
        found = []
        for body in range(1, int(model.nbody)):
            carrying = self._carrying_joint(body)
            # A body that no joint moves relative to the base (a camera, an IMU) is not a foot.
            if body not in parents and carrying in place:
                found.append((place[carrying], body))
        if not found:
            raise SpecError("no body at the end of the joints was found.", where=where, remedy="Name the feet.")
        return tuple(Foot(name_of(model, "body", body) or f"body {body}", "body", (body,)) for _, body in sorted(found))

    def _joint_of(self, driven: Driven) -> int:
        if driven.section == "joint":
            return driven.index
        on_joint = int(self.model.actuator_trntype[driven.index]) in _ON_JOINTS
        return int(self.model.actuator_trnid[driven.index, 0]) if on_joint else -1

    def _carrying_joint(self, body: int) -> int:
        """The last joint that moves a body; -1 if there is none below the base."""
        while body > 0:
            if joints := self._joints_of(body):
                return joints[-1]
            body = int(self.model.body_parentid[body])
        return -1

    def foot_images(self, feet: Sequence[Foot], generator: int, where: str) -> list[int]:
        """The position of every foot's image in the list of feet.

        Raises:
            SpecError: the image of a foot is not listed, or bodies with one prefix have images in several feet.
        """
        image_of = self._element_images(self.pairings[generator])
        places = []
        for foot in feet:
            images = {image_of[foot.section](member) for member in foot.members}
            # The images of all members must belong to the same foot.
            holding = [
                k for k, other in enumerate(feet) if other.section == foot.section and images <= {*other.members}
            ]
            if not holding:
                names = ", ".join(
                    title(self.model, foot.section, i) if i >= 0 else "nothing" for i in sorted(images)[:3]
                )
                raise SpecError(
                    f"the image of {foot.label!r} in the {self.pairings[generator].isometry.name} is {names}, which "
                    "is not one of the feet.",
                    where=where,
                    remedy="List the feet of both sides.",
                )
            places.append(holding[0])
        return places

    def _element_images(self, pairing: Pairing) -> dict[str, Callable[[int], int]]:
        model = self.model
        return {
            "body": lambda i: int(pairing.bodies[i]),
            "geom": lambda i: int(pairing.geoms[i]),
            "site": lambda i: site_image(model, pairing, i),
        }


def _match(name: str, table: dict[str, int]) -> str:
    """The matching name in the table: the name itself, or with or without the suffix "_joint"; "" for none."""
    for candidate in (name, f"{name}_joint", name.removesuffix("_joint")):
        if candidate in table:
            return candidate
    return ""


def robot_of(loaded: LoadedModel, layout: WrittenLayout) -> Robot:
    """Pair a model with its images under the group of a layout.

    Args:
        loaded: the model.
        layout: the layout, which gives the plane and the group.

    Returns:
        The robot.

    Raises:
        SpecError: the model has no joints.
    """
    group, isometries = isometries_of(layout)
    return pair_robot(loaded, group, isometries)


def isometries_of(layout: WrittenLayout) -> tuple[Group, tuple[Isometry, ...]]:
    """The group of a layout and the isometry of each of its generators."""
    if layout.group == "K4":
        return catalog.klein_four(), (reflection("xz"), reflection("yz"))
    if layout.group == "C4":
        return catalog.cyclic(4), (rotation("z", 4),)
    return catalog.cyclic(2), (reflection(layout.plane),)


def pair_robot(loaded: LoadedModel, group: Group, isometries: Sequence[Isometry]) -> Robot:
    """Pair a model with its image under every isometry.

    Raises:
        SpecError: the model has no joints.
    """
    model = loaded.model
    if not model.njnt:
        raise SpecError("the model has no joints.", where=loaded.label)
    base, is_free = _base_of(model)
    pairings = []
    for isometry in isometries:
        pairing = pair_model(model, isometry, {})
        # For a base that is fixed away from the origin, the plane passes through the base.
        if pairing.unpaired and not is_free and base:
            place = np.array(pairing.reference.body_position[base])
            own = pair_model(model, Isometry(isometry.name, isometry.matrix, isometry.order, place), {})
            pairing = own if len(own.unpaired) < len(pairing.unpaired) else pairing
        if pairing.unpaired:
            # A trunk is its own image from front to back even if its centre of mass is off the plane: the mass is a
            # difference, and does not change the pairing.
            through = pairing.isometry
            framed = pair_model(model, through, {}, by_frames=True)
            pairing = framed if len(framed.unpaired) < len(pairing.unpaired) else pairing
        pairings.append(pairing)
    return Robot(model, loaded.label, group, tuple(pairings), base)


def _base_of(model: Any) -> tuple[int, bool]:
    """The base of the robot, and whether it is free; among several free bodies, the one with the largest subtree."""
    parents = [int(parent) for parent in model.body_parentid]
    carried = [0] * len(parents)
    for body in range(len(parents) - 1, 0, -1):
        # Children have higher numbers than their parents, so count from the end.
        carried[parents[body]] += 1 + carried[body]
    free = [int(model.jnt_bodyid[j]) for j in range(model.njnt) if model.jnt_type[j] == _FREE]
    roots = free or [body for body in range(1, len(parents)) if parents[body] == 0 and carried[body]]
    if not free and len(roots) != 1:
        # Several arms on the ground have no common base.
        return 0, False
    base = max(roots, key=lambda body: carried[body])
    while not model.body_jntnum[base]:
        # A root link that only carries the trunk is not the base.
        below = [body for body in range(1, len(parents)) if parents[body] == base]
        if len(below) != 1 or model.body_jntnum[below[0]]:
            break
        base = below[0]
    return base, bool(free)
