"""Values of any space as flat float64 vectors, with the name, precision and period of every coordinate.

Residuals are differences of such vectors. This module alone defines three conventions: NaN matches NaN, infinities
match themselves, and a coordinate whose bounds are -pi and pi is an angle, which is compared on the circle.

Values without a fixed size are encoded with one. A string becomes its first characters as code points, its length, and
a checksum of the rest; a sequence becomes its length, its first elements, and one weighted sum over the others; a graph
becomes its nodes, edges and links as sequences. Unused coordinates contain a number within the bounds; the length
distinguishes them.
"""

from __future__ import annotations

import functools
import math
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.vector.utils import iterate

from symcheck.array_types import Floats
from symcheck.errors import TargetError

_FULL_TURN = 2 * math.pi
_CHARACTERS = 64  # number of characters of a string that are compared one by one
_ELEMENTS = 16  # maximum numbers of sequence elements, and of nodes and edges of a graph


@dataclass(frozen=True)
class Coordinates:
    """The coordinates of flattened values, all arrays of shape (dim,).

    Attributes:
        names: "observation[2]", "observation['arm'][0]", "reward", ...
        epsilon: the relative rounding unit of the coordinate's dtype; 0 for integers, which are compared exactly.
        period: 2 pi for angles, 0 for everything else.
        low: the lower bounds declared by the space; -inf if there is none.
        high: the upper bounds; inf if there is none.
    """

    names: tuple[str, ...]
    epsilon: Floats
    period: Floats
    low: Floats
    high: Floats

    @property
    def dim(self) -> int:
        """The number of coordinates."""
        return len(self.names)

    def residual(self, expected: Floats, actual: Floats) -> Floats:
        """|actual - expected| coordinate by coordinate; NaN matches NaN, angles are compared on the circle.

        Args:
            expected: shape (..., dim).
            actual: shape (..., dim).

        Returns:
            Shape (..., dim), never NaN; infinite if only one side is NaN or the infinities differ.
        """
        return np.abs(self.difference(expected, actual))

    def difference(self, expected: Floats, actual: Floats) -> Floats:
        """The signed difference actual - expected, with the conventions of `residual`.

        Args:
            expected: shape (..., dim).
            actual: shape (..., dim).

        Returns:
            Shape (..., dim).
        """
        same = (expected == actual) | (np.isnan(expected) & np.isnan(actual))
        with np.errstate(invalid="ignore"):
            raw = np.where(same, 0.0, actual - expected)
        raw = np.where(np.isnan(raw), np.inf, raw)
        turning = (self.period > 0) & np.isfinite(raw)
        if not turning.any():
            return raw
        turn = np.where(self.period > 0, self.period, 1.0)
        with np.errstate(invalid="ignore"):
            wrapped = raw - turn * np.round(raw / turn)
        return np.where(turning, wrapped, raw)

    def on_one_branch(self, values: Floats) -> Floats:
        """Values with every angle in (-pi, pi]; -pi and pi are the same angle and become the same number.

        Args:
            values: shape (n, dim).

        Returns:
            Shape (n, dim); only angles change.
        """
        turning = self.period > 0
        if not turning.any():
            return values
        angles = math.pi - (math.pi - values) % _FULL_TURN
        # An angle a few units above -pi due to rounding counts as pi; 1e-6 is four float32 units of pi.
        angles = np.where(angles < 1e-6 - math.pi, math.pi, angles)
        return np.where(turning, angles, values)

    def unrolled(self, values: Sequence[Floats]) -> tuple[Coordinates, list[Floats]]:
        """Angles replaced by their cosine and sine, which have no branch to cross.

        Args:
            values: arrays of shape (n, dim).

        Returns:
            The coordinates and arrays of shape (n, more).
        """
        turning = [j for j in range(self.dim) if self.period[j] > 0]
        if not turning:
            return self, list(values)
        kept = [j for j in range(self.dim) if j not in turning]
        names = [self.names[j] for j in kept] + [f"{f}({self.names[j]})" for j in turning for f in ("cos", "sin")]
        extra = 2 * len(turning)
        epsilon = np.concatenate([self.epsilon[kept], np.repeat(self.epsilon[turning], 2)])
        low = np.concatenate([self.low[kept], np.full(extra, -1.0)])
        high = np.concatenate([self.high[kept], np.ones(extra)])
        widened = []
        for array in values:
            circle = np.stack([f(array[:, j]) for j in turning for f in (np.cos, np.sin)], axis=1)
            widened.append(np.concatenate([array[:, kept], circle], axis=1))
        return Coordinates(tuple(names), epsilon, np.zeros(len(names)), low, high), widened

    def join(self, other: Coordinates) -> Coordinates:
        """These coordinates followed by others."""
        return Coordinates(
            self.names + other.names,
            np.concatenate([self.epsilon, other.epsilon]),
            np.concatenate([self.period, other.period]),
            np.concatenate([self.low, other.low]),
            np.concatenate([self.high, other.high]),
        )


