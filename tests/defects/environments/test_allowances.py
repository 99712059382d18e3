"""Each allowance has a correct world that is accused without it, and a fault just above it that is found.

A tolerance that nobody needs can go, and one that is too wide hides faults. Beside every allowance stands a symmetric
world whose two sides differ by what the allowance is for, and the same world with a fault just above it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from small_worlds import C2, BlackWorld, Hidden, Seen, box, mirror, spread

import symcheck as sc
from symcheck.groups import catalog
from symcheck.symmetry.symmetry import Symmetry

Make = Callable[[float], gym.Env[Any, Any]]
FLOAT64, FLOAT32 = (float(np.finfo(dtype).eps) for dtype in (np.float64, np.float32))


@dataclass(frozen=True)
class Allowance:
    """One allowance.

    Attributes:
        name: what is allowed.
        make: builds the world with a fault of the given size; 0 is the correct world.
        fault: the smallest round number above the allowance.
        symmetry: the claim, which the correct world satisfies.
        fails: the property that the fault breaks.
        options: of the run.
    """

    name: str
    make: Make
    fault: float
    symmetry: Symmetry = field(default_factory=mirror)
    fails: str = "transition_invariance"
    options: dict[str, Any] = field(default_factory=dict)


def _verified(allowance: Allowance, fault: float) -> Any:
    options = {"samples": 600, "alpha": 0.002, "seed": 1, **allowance.options}
    return sc.verify_env(lambda: allowance.make(fault), allowance.symmetry, **options)


# --- rounding ---------------------------------------------------------------------------------------------------------


def four_legs(fault: float) -> gym.Env[Any, Any]:
    """A reward in float64 less a cost that float32 actions sum in their own order: 1e-7 apart, of rewards near 1."""

    def move(s: Any, a: Any, rng: Any) -> Any:
        cost = float(np.sum(np.square(a)))
        return 0.9 * s + 0.1 * a, -float(np.abs(s).max()) - cost - fault * float(a[0]), False

    return Seen(
        move,
        lambda rng: rng.normal(0, 0.1, 4),
        observation_space=box(4),
        action_space=spaces.Box(-1, 1, (4,), np.float32),
    )


LEGS = Symmetry("legs", C2, [[2, 3, 0, 1]], [[2, 3, 0, 1]])


def ring_of_four(fault: float) -> gym.Env[Any, Any]:
    """Four cells shown by cosine and sine: where one is 0, the other side has the 6e-17 that float64 makes of it."""

    def show(s: Any) -> Any:
        shown = np.array([np.cos(np.pi * s[0] / 2), np.sin(np.pi * s[0] / 2)])
        return shown * (1 + fault * (s[0] == 2))

    return Hidden(lambda s, a, rng: ((s + (1 if a else -1)) % 4, 1.0, False), lambda rng: rng.integers(0, 4, 1), show)


QUARTER_TURN = Symmetry(
    "turn", catalog.cyclic(4), [[[0, -1], [1, 0]]], [[0, 1]], state=[lambda s: (np.asarray(s) + 1) % 4]
)


def summed_in(dtype: Any, declared: Any) -> Make:
    """Three agents and the sum of what they hold, taken in `dtype` in the order of their numbers."""

    def make(fault: float) -> gym.Env[Any, Any]:
        def show(s: Any) -> Any:
            total = s.astype(dtype).sum(dtype=dtype) + dtype(fault * (s[0] > s[1]))
            return np.array([total, *s.astype(dtype)], dtype=declared)

        return Hidden(
            lambda s, a, rng: (0.9 * s + 0.1 * np.eye(3)[int(a)], 0.0, False),
            lambda rng: rng.uniform(0, 1, 3),
            show,
            box(4, dtype=declared),
            spaces.Discrete(3),
        )

    return make


ROTATED = Symmetry("agents", catalog.cyclic(3), [[0, 2, 3, 1]], [[1, 2, 0]], state=[lambda s: np.asarray(s)[[2, 0, 1]]])


def paid_in_float32(fault: float) -> gym.Env[Any, Any]:
    """Paid a float32 sum over agents, in the order of their numbers; a sensor without a reading pays NaN."""

    def move(s: Any, a: Any, rng: Any) -> Any:
        total = float(s.astype(np.float32).sum(dtype=np.float32) + np.float32(fault * (s[0] > s[1])))
        return 0.9 * s + 0.1 * np.eye(3)[int(a)], total if s.max() > 0.5 else math.nan, False

    return Seen(move, lambda rng: rng.uniform(0, 1, 3), observation_space=box(3), action_space=spaces.Discrete(3))


AGENTS = Symmetry("agents", catalog.cyclic(3), [[1, 2, 0]], [[1, 2, 0]])


def paid_in_float64(fault: float) -> gym.Env[Any, Any]:
    """Paid by the agent that holds most, to the last digit of float64."""

    def move(s: Any, a: Any, rng: Any) -> Any:
        return 0.9 * s + 0.1 * np.eye(3)[int(a)], float(s.max()) + fault * (s[0] > s[1]), False

    return Seen(move, lambda rng: rng.uniform(0, 1, 3), observation_space=box(3), action_space=spaces.Discrete(3))


def counted(fault: float) -> gym.Env[Any, Any]:
    """Whole numbers up to a million in float64, which are exact although float32 could hold them."""

    def move(s: Any, a: Any, rng: Any) -> Any:
        following = np.clip(2 * s + (1 if a else -1), -1e6, 1e6)
        return following + fault * (following > 0) * (following < 1e6), 0.0, False

    return Seen(move, lambda rng: rng.integers(-400_000, 400_000, 1).astype(float), observation_space=box(1))


FLIP = mirror(observation=[[-1]])


def bounded_by_rounding(fault: float) -> gym.Env[Any, Any]:
    """Pushed by -0.1 to 0.8: in float32 the image of the upper bound lies 1e-8 below the lower one."""

    def move(s: Any, a: Any, rng: Any) -> Any:
        return (0.9 * s + (a - np.float32(0.35)) + np.float32(fault)).astype(np.float32), 0.0, False

    return Seen(
        move,
        lambda rng: rng.normal(0, 0.3, 1).astype(np.float32),
        observation_space=box(1, dtype=np.float32),
        action_space=spaces.Box(-0.1, 0.8, (1,), np.float32),
    )


# --- jumps ------------------------------------------------------------------------------------------------------------


def lattice(centre: float, threshold: float, first: float | None = None, lost: float = 0.0, **world: Any) -> Make:
    """Steps of 0.3 about a centre that no float is; the end is at a place of the lattice, up to rounding.

    With `lost`, each sum goes through a larger number and loses some of its last digits.
    """
    origin = centre if first is None else first

    def make(fault: float) -> gym.Env[Any, Any]:
        def move(s: Any, a: Any, rng: Any) -> Any:
            x = ((s + (0.3 if a else -0.3)) + lost) - lost
            offset = float(x[0] - centre)
            return x, 0.0, offset >= threshold + fault or offset <= fault - threshold

        return world.get("kind", Seen)(
            move, lambda rng: origin + 0.3 * rng.integers(-2, 3, 1), observation_space=box(1)
        )

    return make


def about(centre: float, **parts: Any) -> Symmetry:
    return mirror(observation=[{"signs": [-1], "offset": [2 * centre]}], **parts)


def beside_whole_numbers(fault: float) -> gym.Env[Any, Any]:
    """Whole numbers mirrored about 0.05: their images have rounding and they have none, so that images alone move."""

    def move(s: Any, a: Any, rng: Any) -> Any:
        x = s + (1.0 if a else -1.0)
        offset = float(x[0]) - 0.05
        return x, 0.0, offset >= 2.95 + fault or offset <= fault - 2.95

    return Seen(move, lambda rng: rng.integers(-2, 3, 1).astype(float), observation_space=box(1))


def at_a_root(fault: float) -> gym.Env[Any, Any]:
    """Half of the states sit where a root begins to be NaN, a unit in the last place away."""

    def move(s: Any, a: Any, rng: Any) -> Any:
        inside = 0.81 - float(s[0]) ** 2
        root = math.sqrt(inside) if inside >= 0 else math.nan
        return s, root + fault * (s[0] > 0), True

    def start(rng: Any) -> Any:
        return np.array([rng.choice([-0.9, 0.9])]) if rng.random() < 0.5 else rng.uniform(-0.5, 0.5, 1)

    return Seen(move, start, observation_space=box(1))


def at_a_wall(fault: float) -> gym.Env[Any, Any]:
    """One state in twenty sits at a wall that throws it far; the others hardly move when they are nudged."""

    def move(s: Any, a: Any, rng: Any) -> Any:
        x = float(s[0])
        return np.array([math.copysign(1.0, x) if abs(x) >= 0.7 else 0.5 * x + fault]), 0.0, True

    def start(rng: Any) -> Any:
        return np.array([rng.choice([-0.7, 0.7])]) if rng.random() < 0.05 else rng.uniform(-0.5, 0.5, 1)

    return Seen(move, start, observation_space=box(1))


# --- the circle, and values that are no numbers -----------------------------------------------------------------------

FLOAT32_CIRCLE = spaces.Box(np.float32(-np.pi), np.float32(np.pi), (1,), np.float32)


def wrapped(fault: float) -> gym.Env[Any, Any]:
    """A wheel turned by eighths in float32: half a turn is wrapped to -pi on one side and is pi in its image."""

    def move(s: Any, a: Any, rng: Any) -> Any:
        eighths = round(float(s[0]) / (0.25 * np.pi)) + (1 if a else -1)
        return np.array([((eighths + 4) % 8 - 4) * 0.25 * np.pi + fault], np.float32), 0.0, False

    def start(rng: Any) -> Any:
        return (0.25 * np.pi * rng.integers(-3, 4, 1)).astype(np.float32)

    return Seen(move, start, observation_space=FLOAT32_CIRCLE)


def three_quarters_of_a_circle(fault: float) -> gym.Env[Any, Any]:
    """A number that begins at -pi and ends elsewhere is no angle: a whole turn is a whole turn."""
    space = spaces.Box(-np.pi, 10.0, (1,), np.float64)

    def move(s: Any, a: Any, rng: Any) -> Any:
        return 0.5 * s + (fault if s[0] > 0 else 0.0), 0.0, False

    return Seen(move, lambda rng: rng.uniform(-1, 1, 1), observation_space=space)


def dropped(value: float) -> Make:
    """A sensor that gives `value` beyond 0.2, on either side; with a fault, a little later on the right."""

    def make(fault: float) -> gym.Env[Any, Any]:
        def show(s: Any) -> Any:
            out = s[0] > 0.2 + fault or s[0] < -0.2
            return np.array([math.copysign(value, s[0]) if out else s[0], s[1]])

        def move(s: Any, a: Any, rng: Any) -> Any:
            return 0.9 * s + np.array([0.03 if a else -0.03, 0.0]), value if abs(s[0]) > 0.2 else 1.0, False

        return Hidden(move, spread, show)

    return make


# --- the environment's own noise --------------------------------------------------------------------------------------


def solved_to(accuracy: float, dtype: Any, size: float = 1.0, reward: float = 0.0, every: int = 0) -> Make:
    """A solver that stops early, anywhere or every so many steps: answers from one (s, a) are `accuracy` apart."""

    def make(fault: float) -> gym.Env[Any, Any]:
        taken = itertools.count()

        def move(s: Any, a: Any, rng: Any) -> Any:
            count = next(taken)
            rare = 0.0 if not every or count % every else 1.0 - 2 * (count // every % 2)
            left = rare if every else rng.uniform(-0.5, 0.5)
            x = 0.25 * s + (0.5 if a else -0.5) * size + left * accuracy * size + fault  # never near 0
            return x.astype(dtype), float(abs(s[0])) + left * reward, False

        return Seen(
            move,
            lambda rng: (size * rng.uniform(-0.4, 0.4, 2)).astype(dtype),
            lambda s: s.astype(dtype),
            box(2, dtype=dtype),
        )

    return make


ALLOWANCES = [
    Allowance("actions of float32 summed in another order", four_legs, 1e-5, LEGS, "reward_invariance"),
    Allowance("rounding beside the typical size of a value, not its own", ring_of_four, 50 * FLOAT64, QUARTER_TURN),
    Allowance("float32 numbers in a float64 space", summed_in(np.float32, np.float64), 1e-5, ROTATED),
    Allowance("float32 numbers", summed_in(np.float32, np.float32), 1e-5, ROTATED),
    Allowance("float16 numbers", summed_in(np.float16, np.float16), 0.1, ROTATED),
    Allowance("float32 rewards, some of them NaN", paid_in_float32, 1e-5, AGENTS, "reward_invariance"),
    Allowance("nothing but float64 for float64 rewards", paid_in_float64, 1e-13, AGENTS, "reward_invariance"),
    Allowance("nothing for whole numbers", counted, 1.0, FLIP),
    Allowance("an image that rounding puts beyond a bound", bounded_by_rounding, 1e-5, Symmetry(
        "push", C2, [[-1]], [{"signs": [-1], "offset": [0.7]}])),
    Allowance("an end that is reached up to rounding", lattice(0.1, 0.9), 1e-13, about(0.1), "termination_invariance"),
    Allowance("an end that is reached up to several roundings", lattice(0.1, 0.9, lost=4.0), 1e-13, about(0.1),
        "termination_invariance"),
    Allowance("an image at a jump beside a whole number that is not", beside_whole_numbers, 1e-13,
        about(0.05, initial=False), "termination_invariance"),
    Allowance("a jump to NaN that says nothing about rounding elsewhere", at_a_root, 1e-12, FLIP, "reward_invariance"),
    Allowance("a jump that says nothing about rounding elsewhere", at_a_wall, 1e-12, FLIP),
    Allowance("an angle in float32 on either branch", wrapped, 1e-4, FLIP),
    Allowance("no turn of what is no angle", three_quarters_of_a_circle, 2 * np.pi, FLIP),
    Allowance("NaN that matches NaN", dropped(math.nan), 0.05, mirror(state=[[-1, -1]])),
    Allowance("an infinity that matches itself", dropped(math.inf), 0.05, mirror(state=[[-1, -1]])),
    Allowance("noise of a solver in float64", solved_to(1e-10, np.float64, reward=1e-10), 1e-9),
    Allowance("noise of a solver now and then", solved_to(1e-10, np.float64, reward=1e-10, every=97), 1e-9),
    Allowance("noise of a solver beside large numbers", solved_to(1e-12, np.float64, size=1e6), 2e-5),
    Allowance("noise of a solver in float32", solved_to(1e-6, np.float32), 1e-5),
]  # fmt: skip


@pytest.mark.parametrize("allowance", ALLOWANCES, ids=lambda one: one.name)
def test_a_correct_world_that_needs_an_allowance_passes_pair_by_pair(allowance: Allowance) -> None:
    report = _verified(allowance, 0.0)
    assert report.verdict == "passed", [(one.name, one.verdict, one.detail) for one in report.results[0].properties]
    assert {report[f"{part}_invariance"].method for part in ("reward", "transition", "termination")} == {"paired"}


@pytest.mark.parametrize("allowance", ALLOWANCES, ids=lambda one: one.name)
def test_a_fault_above_the_allowance_fails(allowance: Allowance) -> None:
    assert _verified(allowance, allowance.fault)[allowance.fails].verdict == "failed"


def test_a_world_that_amplifies_every_rounding_is_bounded_by_all_of_its_pairs() -> None:
    """Ten thousandfold everywhere: what a nudge typically does is learned once, and no pair needs a second look."""

    def move(s: Any, a: Any, rng: Any) -> Any:
        return 0.1 + np.sin(1e4 * (s - 0.1)) * (0.9 if a else 0.8), 0.0, False

    claim = mirror(observation=[{"signs": [-1], "offset": [0.2]}], action=[[0, 1]])
    world = Seen(move, lambda rng: 0.1 + rng.uniform(-0.9, 0.9, 1), observation_space=box(1))
    transition = sc.verify_env(lambda: world, claim, samples=900)["transition_invariance"]
    assert (transition.verdict, transition.violations) == ("passed", 0)
    assert transition.bound["value"] == pytest.approx(1 - 0.01 ** (1 / 900), rel=1e-9)
    assert "in the last place" not in transition.detail.split("Tolerance:")[0]


# --- laws -------------------------------------------------------------------------------------------------------------


def slipping(kind: Any) -> Make:
    """The lattice about 0.1 with a step that rarely or never goes the other way: rounding is what differs."""
    right = 1.0 if kind is Seen else 0.97

    def make(fault: float) -> gym.Env[Any, Any]:
        def move(s: Any, a: Any, rng: Any) -> Any:
            step = 0.3 if (rng.random() < right) == bool(a) else -0.3
            return s + step + fault, 0.0, False

        start = lambda rng: 0.1 + 0.3 * rng.integers(-2, 3, 1)  # noqa: E731
        return gym.wrappers.TimeLimit(kind(move, start, observation_space=box(1)), 5)

    return make


def half_a_turn(kind: Any) -> Make:
    """A wheel that stops at half a turn as often as anywhere: pi on one side, and -pi in its image."""

    def make(fault: float) -> gym.Env[Any, Any]:
        def stopped(rng: Any, off: float = 0.0) -> Any:
            return np.array([np.pi + off if rng.random() < 0.5 else rng.uniform(-3, 3)], np.float32)

        def move(s: Any, a: Any, rng: Any) -> Any:
            return stopped(rng, fault), float(rng.random() * abs(s[0])), False

        return gym.wrappers.TimeLimit(kind(move, stopped, observation_space=FLOAT32_CIRCLE), 3)

    return make


@pytest.mark.parametrize("method", ["distribution", "trajectory"])
@pytest.mark.parametrize(("world", "fault", "centre"), [(slipping, 0.02, 0.1), (half_a_turn, -0.5, 0.0)])
def test_laws_have_the_allowances_of_single_outcomes(world: Any, fault: float, centre: float, method: str) -> None:
    """Values that differ by rounding are one value, and pi and -pi are one angle: of steps and of starts."""
    kind = Seen if method == "distribution" else BlackWorld
    options: dict[str, Any] = {"samples": 1000, "method": method, "alpha": 0.002}
    right, wrong = (sc.verify_env(lambda f=f: world(kind)(f), about(centre), **options) for f in (0.0, fault))
    assert {right[name].verdict for name in ("transition_invariance", "initial_invariance")} == {"passed"}
    assert wrong["transition_invariance"].verdict == "failed"
