"""Runs over environments: what they report, refuse, and survive."""

from __future__ import annotations

import dataclasses
import json
import random
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.envs.classic_control.cartpole import CartPoleEnv

import symcheck_properties  # noqa: F401
from symcheck.engine import registry
from symcheck.engine.environments.replay import replay
from symcheck.engine.environments.runner import run_env
from symcheck.engine.equations import BY_NAME
from symcheck.engine.events import Event, Progress, PropertyFinished, PropertyStarted, RunFinished, RunStarted
from symcheck.engine.options import EnvOptions
from symcheck.engine.results import PropertyResult, RunResult
from symcheck.envs import atlas
from symcheck.envs.state_access import register_state_access
from symcheck.errors import OptionError, SpecError, SymcheckError, TargetError
from symcheck.groups import catalog
from symcheck.statements.statement import Statement
from symcheck.symmetry.symmetry import Symmetry

MIRROR = Symmetry("mirror", catalog.cyclic(2), [[-1, -1, -1, -1]], [[1, 0]])
WRONG = Symmetry("mirror", catalog.cyclic(2), [[-1, -1, -1, 1]], [[1, 0]])


def cartpole() -> gym.Env[Any, Any]:
    return gym.make("CartPole-v1", disable_env_checker=True)


def run(
    env: Callable[[], gym.Env[Any, Any]] = cartpole, symmetry: Symmetry = MIRROR, emit: Any = None, **options: Any
) -> RunResult:
    given = EnvOptions(**{"samples": 600, **options})
    return run_env(env, symmetry, options=given, target="CartPole-v1", command="", emit=emit)


def test_cartpole_is_symmetric_on_all_counts() -> None:
    result = run()
    assert [(one.name, one.verdict) for one in result.properties] == [
        ("group_axioms", "proved"),
        ("reward_invariance", "passed"),
        ("transition_invariance", "passed"),
        ("termination_invariance", "passed"),
        ("initial_invariance", "passed"),
    ]
    assert result.method_reason.code == "method_paired"
    assert result.versions["gymnasium"] == gym.__version__


def test_the_same_seed_gives_the_same_run() -> None:
    one, two = run(symmetry=WRONG), run(symmetry=WRONG)
    assert json.dumps(one.to_dict()["properties"]) == json.dumps(two.to_dict()["properties"])


def test_a_wrong_sign_fails_with_a_small_counterexample_and_its_correction() -> None:
    failed = {one.name: one for one in run(symmetry=WRONG).properties}["transition_invariance"]
    assert failed.verdict == "failed"
    assert failed.counterexample is not None
    assert np.count_nonzero(failed.counterexample.observation) <= 1
    assert (failed.causes[0].code, failed.causes[0].fields["coordinate"]) == ("SYM014", "observation[3]")
    assert str(failed.causes[0]) == "the claim holds with sign -1 on observation[3]"


def test_a_missing_action_map_is_proposed() -> None:
    still = Symmetry("mirror", catalog.cyclic(2), [[-1] * 4], [[0, 1]])
    failed = {one.name: one for one in run(symmetry=still).properties}["transition_invariance"]
    assert failed.verdict == "failed"
    assert (failed.causes[0].code, failed.causes[0].fields["permutation"]) == ("SYM012", [1, 0])
    assert str(failed.causes[0]) == "with the action map [1, 0] all equations hold"


@pytest.mark.parametrize("seed", range(4))
def test_mountain_car_fails_at_the_wall_the_goal_and_the_start(seed: int) -> None:
    valley = atlas.entry("mountaincar/valley").symmetry()
    result = run(lambda: gym.make("MountainCar-v0"), valley, samples=4000, seed=seed)
    verdicts = {one.name: one.verdict for one in result.properties}
    assert verdicts["reward_invariance"] == "passed"
    for broken in ("transition_invariance", "termination_invariance", "initial_invariance"):
        assert verdicts[broken] == "failed"
    causes = {one.name: " | ".join(map(str, one.causes)) for one in result.properties}
    assert "the fixed point of the map is -0.5236" in causes["initial_invariance"]
    assert "-1.2" in causes["transition_invariance"]


