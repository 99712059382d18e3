"""Joint effects of two integer coordinates, because the rules of board games involve several cells.

A symmetry that fixes the centre maps the state with two probed literals to the state with their images probed. For any
action map, the outcomes under all actions, counted irrespective of the action, must then agree. A table of such counts
is therefore invariant, and a single pair can refute a candidate.
"""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from symcheck.array_types import Floats
from symcheck.discovery.laboratory import Laboratory
from symcheck.discovery.maps import SignedMap
from symcheck.discovery.structure import Structure, neutral_actions
from symcheck.errors import TargetError

_MOST_STEPS = 40_000
_FEW_REWARDS = 8  # maximum number of different rewards; real-valued rewards differ by rounding
# Repetitions of a random step, and those of a step without the usual outcome in its first repetitions. An outcome of
# any probability p appears certain at one pair and absent at its image with probability p^33 (1 - p)^6, at most 6e-8.
_GLANCES, _LOOKS = 6, 33
_LOOKING = 0.3  # of the time budget
_UNKNOWN = -1
"""The entry of a pair that was not probed, or whose outcomes are random; a map may exchange it with any other entry."""

Outcome = tuple[float, bool]


def with_pairs(lab: Laboratory, structure: Structure) -> Structure | None:
    """The structure extended by the joint effects of every two integer literals.

    Args:
        lab: the environment.
        structure: measured at the centre.

    Returns:
        The structure with `pairs`; None if states are not integers, or there are too many coordinates.
    """
    pairs = _list_pairs(lab, structure)
    actions = neutral_actions(lab)
    repeats = _GLANCES if lab.kind == "stochastic" else 1
    if lab.values is None or not lab.is_whole or not 0 < len(pairs) * len(actions) * repeats <= _MOST_STEPS:
        return None
    outcomes: dict[tuple[int, int], list[list[Outcome]]] = {}
    for p, q in pairs:
        if not lab.in_time(_LOOKING):
            return None
        state = structure.centre + _literal(structure, p) + _literal(structure, q)
        try:
            outcomes[p, q] = [_glance(lab, state, action, repeats) for action in actions]
        except TargetError:  # outside the allowed states: nothing is known about this pair
            continue
    met = Counter(outcome for steps in outcomes.values() for step in steps for outcome in step)
    if not met or len({reward for reward, _ in met}) > _FEW_REWARDS:
        return None
    usual = met.most_common(1)[0][0]
    return replace(structure, pairs=_tabulate(lab, structure, outcomes, actions, usual))


def keeps_pairs(structure: Structure, state_map: SignedMap) -> bool:
    """Whether a map preserves the joint effect of every two literals, as far as the effects were measured.

    Args:
        structure: measured at the centre.
        state_map: a map of states.

    Returns:
        True if the map does not fix the centre, because the table then gives no evidence about it.

    Example:
        >>> same = np.array([[-1, -1, 1, -1], [-1] * 4, [1, -1, -1, -1], [-1] * 4])
        >>> empty, literals = np.zeros((4, 4)), ((0, 1), (2, 3))
        >>> alike = Structure(np.zeros(2), empty, np.zeros(4), np.ones(4), literals, 2, (), pairs=same)
        >>> keeps_pairs(alike, SignedMap.of([1, 0]))
        True
    """
    pairs = structure.pairs
    if pairs is None or not np.array_equal(state_map.apply(structure.centre[None])[0], structure.centre):
        return True
    goes = np.array([2 * i + (sign < 0) for i, sign in zip(state_map.index, state_map.sign, strict=True)])
    images = np.stack([goes, goes ^ 1], axis=1).reshape(-1)
    moved = pairs[np.ix_(images, images)]
    return bool(((pairs == moved) | (pairs < 0) | (moved < 0)).all())


def _list_pairs(lab: Laboratory, structure: Structure) -> list[tuple[int, int]]:
    """Pairs of literals of different coordinates, each within the visited range."""
    low, high = lab.states.min(axis=0), lab.states.max(axis=0)
    probed = [structure.centre + _literal(structure, p) for p in range(2 * structure.dim)]
    inside = [p for p, state in enumerate(probed) if low[p // 2] <= state[p // 2] <= high[p // 2]]
    return [(p, q) for p, q in itertools.combinations(inside, 2) if p // 2 != q // 2]


def _literal(structure: Structure, p: int) -> Floats:
    step = np.zeros(structure.dim)
    step[p // 2] = 1.0 if p % 2 == 0 else -1.0
    return step


def _glance(lab: Laboratory, state: Floats, action: object, repeats: int) -> list[Outcome]:
    raw = lab.raw(state)
    steps = [lab.stepper.outcome(raw, action) for _ in range(repeats)]
    return [(step.reward, step.terminated) for step in steps]


def _tabulate(
    lab: Laboratory,
    structure: Structure,
    outcomes: dict[tuple[int, int], list[list[Outcome]]],
    actions: list[object],
    usual: Outcome,
) -> npt.NDArray[np.int64]:
    """A label per pair of literals, equal for equal counts of certain, unusual outcomes over actions.

    Shape (2 dim, 2 dim).
    """
    table = np.full((2 * structure.dim, 2 * structure.dim), _UNKNOWN)
    numbers: dict[frozenset[tuple[Outcome, int]], int] = {}
    for (p, q), steps in outcomes.items():
        state = structure.centre + _literal(structure, p) + _literal(structure, q)
        certain: Counter[Outcome] = Counter()
        known = True
        for action, step in zip(actions, steps, strict=True):
            if step[0] == usual and len(set(step)) == 1:
                continue
            looks = _LOOKS - len(step) if lab.kind == "stochastic" and len(set(step)) == 1 else 0
            known &= len({*step, *_glance(lab, state, action, looks)}) == 1
            certain[step[0]] += 1
        if known:
            number = numbers.setdefault(frozenset(certain.items()), len(numbers))
            table[p, q] = table[q, p] = number
    return table
