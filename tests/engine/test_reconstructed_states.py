"""States that come back from float32 observations have images of their own, in every digit and at every sample size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium.envs.classic_control.acrobot import AcrobotEnv
from gymnasium.envs.classic_control.pendulum import PendulumEnv

import symcheck as sc
from symcheck.groups import catalog
from symcheck.symmetry.symmetry import Symmetry

C2 = catalog.cyclic(2)
PENDULUM = Symmetry("mirror", C2, observation=[[1, -1, -1]], action=[[-1]])
ACROBOT = Symmetry("mirror", C2, observation=[[1, -1, 1, -1, -1, -1]], action=[[2, 1, 0]])


class DraughtyPendulum(PendulumEnv):
    """Pushed by a billionth where the angle is positive: far below a float32 observation's digits."""

    def step(self, u: Any) -> Any:
        """Step, then push."""
        above = self.state[0] > 0
        _, *rest = super().step(u)  # type: ignore[no-untyped-call]
        self.state = self.state + np.array([0.0, 1e-9 * above])
        return (self._get_obs(), *rest)  # type: ignore[no-untyped-call]


@pytest.mark.parametrize("samples", [500, 10_000])
@pytest.mark.parametrize(("name", "claim"), [("Pendulum-v1", PENDULUM), ("Acrobot-v1", ACROBOT)])
def test_the_mirror_passes_without_a_map_of_states(name: str, claim: Symmetry, samples: int) -> None:
    assert sc.verify_env(name, claim, samples=samples).verdict == "passed"


def test_a_subclass_without_a_batched_form_passes_too() -> None:
    class Renamed(AcrobotEnv):
        """No batched form is believed of a class that steps by itself."""

        def step(self, a: Any) -> Any:
            """Step as it is."""
            return super().step(a)  # type: ignore[no-untyped-call]

    assert sc.verify_env(Renamed, ACROBOT, samples=2000).verdict == "passed"


def test_a_push_of_a_billionth_is_found_in_the_state_all_the_same() -> None:
    report = sc.verify_env(DraughtyPendulum, PENDULUM, samples=500)
    assert report["transition_invariance"].verdict == "failed"
    assert report["transition_invariance"].max_residual == pytest.approx(1e-9, rel=1e-3)


def test_a_mirror_that_forgets_an_action_fails() -> None:
    wrong = Symmetry("mirror", C2, observation=[[1, -1, -1]], action=[[1]])
    assert sc.verify_env("Pendulum-v1", wrong, samples=500).verdict == "failed"
