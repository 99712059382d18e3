"""The exact method: every (s, a, g) of a finite MDP whose probabilities are known.

Gymnasium's toy texts keep them as `P[s][a] = [(probability, next state, reward, terminated), ...]`. Both sides are
compared as laws: outcomes in another order, or split into parts, are the same law. States are restricted to those that
an episode can visit and act in; what a table says elsewhere is nobody's business.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

import numpy as np

from symcheck.engine.environments import subgroups
from symcheck.engine.environments.evidence import Workbench
from symcheck.engine.environments.pairs import Part
from symcheck.engine.environments.placement import Word
from symcheck.engine.environments.pool import Visit
from symcheck.engine.environments.stepper import Step, shown
from symcheck.engine.environments.value_gap import ValueGap, table_gap
from symcheck.engine.results import Counterexample, PropertyResult
from symcheck.envs.tables import Table
from symcheck.envs.tables import table_of as table_of
from symcheck.groups.group import Element

Law = dict[Hashable, float]

# Probabilities are written as decimals and added a few at a time: 64 rounding units of 1.
_TOLERANCE = 64 * float(np.finfo(np.float64).eps)
_MOST_ACTIONS_PERMUTED = 5


class TabularEvidence:
    """Evidence by enumeration.

    Args:
        bench: the symmetry and the options.
        table: `P`.
        start: probability of each start state, shape (states,); None where it is not known.
    """

    method = "exact"

    def __init__(self, bench: Workbench, table: Table, start: Any) -> None:
        self.bench = bench
        self._table = table
        self._start = None if start is None else np.asarray(start, dtype=np.float64)
        self._visited = sorted(self._reachable())

    def _reachable(self) -> set[int]:
        seeds = range(len(self._table)) if self._start is None else np.flatnonzero(self._start)
        seen: set[int] = set()
        waiting = [int(s) for s in seeds]
        while waiting:
            state = waiting.pop()
            if state in seen:
                continue
            seen.add(state)
            for outcomes in self._table[state].values():
                waiting += [int(s) for p, s, _, ended in outcomes if p > 0 and not ended]
        return seen

    def judge(self, name: str, part: Part) -> PropertyResult:
        """The verdict on one property; see `Evidence`."""
        checked = 0
        violations: list[tuple[Word, int, int]] = []
        worst = 0.0
        for word, state, action in self._cases():
            checked += 1
            gap = self._gap(part, word, state, action, None)
            worst = max(worst, gap)
            if not gap <= _TOLERANCE:
                violations.append((word, state, action))
        result = PropertyResult(
            name,
            "failed" if violations else "proved",
            self.method,
            checked=checked,
            violations=len(violations),
            max_residual=worst,
            tolerance=_TOLERANCE,
            unit="total variation of the laws",
            detail=(
                f"All {checked:,} (s, a, g) of the {len(self._visited):,} states that an episode visits, enumerated."
            ),
        )
        return self._failed(result, part, violations) if violations else result

    def value_gap(self, failed: set[str], discount: float) -> ValueGap | None:
        """What the violations cost in value; None where some reward is no number, so that there are no values."""
        rewards = (
            reward for actions in self._table.values() for outcomes in actions.values() for _, _, reward, _ in outcomes
        )
        return table_gap(self, discount) if all(map(math.isfinite, rewards)) else None

    def epsilons(self) -> tuple[float, float]:
        """(epsilon_R, epsilon_T): the largest difference of expected rewards, and of next-state laws."""
        reward = transition = 0.0
        for word, state, action, image, moved in self.imaged():
            means = [
                sum(float(p) * float(r) for p, _, r, _ in self._table[at][chosen])
                for at, chosen in ((state, action), (image, moved))
            ]
            laws = self._law(state, action, _absorbed, word), self._law(image, moved, _absorbed, None)
            reward = max(reward, abs(means[1] - means[0]))
            transition = max(transition, total_variation(*laws))
        return reward, transition

    def imaged(self) -> Iterator[tuple[Word, int, int, int, int]]:
        """(g, s, a, g s, g a) of every case."""
        bound = self.bench.pairs.bound
        for word, state, action in self._cases():
            image = int(bound.observation(word, np.int64(state)))
            yield word, state, action, image, self._image_of(word, action, state)

    def _cases(self) -> Iterator[tuple[Word, int, int]]:
        for word in self.bench.words:
            for state in self._visited:
                for action in self._table[state]:
                    yield word, state, action

    def _gap(self, part: Part, word: Word, state: int, action: int, act: Callable[[int], int] | None) -> float:
        expected, actual = self._laws(part, word, state, action, act)
        return total_variation(expected, actual)

    def _laws(
        self, part: Part, word: Word, state: int, action: int, act: Callable[[int], int] | None
    ) -> tuple[Law, Law]:
        """Both sides as laws of one part; of ends, with where they happen if only that tells the two apart."""
        image = int(self.bench.pairs.bound.observation(word, np.int64(state)))
        moved = self._image_of(word, action, state) if act is None else act(action)

        def sides(keep: Callable[[int, float, bool], Hashable]) -> tuple[Law, Law]:
            return self._law(state, action, keep, word), self._law(image, moved, keep, None)

        laws = sides(_KEPT[part])
        if part != "termination" or total_variation(*laws) > _TOLERANCE:
            return laws
        if total_variation(*sides(_KEPT["transition"])) > _TOLERANCE:
            return laws  # which is a violation of another property
        return sides(lambda following, reward, ended: (following, bool(ended)))

    def _image_of(self, word: Word, action: int, state: int) -> int:
        return int(self.bench.pairs.bound.action(word, np.int64(action), np.int64(state)))

    def _law(self, state: int, action: int, keep: Callable[[int, float, bool], Hashable], word: Word | None) -> Law:
        """The law of what is kept of an outcome, with next states mapped by an element where one is given."""
        bound = self.bench.pairs.bound
        law: Law = defaultdict(float)
        for probability, following, reward, ended in self._table[state][action]:
            to = int(following) if word is None else int(bound.observation(word, np.int64(following)))
            law[keep(to, reward, ended)] += float(probability)
        return dict(law)

    def _failed(self, result: PropertyResult, part: Part, violations: list[tuple[Word, int, int]]) -> PropertyResult:
        bound = self.bench.pairs.bound
        word, state, action = violations[0]
        expected, actual = self._laws(part, word, state, action, None)
        together = part == "termination" and all(isinstance(value, tuple) for value in expected)
        said = "next state and the end together" if together else _SAID[part]
        example = Counterexample(
            group_element=bound.label(word),
            observation=state,
            state=None,
            action=action,
            expected=_listed(expected),
            actual=_listed(actual),
            residual=total_variation(expected, actual),
            where=f"law of the {said}, as (value, probability)",
            image_observation=int(bound.observation(word, np.int64(state))),
            image_action=self._image_of(word, action, state),
        )
        holds = self._what_holds(part)
        causes = [
            *self._corrections(word),
            *([holds] if holds else []),
            f"it breaks for {len(violations)} of {result.checked} (s, a, g)",
        ]
        return dataclasses.replace(result, counterexample=example, causes=tuple(causes))

    def _what_holds(self, part: Part) -> str:
        """The subgroup under which one equation holds for every state and action."""
        bound = self.bench.pairs.bound

        def holds(element: Element) -> bool:
            word = tuple(bound.group.word(element))
            pairs = ((state, action) for state in self._visited for action in self._table[state])
            return all(self._gap(part, word, state, action, None) <= _TOLERANCE for state, action in pairs)

        if not subgroups.may_be_partial(bound.group):
            return ""
        return subgroups.in_words(bound.group, subgroups.holding(bound.group, holds), bound.label)

    def _corrections(self, word: Word) -> list[str]:
        """Action maps under which all equations hold."""
        actions = sorted(self._table[self._visited[0]])
        if len(actions) > _MOST_ACTIONS_PERMUTED:
            return []
        found = []
        parts: tuple[Part, ...] = ("transition", "reward", "termination")
        for images in itertools.permutations(actions):
            act = dict(zip(actions, images, strict=True)).__getitem__
            cases = [(s, a) for s in self._visited for a in self._table[s]]
            if all(self._gap(part, word, s, a, act) <= _TOLERANCE for s, a in cases for part in parts):
                found.append(
                    "K = identity would pass: with the actions unchanged all equations hold"
                    if list(images) == actions
                    else f"with the action map {list(images)} all equations hold"
                )
        return found[:2]

    def judge_start(self, name: str) -> PropertyResult:
        """The verdict on the start distribution, compared probability by probability."""
        bound = self.bench.pairs.bound
        if self._start is None:
            return PropertyResult(
                name, "undecided", self.method, checked=0, detail="the start distribution is not known."
            )
        gaps = {}
        for word in self.bench.words:
            images = [int(bound.observation(word, np.int64(s))) for s in range(len(self._start))]
            mapped = np.zeros_like(self._start)
            np.add.at(mapped, images, self._start)
            gaps[word] = np.abs(mapped - self._start)
        worst = max(float(gap.max()) for gap in gaps.values())
        result = PropertyResult(
            name,
            "proved" if worst <= _TOLERANCE else "failed",
            self.method,
            checked=len(self._start) * len(gaps),
            violations=sum(int((gap > _TOLERANCE).sum()) for gap in gaps.values()),
            max_residual=worst,
            tolerance=_TOLERANCE,
            unit="difference of probabilities",
            detail=f"the probabilities of all {len(self._start):,} states, compared.",
        )
        if worst <= _TOLERANCE:
            return result
        return self._start_failed(result, gaps, self._start)

    def _start_failed(self, result: PropertyResult, gaps: dict[Word, Any], start: Any) -> PropertyResult:
        bound = self.bench.pairs.bound
        word = max(gaps, key=lambda one: float(gaps[one].max()))
        state = int(np.argmax(gaps[word] * (start > 0)))
        image = int(bound.observation(word, np.int64(state)))
        example = Counterexample(
            group_element=bound.label(word),
            observation=state,
            state=None,
            action=None,
            expected=float(start[state]),
            actual=float(start[image]),
            residual=float(gaps[word].max()),
            where=f"probability of starting in {state} and in its image {image}",
            image_observation=image,
        )
        cause = "the start distribution is not symmetric; the dynamics are judged on their own"
        return dataclasses.replace(result, counterexample=example, causes=(cause,))


def _absorbed(following: int, reward: float, ended: bool) -> Hashable:
    return "ended" if ended else following


_KEPT: dict[Part, Callable[[int, float, bool], Hashable]] = {
    # One NaN for all: a key is found by identity before it is compared, and NaN equals nothing.
    "reward": lambda following, reward, ended: math.nan if math.isnan(reward) else round(float(reward), 12),
    "termination": lambda following, reward, ended: bool(ended),
    "transition": lambda following, reward, ended: following,
    "observation": lambda following, reward, ended: 0,
}
_SAID: dict[Part, str] = {
    "reward": "reward",
    "transition": "next state",
    "termination": "end",
    "observation": "observation",
}


def contradiction(table: Table, visits: Sequence[Visit]) -> str:
    """Where the environment did what its table gives no probability, in words; "" where all steps agree with it.

    A class that overrides `step` may inherit a table that tells another story.

    Args:
        table: `P`.
        visits: steps of rollouts.

    Returns:
        A clause that names the first such step.
    """
    for visit in visits:
        state, action, step = int(visit.situation.obs), int(visit.action), visit.step
        known = table.get(state, {}).get(action, [])
        if not any(p > 0 and _is_outcome(step, following, reward, ended) for p, following, reward, ended in known):
            end = " and an end" if step.terminated else ""
            return (
                f"action {action} in state {state} led to state {shown(step.obs)} with reward {step.reward:g}{end}, to "
                "which its table P gives no probability"
            )
    return ""


def _is_outcome(step: Step, following: int, reward: float, ended: bool) -> bool:
    paid = np.array_equal(np.float64(step.reward), np.float64(reward), equal_nan=True)
    return paid and int(step.obs) == int(following) and step.terminated == bool(ended)


def total_variation(one: Law, other: Law) -> float:
    """Half the sum of absolute differences of two laws.

    Args:
        one: value to probability.
        other: the same.

    Returns:
        Between 0 and 1.

    Example:
        >>> total_variation({0: 0.5, 1: 0.5}, {1: 1.0})
        0.5
    """
    return 0.5 * sum(abs(one.get(key, 0.0) - other.get(key, 0.0)) for key in {*one, *other})


def _listed(law: Law) -> list[list[Any]]:
    return [[value, probability] for value, probability in sorted(law.items(), key=lambda item: str(item[0]))]
