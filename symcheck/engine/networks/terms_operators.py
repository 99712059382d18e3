"""What core operators do to entries that are numbered terms: movement, arithmetic, reductions, and all others.

An operator without a rule makes a new block of terms, known by its name, all entries that it reads and all its
parameters: nothing is said of what it computes but that it answers alike to the same operands.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch.utils._pytree import tree_flatten, tree_map

from symcheck.engine.networks.terms import Entry, NotComparedError, Terms, digest, each, each_row


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
        """What tells arguments apart that are no entries."""
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


# Movement

_VIEWS = (
    "view _unsafe_view reshape _reshape_alias expand permute transpose t numpy_T select slice unsqueeze squeeze "
    "unbind split split_with_sizes chunk narrow diagonal unfold detach alias movedim swapaxes unflatten"
)
_COPIES = (
    "flip roll repeat clone contiguous lift_fresh_copy lift_fresh index_select pixel_shuffle pixel_unshuffle "
    "channel_shuffle native_channel_shuffle rot90 take gather index _unsafe_index repeat_interleave "
    "slice_copy select_copy"
)


@operator(*_VIEWS.split(), *_COPIES.split())
def move(operation: Operation, x: Any, *args: Any, **kwargs: Any) -> Any:
    """The operator itself, on the numbers of terms."""
    if not isinstance(x, Entries) or any(isinstance(item, Entries) for item in tree_flatten((args, kwargs))[0]):
        return make_block(operation, x, *args, **kwargs)  # places that depend on values
    return operation.target(x.numbers, *args, **kwargs)


@operator("cat", "stack")
def join(operation: Operation, tensors: Sequence[Any], dim: int = 0) -> torch.Tensor:
    """Tensors one after the other, constants among them."""
    return operation.target([operation.numbers(item, operation.dtype) for item in tensors], dim)  # type: ignore[no-any-return]


@operator("tril", "triu")
def cut_corner(operation: Operation, x: Entries, diagonal: int = 0) -> Any:
    """Zero on one side of a diagonal."""
    if x.dtype == torch.bool:
        raise NotComparedError(operation.name)
    return operation.target(x.numbers, diagonal)


@operator("constant_pad_nd")
def pad(operation: Operation, x: Entries, pads: Sequence[int], value: Any = 0) -> torch.Tensor:
    """A number around the entries."""
    filler = operation.terms.constant(bool(value) if x.dtype == torch.bool else float(value))
    return torch.ops.aten.constant_pad_nd(x.numbers, pads, filler)  # type: ignore[no-any-return]


@operator("reflection_pad1d", "reflection_pad2d", "replication_pad1d", "replication_pad2d", "upsample_nearest2d")
def repeat_entries(operation: Operation, x: Entries, *args: Any, **kwargs: Any) -> torch.Tensor:
    """Entries again at other places; numbers of terms are exact in float64."""
    return operation.target(x.numbers.double(), *args, **kwargs).long()  # type: ignore[no-any-return]


@operator("_to_copy", "to")
def cast(operation: Operation, x: Entries, *args: Any, **kwargs: Any) -> torch.Tensor:
    """Casts between floating dtypes count as the identity."""
    return operation.numbers(x, operation.dtype).clone()


@operator("copy")
def overwrite(operation: Operation, x: Any, source: Any, non_blocking: bool = False) -> torch.Tensor:
    """What is copied, in the shape of what it replaces."""
    return operation.numbers(source, operation.dtype).expand(operation.outputs[0][0])


@operator(
    "fill",
    "zero",
    "full_like",
    "zeros_like",
    "ones_like",
    "new_zeros",
    "new_ones",
    "new_full",
    "empty_like",
    "new_empty",
)
def fill(operation: Operation, x: Any, *args: Any, **kwargs: Any) -> torch.Tensor:
    """One number everywhere; where none is given, one that nobody may read."""
    shape, dtype = operation.outputs[0]
    name = operation.name
    if "empty" in name:
        return operation.terms.unset(shape)
    given = args[-1] if name in ("fill", "full_like", "new_full") else float("ones" in name)
    return operation.numbers(given, dtype).expand(shape).clone()


@operator("where")
def where(operation: Operation, condition: Any, yes: Any, no: Any) -> torch.Tensor:
    """One of two entries, by a condition."""
    a, b = (operation.numbers(item, operation.dtype) for item in (yes, no))
    return each(operation.terms.choose, operation.numbers(condition, torch.bool), a, b)


@operator("masked_fill")
def masked_fill(operation: Operation, x: Any, mask: Any, value: Any) -> torch.Tensor:
    """A number where a mask is true."""
    return where(operation, mask, value, x)


@operator("scatter", "scatter_add", "index_add", "index_put", "_index_put_impl", "scatter_reduce")
def scatter(operation: Operation, x: Any, *args: Any, **kwargs: Any) -> torch.Tensor:
    """Entries written, or added, at constant places."""
    shape = operation.outputs[0][0]
    before = operation.numbers(x, operation.dtype)
    if operation.name.startswith(("index_put", "_index_put")):
        indices, source, accumulate = args[0], args[1], (args[2] if len(args) > 2 else kwargs.get("accumulate", False))
        _refuse_moving_places(operation, indices)
        places = torch.arange(math.prod(shape)).reshape(shape)
        places = torch.ops.aten.index(places, list(indices))
        way = "sum" if accumulate else "last"
    else:
        dim, index, source = args[0], args[1], args[2]
        if kwargs.get("alpha", 1) != 1 or not shape:
            raise NotComparedError(operation.name)
        _refuse_moving_places(operation, [index])
        kind = args[3] if operation.name == "scatter_reduce" else kwargs.get("reduce", "last")
        way = "sum" if operation.name in ("scatter_add", "index_add") else str(kind)
        places = _places(operation, dim, index)
    if way != "last" and operation.dtype == torch.bool:
        raise NotComparedError(f"{operation.name} of boolean entries")
    written = operation.numbers(source, operation.dtype)
    if operation.name.startswith("scatter") and written.ndim:
        written = written[tuple(slice(0, n) for n in places.shape)]  # only as far as the index reaches
    result, targets, entries = (t.reshape(-1).tolist() for t in (before, places, written.expand(places.shape)))
    own = bool(kwargs.get("include_self", True))
    made = _scattered(operation.terms, result, targets, entries, way, include_self=own)
    return torch.tensor(made, dtype=torch.int64).reshape(shape)


def _refuse_moving_places(operation: Operation, indices: Sequence[Any]) -> None:
    if any(isinstance(item, Entries) for item in indices):
        raise NotComparedError(f"{operation.name} at places that depend on the input")


def _places(operation: Operation, dim: int, index: torch.Tensor) -> torch.Tensor:
    """The flat place of the result to which each entry goes."""
    shape = operation.outputs[0][0]
    places = torch.arange(math.prod(shape)).reshape(shape)
    if operation.name == "index_add":
        return places.index_select(dim, index.reshape(-1))
    cut = tuple(slice(0, n) if k != dim % len(shape) else slice(None) for k, n in enumerate(index.shape))
    return places[cut].gather(dim, index)


def _scattered(
    terms: Terms, result: list[Entry], places: list[int], written: list[Entry], way: str, *, include_self: bool
) -> list[Entry]:
    groups: dict[int, list[Entry]] = {}
    for place, entry in zip(places, written, strict=True):
        groups.setdefault(place, []).append(entry)
    ways: dict[str, Callable[[list[Entry]], Entry]] = {
        "sum": terms.add,
        "add": terms.add,
        "prod": terms.multiply,
        "amax": terms.largest,
        "amin": lambda entries: -terms.largest([-entry for entry in entries]),
        "mean": lambda entries: terms.divide(terms.add(entries), terms.constant(float(len(entries)))),
    }
    if way != "last" and way not in ways:
        raise NotComparedError(f"scatter with {way}")
    if way == "last" and any(len(set(group)) > 1 for group in groups.values()):
        raise NotComparedError("several entries written at one place")
    for place, group in groups.items():
        own = [result[place]] if include_self else []
        result[place] = group[0] if way == "last" else ways[way](own + group)
    return result


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


# Along axes


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
