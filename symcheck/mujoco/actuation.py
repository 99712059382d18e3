"""The images of tendons and actuators, determined by the elements that they act on.

An actuator's image drives the image of its joint (or tendon, or site). The sign of its control is the sign of the
joint's coordinate, times the signs of both gears. Actuators are numbered in their own order, which may differ from that
of the joints.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from symcheck.array_types import Floats, Ints
from symcheck.mujoco.elements import name_of, title
from symcheck.mujoco.images import Pairing
from symcheck.mujoco.names import are_mirrored

_JOINT, _IN_PARENT, _TENDON, _SITE, _BODY = 0, 1, 3, 4, 5  # mjtTrn
_FREE, _BALL = 0, 1  # mjtJoint
_WRAP_JOINT, _WRAP_PULLEY, _WRAP_SITE = 1, 2, 3  # mjtWrap


def pair_tendons(model: Any, pairing: Pairing) -> None:
    """Fill in the images of tendons.

    Args:
        model: a `mujoco.MjModel`.
        pairing: the pairing of bodies and joints; tendons, their signs and unpaired elements are added.
    """
    pairing.tendons = np.full(model.ntendon, -1)
    pairing.tendon_signs = np.ones(model.ntendon, dtype=np.int64)
    for tendon in range(model.ntendon):
        wanted = path_image(model, pairing, tendon)
        for other in _by_name(model, "tendon", tendon, range(model.ntendon)):
            # If the path has no image, no tendon is searched for.
            if wanted is not None and (sign := _same_path(wanted, path_of(model, other))):
                pairing.tendons[tendon], pairing.tendon_signs[tendon] = other, sign
                break
        else:
            if wanted is not None:  # otherwise the element on its path is reported instead
                pairing.unpaired.append(
                    f"{title(model, 'tendon', tendon)}: no tendon connects the images of its joints or sites"
                )


def _by_name(model: Any, section: str, index: int, candidates: Iterable[int]) -> list[int]:
    """Candidates, with those whose name indicates the mirror image first."""
    name = name_of(model, section, index)
    return sorted(candidates, key=lambda other: not are_mirrored(name, name_of(model, section, other)))


def path_of(model: Any, tendon: int) -> dict[tuple[int, int], float]:
    """The path of a tendon: {(kind, element): coefficient of a joint, divisor of a pulley, otherwise 1}.

    Pulleys are not elements of the model; they are numbered -1, -2, ... along the tendon.
    """
    # A tendon's path is a range of rows in the wrap arrays.
    first = int(model.tendon_adr[tendon])
    steps = range(first, first + int(model.tendon_num[tendon]))
    kinds = [(int(model.wrap_type[i]), int(model.wrap_objid[i]), float(model.wrap_prm[i])) for i in steps]
    # The parameters of other elements are not part of the path.
    numbered = (_WRAP_JOINT, _WRAP_PULLEY)
    path: dict[tuple[int, int], float] = {}
    for kind, element, number in kinds:
        place = -1 - sum(before == _WRAP_PULLEY for before, _ in path) if kind == _WRAP_PULLEY else element
        path[kind, place] = number if kind in numbered else 1.0
    return path


def path_image(model: Any, pairing: Pairing, tendon: int) -> dict[tuple[int, int], float] | None:
    """The path of the image of a tendon, as in `path_of`; None if one of its elements has no image."""
    image = {}
    for (kind, element), coefficient in path_of(model, tendon).items():
        if kind == _WRAP_JOINT:
            other, sign = int(pairing.joints[element]), int(pairing.joint_signs[element])
        elif kind == _WRAP_SITE:
            other, sign = site_image(model, pairing, element), 1
        elif kind == _WRAP_PULLEY:
            # A pulley belongs to no body: it is its own image.
            other, sign = element, 1
        else:
            other, sign = int(pairing.geoms[element]), 1
        if other < 0 and kind != _WRAP_PULLEY:
            return None
        image[kind, other] = sign * coefficient
    return image


def _same_path(wanted: dict[tuple[int, int], float], path: dict[tuple[int, int], float]) -> int:
    """+1 or -1 if two paths run over the same elements with coefficients of equal or opposite signs, else 0."""
    if set(wanted) != set(path):
        return 0
    # One sign must fit the whole path.
    signs = {int(np.sign(wanted[key] * path[key])) for key in wanted}
    return signs.pop() if len(signs) == 1 else 0


def site_image(model: Any, pairing: Pairing, site: int) -> int:
    """The site nearest to the image of a site, on the image of its body; -1 if that body has none.

    Args:
        model: a `mujoco.MjModel`.
        pairing: the pairing of bodies.
        site: the index of the site.

    Returns: The index of the image.
    """
    body = int(pairing.bodies[model.site_bodyid[site]])
    # Compare only sites on the image of the body: other sites may be nearer by coincidence.
    candidates = [i for i in range(model.nsite) if model.site_bodyid[i] == body]
    if not candidates:
        return -1
    moved = pairing.isometry.point(pairing.reference.site_position[site])
    distances = [float(np.linalg.norm(moved - pairing.reference.site_position[i])) for i in candidates]
    return candidates[int(np.argmin(distances))]


def pair_actuators(model: Any, pairing: Pairing) -> None:
    """Fill in the images of actuators and the signs of their controls.

    Args:
        model: a `mujoco.MjModel`.
        pairing: the pairing of bodies, joints and tendons; actuators, their signs and unpaired elements are added.
    """
    pairing.actuators = np.full(model.nu, -1)
    pairing.actuator_signs = np.ones(model.nu, dtype=np.int64)
    taken: set[int] = set()
    for actuator in range(model.nu):
        # Each actuator is the image of one other.
        candidates = [i for i in range(model.nu) if i not in taken and _drives_image(model, pairing, actuator, i)]
        # Take the most similar one first: several may drive the same joint.
        candidates = sorted(candidates, key=lambda other: _unlike(model, actuator, other))
        counterpart = _first_with_sign(model, pairing, actuator, candidates)
        if counterpart is None:
            if _target_image(model, pairing, actuator) >= 0:  # otherwise the target is reported instead
                pairing.unpaired.append(
                    f"{title(model, 'actuator', actuator)}: no actuator acts on the image of its target"
                )
            continue
        pairing.actuators[actuator], pairing.actuator_signs[actuator] = counterpart
        taken.add(counterpart[0])


def _first_with_sign(model: Any, pairing: Pairing, actuator: int, candidates: list[int]) -> tuple[int, int] | None:
    for other in candidates:
        if sign := _control_sign(model, pairing, actuator, other):
            return other, sign
    return None


def _drives_image(model: Any, pairing: Pairing, actuator: int, other: int) -> bool:
    if model.actuator_trntype[actuator] != model.actuator_trntype[other]:
        return False
    return _target_image(model, pairing, actuator) == int(model.actuator_trnid[other, 0])


def _target_image(model: Any, pairing: Pairing, actuator: int) -> int:
    """The image of an actuator's target; -1 if the target has none."""
    kind, target = int(model.actuator_trntype[actuator]), int(model.actuator_trnid[actuator, 0])
    images: dict[int, Ints] = {
        _JOINT: pairing.joints,
        _IN_PARENT: pairing.joints,
        _TENDON: pairing.tendons,
        _BODY: pairing.bodies,
    }
    return int(images[kind][target]) if kind in images else site_image(model, pairing, target)


