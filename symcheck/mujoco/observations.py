"""Observations of a model, written as blocks: "qpos[2:]", "qvel", "cfrc_ext[1:]", "sin(qpos[1:])".

| block | is | transforms as |
|---|---|---|
| `qpos`, `qvel`, `qfrc_actuator`, `qfrc_constraint` | joint coordinates and forces | joints |
| `cos(qpos)`, `sin(qpos)` | of hinge angles | joints, the cosine without sign |
| `cinert`, `cvel`, `cfrc_ext` | one row per body, world included | bodies |
| `ctrl` | controls, or the last action | actuators |
| `joint_positions`, `joint_velocities` | of the joints that are not free, or of those named: `(a, b)` | joints |
| `point(a, b)` | world positions of the frames (or centres) of the bodies named | bodies |
| `vector`, `axial` | a velocity or force, an angular velocity or torque, along world axes | M, det(M) M |
| `base_vector`, `base_axial` | the same in the frame of the free body; gravity too | N, det(M) N |
| `command` | commanded forward, sideways and turning speed, in the frame of the free body | N, det(M) N |
| `constant(n)` | n invariant numbers | - |

A slice `[a:b]` after any block selects rows of the array (bodies for `cinert`, `cvel`, `cfrc_ext`). A block may be
given a name: "gravity: base_vector".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from symcheck.errors import SpecError, suggestion
from symcheck.mujoco import maps
from symcheck.mujoco.elements import name_of, title
from symcheck.mujoco.images import Pairing
from symcheck.mujoco.isometry import whole
from symcheck.mujoco.maps import Affine
from symcheck.symmetry.blocks import Block

_BLOCK = re.compile(
    r"(?P<function>sin|cos)?(?P<open>\()?(?P<name>[a-z_]+)(?:\((?P<of>[^()]*)\))?(?P<part>\[[-\d:]*\])?\)?"
)
_SLICE = re.compile(r"\[(-?\d*):(-?\d*)\]")
NAMES = (
    "qpos",
    "qvel",
    "qfrc_actuator",
    "qfrc_constraint",
    "cinert",
    "cvel",
    "cfrc_ext",
    "ctrl",
    "joint_positions",
    "joint_velocities",
    "point",
    "vector",
    "axial",
    "base_vector",
    "base_axial",
    "command",
    "constant",
)
_WITH_ARGUMENTS = ("joint_positions", "joint_velocities", "point", "constant")
_ROWS = {"cinert": 10, "cvel": 6, "cfrc_ext": 6}


@dataclass(frozen=True)
class ObservedBlock:
    """One block of an observation.

    Attributes:
        name: the name as written.
        map: how it transforms.
        labels: the names of its components, as many as there are.
    """

    name: str
    map: Affine
    labels: tuple[str, ...]

    def as_block(self) -> Block:
        """The block in the form that a `Symmetry` accepts."""
        return Block(self.name, [self.map.entry()], names=self.labels)


def control_labels(model: Any) -> tuple[str, ...]:
    """A name for every control: the actuator's, otherwise that of its joint, otherwise its number."""
    return _distinct([name_of(model, "actuator", i) or _driven_label(model, i) for i in range(model.nu)])


def _driven_label(model: Any, actuator: int) -> str:
    on_joint = int(model.actuator_trntype[actuator]) in (0, 1)  # mjTRN_JOINT, mjTRN_JOINTINPARENT
    joint = name_of(model, "joint", int(model.actuator_trnid[actuator, 0])) if on_joint else ""
    return joint or f"actuator {actuator}"


def _distinct(labels: Sequence[str]) -> tuple[str, ...]:
    """Labels, with a number appended to those that occur more than once."""
    # "#0" and "#1" distinguish equal labels.
    return tuple(f"{label} #{i}" if labels.count(label) > 1 else label for i, label in enumerate(labels))


