"""The observation map that belongs to a state map, inferred from pairs of states and images.

If the observation is the state, nothing has to be inferred. Otherwise each component of the observation at the image is
matched with the component of the original that it equals up to sign (a cosine with itself, a left leg with a right
leg); image observations are compared under the spatial operators.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces

from symcheck.array_types import Floats
from symcheck.discovery.assignment import assign
from symcheck.discovery.blocks import blocks_of, layout_of, lift_picture, picture_elements, turn_picture, upright
from symcheck.discovery.laboratory import Laboratory
from symcheck.discovery.maps import SignedMap, apply_square
from symcheck.discovery.screening import map_actions
from symcheck.errors import TargetError

_PAIRS = 160  # number of states with images whose observations are matched, besides those with rare components
_BATCHES = 16  # batches of widened states that are searched for rare components
_ENOUGH = 12  # required number of states at which a component differs from its usual value
_WIDENED = 2.0  # half of the states are drawn with this multiple of the spread, to include rare contacts
_FITS = 0.02  # largest misfit of the median pair, relative to the component's spread
_TIE = 1e-6
_FORBIDDEN = 1e6
_LOOKING = 0.3  # of the time budget
_MOST_MATCHED = 1024  # maximum number of components


@dataclass(frozen=True)
class Sightings:
    """Observations after a step, at a variety of states.

    Attributes:
        states: shape (n, dim).
        actions: n actions.
        observations: shape (n, dim of observations).
    """

    states: Floats
    actions: list[Any]
    observations: Floats

    @property
    def is_partial(self) -> bool:
        """Whether some component never changed."""
        return bool((self.observations == self.observations[:1]).all(axis=0).any())


class NoObservationMapError(TargetError):
    """No map of a searched form belongs to the state map; the message names an unmatched component."""


def is_image(lab: Laboratory) -> bool:
    """Whether observations are a single image."""
    return layout_of(lab.observation_space) is not None


def look_around(lab: Laboratory) -> Sightings:
    """Observe vectors after a step from states of the pool and, unless states are integers, of a wider range.

    For components that rarely change (contacts, pixels), the search continues until each has changed a dozen times.

    Args:
        lab: the environment.

    Returns:
        The observations; states that the environment rejects are left out.
    """
    draw = _pool_states if lab.is_whole else _draw_wider_states
    visited, wider = (_observe_steps(lab, each(lab, _PAIRS // 2)) for each in (_pool_states, draw))
    sightings = _append_rows(visited, wider, slice(None))
    usual = np.median(sightings.observations, axis=0)
    # Random steps are repeated for each pair: integers need few pairs, so one further batch is enough.
    for _ in range(1 if lab.is_whole and lab.repeats > 1 else _BATCHES):
        rare = (sightings.observations != usual).sum(axis=0) < _ENOUGH
        if not rare.any() or not lab.in_time(_LOOKING):
            break
        more = _observe_steps(lab, draw(lab, _PAIRS))
        showing = (more.observations[:, rare] != usual[rare]).any(axis=1)
        sightings = _append_rows(sightings, more, np.flatnonzero(showing)[:_PAIRS])
    return sightings


def _pool_states(lab: Laboratory, count: int) -> Floats:
    states: Floats = lab.states[lab.rng.choice(len(lab.states), size=count, replace=len(lab.states) < count)]
    return states


def _draw_wider_states(lab: Laboratory, count: int) -> Floats:
    """Visited states, widened; a number of a goal or a mode stays, because values between two of them are no states."""
    states = _pool_states(lab, count)
    whole = (lab.states == np.rint(lab.states)).all(axis=0)
    return states + np.where(whole, 0.0, _WIDENED * lab.spread) * lab.rng.uniform(-1, 1, size=states.shape)


def _observe_steps(lab: Laboratory, states: Floats) -> Sightings:
    kept, actions, observations = [], [], []
    for state, action in zip(states, lab.draw_actions(len(states)), strict=True):
        try:
            outcome = lab.outcomes(state[None], [action])
        except TargetError:  # a widened state need not be valid
            continue
        if np.isfinite(outcome.observations).all():
            kept.append(state)
            actions.append(action)
            observations.append(outcome.observations[0])
    width = lab.stepper.codec.coordinates.dim
    empty = np.zeros((0, lab.dim)), np.zeros((0, width))
    return Sightings(
        np.stack(kept) if kept else empty[0], actions, np.stack(observations) if observations else empty[1]
    )


def _append_rows(first: Sightings, second: Sightings, rows: Any) -> Sightings:
    """The first set of observations, extended by some rows of the second."""
    chosen = np.arange(len(second.states))[rows]
    return Sightings(
        np.concatenate([first.states, second.states[chosen]]),
        [*first.actions, *(second.actions[i] for i in chosen)],
        np.concatenate([first.observations, second.observations[chosen]]),
    )


def matching_observation_map(
    lab: Laboratory, state_map: SignedMap, action_map: SignedMap, sightings: Sightings
) -> SignedMap:
    """The observation map that belongs to a state map.

    Args:
        lab: the environment.
        state_map: L on states.
        action_map: K on actions.
        sightings: observations at the original states.

    Returns:
        A signed permutation of the components of a vector.

    Raises:
        NoObservationMapError: no map fits.
        TargetError: the environment rejects an image.
    """
    images = lab.outcomes(state_map.apply(sightings.states), map_actions(lab, action_map, sightings.actions))
    expected, actual = sightings.observations, images.observations
    if expected.shape[1] > _MOST_MATCHED:
        raise NoObservationMapError(
            f"the search can match at most {_MOST_MATCHED} observation components, but there are {expected.shape[1]}."
        )
    return _matching_columns(expected, actual, lab)


def _matching_columns(expected: Floats, actual: Floats, lab: Laboratory) -> SignedMap:
    """Match components of the original and the image by the median misfit over pairs; parts stay separate."""
    names = lab.stepper.codec.coordinates.names
    parts = blocks_of(lab.observation_space)
    middle = np.concatenate([part.middle for part in parts])
    expected, actual = expected - middle, actual - middle
    spread = np.quantile(np.abs(expected - np.median(expected, axis=0)), 0.75, axis=0)
    largest = np.abs(expected).max(axis=0)
    scale = np.where(spread > 0, spread, np.where(largest > 0, largest, 1.0))
    kept, turned = _misfits(expected, actual, scale)
    # Rare components (contacts) are zero at the median pair, so the mean distinguishes their partners.
    cost = np.minimum(kept, turned + _TIE) + _TIE * (1 - np.eye(len(kept)))
    owner = np.repeat(np.arange(len(parts)), [part.size for part in parts])
    cost = cost + _FORBIDDEN * (owner[:, None] != owner[None, :])
    for part in parts:
        # A picture is turned as a whole: single pixels are too rare, or too much alike, to be told apart.
        name = _matching_element(part.space, expected[:, part.at], actual[:, part.at]) if part.layout else None
        if name is not None:
            turned_to = np.array(turn_picture(name, part.space.shape or (), part.layout or "first"))
            cost[part.at, part.at] += _FORBIDDEN * (turned_to[:, None] != np.arange(part.size))
    index = assign(cost)
    at = np.arange(len(index))
    sign = np.where(kept[at, index] <= turned[at, index] + _TIE, 1, -1)
    best = SignedMap.of(index, sign)
    gaps = np.median(np.abs(best.apply(expected) - actual) / SignedMap.of(index).apply(scale[None])[0], axis=0)
    if gaps.max(initial=0.0) > _FITS:
        worst = int(np.argmax(gaps))
        raise NoObservationMapError(
            f"no signed permutation of the observation matches this map of states: {names[worst]} of the "
            "image has no counterpart."
        )
    return SignedMap.about(index, sign, middle)


def _misfits(expected: Floats, actual: Floats, scale: Floats) -> tuple[Floats, Floats]:
    """Mean misfit of every pair of columns, with and without a sign change, relative to its scale and capped at 1."""
    n = expected.shape[1]
    kept, turned = np.empty((n, n)), np.empty((n, n))
    for j in range(n):
        column = expected[:, j : j + 1]
        kept[j] = np.minimum(np.abs(actual - column) / scale[j], 1.0).mean(axis=0)
        turned[j] = np.minimum(np.abs(actual + column) / scale[j], 1.0).mean(axis=0)
    return kept, turned


def matching_picture_map(lab: Laboratory, expected: Floats, actual: Floats) -> SignedMap:
    """The rotation or reflection of an image that maps observations to those of the image steps.

    Args:
        lab: the environment.
        expected: flat images after some steps, shape (n, dim of observations).
        actual: flat images after the image steps, same shape.

    Returns:
        An element of the symmetry group of the square.

    Raises:
        NoObservationMapError: no element fits.
    """
    space = lab.observation_space
    best = _matching_element(space, expected, actual)
    if best is None:
        raise NoObservationMapError("no rotation or reflection of the image matches this map of states.")
    (block,) = blocks_of(space)
    return lift_picture(best, block, block.size)


def _matching_element(space: spaces.Space[Any], expected: Floats, actual: Floats) -> str | None:
    """The rotation or reflection that maps flat images to those of the image steps; None if none fits."""
    layout = layout_of(space) or "first"
    left, right = (upright(side.reshape(-1, *(space.shape or (1, 1))), layout) for side in (expected, actual))
    misfits = {name: float(np.abs(apply_square(name, left) - right).mean()) for name in picture_elements(space)}
    best = min(misfits, key=lambda name: misfits[name])
    scale = float(np.abs(left - left.mean(axis=0)).mean()) or 1.0
    # random outcomes differ occasionally
    return best if misfits[best] <= _FITS * 10 * scale else None
