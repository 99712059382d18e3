"""Enumerates all reachable states breadth first, from a function that lists the outcomes of each pair."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from symcheck.errors import SpecError

if TYPE_CHECKING:
    from symcheck.mdp.finite import ModelT

Outcomes = Callable[[Any, int], Iterable[tuple[float, Hashable, float, bool]]]


class _Numbering:
    """States, numbered in order of discovery."""

    def __init__(self, limit: int) -> None:
        self.number: dict[Hashable, int] = {}
        self._limit = limit

    def __call__(self, state: Hashable) -> int:
        try:
            # A new state gets the next number; a known state keeps its number.
            number = self.number.setdefault(state, len(self.number))
        except TypeError as error:
            raise SpecError(
                f"expected hashable states, got {type(state).__name__}.",
                where="from_model",
                remedy="Use tuples of numbers.",
            ) from error
        if len(self.number) > self._limit:
            raise SpecError(
                f"more than {self._limit:,} states can be reached from the start, which is too many to enumerate.",
                where="from_model",
                remedy=(
                    "Increase limit=, model a smaller instance, or verify a symmetry on samples (symcheck verify-env)."
                ),
            )
        return number


def enumerate_model(
    cls: type[ModelT],
    start: Iterable[Hashable],
    actions: int,
    outcomes: Outcomes,
    *,
    discount: float,
    initial: str | None,
    limit: int,
) -> ModelT:
    """See `TabularMDP.from_model`."""
    number = _Numbering(limit)
    seeds = [number(state) for state in start]
    if not seeds or actions < 1:
        raise SpecError(
            f"expected at least one start state and one action, got {len(seeds)} and {actions}.", where="from_model"
        )
    going: list[tuple[int, int, float]] = []
    ending: list[tuple[int, int, float]] = []
    rewards: list[float] = []
    closed: set[int] = set()  # states that occur only as final states have no outcomes
    # The list grows during iteration: breadth first.
    waiting = list(number.number)
    for state in waiting:
        for action in range(actions):
            expected = 0.0
            for probability, following, reward, terminated in outcomes(state, action):
                known = len(number.number)
                target = number(following)
                # A new state, or one that was only a final state so far.
                if target == known or target in closed:
                    # Final states need no outcomes, unless an episode continues in them elsewhere.
                    (closed.add if terminated else closed.discard)(target)
                    if not terminated:
                        waiting.append(following)
                row = number.number[state] * actions + action
                (ending if terminated else going).append((row, target, float(probability)))
                # Expected rewards: outcomes weighted by their probability.
                expected += float(probability) * float(reward)
            rewards.append(expected)
    return _assemble_model(cls, number, waiting, going, ending, rewards, actions, discount, seeds if initial else None)


def _assemble_model(
    cls: type[ModelT],
    number: _Numbering,
    waiting: list[Hashable],
    going: list[tuple[int, int, float]],
    ending: list[tuple[int, int, float]],
    rewards: list[float],
    actions: int,
    discount: float,
    seeds: list[int] | None,
) -> ModelT:
    states = len(number.number)
    # In the order in which rewards were appended.
    acted = np.array([number.number[state] for state in waiting], dtype=np.int64)
    gained = np.zeros((states, actions))
    gained[acted] = np.array(rewards).reshape(-1, actions)
    idle = np.setdiff1d(np.arange(states), acted)
    stay = [(int(s) * actions + a, int(s), 1.0) for s in idle for a in range(actions)]  # absorbing: no further outcomes
    shape = (states * actions, states)
    # A start state that is listed several times has more weight.
    initial = None if seeds is None else np.bincount(seeds, minlength=states) / len(seeds)
    return cls(
        _matrix(going + stay, shape),
        gained,
        discount,
        initial,
        terminations=_matrix(ending, shape),
        labels=list(number.number),
    )


def _matrix(entries: list[tuple[int, int, float]], shape: tuple[int, int]) -> Any:
    if not entries:
        return sparse.csr_array(shape, dtype=np.float64)
    rows, columns, values = zip(*entries, strict=True)
    return sparse.csr_array((values, (rows, columns)), shape=shape)
