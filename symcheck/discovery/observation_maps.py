"""The linear map of observations that belongs to a map of states."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from symcheck.array_types import Floats
from symcheck.discovery.laboratory import Laboratory
from symcheck.discovery.observations import Sightings, is_image, look_around
from symcheck.errors import SymcheckError

_FITS = 1e-3  # largest misfit of the linear map of observations, relative to a component's spread
CLEAN = 1e-4
"""Entries this close to -1, 0 or 1 are rounded to these."""


def round_to_whole(matrix: Floats) -> Floats:
    """Round entries near -1, 0 and 1 to these values."""
    whole = np.round(matrix)
    return np.asarray(np.where(np.abs(matrix - whole) < CLEAN, whole, matrix) + 0.0)


def observation_matrix(lab: Laboratory, state: Callable[[Any], Floats], acting: Floats) -> tuple[Floats, Floats]:
    """The linear map of observations, by least squares over pairs of states and images.

    Args:
        lab: the environment.
        state: the map of states.
        acting: the matrix of actions.

    Returns:
        Matrix (dim, dim) and offset (dim,).

    Raises:
        SymcheckError: observations are images, or do not transform linearly.
    """
    if is_image(lab):
        raise SymcheckError("rotations of images are searched as rotations of the whole image.")
    sightings = look_around(lab)
    actual = _image_observations(lab, sightings, state, acting)
    design = np.concatenate([sightings.observations, np.ones((len(actual), 1))], axis=1)
    weights = np.linalg.lstsq(design, actual, rcond=1e-9)[0]
    spread = np.maximum(np.quantile(np.abs(actual - np.median(actual, axis=0)), 0.75, axis=0), 1e-12)
    misfit = np.median(np.abs(design @ weights - actual) / spread, axis=0)
    if misfit.max() > _FITS:
        worst = lab.stepper.codec.coordinates.names[int(np.argmax(misfit))]
        raise SymcheckError(f"no linear map of the observation matches the rotation ({worst} does not fit).")
    matrix, offset = round_to_whole(weights[:-1].T), weights[-1]
    return matrix, np.asarray(np.where(np.abs(offset) < CLEAN, 0.0, offset))


def _image_observations(
    lab: Laboratory, sightings: Sightings, state: Callable[[Any], Floats], acting: Floats
) -> Floats:
    images = np.stack([state(before) for before in sightings.states])
    flat = np.stack([np.asarray(action, dtype=np.float64).reshape(-1) for action in sightings.actions])
    first = np.asarray(sightings.actions[0])
    actions = [act.astype(first.dtype).reshape(first.shape) for act in flat @ acting.T]
    return lab.outcomes(images, actions).observations
