"""One run over a mirror function: batches, images and wrong columns, each computed once."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from symcheck.array_types import Floats
from symcheck.engine.mirrors.options import MirrorOptions
from symcheck.engine.mirrors.rows import Images, Row, columns_that_differ, expected_row, read_rows
from symcheck.engine.mirrors.samples import draw
from symcheck.engine.versions import versions_of
from symcheck.mirror_functions.grouped_calls import Answer, GroupedFunction
from symcheck.mujoco.differences import Difference
from symcheck.mujoco.layouts.laid_out import ACTION, LaidGroup, LaidOut
from symcheck.statements.statement import Statement


@dataclass(frozen=True)
class WrongColumn:
    """One column that differs from the model.

    Attributes:
        group: the observation group, or "action".
        index: its index in the group.
        element: index of the first non-identity element under which the column is wrong.
        expected: the row that the model requires.
        found: the row that the function returns.
    """

    group: str
    index: int
    element: int
    expected: Row
    found: Row


@dataclass
class MirrorContext:
    """The argument of the properties of a mirror.

    Attributes:
        laid: the layout applied to the robot; None for a model alone.
        function: the mirror function; None for a model alone.
        options: the options of the run.
        differences: the differences of the model under each generator, the largest first.
        unpaired: elements without an image, in words, with the name of the isometry.
        remarks: settings under which even a symmetric model is only nearly symmetric.
        elements: the model elements that were compared with their images.
        explained: codes of wrong columns and their causes, computed on first use.
    """

    laid: LaidOut | None
    function: GroupedFunction | None
    options: MirrorOptions
    differences: tuple[Difference, ...] = ()
    unpaired: tuple[tuple[str, str], ...] = ()
    remarks: tuple[str, ...] = ()
    elements: int = 0
    explained: tuple[list[tuple[WrongColumn, str]], tuple[Statement, ...]] | None = None

    @property
    def layout(self) -> LaidOut:
        """The layout, if there is a function."""
        if self.laid is None:
            raise RuntimeError("a model that is checked alone has no layout")
        return self.laid

    @property
    def called(self) -> GroupedFunction:
        """The function, if there is one."""
        if self.function is None:
            raise RuntimeError("a check of a model alone calls no function")
        return self.function

    def groups(self) -> dict[str, LaidGroup]:
        """The observation groups, and the action."""
        return {**self.layout.observation, ACTION: self.layout.action}

    @functools.cached_property
    def batch(self) -> dict[str, Floats]:
        """Random vectors of every group."""
        rng = np.random.default_rng(self.options.seed)
        tables = {name: draw(group, rng, self.options.samples) for name, group in self.groups().items()}
        # Functions receive float32, so use numbers that float32 represents exactly.
        return {name: table.astype(np.float32).astype(np.float64) for name, table in tables.items()}

    def answer_to(self, batch: Mapping[str, Floats]) -> Answer:
        """The images of a batch, observations and actions together."""
        observations = {name: table for name, table in batch.items() if name != ACTION}
        return self.called.images(observations or None, batch[ACTION])

    @functools.cached_property
    def answer(self) -> Answer:
        """The images of the random batch."""
        return self.answer_to(self.batch)

    def images(self, name: str) -> Floats | None:
        """The images of one group, (blocks, rows, width); None if the function returned none."""
        return self.answer.actions if name == ACTION else self.answer.observations[name]

    @functools.cached_property
    def block_order(self) -> tuple[int, ...]:
        """The block of every non-identity element: in order, or reversed for clockwise quarter turns."""
        listed = tuple(range(1, self.called.order))
        # Both directions of rotation give the same group; choose the one that fits more columns.
        backwards = (3, 2, 1)
        clockwise = self.layout.group.name == "C4" and self._misses(backwards) < self._misses(listed)
        return backwards if clockwise else listed

    @functools.cached_property
    def misplaced_blocks(self) -> str:
        """The order of the blocks, if they are correct but in another order; "" otherwise."""
        group = self.layout.group
        for order in itertools.permutations(range(self.called.order)):
            if order != (0, *self.block_order) and self._fits(order[1:]) and self._is_identity(order[0]):
                listed = sorted(range(self.called.order), key=lambda element: order[element])
                return ", ".join(group.element_name(group.elements()[element]) for element in listed)
        return ""

    def _is_identity(self, block: int) -> bool:
        answers = {name: self.images(name) for name in self.groups()}
        return all(
            found is not None and not columns_that_differ(self.batch[name], found[block], self.batch[name]).any()
            for name, found in answers.items()
        )

    def _fits(self, order: tuple[int, ...]) -> bool:
        """Whether blocks in this order agree with the model for all non-identity elements."""
        return self._misses(order) == 0

    def _misses(self, order: tuple[int, ...]) -> int:
        """The number of columns that differ with blocks in this order; all columns of a group without images."""
        misses = 0
        for name, group in self.groups().items():
            images = self.images(name)
            for element, block in enumerate(order):
                misses += (
                    group.width
                    if images is None
                    else int(
                        columns_that_differ(self.expected_images(name, element), images[block], self.batch[name]).sum()
                    )
                )
        return misses

    def expected_images(self, name: str, element: int) -> Floats:
        """The images according to the model, (rows, width)."""
        group = self.groups()[name]
        return np.asarray((group.matrices[element] @ self.batch[name].T).T + group.offsets[element])

    @functools.cached_property
    def wrong(self) -> tuple[WrongColumn, ...]:
        """Every wrong column, group by group in order, the action last."""
        return tuple(column for name in self.groups() for column in self._wrong_of(name))

    def _wrong_of(self, name: str) -> list[WrongColumn]:
        group, images = self.groups()[name], self.images(name)
        if images is None:
            return [WrongColumn(name, c, 0, expected_row(group, 0, c), Row(kind="absent")) for c in range(group.width)]
        first: dict[int, int] = {}
        for element in range(len(group.matrices)):
            expected = self.expected_images(name, element)
            differing = columns_that_differ(expected, images[self.block_order[element]], self.batch[name])
            for c in np.flatnonzero(differing).tolist():
                first.setdefault(c, element)
        wrong = []
        for element in sorted(set(first.values())):
            columns = sorted(c for c, e in first.items() if e == element)
            rows = read_rows(self._block(name, self.block_order[element]), group.width, columns, self.batch[name])
            wrong += [WrongColumn(name, c, element, expected_row(group, element, c), rows[c]) for c in columns]
        return sorted(wrong, key=lambda item: item.index)

    def _block(self, name: str, block: int) -> Images:
        """One block of the function on one group, with the other groups at rest."""

        def images(table: Floats) -> Floats:
            batch = {other: np.zeros((len(table), group.width)) for other, group in self.groups().items()}
            batch[name] = table
            try:
                answer = self.answer_to(batch)
            except Exception:  # the function may raise on zeros in the other groups
                return np.full((len(table), self.groups()[name].width), np.nan)
            found = answer.actions if name == ACTION else answer.observations[name]
            return np.full(table.shape, np.nan) if found is None else np.asarray(found[block])

        return images


def versions() -> dict[str, str]:
    """Versions of the packages involved."""
    return versions_of("symcheck", "numpy", "scipy", "torch", "mujoco")
