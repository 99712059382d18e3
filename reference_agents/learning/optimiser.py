"""Adam with gradient clipping; each run has its own learning rate, moments and gradient norm.

All parameters of all runs are in one buffer, and torch's fused Adam needs one parameter group per learning rate, so
runs with equal rates must be adjacent.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import torch

from reference_agents.networks.parameters import StackedParameters


class StackedAdam:
    """One optimiser for every run.

    Args:
        parameters: values and gradients of all runs.
        learning_rates: one learning rate per run; equal ones must be adjacent.
        max_gradient_norm: each run's gradient is scaled down to this 2-norm.
        separately: whether runs with equal initial rates may get different rates later.
    """

    def __init__(
        self,
        parameters: StackedParameters,
        learning_rates: Sequence[float],
        max_gradient_norm: float,
        *,
        separately: bool = False,
    ) -> None:
        self._gradients = parameters.gradients
        self._max_norm = max_gradient_norm
        groups: list[dict[str, Any]] = []
        start = 0
        # Runs with the same learning rate are adjacent (`Job.runs`), so each rate is one group.
        alike = (list(members) for _, members in itertools.groupby(learning_rates))
        for members in ([rate] for rate in learning_rates) if separately else alike:
            stop, rate = start + len(members), members[0]
            values = parameters.values[start:stop]
            # A view of the gradient buffer, which `backward` writes and Adam reads.
            values.grad = parameters.gradients[start:stop]
            groups.append({"params": [values], "lr": rate})
            start = stop
        # The defaults of Kingma and Ba (2015); `fused` takes one pass over each group.
        self._rates = [float(group["lr"]) for group in groups]
        self._adam = torch.optim.Adam(groups, betas=(0.9, 0.999), eps=1e-8, fused=True)

    def scale_rates(self, factors: Sequence[float]) -> None:
        """Set each group's learning rate to its initial value times a factor; a single factor applies to all."""
        each = [factors[0]] * len(self._rates) if len(factors) == 1 else factors
        for group, rate, factor in zip(self._adam.param_groups, self._rates, each, strict=True):
            group["lr"] = factor * rate

    def state(self) -> dict[str, Any]:
        """Moments and step counts."""
        return self._adam.state_dict()

    def restore(self, state: dict[str, Any]) -> None:
        """Restore a state of the same runs."""
        self._adam.load_state_dict(state)

    def step(self) -> torch.Tensor:
        """Clip each run's gradient and update every parameter; returns the 2-norms before clipping, shape (runs,).

        A run whose norm is not finite has diverged. Its gradient is replaced by zeros, so no NaN spreads; the caller
        decides how to continue.
        """
        norms: torch.Tensor = torch.linalg.vector_norm(self._gradients, dim=1)
        scale = (self._max_norm / (norms + 1e-6)).clamp_(max=1.0)  # 1e-6: as torch.nn.utils.clip_grad_norm_
        self._gradients.mul_(scale.unsqueeze(1))
        finite = torch.isfinite(norms)
        # On a device, a branch would have to wait for the result; writing the zeros unconditionally is cheaper.
        if norms.device.type != "cpu" or not bool(finite.all()):
            self._gradients.masked_fill_(~finite.unsqueeze(1), 0.0)
        self._adam.step()
        return norms
