"""The product with a weight that commutes with the exchange of two components, by sums and differences.

Such a weight [[A, B], [B, A]] maps sums by A + B and differences by A - B: two products of half the size. Each change
of coordinates is one pass over the data. One autograd function computes everything, because every intermediate tensor
between recorded operations would cost another pass.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from symcheck.array_types import Floats
from symcheck.intertwiners.isotypic import EXACT

_SUM_AND_DIFFERENCE = np.array([[1.0, 1.0], [1.0, -1.0]])


def pair_factors(into: Floats, out: Floats) -> tuple[Floats, Floats] | None:
    """The factors that scale the sum and difference of a pair to given coordinates.

    Args:
        into: coordinates of an input from its components.
        out: components of an output from its coordinates.

    Returns:
        Two factors of `into` and two of `out`; None where either is anything else.

    Example:
        >>> pair_factors(np.array([[2.0, 2.0], [3.0, -3.0]]), np.array([[1.0, 1.0], [1.0, -1.0]]))
        (array([2., 3.]), array([1., 1.]))
    """
    if into.shape != (2, 2) or out.shape != (2, 2):
        return None
    rows, columns = into[:, 0], out[0]
    errors = into - rows[:, None] * _SUM_AND_DIFFERENCE, out - _SUM_AND_DIFFERENCE * columns
    # Entries of orthogonal matrices: what `isotypic_blocks` rounds off.
    return (rows, columns) if max(np.abs(error).max() for error in errors) <= EXACT else None


def pair_product(x: Tensor, weights: Tensor, offsets: Tensor | None) -> Tensor:
    """The product of pairs.

    Args:
        x: pairs (batch, channels_in, 2).
        weights: the weights that multiply sums and those that multiply differences, (2, channels_out, channels_in).
        offsets: the offsets added to both, (2, 1, channels_out); None without them.

    Returns:
        Pairs (batch, channels_out, 2): s + d and s - d, where s and d are the images of the sums and differences.

    Example:
        >>> pair_product(torch.tensor([[[3.0, 1.0]]]), torch.tensor([[[1.0]], [[2.0]]]), None)
        tensor([[[8., 0.]]])
    """
    made: Tensor = _PairProduct.apply(x, weights, offsets)[0]  # type: ignore[no-untyped-call]
    return made


def _take_apart(x: Tensor) -> Tensor:
    """Sums and differences, as an operation that is recorded."""
    made: Tensor = _Apart.apply(x)  # type: ignore[no-untyped-call]
    return made


def _put_together(x: Tensor) -> Tensor:
    """Pairs of sums and differences, as an operation that is recorded."""
    made: Tensor = _Together.apply(x)  # type: ignore[no-untyped-call]
    return made


class _PairProduct(torch.autograd.Function):
    """`pair_product`, and beside it what `backward` reads: sums and differences of the input."""

    @staticmethod
    def forward(x: Tensor, weights: Tensor, offsets: Tensor | None) -> tuple[Tensor, Tensor]:
        """The product; offsets have shape (2, 1, channels_out)."""
        apart = _Apart.forward(x)
        turned = weights.transpose(1, 2)
        made = torch.bmm(apart, turned) if offsets is None else torch.baddbmm(offsets, apart, turned)
        return _Together.forward(made), apart

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Keep what both derivatives read."""
        x, weights, offsets = inputs
        ctx.with_offsets = offsets is not None
        ctx.mark_non_differentiable(output[1])
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x, weights, output[1])
        ctx.save_for_forward(x, weights)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor | None, ...]:
        """Derivatives by the input, the weights and the offsets; they can be derived again."""
        if gradients[0] is None:
            return None, None, None
        x, weights, apart = ctx.saved_tensors
        # For second derivatives what was kept must depend on the input.
        apart = _take_apart(x) if torch.is_grad_enabled() else apart
        d_made = _take_apart(gradients[0])
        needs_x, needs_weights, needs_offsets = ctx.needs_input_grad
        return (
            _put_together(torch.bmm(d_made, weights)) if needs_x else None,
            torch.bmm(d_made.transpose(1, 2), apart) if needs_weights else None,
            d_made.sum(1, keepdim=True) if needs_offsets and ctx.with_offsets else None,
        )

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> tuple[Tensor | None, None]:
        """The derivative along tangents of the three arguments."""
        x, weights = ctx.saved_tensors
        d_x, d_weights, d_offsets = tangents
        parts = [
            *([] if d_x is None else [torch.bmm(_take_apart(d_x), weights.transpose(1, 2))]),
            *([] if d_weights is None else [torch.bmm(_take_apart(x), d_weights.transpose(1, 2))]),
            *([] if d_offsets is None else [d_offsets.expand(2, x.shape[0], -1)]),
        ]
        return (_put_together(torch.stack(parts).sum(0)) if parts else None), None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *given: Any) -> tuple[Any, tuple[int, int]]:
        """One product after the other."""
        made, apart = zip(*_apply_each(_PairProduct, info.batch_size, in_dims, given), strict=True)
        return (torch.stack(made), torch.stack(apart)), (0, 0)


class _Apart(torch.autograd.Function):
    """Sums and differences of pairs: (batch, channels, 2) to (2, batch, channels); `_Together` is its transpose."""

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        """The sums, then the differences."""
        first, second = x.unbind(-1)
        made = x.new_empty(2, *first.shape)
        torch.add(first, second, out=made[0])
        torch.sub(first, second, out=made[1])
        return made

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Nothing is kept: the map is linear."""

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        """The transposed map."""
        return _put_together(gradients[0])

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        """The map itself."""
        return _take_apart(tangents[0])

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *given: Any) -> tuple[Tensor, int]:
        """One map after the other."""
        return torch.stack(_apply_each(_Apart, info.batch_size, in_dims, given)), 0


class _Together(torch.autograd.Function):
    """Pairs from (2, batch, channels): their sum and their difference, (batch, channels, 2)."""

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        """Each pair's two numbers beside one another."""
        made = x.new_empty(*x.shape[1:], 2)
        torch.add(x[0], x[1], out=made[..., 0])
        torch.sub(x[0], x[1], out=made[..., 1])
        return made

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Nothing is kept: the map is linear."""

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        """The transposed map."""
        return _take_apart(gradients[0])

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        """The map itself."""
        return _put_together(tangents[0])

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *given: Any) -> tuple[Tensor, int]:
        """One map after the other."""
        return torch.stack(_apply_each(_Together, info.batch_size, in_dims, given)), 0


def _apply_each(function: Any, count: int, axes: tuple[int | None, ...], given: tuple[Any, ...]) -> list[Any]:
    """A function of every slice along the axes given; arguments without one are the same for all."""
    columns = [[part] * count if axis is None else part.unbind(axis) for part, axis in zip(given, axes, strict=True)]
    return [function.apply(*row) for row in zip(*columns, strict=True)]
