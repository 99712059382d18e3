"""The exact method: every (s, a, g) of a finite MDP whose probabilities are known.

Gymnasium's toy-text environments store them as `P[s][a] = [(probability, next state, reward, terminated), ...]`. Both
sides are compared as distributions: outcomes in another order, or split into parts, are the same distribution. Only
states in which an episode can take an action are compared; other entries of the table are not tested.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

import numpy as np

from symcheck.array_types import Floats
from symcheck.engine.environments.cases.pool import Visit
from symcheck.engine.environments.cases.workbench import Workbench
from symcheck.engine.environments.causes import subgroups
from symcheck.engine.environments.methods.value_gap import ValueGap, table_gap
from symcheck.engine.environments.subject.placement import Word
from symcheck.engine.equations import BY_PART, START, Part
from symcheck.engine.outcomes import outcomes_of
from symcheck.engine.registry import register_method
from symcheck.engine.results import Counterexample, PropertyResult
from symcheck.envs.stepping.stepper import Step
from symcheck.envs.tables import Table
from symcheck.envs.tables import table_of as table_of
from symcheck.groups.element import Element
from symcheck.groups.subgroups import holding, may_be_partial
from symcheck.spaces.values import short_text
from symcheck.statements.statement import Statement
from symcheck.verdict import Facts, ReasonCode, decide

Distribution = dict[Hashable, float]

# Probabilities are decimals, and a few are added at a time: 64 rounding units of 1.
_TOLERANCE = 64 * float(np.finfo(np.float64).eps)
_MOST_ACTIONS_PERMUTED = 5


class TabularEvidence:
    """Evidence by enumeration.

    Args:
        bench: the symmetry and the options.
        table: `P`.
        start: probability of each start state, shape (states,); None if it is not known.
    """

    method = "exact"

    def __init__(self, bench: Workbench, table: Table, start: Any) -> None:
        self.bench = bench
        self._table = table
        self._start = None if start is None else np.asarray(start, dtype=np.float64)
        self._visited = sorted(self._reach())

    def _reach(self) -> set[int]:
        seeds = range(len(self._table)) if self._start is None else np.flatnonzero(self._start)
        reached: set[int] = set()
        waiting = [int(s) for s in seeds]
        while waiting:
            state = waiting.pop()
            # Each state is expanded once, so that the search is linear in the table.
            if state in reached:
                continue
            reached.add(state)
            for outcomes in self._table[state].values():
                # The claim does not cover final states, because no action is taken there.
                waiting += [int(s) for p, s, _, ended in outcomes if p > 0 and not ended]
        return reached

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
        outcomes = outcomes_of(self._possible_outcomes(part))
        facts = Facts(
            checked=checked,
            violations=len(violations),
            exhaustive=True,
            quantity=BY_PART[part].noun,
            finite=outcomes.finite,
            stuck=outcomes.stuck or "NaN",
            moved=self._moves_something,
            constant=outcomes.constant,
        )
        verdict, reason = decide(facts)
        result = PropertyResult(
            name,
            verdict,
            self.method,
            checked=checked,
            violations=len(violations),
            max_residual=worst,
            tolerance=_TOLERANCE,
            unit="total variation of the distributions",
            notes=(Statement("enumerated", {"cases": checked, "states": len(self._visited)}),),
            reason=reason,
            facts=facts,
        )
        return self._describe_violations(result, part, violations) if violations else result

    @functools.cached_property
    def _moves_something(self) -> bool:
        """Whether any reachable state, or any action in it, differs from its image."""
        return any((state, action) != (image, moved) for _, state, action, image, moved in self.iterate_cases())

    def _possible_outcomes(self, part: Part) -> Floats:
        """The possible values of one part on both sides of the cases, shape (outcomes, 1)."""
        # Distinct (s, a) only: many cases share their two sides.
        sides = {side for _, s, a, image, moved in self.iterate_cases() for side in ((s, a), (image, moved))}
        possible = [outcome[1:] for s, a in sides for outcome in self._table[s][a] if outcome[0] > 0]
        column = {"reward": 1, "termination": 2}.get(part, 0)
        return np.array([float(outcome[column]) for outcome in possible])[:, None]

    def value_gap(self, failed: set[str], discount: float) -> ValueGap | None:
        """The value gap of the violations; None if rewards are not numbers, so that no values exist."""
        rewards = [outcome[2] for actions in self._table.values() for known in actions.values() for outcome in known]
        if not np.isfinite(np.array(rewards, dtype=np.float64)).all():
            return None
        cases = [case[1:] for case in self.iterate_cases()]
        return table_gap(self.bench.pairs.stepper.env, self.epsilons(), cases, discount)

    def epsilons(self) -> tuple[float, float]:
        """(epsilon_R, epsilon_T): the largest difference of expected rewards, and of next-state distributions."""
        reward = transition = 0.0
        for word, state, action, image, moved in self.iterate_cases():
            means = [
                sum(float(p) * float(r) for p, _, r, _ in self._table[at][chosen])
                for at, chosen in ((state, action), (image, moved))
            ]
            sides = (
                self._distribution(state, action, _keep_unless_ended, word),
                self._distribution(image, moved, _keep_unless_ended, None),
            )
            reward = max(reward, abs(means[1] - means[0]))
            transition = max(transition, total_variation(*sides))
        return reward, transition

    def iterate_cases(self) -> Iterator[tuple[Word, int, int, int, int]]:
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
        expected, actual = self._both_sides(part, word, state, action, act)
        return total_variation(expected, actual)

    def _both_sides(
        self, part: Part, word: Word, state: int, action: int, act: Callable[[int], int] | None
    ) -> tuple[Distribution, Distribution]:
        """Both sides as distributions of one part; terminations include their place only if it matters."""
        image = int(self.bench.pairs.bound.observation(word, np.int64(state)))
        moved = self._image_of(word, action, state) if act is None else act(action)

        def sides(keep: Callable[[int, float, bool], Hashable]) -> tuple[Distribution, Distribution]:
            return self._distribution(state, action, keep, word), self._distribution(image, moved, keep, None)

        both = sides(_KEPT[part])
        if part != "termination" or total_variation(*both) > _TOLERANCE:
            return both
        if total_variation(*sides(_KEPT["transition"])) > _TOLERANCE:
            return both  # this violates another property
        return sides(lambda following, reward, ended: (following, bool(ended)))

    def _image_of(self, word: Word, action: int, state: int) -> int:
        return int(self.bench.pairs.bound.action(word, np.int64(action), np.int64(state)))

    def _distribution(
        self, state: int, action: int, keep: Callable[[int, float, bool], Hashable], word: Word | None
    ) -> Distribution:
        """Distribution of the retained part of an outcome, with next states mapped by an element if one is given."""
        bound = self.bench.pairs.bound
        distribution: Distribution = defaultdict(float)
        for probability, following, reward, ended in self._table[state][action]:
            to = int(following) if word is None else int(bound.observation(word, np.int64(following)))
            distribution[keep(to, reward, ended)] += float(probability)
        return dict(distribution)

    def _describe_violations(
        self, result: PropertyResult, part: Part, violations: list[tuple[Word, int, int]]
    ) -> PropertyResult:
        bound = self.bench.pairs.bound
        word, state, action = violations[0]
        expected, actual = self._both_sides(part, word, state, action, None)
        noun = BY_PART[part].noun if part != "transition" else "next state"
        if part == "termination" and all(isinstance(value, tuple) for value in expected):
            noun = "next state and termination together"
        example = Counterexample(
            group_element=bound.label(word),
            observation=state,
            state=None,
            action=action,
            expected=_as_list(expected),
            actual=_as_list(actual),
            residual=total_variation(expected, actual),
            where=f"distribution of the {noun}, as (value, probability)",
            image_observation=int(bound.observation(word, np.int64(state))),
            image_action=self._image_of(word, action, state),
        )
        subgroup = self._find_subgroup(part)
        causes = (
            *self._corrections(word),
            *([subgroup] if subgroup else []),
            Statement("SYM027", {"violations": len(violations), "checked": result.checked}),
        )
        return dataclasses.replace(result, counterexample=example, causes=causes)

    def _find_subgroup(self, part: Part) -> Statement | None:
        """The subgroup under which one equation holds for every state and action."""
        bound = self.bench.pairs.bound

        def holds(element: Element) -> bool:
            word = tuple(bound.group.word(element))
            pairs = ((state, action) for state in self._visited for action in self._table[state])
            return all(self._gap(part, word, state, action, None) <= _TOLERANCE for state, action in pairs)

        if not may_be_partial(bound.group):
            return None
        return subgroups.in_words(bound.group, holding(bound.group, holds), bound.label)

    def _corrections(self, word: Word) -> list[Statement]:
        """Action maps under which all equations hold."""
        actions = sorted(self._table[self._visited[0]])
        if len(actions) > _MOST_ACTIONS_PERMUTED:
            return []
        causes = []
        parts: tuple[Part, ...] = ("transition", "reward", "termination")
        # At most 5! = 120 maps, each of which stops at its first violation.
        for images in itertools.permutations(actions):
            act = dict(zip(actions, images, strict=True)).__getitem__
            cases = [(s, a) for s in self._visited for a in self._table[s]]
            if all(self._gap(part, word, s, a, act) <= _TOLERANCE for s, a in cases for part in parts):
                permutation = [int(image) for image in images]
                identity = list(images) == actions
                causes.append(Statement("SYM010") if identity else Statement("SYM012", {"permutation": permutation}))
        return causes[:2]

    def judge_start(self, name: str) -> PropertyResult:
        """The verdict on the start distribution, compared probability by probability."""
        bound = self.bench.pairs.bound
        if self._start is None:
            facts = Facts(checked=0, prevented=Statement(ReasonCode.START_UNKNOWN.value))
            verdict, reason = decide(facts)
            return PropertyResult(name, verdict, self.method, checked=0, reason=reason, facts=facts)
        gaps = {}
        for word in self.bench.words:
            images = [int(bound.observation(word, np.int64(s))) for s in range(len(self._start))]
            mapped = np.zeros_like(self._start)
            # add.at, because a map that is not a bijection may map several states to one.
            np.add.at(mapped, images, self._start)
            gaps[word] = np.abs(mapped - self._start)
        worst = max(float(gap.max()) for gap in gaps.values())
        possible = np.flatnonzero(self._start)
        facts = Facts(
            checked=len(self._start) * len(gaps),
            violations=sum(int((~(gap <= _TOLERANCE)).sum()) for gap in gaps.values()),
            exhaustive=True,
            quantity=START.noun,
            moved=self._moves_something,
            constant=f"{possible[0]}" if len(possible) == 1 else None,
        )
        verdict, reason = decide(facts)
        result = PropertyResult(
            name,
            verdict,
            self.method,
            checked=facts.checked,
            violations=facts.violations,
            max_residual=worst,
            tolerance=_TOLERANCE,
            unit="difference of probabilities",
            notes=(Statement("start_probabilities", {"states": len(self._start)}),),
            reason=reason,
            facts=facts,
        )
        return self._describe_start(result, gaps, self._start) if facts.violations else result

    def _describe_start(self, result: PropertyResult, gaps: dict[Word, Any], start: Any) -> PropertyResult:
        bound = self.bench.pairs.bound
        word = max(gaps, key=lambda each: float(gaps[each].max()))
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
        return dataclasses.replace(result, counterexample=example, causes=(Statement("SYM040", {"coordinates": []}),))


def _keep_unless_ended(following: int, reward: float, ended: bool) -> Hashable:
    return "ended" if ended else following


def _reward_key(following: int, reward: float, ended: bool) -> Hashable:
    # NaN does not equal itself, so as a key it would never match its image.
    return "NaN" if np.isnan(reward) else round(float(reward), 12)


_KEPT: dict[Part, Callable[[int, float, bool], Hashable]] = {
    "reward": _reward_key,
    "termination": lambda following, reward, ended: bool(ended),
    "transition": lambda following, reward, ended: following,
    "observation": lambda following, reward, ended: 0,
}


def contradiction(table: Table, visits: Sequence[Visit]) -> str:
    """A clause that describes a step to which the table gives probability 0; "" if all steps agree with the table.

    A class that overrides `step` may inherit a table that no longer matches.

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
            led = f"state {short_text(step.obs)} with reward {step.reward:g}{end}"
            return f"action {action} in state {state} led to {led}, to which the table P gives probability 0"
    return ""


def _is_outcome(step: Step, following: int, reward: float, ended: bool) -> bool:
    paid = np.array_equal(np.float64(step.reward), np.float64(reward), equal_nan=True)
    return paid and int(step.obs) == int(following) and step.terminated == bool(ended)


def total_variation(one: Distribution, other: Distribution) -> float:
    """Half the sum of absolute differences of two distributions.

    Args:
        one: probability by value.
        other: the same.

    Returns:
        Between 0 and 1.

    Example:
        >>> total_variation({0: 0.5, 1: 0.5}, {1: 1.0})
        0.5
    """
    return 0.5 * sum(abs(one.get(key, 0.0) - other.get(key, 0.0)) for key in {*one, *other})


def _as_list(distribution: Distribution) -> list[list[Any]]:
    return [[value, probability] for value, probability in sorted(distribution.items(), key=lambda item: str(item[0]))]


register_method("exact")
