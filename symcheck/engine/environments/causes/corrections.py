"""Corrections of a symmetry under which the claim would hold, tested on the environment.

The violating pairs and some others are stepped again under an altered symmetry. An alteration is proposed only if all
equations hold under it.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from gymnasium import spaces

from symcheck.engine.environments.cases.pairs import Case, Pairs
from symcheck.engine.environments.causes.violations import Violations
from symcheck.engine.equations import STEP_PARTS
from symcheck.spaces.probing import MOST_PROBED, linear_map
from symcheck.spaces.values import numeric
from symcheck.statements.statement import Statement, state
from symcheck.symmetry.altered import AlteredSymmetry, affine, permuting, signing
from symcheck.symmetry.bound import BoundSymmetry

_TRIED_ON = 80  # number of cases on which a correction must hold
_MOST_PROPOSED = 3
# Budget of pairs for all corrections of a property. A count, so that results do not depend on the load of the machine.
_MOST_STEPPED = 1500
_SECONDS = 4.0  # the same if one step takes milliseconds
_MOST_ACTIONS_PERMUTED = 4
_LONGEST_ORDER = 24  # largest order of an action map


@dataclass
class _Effort:
    """The remaining budget: a number of pairs to step, and a deadline."""

    pairs: int
    deadline: float

    def is_spent(self) -> bool:
        return self.pairs <= 0 or time.monotonic() > self.deadline


def corrections(violations: Violations, case: Case) -> list[Statement]:
    """Alterations of the symmetry under which the equations for reward, transition and termination all hold.

    Args:
        violations: the measurements.
        case: the counterexample; its generator is the one to alter.

    Returns:
        At most three causes.
    """
    if len(case.word) != 1:
        return []
    cases = violations.measured.cases
    rows = [row for row in violations.confirmed if cases[row].word == case.word]
    others = [row for row in range(len(cases)) if cases[row].word == case.word]
    picked = violations.rng("corrections").permutation(others)
    tried = [cases[row] for row in dict.fromkeys([*rows[: _TRIED_ON // 2], *picked[: _TRIED_ON // 2]])]
    proposed: list[Statement] = []
    effort = _Effort(_MOST_STEPPED, time.monotonic() + _SECONDS)
    for cause, altered in _alterations(violations.pairs, case):
        if effort.is_spent() or len(proposed) >= _MOST_PROPOSED:
            break
        if _holds(violations, altered, [case, *tried], effort):
            proposed.append(cause)
    return proposed


def _holds(violations: Violations, altered: AlteredSymmetry, cases: list[Case], effort: _Effort) -> bool:
    bound = cast(BoundSymmetry, altered)
    original = violations.pairs
    pairs = Pairs(original.stepper, original.placement.under(bound), bound)
    pairs.own_cuts = original.own_cuts
    start, size = 0, 4  # most alterations fail on the first few cases
    while start < len(cases):
        if effort.is_spent():
            return False
        batch = cases[start : start + size]
        effort.pairs -= len(batch)
        try:
            measured = pairs.measure([pairs.case(case.word, case.situation, case.action) for case in batch])
            if any(violations.exceeding(pairs.comparison(part, measured)).any() for part in STEP_PARTS):
                return False
        except Exception:  # an altered map may leave the space, or cause an error in the user's code
            return False
        start, size = start + size, 40
    return True


def _alterations(pairs: Pairs, case: Case) -> Iterator[tuple[Statement, AlteredSymmetry]]:
    yield from _action_alterations(pairs, case)
    yield from _sign_alterations(pairs, case)


def _action_alterations(pairs: Pairs, case: Case) -> Iterator[tuple[Statement, AlteredSymmetry]]:
    bound, letter, space = pairs.bound, case.word[0], pairs.bound.action_space

    def alter_action(action: Callable[[Any, Any], Any]) -> AlteredSymmetry:
        return AlteredSymmetry(bound, letter, {"action": action})

    yield state("SYM010"), alter_action(lambda a, obs: a)
    order = _order_of_action(pairs, case)
    if order > 2:
        inverse = case.word * (order - 1)
        yield state("SYM011"), alter_action(lambda a, obs: bound.action(inverse, a, obs))
    if isinstance(space, spaces.Discrete) and space.n <= _MOST_ACTIONS_PERMUTED:
        # the identity comes first and was already tried
        for images in list(itertools.permutations(range(int(space.n))))[1:]:
            yield (
                state("SYM012", permutation=list(images)),
                alter_action(permuting(np.array(images), int(space.start))),
            )
    elif isinstance(space, spaces.Box):
        yield state("SYM013"), alter_action(lambda a, obs: -np.asarray(bound.action(case.word, a, obs)))
        size = int(np.prod(space.shape))
        for j in range(min(size, MOST_PROBED)):
            sign = np.where(np.arange(size) == j, -1.0, 1.0)
            yield state("SYM013", coordinate=f"action[{j}]"), alter_action(signing(bound, case.word, sign))


def _order_of_action(pairs: Pairs, case: Case) -> int:
    """The order of the generator's action map; 0 if it is too large."""
    flatten, word = pairs.stepper.action_codec.flatten, case.word[0]
    for order in range(1, _LONGEST_ORDER + 1):
        image = pairs.bound.action((word,) * order, case.action, case.situation.obs)
        if np.allclose(flatten(image), flatten(case.action), equal_nan=True):
            return order
    return 0


def _sign_alterations(pairs: Pairs, case: Case) -> Iterator[tuple[Statement, AlteredSymmetry]]:
    """Alterations that flip the sign of one observation coordinate (and of its state coordinate, if any)."""
    bound, word = pairs.bound, case.word
    linear = linear_map(lambda obs: bound.observation(word, obs), case.situation.obs)
    if linear is None:
        return
    matrix, offset = linear
    if not ((matrix != 0).sum(axis=1) == 1).all() or len(matrix) > MOST_PROBED:
        return
    held = numeric(case.situation.state) if pairs.placement.kind == "map" else None
    same = held is not None and held.size == len(matrix)  # then the state is mapped like the observation
    # A sequence has more coordinates than the array on which the map acts.
    for j, name in enumerate(pairs.stepper.codec.coordinates.names[: len(matrix)]):
        changed, shifted = matrix.copy(), offset.copy()
        changed[j] = -changed[j]
        shifted[j] = 0.0 if changed[j, j] > 0 else offset[j]  # a fixed coordinate needs no offset
        image = affine(changed, shifted)
        altered = AlteredSymmetry(bound, word[0], {"observation": image, **({"state": image} if same else {})})
        yield state("SYM014", sign="+1" if changed[j].sum() > 0 else "-1", coordinate=name), altered
