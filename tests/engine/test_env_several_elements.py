"""With several elements, every method tests each of them, and names one that is violated with its own numbers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from symcheck.engine.environments.methods import distribution
from symcheck.engine.environments.methods import start as starts
from symcheck.engine.environments.methods.distribution import DistributionEvidence
from symcheck.engine.environments.methods.exact import TabularEvidence
from symcheck.engine.environments.methods.start import StartEvidence, StartSample
from symcheck.engine.statistics import SwapTest
from symcheck.groups import catalog
from symcheck.statements.statement import state
from symcheck.verdict import ReasonCode

COLUMNS, ROWS = 3, 2
ACROSS, DOWN = (0,), (1,)  # words of the two generators


def flipped(word: Any, s: int) -> int:
    """A cell of a board of two rows under the flips of a word."""
    row, column = divmod(int(s), COLUMNS)
    for letter in word:
        row, column = (row, COLUMNS - 1 - column) if letter == 0 else (ROWS - 1 - row, column)
    return row * COLUMNS + column


def board(**rewards: float) -> dict[int, dict[int, list[tuple[float, int, float, bool]]]]:
    """Steps to any of the six cells, without reward but in the cells named `cell_0` to `cell_5`."""
    cells = range(ROWS * COLUMNS)
    return {s: {0: [(1 / 6, to, rewards.get(f"cell_{s}", 0.0), False) for to in cells]} for s in cells}


def exact(table: Any, start: Any = None) -> TabularEvidence:
    bound = SimpleNamespace(
        group=catalog.product(catalog.cyclic(2), catalog.cyclic(2)),
        observation=flipped,
        action=lambda word, a, s: int(a),
        label=lambda word: {ACROSS: "across", DOWN: "down"}.get(tuple(word), "both" if len(word) == 2 else "identity"),
    )
    bench: Any = SimpleNamespace(pairs=SimpleNamespace(bound=bound), words=(ACROSS, DOWN))
    return TabularEvidence(bench, table, start)


@pytest.mark.parametrize(
    ("cells", "name", "cell"),
    [({"cell_0": 1.0, "cell_3": 1.0}, "across", 0), ({"cell_0": 1.0, "cell_2": 1.0}, "down", 0), ({}, "", 0)],
)
def test_a_table_is_enumerated_under_every_element(cells: dict[str, float], name: str, cell: int) -> None:
    result = exact(board(**cells)).judge("reward_invariance", "reward")
    assert result.checked == 2 * 6
    assert result.violations == (4 if cells else 0)
    example = result.counterexample
    assert (None if example is None else (example.group_element, example.observation)) == (
        (name, cell) if cells else None
    )
    assert exact(board(**cells)).epsilons() == (pytest.approx(1.0 if cells else 0.0), 0.0)


@pytest.mark.parametrize(
    ("start", "name", "residual", "violations"),
    [
        # even across, uneven down
        ([0.2, 0.2, 0.2, 0.2, 0.0, 0.2], "down", 0.2, 2),
        ([0.3, 0.3, 0.3, 0.0, 0.1, 0.0], "down", 0.3, 6),
        # even down, uneven across
        ([0.3, 0.1, 0.1, 0.3, 0.1, 0.1], "across", 0.2, 4),
        # uneven under both, more so across
        ([0.4, 0.0, 0.1, 0.3, 0.0, 0.2], "across", 0.3, 8),
        ([0.4, 0.0, 0.3, 0.1, 0.0, 0.2], "down", 0.3, 8),
    ],
)
def test_the_element_with_the_largest_difference_of_start_probabilities_is_named(
    start: Any, name: str, residual: float, violations: int
) -> None:
    result = exact(board(), start).judge_start("start")
    assert (result.verdict, result.checked, result.violations) == ("failed", 12, violations)
    example = result.counterexample
    assert example is not None
    assert example.group_element == name
    assert result.max_residual == example.residual == pytest.approx(residual)
    assert start[example.observation] > 0
    word = ACROSS if name == "across" else DOWN
    assert example.image_observation == flipped(word, example.observation)
    assert (example.expected, example.actual) == (start[example.observation], start[example.image_observation])
    assert abs(example.actual - example.expected) == pytest.approx(residual)


def swap(p_value: float, *, coordinate: int = 0, statistic: float = 1.0) -> SwapTest:
    return SwapTest(p_value, 100, "mean of x", coordinate, "mean", statistic, 0.1, 4.0, 50, (coordinate,))


def sample(word: Any, pairs: int = 200) -> StartSample:
    values = np.random.default_rng(0).normal(size=(pairs, 2))
    return StartSample(word, values, -values, shows_numbers=True)


def judge_starts(
    tests: Any, *, level: float = 0.01, survives: Any = (False, False), in_time: bool = True, planned: int = 200
) -> Any:
    """The verdict of these tests of starts, and what it was asked with."""
    asked: dict[str, Any] = {}

    def judged_at(name: str, word: Any, p_value: float) -> float:
        asked.update(name=name, word=word, p_value=p_value)
        return level

    bench: Any = SimpleNamespace(
        judged_at=judged_at,
        pairs="pairs",
        moved=True,
        interrupted=False,
        silent=lambda part: (),
        in_time=lambda: in_time,
        rng=lambda name: np.random.default_rng(0),
        options=SimpleNamespace(alpha=0.01),
    )
    made: Any = object.__new__(StartEvidence)
    made._bench, made._tests, made.surviving, made.planned = bench, tests, np.array(survives), planned
    return made.judge("initial_invariance"), asked


@pytest.fixture
def described(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What failed starts were described with."""
    given: list[Any] = []

    def describe(result: Any, *told: Any) -> Any:
        given.append(told)
        return result

    monkeypatch.setattr(starts, "_describe_rejection", describe)
    monkeypatch.setattr(starts, "shift_bound", lambda detectable, checked, alpha, **more: {"checked": checked, **more})
    monkeypatch.setattr(SwapTest, "detectable", lambda self, rng: self.statistic)
    monkeypatch.setattr(StartEvidence, "_coordinates", property(lambda self: "coordinates"))
    return given


