"""A layout applied to a robot: every column of every observation group and of the action, with its image.

The image of a group is a sparse matrix per element of the symmetry group, assembled from the terms of one frame and
spread over the frames: a column of frame k has its image in frame k.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from symcheck.array_types import Floats
from symcheck.errors import SpecError
from symcheck.groups.group import Group
from symcheck.mujoco.isometry import whole
from symcheck.mujoco.layouts.document import GroupHistory, WrittenLayout
from symcheck.mujoco.layouts.robot import Robot, robot_of
from symcheck.mujoco.layouts.terms import LaidTerm, Orders, driven_matrix, lay_term
from symcheck.mujoco.loading import LoadedModel

ACTION = "action"


@dataclass(frozen=True)
class Column:
    """One component of a vector.

    Attributes:
        term: the position of its term in the group.
        frame: the frame in a history, oldest first; 0 if there is only one.
        component: its position within one frame of the term.
    """

    term: int
    frame: int
    component: int


@dataclass(frozen=True)
class LaidGroup:
    """One observation group, or the action.

    Attributes:
        name: the name of the group; "action" for the action.
        terms: the terms in order.
        columns: all columns, in order.
        matrices: one per non-identity element, in the order of the blocks; each (width, width).
        offsets: one per non-identity element, (width,).
        frames: the number of frames of each term.
    """

    name: str
    terms: tuple[LaidTerm, ...]
    columns: tuple[Column, ...]
    matrices: tuple[sparse.csr_array, ...]
    offsets: tuple[Floats, ...]
    frames: tuple[int, ...]

    @property
    def width(self) -> int:
        """The number of columns."""
        return len(self.columns)

    def term_name(self, index: int) -> str:
        """The kind of the term that a column belongs to."""
        return self.terms[self.columns[index].term].written.kind

    def label(self, index: int) -> str:
        """A column's own name, without its term and frame."""
        column = self.columns[index]
        return self.terms[column.term].labels[column.component]

    def full_label(self, index: int) -> str:
        """A column's name, with its frame if there are several."""
        column = self.columns[index]
        framed = f", frame {column.frame}" if self.frames[column.term] > 1 else ""
        return f"{self.label(index)}{framed}"

    def seen_from(self, index: int, place: int) -> str:
        """A column's name next to another column: with its term and frame if these differ."""
        column, at = self.columns[index], self.columns[place]
        label = self.label(index)
        if column.term != at.term:
            label = f"{self.term_name(index)} {label}"
        return f"{label}, frame {column.frame}" if column.frame != at.frame else label


@dataclass(frozen=True)
class LaidOut:
    """A whole layout applied to a robot.

    Attributes:
        written: the layout as written.
        robot: the model and its images.
        observation: the groups, by name.
        action: the action.
        orders: the joint orders.
    """

    written: WrittenLayout
    robot: Robot
    observation: Mapping[str, LaidGroup]
    action: LaidGroup
    orders: Orders

    @property
    def group(self) -> Group:
        """The symmetry group."""
        return self.robot.group

    @property
    def name(self) -> str:
        """The name of the symmetry, for instance "mirror in the xz plane"."""
        return " and ".join(pairing.isometry.name for pairing in self.robot.pairings)


def lay_out(loaded: LoadedModel, written: WrittenLayout, robot: Robot | None = None) -> LaidOut:
    """Find the image of every column of a layout on a model.

    Args:
        loaded: the model.
        written: the layout.
        robot: the model with its images, if it was already paired.

    Returns:
        The layout with its columns and their images.

    Raises:
        SpecError: names that the model does not have, joints or feet without an image, or a term that is not mapped to
            itself.
    """
    robot = robot or robot_of(loaded, written)
    orders = orders_of(robot, written)
    groups = {
        name: assemble(
            name,
            [lay_term(robot, term, orders) for term in terms],
            robot,
            written.history.get(name, GroupHistory()),
            per_term=[term.history for term in terms],
        )
        for name, terms in written.observation.items()
    }
    return LaidOut(written, robot, groups, lay_action(robot, orders, f"{written.label}, action"), orders)


def orders_of(robot: Robot, written: WrittenLayout) -> Orders:
    """The joint orders of a layout.

    Raises:
        SpecError: names that the model does not have.
    """
    joints = robot.joints(written.joints, f"{written.label}, joints")
    action = joints if written.action is None else robot.actions(written.action, f"{written.label}, action.order")
    return Orders(joints, action)


def lay_action(robot: Robot, orders: Orders, where: str) -> LaidGroup:
    """The action as a group with one term, which transforms as the last action does.

    Raises:
        SpecError: a joint or actuator whose image is not in the action.
    """
    from symcheck.mujoco.layouts.document import WrittenTerm

    generators = range(len(robot.pairings))
    matrices = tuple(sparse.csr_array(driven_matrix(robot, orders.action, k, where)) for k in generators)
    labels = tuple(driven.label for driven in orders.action)
    term = LaidTerm(WrittenTerm("last_action", {}, 1, where), labels, matrices, driven=orders.action)
    return assemble(ACTION, [term], robot, GroupHistory(), per_term=[1])


