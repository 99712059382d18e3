"""The page of a homomorphism: every state in its block's colour, one state of each block beside."""

from __future__ import annotations

import dataclasses
import xml.etree.ElementTree as ET
from collections.abc import Callable

import pytest

from symcheck_reports import homomorphism_drawing
from symcheck_reports.homomorphism_drawing import draw
from symcheck_reports.homomorphism_model import HomomorphismModel
from symcheck_reports.homomorphism_page import render_homomorphism


def _parts(drawing: str, tag: str, class_: str) -> list[ET.Element]:
    return [part for part in ET.fromstring(drawing).iter(tag) if part.attrib.get("class", "").startswith(class_)]


def test_states_of_one_block_share_a_path_and_a_number(homomorphism_model: HomomorphismModel) -> None:
    drawn = draw(homomorphism_model)
    assert drawn is not None
    cells = [path.attrib["d"] for path in _parts(drawn.original, "path", "bar")]
    assert sorted(d.count("M") for d in cells) == [1, 1, 2]
    assert [text.text for text in _parts(drawn.original, "text", "mid")] == ["0", "1", "1", "2"]


def test_the_abstract_map_keeps_one_state_of_each_block(homomorphism_model: HomomorphismModel) -> None:
    drawn = draw(homomorphism_model)
    assert drawn is not None
    assert [d.attrib["d"].count("M") for d in _parts(drawn.abstract, "path", "bar")] == [1, 1, 1]
    assert [text.text for text in _parts(drawn.abstract, "text", "mid")] == ["0", "1", "2"]


def test_likely_transitions_are_thick_and_unlikely_ones_thin(homomorphism_model: HomomorphismModel) -> None:
    drawn = draw(homomorphism_model)
    assert drawn is not None
    lines = {path.attrib["class"]: path.attrib["d"] for path in _parts(drawn.abstract, "path", "axis")}
    assert lines["axis stem"] == "M20 20L60 20"
    assert lines["axis"] == "M60 20L60 60"


def test_states_that_nobody_acts_in_are_crossed_out_and_explained(homomorphism_model: HomomorphismModel) -> None:
    drawn = draw(homomorphism_model)
    assert drawn is not None
    crosses = [path.attrib["d"] for path in _parts(drawn.original, "path", "grid") if "l40 40" in path.attrib["d"]]
    assert len(crosses) == 1
    assert "crossed out" in drawn.caption
    busy = draw(dataclasses.replace(homomorphism_model, idle=[False] * 4))
    assert busy is not None
    assert "crossed out" not in busy.caption


def test_few_states_without_a_place_are_a_graph(homomorphism_graph: HomomorphismModel) -> None:
    drawn = draw(homomorphism_graph)
    assert drawn is not None
    assert len(_parts(drawn.original, "circle", "bar")) == 4
    assert len(_parts(drawn.abstract, "circle", "bar")) == 3
    assert sum(path.attrib["d"].count("M") for path in _parts(drawn.original, "path", "axis")) == 3


def test_many_states_without_a_place_are_rows_by_number(homomorphism_graph: HomomorphismModel) -> None:
    drawn = draw(
        dataclasses.replace(homomorphism_graph, block=[s % 3 for s in range(60)], idle=[False] * 60, state_edges=())
    )
    assert drawn is not None
    assert "in rows by number" in drawn.caption
    assert not _parts(drawn.original, "circle", "bar")


def test_numbers_too_small_to_read_are_left_out_and_not_promised(homomorphism_graph: HomomorphismModel) -> None:
    states = homomorphism_drawing._MOST_LABELS + 1
    drawn = draw(
        dataclasses.replace(homomorphism_graph, block=[0] * states, idle=[False] * states, edges=(), state_edges=())
    )
    assert drawn is not None
    assert not _parts(drawn.original, "text", "mid")
    assert "number and" not in drawn.caption
    assert "Lines" not in drawn.abstract_caption


def test_too_many_states_are_not_drawn_and_the_page_says_so(homomorphism_graph: HomomorphismModel) -> None:
    states = homomorphism_drawing.MOST_DRAWN + 1
    huge = dataclasses.replace(
        homomorphism_graph, block=list(range(states)), idle=[False] * states, values=None, matchings=()
    )
    assert draw(huge) is None
    page = render_homomorphism(huge)
    assert "More than 10,000 states are not drawn" in page
    assert "9,801 more blocks are not listed." in page
    assert len(page) < 100_000


def test_the_sentence_says_what_became_of_the_states(homomorphism_model: HomomorphismModel) -> None:
    page = render_homomorphism(homomorphism_model)
    assert "2 x 2 map: 4 states become 3." in page
    assert "Exact: states of one block have the same rewards" in page
    assert "C2, order 2" in page


def test_an_approximate_one_says_by_how_much_and_at_what_cost(homomorphism_model: HomomorphismModel) -> None:
    rough = dataclasses.replace(
        homomorphism_model, exact=False, reward_error=0.01, transition_error=0.25, loss_bound=1.5
    )
    page = render_homomorphism(rough)
    assert "rewards deviate from their mean by up to 0.01 and distributions by up to 0.25 (L1)." in page
    assert "The lifted policy loses at most 1.5." in page
    assert "loses at most" not in render_homomorphism(dataclasses.replace(rough, loss_bound=None))


def test_actions_are_matched_state_by_state(homomorphism_model: HomomorphismModel) -> None:
    page = render_homomorphism(homomorphism_model)
    assert "Block 1" in page
    assert "How actions are matched" not in render_homomorphism(dataclasses.replace(homomorphism_model, matchings=()))


def test_names_of_states_cannot_inject_markup(homomorphism_graph: HomomorphismModel) -> None:
    page = render_homomorphism(
        dataclasses.replace(homomorphism_graph, labels=["<script>alert(1)</script>", "b", "c", "d"])
    )
    assert "<script>alert" not in page


def test_no_state_is_an_error(homomorphism_model: HomomorphismModel) -> None:
    with pytest.raises(ValueError, match="at least one state"):
        render_homomorphism(dataclasses.replace(homomorphism_model, block=[]))


def test_the_page_is_as_agreed(homomorphism_model: HomomorphismModel, gold: Callable[[str, str], None]) -> None:
    gold("homomorphism.html", render_homomorphism(homomorphism_model))
