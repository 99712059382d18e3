"""The options of an audit of a policy, validated when they are built."""

from __future__ import annotations

import math
from dataclasses import dataclass

from symcheck.engine.option_fields import option
from symcheck.engine.options import BUDGET, RunKeywords, RunOptions, check_limits, check_samples, check_whole, is_number
from symcheck.errors import OptionError


@dataclass(frozen=True)
class PolicyOptions(RunOptions):
    """The options of an audit of a policy: the largest accepted residual, and its unit.

    Raises:
        OptionError: an option is invalid; the message gives the expected and the given value.

    Example:
        >>> PolicyOptions(tolerance=0)
        Traceback (most recent call last):
        ...
        symcheck.errors.OptionError: --tolerance: expected a residual above 0, got 0.
    """

    samples: int | None = option(
        None,
        "Number of states of the data to test, drawn at random. Default: all.",
        kind=int,
        panel=BUDGET,
        is_shared=True,
    )
    units: str = option("", "Unit of the actions, printed in reports, for instance rad.")
    tolerance: float | None = option(
        None,
        "Largest residual of an action that passes, in --units. Default: 1e-5 of the spread of each action.",
        kind=float,
    )

    def __post_init__(self) -> None:
        if self.samples is not None:
            check_samples(self.samples)
        check_whole(self.seed, "--seed", 0)
        check_limits(self.max_time, self.alpha)
        given: object = self.tolerance
        if given is not None and not (is_number(given) and 0 < given < math.inf):
            raise OptionError(f"expected a residual above 0, got {self.tolerance!r}.", where="--tolerance")


class PolicyKeywords(RunKeywords, total=False):
    """The fields of `PolicyOptions` as keywords, for static checkers."""

    units: str
    tolerance: float | None
