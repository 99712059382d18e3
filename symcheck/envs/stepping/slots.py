"""Steps environments that exist only in batches: each case occupies one slot, and many cases fill a batch.

A vector environment steps its slots together and resets finished slots by itself (autoreset), so a step does not always
return the result of a slot's action. `Slots` resolves that. `SlotView` presents one slot as an ordinary environment,
for code that steps rarely; `SlotStepper` fills whole batches, for code that steps often. States are assigned to random
slots with random neighbours. A dependence on the slot or on other slots then shows as inconsistency, and is detected.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import concatenate, create_empty_array, iterate

from symcheck.array_types import Floats
from symcheck.envs.models.model import BatchModel
from symcheck.envs.state_access.record import StateAccess
from symcheck.envs.stepping.running_statistics import settle_statistics
from symcheck.envs.stepping.stepper import Played, Step, Stepper, Steps, stack_steps
from symcheck.errors import TargetError
from symcheck.spaces.values import copy_value, numeric, short_text

_REMEMBERED = 256  # states that fill unused slots


@dataclass(frozen=True)
class Outcomes:
    """The results of one step of all slots.

    Attributes:
        observations: the observations after the action, even if the slot has been reset since; NaN if they were not
            kept.
        rewards: shape (slots,).
        terminated: shape (slots,), bool.
        truncated: shape (slots,), bool.
        states: the internal states after the action, None if they cannot be read; NaN if the slot has been reset since.
    """

    observations: list[Any]
    rewards: Floats
    terminated: npt.NDArray[np.bool_]
    truncated: npt.NDArray[np.bool_]
    states: list[Any] | None


class Slots:
    """The slots of a vector environment.

    Args:
        vector: the vector environment with the wrappers of the user.
        access: its batched state access, or None.

    Attributes:
        count: number of slots.
    """

    def __init__(self, vector: VectorEnv[Any, Any, Any], access: StateAccess | None) -> None:
        self.vector = vector
        self.base = vector.unwrapped
        self.access = access
        self.count = int(vector.num_envs)
        self.space: spaces.Space[Any] = vector.single_observation_space
        self.action_space: spaces.Space[Any] = vector.single_action_space
        mode = vector.metadata.get("autoreset_mode")
        self._same_step, self._by_hand = mode == AutoresetMode.SAME_STEP, mode == AutoresetMode.DISABLED
        self._over = np.zeros(self.count, dtype=np.bool_)
        self._ended = True  # whether some slot awaits its automatic reset, or nothing has been reset yet
        self._form: Any = None
        self._tensor: Any = None

    def reset(self, seed: int | None = None) -> list[Any]:
        """Reset every slot; returns one observation per slot."""
        observations, _ = self.vector.reset(seed=seed)
        self._ended = False
        self._over = np.zeros(self.count, dtype=np.bool_)
        return self._split(observations)

    def put_states(self, states: Sequence[Any]) -> None:
        """Put every slot into its own state; slots that await an automatic reset are reset first."""
        if self.access is None:
            raise TargetError("the state of a black box cannot be set.", where="vector environment")
        if self._ended:
            self.reset()
        self.access.set(self.base, self._batch_of(states))

    def step(self, actions: Sequence[Any], *, read: bool = True) -> Outcomes:
        """Step every slot.

        Args:
            actions: one action for each slot.
            read: whether to read internal states after the step.

        Returns:
            The result of each action.
        """
        empty: Any = create_empty_array(self.action_space, n=self.count)
        batch: Any = concatenate(self.action_space, actions, empty)
        # With autoreset disabled, finished slots must be reset explicitly.
        if self._by_hand and self._over.any():
            self.vector.reset(options={"reset_mask": self._over.copy()})
        if self._tensor is not None and isinstance(batch, np.ndarray):
            batch = self._tensor.new_tensor(batch)
        observations, rewards, terminated, truncated, info = self.vector.step(batch)
        ended, cut = (np.array(plain(flag), dtype=np.bool_).reshape(-1) for flag in (terminated, truncated))
        self._over = over = ended | cut
        self._ended = self._ended or bool(over.any())
        split = self._split(observations)
        states = self.states() if read else None
        # The slot already shows its next start: the final observation is in info, or lost.
        if self._same_step and over.any():
            for k in np.flatnonzero(over):
                split[k] = self._final(info, int(k), split[k])
                if states is not None:
                    states[k] = _nan_like(states[k])
        return Outcomes(split, np.array(plain(rewards), dtype=np.float64).reshape(-1), ended, cut, states)

    def states(self) -> list[Any] | None:
        """One internal state per slot; None if they cannot be read."""
        if self.access is None or self.access.get is None:
            return None
        whole = self.access.get(self.base)
        self._form = whole
        rows = plain(whole)
        if len(rows) != self.count:
            raise TargetError(
                f"expected get(env) to return {self.count} states, one for each slot, got {len(rows)}.",
                where="register_state_access(get=)",
                remedy="The first axis is the slot: state i belongs to slot i.",
            )
        return [copy_value(row) for row in rows]

    def actions(self) -> list[Any]:
        """One uniformly drawn action for each slot."""
        drawn = self.vector.action_space.sample()
        return list(drawn) if isinstance(drawn, np.ndarray) else list(iterate(self.vector.action_space, drawn))

    def _split(self, observations: Any) -> list[Any]:
        if self._tensor is None and hasattr(observations, "new_tensor"):
            self._tensor = observations
        rows = plain(observations)
        if isinstance(rows, np.ndarray):
            return list(rows.copy())
        return [copy_value(row) for row in iterate(self.vector.observation_space, rows)]

    def _batch_of(self, states: Sequence[Any]) -> Any:
        if self._form is None and self.access is not None and self.access.get is not None:
            self.states()
        form = self._form
        if form is None:  # the observation is the state
            return np.stack([np.asarray(state) for state in states]) if isinstance(self.space, spaces.Box) else states
        if isinstance(form, np.ndarray):
            return np.stack([np.asarray(state) for state in states]).astype(form.dtype).reshape(form.shape)
        if hasattr(form, "new_tensor"):
            return form.new_tensor(np.stack([np.asarray(state) for state in states])).reshape(form.shape)
        return list(states)

    def _final(self, info: Mapping[str, Any], k: int, shown_now: Any) -> Any:
        kept = info.get("final_obs")
        return _nan_like(shown_now) if kept is None else copy_value(_slot_of(plain(kept), k))


def plain(value: Any) -> Any:
    """Convert a tensor on any device, or a mapping or tuple of tensors, to arrays; return any other value unchanged."""
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return tuple(plain(item) for item in value)
    return value.detach().cpu().numpy() if hasattr(value, "detach") else value


def _slot_of(value: Any, k: int) -> Any:
    if isinstance(value, Mapping):
        return {key: _slot_of(item, k) for key, item in value.items() if not str(key).startswith("_")}
    return tuple(_slot_of(item, k) for item in value) if isinstance(value, tuple) else value[k]


def _nan_like(value: Any) -> Any:
    """NaN in place of numbers that were not kept; in comparisons NaN matches NaN."""
    array = np.asarray(value)
    if array.dtype.kind != "f":
        raise TargetError(
            "the vector environment resets a slot in the step that ends its episode, and does not return "
            f"the last observation ({short_text(value)} is the observation after the reset).",
            where="autoreset",
            remedy='Return the last observations in info["final_obs"], or use another autoreset mode.',
        )
    return np.full_like(array, np.nan)


class SlotView(gym.Env[Any, Any]):
    """One slot as an ordinary environment; the other slots have other states and take random actions.

    Args:
        slots: the slots of the vector environment.
        seed: seeds the choice of the slot and the states of the others; a reset with a seed restarts it.
    """

    def __init__(self, slots: Slots, seed: int) -> None:
        self.slots = slots
        self.observation_space = slots.space
        self.action_space = slots.action_space
        self.metadata = {}
        self.rng = np.random.default_rng(seed)
        self.at = 0
        self._known: list[Any] = []
        self._starts: list[tuple[int, Any]] = []

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """The initial observation of a slot that has not been stepped since its reset.

        If there is none, reset all slots.
        """
        if seed is not None:
            self.rng = np.random.default_rng(seed)
        if seed is not None or not self._starts:
            self._starts = list(enumerate(self.slots.reset(seed)))
            # Compare before shuffling: slot 0 may represent all.
            if _alike([obs for _, obs in self._starts]):
                self._starts = self._starts[:1]  # slots with equal starts are not independent samples
            # In random order: slots may differ (in level or mass), and every second start is mapped and compared.
            self._starts = [self._starts[int(i)] for i in self.rng.permutation(len(self._starts))]
        self.at, obs = self._starts.pop(0)
        return obs, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Step the slot, and the others with random actions."""
        self._starts = []
        actions = self.slots.actions()
        # Other slots take random actions, so that a leak between slots shows as noise in this one.
        actions[self.at] = action
        outcomes = self.slots.step(actions, read=False)
        k = self.at
        return (
            outcomes.observations[k],
            float(outcomes.rewards[k]),
            bool(outcomes.terminated[k]),
            bool(outcomes.truncated[k]),
            {},
        )

    def put_state(self, state: Any) -> None:
        """Put a random slot into a state, and the others into states from earlier calls."""
        self._starts = []
        self.at = int(self.rng.integers(self.slots.count))  # draw this first, so that it depends only on the seed
        self.remember(state)
        states = [self._known[int(i)] for i in self.rng.integers(len(self._known), size=self.slots.count)]
        states[self.at] = state
        self.slots.put_states(states)

    def remember(self, state: Any) -> None:
        """Store a state for filling slots."""
        if len(self._known) < _REMEMBERED:
            self._known.append(state)
        else:
            self._known[int(self.rng.integers(_REMEMBERED))] = state

    def state(self) -> Any:
        """The internal state of the slot."""
        states = self.slots.states()
        return None if states is None else states[self.at]

    def batched_form(self) -> BatchModel | None:
        """The batched form of a pure environment; None for any other, or if it is wrapped."""
        make = getattr(self.slots.vector, "batched_form", None) if "is_pure" in dir(type(self.slots.vector)) else None
        return None if make is None else make()

    def close(self) -> None:
        """Close the vector environment."""
        self.slots.vector.close()


