"""Further small worlds, most of them with a twin in which a part of the symmetry is broken by 0.1% to a few percent.

The order of the largest group of the searched forms is known by brute force, or by construction (`known`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from worlds_with_goals_and_boards import (
    NumberedGoal,
    NumberedGoalThatPaysMore,
    Pieces,
    PiecesWithDearCorner,
    Plate,
    PlateThatPaysLess,
    hidden_plate,
    hidden_plate_that_pays_less,
)
from worlds_with_known_groups import STEPS, Numbered, Plane, World

Moved = tuple[np.ndarray, float, bool]


class Torus(Numbered):
    """A walk on a torus of 3 x 4 numbered cells: translations and two reflections (12 * 4)."""

    low, high = (0,), (11,)
    known = 48
    pay = 0.0

    def __init__(self) -> None:
        super().__init__()
        self.observation_space = spaces.Discrete(12)

    def move(self, x: np.ndarray, action: Any) -> Moved:
        row, column = np.array(divmod(int(x[0]), 4)) + STEPS[int(action)]
        number = float(row % 3 * 4 + column % 4)
        return np.array([number]), self.pay * float(number == 5), False


class TorusThatPays(Torus):
    """One cell pays a thousandth: the reflections about it are left."""

    known, pay = 4, 0.001


class RingOfCells(Numbered):
    """Left, stay or right on a ring of 12 numbered cells (D12)."""

    action_space = spaces.Discrete(3)
    low, high = (0,), (11,)
    known = 24
    pay = 0.0

    def __init__(self) -> None:
        super().__init__()
        self.observation_space = spaces.Discrete(12)

    def move(self, x: np.ndarray, action: Any) -> Moved:
        number = float((int(x[0]) + int(action) - 1) % 12)
        return np.array([number]), self.pay * float(number == 3), False


class RingThatPays(RingOfCells):
    """One cell pays a hundredth (C2)."""

    known, pay = 2, 0.01


class Hexagon(World):
    """A walk on hexagonal cells about the middle, in three coordinates with sum 0 (D6)."""

    action_space = spaces.Discrete(6)
    low, high, whole = (-2, -2, -2), (2, 2, 2), True
    known = 12
    corner = 0.0
    ways = np.array([[1, -1, 0], [1, 0, -1], [0, 1, -1], [-1, 1, 0], [-1, 0, 1], [0, -1, 1]])

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """A start on one of the 19 cells."""
        super().reset(seed=seed)
        while self.x.sum():
            self.x = self.np_random.integers(-2, 3, 3).astype(float)
        return self.show(self.x), {}

    def move(self, x: np.ndarray, action: Any) -> Moved:
        moved = x + self.ways[int(action)]
        moved = x if np.abs(moved).max() > 2 else moved
        return moved, float(not moved.any()) + self.corner * float(tuple(moved) == (2, -2, 0)), False


class HexagonWithCorner(Hexagon):
    """One corner pays (C2)."""

    known, corner = 2, 0.05


class GoalDrawnAgain(World):
    """A place and a goal, which is drawn again when it is reached (D4)."""

    low, high = (-1.0,) * 4, (1.0,) * 4
    known = 8

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """The place moves; a reached goal pays and is drawn again."""
        place = np.clip(self.x[:2] + 0.2 * np.asarray(action), -1, 1)
        goal, reached = self.x[2:], bool(np.abs(place - self.x[2:]).max() < 0.3)
        if reached:
            goal = self.np_random.uniform(self.low[2:], self.high[2:])
        self.x = np.concatenate([place, goal])
        return self.show(self.x), float(reached), False, False, {}


class LongGoalDrawnAgain(GoalDrawnAgain):
    """The field is twice as long as wide (C2 x C2)."""

    low, high = (-2.0, -1.0) * 2, (2.0, 1.0) * 2
    known = 4

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """As on the square field."""
        place = np.clip(self.x[:2] + 0.2 * np.asarray(action), self.low[:2], self.high[:2])
        goal, reached = self.x[2:], bool(np.abs(place - self.x[2:]).max() < 0.3)
        if reached:
            goal = self.np_random.uniform(self.low[2:], self.high[2:])
        self.x = np.concatenate([place, goal])
        return self.show(self.x), float(reached), False, False, {}


class TwoGoals(World):
    """A place and two goals, near which few states are: the goals can be exchanged (D4 x C2)."""

    low, high, reach = (-1.0,) * 6, (1.0,) * 6, 0.0
    known = 16
    pays = (1.0, 1.0)

    def move(self, x: np.ndarray, action: Any) -> Moved:
        place = np.clip(x[:2] + 0.1 * np.asarray(action), -1, 1)
        reached = [np.abs(place - goal).max() < 0.3 for goal in (x[2:4], x[4:])]
        return np.concatenate([place, x[2:]]), float(np.dot(self.pays, reached)), False


class TwoUnequalGoals(TwoGoals):
    """The second goal pays 1% less (D4)."""

    known, pays = 8, (1.0, 0.99)


class MaskOfActions(World):
    """Four thrusters of a plane, each on or off for a whole episode, as a mask beside the place says (D4)."""

    action_space = spaces.Discrete(4)
    low, high = (-0.5,) * 2 + (0.0,) * 4, (0.5,) * 2 + (1.0,) * 4
    known = 8
    right = 1.0
    ways = np.array([(1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0)])

    def __init__(self) -> None:
        super().__init__()
        place = spaces.Box(-np.inf, np.inf, (2,), np.float64)
        self.observation_space = spaces.Dict(mask=spaces.MultiBinary(4), place=place)

    def show(self, x: np.ndarray) -> Any:
        return {"mask": np.round(x[2:]).astype(np.int8), "place": x[:2].copy()}

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """A place and a mask."""
        super().reset(seed=seed)
        self.x[2:] = np.round(self.x[2:])
        return self.show(self.x), {}

    def move(self, x: np.ndarray, action: Any) -> Moved:
        strength = x[2 + int(action)] * (self.right if int(action) == 0 else 1.0)
        place = 0.95 * x[:2] + 0.05 * strength * self.ways[int(action)]
        return np.append(place, x[2:]), -float((place**4).sum()), False


class MaskOfUnequalActions(MaskOfActions):
    """One thruster is 2% stronger (C2)."""

    known, right = 2, 1.02


class Turtle(World):
    """A place on a field and a heading, one number for each of four, which turns left or right (D4)."""

    action_space = spaces.Discrete(3)
    low, high, whole = (-2, -2, 0, 0, 0, 0), (2, 2, 1, 1, 1, 1), True
    known = 8
    costs = 0.0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """A place and a heading."""
        super().reset(seed=seed)
        self.x = np.append(self.np_random.integers(-2, 3, 2), np.eye(4)[self.np_random.integers(4)])
        return self.show(self.x), {}

    def move(self, x: np.ndarray, action: Any) -> Moved:
        place, heading = x[:2], int(x[2:].argmax())
        if int(action) == 1:
            place = np.clip(place + STEPS[1 + heading], -2, 2)
        else:
            heading = (heading + int(action) - 1) % 4
        return np.append(place, np.eye(4)[heading]), float(not place.any()) - self.costs * float(place[0] == 2), False


class TurtleWithCostlyWall(Turtle):
    """One wall costs (C2)."""

    known, costs = 2, 0.05


class Dial(World):
    """A pointer on a dial of five places, one number for each, of which exactly one can be set (D5)."""

    action_space = spaces.Discrete(2)
    low, high, whole = (0,) * 5, (1,) * 5, True
    known = 10
    pays = 0.0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """One of the places."""
        super().reset(seed=seed)
        self.x = np.eye(5)[self.np_random.integers(5)]
        return self.show(self.x), {}

    def set_state(self, state: Any) -> None:
        """Reject what is no place."""
        if sorted(state) != [0, 0, 0, 0, 1]:
            raise ValueError("expected one place")
        super().set_state(state)

    def move(self, x: np.ndarray, action: Any) -> Moved:
        return np.roll(x, 2 * int(action) - 1), self.pays * float(x[0]), False


class DialThatPays(Dial):
    """One place pays (C2)."""

    known, pays = 2, 0.01


class FlyApart(World):
    """Four parts with place and speed push each other apart without end: one long episode (S4 x C2)."""

    action_space = spaces.Box(-1.0, 1.0, (4,), np.float64)
    low, high = (-0.5,) * 8, (0.5,) * 8
    known = 48
    mass = (1.0,) * 4

    def move(self, x: np.ndarray, action: Any) -> Moved:
        place, speed = x[:4], x[4:]
        apart = place[:, None] - place[None]
        force = 0.1 * np.asarray(action) + 0.05 * (apart * np.exp(-(apart**2))).sum(axis=1)
        speed = 0.9 * speed + force / np.array(self.mass)
        return np.concatenate([place + 0.1 * speed, speed]), -float(place @ place), False


class FlyApartWithHeavyOne(FlyApart):
    """One is 1% heavier (S3 x C2)."""

    known, mass = 12, (1.0, 1.01, 1.0, 1.0)


class Masses(World):
    """Two parts with masses that are drawn for an episode and are never zero (D4)."""

    low, high, reach = (-0.5, -0.5, 0.5, 0.5), (0.5, 0.5, 1.5, 1.5), 0.0
    known = 8
    push = (1.0, 1.0)

    def move(self, x: np.ndarray, action: Any) -> Moved:
        mass = np.maximum(x[2:], 0.1)
        place = 0.9 * x[:2] + 0.1 * np.array(self.push) * np.asarray(action) / mass
        return np.append(place, x[2:]), -float((place**4) @ mass), False


class MassesPushedUnequally(Masses):
    """One is pushed 1% harder (C2 x C2)."""

    known, push = 4, (1.0, 1.01)


class Masked(World):
    """Two thrusters of a plane, each on or off for a whole episode, as a mask says (D4)."""

    low, high = (-0.5, -0.5, 0.0, 0.0), (0.5, 0.5, 1.0, 1.0)
    known = 8
    cost = 0.0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """A place and a mask."""
        super().reset(seed=seed)
        self.x[2:] = np.round(self.x[2:])
        return self.show(self.x), {}

    def move(self, x: np.ndarray, action: Any) -> Moved:
        place = 0.9 * x[:2] + 0.1 * x[2:] * np.asarray(action)
        return np.concatenate([place, x[2:]]), -float(place @ place) - self.cost * x[3], False


class MaskedAtACost(Masked):
    """One of them costs a hundredth (C2 x C2)."""

    known, cost = 4, 0.01


class Jets(World):
    """A mass between two jets of strength 0 to 1, which push to the right and to the left."""

    action_space = spaces.Box(0.0, 1.0, (2,), np.float64)
    known = 2
    second = 1.0

    def move(self, x: np.ndarray, action: Any) -> Moved:
        push = action[0] - self.second * action[1]
        speed = 0.9 * x[1] + 0.1 * push - 0.05 * x[0]
        return np.array([x[0] + 0.1 * speed, speed]), -(x[0] ** 2) - 0.01 * abs(push), False


class UnequalJets(Jets):
    """The second jet is 1% stronger."""

    known, second = 1, 1.01


class Throttle(World):
    """A mass that a throttle from 0 to 2 pushes left below 1 and right above."""

    action_space = spaces.Box(0.0, 2.0, (1,), np.float64)
    known = 2
    neutral = 1.0

    def move(self, x: np.ndarray, action: Any) -> Moved:
        speed = 0.9 * x[1] + 0.1 * (float(action[0]) - self.neutral) - 0.05 * x[0]
        return np.array([x[0] + 0.1 * speed, speed]), -(x[0] ** 2), False


class ThrottleWithOffset(Throttle):
    """Its neutral point is 1% off the middle."""

    known, neutral = 1, 1.01


class Valves(World):
    """Four valves push a point right, left, up and down (D4)."""

    action_space = spaces.MultiBinary(4)
    known = 8
    right = 1.0

    def move(self, x: np.ndarray, action: Any) -> Moved:
        opened = np.asarray(action, float)
        push = np.array([self.right * opened[0] - opened[1], opened[2] - opened[3]])
        return 0.9 * x + 0.05 * push, -float((x**4).sum()), False


class ValvesUnequal(Valves):
    """One is 0.5% stronger (C2)."""

    known, right = 2, 1.005


class Levers(World):
    """Two levers with three positions each (D4)."""

    action_space = spaces.MultiDiscrete([3, 3])
    known = 8
    friction = (0.9, 0.9)

    def move(self, x: np.ndarray, action: Any) -> Moved:
        return np.array(self.friction) * x + 0.05 * (np.asarray(action) - 1), -float((x**4).sum()), False


class LeversUnequal(Levers):
    """The friction of one axis differs by 0.1% (C2 x C2)."""

    known, friction = 4, (0.9, 0.9009)


class AngleTwice(World):
    """A pendulum that shows its angle, the cosine and sine of it, and its speed."""

    action_space = spaces.Box(-1.0, 1.0, (1,), np.float64)
    low, high = (-3.0, -1.0), (3.0, 1.0)
    known = 2
    lean = 0.0

    def __init__(self) -> None:
        super().__init__()
        self.observation_space = spaces.Box(-np.inf, np.inf, (4,), np.float64)

    def show(self, x: np.ndarray) -> Any:
        return np.array([np.cos(x[0]), np.sin(x[0]), x[0], x[1]])

    def move(self, x: np.ndarray, action: Any) -> Moved:
        speed = 0.95 * x[1] + 0.2 * np.sin(x[0]) + 0.1 * float(action[0]) + self.lean * np.cos(x[0])
        return np.array([x[0] + 0.1 * speed, speed]), float(np.cos(x[0])), False


class AngleTwiceLeaning(AngleTwice):
    """Gravity leans by half a percent."""

    known, lean = 1, 0.001


class Unicycle(World):
    """A vehicle on a road: place across the road, heading, and speed in its own frame."""

    low, high = (-0.5, -0.5, 0.2), (0.5, 0.5, 0.8)
    known = 2
    drift = 0.0

    def move(self, x: np.ndarray, action: Any) -> Moved:
        speed = 0.9 * x[2] + 0.05 + 0.05 * float(action[0])
        heading = x[1] + 0.1 * float(action[1]) * speed + self.drift
        return (
            np.array([x[0] + 0.2 * speed * np.sin(heading), heading, speed]),
            speed * np.cos(heading) - x[0] ** 2,
            False,
        )


class UnicycleDrifting(Unicycle):
    """It drifts to one side by 1% of the steering."""

    known, drift = 1, 0.0005


class OtherUnits(Plane):
    """A plane with its second axis in other units: the axes cannot be exchanged by a signed permutation."""

    low, high = (-0.5, -5.0), (0.5, 5.0)

    def move(self, x: np.ndarray, action: Any) -> Moved:
        moved, reward, ended = super().move(x / [1.0, 10.0], action)
        return moved * [1.0, 10.0], reward, ended


class NoiseAndWall(Plane):
    """Noise of the size of a step, and an end at a wall on the right (C2)."""

    known = 2

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """The step of the plane, and noise."""
        moved, reward, _ = self.move(self.x, action)
        self.x = moved + 0.05 * self.np_random.normal(size=2)
        return self.show(self.x), reward, bool(self.x[0] > 0.4), False, {}


class RewardOff(Plane):
    """The reward of one axis differs by 0.1% (C2 x C2)."""

    def move(self, x: np.ndarray, action: Any) -> Moved:
        moved, reward, ended = super().move(x, action)
        return moved, reward - 0.001 * x[1] ** 4, ended


class StepOff(Plane):
    """A drift of 0.1% of the effect of an action along one axis (C2)."""

    def move(self, x: np.ndarray, action: Any) -> Moved:
        moved, reward, ended = super().move(x, action)
        return moved + np.array([0.0, 5e-5]), reward, ended


class CornerThatPays(Plane):
    """One corner pays a hundredth: the reflection in the diagonal is left."""

    def move(self, x: np.ndarray, action: Any) -> Moved:
        moved, reward, ended = super().move(x, action)
        return moved, reward + 0.01 * float(min(x) > 0.3), ended


class ThreeRobots(World):
    """Three robots on a line push each other (S3 x C2)."""

    action_space = spaces.Box(-1.0, 1.0, (3,), np.float64)
    low, high = (-0.5,) * 3, (0.5,) * 3
    known = 12
    share = (1.0, 1.0, 1.0)

    def move(self, x: np.ndarray, action: Any) -> Moved:
        apart = x[:, None] - x[None, :]
        push = np.tanh(3 * apart).sum(axis=1)
        return 0.9 * x + 0.1 * np.array(self.share) * np.asarray(action) + 0.02 * push, -float(x @ x), False


class ThreeRobotsWithHeavyOne(ThreeRobots):
    """One is half a percent heavier (C2 x C2)."""

    known, share = 4, (1.0, 1.0, 0.995)


class FieldAndWind(World):
    """A picture of a place on a field, channels last, with a vector beside it: the wind that blows (D4)."""

    action_space = spaces.Discrete(5)
    low, high, whole = (0, 0, -1, -1), (4, 4, 1, 1), True
    centres = ((2.0, 2.0, 0.0, 0.0),)
    known = 8
    pays = (1.0, 1.0)

    def __init__(self) -> None:
        super().__init__()
        self.observation_space = spaces.Dict(
            field=spaces.Box(0, 1, (5, 5, 1), np.uint8), wind=spaces.Box(-1, 1, (2,), np.float64)
        )

    def show(self, x: np.ndarray) -> Any:
        field = np.zeros((5, 5, 1), np.uint8)
        field[int(x[0]), int(x[1]), 0] = 1
        return {"field": field, "wind": x[2:].copy()}

    def move(self, x: np.ndarray, action: Any) -> Moved:
        place = np.clip(np.clip(x[:2] + STEPS[int(action)], 0, 4) + x[2:], 0, 4)
        return np.concatenate([place, x[2:]]), -float(self.pays @ np.abs(place - 2)), False


class FieldAndWindUnequal(FieldAndWind):
    """Distances along one axis cost 1% more (C2 x C2)."""

    known, pays = 4, (1.0, 1.01)


class Hatches(World):
    """A room with a hatch at two opposite walls, each opened by its own action and by no other (C2)."""

    action_space = spaces.Discrete(6)
    low, high, whole = (0, 0), (8, 8), True
    known = 2
    pays = (1.0, 1.0)

    def move(self, x: np.ndarray, action: Any) -> Moved:
        if int(action) < 4:
            return np.clip(x + STEPS[1 + int(action)], 0, 8), 0.0, False
        side = int(action) - 4
        opened = bool((x == [8 * side, 3]).all())
        return x, opened * self.pays[side], opened


class HatchesUnequal(Hatches):
    """One pays 1% less."""

    known, pays = 1, (1.0, 0.99)


class CellsInWind(World):
    """A place on a field of 5 x 5, shown as one number for each cell; wind blows in the middle columns (C2)."""

    action_space = spaces.Discrete(4)
    low, high, whole = (0, 0), (4, 4), True
    known = 2
    wind = (0, 1, 2, 1, 0)

    def __init__(self) -> None:
        super().__init__()
        self.observation_space = spaces.Box(0, 1, (25,), np.float32)

    def show(self, x: np.ndarray) -> Any:
        """One number for each cell."""
        return np.eye(25, dtype=np.float32)[int(5 * x[0] + x[1])]

    def move(self, x: np.ndarray, action: Any) -> Moved:
        blown = np.clip(x + STEPS[1 + int(action)] - [self.wind[int(x[1])], 0], 0, 4)
        return blown, float((blown == [4, 2]).all()), bool((blown == [4, 2]).all())


class CellsInSkewWind(CellsInWind):
    """It blows stronger in one column."""

    known, wind = 1, (0, 1, 2, 2, 0)


class PictureAndSpeed(World):
    """A cart on a field, with its place as a picture of many cells and its speed as a vector (D4)."""

    action_space = spaces.Discrete(5)
    low, high, whole = (0, 0, -1, -1), (8, 8, 1, 1), True
    known = 8
    drag = 0.0

    def __init__(self) -> None:
        super().__init__()
        self.observation_space = spaces.Dict(
            picture=spaces.Box(0, 255, (1, 9, 9), np.uint8), speed=spaces.Box(-2, 2, (2,), np.float32)
        )

    def show(self, x: np.ndarray) -> Any:
        """A picture with one bright cell, and the speed."""
        picture = np.zeros((1, 9, 9), np.uint8)
        picture[0, int(x[0]), int(x[1])] = 255
        return {"picture": picture, "speed": x[2:].astype(np.float32)}

    def move(self, x: np.ndarray, action: Any) -> Moved:
        speed = np.clip(x[2:] + STEPS[int(action)], -2, 2)
        cost = np.abs(speed).sum() + self.drag * abs(speed[0])
        return np.concatenate([np.clip(x[:2] + speed, 0, 8), speed]), -float(cost), False


class PictureAndSpeedWithDrag(PictureAndSpeed):
    """Speed along one axis costs 1% more (C2 x C2)."""

    known, drag = 4, 0.01


class NoisyPair(World):
    """Two coupled masses in noise (C2 x C2)."""

    known = 4
    second = 0.9

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Both move, and noise of the size of an action."""
        pull = 0.2 * (self.x[::-1] - self.x)
        moved = np.array([0.9, self.second]) * self.x + pull + 0.1 * np.asarray(action)
        reward = -float(self.x @ self.x)
        self.x = moved + 0.05 * self.np_random.normal(size=2)
        return self.show(self.x), reward, False, False, {}


