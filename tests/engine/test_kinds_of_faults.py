"""Kinds of faults that averages over episodes, the first coordinates or plain means do not show; each with its twin."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import symcheck as sc
from symcheck.engine.environments.replay import replay
from symcheck.engine.options import EnvOptions
from symcheck.engine.regression import Fit, polynomial, smooth_terms, standardise
from symcheck.groups import catalog

C2 = catalog.cyclic(2)


def mirror(size: int = 2) -> sc.Symmetry:
    return sc.Symmetry("mirror", C2, observation=[[-1] * size], action=[[1, 0]])


class Cart(gym.Env[Any, Any]):
    """A cart that two actions push; a black box."""

    size = 2
    noise = 0.0

    def __init__(self) -> None:
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, (self.size,), np.float64)
        self.action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.s, self.t = self.np_random.uniform(-1, 1, self.size), 0
        return self.s.copy(), {}

    def step(self, action: Any) -> Any:
        push = 2 * int(action) - 1
        s = 0.9 * self.s + 0.1 * push + self.noise * self.disturb(push)
        s[0] = self.s[0] + 0.1 * s[1]
        self.s, self.t = s + self.force(), self.t + 1
        return self.s.copy(), -float(self.s[0] ** 2), bool(abs(self.s[0]) > 2), self.cut(), {}

    def force(self) -> Any:
        return 0.0

    def disturb(self, push: int) -> Any:
        return self.np_random.normal(size=self.size)

    def cut(self) -> bool:
        return False


class Clock(Cart):
    """A hidden clock pushes left and right in turn."""

    def force(self) -> Any:
        return 0.05 * (-1) ** self.t


class EvenClock(Cart):
    """A hidden clock brakes every second step, on both sides alike."""

    def force(self) -> Any:
        return -0.3 * self.s * (self.t % 2)


class FirstPush(Cart):
    """A push to the right in the first step of every episode."""

    def force(self) -> Any:
        return 0.05 * (self.t == 0)


class Noisy(Cart):
    noise = 0.05


class WideNoise(Noisy):
    """Noise five times as wide under one action."""

    def disturb(self, push: int) -> Any:
        return self.np_random.normal(size=self.size) * (5 if push > 0 else 1)


class Long(Noisy):
    size = 60

    def cut(self) -> bool:
        return self.t >= 20  # on both sides alike


class Windy(Long):
    """A wind on one number of sixty."""

    def force(self) -> Any:
        return 0.5 * (np.arange(self.size) == 45)


class LeftStart(Long):
    """One number of seventy starts off centre."""

    size = 70

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.s[67] += 0.3
        return self.s.copy(), {}


class Cut(Cart):
    """Episodes are cut short on the right alone."""

    def cut(self) -> bool:
        return bool(self.s[0] > 1)


class CutEvenly(Cart):
    def cut(self) -> bool:
        return bool(abs(self.s[0]) > 1)


def verdict(world: type[Cart], name: str = "transition_invariance", samples: int = 1000, **options: Any) -> Any:
    return sc.verify_env(world, mirror(world.size), samples=samples, **options)[name]


@pytest.mark.parametrize(
    ("world", "says"),
    [
        (Clock, "in even steps"),
        (FirstPush, "where the step number is 1"),
        (WideNoise, "under action 1 compared with other actions"),
        (Windy, "next observation[45]"),
    ],
)
def test_a_fault_of_a_kind_that_totals_hide_is_found_and_named(world: type[Cart], says: str) -> None:
    result = verdict(world, samples=2000)
    assert result.verdict == "failed"
    assert says in result.causes[0].text


@pytest.mark.parametrize("world", [Cart, EvenClock, Noisy, Long])
def test_its_twin_passes(world: type[Cart]) -> None:
    assert verdict(world).verdict == "passed"


def test_starts_of_long_vectors_are_compared_in_every_coordinate() -> None:
    result = verdict(LeftStart, "initial_invariance", samples=500)
    assert result.verdict == "failed"
    assert "observation[67]" in result.causes[-1].text


def test_an_episode_that_the_environment_itself_cuts_short_on_one_side_is_an_end_on_one_side() -> None:
    assert verdict(Cut, "termination_invariance", 3000).verdict == "failed"
    assert verdict(CutEvenly, "termination_invariance", 3000).verdict == "passed"


class Settable(Cart):
    def get_state(self) -> Any:
        return self.s.copy()

    def set_state(self, state: Any) -> None:
        self.s = np.array(state, float)


class CutSettable(Settable, Cut):
    """Cut short on the right alone, by the state that is set."""


class CutEvenlySettable(Settable, CutEvenly):
    pass


class Counted(Settable):
    """Cut short by a counter that setting a state does not restore."""

    taken = 0

    def cut(self) -> bool:
        self.taken = self.taken + 1 if self.t > 1 else 1
        return self.taken >= 12


class CountedShorterOnTheRight(Counted):
    """The counter counts double on the right."""

    def cut(self) -> bool:
        super().cut()
        self.taken += self.s[0] > 0
        return self.taken >= 12


class Float16(Cart):
    """Shown with eleven bits."""

    def __init__(self) -> None:
        super().__init__()
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, (self.size,), np.float16)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        return super().reset(seed=seed)[0].astype(np.float16), {}

    def step(self, action: Any) -> Any:
        obs, *rest = super().step(action)
        return obs.astype(np.float16), *rest


class Float16Wind(Float16):
    """A wind of some of its rounding units."""

    def force(self) -> Any:
        return 0.01


@pytest.mark.parametrize(("world", "expected"), [(Float16, "passed"), (Float16Wind, "failed")])
def test_a_coarse_dtype_hides_no_more_than_its_rounding(world: type[Cart], expected: str) -> None:
    assert verdict(world).verdict == expected


def test_a_map_of_states_is_left_out_where_none_is_read() -> None:
    claim = sc.Symmetry("mirror", C2, observation=[lambda obs: -obs], action=[[1, 0]], state=[[-1, -1]])
    assert sc.verify_env(Cart, claim, samples=200)["group_axioms"].verdict == "passed"


@pytest.mark.parametrize(("size", "expected"), [(1.0, "passed"), (1.01, "failed")])
def test_a_function_of_states_that_is_not_its_own_inverse_breaks_the_group(size: float, expected: str) -> None:
    claim = sc.Symmetry("mirror", C2, [lambda obs: -obs], [[1, 0]], state=[lambda state: -size * np.asarray(state)])
    report = sc.verify_env(Settable, claim, samples=50)
    assert report["group_axioms"].verdict == expected
    if expected == "failed":
        shown = report.to_dict()["properties"]
        example = next(one["counterexample"] for one in shown if one["name"] == "group_axioms")
        again = replay(Settable, claim, "group_axioms", example, EnvOptions(samples=50))
        assert (again.verdict, again.checked, again.violations) == ("failed", 1, 1)


@pytest.mark.parametrize(
    ("world", "expected", "note"),
    [
        (CutSettable, "failed", "own_cuts_compared"),
        (CutEvenlySettable, "passed", "own_cuts_compared"),
        (Counted, "passed", "ends_of_episodes"),
        (CountedShorterOnTheRight, "failed", "ends_of_episodes"),
        (Settable, "passed", None),
    ],
)
def test_cuts_by_the_environment_are_compared_where_states_decide_them(
    world: type[Cart], expected: str, note: str | None
) -> None:
    result = verdict(world, "termination_invariance", samples=400)
    assert result.verdict == expected
    said = [said.code for said in result.notes if said.code.startswith(("own_cuts", "ends_of"))]
    assert said == [note] * bool(note)
    if note == "own_cuts_compared" and expected == "failed":
        assert {result.counterexample.expected, result.counterexample.actual} == {"truncated", False}
        assert "is truncated" in result.causes[0].text
        assert "SYM012" not in [cause.code for cause in result.causes]  # its own action map is no correction


@pytest.mark.parametrize(("world", "expected"), [(CutSettable, "failed"), (CutEvenlySettable, "passed")])
def test_a_replay_compares_the_cut_that_the_report_shows(world: type[Cart], expected: str) -> None:
    example = {
        "group_element": "mirror",
        "observation": [-0.98, -1.0],
        "action": 0,
        "expected": False,
        "actual": "truncated",
    }
    again = replay(world, mirror(), "termination_invariance", example, EnvOptions(samples=100))
    assert again.verdict == expected


class PaidAtTheEnd(Cart):
    """Pays once, after twenty steps, by the distance from the middle; a little more on the right alone, or on none."""

    more = 0.0

    def step(self, action: Any) -> Any:
        obs, _, _, _, info = super().step(action)
        last = self.t >= 20
        return obs, float(abs(obs[0]) + self.more * obs[0]) * last, last, False, info


class PaidAtTheEndOnTheRight(PaidAtTheEnd):
    more = 0.3


@pytest.mark.parametrize(("world", "expected"), [(PaidAtTheEnd, "passed"), (PaidAtTheEndOnTheRight, "failed")])
def test_what_is_paid_at_the_end_alone_is_ranked_among_itself(world: type[Cart], expected: str) -> None:
    result = verdict(world, "reward_invariance", samples=2000)
    assert result.verdict == expected
    if expected == "failed":
        assert "reward where it is not 0" in str(result.causes[0])


class Correlated(gym.Env[Any, Any]):
    """Two numbers whose noise is correlated, under one action or under both; states can be set."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (2,), np.float64)
    action_space = gym.spaces.Discrete(2)
    always = False

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.s = self.np_random.normal(size=2)
        return self.s.copy(), {}

    def step(self, action: Any) -> Any:
        z, w = self.np_random.normal(size=2)
        together = 0.9 * z + np.sqrt(0.19) * w
        self.s = 0.9 * self.s + 0.1 * np.array([z, together if self.always or action else w])
        return self.s.copy(), 0.0, False, False, {}

    def get_state(self) -> Any:
        return self.s.copy()

    def set_state(self, state: Any) -> None:
        self.s = np.array(state, float)


