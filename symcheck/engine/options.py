"""The options of a run over an environment, validated when they are built."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Literal, TypedDict, TypeGuard, get_args

from symcheck.engine.option_fields import option
from symcheck.errors import OptionError, suggestion

Method = Literal["auto", "exact", "paired", "distribution", "trajectory"]
METHODS: tuple[str, ...] = get_args(Method)
DEFAULT_SAMPLES = 10_000
MOST_SAMPLES = 100_000_000  # maximum number of samples: some 50 GB of pairs
BUDGET, REPORTS = "Budget", "Reports"
"""Headings of `--help`."""


@dataclass(frozen=True)
class RunOptions:
    """The options common to all runs; each kind of run defines the meaning of its samples."""

    samples: int | None = option(None, "Number of cases to test.", kind=int, panel=BUDGET, is_shared=True)
    max_time: float | None = option(
        None,
        "Stop after this many seconds; properties that are not finished are undecided.",
        kind=float,
        panel=BUDGET,
        is_shared=True,
    )
    alpha: float = option(
        0.01, "Largest probability of a false alarm in the whole run.", kind=float, panel=BUDGET, is_shared=True
    )
    seed: int = option(0, "Random seed; the same seed gives the same verdict.", kind=int, panel=BUDGET, is_shared=True)


@dataclass(frozen=True)
class EnvOptions(RunOptions):
    """How much evidence to gather on an environment, and by which method.

    Each pair costs two steps of the environment. Fewer pairs are checked if observations are so large (images) that the
    pairs would not fit into memory.

    Raises:
        OptionError: an option is invalid; the message gives the expected and the given value.

    Example:
        >>> EnvOptions(samples=0)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        symcheck.errors.OptionError: --samples: expected a whole number of samples, 1 or more, got 0. ...
    """

    samples: int = option(
        DEFAULT_SAMPLES,
        "Number of cases (state, action, group element) to test for each property, at least 1.",
        kind=int,
        panel=BUDGET,
        is_shared=True,
    )
    method: Method = option(
        "auto",
        "How to test: auto, exact, paired, distribution or trajectory; auto selects the strongest.",
        completion="methods",
    )
    fail_fast: bool = option(
        False, "Stop at the first property that fails; the other properties are undecided.", kind=bool, panel=BUDGET
    )
    accept_gap: float | None = option(
        None,
        "Accept violations as approximate if they cost at most this much optimal value, in units of return.",
        kind=float,
        panel=REPORTS,
    )
    discount: float = option(0.99, "Discount factor for --accept-gap, in [0, 1).", kind=float, panel=REPORTS)

    def __post_init__(self) -> None:
        check_samples(self.samples)
        check_limits(self.max_time, self.alpha)
        check_whole(self.seed, "--seed", 0)
        if not is_number(self.discount) or not 0 <= self.discount < 1:
            raise OptionError(
                f"expected a discount in [0, 1), got {self.discount!r}.",
                where="--discount",
                remedy="0.99 is the default; without discounting, errors grow without limit.",
            )
        if self.accept_gap is not None and not (is_number(self.accept_gap) and 0 <= self.accept_gap < math.inf):
            raise OptionError(
                f"expected a value gap of 0 or more, in units of return, got {self.accept_gap!r}.",
                where="--accept-gap",
                remedy="Omit the option to accept no violation.",
            )
        if not isinstance(self.fail_fast, bool):
            raise OptionError(f"expected true or false, got {self.fail_fast!r}.", where="--fail-fast")
        if self.fail_fast and self.accept_gap is not None:
            raise OptionError(
                "the cost of a violation can be computed only after all properties were checked.",
                where="--fail-fast with --accept-gap",
                remedy="Omit --fail-fast or --accept-gap.",
            )
        if self.method not in METHODS:
            raise OptionError(
                f"expected a method, got {self.method!r}.",
                where="--method",
                remedy=suggestion(str(self.method), METHODS),
            )


class RunKeywords(TypedDict, total=False):
    """The options of every run as keywords, for static checkers."""

    samples: int | None
    max_time: float | None
    alpha: float
    seed: int


class EnvKeywords(RunKeywords, total=False):
    """The fields of `EnvOptions` as keywords, for static checkers."""

    method: Method
    fail_fast: bool
    accept_gap: float | None
    discount: float


def check_limits(max_time: object, alpha: object) -> None:
    """Reject an invalid time budget or level.

    Args:
        max_time: seconds above 0, or None for no limit.
        alpha: a probability strictly between 0 and 1.

    Raises:
        OptionError: an option is invalid; the message names it and its value.

    Example:
        >>> check_limits("10", 0.01)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        symcheck.errors.OptionError: --max-time: expected a time in seconds above 0, got '10'. ...
    """
    if max_time is not None and not (is_number(max_time) and max_time > 0):
        raise OptionError(
            f"expected a time in seconds above 0, got {max_time!r}.",
            where="--max-time",
            remedy="Omit the option for no limit.",
        )
    if not (is_number(alpha) and 0 < alpha < 1):
        raise OptionError(
            f"expected a probability strictly between 0 and 1, got {alpha!r}.",
            where="--alpha",
            remedy="The default is 0.01.",
        )


def check_whole(value: object, where: str, least: int) -> None:
    """Reject any value except an integer of at least `least`.

    Raises:
        OptionError: an option is invalid; the message names it and its value.

    Example:
        >>> check_whole(3, "--seed", 0)
    """
    # True and False are ints in Python, but not valid seeds.
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise OptionError(f"expected a whole number, {least} or more, got {value!r}.", where=where)
    if value >= 2**64:
        raise OptionError("expected a whole number below 2^64, got a larger one.", where=where)


def is_number(value: object) -> TypeGuard[float]:
    """Whether a value is a real number, which True and False are not.

    Example:
        >>> is_number(0.5), is_number(True), is_number("1")
        (True, False, False)
    """
    return isinstance(value, Real) and not isinstance(value, bool)


def check_samples(samples: object, least: int = 1) -> None:
    """Reject any value except a number of samples that fits into memory.

    Raises:
        OptionError: the number is invalid; the message contains it.

    Example:
        >>> check_samples(10**15)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        symcheck.errors.OptionError: --samples: expected at most 100,000,000 samples, got 1,000,000,000,000,000. ...
    """
    if isinstance(samples, bool) or not isinstance(samples, int) or samples < least:
        raise OptionError(
            f"expected a whole number of samples, {least} or more, got {samples!r}.",
            where="--samples",
            remedy=f"Omit the option for the default of {DEFAULT_SAMPLES}." if least == 1 else None,
        )
    if samples > MOST_SAMPLES:
        given = f"{samples:,}" if samples < 10**30 else "a number of more than 30 digits"
        raise OptionError(
            f"expected at most {MOST_SAMPLES:,} samples, got {given}.",
            where="--samples",
            remedy="All samples are kept in memory; --max-time limits a long run.",
        )