def test_observation_equivariance_is_checked_where_the_state_is_another() -> None:
    mirror = atlas.entry("pendulum/mirror").symmetry()
    names = [one.name for one in run(lambda: gym.make("Pendulum-v1"), mirror).properties]
    assert "observation_equivariance" in names
    swapped = Symmetry("mirror", catalog.cyclic(2), [[-1, 1, -1]], [[-1]], state=[[-1, -1]])
    failed = {one.name: one for one in run(lambda: gym.make("Pendulum-v1"), swapped).properties}
    assert failed["observation_equivariance"].verdict == "failed"


def test_a_start_that_is_not_claimed_is_not_checked() -> None:
    unclaimed = Symmetry("mirror", catalog.cyclic(2), [[-1] * 4], [[1, 0]], initial=False)
    assert "initial_invariance" not in [one.name for one in run(symmetry=unclaimed).properties]


def test_events_tell_the_run_in_order() -> None:
    events: list[Event] = []
    result = run(emit=events.append)
    kinds = [type(event) for event in events if not isinstance(event, Progress)]
    assert kinds[0] is RunStarted
    assert kinds[-1] is RunFinished
    assert kinds[1:-1] == [PropertyStarted, PropertyFinished] * len(result.properties)
    assert any(isinstance(event, Progress) and event.done == event.total for event in events)


def test_an_interrupted_run_keeps_what_it_finished() -> None:
    def interrupt(event: Event) -> None:
        if isinstance(event, PropertyStarted) and event.name == "transition_invariance":
            raise KeyboardInterrupt

    result = run(emit=interrupt)
    assert result.interrupted
    assert result.verdict == "undecided"
    verdicts = {one.name: one.verdict for one in result.properties}
    assert verdicts["reward_invariance"] == "passed"
    assert verdicts["transition_invariance"] == "undecided"
    assert result.properties[-1].reason == Statement("interrupted", {"checked": 0})
    assert result.properties[-1].detail == "Interrupted before this property was checked."


def test_too_little_time_is_undecided() -> None:
    result = run(samples=5000, max_time=1e-6)
    verdicts = {one.name: one for one in result.properties}
    assert verdicts["transition_invariance"].verdict == "undecided"
    reason = verdicts["transition_invariance"].reason
    assert reason is not None
    assert reason.code == "time_up"
    assert "--max-time" in reason.text


@pytest.mark.parametrize(("symmetry", "name"), [(WRONG, "transition_invariance"), (WRONG, "termination_invariance")])
def test_a_counterexample_from_json_is_seen_again(symmetry: Symmetry, name: str) -> None:
    report = json.loads(json.dumps(run(symmetry=symmetry).to_dict()))
    example = {one["name"]: one for one in report["properties"]}[name]["counterexample"]
    again = replay(cartpole, symmetry, name, example, EnvOptions())
    assert again.verdict == "failed"
    assert again.counterexample is not None
    assert again.counterexample.residual == pytest.approx(example["residual"])
    assert replay(cartpole, MIRROR, name, example, EnvOptions()).verdict == "passed"


def test_a_broken_start_is_checked_again_from_the_start() -> None:
    valley = atlas.entry("mountaincar/valley").symmetry()
    report = run(lambda: gym.make("MountainCar-v0"), valley).to_dict()
    example = {one["name"]: one for one in report["properties"]}["initial_invariance"]["counterexample"]
    again = replay(lambda: gym.make("MountainCar-v0"), valley, "initial_invariance", example, EnvOptions(samples=600))
    assert again.verdict == "failed"


