"""Screens many pairs in a batched form of an environment; the environment itself then confirms suspicious ones.

The batched form is first compared with the environment, bit for bit, on pairs that the environment stepped in the same
run. It then steps both sides of many pairs drawn from a separate pool. Pairs that exceed their tolerance are stepped
again by the environment, and only those that it confirms count as violations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, assert_never

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from symcheck.array_types import Floats
from symcheck.engine.environments.cases.pairs import Case, Comparison, Measurement
from symcheck.engine.environments.cases.pool import move_to_edges
from symcheck.engine.environments.cases.tolerance import Tolerance
from symcheck.engine.environments.cases.workbench import Workbench
from symcheck.engine.environments.subject.placement import Situation, Word
from symcheck.engine.equations import STEP_PARTS, Part
from symcheck.envs.models.model import BatchModel, Transitions
from symcheck.envs.stepping.stepper import Steps
from symcheck.spaces.actions import draw_action_batch
from symcheck.spaces.coordinates import Coordinates
from symcheck.statements.statement import Statement, state

_BATCH = 8192  # pairs per batch: their arrays fit into the processor's cache
_CHAINS = 256  # number of parallel episodes
_LARGEST_POOL = 200_000  # maximum number of states; with more pairs, some share a state
# maximum number of suspicious pairs per batch that the environment steps again, half of them the worst
_KEPT_PER_BATCH = 48
_MOST_KEPT = 600


@dataclass
class Tally:
    """The screen's counts for one property.

    Attributes:
        suspicious: the number of pairs that exceed their tolerance.
        largest: largest residual of the other pairs, by coordinate, shape (dim,).
        limits: the tolerance of that residual.
        worst: largest residual of any pair, by coordinate.
        asked: suspicious pairs that the environment steps again, for this property or another.
        low: smallest value on either side, by coordinate; NaN if none was a number.
        high: largest value.
    """

    suspicious: int = 0
    largest: Floats = field(default_factory=lambda: np.zeros(0))
    limits: Floats = field(default_factory=lambda: np.zeros(0))
    worst: Floats = field(default_factory=lambda: np.zeros(0))
    asked: int = 0
    low: Floats = field(default_factory=lambda: np.zeros(0))
    high: Floats = field(default_factory=lambda: np.zeros(0))

    @property
    def not_asked(self) -> int:
        """The number of suspicious pairs not stepped again, because there were too many."""
        return self.suspicious - self.asked


@dataclass(frozen=True)
class Screened:
    """The result of the screen.

    Attributes:
        checked: the number of pairs.
        ends: the number of these whose left side ends the episode.
        moved: whether the claim changed any state or action.
        region: the region from which they were drawn.
        source: the batched form, in words.
        tallies: tallies by property.
        suspects: suspicious pairs, without duplicates, stepped again by the environment; None if there are none.
    """

    checked: int
    ends: int
    moved: bool
    region: Statement
    source: str
    tallies: dict[Part, Tally]
    suspects: Measurement | None


@dataclass(frozen=True)
class _Batch:
    """Both sides of n pairs under one element, as arrays."""

    word: Word
    states: Floats
    actions: npt.NDArray[Any]
    observations: npt.NDArray[Any]
    # images of the observations: by the claim, and from the image states
    images: tuple[npt.NDArray[Any], npt.NDArray[Any]]
    left: Transitions
    right: Transitions
    moved: bool


def applicable(bench: Workbench) -> bool:
    """Whether pairs can be built and compared as arrays: maps that are data, actions drawn as arrays."""
    bound, space = bench.pairs.bound, bench.pairs.bound.action_space
    plain = isinstance(space, spaces.Discrete) or (isinstance(space, spaces.Box) and space.is_bounded())
    data = bound.is_data("observation") and bound.is_data("action") and (not bound.has_state or bound.is_data("state"))
    # A batch cannot omit the pairs whose image lies outside a Box.
    stays = not any(bound.may_leave(word) for word in bench.words)
    return plain and data and stays and bench.pairs.placement.kind is not None


def agrees(model: BatchModel, measured: Measurement) -> bool:
    """Whether the batched form reproduces the environment, bit for bit, on both sides of measured pairs.

    Args:
        model: the batched form.
        measured: pairs stepped by the environment.

    Returns:
        Whether next observations, rewards, terminations and (if they were read) next states are equal.
    """
    sides: tuple[tuple[list[Any], list[Any], Steps], ...] = (
        ([case.situation.state for case in measured.cases], [case.action for case in measured.cases], measured.left),
        ([case.image.state for case in measured.cases], [case.image_action for case in measured.cases], measured.right),
    )
    for states, actions, steps in sides:
        batch = model.step(np.stack(states).astype(np.float64), np.stack(actions))
        flat = batch.observations.reshape(len(states), -1).astype(np.float64)
        compared = [(flat, steps.flat), (batch.rewards, steps.rewards), (batch.terminated, steps.terminated)]
        compared += [] if steps.states is None else [(batch.states, steps.states)]
        if not all(np.array_equal(*both, equal_nan=True) for both in compared):
            return False
    return True


class Screen:
    """Steps many pairs through a batched form and selects the suspicious ones.

    Args:
        bench: the environment under test, with its pool.
        model: its batched form, which agrees with it.
        tolerance: the tolerances, learned from the environment's own steps.
        measured: those steps, which also provide scales and precisions.
    """

    def __init__(self, bench: Workbench, model: BatchModel, tolerance: Tolerance, measured: Measurement) -> None:
        self._bench = bench
        self._model = model
        self._tolerance = tolerance
        self._placement = bench.pairs.placement
        shown = self._placement.kind == "map" and self._placement.access.observe is not None
        parts: tuple[Part, ...] = ("observation", *STEP_PARTS) if shown else STEP_PARTS
        comparisons = {part: bench.pairs.comparison(part, measured) for part in parts}
        self._coordinates = {part: comparison.coordinates for part, comparison in comparisons.items()}
        if shown:
            tolerance.learn_sizes(comparisons["observation"])  # for all pairs, not only the few in a batch that differ

    def run(self, count: int, proceed: Callable[[], bool]) -> Screened:
        """Screen `count` pairs, or fewer if the time runs out.

        Args:
            count: pairs to draw.
            proceed: whether there is time for another batch.

        Returns:
            The result; `checked` may be 0.
        """
        rng = self._bench.rng("screen")
        states, region = self._pool(count, rng)
        tallies = {part: self._empty(coordinates) for part, coordinates in self._coordinates.items()}
        report = self._bench.progress("stepping batches of pairs")
        suspects: list[Case] = []
        checked, ends, moved = 0, 0, False
        for size in [min(_BATCH, count - start) for start in range(0, count, _BATCH)]:
            if not proceed():
                break
            for batch in self._batches(states[rng.integers(0, len(states), size=size)], rng):
                suspects += self._sorted_out(tallies, batch, rng)
                ends += int(batch.left.terminated.sum())
                moved = moved or batch.moved
            checked += size
            report(checked, count)
        again = self._bench.pairs.measure(suspects) if suspects else None
        return Screened(checked, ends, moved, region, self._model.source, tallies, again)

    def _empty(self, coordinates: Coordinates) -> Tally:
        largest, limits, worst = np.zeros((3, coordinates.dim))
        low, high = np.full((2, coordinates.dim), np.nan)  # fmin and fmax ignore NaN
        return Tally(largest=largest, limits=limits, worst=worst, low=low, high=high)

    def _pool(self, count: int, rng: np.random.Generator) -> tuple[Floats, Statement]:
        """States to draw from: the run's own pool, longer rollouts, and the box if every point of it is a state."""
        situations = self._bench.pool.situations
        own = np.stack([np.asarray(situation.state, dtype=np.float64) for situation in situations])
        access = self._placement.access
        starts = own[[i for i, situation in enumerate(situations) if situation.origin == "start"]]
        more = max(0, min(count, _LARGEST_POOL) - len(own))
        boxed = more // 2 if access.box and access.sample is not None else 0
        reached = self._roll_out(starts, more - boxed, rng)
        parts = [own, reached]
        if boxed and access.sample is not None:
            drawn = move_to_edges(np.asarray(access.sample(rng, boxed), dtype=np.float64), rng)
            parts.append(drawn[~self._model.ended(drawn)])
        states = np.concatenate(parts)
        if self._placement.kind == "inverse" and self._model.state_showing is not None:
            states = self._model.state_showing(self._model.observe(states))
        origins = {"own": len(own), "rollout": len(reached), **({"box": len(parts[-1])} if boxed else {})}
        return states, state("region_states", count=len(states), origins=origins)

    def _roll_out(self, starts: Floats, count: int, rng: np.random.Generator) -> Floats:
        if count <= 0 or not len(starts):
            return np.zeros((0, starts.shape[1]))
        chains = int(np.clip(count // 200, 1, _CHAINS))
        longest = self._bench.pairs.stepper.time_limit or 1000
        now = starts[rng.integers(0, len(starts), size=chains)]
        age = rng.integers(0, longest, size=chains)  # so that episodes do not all end together
        visited = []
        for _ in range(-(-count // chains)):
            visited.append(now)
            step = self._model.step(now, draw_action_batch(self._bench.pairs.bound.action_space, chains, rng))
            age += 1
            over = step.terminated | (age >= longest)
            age[over] = 0
            now = np.where(over[:, None], starts[rng.integers(0, len(starts), size=chains)], step.states)
        return np.concatenate(visited)[:count]

    def _batches(self, states: Floats, rng: np.random.Generator) -> Iterator[_Batch]:
        pairs, words = self._bench.pairs, self._bench.words
        actions = draw_action_batch(pairs.bound.action_space, len(states), rng)
        cuts = np.cumsum(rng.multinomial(len(states), np.full(len(words), 1 / len(words))))[:-1]
        split = zip(words, np.split(states, cuts), np.split(actions, cuts), strict=True)
        for word, some, chosen in split:
            if not len(some):
                continue
            shown = self._model.observe(some)
            images, claimed = self._placement.image_batch(word, some, shown, self._model.state_showing)
            moved = np.asarray(pairs.bound.action_batch(word, chosen, shown)).astype(chosen.dtype)
            pairs.check_actions(chosen, moved)
            observed = (claimed, self._model.observe(images))
            left, right = self._model.step(some, chosen), self._model.step(images, moved)
            changes = not (np.array_equal(some, images, equal_nan=True) and np.array_equal(chosen, moved))
            yield _Batch(word, some, chosen, shown, observed, left, right, changes)

    def _sides(self, part: Part, batch: _Batch) -> tuple[Floats, Floats]:
        """(expected, actual), shapes (n, dim), in the coordinates of `Pairs.comparison`."""
        left, right = batch.left, batch.right
        if part == "reward":
            return left.rewards[:, None], right.rewards[:, None]
        if part == "termination":
            return left.terminated[:, None].astype(np.float64), right.terminated[:, None].astype(np.float64)
        n = len(left.states)
        if part == "observation":
            claimed, observed = (side.reshape(n, -1).astype(np.float64) for side in batch.images)
            return claimed, observed
        if part != "transition":
            assert_never(part)
        expected = np.asarray(self._bench.pairs.bound.observation_batch(batch.word, left.observations))
        sides = [expected.reshape(n, -1), right.observations.reshape(n, -1)]
        inner = self._placement.inner
        if inner is not None:
            within = [
                inner.expected_coordinates(batch.word, left.states, sides[0]),
                inner.compared_coordinates(right.states),
            ]
            sides = [np.concatenate(pair, axis=1) for pair in zip(sides, within, strict=True)]
        return sides[0].astype(np.float64, copy=False), sides[1].astype(np.float64, copy=False)

    def _sorted_out(self, tallies: dict[Part, Tally], batch: _Batch, rng: np.random.Generator) -> list[Case]:
        """Count the suspicious pairs of every property; return the cases to step again, without duplicates."""
        suspicious: dict[Part, npt.NDArray[np.intp]] = {}
        picked: list[npt.NDArray[np.intp]] = []
        for part, tally in tallies.items():
            rows, residual = self._count(tally, part, batch)
            suspicious[part] = rows
            room = min(_KEPT_PER_BATCH, _MOST_KEPT - tally.asked)
            if len(rows) and room > 0:
                picked.append(_worst_and_random(rows, residual, room, rng))
        if not picked:
            return []
        asked = np.unique(np.concatenate(picked))
        for part, tally in tallies.items():
            tally.asked += int(np.isin(suspicious[part], asked).sum())
        return self._cases(batch, asked)

    def _count(self, tally: Tally, part: Part, batch: _Batch) -> tuple[npt.NDArray[np.intp], Floats]:
        """Count a batch; return its suspicious rows with their residuals."""
        expected, actual = self._sides(part, batch)
        for side in (expected, actual):
            tally.low = np.fmin(tally.low, np.fmin.reduce(side, axis=0))
            tally.high = np.fmax(tally.high, np.fmax.reduce(side, axis=0))
        rows = np.flatnonzero((expected != actual).any(axis=1))  # equal numbers need no tolerance
        if not len(rows):
            return rows, np.zeros((0, expected.shape[1]))
        comparison = Comparison(part, self._coordinates[part], expected[rows], actual[rows])
        residual = comparison.residual()
        limits = self._tolerance.of(comparison)
        over = (~(residual <= limits)).any(axis=1)
        tally.worst = np.maximum(tally.worst, residual.max(axis=0))
        if not over.all():
            tally.largest = np.maximum(tally.largest, residual[~over].max(axis=0))
            tally.limits = np.maximum(tally.limits, limits[~over].max(axis=0))
        tally.suspicious += int(over.sum())
        return rows[over], residual[over]

    def _cases(self, batch: _Batch, rows: npt.NDArray[np.intp]) -> list[Case]:
        situations = [Situation(batch.states[i], batch.observations[i], "screen") for i in rows]
        return self._bench.pairs.cases([batch.word] * len(rows), situations, [batch.actions[i] for i in rows])


def _worst_and_random(
    rows: npt.NDArray[np.intp], residual: Floats, room: int, rng: np.random.Generator
) -> npt.NDArray[np.intp]:
    """A selection of rows: those with the largest residuals (which may all lie at jumps), and as many random ones."""
    worst = np.argsort(-np.nan_to_num(residual, posinf=np.inf).max(axis=1), kind="stable")[: room // 2]
    others = rng.permutation(len(rows))[: room - len(worst)]
    return np.asarray(rows[np.unique(np.concatenate([worst, others]))])
