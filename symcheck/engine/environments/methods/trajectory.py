"""The trajectory method, for black boxes that can only be reset and stepped: episodes against transformed episodes.

Under the uniform policy, and if start, dynamics, reward and termination are all symmetric, an episode and the image of
another episode have the same distribution. The independent unit is the episode: transitions within one episode are
correlated, and tests that treat them as independent raise a false alarm on plain CartPole three times in four.
Therefore totals over episodes are compared, and whole episodes are swapped.

The outcomes of (s, a) are compared: reward, next observation and termination, each after one regression on (s, a)
fitted to both groups together. If the start distribution is not symmetric (or not claimed to be), the two groups visit
different states, so a difference is not evidence about the dynamics, and the verdict is undecided.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from symcheck.engine.budget import Handed
from symcheck.engine.clock import TimeUp, computing_for, computing_until
from symcheck.engine.detectable import detectable_change
from symcheck.engine.environments.cases.workbench import Workbench, shift_bound
from symcheck.engine.environments.methods.start import StartEvidence
from symcheck.engine.environments.subject.placement import Word
from symcheck.engine.episode_columns import EpisodeColumns
from symcheck.engine.episodes import (
    EpisodePairs,
    Transitions,
    what_followed,
)
from symcheck.engine.equations import BY_PART, STEP_PARTS, Part
from symcheck.engine.outcomes import outcomes_of
from symcheck.engine.rare_events import FEWEST_EVENTS
from symcheck.engine.registry import register_method
from symcheck.engine.results import Counterexample, PropertyResult
from symcheck.engine.scales import COARSE
from symcheck.engine.sequential import Look, Looked, looks
from symcheck.engine.statistics import SignFlipTest, sign_flip_test
from symcheck.spaces.reduction import reduction
from symcheck.statements.statement import Statement, state
from symcheck.symmetry.exact_images import images_are_exact
from symcheck.symmetry.exits import invariant_actions
from symcheck.verdict import Facts, ReasonCode, decide

_TESTS = "{} of episodes"  # names of the tests in the run's budget, in addition to those of single steps
_LONGEST = 100  # maximum number of used steps per episode: more episodes are more informative than longer ones
# Every fourth pair is played longer, if there are enough steps for a dozen such pairs, to detect effects that begin
# late.
_EVERY, _LONG, _ENOUGH = 4, 250, 8_000
_MANY_ENDS = 200  # number of terminations; with fewer, a pass states the limits of its evidence about thresholds
_WHOLE_PAIRS = 40  # number of pairs of that length; with more requested steps, longer episodes are played
_PLAYING = 0.9  # fraction of the time budget; the rest is for starts, which are needed to test episodes
_FEWEST_PAIRS = 8  # minimum number of pairs for a fit
_FEWEST_LOOKED_AT = 50  # pairs of episodes below which interim analyses cannot reject
_OF_MEANS, _OF_OTHERS, _OF_LEARNED = 0.4, 0.2, 0.4  # fractions of the level
_MEASURING = 0.35  # maximum fraction of the remaining time in which the cost of tests is measured
_ONE_TEST = 0.5  # maximum fraction of the remaining time for one test, so that other tests are not lost
_LOOKS = looks(2**31)  # the number of episodes is unknown, so no interim analysis is omitted in advance
_STEPS_PER_SAMPLE = 2  # each sample is a transition on each side
_LEAST_SHARE = 0.5  # fraction of the requested steps, as for the samples of the distribution method


@dataclass(frozen=True)
class _Tested:
    """The test of one part under one element.

    Attributes:
        test: the test of the most significant features.
        described: their names.
        live: whether any pattern of swaps could have rejected.
        critical: the critical value of the named features, for the detectable effect.
    """

    test: SignFlipTest
    described: list[str]
    live: bool
    critical: float


class TrajectoryEvidence:
    """Evidence from whole episodes.

    Args:
        bench: the environment (states cannot be set) and the options; the tests are announced to its budget.
        start: evidence about the start distribution, on which the equations depend in this method.
        needed: whether a part is to be tested; called when the first test of the run is decided.
        parts: the parts that may be tested.
    """

    method = "trajectory"

    def __init__(
        self,
        bench: Workbench,
        start: StartEvidence,
        *,
        needed: Callable[[Part], bool] = lambda part: True,
        parts: Sequence[Part] = STEP_PARTS,
    ) -> None:
        self.bench = bench = bench.comparing()
        self._needed, self._parts = needed, parts
        # Number of requested steps under every element.
        self._asked = max(1, bench.options.samples * _STEPS_PER_SAMPLE // len(bench.words))
        self._view = reduction(bench.pairs.stepper.codec)
        exact = bool(self._view.coordinates.epsilon.max(initial=0.0) > COARSE) and all(
            images_are_exact(bench.pairs.bound, word, lambda: bench.pairs.stepper.first_obs) for word in bench.words
        )
        self._columns = EpisodeColumns(self._view, bench.pairs.stepper.action_codec, exact=exact)
        self._start_evidence = start
        self._tests: dict[Part, dict[Word, _Tested]] = {}
        self._stopped = False
        self._cost_per_step: float | None = None  # seconds of testing
        self._curtailed = False  # whether time for tests, not for steps, limited the number of episodes
        for part in parts:
            bench.budget.add(_TESTS.format(part), functools.partial(self._hand_in, part), planned=len(bench.words))

    @functools.cached_property
    def _looks_so_far(self) -> Looked:
        return Looked(self.bench.level)  # known after all tests of the run are announced

    @functools.cached_property
    def _start(self) -> PropertyResult:
        return self._start_evidence.judge("initial_invariance")

    def _hand_in(self, part: Part) -> dict[Word, Handed]:
        if not self._needed(part) or self._fewest_pairs < self._telling_pairs:
            return {}
        return {word: Handed(tested.test.p_value, tested.live) for word, tested in self._test_all(part).items()}

    @property
    def _fewest_pairs(self) -> int:
        return min(len(group.plain) for group in self.groups.values())

    @property
    def _least_pairs(self) -> int:
        """The minimum number of pairs for a decision, if playing was not stopped early by a rejection."""
        least = [group.pairs_in(_LEAST_SHARE * self._asked) for group in self.groups.values()]
        return self._telling_pairs if self._stopped else max(self._telling_pairs, *least)

    @property
    def _telling_pairs(self) -> int:
        """The number of pairs from which every test can reject, with room for a few patterns as extreme.

        The learned feature is tested on half of the pairs: with fewer, its share of the level finds nothing, and a
        difference that only appears in some states under some actions passes.
        """
        # the most extreme patterns of swaps of n pairs have probability 2^(1-n)
        return 2 * max(_FEWEST_PAIRS, 3 + math.ceil(-math.log2(_OF_LEARNED * self.bench.level)))

    def _test_all(self, part: Part) -> dict[Word, _Tested]:
        groups = self.groups  # may stop early, with the tests of the last interim analysis
        if part not in self._tests:
            self._tests[part] = {word: self._test(part, word, group, _LOOKS[-1]) for word, group in groups.items()}
        return self._tests[part]

    @functools.cached_property
    def groups(self) -> dict[Word, EpisodePairs]:
        """The episodes of every element.

        Sampling stops early at an interim analysis that refutes every tested part (any part with fail-fast).
        """
        words = self.bench.words
        report = self.bench.progress("playing episodes")
        groups = {word: EpisodePairs([], []) for word in words}
        for look in _LOOKS:
            for at, word in enumerate(words):
                self._play(word, groups[word], look.share * self._asked)
                report(round(100 * (look.share * (at + 1))), 100 * len(words))
            if not look.last and self.bench.in_time() and self._is_refuted_in_time(groups, look):
                break
        report(1, 1)
        return groups

    def _is_refuted_in_time(self, groups: dict[Word, EpisodePairs], look: Look) -> bool:
        """Whether an interim analysis refutes every tested part; not if the time runs out first."""
        return self.bench.clock.while_in_time(lambda: self._is_refuted(groups, look), otherwise=False)

    def _is_refuted(self, groups: dict[Word, EpisodePairs], look: Look) -> bool:
        """Whether an interim analysis refutes every tested part, or (with fail-fast) any part."""
        if min(len(group.plain) for group in groups.values()) < _FEWEST_LOOKED_AT:
            return False
        fast = self.bench.options.fail_fast
        early: dict[Part, dict[Word, _Tested]] = {}
        refuted = False
        for part in filter(self._needed, self._parts):
            early[part] = {word: self._test(part, word, group, look) for word, group in groups.items()}
            this = any(self._looks_so_far.rejects((part, word)) for word in groups)
            # If one part is not refuted, it needs all episodes, and the others use them too.
            if not (this or fast):
                return False
            refuted = refuted or this
        if not refuted:
            return False
        self._tests, self._stopped = early, True
        return True

    def _play(self, word: Word, groups: EpisodePairs, steps: float) -> None:
        """Play until the given number of steps is reached, or no time is left to test more."""
        plain, mapped = groups.plain, groups.mapped
        taken = groups.steps
        while (taken < steps or len(mapped) < self._telling_pairs) and self.bench.in_time(_PLAYING):
            if len(mapped) >= self._telling_pairs and not self._affords(word, groups, taken):
                return
            longest = self._long if self._is_played_on(groups) else _LONGEST
            try:
                plain_episode, image_episode = self._episode(None, longest), self._episode(word, longest)
            except TimeUp:
                return  # only whole pairs of episodes are compared
            # Alternate plain and mapped episodes, so that a drift over time affects both sides equally.
            plain.append(plain_episode)
            mapped.append(image_episode)
            taken += len(plain_episode.rewards) + len(image_episode.rewards)

    def _affords(self, word: Word, group: EpisodePairs, steps: int) -> bool:
        """Whether the rest of the time budget suffices to test this many steps under every element.

        The tests of many coordinates may take longer than the episodes. Their cost is measured once, on few pairs. It
        grows less than in proportion, because factorising takes as long for any number of steps.
        """
        if not self.bench.clock.is_limited:
            return True
        if self._cost_per_step is None:
            seconds = self.bench.clock.while_in_time(lambda: self._time_tests(word, group), otherwise=math.inf)
            self._cost_per_step = seconds / steps
        affordable = self._cost_per_step * steps * len(self.bench.words) < self.bench.clock.seconds_left()
        self._curtailed = self._curtailed or not affordable
        return affordable

    def _time_tests(self, word: Word, group: EpisodePairs) -> float:
        """The seconds that one analysis of the given episodes takes; infinite if it is far too long for the budget."""
        began = time.monotonic()
        with computing_until(began + _MEASURING * self.bench.clock.seconds_left()):
            for part in filter(self._needed, self._parts):
                with self.bench.computing(BY_PART[part].noun):
                    self._compare(part, word, group, _LOOKS[0])
        return time.monotonic() - began

    @property
    def _long(self) -> int:
        return max(_LONG, self._asked // (2 * _WHOLE_PAIRS))

    def _is_played_on(self, groups: EpisodePairs) -> bool:
        """Whether the next pair is played longer: every fourth, or all if the first one ended late (its own limit)."""
        number = len(groups.plain)
        if self._asked < _ENOUGH or number % _EVERY == 0:
            return self._asked >= _ENOUGH
        return all(len(side[0].rewards) > _LONGEST and side[0].ended[-1] for side in (groups.plain, groups.mapped))

    def _episode(self, word: Word | None, longest: int) -> Transitions:
        stepper, bound = self.bench.pairs.stepper, self.bench.pairs.bound
        with invariant_actions(stepper.env, bound.source):
            played = stepper.play(longest)
        word = None if word is None else tuple(bound.drawn(word))  # one Haar element per episode
        observations, actions = played.seen, played.actions
        # Actions first: a state-dependent map needs the observation before it is mapped.
        if word is not None:
            actions = [bound.action(word, action, obs) for action, obs in zip(actions, observations[:-1], strict=True)]
            self.bench.pairs.refuse_exits(word, played.actions, actions)  # images are not stepped here
            observations = [bound.observation(word, obs) for obs in observations]
        whole = stepper.codec.flatten_batch(observations)
        flat = self._view.apply(whole)
        rewards = np.array([step.reward for step in played.steps])
        # Truncation by a TimeLimit wrapper is not an outcome of (s, a); truncation by the environment itself is.
        limit = stepper.time_limit or 0
        ended = np.array(
            [
                1.0 if step.terminated else 0.5 * (step.truncated and number != limit)
                for number, step in enumerate(played.steps, start=1)
            ]
        )
        return Transitions(flat[:-1], actions, rewards, flat[1:], ended, bool(np.isfinite(whole[1:]).any()))

    def judge(self, name: str, part: Part) -> PropertyResult:
        """The verdict on one property; see `Evidence`."""
        episodes = [episode for group in self.groups.values() for episode in (*group.plain, *group.mapped)]
        result = PropertyResult(
            name,
            "undecided",
            self.method,
            checked=len(episodes),
            unit=BY_PART[part].unit,
            notes=(
                state(
                    "episodes_played",
                    episodes=len(episodes),
                    transitions=sum(len(episode.rewards) for episode in episodes),
                    longest=self._long if any(len(each.rewards) > _LONGEST for each in episodes) else _LONGEST,
                ),
            ),
        )
        facts = self._facts(part, episodes)
        if facts.checked >= self._telling_pairs:
            result, facts = self._evaluate(result, part, facts)
        verdict, reason = decide(facts)
        if verdict == "undecided":
            result = dataclasses.replace(result, bound=None)  # an undecided result excludes nothing
        return dataclasses.replace(result, verdict=verdict, reason=reason, facts=facts)

    def _facts(self, part: Part, episodes: list[Transitions]) -> Facts:
        """The facts about the comparison, without the outcome of the test."""
        followed = what_followed(part, episodes)
        # An episode that the environment truncates has no termination.
        outcomes = outcomes_of((followed == 1.0).astype(float) if part == "termination" else followed)
        # Reduced observations contain numbers only, so unreduced ones show whether there were any.
        hidden = part == "transition" and not any(episode.shows_numbers for episode in episodes)
        return Facts(
            checked=self._fewest_pairs,
            least=self._least_pairs,
            quantity=BY_PART[part].noun,
            finite=outcomes.finite and not hidden,
            stuck=outcomes.stuck or "NaN",
            moved=self.bench.moved,
            constant=outcomes.constant,
            silent=self.bench.silent(part),
            interrupted=self.bench.interrupted,
            stopped=self._stopped,
            time_up=self._curtailed or not self.bench.in_time(_PLAYING),
        )

    def _evaluate(self, result: PropertyResult, part: Part, facts: Facts) -> tuple[PropertyResult, Facts]:
        """The result and the facts, with the outcome of the test."""
        tests = self._test_all(part)
        # The most significant element; Holm's procedure has corrected for the selection.
        word = min(tests, key=lambda one: tests[one].test.p_value)
        test = tests[word].test
        level = self.bench.judged_at(_TESTS.format(part), word, test.p_value)
        stopped = (state("playing_stopped"),) if self._stopped else ()
        result = dataclasses.replace(
            result, p_value=test.p_value, notes=(*result.notes, state("tested_at_level", level=level), *stopped)
        )
        if test.p_value <= level:
            facts = dataclasses.replace(facts, violations=1, unattributed=self._blame_start())
            result = dataclasses.replace(result, violations=1)
            return (result if facts.unattributed else self._describe_rejection(result, part, tests[word], word)), facts
        if self._stopped:
            return result, facts
        with self.bench.computing(BY_PART[part].noun):
            bound = self._missable_shift(part, [tested.critical for tested in tests.values()], result.checked)
        weakness = [state("larger_effects_only", why=self._why_episodes())]
        ends = sum(int(each.ended[-1] == 1) for each in self.groups[word].plain + self.groups[word].mapped)
        if part == "termination" and 0 < ends < _MANY_ENDS:
            weakness.append(state("few_ends", ends=ends, fewest=FEWEST_EVENTS))
        return dataclasses.replace(result, bound=bound, notes=(*result.notes, *weakness)), facts

    def _missable_shift(self, part: Part, criticals: list[float], episodes: int) -> dict[str, object]:
        # The weakest test, on the fewest pairs, determines the violations that all tests together would have missed.
        critical = max((each for each in criticals if np.isfinite(each)), default=math.inf)
        group = min(self.groups.values(), key=lambda each: len(each.plain))
        outcomes = self._columns.outcomes(part, group)
        rng = self.bench.rng(f"promises of {part}")
        detectable = detectable_change(*outcomes, critical=critical, rng=rng)
        unit = "standard deviations of an episode's total"
        fields: dict[str, object] = {"episodes": episodes, **self._last_step(group)}
        if not detectable.change > 0:  # then the bound is on the fraction of episodes that differ
            fields["rounding"] = self._columns.rounding(part, group)
        region = state("region_episodes", **fields)
        return shift_bound(detectable, episodes, self.bench.options.alpha, unit=unit, region=region)

    def _last_step(self, group: EpisodePairs) -> dict[str, int]:
        """The number of the last step compared, as a field of statements, if episodes go on after it."""
        played = [*group.plain, *group.mapped]
        last = max(len(each.rewards) for each in played)
        # The end of an episode by a TimeLimit wrapper is not an outcome, but no step follows it either.
        goes_on = any(len(each.rewards) == last and not each.ended[-1] for each in played)
        return {"last_step": last} if goes_on and last != self.bench.pairs.stepper.time_limit else {}

    def _why_episodes(self) -> str:
        """Why whole episodes are compared, as a field of statements: what is missing, or that it was requested."""
        pairs = self.bench.pairs
        if pairs.stepper.access is None:
            return "no_access"
        if pairs.placement.kind is None:
            return "no_state_map"
        return "asked" if self.bench.options.method == "trajectory" else "lossy"

    def _blame_start(self) -> Statement | None:
        """The reason not to attribute a rejection to the dynamics: the starts of the two groups may differ."""
        claimed = self.bench.pairs.bound.symmetry.initial
        if not claimed or self._start.verdict != "passed":
            start = self._start.verdict if claimed else "unclaimed"
            return state(ReasonCode.START_ASYMMETRIC.value, start=start, why=self._why_episodes())
        return state(ReasonCode.START_FOLLOWS_PAST.value) if self._start_evidence.surviving.any() else None

    def _describe_rejection(self, result: PropertyResult, part: Part, tested: _Tested, word: Word) -> PropertyResult:
        test, described = tested.test, tested.described
        # Of features that tell as much, up to rounding, the first and simplest.
        best = int(np.argmax(test.statistics >= test.statistics.max() * (1 - 1e-9)))
        label = self.bench.pairs.bound.label(word)
        ranked = [described[i] for i in np.argsort(-test.statistics) if test.statistics[i] > test.critical]
        # The same feature may occur twice, after a coarse fit and after a fine one.
        others = [name for name in dict.fromkeys(ranked) if name != described[best]][:3]
        size = self._columns.size(part, self.groups[word], described[best])
        causes = [state("SYM050", part=part, feature=described[best], element=label, others=others, **size)]
        # If transitions are broken, the two groups visit different states, where correct rewards and terminations
        # differ too.
        if part != "transition" and any(self._looks_so_far.rejects(("transition", group)) for group in self.groups):
            causes.append(state("SYM056"))
        causes.append(state("SYM057", why=self._why_episodes()))
        largest = float(test.statistics[best])
        return dataclasses.replace(
            result,
            max_residual=largest,
            unit="standardised difference of episode totals",
            counterexample=Counterexample(label, None, None, None, 0.0, largest, largest, described[best]),
            causes=tuple(causes),
            notes=(
                state("episodes_differ", feature=described[best], element=label, p_value=test.p_value),
                *result.notes,
            ),
        )

    def _test(self, part: Part, word: Word, group: EpisodePairs, look: Look) -> _Tested:
        """One interim analysis; the p-value combines all analyses so far. Early ones draw no swaps."""
        with self.bench.computing(BY_PART[part].noun), computing_for(_ONE_TEST):
            tested = self._compare(part, word, group, look)
        p_value = self._looks_so_far.add((part, word), tested.test.p_value, look)
        return dataclasses.replace(tested, test=dataclasses.replace(tested.test, p_value=p_value))

    def _compare(self, part: Part, word: Word, group: EpisodePairs, look: Look) -> _Tested:
        """Means, all other named features, and one learned feature on the second half of the episodes.

        Each has its own share of the level, because many features dilute a few.
        """
        features = self._columns.features(part, group)
        pairs, sampled = len(group.plain), look.last
        level, rng = self.bench.level * look.weight, self.bench.rng(f"flips {part}")
        differences, split = features.named[:pairs] - features.named[pairs:], features.means
        tested: list[tuple[float, SignFlipTest, list[str]]] = []
        for share, some in ((_OF_MEANS, slice(split)), (_OF_OTHERS, slice(split, None))):
            flipped = sign_flip_test(differences[:, some], level=level * share, rng=rng, sampled=sampled)
            tested.append((share, flipped, features.described[some]))
        named = tested[0][1]
        if pairs >= 2 * _FEWEST_PAIRS:
            learned = self._columns.learner(group).differences(features.scores)
            other = sign_flip_test(learned, level=level * _OF_LEARNED, rng=rng, sampled=sampled)
            name = f"the distribution of the outcome given (s, a), as learned on half of the episodes ({part})"
            tested.append((_OF_LEARNED, other, [name]))
        # Bonferroni with unequal shares.
        share, best, described = min(tested, key=lambda each: each[1].p_value / each[0])
        live = any(each.live for _, each, _ in tested)
        p_value = min(1.0, best.p_value / share)
        return _Tested(dataclasses.replace(best, p_value=p_value), described, live, named.critical)


register_method("trajectory")
