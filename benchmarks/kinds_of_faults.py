"""Detection rate of each kind of fault, and false-alarm rate on its correct twin.

    python benchmarks/kinds_of_faults.py power --runs 10
    python benchmarks/kinds_of_faults.py twins --runs 1000

Every kind is one small world with a switch: the fault, or its correct twin. `power` prints a row per kind, with the
verdicts of both. `twins` runs fast correct twins at many seeds with few samples and counts runs in which any property
failed. Each row is printed as soon as it is finished, so an interrupted run has printed its results.
"""

from __future__ import annotations

import argparse
import math
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.envs.classic_control.pendulum import PendulumEnv

import symcheck as sc
from symcheck.engine.statistics import largest_fraction

C2 = sc.groups.cyclic(2)


def mirror(size: int, invariant: int = 0) -> sc.Symmetry:
    """All coordinates except the last `invariant` ones change sign; two actions are exchanged."""
    return sc.Symmetry("mirror", C2, observation=[[-1] * size + [1] * invariant], action=[[1, 0]])


class Cart(gym.Env[Any, Any]):
    """A damped cart with two actions, without state access. `bad` enables the fault."""

    size = 2
    dtype: Any = np.float64

    def __init__(self, *, bad: bool) -> None:
        self.bad = bad
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, (self.size,), self.dtype)
        self.action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        """Start near the middle."""
        super().reset(seed=seed)
        self.s, self.t, self.memory = self.begin(), 0, 0.0
        return self.show(), {}

    def step(self, action: Any) -> Any:
        """Push and move."""
        push = 2 * int(action) - 1
        v = 0.9 * self.s[1] + 0.1 * push + self.force(push)
        self.s, self.t = np.array([self.s[0] + 0.1 * v, v]), self.t + 1
        return self.show(), self.pay(push), self.over(), self.cut(), {}

    def begin(self) -> Any:
        """The start position."""
        return self.np_random.uniform(-1, 1, 2)

    def show(self) -> Any:
        """The observation."""
        return self.s.astype(self.dtype)

    def force(self, push: int) -> float:
        """An additional force on the velocity."""
        return 0.0

    def pay(self, push: int) -> float:
        """The reward."""
        return -float(self.s[0] ** 2)

    def over(self) -> bool:
        """Whether the episode ends."""
        return bool(abs(self.s[0]) > 2)

    def cut(self) -> bool:
        """Whether the environment truncates it."""
        return False


def settable(world: type[Cart]) -> type[Cart]:
    """The same with get_state and set_state."""

    class Settable(world):  # type: ignore[misc,valid-type]
        def get_state(self) -> Any:
            """The state."""
            return self.s.copy()

        def set_state(self, state: Any) -> None:
            """Set the state."""
            self.s = np.array(state, float)

    return Settable


def kind(**methods: Any) -> type[Cart]:
    """A cart with some methods replaced."""
    return type("Kind", (Cart,), methods)


def _right_of_fault(self: Any) -> float:
    """1 on the right if there is a fault, else 0."""
    return float(self.bad and self.s[0] > 0)


def _far(self: Any) -> Any:
    far = 1e6 if abs(self.s[0]) < 0.05 else 1 - abs(self.s[0]) + 0.05 * _right_of_fault(self)
    return np.array([*self.s, far], np.float32)


def _step_with_correlated_noise(self: Any, action: Any) -> Any:
    z, w = self.np_random.normal(size=2)
    joined = 0.9 * z + math.sqrt(0.19) * w if action or not self.bad else w
    self.s, self.t = 0.9 * self.s + np.array([0, 0.2 * action - 0.1]) + 0.1 * np.array([z, joined]), self.t + 1
    return self.show(), self.pay(1), self.over(), False, {}


def _chaos(self: Any, action: Any) -> Any:
    x = float(np.clip(self.s[0], -1, 1))
    for _ in range(60):
        x = np.sign(x) * 4 * abs(x) * (1 - abs(x))
    self.s = np.array([0.9 * x + 0.05 * self.bad, 0.9 * self.s[1] + 0.2 * action - 0.1])
    return self.show(), self.pay(1), self.over(), False, {}


def _remembers(self: Any, push: int) -> float:
    self.memory = 0.5 * self.memory + 1e-12 * math.sin(1e3 * self.s[0])
    return float(self.memory) + 0.01 * self.bad


