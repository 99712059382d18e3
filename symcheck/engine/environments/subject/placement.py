"""The relation of states, observations and their images on one environment.

A *situation* is a state to set, together with its observation (which state-dependent action maps need). There are three
ways to construct the image of a situation under g, and `Placement` selects one when it is built:

* the observation is the state: set L_g obs;
* the observation determines the state (cosine and sine determine an angle): set the state whose observation is L_g obs;
* the symmetry specifies how the state transforms: set L_g state.

Observations are rounded to their dtype before L is applied, because the symmetry acts on the agent's observations.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np

from symcheck.array_types import Floats
from symcheck.envs.state_access.carried import carried_over
from symcheck.envs.state_access.inner_states import Inner, SignedMap, shown_digits, signed_map
from symcheck.envs.state_access.record import StateAccess
from symcheck.envs.stepping.stepper import Stepper
from symcheck.spaces.neighbours import neighbour
from symcheck.spaces.values import copy_value, numeric
from symcheck.statements.statement import Statement
from symcheck.symmetry.bound import BoundSymmetry

Word = tuple[int, ...]
Kind = Literal["observation", "inverse", "map"]
_NEAR = 1e-5  # relative tolerance between an image that a callable rounded to float32 and the same image in float64
_LOOKS = 5  # number of steps on which "the observation is the state" is tested


class Situation(NamedTuple):
    """A state to set, and its observation.

    Attributes:
        state: the argument of the setter.
        obs: its observation.
        origin: "rollout", "start", "exploration", "box", "sample", "edge" or "image".
    """

    state: Any
    obs: Any
    origin: str


class Placement:
    """Builds situations and their images.

    Args:
        stepper: the environment; a few steps are taken to inspect its observations.
        bound: the symmetry.

    Attributes:
        kind: which of the three ways is used; None if there is none.
        why_not: if kind is None, what is missing; otherwise None.
        form: a state in the form that `get` returns; None if states cannot be read.
        inner: how internal next states are compared in float64 as well; None if they are not compared.
    """

    def __init__(self, stepper: Stepper, bound: BoundSymmetry) -> None:
        self._bound = bound
        self._stepper = stepper
        self._access, shows_state, visited = _inspect_access(stepper)
        self.kind, self.why_not = _choose_kind(self._access, bound, shows_state)
        readable = self._access is not None and self._access.get is not None
        self.form = stepper.read_raw() if readable else None
        self._visited = visited
        self._settle()
        if not stepper.batched and (self.kind is None or (self.kind == "map" and self.inner is None)):
            stepper.keeps_states = False  # next states are not read if they are never compared

    def _settle(self) -> None:
        """Decide how internal states are mapped and compared."""
        bound, known = self._bound, self._access is not None and self._access.get is not None
        self._double = self.kind == "observation" and known and bound.is_data("observation") and not bound.has_state
        self._sharp: list[SignedMap] = []  # signed permutations of the generators, if states are mapped by them
        self.inner = self._choose_inner(self._visited) if known else None

    def under(self, bound: BoundSymmetry) -> Placement:
        """The same environment under another symmetry of the same kind."""
        other = copy.copy(self)
        other._bound = bound
        other._settle()
        return other

    def _choose_inner(self, visited: Sequence[tuple[Floats, Any]]) -> Inner | None:
        """How next internal states are compared; see `symcheck.envs.state_access.inner_states`."""
        bound, kind = self._bound, self.kind
        if self._double:
            return Inner(self._as_observations)
        if kind == "map" and bound.is_data("state"):
            return Inner(self._as_states)
        if kind is None or not visited or self._access is None or (kind == "observation" and bound.has_state):
            return None
        states = [state for state, _ in visited]
        columns, shown = None, None
        if kind != "inverse":
            flats = np.stack([self._stepper.codec.flatten(obs) for _, obs in visited])
            columns, shown = shown_digits(np.stack(states), flats, self._stepper.codec.coordinates.epsilon)
        elif self._access.observe is None or not bound.is_data("observation"):
            return None
        if columns is not None and not len(columns):
            return None
        turning = self._access.angles if kind == "inverse" else ()
        letters = range(len(bound.symmetry.group.generators))
        maps = [signed_map(partial(self._image_of_state, (i,)), states[0], states, turning) for i in letters]
        self._sharp = [known for known in maps if known is not None] if all(maps) else []
        # Float64 images of float32 observations, if the map is known exactly.
        self._double = kind == "observation" and bool(self._sharp)
        picked = slice(None) if columns is None else columns
        return (
            Inner(lambda word, many: self._map_by_generators(word, many)[:, picked], columns, shown)
            if self._sharp
            else None
        )

    def _as_observations(self, word: Word, states: Floats) -> Floats:
        """Images of states that equal observations up to precision, in the shape of `states`; images may be flat."""
        return _in_shape(self._bound.observation_batch, np.shape(self._stepper.first_obs), word, states)

    def _as_states(self, word: Word, states: Floats) -> Floats:
        """Images of states under the map on states, in the shape of `states`; images may be flat."""
        form = np.shape(self.form) if isinstance(self.form, np.ndarray) else np.shape(states)[1:]
        return _in_shape(self._bound.state_batch, form, word, states)

    def _image_of_state(self, word: Word, state: Floats) -> Floats:
        """The image of a state vector under the symmetry, possibly rounded to float32."""
        held = _in_form(state, self.form)
        if self.kind == "map":
            image = self._bound.state(word, held)
        elif self.kind == "observation":
            image = self._bound.observation(word, state.reshape(np.shape(self._stepper.first_obs)))
        else:
            access = self.access
            if access.observe is None or access.from_observation is None:
                raise ValueError("the observation of a state is not known")
            image = access.from_observation(self._bound.observation(word, access.observe(held)))
        return np.asarray(image, dtype=np.float64).reshape(-1)

    def _map_by_generators(self, word: Word, states: Floats) -> Floats:
        """Images of states, shape (..., dim), by the signed permutations of the generators."""
        for letter in reversed(word):
            states = self._sharp[letter].apply(states)
        return states

    def _without_rounding(self, word: Word, image: Any, state: Any) -> Any:
        """The image of a state from a callable or an observation, recomputed without rounding."""
        rounded = np.asarray(image, dtype=np.float64).reshape(-1)
        return _in_form(self._sharpen(word, rounded, np.asarray(state, dtype=np.float64).reshape(-1)), self.form)

    def _sharpen(self, word: Word, rounded: Floats, states: Floats) -> Floats:
        """Images of states, shape (..., dim), in float64; the rounded ones if they are other images."""
        exact = np.array(self._map_by_generators(word, states))
        # Angles computed from cosine and sine lie in (-pi, pi] and are equal up to whole turns.
        turning = list(self.access.angles) if self.kind == "inverse" else []
        turns = np.round((rounded[..., turning] - exact[..., turning]) / (2 * np.pi))
        exact[..., turning] += 2 * np.pi * turns
        near = np.abs(rounded - exact) <= _NEAR * (1 + np.abs(exact))
        return np.where(near, exact, rounded)

    @property
    def access(self) -> StateAccess:
        """The state access, without parts that wrappers hide."""
        if self._access is None:
            raise ValueError("a black box has no state access")
        return self._access

    def current_situation(self, obs: Any, origin: str) -> Situation:
        """The current situation of the environment, whose last observation is `obs`."""
        return self.visited_situation(obs, self._stepper.read_raw() if self.reads_states else None, origin)

    @property
    def reads_states(self) -> bool:
        """Whether situations hold internal states that are read, rather than reconstructed from an observation."""
        return self.kind == "map" and self.access.get is not None

    def visited_situation(self, obs: Any, state: Any, origin: str) -> Situation:
        """The situation of an observation; `state` is the state read, if `reads_states` is True."""
        if self.kind is None:
            return Situation(None, obs, origin)
        return Situation(state if self.reads_states else self._state_showing(obs), obs, origin)

    def showing(self, obs: Any, state: Any, origin: str) -> Situation:
        """The situation of an observation and, if the two differ, its state (None if they do not)."""
        return Situation(self._state_showing(obs) if state is None else state, obs, origin)

    def at(self, state: Any, origin: str) -> Situation | None:
        """The situation of a proposed state; None if its observation is not known without a step."""
        if self.access.get is None:
            obs = _as_like(state, self._stepper.first_obs)
            return Situation(obs, obs, origin)
        if self.access.observe is None:
            return None
        obs = self.access.observe(state)
        if self.kind == "inverse" or (self.kind == "observation" and not self._double):
            return Situation(self._state_showing(obs), obs, origin)
        return Situation(state, obs, origin)

    def between(self, state: Any, origin: str) -> Situation | None:
        """The situation of a vector between states; None if it does not read back unchanged."""
        if self.access.get is None or not self._double:
            return None
        self._stepper.poke(state)
        held = numeric(self._stepper.read_raw())
        same = held is not None and np.array_equal(held, np.asarray(state))
        return Situation(state, _as_like(state, self._stepper.first_obs), origin) if same else None

    def not_a_state(self, state: Any) -> str:
        """The reason, in words, why a proposed state is not valid; "" if there is none."""
        proposed = numeric(state)
        count = -1 if proposed is None else proposed.size
        if self.access.get is not None:
            known = numeric(self.form)
            return "" if known is None or count == known.size else f"where get returns {known.size} numbers"
        expected = np.size(self._stepper.first_obs)
        if isinstance(self._stepper.first_obs, np.ndarray) and count != expected:
            return f"expected {expected} numbers, those of an observation, because there is no get"
        return ""

    def image(self, word: Word, situation: Situation) -> Situation:
        """The situation's image under a group element, ready to be set."""
        if self.kind == "map" or self._bound.has_state:
            obs = self._bound.observation(word, situation.obs)
            state = _in_form(self._bound.state(word, situation.state), self.form)
            if self._sharp:
                state = self._without_rounding(word, state, situation.state)
            return Situation(carried_over(state, situation.state), obs, "image")
        if self._double and self._sharp:
            obs = self._bound.observation(word, situation.obs)
            return Situation(self._without_rounding(word, obs, situation.state), obs, "image")
        if self._double:
            state = _in_form(self._as_observations(word, np.asarray(situation.state)[None])[0], self.form)
            return Situation(state, _as_like(state, situation.obs), "image")
        obs = self._bound.observation(word, situation.obs)
        state = self._state_showing(obs)
        # A state computed from a rounded observation has lost digits; the image of the state itself has not.
        return Situation(self._without_rounding(word, state, situation.state) if self._sharp else state, obs, "image")

    def images(self, word: Word, situations: Sequence[Situation]) -> list[Situation] | None:
        """Images of many situations at once, if they are arrays and the maps are data; None otherwise."""
        first = situations[0]
        if self._by_observation and isinstance(first.obs, np.ndarray):
            observations = self._bound.observation_batch(word, np.array([situation.obs for situation in situations]))
            showing = [self._state_showing(obs) for obs in observations]
            if self._sharp:
                states = np.array([situation.state for situation in situations])
                showing = list(self._sharpen(word, np.array(showing), states))
            return [Situation(state, obs, "image") for state, obs in zip(showing, observations, strict=True)]
        whole = (self._double and not self._sharp) or (
            self.kind == "map" and self._bound.is_data("state") and self._bound.is_data("observation")
        )
        if not whole or not isinstance(first.obs, np.ndarray) or not isinstance(first.state, np.ndarray):
            return None
        states = np.array([situation.state for situation in situations])
        if self._double:
            moved = self._as_observations(word, states)
            observations = moved.astype(first.obs.dtype)
        else:
            moved = self._as_states(word, states)
            observations = self._bound.observation_batch(word, np.array([situation.obs for situation in situations]))
        return [
            Situation(carried_over(state, original.state), obs, "image")
            for original, state, obs in zip(situations, moved, observations, strict=True)
        ]

    @property
    def _by_observation(self) -> bool:
        """Whether images are built from images of observations, and the map is data."""
        moved = self.kind == "map" or self._bound.has_state or self._double
        return not moved and self._bound.is_data("observation")

    def image_batch(
        self, word: Word, states: Floats, observations: Any, showing: Callable[[Any], Floats] | None
    ) -> tuple[Floats, Any]:
        """Images of stacked situations, by the same rule as `image`; maps must be data.

        Args:
            word: the element.
            states: shape (n, dim), float64.
            observations: their observations, shape (n, *shape).
            showing: the states belonging to observations, stacked; None if the observation is the state.

        Returns:
            (states, observations) of the images, shapes as given.
        """
        if self.kind == "map" or self._bound.has_state:
            return self._as_states(word, states), self._bound.observation_batch(word, observations)
        if self._double:
            moved = self._as_observations(word, states)
            return moved, moved.astype(observations.dtype)
        images = self._bound.observation_batch(word, observations)
        moved = images.astype(np.float64) if showing is None else showing(images)
        return (self._sharpen(word, moved, states) if self._sharp else moved), images

    def nudge_situation(self, situation: Situation, *, pattern: int, up: bool, units: int) -> Situation | None:
        """The situation with every coordinate changed by a few units in the last place.

        Args:
            situation: the starting point.
            pattern: seed for the signs of the changes.
            up: False reverses the signs, so that both sides of a threshold are tested.
            units: the number of units in the last place.

        Returns:
            A neighbour in the precision in which images are made; None if states are not made of floats.
        """
        if self._double or self.kind == "map" or self._bound.has_state or self._sharp:
            state = _in_form(neighbour(situation.state, pattern, up, units), self.form)
            return None if state is None else situation._replace(state=carried_over(state, situation.state))
        obs = neighbour(situation.obs, pattern, up, units)
        return None if obs is None else situation._replace(obs=obs, state=self._state_showing(obs))

    def _state_showing(self, obs: Any) -> Any:
        if self.access.get is None:
            return obs
        if self.access.from_observation is None:
            return _in_form(obs, self.form)
        return self.access.from_observation(obs)


