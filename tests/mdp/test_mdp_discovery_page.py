"""Discovery on a table shows the orbits, and says that it is complete where it is."""

from __future__ import annotations

import symcheck as sc


def test_the_page_of_a_table_shows_its_orbits() -> None:
    found = sc.discover("FrozenLake-v1", env_kwargs={"desc": ["SFF", "FFF", "FFG"]})
    page = found.to_html()
    assert "Original and abstract" in page
    assert page.count("<svg") == 2
    assert "The table was searched completely" in page
    assert "orbits" not in found.to_dict()


def test_a_claim_smaller_than_the_group_of_values_is_not_called_complete() -> None:
    page = sc.discover("FrozenLake-v1", env_kwargs={"desc": ["SFHF", "FFFF", "HFFF", "FFFG"]}).to_html()
    assert "The table was searched completely" not in page


def test_a_table_without_symmetry_has_no_orbits_to_show() -> None:
    assert "Original and abstract" not in sc.discover("FrozenLake-v1").to_html()
