"""Features of rare events in whole episodes: outliers of every fit, terminations near a threshold, and truncations.

Totals of ranks are insensitive to one step in a thousand. Here all other steps count as 0. Which steps count is decided
from both sides together, so swaps of whole episodes do not change it.
"""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt

from symcheck.array_types import Bools, Floats
from symcheck.engine.features import normal_scores
from symcheck.spaces.coordinates import finite

_QUANTILE, _FAR = 0.95, 8.0  # an outlier exceeds this multiple of this quantile of the distances from the fit
# minimum number of steps of a feature, and largest fraction of all steps that is still rare
FEWEST_EVENTS, _LARGEST_SHARE = 12, 0.05
_CUT = 0.5  # value of `Transitions.ended` if the environment itself truncated the episode
_MOST_COORDINATES = 16  # number of coordinates in which thresholds are searched for
_MOST_COMPARED = 8  # the same for differences of two coordinates
_MOST_SWITCHES = 4  # number of coordinates that switch


def find_far_off(residual: Floats, tie: Floats) -> Bools:
    """The outcomes far from what (s, a) explains, unless many are.

    Args:
        residual: the part that (s, a) does not explain, shape (steps, targets).
        tie: the difference up to which outcomes count as the same, of the same shape or for each target.

    Returns:
        Shape (steps, targets).
    """
    # NaN counts as far off, like an infinity.
    distance = np.where(np.isnan(residual), np.inf, np.abs(residual))
    far = distance > np.maximum(_FAR * np.quantile(distance, _QUANTILE, axis=0, method="nearest"), tie)
    return far & np.array([_is_rare(column) for column in far.T], dtype=np.bool_)


def mark_far_off(residual: Floats, tie: Floats, names: list[str]) -> tuple[Floats, list[str]]:
    """The sign of each residual that is an outlier, 0 elsewhere.

    A small region with a different reward gives such residuals, if rewards are smooth elsewhere.

    Args:
        residual: the part that (s, a) does not explain, shape (steps, targets).
        tie: see `find_far_off`.
        names: the names of the targets.

    Returns:
        Shape (steps, some), and their names; no column if there are no outliers.

    Example:
        >>> rest = np.linspace(-1e-3, 1e-3, 1000)[:, None]
        >>> rest[:20] = 0.3
        >>> marked, names = mark_far_off(rest, np.zeros(1), ["reward"])
        >>> int(marked.sum()), names
        (20, ['reward far from its fit'])
    """
    far = find_far_off(residual, tie)
    # In ranks, NaN lies below all numbers.
    signs = np.where(np.isnan(residual), -1.0, np.sign(residual)) * far
    kept = np.flatnonzero(far.any(axis=0))
    return signs[:, kept], [f"{names[j]} far from its fit" for j in kept]


def mark_thresholds(
    ended: Floats, following: Floats, names: list[str], event: str = "terminations"
) -> tuple[Floats, list[str]]:
    """Termination at coordinate values at which steps both end and continue, minus its frequency there; 0 elsewhere.

    If episodes end below -1.97 on one side and below -2 on the other, the steps in between distinguish the sides. The
    same holds for any other event that occurs beyond a threshold.

    Args:
        ended: 1 where an episode ended, shape (steps,).
        following: observations after the steps, shape (steps, dim); only the first coordinates are used.
        names: the names of the coordinates.
        event: the name of the event, as a plural.

    Returns:
        Shape (steps, some), and their names; no column if no threshold is narrow.

    Example:
        >>> x = np.linspace(-3, 3, 6001)
        >>> ended = (x < -2) | (x > 2) | (x < -1.97) & (np.arange(6001) % 2 == 0)
        >>> marked, names = mark_thresholds(ended.astype(float), x[:, None], ["x"])
        >>> names, bool(np.abs(x[marked[:, 0] != 0] + 1.985).max() < 0.02)
        (['terminations next to a threshold of x'], True)
    """
    over = ended == 1
    columns: list[Floats] = []
    described: list[str] = []
    # Episodes end far out, or near a goal, which another coordinate may be.
    held = [(names[j], following[:, j]) for j in range(min(_MOST_COORDINATES, following.shape[1]))]
    pairs = itertools.combinations(held[:_MOST_COMPARED], 2)
    with np.errstate(invalid="ignore"):  # readings may be infinite
        apart = [(f"{one} - {other}", left - right) for (one, left), (other, right) in pairs]
    for name, values in [*held, *apart] if over.any() and not over.all() else ():
        for outside in (over, ~over):
            beside = _between(values, outside) | _between(-values, outside)
            share = ended[beside].mean() if beside.any() else 0.0
            if _is_rare(beside) and 0 < share < 1:
                columns.append(np.where(beside, over - share, 0.0))
                described.append(f"{event} next to a threshold of {name}")
    return np.stack(columns, axis=1) if columns else np.zeros((len(ended), 0)), described


