"""Mirrors of Gymnasium's own robots: layouts, known faults of their models, and the engine's verdict on them."""

import gymnasium as gym
import numpy as np
import pytest

pytest.importorskip("mujoco")

import symcheck as sc
from symcheck.envs.state_access.access import find_state_access
from symcheck.mujoco import mirror, mirrors, turn

SYMMETRIC = [
    ("Ant-v5", "xz"),
    ("Ant-v5", "yz"),
    ("HalfCheetah-v5", "xz"),
    ("Hopper-v5", "xz"),
    ("Reacher-v5", "xz"),
    ("Swimmer-v5", "xz"),
    ("Walker2d-v5", "xz"),
]


@pytest.mark.parametrize(("env_id", "plane"), SYMMETRIC)
def test_a_symmetric_model_has_no_differences(env_id, plane):
    assert mirror(env_id, plane).findings() == f"No parameter of the model breaks the mirror in the {plane} plane."


@pytest.mark.parametrize(
    ("env_id", "plane", "faults"),
    [
        ("Humanoid-v5", "xz", {"armature of joint 'left_hip_y'", "stiffness of joint 'left_knee'"}),
        (
            "HumanoidStandup-v5",
            "xz",
            {"armature of joint 'left_hip_y'", "range of joint 'left_hip_y'", "stiffness of joint 'left_knee'"},
        ),
        ("InvertedDoublePendulum-v5", "yz", {"gravity of the world"}),
        (
            "InvertedPendulum-v5",
            "yz",
            {
                "centre of mass of body 'pole'",
                "inertia of body 'pole'",
                "position of geom 'cpole'",
                "axis of geom 'cpole'",
            },
        ),
    ],
)
def test_faults_of_published_models_are_named(env_id, plane, faults):
    assert {str(found).split(": ")[0] for found in mirror(env_id, plane).differences} == faults


@pytest.mark.parametrize(("env_id", "plane"), [*SYMMETRIC, ("Humanoid-v5", "xz"), ("InvertedDoublePendulum-v5", "yz")])
def test_the_layout_of_the_observation_is_the_environments(env_id, plane):
    """The observation of an image state, read without a step, is the image of the observation."""
    env = gym.make(env_id).unwrapped
    symmetry = mirror(env, plane)
    access, rng = find_state_access(env), np.random.default_rng(0)
    env.reset(seed=0)
    env.action_space.seed(0)
    for _ in range(3):
        for _ in range(5):
            env.step(env.action_space.sample())
        state = access.get(env) + np.concatenate([np.zeros(env.model.nq), 0.1 * rng.standard_normal(env.model.nv)])
        shown = []
        for one in (state, symmetry.state[0].apply(state)):
            access.set(env, one)
            shown.append(np.array(env._get_obs(), dtype=float))
        # Broken models differ where their inertia does; positions and velocities must agree in all of them.
        parts = slice(0, 45) if env_id.startswith("Humanoid") else slice(None)
        # The chain of bodies rounds about 1e-15 a link; external forces are of order 1.
        assert symmetry.observation[0].apply(shown[0])[parts] == pytest.approx(shown[1][parts], abs=1e-9)


@pytest.mark.long
def test_the_engine_confirms_a_derived_mirror_and_refutes_a_broken_one():
    assert sc.verify_env("Ant-v5", mirror("Ant-v5"), samples=100).verdict == "passed"
    assert sc.verify_env("Walker2d-v5", mirror("Walker2d-v5"), samples=200).verdict == "passed"
    report = sc.verify_env("InvertedPendulum-v5", mirror("InvertedPendulum-v5", "yz"), samples=200)
    assert report.verdict == "failed"


@pytest.mark.long
def test_the_ant_turns_by_quarters_but_its_reward_looks_one_way():
    quarter = turn("Ant-v5", 4)
    assert quarter.model_is_symmetric
    report = sc.verify_env("Ant-v5", quarter, samples=100)
    failed = [one.name for one in report.results[0].properties if one.verdict == "failed"]
    assert "reward_invariance" in failed
    assert "transition_invariance" not in failed


def test_every_plane_is_tried_and_refusals_say_why():
    found = mirrors("Hopper-v5")
    assert found["xz"].model_is_symmetric
    assert "body 'foot'" in found["yz"]
