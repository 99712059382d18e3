"""What `verify-env` says about the games."""

import gymnasium as gym
import pytest

import symcheck as sc
from symcheck.envs import atlas
from symcheck.wrappers.random_symmetry import RandomSymmetry


def properties(report: sc.Report) -> dict:
    return {item["name"]: item for item in report.to_dict()["properties"]}


@pytest.mark.long
def test_pongs_state_beside_its_reflection_names_the_opponent():
    report = sc.verify_env("symcheck/PongObjects-v0", atlas.entry("pong/objects").symmetry(), samples=300)
    found = properties(report)
    assert report.verdict == "failed"
    assert found["transition_invariance"]["method"] == "paired"
    assert found["transition_invariance"]["verdict"] == "failed"
    assert "observation['opponent'][0]" in found["transition_invariance"]["counterexample"]["where"]
    assert found["reward_invariance"]["verdict"] == found["termination_invariance"]["verdict"] == "passed"


@pytest.mark.slow
@pytest.mark.parametrize("env_id", ["symcheck/Pong-v0", "symcheck/Breakout-v0"])
def test_a_plain_game_of_images_fails_in_its_start(env_id: str):
    (entry,) = atlas.entries_for(env_id)
    found = properties(sc.verify_env(env_id, entry.symmetry()))
    assert not entry.claim
    assert found["initial_invariance"]["verdict"] == "failed"
    assert found["termination_invariance"]["method"] == "trajectory"


@pytest.mark.slow
@pytest.mark.parametrize(
    "env_id",
    ["symcheck/SymmetrizedPong-v0", "symcheck/SymmetrizedBreakout-v0", "symcheck/SymmetrizedPongObjects-v0"],
)
@pytest.mark.parametrize("seed", [0, 1])
def test_a_symmetrised_game_passes_by_trajectory(env_id: str, seed: int):
    (entry,) = atlas.entries_for(env_id)
    report = sc.verify_env(env_id, entry.symmetry(), samples=2_000, seed=seed)
    assert entry.claim
    assert report.verdict == "passed"
    assert properties(report)["transition_invariance"]["method"] == "trajectory"


@pytest.mark.slow
def test_the_wrapper_of_any_environment_makes_pong_symmetric_too():
    symmetry = atlas.entry("pong/flip").symmetry()
    report = sc.verify_env(lambda: RandomSymmetry(gym.make("symcheck/Pong-v0"), symmetry), symmetry)
    assert report.verdict == "passed"
