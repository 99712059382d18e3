"""What the pages show is what happens: their files, their Python and their commands, in order."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import pages

ROOT = Path(__file__).parents[2]
RUN = sorted(
    page.relative_to(ROOT).as_posix()
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    if "_generated" not in page.parts
    and any(block.language in ("python", "console") for block in pages.blocks(page.read_text()))
)


# Pages about faults verify robots several times each; they are checked with the planted faults, in the slow tier.
PAGES = [pytest.param(page, marks=pytest.mark.slow if page.startswith("docs/findings/") else ()) for page in RUN]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_does_what_it_says(page, tmp_path):
    assert pages.run_page(ROOT / page, tmp_path) == []


def test_a_page_that_shows_what_is_not_printed_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```console\n$ echo one\ntwo\n$ false\n$ echo 3 s\n4 s\n```\n")
    (tmp_path / "run").mkdir()
    wrong = pages.run_page(page, tmp_path / "run")
    assert ["did not print 'two'" in wrong[0], "ended with 1, not 0" in wrong[1], len(wrong)] == [True, True, 2]


@pytest.mark.parametrize(
    ("shown", "printed", "first_wrong"),
    [
        (["a", "[...]", "c"], ["a", "b", "c"], None),
        (["a", "[...]"], ["a", "b", "c"], None),
        (["a"], ["a", "b"], "(the page leaves out: b)"),
        (["[...]", "d"], ["a", "b"], "d"),
        (["took 5 ms"], ["took 17 ms"], None),
    ],
)
def test_output_is_compared_line_by_line(shown, printed, first_wrong):
    assert pages.agrees(shown, printed) == first_wrong


@pytest.mark.parametrize(
    ("shown", "printed", "now"),
    [
        (["a 1"], ["a 2", "b"], ["a 2", "b"]),
        (["[...]", "b 1", "c 1", "[...]"], ["a", "b", "b 2.5", "c 3", "d"], ["[...]", "b 2.5", "c 3", "[...]"]),
        (["a 1", "[...]", "d 1e-05"], ["a 2", "b", "d 3"], ["a 2", "[...]", "d 3"]),
        (["[...]"], ["a"], ["[...]"]),
    ],
)
def test_what_a_page_elides_stays_elided_when_its_numbers_are_renewed(shown, printed, now):
    assert pages.renewed(shown, printed) == now
