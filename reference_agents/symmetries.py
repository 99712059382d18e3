"""The symmetries of the tasks, from the atlas of known environments."""

from __future__ import annotations

import functools

from reference_agents.catalog import Task
from symcheck.envs import atlas
from symcheck.symmetry.symmetry import Symmetry


def task_symmetry(task: Task) -> Symmetry:
    """The symmetry that a task's equivariant networks have, and that `verify-net` is asked about.

    Example:
        >>> from reference_agents.catalog import find_task
        >>> task_symmetry(find_task("cartpole")).group.order
        2
    """
    return _symmetry(task.symmetry)


@functools.cache
def _symmetry(name: str) -> Symmetry:
    return atlas.entry(name).symmetry()


def spatial_operators(task: Task) -> tuple[str, ...] | None:
    """Of a task that shows images the spatial operator of each generator; None where it shows vectors.

    Example:
        >>> from reference_agents.catalog import find_task
        >>> spatial_operators(find_task("gridworld"))
        ('rot90',)
    """
    if len(task.observation_shape) != 3:
        return None
    return tuple(str(operator) for operator in atlas.entry(task.symmetry).data["observation"])
