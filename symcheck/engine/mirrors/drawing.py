"""The robot as lines and dots: a pose, its mirror image, and the function's result, with wrong joints marked.

Poses come from the joint axes of the reference configuration (a product of exponentials), so a URDF can be drawn
without a simulator.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from symcheck.array_types import Floats
from symcheck.engine.mirrors.context import MirrorContext
from symcheck.engine.mirrors.rows import Row
from symcheck.mujoco.elements import name_of
from symcheck.mujoco.images import Pairing
from symcheck.mujoco.layouts.laid_out import LaidGroup
from symcheck.mujoco.layouts.robot import Robot
from symcheck.mujoco.layouts.vocabulary import JOINT_TERMS

_SLIDE = 2
_BEND = 0.7  # radians: enough to distinguish two poses in a small drawing


def draw_poses(context: MirrorContext) -> tuple[tuple[str, dict[str, Any]], ...]:
    """Three drawings if a joint is wrong: a pose, its image by the model, its image by the function.

    Args:
        context: the run.

    Returns:
        (caption, drawing) pairs; a drawing has `lines` (x1, y1, x2, y2) and `joints` (x, y, name, whether it is wrong),
        in metres, x to the right and y up. Empty if no joint is wrong.
    """
    chosen = _wrong_joint_term(context)
    if chosen is None:
        return ()
    group, term, element = chosen
    robot = context.layout.robot
    pairing = robot.pairings[context.layout.group.word(context.layout.group.elements()[1:][element])[0]]
    rng = np.random.default_rng(0)
    angles = _within_limits(
        robot, _BEND * rng.uniform(0.4, 1.0, robot.model.njnt) * rng.choice([-1, 1], robot.model.njnt)
    )
    image = _image_of(pairing, angles)
    rows = {item.index: item.found for item in context.wrong if item.group == group.name and item.element == element}
    found = _found(robot, group, term, rows, angles, image)
    wrong = _wrong_joints(context)
    return (
        ("a pose of the robot", _drawing(robot, pairing, angles, wrong)),
        (f"its {pairing.isometry.name}, by the model", _drawing(robot, pairing, image, wrong)),
        (
            f"its image as the function computes it, from {group.term_name(_first(group, term))}",
            _drawing(robot, pairing, found, wrong),
        ),
    )


def _first(group: LaidGroup, term: int) -> int:
    return next(i for i, column in enumerate(group.columns) if column.term == term)


def _wrong_joint_term(context: MirrorContext) -> tuple[LaidGroup, int, int] | None:
    groups = context.groups()
    for item in context.wrong:
        group = groups[item.group]
        if group.term_name(item.index) in JOINT_TERMS:
            return group, group.columns[item.index].term, item.element
    return None


def _joint_of_column(robot: Robot, group: LaidGroup, index: int) -> int:
    """The joint of a column of a joint term; -1 if there is none."""
    column = group.columns[index]
    return robot._joint_of(group.terms[column.term].driven[column.component])


def _wrong_joints(context: MirrorContext) -> set[int]:
    groups, robot = context.groups(), context.layout.robot
    joints = set()
    for item in context.wrong:
        group = groups[item.group]
        if group.term_name(item.index) in JOINT_TERMS:
            joints.add(_joint_of_column(robot, group, item.index))
    return joints


def _image_of(pairing: Pairing, angles: Floats) -> Floats:
    image = np.zeros_like(angles)
    for joint, (other, sign) in enumerate(zip(pairing.joints, pairing.joint_signs, strict=True)):
        if other >= 0:
            image[other] = sign * angles[joint]
    return image


def _found(robot: Robot, group: LaidGroup, term: int, rows: Mapping[int, Row], angles: Floats, image: Floats) -> Floats:
    """The joint angles that the function gives in one frame of a term; the model's for all other joints."""
    found = image.copy()
    frame = max((group.columns[c].frame for c in rows if group.columns[c].term == term), default=0)
    for column, row in rows.items():
        place = group.columns[column]
        if place.term != term or place.frame != frame:
            continue
        sources = [(group.columns[c], c, value) for c, value in row.terms]
        found[_joint_of_column(robot, group, column)] = sum(
            value * angles[_joint_of_column(robot, group, c)] for source, c, value in sources if source.term == term
        )
    return found


def _within_limits(robot: Robot, angles: Floats) -> Floats:
    model = robot.model
    limits = np.array(model.jnt_range).reshape(-1, 2)
    bounded = np.array(model.jnt_limited, dtype=bool) & (limits[:, 0] < limits[:, 1])
    # The displacement of a slide in metres is a tenth of a hinge's angle in radians.
    angles = np.where(np.array(model.jnt_type) == _SLIDE, 0.1 * angles, angles)
    return np.where(bounded, np.clip(angles, limits[:, 0], limits[:, 1]), angles)


def _drawing(robot: Robot, pairing: Pairing, angles: Floats, wrong: set[int]) -> dict[str, Any]:
    model, reference = robot.model, pairing.reference
    moved = _displacements(robot, pairing, angles)
    lines, joints = [], []
    for body in range(1, int(model.nbody)):
        parent = int(model.body_parentid[body])
        if parent == 0:
            continue
        ends = [_screen(_apply(moved[b], reference.body_position[b])) for b in (parent, body)]
        lines.append([*ends[0], *ends[1]])
        first = int(model.body_jntadr[body])
        for joint in range(first, first + int(model.body_jntnum[body])):
            if model.jnt_type[joint] < _SLIDE:
                continue
            place = _screen(_apply(moved[parent], reference.anchor[joint]))
            joints.append([*place, name_of(model, "joint", joint) or f"joint {joint}", joint in wrong])
        centre = _screen(_apply(moved[body], reference.centre[body]))
        if not (np.array(model.body_parentid) == body).any():
            # The last link has no child: draw it to twice the distance of its centre of mass.
            lines.append([*ends[1], *(2 * c - e for c, e in zip(centre, ends[1], strict=True))])
    return {"lines": lines, "joints": joints}


def _displacements(robot: Robot, pairing: Pairing, angles: Floats) -> list[tuple[Floats, Floats]]:
    """The displacement of every body from the reference configuration: rotation and translation, in world axes."""
    from scipy.spatial.transform import Rotation

    model, reference = robot.model, pairing.reference
    moved: list[tuple[Floats, Floats]] = [(np.eye(3), np.zeros(3))]
    for body in range(1, int(model.nbody)):
        turned, shift = moved[int(model.body_parentid[body])]
        first = int(model.body_jntadr[body])
        for joint in range(first, first + int(model.body_jntnum[body])):
            if model.jnt_type[joint] < _SLIDE:
                continue
            axis, anchor = reference.axis[joint], reference.anchor[joint]
            if model.jnt_type[joint] == _SLIDE:
                shift = shift + turned @ (axis * angles[joint])
                continue
            step = np.asarray(Rotation.from_rotvec(axis * angles[joint]).as_matrix())
            # x -> turned (step (x - anchor) + anchor) + shift.
            shift = turned @ (anchor - step @ anchor) + shift
            turned = turned @ step
        moved.append((turned, shift))
    return moved


def _apply(displacement: tuple[Floats, Floats], point: Floats) -> Floats:
    return np.asarray(displacement[0] @ point + displacement[1])


def _screen(point: Floats) -> tuple[float, float]:
    """Projection from the front and above; the robot's left is on the right of the drawing."""
    x, y, z = (float(value) for value in point)
    return round(y - 0.45 * x, 5), round(z - 0.3 * x, 5)
