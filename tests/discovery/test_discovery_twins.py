"""Worlds whose twins break a part of the symmetry slightly: the known group is found, and nothing larger is printed."""

import pytest
from worlds_with_broken_twins import BROKEN_TWINS, GoalDrawnAgain
from worlds_with_known_groups import known_order

import symcheck as sc
from symcheck.discovery.laboratory import Laboratory
from symcheck.discovery.options import DiscoverOptions
from symcheck.discovery.structure import effects_at


def test_the_noise_of_a_step_is_measured_where_effects_are():
    """A goal is drawn again where it is reached, at the centre; elsewhere steps repeat."""
    lab = Laboratory(GoalDrawnAgain, "a goal drawn again", DiscoverOptions())
    assert lab.kind == "stochastic"
    drawn = lab.noise_at(lab.states[0] * 0.0)
    assert (drawn[:2] == 0).all()
    assert (drawn[2:] > 0.02).all()
    structure = effects_at(lab, lab.states[0] * 0.0)
    # What the probes of the goal seem to do is chance, and below the threshold.
    assert (abs(structure.table[4:]) <= structure.floor[4:, None]).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", BROKEN_TWINS)
def test_the_known_group_is_found_and_nothing_larger(name):
    result = sc.discover(BROKEN_TWINS[name], samples=2_000).result
    known = known_order(BROKEN_TWINS[name]())
    assert result.group["order"] == known or (result.group["order"] < known and not result.complete)
