"""What the tables of correct and of faulty networks are made of: their rows, and builders of networks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from net_catalogue import (
    Draw,
    GridNet,
    Heads,
    Lambda,
    conv,
    linear,
    mirror,
    mirror_mlp,
    swap_blocks,
)
from torch import nn

from symcheck.groups import catalog
from symcheck.symmetry.symmetry import Symmetry

GRID = {"input_shape": (1, 21, 21)}
FEW = {"samples": 500}  # enough where every sample shows the fault


@dataclass(frozen=True)
class Correct:
    """A network that has its symmetry.

    Attributes:
        name: for the test's id.
        net: builds it.
        symmetry: builds the claim.
        verdict: proved, or passed where the proof cannot follow.
        options: of the run.
        fast: whether it runs in the fast tier.
    """

    name: str
    net: Callable[[], nn.Module]
    symmetry: Callable[[], Symmetry] = mirror
    verdict: str = "proved"
    options: dict[str, Any] = field(default_factory=dict)
    fast: bool = False


@dataclass(frozen=True)
class Fault:
    """A network with a planted fault.

    Attributes:
        name: for the test's id.
        net: builds it.
        location: the layer to be named; "" where no module holds the fault.
        cause: a part of a likely cause; "" where none is asked for.
        symmetry: builds the claim.
        options: of the run.
        fast: whether it runs in the fast tier.
    """

    name: str
    net: Callable[[], nn.Module]
    location: str
    cause: str = ""
    symmetry: Callable[[], Symmetry] = mirror
    options: dict[str, Any] = field(default_factory=dict)
    fast: bool = False


def in_double(net: nn.Module) -> nn.Module:
    return net.double()


def with_duplicates() -> nn.Module:
    """Two units that are the same, with outgoing weights that differ."""
    draw = Draw(3)
    w, b = draw(3, 4), draw(3)
    first = torch.cat([w, w[:1], -w, -w[:1]])
    v = draw(1, 4)
    u = draw(1, 4)
    # mirror images of unit 0 carry the sum of its two outgoing weights, split in another way
    row = torch.cat([v, u], 1)
    other = torch.cat([u, v], 1).clone()
    other[0, 0] += 0.25
    other[0, 3] -= 0.25
    return nn.Sequential(linear(first, torch.cat([b, b[:1], b, b[:1]])), nn.ReLU(), linear(torch.cat([row, other])))


def rescaled() -> nn.Module:
    """Hidden units scaled by positive factors that the next layer takes back: ReLU does not notice."""
    net = mirror_mlp()
    factors = 0.5 + torch.rand(64, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        net[0].weight.mul_(factors[:, None])
        net[0].bias.mul_(factors)
        net[2].weight.div_(factors)
    return net


class DeepSet(nn.Module):
    """Every number embedded alone, summed, and read out beside its own embedding."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.read = nn.Linear(1, 8), nn.Linear(16, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        each = torch.relu(self.embed(x[..., None]))
        whole = each.sum(-2, keepdim=True).expand_as(each)
        return self.read(torch.cat([each, whole], -1)).squeeze(-1)


def exchange() -> Symmetry:
    """All exchanges of four numbers, actions with them."""
    images = [[1, 0, 2, 3], [1, 2, 3, 0]]
    return Symmetry("exchange", catalog.symmetric(4), observation=images, action=images)


def with_dead_units() -> nn.Module:
    """Units whose outgoing weights are zero, with weights of their own."""
    net = mirror_mlp()
    with torch.no_grad():
        net[2].weight[:, [5, partner(net, 5)]] = 0.0
        net[0].weight[5] += 1.0
    return net


def partner(net: nn.Module, unit: int) -> int:
    """The unit of the first layer that is the mirror image of another."""
    return int((net[0].weight + net[0].weight[unit]).abs().sum(1).argmin())


def with_never_firing_units() -> nn.Module:
    net = mirror_mlp()
    with torch.no_grad():
        other = partner(net, 5)
        net[0].weight[[5, other]] = 0.0
        net[0].bias[5], net[0].bias[other] = -1.0, -2.0
    return net


