"""The verdict on columns: how many were compared, how many are wrong, and why."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import sparse

from symcheck.engine.equations import Equation
from symcheck.engine.mirrors.context import MirrorContext
from symcheck.engine.mirrors.findings import code_columns
from symcheck.engine.results import PropertyResult
from symcheck.mujoco.layouts.laid_out import LaidGroup
from symcheck.statements.statement import Statement, state
from symcheck.verdict import Facts, ReasonCode, decide


def judge_columns(context: MirrorContext, equation: Equation, names: Sequence[str]) -> PropertyResult:
    """Decide the columns of some groups.

    Args:
        context: the run.
        equation: the claim about them.
        names: the names of the groups.

    Returns:
        failed if a column is wrong, with one cause per mistake; undecided if the mirror changes nothing.
    """
    groups = [context.groups()[name] for name in names]
    wrong = [item for item in context.wrong if item.group in names]
    elements = context.called.order - 1
    facts = Facts(
        checked=sum(group.width for group in groups) * elements,
        violations=len(wrong),
        quantity=equation.noun,
        moved=any(_moves_a_column(group) for group in groups),
        unattributed=_ambiguity(context),
    )
    verdict, reason = decide(facts)
    causes = tuple(cause for cause in code_columns(context)[1] if cause.fields["group"] in names)
    return PropertyResult(
        name=equation.name,
        verdict=verdict,
        method="columns",
        checked=facts.checked,
        violations=facts.violations,
        max_residual=max((_largest_difference(context, name) for name in names), default=None),
        unit=equation.unit,
        causes=causes if verdict == "failed" else (),
        notes=_notes_beside(context),
        reason=reason,
        facts=facts,
    )


def _ambiguity(context: MirrorContext) -> Statement | None:
    """Why wrong columns are not attributed to the function: the model has two candidate images of one body."""
    bodies = [text for pairing in context.layout.robot.pairings for text in pairing.ambiguous]
    return state(ReasonCode.MIRROR_AMBIGUOUS.value, bodies=bodies) if bodies else None


def _moves_a_column(group: LaidGroup) -> bool:
    """Whether any element changes a column."""
    rest = sparse.eye_array(group.width, format="csr")
    pairs = zip(group.matrices, group.offsets, strict=True)
    return any(abs(matrix - rest).sum() > 0 or offset.any() for matrix, offset in pairs)


def _largest_difference(context: MirrorContext, name: str) -> float:
    """The largest difference of any number of one group; infinite if the function returned no image."""
    images = context.images(name)
    if images is None:
        return float("inf")
    sizes = [
        np.abs(context.expected_images(name, element) - images[block]).max(initial=0.0)
        for element, block in enumerate(context.block_order)
    ]
    return float(np.nan_to_num(max(sizes), nan=np.inf))


def _notes_beside(context: MirrorContext) -> tuple[Statement, ...]:
    notes = [state("tolerance_columns")]
    if context.block_order != tuple(range(1, context.called.order)):
        notes.append(state("mirror_turns_clockwise"))
    if context.differences or context.unpaired:
        notes.append(
            state(
                "model_differences_beside",
                count=len(context.differences) + len(context.unpaired),
                first=context.unpaired[0][1] if context.unpaired else str(context.differences[0]),
            )
        )
    return tuple(notes)