def test_a_counterexample_of_another_environment_is_refused() -> None:
    example = {"group_element": "mirror", "observation": [0.0, 1.0], "action": 0}
    with pytest.raises(SymcheckError, match="does not fit the environment's spaces"):
        replay(cartpole, MIRROR, "transition_invariance", example, EnvOptions())
    with pytest.raises(SymcheckError, match="no property of environments is called 'luck'"):
        replay(cartpole, MIRROR, "luck", example, EnvOptions())


def test_every_result_carries_the_equation_and_the_meaning_of_its_property() -> None:
    for result in run().properties:
        assert (result.equation, result.meaning) == (BY_NAME[result.name].claim, BY_NAME[result.name].meaning)


def test_a_property_of_a_user_s_own_prints_its_own_equation_and_its_own_words() -> None:
    name = "no_reward_is_huge"

    @registry.register(name, kind="env", order=999, claim="|R(s, a)| < 10", meaning="rewards stay small")
    def no_reward_is_huge(context: Any) -> PropertyResult:
        return PropertyResult(name, "failed", "own", 7, 1, causes=("the moon was full",), notes=("seven looks",))

    try:
        own = run().properties[-1]
    finally:
        registry.unregister(name, kind="env")
    assert (own.equation, own.meaning) == ("|R(s, a)| < 10", "rewards stay small")
    assert (own.causes[0].code, str(own.causes[0]), own.detail) == ("", "the moon was full", "Seven looks.")


def test_nothing_registered_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_PROPERTIES", {})
    with pytest.raises(SymcheckError, match="nothing would be tested"):
        run()


@pytest.mark.parametrize("method", ["paired", "distribution"])
def test_a_method_that_needs_states_is_refused_for_a_black_box(method: str) -> None:
    class Black(gym.Env[Any, Any]):
        observation_space = spaces.Box(-1, 1, (4,))
        action_space = spaces.Discrete(2)

        def reset(self, *, seed: Any = None, options: Any = None) -> Any:
            super().reset(seed=seed)
            return self.np_random.uniform(-1, 1, 4).astype(np.float32), {}  # no two episodes start alike: no replays

        def step(self, action: Any) -> Any:
            return np.zeros(4, np.float32), 0.0, True, False, {}

    with pytest.raises(OptionError, match="must set the state of the environment"):
        run(Black, method=method)


def test_exact_is_refused_where_probabilities_are_not_known() -> None:
    with pytest.raises(OptionError, match="--method: the exact method needs a finite MDP"):
        run(method="exact")


def test_a_symmetry_of_another_size_is_refused() -> None:
    with pytest.raises(SpecError, match="acts on 3 components, but the space has 4"):
        run(symmetry=Symmetry("mirror", catalog.cyclic(2), [[-1, -1, -1]], [[1, 0]]))


def test_an_action_map_that_leaves_the_space_is_refused() -> None:
    class Throttle(gym.Env[Any, Any]):
        observation_space = spaces.Box(-1, 1, (1,), np.float64)
        action_space = spaces.Box(0, 1, (1,), np.float64)

        def reset(self, *, seed: Any = None, options: Any = None) -> Any:
            return np.zeros(1), {}

        def step(self, action: Any) -> Any:
            return np.zeros(1), 0.0, False, False, {}

        def get_state(self) -> Any:
            return np.zeros(1)

        def set_state(self, state: Any) -> None:
            pass

    flip = Symmetry("flip", catalog.cyclic(2), [[-1]], [[-1]])
    with pytest.raises(SpecError, match="the action map leaves the action space: the image of a = "):
        run(Throttle, flip)


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ({"step": lambda self, a: 1 / 0}, r"step\(\) number 1 of this run raised ZeroDivisionError: division by zero"),
        ({"reset": lambda self, **k: np.zeros(4)}, r"expected reset\(\) to return \(observation, info\), got ndarray"),
        ({"step": lambda self, a: (np.zeros(4), 0.0, False, {})}, "expected step.. to return .* got tuple of 4"),
        (
            {"step": lambda self, a: (np.zeros(3), 0.0, False, False, {})},
            "an observation of 3 components, but its space has 4",
        ),
        (
            {"step": lambda self, a: (np.zeros(4), "high", False, False, {})},
            "expected a number as the reward, got high",
        ),
    ],
)
def test_an_environment_that_cannot_be_stepped_is_named(broken: dict[str, Any], message: str) -> None:
    class Broken(gym.Env[Any, Any]):
        observation_space = spaces.Box(-1, 1, (4,))
        action_space = spaces.Discrete(2)

        def reset(self, *, seed: Any = None, options: Any = None) -> Any:
            return np.zeros(4, np.float32), {}

    with pytest.raises(TargetError, match=message):
        run(type("Broken", (Broken,), broken))


