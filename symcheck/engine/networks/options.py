"""The options of a run over a network, validated when they are built."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from symcheck.engine.options import check_limits, check_whole
from symcheck.errors import OptionError, suggestion

DEFAULT_SAMPLES = 10_000
DTYPES = ("float64", "float32", "float16", "bfloat16")
MODES = ("eval", "train")


@dataclass(frozen=True)
class NetOptions:
    """How much evidence to gather on a network, and how it is deployed.

    Attributes:
        samples: (input, generator) pairs to test, at least 1; None for 10,000, fewer where inputs are large.
        max_time: wall-clock budget for the tests in seconds, None for no limit.
        alpha: probability of a false alarm over the whole run, strictly between 0 and 1.
        seed: seeds every random choice of the run; the same seed gives the same verdict.
        input_shape: of one input, without the batch axis; a mapping (or tuple) of shapes where the network takes a
            dictionary (or tuple) of tensors; None to infer it.
        outputs: per output a role (action, invariant, observation, action_scale) or entries; None to infer them.
        mode: "eval" or "train": the mode in which the network is judged.
        dtype: in which the network is deployed; None for its parameters' own.
        device: on which the deployed network runs.
        strict: whether rounded weights fail.
        noise_seed: seeds torch before every call, which pairs the draws of a stochastic network.
        observations: inputs to test beside the generated ones, stacked, shape (n, *input_shape); None for none.

    Raises:
        OptionError: naming the option, what was expected and what was given.

    Example:
        >>> NetOptions(samples=0)
        Traceback (most recent call last):
        ...
        symcheck.errors.OptionError: --samples: expected a whole number, 1 or more, got 0.
    """

    samples: int | None = None
    max_time: float | None = None
    alpha: float = 0.01
    seed: int = 0
    input_shape: Any = None
    outputs: Sequence[Any] | None = None
    mode: Literal["eval", "train"] = "eval"
    dtype: str | None = None
    device: str = "cpu"
    strict: bool = False
    noise_seed: int | None = None
    observations: Any = None

    def __post_init__(self) -> None:
        if self.samples is not None:
            check_whole(self.samples, "--samples", 1)
        check_whole(self.seed, "--seed", 0)
        if self.noise_seed is not None:
            check_whole(self.noise_seed, "--noise-seed", 0)
        check_limits(self.max_time, self.alpha)
        if self.mode not in MODES:
            raise OptionError(
                f"expected eval or train, got {self.mode!r}.", where="--mode", remedy=suggestion(str(self.mode), MODES)
            )
        _check_dtype(self.dtype)
        _check_shape(self.input_shape)


def _check_dtype(dtype: str | None) -> None:
    if dtype is not None and str(dtype).removeprefix("torch.") not in DTYPES:
        raise OptionError(
            f"expected a floating dtype, got {dtype!r}.", where="--dtype", remedy=suggestion(str(dtype), DTYPES)
        )


def _check_shape(shape: Any) -> None:
    if shape is None:
        return
    if isinstance(shape, Mapping) or (isinstance(shape, tuple | list) and shape and isinstance(shape[0], tuple | list)):
        for leaf in shape.values() if isinstance(shape, Mapping) else shape:
            _check_shape(tuple(leaf))
        return
    if not shape or any(isinstance(n, bool) or not isinstance(n, int) or n < 1 for n in shape):
        raise OptionError(
            f"expected sizes of 1 or more, got {shape!r}.",
            where="--input-shape",
            remedy="Leave the batch out: --input-shape 1,21,21.",
        )
