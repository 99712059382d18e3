"""Faults as they happen: in wrappers, buffers, images, tables, orders and tie-breaks; one row a kind."""
# ruff: noqa: E731, RUF005 - short moves; `state + [0, wind]` adds to an array

from __future__ import annotations

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

TRANSITION, REWARD, END, START, AXIOMS = (
    "transition_invariance", "reward_invariance", "termination_invariance", "initial_invariance", "group_axioms",
)  # fmt: skip
FOLLOWS = f"{REWARD} {END}"  # what depends on the next state


def moved(change: Any, base: Any = plain) -> Any:
    """A move whose next state passes through change(s, a, s')."""

    def move(s: Any, a: Any, rng: Any) -> Any:
        following, reward, end = base(s, a, rng)
        return np.array(change(s, a, following), dtype=float), reward, end

    return move


def paid(change: Any, base: Any = plain) -> Any:
    """A move whose reward passes through change(s, a, s', r)."""

    def move(s: Any, a: Any, rng: Any) -> Any:
        following, reward, end = base(s, a, rng)
        return following, change(s, a, following, reward), end

    return move


# --- wrappers ---------------------------------------------------------------------------------------------------------


def normalised(mean: float) -> gym.Env[Any, Any]:
    env = gym.wrappers.NormalizeObservation(Hidden())
    env.obs_rms.mean = np.array([mean, 0.0])
    env.obs_rms.var, env.obs_rms.count = np.array([0.1, 0.2]), 1000
    return env


STATE = {"state": [[-1, -1]]}
WRAPPED = [
    Row("observations normalised by a mean that is not zero", lambda: normalised(0.05), mirror(**STATE), TRANSITION,
        START, fast=True),
    Row("observations clipped on one side", lambda: gym.wrappers.TransformObservation(
        Hidden(start=lambda rng: rng.uniform(-0.9, 0.9, 2)), lambda o: np.clip(o, -0.5, 9), box(2)),
        mirror(**STATE), TRANSITION, START),
    Row("actions scaled on one side", lambda: gym.wrappers.TransformAction(
        Seen(driven, action_space=PUSH), lambda a: np.where(a > 0, 0.9 * a, a), PUSH), steer(), TRANSITION, REWARD),
    Row("an offset added before the clip", lambda: gym.wrappers.TransformAction(
        Seen(driven, action_space=PUSH), lambda a: np.clip(a + 0.2, -1, 1), PUSH), steer(), TRANSITION, REWARD),
    Row("rewards clipped before the action's cost is added", lambda: gym.wrappers.TransformReward(
        Seen(paid(lambda s, a, n, r: n[0])), lambda r: float(np.clip(r, -0.2, 1)) ** 2), mirror(), REWARD),
    Row("a cart with a wind of one percent of its motor", lambda: gym.wrappers.TimeLimit(WindyCart(), 500),
        mirror(observation=[[-1] * 4]), TRANSITION, fast=True),
    Row("a cart that falls later to one side", lambda: LeaningCart(), mirror(observation=[[-1] * 4]), END),
]  # fmt: skip


class WindyCart(CartPoleEnv):
    def step(self, action: Any) -> Any:
        _, *rest = super().step(action)
        self.state = np.array(self.state) + [0, 0.002, 0, 0]
        return np.array(self.state, dtype=np.float32), *rest


class LeaningCart(CartPoleEnv):
    def step(self, action: Any) -> Any:
        obs, _, terminated, truncated, info = super().step(action)
        late = 0.2095 < self.state[2] < 0.212 and abs(self.state[0]) < 2.4
        return obs, 1.0, terminated and not late, truncated, info


# --- memory: buffers, counters, delays --------------------------------------------------------------------------------


def stale(s: Any, a: Any, rng: Any) -> Any:
    """s = (x, v, shown): the sensor keeps its last reading while the point moves to the left."""
    x, v = pushed(s[:2], a)
    return np.array([x, v, x if v > 0 else s[2]]), 0.0, False


