"""The terms that a layout may name, and the arguments of each; any other argument is rejected.

| terms | are | transform as |
|---|---|---|
| `base_lin_vel`, `gravity` | polar vectors in the frame of the base | N |
| `base_ang_vel` | an axial vector in the frame of the base | det(M) N |
| `vector`, `axial` | a polar and an axial vector along world axes | M, det(M) M |
| `scalar`, `pseudoscalar` | one number | 1, det(M) |
| `command` | forward, sideways and turning speed in the frame of the base | N, det(M) N |
| `joint_pos`, `joint_vel`, `joint_torque` | one number per joint | the image joint, with its sign |
| `per_joint` | one number per joint, without a sign unless `sign = true` | the image joint |
| `last_action` | the action of the previous step | as the action |
| `contacts`, `phase` | one number per foot, for every one of `parts` | the image foot |
| `clock` | sine and cosine of one gait clock | -1 if `shift = "half"` |
| `scan` | heights on a grid around the base | the image point |
| `quat`, `rot6d`, `rotation`, `euler_xyz` | the orientation of the base | R -> M R N^T |
| `image` | a picture | its axes, reversed |
| `point` | positions of bodies along world axes | M, the image body |
| `constant` | `size` invariant numbers | 1 |

N is the isometry in the frame of the base: it is M if the base is not rotated in the file.
"""

from __future__ import annotations

from dataclasses import dataclass

_JOINTS = ("order",)
_FEET = ("feet", "parts")


@dataclass(frozen=True)
class TermKind:
    """The arguments of one kind of term.

    Attributes:
        arguments: the names of its arguments, besides `term` and `history`.
        required: the required arguments.
    """

    arguments: tuple[str, ...] = ()
    required: tuple[str, ...] = ()


TERMS: dict[str, TermKind] = {
    "base_lin_vel": TermKind(),
    "base_ang_vel": TermKind(),
    "gravity": TermKind(),
    "vector": TermKind(),
    "axial": TermKind(),
    "scalar": TermKind(),
    "pseudoscalar": TermKind(),
    "command": TermKind(),
    "joint_pos": TermKind(_JOINTS),
    "joint_vel": TermKind(_JOINTS),
    "joint_torque": TermKind(_JOINTS),
    "per_joint": TermKind((*_JOINTS, "sign")),
    "last_action": TermKind(_JOINTS),
    "contacts": TermKind(_FEET),
    "phase": TermKind(_FEET),
    "clock": TermKind(("shift",), ("shift",)),
    "scan": TermKind(("rows", "cols", "order", "origin"), ("rows", "cols")),
    "quat": TermKind(("order",)),
    "rot6d": TermKind(),
    "rotation": TermKind(),
    "euler_xyz": TermKind(),
    "image": TermKind(("shape", "axes"), ("shape",)),
    "point": TermKind(("body",), ("body",)),
    "constant": TermKind(("size",), ("size",)),
}
JOINT_TERMS = ("joint_pos", "joint_vel", "joint_torque", "per_joint", "last_action")
"""Terms with one number per joint, in a given order."""
