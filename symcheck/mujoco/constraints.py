"""Compares constraints with their images: equalities, contact pairs, excluded contacts.

The image of a constraint connects the images of the elements that the constraint connects. A missing image, or one with
other numbers, is a finding.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from symcheck.array_types import Floats
from symcheck.mujoco.actuation import site_image
from symcheck.mujoco.differences import Difference, difference
from symcheck.mujoco.elements import title
from symcheck.mujoco.images import Pairing
from symcheck.mujoco.isometry import matrix_of

_CONNECT, _WELD, _JOINT, _TENDON = 0, 1, 2, 3  # mjtEq
_SITE_OBJECT = 6  # mjtObj
_NUMBERS = (("solref", "eq_solref"), ("solimp", "eq_solimp"), ("active", "eq_active0"))
_PAIR_NUMBERS = (
    ("friction", "pair_friction"),
    ("condim", "pair_dim"),
    ("margin", "pair_margin"),
    ("gap", "pair_gap"),
    ("solref", "pair_solref"),
    ("solimp", "pair_solimp"),
)


def compare_constraints(model: Any, pairing: Pairing) -> Iterator[Difference]:
    """Compare equalities, contact pairs and excluded contacts with their images.

    Args:
        model: a `mujoco.MjModel`.
        pairing: the pairing of its elements.

    Yields:
        The differences.
    """
    yield from _equalities(model, pairing)
    yield from _contact_pairs(model, pairing)
    yield from _excludes(model, pairing)


def _equalities(model: Any, pairing: Pairing) -> Iterator[Difference]:
    nearest = [_nearest(model, pairing, i) for i in range(model.neq)]
    for i, j in enumerate(nearest):
        image = _image(model, pairing, i)
        if image is not None and j is None:
            # No constraint between the images exists: the constraint is missing on one side.
            yield _missing(f"equality {i} ({_names(model, i)})", f"an equality of {_words(model, i, image)}")
        elif j is not None and not (j < i and nearest[j] == i):  # the pair was already compared in the other direction
            yield from _equality(model, pairing, i, j)


def _nearest(model: Any, pairing: Pairing, i: int) -> int | None:
    """The equality between the images of the elements that equality i connects; among several, the most similar one."""
    image = _image(model, pairing, i)
    if image is None:
        return None
    candidates = [j for j in range(model.neq) if _same(_tie_of(model, j), image)]
    # If there are several constraints between the same two elements, the most similar one is the image.
    return min(candidates, key=lambda j: sum(gap.size for gap in _equality(model, pairing, i, j)), default=None)


def _equality(model: Any, pairing: Pairing, i: int, j: int) -> Iterator[Difference]:
    element, counterpart = f"equality {i} ({_names(model, i)})", f"equality {j} ({_names(model, j)})"
    for quantity, key in _NUMBERS:
        yield from difference(element, counterpart, quantity, getattr(model, key)[i], getattr(model, key)[j])
    kind = int(model.eq_type[i])
    if kind in (_JOINT, _TENDON):
        # Without a second joint or tendon, the length is fixed at c_0, and MuJoCo reads no other coefficient.
        read = 5 if int(model.eq_obj2id[i]) >= 0 else 1
        image = _polynomial(model, pairing, i)[:read]
        yield from difference(element, counterpart, "polynomial", image, model.eq_data[j][:read])
        return
    # A connection of A with B may be the image of one of B with A.
    turned_round = _tie_of(model, j) != _image(model, pairing, i)
    points = pairing.isometry.point(_points(model, pairing, i))
    actual = _points(model, pairing, j)
    yield from difference(element, counterpart, "anchors", points[::-1] if turned_round else points, actual)
    if kind == _WELD:
        # Orientation M H M^T, with H inverted if the two ends are exchanged.
        matrix, held = pairing.isometry.matrix, _weld_orientation(model, pairing, i)
        turned = matrix @ (held.T if turned_round else held) @ matrix.T
        there = _weld_orientation(model, pairing, j)
        yield from difference(element, counterpart, "relative orientation", turned, there)
        yield from difference(element, counterpart, "torque scale", model.eq_data[i][10], model.eq_data[j][10])


def _points(model: Any, pairing: Pairing, i: int) -> Floats:
    """The two points that a connection or weld joins, in the reference configuration, (2, 3)."""
    ends, data = (int(model.eq_obj1id[i]), int(model.eq_obj2id[i])), model.eq_data[i]
    reference = pairing.reference
    if int(model.eq_objtype[i]) == _SITE_OBJECT:
        return np.stack([reference.site_position[end] for end in ends])
    # MuJoCo stores the anchor on the second body first for welds, on the first body first for connections.
    inside = (data[0:3], data[3:6]) if int(model.eq_type[i]) == _CONNECT else (data[3:6], data[0:3])
    return np.stack(
        [reference.body_position[end] + reference.body_rotation[end] @ at for end, at in zip(ends, inside, strict=True)]
    )


def _weld_orientation(model: Any, pairing: Pairing, i: int) -> Floats:
    """The world-axes rotation that takes a weld's second end from the reference to the constrained pose, (3, 3)."""
    first, second = int(model.eq_obj1id[i]), int(model.eq_obj2id[i])
    if int(model.eq_objtype[i]) == _SITE_OBJECT:
        frames = pairing.reference.site_rotation
        return np.asarray(frames[first] @ frames[second].T)
    frames = pairing.reference.body_rotation
    return np.asarray(frames[first] @ matrix_of(model.eq_data[i][6:10]) @ frames[second].T)


