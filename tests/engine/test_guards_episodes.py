"""Episodes, starts, tables and maps say the same where a comparison could have shown nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from guards_table import (
    ASKED,
    MIRROR,
    STILL_CLAIM,
    TABLE,
    THIRD_STAYS,
    Cell,
    World,
    check,
    judged,
    listening,
    press_ctrl_c,
    world,
)
from gymnasium import spaces

from symcheck.engine.clock import Clock
from symcheck.engine.environments.runner import run_env
from symcheck.engine.events import Event, PropertyStarted
from symcheck.engine.options import EnvOptions
from symcheck.engine.results import PropertyResult
from symcheck.errors import SpecError
from symcheck.groups import catalog
from symcheck.symmetry.symmetry import Symmetry

C2 = catalog.cyclic(2)
ONLY_ACTIONS = Symmetry("actions", C2, [[1, 1]], [[1, 0]])


def cells(method: str) -> list[Any]:
    """The cells of a method that hold a verdict."""
    return [pytest.param(guard, cell, id=guard) for guard, cell in TABLE[method].items() if isinstance(cell, Cell)]


def interrupting(name: str) -> Callable[[Event], None]:
    """A listener that ends the run before a property."""

    def listen(event: Event) -> None:
        if isinstance(event, PropertyStarted) and event.name == name:
            raise KeyboardInterrupt

    return listen


def named(make: Any, symmetry: Symmetry, *names: str, emit: Any = None, **options: Any) -> list[PropertyResult]:
    """The results of these properties."""
    given = EnvOptions(**{"samples": 600, **options})
    run = run_env(make, symmetry, options=given, target="world", command="", emit=emit)
    return [result for result in run.properties if result.name in names]


class Unset(World):
    """The same point, whose state nobody can set, with noise and a time limit."""

    noise = 0.1


class Skewed(Unset):
    """It starts on one side, and is pushed to it."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        """Start to the right."""
        super().reset(seed=seed)
        self.s = self.s + np.array([0.5, 0.5])
        return self.s.copy(), {}

    def step(self, action: Any) -> Any:
        """Push, and push to the right once more."""
        _, reward, over, cut, info = super().step(action)
        self.s = self.s + np.array([0.0, 0.3])
        return self.show(), reward, over, cut, info


@pytest.mark.parametrize(("guard", "cell"), cells("trajectory"))
def test_whole_episodes_say_what_their_cell_says(guard: str, cell: Cell) -> None:
    options: dict[str, Any] = {
        "nothing moves": {"symmetry": STILL_CLAIM},
        "NaN in one coordinate": {"symmetry": THIRD_STAYS},
        "time up": {"max_time": 1e-9},
        "interrupted": {"emit": listening("playing episodes", press_ctrl_c)},
        "fail fast": {"fail_fast": True, "samples": 4000},
    }.get(guard, {})
    base = Skewed if guard == "hidden state" else Unset
    results = judged(world(guard, base), guard, method="trajectory", **options)
    if guard == "fail fast":  # the end is what fails, and the reward is what nobody decided any more
        results = named(world(guard, base), MIRROR, "reward_invariance", method="trajectory", **options)
    check(results, cell)
    if cell.reason == "nan_only":
        shown = {result.reason.fields["value"] for result in results if result.reason}
        assert shown == {"infinite" if guard == "infinite rewards" else "NaN"}


def test_episodes_without_a_fault_pass_without_a_reason() -> None:
    check(judged(world("", Unset), "nothing moves", method="trajectory"), Cell("passed"))


class Apart(gym.Env[Any, Any]):
    """Two numbers that wander apart or together; each alone says nothing about their distance, which is paid."""

    observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float64)
    action_space = spaces.Box(-1.0, 1.0, (2,), np.float64)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        """Anywhere in a square."""
        super().reset(seed=seed)
        self.at, self.left = self.np_random.uniform(-1.0, 1.0, 2), 10
        return self.at.copy(), {}

    def step(self, action: Any) -> Any:
        """Pay for the distance before the step."""
        reward, self.left = float(abs(self.at[0] - self.at[1])), self.left - 1
        self.at = 0.9 * self.at + 0.1 * np.asarray(action)
        return self.at.copy(), reward, self.left == 0, False, {}


@pytest.mark.parametrize(("entry", "verdict"), [([-1, 1], "failed"), ([1, 0], "passed")])
def test_what_two_coordinates_do_together_shows_in_episodes(entry: list[int], verdict: str) -> None:
    (reward,) = named(Apart, Symmetry("one", C2, [entry], [entry]), "reward_invariance", samples=1500)
    assert (reward.method, reward.verdict) == ("trajectory", verdict)


@pytest.mark.parametrize(("steps", "verdict"), [(1780, "undecided"), (2480, "passed")])
def test_time_that_ends_before_half_of_the_steps_asked_for_decides_nothing(
    steps: int, verdict: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    played: list[int] = []

    class Slow(Unset):
        def step(self, action: Any) -> Any:
            played.append(1)
            return super().step(action)

    # Playing ends at nine tenths of the budget; what comes after it has the rest. Up to 180 steps come before it, in
    # episodes that are repeated under one seed.
    monkeypatch.setattr(Clock, "in_time", lambda clock, share=1.0: share == 1.0 or len(played) < steps)
    for result in judged(Slow, "time up", method="trajectory", max_time=60.0, samples=600):
        assert result.checked >= 16  # episodes: more than the eight pairs that any test needs
        check([result], Cell(verdict, "time_up" if verdict == "undecided" else None))


def test_a_black_box_whose_start_is_not_claimed_is_not_accused_of_its_dynamics() -> None:
    unclaimed = Symmetry("mirror", C2, [[-1, -1]], [[1, 0]], initial=False)
    (result,) = named(Skewed, unclaimed, "transition_invariance", method="trajectory")
    check([result], Cell("undecided", "start_asymmetric"))
    assert result.reason is not None
    assert result.reason.fields["start"] == "unclaimed"


class Counted(World):
    """Starts further to the right with every episode that was played."""

    episodes = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        """Start where the seed says, and a little further to the right each time."""
        super().reset(seed=seed)
        type(self).episodes += 1
        self.s = self.s + 0.01 * self.episodes
        return self.s.copy(), {}


def _starting(**attributes: Any) -> type[World]:
    def reset(self: Any, *, seed: int | None = None, options: Any = None) -> Any:
        World.reset(self, seed=seed)
        return attributes["show"](self.s), {}

    return type("Starting", (World,), {"reset": reset})


STARTS: dict[str, type[World]] = {
    "NaN observations": _starting(show=lambda s: np.full(2, np.nan)),
    "NaN rewards and observations": _starting(show=lambda s: np.full(2, np.nan)),
    "NaN in one coordinate": world("NaN in one coordinate"),
    "NaN on one side": _starting(show=lambda s: np.full(2, np.nan) if s[0] > 0 else s.copy()),
    "infinity on one side": _starting(show=lambda s: np.full(2, np.inf) if s[0] > 0 else s.copy()),
    "hidden state": Counted,
    "fail fast": world("fail fast"),
}


@pytest.mark.parametrize(("guard", "cell"), cells("start"))
def test_starts_say_what_their_cell_says(guard: str, cell: Cell) -> None:
    options: dict[str, Any] = {
        "time up": {"max_time": 1e-9},
        "interrupted": {"emit": interrupting("initial_invariance")},
        "fail fast": {"fail_fast": True},
    }.get(guard, {})
    claim = {"nothing moves": STILL_CLAIM, "NaN in one coordinate": THIRD_STAYS}.get(guard, MIRROR)
    check(named(STARTS.get(guard, World), claim, "initial_invariance", method="trajectory", **options), cell)


def test_a_start_that_is_infinite_on_both_sides_is_not_compared() -> None:
    make = _starting(show=lambda s: np.full(2, np.inf))
    (result,) = named(make, ONLY_ACTIONS, "initial_invariance", method="trajectory")
    check([result], Cell("undecided", "nan_only"))
    assert result.reason is not None
    assert result.reason.fields == {"quantity": "start", "value": "infinite"}


def test_a_start_that_is_always_the_same_point_is_said_to_be_constant() -> None:
    check(
        named(_starting(show=lambda s: 0.0 * s), MIRROR, "initial_invariance", method="trajectory"),
        Cell("passed", "constant"),
    )


@pytest.mark.parametrize("method", ["paired", "trajectory"])
def test_a_claim_that_moves_actions_only_has_its_start_passed(method: str) -> None:
    """Every start is its own image, and yet the run compares something."""
    check(named(World, ONLY_ACTIONS, "initial_invariance", method=method), Cell("passed"))


class Table(gym.Env[Any, Any]):
    """Two states and two actions, exchanged by the claim; the action decides where it leads."""

    observation_space, action_space = spaces.Discrete(2), spaces.Discrete(2)

    def __init__(self, reward: Callable[[int, int], float], end: Callable[[int, int], bool]) -> None:
        self.P = {s: {a: [(1.0, a, reward(s, a), end(s, a))] for a in (0, 1)} for s in (0, 1)}
        self.initial_state_distrib = np.array([0.5, 0.5])
        self.s = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        """Start in either state."""
        super().reset(seed=seed)
        self.s = int(self.np_random.integers(2))
        return self.s, {}

    def step(self, action: Any) -> Any:
        """Go where the action says."""
        _, self.s, reward, end = self.P[self.s][int(action)][0]
        return self.s, reward, end, False, {}


SWAP = Symmetry("swap", C2, [[1, 0]], [[1, 0]])
KEEP = Symmetry("keep", C2, [[0, 1]], [[0, 1]])
REWARDS: dict[str, Callable[[int, int], float]] = {
    "NaN rewards": lambda s, a: np.nan,
    "infinite rewards": lambda s, a: np.inf,
    "mirrored infinities": lambda s, a: np.inf if s == a else 0.0,
    "NaN on one side": lambda s, a: np.nan if s else 0.0,
    "infinity on one side": lambda s, a: np.inf if s else 0.0,
    "constant reward": lambda s, a: 1.0,
    "fail fast": lambda s, a: float(s),
}


@pytest.mark.parametrize(("guard", "cell"), cells("exact"))
def test_tables_say_what_their_cell_says(guard: str, cell: Cell) -> None:
    def make() -> Table:
        ends = (lambda s, a: False) if guard == "no end" else (lambda s, a: s == a)
        return Table(REWARDS.get(guard, lambda s, a: float(s == a)), ends)

    claim = KEEP if guard == "nothing moves" else SWAP
    options: dict[str, Any] = {
        "interrupted": {"emit": interrupting("transition_invariance")},
        "fail fast": {"fail_fast": True},
    }.get(guard, {})
    names = ASKED.get(guard, ("reward_invariance",))
    results = named(make, claim, *names, **options)
    check(results, cell)
    if guard not in ("interrupted", "fail fast"):
        assert {result.method for result in results} == {"exact"}


def test_the_start_of_a_table_follows_the_same_guards() -> None:
    def make() -> Table:
        return Table(lambda s, a: float(s == a), lambda s, a: s == a)

    check(named(make, KEEP, "initial_invariance"), Cell("undecided", "nothing_moves"))
    check(named(make, SWAP, "initial_invariance"), Cell("proved"))
    check(named(make, Symmetry("actions", C2, [[0, 1]], [[1, 0]]), "initial_invariance"), Cell("proved"))

    def unknown() -> Table:
        table = make()
        del table.initial_state_distrib
        return table

    check(named(unknown, SWAP, "initial_invariance"), Cell("undecided", "start_unknown"))


MAPS: dict[str, Callable[[Any], Any]] = {
    "NaN on one side": lambda obs: np.where(obs > 0, np.nan, -obs),
    "infinity on one side": lambda obs: np.where(obs > 0, np.inf, -obs),
    "nothing moves": lambda obs: obs,
    "NaN in one coordinate": lambda obs: obs * [-1.0, -1.0, 1.0],
}


@pytest.mark.parametrize(("guard", "cell"), cells("axioms"))
def test_maps_say_what_their_cell_says(guard: str, cell: Cell) -> None:
    make = _starting(show=lambda s: np.full(2, np.nan)) if guard.startswith("NaN") and guard not in MAPS else World
    make = type("Blank", (make,), {"show": lambda self: np.full(2, np.nan)}) if make is not World else World
    make = world(guard) if guard == "NaN in one coordinate" else make
    still = guard == "nothing moves"
    claim = Symmetry("map", C2, [MAPS.get(guard, lambda obs: -obs)], [(lambda a, obs: a) if still else [1, 0]])
    emit = interrupting("group_axioms") if guard == "interrupted" else None
    check(named(make, claim, "group_axioms", method="trajectory", emit=emit), cell)


class OneSided(gym.Env[Any, Any]):
    """A drifting point that pays on one side of the mirror, or on both."""

    def __init__(self, *sides: int) -> None:
        self.sides = sides
        self.observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float64)
        self.action_space = spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self.state = self.np_random.uniform(-1, 1, 2)
        return self.state.copy(), {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        x, v = self.state
        v = 0.9 * v + 0.1 * (2 * action - 1) + 0.1 * self.np_random.normal()
        self.state = np.array([x + 0.1 * v, v])
        return self.state.copy(), float(abs(x) > 0.5 and np.sign(x) in self.sides), False, False, {}


@pytest.mark.parametrize("samples", [100, 1000])
@pytest.mark.parametrize(("sides", "verdict"), [((1,), "failed"), ((-1, 1), "passed")])
def test_the_fewest_episodes_are_enough_to_reject(samples: int, sides: tuple[int, ...], verdict: str) -> None:
    mirror = Symmetry("mirror", C2, observation=[[-1, -1]], action=[[1, 0]])
    (result,) = named(lambda: OneSided(*sides), mirror, "reward_invariance", samples=samples)
    assert (result.method, result.verdict) == ("trajectory", verdict), result.detail


class Crossed(OneSided):
    """Fresh noise, plus the state times the action: no mean differs under one action or on one side alone."""

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self.state = self.np_random.uniform(-1, 1, 2) + len(self.sides) * self.state * (2 * action - 1)
        return self.state.copy(), 0.0, False, False, {}


@pytest.mark.parametrize(("sides", "verdict"), [((1,), "failed"), ((), "passed")])
def test_the_fewest_episodes_are_enough_for_the_learned_feature(sides: tuple[int, ...], verdict: str) -> None:
    mirror = Symmetry("mirror", C2, observation=[[-1, -1]], action=[[1, 0]])
    (result,) = named(lambda: gym.wrappers.TimeLimit(Crossed(*sides), 10), mirror, "transition_invariance", samples=100)
    assert result.verdict == verdict
    if sides:
        assert result.counterexample is not None
        assert "as learned on half of the episodes" in result.counterexample.where


class Throttle(Unset):
    """Actions from 0 to 5 have no effect; their mirror image is no action, but 5 - a is."""

    action_space = spaces.Box(np.array([0.0], np.float32), np.array([5.0], np.float32))

    def step(self, action: Any) -> Any:
        return super().step(self.t % 2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.s *= 0.0
        return self.s.copy(), {}


def test_an_action_map_that_leaves_the_action_space_is_refused_though_no_image_is_stepped() -> None:
    def claim_with(action: Any) -> Symmetry:
        return Symmetry("mirror", C2, [[1, 1]], [action])

    options = EnvOptions(samples=300, method="trajectory")
    with pytest.raises(SpecError, match="leaves the action space"):
        run_env(Throttle, claim_with([-1]), options=options, target="throttle", command="")
    held = run_env(
        Throttle, claim_with({"signs": [-1], "offset": [5.0]}), options=options, target="throttle", command=""
    )
    assert "failed" not in {item.verdict for item in held.properties}
