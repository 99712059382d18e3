"""Accepted approximate symmetries: never silent, never larger than accepted, mentioned when no longer needed."""

import dataclasses
import json
import math
import shutil
from pathlib import Path

import pytest
from commands import run

from symcheck.api.baseline import Accepted, Baseline, read_baseline, with_baseline
from symcheck.engine.results import Counterexample, PropertyResult, RunResult
from symcheck.errors import OptionError
from symcheck.statements.statement import free
from symcheck.verdict import Facts

EXAMPLES = Path(__file__).parents[2] / "examples" / "cartpole_networks.py"
SYMMETRY = 'import symcheck as sc\nwrong = sc.Symmetry("no action map", sc.groups.cyclic(2), [[-1] * 4], [[0, 1]])\n'


def entry(size, target="CartPole-v1", symmetry="no action map", name="transition_invariance", reason="measured"):
    return (
        f'[[accepted]]\ntarget = "{target}"\nsymmetry = "{symmetry}"\nproperty = "{name}"\nmax_residual = {size}\n'
        f'reason = "{reason}"\n'
    )


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "claims.py").write_text(SYMMETRY)
    shutil.copy(EXAMPLES, tmp_path / "nets.py")
    monkeypatch.chdir(tmp_path)
    return tmp_path


ENV = ("verify-env", "CartPole-v1", "--symmetry", "claims.py:wrong", "--samples", "300", "--json", "r.json")


def prop(folder, name="transition_invariance"):
    report = json.loads((folder / "r.json").read_text())
    return next(item for item in report["properties"] if item["name"] == name), report


@pytest.mark.parametrize("symmetry", ["no action map", "claims.py:wrong"])
def test_an_accepted_violation_passes_with_its_size_and_its_counterexample(folder, symmetry):
    (folder / "b.toml").write_text(entry(10.0, symmetry=symmetry))
    assert run(*ENV)[0] == 1
    code, output = run(*ENV, "--baseline", "b.toml")
    assert code == 0, output
    item, report = prop(folder)
    assert item["verdict"] == "passed"
    assert report["verdict"] == "passed"
    assert (item["approximate"], item["accepted_by"]) == (True, "baseline")
    note = item["notes"][0]
    assert (note["code"], note["limit"], note["file"], note["why"]) == ("accepted", 10.0, "b.toml", "measured")
    assert 0 < note["size"] < 1
    assert "Violated by up to 0." in item["detail"]
    assert "accepted up to 10 in b.toml (measured)" in item["detail"]
    assert item["counterexample"]
    assert item["violations"] > 0
    assert "--baseline b.toml" in report["command"]
    assert "approximately symmetric" in output


def test_every_writer_says_approximate_and_shows_the_counterexample(folder):
    (folder / "b.toml").write_text(entry(10.0))
    files = {"--html": "r.html", "--markdown": "r.md", "--junit": "r.xml"}
    words = [word for pair in files.items() for word in pair]
    code, output = run(*ENV, "--baseline", "b.toml", *words)
    assert code == 0, output
    for text in (output, *((folder / name).read_text() for name in files.values())):
        assert "approximate" in text
        assert "ccepted up to 10 in b.toml (measured)" in text or "passed (approximate, accepted by baseline)" in text
    assert "violations" in (folder / "r.xml").read_text()


def test_an_accepted_violation_can_still_be_replayed(folder):
    (folder / "b.toml").write_text(entry(10.0))
    assert run(*ENV, "--baseline", "b.toml")[0] == 0
    code, output = run("replay", "r.json")
    assert code == 1, output
    assert "transition_invariance" in output


def test_a_violation_larger_than_accepted_stays_failed_and_says_by_how_much(folder):
    (folder / "b.toml").write_text(entry(0.001))
    code, _ = run(*ENV, "--baseline", "b.toml")
    assert code == 1
    item, _ = prop(folder)
    assert item["verdict"] == "failed"
    assert "is larger than the 0.001 accepted in b.toml; the excess is 0." in item["detail"]
    assert (item["notes"][0]["code"], item["notes"][0]["limit"]) == ("accepted_no_more", 0.001)
    assert (item["approximate"], item["accepted_by"]) == (False, None)


def test_an_entry_about_another_target_symmetry_or_property_accepts_nothing(folder):
    others = {"target": "CartPole-v0", "symmetry": "mirror", "name": "reward_invariance"}
    for key, value in others.items():
        (folder / "b.toml").write_text(entry(10.0, **{key: value}))
        assert run(*ENV, "--baseline", "b.toml")[0] == 1


def test_an_entry_that_is_no_longer_needed_is_mentioned_and_changes_nothing(folder):
    (folder / "b.toml").write_text(entry(0.5, symmetry="cartpole/mirror"))
    words = ("verify-env", "CartPole-v1", "--samples", "300", "--json", "r.json", "--baseline", "b.toml")
    code, output = run(*words)
    assert code == 0
    item, _ = prop(folder)
    assert "No violation remains: remove the entry (up to 0.5) from b.toml." in item["detail"]
    assert (item["approximate"], item["accepted_by"]) == (False, None)
    assert "approximate" not in output


