"""Gold files of the pages and JSON reports that no other module holds to one; `WRITE_GOLD=1` writes them anew."""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from symcheck.engine.results import PropertyResult, RunResult
from symcheck.statements.statement import state
from symcheck_reports import html, index
from symcheck_reports import json as json_report
from symcheck_reports.curve_model import CurveModel
from symcheck_reports.curves import render_curves
from symcheck_reports.discovery_model import DiscoveryModel
from symcheck_reports.discovery_page import render_discovery
from symcheck_reports.homomorphism_model import HomomorphismModel
from symcheck_reports.homomorphism_page import render_homomorphism

Gold = Callable[[str, str], None]
GOLD, WRITERS = Path(__file__).parent / "gold", Path(html.__file__).parent


def anchor_of(call: ast.Call) -> str:
    """The anchor that `section(template, anchor, ...)` gets, without the run that stands in front of it."""
    anchor = call.args[1]
    if isinstance(anchor, ast.JoinedStr):
        return ast.unparse(anchor.values[-1]).strip("'-")
    return str(anchor.value) if isinstance(anchor, ast.Constant) else ""  # else the run alone


def test_every_section_is_on_a_gold_page() -> None:
    written = {
        anchor_of(call)
        for path in WRITERS.rglob("*.py")
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "section"
    }
    shown = set()
    for page in GOLD.glob("*.html"):
        ids = re.findall(r'<(?:section|article)[^>]* id="([^"]+)"', page.read_text(encoding="utf-8"))
        shown |= {re.sub(r"^run\d+-?", "", each) for each in ids}
    assert len(written) > 20
    assert sorted(written - shown) == []


@pytest.fixture
def passing_network(failing_network: RunResult) -> RunResult:
    """The network whose weight is right: every layer proved, two precisions, no decision flips."""
    layers = tuple({**layer, "residual": 0.0, "verdict": "proved"} for layer in failing_network.layers)
    axioms, certificate, tested = failing_network.properties
    clean = {"verdict": "proved", "violations": 0, "counterexample": None, "causes": (), "location": ""}
    precisions = (
        {"name": "float64 copy", "max_residual": 4.9e-16, "tolerance": 1.0e-12, "kind": "precision"},
        {
            "name": "float32 as deployed",
            "max_residual": 1.8e-7,
            "tolerance": None,
            "noise": 2.8e-7,
            "kind": "precision",
        },
        {"name": "argmax decisions", "kind": "decisions", "checked": 9951, "violations": 0},
    )
    proved = (
        axioms,
        dataclasses.replace(certificate, max_residual=0.0, notes=("Every layer commutes with the action.",), **clean),  # type: ignore[arg-type]
        dataclasses.replace(tested, max_residual=4.9e-16, notes=(), per_coordinate=precisions, **clean),  # type: ignore[arg-type]
    )
    return dataclasses.replace(failing_network, properties=proved, layers=layers)


@pytest.fixture
def undecided_run(passing_run: RunResult) -> RunResult:
    """A run whose time was up before anything but the group was checked."""
    reason = state("time_up", checked=0)
    names = ("reward_invariance", "transition_invariance", "termination_invariance", "initial_invariance")
    open_ones = tuple(PropertyResult(name, "undecided", "paired", 0, reason=reason) for name in names)
    return dataclasses.replace(passing_run, properties=(passing_run.properties[0], *open_ones))


@pytest.fixture
def mirror_run(passing_run: RunResult) -> RunResult:
    """A mirror function with one wrong column, over a model of which one mass differs from its image."""
    column = {"group": "observation", "index": 3, "term": "joint_pos", "name": "left_knee"}
    column |= {"expected": "right_knee", "found": "-right_knee", "code": "SYM202"}
    joints = [[-0.2, 0.5, "left_knee", True], [0.2, 0.5, "right_knee", False]]
    drawing = {"lines": [[-0.2, 0.5, 0.0, 1.0], [0.2, 0.5, 0.0, 1.0]], "joints": joints}
    return dataclasses.replace(
        passing_run,
        kind="mirror",
        columns=(column,),
        differences=({"text": "mass of left_shin: 1.2, of right_shin: 1.3", "relative": 0.08},),
        pictures=(("the robot", drawing),),
    )


@pytest.mark.parametrize("name", ["passing_network", "undecided_run", "approximate_run", "mirror_run", "several_runs"])
def test_a_page_is_as_agreed(name: str, request: pytest.FixtureRequest, gold: Gold) -> None:
    gold(f"{name}.html", html.render_run(request.getfixturevalue(name)))


@pytest.mark.parametrize(
    "name", ["passing_network", "failing_network", "undecided_run", "approximate_run", "failing_run"]
)
def test_json_is_as_agreed(name: str, request: pytest.FixtureRequest, gold: Gold) -> None:
    gold(f"{name}.json", json_report.render(request.getfixturevalue(name)))


def test_the_page_of_two_learning_rates_is_as_agreed(curve_model: CurveModel, gold: Gold) -> None:
    slow = [dataclasses.replace(network, learning_rate=1e-4, chosen=False) for network in curve_model.networks]
    model = dataclasses.replace(curve_model, networks=[*curve_model.networks, *slow])
    gold("curves_of_two_rates.html", render_curves(model))


def test_the_page_of_a_graph_of_blocks_is_as_agreed(homomorphism_graph: HomomorphismModel, gold: Gold) -> None:
    gold("homomorphism_graph.html", render_homomorphism(homomorphism_graph))


def test_the_page_of_a_searched_table_is_as_agreed(homomorphism_model: HomomorphismModel, gold: Gold) -> None:
    found = DiscoveryModel(
        target="Map-v0",
        verdict="proved",
        group="C2",
        order=2,
        spec="",
        narrowing=(("4", "states and 2 actions in a table, all enumerated"), ("1", "verified by enumeration")),
        how="every pair enumerated",
        candidates=(),
        command="symcheck discover Map-v0",
        orbits=homomorphism_model,
        exhaustive=True,
    )
    gold("discovery_table.html", render_discovery(found))


def test_the_index_of_a_folder_is_as_agreed(
    tmp_path: Path, passing_run: RunResult, failing_run: RunResult, failing_network: RunResult, gold: Gold
) -> None:
    folder = tmp_path / "reports"
    folder.mkdir()
    for name, run in {"pass": passing_run, "fail": failing_run, "net": failing_network}.items():
        (folder / f"{name}.json").write_text(json_report.render(run), encoding="utf-8")
    (folder / "fail.html").write_text(html.render_run(failing_run), encoding="utf-8")
    (folder / "curves.html").write_text("<title>CartPole-v1: learning curves</title>", encoding="utf-8")
    search = '{"schema": "symcheck/2", "kind": "discovery", "target": "Map-v0", "verdict": "passed", '
    (folder / "search.json").write_text(search + '"group": {"name": "C2", "order": 2}}', encoding="utf-8")
    (folder / "broken.json").write_text('{"schema": "symcheck/0"}', encoding="utf-8")
    gold("index.html", index.render_index(index.read_folder(folder)))