def observed_blocks(model: Any, pairing: Pairing, written: Sequence[str]) -> list[ObservedBlock]:
    """The maps of the blocks of an observation.

    Args:
        model: a `mujoco.MjModel`.
        pairing: the pairing of its elements.
        written: blocks, as listed at the top of this module.

    Returns:
        The blocks, in order.

    Raises:
        SpecError: a block is unknown, or a part of a block is not mapped to itself.
    """
    blocks = [_read_block(model, pairing, text, f"observation[{i}]") for i, text in enumerate(written)]
    names = _distinct([block.name for block in blocks])
    return [replace(block, name=name) for block, name in zip(blocks, names, strict=True)]


def _read_block(model: Any, pairing: Pairing, text: str, where: str) -> ObservedBlock:
    # "name: block" gives the block a name; a colon inside brackets is a slice.
    name, colon, rest = (
        text.partition(":") if isinstance(text, str) and "[" not in text.split(":")[0] else (text, "", "")
    )
    block = _block(model, pairing, rest if colon else text, where)
    return replace(block, name=name.strip()) if colon else block


def _block(model: Any, pairing: Pairing, text: str, where: str) -> ObservedBlock:
    match = _BLOCK.fullmatch(text.replace(" ", "")) if isinstance(text, str) else None
    if match is None or match["name"] not in NAMES:
        given = match["name"] if match else str(text)
        raise SpecError(
            f"expected a block of the observation, got {text!r}.", where=where, remedy=suggestion(given, NAMES)
        )
    name = match["name"]
    if match["of"] is not None and name not in _WITH_ARGUMENTS:
        raise SpecError(
            f"{name} takes no arguments in brackets, but {match['of']!r} was given.",
            where=where,
            remedy=(
                f"{', '.join(_WITH_ARGUMENTS[:-1])} take names, and constant takes a number. A slice is written [a:b]."
            ),
        )
    full, labels = _whole(model, pairing, name, match["of"] or "", where)
    if match["function"]:
        if name not in ("qpos", "joint_positions"):
            raise SpecError(f"expected an angle inside {match['function']}, got {name!r}.", where=where)
        full = _of_angles(full, match["function"])
        labels = tuple(f"{match['function']}({label})" for label in labels)
    part = _part(match["part"], where)
    # Arrays with several numbers per body are sliced by bodies.
    width = _ROWS.get(name, 1)
    rows = len(labels) // width
    first, last, _ = part.indices(rows)
    # From rows to components.
    span = slice(first * width, last * width)
    kept = maps.checked_part(full, span, text, lambda problem: SpecError(f"{problem}.", where=where))
    return ObservedBlock(text, kept, tuple(labels[span]))


def _part(text: str | None, where: str) -> slice:
    if not text:
        return slice(None)
    match = _SLICE.fullmatch(text)
    if match is None:
        raise SpecError(f"expected a slice such as [2:] or [:7], got {text}.", where=where)
    first, last = (int(bound) if bound else None for bound in match.groups())
    return slice(first, last)


def _of_angles(angles: Affine, function: str) -> Affine:
    """The maps of cos(q), without the sign, and of sin(q), with it."""
    # cos(-q) = cos(q): the absolute value of each sign.
    matrix = np.abs(angles.matrix) if function == "cos" else angles.matrix
    return Affine(matrix, np.zeros(angles.dim))


def _whole(model: Any, pairing: Pairing, name: str, of: str, where: str) -> tuple[Affine, tuple[str, ...]]:
    match name:
        case "qpos":
            return maps.positions(model, pairing), position_labels(model)
        case "qvel" | "qfrc_actuator" | "qfrc_constraint":
            return maps.velocities(model, pairing), velocity_labels(model)
        case "joint_positions":
            return _of_joints(
                _without_free(model, maps.positions(model, pairing), position_labels(model), 7), of, where
            )
        case "joint_velocities":
            return _of_joints(
                _without_free(model, maps.velocities(model, pairing), velocity_labels(model), 6), of, where
            )
        case "ctrl":
            return maps.controls(model, pairing), control_labels(model)
        case "cinert":
            return _per_body_rows(model, pairing, maps.inertia_block(pairing), _INERTIA)
        case "cvel" | "cfrc_ext":
            return _per_body_rows(model, pairing, maps.spatial_block(pairing), _SPATIAL)
        case "point":
            return _points(model, pairing, of, where)
        case "constant":
            return _constant(of, where)
    return _vector(model, pairing, name, where)


