"""The symmetries of the tasks, from the atlas or from the user."""

from __future__ import annotations

import functools

from reference_agents.catalog import Task
from reference_agents.encoding.environment import encoded_environment
from symcheck.entries.forms import SpatialEntry
from symcheck.envs.specs import resolve_symmetry
from symcheck.errors import OptionError
from symcheck.symmetry.symmetry import Symmetry


def task_symmetry(task: Task) -> Symmetry:
    """The symmetry of a task's equivariant networks, which `verify-net` checks.

    Example:
        >>> from reference_agents.catalog import find_task
        >>> task_symmetry(find_task("cartpole")).group.order
        2

    Raises:
        OptionError: no symmetry is claimed for the task.
    """
    claim = encoded_environment(task.name, task.symmetry).symmetry if task.own and task.symmetry else None
    if not task.symmetry or (task.own and claim is None):
        raise OptionError(
            f"a symmetry of {task.environment} is needed, but none was given.",
            where="--symmetry",
            remedy="Give a SPEC, or train a network that needs none (--network mlp, or cnn for images).",
        )
    return _symmetry(task.symmetry) if claim is None else claim


@functools.cache
def _symmetry(name: str) -> Symmetry:
    return resolve_symmetry(name).symmetry


def spatial_operators(task: Task) -> tuple[str, ...] | None:
    """The spatial operator of each generator for a task with images; None for vectors.

    Example:
        >>> from reference_agents.catalog import find_task
        >>> spatial_operators(find_task("gridworld"))
        ('rot90',)
    """
    if len(task.observation_shape) != 3:
        return None
    if task.own:
        return encoded_environment(task.name, task.symmetry).spatial
    entries = task_symmetry(task).observation
    return tuple(entry.operator if isinstance(entry, SpatialEntry) else "identity" for entry in entries)
