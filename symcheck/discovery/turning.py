"""From an infinitesimal rotation to a verifiable claim: every angle as SO(2), otherwise a quarter turn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from symcheck.array_types import Floats
from symcheck.discovery.claims import Spaces
from symcheck.discovery.families import Family, family_of, spatial_family
from symcheck.discovery.laboratory import Laboratory
from symcheck.discovery.observation_maps import observation_matrix, round_to_whole
from symcheck.discovery.result import Rotation, is_accepted, why_of
from symcheck.discovery.rotations import Generator
from symcheck.discovery.verifier import Verifier
from symcheck.engine.results import RunResult
from symcheck.errors import SymcheckError
from symcheck.groups import catalog
from symcheck.symmetry.symmetry import Symmetry

_ANGLE = 90.0
_AXES = 3
_ORDERS = (4, 8)  # a quarter turn has order 4, or 8 for a quaternion, which rotates by half the angle
_CLOSES = 1e-6
_COUNTEREXAMPLE_SAMPLES = 500
_REWARD_BROKEN = 1e-2
_SAME_POSE = 1e-9
_TURN = 2 * np.pi


def verify_rotation(lab: Laboratory, verifier: Verifier, generator: Generator) -> tuple[Rotation, Family | None]:
    """Verify an infinitesimal rotation at a generic angle and, if that does not hold, its quarter turn.

    Args:
        lab: the environment.
        verifier: runs the verification.
        generator: the infinitesimal rotation.

    Returns:
        The rotation with its verdict, and the claim for every angle if that holds.
    """
    try:
        family = family_of(lab, generator, verifier.where)
        broken = generator.reward_residual > _REWARD_BROKEN
        result = _verify_claim(verifier, family.claim, broken=broken)
    except SymcheckError:  # no claim for every angle; a quarter turn may still hold
        return verify_quarter_turn(lab, verifier, generator), None
    if not is_accepted(result):
        return verify_quarter_turn(lab, verifier, generator), None
    described, residuals = _describe_generator(generator, lab), (generator.residual, generator.reward_residual)
    return Rotation(described, *residuals, 0.0, result.verdict, why_of(result), result), family


def verify_spatial(
    lab: Laboratory, verifier: Verifier, generators: Sequence[Generator]
) -> tuple[tuple[Rotation, ...], tuple[Family, RunResult]] | None:
    """Verify rotations about x, y and z as the rotations of space, at generic elements.

    Args:
        lab: the environment.
        verifier: runs the verification.
        generators: the infinitesimal rotations.

    Returns:
        The rotations with the verdict on all of SO(3), and the claim; None if there are no such three, or if it does
        not hold.
    """
    turns, families = [], []
    for generator in generators if len(generators) >= _AXES else ():
        try:
            families.append(family_of(lab, generator, verifier.where))
            turns.append(generator)
        except SymcheckError:  # no claim can be built for this turn
            continue
    try:
        family = spatial_family(families) if len(families) == _AXES else None
        result = None if family is None else verifier.accept_claim(family.claim)
    except SymcheckError:
        return None
    if family is None or result is None or not is_accepted(result):
        return None
    rotations = [
        Rotation(
            _describe_generator(turn, lab), turn.residual, turn.reward_residual, 0.0, result.verdict, why_of(result)
        )
        for turn in turns
    ]
    return tuple(rotations), (family, result)


def _verify_claim(verifier: Verifier, claim: Symmetry, *, broken: bool) -> RunResult:
    """The accepting run; if the reward contradicts the claim, preceded by a short run that shows where."""
    if broken:
        screened = verifier.screen_claim(claim, samples=_COUNTEREXAMPLE_SAMPLES)
        if screened.verdict == "failed":
            return screened
    return verifier.accept_claim(claim)


def verify_quarter_turn(lab: Laboratory, verifier: Verifier, generator: Generator) -> Rotation:
    """Verify the quarter turn of an infinitesimal rotation.

    Args:
        lab: the environment.
        verifier: runs the verification.
        generator: the infinitesimal rotation.

    Returns:
        The rotation with its residuals and the verdict on the quarter turn; other angles are not claimed.
    """
    described = _describe_generator(generator, lab)
    try:
        claim = _claim(lab, generator, verifier.where)
        broken = generator.reward_residual > _REWARD_BROKEN
        result = _verify_claim(verifier, claim, broken=broken)
    except SymcheckError as error:
        return Rotation(
            described, generator.residual, generator.reward_residual, _ANGLE, "undecided", error.problem.rstrip(".")
        )
    return Rotation(
        described,
        generator.residual,
        generator.reward_residual,
        _ANGLE,
        result.verdict,
        why_of(result),
        result,
    )


def _describe_generator(generator: Generator, lab: Laboratory) -> str:
    name = "observation" if lab.shows_state else "state"
    parts = [
        f"({name}[{i}], {name}[{j}]) rotates" + ("" if abs(rate) == 1 else f" at rate {abs(rate):.3g}")
        for i, j, rate in generator.planes
    ]
    parts += [f"{name}[{j}] shifts with the angle" for j in np.flatnonzero(generator.shift)]
    acting = np.argwhere(np.triu(generator.action) != 0)
    parts += [f"(action[{i}], action[{j}]) rotates" for i, j in acting]
    return ", ".join(parts)


def _claim(lab: Laboratory, generator: Generator, where: Spaces) -> Symmetry:
    # Determine the order from the exact matrix: rounded entries could give a smaller order by accident.
    matrix, offset, acting = generator.finite(np.radians(_ANGLE))
    order = _order(matrix)
    matrix, acting = round_to_whole(matrix), round_to_whole(acting)
    angles = np.flatnonzero(generator.shift != 0)
    moved: Any = None
    if lab.shows_state:
        observation = _map_entry(matrix, offset)
    else:
        observation = _map_entry(*observation_matrix(lab, lambda x: x @ matrix.T + offset, acting))
        moved = [_map_entry(matrix, offset, angles)]
    name = f"{lab.label} quarter turn"
    return Symmetry(name, catalog.cyclic(order), [observation], [acting.tolist()], state=moved)


def _map_entry(matrix: Floats, offset: Floats, angles: npt.NDArray[np.int64] | None = None) -> Any:
    """Data if the map is linear, a callable if it shifts angles."""
    moved = np.flatnonzero(offset) if angles is None else angles
    return state_map(matrix, offset, moved) if len(moved) else matrix.tolist()


def _order(matrix: Floats) -> int:
    for order in _ORDERS:
        if np.abs(np.linalg.matrix_power(matrix, order) - np.eye(len(matrix))).max() < _CLOSES:
            return order
    raise SymcheckError("the rotation by 90 degrees has neither order 4 nor order 8, so no finite group was tried.")


def state_map(matrix: Floats, offset: Floats, angles: npt.NDArray[np.int64]) -> Callable[[Any], Floats]:
    """The map x -> M x + offset, with shifted angles wrapped to one turn of the circle.

    Without wrapping, four quarter turns would add a full turn to an angle: the same pose with a different value.

    Args:
        matrix: M, shape (dim, dim).
        offset: shape (dim,).
        angles: the coordinates that are angles.

    Returns:
        A function of one state vector.

    Example:
        >>> turn = state_map(np.eye(1), np.array([np.pi]), np.array([0]))
        >>> round(float(turn(np.array([1.0]))[0]), 6)
        -2.141593
    """

    def map_state(state: Any) -> Floats:
        before = np.asarray(state, dtype=np.float64).reshape(-1)
        image: Floats = before @ matrix.T + offset
        turns = np.floor((before[angles] + np.pi) / _TURN)
        # Rounding may move an angle just below the cut although its exact value is above it.
        image[angles] = (image[angles] + np.pi + _SAME_POSE) % _TURN - _SAME_POSE - np.pi + turns * _TURN
        return image

    return map_state
