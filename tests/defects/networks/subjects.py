"""Correct networks that must not be accused, and planted faults that must be found with the right layer."""

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
    flip,
    linear,
    mirror,
    mirror_mlp,
    swap_blocks,
    turn,
)
from torch import nn

from symcheck.groups import catalog
from symcheck.symmetry.symmetry import Symmetry

GRID = {"input_shape": (1, 21, 21)}


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


CORRECT: list[Correct] = [
    Correct("mlp", mirror_mlp, fast=True),
    Correct("two heads", lambda: mirror_mlp(value=True), fast=True),
    Correct("four layers", lambda: mirror_mlp(layers=4)),
    Correct("float64 weights", lambda: in_double(mirror_mlp())),
    Correct("bfloat16 weights", lambda: mirror_mlp().bfloat16()),
    *[
        Correct(f"activation {a.__name__}", lambda a=a: mirror_mlp(activation=a))
        for a in (nn.Tanh, nn.ELU, nn.GELU, nn.SiLU, nn.LeakyReLU, nn.Sigmoid, nn.Softplus, nn.Hardtanh, nn.PReLU)
    ],
    Correct("dropout in eval", lambda: mirror_mlp(between=lambda n: nn.Dropout(0.5))),
    Correct(
        "whole channels dropped, in eval", lambda: GridNet(middle=nn.Dropout2d(0.5)), turn, options=GRID, fast=True
    ),
    Correct("layer norm", lambda: mirror_mlp(between=nn.LayerNorm), fast=True),
    Correct("rms norm", lambda: mirror_mlp(between=nn.RMSNorm)),
    Correct("softmax output", lambda: nn.Sequential(*mirror_mlp(), nn.Softmax(-1))),
    Correct("log softmax output", lambda: nn.Sequential(*mirror_mlp(), nn.LogSoftmax(-1))),
    Correct(
        "dictionary output",
        lambda: Lambda(lambda x, n: dict(zip(("a", "v"), n(x), strict=True)), mirror_mlp(value=True)),
    ),
    Correct("rescaled units", rescaled, verdict="passed", fast=True),
    Correct("numbers one by one", DeepSet, exchange, options={}, fast=True),
    Correct("duplicate units", with_duplicates, fast=True),
    Correct("units that never fire", with_never_firing_units, verdict="passed", fast=True),
    Correct("dead units", with_dead_units, verdict="passed", fast=True),
    Correct("symmetrised", Symmetrised, verdict="passed", fast=True),
    Correct("residual", ResidualMlp, fast=True),
    Correct("residual with a zero branch", lambda: ResidualMlp(zero=True), fast=True),
    Correct("concatenation", ConcatMlp, fast=True),
    Correct(
        "a signed action",
        signed_action_net,
        signed_action,
        options={"outputs": ("action", "invariant")},
        fast=True,
    ),
    Correct("odd tanh", lambda: odd_net(nn.Tanh), odd, fast=True),
    Correct("odd softsign", lambda: odd_net(nn.Softsign), odd),
    Correct("rotation by 120 degrees", rotation_net, rotation, fast=True),
    Correct(
        "rotation by 120 degrees, float32", lambda: rotation_net(torch.float32), rotation, verdict="passed", fast=True
    ),
    Correct("affine mirror", valley_net, valley, fast=True),
    Correct(
        "linear only",
        lambda: nn.Sequential(linear(swap_blocks(Draw(), 2, 2)), linear(swap_blocks(Draw(1), 1, 2))),
        lambda: Symmetry("halves", catalog.cyclic(2), observation=[[2, 3, 0, 1]], action=[[1, 0]]),
    ),
    Correct("grid world", GridNet, turn, options=GRID, fast=True),
    Correct("grid world, average pool", lambda: GridNet(pool=nn.AdaptiveAvgPool2d(1)), turn, options=GRID),
    Correct("grid world, amax", lambda: GridNet(pool=Lambda(lambda x: x.amax((-2, -1)))), turn, options=GRID),
    Correct("grid world, mean", lambda: GridNet(pool=Lambda(lambda x: x.mean((-2, -1)))), turn, options=GRID),
    Correct("grid world, fresh batch norm", lambda: GridNet(middle=nn.BatchNorm2d(16)), turn, options=GRID),
    Correct("grid world, shared batch norm", lambda: trained_batch_norm(True), turn, options=GRID),
    Correct("grid world, group norm", lambda: GridNet(middle=nn.GroupNorm(4, 16)), turn, options=GRID),
    Correct("grid world, instance norm", lambda: GridNet(middle=nn.InstanceNorm2d(16)), turn, options=GRID),
    Correct(
        "grid world, reflect pad",
        lambda: GridNet(stride=1, padding=3, middle=nn.ReflectionPad2d(1)),
        turn,
        options=GRID,
    ),
    Correct("grid world, circular conv", lambda: nn.Sequential(nn.ZeroPad2d(1), GridNet(5, 2)), turn, options=GRID),
    Correct(
        "max pool on an even size",
        lambda: GridNet(5, middle=nn.MaxPool2d(2)),
        turn,
        options={"input_shape": (1, 35, 35)},
        fast=True,
    ),
    Correct("average pool with a fitting stride", lambda: GridNet(5, 1, middle=nn.AvgPool2d(3, 2)), turn, options=GRID),
    Correct("nearest upsampling", lambda: GridNet(middle=nn.Upsample(scale_factor=2)), turn, options=GRID, fast=True),
    Correct("stride 2, kernel 3, padding 1 on an odd size", lambda: GridNet(3, 2, 1), turn, options=GRID),
    Correct("same padding", lambda: GridNet(5, 1, "same"), turn, options=GRID),
    Correct("flip, even size", flip_conv, flip, options=FLIP),
    Correct("flip, dilation", lambda: flip_conv({"dilation": 2}), flip, options=FLIP),
    Correct("flip, two convolutions", lambda: two_convs(nn.Identity(), nn.MaxPool2d(2)), flip, options=FLIP, fast=True),
    Correct("flip, grouped convolution", lambda: grouped(False), flip, options=FLIP),
    Correct(
        "flip, circular padding", lambda: flip_conv({"padding": 1, "padding_mode": "circular"}), flip, options=FLIP
    ),
    Correct(
        "flip, replicate padding", lambda: flip_conv({"padding": 1, "padding_mode": "replicate"}), flip, options=FLIP
    ),
    Correct("convolution along a line", lambda: one_dimensional(False), reversed_vector, fast=True),
    Correct("autocast", Autocast, verdict="proved"),
    Correct("bfloat16 inside", BfloatInside, fast=True),
    Correct(
        "permute and reshape",
        lambda: Lambda(lambda x, n: n(x.reshape(-1, 2, 2).permute(0, 2, 1).permute(0, 2, 1).flatten(1)), mirror_mlp()),
    ),
    Correct("scaled input", lambda: Lambda(lambda x, n: n(x / 255.0), mirror_mlp())),
    Correct(
        "control flow on the input",
        lambda: Lambda(lambda x, n: n(x) if x.sum() > -1e9 else -n(x), mirror_mlp()),
        verdict="passed",
        fast=True,
    ),
    Correct(
        "through NumPy",
        lambda: Lambda(lambda x, n: torch.from_numpy(n(x).detach().numpy()), mirror_mlp()),
        verdict="passed",
    ),
    Correct("weight sharing", lambda: ResidualMlp(shared=True)),
    Correct("in place", lambda: mirror_mlp(activation=lambda: nn.ReLU(inplace=True))),
    Correct(
        "weight norm",
        lambda: (lambda n: (torch.manual_seed(0), setattr(n, "2", nn.utils.parametrizations.weight_norm(n[2])), n)[-1])(
            mirror_mlp()
        ),
        verdict="passed",
    ),
]

