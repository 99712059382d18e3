"""Derives the mirror symmetry of a robot from its model: the maps of state, observation and action.

`mirror` and `turn` return a `Symmetry` for `verify_env` that also records its derivation: the image of every element,
and the parameters that differ. No simulation is run. If `differences` is empty, the model itself is symmetric;
otherwise `differences` names the elements and both values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from symcheck.errors import RepresentationError, SpecError
from symcheck.groups import catalog
from symcheck.mujoco import maps
from symcheck.mujoco.comparison import compare, remarks
from symcheck.mujoco.elements import title
from symcheck.mujoco.images import Pairing
from symcheck.mujoco.isometry import ROUNDING, Isometry, reflection, rotation
from symcheck.mujoco.layout_symmetry import derive_layout
from symcheck.mujoco.layouts.document import read_layout
from symcheck.mujoco.loading import LoadedModel, load_model
from symcheck.mujoco.maps import Affine
from symcheck.mujoco.observations import (
    ObservedBlock,
    control_labels,
    gymnasium_blocks,
    observed_blocks,
    position_labels,
    velocity_labels,
)
from symcheck.mujoco.pairing import pair_model
from symcheck.mujoco.reference import Reference
from symcheck.mujoco.robot_symmetry import RobotSymmetry, named_pairs
from symcheck.symmetry.blocks import Block


def mirror(
    model: Any,
    plane: str | Sequence[float] = "xz",
    *,
    through: Sequence[float] = (0.0, 0.0, 0.0),
    observation: Any = None,
    layout: Any = None,
    pairs: Mapping[str, str] | None = None,
    initial: bool = True,
    name: str | None = None,
) -> RobotSymmetry:
    """The mirror symmetry of a robot, derived from its MuJoCo model.

    Positions map to their mirror images. The coordinates of hinges (whose axes are axial vectors) and slides keep or
    change their sign, depending on the axes of the pair. The orientation R of a free body becomes M R N. Left and right
    elements are paired by position in the reference configuration, and by name if positions coincide. The action map is
    in the order of the actuators and follows the joint that each actuator drives.

    Args:
        model: the path of an MJCF file, MJCF text, a `mujoco.MjModel`, an environment with one, or its Gymnasium id.
        plane: "xz" (left and right), "yz" (front and back), "xy", or the plane's normal vector, in world axes.
        through: a point of the plane, in metres.
        observation: the layout of the observation: a list of blocks as in `symcheck.mujoco.observations`
            (`["qpos[2:]", "qvel", "cfrc_ext[1:]"]`), or entries as `Symmetry` takes them. By default the layout of
            Gymnasium's own environments (v5), or (qpos, qvel) for other environments.
        layout: in place of `plane` and `observation`: a layout file, or a dictionary of its fields; its group may be
            C2, K4 or C4, and its `[action]` orders the action.
        pairs: names of bodies that are each other's images, if geometry and names do not determine them.
        initial: whether the start distribution is claimed to be symmetric.
        name: the name of the symmetry in reports.

    Returns:
        The symmetry, with its pairs and the differences of the model.

    Raises:
        SpecError: an unknown plane; elements without a counterpart (the message names all of them); or a block that
            does not exist.
        TargetError: the model cannot be loaded.
        MissingExtraError: MuJoCo is not installed.

    Example:
        >>> found = mirror("InvertedPendulum-v5", "yz")
        >>> found.action[0].sign.tolist(), found.model_is_symmetric
        ([-1], False)
        >>> print(found.differences[0])
        centre of mass of body 'pole': (0.0005, 0, 0.3), but its image is (-0.0005, 0, 0.3)

    Source: derived in docs/robots.md. Cost: one forward kinematics.
    """
    if layout is not None:
        _refuse_beside_layout(observation=observation, pairs=pairs, plane=None if plane == "xz" else plane)
        return derive_layout(load_model(model), read_layout(layout), initial=initial, name=name)
    return derive(load_model(model), reflection(plane, through), observation, pairs or {}, initial, name)


def _refuse_beside_layout(**given: Any) -> None:
    beside = [name for name, value in given.items() if value is not None]
    if beside:
        raise SpecError(
            f"a layout already specifies the plane, the group and the observation; leave out {' and '.join(beside)}.",
            where="layout",
        )


def turn(
    model: Any,
    order: int = 2,
    axis: str = "z",
    *,
    through: Sequence[float] = (0.0, 0.0, 0.0),
    observation: Any = None,
    pairs: Mapping[str, str] | None = None,
    initial: bool = True,
    name: str | None = None,
) -> RobotSymmetry:
    """The rotation symmetry of a robot by 1/order of a full turn, derived in the same way as `mirror`.

    Args:
        model: as for `mirror`.
        order: 2 for half a turn, 4 for a quarter (an ant), 6 for a hexapod.
        axis: "x", "y" or "z".
        through: a point of the axis, in metres.
        observation: as for `mirror`.
        pairs: names of bodies and of their images under one step of the rotation.
        initial: whether the start distribution is claimed to be symmetric.
        name: the name of the symmetry in reports.

    Returns:
        The symmetry, under the cyclic group of that order.

    Raises:
        SpecError: elements without a counterpart; the message names all of them.
        TargetError: the model cannot be loaded.
        MissingExtraError: MuJoCo is not installed.

    Example:
        >>> turn("Ant-v5", 4).group.name
        'C4'
    """
    return derive(load_model(model), rotation(axis, order, through), observation, pairs or {}, initial, name)


def derive(
    loaded: LoadedModel,
    isometry: Isometry,
    observation: Any,
    pairs: Mapping[str, str],
    initial: bool,
    name: str | None,
) -> RobotSymmetry:
    """The symmetry of a loaded model under an isometry; see `mirror`.

    Raises:
        SpecError: as for `mirror`.
    """
    model = loaded.model
    _refuse_unusable(model)
    pairing = pair_model(model, isometry, pairs)
    _refuse_unpaired(loaded, pairing)
    blocks = _blocks(loaded, pairing, observation)
    # The user's own entries are passed on; named blocks are mapped here.
    entries = [block.as_block() for block in blocks] if blocks else observation
    called = name or f"{loaded.label} {isometry.name}"
    try:
        symmetry = RobotSymmetry(
            called,
            catalog.cyclic(isometry.order),
            entries,
            # A model without actuators still needs an action: a single fixed value.
            [_block("ctrl", maps.controls(model, pairing), control_labels(model))] if model.nu else [[1]],
            state=[
                _block("qpos", maps.positions(model, pairing), position_labels(model)),
                _block("qvel", maps.velocities(model, pairing), velocity_labels(model)),
            ],
            initial=initial,
        )
    except RepresentationError as error:
        # The relations of the group fail if `order` applications do not give the identity.
        raise SpecError(
            f"the images of the {isometry.name} are inconsistent: {isometry.order} applications are not the identity "
            f"({error.problem})",
            where=loaded.label,
            remedy=(
                "Bodies at the same position may have been paired incorrectly. Give the correct pairs with pairs={...}."
            ),
        ) from error
    symmetry.isometry = isometry
    symmetry.pairs = named_pairs(model, pairing)
    symmetry.differences = tuple(compare(model, pairing))
    symmetry.remarks = tuple(remarks(model)) + _yaw_remarks(model, pairing)
    return symmetry


def _block(name: str, image: Affine, labels: Sequence[str]) -> Block:
    return ObservedBlock(name, image, tuple(labels)).as_block()


def _refuse_unusable(model: Any) -> None:
    if not model.njnt:
        raise SpecError("the model has no joints.", where="model")
    wide = [
        title(model, "actuator", i)
        for i in range(model.nu)
        if int(getattr(model, "actuator_ctrlnum", [1] * model.nu)[i]) != 1
    ]
    if wide:
        raise SpecError(f"actuators with several controls are not supported yet: {', '.join(wide)}.", where="model")


def _refuse_unpaired(loaded: LoadedModel, pairing: Pairing) -> None:
    missing = [*pairing.unpaired, *pairing.markers]
    if not missing:
        return
    count = len(missing)
    shown = "\n".join(f"  {text}" for text in missing)
    raise SpecError(
        f"{count} {'element has' if count == 1 else 'elements have'} no counterpart under the "
        f"{pairing.isometry.name}:\n{shown}.",
        where=loaded.label,
        remedy=_yaw_remedy(loaded.model, pairing.reference)
        or "Give the pairs of bodies with pairs={...}, or try another plane.",
    )


def _yaw_remarks(model: Any, pairing: Pairing) -> tuple[str, ...]:
    """A remark if the plane does not separate a free body's left and right, because the body is rotated in the file."""
    # The reflection y -> -y in a body's own frame: x is forward, y sideways.
    sagittal = np.diag([1.0, -1.0, 1.0])
    free = [int(model.jnt_bodyid[j]) for j in range(model.njnt) if model.jnt_type[j] == 0]
    own = all(np.allclose(maps.local(pairing, body), sagittal, atol=ROUNDING) for body in free)
    text = "" if own or pairing.isometry.determinant > 0 else _yaw_remedy(model, pairing.reference)
    return (text,) if text else ()


