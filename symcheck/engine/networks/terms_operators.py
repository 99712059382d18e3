"""What core operators do to entries that are numbered terms: movement, arithmetic, reductions, and all others.

An operator without a rule makes a new block of terms, known by its name, all entries that it reads and all its
parameters: nothing is said of what it computes but that it answers alike to the same operands.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch.utils._pytree import tree_flatten, tree_map

from symcheck.engine.networks.terms import Entry, NotComparedError, Terms, digest, each


@dataclass(eq=False)
class Entries:
    """A tensor that depends on the input: its entries as signed numbers of terms.

    Attributes:
        numbers: shape of the tensor, int64; views of it share memory as those of the tensor do.
        dtype: of the tensor.
    """

    numbers: torch.Tensor
    dtype: torch.dtype


@dataclass(eq=False)
class Operation:
    """One call of an operator in the graph.

    Attributes:
        terms: the table.
        target: the operator.
        outputs: shape and dtype of each tensor that it returns.
        cache: what was computed once for constants: by identity of the tensor, which is kept.
    """

    terms: Terms
    target: Any
    outputs: list[tuple[tuple[int, ...], torch.dtype]]
    cache: dict[Hashable, Any]

    @property
    def name(self) -> str:
        """The operator's name, without its overload and whether it writes into its first operand."""
        return str(self.target._schema.name).removeprefix("aten::").removesuffix("_")

    @property
    def dtype(self) -> torch.dtype:
        """Of the result."""
        return self.outputs[0][1]

    def numbers(self, item: Any, dtype: torch.dtype | None = None) -> torch.Tensor:
        """Entries of a tensor, a constant tensor or a number, as they are in a result of some dtype."""
        if not isinstance(item, Entries):
            return self._of_constant(item, dtype)
        if dtype is None or item.dtype == dtype:
            return item.numbers
        if item.dtype == torch.bool:
            return each(self.terms.indicator, item.numbers)
        if dtype == torch.bool:
            return each(lambda e: -self.terms.equal(e, 0), item.numbers)
        if item.dtype.is_complex and not dtype.is_complex:
            return each(lambda e: self.terms.apply("real", e, odd=True), item.numbers)
        if item.dtype.is_floating_point and not (dtype.is_floating_point or dtype.is_complex):
            return each(lambda e: self.terms.apply("truncated", e, odd=True), item.numbers)
        return item.numbers

    def _of_constant(self, item: Any, dtype: torch.dtype | None) -> torch.Tensor:
        tensor = item if isinstance(item, torch.Tensor) else torch.tensor(item)
        if tensor.is_complex():
            raise NotComparedError(f"{self.name} of complex numbers")
        tensor = tensor if dtype is None or tensor.dtype == dtype else tensor.to(dtype)
        return torch.tensor([self.terms.constant(v) for v in tensor.reshape(-1).tolist()], dtype=torch.int64).reshape(
            tensor.shape
        )

    def once(self, key: Hashable, tensor: torch.Tensor, make: Callable[[torch.Tensor], Any]) -> Any:
        """Something computed of a constant tensor, once."""
        place = (key, id(tensor))
        if place not in self.cache:
            self.cache[place] = (tensor, make(tensor))  # the tensor is kept, as its identity names it
        return self.cache[place][1]

    def parameters(self, tree: Any) -> Hashable:
        """What tells arguments apart that are not entries."""
        leaves, spec = tree_flatten(tree)
        return str(spec), tuple(self._parameter(leaf) for leaf in leaves)

    def _parameter(self, leaf: Any) -> Hashable:
        if isinstance(leaf, Entries):
            return "entries", str(leaf.dtype), tuple(leaf.numbers.shape)
        if isinstance(leaf, torch.Tensor):
            return self.once("digest", leaf, digest)  # type: ignore[no-any-return]
        if isinstance(leaf, float):
            return leaf.hex()
        return type(leaf).__name__, str(leaf)


Operator = Callable[..., Any]
_OperatorT = TypeVar("_OperatorT", bound=Operator)
OPERATORS: dict[str, Operator] = {}
"""By the operator's name; each takes the operation and its arguments, and returns the numbers of its first result."""


