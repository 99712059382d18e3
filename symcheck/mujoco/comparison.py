"""Compares every parameter of a model with that of its image, without a simulation.

An isometry is a symmetry of the dynamics if it maps every parameter that the simulator reads to the parameter of the
counterpart: masses and inertias as tensors, ranges with the sign of their coordinate, positions and axes by M. Every
difference is a finding with both elements, both values, and the size of the difference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from symcheck.array_types import Floats
from symcheck.mujoco.actuation import path_image, path_of, site_image, wrench_image
from symcheck.mujoco.constraints import compare_constraints
from symcheck.mujoco.differences import Difference, difference
from symcheck.mujoco.elements import title
from symcheck.mujoco.images import Pairing
from symcheck.mujoco.isometry import ROUNDING

_PLANE, _HFIELD, _SPHERE, _CAPSULE, _ELLIPSOID, _CYLINDER, _BOX, _MESH = range(8)  # mjtGeom
_PGS = 0  # mjtSolver
_PLACES = ("centre of mass", "anchor", "position", "height")  # in metres, relative to an arbitrary origin
_WRAP_JOINT, _WRAP_SITE, _WRAP_GEOMS = 1, 3, (4, 5)  # mjtWrap
_JOINT_DRIVES, _TENDON_DRIVE, _SITE_DRIVES = (0, 1), 3, (2, 4)  # mjtTrn; slider-crank and site, both on sites
_AFFINE = 1  # mjtBias
_SITE_OBJECT = 6  # mjtObj
_JOINT_NUMBERS = (
    ("stiffness", "jnt_stiffness"),
    ("stiffness polynomial", "jnt_stiffnesspoly"),
    ("margin", "jnt_margin"),
    ("solref of the limit", "jnt_solref"),
    ("solimp of the limit", "jnt_solimp"),
    ("limited", "jnt_limited"),
    ("gravity compensation", "jnt_actgravcomp"),
    ("velocity limit", "jnt_velocity"),
)
_DOF_NUMBERS = (
    ("damping", "dof_damping"),
    ("damping polynomial", "dof_dampingpoly"),
    ("armature", "dof_armature"),
    ("friction loss", "dof_frictionloss"),
    ("solref of the friction", "dof_solref"),
    ("solimp of the friction", "dof_solimp"),
)
_GEOM_NUMBERS = (
    ("friction", "geom_friction"),
    ("contype", "geom_contype"),
    ("conaffinity", "geom_conaffinity"),
    ("condim", "geom_condim"),
    ("priority", "geom_priority"),
    ("margin", "geom_margin"),
    ("gap", "geom_gap"),
    ("solref", "geom_solref"),
    ("solimp", "geom_solimp"),
    ("solmix", "geom_solmix"),
    ("fluid coefficients", "geom_fluid"),
)
_TENDON_NUMBERS = (
    ("stiffness", "tendon_stiffness"),
    ("damping", "tendon_damping"),
    ("friction loss", "tendon_frictionloss"),
    ("armature", "tendon_armature"),
    ("limited", "tendon_limited"),
    ("margin", "tendon_margin"),
)
_ACTUATOR_NUMBERS = (
    ("gain", "actuator_gainprm"),
    ("dynamics", "actuator_dynprm"),
    ("gain type", "actuator_gaintype"),
    ("bias type", "actuator_biastype"),
    ("dynamics type", "actuator_dyntype"),
    ("control limited", "actuator_ctrllimited"),
    ("force limited", "actuator_forcelimited"),
    ("activation limited", "actuator_actlimited"),
    ("armature", "actuator_armature"),
    ("damping", "actuator_damping"),
)


def compare(model: Any, pairing: Pairing) -> list[Difference]:
    """Compare every paired element with its image.

    Args:
        model: a `mujoco.MjModel`.
        pairing: the pairing of its elements.

    Returns:
        The differences, by kind of element; a reflection lists each pair once. Differences explained by rounding (1e-9
        of the larger value) are left out.
    """
    checks: tuple[Callable[[Any, Pairing], Iterator[Difference]], ...] = (_world, _bodies, _joints, _geoms, _tendons)
    others = (_actuators, _sites, compare_constraints)
    found = (item for check in (*checks, *others) for item in check(model, pairing))
    extent = pairing.reference.extent
    return [replace(item, scale=extent) if item.quantity in _PLACES else item for item in found]


def remarks(model: Any) -> list[str]:
    """Settings under which even a symmetric model is only approximately symmetric.

    Args:
        model: a `mujoco.MjModel`.

    Returns:
        Sentences.

    Example:
        >>> from symcheck.mujoco.loading import load_model
        >>> text = "<mujoco><option solver='PGS'/><worldbody/></mujoco>"
        >>> remarks(load_model(text).model)[0][:21]
        "option solver='PGS': "
    """
    texts = []
    if int(model.opt.solver) == _PGS:
        texts.append(
            "option solver='PGS': constraints are solved in sequence, in a different order for the image, so "
            f"{int(model.opt.iterations)} iterations leave a residual; the solver 'Newton' leaves none"
        )
    if hasattr(model, "document_order"):
        texts.append("collision shapes and meshes of a URDF are neither read nor compared")
    texts.extend(getattr(model, "left_out", ()))
    if model.na:
        texts.append(f"{int(model.na)} actuators have a state of their own (activation), which qpos and qvel leave out")
    if _HFIELD in model.geom_type:
        texts.append("height fields are not compared with their images")
    if getattr(model, "nflex", 0):  # since MuJoCo 3
        texts.append("flexible bodies are not compared with their images")
    if model.nmesh and any(touches(model, i) for i in range(model.ngeom) if model.geom_type[i] == _MESH):
        texts.append("meshes are compared by position, mass and inertia, not by shape")
    return texts


def _pairs(images: Any, pairing: Pairing) -> Iterator[tuple[int, int]]:
    """Elements and their images; for a reflection, only the first element of each pair."""
    for i, image in enumerate(images):
        # For a reflection, i -> j and j -> i compare the same numbers, so one of them is omitted.
        if image >= 0 and (pairing.isometry.order != 2 or i <= image or images[image] != i):
            yield i, int(image)


def _compare_numbers(
    model: Any, section: str, i: int, j: int, numbers: tuple[tuple[str, str], ...], row: tuple[int, int] | None = None
) -> Iterator[Difference]:
    """Compare parameters that must be equal."""
    first, second = row or (i, j)
    for quantity, key in numbers:
        # Older versions of MuJoCo lack some of the arrays.
        values = getattr(model, key, None)
        if values is not None:
            yield from difference(
                title(model, section, i), title(model, section, j), quantity, values[first], values[second]
            )


def _world(model: Any, pairing: Pairing) -> Iterator[Difference]:
    for quantity in ("gravity", "wind"):
        # Gravity and wind are polar vectors: their image must be themselves.
        value = np.array(getattr(model.opt, quantity))
        yield from difference("the world", "the world", quantity, pairing.isometry.polar(value), value)


def _bodies(model: Any, pairing: Pairing) -> Iterator[Difference]:
    reference, isometry = pairing.reference, pairing.isometry
    for i, j in _pairs(pairing.bodies, pairing):
        # Body 0 is the world, which has no mass.
        if i == 0:
            continue
        element, counterpart = title(model, "body", i), title(model, "body", j)
        yield from difference(element, counterpart, "mass", model.body_mass[i], model.body_mass[j])
        yield from difference(element, counterpart, "gravcomp", model.body_gravcomp[i], model.body_gravcomp[j])
        # Without mass there is no centre of mass.
        if not (model.body_mass[i] or model.body_mass[j]):
            continue
        moved = isometry.point(reference.centre[i])
        yield from difference(element, counterpart, "centre of mass", moved, reference.centre[j])
        # M I M^T, in world axes.
        turned = isometry.matrix @ reference.inertia[i] @ isometry.matrix.T
        yield from difference(element, counterpart, "inertia", _upper(turned), _upper(reference.inertia[j]))


def _upper(tensor: Floats) -> Floats:
    # Six numbers of a symmetric 3x3 matrix: xx, yy, zz, xy, xz, yz.
    return tensor[(0, 1, 2, 0, 0, 1), (0, 1, 2, 1, 2, 2)]


def _joints(model: Any, pairing: Pairing) -> Iterator[Difference]:
    for i, j in _pairs(pairing.joints, pairing):
        element, counterpart = title(model, "joint", i), title(model, "joint", j)
        yield from _compare_numbers(model, "joint", i, j, _JOINT_NUMBERS)
        dofs = int(model.jnt_dofadr[i]), int(model.jnt_dofadr[j])
        yield from _compare_numbers(model, "joint", i, j, _DOF_NUMBERS, dofs)
        # Free and ball joints have no axis, and a range without sign.
        if model.jnt_type[i] in (0, 1):
            yield from difference(element, counterpart, "range", model.jnt_range[i], model.jnt_range[j])
            continue
        yield from _compare_axes(model, pairing, i, j, element, counterpart)
        yield from _coordinates(model, pairing, i, j, element, counterpart)


def _compare_axes(model: Any, pairing: Pairing, i: int, j: int, element: str, counterpart: str) -> Iterator[Difference]:
    reference, isometry = pairing.reference, pairing.isometry
    sign = pairing.joint_signs[i]
    slide = model.jnt_type[i] == 2
    # The axis of a slide is a direction of motion (polar); that of a hinge is an axis of rotation (axial).
    axis = isometry.polar(reference.axis[i]) if slide else isometry.axial(reference.axis[i])
    yield from difference(element, counterpart, "axis", sign * axis, reference.axis[j])
    if slide:
        return
    # An anchor may lie anywhere on its axis: only the distance from the axis matters.
    offset = isometry.point(reference.anchor[i]) - reference.anchor[j]
    # The component of the offset perpendicular to the axis.
    beside = offset - (offset @ reference.axis[j]) * reference.axis[j]
    yield from difference(element, counterpart, "anchor", reference.anchor[j] + beside, reference.anchor[j])


def _coordinates(model: Any, pairing: Pairing, i: int, j: int, element: str, counterpart: str) -> Iterator[Difference]:
    """Compare parameters that depend on the sign of the joint's coordinate: range, and rest position of its spring."""
    sign = float(pairing.joint_signs[i])
    start, image_start = int(model.jnt_qposadr[i]), int(model.jnt_qposadr[j])
    # Coordinates of the image: q' = sign * q + shift, with equality in the reference configuration.
    shift = pairing.reference.qpos[image_start] - sign * pairing.reference.qpos[start]
    if model.jnt_limited[i] and model.jnt_limited[j]:
        # A negative sign exchanges the ends of a range, so they are sorted.
        moved = np.sort(sign * model.jnt_range[i] + shift)
        yield from difference(element, counterpart, "range", moved, model.jnt_range[j])
    if model.jnt_stiffness[i] or model.jnt_stiffness[j]:
        rest = sign * model.qpos_spring[start] + shift
        yield from difference(element, counterpart, "rest position of the spring", rest, model.qpos_spring[image_start])
    if model.jnt_actfrclimited[i] or model.jnt_actfrclimited[j]:
        # Forces are not shifted: a force of 0 maps to 0.
        forces = np.sort(sign * model.jnt_actfrcrange[i])
        yield from difference(element, counterpart, "range of the actuator force", forces, model.jnt_actfrcrange[j])


