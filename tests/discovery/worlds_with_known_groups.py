"""Small environments whose symmetries of the searched forms are known: by brute force here, or by construction.

A world is a law: `law(x, action)` lists (probability, next state, reward, ended). `largest` tries every signed
permutation of the state, about every centre that the world names, with every action map, on states drawn by the world.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

Law = list[tuple[float, np.ndarray, float, bool]]
DECIMALS = 9  # two sides of an equation round in the sixteenth digit; planted faults are far larger
TESTED = 40  # states of a brute force: every planted fault shows on far more than one of so many


class World(gym.Env[Any, Any]):
    """An environment with a law, whose state is set and read.

    Attributes:
        low, high: corners of the box of states in which episodes start.
        whole: whether states are whole numbers.
        centres: the points about which maps are searched.
        known: the order of the largest group where brute force would take too long, by construction; else None.
    """

    action_space: spaces.Space[Any] = spaces.Box(-1.0, 1.0, (2,), np.float64)
    low: Any = (-0.5, -0.5)
    high: Any = (0.5, 0.5)
    whole = False
    centres: tuple[Any, ...] = (0.0,)
    known: int | None = None
    reach = 1.0  # states that are compared lie in the box of starts, widened by this

    def __init__(self) -> None:
        self.x = np.array(self.low, dtype=np.float64)
        kind, bound = (np.int64, 10) if self.whole else (np.float64, np.inf)
        self.observation_space: spaces.Space[Any] = spaces.Box(-bound, bound, self.x.shape, kind)

    def law(self, x: np.ndarray, action: Any) -> Law:
        """What may follow."""
        moved, reward, ended = self.move(x, action)
        return [(1.0, moved, float(reward), bool(ended))]

    def move(self, x: np.ndarray, action: Any) -> tuple[np.ndarray, float, bool]:
        """What follows, where that is certain."""
        raise NotImplementedError

    def show(self, x: np.ndarray) -> Any:
        """The observation of a state."""
        return x.astype(np.int64) if self.whole else x.copy()

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        """A state to compare at."""
        low, high = np.array(self.low, float), np.array(self.high, float)
        if self.whole:
            return rng.integers(low.astype(int), high.astype(int) + 1).astype(float)
        return rng.uniform(low - self.reach, high + self.reach)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """A start, uniform in the box of starts."""
        super().reset(seed=seed)
        low, high = np.array(self.low, float), np.array(self.high, float)
        if self.whole:
            self.x = self.np_random.integers(low.astype(int), high.astype(int) + 1).astype(float)
        else:
            self.x = self.np_random.uniform(low, high)
        return self.show(self.x), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """One outcome of the law."""
        outcomes = self.law(self.x.copy(), action)
        at = self.np_random.choice(len(outcomes), p=[p for p, *_ in outcomes]) if len(outcomes) > 1 else 0
        _, self.x, reward, ended = outcomes[at]
        return self.show(self.x), reward, ended, False, {}

    def get_state(self) -> np.ndarray:
        """The state."""
        return self.x.copy()

    def set_state(self, state: Any) -> None:
        """Put it there."""
        self.x = np.array(state, dtype=np.float64)


def largest(world: World) -> int:
    """The order of the largest group of the searched forms, by brute force over all of its maps."""
    if world.known is not None:
        return world.known
    rng = np.random.default_rng(0)
    states = [world.draw(rng) for _ in range(TESTED)]
    n, held = len(world.x), 0
    for centre in {tuple(np.broadcast_to(c, n).tolist()) for c in world.centres}:
        for index in itertools.permutations(range(n)):
            for sign in itertools.product((1.0, -1.0), repeat=n):
                move = _map(np.array(index), np.array(sign), np.array(centre))
                identity = index == tuple(range(n)) and min(sign) > 0
                held += not identity and _keeps_starts(world, move) and _holds(world, move, states)
    return held + 1


def _map(index: np.ndarray, sign: np.ndarray, centre: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    def move(x: np.ndarray) -> np.ndarray:
        image = np.empty(len(x))
        image[index] = sign * (x - centre)
        # The image of the centre is the centre.
        return centre + image

    return move


def _keeps_starts(world: World, move: Callable[[np.ndarray], np.ndarray]) -> bool:
    low, high = np.array(world.low, float), np.array(world.high, float)
    ends = np.sort(np.stack([move(low), move(high)]), axis=0)
    return bool(np.allclose(ends, [low, high]))


def _holds(world: World, move: Callable[[np.ndarray], np.ndarray], states: Iterable[np.ndarray]) -> bool:
    """Whether some action map makes a symmetry of it: actions whose laws agree at every state can be matched."""
    maps = list(action_maps(world.action_space))
    for state in states:
        maps = [each for each in maps if all(_agree(world, move, state, a, b) for a, b in each)]
        if not maps:
            return False
    return True


def action_maps(space: spaces.Space[Any]) -> Iterator[list[tuple[Any, Any]]]:
    """Every action map, as pairs of an action and its image: all actions, or some of a Box."""
    if isinstance(space, spaces.Discrete):
        for images in itertools.permutations(range(int(space.n))):
            yield list(enumerate(images))
        return
    if isinstance(space, spaces.Box):
        rng, size = np.random.default_rng(1), int(np.prod(space.shape))
        some = rng.uniform(-1, 1, (3, size))
        for index in itertools.permutations(range(size)):
            for sign in itertools.product((1.0, -1.0), repeat=size):
                yield [(a, _map(np.array(index), np.array(sign), np.zeros(size))(a)) for a in some]
        return
    counts = space.nvec if isinstance(space, spaces.MultiDiscrete) else [2] * int(np.prod(space.shape or (1,)))
    joint = list(itertools.product(*(range(int(n)) for n in counts)))
    for goes in itertools.permutations(range(len(counts))):
        if any(counts[k] != counts[goes[k]] for k in range(len(counts))):
            continue
        for values in itertools.product(*(itertools.permutations(range(int(n))) for n in counts)):
            pairs = []
            for action in joint:
                image = [0] * len(counts)
                for k, v in enumerate(action):
                    image[goes[k]] = values[k][v]
                pairs.append((np.array(action), np.array(image)))
            yield pairs


def _agree(world: World, move: Callable[[np.ndarray], np.ndarray], state: np.ndarray, a: Any, b: Any) -> bool:
    left = [(p, move(x), r, e) for p, x, r, e in world.law(state.copy(), a)]
    right = world.law(move(state.copy()), b)
    return _summary(left) == _summary(right)


def _summary(law: Law) -> dict[Any, float]:
    made: dict[Any, float] = {}
    for p, x, r, e in law:
        key = (tuple(np.round(x, DECIMALS) + 0.0), round(r, DECIMALS) + 0.0, e)
        made[key] = round(made.get(key, 0.0) + p, DECIMALS)
    return made


# Planes: a point that a Box pushes about.


class Plane(World):
    """A point pulled to the origin axis by axis (D4)."""

    def move(self, x: np.ndarray, action: Any) -> tuple[np.ndarray, float, bool]:
        return x - 0.1 * x * (1 + x**2) + 0.05 * np.asarray(action), -float((x**4).sum()), False


class Wind(Plane):
    """Wind along the first axis."""

    def move(self, x: np.ndarray, action: Any) -> tuple[np.ndarray, float, bool]:
        moved, reward, ended = super().move(x, action)
        return moved + np.array([0.02, 0.0]), reward, ended


class SlopedReward(Plane):
    """The reward rises along the first axis."""

    def move(self, x: np.ndarray, action: Any) -> tuple[np.ndarray, float, bool]:
        moved, reward, ended = super().move(x, action)
        return moved, reward + x[0], ended


class Wall(Plane):
    """A wall on the right."""

    def move(self, x: np.ndarray, action: Any) -> tuple[np.ndarray, float, bool]:
        moved, reward, ended = super().move(x, action)
        return np.minimum(moved, [0.3, np.inf]), reward, ended


class Whirl(Plane):
    """A current turns about the origin: quarter turns, no reflection (C4)."""

    def move(self, x: np.ndarray, action: Any) -> tuple[np.ndarray, float, bool]:
        moved, reward, ended = super().move(x, action)
        return moved + 0.1 * np.array([-x[1], x[0]]), reward, ended


class Springs(Plane):
    """Two springs that differ by a hundredth: the axes cannot be exchanged."""

    def move(self, x: np.ndarray, action: Any) -> tuple[np.ndarray, float, bool]:
        moved, reward, ended = super().move(x, action)
        return moved - np.array([0.0, 0.01]) * x, reward, ended


class End(Plane):
    """An episode ends on the far left."""

    def move(self, x: np.ndarray, action: Any) -> tuple[np.ndarray, float, bool]:
        moved, reward, _ = super().move(x, action)
        return moved, reward, bool(x[0] < -0.4)


class Start(Plane):
    """Episodes start on the right."""

    low, high = (0.2, -0.5), (0.5, 0.5)


class UnequalThrusters(Plane):
    """One thruster is stronger than the other."""

    def move(self, x: np.ndarray, action: Any) -> tuple[np.ndarray, float, bool]:
        return super().move(x, np.asarray(action) * np.array([1.0, 1.5]))


class Valley(World):
    """A particle in a well at 0.7, pushed left or right or not at all."""

    action_space = spaces.Discrete(3)
    low, high, centres = (0.2, -0.5), (1.2, 0.5), ((0.7, 0.0),)

    def move(self, x: np.ndarray, action: Any) -> tuple[np.ndarray, float, bool]:
        speed = 0.95 * x[1] - 0.1 * np.sin(x[0] - 0.7) + 0.02 * (int(action) - 1)
        return np.array([x[0] + 0.1 * speed, speed]), -((x[0] - 0.7) ** 2), False


class Context(World):
    """A sign that is drawn at the start says which way the wind blows."""

    low, high, reach = (-0.5, -0.5, -1.0), (0.5, 0.5, 1.0), 0.0

    def move(self, x: np.ndarray, action: Any) -> tuple[np.ndarray, float, bool]:
        moved = x[:2] - 0.1 * x[:2] * (1 + x[:2] ** 2) + 0.05 * np.asarray(action) + np.array([0.05 * x[2], 0.0])
        return np.append(moved, x[2]), -float((x[:2] ** 4).sum()), False


class Mode(World):
    """A mode, 0 or 1 for a whole episode, says which way the wind blows: reversed with the mode (C2 x C2)."""

    low, high, reach = (-0.5, -0.5, 0.0), (0.5, 0.5, 1.0), 0.0
    centres: tuple[Any, ...] = ((0.0, 0.0, 0.5),)
    harder = 1.0

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        return np.append(rng.uniform(-0.5, 0.5, 2), rng.integers(2))

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.x = self.draw(self.np_random)
        return self.show(self.x), {}

    def move(self, x: np.ndarray, action: Any) -> tuple[np.ndarray, float, bool]:
        wind = np.array([0.05 * self.harder if x[2] > 0.5 else -0.05, 0.0])
        moved = x[:2] - 0.1 * x[:2] * (1 + x[:2] ** 2) + 0.05 * np.asarray(action) + wind
        return np.append(moved, x[2]), -float((x[:2] ** 4).sum()), False


class ModeThatBlowsHarder(Mode):
    """One way it blows a little harder: the axis across the wind can be reflected (C2)."""

    harder = 1.02


class Compass(World):
    """A point and which of four places it is to reach, one number for each: they turn together (D4)."""

    action_space = spaces.Discrete(4)
    low, high = (-1.0,) * 2 + (0.0,) * 4, (1.0,) * 6
    known, paid = 8, 1.0
    places = np.array([(1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0)])

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.x = np.append(self.np_random.uniform(-1, 1, 2), np.eye(4)[self.np_random.integers(4)])
        return self.show(self.x), {}

    def move(self, x: np.ndarray, action: Any) -> tuple[np.ndarray, float, bool]:
        place, asked = np.clip(x[:2] + 0.15 * self.places[int(action)], -1.5, 1.5), int(x[2:].argmax())
        away = float(np.linalg.norm(place - self.places[asked]))
        return np.append(place, x[2:]), -away * (self.paid if asked == 0 else 1.0), away < 0.2


class CompassWithNearPlace(Compass):
    """The way to one place counts a little less: the reflection that keeps it (C2)."""

    known, paid = 2, 0.97


class Command(World):
    """A speed along a line, and the speed that is asked for."""

    action_space = spaces.Box(-1.0, 1.0, (1,), np.float64)

    def move(self, x: np.ndarray, action: Any) -> tuple[np.ndarray, float, bool]:
        return np.array([0.9 * x[0] + 0.1 * float(np.asarray(action)[0]), x[1]]), -((x[0] - x[1]) ** 2), False


class Goal(World):
    """A point and a goal on a square; the reward alone knows the goal, near which few states are."""

    low, high, reach = (-1.0,) * 4, (1.0,) * 4, 0.0

    def move(self, x: np.ndarray, action: Any) -> tuple[np.ndarray, float, bool]:
        place = np.clip(x[:2] + 0.1 * np.asarray(action), -1, 1)
        return np.concatenate([place, x[2:]]), float(np.hypot(*(place - x[2:])) < 0.3), False


class LongGoal(Goal):
    """The field is twice as long as wide."""

    low, high = (-2.0, -1.0) * 2, (2.0, 1.0) * 2

    def move(self, x: np.ndarray, action: Any) -> tuple[np.ndarray, float, bool]:
        place = np.clip(x[:2] + 0.1 * np.asarray(action), [-2, -1], [2, 1])
        return np.concatenate([place, x[2:]]), float(np.hypot(*(place - x[2:])) < 0.3), False


class Twins(World):
    """Two of four actions do the same."""

    action_space = spaces.Discrete(4)
    low, high = (-0.5,), (0.5,)

    def move(self, x: np.ndarray, action: Any) -> tuple[np.ndarray, float, bool]:
        return 0.9 * x + 0.1 * (-1.0, 0.0, 0.0, 1.0)[int(action)], -float(x[0] ** 2), False


# Whole numbers: grids, boards, switches.

STEPS = np.array([[0, 0], [1, 0], [0, 1], [-1, 0], [0, -1]])


class Grid(World):
    """A walk on a field of 5 x 5 with walls, places counted from 0; a reward for the middle."""

    action_space = spaces.Discrete(5)
    low, high, whole = (0, 0), (4, 4), True
    centres = (2.0,)
    goal = (2, 2)

    def move(self, x: np.ndarray, action: Any) -> tuple[np.ndarray, float, bool]:
        moved = np.clip(x + STEPS[int(action)], 0, 4)
        reached = tuple(moved) == self.goal
        return moved, float(reached), reached


class GridToCorner(Grid):
    """The goal is a corner: the reflection in the diagonal is left."""

    goal = (4, 4)


class GridWithTrap(Grid):
    """One cell off the middle costs."""

    def move(self, x: np.ndarray, action: Any) -> tuple[np.ndarray, float, bool]:
        moved, reward, ended = super().move(x, action)
        return moved, reward - float(tuple(moved) == (0, 2)), ended


class SlipperyGrid(Grid):
    """A step goes to either side now and then."""

    def law(self, x: np.ndarray, action: Any) -> Law:
        if not int(action):
            return super().law(x, 0)
        others = [(1.0 - 0.2 * 2, int(action)), (0.2, int(action) % 4 + 1), (0.2, (int(action) - 2) % 4 + 1)]
        return [(p * q, y, r, e) for p, a in others for q, y, r, e in super(SlipperyGrid, self).law(x, a)]


class Switches(World):
    """Four switches, any of which is turned at once; the reward counts those that are on."""

    action_space = spaces.MultiBinary(4)
    low, high, whole = (0,) * 4, (1,) * 4, True

    def move(self, x: np.ndarray, action: Any) -> tuple[np.ndarray, float, bool]:
        moved = np.abs(x - np.asarray(action))
        return moved, float(moved.sum()), bool(moved.sum() == 4)


class OddSwitch(Switches):
    """One switch counts twice."""

    def move(self, x: np.ndarray, action: Any) -> tuple[np.ndarray, float, bool]:
        moved, reward, ended = super().move(x, action)
        return moved, reward + moved[2], ended


class TwoOnALine(World):
    """Two robots on a line, each sent left or right or nowhere; they are paid for distance."""

    action_space = spaces.MultiDiscrete([3, 3])
    low, high, whole = (-2, -2), (2, 2), True

    def move(self, x: np.ndarray, action: Any) -> tuple[np.ndarray, float, bool]:
        moved = np.clip(x + np.asarray(action) - 1, -2, 2)
        return moved, float(abs(moved[0] - moved[1])), False


class TwoInAPlane(World):
    """Two robots on a field, each of which chooses a neighbouring cell: values of one component are permuted."""

    action_space = spaces.MultiDiscrete([5, 5])
    low, high, whole = (-1,) * 4, (1,) * 4, True

    def move(self, x: np.ndarray, action: Any) -> tuple[np.ndarray, float, bool]:
        moved = np.clip(x + STEPS[np.asarray(action)].reshape(-1), -1, 1)
        return moved, -float(np.abs(moved[:2] - moved[2:]).sum()), False

    known = 16  # the square's eight, with and without an exchange of both


class Thrusters(World):
    """A point with a thruster for each axis that pushes one way, the other or not at all."""

    action_space = spaces.MultiDiscrete([3, 3])

    def move(self, x: np.ndarray, action: Any) -> tuple[np.ndarray, float, bool]:
        return x - 0.1 * x * (1 + x**2) + 0.05 * (np.asarray(action) - 1.0), -float((x**4).sum()), False


def rows_kept(rows: tuple[tuple[int, ...], ...]) -> int:
    """How many permutations of 9 cells take rows to rows, by brute force over all."""
    images = 1 << np.array(list(itertools.permutations(range(9))))
    sets = [sum(1 << i for i in row) for row in rows]
    kept = [np.isin(images[:, list(row)].sum(axis=1), sets) for row in rows]
    return int(np.logical_and.reduce(kept).sum())


class TicTacToe(World):
    """Against an opponent that moves at random (D4)."""

    action_space = spaces.Discrete(9)
    low, high, whole = (0,) * 9, (0,) * 9, True
    rows = ((0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6))
    known = 8

    def law(self, x: np.ndarray, action: Any) -> Law:
        if x[int(action)]:
            return [(1.0, x, -1.0, False)]
        x[int(action)] = 1
        free = np.flatnonzero(x == 0)
        if self.won(x, 1) or not len(free):
            return [(1.0, x, float(self.won(x, 1)), True)]
        made = []
        for cell in free:
            y = x.copy()
            y[cell] = -1
            made.append((1 / len(free), y, -float(self.won(y, -1)), bool(self.won(y, -1) or (y != 0).all())))
        return made

    def won(self, x: np.ndarray, player: int) -> bool:
        """Whether a row is full."""
        return any(all(x[i] == player for i in row) for row in self.rows)


class WithoutDiagonal(TicTacToe):
    """One diagonal does not count: rows and columns may be permuted alike, and exchanged (order 12)."""

    rows = TicTacToe.rows[:-1]
    known = 12


class Lights(World):
    """Lights Out on a torus of 5 x 5: shifts and the square's group (order 200)."""

    side = 5
    action_space = spaces.Discrete(25)
    low, high, whole = (0,) * 25, (1,) * 25, True
    known = 200

    def move(self, x: np.ndarray, action: Any) -> tuple[np.ndarray, float, bool]:
        row, column = divmod(int(action), self.side)
        for i, j in STEPS:
            cell = (row + i) % self.side * self.side + (column + j) % self.side
            x[cell] = 1 - x[cell]
        return x, float(-x.sum()), bool(x.sum() == 0)


