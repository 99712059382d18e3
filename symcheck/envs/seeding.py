"""Derive independent generators from the one seed of a run."""

from __future__ import annotations

import numpy as np

_RESETS = 2  # a separate stream; 0 would not be one: NumPy pads entropy with zeros, so [seed, 0] equals seed


def reset_seed(seed: int) -> int:
    """The seed of an environment's first reset, for a run with this seed.

    It differs from the run's seed, because Gymnasium constructs the generators of environments and action spaces in the
    same way: with one seed for both, the noise of the dynamics would repeat the draws of the actions.

    Args:
        seed: the seed of the run, at least 0.

    Returns:
        An integer below 2**31, because some environments accept no larger seed.

    Example:
        >>> reset_seed(0) == 0, reset_seed(0) == reset_seed(1)
        (False, False)
    """
    # Halved to below 2^31: some simulators accept only signed 32-bit seeds.
    return int(np.random.SeedSequence([seed, _RESETS]).generate_state(1)[0]) // 2
