"""Bases between representations of continuous groups: rank, time and residual.

    OMP_NUM_THREADS=1 python benchmarks/continuous.py

Imports and the first call are not timed. EMLP 1.0.3, for comparison, needs an environment of its own (`six`, an older
tqdm for its solver of large spaces).
"""

from __future__ import annotations

import time

from symcheck import groups, representations
from symcheck.intertwiners.build import clear_cache, intertwiner_basis
from symcheck.representations.lie import LieRepresentation

REPEATS = 5


def power(group: groups.ContinuousGroup, k: int) -> LieRepresentation:
    """V x ... x V, built anew: characters and weights are kept with a representation."""
    return representations.tensor(*[representations.vector(group)] * k)


def many(group: groups.ContinuousGroup) -> LieRepresentation:
    """64 vectors and 64 scalars."""
    return representations.direct_sum(*[representations.vector(group)] * 64, *[representations.trivial(group)] * 64)


SPACES = [
    ("SO(3), V^3 to itself", lambda: power(groups.so(3), 3), 15),
    ("SO(5), V^2 to itself", lambda: power(groups.so(5), 2), 3),
    ("SO(3), 64 vectors and 64 scalars to themselves", lambda: many(groups.so(3)), 8_192),
    ("SO(3), V^4 to itself", lambda: power(groups.so(3), 4), 91),
    ("O(3), V^3 to itself", lambda: power(groups.o(3), 3), 15),
    ("SO(6), V^2 to itself", lambda: power(groups.so(6), 2), 3),
]


def main() -> None:
    """Print one line per space."""
    intertwiner_basis(power(groups.o(3), 2), power(groups.o(3), 2))  # imports, and the first call of LAPACK
    for name, make, rank in SPACES:
        best = float("inf")
        for _ in range(REPEATS):
            rho = make()
            clear_cache()
            started = time.perf_counter()
            basis = intertwiner_basis(rho, rho)
            best = min(best, time.perf_counter() - started)
        if basis.rank != rank:
            raise SystemExit(f"{name}: rank {basis.rank}, expected {rank}")
        print(f"{name:<50}{rank:>8,}{best * 1e3:>10.1f} ms   residual {basis.certificate.residual:.1e}")


if __name__ == "__main__":
    main()
