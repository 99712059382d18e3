"""Compares basis layers with plain layers of the same size: forward + backward, and forward with cached weights.

Also compares the result of `to_dense` with the same network written by hand. Prints the ratio of the shortest of many
interleaved repetitions, in CPU time, which is least sensitive to other load. Run with `python benchmarks/layers.py`;
one thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
from torch import Tensor, nn

from symcheck import groups
from symcheck import representations as reps
from symcheck.nn import (
    BasisConv2d,
    BasisLinear,
    EquivariantHeads,
    EquivariantSequential,
    MergeChannels,
    SplitChannels,
    to_dense,
)
from symcheck.nn.basis_layer import BasisLayer

LIMITS = {"wide C2": 0.65, "wide D4": 0.4, "linear 512": 1.3, "linear 16": 2.0, "conv 64": 1.15, "no_grad": 1.05}


def seconds(run: Callable[[], object], repetitions: int) -> float:
    """The mean CPU time of one call."""
    start = time.thread_time()
    for _ in range(repetitions):
        run()
    return (time.thread_time() - start) / repetitions


def ratio(ours: Callable[[], object], plain: Callable[[], object], rounds: int = 400) -> tuple[float, float]:
    """The ratio of the shortest times, and the plain layer's time in microseconds: other load only adds time.

    Rounds are shorter than a scheduler's slice, so that some of them run without interruption on a busy machine.
    """
    for run in (ours, plain):
        seconds(run, 3)
    repetitions = max(1, int(0.0006 / seconds(plain, 3)))
    times = [(seconds(ours, repetitions), seconds(plain, repetitions)) for _ in range(rounds)]
    base = min(b for _, b in times)
    return min(a for a, _ in times) / base, base * 1e6


def training_step(layer: nn.Module, x: Tensor, y: Tensor) -> Callable[[], None]:
    """Forward and backward, with gradients of the parameters and of the input, as inside a network."""

    def run() -> None:
        layer(x).backward(y)

    return run


def inference(layer: nn.Module, x: Tensor) -> Callable[[], Tensor]:
    """Forward without autograd."""

    def run() -> Tensor:
        with torch.no_grad():
            return layer(x)

    return run


def compare(name: str, layer: BasisLayer, x: Tensor, limit: float) -> None:
    """Prints both ratios of one layer."""
    plain = layer.materialize()
    flat = x.detach().flatten(1, 2).requires_grad_(x.requires_grad)
    y = torch.randn_like(layer(x))
    step, base = ratio(training_step(layer, x, y), training_step(plain, flat, y.flatten(1, 2)))
    kept, base_kept = ratio(inference(layer, x), inference(plain, flat))
    print(
        f"{name:34s} step {step:5.2f} x plain ({base:7.0f} us, at most {limit})   "
        f"no_grad {kept:5.2f} x plain ({base_kept:7.0f} us, at most {LIMITS['no_grad']})"
    )


class ByHand(nn.Module):
    """CartPole's network written by hand."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU())
        self.actor, self.critic = nn.Linear(128, 2), nn.Linear(128, 1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Logits (batch, 2) and values (batch, 1)."""
        hidden = self.body(x)
        return self.actor(hidden), self.critic(hidden)


def compare_plain(batch: int) -> None:
    """Prints the time of CartPole's network after `to_dense`, relative to the network written by hand."""
    C2 = groups.cyclic(2)
    two, swap = reps.regular(C2), reps.permutation(C2, [[1, 0]])
    mirror = reps.signed_permutation(C2, [[-1, -1, -1, -1]])
    hidden = (BasisLinear(mirror, two, 1, 64), nn.ReLU(), BasisLinear(two, two, 64, 64), nn.ReLU())
    net = EquivariantHeads(
        EquivariantSequential(SplitChannels(mirror), *hidden),
        {
            "action": EquivariantSequential(BasisLinear(two, swap, 64, 1), MergeChannels()),
            "value": EquivariantSequential(BasisLinear(two, reps.trivial(C2), 64, 1), MergeChannels()),
        },
    )
    x = torch.randn(batch, 4)
    made, base = ratio(inference(to_dense(net), x), inference(ByHand(), x))
    print(f"CartPole network after to_dense, batch {batch}: {made:.2f} x by hand ({base:.0f} us)")


def main() -> None:
    """Compares the layers of the paper's networks, then whole plain networks."""
    torch.set_num_threads(1)
    C2, C4 = groups.cyclic(2), groups.cyclic(4)
    two, four = reps.regular(C2), reps.regular(C4)
    mirror = reps.signed_permutation(C2, [[-1, -1, -1, -1]])
    for batch in (16, 512):
        limit = LIMITS[f"linear {batch}"]
        compare(f"CartPole hidden, batch {batch}", BasisLinear(two, two, 64, 64), torch.randn(batch, 64, 2), limit)
        compare(f"CartPole input, batch {batch}", BasisLinear(mirror, two, 1, 64), torch.randn(batch, 1, 4), limit)
        compare(f"grid world head, batch {batch}", BasisLinear(four, four, 16, 256), torch.randn(batch, 16, 4), limit)
    eight = reps.regular(groups.dihedral(4))
    for rho, channels, limit in ((two, 256, "wide C2"), (two, 512, "wide C2"), (eight, 128, "wide D4")):
        inside = torch.randn(512, channels, rho.dim).requires_grad_()
        name = f"{channels * rho.dim:,} units, {rho.group.name}, batch 512"
        compare(name, BasisLinear(rho, rho, channels, channels), inside, LIMITS[limit])
    first = BasisConv2d(reps.trivial(C4), four, 1, 8, 7, spatial=["rot90"], stride=2)
    second = BasisConv2d(four, four, 8, 16, 5, spatial=["rot90"])
    pong = BasisConv2d(reps.trivial(C2), two, 4, 11, 8, spatial=["flip_ud"], stride=4)
    compare("grid world conv 1, batch 64", first, torch.randn(64, 1, 1, 21, 21), LIMITS["conv 64"])
    compare("grid world conv 2, batch 64", second, torch.randn(64, 8, 4, 8, 8), LIMITS["conv 64"])
    compare("Pong conv 1, batch 64", pong, torch.randn(64, 4, 1, 80, 80), LIMITS["conv 64"])
    for batch in (16, 512):
        compare_plain(batch)


if __name__ == "__main__":
    main()
