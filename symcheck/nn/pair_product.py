"""The product with a weight that commutes with the exchange of two components, by sums and differences.

Such a weight [[A, B], [B, A]] maps sums by A + B and differences by A - B: two products of half the size. Each change
of coordinates, including that of the weight, is one pass over the data, and the products apply the scale. One autograd
function computes the product, because every intermediate tensor between recorded operations would cost another pass.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd import forward_ad

from symcheck.array_types import Floats
from symcheck.intertwiners.isotypic import EXACT

_SUM_AND_DIFFERENCE = np.array([[1.0, 1.0], [1.0, -1.0]])


def pair_scale(into: Floats, out: Floats, weights: Floats) -> float | None:
    """The scale factor of the product, if the coordinates of inputs, outputs and weight are sums and differences.

    Args:
        into: coordinates of an input from its components.
        out: components of an output from its coordinates.
        weights: the weights of the two blocks from the coefficients of the weight.

    Returns:
        The factor of the product; None if a matrix has any other form.

    Example:
        >>> s = np.array([[1.0, 1.0], [1.0, -1.0]])
        >>> pair_scale(-s, s, -0.5 * s)
        0.5
    """
    if any(matrix.shape != (2, 2) for matrix in (into, out, weights)):
        return None
    rows, columns = into[:, 0], out[0]
    blocks = (rows * columns)[:, None] * weights
    scale = float(blocks[0, 0])
    errors = (
        into - rows[:, None] * _SUM_AND_DIFFERENCE, out - _SUM_AND_DIFFERENCE * columns,
        blocks - scale * _SUM_AND_DIFFERENCE,
    )  # fmt: skip
    # Entries of orthogonal matrices; the tolerance is that of `isotypic_blocks`.
    return scale if max(np.abs(error).max() for error in errors) <= EXACT else None


def pair_product(x: Tensor, coefficients: Tensor, scale: float, bias: Tensor | None) -> Tensor:
    """The product of pairs.

    Args:
        x: pairs (batch, channels_in, 2).
        coefficients: A and B of the weight [[A, B], [B, A]], (channels_out, 2, channels_in).
        scale: a factor of the weight: the result of `pair_scale`, or 1/2 for A and B themselves.
        bias: the bias, (channels_out, 2); None for no bias.

    Returns:
        Pairs (batch, channels_out, 2): s + d and s - d, where s and d are the images of the sums and differences.

    Example:
        >>> pair_product(torch.tensor([[[3.0, 1.0]]]), torch.tensor([[[2.0], [1.0]]]), 0.5, None)
        tensor([[[7., 5.]]])
    """
    made: Tensor = _PairProduct.apply(x, coefficients, scale, bias)[0]  # type: ignore[no-untyped-call]
    return made


def _take_apart(x: Tensor, axis: int) -> Tensor:
    """Sums and differences, as an operation that autograd records if necessary."""
    # Second derivatives are rare, and recording takes as long as the map of a small tensor.
    made: Tensor = (_Apart.apply if torch.is_grad_enabled() else _Apart.forward)(x, axis)
    return made


def _put_together(x: Tensor, axis: int) -> Tensor:
    """Pairs from sums and differences, as an operation that autograd records if necessary."""
    made: Tensor = (_Together.apply if torch.is_grad_enabled() else _Together.forward)(x, axis)
    return made


def _multiply(rows: Tensor, columns: Tensor, scale: float) -> Tensor:
    """Two products at once, times a factor."""
    # With beta = 0 the first argument is not read.
    return torch.baddbmm(rows.new_empty(2, 1, 1), rows, columns, beta=0, alpha=scale)


class _PairProduct(torch.autograd.Function):
    """`pair_product`, which also returns the sums and differences of input and weight for `backward`."""

    @staticmethod
    def forward(x: Tensor, coefficients: Tensor, scale: float, bias: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """The product."""
        apart, weights = _Apart.forward(x, 2), _Apart.forward(coefficients, 1)
        made = _Together.forward(_multiply(apart, weights.transpose(1, 2), scale), 2)
        return made if bias is None else made.add_(bias), apart, weights

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Store the data that both derivatives need."""
        x, coefficients, ctx.scale, _ = inputs
        ctx.mark_non_differentiable(*output[1:])
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x, coefficients, *output[1:])
        ctx.save_for_forward(x, coefficients)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor | None, ...]:
        """Derivatives with respect to the input, the coefficients and the bias; they are differentiable."""
        if gradients[0] is None:
            return None, None, None, None
        x, coefficients, apart, weights = ctx.saved_tensors
        # For second derivatives the result must depend on the input and the coefficients; the stored tensors do not.
        if torch.is_grad_enabled() or _has_tangent(x) or _has_tangent(coefficients):
            apart, weights = _take_apart(x, 2), _take_apart(coefficients, 1)
        d_made = _take_apart(gradients[0], 2)
        needs_x, needs_weights, _, needs_bias = ctx.needs_input_grad
        return (
            _put_together(_multiply(d_made, weights, ctx.scale), 2) if needs_x else None,
            _put_together(_multiply(d_made.transpose(1, 2), apart, ctx.scale), 1) if needs_weights else None,
            None,
            gradients[0].sum(0) if needs_bias else None,
        )

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> tuple[Tensor | None, None, None]:
        """The derivative along tangents of input, coefficients and bias."""
        x, coefficients = ctx.saved_tensors
        d_x, d_coefficients, _, d_bias = tangents
        terms = ((d_x, coefficients), (x, d_coefficients))
        parts = [pair_product(*term, ctx.scale, None) for term in terms if all(part is not None for part in term)]
        parts += [] if d_bias is None else [d_bias.expand(len(x), -1, -1)]
        return (torch.stack(parts).sum(0) if parts else None), None, None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *given: Any) -> tuple[Any, tuple[int, int, int]]:
        """Apply the function to one element of the batch after the other."""
        each = zip(*_apply_each(_PairProduct, info.batch_size, in_dims, given), strict=True)
        return tuple(map(torch.stack, each)), (0, 0, 0)


