"""JSON reports that somebody changed: one message and exit 2, or a page that leaves out what it cannot read."""

import copy
import json

import pytest
from commands import run

CLAIM = 'name = "no action map"\ngroup = "cyclic(2)"\nobservation = [[-1, -1, -1, -1]]\naction = [[0, 1]]\n'


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    (folder / "claim.toml").write_text(CLAIM)
    words = ("--symmetry", folder / "claim.toml", "--samples", 100, "--json", folder / "report.json", "--quiet")
    assert run("verify-env", "CartPole-v1", *words) == (1, "failed\n")
    return json.loads((folder / "report.json").read_text())


DAMAGE = [
    {"properties": None},
    {"properties": ["x"]},
    {"properties": [{"name": 3, "verdict": "failed"}]},
    {"properties": [{"name": "transition_invariance", "verdict": "failed", "counterexample": "x"}]},
    {"target": 7},
    {"symmetry": None},
    {"group": 3},
    {"kind": None},
    {"alpha": "x"},
    {"seed": "x"},
    {"command": 7},
    {"command": 'symcheck verify-env "CartPole-v1'},
]


def test_the_report_itself_is_replayed(folder, report):
    (folder / "r.json").write_text(json.dumps(report))
    assert run("replay", "r.json", "--trust")[0] == 1


@pytest.mark.parametrize("damage", DAMAGE, ids=str)
def test_a_damaged_report_is_not_replayed(folder, report, damage):
    (folder / "r.json").write_text(json.dumps(report | damage))
    code, printed = run("replay", "r.json")
    assert (code, printed.count("\n"), "r.json: the report " in printed) == (2, 1, True), printed


@pytest.mark.parametrize("damage", [{"observation": "x"}, {"action": [1, 2]}, {"state": [1.0]}], ids=str)
def test_a_counterexample_that_fits_no_space_is_not_replayed(folder, report, damage):
    changed = copy.deepcopy(report)
    for item in changed["properties"]:
        if item["counterexample"]:
            item["counterexample"].update(damage)
    (folder / "r.json").write_text(json.dumps(changed))
    code, printed = run("replay", "r.json", "--trust")
    assert (code, printed.count("symcheck: ")) == (2, 1), printed


@pytest.mark.parametrize("damage", DAMAGE, ids=str)
def test_an_index_lists_a_damaged_report_beside_a_whole_one(folder, report, damage):
    (folder / "whole.json").write_text(json.dumps(report))
    (folder / "damaged.json").write_text(json.dumps(copy.deepcopy(report) | damage))
    assert run("report", ".")[0] == 0
    assert "whole.json" in (folder / "index.html").read_text()
