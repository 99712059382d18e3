"""The options of a run over a mirror, validated when they are built."""

from __future__ import annotations

import math
from dataclasses import dataclass

from symcheck.engine.option_fields import option
from symcheck.engine.options import BUDGET, RunKeywords, RunOptions, check_limits, check_samples, check_whole, is_number
from symcheck.errors import OptionError

DEFAULT_SAMPLES = 64
DEFAULT_TOLERANCE = 1e-3


@dataclass(frozen=True)
class MirrorOptions(RunOptions):
    """How much of a mirror function to test, and which differences of a model count.

    Raises:
        OptionError: an option is invalid; the message gives the expected and the given value.

    Example:
        >>> MirrorOptions(tolerance=-1)
        Traceback (most recent call last):
        ...
        symcheck.errors.OptionError: --tolerance: expected a relative size of 0 or more, got -1.
    """

    samples: int = option(
        DEFAULT_SAMPLES, "Batch size of each call to the function, at least 2.", kind=int, panel=BUDGET
    )
    tolerance: float = option(
        DEFAULT_TOLERANCE,
        "Largest relative difference that passes if the model is checked without a function.",
        kind=float,
    )

    def __post_init__(self) -> None:
        check_samples(self.samples, 2)
        check_whole(self.seed, "--seed", 0)
        check_limits(self.max_time, self.alpha)
        given: object = self.tolerance
        if not is_number(given) or not 0 <= given < math.inf:
            raise OptionError(f"expected a relative size of 0 or more, got {self.tolerance!r}.", where="--tolerance")


class MirrorKeywords(RunKeywords, total=False):
    """The fields of `MirrorOptions` as keywords, for static checkers."""

    tolerance: float
