"""Networks of other libraries by themselves: functions of arrays, agents of trainers, dictionaries as one vector."""

from __future__ import annotations

import copy
import sys
from collections import OrderedDict
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from torch import nn

from symcheck.engine.networks.capture import tensor_reads
from symcheck.engine.networks.subject import array_functions, stable_baselines, trainers
from symcheck.engine.networks.subject.array_functions import ArrayFunction, is_array_function
from symcheck.engine.networks.subject.copies import copied_as_they_are, slots_of
from symcheck.engine.networks.subject.structured import (
    FlatInput,
    flat_claim,
    leaf_shapes,
    shapes_of,
    takes_tensordict,
)
from symcheck.entries.forms import IdentityEntry
from symcheck.errors import SpecError
from symcheck.groups import catalog
from symcheck.symmetry.symmetry import Symmetry

ANY: Any = None
X = torch.from_numpy(np.random.default_rng(0).normal(size=(4, 3)))


def test_a_function_of_a_batch_is_called_once_and_one_of_an_input_row_by_row() -> None:
    calls: list[tuple[int, ...]] = []

    def batch(x: Any) -> Any:
        calls.append(x.shape)
        return 2 * x

    def single(x: Any) -> Any:
        calls.append(x.shape)
        if x.ndim != 1:
            raise ValueError("one input")
        return 2 * x

    for function, last in ((batch, [(4, 3)]), (single, [(3,)] * 4)):
        calls.clear()
        net = ArrayFunction(function)
        torch.testing.assert_close(net(X), 2 * X)
        assert calls[-len(last) :] == last
        calls.clear()
        net(X)
        assert calls == last  # what it takes is found out once


@pytest.mark.parametrize(
    ("function", "rows"),
    [
        (lambda x: x, True),
        (lambda x: x.sum(axis=-1), True),
        (lambda x: (x, [x[:, 0]]), True),
        (lambda x: {"a": x}, True),
        (lambda x: x.sum(), False),
        (lambda x: x[:3], False),
        (lambda x: (x, x.sum()), False),
        (lambda x: (), False),
        (lambda x: "text", False),
        (lambda x: 1 / 0, False),
    ],
)
def test_a_function_takes_batches_if_every_output_has_their_rows(function: Any, rows: bool) -> None:
    net = ArrayFunction(function)
    assert all(net._keeps_rows(np.zeros((n, 3))) for n in (5, 7)) is rows


def test_outputs_keep_their_structure_and_rows_are_stacked() -> None:
    def single(x: Any) -> Any:
        if x.ndim != 1:
            raise ValueError("one input")
        return {"a": x, "b": [x[:1], (x.sum(),)]}

    made = ArrayFunction(single)(X)
    assert list(made) == ["a", "b"]
    torch.testing.assert_close(made["a"], X)
    torch.testing.assert_close(made["b"][0], X[:, :1])
    torch.testing.assert_close(made["b"][1][0], X.sum(dim=1))
    assert array_functions._as_tensors(["text", None]) == ["text", None]
    assert array_functions._leaves({"a": [X, "text"], "b": X})[1] is X


@pytest.mark.parametrize("narrow", [lambda x: x.astype(np.float32), lambda x: (x, [x.astype(np.float32)])])
def test_a_function_that_computes_in_float32_has_no_exact_copy(narrow: Any) -> None:
    with pytest.raises(TypeError, match="computes in float32"):
        ArrayFunction(narrow)(X)
    ArrayFunction(narrow)(X.float())
    assert array_functions._dtypes({"a": (X, [X.float()])}) == {"float64", "float32"}


class Called:
    def __call__(self, x: Any, y: int = 1) -> Any:
        return x


@pytest.mark.parametrize(
    ("item", "takes"),
    [
        (lambda x: x, True), (lambda x, y=1: x, True), (lambda x, *, key=None: x, True), (lambda *xs: xs, False),
        (lambda x, y: x, False), (lambda: 1, False), (lambda x=1: x, False), (Called(), True), (Called, False),
        (nn.Linear(1, 1), False), (3, False),
    ],
)  # fmt: skip
def test_a_function_of_one_array_has_one_argument_without_a_default(item: Any, takes: bool) -> None:
    assert is_array_function(item) is takes


