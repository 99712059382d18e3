"""Comparison of whole episodes: totals of named features, and one feature learned from half of the episodes."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from symcheck.array_types import Bools, Floats
from symcheck.engine.clock import raise_if_overdue
from symcheck.engine.equations import Part
from symcheck.engine.features import hermite_features, normal_scores, spreads
from symcheck.engine.regression import Fit
from symcheck.engine.scales import FLOAT64_EPSILON, Bulk, bulk
from symcheck.spaces.coordinates import finite

_EXPLAINED = 1e-5  # relative to a normal score: the residual of an exact fit with a ridge of 1e-9
_TIE = 64  # in rounding units: outcomes that differ by a few units due to rounding count as equal
_MOST_JOINED = 8  # maximum number of coordinates; their 28 pairs define subsets for one outcome
_MOST_FEATURES = 2000  # maximum number of (coordinate, side) pairs of each moment
_WIDEST_TAILS = 64  # maximum number of coordinates for which skews and tails are features
_SINGLE_STEPS = 50  # number of steps of an episode that have separate indicators
_LEARNED_RIDGE = 0.1  # relative to the mean squared column: weights of rare (s, a) stay near zero
_OFTEN = 0.05  # smallest fraction of the transitions in which a repeated value occurs
# fraction of the transitions with a usual value, and number of others that are ranked separately
_USUAL, _FEWEST_OTHERS = 0.5, 40
# fraction of a repeated value, number of such values, and number of varying others
_ATOM, _MOST_ATOMS, _VARYING = 0.01, 4, 20
_ROWS_PER_TERM = 20
# number of earlier actions that are considered, and the weight of each one relative to the next, from the third on
_LONGEST_DELAY, _FADING = 10, 0.8
# number of powers of time, from 0, and maximum number of columns of products with them
_TIME_POWERS, _MOST_TIMED = 4, 200
_LEFT_BY_TIME = 0.5  # relative to the standard deviation: a fit with time must reduce the residual below this


@dataclass(frozen=True)
class Transitions:
    """The transitions of one episode, mapped or not.

    Attributes:
        obs: observations before each step, shape (t, dim).
        actions: actions, a list of t.
        rewards: shape (t,).
        following: observations after each step, shape (t, dim).
        ended: shape (t,): 1 if the episode terminated, 0.5 if the environment itself truncated it, otherwise 0.
        shows_numbers: whether any observation after a step contains a number; NaN is dropped from reduced ones.
    """

    obs: Floats
    actions: list[Any]
    rewards: Floats
    following: Floats
    ended: Floats
    shows_numbers: bool


@dataclass(frozen=True)
class EpisodePairs:
    """Paired episodes under one element: `plain[i]` and `mapped[i]` may be swapped."""

    plain: list[Transitions]
    mapped: list[Transitions]

    @property
    def steps(self) -> int:
        """The total number of steps."""
        return sum(len(episode.rewards) for episode in (*self.plain, *self.mapped))

    def pairs_in(self, steps: float) -> int:
        """The number of pairs in a given number of steps, at the mean length of the episodes played."""
        return math.ceil(len(self.plain) * steps / max(self.steps, 1))


@dataclass(frozen=True)
class EpisodeFeatures:
    """The compared features of one part under one element.

    Attributes:
        scores: the scores of the outcomes, shape (transitions, targets).
        named: totals over each episode, shape (episodes, features).
        described: names of these.
        means: how many of the first features are means, the simplest ones.
    """

    scores: Floats
    named: Floats
    described: list[str]
    means: int


def what_followed(part: Part, episodes: list[Transitions]) -> Floats:
    """The outcome of (s, a) in every transition, shape (transitions, dim)."""
    if not episodes:
        return np.zeros((0, 1))
    if part == "transition":
        return np.concatenate([episode.following for episode in episodes])
    column = {"reward": "rewards", "termination": "ended"}[part]
    return np.concatenate([getattr(episode, column) for episode in episodes])[:, None]


def repeating_columns(targets: Floats) -> Bools:
    """The columns in which one value is so frequent that its rank carries little information, shape (targets,)."""
    often = [np.unique(column, return_counts=True)[1].max() for column in targets.T]
    return np.asarray(often) > _OFTEN * len(targets)


class RankedOutcomes(NamedTuple):
    """Outcomes and their ranks, before the ranks of values that often repeat are fitted; shapes (transitions, targets).

    Attributes:
        scores: normal scores.
        residual: the part of the outcome that (s, a) does not explain.
        repeating: the columns whose values were ranked instead of their residuals, shape (targets,).
        tie: the difference up to which neighbouring residuals count as the same.
    """

    scores: Floats
    residual: Floats
    repeating: Bools
    tie: Floats


def rank_outcomes(targets: Floats, epsilon: Floats, fit: Fit) -> RankedOutcomes:
    """Normal scores of outcomes or of their residuals; see `score_outcomes`.

    Args:
        targets: outcomes, shape (transitions, targets).
        epsilon: rounding unit of each column.
        fit: the fit on terms of (s, a).
    """
    # NaN, infinities and outliers keep their ranks: no fit explains them.
    known, tie = _same_values(targets, epsilon)
    residual = known.without(fit.of(known.filled, np.isfinite(targets) & ~known.far))
    repeating = repeating_columns(targets)
    return RankedOutcomes(normal_scores(np.where(repeating, targets, residual), tie), residual, repeating, tie)


def _same_values(targets: Floats, epsilon: Floats) -> tuple[Bulk, Floats]:
    """The outliers of outcomes, and the difference up to which neighbouring values are the same, shape (n, targets)."""
    epsilon = np.maximum(epsilon, FLOAT64_EPSILON)
    known = bulk(targets, epsilon)
    # 1e-9 of the values' scale: the rounding of the fit is not a difference. Neither are a few units of the dtype: the
    # image of a repeated value may be a neighbouring float.
    return known, known.tie(epsilon, _TIE) + 1e-9 * np.maximum(np.abs(known.filled).max(axis=0), 1e-3)


def score_outcomes(ranked: RankedOutcomes, fit: Fit) -> Floats:
    """Normal scores of the part of the outcome that (s, a) does not explain, shape (transitions, targets).

    Values that often repeat (terminations, integers) are scored before the fit. Otherwise only the fit would rank their
    residuals, and the fit differs wherever the two groups visit different states.

    Args:
        ranked: the outcomes, with the residuals of the same fit.
        fit: the fit on terms of (s, a).
    """
    scores, repeating = ranked.scores.copy(), ranked.repeating
    if repeating.any():
        # Fit the scores, not the values, because the ranks of ties would depend on the fit.
        rest = scores[:, repeating] - fit.of(scores[:, repeating])
        scores[:, repeating] = np.where(np.abs(rest) > _EXPLAINED, rest, 0.0)
    return scores


def score_unusual(targets: Floats, names: list[str], epsilon: Floats, fit: Fit) -> tuple[Floats, list[str]]:
    """Normal scores of all values other than the frequent ones, 0 elsewhere, and of where the frequent ones occur.

    A reward given only at the end of an episode is 0 in most steps, and its order would be lost among the zeros. A
    penalty, or NaN, that replaces the lowest of many values would get their ranks.

    Args:
        targets: outcomes, shape (transitions, targets).
        names: the names of the targets.
        epsilon: rounding unit of each column.
        fit: the fit on terms of (s, a), simple ones first.

    Returns:
        The scores, shape (transitions, some), and their names; no column if no value is frequent.
    """
    columns: list[Floats] = []
    described: list[str] = []
    _, tie = _same_values(targets, epsilon)
    ranks = normal_scores(targets, tie)  # the same for values that differ by rounding
    for j, name in enumerate(names):
        frequent, others, where = _frequent_values(targets[:, j], ranks[:, j])
        rows = np.flatnonzero(others)
        if len(rows) < _FEWEST_OTHERS:
            continue
        own = Fit(fit.design[rows, : max(1, len(rows) // _ROWS_PER_TERM)])
        column = np.zeros((len(targets), 1))
        column[rows] = score_outcomes(rank_outcomes(targets[rows][:, [j]], epsilon[[j]], own), own)
        columns.append(column)
        described.append(f"{name} where it is not {' or '.join(f'{value:g}' for value in frequent)}")
        if where.shape[1] and len(names) <= _WIDEST_TAILS:
            columns.append(score_outcomes(rank_outcomes(where, np.zeros(where.shape[1]), fit), fit))
            described += [f"[{name} = {value:g}]" for value in frequent]
    return np.concatenate([np.zeros((len(targets), 0)), *columns], axis=1), described


def _frequent_values(column: Floats, ranks: Floats) -> tuple[Floats, Bools, Floats]:
    """The frequent values of a column, the rows of all others, and an indicator for each value where the others vary.

    If the others take few values, only the most frequent value counts, and only where it is usual.
    """
    _, first, place, count = np.unique(ranks, return_index=True, return_inverse=True, return_counts=True)
    often = np.flatnonzero(count > _ATOM * len(column))
    if 0 < len(often) <= min(_MOST_ATOMS, len(count) - _VARYING):
        return column[first[often]], ~np.isin(place, often), (place[:, None] == often).astype(np.float64)
    most = int(count.argmax())
    # If there are only two values, the rarer one has no order.
    others = (place != most) & (len(count) > 2 and count[most] >= _USUAL * len(column))
    return column[first[[most]]], others, np.zeros((len(column), 0))


def episode_starts(episodes: list[Transitions]) -> npt.NDArray[np.intp]:
    """The first row of each episode."""
    return np.cumsum([0, *(len(episode.rewards) for episode in episodes[:-1])])


def step_numbers(starts: npt.NDArray[np.intp], count: int) -> npt.NDArray[np.intp]:
    """The index of every transition within its episode, from 0, shape (count,)."""
    return np.arange(count) - np.repeat(starts, np.diff([*starts, count]))


def step_sides(numbers: npt.NDArray[np.intp]) -> list[tuple[str, Floats]]:
    """Named 0/1 indicators of the step number, which reveal a hidden clock that no episode total shows."""
    late = numbers > np.median(numbers)
    return [
        ("in the first step compared with later ones", (numbers == 0).astype(np.float64)),
        ("in even steps compared with odd ones", (numbers % 2 == 0).astype(np.float64)),
        ("late in episodes compared with early", late.astype(np.float64)),
    ]


def time_terms(coarse: Floats, numbers: npt.NDArray[np.intp], targets: Floats, epsilon: Floats, rest: Floats) -> Floats:
    """Products of (s, a) with powers of time, if some outcome depends on the step number as well.

    If a reward is discounted by an unobserved time, (s, a) and time together explain it.

    Args:
        coarse: constant, linear and quadratic terms of (s, a), shape (transitions, columns).
        numbers: the numbers of the steps, shape (transitions,).
        targets: outcomes, shape (transitions, targets).
        epsilon: rounding unit of each column.
        rest: the part of the outcomes that (s, a) alone does not explain.

    Returns:
        Shape (transitions, columns); no column if time does not halve the rest of any outcome.
    """
    none = np.zeros((len(targets), 0))
    known = bulk(targets, np.maximum(epsilon, FLOAT64_EPSILON)).filled
    left = finite(rest).std(axis=0)
    open_ = (left > _EXPLAINED * known.std(axis=0)) & ~repeating_columns(targets)
    if _TIME_POWERS * coarse.shape[1] > _MOST_TIMED or not open_.any() or not numbers.any():
        return none
    time = (numbers / numbers.max())[:, None]
    terms = np.concatenate([coarse * time**power for power in range(_TIME_POWERS)], axis=1)
    better = (known - Fit(terms).of(known)).std(axis=0) < _LEFT_BY_TIME * left
    return terms[:, coarse.shape[1] :] if (better & open_).any() else none


def joint_sides(names: list[str], columns: Floats) -> list[tuple[str, Floats]]:
    """Named 0/1 indicators of two coordinates jointly, which reveal a reward near a goal.

    Args:
        names: the names of the coordinates.
        columns: standardised, shape (n, coordinates); only the first ones if there are many.
    """
    pairs = itertools.combinations(range(min(_MOST_JOINED, columns.shape[1])), 2)
    return [
        (
            f"where {names[i]} and {names[j]} are both high or both low compared with elsewhere",
            (columns[:, i] * columns[:, j] > 0).astype(np.float64),
        )
        for i, j in pairs
    ]


def sides_of_earlier_actions(
    named: list[tuple[str, Floats]], numbers: npt.NDArray[np.intp]
) -> list[tuple[str, Floats]]:
    """Named 0/1 indicators of earlier actions, which reveal effects that come after the next observation.

    If velocities are hidden or observations are delayed, no outcome depends on the action of its own step, so any map
    of actions would pass.

    Args:
        named: standardised columns of the actions, shape (n,), each with a phrase for its high values.
        numbers: the numbers of the steps, shape (n,).
    """
    sides = []
    for text, column in named:
        ago = [np.where(numbers >= lag, np.roll(column, lag), 0.0) for lag in range(1, _LONGEST_DELAY + 1)]
        earlier = np.stack(ago[2:], axis=1) @ _FADING ** np.arange(_LONGEST_DELAY - 2)
        times = (("in the step before", ago[0]), ("two steps before", ago[1]), ("in earlier steps", earlier))
        sides += [(f"{text}, {when}", (values > 0).astype(np.float64)) for when, values in times]
    return sides


def step_columns(numbers: npt.NDArray[np.intp]) -> Floats:
    """An indicator for each step number, later ones by tens, each with mean square 1; shape (n, some)."""
    places = np.where(numbers < _SINGLE_STEPS, numbers, _SINGLE_STEPS + (numbers - _SINGLE_STEPS) // 10)
    columns = (places[:, None] == np.unique(places)).astype(np.float64)
    return np.asarray(columns / np.sqrt(columns.mean(axis=0)))


@dataclass(frozen=True)
class Sides:
    """Subsets of the transitions for which features are computed separately: named 0/1 indicators, shape (n,).

    Attributes:
        drawn: those that depend only on the uniform policy and the step number.
        visited: those that depend on the states, in which two groups differ as soon as their dynamics do.
    """

    drawn: list[tuple[str, Floats]]
    visited: list[tuple[str, Floats]]

    def with_starts(self, starts: npt.NDArray[np.intp]) -> Sides:
        """These subsets, and the episodes that start in each of the first visited ones.

        Args:
            starts: the first row of each episode.
        """
        begun = []
        for text, side in self.visited[:_MOST_JOINED]:
            lengths = np.diff([*starts, len(side)])
            begun.append((f"in episodes that start {text}", np.repeat(side[starts], lengths)))
        return Sides(self.drawn, [*self.visited, *begun])


def named_features(
    scores: Floats, names: list[str], sides: Sides, fit: Fit, starts: npt.NDArray[np.intp], *, deep: bool
) -> tuple[Floats, list[str], int]:
    """Totals over each episode of moments and products, also by side.

    Args:
        scores: normal scores of the outcomes, shape (n, targets).
        names: the names of the targets.
        sides: only the first ones if there are too many.
        fit: the fit on terms of (s, a), on which all moments except the mean are regressed; otherwise the moments of a
            constant value would reveal the visited states.
        starts: the first row of each episode.
        deep: whether moments other than the mean are also computed by visited sides.

    Returns:
        Shape (episodes, features), their names, and how many of the first are means; then spreads, ..., each everywhere
        and by side.
    """
    everywhere, labels = _moments(scores, names)
    blocks: list[Floats] = []
    described: list[str] = []
    means = 0
    for values, (moment, known) in zip(everywhere, labels, strict=True):
        plain = moment == "mean"
        kept = values if plain else values - fit.of(values)
        blocks.append(totals(kept, starts))
        described += known
        picked = sides.drawn + (sides.visited if plain or deep else [])
        for text, side in picked[: max(1, _MOST_FEATURES // len(known))]:
            raise_if_overdue()
            # Centred, so that a global difference of the mean does not count again here.
            blocks.append(totals(kept * (side - side.mean())[:, None], starts))
            described += [f"{name} {text}" for name in known]
        means = len(described) if plain else means
    return np.concatenate(blocks, axis=1), described, means


def _moments(scores: Floats, names: list[str]) -> tuple[list[Floats], list[tuple[str, list[str]]]]:
    """The moments that are totalled, each of shape (n, some), with their names."""
    if len(names) > _WIDEST_TAILS:
        return [scores, spreads(scores)], [(m, [f"{m} of {name}" for name in names]) for m in ("mean", "spread")]
    values, described = hermite_features(scores, names)
    moments = list(dict.fromkeys(feature.moment for feature in described))
    places = [[i for i, feature in enumerate(described) if feature.moment == moment] for moment in moments]
    named = [(m, [described[i].name for i in place]) for m, place in zip(moments, places, strict=True)]
    return [values[:, place] for place in places], named


class Learner:
    """Learns one feature from the first half of the pairs, for tests on the second half.

    The difference of the two groups given (s, a) is learned by regression. Swaps of the second half are independent of
    the first, so the test keeps its level for any learned feature.

    Args:
        design: covariates of the transitions, shape (n, columns); factorised once for the outcomes of all parts.
        starts: the first row of each episode; plain episodes first.
        pairs: the number of pairs of episodes.
    """

    def __init__(self, design: Floats, starts: npt.NDArray[np.intp], pairs: int) -> None:
        from scipy.linalg import lu_factor

        raise_if_overdue()
        episode = np.repeat(np.arange(2 * pairs), np.diff([*starts, len(design)]))
        self._starts, self._pairs = starts, pairs
        # Both members of a pair are in the same half, because swaps act on whole pairs.
        self._teaching = (episode % pairs) < pairs // 2
        self._sign = np.where(episode[self._teaching] < pairs, -1.0, 1.0)[:, None]
        self._taught, self._judged = design[self._teaching], design[~self._teaching]
        gram = self._taught.T @ self._taught
        # A ridge in units of the mean squared column, so that it does not depend on the number of transitions.
        ridge = _LEARNED_RIDGE * float(np.trace(gram)) / len(gram) * np.eye(len(gram))
        self._factors = lu_factor(gram + ridge, check_finite=False)

    def differences(self, scores: Floats) -> Floats:
        """Differences of the learned feature on the second half of the pairs, shape (pairs, 1).

        Args:
            scores: the scores of the outcomes, shape (n, targets).
        """
        from scipy.linalg import lu_solve

        raise_if_overdue()
        wanted = self._taught.T @ (self._sign * scores[self._teaching])
        weights = lu_solve(self._factors, wanted, check_finite=False)
        feature = np.zeros((len(scores), 1))
        feature[~self._teaching, 0] = np.einsum("ij,ij->i", scores[~self._teaching], self._judged @ weights)
        summed, half = totals(feature, self._starts), self._pairs // 2
        return summed[half : self._pairs] - summed[self._pairs + half :]


def totals(features: Floats, starts: npt.NDArray[np.intp]) -> Floats:
    """Sums over each episode, shape (episodes, features)."""
    return np.asarray(np.add.reduceat(features, starts, axis=0))
