"""The matrix product of a linear layer by blocks, in coordinates in which its weight is block diagonal.

Regular features of C2 need half the multiplications of the dense weight, those of D4 12 of 64, those of S4 64 of 576.
Below some width the two changes of coordinates cost more than they save; the dense product is used there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from symcheck.array_types import Floats
from symcheck.intertwiners.basis import IntertwinerBasis
from symcheck.intertwiners.isotypic import EXACT, IsotypicBlock, isotypic_blocks
from symcheck.nn.pair_product import pair_product, pair_scale

FEWEST_SAVED = 40_000
"""Minimum number of saved products per input, from `benchmarks/layers.py`: the saving of 384 units under C2, and of 256
under C4 and D4."""
FEWEST_INPUTS = 64
"""Batch size above which the products, not the number of operations, dominate the time."""


@dataclass(frozen=True)
class _Place:
    """Blocks of one shape, one after the other among the components in changed coordinates.

    Attributes:
        blocks: the number of blocks.
        columns: the number of times that each is applied.
        copies_in: the number of input components of a column.
        copies_out: the number of output components of a column.
    """

    blocks: int
    columns: int
    copies_in: int
    copies_out: int

    @property
    def size_in(self) -> int:
        """Components of the input."""
        return self.blocks * self.columns * self.copies_in

    @property
    def size_out(self) -> int:
        """Components of the output."""
        return self.blocks * self.columns * self.copies_out

    def rows_in(self, x: Tensor) -> Tensor:
        """Rearrange inputs (components, batch, channels) to (blocks, columns * batch, copies_in * channels)."""
        part = x.view(self.blocks, self.columns, self.copies_in, *x.shape[1:])
        return part.transpose(2, 3).reshape(self.blocks, self.columns * x.shape[1], -1)

    def rows_out(self, y: Tensor, batch: int) -> Tensor:
        """Rearrange products (blocks, columns * batch, copies_out * channels) to (components, batch, channels)."""
        part = y.view(self.blocks * self.columns, batch, self.copies_out, -1)
        return part.transpose(1, 2).reshape(self.size_out, batch, -1)

    def weights(self, made: Tensor) -> Tensor:
        """Rearrange (blocks * copies_in * copies_out, channels_out, channels_in) for multiplication from the right."""
        made = made.view(self.blocks, self.copies_in, self.copies_out, *made.shape[1:])
        _, into, out, channels_out, channels_in = made.shape
        return made.permute(0, 2, 3, 1, 4).reshape(self.blocks, out * channels_out, into * channels_in)


class BlockProduct:
    """y = W x + b by isotypic blocks, from the coefficients of W and the plain vector b.

    Args:
        basis: the basis of the weight.
        blocks: the blocks of that basis.
        channels_in: number of copies of the input representation.
        channels_out: number of copies of the output representation.
    """

    def __init__(
        self, basis: IntertwinerBasis, blocks: tuple[IsotypicBlock, ...], channels_in: int, channels_out: int
    ) -> None:
        self._channels_in, self._channels_out = channels_in, channels_out
        alike: dict[tuple[int, ...], list[IsotypicBlock]] = {}
        for block in blocks:
            alike.setdefault((block.columns, *block.weights.shape[:2]), []).append(block)
        self._places: list[_Place] = []
        for (columns, copies_in, copies_out), group in alike.items():
            self._places.append(_Place(len(group), columns, copies_in, copies_out))
        ordered = [block for group in alike.values() for block in group]
        into = np.concatenate([block.coordinates_in for block in ordered], axis=1).T
        out = np.concatenate([block.coordinates_out for block in ordered], axis=1)
        self._into, self._out = _Mixture(into), _Mixture(out)
        # the block of each pair of channels, from its coefficients
        weights = [
            np.concatenate([block.weights.reshape(-1, basis.rank) for block in group]) for group in alike.values()
        ]
        # For pairs, the coordinates are sums and differences; the product absorbs their scale.
        self._pairs = pair_scale(into, out, weights[0])
        self._weights = [_Mixture(matrix) for matrix in weights]
        # A bias is invariant, so it lies in the blocks of the trivial representation, if the input contains it too.
        fixed = [_has_invariants(basis, group) for group in alike.values()]
        self._of_bias = fixed.index(True) if True in fixed else None

    @staticmethod
    def where_it_pays(basis: IntertwinerBasis, channels_in: int, channels_out: int) -> BlockProduct | None:
        """The product by blocks; None if too few products are saved, or the basis has no blocks."""
        pairs = channels_in * channels_out
        if basis.size * pairs < FEWEST_SAVED:
            return None
        blocks = isotypic_blocks(basis)
        if blocks is None or (basis.size - sum(block.products for block in blocks)) * pairs < FEWEST_SAVED:
            return None
        return BlockProduct(basis, blocks, channels_in, channels_out)

    def __call__(self, x: Tensor, coefficients: Tensor, bias: Tensor | None) -> Tensor:
        """Maps (..., channels_in, dim_in) to (..., channels_out, dim_out).

        Args:
            x: the input.
            coefficients: the coefficients of the weight, (channels_out, rank, channels_in).
            bias: (channels_out * dim_out,); None without one.
        """
        lead, batch = x.shape[:-2], x.shape[:-2].numel()
        if self._pairs is not None:
            offsets = None if bias is None else bias.view(self._channels_out, -1)
            made = pair_product(x.reshape(batch, self._channels_in, -1), coefficients, self._pairs, offsets)
            return made.view(*lead, self._channels_out, -1)
        # (dim, batch, channels): the data that a block reads is contiguous.
        changed = self._into(x.reshape(batch, self._channels_in, -1), -1)
        # all at once if there are several shapes: the gradient of a slice allocates a whole tensor of zeros
        sizes = [place.size_in for place in self._places]
        parts = [changed] if len(sizes) == 1 else torch.split(changed, sizes)
        products: list[Tensor] = []
        start = 0
        for i, (place, part) in enumerate(zip(self._places, parts, strict=True)):
            made = place.weights(self._weights[i](coefficients, 1)).transpose(1, 2)
            if bias is not None and i == self._of_bias:
                lifted = self._lift(bias, start, place.size_out).view(place.blocks, 1, -1)
                product = torch.baddbmm(lifted, place.rows_in(part), made)
            else:
                product = torch.bmm(place.rows_in(part), made)
            products.append(place.rows_out(product, batch))
            start += place.size_out
        together = products[0] if len(products) == 1 else torch.cat(products)
        # product first, then transposition: a third of the time of the other order
        back = self._out(together, 0).permute(1, 2, 0).contiguous()
        if bias is not None and self._of_bias is None:
            back = back + bias.view(self._channels_out, -1)
        return back.view(*lead, self._channels_out, -1)

    def _lift(self, bias: Tensor, start: int, count: int) -> Tensor:
        """A bias in the coordinates of some outputs, (count, 1, channels_out)."""
        lift = self._out.like(bias)[:, start : start + count].t()
        return torch.mm(lift, bias.view(self._channels_out, -1).t()).unsqueeze(1)


class _Mixture:
    """Sums of a tensor's slices along one axis: sum over j of M[i, j] x[.., j, ..].

    Args:
        matrix: M, float64.
    """

    def __init__(self, matrix: Floats) -> None:
        self._matrix = matrix
        self._constants: dict[tuple[torch.dtype, torch.device], Tensor] = {}

    def __call__(self, x: Tensor, axis: int) -> Tensor:
        """The sums, along the first axis of the result."""
        flat = x.movedim(axis, 0)
        rest = flat.shape[1:]
        # For the last axis, the product reads the columns directly.
        flat = x.reshape(-1, len(flat)).t() if axis == -1 else flat.reshape(len(flat), -1)
        return torch.mm(self.like(x), flat).view(-1, *rest)

    def like(self, x: Tensor) -> Tensor:
        """The matrix in the dtype and on the device of a tensor."""
        key = x.dtype, x.device
        if key not in self._constants:
            self._constants[key] = torch.from_numpy(np.ascontiguousarray(self._matrix)).to(x)
        return self._constants[key]


def _has_invariants(basis: IntertwinerBasis, group: list[IsotypicBlock]) -> bool:
    """Whether blocks of one shape contain output vectors that every element fixes."""
    vectors = np.concatenate([block.coordinates_out for block in group], axis=1)
    moved = [np.abs(matrix @ vectors - vectors).max(axis=0) for matrix in basis.rho_out.generator_matrices]
    return bool((np.max(moved, axis=0, initial=0.0) <= EXACT).any())
