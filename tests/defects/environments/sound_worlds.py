"""Symmetric worlds that naive checkers accuse: rounding, ties, noise, buffers, wrappers, odd types; one row a kind."""
# ruff: noqa: E731, RUF005 - short moves; `state + [0, wind]` adds to an array

from __future__ import annotations

import itertools
import math
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.envs.classic_control.cartpole import CartPoleEnv
from small_worlds import (
    C2,
    PUSH,
    REVERSED,
    SWAP,
    BlackWorld,
    Hidden,
    Row,
    Seen,
    Table,
    box,
    corridor,
    driven,
    mirror,
    plain,
    pushed,
    spread,
    steer,
)

from symcheck.groups import catalog
from symcheck.symmetry.symmetry import Symmetry

STATE = {"state": [[-1, -1]]}
S3, D4 = catalog.symmetric(3), catalog.dihedral(4)


def limited(env: gym.Env[Any, Any], steps: int = 25) -> gym.Env[Any, Any]:
    return gym.wrappers.TimeLimit(env, steps)


# --- precision --------------------------------------------------------------------------------------------------------


def sprung(s: Any, a: Any, rng: Any) -> Any:
    """A wall on either side that pushes back a million times as hard as it is pushed: an ulp becomes 1e-10."""
    x, v = s
    force = -1e6 * max(abs(x) - 0.3, 0.0) * math.copysign(1.0, x)
    v = 0.5 * v + 1e-3 * force + (0.3 if a else -0.3)
    return np.array([x + 1e-3 * v, v]), 0.0, False


def chaotic(s: Any, a: Any, rng: Any) -> Any:
    """Twenty turns of the odd logistic map in one step: an ulp grows a million times."""
    x = s[0]
    for _ in range(20):
        x = 3.9 * x * (1 - abs(x)) * (1 if a else -1)
    return np.array([np.clip(x, -1, 1)]), 0.0, False


def gathered(s: Any, a: Any, rng: Any) -> Any:
    """Five bodies pull on each other: sums over the others in the order of their numbers."""
    pull = np.array([sum(math.sin(other - one) for other in s) for one in s])
    following = s + 0.05 * pull
    following[int(a)] += 0.1
    return following, float(sum(following)), bool(sum(abs(one) for one in following) > 9)


FIVE = catalog.symmetric(5)
PERMUTED_FIVE = [[1, 0, 2, 3, 4], [1, 2, 3, 4, 0]]


def scaled(factor: float) -> Any:
    def move(s: Any, a: Any, rng: Any) -> Any:
        following, reward, end = plain(s / factor, a, rng)
        return factor * following, factor * reward, end

    return move


def wide_angle(s: Any, a: Any, rng: Any) -> Any:
    return (s + (0.3 if a else -0.3)) % (2 * np.pi), float(np.cos(s[0])), False


PRECISION = [
    Row("float32 shown of a float64 state", lambda: Hidden(
        show=lambda s: s.astype(np.float32), observation_space=box(2, dtype=np.float32)), mirror(**STATE), fast=True),
    Row("float16 shown", lambda: Hidden(
        show=lambda s: s.astype(np.float16), observation_space=box(2, dtype=np.float16)), mirror(**STATE)),
    Row("rewards cast to float32", lambda: Seen(
        lambda s, a, rng: (pushed(s, a), np.float32(math.exp(-abs(s[0]))), False)), mirror(), fast=True),
    Row("a stiff wall on either side", lambda: limited(Seen(sprung)), mirror()),
    Row("a chaotic map", lambda: limited(Seen(
        chaotic, lambda rng: rng.uniform(-0.9, 0.9, 1), observation_space=box(1))),
        mirror(observation=[[-1]], action=[[0, 1]])),
    Row("sums in another order", lambda: limited(Seen(
        gathered, lambda rng: rng.normal(0, 1, 5), observation_space=box(5), action_space=spaces.Discrete(5))),
        Symmetry("agents", FIVE, PERMUTED_FIVE, PERMUTED_FIVE)),
    Row("numbers of a trillion", lambda: Seen(scaled(1e12), lambda rng: 1e12 * spread(rng)), mirror()),
    Row("numbers of a trillionth", lambda: Seen(scaled(1e-12), lambda rng: 1e-12 * spread(rng)), mirror()),
    Row("a mirror about a point that no float is", lambda: Seen(
        lambda s, a, rng: (np.array([0.1 + pushed(s - [0.1, 0], a)[0], pushed(s - [0.1, 0], a)[1]]), 0.0, False),
        lambda rng: spread(rng) + [0.1, 0]), mirror(observation=[{"signs": [-1, -1], "offset": [0.2, 0]}])),
    Row("an angle from 0 to 2 pi, mirrored on the circle", lambda: Seen(
        wide_angle, lambda rng: rng.uniform(0, 2 * np.pi, 1),
        observation_space=spaces.Box(-np.inf, np.inf, (1,), np.float64)),
        mirror(observation=[lambda o: (-o) % (2 * np.pi)])),
    Row("minus zero", lambda: Seen(lambda s, a, rng: (-0.0 * s, -0.0 if a else 0.0, False)), mirror()),
    Row("negated float32 actions whose squares are summed", lambda: Seen(
        lambda s, a, rng: (0.9 * s + 0.1 * a, -float(np.sum(np.square(a))), False),
        lambda rng: rng.normal(0, 0.1, 4), observation_space=box(4), action_space=spaces.Box(-1, 1, (4,), np.float32)),
        Symmetry("legs", C2, [[2, 3, 0, 1]], [[2, 3, 0, 1]]), fast=True),
]  # fmt: skip

