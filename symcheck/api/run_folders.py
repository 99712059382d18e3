"""Expands a run folder of reference-agents to the names of its trained networks."""

from __future__ import annotations

from pathlib import Path

from symcheck.errors import TargetError
from symcheck.loading import load_attribute

_FILE = "network.py"  # written by reference-agents into every run folder: one function per trained network


def networks_of_run(target: str) -> list[str]:
    """The trained networks of a run folder; any other target is returned unchanged.

    Args:
        target: the target as the user wrote it.

    Returns:
        "folder/network.py:name" per trained network, or the target alone.

    Raises:
        TargetError: a folder that is not a run folder.

    Example:
        >>> networks_of_run("nets.py:policy")
        ['nets.py:policy']
    """
    folder = Path(target)
    if not folder.is_dir():
        return [target]
    if not (folder / _FILE).is_file():
        raise TargetError(
            f"the folder {folder} is not a run folder of reference-agents: it does not contain {_FILE}.",
            where="TARGET",
            remedy="Create a run folder: reference-agents train cartpole --network equivariant",
        )
    names: list[str] = load_attribute(f"{folder / _FILE}:NETWORKS", where="TARGET")
    return [f"{folder / _FILE}:{name}" for name in names]