class LightsWithOddCell(Lights):
    """One cell counts twice: what keeps it is left (D4)."""

    known = 8

    def move(self, x: np.ndarray, action: Any) -> tuple[np.ndarray, float, bool]:
        moved, reward, ended = super().move(x, action)
        return moved, reward - moved[7], ended


class Drop(World):
    """Stones fall to the lowest free cell of a column of a board of 3 x 4, three in a row win (C2 x C2).

    Both middle columns are part of every row of three: they can be exchanged, and so can the outer ones.
    """

    action_space = spaces.Discrete(4)
    low, high, whole = (0,) * 12, (0,) * 12, True
    known = 4

    def move(self, x: np.ndarray, action: Any) -> tuple[np.ndarray, float, bool]:
        board = x.reshape(3, 4)
        free = np.flatnonzero(board[:, int(action)] == 0)
        if len(free):
            board[free[-1], int(action)] = 1
        full = bool((board[:, :3].sum(axis=1) == 3).any() or (board[:, 1:].sum(axis=1) == 3).any())
        return board.reshape(-1), float(full), full


# Identical parts, and observations of several parts.


class Parts(World):
    """Eight parts that do not know each other, each with a pull that is not odd (S8)."""

    count = 8
    action_space = spaces.Box(-1.0, 1.0, (8,), np.float64)
    low, high = (-0.5,) * 8, (0.5,) * 8
    known = 40_320

    def move(self, x: np.ndarray, action: Any) -> tuple[np.ndarray, float, bool]:
        pulled = x - 0.1 * x - 0.05 * x**2
        return pulled + 0.05 * np.asarray(action), -float((x**2).sum()), False


