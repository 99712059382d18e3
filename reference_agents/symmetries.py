"""The symmetries of the tasks: from the atlas of known environments, but for the grid world's."""

from __future__ import annotations

from reference_agents.catalog import Task
from symcheck.envs import atlas
from symcheck.groups.catalog import cyclic
from symcheck.symmetry.symmetry import Symmetry

SPATIAL: dict[str, tuple[str, ...]] = {"predator-prey/rot90": ("rot90",)}
"""Symmetries of image tasks: the spatial operator of each generator."""


def task_symmetry(task: Task) -> Symmetry:
    """The symmetry that a task's equivariant networks have, and that `verify-net` is asked about.

    Example:
        >>> from reference_agents.catalog import find_task
        >>> task_symmetry(find_task("cartpole")).group.order
        2
    """
    own = _SYMMETRIES.get(task.symmetry)
    return own() if own is not None else atlas.entry(task.symmetry).symmetry()


def _grid_rotation() -> Symmetry:
    """A quarter turn of the image, counter-clockwise; the four compass actions follow, staying stays."""
    return Symmetry("predator-prey/rot90", cyclic(4), observation=["rot90"], action=[[0, 2, 3, 4, 1]])


_SYMMETRIES = {"predator-prey/rot90": _grid_rotation}
