"""The options of a run over a game, validated when they are built."""

from __future__ import annotations

from dataclasses import dataclass

from symcheck.engine.option_fields import option
from symcheck.engine.options import BUDGET, RunKeywords, RunOptions, check_limits, check_whole

DEFAULT_SAMPLES = 1000


@dataclass(frozen=True)
class GameOptions(RunOptions):
    """How much of a game to test.

    Raises:
        OptionError: an option is invalid; the message gives the expected and the given value.

    Example:
        >>> GameOptions(samples=0)
        Traceback (most recent call last):
        ...
        symcheck.errors.OptionError: --samples: expected a whole number, 1 or more, got 0.
    """

    samples: int = option(
        DEFAULT_SAMPLES,
        "Number of positions to test, reached by legal play; small games are tested completely.",
        kind=int,
        panel=BUDGET,
    )

    def __post_init__(self) -> None:
        check_whole(self.samples, "--samples", 1)
        check_whole(self.seed, "--seed", 0)
        check_limits(self.max_time, self.alpha)


class GameKeywords(RunKeywords, total=False):
    """The fields of `GameOptions` as keywords, for static checkers."""
