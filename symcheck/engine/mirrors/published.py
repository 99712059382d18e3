"""Wrong columns and differences in the form of the JSON report."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from symcheck.engine.mirrors.context import MirrorContext, WrongColumn
from symcheck.engine.mirrors.rows import describe_row


def publish_columns(context: MirrorContext, coded: Sequence[tuple[WrongColumn, str]]) -> tuple[dict[str, Any], ...]:
    """One object per wrong column: group, term, name, index, expected, found, code."""
    if context.laid is None:
        return ()
    groups = context.groups()
    return tuple(
        {
            "group": column.group,
            "term": groups[column.group].term_name(column.index) if column.group != "action" else "action",
            "name": groups[column.group].full_label(column.index),
            "index": column.index,
            "expected": describe_row(groups[column.group], column.expected, column.index),
            "found": describe_row(groups[column.group], column.found, column.index),
            "code": code,
        }
        for column, code in coded
    )


def publish_differences(context: MirrorContext) -> tuple[dict[str, Any], ...]:
    """One object per number of the model that differs from its image, the largest relative difference first."""
    return tuple(
        {
            "element": item.element,
            "counterpart": item.counterpart,
            "quantity": item.quantity,
            "expected": list(item.expected),
            "actual": list(item.actual),
            "relative": item.relative if math.isfinite(item.relative) else math.inf,
            "text": str(item),
        }
        for item in context.differences
    )
