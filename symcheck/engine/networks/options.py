"""The options of a run over a network, validated when they are built."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from symcheck.engine.option_fields import option
from symcheck.engine.options import BUDGET, REPORTS, RunKeywords, RunOptions, check_limits, check_samples, check_whole
from symcheck.errors import OptionError, suggestion

DEFAULT_SAMPLES = 10_000
DTYPES = ("float64", "float32", "float16", "bfloat16")
MODES = ("eval", "train")


NETWORK = "Network"
"""Heading of the options in `--help`."""


def read_shape(text: str) -> tuple[int, ...]:
    """Parse the value of --input-shape.

    Args:
        text: sizes separated by commas, without the batch.

    Raises:
        OptionError: a value is not a size.

    Example:
        >>> read_shape("1,21,21")
        (1, 21, 21)
    """
    try:
        shape = tuple(int(word) for word in text.split(","))
    except ValueError:
        shape = ()
    if not shape or min(shape) < 1:
        raise OptionError(
            # One message for text that is not a number and for sizes below 1.
            f"expected sizes of 1 or more separated by commas, got {text!r}.",
            where="--input-shape",
            remedy="Leave out the batch axis: --input-shape 1,21,21.",
        )
    return shape


def _read_outputs(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(","))


@dataclass(frozen=True)
class NetOptions(RunOptions):
    """How much evidence to gather on a network, and how it is deployed.

    In Python, `input_shape` may also be a mapping (or tuple) of shapes, if the network takes a dictionary (or tuple) of
    tensors, and `outputs` may contain entries, one per generator. `observations` are additional inputs to test,
    stacked, shape (n, *input_shape). `space` is a Gymnasium space inside which inputs are drawn; `action_space`
    says to which values the logits of MultiDiscrete or MultiBinary actions belong. By default both spaces are taken
    from `env` or from the policy.

    Raises:
        OptionError: an option is invalid; the message gives the expected and the given value.

    Example:
        >>> NetOptions(samples=0)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        symcheck.errors.OptionError: --samples: expected a whole number of samples, 1 or more, got 0. Omit the ...
    """

    samples: int | None = option(
        None,
        "Number of pairs (input, generator) to test, at least 1. Default 10,000, fewer for large inputs.",
        kind=int,
        panel=BUDGET,
        is_shared=True,
    )
    input_shape: Any = option(
        None, "Shape of one input without the batch axis, for instance 1,21,21.", panel=NETWORK, read=read_shape
    )
    outputs: Sequence[Any] | None = option(
        None,
        "How each output transforms: action, invariant, observation, action_scale; comma-separated.",
        panel=NETWORK,
        read=_read_outputs,
    )
    mode: Literal["eval", "train"] = option(
        "eval", "Mode in which the network is tested: eval or train.", panel=NETWORK
    )
    dtype: str | None = option(None, "Deployed dtype. Default: that of the parameters.", panel=NETWORK)
    device: str = option("cpu", "Device on which the deployed network runs: cpu or cuda.", panel=NETWORK)
    strict: bool = option(False, "Treat rounded weights as a failure.", kind=bool, panel=NETWORK)
    noise_seed: int | None = option(
        None, "Seed torch before every call, for stochastic networks.", kind=int, panel=NETWORK
    )
    certificate: str | Path | None = option(
        None, "Write the proof as a certificate that others can check.", kind=Path, panel=REPORTS
    )
    observations: Any = option(None, "Inputs to test in addition to the generated ones, stacked.", is_typed=False)
    space: Any = option(None, "Observation space from which inputs are drawn.", is_typed=False)
    action_space: Any = option(None, "Action space to whose values the logits belong.", is_typed=False)

    def __post_init__(self) -> None:
        # As on the command line: one text for all outputs, one number for a vector.
        if isinstance(self.outputs, str):
            object.__setattr__(self, "outputs", _read_outputs(self.outputs))
        if isinstance(self.input_shape, str):
            object.__setattr__(self, "input_shape", read_shape(self.input_shape))
        if isinstance(self.input_shape, int) and not isinstance(self.input_shape, bool):
            object.__setattr__(self, "input_shape", (self.input_shape,))
        if self.samples is not None:
            check_samples(self.samples)
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


class NetKeywords(RunKeywords, total=False):
    """The fields of `NetOptions` as keywords, for static checkers."""

    input_shape: Sequence[Any] | Mapping[Any, Any] | None
    outputs: Sequence[Any] | None
    mode: str
    dtype: str | None
    device: str
    strict: bool
    noise_seed: int | None
    certificate: str | Path | None
    observations: Any
    space: Any
    action_space: Any


def _check_dtype(dtype: str | None) -> None:
    if dtype is not None and str(dtype).removeprefix("torch.") not in DTYPES:
        raise OptionError(
            f"expected a floating dtype, got {dtype!r}.", where="--dtype", remedy=suggestion(str(dtype), DTYPES)
        )


def _check_shape(shape: Any) -> None:
    if shape is None:
        return
    # Dictionaries and tuples of shapes, checked leaf by leaf.
    if isinstance(shape, Mapping) or (isinstance(shape, tuple | list) and shape and isinstance(shape[0], tuple | list)):
        for leaf in shape.values() if isinstance(shape, Mapping) else shape:
            _check_shape(leaf)
        return
    # In Python True is an integer, but it is not a size.
    sizes = shape if isinstance(shape, Sequence) and not isinstance(shape, str) else ()
    if not sizes or any(isinstance(n, bool) or not isinstance(n, int) or n < 1 for n in sizes):
        raise OptionError(
            f"expected sizes of 1 or more, got {shape!r}.",
            where="--input-shape",
            remedy="Leave out the batch axis: --input-shape 1,21,21.",
        )
