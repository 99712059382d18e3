"""Interim looks at the data, without exceeding the level.

A test is evaluated at 1/8, 1/4 and 1/2 of its samples and at all of them. Each analysis ("look") k has a weight w_k,
fixed before any data is seen; the weights sum to 1. With p-values p_k, each valid on its own, the smallest p_k / w_k is
valid too:

    P(min_k p_k / w_k <= alpha) <= sum_k P(p_k <= w_k alpha) <= alpha,

for any dependence between the looks, and for any subset of the looks, because omitting a look only increases the
minimum. So a run may stop at any look and for any reason, and Holm's procedure accepts the smallest p_k / w_k like any
other p-value.

Early looks are meant for clear violations. They get a small part of the level and draw no swaps; their p-values are
Hoeffding bounds. Nearly the whole level is reserved for the last look, which is the test on all samples.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

# (fraction of the samples, weight); the choice is explained in docs/statistics.md
_EARLY = ((1 / 8, 0.03), (1 / 4, 0.03), (1 / 2, 0.04))
_FEWEST = 50  # minimum number of pairs; with fewer, Hoeffding's bound rejects only point masses


@dataclass(frozen=True)
class Look:
    """One interim analysis of the data.

    Attributes:
        share: the fraction of the samples available when it is taken.
        weight: the fraction of the level that it may use.
        last: whether all samples are available.
    """

    share: float
    weight: float
    last: bool


def looks(planned: int) -> tuple[Look, ...]:
    """The looks of a test, fixed before any data is seen.

    Args:
        planned: the final number of pairs; early looks at fewer than 50 are not taken.

    Returns:
        Early looks and the last one; their weights sum to 1.

    Example:
        >>> [(look.share, round(look.weight, 2)) for look in looks(1000)]
        [(0.125, 0.03), (0.25, 0.03), (0.5, 0.04), (1.0, 0.9)]
        >>> looks(80)
        (Look(share=1.0, weight=1.0, last=True),)

    Source: group-sequential division of a level over planned looks, Pocock (1977), Biometrika 64, 191-199; here by
        Bonferroni's inequality with unequal weights, which needs no assumption on how the looks depend on each other.
    """
    # The looks depend only on the plan, never on data, so the weights are fixed in advance.
    early = [Look(share, weight, last=False) for share, weight in _EARLY if share * planned >= _FEWEST]
    return (*early, Look(1.0, 1.0 - sum(look.weight for look in early), last=True))


def combine_p_values(taken: Sequence[tuple[float, Look]]) -> float:
    """The combined p-value of all looks taken: the smallest p / weight, at most 1.

    Args:
        taken: the p-value of each look, valid on its own, with the look.

    Returns:
        A p-value that is valid for any stopping rule.

    Example:
        >>> first, *_, last = looks(1000)
        >>> combine_p_values([(1e-6, first)]) < 1e-4, round(combine_p_values([(0.5, first), (0.009, last)]), 4)
        (True, 0.01)
    """
    return min(1.0, *(p_value / look.weight for p_value, look in taken))


class Looked:
    """The results of looks at several tests of one run.

    Args:
        level: a test whose combined p-value is at most this rejects, regardless of the other tests.

    Example:
        >>> first, *_ = looks(1000)
        >>> looked = Looked(0.005)
        >>> looked.add("reward", 1e-9, first), looked.add("transition", 0.4, first)
        (3.3333333333333334e-08, 1.0)
        >>> looked.rejects("reward"), looked.rejects("transition")
        (True, False)
    """

    def __init__(self, level: float) -> None:
        self._level = level
        self._taken: dict[Hashable, list[tuple[float, Look]]] = {}

    def add(self, key: Hashable, p_value: float, look: Look) -> float:
        """Record one look at one test.

        Args:
            key: names the test.
            p_value: the p-value of this look, valid on its own.
            look: the look.

        Returns:
            The combined p-value of all looks at this test so far.
        """
        taken = self._taken.setdefault(key, [])
        taken.append((p_value, look))
        return combine_p_values(taken)

    def rejects(self, key: Hashable) -> bool:
        """Whether a test already rejects.

        Args:
            key: names the test.
        """
        taken = self._taken.get(key, [])
        return bool(taken) and combine_p_values(taken) <= self._level
