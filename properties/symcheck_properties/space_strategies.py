"""Hypothesis strategies for the values of Gymnasium spaces with any nesting; every drawn value is a member.

Arrays are built from a seed, never drawn entry by entry. Containers are drawn part by part, so a failing value shrinks
to few elements, short strings and the centres of boxes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from hypothesis import strategies as st

if TYPE_CHECKING:
    from gymnasium import spaces

_MOST_ELEMENTS = 6  # maximum length of a sequence, and numbers of nodes and edges: more add nothing and shrink slowly
_LONGEST_TEXT = 12
_FEW = 16  # maximum number of integers that are drawn one by one, so that each shrinks


def values(space: spaces.Space[Any]) -> st.SearchStrategy[Any]:
    """Members of a space.

    Args:
        space: any Gymnasium space; spaces from other packages are sampled by seed.

    Returns:
        A strategy. Boxes give corners, the centre, zero and seeded arrays within the bounds; sequences and graphs have
        up to six elements; Dict, Tuple and OneOf combine the strategies of their parts.

    Example:
        >>> from gymnasium import spaces
        >>> from hypothesis import find
        >>> space = spaces.Dict(name=spaces.Text(5), found=spaces.Sequence(spaces.Discrete(9)))
        >>> find(values(space), lambda value: len(value["found"]) > 1)["found"]
        (0, 0)
    """
    from gymnasium import spaces

    makers: list[tuple[type, Callable[[Any], st.SearchStrategy[Any]]]] = [
        (spaces.Box, _boxes),
        (spaces.Discrete, _whole_numbers),
        (spaces.MultiDiscrete, _digits),
        (spaces.MultiBinary, lambda one: _arrays_of(one.shape, np.zeros(one.shape), np.ones(one.shape), np.int8)),
        (spaces.Text, _texts),
        (spaces.Dict, lambda one: st.fixed_dictionaries({key: values(child) for key, child in one.spaces.items()})),
        (spaces.Tuple, lambda one: st.tuples(*(values(child) for child in one.spaces))),
        (spaces.Sequence, _sequences),
        (spaces.Graph, _graphs),
        (spaces.OneOf, _alternatives),
    ]
    for kind, maker in makers:
        if isinstance(space, kind):
            return maker(space)
    return st.integers(0, 2**31 - 1).map(lambda seed: _sample_seeded(space, seed))


def _sample_seeded(space: Any, seed: int) -> Any:
    space.seed(seed)
    return space.sample()


def _boxes(space: spaces.Box) -> st.SearchStrategy[Any]:
    dtype = np.dtype(str(space.dtype))
    if dtype.kind != "f":
        return _whole_boxes(space, dtype)
    low, high = space.low.astype(np.float64), space.high.astype(np.float64)
    bounded = np.isfinite(low) & np.isfinite(high)
    with np.errstate(invalid="ignore"):
        # Halve first, because the sum of two large bounds would overflow.
        middle = np.where(bounded, low / 2 + high / 2, np.clip(0.0, low, high))

    def build(seed: int, exponent: int, kind: str) -> Any:
        rng = np.random.default_rng(seed)
        width = np.where(bounded, high - low, 0.0)
        # Unbounded coordinates are drawn about their middle, at a scale between 1e-3 and 1e3.
        inside = low + width * rng.random(low.shape) if bounded.all() else middle
        free = middle + rng.standard_normal(low.shape) * 10.0**exponent
        drawn = np.where(bounded, np.where(bounded, inside, 0.0), free)
        if kind == "sparse":
            drawn = np.where(rng.random(low.shape) < 0.1, drawn, middle)
        return _within(drawn, space, dtype)

    # Include corners, middle and zero exactly: thresholds often lie at the edges of a box.
    edges = [middle, *(edge for edge in (low, high) if np.isfinite(edge).all()), np.clip(0.0, low, high)]
    exact = st.sampled_from([_within(edge, space, dtype) for edge in edges]).map(np.copy)
    seeded = st.builds(build, st.integers(0, 2**31 - 1), st.sampled_from([0, -3, -1, 1, 3]), _KINDS)
    return st.one_of(exact, seeded)


_KINDS = st.sampled_from(["sparse", "dense"])


def _within(drawn: Any, space: spaces.Box, dtype: np.dtype[Any]) -> Any:
    """Convert to the space's dtype, and clip again because rounding may exceed a bound."""
    return np.asarray(np.clip(drawn.astype(dtype), space.low, space.high), dtype=dtype)


