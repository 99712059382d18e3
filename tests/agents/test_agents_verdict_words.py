"""A table says of each network whether it was verified, from the record's data and never from its sentences."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from reference_agents import record
from reference_agents.cli import report, summary
from reference_agents.record import Record, RunRecord, Verification
from reference_agents.verification import DIVERGED, NOT_CLAIMED

OLDER = {
    "proved": {"verdict": "proved", "detail": "network_equivariance: every layer carries the action."},
    "no claim": {"verdict": None, "detail": "makes no claim to be equivariant"},
    "diverged": {"verdict": None, "detail": "diverged, so there is no network to verify"},
    "features proved": {
        "verdict": None,
        "detail": "features proved (exact); the layers after them are unconstrained, so the policy is not equivariant",
    },
    "not verified": {"verdict": None, "detail": ""},
}


def _saved(folder: Path, after: dict[str, object]) -> Record:
    """A record as a training leaves it, with this verification of its one network."""
    nothing = Verification(None, "")
    run = RunRecord(0, 0.001, None, 100, None, None, nothing, nothing)
    blank = {field.name: "" for field in dataclasses.fields(Record)}
    document = blank | {"schema": record.SCHEMA, "channels": [], "runs": [dataclasses.asdict(run) | {"after": after}]}
    del document["curves"]
    (folder / record.RECORD_FILE).write_text(json.dumps(document))
    (folder / record.CURVES_FILE).write_text("learning_rate,seed,env_steps,mean_return\n0.001,0,100,1.0\n")
    return record.load(folder)


@pytest.mark.parametrize("words", OLDER)
def test_records_of_older_versions_are_told_in_the_same_words(words: str, tmp_path: Path) -> None:
    loaded = _saved(tmp_path, OLDER[words])
    assert summary._verdicts([loaded.runs[0].after]) == words


@pytest.mark.parametrize(
    ("verification", "words"),
    [
        (Verification("failed", "why"), "[bold red]failed[/]"),
        (NOT_CLAIMED, "no claim"),
        (DIVERGED, "diverged"),
        (Verification(None, "any words", features="passed"), "features passed"),
        (Verification(None, "features of the name alone"), "not verified"),
    ],
)
def test_what_is_said_of_a_network_survives_being_saved(verification: Verification, words: str, tmp_path: Path) -> None:
    loaded = _saved(tmp_path, dataclasses.asdict(verification)).runs[0].after
    assert loaded == verification
    assert summary._verdicts([loaded]) == words


def test_a_page_is_told_the_verdict_of_features_alone(tmp_path: Path) -> None:
    loaded = _saved(tmp_path, dataclasses.asdict(Verification(None, "any words", features="proved")))
    curves = report._network(loaded, "extractor", 0.001, loaded.curves, chosen=True)
    assert (curves.verdict, curves.features_verdict) == (None, "proved")
