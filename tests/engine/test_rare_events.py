"""What happens in few steps of whole episodes, and in one step of each: seen, and correct twins pass."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import symcheck as sc
from symcheck.engine.episodes import score_unusual
from symcheck.engine.places import locate
from symcheck.engine.rare_events import mark_switches
from symcheck.engine.regression import Fit, polynomial

MIRROR = sc.Symmetry("mirror", sc.groups.cyclic(2), observation=[[-1, -1]], action=[[1, 0]])


class Cart(gym.Env[Any, Any]):
    """A damped cart; each kind of fault lies on its right side."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (2,), np.float64)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, *, kind: str, bad: bool) -> None:
        self.kind, self.bad = kind, bad

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.s, self.t = self.np_random.uniform(-1, 1, 2), 0
        return self.s.copy(), {}

    def step(self, action: Any) -> Any:
        x, v = self.s
        faulty = float(self.bad and x > 0)
        push = 0.2 * int(action) - 0.1
        if self.kind == "one step" and self.t == 60:
            push += 0.05 if self.bad else push
        v = 0.9 * v + push + 0.003 * (self.bad and self.kind == "half")
        x, self.t = x + 0.1 * v, self.t + 1
        self.s = np.array([x, v])
        reward = -(x**2)
        if self.kind == "cell":
            reward += 0.3 * (0.8 < (x if self.bad else abs(x)) < 0.9 and 0.2 < (v if self.bad else abs(v)) < 0.4)
        if self.kind == "side":
            reward += 0.05 * np.sign(x) * self.bad
        if self.kind == "hidden time":
            reward = reward * 0.99**self.t + 0.02 * x * self.bad
        if self.kind in {"penalty", "no number"} and (x if self.bad else abs(x)) > 0.9:
            reward = -1.0 if self.kind == "penalty" else np.nan
        wall = 1.2 - 0.03 * (self.bad and x < 0)
        over = self.kind == "wall" and abs(x) > wall
        over |= self.kind == "goal" and abs(x - v) < 0.1 + 0.1 * faulty
        if self.kind == "crash" and abs(x) > 1.2:
            over, reward = True, -np.inf if x > 0 or not self.bad else reward
        cut = self.kind == "limit" and self.t >= 130 - 10 * faulty
        return self.s.copy(), float(reward), bool(over), bool(cut), {}


class Settable(Cart):
    """Its counter is not restored."""

    def get_state(self) -> Any:
        return self.s.copy()

    def set_state(self, state: Any) -> None:
        self.s = np.array(state, float)


class Half(Cart):
    """Observed in float16."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (2,), np.float16)

    def step(self, action: Any) -> Any:
        observation, *rest = super().step(action)
        return observation.astype(np.float16), *rest

    def reset(self, **given: Any) -> Any:
        observation, info = super().reset(**given)
        return observation.astype(np.float16), info


class Ranging(Cart):
    """With a sensor that has no reading beyond 0.95, or beyond 0.9 on its right side."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (3,), np.float64)

    def reading(self) -> Any:
        x = float(self.s[0])
        return np.array([*self.s, np.nan if abs(x) > 0.95 - 0.05 * (self.bad and x > 0) else x])

    def reset(self, **given: Any) -> Any:
        super().reset(**given)
        self.s *= 0.5  # every start has a reading
        return self.reading(), {}

    def step(self, action: Any) -> Any:
        return self.reading(), *super().step(action)[1:]


KINDS = [
    ("cell", "reward"),
    ("wall", "termination"),
    ("no number", "reward"),
    pytest.param("crash", "reward", marks=pytest.mark.long),
    pytest.param("goal", "termination", marks=pytest.mark.long),
    pytest.param("penalty", "reward", marks=pytest.mark.long),
    pytest.param("hidden time", "reward", marks=pytest.mark.long),
    pytest.param("limit", "termination", marks=pytest.mark.long),
]


