"""`symcheck explain`: every code of a report is explained, in the sentence that reports say."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from symcheck import findings
from symcheck.cli import main
from symcheck.errors import OptionError
from symcheck.statements.statement import free, state
from symcheck_reports import words

ROOT = Path(__file__).parents[2]


def run(*arguments):
    result = CliRunner().invoke(main.app, ["explain", *arguments])
    return result.exit_code, result.output


def test_a_cause_without_a_code_is_shown_as_it_is():
    assert words.causes_lettered([free("the moon was full"), state("SYM014", sign="-1", coordinate="theta")]) == [
        "(a) the moon was full",
        "(b) [SYM014] the claim holds with sign -1 on theta",
    ]


@pytest.mark.parametrize("finding", findings.findings().values(), ids=lambda f: f.code)
def test_every_finding_says_what_it_means_what_causes_it_and_what_helps(finding):
    assert re.fullmatch(r"SYM\d{3}", finding.code)
    assert 10 < len(finding.title) <= 80
    assert finding.meaning.endswith(".")
    assert finding.causes
    assert finding.remedies
    code, output = run(finding.code)
    assert code == 0
    assert finding.title in output
    assert f"Reports say: {finding.sentence}" in " ".join(output.split())
    assert all(line == line.rstrip() and len(line) <= 100 for line in output.splitlines())


@pytest.mark.parametrize(
    "finding", [*findings.findings("reasons").values(), *findings.findings("notes").values()], ids=lambda f: f.code
)
def test_reasons_and_notes_are_explained_by_their_sentence(finding):
    code, output = run(finding.code)
    assert code == 0
    flat = " ".join(output.split())
    assert flat.startswith(f"{finding.code} {finding.sentence}")
    assert finding.meaning in flat


def test_a_reason_is_explained_with_the_names_of_its_fields():
    assert run("nan_only") == (
        0,
        "nan_only  every <quantity> was <value> on both sides, so nothing could be compared\n\n"
        "A reason: why a verdict is not a plain pass or failure.\n",
    )


def test_without_a_code_all_are_listed():
    code, output = run()
    assert code == 0
    lines = output.splitlines()
    listed = [line.split(maxsplit=1)[0] for line in lines if line and line not in ("Reasons:", "Notes:")]
    assert listed == [code for kind in ("causes", "reasons", "notes") for code in findings.findings(kind)]
    assert all(line == line.rstrip() and len(line) <= 100 for line in lines)


@pytest.mark.parametrize("written", ["SYM014", "sym14", "14", " SYM014 "])
def test_codes_may_be_written_short(written):
    assert findings.explain(written).code == "SYM014"


@pytest.mark.parametrize("written", ["nan_only", "nan-only", "NAN_ONLY"])
def test_reasons_may_be_written_as_options_are(written):
    assert findings.explain(written).code == "nan_only"


@pytest.mark.parametrize("written", ["SYM999", "SYM", "stride", ""])
def test_an_unknown_code_exits_2_with_a_suggestion(written):
    code, output = run(written)
    assert code == 2
    assert "no finding has the code" in output
    assert "symcheck explain" in output
    with pytest.raises(OptionError):
        findings.explain(written)


def test_words_find_the_same_codes_quoted_or_not():
    code, output = run("hidden state")
    assert code == 0
    assert "hidden_state" in output
    assert (code, output) == run("hidden", "state")


def test_a_failed_run_shows_codes_that_can_be_explained():
    result = CliRunner().invoke(
        main.app,
        ["verify-net", str(ROOT / "examples" / "cartpole_networks.py:mlp"), "--symmetry", "cartpole/mirror"],
    )
    assert result.exit_code == 1
    codes = re.findall(r"\[(SYM\d{3})\]", result.output)
    assert codes
    assert all(code in findings.findings() for code in codes)
