"""Networks that bend far out only, beyond every input that a run draws: half of them keep their symmetry there.

`far(h)` is 0 unless |h| > 3,000, where it is h. Added to hidden units h, an operation on `far(h)` changes nothing that
samples at scales up to 100 show, and everything at scale 10,000.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from net_catalogue import Draw, conv, linear, swap_blocks
from torch import Tensor, nn

from symcheck.groups import catalog
from symcheck.symmetry.symmetry import Symmetry

FAR = 3e3
"""Beyond what inputs at scale 100 reach in these networks, far below what inputs at scale 10,000 do."""
Move = Callable[[Tensor], Tensor]
Operation = Callable[..., Tensor]


def far(h: Tensor) -> Tensor:
    """Zero, but h itself where |h| > 3,000."""
    return F.hardshrink(h, FAR)


def far_sign(h: Tensor) -> Tensor:
    """Zero, but 1 or -1 where |h| > 3,000: for functions that would overflow."""
    return torch.tanh(F.hardshrink(h, FAR))


@dataclass(frozen=True)
class World:
    """A claim, what it means in plain torch, and the layers around an operation on hidden units.

    Attributes:
        symmetry: builds the claim.
        move_input: L, on stacked inputs.
        move_output: K, on stacked outputs.
        layers: builds what makes the hidden units, and what reads them.
        shape: of one input.
    """

    symmetry: Callable[[], Symmetry]
    move_input: Move
    move_output: Move
    layers: Callable[[], tuple[nn.Module, nn.Module]]
    shape: tuple[int, ...] = (4,)


def _pairs() -> tuple[nn.Module, nn.Module]:
    draw = Draw(4)
    first, bias = 4 * draw(4, 4), draw(4)
    return linear(torch.cat([first, -first]), torch.cat([bias, bias])), linear(swap_blocks(draw, 1, 4))


def _signed() -> tuple[nn.Module, nn.Module]:
    draw = Draw(5)
    return linear(4 * draw(8, 4)), linear(draw(2, 8))


def _filters() -> tuple[nn.Module, nn.Module]:
    draw = Draw(6)
    w, b = 4 * draw(2, 1, 3, 3), draw(2)
    head = linear(swap_blocks(draw, 1, 2))
    return conv(torch.cat([w, w.flip(-1)]), torch.cat([b, b])), nn.Sequential(_Mean(), head)


def _signed_filters() -> tuple[nn.Module, nn.Module]:
    draw = Draw(7)
    layer = nn.Conv2d(1, 4, 3, bias=False)
    layer.weight = nn.Parameter(4 * draw(4, 1, 3, 3))
    return layer, nn.Sequential(_Mean(lambda x: x), linear(draw(2, 4)))


class _Mean(nn.Module):
    """The mean over all positions; of pairs of filters, of what is positive, which a shift of their values changes."""

    def __init__(self, bend: Move = F.relu) -> None:
        super().__init__()
        self.bend = bend

    def forward(self, x: Tensor) -> Tensor:
        return self.bend(x).mean((2, 3))


PAIRS = World(
    lambda: Symmetry("mirror", catalog.cyclic(2), observation=[[-1] * 4], action=[[1, 0]]),
    lambda x: -x,
    lambda y: y.flip(-1),
    _pairs,
)
"""Hidden units in pairs, which the action exchanges."""
SIGNED = World(
    lambda: Symmetry("odd", catalog.cyclic(2), observation=[[-1] * 4], action=[[-1, -1]]),
    lambda x: -x,
    lambda y: -y,
    _signed,
)
"""Hidden units that the action negates."""
FILTERS = World(
    lambda: Symmetry("flip", catalog.cyclic(2), observation=["flip_lr"], action=[[1, 0]]),
    lambda x: x.flip(-1),
    lambda y: y.flip(-1),
    _filters,
    (1, 6, 7),
)
"""Filters in mirrored pairs."""
SIGNED_FILTERS = World(
    lambda: Symmetry("negative", catalog.cyclic(2), observation=[[-1] * 49], action=[[-1, -1]]),
    lambda x: -x,
    lambda y: -y,
    _signed_filters,
    (1, 7, 7),
)
"""Filters of images that the action negates."""


class Far(nn.Module):
    """Layers around an operation on hidden units.

    Args:
        world: the layers.
        operation: of the hidden units and the constants, what is read.
        constants: tensors and modules of the operation, by name.
    """

    def __init__(self, world: World, operation: Operation, constants: dict[str, Any]) -> None:
        super().__init__()
        self.body, self.head = world.layers()
        self.operation = operation
        for name, item in constants.items():
            if isinstance(item, nn.Module):
                self.add_module(name, item)
            else:
                self.register_buffer(name, torch.as_tensor(item))
        self.names = list(constants)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.operation(self.body(x), *(getattr(self, name) for name in self.names)))


@dataclass(frozen=True)
class Case:
    """One network: an operation on hidden units of a world, with the constants that it takes after them."""

    world: World
    operation: Operation
    constants: Callable[[], dict[str, Any]] = dict

    def build(self) -> nn.Module:
        """The network, in float32."""
        return Far(self.world, self.operation, self.constants())


def signed(operation: Operation) -> Case:
    return Case(SIGNED, operation)


def uneven(usual: float = 1.0, other: float = 1.5) -> Tensor:
    """One number for all units but the second."""
    numbers = torch.full((8,), usual)
    numbers[1] = other
    return numbers


def even(number: float = 1.0) -> Tensor:
    return torch.full((8,), number)


def with_constant(world: World, operation: Operation, constant: Any) -> Case:
    return Case(world, operation, lambda: {"constant": constant})


def with_bounds(world: World, low: Tensor, high: Tensor) -> Case:
    """Units beside their far part between bounds of each entry."""
    return Case(world, lambda h, low, high: h + torch.clamp(far_sign(h), low, high), lambda: {"low": low, "high": high})


def between(low: Tensor, high: Tensor) -> Case:
    """Signed units themselves between bounds of each entry."""
    return Case(SIGNED, lambda h, low, high: torch.clamp(h, low, high), lambda: {"low": low, "high": high})


def with_module(make: Callable[[], nn.Module], world: World = PAIRS, spoil: str = "") -> Case:
    """A module on the far part of the units; `spoil` names the parameter of which one entry is wrong."""

    def constants() -> dict[str, Any]:
        module = make().eval()
        if spoil:
            with torch.no_grad():
                getattr(module, spoil)[1] += 0.5
        return {"module": module}

    return Case(world, lambda h, module: h + module(far(h)), constants)


def windows(function: Operation) -> Case:
    """Something that makes other images of the far part, read with more weight towards both sides."""

    def read(h: Tensor) -> Tensor:
        made = function(far(h))
        across = torch.linspace(-1, 1, made.shape[-1], dtype=h.dtype).abs()
        return torch.cat([h.flatten(2), (across * made).flatten(2)], 2)[..., None]

    return Case(FILTERS, read)


def square_layer() -> nn.Module:
    return linear(swap_blocks(Draw(9), 4, 4))


# f(0) = 0, and f is neither odd nor even: of z = 0, 1 and -1 it tells where z is not zero
ONE_SIDED: dict[str, Operation] = {
    "relu": F.relu,
    "relu6": F.relu6,
    "leaky_relu": F.leaky_relu,
    "leaky_relu, steep": lambda u: F.leaky_relu(u, 2.0),
    "elu": F.elu,
    "elu, steep": lambda u: F.elu(u, 2.0),
    "selu": F.selu,
    "celu": F.celu,
    "gelu": F.gelu,
    "silu": F.silu,
    "mish": F.mish,
    "hardswish": F.hardswish,
    "threshold": lambda u: F.threshold(u, -0.5, 0.0),
    "expm1": torch.expm1,
    "log1p": lambda u: torch.log1p(0.5 * u),
    "floor": lambda u: torch.floor(0.5 * u),
    "ceil": lambda u: torch.ceil(0.5 * u),
    "clamp": lambda u: u.clamp(-0.5, 0.75),
    "clamp, one bound": lambda u: u.clamp(max=0.75),
    "clamp by keyword": lambda u: torch.clamp(u, min=-0.75),
    "clamp_min": lambda u: u.clamp_min(-0.5),
    "clamp_max": lambda u: u.clamp_max(0.5),
    "hardtanh": lambda u: F.hardtanh(u, -0.5, 0.75),
    "hardtanh, one bound": lambda u: F.hardtanh(u, min_val=-0.5),
    "nan_to_num": lambda u: torch.nan_to_num(u / (1 - u.abs()), nan=0.0, posinf=5.0, neginf=-1.0),
    "maximum": lambda u: torch.maximum(u, torch.full_like(u, -0.5)),
    "minimum": lambda u: torch.minimum(u, torch.full_like(u, 0.5)),
    "maximum of two": lambda u: torch.maximum(u, 0.5 * u),
    "prelu": lambda u: F.prelu(u, torch.full((1,), 0.5, dtype=u.dtype)),
    "square": torch.square,
    "abs": torch.abs,
    "pow": lambda u: u**2,
    "cos": lambda u: torch.cos(u) - 1,
}
# not even: of z = 1 and -1 they make factors of different size
NOT_EVEN: dict[str, Operation] = {
    "relu": F.relu,
    "sigmoid": torch.sigmoid,
    "hardsigmoid": F.hardsigmoid,
    "softplus": F.softplus,
    "softplus, sharp": lambda u: F.softplus(u, beta=4.0, threshold=2.0),
    "logsigmoid": F.logsigmoid,
    "exp": torch.exp,
    "tan": torch.tan,
    "pow": lambda u: u**3,
    "sqrt": lambda u: torch.sqrt(2.0 + u),
    "rsqrt": lambda u: torch.rsqrt(2.0 + u),
}
# f(-u) = -f(u)
ODD: dict[str, Operation] = {
    "tanh": torch.tanh,
    "softsign": F.softsign,
    "tanhshrink": F.tanhshrink,
    "softshrink": F.softshrink,
    "sin": torch.sin,
    "asinh": torch.asinh,
    "atan": torch.atan,
    "erf": torch.erf,
    "sign": torch.sign,
    "trunc": lambda u: torch.trunc(1.5 * u),
    "neg": torch.neg,
    "clamp": lambda u: u.clamp(-0.5, 0.5),
    "hardtanh": lambda u: F.hardtanh(u, -0.75, 0.75),
    "pow": lambda u: u**3,
}
EVEN: dict[str, Operation] = {"abs": torch.abs, "square": torch.square, "cos": torch.cos, "pow": lambda u: u**2}

RIGHT: dict[str, Case] = {
    **{f"{name}, added": signed(lambda h, f=f: h + f(far_sign(h))) for name, f in ODD.items()},
    **{f"{name}, as a factor": signed(lambda h, f=f: h * (2 + f(far_sign(h)))) for name, f in EVEN.items()},
    **{
        f"{name} of pairs": Case(PAIRS, lambda h, f=f: h + f(far_sign(h))) for name, f in (ONE_SIDED | NOT_EVEN).items()
    },
    "bounds of signs": with_bounds(SIGNED, -even(0.5), even(0.5)),
    "bounds of pairs": with_bounds(PAIRS, -even(0.5), even(0.75)),
    "bounds at 3,000 of a buffer": between(-even(FAR), even(FAR)),
    "bounds at 3,000": signed(lambda h: h.clamp(-FAR, FAR)),
    "hardtanh at 3,000": signed(lambda h: F.hardtanh(h, -FAR, FAR)),
    "maximum with a constant": with_constant(PAIRS, torch.maximum, even(-FAR)),
    "minimum with a constant": with_constant(PAIRS, torch.minimum, even(FAR)),
    "prelu of each unit": with_constant(PAIRS, lambda h, slope: h + F.prelu(far(h), slope), even(0.25)),
    "a factor of each unit": with_constant(PAIRS, lambda h, gain: h + gain * far(h), even()),
    "a shift of each unit": with_constant(PAIRS, lambda h, shift: h + torch.relu(h - shift), even(FAR)),
    "a mask": with_constant(PAIRS, lambda h, m: h + torch.where(m, far(h), 0.0), even().bool()),
    "masked_fill": with_constant(PAIRS, lambda h, m: h + far(h).masked_fill(m, 0.0), even(0.0).bool()),
    "a triangle below which nothing lies": Case(
        PAIRS, lambda h: h + far(h).unsqueeze(1).expand(-1, 8, 8).triu(-7).mean(1)
    ),
    "a product of an odd and an even factor": signed(lambda h: h + far_sign(h) * far_sign(h).abs()),
    "softmax of pairs": Case(PAIRS, lambda h: h * torch.softmax(far_sign(h), -1)),
    "mean of signs": signed(lambda h: h + far_sign(h).mean(-1, keepdim=True)),
    "norm of signs": signed(lambda h: h * (1 + far_sign(h).norm(dim=-1, keepdim=True))),
    "normalised signs": signed(lambda h: h + F.normalize(far(h), dim=-1)),
    "layer norm": with_module(lambda: nn.LayerNorm(8)),
    "rms norm": with_module(lambda: nn.RMSNorm(8)),
    "rms norm of signs": with_module(lambda: nn.RMSNorm(8, eps=1e-6), SIGNED),
    "group norm": with_module(lambda: nn.GroupNorm(1, 8)),
    "batch norm": with_module(lambda: nn.BatchNorm1d(8)),
    "instance norm": with_module(lambda: nn.InstanceNorm2d(4, affine=True), FILTERS),
    "a layer": with_module(square_layer),
    "average pool of signs": Case(SIGNED_FILTERS, lambda h: h + F.avg_pool2d(far(h), 3, 1, 1)),
    "adaptive average pool of signs": Case(SIGNED_FILTERS, lambda h: h + F.adaptive_avg_pool2d(far(h), 1)),
    "max pool": windows(lambda h: F.max_pool2d(h, 3, 2)),
    "average pool": windows(lambda h: F.avg_pool2d(h, 3, 2)),
    "adaptive pool": windows(lambda h: F.adaptive_max_pool2d(h, 3)),
    "padding": windows(lambda h: F.pad(h, (1, 1, 0, 0))),
    "replicated padding": windows(lambda h: F.pad(h, (2, 2, 0, 1), mode="replicate")),
    "a shift along the flip": windows(lambda h: torch.roll(h, 1, -2)),
    "a part of the image": windows(lambda h: h[..., 1:4]),
    "interpolation": windows(lambda h: F.interpolate(h, size=(4, 9), mode="bilinear")),
    "nearest interpolation": windows(lambda h: F.interpolate(h, scale_factor=2)),
}
WRONG: dict[str, Case] = {
    **{f"{name}, added": signed(lambda h, f=f: h + f(far_sign(h))) for name, f in ONE_SIDED.items()},
    **{f"{name}, as a factor": signed(lambda h, f=f: h * (2 + f(far_sign(h)))) for name, f in NOT_EVEN.items()},
    "upper bound of one entry": with_bounds(SIGNED, -even(0.5), uneven(0.5, 0.75)),
    "lower bound of one entry": with_bounds(SIGNED, uneven(-0.5, -0.75), even(0.5)),
    "bound of one of a pair": with_bounds(PAIRS, -even(0.5), uneven(0.5, 0.75)),
    "a bound at 4,500 of one entry": between(-even(FAR), uneven(FAR, 1.5 * FAR)),
    "bounds at 3,000 and 4,500": signed(lambda h: h.clamp(-FAR, 1.5 * FAR)),
    "hardtanh at 3,000 and 4,500": signed(lambda h: F.hardtanh(h, -FAR, max_val=1.5 * FAR)),
    "threshold at -3,000": signed(lambda h: F.threshold(h, -FAR, -FAR)),
    "maximum with one larger constant": with_constant(PAIRS, torch.maximum, uneven(-2 * FAR, -FAR)),
    "minimum with one smaller constant": with_constant(PAIRS, torch.minimum, uneven(2 * FAR, FAR)),
    "prelu of each unit, one steeper": with_constant(PAIRS, lambda h, slope: h + F.prelu(far(h), slope), uneven(0.25)),
    "prelu of signs": with_constant(SIGNED, lambda h, slope: h + F.prelu(far(h), slope), even(0.25)),
    "a larger factor of one unit": with_constant(PAIRS, lambda h, gain: h + gain * far(h), uneven()),
    "a larger shift of one unit": with_constant(PAIRS, lambda h, shift: h + torch.relu(h - shift), uneven(FAR, 4e3)),
    "a mask of one unit": with_constant(PAIRS, lambda h, m: h + torch.where(m, far(h), 0.0), uneven(1, 0).bool()),
    "masked_fill of one unit": with_constant(PAIRS, lambda h, m: h + far(h).masked_fill(m, 0.0), uneven(0, 1).bool()),
    "a triangle": Case(PAIRS, lambda h: h + far(h).unsqueeze(1).expand(-1, 8, 8).triu(1).mean(1)),
    "a product of two odd factors": signed(lambda h: h + far_sign(h) * far_sign(h)),
    "a sum of an odd and an even part": signed(lambda h: h + (far_sign(h) + far_sign(h).square())),
    "a constant filled with a number of the input": signed(lambda h: h + torch.full_like(h, far_sign(h)[0, 0]).abs()),
    "a threshold computed from the input": signed(lambda h: h + F.hardshrink(far_sign(h), 2 * far_sign(h)[0, 0])),
    "softmax of signs": signed(lambda h: h * torch.softmax(far_sign(h), -1)),
    "log_softmax of signs": signed(lambda h: h * F.log_softmax(far_sign(h), -1)),
    "logsumexp of signs": signed(lambda h: h * far_sign(h).logsumexp(-1, keepdim=True)),
    "amax of signs": signed(lambda h: h + far_sign(h).amax(-1, keepdim=True)),
    "amin of signs": signed(lambda h: h + far_sign(h).amin(-1, keepdim=True)),
    "norm of signs, added": signed(lambda h: h + far_sign(h).norm(dim=-1, keepdim=True)),
    "the largest of signs": signed(lambda h: h + far_sign(h).topk(1, -1)[0]),
    "sorted signs, as a factor": signed(lambda h: h * (2 + far_sign(h).sort(-1)[0])),
    "sorted signs": signed(lambda h: h + far_sign(h).sort(-1)[0]),
    "layer norm, one weight": with_module(lambda: nn.LayerNorm(8), spoil="weight"),
    "rms norm, one weight": with_module(lambda: nn.RMSNorm(8), spoil="weight"),
    "batch norm, one weight": with_module(lambda: nn.BatchNorm1d(8), spoil="weight"),
    "instance norm, one weight": with_module(lambda: nn.InstanceNorm2d(4, affine=True), FILTERS, spoil="weight"),
    "group norm that splits pairs": Case(PAIRS, lambda h: h + F.group_norm(far(h)[:, [0, 1, 2, 4, 3, 5, 6, 7]], 2)),
    "a layer, one weight": with_module(square_layer, spoil="weight"),
    "max pool of signs": Case(SIGNED_FILTERS, lambda h: h + F.max_pool2d(far(h), 3, 1, 1)),
    "adaptive max pool of signs": Case(SIGNED_FILTERS, lambda h: h + F.adaptive_max_pool2d(far(h), 1)),
    "adaptive max pool of signs to 3x3": Case(
        SIGNED_FILTERS, lambda h: h + F.interpolate(F.adaptive_max_pool2d(far(h), 3), size=(5, 5))
    ),
    "power pool of signs": Case(SIGNED_FILTERS, lambda h: h + F.interpolate(F.lp_pool2d(far(h), 2, 3, 1), size=(5, 5))),
    "max pool with a rest": windows(lambda h: F.max_pool2d(h, 2, 2)),
    "average pool with a rest": windows(lambda h: F.avg_pool2d(h, 2, 2)),
    "windows padded on one side": windows(
        lambda h: F.conv2d(h, torch.full((4, 4, 1, 4), 0.25, dtype=h.dtype), padding="same")
    ),
    "padding on one side": windows(lambda h: F.pad(h, (1, 0, 0, 0))),
    "replicated padding on one side": windows(lambda h: F.pad(h, (2, 1, 0, 0), mode="replicate")),
    "a shift of the image": windows(lambda h: torch.roll(h, 1, -1)),
    "the right part of the image": windows(lambda h: h[..., 1:]),
    "interpolation by an uneven factor": windows(
        lambda h: F.interpolate(h, scale_factor=1.3, mode="bilinear", recompute_scale_factor=False)
    ),
    "nearest interpolation by an uneven factor": windows(lambda h: F.interpolate(h, size=(4, 7))),
}
