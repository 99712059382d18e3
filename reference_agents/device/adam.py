"""Adam with gradient clipping for each run, without synchronisation, so that it can be part of a CUDA graph.

Results equal those of `learning.optimiser.StackedAdam` up to rounding. Learning rates are a column of a tensor, so runs
may be in any order.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from reference_agents.networks.parameters import StackedParameters

BETAS, EPSILON = (0.9, 0.999), 1e-8


class DeviceAdam:
    """One optimiser for every run.

    Args:
        parameters: values and gradients of all runs.
        learning_rates: one per run.
        max_gradient_norm: each run's gradient is scaled down to this 2-norm.
    """

    def __init__(
        self, parameters: StackedParameters, learning_rates: Sequence[float], max_gradient_norm: float
    ) -> None:
        self._values, self._gradients, self._max_norm = parameters.values, parameters.gradients, max_gradient_norm
        device = parameters.values.device
        self._rates = torch.tensor(list(learning_rates), dtype=torch.float32, device=device).unsqueeze(1)
        self._first, self._second = torch.zeros_like(self._values), torch.zeros_like(self._values)
        # A tensor, not a Python number: a recorded graph would repeat the value from the recording.
        self._steps = torch.zeros((), dtype=torch.float64, device=device)

    def step(self) -> torch.Tensor:
        """Clip each run's gradient and update every parameter; returns the 2-norms before clipping, shape (runs,).

        A gradient whose norm is not finite is replaced by zeros.
        """
        norms: torch.Tensor = torch.linalg.vector_norm(self._gradients, dim=1)
        scale = (self._max_norm / (norms + 1e-6)).clamp_(max=1.0)  # 1e-6: as torch.nn.utils.clip_grad_norm_
        # A run whose gradient is not finite keeps its parameters and does not affect the others.
        finite = torch.isfinite(norms).unsqueeze(1)
        gradient = torch.where(finite, self._gradients * scale.unsqueeze(1), 0.0)
        self._steps += 1.0
        # Moments of Kingma and Ba (2015), algorithm 1: m and v, then their bias corrections 1 - beta^t.
        self._first.lerp_(gradient, 1.0 - BETAS[0])
        self._second.mul_(BETAS[1]).addcmul_(gradient, gradient, value=1.0 - BETAS[1])
        first_left, second_left = (1.0 - beta**self._steps for beta in BETAS)
        size = self._rates / first_left.float()
        denominator = (self._second.sqrt() / second_left.sqrt().float()).add_(EPSILON)
        self._values.sub_(size * (self._first / denominator))
        return norms