def test_the_most_significant_element_decides_on_starts(described: list[Any]) -> None:
    tests = [(sample("g"), swap(0.4)), (sample("h", 150), swap(0.002, statistic=7.0)), (sample("k"), swap(0.9))]
    result, asked = judge_starts(tests)
    assert asked == {"name": "initial", "word": "h", "p_value": 0.002}
    assert (result.verdict, result.violations, result.checked, result.p_value) == ("failed", 1, 550, 0.002)
    assert result.max_residual == 7.0
    assert described[0][:4] == ("pairs", tests[1][0], tests[1][1], "coordinates")
    # 150 of 200 planned pairs, with time left: the resets stopped at an early look.
    assert [note.code for note in described[0][4]] == ["resets_stopped"]
    assert described[0][4][0].fields == {"drawn": 150, "planned": 200}
    judge_starts(tests, in_time=False)
    judge_starts(tests, planned=150)
    assert [told[4] for told in described[1:]] == [(), ()]


def test_starts_pass_above_the_level_with_the_weakest_element_s_power(described: list[Any]) -> None:
    tests = [(sample("g"), swap(0.0101, statistic=2.0)), (sample("h"), swap(0.5, statistic=3.0))]
    result, _ = judge_starts(tests)
    assert (result.verdict, result.violations, described) == ("passed", 0, [])
    assert (result.bound["checked"], result.bound["unit"]) == (400, "standard deviations")
    assert judge_starts([(sample("g"), swap(0.01))])[0].verdict == "failed"
    few, _ = judge_starts([(sample("g", 99), swap(0.5))], in_time=False)
    assert (few.verdict, few.bound) == ("undecided", None)
    assert judge_starts([(sample("g", 100), swap(0.5))], in_time=False)[0].verdict == "passed"