def finite(values: Floats) -> Floats:
    """The values with 0 if they are NaN or infinite.

    Example:
        >>> finite(np.array([1.0, np.nan, -np.inf])).tolist()
        [1.0, 0.0, 0.0]
    """
    return np.where(np.isfinite(values), values, 0.0)


def vector_coordinates(name: str, dim: int, *, epsilon: float, angles: Iterable[int] = ()) -> Coordinates:
    """Coordinates of a plain vector without declared bounds.

    Args:
        name: the name of the vector.
        dim: its length.
        epsilon: relative rounding unit.
        angles: the coordinates that are angles.

    Returns:
        The coordinates.

    Example:
        >>> vector_coordinates("state", 2, epsilon=0.0).names
        ('state[0]', 'state[1]')
    """
    period = np.zeros(dim)
    period[list(angles)] = _FULL_TURN
    infinite = np.full(dim, np.inf)
    return Coordinates(
        tuple(f"{name}[{i}]" for i in range(dim)), np.full(dim, epsilon), period, -infinite, infinite.copy()
    )


def scalar_coordinate(name: str, *, epsilon: float) -> Coordinates:
    """The coordinate of a single number such as the reward."""
    unit = np.ones(1)
    return Coordinates((name,), epsilon * unit, 0 * unit, -np.inf * unit, np.inf * unit)


class SpaceCodec:
    """Flattens the values of one space.

    Args:
        space: any of Gymnasium's spaces (Box, Discrete, MultiDiscrete, MultiBinary, Text, Sequence, Graph, OneOf, Dict,
            Tuple), nested at will, or a space of strings.
        name: the name of its values, "observation" or "action".

    Raises:
        TargetError: any other space.

    Example:
        >>> codec = SpaceCodec(spaces.Dict({"arm": spaces.Box(-1, 1, (2,)), "on": spaces.Discrete(2)}), "observation")
        >>> codec.coordinates.names
        ("observation['arm'][0]", "observation['arm'][1]", "observation['on']")
        >>> codec.flatten({"on": 1, "arm": np.zeros(2)})
        array([0., 0., 1.])
    """

    def __init__(self, space: spaces.Space[Any], name: str) -> None:
        self.space = space
        self.coordinates = _coordinates(space, name)
        self.is_array = isinstance(space, spaces.Box | spaces.MultiDiscrete | spaces.MultiBinary)

    def flatten(self, value: Any) -> Floats:
        """One value as a vector of shape (dim,), a copy."""
        if self.is_array:
            return np.array(value, dtype=np.float64).reshape(-1)
        return np.concatenate([part.reshape(-1) for part in _leaves(self.space, value)])

    def flatten_batch(self, values: Sequence[Any] | npt.NDArray[Any]) -> Floats:
        """Stacked values, or a list of values, as an array of shape (n, dim)."""
        if len(values) == 0:
            return np.zeros((0, self.coordinates.dim))
        if self.is_array or isinstance(self.space, spaces.Discrete):
            return np.asarray(values, dtype=np.float64).reshape(len(values), -1)
        return np.stack([self.flatten(value) for value in values])