class WindyCart(CartPoleEnv):
    def step(self, action: Any) -> Any:
        returned = super().step(action)
        self.state[1] += self.np_random.normal(scale=0.01)
        return np.array(self.state, np.float32), *returned[1:]


@pytest.mark.parametrize("make", [cartpole, WindyCart])
def test_the_user_s_generators_are_left_as_they_were(make: Any) -> None:
    before = np.random.get_state()[1].copy(), random.getstate()  # noqa: NPY002
    run(make, samples=60)
    assert (np.random.get_state()[1] == before[0]).all()  # noqa: NPY002
    assert random.getstate() == before[1]


def test_a_run_result_is_json_with_every_field() -> None:
    result = run(symmetry=WRONG)
    data = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    of_mirrors = {"columns", "differences", "pictures"}
    assert set(data) >= {field.name for field in dataclasses.fields(RunResult)} - of_mirrors


class Room(gym.Env[Any, Any]):
    """A corridor of five cells; states outside are refused."""

    observation_space = spaces.Discrete(5)
    action_space = spaces.Discrete(2)
    x = 2

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.x = 2
        return self.x, {}

    def step(self, action: Any) -> Any:
        if self.x not in range(5):
            raise ValueError("no such cell")
        self.x = min(max(self.x + (1 if action else -1), 0), 4)
        return self.x, 0.0, False, False, {}


register_state_access(Room, set=lambda env, state: setattr(env, "x", int(state)))


def test_a_map_that_leaves_the_states_is_refused_with_the_state() -> None:
    off_by_one = Symmetry("flip", catalog.cyclic(2), [lambda s: 5 - s], [[1, 0]])
    with pytest.raises(SpecError, match="leaves the space of states: the image of 0 is 5, observation = 5 is above 4"):
        run(Room, off_by_one)


class Slope(gym.Env[Any, Any]):
    """A point that moves to the left, not at all, or to the right."""

    observation_space = spaces.Box(-9.0, 9.0, (1,), np.float64)
    action_space = spaces.Discrete(3)
    x = np.zeros(1)

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.x = self.np_random.uniform(-1, 1, 1)
        return self.x.copy(), {}

    def step(self, action: Any) -> Any:
        self.x = 0.9 * self.x + 0.1 * (int(action) - 1)
        return self.x.copy(), 0.0, False, False, {}


register_state_access(
    Slope, get=lambda env: env.x.copy(), set=lambda env, state: setattr(env, "x", np.array(state, dtype=float))
)


def test_a_correction_that_holds_for_some_cases_only_is_not_proposed() -> None:
    # Where the point does not move, the wrong map (every action stays) does no harm.
    result = run(Slope, Symmetry("mirror", catalog.cyclic(2), [[-1]], [[0, 1, 2]]), samples=200)
    failed = {one.name: one for one in result.properties}["transition_invariance"]
    corrections = [(cause.code, cause.fields) for cause in failed.causes if "SYM010" <= cause.code <= "SYM014"]
    # The mirror with its actions, or no mirror at all.
    assert corrections == [
        ("SYM012", {"permutation": [2, 1, 0]}),
        ("SYM014", {"sign": "+1", "coordinate": "observation[0]"}),
    ]


