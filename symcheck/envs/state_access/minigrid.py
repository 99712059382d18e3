"""Built-in state access for MiniGrid: the agent, the object that it carries, and the grid, as one vector of integers.

    0, 1    the agent's column and row
    2       its direction: 0 right, 1 down, 2 left, 3 up
    3       steps taken in the episode
    4..8 the carried object: type, colour, state, and type and colour of the content of a box
    9..     the same five numbers of every cell, in the order (column, row, number); nothing is (1, 0, 0, 0, 0)
    last column and row of every position stored in an attribute (such as target_pos), by name

Types, colours and states are MiniGrid's own indices; 0 in the last two stands for an empty box. A quarter turn of the
world permutes the cells, rotates position and direction, and leaves the agent's view unchanged.

The state carries the rest of the episode unchanged, for instance the mission. Objects keep their identity: a cell of
the image gets the object with the same numbers in the original state.
"""

from __future__ import annotations

import copy
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from symcheck.envs.state_access.carried import CarriedState
from symcheck.envs.state_access.record import Origin, StateAccess
from symcheck.statements.statement import Statement

_CLASS = "minigrid.minigrid_env:MiniGridEnv"
_HEAD, _CODE = 9, 5  # numbers before the cells, and numbers of one cell
_NOTHING = (1, 0, 0, 0, 0)
_MAPPED = frozenset(("grid", "agent_pos", "agent_dir", "carrying", "step_count"))
# Attributes that do not change; generators are not part of the state.
_FIXED = frozenset(
    ("_np_random", "_np_random_seed", "spec", "metadata", "actions", "action_space", "observation_space")
)
_DRAWN = frozenset(
    ("window", "clock", "render_mode", "render_size", "screen_size", "tile_size", "highlight", "agent_pov")
)
_PLAIN = (int, float, str, bytes, bool, type(None), np.generic)

Code = tuple[int, int, int, int, int]


@dataclass(frozen=True)
class World:
    """The part of a state that is not in its numbers.

    Attributes:
        size: width and height.
        cells: the objects of the grid, row by row; None if there is nothing.
        carrying: the object that the agent carries.
        things: every mutable object, with its attributes.
        episode: the attributes of the environment that belong to the episode.
        vector: the numbers that belong to this world.
    """

    size: tuple[int, int]
    cells: tuple[Any, ...]
    carrying: Any
    things: tuple[tuple[Any, dict[str, Any]], ...]
    episode: dict[str, Any]
    vector: npt.NDArray[np.int64]


def built_in(env: Any) -> StateAccess | None:
    """The built-in access of an unwrapped MiniGrid environment, or None for any other class.

    Args:
        env: the unwrapped environment.

    Returns:
        Access whose states are the vectors described above, which carry the rest of their world.
    """
    if not any(f"{base.__module__}:{base.__name__}" == _CLASS for base in type(env).__mro__):
        return None
    return StateAccess(
        _set_state,
        "MiniGrid: grid, agent, and what it carries",
        Origin.BUILT_IN,
        get=_get_state,
        inexact=(Statement("inexact_mission"),),
    )


def _get_state(env: Any) -> CarriedState:
    grid = env.grid
    codes = [_code(cell) for cell in grid.grid]
    # MiniGrid stores row by row; the vector goes column by column, as `grid.encode()` does.
    columns = [codes[j * grid.width + i] for i in range(grid.width) for j in range(grid.height)]
    head = [*env.agent_pos, env.agent_dir, env.step_count, *_code(env.carrying)]
    cells = [number for code in columns for number in code]
    remembered = [int(number) for name in positions(env) for number in getattr(env, name)]
    vector = np.array([*head, *cells, *remembered], dtype=np.int64)
    carried = (env.carrying,) if env.carrying is not None else ()
    things = {
        id(thing): thing
        for cell in (*grid.grid, *carried)
        if cell is not None and cell.type not in ("wall", "floor", "lava")  # these never change
        for thing in (cell, cell.contains)
        if thing is not None
    }
    world = World(
        (grid.width, grid.height),
        tuple(grid.grid),
        env.carrying,
        tuple((thing, dict(vars(thing))) for thing in things.values()),
        _episode(env, things),
        vector,
    )
    return CarriedState(vector, world)


