"""The action map for a map of observations, from tables of effects of actions: effects are matched to their images."""

from __future__ import annotations

import numpy as np
from gymnasium import spaces

from symcheck.array_types import Floats
from symcheck.discovery.action_values import ActionValues
from symcheck.discovery.assignment import assign
from symcheck.discovery.maps import SignedMap
from symcheck.discovery.structure import action_middle


def match_effects(
    moved: Floats, effects: Floats, scale: Floats, values: ActionValues | None, space: spaces.Space[object]
) -> tuple[SignedMap, float]:
    """Match mapped effects of actions with effects of actions.

    Args:
        moved: L applied to the effect of every literal of the actions (or +component, -component, ...), shape (k, dim).
        effects: the effects themselves, shape (k, dim).
        scale: the scale of each coordinate, shape (dim,) or broadcastable.
        values: the literals of integer actions; None if rows are components changed up and down.
        space: the action space.

    Returns:
        The action map and the largest mean misfit of a matched effect, relative to the scale.

    Example:
        >>> effects = np.array([[1.0], [-1.0]])
        >>> two = spaces.Discrete(2)
        >>> match_effects(-effects, effects, np.ones(1), ActionValues(two), two)
        (SignedMap(index=(1, 0), sign=(1, 1), offset=(0.0, 0.0)), 0.0)
    """
    misfit = np.abs((moved / scale)[:, None] - (effects / scale)[None]).sum(axis=-1) / moved.shape[1]
    if values is not None:
        action_map = values.match(misfit, range(len(misfit)))
        return action_map, float(misfit[np.arange(len(misfit)), list(action_map.index)].max(initial=0.0))
    kept, turned = misfit[::2, ::2], misfit[::2, 1::2]
    rows, index = np.arange(len(kept)), assign(np.minimum(kept, turned))
    sign = np.where(kept[rows, index] <= turned[rows, index], 1, -1)
    middle = action_middle(space) if isinstance(space, spaces.Box) else np.zeros(len(index))
    worst = np.minimum(kept, turned)[rows, index].max(initial=0.0)
    return SignedMap.about(index, sign, middle), float(worst)
