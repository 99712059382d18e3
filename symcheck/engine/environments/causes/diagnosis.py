"""Likely causes of a violation, most likely first, each with the correction that would make the claim hold.

Corrections are tried, not guessed: the violating pairs and some others are stepped again under the altered symmetry,
and only a correction under which all equations hold is proposed. Then follows where and how often the claim breaks.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from symcheck.engine.environments.cases.edges import Tie
from symcheck.engine.environments.cases.pairs import Case, Measurement, Pairs, Part, outside
from symcheck.engine.environments.causes import subgroups
from symcheck.engine.environments.subject.coordinates import Vector
from symcheck.engine.environments.subject.placement import Word
from symcheck.engine.environments.subject.probing import MOST_PROBED, linear_map
from symcheck.engine.environments.subject.stepper import Steps, numeric
from symcheck.symmetry.bound import BoundSymmetry

if TYPE_CHECKING:
    from symcheck.engine.environments.methods.paired import PairedEvidence

_TRIED_ON = 80  # cases on which a correction must hold
# Pairs stepped for all corrections of a property together: counted, so that a busy machine tries what an idle one does.
_MOST_STEPPED = 1500
_SECONDS = 4.0  # the same, where one step takes milliseconds
_MOST_ACTIONS_PERMUTED = 4
_FEWEST_SHARED, _MOST_SHARED = 8, 0.6  # violations that share a value, and the share of all pairs that may have it


class AlteredSymmetry:
    """A bound symmetry with another map for one generator; everything else is the original's.

    Args:
        bound: the original.
        letter: the generator whose maps are replaced.
        observation: the new L, or None to keep it.
        action: the new K (action, obs) -> action, or None to keep it.
        state: the new map of internal states, or None to keep it.
    """

    def __init__(
        self,
        bound: BoundSymmetry,
        letter: int,
        *,
        observation: Callable[[Any], Any] | None = None,
        action: Callable[[Any, Any], Any] | None = None,
        state: Callable[[Any], Any] | None = None,
    ) -> None:
        self._bound = bound
        self._letter = letter
        self._new_observation = observation
        self._new_action = action
        self._new_state = state

    def __getattr__(self, name: str) -> Any:
        return getattr(self._bound, name)

    def observation(self, word: Word, obs: Any) -> Any:
        """L of one observation."""
        if self._new_observation is None or word != (self._letter,):
            return self._bound.observation(word, obs)
        return self._new_observation(obs)

    def observation_batch(self, word: Word, observations: Any) -> Any:
        """L of stacked observations."""
        return np.stack([np.asarray(self.observation(word, obs)) for obs in observations])

    def action(self, word: Word, action: Any, obs: Any) -> Any:
        """K of one action."""
        if self._new_action is None or word != (self._letter,):
            return self._bound.action(word, action, obs)
        return self._new_action(action, obs)

    def state(self, word: Word, state: Any) -> Any:
        """The map of one internal state."""
        if self._new_state is None or word != (self._letter,):
            return self._bound.state(word, state)
        return self._new_state(state)

    def state_batch(self, word: Word, states: Any) -> Any:
        """The map of stacked internal states."""
        return np.stack([np.asarray(self.state(word, state)) for state in states])


def causes(
    evidence: PairedEvidence, part: Part, confirmed: list[int], case: Case, seen: Measurement, tie: Tie | None
) -> list[str]:
    """Likely causes of one property's violations.

    Args:
        evidence: what was measured.
        part: the property.
        confirmed: rows of confirmed violations.
        case: the shrunk counterexample.
        seen: its measurement.
        tie: a one-sided threshold, where that is what differs.

    Returns:
        Sentences, most likely first.
    """
    pairs = evidence.pairs
    if tie is not None:
        name = pairs.comparison("transition", evidence.measured).coordinates.names[tie.coordinate]
        closed, opened = ("+", "-") if tie.closed_above else ("-", "+")
        return [
            f"only at the threshold: next {name} = {closed}{tie.threshold:.6g} terminates and "
            f"{opened}{tie.threshold:.6g} does not; >= on one side and > on the other"
        ]
    found: list[str] = []
    if part == "termination":
        found.append(_termination(pairs, case, seen))
    if part != "observation":
        found += corrections(evidence, confirmed, case)
    if part == "reward":
        found += _reward_term(evidence, confirmed)
    found.append(subgroups.what_holds(evidence, part, confirmed))
    found += _region(evidence, part, confirmed)
    found.append(subgroups.breaking_actions(evidence, part))
    found.append(flattened_order(pairs))
    found.append(_share(evidence, part))
    return [text for text in found if text]


def _termination(pairs: Pairs, case: Case, seen: Measurement) -> str:
    sides = [seen.left, seen.right]
    sides.sort(key=lambda side: not side.terminated[0])
    return f"next state {_next(sides[0])} terminates, next state {_next(sides[1])} does not"


def _next(steps: Steps) -> str:
    numbers = [f"{value + 0.0:.6g}" for value in steps.flat[0][:12]]
    return numbers[0] if len(numbers) == 1 else f"({', '.join(numbers)}{', ...' if steps.flat.shape[1] > 12 else ''})"


def corrections(evidence: PairedEvidence, confirmed: list[int], case: Case) -> list[str]:
    """Alterations of the symmetry under which reward, transition and termination all hold.

    Args:
        evidence: what was measured.
        confirmed: rows of confirmed violations.
        case: the counterexample; its generator is the one that is altered.

    Returns:
        At most three sentences.
    """
    if len(case.word) != 1:
        return []
    measured = evidence.measured
    rows = [row for row in confirmed if measured.cases[row].word == case.word]
    others = [row for row in range(len(measured.cases)) if measured.cases[row].word == case.word]
    picked = evidence.bench.rng("corrections").permutation(others)
    tried = [measured.cases[row] for row in dict.fromkeys([*rows[: _TRIED_ON // 2], *picked[: _TRIED_ON // 2]])]
    found: list[str] = []
    effort = _Effort(_MOST_STEPPED, time.monotonic() + _SECONDS)
    for text, altered in _alterations(evidence.pairs, case):
        if effort.spent() or len(found) >= 3:
            break
        if _holds(evidence, altered, [case, *tried], effort):
            found.append(text)
    return found


@dataclass
class _Effort:
    """What may still be spent: pairs to step, until a time."""

    pairs: int
    deadline: float

    def spent(self) -> bool:
        return self.pairs <= 0 or time.monotonic() > self.deadline


def _holds(evidence: PairedEvidence, altered: AlteredSymmetry, cases: list[Case], effort: _Effort) -> bool:
    pairs = altered_pairs(evidence.pairs, altered)
    parts: tuple[Part, ...] = ("reward", "transition", "termination")
    size = 4
    start = 0
    while start < len(cases):
        if effort.spent():
            return False
        batch = cases[start : start + size]
        effort.pairs -= len(batch)
        try:
            remade = [pairs.case(one.word, one.situation, one.action) for one in batch]
            measured = pairs.measure(remade)
            for part in parts:
                comparison = pairs.comparison(part, measured)
                if (~(comparison.residual() <= evidence.tolerance.of(comparison))).any():
                    return False
        except Exception:  # an altered map may leave the space, or break whatever the user wrote
            return False
        start += size
        size = 40
    return True


def altered_pairs(pairs: Pairs, altered: AlteredSymmetry) -> Pairs:
    """The same environment under an altered symmetry."""
    bound = cast(BoundSymmetry, altered)
    return Pairs(pairs.stepper, pairs.placement.under(bound), bound)


def _alterations(pairs: Pairs, case: Case) -> Iterator[tuple[str, AlteredSymmetry]]:
    yield from _action_alterations(pairs, case)
    yield from _sign_alterations(pairs, case)


def _action_alterations(pairs: Pairs, case: Case) -> Iterator[tuple[str, AlteredSymmetry]]:
    bound, letter, space = pairs.bound, case.word[0], pairs.bound.action_space

    def altered(action: Callable[[Any, Any], Any]) -> AlteredSymmetry:
        return AlteredSymmetry(bound, letter, action=action)

    yield "K = identity would pass: with the actions unchanged all equations hold", altered(lambda a, obs: a)
    order = _order_of_action(pairs, case)
    if order > 2:
        inverse = case.word * (order - 1)
        yield (
            "the action map is the inverse of the right one: with K replaced by its inverse all equations hold",
            altered(lambda a, obs: bound.action(inverse, a, obs)),
        )
    if isinstance(space, spaces.Discrete) and space.n <= _MOST_ACTIONS_PERMUTED:
        for images in itertools.permutations(range(int(space.n))):
            if images == tuple(range(int(space.n))):
                continue
            table = np.array(images)
            start = int(space.start)
            yield f"with the action map {list(images)} all equations hold", altered(_permuting(table, start))
    elif isinstance(space, spaces.Box):
        yield (
            "with all actions negated once more all equations hold",
            altered(lambda a, obs: -np.asarray(bound.action(case.word, a, obs))),
        )
        yield from _action_signs(bound, case.word, space, altered)


def _action_signs(
    bound: BoundSymmetry, word: Word, space: spaces.Box, altered: Callable[[Callable[[Any, Any], Any]], AlteredSymmetry]
) -> Iterator[tuple[str, AlteredSymmetry]]:
    size = int(np.prod(space.shape))
    for j in range(min(size, MOST_PROBED)):
        sign = np.ones(size)
        sign[j] = -1
        yield (
            f"with the other sign on action[{j}] all equations hold",
            altered(_signing(bound, word, sign)),
        )


def _permuting(table: npt.NDArray[np.int64], start: int) -> Callable[[Any, Any], Any]:
    return lambda a, obs: type(a)(table[int(a) - start] + start)


def _signing(bound: BoundSymmetry, word: Word, sign: Vector) -> Callable[[Any, Any], Any]:
    def act(action: Any, obs: Any) -> Any:
        array = np.asarray(bound.action(word, action, obs))
        return (array.reshape(-1) * sign).reshape(array.shape).astype(array.dtype)

    return act


def _order_of_action(pairs: Pairs, case: Case) -> int:
    """How often the generator's action map must be applied to return an action, up to 24."""
    action, obs = case.action, case.situation.obs
    word = case.word[0]
    for order in range(1, 25):
        image = pairs.bound.action((word,) * order, action, obs)
        flatten = pairs.stepper.action_codec.flatten
        if np.allclose(flatten(image), flatten(action), equal_nan=True):
            return order
    return 0


