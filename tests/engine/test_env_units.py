"""Parts of the environment checks by themselves: against closed forms, and limits from both sides."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from symcheck.engine.environments.cases import minimise as shrinking
from symcheck.engine.environments.cases.columns import compared_columns, indicators, on_columns
from symcheck.engine.environments.cases.edges import one_sided_tie
from symcheck.engine.environments.cases.exploring import explore_together
from symcheck.engine.environments.cases.own_cuts import own_cuts
from symcheck.engine.environments.cases.pairs import Comparison
from symcheck.engine.environments.cases.sizes import approximate_size, per_coordinate
from symcheck.engine.environments.cases.tolerance import Tolerance
from symcheck.engine.environments.causes.subgroups import in_words
from symcheck.engine.environments.methods import distribution_gap, first_violation
from symcheck.engine.environments.methods.value_gap import TOTAL_VARIATION, WASSERSTEIN
from symcheck.engine.statistics import largest_fraction
from symcheck.entries.forms import IdentityEntry
from symcheck.groups import catalog
from symcheck.groups.subgroups import holding, may_be_partial
from symcheck.spaces.coordinates import Coordinates
from symcheck.spaces.values import same_value


def coordinates(dim: int, *, epsilon: float = 2.0**-24, period: float = 0.0) -> Coordinates:
    ones = np.ones(dim)
    return Coordinates(
        tuple(f"x[{j}]" for j in range(dim)), epsilon * ones, period * ones, -np.inf * ones, np.inf * ones
    )


def comparison(expected: Any, actual: Any, part: Any = "transition", **more: Any) -> Comparison:
    left, right = np.atleast_2d(np.asarray(expected, float)), np.atleast_2d(np.asarray(actual, float))
    return Comparison(part, coordinates(left.shape[1], **more), left, right)


NAN = float("nan")
SAME: list[tuple[Any, Any, bool]] = [
    (1, 1.0, True), (1, 2, False), (NAN, NAN, True), (NAN, 0.0, False), (np.zeros(2), [0.0, -0.0], True),
    (np.zeros(2), np.zeros(3), False), (np.zeros((1, 2)), np.zeros(2), True), ("a", "a", True), ("a", "b", False),
    ("a", 1, False), ((1, "a"), [1, "a"], True), ((1, "a"), (1, "a", 2), False), ((1, "a"), (1, "b"), False),
    ({"x": 1}, {"x": 1.0}, True), ({"x": 1}, {"y": 1}, False), ({"x": 1, "y": 2}, {"x": 1, "y": 3}, False),
    ({"x": 1}, {"x": 1, "y": 2}, False), ((np.ones(2), np.zeros(3)), (np.ones(2), np.zeros(3)), True),
    ((np.ones(2), np.zeros(3)), (np.ones(2), np.ones(3)), False), (True, 1, True), (object(), object(), True),
]  # fmt: skip


@pytest.mark.parametrize(("value", "image", "same"), SAME)
def test_values_are_the_same_by_their_numbers_and_names(value: Any, image: Any, same: bool) -> None:
    assert same_value(value, image) is same
    assert same_value(image, value) is same


def test_tensors_are_compared_by_their_numbers() -> None:
    torch = pytest.importorskip("torch")
    assert same_value(torch.tensor([1.0, 2.0]), np.array([1.0, 2.0]))
    assert not same_value(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 3.0]))


def test_numbers_with_fewer_digits_are_simpler_and_then_those_near_one_and_positive() -> None:
    ordered = [1.0, -1.0, 0.0, 2.0, 3.0, -3.0, 0.5, 10.0, 0.25, -0.25, 0.123]
    keys = [shrinking._complexity(value) for value in ordered]
    assert keys[0] < keys[1]
    assert [key[0] for key in keys] == [len(repr(abs(value))) for value in ordered]
    assert keys[4] < keys[5]
    made = [vector.tolist() for vector in shrinking._simpler_vectors(np.array([0.0, 1.2345, -1.0]))]
    assert made[:2] == [[0.0, 0.0, -1.0], [0.0, 1.2345, 0.0]]
    assert [0.0, 1.234, -1.0] in made or [0.0, 1.235, -1.0] in made
    assert [0.0, 1.2345, 1.0] in made
    assert [0.0, 1.2345, -0.5] not in made
    assert not any(vector[0] for vector in made)
    assert list(shrinking._simpler_vectors(np.array([1.0]))) == [np.array([0.0])]


def _pairs_of_numbers() -> Any:
    """Cases whose state is a vector in a box, with whole-number actions from 0 to 9."""
    access = SimpleNamespace(box=True, ended=lambda state: False)

    def at(state: Any, origin: str) -> Any:
        return SimpleNamespace(state=state, obs=state, origin=origin)

    def cases(words: Any, situations: Any, actions: Any) -> list[Any]:
        return [SimpleNamespace(word=words[0], situation=situations[0], action=actions[0])]

    space = SimpleNamespace(contains=lambda action: 0 <= action <= 9)
    codec = SimpleNamespace(flatten=lambda x: np.atleast_1d(np.asarray(x, float)))
    stepper = SimpleNamespace(codec=codec, action_codec=codec)
    placement = SimpleNamespace(access=access, at=at)
    return SimpleNamespace(placement=placement, cases=cases, bound=SimpleNamespace(action_space=space), stepper=stepper)


def test_a_counterexample_shrinks_to_the_simplest_that_fails_within_400_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shrinking, "find_excess", lambda obs, codec: None)
    pairs, asked = _pairs_of_numbers(), []
    first = pairs.cases(["g"], [pairs.placement.at(np.array([3.75, -2.123456, 7.0]), "start")], [7])[0]

    def fails(case: Any) -> bool:
        asked.append(case)
        return bool(case.action >= 3 and case.situation.state[1] < -1.5)

    least = shrinking.minimise(pairs, first, fails)
    assert (least.action, least.situation.state.tolist()) == (3, [0.0, -2.0, 0.0])
    asked.clear()
    assert shrinking.minimise(pairs, first, lambda case: bool(asked.append(case))) is first
    assert 20 < len(asked) < 400
    many = pairs.cases(["g"], [pairs.placement.at(np.full(200, 0.123456), "start")], [0])[0]
    asked.clear()
    shrinking.minimise(pairs, many, lambda case: bool(asked.append(case)))
    assert len(asked) == 399


@pytest.mark.parametrize("value", [0.3, -0.04, 0.97, 12.345, 1e-7])
def test_a_coordinate_is_set_to_zero_once_and_otherwise_to_simpler_numbers(value: float) -> None:
    tried = [float(vector[1]) for vector in shrinking._simpler_vectors(np.array([0.0, value, 7.0])) if vector[2] == 7.0]
    assert tried.count(0.0) == 1
    assert tried[0] == 0.0
    assert all(shrinking._complexity(other) < shrinking._complexity(value) for other in tried[1:])
    assert value not in tried


def test_the_simplest_case_has_the_fewest_numbers_and_then_the_smallest() -> None:
    pairs = _pairs_of_numbers()

    def case(state: list[float], action: float) -> Any:
        return SimpleNamespace(situation=SimpleNamespace(obs=state), action=action)

    cases = [case([0, 1, 1], 0), case([0, 0, 9], 5), case([0, -8, 0], 5), case([-8, 0, 0], -4)]
    assert shrinking.simplest(pairs, cases) is cases[3]
    assert shrinking.simplest(pairs, cases[:3]) is cases[2]
    assert shrinking.simplest(pairs, cases[:2]) is cases[1]


def test_angles_are_compared_as_cosine_and_sine_and_few_whole_numbers_by_indicators() -> None:
    turned = on_columns(comparison([[0.5, 1.0, 2.0]], [[1.0, 2.0, 3.0]], period=2 * np.pi), [2, 0])
    np.testing.assert_allclose(np.sort(turned.expected[0]), np.sort([np.cos(2), np.sin(2), np.cos(0.5), np.sin(0.5)]))
    plain = on_columns(comparison([[0.5, 1.0, 2.0]], [[1.0, 2.0, 3.0]]), [2, 0])
    assert (plain.coordinates.names, plain.expected.tolist(), plain.actual.tolist()) == (
        ("x[2]", "x[0]"), [[2.0, 0.5]], [[3.0, 1.0]],
    )  # fmt: skip
    rng = np.random.default_rng(0)
    whole = comparison(rng.integers(0, 3, (40, 1)), rng.integers(0, 3, (40, 1)), epsilon=0.0)
    told = indicators(whole)
    assert told.coordinates.dim > 1
    assert told.expected.shape == told.actual.shape == (40, told.coordinates.dim)
    assert np.array_equal(told.expected[:, :1], whole.expected)
    assert set(np.unique(told.expected[:, 1:])) <= {0.0, 1.0}
    assert indicators(plain) is plain


def _bench(shown: int, *, inner: Any = None, kind: str = "state") -> Any:
    codec = SimpleNamespace(coordinates=SimpleNamespace(dim=shown))
    placement = SimpleNamespace(inner=inner, kind=kind)
    return SimpleNamespace(pairs=SimpleNamespace(stepper=SimpleNamespace(codec=codec), placement=placement))


def test_up_to_512_coordinates_are_compared_and_of_more_those_that_vary() -> None:
    rng = np.random.default_rng(0)
    small = comparison(rng.normal(size=(3, 512)), rng.normal(size=(3, 512)))
    assert compared_columns(_bench(512), small) == list(range(512))
    wide = rng.normal(size=(3, 1026))
    wide[:, 1::2] = 4.0
    assert compared_columns(_bench(1026), comparison(wide, wide)) == list(range(0, 1026, 4))
    assert compared_columns(_bench(600), comparison(np.ones((3, 600)), np.ones((3, 600)))) == [0]
    both = comparison(np.ones((3, 6)), np.ones((3, 6)))
    assert compared_columns(_bench(4), both) == [4, 5, 0, 1, 2, 3]
    assert compared_columns(_bench(4, inner=SimpleNamespace(shown=1)), both) == [0, 1, 2, 3]
    assert compared_columns(_bench(4, inner=SimpleNamespace(shown=None)), both) == [4, 5, 0, 1, 2, 3]
    assert compared_columns(_bench(4, inner=SimpleNamespace(shown=None), kind="observation"), both) == [0, 1, 2, 3]
    rewards = comparison(np.ones((3, 1)), np.ones((3, 1)), part="reward")
    assert compared_columns(_bench(4), rewards) == [0]


@pytest.mark.parametrize(("agreeing", "follow"), [(0.9, True), (0.85, False)])
def test_truncation_is_compared_where_nine_of_ten_recur_of_either_kind(agreeing: float, follow: bool) -> None:
    def visit(truncated: bool, again: bool, origin: str = "rollout", terminated: bool = False) -> Any:
        step = SimpleNamespace(truncated=truncated, terminated=terminated)
        return SimpleNamespace(step=step, action=0, situation=SimpleNamespace(state=again, origin=origin))

    recur = round(20 * agreeing)
    for worse in (True, False):
        visits = [visit(True, not worse or k < recur) for k in range(20)]
        visits += [visit(False, worse is False and k >= recur) for k in range(20)]
        stepper = SimpleNamespace(batched=False, outcome=lambda state, action: SimpleNamespace(truncated=state))
        pool = SimpleNamespace(visits=visits)
        cuts = own_cuts(stepper, pool, None, np.random.default_rng(0))  # type: ignore[arg-type]
        assert (len(cuts.cut), len(cuts.going)) == (20, 20)
        assert cuts.follow_states is follow
        assert cuts.note.code == ("own_cuts_compared" if follow else "own_cuts_not_compared")
    limited = [visit(True, True, "start"), visit(False, False, "start"), *(visit(True, True) for _ in range(3))]
    found = own_cuts(stepper, SimpleNamespace(visits=limited), 4, np.random.default_rng(0))  # type: ignore[arg-type]
    assert (len(found.cut), len(found.going)) == (3, 1)  # the fourth step is that of the time limit
    assert own_cuts(stepper, SimpleNamespace(visits=limited[:1]), None, np.random.default_rng(0)) is None  # type: ignore[arg-type]


def test_exploration_takes_the_steps_it_was_given_in_runs_of_at_most_twelve() -> None:
    class Line:
        """Counts steps from the state that was set."""

        env = SimpleNamespace(action_space=SimpleNamespace(sample=lambda: 1))
        codec = SimpleNamespace(flatten=lambda obs: np.array([float(obs)]))

        def steps_from(self, states: list[int], actions: list[int]) -> list[Any]:
            return [
                SimpleNamespace(obs=s + a, state=s + a, flat=np.array([s + a]), terminated=s + a >= 50, truncated=False)
                for s, a in zip(states, actions, strict=True)
            ]

    placement = SimpleNamespace(visited_situation=lambda obs, state, origin: SimpleNamespace(obs=obs, state=state))
    start = SimpleNamespace(obs=0, state=0)
    for steps in (1, 250):
        made = list(
            explore_together(
                Line(), placement, [start], steps, np.random.default_rng(0), lambda seen, rng: 0,  # type: ignore[arg-type]
            )
        )  # fmt: skip
        assert steps <= len(made) < steps + 100 * 12
        assert all(each.reached.state == each.visited.state + 1 for each in made)
        longest = max(each.reached.state for each in made)
        assert longest == 12 if steps == 250 else longest <= 12
    last = list(
        explore_together(
            Line(), placement, [SimpleNamespace(obs=49, state=49)], 3, np.random.default_rng(0), lambda seen, rng: 0,  # type: ignore[arg-type]
        )
    )  # fmt: skip
    assert all(each.reached is None for each in last)
    assert len(last) == 3
    told: list[Any] = []

    def begin(seen: Any, rng: Any) -> int:
        """The last of the states so far."""
        told.append((seen.shape, rng))
        return len(seen) - 1

    own = np.random.default_rng(1)
    two = [start, SimpleNamespace(obs=7, state=7)]
    first = next(iter(explore_together(Line(), placement, two, 1, own, begin)))  # type: ignore[arg-type]
    assert first.visited is two[1]
    assert told == [((2, 1), own)]


@pytest.mark.parametrize("closed_above", [True, False])
def test_eight_ties_on_one_side_show_an_open_threshold_and_seven_do_not(closed_above: bool) -> None:
    symmetry = SimpleNamespace(observation=(IdentityEntry(),), state=None)
    pairs: Any = SimpleNamespace(bound=SimpleNamespace(symmetry=symmetry, has_state=False))
    sign = np.array([1, -1] * 5)
    states = np.stack([np.arange(10.0), 2.5 * sign], 1)
    same = comparison(states, states)
    actual = (sign > 0) == closed_above
    ending = comparison(~actual[:, None], actual[:, None], part="termination")
    for count, seen in ((8, True), (7, False)):
        tie = one_sided_tie(pairs, (0,), same, ending, list(range(count)))
        assert (tie is not None) == seen
    tie = one_sided_tie(pairs, (0,), same, ending, list(range(10)))
    assert tie is not None
    assert (tie.row, tie.coordinate, tie.threshold, tie.closed_above) == (0, 1, 2.5, closed_above)
    mixed = comparison(actual[:, None], ~actual[:, None], part="termination")
    mixed.actual[0] = ending.actual[0]
    mixed.expected[0] = ending.expected[0]
    assert one_sided_tie(pairs, (0,), same, mixed, list(range(10))) is None
    apart = comparison(states, states + 1e-9)
    assert one_sided_tie(pairs, (0,), apart, ending, list(range(10))) is None


def test_a_violation_below_a_twentieth_of_the_typical_value_is_approximate() -> None:
    values = np.array([[2.0], [-2.0], [2.0]])
    for size, small in ((0.0999, True), (0.1001, False)):
        note = approximate_size(comparison(values, values + size), size)
        assert (note is not None) == small
        if note is not None:
            assert note.fields["coordinate"] == "x[0]"
            assert note.fields["typical"] == pytest.approx(2.0)
            assert note.fields["size"] == size
    assert approximate_size(comparison(values, values + 0.01, part="termination"), 0.01) is None
    assert approximate_size(comparison(values, values), 0.0) is None
    assert approximate_size(comparison(values, values + 0.01), math.inf) is None


def test_coordinates_are_listed_up_to_64() -> None:
    residual, limits = np.array([[1.0, 5.0], [3.0, 2.0]]), np.array([[7.0, 1.0], [6.0, 2.0]])
    rows = per_coordinate(comparison(np.zeros((2, 2)), residual), residual, limits)
    assert [tuple(row.values()) for row in rows] == [("x[0]", 3.0, 7.0), ("x[1]", 5.0, 2.0)]
    for dim, count in ((64, 64), (65, 0)):
        wide = np.ones((1, dim))
        assert len(per_coordinate(comparison(wide, wide), wide, wide)) == count
    assert per_coordinate(comparison(np.zeros((0, 2)), np.zeros((0, 2))), np.zeros((0, 2)), np.zeros((0, 2))) == ()


def test_a_tolerance_is_sixteen_roundings_and_nudges_and_the_noise() -> None:
    both = comparison([[1.0, -8.0], [2.0, 8.0]], [[4.0, 8.0], [2.0, 8.0]])
    plain = Tolerance(None, {}).of(both)  # type: ignore[arg-type]
    eps = 2.0**-24
    assert plain[0].tolist() == pytest.approx([16 * eps * 4.0, 16 * eps * 8.0])
    moved = Tolerance(None, {"transition": np.array([0.5])}).of(both, np.array([[0.25, 0.0], [0.0, 0.0]]))  # type: ignore[arg-type]
    # The noise of shown coordinates, and for inner ones the largest that is known.
    assert moved[0].tolist() == pytest.approx([16 * (eps * 4.0 + 0.25) + 0.5, 16 * eps * 8.0 + 0.5])
    noisy = Tolerance(None, {"transition": np.array([0.5, 0.125])})._noise_of(
        comparison(np.ones((1, 4)), np.ones((1, 4)))
    )  # type: ignore[arg-type]
    assert noisy.tolist() == [0.5, 0.125, 0.5, 0.5]
    whole = comparison([[1.0]], [[1.0]], epsilon=0.0)
    assert Tolerance(None, {"transition": np.array([0.5])}).of(whole).tolist() == [[0.0]]  # type: ignore[arg-type]
    assert Tolerance(None, {}).of(whole, 3.0).tolist() == [[3.0]]  # type: ignore[arg-type]


def test_groups_of_composite_order_up_to_48_are_tested_element_by_element() -> None:
    partial = [n for n in range(2, 60) if may_be_partial(catalog.cyclic(n))]
    composite = [n for n in range(2, 49) if any(n % k == 0 for k in range(2, n))]
    assert partial == composite
    square = catalog.dihedral(4)
    assert in_words(square, None, str) is None
    assert in_words(square, list(square.elements()), str) is None
    assert in_words(square, holding(square, lambda g: False), str).code == "SYM031"  # type: ignore[union-attr]
    quarter = next(g for g in square.elements() if (g * g) * (g * g) == g * ~g != g * g)
    powers = [quarter, quarter * quarter, ~quarter]
    turns = in_words(square, holding(square, lambda g: g in powers), lambda word: f"{word}")
    assert turns is not None
    assert (turns.fields["order"], turns.fields["cyclic"], turns.fields["of"]) == (4, True, 8)


def _side(rewards: Any, ends: Any, states: Any) -> Any:
    return distribution_gap._Side(np.asarray(rewards, float), np.asarray(ends, float), np.asarray(states, float))


def test_distances_of_samples_are_those_of_their_definitions() -> None:
    rng = np.random.default_rng(0)
    left, right = (_side(rng.normal(size=40), rng.integers(0, 2, 40), rng.normal(size=(40, 1))) for _ in range(2))
    assert distribution_gap._of_rewards(left, right) == pytest.approx(abs(left.rewards.mean() - right.rewards.mean()))
    assert distribution_gap._of_ends(left, right) == pytest.approx(abs(left.ends.mean() - right.ends.mean()))
    # On a line the optimal matching is that of the sorted samples.
    sorted_gap = np.abs(np.sort(left.states[:, 0]) - np.sort(right.states[:, 0])).mean()
    assert distribution_gap._match(left, right, np.array([2.0])) == pytest.approx(sorted_gap / 2)
    few, others = (_side(np.zeros(6), [0, 0, 0, 1, 1, 1], [[a], [a], [1], [1], [2], [2]]) for a in (1, 3))
    assert distribution_gap._of_few(few, others) == pytest.approx(2 / 6)
    ended = _side(np.zeros(6), [1, 0, 0, 1, 1, 1], [[1], [1], [1], [1], [2], [2]])
    assert distribution_gap._of_few(few, ended) == pytest.approx(1 / 6)
    assert distribution_gap._of_few(few, _side(few.rewards, few.ends, few.states + 1e-12)) == 0.0


def test_a_gap_of_values_is_that_of_the_simulation_lemma(monkeypatch: pytest.MonkeyPatch) -> None:
    estimate = distribution_gap._Estimate
    compared: Any = SimpleNamespace(span=10.0, discount=0.5, alpha=0.05)
    made = distribution_gap._bound_values(compared, True, estimate(0.2, 0.1), estimate(0.3, 0.05), estimate(0.1, 0.4))
    assert made.value == pytest.approx((0.2 + 0.5 * 0.3 * 10.0) / 0.5)
    assert (made.epsilon_reward, made.epsilon_transition, made.distance) == (0.2, 0.3, TOTAL_VARIATION)
    assert made.noise == (0.1, 0.4)
    assert made.confidence == pytest.approx(0.95)
    assert made.exceeding == largest_fraction(0, 32, 0.05)
    assert distribution_gap._bound_values(compared, True, estimate(9.0), estimate(), estimate()).value == 10.0
    monkeypatch.setattr(distribution_gap, "cost_of", lambda compared, distance, *, seeded: 4.0 * distance)
    wide = distribution_gap._bound_values(compared, False, estimate(0.2), estimate(0.3, 0.05), estimate(0.1))
    assert wide.value == pytest.approx((0.2 + 0.5 * (1.2 + 0.1 * 10.0)) / 0.5)
    assert (wide.distance, wide.epsilon_transition) == (WASSERSTEIN, 0.3)
    monkeypatch.setattr(distribution_gap, "cost_of", lambda compared, distance, *, seeded: math.inf)
    unknown = distribution_gap._bound_values(compared, False, estimate(0.2, 0.1), estimate(0.3, 0.05), estimate())
    assert (unknown.value, unknown.epsilon_transition, unknown.noise) == (10.0, 1.0, (0.1, 0.0))


def test_violations_are_looked_for_at_500_pairs_and_whenever_their_number_has_doubled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[int] = []
    evidence = SimpleNamespace(refutes=lambda parts: False)
    monkeypatch.setattr(first_violation, "join_measurements", lambda stepped: sum(len(part.cases) for part in stepped))
    monkeypatch.setattr(
        first_violation, "PairedEvidence", lambda bench, *, drawn, **more: asked.append(drawn) or evidence
    )
    looked = first_violation.FirstViolation(None, ("reward",))  # type: ignore[arg-type]

    def measurements_of(count: int) -> Any:
        return [SimpleNamespace(cases=range(count // 2)), SimpleNamespace(cases=range(count - count // 2))]

    for count in (499, 500, 600, 999, 1000, 1500, 2000, 3000):
        assert not looked(measurements_of(count), 3000)
    assert asked == [500, 1000, 2000]
    evidence.refutes = lambda parts: parts == ("reward",)
    assert first_violation.FirstViolation(None, ("reward",))(measurements_of(500), 501)  # type: ignore[arg-type]
