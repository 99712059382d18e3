"""The page and the terminal of a search: what was found is no stronger than what was verified."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Callable

import pytest
from rich.console import Console

from symcheck_reports.discovery_model import DiscoveryCandidate, DiscoveryModel, DiscoveryRotation
from symcheck_reports.discovery_page import MOST_ALIKE, render_discovery
from symcheck_reports.discovery_page import SHOWN as SHOWN_ON_PAGES
from symcheck_reports.discovery_terminal import SHOWN, print_discovery
from symcheck_reports.discovery_words import budget_sentence, found_sentence


@pytest.fixture
def model() -> DiscoveryModel:
    """A search that found one mirror, refused another map and met a rotation."""
    candidates = [
        DiscoveryCandidate("(o0, o1) -> (-o0, -o1)", "0 <-> 1", 2, "passed", "checked on 500 rewards", 0.0),
        DiscoveryCandidate(
            "(o0, o1) -> (o0, -o1)", "unchanged", 2, "failed", "reward_invariance fails: a difference of 1", 0.02
        ),
    ]
    rotation = DiscoveryRotation("(state[0], state[1]) turns", 1e-7, 0.5, 90.0, "failed", "reward_invariance fails")
    return DiscoveryModel(
        target="Mine-v0",
        verdict="passed",
        group="C2",
        order=2,
        spec='name = "Mine-v0 C2"\ngroup = "cyclic(2)"\n',
        narrowing=(
            ("16", "maps"),
            ("2", "compatible with the structure of the dynamics"),
            ("2", "verified on fresh samples"),
        ),
        how="determinism check passed",
        candidates=candidates,
        rotations=[rotation],
        remarks=["coordinates that never changed in the visited states were left fixed: state[3]"],
        names=["state[0]", "state[1]", "action[0]"],
        effects=[[0.0, 1.0, 0.0], [-0.5, 0.0, 1.0]],
        alpha=0.01,
        level=0.01 / 3,
        duration_s=0.5,
        command="symcheck discover Mine-v0",
    )


def text_of(model: DiscoveryModel) -> str:
    stream = io.StringIO()
    print_discovery(model, Console(file=stream, width=100, no_color=True, highlight=False))
    return stream.getvalue()


def test_the_page_is_as_agreed(model: DiscoveryModel, gold: Callable[[str, str], None]) -> None:
    gold("discovery.html", render_discovery(model))


def test_the_terminal_is_as_agreed(model: DiscoveryModel, gold: Callable[[str, str], None]) -> None:
    gold("discovery.txt", text_of(model))


def test_a_rotation_is_called_no_claim_on_the_page(model: DiscoveryModel) -> None:
    assert "Continuous symmetries, not claimed" in render_discovery(model)
    assert "candidates, not claims" in render_discovery(model)


def test_what_is_open_is_not_called_absent(model: DiscoveryModel) -> None:
    nothing = dataclasses.replace(model, group="C1", order=1, spec="", verdict="undecided")
    assert "some candidates are undecided or untried" in found_sentence(nothing)
    stopped = dataclasses.replace(nothing, interrupted=True)
    assert "interrupted before a symmetry was verified" in found_sentence(stopped)


def test_a_proof_is_called_one_only_where_the_verdict_is(model: DiscoveryModel) -> None:
    assert "proved" not in found_sentence(model)
    assert found_sentence(dataclasses.replace(model, verdict="proved")).endswith("proved.")


def test_the_share_of_each_verification_stands_beside_the_whole_budget(model: DiscoveryModel) -> None:
    assert budget_sentence(model) == "alpha 0.01 for the group as a whole, 0.0033 for each candidate screened"


def test_a_long_list_of_refusals_is_counted_on_the_terminal(model: DiscoveryModel) -> None:
    many = dataclasses.replace(model, candidates=[model.candidates[1]] * (SHOWN + 5))
    text = text_of(many)
    assert text.count("\nfailed ") == SHOWN
    assert "5 more candidates rejected" in text


def test_candidates_that_a_page_leaves_out_are_counted_with_those_that_they_stand_for(model: DiscoveryModel) -> None:
    failed = model.candidates[1]
    alike = [dataclasses.replace(failed, kind="turned down")] * (MOST_ALIKE + 1)
    many = dataclasses.replace(model, candidates=[*[failed] * SHOWN_ON_PAGES, failed, *alike])
    page = render_discovery(many)
    assert f"{len(many.candidates) - SHOWN_ON_PAGES} more were rejected" in page