def _whole_boxes(space: spaces.Box, dtype: np.dtype[Any]) -> st.SearchStrategy[Any]:
    if dtype.kind == "b":
        return _arrays_of(space.shape, np.zeros(space.shape), np.ones(space.shape), dtype)
    return _arrays_of(space.shape, space.low, space.high, dtype)


def _whole_numbers(space: spaces.Discrete) -> st.SearchStrategy[int]:
    first = int(space.start)
    return st.integers(first, first + int(space.n) - 1)


def _digits(space: spaces.MultiDiscrete) -> st.SearchStrategy[Any]:
    first = np.asarray(space.start)
    return _arrays_of(space.shape, first, first + np.asarray(space.nvec) - 1, space.dtype)


def _arrays_of(shape: tuple[int, ...], low: Any, high: Any, dtype: Any) -> st.SearchStrategy[Any]:
    """Integer arrays within inclusive bounds; a few numbers are drawn one by one."""
    size = int(np.prod(shape))
    lows, highs = (np.asarray(bound).reshape(-1).tolist() for bound in (low, high))
    # A few numbers are drawn one by one, so that each shrinks separately; many come from one seed.
    if size <= _FEW:
        entries = [st.integers(int(a), int(b)) for a, b in zip(lows, highs, strict=True)]
        return st.tuples(*entries).map(lambda drawn: np.array(drawn, dtype=dtype).reshape(shape))

    def build(seed: int) -> Any:
        least, most = np.array(lows, dtype=np.int64), np.array(highs, dtype=np.int64)
        return np.random.default_rng(seed).integers(least, most, endpoint=True).astype(dtype).reshape(shape)

    edges = st.sampled_from([lows, highs]).map(lambda edge: np.array(edge, dtype=dtype).reshape(shape))
    return st.one_of(edges, st.integers(0, 2**31 - 1).map(build))


def _texts(space: spaces.Text) -> st.SearchStrategy[str]:
    longest = min(int(space.max_length), int(space.min_length) + _LONGEST_TEXT)
    return st.text(sorted(space.character_set), min_size=int(space.min_length), max_size=longest)


def _sequences(space: spaces.Sequence) -> st.SearchStrategy[Any]:
    from gymnasium.vector.utils import concatenate, create_empty_array

    def stack_items(items: list[Any]) -> Any:
        empty: Any = create_empty_array(space.feature_space, len(items), fn=np.zeros)  # shape (0, ...) for no items
        return concatenate(space.feature_space, items, empty) if items else empty

    return st.lists(values(space.feature_space), max_size=_MOST_ELEMENTS).map(stack_items if space.stack else tuple)


def _graphs(space: spaces.Graph) -> st.SearchStrategy[Any]:
    from gymnasium import spaces as gymnasium_spaces

    def stack(child: Any, items: list[Any]) -> Any:
        return np.array(items, dtype=child.dtype).reshape(len(items), *child.shape)

    def build_graph(nodes: list[Any], edges: list[tuple[Any, int, int]]) -> Any:
        count = len(nodes)
        edge_space = space.edge_space
        if edge_space is None or not edges:
            return gymnasium_spaces.GraphInstance(stack(space.node_space, nodes), None, None)
        # Edge ends are drawn before the number of nodes is known; modulo that number, every edge is valid.
        links = np.array([(a % count, b % count) for _, a, b in edges], dtype=np.int32)
        features = stack(edge_space, [feature for feature, _, _ in edges])
        return gymnasium_spaces.GraphInstance(stack(space.node_space, nodes), features, links)

    ends = st.integers(0, _MOST_ELEMENTS - 1)
    feature = st.none() if space.edge_space is None else values(space.edge_space)
    nodes = st.lists(values(space.node_space), min_size=1, max_size=_MOST_ELEMENTS)
    return st.builds(build_graph, nodes, st.lists(st.tuples(feature, ends, ends), max_size=_MOST_ELEMENTS))


def _alternatives(space: Any) -> st.SearchStrategy[Any]:
    def pair_with_index(k: int) -> Callable[[Any], tuple[Any, Any]]:
        return lambda value: (np.int64(k), value)

    return st.one_of([values(child).map(pair_with_index(k)) for k, child in enumerate(space.spaces)])