def _yaw_remedy(model: Any, reference: Reference) -> str:
    """The remedy if a free body is rotated about the vertical in the reference configuration; otherwise ""."""
    for joint in range(model.njnt):
        if model.jnt_type[joint] != 0:
            continue
        body = int(model.jnt_bodyid[joint])
        forward, sideways = reference.body_rotation[body][:2, 0], reference.body_rotation[body][:, 1]
        # The angle of the body's forward axis in the horizontal plane.
        yaw = float(np.degrees(np.arctan2(forward[1], forward[0])))
        if abs(yaw) > ROUNDING:
            normal = ", ".join(f"{value + 0.0:.6g}" for value in sideways)
            return (
                f"The free {title(model, 'body', body)} is rotated by {yaw:.6g} degrees about the vertical in the "
                f"reference configuration: to mirror its own left and right, use plane=({normal}), "
                "or set its quat to the identity."
            )
    return ""


def _blocks(loaded: LoadedModel, pairing: Pairing, observation: Any) -> list[ObservedBlock]:
    written = observation
    if observation is None:
        written = _default_layout(loaded)
    elif isinstance(observation, str):
        written = [observation]
    # A single callable or a dictionary is not a list of blocks.
    if not isinstance(written, list | tuple) or not written or not all(isinstance(item, str) for item in written):
        return []
    blocks = observed_blocks(loaded.model, pairing, written)
    _check_size(loaded, blocks, given=observation is not None)
    return blocks


