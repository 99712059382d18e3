"""Networks of integer observations: a Discrete value becomes a one-hot vector, on which a permutation of values acts.

The network itself receives the integers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn

from symcheck.engine.networks.subject.precision import copy_network


class WholeNumbers(nn.Module):
    """A network of integer observations, as a network of vectors.

    Args:
        net: the network; it receives integers of shape (n,), or (n, k) for several numbers.
        start: the lowest value of a Discrete space, whose vectors are one-hot; None for several numbers, which the
            vector contains unchanged.
    """

    def __init__(self, net: nn.Module, start: int | None) -> None:
        super().__init__()
        self.structured_input = net
        self._start = start

    def forward(self, inputs: torch.Tensor) -> Any:
        """The network's output, on inputs of shape (n, values) or (n, k)."""
        whole = inputs.round().long() if self._start is None else inputs.argmax(dim=1) + self._start
        return self.structured_input(whole)


def of_whole_numbers(net: nn.Module, space: Any) -> nn.Module:
    """A network of vectors: the network itself, or a wrapper if its observation space consists of integers.

    Args:
        net: the network; copied before any run.
        space: its observation space, or None.
    """
    if hasattr(space, "n") and hasattr(space, "start"):
        start: int | None = int(space.start)
        whole, vectors = torch.full((2,), int(space.start)), torch.eye(int(space.n))[:2]
    elif hasattr(space, "nvec"):
        start = None
        whole = torch.zeros(2, *np.shape(space.nvec), dtype=torch.long)
        vectors = whole.float()
    else:
        return net
    copy = copy_network(net, device=torch.device("cpu")).eval()
    return WholeNumbers(net, start) if not _runs(copy, vectors) and _runs(copy, whole) else net


def _runs(net: nn.Module, inputs: torch.Tensor) -> bool:
    try:
        with torch.no_grad():
            net(inputs)
    except Exception:  # its code may raise any exception on unsupported inputs
        return False
    return True
