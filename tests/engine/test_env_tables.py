"""The exact method on small tables: closed forms, and one changed entry at a time."""

from __future__ import annotations

import copy
import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from symcheck.engine.environments.methods import exact
from symcheck.engine.environments.methods.exact import TabularEvidence, contradiction, total_variation
from symcheck.groups import catalog

LEFT, RIGHT = 0, 1


def corridor(states: int = 4) -> dict[int, dict[int, list[tuple[float, int, float, bool]]]]:
    """A walk that slips with probability 1/4, pays its distance from the middle, and ends beyond either end."""
    table: dict[int, dict[int, list[tuple[float, int, float, bool]]]] = {}
    for s in range(states):
        pay = abs(2 * s - (states - 1)) / 2
        table[s] = {}
        for action, to in ((LEFT, s - 1), (RIGHT, s + 1)):
            outside = not 0 <= to < states
            table[s][action] = [(0.75, s if outside else to, pay, outside), (0.25, s, pay, False)]
    return table


def evidence(table: Any, start: Any = None, *, flips_actions: bool = True, states: int = 4) -> Any:
    bound = SimpleNamespace(
        group=catalog.cyclic(2),
        observation=lambda word, s: states - 1 - int(s) if len(word) % 2 else int(s),
        action=lambda word, a, s: 1 - int(a) if flips_actions and len(word) % 2 and a < 2 else int(a),
        label=lambda word: "flip" if word else "identity",
    )
    bench: Any = SimpleNamespace(pairs=SimpleNamespace(bound=bound), words=((0,),))
    return TabularEvidence(bench, table, start)


def changed(state: int, action: int, place: int, outcome: tuple[float, int, float, bool], states: int = 4) -> Any:
    table = copy.deepcopy(corridor(states))
    table[state][action][place] = outcome
    return table


@pytest.mark.parametrize("part", ["transition", "reward", "termination"])
def test_a_symmetric_table_is_proved_case_by_case(part: Any) -> None:
    result = evidence(corridor()).judge("name", part)
    assert (result.name, result.verdict, result.method) == ("name", "proved", "exact")
    assert (result.checked, result.violations, result.max_residual) == (8, 0, 0.0)
    assert result.notes[0].fields == {"cases": 8, "states": 4}
    assert result.tolerance == exact._TOLERANCE == 64 * 2.0**-52
    assert (result.counterexample, result.causes) == (None, ())


# an entry of the table that changes, and the part that does not hold then
CHANGES: dict[str, tuple[tuple[int, int, int], tuple[float, int, float, bool], Any]] = {
    "another reward": ((1, LEFT, 0), (0.75, 0, 0.5 + 1e-9, False), "reward"),
    "another place": ((1, LEFT, 1), (0.25, 2, 0.5, False), "transition"),
    "an end": ((1, LEFT, 1), (0.25, 1, 0.5, True), "termination"),
}


@pytest.mark.parametrize("name", list(CHANGES))
def test_one_changed_entry_breaks_its_part_in_two_cases_and_no_other(name: str) -> None:
    place, outcome, broken = CHANGES[name]
    made = evidence(changed(*place, outcome))
    for part in ("transition", "reward", "termination"):
        result = made.judge("name", part)
        assert result.verdict == ("failed" if part == broken else "proved"), part
        assert result.violations == (2 if part == broken else 0)
    result = made.judge("name", broken)
    example = result.counterexample
    assert example is not None
    assert (example.group_element, example.observation, example.action) == ("flip", 1, LEFT)
    assert (example.image_observation, example.image_action, example.state) == (2, RIGHT, None)
    size = 0.75 if broken == "reward" else 0.25
    assert example.residual == result.max_residual == pytest.approx(size)
    assert result.causes[-1].fields == {"violations": 2, "checked": 8}
    noun = {"reward": "reward", "transition": "next state", "termination": "end"}[broken]
    assert example.where == f"distribution of the {noun}, as (value, probability)"
    expected = {"reward": [[0.5, 0.25], [0.500000001, 0.75]], "transition": [[1, 0.25], [3, 0.75]],
                "termination": [[False, 0.75], [True, 0.25]]}[broken]  # fmt: skip
    assert example.expected == expected


def test_probabilities_may_differ_by_their_rounding_and_no_more() -> None:
    for off, fails in ((1e-15, False), (1.2e-14, False), (1.7e-14, True), (1e-9, True)):
        table = changed(1, LEFT, 0, (0.75 - off, 0, 0.5, False))
        table[1][LEFT][1] = (0.25 + off, 1, 0.5, False)
        made = evidence(table)
        assert (made.judge("name", "transition").verdict == "failed") is fails
        if fails:
            assert made.judge("name", "transition").max_residual == pytest.approx(off, rel=0.1)


