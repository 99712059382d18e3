"""The poses in the reference configuration: the model's `qpos0`, with freely movable bodies in a symmetric position.

If bodies, joint axes and anchors are symmetric in one configuration, the mechanism is symmetric, because the joints
determine every other configuration. The position of a free body is unrelated to its shape, so free bodies are moved to
a fixed point of the isometry; their orientation is that of the file. Bodies that slide along world axes (targets,
planar robots) can be moved in the same way.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from symcheck.array_types import Floats
from symcheck.mujoco.isometry import Isometry, whole


@dataclass(frozen=True)
class Reference:
    """World poses in the reference configuration, in metres, kilograms and radians.

    Attributes:
        qpos: the joint positions, (nq,).
        body_position: the positions of the body frames, (nbody, 3).
        body_rotation: (nbody, 3, 3).
        centre: centres of mass of the bodies, (nbody, 3).
        inertia: inertia tensors about the centres of mass, along world axes, (nbody, 3, 3).
        axis: joint axes, (njnt, 3).
        anchor: joint anchors, (njnt, 3).
        geom_position: (ngeom, 3).
        geom_rotation: (ngeom, 3, 3).
        site_position: (nsite, 3).
        site_rotation: (nsite, 3, 3).
        extent: the size of the model, in metres.
    """

    qpos: Floats
    body_position: Floats
    body_rotation: Floats
    centre: Floats
    inertia: Floats
    axis: Floats
    anchor: Floats
    geom_position: Floats
    geom_rotation: Floats
    site_position: Floats
    site_rotation: Floats
    extent: float


def reference_of(model: Any, isometry: Isometry, *, slide_home: bool = False) -> Reference:
    """Evaluate the kinematics in the reference configuration.

    Args:
        model: a `mujoco.MjModel`.
        isometry: the isometry, to whose fixed point free bodies are moved.
        slide_home: whether bodies attached to the world by slides are moved to a position in which they are their own
            images.

    Returns:
        The poses.
    """
    if hasattr(model, "reference"):
        # Models that are read without a simulator compute their own.
        return model.reference(isometry, slide_home=slide_home)  # type: ignore[no-any-return]
    import mujoco

    data = mujoco.MjData(model)
    data.qpos[:] = model.qpos0
    for joint, _ in free_bodies(model):
        start = model.jnt_qposadr[joint]
        # A free body may have any position: move it to the plane or axis of the isometry.
        data.qpos[start : start + 3] = isometry.through
    mujoco.mj_kinematics(model, data)
    if slide_home:
        for _, slides, steps in slides_home(model, data.xaxis, data.xpos, isometry):
            data.qpos[model.jnt_qposadr[slides]] += steps
        mujoco.mj_kinematics(model, data)
    mujoco.mj_comPos(model, data)
    turned = data.ximat.reshape(-1, 3, 3).copy()
    # R diag(I) R^T, the inertia in world axes, (bodies, 3, 3).
    inertia = turned @ (model.body_inertia[:, :, None] * np.swapaxes(turned, 1, 2))
    return Reference(
        data.qpos.copy(),
        data.xpos.copy(),
        data.xmat.reshape(-1, 3, 3).copy(),
        data.xipos.copy(),
        inertia,
        data.xaxis.copy(),
        data.xanchor.copy(),
        data.geom_xpos.copy(),
        data.geom_xmat.reshape(-1, 3, 3).copy(),
        data.site_xpos.copy(),
        data.site_xmat.reshape(-1, 3, 3).copy(),
        _extent(model, data),
    )


def free_bodies(model: Any) -> list[tuple[int, int]]:
    """The free joints, with their bodies."""
    return [(j, int(model.jnt_bodyid[j])) for j in range(model.njnt) if model.jnt_type[j] == 0]  # mjJNT_FREE


def slides_home(
    model: Any, axis: Floats, position: Floats, isometry: Isometry
) -> Iterator[tuple[int, list[int], Floats]]:
    """Displacements along slides that move bodies, as far as possible, to where they are their own images.

    Args:
        model: a `mujoco.MjModel`.
        axis: the axes of the joints, (njnt, 3).
        position: the positions of the bodies, (nbody, 3).
        isometry: a reflection or a rotation.

    Yields:
        A body, the indices of its slides, and a step for each, in metres.
    """
    # (M - I) x is 0 exactly for displacements x that the isometry fixes.
    moving = isometry.matrix - np.eye(3)
    for body in range(1, model.nbody):
        if model.body_parentid[body] != 0:
            continue
        joints = range(int(model.body_jntadr[body]), int(model.body_jntadr[body] + model.body_jntnum[body]))
        slides = [j for j in joints if model.jnt_type[j] == 2]  # mjJNT_SLIDE
        if slides:
            missing = moving @ (position[body] - isometry.through)
            # Least squares: the slides reach the plane as far as their axes allow.
            steps = np.linalg.lstsq(moving @ axis[slides].T, -missing, rcond=None)[0]
            yield body, slides, whole(steps)


def _extent(model: Any, data: Any) -> float:
    points = np.concatenate([data.xpos[1:], data.xipos[1:]])
    spread = float(np.ptp(points, axis=0).max()) if len(points) else 0.0
    radius = float(model.geom_rbound.max()) if model.ngeom else 0.0  # planes have radius 0
    # 1e-6: keeps the extent of a single point positive, because distances are divided by it.
    return max(spread, radius, 1e-6)
