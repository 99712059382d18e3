"""Whether a comparison could have shown anything: numbers to compare, values that vary, a claim that moves something.

Every method asks the same three questions before it reports a pass; `symcheck.engine.verdict.decide` draws the
conclusions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from symcheck.engine.environments.cases.pairs import Case, Pairs
from symcheck.engine.environments.subject.coordinates import SpaceCodec, Vector
from symcheck.engine.environments.subject.stepper import numeric, shown

_CHUNK = 256  # cases that are looked at together: nearly always the first ones settle it


class Outcomes(NamedTuple):
    """What stood on both sides of one quantity.

    Attributes:
        finite: whether something was compared: not every coordinate was NaN, or one and the same infinity, throughout.
        stuck: where nothing was compared, what stood there instead: "NaN" or "infinite".
        constant: the value that never varied, as text; None where it varied, or nothing was compared.
    """

    finite: bool
    stuck: str
    constant: str | None


def outcomes_of(*sides: Vector) -> Outcomes:
    """What stood on the sides of one quantity.

    Args:
        sides: arrays of shape (n, dim); the sides need not have the same n.

    Returns:
        The answers for all rows of all sides together.

    Example:
        >>> outcomes_of(np.ones((3, 1)), np.ones((3, 1))).constant
        '1'
        >>> outcomes_of(np.full((3, 1), np.nan), np.full((3, 1), np.nan)).finite
        False
    """
    values = np.concatenate(sides)
    if not values.size:
        return Outcomes(True, "", None)
    first = values[0]
    fixed = ((values == first) | (np.isnan(values) & np.isnan(first))).all(axis=0)
    if (fixed & ~np.isfinite(first)).all():
        return Outcomes(False, "NaN" if np.isnan(first).any() else "infinite", None)
    if not fixed.all():
        return Outcomes(True, "", None)
    return Outcomes(True, "", f"{first[0] + 0.0:g}" if first.size == 1 else shown(first))


def some_case_moves(pairs: Pairs, cases: Sequence[Case]) -> bool:
    """Whether the claim moves any of these cases: a state, an observation or an action that is not its own image.

    Args:
        pairs: knows the spaces.
        cases: as they were tested, with their images.

    Returns:
        False where every case is its own image, so that both sides of every equation are the same step.
    """
    codec, actions = pairs.stepper.codec, pairs.stepper.action_codec
    for start in range(0, len(cases), _CHUNK):
        some = cases[start : start + _CHUNK]
        if (
            _differ(actions, [case.action for case in some], [case.image_action for case in some])
            or _differ(codec, [case.situation.obs for case in some], [case.image.obs for case in some])
            or any(_states_differ(case.situation.state, case.image.state) for case in some)
        ):
            return True
    return False


def _differ(codec: SpaceCodec, values: Sequence[object], images: Sequence[object]) -> bool:
    return bool(codec.coordinates.residual(codec.flatten_batch(values), codec.flatten_batch(images)).any())


def _states_differ(state: object, image: object) -> bool:
    one, two = numeric(state), numeric(image)
    if one is None or two is None:  # a simulator's own object: told apart by how it prints
        return state is not image and shown(state) != shown(image)
    return not np.array_equal(one, two, equal_nan=True)
