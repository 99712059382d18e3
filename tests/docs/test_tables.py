"""A row of a table is one line: a page whose rows are wrapped shows no table."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [*ROOT.glob("*.md"), *(page for page in (ROOT / "docs").rglob("*.md") if "_generated" not in page.parts)]


def wrapped_rows(text: str) -> list[str]:
    """Lines that begin a row and do not end it."""
    return re.findall(r"^\|.*[^|\s]\s*$", text, re.MULTILINE)


def test_no_row_of_a_table_is_wrapped() -> None:
    assert {page.name: rows for page in PAGES if (rows := wrapped_rows(page.read_text()))} == {}


def test_a_wrapped_row_is_found_and_a_whole_one_is_not() -> None:
    assert wrapped_rows("| a | b |\n|---|---|\n| 1 | a long\ntext |\n") == ["| 1 | a long"]
    assert wrapped_rows("| a | b |\n|---|---|\n| 1 | text |\n") == []
