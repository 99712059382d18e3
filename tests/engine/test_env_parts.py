"""The parts of the paired method, one by one: stepping, placing, gathering, controlling, shrinking, probing."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from symcheck.engine.clock import Clock
from symcheck.engine.environments.cases.edges import threshold_cases
from symcheck.engine.environments.cases.minimise import minimise
from symcheck.engine.environments.cases.pool import gather
from symcheck.engine.environments.cases.tolerance import SAFETY, Tolerance
from symcheck.engine.environments.cases.workbench import Workbench
from symcheck.engine.environments.controls.determinism import check_determinism
from symcheck.engine.environments.methods.selection import prepare
from symcheck.engine.environments.replay import _read_state
from symcheck.engine.environments.subject.placement import Placement, _inspect_access
from symcheck.engine.events import ignore
from symcheck.engine.options import EnvOptions
from symcheck.envs import atlas
from symcheck.envs.models import Transitions, find_model
from symcheck.envs.state_access import find_state_access, register_state_access
from symcheck.envs.stepping.stepper import Stepper
from symcheck.envs.targets import resolve_environment
from symcheck.groups import catalog
from symcheck.spaces.actions import draw_actions
from symcheck.spaces.probing import linear_map
from symcheck.symmetry.exits import find_excess
from symcheck.symmetry.symmetry import Symmetry


def bench(name: str = "cartpole/mirror", symmetry: Symmetry | None = None, make: Any = None) -> Workbench:
    entry = atlas.entry(name)
    make = make or resolve_environment(entry.environments[0]).make
    return prepare(make, symmetry or entry.symmetry(), EnvOptions(samples=400), name, ignore, Clock())


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def test_poking_never_runs_into_the_time_limit() -> None:
    stepper = bench(make=lambda: gym.wrappers.TimeLimit(gym.make("CartPole-v1").unwrapped, 2)).pairs.stepper
    assert not any(stepper.outcome(np.zeros(4), np.int64(0)).truncated for _ in range(5))


def test_observations_handed_out_are_copies() -> None:
    class Reused(gym.Env[Any, Any]):
        observation_space = spaces.Box(-9, 9, (1,), np.float64)
        action_space = spaces.Discrete(2)
        buffer = np.zeros(1)

        def reset(self, *, seed: Any = None, options: Any = None) -> Any:
            self.buffer[0] = 0
            return self.buffer, {}

        def step(self, action: Any) -> Any:
            self.buffer[0] += 1
            return self.buffer, 0.0, False, False, {}

    stepper = bench(make=Reused, symmetry=Symmetry("flip", catalog.cyclic(2), [[-1]], [[1, 0]])).pairs.stepper
    first = stepper.step(np.int64(0))
    stepper.step(np.int64(0))
    assert first.obs[0] == 1.0


def test_running_statistics_are_frozen_while_they_are_checked() -> None:
    env = gym.wrappers.NormalizeObservation(gym.make("CartPole-v1", disable_env_checker=True))
    assert bench(make=lambda: env).pairs.stepper.env is env
    assert not env.update_running_mean


@pytest.mark.parametrize(
    ("name", "given", "kind"),
    [
        ("cartpole/mirror", {}, "observation"),
        ("pendulum/mirror", {}, "map"),
        ("pendulum/mirror", {"state": None}, "inverse"),
    ],
)
def test_images_are_made_in_the_way_that_fits(name: str, given: dict[str, Any], kind: str) -> None:
    symmetry = atlas.entry(name).symmetry()
    if given:
        symmetry = Symmetry("mirror", catalog.cyclic(2), [[1, -1, -1]], [[-1]])
    pairs = bench(name, symmetry).pairs
    assert pairs.placement.kind == kind
    situation = pairs.placement.current_situation(pairs.stepper.reset(), "start")
    image = pairs.placement.image((0,), situation)
    back = pairs.placement.image((0,), image)
    # Through cosine and sine an angle comes back up to its rounding to float32.
    np.testing.assert_allclose(back.state, situation.state, atol=1e-6)
    pairs.stepper.poke(image.state)
    observe = pairs.placement.access.observe
    assert observe is not None
    np.testing.assert_allclose(observe(image.state), image.obs, atol=1e-6)


def test_a_wrapper_that_changes_observations_takes_the_state_away() -> None:
    make = lambda: gym.wrappers.TransformObservation(  # noqa: E731
        gym.make("Pendulum-v1", disable_env_checker=True), lambda o: 2 * o, spaces.Box(-20, 20, (3,), np.float32)
    )
    symmetry = Symmetry("mirror", catalog.cyclic(2), [[1, -1, -1]], [[-1]])
    placement = bench(symmetry=symmetry, make=make).pairs.placement
    assert placement.kind is None
    assert placement.why_not.code in ("states_not_settable", "state_map_missing")  # type: ignore[union-attr]


def test_exploration_reaches_what_random_rollouts_do_not() -> None:
    class Mine(gym.envs.classic_control.MountainCarEnv):
        pass

    register_state_access(Mine, set=lambda env, state: setattr(env, "state", (float(state[0]), float(state[1]))))
    valley = atlas.entry("mountaincar/valley").symmetry()
    pairs = bench(symmetry=valley, make=lambda: gym.wrappers.TimeLimit(Mine(), 200)).pairs
    pool = gather(pairs.stepper, pairs.placement, 8000, rng())
    reached = {
        origin: np.array([s.obs[0] for s in pool.situations if s.origin == origin])
        for origin in ("rollout", "exploration")
    }
    assert reached["rollout"].max() < 0.0 < 0.4 < reached["exploration"].max()
    assert reached["exploration"].min() < -1.15


def test_exploration_goes_on_where_setting_a_state_leaves_a_step_counter_running() -> None:
    class Counting(gym.envs.classic_control.MountainCarEnv):
        steps = 0

        def reset(self, **given: Any) -> tuple[Any, dict[str, Any]]:
            self.steps = 0
            return super().reset(**given)

        def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
            self.steps += 1
            obs, reward, ended, _, info = super().step(int(action))
            return obs, float(reward), ended, self.steps >= 100, info

    register_state_access(Counting, set=lambda env, state: setattr(env, "state", (float(state[0]), float(state[1]))))
    pairs = bench(symmetry=atlas.entry("mountaincar/valley").symmetry(), make=Counting).pairs
    pool = gather(pairs.stepper, pairs.placement, 2000, rng())
    # Every run would be cut off after its first step, and reach nothing.
    assert sum(situation.origin == "exploration" for situation in pool.situations) > 300


def test_actions_include_zero_and_the_bounds() -> None:
    space = spaces.Box(-2, 2, (1,), np.float32)
    space.seed(0)
    drawn = {float(action[0]) for action in draw_actions(space, 200, rng())}
    assert {0.0, 2.0, -2.0} <= drawn


@pytest.mark.parametrize(
    ("step", "behaviour"),
    [
        (lambda env, a: env.x + 1.0, "deterministic"),
        (lambda env, a: env.x + env.np_random.normal(), "stochastic"),
        (lambda env, a: env.x + next(env.counter), "leaky"),
    ],
)
def test_the_determinism_check_tells_randomness_from_leaks(step: Any, behaviour: str) -> None:
    import itertools

    class Subject(gym.Env[Any, Any]):
        observation_space = spaces.Box(-np.inf, np.inf, (1,), np.float64)
        action_space = spaces.Discrete(2)
        x = 0.0

        def __init__(self) -> None:
            self.counter = itertools.count()

        def get_state(self) -> Any:
            return np.array([self.x])

        def set_state(self, state: Any) -> None:
            self.x = float(state[0])

        def reset(self, *, seed: Any = None, options: Any = None) -> Any:
            super().reset(seed=seed)
            self.x = 0.0
            return np.array([self.x]), {}

        def step(self, action: Any) -> Any:
            self.x = step(self, action)
            return np.array([self.x]), 0.0, False, False, {}

    pairs = bench(make=Subject, symmetry=Symmetry("flip", catalog.cyclic(2), [[-1]], [[1, 0]])).pairs
    pool = gather(pairs.stepper, pairs.placement, 400, rng())
    assert check_determinism(pairs.stepper, pool, rng()).behaviour == behaviour


def test_thresholds_are_found_to_the_last_bit() -> None:
    ready = bench()
    pool = gather(ready.pairs.stepper, ready.pairs.placement, 400, rng())
    cases = [ready.pairs.case((0,), s, np.int64(i % 2)) for i, s in enumerate(pool.situations)]
    edges = threshold_cases(ready.pairs, ready.pairs.measure(cases), rng())
    ended = ready.pairs.measure(edges).left.terminated
    assert ended.any()
    assert not ended.all()
    just_not = ready.pairs.measure([case for case, end in zip(edges, ended, strict=True) if not end]).left.states
    assert just_not is not None
    limits = np.array([2.4, np.inf, 12 * 2 * np.pi / 360, np.inf])
    distance = np.abs(np.abs(just_not) - limits).min(axis=1)
    assert np.median(distance) < 1e-12


@pytest.mark.parametrize("moved", [0.0, 1e-9])
def test_thresholds_of_the_environment_are_found_whatever_its_batched_form_says(moved: float) -> None:
    ready = bench()
    exact = find_model(ready.pairs.stepper.env)
    assert exact is not None

    def step(states: Any, actions: Any) -> Transitions:
        stepped = exact.step(states, actions)
        return stepped._replace(terminated=stepped.terminated | (np.abs(stepped.states[:, 0]) > 2.4 - moved))

    pool = gather(ready.pairs.stepper, ready.pairs.placement, 400, rng())
    cases = [ready.pairs.case((0,), s, np.int64(i % 2)) for i, s in enumerate(pool.situations)]
    measured = ready.pairs.measure(cases)

    def search(model: Any) -> tuple[list[Any], int]:
        before = ready.pairs.stepper.steps
        edges = threshold_cases(ready.pairs, measured, rng(), model=model)
        return [case.situation.state.tolist() for case in edges], ready.pairs.stepper.steps - before

    (states, taken), (same, saved) = search(None), search(dataclasses.replace(exact, step=step))
    assert same == states
    assert moved or saved < taken / 3


def test_a_counterexample_shrinks_to_the_numbers_that_matter() -> None:
    ready = bench()
    state = np.array([0.731, -1.27, 0.0813, 0.5591])
    situation = ready.pairs.placement.at(state, "box")
    assert situation is not None
    case = ready.pairs.case((0,), situation, np.int64(1))
    small = minimise(ready.pairs, case, lambda one: one.situation.state[1] < -1)
    assert small.situation.state.tolist() == [0.0, -2.0, 0.0, 0.0] or small.situation.state[1] in (-1.3, -2.0)
    assert np.count_nonzero(small.situation.state) == 1
    assert small.action == 0


def test_the_tolerance_follows_the_conditioning_and_leaves_whole_numbers_exact() -> None:
    ready = bench()
    situation = ready.pairs.placement.at(np.array([0.1, 0.2, 0.05, 0.3]), "box")
    assert situation is not None
    case = ready.pairs.case((0,), situation, np.int64(1))
    measured = ready.pairs.measure([case])
    tolerance = Tolerance(ready.pairs, {})
    termination = ready.pairs.comparison("termination", measured)
    assert tolerance.of(termination).max() == 0.0
    transition = ready.pairs.comparison("transition", measured)
    assert tolerance.of(transition, 1.0).min() >= SAFETY
    moved = tolerance.nudges("transition", [case], rng())
    assert moved is not None
    # One unit in the last place of numbers of order 1 moves the next state by about one unit.
    assert 0 < moved.max() < 1e-14


def test_a_nudge_crosses_a_threshold_from_either_side() -> None:
    ready = bench()
    tolerance = Tolerance(ready.pairs, {})
    for x in (2.4, np.nextafter(2.4, 3)):
        situation = ready.pairs.placement.at(np.array([x, 0.0, 0.0, 0.0]), "edge")
        assert situation is not None
        moved = tolerance.nudges("termination", [ready.pairs.case((0,), situation, np.int64(1))], rng())
        assert moved is not None
        assert moved.max() == 1.0


def test_a_situation_outside_its_space_is_described() -> None:
    pairs = bench("mountaincar/valley").pairs
    situation = pairs.placement.at(np.array([0.3, 0.01]), "box")
    assert situation is not None
    assert find_excess(situation.obs, pairs.stepper.codec) is None
    excess = find_excess(pairs.placement.image((0,), situation).obs, pairs.stepper.codec)
    assert excess is not None
    assert (excess.coordinate, excess.side) == ("observation[0]", "below")
    assert excess.value == pytest.approx(-1.3471976)
    assert str(excess).startswith("observation[0] = -1.347")


@pytest.mark.parametrize(
    ("function", "known"),
    [
        (lambda x: np.array([1.4 - x[0], -x[1]]), True),
        (lambda x: x**2, False),
        (lambda x: 1 / 0, False),
        (lambda x: x[[1, 0]], True),
    ],
)
def test_probing_finds_affine_maps_and_no_others(function: Any, known: bool) -> None:
    found = linear_map(function, np.zeros(2))
    assert (found is not None) == known
    if found is not None:
        x = np.array([0.3, -0.7])
        np.testing.assert_allclose(found[0] @ x + found[1], function(x))


def test_a_map_of_something_else_than_vectors_is_not_probed() -> None:
    assert linear_map(lambda x: x, {"p": 1}) is None
    assert linear_map(lambda x: x, np.zeros(1000)) is None


@pytest.mark.parametrize("form", [[1.0, 2.0], (1.0, 2.0), {"x": 1.0, "name": "east"}, np.zeros(2)])
def test_states_of_numbers_are_read_from_a_report_as_vectors_and_others_in_their_form(form: Any) -> None:
    placement = SimpleNamespace(kind=None, form=form)
    held = {"x": 3.0, "name": "west"} if isinstance(form, dict) else [3.0, 4.0]
    state = _read_state(SimpleNamespace(placement=placement), held)
    if isinstance(form, dict):
        assert state == held
    else:
        assert isinstance(state, np.ndarray)
        assert state.tolist() == held


def test_a_black_box_has_no_state_access() -> None:
    placement = object.__new__(Placement)
    placement._access = None
    with pytest.raises(ValueError, match="black box"):
        placement.access  # noqa: B018


@pytest.mark.parametrize("wrapped", [False, True])
def test_what_is_known_of_plain_observations_is_not_believed_of_wrapped_ones(wrapped: bool) -> None:
    env: Any = gym.make("CartPole-v1")
    if wrapped:
        env = gym.wrappers.TransformObservation(env, lambda obs: 2 * obs, env.observation_space)
    stepper = Stepper(env, find_state_access(env.unwrapped), "cart", seed=0)
    access, shows_state, _ = _inspect_access(stepper)
    assert access is not None
    assert (access.observe is None, shows_state) == (wrapped, not wrapped)
