"""What every method must say where a comparison could have shown nothing: one table, a row a method, a cell a guard.

A cell holds the verdict and the code of its reason; a text says why the guard cannot be met by that method. A method
without a row, or a row without a cell, fails `test_guards_pairs.py`: `registry.methods` lists what registered itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium import spaces

import symcheck_properties  # noqa: F401
from symcheck.engine.environments.runner import run_env
from symcheck.engine.events import Emit, Progress
from symcheck.engine.options import EnvOptions
from symcheck.engine.results import PropertyResult
from symcheck.envs.state_access import register_state_access
from symcheck.groups import catalog
from symcheck.symmetry.symmetry import Symmetry

GUARDS = (
    "NaN rewards",
    "NaN observations",
    "NaN rewards and observations",
    "infinite rewards",
    "mirrored infinities",
    "NaN in one coordinate",
    "NaN on one side",
    "infinity on one side",
    "nothing moves",
    "constant reward",
    "no end",
    "too few",
    "time up",
    "interrupted",
    "fail fast",
    "hidden state",
    "unrepeatable",
)


class Cell(NamedTuple):
    """What a method says of one property: its verdict, and the code of the reason (None for none)."""

    verdict: str
    reason: str | None = None


SILENT = Cell("passed", "silent_coordinates")
NAN, STILL, CONSTANT = Cell("undecided", "nan_only"), Cell("undecided", "nothing_moves"), Cell("passed", "constant")
PASSED, FAILED = Cell("passed"), Cell("failed")
_ALL_STEPPED = "all samples that are asked for are stepped unless the time is up"

TABLE: dict[str, dict[str, Cell | str]] = {
    "paired": {
        "NaN rewards": NAN,
        "NaN observations": NAN,
        "NaN rewards and observations": NAN,
        "infinite rewards": NAN,
        "mirrored infinities": PASSED,
        "NaN in one coordinate": SILENT,
        "NaN on one side": FAILED,
        "infinity on one side": FAILED,
        "nothing moves": STILL,
        "constant reward": CONSTANT,
        "no end": CONSTANT,
        "too few": _ALL_STEPPED,
        "time up": Cell("undecided", "time_up"),
        "interrupted": Cell("undecided", "interrupted"),
        "fail fast": Cell("undecided", "fail_fast"),
        "hidden state": Cell("undecided", "hidden_state"),
        "unrepeatable": Cell("undecided", "not_repeatable"),
    },
    "distribution": {
        "NaN rewards": NAN,
        "NaN observations": NAN,
        "NaN rewards and observations": NAN,
        "infinite rewards": NAN,
        "mirrored infinities": PASSED,
        "NaN in one coordinate": SILENT,
        "NaN on one side": FAILED,
        "infinity on one side": FAILED,
        "nothing moves": STILL,
        "constant reward": CONSTANT,
        "no end": CONSTANT,
        "too few": _ALL_STEPPED,
        "time up": Cell("undecided", "time_up"),
        "interrupted": Cell("undecided", "interrupted"),
        "fail fast": Cell("undecided", "fail_fast"),
        "hidden state": Cell("undecided", "hidden_state_in_distribution"),
        "unrepeatable": "outcomes are random there: a difference that does not repeat is noise",
    },
    "trajectory": {
        "NaN rewards": NAN,
        "NaN observations": NAN,
        "NaN rewards and observations": NAN,
        "infinite rewards": NAN,
        "mirrored infinities": PASSED,
        "NaN in one coordinate": SILENT,
        "NaN on one side": FAILED,
        "infinity on one side": FAILED,
        "nothing moves": STILL,
        "constant reward": CONSTANT,
        "no end": CONSTANT,
        "too few": "episodes are played until there are eight pairs, unless the time is up",
        "time up": Cell("undecided", "time_up"),
        "interrupted": Cell("undecided", "interrupted"),
        "fail fast": Cell("undecided", "fail_fast"),
        "hidden state": Cell("undecided", "start_asymmetric"),
        "unrepeatable": "episodes are compared in distribution, and need not repeat",
    },
    "start": {
        "NaN rewards": "a start pays nothing",
        "NaN observations": NAN,
        "NaN rewards and observations": NAN,
        "infinite rewards": "a start pays nothing",
        "mirrored infinities": "a start pays nothing",
        "NaN in one coordinate": SILENT,
        "NaN on one side": FAILED,
        "infinity on one side": FAILED,
        "nothing moves": STILL,
        "constant reward": "a start pays nothing; that every episode starts alike is tested beside this table",
        "no end": "a start ends nothing",
        "too few": "at least 200 pairs of resets are drawn, unless the time is up",
        "time up": Cell("undecided", "time_up"),
        "interrupted": Cell("undecided", "interrupted"),
        "fail fast": Cell("undecided", "fail_fast"),
        "hidden state": Cell("undecided", "start_follows_past"),
        "unrepeatable": "starts are compared in distribution, and need not repeat",
    },
    "exact": {
        "NaN rewards": NAN,
        "NaN observations": "states of a table are counted, so that none is NaN",
        "NaN rewards and observations": "states of a table are counted, so that none is NaN",
        "infinite rewards": NAN,
        "mirrored infinities": Cell("proved"),
        "NaN in one coordinate": "states of a table are counted, so that none is NaN",
        "NaN on one side": FAILED,
        "infinity on one side": FAILED,
        "nothing moves": STILL,
        "constant reward": Cell("proved", "constant"),
        "no end": Cell("proved", "constant"),
        "too few": "every case is enumerated",
        "time up": "every case is enumerated, whatever the time",
        "interrupted": Cell("undecided", "interrupted"),
        "fail fast": Cell("undecided", "fail_fast"),
        "hidden state": "an environment that does not follow its table is not enumerated",
        "unrepeatable": "probabilities are compared, not outcomes",
    },
    "axioms": {
        "NaN rewards": "maps act on no reward",
        "NaN observations": NAN,
        "NaN rewards and observations": NAN,
        "infinite rewards": "maps act on no reward",
        "mirrored infinities": "maps act on no reward",
        "NaN in one coordinate": PASSED,
        "NaN on one side": FAILED,
        "infinity on one side": FAILED,
        "nothing moves": PASSED,
        "constant reward": "maps act on no reward",
        "no end": "maps end nothing",
        "too few": "a pool holds at least one state, and one refutes",
        "time up": "the first step of a rollout is taken, whatever the time",
        "interrupted": Cell("undecided", "interrupted"),
        "fail fast": "it is the first property of a run",
        "hidden state": "maps are applied, and nothing is stepped",
        "unrepeatable": "maps are applied, and nothing is stepped",
    },
}


class World(gym.Env[Any, Any]):
    """A damped point on a line, pushed left or right; subclasses spoil one thing each."""

    observation_space: spaces.Space[Any] = spaces.Box(-np.inf, np.inf, (2,), np.float64)
    action_space: spaces.Space[Any] = spaces.Discrete(2)
    noise = 0.0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        """Start near the centre."""
        super().reset(seed=seed)
        self.t, self.s = 0, self.np_random.uniform(-0.5, 0.5, 2)
        return self.s.copy(), {}

    def step(self, action: Any) -> Any:
        """Push, pay for where it was, and show."""
        x, v = self.s
        reward = self.pay(x)
        v = 0.9 * v + (0.3 if action else -0.3) + self.noise * self.np_random.normal()
        self.s, self.t = np.array([x + 0.1 * v, v]), self.t + 1
        return self.show(), reward, self.over(), self.t >= 30, {}

    def pay(self, x: float) -> float:
        """The reward."""
        return float(x * x)

    def show(self) -> Any:
        """The next observation."""
        return self.s.copy()

    def over(self) -> bool:
        """Whether the episode ends."""
        return bool(abs(self.s[0]) > 1)


def _put(env: Any, held: Any) -> None:
    env.s, env.t = np.array(held, dtype=float)[:2], 0


register_state_access(World, set=_put)


class Late(World):
    """A push that weakens as an episode goes on, which setting a state does not bring back."""

    def step(self, action: Any) -> Any:
        """Push as hard as is left."""
        _, reward, over, cut, info = super().step(action)
        self.s[1] *= 0.9**self.t
        return self.show(), reward, over, cut, info


class NowAndThen(World):
    """Pays twice at one step in 97, whatever the state, once `began` is set: controls have seen nothing by then."""

    steps, began = 0, False

    def pay(self, x: float) -> float:
        """The reward, or twice as much."""
        type(self).steps += self.began
        return float(x * x) * (2 if self.began and self.steps % 97 == 0 else 1)


def _pays(reward: Callable[[float], float]) -> dict[str, Any]:
    return {"pay": lambda self, x: reward(x)}


def _nan_shown(self: Any) -> Any:
    return np.full(2, np.nan)


def _reset_silent(self: Any, *, seed: int | None = None, options: Any = None) -> Any:
    World.reset(self, seed=seed)
    return self.show(), {}


SILENT_THIRD: dict[str, Any] = {
    "observation_space": spaces.Box(-np.inf, np.inf, (3,), np.float64),
    "reset": _reset_silent,
    "show": lambda self: np.append(self.s, np.nan),
}
"""A third coordinate that is NaN in every observation."""

MIRROR = Symmetry("mirror", catalog.cyclic(2), [[-1, -1]], [[1, 0]])
THIRD_STAYS = Symmetry("mirror", catalog.cyclic(2), [[-1, -1, 1]], [[1, 0]])
STILL_CLAIM = Symmetry("nothing", catalog.cyclic(2), [[1, 1]], [[0, 1]])

SPOILED: Mapping[str, dict[str, Any]] = {
    "NaN rewards": _pays(lambda x: np.nan),
    "NaN observations": {"show": _nan_shown},
    "NaN rewards and observations": {"show": _nan_shown, **_pays(lambda x: np.nan)},
    "infinite rewards": _pays(lambda x: np.inf),
    "mirrored infinities": _pays(lambda x: np.inf if abs(x) > 0.2 else 0.0),
    "NaN in one coordinate": SILENT_THIRD,
    "NaN on one side": _pays(lambda x: np.nan if x > 0.1 else 0.0),
    "infinity on one side": _pays(lambda x: np.inf if x > 0.1 else 0.0),
    "constant reward": _pays(lambda x: 1.0),
    "no end": {"over": lambda self: False},
    "fail fast": {"over": lambda self: bool(self.s[0] > 0.1)},
}
"""What is wrong with the world of a guard, as attributes of a subclass of `World`."""

ASKED: Mapping[str, tuple[str, ...]] = {
    "NaN observations": ("transition_invariance",),
    "NaN rewards and observations": ("reward_invariance", "transition_invariance"),
    "NaN in one coordinate": ("transition_invariance",),
    "nothing moves": ("reward_invariance", "transition_invariance", "termination_invariance"),
    "no end": ("termination_invariance",),
    "time up": ("transition_invariance",),
    "interrupted": ("transition_invariance",),
    "fail fast": ("transition_invariance",),
    "hidden state": ("transition_invariance",),
}
"""The properties that a guard is about; the reward where it is not named."""


def listening(during: str, then: Callable[[], None]) -> Emit:
    """A listener that does something when progress is reported on something."""

    def listen(event: Any) -> None:
        if isinstance(event, Progress) and event.what == during:
            then()

    return listen


def press_ctrl_c() -> None:
    """What a user does who has waited long enough."""
    raise KeyboardInterrupt


def world(guard: str, base: type[World] = World, **attributes: Any) -> type[World]:
    """The world of a guard."""
    return type("Spoiled", (base,), {**SPOILED.get(guard, {}), **attributes})


def judged(
    make: Callable[[], gym.Env[Any, Any]],
    guard: str,
    *,
    symmetry: Symmetry = MIRROR,
    emit: Emit | None = None,
    **options: Any,
) -> list[PropertyResult]:
    """The results that a guard is about."""
    given = EnvOptions(**{"samples": 1000, **options})
    run = run_env(make, symmetry, options=given, target="world", command="", emit=emit)
    names = ASKED.get(guard, ("reward_invariance",))
    return [result for result in run.properties if result.name in names]


def check(results: list[PropertyResult], cell: Cell) -> None:
    """Assert that every result is the cell's."""
    assert results
    for result in results:
        reason = None if result.reason is None else result.reason.code
        assert (result.verdict, reason) == cell, (result.name, result.detail)
        assert result.verdict in ("passed", "proved") or result.bound is None or result.bound["kind"] == "value_gap"
        assert result.facts is not None