def _inspect_access(stepper: Stepper) -> tuple[StateAccess | None, bool, list[tuple[Floats, Any]]]:
    """The access without parts that wrappers hide, whether the observation equals the state, and the evidence for it.

    The evidence is states as vectors with their observations; empty if states are not numeric.
    """
    access = stepper.access
    if access is None or access.get is None:
        return access, access is not None, []
    as_claimed, same = True, True
    visited: list[tuple[Floats, Any]] = []
    obs = stepper.reset()
    for _ in range(_LOOKS):
        state, flat = stepper.read_raw(), stepper.codec.flatten(obs)
        if access.observe is not None:
            as_claimed &= _shows(stepper, access.observe(state), obs, flat)
        vector = numeric(state)
        visited += [] if vector is None else [(vector, obs)]
        rounded = None if vector is None else _as_like(vector, obs)
        # Accepted only if every step agrees, because a wrapper may change only some observations.
        same &= rounded is not None and np.array_equal(np.ravel(rounded).astype(float), flat, equal_nan=True)
        step = stepper.step(stepper.env.action_space.sample())
        obs = stepper.reset() if step.terminated or step.truncated else step.obs
    # A wrapper changes observations, so facts about the unwrapped observation no longer apply.
    if not as_claimed:
        access = replace(access, observe=None, from_observation=None, box=False)
    whole = len(visited) == _LOOKS and len({vector.size for vector, _ in visited}) == 1
    return access, same and isinstance(stepper.first_obs, np.ndarray), visited if whole else []