def counted(s: Any, a: Any, rng: Any) -> Any:
    """s = (x, v, clock): every seventh step blows to the right."""
    x, v = pushed(s[:2], a)
    return np.array([x, v + 0.05 * (s[2] % 7 == 6), s[2] + 1]), 0.0, False


def delayed(s: Any, a: Any, rng: Any) -> Any:
    """s = (x, v, last): a push to the right acts one step later, one to the left at once."""
    push = (-1.0 if a == 0 else 0.0) + s[2]
    v = 0.9 * s[1] + 0.3 * push
    return np.array([s[0] + 0.1 * v, v, float(a == 1)]), 0.0, False


def remembered(s: Any, a: Any, rng: Any) -> Any:
    """s = (x, v, last): a change of direction costs more from left to right."""
    x, v = pushed(s[:2], a)
    return np.array([x, v, 1.0 if a else -1.0]), -0.1 * (s[2] < 0 and a == 1), False


def framed(s: Any, a: Any, rng: Any) -> Any:
    """s = (x before, x, v)."""
    x, v = pushed(s[1:], a)
    return np.array([s[1], x, v]), 0.0, False


three = lambda rng: np.array([*spread(rng), 0.0])
MEMORY = [
    Row("a sensor keeps its last reading on one side", lambda: Hidden(stale, three, lambda s: s[2:], box(1)),
        mirror(observation=[[-1]], state=[[-1, -1, -1]]), TRANSITION, fast=True),
    Row("a hidden counter blows every seventh step", lambda: Hidden(counted, three, lambda s: s[:2].copy()),
        mirror(state=[[-1, -1, 1]]), TRANSITION, fast=True),
    Row("one push acts a step later", lambda: Hidden(
        delayed, lambda rng: np.array([*spread(rng), 0.0]), lambda s: s[:2].copy()), mirror(state=[[-1, -1, 1]]),
        TRANSITION),
    Row("the reward depends on the action before", lambda: Hidden(
        remembered, lambda rng: np.array([*spread(rng), rng.choice([-1.0, 1.0])]), lambda s: s[:2].copy()),
        mirror(state=[[-1, -1, -1]]), REWARD),
    Row("frames in the wrong order", lambda: Seen(framed, lambda rng: np.array([0.1, 0.1, 0.3]) * rng.choice([-1, 1]),
                                                  observation_space=box(3)),
        mirror(observation=[["-2", "-1", "-3"]]), TRANSITION),
    Row("the velocity of the hidden state keeps its sign", lambda: Hidden(
        start=lambda rng: spread(rng), show=lambda s: s[:1].copy(), observation_space=box(1)),
        mirror(observation=[[-1]], state=[[-1, 1]]), TRANSITION, FOLLOWS),
]  # fmt: skip

# --- images -----------------------------------------------------------------------------------------------------------


def rolled(s: Any, a: Any, rng: Any) -> Any:
    """A ball on seven rows."""
    row = int(np.clip(s[0] + (1 if a else -1), 0, 6))
    return np.array([row]), 0.0, False


def brightened(s: Any, a: Any, rng: Any) -> Any:
    """Paid by the distance from the middle, taken between unsigned bytes."""
    following, _, end = rolled(s, a, rng)
    return following, -float((int(following[0]) - 3) & 255), end


def picture(rows: Any, hud: bool = False, bright: int = 200) -> Any:
    def draw(s: Any) -> Any:
        image = np.zeros((1, 7, 5), np.uint8)
        image[0, int(s[0]), 2] = bright
        if hud:
            image[0, 0, 0] = 255
        return image[:, rows]

    return draw


def images(shape: tuple[int, ...]) -> spaces.Box:
    return spaces.Box(0, 255, shape, np.uint8)


