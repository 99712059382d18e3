"""Speed of environment checks, false-alarm rate on correct environments, and power on faulty ones.

    python benchmarks/environments.py speed
    python benchmarks/environments.py alarms --runs 200
    python benchmarks/environments.py power --runs 20

`speed` prints checks per CPU second, in batches and one state at a time; the latter is compared with the rate of two
bare steps with the state set before each. `alarms` runs correct environments under many seeds and prints the fraction
of runs with a failed property, with its 95% lower bound. `power` does the same with planted faults.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.envs.classic_control.pendulum import PendulumEnv

import symcheck_properties  # noqa: F401
from symcheck.engine.clock import Clock
from symcheck.engine.environments.cases.pairs import Case
from symcheck.engine.environments.methods import selection
from symcheck.engine.environments.runner import run_env
from symcheck.engine.events import ignore
from symcheck.engine.options import EnvOptions
from symcheck.engine.statistics import largest_fraction
from symcheck.envs import atlas
from symcheck.envs.predator_prey import PredatorPreyEnv
from symcheck.envs.state_access import find_state_access
from symcheck.envs.targets import AnyEnv, resolve_environment
from symcheck.groups import catalog
from symcheck.symmetry.symmetry import Symmetry

SAMPLES = 10_000
ROUNDS = 7


class Noisy(gym.Env[Any, Any]):
    """A damped point with symmetric noise, and a termination that depends on it."""

    observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float64)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Start near the centre."""
        super().reset(seed=seed)
        self.s = self.np_random.normal(0, 0.1, 2)
        return self.s.copy(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Push, with noise."""
        v = 0.9 * self.s[1] + (0.5 if action else -0.5) + self.np_random.normal()
        self.s = np.array([self.s[0] + 0.1 * v, v])
        return self.s.copy(), 1.0, bool(abs(self.s[0]) > 3), False, {}


class SettableNoisy(Noisy):
    """The same, with state access."""

    def get_state(self) -> Any:
        """Position and velocity of the point."""
        return self.s.copy()

    def set_state(self, state: Any) -> None:
        """Set position and velocity."""
        self.s = np.array(state, dtype=np.float64)


class RareNoise(SettableNoisy):
    """The same, with heavy-tailed noise on one step in a hundred: most pairs repeat."""

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Push; sometimes with a kick."""
        kick = self.np_random.standard_t(2) if self.np_random.random() < 0.01 else 0.0
        v = 0.9 * self.s[1] + (0.5 if action else -0.5) + kick
        self.s = np.array([self.s[0] + 0.1 * v, v])
        return self.s.copy(), -abs(float(self.s[0])), bool(abs(self.s[0]) > 3), False, {}


def flip() -> Symmetry:
    """The point's symmetry."""
    return Symmetry("flip", catalog.cyclic(2), [[-1, -1]], [[1, 0]])


SUBJECTS: dict[str, tuple[Callable[[], AnyEnv], Callable[[], Symmetry]]] = {
    entry.name: (resolve_environment(entry.environments[0]).make, entry.symmetry)
    for entry in atlas.entries()
    if entry.claim
}
SUBJECTS["rare noise"] = (RareNoise, flip)
SUBJECTS["noise, states set"] = (SettableNoisy, flip)
SUBJECTS["noise, black box"] = (lambda: gym.wrappers.TimeLimit(Noisy(), 50), flip)
# All sources of false alarms: pairs with rounding, group laws, episodes, the start.
ACCUSED = [
    "cartpole/mirror",
    "acrobot/mirror",
    "predator-prey/rotations-and-reflections",
    "noise, states set",
    "rare noise",
    "noise, black box",
]


def bare_time(make: Callable[[], AnyEnv], cases: list[Case]) -> float:
    """CPU seconds for only set, step, set, step on these pairs."""
    env = make()
    env.reset(seed=0)
    access = find_state_access(env.unwrapped)
    if access is None or access.get is None:
        return float("nan")
    put, base, step = access.set, env.unwrapped, env.step
    start = time.process_time()
    for case in cases:
        put(base, case.situation.state)
        step(case.action)
        put(base, case.image.state)
        step(case.image_action)
    return time.process_time() - start


class SinglePendulum(PendulumEnv):
    """A subclass, which has no batched form."""


SINGLE: dict[str, tuple[Callable[[], AnyEnv], str]] = {
    "CartPole-v1 in a wrapper": (
        lambda: gym.wrappers.ClipReward(gym.make("CartPole-v1", disable_env_checker=True), -1, 1),
        "cartpole/mirror",
    ),
    "a subclass of Pendulum": (lambda: gym.wrappers.TimeLimit(SinglePendulum(), 200), "pendulum/mirror"),
}


def batches() -> None:
    """Print checks per second of a whole run that steps pairs in batches."""
    print(f"{'in batches, 1,000,000 pairs':40}{'CPU s':>9}{'checks/s':>11}")
    for name in ("cartpole/mirror", "pendulum/mirror", "acrobot/mirror"):
        make, symmetry = SUBJECTS[name]
        start = time.process_time()
        run_env(make, symmetry(), options=EnvOptions(samples=1_000_000), target=name, command="")
        spent = time.process_time() - start
        print(f"{name:40}{spent:9.2f}{1_000_000 / spent:11,.0f}", flush=True)


def singles() -> None:
    """Print the rate of pairs stepped one state at a time, relative to two bare steps; CPU time, interleaved."""
    print(f"{'one state at a time':40}{'bare pairs/s':>14}{'pairs':>9}{'whole run':>11}   (share of the bare rate)")
    for name, (make, symmetry) in SINGLE.items():
        rounds = []
        cases, _ = _stage(make, symmetry, name)
        for _ in range(ROUNDS):  # each between two halves of the bare pairs, so that other load slows both equally
            bare = bare_time(make, cases[::2])
            _, stage = _stage(make, symmetry, name)
            start = time.process_time()
            run_env(make, atlas.entry(symmetry).symmetry(), options=EnvOptions(), target=name, command="")
            whole = time.process_time() - start
            bare += bare_time(make, cases[1::2])
            rounds.append((SAMPLES / bare, bare / stage, bare / whole))
        rate, share, all_of_it = np.median(rounds, axis=0)
        print(f"{name:40}{rate:14,.0f}{share:9.2f}{all_of_it:11.2f}", flush=True)


def _stage(make: Callable[[], AnyEnv], symmetry: str, name: str) -> tuple[list[Case], float]:
    """The pairs of a run, and the CPU seconds for only stepping and recording them."""
    chosen = selection.choose(make, atlas.entry(symmetry).symmetry(), EnvOptions(), name, ignore, Clock())
    evidence: Any = chosen.evidence
    start = time.process_time()
    cases = evidence.sample.drawn.cases
    return cases, time.process_time() - start


def speed() -> None:
    """Print checks per second, in batches and one state at a time, and the time of the whole process."""
    batches()
    singles()
    start = time.perf_counter()
    code = "from symcheck.cli.main import main; main()"
    subprocess.run([sys.executable, "-c", code, "verify-env", "CartPole-v1", "--quiet"], check=True)
    print(f"verify-env CartPole-v1, whole process: {time.perf_counter() - start:.2f} s")


def alarms(runs: int, samples: int, names: list[str]) -> None:
    """Print the fraction of runs of correct environments in which a property failed."""
    alpha = EnvOptions().alpha
    print(f"{'subject':40}{'runs':>6}{'accused':>9}{'95% lower bound':>17}   (alpha {alpha})")
    total = 0
    for name in names:
        make, symmetry = SUBJECTS[name]
        accused = 0
        for seed in range(runs):
            options = EnvOptions(samples=samples, seed=seed)
            result = run_env(make, symmetry(), options=options, target=name, command="")
            accused += result.verdict == "failed"
        total += accused
        _print_alarms(name, runs, accused)
    _print_alarms("all", runs * len(names), total)


def _print_alarms(name: str, runs: int, accused: int) -> None:
    # The lower bound on the rate of alarms is one minus the upper bound on the rate of runs without.
    lower = 1 - largest_fraction(runs - accused, runs, 0.05)
    print(f"{name:40}{runs:6}{accused:9}{lower:17.4f}", flush=True)


class Faulty(SettableNoisy):
    """The noisy point with a fault of a given kind and size."""

    def __init__(self, fault: str, size: float) -> None:
        self._fault, self._size = fault, size

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Start near the centre, or off-centre."""
        super().reset(seed=seed)
        if self._fault == "start":
            self.s = self.s + 0.1 * self._size  # in units of its standard deviation
        return self.s.copy(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Push, with noise that is not symmetric."""
        noise = self.np_random.normal() * (0.0 if self._fault == "rare" else 1.0)
        if self._fault == "mean":
            noise += self._size
        if self._fault == "spread" and action:
            noise *= 1 + self._size
        v = 0.9 * self.s[1] + (0.5 if action else -0.5) + noise
        if self._fault == "rare" and 0 < self.s[0] < 0.6 * self._size:  # rollouts spread over about 0.6
            v += 1e-3
        self.s = np.array([self.s[0] + 0.1 * v, v])
        return self.s.copy(), 1.0, bool(abs(self.s[0]) > 3), False, {}


class WindyCart(gym.Wrapper[Any, Any, Any, Any]):
    """A cart-pole without state access, with wind of a fraction of the motor's force."""

    def __init__(self, share: float) -> None:
        super().__init__(gym.make("CartPole-v1"))
        self._share = share

    def step(self, action: Any) -> Any:
        """Push, with wind."""
        base: Any = self.env.unwrapped
        base.force_mag = 10.0 * (1 + (self._share if action == 1 else -self._share))
        return self.env.step(action)


POWER: list[tuple[str, str, float, str, int]] = [
    *(("noise N(0.05, 1) for N(0, 1)", "mean", 0.05, "distribution", n) for n in (1000, 2000, 5000, 10_000)),
    *(("noise 15% wider for one action", "spread", 0.15, "distribution", n) for n in (1000, 2000)),
    *(("start off by 0.15 standard deviations", "start", 0.15, "distribution", n) for n in (4000, 10_000)),
    *(("0.1% of the states, 1e-3", "rare", 0.001, "paired", n) for n in (1000, 5000, 20_000)),
    *(("wind of 1% of the push, black box", "wind", 0.01, "trajectory", n) for n in (300, 600)),
    *(("wind of 0.3% of the push, black box", "wind", 0.003, "trajectory", n) for n in (300, 600, 2000)),
    *(("grid world, action map left out", "map", 0.0, "trajectory", n) for n in (3000, 10_000)),
]


def planted(kind: str, size: float) -> tuple[Callable[[], AnyEnv], Symmetry]:
    """An environment and a claim; one of them has a fault."""
    if kind == "map":
        grid = atlas.entry("predator-prey/rotations-and-reflections").symmetry()
        generators = len(grid.group.generators)
        return PredatorPreyEnv, Symmetry("no action map", grid.group, grid.observation, [list(range(5))] * generators)
    if kind == "wind":
        return lambda: WindyCart(size), atlas.entry("cartpole/mirror").symmetry()
    return lambda: Faulty(kind, size), flip()


def power(runs: int, kinds: list[str]) -> None:
    """Print the number of runs in which planted faults are found, by method and number of samples."""
    print(f"{'fault':40}{'method':>14}{'samples':>9}{'found':>9}")
    for name, kind, size, method, samples in POWER:
        if kind not in kinds:
            continue
        make, claim = planted(kind, size)
        found = 0
        for seed in range(runs):
            given: Any = "auto" if method == "paired" else method
            options = EnvOptions(samples=samples, seed=seed, method=given)
            found += run_env(make, claim, options=options, target=name, command="").verdict == "failed"
        print(f"{name:40}{method:>14}{samples:9}{found:6}/{runs}", flush=True)


def main() -> None:
    """Run the requested measurement."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["speed", "alarms", "power"])
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--subjects", nargs="+", default=ACCUSED, help="names of subjects, of: " + ", ".join(SUBJECTS))
    kinds = list(dict.fromkeys(fault[1] for fault in POWER))
    parser.add_argument("--kinds", nargs="+", default=kinds, choices=kinds, help="of planted faults, for power")
    parser.add_argument("--samples", type=int, default=2000)
    arguments = parser.parse_args()
    if arguments.what == "speed":
        speed()
    elif arguments.what == "power":
        power(arguments.runs, arguments.kinds)
    else:
        alarms(arguments.runs, arguments.samples, arguments.subjects)


if __name__ == "__main__":
    main()
