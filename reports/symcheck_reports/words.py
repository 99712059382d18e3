"""The sentences of a report, shared by page, terminal, Markdown and JUnit.

A sentence is never stronger than its evidence. `passed` names the number of checks and the violations that could have
been missed; `proved` is used only where every property is proved; an interrupted run is undecided.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from symcheck.engine.equations import BY_NAME
from symcheck.engine.results import Counterexample, Kind, PropertyResult, RunResult, to_json_value
from symcheck.statements.statement import Statement, as_sentence, free, state  # noqa: F401 (free and state: doctests)
from symcheck.verdict import AcceptedBy, Verdict
from symcheck_reports import boards
from symcheck_reports.bounds import bound_sentence
from symcheck_reports.formatting import (
    MAX_ENTRIES,
    clean,
    compact,
    count,
    leaves,
    number,
    one_line,
    plural,
    scientific,
    seconds,
)

# Enough digits to distinguish two float32 values (9 identify each), so that expected and measured differ in print.
_OUTCOME_DIGITS = 9
# maximum number of shown entries, and their smallest difference relative to the largest one
_MOST_APART, _NEXT_TO = 4, 1e-3
_LAYERS = ("layer_certificate", "representation_propagation")
# The name of each kind of subject, and the adjective for a subject with the symmetry.
_NOUNS: dict[Kind, str] = {"env": "environment", "net": "network"}  # other kinds are called by their own name
_PLURALS: dict[Kind, str] = {"policy": "policies"}
_EQUIVARIANT: tuple[Kind, ...] = ("net", "policy")
_COUNTED = {
    "columns": "column",
    "model": "element",
    "states": "state",
    "positions": "comparison",
    "complete": "comparison",
}  # fmt: skip  (what some methods compare)
_ACCEPTED: dict[AcceptedBy, str] = {"baseline": "accepted by baseline", "accept_gap": "accepted by --accept-gap"}


@dataclass(frozen=True)
class PropertyWords:
    """The claim of a property: `equation` for mathematicians, `meaning` for RL practitioners."""

    equation: str
    meaning: str


def property_words(result: PropertyResult) -> PropertyWords:
    """Equation and meaning of a property: its own, those in the table of equations, or its name with spaces.

    Example:
        >>> property_words(PropertyResult("reward_invariance", "passed", "paired", 9)).equation
        'R(g s, g a) = R(s, a)'
    """
    known = BY_NAME.get(result.name)
    claim, meaning = ("", result.name.replace("_", " ")) if known is None else (known.claim, known.meaning)
    # A user's property has its own text. Keep spaces inside an equation: they separate two equations.
    equation = " ".join(clean((result.equation or claim)[:300]).splitlines())
    return PropertyWords(equation, one_line(result.meaning or meaning, 300))


def target_name(result: RunResult) -> str:
    """The target on one line."""
    return one_line(result.target, 120)


def claim_name(result: RunResult) -> str:
    """The symmetry and its group, for instance "cart-pole mirror (C2)"."""
    return f"{one_line(result.symmetry, 120)} ({one_line(str(result.group.get('name', 'group')), 40)})"


def verdict_sentence(result: RunResult) -> str:
    """The verdict in a sentence that claims no more than the evidence.

    Args:
        result: one run.

    Returns:
        For instance "CartPole-v1 is symmetric under cart-pole mirror, according to 20,000 paired checks."

    Example:
        >>> held = PropertyResult("reward_invariance", "passed", "paired", 20000)
        >>> run = RunResult("env", "CartPole-v1", "cart-pole mirror", {"name": "C2", "order": 2}, (held,), 0.01, 0)
        >>> verdict_sentence(run)
        'CartPole-v1 is symmetric under cart-pole mirror, according to 20,000 paired checks.'
    """
    target, symmetry = target_name(result), one_line(result.symmetry, 120)
    if result.kind == "mirror" and any(p.method == "columns" for p in result.properties):
        return _SENTENCES[result.verdict](result, target, f"the {symmetry}")
    word = "equivariant" if result.kind in _EQUIVARIANT else "symmetric"
    if result.approximate and result.verdict != "failed":
        word = f"approximately {word}"
    return _SENTENCES[result.verdict](result, target, f"{word} under {symmetry}")


def _proved_sentence(result: RunResult, target: str, claim: str) -> str:
    network = result.kind in _EQUIVARIANT
    every = "every input and group element" if network else "every state, action and group element"
    if result.kind == "game":
        every = "every position that legal play reaches, every move and image"
    return f"{target} is {claim}: proved for {every}."


def _passed_sentence(result: RunResult, target: str, claim: str) -> str:
    evidence = _evidence_by_method(result.properties)
    sentence = f"{target} is {claim}, according to {evidence}" if evidence else f"{target} is {claim}"
    return f"{sentence}{_acceptance(result)}."


def _acceptance(result: RunResult) -> str:
    """The accepted violations and the source of the acceptance, as the end of a sentence; "" if there are none."""
    parts = []
    for by, text in _ACCEPTED.items():
        names = [p.name for p in result.properties if p.accepted_by == by]
        subject, verb = ("the violation of", "is") if len(names) == 1 else ("the violations of", "are")
        parts += [f"{subject} {_enumerate_names(names)} {verb} {text}"] if names else []
    return f"; {' and '.join(parts)}" if parts else ""


def _failed_sentence(result: RunResult, target: str, claim: str) -> str:
    names = [p.name for p in result.properties if p.verdict == "failed"]
    where = next((p.location for p in result.properties if p.verdict == "failed" and p.location), None)
    place = f" at layer {one_line(where, 80)}" if where else ""
    return f"{target} is not {claim}: {_enumerate_names(names)} {'fails' if len(names) == 1 else 'fail'}{place}."


def _undecided_sentence(result: RunResult, target: str, claim: str) -> str:
    if not result.properties:
        return f"Whether {target} is {claim} is undecided: nothing was checked."
    if result.interrupted:
        return f"Whether {target} is {claim} is undecided: the run was interrupted before anything failed."
    names = [p.name for p in result.properties if p.verdict == "undecided"]
    return f"Whether {target} is {claim} is undecided: {_enumerate_names(names)} could not be decided."


_SENTENCES = {
    "proved": _proved_sentence,
    "passed": _passed_sentence,
    "failed": _failed_sentence,
    "undecided": _undecided_sentence,
}


def _enumerate_names(names: Sequence[str]) -> str:
    unique = list(dict.fromkeys(one_line(name, 60) for name in names))
    if len(unique) > 4:
        unique = [*unique[:3], f"{len(unique) - 3} more"]
    return " and ".join([", ".join(unique[:-1]), unique[-1]]) if len(unique) > 1 else "".join(unique)


def _evidence_by_method(properties: Sequence[PropertyResult]) -> str:
    """The smallest number of checks behind a pass, per method: "20,000 paired checks and 500 distribution checks"."""
    passed = [p for p in properties if p.verdict == "passed" and p.checked > 0]
    main = [p for p in passed if p.name != "group_axioms"] or passed
    fewest: dict[str, int] = {}
    for p in main:
        earlier = fewest.get(_noun(p))
        # Add the columns of different halves; checks of one kind test the same states.
        added = p.checked + (earlier or 0) if p.method == "columns" else min(p.checked, earlier or p.checked)
        fewest[_noun(p)] = added
    parts = [plural(n, noun) for noun, n in fewest.items()]
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def summary_sentence(results: Sequence[RunResult]) -> str:
    """A sentence on several runs, for instance "3 symmetries checked: 2 passed, 1 failed."."""
    tally = count_verdicts(results)
    parts = ", ".join(f"{count(n)} {verdict}" for verdict, n in tally.items() if n)
    return f"{_subjects(results)} checked: {parts}." if results else "Nothing was checked."


def _subjects(results: Sequence[RunResult]) -> str:
    """The number of symmetries, or of checked subjects if all have the same symmetry."""
    targets, symmetries = {result.target for result in results}, {result.symmetry for result in results}
    kinds = {result.kind for result in results}
    if len(results) == 1 or len(targets) < len(results) or len(symmetries) > 1 or len(kinds) > 1:
        return plural(len(results), "symmetry", "symmetries")
    kind = kinds.pop()
    return plural(len(results), _NOUNS.get(kind, kind), _PLURALS.get(kind))


def count_verdicts(items: Sequence[RunResult] | Sequence[PropertyResult]) -> dict[Verdict, int]:
    """The number of items with each verdict, the worst first."""
    tally: dict[Verdict, int] = {"failed": 0, "undecided": 0, "passed": 0, "proved": 0}
    for item in items:
        tally[item.verdict] += 1
    return tally


def qualifications(result: PropertyResult) -> list[str]:
    """The words next to the verdict: "approximate", and the source of an acceptance.

    Example:
        >>> qualifications(PropertyResult("r", "passed", "paired", 9, approximate=True, accepted_by="baseline"))
        ['approximate', 'accepted by baseline']
    """
    parts = ["approximate"] if result.approximate else []
    return [*parts, _ACCEPTED[result.accepted_by]] if result.accepted_by is not None else parts


def remark(result: PropertyResult) -> str:
    """Why a passing property is not a plain pass, for instance a constant reward; "" for a plain pass."""
    if result.reason is None or result.verdict in ("failed", "undecided"):
        return ""
    return one_line(result.reason.text, 300)


def reason_text(result: PropertyResult) -> str:
    """The reason of the verdict as a sentence; without a reason, the whole text on the evidence."""
    return as_sentence(result.reason.text) if result.reason is not None else result.detail


def evidence(result: PropertyResult) -> str:
    """The amount of evidence for a verdict, and its result.

    Args:
        result: any property.

    Returns:
        For instance "20,000 paired checks, no violation"; for a statistical test, whether it rejects, and its p-value.

    Example:
        >>> evidence(PropertyResult("initial_invariance", "failed", "distribution", 63, violations=1, p_value=0.0022))
        '63 distribution checks, symmetry rejected (p = 0.0022)'
    """
    if result.checked == 0:
        return "nothing checked" if result.verdict != "proved" else f"{one_line(result.method, 40)}"
    return f"{plural(result.checked, _noun(result))}, {_outcome(result)}"


def _outcome(result: PropertyResult) -> str:
    if result.p_value is not None:
        p_value = f"(p = {number(result.p_value, 2)})"
        if result.violations and result.verdict == "undecided":
            return f"both sides differ {p_value}"  # for a reason that does not concern the symmetry
        return f"symmetry {'rejected' if result.violations else 'not rejected'} {p_value}"
    return plural(result.violations, "violation") if result.violations else "no violation"


def largest_residual(result: PropertyResult) -> float | None:
    """The largest residual, if it can be compared with a tolerance.

    Args:
        result: any property.

    Returns:
        None for a statistical test without a tolerance, because its p-value already contains the information.
    """
    return None if result.p_value is not None and result.tolerance is None else result.max_residual


def _noun(result: PropertyResult) -> str:
    """The noun of the count: relations of the group, layers of a network, or checks of a method."""
    if result.method == "relations":
        return "relation"
    if result.method == "certificate" and result.name in _LAYERS:
        return "layer"
    if result.method in _COUNTED:
        return _COUNTED[result.method]
    return f"{'sampled' if result.method == 'samples' else one_line(result.method, 40)} check"


def residual_sentence(result: PropertyResult, *, place: str = "") -> str:
    """Residual, place, unit and tolerance, for instance "3.1e-02 in theta (max norm), tolerance 1.0e-06".

    Args:
        result: any property.
        place: how the text names the place; "" for the counterexample's own.
    """
    example = result.counterexample
    size = example.residual if example is not None else result.max_residual
    if size is None:
        return ""
    named = place or ("" if example is None else example.where)
    where = f" in {one_line(named, 120)}" if named else ""
    if result.name == "network_equivariance" and example is not None and result.max_residual is not None:
        return f"{scientific(size)}{where} (absolute); {_over_scale(result)}"
    unit = f" ({one_line(result.unit, 120)})" if result.unit else ""
    against = f", tolerance {scientific(result.tolerance)}" if result.tolerance is not None else ""
    return f"{scientific(size)}{where}{unit}{against}"


def _over_scale(result: PropertyResult) -> str:
    """The residual behind a network's verdict, relative to the output's scale (unlike that of one input)."""
    against = f", tolerance {scientific(result.tolerance)}" if result.tolerance is not None else ""
    return f"largest over all inputs {scientific(result.max_residual)} ({one_line(result.unit, 120)}){against}"


def facts(run: RunResult) -> list[tuple[str, str]]:
    """Facts of a run as (name, text): false-alarm rate, seed, wall time, versions."""
    versions = ", ".join(f"{one_line(name, 60)} {one_line(version, 60)}" for name, version in run.versions.items())
    listed = [
        ("false-alarm rate", f"alpha = {run.alpha:g} over the whole run"),
        ("seed", str(run.seed)),
        ("wall time", seconds(run.duration_s)),
        ("versions", versions),
    ]
    return [(name, text) for name, text in listed if text]


def place_sentence(result: PropertyResult) -> str:
    """The place of the counterexample: "g = mirror, s = [0, 0.5, 0, 0], a = 1"."""
    example = result.counterexample
    if example is None:
        return f"layer {one_line(result.location, 120)}" if result.location else ""
    parts = [f"layer {one_line(result.location, 120)}"] if result.location else []
    parts.append(f"g = {one_line(example.group_element, 80)}")
    if example.observation is not None:
        symbol = "x" if is_network_property(result.name) else "s"
        parts.append(f"{symbol} = {compact(example.observation)}")
    if has_state_of_its_own(example):
        parts.append(f"state = {compact(example.state)}")
    if example.action is not None:
        parts.append(f"a = {compact(example.action)}")
    return ", ".join(parts)


def has_state_of_its_own(example: Counterexample) -> bool:
    """Whether the state differs from the observation: in its entries, or in their values to six digits."""
    if example.state is None:
        return False
    values = (example.state, example.observation)
    internal, shown = ([number(entry) for _, entry in leaves(to_json_value(value))] for value in values)
    return internal != shown


def expectation(result: PropertyResult) -> str:
    """The requirement of the claim: the equation, and the expected value if it is short."""
    equation = property_words(result).equation
    example = result.counterexample
    if example is None or example.expected is None:
        return equation
    wanted = _entries_apart(result, example.expected)
    return f"{equation}: {wanted}" if equation else wanted


def measurement(result: PropertyResult) -> str:
    """The measured value; "" without a counterexample."""
    example = result.counterexample
    return "" if example is None or example.actual is None else _entries_apart(result, example.actual)


def _entries_apart(result: PropertyResult, side: object) -> str:
    """One side of an outcome on one line; for a long one, the entries that differ most, with their names."""
    example = result.counterexample
    sides = [] if example is None else [list(leaves(to_json_value(one))) for one in (example.expected, example.actual)]
    if not sides or len(sides[0]) <= MAX_ENTRIES or len(sides[0]) != len(sides[1]):
        return compact(side, digits=_OUTCOME_DIGITS)
    gaps = [_gap(wanted, measured) for (_, wanted), (_, measured) in zip(*sides, strict=True)]
    order = sorted(range(len(gaps)), key=lambda i: -gaps[i])[:_MOST_APART]
    apart = sorted(i for i in order if gaps[i] > _NEXT_TO * gaps[order[0]])
    named = [str(entry.get("name", "")) for entry in result.per_coordinate if "kind" not in entry]
    entries = list(leaves(to_json_value(side)))
    names = named if len(named) == len(entries) else [place for place, _ in entries]
    shown = ", ".join(f"{one_line(names[i], 40)} = {number(entries[i][1], _OUTCOME_DIGITS)}" for i in apart)
    return f"{shown} (of {count(len(entries))} numbers)" if shown else compact(side, digits=_OUTCOME_DIGITS)


def _gap(wanted: object, measured: object) -> float:
    """The difference of two entries; infinite for different entries that cannot be subtracted."""
    both = (wanted, measured)
    if not all(isinstance(one, int | float) for one in both):
        return 0.0 if wanted == measured else math.inf
    gap = abs(float(measured) - float(wanted))  # type: ignore[arg-type]
    return math.inf if math.isnan(gap) else gap


def is_network_property(name: str) -> bool:
    """Whether inputs of this property are called x and outputs f(x)."""
    return name in ("network_equivariance", "layer_certificate", "representation_propagation")


def causes_lettered(causes: Sequence[Statement]) -> list[str]:
    """The likely causes with their letters, and the codes that `symcheck explain` knows.

    Example:
        >>> causes_lettered([state("SYM014", sign="-1", coordinate="theta"), free("something new")])
        ['(a) [SYM014] the claim holds with sign -1 on theta', '(b) something new']
    """
    return [f"({_letter(index)}) {cause_with_code(cause)}" for index, cause in enumerate(causes)]


def cause_with_code(cause: Statement) -> str:
    """A cause on one line, after its finding code if it has one.

    Example:
        >>> cause_with_code(state("SYM014", sign="-1", coordinate="theta"))
        '[SYM014] the claim holds with sign -1 on theta'
    """
    line = one_line(cause.text, 2000)
    return f"[{cause.code}] {line}" if cause.code else line


def _letter(index: int) -> str:
    return chr(ord("a") + index) if index < 26 else number(index + 1)


def labelled_lines(result: PropertyResult) -> list[tuple[str, str]]:
    """The lines of one property, as (label, text).

    Args:
        result: any property; for a passing one, only evidence, bound and reason.

    Returns:
        Labels have at most eight letters; a label "" continues the line above.
    """
    example = result.counterexample
    failed = result.verdict == "failed"
    lines = [
        ("at", place_sentence(result) if failed else ""),
        ("expected", expectation(result) if failed else ""),
        ("measured", measurement(result)),
        ("residual", residual_sentence(result)),
        ("evidence", evidence(result)),
        ("bound", bound_sentence(result.bound)),
        ("because", one_line(result.detail, 2000)),
    ]
    causes = [("" if index else "likely", cause) for index, cause in enumerate(causes_lettered(result.causes))]
    again = one_line(example.reproduce, 2000) if example is not None else ""
    drawn = boards.text_lines(example.pictures) if example is not None and failed else []
    return [(label, text) for label, text in (*lines, *causes, *drawn, ("again", again)) if text]


def property_lines(result: PropertyResult, run: RunResult) -> list[str]:
    """One property as a block of plain text, headed by its verdict.

    Args:
        result: the property.
        run: the run to which it belongs, which gives target and group.
    """
    group = one_line(str(run.group.get("name", "the group")), 40)
    verdict = result.verdict.upper() if result.verdict == "failed" else result.verdict
    beside = f" ({', '.join(qualified)})" if (qualified := qualifications(result)) else ""
    head = f"{one_line(result.name, 60)} {verdict}{beside}  {target_name(run)} under {group}"
    return [head, *(f"  {label:<8}  {text}" for label, text in labelled_lines(result))]
