"""Normalises the observations of each run by their running mean and standard deviation.

Statistics are updated between two batches and fixed within one, so the probabilities of a rollout are those of its
update. For networks with a symmetry they are the statistics of the observations and all their images: the mean is an
invariant vector, and coordinates that the group mixes share a deviation, so normalisation commutes with the group. At
the end of training, `fold_in` moves the normalisation into the first layer, whose form does not change; saved, verified
and exported networks take raw observations.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from reference_agents.networks.parameters import StackedParameters
from reference_agents.networks.plans import ActorCriticPlan
from symcheck.array_types import Array, Floats
from symcheck.intertwiners.build import intertwiner_basis
from symcheck.representations import constructors
from symcheck.representations.coordinates import mixed_coordinates
from symcheck.representations.representation import Representation

# Lower bound of deviations, so that a coordinate that was constant is scaled up at most thirtyfold when it changes for
# the first time.
LEAST_DEVIATION = 0.03


class ObservationScale:
    """The mean and standard deviation of each run's observations.

    Args:
        runs: the number of runs.
        size: the length of one observation.
        rho: the representation on observations; None for separate statistics of each coordinate.

    Example:
        >>> scale = ObservationScale(1, 2, None)
        >>> scale.add(np.array([[[0.0, 5.0], [2.0, 7.0]]]))
        >>> scale.apply()
        >>> scale.normalise(np.array([[[2.0, 6.0]]])).tolist()
        [[[1.0, 0.0]]]
    """

    def __init__(self, runs: int, size: int, rho: Representation | None) -> None:
        self._count: Floats = np.zeros((runs, 1))
        self._mean, self._squares = np.zeros((runs, size)), np.zeros((runs, size))
        # The statistics in use; initially the identity.
        self.shift: Floats = np.zeros((runs, size))
        self.factor: Floats = np.ones((runs, size))
        self._average: Floats | None = None
        self._blocks: Floats = np.eye(size)
        if rho is not None:
            invariants = intertwiner_basis(constructors.trivial(rho.group), rho)
            basis = np.asarray(invariants.matrices(), dtype=np.float64)[:, :, 0]
            # The projection onto invariant vectors, applied to row vectors.
            self._average = basis.T @ (basis / invariants.squared_norms[:, None])
            labels = mixed_coordinates(rho)
            same = (labels[:, None] == labels[None, :]).astype(np.float64)
            self._blocks = same / same.sum(1, keepdims=True)

    def add(self, observations: Array) -> None:
        """Add observations (runs, environments, size) to the statistics."""
        seen = np.asarray(observations, dtype=np.float64)
        size = seen.shape[1]
        mean, total = seen.mean(1), self._count + size
        difference = mean - self._mean
        # Combine two samples: Chan, Golub and LeVeque (1983), equation 1.5.
        self._squares += seen.var(1) * size + difference**2 * self._count * size / total
        self._mean += difference * size / total
        self._count = total

    def apply(self) -> None:
        """Apply the statistics of all observations added so far."""
        # A copy: `add` updates the running mean in place, and the statistics in use must not move with it.
        mean = self._mean.copy() if self._average is None else self._mean @ self._average
        spread = self._squares / np.maximum(self._count, 1.0) + (self._mean - mean) ** 2
        deviation = np.sqrt(spread @ self._blocks)
        self.shift, self.factor = mean, 1.0 / np.maximum(deviation, LEAST_DEVIATION)

    def normalise(self, observations: Array) -> npt.NDArray[np.float32]:
        """Normalise observations (runs, environments, size) by the current statistics."""
        scaled: Array = (observations - self.shift[:, None]) * self.factor[:, None]
        return scaled.astype(np.float32)

    def state(self) -> dict[str, Any]:
        """The complete state for `restore`."""
        return {name: torch.from_numpy(part.copy()) for name, part in self._parts().items()}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore a state of the same runs."""
        parts = {name: state[name].numpy().copy() for name in self._parts()}
        self._count, self._mean, self._squares = parts["count"], parts["mean"], parts["squares"]
        self.shift, self.factor = parts["shift"], parts["factor"]

    def _parts(self) -> dict[str, Floats]:
        return {
            "count": self._count,
            "mean": self._mean,
            "squares": self._squares,
            "shift": self.shift,
            "factor": self.factor,
        }


def fold_in(scale: ObservationScale, plan: ActorCriticPlan, parameters: StackedParameters) -> None:
    """Change the first layer of every run in place so that it takes raw instead of normalised observations.

    W' = W diag(factor) and b' = b - W' shift. If factor and shift respect the group, W' and b' are in the span of the
    layer's bases again, because diag(factor) commutes with the group and shift is invariant.

    Args:
        scale: the current statistics.
        plan: the network's layers.
        parameters: the parameters of all runs.
    """
    layer = plan.layers[0]
    views = parameters.layout.views(parameters.values)
    weights = views[f"{layer.name}.weight"]
    biases = views.get(f"{layer.name}.bias")
    basis = np.asarray(layer.weight_basis, dtype=np.float64)
    for run in range(len(weights)):
        factor, shift = scale.factor[run], scale.shift[run]
        coefficients = weights[run].double().numpy()
        # (rank, channels in, channels out); an observation is channels times components, components outside.
        columns = factor.reshape(basis.shape[2], layer.channels_in)
        # <B_s, B_r diag(factor)> for each input channel: basis matrices have norm 1 and are orthogonal.
        mixing = np.einsum("sde,rde,ei->isr", basis, basis, columns)
        folded = np.einsum("isr,rio->sio", mixing, coefficients)
        weights[run].copy_(torch.from_numpy(folded))
        if biases is not None and layer.bias_basis is not None:
            # The input scale is applied after the normalisation and before the first layer.
            offset = plan.input_scale * np.einsum("sde,sio,ei->do", basis, folded, shift.reshape(columns.shape))
            bias_basis = np.asarray(layer.bias_basis, dtype=np.float64)[:, :, 0]
            biases[run].sub_(torch.from_numpy(bias_basis @ offset).unsqueeze(1))