class Gaussian(nn.Module):
    action_space = None
    bases: Any = ()

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def compute(self, inputs: Any, role: str) -> Any:
        assert inputs["observations"] is inputs["states"]
        self.asked.append(role)
        mean = inputs["states"][:, :2]
        return (mean if role != "value" else mean.sum(dim=1, keepdim=True)), {"log_std": torch.tensor([0.5, 0.25])}

    def act(self) -> None:
        """Sample."""


def model_of(*mixins: str) -> Any:
    bases = [type(name, (), {}) for name in mixins]
    return type("Model", (*bases, Gaussian), {})()


@pytest.mark.parametrize(
    ("mixins", "roles", "asked"),
    [
        (("GaussianMixin",), ("action", "action_scale"), ["policy"]),
        (("MultivariateGaussianMixin",), ("action", "action_scale"), ["policy"]),
        (("CategoricalMixin",), ("action",), ["policy"]),
        (("MultiCategoricalMixin",), ("action",), ["policy"]),
        (("GaussianMixin", "DeterministicMixin"), ("action", "action_scale", "invariant"), ["policy", "value"]),
        (("CategoricalMixin", "DeterministicMixin"), ("action", "invariant"), ["policy", "value"]),
        (("DeterministicMixin",), None, [""]),
    ],
)
def test_a_model_of_skrl_is_read_by_its_mixins(mixins: Any, roles: Any, asked: Any) -> None:
    made = trainers.computing_part(model_of(*mixins))
    assert isinstance(made, trainers.ComputedModel)
    assert made.roles == roles
    outputs = made(X)
    assert made.structured_input.asked == asked
    torch.testing.assert_close(outputs[0], X[:, :2])
    kinds = list(roles or ("action",))
    assert len(outputs) == len(kinds)
    if "action_scale" in kinds:
        torch.testing.assert_close(outputs[1], torch.tensor([[0.5, 0.25]]).expand(4, 2))
    if "invariant" in kinds:
        torch.testing.assert_close(outputs[-1], X[:, :2].sum(dim=1, keepdim=True))


class Games(nn.Module):
    def __init__(self, **kind: Any) -> None:
        super().__init__()
        self.given: dict[str, Any] = {}

        def run(inputs: Any) -> Any:
            self.given.update(inputs)
            return inputs["obs"], inputs["obs"] + 1, "hidden"

        self.a2c_network = type("Net", (), {"__call__": staticmethod(run), **kind})()

    def norm_obs(self, observations: Any) -> Any:
        return observations / 2


@pytest.mark.parametrize(
    ("kind", "roles"),
    [
        ({"is_continuous": True}, ("action", "action_scale", "invariant")),
        ({"is_discrete": True}, ("action", "invariant")),
        ({"is_continuous": False, "is_discrete": False}, None),
        ({}, None),
    ],
)
def test_a_model_of_rl_games_is_read_on_normalised_observations_without_its_state(kind: Any, roles: Any) -> None:
    made = trainers.computing_part(Games(**kind))
    assert isinstance(made, trainers.NormalisedNetwork)
    assert made.roles == roles
    outputs = made(X)
    assert len(outputs) == 2
    torch.testing.assert_close(outputs[0], X / 2)
    assert made.structured_input.given["is_train"] is False
    assert (made.structured_input.given["prev_actions"], made.structured_input.given["rnn_states"]) == (None, None)


def test_other_networks_are_no_agents() -> None:
    assert trainers.computing_part(nn.Linear(1, 1)) is None
    half = nn.Linear(1, 1)
    half.compute = half.forward  # type: ignore[assignment]
    assert trainers.computing_part(half) is None
    half.act = half.forward  # type: ignore[assignment]
    assert trainers.computing_part(half) is None  # it names no action space
    half.action_space = None  # type: ignore[assignment]
    assert isinstance(trainers.computing_part(half), trainers.ComputedModel)
    half = nn.Linear(1, 1)
    half.a2c_network = None  # type: ignore[assignment]
    assert trainers.computing_part(half) is None


