"""The action columns of a mirror function are those of the mirror that is derived from the model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from symcheck.engine.equations import ACTION_COLUMNS
from symcheck.engine.registry import register
from symcheck.engine.results import PropertyResult

if TYPE_CHECKING:
    from symcheck.engine.mirrors.context import MirrorContext


def _applies(context: MirrorContext) -> bool:
    return context.function is not None


@register(
    ACTION_COLUMNS.name,
    kind="mirror",
    order=30,
    claim=ACTION_COLUMNS.claim,
    meaning=ACTION_COLUMNS.meaning,
    applies=_applies,
)
def check_action_columns(context: MirrorContext) -> PropertyResult:
    """Check every action column under every element of the group.

    Args:
        context: the run.

    Returns:
        passed, or failed with a cause for each mistake.
    """
    from symcheck.engine.mirrors.judgement import judge_columns  # loads the readers of models

    return judge_columns(context, ACTION_COLUMNS, [context.layout.action.name])