def _geoms(model: Any, pairing: Pairing) -> Iterator[Difference]:
    yield from _lone_geoms(model, pairing)
    unlike = _unlike_bodies(model, pairing)
    for i, j in _pairs(pairing.geoms, pairing):
        element, counterpart = title(model, "geom", i), title(model, "geom", j)
        # Geoms without contacts only affect cameras, or give a body its mass.
        if touches(model, i) or touches(model, j):
            yield from _compare_numbers(model, "geom", i, j, _GEOM_NUMBERS)
        if touches(model, i) or touches(model, j) or title(model, "body", int(model.geom_bodyid[i])) in unlike:
            yield from _shape(model, pairing, i, j, element, counterpart)


def touches(model: Any, geom: int) -> bool:
    """Whether a geom can collide with anything, or a tendon can wrap around it."""
    wrapped = model.wrap_objid[np.isin(model.wrap_type, _WRAP_GEOMS)]
    if geom in model.pair_geom1 or geom in model.pair_geom2 or geom in wrapped:
        return True
    contype, conaffinity = int(model.geom_contype[geom]), int(model.geom_conaffinity[geom])
    others = [k for k in range(model.ngeom) if model.geom_bodyid[k] != model.geom_bodyid[geom]]
    # MuJoCo's own rule: one of the two masks must meet the other's type.
    return any(contype & int(model.geom_conaffinity[k]) or conaffinity & int(model.geom_contype[k]) for k in others)


