"""How images of states are made, and normalising wrappers that break a claim, by themselves."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from symcheck.engine.environments.causes import statistics_of_wrappers as statistics
from symcheck.engine.environments.subject import placement as placing
from symcheck.engine.environments.subject.placement import Placement, Situation
from symcheck.engine.results import PropertyResult
from symcheck.envs.state_access.record import StateAccess
from symcheck.groups import catalog
from symcheck.spaces.coordinates import Coordinates
from symcheck.verdict import Facts, ReasonCode, decide

NAN = float("nan")
ANY: Any = None


def access_of(**more: Any) -> StateAccess:
    return StateAccess(lambda env, state: None, "a world", **more)


@pytest.mark.parametrize(
    ("access", "has_state", "shows", "kind", "missing"),
    [
        (None, False, False, None, "states_not_settable"),
        (None, True, True, None, "states_not_settable"),
        (access_of(), False, True, "observation", None),
        (access_of(), True, True, "observation", None),
        (access_of(get=len), True, True, "map", None),
        (access_of(get=len), False, True, "observation", None),
        (access_of(get=len, from_observation=len), False, True, "observation", None),
        (access_of(get=len, from_observation=len), False, False, "inverse", None),
        (access_of(get=len, from_observation=len), True, False, "map", None),
        (access_of(get=len), False, False, None, "state_map_missing"),
    ],
)
def test_images_are_made_by_the_first_way_that_the_access_allows(
    access: Any, has_state: bool, shows: bool, kind: Any, missing: Any
) -> None:
    bound: Any = SimpleNamespace(has_state=has_state)
    chosen, why = placing._choose_kind(access, bound, shows)
    assert chosen == kind
    assert (None if why is None else why.code) == missing


@pytest.mark.parametrize(
    ("state", "form", "made"),
    [
        (np.array([1.0, 2.0]), (0.0, 0.0), (1.0, 2.0)),
        (np.array([1.0, 2.0]), [0, 0], [1.0, 2.0]),
        (np.array([[1.0, 2.0]]), np.zeros(2), [1.0, 2.0]),
        (np.array([1.0, 2.0, 3.0]), (0.0, 0.0), [1.0, 2.0, 3.0]),
        (np.array([1.0, 2.0, 3.0]), np.zeros(2), [1.0, 2.0, 3.0]),
        (np.array([3.0]), 5, 3),
        (np.float64(3.0), 5.0, 3.0),
        (np.array([3.0, 4.0]), 5, [3.0, 4.0]),
        ((1, 2), np.zeros(2), (1, 2)),
        ("text", (0,), "text"),
    ],
)
def test_a_state_takes_the_form_in_which_it_is_read(state: Any, form: Any, made: Any) -> None:
    shaped = placing._in_form(state, form)
    assert (shaped.tolist() if isinstance(shaped, np.ndarray) else shaped) == made
    kept = isinstance(state, str | tuple)
    if not isinstance(shaped, np.ndarray):
        assert type(shaped) is type(state if kept else form)
    assert placing._in_form(state, None) is state


def test_a_value_takes_the_dtype_and_shape_of_an_example_of_its_size() -> None:
    made = placing._as_like([1, 2, 3, 4], np.zeros((2, 2), np.float32))
    assert (made.dtype, made.tolist()) == (np.float32, [[1.0, 2.0], [3.0, 4.0]])
    assert placing._as_like([1, 2], np.zeros((2, 2))).tolist() == [1, 2]
    value = {"x": [1]}
    copied = placing._as_like(value, "no array")
    assert copied == value
    assert copied is not value


@pytest.mark.parametrize(
    ("form", "size", "shape"),
    [((2, 2), 4, (3, 2, 2)), ((4,), 4, (3, 4)), ((2, 3), 4, (3, 4)), ((), 1, (3, 1))],
)
def test_stacked_states_reach_a_map_in_the_shape_that_it_expects(form: Any, size: int, shape: Any) -> None:
    seen: list[Any] = []

    def image(word: Any, states: Any) -> Any:
        seen.append((word, states.shape))
        return -states.reshape(len(states), -1)

    states = np.arange(3.0 * size).reshape(3, size)
    made = placing._in_shape(image, form, ("g",), states)
    np.testing.assert_array_equal(made, -states)
    assert seen == [(("g",), shape)]


@pytest.mark.parametrize(
    ("claimed", "shows"),
    [(np.array([1.0, NAN]), True), (np.array([1.0, 2.0]), False), (np.array([1.0, NAN, 3.0]), False), ("text", False),
     ([1.0, NAN], True)],
)  # fmt: skip
def test_a_claimed_observation_is_the_actual_one_number_by_number(claimed: Any, shows: bool) -> None:
    obs = np.array([1.0, NAN])
    stepper: Any = SimpleNamespace(codec=SimpleNamespace(flatten=lambda x: np.asarray(x, float)))
    assert placing._shows(stepper, claimed, obs, obs) is shows


class Steps:
    """Five states whose observations may hide or change something."""

    first_obs = np.zeros(2)

    def __init__(self, access: Any, *, wrong: int = -1, end: int = -1, words: int = -1) -> None:
        self.access, self.t, self.resets = access, 0, 0
        self.wrong, self.end, self.words = wrong, end, words
        self.codec = SimpleNamespace(flatten=lambda obs: np.asarray(obs, float))
        self.env = SimpleNamespace(action_space=SimpleNamespace(sample=lambda: 0))

    def reset(self) -> Any:
        self.resets += 1
        return self.shown()

    def shown(self) -> Any:
        return np.array([float(self.t), 1.0 + (self.t == self.wrong)])

    def read_raw(self) -> Any:
        return "text" if self.t == self.words else np.array([float(self.t), 1.0])

    def step(self, action: Any) -> Any:
        self.t += 1
        return SimpleNamespace(obs=self.shown(), terminated=self.t == self.end, truncated=self.t == self.end + 1)


def inspect(access: Any, **more: Any) -> Any:
    stepper: Any = Steps(access, **more)
    return (*placing._inspect_access(stepper), stepper)


def test_an_observation_is_the_state_if_every_one_of_five_agrees() -> None:
    observed = access_of(get=len, observe=np.array, from_observation=len, box=True)
    same, shows, visited, stepper = inspect(observed)
    assert (same, shows, len(visited), stepper.resets) == (observed, True, 5, 1)
    assert [vector.tolist() for vector, _ in visited] == [[float(t), 1.0] for t in range(5)]
    for wrong in range(5):
        hidden, shows, _, _ = inspect(observed, wrong=wrong)
        assert not shows
        assert (hidden.observe, hidden.from_observation, hidden.box) == (None, None, False)
    assert inspect(observed, wrong=5)[1]
    assert inspect(observed, end=2)[3].resets == 3  # after a termination, and after a truncation
    _, shows, visited, _ = inspect(access_of(get=len), words=3)
    assert (shows, visited) == (False, [])


@pytest.mark.parametrize(("access", "shows"), [(None, False), (access_of(), True)])
def test_without_reading_states_the_observation_is_the_state_or_there_is_none(access: Any, shows: bool) -> None:
    stepper: Any = SimpleNamespace(access=access)
    assert placing._inspect_access(stepper) == (access, shows, [])


def placement_of(**fields: Any) -> Any:
    made: Any = object.__new__(Placement)
    given: dict[str, Any] = {"kind": "observation", "_double": False, "_sharp": [], "form": None, "inner": None}
    for name, value in (given | fields).items():
        setattr(made, name, value)
    return made


def test_a_state_that_was_rounded_is_recomputed_where_the_image_is_the_same_one() -> None:
    turn = SimpleNamespace(apply=lambda states: -np.asarray(states))
    made = placement_of(
        _sharp=[turn, SimpleNamespace(apply=lambda states: 2 * np.asarray(states))], _access=access_of()
    )
    states = np.array([0.1, 1000.0, 5.0])
    rounded = np.array([-0.1 - 1e-6, -1000.01, -5.1])
    sharp = made._sharpen((0,), rounded, states)
    assert sharp.tolist() == [-0.1, -1000.0, -5.1]
    at = np.array([-0.1 - 0.999e-5 * 1.1, -1000.0 - 1.001e-5 * 1001, -5.0])
    assert made._sharpen((0,), at, states).tolist() == [-0.1, at[1], -5.0]
    # Letters are applied from the last to the first.
    order: list[str] = []
    made._sharp = [
        SimpleNamespace(apply=lambda s: order.append("a") or s),
        SimpleNamespace(apply=lambda s: order.append("b") or s),
    ]
    made._map_by_generators((0, 1), states)
    assert order == ["b", "a"]


def test_angles_are_recomputed_up_to_whole_turns_of_states_known_by_their_observation() -> None:
    still = SimpleNamespace(apply=lambda states: np.asarray(states))
    states, turn = np.array([3.0, 3.0]), 2 * np.pi
    made = placement_of(_sharp=[still], _access=access_of(angles=(0,)), kind="inverse")
    np.testing.assert_allclose(made._sharpen((0,), states - turn, states), [3.0 - turn, 3.0 - turn])
    assert made._sharpen((0,), states - turn, states)[0] == 3.0 - turn
    made.kind = "map"
    rounded = np.array([3.0 - turn + 1e-7, 3.0 + 1e-7])
    assert made._sharpen((0,), rounded, states).tolist() == [rounded[0], 3.0]


@pytest.mark.parametrize(
    ("state", "access", "form", "obs", "why"),
    [
        (np.zeros(3), access_of(), None, np.zeros(2), "expected 2 numbers"),
        (np.zeros(2), access_of(), None, np.zeros(2), ""),
        ("text", access_of(), None, np.zeros(2), "expected 2 numbers"),
        ("text", access_of(), None, 5, ""),
        (np.zeros(3), access_of(get=len), np.zeros(2), np.zeros(7), "where get returns 2 numbers"),
        (np.zeros(2), access_of(get=len), np.zeros(2), np.zeros(7), ""),
        (np.zeros(3), access_of(get=len), "text", np.zeros(7), ""),
        ("text", access_of(get=len), np.zeros(2), np.zeros(7), "where get returns 2 numbers"),
    ],
)
def test_what_is_no_state_is_told_by_its_count_of_numbers(
    state: Any, access: Any, form: Any, obs: Any, why: str
) -> None:
    made = placement_of(_access=access, form=form, _stepper=SimpleNamespace(first_obs=obs))
    told = made.not_a_state(state)
    assert told.startswith(why) if why else told == ""


def test_situations_hold_what_must_be_set() -> None:
    obs, held = np.array([1.0]), np.array([2.0])
    black = placement_of(kind=None)
    assert black.visited_situation(obs, held, "start") == Situation(None, obs, "start")
    read = placement_of(kind="map", _access=access_of(get=len))
    assert read.visited_situation(obs, held, "start").state is held
    shown = placement_of(kind="observation", _access=access_of())
    assert shown.visited_situation(obs, held, "start").state is obs
    assert shown.showing(obs, None, "report").state is obs
    assert shown.showing(obs, held, "report").state is held
    inverse = placement_of(
        kind="inverse", _access=access_of(get=len, from_observation=lambda shown: ("from", shown[0]))
    )
    assert inverse.visited_situation(obs, held, "start").state == ("from", 1.0)
    with pytest.raises(ValueError, match="a black box has no state access"):
        _ = placement_of(_access=None).access


def test_a_proposed_state_is_one_whose_observation_is_known() -> None:
    stepper = SimpleNamespace(first_obs=np.zeros(2, np.float32))
    plain = placement_of(_access=access_of(), _stepper=stepper).at([1, 2], "sample")
    assert plain.state is plain.obs
    assert plain.obs.dtype == np.float32
    assert placement_of(_access=access_of(get=len), _stepper=stepper).at([1, 2], "sample") is None
    observed = access_of(
        get=len, observe=lambda state: np.asarray(state) + 10.0, from_observation=lambda obs: obs - 10.0
    )
    for kind, double, state in (("inverse", False, [1.0, 2.0]), ("observation", False, [1.0, 2.0]),
                                ("observation", True, [1, 2]), ("map", False, [1, 2])):  # fmt: skip
        made = placement_of(kind=kind, _double=double, _access=observed, _stepper=stepper).at([1, 2], "sample")
        assert made.obs.tolist() == [11.0, 12.0]
        assert list(made.state) == state


def wrapper(
    mean: Any, deviation: Any, matrix: Any, *, warmed: bool = False, offset: Any = None, known: bool = True
) -> Any:
    """The finding about a normaliser under a linear claim on two numbers."""
    moments = SimpleNamespace(mean=np.array(mean), var=np.array(deviation, float) ** 2, count=10.0)
    held = statistics.Normaliser(SimpleNamespace(), moments if known else None)
    rows = np.array(matrix, float)
    shift = np.zeros(len(rows)) if offset is None else np.array(offset, float)
    zeros = np.zeros(2)
    coordinates = Coordinates(("x", "y"), zeros, zeros, zeros, zeros)
    stepper = SimpleNamespace(first_obs=np.zeros(2), codec=SimpleNamespace(coordinates=coordinates), warmed=warmed)
    bound = SimpleNamespace(observation=lambda word, obs: rows @ np.asarray(obs, float) + shift)
    pairs: Any = SimpleNamespace(stepper=stepper, bound=bound)
    return statistics._asymmetry(held, pairs, (0,))


FLIP, SWAP = [[-1, 0], [0, 1]], [[0, 1], [1, 0]]


@pytest.mark.parametrize(
    ("mean", "deviation", "matrix", "found"),
    [
        ([0.0, 3.0], [1.0, 2.0], FLIP, None),
        ([0.5, 3.0], [1.0, 2.0], FLIP, ("mean", "x", 0.5, -0.5)),
        ([0.49e-5, 3.0], [1.0, 2.0], FLIP, None),
        ([0.51e-5, 3.0], [1.0, 2.0], FLIP, ("mean", "x", 0.51e-5, -0.51e-5)),
        ([0.49e-4, 3.0], [10.0, 2.0], FLIP, None),
        ([0.5, 0.5], [1.0, 1.0], SWAP, None),
        ([0.5, 0.7], [1.0, 1.0], SWAP, ("mean", "x", 0.5, 0.7)),
        ([0.5, 0.5], [1.0, 3.0], SWAP, ("standard deviation", "x", 1.0, 3.0)),
        ([0.5, 0.5], [1.0, 1.0 + 0.9e-5], SWAP, None),
        ([0.5, 0.5], [1.0, 0.0], SWAP, ("standard deviation", "x", 1.0, 0.0)),
    ],
)
def test_a_normaliser_commutes_with_a_claim_that_keeps_its_mean_and_its_deviations(
    mean: Any, deviation: Any, matrix: Any, found: Any
) -> None:
    fields = wrapper(mean, deviation, matrix)
    told = None if fields is None else tuple(fields[key] for key in ("statistic", "coordinate", "value", "image"))
    assert told == (None if found is None else (*found[:2], pytest.approx(found[2]), pytest.approx(found[3])))
    if fields is not None:
        assert "steps" not in fields
        assert wrapper(mean, deviation, matrix, warmed=True)["steps"] == 500
        assert wrapper(mean, deviation, matrix, offset=[1.0, 0.0]) is None
        assert wrapper(mean, deviation, matrix, known=False) is None
        assert wrapper([*mean, 0.0], [*deviation, 1.0], matrix) is None


def name_cause(result: PropertyResult, off: bool, monkeypatch: pytest.MonkeyPatch) -> PropertyResult:
    fields = {"wrapper": "Norm", "statistic": "mean", "coordinate": "x", "value": 0.5, "image": -0.5}
    asked: list[Any] = []

    def asymmetry(each: Any, pairs: Any, word: Any) -> Any:
        asked.append((each, word))
        return fields if off and word == (1,) else None

    monkeypatch.setattr(statistics, "normalisers", lambda env: ["first"])
    monkeypatch.setattr(statistics, "_asymmetry", asymmetry)
    group = catalog.product(catalog.cyclic(2), catalog.cyclic(2))
    pairs: Any = SimpleNamespace(stepper=SimpleNamespace(env=gym.Env()), bound=SimpleNamespace(group=group))
    return statistics.name_statistics(result, pairs)


def outcome(name: str, verdict: str, method: str = "distribution", *, facts: bool = True) -> PropertyResult:
    known = Facts(checked=9, violations=int(verdict == "failed"))
    made, reason = decide(known)
    return PropertyResult(name, made if verdict != "undecided" else "undecided", method, checked=9, reason=reason,
                          facts=known if facts else None, bound={"kind": "x"})  # fmt: skip


def test_a_wrapper_that_breaks_the_claim_is_named_and_a_weak_pass_becomes_open(monkeypatch: pytest.MonkeyPatch) -> None:
    failed = outcome("transition_invariance", "failed")
    assert [cause.code for cause in name_cause(failed, True, monkeypatch).causes] == ["SYM032"]
    weak = name_cause(outcome("transition_invariance", "passed"), True, monkeypatch)
    assert (weak.verdict, weak.bound) == ("undecided", None)
    assert weak.reason is not None
    assert weak.reason.code == ReasonCode.STATISTICS_ASYMMETRIC.value
    start = name_cause(outcome("initial_invariance", "passed"), True, monkeypatch)
    assert start.verdict == "undecided"
    for kept in (
        outcome("reward_invariance", "failed"),
        outcome("transition_invariance", "undecided"),
        outcome("transition_invariance", "passed", "paired"),
        outcome("transition_invariance", "passed", "exact"),
        outcome("transition_invariance", "passed", facts=False),
    ):
        assert name_cause(kept, True, monkeypatch) is kept
    assert name_cause(failed, False, monkeypatch) is failed
