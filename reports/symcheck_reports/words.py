"""The sentences of a report, written once: the page, the terminal, Markdown and JUnit say the same with the same words.

A sentence is never stronger than its evidence. `passed` names the number of checks and what could have been missed;
`proved` is used only where every property is proved; an interrupted run is undecided.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from symcheck.engine.results import Counterexample, PropertyResult, RunResult, to_json_value
from symcheck.engine.verdict import Verdict
from symcheck.findings import code_of
from symcheck.statements.statement import Statement, free, state  # noqa: F401 (free and state: doctests)
from symcheck_reports.formatting import compact, count, leaves, number, one_line, percent, plural, scientific, seconds

# Enough to tell two float32 values apart (9 digits identify each), so that expected and measured never look the same.
_OUTCOME_DIGITS = 9
_LAYERS = ("layer_certificate", "representation_propagation")


@dataclass(frozen=True)
class PropertyWords:
    """What a property claims: `equation` for those who know the mathematics, `meaning` for those who know the RL."""

    equation: str
    meaning: str


_PROPERTIES = {
    "group_axioms": PropertyWords(
        "(g h) s = g (h s),  (g h) a = g (h a)", "the maps on observations and actions compose as the group does"
    ),
    "observation_equivariance": PropertyWords(
        "obs(g s) = g obs(s)", "the observation of the moved state is the moved observation"
    ),
    "reward_invariance": PropertyWords("R(g s, g a) = R(s, a)", "the moved step earns the same reward"),
    "transition_invariance": PropertyWords(
        "T(g s, g a) = g T(s, a)", "moving and then stepping is stepping and then moving"
    ),
    "termination_invariance": PropertyWords(
        "terminated(g s, g a) = terminated(s, a)", "the moved episode ends at the same step"
    ),
    "initial_invariance": PropertyWords("g s_0 ~ s_0", "the start distribution is the same after moving"),
    "layer_certificate": PropertyWords(
        "rho_out(g) W = W rho_in(g), rho_out(g) b = b", "every layer commutes with the group, read off its weights"
    ),
    "network_equivariance": PropertyWords(
        "f(g x) = g f(x)", "moving the input moves the output in the way that the symmetry says"
    ),
    "representation_propagation": PropertyWords(
        "h_l(g x) = rho_l(g) h_l(x)", "each hidden layer carries an action of the group"
    ),
}


def property_words(name: str) -> PropertyWords:
    """Equation and meaning of a property; of an unknown one its name with spaces.

    Example:
        >>> property_words("reward_invariance").equation
        'R(g s, g a) = R(s, a)'
    """
    return _PROPERTIES.get(name, PropertyWords("", name.replace("_", " ")))


def target_name(result: RunResult) -> str:
    """The target on one line."""
    return one_line(result.target, 120)


def claim_name(result: RunResult) -> str:
    """The symmetry and its group, for instance "cart-pole mirror (C2)"."""
    return f"{one_line(result.symmetry, 120)} ({one_line(str(result.group.get('name', 'group')), 40)})"


def verdict_sentence(result: RunResult) -> str:
    """The whole verdict in a sentence that claims no more than the evidence.

    Args:
        result: one run.

    Returns:
        For instance "CartPole-v1 is symmetric under cart-pole mirror as far as 20,000 paired checks can tell."

    Example:
        >>> held = PropertyResult("reward_invariance", "passed", "paired", 20000)
        >>> run = RunResult("env", "CartPole-v1", "cart-pole mirror", {"name": "C2", "order": 2}, (held,), 0.01, 0)
        >>> verdict_sentence(run)
        'CartPole-v1 is symmetric under cart-pole mirror as far as 20,000 paired checks can tell.'
    """
    target, symmetry = target_name(result), one_line(result.symmetry, 120)
    word = "symmetric" if result.kind == "env" else "equivariant"
    if result.verdict != "failed" and any(is_approximate(p) for p in result.properties):
        word = f"approximately {word}"
    return _SENTENCES[result.verdict](result, target, f"{word} under {symmetry}")


def _proved(result: RunResult, target: str, claim: str) -> str:
    every = "every state, action and group element" if result.kind == "env" else "every input and group element"
    return f"{target} is {claim}: proved for {every}."


def _passed(result: RunResult, target: str, claim: str) -> str:
    evidence = _evidence_by_method(result.properties)
    return f"{target} is {claim} as far as {evidence} can tell." if evidence else f"{target} is {claim}."


def _failed(result: RunResult, target: str, claim: str) -> str:
    names = [p.name for p in result.properties if p.verdict == "failed"]
    where = next((p.location for p in result.properties if p.verdict == "failed" and p.location), None)
    place = f" at layer {one_line(where, 80)}" if where else ""
    return f"{target} is not {claim}: {_listed(names)} {'fails' if len(names) == 1 else 'fail'}{place}."


def _undecided(result: RunResult, target: str, claim: str) -> str:
    if not result.properties:
        return f"Whether {target} is {claim} is undecided: nothing was checked."
    if result.interrupted:
        return f"Whether {target} is {claim} is undecided: the run was interrupted, and nothing had failed until then."
    names = [p.name for p in result.properties if p.verdict == "undecided"]
    return f"Whether {target} is {claim} is undecided: {_listed(names)} could not be decided."


_SENTENCES = {"proved": _proved, "passed": _passed, "failed": _failed, "undecided": _undecided}


def _listed(names: Sequence[str]) -> str:
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
        fewest[_noun(p)] = min(p.checked, fewest.get(_noun(p), p.checked))
    parts = [plural(n, noun) for noun, n in fewest.items()]
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def summary_sentence(results: Sequence[RunResult]) -> str:
    """Several runs in a sentence, for instance "3 symmetries checked: 2 passed, 1 failed."."""
    tally = count_verdicts(results)
    parts = ", ".join(f"{count(n)} {verdict}" for verdict, n in tally.items() if n)
    return f"{_checked(results)} checked: {parts}." if results else "Nothing was checked."


def _checked(results: Sequence[RunResult]) -> str:
    """How many symmetries; where one symmetry was checked of several things, how many of these."""
    targets, symmetries = {result.target for result in results}, {result.symmetry for result in results}
    kinds = {result.kind for result in results}
    if len(results) == 1 or len(targets) < len(results) or len(symmetries) > 1 or len(kinds) > 1:
        return plural(len(results), "symmetry", "symmetries")
    return plural(len(results), {"env": "environment", "net": "network"}[kinds.pop()])


def count_verdicts(items: Sequence[RunResult] | Sequence[PropertyResult]) -> dict[Verdict, int]:
    """How many items have each verdict, the worst first."""
    tally: dict[Verdict, int] = {"failed": 0, "undecided": 0, "passed": 0, "proved": 0}
    for item in items:
        tally[item.verdict] += 1
    return tally


def is_approximate(result: PropertyResult) -> bool:
    """Whether a pass holds up to an accepted size only; its `detail` then says "approximate" and the size."""
    return result.verdict != "failed" and result.approximate


def evidence(result: PropertyResult) -> str:
    """On how much evidence a verdict stands, and what it showed.

    Args:
        result: any property.

    Returns:
        For instance "20,000 paired checks, no violation"; of a statistical test whether it rejects, with its p-value.

    Example:
        >>> evidence(PropertyResult("initial_invariance", "failed", "distribution", 63, violations=1, p_value=0.0022))
        '63 distribution checks, symmetry rejected (p = 0.0022)'
    """
    if result.checked == 0:
        return "nothing checked" if result.verdict != "proved" else f"{one_line(result.method, 40)}"
    return f"{plural(result.checked, _noun(result))}, {_found(result)}"


def _found(result: PropertyResult) -> str:
    if result.p_value is not None:
        word = "rejected" if result.violations else "not rejected"
        return f"symmetry {word} (p = {number(result.p_value, 2)})"
    return plural(result.violations, "violation") if result.violations else "no violation"


def largest_residual(result: PropertyResult) -> float | None:
    """The largest residual, where a reader can compare it with something.

    Args:
        result: any property.

    Returns:
        None for a statistical test without a tolerance: its statistic says nothing beside its p-value.
    """
    return None if result.p_value is not None and result.tolerance is None else result.max_residual


def _noun(result: PropertyResult) -> str:
    """What is counted: relations of the group, layers of a network, or checks of a method."""
    if result.method == "relations":
        return "relation"
    if result.method == "certificate" and result.name in _LAYERS:
        return "layer"
    return f"{'sampled' if result.method == 'samples' else one_line(result.method, 40)} check"


def bound_sentence(bound: dict[str, Any] | None, *, with_region: bool = True) -> str:
    """What the evidence excludes, in a sentence without its full stop; "" where no bound is stated.

    Args:
        bound: as in `PropertyResult.bound`.
        with_region: name the region in it; leave it out where the region is said once for several properties.

    Example:
        >>> bound_sentence({"kind": "violation_fraction", "value": 3e-4, "confidence": 0.99, "region": "rollouts"})
        'at most 0.03% of such checks could violate it (99% confidence; region: rollouts)'
    """
    if not bound or bound.get("value") is None:
        return ""
    kind = str(bound.get("kind", "effect"))
    lead, notes = _BOUNDS.get(kind, _other_bound)(bound)
    if with_region and bound.get("region"):
        notes.append(f"region: {one_line(str(bound['region']), 300)}")
    return f"{lead} ({'; '.join(notes)})" if notes else lead


def _fraction_bound(bound: dict[str, Any]) -> tuple[str, list[str]]:
    value = bound["value"]
    if not isinstance(value, int | float):
        return _other_bound(bound)
    return f"at most {percent(float(value))} of such checks could violate it", _confidence(bound)


def _shift_bound(bound: dict[str, Any]) -> tuple[str, list[str]]:
    """The shift that the test finds with this power: smaller ones may be there."""
    power = bound.get("confidence")
    said = f" with {percent(float(power))} power" if isinstance(power, int | float) else ""
    unit = f" {one_line(str(bound['unit']), 120)}" if bound.get("unit") else ""
    return f"a mean shift of {_sized(bound['value'])}{unit} would be found{said}", []


def _gap_bound(bound: dict[str, Any]) -> tuple[str, list[str]]:
    size = _sized(bound["value"], 3)
    if bound.get("estimate") == "exact":
        return f"optimal values differ by at most {size}", []
    return f"optimal values differ by about {size}", ["an estimate from the largest differences seen"]


def _other_bound(bound: dict[str, Any]) -> tuple[str, list[str]]:
    kind = one_line(str(bound.get("kind", "effect")), 80).replace("_", " ")
    return f"{kind} at most {_sized(bound['value'])}", _confidence(bound)


def _sized(value: Any, digits: int = 2) -> str:
    return number(float(value), digits) if isinstance(value, int | float) else one_line(str(value), 80)


def _confidence(bound: dict[str, Any]) -> list[str]:
    confidence = bound.get("confidence")
    return [f"{percent(float(confidence))} confidence"] if isinstance(confidence, int | float) else []


_BOUNDS = {"violation_fraction": _fraction_bound, "mean_shift": _shift_bound, "value_gap": _gap_bound}


def residual_sentence(result: PropertyResult, *, place: str = "") -> str:
    """Residual, place, unit and tolerance, for instance "3.1e-02 in theta (max norm), tolerance 1.0e-06".

    Args:
        result: any property.
        place: what to call the place; "" takes the counterexample's own word.
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
    """The residual that a network is judged by, which is over the output's scale, unlike that of one input."""
    against = f", tolerance {scientific(result.tolerance)}" if result.tolerance is not None else ""
    return f"largest of all inputs {scientific(result.max_residual)} ({one_line(result.unit, 120)}){against}"