def test_networks_and_whole_projects_take_a_baseline_too(folder):
    names = ("layer_certificate", "network_equivariance", "representation_propagation")
    text = "".join(entry(1e9, "nets.py:mlp", "cartpole/mirror", name) for name in names)
    (folder / "b.toml").write_text(text)
    words = ("verify-net", "nets.py:mlp", "--symmetry", "cartpole/mirror", "--samples", "300", "--json", "r.json")
    assert run(*words)[0] == 1
    code, output = run(*words, "--baseline", "b.toml")
    assert code == 0, output
    assert "approximately equivariant" in output
    (folder / "deep").mkdir()
    check = 'net = "nets.py:mlp"\nsymmetry = "cartpole/mirror"\nsamples = 300\n'
    (folder / "symcheck.toml").write_text(f'baseline = "b.toml"\n[[checks]]\n{check}')
    assert run("run", "--quiet") == (0, "passed\n")
    (folder / "symcheck.toml").write_text(f"[[checks]]\n{check}")
    assert run("run", "--quiet") == (1, "failed\n")
    assert run("run", "--quiet", "--baseline", "b.toml") == (0, "passed\n")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("b.toml", None, "cannot be read"),
        ("b.yaml", "", "expected a .toml or .json file"),
        ("b.toml", "accepted = ", "expected TOML"),
        ("b.json", "{", "expected JSON"),
        ("b.toml", "", "expected a list of tables called accepted"),
        ("b.json", '{"accepted": [3]}', "expected a table, got 3"),
        ("b.toml", '[[accepted]]\ntarget = "x"\n', "is missing symmetry, property, max_residual, reason"),
        ("b.toml", entry(1) + "size = 3\n", "has unknown fields size"),
        ("b.toml", entry(-1), "expected max_residual as a finite number"),
        ("b.toml", entry("nan"), "expected max_residual as a finite number"),
        ("b.toml", entry("true"), "expected max_residual as a finite number"),
        ("b.toml", entry(1, reason=" "), "expected text for reason"),
        ("b.toml", entry(1, name="transition_invarience"), "Did you mean 'transition_invariance'"),
        ("b.toml", entry(1) + entry(2), "accepted[0] and accepted[1] are about the same property"),
    ],
)
def test_a_baseline_that_cannot_be_used_exits_2_with_an_entry_to_write(folder, name, text, message):
    if text is not None:
        (folder / name).write_text(text)
    code, output = run(*ENV, "--baseline", name)
    assert code == 2, output
    assert message in output
    assert "--baseline" in output
    assert "[[accepted]]" in output or "Did you mean" in output
    assert not (folder / "r.json").exists()


def test_json_says_the_same_as_toml(tmp_path):
    fields = {"target": "t", "symmetry": "m", "property": "group_axioms", "max_residual": 1, "reason": "r"}
    (tmp_path / "b.json").write_text(json.dumps({"accepted": [fields]}))
    (tmp_path / "c.json").write_text(json.dumps([fields]))
    (tmp_path / "b.toml").write_text(entry(1, "t", "m", "group_axioms", "r"))
    found = [read_baseline(tmp_path / name).entries for name in ("b.json", "c.json", "b.toml")]
    assert found[0] == found[1] == found[2] == (Accepted("t", "m", "group_axioms", 1.0, "r"),)


def judged(item, size):
    result = RunResult("env", "E-v0", "m", {"name": "C2", "order": 2}, (item,), 0.01, 0)
    accepted = Accepted("E-v0", "m", item.name, size, "why")
    return with_baseline(result, Baseline(Path("b.toml"), (accepted,))).properties[0]


FAILED = PropertyResult(
    "reward_invariance",
    "failed",
    "paired",
    9,
    violations=2,
    max_residual=0.5,
    notes=(free("as measured"),),
    facts=Facts(checked=9, violations=2),
)


@pytest.mark.parametrize(
    "item",
    [
        dataclasses.replace(FAILED, max_residual=None),
        dataclasses.replace(FAILED, max_residual=math.nan),
        dataclasses.replace(FAILED, counterexample=Counterexample("m", [0], None, 0, 1, math.inf, math.inf, "x")),
    ],
)
def test_a_violation_without_a_finite_size_is_never_accepted(item):
    found = judged(item, 1e9)
    assert found.verdict == "failed"
    assert "has no finite size" in found.detail


def test_the_larger_of_both_sizes_counts_and_equality_is_within():
    worse = dataclasses.replace(FAILED, counterexample=Counterexample("m", [0], None, 0, 1, 2, 0.75, "x"))
    assert judged(FAILED, 0.5).verdict == "passed"
    assert judged(worse, 0.5).verdict == "failed"
    assert judged(worse, 0.75).detail.endswith("As measured.")


def test_a_property_of_a_user_s_own_is_accepted_though_it_keeps_no_facts():
    bare = dataclasses.replace(FAILED, facts=None, violations=0)
    assert (judged(bare, 0.5).verdict, judged(bare, 0.5).accepted_by) == ("passed", "baseline")
    assert judged(bare, 0.4).verdict == "failed"


def test_what_another_option_accepted_is_not_called_needless():
    elsewhere = dataclasses.replace(FAILED, verdict="passed", accepted_by="accept_gap")
    assert judged(elsewhere, 1.0) == elsewhere


def test_what_is_undecided_stays_so_without_a_word():
    item = dataclasses.replace(FAILED, verdict="undecided")
    assert judged(item, 1.0) == item


def test_a_project_that_is_given_no_baseline_is_left_alone():
    result = RunResult("env", "E-v0", "m", {"name": "C2", "order": 2}, (FAILED,), 0.01, 0)
    assert with_baseline(result, None) is result
    with pytest.raises(OptionError):
        read_baseline("nowhere.toml")
