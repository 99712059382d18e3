"""Compares bases with Algorithm 1 of the paper, in one process, and times sizes that only orbit bases can handle.

Algorithm 1 draws max(4096, dim(W)) samples as published (dim(W) with `--quick`), symmetrizes each over the group and
computes an SVD. If emlp or escnn is installed, it is timed on the cases that it can express. Run with `python
benchmarks/bases.py [--quick]`; one thread.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable

from symcheck import groups
from symcheck import representations as reps
from symcheck.intertwiners import IntertwinerBasis, build, conv_intertwiner_basis, intertwiner_basis
from symcheck.representations import with_grid
from symcheck.representations.representation import Representation
from tests.oracles.algorithm1 import algorithm1

PUBLISHED_SAMPLES = 4096


def seconds(run: Callable[[], object], repetitions: int = 1) -> float:
    """The shortest time of several runs."""
    times = []
    for _ in range(repetitions):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def paper_layers() -> list[tuple[str, Representation, Representation, Callable[[], IntertwinerBasis]]]:
    """Every layer of the paper's CartPole, grid-world and Pong networks, biases included."""
    C2, C4 = groups.cyclic(2), groups.cyclic(4)
    two, four, one2, one4 = reps.regular(C2), reps.regular(C4), reps.trivial(C2), reps.trivial(C4)
    mirror = reps.signed_permutation(C2, [[-1, -1, -1, -1]])
    compass = reps.permutation(C4, [[0, 2, 3, 4, 1]])
    linear = [(mirror, two), (two, two), (two, one2), (one2, two), (four, four), (four, compass), (four, one4)]
    linear += [(one4, four), (one4, compass)]
    layers: list[tuple[str, Representation, Representation, Callable[[], IntertwinerBasis]]] = [
        (f"{a.name} -> {b.name}", a, b, lambda a=a, b=b: intertwiner_basis(a, b)) for a, b in linear
    ]
    filters = [(one4, four, 7, "rot90"), (four, four, 5, "rot90"), (one2, two, 8, "flip_ud"), (two, two, 5, "flip_ud")]
    for a, b, k, move in filters:
        patch = with_grid(a, k, k, [move])
        made = lambda a=a, b=b, k=k, move=move: conv_intertwiner_basis(a, b, k, spatial=[move])  # noqa: E731
        layers.append((f"{a.name} -> {b.name}, {k} x {k}", patch, b, made))
    return layers


def compare_with_algorithm1(quick: bool) -> None:
    """Times every layer of the paper with both methods."""
    layers = paper_layers()

    def all_ours() -> None:
        build.clear_cache()
        for *_, make in layers:
            make()

    ours = seconds(all_ours, 5)
    theirs = published = 0.0
    for name, rho_in, rho_out, make in layers:
        size = rho_in.dim * rho_out.dim
        samples = size + 5 if quick else max(PUBLISHED_SAMPLES, size)
        spent = seconds(lambda a=rho_in, b=rho_out, n=samples: algorithm1(a, b, samples=n))
        theirs += spent
        published += seconds(lambda a=rho_in, b=rho_out, n=samples: algorithm1(a, b, samples=n, full=True))
        print(f"  {name:42s} rank {make().rank:4d}   Algorithm 1 {spent * 1e3:9.1f} ms")
    print(f"the paper's networks: ours {ours * 1e3:.2f} ms (at most 50)")
    print(f"  Algorithm 1, SVD without the left vectors {theirs:.2f} s, {theirs / ours:,.0f} times as long")
    print(f"  Algorithm 1 as published (NumPy's default SVD) {published:.2f} s, {published / ours:,.0f} times as long")


def report(name: str, make: Callable[[], IntertwinerBasis], limit: float) -> None:
    """Times one large case."""
    build.clear_cache()
    start = time.perf_counter()
    basis = make()
    spent = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{name:42s} rank {basis.rank:5d}   {spent * 1e3:9.1f} ms (at most {limit * 1e3:.0f}), peak {peak:.2f} GB")


def pairs(n: int) -> IntertwinerBasis:
    """S_n on V x V -> V x V."""
    G = groups.symmetric(n)
    rho = reps.tensor(reps.natural(G), reps.natural(G))
    return intertwiner_basis(rho, rho)


def regular(n: int) -> IntertwinerBasis:
    """C_n, regular to regular."""
    rho = reps.regular(groups.cyclic(n))
    return intertwiner_basis(rho, rho)


def large_filter() -> IntertwinerBasis:
    """C4, regular to regular, 15 x 15."""
    rho = reps.regular(groups.cyclic(4))
    return conv_intertwiner_basis(rho, rho, 15, spatial=["rot90"])


def compare_with_emlp() -> None:
    """S_n on pairs with emlp, if it is installed."""
    try:
        from emlp.groups import S
        from emlp.reps import V
    except ImportError:
        print("emlp is not installed")
        return
    for n in (4, 6, 8):
        theirs = seconds(lambda n=n: (V(S(n)) ** 2 >> V(S(n)) ** 2).equivariant_basis())
        build.clear_cache()
        ours = seconds(lambda n=n: pairs(n).matrices())
        print(f"S_{n} on pairs: emlp {theirs * 1e3:.1f} ms, ours {ours * 1e3:.2f} ms, {theirs / ours:,.0f}x")


def compare_with_escnn() -> None:
    """C4 regular filters with escnn, if it is installed."""
    try:
        from escnn import gspaces, nn
    except ImportError:
        print("escnn is not installed")
        return
    act = gspaces.rot2dOnR2(4)
    field = nn.FieldType(act, [act.regular_repr])
    rho = reps.regular(groups.cyclic(4))
    for k in (3, 5, 7):
        theirs = seconds(lambda k=k: nn.R2Conv(field, field, kernel_size=k))
        build.clear_cache()
        ours = seconds(lambda k=k: conv_intertwiner_basis(rho, rho, k, spatial=["rot90"]))
        print(f"C4 filters, {k} x {k}: escnn {theirs * 1e3:.1f} ms, ours {ours * 1e3:.2f} ms, {theirs / ours:,.0f}x")


def main() -> None:
    """Runs all comparisons."""
    report("S_30, pairs to pairs", lambda: pairs(30), 3)
    report("C_2000, regular to regular", lambda: regular(2000), 5)
    report("C4, 15 x 15 filter, regular to regular", large_filter, 0.02)
    compare_with_algorithm1("--quick" in sys.argv)
    compare_with_emlp()
    compare_with_escnn()


if __name__ == "__main__":
    main()
