"""The minimal homomorphism: coarsest partition, and action maps from matching descriptions, verified on the arrays."""

from __future__ import annotations

import numpy as np

from symcheck.array_types import Ints
from symcheck.errors import SpecError, SymcheckError
from symcheck.mdp.finite import FiniteMDP
from symcheck.mdp.homomorphism import Homomorphism, from_maps, ranked_in_blocks
from symcheck.mdp.refinement import Partition, coarsest_partition
from symcheck.mdp.sparse_rows import renumber

# number of attempts, each with new hash functions; one attempt fails with probability below 1e-6 for a million pairs
_ATTEMPTS = 3


def minimal_homomorphism(mdp: FiniteMDP, *, tolerance: float = 0.0) -> Homomorphism:
    """See `TabularMDP.minimal_homomorphism`."""
    if not (isinstance(tolerance, int | float) and 0.0 <= tolerance < float("inf")):
        raise SpecError(f"expected a finite number of at least 0, got {tolerance!r}.", where="tolerance")
    origin = "coarsest partition" if tolerance == 0 else f"partition refinement with tolerance {tolerance:g}"
    for salt in range(_ATTEMPTS):
        # One attempt uses seven salts, so the next attempt shares none of them.
        partition = coarsest_partition(mdp, tolerance=tolerance, salt=7 * salt)
        homomorphism = from_maps(mdp, partition.state, action_classes(mdp, partition), origin=origin)
        # Only an exact partition can be refuted by the arrays; with a tolerance, deviations are expected.
        if tolerance > 0 or homomorphism.is_exact:
            return homomorphism
    raise SymcheckError(
        "the resulting partition is not a homomorphism: within a block, rewards differ by "
        f"{homomorphism.reward_error:.3g}, and distributions by {homomorphism.transition_error:.3g}.",
        where="minimal_homomorphism",
        remedy="Some values differ by more than rounding, but by less than 1e-9; round them or set tolerance.",
    )


def action_classes(mdp: FiniteMDP, partition: Partition) -> Ints:
    """Abstract actions: pairs of one block with equal descriptions, numbered as in the block's lowest state.

    Args:
        mdp: the MDP.
        partition: blocks and descriptions.

    Returns:
        Shape (S, A); -1 if an action is not available.
    """
    described = renumber(partition.pair).reshape(mdp.available.shape)
    # Descriptions are shared between blocks: one label per (block, description).
    classes = partition.state[:, None] * (int(described.max()) + 1) + described
    return ranked_in_blocks(partition.state, np.where(mdp.available, classes, -1))
