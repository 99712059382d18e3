"""Networks of integer observations: a Discrete value becomes a one-hot vector, on which a permutation of values acts.

The network itself receives the integers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
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
        return self.structured_input(as_integers(inputs, self._start))


def as_integers(inputs: torch.Tensor, start: int | None) -> torch.Tensor:
    """The integers that vectors stand for.

    Args:
        inputs: one-hot vectors, shape (n, values), or whole numbers as floats.
        start: the lowest value of a Discrete space; None for whole numbers.
    """
    if start is None:
        return inputs.round().long()
    # Without the sum, the proof can follow the position of the largest entry.
    return inputs.argmax(dim=1) + start if start else inputs.argmax(dim=1)


def whole_leaves(net: nn.Module, space: Any, shapes: Mapping[Any, tuple[int, ...]]) -> dict[Any, int | None]:
    """The leaves of a Dict or Tuple that a network receives as integers.

    A network that runs on one-hot vectors receives these; otherwise it receives the values of Discrete and
    MultiDiscrete leaves, as policies of Stable-Baselines3 do.

    Args:
        net: the network; copied before any run.
        space: its observation space.
        shapes: the shapes of the leaves, as returned by `structured.leaf_shapes`.

    Returns:
        The lowest value of each such leaf if its vectors are one-hot, otherwise None.
    """
    parts = dict(space.spaces if isinstance(space, spaces.Dict) else enumerate(space.spaces))
    whole: dict[Any, int | None] = {}
    for key, part in parts.items():
        if isinstance(part, spaces.Discrete):
            whole[key] = int(part.start)
        elif isinstance(part, spaces.MultiDiscrete):
            whole[key] = None
    if not whole:
        return {}
    vectors = {key: torch.zeros(2, *shape) for key, shape in shapes.items()}
    numbers = {key: as_integers(leaf, whole[key]) if key in whole else leaf for key, leaf in vectors.items()}
    as_given = (lambda leaves: leaves) if isinstance(space, spaces.Dict) else (lambda leaves: tuple(leaves.values()))
    copy = copy_network(net, device=torch.device("cpu")).eval()
    return whole if not _runs(copy, as_given(vectors)) and _runs(copy, as_given(numbers)) else {}


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


def _runs(net: nn.Module, inputs: Any) -> bool:
    try:
        with torch.no_grad():
            net(inputs)
    except Exception:  # its code may raise any exception on unsupported inputs
        return False
    return True