def _unlike(model: Any, actuator: int, other: int) -> tuple[float, bool]:
    """The dissimilarity of two actuators on the same joint: a motor and a spring are not a pair."""
    kinds = ("actuator_gaintype", "actuator_biastype", "actuator_dyntype")
    # 1e9: a different type outweighs any difference of gains.
    differing = sum(int(getattr(model, kind)[actuator] != getattr(model, kind)[other]) for kind in kinds)
    numbers = ("actuator_gainprm", "actuator_biasprm")
    gaps = sum(float(np.abs(getattr(model, key)[actuator] - getattr(model, key)[other]).sum()) for key in numbers)
    named = are_mirrored(name_of(model, "actuator", actuator), name_of(model, "actuator", other))
    return differing * 1e9 + gaps, not named


def _control_sign(model: Any, pairing: Pairing, actuator: int, other: int) -> int:
    """The sign of the image control: 0 if forces point in different directions."""
    kind, target = int(model.actuator_trntype[actuator]), int(model.actuator_trnid[actuator, 0])
    gear, image_gear = model.actuator_gear[actuator], model.actuator_gear[other]
    # For forces in space the direction decides; for joints and tendons, the signs of their coordinates.
    wrenches = wrench_image(model, pairing, actuator, other)
    if wrenches is not None:
        return _wrench_sign(*wrenches)
    if kind in (_JOINT, _IN_PARENT):
        # The gear's sign turns a positive control into a negative force.
        return int(pairing.joint_signs[target] * np.sign(gear[0]) * np.sign(image_gear[0]))
    if kind == _TENDON:
        return int(pairing.tendon_signs[target] * np.sign(gear[0]) * np.sign(image_gear[0]))
    return 1


def wrench_image(model: Any, pairing: Pairing, actuator: int, other: int) -> tuple[Floats, Floats] | None:
    """The mirrored wrench of a unit of control, and the wrench of a unit of control of another actuator.

    Args:
        model: a `mujoco.MjModel`.
        pairing: the pairing of its bodies.
        actuator: an actuator on a site, or on a free or ball joint.
        other: an actuator of the same kind.

    Returns:
        Two times force and torque along world axes, shape (6,), in the reference configuration; None for actuators that
        drive a single coordinate.
    """
    source, target = _wrench(model, pairing, actuator), _wrench(model, pairing, other)
    if source is None or target is None:
        return None
    # Forces are polar vectors, torques axial ones: (6,) each.
    return np.concatenate([pairing.isometry.polar(source[0]), pairing.isometry.axial(source[1])]), np.concatenate(
        target
    )


def _wrench(model: Any, pairing: Pairing, actuator: int) -> tuple[Floats, Floats] | None:
    kind, target = int(model.actuator_trntype[actuator]), int(model.actuator_trnid[actuator, 0])
    gear = np.asarray(model.actuator_gear[actuator])
    if kind == _SITE:
        turned = pairing.reference.site_rotation[target]
        # A site's gear is in the site's frame.
        return turned @ gear[:3], turned @ gear[3:]
    if kind not in (_JOINT, _IN_PARENT) or int(model.jnt_type[target]) not in (_FREE, _BALL):
        return None
    turned = pairing.reference.body_rotation[int(model.jnt_bodyid[target])]
    # A ball joint has torques only, in the body's frame.
    if int(model.jnt_type[target]) == _BALL:
        return np.zeros(3), turned @ gear[:3]
    # A free joint's force is along world axes, its torque along the body's.
    return gear[:3], turned @ gear[3:]


def _wrench_sign(image: Floats, actual: Floats) -> int:
    product = float(image @ actual)
    lengths = float(np.linalg.norm(image) * np.linalg.norm(actual))
    # Parallel up to a cosine of 0.9, as for joint axes; smaller deviations are reported as differences.
    return int(np.sign(product)) if lengths and abs(product) > 0.9 * lengths else 0