# --- ties and walls ---------------------------------------------------------------------------------------------------


def tied(s: Any, a: Any, rng: Any) -> Any:
    """Pushed away from the centre, and not at all in the centre: sign(0) is 0."""
    return np.array([s[0] + (0.5 if a else -0.5)]), float(np.sign(s[0]) ** 2), bool(abs(s[0]) >= 2)


def bounced(s: Any, a: Any, rng: Any) -> Any:
    x = int(s[0]) + (1 if a else -1)
    return np.array([abs(x) if x < 0 else 12 - x if x > 6 else x]), float(x in (-1, 7)), False


def torus(s: Any, a: Any, rng: Any) -> Any:
    return (s + (1 if a else -1)) % 8, float(s[0] in (0, 7)), False


def nearest(s: Any, a: Any, rng: Any) -> Any:
    """Paid by the distance to the nearer of two targets, whichever comes first."""
    x = s + (1 if a else -1)
    distances = np.abs(np.array([-3.0, 3.0]) - x[0])
    return x, -float(distances[int(np.argmin(distances))]), bool(abs(x[0]) > 5)


ROW = spaces.Box(0, 7, (1,), np.int64)
TIES = [
    Row("no push at the tie", lambda: Seen(tied, lambda rng: rng.integers(-2, 3, 1) / 2, observation_space=box(1)),
        mirror(observation=[[-1]]), fast=True),
    Row("bounced off both walls", lambda: Seen(
        bounced, lambda rng: rng.integers(0, 7, 1), observation_space=spaces.Box(0, 6, (1,), np.int64)),
        mirror(observation=[{"signs": [-1], "offset": [6]}])),
    Row("a torus of an even size", lambda: Seen(torus, lambda rng: rng.integers(0, 8, 1), observation_space=ROW),
        mirror(observation=[{"signs": [-1], "offset": [7]}])),
    Row("two targets at the same distance", lambda: Seen(
        nearest, lambda rng: rng.integers(-2, 3, 1).astype(float), observation_space=box(1)),
        mirror(observation=[[-1]])),
    Row("an end that both sides reach exactly", lambda: Seen(
        lambda s, a, rng: (s + (0.5 if a else -0.5), 0.0, bool(abs(s[0] + (0.5 if a else -0.5)) >= 2)),
        lambda rng: np.zeros(1), observation_space=box(1)), mirror(observation=[[-1]])),
    Row("actions clipped alike on both sides", lambda: gym.wrappers.ClipAction(Seen(driven, action_space=PUSH)),
        steer()),
]  # fmt: skip

# --- noise and laws ---------------------------------------------------------------------------------------------------


def noisy(draw: Any) -> Any:
    def move(s: Any, a: Any, rng: Any) -> Any:
        return pushed(s, a) + draw(s, a, rng), 0.0, False

    return move


def wasteful(s: Any, a: Any, rng: Any) -> float:
    """Draws five numbers more on one side: equal laws, other numbers."""
    if s[0] > 0:
        rng.random(5)
    return np.array([0, rng.normal(0, 0.2)])


