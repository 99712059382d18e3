"""The views of a run: small dataclasses of text and numbers that templates render.

`symcheck_reports.model` and `symcheck_reports.counterexample_view` build them from results; sections and templates only
determine their appearance.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from symcheck.verdict import Verdict
from symcheck_reports.evidence import GapView, PrecisionView


@dataclass(frozen=True)
class NumberTable:
    """A table of numbers: one row per entry, in the order to show.

    Attributes:
        caption: the caption of the table.
        columns: the headings; the first one is that of the row names.
        rows: the cells of each row as text.
        marked: indices of rows to emphasise, for instance where expected and actual differ most.
        left_out: the number of entries that the table does not show.
    """

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    marked: frozenset[int] = frozenset()
    left_out: int = 0


@dataclass(frozen=True)
class Picture:
    """A grid of values to draw as an image.

    Attributes:
        caption: the caption of the picture.
        values: nested lists, (height, width), or (channels, height, width), or (height, width, 3).
        shape: the shape of `values`.
        low: the value drawn darkest, the same for all compared pictures.
        high: the value drawn brightest.
    """

    caption: str
    values: Any
    shape: tuple[int, ...]
    low: float
    high: float


@dataclass(frozen=True)
class CounterexampleView:
    """One counterexample in full.

    Attributes:
        anchor: the id that links point to.
        property_name: the property it refutes.
        equation: the claim of the property.
        place: g, s and a in words.
        residual: residual, place, unit and tolerance in words.
        tables: the input and its image, and the expected and measured values.
        pictures: the same as pictures if they are grids; empty otherwise.
        renders: images rendered by the environment, as (caption, address); empty if it cannot render.
        undrawn: why the environment rendered nothing; "" if it did, or if the page has another drawing.
        boards: the boards of games, as (caption, drawing).
        next_observations: the observations of the next states, as (caption, raw observation), for drawings of known
            environments.
        verdict: the verdict of the property; an accepted violation does not fail.
        observation: the raw observation, for drawings of known environments.
        image_observation: the raw image of the observation, or None.
        action: the raw action, or None.
        image_action: the raw image of the action, or None.
        expected: the raw value that the claim requires.
        actual: the raw measured value.
        causes: likely causes, most likely first.
        reproduce: the command that reproduces it; "" if there is none.
        detail: the evidence for it.
        evidence: number of checks and violations.
    """

    anchor: str
    property_name: str
    equation: str
    meaning: str
    place: str
    residual: str
    tables: tuple[NumberTable, ...]
    pictures: tuple[Picture, ...]
    renders: tuple[tuple[str, str], ...]
    undrawn: str
    boards: tuple[tuple[str, dict[str, Any]], ...]
    next_observations: tuple[tuple[str, Any], ...]
    verdict: Verdict
    observation: Any
    image_observation: Any
    action: Any
    image_action: Any
    expected: Any
    actual: Any
    causes: tuple[str, ...]
    reproduce: str
    detail: str
    evidence: str


@dataclass(frozen=True)
class PropertyView:
    """One row of the table of properties, and its residuals.

    Attributes:
        name: the property's name.
        verdict: its verdict.
        qualifications: words next to the verdict: "approximate", and the source of the acceptance.
        equation: its claim.
        meaning: the same in words.
        evidence: number of checks and violations.
        bound: the excluded violations; "" if there is no bound.
        region: the region of the evidence; "" if it is not stated.
        residual: the largest residual as text.
        tolerance: the tolerance, as text.
        unit: norm, unit and place of the residual.
        detail: the evidence, its region, and the origin of the tolerance.
        location: the layer's name, "" for environments.
        anchor: id of its counterexample; "" without one.
        residuals: (name, residual, tolerance) of the property and then of each coordinate.
    """

    name: str
    verdict: Verdict
    qualifications: tuple[str, ...]
    equation: str
    meaning: str
    evidence: str
    bound: str
    region: str
    residual: str
    tolerance: str
    unit: str
    detail: str
    location: str
    anchor: str
    causes: tuple[str, ...] = ()
    residuals: tuple[tuple[str, float | None, float | None], ...] = ()


@dataclass(frozen=True)
class LayerView:
    """One layer in a network's chain.

    Attributes:
        name: the name, as in `named_modules()`.
        type: the module's class.
        representation: how the group acts on its output.
        residual: the residual, as text.
        verdict: one of the verdicts, or another word of the engine's.
        notes: the place of the residual in the layer, and why the layer breaks the action; empty if it does not.
    """

    name: str
    type: str
    representation: str
    residual: str
    verdict: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class RunView:
    """One run, ready to be rendered.

    Attributes:
        anchor: the id of its article.
        kind: "env", "net", "mirror", "policy" or "game".
        target: the environment or network.
        symmetry: the symmetry's name.
        group: name and order in words.
        verdict: the run's verdict.
        sentence: the verdict in a sentence.
        claims: (part, one string per generator), for instance ("observation", ("...",)).
        properties: the rows to show.
        left_out: the number of passing properties that are not shown.
        counterexamples: all of them.
        layers: the chain of layers; empty for environments.
        method_reason: why the method was chosen.
        facts: (name, value) pairs: seed, alpha, duration, versions.
        command: the command that repeats the run.
        interrupted: whether it was stopped early.
        shared: (properties, text) of evidence that several properties share, which is stated once.
        noted_regions: the regions that some note names; they need no separate line.
        precisions: the outputs at each precision, for networks.
        decisions: (decisions compared, decisions that flip), for networks that choose by the largest output; or None.
        gaps: bounds on the loss of value, for approximate symmetries.
        columns: wrong columns of a mirror function, as (place, term, name, expected, found, code).
        columns_left_out: the number of wrong columns that are not shown.
        differences: parameters of a model that differ from their images, as (text, relative size).
        poses: drawings of a robot, as (caption, drawing).
    """

    anchor: str
    kind: str
    target: str
    symmetry: str
    group: str
    verdict: Verdict
    sentence: str
    claims: tuple[tuple[str, tuple[str, ...]], ...]
    properties: tuple[PropertyView, ...]
    counterexamples: tuple[CounterexampleView, ...]
    layers: tuple[LayerView, ...] = ()
    left_out: int = 0
    method_reason: str = ""
    facts: tuple[tuple[str, str], ...] = ()
    command: str = ""
    interrupted: bool = False
    tally: dict[Verdict, int] = field(default_factory=dict)
    shared: tuple[tuple[tuple[str, ...], str], ...] = ()
    noted_regions: frozenset[str] = frozenset()
    precisions: tuple[PrecisionView, ...] = ()
    decisions: tuple[int, int] | None = None
    gaps: tuple[GapView, ...] = ()
    columns: tuple[tuple[str, ...], ...] = ()
    columns_left_out: int = 0
    differences: tuple[tuple[str, str], ...] = ()
    poses: tuple[tuple[str, dict[str, Any]], ...] = ()
