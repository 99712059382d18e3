"""Episodes compared with their own images, by models that are fitted to half of the episodes.

Under uniform actions, if (L, K) is a symmetry, an episode has the same distribution as its images under the powers of
(L, K). Therefore, given the orbit of an episode, each member is equally likely to be the played one. The score of the
played episodes is compared with that of randomly chosen members, which is an exact test for any score and any number of
episodes. The score measures how well a model of rewards, terminations and steps, fitted to other episodes, predicts
this one. Because each episode is compared with its own images, differences between episodes have no effect: a dozen
rare rewards are enough to show that a reward links two parts of an observation.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from symcheck.array_types import Bools, Floats
from symcheck.discovery.laboratory import Laboratory
from symcheck.discovery.maps import SignedMap
from symcheck.discovery.rollouts import SKEWED, Rollouts, action_features

_STEPS, _MOST_STEPS = 8_000, 60_000
_MOST_NUMBERS = 8_000_000  # of all observations together: 64 MB
_LENGTHS = (25, 100)  # of episodes in turn: many starts, and what happens late
_LOOKED_AT = 32  # episodes after which telling ones are counted again
_TELLING = 240  # episodes with a rare reward: half of them teach
FEWEST_TELLING = 32
"""With fewer episodes that have a rare reward, nothing is concluded: n in half of them give no p-value below 2^-n."""
_GATHERING = 0.25  # of the time budget
_PATIENCE = 15.0  # seconds of computing, after which no more is played where rewards are rare
_USUAL = 0.8  # of the steps: a value this frequent makes all others rare
_FEWEST_ASKED = 8
_TAUGHT, _ASKED, _ASKED_AGAIN = 800, 3_000, 800  # steps a model is fitted to, and steps that it foretells
_RIDGES, _WIDTHS = (1e-4, 1e-2, 1.0), (0.5, 0.1, 0.02)  # of bumps, in squares of a typical distance
_LOOKED_THROUGH = 6_000  # usual steps, for those that look like others
_CHOOSING = 200  # steps on which both are chosen
_FARTHEST = 9.0  # squared errors in units of the model's own, so that one wild step does not outweigh all others
_WILDEST = 3.0  # errors themselves, likewise
_MOST_SIDES = 24  # features whose sides are told apart, and outputs whose errors are


@dataclass(frozen=True)
class Played:
    """Episodes as arrays.

    Attributes:
        rollouts: the steps, with the observations to which the search applies maps: images are reduced in size.
        telling: the number of episodes with a rare reward or termination; None if neither is rare.
    """

    rollouts: Rollouts
    telling: int | None


def play_episodes(lab: Laboratory, shrink: Callable[[Floats], Floats]) -> Played | None:
    """Play uniform-policy episodes, more where rewards are rare.

    Args:
        lab: an environment whose states cannot be set.
        shrink: reduces the size of flattened observations, shape (n, numbers).

    Returns:
        Finite steps of the episodes; None if there are too few.
    """
    rows: list[tuple[Floats, Floats, Floats]] = []
    rewards: list[float] = []
    ended: list[bool] = []
    episode: list[int] = []
    count, most, began = 0, _MOST_STEPS, time.process_time()
    while len(rewards) < most and lab.in_time(_GATHERING):
        # Looked at now and then: counting takes as long as a few episodes.
        if len(rewards) >= _STEPS and count % _LOOKED_AT == 0:
            fewest = _fewest_telling(np.array(rewards), np.array(ended), np.array(episode))
            if fewest >= _TELLING or time.process_time() - began > _PATIENCE:
                break
        played = lab.stepper.play(_LENGTHS[count % 2], lambda: lab.in_time(_GATHERING))
        flat = shrink(lab.stepper.codec.flatten_batch(played.seen))
        most = min(most, max(_STEPS, _MOST_NUMBERS // max(1, flat.shape[1])))
        if played.steps and np.isfinite(flat).all():
            rows.append((flat[:-1], flat[1:], action_features(lab, played.actions)))
            rewards += [float(step.reward) for step in played.steps]
            ended += [bool(step.terminated) for step in played.steps]
            episode += [count] * len(played.steps)
        count += 1
    if len(set(episode)) < 2 * FEWEST_TELLING:
        return None
    before, after, actions = (np.concatenate(part) for part in zip(*rows, strict=True))
    paid, numbers = np.array(rewards), np.array(episode)
    told = Rollouts(before, after, actions, paid, np.array(ended), numbers)
    fewest = _fewest_telling(paid, told.ended, numbers)
    return Played(told, None if np.isinf(fewest) else int(fewest))


def _is_usual(values: Floats) -> Bools | None:
    """Which values are the frequent one; None where no single value is frequent, or all are the same."""
    different, counts = np.unique(values, return_counts=True)
    if len(different) < 2 or counts.max() < _USUAL * len(values):
        return None
    return np.asarray(values == different[np.argmax(counts)])


def _fewest_telling(rewards: Floats, ended: Bools, episode: npt.NDArray[np.int64]) -> float:
    """Episodes with a rare reward, or with a rare termination where these are fewer; infinite where neither is rare."""
    usual = [each for each in map(_is_usual, (rewards, ended.astype(np.float64))) if each is not None]
    return min((len(np.unique(episode[~each])) for each in usual), default=np.inf)


@dataclass(frozen=True)
class _Question:
    """One thing that is foretold.

    Attributes:
        name: in words.
        taught, asked: numbers of the steps that teach, and of those that are foretold.
        targets: what is foretold, shape (steps of the rollouts, 1); None for the step itself, which moves too.
        is_rare: whether the target marks the rare steps among others: then the foretold steps are all rare.
        sees_next: whether the next observation is among what it is foretold from.
    """

    name: str
    taught: npt.NDArray[np.int64]
    asked: npt.NDArray[np.int64]
    targets: Floats | None
    is_rare: bool = False
    sees_next: bool = True


class EpisodeOrbits:
    """Models fitted to half of the episodes; the other half tests maps with them.

    Args:
        rollouts: the episodes.
        rng: draws steps and members of orbits.
        with_steps: whether next observations are predicted too.
    """

    def __init__(self, rollouts: Rollouts, rng: np.random.Generator, *, with_steps: bool) -> None:
        self._rollouts, self._rng, self._with_steps = rollouts, rng, with_steps
        numbers = np.unique(rollouts.episode, return_inverse=True)[1]
        # Lengths take turns of two: halves are pairs of episodes.
        self._teaches = numbers // 2 % 2 == 0
        self._models: dict[tuple[str, bool], _Model] = {}
        self._middles: dict[tuple[str, int], Floats] = {}

    @cached_property
    def _questions(self) -> list[_Question]:
        rollouts = self._rollouts
        made = list(self._ask_about("reward", rollouts.rewards))
        made += self._ask_about("termination", rollouts.ended.astype(np.float64))
        if self._with_steps:
            everywhere = np.ones(len(rollouts.rewards), dtype=bool)
            made.append(self._question("next observation", everywhere, None, sees_next=False))
        return made

    def _ask_about(self, name: str, values: Floats) -> Iterator[_Question]:
        """How high a value is; where one value is frequent, which steps have another one, and which."""
        usual = _is_usual(values)
        if usual is None:
            if len(np.unique(values)) > 1:
                yield self._question(name, np.ones(len(values), dtype=bool), values[:, None])
            return
        others = self._question(f"where the {name} is not the usual one", ~usual, np.where(usual, -1.0, 1.0)[:, None])
        common = self._draw(usual & self._teaches, _TAUGHT)
        # Also usual steps that look most like others: they tell where the one ends and the other begins.
        if len(others.taught):
            common = np.concatenate([common, self._look_alike(others.taught, common, usual & self._teaches)])
        taught = self._rng.permutation(np.concatenate([others.taught, common]))
        yield _Question(others.name, taught, others.asked, others.targets, True)
        if len(np.unique(values[~usual])) > 1:
            yield self._question(name, ~usual, values[:, None])

    def _look_alike(
        self, others: npt.NDArray[np.int64], common: npt.NDArray[np.int64], which: Bools
    ) -> npt.NDArray[np.int64]:
        """Usual steps that a first model takes for others."""
        first = self._rng.permutation(np.concatenate([others, common[: _CHOOSING + len(others)]]))
        targets = np.where(np.isin(first, others), 1.0, -1.0)[:, None]
        ends = self._rollouts.after
        model = _Model(ends[first], targets, [np.ones(ends.shape[1], dtype=bool)])
        rows = self._draw(which, _LOOKED_THROUGH)
        errors = model.errors(ends[rows], np.full((len(rows), 1), -1.0))[:, 0]
        return np.asarray(rows[np.argsort(errors)[: len(first) // 2]])

    def _question(self, name: str, which: Bools, targets: Floats | None, *, sees_next: bool = True) -> _Question:
        taught, asked = self._draw(which & self._teaches, _TAUGHT), self._draw(which & ~self._teaches, _ASKED)
        return _Question(name, taught, asked, targets, sees_next=sees_next)

    def _draw(self, which: Bools, most: int) -> npt.NDArray[np.int64]:
        rows = np.flatnonzero(which)
        return np.asarray(self._rng.permutation(rows)[:most])  # the first of them are any of them

    def refute(self, move: Callable[[Floats], Floats], order: int, action_map: SignedMap | None, level: float) -> str:
        """The quantity that the fitted model predicts better for episodes than for their images; "" if there is none.

        Args:
            move: the map of observations, on stacked rows.
            order: the order of the map together with its action map.
            action_map: the map of actions; None for a test that does not depend on the action map.
            level: the largest probability of refuting a symmetry.

        Returns:
            The quantity, in words.
        """
        if order < 2:
            return ""
        level /= max(1, len(self._questions))
        for question in self._questions:
            if (action_map is None and not question.sees_next) or len(question.asked) < _FEWEST_ASKED:
                continue
            model = self._model_of(question, with_actions=action_map is not None)
            # With actions it is mostly the step that tells: fewer steps do, as there are several action maps to ask.
            asked = question.asked[: _ASKED_AGAIN if question.sees_next and action_map is not None else None]
            scores, by_side = self._score_orbits(question, asked, model, move, order, action_map)
            episode = self._rollouts.episode[asked]
            if _exceeds(scores, episode, level / 2, sides=1) or _exceeds(by_side, episode, level / 2, sides=2):
                return question.name
        return ""

    def _model_of(self, question: _Question, *, with_actions: bool) -> _Model:
        key = question.name, with_actions
        if key not in self._models:
            parts = self._parts(question.taught)
            inputs = _inputs(*parts, with_actions=with_actions, sees_next=question.sees_next)
            choices = [np.ones(inputs.shape[1], dtype=bool)]
            if question.sees_next:  # what is paid often depends on where a step ends alone
                choices.append(np.arange(inputs.shape[1]) >= parts[0].shape[1])
            self._models[key] = _Model(inputs, self._targets(question, question.taught, parts), choices)
        return self._models[key]

    def _parts(self, rows: npt.NDArray[np.int64]) -> tuple[Floats, Floats, Floats]:
        return self._rollouts.before[rows], self._rollouts.actions[rows], self._rollouts.after[rows]

    @staticmethod
    def _targets(question: _Question, rows: npt.NDArray[np.int64], parts: tuple[Floats, Floats, Floats]) -> Floats:
        before, _, after = parts
        return after - before if question.targets is None else question.targets[rows]

    def _score_orbits(
        self,
        question: _Question,
        asked: npt.NDArray[np.int64],
        model: _Model,
        move: Callable[[Floats], Floats],
        order: int,
        action_map: SignedMap | None,
    ) -> tuple[Floats, Floats]:
        """How well every image of every step is foretold, and errors by their side; shape (steps, order, features)."""
        parts = self._parts(asked)
        # Features of actions are about the middle of their box.
        turn = SignedMap.of(action_map.index, action_map.sign) if action_map is not None else None
        scores, by_side = [], []
        for _ in range(order):
            inputs = _inputs(*parts, with_actions=turn is not None, sees_next=question.sees_next)
            errors = model.errors(inputs, self._targets(question, asked, parts))
            # Rare steps are all asked about, and where they are said to be likely they are foretold.
            scores.append(-errors[:, 0] if question.is_rare else -np.minimum(errors**2, _FARTHEST).sum(axis=1))
            sides = np.sign(inputs - self._middle_of(question, inputs))[:, :_MOST_SIDES]
            limited = np.ones((len(errors), 1)) if question.is_rare else np.clip(errors, -_WILDEST, _WILDEST)
            by_side.append((limited[:, :_MOST_SIDES, None] * sides[:, None, :]).reshape(len(errors), -1))
            before, actions, after = parts
            parts = move(before), actions if turn is None else turn.apply(actions), move(after)
        return np.stack(scores, axis=1)[:, :, None], np.stack(by_side, axis=1)

    def _middle_of(self, question: _Question, inputs: Floats) -> Floats:
        """Between the sides of each feature: the median of the steps that teach."""
        key = question.name, inputs.shape[1]
        if key not in self._middles:
            with_actions = inputs.shape[1] > (1 + question.sees_next) * self._rollouts.before.shape[1]
            taught = _inputs(*self._parts(question.taught), with_actions=with_actions, sees_next=question.sees_next)
            self._middles[key] = np.median(taught, axis=0)
        return self._middles[key]


def _average_episodes(scores: Floats, episode: npt.NDArray[np.int64]) -> Floats:
    """Means over the steps of each episode, without what all members of its orbit have in common."""
    at = np.unique(episode, return_inverse=True)[1]
    sums = np.zeros((at.max() + 1, *scores.shape[1:]))
    np.add.at(sums, at, scores)
    # So that an episode with many such steps does not outweigh all others.
    sums /= np.bincount(at).reshape(-1, *[1] * (scores.ndim - 1))
    return np.asarray(sums - sums.mean(axis=1, keepdims=True))


def _exceeds(scores: Floats, episode: npt.NDArray[np.int64], level: float, *, sides: int) -> bool:
    """Whether played episodes score otherwise than random members of their orbits, in some feature.

    Args:
        scores: shape (steps, order, features), the played episode first.
        episode: the episode of each step.
        level: probability at most of as much by chance.
        sides: 1 if only higher scores tell, 2 if lower ones do too.
    """
    sums = _average_episodes(scores, episode)
    size = np.sqrt((sums**2).mean(axis=1).sum(axis=0))
    # Images that score alike but for rounding tell nothing.
    real = size > 1e-9 * np.abs(scores).sum(axis=(0, 1))
    leaning = sums[:, 0].sum(axis=0) / np.where(real, size, np.inf)
    # A self-normalised sum of symmetric terms exceeds x with probability exp(-x^2 / 2) at most (Hoeffding).
    largest = math.sqrt(2 * math.log(sides * scores.shape[2] / level)) * (SKEWED if scores.shape[1] > 2 else 1.0)
    return bool((np.abs(leaning) if sides == 2 else leaning).max(initial=0.0) > largest)


def _inputs(before: Floats, actions: Floats, after: Floats, *, with_actions: bool, sees_next: bool) -> Floats:
    parts = [before, *([after] if sees_next else []), *([actions] if with_actions else [])]
    return np.concatenate(parts, axis=1)


class _Model:
    """Kernel ridge regression: polynomials of degree two, and bumps about the steps that taught it.

    Args:
        inputs: shape (n, features).
        targets: shape (n, outputs).
        choices: sets of features, the best of which is used; shape (features,) each.
    """

    def __init__(self, inputs: Floats, targets: Floats, choices: Sequence[Bools]) -> None:
        varies = inputs.std(axis=0) > 1e-9 * np.maximum(1.0, np.abs(inputs).max(axis=0, initial=0.0))
        self._level = targets.mean(axis=0)
        plain = targets - self._level
        best = np.inf
        for columns, width, ridge in itertools.product(choices, _WIDTHS, _RIDGES):
            self._use(inputs, columns & varies, width)
            some = self._taught[:_CHOOSING]
            size = _fit_ridge(self._kernel(some, some), plain[:_CHOOSING], ridge)[1].sum()
            if size < best:
                best, chosen = float(size), (columns & varies, width, ridge)
        columns, width, ridge = chosen
        self._use(inputs, columns, width)
        self._weights, self._error = _fit_ridge(self._kernel(self._taught, self._taught), plain, ridge)
        # Where the fit is exact but for rounding, errors are compared in that unit.
        self._error = np.maximum(self._error, 1e-12 * np.maximum(1e-300, (targets**2).mean(axis=0)))

    def errors(self, inputs: Floats, targets: Floats) -> Floats:
        """What targets are beyond what is foretold, in units of the model's own error; shape (n, outputs)."""
        foretold = self._level + self._kernel(self._standard(inputs), self._taught) @ self._weights
        return np.asarray((targets - foretold) / np.sqrt(self._error))

    def _use(self, inputs: Floats, columns: Bools, width: float) -> None:
        self._used = columns
        self._mean, self._deviation = inputs[:, columns].mean(axis=0), inputs[:, columns].std(axis=0)
        self._taught = self._standard(inputs)
        some = self._taught[:_CHOOSING]
        self._width = width * (float(np.median(_squared_distances(some, some, some @ some.T))) or 1.0)

    def _standard(self, inputs: Floats) -> Floats:
        return np.asarray((inputs[:, self._used] - self._mean) / self._deviation)

    def _kernel(self, rows: Floats, others: Floats) -> Floats:
        products = rows @ others.T
        bumps = _squared_distances(rows, others, products)
        bumps /= -self._width
        np.exp(bumps, out=bumps)
        products /= max(1, rows.shape[1])
        products += 1.0
        products *= products
        products += bumps
        return products


def _fit_ridge(kernel: Floats, targets: Floats, ridge: float) -> tuple[Floats, Floats]:
    """Weights, and the mean square of each output's errors at steps that the fit to all others foretells."""
    inverse = np.linalg.inv(kernel + ridge * np.eye(len(kernel)))
    weights = inverse @ targets
    errors = weights / np.diag(inverse)[:, None]  # in closed form
    return weights, (errors**2).mean(axis=0)


def _squared_distances(rows: Floats, others: Floats, products: Floats) -> Floats:
    """Of rows to others, from their products."""
    squares: Floats = products * -2.0
    squares += (rows**2).sum(axis=1)[:, None]
    squares += (others**2).sum(axis=1)
    return np.maximum(squares, 0.0, out=squares)
