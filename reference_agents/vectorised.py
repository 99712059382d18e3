"""Selects the vectorised environment and the action distribution of a task."""

from __future__ import annotations

import contextlib
import functools
from typing import Any

from reference_agents.atari.environment import AtariGames
from reference_agents.catalog import NetworkPlan, Task
from reference_agents.encoding.environment import EncodedEnvironment, encoded_environment
from reference_agents.environments.cartpole import CartPoleVector
from reference_agents.environments.gymnasium_vector import GymnasiumVector
from reference_agents.environments.predator_prey import PredatorPreyVector
from reference_agents.evaluation import MakeEnvironment
from reference_agents.learning.distributions import Categorical, Distribution, Gaussian, MultiCategorical
from reference_agents.settings import Settings
from symcheck.envs.atari.games import find_game, rom_path

# Limit for environments that state none.
EPISODE_LIMIT = 1_000
_ENVIRONMENTS: dict[str, MakeEnvironment] = {
    "cartpole": CartPoleVector,
    "gridworld": PredatorPreyVector,
    "pong": functools.partial(AtariGames, "pong"),
    "pong-symmetrized": functools.partial(AtariGames, "pong", symmetrized=True),
    "breakout": functools.partial(AtariGames, "breakout"),
    "breakout-symmetrized": functools.partial(AtariGames, "breakout", symmetrized=True),
}


def distribution_of(task: Task) -> Distribution:
    """The action distribution of policies for this task."""
    if task.choices:
        return MultiCategorical(task.choices)
    return Gaussian(task.actions, encoding_of(task).action.bounds) if task.continuous else Categorical()


def tabulates(job_network: NetworkPlan, settings: Settings, task: Task) -> bool:
    """Whether a network is evaluated once for every possible observation instead of for each sample.

    That is faster if there are fewer observations than steps in a minibatch, as for A2C on the grid world. Augmentation
    needs the images themselves.
    """
    return task.name == "gridworld" and not settings.in_epochs and job_network.views != "augmented"


def environment_class(task: Task, limit: int = 0) -> MakeEnvironment:
    """The environment of a task, called with seeds, environments per run and the purpose of its random streams.

    Args:
        task: a task of the catalogue, or your own.
        limit: the number of steps after which episodes of a Gymnasium environment are truncated; 0 for its own time
            limit, or `EPISODE_LIMIT` if it has none.
    """
    if task.name in _ENVIRONMENTS:
        return _ENVIRONMENTS[task.name]
    cut = functools.partial(GymnasiumVector, limit=episode_limit(task, limit))
    return functools.partial(cut, encoding_of(task))


def episode_limit(task: Task, limit: int) -> int | None:
    """The number of steps after which the trainer truncates an episode; None if it does not."""
    if limit or task.name in _ENVIRONMENTS:
        return limit or None
    return EPISODE_LIMIT if encoding_of(task).time_limit is None else None


def offers_action_masks(task: Task) -> bool:
    """Whether an environment says which actions are possible: in `info`, in its observation, or by a method.

    The names are those of Gymnasium, PettingZoo and sb3-contrib.
    """
    if task.name in _ENVIRONMENTS or task.continuous:
        return False
    environment = encoding_of(task).make()
    try:
        observation, info = environment.reset(seed=0)
    except Exception:  # the training resets the environment too, and reports its errors
        return False
    finally:
        with contextlib.suppress(Exception):
            environment.close()
    named = [place.keys() for place in (info, observation) if isinstance(place, dict)]
    return any("action_mask" in names for names in named) or callable(
        getattr(environment.unwrapped, "action_masks", None)
    )


def encoding_of(task: Task) -> EncodedEnvironment:
    """The Gymnasium environment of a task, with the encoding of its spaces."""
    if task.own:
        return encoded_environment(task.name, task.symmetry)
    # For tasks of the catalogue, actions are in the environment's units and observations are not scaled.
    return encoded_environment(task.environment, "", scaled=False)


def plays_games(task: Task) -> bool:
    """Whether a task is a game of the emulator."""
    make = environment_class(task)
    return isinstance(make, functools.partial) and make.func is AtariGames


def check_environment(task: Task) -> None:
    """Reject a task whose games cannot be played on this machine.

    Raises:
        TargetError: ale-py cannot be used, or a ROM is missing.
    """
    make = environment_class(task)
    if isinstance(make, functools.partial) and make.func is AtariGames:
        rom_path(find_game(make.args[0]))


def whole_episodes(task: Task) -> dict[str, Any]:
    """Arguments of a task's Gymnasium environment for whole episodes with unclipped rewards, as in evaluations.

    Example:
        >>> from reference_agents.catalog import find_task
        >>> whole_episodes(find_task("breakout"))
        {'episodic_life': False, 'clip_rewards': False}
    """
    return {"episodic_life": False, "clip_rewards": False} if plays_games(task) else {}
