"""Registers symcheck's environments with Gymnasium, in either order of import.

Gymnasium has no entry point for packages of environments, and `import symcheck` must not import Gymnasium. If Gymnasium
is not imported yet, its import triggers the registration.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_IMAGES = "symcheck.envs.atari.images:AtariImageEnv"

# id: entry points; modules are imported when an environment is made
ENVIRONMENTS: dict[str, dict[str, Any]] = {
    "symcheck/PredatorPrey-v0": {
        "entry_point": "symcheck.envs.predator_prey:PredatorPreyEnv",
        "max_episode_steps": 100,
    },
    "symcheck/Quadrotor-v0": {
        "entry_point": "symcheck.envs.quadrotor:QuadrotorEnv",
        "vector_entry_point": "symcheck.envs.quadrotor:QuadrotorVectorEnv",
        "max_episode_steps": 250,
    },
    "symcheck/Pong-v0": {"entry_point": _IMAGES, "kwargs": {"game": "pong"}},
    "symcheck/SymmetrizedPong-v0": {"entry_point": _IMAGES, "kwargs": {"game": "pong", "symmetrized": True}},
    "symcheck/Breakout-v0": {"entry_point": _IMAGES, "kwargs": {"game": "breakout"}},
    "symcheck/SymmetrizedBreakout-v0": {"entry_point": _IMAGES, "kwargs": {"game": "breakout", "symmetrized": True}},
    "symcheck/PongObjects-v0": {"entry_point": "symcheck.envs.atari.objects:SettablePongEnv"},
    "symcheck/SymmetrizedPongObjects-v0": {
        "entry_point": "symcheck.envs.atari.objects:PongObjectsEnv",
        "kwargs": {"symmetrized": True},
    },
}


def register() -> None:
    """Register every environment of symcheck once; an id that is already registered is kept."""
    import gymnasium

    for env_id, options in ENVIRONMENTS.items():
        # A user's own registration under the same id is not overwritten.
        if env_id not in gymnasium.registry:
            gymnasium.register(env_id, **options)


def register_with_gymnasium() -> None:
    """Register now if Gymnasium is imported, otherwise on its import."""
    if "gymnasium" in sys.modules:
        register()
    elif not any(isinstance(finder, _AfterGymnasium) for finder in sys.meta_path):
        # At the front, so that it is queried before the finders that load the module.
        sys.meta_path.insert(0, _AfterGymnasium())


class _AfterGymnasium(MetaPathFinder):
    """An import finder that finds Gymnasium in the usual way, once, and registers after its import."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != "gymnasium":
            return None
        # Remove it first, otherwise the search below would find it again.
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is None or spec.loader is None:
            return spec
        loader = spec.loader
        execute = loader.exec_module

        def execute_and_register(module: ModuleType) -> None:
            del loader.exec_module  # restore the loader
            execute(module)
            register()

        loader.exec_module = execute_and_register  # type: ignore[method-assign]
        return spec