def _unlike_bodies(model: Any, pairing: Pairing) -> set[str]:
    """The bodies whose inertia differs from their image's; one of their geoms may be the cause."""
    return {name for item in _bodies(model, pairing) for name in (item.element, item.counterpart)}


def _lone_geoms(model: Any, pairing: Pairing) -> Iterator[Difference]:
    for geom, image in enumerate(pairing.geoms):
        if image < 0 and pairing.bodies[model.geom_bodyid[geom]] >= 0 and touches(model, geom):
            body = title(model, "body", int(pairing.bodies[model.geom_bodyid[geom]]))
            # The required position of its image.
            moved = pairing.isometry.point(pairing.reference.geom_position[geom])
            yield Difference(title(model, "geom", geom), body, "position", tuple(moved.tolist()), ())


def _shape(model: Any, pairing: Pairing, i: int, j: int, element: str, counterpart: str) -> Iterator[Difference]:
    reference, isometry = pairing.reference, pairing.isometry
    kind = int(model.geom_type[i])
    moved = isometry.point(reference.geom_position[i])
    place = reference.geom_position[j]
    # The z axis of the geom's frame: a plane's normal, the axis of capsules and cylinders.
    normal = reference.geom_rotation[j][:, 2]
    if kind == _PLANE:  # a plane is infinite: only its position along the normal matters
        yield from difference(element, counterpart, "height", (moved - place) @ normal, 0.0)
        yield from difference(element, counterpart, "normal", isometry.polar(reference.geom_rotation[i][:, 2]), normal)
        return
    yield from difference(element, counterpart, "position", moved, place)
    if kind not in (_MESH, _HFIELD):
        yield from difference(element, counterpart, "size", model.geom_size[i], model.geom_size[j])
    turned, image = isometry.matrix @ reference.geom_rotation[i], reference.geom_rotation[j]
    if kind in (_CAPSULE, _CYLINDER):
        # An axis has no orientation: use the nearer of the two directions.
        axis = turned[:, 2] * (1 if turned[:, 2] @ normal >= 0 else -1)
        yield from difference(element, counterpart, "axis", axis, normal)
    if kind in (_BOX, _ELLIPSOID) and not _same_box(turned, image, model.geom_size[i]):
        yield from difference(element, counterpart, "orientation", turned, image)


