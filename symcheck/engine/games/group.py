"""Which group the images are, by how they rearrange the policy vector and the boards."""

from __future__ import annotations

from typing import Any

from symcheck.engine.games.context import GameContext
from symcheck.groups.element import Element
from symcheck.mdp.group_names import named_group

_LISTED_UP_TO = 64


def group_of(context: GameContext) -> dict[str, Any]:
    """Name and order of the images' group.

    Args:
        context: the run.

    Returns:
        The group of the policy's rearrangements, where there are as many as distinct images; else their number.
    """
    order = len(context.classes)
    places = context.comparison.reference
    images = [None if item is None else tuple(item.tolist()) for item in places]
    distinct = {item for item in images if item is not None}
    whole = not context.axioms.violated and not context.axioms.without_identity
    if None in images or len(distinct) != order or order > _LISTED_UP_TO or not whole:
        return {"name": f"{order} images" if order != 1 else "1 image", "order": order}
    if order == 1:
        return {"name": "trivial", "order": 1}
    return {"name": named_group([Element(item) for item in sorted(distinct)], order).name, "order": order}
