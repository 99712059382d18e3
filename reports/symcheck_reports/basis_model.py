"""The data of a page of intertwiner bases, filled by `symcheck basis`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class BasisLayer:
    """One kind of layer that the symmetry allows.

    Attributes:
        name: for instance "observation -> hidden".
        source: the representation on its input.
        target: the representation on its output.
        shape: the shape of one basis matrix, (dim_out, dim_in) or (dim_out, dim_in, height, width).
        rank: the number of free weights per pair of channels; 0 is a valid result.
        dense: the number of weights of an unconstrained layer per pair of channels.
        bias_rank: the number of free biases per channel.
        dense_bias: the number of biases of an unconstrained layer per channel.
        certificate: how the rank was verified, in words ("exact: 4 orbits, as the characters predict").
        pictures: basis matrices as rows of numbers between -1 and 1, each (height, width); the first few are enough.
    """

    name: str
    source: str
    target: str
    shape: tuple[int, ...]
    rank: int
    dense: int
    bias_rank: int
    dense_bias: int
    certificate: str
    pictures: Sequence[Sequence[Sequence[float]]] = ()


@dataclass(frozen=True)
class BasisModel:
    """One page.

    Attributes:
        symmetry: the symmetry's name.
        group: the group's name.
        order: the number of its elements.
        layers: the layers in the order of the network.
        command: the command line that repeats it; "" if none exists.
        versions: package name and version.
    """

    symmetry: str
    group: str
    order: int
    layers: Sequence[BasisLayer]
    command: str = ""
    versions: Sequence[tuple[str, str]] = ()
