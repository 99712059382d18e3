"""How well a policy does, measured on environments of its own.

Each run plays a number of episodes at once, one per environment, and the mean of their returns is one point of its
curve. Every episode is played to its end and counts once. (The paper's code steps its environments 500 times and
averages over the episodes that finish meanwhile, in which short episodes weigh more.) Actions are sampled from the
policy, as the paper does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import torch

from reference_agents.environments.vector import Observations, VectorEnvironment
from reference_agents.learning.distributions import Distribution
from reference_agents.randomness import Purpose, UniformStreams

Policy = Callable[[Observations], torch.Tensor]
MakeEnvironment = Callable[..., VectorEnvironment]


def play(
    policy: Policy,
    distribution: Distribution,
    make_environment: MakeEnvironment,
    seeds: Sequence[int],
    *,
    episodes: int,
    index: int,
    greedy: bool = False,
) -> npt.NDArray[np.float64]:
    """The return of each of `episodes` episodes of each run.

    Args:
        policy: observations (runs, environments, ...) to numbers (runs, environments, numbers).
        distribution: how the numbers are read.
        make_environment: called with seeds, episodes, purpose and index.
        seeds: one per run.
        episodes: how many, each on an environment of its own.
        index: the evaluation's number; each has streams of its own, so that evaluations do not depend on one another.
        greedy: whether the likeliest action is taken instead of a sampled one.

    Returns:
        Returns, shape (runs, episodes).
    """
    environment = make_environment(seeds, episodes, purpose=Purpose.EVALUATION_ENVIRONMENT, index=index)
    streams = UniformStreams(seeds, Purpose.EVALUATION_ACTIONS, distribution.noise_shape(episodes), index=index)
    observation = environment.reset()
    returns = np.zeros((len(seeds), episodes))
    running = np.ones((len(seeds), episodes), dtype=bool)
    while running.any():
        numbers, uniforms = policy(observation), streams.next()
        step = environment.step(distribution.mode(numbers) if greedy else distribution.sample(numbers, uniforms))
        returns += np.where(running, step.reward, 0.0)
        running &= ~(step.terminated | step.truncated)
        observation = step.observation
    return returns
