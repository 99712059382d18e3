"""Episodes against their own images: what a law learned on half of them says about the other half.

Under uniform actions, if (L, K) is a symmetry, an episode and its image have one law, and so have all images under the
powers of (L, K). So given the orbit of an episode, each member of it is as likely as any other to be the one that was
played: a score of the played episodes is compared with that of randomly chosen members, which is exact for any score
and any number of episodes. The score says how well a model of rewards, ends and steps, fitted to other episodes,
foretells this one. Episodes are compared with themselves, so that chance between episodes hides nothing: rare rewards
that tie two parts of an observation together are told apart by a dozen of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from symcheck.array_types import Floats
from symcheck.discovery.laboratory import Laboratory
from symcheck.discovery.maps import SignedMap
from symcheck.discovery.rollouts import Rollouts, action_features

_STEPS, _MOST_STEPS = 4_000, 40_000
_MOST_NUMBERS = 8_000_000  # of all observations together: 64 MB
_LENGTHS = (25, 100)  # of episodes in turn: many starts, and what happens late
_TELLING = 96  # episodes with a rare reward: half of them teach
FEWEST_TELLING = 40
"""Episodes with a rare reward below which nothing is known about it: n of half of them refute at no less than 2^-n."""
_GATHERING = 0.25  # of the time budget
_PATIENCE = 15.0  # seconds of playing on where rewards are rare
_USUAL = 0.8  # of the steps: a value this frequent makes all others rare
_FEWEST_ASKED = 8
_TAUGHT, _ASKED = 500, 400  # steps that a model is fitted to, and steps of other episodes that it foretells
_RIDGES = (1e-4, 1e-2, 1.0)
_FARTHEST = 9.0  # squared errors in units of the model's own, so that one wild step does not outweigh all others
_LOUD = 2.5  # standard deviations below which no draw is made
_MOST_DRAWS, _AT_ONCE = 20_000, 500


@dataclass(frozen=True)
class Played:
    """Episodes as arrays.

    Attributes:
        rollouts: the steps; observations as the search moves them, pictures made smaller.
        telling: how many episodes have a rare reward; None where no reward is rare.
    """

    rollouts: Rollouts
    telling: int | None


def play_episodes(lab: Laboratory, shrink: Callable[[Floats], Floats]) -> Played | None:
    """Play uniform-policy episodes, more where rewards are rare.

    Args:
        lab: an environment whose states cannot be set.
        shrink: makes flattened observations smaller, shape (n, numbers).

    Returns:
        Finite steps of the episodes; None where there are too few.
    """
    rows: list[tuple[Floats, Floats, Floats]] = []
    rewards: list[float] = []
    ended: list[bool] = []
    episode: list[int] = []
    count, most, began = 0, _MOST_STEPS, time.monotonic()
    while len(rewards) < most and lab.in_time(_GATHERING):
        if len(rewards) >= _STEPS and (
            time.monotonic() - began > _PATIENCE
            or _count_telling(np.array(rewards), np.array(episode)) >= _TELLING
        ):
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
    return Played(told, None if _is_usual(paid) is None else _count_telling(paid, numbers))


def _is_usual(values: Floats) -> npt.NDArray[np.bool_] | None:
    """Which values are the frequent one; None where no single value is frequent, or all are the same."""
    different, counts = np.unique(values, return_counts=True)
    if len(different) < 2 or counts.max() < _USUAL * len(values):
        return None
    return np.asarray(values == different[np.argmax(counts)])


def _count_telling(rewards: Floats, episode: npt.NDArray[np.int64]) -> float:
    usual = _is_usual(rewards)
    if usual is None:  # every episode tells; of rewards that are all the same none does
        return np.inf if len(np.unique(rewards)) > 1 else 0
    return len(np.unique(episode[~usual]))


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
    """Models fitted to half of the episodes, which maps are tried with on the other half.

    Args:
        rollouts: the episodes.
        rng: draws steps and members of orbits.
        with_steps: whether next observations are foretold too.
    """

    def __init__(self, rollouts: Rollouts, rng: np.random.Generator, *, with_steps: bool) -> None:
        self._rollouts, self._rng, self._with_steps = rollouts, rng, with_steps
        numbers = np.unique(rollouts.episode, return_inverse=True)[1]
        # Lengths take turns of two: halves are pairs of episodes.
        self._teaches = numbers // 2 % 2 == 0
        self._models: dict[tuple[str, bool], _Model] = {}

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
        yield _Question(others.name, np.concatenate([others.taught, common]), others.asked, others.targets, True)
        if len(np.unique(values[~usual])) > 1:
            yield self._question(name, ~usual, values[:, None])

    def _question(
        self, name: str, which: npt.NDArray[np.bool_], targets: Floats | None, *, sees_next: bool = True
    ) -> _Question:
        taught, asked = self._draw(which & self._teaches, _TAUGHT), self._draw(which & ~self._teaches, _ASKED)
        return _Question(name, taught, asked, targets, sees_next=sees_next)

    def _draw(self, which: npt.NDArray[np.bool_], most: int) -> npt.NDArray[np.int64]:
        rows = np.flatnonzero(which)
        return np.asarray(rows if len(rows) <= most else self._rng.choice(rows, most, replace=False))

    def refute(
        self, move: Callable[[Floats], Floats], order: int, action_map: SignedMap | None, level: float
    ) -> str:
        """What the learned law foretells better of episodes than of their images; "" for nothing.

        Args:
            move: the map of observations, on stacked rows.
            order: of the map, with its action map.
            action_map: on actions; None asks what holds whatever the action map is.
            level: probability at most with which a symmetry is refuted.

        Returns:
            What is foretold better, in words.
        """
        if order < 2:
            return ""
        level /= max(1, len(self._questions))
        for question in self._questions:
            if (action_map is None and not question.sees_next) or len(question.asked) < _FEWEST_ASKED:
                continue
            model = self._model_of(question, with_actions=action_map is not None)
            scores = self._score_orbits(question, model, move, order, action_map)
            if self._is_louder(scores, self._rollouts.episode[question.asked], level):
                return question.name
        return ""

    def _model_of(self, question: _Question, *, with_actions: bool) -> _Model:
        key = question.name, with_actions
        if key not in self._models:
            parts = self._parts(question.taught)
            inputs = _inputs(*parts, with_actions=with_actions, sees_next=question.sees_next)
            self._models[key] = _Model(inputs, self._targets(question, question.taught, parts))
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
        model: _Model,
        move: Callable[[Floats], Floats],
        order: int,
        action_map: SignedMap | None,
    ) -> Floats:
        """How well every image of every step is foretold, shape (steps, order)."""
        parts = self._parts(question.asked)
        # Features of actions are about the middle of their box.
        turn = SignedMap.of(action_map.index, action_map.sign) if action_map is not None else None
        scores = []
        for _ in range(order):
            inputs = _inputs(*parts, with_actions=turn is not None, sees_next=question.sees_next)
            scores.append(model.score(inputs, self._targets(question, question.asked, parts), rare=question.is_rare))
            before, actions, after = parts
            parts = move(before), actions if turn is None else turn.apply(actions), move(after)
        return np.stack(scores, axis=1)

    def _is_louder(self, scores: Floats, episode: npt.NDArray[np.int64], level: float) -> bool:
        """Whether played episodes score higher than random members of their orbits."""
        at = np.unique(episode, return_inverse=True)[1]
        sums = np.zeros((at.max() + 1, scores.shape[1]))
        np.add.at(sums, at, scores)
        # So that an episode with many such steps does not outweigh all others.
        sums /= np.sqrt(np.bincount(at))[:, None]
        sums -= sums.mean(axis=1, keepdims=True)
        deviation = np.sqrt((sums**2).mean(axis=1).sum())
        statistic = sums[:, 0].sum()
        # Images of a step that score alike but for rounding tell nothing.
        if deviation <= 1e-9 * np.abs(scores).sum() or statistic < _LOUD * deviation:
            return False
        draws = min(_MOST_DRAWS, int(20 / level))
        reached, rows = 0, np.arange(len(sums))
        for _ in range(-(-draws // _AT_ONCE)):
            members = self._rng.integers(sums.shape[1], size=(_AT_ONCE, len(sums)))
            # Members that score the same but for the rounding of sums are as high.
            reached += int((sums[rows, members].sum(axis=1) >= statistic * (1 - 1e-9)).sum())
            if reached + 1 > level * (draws + 1):
                return False
        return True


def _inputs(before: Floats, actions: Floats, after: Floats, *, with_actions: bool, sees_next: bool) -> Floats:
    parts = [before, *([after] if sees_next else []), *([actions] if with_actions else [])]
    return np.concatenate(parts, axis=1)


class _Model:
    """Kernel ridge regression: polynomials of degree two, and bumps about the steps that taught it.

    Args:
        inputs: shape (n, features).
        targets: shape (n, outputs).
    """

    def __init__(self, inputs: Floats, targets: Floats) -> None:
        deviation = inputs.std(axis=0)
        self._used = deviation > 1e-9 * np.maximum(1.0, np.abs(inputs).max(axis=0, initial=0.0))
        self._mean, self._deviation = inputs.mean(axis=0)[self._used], deviation[self._used]
        self._taught = self._standard(inputs)
        self._level = targets.mean(axis=0)
        some = self._taught[: len(self._taught) // 4 + 1]
        apart = _squared_distances(self._taught, some, self._taught @ some.T)
        self._width = float(np.median(apart)) / 2 or 1.0
        kernel, plain = self._kernel(self._taught), targets - self._level
        best = np.inf
        for ridge in _RIDGES:
            inverse = np.linalg.inv(kernel + ridge * np.eye(len(kernel)))
            weights = inverse @ plain
            # The error at a step of the fit to all others, in closed form.
            errors = weights / np.diag(inverse)[:, None]
            size = (errors**2).mean(axis=0)
            if size.sum() < best:
                best, self._weights, self._error = float(size.sum()), weights, size
        # Where the fit is exact but for rounding, errors are compared in that unit.
        self._error = np.maximum(self._error, 1e-12 * np.maximum(1e-300, (targets**2).mean(axis=0)))

    def score(self, inputs: Floats, targets: Floats, *, rare: bool) -> Floats:
        """How well each row is foretold: as a rare one by its value, else by its error; shape (n,)."""
        foretold = self._level + self._kernel(self._standard(inputs)) @ self._weights
        if rare:
            return np.asarray(np.clip(foretold[:, 0], -1.0, 1.0))
        errors = np.minimum((targets - foretold) ** 2 / self._error, _FARTHEST)
        return np.asarray(-errors.sum(axis=1))

    def _standard(self, inputs: Floats) -> Floats:
        return np.asarray((inputs[:, self._used] - self._mean) / self._deviation)

    def _kernel(self, rows: Floats) -> Floats:
        products = rows @ self._taught.T
        bumps = _squared_distances(rows, self._taught, products)
        bumps /= -self._width
        np.exp(bumps, out=bumps)
        products /= max(1, rows.shape[1])
        products += 1.0
        products *= products
        products += bumps
        return products


def _squared_distances(rows: Floats, others: Floats, products: Floats) -> Floats:
    """Of rows to others, from their products."""
    squares: Floats = products * -2.0
    squares += (rows**2).sum(axis=1)[:, None]
    squares += (others**2).sum(axis=1)
    return np.maximum(squares, 0.0, out=squares)
