"""Corrected claims, repeated steps and extreme states alone: against brute force, and limits from both sides."""

from __future__ import annotations

import itertools
import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from symcheck.engine.environments.cases.pool import _rim_index
from symcheck.engine.environments.causes.corrections import _action_alterations, _order_of_action, _sign_alterations
from symcheck.engine.environments.controls.determinism import _compare_steps
from symcheck.spaces.coordinates import Coordinates


class Turning:
    """A claim for two numbers: each letter turns actions and observations by a full turn over `order`."""

    def __init__(self, order: int, action_space: Any) -> None:
        self.order, self.action_space = order, action_space

    def _turned(self, word: tuple[int, ...], value: Any) -> Any:
        angle = 2 * np.pi * len(word) / self.order
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        return turn @ np.asarray(value)

    def observation(self, word: tuple[int, ...], obs: Any) -> Any:
        return self._turned(word, obs)

    def action(self, word: tuple[int, ...], action: Any, obs: Any) -> Any:
        if isinstance(self.action_space, spaces.Discrete):
            start, n = int(self.action_space.start), int(self.action_space.n)
            return type(action)((int(action) - start + len(word)) % n + start)
        return self._turned(word, action)


def case_of(bound: Any, action: Any, *, held: Any = None, kind: str = "none") -> tuple[Any, Any]:
    """The pairs of an environment that shows two numbers, and one case of the first generator."""
    names = ("x", "y")
    codec = SimpleNamespace(coordinates=SimpleNamespace(names=names))
    stepper = SimpleNamespace(action_codec=SimpleNamespace(flatten=lambda a: np.ravel(a).astype(float)), codec=codec)
    pairs = SimpleNamespace(bound=bound, stepper=stepper, placement=SimpleNamespace(kind=kind))
    situation = SimpleNamespace(obs=np.array([0.3, -0.7]), state=held)
    return pairs, SimpleNamespace(word=(0,), action=action, situation=situation)


@pytest.mark.parametrize("order", [*range(1, 8), 24, 25])
def test_the_order_of_an_action_map_is_counted_up_to_24(order: int) -> None:
    pairs, case = case_of(Turning(order, spaces.Box(-1, 1, (2,))), np.array([0.2, 0.9]))
    assert _order_of_action(pairs, case) == (order if order <= 24 else 0)


@pytest.mark.parametrize(("n", "start"), [(2, 0), (3, 5), (4, 0), (5, 0)])
def test_discrete_actions_are_left_inverted_and_permuted_in_every_way_if_there_are_four_or_fewer(
    n: int, start: int
) -> None:
    bound = Turning(4, spaces.Discrete(n, start=start))
    tried = []
    for action in range(start, start + n):
        pairs, case = case_of(bound, np.int64(action))
        tried.append([(cause, bound_to.action((0,), case.action, None)) for cause, bound_to in
                      _action_alterations(pairs, case)])  # fmt: skip
    codes = [cause.code for cause, _ in tried[0]]
    permuted = math.factorial(n) - 1 if n <= 4 else 0
    assert codes == ["SYM010", *["SYM011"] * (n > 2), *["SYM012"] * permuted]
    images = [tuple(int(row[k][1]) - start for row in tried) for k in range(len(codes))]
    assert images[0] == tuple(range(n))
    if n > 2:
        assert images[1] == tuple((k - 1) % n for k in range(n))
    if permuted:
        assert images[-permuted:] == list(itertools.permutations(range(n)))[1:]
        assert [tuple(cause.fields["permutation"]) for cause, _ in tried[0][-permuted:]] == images[-permuted:]


def test_actions_of_a_box_are_left_inverted_and_negated_whole_and_one_by_one() -> None:
    action, bound = np.array([0.2, 0.9]), Turning(3, spaces.Box(-1, 1, (2,)))
    pairs, case = case_of(bound, action)
    image = bound.action((0,), action, None)
    expected = [("SYM010", None, action), ("SYM011", None, bound.action((0, 0), action, None)),
                ("SYM013", None, -image), ("SYM013", "action[0]", image * [-1, 1]),
                ("SYM013", "action[1]", image * [1, -1])]  # fmt: skip
    tried = list(_action_alterations(pairs, case))
    assert [(cause.code, cause.fields.get("coordinate")) for cause, _ in tried] == [each[:2] for each in expected]
    for (_, altered), (*_, wanted) in zip(tried, expected, strict=True):
        np.testing.assert_allclose(altered.action((0,), action, None), wanted, atol=1e-12)
        np.testing.assert_allclose(altered.action((1,), action, None), bound.action((1,), action, None))
        np.testing.assert_allclose(altered.observation((0,), action), bound.observation((0,), action))