def _leaves(space: spaces.Space[Any], value: Any) -> list[Floats]:
    if isinstance(space, spaces.Dict):
        return [leaf for key, child in space.spaces.items() for leaf in _leaves(child, value[key])]
    if isinstance(space, spaces.Tuple):
        return [leaf for child, item in zip(space.spaces, value, strict=True) for leaf in _leaves(child, item)]
    if isinstance(space, spaces.Sequence):
        return _sequence_leaves(space.feature_space, elements(space, value))
    if isinstance(space, spaces.Graph):
        return _graph_leaves(space, value)
    if isinstance(space, spaces.OneOf):
        return _one_of_leaves(space, value)
    if isinstance(value, str):
        return [_text_vector(value)]
    return [np.asarray(value, dtype=np.float64)]


def elements(space: spaces.Sequence, value: Any) -> list[Any]:
    """The elements of a sequence, whether its space stacks them or not.

    Example:
        >>> elements(spaces.Sequence(spaces.Discrete(9), stack=True), np.array([3, 4]))
        [3, 4]
    """
    items = iterate(space.stacked_feature_space, value) if space.stack else value
    return [item.item() if isinstance(item, np.ndarray | np.generic) and item.ndim == 0 else item for item in items]


def _sequence_leaves(child: spaces.Space[Any], items: Any) -> list[Floats]:
    """Length, the first elements, and a position-weighted sum of the others, so that any reordering is detected."""
    empty, count = _empty_vector(child), len(items)
    if isinstance(child, spaces.Box | spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary):
        flat = np.asarray(items, dtype=np.float64).reshape(count, len(empty))
    else:
        flat = np.array([np.concatenate([leaf.reshape(-1) for leaf in _leaves(child, item)]) for item in items])
    block = np.tile(empty, (_ELEMENTS, 1))
    block[: min(count, _ELEMENTS)] = flat[:_ELEMENTS] if count else block[:0]
    rest = np.arange(1, max(count - _ELEMENTS, 0) + 1) @ finite(flat[_ELEMENTS:]) if count > _ELEMENTS else 0 * empty
    return [np.array([float(count)]), block, rest]


def _graph_leaves(space: spaces.Graph, value: Any) -> list[Floats]:
    leaves = _sequence_leaves(space.node_space, value.nodes)
    if space.edge_space is not None:
        leaves += _sequence_leaves(space.edge_space, [] if value.edges is None else value.edges)
    return leaves + _sequence_leaves(_LINK, [] if value.edge_links is None else value.edge_links)


def _one_of_leaves(space: Any, value: Any) -> list[Floats]:
    chosen, inner = value
    leaves: list[Floats] = [np.array([float(chosen)])]
    for k, child in enumerate(space.spaces):
        leaves += _leaves(child, inner) if k == int(chosen) else [_empty_vector(child)]
    return leaves


def _text_vector(text: str) -> Floats:
    codes = [float(ord(character)) for character in text[:_CHARACTERS]]
    codes += [-1.0] * (_CHARACTERS - len(codes))
    return np.array([float(len(text)), *codes, float(zlib.crc32(text[_CHARACTERS:].encode()))])


def _empty_vector(space: spaces.Space[Any]) -> Floats:
    """The placeholder for a missing value of a space: its lower bounds, or zeros."""
    known = _EMPTIES.get(id(space))
    if known is None or known[0] is not space:
        coordinates = _coordinates(space, "")
        empty = np.where(np.isfinite(coordinates.low), coordinates.low, np.clip(0.0, coordinates.low, coordinates.high))
        if len(_EMPTIES) > 100:
            _EMPTIES.clear()
        known = _EMPTIES[id(space)] = (space, empty)
    return known[1]


# spaces are not hashable; storing the space keeps its id valid
_EMPTIES: dict[int, tuple[spaces.Space[Any], Floats]] = {}


def _is_text(space: spaces.Space[Any]) -> bool:
    """Whether values are strings: Text, and spaces of other packages whose samples are (MiniGrid's missions)."""
    if isinstance(space, spaces.Text):
        return True
    known = (spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)
    return not isinstance(space, known) and isinstance(space.sample(), str)


_LINK = spaces.Box(0, 2**31 - 1, (2,), np.int64)


