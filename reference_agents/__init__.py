"""Reference agents: PPO and A2C that train many seeds and learning rates of a verified network as one program.

The pieces, from the bottom up: `randomness` (one stream per run), `environments` (vectorised over runs), `networks`
(parameters of all runs in one flat buffer), `learning` (returns, losses, optimiser), `evaluation`, `trainer` (the
loop), `verification` (of the claimed equivariance), `record` (the files of a run), `cli`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reference_agents.api import TrainingResult, train

__all__ = ["TrainingResult", "train"]


def __getattr__(name: str) -> Any:
    # Loaded on first use: the command line must start without torch.
    if name in __all__:
        from reference_agents import api

        return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
