"""Plausible wrong maps of a term, each computed like the correct one.

A mistake explains wrong columns if it agrees exactly with the function there, and with the model wherever the function
is correct.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from symcheck.engine.mirrors.context import MirrorContext
from symcheck.engine.mirrors.rows import Row, expected_row, matrix_row
from symcheck.errors import SymcheckError
from symcheck.mujoco.layouts.document import GroupHistory, WrittenLayout, WrittenTerm
from symcheck.mujoco.layouts.grids import permutation_matrix
from symcheck.mujoco.layouts.laid_out import ACTION, LaidGroup, LaidOut, assemble, lay_out
from symcheck.mujoco.layouts.robot import Driven, isometries_of, pair_robot
from symcheck.mujoco.layouts.terms import LaidTerm, driven_matrix, lay_term
from symcheck.mujoco.layouts.vocabulary import JOINT_TERMS
from symcheck.mujoco.loading import LoadedModel


@dataclass(frozen=True)
class Seen:
    """The function's rows for one group under one element: wrong columns as read, all others as expected.

    Attributes:
        group: the group.
        element: index of the non-identity element.
        wrong: the row read, by wrong column.
    """

    group: LaidGroup
    element: int
    wrong: Mapping[int, Row]

    def row(self, column: int) -> Row:
        """The row of a column."""
        found = self.wrong.get(column)
        return expected_row(self.group, self.element, column) if found is None else found

    def columns_of(self, term: int) -> list[int]:
        """The columns of one term, all frames."""
        return [i for i, column in enumerate(self.group.columns) if column.term == term]

    def is_explained(self, matrix: Any, columns: list[int]) -> bool:
        """Whether a map of the whole group agrees with the function in these columns."""
        return all(self.row(c).same_as(matrix_row(matrix, c)) for c in columns)

    def is_explained_by_frame(self, matrix: Any, term: int) -> bool:
        """Whether a map of one frame of a term agrees with the function in all its columns."""
        places = {
            (column.frame, column.component): i for i, column in enumerate(self.group.columns) if column.term == term
        }
        for (frame, component), place in places.items():
            row = matrix_row(matrix, component)
            moved = Row(tuple((places[frame, c], value) for c, value in row.terms))
            if not self.row(place).same_as(moved):
                return False
        return True


def element_matrix(context: MirrorContext, matrices: tuple[Any, ...], element: int) -> Any:
    """The matrix of an element from those of the generators."""
    group = context.layout.group
    matrix = sparse.csr_array(sparse.eye_array(matrices[0].shape[0]))
    for letter in group.word(group.elements()[1:][element]):
        matrix = sparse.csr_array(matrices[letter] @ matrix)
    return matrix


def other_plane(context: MirrorContext, name: str) -> LaidGroup | None:
    """The mirror of a group in the other vertical plane; None if the robot has no image there, or for other groups."""
    written, robot = context.layout.written, context.layout.robot
    if written.group != "C2":
        return None
    swapped = replace(written, plane="yz" if written.plane == "xz" else "xz")
    try:
        laid = _lay_again(context, swapped, robot.model)
    except SymcheckError:
        return None
    return laid.action if name == ACTION else laid.observation[name]


def _lay_again(context: MirrorContext, written: WrittenLayout, model: Any) -> LaidOut:
    loaded = LoadedModel(model, context.layout.robot.label)
    return lay_out(loaded, written, pair_robot(loaded, *isometries_of(written)))


def other_histories(context: MirrorContext, seen: Seen) -> Iterator[tuple[str, Any]]:
    """The same terms with other orders of their history, as (name of the order, matrix)."""
    group, written = seen.group, context.layout.written
    if group.name == ACTION or max(group.frames) == 1:
        return
    declared = written.history.get(group.name)
    frames = declared.frames if declared is not None and declared.frames > 1 else max(group.frames)
    own = declared.layout if declared is not None and declared.frames > 1 else "terms"
    if len(set(group.frames)) == 1:
        for reading in ("frames", "terms"):
            if reading != own:
                history, single = GroupHistory(frames, reading), [1] * len(group.terms)
                other = assemble(group.name, group.terms, context.layout.robot, history, per_term=single)
                yield reading, other.matrices[seen.element]
    yield "components", _component_major(context, seen)


def _component_major(context: MirrorContext, seen: Seen) -> Any:
    """All frames of one component, then of the next, term by term, in the columns of the layout."""
    rows: list[int] = []
    columns: list[int] = []
    values: list[float] = []
    for t, term in enumerate(seen.group.terms):
        places, frames = seen.columns_of(t), seen.group.frames[t]
        single = element_matrix(context, term.matrices, seen.element).toarray()
        # Component c of frame f is at c * frames + f.
        entries = sparse.coo_array(np.kron(single, np.eye(frames)))
        rows += [places[i] for i in entries.row]
        columns += [places[j] for j in entries.col]
        values += entries.data.tolist()
    return sparse.csr_array((values, (rows, columns)), shape=(seen.group.width, seen.group.width))


def other_orders(context: MirrorContext, seen: Seen, term: int) -> Iterator[tuple[str, tuple[str, ...], Any]]:
    """A joint term in other joint orders, as (name, labels, matrix of one frame)."""
    robot = context.layout.robot
    written = seen.group.terms[term].written
    if written.kind not in JOINT_TERMS:
        return
    own = seen.group.terms[term].driven
    signed = bool(written.arguments.get("sign", written.kind != "per_joint"))
    for name, listed in _known_orders(context, own):
        if len(listed) != len(own) or listed == own:
            continue
        try:
            matrices = tuple(
                sparse.csr_array(driven_matrix(robot, listed, k, "", signed=signed)) for k in range(len(robot.pairings))
            )
        except SymcheckError:
            continue
        yield name, tuple(driven.label for driven in listed), element_matrix(context, matrices, seen.element)


def _known_orders(context: MirrorContext, own: tuple[Driven, ...]) -> Iterator[tuple[str, tuple[Driven, ...]]]:
    """Orders used by libraries, restricted to the joints of the term if they contain more."""
    robot, orders = context.layout.robot, context.layout.orders
    by_place = {(driven.section, driven.index): driven for driven in own}
    candidates: list[tuple[str, tuple[Driven, ...]]] = [("joints", orders.joints), ("action", orders.action)]
    for name in ("model", "breadth_first", "urdf"):
        try:
            candidates.append((name, robot.joints(name, "")))
        except SymcheckError:
            continue
    if robot.model.nu:
        actuators = tuple(Driven(name, "actuator", i) for name, i in robot._names_of("actuator").items())
        candidates.append(("actuators", actuators))
        driven_joints = tuple(
            Driven("", "joint", robot._joint_of(driven)) for driven in actuators if robot._joint_of(driven) >= 0
        )
        candidates.append(("actuators", driven_joints))
    candidates.append(("alphabetical", tuple(sorted(own, key=lambda driven: driven.label))))
    for name, listed in candidates:
        yield name, tuple(by_place[d.section, d.index] for d in listed if (d.section, d.index) in by_place)


def other_terms(context: MirrorContext, seen: Seen, term: int) -> Iterator[tuple[str, Any]]:
    """A term under the mistakes that are common for its kind, as (finding code, matrix of one frame)."""
    laid = seen.group.terms[term]
    written, right = laid.written, element_matrix(context, laid.matrices, seen.element)
    reflects = _reflects(context, seen.element)
    match written.kind:
        # Under a reflection a polar vector is the negated axial one.
        case "base_ang_vel" | "axial" if reflects:
            yield "SYM206", -right
        case "euler_xyz" if reflects:
            yield "SYM207", -right
        case "base_lin_vel" | "gravity" | "vector" if reflects:
            yield "SYM208", -right
        case "clock":
            yield "SYM211", -right
        case "scan":
            yield from _other_scans(written)
        case "quat":
            order = "xyzw" if "".join(laid.labels) == "wxyz" else "wxyz"
            # The map of the other order, applied to the components in the given order.
            other = _lay(context, replace(written, arguments={"order": order}))
            if other is not None:
                yield "SYM215", element_matrix(context, other.matrices, seen.element)
        case "rot6d":
            # Row-major 3x2 matrix: entry (i, j) is at 2 i + j instead of 3 j + i.
            place = np.array([3 * j + i for i in range(3) for j in range(2)])
            dense = right.toarray()
            yield "SYM216", sparse.csr_array(dense[np.ix_(place, place)])


def _reflects(context: MirrorContext, element: int) -> bool:
    word = context.layout.group.word(context.layout.group.elements()[1:][element])
    signs = [context.layout.robot.pairings[letter].isometry.determinant for letter in word]
    return int(np.prod(signs)) < 0


def _other_scans(written: WrittenTerm) -> Iterator[tuple[str, Any]]:
    rows, cols = int(written.arguments["rows"]), int(written.arguments["cols"])
    # In the given order: along either axis or both; then with rows and columns exchanged.
    for code, shape in (("SYM212", (rows, cols)), ("SYM213", (cols, rows))):
        places = np.arange(rows * cols).reshape(shape)
        for axes in ((0,), (1,), (0, 1)):
            yield code, permutation_matrix(np.flip(places, axes).ravel().copy())


def _lay(context: MirrorContext, written: WrittenTerm) -> LaidTerm | None:
    try:
        return lay_term(context.layout.robot, written, context.layout.orders)
    except SymcheckError:
        return None
