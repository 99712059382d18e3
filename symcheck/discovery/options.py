"""The options of a search, validated when they are built."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from symcheck.engine.option_fields import option, read_json_object
from symcheck.engine.options import BUDGET, DEFAULT_SAMPLES, EnvOptions, RunKeywords, RunOptions

_SCREENED = 2_000  # enough to reject a violation in one pair of a thousand; the accepting run is more sensitive


@dataclass(frozen=True)
class DiscoverOptions(RunOptions):
    """How much evidence to gather on every candidate.

    alpha is the level of the run that accepts the group, as in `verify-env`; the screening runs together have the same
    level.

    Raises:
        OptionError: an option is invalid; the message gives the expected and the given value.

    Example:
        >>> DiscoverOptions(alpha=2.0)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        symcheck.errors.OptionError: --alpha: expected a probability strictly between 0 and 1, got 2.0. ...
    """

    samples: int | None = option(
        None,
        "Number of pairs (state, action) with which the whole group is verified, as in verify-env. "
        f"Default {DEFAULT_SAMPLES:,}. Single candidates are screened on at most {_SCREENED:,}.",
        kind=int,
        panel=BUDGET,
    )
    env_kwargs: Mapping[str, Any] | None = option(
        None, "Keyword arguments of the environment, as a JSON object.", read=read_json_object
    )

    def __post_init__(self) -> None:
        EnvOptions(
            samples=DEFAULT_SAMPLES if self.samples is None else self.samples,
            max_time=self.max_time,
            alpha=self.alpha,
            seed=self.seed,
        )

    @property
    def accepting_samples(self) -> int:
        """The number of pairs in the accepting run: the budget of `verify-env`.

        Example:
            >>> DiscoverOptions().accepting_samples, DiscoverOptions(samples=500).accepting_samples
            (10000, 500)
        """
        return DEFAULT_SAMPLES if self.samples is None else self.samples

    @property
    def screening_samples(self) -> int:
        """The number of pairs in the screening run of one candidate.

        Example:
            >>> DiscoverOptions().screening_samples, DiscoverOptions(samples=500).screening_samples
            (2000, 500)
        """
        return min(_SCREENED, self.accepting_samples)


class DiscoverKeywords(RunKeywords, total=False):
    """The fields of `DiscoverOptions` as keywords, for static checkers."""

    env_kwargs: Mapping[str, Any] | None