class AlwaysCorrelated(Correlated):
    always = True


def test_noise_that_is_correlated_under_one_action_alone_is_found() -> None:
    result = sc.verify_env(Correlated, mirror(), samples=1500)["transition_invariance"]
    assert result.verdict == "failed"
    assert "the correlation of observation[0] with observation[1] under" in result.causes[0].text
    assert sc.verify_env(AlwaysCorrelated, mirror(), samples=1500)["transition_invariance"].verdict == "passed"


def test_smooth_terms_leave_of_a_sine_a_thousandth_of_what_a_parabola_leaves() -> None:
    x = np.random.default_rng(0).uniform(-1, 1, size=(2000, 2))
    target = np.sin(x[:, :1] + x[:, 1:])
    left = [np.abs(target - Fit(terms(standardise(x))).of(target)).max() for terms in (polynomial, smooth_terms)]
    assert left[1] < 1e-2 * left[0]


def test_a_fit_explains_what_it_can_explain_to_rounding() -> None:
    x = np.random.default_rng(0).normal(size=(500, 3))
    design = polynomial(np.concatenate([x, x[:, :1]], axis=1))  # a column twice: the ridge has something to do
    target = 3.0 + x[:, :1] - 2 * x[:, 1:2] * x[:, 2:]
    np.testing.assert_allclose(Fit(design).of(target), target, atol=1e-10)


