"""Symmetries as arguments: a SPEC (see `symcheck.envs.specs`), or the layout of a robot's observation."""

from __future__ import annotations

from typing import Any

from symcheck.envs.specs import THREE_WAYS, NamedSymmetry, claimed_symmetries, resolve_symmetry
from symcheck.symmetry.symmetry import Symmetry

__all__ = ["THREE_WAYS", "NamedSymmetry", "claimed_symmetries", "resolve_symmetry", "symmetry_of_layout"]


def symmetry_of_layout(env: Any, layout: Any) -> Symmetry:
    """The mirror symmetry of a robot's environment whose observation a layout describes.

    Args:
        env: an environment with a MuJoCo model.
        layout: a layout file, or a dictionary of its fields.

    Returns:
        The symmetry, derived from the environment's own model.

    Raises:
        SymcheckError: the environment has no model, or the layout does not fit it.
    """
    from symcheck.mujoco.mirror import mirror

    return mirror(env, layout=layout)