class Symmetrised(nn.Module):
    """(f(x) + K^-1 f(L x)) / 2 of any network: symmetric although no layer is."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.inner = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 0.5 * (self.inner(x) + self.inner(-x).flip(-1))


class ResidualMlp(nn.Module):
    """h + f(h), twice."""

    def __init__(self, seed: int = 0, zero: bool = False, shared: bool = False) -> None:
        super().__init__()
        draw = Draw(seed)
        first, bias = draw(16, 4), draw(16)
        self.embed = linear(torch.cat([first, -first]), torch.cat([bias, bias]))
        self.a = linear(swap_blocks(draw, 16, 16), draw(16).repeat(2))
        self.b = linear(swap_blocks(draw, 16, 16), draw(16).repeat(2))
        if shared:
            self.b = self.a
        if zero:
            nn.init.zeros_(self.b.weight)
            nn.init.zeros_(self.b.bias)
        self.head = linear(swap_blocks(draw, 1, 16), draw(1).repeat(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = torch.relu(self.embed(x))
        h = h + self.b(torch.relu(self.a(h)))
        return self.head(torch.relu(h))


class ConcatMlp(nn.Module):
    """The input beside the hidden units."""

    def __init__(self) -> None:
        super().__init__()
        draw = Draw(1)
        first = draw(8, 4)
        self.embed = linear(torch.cat([first, -first]))
        w, v = draw(1, 8), draw(1, 8)
        skip = draw(1, 4)
        self.head = linear(torch.cat([torch.cat([w, v, skip], 1), torch.cat([v, w, -skip], 1)]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(torch.cat([torch.relu(self.embed(x)), x], dim=-1))


def odd_net(activation: Callable[[], nn.Module], bias: bool = False) -> nn.Module:
    """A plain net without biases is odd; its two outputs are antisymmetric under x -> -x as [-1, -1] signs."""
    draw = Draw(2)
    return nn.Sequential(
        linear(draw(16, 4), draw(16) if bias else None),
        activation(),
        linear(draw(16, 16)),
        activation(),
        linear(draw(2, 16)),
    )


def signed_action() -> Symmetry:
    """One number stays, two are negated, and so is the action: at fixed points the action vanishes."""
    return Symmetry("pendulum", catalog.cyclic(2), observation=[[1, -1, -1]], action=[[-1]])


def signed_action_net() -> nn.Module:
    draw = Draw(13)
    w, b = draw(16, 3), draw(16)
    first = linear(torch.cat([w, w * torch.tensor([1.0, -1.0, -1.0])]), torch.cat([b, b]))
    u, v = draw(1, 16), draw(1, 16)
    heads = Heads(nn.Sequential(first, nn.ReLU()), linear(torch.cat([u, -u], 1)), linear(torch.cat([v, v], 1), draw(1)))
    return heads.float()


def odd() -> Symmetry:
    return Symmetry("odd", catalog.cyclic(2), observation=[[-1, -1, -1, -1]], action=[[-1, -1]])


def rotation() -> Symmetry:
    """The plane turned by 120 degrees, three actions in a cycle: an action that no permutation of inputs gives."""
    c, s = np.cos(2 * np.pi / 3), np.sin(2 * np.pi / 3)
    return Symmetry("third", catalog.cyclic(3), observation=[[[c, -s], [s, c]]], action=[[1, 2, 0]])


def rotation_net(dtype: torch.dtype = torch.float64) -> nn.Module:
    c, s = np.cos(2 * np.pi / 3), np.sin(2 * np.pi / 3)
    R = torch.tensor([[c, -s], [s, c]], dtype=torch.float64)
    draw = Draw(5)
    w = draw(8, 2).double()
    first = torch.stack([w @ torch.linalg.matrix_power(R.T, g) for g in range(3)], 1).reshape(24, 2)
    blocks = draw(8, 3).double()
    head = torch.stack([torch.stack([blocks[:, (h - g) % 3] for h in range(3)], 1).reshape(-1) for g in range(3)])
    bias = draw(8).double().repeat_interleave(3)
    return nn.Sequential(linear(first, bias), nn.ReLU(), linear(head)).to(dtype)


def valley() -> Symmetry:
    """Position mirrored about -0.5, velocity negated: an affine map."""
    entry = {"signs": [-1, -1], "offset": [-1.0, 0.0]}
    return Symmetry("valley", catalog.cyclic(2), observation=[entry], action=[[2, 1, 0]])


def valley_net() -> nn.Module:
    draw = Draw(6)
    w, b = draw(8, 2), draw(8)
    # W x + b at the mirrored x is -W x + b + W o with o = (-1, 0): its partner's bias is b + W o
    first = torch.cat([w, -w]).double()
    bias = torch.cat([b.double(), b.double() - w[:, 0].double()])
    u, v, m = draw(1, 8), draw(1, 8), draw(1, 8)
    head = torch.cat([torch.cat([u, v], 1), torch.cat([m, m], 1), torch.cat([v, u], 1)]).double()
    return nn.Sequential(linear(first, bias), nn.ReLU(), linear(head))


def flip_conv(size_options: dict[str, Any] | None = None, head: nn.Module | None = None) -> nn.Module:
    """One conv of filters in mirrored pairs, then a pool and a head, under `flip`."""
    draw = Draw(7)
    w, b = draw(4, 2, 3, 3), draw(4)
    layer = conv(torch.cat([w, w.flip(-1)]), torch.cat([b, b]), **(size_options or {}))
    return nn.Sequential(
        layer, nn.ReLU(), head or nn.AdaptiveAvgPool2d(1), nn.Flatten(), linear(swap_blocks(draw, 1, 4))
    )


def two_convs(first: nn.Module, middle: nn.Module) -> nn.Module:
    draw = Draw(8)
    w, b = draw(4, 2, 3, 3), draw(4)
    one = conv(torch.cat([w, w.flip(-1)]), torch.cat([b, b]), padding=1)
    a, c = draw(4, 4, 3, 3), draw(4, 4, 3, 3)
    two_weight = torch.cat([torch.cat([a, c], 1), torch.cat([c.flip(-1), a.flip(-1)], 1)])
    two = conv(two_weight, draw(4).repeat(2), padding=1)
    head = linear(swap_blocks(draw, 1, 4))
    return nn.Sequential(first, one, nn.ReLU(), middle, two, nn.ReLU(), nn.AdaptiveMaxPool2d(1), nn.Flatten(), head)


FLIP = {"input_shape": (2, 8, 8)}
FLIP9 = {"input_shape": (2, 9, 9)}


class Autocast(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = mirror_mlp()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return self.inner(x).float()


class BfloatInside(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = mirror_mlp()
        self.first[2].bfloat16()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = torch.relu(self.first[0](x)).to(torch.bfloat16)
        h = torch.relu(self.first[2](h)).float()
        return self.first[4](h)


def lambda_on_mlp(function: Callable[[torch.Tensor], torch.Tensor]) -> nn.Module:
    return Lambda(lambda x, net: function(net(x)), mirror_mlp())


def trained_batch_norm(share: bool) -> nn.Module:
    """A batch norm that saw images brighter at the top; its statistics shared along the group axis or not."""
    net = GridNet(middle=nn.BatchNorm2d(16))
    generator = torch.Generator().manual_seed(0)
    net.train()
    for _ in range(20):
        x = torch.rand(8, 1, 21, 21, generator=generator)
        x[:, :, :10] += 1.0
        net(x)
    if share:
        for name in ("running_mean", "running_var"):
            found = getattr(net.middle, name)
            found.copy_(found.reshape(4, 4).mean(1, keepdim=True).expand(4, 4).reshape(-1))
    return net.eval()


def weight_off(layer: str, relative: float, net: nn.Module | None = None, entry: tuple[int, ...] = (0, 3)) -> nn.Module:
    """One weight off by a relative amount: the largest of the row (or filter) of `entry`."""
    net = net or mirror_mlp()
    weight = net.get_submodule(layer).weight
    with torch.no_grad():
        row = weight[entry[0]].reshape(-1)
        row[int(row.abs().argmax())] *= 1 + relative
    return net


def bias_off(layer: str, relative: float, net: nn.Module | None = None) -> nn.Module:
    net = net or mirror_mlp()
    with torch.no_grad():
        bias = net.get_submodule(layer).bias
        bias[int(bias.abs().argmax())] *= 1 + relative
    return net


def norm_affine(norm: nn.Module, spoil: bool) -> nn.Module:
    if spoil:
        with torch.no_grad():
            norm.weight[0] += 0.3
    return norm


def plain(seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 2))


def free_head() -> nn.Module:
    """An equivariant body with an ordinary head."""
    torch.manual_seed(0)
    return nn.Sequential(*mirror_mlp()[:-1], nn.Linear(64, 2))


def flattened_too_early() -> nn.Module:
    """Images flattened into an ordinary linear layer while the group axis is still there."""
    net = GridNet(pool=nn.Flatten())
    torch.manual_seed(0)
    net.hidden = nn.Linear(32 * 6 * 6, 32)
    return net


class FlattenedHead(nn.Module):
    """Images flattened into the head itself; ordinary, or tied along orbits with its actions in the other direction."""

    def __init__(self, *, tied: bool = False) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.conv = GridNet(3, 1).conv1
        self.head = nn.Linear(16 * 19 * 19, 5)
        if not tied:
            return
        with torch.no_grad():
            image = self.head.weight[1].reshape(4, 4, 19, 19)
            turned = [torch.rot90(torch.roll(image, k, 1), k, (2, 3)).reshape(-1) for k in range(4)]
            self.head.weight[1:] = torch.stack([turned[0], *turned[:0:-1]])
            self.head.weight[0] = torch.stack(turned).mean(0)
            self.head.bias[1:] = 0.1

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(torch.relu(self.conv(x)).flatten(1))


class PositionalEmbedding(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = GridNet()
        self.position = nn.Parameter(0.3 * torch.randn(1, 1, 21, 21, generator=torch.Generator().manual_seed(1)))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self.net(x + self.position)


class MissingInput(nn.Module):
    """A network that was built for inputs whose last component keeps its sign."""

    def __init__(self) -> None:
        super().__init__()
        draw = Draw(9)
        w = draw(16, 4)
        partner = w * torch.tensor([-1.0, -1.0, -1.0, 1.0])
        b = draw(16)
        self.first = linear(torch.cat([w, partner]), torch.cat([b, b]))
        self.last = linear(swap_blocks(draw, 1, 16), draw(1).repeat(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(torch.relu(self.first(x)))


def one_layer_inverse() -> nn.Module:
    """One linear layer on C4's regular representation, built with g where g^-1 belongs."""
    draw = Draw(10)
    w = draw(4)
    weight = torch.stack([torch.stack([w[(h + g) % 4] for h in range(4)]) for g in range(4)])
    return nn.Sequential(linear(weight))