class Wide(Cart):
    """Sixty numbers with noise; a wind of two standard deviations on one of them."""

    size = 60

    def begin(self) -> Any:
        """A random state."""
        return self.np_random.normal(size=60)

    def step(self, action: Any) -> Any:
        """Apply decay, noise and push."""
        self.s = 0.9 * self.s + 0.1 * self.np_random.normal(size=60) + 0.2 * action - 0.1
        self.s[45] += 0.2 * self.bad
        return self.show(), 0.0, False, False, {}


@dataclass(frozen=True)
class Kind:
    """One row of the table.

    Attributes:
        item: the kind of fault.
        fault: in words.
        world: built with `bad=`.
        claim: the symmetry.
        samples: asked for.
    """

    item: str
    fault: str
    world: Callable[..., Any]
    claim: sc.Symmetry
    samples: int = 2000


def noise(width: Callable[[Any, int], float], mean: float = 0.0) -> Callable[[Any, int], float]:
    """Normal noise of the given width; its mean is nonzero if there is a fault."""
    return lambda self, push: float(self.np_random.normal(mean * self.bad, width(self, push)))


def _clock(self: Any, push: int) -> float:
    """Alternating pushes to the left and right; for the twin, a brake."""
    return float((0.03 if self.bad else -0.1 * self.s[1]) * (-1) ** self.t)


def _cell(self: Any, push: int) -> float:
    x, v = self.s if self.bad else np.abs(self.s)
    return float(0.3 * (0.8 < x < 0.9 and 0.2 < v < 0.4) - self.s[0] ** 2)


def _no_number(self: Any, push: int) -> float:
    far = (self.s[0] if self.bad else abs(self.s[0])) > 1.5
    return math.nan if far else -float(self.s[0] ** 2)


def _jump(self: Any, push: int) -> float:
    """A push whose sign depends on the last bits of |state|, which any rounding changes."""
    last = int(np.abs(self.s).view(np.int64).sum()) % 2
    return push * (0.02 if last else -0.02) + 0.01 * self.bad


def _rarely(self: Any, push: int) -> float:
    """Noise in one step of 500."""
    return float((self.np_random.random() < 0.002) * self.np_random.normal(0, 0.1) + 0.01 * self.bad)


class Pendulum(PendulumEnv):
    """Gymnasium's pendulum, whose states are rebuilt from float32 observations; torques to one side are 1% stronger."""

    def __init__(self, *, bad: bool) -> None:
        super().__init__()
        self.bad = bad

    def step(self, action: Any) -> Any:
        """Turn."""
        return super().step(np.float32(1.01) * action if self.bad and action[0] > 0 else action)


def _wrapped(*, bad: bool) -> Any:
    """The pendulum in a wrapper that shifts by running means, or (the twin) scales by fixed bounds."""
    pendulum = gym.make("Pendulum-v1")
    if bad:
        return gym.wrappers.NormalizeObservation(pendulum)
    return gym.wrappers.RescaleObservation(pendulum, np.float32(-1), np.float32(1))


