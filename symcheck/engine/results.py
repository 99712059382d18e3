"""The engine's results: plain data, the same for every writer.

A run checks one claim (a symmetry) on one subject (an environment or a network). It yields one `PropertyResult` per
property, and a `RunResult` that collects them. This module neither computes nor prints: checks build these values,
writers (`symcheck_reports`) render them, and `RunResult.to_dict` is exactly the published JSON, schema `symcheck/2`.

A statement becomes JSON in one of two ways. In fields that hold only statements (`reason`, `causes`, `notes`), it is an
object `{code, text, ...fields}`. In fields that may also hold plain text (`bound.region`, `method_reason`, a layer's
`cause`), the sentence is stored under the field's name, and `{code, ...fields}` under `<name>_data`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from symcheck.statements.statement import FREE, Statement, as_paragraph, as_statements, free
from symcheck.verdict import AcceptedBy, Facts, Verdict

Kind = Literal["env", "net", "mirror", "policy", "game"]
SCHEMA = "symcheck/2"

_WORST_FIRST: tuple[Verdict, ...] = ("failed", "undecided", "passed", "proved")


@dataclass(frozen=True)
class Counterexample:
    """One input on which the claim fails, shrunk as far as possible.

    Attributes:
        group_element: the element g, written in generator names ("mirror", "r^2").
        observation: the observation of s (nested lists of numbers, in the space's own order).
        state: the internal state s if it differs from the observation, otherwise None.
        action: the agent's action a; None if no action is involved.
        expected: the value that the claim requires, in the property's own quantity (for instance g T(s, a)).
        actual: the measured value (for instance T(g s, g a)).
        residual: the norm of expected - actual named by the property's `unit`; NaN if only one side is NaN.
        where: the coordinate, leaf or output with the largest residual, in words ("observation[2]").
        reproduce: a shell command (or Python line) that reproduces this failure.
        image_observation: g applied to `observation`; None if not computed.
        image_action: g applied to `action`; None if no action is involved.
        pictures: for pages only (not in JSON), as (caption, picture): the `data:` address of a PNG that the environment
            rendered, or an observation that the page can draw.
        undrawn: for pages only: why the environment rendered no image; "" if it did, or if none was requested.
    """

    group_element: str
    observation: Any
    state: Any
    action: Any
    expected: Any
    actual: Any
    residual: float
    where: str
    reproduce: str = ""
    image_observation: Any = None
    image_action: Any = None
    pictures: tuple[tuple[str, Any], ...] = ()
    undrawn: str = ""


@dataclass(frozen=True)
class PropertyResult:
    """The verdict on one property, with its evidence.

    Attributes:
        name: the property's fixed name, for instance `reward_invariance`.
        verdict: one of proved, passed, failed, undecided.
        method: how it was tested: exact, paired, distribution, trajectory (environments); certificate, sampled
            (networks); relations, samples (group_axioms).
        checked: number of (input, group element) pairs examined.
        violations: number of those that exceeded the tolerance.
        max_residual: largest residual, in `unit`; None if no residual exists.
        tolerance: the limit for a residual (at the worst sample), in `unit`; None if none applies.
        unit: the residual's norm, unit and place, for instance "max norm over observation coordinates".
        bound: what the evidence excludes, for instance {"kind": "violation_fraction", "value": 3e-4, "confidence":
            0.99, "region": state(...)}; None if the verdict is proved, or failed without a bound.
        counterexample: present if the property failed and a single input shows it.
        causes: likely causes, most likely first; plain text becomes a free statement.
        notes: the evidence, its region, and where the tolerance comes from; plain text becomes a free statement.
        reason: why the verdict is not a plain pass or failure; None if it is.
        approximate: whether the claim holds up to a residual that is small relative to the values, or that is accepted.
        accepted_by: "baseline" or "accept_gap" if a violation is accepted; otherwise None.
        equation: the registered claim as a formula; filled in by the runner.
        meaning: the registered claim in words; filled in by the runner.
        location: networks: the layer's name as in `named_modules()`; None for environments.
        p_value: for statistical tests, the (uncorrected) p-value; None otherwise.
        per_coordinate: residual and tolerance of each coordinate, for the report: a list of {"name", "max_residual",
            "tolerance"}; empty if it does not apply.
        parts: policies: the residual of each part, {"normaliser", "network", "post"}; empty for other subjects.
        facts: the facts behind the verdict, so that it can be decided again; not published.
    """

    name: str
    verdict: Verdict
    method: str
    checked: int
    violations: int = 0
    max_residual: float | None = None
    tolerance: float | None = None
    unit: str = ""
    bound: dict[str, Any] | None = None
    counterexample: Counterexample | None = None
    causes: tuple[Statement, ...] = ()
    notes: tuple[Statement, ...] = ()
    location: str | None = None
    p_value: float | None = None
    per_coordinate: tuple[dict[str, Any], ...] = ()
    reason: Statement | None = None
    approximate: bool = False
    accepted_by: AcceptedBy | None = None
    equation: str = ""
    meaning: str = ""
    parts: dict[str, Any] = field(default_factory=dict)
    facts: Facts | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "causes", as_statements(self.causes))
        object.__setattr__(self, "notes", as_statements(self.notes))

    @property
    def detail(self) -> str:
        """The reason and the notes as sentences."""
        return as_paragraph([*([self.reason] if self.reason is not None else []), *self.notes])


@dataclass(frozen=True)
class RunResult:
    """The complete result of one run on one symmetry of one environment or network.

    Attributes:
        kind: "env", "net", "mirror", "policy" or "game".
        target: the environment id or the target as the user wrote it.
        symmetry: the symmetry's name.
        group: {"name": str, "order": int}.
        properties: one result per property, in the order they were checked.
        alpha: probability of a false alarm over the whole run, in (0, 1).
        seed: the seed that reproduces the run.
        duration_s: wall time in seconds.
        versions: package name to version string, for all packages involved.
        command: the command line that repeats this run; "" if none exists (an object built in Python).
        claim: how the symmetry acts, in words: {"observation": [...], "action": [...], "state": [...]}, one text per
            generator.
        method_reason: why the method was selected; plain text becomes a free statement.
        interrupted: True when the run was stopped before every property was checked.
        layers: networks: the chain of layers for the report, a list of {"name", "type", "representation",
            "residual", "verdict", "cause"}, the cause a statement or None; empty for environments.
        columns: mirrors: one object per wrong column, {"group", "term", "name", "index", "expected", "found", "code"}.
        differences: mirrors: numbers of the model that differ from their images, the largest relative one first.
        pictures: mirrors, for pages only: (caption, drawing) pairs.
    """

    kind: Kind
    target: str
    symmetry: str
    group: dict[str, Any]
    properties: tuple[PropertyResult, ...]
    alpha: float
    seed: int
    duration_s: float = 0.0
    versions: dict[str, str] = field(default_factory=dict)
    command: str = ""
    claim: dict[str, list[str]] = field(default_factory=dict)
    method_reason: Statement = field(default_factory=lambda: free(""))
    interrupted: bool = False
    layers: tuple[dict[str, Any], ...] = ()
    columns: tuple[dict[str, Any], ...] = ()
    differences: tuple[dict[str, Any], ...] = ()
    pictures: tuple[tuple[str, Any], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "method_reason", as_statements((self.method_reason,))[0])

    @property
    def approximate(self) -> bool:
        """Whether any property that did not fail holds only approximately."""
        return any(result.approximate and result.verdict != "failed" for result in self.properties)

    @property
    def verdict(self) -> Verdict:
        """The weakest verdict of its properties; an interrupted run is never better than undecided."""
        verdict = overall_verdict(result.verdict for result in self.properties)
        return "undecided" if self.interrupted and verdict != "failed" else verdict

    def to_dict(self) -> dict[str, Any]:
        """The published JSON object (schema `symcheck/2`): JSON types only; NaN and infinities as strings."""
        head = {
            "schema": SCHEMA,
            "kind": self.kind,
            "target": self.target,
            "symmetry": self.symmetry,
            "group": self.group,
            "verdict": self.verdict,
            "approximate": self.approximate,
        }
        body = {
            f.name: getattr(self, f.name)
            for f in dataclasses.fields(self)
            if f.name not in head and self.kind in _ONLY_OF_KINDS.get(f.name, (self.kind,))
        }
        body["properties"] = [_property_to_dict(result) for result in self.properties]
        plain: dict[str, Any] = to_json_value({**head, **body})
        return plain


# The published order: the decision and its reason, then the measurements, then other data for reports.
_PUBLISHED = (
    "name", "verdict", "reason", "approximate", "accepted_by", "method", "checked", "violations", "max_residual",
    "tolerance", "unit", "bound", "counterexample", "causes", "detail", "notes", "equation", "meaning", "location",
    "p_value", "per_coordinate",
)  # fmt: skip
_FOR_PAGES = ("pictures", "undrawn")
# Fields that only some kinds of runs have.
_ONLY_OF_KINDS: dict[str, tuple[Kind, ...]] = {
    "columns": ("mirror",),
    "differences": ("mirror",),
    "pictures": (),
}


def _property_to_dict(result: PropertyResult) -> dict[str, Any]:
    plain = {name: getattr(result, name) for name in _PUBLISHED}
    plain["reason"] = None if result.reason is None else result.reason.to_dict()
    plain["causes"] = [cause.to_dict() for cause in result.causes]
    plain["notes"] = [note.to_dict() for note in result.notes]
    if result.parts:
        plain["parts"] = result.parts
    plain["counterexample"] = None if result.counterexample is None else _plain_example(result.counterexample)
    return plain


def _plain_example(example: Counterexample) -> dict[str, Any]:
    names = (field.name for field in dataclasses.fields(Counterexample) if field.name not in _FOR_PAGES)
    plain = {name: getattr(example, name) for name in names}
    # A word in generator names; elements of continuous groups also have parameters.
    element = example.group_element
    amounts = list(getattr(element, "parameters", ()))
    plain["group_element"] = {"word": getattr(element, "word", element), "parameters": amounts}
    return plain


def overall_verdict(verdicts: Any) -> Verdict:
    """The worst of several verdicts: failed, then undecided, passed, proved; undecided if there is none.

    Example:
        >>> overall_verdict(["proved", "passed"])
        'passed'
        >>> overall_verdict([])
        'undecided'
    """
    present = set(verdicts)
    return next((verdict for verdict in _WORST_FIRST if verdict in present), "undecided")


def to_json_value(value: Any) -> Any:
    """Convert numbers, arrays, tensors and containers to JSON types; NaN and infinities become strings.

    Args:
        value: numbers, strings, None, numpy arrays and scalars, torch tensors, statements, mappings and sequences,
            arbitrarily nested.

    Returns:
        The same value, built of dict, list, str, int, float, bool and None only.

    Example:
        >>> import numpy as np
        >>> to_json_value({"x": np.array([1.0, np.nan]), "n": np.int64(3)})
        {'x': [1.0, 'NaN'], 'n': 3}
        >>> to_json_value({"why": Statement("nan_only", {"quantity": "reward", "value": "NaN"})})["why_data"]
        {'code': 'nan_only', 'quantity': 'reward', 'value': 'NaN'}
    """
    if isinstance(value, bool | int | str) or value is None:
        return value
    if isinstance(value, float):
        return _json_float(value)
    if isinstance(value, Statement):
        return to_json_value(value.to_dict())
    if isinstance(value, dict):
        return {name: part for key, item in value.items() for name, part in _json_entries(str(key), item)}
    # Arrays, NumPy scalars and tensors; a scalar becomes a number.
    if hasattr(value, "tolist"):
        return to_json_value(value.tolist())
    if isinstance(value, Sequence):
        return [to_json_value(item) for item in value]
    return str(value)


def _json_entries(key: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The entry as JSON; for a statement, its sentence, and its code and fields under `<key>_data`."""
    if not isinstance(value, Statement):
        yield key, to_json_value(value)
        return
    plain = value.to_dict()
    yield key, plain.pop("text")
    if value.code != FREE:
        yield f"{key}_data", to_json_value(plain)


def _json_float(value: float) -> float | str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value