def facts(run: RunResult) -> list[tuple[str, str]]:
    """What repeats a run and what it cost, as (name, text): false-alarm rate, seed, wall time, versions."""
    versions = ", ".join(f"{one_line(name, 60)} {one_line(version, 60)}" for name, version in run.versions.items())
    found = [
        ("false-alarm rate", f"alpha = {run.alpha:g} over the whole run"),
        ("seed", str(run.seed)),
        ("wall time", seconds(run.duration_s)),
        ("versions", versions),
    ]
    return [(name, text) for name, text in found if text]


def place_sentence(result: PropertyResult) -> str:
    """Where the counterexample is: "g = mirror, s = [0, 0.5, 0, 0], a = 1"."""
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
    """Whether the state says more than the observation: other entries, or other values at six digits."""
    if example.state is None:
        return False
    said = [[number(entry) for _, entry in leaves(to_json_value(v))] for v in (example.state, example.observation)]
    return said[0] != said[1]


def expectation(result: PropertyResult) -> str:
    """What the claim asks for: the equation, and the value it asks for where it is short."""
    equation = property_words(result.name).equation
    example = result.counterexample
    if example is None or example.expected is None:
        return equation
    wanted = compact(example.expected, digits=_OUTCOME_DIGITS)
    return f"{equation}: {wanted}" if equation else wanted