def mark_switches(following: Floats, names: list[str], whole: Bools) -> tuple[Floats, list[str]]:
    """Mark steps near thresholds at which values of observations switch: NaN, contacts, flags.

    Args:
        following: observations after the steps, shape (steps, dim).
        names: the names of the coordinates.
        whole: the coordinates with whole numbers, shape (dim,).

    Returns:
        As `mark_thresholds`, for the first coordinates that take two values or are not always numbers.

    Example:
        >>> x = np.linspace(-3, 3, 6001)
        >>> shown = np.where((x > 2) | (x < -2) | (x < -1.97) & (np.arange(6001) % 2 == 0), np.nan, x)
        >>> mark_switches(np.stack([x, shown], axis=1), ["x", "y"], np.zeros(2, bool))[1]
        ['values of y that are not numbers next to a threshold of x']
    """
    switches: list[tuple[str, Floats]] = []
    for name, column, has_levels in zip(names, following.T, whole, strict=True):
        unknown = ~np.isfinite(column)
        if unknown.any():
            switches.append((f"values of {name} that are not numbers", unknown.astype(np.float64)))
        elif has_levels and len(levels := np.unique(column)) == 2:
            switches.append((f"values {levels[1]:g} of {name}", (column == levels[1]).astype(np.float64)))
    marked = [mark_thresholds(column, following, names, event) for event, column in switches[:_MOST_SWITCHES]]
    columns = [np.zeros((len(following), 0)), *(columns for columns, _ in marked)]
    return np.concatenate(columns, axis=1), [name for _, described in marked for name in described]


def score_cuts(ended: Floats, numbers: npt.NDArray[np.intp]) -> tuple[Floats, list[str]]:
    """Normal scores of the step numbers at which the environment itself truncates episodes, 0 in all other steps.

    Args:
        ended: 0.5 where the environment truncated an episode, shape (steps,).
        numbers: the numbers of the steps within their episodes, shape (steps,).

    Returns:
        Shape (steps, 1) and its name; no column if all are truncated after the same number of steps.

    Example:
        >>> ended = np.tile([0, 0.5], 20)
        >>> score_cuts(ended, np.repeat([190, 200], 20))[0][[1, 39], 0].round(2).tolist()
        [-0.67, 0.67]
    """
    cut = ended == _CUT
    if cut.sum() < FEWEST_EVENTS or np.ptp(numbers[cut]) == 0:
        return np.zeros((len(ended), 0)), []
    column = np.zeros((len(ended), 1))
    column[cut] = normal_scores(numbers[cut].astype(np.float64)[:, None])
    return column, ["the step number at which the environment truncates"]


def _between(values: Floats, outside: Bools) -> Bools:
    """The steps above the middle of the inner ones that lie below the highest inner one and above the lowest outer one.

    Either the ends of episodes are outside, or the steps after which they go on.
    """
    upper = values > np.median(finite(values[~outside]))
    if not (upper & outside).any() or not (upper & ~outside).any():
        return np.zeros_like(outside)
    return np.asarray(upper & (values >= values[upper & outside].min()) & (values <= values[upper & ~outside].max()))


def _is_rare(chosen: Bools) -> bool:
    return FEWEST_EVENTS <= int(chosen.sum()) <= _LARGEST_SHARE * len(chosen)
