"""Spaces without a fixed size: what moves in a value moves a coordinate, and claims about them are judged."""

from __future__ import annotations

import json
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st

import symcheck_properties  # noqa: F401
from symcheck.engine.environments.runner import run_env
from symcheck.engine.options import EnvOptions
from symcheck.engine.results import to_json_value
from symcheck.envs.state_access import register_state_access
from symcheck.groups import catalog
from symcheck.spaces.coordinates import SpaceCodec
from symcheck.spaces.from_json import from_json
from symcheck.symmetry.symmetry import Symmetry

BOX = spaces.Box(-9, 9, (2,), np.float64)
SPACES: dict[str, spaces.Space[Any]] = {
    "text": spaces.Text(80, charset="abc"),
    "sequence": spaces.Sequence(BOX),
    "stacked sequence": spaces.Sequence(BOX, stack=True),
    "sequence of dicts": spaces.Sequence(spaces.Dict(a=spaces.Discrete(5), b=BOX), stack=True),
    "sequence of sequences": spaces.Sequence(spaces.Sequence(spaces.Discrete(3))),
    "graph": spaces.Graph(BOX, spaces.Discrete(4)),
    "graph without edge features": spaces.Graph(spaces.Discrete(7), None),
    "one of": spaces.OneOf([spaces.Discrete(3, start=2), BOX, spaces.Text(4)]),
    "bits": spaces.MultiBinary((2, 3)),
    "digits": spaces.MultiDiscrete([[3, 4], [5, 6]]),
    "nested": spaces.Dict(
        a=spaces.Tuple((spaces.Text(5), spaces.Sequence(spaces.Discrete(3)))),
        b=spaces.Dict(c=BOX, d=spaces.OneOf([BOX, spaces.MultiBinary(2)])),
    ),
}


@pytest.mark.parametrize("name", SPACES)
def test_every_value_has_as_many_coordinates_as_its_space_and_lies_within_their_bounds(name: str) -> None:
    codec = SpaceCodec(SPACES[name], "observation")
    SPACES[name].seed(0)
    for _ in range(30):
        flat = codec.flatten(SPACES[name].sample())
        assert flat.shape == (codec.coordinates.dim,) == (len(codec.coordinates.names),)
        assert (flat >= codec.coordinates.low).all()
        assert (flat <= codec.coordinates.high).all()


@pytest.mark.parametrize("name", SPACES)
@given(seeds=st.tuples(st.integers(0, 99), st.integers(0, 99)))
@settings(max_examples=15, database=None, deadline=None)
def test_two_values_have_one_vector_only_if_they_are_equal(name: str, seeds: tuple[int, int]) -> None:
    space, values = SPACES[name], []
    for seed in seeds:
        space.seed(seed)
        values.append(space.sample())
    codec = SpaceCodec(space, "observation")
    same = np.array_equal(codec.flatten(values[0]), codec.flatten(values[1]))
    assert same == (to_json_value(values[0]) == to_json_value(values[1]))


@pytest.mark.parametrize("name", SPACES)
def test_a_value_is_the_same_after_a_report_held_it(name: str) -> None:
    space = SPACES[name]
    codec = SpaceCodec(space, "observation")
    space.seed(1)
    for _ in range(10):
        value = space.sample()
        again = from_json(space, json.loads(json.dumps(to_json_value(value))))
        np.testing.assert_array_equal(codec.flatten(again), codec.flatten(value))


def test_an_element_far_back_in_a_sequence_still_moves_a_coordinate() -> None:
    codec = SpaceCodec(spaces.Sequence(BOX), "observation")
    values = [tuple(np.full(2, float(k)) for k in range(40)) for _ in range(2)]
    values[1][35][1] += 1e-9
    gap = codec.coordinates.residual(*(codec.flatten(value) for value in values))
    assert [name for name, moved in zip(codec.coordinates.names, gap, strict=True) if moved] == ["observation[16:][1]"]


class Flock(gym.Env[Any, Any]):
    """Birds on a line that drift together; `show` says how they are seen. The mirror negates positions and pushes."""

    action_space = spaces.Discrete(2)

    def __init__(self, space: spaces.Space[Any], show: Any, wind: float = 0.0) -> None:
        self.observation_space = space
        self.show = show
        self.wind = wind

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.x = self.np_random.uniform(-1, 1, 3)
        return self.show(self.x), {}

    def step(self, action: Any) -> Any:
        self.x = 0.9 * self.x + 0.1 * self.x[::-1] + (0.1 if action else -0.1) + self.wind * (self.x > 0)
        return self.show(self.x), -float(np.abs(self.x).sum()), False, False, {}