class Slips(Correlated):
    """Worn after some thousands of steps: then one in thirty slips, to either side alike or to the right alone."""

    taken = 0
    sideways = (-1.0, 1.0)

    def step(self, action: Any) -> Any:
        self.s = 0.9 * self.s + 0.1 * (2 * int(action) - 1)
        self.taken += 1
        if self.taken > 4500 and self.np_random.random() < 0.03:
            self.s = self.s + self.np_random.choice(self.sideways)
        return self.s.copy(), 0.0, False, False, {}


class SlipsRight(Slips):
    sideways = (1.0,)


@pytest.mark.parametrize(("world", "expected"), [(Slips, "passed"), (SlipsRight, "failed")])
def test_what_is_random_now_and_then_is_compared_in_distribution(world: Any, expected: str) -> None:
    result = sc.verify_env(world, mirror(), samples=4000)["transition_invariance"]
    assert (result.verdict, result.method) == (expected, "distribution")
    assert "rarely_random" in [note.code for note in result.notes]


class Icy(Correlated):
    """Slips to either side alike on a patch in the middle, and moves alike each time elsewhere."""

    drag = 0.0

    def step(self, action: Any) -> Any:
        on_ice = abs(self.s[0]) < 0.15
        self.s = 0.9 * np.sin(self.s) + 0.2 * (2 * int(action) - 1) - self.drag * (self.s[0] > 0.8)
        self.s = self.s + on_ice * self.np_random.normal(size=2)
        return self.s.copy(), 0.0, False, False, {}


class IcyAndDragging(Icy):
    drag = 1e-3


@pytest.mark.parametrize(("world", "expected"), [(Icy, "passed"), (IcyAndDragging, "failed")])
def test_among_outcomes_that_repeat_mostly_single_pairs_refute(world: Any, expected: str) -> None:
    result = sc.verify_env(world, mirror(), samples=1500)["transition_invariance"]
    assert (result.verdict, result.method) == (expected, "paired" if expected == "failed" else "distribution")
    if expected == "failed":
        assert result.violations < 300
        assert result.counterexample.residual == pytest.approx(1e-3, rel=1e-6)
        assert result.max_residual == pytest.approx(1e-3, rel=1e-6)  # not what chance does on the ice


class Goal(gym.Env[Any, Any]):
    """A point among random pushes, paid only near a goal that stays for an episode; its states cannot be set."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (2,), np.float64)
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.s, self.t = self.np_random.uniform(-1, 1, 2), 0
        return self.s.copy(), {}

    def step(self, action: Any) -> Any:
        self.s[0] = np.clip(self.s[0] + 0.1 * (2 * int(action) - 1) + self.np_random.normal(0, 0.1), -1, 1)
        self.t += 1
        return self.s.copy(), float(abs(self.s[0] - self.s[1]) < 0.2), False, self.t == 40, {}


@pytest.mark.parametrize(("goal", "expected"), [(-1, "passed"), (1, "failed")])
def test_a_reward_that_ties_two_coordinates_is_compared_where_both_agree(goal: int, expected: str) -> None:
    claim = sc.Symmetry("mirror", C2, observation=[["-1", "-2" if goal < 0 else "+2"]], action=[[1, 0]])
    report = sc.verify_env(Goal, claim, samples=1000)
    assert report["transition_invariance"].verdict == "passed"
    assert report["reward_invariance"].verdict == expected
