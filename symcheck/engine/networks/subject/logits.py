"""The claim on the logits of policies with MultiDiscrete or MultiBinary actions.

The symmetry's entries act on vectors of integers. Such a policy returns one logit for each value of each component, or
one logit for each bit, so the entries act on its outputs by the permutation of values that they induce.
"""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces

from symcheck.array_types import Floats
from symcheck.engine.networks.subject.claims import Logits
from symcheck.entries.forms import AffineEntry
from symcheck.symmetry.choices import action_permutation, bernoulli_map, counts_of
from symcheck.symmetry.symmetry import Symmetry

_INSTEAD = "Name the entries of the output that contains the logits: outputs=[...]."
_OBSERVATIONS = 3
"""Number of observations at which callables are evaluated: one that depends on the state differs between some."""


def logits_claim(
    symmetry: Symmetry,
    actions: Any,
    observations: Any,
    sizes: Mapping[str, tuple[int, ...]],
    shape: tuple[int, ...],
) -> Logits | None:
    """How the generators act on logits; None if no output has their size, or if entries act on logits as given.

    Args:
        symmetry: the claim.
        actions: the action space of the policy or of the environment; None if unknown.
        observations: the observation space; None if unknown.
        sizes: the shape of each output, without the batch axis.
        shape: the shape of one input.

    Raises:
        SpecError: a map does not fit the action space, or does not permute the values.
    """
    if not isinstance(actions, spaces.MultiDiscrete | spaces.MultiBinary) or symmetry.is_continuous:
        return None
    counts = [2] * math.prod(actions.shape) if isinstance(actions, spaces.MultiBinary) else counts_of(actions)[0]
    found = {math.prod(shape) for shape in sizes.values()}
    of_bits = isinstance(actions, spaces.MultiBinary) and len(counts) in found
    if not of_bits and sum(counts) not in found:
        return None
    drawn = _samples(spaces.Box(-np.inf, np.inf, shape, np.float32) if observations is None else observations)
    matrices = [
        action_permutation(entry, actions, drawn, f"action[{i}]", _INSTEAD) for i, entry in enumerate(symmetry.action)
    ]
    if of_bits:
        matrices, counts = [bernoulli_map(matrix) for matrix in matrices], [1] * len(counts)
    begins = np.cumsum([0, *counts])
    # There is no choice between the values of a component that has only one.
    choices = [slice(a, b) for a, b in itertools.pairwise(begins.tolist()) if of_bits or b - a > 1]
    return Logits([_entry_of(matrix) for matrix in matrices], tuple(choices))


def _samples(space: spaces.Space[Any]) -> list[Any]:
    own = copy.deepcopy(space)  # sampling changes the state of the space
    own.seed(0)
    return [own.sample() for _ in range(_OBSERVATIONS)]


def _entry_of(matrix: Floats) -> AffineEntry:
    """The entry of a signed permutation matrix, whose column j has the image of entry j."""
    index = np.abs(matrix).argmax(axis=0)
    return AffineEntry(index=index, sign=np.sign(matrix[index, np.arange(len(index))]).astype(np.int64))
