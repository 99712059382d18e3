"""The trajectory method: episodes against mirrored episodes. For black boxes, which can only be reset and stepped.

Under a uniformly random policy, and if start, dynamics, reward and termination are all symmetric, an episode and the
image of another episode have one law. The independent unit is the episode: transitions within one are correlated, and
tests that treat them as independent accuse plain CartPole three times in four. So totals over episodes are compared,
and whole episodes are swapped.

What can be compared is what follows (s, a): reward, next observation and termination, each after one regression on
(s, a) fitted to both groups at once. Where the start distribution is not symmetric (or not claimed to be), the two
groups visit different states and a difference no longer speaks about the dynamics: the answer is undecided.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from symcheck.engine.environments.budget import Handed
from symcheck.engine.environments.coordinates import Vector, finite
from symcheck.engine.environments.evidence import EQUATIONS, STOPPED, UNITS, Workbench, shift_bound
from symcheck.engine.environments.pairs import FLOAT32_EPSILON, Part, in_float32
from symcheck.engine.environments.placement import Word
from symcheck.engine.environments.reduction import reduction
from symcheck.engine.environments.regression import action_columns, fitted, polynomial, standardised, told_apart
from symcheck.engine.environments.start import SURVIVES, StartEvidence
from symcheck.engine.results import Counterexample, PropertyResult
from symcheck.engine.sequential import Look, Looked, looks
from symcheck.engine.statistics import NORMAL_90, SignFlipTest, normal_scores, sign_flip_test

_LONGEST = 100  # steps of an episode that are used: more episodes say more than longer ones
_FEWEST_PAIRS = 8  # 2^-8 is the smallest p-value of so few
_WIDEST = 48  # coordinates whose next values are compared (images: of those that vary)
_MOST_COVARIATES = 200
_MOST_FEATURES = 2000  # (coordinate, covariate) pairs
_MOST_LEARNED = 800  # columns of the learned feature's regression
_LEARNED_RIDGE = 0.1  # of the mean squared column: weights of rare (s, a) stay near zero
_FEWEST_LOOKED_AT = 50  # pairs of episodes; at fewer, early looks reject nothing
_LOOKS = looks(2**31)  # how many episodes there will be is not known, so that no look is left out beforehand
_OFTEN = 0.05  # share of the transitions in which a value that repeats occurs
_EXPLAINED = 1e-5  # of a normal score: what a fit with a ridge of 1e-9 leaves of what it explains
_TIE = 64  # rounding units: outcomes that rounding moved by a few units are the same outcome
_STEPS_PER_SAMPLE = 2  # each sample is a transition on either side


@dataclass(frozen=True)
class Transitions:
    """One episode's transitions, mapped or not.

    Attributes:
        obs: observations before each step, shape (t, dim).
        actions: actions, a list of t.
        rewards: shape (t,).
        following: observations after each step, shape (t, dim).
        ended: shape (t,), bool as float.
    """

    obs: Vector
    actions: list[Any]
    rewards: Vector
    following: Vector
    ended: Vector


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
    covariates: Vector
    scores: Vector
    named: Vector
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
        self.bench = bench
        self._needed = needed
        self._view = reduction(bench.pairs.stepper.codec)
        self._start_evidence = start
        self._tests: dict[Part, dict[Word, _Tested]] = {}
        self._stopped = False
        for part in EQUATIONS:
            bench.budget.add(part, functools.partial(self._handed, part), planned=len(bench.words))

    @functools.cached_property
    def _looked(self) -> Looked:
        return Looked(self.bench.level)  # known once all tests of the run are announced

    @functools.cached_property
    def _start(self) -> PropertyResult:
        return self._start_evidence.judge("initial_invariance")

    def _handed(self, part: Part) -> dict[Word, Handed]:
        if not self._needed(part) or self._fewest < _FEWEST_PAIRS:
            return {}
        return {word: Handed(one.test.p_value, one.live) for word, one in self._tested(part).items()}

    @property
    def _fewest(self) -> int:
        return min(len(group.plain) for group in self.groups.values())

    def _tested(self, part: Part) -> dict[Word, _Tested]:
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
        found = {word: _Groups([], []) for word in words}
        for look in _LOOKS:
            for at, word in enumerate(words):
                self._play(word, found[word], look.share * share)
                report(round(100 * (look.share * (at + 1))), 100 * len(words))
            if not look.last and self.bench.in_time() and self._clear(found, look):
                break
        report(1, 1)
        return found

    def _clear(self, found: dict[Word, _Groups], look: Look) -> bool:
        """Whether an early look refutes every part that is tested, or (to fail fast) some part."""
        if min(len(group.plain) for group in found.values()) < _FEWEST_LOOKED_AT:
            return False
        fast = self.bench.options.fail_fast
        early: dict[Part, dict[Word, _Tested]] = {}
        refuted = False
        for part in filter(self._needed, EQUATIONS):
            early[part] = {word: self._test(part, word, group, look) for word, group in found.items()}
            this = any(self._looked.refuted((part, word)) for word in found)
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
        while (taken < steps or len(mapped) < _FEWEST_PAIRS) and self.bench.in_time():
            one, two = self._episode(None), self._episode(word)
            plain.append(one)
            mapped.append(two)
            taken += len(one.rewards) + len(two.rewards)

    def _episode(self, word: Word | None) -> Transitions:
        stepper, bound = self.bench.pairs.stepper, self.bench.pairs.bound
        played = stepper.play(_LONGEST)
        seen, actions = played.seen, played.actions
        if word is not None:
            actions = [bound.action(word, action, obs) for action, obs in zip(actions, seen[:-1], strict=True)]
            seen = [bound.observation(word, obs) for obs in seen]
        flat = self._view.apply(stepper.codec.flatten_batch(seen))
        rewards = np.array([step.reward for step in played.steps])
        ended = np.array([float(step.terminated) for step in played.steps])
        return Transitions(flat[:-1], actions, rewards, flat[1:], ended)

    def judge(self, name: str, part: Part) -> PropertyResult:
        """The verdict on one property; see `Evidence`."""
        groups = self.groups
        episodes = sum(2 * len(group.plain) for group in groups.values())
        steps = sum(len(e.rewards) for group in groups.values() for e in [*group.plain, *group.mapped])
        result = PropertyResult(
            name,
            "passed",
            self.method,
            checked=episodes,
            unit=UNITS[part],
            detail=(
                f"{episodes:,} episodes ({steps:,} transitions, at most {_LONGEST} an episode) of the uniform policy, "
                "half of them mapped; whole episodes are swapped"
            ),
        )
        fewest = self._fewest
        if fewest < _FEWEST_PAIRS:
            return _undecided(result, f"only {fewest} pairs of episodes fit into the time; at least {_FEWEST_PAIRS}")
        tests = self._tested(part)
        word = min(tests, key=lambda one: tests[one].test.p_value)
        test, described = tests[word].test, tests[word].described
        level = self.bench.judged_at(part, word, test.p_value)
        result = dataclasses.replace(result, p_value=test.p_value, detail=f"{result.detail}, at level {level:.2g}.")
        if self._stopped:
            said = "Playing stopped before all episodes were there, as the answer was clear."
            result = dataclasses.replace(result, detail=f"{result.detail} {said}")
        if test.p_value <= level:
            return self._rejected(result, part, test, described, word)
        if self._stopped:
            return _undecided(result, STOPPED)
        return dataclasses.replace(
            result, bound=self._bound([one.critical for one in tests.values()], fewest, episodes)
        )

    def _bound(self, criticals: list[float], fewest: int, episodes: int) -> dict[str, object]:
        critical = max((one for one in criticals if np.isfinite(one)), default=-NORMAL_90)
        return shift_bound(
            float((critical + NORMAL_90) * np.sqrt(2 / fewest)),
            episodes,
            self.bench.options.alpha,
            unit="standard deviations of an episode's total",
            region=f"{episodes:,} episodes of the uniform policy: "
            + self._why_episodes("larger effects only are seen", "to see smaller ones"),
        )

    def _why_episodes(self, so: str, remedy: str) -> str:
        """Why whole episodes are compared, what that means, and what would change it."""
        pairs = self.bench.pairs
        if pairs.stepper.access is None:
            return f"states cannot be set here, so {so}: register state access {remedy}"
        if pairs.placement.kind is None:
            return f"the symmetry does not say how states transform, so {so}: give it state= {remedy}"
        if self.bench.options.method == "trajectory":
            return f"whole episodes were asked for, so {so}: leave --method out {remedy}"
        return f"setting a state loses some of it, so {so}: restore all of it {remedy}"

    def _rejected(
        self, result: PropertyResult, part: Part, test: SignFlipTest, described: list[str], word: Word
    ) -> PropertyResult:
        claimed = self.bench.pairs.bound.symmetry.initial
        if not claimed or self._start.verdict != "passed":
            unsure = "is not symmetric" if self._start.verdict == "failed" else "may not be symmetric"
            reason = unsure if claimed else "is not claimed to be symmetric"
            return _undecided(
                result,
                f"the start distribution {reason}, so that episodes and mapped episodes visit different states and a "
                "black-box test cannot tell that from asymmetric dynamics; register state access to decide",
            )
        if self._start_evidence.surviving.any():
            return _undecided(result, SURVIVES)
        best = int(np.argmax(test.statistics))
        label = self.bench.pairs.bound.label(word)
        text = f"{described[best]} differs between episodes and their images under {label}"
        others = [described[i] for i in np.argsort(-test.statistics)[1:4] if test.statistics[i] > test.critical]
        causes = [f"{part}: {text}", *(f"so does {other}" for other in others)]
        if part != "transition" and any(self._looked.refuted(("transition", one)) for one in self.groups):
            causes.append(
                "the law of next states is broken too, so that episodes and their images visit different states: "
                "this may follow from it alone"
            )
        causes.append(self._why_episodes("no single counterexample is shown", "to get one"))
        example = Counterexample(
            label, None, None, None, 0.0, float(test.statistics[best]), float(test.statistics[best]), described[best]
        )
        return dataclasses.replace(
            result,
            verdict="failed",
            violations=1,
            max_residual=float(test.statistics[best]),
            unit="standardised difference of episode totals",
            counterexample=example,
            causes=tuple(causes),
            detail=f"{text} (p = {test.p_value:.2g}). {result.detail}",
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
        best, described, live = named, features.described, named.live
        if pairs >= 2 * _FEWEST_PAIRS:
            design = self._design(features.episodes, features.covariates)
            learned = _learned_feature(features.scores, design, features.starts, pairs)
            other = sign_flip_test(learned, level=level, rng=rng, sampled=sampled)
            live = live or other.live
            if other.p_value < named.p_value and other.live:
                best = other
                described = [f"the law of what follows (s, a), as learned on half of the episodes ({part})"]
        p_value = self._looked.add((part, word), min(1.0, 2 * best.p_value), look)
        return _Tested(dataclasses.replace(best, p_value=p_value), described, live, named.critical)

    def _features(self, part: Part, group: _Groups) -> _Features:
        episodes = [*group.plain, *group.mapped]
        starts = np.cumsum([0, *(len(episode.rewards) for episode in episodes[:-1])])
        covariates, names = self._covariates(episodes)
        scores, target_names = self._scores(part, episodes, covariates)
        named, described = _named_features(scores, target_names, covariates, names, starts)
        return _Features(episodes, starts, covariates, scores, named, described)

    def _scores(self, part: Part, episodes: list[Transitions], covariates: Vector) -> tuple[Vector, list[str]]:
        """Normal scores of what (s, a) does not explain, shape (transitions, targets), with names.

        Values that often repeat (an end, a whole number) are scored first and fitted then: their residuals would be
        ranked by nothing but the fit, which differs wherever the two groups visit different states.
        """
        targets, names, epsilon = self._targets(part, episodes)
        design = polynomial(covariates)
        # 1e-9 of the values' scale: rounding of the fit is no difference. Nor are a few units of the dtype: the image
        # of a value that repeats is another float of the same value.
        tie = np.maximum(1e-9, _TIE * epsilon) * np.maximum(np.abs(finite(targets)).max(axis=0), 1e-3)
        residual = np.where(np.isfinite(targets), targets - fitted(design, targets), targets)
        repeating = _repeating(targets)
        scores = normal_scores(np.where(repeating, targets, residual), tie)
        explained = fitted(design, scores[:, repeating])
        rest = scores[:, repeating] - explained
        scores[:, repeating] = np.where(np.abs(rest) > _EXPLAINED, rest, 0.0)
        return scores, names

    def _design(self, episodes: list[Transitions], covariates: Vector) -> Vector:
        """Covariates and their products with the actions: what follows depends on both together."""
        actions, _ = action_columns(self.bench, [a for episode in episodes for a in episode.actions])
        actions = standardised(actions)
        stride = max(1, -(-covariates.shape[1] * (1 + actions.shape[1]) // _MOST_LEARNED))
        kept = covariates[:, ::stride]
        products = [kept * actions[:, [j]] for j in range(actions.shape[1])]
        return np.concatenate([np.ones((len(kept), 1)), kept, actions, *products], axis=1)

    def _covariates(self, episodes: list[Transitions]) -> tuple[Vector, list[str]]:
        states = np.concatenate([episode.obs for episode in episodes])
        actions, action_names = action_columns(self.bench, [a for episode in episodes for a in episode.actions])
        coordinates, (states,) = self._view.coordinates.unrolled([states])
        states, state_names = told_apart(states, list(coordinates.names), coordinates.epsilon == 0)
        names = [*state_names, *action_names]
        columns = standardised(np.concatenate([states, actions], axis=1))
        varying = [j for j in range(columns.shape[1]) if columns[:, j].any()]
        kept = varying[:: max(1, -(-len(varying) // _MOST_COVARIATES))]
        return columns[:, kept], [names[j] for j in kept]

    def _targets(self, part: Part, episodes: list[Transitions]) -> tuple[Vector, list[str], Vector]:
        """What follows (s, a), its names, and the rounding unit of each column."""
        if part == "reward":
            rewards = np.concatenate([episode.rewards for episode in episodes])
            return rewards[:, None], ["reward"], np.full(1, FLOAT32_EPSILON if in_float32(rewards) else 0.0)
        if part == "termination":
            return np.concatenate([episode.ended for episode in episodes])[:, None], ["termination"], np.zeros(1)
        following = np.concatenate([episode.following for episode in episodes])
        coordinates, (following,) = self._view.coordinates.unrolled([following])
        following, told = told_apart(following, list(coordinates.names), coordinates.epsilon == 0)
        names = [f"next {name}" for name in told]
        varying = [j for j in range(following.shape[1]) if np.ptp(finite(following[:, j])) > 0] or [0]
        kept = varying[:: max(1, -(-len(varying) // _WIDEST))]
        epsilon = np.concatenate([coordinates.epsilon, np.zeros(len(told) - coordinates.dim)])  # indicators are whole
        return following[:, kept], [names[j] for j in kept], epsilon[kept]


def _repeating(targets: Vector) -> npt.NDArray[np.bool_]:
    """Which columns hold one value so often that its rank among the others says little, shape (targets,)."""
    often = [np.unique(column, return_counts=True)[1].max() for column in targets.T]
    return np.asarray(often) > _OFTEN * len(targets)


def _named_features(
    scores: Vector, target_names: list[str], covariates: Vector, names: list[str], starts: npt.NDArray[np.intp]
) -> tuple[Vector, list[str]]:
    """Totals over each episode of means and spreads, also where each covariate is high, with names."""
    described = [f"mean of {n}" for n in target_names] + [f"spread of {n}" for n in target_names]
    blocks = [_totals(scores, starts), _totals((scores**2 - 1) / np.sqrt(2), starts)]
    for j in range(0, len(names), max(1, -(-len(names) * len(target_names) // _MOST_FEATURES))):
        side = (covariates[:, [j]] > 0).astype(np.float64)
        blocks.append(_totals(scores * (side - side.mean()), starts))
        described += [f"mean of {n} where {names[j]} is high, against elsewhere" for n in target_names]
    return np.concatenate(blocks, axis=1), described


def _learned_feature(scores: Vector, design: Vector, starts: npt.NDArray[np.intp], pairs: int) -> Vector:
    """Differences of one feature on the second half of the pairs, whose weights the first half taught; shape (n, 1).

    Which way the two groups differ given (s, a) is regressed on the first half and looked for in the second. The
    second half's swaps know nothing of the first, so that the test keeps its level whatever was learned.
    """
    lengths = np.diff([*starts, len(scores)])
    episode = np.repeat(np.arange(2 * pairs), lengths)
    half = pairs // 2
    teaching = (episode % pairs) < half
    sign = np.where(episode < pairs, -1.0, 1.0)[:, None]
    gram = design[teaching].T @ design[teaching]
    ridge = _LEARNED_RIDGE * float(np.trace(gram)) / len(gram) * np.eye(len(gram))
    weights = np.linalg.solve(gram + ridge, design[teaching].T @ (sign * scores)[teaching])
    totals = _totals((scores * (design @ weights)).sum(axis=1, keepdims=True), starts)
    return totals[half:pairs] - totals[pairs + half :]


def _totals(features: Vector, starts: npt.NDArray[np.intp]) -> Vector:
    """Sums over each episode, shape (episodes, features)."""
    return np.asarray(np.add.reduceat(features, starts, axis=0))


def _undecided(result: PropertyResult, why: str) -> PropertyResult:
    return dataclasses.replace(result, verdict="undecided", detail=f"Undecided: {why}. {result.detail}")
