"""Networks that are not deployed as floating-point torch: the code that runs, and its structure.

An ONNX file is run by ONNX Runtime, a quantised network in 8-bit integers. Neither runs in float64, so structure is
tested on a counterpart that does: the translated graph, or layers with dequantised weights. There, quantisation of
activations counts as the identity, like casts. Its effect is visible in the deployed network's noise and in flipped
decisions.
"""

from __future__ import annotations

import warnings
from typing import Any, cast

import torch
from torch import nn

from symcheck.statements.statement import Statement

LEAST_CODE = -127
"""The smallest 8-bit code with a counterpart of the opposite sign. A weight of -max rounds to -128 while max rounds to
127, so -128 counts as -127. Otherwise the largest weights of a signed pair would differ although they were rounded in
the same way."""


class LinearReLU(nn.Linear):
    """A linear layer with a ReLU; quantisers fuse both into one module."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """max(0, W x + b)."""
        return super().forward(x).relu()


class ConvReLU2d(nn.Conv2d):
    """A convolution with a ReLU; quantisers fuse both into one module."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """max(0, W * x + b)."""
        return super().forward(x).relu()


def artefact_of(net: nn.Module) -> str:
    """The deployed form of a network, in a word or two; "" for floating-point torch.

    Example:
        >>> artefact_of(nn.Linear(2, 2))
        ''
    """
    if any(getattr(module, "runtime", None) is not None for module in net.modules()):
        return "ONNX Runtime"
    return "int8" if any(_is_quantised(module) for module in net.modules()) else ""


def runtime_problem(net: nn.Module) -> Statement | None:
    """Why the translation of an ONNX file ran instead of the file; None if the file ran."""
    problems = (getattr(module, "runtime_problem", None) for module in net.modules())
    return next((problem for problem in problems if isinstance(problem, Statement)), None)


def without_runtime(net: nn.Module) -> nn.Module:
    """The same network, modified in place so that ONNX graphs run by their translation."""
    for module in net.modules():
        if getattr(module, "runtime", None) is not None:
            cast(Any, module).runtime = None
    return net


def structural(net: nn.Module) -> nn.Module:
    """The floating-point counterpart of a copy, modified in place; the network itself if it is its own counterpart."""
    without_runtime(net)
    replacement = _dequantise_module(net)
    if replacement is not None:
        return replacement.train(net.training)
    # Depth first: children are replaced in their parent, and the root by the caller.
    for name, child in net.named_children():
        counterpart = structural(child)
        if counterpart is not child:
            setattr(net, name, counterpart)
    return net


def _is_quantised(module: nn.Module) -> bool:
    return type(module).__module__.startswith(("torch.ao.nn.quantized", "torch.ao.nn.intrinsic.quantized"))


def _dequantise_module(module: nn.Module) -> nn.Module | None:
    """A floating-point layer with the same weights; None if there is no need or no counterpart."""
    if not _is_quantised(module):
        return None
    import torch.ao.nn.quantized as quantised

    # Quantised modules have the names of their floating-point counterparts, with "ReLU" added if one was fused.
    kind = type(module).__name__
    if kind in ("Quantize", "DeQuantize"):
        return nn.Identity()
    if kind == "QFunctional":
        # Sums and concatenations of quantised tensors, as modules.
        return cast(nn.Module, quantised.FloatFunctional())
    given: Any = module
    if isinstance(module, quantised.Linear):
        weight, bias = given._weight_bias()
        layer: nn.Module = (LinearReLU if "ReLU" in kind else nn.Linear)(
            weight.shape[1], weight.shape[0], bias=bias is not None
        )
    elif isinstance(module, quantised.Conv2d):
        weight, bias = given.weight(), given.bias()
        layer = (ConvReLU2d if "ReLU" in kind else nn.Conv2d)(
            given.in_channels,
            given.out_channels,
            given.kernel_size,
            given.stride,
            given.padding,
            given.dilation,
            given.groups,
            bias is not None,
            given.padding_mode,
        )
    # An unknown kind is left unchanged: the network then has no float64 copy and is tested on samples.
    else:
        return None
    return _fill_layer(layer, weight, bias)


def _fill_layer(layer: Any, weight: torch.Tensor, bias: torch.Tensor | None) -> nn.Module:
    layer.weight = nn.Parameter(dequantise(weight))
    if bias is not None:
        layer.bias = nn.Parameter(bias.detach().double())
    return cast(nn.Module, layer)


def dequantise(weight: torch.Tensor) -> torch.Tensor:
    """The numbers represented by a quantised weight.

    Args:
        weight: a quantised tensor, per tensor or per channel; other tensors are cast.

    Returns:
        (code - zero point) * scale in float64, the same shape.
    """
    if not weight.is_quantized:
        return weight.detach().double()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # torch deprecates quantised tensors, but networks still use them
        codes = weight.int_repr().double()
        # One scale for each output channel; -1 puts it on the channels' axis.
        if weight.qscheme() in (torch.per_channel_affine, torch.per_channel_symmetric):
            shape = [1] * weight.dim()
            shape[weight.q_per_channel_axis()] = -1
            scale, zero = (
                item.double().reshape(shape)
                for item in (weight.q_per_channel_scales(), weight.q_per_channel_zero_points())
            )
        else:
            scale, zero = torch.tensor(weight.q_scale()).double(), torch.tensor(weight.q_zero_point()).double()
    if weight.dtype == torch.qint8:
        # Only codes around zero have a counterpart of the opposite sign.
        codes = torch.where(zero == 0, codes.clamp(min=LEAST_CODE), codes)
    return (codes - zero) * scale
