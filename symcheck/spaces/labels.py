"""Names coordinates by the named blocks to which they belong: "observation[14] (legs FL_knee)"."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from symcheck.spaces.coordinates import Coordinates


def label_columns(coordinates: Coordinates, labels: Mapping[Any, tuple[str, ...]]) -> Coordinates:
    """Append the names of columns to the names of coordinates.

    Args:
        coordinates: the coordinates of a flattened observation or action.
        labels: {key of a sub-space, or None for the whole: a name for every column}.

    Returns:
        The same coordinates, renamed if there is a label; unchanged if the labels do not fit.

    Example:
        >>> from symcheck.spaces.coordinates import vector_coordinates
        >>> label_columns(vector_coordinates("observation", 2, epsilon=0.0), {None: ("hip", "knee")}).names
        ('observation[0] (hip)', 'observation[1] (knee)')
    """
    names = list(coordinates.names)
    for key, texts in labels.items():
        mine = re.compile(r"\w+" + ("" if key is None else re.escape(f"[{key!r}]")) + r"(\[\d+\])+")
        columns = [i for i, name in enumerate(names) if mine.fullmatch(name)]
        if len(columns) == len(texts):
            for i, text in zip(columns, texts, strict=True):
                names[i] = f"{names[i]} ({text})"
    return replace(coordinates, names=tuple(names))
