"""The affine maps of joint coordinates, controls and observed quantities that follow from a pairing.

Let N = R'^T M R be the isometry in the frame of a body with orientation R whose image has orientation R' in the
reference configuration. The coordinate q of a hinge or slide maps to +-q (about its reference value). The quaternion of
a ball joint keeps its scalar part, and det(M) N maps its vector part. The position of a free body is mapped by M, its
orientation by R -> M R N^T. Velocities transform in the same way; angular velocities in the body's own frame are mapped
by det(M) N.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from symcheck.array_types import Floats
from symcheck.mujoco.images import Pairing
from symcheck.mujoco.isometry import quaternion_map, quaternion_of, whole

_FREE, _BALL, _SLIDE, _HINGE = range(4)


@dataclass(frozen=True)
class Affine:
    """The map x -> matrix x + offset.

    Attributes:
        matrix: shape (n, n).
        offset: shape (n,), almost always 0.
    """

    matrix: Floats
    offset: Floats

    @property
    def dim(self) -> int:
        """The length of the vectors."""
        return len(self.offset)

    def entry(self) -> Any:
        """The map as an entry of a `Symmetry`; signed images if it is a signed permutation."""
        if self.offset.any():
            return {"matrix": self.matrix, "offset": self.offset}
        return self.matrix

    def power(self, exponent: int) -> Affine:
        """The map applied `exponent` times."""
        matrix, offset = np.eye(self.dim), np.zeros(self.dim)
        for _ in range(exponent):
            # g(g(x)) = M (M x + b) + b.
            matrix, offset = self.matrix @ matrix, self.matrix @ offset + self.offset
        return Affine(matrix, offset)


def linear(matrix: Floats) -> Affine:
    """A linear map, without offset."""
    return Affine(whole(matrix), np.zeros(len(matrix)))


def block_diagonal(maps: Sequence[Affine]) -> Affine:
    """The block-diagonal map; each block acts on its own part of the vector.

    Example:
        >>> block_diagonal([linear(np.eye(1)), linear(-np.eye(2))]).matrix.diagonal().tolist()
        [1.0, -1.0, -1.0]
    """
    size = sum(block.dim for block in maps)
    matrix, offset, start = np.zeros((size, size)), np.zeros(size), 0
    for block in maps:
        # The start of this block in the whole vector.
        part = slice(start, start + block.dim)
        matrix[part, part], offset[part] = block.matrix, block.offset
        start += block.dim
    return Affine(matrix, offset)


def local(pairing: Pairing, body: int) -> Floats:
    """N = R'^T M R of a body, shape (3, 3)."""
    turned = pairing.reference.body_rotation
    return whole(turned[int(pairing.bodies[body])].T @ pairing.isometry.matrix @ turned[body])


def _assemble_blocks(size: int, blocks: Sequence[tuple[int, int, Floats, Floats]]) -> Affine:
    """A map assembled from blocks (first row, first column, matrix, offset)."""
    matrix, offset = np.zeros((size, size)), np.zeros(size)
    for row, column, block, shift in blocks:
        matrix[row : row + len(block), column : column + len(block)] = block
        offset[row : row + len(block)] = shift
    return Affine(matrix, offset)


def positions(model: Any, pairing: Pairing) -> Affine:
    """The map of joint positions, `qpos`, shape (nq, nq)."""
    blocks = []
    for joint, image in enumerate(pairing.joints):
        start, image_start = int(model.jnt_qposadr[joint]), int(model.jnt_qposadr[image])
        kind = int(model.jnt_type[joint])
        if kind == _FREE:
            # A free joint has its position along world axes and its orientation as a quaternion.
            blocks += _free_position(model, pairing, joint, image_start, start)
        elif kind == _BALL:
            block = np.eye(4)
            # A quaternion's vector part is an axial vector in the body's own frame; w stays.
            block[1:, 1:] = _axial(pairing, int(model.jnt_bodyid[joint]))
            blocks.append((image_start, start, block, np.zeros(4)))
        else:
            sign = float(pairing.joint_signs[joint])
            # q' = sign * q + shift: the two reference configurations are images of each other.
            shift = float(pairing.reference.qpos[image_start] - sign * pairing.reference.qpos[start])
            blocks.append((image_start, start, np.array([[sign]]), whole(np.array([shift]))))
    return _assemble_blocks(int(model.nq), blocks)


