"""The note that names the tested elements of a continuous group, attached to every verdict."""

from __future__ import annotations

import dataclasses

from symcheck.engine.results import PropertyResult
from symcheck.statements.statement import Statement, state


def with_elements(result: PropertyResult, note: Statement | None) -> PropertyResult:
    """The result with a note on the tested elements, which also extends the region of its bound, if it has one.

    Args:
        result: the result of one property.
        note: the tested elements; None for finite groups, for which all generators are tested.
    """
    if note is None:
        return result
    bound = result.bound
    if bound is not None and bound.get("region") is not None:
        bound = {**bound, "region": state("region_and_elements", region=bound["region"], elements=note)}
    return dataclasses.replace(result, bound=bound, notes=(*result.notes, note))