_INERTIA = ("Ixx", "Iyy", "Izz", "Ixy", "Ixz", "Iyz", "mx", "my", "mz", "m")
_SPATIAL = ("rx", "ry", "rz", "x", "y", "z")


def _per_body_rows(model: Any, pairing: Pairing, block: Any, names: tuple[str, ...]) -> tuple[Affine, tuple[str, ...]]:
    # One label per body and number, in the order of the flattened array.
    labels = tuple(f"{_short(model, 'body', i)} {name}" for i in range(model.nbody) for name in names)
    return maps.per_body(model, pairing, block), labels


def _vector(model: Any, pairing: Pairing, name: str, where: str) -> tuple[Affine, tuple[str, ...]]:
    isometry = pairing.isometry
    if name in ("vector", "axial"):
        # Axial vectors carry the determinant.
        matrix = isometry.matrix if name == "vector" else isometry.determinant * isometry.matrix
        return maps.linear(matrix), ("x", "y", "z")
    local = maps.local(pairing, _base(model, where))
    if name == "base_vector":
        return maps.linear(local), ("x", "y", "z")
    if name == "base_axial":
        return maps.linear(isometry.determinant * local), ("x", "y", "z")
    # A velocity command (forward, sideways, turning): two components of a polar vector, one of an axial one.
    planar = maps.block_diagonal([maps.linear(local[:2, :2]), maps.linear(isometry.determinant * local[2:, 2:])])
    return planar, ("forward", "sideways", "turning")


def _base(model: Any, where: str) -> int:
    # mjJNT_FREE.
    free = [int(model.jnt_bodyid[j]) for j in range(model.njnt) if model.jnt_type[j] == 0]
    if not free:
        raise SpecError("the block needs the frame of a free body, but the model has no free body.", where=where)
    return free[0]


def _points(model: Any, pairing: Pairing, of: str, where: str) -> tuple[Affine, tuple[str, ...]]:
    names = [name for name in of.split(",") if name]
    known = {name_of(model, "body", i): i for i in range(model.nbody)}
    missing = [name for name in names if name not in known]
    if missing or not names:
        problem = f"names bodies that do not exist: {', '.join(missing)}" if missing else "names no body"
        raise SpecError(f"{problem}.", where=where, remedy="Write point(body, other_body).")
    bodies = [known[name] for name in names]
    images = [int(pairing.bodies[body]) for body in bodies]
    outside = [title(model, "body", image) for image in images if image not in bodies]
    if outside:
        raise SpecError(f"the block omits the images {', '.join(outside)}.", where=where)
    matrix, size = np.zeros((3 * len(bodies), 3 * len(bodies))), len(bodies)
    # Point i maps to the position of its image's body.
    for i, image in enumerate(images):
        j = bodies.index(image)
        matrix[3 * j : 3 * j + 3, 3 * i : 3 * i + 3] = pairing.isometry.matrix
    # These are points, not vectors: the isometry's fixed point adds an offset.
    offset = np.tile(whole(pairing.isometry.point(np.zeros(3))), size)
    return Affine(matrix, offset), tuple(f"{name} {axis}" for name in names for axis in "xyz")


def _constant(of: str, where: str) -> tuple[Affine, tuple[str, ...]]:
    if not of.isdigit():
        raise SpecError(f"expected constant(n) with a whole number, got {of!r}.", where=where)
    return maps.linear(np.eye(int(of))), tuple(map(str, range(int(of))))


def _without_free(model: Any, full: Affine, labels: tuple[str, ...], width: int) -> tuple[Affine, tuple[str, ...]]:
    """The coordinates of all joints except free joints, which come first."""
    adr = model.jnt_qposadr if width == 7 else model.jnt_dofadr
    # 7 numbers of qpos or 6 of qvel per free joint.
    free = {int(adr[j]) + k for j in range(model.njnt) if model.jnt_type[j] == 0 for k in range(width)}
    kept = [i for i in range(full.dim) if i not in free]
    return Affine(full.matrix[np.ix_(kept, kept)], full.offset[kept]), tuple(labels[i] for i in kept)