def _sign_alterations(pairs: Pairs, case: Case) -> Iterator[tuple[str, AlteredSymmetry]]:
    """The other sign on one coordinate of the observation (and, where it has one, of the state)."""
    bound, word = pairs.bound, case.word
    linear = linear_map(lambda obs: bound.observation(word, obs), case.situation.obs)
    if linear is None:
        return
    matrix, offset = linear
    rows = np.abs(matrix)
    if not ((rows > 0).sum(axis=1) == 1).all() or len(matrix) > MOST_PROBED:
        return
    names = pairs.stepper.codec.coordinates.names
    for j in range(len(matrix)):
        changed, shifted = matrix.copy(), offset.copy()
        changed[j] = -changed[j]
        diagonal = matrix[j, j] != 0
        shifted[j] = 0.0 if diagonal and changed[j, j] > 0 else offset[j]
        sign = "+1" if changed[j].sum() > 0 else "-1"
        held = numeric(case.situation.state) if pairs.placement.kind == "map" else None
        same = held is not None and held.size == len(matrix)
        yield (
            f"holds with sign {sign} on {names[j]}",
            AlteredSymmetry(
                bound,
                word[0],
                observation=_affine(changed, shifted),
                state=_affine(changed, shifted) if same else None,
            ),
        )


def _affine(matrix: Vector, offset: Vector) -> Callable[[Any], Any]:
    def apply(value: Any) -> Any:
        array = np.asarray(value)
        with np.errstate(invalid="ignore"):  # readings may be infinite
            image = (matrix @ array.reshape(-1).astype(np.float64) + offset).reshape(array.shape)
            return image.astype(array.dtype)

    return apply


