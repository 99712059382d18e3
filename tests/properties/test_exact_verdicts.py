"""Finite MDPs: proved by enumeration, or refuted with the distributions of both sides."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import symcheck_properties  # noqa: F401
from symcheck.engine.environments.replay import replay
from symcheck.engine.environments.runner import run_env
from symcheck.engine.options import EnvOptions
from symcheck.engine.results import RunResult
from symcheck.groups import catalog
from symcheck.statements.statement import Statement
from symcheck.symmetry.symmetry import Symmetry

# Frozen lakes count states row by row; actions are left, down, right, up. The transpose exchanges left with up and
# down with right.
TRANSPOSED = [3 * (i % 3) + i // 3 for i in range(9)]
TRANSPOSE = Symmetry("transpose", catalog.cyclic(2), [TRANSPOSED], [[3, 2, 1, 0]])


def lake(desc: list[str], **kwargs: Any) -> gym.Env[Any, Any]:
    return gym.make("FrozenLake-v1", desc=desc, disable_env_checker=True, **kwargs)


def run(desc: list[str], symmetry: Symmetry = TRANSPOSE, **kwargs: Any) -> RunResult:
    return run_env(lambda: lake(desc, **kwargs), symmetry, options=EnvOptions(samples=200), target="lake", command="")


@pytest.mark.parametrize("slippery", [True, False])
def test_a_symmetric_lake_is_proved(slippery: bool) -> None:
    result = run(["SFF", "FHF", "FFG"], is_slippery=slippery)
    assert result.verdict == "proved"
    assert result.method_reason == Statement("method_exact", {"states": 9})
    transition = {one.name: one for one in result.properties}["transition_invariance"]
    assert transition.checked == 7 * 4  # no action is taken in the goal and the hole


def test_a_hole_on_one_side_is_found_with_both_distributions() -> None:
    result = run(["SHF", "FFF", "FFG"])
    verdicts = {one.name: one for one in result.properties}
    assert verdicts["termination_invariance"].verdict == "failed"
    assert verdicts["initial_invariance"].verdict == "proved"
    example = verdicts["termination_invariance"].counterexample
    assert example is not None
    assert sum(probability for _, probability in example.expected) == pytest.approx(1)
    again = replay(
        lambda: lake(["SHF", "FFF", "FFG"]),
        TRANSPOSE,
        "termination_invariance",
        {"group_element": "transpose", "observation": example.observation, "action": example.action},
        EnvOptions(samples=200),
    )
    assert again.verdict == "failed"


def test_a_wrong_action_map_is_corrected() -> None:
    wrong = Symmetry("transpose", catalog.cyclic(2), [TRANSPOSED], [[0, 1, 2, 3]])
    result = run(["SFF", "FHF", "FFG"], wrong)
    causes = {one.name: one.causes for one in result.properties}["transition_invariance"]
    assert causes[0] == Statement("SYM012", {"permutation": [3, 2, 1, 0]})
    assert str(causes[0]) == "with the action map [3, 2, 1, 0] all equations hold"


def test_a_start_on_one_side_is_found_exactly() -> None:
    flip = Symmetry("half turn", catalog.cyclic(2), [[8 - i for i in range(9)]], [[2, 3, 0, 1]])
    result = run(["SFF", "FFF", "FFF"], flip, is_slippery=False)
    verdicts = {one.name: one for one in result.properties}
    assert verdicts["transition_invariance"].verdict == "proved"
    start = verdicts["initial_invariance"]
    assert start.verdict == "failed"
    # The only start, and the state that it would have to share its probability with.
    example = start.counterexample
    assert example is not None
    assert (example.observation, example.image_observation, example.expected, example.actual) == (0, 8, 1.0, 0.0)
    assert [cause.code for cause in start.causes] == ["SYM040"]


def test_a_wrapper_that_changes_the_table_is_not_enumerated() -> None:
    env = lake(["SFF", "FHF", "FFG"])
    wrapped = gym.wrappers.TransformReward(env, lambda r: r + 1)
    result = run_env(lambda: wrapped, TRANSPOSE, options=EnvOptions(samples=200), target="lake", command="")
    assert result.method_reason.code != "method_exact"
    assert np.isin([one.verdict for one in result.properties], ["proved", "passed", "undecided"]).all()
