"""Duration and result of searches for symmetries.

    python benchmarks/discovery.py [ID ...]

Prints for each environment: the number of maps, of maps that the structure allows, and of verified maps; the group
found; and CPU seconds, including construction of the environment and verification.
"""

from __future__ import annotations

import sys
import time

import symcheck as sc

ENVIRONMENTS = (
    "CartPole-v1",
    "Pendulum-v1",
    "Acrobot-v1",
    "MountainCar-v0",
    "MountainCarContinuous-v0",
    "FrozenLake-v1",
    "symcheck/PredatorPrey-v0",
    "Reacher-v5",
    "Swimmer-v5",
    "InvertedDoublePendulum-v5",
    "Walker2d-v5",
    "Ant-v5",
    "Humanoid-v5",
)


def main() -> None:
    """Search each environment once."""
    print(f"{'environment':<28}{'maps':>8}{'left':>6}{'verified':>10}  {'found':<6}{'CPU s':>7}")
    for name in sys.argv[1:] or ENVIRONMENTS:
        started = time.process_time()
        found = sc.discover(name).result
        seconds = time.process_time() - started
        verified = sum(trial.result is not None for trial in found.trials)
        left = found.narrowing[1][0] if len(found.narrowing) > 1 else "-"
        maps = found.narrowing[0][0]
        print(f"{name:<28}{maps:>8}{left:>6}{verified:>10}  {found.group['name']:<6}{seconds:>7.1f}")


if __name__ == "__main__":
    main()