@pytest.mark.parametrize(("held", "kind", "moves_state"), [
    (np.array([1.0, 2.0]), "map", True), (np.array([1.0, 2.0]), "set", False), (np.ones(3), "map", False)])  # fmt: skip
def test_one_sign_of_observations_is_changed_at_a_time_and_of_states_that_are_mapped_like_them(
    held: Any, kind: str, moves_state: bool
) -> None:
    bound = Turning(2, spaces.Box(-1, 1, (2,)))
    pairs, case = case_of(bound, np.zeros(2), held=held, kind=kind)
    row = np.array([2.0, 5.0])
    tried = list(_sign_alterations(pairs, case))
    assert [(cause.code, cause.fields["sign"], cause.fields["coordinate"]) for cause, _ in tried] == [
        ("SYM014", "+1", "x"), ("SYM014", "+1", "y")]  # fmt: skip
    for (_, altered), wanted in zip(tried, ([2.0, -5.0], [-2.0, 5.0]), strict=True):
        np.testing.assert_allclose(altered.observation((0,), row), wanted, atol=1e-12)
        if moves_state:
            np.testing.assert_allclose(altered.state((0,), row), wanted, atol=1e-12)
        else:
            assert not hasattr(bound, "state")
            with pytest.raises(AttributeError):
                altered.state((0,), row)
    # rotations by other angles mix coordinates
    assert not list(_sign_alterations(*case_of(Turning(8, spaces.Box(-1, 1, (2,))), np.zeros(2))))


def _step(shown: Any, reward: float = 0.0, ended: bool = False) -> Any:
    return SimpleNamespace(flat=np.asarray(shown, float), reward=reward, terminated=ended, truncated=False)


@pytest.mark.parametrize(("single", "allowed"), [(True, 1e-5), (False, 1e-9)])
def test_repeated_steps_are_alike_up_to_the_noise_of_solvers_and_whole_numbers_exactly(
    single: bool, allowed: float
) -> None:
    epsilon = np.array([2.0**-24 if single else 2.0**-53, 2.0**-53, 0.0])
    zeros, bounds = np.zeros(3), np.full(3, np.inf)
    codec = SimpleNamespace(coordinates=Coordinates(("x", "y", "n"), epsilon, zeros, -bounds, bounds))
    stepper: Any = SimpleNamespace(codec=codec)
    first = [_step([1.0, 2.0, 3.0], 4.0), _step([1.0, 2.0, 3.0], 4.0)]
    for size, count in ((0.1, 0), (1e4, 1)):
        off = size * allowed
        for place in range(2):
            shown = np.array([1.0, 2.0, 3.0])
            shown[place] += off
            apart, largest = _compare_steps(stepper, first, [first[0], _step(shown, 4.0)])
            assert apart == count
            if not count:
                assert largest["transition"].tolist() == [pytest.approx(off, rel=1e-3)]
                assert largest["reward"].tolist() == [0.0]
        apart, largest = _compare_steps(stepper, first, [_step([1.0, 2.0, 3.0], 4.0 + off), first[1]])
        assert apart == count
        if not count:
            assert largest["reward"].tolist() == [pytest.approx(off, rel=1e-3)]
    assert _compare_steps(stepper, first, [first[0], _step([1.0, 2.0, 3.0 + 1e-12], 4.0)])[0] == 1
    assert _compare_steps(stepper, first, [first[0], _step([1.0, 2.0, 3.0], 4.0, True)])[0] == 1
    both = [_step([9.0, 2.0, 3.0], 4.0), _step([1.0, 2.0, 3.0], 9.0)]
    assert _compare_steps(stepper, first, both) == (2, {})


def test_exploration_goes_on_from_extreme_states_in_every_direction_whatever_their_units() -> None:
    rng = np.random.default_rng(0)
    inner, corners = rng.uniform(-0.3, 0.3, (200, 2)), np.array(list(itertools.product((-1.0, 1.0), repeat=2)))
    states = np.concatenate([inner, corners]) * [1e-3, 1e4]
    picked = np.array([_rim_index(states, np.random.default_rng(seed)) for seed in range(400)])
    shares = np.bincount(picked[picked >= 200] - 200, minlength=4) / len(picked)
    assert shares.sum() > 0.6
    assert shares.min() > 0.1
    still = np.column_stack([states[:, 0], np.ones(len(states))])  # a coordinate that never moves
    assert np.mean([abs(_rim_index(still, np.random.default_rng(seed)) - 201.5) < 2 for seed in range(200)]) > 0.5