def _reward_term(evidence: PairedEvidence, confirmed: list[int]) -> list[str]:
    """A coordinate that the difference of rewards is proportional to."""
    measured = evidence.measured
    gap = measured.right.rewards - measured.left.rewards
    rows = np.array(confirmed)
    if len(rows) < 8 or not np.isfinite(gap[rows]).all() or np.ptp(gap[rows]) == 0:
        return []
    codec = evidence.pairs.stepper.codec
    before = codec.flatten_batch([measured.cases[row].situation.obs for row in rows])
    found = []
    for when, values in (("", before), ("next ", measured.left.flat[rows])):
        for j, name in enumerate(codec.coordinates.names):
            column = values[:, j]
            # Two points lie on a line whatever the reward is.
            if not np.isfinite(column).all() or len(np.unique(np.abs(column))) < 2 or len(np.unique(column)) < 3:
                continue
            slope = float(column @ gap[rows] / (column @ column)) if column.any() else 0.0
            # Proportional up to a thousandth: a term that is odd under g shows up as twice itself.
            if np.abs(gap[rows] - slope * column).max() <= 1e-3 * np.abs(gap[rows]).max():
                found.append(
                    f"the difference of rewards is {slope:.4g} times {when}{name}: a term that g does not keep"
                )
    return found[:1]


