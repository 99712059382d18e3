"""Sums of products: einsum, adjacency matrices, messages added up by index, similarities, gates.

A factor that the batch axis does not lead is taken for the weights. Written as a linear layer over the axes that it
sums, it is judged as any other. Other sums over two factors are products of matrices, as in attention. What is not of
this form returns None, and is left to the rules of its own name.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812

from symcheck.engine.networks.compositions import composition


@composition("einsum")
def einsum(equation: Any, *operands: Any) -> torch.Tensor | None:
    """Two factors, one of them fixed: "bi,oi->bo" is a linear layer; so is "bnd,dhk->bnhk" over blocks of axes."""
    factors = operands[0] if len(operands) == 1 and isinstance(operands[0], list | tuple) else operands
    if not isinstance(equation, str) or "." in equation or "->" not in equation or len(factors) != 2:
        return None
    given, made = equation.replace(" ", "").split("->")
    names = given.split(",")
    # The data is the factor with the first axis of the result: the batch.
    data = next((k for k in (0, 1) if made and made[0] in names[k]), None)
    if data is None or any(len(set(name)) != len(name) for name in (*names, made)):
        return None
    # The batch axis is in both factors: a product of two values, not a fixed weight.
    if made[0] in names[1 - data]:
        return _product(factors, names, made)
    x, of_x, weight, of_weight = factors[data], names[data], factors[1 - data], names[1 - data]
    # Axes of the weight: summed ones vanish, new ones appear in the result.
    summed = [axis for axis in of_weight if axis not in made]
    new = [axis for axis in of_weight if axis in made]
    kept = [axis for axis in of_x if axis in made]
    if not summed or any(axis in of_x for axis in new) or sorted([*kept, *summed]) != sorted(of_x):
        return None  # an axis that both keep, or one that is summed alone
    # The weight as rows (new axes) by columns (summed axes).
    rows = weight.permute([of_weight.index(axis) for axis in (*new, *summed)])
    sizes = [int(n) for n in rows.shape[: len(new)]]
    # The input's summed axes go last and are flattened, as a linear layer takes them.
    flat = x.permute([of_x.index(axis) for axis in (*kept, *summed)]).flatten(len(kept))
    result = F.linear(flat, rows.reshape(-1, flat.shape[-1]))
    result = torch.unflatten(result, -1, sizes) if new else result.squeeze(-1)
    # From the order in which the result is made to the one that was asked for.
    order = [*kept, *new]
    return result.permute([order.index(axis) for axis in made])


def _product(factors: Sequence[torch.Tensor], names: Sequence[str], made: str) -> torch.Tensor | None:
    """Two factors as arrays of matrices: axes of both that are kept, then rows, sums and columns."""
    left, right = names
    kept = [axis for axis in left if axis in right and axis in made]
    summed = [axis for axis in left if axis in right and axis not in made]
    # Axes of one factor alone.
    rows, columns = ([axis for axis in name if axis not in other] for name, other in ((left, right), (right, left)))
    if sorted([*kept, *rows, *columns]) != sorted(made):
        return None  # an axis that is summed alone
    a, b = (
        factor.permute([name.index(axis) for axis in (*kept, *first, *last)])
        for factor, name, first, last in ((factors[0], left, rows, summed), (factors[1], right, summed, columns))
    )
    sizes = dict(zip(left + right, (*factors[0].shape, *factors[1].shape), strict=True))
    lead = [sizes[axis] for axis in kept]
    n, d, m = (math.prod(sizes[axis] for axis in axes) for axes in (rows, summed, columns))
    result = a.reshape(*lead, n, d) @ b.reshape(*lead, d, m)
    order = [*kept, *rows, *columns]
    return result.reshape([sizes[axis] for axis in order]).permute([order.index(axis) for axis in made])


@composition("matmul", "__matmul__")
def matmul(left: Any, right: Any) -> torch.Tensor | None:
    """A matrix times every one of a batch: a linear layer over the axis before the last."""
    if not isinstance(left, torch.Tensor) or left.dim() != 2 or right.dim() < 3:
        return None
    made: torch.Tensor = F.linear(right.transpose(-1, -2), left).transpose(-1, -2)
    return made


@composition("index_add")
def index_add(base: Any, dim: Any, index: Any, source: Any, *, alpha: Any = 1) -> torch.Tensor | None:
    """What is added at indices, as a matrix of zeros and ones over that axis."""
    if not isinstance(dim, int) or alpha != 1 or index.dim() != 1:
        return None
    # Row r has a 1 where the index says r; (places, index).
    places = torch.arange(base.shape[dim], device=index.device)[:, None] == index
    added: torch.Tensor = F.linear(source.movedim(dim, -1), places.to(source.dtype)).movedim(-1, dim)
    return added.add(base)


@composition("bilinear")
def bilinear(left: Any, right: Any, weight: Any, bias: Any = None) -> torch.Tensor:
    """Each output a sum over pairs of entries: a linear layer of one side, and a product with the other."""
    out, n, m = weight.shape
    # (out * m, n): for each output and entry of the right side one row.
    rows = F.linear(left, weight.transpose(1, 2).reshape(out * m, n))
    made: torch.Tensor = (torch.unflatten(rows, -1, (out, m)) @ right.unsqueeze(-1)).squeeze(-1)
    return made if bias is None else made + bias


@composition("cosine_similarity")
def cosine_similarity(left: Any, right: Any, dim: int = 1, eps: float = 1e-8) -> torch.Tensor:
    """The sum of products of two vectors of length one."""
    left, right = (x / x.norm(dim=dim, keepdim=True).clamp_min(eps) for x in (left, right))
    made: torch.Tensor = (left * right).sum(dim)
    return made


@composition("glu")
def glu(x: Any, dim: int = -1) -> torch.Tensor:
    """One half times the logistic function of the other."""
    kept, gate = x.chunk(2, dim)
    made: torch.Tensor = kept * torch.sigmoid(gate)
    return made
