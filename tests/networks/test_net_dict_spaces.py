"""Policies whose observation space is a Dict or Tuple: the space gives the leaves, integers stay integers."""

from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from torch import nn

import symcheck as sc
from symcheck.engine.networks.subject.domain import Joint, OneHot, domain_of
from symcheck.engine.networks.subject.integers import as_integers
from symcheck.engine.networks.subject.structured import leaf_shapes

C2 = sc.groups.cyclic(2)
ROOM = spaces.Dict(
    {
        "at": spaces.Box(-2.0, 2.0, (2,), np.float32),
        "gear": spaces.Discrete(3, start=1),
        "keys": spaces.MultiBinary(2),
        "lifts": spaces.MultiDiscrete([4, 4]),
    }
)
MIRROR = {"at": [-1, 1], "gear": [2, 1, 0], "keys": [1, 0], "lifts": [1, 0]}


class Room(nn.Module):
    """Logits of two actions that the mirror exchanges, from a score h(x) of the observation and of its image."""

    def __init__(self, space: Any, *, integers: bool, leak: str | None = None) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.observation_space, self.integers, self.leak = space, integers, leak
        self.score = nn.Sequential(nn.Linear(9, 16), nn.Tanh(), nn.Linear(16, 1))

    def forward(self, seen: Any) -> torch.Tensor:
        at, gear, keys, lifts = seen.values() if isinstance(seen, dict) else seen
        if self.integers:
            assert not gear.is_floating_point()
            gear = nn.functional.one_hot(gear - 1, 3)
        parts = {"at": at, "gear": gear, "keys": keys, "lifts": lifts}
        image = {"at": at * at.new_tensor([-1.0, 1.0]), "gear": gear.flip(1), "keys": keys.flip(1)}
        image["lifts"] = lifts.flip(1)
        both = [
            self.score(torch.cat([leaves[key].to(self.score[0].weight.dtype) for key in parts], dim=1))
            for leaves in (parts, image)
        ]
        logits = torch.cat(both, dim=1)
        if self.leak is not None:
            logits = logits + 0.1 * parts[self.leak][:, :1].to(logits.dtype) * logits.new_tensor([1.0, 0.0])
        return logits


def check(net: nn.Module, entry: Any = MIRROR, **options: Any) -> str:
    return sc.verify_net(net, sc.Symmetry("mirror", C2, [entry], [[1, 0]]), samples=300, **options).verdict


@pytest.mark.parametrize("integers", [True, False])
@pytest.mark.parametrize("kind", ["dict", "tuple"])
def test_the_space_of_a_policy_says_its_leaves(integers: bool, kind: str) -> None:
    space: Any = ROOM if kind == "dict" else spaces.Tuple(tuple(ROOM.spaces.values()))
    entry: Any = MIRROR if kind == "dict" else tuple(MIRROR.values())
    assert check(Room(space, integers=integers), entry) in ("passed", "proved")
    leaks = list(ROOM.spaces) if integers and kind == "dict" else ["gear"]
    for leak in leaks:
        assert check(Room(space, integers=integers, leak=leak), entry) == "failed"


def test_a_leaf_that_the_claim_leaves_out_stays_unchanged() -> None:
    still = {key: entry for key, entry in MIRROR.items() if key != "gear"}
    assert check(Room(ROOM, integers=True), still) == "failed"


def test_shapes_in_another_order_than_the_space_are_the_same_leaves() -> None:
    shapes = leaf_shapes(ROOM)
    assert shapes == {"at": (2,), "gear": (3,), "keys": (2,), "lifts": (2,)}
    turned = dict(reversed(shapes.items()))
    assert check(Room(ROOM, integers=True), input_shape=turned) in ("passed", "proved")
    assert check(Room(ROOM, integers=True, leak="lifts"), input_shape=turned) == "failed"


def test_vectors_stand_for_integers() -> None:
    hot = torch.tensor([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    assert as_integers(hot, 5).tolist() == [6, 7]
    assert as_integers(hot, 0).tolist() == [1, 2]
    assert as_integers(torch.tensor([[2.0, -1.0]]), None).tolist() == [[2, -1]]


def test_inputs_of_a_dict_lie_in_the_spaces_of_their_leaves() -> None:
    domain = domain_of(ROOM, (9,))
    assert isinstance(domain, Joint)
    rng = np.random.default_rng(0)
    for inputs in (domain.draw(rng, 50), domain.corners(rng, 50), domain.clip(3.0 * rng.normal(size=(50, 9)))):
        assert domain.contains(inputs).all()
        at, gear, keys, lifts = inputs[:, :2], inputs[:, 2:5], inputs[:, 5:7], inputs[:, 7:]
        assert (np.abs(at) <= 2).all()
        assert (gear.sum(1) == 1).all()
        assert np.isin(keys, [0, 1]).all()
        assert np.isin(lifts, range(4)).all()
    outside = domain.draw(rng, 4)
    outside[0, 0], outside[1, 2:5], outside[2, 8] = 2.5, 0.5, 4.0
    assert domain.contains(outside).tolist() == [False, False, False, True]


def test_a_leaf_without_bounds_is_drawn_without_bounds() -> None:
    space = spaces.Dict(a=spaces.Box(-np.inf, np.inf, (2,)), b=spaces.Discrete(2))
    domain = domain_of(space, (4,))
    assert domain is not None
    drawn = domain.draw(np.random.default_rng(0), 200)
    assert drawn[:, :2].std() == pytest.approx(1.0, abs=0.2)
    assert (drawn[:, 2:].sum(1) == 1).all()
    free = spaces.Dict(a=spaces.Box(-np.inf, np.inf, (2,)), b=spaces.Box(-np.inf, np.inf, (1,)))
    assert domain_of(free, (3,)) is None
    assert domain_of(space, (5,)) is None
    assert domain_of(spaces.Dict(a=spaces.Text(3)), (3,)) is None
    assert isinstance(domain_of(spaces.Discrete(4), (4,)), OneHot)
    assert domain_of(spaces.Discrete(4), (2, 2)) is None
