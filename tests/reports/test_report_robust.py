"""No result, however odd, makes a writer fail: a crash in the report would lose the whole run."""

from __future__ import annotations

import io
import json
import math
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from typing import Any

import jsonschema
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from symcheck.engine.results import Counterexample, PropertyResult, RunResult
from symcheck.statements.statement import free, state
from symcheck_reports import html, junit, markdown, terminal
from symcheck_reports import json as json_report
from symcheck_reports.curve_model import CurveModel, FailedRun, NetworkCurves, SeedCurve
from symcheck_reports.curves import render_curves

NUMBERS = st.one_of(st.integers(-5, 5), st.floats(), st.booleans(), st.floats(width=32).map(np.float32))
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.one_of(NUMBERS, st.none(), st.text(max_size=8)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.text(max_size=5), inner, max_size=3),
        st.tuples(inner, inner),
    ),
    max_leaves=8,
)
ARRAYS = st.sampled_from([(4,), (7, 7), (3, 6, 6), (6, 6, 3), (0,), (2, 0, 3)]).map(lambda s: np.full(s, np.nan))
SIZES = st.one_of(st.none(), st.floats())
NAMES = st.one_of(
    st.sampled_from(["group_axioms", "transition_invariance", "network_equivariance", "layer_certificate"]),
    st.text(max_size=12),
)
COUNTEREXAMPLES = st.builds(
    Counterexample,
    group_element=st.text(max_size=5),
    observation=st.one_of(VALUES, ARRAYS),
    state=VALUES,
    action=VALUES,
    expected=st.one_of(VALUES, ARRAYS),
    actual=st.one_of(VALUES, ARRAYS),
    residual=st.floats(),
    where=st.text(max_size=8),
    reproduce=st.text(max_size=8),
    image_observation=st.one_of(VALUES, ARRAYS),
    image_action=VALUES,
)
BOUNDS = st.one_of(
    st.none(),
    st.fixed_dictionaries(
        {"kind": st.text(max_size=5), "value": st.one_of(st.floats(), st.none(), st.just("NaN"))},
        optional={
            "confidence": st.floats(0, 1),
            "region": st.one_of(st.text(max_size=5), st.text(max_size=5).map(free)),
        },
    ),
)
PROPERTIES = st.builds(
    PropertyResult,
    name=NAMES,
    verdict=st.sampled_from(["proved", "passed", "failed", "undecided"]),
    method=st.sampled_from(["paired", "relations", "certificate", ""]),
    checked=st.integers(0, 10**9),
    violations=st.integers(0, 10),
    max_residual=SIZES,
    tolerance=SIZES,
    unit=st.text(max_size=5),
    bound=BOUNDS,
    counterexample=st.one_of(st.none(), COUNTEREXAMPLES),
    causes=st.lists(st.text(max_size=5), max_size=3).map(tuple),
    notes=st.lists(st.text(max_size=20), max_size=3).map(tuple),
    reason=st.one_of(
        st.none(), st.text(max_size=8).map(free), st.just(state("nan_only", quantity="reward", value="NaN"))
    ),
    approximate=st.booleans(),
    accepted_by=st.sampled_from([None, "baseline", "accept_gap"]),
    equation=st.text(max_size=5),
    meaning=st.text(max_size=5),
    location=st.one_of(st.none(), st.text(max_size=5)),
    p_value=st.one_of(st.none(), st.floats(0, 1)),
    per_coordinate=st.lists(
        st.fixed_dictionaries({"name": st.text(max_size=5), "max_residual": SIZES, "tolerance": SIZES}), max_size=3
    ).map(tuple),
)
LAYERS = st.fixed_dictionaries(
    {"name": st.text(max_size=5)},
    optional={
        "type": st.text(max_size=5),
        "representation": st.one_of(st.none(), st.text(max_size=5)),
        "residual": SIZES,
        "verdict": st.one_of(st.none(), st.sampled_from(["proved", "failed", "weights rounded"])),
        "cause": st.one_of(
            st.none(), st.text(max_size=5), st.just(state("SYM014", sign="-1", coordinate="observation[0]"))
        ),
    },
)
RUNS = st.builds(
    RunResult,
    kind=st.sampled_from(["env", "net", "mirror", "policy", "game"]),
    target=st.one_of(st.text(max_size=10), st.sampled_from(["CartPole-v1", "Pendulum-v1", "Acrobot-v1"])),
    symmetry=st.text(max_size=10),
    group=st.fixed_dictionaries(
        {"name": st.text(max_size=4), "order": st.one_of(st.integers(1, 10**30), st.just(math.inf))}
    ),
    properties=st.lists(PROPERTIES, max_size=4).map(tuple),
    alpha=st.floats(1e-6, 0.5),
    seed=st.integers(0, 2**63),
    duration_s=st.floats(0, 1e7),
    versions=st.dictionaries(st.text(max_size=4), st.text(max_size=4), max_size=2),
    command=st.text(max_size=10),
    claim=st.dictionaries(st.text(max_size=6), st.lists(st.text(max_size=9), max_size=2), max_size=3),
    method_reason=st.text(max_size=9),
    interrupted=st.booleans(),
    layers=st.lists(LAYERS, max_size=3).map(tuple),
)


