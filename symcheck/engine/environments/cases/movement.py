"""Whether the claim changes any tested state or action. If not, both sides of every comparison are the same step.

In that case a pass would carry no information about the environment, so `decide` leaves every equation undecided. Only
states already gathered are examined; nothing is stepped and no random number is drawn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from symcheck.engine.environments.cases.pairs import Pairs
from symcheck.engine.environments.cases.pool import Pool
from symcheck.engine.environments.subject.placement import Situation, Word


def moves_something(pairs: Pairs, pool: Pool, words: Sequence[Word]) -> bool:
    """Whether any gathered state, or any action of a rollout, differs from its image.

    Args:
        pairs: with the placement and the symmetry.
        pool: states, and steps of rollouts.
        words: the tested elements.

    Returns:
        True at the first difference. The whole pool is examined only for a claim that changes nothing.
    """
    bound = pairs.bound
    for word in words:
        for visit in pool.visits:  # cheap, and actions may change even if states do not (identity on observations)
            if not same_value(visit.action, bound.action(word, visit.action, visit.situation.obs)):
                return True
        for situation in pool.situations:
            if _moves(pairs, word, situation):
                return True
    return False


def _moves(pairs: Pairs, word: Word, situation: Situation) -> bool:
    if not same_value(situation.obs, pairs.bound.observation(word, situation.obs)):
        return True
    if pairs.placement.kind is None:
        return False  # a black box has no state apart from its observation
    return not same_value(situation.state, pairs.placement.image(word, situation).state)


def same_value(value: Any, image: Any) -> bool:
    """Whether two observations, actions or states are the same; NaN is NaN, and 1 is 1.0.

    Args:
        value: numbers, strings and arrays, in arbitrarily nested mappings and sequences.
        image: the same.

    Returns:
        False if any part differs. Values that cannot be compared count as equal, because they show no change.

    Example:
        >>> same_value({"x": np.zeros(2)}, {"x": [0.0, -0.0]}), same_value((1, "a"), (1, "b"))
        (True, False)
    """
    if isinstance(value, Mapping) and isinstance(image, Mapping):
        return value.keys() == image.keys() and all(same_value(value[key], image[key]) for key in value)
    if isinstance(value, str) or isinstance(image, str):
        return bool(value == image)
    if hasattr(value, "tolist") and not isinstance(value, np.ndarray | np.generic):
        return same_value(value.tolist(), image.tolist() if hasattr(image, "tolist") else image)
    # Numbers by value, not by type: maps may return another dtype.
    number, other = _as_numbers(value), _as_numbers(image)
    if number is not None and other is not None:
        return number.size == other.size and bool(np.array_equal(number.reshape(-1), other.reshape(-1), equal_nan=True))
    if isinstance(value, Sequence) and isinstance(image, Sequence):
        return len(value) == len(image) and all(map(same_value, value, image))
    return True


def _as_numbers(value: Any) -> np.ndarray[Any, np.dtype[np.float64]] | None:
    try:
        array = np.asarray(value)
        return array.astype(np.float64) if array.dtype.kind in "iufb" else None
    except (ValueError, TypeError):  # ragged, or not made of numbers
        return None