class HeavierPart(Parts):
    """One of them is heavier (S7)."""

    known = 5_040

    def move(self, x: np.ndarray, action: Any) -> tuple[np.ndarray, float, bool]:
        moved, reward, ended = super().move(x, action)
        moved[3] -= 0.05 * x[3]
        return moved, reward, ended


class Ring(World):
    """Five masses on a ring of springs, pushed one by one: the pentagon's group, and both signs."""

    action_space = spaces.Box(-1.0, 1.0, (5,), np.float64)
    low, high = (-0.5,) * 5, (0.5,) * 5
    known = 20

    def move(self, x: np.ndarray, action: Any) -> tuple[np.ndarray, float, bool]:
        force = np.roll(x, 1) + np.roll(x, -1) - 2 * x
        return 0.9 * x + 0.2 * force + 0.05 * np.asarray(action), -float((x**2).sum()), False


class BoardAndCount(TicTacToe):
    """The board as a picture with its one channel last, and the number of stones beside it."""

    def __init__(self) -> None:
        super().__init__()
        self.observation_space = spaces.Dict(
            board=spaces.Box(-1, 1, (3, 3, 1), np.int8), stones=spaces.Box(0, 9, (1,), np.float64)
        )

    def show(self, x: np.ndarray) -> Any:
        return {"board": x.reshape(3, 3, 1).astype(np.int8), "stones": np.array([float((x != 0).sum())])}


