"""What of a continuous group was tested, said beside every verdict."""

from __future__ import annotations

import dataclasses

from symcheck.engine.results import PropertyResult
from symcheck.statements.statement import Statement, state


def with_elements(result: PropertyResult, note: Statement | None) -> PropertyResult:
    """The result with the elements that were tested, as a note and (where it has a bound) in its region.

    Args:
        result: of one property.
        note: what was tested; None of finite groups, whose generators are.
    """
    if note is None:
        return result
    bound = result.bound
    if bound is not None and bound.get("region") is not None:
        bound = {**bound, "region": state("region_and_elements", region=bound["region"], elements=note)}
    return dataclasses.replace(result, bound=bound, notes=(*result.notes, note))
