"""Entries of tensors as numbered terms: two entries with one number are equal for every input.

An entry is written as a signed number: the term that it is, and whether it is negated. A term is known by its key: the
operator that made it, its operands and its parameters; of sums, products, means and maxima the operands without order.
A key that was made before gets the number that it had, so that equal numbers mean equal values in real arithmetic,
whatever the input. The converse does not hold: equal values may have two numbers, and then nothing is shown.

0 is the number zero. An entry of a boolean tensor that is negated is its opposite. The arithmetic is that of real
numbers: NaN and infinities that a network makes of finite inputs are outside.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Hashable, Iterable, Sequence

import torch

MOST_KEYS = 600_000
"""Keys beyond which a network is not compared: some seconds, and some hundred bytes each."""
LONGEST_SUM = 256
"""Summands up to which a sum within a sum is written out; longer ones stay one summand."""
Entry = int


class NotComparedError(Exception):
    """An operator, or a size, with which the comparison ends; carries the operator's name."""

    def __init__(self, operation: str) -> None:
        self.operation = operation
        super().__init__(operation)


class Terms:
    """The table of terms of one comparison.

    Args:
        off_ties: whether a > b counts as not (b > a), which is so unless a = b; the pairs are kept in `ties`.
        deadline: of `time.monotonic`, after which nothing more is compared.

    Attributes:
        ties: pairs of entries for which that was used.
        compares: whether some entries were compared by size.
    """

    def __init__(self, *, off_ties: bool = False, deadline: float | None = None) -> None:
        self.off_ties = off_ties
        self._deadline = deadline
        self.ties: set[tuple[Entry, Entry]] = set()
        self.compares = False
        self._numbers: dict[Hashable, int] = {}
        self._next = 1
        self._summands: dict[int, tuple[Entry, ...]] = {}
        self._factors: dict[int, tuple[Entry, ...]] = {}
        self._values: dict[int, float] = {}
        self._positive: set[int] = set()

    def number(self, key: Hashable, count: int = 1) -> int:
        """The first of `count` numbers of a key; new ones where the key is new."""
        known = self._numbers.get(key)
        if known is None:
            known = self._numbers[key] = self._next
            self._next += count
            if len(self._numbers) > MOST_KEYS:
                raise NotComparedError("a network of this size")
            if self._deadline is not None and not len(self._numbers) % 1000 and time.monotonic() > self._deadline:
                raise NotComparedError("a network of this size in this time")
        return known

    def inputs(self, count: int) -> torch.Tensor:
        """The entries of the input, shape (count,)."""
        start = self.number("input", count)
        return torch.arange(start, start + count)

    def unset(self, shape: Sequence[int]) -> torch.Tensor:
        """Entries of memory that nothing was written to: equal to nothing, themselves in another run included."""
        count = max(1, math.prod(shape))
        start = self.number(("unset", self._next), count)
        return torch.arange(start, start + math.prod(shape)).reshape(tuple(shape))

    def constant(self, value: float | bool) -> Entry:
        """A number of the network's own."""
        if isinstance(value, bool):
            truth = self.number("true")
            return truth if value else -truth
        value = float(value)
        if math.isnan(value):
            raise NotComparedError("NaN")
        if value == 0.0:
            return 0
        number = self.number(("constant", abs(value)))
        self._values[number] = abs(value)
        return number if value > 0 else -number

    def value(self, entry: Entry) -> float | None:
        """The number that an entry is; None where it depends on the input."""
        if entry == 0:
            return 0.0
        value = self._values.get(abs(entry))
        return value if value is None or entry > 0 else -value

    def is_positive(self, entry: Entry) -> bool:
        """Whether an entry is known to be positive for every input."""
        if entry in self._summands:
            return all(self.is_positive(part) for part in self._summands[entry])
        if entry in self._factors:
            return all(self.is_positive(part) for part in self._factors[entry])
        return entry in self._positive or (self.value(entry) or 0.0) > 0.0

    def apply(self, name: Hashable, entry: Entry, *, odd: bool = False, even: bool = False) -> Entry:
        """A function of one entry: of odd functions a sign comes out, of even ones it is dropped."""
        if odd:
            return -self.number((name, -entry)) if entry < 0 else self.number((name, entry)) if entry else 0
        return self.number((name, abs(entry) if even else entry))

    def positive(self, name: Hashable, entry: Entry) -> Entry:
        """A function of one entry whose values are positive."""
        number = self.number((name, entry))
        self._positive.add(number)
        return number

    def add(self, summands: Iterable[Entry]) -> Entry:
        """A sum, whatever the order of its summands; what cancels is left out."""
        flat: list[Entry] = []
        for entry in summands:
            inner = self._summands.get(abs(entry))
            if inner is not None and len(inner) <= LONGEST_SUM:
                flat.extend(inner if entry > 0 else [-part for part in inner])
            elif entry:
                flat.append(entry)
        flat = _without_opposites(flat)
        if len(flat) < 2:
            return flat[0] if flat else 0
        key, sign = _signed(flat)
        number = self.number(("sum", key))
        self._summands[number] = key
        return sign * number

    def multiply(self, factors: Iterable[Entry]) -> Entry:
        """A product, whatever the order of its factors."""
        sign = 1
        flat: list[Entry] = []
        for entry in factors:
            if entry == 0:
                return 0
            sign = -sign if entry < 0 else sign
            flat.extend(self._factors.get(abs(entry), (abs(entry),)))
        one = self._numbers.get(("constant", 1.0))
        flat = sorted(factor for factor in flat if factor != one)
        if len(flat) < 2:
            return sign * (flat[0] if flat else self.constant(1.0))
        number = self.number(("product", tuple(flat)))
        self._factors[number] = tuple(flat)
        return sign * number

    def divide(self, entry: Entry, by: Entry) -> Entry:
        """A quotient."""
        if self.value(by) == 1.0 or entry == 0:
            return entry
        number = self.number(("quotient", abs(entry), abs(by)))
        return number if (entry > 0) == (by > 0) else -number

    def indicator(self, entry: Entry) -> Entry:
        """1 where a boolean entry is true, else 0."""
        truth = self.number("true")
        if abs(entry) == truth:
            return self.constant(1.0) if entry > 0 else 0
        number = self.number(("indicator", abs(entry)))
        return number if entry > 0 else self.add([self.constant(1.0), -number])

    def largest(self, entries: Iterable[Entry]) -> Entry:
        """The largest of several entries, whatever their order."""
        flat = sorted(set(entries))
        return flat[0] if len(flat) == 1 else self.number(("largest", tuple(flat)))

    def all_true(self, entries: Iterable[Entry]) -> Entry:
        """Whether all of several boolean entries are true."""
        truth = self.number("true")
        flat = sorted(set(entries) - {truth})
        if -truth in flat or any(-entry in flat for entry in flat if entry > 0):
            return -truth
        if len(flat) < 2:
            return flat[0] if flat else truth
        return self.number(("all", tuple(flat)))

    def greater(self, left: Entry, right: Entry) -> Entry:
        """Whether left > right."""
        ours, theirs = self.value(left), self.value(right)
        if left == right:
            return self.constant(False)
        if ours is not None and theirs is not None:
            return self.constant(ours > theirs)
        if right == 0 and self.is_positive(left):
            return self.constant(True)
        self.compares = True
        straight = min((left, right), (-right, -left))  # a > b where -b > -a
        if not self.off_ties:
            return self.number(("greater", straight))
        turned = min((right, left), (-left, -right))
        if straight <= turned:
            return self.number(("greater", straight))
        self.ties.add((left, right))
        return -self.number(("greater", turned))

    def equal(self, left: Entry, right: Entry) -> Entry:
        """Whether left = right."""
        ours, theirs = self.value(left), self.value(right)
        if left == right:
            return self.constant(True)
        if ours is not None and theirs is not None:
            return self.constant(ours == theirs)
        return self.number(("equal", min(tuple(sorted((left, right))), tuple(sorted((-left, -right))))))

    def choose(self, condition: Entry, yes: Entry, no: Entry) -> Entry:
        """One of two entries, by a boolean one."""
        truth = self.number("true")
        if yes == no or abs(condition) == truth:
            return no if condition == -truth else yes
        if condition < 0:
            condition, yes, no = -condition, no, yes
        sign = 1 if (yes, no) <= (-yes, -no) else -1
        return sign * self.number(("choose", condition, sign * yes, sign * no))


