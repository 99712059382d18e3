"""Built-in state access for Gymnasium's Box2D walkers and landers: bodies, contact flags and terrain.

Box2D worlds have no setter. To set a state, the environment's own `reset` builds the world from the random numbers that
the state requires (`given_numbers`), without the final step of `reset`; then the bodies are moved to their positions in
the state. Every set begins with new bodies, so nothing of the previous state remains.

States are float32 vectors of Box2D's own numbers: neighbouring floats are neighbouring states. Each body is written as
x, y, angle, velocity in x, velocity in y, angular velocity.

LunarLander, 33 numbers: 0-5 the lander, 6-11 legs[0], 12-17 legs[1]; 18 and 19 ground contact of legs[0] and legs[1];
20 and 21 the indices of wind and turbulence; 22-32 the height of the ground at its eleven points, from left to right.
The mirror about the middle sends x to 20 - x, negates angles, horizontal and angular velocities, exchanges the legs and
reverses the ground.

BipedalWalker, 32 numbers: 0-5 the hull, then legs[0] to legs[3] (upper and lower of one leg, then of the other); 30 and
31 ground contact of legs[1] and legs[3]. The state carries the unchanged terrain and, for each foot, the pieces of
ground that it touched. They are needed because the environment's flag says "in the air" when a foot leaves one piece,
even if the foot stands on the next one.

Not restored: the contact and joint impulses of the previous step (the solver's warm start), and the time for which a
body has been at rest (a lander that falls asleep ends the episode).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from symcheck.array_types import Singles
from symcheck.envs.state_access.carried import CarriedState
from symcheck.envs.state_access.given_numbers import GivenNumbers, replace_attributes
from symcheck.envs.state_access.record import Origin, StateAccess
from symcheck.statements.statement import Statement

_INEXACT = (Statement("inexact_impulses"),)
_BODY = 6  # numbers of one body: x, y, angle, velocity in x and y, angular velocity
_POINTS = 11  # points of the lander's ground; the landing pad spans the middle five


def built_in(env: Any) -> StateAccess | None:
    """The built-in access of an unwrapped LunarLander or BipedalWalker, or None for any other class.

    Args:
        env: the unwrapped environment; subclasses count.

    Returns:
        Access whose states are the vectors described above.
    """
    for base in type(env).__mro__:
        maker = _MAKERS.get(f"{base.__module__}:{base.__name__}")
        if maker is not None:
            return maker()
    return None


def _no_step(action: Any) -> tuple[None]:
    return (None,)


def read_bodies(bodies: Sequence[Any]) -> Singles:
    """Positions, angles and velocities of bodies, shape (6 * bodies,), in Box2D's units.

    Args:
        bodies: Box2D bodies.

    Returns:
        x, y, angle, velocity in x and y, angular velocity of each.
    """
    return np.array(
        [
            number
            for body in bodies
            for number in (*body.position, body.angle, *body.linearVelocity, body.angularVelocity)
        ],
        dtype=np.float32,
    )


def place_bodies(bodies: Sequence[Any], numbers: npt.NDArray[Any]) -> None:
    """Move bodies to the positions and velocities from `read_bodies`, and wake them.

    Args:
        bodies: Box2D bodies.
        numbers: shape (6 * bodies,).
    """
    for body, (x, y, angle, vx, vy, spin) in zip(bodies, numbers.reshape(-1, _BODY).tolist(), strict=True):
        body.transform = ((x, y), angle)
        body.linearVelocity = (vx, vy)
        body.angularVelocity = spin
        body.awake = True


class _Met:
    """A world whose next step reports the contacts of a newly set state, once.

    Box2D reports contacts at the beginning of a step, from the positions after the previous step. Here they are
    determined in a step of zero duration and reported when the environment steps. Until then, its flags are those of
    the state.

    Args:
        env: its bodies are placed; `env.world` becomes this object until the next step.
        feet: the bodies with a flag `ground_contact`.
        flags: the values of these flags in the state.
        met: maps foot i, and whether it touches anything now, to its flag.
        touched: the objects that each foot touched, according to the state.
    """

    def __init__(
        self,
        env: Any,
        feet: Sequence[Any],
        flags: Sequence[Any],
        met: Callable[[int, bool], bool] = lambda i, now: now,
        touched: Mapping[bytes, frozenset[int]] | None = None,
    ) -> None:
        for foot in feet:
            # Only existing contacts may set the flags.
            foot.ground_contact = False
        # With zero duration nothing moves, but the contact listener is called for every touching pair.
        env.world.Step(0.0, 0, 0)
        report = [met(i, foot.ground_contact) for i, foot in enumerate(feet)], env.game_over
        vars(self).update(world=env.world, env=env, feet=feet, report=report, touched=touched)
        # A hull that touches the ground ends the episode in the reporting step, not when the state is set.
        env.game_over = False
        for foot, flag in zip(feet, flags, strict=True):
            foot.ground_contact = bool(flag)
        env.world = self

    def __getattr__(self, name: str) -> Any:
        return getattr(vars(self)["world"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(vars(self)["world"], name, value)

    def Step(self, *arguments: Any) -> None:  # noqa: N802 - Box2D's name
        """Report the contacts, restore the environment's world and step it."""
        flags, over = self.report
        for foot, flag in zip(self.feet, flags, strict=True):
            foot.ground_contact = flag
        self.env.game_over = over
        # Only once: afterwards the environment steps its own world.
        self.env.world = self.world
        self.world.Step(*arguments)


