"""Integer actions (Discrete, MultiDiscrete, MultiBinary) as choices of one value per component.

Every value of every component is a literal. An action map is a permutation of the literals that maps components to
components with the same number of values. For a single component (Discrete), it is a permutation of the actions.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from symcheck.array_types import Floats
from symcheck.discovery.assignment import assign
from symcheck.discovery.maps import SignedMap

MOST_LISTED = 64
"""Maximum number of joint actions that are tried exhaustively."""
_MOST_ALIKE = 12  # maximum number of averaged joint actions; components with equal counts take equal values in them
_TIE = 1e-6  # relative to a typical step; if misfits differ by less, the default image is used


class ActionValues:
    """The literals of an action space.

    Args:
        space: Discrete, MultiDiscrete or MultiBinary.

    Attributes:
        space: the given space.
        counts: number of values of each component.
        starts: the smallest value of each component.

    Example:
        >>> values = ActionValues(spaces.MultiDiscrete([3, 2]))
        >>> values.total, values.joint, values.literals(np.array([2, 0]))
        (5, 6, [2, 3])
    """

    def __init__(self, space: spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary) -> None:
        self.space = space
        if isinstance(space, spaces.Discrete):
            counts, starts = [int(space.n)], [int(space.start)]
        elif isinstance(space, spaces.MultiDiscrete):
            counts, starts = space.nvec.reshape(-1).tolist(), np.asarray(space.start).reshape(-1).tolist()
        else:
            size = int(np.prod(space.shape))
            counts, starts = [2] * size, [0] * size
        self.counts: tuple[int, ...] = tuple(counts)
        self.starts: tuple[int, ...] = tuple(starts)

    @property
    def single(self) -> bool:
        """Whether there is one component: a Discrete space."""
        return isinstance(self.space, spaces.Discrete)

    @property
    def total(self) -> int:
        """Number of literals."""
        return sum(self.counts)

    @property
    def joint(self) -> int:
        """Number of actions."""
        return math.prod(self.counts)

    @cached_property
    def firsts(self) -> tuple[int, ...]:
        """The first literal of each component."""
        return (0, *itertools.accumulate(self.counts[:-1]))

    def literals(self, action: Any) -> list[int]:
        """The literal of each component of an action."""
        flat = np.asarray(action).reshape(-1).tolist()
        return [first + int(x) - start for first, x, start in zip(self.firsts, flat, self.starts, strict=True)]

    def action(self, literals: Sequence[int]) -> Any:
        """The action with these literals (one per component, in order), in the form that the space requires."""
        chosen = [i - first + start for i, first, start in zip(literals, self.firsts, self.starts, strict=True)]
        if self.single:
            return np.int64(chosen[0])
        return np.array(chosen, dtype=self.space.dtype).reshape(self.space.shape)

    def image(self, index: Sequence[int], action: Any) -> Any:
        """The image of an action under a map of literals."""
        # The images may list components in another order, so sort literals by component.
        return self.action(sorted(index[i] for i in self.literals(action)))

    def indicators(self, actions: Sequence[Any]) -> Floats:
        """One indicator column per literal; shape (n, literals)."""
        made = np.zeros((len(actions), self.total))
        for row, action in enumerate(actions):
            made[row, self.literals(action)] = 1.0
        return made

    def centre(self, rows: Floats) -> Floats:
        """Rows over literals minus the mean over the values of each component."""
        parts = [rows[first : first + n] for first, n in zip(self.firsts, self.counts, strict=True)]
        return np.concatenate([part - part.mean(axis=0) for part in parts])

    @cached_property
    def bases(self) -> list[list[int]]:
        """Joint actions over which the effect of one literal is averaged; all of them if there are few."""
        ranges = [range(first, first + n) for first, n in zip(self.firsts, self.counts, strict=True)]
        if self.joint <= MOST_LISTED:
            return [list(each) for each in itertools.product(*ranges)]
        # Every component takes each of its values equally often, and components with the same count take the same
        # value. The average is exact for additive components, and invariant when components are exchanged.
        rows = min(_MOST_ALIKE, math.lcm(*self.counts))
        return [[first + m % n for first, n in zip(self.firsts, self.counts, strict=True)] for m in range(rows)]

    def with_literal(self, literal: int) -> list[Any]:
        """The actions over which the effect of a literal is averaged; in a Discrete space, only the action itself."""
        component = int(np.searchsorted(self.firsts, literal, side="right")) - 1
        made = {tuple(literal if k == component else i for k, i in enumerate(base)) for base in self.bases}
        return [self.action(each) for each in sorted(made)]

    def match(self, misfit: Floats, usual: Sequence[int]) -> SignedMap:
        """The map of literals with the least misfit.

        Args:
            misfit: between every pair of literals, shape (literals, literals).
            usual: the default image of each literal, used if the misfit does not decide.

        Returns:
            A permutation that maps components to components.
        """
        tied = np.full_like(misfit, _TIE)
        tied[np.arange(len(misfit)), list(usual)] = 0.0
        cost = misfit + tied
        whole = np.full((len(self.counts),) * 2, np.inf)
        chosen: dict[tuple[int, int], npt.NDArray[np.int64]] = {}
        for k, j in itertools.product(range(len(self.counts)), repeat=2):
            if self.counts[k] == self.counts[j]:
                part = cost[self._part(k), self._part(j)]
                columns = assign(part)
                sum_of_costs = part[np.arange(len(part)), columns].sum()
                chosen[k, j], whole[k, j] = columns, sum_of_costs + _TIE * (k != j)
        goes = assign(np.where(np.isfinite(whole), whole, 1e12))
        index = np.zeros(self.total, dtype=np.int64)
        for k, j in enumerate(goes.tolist()):
            index[self._part(k)] = self.firsts[j] + chosen[k, j]
        return SignedMap.of(index)

    def _part(self, component: int) -> slice:
        return slice(self.firsts[component], self.firsts[component] + self.counts[component])

    def count_of_maps(self) -> int:
        """The number of maps of literals.

        Example:
            >>> ActionValues(spaces.MultiBinary(3)).count_of_maps()
            48
        """
        made = 1
        for n, times in Counter(self.counts).items():
            made *= math.factorial(times) * math.factorial(n) ** times
        return made

    def write(self, index: Sequence[int]) -> Any:
        """The SPEC entry of a map of literals: images of actions, or an affine map of components; else a callable.

        Example:
            >>> values = ActionValues(spaces.MultiDiscrete([3, 3]))
            >>> values.write([3, 4, 5, 0, 1, 2]), values.write([2, 1, 0, 3, 4, 5])
            ([1, 0], {'signs': [-1, 1], 'offset': [2.0, 0.0]})
            >>> callable(values.write([1, 0, 2, 3, 4, 5]))
            True
        """
        if self.single:
            return list(index)
        affine = self._as_affine(index)
        return affine.spec_entry() if affine is not None else _moving(self, tuple(index))

    def _as_affine(self, index: Sequence[int]) -> SignedMap | None:
        goes, signs = [], []
        for k, n in enumerate(self.counts):
            images = list(index[self._part(k)])
            j = int(np.searchsorted(self.firsts, images[0], side="right")) - 1
            ahead = list(range(self.firsts[j], self.firsts[j] + n))
            if images not in (ahead, ahead[::-1]):
                return None
            goes.append(j)
            signs.append(1 if images == ahead else -1)
        middle = np.array(self.starts) + (np.array(self.counts) - 1) / 2
        return SignedMap.about(goes, signs, middle)

    def describe(self, index: Sequence[int]) -> str:
        """A map of literals in words, component by component; "unchanged" for the identity.

        Example:
            >>> ActionValues(spaces.MultiDiscrete([3, 3])).describe([1, 0, 2, 3, 4, 5])
            'a0: 0 -> 1, 1 -> 0'
        """
        said = []
        for k, n in enumerate(self.counts):
            images = [index[self.firsts[k] + v] for v in range(n)]
            j = int(np.searchsorted(self.firsts, images[0], side="right")) - 1
            moved = [
                f"{v + self.starts[k]} -> {i - self.firsts[j] + self.starts[j]}"
                for v, i in enumerate(images)
                if i - self.firsts[j] != v or self.starts[j] != self.starts[k]
            ]
            if j != k or moved:
                place = f"a{k}" if j == k else f"a{k} to a{j}"
                said.append(f"{place}: {', '.join(moved)}" if moved else place)
        return "; ".join(said) or "unchanged"


def _moving(values: ActionValues, index: tuple[int, ...]) -> Callable[[Any, Any], Any]:
    """A map of literals as a callable, for maps that data cannot express."""

    def move_action(action: Any, observation: Any) -> Any:
        return values.image(index, action)

    return move_action


def values_of(space: spaces.Space[Any]) -> ActionValues | None:
    """The literals of an action space; None if actions are not integers."""
    if isinstance(space, spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary):
        return ActionValues(space)
    return None
