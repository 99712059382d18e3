"""The value gap of an environment whose samples never end is not taken for that of one that cannot end."""

from __future__ import annotations

from symcheck import verify_env


def test_equal_rewards_without_an_end_seen_do_not_make_a_broken_transition_free() -> None:
    report = verify_env("MountainCar-v0", "mountaincar/valley", samples=200, accept_gap=0.0)
    transition = report["transition_invariance"]
    assert report["termination_invariance"].verdict == "passed"  # too few samples to meet the goal
    assert transition.verdict == "failed"
    assert transition.bound is not None
    assert 99 < transition.bound["value"] <= 100.1  # -1 a step for ever, at discount 0.99