def test_cells_of_a_corridor_are_compared_as_whole_numbers() -> None:
    result = run(Room, Symmetry("flip", catalog.cyclic(2), [[4, 3, 2, 1, 0]], [[1, 0]]))
    assert result.verdict == "passed"


class SlipperyRoom(Room):
    """Pushes fail with a probability that may differ between the two sides."""

    slip = (0.2, 0.2)

    def step(self, action: Any) -> Any:
        if self.np_random.random() < self.slip[int(action)]:
            return self.x, 0.0, False, False, {}
        return super().step(action)


class UnevenRoom(SlipperyRoom):
    slip = (0.2, 0.26)


def test_distributions_over_a_few_states_are_compared_cell_by_cell() -> None:
    flip = Symmetry("flip", catalog.cyclic(2), [[4, 3, 2, 1, 0]], [[1, 0]])
    even, uneven = run(SlipperyRoom, flip, samples=5000), run(UnevenRoom, flip, samples=5000)
    assert even.verdict == "passed"
    failed = {one.name: one for one in uneven.properties}["transition_invariance"]
    assert (failed.verdict, failed.method) == ("failed", "distribution")
    moved = next(cause for cause in failed.causes if cause.code == "SYM047").fields["coordinates"]
    assert {f"[observation = {cell}]" for cell in range(4)} <= set(moved)
    assert any(note.code == "swap_test_rejected" for note in failed.notes)


def test_pairs_finished_before_an_interrupt_are_judged() -> None:
    def interrupt(event: Event) -> None:
        if isinstance(event, Progress) and event.what == "stepping both sides" and event.done >= 1000:
            raise KeyboardInterrupt

    sound, broken = run(emit=interrupt, samples=5000), run(symmetry=WRONG, emit=interrupt, samples=5000)
    for result in (sound, broken):
        assert result.interrupted
        assert result.properties[0].verdict == "proved"
        assert {one.name: one.verdict for one in result.properties}["initial_invariance"] == "undecided"
    verdicts = {one.name: one for one in sound.properties}
    assert verdicts["transition_invariance"].reason == Statement("interrupted", {"checked": 1000})
    assert {one.name: one.verdict for one in broken.properties}["transition_invariance"] == "failed"
    assert (sound.verdict, broken.verdict) == ("undecided", "failed")


def test_relations_of_data_are_proved_before_the_environment_is_explored() -> None:
    def interrupt(event: Event) -> None:
        if isinstance(event, PropertyFinished) and event.result.name == "group_axioms":
            raise KeyboardInterrupt

    result = run(emit=interrupt)
    assert [one.verdict for one in result.properties] == ["proved", *["undecided"] * 4]


def test_another_seed_draws_other_noise() -> None:
    flip = Symmetry("flip", catalog.cyclic(2), [[4, 3, 2, 1, 0]], [[1, 0]])
    p_values = {
        {one.name: one for one in run(SlipperyRoom, flip, samples=300, seed=seed).properties}[
            "transition_invariance"
        ].p_value
        for seed in range(4)
    }
    assert len(p_values) > 1


def test_a_state_kept_in_float32_is_judged_in_float32() -> None:
    valley = atlas.entry("mountaincar-continuous/valley").symmetry()
    result = run(lambda: gym.make("MountainCarContinuous-v0"), valley, samples=3000)
    transition = {one.name: one for one in result.properties}["transition_invariance"]
    assert transition.verdict == "failed"
    # Broken at walls and the goal, not by the rounding of the state to float32 everywhere.
    assert transition.violations < 1000
    assert "stops at its lower bound" in " ".join(map(str, transition.causes))


def test_a_start_that_never_differs_bounds_the_fraction_of_starts_that_do() -> None:
    result = run(Room, Symmetry("flip", catalog.cyclic(2), [[4, 3, 2, 1, 0]], [[1, 0]]))
    start = {one.name: one for one in result.properties}["initial_invariance"]
    assert start.bound is not None
    assert start.bound["kind"] == "violation_fraction"