@pytest.mark.parametrize(
    ("groups", "latent", "joins"),
    [(["a", "b"], True, True), (("a",), True, True), ([], True, False), ("ab", True, False), (["a"], False, False)],
)
def test_named_groups_of_observations_are_joined(groups: Any, latent: bool, joins: bool) -> None:
    net: Any = nn.Linear(1, 1)
    net.obs_groups = groups
    if latent:
        net.get_latent = net.forward
    made = trainers.of_one_vector(net)
    assert isinstance(made, trainers.JoinedGroups) is joins
    assert (made is net) is not joins
    assert trainers.of_one_vector(nn.Linear(1, 1)).__class__ is nn.Linear


def actor_of(low: Any, high: Any, squash: bool = True, *, density: bool = False) -> Any:
    policy: Any = nn.Module()
    policy.squash_output = squash
    policy.action_space = spaces.Box(np.array(low, np.float32), np.array(high, np.float32))
    actor: Any = nn.Module()
    actor.mu, actor.features_extractor = nn.Identity(), "extractor"
    actor.extract_features = lambda observations, extractor: observations * (3.0 if extractor == "extractor" else 0.0)
    if density:
        actor.latent_pi = lambda features: features / 2
    policy.actor = actor
    return policy


@pytest.mark.parametrize(
    ("low", "high", "squash", "density"),
    [
        ([-1.0] * 3, [1.0] * 3, True, False),
        ([-2.0] * 3, [2.0] * 3, True, False),
        ([0.0, -1.0, -1.0], [2.0, 1.0, 3.0], True, True),
        ([0.0] * 3, [4.0] * 3, False, False),
    ],
)
def test_an_action_is_given_in_the_units_of_the_environment(low: Any, high: Any, squash: bool, density: bool) -> None:
    made = stable_baselines.deterministic_part(actor_of(low, high, squash, density=density))
    assert isinstance(made, stable_baselines.DeterministicActor)
    features = X.float() * 3
    plain = torch.tanh(features / 2) if density else features
    half, middle = (torch.tensor(np.subtract(high, low) / 2), torch.tensor(np.add(high, low) / 2))
    expected = plain * half + middle if squash else plain
    torch.testing.assert_close(made(X.float()), expected.float())
    assert made._scales is (squash and bool((np.subtract(high, low) != 2).any()))
    assert made._shifts is (squash and bool(np.add(high, low).any()))


def test_the_values_of_quantiles_are_their_means() -> None:
    policy: Any = nn.Module()
    policy.quantile_net = lambda observations: observations[:, :, None] * torch.tensor([1.0, 2.0])
    assert stable_baselines.deterministic_part(policy) is None
    policy.quantile_net_target = None
    made = stable_baselines.deterministic_part(policy)
    assert isinstance(made, stable_baselines.MeanQuantiles)
    torch.testing.assert_close(made(X.float()), X.float().mean(dim=1)[:, None] * torch.tensor([1.0, 2.0]))
    assert stable_baselines.deterministic_part(nn.Linear(1, 1)) is None
    half = actor_of([-1.0], [1.0])
    del half.squash_output
    assert stable_baselines.deterministic_part(half) is None


