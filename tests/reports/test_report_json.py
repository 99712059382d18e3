"""JSON follows the published schema, and the schema refuses what the interface forbids."""

from __future__ import annotations

import copy
import dataclasses
import json
import math
from collections.abc import Callable
from typing import Any

import jsonschema
import pytest
import torch

import symcheck as sc
from symcheck.engine.results import Counterexample, PropertyResult, RunResult
from symcheck.statements.statement import free, state
from symcheck_reports import json as json_report


@pytest.fixture(scope="module")
def validator() -> jsonschema.Draft202012Validator:
    schema = json_report.schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def _errors(validator: jsonschema.Draft202012Validator, data: Any) -> list[str]:
    return [error.message for error in validator.iter_errors(data)]


@pytest.mark.parametrize("name", ["passing_run", "failing_run", "failing_network", "hostile_run"])
def test_every_report_is_valid(
    name: str, request: pytest.FixtureRequest, validator: jsonschema.Draft202012Validator
) -> None:
    run: RunResult = request.getfixturevalue(name)
    assert _errors(validator, json.loads(json_report.render(run))) == []


def test_several_runs_stand_under_reports_below_the_worst_verdict(
    several_runs: list[RunResult], validator: jsonschema.Draft202012Validator
) -> None:
    data = json.loads(json_report.render(several_runs))
    assert _errors(validator, data) == []
    assert list(data) == ["schema", "verdict", "reports"]
    assert data["verdict"] == "failed"
    assert [report["verdict"] for report in data["reports"]] == ["passed", "failed", "failed"]


def test_one_run_in_a_list_is_one_object(passing_run: RunResult) -> None:
    assert json_report.render([passing_run]) == json_report.render(passing_run)


def test_keys_stand_in_the_order_of_the_interface(passing_run: RunResult) -> None:
    keys = list(json.loads(json_report.render(passing_run)))
    assert keys[:6] == ["schema", "kind", "target", "symmetry", "group", "verdict"]


def test_nan_and_infinity_are_strings(hostile_run: RunResult) -> None:
    text = json_report.render(hostile_run)
    data = json.loads(text, parse_constant=lambda constant: pytest.fail(f"{constant} is no JSON"))
    example = data["properties"][0]["counterexample"]
    assert (example["residual"], example["actual"]) == ("NaN", "Infinity")


def test_any_text_survives_the_round_trip(hostile_run: RunResult) -> None:
    assert json.loads(json_report.render(hostile_run))["target"] == hostile_run.target
    json_report.render(hostile_run).encode("ascii")


def test_no_run_is_no_report() -> None:
    with pytest.raises(ValueError, match="at least one run"):
        json_report.render([])


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("schema",), "symcheck/1"),
        (("verdict",), "ok"),
        (("kind",), "agent"),
        (("alpha",), 1.5),
        (("group", "order"), 0),
        (("group", "order"), "infinite"),
        (("approximate",), "yes"),
        (("properties", 0, "checked"), -1),
        (("properties", 0, "verdict"), "PASSED"),
        (("properties", 2, "max_residual"), "nan"),
        (("properties", 2, "causes"), "one text"),
        (("properties", 2, "causes", 0), "one text"),
        (("properties", 2, "causes", 1, "code"), "nan_only"),
        (("properties", 2, "approximate"), None),
        (("properties", 2, "accepted_by"), "approximate.toml"),
        (("properties", 2, "counterexample", "group_element"), "g"),
        (("properties", 4, "reason"), "time_up"),
        (("properties", 4, "notes"), ["one text"]),
    ],
)
def test_the_schema_refuses(
    path: tuple[str | int, ...], value: object, failing_run: RunResult, validator: jsonschema.Draft202012Validator
) -> None:
    data = copy.deepcopy(json.loads(json_report.render(failing_run)))
    inner = data
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    assert _errors(validator, data)


