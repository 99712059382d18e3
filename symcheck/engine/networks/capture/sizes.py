"""Symbolic batch sizes: the functions that return them, and those that would round them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import sympy
import torch

SPLITTING = frozenset(["chunk", "split", "tensor_split"])
"""Functions that can split a batch into parts of rounded size."""


def cuts_batches(name: str, x: Any, parts: Any = None, dim: Any = 0, **_: Any) -> bool:
    """Whether `chunk` or a similar function splits a batch axis into parts that are not whole batches."""
    size: Any = x.shape[dim] if isinstance(x, torch.Tensor) and isinstance(parts, int) and isinstance(dim, int) else 0
    if not isinstance(size, torch.SymInt) or isinstance(parts, torch.SymInt):
        return False
    (symbol,) = size.node.expr.free_symbols
    return name == "split" or not (size.node.expr / parts / symbol).is_integer


@contextmanager
def symbolic_len(scopes: Iterable[dict[str, Any]]) -> Iterator[None]:
    """A `len` that returns the symbol. Python's own returns a plain number, which would fix the batch size."""

    def length(item: Any) -> Any:
        return item.shape[0] if isinstance(item, torch.Tensor) and item.ndim else len(item)

    changed = [scope for scope in {id(scope): scope for scope in scopes}.values() if "len" not in scope]
    for scope in changed:
        scope["len"] = length
    try:
        yield
    finally:
        for scope in changed:
            scope.pop("len", None)


def holds_for_all_sizes(guard: Any) -> bool:
    """Whether an integer derived from the batch size, such as an index, is the same for all sizes.

    Args:
        guard: a condition on the symbol of the batch size, as torch records it. Only an equality means that a size
            became a number; operators use inequalities to select kernels with the same result.
    """
    if type(guard).__name__ != "Equality" or not guard.free_symbols:
        return True
    difference = guard.lhs - guard.rhs
    # rounded quotients and remainders agree on ever so many sizes before they differ
    return not difference.atoms(sympy.Function) and bool(sympy.expand(difference) == 0)


def symbols_of(size: Any) -> set[Any]:
    """The symbols in a size."""
    return set(size.node.expr.free_symbols) if isinstance(size, torch.SymInt) else set()


def multiple_of(size: Any, symbol: Any) -> int:
    """The k of an axis of size k * n."""
    if not isinstance(size, torch.SymInt):
        return 1
    quotient = size.node.expr / symbol
    return int(quotient) if quotient.is_integer and not quotient.free_symbols else 1
