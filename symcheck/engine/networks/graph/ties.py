"""For which inputs a claim may fail that holds for all others: those on which a comparison of entries is a tie.

The nodes are computed on the checker's terms, with one more rule: a > b is the opposite of b > a, which is so unless
a = b. Nothing is proved by it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from symcheck.certificate_checker import EXACT_CLAIM, Checker, RejectedError


def ties_of(document: dict[str, Any]) -> tuple[str, ...] | None:
    """The equations of input entries off which the claim of a certificate holds; None where it does not, or always.

    Inputs are seldom equal. What is computed of them may be equal on whole regions, as two units that are both off: a
    comparison of such entries gives None.

    Args:
        document: a certificate, of permutations and signs, that the checker did not accept.
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
    except RejectedError:  # it does not hold off ties either
        return None
    shape = tuple(document["input"]["shape"])
    equations = [_equation(checker.terms.known, term, shape) for term in comparisons.ties]
    return tuple(sorted(set(equations))) if equations and all(equations) else None


class _Comparisons:
    """Takes over how terms are made of functions, so that comparisons either way are opposites of each other."""

    def __init__(self, terms: Any) -> None:
        self.ties: set[int] = set()
        self._answers: set[int] = set()  # terms that are 0 or 1
        self._negated: dict[int, int] = {}  # of which some are 1 where others are 0
        self._usual = terms.apply
        terms.apply = self.apply

    def apply(self, name: str, parameters: list[float], x: tuple[int, ...]) -> int:
        """The number of a function of terms."""
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
    """That a term is zero, in words; "" where it is no difference of two input entries and none itself."""
    keys = {number: key for key, number in known.items()}
    kind, *parts = keys[term]
    if kind == "input":
        return f"{_input_entry(parts[0], shape)} = 0"
    if kind != "linear":
        return ""
    terms = np.frombuffer(keys[parts[0]][1], dtype=np.int64)
    weights = keys[parts[1]][1]
    weights = np.frombuffer(weights) if isinstance(weights, bytes) else np.array(weights, dtype=float)
    inputs = [keys[int(item)] for item in terms]
    if len(inputs) != 2 or any(key[0] != "input" for key in inputs) or weights[2] or abs(weights[0]) != abs(weights[1]):
        return ""
    opposite = "-" if weights[0] == weights[1] else ""
    return f"{_input_entry(inputs[0][1], shape)} = {opposite}{_input_entry(inputs[1][1], shape)}"


def _input_entry(entry: int, shape: tuple[int, ...]) -> str:
    return "x" + "".join(f"[{int(k)}]" for k in np.unravel_index(entry, shape))