@pytest.mark.parametrize("kind", ["own", "shared", "linear"])
def test_a_recurrent_policy_sees_its_observation_three_times(kind: str) -> None:
    torch.manual_seed(0)
    policy: Any = nn.Module()
    policy.lstm_actor, policy.lstm_critic = nn.LSTM(3, 4), nn.LSTM(3, 4) if kind == "own" else None
    policy.shared_lstm, policy.critic = kind == "shared", nn.Linear(3, 4)
    policy.extract_features = lambda x: (x, 2 * x)
    policy.mlp_extractor = SimpleNamespace(forward_actor=lambda x: x + 1, forward_critic=lambda x: x - 1)
    policy.action_net, policy.value_net = nn.Linear(4, 2), nn.Linear(4, 1)
    made: Any = stable_baselines.deterministic_part(policy)
    assert isinstance(made, stable_baselines.RepeatedObservation)
    assert made.note.fields["steps"] == 3
    x = X.float()

    def last(lstm: Any, features: torch.Tensor) -> torch.Tensor:
        held = None
        for _ in range(3):
            out, held = lstm(features[None], held)
        return out[0]

    pi = last(policy.lstm_actor, x)
    of_critic = {"own": lambda: last(policy.lstm_critic, 2 * x), "shared": lambda: pi,
                 "linear": lambda: policy.critic(2 * x)}[kind]()  # fmt: skip
    actions, values = made(x)
    torch.testing.assert_close(actions, policy.action_net(pi + 1))
    torch.testing.assert_close(values, policy.value_net(of_critic - 1))


def test_a_flat_vector_is_split_into_the_leaves_in_their_order() -> None:
    seen: list[Any] = []

    class Reads(nn.Module):
        def forward(self, leaves: Any) -> Any:
            seen.append(leaves)
            return X

    flat = torch.arange(16.0).reshape(2, 8)
    FlatInput(Reads(), {"image": (2, 3), "speed": (2,)})(flat)
    assert list(seen[0]) == ["image", "speed"]
    torch.testing.assert_close(seen[0]["image"], flat[:, :6].reshape(2, 2, 3))
    torch.testing.assert_close(seen[0]["speed"], flat[:, 6:])
    FlatInput(Reads(), {0: (6,), 1: (2,)})(flat)
    assert isinstance(seen[1], tuple)
    torch.testing.assert_close(seen[1][1], flat[:, 6:])
    FlatInput(Reads(), {"kind": (6,), "speed": (2,)}, {"kind": None})(flat)
    assert not seen[2]["kind"].is_floating_point()
    assert seen[2]["speed"].is_floating_point()


class Sums(nn.Module):
    """A network of named leaves in its own dtype, or of something else than a dictionary."""

    def __init__(self, plain: bool, dtype: Any = torch.float32) -> None:
        super().__init__()
        self.weight, self.plain = nn.Parameter(torch.ones(1, dtype=dtype)), plain

    def forward(self, leaves: Any) -> Any:
        if not self.plain or {leaf.dtype for leaf in leaves.values()} != {self.weight.dtype}:
            raise TypeError("another form")
        return leaves["a"].sum(dim=1)


def test_a_network_takes_a_tensordict_if_it_names_keys_or_refuses_a_dictionary(monkeypatch: pytest.MonkeyPatch) -> None:
    shapes = {"a": (2,)}
    monkeypatch.setitem(sys.modules, "tensordict", SimpleNamespace())  # type: ignore[arg-type]
    for dtype in (torch.float32, torch.float64):
        assert not takes_tensordict(Sums(True, dtype), shapes)
        assert takes_tensordict(Sums(False, dtype), shapes)
    named: Any = Sums(True)
    named.in_keys = ["a"]
    assert takes_tensordict(named, shapes)
    monkeypatch.delitem(sys.modules, "tensordict")
    assert not takes_tensordict(named, shapes)


@pytest.mark.parametrize(
    ("given", "shapes"),
    [((1, 9, 9), None), ([3], None), ((), None), ({"a": [2, 3]}, {"a": (2, 3)}), ([(2,), [3, 4]], {0: (2,), 1: (3, 4)}),
     (OrderedDict(b=(1,), a=(2,)), {"b": (1,), "a": (2,)}), (5, None), ([(2,), 3], None)],
)  # fmt: skip
def test_shapes_of_several_leaves_are_told_from_one_shape(given: Any, shapes: Any) -> None:
    found = shapes_of(given)
    assert found == shapes
    assert list(found or ()) == list(shapes or ())