def _default_layout(loaded: LoadedModel) -> Sequence[str]:
    if loaded.env is None:
        return ("qpos", "qvel")
    # Gymnasium's own environments have known layouts.
    blocks = gymnasium_blocks(loaded.env)
    if blocks is None:
        raise SpecError(
            f"the layout of the observation of {type(loaded.env).__name__} is not known.",
            where="observation",
            remedy='Give the blocks of the observation, for instance observation=["qpos[2:]", "qvel"], or its entries.',
        )
    return blocks


def _check_size(loaded: LoadedModel, blocks: Sequence[ObservedBlock], *, given: bool) -> None:
    space = getattr(loaded.env, "observation_space", None)
    if space is None or getattr(space, "shape", None) is None:
        return
    size, covered = int(np.prod(space.shape)), sum(block.map.dim for block in blocks)
    if size == covered:
        return
    parts = ", ".join(f"{block.name} ({block.map.dim})" for block in blocks)
    rest = f"columns {covered} to {size - 1} are left over" if covered < size else f"{covered - size} are too many"
    raise SpecError(
        f"the blocks {parts} have {covered} components in total, but the observation of {loaded.label} "
        f"has {size}: {rest}.",
        where="observation",
        remedy="Correct the blocks." if given else "Give the blocks of this environment with observation=[...].",
    )


def mirrors(model: Any, **options: Any) -> dict[str, RobotSymmetry | str]:
    """Try every coordinate plane: the mirror symmetry, or the reason why it does not exist.

    Args:
        model: as for `mirror`.
        options: further arguments of `mirror`.

    Returns:
        {"xz": ..., "yz": ..., "xy": ...}: for each plane a symmetry with the differences that break it, or the
        reason.

    Raises:
        TargetError: the model cannot be loaded.
        MissingExtraError: MuJoCo is not installed.

    Example:
        >>> {plane: isinstance(found, str) for plane, found in mirrors("Ant-v5").items()}
        {'xz': False, 'yz': False, 'xy': False}
    """
    loaded = load_model(model)
    results: dict[str, RobotSymmetry | str] = {}
    for plane in ("xz", "yz", "xy"):
        arguments = {"observation": None, "pairs": {}, "initial": True, "name": None, **options}
        through = arguments.pop("through", (0.0, 0.0, 0.0))
        try:
            results[plane] = derive(loaded, reflection(plane, through), **arguments)
        except SpecError as error:
            results[plane] = str(error)
    return results


def state_labels(model: Any) -> tuple[str, ...]:
    """A name for every component of the state (qpos, qvel) of a model.

    Args:
        model: as for `mirror`.

    Returns:
        Joint names, with x, y, z, qw, ... for joints with several coordinates.

    Raises:
        TargetError: the model cannot be loaded.
        MissingExtraError: MuJoCo is not installed.
    """
    compiled = load_model(model).model
    return (*position_labels(compiled), *(f"{label} (velocity)" for label in velocity_labels(compiled)))
