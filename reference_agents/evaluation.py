"""Evaluates policies on separate environments.

Each run plays a number of episodes at once, one per environment, and the mean of their returns is one point of its
curve. Every episode is played to its end and counts once. (`play_window` evaluates as the paper's code does.) Actions
are sampled from the policy, as in the paper.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch

from reference_agents.environments.gymnasium_vector import GymnasiumVector
from reference_agents.environments.vector import Step, VectorEnvironment
from reference_agents.learning.distributions import Distribution
from reference_agents.randomness import Purpose, UniformStreams
from symcheck.array_types import Array, Bools


class Policy(Protocol):
    """Maps observations (runs, environments, ...) to outputs (runs, environments, numbers)."""

    def __call__(self, observations: Array, running: Bools | None = None, /) -> torch.Tensor:
        """The outputs; if `running` (runs, environments) is given, only those of running environments are read."""


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
        policy: the policy to evaluate.
        distribution: the action distribution that the outputs parametrise.
        make_environment: the factory, called with seeds, episodes, purpose and index.
        seeds: one seed per run.
        episodes: the number of episodes, each on its own environment.
        index: the index of the evaluation; each has its own random streams, so evaluations are independent of each
            other.
        greedy: whether the most likely action is taken instead of a sampled one.

    Returns:
        Returns, shape (runs, episodes).
    """
    returns = np.zeros((len(seeds), episodes))
    running = np.ones((len(seeds), episodes), dtype=bool)
    for step in _steps(policy, distribution, make_environment, seeds, episodes, index, greedy=greedy, running=running):
        # An environment restarts when its episode ends; only the first episode counts, so that short episodes are not
        # favoured.
        returns += np.where(running, step.reward, 0.0)
        running &= ~(step.terminated | step.truncated)
        if not running.any():
            break
    return returns


def play_window(
    policy: Policy,
    distribution: Distribution,
    make_environment: MakeEnvironment,
    seeds: Sequence[int],
    *,
    environments: int,
    steps: int,
    index: int,
) -> npt.NDArray[np.float64]:
    """The mean return of the episodes that finish while each environment takes `steps` steps, as the paper's code does.

    An environment plays one episode after the other, so short episodes have more weight. If no episode of a run
    finishes, the returns so far count.

    Args:
        policy: as for `play`.
        distribution: as for `play`.
        make_environment: as for `play`.
        seeds: one seed per run.
        environments: the number of environments of each run.
        steps: the number of steps of each environment.
        index: the index of the evaluation.

    Returns:
        Mean returns, shape (runs,).
    """
    running, total, count = np.zeros((len(seeds), environments)), np.zeros(len(seeds)), np.zeros(len(seeds))
    played = _steps(policy, distribution, make_environment, seeds, environments, index, greedy=False)
    # `zip` ends the endless iterator after `steps` steps.
    for _, step in zip(range(steps), played, strict=False):
        running += step.reward
        ended = step.terminated | step.truncated
        total += np.where(ended, running, 0.0).sum(1)
        count += ended.sum(1)
        running[ended] = 0.0
    # If no episode finished, use the returns so far.
    return np.where(count > 0, total / np.maximum(count, 1), running.mean(1))


def _steps(
    policy: Policy,
    distribution: Distribution,
    make_environment: MakeEnvironment,
    seeds: Sequence[int],
    environments: int,
    index: int,
    *,
    greedy: bool,
    running: Bools | None = None,
) -> Iterator[Step]:
    """An endless iterator over steps of new environments.

    Only `running` ones, which the caller updates, are stepped.
    """
    # `index` is the number of the evaluation: each one has its own start states and actions.
    environment = make_environment(seeds, environments, purpose=Purpose.EVALUATION_ENVIRONMENT, index=index)
    streams = UniformStreams(seeds, Purpose.EVALUATION_ACTIONS, distribution.noise_shape(environments), index=index)
    # Simulators step environments one by one: finished ones must not cost further time.
    pauses = isinstance(environment, GymnasiumVector)
    with contextlib.ExitStack() as closing:
        # Whoever reads the steps stops when there are enough, which ends this generator.
        if isinstance(environment, GymnasiumVector):
            closing.callback(environment.close)
        observation = environment.reset()
        while True:
            numbers, uniforms = policy(observation, running), streams.next()
            actions = distribution.mode(numbers) if greedy else distribution.sample(numbers, uniforms)
            step = environment.step(actions, active=running if pauses else None)
            observation = step.observation
            yield step
