"""Episodes as columns of numbers: (s, a), the outcome, and the features that a test of whole episodes compares."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from symcheck.array_types import Bools, Floats
from symcheck.engine.cells import Cells, cells_of, counts_by_cell, totals_by_cell
from symcheck.engine.episodes import (
    EpisodeFeatures,
    EpisodePairs,
    Learner,
    RankedOutcomes,
    Sides,
    Transitions,
    episode_starts,
    joint_sides,
    named_features,
    rank_outcomes,
    score_outcomes,
    score_unusual,
    sides_of_earlier_actions,
    step_columns,
    step_numbers,
    step_sides,
    time_terms,
    totals,
    what_followed,
)
from symcheck.engine.equations import Part
from symcheck.engine.features import WIDEST_TIE
from symcheck.engine.places import locate
from symcheck.engine.rare_events import find_far_off, mark_far_off, mark_switches, mark_thresholds, score_cuts
from symcheck.engine.regression import Fit, polynomial, second_order, smooth_terms, standardise, told_apart
from symcheck.engine.scales import FLOAT32_EPSILON, bulk, coarsest_unit, in_float32
from symcheck.engine.shared_covariates import region_of
from symcheck.spaces.coordinates import SpaceCodec, finite
from symcheck.spaces.reduction import Reduction

_MOST_COVARIATES = 400
_DENSER = 1.2  # times the difference of a step in a box: one of states after steps is named where it says more
_MOST_LEARNED = 800  # columns of the learned feature's regression


def action_columns(codec: SpaceCodec, actions: Sequence[object]) -> tuple[Floats, list[str]]:
    """Actions as columns: one indicator per discrete action, otherwise the flattened vector.

    Args:
        codec: the codec of the action space.
        actions: a list of n.

    Returns:
        Shape (n, columns), and the names of the columns.
    """
    flat = codec.flatten_batch(actions)
    n = getattr(codec.space, "n", None)
    if flat.shape[1] == 1 and isinstance(n, int | np.integer) and n <= 18:
        start = int(getattr(codec.space, "start", 0))
        indicators = (flat == np.arange(start, start + int(n))[None, :]).astype(np.float64)
        return indicators[:, 1:], [f"action {start + i}" for i in range(1, int(n))]
    return flat, list(codec.coordinates.names)


class OutcomesByEpisode(NamedTuple):
    """Outcomes of steps for `detectable_change`, with their totals; plain episodes first.

    Attributes:
        values: the values of all steps, shape (steps, targets).
        ranks: their normal scores.
        differences: the differences of totals of the scores, shape (pairs, targets).
        totals: the totals of the part that (s, a) does not explain, shape (2 pairs, targets).
    """

    values: Floats
    ranks: Floats
    differences: Floats
    totals: Floats


class _Given(NamedTuple):
    """(s, a) of the steps of some episodes, and the fits on it.

    Attributes:
        covariates: shape (transitions, columns).
        names: the names of these columns.
        drawn: the number of leading columns that are actions.
        starts: the first row of each episode.
        coarse: the fit on constant, linear and quadratic terms.
        fine: the fit on higher powers too.
        cells: the cells of (s, a).
    """

    covariates: Floats
    names: list[str]
    drawn: int
    starts: npt.NDArray[np.intp]
    coarse: Fit
    fine: Fit
    cells: Cells


class EpisodeColumns:
    """Columns of the episodes of one environment.

    Args:
        view: the form in which observations are compared.
        actions: the codec of the action space.
        exact: whether images are not rounded, so that even coarse dtypes are rounded in the same way on both sides.
    """

    def __init__(self, view: Reduction, actions: SpaceCodec, *, exact: bool = False) -> None:
        self._view, self._actions = view, actions
        self._coarsest = FLOAT32_EPSILON if exact else math.inf
        self._latest: tuple[list[Transitions], _Given] | None = None
        self._taught: tuple[_Given, Learner] | None = None

    def outcomes(self, part: Part, group: EpisodePairs) -> OutcomesByEpisode:
        """The outcomes of all steps, as the test of their means compares them."""
        episodes, pairs = [*group.plain, *group.mapped], len(group.plain)
        given = self._share_fits(episodes)
        starts = given.starts
        targets, _, epsilon = self._targets(part, episodes)
        ranked = rank_outcomes(targets, epsilon, given.coarse)
        scores, residual = totals(ranked.scores, starts), finite(ranked.residual)
        # A copy of an earlier value (a stacked frame) leaves a residual of rounding, which cannot serve as the unit of
        # its changes.
        explained = ranked.repeating & (np.abs(residual) <= WIDEST_TIE * ranked.tie).all(axis=0)
        return OutcomesByEpisode(
            np.where(ranked.repeating, targets, ranked.residual),
            ranked.scores,
            scores[:pairs] - scores[pairs:],
            totals(np.where(explained, finite(targets), residual), starts),
        )

    def rounding(self, part: Part, group: EpisodePairs) -> float:
        """The largest difference in some outcome that would count as rounding; 0 if every difference counts."""
        episodes = [*group.plain, *group.mapped]
        targets, _, epsilon = self._targets(part, episodes)
        ranked = rank_outcomes(targets, epsilon, self._share_fits(episodes).coarse)
        return float(WIDEST_TIE * np.median(ranked.tie[:, ~ranked.repeating], axis=0).max(initial=0.0))

    def features(self, part: Part, group: EpisodePairs) -> EpisodeFeatures:
        """The features of one part that are compared under one element."""
        episodes = [*group.plain, *group.mapped]
        given = self._share_fits(episodes)
        starts, coarse, fine = given.starts, given.coarse, given.fine
        targets, target_names, epsilon = self._targets(part, episodes)
        scores = score_outcomes(rank_outcomes(targets, epsilon, coarse), coarse)
        sides = self._sides(given, joint=len(target_names) == 1)
        deep = part == "transition"  # for the others, a rejection may be a consequence: use only safe features
        named, described, means = named_features(scores, target_names, sides, coarse, starts, deep=deep)
        ranked = rank_outcomes(targets, epsilon, fine)
        if fine.design.shape[1] > coarse.design.shape[1]:
            # The residual of a nonlinear fit is far smaller, but the fit may also absorb a fault in states that only
            # one side visits.
            sharp = score_outcomes(ranked, fine)
            more, names, _ = named_features(sharp, target_names, sides, coarse, starts, deep=deep)
            named, described = np.concatenate([named, more], axis=1), [*described, *names]
        unusual, others = score_unusual(targets, target_names, epsilon, fine)
        timed = time_terms(coarse.design, step_numbers(starts, len(scores)), targets, epsilon, ranked.residual)
        if timed.shape[1]:
            both = Fit(np.concatenate([fine.design, timed], axis=1))
            unusual = np.concatenate([unusual, score_outcomes(rank_outcomes(targets, epsilon, both), both)], axis=1)
            others += [f"{name} given the step number" for name in target_names]
        rare, events = self._rare_events(part, episodes, ranked, target_names)
        # The end of an episode may depend on its start, which the last states no longer show.
        since = sides.with_starts(starts) if part == "termination" else sides
        for some, names, divided in ((unusual, others, sides), (rare, events, since)):
            if names:
                more, names, plain = named_features(some, names, divided, coarse, starts, deep=False)
                named, described = np.concatenate([more[:, :plain], named], axis=1), [*names[:plain], *described]
                means += plain
        apart = ranked.scores if given.cells.single else score_outcomes(ranked, fine)
        by_cell, where = totals_by_cell(apart, target_names, given.cells, starts)
        counts, outcomes = counts_by_cell(targets, target_names, epsilon, given.cells, starts)
        named, described = np.concatenate([named, by_cell, counts], axis=1), [*described, *where, *outcomes]
        scores = np.concatenate([scores, unusual], axis=1)
        return EpisodeFeatures(scores, named, described, means)

    def size(self, part: Part, group: EpisodePairs, name: str) -> dict[str, object]:
        """How much a named feature differs between episodes and their images, and where, as fields of statements.

        Returns:
            `size`, the difference of the means of a step, or `deviations`, both standard deviations; `place`, the sides
            of the box in which it differs most clearly, and `there`, the difference of the means in it. Fields that are
            not known are left out.
        """
        episodes = [*group.plain, *group.mapped]
        given = self._share_fits(episodes)
        targets, target_names, epsilon = self._targets(part, episodes)
        own = np.arange(len(targets)) < given.starts[len(group.plain)]
        ranked = rank_outcomes(targets, epsilon, given.fine)
        marks, events = self._rare_events(part, episodes, ranked, target_names)
        # Outcomes far from the fit are all of the reward; of other parts their sizes say nothing.
        known = ranked.residual if part == "reward" else np.full((len(own), 1), np.nan)
        rests = np.concatenate([ranked.residual, np.repeat(known, len(events), axis=1)], axis=1)
        columns = np.concatenate([score_outcomes(ranked, given.fine), marks], axis=1)
        names = [*target_names, *events]
        sides = self._sides(given, joint=len(target_names) == 1).with_starts(given.starts)
        parts = [("", np.ones(len(own))), *((f" {text}", side) for text, side in (*sides.drawn, *sides.visited))]
        named = (
            (side, j, moment)
            for (text, side), (j, column), moment in itertools.product(parts, enumerate(names), ("mean", "spread"))
            if name == f"{moment} of {column}{text}"
        )
        if (compared := next(named, None)) is None:
            return self._differing_box(part, columns, rests, episodes, own)  # a learned feature depends on all columns
        side, j, moment = compared
        fields = self._differing_box(part, columns[:, [j]], rests[:, [j]], episodes, own) if moment == "mean" else {}
        if j < len(target_names):
            rest = rank_outcomes(targets[:, [j]], epsilon[[j]], given.coarse).residual[:, 0]
            there = (side > 0) & np.isfinite(rest) & ~bulk(targets[:, [j]], epsilon[[j]]).far[:, 0]
            first, images = rest[there & own], rest[there & ~own]
            if len(first) and len(images) and moment == "mean":
                fields["size"] = float(abs(first.mean() - images.mean()))
            elif len(first) and len(images):
                fields["deviations"] = [float(first.std()), float(images.std())]
        return fields

    def _differing_box(
        self, part: Part, columns: Floats, rests: Floats, episodes: list[Transitions], own: Bools
    ) -> dict[str, object]:
        """Where the scores that differ most clearly do so, and by how much there, as fields of statements."""
        actions = self._actions.flatten_batch([action for each in episodes for action in each.actions])
        steps = 1 + step_numbers(episode_starts(episodes), len(actions))[:, None]
        signed = np.where(own[:, None], columns, -columns)
        clearest = int(np.argmax(np.abs(signed.sum(axis=0)) / np.sqrt((signed**2).sum(axis=0)).clip(1e-300)))
        best, fields = 0.0, dict[str, object]()
        # What is paid, or ends an episode, may depend on the state before the step or on the one after it.
        for prefix, seen in (("", "obs"), ("next ", "following"))[: 1 if part == "transition" else 2]:
            whole = np.concatenate([getattr(each, seen) for each in episodes])
            coordinates, (states,) = self._view.coordinates.unrolled([whole])
            names = [*(f"{prefix}{name}" for name in coordinates.names), *self._actions.coordinates.names]
            box = np.concatenate([states, actions, steps], axis=1)
            place, inside = locate(signed[:, clearest], box, [*names, "the step number"], own)
            density = abs(float(signed[inside, clearest].mean()))
            if place and density > _DENSER * best:
                best, fields = density, {"place": [side._asdict() for side in place]}
                means = [float(rests[inside & side, clearest].mean()) for side in (own, ~own) if (inside & side).any()]
                if np.isfinite(means).all():
                    fields["there"] = abs(means[0] - (means[1] if len(means) > 1 else 0.0))
        return fields

    def _sides(self, given: _Given, *, joint: bool) -> Sides:
        """The subsets of steps in which features are computed.

        For a single outcome, also by two coordinates jointly.
        """
        covariates, names, drawn = given.covariates, given.names, given.drawn
        columns = [
            (region_of(name).text, (column > 0).astype(np.float64))
            for name, column in zip(names, covariates.T, strict=True)
        ]
        numbers = step_numbers(given.starts, len(covariates))
        earlier = [(columns[j][0], covariates[:, j]) for j in range(drawn)]
        # With the coordinates of a next state there would be too many.
        pairs = joint_sides(names[drawn:], covariates[:, drawn:]) if joint else []
        visited = [*columns[drawn:], *pairs, *sides_of_earlier_actions(earlier, numbers)]
        return Sides([*step_sides(numbers), *columns[:drawn]], visited)

    def _share_fits(self, episodes: list[Transitions]) -> _Given:
        """The data that all parts of the same episodes share."""
        known, given = self._latest or ([], None)
        # Keep a reference to the episodes, so that their ids stay unique.
        if given is None or [*map(id, known)] != [*map(id, episodes)]:
            covariates, names, drawn = self._covariates(episodes)
            fits = Fit(polynomial(covariates)), Fit(smooth_terms(covariates))
            given = _Given(covariates, names, drawn, episode_starts(episodes), *fits, self._cells(episodes))
            self._latest = episodes, given
        return given

    def _cells(self, episodes: list[Transitions]) -> Cells:
        states, actions = self._view.coordinates, self._actions.coordinates
        return cells_of(
            np.concatenate([episode.obs for episode in episodes]),
            self._actions.flatten_batch([action for episode in episodes for action in episode.actions]),
            [*states.names, *actions.names],
            np.concatenate([states.epsilon, actions.epsilon]),
        )

    def _rare_events(
        self, part: Part, episodes: list[Transitions], ranked: RankedOutcomes, names: list[str]
    ) -> tuple[Floats, list[str]]:
        """Columns for rare events, shape (transitions, some), and their names."""
        if part == "termination":
            following, shown, _ = self._targets("transition", episodes)
            ended = what_followed(part, episodes)[:, 0]
            cuts, numbered = score_cuts(ended, step_numbers(episode_starts(episodes), len(ended)))
            thresholds, beside = mark_thresholds(ended, following, shown)
            return np.concatenate([cuts, thresholds], axis=1), [*numbered, *beside]
        smooth = np.flatnonzero(~ranked.repeating)
        rest, tie = ranked.residual[:, smooth], ranked.tie[:, smooth]
        far = find_far_off(rest, tie)
        # A few outliers bend the fit of all others, most where few steps lead: they are judged by one without them.
        if (bent := np.flatnonzero(far.any(axis=0))).size:
            outcomes = self._targets(part, episodes)[0][:, smooth[bent]]
            known = np.isfinite(outcomes) & ~far[:, bent]
            rest = rest.copy()
            rest[:, bent] = outcomes - self._share_fits(episodes).fine.of(np.where(known, outcomes, 0.0), known)
        marks, events = mark_far_off(rest, tie, [names[j] for j in smooth])
        if part != "transition":
            return marks, events
        following, shown, epsilon = self._targets(part, episodes)
        switched, switches = mark_switches(following, shown, epsilon == 0)
        return np.concatenate([marks, switched], axis=1), [*events, *switches]

    def learner(self, group: EpisodePairs) -> Learner:
        """What learns one feature of the outcomes from (s, a); the same one for all parts of the same episodes."""
        episodes = [*group.plain, *group.mapped]
        given = self._share_fits(episodes)
        if self._taught is None or self._taught[0] is not given:
            learner = Learner(self._design(given.covariates, given.starts, episodes), given.starts, len(group.plain))
            self._taught = given, learner
        return self._taught[1]

    def _design(self, covariates: Floats, starts: npt.NDArray[np.intp], episodes: list[Transitions]) -> Floats:
        """Covariates, their products with the actions and with each other, and the step number."""
        actions, _ = action_columns(self._actions, [a for episode in episodes for a in episode.actions])
        actions = standardise(actions)
        # Omit columns at even spacing to keep the fit affordable; effects on omitted columns cannot be detected.
        stride = max(1, -(-covariates.shape[1] * (1 + actions.shape[1]) // _MOST_LEARNED))
        kept = covariates[:, ::stride]
        steps = step_columns(step_numbers(starts, len(kept)))
        joint = [*(kept * actions[:, [j]] for j in range(actions.shape[1])), second_order(covariates)]
        return np.concatenate([np.ones((len(kept), 1)), kept, actions, *joint, steps], axis=1)

    def _covariates(self, episodes: list[Transitions]) -> tuple[Floats, list[str], int]:
        """(s, a) of all transitions, (transitions, columns), the columns' names, and the number of action columns."""
        states = np.concatenate([episode.obs for episode in episodes])
        actions, action_names = action_columns(self._actions, [a for episode in episodes for a in episode.actions])
        coordinates, (states,) = self._view.coordinates.unrolled([states])
        states, state_names = told_apart(states, list(coordinates.names), coordinates.epsilon == 0)
        names = [*action_names, *state_names]
        columns = standardise(np.concatenate([actions, states], axis=1))
        # A constant column explains nothing, and would make the fit singular.
        varying = [j for j in range(columns.shape[1]) if columns[:, j].any()]
        kept = varying[:: max(1, -(-len(varying) // _MOST_COVARIATES))]
        drawn = sum(j < len(action_names) for j in kept)
        return columns[:, kept], [names[j] for j in kept], drawn

    def _targets(self, part: Part, episodes: list[Transitions]) -> tuple[Floats, list[str], Floats]:
        """The outcomes of (s, a), their names, and the rounding unit of each column."""
        outcomes = what_followed(part, episodes)
        given = min(self._coarsest, coarsest_unit(self._view.coordinates, self._actions.coordinates))
        if part == "reward":
            return outcomes, [part], np.full(1, max(given, FLOAT32_EPSILON if in_float32(outcomes) else 0.0))
        if part == "termination":
            return outcomes, [part], np.zeros(1)
        coordinates, (following,) = self._view.coordinates.unrolled([outcomes])
        following, columns = told_apart(following, list(coordinates.names), coordinates.epsilon == 0)
        names = [f"next {name}" for name in columns]
        kept = [j for j in range(following.shape[1]) if np.ptp(finite(following[:, j])) > 0] or [0]
        units = np.minimum(coordinates.epsilon, self._coarsest)
        own = np.where(units > 0, np.maximum(units, given), 0.0)
        epsilon = np.concatenate([own, np.zeros(len(columns) - coordinates.dim)])  # indicators are integers
        return following[:, kept], [names[j] for j in kept], epsilon[kept]
