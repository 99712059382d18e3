"""Values drawn for a space are members of it, reach its edges, and shrink to the simplest member."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import HealthCheck, find, given, settings
from hypothesis import strategies as st

from symcheck_properties.strategies import actions, observations

QUICK = settings(max_examples=25, database=None, deadline=None, suppress_health_check=list(HealthCheck))
BOX = spaces.Box(np.array([-1.0, -np.inf, 0.0]), np.array([1.0, np.inf, np.inf]), dtype=np.float64)
SPACES: list[spaces.Space[Any]] = [
    BOX,
    spaces.Box(-0.1, 0.3, (2,), np.float32),
    spaces.Box(-np.inf, 5, (), np.float32),
    spaces.Box(0, 255, (3, 9, 9), np.uint8),
    spaces.Box(-7, 7, (2,), np.int64),
    spaces.Discrete(5, start=-2),
    spaces.MultiDiscrete([[3, 4], [5, 6]]),
    spaces.MultiDiscrete([7] * 40, start=[2] * 40),
    spaces.MultiBinary(3),
    spaces.MultiBinary((5, 6)),
    spaces.Text(4, min_length=2, charset="xy"),
    spaces.Sequence(BOX),
    spaces.Sequence(spaces.Discrete(3), stack=True),
    spaces.Sequence(spaces.Dict(a=spaces.Discrete(2), b=BOX), stack=True),
    spaces.Graph(BOX, spaces.Discrete(3)),
    spaces.Graph(spaces.Discrete(4), None),
    spaces.OneOf([spaces.Discrete(2), BOX]),
    spaces.Tuple((spaces.Text(3), spaces.Dict(deep=spaces.Sequence(spaces.Sequence(spaces.MultiBinary(2)))))),
]


@pytest.mark.parametrize("space", SPACES, ids=lambda space: type(space).__name__)
def test_every_value_drawn_is_a_member(space: spaces.Space[Any]) -> None:
    @given(observations(space), actions(space))
    @QUICK
    def members(observation: Any, action: Any) -> None:
        assert space.contains(observation)
        assert space.contains(action)

    members()


def test_corners_and_the_middle_of_a_box_are_drawn() -> None:
    box = spaces.Box(-1, 3, (2,), np.float32)
    for wanted in (-1.0, 3.0, 1.0, 0.0):
        assert (
            find(observations(box), lambda x, w=wanted: bool((x == w).all()), settings=QUICK).tolist() == [wanted] * 2
        )


def test_containers_shrink_to_the_fewest_and_simplest_parts() -> None:
    few = settings(max_examples=300, database=None)
    assert find(observations(spaces.Sequence(spaces.Discrete(9))), lambda s: 4 in s, settings=few) == (4,)
    assert find(observations(spaces.Text(9, charset="ab")), lambda s: "b" in s, settings=few) == "b"
    graph = find(
        observations(spaces.Graph(spaces.Discrete(3), spaces.Discrete(3))), lambda g: g.edges is not None, settings=few
    )
    assert (graph.nodes.tolist(), graph.edges.tolist(), graph.edge_links.tolist()) == ([0], [0], [[0, 0]])
    assert find(observations(spaces.MultiDiscrete([5, 5])), lambda x: x[1] > 2, settings=few).tolist() == [0, 3]


@given(st.data())
@QUICK
def test_spaces_of_other_packages_are_sampled_by_seed(data: st.DataObject) -> None:
    class Odd(spaces.Space[int]):
        def sample(self, *args: Any, **kwargs: Any) -> int:
            return 2 * int(self.np_random.integers(50)) + 1

    assert data.draw(observations(Odd())) % 2 == 1
