"""Observations as one vector, normalised by statistics that are invariant under the group.

The statistics are those of the observations and all their images: the mean is an invariant vector, and coordinates that
the group mixes share one deviation. The map from x to (x - mean) / deviation therefore commutes with the group action,
and proofs stay valid.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import Tensor

from symcheck.errors import SpecError
from symcheck.intertwiners.build import intertwiner_basis
from symcheck.representations import constructors
from symcheck.representations.coordinates import mixed_coordinates
from symcheck.sb3.claim import PolicyClaim

# Smaller deviations count as those of a constant; VecNormalize of Stable-Baselines3 adds the same to the variance.
_LEAST_VARIANCE = 1e-8


class SymmetricFeatures(BaseFeaturesExtractor):
    """The flat observation relative to the fixed point of the claim, normalised if requested.

    Statistics are gathered by `observe` and take effect at `apply_statistics`. Between two calls of `apply_statistics`
    the function is fixed, so the probabilities of a rollout are those of its update.

    Args:
        space: the space of the observations.
        claim: the action of the group on them.
        normalize: whether to divide by running deviations.

    Raises:
        SpecError: `normalize` is set, but the maps do not preserve norms.
    """

    centre: Tensor | None
    mean: Tensor
    scale: Tensor
    moments: Tensor

    def __init__(self, space: Any, claim: PolicyClaim, normalize: bool) -> None:
        rho = claim.observation
        super().__init__(space, rho.dim)
        if normalize and not rho.is_orthogonal:
            raise SpecError(
                "observations may only be permuted, negated or rotated, but these maps change norms.",
                where="normalize",
                remedy=(
                    "No standard deviation is invariant under these maps: leave normalize out, or rescale the "
                    "observations."
                ),
            )
        self._leaves, self.normalize = claim.leaves, normalize
        centre = None if claim.centre is None else torch.as_tensor(claim.centre, dtype=torch.float32)
        self.register_buffer("centre", centre, persistent=False)
        if normalize:
            self.register_buffer("mean", torch.zeros(rho.dim))
            self.register_buffer("scale", torch.ones(rho.dim))
            # Count, means, and sums of squared differences from them; float64, as sums of many terms.
            self.register_buffer("moments", torch.zeros(1 + 2 * rho.dim, dtype=torch.float64))
            self._blocks = torch.from_numpy(mixed_coordinates(rho))
            self._invariants = intertwiner_basis(constructors.trivial(rho.group), rho)

    def forward(self, observations: Tensor | Mapping[str, Tensor]) -> Tensor:
        """(batch, dim) from observations preprocessed by Stable-Baselines3."""
        flat = self._flatten(observations)
        return (flat - self.mean) * self.scale if self.normalize else flat

    def _flatten(self, observations: Tensor | Mapping[str, Tensor]) -> Tensor:
        parts = []
        for leaf in self._leaves:
            part = observations[leaf.path[0]] if isinstance(observations, Mapping) else observations
            part = part.flatten(1) if part.ndim > 1 else part.unsqueeze(1)
            # Bits are encoded as -1 and 1, so that exchanging them is a change of sign.
            parts.append(2.0 * part - 1.0 if isinstance(leaf.space, spaces.MultiBinary) else part)
        flat = parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)
        return flat if self.centre is None else flat - self.centre

    @torch.no_grad()
    def observe(self, observations: Tensor | Mapping[str, Tensor]) -> None:
        """Add a batch of observations to the statistics; the function does not change until `apply_statistics`."""
        batch = self._flatten(observations).double()
        count, mean, squares = self._split()
        added, centre = float(len(batch)), batch.mean(dim=0)
        total, step = count + added, centre - mean
        # Combine two samples (Chan, Golub and LeVeque 1979).
        squares = squares + (batch - centre).square().sum(dim=0) + step.square() * (count * added / total)
        self.moments.copy_(torch.cat([total, mean + step * (added / total), squares]))

    @torch.no_grad()
    def apply_statistics(self) -> None:
        """From now on, normalise by the statistics of all added observations, averaged over the group."""
        count, mean, squares = self._split()
        # Before the first rollout there are no statistics.
        if not bool(count > 0):
            return
        # Computed as combinations of invariant vectors, so that exchanged coordinates agree to the last bit.
        coefficients = self._invariants.coefficients(mean.cpu().numpy()[:, None])
        invariant = torch.from_numpy(np.ascontiguousarray(self._invariants.combine(coefficients)[:, 0])).to(mean)
        spread = squares / count + (mean - invariant).square()
        blocks = self._blocks.to(mean.device)
        sums = torch.zeros_like(spread).index_add_(0, blocks, spread)
        sizes = torch.zeros_like(spread).index_add_(0, blocks, torch.ones_like(spread))
        shared = (sums / sizes.clamp_min(1.0))[blocks]
        self.mean.copy_(invariant)
        self.scale.copy_((shared + _LEAST_VARIANCE).rsqrt())

    def _split(self) -> tuple[Tensor, Tensor, Tensor]:
        count, mean, squares = torch.split(self.moments, [1, self.features_dim, self.features_dim])
        return count, mean, squares