def reordered(slip: float = 0.2) -> Any:
    table = corridor(slip=(slip, slip))
    halves = lambda outcomes: [part for p, *rest in outcomes for part in ((p / 4, *rest), (3 * p / 4, *rest))]
    return {s: {a: halves(outcomes) for a, outcomes in actions.items()} for s, actions in table.items()}


def slipping(s: Any, a: Any, rng: Any) -> Any:
    """A list of outcomes whose order differs between the actions."""
    moves = [1, -1, 0] if a else [0, 1, -1]
    chances = [0.7, 0.1, 0.2] if a else [0.2, 0.1, 0.7]
    return np.clip(s + moves[int(rng.choice(3, p=chances))], -3, 3), float(rng.integers(2)), False


CELLS = spaces.Box(-9, 9, (1,), np.int64)
MIDDLE = [0, 0, 0, 1, 0, 0, 0]
NOISE = [
    Row("random numbers consumed on one side only", lambda: Seen(noisy(wasteful)), mirror(), fast=True),
    Row("noise with heavy tails", lambda: Seen(noisy(lambda s, a, rng: [0, 0.01 * rng.standard_cauchy()])), mirror()),
    Row("noise of a few values", lambda: Seen(noisy(lambda s, a, rng: [0, rng.choice([-0.1, 0, 0.1])])), mirror()),
    Row("skewed noise whose skew follows the action", lambda: Seen(noisy(
        lambda s, a, rng: [0, (0.1 if a else -0.1) * rng.exponential()])), mirror()),
    Row("noise that grows with the state", lambda: Seen(noisy(
        lambda s, a, rng: [0, abs(s[0]) * rng.normal()])), mirror()),
    Row("outcomes listed in another order", lambda: Seen(
        slipping, lambda rng: rng.integers(-2, 3, 1), observation_space=CELLS), mirror(observation=[[-1]])),
    Row("a table whose outcomes are split and listed in another order", lambda: Table(reordered(), MIDDLE),
        Symmetry("flip", C2, REVERSED, SWAP), fast=True),
    Row("a table whose unreachable part is not symmetric", lambda: Table(
        corridor() | {6: {0: [(1.0, 0, 9.0, True)], 1: [(1.0, 0, 9.0, True)]}}, MIDDLE),
        Symmetry("flip", C2, REVERSED, SWAP)),
    Row("a start of two points", lambda: Seen(start=lambda rng: np.array([rng.choice([-0.2, 0.2]), 0.0])), mirror()),
    Row("a start with heavy tails", lambda: Seen(
        lambda s, a, rng: (0.5 * s, 0.0, False), lambda rng: rng.standard_cauchy(2)), mirror()),
    Row("a random reward in one step", lambda: Seen(
        lambda s, a, rng: (s, float(rng.normal(abs(s[0]))), True)), mirror()),
    Row("a black box whose wind is drawn anew each episode", lambda: limited(Windy()),
        mirror(), options={"samples": 1500}),
]  # fmt: skip


