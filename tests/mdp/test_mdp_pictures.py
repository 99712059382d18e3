"""Homomorphisms that show themselves: as a file, in a notebook, with what was measured on them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from symcheck.errors import SymcheckError
from symcheck.mdp import pictures
from symcheck.mdp.tabular import TabularMDP
from symcheck.mdp.worlds import torus_chase


def test_orbits_of_the_grid_world_are_saved_as_a_page(tmp_path: Path) -> None:
    path = torus_chase().automorphism_group().homomorphism().save_html(tmp_path / "orbits.html", target="torus chase")
    page = path.read_text(encoding="utf-8")
    assert "torus chase: 49 states become 10." in page
    assert "D4, order 8" in page
    assert [p.name for p in tmp_path.iterdir()] == ["orbits.html"]


def test_a_notebook_shows_the_page_in_a_frame() -> None:
    assert torus_chase(3).minimal_homomorphism()._repr_html_().startswith("<iframe")


def test_the_model_says_what_the_homomorphism_is() -> None:
    h = torus_chase().minimal_homomorphism()
    model = pictures.model(h)
    assert list(model.block) == h.state_map.tolist()
    assert (model.pairs, model.abstract_pairs) == (245, int(h.abstract_mdp.available.sum()))
    assert model.values is not None
    assert model.values[-1] == pytest.approx(max(model.values))
    for matching in model.matchings:
        for state, actions in zip(matching.states, matching.actions, strict=True):
            assert sorted(a for group in actions for a in group) == list(range(5))
            for abstract, originals in enumerate(actions):
                assert (h.action_map[state][originals] == abstract).all()


def test_transitions_are_drawn_with_their_largest_probability() -> None:
    law = np.zeros((2, 2, 2))
    law[0, 0, [0, 1]] = [0.75, 0.25]
    law[0, 1, [0, 1]] = [0.5, 0.5]
    law[1, :, 1] = 1.0
    model = pictures.model(TabularMDP(law, [[0.0, 1.0], [5.0, 5.0]], 0.9).minimal_homomorphism())
    assert list(model.edges) == [(0, 1, 0.5)]


def test_an_approximate_homomorphism_shows_its_bound() -> None:
    law = np.ones((2, 1, 2)) / 2
    h = TabularMDP(law, [[0.0], [0.01]], 0.9).minimal_homomorphism(tolerance=0.02)
    assert pictures.model(h).loss_bound == pytest.approx(2 * 0.005 / 0.1)


def test_a_folder_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SymcheckError, match=r"folder .*none does not exist\. Create the folder first: mkdir -p .*none"):
        torus_chase(3).minimal_homomorphism().save_html(tmp_path / "none" / "page.html")
