"""Hidden layers for continuous groups: channels of scalars and vectors, their products, and gates.

The regular representation of a continuous group has infinite dimension. Every channel of a hidden layer here contains a
scalar and a vector, and, for groups with reflections, a pseudoscalar and a pseudovector. Linear maps and gates alone
cannot compute the angle between two vectors, so each layer also multiplies channels. The results are scaled only by
functions of invariant numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from symcheck.errors import SpecError
from symcheck.groups.continuous import ContinuousGroup
from symcheck.groups.group import Group
from symcheck.intertwiners.build import intertwiner_basis
from symcheck.nn.bilinear import TensorProduct
from symcheck.nn.field_type import FieldType
from symcheck.nn.linear import BasisLinear
from symcheck.representations import constructors, lie_constructors, operations
from symcheck.representations.representation import Representation, same


class VectorBody(nn.Module):
    """Hidden layers of scalars and vectors: (batch, dim of the observation) to (batch, units).

    Args:
        rho: the representation of a continuous group on the observation.
        widths: units of each layer; channels are units / dim of one channel, rounded up.

    Raises:
        SpecError: parts of the observation that are not (pseudo)scalars or (pseudo)vectors.
    """

    def __init__(self, rho: Representation, widths: Sequence[int]) -> None:
        super().__init__()
        hidden = hidden_representation(rho.group)
        _require_covered(rho, hidden, "observation")
        self.output_type = FieldType(rho, 1)
        layers = []
        for units in widths:
            given, self.output_type = self.output_type, FieldType(hidden, math.ceil(units / hidden.dim))
            layers.append(VectorLayer(given, self.output_type))
        self.layers = nn.Sequential(*layers)

    @property
    def units(self) -> int:
        """The number of outputs of the last layer."""
        return int(self.output_type.channels * self.output_type.rho.dim)

    def forward(self, features: Tensor) -> Tensor:
        """The last hidden layer, flat."""
        latent: Tensor = self.layers(features.unsqueeze(1)).flatten(1)
        return latent


class VectorLayer(nn.Module):
    """y = A x + (B x) * (C x), then tanh of the scalar and a gate on all other components of each channel.

    Args:
        given: the input type.
        returned: the output type, with scalars first in each channel, as in `hidden_representation`.
    """

    def __init__(self, given: FieldType, returned: FieldType) -> None:
        super().__init__()
        hidden, channels = returned.rho, returned.channels
        # A second scalar in each channel controls its gate.
        before = operations.direct_sum(constructors.trivial(hidden.group), hidden)
        self.linear = BasisLinear(given.rho, before, given.channels, channels)
        self.first = BasisLinear(given.rho, hidden, given.channels, channels, bias=False)
        self.second = BasisLinear(given.rho, hidden, given.channels, channels, bias=False)
        self.product = TensorProduct(hidden, hidden, before, channels, channels)

    def forward(self, x: Tensor) -> Tensor:
        """Maps (batch, channels, dim) of type `given` to type `returned`."""
        y = self.linear(x) + self.product(self.first(x), self.second(x))
        gate, scalar, others = y[..., :1], y[..., 1:2], y[..., 2:]
        return torch.cat([torch.tanh(scalar), torch.sigmoid(gate) * others], dim=-1)


def hidden_representation(group: Group) -> Representation:
    """One channel: a scalar, a vector and, with reflections, a pseudoscalar and (in space) a pseudovector.

    Example:
        >>> from symcheck.groups import o, so
        >>> hidden_representation(so(2)).dim, hidden_representation(o(3)).dim
        (3, 8)
    """
    if not isinstance(group, ContinuousGroup):
        raise TypeError(f"expected a continuous group, got {group!r}")
    scalar, vector = constructors.trivial(group), lie_constructors.vector(group)
    parts: list[Representation] = [scalar, vector]
    pseudoscalar = lie_constructors.pseudoscalar(group)
    if not same(pseudoscalar, scalar):
        parts.append(pseudoscalar)
        if vector.dim == 3:  # the cross product of two vectors
            parts.append(lie_constructors.pseudovector(group))
    return operations.direct_sum(*parts)


def _require_covered(rho: Representation, hidden: Representation, part: str) -> None:
    """Reject a representation with parts on which every map to or from the hidden layers is zero."""
    basis = intertwiner_basis(rho, hidden).matrices()
    stacked = np.asarray(basis, dtype=float).reshape(-1, rho.dim)
    # Rounding gives singular values of 1e-15; parts that are reached have some of order 1.
    rank = int((np.linalg.svd(stacked, compute_uv=False) > 1e-9).sum()) if len(stacked) else 0
    if rank < rho.dim:
        raise SpecError(
            "all components must be scalars, vectors, pseudoscalars or pseudovectors of "
            f"{rho.group.name}, but {rho.dim - rank} of {rho.dim} components are not.",
            where=part,
            remedy="Claim a finite subgroup in the SPEC, for instance C4 of SO(2).",
        )


def require_reachable(rho: Representation) -> None:
    """Reject actions that a head on scalars and vectors cannot produce.

    Args:
        rho: a representation of a continuous group.

    Raises:
        SpecError: some component is not a (pseudo)scalar or (pseudo)vector.
    """
    _require_covered(rho, hidden_representation(rho.group), "action")
