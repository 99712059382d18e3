"""The environment as a function from (state, action) to the next state, and the states to evaluate it on.

All access of the search to an environment goes through this module: outcomes from set states (medians if steps are
random), a pool of states from episodes and exploration, and the spread of each coordinate over the pool.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import gymnasium as gym
import numpy as np

from symcheck.array_types import Bools, Floats
from symcheck.discovery.action_values import values_of
from symcheck.discovery.options import DiscoverOptions
from symcheck.discovery.scales import half_widths
from symcheck.engine.clock import seconds_from
from symcheck.engine.environments.cases.pool import Pool, gather, roll_out
from symcheck.engine.environments.controls.determinism import check_determinism
from symcheck.engine.environments.subject.placement import Placement
from symcheck.engine.events import Emit, Progress, ignore
from symcheck.envs.state_access.access import find_state_access
from symcheck.envs.stepping.stepper import Stepper
from symcheck.errors import TargetError
from symcheck.groups import catalog
from symcheck.spaces.values import numeric
from symcheck.symmetry.symmetry import Symmetry

Kind = Literal["deterministic", "stochastic", "black box"]

_POOL_SAMPLES = 4000  # the pool size that verification uses for this number of pairs
_REPEATS = 33  # odd, so that the median of integers is an integer
_MEASURED = 16  # number of steps that are repeated to measure noise
_OTHER = 10_007  # offset added to the seed
_GATHERING = 0.15  # of the time budget
_EPISODES, _SHORT = 100, 8  # minimum number of episodes, and the length of the additional ones
MOST_COMPONENTS = 128  # of a state vector; Humanoid has 47


@dataclass(frozen=True)
class Outcomes:
    """The outcomes of many steps.

    Attributes:
        states: shape (n, dim): the next state, or the next observation if that is the state.
        observations: shape (n, dim of observations).
        rewards: shape (n,).
        ended: whether the step ended the episode, 0 or 1, shape (n,); a fraction if steps are random.
        settled: whether reward and termination were the same each time, shape (n,).
    """

    states: Floats
    observations: Floats
    rewards: Floats
    ended: Floats
    settled: Bools


class Laboratory:
    """The search's access to one environment.

    Args:
        make_env: builds it with the user's wrappers.
        label: names it in messages.
        options: seed and time budget.
        emit: receives progress.

    Attributes:
        alpha: the alpha of the whole search.
        values: the literals of integer actions; None for other action spaces.
        stepper: steps the environment.
        pool: the visited states.
        states: the pool's states as vectors, shape (n, dim); no rows if states cannot be set or are not numeric.
        is_start: whether each of them begins an episode, shape (n,).
        dim: length of a state vector; 0 for a black box.
        kind: whether steps from set states repeat or are random, or states cannot be set at all.
        why: the kind in words.
        shows_state: whether the observation is the state.
        spread: per state coordinate, half the width of the middle 90% of the pool; 0 if it never changes.
        repeats: how often each step is repeated.

    Raises:
        TargetError: the environment cannot be stepped.
    """

    def __init__(
        self,
        make_env: Callable[[], gym.Env[Any, Any]],
        label: str,
        options: DiscoverOptions,
        emit: Emit | None = None,
    ) -> None:
        self._started = time.monotonic()
        self._budget = seconds_from(self._started, options.max_time)
        self.emit: Emit = emit or ignore
        self.label = label
        self.alpha = options.alpha
        env = make_env()
        env.action_space.seed(options.seed + _OTHER)  # verification uses `seed` itself, so its samples are independent
        self.action_space = env.action_space
        self.values = values_of(env.action_space)
        self.observation_space = env.observation_space
        self.stepper = Stepper(env, find_state_access(env.unwrapped), label, seed=options.seed + _OTHER)
        nothing = Symmetry("identity", catalog.trivial(), ["identity"], ["identity"], state=["identity"])
        bound = nothing.bind(env.observation_space, env.action_space)
        self.rng = np.random.default_rng([options.seed, 7])
        self.placement = Placement(self.stepper, bound)
        self.pool: Pool = gather(
            self.stepper, self.placement, _POOL_SAMPLES, self.rng, lambda: self.in_time(_GATHERING)
        )
        self._begin_episodes()
        self._cut_short = not self.in_time(_GATHERING)
        self.shows_state = self.placement.kind == "observation" or self._observation_is_state()
        self.kind, self.why = self._kind()
        self.repeats = _REPEATS if self.kind == "stochastic" else 1
        # Defined before `_vectors`, which fills it.
        self.is_start = np.zeros(0, dtype=bool)
        self.states = self._vectors() if self.kind != "black box" else np.zeros((0, 0))
        if self.states.shape[1] > MOST_COMPONENTS:
            self.kind, self.why = "black box", f"its state has {self.states.shape[1]} components"
            self.states = np.zeros((0, 0))
        self.dim = self.states.shape[1]
        self.spread = half_widths(self.states)

    def in_time(self, share: float = 1.0) -> bool:
        """Whether the given share of the time budget is not used up."""
        left = self.seconds_left(share)
        return left is None or left > 0

    def seconds_left(self, share: float = 1.0) -> float | None:
        """Seconds left of the given share of the time budget; None if there is no limit."""
        return None if self._budget is None else share * self._budget - (time.monotonic() - self._started)

    def progress(self, done: int, total: int, what: str) -> None:
        """Report progress to listeners."""
        self.emit(Progress(done, total, what))

    @property
    def is_whole(self) -> bool:
        """Whether states are integers."""
        return bool(len(self.states) and (self.states == np.round(self.states)).all())

    @cached_property
    def state_shape(self) -> tuple[int, ...]:
        """The shape of a state as it is set; () if it is not an array."""
        access = self.stepper.access
        if access is None or access.get is None:
            return self.observation_space.shape or () if access is not None else ()
        return self._form.shape if isinstance(self._form, np.ndarray) else ()

    @cached_property
    def is_single(self) -> bool:
        """Whether next states are float32 numbers."""
        states = self.states[:4]
        followed = self.outcomes(states, self.draw_actions(len(states))).states
        return bool((followed.astype(np.float32).astype(np.float64) == followed).all())

    @cached_property
    def noise(self) -> tuple[Floats, float]:
        """The standard deviation of outcomes due to noise: of each state coordinate, and of the reward."""
        if self.kind != "stochastic":
            return np.zeros(self.dim), 0.0
        states = self.states[self.rng.integers(len(self.states), size=_MEASURED)]
        return self._repeat_steps(states, self.draw_actions(_MEASURED))

    def noise_at(self, state: Floats, action: Any) -> Floats:
        """The standard deviation of each state coordinate after steps from one state, which may differ from others.

        A goal that is redrawn when it is reached is random only there, regardless of `kind`.
        """
        return self._repeat_steps(np.repeat(state[None], _MEASURED, axis=0), [action] * _MEASURED)[0]

    def _repeat_steps(self, states: Floats, actions: list[Any]) -> tuple[Floats, float]:
        first, second = self.outcomes(states, actions), self.outcomes(states, actions)
        # A difference of two outcomes has twice the variance of one.
        moved = np.sqrt((self.difference(first.states, second.states) ** 2).mean(axis=0) / 2)
        paid = float(np.sqrt(((first.rewards - second.rewards) ** 2).mean() / 2))
        return moved, paid

    @property
    def starts(self) -> Floats:
        """The states that begin an episode, shape (n, dim)."""
        return self.states[self.is_start]

    @property
    def ending_steps(self) -> Iterator[tuple[Floats, Any]]:
        """State vectors and actions of visited steps that ended an episode."""
        for visit in self.pool.visits:
            vector = numeric(visit.situation.state) if visit.step.terminated else None
            if vector is not None and len(vector) == self.dim and np.isfinite(vector).all():
                yield vector, visit.action

    @property
    def was_cut_short(self) -> bool:
        """Whether the time budget ended the collection of states."""
        return self._cut_short

    def draw_actions(self, count: int) -> list[Any]:
        """Uniform actions."""
        return [self.action_space.sample() for _ in range(count)]

    def outcomes(self, states: Floats, actions: Sequence[Any], *, most: int = _REPEATS) -> Outcomes:
        """Set states and step; medians over repetitions if steps are random.

        Args:
            states: shape (n, dim).
            actions: n actions.
            most: the maximum number of repetitions of a step.

        Returns:
            The outcomes.

        Raises:
            TargetError: the environment rejects a state or an action.
        """
        repeats = min(most, self.repeats)
        raws = [raw for state in states for raw in [self.raw(state)] * repeats]
        steps = self.stepper.outcomes(raws, [action for action in actions for _ in range(repeats)])
        followed = steps.flat if steps.states is None else steps.states
        ended = steps.terminated.astype(np.float64)
        if repeats == 1:
            return Outcomes(followed, steps.flat, steps.rewards, ended, np.ones(len(states), dtype=bool))
        by_step = (len(states), repeats)
        rewards, ended = steps.rewards.reshape(by_step), ended.reshape(by_step)
        return Outcomes(
            np.median(followed.reshape(*by_step, -1), axis=1),
            np.median(steps.flat.reshape(*by_step, -1), axis=1),
            np.median(rewards, axis=1),
            ended.mean(axis=1),
            (rewards == rewards[:, :1]).all(axis=1) & (ended == ended[:, :1]).all(axis=1),
        )

    def raw(self, state: Floats) -> Any:
        """A state vector in the form that the setter accepts."""
        access = self.stepper.access
        if access is None:
            raise TargetError("the state of a black box cannot be set.", where=self.label)
        if access.get is None:
            return state.astype(self.observation_space.dtype).reshape(self.observation_space.shape)
        form = self._form
        if isinstance(form, np.ndarray):
            return state.astype(form.dtype).reshape(form.shape)
        if isinstance(form, tuple | list):
            return type(form)(state.tolist())
        return type(form)(state[0])  # a single number

    @cached_property
    def _form(self) -> Any:
        """A state as `get` returns it: states keep their form."""
        return self.stepper.read_raw()

    def difference(self, expected: Floats, actual: Floats) -> Floats:
        """The signed difference of states, with angles on the circle."""
        gap = actual - expected
        turning = self._angles()
        if turning:
            gap[..., turning] -= 2 * np.pi * np.round(gap[..., turning] / (2 * np.pi))
        return gap

    def _angles(self) -> list[int]:
        access = self.stepper.access
        declared = list(access.angles) if access is not None else []
        if self.shows_state and not declared:
            declared = np.flatnonzero(self.stepper.codec.coordinates.period > 0).tolist()
        return declared

    def _begin_episodes(self) -> None:
        """Add starts, because quantities fixed within an episode (goal, command, mask) vary only between episodes."""
        for _ in range(_EPISODES - self.pool.episodes):
            if not self.in_time(_GATHERING):
                break
            roll_out(self.stepper, self.placement, _SHORT, self.pool, lambda: self.in_time(_GATHERING))

    def _observation_is_state(self) -> bool:
        obs = self.stepper.reset()
        state, flat = self.stepper.read_state(), self.stepper.codec.flatten(obs)
        if state is None or not isinstance(obs, np.ndarray):
            return False
        return bool(state.shape == flat.shape and np.array_equal(state.astype(obs.dtype).astype(float), flat))

    def _kind(self) -> tuple[Kind, str]:
        if self.placement.kind is None:
            return "black box", str(self.placement.why_not)
        state = self.pool.situations[0].state
        if numeric(state) is None or (isinstance(state, np.ndarray) and type(state) is not np.ndarray):
            return "black box", "its state does not consist of numbers only"
        check = check_determinism(self.stepper, self.pool, self.rng)
        self.stepper.reset_first = check.reset_first
        return "black box" if check.behaviour == "leaky" else check.behaviour, str(check.finding)

    def _vectors(self) -> Floats:
        rows = [numeric(situation.state) for situation in self.pool.situations]
        length = len(rows[0]) if rows[0] is not None else 0
        usable = [row is not None and len(row) == length and bool(np.isfinite(row).all()) for row in rows]
        met = zip(self.pool.situations, usable, strict=True)
        self.is_start = np.array([situation.origin == "start" for situation, used in met if used], dtype=bool)
        kept = [row for row, used in zip(rows, usable, strict=True) if used and row is not None]
        if not kept:
            raise TargetError("every state contains NaN or infinity.", where=self.label)
        return np.stack(kept)
