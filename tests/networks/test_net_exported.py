"""Exported graphs name operators otherwise than torch's functions: they are followed all the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from net_catalogue import Draw, Lambda, conv, flip, linear, mirror, mirror_mlp, swap_blocks
from torch import nn

from symcheck.engine.networks.options import NetOptions
from symcheck.engine.networks.runner import run_net
from symcheck.symmetry.symmetry import Symmetry


def nudged(tensor: torch.Tensor, place: tuple[int, ...], wrong: bool) -> None:
    with torch.no_grad():
        tensor[place] += 1e-5 * wrong


def normed(wrong: bool) -> nn.Module:
    net = mirror_mlp(16, between=nn.LayerNorm)
    nudged(net[1].weight, (3,), wrong)
    return net


def masked(wrong: bool) -> nn.Module:
    """Gates, the lesser of two answers, and a constant in place of what a mask leaves out."""
    draw = Draw()
    weight, gate = draw(4, 4), draw(4, 4)
    body = linear(torch.cat([weight, -weight, gate, -gate]), draw(4).repeat(4))
    heads = [linear(swap_blocks(draw, 1, 4)) for _ in range(2)]
    nudged(heads[1].weight, (0, 2), wrong)

    def forward(x: torch.Tensor, *layers: nn.Module) -> torch.Tensor:
        hidden = F.glu(layers[0](x)).masked_fill(torch.tensor([False, False, False, True] * 2), 0.5)
        return torch.min(layers[1](hidden), layers[2](hidden))

    return Lambda(forward, body, *heads)


def enlarged(wrong: bool, mode: str) -> nn.Module:
    draw = Draw()
    filters = draw(3, 1, 3, 3)
    pairs = torch.stack([filters, filters.flip(-1)], 1).reshape(6, 1, 3, 3)
    nudged(pairs, (2, 0, 1, 0), wrong)
    row = draw(1, 3).repeat_interleave(2)
    head = linear(torch.stack([row * torch.tensor([1.0, 0.5] * 3), row * torch.tensor([0.5, 1.0] * 3)]))

    def forward(x: torch.Tensor, *layers: nn.Module) -> torch.Tensor:
        return layers[1](torch.relu(layers[0](F.interpolate(x, scale_factor=2, mode=mode))).mean((2, 3)))

    return Lambda(forward, conv(pairs, draw(3).repeat_interleave(2)), head)


KINDS = {
    "layer norm": (normed, mirror, (4,), "1"),
    "gates, mask and twins": (masked, mirror, (4,), "inner.2"),
    "enlarged": (lambda wrong: enlarged(wrong, "nearest"), flip, (1, 5, 5), "inner.0"),
    "interpolated": (lambda wrong: enlarged(wrong, "bilinear"), flip, (1, 5, 5), "inner.0"),
}


@pytest.mark.parametrize("name", KINDS)
def test_an_exported_graph_is_proved_and_its_fault_found_as_in_the_network(name: str) -> None:
    build: Callable[[bool], nn.Module]
    symmetry: Callable[[], Symmetry]
    build, symmetry, shape, layer = KINDS[name]
    batch = torch.export.Dim("batch", min=2)
    for wrong, verdict in ((False, "proved"), (True, "failed")):
        net = build(wrong).eval()
        graph = torch.export.export(net, (torch.randn(3, *shape),), dynamic_shapes=({0: batch},)).module()
        result = run_net(graph, symmetry(), options=NetOptions(samples=100, input_shape=shape))
        assert result.verdict == verdict, result.method_reason
        if wrong:
            assert {p.location for p in result.properties if p.verdict == "failed"} == {layer}


@pytest.mark.parametrize(("least", "most"), [(2, 64), (1, 8), (3, 9), (2, 1024)])
def test_an_export_for_a_range_of_batch_sizes_is_judged_for_all_of_them(least: int, most: int, tmp_path: Path) -> None:
    sizes = {0: torch.export.Dim("batch", min=least, max=most)}
    for wrong, verdict in ((False, "proved"), (True, "failed")):
        program = torch.export.export(masked(wrong).eval(), (torch.randn(4, 4),), dynamic_shapes=(sizes,))
        torch.export.save(program, tmp_path / "net.pt2")
        result = run_net(str(tmp_path / "net.pt2"), mirror(), options=NetOptions(samples=200, input_shape=(4,)))
        assert result.verdict == verdict, result.method_reason