class Hidden(gym.Env[Any, Any]):
    """Another environment whose state cannot be reached."""

    def __init__(self, inner: gym.Env[Any, Any], known: int) -> None:
        self._inner, self.known = inner, known
        self.observation_space, self.action_space = inner.observation_space, inner.action_space

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """As the other."""
        return self._inner.reset(seed=seed)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """As the other."""
        return self._inner.step(action)


class InParts(gym.Env[Any, Any]):
    """A world whose observation is a Dict of some of its coordinates, which may stand in several parts."""

    def __init__(self, inner: World, parts: dict[str, list[int]]) -> None:
        self._inner, self._parts, self.known = inner, parts, largest(inner)
        self.action_space = inner.action_space
        self.observation_space = spaces.Dict(
            {name: spaces.Box(-np.inf, np.inf, (len(own),), np.float64) for name, own in parts.items()}
        )

    def _show(self) -> dict[str, np.ndarray]:
        return {name: self._inner.x[own] for name, own in self._parts.items()}

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """As the world."""
        self._inner.reset(seed=seed)
        return self._show(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """As the world."""
        _, *rest = self._inner.step(action)
        return (self._show(), *rest)  # type: ignore[return-value]

    def get_state(self) -> np.ndarray:
        """That of the world."""
        return self._inner.get_state()

    def set_state(self, state: Any) -> None:
        """That of the world."""
        self._inner.set_state(state)


class Falling(gym.Env[Any, Any]):
    """A ball falls through a picture with two channels last, a paddle waits below: columns can be reversed."""

    observation_space = spaces.Box(0, 1, (6, 6, 2), np.float32)
    action_space = spaces.Discrete(3)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """The ball at the top, the paddle below."""
        super().reset(seed=seed)
        self._ball, self._paddle = [0, int(self.np_random.integers(6))], int(self.np_random.integers(6))
        return self._picture(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Both move on."""
        self._paddle = int(np.clip(self._paddle + int(action) - 1, 0, 5))
        self._ball[0] += 1
        ended = self._ball[0] == 5
        reward = (1.0 if self._ball[1] == self._paddle else -1.0) if ended else 0.0
        return self._picture(), reward, ended, False, {}

    def _picture(self) -> np.ndarray:
        picture = np.zeros((6, 6, 2), np.float32)
        picture[(*self._ball, 0)] = picture[5, self._paddle, 1] = 1.0
        return picture


class Numbered(World):
    """A walk on a field of 3 x 3 whose cells are numbered, without a table (D4)."""

    action_space = spaces.Discrete(5)
    low, high, whole = (0,), (8,), True
    known = 8
    corner = 0.0

    def __init__(self) -> None:
        super().__init__()
        self.observation_space = spaces.Discrete(9)

    def show(self, x: np.ndarray) -> Any:
        return np.int64(x[0])

    def get_state(self) -> Any:
        return int(self.x[0])

    def set_state(self, state: Any) -> None:
        self.x = np.array([float(state)])

    def move(self, x: np.ndarray, action: Any) -> tuple[np.ndarray, float, bool]:
        place = np.clip(np.array(divmod(int(x[0]), 3)) + STEPS[int(action)], 0, 2)
        number = float(place[0] * 3 + place[1])
        return np.array([number]), float(number == 4) + self.corner * float(number == 0), False


class NumberedToCorner(Numbered):
    """One corner pays as well (C2)."""

    known, corner = 2, 1.0


class Draws(World):
    """Four bets on two numbers drawn anew at each step: chance hides what a step does, not what it pays (D4)."""

    action_space = spaces.Discrete(4)
    known = 8
    odds = 1.0

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """The bet pays its number; then both are drawn."""
        stake = (self.x[0], -self.x[0], self.odds * self.x[1], -self.odds * self.x[1])[int(action)]
        self.x = self.np_random.uniform(self.low, self.high)
        return self.show(self.x), float(stake), False, False, {}


class DrawsWithOdds(Draws):
    """One number pays a tenth more: signs are left (C2 x C2)."""

    known, odds = 4, 1.1


class Gusts(Plane):
    """Gusts of wind push a point about, as large as a step (D4)."""

    known = 8
    lean = 0.0

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """A step and a gust."""
        _, reward, *rest = super().step(action)
        gust = self.np_random.normal(0, 0.1, 2) + self.lean * (self.np_random.exponential(0.1, 2) - 0.1) * [1, 0]
        self.x = self.x + gust
        return (self.show(self.x), reward, *rest)  # type: ignore[return-value]


class SkewGusts(Gusts):
    """Gusts along the first axis are rare and strong one way: the second axis can be reflected (C2)."""

    known, lean = 2, 1.0


class Circle(World):
    """Forty numbered places on a circle, one step either way: turns and reflections (D40)."""

    action_space = spaces.Discrete(2)
    low, high, whole = (0,), (39,), True
    known = 80
    paid = -1

    def __init__(self) -> None:
        super().__init__()
        self.observation_space = spaces.Discrete(40)

    def show(self, x: np.ndarray) -> Any:
        return np.int64(x[0])

    def get_state(self) -> Any:
        return int(self.x[0])

    def set_state(self, state: Any) -> None:
        self.x = np.array([float(state)])

    def move(self, x: np.ndarray, action: Any) -> tuple[np.ndarray, float, bool]:
        place = (x + (1 if action else -1)) % 40
        return place, float(place[0] == self.paid), False


class CircleThatPays(Circle):
    """One place pays: the reflection that keeps it (C2)."""

    known, paid = 2, 3


class Frame(World):
    """Three axes that turn with three rates, all damped unlike: signs of places, signs of axes (8 x 8 / 2).

    Component x of axis k is coordinate 3 k + x. All signs of places and of axes together are no sign at all.
    """

    action_space = spaces.Box(-1.0, 1.0, (3,), np.float64)
    low, high = (-0.5,) * 12, (0.5,) * 12
    known = 32
    coupled = 0.0

    def move(self, x: np.ndarray, action: Any) -> tuple[np.ndarray, float, bool]:
        axes, rates = x[:9].reshape(3, 3), x[9:]
        turned = np.stack([rates[2] * axes[1] - rates[1] * axes[2], rates[0] * axes[2] - rates[2] * axes[0]])
        turned = np.concatenate([turned, [rates[1] * axes[0] - rates[0] * axes[1]]])
        axes = axes * [0.9, 0.8, 0.7] + 0.1 * turned
        axes[0] += self.coupled * x[3:6] * x[6:9]
        rates = rates * [0.95, 0.85, 0.75] + 0.1 * np.asarray(action)
        return np.concatenate([axes.ravel(), rates]), -float(x @ x), False


class FrameWithCoupledAxes(Frame):
    """The product of two axes pushes the third: the sign of every place is that of all axes (8 / 2)."""

    known, coupled = 4, 0.1


class RobotsApart(World):
    """Four robots on a line push each other; all can be exchanged, and left and right (S4 x C2)."""

    action_space = spaces.MultiDiscrete([3] * 4)
    low, high = (-0.5,) * 4, (0.5,) * 4
    known = 48
    share = (1.0, 1.0, 1.0, 1.0)

    def move(self, x: np.ndarray, action: Any) -> tuple[np.ndarray, float, bool]:
        apart = x[:, None] - x[None, :]
        push = (np.tanh(3 * apart) * np.exp(-np.abs(apart))).sum(axis=1)
        return (
            0.95 * x + 0.1 * np.array(self.share) * (np.asarray(action) - 1) + 0.02 * push,
            np.abs(apart).sum(),
            False,
        )


class RobotsApartWithSlowOne(RobotsApart):
    """One is a tenth slower (S3 x C2)."""

    known, share = 12, (1.0, 1.0, 1.0, 0.9)


class Teams(World):
    """Two teams of four parts; parts of a team can be exchanged, and the teams (S4 x S4 x C2)."""

    action_space = spaces.Box(-1.0, 1.0, (8,), np.float64)
    low, high = (-0.5,) * 8, (0.5,) * 8
    known = 1152
    pulls = (0.04, 0.04)

    def move(self, x: np.ndarray, action: Any) -> tuple[np.ndarray, float, bool]:
        own = np.repeat([x[:4].mean(), x[4:].mean()], 4)
        pull = np.repeat(self.pulls, 4)
        return 0.9 * x + 0.2 * np.asarray(action) - 0.1 * own + pull * own[::-1] ** 2, -float(x @ x), False


class UnlikeTeams(Teams):
    """One team pulls harder (S4 x S4)."""

    known, pulls = 576, (0.04, 0.05)


WORLDS: dict[str, Callable[[], gym.Env[Any, Any]]] = {
    each.__name__: each
    for each in (
        *(Plane, Wind, SlopedReward, Wall, Whirl, Springs, End, Start, UnequalThrusters, Valley, Context, Command),
        *(Mode, ModeThatBlowsHarder, Compass, CompassWithNearPlace),
        *(Goal, LongGoal, Twins, Grid, GridToCorner, GridWithTrap, SlipperyGrid, Switches, OddSwitch, TwoOnALine),
        *(TwoInAPlane, Thrusters, TicTacToe, WithoutDiagonal, Lights, LightsWithOddCell, Drop, Parts, HeavierPart),
        *(
            Ring,
            BoardAndCount,
            Numbered,
            NumberedToCorner,
            Draws,
            DrawsWithOdds,
            Gusts,
            SkewGusts,
            Circle,
            CircleThatPays,
            Frame,
            FrameWithCoupledAxes,
            RobotsApart,
        ),
        *(RobotsApartWithSlowOne, Teams, UnlikeTeams),
    )
}
WORLDS["goal in parts"] = lambda: InParts(Goal(), {"observation": [0, 1], "achieved": [0, 1], "desired": [2, 3]})
WORLDS["hidden long goal in parts"] = lambda: Hidden(InParts(LongGoal(), {"place": [0, 1], "goal": [2, 3]}), 4)
# Only a rare reward ties the goal to the place.
WORLDS["hidden goal in parts"] = lambda: Hidden(InParts(Goal(), {"observation": [0, 1], "desired": [2, 3]}), 8)
WORLDS["hidden Plane"] = lambda: Hidden(Plane(), 8)
WORLDS["hidden Wind"] = lambda: Hidden(Wind(), 2)
WORLDS["hidden Falling"] = lambda: Hidden(Falling(), 2)
WORLDS["hidden TwoOnALine"] = lambda: Hidden(TwoOnALine(), 4)
"""By name; `largest` of each, or its `known`, is the order of the largest group of the searched forms."""


def known_order(env: gym.Env[Any, Any]) -> int:
    """The order of the largest group of the searched forms."""
    return largest(env) if isinstance(env, World) else int(env.known)  # type: ignore[attr-defined]
