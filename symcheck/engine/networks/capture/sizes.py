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
    # rounded quotients and remainders agree on ever so many sizes before they differ
    difference = _without_rounding(guard.lhs - guard.rhs)
    return difference is not None and bool(sympy.expand(difference) == 0)


_QUOTIENTS, _REMAINDERS = frozenset(["FloorDiv", "CleanDiv"]), frozenset(["Mod", "PythonMod"])
_LARGE = 10**9  # a batch size at which the quotient of two polynomials in it has its final form


def _without_rounding(expression: Any) -> Any:
    """An expression whose rounded quotients are polynomials for all sizes of 2 or more; None if one is not known."""
    parts = [_without_rounding(part) for part in expression.args]
    if any(part is None for part in parts):
        return None
    if not isinstance(expression, sympy.Function):
        return expression.func(*parts) if parts else expression
    kind = type(expression).__name__
    quotient = _quotient(*parts) if kind in _QUOTIENTS | _REMAINDERS else None
    return quotient if quotient is None or kind in _QUOTIENTS else parts[0] - quotient * parts[1]


def _quotient(dividend: Any, divisor: Any) -> Any:
    """The k with 0 <= dividend - k * divisor < divisor for all sizes of 2 or more; None if no linear k is found."""
    symbols = list(dividend.free_symbols | divisor.free_symbols)
    if len(symbols) != 1 or not all(item.is_polynomial(*symbols) for item in (dividend, divisor)):
        return None
    n = symbols[0]
    first, second = (sympy.floor((dividend / divisor).subs(n, size)) for size in (_LARGE, _LARGE + 1))
    found = first + (second - first) * (n - _LARGE)
    rest = dividend - found * divisor
    # all are whole numbers, so less than the divisor means at most one less
    is_rest = _is_never_negative(rest, n) and _is_never_negative(divisor - 1 - rest, n)
    return found if is_rest else None


def _is_never_negative(polynomial: Any, n: Any) -> bool:
    """Whether a polynomial is at least 0 for all n of 2 or more: sufficient, its coefficients in n - 2 are."""
    shifted = sympy.Poly(polynomial.subs(n, n + 2), n)
    return all(coefficient >= 0 for coefficient in shifted.all_coeffs())


def symbols_of(size: Any) -> set[Any]:
    """The symbols in a size."""
    return set(size.node.expr.free_symbols) if isinstance(size, torch.SymInt) else set()


def multiple_of(size: Any, symbol: Any) -> int:
    """The k of an axis of size k * n."""
    if not isinstance(size, torch.SymInt):
        return 1
    quotient = size.node.expr / symbol
    return int(quotient) if quotient.is_integer and not quotient.free_symbols else 1