FLIP = Symmetry("flip", C2, ["flip_ud"], SWAP, state=[{"signs": [-1], "offset": [6]}])
row_start = lambda rng: np.array([int(rng.integers(0, 7))])
IMAGES = [
    Row("a crop off by one row", lambda: Hidden(rolled, row_start, picture(slice(1, 7)), images((1, 6, 5))), FLIP,
        TRANSITION, START, fast=True),
    Row("a score in the picture that is not flipped", lambda: Hidden(
        rolled, row_start, picture(slice(None), hud=True), images((1, 7, 5))), FLIP, TRANSITION, START),
    Row("every second row, of an even start", lambda: Hidden(
        rolled, row_start, picture(slice(1, None, 2)), images((1, 3, 5))),
        Symmetry("flip", C2, ["flip_ud"], SWAP, state=[{"signs": [-1], "offset": [5]}]), f"{TRANSITION}", START),
    Row("one channel flipped, the other not", lambda: Hidden(rolled, row_start, lambda s: np.concatenate(
        [picture(slice(None))(s), picture(slice(None))(s)[:, ::-1]]), images((2, 7, 5))),
        Symmetry("flip", C2, [lambda o: np.stack([o[0][::-1], o[1]])], [lambda a, o: 1 - a],
                 state=[{"signs": [-1], "offset": [6]}]), TRANSITION, START),
    Row("unsigned subtraction wraps on one side", lambda: Hidden(
        brightened, row_start, picture(slice(None)), images((1, 7, 5))), FLIP, REWARD),
]  # fmt: skip

# --- orders: joints, beams, keys, agents ------------------------------------------------------------------------------


def walker(s: Any, a: Any, rng: Any) -> Any:
    """Joints: hip and knee of the left leg, then of the right; actuators: both hips, then both knees."""
    force = np.asarray(a)[[0, 2, 1, 3]] * [1.0, 0.5, 1.0, 0.5]
    return 0.9 * s + 0.1 * force + 0.02 * s[[1, 0, 3, 2]], float(-np.abs(s).sum()), False


LEGS, IN_JOINT_ORDER, IN_ACTUATOR_ORDER = [2, 3, 0, 1], [[2, 3, 0, 1]], [[1, 0, 3, 2]]
FOUR = spaces.Box(-1, 1, (4,), np.float64)
quad = lambda rng: rng.normal(0, 0.1, 4)


def scanned(s: Any) -> Any:
    """Eight beams, the first straight ahead (to the right), counter-clockwise; the distance to a post at (1, y)."""
    beams = np.arange(8) * np.pi / 4
    return np.array([s[0] * math.cos(b) + s[1] * math.sin(b) for b in beams])


def swum(s: Any, a: Any, rng: Any) -> Any:
    direction = np.array([(1, 0), (0, 1), (-1, 0), (0, -1)][int(a)])
    return 0.9 * s + 0.1 * direction, 0.0, False


UPSIDE_DOWN = [[0, 3, 2, 1]]


def arms(s: Any, a: Any, rng: Any) -> Any:
    return 0.9 * s + 0.1 * np.array([a == 0, a == 1], dtype=float), float(s.max()), False


def seen_arms(s: Any) -> Any:
    return {"left": s[:1].copy(), "right": s[1:].copy(), "both": np.array([s.sum()])}


ARMS = spaces.Dict(left=box(1), right=box(1), both=box(1))
exchanged = lambda o: {"left": o["right"], "right": o["left"], "both": o["both"]}


def three_masses(s: Any, a: Any, rng: Any) -> Any:
    following = 0.9 * s
    following[int(a)] += [0.1, 0.1, 0.11][int(a)]
    return following, float(np.sort(following).sum()), False


def outward(s: Any, a: Any, rng: Any) -> Any:
    """Buttons outward and inward, never to the centre."""
    return np.sign(s) * max(1.0, abs(s[0]) + (1 if a else -1)), 0.0, abs(s[0]) > 4


