"""Networks for the tests: correct by construction, so that every fault in them is one that a test planted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from symcheck.groups import catalog
from symcheck.symmetry.symmetry import Symmetry


def mirror() -> Symmetry:
    """x -> -x on four numbers, two actions swapped."""
    return Symmetry("mirror", catalog.cyclic(2), observation=[[-1, -1, -1, -1]], action=[[1, 0]])


def turn() -> Symmetry:
    """A quarter turn of the image; actions stay, up, left, down, right in counter-clockwise order."""
    return Symmetry("turn", catalog.cyclic(4), observation=["rot90"], action=[[0, 2, 3, 4, 1]])


def flip() -> Symmetry:
    """Left and right exchanged in an image; two actions swapped."""
    return Symmetry("flip", catalog.cyclic(2), observation=["flip_lr"], action=[[1, 0]])


class Draw:
    """Random weights from one seed."""

    def __init__(self, seed: int = 0) -> None:
        self.generator = torch.Generator().manual_seed(seed)

    def __call__(self, *shape: int) -> torch.Tensor:
        return 0.3 * torch.randn(*shape, generator=self.generator)

    def order(self, n: int) -> torch.Tensor:
        return torch.randperm(n, generator=self.generator)


def linear(weight: torch.Tensor, bias: torch.Tensor | None = None) -> nn.Linear:
    """A plain layer with given weights."""
    layer = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None, dtype=weight.dtype)
    layer.weight = nn.Parameter(weight.clone())
    if bias is not None:
        layer.bias = nn.Parameter(bias.clone())
    return layer


def swap_blocks(draw: Draw, out: int, inputs: int) -> torch.Tensor:
    """(2 out, 2 inputs): commutes with the exchange of halves on both sides."""
    a, b = draw(out, inputs), draw(out, inputs)
    return torch.cat([torch.cat([a, b], 1), torch.cat([b, a], 1)])


def mirror_mlp(
    hidden: int = 64,
    layers: int = 2,
    seed: int = 0,
    activation: Callable[[], nn.Module] = nn.ReLU,
    between: Callable[[int], nn.Module] | None = None,
    value: bool = False,
) -> nn.Module:
    """An MLP that is equivariant under `mirror`, hidden units in random order, nothing declared."""
    draw = Draw(seed)
    half = hidden // 2
    order = draw.order(hidden)
    first, bias = draw(half, 4), draw(half)
    modules: list[nn.Module] = [linear(torch.cat([first, -first])[order], torch.cat([bias, bias])[order])]
    for _ in range(layers - 1):
        modules += [between(hidden)] if between else []
        modules.append(activation())
        new, bias = draw.order(hidden), draw(half)
        weight = swap_blocks(draw, half, half)[new][:, order] * (8 / hidden) ** 0.5
        modules.append(linear(weight, torch.cat([bias, bias])[new]))
        order = new
    modules += [between(hidden)] if between else []
    modules.append(activation())
    policy = linear(swap_blocks(draw, 1, half)[:, order], draw(1).repeat(2))
    if not value:
        return nn.Sequential(*modules, policy)
    row = draw(1, half)
    return Heads(nn.Sequential(*modules), policy, linear(torch.cat([row, row], 1)[:, order], draw(1)))


class Heads(nn.Module):
    """A body with a policy and a value head."""

    def __init__(self, body: nn.Module, policy: nn.Module, value: nn.Module) -> None:
        super().__init__()
        self.body, self.policy, self.value = body, policy, value

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        hidden = self.body(x)
        return self.policy(hidden), self.value(hidden)


def lifted(filters: torch.Tensor) -> torch.Tensor:
    """(out, in, k, k) to (4 out, in, k, k): the four turns of every filter."""
    return torch.stack([torch.rot90(filters, g, (2, 3)) for g in range(4)], 1).reshape(-1, *filters.shape[1:])


def group_filters(filters: torch.Tensor) -> torch.Tensor:
    """(out, in, 4, k, k) to (4 out, 4 in, k, k): commutes with turns that also roll the group axis."""
    out, inputs, _, k, _ = filters.shape
    weight = torch.zeros(out, 4, inputs, 4, k, k, dtype=filters.dtype)
    for g in range(4):
        for h in range(4):
            weight[:, g, :, h] = torch.rot90(filters[:, :, (h - g) % 4], g, (2, 3))
    return weight.reshape(4 * out, 4 * inputs, k, k)


def group_matrix(blocks: torch.Tensor) -> torch.Tensor:
    """(out, in, 4) to (4 out, 4 in): commutes with the roll of both group axes."""
    out, inputs, _ = blocks.shape
    weight = torch.zeros(out, 4, inputs, 4, dtype=blocks.dtype)
    for g in range(4):
        for h in range(4):
            weight[:, g, :, h] = blocks[:, :, (h - g) % 4]
    return weight.reshape(4 * out, 4 * inputs)


def conv(weight: torch.Tensor, bias: torch.Tensor, **options: Any) -> nn.Conv2d:
    """A plain convolution with given weights."""
    groups = options.get("groups", 1)
    layer = nn.Conv2d(weight.shape[1] * groups, weight.shape[0], tuple(weight.shape[2:]), **options)
    layer.weight, layer.bias = nn.Parameter(weight.clone()), nn.Parameter(bias.clone())
    return layer


class GridNet(nn.Module):
    """A C4 convolutional network in the shape of the paper's grid-world network, with places for other layers.

    Args:
        kernel: side of the first filters.
        stride: of the first convolution.
        padding: of the first convolution.
        middle: a layer between the first convolution and its activation.
        pool: what makes vectors of images.
        order: rearranges the five actions of the head.
        seed: of the weights.
    """

    def __init__(
        self,
        kernel: int = 7,
        stride: int = 2,
        padding: Any = 0,
        *,
        middle: nn.Module | None = None,
        pool: nn.Module | None = None,
        order: list[int] | None = None,
        channels: int = 4,
        seed: int = 0,
    ) -> None:
        super().__init__()
        draw = Draw(seed)
        c = channels
        self.conv1 = conv(
            lifted(draw(c, 1, kernel, kernel)), draw(c).repeat_interleave(4), stride=stride, padding=padding
        )
        self.middle = middle or nn.Identity()
        self.conv2 = conv(group_filters(draw(2 * c, c, 4, 3, 3)), draw(2 * c).repeat_interleave(4))
        self.pool = pool or nn.AdaptiveMaxPool2d(1)
        self.hidden = linear(group_matrix(draw(8, 2 * c, 4)), draw(8).repeat_interleave(4))
        head = torch.zeros(5, 8, 4)
        head[0] = draw(8)[:, None]
        turning = draw(8, 4)
        for action in range(4):
            for h in range(4):
                head[1 + action, :, h] = turning[:, (h - action) % 4]
        head = head if order is None else head[order]
        self.policy = linear(head.reshape(5, 32), torch.tensor([0.3, 0.1, 0.1, 0.1, 0.1]))
        self.value = linear(draw(8).repeat_interleave(4)[None], draw(1))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = torch.relu(self.middle(self.conv1(x)))
        x = torch.relu(self.conv2(x))
        x = torch.relu(self.hidden(self.pool(x).flatten(1)))
        return self.policy(x), self.value(x)


class Lambda(nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., Any], *modules: nn.Module) -> None:
        super().__init__()
        self.function = function
        self.inner = nn.ModuleList(modules)

    def forward(self, x: torch.Tensor) -> Any:
        return self.function(x, *self.inner)
