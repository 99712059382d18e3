"""Times of network verification: proofs, samples, whole processes.

    python benchmarks/networks.py

Networks are equivariant by construction, with hidden units in random order. Times are the shortest of three after
import, and that of a whole process including interpreter start.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn

import symcheck_properties  # noqa: F401
from symcheck.engine.networks.context import NetContext
from symcheck.engine.networks.options import NetOptions
from symcheck.engine.networks.runner import run_net
from symcheck.groups import catalog
from symcheck.symmetry.symmetry import Symmetry

MIRROR = Symmetry("mirror", catalog.cyclic(2), observation=[[-1, -1, -1, -1]], action=[[1, 0]])
FLIP = Symmetry("flip", catalog.cyclic(2), observation=["flip_ud"], action=[[0, 1, 3, 2, 5, 4]])
FACTORY = "from benchmarks.networks import MIRROR as mirror, mirror_mlp as make\n"


def swap(out: int, inputs: int) -> torch.Tensor:
    """A matrix that commutes with the exchange of halves on both sides."""
    a, b = torch.randn(out, inputs), torch.randn(out, inputs)
    return torch.cat([torch.cat([a, b], 1), torch.cat([b, a], 1)]) / inputs**0.5


def layer(weight: torch.Tensor, bias: torch.Tensor) -> nn.Linear:
    """A plain layer."""
    made = nn.Linear(weight.shape[1], weight.shape[0])
    made.weight, made.bias = nn.Parameter(weight.clone()), nn.Parameter(bias.clone())
    return made


def mirror_mlp(width: int = 64, hidden: int = 2) -> nn.Module:
    """An MLP under x -> -x, units shuffled."""
    torch.manual_seed(0)
    half = width // 2
    order = torch.randperm(width)
    w, b = torch.randn(half, 4), torch.randn(half)
    modules: list[nn.Module] = [layer(torch.cat([w, -w])[order], torch.cat([b, b])[order]), nn.ReLU()]
    for _ in range(hidden - 1):
        new, b = torch.randperm(width), torch.randn(half)
        modules += [layer(swap(half, half)[new][:, order], torch.cat([b, b])[new]), nn.ReLU()]
        order = new
    return nn.Sequential(*modules, layer(swap(1, half)[:, order], torch.zeros(2)))


def mirrored_filters(out: int, inputs: int, kernel: int, *, first: bool) -> torch.Tensor:
    """Filters in pairs that a vertical flip exchanges."""
    a, c = torch.randn(out, inputs, kernel, kernel), torch.randn(out, inputs, kernel, kernel)
    if first:
        return torch.cat([a, a.flip(-2)]) / kernel
    return torch.cat([torch.cat([a, c], 1), torch.cat([c.flip(-2), a.flip(-2)], 1)]) / kernel


def convolution(weight: torch.Tensor, stride: int) -> nn.Conv2d:
    """A plain convolution without bias."""
    made = nn.Conv2d(weight.shape[1], weight.shape[0], weight.shape[2], stride=stride, bias=False)
    made.weight = nn.Parameter(weight.clone())
    return made


def pong_extractor() -> nn.Module:
    """The Pong feature extractor's shapes (4 frames of 80x80), flipped up and down, with pooled heads."""
    torch.manual_seed(0)
    head = torch.zeros(6, 22, 2)
    head[:2] = torch.randn(2, 22, 1)
    for pair in (2, 4):
        head[pair] = torch.randn(22, 2)
        head[pair + 1] = head[pair].flip(-1)
    return nn.Sequential(
        convolution(mirrored_filters(11, 4, 8, first=True), 4),
        nn.ReLU(),
        convolution(mirrored_filters(22, 11, 5, first=False), 2),
        nn.ReLU(),
        nn.AdaptiveMaxPool2d(1),
        nn.Flatten(),
        layer(head.permute(0, 2, 1).reshape(6, 44), torch.zeros(6)),
    )


def best(action: Callable[[], object], repeats: int = 3) -> float:
    """The shortest of several wall times in seconds."""
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        action()
        times.append(time.perf_counter() - started)
    return min(times)


def report(what: str, seconds: float) -> None:
    """Print one line."""
    print(f"{what:66s} {seconds:7.3f} s")


def main() -> None:
    """Run all measurements."""
    wide, full = mirror_mlp(1024, 3), NetOptions(samples=10_000)
    report(
        "proof, 1024-wide MLP of three hidden layers", best(lambda: NetContext(wide, MIRROR, NetOptions(), print).proof)
    )
    report("the same with 10,000 pairs in both precisions", best(lambda: run_net(wide, MIRROR, options=full), 1))
    small = mirror_mlp()
    report(
        "CartPole-sized MLP: proof and 10,000 pairs in both precisions",
        best(lambda: run_net(small, MIRROR, options=full)),
    )
    context = NetContext(small, MIRROR, full, lambda event: None)
    report("10,000 pairs in both precisions alone", best(lambda: NetContext.measured.func(context)))  # type: ignore[attr-defined]
    spoilt = mirror_mlp()
    with torch.no_grad():
        spoilt[2].weight[3, 5] *= 1 + 1e-6  # type: ignore[index, union-attr]
    report("one weight off by 1e-6: found, shrunk", best(lambda: run_net(spoilt, MIRROR)))
    frames = NetOptions(input_shape=(4, 80, 80))
    report("4x80x80 extractor: proof and samples", best(lambda: run_net(pong_extractor(), FLIP, options=frames), 1))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "nets.py"
        file.write_text(f"import sys; sys.path.insert(0, {str(Path(__file__).parents[1])!r})\n{FACTORY}")
        command = [
            sys.executable,
            "-m",
            "symcheck.cli.main",
            "verify-net",
            f"{file}:make",
            "--symmetry",
            f"{file}:mirror",
        ]
        script = "from symcheck.cli.main import main; main()"
        command = [sys.executable, "-c", script, *command[3:]]
        report(
            "whole process: symcheck verify-net",
            best(lambda: subprocess.run(command, check=False, capture_output=True)),
        )


if __name__ == "__main__":
    main()
