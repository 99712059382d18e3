"""Sets and steps one environment; only this module calls it.

Steps go through the user's wrapper stack; states are set in the unwrapped environment inside. Side effects of setting
are cleared each time (the counter of TimeLimit, flags of the base environment), running statistics of normalising
wrappers are warmed up and frozen, and returned values are copies, because an environment may reuse its buffers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from symcheck.array_types import Floats
from symcheck.envs.state_access.generators import without_chance
from symcheck.envs.state_access.record import Origin, StateAccess
from symcheck.envs.stepping import refusals
from symcheck.envs.stepping.running_statistics import settle_statistics
from symcheck.errors import TargetError
from symcheck.spaces.coordinates import SpaceCodec
from symcheck.spaces.values import (
    IMMUTABLE,
    copy_rows,
    copy_value,
    numeric,
    numeric_batch,
    short_text,
    stack_alike,
)


class Step(NamedTuple):
    """The result of one step.

    Attributes:
        obs: a copy of the next observation.
        flat: the same, flattened, shape (dim,).
        reward: the reward.
        terminated: whether the MDP ended.
        truncated: whether the episode was cut short.
        state: the next internal state as a flat float64 vector; None if it cannot be read or is not numeric.
    """

    obs: Any
    flat: Floats
    reward: float
    terminated: bool
    truncated: bool
    state: Floats | None


@dataclass(frozen=True)
class Steps:
    """Many steps, stacked along the first axis.

    Attributes:
        observations: the next observations: one array if they are arrays of one shape and dtype, otherwise a list.
        flat: shape (n, dim).
        rewards: shape (n,).
        terminated: shape (n,), bool.
        states: shape (n, dim) or None.
        truncated: shape (n,), bool; None if it was not kept, as for batches.
    """

    observations: Sequence[Any] | npt.NDArray[Any]
    flat: Floats
    rewards: Floats
    terminated: npt.NDArray[np.bool_]
    states: Floats | None
    truncated: npt.NDArray[np.bool_] | None = None

    def rows(self, rows: npt.NDArray[np.intp]) -> Steps:
        """Some of the steps, in the order of `rows`."""
        seen = self.observations
        observations = seen[rows] if isinstance(seen, np.ndarray) else [seen[i] for i in rows]
        states = None if self.states is None else self.states[rows]
        cut = None if self.truncated is None else self.truncated[rows]
        return Steps(observations, self.flat[rows], self.rewards[rows], self.terminated[rows], states, cut)

    def every_second(self, first: int) -> Steps:
        """Steps `first`, `first` + 2, ...: one side of pairs whose sides were stepped alternately."""
        states = None if self.states is None else self.states[first::2]
        return Steps(
            self.observations[first::2], self.flat[first::2], self.rewards[first::2], self.terminated[first::2], states
        )


@dataclass(frozen=True)
class Played:
    """An episode, or its beginning.

    Attributes:
        seen: the observations, one more than there are steps.
        actions: the actions.
        steps: the result of each action.
        states: the raw internal state before each step; None if not requested.
    """

    seen: list[Any]
    actions: list[Any]
    steps: list[Step]
    states: list[Any]


class Stepper:
    """Puts an environment into states and steps it.

    Args:
        env: the environment with all of the user's wrappers; it is reset once.
        access: its state access; None for a black box, which can only be reset and stepped.
        label: names the environment in messages.
        seed: the seed of the first reset.

    Attributes:
        reset_first: whether to reset before each state is set, for environments that keep more than their state.
        at: the index of the current state among many, so that an error can be traced to its case.
        warmed: whether statistics of normalising wrappers were warmed up first.

    Raises:
        TargetError: the environment raises, or returns a value that Gymnasium does not allow.
    """

    batched = False  # whether many cases are stepped together
    keeps_states = True  # whether the internal state is read after each step

    def __init__(self, env: gym.Env[Any, Any], access: StateAccess | None, label: str, *, seed: int) -> None:
        self.env = env
        self.base = env.unwrapped
        self.access = access
        self.label = label
        self.codec = SpaceCodec(env.observation_space, "observation")
        self.action_codec = SpaceCodec(env.action_space, "action")
        self.steps = 0
        self.reset_first = False
        self.at = 0
        self.check_time: Callable[[], None] | None = None  # raises if the run may take no further step
        self._ahead: tuple[Any, list[Any]] = (None, [])
        self._put: tuple[Any, ...] = ()  # the state that was set immediately before, if any
        self._clocks = _time_limits_of(env)
        self.warmed = settle_statistics(env, partial(env.reset, seed=seed))
        self.first_obs = self.reset(seed=seed)
        if access is not None and not self.batched and access.origin != Origin.BUILT_IN:
            self.access = without_chance(self.base, access)

    @property
    def time_limit(self) -> int | None:
        """The number of steps after which a TimeLimit wrapper truncates episodes; None if there is none."""
        return min((int(clock._max_episode_steps) for clock in self._clocks), default=None)

    def reset(self, *, seed: int | None = None) -> Any:
        """Reset and return the observation (a copy).

        Raises:
            TargetError: the environment raised, or did not return a pair of observation and info.
        """
        self._put = ()
        if self.check_time is not None:
            self.check_time()
        try:
            returned = self.env.reset(seed=seed)
        except STOPPED as error:
            raise refusals.of_reset(error, self.label) from error
        if not isinstance(returned, tuple) or len(returned) != 2:
            raise refusals.of_reset_value(returned, self.label)
        self._check_space()
        self._flat(returned[0], "reset()")
        return copy_value(returned[0])

    def _check_space(self) -> None:
        """Reject an environment whose observation space has changed since it was built."""
        space = self.env.observation_space
        if space is not self.codec.space and space != self.codec.space:
            raise refusals.of_space(self.codec.space, space, self.label)

    def poke(self, state: Any) -> None:
        """Put the environment into a state.

        Raises:
            TargetError: the setter raised.
        """
        if self.access is None:
            raise TargetError("the state of a black box cannot be set.", where=self.label)
        if self.reset_first:
            self.reset()
        # TimeLimit would count all steps as one episode; after setting a state, the count starts again.
        for clock in self._clocks:
            clock._elapsed_steps = 0
        try:
            self.access.set(self.base, copy_value(state))
        except STOPPED as error:
            raise self._refused_state(state, error) from error
        self._put = (state,)

    @contextmanager
    def resetting_first(self) -> Iterator[None]:
        """Reset before each state is set, within a `with` block."""
        before, self.reset_first = self.reset_first, True
        try:
            yield
        finally:
            self.reset_first = before

    @property
    def what_was_set(self) -> str:
        """A note if no state can be read and the setter received an observation that wrappers had changed."""
        space = self.base.observation_space
        if self.access is None or self.access.get is not None or self.batched or space == self.codec.space:
            return ""
        return refusals.shows_other(self.codec.space, space)

    def _refused_state(self, held: Any, error: BaseException) -> TargetError:
        source = "" if self.access is None else str(self.access.source)
        return refusals.of_state(short_text(held), error, f"{self.label}, state access ({source})", self.what_was_set)

    def _refused_action(self, action: Any, error: BaseException) -> TargetError:
        remedy = self.what_was_set or (refusals.ON_ITS_OWN if self.access is None else refusals.NOT_STEPPED)
        return refusals.of_action(short_text(action), error, self.label, self.steps, remedy)

    def _after_reset(self, put: tuple[Any, ...], action: Any, error: BaseException) -> Any:
        """Repeat a failed step from the state that was just set, after a reset; from then on, reset before every set.

        Many environments reject a step after the end of an episode, and not every setter clears that flag.

        Args:
            put: the state that was set, as a tuple of one; empty if the step followed another.
            action: the action that the step rejected.
            error: the exception that it raised.

        Raises:
            TargetError: no state was set just before, states are already set after resets, or the step also raises
                after a reset.
        """
        if not put or self.reset_first or self.batched:
            raise self._refused_action(action, error) from error
        self.reset_first = True
        try:
            self.poke(put[0])
            self._put = ()
            return self.env.step(copy_value(action))
        except STOPPED:
            self.reset_first = False
            raise self._refused_action(action, error) from error

    def step(self, action: Any) -> Step:
        """Step and return copies of the result.

        Raises:
            TargetError: the environment raised, or returned a value that Gymnasium does not allow.
        """
        return self._step(action, keep=self.keeps_states)

    def _step(self, action: Any, *, keep: bool) -> Step:
        self.steps += 1
        put, self._put = self._put, ()
        if self.check_time is not None:
            self.check_time()
        try:
            returned = self.env.step(copy_value(action))
        except STOPPED as error:
            returned = self._after_reset(put, action, error)
        obs, reward, terminated, truncated, _ = refusals.five_of(returned, self.label)
        flat = self._flat(obs)
        return Step(
            copy_value(obs),
            flat,
            refusals.number_of(reward, self.label),
            refusals.flag_of(terminated, "terminated", self.label),
            refusals.flag_of(truncated, "truncated", self.label),
            self.read_state() if keep else None,
        )

    def _flat(self, obs: Any, source: str = "step()") -> Floats:
        try:
            flat = self.codec.flatten(obs)
        except (ValueError, TypeError, KeyError, AttributeError, IndexError) as error:
            raise refusals.of_observation(source, short_text(obs), self.codec.space, self.label) from error
        if flat.size != self.codec.coordinates.dim:
            raise refusals.of_size(source, flat.size, self.codec.coordinates.dim, self.codec.space, self.label)
        if self.codec.is_array and np.shape(obs) != self.codec.space.shape:
            raise refusals.of_shape(source, np.shape(obs), self.codec.space, self.label)
        return flat

    def read_state(self) -> Floats | None:
        """The internal state as a float64 vector, or None if it cannot be read or is not numeric."""
        return None if self.access is None or self.access.get is None else numeric(self.read_raw())

    def read_raw(self) -> Any:
        """A copy of the internal state returned by `get`."""
        if self.access is None or self.access.get is None:
            raise TargetError("the state cannot be read.", where=self.label)
        try:
            return copy_value(self.access.get(self.base))
        except STOPPED as error:
            raise refusals.of_reading(error, f"{self.label}, state access ({self.access.source})") from error

    def outcome(self, state: Any, action: Any) -> Step:
        """Put the environment into a state, then step it."""
        self.poke(state)
        return self.step(action)

    def play(self, longest: int, proceed: Callable[[], bool] = lambda: True, *, read: bool = False) -> Played:
        """Reset and follow the uniform policy.

        Args:
            longest: the largest number of steps, at least 1.
            proceed: whether another step may be taken; the first step always is.
            read: whether to read internal states before each step.

        Returns:
            At least one step.
        """
        played = Played([self.reset()], [], [], [])
        while len(played.steps) < longest and (not played.steps or proceed()):
            played.states.append(self.read_raw() if read else None)
            action = self._draw_action()
            step = self._step(action, keep=False)
            played.actions.append(action)
            played.steps.append(step)
            played.seen.append(step.obs)
            if step.terminated or step.truncated:
                break
        return played

    def _draw_action(self) -> Any:
        """An action under the uniform policy; some are drawn ahead, which is several times faster."""
        space = self.env.action_space
        drawn_for, held = self._ahead
        if drawn_for is not space or not held:
            # Reversed, so that pop() returns them in the order in which they were drawn.
            held = uniform_actions(space, _AHEAD)[::-1]
            self._ahead = (space, held)
        return held.pop()

    def outcomes(self, states: Sequence[Any], actions: Sequence[Any]) -> Steps:
        """`outcome` for many states and actions, in about half the time; `at` is the index of the current one."""
        access = self.access
        if access is None or not self.codec.is_array:
            return stack_steps([self._outcome_at(i, states[i], actions[i]) for i in range(len(states))])
        base, step, put, shape, clocks = self.base, self.env.step, access.set, self.codec.space.shape, self._clocks
        get, label, before = access.get if self.keeps_states else None, self.label, self.steps
        check_time = self.check_time
        observations: list[Any] = []
        rewards: list[float] = []
        ends: list[bool] = []
        cuts: list[bool] = []
        inner: list[Any] = []
        i = 0
        try:
            for i, state in enumerate(copy_rows(states)):
                if check_time is not None:
                    check_time()
                if self.reset_first:
                    self.reset()
                for clock in clocks:
                    clock._elapsed_steps = 0
                try:
                    put(base, state)
                except STOPPED as error:
                    raise self._refused_state(states[i], error) from error
                action = actions[i]
                try:
                    returned = step(action if type(action) in IMMUTABLE else copy_value(action))
                except STOPPED as error:
                    self.steps = before + i + 1
                    returned = self._after_reset((states[i],), action, error)
                if type(returned) is not tuple or len(returned) != 5:
                    refusals.five_of(returned, self.label)
                obs, reward, ended, cut, _ = returned
                if type(obs) is np.ndarray and obs.shape == shape:
                    observations.append(obs.copy())
                else:
                    self._flat(obs)  # raises if the shape does not fit
                    observations.append(copy_value(obs))
                rewards.append(reward if type(reward) is float else refusals.number_of(reward, label))
                ends.append(ended if type(ended) is bool else refusals.flag_of(ended, "terminated", label))
                cuts.append(cut if type(cut) is bool else refusals.flag_of(cut, "truncated", label))
                if get is not None:
                    inside = get(base)
                    inner.append(inside.copy() if type(inside) is np.ndarray else copy_value(inside))
        finally:
            self.at, self.steps = i, before + i + 1
        stacked = stack_alike(observations)
        return Steps(
            stacked,
            self.codec.flatten_batch(stacked),
            np.array(rewards, dtype=np.float64),
            np.array(ends, dtype=np.bool_),
            numeric_batch(inner) if get is not None else None,
            np.array(cuts, dtype=np.bool_),
        )

    def _outcome_at(self, i: int, state: Any, action: Any) -> Step:
        self.at = i
        return self.outcome(state, action)


def uniform_actions(space: gym.Space[Any], count: int) -> list[Any]:
    """Actions as from consecutive calls of `space.sample()`.

    Args:
        space: the action space, whose generator draws them.
        count: the number of actions.

    Returns:
        A list of `count` actions; of one action if the space must be sampled one at a time.
    """
    if type(space) is spaces.Discrete:
        return list(space.start + space.np_random.integers(space.n, size=count).astype(space.dtype))
    if type(space) is spaces.Box and space.dtype.kind == "f" and space.is_bounded():
        uniform = space.np_random.uniform(space.low, space.high, size=(count, *space.shape))
        return list(uniform.astype(space.dtype))
    return [space.sample()]


_AHEAD = 256  # actions drawn ahead
STOPPED = (Exception, SystemExit)  # an environment that exits Python was not tested


def stack_steps(steps: Sequence[Step]) -> Steps:
    """Stack steps into arrays."""
    states = [step.state for step in steps]
    readable = [state for state in states if state is not None]
    return Steps(
        [step.obs for step in steps],
        np.stack([step.flat for step in steps]),
        np.array([step.reward for step in steps], dtype=np.float64),
        np.array([step.terminated for step in steps], dtype=np.bool_),
        np.stack(readable) if len(readable) == len(states) else None,
        np.array([step.truncated for step in steps], dtype=np.bool_),
    )


def _time_limits_of(env: gym.Env[Any, Any]) -> tuple[Any, ...]:
    """The wrappers of a stack that count steps (TimeLimit)."""
    clocks = []
    layer: Any = env
    while isinstance(layer, gym.Wrapper):
        if "_elapsed_steps" in vars(layer) and "_max_episode_steps" in vars(layer):
            clocks.append(layer)
        layer = layer.env
    return tuple(clocks)