def test_leaves_of_a_space_have_fixed_shapes() -> None:
    box, gear = spaces.Box(-1, 1, (2, 3)), spaces.Discrete(4)
    assert leaf_shapes(spaces.Tuple([box, gear])) == {0: (2, 3), 1: (4,)}
    assert leaf_shapes(spaces.Dict(gear=gear, at=box)) == {"gear": (4,), "at": (2, 3)}
    assert leaf_shapes(box) is None
    assert leaf_shapes(spaces.Tuple([spaces.Sequence(box)])) is None
    assert leaf_shapes(None) is None


def test_a_claim_on_leaves_is_one_on_their_flat_vector() -> None:
    flip = Symmetry("flip", catalog.cyclic(2), [{"at": [[-1, 0], [0, 1]]}], [[1, 0]])
    claim = flat_claim(flip, {"gear": (3,), "at": (2,)})
    assert claim.shape == (5,)
    np.testing.assert_array_equal(claim.apply(0, np.arange(1.0, 6.0)[None]), [[1.0, 2.0, 3.0, -4.0, 5.0]])
    with pytest.raises(SpecError, match=r"expected leaves of \['gear'\], got \['at'\]"):
        flat_claim(flip, {"gear": (3,)})
    plain = Symmetry("flip", catalog.cyclic(2), [[-1]], [[1, 0]])
    with pytest.raises(SpecError, match="expected a mapping of entries"):
        flat_claim(plain, {"gear": (1,)})
    still: Any = SimpleNamespace(observation=[IdentityEntry()])
    np.testing.assert_array_equal(flat_claim(still, {"gear": (2,)}).apply(0, np.ones((1, 2))), [[1.0, 1.0]])


class Slotted(nn.Module):
    __slots__ = ("kept", "missing")

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))
        self.extra = [1]
        object.__setattr__(self, "kept", [2])

    def __deepcopy__(self, memo: Any) -> Any:
        return Slotted()


def test_a_copy_has_every_attribute_whatever_its_class_says_of_copies() -> None:
    net = nn.Sequential(Slotted(), nn.Linear(1, 1))
    net[0].extra.append(5)
    net[0].kept.append(7)
    hook = Slotted.__deepcopy__
    with copied_as_they_are(net):
        made = copy.deepcopy(net)
        assert Slotted.__deepcopy__ is not hook
    assert Slotted.__deepcopy__ is hook
    assert (made[0].extra, made[0].kept) == ([1, 5], [2, 7])
    assert made[0].extra is not net[0].extra
    assert made[0].kept is not net[0].kept
    assert not hasattr(made[0], "missing")
    assert slots_of(Slotted) == ["kept", "missing"]
    assert slots_of(type("One", (), {"__slots__": "single"})) == ["single"]
    assert slots_of(type("Both", (), {"__slots__": ("a", "__dict__", "__weakref__")})) == ["a"]


@pytest.mark.parametrize(
    ("name", "args", "kwargs", "writes"),
    [
        ("add_", (torch.ones(1, dtype=torch.float32), 1), {}, True),
        ("add_", (torch.ones(1, dtype=torch.float64), 1), {}, False),
        ("add_", (torch.ones(1, dtype=torch.int64), 1), {}, False),
        ("__iadd__", (torch.ones(1, dtype=torch.float16), 1), {}, True),
        ("__setitem__", (torch.ones(1, dtype=torch.float32), 0, 1), {}, True),
        ("add", (torch.ones(1, dtype=torch.float32), 1), {}, False),
        ("__getitem__", (torch.ones(1, dtype=torch.float32), 0), {}, False),
        ("_add_", (torch.ones(1, dtype=torch.float32),), {}, False),
        ("add", (torch.ones(1),), {"out": torch.ones(1, dtype=torch.float32)}, True),
        ("add", (torch.ones(1),), {"out": torch.ones(1, dtype=torch.float64)}, False),
        ("add_", (), {}, False),
        ("add_", (3.0,), {}, False),
    ],
)
def test_a_write_into_a_narrower_tensor_is_lost(name: str, args: Any, kwargs: Any, writes: bool) -> None:
    assert tensor_reads.writes_single_precision(name, args, kwargs) is writes