def test_what_a_run_says_stands_in_json_as_data() -> None:
    """Whoever reads the file takes code and fields, and never searches a sentence."""
    region = state("accepted", size=0.5, limit=1.0, file="accepted.toml", why="")
    item = PropertyResult(
        "reward_invariance", "passed", "paired", 9, violations=2,
        reason=state("constant", quantity="reward", value="0"), approximate=True, accepted_by="baseline",
        causes=(state("SYM014", sign="-1", coordinate="theta"), free("something new")), notes=(region,),
        bound={"kind": "violation_fraction", "value": 0.5, "region": region},
        counterexample=Counterexample("r^2", [0.0], None, 1, 0.0, math.inf, math.inf, "reward"),
    )  # fmt: skip
    layers = ({"name": "body", "cause": state("SYM014", sign="-1", coordinate="x")}, {"name": "head", "cause": None})
    run = RunResult(
        "env", "E-v0", "m", {"name": "so(2)", "order": math.inf}, (item,), 0.01, 0,
        method_reason=state("replayed_from", report="a.json"), layers=layers,
    )  # fmt: skip
    data = json.loads(json_report.render(run))
    written = data["properties"][0]
    assert list(written)[:15] == [
        "name", "verdict", "reason", "approximate", "accepted_by", "method", "checked", "violations", "max_residual",
        "tolerance", "unit", "bound", "counterexample", "causes", "detail",
    ]  # fmt: skip
    constant = {"code": "constant", "text": "constant: every reward was 0", "quantity": "reward", "value": "0"}
    assert written["reason"] == constant
    assert (data["approximate"], written["approximate"], written["accepted_by"]) == (True, True, "baseline")
    assert written["causes"] == [
        {"code": "SYM014", "text": "the claim holds with sign -1 on theta", "sign": "-1", "coordinate": "theta"},
        {"code": None, "text": "something new"},
    ]
    assert written["notes"][0]["limit"] == 1.0
    assert written["bound"]["region"] == region.text
    assert written["bound"]["region_data"] == {"code": "accepted", **region.fields}
    assert written["counterexample"]["group_element"] == {"word": "r^2", "parameters": []}
    assert written["counterexample"]["actual"] == "Infinity"
    assert data["group"]["order"] == "Infinity"
    assert (data["method_reason"], data["method_reason_data"]["report"]) == ("replayed from a.json", "a.json")
    assert data["layers"][0]["cause_data"] == {"code": "SYM014", "sign": "-1", "coordinate": "x"}
    assert data["layers"][1] == {"name": "head", "cause": None}
    assert written["detail"].startswith("Constant: every reward was 0. Violated by up to 0.5")


def test_a_statement_within_a_statement_is_data_too(validator: jsonschema.Draft202012Validator) -> None:
    inner = state("SYM014", sign="-1", coordinate="x")
    note = state("accepted", size=0.5, limit=math.nan, file=inner, why="")
    item = PropertyResult("reward_invariance", "passed", "paired", 9, notes=(note,))
    run = RunResult("env", "E-v0", "m", {"name": "C2", "order": 2}, (item,), 0.01, 0)
    data = json.loads(json_report.render(run))
    assert data["properties"][0]["notes"][0]["file"]["code"] == "SYM014"
    assert data["properties"][0]["notes"][0]["limit"] == "NaN"
    assert _errors(validator, data) == []


@pytest.mark.parametrize("kind", ["env", "net", "mirror", "policy", "game"])
def test_every_kind_of_run_is_valid(
    kind: Any, passing_run: RunResult, validator: jsonschema.Draft202012Validator
) -> None:
    data = json.loads(json_report.render(dataclasses.replace(passing_run, kind=kind)))
    assert data["kind"] == kind
    assert _errors(validator, data) == []


@pytest.mark.parametrize("key", ["target", "verdict", "properties", "versions", "command"])
def test_the_schema_misses_a_key_that_is_left_out(
    key: str, failing_run: RunResult, validator: jsonschema.Draft202012Validator
) -> None:
    data = json.loads(json_report.render(failing_run))
    del data[key]
    assert _errors(validator, data)


def _objects(schema: dict[str, Any]) -> dict[str, set[str]]:
    """The fields that each definition describes."""
    return {name: set(entry["properties"]) for name, entry in schema["$defs"].items() if "properties" in entry}


def test_every_field_of_a_result_is_described_and_no_other() -> None:
    described = _objects(json_report.schema())
    written = {
        "run": {f.name for f in dataclasses.fields(RunResult)} - {"pictures"}
        | {"schema", "verdict", "approximate", "method_reason_data"},
        "property": {f.name for f in dataclasses.fields(PropertyResult)} - {"facts"} | {"detail"},
        "counterexample": {f.name for f in dataclasses.fields(Counterexample)} - {"pictures", "undrawn"},
    }
    assert {name: described[name] for name in written} == written