FAULTS: list[Fault] = [
    Fault("a plain MLP", plain, "0", "units are not permuted", fast=True),
    *[
        Fault(
            f"layer {layer}: one weight off by {size:g}",
            lambda l=layer, s=size: weight_off(l, s),
            layer,
            fast=size in (1e-2, 1e-6),
        )
        for layer in ("0", "2", "4")
        for size in (1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
    ],
    *[
        Fault(f"layer {layer}: one bias off by 1e-4", lambda l=layer: bias_off(l, 1e-4), layer)
        for layer in ("0", "2", "4")
    ],
    Fault("value head off", lambda: weight_off("value", 1e-4, mirror_mlp(value=True)), "value", fast=True),
    Fault("an ordinary head", free_head, "4"),
    Fault(
        "batch norm trained on one side",
        lambda: trained_batch_norm(False),
        "middle",
        "batch_norm over group channels",
        turn,
        GRID,
        fast=True,
    ),
    Fault(
        "group norm, affine of one channel",
        lambda: GridNet(middle=norm_affine(nn.GroupNorm(4, 16), True)),
        "middle",
        "",
        turn,
        GRID,
    ),
    Fault("group norm that splits orbits", lambda: GridNet(middle=nn.GroupNorm(8, 16)), "middle", "", turn, GRID),
    Fault(
        "layer norm, affine of one unit", lambda: mirror_mlp(between=lambda n: norm_affine(nn.LayerNorm(n), True)), "1"
    ),
    Fault(
        "6x6 filters, stride 2, odd size",
        lambda: GridNet(6),
        "conv1",
        "stride 2 does not commute with rot90",
        turn,
        GRID,
        fast=True,
    ),
    Fault(
        "3x3 filters, stride 2, even size",
        lambda: GridNet(3, 2, 1),
        "conv1",
        "sizes that would",
        turn,
        {"input_shape": (1, 20, 20)},
    ),
    Fault(
        "max pool on an odd size",
        lambda: GridNet(5, middle=nn.MaxPool2d(2)),
        "middle",
        "sizes that would: 16, 18",
        turn,
        {"input_shape": (1, 37, 37)},
        fast=True,
    ),
    Fault(
        "average pool on an odd size",
        lambda: GridNet(5, middle=nn.AvgPool2d(2)),
        "middle",
        "sizes that would",
        turn,
        {"input_shape": (1, 37, 37)},
    ),
    Fault(
        "same padding of an even kernel",
        lambda: GridNet(4, 1, "same"),
        "conv1",
        "never commutes",
        turn,
        GRID,
        fast=True,
    ),
    Fault(
        "flip, stride 2 on an even size",
        lambda: flip_conv({"stride": 2, "padding": 1}),
        "0",
        "flip_lr",
        flip,
        FLIP,
        fast=True,
    ),
    Fault("asymmetric zero padding", lambda: two_convs(nn.ZeroPad2d((1, 0, 0, 0)), nn.Identity()), "0", "", flip, FLIP),
    Fault(
        "asymmetric pooling padding",
        lambda: two_convs(nn.Identity(), nn.Sequential(nn.ZeroPad2d((1, 0, 0, 0)), nn.MaxPool2d(3))),
        "3.0",
        "",
        flip,
        FLIP,
    ),
    Fault(
        "conv1: one filter weight off",
        lambda: weight_off("conv1", 1e-4, GridNet(), (3,)),
        "conv1",
        "",
        turn,
        GRID,
        fast=True,
    ),
    Fault("conv2: one filter weight off", lambda: weight_off("conv2", 1e-5, GridNet(), (7,)), "conv2", "", turn, GRID),
    Fault("hidden: one weight off", lambda: weight_off("hidden", 1e-5, GridNet(), (7,)), "hidden", "", turn, GRID),
    Fault("value: one weight off", lambda: weight_off("value", 1e-4, GridNet(), (0,)), "value", "", turn, GRID),
    Fault("conv bias off", lambda: bias_off("conv1", 1e-3, GridNet()), "conv1", "", turn, GRID),
    Fault("grouped filters off", lambda: grouped(True), "3", "", flip, FLIP),
    Fault("a line's filters off", lambda: one_dimensional(True), "1", "", reversed_vector),
    Fault("missing inverse", one_layer_inverse, "0", "equivariant to the inverse action", rolled, fast=True),
    Fault(
        "actions in clockwise order",
        lambda: GridNet(order=[0, 1, 4, 3, 2]),
        "policy",
        "inverse permutation [0, 4, 1, 2, 3]",
        turn,
        GRID,
        fast=True,
    ),
    Fault("two actions exchanged", lambda: GridNet(order=[0, 2, 1, 3, 4]), "policy", "action order", turn, GRID),
    Fault(
        "an output that does not move",
        lambda: nn.Sequential(*mirror_mlp(), Lambda(lambda y: torch.stack([y.sum(-1), 2 * y.sum(-1)], -1))),
        "4",
        "does not move at all",
    ),
    Fault("one input's sign", MissingInput, "first", "sign +1 on input component 3", fast=True),
    Fault("ReLU on signs", lambda: odd_net(nn.ReLU), "1", "not odd", odd),
    Fault("a bias in an odd network", lambda: odd_net(nn.Tanh, bias=True), "0", "", odd),
    Fault(
        "flattened while the group axis is there",
        flattened_too_early,
        "hidden",
        "flattened right before it",
        turn,
        GRID,
        fast=True,
    ),
    Fault("positional embedding", PositionalEmbedding, "", "", turn, GRID, fast=True),
    Fault("NaN on some inputs", NanBelow, "root", "root or logarithm", fast=True),
    Fault("a shift of one output", lambda: lambda_on_mlp(lambda y: y + torch.tensor([0.1, 0.0])), ""),
    Fault("a scale of one output", lambda: lambda_on_mlp(lambda y: y * torch.tensor([1.0, 1.01])), ""),
    Fault("outputs cut by an order", lambda: lambda_on_mlp(lambda y: torch.cumsum(y, -1)), ""),
    Fault(
        "control flow hides a fault",
        lambda: Lambda(lambda x, n, m: n(x) if x[0, 0] > 0 else m(x), mirror_mlp(), mirror_mlp(seed=1)),
        "",
        options={},
    ),
    Fault(
        "nearest upsampling to an odd size",
        lambda: GridNet(middle=nn.Upsample(size=(11, 11))),
        "middle",
        "",
        turn,
        GRID,
    ),
    Fault(
        "bilinear upsampling by an uneven factor",
        lambda: GridNet(middle=nn.Upsample(scale_factor=1.3, mode="bilinear")),
        "middle",
        "does not commute with rot90",
        turn,
        GRID,
        fast=True,
    ),
    Fault(
        "output padding on one side",
        lambda: two_convs(nn.Identity(), enlarging(1)),
        "3",
        "never commutes",
        flip,
        FLIP,
        fast=True,
    ),
    Fault(
        "a shifted image",
        lambda: two_convs(Lambda(lambda x: torch.roll(x, 1, -1)), nn.Identity()),
        "0",
        "a shift",
        flip,
        FLIP,
    ),
    Fault("residual branch off", lambda: weight_off("b", 1e-5, ResidualMlp()), "b", fast=True),
    Fault(
        "strict: rounded",
        lambda: weight_off("2", 1e-9, mirror_mlp().double()),
        "2",
        options={"strict": True},
        fast=True,
    ),
    Fault("rotation off", lambda: weight_off("0", 1e-5, rotation_net()), "0", "", rotation),
    Fault(
        "affine mirror without its offset",
        valley_net,
        "0",
        "",
        lambda: Symmetry("m", catalog.cyclic(2), observation=[[-1, -1]], action=[[2, 1, 0]]),
    ),
]