def operator(*names: str) -> Callable[[_OperatorT], _OperatorT]:
    """Register what operators of these names do to entries."""

    def register(function: _OperatorT) -> _OperatorT:
        for name in names:
            OPERATORS[name] = function
        return function

    return register


# Everything else


def pointwise(operation: Operation, *args: Any, **kwargs: Any) -> torch.Tensor:
    """A function of the entries at the same place, of which nothing else is known."""
    leaves = tree_flatten((args, kwargs))[0]
    tensors = [leaf for leaf in leaves if isinstance(leaf, Entries | torch.Tensor)]
    label = (
        operation.name,
        operation.parameters(
            tree_map(lambda leaf: None if isinstance(leaf, torch.Tensor | Entries) else leaf, (args, kwargs))
        ),
    )
    numbers = [operation.numbers(tensor) for tensor in tensors]
    return each(lambda *entries: operation.terms.number((label, entries)), *numbers)


def make_block(operation: Operation, *args: Any, **kwargs: Any) -> Any:
    """New terms for all results of an operator that answers alike to the same operands."""
    leaves = [leaf for leaf in tree_flatten((args, kwargs))[0] if isinstance(leaf, Entries)]
    read = tuple(leaf.numbers.contiguous().numpy().tobytes() for leaf in leaves)
    key = (str(operation.target), operation.parameters((args, kwargs)), read)
    results = []
    for place, (shape, _) in enumerate(operation.outputs):
        count = math.prod(shape)
        start = operation.terms.number((place, key), max(count, 1))
        results.append(torch.arange(start, start + count).reshape(shape))
    return results if len(results) > 1 else results[0]


@operator("convolution", "avg_pool2d", "max_pool2d_with_indices", "_adaptive_avg_pool2d", "adaptive_max_pool2d")
def make_blocks(operation: Operation, x: Any, *args: Any, **kwargs: Any) -> Any:
    """New terms, sample by sample: entries of the first axis do not meet."""
    if not isinstance(x, Entries) or any(isinstance(item, Entries) for item in tree_flatten((args, kwargs))[0]):
        return make_block(operation, x, *args, **kwargs)
    shapes = operation.outputs
    if any(shape[:1] != tuple(x.numbers.shape[:1]) for shape, _ in shapes):
        return make_block(operation, x, *args, **kwargs)
    alone = Operation(operation.terms, operation.target, [((1, *shape[1:]), d) for shape, d in shapes], operation.cache)
    parts = [make_block(alone, Entries(row[None], x.dtype), *args, **kwargs) for row in x.numbers]
    if len(shapes) == 1:
        return torch.cat(parts)
    return [torch.cat(column) for column in zip(*parts, strict=True)]


# Arithmetic


@operator("add", "sub", "rsub")
def add(operation: Operation, x: Any, y: Any, alpha: Any = 1) -> torch.Tensor:
    """Sums and differences."""
    terms = operation.terms
    if operation.dtype == torch.bool:
        raise NotComparedError(f"{operation.name} of boolean entries")
    a, b = (operation.numbers(item, operation.dtype) for item in (x, y))
    if operation.name == "rsub":
        a, b = b, a
        if alpha != 1:
            raise NotComparedError(operation.name)
    scale = terms.constant(float(alpha))
    sign = 1 if operation.name == "add" else -1
    return each(lambda p, q: terms.add([p, sign * (q if alpha == 1 else terms.multiply([scale, q]))]), a, b)


@operator("mul")
def multiply(operation: Operation, x: Any, y: Any) -> torch.Tensor:
    """Products; of boolean entries whether both are true."""
    a, b = (operation.numbers(item, operation.dtype) for item in (x, y))
    if operation.dtype == torch.bool:
        return each(lambda p, q: operation.terms.all_true([p, q]), a, b)
    return each(lambda p, q: operation.terms.multiply([p, q]), a, b)


@operator("div")
def divide(operation: Operation, x: Any, y: Any, rounding_mode: str | None = None) -> torch.Tensor:
    """Quotients."""
    a, b = (operation.numbers(item, operation.dtype) for item in (x, y))
    if rounding_mode is not None:
        return each(lambda p, q: operation.terms.number(("quotient", rounding_mode, p, q)), a, b)
    return each(operation.terms.divide, a, b)