class Push(World):
    """Left, none or right, with a cost of pushing."""

    action_space = spaces.Discrete(3)
    known = 2
    left = 0.0

    def move(self, x: np.ndarray, action: Any) -> Moved:
        speed = 0.9 * x[1] + 0.05 * (int(action) - 1) - 0.05 * np.sin(x[0])
        cost = 0.1 * abs(int(action) - 1) + self.left * (int(action) == 0)
        return np.array([x[0] + 0.1 * speed, speed]), -(x[0] ** 2) - cost, False


class PushAtACost(Push):
    """To the left costs 1% more."""

    known, left = 1, 0.001


BROKEN_TWINS: dict[str, Callable[[], gym.Env[Any, Any]]] = {
    each.__name__: each
    for each in (
        *(Torus, TorusThatPays, RingOfCells, RingThatPays, Hexagon, HexagonWithCorner, GoalDrawnAgain),
        *(LongGoalDrawnAgain, TwoGoals, TwoUnequalGoals, MaskOfActions, MaskOfUnequalActions),
        *(Turtle, TurtleWithCostlyWall, Dial, DialThatPays, FlyApart, FlyApartWithHeavyOne, Masses),
        MassesPushedUnequally,
        *(Masked, MaskedAtACost, Jets, UnequalJets, Throttle, ThrottleWithOffset, Valves),
        *(ValvesUnequal, Levers, LeversUnequal, AngleTwice, AngleTwiceLeaning, Unicycle, UnicycleDrifting, OtherUnits),
        *(NoiseAndWall, RewardOff, StepOff, CornerThatPays, ThreeRobots, ThreeRobotsWithHeavyOne, FieldAndWind),
        *(FieldAndWindUnequal, NoisyPair, Push, PushAtACost, Hatches, HatchesUnequal, CellsInWind, CellsInSkewWind),
        *(PictureAndSpeed, PictureAndSpeedWithDrag, NumberedGoal, NumberedGoalThatPaysMore),
        *(Pieces, PiecesWithDearCorner, Plate, PlateThatPaysLess, hidden_plate, hidden_plate_that_pays_less),
    )
}
