"""Planted faults that must be found with the right layer."""

from __future__ import annotations

import torch
from net_catalogue import GridNet, Lambda, flip, mirror_mlp, turn
from subjects import (
    FEW,
    FLIP,
    GRID,
    Fault,
    FlattenedHead,
    MissingInput,
    NanBelow,
    PositionalEmbedding,
    ResidualMlp,
    bias_off,
    enlarging,
    flattened_too_early,
    flip_conv,
    free_head,
    grouped,
    lambda_on_mlp,
    norm_affine,
    odd,
    odd_net,
    one_dimensional,
    one_layer_inverse,
    plain,
    reversed_vector,
    rolled,
    rotation,
    rotation_net,
    trained_batch_norm,
    two_convs,
    valley_net,
    weight_off,
)
from torch import nn

from symcheck.groups import catalog
from symcheck.symmetry.symmetry import Symmetry


def uneven_hardtanh() -> nn.Module:
    return nn.Hardtanh(-0.5, 0.75)


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
        "suitable sizes: ",
        turn,
        {"input_shape": (1, 20, 20)},
    ),
    Fault(
        "max pool on an odd size",
        lambda: GridNet(5, middle=nn.MaxPool2d(2)),
        "middle",
        "suitable sizes: 16, 18",
        turn,
        {"input_shape": (1, 37, 37)},
        fast=True,
    ),
    Fault(
        "average pool on an odd size",
        lambda: GridNet(5, middle=nn.AvgPool2d(2)),
        "middle",
        "suitable sizes: ",
        turn,
        {"input_shape": (1, 37, 37)},
    ),
    Fault(
        "same padding of an even kernel",
        lambda: GridNet(4, 1, "same"),
        "conv1",
        "never commutes",
        turn,
        FEW | GRID,
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
    Fault("missing inverse", one_layer_inverse, "0", "transforms by the inverse action", rolled, fast=True),
    Fault(
        "actions in clockwise order",
        lambda: GridNet(order=[0, 1, 4, 3, 2]),
        "policy",
        "inverse permutation [0, 4, 1, 2, 3]",
        turn,
        GRID,
        fast=True,
    ),
    Fault(
        "two actions exchanged", lambda: GridNet(order=[0, 2, 1, 3, 4]), "policy", "outputs are permuted by", turn, GRID
    ),
    Fault(
        "an output that does not move",
        lambda: nn.Sequential(*mirror_mlp(), Lambda(lambda y: torch.stack([y.sum(-1), 2 * y.sum(-1)], -1))),
        "5",
        "the output is invariant",
    ),
    Fault("one input's sign", MissingInput, "first", "sign +1 on observation[3]", fast=True),
    Fault("ReLU on signs", lambda: odd_net(nn.ReLU), "1", "not odd", odd),
    *[
        Fault(f"{a.__name__} on signs", lambda a=a: odd_net(a), "1", "", odd, fast=True)
        for a in (nn.LeakyReLU, nn.ELU, nn.PReLU, nn.LogSigmoid)
    ],
    Fault("hardtanh between unequal bounds on signs", lambda: odd_net(uneven_hardtanh), "1", "", odd, fast=True),
    Fault("a bias in an odd network", lambda: odd_net(nn.Tanh, bias=True), "0", "", odd),
    Fault(
        "flattened while the group axis is there",
        flattened_too_early,
        "hidden",
        "flattened right before this layer",
        turn,
        GRID,
        fast=True,
    ),
    Fault(
        "images flattened into the head",
        FlattenedHead,
        "head",
        "flattened right before this layer",
        turn,
        GRID,
        fast=True,
    ),
    Fault("a tied head in the other direction", lambda: FlattenedHead(tied=True), "head", "inverse perm", turn, GRID),
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
        FEW | GRID,
        fast=True,
    ),
    Fault(
        "output padding on one side",
        lambda: two_convs(nn.Identity(), enlarging(1)),
        "3",
        "never commutes",
        flip,
        FEW | FLIP,
        fast=True,
    ),
    Fault(
        "a shifted image",
        lambda: two_convs(Lambda(lambda x: torch.roll(x, 1, -1)), nn.Identity()),
        "0",
        "this shift of the image",
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