@pytest.mark.parametrize(
    "path",
    [
        (),
        ("group",),
        ("properties", 2),
        ("properties", 2, "counterexample"),
        ("properties", 1, "bound"),
        ("properties", 2, "per_coordinate", 0),
    ],
)
def test_a_field_that_nobody_describes_is_refused(
    path: tuple[str | int, ...], failing_run: RunResult, validator: jsonschema.Draft202012Validator
) -> None:
    data = json.loads(json_report.render(failing_run))
    inner = data
    for step in path:
        inner = inner[step]
    inner["undescribed"] = 1
    assert _errors(validator, data)


def test_a_bound_of_ones_own_kind_may_have_fields_of_its_own(
    failing_run: RunResult, validator: jsonschema.Draft202012Validator
) -> None:
    data = json.loads(json_report.render(failing_run))
    data["properties"][1]["bound"] = {"kind": "my_bound", "value": 1.0, "mine": True}
    assert _errors(validator, data) == []


class Net(torch.nn.Module):
    """Odd in its input, and so equivariant under signs; a constant on one output is not."""

    def __init__(self, constant: float) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first = torch.nn.Linear(4, 8, bias=False)
        self.second = torch.nn.Linear(8, 1, bias=False)
        self.constant = constant

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.second(torch.tanh(self.first(x)))
        return torch.cat([y, self.constant - y], -1)


@pytest.mark.parametrize(("constant", "verdict"), [(0.0, {"proved", "passed"}), (0.1, {"failed"})])
def test_what_the_engine_emits_of_a_network_is_valid(
    constant: float, verdict: set[str], validator: jsonschema.Draft202012Validator
) -> None:
    mirror = sc.Symmetry("mirror", sc.groups.cyclic(2), observation=[[-1, -1, -1, -1]], action=[[1, 0]])
    report = sc.verify_net(Net(constant), mirror)
    data = json.loads(report.to_json())
    assert report.verdict in verdict
    assert _errors(validator, data) == []
    entries = [entry for p in data["properties"] for entry in p["per_coordinate"]]
    assert {entry.get("kind") for entry in entries} == {"precision", "decisions"}
    assert data["layers"]


@pytest.mark.parametrize("method", ["paired", "distribution", "trajectory"])
def test_every_method_emits_what_is_valid(method: Any, validator: jsonschema.Draft202012Validator) -> None:
    data = json.loads(sc.verify_env("CartPole-v1", method=method, samples=60).to_json())
    assert _errors(validator, data) == []
    assert method in {p["method"] for p in data["properties"]}


@pytest.mark.parametrize(
    ("target", "symmetry"),
    [
        ("FrozenLake-v1", "frozenlake/transpose"),
        ("CartPole-v1", "cartpole/mirror"),
        pytest.param("Ant-v5", "ant/front-back", marks=pytest.mark.long),
    ],
)
def test_what_the_engine_emits_is_valid(target: str, symmetry: str, validator: jsonschema.Draft202012Validator) -> None:
    if target == "Ant-v5":
        pytest.importorskip("mujoco")
    result = sc.verify_env(target, symmetry, samples=60, seed=0)
    data = json.loads(result.to_json())
    assert _errors(validator, data) == []
    if target != "CartPole-v1":
        bounds = [p["bound"] for p in data["properties"] if p["bound"] is not None]
        assert "value_gap" in {bound["kind"] for bound in bounds}


def test_a_search_is_valid_and_one_of_unknown_kind_is_not(validator: jsonschema.Draft202012Validator) -> None:
    data = json.loads(json.dumps(sc.discover("CartPole-v1", seed=0).to_dict()))
    assert _errors(validator, data) == []
    assert _errors(validator, {**data, "kind": "search"})
    data["candidates"][0]["report"]["verdict"] = "ok"
    assert _errors(validator, data)


def test_json_is_as_agreed(several_runs: list[RunResult], gold: Callable[[str, str], None]) -> None:
    gold("several.json", json_report.render(several_runs))
