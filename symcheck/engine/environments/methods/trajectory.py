"""The trajectory method: episodes against mirrored episodes. For black boxes, which can only be reset and stepped.

Under a uniformly random policy, and if start, dynamics, reward and termination are all symmetric, an episode and the
image of another episode have one distribution. The independent unit is the episode: transitions within one are
correlated, and tests that treat them as independent accuse plain CartPole three times in four. So totals over episodes
are compared, and whole episodes are swapped.

What can be compared is what follows (s, a): reward, next observation and termination, each after one regression on
(s, a) fitted to both groups at once. Where the start distribution is not symmetric (or not claimed to be), the two
groups visit different states and a difference no longer speaks about the dynamics: the answer is undecided.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from symcheck.array_types import Floats
from symcheck.engine.budget import Handed
from symcheck.engine.clock import TimeUp
from symcheck.engine.environments.cases.regression import action_columns, fitted, polynomial, standardise, told_apart
from symcheck.engine.environments.cases.workbench import Workbench, shift_bound
from symcheck.engine.environments.methods.episode_features import (
    Transitions,
    learned_feature,
    named_features,
    repeating_columns,
    what_followed,
)
from symcheck.engine.environments.methods.start import StartEvidence
from symcheck.engine.environments.subject.placement import Word
from symcheck.engine.equations import BY_PART, STEP_PARTS, Part
from symcheck.engine.outcomes import outcomes_of
from symcheck.engine.registry import register_method
from symcheck.engine.results import Counterexample, PropertyResult
from symcheck.engine.scales import FLOAT32_EPSILON, FLOAT64_EPSILON, bulk, in_float32
from symcheck.engine.sequential import Look, Looked, looks
from symcheck.engine.statistics import NORMAL_90, SignFlipTest, normal_scores, sign_flip_test
from symcheck.engine.verdict import Facts, ReasonCode, decide
from symcheck.spaces.coordinates import finite
from symcheck.spaces.reduction import reduction
from symcheck.statements.statement import Statement, state
from symcheck.symmetry.exits import invariant_actions

_LONGEST = 100  # steps of an episode that are used: more episodes say more than longer ones
_PLAYING = 0.9  # of the time budget: starts are drawn in the rest, without which no episode is judged
_FEWEST_PAIRS = 8  # 2^-8 is the smallest p-value of so few
_WIDEST = 48  # coordinates whose next values are compared (images: of those that vary)
_MOST_COVARIATES = 200
_MOST_LEARNED = 800  # columns of the learned feature's regression
_FEWEST_LOOKED_AT = 50  # pairs of episodes; at fewer, early looks reject nothing
_LOOKS = looks(2**31)  # how many episodes there will be is not known, so that no look is left out beforehand
_EXPLAINED = 1e-5  # of a normal score: what a fit with a ridge of 1e-9 leaves of what it explains
_TIE = 64  # rounding units: outcomes that rounding moved by a few units are the same outcome
_STEPS_PER_SAMPLE = 2  # each sample is a transition on either side


@dataclass(frozen=True)
class _Groups:
    """Paired episodes under one element: `plain[i]` and `mapped[i]` may be swapped."""

    plain: list[Transitions]
    mapped: list[Transitions]


@dataclass(frozen=True)
class _Tested:
    """A test of one part under one element.

    Attributes:
        test: of the features that reject most clearly.
        described: their names.
        live: whether any swaps could have rejected.
        critical: of the named features, for what would have been found.
    """

    test: SignFlipTest
    described: list[str]
    live: bool
    critical: float


@dataclass(frozen=True)
class _Features:
    """What is compared of one part under one element.

    Attributes:
        episodes: plain ones, then mapped ones.
        starts: row at which each episode begins.
        covariates: (s, a) of every transition, shape (transitions, columns).
        scores: of what follows, shape (transitions, targets).
        named: totals over each episode, shape (episodes, features).
        described: names of these.
    """

    episodes: list[Transitions]
    starts: npt.NDArray[np.intp]
    covariates: Floats
    scores: Floats
    named: Floats
    described: list[str]


class TrajectoryEvidence:
    """Evidence from whole episodes.

    Args:
        bench: the environment (states cannot be set) and the options; the tests are announced in its budget.
        start: evidence about the start distribution, on which the equations depend here.
        needed: whether a part is to be tested; asked when the first test of the run is judged.
    """

    method = "trajectory"

    def __init__(
        self, bench: Workbench, start: StartEvidence, *, needed: Callable[[Part], bool] = lambda part: True
    ) -> None:
        self.bench = bench = bench.comparing()
        self._needed = needed
        self._view = reduction(bench.pairs.stepper.codec)
        self._start_evidence = start
        self._tests: dict[Part, dict[Word, _Tested]] = {}
        self._stopped = False
        for part in STEP_PARTS:
            bench.budget.add(part, functools.partial(self._hand_in, part), planned=len(bench.words))

    @functools.cached_property
    def _looks_so_far(self) -> Looked:
        return Looked(self.bench.level)  # known once all tests of the run are announced

    @functools.cached_property
    def _start(self) -> PropertyResult:
        return self._start_evidence.judge("initial_invariance")

    def _hand_in(self, part: Part) -> dict[Word, Handed]:
        if not self._needed(part) or self._fewest_pairs < _FEWEST_PAIRS:
            return {}
        return {word: Handed(tested.test.p_value, tested.live) for word, tested in self._test_all(part).items()}

    @property
    def _fewest_pairs(self) -> int:
        return min(len(group.plain) for group in self.groups.values())

    def _test_all(self, part: Part) -> dict[Word, _Tested]:
        groups = self.groups  # which may stop early, with the tests of its last look
        if part not in self._tests:
            self._tests[part] = {word: self._test(part, word, group, _LOOKS[-1]) for word, group in groups.items()}
        return self._tests[part]

    @functools.cached_property
    def groups(self) -> dict[Word, _Groups]:
        """Episodes of every element; each episode is used once.

        Playing stops at the look at which every part that is tested is clearly refuted; some part, to fail fast.
        """
        words = self.bench.words
        share = max(1, self.bench.options.samples * _STEPS_PER_SAMPLE // len(words))
        report = self.bench.progress("playing episodes")
        groups = {word: _Groups([], []) for word in words}
        for look in _LOOKS:
            for at, word in enumerate(words):
                self._play(word, groups[word], look.share * share)
                report(round(100 * (look.share * (at + 1))), 100 * len(words))
            if not look.last and self.bench.in_time() and self._is_refuted(groups, look):
                break
        report(1, 1)
        return groups

    def _is_refuted(self, groups: dict[Word, _Groups], look: Look) -> bool:
        """Whether an early look refutes every part that is tested, or (to fail fast) some part."""
        if min(len(group.plain) for group in groups.values()) < _FEWEST_LOOKED_AT:
            return False
        fast = self.bench.options.fail_fast
        early: dict[Part, dict[Word, _Tested]] = {}
        refuted = False
        for part in filter(self._needed, STEP_PARTS):
            early[part] = {word: self._test(part, word, group, look) for word, group in groups.items()}
            this = any(self._looks_so_far.rejects((part, word)) for word in groups)
            # One part that is not refuted needs all episodes, which the others then get too.
            if not (this or fast):
                return False
            refuted = refuted or this
        if not refuted:
            return False
        self._tests, self._stopped = early, True
        return True

    def _play(self, word: Word, groups: _Groups, steps: float) -> None:
        """Play on until so many steps were taken."""
        plain, mapped = groups.plain, groups.mapped
        taken = sum(len(episode.rewards) for episode in (*plain, *mapped))
        while (taken < steps or len(mapped) < _FEWEST_PAIRS) and self.bench.in_time(_PLAYING):
            try:
                plain_episode, image_episode = self._episode(None), self._episode(word)
            except TimeUp:
                return  # whole pairs of episodes alone are compared
            # Plain and mapped episodes take turns, so that whatever drifts with time drifts on both sides.
            plain.append(plain_episode)
            mapped.append(image_episode)
            taken += len(plain_episode.rewards) + len(image_episode.rewards)

    def _episode(self, word: Word | None) -> Transitions:
        stepper, bound = self.bench.pairs.stepper, self.bench.pairs.bound
        with invariant_actions(stepper.env, bound.source):
            played = stepper.play(_LONGEST)
        word = None if word is None else tuple(bound.drawn(word))  # one Haar element an episode
        observations, actions = played.seen, played.actions
        # Actions first: a state-dependent map needs the observation before it is mapped.
        if word is not None:
            actions = [bound.action(word, action, obs) for action, obs in zip(actions, observations[:-1], strict=True)]
            observations = [bound.observation(word, obs) for obs in observations]
        whole = stepper.codec.flatten_batch(observations)
        flat = self._view.apply(whole)
        rewards = np.array([step.reward for step in played.steps])
        ended = np.array([float(step.terminated) for step in played.steps])
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
                    longest=_LONGEST,
                ),
            ),
        )
        facts = self._facts(part, episodes)
        if facts.checked >= _FEWEST_PAIRS:
            result, facts = self._evaluate(result, part, facts)
        verdict, reason = decide(facts)
        if verdict == "undecided":
            result = dataclasses.replace(result, bound=None)  # what was not decided excludes nothing
        return dataclasses.replace(result, verdict=verdict, reason=reason, facts=facts)

    def _facts(self, part: Part, episodes: list[Transitions]) -> Facts:
        """What was compared, without the outcome of the test."""
        outcomes = outcomes_of(what_followed(part, episodes))
        # Reduced observations hold numbers only: whether there were any is asked of whole ones.
        hidden = part == "transition" and not any(episode.shows_numbers for episode in episodes)
        return Facts(
            checked=self._fewest_pairs,
            least=_FEWEST_PAIRS,
            quantity=BY_PART[part].noun,
            finite=outcomes.finite and not hidden,
            stuck=outcomes.stuck or "NaN",
            moved=self.bench.moved,
            constant=outcomes.constant,
            interrupted=self.bench.interrupted,
            stopped=self._stopped,
            time_up=not self.bench.in_time(_PLAYING),
        )

    def _evaluate(self, result: PropertyResult, part: Part, facts: Facts) -> tuple[PropertyResult, Facts]:
        """The result and the facts with what the test says."""
        tests = self._test_all(part)
        # The element that speaks loudest: Holm has corrected for looking at all of them.
        word = min(tests, key=lambda one: tests[one].test.p_value)
        test = tests[word].test
        level = self.bench.judged_at(part, word, test.p_value)
        stopped = (state("playing_stopped"),) if self._stopped else ()
        result = dataclasses.replace(
            result, p_value=test.p_value, notes=(*result.notes, state("tested_at_level", level=level), *stopped)
        )
        if test.p_value <= level:
            facts = dataclasses.replace(facts, violations=1, unattributed=self._blame_start())
            return (result if facts.unattributed else self._describe_rejection(result, part, tests[word], word)), facts
        if self._stopped:
            return result, facts
        bound = self._missable_shift([tested.critical for tested in tests.values()], result.checked)
        return dataclasses.replace(result, bound=bound, notes=(*result.notes, self._weakness())), facts

    def _missable_shift(self, criticals: list[float], episodes: int) -> dict[str, object]:
        # The weakest test bounds what all of them together would have missed.
        critical = max((each for each in criticals if np.isfinite(each)), default=-NORMAL_90)
        return shift_bound(
            float((critical + NORMAL_90) * np.sqrt(2 / self._fewest_pairs)),
            episodes,
            self.bench.options.alpha,
            unit="standard deviations of an episode's total",
            region=state("region_episodes", episodes=episodes),
        )

    def _weakness(self) -> Statement:
        return state("larger_effects_only", why=self._why_episodes())

    def _why_episodes(self) -> str:
        """Why whole episodes are compared, as a field of statements: what is missing, or that they were asked for."""
        pairs = self.bench.pairs
        if pairs.stepper.access is None:
            return "no_access"
        if pairs.placement.kind is None:
            return "no_state_map"
        return "asked" if self.bench.options.method == "trajectory" else "lossy"

    def _blame_start(self) -> Statement | None:
        """Why a rejection may not be blamed on the dynamics: the two groups may have started differently."""
        claimed = self.bench.pairs.bound.symmetry.initial
        if not claimed or self._start.verdict != "passed":
            return state(ReasonCode.START_ASYMMETRIC.value, start=self._start.verdict if claimed else "unclaimed")
        return state(ReasonCode.START_FOLLOWS_PAST.value) if self._start_evidence.surviving.any() else None

    def _describe_rejection(self, result: PropertyResult, part: Part, tested: _Tested, word: Word) -> PropertyResult:
        test, described = tested.test, tested.described
        best = int(np.argmax(test.statistics))
        label = self.bench.pairs.bound.label(word)
        others = [described[i] for i in np.argsort(-test.statistics)[1:4] if test.statistics[i] > test.critical]
        causes = [state("SYM050", part=part, feature=described[best], element=label, others=others)]
        # A broken transition sends the two groups to different states, where honest rewards and ends differ too.
        if part != "transition" and any(self._looks_so_far.rejects(("transition", group)) for group in self.groups):
            causes.append(state("SYM056"))
        causes.append(state("SYM057", why=self._why_episodes()))
        size = float(test.statistics[best])
        return dataclasses.replace(
            result,
            violations=1,
            max_residual=size,
            unit="standardised difference of episode totals",
            counterexample=Counterexample(label, None, None, None, 0.0, size, size, described[best]),
            causes=tuple(causes),
            notes=(
                state("episodes_differ", feature=described[best], element=label, p_value=test.p_value),
                *result.notes,
            ),
        )

    def _test(self, part: Part, word: Word, group: _Groups, look: Look) -> _Tested:
        """One look: named features on all pairs, and one learned feature on the second half, at half the level each.

        The p-value is that of all looks so far. Early looks draw no swaps.
        """
        features = self._features(part, group)
        pairs, sampled = len(group.plain), look.last
        level, rng = self.bench.level * look.weight / 2, self.bench.rng(f"flips {part}")
        differences = features.named[:pairs] - features.named[pairs:]
        named = sign_flip_test(differences, level=level, rng=rng, sampled=sampled)
        # Half the level for each of two features: whichever is smaller counts twice.
        best, described, live = named, features.described, named.live
        # Half of the pairs teach: the other half has to be enough by itself.
        if pairs >= 2 * _FEWEST_PAIRS:
            design = self._design(features.episodes, features.covariates)
            learned = learned_feature(features.scores, design, features.starts, pairs)
            other = sign_flip_test(learned, level=level, rng=rng, sampled=sampled)
            live = live or other.live
            if other.p_value < named.p_value and other.live:
                best = other
                described = [f"the distribution of what follows (s, a), as learned on half of the episodes ({part})"]
        p_value = self._looks_so_far.add((part, word), min(1.0, 2 * best.p_value), look)
        return _Tested(dataclasses.replace(best, p_value=p_value), described, live, named.critical)

    def _features(self, part: Part, group: _Groups) -> _Features:
        episodes = [*group.plain, *group.mapped]
        starts = np.cumsum([0, *(len(episode.rewards) for episode in episodes[:-1])])
        covariates, names = self._covariates(episodes)
        scores, target_names = self._scores(part, episodes, covariates)
        named, described = named_features(scores, target_names, covariates, names, starts)
        return _Features(episodes, starts, covariates, scores, named, described)

    def _scores(self, part: Part, episodes: list[Transitions], covariates: Floats) -> tuple[Floats, list[str]]:
        """Normal scores of what (s, a) does not explain, shape (transitions, targets), with names.

        Values that often repeat (an end, a whole number) are scored first and fitted then: their residuals would be
        ranked by nothing but the fit, which differs wherever the two groups visit different states.
        """
        targets, names, epsilon = self._targets(part, episodes)
        design = polynomial(covariates)
        # NaN, infinities and what is far off keep their place in the ranking: no fit explains them.
        epsilon = np.maximum(epsilon, FLOAT64_EPSILON)
        known = bulk(targets, epsilon)
        # 1e-9 of the values' scale: rounding of the fit is no difference. Nor are a few units of the dtype: the image
        # of a value that repeats is another float of the same value.
        tie = known.tie(epsilon, _TIE) + 1e-9 * np.maximum(np.abs(known.filled).max(axis=0), 1e-3)
        residual = known.without(fitted(design, known.filled))
        repeating = repeating_columns(targets)
        scores = normal_scores(np.where(repeating, targets, residual), tie)
        # A fit of the scores, not of the values: the ranks of ties would follow the fit.
        explained = fitted(design, scores[:, repeating])
        rest = scores[:, repeating] - explained
        scores[:, repeating] = np.where(np.abs(rest) > _EXPLAINED, rest, 0.0)
        return scores, names

    def _design(self, episodes: list[Transitions], covariates: Floats) -> Floats:
        """Covariates and their products with the actions: what follows depends on both together."""
        actions, _ = action_columns(self.bench, [a for episode in episodes for a in episode.actions])
        actions = standardise(actions)
        # Columns left out evenly keep the fit affordable; what is left out cannot be found.
        stride = max(1, -(-covariates.shape[1] * (1 + actions.shape[1]) // _MOST_LEARNED))
        kept = covariates[:, ::stride]
        products = [kept * actions[:, [j]] for j in range(actions.shape[1])]
        return np.concatenate([np.ones((len(kept), 1)), kept, actions, *products], axis=1)

    def _covariates(self, episodes: list[Transitions]) -> tuple[Floats, list[str]]:
        states = np.concatenate([episode.obs for episode in episodes])
        actions, action_names = action_columns(self.bench, [a for episode in episodes for a in episode.actions])
        coordinates, (states,) = self._view.coordinates.unrolled([states])
        states, state_names = told_apart(states, list(coordinates.names), coordinates.epsilon == 0)
        names = [*state_names, *action_names]
        columns = standardise(np.concatenate([states, actions], axis=1))
        # A column that never varies explains nothing, and would make the fit singular.
        varying = [j for j in range(columns.shape[1]) if columns[:, j].any()]
        kept = varying[:: max(1, -(-len(varying) // _MOST_COVARIATES))]
        return columns[:, kept], [names[j] for j in kept]

    def _targets(self, part: Part, episodes: list[Transitions]) -> tuple[Floats, list[str], Floats]:
        """What follows (s, a), its names, and the rounding unit of each column."""
        outcomes = what_followed(part, episodes)
        if part == "reward":
            return outcomes, [part], np.full(1, FLOAT32_EPSILON if in_float32(outcomes) else 0.0)
        if part == "termination":
            return outcomes, [part], np.zeros(1)
        coordinates, (following,) = self._view.coordinates.unrolled([outcomes])
        following, columns = told_apart(following, list(coordinates.names), coordinates.epsilon == 0)
        names = [f"next {name}" for name in columns]
        varying = [j for j in range(following.shape[1]) if np.ptp(finite(following[:, j])) > 0] or [0]
        kept = varying[:: max(1, -(-len(varying) // _WIDEST))]
        epsilon = np.concatenate(
            [coordinates.epsilon, np.zeros(len(columns) - coordinates.dim)]
        )  # indicators are whole
        return following[:, kept], [names[j] for j in kept], epsilon[kept]


register_method("trajectory")