S3, D4 = catalog.symmetric(3), catalog.dihedral(4)
PERMUTED = [[1, 0, 2], [1, 2, 0]]
ORDERS = [
    Row("actions mapped in joint order, not in actuator order", lambda: Seen(
        walker, quad, observation_space=box(4), action_space=FOUR),
        Symmetry("legs", C2, [LEGS], IN_JOINT_ORDER), TRANSITION, fast=True),
    Row("beams reversed instead of mirrored", lambda: Hidden(
        swum, lambda rng: rng.normal(0, 0.1, 2), scanned, box(8), spaces.Discrete(4)),
        Symmetry("mirror", C2, [[7, 6, 5, 4, 3, 2, 1, 0]], UPSIDE_DOWN, state=[[1, -1]]), TRANSITION, START),
    Row("keys of a Dict not exchanged", lambda: Hidden(arms, lambda rng: rng.uniform(0, 1, 2), seen_arms, ARMS),
        Symmetry("arms", C2, [lambda o: o], [lambda a, o: 1 - a], state=[[1, 0]]), TRANSITION, fast=True),
    Row("one of three equal agents is heavier", lambda: Seen(
        three_masses, lambda rng: rng.uniform(0, 1, 3), observation_space=box(3), action_space=spaces.Discrete(3)),
        Symmetry("agents", S3, PERMUTED, PERMUTED), TRANSITION, REWARD),
    Row("the second of two generators is wrong", lambda: Seen(
        swum, lambda rng: rng.normal(0, 0.1, 2), action_space=spaces.Discrete(4)),
        Symmetry("square", D4, [[[0, -1], [1, 0]], [[1, 0], [0, -1]]], [[1, 2, 3, 0], [2, 1, 0, 3]]),
        TRANSITION, cause="with the action map [0, 3, 2, 1] all equations hold"),
    Row("an action map that depends on the wrong side", lambda: Seen(
        outward, lambda rng: rng.choice([-2.0, -1.0, 1.0, 2.0], 1), observation_space=box(1)),
        Symmetry("flip", C2, [[-1]], [lambda a, o: a if o[0] > 0 else 1 - a]), f"{TRANSITION} {AXIOMS}", FOLLOWS),
]  # fmt: skip

# --- numbers: casts, ties, walls --------------------------------------------------------------------------------------


def halved(s: Any, a: Any, rng: Any) -> Any:
    """Whole numbers; // rounds down on both sides."""
    v = (s[1] + (1 if a else -1)) // 2
    return np.array([s[0] + v, v]), 0.0, False


def whole(*_: Any) -> spaces.Box:
    return spaces.Box(-999, 999, (2,), np.int64)


def wrapped(size: int) -> Any:
    return lambda s, a, rng: (
        (s + (1 if a else -1)) % size if s[0] < 7 else (s + (1 if a else -1)) % (size - 1),
        0.0,
        False,
    )


def nearest(s: Any, a: Any, rng: Any) -> Any:
    """A lattice point between two targets that are paid alike, but a tie goes to the first."""
    x = s + (1 if a else -1)
    distances = np.abs(np.array([-3.0, 3.0]) - x[0])
    first = int(np.argmin(distances)) == 0
    return x, float(-distances.min() - 0.1 * (distances[0] == distances[1] and first) * (a == 0)), abs(x[0]) > 5


def rubbed(s: Any, a: Any, rng: Any) -> Any:
    """Dry friction whose direction at rest is to the left."""
    rub = 0.05 if s[1] >= 0 else -0.05
    v = 0.9 * s[1] - rub + (0.3 if a else -0.3)
    return np.array([s[0] + 0.1 * v, v]), 0.0, False


at_rest = lambda rng: np.array([rng.uniform(-0.3, 0.3), 0.0])
BUTTONS = spaces.MultiBinary(2)


def both_buttons(s: Any, a: Any, rng: Any) -> Any:
    """Two buttons; where both are pressed, the left one wins."""
    return pushed(s, 0, force=-1.0 if a[0] else 1.0 if a[1] else 0.0), 0.0, False


GEARS = spaces.MultiDiscrete([5, 3])


def geared(s: Any, a: Any, rng: Any) -> Any:
    """A push of five sizes and a brake of three; the third size is not quite zero."""
    return pushed(s, 0, force=[-1.0, -0.5, 0.02, 0.5, 1.0][int(a[0])]) * (1 - 0.1 * float(a[1])), 0.0, False


PAIR = spaces.Tuple((spaces.Discrete(2), spaces.Box(0, 1, (1,), np.float64)))


def kicked(s: Any, a: Any, rng: Any) -> Any:
    return pushed(s, 0, force=(1.0 if a[0] else -1.0) * float(a[1][0])), 0.0, False


