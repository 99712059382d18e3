"""The options of a search, validated when they are built."""

from __future__ import annotations

from dataclasses import dataclass

from symcheck.engine.options import DEFAULT_SAMPLES, EnvOptions

_FEWER_SAMPLES = 2_000
_LONG_STATE = 12


@dataclass(frozen=True)
class DiscoverOptions:
    """How much evidence to gather on every candidate.

    Attributes:
        samples: (state, action) pairs on which each candidate that survives the search is verified; None for 10,000,
            or 2,000 where states are long and steps cost accordingly.
        max_time: wall-clock budget of the whole search in seconds, None for no limit.
        alpha: probability that some true symmetry among all candidates tried is refused, in (0, 1).
        seed: seeds every random choice.

    Raises:
        OptionError: naming the option, what was expected and what was given.

    Example:
        >>> DiscoverOptions(alpha=2.0)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        symcheck.errors.OptionError: --alpha: expected a probability strictly between 0 and 1, got 2.0. ...
    """

    samples: int | None = None
    max_time: float | None = None
    alpha: float = 0.01
    seed: int = 0

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
