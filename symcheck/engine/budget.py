"""One false-alarm probability for the whole run, allocated by Holm's step-down procedure.

Every statistical test of a run (a property under one generator) submits its p-value before any of them is decided. The
smallest is compared with alpha / k, the next with alpha / (k - 1), and so on until one does not reject: uniformly at
least as powerful as dividing alpha evenly, and the probability that any true claim is rejected stays below alpha under
any dependence between the tests. k counts the tests that could have rejected: a test whose two sides never differed has
p-value 1 under every pattern of swaps, so excluding it depends only on quantities that swaps do not change (Tarone
1990).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from symcheck.engine.clock import TimeUp
from symcheck.engine.statistics import holm

Word = tuple[int, ...]
"""A group element as a product of generators."""


@dataclass(frozen=True)
class Handed:
    """A p-value submitted by one test.

    Attributes:
        p_value: valid on its own.
        live: whether any pattern of swaps could have rejected.
    """

    p_value: float
    live: bool


Source = Callable[[], Mapping[Word, Handed]]


class Budget:
    """The level alpha of a run, and the tests that share it.

    Args:
        alpha: probability of a false alarm over the whole run.

    Example:
        >>> budget = Budget(0.01)
        >>> budget.add("initial", lambda: {(0,): Handed(0.002, True)}, planned=1)
        >>> budget.add("reward", lambda: {(0,): Handed(0.008, True)}, planned=1)
        >>> budget.smallest, budget.level("initial", (0,)), budget.level("reward", (0,))
        (0.005, 0.005, 0.01)
    """

    def __init__(self, alpha: float) -> None:
        self._alpha = alpha
        self._sources: dict[str, Source] = {}
        self._planned = 0
        self._levels: dict[tuple[str, Word], float] | None = None
        self._late: set[str] = set()

    def add(self, name: str, source: Source, *, planned: int) -> None:
        """Announce the tests of one property.

        Args:
            name: the name of the property.
            source: runs the tests and returns their p-values by group element. It is called once, when the first test
                of the run is decided. Elements that it omits are not tested and never fail.
            planned: the maximum number of tests; it fixes the number of swaps before any data is seen.
        """
        self._sources[name] = source
        self._planned += planned

    @property
    def smallest(self) -> float:
        """The strictest level of the run; every test must be able to reach it."""
        return self._alpha / max(1, self._planned)

    def level(self, name: str, word: Word) -> float:
        """The level of one test; it rejects if its p-value is at most this level.

        The first call runs all tests of the run.

        Args:
            name: the name of the property.
            word: the group element.

        Returns:
            A probability; `smallest` for tests that submitted no p-value.

        Raises:
            TimeUp: the time ended before the tests of this property did; the others share alpha without them.
        """
        # Only once: Holm's procedure needs all p-values before any decision.
        if self._levels is None:
            self._levels = self._share_alpha()
        if name in self._late:
            raise TimeUp
        return self._levels.get((name, word), self.smallest)

    @property
    def tests(self) -> int:
        """The number of tests that share alpha."""
        return 0 if self._levels is None else len(self._levels)

    def _share_alpha(self) -> dict[tuple[str, Word], float]:
        handed: dict[tuple[str, Word], Handed] = {}
        for name, source in self._sources.items():
            try:
                handed |= {(name, word): test for word, test in source().items()}
            except TimeUp:
                self._late.add(name)  # one long test must not cost the verdicts of the others
        # Tests that could not reject are not counted (Tarone).
        live = [key for key, test in handed.items() if test.live]
        return dict(zip(live, holm([handed[key].p_value for key in live], self._alpha), strict=True))
