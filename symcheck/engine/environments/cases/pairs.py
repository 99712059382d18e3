"""Measuring both sides of the equations: step from (s, a), step from (g s, g a), stack the outcomes.

`measure` steps the environment; `Comparison` holds, for one property, the expected and the measured values as vectors.
Judging happens elsewhere. For a pair (s, a) and an element g the comparisons are

    observation   expected L_g obs(s)                    actual obs(g s)
    reward        expected R(s, a)                       actual R(g s, g a)
    transition    expected g T(s, a)                     actual T(g s, g a)
    termination   expected whether T(s, a) terminates    actual whether T(g s, g a) does

If the environment itself truncates episodes, and the set state determines when, a truncation has the value 0.5.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, assert_never

import numpy as np
import numpy.typing as npt

from symcheck.array_types import Floats, Indices
from symcheck.engine.environments.cases.own_cuts import OwnCuts
from symcheck.engine.environments.subject.placement import Placement, Situation, Word
from symcheck.engine.equations import Part as Part
from symcheck.engine.scales import FLOAT32_EPSILON, FLOAT64_EPSILON, in_float32, shown_precision
from symcheck.envs.state_access.inner_states import Inner
from symcheck.envs.stepping.stepper import Stepper, Steps
from symcheck.errors import SpecError, TargetError
from symcheck.spaces.coordinates import Coordinates, SpaceCodec, scalar_coordinate, vector_coordinates
from symcheck.spaces.values import short_text
from symcheck.symmetry.action_bounds import refuse_exits
from symcheck.symmetry.bound import BoundSymmetry, group_by_word, pooled
from symcheck.symmetry.exits import find_excess, stay_inside


class Case(NamedTuple):
    """One triple (s, a, g) to check, with the image of (s, a) under g."""

    word: Word
    situation: Situation
    action: Any
    image: Situation
    image_action: Any


@dataclass(frozen=True)
class Measurement:
    """Both sides of many cases.

    Attributes:
        cases: the cases checked.
        left: steps from (s, a).
        right: steps from (g s, g a).
    """

    cases: list[Case]
    left: Steps
    right: Steps

    def rows(self, rows: Indices) -> Measurement:
        """Some of the cases, in the order of `rows`."""
        return Measurement([self.cases[i] for i in rows], self.left.rows(rows), self.right.rows(rows))

    @cached_property
    def by_word(self) -> dict[Word, Indices]:
        """The row indices of each element."""
        return group_by_word([case.word for case in self.cases])

    @cached_property
    def by_test(self) -> dict[Word, Indices]:
        """The row indices that are compared together: per element, or all uniformly drawn elements together."""
        return group_by_word([pooled(case.word) for case in self.cases])


@dataclass(frozen=True)
class Comparison:
    """Expected and measured values of one property.

    Attributes:
        part: the quantity of the property.
        coordinates: describes the vectors.
        expected: shape (n, dim).
        actual: shape (n, dim).
    """

    part: Part
    coordinates: Coordinates
    expected: Floats
    actual: Floats

    def residual(self) -> Floats:
        """Shape (n, dim); see `Coordinates.residual`."""
        return self.coordinates.residual(self.expected, self.actual)


class Pairs:
    """Builds, measures and compares cases on one environment.

    Args:
        stepper: the environment.
        placement: builds images of states.
        bound: the symmetry.
    """

    def __init__(self, stepper: Stepper, placement: Placement, bound: BoundSymmetry) -> None:
        self.stepper = stepper
        self.placement = placement
        self.bound = bound
        self._action_codec = SpaceCodec(bound.action_space, "action")
        self.own_cuts: OwnCuts | None = None

    def case(self, word: Word, situation: Situation, action: Any) -> Case:
        """The case (s, a, g).

        Raises:
            SpecError: the image of the action is not an action.
        """
        image_action = self.bound.action(word, action, situation.obs)
        self.check_actions([action], [image_action])
        return self._case(word, situation, action, image_action)

    def _case(self, word: Word, situation: Situation, action: Any, image_action: Any) -> Case:
        return Case(word, situation, action, self.placement.image(word, situation), _cast(image_action, action))

    def cases(self, words: Sequence[Word], situations: Sequence[Situation], actions: Sequence[Any]) -> list[Case]:
        """Many cases; images of arrays are computed in one batch per element, which is several times faster.

        If an element may map a point out of a bounded Box (see `may_leave`), such points are left out.

        Raises:
            SpecError: the image of some action is not an action.
        """
        made: list[Case | None] = [None] * len(words)
        for word, places_of_word in group_by_word(words).items():
            rows = places_of_word.tolist()
            picked, chosen = [situations[i] for i in rows], [actions[i] for i in rows]
            distinct, places = _distinct(picked)  # cases share states, so compute each image once
            images = self.placement.images(word, distinct)
            if images is None or not isinstance(chosen[0], np.ndarray | np.generic):
                for i in rows:
                    image_action = self.bound.action(word, actions[i], situations[i].obs)
                    self.refuse_exits(word, [actions[i]], [image_action])
                    made[i] = self._case(word, situations[i], actions[i], image_action)
                continue
            observations = np.array([situation.obs for situation in distinct])[places]
            moved = self.bound.action_batch(word, np.array(chosen), observations)
            self.refuse_exits(word, chosen, moved)
            cast = np.asarray(moved).astype(np.asarray(chosen[0]).dtype)
            for i, place, action, image_action in zip(rows, places.tolist(), chosen, cast, strict=True):
                made[i] = Case(word, situations[i], action, images[place], image_action)
        return self._without_exits([case for case in made if case is not None])

    def refuse_exits(self, word: Word, actions: Any, images: Any) -> None:
        """`check_actions` for elements that may not leave the action space.

        Raises:
            SpecError: the image of an action is not an action.
        """
        if not self.bound.may_leave(word):
            self.check_actions(actions, images)

    def _without_exits(self, cases: list[Case]) -> list[Case]:
        if not any(self.bound.may_leave(word) for word in {case.word for case in cases}):
            return cases
        stay = np.ones(len(cases), dtype=bool)
        for codec, sides in (
            (self.stepper.codec, ([c.situation.obs for c in cases], [c.image.obs for c in cases])),
            (self._action_codec, ([c.action for c in cases], [c.image_action for c in cases])),
        ):
            stay &= stay_inside(codec.coordinates, *map(codec.flatten_batch, sides))
        return [case for case, stays in zip(cases, stay, strict=True) if stays]

    def check_actions(self, actions: Any, images: Any) -> None:
        """Reject an action map that leaves the action space.

        Args:
            actions: the originals, for the message.
            images: their images, a list or stacked.

        Raises:
            SpecError: the image of an action is not an action; the message names the first one.
        """
        codec = self._action_codec
        refuse_exits(self.bound.action_space, codec.coordinates, actions, images, codec.flatten_batch(images))

    def measure(self, cases: Sequence[Case]) -> Measurement:
        """Step both sides of every case.

        Raises:
            SpecError: the environment rejects the image of a state, and the image lies outside the space.
            TargetError: the environment raises any other error.
        """
        if self.stepper.batched:
            return self._measure_in_slots(cases)
        left = self.stepper.outcomes([c.situation.state for c in cases], [c.action for c in cases])
        try:
            right = self.stepper.outcomes([c.image.state for c in cases], [c.image_action for c in cases])
        except TargetError as error:
            self._blame_map(cases[self.stepper.at], error)
            raise
        return Measurement(list(cases), left, right)

    def _measure_in_slots(self, cases: Sequence[Case]) -> Measurement:
        """Step both sides of a pair in one batch, in different slots."""
        states = [state for case in cases for state in (case.situation.state, case.image.state)]
        actions = [action for case in cases for action in (case.action, case.image_action)]
        try:
            both = self.stepper.outcomes(states, actions)
        except TargetError as error:
            for case in cases:
                self._blame_map(case, error)
            raise
        return Measurement(list(cases), both.every_second(0), both.every_second(1))

    def _blame_map(self, case: Case, error: TargetError) -> None:
        """Attribute an error to the map if the image of a state lies outside the space."""
        if where := find_excess(case.image.obs, self.stepper.codec):
            raise SpecError(
                f"the observation map leaves the space of states: the image of {short_text(case.situation.obs)} is "
                f"{short_text(case.image.obs)}, {where}, which the environment rejects ({error.problem})",
                where="observation",
                remedy="The image of every state must be a state.",
            ) from error
        if self.bound.has_state and f"setting the state {short_text(case.image.state)} raised" in error.problem:
            raise SpecError(
                f"the state map leaves the space of states: the image of {short_text(case.situation.state)} is "
                f"{short_text(case.image.state)}, and the environment rejects it ({error.problem})",
                where="state",
                remedy="The image of every state must be a state.",
            ) from error

    def observation_images(self, word: Word, observations: Sequence[Any]) -> Any:
        """L_g of many observations, stacked if they are arrays and the map is data."""
        if self.stepper.codec.is_array and self.bound.is_data("observation"):
            return self.bound.observation_batch(word, np.stack([np.asarray(obs) for obs in observations]))
        return [self.bound.observation(word, obs) for obs in observations]

    def comparison(self, part: Part, measured: Measurement) -> Comparison:
        """Line up expected and measured values."""
        if part == "reward":
            both = np.concatenate([measured.left.rewards, measured.right.rewards])
            epsilon = FLOAT32_EPSILON if in_float32(both) else FLOAT64_EPSILON
            left, right = measured.left.rewards[:, None], measured.right.rewards[:, None]
            return Comparison(part, scalar_coordinate("reward", epsilon=epsilon), left, right)
        if part == "termination":
            cuts = self.own_cuts is not None and self.own_cuts.follow_states
            left, right = (_ends_of(side, cuts) for side in (measured.left, measured.right))
            return Comparison(part, scalar_coordinate("terminated", epsilon=0.0), left, right)
        if part == "observation":
            return self._observations(measured)
        if part == "transition":
            return self._transitions(measured)
        assert_never(part)

    def _observations(self, measured: Measurement) -> Comparison:
        observe = self.placement.access.observe
        if observe is None:
            raise ValueError("the observation of a state is known only after a step")
        codec = self.stepper.codec
        distinct, places = _distinct([case.situation for case in measured.cases])
        before = [observe(situation.state) for situation in distinct]
        expected = self._map_rows(measured, lambda word, rows: self._images(word, before, places[rows]))
        distinct, places = _distinct([case.image for case in measured.cases])
        actual = codec.flatten_batch([observe(situation.state) for situation in distinct])[places]
        return Comparison("observation", shown_precision(codec.coordinates, actual), expected, actual)

    def _transitions(self, measured: Measurement) -> Comparison:
        codec = self.stepper.codec
        expected = self._map_rows(measured, lambda word, rows: self._images(word, measured.left.observations, rows))
        actual = measured.right.flat
        coordinates = shown_precision(codec.coordinates, actual)
        left_states, right_states = measured.left.states, measured.right.states
        inner = self.placement.inner
        if inner is None or left_states is None or right_states is None:
            return Comparison("transition", coordinates, expected, actual)
        states = self._map_rows(
            measured, lambda word, rows: inner.expected_coordinates(word, left_states[rows], expected[rows])
        )
        reached = inner.compared_coordinates(right_states)
        within = shown_precision(self._inner_coordinates(inner, right_states.shape[1], coordinates), reached)
        return Comparison(
            "transition",
            coordinates.join(within),
            np.concatenate([expected, states], axis=1),
            np.concatenate([actual, reached], axis=1),
        )

    def _inner_coordinates(self, inner: Inner, dim: int, observed: Coordinates) -> Coordinates:
        """Coordinates for comparing internal states; those that an observation shows share its names."""
        name = "observation" if self.placement.kind == "observation" else "state"
        whole = vector_coordinates(name, dim, epsilon=FLOAT64_EPSILON, angles=self.placement.access.angles)
        if inner.columns is None or inner.shown is None:
            # The observation may have names from named blocks.
            return replace(whole, names=observed.names) if name == "observation" and dim == observed.dim else whole
        picked = inner.columns
        return replace(
            whole,
            names=tuple(observed.names[j] for j in inner.shown),
            epsilon=whole.epsilon[picked],
            period=whole.period[picked],
            low=whole.low[picked],
            high=whole.high[picked],
        )

    def _images(self, word: Word, observations: Sequence[Any] | npt.NDArray[Any], rows: Indices) -> Floats:
        codec = self.stepper.codec
        stacked: Any
        if isinstance(observations, np.ndarray):
            stacked = observations[rows]
        elif codec.is_array:
            stacked = np.array([np.asarray(observations[i]) for i in rows])
        else:
            stacked = [observations[i] for i in rows]
        return codec.flatten_batch(self.bound.observation_batch(word, stacked))

    def _map_rows(self, measured: Measurement, images: Callable[[Word, Indices], Floats]) -> Floats:
        """Apply `images(word, rows)` to the rows of every word and put the results back in order."""
        parts = [(rows, images(word, rows)) for word, rows in measured.by_word.items()]
        if len(parts) == 1:
            return parts[0][1]
        ordered = np.empty((len(measured.cases), *parts[0][1].shape[1:]))
        for rows, part in parts:
            ordered[rows] = part
        return ordered


def _ends_of(side: Steps, cuts: bool) -> Floats:
    """1 if the episode terminated, 0.5 if the environment truncated it and truncation is compared; shape (n, 1)."""
    ends = side.terminated.astype(np.float64)
    if cuts and side.truncated is not None:
        ends = np.where(side.truncated & ~side.terminated, 0.5, ends)
    return ends[:, None]


def _distinct(situations: Sequence[Situation]) -> tuple[list[Situation], Indices]:
    """The distinct objects among situations drawn with replacement, and the index of each situation's object."""
    known: dict[int, int] = {}
    places = [known.setdefault(id(situation), len(known)) for situation in situations]
    first = dict(zip(reversed(places), reversed(situations), strict=True))
    return [first[k] for k in range(len(known))], np.array(places, dtype=np.intp)


