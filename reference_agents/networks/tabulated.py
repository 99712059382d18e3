"""A network over an environment that has few different observations: each is examined once between two updates.

The grid world shows one of 49 images. A batch of 80 steps sees many of them twice, and the five steps that gather it
see the same parameters; so the network is asked once for all 49, acting is a look-up, and learning sends back to each
image the sum of its gradients. This is the same gradient in less than half of the arithmetic.
"""

from __future__ import annotations

import torch

from reference_agents.networks.stacked import StackedNetwork
from symcheck.array_types import Array


class TabulatedNetwork:
    """The same network, asked with the numbers of observations instead of observations.

    Args:
        network: the network of all runs.
        observations: every observation there is, shape (n, *shape).
        device: where the network lives.
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
        """Forget the answers, which belong to the old parameters."""
        self._network.refresh()
        self._table = None

    def forward(self, observations: torch.Tensor, *, keep: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
        """The policy's numbers (runs, batch, numbers) and values (runs, batch).

        Args:
            observations: numbers of observations, shape (runs, batch), int64.
            keep: whether `backward` will be called for this batch.
        """
        if self._table is None:
            # With `keep`, because the gradient will be wanted of the same pass.
            self._table = self._network.forward(self._observations, keep=True)
        if keep:
            self._codes = observations
        numbers, values = self._table
        # Rows of the table at the numbers seen: (runs, batch, numbers).
        return numbers.gather(1, _wide(observations, numbers)), values.gather(1, observations)

    def backward(self, d_numbers: torch.Tensor, d_values: torch.Tensor) -> None:
        """As `StackedNetwork.backward`: what belongs to the same observation is added up."""
        if self._table is None:
            raise RuntimeError("backward needs a forward pass that was kept")
        numbers, values = self._table
        # The transpose of looking up: steps with the same observation add their derivatives.
        d_table = numbers.new_zeros(numbers.shape).scatter_add_(1, _wide(self._codes, numbers), d_numbers)
        d_values_table = values.new_zeros(values.shape).scatter_add_(1, self._codes, d_values)
        self._network.backward(d_table, d_values_table)


def _wide(codes: torch.Tensor, numbers: torch.Tensor) -> torch.Tensor:
    return codes.unsqueeze(-1).expand(-1, -1, numbers.shape[-1])
