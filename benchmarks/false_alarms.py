"""False-alarm rate on correct environments, power at the stated detectable effect, and cost and savings of early looks.

    python benchmarks/false_alarms.py alarms --runs 1000
    python benchmarks/false_alarms.py promise --runs 200
    python benchmarks/false_alarms.py cost --runs 1000
    python benchmarks/false_alarms.py saved

`alarms` runs correct environments under many seeds: with ties, rare categories, NaN, constant coordinates, few episodes
and rounding; some also with --fail-fast. `promise` plants exactly the shift that a pass states as detectable with 90%
power, and counts how often it is detected. `cost` compares the power of a test on all samples with that of the same
test with early looks. `saved` runs faulty environments and prints the samples that were used.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from environments import SUBJECTS, Faulty, SettableNoisy, WindyCart, flip, planted
from gymnasium import spaces

import symcheck_properties  # noqa: F401
from symcheck.engine.environments.runner import run_env
from symcheck.engine.options import EnvOptions
from symcheck.engine.results import RunResult
from symcheck.engine.sequential import combine_p_values, looks
from symcheck.engine.statistics import largest_fraction, swap_test
from symcheck.envs.targets import AnyEnv
from symcheck.groups import catalog
from symcheck.symmetry.symmetry import Symmetry

Draw = Callable[[np.random.Generator, float], float]


def normal(rng: np.random.Generator, shift: float) -> float:
    """Standard normal noise, shifted by the given number of standard deviations."""
    return float(rng.normal()) + shift


def uniform(rng: np.random.Generator, shift: float) -> float:
    """Uniform noise, shifted by the given number of standard deviations."""
    return float(rng.uniform(-1, 1)) + shift / math.sqrt(3)


def rare(rng: np.random.Generator, shift: float) -> float:
    """Zero except in one of fifty draws, which is 1 or -1; the odds of the two shift the mean."""
    odds = 0.01 + shift * math.sqrt(0.02) / 2
    drawn = rng.random()
    return 1.0 if drawn < odds else -1.0 if drawn < 0.02 else 0.0


def once(rng: np.random.Generator, shift: float) -> float:
    """Zero except for 1 and -1, each once in 500 draws; the odds of 1 shift the mean."""
    odds = 0.002 + shift * math.sqrt(0.004)
    drawn = rng.random()
    return 1.0 if drawn < odds else -1.0 if drawn > 0.998 else 0.0


def mixture(rng: np.random.Generator, shift: float) -> float:
    """Normal noise of width 0.1 around 0 (94%), 3 and -3 (3% each); the weights of the two shift the mean."""
    more = shift * math.sqrt(0.06 * 9 + 0.01) / 6
    drawn = rng.random()
    return (3.0 if drawn < 0.03 + more else -3.0 if drawn > 0.97 + more else 0.0) + 0.1 * float(rng.normal())


def heavy(rng: np.random.Generator, shift: float) -> float:
    """Student's t with three degrees of freedom; all values shift."""
    return float(rng.standard_t(3)) + shift * math.sqrt(3)


def rounded(rng: np.random.Generator, shift: float) -> float:
    """Binomial integers with many ties; one of four coins determines the shift."""
    probability = 0.5 + shift / 4
    return float(rng.binomial(4, probability) - 2)


def unseen(rng: np.random.Generator, shift: float) -> float:
    """Normal noise; positions near the centre, about 30%, are observed as NaN."""
    return float(rng.normal()) + shift


NOISE: dict[str, Draw] = {
    "normal": normal,
    "uniform": uniform,
    "rare": rare,
    "once in 500": once,
    "mixture": mixture,
    "heavy tails": heavy,
    "rounded": rounded,
    "unseen": unseen,
}