def digest(tensor: torch.Tensor) -> bytes:
    """What tells tensors apart: type, shape and all bits; 32 bytes, which no two tensors share in practice."""
    array = tensor.detach().cpu().contiguous()
    label = f"{array.dtype} {tuple(array.shape)}".encode()
    return hashlib.blake2b(label + array.numpy().tobytes(), digest_size=32).digest()


def each(function: Callable[..., Entry], *tensors: torch.Tensor) -> torch.Tensor:
    """A function of entries at the same place of several tensors, broadcast."""
    spread: Sequence[torch.Tensor] = torch.broadcast_tensors(*tensors)  # type: ignore[no-untyped-call]
    known: dict[tuple[Entry, ...], Entry] = {}
    result = []
    for entries in zip(*(tensor.reshape(-1).tolist() for tensor in spread), strict=True):
        entry = known.get(entries)
        if entry is None:
            entry = known[entries] = function(*entries)
        result.append(entry)
    return torch.tensor(result, dtype=torch.int64).reshape(spread[0].shape)


def each_row(function: Callable[[list[Entry]], Entry], rows: torch.Tensor) -> torch.Tensor:
    """A function of the entries along the last axis, shape (..., k), for each of the other places."""
    return torch.tensor(
        [function(row) for row in rows.reshape(-1, rows.shape[-1]).tolist()], dtype=torch.int64
    ).reshape(rows.shape[:-1])


def _without_opposites(flat: list[Entry]) -> list[Entry]:
    numbers = set(flat)
    if not any(-entry in numbers for entry in flat):
        return flat
    kept: list[Entry] = []
    counts: dict[Entry, int] = {}
    for entry in flat:
        counts[entry] = counts.get(entry, 0) + 1
    for entry, count in counts.items():
        kept.extend([entry] * max(0, count - counts.get(-entry, 0)))
    return kept


def _signed(flat: Sequence[Entry]) -> tuple[tuple[Entry, ...], int]:
    """A multiset in order, or that of the opposites, whichever comes first, and which it was."""
    straight, turned = tuple(sorted(flat)), tuple(sorted(-entry for entry in flat))
    return (straight, 1) if straight <= turned else (turned, -1)