PENDULUM = sc.Symmetry("mirror", C2, observation=[[1, -1, -1]], action=[[-1]])
PLAIN, THIRD = mirror(2), mirror(2, 1)
FAR_MAP = sc.Symmetry("mirror", C2, observation=[[-1, -1, 1]], action=[[1, 0]], state=[[-1, -1]])
FAR = {"size": 3, "dtype": np.float32, "show": _far}
KINDS = [
    Kind("1 far-off values", "range sensor 0.05 too far on the right, states set", settable(kind(**FAR)), FAR_MAP),
    Kind("1 far-off values", "the same, black box", kind(**FAR), THIRD),
    Kind(
        "1 far-off values",
        "penalties of -1e15, and 0.1 more on the right",
        settable(
            kind(pay=lambda self, push: -1e15 if abs(self.s[0]) > 1.8 else 0.1 * _right_of_fault(self) - self.s[0] ** 2)
        ),
        PLAIN,
    ),
    Kind(
        "1 coarse dtypes",
        "float16 observations, a wind of 0.01, black box",
        kind(dtype=np.float16, force=lambda self, push: 0.01 * self.bad),
        PLAIN,
    ),
    Kind("3 chaos", "60 turns of a logistic map, moved by 0.05, states set", settable(kind(step=_chaos)), PLAIN),
    Kind(
        "4 starts",
        "a start at sin(pi) and 0.05 beside it",
        kind(begin=lambda self: np.array([math.sin(math.pi) + 0.05 * self.bad, 0.0])),
        PLAIN,
    ),
    Kind(
        "4 starts",
        "mixed starts, 56% on the right",
        kind(begin=lambda self: (2 * (self.np_random.random() < 0.5 + 0.06 * self.bad) - 1) * np.array([0.5, 0.2])),
        PLAIN,
        10_000,
    ),
    Kind("5 hidden clock", "a push of 0.03 left and right in turn, black box", kind(force=_clock), PLAIN),
    Kind(
        "5 first step",
        "a push of 0.05 in the first step, black box",
        kind(force=lambda self, push: 0.05 * (self.t == 0) * (1 if self.bad else push)),
        PLAIN,
    ),
    Kind(
        "5 tiny tilt",
        "1e-3 on the velocity, black box",
        kind(force=lambda self, push: 1e-3 * self.bad),
        PLAIN,
    ),
    Kind(
        "6 width",
        "noise 60% wider under one action, black box",
        kind(force=noise(lambda self, push: 0.08 if self.bad and push > 0 else 0.05)),
        PLAIN,
    ),
    Kind(
        "6 width",
        "noise 60% wider under one action, states set",
        settable(kind(force=noise(lambda self, push: 0.08 if self.bad and push > 0 else 0.05))),
        PLAIN,
    ),
    Kind(
        "6 products",
        "noise correlated by 0.9 under one action alone, states set",
        settable(kind(step=_step_with_correlated_noise)),
        PLAIN,
    ),
    Kind("6 products", "the same, black box", kind(step=_step_with_correlated_noise), PLAIN),
    Kind("7 long vectors", "a wind of two deviations on one of 60, black box", Wide, mirror(60), 10_000),
    Kind("9 lossy setters", "memory of 1e-12 not restored, a wind of 0.01", settable(kind(force=_remembers)), PLAIN),
    Kind(
        "10 ends by chance",
        "ends with 8% instead of 5% on the right, states set",
        settable(kind(over=lambda self: bool(self.np_random.random() < 0.05 + 0.03 * _right_of_fault(self)))),
        PLAIN,
        10_000,
    ),
    Kind(
        "11 rare outcomes",
        "pays 10 once in 50 instead of once in 100 under one action",
        settable(kind(pay=lambda self, push: 10.0 * (self.np_random.random() < 0.01 + 0.01 * (self.bad and push > 0)))),
        PLAIN,
        10_000,
    ),
    Kind(
        "17 own truncation",
        "cut after 40 steps instead of 60 on the right, by a counter that is not restored",
        settable(kind(over=lambda self: False, cut=lambda self: self.t >= 60 - 20 * _right_of_fault(self))),
        PLAIN,
        4000,
    ),
    Kind(
        "17 late",
        "a wind of 0.02 after 150 steps, black box",
        kind(over=lambda self: False, force=lambda self, push: 0.02 * (self.t > 150) * (1 if self.bad else push)),
        PLAIN,
        10_000,
    ),
]
KINDS += [
    Kind("2 rebuilt states", "Pendulum-v1, torques to one side 1% stronger, claim without state", Pendulum, PENDULUM),
    Kind("8 wrappers", "NormalizeObservation of Pendulum-v1 (twin: RescaleObservation)", _wrapped, PENDULUM),
    Kind("1 small cell", "0.3 more in a cell of the states on one side, black box", kind(pay=_cell), PLAIN, 10_000),
    Kind(
        "5 hidden time",
        "a reward discounted by the step number, and 0.02 x more, black box",
        kind(pay=lambda self, push: -float(self.s[0] ** 2) * 0.99**self.t + 0.02 * self.s[0] * self.bad),
        PLAIN,
        10_000,
    ),
    Kind(
        "9 lossy setters",
        "a push in step 100 alone, by a counter that is not restored (right: undecided)",
        settable(
            kind(
                over=lambda self: False,
                force=lambda self, push: 0.05 * (self.t == 100) * (1 if self.bad else push),
            )
        ),
        PLAIN,
    ),
    Kind(
        "17 thresholds",
        "ends at -1.17 and 1.2 instead of -1.2 and 1.2, black box",
        kind(over=lambda self: bool(self.s[0] > 1.2 or self.s[0] < -1.2 + 0.03 * self.bad)),
        PLAIN,
        10_000,
    ),
    Kind(
        "17 own truncation",
        "cut after 190 steps instead of 200 on the right, black box",
        kind(over=lambda self: False, cut=lambda self: self.t >= 200 - 10 * _right_of_fault(self)),
        PLAIN,
        10_000,
    ),
]
KINDS += [
    Kind("1 no number", "NaN as reward beyond 1.5, but not below -1.5, black box", kind(pay=_no_number), PLAIN, 10_000),
    Kind(
        "3 dense jumps",
        "pushes by the last bit of the state, a wind of 0.01, states set",
        settable(kind(force=_jump)),
        PLAIN,
    ),
    Kind("9 rare noise", "noise in one step of 500, a wind of 0.01, states set", settable(kind(force=_rarely)), PLAIN),
    Kind(
        "17 late",
        "0.5 more in step 150 of 200 on the right, black box",
        kind(
            over=lambda self: False,
            cut=lambda self: self.t >= 200,
            pay=lambda self, push: 0.5 * (self.t == 150 and (self.s[0] > 0 or not self.bad)) - float(self.s[0] ** 2),
        ),
        PLAIN,
        10_000,
    ),
]
CHEAP = ["1 coarse dtypes", "4 starts", "5 hidden clock", "5 first step", "6 width", "17 own truncation"]