class Point(gym.Env[Any, Any]):
    """A position with noisy start and noisy steps, and a coordinate that never changes.

    Args:
        noise: of every step.
        start: noise of the start.
        shifts: of noise and start, in their standard deviations.
    """

    observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float64)
    action_space = spaces.Discrete(2)

    def __init__(self, noise: Draw = normal, start: Draw = normal, shifts: tuple[float, float] = (0.0, 0.0)) -> None:
        self._noise, self._start, self._shifts = noise, start, shifts
        self.s = np.zeros(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Start near the centre."""
        super().reset(seed=seed)
        self.s = np.array([self._start(self.np_random, self._shifts[1]), 0.0])
        return self._seen(), {}

    def _seen(self) -> Any:
        hidden = self._noise is unseen and abs(self.s[0]) < 0.4
        return np.array([math.nan, 0.0]) if hidden else self.s.copy()

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Move, with noise."""
        push = 0.5 if action else -0.5
        self.s = np.array([0.5 * self.s[0] + push + self._noise(self.np_random, self._shifts[0]), 0.0])
        return self._seen(), 1.0, False, False, {}


class SettablePoint(Point):
    """The same, with state access."""

    def get_state(self) -> Any:
        """The position."""
        return self.s.copy()

    def set_state(self, state: Any) -> None:
        """Set the position."""
        self.s = np.array(state, dtype=np.float64)


class RandomPay(SettableNoisy):
    """Noise in reward, state and termination: nothing repeats, so early looks may end a run."""

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Push, with noise, and pay at random."""
        seen, _, _, truncated, info = super().step(action)
        paid = float(abs(seen[1]) + self.np_random.exponential())
        return seen, paid, bool(self.np_random.random() < 0.05), truncated, info


def _flip_of_state() -> Symmetry:
    """The point's symmetry, if the observation is not the state."""
    return Symmetry("flip", catalog.cyclic(2), [[-1, -1]], [[1, 0]], state=[[-1, -1]])


def _point(name: str) -> Callable[[], AnyEnv]:
    draw = NOISE[name]
    return lambda: SettablePoint(draw, draw)


CORRECT: dict[str, tuple[Callable[[], AnyEnv], Callable[[], Symmetry]]] = {
    "CartPole-v1 (pairs and start)": SUBJECTS["cartpole/mirror"],
    "noise, states set (laws and start)": SUBJECTS["noise, states set"],
    "everything random, states set": (RandomPay, flip),
    "heavy tails on one step in a hundred": SUBJECTS["rare noise"],
    "rare categories, states set": (_point("rare"), flip),
    "whole numbers, states set": (_point("rounded"), flip),
    "NaN three times in ten, states set": (_point("unseen"), _flip_of_state),
    "noise, black box (episodes and start)": SUBJECTS["noise, black box"],
    "whole numbers, black box, few episodes": (
        lambda: gym.wrappers.TimeLimit(Point(rounded, rounded), 100),
        flip,
    ),
}

# Cases in which early looks may end a run: also with --fail-fast.
FAST = ("everything random, states set", "noise, black box (episodes and start)")


def _failed(case: tuple[str, int, int, bool]) -> bool:
    name, seed, samples, fast = case
    make, symmetry = CORRECT[name]
    options = EnvOptions(samples=samples, seed=seed, fail_fast=fast)
    return run_env(make, symmetry(), options=options, target=name, command="").verdict == "failed"


def alarms(runs: int, samples: int, processes: int, names: Sequence[str]) -> None:
    """Print the fraction of runs of correct environments in which a property failed."""
    print(f"{'correct environment':42}{'options':>13}{'runs':>7}{'accused':>9}{'95% lower bound':>17}{'s':>6}")
    total = count = 0
    with multiprocessing.get_context("fork").Pool(processes) as pool:
        for name in names:
            for fast in (False, True) if name in FAST else (False,):
                started = time.monotonic()
                cases = [(name, 1000 + seed, samples, fast) for seed in range(runs)]
                accused = sum(pool.map(_failed, cases, chunksize=10))
                total, count = total + accused, count + runs
                spent = time.monotonic() - started
                _say(name, "--fail-fast" if fast else "", runs, accused, spent)
    _say("all", "", count, total, 0.0)


def _say(name: str, options: str, runs: int, accused: int, spent: float) -> None:
    # The lower bound on the rate of alarms is one minus the upper bound on the rate of runs without.
    lower = 1 - largest_fraction(runs - accused, runs, 0.05)
    print(f"{name:42}{options:>13}{runs:7}{accused:9}{lower:17.4f}{spent:6.0f}", flush=True)


@dataclass(frozen=True)
class Promise:
    """The effect that a pass states as detectable, planted.

    Attributes:
        name: of the row.
        part: the property that promises.
        make: an environment with a difference of means between the two sides, in the unit of the promise; 0 is none.
        samples: of each run.
        method: of testing.
    """

    name: str
    part: str
    make: Callable[[float], AnyEnv]
    samples: int
    method: str = "distribution"


def _settable(noise: str, at: int) -> Callable[[float], AnyEnv]:
    """The two sides differ by twice the shift, because one of them is mirrored."""
    draw = NOISE[noise]
    return lambda size: SettablePoint(draw, draw, (size / 2, 0.0) if at == 0 else (0.0, size / 2))


def _episodes(noise: str) -> Callable[[float], AnyEnv]:
    """Fifty steps of independent noise: totals have the standard deviation sqrt(50), and 50 times the shift."""
    draw = NOISE[noise]
    return lambda size: gym.wrappers.TimeLimit(Point(draw, normal, (size / (2 * math.sqrt(50)), 0.0)), 50)


PROMISES = [
    *(Promise(f"start, {one}", "initial", _settable(one, 1), 4000) for one in NOISE),
    *(Promise(f"laws, {one}", "transition", _settable(one, 0), 2000) for one in NOISE),
    *(
        Promise(f"episodes of 50 steps, {one}", "transition", _episodes(one), 5000, "trajectory")
        for one in ("normal", "once in 500", "mixture", "heavy tails")
    ),
]


def _run(row: Promise, size: float, seed: int) -> RunResult:
    options: Any = {"samples": row.samples, "method": row.method, "seed": seed}
    claim = _flip_of_state() if "unseen" in row.name else flip()
    return run_env(lambda: row.make(size), claim, options=EnvOptions(**options), target=row.name, command="")


def _found(case: tuple[int, float, int]) -> bool:
    index, size, seed = case
    row = PROMISES[index]
    return any(
        one.name == f"{row.part}_invariance" and one.verdict == "failed" for one in _run(row, size, seed).properties
    )


def promises(runs: int, processes: int, names: Sequence[str], first: int) -> None:
    """Print how often the shift that a pass states as detectable is detected."""
    print(f"{'promise of':30}{'shift, in sd':>14}{'found':>10}")
    with multiprocessing.get_context("fork").Pool(processes) as pool:
        for index, row in enumerate(PROMISES):
            if row.name not in names:
                continue
            shifts = []
            for seed in range(5):
                result = next(p for p in _run(row, 0.0, seed).properties if p.name == f"{row.part}_invariance")
                # Without "shift", the value holds for shifts only, and other changes have no stated size.
                if result.bound is not None and "shift" in result.bound:
                    shifts.append(float(result.bound["value"]))
            size = float(np.median(shifts))
            found = sum(pool.map(_found, [(index, size, first + seed) for seed in range(runs)], chunksize=5))
            print(f"{row.name:30}{size:14.3f}{found:6}/{runs}", flush=True)


def cost(runs: int, shifts: Sequence[float], pairs: int = 2500, level: float = 0.005) -> None:
    """Print the power of the test without and with early looks, and the number of samples used with looks."""
    print(f"{'shift, in sd':>12}{'all samples':>13}{'with looks':>12}{'samples used':>14}")
    for shift in shifts:
        alone = together = 0
        used = []
        for seed in range(runs):
            rng = np.random.default_rng([seed, round(1000 * shift)])
            x, y = rng.normal(size=(2, pairs, 2))
            y[:, 0] += shift
            alone += _p_value(x, y, level, rng) <= level
            taken = []
            for look in looks(pairs):
                n = math.ceil(look.share * pairs)
                taken.append((_p_value(x[:n], y[:n], level * look.weight, rng, sampled=look.last), look))
                if combine_p_values(taken) <= level:
                    break
            together += combine_p_values(taken) <= level
            used.append(n)
        print(f"{shift:12.2f}{alone / runs:13.3f}{together / runs:12.3f}{np.mean(used) / pairs:14.2f}", flush=True)


def _p_value(x: Any, y: Any, level: float, rng: np.random.Generator, *, sampled: bool = True) -> float:
    return swap_test(x, y, ["x", "y"], level=level, rng=rng, sampled=sampled).p_value


class Mispaid(RandomPay):
    """More reward, more terminations and wind on the right."""

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Push, with wind."""
        _, paid, _, truncated, info = super().step(action)
        self.s[1] += 0.3
        right = self.s[1] > 0
        return (
            self.s.copy(),
            paid + 3 * right,
            bool(self.np_random.random() < (0.2 if right else 0.02)),
            truncated,
            info,
        )


def saved() -> None:
    """Print the number of samples until faults were found, by default and with --fail-fast."""
    cartpole = SUBJECTS["cartpole/mirror"]
    wrong = Symmetry("wrong sign", catalog.cyclic(2), [[-1, -1, 1, -1]], [[1, 0]])
    rows: list[tuple[str, Callable[[], AnyEnv], Symmetry, str, int]] = [
        ("start off by 0.3 sd", *planted("start", 0.3), "auto", 10_000),
        ("noise N(0.2, 1) for N(0, 1)", *planted("mean", 0.2), "auto", 10_000),
        ("reward, law and ends broken, states set", Mispaid, flip(), "auto", 10_000),
        ("the same, black box", lambda: gym.wrappers.TimeLimit(Closed(Mispaid()), 50), flip(), "auto", 10_000),
        ("CartPole, wind of 5%, black box", lambda: WindyCart(0.05), planted("wind", 0.05)[1], "trajectory", 10_000),
        ("CartPole, wrong sign, one state at a time", _clipped, wrong, "auto", 100_000),
        ("CartPole, wrong sign, in batches", cartpole[0], wrong, "auto", 1_000_000),
        ("1e-3 in 2% of the states", lambda: Faulty("rare", 0.02), flip(), "auto", 100_000),
    ]
    print(f"{'fault':44}{'asked for':>10}   used by default, with --fail-fast (failed properties; CPU seconds)")
    for name, make, symmetry, method, samples in rows:
        said = []
        for fast in (False, True):
            started = time.process_time()
            options: Any = {"samples": samples, "fail_fast": fast, "method": method}
            result = run_env(make, symmetry, options=EnvOptions(**options), target=name, command="")
            spent = time.process_time() - started
            used = [f"{p.name.split('_')[0]} {p.checked:,}" for p in result.properties if p.verdict == "failed"]
            said.append(f"{', '.join(used) or result.verdict}; {spent:.2f} s")
        print(f"{name:44}{samples:10,}   {said[0]:60} | {said[1]}", flush=True)


class Closed(gym.Wrapper[Any, Any, Any, Any]):
    """Hides the state of the wrapped environment."""

    @property
    def unwrapped(self) -> Any:
        """The wrapper itself, so that the wrapped environment is hidden."""
        return self


def _clipped() -> AnyEnv:
    return gym.wrappers.ClipReward(gym.make("CartPole-v1", disable_env_checker=True), -1, 1)


def main() -> None:
    """Run the requested measurement."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["alarms", "promise", "cost", "saved"])
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--samples", type=int, default=2000, help="of each run of `alarms`")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--subjects", nargs="+", default=list(CORRECT), help="of `alarms`")
    parser.add_argument("--first", type=int, default=1000, help="seed of `promise`")
    shifts = [0.06, 0.08, 0.1, 0.12, 0.15, 0.2, 0.3, 0.5]
    parser.add_argument("--shifts", nargs="+", type=float, default=shifts, help="of `cost`, in standard deviations")
    parser.add_argument("--rows", nargs="+", default=[row.name for row in PROMISES], help="of `promise`")
    arguments = parser.parse_args()
    if arguments.what == "alarms":
        alarms(arguments.runs, arguments.samples, arguments.processes, arguments.subjects)
    elif arguments.what == "promise":
        promises(arguments.runs, arguments.processes, arguments.rows, arguments.first)
    elif arguments.what == "cost":
        cost(arguments.runs, arguments.shifts)
    else:
        saved()


if __name__ == "__main__":
    main()