PLACES = {
    "cell": {"next observation[0]": (0.8, 0.9), "next observation[1]": (0.2, 0.4)},
    "wall": {"next observation[0]": (1.17, 1.2)},
}


@pytest.mark.parametrize(("kind", "name"), KINDS)
def test_what_happens_in_few_steps_is_seen_and_its_twin_passes(kind: str, name: str) -> None:
    for bad, verdict in ((True, "failed"), (False, "passed")):
        report = sc.verify_env(lambda bad=bad: Cart(kind=kind, bad=bad), MIRROR, samples=5000)
        result = report[f"{name}_invariance"]
        assert result.verdict == verdict
        assert report["transition_invariance"].verdict == "passed"
        if bad and kind in PLACES:
            sides = {side["name"]: (side["low"], side["high"]) for side in result.causes[0].fields["place"]}
            assert sides.keys() >= PLACES[kind].keys()
            for coordinate, ends in PLACES[kind].items():
                # Where -1.18 ends an episode, 1.18 does not.
                assert sorted(map(abs, sides[coordinate])) == pytest.approx(ends, abs=0.05)


def test_a_sensor_without_reading_beyond_a_threshold_is_compared_beside_it() -> None:
    claim = sc.Symmetry("mirror", MIRROR.group, observation=[[-1, -1, -1]], action=[[1, 0]])
    for bad, verdict in ((True, "failed"), (False, "passed")):
        world = Ranging(kind="plain", bad=bad)
        report = sc.verify_env(lambda world=world: gym.wrappers.TimeLimit(world, 60), claim, samples=4000)
        assert report["transition_invariance"].verdict == verdict


@pytest.mark.parametrize("whole", [True, False])
def test_a_flag_is_compared_beside_its_threshold_and_no_other_number_is(whole: bool) -> None:
    x = np.linspace(-1, 1, 4001)
    flag = ((x > 0.5) | (x > 0.48) & (np.arange(4001) % 2 == 0)).astype(float)
    marked, names = mark_switches(np.stack([x, flag], axis=1), ["x", "contact"], np.array([False, whole]))
    assert set(names) == {"values 1 of contact next to a threshold of x"} if whole else not names
    assert (x[marked.any(axis=1)].min(initial=0.48), x[marked.any(axis=1)].max(initial=0.5)) == pytest.approx(
        (0.48, 0.5), abs=2e-3
    )


def test_the_place_of_a_difference_in_noisy_outcomes_is_named_with_its_size() -> None:
    class Noisy(Settable):
        def step(self, action: Any) -> Any:
            seen, reward, *rest = super().step(action)
            paid = self.bad and action == 1 and 0.2 < self.s[0] < 0.5
            return seen, reward + 0.4 * paid + self.np_random.normal(0, 0.1), *rest

    report = sc.verify_env(lambda: Noisy(kind="plain", bad=True), MIRROR, samples=3000)
    cause = report["reward_invariance"].causes[0]
    sides = {side["name"]: (side["low"], side["high"]) for side in cause.fields["place"]}
    # At the images: where the environment pays, or where it pays at the mirrored state and action.
    side = 1 if sides["image action"] == (1, 1) else -1
    assert sides["image action"] == ((side + 1) / 2, (side + 1) / 2)
    assert sorted(side * x for x in sides["image observation[0]"]) == pytest.approx([0.2, 0.5], abs=0.15)
    assert 0.2 < cause.fields["there"] < 0.5
    assert "most clearly where image observation[0] is " in cause.text


def test_equal_samples_have_no_place_at_which_they_differ() -> None:
    rng = np.random.default_rng(0)
    columns, own = rng.normal(size=(4000, 5)), np.arange(4000) % 2 == 0
    for signed in (rng.normal(size=4000), np.where(rng.random(4000) < 0.01, rng.choice([-1.0, 1.0], 4000), 0.0)):
        assert locate(signed, columns, list("abcde"), own)[0] == []
    # The same everywhere is no place either.
    assert locate(rng.normal(0.5, size=4000), columns, list("abcde"), own)[0] == []
    assert locate(np.zeros(4000), columns, list("abcde"), own)[0] == []


