"""The search if states cannot be set: a model of rollouts proposes candidates, and whole episodes decide.

For vectors, the change of each coordinate in one step is regressed on the observation and the action. The coefficients
form a table of effects as in `structure`, but a noisy one, so it is compared with a large tolerance. For images the
candidates are rotations and reflections. Verification then uses whole episodes, and a pass says so.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from symcheck.array_types import Floats
from symcheck.discovery.actions import list_few
from symcheck.discovery.automorphisms import Found, automorphisms, exchanges
from symcheck.discovery.blocks import blocks_of
from symcheck.discovery.by_states import Proposals, identity_on, number, state_text
from symcheck.discovery.laboratory import Laboratory
from symcheck.discovery.maps import Candidate, SignedMap
from symcheck.discovery.matching import match_effects
from symcheck.discovery.moments import ERRORS, FEWEST_EPISODES, middle_of, moments_of_steps
from symcheck.discovery.picture_parts import Parts
from symcheck.discovery.pictures import propose_pictures
from symcheck.discovery.products import Products
from symcheck.discovery.result import Fate, Trial
from symcheck.discovery.rollouts import (
    FEWEST_STEPS,
    Rollouts,
    count_alike,
    join_rollouts,
    play_short,
    roll,
    sum_by_episode,
)
from symcheck.discovery.scales import PROBE, half_widths, probe_sizes
from symcheck.discovery.structure import Structure, both_signs, sensitivities_of
from symcheck.discovery.witnesses import Witnesses
from symcheck.errors import SymcheckError, TargetError

MOST_COORDINATES = 24
# tolerances for estimated coefficients: a third of the larger one, and a twentieth of the row's largest
_RELATIVE, _FLOOR = 0.3, 0.05
_FITS = 0.6  # largest misfit, relative to a typical step; large because the quadratic model is only approximate
# largest error of a usable model, relative to a typical step: a misfit of twice the model error is significant
_DESCRIBES = _FITS / 2
_COMPARED = 600  # number of steps on which predictions are compared
_FEWEST_MATCHED = 8  # steps at which actions are matched, at the least
_MOST_NUMBERS = 1_000_000  # entries of the table of their misfits
_MOST_CANDIDATES = 8  # maximum number: verification by whole episodes is slow
_MOST_HEARD = 2_000  # maximum number of candidates tested on episodes
_HEARING = 0.5  # of the time budget
_MOST_TRIED = 4  # action maps for one map of observations
_FEW_ERRORS = 3.0  # factor on the standard errors of fewer episodes, which are themselves inaccurate
_RIDGE = 1e-6
_REWARD_WEIGHT = 1e-2  # weight of the reward, relative to a step: it decides between actions with the same effect
# if there are too many maps, more steps in short episodes: start states distinguish goals and masks
_FURTHER, _SHORT = 12_000, 30
_LEAST_PAIRS, _LONGEST = 40, 100  # smallest number of pairs of episodes, and the number of compared steps of each
_FORM = "signed permutations of the observation that preserve its regression on the previous step"
_SAME = 1e-6  # relative to a coordinate's spread: equal numbers, possibly rounded to float32
_ACTION_WEIGHT = 0.5  # as in `structure`: halfway to the bound


def propose(lab: Laboratory) -> Proposals:
    """Search the observations from rollouts.

    Args:
        lab: an environment whose states cannot be set.

    Returns:
        Candidates for verification.

    Raises:
        TargetError: observations are too long to search.
    """
    parts = Parts.of(lab.observation_space)
    # Images are transformed as a whole; only the other components are counted.
    width = sum(block.size for block in parts.beside)
    if width > MOST_COORDINATES:
        raise TargetError(
            f"the observation has {width} components. If states cannot be set ({lab.why}), the search "
            f"supports at most {MOST_COORDINATES}.",
            where="observation space",
            remedy="Register state access with symcheck.register_state_access, or write the symmetry down and check it "
            "with verify-env.",
        )
    rollouts = roll(lab, parts.reduce) if parts.pictures else roll(lab)
    if len(rollouts.before) < FEWEST_STEPS:
        taken = f"{len(rollouts.before):,} step{'' if len(rollouts.before) == 1 else 's'}"
        said = f"the time budget ran out after {taken}, too few for a search; raise --max-time"
        return Proposals(complete=False, remarks=[said])
    proposals = propose_pictures(lab, rollouts) if parts.pictures else _vectors(lab, rollouts)
    proposals.least_samples = least_samples(rollouts)
    proposals.compared = f"a model of {len(rollouts.before):,} rollout steps"
    proposals.remarks.append(
        f"{lab.why}, so whole episodes are compared, which detects less than a comparison of single "
        "steps. Register state access with symcheck.register_state_access to compare single steps"
    )
    return proposals


def least_samples(rollouts: Rollouts) -> int:
    """The samples per generator that whole episodes need to refute a dependence on several numbers jointly.

    Half of the pairs of episodes are used for learning, and n others give a p-value of at least 2 / 2^n. With too few
    pairs no test could reject, so a candidate that was not rejected is not accepted.

    Args:
        rollouts: episodes of the environment.

    Returns:
        The number of samples that `verify-env` needs for 40 pairs of such episodes.
    """
    _, lengths = np.unique(rollouts.episode, return_counts=True)
    lengths = np.minimum(lengths, _LONGEST)
    # The typical length of an episode, weighted by steps, so that episodes truncated by the search have little weight.
    return math.ceil(_LEAST_PAIRS * float((lengths**2).sum() / lengths.sum()))


def effects_of(lab: Laboratory, rollouts: Rollouts) -> Structure:
    """A table of effects, from a regression of the change of each coordinate.

    Args:
        lab: the environment.
        rollouts: its steps.

    Returns:
        The table, to be compared with a large tolerance; coordinates stay in their part of the observation.
    """
    spread = half_widths(rollouts.before)
    # The model is linear, so the probe may be the whole spread, which is comparable to the effect of actions.
    sizes = probe_sizes(spread, whole=False, starts=rollouts.before[rollouts.begins]) / PROBE
    scale = np.where(spread > 0, spread, 1.0)
    design = np.concatenate([rollouts.before / scale, rollouts.actions, np.ones((len(rollouts.before), 1))], axis=1)
    moved = rollouts.after - rollouts.before
    penalty = _RIDGE * len(design) * np.eye(design.shape[1])
    weights = np.linalg.solve(design.T @ design + penalty, design.T @ moved)
    dim = rollouts.before.shape[1]
    errors = _standard_errors(lab, rollouts, design, moved - design @ weights, design.T @ design + penalty)
    states = weights[:dim] / scale[:, None] * sizes[:, None]
    actions = weights[dim:-1]
    discrete = lab.values is not None
    # Indicators sum to the constant column, so only differences between the values of a component are determined.
    actions = lab.values.centre(actions) if lab.values is not None else _ACTION_WEIGHT * actions
    floor = _FLOOR * np.abs(np.concatenate([states, actions])).max(axis=0)
    reach = np.concatenate([sizes / scale, np.full(len(actions), 1.0 if discrete else _ACTION_WEIGHT)])
    floor = np.maximum(np.maximum(floor, ERRORS * (reach[:, None] * errors).max(axis=0)), 1e-12)
    # The reaction to -e_j is minus the reaction to e_j in a linear model.
    rows = [row for effect in states for row in (effect, -effect)]
    rows += list(actions) if discrete else [row for effect in actions for row in (effect, -effect)]
    literals: list[tuple[int, ...]] = [(2 * j, 2 * j + 1) for j in range(dim)]
    first = 2 * dim
    literals += [(first + a,) if discrete else (first + 2 * a, first + 2 * a + 1) for a in range(len(actions))]
    return Structure(
        np.zeros(dim),
        both_signs(np.stack(rows)),
        np.zeros(2 * dim),
        np.repeat(floor, 2),
        tuple(literals),
        dim,
        tuple(int(j) for j in np.flatnonzero(sizes == 0)),
        _RELATIVE,
        pairs=_copies(rollouts.before, scale),
        parts=tuple(at for at, part in enumerate(blocks_of(lab.observation_space)) for _ in range(part.size)),
        joint=moments_of_steps(rollouts, middle_of(lab, rollouts.before)),
    )


def _standard_errors(lab: Laboratory, rollouts: Rollouts, design: Floats, left: Floats, gram: Floats) -> Floats:
    """Standard errors of the regression, shape (state and action columns, targets), clustered by episode."""
    acted = slice(rollouts.before.shape[1], design.shape[1] - 1)
    share = design @ np.linalg.inv(gram)  # contribution of each step's residual to each coefficient
    if lab.values is not None:
        share[:, acted] = lab.values.centre(share[:, acted].T).T
    share = share[:, :-1]
    alone = np.sqrt(share.T**2 @ left**2)
    made = [sum_by_episode(share * own[:, None], rollouts.episode) for own in left.T]
    together = np.stack([np.sqrt((each**2).sum(axis=0)) for each in made], axis=1)
    together *= 1.0 if count_alike(rollouts) >= FEWEST_EPISODES else _FEW_ERRORS
    return np.asarray(np.maximum(alone, together))


def _copies(before: Floats, scale: Floats) -> npt.NDArray[np.int64]:
    """Which literals are always equal: copies of a coordinate, or of its negative, must be mapped together."""
    literals = np.repeat(before, 2, axis=1) * np.tile([1.0, -1.0], before.shape[1])
    limits = _SAME * np.repeat(scale, 2)
    alike = [(np.abs(literals - own[:, None]).max(axis=0) <= limits) for own in literals.T]
    return np.asarray(alike, dtype=np.int64)


def preserving_maps(lab: Laboratory, rollouts: Rollouts) -> tuple[Structure, Found]:
    """The table of effects, and the signed permutations that preserve it and the moments of episodes.

    Args:
        lab: the environment.
        rollouts: its steps; more are played if these are one long episode, or leave too many maps to list.

    Returns:
        The table and the maps.
    """
    if count_alike(rollouts) < FEWEST_EPISODES:
        short = play_short(lab, _FURTHER // 3, _LONGEST)
        rollouts = join_rollouts(*short) if len(short) >= FEWEST_EPISODES else rollouts
    structure = effects_of(lab, rollouts)
    left = automorphisms(structure)
    if not left.complete:
        structure = effects_of(lab, join_rollouts(rollouts, *play_short(lab, _FURTHER, _SHORT)))
        left = automorphisms(structure)
    return structure, left


def _vectors(lab: Laboratory, rollouts: Rollouts) -> Proposals:
    structure, left = preserving_maps(lab, rollouts)
    dim = structure.dim
    proposals = Proposals(
        space=(number(2**dim * math.factorial(dim)), f"signed permutations of {dim} observation coordinates")
    )
    proposals.sensitivities = sensitivities_of(structure, "observation", lab.values)
    middle = middle_of(lab, rollouts.before)
    # The first of very many maps are not representative: put one map for each possible image of a coordinate first.
    listed = left.maps if left.complete else [*exchanges(structure), *left.maps]
    maps = list(dict.fromkeys(SignedMap.about(index, sign, middle) for index, sign in listed))
    maps = [each for each in maps if not each.is_identity]
    proposals.structured, proposals.complete = len(maps), left.complete
    proposals.forms[_FORM] = left.complete
    effects = structure.table[::2, 2 * dim :].T  # rows over action literals, columns over coordinates
    model = _QuadraticModel(rollouts)
    fitting: list[Candidate] = []
    # If hidden variables change the dynamics, a model of the mean cannot refute a map: test on episodes instead.
    describes = model.error() <= _DESCRIBES
    all_heard = not describes and len(maps) <= _MOST_CANDIDATES
    for state_map in maps:
        action_maps = _list_action_maps(lab, state_map, effects, model)
        proposals.tried += 1
        candidate = Candidate(
            state_map,
            action_maps[0],
            state_map,
            residual=model.misfit(state_map, action_maps[0]),
            form=_FORM,
            others=tuple(action_maps[1:]),
            guessed=True,
        )
        if candidate.residual <= _FITS or all_heard:
            fitting.append(candidate)
        else:
            fate: Fate = "rejected" if describes else "untried"
            kind = (
                "a model of the rollouts differs" if describes else "a model that does not describe the steps differs"
            )
            why = f"{kind} by {candidate.residual:.2g} of a typical step"
            moves = state_text(state_map, "o")
            proposals.refused.append(
                Trial(moves, "", state_map.order, fate, why, candidate.residual, kind=kind, form=_FORM)
            )
    _hear_witnesses(lab, fitting, proposals)
    _keep_best(proposals, identity_on(lab))
    return proposals


def _hear_witnesses(lab: Laboratory, fitting: list[Candidate], proposals: Proposals) -> None:
    """Test the candidates that the model fits on episodes, the best first."""
    witnesses = Witnesses(lab, lambda flat: flat, with_steps=True)
    fitting.sort(key=lambda each: (each.residual, each.cost))
    for at, candidate in enumerate(fitting):
        if at >= _MOST_HEARD or not lab.in_time(_HEARING):
            limit = f"a limit of {_MOST_HEARD}" if at >= _MOST_HEARD else "the time budget"
            proposals.remarks.append(f"{limit} left {len(fitting) - at} maps untried that fit a model of the rollouts")
            proposals.complete = proposals.forms[_FORM] = False
            break
        witnesses.hear(candidate, state_text(candidate.state, "o"), candidate.state.apply, proposals)
    witnesses.conclude(proposals)


def _list_action_maps(
    lab: Laboratory, state_map: SignedMap, effects: Floats, model: _QuadraticModel
) -> list[SignedMap]:
    """Action maps for a map of observations, by the misfit of the model; all of them if they are few."""
    scale = SignedMap.of(state_map.index).apply(model.step[None])[0]
    turned = SignedMap.of(state_map.index, state_map.sign)  # effects are differences, on which an offset has no effect
    fitted, _ = match_effects(turned.apply(effects), effects, scale, lab.values, lab.action_space)
    # Averaged over states, an action that turns a switch has no effect: actions are also matched state by state.
    by_state = model.match_actions(lab, state_map)
    every = [by_state, fitted, *list_few(lab)]
    # The order of K must divide that of L: L^n = 1 requires K^n = 1.
    given = (fitted, by_state)
    kept = [each for each in dict.fromkeys(every) if each in given or state_map.order % max(1, each.order) == 0]
    return sorted(kept, key=lambda each: model.misfit(state_map, each))[:_MOST_TRIED]


class _QuadraticModel:
    """The change of each coordinate in one step, as a polynomial of degree 2 in observation and action."""

    def __init__(self, rollouts: Rollouts) -> None:
        spread = rollouts.before.std(axis=0)
        self._scale = np.where(spread > 0, spread, 1.0)
        self._rollouts = rollouts
        moved = rollouts.after - rollouts.before
        design = self._features(rollouts.before, rollouts.actions)
        penalty = _RIDGE * len(design) * np.eye(design.shape[1])
        solved = np.linalg.solve(design.T @ design + penalty, design.T @ np.column_stack([moved, rollouts.rewards]))
        self._weights, self._reward_weights = solved[:, :-1], solved[:, -1:]
        typical = np.quantile(np.abs(moved), 0.75, axis=0)
        self.step = np.where(typical > 0, typical, 1.0)

    def _features(self, states: Floats, actions: Floats) -> Floats:
        linear = np.concatenate([np.ones((len(states), 1)), states / self._scale, actions], axis=1)
        n = linear.shape[1]  # the leading 1 gives constant and linear terms
        return np.stack([linear[:, i] * linear[:, j] for i in range(n) for j in range(i, n)], axis=1)

    def match_actions(self, lab: Laboratory, state_map: SignedMap) -> SignedMap:
        """The action map with which the predictions at states and at their images agree best."""
        if lab.values is not None:
            rows = np.stack(
                [lab.values.indicators(lab.values.with_literal(i)).mean(axis=0) for i in range(lab.values.total)]
            )
        else:
            rows = _ACTION_WEIGHT * np.repeat(np.eye(self._rollouts.actions.shape[1]), 2, axis=0)
            rows[1::2] *= -1
        count, dim = len(rows), self._rollouts.before.shape[1]
        states = self._rollouts.before[: max(_FEWEST_MATCHED, _MOST_NUMBERS // (count**2 * dim))][:_COMPARED]
        described, images = (
            np.stack([self._features(at, np.tile(row, (len(at), 1))) for row in rows])
            for at in (states, state_map.apply(states))
        )
        turned = SignedMap.of(state_map.index, state_map.sign)
        unit = SignedMap.of(state_map.index).apply(self.step[None])
        moved = turned.apply((described @ self._weights).reshape(-1, dim)).reshape(count, len(states), dim) / unit
        # Rewards tell actions apart that have the same effect on observations.
        scale = _REWARD_WEIGHT / (float(np.std(self._rollouts.rewards)) or 1.0)
        left, right = (
            np.concatenate([steps, scale * (features @ self._reward_weights)], axis=2).reshape(count, -1)
            for steps, features in ((moved, described), (images @ self._weights / unit, images))
        )
        return match_effects(left, right, np.ones(left.shape[1]), lab.values, lab.action_space)[0]

    def error(self) -> float:
        """Median over steps of the model's residual in the worst coordinate, relative to a typical step."""
        left = self._rollouts.after - self._rollouts.before
        left = left - self._features(self._rollouts.before, self._rollouts.actions) @ self._weights
        return float(np.median((np.abs(left) / self.step).max(axis=1)))

    def misfit(self, state_map: SignedMap, action_map: SignedMap) -> float:
        """Median over steps of |f(L s, K a) - L f(s, a)| in the worst coordinate, relative to a typical step."""
        states, actions = self._rollouts.before[:_COMPARED], self._rollouts.actions[:_COMPARED]
        linear = SignedMap.of(action_map.index, action_map.sign)  # features are relative to the centre of the box
        turned = SignedMap.of(state_map.index, state_map.sign)  # for differences, on which an offset has no effect
        expected = turned.apply(self._features(states, actions) @ self._weights)
        actual = self._features(state_map.apply(states), linear.apply(actions)) @ self._weights
        scale = SignedMap.of(state_map.index).apply(self.step[None])[0]
        return float(np.median((np.abs(expected - actual) / scale).max(axis=1)))


def _keep_best(found: Proposals, identity: Candidate) -> None:
    """The candidates if they form a group, on which one run decides.

    Otherwise the best ones, without products of others.
    """
    found.candidates.sort(key=lambda candidate: (candidate.residual, candidate.cost))
    if len(found.candidates) <= _MOST_CANDIDATES or _are_group(found.candidates, identity):
        return
    independent: list[Candidate] = []
    for candidate in found.candidates:
        if not independent or candidate not in Products(independent, identity):
            independent.append(candidate)
    left_out = len(independent) - _MOST_CANDIDATES
    if left_out > 0:
        found.remarks.append(f"{left_out} candidates with a worse fit were not verified")
        found.complete = False
    found.candidates = independent[:_MOST_CANDIDATES]


def _are_group(candidates: list[Candidate], identity: Candidate) -> bool:
    try:
        return Products(candidates, identity).order == len(candidates) + 1
    except SymcheckError:
        return False
