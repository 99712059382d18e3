"""The group law: proved for data, tested for callables, told apart from the equations of the MDP."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

import symcheck_properties  # noqa: F401
from symcheck.engine.environments.replay import replay
from symcheck.engine.environments.runner import run_env
from symcheck.engine.options import EnvOptions
from symcheck.engine.results import PropertyResult
from symcheck.engine.statistics import largest_fraction
from symcheck.envs.state_access import register_state_access
from symcheck.groups import catalog
from symcheck.symmetry.symmetry import Symmetry


class Carousel(gym.Env[Any, Any]):
    """Three alike buckets; action k pours into bucket k. Turning the carousel moves bucket i to i + 1."""

    observation_space = spaces.Box(-np.inf, np.inf, (3,), np.float64)
    action_space = spaces.Discrete(3)
    s: Any = None

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.s = self.np_random.uniform(size=3)
        return self.s.copy(), {}

    def step(self, action: Any) -> Any:
        self.s = 0.9 * self.s
        self.s[int(action)] += 0.1
        return self.s.copy(), float(self.s.max()), bool(self.s.max() > 2), False, {}


register_state_access(Carousel, set=lambda env, state: setattr(env, "s", np.array(state, dtype=float)))


def turned(obs: np.ndarray) -> np.ndarray:
    return np.roll(obs, 1)


def axioms(symmetry: Symmetry) -> PropertyResult:
    result = run_env(Carousel, symmetry, options=EnvOptions(samples=600), target="carousel", command="")
    return {one.name: one for one in result.properties}["group_axioms"]


def test_data_is_proved_and_callables_are_tested() -> None:
    data = axioms(Symmetry("turn", catalog.cyclic(3), [[1, 2, 0]], [[1, 2, 0]]))
    code = axioms(Symmetry("turn", catalog.cyclic(3), [turned], [lambda a, obs: (a + 1) % 3]))
    assert (data.verdict, data.method) == ("proved", "relations")
    assert (code.verdict, code.method) == ("passed", "samples")
    assert code.bound is not None


def test_the_bound_counts_the_samples_and_not_the_relations_tried_on_each() -> None:
    four = catalog.klein_four()
    found = axioms(Symmetry("stay", four, [lambda obs: obs] * 2, [lambda a, obs: a] * 2))
    assert found.bound is not None
    samples = found.checked // len(four.relators)
    assert len(four.relators) > 1
    assert samples == 500  # more of them show no other relation
    assert found.bound["value"] == pytest.approx(largest_fraction(0, samples, 0.01))


def test_a_generator_of_another_order_is_named_with_its_order() -> None:
    declared_two = Symmetry("turn", catalog.cyclic(2), [turned], [lambda a, obs: (a + 1) % 3])
    result = axioms(declared_two)
    assert result.verdict == "failed"
    assert [cause.code for cause in result.causes] == ["SYM001", "SYM001", "SYM003"]
    assert [(cause.fields["part"], cause.fields["order"]) for cause in result.causes[:2]] == [
        ("observation", 3),
        ("action", 3),
    ]
    assert str(result.causes[0]) == "turn is declared to have order 2, but L(L(s)) != s (it has order 3)"
    assert str(result.causes[1]) == "K(K(a)) != a (it has order 3)"
    assert "the MDP equations themselves hold" in str(result.causes[2])


def test_a_map_that_breaks_the_equations_too_says_so() -> None:
    result = axioms(Symmetry("turn", catalog.cyclic(2), [turned], [lambda a, obs: (a + 2) % 3]))
    assert result.causes[-1].code == "SYM004"
    assert "the MDP equations fail for this map too" in str(result.causes[-1])


def test_an_action_map_that_depends_on_the_state_obeys_the_law_along_the_orbit() -> None:
    """K_g^s moves the action as many places as the largest bucket says: only K_gh^s = K_g^{hs} K_h^s makes it a law."""

    def steps(obs: np.ndarray) -> int:
        return (1, 1, -2)[int(np.argmax(obs))]

    lawful = Symmetry("turn", catalog.cyclic(3), [turned], [lambda a, obs: (a + steps(obs)) % 3])
    unlawful = Symmetry("turn", catalog.cyclic(3), [turned], [lambda a, obs: (a + (int(np.argmax(obs)) == 0)) % 3])
    assert axioms(lawful).verdict == "passed"
    assert axioms(unlawful).verdict == "failed"


def test_a_broken_relation_is_replayed() -> None:
    wrong = Symmetry("turn", catalog.cyclic(2), [turned], [lambda a, obs: a])
    result = run_env(Carousel, wrong, options=EnvOptions(samples=400), target="carousel", command="")
    example = result.to_dict()["properties"][0]["counterexample"]
    assert replay(Carousel, wrong, "group_axioms", example, EnvOptions()).verdict == "failed"


class Sixteen(gym.Env[Any, Any]):
    """One number above 1, where neighbouring numbers are one rounding unit apart."""

    observation_space = spaces.Box(1.0, 2.0, (1,), np.float64)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        return np.array([1.0 + self.np_random.integers(8) / 1024]), {}

    def step(self, action: Any) -> Any:
        return np.array([1.0 + self.np_random.integers(8) / 1024]), 0.0, False, False, {}


@pytest.mark.parametrize(("units", "violated"), [(16, False), (17, True)])
def test_a_relation_may_round_by_sixteen_units_a_letter_and_by_no_more(units: int, violated: bool) -> None:
    def nearly_still(obs: np.ndarray) -> np.ndarray:
        return obs + units * np.finfo(np.float64).eps

    symmetry = Symmetry("still", catalog.cyclic(2), [nearly_still], [lambda a, obs: a])
    result = run_env(Sixteen, symmetry, options=EnvOptions(samples=50), target="sixteen", command="")
    verdicts = {each.name: each.verdict for each in result.properties}
    assert (verdicts["group_axioms"] == "failed") == violated


class ShownCarousel(Carousel):
    """The same, with a state that can be read."""


register_state_access(
    ShownCarousel, get=lambda env: env.s.copy(), set=lambda env, state: setattr(env, "s", np.array(state, dtype=float))
)


@pytest.mark.parametrize(("order", "verdict"), [(2, "failed"), (3, "passed")])
def test_the_map_of_states_obeys_the_law_too(order: int, verdict: str) -> None:
    symmetry = Symmetry("turn", catalog.cyclic(order), [lambda obs: obs], [lambda a, obs: a], state=[turned])
    result = run_env(ShownCarousel, symmetry, options=EnvOptions(samples=50), target="carousel", command="")
    (found,) = [each for each in result.properties if each.name == "group_axioms"]
    assert found.verdict == verdict
    assert {cause.fields["part"] for cause in found.causes if "order" in cause.fields} <= {"state"}
