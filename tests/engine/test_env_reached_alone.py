"""Set states against reached states by themselves: clocks, frames, step numbers, and each limit from both sides."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from symcheck.engine.environments.cases.pool import Pool, Visit
from symcheck.engine.environments.controls import set_vs_reached as reached
from symcheck.engine.environments.subject.placement import Situation
from symcheck.engine.statistics import SwapTest
from symcheck.envs.state_access.record import Origin
from symcheck.envs.stepping.step_differences import Loss, StepDifferences
from symcheck.spaces.coordinates import Coordinates
from symcheck.verdict import ReasonCode

RNG = np.random.default_rng
NAN = float("nan")
DOUBLE, SINGLE = 2.0**-53, 2.0**-24


def coordinates(dim: int, epsilon: float = DOUBLE) -> Coordinates:
    ones = np.ones(dim)
    return Coordinates(tuple(f"x[{j}]" for j in range(dim)), epsilon * ones, 0 * ones, -np.inf * ones, np.inf * ones)


def step(flat: Any, reward: float = 0.0, *, terminated: bool = False, truncated: bool = False) -> Any:
    return SimpleNamespace(flat=np.asarray(flat, float), reward=reward, terminated=terminated, truncated=truncated)


def visit(obs: Any, after: Any, *, start: bool = False, **more: Any) -> Visit:
    shown = np.asarray(obs, float)
    return Visit(Situation(shown, shown, "start" if start else "rollout"), 0, step(after, **more))


def stepper_of(dim: int, epsilon: float = DOUBLE, *, access: Any = None, outcome: Any = None) -> Any:
    codec = SimpleNamespace(coordinates=coordinates(dim, epsilon), flatten_batch=lambda many: np.stack(list(many)))
    return SimpleNamespace(codec=codec, access=access, outcome=outcome, base=None)


def episodes(count: int, length: int, row: Any) -> list[Visit]:
    """Visits of episodes in which `row(episode, t)` is shown before step t."""
    return [visit(row(e, t), row(e, t + 1), start=t == 0) for e in range(count) for t in range(length)]


def test_steps_are_numbered_from_the_start_of_their_episode() -> None:
    visits = [visit([0.0], [0.0], start=s) for s in (True, False, False, True, True, False)]
    assert reached._step_numbers(visits).tolist() == [0, 1, 2, 0, 0, 1]


def test_one_visit_of_each_early_step_number_comes_first() -> None:
    number = np.array([0, 1, 1, 0, 239, 240, 240])
    shuffled = [6, 3, 2, 5, 1, 0, 4]
    ordered = reached._one_of_each_number(shuffled, number)
    assert sorted(ordered) == sorted(shuffled)
    # The first of each number in the given order; later numbers have no place of their own.
    assert set(ordered[:3]) == {3, 2, 4}
    assert ordered[3:] == [6, 5, 1, 0]


def test_a_coordinate_varies_if_it_takes_two_values_and_is_not_always_missing() -> None:
    flats = np.array([[1.0, 2.0, NAN, NAN], [1.0, 3.0, NAN, 1.0], [1.0, 2.0, NAN, NAN]])
    assert reached._varying(flats).tolist() == [False, True, False, True]


def rows(e: int, t: int) -> Any:
    """A number that varies, a clock, the previous number, and a constant."""
    value = np.sin(7.0 * e + 3.0 * t)
    return [value, 0.1 * t, np.sin(7.0 * e + 3.0 * (t - 1)), 5.0]


def test_clocks_and_stacked_frames_show_the_past_and_nothing_else_does() -> None:
    visits = episodes(9, 4, rows)
    picked = list(range(len(visits)))
    past = reached._columns_of_the_past(stepper_of(4), visits, picked)
    assert past.tolist() == [False, True, True, False, False, False]
    # Eight pairs of steps with the same number are needed to call a column a clock: of three episodes of two steps,
    # there are four.
    few = episodes(3, 2, rows)
    assert reached._columns_of_the_past(stepper_of(4), few, list(range(6))).tolist()[1] is False
    enough = episodes(5, 2, rows)
    assert reached._columns_of_the_past(stepper_of(4), enough, list(range(10))).tolist()[1] is True
    broken = episodes(9, 4, lambda e, t: [*rows(e, t)[:1], 0.1 * t + (0.5 if (e, t) == (3, 3) else 0.0)])
    assert not reached._columns_of_the_past(stepper_of(2), broken, picked)[1]


@pytest.mark.parametrize(("epsilon", "allowed"), [(DOUBLE, 1e-7), (SINGLE, 1e-3)])
@pytest.mark.parametrize("size", [0.0, 9.0])
def test_steps_mismatch_beyond_what_rounding_of_their_state_explains(
    epsilon: float, allowed: float, size: float
) -> None:
    first = np.array([[size, 0.0, size]])
    typical = np.array([3.0, 0.0])

    def mismatch(*residual: float, end: bool = False) -> list[bool]:
        compared = StepDifferences(first, np.array([residual]), np.array([end]))
        return reached._mismatches(stepper_of(2, epsilon), compared, typical)[0].tolist()

    assert mismatch(0.0, 0.0, 0.0) == [False] * 4
    limits = allowed * np.array([1 + 3 + size, 1.0, 1 + size])
    assert mismatch(*(0.99 * limits)) == [False] * 4
    assert mismatch(*(1.01 * limits)) == [True, True, True, False]
    assert mismatch(NAN, 0.0, 0.0, end=True) == [True, False, False, True]
    assert mismatch(np.inf, 0.0, 0.0)[0]


LOSS = Loss(("x[0]", "x[1]", "reward"), np.array([0.5, 0.0, 0.0]), np.array([0.1, 0.0, 0.0]), 0.0)


def columns(lost: int, late: int, of: int = 200, *, dim: int = 2, **access: Any) -> Any:
    """The finding about this many rows with a mismatch at once and one step later, in the second coordinate."""
    first, second = np.zeros((of, dim + 2), bool), np.zeros((of, dim + 2), bool)
    first[:lost, 1] = second[:late, 1] = True
    epsilon = access.pop("epsilon", SINGLE)
    held = SimpleNamespace(**({"get": None, "origin": Origin.GIVEN} | access))
    stepper = stepper_of(dim, epsilon, access=held)
    return reached._compare_columns(stepper, first, second, np.arange(dim + 2), LOSS)


@pytest.mark.parametrize(
    ("access", "allowed"),
    [({}, 10), ({"get": len}, 3), ({"epsilon": DOUBLE}, 3), ({"origin": Origin.BUILT_IN}, 10)],
    ids=["rounded", "read back", "shown in float64", "built in without get"],
)
def test_few_visits_may_differ_and_fewer_where_states_have_all_digits(access: Any, allowed: int) -> None:
    assert columns(allowed, 0, **access) == columns(0, allowed, **access) == reached.SetVersusReached()
    for lost, late in ((allowed + 1, 0), (0, allowed + 1)):
        caution = columns(lost, late, **access).caution
        assert caution.code == ReasonCode.HIDDEN_STATE.value
        assert caution.fields["count"] == max(lost, late)
        assert (caution.fields["compared"], caution.fields["coordinate"]) == (200, "x[1]")
        assert (caution.fields["lost"], caution.fields["lost_in"]) == (0.5, "x[0]")


def test_a_lag_of_one_step_is_harmless_where_the_access_is_known_to_be_complete() -> None:
    complete = {"get": len, "origin": Origin.BUILT_IN}
    lagging = columns(200, 0, **complete)
    assert lagging.caution is None
    assert [(note.code, note.fields["coordinate"]) for note in lagging.remarks] == [("differs_on_first_step", "x[1]")]
    assert columns(200, 200, **complete).caution is not None  # it does not recover
    assert columns(200, 0, get=len).caution is not None  # another's access may have forgotten it
    assert columns(200, 0, origin=Origin.BUILT_IN).caution is not None  # it cannot be read back


def test_the_number_of_further_columns_is_told_with_the_first() -> None:
    stepper = stepper_of(2)
    assert reached._remark_the_past(stepper, np.array([], np.intp)) == ()
    (note,) = reached._remark_the_past(stepper, np.array([1, 2, 3]))
    assert (note.code, note.fields["coordinate"], note.fields["more"]) == ("shows_the_past", "x[1]", 2)
    assert reached._column_names(stepper) == ["x[0]", "x[1]", "reward", "terminated"]


def same_number(differing: int, visits: int, *, column: int = 0, missing: bool = False, plays: int = 0) -> Any:
    """The finding about the sixth step of episodes, of which some differ from steps of set states."""
    told: list[Any] = []
    same = [visit([0.1 * k, 0.0], [0.5, 0.0], reward=1.0) for k in range(visits)]

    def outcome(held: Any, action: Any) -> Any:
        told.append(held)
        flat, reward = np.array([0.5, 0.0]), 1.0
        if len(told) <= differing:
            flat[0] += 1.0 if column == 0 else 0.0
            reward += 1.0 if column == 2 else 0.0
        return step(flat, reward)

    def play(most: int, *, read: bool) -> Any:
        assert (most, read) == (6, True)
        count = 5 if missing else 6
        return SimpleNamespace(steps=[step([0.5, 0.0], 1.0)] * count, states=[np.zeros(2)] * count, actions=[0] * count)

    stepper = stepper_of(2, outcome=outcome, access=SimpleNamespace(get=len if plays else None))
    stepper.play = play
    return reached._compare_one_number(stepper, 5, same, np.zeros(2), np.zeros(4, bool))


def test_a_step_number_is_to_blame_if_nearly_all_its_steps_differ() -> None:
    assert same_number(4, 4).fields == {"count": 4, "compared": 4, "number": 6, "coordinate": "x[0]"}
    assert same_number(4, 4).code == ReasonCode.HIDDEN_STEP.value
    assert same_number(3, 3) is None  # too few to tell
    assert same_number(19, 20) is not None
    assert same_number(18, 20) is None
    assert same_number(20, 20, column=2).fields["coordinate"] == "reward"
    assert same_number(0, 20) is None


def test_too_few_visits_are_completed_by_new_episodes_that_last_so_long() -> None:
    assert same_number(8, 3, plays=1).fields["compared"] == 8
    assert same_number(8, 9, plays=1) is None  # nine visits need no more: eight of nine are too few
    assert same_number(3, 3, plays=1, missing=True) is None


def cut(differing: int, of: int, *, lagging: bool = False, terminated: bool = False, column: int = 0) -> Any:
    """The finding about truncated steps, of which some differ from steps of set states."""
    others = [visit([0.3 * k, 1.0], [0.3 * k + 0.1, 1.0], start=not k) for k in range(9)]
    ended = [visit([2.0, 1.0 + k], [2.5, 1.0], truncated=True, terminated=terminated) for k in range(of)]
    told: list[Any] = []

    def outcome(held: Any, action: Any) -> Any:
        told.append(held)
        flat, reward = np.array([2.5, 1.0]), 0.0
        if len(told) <= differing:
            flat[0] += column == 0
            reward += column == 2
        return step(flat, reward)

    mask = np.array([lagging, False, False, False])
    pool = Pool(visits=[*others, *ended])
    return reached._compare_cut_steps(stepper_of(2, outcome=outcome), pool, RNG(0), mask)


def test_truncated_steps_that_differ_show_a_clock() -> None:
    assert cut(2, 2).fields == {"count": 2, "compared": 2, "coordinate": "x[0]"}
    assert cut(2, 2).code == ReasonCode.HIDDEN_TIME.value
    assert cut(1, 2) is None
    assert cut(2, 20) is not None
    assert cut(2, 30).fields["compared"] == 20  # a sample of twenty
    assert cut(2, 2, column=2).fields["coordinate"] == "reward"
    assert cut(2, 2, lagging=True) is None
    assert cut(2, 2, terminated=True) is None
    assert cut(0, 0) is None


def random_steps(
    p_value: float,
    count: int,
    monkeypatch: pytest.MonkeyPatch,
    *,
    in_time: Any = lambda share: True,
    nothing: bool = False,
) -> tuple[Any, dict[str, Any]]:
    asked: dict[str, Any] = {"shares": set()}
    test = SwapTest(p_value, count, "mean of x", 0, "mean", 1.0, 0.1, 4.0, 50, (0,))

    def swap(bench: Any, picked: Any, first: Any, again: Any, rng: Any) -> Any:
        asked.update(picked=len(picked), reached=len(first), again=len(again))
        return None if nothing else test

    def note_share(share: float) -> bool:
        asked["shares"].add(share)
        return bool(in_time(share))

    monkeypatch.setattr(reached, "_swap_reached_and_set", swap)
    visits = [visit([float(k)], [float(k)]) for k in range(count)]
    stepper = stepper_of(1, outcome=lambda held, action: step([0.0]))
    bench: Any = SimpleNamespace(
        pairs=SimpleNamespace(stepper=stepper), pool=SimpleNamespace(visits=visits), in_time=note_share
    )
    return reached.compare_in_distribution(bench, RNG(0)), asked


def test_random_steps_of_set_and_reached_states_are_compared_at_one_in_a_thousand(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told, asked = random_steps(1e-3, 100, monkeypatch)
    assert told.code == ReasonCode.HIDDEN_STATE_IN_DISTRIBUTION.value
    assert told.fields == {"feature": "mean of x", "p_value": 1e-3, "steps": 100}
    assert asked == {"picked": 100, "reached": 100, "again": 100, "shares": {0.5}}
    assert random_steps(1.01e-3, 100, monkeypatch)[0] is None
    assert random_steps(1e-9, 100, monkeypatch, nothing=True)[0] is None
    few, asked = random_steps(1e-9, 99, monkeypatch)
    assert (few, "picked" in asked) == (None, False)
    assert random_steps(1e-9, 2600, monkeypatch)[1]["picked"] == 2500


def test_time_may_leave_too_few_random_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    def budget(steps: int) -> Any:
        left = iter([True] * steps + [False] * 1000)
        return lambda share: next(left)

    assert random_steps(1e-9, 150, monkeypatch, in_time=budget(99))[0] is None
    told, asked = random_steps(1e-9, 150, monkeypatch, in_time=budget(100))
    assert told.fields["steps"] == asked["picked"] == asked["reached"] == asked["again"] == 100


def test_outcomes_are_observations_rewards_and_ends() -> None:
    stacked = reached._stack_outcomes([step([1.0, 2.0], 3.0), step([4.0, 5.0], 6.0, terminated=True)])
    assert stacked.tolist() == [[1.0, 2.0, 3.0, 0.0], [4.0, 5.0, 6.0, 1.0]]


def test_random_outcomes_are_compared_given_the_state_the_action_and_the_step_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given: dict[str, Any] = {}

    def swap(expected: Any, actual: Any, names: Any, epsilon: Any, **more: Any) -> str:
        given.update(expected=expected, actual=actual, names=names, epsilon=epsilon, **more)
        return "a test"

    monkeypatch.setattr(reached, "swap_test_given", swap)
    monkeypatch.setattr(reached, "action_columns", lambda codec, actions: (np.asarray(actions, float)[:, None], ["a"]))
    rng = RNG(0)
    visits = [
        Visit(Situation(None, np.array([rng.normal(), 7.0]), "rollout" if k % 8 else "start"), k % 2,
              step([rng.normal(), 7.0], rng.normal()))
        for k in range(80)
    ]  # fmt: skip
    stepper = stepper_of(2)
    stepper.action_codec = None
    bench: Any = SimpleNamespace(pairs=SimpleNamespace(stepper=stepper), pool=SimpleNamespace(visits=visits))
    picked = list(range(80))
    first, again = [visits[i].step for i in picked], [step([0.0, 7.0], 1.0) for _ in picked]
    assert reached._swap_reached_and_set(bench, picked, first, again, rng) == "a test"
    assert given["names"] == ("x[0]", "reward")  # constants are left out
    np.testing.assert_array_equal(given["expected"], [[s.flat[0], s.reward] for s in first])
    np.testing.assert_array_equal(given["actual"], [[0.0, 1.0]] * 80)
    assert given["level"] == 1e-3
    assert given["covariates"].shape == (80, 3)
    region, late = given["weights"][-1]
    assert region is reached._LATE_STEPS
    numbers = np.array([k % 8 for k in picked])
    assert set(np.flatnonzero(late > 0)) == set(np.flatnonzero(numbers > np.quantile(numbers, 0.75)))
    assert late.mean() == pytest.approx(0.0)
    still = [step([0.0, 7.0], 1.0) for _ in picked]
    assert reached._swap_reached_and_set(bench, picked, still, still, rng) is None