@pytest.mark.parametrize(
    ("survives", "coordinate", "p_value", "verdict"),
    [
        ((False, True), 1, 0.001, "undecided"),
        ((False, True), 0, 0.001, "failed"),
        ((True, False), 0, 0.001, "undecided"),
        ((True, True), 0, 0.5, "passed"),
    ],
)
def test_a_rejecting_coordinate_that_survives_resets_leaves_starts_open(
    survives: Any, coordinate: int, p_value: float, verdict: str, described: list[Any]
) -> None:
    result, _ = judge_starts([(sample("g"), swap(p_value, coordinate=coordinate))], survives=survives)
    assert result.verdict == verdict
    if verdict == "undecided":
        assert result.reason.code == ReasonCode.START_FOLLOWS_PAST.value
        assert described == []


def compare(tests: Any, *, level: float = 0.01, verdict: bool = True, monkeypatch: Any) -> Any:
    """The result of these tests of random outcomes, one an element, and what was asked."""
    asked: dict[str, Any] = {}
    cases, rows = [0] * 300, {word: np.arange(i, 300, len(tests)) for i, word in enumerate(tests)}
    measured = SimpleNamespace(cases=cases, by_test=rows)

    def judged_at(name: str, word: Any, p_value: float) -> float:
        asked.update(name=name, word=word, p_value=p_value)
        return level

    def differing(bench: Any, given: Any, chosen: Any, comparison: Any, effect: Any) -> dict[str, Any]:
        asked["rows"] = chosen
        return {}

    def explain(result: Any, comparison: Any, test: Any, label: str, place: Any) -> Any:
        asked.update(explained=test, label=label)
        return result

    monkeypatch.setattr(distribution, "_differing_box", differing)
    monkeypatch.setattr(distribution, "_explain", explain)
    monkeypatch.setattr(distribution, "shift_bound", lambda detectable, checked, alpha, **more: {"value": detectable})
    monkeypatch.setattr(SwapTest, "detectable", lambda self, rng: self.statistic)
    values = np.random.default_rng(0).normal(size=(300, 1))
    sides = SimpleNamespace(expected=values, actual=values + 1)
    made: Any = object.__new__(DistributionEvidence)
    made.paired = SimpleNamespace(
        sample=SimpleNamespace(measured=measured, exits=(), stopped=False, left_out=100, moved=True, prevented=None)
    )
    made.bench = SimpleNamespace(
        judged_at=judged_at,
        options=SimpleNamespace(alpha=0.01, samples=700 if verdict else 702),
        pool=SimpleNamespace(region=lambda: state("region_states", count=3, origins={})),
        pairs=SimpleNamespace(
            own_cuts=None,
            comparison=lambda part, given: sides,
            bound=SimpleNamespace(label=lambda word: f"element {word}"),
        ),
        silent=lambda part: (),
        interrupted=False,
        clock=SimpleNamespace(is_limited=True),
        caution=None,
        rng=lambda name: np.random.default_rng(0),
    )
    made._tests_of = lambda part: (sides, tests)
    return made._compare("reward_invariance", "reward"), asked, rows


def test_the_most_significant_element_decides_on_random_outcomes(monkeypatch: pytest.MonkeyPatch) -> None:
    tests = {"g": swap(0.3), "h": swap(0.004), "k": swap(0.02)}
    result, asked, rows = compare(tests, monkeypatch=monkeypatch)
    assert (asked["name"], asked["word"], asked["p_value"]) == ("reward", "h", 0.004)
    assert (result.verdict, result.violations, result.checked, result.p_value) == ("failed", 1, 300, 0.004)
    assert asked["explained"] is tests["h"]
    assert asked["label"] == "element h"
    assert asked["rows"] is rows["h"]
    assert compare({"g": swap(0.01)}, monkeypatch=monkeypatch)[0].verdict == "failed"


def test_random_outcomes_pass_with_the_power_of_the_weakest_element(monkeypatch: pytest.MonkeyPatch) -> None:
    tests = {"g": swap(0.3, statistic=2.0), "h": swap(0.0101, statistic=5.0)}
    result, asked, _ = compare(tests, monkeypatch=monkeypatch)
    assert (result.verdict, result.bound, "explained" in asked) == ("passed", {"value": 5.0}, False)
    # Half of the pairs that could be drawn are needed: 300 of 600, and not of 602.
    assert compare(tests, verdict=False, monkeypatch=monkeypatch)[0].verdict == "undecided"
