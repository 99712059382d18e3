"""Correct networks that must not be accused."""

from __future__ import annotations

import torch
from net_catalogue import Draw, GridNet, Lambda, flip, linear, mirror_mlp, swap_blocks, turn
from subjects import (
    FLIP,
    GRID,
    Autocast,
    BfloatInside,
    ConcatMlp,
    Correct,
    DeepSet,
    ResidualMlp,
    Symmetrised,
    exchange,
    flip_conv,
    grouped,
    in_double,
    odd,
    odd_net,
    one_dimensional,
    rescaled,
    reversed_vector,
    rotation,
    rotation_net,
    signed_action,
    signed_action_net,
    trained_batch_norm,
    two_convs,
    valley,
    valley_net,
    with_dead_units,
    with_duplicates,
    with_never_firing_units,
)
from torch import nn

from symcheck.groups import catalog
from symcheck.symmetry.symmetry import Symmetry

EACH_DAY = (nn.LeakyReLU, nn.ELU, nn.PReLU, nn.Hardtanh, nn.LogSigmoid)
"""Activations that the fast tier tries on permuted units; on signed ones they are among the faults."""
CORRECT: list[Correct] = [
    Correct("mlp", mirror_mlp, fast=True),
    Correct("two heads", lambda: mirror_mlp(value=True), fast=True),
    Correct("four layers", lambda: mirror_mlp(layers=4)),
    Correct("float64 weights", lambda: in_double(mirror_mlp())),
    Correct("bfloat16 weights", lambda: mirror_mlp().bfloat16()),
    *[
        Correct(f"activation {a.__name__}", lambda a=a: mirror_mlp(activation=a), fast=a in EACH_DAY)
        for a in (nn.Tanh, nn.GELU, nn.SiLU, nn.Sigmoid, nn.Softplus, *EACH_DAY)
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
    Correct("dead units", with_dead_units, fast=True),
    Correct("symmetrised", Symmetrised, fast=True),
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
    Correct("odd hardtanh", lambda: odd_net(nn.Hardtanh), odd, fast=True),
    Correct("odd hardshrink", lambda: odd_net(nn.Hardshrink), odd, fast=True),
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
