"""Discrete choices as one-hot vectors: how a map of values permutes them, and with them the logits of a policy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from symcheck.array_types import Floats
from symcheck.entries.forms import Entry
from symcheck.errors import SpecError
from symcheck.symmetry.space_maps import fit

Choices: TypeAlias = spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary


def counts_of(space: spaces.Discrete | spaces.MultiDiscrete) -> tuple[list[int], list[int]]:
    """The number of values of each component, and the first value."""
    if isinstance(space, spaces.Discrete):
        return [int(space.n)], [int(space.start)]
    return [int(n) for n in space.nvec.reshape(-1)], [int(first) for first in space.start.reshape(-1)]


def one_hot(value: npt.NDArray[Any], space: spaces.Discrete | spaces.MultiDiscrete) -> Floats:
    """One number for each value of each component: 1 for the current value, otherwise 0.

    Example:
        >>> one_hot(np.array([1, 0]), spaces.MultiDiscrete([2, 3])).tolist()
        [0.0, 1.0, 1.0, 0.0, 0.0]
    """
    counts, first = counts_of(space)
    encoded = np.zeros(sum(counts))
    begins = np.cumsum([0, *counts[:-1]])
    encoded[begins + value.reshape(-1).astype(np.int64) - first] = 1.0
    return encoded


def choice_permutation(
    image: Callable[[Any], Any], space: spaces.Discrete | spaces.MultiDiscrete, where: str, remedy: str
) -> Floats:
    """The permutation of one-hot vectors that a map of values induces, shape (values, values).

    Raises:
        SpecError: the map mixes components, or is not a permutation.
    """
    counts, first = counts_of(space)
    start = np.array(first)
    as_value = (lambda chosen: int(chosen[0])) if isinstance(space, spaces.Discrete) else _shape_joint_action(space)

    def encode(chosen: Any) -> Floats:
        return one_hot(np.asarray(image(as_value(chosen))), space)

    begins = np.cumsum([0, *counts])
    matrix = np.zeros((begins[-1], begins[-1]))
    try:
        base = encode(start)
        for component, count in enumerate(counts):
            # The image of this component is the block that changes if the component takes another value.
            images = [encode(start + value * (np.arange(len(counts)) == component)) for value in range(count)]
            changed = np.flatnonzero(np.abs(images[-1] - base) > 0) if count > 1 else np.array([begins[component]])
            target = int(np.searchsorted(begins, changed[0], side="right")) - 1
            block = slice(begins[target], begins[target + 1])
            for value, at in enumerate(images):
                matrix[block, begins[component] + value] = at[block]
    except (IndexError, ValueError) as error:
        raise _no_permutation(where, remedy) from error
    # A permutation of components and of their values has exactly one 1 in every row and column.
    if (matrix.sum(0) != 1).any() or (matrix.sum(1) != 1).any():
        raise _no_permutation(where, remedy)
    drawn = np.random.default_rng(0)
    for _ in range(8):
        chosen = start + np.array([drawn.integers(count) for count in counts])
        if not np.array_equal(encode(chosen), matrix @ one_hot(chosen, space)):
            raise _no_permutation(where, remedy)
    return matrix


def _shape_joint_action(space: spaces.MultiDiscrete) -> Callable[[Any], Any]:
    return lambda chosen: np.asarray(chosen, dtype=space.dtype).reshape(space.shape)


def _no_permutation(where: str, remedy: str) -> SpecError:
    return SpecError(
        "expected a map that permutes components, or the values of one component; this map mixes components or leaves "
        "the space.",
        where=where,
        remedy=remedy,
    )


def action_permutation(entry: Entry, space: Choices, observations: Sequence[Any], where: str, remedy: str) -> Floats:
    """The permutation of the logits of all action values that an entry induces, shape (values, values).

    Args:
        entry: how a generator acts on actions.
        space: the space of the actions; bits are choices between two values.
        observations: a few observations; callables are evaluated at each of them.
        where: the name of the entry in messages.
        remedy: what to do if layers or logits cannot represent the map.

    Raises:
        SpecError: the map does not fit the space, is not a permutation, or depends on the observation.
    """
    space_map = fit(entry, space, where)
    choices = spaces.MultiDiscrete(np.full(space.shape, 2)) if isinstance(space, spaces.MultiBinary) else space

    def at(observation: Any) -> Floats:
        return choice_permutation(lambda value: space_map.image(value, observation), choices, where, remedy)

    first, *others = (at(observation) for observation in observations)
    if any(not np.array_equal(first, other) for other in others):
        raise depends_on_state(where, remedy)
    return first


def depends_on_state(where: str, remedy: str) -> SpecError:
    """The error for an action map that is not the same for all states."""
    return SpecError(
        "expected one action map for all states; this callable depends on the state.", where=where, remedy=remedy
    )


def bernoulli_map(permutation: Floats) -> Floats:
    """The map of one logit for each bit, from the permutation of the pair of logits of its two values.

    A bit's logit is the difference of the pair, so exchanging the values negates it.

    Args:
        permutation: shape (2 * bits, 2 * bits).

    Returns:
        A signed permutation matrix, shape (bits, bits).

    Example:
        >>> bernoulli_map(np.array([[0.0, 1.0], [1.0, 0.0]])).tolist()
        [[-1.0]]
    """
    # (bits, 2 * bits): the logit of 1 minus that of 0.
    difference = np.kron(np.eye(len(permutation) // 2), np.array([[-1.0, 1.0]]))
    return np.asarray(difference @ permutation @ difference.T / 2.0)
