"""A network for environments with few different observations: each is evaluated once between two updates.

The grid world has 49 different images. A batch of 80 steps contains many of them more than once, and its five steps use
the same parameters. So the network is evaluated once on all 49 images, acting is a table look-up, and the backward pass
uses the sum of the gradients of each image. This is the same gradient with less than half of the arithmetic.
"""

from __future__ import annotations

import torch

from reference_agents.networks.stacked import StackedNetwork
from symcheck.array_types import Array


class TabulatedNetwork:
    """The same network, evaluated on the indices of observations instead of observations.

    Args:
        network: the network of all runs.
        observations: all possible observations, shape (n, *shape).
        device: the device of the network.
    """

    def __init__(self, network: StackedNetwork, observations: Array, device: torch.device) -> None:
        self._network = network
        self.parameters = network.parameters
        table = torch.from_numpy(observations).to(device)
        # (runs, observations, ...): the table is shared by all runs, without a copy.
        self._observations = table.expand(len(network.parameters.values), *table.shape)
        self._table: tuple[torch.Tensor, torch.Tensor] | None = None
        self._codes = torch.empty(0, dtype=torch.int64)

    def refresh(self) -> None:
        """Discard the stored outputs, which belong to the old parameters."""
        self._network.refresh()
        self._table = None

    def forward(self, observations: torch.Tensor, *, keep: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
        """The policy's outputs (runs, batch, numbers) and values (runs, batch).

        Args:
            observations: indices of observations, shape (runs, batch), int64.
            keep: whether `backward` will be called for this batch.
        """
        if self._table is None:
            # With `keep`, because the gradient of the same pass will be needed.
            self._table = self._network.forward(self._observations, keep=True)
        if keep:
            self._codes = observations
        numbers, values = self._table
        # Rows of the table for the given observations: (runs, batch, numbers).
        return numbers.gather(1, _wide(observations, numbers)), values.gather(1, observations)

    def backward(self, d_numbers: torch.Tensor, d_values: torch.Tensor) -> None:
        """As `StackedNetwork.backward`; the gradients of equal observations are summed."""
        if self._table is None:
            raise RuntimeError("backward needs a forward pass whose intermediate values were kept")
        numbers, values = self._table
        # The transpose of looking up: steps with the same observation add their derivatives.
        d_table = numbers.new_zeros(numbers.shape).scatter_add_(1, _wide(self._codes, numbers), d_numbers)
        d_values_table = values.new_zeros(values.shape).scatter_add_(1, self._codes, d_values)
        self._network.backward(d_table, d_values_table)


def _wide(codes: torch.Tensor, numbers: torch.Tensor) -> torch.Tensor:
    return codes.unsqueeze(-1).expand(-1, -1, numbers.shape[-1])