@operator("neg")
def negate(operation: Operation, x: Entries) -> torch.Tensor:
    """The opposite."""
    return -x.numbers


@operator("pow", "square")
def power(operation: Operation, x: Any, exponent: Any = 2) -> torch.Tensor:
    """Powers; of constant whole exponents the sign is known."""
    terms = operation.terms
    if isinstance(exponent, int | float) and isinstance(x, Entries):
        whole = float(exponent).is_integer()
        name = ("power", float(exponent))
        odd, even = whole and exponent % 2 == 1 and exponent > 0, whole and exponent % 2 == 0
        return each(lambda e: terms.apply(name, e, odd=odd, even=even), operation.numbers(x, operation.dtype))
    a, b = (operation.numbers(item, operation.dtype) for item in (x, exponent))
    return each(lambda p, q: terms.number(("power", p, q)), a, b)


_ODD = "tanh sin tan asin atan sinh asinh atanh erf sign sgn trunc round softsign erfinv"
_EVEN = "abs cos cosh"
_POSITIVE = "exp softplus sigmoid exp2"


@operator(*_ODD.split(), *_EVEN.split(), *_POSITIVE.split())
def apply(operation: Operation, x: Entries, *args: Any, **kwargs: Any) -> torch.Tensor:
    """Functions of one entry that are odd, even or positive."""
    terms, name = operation.terms, (operation.name, operation.parameters((args, kwargs)))
    numbers = operation.numbers(x, operation.dtype)
    if operation.name in _POSITIVE.split():
        return each(lambda e: terms.positive(name, e), numbers)
    odd = operation.name in _ODD.split()
    return each(lambda e: terms.apply(name, e, odd=odd, even=not odd), numbers)


@operator("maximum", "minimum", "fmax", "fmin")
def largest(operation: Operation, x: Any, y: Any) -> torch.Tensor:
    """The larger, or smaller, of two entries."""
    sign = 1 if operation.name in ("maximum", "fmax") else -1
    a, b = (operation.numbers(item, operation.dtype) for item in (x, y))
    return each(lambda p, q: sign * operation.terms.largest([sign * p, sign * q]), a, b)


# Logic


@operator("gt", "lt", "ge", "le", "eq", "ne")
def compare(operation: Operation, x: Any, y: Any) -> torch.Tensor:
    """Comparisons, as a > b or its opposite; a = b or its opposite."""
    terms = operation.terms
    dtype = torch.float64 if _is_number(x) or _is_number(y) else torch.bool
    a, b = (operation.numbers(item, dtype) for item in (x, y))
    if dtype == torch.bool and operation.name not in ("eq", "ne"):
        raise NotComparedError(f"{operation.name} of boolean entries")
    rules: dict[str, Callable[[Entry, Entry], Entry]] = {
        "gt": terms.greater,
        "lt": lambda p, q: terms.greater(q, p),
        "ge": lambda p, q: -terms.greater(q, p),
        "le": lambda p, q: -terms.greater(p, q),
        "eq": terms.equal,
        "ne": lambda p, q: -terms.equal(p, q),
    }
    return each(rules[operation.name], a, b)


def _is_number(item: Any) -> bool:
    if isinstance(item, Entries | torch.Tensor):
        return item.dtype != torch.bool
    return not isinstance(item, bool)


@operator("logical_not", "bitwise_not")
def invert(operation: Operation, x: Entries) -> torch.Tensor:
    """The opposite of boolean entries."""
    if x.dtype != torch.bool:
        raise NotComparedError(operation.name)
    return -x.numbers


@operator("logical_and", "bitwise_and", "logical_or", "bitwise_or")
def combine(operation: Operation, x: Any, y: Any) -> torch.Tensor:
    """Whether both boolean entries are true, or one."""
    if operation.dtype != torch.bool or any(_is_number(item) for item in (x, y)):
        raise NotComparedError(operation.name)
    sign = 1 if operation.name.endswith("and") else -1
    a, b = (operation.numbers(item, torch.bool) for item in (x, y))
    return each(lambda p, q: sign * operation.terms.all_true([sign * p, sign * q]), a, b)
