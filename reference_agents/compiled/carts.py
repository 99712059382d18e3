"""Evaluations of CartPole by `learn.c`: network, sampling and cart in one loop, so that a step needs no Python call.

An evaluation takes five times as many steps as training takes between two evaluations. The results are those of
`evaluation.play`; sines and exponentials are the C library's and may differ in the last bit.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from reference_agents.compiled.description import CartRow
from reference_agents.compiled.learner import CompiledNetwork
from reference_agents.environments import cartpole
from reference_agents.randomness import Purpose, UniformStreams, generator
from symcheck.array_types import Floats

_BLOCK = 64
"""Steps between two draws of uniform numbers; a run whose episodes have ended draws no more."""


def play_carts(network: CompiledNetwork, seeds: Sequence[int], *, episodes: int, index: int) -> Floats:
    """As `evaluation.play` on `CartPoleVector`.

    Args:
        network: the network of all runs.
        seeds: one per run.
        episodes: the number of episodes of each run.
        index: the index of the evaluation.

    Returns:
        Returns, shape (runs, episodes).
    """
    body = cartpole.BODY
    cart = CartRow(
        gravity=body.gravity, mass=body.mass, pole_mass=body.pole_mass, length=body.length, moment=body.moment,
        force=cartpole.FORCE, time_step=cartpole.TIME_STEP, furthest=cartpole.POSITION_LIMIT,
        steepest=cartpole.ANGLE_LIMIT, limit=cartpole.EPISODE_LIMIT,
    )  # fmt: skip
    starts = UniformStreams(seeds, Purpose.EVALUATION_ENVIRONMENT, (episodes, 4), index=index, block=1)
    streams = [generator(seed, Purpose.EVALUATION_ACTIONS, index) for seed in seeds]
    states = np.ascontiguousarray(cartpole.start_states(starts.next()))
    lengths = np.zeros((len(seeds), episodes), dtype=np.int64)
    running = np.ones((len(seeds), episodes), dtype=np.uint8)
    uniforms = np.zeros((len(seeds), _BLOCK, episodes))
    while running.any():
        for run in np.flatnonzero(running.any(1)):
            streams[run].random(out=uniforms[run])
        network.play_carts(cart, uniforms, states, lengths, running)
    # Each step has reward 1.
    return lengths.astype(np.float64)