def test_the_size_of_what_differs_is_told() -> None:
    report = sc.verify_env(lambda: Cart(kind="side", bad=True), MIRROR, samples=3000)
    fields = report["reward_invariance"].causes[0].fields
    assert fields["feature"].startswith("mean of reward where ")
    assert 0.07 < fields["size"] < 0.13  # 0.05 more on one side, and as much less on its image


@pytest.mark.parametrize("bad", [True, False])
def test_less_than_the_rounding_of_a_coarse_dtype_is_seen_where_images_are_exact(bad: bool) -> None:
    result = sc.verify_env(lambda: Half(kind="half", bad=bad), MIRROR, samples=3000)["transition_invariance"]
    assert result.verdict == ("failed" if bad else "passed")


def test_what_happens_after_the_last_step_compared_is_not_promised() -> None:
    report = sc.verify_env(lambda: Cart(kind="one step", bad=False), MIRROR, samples=1500)
    assert report["reward_invariance"].bound["region"].fields["last_step"] == 100
    limited = gym.wrappers.TimeLimit(Cart(kind="one step", bad=False), 100)
    report = sc.verify_env(lambda: limited, MIRROR, samples=1500)
    assert "last_step" not in report["reward_invariance"].bound["region"].fields


def test_a_counter_that_matters_in_one_step_and_is_not_restored_leaves_a_true_claim_undecided() -> None:
    world = gym.wrappers.TimeLimit(Settable(kind="one step", bad=True), 120)
    result = sc.verify_env(lambda: world, MIRROR, samples=1500)["transition_invariance"]
    assert (result.verdict, result.method) == ("failed", "trajectory")
    assert [(side["low"], side["high"]) for side in result.causes[0].fields["place"]] == [(61, 61)]
    world = gym.wrappers.TimeLimit(Settable(kind="one step", bad=False), 120)
    result = sc.verify_env(lambda: world, MIRROR, samples=1500)["transition_invariance"]
    assert result.reason is not None
    assert (result.verdict, result.reason.code) == ("undecided", "hidden_step")
    assert "step 61 of an episode" in str(result.reason)
    world = gym.wrappers.TimeLimit(Settable(kind="plain", bad=False), 120)
    assert sc.verify_env(lambda: world, MIRROR, samples=500).verdict == "passed"


def test_a_fit_to_the_known_rows_is_that_of_these_rows_alone() -> None:
    x = np.linspace(-1, 1, 400)
    design, target = polynomial(x[:, None]), np.stack([x**2, x, x**2], axis=1)
    known = np.stack([x < 0.5, np.ones(400, bool), x < 0.5], axis=1)
    explained = Fit(design).of(np.where(known, target, -7.0), known)
    np.testing.assert_allclose(explained, target, atol=1e-13)  # a ridge bent it by 1e-9
    assert np.abs(Fit(design).of(np.where(known, target, -7.0)) - target)[:, 0].max() > 1


def test_frequent_values_among_many_others_are_told_apart_from_them() -> None:
    x = np.linspace(-1, 1, 1000)
    reward = np.where(x > 0.8, np.nan, -(x**2))
    scores, names = score_unusual(reward[:, None], ["reward"], np.full(1, 1e-16), Fit(polynomial(x[:, None])))
    assert names == ["reward where it is not nan", "[reward = nan]"]
    assert not scores[x > 0.8, 0].any()
    assert scores[x > 0.81, 1].min() > scores[x < 0.79, 1].max()
    # Of whole numbers each may be frequent, and none stands out.
    assert score_unusual((np.arange(1000.0) % 7)[:, None], ["reward"], np.zeros(1), Fit(np.ones((1000, 1))))[1] == []
