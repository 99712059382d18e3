"""Constraints between elements and their images: equalities, contact pairs, excluded contacts.

A constraint's image ties the images of what it ties. One without image, or with other numbers, is a finding.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from symcheck.mujoco.differences import Difference, difference
from symcheck.mujoco.elements import title
from symcheck.mujoco.pairing import Pairing

_CONNECT, _WELD, _JOINT, _TENDON = 0, 1, 2, 3  # mjtEq
_BODY_OBJECT, _SITE_OBJECT = 1, 6  # mjtObj
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
        pairing: of its elements.

    Yields:
        What differs.
    """
    yield from _equalities(model, pairing)
    yield from _contact_pairs(model, pairing)
    yield from _excludes(model, pairing)


def _equalities(model: Any, pairing: Pairing) -> Iterator[Difference]:
    ties = [_tied(model, i) for i in range(model.neq)]
    for i in range(model.neq):
        image = _image(model, pairing, i)
        if image is None:
            continue
        candidates = [j for j, other in enumerate(ties) if _same(other, image)]
        if not candidates:
            yield _missing(f"equality {i} ({_names(model, i)})", f"an equality of {_words(model, i, image)}")
            continue
        j = candidates[0]
        if j < i and _image(model, pairing, j) is not None and _same(ties[i], _image(model, pairing, j) or ties[i]):
            continue  # the same two were compared from the other side
        one, other = f"equality {i} ({_names(model, i)})", f"equality {j} ({_names(model, j)})"
        for quantity, key in _NUMBERS:
            yield from difference(one, other, quantity, getattr(model, key)[i], getattr(model, key)[j])
        if int(model.eq_type[i]) == _JOINT:
            yield from difference(one, other, "polynomial", _polynomial(model, pairing, i), model.eq_data[j][:5])


Tie = tuple[int, int, int, int]


def _tied(model: Any, i: int) -> Tie:
    """(type, type of what is tied, first, second); -1 where there is no second."""
    kind, objects = int(model.eq_type[i]), int(model.eq_objtype[i])
    return kind, objects, int(model.eq_obj1id[i]), int(model.eq_obj2id[i])


def _same(one: Tie, other: Tie) -> bool:
    return one == other or (one[0] in (_CONNECT, _WELD) and one == (other[0], other[1], other[3], other[2]))


def _image(model: Any, pairing: Pairing, i: int) -> Tie | None:
    kind, objects, first, second = _tied(model, i)
    images: Any = None
    if kind == _JOINT:
        images = pairing.joints
    elif kind == _TENDON:
        images = pairing.tendons
    elif objects == _BODY_OBJECT:
        images = pairing.bodies
    if images is None:
        return None  # sites and flexes are not followed
    there = [-1 if one < 0 else int(images[one]) for one in (first, second)]
    return kind, objects, there[0], there[1]


def _polynomial(model: Any, pairing: Pairing, i: int) -> Any:
    """The image of y = sum c_k x^k: c_k carries the sign of y times that of x to the power k."""
    first, second = int(model.eq_obj1id[i]), int(model.eq_obj2id[i])
    one = float(pairing.joint_signs[first])
    other = float(pairing.joint_signs[second]) if second >= 0 else 1.0
    return model.eq_data[i][:5] * one * other ** np.arange(5)


def _section(model: Any, i: int) -> str:
    kind = int(model.eq_type[i])
    return "joint" if kind == _JOINT else "tendon" if kind == _TENDON else "body"


def _words(model: Any, i: int, tie: Tie) -> str:
    section = _section(model, i)
    return " and ".join(title(model, section, index) for index in tie[2:] if index >= 0)


def _names(model: Any, i: int) -> str:
    if int(model.eq_objtype[i]) == _SITE_OBJECT:
        return "of sites"
    return _words(model, i, _tied(model, i))


def _contact_pairs(model: Any, pairing: Pairing) -> Iterator[Difference]:
    pairs = [frozenset((int(model.pair_geom1[i]), int(model.pair_geom2[i]))) for i in range(model.npair)]
    for i, pair in enumerate(pairs):
        image = frozenset(int(pairing.geoms[geom]) for geom in pair)
        words = " and ".join(title(model, "geom", geom) for geom in sorted(pair))
        if image not in pairs:
            if min(image) >= 0:
                there = " and ".join(title(model, "geom", geom) for geom in sorted(image))
                yield _missing(f"contact pair of {words}", f"a contact pair of {there}")
            continue
        j = pairs.index(image)
        if i <= j:
            for quantity, key in _PAIR_NUMBERS:
                one, other = f"contact pair {i} of {words}", f"contact pair {j}"
                yield from difference(one, other, quantity, getattr(model, key)[i], getattr(model, key)[j])


def _excludes(model: Any, pairing: Pairing) -> Iterator[Difference]:
    excluded = [frozenset(divmod(int(signature), 1 << 16)) for signature in model.exclude_signature]
    for pair in excluded:
        image = frozenset(int(pairing.bodies[body]) for body in pair)
        if image not in excluded and min(image) >= 0:
            here, there = (
                " and ".join(title(model, "body", body) for body in sorted(bodies)) for bodies in (pair, image)
            )
            yield _missing(f"excluded contact of {here}", f"an excluded contact of {there}")


def _missing(element: str, wanted: str) -> Difference:
    return Difference(element, element, f"{wanted} is missing, the image", (1.0,), (0.0,))