def _same_box(turned: Floats, image: Floats, size: Floats) -> bool:
    """Whether two boxes coincide: every axis of one is an axis of the other, with the same length."""
    # cosines[i, j]: whether axis i of one is parallel to axis j of the other, up to sign.
    cosines = np.abs(turned.T @ image) > 1 - ROUNDING
    equal = np.abs(size[:, None] - size[None, :]) <= ROUNDING
    return bool((cosines & equal).any(axis=1).all())


def _tendons(model: Any, pairing: Pairing) -> Iterator[Difference]:
    for i, j in _pairs(pairing.tendons, pairing):
        yield from _compare_numbers(model, "tendon", i, j, _TENDON_NUMBERS)
        element, counterpart, sign = (
            title(model, "tendon", i),
            title(model, "tendon", j),
            float(pairing.tendon_signs[i]),
        )
        image, path = path_image(model, pairing, i) or {}, path_of(model, j)
        # In the order of the image's path.
        expected, actual = [sign * image[key] for key in path], list(path.values())
        yield from difference(element, counterpart, "coefficients", expected, actual)
        # Lengths are shifted in the same way as coordinates.
        shift = _joint_length(model, pairing, j) - sign * _joint_length(model, pairing, i)
        if model.tendon_limited[i] and model.tendon_limited[j]:
            moved = np.sort(sign * model.tendon_range[i] + shift)
            yield from difference(element, counterpart, "range", moved, model.tendon_range[j])
        if model.tendon_stiffness[i] or model.tendon_stiffness[j]:
            rest = np.sort(sign * model.tendon_lengthspring[i] + shift)
            yield from difference(element, counterpart, "rest length of the spring", rest, model.tendon_lengthspring[j])


