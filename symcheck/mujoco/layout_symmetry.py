"""The symmetry of a robot on the observation and action of a layout: one mirror, two mirrors, or quarter turns."""

from __future__ import annotations

from typing import Any

import numpy as np

from symcheck.errors import RepresentationError, SpecError
from symcheck.mujoco import maps
from symcheck.mujoco.comparison import compare, remarks
from symcheck.mujoco.layouts.document import WrittenLayout
from symcheck.mujoco.layouts.laid_out import LaidGroup, LaidOut, lay_out
from symcheck.mujoco.loading import LoadedModel
from symcheck.mujoco.observations import position_labels, velocity_labels
from symcheck.mujoco.robot_symmetry import RobotSymmetry, named_pairs
from symcheck.symmetry.blocks import Block


def derive_layout(loaded: LoadedModel, layout: WrittenLayout, *, initial: bool, name: str | None) -> RobotSymmetry:
    """The symmetry of a model with the observation and action of a layout.

    Args:
        loaded: the model.
        layout: a layout with at least one observation group.
        initial: whether the start distribution is claimed to be symmetric.
        name: the name in reports; by default the names of the robot and the isometry.

    Returns:
        The symmetry, with its pairs and the differences of the model under the first generator.

    Raises:
        SpecError: no observation group, elements of the state without an image, or images that do not form the group.
    """
    laid = lay_out(loaded, layout)
    if not laid.observation:
        raise SpecError("no observation group is listed.", where=layout.label, remedy="Write [[observation.policy]].")
    groups = {key: _entries(laid, group) for key, group in laid.observation.items()}
    # A single group is the whole observation; several form a Dict by name.
    observation = next(iter(groups.values())) if len(groups) == 1 else _by_group(groups, len(laid.robot.pairings))
    try:
        symmetry = RobotSymmetry(
            name or f"{loaded.label} {laid.name}",
            laid.group,
            observation,
            _entries(laid, laid.action),
            state=_state(laid),
            initial=initial,
        )
    except RepresentationError as error:
        raise SpecError(
            f"the images of the {laid.name} are inconsistent ({error.problem})", where=loaded.label
        ) from error
    pairing = laid.robot.pairings[0]
    symmetry.isometry = pairing.isometry
    symmetry.pairs = named_pairs(loaded.model, pairing)
    symmetry.differences = tuple(compare(loaded.model, pairing))
    symmetry.remarks = tuple(remarks(loaded.model))
    return symmetry


def _by_group(groups: dict[str, list[Any]], generators: int) -> list[dict[str, Any]]:
    return [{key: entries[k] for key, entries in groups.items()} for k in range(generators)]


def _entries(laid: LaidOut, group: LaidGroup) -> list[Any]:
    """One entry per generator: signed images if the map is a signed permutation, otherwise a matrix."""
    elements = laid.group.elements()[1:]
    entries: list[Any] = []
    for generator in laid.group.generators:
        element = elements.index(generator)
        matrix, offset = group.matrices[element], group.offsets[element]
        single = (np.diff(matrix.indptr) == 1).all() and np.allclose(np.abs(matrix.data), 1)
        if single and not offset.any():
            images = [""] * group.width
            for place, (source, sign) in enumerate(zip(matrix.indices.tolist(), matrix.data.tolist(), strict=True)):
                images[source] = f"{'-' if sign < 0 else '+'}{place + 1}"
            entries.append(images)
        else:
            dense = matrix.toarray()
            entries.append({"matrix": dense, "offset": offset} if offset.any() else dense)
    return entries


def _state(laid: LaidOut) -> list[Block] | None:
    """The maps of joint coordinates and velocities; None if an element of the state has no image."""
    model, pairings = laid.robot.model, laid.robot.pairings
    if any((pairing.joints < 0).any() or (pairing.bodies < 0).any() for pairing in pairings):
        return None
    positions = [maps.positions(model, pairing).entry() for pairing in pairings]
    velocities = [maps.velocities(model, pairing).entry() for pairing in pairings]
    return [
        Block("qpos", positions, names=position_labels(model)),
        Block("qvel", velocities, names=velocity_labels(model)),
    ]