NUMBERS = [
    Row("whole numbers halved by rounding down", lambda: Seen(
        halved, lambda rng: rng.integers(-3, 4, 2), observation_space=whole()), mirror(), TRANSITION, fast=True),
    Row("a torus of the wrong size at one edge", lambda: Seen(
        wrapped(8), lambda rng: rng.integers(0, 8, 1), observation_space=spaces.Box(0, 7, (1,), np.int64)),
        mirror(observation=[{"signs": [-1], "offset": [7]}]), TRANSITION),
    Row("an integer threshold off by one", lambda: Seen(
        lambda s, a, rng: (s + (1 if a else -1), -1.0, not -5 < s[0] + (1 if a else -1) < 6),
        lambda rng: rng.integers(-2, 3, 1), observation_space=spaces.Box(-9, 9, (1,), np.int64)),
        mirror(observation=[[-1]]), END, cause="terminates, but its image"),
    Row("a tie between targets goes to the first", lambda: Seen(
        nearest, lambda rng: rng.integers(-2, 3, 1).astype(float), observation_space=box(1)),
        mirror(observation=[[-1]]), REWARD),
    Row("friction at rest points one way", lambda: gym.wrappers.TimeLimit(Seen(rubbed, at_rest), 20),
        mirror(), TRANSITION,
        cause="violations occur where observation[1] = 0"),
    Row("two buttons pressed at once favour the left", lambda: Seen(both_buttons, action_space=BUTTONS),
        mirror(action=[[1, 0]]), TRANSITION, fast=True),
    Row("the middle gear pulls", lambda: Seen(geared, action_space=GEARS),
        mirror(action=[lambda a, o: np.array([4 - a[0], a[1]])]), TRANSITION, cause="occur where action[0] = 2"),
    Row("a part of a Tuple action is not mapped", lambda: Seen(kicked, action_space=PAIR),
        mirror(action=[lambda a, o: a]), TRANSITION, fast=True),
    Row("rounded to float32 on one side", lambda: Seen(moved(
        lambda s, a, n: np.float32(n) if n[0] > 0 else n)), mirror(), TRANSITION, REWARD),
    Row("speed saturates earlier on one side", lambda: Seen(moved(
        lambda s, a, n: [n[0], np.clip(n[1], -1, 0.9)])), mirror(), TRANSITION, REWARD),
    Row("a gravity component of one part in a million", lambda: Seen(moved(lambda s, a, n: n + [0, 3e-7])), mirror(),
        TRANSITION, REWARD, fast=True),
    Row("mirrored about the wrong centre", lambda: Seen(moved(lambda s, a, n: n)),
        mirror(observation=[{"signs": [-1, -1], "offset": [0.2, 0]}]), f"{REWARD} {START}", END),
    Row("an infinite reading on one side only", lambda: Hidden(
        show=lambda s: np.array([s[0], s[1], np.inf if s[0] > 0.2 else 1.0]), observation_space=box(3)),
        mirror(observation=[[-1, -1, 1]], **STATE), TRANSITION, START),
    Row("an angle wrapped into 0 to 2 pi, negated", lambda: Seen(
        lambda s, a, rng: ((s + (0.2 if a else -0.2)) % (2 * np.pi), float(np.cos(s[0])), False),
        lambda rng: rng.uniform(0, 2 * np.pi, 1), observation_space=box(1)), mirror(observation=[[-1]]),
        TRANSITION, START),
]  # fmt: skip

# --- rewards ----------------------------------------------------------------------------------------------------------