def _coordinates(space: spaces.Space[Any], name: str) -> Coordinates:
    if isinstance(space, spaces.Dict | spaces.Tuple):
        children: Mapping[Any, spaces.Space[Any]] = (
            space.spaces if isinstance(space, spaces.Dict) else dict(enumerate(space.spaces))
        )
        parts = [_coordinates(child, f"{name}[{key!r}]") for key, child in children.items()]
        if not parts:
            raise TargetError(f"the {name} space has no parts: {space}.", where=f"{name} space")
        return _join_all(parts)
    if isinstance(space, spaces.Box):
        return _box_coordinates(space, name)
    if isinstance(space, spaces.Discrete):
        first = np.array([float(space.start)])
        return replace(scalar_coordinate(name, epsilon=0.0), low=first, high=first + float(space.n) - 1)
    if isinstance(space, spaces.MultiDiscrete | spaces.MultiBinary):
        size = int(np.prod(space.shape))
        tops = np.ones(size) if isinstance(space, spaces.MultiBinary) else np.ravel(space.nvec).astype(np.float64) - 1
        return replace(_name_entries(space.shape, name, np.zeros(size)), low=np.zeros(size), high=tops)
    if isinstance(space, spaces.Sequence):
        return _sequence_coordinates(space.feature_space, name)
    if isinstance(space, spaces.Graph):
        parts = [_sequence_coordinates(space.node_space, f"{name} node")]
        if space.edge_space is not None:
            parts.append(_sequence_coordinates(space.edge_space, f"{name} edge"))
        return _join_all([*parts, _sequence_coordinates(_LINK, f"{name} link")])
    if isinstance(space, spaces.OneOf):
        chosen_child = replace(_count_coordinate(f"{name} (which)"), high=np.array([len(space.spaces) - 1.0]))
        return _join_all([chosen_child, *(_coordinates(child, f"{name}[{k}]") for k, child in enumerate(space.spaces))])
    if _is_text(space):
        characters = _name_entries((_CHARACTERS,), name, np.zeros(_CHARACTERS))
        characters = replace(characters, low=np.full(_CHARACTERS, -1.0))
        return _join_all([_count_coordinate(f"{name} (length)"), characters, _count_coordinate(f"{name} (rest)")])
    raise TargetError(
        f"{type(space).__name__} spaces cannot be compared: {space}.",
        where=f"{name} space",
        remedy="Wrap the environment so that it returns values of Gymnasium's own spaces.",
    )


def _sequence_coordinates(child: spaces.Space[Any], name: str) -> Coordinates:
    blocks = [_coordinates(child, f"{name}[{k}]") for k in range(_ELEMENTS)]
    rest = _coordinates(child, f"{name}[{_ELEMENTS}:]")
    infinite = np.full(rest.dim, np.inf)  # weighted sums have no bounds and are not angles
    rest = replace(rest, low=-infinite, high=infinite, period=np.zeros(rest.dim))
    return _join_all([_count_coordinate(f"{name} (length)"), *blocks, rest])


def _count_coordinate(name: str) -> Coordinates:
    return replace(scalar_coordinate(name, epsilon=0.0), low=np.zeros(1))


def _join_all(parts: Sequence[Coordinates]) -> Coordinates:
    return functools.reduce(Coordinates.join, parts)


def _box_coordinates(space: spaces.Box, name: str) -> Coordinates:
    floating = np.issubdtype(space.dtype, np.floating)
    epsilon = float(np.finfo(np.dtype(str(space.dtype))).eps) if floating else 0.0
    low, high = (np.asarray(bound, dtype=np.float64).reshape(-1) for bound in (space.low, space.high))
    # Bounds of exactly -pi and pi, as the dtype rounds them: 1e-6 is above a float32 ulp of pi (2.4e-7).
    turning = floating & (np.abs(low + math.pi) < 1e-6) & (np.abs(high - math.pi) < 1e-6)
    plain = _name_entries(space.shape, name, np.full(low.size, epsilon))
    return Coordinates(plain.names, plain.epsilon, np.where(turning, _FULL_TURN, 0.0), low, high)


def _name_entries(shape: tuple[int, ...], name: str, epsilon: Floats) -> Coordinates:
    indices = ["".join(f"[{i}]" for i in index) for index in np.ndindex(*shape)]
    infinite = np.full(len(indices), np.inf)
    return Coordinates(
        tuple(f"{name}{index}" for index in indices), epsilon, np.zeros(len(indices)), -infinite, infinite.copy()
    )
