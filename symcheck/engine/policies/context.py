"""One audit: the policy on visited states and on their images, and the contribution of each of its parts.

With z the normalised observation, u the output of the last layer and y the action, the residual y(g s) - g y(s) is a
sum of three terms: the change when z(g s) is replaced by g z (the normaliser), the change when u(g z) is replaced by g
u (the network), and the rest (the post-processing). Each is in the unit of the action.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from symcheck.array_types import Floats
from symcheck.engine.policies.calling import Answer, Policy
from symcheck.engine.policies.images import image_of, image_of_deviations, words_of
from symcheck.engine.policies.normalised import Normalised, read_normalised
from symcheck.engine.policies.options import PolicyOptions
from symcheck.symmetry.symmetry import Symmetry

_SCALE_TOLERANCE = 1e-5  # the level for networks: residuals up to this are due to rounded weights


@dataclass
class PolicyContext:
    """The argument of the property of policies.

    Attributes:
        policy: the policy in float64.
        symmetry: the claim.
        observations: the visited states, stacked, or a mapping of them.
        options: the options of the run.
        names: the names of the actions.
    """

    policy: Policy
    symmetry: Symmetry
    observations: Any
    options: PolicyOptions
    names: tuple[str, ...]

    @functools.cached_property
    def answer(self) -> Answer:
        """The policy's output on the states."""
        return self.policy.run(self.observations)

    @property
    def count(self) -> int:
        """The number of states."""
        return len(self.answer.action)

    @functools.cached_property
    def words(self) -> list[tuple[int, ...]]:
        """The tested elements, as words."""
        return words_of(self.symmetry)

    def move_action(self, word: tuple[int, ...], actions: Floats) -> Floats:
        """The images of actions."""
        return np.asarray(image_of(self.symmetry.action, word, actions, "action"))

    @functools.cached_property
    def residuals(self) -> dict[tuple[int, ...], Floats]:
        """By element: |y(g s) - g y(s)|, (N, m)."""
        return {word: np.abs(self._signed(word)) for word in self.words}

    def _signed(self, word: tuple[int, ...]) -> Floats:
        return self.moved_answer(word).action - self.move_action(word, self.answer.action)

    def moved_answer(self, word: tuple[int, ...]) -> Answer:
        """The policy's output on the images of the states."""
        return self._moved_answers[word]

    @functools.cached_property
    def _moved_answers(self) -> dict[tuple[int, ...], Answer]:
        return {word: self.policy.run(self.moved_states(word)) for word in self.words}

    def moved_states(self, word: tuple[int, ...]) -> Any:
        """The images of the states."""
        return image_of(self.symmetry.observation, word, self.observations, "observation")

    @functools.cached_property
    def deviation_residuals(self) -> Floats | None:
        """The largest residual of a stochastic policy's deviations over states and elements, (m,).

        None for deterministic policies.
        """
        if self.answer.deviation is None:
            return None
        sizes = []
        for word in self.words:
            moved = self.moved_answer(word).deviation
            expected = image_of_deviations(self.symmetry.action, word, self.answer.deviation, "action")
            sizes.append(
                np.abs(moved - expected).max(axis=0) if moved is not None else np.full(expected.shape[1], np.nan)
            )
        return np.asarray(np.max(sizes, axis=0))

    @functools.cached_property
    def tolerances(self) -> Floats:
        """By action: the largest accepted residual."""
        if self.options.tolerance is not None:
            return np.full(self.answer.action.shape[1], self.options.tolerance)
        spread = self.answer.action.std(axis=0)
        # A constant action has no spread: use its size.
        scale = np.where(spread > 0, spread, np.abs(self.answer.action).max(axis=0, initial=0.0))
        return np.asarray(_SCALE_TOLERANCE * np.maximum(scale, np.finfo(np.float64).tiny))

    @functools.cached_property
    def parts(self) -> dict[str, dict[str, Any] | None]:
        """The residual of each part: its maximum and mean over states; None for a part that does not exist."""
        totals: dict[str, list[Floats]] = {"normaliser": [], "network": [], "post": []}
        for word in self.words:
            for name, table in self._split(word).items():
                if table is not None:
                    totals[name].append(np.abs(table))
        return {name: self._summary(tables) if tables else None for name, tables in totals.items()}

    def _summary(self, tables: list[Floats]) -> dict[str, Any]:
        sizes = np.max(tables, axis=0)
        worst = int(np.nanargmax(sizes.max(axis=0))) if np.isfinite(sizes).any() else 0
        per_action = sizes.max(axis=0)
        return {
            "max_residual": float(per_action.max()),
            "mean_residual": float(sizes.mean()),
            "action": self.names[worst],
            "violates": bool((~(per_action <= self.tolerances)).any()),
        }

    def _split(self, word: tuple[int, ...]) -> dict[str, Floats | None]:
        policy, here, moved = self.policy, self.answer, self.moved_answer(word)
        moved_states = self.moved_states(word)
        expected = self.move_action(word, here.action)
        last = policy.last_layer
        after_normaliser = moved.action
        normalised: Floats | None = None
        if self.normalised:
            replaced = {
                n.module: n.move(self.observations, self.symmetry, word, here.seen[n.module]) for n in self.normalised
            }
            after_normaliser = policy.run(moved_states, replaced).action
            normalised = moved.action - after_normaliser
        post: Floats | None = None
        after_network = expected
        if last is not None and last in here.seen and here.seen[last].shape == here.action.shape:
            replaced = {last: self.move_action(word, here.seen[last])}
            after_network = policy.run(moved_states, replaced).action
            post = after_network - expected
        return {"normaliser": normalised, "network": after_normaliser - after_network, "post": post}

    @functools.cached_property
    def normalised(self) -> list[Normalised]:
        """The normalisers whose columns are known: those of the observation, or of one or more of its keys."""
        watched = [m for m in self.policy.normalisers if m in self.answer.seen]
        read = [read_normalised(m, self.answer, self.observations, self.policy.dtype) for m in watched]
        return [item for item in read if item is not None]

    @functools.cached_property
    def one_sided_columns(self) -> list[dict[str, Any]]:
        """Columns whose statistics in the normaliser differ from those of their images."""
        return [column for normalised in self.normalised for column in normalised.one_sided_columns(self.symmetry)]

    @functools.cached_property
    def gait(self) -> Floats:
        """By action: the difference of its mean over the states from that of its image, divided by its deviation."""
        actions = self.answer.action
        spread = np.maximum(actions.std(axis=0), np.finfo(np.float64).tiny)
        with np.errstate(over="ignore"):  # a constant action has no deviation, and another mean is infinitely far
            gaps = [
                np.abs(self.move_action(word, actions).mean(axis=0) - actions.mean(axis=0)) / spread
                for word in self.words
            ]
        return np.asarray(np.max(gaps, axis=0))
