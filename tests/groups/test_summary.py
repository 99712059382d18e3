"""The table of ranks that a symmetry allows."""

from __future__ import annotations

import numpy as np
import pytest

from symcheck import groups
from symcheck import representations as reps
from symcheck.intertwiners import conv_intertwiner_basis, filter_table, intertwiner_basis, layer_table
from symcheck.intertwiners.basis import KINDS
from symcheck.intertwiners.summary import pictures
from symcheck.representations.representation import Representation

C2, C4 = groups.cyclic(2), groups.cyclic(4)


def test_the_cart_pole_table_says_that_no_value_is_linear_in_the_observation() -> None:
    rows = layer_table(reps.signed_permutation(C2, [[-1] * 4]), reps.permutation(C2, [[1, 0]]))
    table = {row.name: (row.rank, row.dense, row.bias_rank) for row in rows}
    assert table["observation -> value"] == (0, 4, 1)
    assert table["observation -> action"] == (4, 8, 1)
    assert table["hidden -> hidden"] == (2, 4, 1)
    assert rows[-1].sharing == float("inf")
    assert all(row.certificate.kind == "exact" for row in rows)


def test_a_group_too_large_for_its_regular_representation_still_has_direct_layers() -> None:
    S30 = groups.symmetric(30)
    rows = layer_table(reps.natural(S30), reps.natural(S30))
    assert [(row.name, row.rank) for row in rows] == [("observation -> action", 2), ("observation -> value", 1)]


def test_filters_are_tabulated_for_every_size() -> None:
    rows = filter_table(reps.trivial(C4), reps.regular(C4), ["rot90"])
    assert [row.rank for row in rows] == [9, 36, 25, 100, 49, 196]


def test_pictures_lay_filters_out_as_tiles() -> None:
    basis = conv_intertwiner_basis(reps.trivial(C4), reps.regular(C4), 3, spatial=["rot90"])
    shown = pictures(basis, count=4)
    assert len(shown) == 4
    tiles = shown[0].reshape(4, 3, 3)
    assert all(np.array_equal(np.rot90(tiles[k]), tiles[(k + 1) % 4]) for k in range(4))


@pytest.mark.parametrize("rho", [reps.standard(groups.symmetric(4)), reps.regular(C4)], ids=lambda rho: rho.name)
def test_the_largest_entry_of_a_picture_is_one(rho: Representation) -> None:
    for kind in KINDS:
        for shown in pictures(intertwiner_basis(rho, rho, kind=kind)):
            assert np.abs(shown).max() == pytest.approx(1.0)
