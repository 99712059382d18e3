"""Whether the blocks of a mirror function form the group: identity first, and block i after block j is block k.

Each fault is recorded with its columns. The function is also called with only observations and with only actions, as
training libraries do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from symcheck.array_types import Floats
from symcheck.engine.mirrors.context import MirrorContext
from symcheck.engine.mirrors.rows import columns_that_differ
from symcheck.errors import SpecError
from symcheck.mirror_functions.grouped_calls import Answer
from symcheck.mujoco.layouts.laid_out import ACTION
from symcheck.statements.statement import Statement, state


@dataclass(frozen=True)
class Axioms:
    """The result of the comparison.

    Attributes:
        checked: comparisons of whole blocks.
        violations: the number of those that differ.
        largest: the largest difference of any number.
        causes: one statement per fault.
        notes: further observations.
    """

    checked: int
    violations: int
    largest: float
    causes: tuple[Statement, ...]
    notes: tuple[Statement, ...] = ()


def check_axioms(context: MirrorContext) -> Axioms:
    """Compare the blocks with each other and with the input.

    Args:
        context: the run.

    Returns:
        Counts and faults.
    """
    causes: list[Statement] = []
    answer, batch = context.answer, context.batch
    checked = violations = 0
    largest = 0.0
    identity, _ = _differences(context, batch, _block_of(answer, 0))
    checked += 1
    violations += bool(identity)
    identity = {name: columns for name, columns in identity.items() if name not in answer.narrowed}
    if identity:
        other = next(
            (k for k in range(1, context.called.order) if not _differences(context, batch, _block_of(answer, k))[0]), 0
        )
        causes.append(
            state(
                "SYM230",
                columns=_names_by_group(context, identity),
                block=other,
                shown=_columns_in_words(context, identity),
            )
        )
    for name, dtype in answer.narrowed.items():
        causes.append(state("SYM235", place="the action" if name == ACTION else name, dtype=dtype))
    for i, j, k in _products(context):
        again = context.answer_to({name: _filled(table, batch[name]) for name, table in _block_of(answer, j).items()})
        differing, size = _differences(context, _block_of(answer, k), _block_of(again, i))
        checked += 1
        largest = max(largest, size)
        violations += bool(differing)
        differing = {name: columns for name, columns in differing.items() if name not in answer.narrowed}
        if differing:
            causes.append(
                state(
                    "SYM231",
                    first=_element_in_words(context, j),
                    second=_element_in_words(context, i),
                    product=_element_in_words(context, k),
                    columns=_names_by_group(context, differing),
                    shown=_columns_in_words(context, differing),
                )
            )
    if answer.changed:
        violations += 1
        causes.append(state("SYM232", groups=list(answer.changed)))
    halves, notes = _check_halves(context)
    causes += halves
    return Axioms(checked + 1, violations + len(halves), largest, tuple(causes[:6]), tuple(notes))


def _block_of(answer: Answer, block: int) -> dict[str, Floats | None]:
    observed = {name: None if table is None else table[block] for name, table in answer.observations.items()}
    return {**observed, ACTION: None if answer.actions is None else answer.actions[block]}


def _filled(table: Floats | None, given: Floats) -> Floats:
    """The image of a group, or the input if there is none; NaN or infinity would hide all other columns."""
    return given if table is None else np.nan_to_num(table, posinf=0.0, neginf=0.0)


def _products(context: MirrorContext) -> list[tuple[int, int, int]]:
    """All (i, j, k) such that element i after element j is element k, with i and j not the identity."""
    elements = context.layout.group.elements()
    listed = range(1, len(elements))
    return [(i, j, elements.index(elements[i] * elements[j])) for j in listed for i in listed]


def _differences(
    context: MirrorContext, expected: Mapping[str, Floats | None], actual: Mapping[str, Floats | None]
) -> tuple[dict[str, list[int]], float]:
    """The columns in which two blocks differ, by group, and the largest difference."""
    differing: dict[str, list[int]] = {}
    largest = 0.0
    for name, table in expected.items():
        other = actual[name]
        if table is None or other is None:
            continue
        columns = np.flatnonzero(columns_that_differ(table, other, context.batch[name])).tolist()
        largest = max(largest, float(np.nan_to_num(np.abs(table - other), nan=np.inf).max(initial=0.0)))
        if columns:
            differing[name] = columns
    return differing, largest


def _check_halves(context: MirrorContext) -> tuple[list[Statement], list[Statement]]:
    """Call the function for each half separately: the same images, or a fault; a rejection of None is recorded."""
    causes: list[Statement] = []
    notes: list[Statement] = []
    observations = {name: table for name, table in context.batch.items() if name != ACTION}
    for missing, given in (("actions", (observations or None, None)), ("obs", (None, context.batch[ACTION]))):
        if missing == "actions" and not observations:
            continue
        try:
            alone = context.called.images(*given)
        except SpecError as error:
            notes.append(state("mirror_half_refused", missing=missing, problem=str(error.problem)))
            continue
        except Exception as error:  # the function may raise any exception
            notes.append(state("mirror_half_refused", missing=missing, problem=f"{type(error).__name__}: {error}"))
            continue
        if missing == "actions":
            pairs = {name: (context.answer.observations[name], alone.observations[name]) for name in observations}
        else:
            pairs = {ACTION: (context.answer.actions, alone.actions)}
        differing = {
            name: np.flatnonzero(
                np.any(
                    [
                        columns_that_differ(*_nan_alike(a, b), context.batch[name])
                        for a, b in zip(both, half, strict=True)
                    ],
                    axis=0,
                )
            ).tolist()
            for name, (both, half) in pairs.items()
            if both is not None and half is not None
        }
        differing = {name: columns for name, columns in differing.items() if columns}
        if differing:
            causes.append(
                state(
                    "SYM233",
                    missing=missing,
                    columns=_names_by_group(context, differing),
                    shown=_columns_in_words(context, differing),
                )
            )
    return causes, notes


def _nan_alike(left: Floats, right: Floats) -> tuple[Floats, Floats]:
    """Both arrays, with 0 where both are NaN, because a half that is NaN in both calls does not differ."""
    lost = np.isnan(left) & np.isnan(right)
    return np.where(lost, 0.0, left), np.where(lost, 0.0, right)


def _element_in_words(context: MirrorContext, k: int) -> str:
    """An element described by its effect: "the batch itself", or the isometries of which it is composed."""
    group, pairings = context.layout.group, context.layout.robot.pairings
    word = group.word(group.elements()[k])
    return " and ".join(f"the {pairings[letter].isometry.name}" for letter in word) or "the batch itself"


def _names_by_group(context: MirrorContext, differing: Mapping[str, list[int]]) -> dict[str, list[str]]:
    groups = context.groups()
    return {name: [groups[name].full_label(c) for c in columns] for name, columns in differing.items()}


def _columns_in_words(context: MirrorContext, differing: Mapping[str, list[int]]) -> str:
    groups = context.groups()
    parts = []
    for name, columns in differing.items():
        labels = list(dict.fromkeys(f"{groups[name].term_name(c)} {groups[name].label(c)}" for c in columns))
        more = f" and {len(labels) - 4} more" if len(labels) > 4 else ""
        parts.append(f"{name}: {', '.join(labels[:4])}{more}")
    return "; ".join(parts)