@pytest.mark.parametrize("method", ["paired", "distribution", "trajectory"])
def test_every_method_passes_cartpole_and_fails_a_wrong_sign(method: str) -> None:
    sound = run(samples=2000, method=method)
    assert sound.verdict == "passed"
    assert sound.method_reason.code == f"method_{method}"
    assert run(symmetry=WRONG, samples=2000, method=method).verdict == "failed"


def test_a_wrong_map_of_a_few_cells_is_found_by_a_black_box() -> None:
    flip, stay = ([[4, 3, 2, 1, 0]], [[1, 0]]), ([[4, 3, 2, 1, 0]], [[0, 1]])
    right, wrong = (Symmetry("flip", catalog.cyclic(2), *maps) for maps in (flip, stay))
    corridor = lambda: gym.wrappers.TimeLimit(SlipperyRoom(), 30)  # noqa: E731
    assert run(corridor, right, samples=2000, method="trajectory").verdict == "passed"
    assert run(corridor, wrong, samples=2000, method="trajectory").verdict == "failed"


@pytest.mark.parametrize(
    ("split", "space"),
    [
        (
            lambda o: {"p": o[:2], "v": o[2:]},
            spaces.Dict(p=spaces.Box(-np.inf, np.inf, (2,)), v=spaces.Box(-np.inf, np.inf, (2,))),
        ),
        (
            lambda o: (o[:2], o[2:]),
            spaces.Tuple((spaces.Box(-np.inf, np.inf, (2,)), spaces.Box(-np.inf, np.inf, (2,)))),
        ),
    ],
    ids=["Dict", "Tuple"],
)
def test_an_observation_in_parts_is_not_taken_for_the_state(split: Any, space: Any) -> None:
    def parts(entry: Any) -> Any:
        return {"p": entry, "v": entry} if isinstance(space, spaces.Dict) else (entry, entry)

    env = lambda: gym.wrappers.TransformObservation(cartpole(), split, space)  # noqa: E731
    sound = Symmetry("mirror", catalog.cyclic(2), [parts([-1, -1])], [[1, 0]])
    assert run(env, sound, samples=1000).verdict == "passed"
    stated = Symmetry("mirror", catalog.cyclic(2), [parts([-1, -1])], [[1, 0]], state=[[-1] * 4])
    with_state = run(env, stated)
    assert (with_state.verdict, with_state.method_reason.code) == ("passed", "method_paired")


@pytest.mark.parametrize("form", [float, lambda x: (float(x),), lambda x: [float(x)], lambda x: np.array([x])])
def test_a_state_is_set_in_the_form_in_which_it_is_read(form: Any) -> None:
    class Walk(gym.Env[Any, Any]):
        observation_space = spaces.Box(-np.inf, np.inf, (1,), np.float64)
        action_space = spaces.Discrete(2)
        x = 0.0

        def get_state(self) -> Any:
            return form(self.x)

        def set_state(self, state: Any) -> None:
            assert type(state) is type(form(0.0)), type(state)
            self.x = float(state if isinstance(state, float) else state[0])

        def reset(self, *, seed: Any = None, options: Any = None) -> Any:
            super().reset(seed=seed)
            self.x = float(self.np_random.normal())
            return np.array([self.x]), {}

        def step(self, action: Any) -> Any:
            self.x = 0.5 * self.x + (1 if action else -1)
            return np.array([self.x]), -abs(self.x), False, False, {}

    flip = Symmetry("flip", catalog.cyclic(2), [[-1]], [[1, 0]])
    assert run(Walk, flip).verdict == "passed"
    explicit = Symmetry("flip", catalog.cyclic(2), [[-1]], [[1, 0]], state=[[-1]])
    assert run(Walk, explicit).verdict == "passed"