def _free_position(
    model: Any, pairing: Pairing, joint: int, row: int, column: int
) -> list[tuple[int, int, Floats, Floats]]:
    isometry, body = pairing.isometry, int(model.jnt_bodyid[joint])
    # The image of the origin, if the plane or axis does not pass through it.
    shift = whole(isometry.point(np.zeros(3)))
    # det(M) M is a proper rotation even for reflections, which have no quaternion themselves.
    left = quaternion_of(isometry.determinant * isometry.matrix)
    right = quaternion_of(isometry.determinant * local(pairing, body))
    block = whole(quaternion_map(left, right))
    quaternion, image_quaternion = model.qpos0[column + 3 : column + 7], model.qpos0[row + 3 : row + 7]
    if (
        image_quaternion @ block @ quaternion < 0
    ):  # q and -q are the same orientation: choose the sign that fixes the reference
        block = -block + 0.0
    return [(row, column, isometry.matrix, shift), (row + 3, column + 3, block, np.zeros(4))]


def _axial(pairing: Pairing, body: int) -> Floats:
    return pairing.isometry.determinant * local(pairing, body) + 0.0


def velocities(model: Any, pairing: Pairing) -> Affine:
    """The map of joint velocities, `qvel`, and of forces in joint coordinates, shape (nv, nv)."""
    blocks = []
    for joint, image in enumerate(pairing.joints):
        start, image_start = int(model.jnt_dofadr[joint]), int(model.jnt_dofadr[image])
        kind, body = int(model.jnt_type[joint]), int(model.jnt_bodyid[joint])
        if kind == _FREE:
            # The linear velocity is along world axes (polar), the angular one along the body's (axial).
            blocks.append((image_start, start, pairing.isometry.matrix, np.zeros(3)))
            blocks.append((image_start + 3, start + 3, _axial(pairing, body), np.zeros(3)))
        elif kind == _BALL:
            blocks.append((image_start, start, _axial(pairing, body), np.zeros(3)))
        else:
            blocks.append((image_start, start, np.array([[float(pairing.joint_signs[joint])]]), np.zeros(1)))
    return _assemble_blocks(int(model.nv), blocks)


def state(model: Any, pairing: Pairing) -> Affine:
    """The map of (qpos, qvel), shape (nq + nv, nq + nv)."""
    return block_diagonal([positions(model, pairing), velocities(model, pairing)])


def controls(model: Any, pairing: Pairing) -> Affine:
    """The map of `ctrl`, in the order of the actuators, shape (nu, nu)."""
    signs = pairing.actuator_signs
    blocks = [(int(image), i, np.array([[float(signs[i])]]), np.zeros(1)) for i, image in enumerate(pairing.actuators)]
    return _assemble_blocks(int(model.nu), blocks)


def per_body(model: Any, pairing: Pairing, block: Floats) -> Affine:
    """The map of an array with one row per body (world included), each row mapped by `block`."""
    width = len(block)
    rows = [(int(image) * width, i * width, block, np.zeros(width)) for i, image in enumerate(pairing.bodies)]
    return _assemble_blocks(width * len(pairing.bodies), rows)


def spatial_block(pairing: Pairing) -> Floats:
    """The map of a spatial vector as MuJoCo stores it, rotational part first: det(M) M, then M; shape (6, 6)."""
    matrix = pairing.isometry.matrix
    # Rotations first: axial vectors.
    return block_diagonal([linear(pairing.isometry.determinant * matrix), linear(matrix)]).matrix


def inertia_block(pairing: Pairing) -> Floats:
    """The map of a row of `cinert`: Ixx, Iyy, Izz, Ixy, Ixz, Iyz, mass times offset (3), mass; shape (10, 10)."""
    matrix = pairing.isometry.matrix
    pairs = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
    tensor = np.zeros((6, 6))
    for column, (i, j) in enumerate(pairs):
        unit = np.zeros((3, 3))
        # The tensor's image column by column: M E_ij M^T.
        unit[i, j] = unit[j, i] = 1.0
        image = matrix @ unit @ matrix.T
        tensor[:, column] = [image[k, m] for k, m in pairs]
    return block_diagonal([linear(tensor), linear(matrix), linear(np.eye(1))]).matrix


def checked_part(whole_map: Affine, rows: slice, name: str, fail: Callable[[str], Exception]) -> Affine:
    """The restriction of a map to a part of a vector; the images of that part must lie within it.

    Args:
        whole_map: the map of the whole vector.
        rows: the components of the part.
        name: the name of the part in messages.
        fail: constructs the error.

    Returns:
        The map of the part.

    Raises:
        Exception: the error from `fail`, if images of these components lie outside the part.
    """
    kept = np.arange(whole_map.dim)[rows]
    rest = np.setdiff1d(np.arange(whole_map.dim), kept)
    # If the images of some columns lie outside the part, the part has no separate map.
    leaving = [int(j) for j in kept if whole_map.matrix[np.ix_(rest, [j])].any()]
    if leaving:
        raise fail(
            f"{name} is not mapped to itself: the images of components {leaving} of the whole vector lie outside it"
        )
    return Affine(whole_map.matrix[np.ix_(kept, kept)], whole_map.offset[kept])
