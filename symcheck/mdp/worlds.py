"""MDPs with known transition tables, for examples, tests and benchmarks."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from symcheck.array_types import Floats, Ints
from symcheck.errors import OptionError
from symcheck.mdp.tabular import TabularMDP

CATCH_REWARD = 1.0
STEP_REWARD = -0.1
# Stay, then the four directions: the moves of both agent and prey.
MOVES: Ints = np.array([[0, 0], [1, 0], [0, 1], [-1, 0], [0, -1]])


def torus_chase(size: int = 7, *, prey_moves: float = 0.15, discount: float = 0.99) -> TabularMDP:
    """The paper's grid world as a table: the displacement from prey to agent on a torus, five actions.

    Action 0 stays; 1, 2, 3, 4 are row + 1, column + 1, row - 1, column - 1. Then, with probability `prey_moves`, the
    prey moves to one of its four neighbouring cells. The reward is 1 if the displacement is then zero, which terminates
    the episode, and -0.1 otherwise. State r * size + c is the displacement (r - half, c - half), as in the image: row
    and column of the prey.

    Args:
        size: number of cells along a side, odd and at least 3; 7 in the paper.
        prey_moves: in [0, 1].
        discount: in [0, 1].

    Returns:
        An MDP of size^2 states; uniform start.

    Raises:
        OptionError: a size that is even or too small, a probability outside [0, 1].

    Example:
        >>> torus_chase().minimal_homomorphism().abstract_mdp.n_states
        10

    Source: van der Pol et al. 2020, section 5 and appendix (grid world).
    """
    if size < 3 or size % 2 == 0:
        raise OptionError(f"expected an odd number of at least 3, got {size}.", where="size")
    if not 0.0 <= prey_moves <= 1.0:
        raise OptionError(f"expected a probability, got {prey_moves}.", where="prey_moves")
    layout = np.stack(np.divmod(np.arange(size * size), size), axis=1).astype(np.int64)
    rows, following, probability = _outcomes(layout, size, prey_moves)
    # Displacement (0, 0) is the middle cell, because the layout is centred on the agent.
    caught = following == (size * size) // 2
    shape = (5 * size * size, size * size)
    ends = np.bincount(rows, weights=probability * caught, minlength=shape[0]).reshape(-1, 5)
    going_on = sparse.csr_array((probability[~caught], (rows[~caught], following[~caught])), shape=shape)
    ending = sparse.csr_array((probability[caught], (rows[caught], following[caught])), shape=shape)
    rewards = STEP_REWARD + (CATCH_REWARD - STEP_REWARD) * ends
    start = np.full(size * size, 1.0 / size**2)
    return TabularMDP(going_on, rewards, discount, start, terminations=ending, layout=layout)


def _outcomes(layout: Ints, size: int, prey_moves: float) -> tuple[Ints, Ints, Floats]:
    """Row s * 5 + a, next state and probability of every outcome."""
    # (cells, agent moves, 1, 2).
    agent = layout[:, None, None] + MOVES[None, :, None]
    moved = (agent - MOVES[None, None, :]) % size  # the prey stays (entry 0) or moves
    following = moved[..., 0] * size + moved[..., 1]
    # The prey stays, or moves in one of the four directions with equal probability.
    chances = np.array([1.0 - prey_moves, *[prey_moves / 4] * 4])
    rows = np.arange(5 * size * size).reshape(-1, 5, 1) + np.zeros((1, 1, 5), dtype=np.int64)
    probability = np.broadcast_to(chances, rows.shape)
    return rows.reshape(-1), following.reshape(-1), probability.reshape(-1).copy()
