"""Operators that resample images: linear maps, whose weights are their outputs for unit impulses."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from symcheck.engine.networks.graph.entries import Entries
from symcheck.engine.networks.graph.nodes import LARGEST, Graph, NoCertificateError
from symcheck.statements.statement import state

_RESAMPLING_NAMES = (
    "upsample_linear1d upsample_bilinear2d upsample_bicubic2d upsample_trilinear3d _upsample_bilinear2d_aa "
    "_upsample_bicubic2d_aa"
)
RESAMPLING = frozenset(_RESAMPLING_NAMES.split())
"""Operators that apply the same linear map to every channel."""
GRAIN = 2.0**-44
"""Weights are rounded to multiples of this, so that weights that are mirror images of each other are equal."""


def resample(graph: Graph, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Entries:
    """One linear map for every channel.

    Raises:
        NoCertificateError: the images are too large.
    """
    x: Entries = args[0]
    samples, channels, *size = x.ids.shape
    count = int(np.prod(size))
    answered = target(torch.eye(count, dtype=torch.float64).reshape(count, 1, *size), *args[1:], **kwargs)
    weight = np.round(answered.reshape(count, -1).numpy().T / GRAIN) * GRAIN
    if weight.size * channels > LARGEST:
        raise NoCertificateError(state("SYM192", operation=str(target)))
    made = graph.linear(x.array.reshape(samples, channels, count), graph.constants(weight), None, "resampling")
    return x.like(made.reshape(samples, channels, *answered.shape[2:]))