def rolled() -> Symmetry:
    return Symmetry("roll", catalog.cyclic(4), observation=[[1, 2, 3, 0]], action=[[1, 2, 3, 0]])


class NanBelow(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = mirror_mlp()
        self.root = Lambda(torch.sqrt)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.root(self.net(x) + 0.5)


def grouped(spoil: bool) -> nn.Module:
    """A depthwise convolution: its filters are mirror images in pairs."""
    draw = Draw(11)
    w = draw(4, 1, 3, 3)
    layer = conv(torch.cat([w, w.flip(-1)]), draw(4).repeat(2), groups=8, padding=1)
    if spoil:
        with torch.no_grad():
            layer.weight[2, 0, 0, 0] += 0.01
    return two_convs(nn.Identity(), layer)


def enlarging(padding: int) -> nn.Module:
    """A transposed convolution whose filters are mirror images in pairs on both sides."""
    draw = Draw(14)
    a, c = draw(4, 4, 3, 3), draw(4, 4, 3, 3)
    layer = nn.ConvTranspose2d(8, 8, 3, stride=2, padding=1, output_padding=padding)
    weight = torch.cat([torch.cat([a, c], 1), torch.cat([c.flip(-1), a.flip(-1)], 1)])
    layer.weight, layer.bias = nn.Parameter(weight), nn.Parameter(draw(4).repeat(2))
    return layer


def one_dimensional(spoil: bool) -> nn.Module:
    draw = Draw(12)
    w = draw(4, 1, 5)
    layer = nn.Conv1d(1, 8, 5, padding=2)
    layer.weight = nn.Parameter(torch.cat([w, w.flip(-1)]))
    layer.bias = nn.Parameter(draw(4).repeat(2))
    if spoil:
        with torch.no_grad():
            layer.weight[1, 0, 0] *= 1.01
    tail = linear(swap_blocks(draw, 1, 4))
    return nn.Sequential(
        nn.Unflatten(1, (1, 8)), layer, nn.Tanh(), nn.MaxPool1d(2), nn.AdaptiveAvgPool1d(1), nn.Flatten(), tail
    )


def reversed_vector() -> Symmetry:
    return Symmetry("reverse", catalog.cyclic(2), observation=[[7, 6, 5, 4, 3, 2, 1, 0]], action=[[1, 0]])