class Windy(BlackWorld):
    """A wind to either side, drawn when an episode starts and kept; nobody sees it."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        shown = super().reset(seed=seed)
        self.wind = self.np_random.choice([-0.2, 0.2])
        return shown

    def step(self, action: Any) -> Any:
        self.s = pushed(self.s, action) + [0, self.wind]
        return self.s.copy(), 0.0, False, False, {}


# --- memory and buffers -----------------------------------------------------------------------------------------------


def beaten(s: Any, a: Any, rng: Any) -> Any:
    """s = (x, v, clock): every seventh step doubles the push."""
    x, v = pushed(s[:2], 0, force=(1 if a else -1) * (2.0 if s[2] % 7 == 6 else 1.0))
    return np.array([x, v, s[2] + 1]), 0.0, False


class DictBuffer(Hidden):
    """Hands out one Dict whose arrays it changes in place."""

    def __init__(self) -> None:
        self.buffer = {"x": np.zeros(1), "v": np.zeros(1)}
        super().__init__(show=self.fill, observation_space=spaces.Dict(x=box(1), v=box(1)))

    def fill(self, s: Any) -> Any:
        self.buffer["x"][0], self.buffer["v"][0] = s
        return self.buffer


class ReadOnly(Hidden):
    """Hands out arrays that cannot be written, with negative strides."""

    def __init__(self) -> None:
        super().__init__(show=self.locked)

    @staticmethod
    def locked(s: Any) -> Any:
        shown = np.ascontiguousarray(s[::-1])[::-1]
        shown.flags.writeable = False
        return shown


class Autoreset(Hidden):
    """Begins the next episode by itself: the observation after an end is the first of the next one."""

    def step(self, action: Any) -> Any:
        obs, reward, terminated, truncated, info = super().step(action)
        if terminated:
            obs, _ = self.reset()
        return obs, reward, terminated, truncated, info


three = lambda rng: np.array([*spread(rng), 0.0])
MEMORY = [
    Row("a hidden clock that both sides hear", lambda: limited(Hidden(beaten, three, lambda s: s[:2].copy())),
        mirror(state=[[-1, -1, 1]]), fast=True),
    Row("a Dict whose arrays are reused", DictBuffer,
        mirror(observation=[lambda o: {"x": -o["x"], "v": -o["v"]}], **STATE),
        fast=True),
    Row("arrays that cannot be written", ReadOnly, mirror(**STATE)),
    Row("an environment that resets itself", Autoreset, mirror(**STATE)),
    Row("a counter in the info that nobody is asked about", lambda: Counting(), mirror()),
]  # fmt: skip


class Counting(Seen):
    def step(self, action: Any) -> Any:
        self.count = getattr(self, "count", 0) + 1
        return *super().step(action)[:4], {"count": self.count}


# --- wrappers ---------------------------------------------------------------------------------------------------------


def centred() -> gym.Env[Any, Any]:
    env = gym.wrappers.NormalizeObservation(Hidden())
    env.obs_rms.mean, env.obs_rms.var, env.obs_rms.count = np.zeros(2), np.array([0.1, 0.2]), 1000
    return env


def raw(**kwargs: Any) -> CartPoleEnv:
    return CartPoleEnv(**kwargs)


CART = mirror(observation=[[-1] * 4])
WRAPPERS = [
    Row("observations normalised about zero", centred, mirror(**STATE)),
    Row("rewards normalised", lambda: gym.wrappers.NormalizeReward(limited(Seen())),
        mirror(), options={"samples": 600}),
    Row("rewards clipped", lambda: gym.wrappers.ClipReward(Seen(), -0.05, 0.0), mirror()),
    Row("observations scaled", lambda: gym.wrappers.TransformObservation(Hidden(), lambda o: 3 * o, box(2)),
        mirror(**STATE)),
    Row("actions rescaled", lambda: gym.wrappers.RescaleAction(
        Seen(driven, action_space=PUSH), np.float64(-2), np.float64(2)), steer()),
    Row("a Dict that is flattened", lambda: gym.wrappers.FlattenObservation(Hidden(
        show=lambda s: {"zeta": s[:1].copy(), "alpha": s[1:].copy()}, observation_space=spaces.Dict(
            zeta=box(1), alpha=box(1)))), mirror(**STATE)),
    Row("a time limit of one step", lambda: limited(Seen(), 1), mirror(), fast=True),
    Row("a cart with another gravity", lambda: HeavyCart(), CART, fast=True),
    Row("a cart in float32", lambda: gym.wrappers.TransformObservation(
        raw(), lambda o: o.astype(np.float64), box(4)), CART),
]  # fmt: skip


class HeavyCart(CartPoleEnv):
    def __init__(self) -> None:
        super().__init__()
        self.gravity, self.force_mag, self.x_threshold = 12.0, 7.0, 1.5


# --- kinds of values --------------------------------------------------------------------------------------------------


def turned_picture(s: Any) -> Any:
    image = np.zeros((3, 5, 5), np.uint8)
    image[:, 2 - int(s[1]), 2 + int(s[0])] = (255, 128, 7)
    return image


def walked(s: Any, a: Any, rng: Any) -> Any:
    """Action k goes in direction k, counted counter-clockwise; the walls stop."""
    step = np.array([(1, 0), (0, 1), (-1, 0), (0, -1)][int(a)])
    return np.clip(s + step, -2, 2), -float(np.abs(s).sum()), False


def pushed_by_buttons(s: Any, a: Any, rng: Any) -> Any:
    return pushed(s, 0, force=float(a[1]) - float(a[0])), 0.0, False


def geared(s: Any, a: Any, rng: Any) -> Any:
    return pushed(s, 0, force=(float(a[0]) - 2) / 2) * (1 - 0.1 * float(a[1])), 0.0, False


def kicked(s: Any, a: Any, rng: Any) -> Any:
    return pushed(s, 0, force=(1.0 if a["side"] else -1.0) * float(a["force"][0])), 0.0, False


KICK = spaces.Dict(side=spaces.Discrete(2), force=spaces.Box(0, 1, (1,), np.float64))
TURN, TURN_BACK = [[0, -1], [1, 0]], [[1, 2, 3, 0]]
VALUES = [
    Row("a picture in three colours, turned", lambda: Hidden(
        walked, lambda rng: rng.integers(-2, 3, 2), turned_picture, spaces.Box(0, 255, (3, 5, 5), np.uint8),
        spaces.Discrete(4)), Symmetry("turn", catalog.cyclic(4), ["rot90"], TURN_BACK, state=[TURN]), fast=True),
    Row("a square with turns and mirrors", lambda: Seen(
        walked, lambda rng: rng.integers(-2, 3, 2), observation_space=spaces.Box(-2, 2, (2,), np.int64),
        action_space=spaces.Discrete(4)),
        Symmetry("square", D4, [TURN, [[1, 0], [0, -1]]], [[1, 2, 3, 0], [0, 3, 2, 1]])),
    Row("one of seven, as zeros and a one", lambda: Hidden(
        bounced, lambda rng: rng.integers(0, 7, 1), lambda s: np.eye(7)[int(s[0])], spaces.Box(0, 1, (7,), np.float64)),
        mirror(observation=[[6, 5, 4, 3, 2, 1, 0]], state=[{"signs": [-1], "offset": [6]}])),
    Row("cosine and sine of a hidden angle", lambda: Hidden(
        wide_angle, lambda rng: rng.uniform(0, 2 * np.pi, 1), lambda s: np.array([np.cos(s[0]), np.sin(s[0])])),
        mirror(observation=[[1, -1]], state=[lambda s: (-s) % (2 * np.pi)]), fast=True),
    Row("buttons", lambda: Seen(pushed_by_buttons, action_space=spaces.MultiBinary(2)), mirror(action=[[1, 0]])),
    Row("gears", lambda: Seen(geared, action_space=spaces.MultiDiscrete([5, 3])),
        mirror(action=[lambda a, o: np.array([4 - a[0], a[1]])])),
    Row("actions that are a Dict", lambda: Seen(kicked, action_space=KICK), mirror(action=[{"side": [1, 0]}])),
    Row("actions that begin at one", lambda: Seen(
        lambda s, a, rng: plain(s, a - 1, rng), action_space=spaces.Discrete(2, start=1)), mirror(), fast=True),
    Row("Python's own numbers and a list", lambda: Hidden(
        lambda s, a, rng: (pushed(s, a), int(s[0] ** 2 > 0.01), np.bool_(False)), show=lambda s: [float(x) for x in s]),
        mirror(**STATE)),
    Row("rewards that are no numbers, alike on both sides", lambda: Seen(
        lambda s, a, rng: (pushed(s, a), math.nan if abs(s[0]) < 0.1 else math.inf, False)), mirror()),
    Row("a world that never changes", lambda: Seen(lambda s, a, rng: (s, 0.0, False), lambda rng: np.zeros(2)),
        mirror(),
        fast=True),
    Row("K depends on the side", lambda: Seen(
        lambda s, a, rng: (np.sign(s) * max(1.0, abs(s[0]) + (1 if a else -1)), 0.0, bool(abs(s[0]) > 4)),
        lambda rng: rng.choice([-2.0, -1.0, 1.0, 2.0], 1), observation_space=box(1)),
        Symmetry("flip", C2, [[-1]], [lambda a, o: a])),
    Row("three equal agents", lambda: Seen(
        lambda s, a, rng: (0.9 * s + 0.1 * np.eye(3)[int(a)], float(np.sort(s).sum()), False),
        lambda rng: rng.uniform(0, 1, 3), observation_space=box(3), action_space=spaces.Discrete(3)),
        Symmetry("agents", S3, [[1, 0, 2], [1, 2, 0]], [[1, 0, 2], [1, 2, 0]])),
]  # fmt: skip

SOUND: list[Row] = list(itertools.chain(PRECISION, TIES, NOISE, MEMORY, WRAPPERS, VALUES))
