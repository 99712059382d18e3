"""Fixed linear maps of images, and convolutions that enlarge: the action is checked on the map itself.

Two linear maps that agree on a vector drawn from a normal distribution are equal with probability one, so a few drawn
images settle whether an interpolation commutes with a symmetry of the square at the sizes at hand.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812

from symcheck.engine.networks.precision import float64_default
from symcheck.engine.networks.rules_movement import moved_entries, still_spatial
from symcheck.engine.networks.rules_pointwise import tracked, unsigned
from symcheck.engine.networks.rules_spatial import assemble_image, channel_interval, match_filters, pair_of
from symcheck.engine.networks.squares import Square, channel_classes, splits
from symcheck.engine.networks.tracing import Call, NotUnderstoodError, rule
from symcheck.engine.networks.values import LayerRecord, Tracked, Value
from symcheck.statements.statement import state

DRAWS = 4
ROUNDING = 1e-10
"""Relative difference at which two float64 images count as equal: interpolation sums some 16 products."""
NEIGHBOURS = 4
"""How far from the given size other sizes are tried, to say which would do."""
Resampling = Callable[[torch.Tensor], torch.Tensor]


def resample(call: Call, x: Any, function: Resampling, *, signs: bool = True) -> Value:
    """A weight-free map of each channel's image.

    Args:
        call: the call.
        x: images, shape (1, channels, H, W) or (1, channels, W).
        function: the map, for any size.
        signs: whether it commutes with a change of sign.

    Returns:
        The value with the same squares and channels.

    Raises:
        NotUnderstoodError: with a record, where the map commutes with no square that the action may be.
    """
    value = tracked(call, x) if signs else unsigned(call, tracked(call, x))
    chosen = []
    for generator in range(call.tracer.generators):
        options = splits(value, generator)
        if not options:
            raise NotUnderstoodError(state("SYM106", operation=call.name))
        # Several squares may describe the same action; one that commutes is enough.
        fitting = [split for split in options if _commutes(function, value.shape[2:], split.square)]
        if not fitting:
            raise _refusal(call, function, value, options[0].square)
        chosen.append(fitting[0])
    channel, _, _ = channel_classes(value)
    return assemble_image(call.shape, channel, [split.channels for split in chosen], chosen)


def _refusal(call: Call, function: Resampling, value: Tracked, square: Square) -> NotUnderstoodError:
    sizes = value.shape[2:]
    # Sizes nearby that would do, for the message.
    good = [
        n
        for n in range(max(1, sizes[-1] - NEIGHBOURS), sizes[-1] + NEIGHBOURS + 1)
        if _fits(function, sizes, n, square)
    ]
    before, after = list(sizes), list(call.shape[2:])
    cause = state("SYM104", operation=call.name, before=before, after=after, square=square.name, sizes=good)
    record = call.record(LayerRecord(call.owner(), call.name, "failed", cause=cause, matched=False))
    return NotUnderstoodError(cause, record)


def _fits(function: Resampling, sizes: tuple[int, ...], n: int, square: Square) -> bool:
    return _commutes(function, (n,) * len(sizes), square)


def _commutes(function: Resampling, sizes: tuple[int, ...], square: Square) -> bool:
    # Positive numbers: power means of negative ones are NaN.
    draws = np.abs(np.random.default_rng(0).normal(size=(DRAWS, 1, *sizes)))
    apply = square.apply if len(sizes) == 2 else (lambda line: line[..., ::-1] if square.flip_columns else line)
    try:
        with torch.no_grad(), float64_default():
            plain = function(torch.from_numpy(draws)).numpy()
            moved = function(torch.from_numpy(np.ascontiguousarray(apply(draws)))).numpy()
    except (RuntimeError, ValueError):
        return False
    wanted = apply(plain)
    return wanted.shape == moved.shape and bool(
        (np.abs(wanted - moved) <= ROUNDING * (1.0 + np.abs(plain).max())).all()
    )


def interpolate(call: Call, x: Any, **options: Any) -> Value:
    """Interpolation by a smooth mode."""
    return resample(call, x, lambda images: F.interpolate(images, **options))


@rule("interpolate", "upsample", "upsample_nearest")
def upsample(call: Call, x: Any, size: Any = None, scale_factor: Any = None, mode: str = "nearest", **kw: Any) -> Any:
    """Upsampling by repeated entries; the interpolating modes are not followed."""
    if mode not in ("nearest", "nearest-exact"):
        return interpolate(call, x, size=size, scale_factor=scale_factor, mode=mode, **kw)
    moved = moved_entries(
        call, lambda marks: F.interpolate(marks[0], size=size, scale_factor=scale_factor, mode=mode), [x]
    )
    sizes = {"before": list(x.shape[2:]), "after": list(call.shape[2:])}
    return still_spatial(call, x, moved, "SYM104", operation="nearest upsampling", uneven=True, **sizes)


@rule("aten.upsample_nearest2d", "aten.upsample_nearest1d")
def exported_upsampling(call: Call, x: Any, size: Any, scales: Any = None) -> Any:
    """Upsampling by repeated entries as exported graphs write it."""
    return upsample(call, x, None if size is None else list(size), None if scales is None else list(scales))


@rule("aten.upsample_bilinear2d", "aten.upsample_bicubic2d")
def exported_interpolation(call: Call, x: Any, size: Any, align_corners: bool, scales: Any = None) -> Any:
    """Interpolation as exported graphs write it."""
    mode = call.name.removeprefix("aten.upsample_").removesuffix("2d")
    size, scales = (None if item is None else list(item) for item in (size, scales))
    return interpolate(call, x, size=size, scale_factor=scales, mode=mode, align_corners=align_corners)


@rule("lp_pool2d", "lp_pool1d")
def lp_pool(
    call: Call, x: Any, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
) -> Value:
    """Power means over windows: even powers forget signs, which is not followed."""
    function = getattr(F, call.name)
    return resample(call, x, lambda images: function(images, norm_type, kernel_size, stride, ceil_mode), signs=False)


@rule("conv_transpose2d", "conv_transpose1d")
def transposed_convolution(
    call: Call,
    x: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Value:
    """The adjoint of a convolution: flips commute unless the output is padded on one side."""
    if groups != 1:
        raise NotUnderstoodError(state("SYM154", operation=call.name, argument="groups"))
    value = tracked(call, x)
    name = call.owner(weight, bias)
    kind = "ConvTranspose2d" if call.name.endswith("2d") else "ConvTranspose1d"
    W = call.constant(weight)
    # To (out, in, height, width), as other convolutions have it.
    W = np.ascontiguousarray((W[:, :, None, :] if W.ndim == 3 else W).swapaxes(0, 1))
    flat = call.name.endswith("1d")
    settings = [pair_of(item, flat) for item in (stride, padding, dilation)]
    chosen = []
    for generator in range(call.tracer.generators):
        options = splits(value, generator)
        if not options:
            raise NotUnderstoodError(state("SYM106", operation=kind))
        fitting = [s for s in options if not _one_sided(s.square, pair_of(output_padding, flat), settings, W.shape[2:])]
        if not fitting:
            cause = state("SYM102", output=True, square=options[0].square.name)
            raise NotUnderstoodError(cause, call.record(LayerRecord(name, kind, "failed", cause=cause, matched=False)))
        chosen.append(fitting[0])
    _, first, _ = channel_classes(value)
    if len(first) != W.shape[1]:
        raise NotUnderstoodError(state("SYM154", operation=kind, argument="duplicate channels"))
    b = np.zeros(len(W)) if bias is None else call.constant(bias)
    return match_filters(call, W, b, chosen, LayerRecord(name, kind), channel_interval(value))


def _one_sided(
    square: Square, padding: tuple[int, int], settings: list[tuple[int, int]], kernel: tuple[int, ...]
) -> bool:
    # A transpose exchanges height and width: their settings must be alike.
    unequal = any(a != b for a, b in [*settings, padding, (kernel[0], kernel[1])])
    uneven = (square.flip_rows and padding[0] > 0) or (square.flip_columns and padding[1] > 0)
    return uneven or (square.transpose and unequal)
