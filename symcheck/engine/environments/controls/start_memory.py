"""State that survives a reset (running statistics, a curriculum): starts then have no fixed distribution.

The seed determines the start of an episode. If the same seed leads to another start after other episodes, although
starts do depend on the seed, then some state of those episodes survives. An asymmetry of such starts may come from the
preceding episodes, which the engine chose. If the seed has no effect (a wrapper drops it), this test is not applicable,
and starts are compared unchanged.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from symcheck.array_types import Floats
from symcheck.engine.environments.cases.workbench import Workbench
from symcheck.envs.state_access.generators import global_generators
from symcheck.envs.stepping.same_seed import reset_all
from symcheck.spaces.coordinates import finite
from symcheck.spaces.reduction import reduction

_SEEDS = 16
_EPISODES, _LONGEST = 4, 100  # number of episodes between the two rounds of resets
_ROUNDING = 1e-4  # relative to the spread over seeds: rounding, including float32, is far smaller
# Smallest correlation of the two rounds over seeds if seeds determine starts; otherwise 16 seeds reach it with
# probability one in a million.
_DECIDED = 0.9


def survives_reset(bench: Workbench) -> npt.NDArray[np.bool_]:
    """The start coordinates that depend on earlier episodes.

    Args:
        bench: the environment; its generators are seeded, and seeded again at the end.

    Returns:
        For each coordinate of reset observations, in the form in which starts are compared (reduced if they are wide):
        whether the same seeds lead to different starts after other episodes, although starts depend on the seed. Shape
        (dim,).
    """
    rng = bench.rng("what survives a reset")
    seeds = [int(seed) for seed in rng.integers(0, 2**30, size=_SEEDS)]
    # The same seeds before and after some episodes: only state that survives a reset can cause a difference.
    before = _reset_under(bench, seeds)
    for _ in range(_EPISODES):
        bench.pairs.stepper.play(_LONGEST)
    after = _reset_under(bench, seeds)
    bench.pairs.stepper.reset(seed=int(rng.integers(0, 2**30)))
    spread = before.std(axis=0) * after.std(axis=0)
    # Covariance over seeds: whether the two rounds depend on the seed.
    common = np.mean((before - before.mean(axis=0)) * (after - after.mean(axis=0)), axis=0)
    moved = np.mean((after - before) ** 2, axis=0) > _ROUNDING**2 * spread
    surviving: npt.NDArray[np.bool_] = moved & (spread > 0) & (common >= _DECIDED * spread)
    return surviving


def _reset_under(bench: Workbench, seeds: list[int]) -> Floats:
    """Reset observations for the given seeds, shape (seeds, dim)."""
    stepper = bench.pairs.stepper
    shown = []
    with global_generators():
        for seed in seeds:
            shown.append(reset_all(stepper, seed))
    return finite(reduction(stepper.codec).apply(stepper.codec.flatten_batch(shown)))