def test_ends_in_other_places_are_a_violation_of_terminations() -> None:
    """Both sides end as often and arrive as often, but not together."""
    table = changed(1, LEFT, 0, (0.5, 0, 0.5, False))
    table[1][LEFT] = [(0.5, 0, 0.5, True), (0.5, 1, 0.5, False)]
    table[2][RIGHT] = [(0.5, 3, 0.5, False), (0.5, 2, 0.5, True)]
    made = evidence(table)
    assert made.judge("name", "transition").verdict == "proved"
    result = made.judge("name", "termination")
    assert (result.verdict, result.violations) == ("failed", 2)
    assert result.counterexample is not None
    assert result.counterexample.where.startswith("distribution of the next state and termination together")
    # an end elsewhere is not told again where next states differ anyway
    table[2][RIGHT] = [(0.5, 1, 0.5, False), (0.5, 2, 0.5, True)]
    made = evidence(table)
    assert made.judge("name", "transition").verdict == "failed"
    assert made.judge("name", "termination").verdict == "proved"


def test_only_states_in_which_an_episode_acts_are_compared() -> None:
    table = corridor(6)
    table[5][LEFT] = [(1.0, 5, 99.0, False)]
    start = np.zeros(6)
    start[2:4] = 0.5
    made = evidence(table, start, states=6)
    assert made._visited == [0, 1, 2, 3, 4, 5]
    assert made.judge("name", "reward").verdict == "failed"
    for state, action, to in ((4, RIGHT, 5), (1, LEFT, 0)):
        pay = table[state][action][0][2]
        table[state][action] = [(0.75, to, pay, True), (0.0, to, pay, False), (0.25, state, pay, False)]
    made = evidence(table, start, states=6)
    assert made._visited == [1, 2, 3, 4]  # the ends are final, and what has probability 0 is not reached
    assert made.judge("name", "reward").verdict == "proved"
    assert made.judge("name", "reward").checked == 8
    assert evidence(table, states=6)._visited == [0, 1, 2, 3, 4, 5]


def test_the_gaps_of_rewards_and_of_next_states_are_those_of_a_closed_form() -> None:
    assert evidence(corridor()).epsilons() == (0.0, 0.0)
    table = changed(1, LEFT, 0, (0.75, 0, 2.5, False))
    assert evidence(table).epsilons() == pytest.approx((0.75 * 2.0, 0.0))
    table[2][LEFT][1] = (0.25, 3, 0.5, True)
    assert evidence(table).epsilons() == pytest.approx((0.75 * 2.0, 0.25))
    ended = changed(0, LEFT, 0, (0.75, 2, 1.5, True))  # where an episode ends does not matter
    assert evidence(ended).epsilons() == (0.0, 0.0)


def test_action_maps_that_make_every_equation_hold_are_suggested() -> None:
    made = evidence(corridor(), flips_actions=False)
    assert [cause.code for cause in made._corrections((0,))] == ["SYM012"]
    assert made._corrections((0,))[0].fields == {"permutation": [1, 0]}
    result = made.judge("name", "transition")
    assert result.verdict == "failed"
    assert [cause.code for cause in result.causes] == ["SYM012", "SYM027"]
    alike = corridor()
    for s in range(4):
        alike[s] = {a: [(0.5, s, 1.0, False), (0.5, 3 - s, 1.0, False)] for a in range(5)}
    assert [cause.code for cause in evidence(alike)._corrections((0,))] == ["SYM010", "SYM012"]
    for s in range(4):
        alike[s][5] = alike[s][0]
    assert evidence(alike)._corrections((0,)) == []
    assert evidence(changed(1, LEFT, 0, (0.75, 0, 9.0, False)))._corrections((0,)) == []


def test_a_claim_that_changes_nothing_is_undecided_and_a_part_that_never_varies_is_noticed() -> None:
    made = evidence(corridor(), flips_actions=False)
    made.bench.pairs.bound.observation = lambda word, s: int(s)
    assert not made._moves_something
    assert made.judge("name", "reward").verdict == "undecided"
    steady = {s: {a: [(1.0, (s + 1) % 4 if a else (s - 1) % 4, 2.0, False)] for a in (0, 1)} for s in range(4)}
    assert evidence(steady)._moves_something
    told = {part: evidence(steady).judge("name", part).facts for part in ("transition", "reward", "termination")}
    assert {part: facts and facts.constant for part, facts in told.items()} == {
        "transition": None, "reward": "2", "termination": "0"}  # fmt: skip
    possible = evidence(corridor())._possible_outcomes("reward")
    assert possible.shape == (16, 1)
    assert set(possible[:, 0]) == {0.5, 1.5}
    assert set(evidence(corridor())._possible_outcomes("termination")[:, 0]) == {0.0, 1.0}
    assert set(evidence(corridor())._possible_outcomes("transition")[:, 0]) == {0.0, 1.0, 2.0, 3.0}