def _joint_length(model: Any, pairing: Pairing, tendon: int) -> float:
    """The length that a tendon has from joint coordinates in the reference configuration; 0 for one over sites."""
    joints = {element: number for (kind, element), number in path_of(model, tendon).items() if kind == _WRAP_JOINT}
    return float(sum(number * pairing.reference.qpos[model.jnt_qposadr[joint]] for joint, number in joints.items()))


def _actuators(model: Any, pairing: Pairing) -> Iterator[Difference]:
    for i, j in _pairs(pairing.actuators, pairing):
        element, counterpart = title(model, "actuator", i), title(model, "actuator", j)
        sign = float(pairing.actuator_signs[i])
        yield from _compare_numbers(model, "actuator", i, j, _ACTUATOR_NUMBERS)
        bias = np.array(model.actuator_biasprm[i])
        # The constant force; the other terms are multiplied by length and velocity, which carry the sign.
        bias[0] = sign * bias[0] - _length_shift(model, pairing, i, j, sign) * bias[1] + 0.0
        yield from difference(element, counterpart, "bias", bias, model.actuator_biasprm[j])
        wrenches = wrench_image(model, pairing, i, j)
        if wrenches is not None:
            yield from difference(element, counterpart, "force and torque", sign * wrenches[0], wrenches[1])
        elif model.actuator_trntype[i] in (0, 1, 3):
            # Joints and tendons: magnitudes only, because the sign of the gear is part of the control's sign.
            yield from difference(
                element, counterpart, "gear", abs(model.actuator_gear[i, 0]), abs(model.actuator_gear[j, 0])
            )
        for quantity, limited, key in _RANGES:
            if getattr(model, limited)[i] and getattr(model, limited)[j]:
                moved = np.sort(sign * getattr(model, key)[i])
                yield from difference(element, counterpart, quantity, moved, getattr(model, key)[j])


def _length_shift(model: Any, pairing: Pairing, i: int, j: int, sign: float) -> float:
    """The difference between the image's length and the signed length: joints may have different references."""
    if int(model.actuator_biastype[i]) != _AFFINE or model.actuator_trntype[i] not in (*_JOINT_DRIVES, _TENDON_DRIVE):
        return 0.0
    lengths = [float(model.actuator_gear[k, 0]) * _driven_length(model, pairing, k) for k in (i, j)]
    return lengths[1] - sign * lengths[0]


def _driven_length(model: Any, pairing: Pairing, actuator: int) -> float:
    """The length, in the reference configuration, of the tendon or joint that an actuator drives; 0 for balls."""
    driven = int(model.actuator_trnid[actuator, 0])
    if model.actuator_trntype[actuator] == _TENDON_DRIVE:
        return _joint_length(model, pairing, driven)
    return float(pairing.reference.qpos[model.jnt_qposadr[driven]]) if model.jnt_type[driven] in (2, 3) else 0.0


_RANGES = (
    ("control range", "actuator_ctrllimited", "actuator_ctrlrange"),
    ("force range", "actuator_forcelimited", "actuator_forcerange"),
    ("activation range", "actuator_actlimited", "actuator_actrange"),
)


def _sites(model: Any, pairing: Pairing) -> Iterator[Difference]:
    """Where forces act: the sites that actuators, tendons and equalities use."""
    # Other sites are markers or sensors, without forces.
    driven = {int(model.actuator_trnid[i, 0]) for i in range(model.nu) if model.actuator_trntype[i] in _SITE_DRIVES}
    wrapped = {int(model.wrap_objid[i]) for i in range(model.nwrap) if model.wrap_type[i] == _WRAP_SITE}
    tied = {
        int(site)
        for i in range(model.neq)
        if model.eq_objtype[i] == _SITE_OBJECT
        for site in (model.eq_obj1id[i], model.eq_obj2id[i])
    }
    images = np.full(model.nsite, -1)
    for site in driven | wrapped | tied:
        images[site] = site_image(model, pairing, site)
    positions = pairing.reference.site_position
    for i, j in _pairs(images, pairing):
        element, counterpart = title(model, "site", i), title(model, "site", j)
        yield from difference(element, counterpart, "position", pairing.isometry.point(positions[i]), positions[j])
