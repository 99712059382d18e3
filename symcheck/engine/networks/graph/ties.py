"""Exceptional inputs of a claim that otherwise holds: inputs for which two compared entries are equal.

The nodes are evaluated on the checker's terms with one additional rule: a > b is the negation of b > a. The rule is
correct unless a = b, so the result is not a proof.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from symcheck.certificate_checker import EXACT_CLAIM, Checker, RejectedError


def ties_of(document: dict[str, Any]) -> tuple[str, ...] | None:
    """Equations of input entries; a certificate's claim holds wherever none of them is satisfied.

    None if the claim never holds, or always.

    Two inputs are rarely equal. Two computed values may be equal on whole regions, for instance two inactive units; a
    comparison of such entries gives None.

    Args:
        document: a certificate of signed permutations that the checker rejected.
    """
    if all(node.get("function") != "positive" for node in document["nodes"]):
        return None  # nothing is compared
    checker = Checker({**document, "claim": {**document["claim"], "tolerance": EXACT_CLAIM}})
    comparisons = _Comparisons(checker.terms)
    try:
        for node in checker.nodes:
            checker.node(node)
        for output in document["outputs"]:
            checker.output(output)
    except RejectedError:  # the claim fails even without ties
        return None
    shape = tuple(document["input"]["shape"])
    equations = [_equation(checker.terms.known, term, shape) for term in comparisons.ties]
    return tuple(sorted(set(equations))) if equations and all(equations) else None


class _Comparisons:
    """Overrides how terms are built from functions, so that opposite comparisons are negations of each other."""

    def __init__(self, terms: Any) -> None:
        self.ties: set[int] = set()
        self._answers: set[int] = set()  # terms with value 0 or 1
        self._negated: dict[int, int] = {}  # pairs of such terms that are negations of each other
        self._usual = terms.apply
        terms.apply = self.apply

    def apply(self, name: str, parameters: list[float], x: tuple[int, ...]) -> int:
        """The id of a function of terms."""
        if name == "positive" and x[0] < 0:
            self.ties.add(-x[0])
            return self.apply("zero", [], (self.apply("positive", [], (-x[0],)),))
        if name == "zero" and x[0] in self._negated:
            return self._negated[x[0]]
        if name == "where" and x[0] in self._negated:
            return self.apply(name, parameters, (self._negated[x[0]], x[2], x[1]))
        term = int(self._usual(name, parameters, x))
        if name == "zero" and x[0] in self._answers:
            self._negated[term] = x[0]
        if name in ("positive", "zero"):
            self._answers.add(term)
        return term


def _equation(known: dict[Any, int], term: int, shape: tuple[int, ...]) -> str:
    """The equation that a term is zero, in words; "" if it is neither an input entry nor a difference of two."""
    keys = {number: key for key, number in known.items()}
    kind, *parts = keys[term]
    if kind == "input":
        return f"{_input_entry(parts[0], shape)} = 0"
    if kind != "linear":
        return _of_computed(keys, term)
    terms = np.frombuffer(keys[parts[0]][1], dtype=np.int64)
    weights = keys[parts[1]][1]
    weights = np.frombuffer(weights) if isinstance(weights, bytes) else np.array(weights, dtype=float)
    inputs = [keys[int(item)] for item in terms]
    if len(inputs) != 2 or any(key[0] != "input" for key in inputs) or weights[2] or abs(weights[0]) != abs(weights[1]):
        return _of_computed(keys, term)
    opposite = "-" if weights[0] == weights[1] else ""
    return f"{_input_entry(inputs[0][1], shape)} = {opposite}{_input_entry(inputs[1][1], shape)}"


_ANALYTIC = frozenset(
    ["tanh", "sin", "cos", "sinh", "cosh", "arctan", "arcsinh", "exp", "expm1", "sigmoid", "erf", "prod"]
)


def _of_computed(keys: dict[int, Any], term: int) -> str:
    """A tie of computed entries, if they can be equal on a set of measure zero only; otherwise "".

    Analytic functions that are equal on an open set are equal everywhere, and terms that are equal everywhere are no
    tie. Units that are inactive on a whole region are not analytic.
    """
    waiting, met = [abs(term)], {abs(term)}
    while waiting:
        kind, *parts = keys[waiting.pop()]
        if kind == "linear":
            inner = np.frombuffer(keys[parts[0]][1], dtype=np.int64).tolist()
        elif kind in _ANALYTIC:
            inner = list(parts[0] if kind == "prod" else parts[-1])
        elif kind in ("input", "constant"):
            inner = []
        else:
            return ""
        waiting += [abs(item) for item in inner if abs(item) not in met]
        met.update(abs(item) for item in inner)
    return "two compared entries are equal"


def _input_entry(entry: int, shape: tuple[int, ...]) -> str:
    return "x" + "".join(f"[{int(k)}]" for k in np.unravel_index(entry, shape))
