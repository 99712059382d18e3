"""Numbers by class: every number has one, members are near each other, and a class once given stays."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from symcheck.mdp.tabular import TabularMDP
from symcheck.mdp.value_classes import ValueClasses

# Tolerances and numbers as people write them: sums and differences of such decimals round to either side.
HUNDREDTHS = st.integers(0, 300).map(lambda n: n / 100)


@pytest.mark.parametrize("chained", [False, True])
@settings(deadline=None, derandomize=True)
@given(width=st.integers(1, 50).map(lambda n: n / 100), batches=st.lists(st.lists(HUNDREDTHS, min_size=1), min_size=1))
def test_every_number_has_a_class_and_keeps_it(chained: bool, width: float, batches: list[list[float]]) -> None:
    classes = ValueClasses(width, chained=chained)
    known: dict[float, int] = {}
    for batch in batches:
        found = classes.of(np.array(batch)).tolist()
        assert min(found) >= 0
        for value, one in zip(batch, found, strict=True):
            assert known.setdefault(value, one) == one


@settings(deadline=None, derandomize=True)
@given(width=st.integers(1, 50).map(lambda n: n / 100), values=st.lists(HUNDREDTHS, min_size=1))
def test_no_class_is_wider_than_the_tolerance_on_either_side(width: float, values: list[float]) -> None:
    found = ValueClasses(width, chained=False).of(np.array(values))
    for one in np.unique(found):
        members = np.array(values)[found == one]
        assert np.ptp(members) <= 2 * width


def test_rewards_a_tolerance_apart_in_decimals_are_not_thrown_together() -> None:
    """0.9 - 0.7 is a last bit above 0.2: a number that no class takes must not join all others that none takes."""
    rewards = [[0.1], [0.1 + 0.2], [0.7], [0.9]]
    mdp = TabularMDP(np.eye(4)[:, None, :], rewards, 0.5)
    h = mdp.minimal_homomorphism(tolerance=0.2)
    assert h.reward_error <= 0.2
    assert h.state_map[1] != h.state_map[3]