class _Apart(torch.autograd.Function):
    """Sums and differences of pairs along an axis, first of the result; `_Together` is its transpose."""

    @staticmethod
    def forward(x: Tensor, axis: int) -> Tensor:
        """The sums, then the differences."""
        first, second = x.unbind(axis)
        return _sum_and_difference(first, second, 0)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Store only the axis, because the map is linear."""
        ctx.axis = inputs[1]

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        """The transposed map."""
        return _put_together(gradients[0], ctx.axis), None

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        """The map itself."""
        return _take_apart(tangents[0], ctx.axis)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *given: Any) -> tuple[Tensor, int]:
        """Apply the map to one element of the batch after the other."""
        return torch.stack(_apply_each(_Apart, info.batch_size, in_dims, given)), 0


class _Together(torch.autograd.Function):
    """Pairs along an axis from (2, rows, columns): their sum and their difference."""

    @staticmethod
    def forward(x: Tensor, axis: int) -> Tensor:
        """The two numbers of each pair, along the axis."""
        return _sum_and_difference(x[0], x[1], axis)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Store only the axis, because the map is linear."""
        ctx.axis = inputs[1]

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        """The transposed map."""
        return _take_apart(gradients[0], ctx.axis), None

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        """The map itself."""
        return _put_together(tangents[0], ctx.axis)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *given: Any) -> tuple[Tensor, int]:
        """Apply the map to one element of the batch after the other."""
        return torch.stack(_apply_each(_Together, info.batch_size, in_dims, given)), 0


def _has_tangent(x: Tensor) -> bool:
    """Whether a tensor has a forward-mode tangent."""
    return forward_ad.unpack_dual(x).tangent is not None  # type: ignore[no-untyped-call]


def _sum_and_difference(first: Tensor, second: Tensor, axis: int) -> Tensor:
    """The sum and the difference of two tensors, along a new axis."""
    made = first.new_empty(*first.shape[:axis], 2, *first.shape[axis:])
    try:
        torch.add(first, second, out=made.select(axis, 0))
        torch.sub(first, second, out=made.select(axis, 1))
    except RuntimeError:  # batched gradients and forward derivatives do not support `out`; this takes one more pass
        return torch.stack([first + second, first - second], axis)
    return made


def _apply_each(function: Any, count: int, axes: tuple[int | None, ...], given: tuple[Any, ...]) -> list[Any]:
    """Apply a function to every slice along the given axes; arguments without an axis are the same for all slices."""
    columns = [[part] * count if axis is None else part.unbind(axis) for part, axis in zip(given, axes, strict=True)]
    return [function.apply(*row) for row in zip(*columns, strict=True)]