def _shows(stepper: Stepper, claimed: Any, obs: Any, flat: Floats) -> bool:
    """Whether a claimed observation is the actual one; wrappers may change it."""
    if np.shape(claimed) != np.shape(obs):
        return False
    try:
        return np.array_equal(stepper.codec.flatten(claimed), flat, equal_nan=True)
    except (ValueError, TypeError, KeyError, IndexError):
        return False


def _choose_kind(
    access: StateAccess | None, bound: BoundSymmetry, shows_state: bool
) -> tuple[Kind | None, Statement | None]:
    """How images of situations are built; if there is no way, what is missing."""
    if access is None:
        return None, Statement("states_not_settable")
    if bound.has_state and access.get is not None:
        return "map", None
    if access.get is None or shows_state:
        return "observation", None
    if access.from_observation is not None:
        return "inverse", None
    return None, Statement("state_map_missing")


def _as_like(value: Any, example: Any) -> Any:
    """A value in the dtype and shape of an example observation, if both are arrays."""
    if not isinstance(example, np.ndarray):
        return copy_value(value)
    array = np.asarray(value)
    return array.astype(example.dtype).reshape(example.shape) if array.size == example.size else array


def _in_shape(image: Callable[[Word, Any], Any], form: tuple[int, ...], word: Word, states: Floats) -> Floats:
    """Images of stacked states, for a map of images that expects the shape `form`."""
    picture = len(form) > 1 and np.size(states[:1]) == math.prod(form)
    shaped = states.reshape(len(states), *form) if picture else states
    return np.asarray(image(word, shaped)).reshape(states.shape)


def _in_form(state: Any, form: Any) -> Any:
    """A state in the form that `get` returns: a number, a tuple, a list, or an array of that shape."""
    if form is None or not isinstance(state, np.ndarray | np.generic):
        return state
    state = np.asanyarray(state)  # a state may have the rest of its world attached
    if isinstance(form, np.ndarray):
        return state.reshape(form.shape) if state.size == form.size else state
    if isinstance(form, int | float | np.generic) and state.size == 1:
        return type(form)(state.reshape(-1)[0])
    if isinstance(form, tuple | list) and len(form) == state.size:
        return type(form)(state.reshape(-1).tolist())
    return state
