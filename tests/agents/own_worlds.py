"""Small environments with a symmetry each, one for every kind of space, and one of each fault."""

from __future__ import annotations

from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from gymnasium import spaces

import symcheck as sc

C2, C4 = sc.groups.cyclic(2), sc.groups.cyclic(4)
BOTH = sc.groups.product(C2, C2)


class Point(gym.Env[Any, Any]):
    """A point in the plane is to be brought to the origin; four moves."""

    observation_space: Any = spaces.Box(-2, 2, (2,), np.float32)
    action_space: Any = spaces.Discrete(4)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.steps, self.x = 0, self.np_random.uniform(-1, 1, 2)
        return self.seen(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert self.action_space.contains(action), action
        self.steps += 1
        self.x = np.clip(self.x + 0.1 * self.move(action), -2, 2)
        return self.seen(), -float(np.abs(self.x).sum()), False, self.steps >= 20, {}

    def seen(self) -> Any:
        return self.x.astype(np.float32)

    def move(self, action: Any) -> Any:
        return np.array([[1, 0], [-1, 0], [0, 1], [0, -1]])[action]


class Grid(Point):
    """Two choices of three values each, from 1 on."""

    action_space = spaces.MultiDiscrete([3, 3], start=[1, 1])

    def move(self, action: Any) -> Any:
        return np.asarray(action) - 2.0


class Masked(Point):
    """Says in `info` that the last move is not possible."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        return super().reset(seed=seed)[0], {"action_mask": np.array([1, 1, 1, 0], np.int8)}


class MaskedByMethod(Point):
    """Has the method by which sb3-contrib asks for masks."""

    def action_masks(self) -> Any:
        return np.array([True, True, True, False])


class Thrust(Point):
    """Real numbers whose bounds are far from -1 and 1."""

    action_space = spaces.Box(0, 10, (2,), np.float32)

    def move(self, action: Any) -> Any:
        return np.asarray(action) / 5 - 1


class Parts(Thrust):
    """A dictionary of numbers, values and bits."""

    observation_space = spaces.Dict(
        {"at": spaces.Box(-2, 2, (2,), np.float32), "bits": spaces.MultiBinary(2), "side": spaces.MultiDiscrete([2, 2])}
    )

    def seen(self) -> Any:
        side = (self.x > 0).astype(np.int64)
        return {"at": self.x.astype(np.float32), "bits": side.astype(np.int8), "side": side}


class Picture(Point):
    """The point as a white pixel of an image with its channels first."""

    observation_space = spaces.Box(0, 255, (1, 9, 9), np.uint8)

    def seen(self) -> Any:
        image = np.zeros(self.observation_space.shape, np.uint8)
        image.reshape(9, 9)[tuple(np.clip(np.rint(2 * self.x + 4), 0, 8).astype(int))] = 255
        return image


class Photograph(Picture):
    """The same with its channels last."""

    observation_space = spaces.Box(0, 255, (9, 9, 1), np.uint8)


class Endless(Point):
    """Never ends an episode."""

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        seen, reward, _, _, info = super().step(action)
        return seen, reward, False, False, info


class Held(Point):
    """Says which copies hold something; the second coordinate of its actions has one value."""

    action_space = spaces.Box(np.array([-1, 0], np.float32), np.array([1, 0], np.float32))
    held: ClassVar[list[Held]] = []

    def __init__(self) -> None:
        self.held.append(self)

    def move(self, action: Any) -> Any:
        return np.asarray(action)

    def close(self) -> None:
        self.held.remove(self)


class Raises(Point):
    """Breaks in its eighth step."""

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        seen, reward, *rest = super().step(action)
        if self.steps == 8:
            raise RuntimeError("the simulator blew up")
        return (seen, reward, *rest)


class NaNReward(Point):
    """Pays NaN in its eighth step."""

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        seen, reward, *rest = super().step(action)
        return (seen, float("nan") if self.steps == 8 else reward, *rest)


class TwoRewards(Point):
    """Pays two numbers in its eighth step."""

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        seen, reward, *rest = super().step(action)
        return (seen, [-1.0, reward] if self.steps == 8 else reward, *rest)


class TextReward(Point):
    """Pays a number as text in its eighth step."""

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        seen, reward, *rest = super().step(action)
        return (seen, f"{reward:.3f}" if self.steps == 8 else reward, *rest)


class OldStep(Point):
    """Returns one flag for both ends in its eighth step, as environments of Gym did."""

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        answer = super().step(action)
        return (*answer[:3], {}) if self.steps == 8 else answer


class Exits(Point):
    """Ends the program in its eighth step."""

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        if self.steps == 7:
            raise SystemExit(3)
        return super().step(action)


class NaNObservation(Point):
    """Shows NaN after its eighth step."""

    def seen(self) -> Any:
        return super().seen() if self.steps < 8 else np.array([0.0, np.nan], np.float32)


flips = sc.Symmetry("flips", BOTH, observation=[[-1, 1], [1, -1]], action=[[1, 0, 2, 3], [0, 1, 3, 2]])
turn = sc.Symmetry("turn", C4, observation=[[[0, -1], [1, 0]]], action=[[2, 3, 1, 0]])
# From 1 on: the mirror image of a value v of 1, 2, 3 is 4 - v.
grid = sc.Symmetry(
    "flips", BOTH, [[-1, 1], [1, -1]], [{"signs": [-1, 1], "offset": [4, 0]}, {"signs": [1, -1], "offset": [0, 4]}]
)
exchange = sc.Symmetry("exchange", C2, observation=[[1, 0]], action=[[1, 0]])
thrust = sc.Symmetry("half turn", C2, observation=[[-1, -1]], action=[{"signs": [-1, -1], "offset": [10, 10]}])
outward = sc.Symmetry("half turn", C2, observation=[[-1, -1]], action=[[-1, -1]])
outward_callable = sc.Symmetry("half turn", C2, observation=[lambda o: -o], action=[lambda a, o: 9 - a])
callables = sc.Symmetry("exchange", C2, observation=[lambda o: o[::-1]], action=[lambda a, o: a[::-1]])
parts = sc.Symmetry(
    "half turn",
    C2,
    observation=[
        {
            "at": [-1, -1],
            "bits": {"signs": [-1, -1], "offset": [1, 1]},
            "side": {"signs": [-1, -1], "offset": [1, 1]},
        }
    ],
    action=[{"signs": [-1, -1], "offset": [10, 10]}],
)
picture = sc.Symmetry("turn", C4, observation=["rot90"], action=[[2, 3, 1, 0]])
photograph = sc.Symmetry("left and right", C2, observation=[lambda o: o[:, ::-1]], action=[[0, 1, 3, 2]])
state_dependent = sc.Symmetry("half turn", C2, [[-1, -1]], [lambda a, o: (3 - a) if o[0] > 0 else a])
curved = sc.Symmetry("half turn", C2, [lambda o: -(o**3)], [[1, 0, 3, 2]])
