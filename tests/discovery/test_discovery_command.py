"""`symcheck discover` as a user types it, and what it writes."""

import dataclasses
import io
import json
import re
import shutil
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

import symcheck as sc
from symcheck.cli.main import app
from symcheck_reports.discovery_model import DiscoveryCandidate, DiscoveryModel
from symcheck_reports.discovery_page import render_discovery
from symcheck_reports.discovery_terminal import print_discovery
from symcheck_reports.discovery_words import gather, left_out, more_of_a_kind

WORLDS = Path(__file__).parent / "worlds_to_search.py"


def run(*words) -> tuple[int, str]:
    result = CliRunner().invoke(app, [str(word) for word in words])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output


def test_the_spec_file_that_is_written_passes_verify_env(folder):
    code, output = run(
        "discover", "CartPole-v1", "--samples", 500, "--out", "s.toml", "--html", "p.html", "--json", "r.json"
    )
    assert code == 0, output
    assert "C2 (order 2) found and verified" in output
    # What the evidence excludes comes with the claim, before the candidates.
    assert 0 < output.index("of cases could violate the claim (99% confidence)") < output.index("(o0, o1, o2, o3) ->")
    code, output = run("verify-env", "CartPole-v1", "--symmetry", "s.toml", "--samples", 500, "--quiet")
    assert (code, output.strip()) == (0, "passed")
    written = json.loads((folder / "r.json").read_text())
    assert written["schema"] == "symcheck/2"
    assert written["kind"] == "discovery"
    assert written["report"]["verdict"] == "passed"
    page = (folder / "p.html").read_text()
    assert "C2 (order 2) found and verified" in page
    # The whole sentence: cut in the middle it would lose "at most".
    assert re.search(
        r"termination_invariance: at most [\d.]+% of cases could violate the claim \(99% confidence\)", page
    )


def test_nothing_found_exits_1_and_writes_no_spec(folder):
    code, output = run("discover", "MountainCar-v0", "--samples", 1000, "--out", "s.toml")
    assert code == 1, output
    assert "no symmetry of the forms searched holds" in output
    assert not (folder / "s.toml").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["CartPol-v1"], "Did you mean 'CartPole-v1'"),
        (["CartPole-v1", "--alpha", 2], "--alpha: expected a probability"),
        (["CartPole-v1", "--env-kwargs", "no"], "--env-kwargs: expected a JSON object"),
        (["CartPole-v1", "--out", "missing/s.toml"], "because the folder missing does not exist"),
        (["worlds_to_search.py:ManyActions"], "values of all action components together, but there are 72"),
    ],
)
def test_what_cannot_be_searched_exits_2_with_one_message(folder, words, said):
    shutil.copy(WORLDS, folder)
    code, output = run("discover", *words)
    assert code == 2
    assert said in output
    assert "Traceback" not in output


def test_a_file_with_a_factory_is_searched(folder):
    shutil.copy(WORLDS, folder)
    code, output = run("discover", "worlds_to_search.py:plane", "--samples", 300, "--quiet")
    assert (code, output.strip()) == (0, "D4")


def test_what_was_found_shows_itself_in_python():
    found = sc.discover("CartPole-v1", samples=300)
    assert found.symmetry.group.order == 2
    assert "found and verified" in found.to_text()
    assert "<iframe" in found._repr_html_()
    with pytest.raises(sc.errors.SymcheckError, match="no verified symmetry of FrozenLake-v1"):
        sc.discover("FrozenLake-v1").save_spec("nowhere.toml")


def _model(**changes) -> DiscoveryModel:
    tried = DiscoveryCandidate("(o0) -> (-o0)", "0 <-> 1", 2, "failed", "reward_invariance fails: <b>off</b>", 0.01)
    values = {
        "target": "X-v0",
        "verdict": "failed",
        "group": "C1",
        "order": 1,
        "spec": "",
        "narrowing": (("4", "maps"),),
        "how": "",
        "candidates": [tried],
    }
    return DiscoveryModel(**{**values, **changes})


def test_a_page_about_nothing_shows_no_spec_and_no_green_word():
    page = render_discovery(_model())
    assert "no symmetry of the forms searched holds" in page
    assert "ready to use" not in page
    assert 'class="verdict is-passed"' not in page


def test_a_page_escapes_what_others_wrote():
    assert "<b>off</b>" not in render_discovery(_model())


def test_a_page_draws_the_table_that_pruned_the_search():
    page = render_discovery(_model(names=["observation[0]", "action = 0"], effects=[[1.0, -0.5]]))
    assert "which coordinate acts on which" in page
    assert page.count("<svg") == 1


def test_what_a_short_report_leaves_out_is_called_refused_only_where_it_was():
    """A group of order 48 has more accepted elements than a terminal shows."""
    tried = _model().candidates[0]
    follows = dataclasses.replace(tried, verdict="follows", why="a product of accepted maps")
    mixed, refused = _model(candidates=[follows] * 100), _model(candidates=[tried] * 100)
    assert left_out(gather(mixed.candidates, 3)[60:]) == "40 more candidates; --json has them all"
    assert left_out(gather(refused.candidates, 3)[60:]) == "40 more candidates rejected; --json has them all"
    assert left_out(gather(refused.candidates, 3)[100:]) == ""
    assert "40 more were tried; the JSON report has them all" in render_discovery(mixed)
    assert "40 more were rejected; the JSON report has them all" in render_discovery(refused)


def test_refusals_of_one_kind_are_counted_and_the_answer_comes_first():
    tried = _model().candidates[0]
    still = dataclasses.replace(tried, verdict="rejected", why="it changes neither", kind="it changes neither")
    stream = io.StringIO()
    print_discovery(_model(candidates=[still] * 499 + [tried]), Console(file=stream, width=100, color_system=None))
    lines = stream.getvalue().splitlines()
    assert lines[0].startswith("none")
    assert "no symmetry of the forms searched holds" in lines[0]
    assert sum(line.startswith("rejected") for line in lines) == 1
    assert any("and 498 more maps rejected: it changes neither" in line for line in lines)
    assert any(line.startswith("failed") for line in lines)
    assert len(lines) < 20


def test_several_maps_follow_and_one_map_follows():
    product = dataclasses.replace(_model().candidates[0], verdict="follows", kind="a product of accepted maps")
    assert more_of_a_kind(product, 4) == "and 4 more maps follow: a product of accepted maps"
    assert more_of_a_kind(product, 1) == "and 1 more map follows: a product of accepted maps"


def test_a_table_without_symmetry_is_proved_to_have_none(folder):
    code, output = run("discover", "FrozenLake-v1", "--html", "p.html")
    assert code == 1
    assert "FrozenLake-v1: proved to have no symmetry." in output
    page = (folder / "p.html").read_text()
    assert "no permutation of its states is a symmetry" in page
    assert "does not prove" not in page


def test_a_page_with_many_refusals_stays_small():
    tried = _model().candidates[0]
    page = render_discovery(_model(candidates=[tried] * 500))
    assert "440 more were rejected" in page
    assert len(page) < 100_000