def join_measurements(parts: list[Measurement]) -> Measurement | None:
    """Several measurements as one; None if there are none."""
    if not parts:
        return None
    return Measurement(
        [case for part in parts for case in part.cases],
        _joined_steps([part.left for part in parts]),
        _joined_steps([part.right for part in parts]),
    )


def _joined_steps(parts: list[Steps]) -> Steps:
    """Several stacks of steps as one."""
    states = [part.states for part in parts]
    readable = [state for state in states if state is not None]
    shown_by_part = [part.observations for part in parts]
    whole = all(isinstance(some, np.ndarray) and some.dtype == shown_by_part[0].dtype for some in shown_by_part)  # type: ignore[union-attr]
    cuts = [part.truncated for part in parts]
    kept = [cut for cut in cuts if cut is not None]
    return Steps(
        np.concatenate(shown_by_part) if whole else [obs for some in shown_by_part for obs in some],
        np.concatenate([part.flat for part in parts]),
        np.concatenate([part.rewards for part in parts]),
        np.concatenate([part.terminated for part in parts]),
        np.concatenate(readable) if len(readable) == len(states) else None,
        np.concatenate(kept) if len(kept) == len(cuts) else None,
    )


def _cast(image: Any, action: Any) -> Any:
    """The image, in the dtype of the original action."""
    if isinstance(action, np.ndarray):
        return np.asarray(image).astype(action.dtype).reshape(action.shape)
    if isinstance(action, np.integer):
        return action.dtype.type(image)
    return image
