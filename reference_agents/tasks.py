"""Resolves tasks: from the catalogue, from a Gymnasium id, or from a user's own environment."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import gymnasium as gym
import numpy as np

from reference_agents.catalog import TASKS, TUNED_SWEEP, NetworkPlan, Task, find_network
from reference_agents.encoding.actions import ActionEncoder
from reference_agents.encoding.claims import encode_claim
from reference_agents.encoding.environment import absolute, encoded_environment, find_symmetry, is_object, short_label
from reference_agents.encoding.networks import own_networks
from reference_agents.encoding.observations import ObservationEncoder
from reference_agents.networks.user import build_module
from reference_agents.symmetries import task_symmetry
from symcheck.envs import atlas
from symcheck.errors import OptionError, SpecError, suggestion
from symcheck.loading import is_reference

DEFAULT_RATE = 0.001
# Gaussian policies diverge at learning rates that work for discrete actions.
CONTINUOUS_RATE = 0.0003
NEEDS_SYMMETRY = frozenset({"equivariant", "nullspace", "random", "extractor", "augmented", "averaged", "symmetrized"})


def resolve_task(name: str, symmetry: str | None = None) -> Task:
    """Resolve a task by name or Gymnasium id.

    Args:
        name: a task's name, the id of its environment, any other id, `module:factory` or `file.py:factory`.
        symmetry: a SPEC: an atlas entry, a file or a reference. None for the task's own, or for the first that the
            atlas claims; without a symmetry, the task has only plain networks.

    Returns:
        The task; outside the catalogue, one whose observations and actions are encoded (see `encoding`).

    Raises:
        OptionError: no task of that name (the message suggests the nearest), or an atlas entry of another environment.
        TargetError: the environment cannot be built, or its spaces cannot be encoded.
        SpecError: the symmetry does not fit the environment.

    Example:
        >>> resolve_task("CartPole-v1").name
        'cartpole'
        >>> resolve_task("gridworld", "predator-prey/rotations-and-reflections").networks["equivariant"].channels
        (5, 11, 181)
    """
    known = {**TASKS, **{task.environment: task for task in TASKS.values()}}
    if name in known:
        return _with_symmetry(known[name], symmetry)
    if is_reference(name) or is_object(name):
        return own_task(name, symmetry)
    # Gymnasium ids end with a version; any other text is interpreted as the name of a task.
    if "-v" not in name:
        raise OptionError(f"unknown task {name!r}.", where="TASK", remedy=suggestion(name, TASKS))
    game = name.rpartition("/")[2].partition("-v")[0].lower()
    if symmetry is None and game in TASKS:
        raise OptionError(
            f"the atlas claims no symmetry for {name!r}.",
            where="--env",
            remedy=f"The task {game!r} plays it: reference-agents train {game}.",
        )
    # The first claimed entry, by name, is the default symmetry.
    claimed = [entry.name for entry in atlas.entries_for(name) if entry.claim]
    return own_task(name, symmetry or (claimed[0] if claimed else None))


def own_task(name: str, symmetry: str | None) -> Task:
    """The task of an environment outside the catalogue.

    Args:
        name: a Gymnasium id, `module:factory`, `file.py:factory`, or the name of an object of this process.
        symmetry: a SPEC; None for only plain networks.

    Returns:
        The task, with networks for its vectors or images.

    Raises:
        SymcheckError: the environment or the symmetry cannot be used.
    """
    name, symmetry = absolute(name), absolute(symmetry or "")
    encoded = encoded_environment(name, symmetry)
    action = encoded.action
    order = 1 if encoded.symmetry is None else encoded.symmetry.group.order
    choices = () if isinstance(action.space, gym.spaces.Discrete) else action.choices
    return Task(
        name,
        encoded.label,
        symmetry,
        None,
        "ppo",
        encoded.observation.shape,
        action.numbers,
        TUNED_SWEEP,
        own_networks(
            encoded.observation.shape,
            order if symmetry else None,
            averages=not (action.continuous or choices),
            rate=CONTINUOUS_RATE if action.continuous else DEFAULT_RATE,
        ),
        "an environment of your own",
        action.continuous,
        choices=choices,
        own=True,
    )


def _with_symmetry(task: Task, symmetry: str | None) -> Task:
    """The task with the networks of another of its symmetries."""
    if symmetry in (None, task.symmetry):
        return task
    if symmetry.endswith(".toml") or is_reference(symmetry) or is_object(symmetry):
        return _with_spec(task, absolute(symmetry))
    possible = [entry.name for entry in atlas.entries_for(task.environment)]
    if symmetry not in possible:
        raise OptionError(
            f"the atlas has no symmetry {symmetry!r} of {task.environment}.",
            where="--symmetry",
            remedy=suggestion(str(symmetry), possible),
        )
    return _resize(dataclasses.replace(task, symmetry=str(symmetry)))


def _with_spec(task: Task, symmetry: str) -> Task:
    """A task of the catalogue with a user's symmetry, fitted to the task's spaces.

    Raises:
        SpecError: the symmetry does not fit, or its maps are not supported by layers.
    """
    claim = find_symmetry(symmetry)
    space = gym.spaces.Box(-np.inf, np.inf, task.observation_shape, np.float64)
    actions = gym.spaces.Box(-1, 1, (task.actions,)) if task.continuous else gym.spaces.Discrete(task.actions)
    claim.bind(space, actions)
    observation, action = ObservationEncoder(space), ActionEncoder(actions)
    encode_claim(claim, observation, action, space)
    if observation.centre is not None or action.centre.any():
        raise SpecError(
            f"the maps of {task.name}'s vectors must be linear, but one of them has an offset.",
            where="--symmetry",
            remedy="Give the environment by its factory (--env file.py:factory), whose vectors are centred first.",
        )
    return _resize(dataclasses.replace(task, symmetry=symmetry))


def _resize(task: Task) -> Task:
    """The task with image networks of widths that suit its group.

    The number of channels is that of the plain network divided by the square root of the group's order, rounded down.
    This keeps the number of parameters about the same, as in the paper.
    """
    if len(task.observation_shape) != 3:
        return task
    root = math.sqrt(task_symmetry(task).group.order)
    networks = {
        name: dataclasses.replace(plan, channels=tuple(int(c / root) for c in task.networks["cnn"].channels))
        if plan.basis in ("equivariant", "nullspace", "random")
        else plan
        for name, plan in task.networks.items()
    }
    return dataclasses.replace(task, networks=networks)


def _without_symmetry(task: Task) -> str:
    """The remedy if a network needs a symmetry and there is none."""
    plain = f"Train a plain network (--network {' or '.join(task.networks)}), or give a symmetry (--symmetry SPEC)"
    if is_object(task.name):
        return f"{plain}."
    name = short_label(task.environment)
    return (
        f"{plain}: `symcheck discover {name} --out my.toml` searches for one, and `symcheck verify-env {name} "
        "--symmetry my.toml` checks one that you wrote."
    )


def resolve_network(task: Task, name: str) -> NetworkPlan:
    """Resolve a network by name, or by a reference to the user's own.

    Args:
        task: the task.
        name: a name of the catalogue, or `pkg.mod:factory` or `path/file.py:factory`.

    Returns:
        Its description. A file is named by its whole path, so that the run can be loaded from anywhere.

    Raises:
        OptionError: the task has no network of that name.
        TargetError: the reference does not exist, or its module does not fit the task.
    """
    if not is_reference(name):
        if not task.symmetry and name in NEEDS_SYMMETRY:
            raise OptionError(
                f"network {name!r} needs a symmetry, but none was given, and the atlas claims none for "
                f"{task.environment}.",
                where="--symmetry",
                remedy=_without_symmetry(task),
            )
        return find_network(task, name)
    source, _, attribute = name.rpartition(":")
    if source.endswith(".py"):
        # Use the full path: a resumed training may be started in another folder.
        name = f"{Path(source).resolve()}:{attribute}"
    plan = NetworkPlan(name, "user", (), DEFAULT_RATE, "a user's own network")
    # Build it once, so that a network that does not fit is rejected here.
    build_module(plan, task)
    return plan
