"""Operators along axes, on numbered terms: sums, extremes, norms, softmax, and what sorts or adds up along a line."""

from __future__ import annotations

from typing import Any

import torch

from symcheck.engine.networks.terms import Entry, each_row
from symcheck.engine.networks.terms_operators import Entries, Operation, make_block, operator


def _last(operation: Operation, numbers: torch.Tensor, dim: Any) -> torch.Tensor:
    """The axes that are summed, as one, behind the others."""
    given = range(numbers.ndim) if dim is None or dim == [] else (dim if isinstance(dim, list | tuple) else [dim])
    axes = sorted({int(axis) % max(numbers.ndim, 1) for axis in given})
    kept = [axis for axis in range(numbers.ndim) if axis not in axes]
    return numbers.permute([*kept, *axes]).reshape([numbers.shape[axis] for axis in kept] + [-1])


@operator(
    "sum", "mean", "amax", "amin", "max", "min", "prod", "logsumexp", "var", "std", "any", "all", "linalg_vector_norm"
)
def reduce(operation: Operation, x: Entries, *args: Any, **kwargs: Any) -> Any:
    """What does not depend on the order of the entries along some axes."""
    terms, name = operation.terms, operation.name
    if len(operation.outputs) > 1:  # with the place of the largest
        return make_block(operation, x, *args, **kwargs)
    given = (
        dict(zip((argument.name for argument in operation.target._schema.arguments[1:]), args, strict=False)) | kwargs
    )
    dtype = torch.bool if name in ("any", "all") else operation.dtype
    rows = _last(operation, operation.numbers(x, dtype), given.pop("dim", None))
    given.pop("keepdim", None)
    given.pop("dtype", None)
    label = (name, operation.parameters(given), rows.shape[-1])

    def symmetric(row: list[Entry]) -> Entry:
        if name == "sum":
            return terms.add(row)
        if name == "mean":
            return terms.divide(terms.add(row), terms.constant(float(len(row))))
        if name in ("amax", "max"):
            return terms.largest(row)
        if name in ("amin", "min"):
            return -terms.largest([-entry for entry in row])
        if name == "prod":
            return terms.multiply(row)
        if name in ("any", "all"):
            sign = 1 if name == "all" else -1
            return sign * terms.all_true([sign * entry for entry in row])
        if name == "linalg_vector_norm":
            row = [abs(entry) for entry in row]
        return terms.number((label, tuple(sorted(row))))

    return each_row(symmetric, rows).reshape(operation.outputs[0][0])


@operator("_softmax", "softmax", "_log_softmax", "log_softmax", "_safe_softmax")
def softmax(operation: Operation, x: Entries, dim: int, *rest: Any, **kwargs: Any) -> torch.Tensor:
    """Each entry among the others along one axis."""
    numbers = operation.numbers(x, operation.dtype)
    rows = numbers.movedim(dim, -1)
    name = operation.name.strip("_")

    def shares(row: list[Entry]) -> list[Entry]:
        whole = operation.terms.number(("multiset", tuple(sorted(row))))
        return [
            operation.terms.positive((name, whole), e)
            if name == "softmax"
            else operation.terms.number((name, whole, e))
            for e in row
        ]

    made = torch.tensor([shares(row) for row in rows.reshape(-1, rows.shape[-1]).tolist()], dtype=torch.int64)
    return made.reshape(rows.shape).movedim(-1, dim)


_SORTING = "sort topk"
_ALONG_ONE = "argsort argmax argmin cumsum cumprod cummax cummin logcumsumexp kthvalue median"


@operator(*_SORTING.split(), *_ALONG_ONE.split())
def make_rows(operation: Operation, x: Entries, *args: Any, **kwargs: Any) -> Any:
    """New terms for each line along one axis; sorted values do not depend on the order of the line."""
    arguments = [argument.name for argument in operation.target._schema.arguments]
    defaults = {argument.name: argument.default_value for argument in operation.target._schema.arguments}
    given = defaults | dict(zip(arguments[1:], args, strict=False)) | kwargs
    dim = given.pop("dim", None)
    if dim is None or operation.dtype == torch.bool:
        return make_block(operation, x, *args, **kwargs)
    lines = x.numbers.movedim(dim, -1)
    label = (str(operation.target), operation.parameters({key: given[key] for key in sorted(given)}), str(x.dtype))
    results = []
    for place, (shape, _) in enumerate(operation.outputs):
        kept = len(shape) == x.numbers.ndim
        count = shape[dim] if kept else 1
        starts = each_row(
            lambda line, place=place, count=count: operation.terms.number(  # type: ignore[misc]
                (place, label, tuple(sorted(line) if not place and operation.name in _SORTING.split() else line)), count
            ),
            lines,
        )
        made = starts[..., None] + torch.arange(count)
        results.append(made.movedim(-1, dim) if kept else made[..., 0])
    return results if len(results) > 1 else results[0]
