"""Built-in state access for CarRacing: the car's bodies and controls as 54 numbers, on the same track or its mirror.

    0..5     hull: x, y, angle, velocity in x and y, angular velocity
    6..29 the same for the four wheels: front left, front right, rear left, rear right
    30..49   gas, brake, steering, phase and angular velocity of each wheel
    50       seconds driven, which the camera's zoom depends on
    51       reward earned
    52       reward earned that no step has returned yet (the first tiles, at the start)
    53       1 for the track of the episode, -1 for its mirror image x -> -x

The mirror negates x, angles, horizontal and angular velocities, steering and the last number, and exchanges left and
right wheels. The state carries the track and the visited tiles. Not restored: contact and joint impulses, and skid
marks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from symcheck.envs.state_access.box2d import place_bodies, read_bodies
from symcheck.envs.state_access.carried import CarriedState
from symcheck.envs.state_access.record import Origin, StateAccess
from symcheck.statements.statement import Statement

_CLASS = "gymnasium.envs.box2d.car_racing:CarRacing"
_CONTROLS = ("gas", "brake", "steer", "phase", "omega")
_BODIES, _WHEELS = 30, 4


@dataclass(frozen=True)
class Race:
    """The track of an episode as built, and its visited tiles.

    Attributes:
        tiles: vertices, friction and index of each piece of road.
        drawn: the drawn polygons next to the road, with their colours.
        track: the checkpoints.
        colours: the colours of the tiles.
        visited: the indices of tiles whose reward has been given.
    """

    tiles: tuple[tuple[tuple[tuple[float, float], ...], float, int], ...]
    drawn: tuple[Any, ...]
    track: Any
    colours: tuple[npt.NDArray[Any], ...]
    visited: frozenset[int]


def built_in(env: Any) -> StateAccess | None:
    """The built-in access of an unwrapped CarRacing environment, or None for any other class.

    Args:
        env: the unwrapped environment; subclasses count.

    Returns:
        Access whose states are the vectors described above.
    """
    if not any(f"{base.__module__}:{base.__name__}" == _CLASS for base in type(env).__mro__):
        return None
    side = [1.0]  # side of the environment's current track
    built: list[Any] = [None]  # its road, to notice a reset

    def orientation(target: Any) -> float:
        if built[0] is not target.road:
            side[0], built[0] = 1.0, target.road
        return side[0]

    def get_state(target: Any) -> CarriedState:
        car = target.car
        controls = [getattr(wheel, name) for wheel in car.wheels for name in _CONTROLS]
        rest = [target.t, target.reward, target.reward - target.prev_reward, orientation(target)]
        numbers = np.array([*controls, *rest], dtype=np.float32)
        return CarriedState(np.concatenate([read_bodies([car.hull, *car.wheels]), numbers]), _race(target, rest[3]))

    def set_state(target: Any, state: Any) -> None:
        numbers = np.asarray(state, dtype=np.float64)
        race: Race = getattr(state, "rest", None) or _race(target, orientation(target))
        side[0] = 1.0 if numbers[53] >= 0 else -1.0
        _build(target, race, side[0])
        # The road is new but does not come from a reset: it must not count as one of side 1.
        built[0] = target.road
        _drive(target, numbers, race)

    return StateAccess(
        set_state,
        "CarRacing: the car, on the same track or its mirror image",
        Origin.BUILT_IN,
        get=get_state,
        inexact=(Statement("inexact_skid_marks"),),
    )


def _race(env: Any, side: float) -> Race:
    """The environment's current track, before mirroring."""
    count = len(env.road)
    tiles = tuple(
        (tuple((side * float(x), float(y)) for x, y in tile.fixtures[0].shape.vertices), tile.road_friction, tile.idx)
        for tile in env.road
    )
    # road_poly holds roads and kerbs; a polygon of the road shares the colour object of its tile.
    roads = {id(tile.color) for tile in env.road}
    drawn = tuple(
        (tuple((side * x, y) for x, y in polygon), colour)
        for polygon, colour in env.road_poly
        if id(colour) not in roads
    )
    colours = tuple(np.array(tile.color) for tile in env.road)
    visited = frozenset(tile.idx for tile in env.road[:count] if tile.road_visited)
    return Race(tiles, drawn, env.track, colours, visited)


