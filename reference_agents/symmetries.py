"""The symmetries of the tasks."""

from __future__ import annotations

from reference_agents.catalog import Task
from symcheck.groups.catalog import cyclic
from symcheck.symmetry.symmetry import Symmetry


def task_symmetry(task: Task) -> Symmetry:
    """The symmetry that a task's equivariant networks have, and that `verify-net` is asked about.

    Example:
        >>> from reference_agents.catalog import find_task
        >>> task_symmetry(find_task("cartpole")).group.order
        2
    """
    return _SYMMETRIES[task.symmetry]()


def _cartpole_mirror() -> Symmetry:
    """Left and right exchanged: every component of the state changes its sign, the two pushes change places."""
    return Symmetry("cartpole/mirror", cyclic(2), observation=[[-1, -1, -1, -1]], action=[[1, 0]])


_SYMMETRIES = {"cartpole/mirror": _cartpole_mirror}
