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


def _tier(page):
    """Pages about faults verify robots several times each; they are checked with the planted faults."""
    return pytest.mark.slow if page.startswith("docs/findings/") else pytest.mark.long


PAGES = [pytest.param(page, marks=_tier(page)) for page in RUN]


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


CERTIFICATE = "proved     output  2,000 checks, no violation; largest residual 4.9e-16 (tolerance 1.0e-12)"
VIOLATION = "  residual  3.9e-01 in observation[1] (max norm), tolerance 5.6e-06"


@pytest.mark.parametrize("residual", ["4.9e-16", "9.2e-17", "3e-15"])
def test_rounding_that_another_processor_leaves_is_no_difference(residual):
    assert pages.agrees([CERTIFICATE], [CERTIFICATE.replace("4.9e-16", residual)]) is None
    assert pages.agrees(["[...]", CERTIFICATE], ["above", CERTIFICATE.replace("4.9e-16", residual)]) is None


@pytest.mark.parametrize("now", ["0.11174202", "0.111741998", "0.1117420"])
def test_the_last_places_of_a_float32_value_are_no_difference(now):
    line = "  measured  [0, 0.111742005, 1]"
    assert pages.agrees([line], [line.replace("0.111742005", now)]) is None


@pytest.mark.parametrize(
    ("line", "now", "before"),
    [
        # a residual of another size, one where there was none, none where there was one, one above its tolerance
        (CERTIFICATE, "6.9e-15", "4.9e-16"),
        (CERTIFICATE, "4.8e-17", "4.9e-16"),
        (CERTIFICATE, "0", "4.9e-16"),
        (CERTIFICATE.replace("4.9e-16", "0"), "1.1e-16", "0 ("),
        (CERTIFICATE.replace("4.9e-16", "9e-13"), "1.1e-12", "9e-13"),
        # a violation is no rounding: its digits, its tolerance and its place are compared
        (VIOLATION, "3.8e-01", "3.9e-01"),
        (VIOLATION, "3.9e-07", "3.9e-01"),
        (VIOLATION, "5.7e-06", "5.6e-06"),
        (VIOLATION, "observation[2]", "observation[1]"),
        # a verdict, a count, a word, a tolerance
        (CERTIFICATE, "passed", "proved"),
        (CERTIFICATE, "2,001", "2,000"),
        (CERTIFICATE, "1 violation", "no violation"),
        (CERTIFICATE, "largest difference", "largest residual"),
        (CERTIFICATE, "1.0e-11", "1.0e-12"),
        ("residual 6.4e-12 in the dynamics", "6.5e-12", "6.4e-12"),
        # values of float32 beyond its last places, their sign, and numbers that are no such values
        ("  measured  0.111742005", "0.111742105", "0.111742005"),
        ("  measured  0.111742005", "-0.111742005", "0.111742005"),
        ("  about 0.11174", "0.11175", "0.11174"),
        ("  of 98,000,000 states", "98,000,001", "98,000,000"),
    ],
)
def test_everything_but_the_digits_of_rounding_is_a_difference(line, now, before):
    changed = line.replace(before, now + before[len(before.rstrip(" (")) :])
    assert changed != line
    assert pages.agrees([line], [changed]) == line
    assert pages.agrees([changed], [line]) == changed


def test_a_line_beside_an_elision_must_have_a_residual_of_the_size_shown():
    printed = [CERTIFICATE.replace("4.9e-16", "4.9e-14"), "below"]
    assert pages.agrees(["[...]", CERTIFICATE, "[...]"], printed) == CERTIFICATE


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


def test_signs_of_life_on_a_busy_machine_are_no_difference(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```console\n$ echo 'symcheck: still running: 3 of 9'; echo one\none\n```\n")
    assert pages.run_page(page, tmp_path) == []