def assemble(
    name: str, terms: Sequence[LaidTerm], robot: Robot, history: GroupHistory, *, per_term: Sequence[int]
) -> LaidGroup:
    """Assemble one group from its terms.

    Args:
        name: the name of the group.
        terms: the terms in order.
        robot: gives the symmetry group and the images of points.
        history: the history of the whole group.
        per_term: the number of frames of every term; all 1 if the group has a history.

    Raises:
        SpecError: the image of a point is not observed, or the images are not a group action.
    """
    columns, frames = _list_columns(terms, history, per_term)
    starts = [0, *itertools.accumulate(term.dim for term in terms)]
    generators = [_single_frame(terms, starts, robot, k) for k in range(len(robot.pairings))]
    _check_relations(generators, robot, name)
    matrices, offsets = [], []
    for g in robot.group.elements()[1:]:
        matrix, offset = sparse.csr_array(sparse.eye_array(starts[-1])), np.zeros(starts[-1])
        for letter in robot.group.word(g):
            step, shift = generators[letter]
            matrix, offset = sparse.csr_array(step @ matrix), step @ offset + shift
        matrices.append(matrix)
        offsets.append(offset)
    spread = [
        _spread_over_frames(matrix, offset, columns, starts) for matrix, offset in zip(matrices, offsets, strict=True)
    ]
    return LaidGroup(
        name, tuple(terms), tuple(columns), tuple(m for m, _ in spread), tuple(b for _, b in spread), tuple(frames)
    )


def _list_columns(
    terms: Sequence[LaidTerm], history: GroupHistory, per_term: Sequence[int]
) -> tuple[list[Column], list[int]]:
    if history.frames == 1:
        frames = list(per_term)
        return [
            Column(t, f, c) for t, term in enumerate(terms) for f in range(frames[t]) for c in range(term.dim)
        ], frames
    frames = [history.frames] * len(terms)
    if history.layout == "frames":
        return [
            Column(t, f, c) for f in range(history.frames) for t, term in enumerate(terms) for c in range(term.dim)
        ], frames
    return [
        Column(t, f, c) for t, term in enumerate(terms) for f in range(history.frames) for c in range(term.dim)
    ], frames


def _single_frame(
    terms: Sequence[LaidTerm], starts: Sequence[int], robot: Robot, generator: int
) -> tuple[sparse.csr_array, Floats]:
    """Matrix and offset of one frame: terms side by side, points across terms."""
    matrix = sparse.lil_array(sparse.block_diag([term.matrices[generator] for term in terms], format="lil"))
    offset = np.zeros(starts[-1])
    pairing = robot.pairings[generator]
    places = {
        body: start + 3 * slot
        for term, start in zip(terms, starts, strict=False)
        for slot, body in enumerate(term.bodies)
    }
    for term, start in zip(terms, starts, strict=False):
        for slot, body in enumerate(term.bodies):
            image = int(pairing.bodies[body])
            if image not in places:
                raise SpecError(
                    f"the observation does not contain the image of {term.labels[3 * slot].rsplit(' ', 1)[0]}.",
                    where=term.written.where,
                    remedy="List the bodies of both sides.",
                )
            row, column = places[image], start + 3 * slot
            matrix[row : row + 3, column : column + 3] = pairing.isometry.matrix
            # These are points, not vectors: the image of the origin is added as an offset.
            offset[row : row + 3] = whole(pairing.isometry.point(np.zeros(3)))
    return sparse.csr_array(matrix), offset


def _check_relations(generators: Sequence[tuple[sparse.csr_array, Floats]], robot: Robot, name: str) -> None:
    """Check the group relations: a generator to the power of its order is the identity; two generators commute."""
    for (matrix, _), pairing in zip(generators, robot.pairings, strict=True):
        power = sparse.csr_array(sparse.eye_array(matrix.shape[0]))
        for _ in range(pairing.isometry.order):
            power = sparse.csr_array(matrix @ power)
        _refuse_open(power - sparse.eye_array(matrix.shape[0]), robot, name, pairing.isometry.name)
    if len(generators) == 2:
        first, second = generators[0][0], generators[1][0]
        _refuse_open(first @ second - second @ first, robot, name, "two mirrors")


def _refuse_open(difference: sparse.csr_array, robot: Robot, name: str, what: str) -> None:
    # Angles in files have at least six digits: 1e-5 of a unit vector.
    if difference.nnz and np.abs(difference.data).max() > 1e-5:
        raise SpecError(
            f"the images of the {what} on {name} are inconsistent: their composition is not the identity.",
            where=robot.label,
            remedy=(
                "Elements at the same position may have been confused. Use left and right in the names "
                "of the bodies of the model."
            ),
        )


def _spread_over_frames(
    matrix: sparse.csr_array, offset: Floats, columns: Sequence[Column], starts: Sequence[int]
) -> tuple[sparse.csr_array, Floats]:
    """The matrix of all columns from that of one frame."""
    single = np.array([starts[column.term] + column.component for column in columns], dtype=np.int64)
    frame = np.array([column.frame for column in columns], dtype=np.int64)
    size = starts[-1]
    # place[f, i]: the column of component i in frame f; -1 if there is none.
    place = np.full((int(frame.max(initial=0)) + 1, size), -1, dtype=np.int64)
    place[frame, single] = np.arange(len(columns))
    entries = sparse.coo_array(matrix)
    rows, cols, values = [], [], []
    for f in range(len(place)):
        target, source = place[f, entries.row], place[f, entries.col]
        kept = (target >= 0) & (source >= 0)
        rows.append(target[kept])
        cols.append(source[kept])
        values.append(entries.data[kept])
    whole_matrix = sparse.csr_array(
        (np.concatenate(values), (np.concatenate(rows), np.concatenate(cols))), shape=(len(columns), len(columns))
    )
    return whole_matrix, offset[single]