REWARDS = [
    Row("the cost of an action keeps its sign", lambda: Seen(
        paid(lambda s, a, n, r: r - 0.1 * float(a[0]), driven), action_space=PUSH), steer(), REWARD),
    Row("shaped by a potential that is not symmetric", lambda: Seen(
        paid(lambda s, a, n, r: r + 0.99 * math.exp(0.1 * n[0]) - math.exp(0.1 * s[0]))), mirror(), REWARD),
    Row("a bonus for ending on the right", lambda: Seen(
        paid(lambda s, a, n, r: r + 5.0 * (n[0] > 1)), lambda rng: rng.uniform(-0.9, 0.9, 2)), mirror(), REWARD,
        fast=True),
    Row("the reward is made from a floored position", lambda: Seen(
        paid(lambda s, a, n, r: -(np.floor(10 * n[0]) ** 2))), mirror(), REWARD),
    Row("the reward is off by 1e-7 of itself everywhere on one side", lambda: Seen(
        paid(lambda s, a, n, r: r * (1 + 1e-7 * (n[1] > 0)))), mirror(), REWARD),
    Row("not a number is paid on one side", lambda: Seen(
        paid(lambda s, a, n, r: math.nan if n[0] > 0.5 else r), lambda rng: rng.uniform(-0.9, 0.9, 2)), mirror(),
        REWARD, fast=True),
]  # fmt: skip

# --- laws: noise, slips, tables, starts -------------------------------------------------------------------------------


def noisy(draw: Any) -> Any:
    def move(s: Any, a: Any, rng: Any) -> Any:
        return pushed(s, a) + draw(s, a, rng), 0.0, False

    return move


def correlated(s: Any, a: Any, rng: Any) -> Any:
    common = rng.normal(0, 0.2)
    return common * np.array([1.0, 1.0]) + rng.normal(0, 0.1, 2)


def slippery(s: Any, a: Any, rng: Any) -> Any:
    """Whole steps; the right foot slips twice as often."""
    slip = rng.random() < (0.2 if a else 0.1)
    return s + (1 if a else -1) * (-1 if slip else 1), 0.0, bool(abs(s[0]) > 5)


CELLS = spaces.Box(-9, 9, (1,), np.int64)
LAWS = [
    Row("noise leans to one side where the point is fast", lambda: Seen(noisy(
        lambda s, a, rng: [0, rng.normal(0.1 * (s[1] > 0.2), 0.1)])), mirror(), TRANSITION, fast=True),
    Row("noise is correlated the wrong way round", lambda: Seen(
        lambda s, a, rng: (0.5 * s + correlated(s, a, rng), 0.0, False), lambda rng: rng.normal(0, 0.2, 2)),
        Symmetry("mirror", C2, [[-1, 1]], [[0, 1]]), TRANSITION),
    Row("one foot slips twice as often", lambda: Seen(
        slippery, lambda rng: rng.integers(-2, 3, 1), observation_space=CELLS), mirror(observation=[[-1]]),
        TRANSITION),
    Row("a gust is rare and comes from one side", lambda: Seen(noisy(
        lambda s, a, rng: [0, rng.normal(0, 0.05) + 1.0 * (rng.random() < 0.02)])), mirror(), TRANSITION),
    Row("a table whose slip differs by one part in a billion", lambda: Table(
        corridor(slip=(0.2, 0.2 + 1e-9)), [0, 0, 0, 1, 0, 0, 0]), Symmetry("flip", C2, REVERSED, SWAP), TRANSITION,
        FOLLOWS, fast=True),
    Row("a table that pays one end more", lambda: Table(
        corridor(pay=(1.0, 1.1)), [0, 0, 0, 1, 0, 0, 0]), Symmetry("flip", C2, REVERSED, SWAP), REWARD),
    Row("a table that begins off the middle", lambda: Table(
        corridor(), [0, 0, 0.5, 0.3, 0.2, 0, 0]), Symmetry("flip", C2, REVERSED, SWAP), START,
        cause="the start distribution is not symmetric"),
    Row("a start whose coordinates are correlated the wrong way round", lambda: Seen(
        lambda s, a, rng: (0.5 * s, 0.0, False), lambda rng: rng.normal(0, 0.1, 2) + rng.normal(0, 0.2)),
        Symmetry("mirror", C2, [[-1, 1]], [[0, 1]]), START),
    Row("a start on one side three times in five", lambda: Seen(
        start=lambda rng: np.array([0.2 if rng.random() < 0.6 else -0.2, 0.0])), mirror(), START, fast=True),
]  # fmt: skip

FAULTY: list[Row] = [*WRAPPED, *MEMORY, *IMAGES, *ORDERS, *NUMBERS, *REWARDS, *LAWS]
