"""The model alone: parameters that differ from their images, the largest relative difference first."""

from __future__ import annotations

from symcheck.engine.mirrors.context import MirrorContext
from symcheck.engine.mirrors.options import MirrorOptions
from symcheck.mujoco.comparison import compare, remarks
from symcheck.mujoco.layouts.robot import Robot


def model_context(robot: Robot, options: MirrorOptions) -> MirrorContext:
    """The comparison of a robot with its images.

    Args:
        robot: a model with its images.
        options: the options of the run.

    Returns:
        A context without function and layout.
    """
    differences = [item for pairing in robot.pairings for item in compare(robot.model, pairing)]
    # Largest first; a missing image counts as infinite. Two generators may find the same difference.
    ranked = sorted(dict.fromkeys(differences), key=lambda item: (-item.relative, item.element, item.quantity))
    unpaired = [(pairing.isometry.name, text) for pairing in robot.pairings for text in pairing.unpaired]
    model = robot.model
    count = sum(int(n) for n in (model.nbody - 1, model.njnt, model.ngeom, model.ntendon, model.nu))
    return MirrorContext(
        None,
        None,
        options,
        differences=tuple(ranked),
        unpaired=tuple(unpaired),
        remarks=tuple(remarks(model)),
        elements=count * len(robot.pairings),
    )
