"""Finding what to learn: a task of the catalogue, or any Gymnasium id whose symmetry the atlas knows."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import gymnasium as gym

from reference_agents.catalog import TASKS, TUNED_SWEEP, NetworkPlan, Task, control_networks, find_network
from reference_agents.environments.gymnasium_vector import check_spaces, make
from reference_agents.networks.user import build_module
from reference_agents.symmetries import task_symmetry
from symcheck.envs import atlas
from symcheck.errors import OptionError, suggestion
from symcheck.loading import is_reference

DEFAULT_RATE = 0.001


def resolve_task(name: str, symmetry: str | None = None) -> Task:
    """The task of a name or of a Gymnasium id.

    Args:
        name: a task's name, the id of its environment, or any id with a claimed symmetry of vectors in the atlas.
        symmetry: an atlas entry of that environment; the task's own, or the first that is claimed, where None.

    Returns:
        The task; for an id outside the catalogue, one with the networks of the vector tasks.

    Raises:
        OptionError: neither a task nor an id with a symmetry, or a symmetry of another environment; suggests the
            nearest.
        TargetError: an id whose environment cannot be made, or whose spaces no agent here can use.

    Example:
        >>> resolve_task("CartPole-v1").name
        'cartpole'
        >>> resolve_task("gridworld", "predator-prey/rotations-and-reflections").networks["equivariant"].channels
        (5, 11, 181)
    """
    known = {**TASKS, **{task.environment: task for task in TASKS.values()}}
    if name in known:
        return _with_symmetry(known[name], symmetry)
    # The first claimed entry, by name, is the default symmetry.
    claimed = [entry for entry in atlas.entries_for(name) if entry.claim]
    if claimed:
        return _with_symmetry(_task_of(name, claimed[0].name), symmetry)
    if is_reference(name):
        raise OptionError(
            f"expected a task, or a Gymnasium id with a symmetry in the atlas, got {name!r}.",
            where="--env",
            remedy="Environments of your own are trained by an agent of your own, with networks of symcheck.nn: see "
            "docs/how-to/training-loop.md and docs/how-to/stable-baselines3.md.",
        )
    # Gymnasium's ids end in a version; anything else is meant as the name of a task.
    if "-v" not in name:
        raise OptionError(f"unknown task {name!r}.", where="TASK", remedy=suggestion(name, TASKS))
    raise OptionError(f"the atlas claims no symmetry of {name!r}.", where="--env", remedy=_instead_of(name))


def _instead_of(environment_id: str) -> str:
    """What to train in place of an id without a claimed symmetry: the task of the same game, or what there is."""
    # "ALE/Pong-v5" is the game of task "pong".
    game = environment_id.rpartition("/")[2].partition("-v")[0].lower()
    if game in TASKS:
        return f"The task {game!r} plays it: reference-agents train {game}."
    with_symmetry = sorted({id_ for entry in atlas.entries() if entry.claim for id_ in entry.environments})
    return suggestion(environment_id, [*with_symmetry, *TASKS])


def _with_symmetry(task: Task, symmetry: str | None) -> Task:
    """The task with networks of another of its symmetries.

    Channels of image networks are those of the plain network over the root of the group's order, rounded down, which
    keeps the number of parameters about the same, as in the paper.
    """
    if symmetry in (None, task.symmetry):
        return task
    possible = [entry.name for entry in atlas.entries_for(task.environment)]
    if symmetry not in possible:
        raise OptionError(
            f"the atlas has no symmetry {symmetry!r} of {task.environment}.",
            where="--symmetry",
            remedy=suggestion(str(symmetry), possible),
        )
    turned = dataclasses.replace(task, symmetry=str(symmetry))
    if len(task.observation_shape) != 3:
        return turned
    # Widths shrink by sqrt(|G|), so that the number of free weights stays about the same.
    root = math.sqrt(task_symmetry(turned).group.order)
    networks = {
        name: dataclasses.replace(plan, channels=tuple(int(c / root) for c in task.networks["cnn"].channels))
        if plan.basis in ("equivariant", "nullspace", "random")
        else plan
        for name, plan in task.networks.items()
    }
    return dataclasses.replace(turned, networks=networks)


def resolve_network(task: Task, name: str) -> NetworkPlan:
    """The network of a name, or of a reference to a user's own.

    Args:
        task: what it is to learn.
        name: a name of the catalogue, or `pkg.mod:factory` or `path/file.py:factory`.

    Returns:
        Its description. A file is named by its whole path, so that the run can be loaded from anywhere.

    Raises:
        OptionError: a name that the task does not have.
        TargetError: a reference to nothing, or to a module that does not fit the task.
    """
    if not is_reference(name):
        return find_network(task, name)
    source, _, attribute = name.rpartition(":")
    if source.endswith(".py"):
        # The full path: a resumed training may be started in another folder.
        name = f"{Path(source).resolve()}:{attribute}"
    plan = NetworkPlan(name, "user", (), DEFAULT_RATE, "a user's own network")
    # Built once, so that a network that does not fit is refused now.
    build_module(plan, task)
    return plan


def _task_of(environment_id: str, symmetry: str) -> Task:
    environment = make(environment_id)
    check_spaces(environment, environment_id)
    shape, action = environment.observation_space.shape or (), environment.action_space
    environment.close()
    if len(shape) != 1:
        raise OptionError(f"expected observations that are vectors, got shape {shape}.", where="TASK")
    continuous = isinstance(action, gym.spaces.Box)
    count = int(action.shape[0]) if isinstance(action, gym.spaces.Box) else int(getattr(action, "n", 0))
    return Task(
        environment_id,
        environment_id,
        symmetry,
        None,
        "ppo",
        shape,
        count,
        TUNED_SWEEP,
        control_networks(DEFAULT_RATE, continuous=continuous),
        "a Gymnasium environment of the atlas",
        continuous,
    )