def _region(evidence: PairedEvidence, part: Part, confirmed: list[int]) -> list[str]:
    """Where the violations are: images outside the space, one side stopped at a bound, or one side of a cut."""
    pairs, measured = evidence.pairs, evidence.measured
    if not confirmed:
        return []
    found = []
    leaving = [outside(measured.cases[row].image, pairs.stepper.codec) for row in confirmed]
    if sum(map(bool, leaving)) * 2 > len(leaving):
        found.append(f"the image of the state is outside the observation space: {next(filter(None, leaving))}")
    rest = [row for row, text in zip(confirmed, leaving, strict=True) if not text]
    found += [text for text in (_wall(pairs, measured, rest), _shared(pairs, measured, confirmed)) if text]
    return found


def _shared(pairs: Pairs, measured: Measurement, rows: list[int]) -> str:
    """A value that all violations share and few other pairs have: "only where action[0] = 0"; else ""."""
    if len(rows) < _FEWEST_SHARED:
        return ""
    states = pairs.stepper.codec.flatten_batch([case.situation.obs for case in measured.cases])
    actions = pairs.stepper.action_codec.flatten_batch([case.action for case in measured.cases])
    names = [*pairs.stepper.action_codec.coordinates.names, *pairs.stepper.codec.coordinates.names]
    columns = np.concatenate([actions, states], axis=1)
    for j, name in enumerate(names):
        value = columns[rows[0], j]
        same = columns[:, j] == value
        if same[rows].all() and same.mean() < _MOST_SHARED:
            return f"only where {name} = {value + 0.0:.6g}"
    return ""


def _wall(pairs: Pairs, measured: Measurement, rows: list[int]) -> str:
    """Some next coordinate is at its bound, on one side alone, in all violations; in words, else ""."""
    if not rows:
        return ""
    coordinates = pairs.stepper.codec.coordinates
    for j, name in enumerate(coordinates.names):
        for side, bounds in (("lower", coordinates.low), ("upper", coordinates.high)):
            if not np.isfinite(bounds[j]):
                continue
            close = 1e-6 * max(1.0, abs(bounds[j]))  # bounds are declared in float32
            left = np.abs(measured.left.flat[:, j] - bounds[j]) <= close
            right = np.abs(measured.right.flat[:, j] - bounds[j]) <= close
            stopped = left ^ right
            if stopped[rows].all() and stopped.mean() < 0.9:
                return (
                    f"only where next {name} stops at its {side} bound {bounds[j]:.6g} on one side and not on the other"
                )
    return ""


def flattened_order(pairs: Pairs) -> str:
    """The order in which FlattenObservation put the parts of a Dict, where the stack has one; else ""."""
    layer: Any = pairs.stepper.env
    while isinstance(layer, gym.Wrapper):
        inner = layer.env.observation_space
        if isinstance(layer, gym.wrappers.FlattenObservation) and isinstance(inner, spaces.Dict):
            sizes = {key: spaces.flatdim(child) for key, child in inner.spaces.items()}
            order = ", ".join(key if size == 1 else f"{key} ({size})" for key, size in sizes.items())
            return (
                f"FlattenObservation put the parts in the flattened key order {order}: was the map written for another?"
            )
        layer = layer.env
    return ""


def _share(evidence: PairedEvidence, part: Part) -> str:
    """How often the claim breaks, in words."""
    share = evidence.share(part)
    if share > 0.999:
        return "it breaks everywhere: in all states and for all actions tested"
    return f"it breaks in {100 * share:.3g}% of the pairs tested"
