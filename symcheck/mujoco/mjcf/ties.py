"""Reads the tendons, equalities, contact pairs and excluded contacts of an MJCF file."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from symcheck.array_types import Floats
from symcheck.errors import TargetError
from symcheck.mujoco.isometry import matrix_of, quaternion_of
from symcheck.mujoco.mjcf.document import Attributes, Document, needs_simulator
from symcheck.mujoco.mjcf.drives import Named
from symcheck.mujoco.mjcf.poses import Pose

_CONNECT, _WELD, _JOINT, _TENDON = 0, 1, 2, 3  # mjtEq
_BODY_OBJECT, _SITE_OBJECT = 1, 6  # mjtObj
_WRAP_JOINT, _WRAP_PULLEY, _WRAP_SITE, _WRAP_SPHERE, _WRAP_CYLINDER = 1, 2, 3, 4, 5  # mjtWrap
_CYLINDER = 5  # mjtGeom
SOLREF, SOLIMP = (0.02, 1.0), (0.9, 0.95, 0.001, 0.5, 2.0)
"""The solver's defaults for constraints and contacts."""


class Placed(Named, Protocol):
    """A lookup that also gives the poses of bodies and the shapes of geoms."""

    poses: list[Pose]
    geom_type: Any
    qpos_spring: Floats
    jnt_qposadr: Any


def read_tendons(document: Document, named: Placed) -> dict[str, Any]:
    """The arrays of tendons and of their paths.

    Args:
        document: the file.
        named: looks up joints, sites and geoms.

    Returns:
        Arrays by their name in `mujoco.MjModel`; sets the names of tendons.

    Raises:
        TargetError: a tendon refers to an element that does not exist.
    """
    elements = [child for child in document.sections("tendon") if child.tag in ("fixed", "spatial")]
    of = [document.attributes(element, tag="tendon") for element in elements]
    named.names["tendon"] = [attributes.text("name") for attributes in of]
    paths = [[_step(step, document, named) for step in element] for element in elements]
    lengths = np.array([len(path) for path in paths], dtype=int)
    steps = np.array([step for path in paths for step in path]).reshape(-1, 3)
    ranges = np.array([a.row("range", (0.0, 0.0)) for a in of]).reshape(-1, 2)
    arrays: dict[str, Any] = {
        "ntendon": len(of),
        "nwrap": len(steps),
        "tendon_adr": np.cumsum(lengths) - lengths,
        "tendon_num": lengths,
        "wrap_type": steps[:, 0].astype(int),
        "wrap_objid": steps[:, 1].astype(int),
        "wrap_prm": steps[:, 2],
        "tendon_range": ranges,
        "tendon_limited": np.array(
            [a.is_limited("limited", row, named.autolimits) for a, row in zip(of, ranges, strict=True)], dtype=int
        ),
        "tendon_lengthspring": np.array([_spring(a, path, named) for a, path in zip(of, paths, strict=True)]).reshape(
            -1, 2
        ),
    }
    for key in ("stiffness", "damping", "frictionloss", "armature", "margin"):
        arrays[f"tendon_{key}"] = np.array([a.number(key) for a in of])
    return arrays


def _spring(attributes: Attributes, path: list[tuple[int, int, float]], named: Placed) -> Floats:
    """The lengths between which the spring is slack; by default its length where the springs of its joints are slack.

    A tendon over sites keeps -1, which means its length in that configuration.
    """
    given = attributes.numbers("springlength", (-1.0,))
    if given[0] == -1 and path and path[0][0] == _WRAP_JOINT:
        at_rest = sum(number * named.qpos_spring[named.jnt_qposadr[joint]] for _, joint, number in path)
        return np.full(2, float(at_rest))
    return np.array([given[0], given[-1]])


def _step(element: Any, document: Document, named: Placed) -> tuple[int, int, float]:
    where = f"{document.label}: tendon"
    attributes = Attributes(((element.tag, dict(element.attrib)),), where)
    if element.tag == "joint":
        return _WRAP_JOINT, named.number_of("joint", attributes.text("joint"), where), attributes.number("coef", 1.0)
    if element.tag == "site":
        return _WRAP_SITE, named.number_of("site", attributes.text("site"), where), 0.0
    if element.tag == "pulley":
        return _WRAP_PULLEY, -1, attributes.number("divisor", 1.0)
    if element.tag == "geom":
        geom = named.number_of("geom", attributes.text("geom"), where)
        kind = _WRAP_CYLINDER if named.geom_type[geom] == _CYLINDER else _WRAP_SPHERE
        side = attributes.text("sidesite")
        return kind, geom, float(named.number_of("site", side, where)) if side else -1.0
    raise TargetError(f"a tendon can contain joints, sites, geoms and pulleys, but not <{element.tag}>.", where=where)


