"""Check, build, prove and train with the symmetries of reinforcement-learning problems.

The public names load what they need when they are first used: `import symcheck` alone imports neither torch nor
gymnasium nor hypothesis.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from symcheck import errors, groups, intertwiners, mdp, mujoco, nn, representations, testing, wrappers
    from symcheck.api.audit_policy import audit_policy
    from symcheck.api.discover import discover
    from symcheck.api.discover_game import discover_game
    from symcheck.api.report import Report
    from symcheck.api.verify_env import verify_env
    from symcheck.api.verify_game import verify_game
    from symcheck.api.verify_mirror import verify_mirror
    from symcheck.api.verify_net import verify_net
    from symcheck.engine.policies.normalisers import symmetrise_normaliser
    from symcheck.envs.state_access import register_state_access
    from symcheck.intertwiners import conv_intertwiner_basis, intertwiner_basis
    from symcheck.symmetry.symmetry import Symmetry

__version__ = "0.1.0"

_MODULES = ("errors", "groups", "intertwiners", "mdp", "mujoco", "nn", "representations", "testing", "wrappers")
_ATTRIBUTES = {
    "Report": "symcheck.api.report",
    "Symmetry": "symcheck.symmetry.symmetry",
    "audit_policy": "symcheck.api.audit_policy",
    "conv_intertwiner_basis": "symcheck.intertwiners",
    "discover": "symcheck.api.discover",
    "discover_game": "symcheck.api.discover_game",
    "intertwiner_basis": "symcheck.intertwiners",
    "register_state_access": "symcheck.envs.state_access",
    "symmetrise_normaliser": "symcheck.engine.policies.normalisers",
    "verify_env": "symcheck.api.verify_env",
    "verify_game": "symcheck.api.verify_game",
    "verify_mirror": "symcheck.api.verify_mirror",
    "verify_net": "symcheck.api.verify_net",
}

__all__ = [
    "Report",
    "Symmetry",
    "audit_policy",
    "conv_intertwiner_basis",
    "discover",
    "discover_game",
    "errors",
    "groups",
    "intertwiner_basis",
    "intertwiners",
    "mdp",
    "mujoco",
    "nn",
    "register_state_access",
    "representations",
    "symmetrise_normaliser",
    "testing",
    "verify_env",
    "verify_game",
    "verify_mirror",
    "verify_net",
    "wrappers",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"symcheck.{name}")
    if name in _ATTRIBUTES:
        value = getattr(importlib.import_module(_ATTRIBUTES[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'symcheck' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)


importlib.import_module("symcheck.envs.registration").register_with_gymnasium()