register_state_access(
    Flock, set=lambda env, x: setattr(env, "x", np.array(x, dtype=float)), get=lambda env: env.x.copy()
)
WORDS = {1.0: "right", -1.0: "left", 0.0: "here"}
OTHER = {"right": "left", "left": "right", "here": "here"}


def mirrored_graph(g: Any) -> Any:
    return spaces.GraphInstance(-g.nodes, g.edges, g.edge_links)


def seen_as_graph(x: Any) -> Any:
    return spaces.GraphInstance(x[:, None].copy(), np.abs(np.diff(x))[:, None], np.array([[0, 1], [1, 2]]))


LINE = spaces.Box(-99, 99, (1,), np.float64)
VIEWS: dict[str, tuple[spaces.Space[Any], Any, Any]] = {
    "sequence": (
        spaces.Sequence(LINE),
        lambda x: tuple(np.array([one]) for one in x if abs(one) > 0.5),  # what is near the centre is not seen
        lambda obs: tuple(-one for one in obs),
    ),
    "stacked sequence": (spaces.Sequence(LINE, stack=True), lambda x: x[:, None].copy(), lambda obs: -obs),
    "graph": (spaces.Graph(LINE, LINE), seen_as_graph, mirrored_graph),
    "text": (spaces.Text(9), lambda x: WORDS[float(np.sign(x[0]))], lambda obs: OTHER[obs]),
    "one of": (
        spaces.OneOf([LINE, spaces.Text(9)]),
        lambda x: (0, x[:1].copy()) if abs(x[0]) < 1 else (1, WORDS[float(np.sign(x[0]))]),
        lambda obs: (obs[0], -obs[1] if obs[0] == 0 else OTHER[obs[1]]),
    ),
    "multi-binary": (
        spaces.MultiBinary(6),
        lambda x: np.concatenate([x > 0.2, x < -0.2]).astype(np.int8),
        lambda obs: obs[[3, 4, 5, 0, 1, 2]],
    ),
    "multi-discrete": (
        spaces.MultiDiscrete([5, 5, 5]),
        lambda x: np.clip(np.rint(x) + 2, 0, 4).astype(np.int64),
        lambda obs: 4 - obs,
    ),
    "nested": (
        spaces.Dict(a=spaces.Tuple((spaces.Text(9), spaces.Sequence(LINE))), b=LINE),
        lambda x: {"a": (WORDS[float(np.sign(x[0]))], tuple(x[1:, None].copy())), "b": x[:1].copy()},
        lambda obs: {"a": (OTHER[obs["a"][0]], tuple(-one for one in obs["a"][1])), "b": -obs["b"]},
    ),
}


@pytest.mark.parametrize(
    ("view", "method"),
    [
        *((view, "paired") for view in VIEWS),
        ("sequence", "trajectory"),
        pytest.param("multi-binary", "trajectory", marks=pytest.mark.long),
        *(pytest.param(view, "trajectory", marks=pytest.mark.slow) for view in VIEWS),
    ],
)
def test_claims_about_structured_observations_are_judged(view: str, method: str) -> None:
    space, show, mirror = VIEWS[view]
    claim = Symmetry("mirror", catalog.cyclic(2), [mirror], [[1, 0]], state=[[-1, -1, -1]])
    options = EnvOptions(samples=1200 if method == "trajectory" else 200, method=method)  # type: ignore[arg-type]

    def verdicts(wind: float) -> dict[str, str]:
        make = lambda: gym.wrappers.TimeLimit(Flock(space, show, wind), 20)  # noqa: E731
        result = run_env(make, claim, options=options, target="flock", command="")
        return {one.name: one.verdict for one in result.properties}

    assert set(verdicts(0.0).values()) <= {"passed", "proved"}
    # Few episodes show a weak wind in numbers, a strong one in signs (which it makes all equal).
    assert any(verdicts(wind)["transition_invariance"] == "failed" for wind in (0.3, 0.8))


def test_a_word_that_is_not_exchanged_fails_and_names_the_character() -> None:
    space, show, _ = VIEWS["text"]
    claim = Symmetry("mirror", catalog.cyclic(2), [lambda obs: obs], [[1, 0]], state=[[-1, -1, -1]])
    result = run_env(lambda: Flock(space, show), claim, options=EnvOptions(samples=300), target="flock", command="")
    failed = {one.name: one for one in result.properties}["transition_invariance"]
    assert failed.verdict == "failed"
    assert failed.counterexample is not None
    assert failed.counterexample.where.startswith("observation")