def _build(env: Any, race: Race, side: float) -> None:
    import Box2D
    from gymnasium.envs.box2d import car_racing

    package: Any = car_racing
    listener = package.FrictionDetector(env, env.lap_complete_percent)
    env.world = Box2D.b2World((0, 0), contactListener=listener)
    env.world.contactListener_bug_workaround = listener
    env.road, env.road_poly, env.track = [], [], race.track
    for (vertices, friction, index), colour in zip(race.tiles, race.colours, strict=True):
        corners = [(side * x, y) for x, y in vertices]
        env.fd_tile.shape.vertices = corners
        tile = env.world.CreateStaticBody(fixtures=env.fd_tile)
        tile.userData = tile
        tile.color, tile.road_visited, tile.road_friction, tile.idx = colour.copy(), True, friction, index
        tile.fixtures[0].sensor = True
        env.road.append(tile)
        env.road_poly.append((corners, tile.color))
    env.road_poly += [([(side * x, y) for x, y in polygon], colour) for polygon, colour in race.drawn]


def _drive(env: Any, numbers: npt.NDArray[np.float64], race: Race) -> None:
    """Place a car on the track according to the numbers."""
    from gymnasium.envs.box2d import car_dynamics

    package: Any = car_dynamics
    env.car = package.Car(env.world, 0.0, 0.0, 0.0)
    place_bodies([env.car.hull, *env.car.wheels], numbers[:_BODIES])
    controls = numbers[_BODIES : _BODIES + _WHEELS * len(_CONTROLS)].reshape(_WHEELS, len(_CONTROLS))
    for wheel, values in zip(env.car.wheels, controls.tolist(), strict=True):
        for name, value in zip(_CONTROLS, values, strict=True):
            setattr(wheel, name, value)
    # a step of zero duration creates the contacts of wheels and road; no tile gives a reward in it
    env.world.Step(0.0, 0, 0)
    for tile, colour in zip(env.road, race.colours, strict=True):
        tile.color[:] = colour
        tile.road_visited = tile.idx in race.visited
    env.tile_visited_count, env.new_lap = len(race.visited), False
    env.t = float(numbers[50])
    env.reward, env.prev_reward = float(numbers[51]), float(numbers[51] - numbers[52])
    env.world = _Arriving(env)


class _Arriving:
    """A world whose next step rewards the unvisited tiles under the wheels, once.

    Args:
        env: `env.world` becomes this object until the next step.
    """

    def __init__(self, env: Any) -> None:
        vars(self).update(world=env.world, env=env)

    def __getattr__(self, name: str) -> Any:
        return getattr(vars(self)["world"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(vars(self)["world"], name, value)

    def Step(self, *arguments: Any) -> None:  # noqa: N802 - Box2D's name
        """Give the rewards, restore the environment's world and step it."""
        env, world = self.env, self.world
        env.world = world
        for wheel in env.car.wheels:
            # Sort by index, because sets have no order: rewards and laps are then counted in a fixed order.
            for tile in sorted(wheel.tiles, key=lambda each: int(each.idx)):
                if not tile.road_visited:
                    _visit(env, tile)
        world.Step(*arguments)


def _visit(env: Any, tile: Any) -> None:
    """The effect of the environment's contact listener when a wheel reaches a tile."""
    tile.road_visited = True
    env.reward += 1000.0 / len(env.track)
    env.tile_visited_count += 1
    if tile.idx == 0 and env.tile_visited_count / len(env.track) > env.lap_complete_percent:
        env.new_lap = True
