"""A bias that a float32 observation rounds away is found in the state, and rounding of a sound state is not accused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gymnasium.envs.classic_control.acrobot import AcrobotEnv
from gymnasium.envs.classic_control.cartpole import CartPoleEnv
from gymnasium.envs.classic_control.pendulum import PendulumEnv

import symcheck as sc
from symcheck.envs.state_access.inner_states import shown_digits, signed_map
from symcheck.groups import catalog
from symcheck.symmetry.symmetry import Symmetry

C2 = catalog.cyclic(2)
BIAS = 1e-6


class WindyCart(CartPoleEnv):
    """A cart-pole in float64 that shows float32; the wind is a millionth of what one push does."""

    def __init__(self, wind: float) -> None:
        super().__init__()
        self.wind = wind

    def step(self, action: Any) -> Any:
        """Blow, then push."""
        x, x_dot, theta, theta_dot = self.state  # type: ignore[misc]
        self.state = np.array([x, x_dot + 0.2 * self.wind, theta, theta_dot])
        return super().step(action)  # type: ignore[no-untyped-call]


class WindyPendulum(PendulumEnv):
    """A pendulum that shows the cosine and sine of its angle in float32."""

    def __init__(self, wind: float) -> None:
        super().__init__()
        self.wind = wind

    def step(self, u: Any) -> Any:
        """Step, then blow."""
        _, *rest = super().step(u)  # type: ignore[no-untyped-call]
        self.state = self.state + np.array([0.05 * self.wind, self.wind])
        return (self._get_obs(), *rest)  # type: ignore[no-untyped-call]


class WindyAcrobot(AcrobotEnv):
    """Two links, two angles; integrated in float64 by Runge-Kutta steps."""

    def __init__(self, wind: float) -> None:
        super().__init__()
        self.wind = wind

    def step(self, a: Any) -> Any:
        """Step, then blow."""
        _, *rest = super().step(a)  # type: ignore[no-untyped-call]
        self.state = self.state + np.array([0, 0, self.wind, 0])
        return (self._get_ob(), *rest)  # type: ignore[no-untyped-call]


def negated(value: Any) -> Any:
    """The mirror as a callable."""
    return -value


def negated_in_float32(value: Any) -> Any:
    """The mirror as a callable that rounds."""
    return (-value).astype(np.float32)


CLAIMS: dict[str, tuple[Callable[[float], Any], Symmetry]] = {
    "data": (WindyCart, Symmetry("mirror", C2, [[-1] * 4], [[1, 0]])),
    "a callable": (WindyCart, Symmetry("mirror", C2, [negated], [[1, 0]])),
    "a callable that rounds": (WindyCart, Symmetry("mirror", C2, [negated_in_float32], [[1, 0]])),
    "a callable for the state": (WindyCart, Symmetry("mirror", C2, [negated], [[1, 0]], state=[negated])),
    "an angle behind its cosine and sine": (WindyPendulum, Symmetry("mirror", C2, [[1, -1, -1]], [[-1]])),
    "two angles": (WindyAcrobot, Symmetry("mirror", C2, [[1, -1, 1, -1, -1, -1]], [[2, 1, 0]])),
}


@pytest.mark.parametrize("claimed", CLAIMS)
def test_a_bias_of_a_millionth_in_the_state_is_found_under_a_float32_observation(claimed: str) -> None:
    world, mirror = CLAIMS[claimed]
    found = sc.verify_env(lambda: world(BIAS), mirror, samples=400)["transition_invariance"]
    assert found.verdict == "failed"


@pytest.mark.parametrize("claimed", CLAIMS)
def test_a_sound_state_under_a_float32_observation_is_not_accused(claimed: str) -> None:
    world, mirror = CLAIMS[claimed]
    assert sc.verify_env(lambda: world(0.0), mirror, samples=400).verdict == "passed"


class Clocked(WindyCart):
    """A cart-pole whose state also holds a number that no observation shows and no symmetry maps."""

    def __init__(self) -> None:
        super().__init__(0.0)
        self.heat = 0.1

    def step(self, action: Any) -> Any:
        """Heat up when pushed to the right."""
        self.heat += 0.37 * bool(action)
        return super().step(action)

    def get_state(self) -> Any:
        """What moves, and the heat."""
        return np.append(np.asarray(self.state, dtype=np.float64), self.heat)

    def set_state(self, state: Any) -> None:
        """Put it there."""
        self.state, self.heat = np.array(state[:4]), float(state[4])
        self.steps_beyond_terminated = None


def test_a_hidden_number_that_a_callable_leaves_in_place_is_no_violation() -> None:
    def state(s: Any) -> Any:
        return np.append(-s[:4], s[4])

    mirror = Symmetry("mirror", C2, [negated], [[1, 0]], state=[state])
    assert sc.verify_env(Clocked, mirror, samples=400).verdict == "passed"


def test_a_map_that_is_no_signed_permutation_has_no_exact_form() -> None:
    seen = [np.array([0.1, 2.0]), np.array([-1.0, 0.3])]
    assert signed_map(lambda x: 1.001 * x, np.zeros(2), seen) is None
    assert signed_map(lambda x: x + 0.5, np.zeros(2), seen) is None
    assert signed_map(np.abs, np.zeros(2), seen) is None
    quarter = signed_map(lambda x: x + np.float32(np.pi / 2), np.zeros(2), seen, angles=(0, 1))
    assert quarter is not None
    assert quarter.apply(np.zeros(2)).tolist() == [np.pi / 2, np.pi / 2]


def test_only_digits_that_float32_hides_are_looked_for() -> None:
    states = np.array([[0.1, 0.5, 7.0, 0.3], [0.2, 0.25, 7.0, 0.4]])
    observed = states[:, [3, 1, 2, 0]].astype(np.float32).astype(np.float64)
    columns, shown = shown_digits(states, observed, np.full(4, 6e-8))
    assert list(zip(columns.tolist(), shown.tolist(), strict=True)) == [(0, 3), (3, 0)]
    assert len(shown_digits(states, states, np.full(4, 1e-16))[0]) == 0
