"""The search where states cannot be set: a model of rollouts proposes, whole episodes decide.

For vectors, how far a step moves each coordinate is regressed on the observation and the action; the coefficients are
a table of effects as in `structure`, only noisy, so that it is compared loosely. For images the candidates are the
rotations and reflections of the picture. Verification then has episodes only, and passes say so.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces
from scipy.optimize import linear_sum_assignment

from symcheck.array_types import Floats
from symcheck.discovery.automorphisms import automorphisms
from symcheck.discovery.blocks import blocks_of, layout_of, lift_picture, picture_elements, upright
from symcheck.discovery.by_states import Proposals, number, sensitivities_of, state_text
from symcheck.discovery.laboratory import Laboratory
from symcheck.discovery.maps import Candidate, SignedMap, apply_square
from symcheck.discovery.observations import is_image
from symcheck.discovery.result import Trial
from symcheck.discovery.structure import Structure, action_middle, action_reach, both_signs, probe_sizes
from symcheck.engine.environments.cases.pool import Pool, roll_out
from symcheck.entries.forms import SPATIAL_OPERATORS
from symcheck.errors import TargetError

_STEPS = 4000
_FEWEST_STEPS = 50
_GATHERING = 0.25  # of the time budget
MOST_COORDINATES = 24
_RELATIVE, _FLOOR = 0.3, 0.2  # coefficients are estimates: a third of the larger, a fifth of the row's largest
_ERRORS = 6.0  # standard errors that an estimate may be off; steps of one episode depend on each other, so many
_FITS = 0.6  # of a typical step: misfit of a quadratic model, which is none of the dynamics
_COMPARED = 600  # steps on which the model is compared with itself
_MOST_CANDIDATES = 8  # whole episodes decide slowly
_RIDGE = 1e-6
_FORM = "signed permutations of the observation that keep its regression on the step before"
_PICTURE = "rotations and reflections of the image"
_SMALL_PICTURE = 24  # pixels a side
_ACTION_WEIGHT = 0.5  # as in `structure`: half of the way to the bound


@dataclass(frozen=True)
class Rollouts:
    """Steps of uniform-policy episodes.

    Attributes:
        before: flattened observations, shape (n, dim).
        after: the next ones, shape (n, dim).
        actions: features of the actions, shape (n, features): one-hot, or components about the middle of the box.
    """

    before: Floats
    after: Floats
    actions: Floats


def propose(lab: Laboratory) -> Proposals:
    """Search the observations that rollouts showed.

    Args:
        lab: an environment whose states cannot be set.

    Returns:
        Candidates for verification.

    Raises:
        TargetError: observations are too long to search.
    """
    width = lab.stepper.codec.coordinates.dim
    if not is_image(lab) and width > MOST_COORDINATES:
        raise TargetError(
            f"expected at most {MOST_COORDINATES} observation components where states cannot be set ({lab.why}), "
            f"got {width}.",
            where="observation space",
            remedy="Register state access with symcheck.register_state_access, or write the symmetry down and check it "
            "with verify-env.",
        )
    rollouts = roll(lab)
    if len(rollouts.before) < _FEWEST_STEPS:
        taken = f"the time budget ran out after {len(rollouts.before):,} steps"
        return Proposals(complete=False, remarks=[f"{taken}, too few to search; allow more with --max-time"])
    proposals = _images(lab, rollouts) if is_image(lab) else _vectors(lab, rollouts)
    proposals.compared = f"a model of {len(rollouts.before):,} rollout steps"
    proposals.remarks.append(
        f"{lab.why}: whole episodes decide, which sees less than setting states does; "
        "symcheck.register_state_access makes the search and its verdicts stronger"
    )
    return proposals


def roll(lab: Laboratory) -> Rollouts:
    """Step uniform-policy episodes; too few steps to search only where time was up."""
    pool = Pool()
    roll_out(lab.stepper, lab.placement, _STEPS, pool, lambda: lab.in_time(_GATHERING))
    codec = lab.stepper.codec
    before = codec.flatten_batch([visit.situation.obs for visit in pool.visits])
    after = np.stack([visit.step.flat for visit in pool.visits])
    actions = action_features(lab, [visit.action for visit in pool.visits])
    usable = np.isfinite(before).all(axis=1) & np.isfinite(after).all(axis=1)
    if usable.sum() < _FEWEST_STEPS and (usable.size >= _FEWEST_STEPS or lab.in_time(_GATHERING)):
        raise TargetError(
            f"expected observations that are numbers, got NaN or infinity in all but {usable.sum():,} of "
            f"{len(before):,} steps.",
            where=lab.label,
            remedy="A symmetry of such an environment can only be written down and checked with verify-env.",
        )
    return Rollouts(before[usable], after[usable], actions[usable])


def action_features(lab: Laboratory, actions: list[Any]) -> Floats:
    """One-hot vectors of discrete actions; components of Box actions about their middle, in half widths."""
    count = lab.count_of_actions
    if count is not None:
        return np.eye(count)[[lab.index_of(action) for action in actions]]
    if isinstance(lab.action_space, spaces.Box):
        flat = np.stack([np.asarray(action, dtype=np.float64).reshape(-1) for action in actions])
        return np.asarray((flat - action_middle(lab.action_space)) / action_reach(lab.action_space))
    raise TargetError(f"expected Discrete or Box actions, got {lab.action_space}.", where="action space")


def effects_of(lab: Laboratory, rollouts: Rollouts) -> Structure:
    """A table of effects from a regression of how far steps move each coordinate.

    Args:
        lab: the environment.
        rollouts: its steps.

    Returns:
        The table at zero, compared loosely.
    """
    low, high = np.quantile(rollouts.before, [0.05, 0.95], axis=0)
    spread = np.where(high > low, (high - low) / 2, np.ptp(rollouts.before, axis=0) / 2)
    sizes = probe_sizes(spread, whole=False)
    scale = np.where(spread > 0, spread, 1.0)
    design = np.concatenate([rollouts.before / scale, rollouts.actions, np.ones((len(rollouts.before), 1))], axis=1)
    moved = rollouts.after - rollouts.before
    penalty = _RIDGE * len(design) * np.eye(design.shape[1])
    weights = np.linalg.solve(design.T @ design + penalty, design.T @ moved)
    dim = rollouts.before.shape[1]
    states = weights[:dim] / scale[:, None] * sizes[:, None]
    actions = weights[dim:-1]
    discrete = lab.count_of_actions is not None
    # One-hot columns add up to the constant: only differences between actions are determined.
    actions = actions - actions.mean(axis=0) if discrete else _ACTION_WEIGHT * actions
    floor = _FLOOR * np.abs(np.concatenate([states, actions])).max(axis=0)
    # Standard errors of the regression: residual deviation times the root of the diagonal of (X^T X)^-1.
    deviation = np.sqrt(np.mean((moved - design @ weights) ** 2, axis=0))
    inverse = np.sqrt(np.diag(np.linalg.inv(design.T @ design + penalty)))
    reach = np.concatenate([sizes / scale, np.ones(actions.shape[0] if not discrete else 1)])
    largest = (inverse[: len(reach)] * reach).max()
    floor = np.maximum(np.maximum(floor, _ERRORS * deviation * largest), 1e-12)
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
    )


def _vectors(lab: Laboratory, rollouts: Rollouts) -> Proposals:
    structure = effects_of(lab, rollouts)
    dim = structure.dim
    proposals = Proposals(
        space=(number(2**dim * math.factorial(dim)), f"signed permutations of {dim} observation coordinates")
    )
    proposals.sensitivities = sensitivities_of(structure, "observation", discrete=lab.count_of_actions is not None)
    left = automorphisms(structure)
    maps = [SignedMap.of(index, sign) for index, sign in left.maps]
    maps = [each for each in maps if not each.is_identity]
    proposals.structured, proposals.complete = len(maps), left.complete
    proposals.forms[_FORM] = left.complete
    effects = structure.table[::2, 2 * dim :].T  # rows over action literals, columns over coordinates
    model = _QuadraticModel(rollouts)
    for state_map in maps:
        action_map, _ = match_effects(
            state_map.apply(effects),
            effects,
            SignedMap.of(state_map.index).apply(model.step[None])[0],
            discrete=lab.count_of_actions is not None,
            space=lab.action_space,
        )
        proposals.tried += 1
        candidate = Candidate(
            state_map, action_map, state_map, residual=model.misfit(state_map, action_map), form=_FORM
        )
        if candidate.residual <= _FITS:
            proposals.candidates.append(candidate)
        else:
            why = f"a model of the rollouts differs by {candidate.residual:.2g} of a typical step"
            description = state_text(state_map, "o")
            proposals.refused.append(
                Trial(
                    description,
                    "",
                    state_map.order,
                    "refused",
                    why,
                    candidate.residual,
                    kind="a model of the rollouts differs",
                    form=_FORM,
                )
            )
    _keep_best(proposals)
    return proposals


class _QuadraticModel:
    """How far a step moves each coordinate, as a polynomial of degree 2 in observation and action."""

    def __init__(self, rollouts: Rollouts) -> None:
        spread = rollouts.before.std(axis=0)
        self._scale = np.where(spread > 0, spread, 1.0)
        self._rollouts = rollouts
        moved = rollouts.after - rollouts.before
        design = self._features(rollouts.before, rollouts.actions)
        penalty = _RIDGE * len(design) * np.eye(design.shape[1])
        self._weights = np.linalg.solve(design.T @ design + penalty, design.T @ moved)
        typical = np.quantile(np.abs(moved), 0.75, axis=0)
        self.step = np.where(typical > 0, typical, 1.0)

    def _features(self, states: Floats, actions: Floats) -> Floats:
        linear = np.concatenate([np.ones((len(states), 1)), states / self._scale, actions], axis=1)
        n = linear.shape[1]  # the leading 1 gives constant and linear terms
        return np.stack([linear[:, i] * linear[:, j] for i in range(n) for j in range(i, n)], axis=1)

    def misfit(self, state_map: SignedMap, action_map: SignedMap) -> float:
        """Median over steps of |f(L s, K a) - L f(s, a)|, its largest coordinate, relative to a typical step."""
        states, actions = self._rollouts.before[:_COMPARED], self._rollouts.actions[:_COMPARED]
        linear = SignedMap.of(action_map.index, action_map.sign)  # features are about the middle of the box
        expected = state_map.apply(self._features(states, actions) @ self._weights)
        actual = self._features(state_map.apply(states), linear.apply(actions)) @ self._weights
        scale = SignedMap.of(state_map.index).apply(self.step[None])[0]
        return float(np.median((np.abs(expected - actual) / scale).max(axis=1)))


def _keep_best(found: Proposals) -> None:
    found.candidates.sort(key=lambda candidate: (candidate.residual, candidate.cost))
    if len(found.candidates) > _MOST_CANDIDATES:
        found.remarks.append(f"{len(found.candidates) - _MOST_CANDIDATES} candidates that fit worse were not verified")
        found.candidates = found.candidates[:_MOST_CANDIDATES]
        found.complete = False


def match_effects(
    moved: Floats, effects: Floats, scale: Floats, *, discrete: bool, space: spaces.Space[Any]
) -> tuple[SignedMap, float]:
    """Match mapped effects of actions with effects of actions.

    Args:
        moved: L on the effect of every action (or +component, -component, ...), shape (k, dim).
        effects: the effects themselves, shape (k, dim).
        scale: per coordinate, shape (dim,) or broadcastable.
        discrete: whether rows are discrete actions.
        space: the action space.

    Returns:
        The action map and the largest mean misfit of a matched effect, relative to the scale.

    Example:
        >>> effects = np.array([[1.0], [-1.0]])
        >>> match_effects(-effects, effects, np.ones(1), discrete=True, space=spaces.Discrete(2))
        (SignedMap(index=(1, 0), sign=(1, 1), offset=(0.0, 0.0)), 0.0)
    """
    misfit = (np.abs(moved[:, None] - effects[None]) / scale).mean(axis=-1)
    if discrete:
        tied = misfit + 1e-6 * (1 - np.eye(len(misfit)))
        rows, index = linear_sum_assignment(tied)
        return SignedMap.of(index), float(misfit[rows, index].max(initial=0.0))
    kept, turned = misfit[::2, ::2], misfit[::2, 1::2]
    rows, index = linear_sum_assignment(np.minimum(kept, turned))
    sign = np.where(kept[rows, index] <= turned[rows, index], 1, -1)
    middle = action_middle(space) if isinstance(space, spaces.Box) else np.zeros(len(index))
    worst = np.minimum(kept, turned)[rows, index].max(initial=0.0)
    return SignedMap.about(index, sign, middle), float(worst)


def _images(lab: Laboratory, rollouts: Rollouts) -> Proposals:
    elements = picture_elements(lab.observation_space)[1:]
    proposals = Proposals(
        space=(str(len(elements)), "rotations and reflections of the image"), structured=len(elements)
    )
    before, after = small_pictures(rollouts.before, lab), small_pictures(rollouts.after, lab)
    (block,) = blocks_of(lab.observation_space)
    for name in elements:
        proposals.tried += 1
        picture = lift_picture(name, block, block.size)
        action_map, misfit = _matching_moves(lab, before, after, rollouts.actions, name)
        candidate = Candidate(picture, action_map, picture, residual=misfit, label=_spoken(name), form=_PICTURE)
        # K must repeat when the picture does: L^n = 1 asks for K^n = 1.
        if candidate.order == picture.order:
            proposals.candidates.append(candidate)
        else:
            why = (
                f"the action map that fits best, {list(action_map.index)}, does not have the order of the picture's map"
            )
            kind = "no action map was found for it"
            trial = Trial(name, "", picture.order, "undecided", why, misfit, kind=kind, form=_PICTURE)
            proposals.refused.append(trial)
    return proposals


def _spoken(name: str) -> str:
    """What an element is called where its entry is a list of numbers; "" where the entry is its name."""
    return "" if name in SPATIAL_OPERATORS else name


def small_pictures(flat: Floats, lab: Laboratory) -> Floats:
    """Pictures averaged over channels and blocks of pixels, centred, so that few numbers are left.

    Args:
        flat: flattened observations, shape (n, dim).
        lab: knows their shape.

    Returns:
        Shape (n, height, width) with at most 24 pixels a side; blocks tile a margin-free centre, so that rotations and
        reflections act on the small picture as on the large.
    """
    space = lab.observation_space
    pictures = upright(flat.reshape(len(flat), *(space.shape or (1, 1))), layout_of(space) or "first")
    pictures = pictures.reshape(len(flat), -1, *pictures.shape[-2:]).mean(axis=1)
    for axis in (1, 2):
        size = pictures.shape[axis]
        block = -(-size // _SMALL_PICTURE)
        margin = (size % block) // 2
        kept = size - size % block
        pictures = np.take(pictures, range(margin, margin + kept), axis=axis)
        shape = list(pictures.shape)
        shape[axis : axis + 1] = [kept // block, block]
        pictures = pictures.reshape(shape).mean(axis=axis + 1)
    return np.asarray(pictures - pictures.mean(axis=0))


def _matching_moves(
    lab: Laboratory, before: Floats, after: Floats, actions: Floats, name: str
) -> tuple[SignedMap, float]:
    """The action map that goes with a map of the picture, by how pixels after a step go with pixels before it.

    The products of pixels before and after, averaged for each action, say where the action moves things wherever these
    are; under a symmetry the products of action K a are those of a, seen through the map on both sides.
    """
    n = len(before)
    products = np.stack(
        [(after.reshape(n, -1) * weight[:, None]).T @ before.reshape(n, -1) / n for weight in actions.T]
    )
    # What all actions have in common (things that move by themselves) says nothing about the action.
    usual = products.mean(axis=0) if lab.count_of_actions is not None else 0.0
    products = products - usual
    shape = before.shape[1:]
    size = len(products)
    # The map acts on the pixels before a step, shape (actions, pixels after, height, width), then on those after it.
    turned = apply_square(name, products.reshape(size, -1, *shape)).reshape(size, *shape, -1)
    turned = np.moveaxis(apply_square(name, np.moveaxis(turned, 3, 1)), 1, 3).reshape(size, -1)
    plain = products.reshape(size, -1)
    if lab.count_of_actions is None:
        turned, plain = (np.repeat(rows, 2, axis=0) * np.tile([1.0, -1.0], size)[:, None] for rows in (turned, plain))
    scale = np.full(1, float(np.abs(plain).mean()) or 1.0)
    return match_effects(turned, plain, scale, discrete=lab.count_of_actions is not None, space=lab.action_space)
