"""When hundreds of suspicious pairs are all rounding, the rest is bounded instead of given up."""

import pytest

from symcheck.engine.environments.methods.second_look import MOST_LOOKED_AT, Suspects


def looked(rounding, unseen, *, confirmed=0, unrepeatable=0):
    return Suspects(list(range(confirmed)), list(range(rounding)), list(range(unrepeatable)), list(range(unseen)))


def test_the_bound_is_the_share_of_suspects_times_what_may_violate_among_them():
    found = looked(600, 400)
    bound = found.largest_violating_fraction(10_000, 0.01)
    # 1,000 suspects of 10,000: at most 10.8% at 99.5%; none of 300 picked: at most 1 - 0.005^(1/300) = 1.75%.
    assert bound == pytest.approx(0.108 * 0.01751, rel=0.01)
    assert bound > looked(600, 100).largest_violating_fraction(10_000, 0.01)


def test_few_looks_or_one_violation_speak_for_nothing():
    assert looked(MOST_LOOKED_AT, 50).representative
    assert not looked(MOST_LOOKED_AT - 1, 50).representative
    assert not looked(MOST_LOOKED_AT, 50, confirmed=1).representative
    assert not looked(MOST_LOOKED_AT, 50, unrepeatable=1).representative


def test_a_bound_where_everything_is_suspicious_is_what_the_looks_say():
    assert looked(600, 400).largest_violating_fraction(1_000, 0.01) == pytest.approx(0.01751, rel=0.01)
