"""Times bases between representations of continuous groups, and verify-env under SO(2) and under a quarter turn.

    OMP_NUM_THREADS=1 python benchmarks/continuous.py

Imports and the first call are not timed. With `--emlp PYTHON`, the Python of an environment that has EMLP 1.0.3, its
times for the spaces that it solves within a minute are measured in the same run and printed next to ours. That
environment needs `emlp==1.0.3 jax<0.5 "optax<0.2.4" plum-dispatch==1.7.4 "tqdm<4.65" "numpy<2" six`.
"""

from __future__ import annotations

import argparse
import subprocess
import time

import numpy as np

from symcheck import Symmetry, groups, representations, verify_env
from symcheck.intertwiners.build import clear_cache, intertwiner_basis
from symcheck.representations.lie import LieRepresentation

REPEATS = 5


def power(group: groups.ContinuousGroup, k: int) -> LieRepresentation:
    """V x ... x V, built again, because a representation caches its characters and weights."""
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


EMLP = """
import logging, time
logging.disable(logging.WARNING)
from emlp.groups import SO
from emlp.reps import V
(V >> V)(SO(2)).equivariant_basis()
for name, group, rep in (("SO(3), V^3 to itself", SO(3), V**3 >> V**3), ("SO(5), V^2 to itself", SO(5), V**2 >> V**2)):
    best = float("inf")
    for _ in range(2):  # the first time compiles
        rep.solcache.clear()
        started = time.perf_counter()
        rank = rep(group).equivariant_basis().shape[-1]
        best = min(best, time.perf_counter() - started)
    print(f"EMLP {name:<45}{rank:>8,}{best * 1e3:>10.1f} ms", flush=True)
"""


def compare_environments(samples: int = 4_000) -> None:
    """Print checks per CPU second of `verify-env` on the vectorised quadrotor, under SO(2) and its quarter turns."""
    planes = [[0, 1], [3, 4], [6, 7], [9, 10], [12, 13]]
    quarter = np.eye(18)
    for i, j in planes:
        quarter[i, i] = quarter[j, j] = 0.0
        quarter[j, i], quarter[i, j] = 1.0, -1.0
    claims = {
        "SO(2)": Symmetry("yaw", groups.so(2), observation=[{"rotate": planes}], action=["identity"]),
        "C4": Symmetry("quarter", groups.cyclic(4), observation=[quarter], action=[[0, 1, 2, 3]]),
    }
    for name, claim in claims.items():
        verify_env("symcheck/Quadrotor-v0", claim, samples=200)  # imports and caches
        started = time.process_time()
        report = verify_env("symcheck/Quadrotor-v0", claim, samples=samples)
        spent = time.process_time() - started
        checks = sum(result.checked for result in report.results[0].properties)
        print(f"verify-env, quadrotor under {name:<10}{report.verdict:>10}{checks / spent:>12,.0f} checks a CPU second")


def main() -> None:
    """Print one line per space, then one per group of the environment."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--emlp", metavar="PYTHON", help="the Python of an environment that has EMLP")
    emlp = parser.parse_args().emlp
    if emlp is not None:
        # In a separate process, because it needs older packages.
        subprocess.run([emlp, "-c", EMLP], check=True, timeout=300, stderr=subprocess.DEVNULL)
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
    compare_environments()


if __name__ == "__main__":
    main()