def _lander() -> StateAccess:
    return StateAccess(
        _set_lander, "LunarLander: bodies, contacts and ground", Origin.BUILT_IN, get=_get_lander, inexact=_INEXACT
    )


def _get_lander(env: Any) -> Singles:
    bodies = read_bodies([env.lander, *env.legs])
    flags = [leg.ground_contact for leg in env.legs]
    wind = [getattr(env, "wind_idx", 0), getattr(env, "torque_idx", 0)]
    # Each sky polygon spans two adjacent points of the ground; the first polygon also gives the leftmost point.
    ground = [env.sky_polys[0][0][1], *(polygon[1][1] for polygon in env.sky_polys)]
    return np.concatenate([bodies, np.array([*flags, *wind, *ground], dtype=np.float32)])


def _set_lander(env: Any, state: Any) -> None:
    numbers = np.asarray(state, dtype=np.float64)
    # Compare with 0.5, because the image under a float map may have rounding errors.
    contacts, wind, ground = numbers[18:20] > 0.5, np.rint(numbers[20:22]), numbers[22:]
    with replace_attributes(env, {"_np_random": GivenNumbers(_raw_heights(ground, env)), "step": _no_step}):
        env.reset()
    place_bodies([env.lander, *env.legs], numbers[:18])
    _Met(env, env.legs, contacts.tolist())
    if env.enable_wind:
        env.wind_idx, env.torque_idx = (int(index) for index in wind)
    env.prev_shaping = _lander_shaping(env)


