"""Maps of discrete choices as permutations of one-hot vectors, and claims of continuous groups in words."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from symcheck.entries.forms import FunctionEntry, parse_entry
from symcheck.entries.lie_forms import LieEntry
from symcheck.errors import SpecError
from symcheck.symmetry.choices import (
    action_permutation,
    bernoulli_map,
    choice_permutation,
    counts_of,
    depends_on_state,
    one_hot,
)
from symcheck.symmetry.lie_text import lie_text

SPACES = [
    spaces.Discrete(4), spaces.Discrete(3, start=2), spaces.MultiDiscrete([2, 3]), spaces.MultiDiscrete([3, 1, 3]),
    spaces.MultiDiscrete([2, 2], start=[5, -1]), spaces.MultiDiscrete(np.array([[2, 3], [2, 3]])),
]  # fmt: skip


def values_of(space: Any) -> list[Any]:
    counts, first = counts_of(space)
    if isinstance(space, spaces.Discrete):
        return [np.array(first[0] + k) for k in range(counts[0])]
    return [
        (np.array(first) + np.array(chosen)).reshape(space.shape)
        for chosen in itertools.product(*(range(n) for n in counts))
    ]


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_each_value_has_its_own_ones(space: Any) -> None:
    counts, first = counts_of(space)
    assert len(counts) == len(first)
    encoded = [one_hot(value, space) for value in values_of(space)]
    assert len({tuple(each) for each in encoded}) == len(encoded)
    for value, each in zip(values_of(space), encoded, strict=True):
        blocks = np.split(each, np.cumsum(counts)[:-1])
        places = [int(np.flatnonzero(block)[0]) for block in blocks]
        assert [block.sum() for block in blocks] == [1.0] * len(counts)
        np.testing.assert_array_equal(np.array(places) + first, np.asarray(value).reshape(-1))


def reversed_values(space: Any) -> Any:
    counts, first = counts_of(space)
    ends = np.array(first) * 2 + np.array(counts) - 1
    return lambda value: (ends.reshape(np.shape(value)) - value) if np.ndim(value) else int(ends[0] - value)


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_a_map_of_values_permutes_their_one_hot_vectors(space: Any) -> None:
    for image in (lambda value: value, reversed_values(space)):
        matrix = choice_permutation(image, space, "action[0]", "Give another map.")
        assert (matrix.sum(axis=0) == 1).all()
        for value in values_of(space):
            given = int(value) if isinstance(space, spaces.Discrete) else value
            np.testing.assert_array_equal(matrix @ one_hot(value, space), one_hot(np.asarray(image(given)), space))


def test_components_may_be_exchanged_and_mixed_ones_are_refused() -> None:
    space = spaces.MultiDiscrete([3, 3])
    swap = choice_permutation(lambda value: value[::-1], space, "action[0]", "Give another map.")
    np.testing.assert_array_equal(swap, np.kron([[0, 1], [1, 0]], np.eye(3)))

    def mixed(value: Any) -> Any:
        return np.array([value[0], (value[0] + value[1]) % 3])

    refused: list[Any] = [
        mixed, lambda value: value * 0, lambda value: value + 1, lambda value: value - 1,
        lambda value: np.array([value[0], value[0]]),
        lambda value: np.where(value == 2, 2, value * 0),
    ]  # fmt: skip
    for image in refused:
        with pytest.raises(SpecError, match="expected a map that permutes components, or the values of one"):
            choice_permutation(image, space, "action[0]", "Give another map.")
    with pytest.raises(SpecError) as raised:
        choice_permutation(mixed, space, "action[3]", "Give another map.")
    assert (raised.value.where, raised.value.remedy) == ("action[3]", "Give another map.")


def test_bits_are_choices_between_two_values_and_their_logits_change_sign() -> None:
    entry = parse_entry([1, 0, 2], "action[0]")
    matrix = action_permutation(entry, spaces.MultiBinary(3), [None], "action[0]", "")
    np.testing.assert_array_equal(matrix, np.kron(np.eye(3)[[1, 0, 2]], np.eye(2)))
    np.testing.assert_array_equal(bernoulli_map(matrix), np.eye(3)[[1, 0, 2]])
    flip = np.kron(np.eye(2), np.array([[0.0, 1.0], [1.0, 0.0]]))
    np.testing.assert_array_equal(bernoulli_map(flip), -np.eye(2))
    logits = np.array([0.3, -2.0])  # of ones; the pair of each is (0, logit) up to a constant
    pairs = np.stack([np.zeros(2), logits], axis=1).reshape(-1)
    moved = (flip @ pairs).reshape(2, 2)
    np.testing.assert_allclose(bernoulli_map(flip) @ logits, moved[:, 1] - moved[:, 0])


def test_a_callable_that_depends_on_the_state_has_no_permutation() -> None:
    def by_state(action: Any, observation: Any) -> Any:
        return 1 - action if observation[0] > 0 else action

    entry = FunctionEntry(by_state)
    up, down = np.array([1.0]), np.array([-1.0])
    space = spaces.Discrete(2)
    assert action_permutation(entry, space, [down, down], "action[0]", "").tolist() == [[1, 0], [0, 1]]
    assert action_permutation(entry, space, [up], "action[0]", "").tolist() == [[0, 1], [1, 0]]
    for seen in ([up, down], [down, down, up]):
        with pytest.raises(SpecError, match="this callable depends on the state"):
            action_permutation(entry, space, seen, "action[0]", "")
    assert depends_on_state("here", "do this").where == "here"


def test_a_generator_is_told_by_its_planes_or_its_name() -> None:
    assert lie_text(LieEntry(planes=((0, 1, 1.0),)), "a") == "(a0, a1) turns by t"
    assert lie_text(SimpleNamespace(), "o") == "unchanged"
