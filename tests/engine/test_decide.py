"""The one decision: every guard, the order in which guards are asked, and acceptance with sizes that are no numbers."""

from __future__ import annotations

import dataclasses
import itertools
import math
from typing import Any

import pytest

from symcheck.statements.statement import Statement, free, state
from symcheck.verdict import _GUARDS, Acceptance, Facts, ReasonCode, accept, decide

PLAIN = Facts(checked=500, least=100)
DOUBT, BLAME, PREVENTED = free("hidden state"), free("starts differ"), free("no method applies")

# What each guard needs to be asked, in the order in which guards are asked.
GUARDS: list[tuple[ReasonCode, dict[str, Any]]] = [
    (ReasonCode.NOT_REPEATABLE, {"unrepeatable": 3}),
    (ReasonCode.VIOLATIONS_UNJUDGED, {"unjudged": 7}),
    (ReasonCode.INTERRUPTED, {"interrupted": True}),
    (ReasonCode.NAN_ONLY, {"finite": False, "quantity": "reward"}),
    (ReasonCode.FAIL_FAST, {"stopped": True}),
    (ReasonCode.TIME_UP, {"time_up": True, "checked": 99}),
    (ReasonCode.TOO_FEW, {"checked": 99}),
    (ReasonCode.ROUNDING_DECIDES, {"swamped": 0.2}),
    (ReasonCode.NOTHING_MOVES, {"moved": False}),
]


def facts(**changes: Any) -> Facts:
    return dataclasses.replace(PLAIN, **changes)


def test_a_pass_is_earned_by_comparisons_and_a_proof_by_all_of_them() -> None:
    assert decide(PLAIN) == ("passed", None)
    assert decide(facts(exhaustive=True)) == ("proved", None)
    assert decide(Facts(checked=0)).verdict == "undecided"
    assert decide(Facts(checked=0, exhaustive=True)).verdict == "undecided"


def test_every_guard_of_the_program_stands_in_this_table() -> None:
    assert [code for code, _ in _GUARDS] == [code for code, _ in GUARDS]


@pytest.mark.parametrize("exhaustive", [False, True])
@pytest.mark.parametrize(("code", "changes"), GUARDS, ids=lambda one: str(one))
def test_a_guard_leaves_undecided_and_says_why(code: ReasonCode, changes: dict[str, Any], exhaustive: bool) -> None:
    decision = decide(facts(**changes, exhaustive=exhaustive))
    assert (decision.verdict, decision.reason and decision.reason.code) == ("undecided", code.value)
    assert str(decision.reason)
    assert not decision.holds


@pytest.mark.parametrize(("code", "changes"), GUARDS, ids=lambda one: str(one))
def test_a_violation_fails_whatever_a_guard_says_of_the_rest(code: ReasonCode, changes: dict[str, Any]) -> None:
    assert decide(facts(**changes, violations=1)) == ("failed", None)


@pytest.mark.parametrize(("first", "second"), list(itertools.combinations(GUARDS, 2)), ids=lambda one: str(one[0]))
def test_of_two_guards_the_one_that_makes_comparisons_worthless_is_named(
    first: tuple[ReasonCode, dict[str, Any]], second: tuple[ReasonCode, dict[str, Any]]
) -> None:
    reason = decide(facts(**{**first[1], **second[1]})).reason
    assert reason is not None
    assert reason.code == first[0].value


def test_too_few_is_no_reason_where_enough_was_compared_before_the_time_was_up() -> None:
    assert decide(facts(time_up=True)).verdict == "passed"


def test_what_stood_instead_of_numbers_is_named() -> None:
    reason = decide(facts(finite=False, quantity="reward", stuck="infinite")).reason
    assert reason == state("nan_only", quantity="reward", value="infinite")
    assert str(reason) == "every reward was infinite on both sides, so nothing could be compared"


def test_nothing_compared_is_too_few_rather_than_no_numbers() -> None:
    reason = decide(Facts(checked=0, finite=False)).reason
    assert reason is not None
    assert reason.code == "too_few"


@pytest.mark.parametrize(
    ("quantity", "value", "said"),
    [
        ("reward", "1", "constant: every reward was 1"),
        ("end", "0", "constant: no step ended an episode"),
        ("end", "1", "constant: every step ended its episode"),
    ],
)
def test_a_constant_outcome_is_legal_and_said_to_be_constant(quantity: str, value: str, said: str) -> None:
    decision = decide(facts(quantity=quantity, constant=value))
    assert (decision.verdict, str(decision.reason)) == ("passed", said)
    assert decision.holds
    assert decide(facts(quantity=quantity, constant=value, exhaustive=True)).verdict == "proved"


def test_the_gravest_doubt_is_named_and_guards_come_before_doubts() -> None:
    assert decide(facts(doubts=(DOUBT, free("another")), exhaustive=True)) == ("undecided", DOUBT)
    reason = decide(facts(doubts=(DOUBT,), moved=False)).reason
    assert reason is not None
    assert reason.code == "nothing_moves"


def test_a_doubt_saves_no_claim_that_is_violated() -> None:
    assert decide(facts(doubts=(DOUBT,), violations=1)).verdict == "failed"


def test_a_violation_that_may_not_be_blamed_is_undecided_even_where_it_is_accepted() -> None:
    blamed = facts(violations=5, unattributed=BLAME)
    assert decide(blamed) == ("undecided", BLAME)
    assert decide(accept(blamed, Acceptance("baseline", 0.0, 1.0))) == ("undecided", BLAME)


def test_what_prevented_a_comparison_comes_before_that_there_was_none() -> None:
    assert decide(Facts(checked=0, prevented=PREVENTED)) == ("undecided", PREVENTED)


@pytest.mark.parametrize(
    ("size", "limit", "verdict"),
    [
        (0.1, 0.2, "passed"),
        (0.2, 0.2, "passed"),
        (0.3, 0.2, "failed"),
        (math.inf, 0.2, "failed"),
        (math.nan, 0.2, "failed"),
        (math.nan, math.inf, "failed"),
    ],
)
def test_a_violation_is_accepted_up_to_its_limit_and_never_without_a_size(
    size: float, limit: float, verdict: str
) -> None:
    violated = accept(facts(violations=9), Acceptance("accept_gap", size, limit))
    assert decide(violated).verdict == verdict


def test_an_acceptance_makes_no_pass_of_what_is_undecided_and_no_proof_of_a_violation() -> None:
    allowed = Acceptance("baseline", 0.0, 1.0)
    assert decide(accept(facts(unrepeatable=1), allowed)).verdict == "undecided"
    assert decide(accept(facts(violations=1, exhaustive=True), allowed)).verdict == "passed"


def test_every_reason_has_one_sentence() -> None:
    from symcheck.statements.statement import table

    sentences = [table("reasons")[code.value]["sentence"] for code in ReasonCode]
    assert len(set(sentences)) == len(ReasonCode)
    assert isinstance(decide(facts(checked=3)).reason, Statement)