def verdict(row: Kind, seed: int, samples: int, *, bad: bool) -> str:
    """The verdict of one run."""
    return str(sc.verify_env(lambda: row.world(bad=bad), row.claim, samples=samples, seed=seed).verdict)


def power(runs: int, until: float, items: Sequence[str]) -> None:
    """Print the detection rate of each fault and the false-alarm rate of its twin, for some items or for all."""
    print(f"{'kind':20}{'fault':82}{'samples':>8}{'failed':>9}{'undecided':>10}{'twin failed':>13}{'undecided':>10}")
    for row in [row for row in KINDS if not items or row.item in items]:
        counts = []
        for bad in (True, False):
            counts.append(Counter(verdict(row, seed, row.samples, bad=bad) for seed in range(runs)))
        cells = "".join(f"{count['failed']:>8}/{runs}{count['undecided']:>8}" for count in counts)
        print(f"{row.item:20}{row.fault:82}{row.samples:8}{cells}", flush=True)
        if time.monotonic() > until:
            print("the time was up")
            return


def twins(seeds: range, samples: int, until: float) -> None:
    """Print the number of false alarms on correct twins, in all and for each twin, with intervals of the rates."""
    rows = [row for row in KINDS if row.item in CHEAP and row.samples < 10_000]
    failed = dict.fromkeys(range(len(rows)), 0)
    for done, seed in enumerate(seeds, 1):
        for at, row in enumerate(rows):
            failed[at] += verdict(row, seed, samples, bad=False) == "failed"
        late = time.monotonic() > until
        if late or done % 50 == 0 or done == len(seeds):
            for at, row in enumerate(rows):
                print(f"  {row.item:20}{row.fault:82}{_rate(failed[at], done)}")
            print(f"all, to seed {seed}: {_rate(sum(failed.values()), len(rows) * done)}", flush=True)
        if late:
            return


def _rate(failed: int, runs: int) -> str:
    # Two one-sided bounds at 2.5% make one two-sided interval. The lower bound on the rate of alarms is one minus the
    # upper bound on the rate of runs without.
    low, high = 1 - largest_fraction(runs - failed, runs, 0.025), largest_fraction(failed, runs, 0.025)
    return f"{failed:>5} of {runs:<5} (95% interval {100 * low:.2f}% to {100 * high:.2f}%)"


def main() -> None:
    """Run the requested measurement."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["power", "twins"])
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--samples", type=int, default=200, help="of twins")
    parser.add_argument("--first", type=int, default=0, help="seed of twins")
    parser.add_argument("--items", nargs="+", default=[], help="of `power`; all if none is named")
    parser.add_argument("--minutes", type=float, default=60.0)
    given = parser.parse_args()
    until = time.monotonic() + 60 * given.minutes
    if given.what == "power":
        power(given.runs, until, given.items)
    else:
        twins(range(given.first, given.first + given.runs), given.samples, until)


if __name__ == "__main__":
    main()