def measurement(result: PropertyResult) -> str:
    """What was measured instead; "" without a counterexample."""
    example = result.counterexample
    return "" if example is None or example.actual is None else compact(example.actual, digits=_OUTCOME_DIGITS)


def is_network_property(name: str) -> bool:
    """Whether inputs of this property are called x and outputs f(x)."""
    return name in ("network_equivariance", "layer_certificate", "representation_propagation")


def causes_lettered(causes: Sequence[Statement]) -> list[str]:
    """The likely causes with their letters, and the codes that `symcheck explain` knows.

    Example:
        >>> causes_lettered([state("SYM014", sign="-1", coordinate="theta"), free("something new")])
        ['(a) [SYM014] holds with sign -1 on theta', '(b) something new']
    """
    return [f"({_letter(index)}) {coded(cause)}" for index, cause in enumerate(causes)]


def coded(cause: Statement) -> str:
    """A cause on one line, after its finding code where it has one.

    Example:
        >>> coded(free("it breaks in 3% of the pairs tested"))
        '[SYM027] it breaks in 3% of the pairs tested'
    """
    line = one_line(cause.text, 2000)
    code = cause.code or code_of(line)
    return f"[{code}] {line}" if code else line


def _letter(index: int) -> str:
    return chr(ord("a") + index) if index < 26 else number(index + 1)


def labelled_lines(result: PropertyResult) -> list[tuple[str, str]]:
    """What there is to say about one property, as (label, text).

    Args:
        result: any property; of one that holds, only evidence, bound and reason are said.

    Returns:
        Labels of at most eight letters; a label of "" continues the one above.
    """
    example = result.counterexample
    failed = result.verdict == "failed"
    said = [
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
    return [(label, text) for label, text in (*said, *causes, ("again", again)) if text]


def property_lines(result: PropertyResult, run: RunResult) -> list[str]:
    """One property as a block of plain text, headed by its verdict.

    Args:
        result: the property.
        run: the run it belongs to, for its target and group.
    """
    group = one_line(str(run.group.get("name", "the group")), 40)
    verdict = result.verdict.upper() if result.verdict == "failed" else result.verdict
    head = f"{one_line(result.name, 60)} {verdict}  {target_name(run)} under {group}"
    return [head, *(f"  {label:<8}  {text}" for label, text in labelled_lines(result))]
