"""Networks for environments outside the catalogue, with sizes for their observations and group."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from reference_agents.catalog import Convolution, NetworkPlan, control_networks

_IMAGE_CHANNELS = (16, 32, 256)
# Widths of two hidden layers for a group of order 2; other groups get about the same number of parameters.
_VECTOR_CHANNELS = 64


def own_networks(shape: tuple[int, ...], order: int | None, *, averages: bool, rate: float) -> dict[str, NetworkPlan]:
    """The networks for observations of a shape.

    Args:
        shape: (size,) or (channels, height, width).
        order: the order of the group; None without a symmetry, for plain networks only.
        averages: whether policies of several views can be averaged, as for one discrete choice.
        rate: the learning rate of every network.

    Returns:
        Name to plan.

    Example:
        >>> own_networks((4,), None, averages=True, rate=0.001)["mlp"].basis
        'dense'
    """
    plans = _image_networks(shape, order or 1, rate) if len(shape) == 3 else _vector_networks(order or 1, rate)
    return {
        plan.name: plan
        for plan in plans
        if (order is not None or (plan.basis == "dense" and not plan.views)) and (averages or plan.views != "averaged")
    }


def _vector_networks(order: int, rate: float) -> Sequence[NetworkPlan]:
    # A layer has channels^2 |G| free weights.
    channels = max(4, round(_VECTOR_CHANNELS * math.sqrt(2.0 / order))) if order > 1 else _VECTOR_CHANNELS
    return [
        plan if plan.basis == "dense" else dataclasses.replace(plan, channels=(channels,) * len(plan.channels))
        for plan in control_networks(rate).values()
    ]


def _image_networks(shape: tuple[int, ...], order: int, rate: float) -> Sequence[NetworkPlan]:
    windows = choose_windows(shape[1], shape[2])
    narrow = tuple(max(1, int(count / math.sqrt(order))) for count in _IMAGE_CHANNELS)

    def plan(name: str, basis: str, summary: str, views: str = "", *, free: bool = False) -> NetworkPlan:
        channels = _IMAGE_CHANNELS if basis == "dense" else narrow
        return NetworkPlan(
            name, basis, channels, rate, summary, windows, views, free_heads=free, pool="none", free_layers=int(free)
        )

    return [
        plan("equivariant", "equivariant", "equivariant convolutions, equivariant from end to end"),
        plan("nullspace", "nullspace", "the same sizes, orthogonal to every intertwiner", free=True),
        plan("random", "random", "the same sizes, weights in a random full-rank basis", free=True),
        plan("extractor", "equivariant", "equivariant convolutions, then unconstrained layers", free=True),
        plan("cnn", "dense", "plain convolutional network"),
        plan("augmented", "dense", "cnn, trained on transformed pairs", "augmented"),
        plan("averaged", "dense", "cnn, policies averaged over all transformed inputs", "averaged"),
        plan("symmetrized", "dense", "cnn, averaged over the group", "symmetrized"),
    ]


def choose_windows(height: int, width: int) -> tuple[Convolution, ...]:
    """Two convolutions whose windows cover an image exactly, so that flips and rotations map windows to windows.

    Example:
        >>> choose_windows(84, 84), choose_windows(9, 9)
        ((Convolution(kernel=8, stride=4), Convolution(kernel=4, stride=2)), \
(Convolution(kernel=3, stride=1), Convolution(kernel=3, stride=1)))
    """
    windows = []
    for _ in range(2):
        side = min(height, width)
        kernel, stride = (8, 4) if side >= 36 else (4, 2) if side >= 12 else (3, 1)
        # (side - kernel) must be a multiple of the stride, in both directions.
        if (height - width) % stride:
            kernel, stride = 3, 1
        kernel += (side - kernel) % stride
        windows.append(Convolution(kernel, stride))
        height, width = ((side - kernel) // stride + 1 for side in (height, width))
    return tuple(windows)