def _raw_heights(ground: npt.NDArray[np.float64], env: Any) -> npt.NDArray[np.float64]:
    """The twelve heights that `reset` averages, three adjacent ones at a time, to the eleven points of the ground."""
    pad = 400 / 30.0 / 4  # `reset` overwrites the middle five heights with this height of the landing pad
    middle = range(_POINTS // 2 - 2, _POINTS // 2 + 3)
    heights = np.zeros(_POINTS + 1)
    heights[list(middle)] = pad
    free = [i for i in range(_POINTS + 1) if i not in middle]
    # reset sets ground[i] = 0.33 (h[i-1] + h[i] + h[i+1]), where h[-1] is the last of the twelve.
    average = np.zeros((_POINTS, _POINTS + 1))
    for i in range(_POINTS):
        average[i, [i - 1, i, i + 1]] = 0.33
    # Eleven equations, one per point of the ground, for the seven heights outside the pad.
    heights[free] = np.linalg.lstsq(average[:, free], ground - average @ heights, rcond=None)[0]
    return heights


def _lander_shaping(env: Any) -> float:
    """The shaping potential relative to which the next reward is computed, as in the environment after a step."""
    position, velocity = env.lander.position, env.lander.linearVelocity
    # VIEWPORT_W and VIEWPORT_H over SCALE, halved, and FPS: constants of Gymnasium's module.
    half_width, half_height, frames = 600 / 30.0 / 2, 400 / 30.0 / 2, 50
    x = (position.x - half_width) / half_width
    y = (position.y - (env.helipad_y + 18 / 30.0)) / half_height
    speed_x, speed_y = velocity.x * half_width / frames, velocity.y * half_height / frames
    contacts = [float(leg.ground_contact) for leg in env.legs]
    return float(
        -100 * np.sqrt(x * x + y * y)
        - 100 * np.sqrt(speed_x * speed_x + speed_y * speed_y)
        - 100 * abs(env.lander.angle)
        + 10 * contacts[0]
        + 10 * contacts[1]
    )


@dataclass(frozen=True)
class Terrain:
    """The ground of one episode of BipedalWalker.

    Attributes:
        bodies: the vertices of each body and whether it is an edge, in the order of creation.
        profile: terrain_x and terrain_y, used only for drawing.
    """

    bodies: tuple[tuple[tuple[tuple[float, float], ...], bool], ...]
    profile: tuple[Any, Any]


@dataclass(frozen=True)
class Ground:
    """The part of a walker's state that is not in its vector.

    Attributes:
        terrain: the terrain of the episode.
        touched: the pieces of ground that each foot touched at the start of the last step, by position of the foot.
    """

    terrain: Terrain
    touched: dict[bytes, frozenset[int]]


def _walker() -> StateAccess:
    known: list[tuple[Any, Terrain]] = []  # the environment's list of terrain bodies, and the terrain read from it

    def terrain_of(env: Any) -> Terrain:
        # `reset` creates a new list, so the same object means the same terrain, which is read only once.
        if not known or known[0][0] is not env.terrain:
            known[:] = [(env.terrain, _read_terrain(env))]
        return known[0][1]

    def get_state(env: Any) -> CarriedState:
        feet = (env.legs[1], env.legs[3])
        numbers = [read_bodies([env.hull, *env.legs]), np.array([foot.ground_contact for foot in feet], np.float32)]
        waiting = isinstance(env.world, _Met)  # set but not stepped yet: use the values of the state
        touched = env.world.touched if waiting else {_key(foot): _touched_ground(env, foot) for foot in feet}
        return CarriedState(np.concatenate(numbers), Ground(terrain_of(env), touched))

    def set_state(env: Any, state: Any) -> None:
        numbers = np.asarray(state, dtype=np.float64)
        ground = getattr(state, "rest", None) or Ground(terrain_of(env), {})
        _empty_world(env)
        shadows = {
            "_np_random": GivenNumbers(),
            "step": _no_step,
            "_generate_clouds": lambda: None,
            "_generate_terrain": lambda hardcore: _build_terrain(env, ground.terrain),
        }
        with replace_attributes(env, shadows):
            env.reset()
        known[:] = [(env.terrain, ground.terrain)]
        # After `reset`, which places the feet on flat ground.
        place_bodies([env.hull, *env.legs], numbers[:30])
        feet, flags = (env.legs[1], env.legs[3]), (numbers[30:32] > 0.5).tolist()

        def flag_now(i: int, now: bool) -> bool:
            before = ground.touched.get(_key(feet[i]))
            return now if before is None else _flag(flags[i], before, _touched_ground(env, feet[i]))

        _Met(env, feet, flags, flag_now, ground.touched)
        # As in BipedalWalker.step: 130 x / SCALE - 5 |angle|; the next reward is the difference.
        env.prev_shaping = 130 * env.hull.position[0] / 30.0 - 5.0 * abs(env.hull.angle)

    return StateAccess(
        set_state,
        "BipedalWalker: bodies and contacts, on the same terrain",
        Origin.BUILT_IN,
        get=get_state,
        inexact=_INEXACT,
    )


def _key(foot: Any) -> bytes:
    """A foot's position and velocity as a key, so that carried data is found even if legs were exchanged."""
    return read_bodies([foot]).tobytes()


def _touched_ground(env: Any, foot: Any) -> frozenset[int]:
    """The indices of the ground pieces that a foot touches, in the order of their creation by `reset`."""
    last = len(env.terrain) - 1
    return frozenset(last - env.terrain.index(edge.other) for edge in foot.contacts if edge.contact.touching)


def _flag(flag: bool, before: frozenset[int], now: frozenset[int]) -> bool:
    """The flag as set by the environment's contact listener: the end of any contact clears it."""
    return False if before - now else True if now - before else flag


def _empty_world(env: Any) -> None:
    """Create a new world: in a world from which bodies were removed, the same state steps differently."""
    import Box2D

    env._destroy()
    env.world = Box2D.b2World()


def _read_terrain(env: Any) -> Terrain:
    bodies = []
    for body in reversed(env.terrain):
        shape = body.fixtures[0].shape
        bodies.append((tuple((float(x), float(y)) for x, y in shape.vertices), type(shape).__name__ == "b2EdgeShape"))
    return Terrain(tuple(bodies), (env.terrain_x, env.terrain_y))


def _build_terrain(env: Any, terrain: Terrain) -> None:
    env.terrain = []
    for vertices, is_edge in terrain.bodies:
        fixture = env.fd_edge if is_edge else env.fd_polygon
        fixture.shape.vertices = list(vertices)
        body = env.world.CreateStaticBody(fixtures=fixture)
        body.color1 = body.color2 = (76, 204, 76)
        env.terrain.append(body)
    env.terrain_x, env.terrain_y = terrain.profile
    env.terrain_poly = []
    env.cloud_poly = []
    env.terrain.reverse()


_MAKERS: dict[str, Callable[[], StateAccess]] = {
    "gymnasium.envs.box2d.lunar_lander:LunarLander": _lander,
    "gymnasium.envs.box2d.bipedal_walker:BipedalWalker": _walker,
}
