"""The layers that a symmetry allows: ranks, parameter counts and certificates, as plain data.

The rows are the layers of a standard policy network: from observations to hidden units that carry the regular
representation, between hidden units, and to the action and the value; one more row maps observations directly to
actions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from symcheck.intertwiners.basis import Certificate, IntertwinerBasis
from symcheck.intertwiners.build import conv_intertwiner_basis, intertwiner_basis
from symcheck.representations import constructors
from symcheck.representations.representation import Representation

HIDDEN_LIMIT = 512
"""Largest order whose regular representation is shown as a hidden layer."""


@dataclass(frozen=True)
class LayerRow:
    """One row of the table of layers.

    Attributes:
        name: for instance "observation -> hidden".
        source: the name of the representation on the input.
        target: the name of the representation on the output.
        shape: the shape of one basis matrix, (dim_out, dim_in) or (dim_out, dim_in, height, width).
        rank: the number of free weights per pair of channels.
        bias_rank: the number of free biases per channel.
        nullspace_rank: the number of free weights of the nullspace control.
        dense: the number of weights of an unconstrained layer per pair of channels.
        dense_bias: the number of biases of an unconstrained layer per channel.
        certificate: how the basis was verified.
        basis: the basis itself.
    """

    name: str
    source: str
    target: str
    shape: tuple[int, ...]
    rank: int
    bias_rank: int
    nullspace_rank: int
    dense: int
    dense_bias: int
    certificate: Certificate
    basis: IntertwinerBasis

    @property
    def sharing(self) -> float:
        """The number of dense weights per free weight; infinity if none is free."""
        return self.dense / self.rank if self.rank else float("inf")


def layer_table(
    observation: Representation,
    action: Representation,
    *,
    hidden: Representation | None = None,
) -> list[LayerRow]:
    """The layers between observations, hidden units, actions and a value.

    Args:
        observation: the representation on flat observations.
        action: the representation on actions.
        hidden: the representation of hidden layers; the regular one by default, left out for groups of more than
            `HIDDEN_LIMIT` elements.

    Returns:
        One row per layer, in the order of a network.

    Raises:
        RepresentationError: different groups.

    Example:
        >>> from symcheck.groups import cyclic
        >>> C2 = cyclic(2)
        >>> mirror = constructors.signed_permutation(C2, [[-1, -1, -1, -1]])
        >>> [(row.name, row.rank, row.dense) for row in layer_table(mirror, constructors.permutation(C2, [[1, 0]]))][:2]
        [('observation -> hidden', 4, 8), ('hidden -> hidden', 2, 4)]
    """
    # The group of the observation: the other representations are compared with it when bases are built.
    group = observation.group
    value = constructors.trivial(group)
    # The regular representation contains every irreducible one, so hidden layers on it lose no information.
    if hidden is None and group.order <= HIDDEN_LIMIT:
        hidden = constructors.regular(group)
    rows = []
    if hidden is not None:
        rows = [
            _layer_row("observation -> hidden", observation, hidden),
            _layer_row("hidden -> hidden", hidden, hidden),
            _layer_row("hidden -> action", hidden, action),
            _layer_row("hidden -> value", hidden, value),
        ]
    rows.append(_layer_row("observation -> action", observation, action))
    rows.append(_layer_row("observation -> value", observation, value))
    return rows


def filter_table(
    pixels: Representation,
    group_hidden: Representation,
    spatial: Sequence[str],
    *,
    kernel_sizes: Sequence[int] = (3, 5, 7),
) -> list[LayerRow]:
    """The convolutions from image components to hidden components, and between hidden components.

    Args:
        pixels: the representation on an image's components (trivial for grey or stacked frames).
        group_hidden: the representation of hidden components.
        spatial: one spatial operator per generator.
        kernel_sizes: square filters to tabulate.

    Returns:
        Two rows per kernel size.

    Raises:
        RepresentationError: different groups, or operators that violate a relation.

    Example:
        >>> from symcheck.groups import cyclic
        >>> C4 = cyclic(4)
        >>> rows = filter_table(constructors.trivial(C4), constructors.regular(C4), ["rot90"], kernel_sizes=[7])
        >>> [(row.name, row.rank) for row in rows]
        [('image -> hidden, 7 x 7', 49), ('hidden -> hidden, 7 x 7', 196)]
    """
    rows = []
    for size in kernel_sizes:
        for label, source in (("image", pixels), ("hidden", group_hidden)):
            basis = conv_intertwiner_basis(source, group_hidden, size, spatial=spatial)
            rows.append(_describe(f"{label} -> hidden, {size} x {size}", basis))
    return rows


def _layer_row(name: str, rho_in: Representation, rho_out: Representation) -> LayerRow:
    return _describe(name, intertwiner_basis(rho_in, rho_out))


def _describe(name: str, basis: IntertwinerBasis) -> LayerRow:
    # A bias is an intertwiner from the trivial representation.
    bias = intertwiner_basis(constructors.trivial(basis.rho_out.group), basis.rho_out)
    return LayerRow(
        name=name,
        source=basis.rho_in.name,
        target=basis.rho_out.name,
        shape=basis.shape,
        rank=basis.rank,
        bias_rank=bias.rank,
        nullspace_rank=basis.size - basis.rank,
        dense=basis.size,
        dense_bias=basis.rho_out.dim,
        certificate=basis.certificate,
        basis=basis,
    )


def pictures(basis: IntertwinerBasis, *, count: int = 12) -> list[npt.NDArray[np.float64]]:
    """Basis matrices as pictures: one 2-d array of numbers between -1 and 1 per basis matrix.

    A filter of shape (dim_out, dim_in, height, width) is laid out as dim_out rows and dim_in columns of height x width
    tiles, as in the paper's figure of rotation-symmetric filters.

    Args:
        basis: any basis.
        count: the largest number of matrices, from the first.

    Returns:
        At most `count` arrays.

    Example:
        >>> from symcheck.groups import cyclic
        >>> C4 = cyclic(4)
        >>> basis = conv_intertwiner_basis(constructors.trivial(C4), constructors.regular(C4), 3, spatial=["rot90"])
        >>> pictures(basis)[0].shape
        (12, 3)
    """
    shown = []
    for k in range(min(count, basis.rank)):
        # One row of the identity as coefficients picks basis matrix k.
        matrix = basis.combine(np.eye(1, basis.rank, k)[0])
        # Filters: rows are (out, height), columns (in, width), so that each filter is one tile.
        if matrix.ndim == 4:
            out, inputs, height, width = matrix.shape
            matrix = matrix.transpose(0, 2, 1, 3).reshape(out * height, inputs * width)
        # Scale by the largest size without a shift, so that signs are preserved.
        largest = float(np.abs(matrix).max())
        shown.append(np.asarray(matrix / largest if largest else matrix, dtype=np.float64))
    return shown