def _alike(values: list[Any]) -> bool:
    first = values[0]
    if isinstance(first, np.ndarray):
        return all(np.array_equal(value, first, equal_nan=first.dtype.kind == "f") for value in values[1:])
    return all(repr(value) == repr(first) for value in values[1:])


def single_access(access: StateAccess | None) -> StateAccess | None:
    """Convert batched access to access to one slot of a `SlotView`."""
    if access is None:
        return None
    return dataclasses.replace(
        access,
        set=lambda view, state: view.put_state(state),
        get=None if access.get is None else lambda view: view.state(),
        batched=False,
    )


class SlotStepper(Stepper):
    """Steps a vector environment with many cases at a time, one per slot.

    Args:
        vector: the vector environment with the wrappers of the user.
        access: its batched state access; None for a black box.
        label: names the environment in messages.
        seed: the seed of the first reset and of the choice of slots.

    Raises:
        TargetError: the environment raises, or returns a value that Gymnasium does not allow.
    """

    batched = True

    def __init__(self, vector: VectorEnv[Any, Any, Any], access: StateAccess | None, label: str, *, seed: int) -> None:
        self.slots = Slots(vector, access)
        self.view = SlotView(self.slots, seed)
        self._episodes: list[Played] = []
        warmed = settle_statistics(vector, partial(vector.reset, seed=seed))
        super().__init__(self.view, single_access(access), label, seed=seed)
        self.warmed = warmed

    def outcomes(self, states: Sequence[Any], actions: Sequence[Any]) -> Steps:
        """`outcome` for many states and actions, in random slots, as many at a time as there are slots."""
        return stack_steps(self.steps_from(states, actions))

    def steps_from(self, states: Sequence[Any], actions: Sequence[Any]) -> list[Step]:
        """The same, step by step."""
        steps: list[Step] = []
        for start in range(0, len(states), self.slots.count):
            steps += self._fill_slots(
                states[start : start + self.slots.count], actions[start : start + self.slots.count]
            )
        return steps

    @property
    def explores_together(self) -> bool:
        """Whether slots are identical and independent, so that many states can be explored in parallel."""
        return self.slots.access is not None and getattr(self.slots.vector, "is_pure", False)

    def _fill_slots(self, states: Sequence[Any], actions: Sequence[Any]) -> list[Step]:
        slots, view = self.slots, self.view
        if self.reset_first:
            self.reset()
        view._starts = []
        for state in states[:8]:  # a few states of each batch, so that later fillers are diverse
            view.remember(state)
        # Random slots with random neighbours: a dependence on either shows as noise.
        places = view.rng.permutation(slots.count)
        held = [view._known[int(i)] for i in view.rng.integers(len(view._known), size=slots.count)]
        taken = slots.actions()
        for place, state, action in zip(places, states, actions, strict=False):
            held[place], taken[place] = state, action
        outcomes = self.step_from_states(held, taken)
        self.steps += len(states)
        return [self._step_of(outcomes, int(place)) for place in places[: len(states)]]

    def step_from_states(self, states: Sequence[Any], actions: Sequence[Any]) -> Outcomes:
        """Put every slot into a state and step it.

        Raises:
            TargetError: the environment raised.
        """

        def put_and_step() -> Outcomes:
            self.slots.put_states([copy_value(state) for state in states])
            return self.slots.step(actions)

        return self._call_guarded(put_and_step, states)

    def _call_guarded(self, call: Callable[[], Outcomes], states: Sequence[Any]) -> Outcomes:
        try:
            return call()
        except TargetError:
            raise
        except Exception as error:
            raise TargetError(
                f"stepping a batch of {len(states)} states (the first is {short_text(states[0])}) raised "
                f"{type(error).__name__}: {error}.",
                where=self.label,
                remedy="If this state is not allowed, state access must not propose it.",
            ) from error

    def _step_of(self, seen: Outcomes, k: int) -> Step:
        obs = seen.observations[k]
        state = None if seen.states is None else numeric(seen.states[k])
        return Step(
            obs, self._flat(obs), float(seen.rewards[k]), bool(seen.terminated[k]), bool(seen.truncated[k]), state
        )

    def play(self, longest: int, proceed: Callable[[], bool] = lambda: True, *, read: bool = False) -> Played:
        """An episode under the uniform policy; all slots play at once, and the first episode of each is kept."""
        if not self._episodes:
            self._episodes = self._play_all_slots(longest, proceed, read)
        return self._episodes.pop()

    def _play_all_slots(self, longest: int, proceed: Callable[[], bool], read: bool) -> list[Played]:
        slots = self.slots
        starts = slots.reset()
        self.view._starts = []
        played = [Played([start], [], [], []) for start in starts]
        going = np.ones(slots.count, dtype=np.bool_)
        taken = 0
        # Take at least one step even if time is up: an empty episode has no outcome.
        while going.any() and taken < longest and (not taken or proceed()):
            before = slots.states() if read else None
            actions = slots.actions()
            outcomes = self._call_guarded(lambda: slots.step(actions), actions)  # noqa: B023 - called at once
            for k in np.flatnonzero(going):
                played[k].actions.append(actions[k])
                played[k].states.append(None if before is None else before[k])
                played[k].steps.append(self._step_of(outcomes, int(k)))
                played[k].seen.append(outcomes.observations[k])
            # After an automatic reset, a slot continues with another episode, which is not recorded.
            going &= ~(outcomes.terminated | outcomes.truncated)
            taken += 1
        self.steps += taken
        return [played[int(k)] for k in self.view.rng.permutation(slots.count)]  # every second one is mapped