def positions(env: Any) -> list[str]:
    """Names of the attributes in which a task stores a cell, in alphabetical order.

    Args:
        env: the unwrapped environment.

    Returns:
        For instance ["target_pos"].
    """
    names = []
    for name, value in vars(env).items():
        named = name.lower().endswith(("pos", "position")) and not name.startswith(("agent_", "_"))
        if named and isinstance(value, tuple | list | np.ndarray) and len(value) == 2:
            names.append(name)
    return sorted(names)


def _episode(env: Any, things: dict[int, Any]) -> dict[str, Any]:
    """Attributes of an episode: plain values unchanged, others copied, without copying the objects of the grid."""
    kept: dict[int, Any] = {id(env): env, id(env.grid): env.grid}
    values = {}
    for name, value in vars(env).items():
        if name in _MAPPED | _FIXED | _DRAWN:
            continue
        if not isinstance(value, _PLAIN):
            # deepcopy treats objects in the memo as already copied, so objects of the grid keep their identity.
            memo = {**kept, **things}
            value = copy.deepcopy(value, memo)
        values[name] = value
    return values


def _set_state(env: Any, state: Any) -> None:
    world: World = state.rest if getattr(state, "rest", None) is not None else _get_state(env).rest
    vector = np.rint(np.asarray(state)).astype(np.int64)
    _restore(env, world)
    if not np.array_equal(vector, world.vector):
        _rearrange(env, world, vector)
    env.agent_pos = (int(vector[0]), int(vector[1]))
    env.agent_dir, env.step_count = int(vector[2]), int(vector[3])
    tail = _HEAD + _CODE * world.size[0] * world.size[1]
    for name, cell in zip(positions(env), vector[tail:].reshape(-1, 2).tolist(), strict=True):
        setattr(
            env, name, type(getattr(env, name))(cell) if not hasattr(getattr(env, name), "dtype") else np.array(cell)
        )


def _restore(env: Any, world: World) -> None:
    from minigrid.core.grid import Grid

    env.grid = Grid(*world.size)
    env.grid.grid = list(world.cells)
    env.carrying = world.carrying
    for thing, attributes in world.things:
        # Restore the attributes of the same objects, so that other references to them stay valid.
        vars(thing).clear()
        vars(thing).update(attributes)
    things = {id(thing): thing for thing, _ in world.things}
    kept: dict[int, Any] = {id(env): env, **things}
    for name, value in world.episode.items():
        plain = isinstance(value, _PLAIN)
        setattr(env, name, value if plain else copy.deepcopy(value, dict(kept)))


def _rearrange(env: Any, world: World, vector: npt.NDArray[np.int64]) -> None:
    """Place objects according to the numbers: existing objects first, new ones if there is no matching object."""
    width, height = world.size
    waiting: dict[Code, list[Any]] = defaultdict(list)
    # `pop` takes the last element: the carried object comes first, then those of the cells in order.
    for thing in (*reversed(world.cells), world.carrying):
        if thing is not None:
            waiting[_code(thing)].append(thing)
    codes = vector[_HEAD : _HEAD + _CODE * width * height].reshape(width, height, _CODE)
    for i in range(width):
        for j in range(height):
            thing = _take_object(waiting, codes[i, j])
            env.grid.set(i, j, thing)
            # `grid.set` does not update the positions of objects.
            if thing is not None and thing.cur_pos is not None:
                thing.cur_pos = (i, j)
    env.carrying = _take_object(waiting, vector[4:_HEAD])


def _take_object(waiting: dict[Code, list[Any]], numbers: npt.NDArray[np.int64]) -> Any:
    from minigrid.core.world_object import WorldObj

    kind, colour, state, inner, inner_colour = (int(number) for number in numbers)
    code: Code = (kind, colour, state, inner, inner_colour)
    if code == _NOTHING:
        return None
    if waiting[code]:
        return waiting[code].pop()
    thing: Any = WorldObj.decode(kind, colour, state)
    if thing is not None and inner:
        thing.contains = WorldObj.decode(inner, inner_colour, 0)
    return thing


def _code(thing: Any) -> Code:
    if thing is None:
        return _NOTHING
    kind, colour, state = (int(number) for number in thing.encode())
    if thing.contains is None:
        return (kind, colour, state, 0, 0)
    inner, inner_colour, _ = thing.contains.encode()
    return (kind, colour, state, int(inner), int(inner_colour))
