"""What survives a reset: running statistics, a curriculum, a counter of episodes. Then starts have no one law.

A seed decides where an episode starts. If the same seed starts elsewhere after other episodes, and nearly there rather
than anywhere, something of those episodes is left. An asymmetry of such starts is that of what was played before, which
the engine chose. A seed that decides nothing (a wrapper drops it) says nothing here: the starts are then compared as
they come.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from symcheck.engine.environments.control import global_generators, reset_all
from symcheck.engine.environments.coordinates import Vector, finite
from symcheck.engine.environments.evidence import Workbench
from symcheck.engine.environments.reduction import reduction

_SEEDS = 16
_EPISODES, _LONGEST = 4, 100  # played between the two rounds of resets
# Of the spread over seeds: rounding is far below, and starts that seeds do not decide are 1.4 apart; 16 seeds come
# within half of that by chance once in a million times.
_ROUNDING, _ELSEWHERE = 1e-4, 0.5


def survives_reset(bench: Workbench) -> npt.NDArray[np.bool_]:
    """Which coordinates of the start depend on the episodes before it.

    Args:
        bench: the environment; its generators are seeded, and seeded anew at the end.

    Returns:
        For each coordinate of reset observations, as starts are compared (reduced where they are wide), whether the
        same seeds start nearly where they did, and not there. Shape (dim,).
    """
    rng = bench.rng("what survives a reset")
    seeds = [int(seed) for seed in rng.integers(0, 2**30, size=_SEEDS)]
    before = _starts(bench, seeds)
    for _ in range(_EPISODES):
        bench.pairs.stepper.play(_LONGEST)
    after = _starts(bench, seeds)
    bench.pairs.stepper.reset(seed=int(rng.integers(0, 2**30)))
    spread = np.sqrt((before.var(axis=0) + after.var(axis=0)) / 2)
    gap = np.sqrt(np.mean((after - before) ** 2, axis=0))
    found: npt.NDArray[np.bool_] = (_ROUNDING * spread < gap) & (gap < _ELSEWHERE * spread)
    return found


def _starts(bench: Workbench, seeds: list[int]) -> Vector:
    """Reset observations under seeds, shape (seeds, dim)."""
    stepper = bench.pairs.stepper
    shown = []
    with global_generators():
        for seed in seeds:
            shown.append(reset_all(stepper, seed))
    return finite(reduction(stepper.codec).apply(stepper.codec.flatten_batch(shown)))
