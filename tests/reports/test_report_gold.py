"""Gold files of the pages and JSON reports that no other module holds to one; `WRITE_GOLD=1` writes them anew."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest

from symcheck.engine.results import PropertyResult, RunResult
from symcheck.statements.statement import state
from symcheck_reports import html, index
from symcheck_reports import json as json_report
from symcheck_reports.discovery_model import DiscoveryModel
from symcheck_reports.discovery_page import render_discovery
from symcheck_reports.homomorphism_model import HomomorphismModel
from symcheck_reports.homomorphism_page import render_homomorphism

Gold = Callable[[str, str], None]


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


@pytest.mark.parametrize("name", ["passing_network", "undecided_run", "approximate_run"])
def test_a_page_is_as_agreed(name: str, request: pytest.FixtureRequest, gold: Gold) -> None:
    gold(f"{name}.html", html.render_run(request.getfixturevalue(name)))


@pytest.mark.parametrize(
    "name", ["passing_network", "failing_network", "undecided_run", "approximate_run", "failing_run"]
)
def test_json_is_as_agreed(name: str, request: pytest.FixtureRequest, gold: Gold) -> None:
    gold(f"{name}.json", json_report.render(request.getfixturevalue(name)))


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
