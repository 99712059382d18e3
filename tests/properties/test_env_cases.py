"""Properties of single cases, called from a user's own Hypothesis tests."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.classic_control.pendulum import PendulumEnv
from hypothesis import HealthCheck, Phase, find, given, settings

from symcheck.envs import atlas
from symcheck.errors import SymcheckError
from symcheck.groups import catalog
from symcheck.symmetry.symmetry import Symmetry
from symcheck_properties.env_cases import EnvCases

QUICK = settings(max_examples=40, database=None, deadline=None, suppress_health_check=list(HealthCheck))
CARTPOLE = EnvCases(lambda: gym.make("CartPole-v1"), atlas.entry("cartpole/mirror").symmetry())
PENDULUM = EnvCases(lambda: gym.make("Pendulum-v1"), atlas.entry("pendulum/mirror").symmetry())


@given(CARTPOLE.cases())
@QUICK
def test_every_case_of_the_mirrored_cart_pole_holds(case: Any) -> None:
    CARTPOLE.check(case)
    assert np.array_equal(case.image.obs, -case.situation.obs)


@given(PENDULUM.cases())
@QUICK
def test_every_case_of_the_mirrored_pendulum_holds_and_shows_its_image(case: Any) -> None:
    assert "observation_equivariance" in PENDULUM.properties
    PENDULUM.check(case)


class Tilted(PendulumEnv):
    """Pays a little for turning one way."""

    def step(self, u: Any) -> Any:
        """Step, and pay."""
        obs, reward, *rest = super().step(u)  # type: ignore[no-untyped-call]
        return obs, float(reward) + 0.01 * bool(obs[2] > 0), *rest


def _fails(claim: EnvCases, case: Any, name: str) -> bool:
    try:
        claim.check(case, [name])
    except AssertionError:
        return True
    return False


def test_a_planted_fault_is_found_in_one_property_and_shrinks() -> None:
    claim = EnvCases(Tilted, atlas.entry("pendulum/mirror").symmetry())
    case = find(claim.cases(), lambda one: _fails(claim, one, "reward_invariance"), settings=QUICK)
    # Hypothesis prefers zeros: at most one of angle, speed and torque is needed to turn one way.
    assert (np.asarray(case.situation.state) == 0).sum() >= 1
    claim.check(case, ["transition_invariance", "termination_invariance", "group_axioms"])
    with pytest.raises(
        AssertionError, match=r"reward_invariance: R\(g s, g a\) = R\(s, a\) fails under pendulum/mirror"
    ):
        claim.check(case)


def test_a_wrong_map_breaks_the_group_law_of_a_case() -> None:
    quarter = Symmetry("quarter", catalog.cyclic(2), [lambda o: o[[1, 0, 3, 2]] * [1, -1, 1, -1]], [[1, 0]])
    claim = EnvCases(lambda: gym.make("CartPole-v1"), quarter)
    found = find(
        claim.cases(),
        lambda one: _fails(claim, one, "group_axioms"),
        settings=settings(QUICK, phases=[Phase.generate]),
    )
    assert found.situation.obs.any()


def test_random_dynamics_are_sent_to_the_assertion_that_compares_laws() -> None:
    claim = EnvCases(lambda: gym.make("symcheck/PredatorPrey-v0"), atlas.entry("predator-prey/rotations").symmetry())
    with pytest.raises(SymcheckError, match=r"Use symcheck\.testing\.assert_env_symmetric"):
        find(claim.cases(), lambda one: True, settings=QUICK)


def test_an_unknown_property_is_refused_with_the_nearest_one() -> None:
    case = find(CARTPOLE.cases(), lambda one: True, settings=QUICK)
    with pytest.raises(SymcheckError, match="reward_invariance"):
        CARTPOLE.check(case, ["reward_invarianse"])


def test_registering_the_properties_does_not_load_hypothesis() -> None:
    code = "import sys, symcheck_properties; sys.exit('hypothesis' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