def _of_joints(every: tuple[Affine, tuple[str, ...]], of: str, where: str) -> tuple[Affine, tuple[str, ...]]:
    """The numbers of the named joints, in the given order; all joints if none is named."""
    full, labels = every
    if not of:
        return every
    names = of.split(",")
    unknown = [name for name in names if name not in labels]
    if unknown or len(set(names)) < len(names):
        problem = (
            f"names no joint with one degree of freedom: {', '.join(unknown)}" if unknown else "names a joint twice"
        )
        raise SpecError(f"{problem}.", where=where, remedy=suggestion(unknown[0] if unknown else of, labels))
    places = [labels.index(name) for name in names]
    rest = [i for i in range(full.dim) if i not in places]
    outside = [labels[i] for i in rest if full.matrix[np.ix_([i], places)].any()]
    if outside:
        raise SpecError(f"the block omits the images {', '.join(outside)}.", where=where, remedy="Name both sides.")
    return Affine(full.matrix[np.ix_(places, places)], full.offset[places]), tuple(names)


def position_labels(model: Any) -> tuple[str, ...]:
    """A name for every entry of `qpos`: the joint's, with x, y, z, qw, qx, qy, qz if it has several."""
    return _joint_labels(model, {0: ("x", "y", "z", "qw", "qx", "qy", "qz"), 1: ("qw", "qx", "qy", "qz")})


def velocity_labels(model: Any) -> tuple[str, ...]:
    """A name for every entry of `qvel`: the joint's, with x, y, z, wx, wy, wz if it has several."""
    return _joint_labels(model, {0: ("x", "y", "z", "wx", "wy", "wz"), 1: ("wx", "wy", "wz")})


def _joint_labels(model: Any, parts: dict[int, tuple[str, ...]]) -> tuple[str, ...]:
    labels: list[str] = []
    for joint in range(model.njnt):
        name = _short(model, "joint", joint)
        several = parts.get(int(model.jnt_type[joint]))
        labels += [f"{name} {part}" for part in several] if several else [name]
    return tuple(labels)


def _short(model: Any, section: str, index: int) -> str:
    return name_of(model, section, index) or f"{section} {index}"


def gymnasium_blocks(env: Any) -> tuple[str, ...] | None:
    """The blocks of the observations of Gymnasium's own MuJoCo environments; None for others.

    Args:
        env: an unwrapped environment.

    Returns:
        The blocks, from `observation_structure` if the environment has it.
    """
    own = _OWN_LAYOUTS.get(type(env).__name__.removesuffix("Env"))
    if own is not None:
        return own
    structure = getattr(env, "observation_structure", None)
    if not isinstance(structure, dict) or not set(structure) <= _STRUCTURE:
        return None
    # Positions along the ground, which Gymnasium leaves out by default.
    skipped = int(structure.get("skipped_qpos", 0))
    parts = {
        # In the order in which Gymnasium concatenates them.
        "qpos": f"qpos[{skipped}:]" if skipped else "qpos",
        "qvel": "qvel",
        "cinert": "cinert[1:]",
        "cvel": "cvel[1:]",
        "qfrc_actuator": "qfrc_actuator[6:]",
        "cfrc_ext": "cfrc_ext[1:]",
    }
    return tuple(block for key, block in parts.items() if structure.get(key))


_STRUCTURE = {
    "skipped_qpos",
    "qpos",
    "qvel",
    "cinert",
    "cvel",
    "qfrc_actuator",
    "cfrc_ext",
    "ten_length",
    "ten_velocity",
}
_OWN_LAYOUTS: dict[str, tuple[str, ...]] = {
    "InvertedDoublePendulum": ("qpos[:1]", "sin(qpos[1:])", "cos(qpos[1:])", "qvel", "qfrc_constraint[:1]"),
    "Reacher": ("cos(qpos[:2])", "sin(qpos[:2])", "qpos[2:]", "qvel[:2]", "vector[:2]"),
    "Pusher": ("qpos[:7]", "qvel[:7]", "point(tips_arm)", "point(object)", "point(goal)"),
}
