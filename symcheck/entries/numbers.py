"""Reads numbers written as expressions, such as "-pi/3" and "sqrt(3)/2", so data files need no rounded literals."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable
from typing import Any

from symcheck.errors import SpecError

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_CONSTANTS = {"pi": math.pi}
_FUNCTIONS: dict[str, Callable[[float], float]] = {"sqrt": math.sqrt, "cos": math.cos, "sin": math.sin}


def number(written: Any, where: str) -> float:
    """Evaluate a number, or an expression of numbers, pi, + - * /, sqrt, cos and sin; nothing else is evaluated.

    Args:
        written: a number or a string.
        where: how messages name the place.

    Returns:
        Its value as a float.

    Raises:
        SpecError: the string has another form.

    Example:
        >>> number("-pi/3", "offset")
        -1.0471975511965976
    """
    if not isinstance(written, str):
        return float(written)
    try:
        # Only the syntax tree is read; the text is never executed.
        return float(_evaluate(ast.parse(written, mode="eval").body))
    except (
        SyntaxError,
        KeyError,
        TypeError,
        ValueError,
        ZeroDivisionError,
        OverflowError,
        RecursionError,
        MemoryError,
    ) as error:
        raise SpecError(
            f"expected a number, or an expression of numbers, pi, + - * /, sqrt, cos and sin; got {written!r}.",
            where=where,
        ) from error


def _evaluate(node: ast.expr) -> float:
    match node:
        case ast.Constant(value=int() | float() as value):
            return value
        case ast.Name(id=name):
            return _CONSTANTS[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_evaluate(operand)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return _evaluate(operand)
        case ast.BinOp(left=left, op=op, right=right):
            return float(_BINARY[type(op)](_evaluate(left), _evaluate(right)))
        case ast.Call(func=ast.Name(id=name), args=[argument], keywords=[]):
            return _FUNCTIONS[name](_evaluate(argument))
        case _:
            raise ValueError(ast.dump(node))
