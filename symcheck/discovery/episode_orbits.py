"""Episodes compared with their own images, by models that are fitted to half of the episodes.

Under uniform actions, if (L, K) is a symmetry, an episode has the same distribution as its images under the powers of
(L, K). Therefore, given the orbit of an episode, each member is equally likely to be the observed one. The score of the
observed episodes is compared with that of randomly chosen members. This test is exact for any score and any number of
episodes. The score measures how well a model of rewards, terminations and steps, fitted to other episodes, predicts
this one. Because each episode is compared with its own images, differences between episodes have no effect: a dozen
rare rewards are enough to show that a reward links two parts of an observation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from symcheck.array_types import Bools, Floats
from symcheck.discovery.episode_counts import list_images, places_of, usual_values
from symcheck.discovery.kernel_models import KernelModel
from symcheck.discovery.laboratory import Laboratory
from symcheck.discovery.maps import SignedMap
from symcheck.discovery.orbit_scores import Episodes, Leaning
from symcheck.discovery.rollouts import Rollouts, action_features

_STEPS = 8_000
_MOST_NUMBERS = 8_000_000  # maximum size of all observations together: 64 MB
_LENGTHS = (25, 100)  # alternating episode lengths: many start states, and late events
_LOOKED_AT = 32  # number of episodes between two counts of the rare outcomes
FEWEST_TELLING = 32
"""Minimum number of episodes with a rare reward: n of them in the test half give no p-value below 2^-n."""
_FEWEST_ASKED = 8
_LOOKED_THROUGH = 6_000  # ordinary steps searched for those that resemble rare ones
_FIRST = 200  # ordinary steps to which a first model is fitted
# limits of squared and of absolute errors, so that one extreme step does not outweigh all others
_NEAR, _FAR = 9.0, 25.0
_WILDEST = 3.0  # limit of signed errors, for the same reason
_MOST_SIDES = 24  # maximum number of features, and of outputs, whose errors are split by sign


@dataclass(frozen=True)
class Budget:
    """The number of steps to play and to predict: counts, so that results do not depend on the speed of a machine.

    Attributes:
        steps: the number of steps of all episodes.
        telling: if rewards are rare, play continues until this number of episodes have one; half of these are for
            fitting.
        most: the largest number of steps, even if rewards are rare.
        share: the share of the time budget.
        taught: the number of steps for fitting a model.
        asked: the number of steps that the model predicts.
        asked_again: the number of steps that the model predicts for an action map.
        patience: the factor by which `most` may be exceeded if this probably yields enough episodes with a rare reward.
    """

    steps: int
    telling: int
    most: int
    share: float
    taught: int
    asked: int
    asked_again: int
    patience: float = 1.0


AT_FIRST = Budget(_STEPS, 240, 40_000, 0.25, 800, 3_000, 800)
CLOSER = Budget(40_000, 480, 60_000, 0.4, 1_600, 6_000, 3_000, 2.5)
"""The budget for maps that were not refuted at first."""


@dataclass(frozen=True)
class Played:
    """Episodes as arrays.

    Attributes:
        rollouts: the steps, with the observations to which the search applies maps: images are reduced in size.
        telling: the number of episodes with a rare reward or termination; None if neither is rare.
    """

    rollouts: Rollouts
    telling: int | None


def play_episodes(
    lab: Laboratory, shrink: Callable[[Floats], Floats], budget: Budget = AT_FIRST, earlier: Played | None = None
) -> Played | None:
    """Play uniform-policy episodes, more if rewards are rare.

    Args:
        lab: an environment whose states cannot be set.
        shrink: reduces the size of flattened observations, shape (n, numbers).
        budget: how much to play.
        earlier: episodes played before, which count.

    Returns:
        Finite steps of the episodes; None if there are too few.
    """
    rows: list[tuple[Floats, Floats, Floats]] = []
    rewards, ended, episode = [], [], []  # type: list[float], list[bool], list[int]
    if earlier is not None:
        told = earlier.rollouts
        rows.append((told.before, told.after, told.actions))
        rewards, ended, episode = told.rewards.tolist(), told.ended.tolist(), told.episode.tolist()
    first = episode[-1] + 1 if episode else 0
    count, most = first + first % 2, budget.most
    enough, patience = budget.telling, budget.patience
    while lab.in_time(budget.share):
        # Checked only occasionally: counting takes as long as a few episodes.
        if len(rewards) >= most or (len(rewards) >= budget.steps and count % _LOOKED_AT == 0):
            fewest = _fewest_telling(np.array(rewards), np.array(ended), np.array(episode))
            if len(rewards) >= most and fewest < FEWEST_TELLING <= patience * fewest:
                # The test would have no power, but a few more episodes will probably suffice.
                enough, most, patience = FEWEST_TELLING, int(patience * most), 1.0
            elif len(rewards) >= most or fewest >= enough:
                break
        played = lab.stepper.play(_LENGTHS[count % 2], lambda: lab.in_time(budget.share))
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


def _fewest_telling(rewards: Floats, ended: Bools, episode: npt.NDArray[np.int64]) -> float:
    """Number of episodes with a rare reward, or with a rare termination if that is smaller.

    Infinite if neither is rare.
    """
    usual = [each for each in map(usual_values, (rewards, ended.astype(np.float64))) if each is not None]
    return min((len(np.unique(episode[~each])) for each in usual), default=np.inf)


@dataclass(frozen=True)
class _Question:
    """One prediction target.

    Attributes:
        name: the name in words.
        taught, asked: indices of the steps for fitting, and of the predicted steps.
        targets: the targets, shape (steps of the rollouts, 1); None for the step itself, which is transformed too.
        is_rare: whether the target marks rare steps; then all predicted steps are rare.
        sees_next: whether the next observation is an input of the prediction.
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
        budget: the numbers of steps for fitting and for tests.
    """

    def __init__(
        self, rollouts: Rollouts, rng: np.random.Generator, *, with_steps: bool, budget: Budget = AT_FIRST
    ) -> None:
        self._rollouts, self._rng, self._with_steps, self._budget = rollouts, rng, with_steps, budget
        numbers = np.unique(rollouts.episode, return_inverse=True)[1]
        # Episode lengths alternate, so split by pairs of episodes.
        self._teaches = numbers // 2 % 2 == 0
        self._models: dict[tuple[str, bool], KernelModel] = {}
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
        """Predict a value; if one value is frequent, predict which steps have another value, and its size."""
        usual = usual_values(values)
        if usual is None:
            if len(np.unique(values)) > 1:
                yield self._question(name, np.ones(len(values), dtype=bool), values[:, None])
            return
        others = self._question(f"where the {name} is not the usual one", ~usual, np.where(usual, -1.0, 1.0)[:, None])
        common = self._draw(usual & self._teaches, self._budget.taught)
        # Also use ordinary steps that resemble rare ones most: they determine the boundary.
        if len(others.taught):
            common = np.concatenate([common, self._look_alike(others.taught, common, usual & self._teaches)])
        taught = self._rng.permutation(np.concatenate([others.taught, common]))
        yield _Question(others.name, taught, others.asked, others.targets, True)
        if len(np.unique(values[~usual])) > 1:
            yield self._question(name, ~usual, values[:, None])

    def _look_alike(
        self, others: npt.NDArray[np.int64], common: npt.NDArray[np.int64], which: Bools
    ) -> npt.NDArray[np.int64]:
        """Ordinary steps that a first model confuses with rare ones."""
        first = self._rng.permutation(np.concatenate([others, common[: _FIRST + len(others)]]))
        targets = np.where(np.isin(first, others), 1.0, -1.0)[:, None]
        ends = self._rollouts.after
        model = KernelModel(ends[first], targets, [np.ones(ends.shape[1], dtype=bool)])
        rows = self._draw(which, _LOOKED_THROUGH)
        errors = model.errors(ends[rows], np.full((len(rows), 1), -1.0))[:, 0]
        return np.asarray(rows[np.argsort(errors)[: len(first) // 2]])

    def _question(self, name: str, which: Bools, targets: Floats | None, *, sees_next: bool = True) -> _Question:
        taught = self._draw(which & self._teaches, self._budget.taught)
        asked = self._draw(which & ~self._teaches, self._budget.asked)
        return _Question(name, taught, asked, targets, sees_next=sees_next)

    def _draw(self, which: Bools, most: int) -> npt.NDArray[np.int64]:
        rows = np.flatnonzero(which)
        return np.asarray(self._rng.permutation(rows)[:most])  # shuffled, so that the first rows are a random sample

    def refute(self, move: Callable[[Floats], Floats], order: int, action_map: SignedMap | None, level: float) -> str:
        """The quantity that the model predicts better for the episodes than for their images; "" if there is none.

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
        level /= 2 * max(1, len(self._questions))  # two kinds of scores: prediction errors, and their location
        for question in self._questions:
            if (action_map is None and not question.sees_next) or len(question.asked) < _FEWEST_ASKED:
                continue
            # With an action map, steps are more informative, and several action maps have to be tested: use fewer
            # steps.
            fewer = question.sees_next and action_map is not None
            asked = question.asked[: self._budget.asked_again if fewer else None]
            orbit = self._list_orbit(asked, move, order, action_map)
            errors = self._errors_of(question, asked, orbit)
            episodes = Episodes(self._rollouts.episode[asked])
            # All rare steps are predicted; the prediction is good if the model considers them likely.
            scores = -errors if question.is_rare else _scores_of(errors)
            if episodes.lean(scores, sides=1).exceeds(order, level, sides=1):
                return question.name
            # Separate large errors from small ones, for example for a rare penalty in addition to a dense reward.
            wild = np.clip(errors, -2 * _WILDEST, 2 * _WILDEST)
            errors = np.clip(errors, -_WILDEST, _WILDEST)
            wild -= errors
            if question.targets is None:
                leaning = episodes.lean(self._by_side(question, errors, orbit))
                leaning |= episodes.lean(self._by_side(question, wild, orbit))
            elif question.is_rare:
                continue  # tests by counting, without a model, on all episodes
            else:
                leaning = Leaning()
                for feature in (each for part in range(3) for each in places_of([images[part] for images in orbit])):
                    leaning |= episodes.lean_on_intervals(errors[:, :, 0], feature)
                    leaning |= episodes.lean_on_intervals(wild[:, :, 0], feature)
            if leaning.exceeds(order, level):
                return question.name
        return ""

    def _model_of(self, question: _Question, *, with_actions: bool) -> KernelModel:
        key = question.name, with_actions
        if key not in self._models:
            parts = self._parts(question.taught)
            inputs = _inputs(*parts, with_actions=with_actions, sees_next=question.sees_next)
            choices = [np.ones(inputs.shape[1], dtype=bool)]
            if question.sees_next:  # rewards often depend only on the next state
                choices.append(np.arange(inputs.shape[1]) >= parts[0].shape[1])
            targets = self._targets(question, question.taught, parts)
            self._models[key] = KernelModel(inputs, targets, choices, drops=not question.is_rare)
        return self._models[key]

    def _parts(self, rows: npt.NDArray[np.int64]) -> tuple[Floats, Floats, Floats]:
        return self._rollouts.before[rows], self._rollouts.actions[rows], self._rollouts.after[rows]

    @staticmethod
    def _targets(question: _Question, rows: npt.NDArray[np.int64], parts: tuple[Floats, Floats, Floats]) -> Floats:
        before, _, after = parts
        return after - before if question.targets is None else question.targets[rows]

    def _list_orbit(
        self,
        asked: npt.NDArray[np.int64],
        move: Callable[[Floats], Floats],
        order: int,
        action_map: SignedMap | None,
    ) -> list[tuple[Floats, Floats, Floats]]:
        """Observations before and after each step, and actions if they are mapped, for every member of the orbits."""
        before, actions, after = self._parts(asked)
        # Features of actions are relative to the middle of their box.
        turn = SignedMap.of(action_map.index, action_map.sign) if action_map is not None else None
        acted = [actions[:, :0]] * order if turn is None else list_images(actions, turn.apply, order)
        return list(zip(list_images(before, move, order), list_images(after, move, order), acted, strict=True))

    def _errors_of(
        self, question: _Question, asked: npt.NDArray[np.int64], orbit: list[tuple[Floats, Floats, Floats]]
    ) -> Floats:
        """The prediction errors of every member; shape (steps, order, outputs)."""
        with_actions = orbit[0][2].shape[1] > 0
        model = self._model_of(question, with_actions=with_actions)
        rows = []
        for before, after, actions in orbit:
            inputs = _inputs(before, actions, after, with_actions=with_actions, sees_next=question.sees_next)
            rows.append(model.errors(inputs, self._targets(question, asked, (before, actions, after))))
        return np.stack(rows, axis=1)

    def _by_side(self, question: _Question, errors: Floats, orbit: list[tuple[Floats, Floats, Floats]]) -> Floats:
        """Errors of every output times the side (sign) of every input; shape (steps, order, outputs x inputs)."""
        made = []
        for member, (before, after, actions) in enumerate(orbit):
            inputs = _inputs(before, actions, after, with_actions=actions.shape[1] > 0, sees_next=question.sees_next)
            sides = np.sign(inputs - self._middle_of(question, inputs))[:, :_MOST_SIDES]
            limited = errors[:, member, :_MOST_SIDES]
            made.append((limited[:, :, None] * sides[:, None, :]).reshape(len(errors), -1))
        return np.stack(made, axis=1)

    def _middle_of(self, question: _Question, inputs: Floats) -> Floats:
        """The boundary between the sides of each feature: the median over the steps for fitting."""
        key = question.name, inputs.shape[1]
        if key not in self._middles:
            with_actions = inputs.shape[1] > (1 + question.sees_next) * self._rollouts.before.shape[1]
            taught = _inputs(*self._parts(question.taught), with_actions=with_actions, sees_next=question.sees_next)
            self._middles[key] = np.median(taught, axis=0)
        return self._middles[key]


def _scores_of(errors: Floats) -> Floats:
    """Two scores, for models with small and with large errors; shape (steps, order, 2)."""
    near, far = np.minimum(errors**2, _NEAR).sum(axis=2), np.minimum(np.abs(errors), _FAR).sum(axis=2)
    return np.asarray(-np.stack([near, far], axis=2))


def _inputs(before: Floats, actions: Floats, after: Floats, *, with_actions: bool, sees_next: bool) -> Floats:
    parts = [before, *([after] if sees_next else []), *([actions] if with_actions else [])]
    return np.concatenate(parts, axis=1)
