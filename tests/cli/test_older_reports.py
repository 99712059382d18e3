"""Reports of the schema symcheck/1, as the last version that wrote it wrote them, are still read."""

import json
import shutil
from pathlib import Path

import jsonschema
import pytest
from commands import run

from symcheck.api.replay import replay
from symcheck.engine.published import upgrade
from symcheck_reports import json as json_report

ROOT = Path(__file__).parents[2]
OLDER = ROOT / "tests" / "reports" / "version_1"
FILES = ("accepted", "failed", "gap", "net", "passed", "search")


def _older(name):
    return json.loads((OLDER / f"{name}.json").read_text())


def _by_name(report):
    return {item["name"]: item for item in report["properties"]}


@pytest.mark.parametrize("name", FILES)
def test_an_upgraded_report_follows_todays_schema(name):
    older = _older(name)
    assert older["schema"] == "symcheck/1"
    upgraded = upgrade(older)
    errors = jsonschema.Draft202012Validator(json_report.schema()).iter_errors(upgraded)
    assert [error.message for error in errors] == []
    assert upgraded["verdict"] == older["verdict"]


def test_several_older_runs_are_upgraded_one_by_one():
    several = {"schema": "symcheck/1", "verdict": "failed", "reports": [_older("passed"), _older("failed")]}
    upgraded = upgrade(several)
    assert list(jsonschema.Draft202012Validator(json_report.schema()).iter_errors(upgraded)) == []
    assert upgraded["reports"][1] == upgrade(_older("failed"))


def test_what_an_older_report_said_in_prose_is_kept_as_text_without_a_code():
    older, upgraded = (_by_name(report) for report in (_older("failed"), upgrade(_older("failed"))))
    before, after = older["transition_invariance"], upgraded["transition_invariance"]
    assert after["causes"] == [{"code": None, "text": text} for text in before["causes"]]
    assert after["notes"] == [{"code": None, "text": before["detail"]}]
    assert after["detail"] == before["detail"]
    assert after["reason"] is None
    assert after["counterexample"]["group_element"] == {"word": "no action map", "parameters": []}


@pytest.mark.parametrize(
    ("name", "approximate"),
    [
        ("accepted", {"transition_invariance": "baseline"}),
        (
            "gap",
            dict.fromkeys(("reward_invariance", "transition_invariance", "termination_invariance"), "accept_gap"),
        ),
        ("passed", {}),
        ("failed", {}),
        ("net", {}),
    ],
)
def test_accepted_violations_of_an_older_report_are_approximate(name, approximate):
    upgraded = upgrade(_older(name))
    marked = {item["name"]: item["accepted_by"] for item in upgraded["properties"] if item["approximate"]}
    assert marked == approximate
    assert upgraded["approximate"] == bool(approximate)


def test_the_word_alone_makes_an_older_report_not_approximate():
    older = _older("passed")
    for item in older["properties"]:
        item["detail"] = "approximate: a layer called approximate_value_head"
    assert not upgrade(older)["approximate"]


def test_a_report_of_today_is_left_as_it_is():
    upgraded = upgrade(_older("failed"))
    assert upgrade(upgraded) == upgraded


def test_an_older_counterexample_is_replayed_and_the_answer_is_of_today(folder):
    for name in ("failed.json", "no_action.toml"):
        shutil.copy(OLDER / name, folder / name)
    code, printed = run("replay", "failed.json")
    assert code == 1, printed
    assert "transition_invariance FAILED" in printed
    assert replay(folder / "failed.json").to_dict()["schema"] == "symcheck/2"


def test_an_older_counterexample_of_a_network_is_replayed(monkeypatch):
    monkeypatch.chdir(ROOT)
    report = replay(OLDER / "net.json")
    assert {item.verdict for item in report.properties} == {"failed"}
    assert report["network_equivariance"].counterexample is not None


def test_a_baseline_made_for_older_reports_accepts_the_same(folder):
    (folder / "accepted.toml").write_text(
        '[[accepted]]\ntarget = "CartPole-v1"\nsymmetry = "no action map"\nproperty = "transition_invariance"\n'
        'max_residual = 10\nreason = "measured"\n'
    )
    shutil.copy(OLDER / "no_action.toml", folder / "no_action.toml")
    words = ("--symmetry", "no_action.toml", "--samples", 200, "--baseline", "accepted.toml", "--json", "r.json")
    assert run("verify-env", "CartPole-v1", *words)[0] == 0
    now, before = _by_name(json.loads((folder / "r.json").read_text())), _by_name(_older("accepted"))
    assert {name: item["verdict"] for name, item in now.items()} == {
        name: item["verdict"] for name, item in before.items()
    }


@pytest.mark.parametrize("schema", ["symcheck/0", "symcheck/3", None, 1])
def test_a_schema_of_another_version_is_refused_by_name(folder, schema):
    (folder / "r.json").write_text(json.dumps(_older("failed") | {"schema": schema}))
    code, printed = run("replay", "r.json")
    assert code == 2
    assert f"expected a report of schema 'symcheck/1' or 'symcheck/2', got {schema!r}" in printed
