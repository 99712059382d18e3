"""The options of a search, validated when they are built."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from symcheck.engine.option_fields import option, read_json_object
from symcheck.engine.options import BUDGET, DEFAULT_SAMPLES, EnvOptions, RunKeywords, RunOptions

_FEWER_SAMPLES = 2_000
_LONG_STATE = 12


@dataclass(frozen=True)
class DiscoverOptions(RunOptions):
    """How much evidence to gather on every candidate.

    alpha is the probability that some true symmetry among all candidates tried is refused.

    Raises:
        OptionError: naming the option, what was expected and what was given.

    Example:
        >>> DiscoverOptions(alpha=2.0)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        symcheck.errors.OptionError: --alpha: expected a probability strictly between 0 and 1, got 2.0. ...
    """

    samples: int | None = option(
        None,
        "Pairs (state, action) on which each candidate that survives the search is verified; "
        f"{DEFAULT_SAMPLES:,} when left out, {_FEWER_SAMPLES:,} where states are long.",
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

    def samples_for(self, state: int) -> int:
        """The pairs on which a candidate is verified.

        Args:
            state: length of a state vector, 0 where states are not set.

        Returns:
            What was asked for, or the default for that size.

        Example:
            >>> DiscoverOptions().samples_for(4), DiscoverOptions().samples_for(29)
            (10000, 2000)
        """
        if self.samples is not None:
            return self.samples
        return _FEWER_SAMPLES if state > _LONG_STATE else DEFAULT_SAMPLES


class DiscoverKeywords(RunKeywords, total=False):
    """The fields of `DiscoverOptions` as keywords, for static checkers."""

    env_kwargs: Mapping[str, Any] | None
