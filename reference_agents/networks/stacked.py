"""The interface of stacked networks that learners use."""

from __future__ import annotations

from typing import Protocol

import torch

from reference_agents.networks.parameters import StackedParameters


class StackedNetwork(Protocol):
    """A policy and a value for every run."""

    parameters: StackedParameters

    def refresh(self) -> None:
        """Rebuild everything derived from the parameters after they have changed."""

    def forward(self, observations: torch.Tensor, *, keep: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
        """The policy's outputs (runs, batch, numbers) and values (runs, batch) for observations (runs, batch, ...)."""

    def backward(self, d_numbers: torch.Tensor, d_values: torch.Tensor) -> None:
        """Write every parameter's gradient for the batch of the last `forward(..., keep=True)`."""