@pytest.mark.long
@settings(max_examples=60, deadline=None)
@given(st.lists(RUNS, min_size=1, max_size=3))
def test_every_writer_takes_every_result(runs: list[RunResult]) -> None:
    page = html.render_run(runs)
    page.encode("utf-8")
    HTMLParser().feed(page)
    ET.fromstring(junit.render(runs))
    markdown.render(runs).encode("utf-8")
    console = Console(file=io.StringIO(), width=80)
    terminal.print_run(runs, console)
    terminal.print_run(runs, console, quiet=True)


@settings(max_examples=40, deadline=None)
@given(st.lists(RUNS, min_size=1, max_size=3))
def test_every_result_is_valid_json_of_the_published_schema(runs: list[RunResult]) -> None:
    def refuse(constant: str) -> None:
        pytest.fail(f"{constant} is no JSON")

    data = json.loads(json_report.render(runs), parse_constant=refuse)
    assert [error.message for error in jsonschema.Draft202012Validator(json_report.schema()).iter_errors(data)] == []


@settings(max_examples=30, deadline=None)
@given(RUNS)
def test_every_page_says_its_verdict(run: RunResult) -> None:
    assert f'<span class="verdict is-{run.verdict}">{run.verdict}</span>' in html.render_run(run)


@st.composite
def _seed_curves(draw: st.DrawFn) -> SeedCurve:
    steps = sorted(draw(st.sets(st.integers(0, 10**9), max_size=5)))
    returns = [draw(st.one_of(st.sampled_from([np.nan, np.inf, -np.inf]), st.floats(-1e9, 1e9))) for _ in steps]
    return SeedCurve(draw(st.integers(0, 5)), steps, returns)


CURVE_MODELS = st.builds(
    CurveModel,
    task=st.text(max_size=8),
    networks=st.lists(
        st.builds(
            NetworkCurves,
            name=st.sampled_from(["equivariant", "mlp", "<b>"]),
            learning_rate=st.sampled_from([0.0, 1e-3, 1e-2]),
            curves=st.lists(_seed_curves(), max_size=3),
            verdict=st.sampled_from([None, "proved", "failed"]),
            failed_runs=st.lists(st.builds(FailedRun, seed=st.integers(0, 5), reason=st.text(max_size=5)), max_size=2),
            chosen=st.booleans(),
        ),
        min_size=1,
        max_size=4,
    ),
    threshold=st.one_of(st.none(), st.floats(-500, 500)),
    settings=st.dictionaries(st.text(max_size=4), st.text(max_size=4), max_size=2),
)


@settings(max_examples=60, deadline=None)
@given(CURVE_MODELS)
def test_every_set_of_curves_makes_a_page(model: CurveModel) -> None:
    page = render_curves(model)
    page.encode("utf-8")
    HTMLParser().feed(page)