Tie = tuple[int, int, int, int]


def _tie_of(model: Any, i: int) -> Tie:
    """(type, object type, first, second) of an equality; second is -1 if there is none."""
    kind, objects = int(model.eq_type[i]), int(model.eq_objtype[i])
    return kind, objects, int(model.eq_obj1id[i]), int(model.eq_obj2id[i])


def _same(tie: Tie, other: Tie) -> bool:
    # A connection or weld does not change if its ends are exchanged; a polynomial between joints does.
    return tie == other or (tie[0] in (_CONNECT, _WELD) and tie == (other[0], other[1], other[3], other[2]))


def _image(model: Any, pairing: Pairing, i: int) -> Tie | None:
    kind, objects, first, second = _tie_of(model, i)
    if kind not in (_CONNECT, _WELD, _JOINT, _TENDON):
        return None  # flexible bodies are not compared; a remark states this
    if kind in (_CONNECT, _WELD) and objects == _SITE_OBJECT:
        return kind, objects, site_image(model, pairing, first), site_image(model, pairing, second)
    # Joints, tendons or bodies, depending on the type of the equality.
    images = pairing.joints if kind == _JOINT else pairing.tendons if kind == _TENDON else pairing.bodies
    ends = [-1 if end < 0 else int(images[end]) for end in (first, second)]
    return kind, objects, ends[0], ends[1]


def _polynomial(model: Any, pairing: Pairing, i: int) -> Any:
    """The image of y = sum c_k x^k: c_k carries the sign of y times that of x to the power k."""
    first, second = int(model.eq_obj1id[i]), int(model.eq_obj2id[i])
    signs = pairing.joint_signs if int(model.eq_type[i]) == _JOINT else pairing.tendon_signs
    sign = float(signs[first])
    argument_sign = float(signs[second]) if second >= 0 else 1.0
    # The polynomial's image: s_y c_k s_x^k for k = 0..4.
    return model.eq_data[i][:5] * sign * argument_sign ** np.arange(5)


def _section(model: Any, i: int) -> str:
    kind = int(model.eq_type[i])
    if kind in (_JOINT, _TENDON):
        return "joint" if kind == _JOINT else "tendon"
    return "site" if int(model.eq_objtype[i]) == _SITE_OBJECT else "body"


def _words(model: Any, i: int, tie: Tie) -> str:
    section = _section(model, i)
    return " and ".join(title(model, section, index) for index in tie[2:] if index >= 0)


def _names(model: Any, i: int) -> str:
    return _words(model, i, _tie_of(model, i))


def _contact_pairs(model: Any, pairing: Pairing) -> Iterator[Difference]:
    pairs = [frozenset((int(model.pair_geom1[i]), int(model.pair_geom2[i]))) for i in range(model.npair)]
    for i, pair in enumerate(pairs):
        image = frozenset(int(pairing.geoms[geom]) for geom in pair)
        words = " and ".join(title(model, "geom", geom) for geom in sorted(pair))
        # Both geoms have images, but no pair of them is in the file.
        if image not in pairs:
            if min(image) >= 0:
                image_words = " and ".join(title(model, "geom", geom) for geom in sorted(image))
                yield _missing(f"contact pair of {words}", f"a contact pair of {image_words}")
            continue
        j = pairs.index(image)
        # List each two pairs once.
        if i <= j:
            for quantity, key in _PAIR_NUMBERS:
                element, counterpart = f"contact pair {i} of {words}", f"contact pair {j}"
                yield from difference(element, counterpart, quantity, getattr(model, key)[i], getattr(model, key)[j])


def _excludes(model: Any, pairing: Pairing) -> Iterator[Difference]:
    # MuJoCo packs the two bodies of an excluded contact into one integer, 16 bits each.
    excluded = [frozenset(divmod(int(signature), 1 << 16)) for signature in model.exclude_signature]
    for pair in excluded:
        image = frozenset(int(pairing.bodies[body]) for body in pair)
        if image not in excluded and min(image) >= 0:
            words, image_words = (
                " and ".join(title(model, "body", body) for body in sorted(bodies)) for bodies in (pair, image)
            )
            yield _missing(f"excluded contact of {words}", f"an excluded contact of {image_words}")


def _missing(element: str, wanted: str) -> Difference:
    return Difference(element, wanted, "presence", (), ())
