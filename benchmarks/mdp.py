"""Homomorphisms and automorphisms of finite MDPs: times and memory.

python benchmarks/mdp.py [--slow]
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from symcheck.mdp.search_igraph import is_installed
from symcheck.mdp.tabular import TabularMDP
from symcheck.mdp.worlds import torus_chase


def free_torus(size: int) -> TabularMDP:
    """A walk on a torus without a goal: translations, rotations and reflections, 8 size^2 symmetries."""
    r, c = np.divmod(np.arange(size * size), size)
    moves = [((r + dr) % size) * size + (c + dc) % size for dr, dc in ((1, 0), (0, 1), (-1, 0), (0, -1))]
    rows = np.concatenate([np.arange(size * size) * 4 + action for action in range(4)])
    shape = (4 * size * size, size * size)
    law = sparse.csr_array((np.ones(shape[0]), (rows, np.concatenate(moves))), shape=shape)
    return TabularMDP(law, np.ones((size * size, 4)), 0.9)


def chain(count: int) -> TabularMDP:
    """Left and right with a reward at one end: each round splits off one state, the worst case of refinement."""
    rows = np.arange(2 * count)
    following = np.clip(rows // 2 + np.where(rows % 2 == 0, 1, -1), 0, count - 1)
    rewards = np.zeros((count, 2))
    rewards[-1, 0] = 1.0
    return TabularMDP(
        sparse.csr_array((np.ones(2 * count), (rows, following)), shape=(2 * count, count)), rewards, 0.99
    )


def scattered(states: int, rng: np.random.Generator) -> TabularMDP:
    """Four actions with four random outcomes each and two rewards."""
    rows, columns = np.repeat(np.arange(4 * states), 4), rng.integers(0, states, 16 * states)
    chances = rng.integers(1, 5, (4 * states, 4)).astype(np.float64)
    chances /= chances.sum(axis=1, keepdims=True)
    law = sparse.csr_array((chances.reshape(-1), (rows, columns)), shape=(4 * states, states))
    return TabularMDP(law, rng.integers(0, 2, (states, 4)).astype(np.float64), 0.99)


def timed(make: Callable[[], Any], rounds: int) -> tuple[float, Any]:
    """The shortest time of several rounds, in seconds, and the last result."""
    best = np.inf
    for _ in range(rounds):
        start = time.perf_counter()
        made = make()
        best = min(best, time.perf_counter() - start)
    return float(best), made


def main() -> None:
    """Print one line per measurement."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--slow", action="store_true", help="the chain of 100,000 states too")
    slow = parser.parse_args().slow
    worlds = {
        "FrozenLake-v1": TabularMDP.from_gymnasium("FrozenLake-v1"),
        "Taxi-v4": TabularMDP.from_gymnasium("Taxi-v4"),
        "7 x 7 torus chase": torus_chase(),
        "51 x 51 torus chase": torus_chase(51),
        "51 x 51 torus without a goal": free_torus(51),
    }
    for name, mdp in worlds.items():
        for method in ("igraph", "builtin") if is_installed() else ("builtin",):
            seconds, found = timed(lambda m=mdp, how=method: m.automorphism_group(method=how), 2)
            print(f"automorphisms, {name:<30} {method:<8} order {found.order:>6,}  {seconds:7.3f} s")
    large = {
        "317 x 317 torus chase": torus_chase(317),
        "100,000 scattered": scattered(100_000, np.random.default_rng(0)),
    }
    if slow:
        large["chain of 100,000"] = chain(100_000)
    for name, mdp in large.items():
        seconds, h = timed(mdp.minimal_homomorphism, 1)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        sizes = f"{h.mdp.n_states:,} -> {h.abstract_mdp.n_states:,}"
        print(f"homomorphism,  {name:<24} {sizes:<20} {seconds:6.2f} s  {memory:.2f} GB")


if __name__ == "__main__":
    main()
