"""Mirror functions on tables: what they are given, which answers are refused, and how values become tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from symcheck.errors import SpecError
from symcheck.mirror_functions.batched_function import (
    BatchedFunction,
    accepts,
    choose_library,
    close,
    columns_where,
    precise,
)
from symcheck.mirror_functions.batched_values import Layout, Leaf

INF = np.inf


def leaf(
    *shape: int,
    start: int = 0,
    path: Any = (),
    low: float = -INF,
    high: float = INF,
    dtype: Any = np.float32,
    first: int | None = None,
) -> Leaf:
    size = int(np.prod(shape))
    return Leaf(path, shape, start, np.dtype(dtype), np.full(size, low), np.full(size, high), first)


OBSERVATION, ACTION = Layout("observation", (leaf(3),)), Layout("action", (leaf(2),))
X, A = np.arange(12.0).reshape(4, 3), np.arange(8.0).reshape(4, 2)


def mirror(env: Any, obs: Any, actions: Any) -> Any:
    """The batch, and the negative batch."""
    return tuple(None if half is None else torch.cat([half, -half]) for half in (obs, actions))


def function_of(function: Any, **more: Any) -> BatchedFunction:
    return BatchedFunction(function, "env", OBSERVATION, ACTION, 2, **more)


def test_the_images_come_block_by_block_and_a_half_alone_has_its_own() -> None:
    observed, acted = function_of(mirror).blocks(X, A)
    assert observed is not None
    assert acted is not None
    np.testing.assert_array_equal(observed, np.stack([X, -X]))
    np.testing.assert_array_equal(acted, np.stack([A, -A]))
    assert function_of(mirror).blocks(None, A)[0] is None
    assert function_of(mirror).blocks(X, None)[1] is None


def test_parameters_in_another_order_are_given_by_name_with_the_extra_ones() -> None:
    seen: list[Any] = []

    def other(obs: Any, actions: Any, env: Any, scale: float = 0.0) -> Any:
        seen.append((env, scale, obs.dtype))
        return mirror(env, obs, actions)

    function_of(other, extra={"scale": 3.0}, floating="float64").blocks(X, A)
    assert seen == [("env", 3.0, torch.float64)]

    def usual(environment: Any, states: Any, forces: Any, scale: float = 0.0) -> Any:
        seen.append((environment, scale, states.dtype))
        return mirror(environment, states, forces)

    function_of(usual, extra={"scale": 2.0}).blocks(X, A)
    assert seen[1] == ("env", 2.0, torch.float32)
    assert accepts(other, "scale")
    assert not accepts(usual, "obs")
    assert not accepts(dict, "obs")


def changing(env: Any, obs: Any, actions: Any) -> Any:
    obs[:, 1] *= -1
    return mirror(env, obs, actions)


WRONG: list[tuple[Any, str]] = [
    (lambda env, obs, actions: obs, r"to return \(observations, actions\), got Tensor\."),
    (lambda env, obs, actions: (obs, actions, obs), r"got tuple of 3\."),
    (
        lambda env, obs, actions: (None, mirror(env, obs, actions)[1]),
        "observations were given, so the function must return observations",
    ),
    (
        lambda env, obs, actions: (obs, torch.cat([actions, actions])),
        r"expected 2 blocks of observations, .* got 1 blocks",
    ),
    (lambda env, obs, actions: (torch.cat([obs, obs[:1]]), actions), "got 5 rows for a batch of 4"),
    (
        lambda env, obs, actions: (torch.cat([obs, obs / 0.0]), mirror(env, obs, actions)[1]),
        "returned NaN or infinity in",
    ),
    (changing, r"changing changes its input in place: .* differ after the call"),
    (lambda env, obs, actions: 1 / 0, r"raised ZeroDivisionError: .* \(given torch values, float32\)"),
]


@pytest.mark.parametrize(("function", "message"), WRONG)
def test_answers_of_another_form_are_refused_with_what_was_expected(function: Any, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        function_of(function).blocks(X, A)


def test_a_missing_half_is_named_if_the_function_raises_or_returns_it_anyway() -> None:
    def both(env: Any, obs: Any, actions: Any) -> Any:
        return torch.cat([obs, -obs]), torch.cat([actions, -actions])

    with pytest.raises(SpecError, match="when actions is None"):
        function_of(both).blocks(X, None)
    with pytest.raises(SpecError, match="when obs is None"):
        function_of(both).blocks(None, A)

    def returned(env: Any, obs: Any, actions: Any) -> Any:
        return torch.cat([obs, -obs]), torch.zeros(8, 2)

    with pytest.raises(
        SpecError, match="actions were not given, so the function must return None for them, but it returned Tensor"
    ):
        function_of(returned).blocks(X, None)


def test_the_first_kind_of_value_that_is_accepted_is_used() -> None:
    def with_numpy(env: Any, obs: Any, actions: Any) -> Any:
        if not isinstance(obs, np.ndarray):
            raise TypeError("expected arrays")
        return np.concatenate([obs, -obs]), np.concatenate([actions, -actions])

    assert choose_library(function_of(mirror), X, A).library == "torch"
    assert choose_library(function_of(with_numpy), X, A).library == "numpy"
    # a wrong result is a result: the kind of value was accepted
    assert choose_library(function_of(lambda env, obs, actions: obs), X, A).library == "torch"
    with pytest.raises(SpecError, match=r"raised ZeroDivisionError|tensordict"):
        choose_library(function_of(lambda env, obs, actions: 1 / 0), X, A)


def test_float64_is_used_where_it_is_accepted_and_changes_nothing() -> None:
    assert precise(function_of(mirror), X, A).floating == "float64"

    def single(env: Any, obs: Any, actions: Any) -> Any:
        if obs.dtype == torch.float64:
            raise TypeError("float32 only")
        return mirror(env, obs, actions)

    def other(env: Any, obs: Any, actions: Any) -> Any:
        return mirror(env, obs + (1.0 if obs.dtype == torch.float64 else 0.0), actions)

    assert precise(function_of(single), X, A).floating == "float32"
    assert precise(function_of(other), X, A).floating == "float32"
    assert precise(function_of(mirror), X, None).floating == "float64"


def test_columns_are_close_up_to_their_size_and_that_of_the_widest() -> None:
    a = np.array([[1.0, 100.0], [-2.0, 50.0]])
    for column, size in ((0, 2.0), (1, 100.0)):
        limit = 1e-5 * size + 4e-6 * 100.0
        for factor, same in ((0.99, True), (1.01, False)):
            b = a.copy()
            b[0, column] += factor * limit
            assert close(a, b)[0, column] == same
            assert close(b, a).all() == same
    assert columns_where(np.array([[[True, False, False]], [[False, False, True]]])).tolist() == [True, False, True]


def test_a_table_becomes_nested_arrays_and_comes_back() -> None:
    layout = Layout(
        "observation",
        (
            leaf(2, path=("policy", "joints")),
            leaf(1, 2, start=2, path=("policy", "picture")),
            leaf(1, start=4, path=("step",), dtype=np.int64),
        ),
    )
    assert (layout.width, layout.is_one_array, OBSERVATION.is_one_array) == (5, False, True)
    table = np.arange(15.0).reshape(3, 5)
    made: Any = layout.arrays(table, "float32")
    assert (made["policy"]["picture"].shape, made["policy"]["joints"].dtype, made["step"].dtype) == (
        (3, 1, 2),
        np.float32,
        np.int64,
    )
    np.testing.assert_array_equal(layout.table(made), table)
    assert layout.arrays(table, "float64", all_floating=True)["step"].dtype == np.float64
    assert [layout.describe(each) for each in layout.leaves][1] == "observation['policy']['picture']"
    with pytest.raises(SpecError, match=r"expected observation\['step'\] of shape \(rows, 1\), got \(3, 2\)"):
        layout.table({**made, "step": np.zeros((3, 2))})
    with pytest.raises(SpecError, match=r"expected observations of equal length, got \[2, 3\] rows"):
        layout.table({**made, "step": np.zeros((2, 1))})


def test_samples_lie_between_bounds_and_are_normal_without() -> None:
    layout = Layout(
        "observation",
        (
            leaf(1, low=-2.0, high=3.0),
            leaf(1, start=1),
            leaf(1, start=2, low=5.0),
            leaf(1, start=3, low=-2e4, high=2e4),
            leaf(1, start=4, low=0, high=4, dtype=np.int64, first=0),
            leaf(1, start=5, low=-1e4, high=1e4),
        ),
    )
    x = layout.sample(np.random.default_rng(0), 4000)
    assert (x[:, 0].min(), x[:, 0].max()) == (pytest.approx(-2, abs=0.02), pytest.approx(3, abs=0.02))
    assert x[:, 1].std() == pytest.approx(1.0, rel=0.05)
    assert x[:, 2].min() >= 5.0
    assert x[:, 2].mean() == pytest.approx(5.0 + np.sqrt(2 / np.pi), rel=0.05)
    assert x[:, 3].std() == pytest.approx(1.0, rel=0.05)  # bounds beyond 1e4 are none
    assert set(x[:, 4]) == {0.0, 1.0, 2.0, 3.0, 4.0}
    assert np.abs(x[:, 5]).max() > 9e3
    assert [each.is_vector for each in layout.leaves] == [True] * 4 + [False, True]
