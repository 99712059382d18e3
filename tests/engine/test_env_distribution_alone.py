"""Random outcomes by themselves: which parts are pairs, when to stop early, what is shared, and where they differ."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from symcheck.engine.environments.methods import distribution
from symcheck.engine.environments.methods.distribution import Covariates, DistributionEvidence, image_covariates
from symcheck.engine.equations import STEP_PARTS
from symcheck.engine.results import PropertyResult
from symcheck.engine.sequential import Look, Looked
from symcheck.engine.statistics import SwapTest
from symcheck.spaces.coordinates import Coordinates
from symcheck.statements.statement import state

RNG = np.random.default_rng
ANY: Any = None


def coordinates(*names: str) -> Coordinates:
    ones = np.ones(len(names))
    return Coordinates(names, ones * 2.0**-53, 0 * ones, -np.inf * ones, np.inf * ones)


def swap(p_value: float, **more: Any) -> SwapTest:
    fields: dict[str, Any] = {"feature": "mean of x", "coordinate": 0, "moment": "mean", "statistic": 1.0,
                              "shift": 0.1, "critical": 4.0, "needed": 50, "coordinates": (0,)} | more  # fmt: skip
    return SwapTest(p_value, 100, **fields)


def result(verdict: Any = "passed", name: str = "x") -> PropertyResult:
    return PropertyResult(name, verdict, "paired", checked=1)


def evidence(**fields: Any) -> Any:
    made: Any = object.__new__(DistributionEvidence)
    given: dict[str, Any] = {
        "_repeating": frozenset(), "_refutable": frozenset(), "_pairwise": {}, "_tests": {}, "_violation": None,
        "_waiting": [], "bench": SimpleNamespace(in_time=lambda: True),
    }  # fmt: skip
    for name, value in (given | fields).items():
        setattr(made, name, value)
    return made


def pairwise(
    part: str,
    *,
    repeating: Any = (),
    refutable: Any = (),
    refuted: bool = False,
    verdict: str = "passed",
    late: bool = False,
) -> tuple[Any, list[str]]:
    """The pairwise verdict on a part, and what was asked of the pairs."""
    asked: list[str] = []

    def refutes(parts: Any) -> bool:
        asked.append("refutes")
        return refuted

    def judge(name: str, part: Any) -> PropertyResult:
        asked.append("judges")
        return result(verdict, name)

    clock = SimpleNamespace(while_in_time=lambda work, otherwise: otherwise if late else work())
    made = evidence(
        _repeating=frozenset(repeating), _refutable=frozenset(refutable), bench=SimpleNamespace(clock=clock),
        paired=SimpleNamespace(refutes=refutes, judge=judge),
    )  # fmt: skip
    first = made._judge_pairwise(part)
    assert made._judge_pairwise(part) == first
    return first, asked


def test_parts_that_repeat_are_judged_once_by_pairs_and_those_that_mostly_do_only_if_refuted() -> None:
    assert pairwise("reward") == (None, [])
    told, asked = pairwise("reward", repeating=["reward"])
    assert (told.verdict, asked) == ("passed", ["judges"])
    assert pairwise("observation")[0].verdict == "passed"
    assert pairwise("reward", repeating=["reward"], verdict="undecided")[0] is None
    assert pairwise("reward", refutable=["reward"]) == (None, ["refutes", "refutes"])
    told, asked = pairwise("reward", refutable=["reward"], refuted=True, verdict="failed")
    assert (told.verdict, asked) == ("failed", ["refutes", "judges", "refutes"])
    assert pairwise("reward", refutable=["reward"], refuted=True, late=True)[0] is None


def test_only_parts_without_a_pairwise_verdict_use_the_level() -> None:
    tests = {"g": swap(0.2), "h": swap(0.4, live=False)}
    made = evidence(_tests_of=lambda part: (None, tests), _judge_pairwise=lambda part: None)
    handed = made._hand_in("reward")
    assert {word: (each.p_value, each.live) for word, each in handed.items()} == {"g": (0.2, True), "h": (0.4, False)}
    made._judge_pairwise = lambda part: result()
    assert made._hand_in("reward") == {}


def test_pairs_refute_a_part_that_any_of_them_violates() -> None:
    verdicts: dict[str, Any] = {"reward": None, "transition": result("passed"), "termination": result("failed")}
    made = evidence(_judge_pairwise=verdicts.get)
    assert made.refutes(["reward", "termination"])
    assert not made.refutes(["reward", "transition"])
    assert made.judge("y", "transition").name == "y"
    made._compare = lambda name, part: "compared"
    assert made.judge("y", "reward") == "compared"


def look_at(
    p_values: Any, *, repeating: Any = (), fast: bool = False, count: int = 50, violation: Any = None, **more: Any
) -> Any:
    """Whether an early look at half of 100 pairs stops the drawing, with p-values by part."""
    looked = Looked(0.01)

    def test(part: Any, measured: Any, look: Look) -> Any:
        looked.add((part, "g"), p_values[part], look)
        return None, {"g": swap(p_values[part])}

    made = evidence(
        _looks_taken=looked, _test=test, _repeating=frozenset(repeating), _violation=violation,
        _waiting=more.pop("waiting", [Look(0.5, 0.5, False)]),
        bench=SimpleNamespace(in_time=lambda: more.pop("in_time", True), options=SimpleNamespace(fail_fast=fast)),
    )  # fmt: skip
    stepped = [SimpleNamespace(cases=[0] * count)]
    stops = made._clear(stepped, 100)
    return stops, set(made._tests), len(made._waiting)


@pytest.fixture
def without_joining(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distribution, "join_measurements", lambda parts: "joined")


CLEAR, OPEN = dict.fromkeys(STEP_PARTS, 0.005), dict.fromkeys(STEP_PARTS, 0.0051)


@pytest.mark.usefixtures("without_joining")
def test_an_early_look_stops_the_drawing_if_it_refutes_every_random_part() -> None:
    assert look_at(CLEAR) == (True, set(STEP_PARTS), 0)
    assert look_at(OPEN) == (False, set(), 0)
    some = CLEAR | {STEP_PARTS[-1]: 0.5}
    assert look_at(some)[:2] == (False, set())
    assert look_at(some, fast=True)[:2] == (True, set(STEP_PARTS))
    assert look_at(some, repeating=STEP_PARTS[-1:])[:2] == (True, set(STEP_PARTS[:-1]))
    assert look_at(OPEN, fast=True)[0] is False
    assert look_at(CLEAR, count=49) == (False, set(), 1)
    assert look_at(CLEAR, waiting=[])[0] is False
    assert look_at(CLEAR, in_time=False)[0] is False
    assert look_at(CLEAR, repeating=STEP_PARTS)[0] is False
    assert look_at(OPEN, violation=lambda stepped, planned: True)[0] is True
    assert look_at(OPEN, violation=lambda stepped, planned: False)[0] is False


def bench_of(states: Any, actions: Any, *, kind: str = "map") -> tuple[Any, Any]:
    """A workbench and the images of these cases."""
    cases = [
        SimpleNamespace(image=SimpleNamespace(state=np.asarray(s, float), obs=np.asarray(s, float)[:1]), image_action=a)
        for s, a in zip(states, actions, strict=True)
    ]
    codec = SimpleNamespace(coordinates=coordinates("seen"), flatten_batch=lambda many: np.stack(list(many)))
    actions_codec = SimpleNamespace(
        coordinates=coordinates("action"), flatten_batch=lambda many: np.asarray(many, float).reshape(len(many), -1)
    )
    pairs = SimpleNamespace(stepper=SimpleNamespace(codec=codec, action_codec=actions_codec),
                            placement=SimpleNamespace(kind=kind))  # fmt: skip
    return SimpleNamespace(pairs=pairs), SimpleNamespace(cases=cases)


def test_states_are_shared_if_every_one_is_a_vector_and_observations_otherwise() -> None:
    bench, measured = bench_of([[1.0, 2.0], [3.0, 4.0]], [0, 1])
    states, names = distribution._image_states(bench, measured)
    assert (states.tolist(), names) == ([[1.0, 2.0], [3.0, 4.0]], ["state[0]", "state[1]"])
    measured.cases[1].image.state = "text"
    states, names = distribution._image_states(bench, measured)
    assert (states.tolist(), names) == ([[1.0], [3.0]], ["seen"])
    bench, measured = bench_of([[1.0, 2.0], [3.0, 4.0]], [0, 1], kind="observation")
    assert distribution._image_states(bench, measured)[1] == ["seen"]


def covariates(monkeypatch: pytest.MonkeyPatch, states: Any, actions: Any) -> Covariates:
    monkeypatch.setattr(
        distribution, "action_columns", lambda codec, actions: (np.asarray(actions, float)[:, None], ["action"])
    )
    return image_covariates(*bench_of(states, actions))


def test_few_pairs_of_a_state_and_an_action_have_an_indicator_each(monkeypatch: pytest.MonkeyPatch) -> None:
    few = covariates(monkeypatch, [[0.0], [0.0], [1.0], [1.0]], [0, 0, 1, 1])
    assert few.names == ["action", "image state[0]", "s = 0.0, a = 0.0", "s = 1.0, a = 1.0"]
    assert few.design.tolist() == [[1, 0], [1, 0], [0, 1], [0, 1]]
    assert few.sides.shape == (4, 4)
    assert few.rows(np.array([2, 0])).design.tolist() == [[0, 1], [1, 0]]
    assert few.rows(np.array([2])).names == few.names
    once = covariates(monkeypatch, [[0.0], [0.0], [1.0], [2.0]], [0, 0, 1, 1])
    assert once.names == ["action", "image state[0]"]
    np.testing.assert_array_equal(once.design, once.sides)
    many = [[float(k)] for k in range(distribution._MOST_CELLS + 1) for _ in range(2)]
    assert len(covariates(monkeypatch, many, [0] * len(many)).names) == 2
    fitting = many[:-2]
    assert covariates(monkeypatch, fitting, [0] * len(fitting)).design.shape[1] == distribution._MOST_CELLS
    wide = covariates(monkeypatch, [[0.0, 1.0]] * 2, [0, 0])
    assert wide.names[-1].startswith("s = [0")


def differing(apart: Any, rows: Any = None, effect: Any = "x") -> dict[str, Any]:
    states = np.linspace(-1, 1, len(apart))[:, None]
    bench, measured = bench_of(states, [0] * len(apart))
    comparison: Any = SimpleNamespace(
        coordinates=coordinates("other", "x"),
        expected=np.zeros((len(apart), 2)),
        actual=np.stack([np.full(len(apart), 5.0), np.asarray(apart, float)], axis=1),
    )
    made: Any = None if effect is None else SimpleNamespace(coordinate=effect)
    return distribution._differing_box(
        bench, measured, np.arange(len(apart)) if rows is None else rows, comparison, made
    )


def test_the_place_where_means_differ_is_told_with_its_size() -> None:
    apart = np.where(np.linspace(-1, 1, 400) > 0.5, -2.0, 0.0) + 1e-3 * RNG(0).normal(size=400)
    found = differing(apart)
    assert found["there"] == pytest.approx(2.0, abs=0.05)
    assert any("state[0]" in str(side) for side in found["place"])
    assert differing(apart, effect=None) == {}
    assert differing(apart, rows=np.arange(200)) == {}


def explain(test: SwapTest, part: str = "transition", place: Any = None) -> PropertyResult:
    comparison: Any = SimpleNamespace(part=part, coordinates=coordinates("x", "y"))
    return distribution._explain(result("failed"), comparison, test, "g", place or {})


def effect_of(**more: Any) -> Any:
    fields = {"expected": 1.0, "actual": 3.5, "statistic": "mean", "coordinate": "x", "region": "r", "digits": 2,
              "other": "", "unit": "m", "place": "mean of x"} | more  # fmt: skip
    return SimpleNamespace(**fields)


def test_a_rejection_is_told_with_both_values_and_every_differing_coordinate() -> None:
    told = explain(swap(1e-4, effect=effect_of(), coordinates=(0, 1)), place={"there": 2.0})
    assert [cause.code for cause in told.causes] == ["SYM043", "SYM047", "SYM048"]
    fields = told.causes[0].fields
    assert (fields["expected"], fields["actual"], fields["needed"], fields["there"]) == (1.0, 3.5, 50, 2.0)
    assert (fields["statistic"], "other" in fields) == ("mean", False)
    assert told.causes[1].fields["coordinates"] == ["x", "y"]
    example = told.counterexample
    assert example is not None
    assert (example.residual, told.max_residual, told.unit, example.where) == (2.5, 2.5, "m", "mean of x")
    assert told.notes[0].code == "swap_test_rejected"
    single = explain(swap(1e-4, effect=effect_of(other="y")), "termination")
    assert [cause.code for cause in single.causes] == ["SYM043", "SYM048"]
    assert (single.causes[0].fields["statistic"], single.causes[0].fields["other"]) == ("probability", "y")
    assert (
        explain(swap(1e-4, effect=effect_of(statistic="spread")), "termination").causes[0].fields["statistic"]
        == "spread"
    )
    with pytest.raises(ValueError, match="has a feature"):
        explain(swap(1e-4))


@pytest.mark.parametrize(
    ("caution", "mostly", "repeating", "refutable"),
    [
        (None, {"reward", "termination"}, {"reward"}, {"termination"}),
        (state("control_random"), {"reward", "termination"}, {"reward"}, set()),
        (None, set(), {"reward"}, set()),
    ],
)
def test_a_single_pair_may_refute_what_mostly_repeats_unless_setting_loses_state(
    caution: Any, mostly: Any, repeating: Any, refutable: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(distribution, "PairedEvidence", lambda bench, **more: SimpleNamespace(bench=bench, **more))
    announced: list[Any] = []
    bench: Any = SimpleNamespace(
        caution=caution,
        options=SimpleNamespace(fail_fast=False, samples=4000),
        words=("g", "h"),
        budget=SimpleNamespace(add=lambda part, source, planned: announced.append((part, planned))),
    )
    made = DistributionEvidence(bench, frozenset(repeating), frozenset(mostly))
    assert made._refutable == refutable
    assert announced == [(part, 2) for part in STEP_PARTS]
    assert [look.last for look in made._looks] == [True]  # parts that repeat need all pairs
    assert made._violation is None
    random = DistributionEvidence(bench, frozenset())
    assert [look.share for look in random._looks] == [1 / 8, 1 / 4, 1 / 2, 1.0]
    assert [look.share for look in random._waiting] == [1 / 8, 1 / 4, 1 / 2]