def read_equalities(document: Document, named: Placed) -> dict[str, Any]:
    """The arrays of equality constraints.

    Args:
        document: the file.
        named: looks up bodies, joints, sites and tendons.

    Returns:
        Arrays by their name in `mujoco.MjModel`.

    Raises:
        TargetError: an element does not exist, or the kind of constraint is not supported.
    """
    kinds = {"connect": _CONNECT, "weld": _WELD, "joint": _JOINT, "tendon": _TENDON}
    elements = document.sections("equality")
    unread = sorted({element.tag for element in elements} - set(kinds))
    if unread:
        raise needs_simulator(f"<{'>, <'.join(unread)}>", document.label)
    of = [document.attributes(element, tag="equality") for element in elements]
    ties = [_tie(kinds[element.tag], a, named) for element, a in zip(elements, of, strict=True)]
    return {
        "neq": len(of),
        "eq_type": np.array([kinds[element.tag] for element in elements], dtype=int),
        "eq_objtype": np.array([tie[0] for tie in ties], dtype=int),
        "eq_obj1id": np.array([tie[1] for tie in ties], dtype=int),
        "eq_obj2id": np.array([tie[2] for tie in ties], dtype=int),
        "eq_data": np.array([tie[3] for tie in ties]).reshape(-1, 11),
        "eq_active0": np.array([a.text("active", "true") == "true" for a in of], dtype=int),
        "eq_solref": np.array([a.row("solref", SOLREF) for a in of]).reshape(-1, 2),
        "eq_solimp": np.array([a.row("solimp", SOLIMP) for a in of]).reshape(-1, 5),
    }


def _tie(kind: int, attributes: Attributes, named: Placed) -> tuple[int, int, int, Floats]:
    """Object type, first and second element, and the parameters of the constraint."""
    data = np.zeros(11)
    section = {_JOINT: "joint", _TENDON: "tendon"}.get(kind, "site" if "site1" in attributes else "body")
    names = [attributes.text(f"{section}{i}") for i in (1, 2)]
    # A single body is connected to the world; a single joint or tendon to a constant.
    first = named.number_of(section, names[0], attributes.where)
    alone = 0 if section == "body" else -1
    second = named.number_of(section, names[1], attributes.where) if names[1] else alone
    if kind in (_JOINT, _TENDON):
        data[:5] = attributes.row("polycoef", (0.0, 1.0, 0.0, 0.0, 0.0))
        return 0, first, second, data
    if kind == _WELD:
        data[10] = attributes.number("torquescale", 1.0)
    if section == "site":
        return _SITE_OBJECT, first, second, data
    here, there = named.poses[first], named.poses[second]
    anchor = attributes.triple("anchor")
    if kind == _CONNECT:
        data[:3], data[3:6] = anchor, _seen_from(there, here.position + here.rotation @ anchor)
        return _BODY_OBJECT, first, second, data
    _weld(data, attributes, here, there)
    return _BODY_OBJECT, first, second, data


def _weld(data: Floats, attributes: Attributes, here: Pose, there: Pose) -> None:
    """The anchor on the second body, then the pose of the second body in the first."""
    anchor, pose = attributes.triple("anchor"), attributes.row("relpose", (0, 1, 0, 0, 0, 0, 0))
    data[:3] = anchor
    if not pose[3:].any():
        # The relative pose in the file is the constraint.
        relative = here.rotation.T @ there.rotation
        data[3:6] = _seen_from(here, there.position + there.rotation @ anchor)
    else:
        relative = matrix_of(pose[3:])
        data[3:6] = pose[:3]
    data[6:10] = quaternion_of(relative)


def _seen_from(frame: Pose, point: Floats) -> Floats:
    return np.asarray(frame.rotation.T @ (point - frame.position))


def read_contacts(document: Document, named: Placed) -> dict[str, Any]:
    """The arrays of contact pairs and of excluded contacts.

    Args:
        document: the file.
        named: looks up bodies and geoms.

    Returns:
        Arrays by their name in `mujoco.MjModel`; pairs of geoms that were not read are left out.

    Raises:
        TargetError: a contact refers to an element that does not exist.
    """
    elements = document.sections("contact")
    pairs = [document.attributes(element) for element in elements if element.tag == "pair"]
    known = set(named.names["geom"])
    pairs = [pair for pair in pairs if {pair.text("geom1"), pair.text("geom2")} <= known]
    ends = np.array(
        [[named.number_of("geom", pair.text(f"geom{i}"), pair.where) for i in (1, 2)] for pair in pairs], dtype=int
    ).reshape(-1, 2)
    excluded = []
    for element in elements:
        if element.tag == "exclude":
            bodies = [named.number_of("body", element.get(f"body{i}", ""), document.label) for i in (1, 2)]
            # MuJoCo packs the two bodies into one number, the smaller one first.
            excluded.append((min(bodies) << 16) + max(bodies))
    return {
        "npair": len(pairs),
        "nexclude": len(excluded),
        "pair_geom1": ends[:, 0],
        "pair_geom2": ends[:, 1],
        "exclude_signature": np.array(excluded, dtype=int),
        "pair_friction": np.array([p.row("friction", (1, 1, 0.005, 0.0001, 0.0001)) for p in pairs]).reshape(-1, 5),
        "pair_dim": np.array([p.number("condim", 3) for p in pairs], dtype=int),
        "pair_margin": np.array([p.number("margin") for p in pairs]),
        "pair_gap": np.array([p.number("gap") for p in pairs]),
        "pair_solref": np.array([p.row("solref", SOLREF) for p in pairs]).reshape(-1, 2),
        "pair_solimp": np.array([p.row("solimp", SOLIMP) for p in pairs]).reshape(-1, 5),
    }
