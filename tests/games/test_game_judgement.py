"""The verdict on games from counts alone."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from symcheck.engine.equations import BY_PART
from symcheck.engine.games import judgement
from symcheck.engine.games.judgement import counterexample_of, judge_part, not_repeatable, positions_note
from symcheck.games.alphazero import no_symmetries
from symcheck.games.played import LibraryRules, PlayedGame

OUTCOME: Any = SimpleNamespace(name="outcome", noun="outcome", unit="games")


def violation(moves: int, residual: float = 0.5, action: int | None = 1, mapped: Any = (1, 0)) -> Any:
    image = SimpleNamespace(board=np.array([2, 1]), moves=None if mapped is None else np.array(mapped))
    node = SimpleNamespace(board=np.array([1, 2]), images=[None, image])
    return SimpleNamespace(
        position=SimpleNamespace(moves=tuple(range(moves)), node=node),
        image=1,
        action=action,
        expected=np.array([1.0]),
        actual=(0, "b"),
        residual=residual,
        where="the board",
    )


def context(*, violated: int = 0, complete: bool = False, examples: Any = (), **more: Any) -> Any:
    tally = SimpleNamespace(
        checked=40, violated=violated, examples=list(examples), values=more.pop("values", {1.0, None})
    )
    positions = SimpleNamespace(is_complete=complete, games=7, longest=9)
    fields: dict[str, Any] = {
        "tallies": {"outcome": tally},
        "is_seen_again": lambda name: True,
        "unrepeatable": 0,
        "is_exhaustive": complete,
        "time_up": False,
        "moves_something": True,
        "positions": positions,
        "tested": 33,
        "comparison": None,
        "player": None,
    }
    return SimpleNamespace(**(fields | more))


@pytest.fixture(autouse=True)
def no_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judgement, "draw", lambda part, violation: ())
    monkeypatch.setattr(judgement, "shrink", lambda first, *told: violation(1, action=None))


def judged(**given: Any) -> Any:
    return judge_part(context(**given), OUTCOME, lambda context: (SimpleNamespace(code="cause"),))  # type: ignore[arg-type, return-value]


def test_a_complete_game_is_proved_and_a_sample_passes() -> None:
    proved, passed = judged(complete=True), judged()
    assert (proved.verdict, proved.method, proved.max_residual, proved.causes) == ("proved", "complete", 0.0, ())
    assert (passed.verdict, passed.method, passed.checked, passed.violations) == ("passed", "positions", 40, 0)
    assert (passed.facts.quantity, passed.unit) == ("outcome", "games")
    assert proved.notes[0].fields == {"positions": 33}
    assert passed.notes[0].fields == {"positions": 33, "games": 7, "longest": 9}
    assert positions_note(context(complete=True)).code == "method_game_complete"
    assert judged(moves_something=False).verdict == "undecided"


def test_violations_fail_with_the_shortest_example_and_its_causes() -> None:
    examples = [violation(5, 0.25), violation(2, 0.75), violation(3)]
    failed = judged(violated=3, complete=True, examples=examples)
    assert (failed.verdict, failed.violations, failed.max_residual) == ("failed", 3, 0.75)
    assert [cause.code for cause in failed.causes] == ["cause"]
    example = failed.counterexample
    assert example.state == {"moves": [0, 1]}
    assert (example.group_element, example.observation, example.image_observation) == ("image 1", [1, 2], [2, 1])
    assert (example.action, example.image_action, example.expected, example.actual) == (1, 0, [1.0], (0, "b"))
    shrunk = judged(violated=3, examples=examples).counterexample
    assert (shrunk.state, shrunk.image_action) == ({"moves": [0]}, None)
    assert judged(violated=1).counterexample is None
    assert counterexample_of("outcome", violation(1, mapped=None)).image_action is None


def test_a_violation_that_is_not_seen_again_accuses_nobody() -> None:
    by_chance = judged(violated=2, is_seen_again=lambda name: False, examples=[violation(1)])
    assert (by_chance.verdict, by_chance.violations, by_chance.counterexample) == ("undecided", 0, None)
    assert by_chance.reason.fields["unrepeatable"] == 1
    assert judged(unrepeatable=4).verdict == "undecided"
    assert not_repeatable(context(unrepeatable=4)).fields == {"unrepeatable": 4, "is_game": True}
    asked: list[str] = []
    judged(is_seen_again=lambda name: bool(asked.append(name)))  # type: ignore[func-returns-value]
    assert asked == []  # nothing is violated


def test_games_that_never_end_leave_a_doubt_about_outcomes() -> None:
    assert [doubt.code for doubt in judged(values={None}).facts.doubts] == ["no_end_reached"]
    assert judged(values={None, 1.0}).facts.doubts == ()
    assert judged(time_up=True).facts.time_up
    other = SimpleNamespace(name="move", noun="move", unit="moves")
    made = context(values={None})
    made.tallies["move"] = made.tallies["outcome"]
    assert judge_part(made, other).facts.doubts == ()  # type: ignore[arg-type, union-attr]


def test_boards_are_told_as_lists_and_other_values_as_text() -> None:
    assert judgement._plain(np.array([[1, 2]])) == [[1, 2]]
    for value in ([1], (2,), "x", 3, 0.5, None, True):
        assert judgement._plain(value) is value
    assert judgement._plain({1}) == "{1}"
    assert BY_PART["reward"].noun == "reward"


def test_a_library_game_passes_the_rules_on_and_has_no_states_of_boards() -> None:
    rules = LibraryRules(
        3,
        lambda: "start",
        lambda s: np.ones(3, bool),
        lambda s, a: (s, a),
        lambda s: None,
        lambda s: np.array([len(s)]),
    )
    game = PlayedGame(rules, lambda board, policy: [(board, policy), (-board, policy[::-1])], "a game", "images")
    assert (game.actions, game.label, game.symmetries_label, game.is_whole) == (3, "a game", "images", False)
    assert (game.start(), game.step("s", 2), game.outcome("s"), game.legal("s").tolist()) == (
        "start",
        ("s", 2),
        None,
        [True] * 3,
    )
    assert game.state_of(np.zeros(1)) is None
    assert game.before_canonical("s", 0) is None
    assert game.key("ab") == game.board_key(np.array([2])) != game.key("abc")
    images = game.images(np.array([1]), np.array([0.25, 0.5, 0.25]))
    assert [board.tolist() for board, _ in images] == [[1], [-1]]
    with pytest.raises(type(no_symmetries("a game")), match="a game"):
        PlayedGame(rules, None, "a game", "images")