def test_start_probabilities_are_compared_one_by_one() -> None:
    unknown = evidence(corridor()).judge_start("start")
    assert (unknown.verdict, unknown.checked) == ("undecided", 0)
    right = evidence(corridor(), [0.1, 0.4, 0.4, 0.1]).judge_start("start")
    assert (right.verdict, right.checked, right.violations, right.max_residual) == ("proved", 4, 0, 0.0)
    assert right.notes[0].fields == {"states": 4}
    one = evidence(corridor(), [0.1, 0.4, 0.4 - 1e-12, 0.1 + 1e-12]).judge_start("start")
    assert (one.verdict, one.violations) == ("failed", 4)
    broken = evidence(corridor(), [0.0, 0.5, 0.3, 0.2]).judge_start("start")
    assert (broken.verdict, broken.violations) == ("failed", 4)
    example = broken.counterexample
    assert example is not None
    assert broken.max_residual == example.residual == pytest.approx(0.2)
    assert (example.group_element, example.observation, example.image_observation) == ("flip", 1, 2)
    assert (example.expected, example.actual) == (0.5, 0.3)
    assert broken.causes[0].code == "SYM040"
    single = evidence(corridor(), [0.0, 1.0, 0.0, 0.0])
    single.bench.pairs.bound.observation = lambda word, s: int(s)
    assert single.judge_start("start").facts.constant == "1"
    assert right.facts.constant is None
    merged = evidence(corridor(), [0.25, 0.25, 0.25, 0.25])
    merged.bench.pairs.bound.observation = lambda word, s: 0  # not a bijection: its image has all probability
    assert merged.judge_start("start").max_residual == pytest.approx(0.75)


def test_a_step_to_which_the_table_gives_no_probability_is_named() -> None:
    def visit(obs: int = 1, action: int = LEFT, to: int = 0, reward: float = 0.5, ended: bool = False) -> Any:
        return SimpleNamespace(situation=SimpleNamespace(obs=obs), action=action,
                               step=SimpleNamespace(obs=to, reward=reward, terminated=ended))  # fmt: skip

    table = corridor()
    assert contradiction(table, []) == ""
    assert contradiction(table, [visit(), visit(to=1), visit(0, LEFT, 0, 1.5, True)]) == ""
    for wrong in (visit(to=2), visit(reward=0.75), visit(ended=True), visit(obs=7), visit(action=5)):
        assert contradiction(table, [visit(), wrong]) != ""
    assert contradiction(table, [visit(to=2)]) == (
        "action 0 in state 1 led to state 2 with reward 0.5, to which the table P gives probability 0"
    )
    assert "with reward 0.5 and an end, to which" in contradiction(table, [visit(ended=True), visit(to=2)])
    table[1][LEFT][1] = (0.0, 1, 0.5, False)
    assert contradiction(table, [visit(to=1)]) != ""
    table[1][LEFT][1] = (0.25, 1, math.nan, False)
    assert contradiction(table, [visit(to=1, reward=math.nan)]) == ""
    assert contradiction(table, [visit(to=1)]) != ""


def test_total_variation_is_half_the_sum_of_differences() -> None:
    assert total_variation({0: 0.5, 1: 0.5}, {0: 0.25, 2: 0.75}) == 0.75
    assert total_variation({}, {"a": 1.0}) == 0.5
    assert total_variation({"a": 1.0}, {"a": 1.0}) == 0.0
    assert exact._as_list({3: 0.5, 1: 0.25, 2: 0.25}) == [[1, 0.25], [2, 0.25], [3, 0.5]]
    assert exact._reward_key(0, math.nan, False) == "NaN"
    assert exact._reward_key(0, 0.1 + 0.2, False) == exact._reward_key(1, 0.3, True) == 0.3
    assert exact._reward_key(0, 1e-11, False) != exact._reward_key(0, 0.0, False)
    assert (exact._keep_unless_ended(3, 0.0, True), exact._keep_unless_ended(3, 0.0, False)) == ("ended", 3)


def test_rewards_that_are_no_numbers_leave_no_value_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []

    def gap(*told: Any) -> str:
        given.append(told)
        return "a gap"

    monkeypatch.setattr(exact, "table_gap", gap)
    made = evidence(corridor())
    made.bench.pairs.stepper = SimpleNamespace(env="env")
    assert made.value_gap(set(), 0.9) == "a gap"
    env, epsilons, cases, discount = given[0]
    assert (env, epsilons, discount) == ("env", (0.0, 0.0), 0.9)
    assert sorted(cases) == [(s, a, 3 - s, 1 - a) for s in range(4) for a in (0, 1)]
    for number in (math.nan, math.inf):
        assert evidence(changed(3, RIGHT, 1, (0.25, 3, number, False))).value_gap(set(), 0.9) is None
