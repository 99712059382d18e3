"""Action distributions parametrised by a policy's outputs: sampling, log probabilities, and derivatives in closed form.

A network gives each observation a vector of numbers. For discrete actions they are logits; for continuous ones the
mean and the logarithm of the standard deviation of each coordinate, which are independent Gaussians.

    categorical   d log p[a] / d logit_j = 1[j = a] - p_j         d H / d logit_j = -p_j (log p_j + H)
    Gaussian      d log p / d mean = (a - mean) / sigma^2         d H / d mean = 0
                  d log p / d log sigma = ((a - mean) / sigma)^2 - 1    d H / d log sigma = 1

Each class works on tensors (runs, batch, numbers) and on actions (runs, batch) or (runs, batch, coordinates).
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch

from symcheck.array_types import Floats

SOFT_BOUND = 1.1
"""Mean actions up to this multiple of their bound are not penalised, because the bound itself can be the best
action."""


class Distribution(Protocol):
    """The action distribution that the outputs of a policy parametrise."""

    def noise_shape(self, environments: int) -> tuple[int, ...]:
        """The shape of the uniform numbers for one step of one run."""

    def sample(self, numbers: torch.Tensor, uniforms: Floats) -> npt.NDArray[Any]:
        """Actions of every environment, from uniform numbers in [0, 1) of shape (runs, *noise_shape)."""

    def mode(self, numbers: torch.Tensor) -> npt.NDArray[Any]:
        """The most likely action of every environment."""

    def log_probability(self, numbers: torch.Tensor, actions: torch.Tensor) -> torch.Tensor:
        """Log probabilities (or densities) of actions, shape (runs, batch)."""

    def derivatives(
        self, numbers: torch.Tensor, actions: torch.Tensor, d_log_probability: torch.Tensor, entropy_weight: float
    ) -> torch.Tensor:
        """Derivatives of sum(d_log_probability * log p) - entropy_weight * sum(entropy) with respect to the outputs."""


class Categorical:
    """Discrete actions, int64; the numbers are logits."""

    def noise_shape(self, environments: int) -> tuple[int, ...]:
        """One uniform number for each environment."""
        return (environments,)

    def sample(self, numbers: torch.Tensor, uniforms: Floats) -> npt.NDArray[Any]:
        """Draw by inverting the cumulative distribution.

        Example:
            >>> Categorical().sample(torch.zeros(1, 2, 2), np.array([[0.2, 0.7]])).tolist()
            [[0, 1]]
        """
        # In float64: float32 sums may end 6e-8 below 1, and the remainder would be assigned to the last action. One
        # array per action, because reductions over a few adjacent numbers are slow.
        logits = [column.astype(np.float64) for column in np.moveaxis(numbers.cpu().numpy(), -1, 0)]
        largest = functools.reduce(np.maximum, logits)
        cumulative = list(itertools.accumulate(np.exp(logit - largest) for logit in logits))
        thresholds = uniforms * cumulative[-1]
        # The action is the number of sums at or below the threshold, without the last sum.
        actions: npt.NDArray[np.int64] = np.zeros(uniforms.shape, dtype=np.int64)
        for part in cumulative[:-1]:
            actions += thresholds >= part
        return actions

    def mode(self, numbers: torch.Tensor) -> npt.NDArray[Any]:
        """The first of the largest logits."""
        return numbers.argmax(-1).cpu().numpy()

    def log_probability(self, numbers: torch.Tensor, actions: torch.Tensor) -> torch.Tensor:
        """As `Distribution.log_probability`."""
        return torch.log_softmax(numbers, dim=-1).gather(-1, actions.unsqueeze(-1)).squeeze(-1)

    def derivatives(
        self, numbers: torch.Tensor, actions: torch.Tensor, d_log_probability: torch.Tensor, entropy_weight: float
    ) -> torch.Tensor:
        """As `Distribution.derivatives`."""
        log_p = torch.log_softmax(numbers, dim=-1)
        p = log_p.exp()
        entropy = -(p * log_p).sum(-1, keepdim=True)
        # d(entropy)/d(logit_k) = -p_k (log p_k + entropy), subtracted with its weight.
        d_numbers = p * (log_p + entropy).mul_(entropy_weight)
        # d(log p_a)/d(logit_k) = 1[k = a] - p_k.
        d_numbers.sub_(p * d_log_probability.unsqueeze(-1))
        return d_numbers.scatter_add_(-1, actions.unsqueeze(-1), d_log_probability.unsqueeze(-1))


class MultiCategorical:
    """Several discrete choices at once, independent given the observation; their logits are concatenated.

    Args:
        choices: the number of values of each component.
    """

    def __init__(self, choices: Sequence[int]) -> None:
        self.choices = tuple(choices)
        self._one = Categorical()

    def noise_shape(self, environments: int) -> tuple[int, ...]:
        """One uniform number for each component of each environment."""
        return (environments, len(self.choices))

    def sample(self, numbers: torch.Tensor, uniforms: Floats) -> npt.NDArray[Any]:
        """Each component by inverting its own cumulative distribution."""
        parts = enumerate(self._split(numbers))
        return np.stack([self._one.sample(part, uniforms[..., place]) for place, part in parts], axis=-1)

    def mode(self, numbers: torch.Tensor) -> npt.NDArray[Any]:
        """The most likely value of each component."""
        return np.stack([self._one.mode(part) for part in self._split(numbers)], axis=-1)

    def log_probability(self, numbers: torch.Tensor, actions: torch.Tensor) -> torch.Tensor:
        """As `Distribution.log_probability`."""
        pairs = zip(self._split(numbers), actions.unbind(-1), strict=True)
        return torch.stack([self._one.log_probability(part, chosen) for part, chosen in pairs]).sum(0)

    def derivatives(
        self, numbers: torch.Tensor, actions: torch.Tensor, d_log_probability: torch.Tensor, entropy_weight: float
    ) -> torch.Tensor:
        """As `Distribution.derivatives`: log probabilities and entropies are sums over components."""
        pairs = zip(self._split(numbers), actions.unbind(-1), strict=True)
        each = [self._one.derivatives(part, chosen, d_log_probability, entropy_weight) for part, chosen in pairs]
        return torch.cat(each, dim=-1)

    def _split(self, numbers: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return torch.split(numbers, list(self.choices), dim=-1)


class Gaussian:
    """Continuous actions, float32; the outputs are means, then log standard deviations.

    Args:
        coordinates: the number of coordinates of one action.
        bounds: the bound of each coordinate, infinity if it has none; None if no coordinate is bounded.
    """

    def __init__(self, coordinates: int, bounds: Floats | None = None) -> None:
        self.coordinates = coordinates
        self.bounds = None if bounds is None else torch.as_tensor(bounds, dtype=torch.float32)

    def noise_shape(self, environments: int) -> tuple[int, ...]:
        """One uniform number for each coordinate of each environment."""
        return (environments, self.coordinates)

    def sample(self, numbers: torch.Tensor, uniforms: Floats) -> npt.NDArray[Any]:
        """Draw by inverting the cumulative distribution; the number 0 is replaced by half of the smallest step."""
        from scipy.special import ndtri

        mean, log_deviation = (part.numpy() for part in numbers.cpu().chunk(2, dim=-1))
        # u = 0 would give minus infinity: 2^-54 is half of the smallest positive number of the stream.
        noise = ndtri(np.maximum(uniforms, 2.0**-54)).astype(np.float32)
        actions: npt.NDArray[np.float32] = mean + np.exp(log_deviation) * noise
        return actions

    def mode(self, numbers: torch.Tensor) -> npt.NDArray[Any]:
        """The means."""
        return numbers.chunk(2, dim=-1)[0].cpu().numpy()

    def log_probability(self, numbers: torch.Tensor, actions: torch.Tensor) -> torch.Tensor:
        """As `Distribution.log_probability`."""
        mean, log_deviation = numbers.chunk(2, dim=-1)
        scaled = (actions - mean) * torch.exp(-log_deviation)
        # log N(a; mean, deviation), summed over independent coordinates.
        return -(0.5 * scaled.square() + log_deviation + 0.5 * math.log(2.0 * math.pi)).sum(-1)

    def derivatives(
        self, numbers: torch.Tensor, actions: torch.Tensor, d_log_probability: torch.Tensor, entropy_weight: float
    ) -> torch.Tensor:
        """As `Distribution.derivatives`."""
        mean, log_deviation = numbers.chunk(2, dim=-1)
        precision = torch.exp(-log_deviation)
        scaled = (actions - mean) * precision
        weight = d_log_probability.unsqueeze(-1)
        # d(log p)/d(mean) = (a - mean) / deviation^2; d(log p)/d(log deviation) = z^2 - 1; d(entropy)/d(log deviation)
        # = 1.
        return torch.cat([weight * scaled * precision, weight * (scaled.square() - 1.0) - entropy_weight], dim=-1)

    def bound_derivatives(self, numbers: torch.Tensor, weight: float) -> torch.Tensor:
        """Gradient of weight * sum(e^2) in the outputs, with e = max(0, |mean| / bound - SOFT_BOUND)."""
        mean, log_deviation = numbers.chunk(2, dim=-1)
        if self.bounds is None:
            return torch.zeros_like(numbers)
        bounds = self.bounds.to(mean.device)
        excess = (mean.abs() / bounds - SOFT_BOUND).clamp_(min=0.0)
        return torch.cat([2.0 * weight * excess * mean.sign() / bounds, torch.zeros_like(log_deviation)], dim=-1)
