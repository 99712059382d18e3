"""Methods and samples of environment checks by themselves: whole episodes, single pairs, starts, edges of boxes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from symcheck.engine.environments.cases import between as between_states
from symcheck.engine.environments.cases.edges import Tie
from symcheck.engine.environments.cases.pairs import Pairs
from symcheck.engine.environments.cases.pool import _rim_index, move_to_edges
from symcheck.engine.environments.controls import determinism
from symcheck.engine.environments.methods import start as starts
from symcheck.engine.environments.methods import whole_episodes
from symcheck.engine.environments.methods.counterexamples import SinglePairs, _as_reported, _has_more_digits
from symcheck.engine.environments.methods.whole_episodes import WholeEpisodes
from symcheck.engine.results import PropertyResult
from symcheck.envs.stepping.step_differences import FAR_ABOVE
from symcheck.errors import SpecError, SymcheckError, TargetError
from symcheck.statements.statement import state
from symcheck.verdict import ReasonCode

RNG = np.random.default_rng
NAN = float("nan")


def test_every_fourth_state_of_a_box_moves_to_either_edge_or_to_zero() -> None:
    states = RNG(0).uniform(-1, 2, size=(4000, 3))
    moved = move_to_edges(states, RNG(1))
    low, high = states.min(axis=0), states.max(axis=0)
    changed = moved != states
    assert changed.any(axis=1).mean() == pytest.approx(0.25 * (1 - 0.6**3), abs=0.02)
    assert changed[changed.any(axis=1)].mean() == pytest.approx(0.4 / (1 - 0.6**3), abs=0.03)
    for edge in (low, high, np.zeros(3)):
        assert (moved == edge)[changed].mean() == pytest.approx(1 / 3, abs=0.04)
    assert (changed <= ((moved == low) | (moved == high) | (moved == 0))).all()
    positive = move_to_edges(states + 5.0, RNG(1))
    assert positive.min() >= 4.0  # zero is outside: its nearest edge


def test_states_at_the_rim_are_chosen_in_units_of_their_spread() -> None:
    flats = RNG(0).normal(size=(300, 2)) * [1.0, 1000.0]
    flats = np.concatenate([flats, np.full((300, 1), 7.0)], axis=1)
    rng = RNG(1)
    chosen = np.array([_rim_index(flats, rng) for _ in range(400)])
    far = np.abs((flats - flats.mean(axis=0)) / np.where(flats.std(axis=0) > 0, flats.std(axis=0), 1.0))
    assert far[chosen, 0].mean() > 1.5 * far[:, 0].mean()
    assert far[chosen, 1].mean() > 1.5 * far[:, 1].mean()
    signs = np.sign(flats[chosen] - flats.mean(axis=0))[:, :2]
    assert (np.abs(signs.mean(axis=0)) < 0.2).all()
    assert len(set(chosen.tolist())) > 20


def blame(image: Any, *, has_state: bool = False, problem: str = "not a state") -> Any:
    bounds = SimpleNamespace(names=("x[0]",), low=np.array([-1.0]), high=np.array([1.0]), epsilon=np.ones(1))
    codec = SimpleNamespace(coordinates=bounds, flatten=lambda x: np.asarray(x, float))
    made: Any = SimpleNamespace(stepper=SimpleNamespace(codec=codec), bound=SimpleNamespace(has_state=has_state))
    case: Any = SimpleNamespace(
        image=SimpleNamespace(obs=image, state=7), situation=SimpleNamespace(obs=np.array([0.5]), state=5)
    )
    return Pairs._blame_map(made, case, TargetError(problem, where="", remedy=""))


def test_an_error_is_blamed_on_the_map_whose_image_is_no_state() -> None:
    inside, raised = np.array([0.5]), "setting the state 7 raised ValueError"
    assert blame(inside) is None
    assert blame(inside, has_state=True) is None
    assert blame(inside, problem=raised) is None
    with pytest.raises(SpecError, match=r"observation map leaves the space of states: the image of .*0\.5.* is "):
        blame(np.array([1.5]))
    with pytest.raises(SpecError, match="state map leaves the space of states: the image of 5 is 7, and the"):
        blame(inside, has_state=True, problem=raised)


@pytest.mark.parametrize("closed_above", [True, False])
def test_a_threshold_between_states_is_told_with_the_side_that_ends(
    closed_above: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = [SimpleNamespace(word=word) for word in ("a", "b", "b", "a")]
    ending = SimpleNamespace(
        expected=np.array([[1.0], [0.0], [1.0], [0.0]]), actual=np.array([[1.0], [1.0], [0.0], [1.0]])
    )
    transition = SimpleNamespace(coordinates=SimpleNamespace(names=("x", "v")))
    asked: list[Any] = []

    def one_sided(pairs: Any, word: Any, moved: Any, ended: Any, rows: Any) -> Tie | None:
        asked.append((word, rows))
        return Tie(1, 1, 2.5, closed_above=closed_above) if word == "b" else None

    given: dict[str, Any] = {"cases": cases}
    monkeypatch.setattr(between_states, "one_sided_tie", one_sided)
    monkeypatch.setattr(between_states, "threshold_cases", lambda *told, between: given["cases"])
    pairs: Any = SimpleNamespace(
        measure=lambda cases: cases, comparison=lambda part, measured: transition if part == "transition" else ending
    )
    call: Any = (pairs, None, ("a", "b"), RNG(0), lambda: True)
    found = between_states.between(*call)
    assert asked == [("a", [3]), ("b", [1, 2])]
    assert found.count == 4
    assert found.doubt is not None
    end = 2.5 if closed_above else -2.5
    assert found.doubt.code == ReasonCode.THRESHOLD_IN_DOUBT.value
    assert dict(found.doubt.fields) == {"coordinate": "v", "ends_at": end, "goes_on_at": -end}
    assert between_states.between(pairs, None, ("a",), RNG(0), lambda: True) == between_states.Between(4)  # type: ignore[arg-type]
    given["cases"] = []
    assert between_states.between(*call) == between_states.Between()

    def refusing(cases: Any) -> Any:
        raise SymcheckError("no state", where="")

    given["cases"], pairs.measure = cases, refusing
    assert between_states.between(*call) == between_states.Between()


def explained(observation: Any, actual: Any, *, spread: float = 1.0) -> Any:
    """Starts with these means under a linear map, in three coordinates."""
    rng = RNG(0)
    noise = rng.normal(size=(400, 3))
    noise = (noise - noise.mean(axis=0)) / noise.std(axis=0)
    sample: Any = SimpleNamespace(word=(0,), actual=np.asarray(actual) + spread * noise)
    bound = SimpleNamespace(observation=lambda word, obs: observation(np.asarray(obs)))
    pairs: Any = SimpleNamespace(bound=bound, stepper=SimpleNamespace(first_obs=np.zeros(3)))
    return pairs, sample, SimpleNamespace(names=("x", "y", "z"))


def test_a_centre_beside_the_fixed_point_is_told_from_three_standard_errors_on() -> None:
    def explain(mean: float, j: int = 0, flip: Any = lambda x: np.array([3.0, 0.0, 0.0]) - x) -> list[Any]:
        pairs, sample, names = explained(flip, [mean, 0.0, 0.0])
        return starts._explain_centre(pairs, sample, j, names)

    (cause,) = explain(2.0)
    assert (cause.code, dict(cause.fields)) == ("SYM041", {"coordinate": "x", "centre": 2.0, "fixed": 1.5})
    assert explain(1.5 + 2.9 / 20) == []
    assert explain(1.5 + 3.1 / 20) != []
    assert explain(1.5 - 3.1 / 20) != []
    assert explain(2.0, 1) == []
    assert explain(2.0, flip=lambda x: np.array([3.0 - x[0] + 0.5 * x[1], x[1], x[2]])) == []
    assert explain(2.0, flip=lambda x: x) == []
    assert explain(2.0, flip=lambda x: np.sin(x)) == []


def test_exchanged_coordinates_are_told_by_their_means_or_their_spreads() -> None:
    def explain(means: Any, spreads: Any = (1.0, 1.0, 1.0), sign: float = 1.0) -> list[Any]:
        pairs, sample, names = explained(lambda x: np.array([sign * x[1], sign * x[0], x[2]]), np.zeros(3))
        sample.actual = sample.actual * np.asarray(spreads) + np.asarray(means)
        return [(cause.code, dict(cause.fields)) for cause in starts._explain_exchanges(pairs, sample, names)]

    error = np.sqrt(2) / 20
    assert explain([0.0, 0.0, 9.0]) == []
    assert explain([0.0, 5.9 * error, 0.0]) == []
    ((code, fields),) = explain([0.0, 6.1 * error, 0.0])
    assert (code, fields["source"], fields["image"], fields["exchanged"]) == ("SYM042", "y", "x", True)
    assert (fields["source_mean"], fields["image_mean"]) == (0.4, 0.0)
    assert explain([1.0, -1.0, 0.0], sign=-1.0) == []
    assert explain([1.0, 1.0, 0.0], sign=-1.0)[0][0] == "SYM042"
    assert explain([0.0] * 3, (1.0, 1.24, 1.0)) == []
    ((code, fields),) = explain([0.0] * 3, (1.0, 1.27, 1.0))
    assert (code, fields["source_deviation"], fields["image_deviation"]) == (
        "SYM046",
        pytest.approx(1.27),
        pytest.approx(1.0),
    )
    pairs, sample, names = explained(lambda x: np.roll(x, 1), [0.0, 9.0, 30.0])
    assert len(starts._explain_exchanges(pairs, sample, names)) == 2
    assert not any(cause.fields["exchanged"] for cause in starts._explain_exchanges(pairs, sample, names))


@pytest.mark.parametrize(
    ("value", "error", "shown"),
    [(1.23456, 0.05, 1.2), (1.23456, 0.005, 1.23), (1.23456, 2.0, 1.0), (-0.001, 0.1, 0.0), (1.23456, 0.0, 1.23456)],
)
def test_a_mean_is_rounded_to_its_standard_error(value: float, error: float, shown: float) -> None:
    assert starts._round_to_error(value, error) == shown
    assert np.signbit(starts._round_to_error(-0.001, 0.1)) == 0


@pytest.mark.parametrize(
    ("spec", "registered"),
    [
        (None, False),
        (SimpleNamespace(nondeterministic=False), True),
        (SimpleNamespace(nondeterministic=True), False),
        (object(), False),
    ],
)
def test_hidden_state_is_told_with_what_the_environment_is_registered_as(
    spec: Any, registered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def check(share: float, ends: bool = False) -> Any:
        loss = SimpleNamespace(
            share=np.array([share, 0.0]), ends=ends, fields=dict, of=lambda part, dim: np.full(dim, 0.5)
        )
        monkeypatch.setattr(determinism, "measure_loss", lambda coordinates, differences: loss)
        monkeypatch.setattr(determinism, "compare_steps", lambda coordinates, known, other: None)
        monkeypatch.setattr(determinism, "_step_seeded", lambda *told: [])
        monkeypatch.setattr(determinism, "reset_all", lambda stepper, seed: None)
        codec = SimpleNamespace(coordinates=SimpleNamespace(dim=3))
        stepper: Any = SimpleNamespace(codec=codec, env=SimpleNamespace(spec=spec))
        return determinism._hidden_state_survives(stepper, [1, 2], [0, 0], [], 0, RNG(0))

    most, little = determinism._MOST_LOST, determinism._NEGLIGIBLE
    for share, ends in ((most * 1.01, False), (0.0, True)):
        leaky = check(share, ends)
        assert leaky.behaviour == "leaky"
        assert leaky.finding.fields["registered_deterministic"] is registered
    for share, cautious in ((most, True), (little * 1.01, True), (little, False), (0.0, False)):
        kept = check(share)
        assert kept.behaviour == "deterministic"
        assert (kept.caution is not None) is cautious
        assert kept.noise["transition"].tolist() == [0.5 * FAR_ABOVE] * 3
        assert kept.noise["reward"].tolist() == [0.5 * FAR_ABOVE]
        assert (kept.finding.fields["pairs"], kept.finding.fields["share"]) == (2, share)


def test_parts_repeat_if_they_agree_in_enough_pairs() -> None:
    def step(reward: float = 0.0, terminated: bool = False, flat: Any = (0.0, 1.0)) -> Any:
        return SimpleNamespace(reward=reward, terminated=terminated, flat=np.array(flat))

    first = [step(), step(NAN, flat=(NAN, 1.0)), step(), step()]
    same = [step(), step(NAN, flat=(NAN, 1.0)), step(), step()]
    assert determinism._repeating_parts(first, same) == {"reward", "termination", "transition"}
    for other, left in (
        (step(0.5), {"termination", "transition"}),
        (step(terminated=True), {"reward", "transition"}),
        (step(flat=(0.0, 2.0)), {"reward", "termination"}),
        (step(NAN), {"termination", "transition"}),
    ):
        assert determinism._repeating_parts(first, [*same[:3], other]) == left
        assert len(determinism._repeating_parts(first, [*same[:3], other], share=0.75)) == 3
        assert determinism._repeating_parts(first, [*same[:3], other], share=0.76) == left


class Steps:
    """A stepper whose outcome may depend on the state that was set, or on nothing but the seed."""

    def __init__(self, settable: bool) -> None:
        self.settable, self.seeds = settable, list[int]()

    def outcome(self, held: Any, action: Any) -> Any:
        shown = np.array([float(held[0]) if self.settable else 0.0, float(action)])
        return SimpleNamespace(flat=shown, reward=0.0, terminated=False)


@pytest.mark.parametrize("settable", [True, False])
def test_setting_has_no_effect_if_every_state_gives_one_outcome(
    settable: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(determinism, "reset_all", lambda stepper, seed: stepper.seeds.append(seed))
    tried, actions = determinism._TRIED, list(range(determinism._ACTIONS + 2))
    states = [np.array([float(k)]) for k in range(tried)]
    stepper: Any = Steps(settable)
    assert determinism._setting_has_no_effect(stepper, states, actions, 100) is (not settable)
    if not settable:
        assert stepper.seeds == [100 + k for k in range(determinism._ACTIONS) for _ in range(tried)]
    assert not determinism._setting_has_no_effect(Steps(False), states[:-1] * 2, actions, 0)  # type: ignore[arg-type]


def shown_pairs(
    residual: Any, limits: Any, *, part: Any = "transition", dim: int = 2, careful: Any = None
) -> SinglePairs:
    residual, limits = np.atleast_2d(residual), np.atleast_2d(limits)
    size = residual.shape[1]
    comparison = SimpleNamespace(
        part=part,
        residual=lambda: residual,
        expected=np.arange(1.0, size + 1)[None],
        actual=np.arange(1.0, size + 1)[None],
        coordinates=SimpleNamespace(names=tuple("abcdef"[:size])),
    )
    codec = SimpleNamespace(coordinates=SimpleNamespace(dim=dim))
    pairs = SimpleNamespace(
        stepper=SimpleNamespace(codec=codec),
        measure=lambda cases: cases,
        comparison=lambda part, measured: comparison,
        bound=SimpleNamespace(label=str),
        placement=SimpleNamespace(kind="observation"),
    )
    clock = SimpleNamespace(overtime=lambda: np.errstate())
    bench: Any = SimpleNamespace(pairs=pairs, rng=lambda name: RNG(0), clock=clock)
    tolerance: Any = SimpleNamespace(
        of=lambda comparison: limits,
        local_tolerance=lambda *told: limits if careful is None else np.atleast_2d(careful),
    )
    return SinglePairs(bench, tolerance)


def test_a_pair_violates_beyond_its_tolerance_visibly_plainly_or_carefully() -> None:
    case: Any = SimpleNamespace()

    def violates(residual: Any, limits: Any, careful: Any = None, **how: Any) -> bool:
        return shown_pairs(residual, limits, careful=careful).violates("transition", case, **how)

    assert not violates([0.1, 0.1, 0.1], [0.1, 0.1, 0.1])
    assert violates([0.1, 0.11, 0.1], [0.1, 0.1, 0.1])
    assert violates([NAN, 0.0, 0.0], [0.1, 0.1, 0.1])
    assert violates([0.0, 0.0, 0.5], [0.1, 0.1, 0.1])
    assert not violates([0.0, 0.0, 0.5], [0.1, 0.1, 0.1], visibly=True)
    assert violates([0.0, 0.5, 0.0], [0.1, 0.1, 0.1], visibly=True)
    assert violates([0.0, 2.1e-5, 0.0], [0.0, 0.0, 0.0], plainly=True)  # of a number of size 2
    assert not violates([0.0, 1.9e-5, 0.0], [0.0, 0.0, 0.0], plainly=True)
    assert not violates([0.5, 0.0, 0.0], [0.1, 0.1, 0.1], careful=[1.0, 1.0, 1.0], carefully=True)
    assert violates([0.5, 0.0, 0.0], [0.9, 0.9, 0.9], careful=[0.1, 0.1, 0.1], carefully=True)


def test_the_coordinate_that_exceeds_most_is_shown_and_one_that_is_observed_first() -> None:
    def worst(residual: Any, limits: Any) -> int:
        pairs = shown_pairs(residual, limits)
        comparison = pairs.bench.pairs.comparison("transition", None)  # type: ignore[arg-type]
        return pairs._worst_column(comparison, comparison.residual())

    assert worst([0.2, 0.6, 0.0], [0.1, 0.2, 0.1]) == 1
    assert worst([0.2, 0.2, 9.0], [0.1, 0.2, 0.1]) == 0
    assert worst([0.05, 0.1, 9.0], [0.1, 0.2, 0.1]) == 2
    assert worst([5.0, 1e-12, 0.0], [0.1, 0.0, 0.0]) == 1

    def situation(obs: Any, held: Any) -> Any:
        return SimpleNamespace(obs=obs, state=held)

    assert not _has_more_digits(situation(np.array([0.5, NAN], np.float32), np.array([0.5, NAN])))
    assert _has_more_digits(situation(np.array([0.1], np.float32), np.array([0.1])))
    assert not _has_more_digits(situation(np.array([0.1], np.float32), (0.1,)))
    assert (_as_reported("termination", np.array([0.5])), _as_reported("termination", np.array([1.0]))) == (
        "truncated",
        True,
    )
    assert (_as_reported("termination", np.array([0.0])), _as_reported("reward", np.array([2.0]))) == (False, 2.0)
    case: Any = SimpleNamespace(
        word="g",
        situation=situation(np.array([0.5], np.float32), np.array([0.5])),
        action=1,
        image=SimpleNamespace(obs=-1),
        image_action=2,
    )
    for residual, observed, where in (([0.5, 0.0, 0.0], [1.0, 2.0], "a"), ([0.0, 0.0, 0.5], [3.0], "c")):
        pairs: Any = shown_pairs(residual, [0.1, 0.1, 0.1])
        show: Any = pairs.show
        example, measured = show("transition", case)
        assert (example.where, example.residual, np.asarray(example.expected).tolist()) == (where, 0.5, observed)
        assert (example.state, example.image_observation, example.image_action) == (None, -1, 2)
        assert measured == [case]
        pairs.bench.pairs.placement.kind = "map"
        assert pairs.show("transition", case)[0].state is not None


def result(verdict: Any, code: str = "", last: int | None = None, **reason: Any) -> PropertyResult:
    region = state("region_episodes", episodes=1, **({} if last is None else {"last_step": last}))
    told: Any = SimpleNamespace(code=code, fields=reason) if code else None
    return PropertyResult("name", verdict, "method", checked=1, reason=told, bound={"region": region})


HIDDEN = ReasonCode.HIDDEN_STATE.value


def judged(
    monkeypatch: pytest.MonkeyPatch,
    of_steps: PropertyResult,
    of_episodes: PropertyResult,
    *,
    code: str | None = HIDDEN,
    touched: Any = frozenset(("reward",)),
    ends_only: bool = False,
    method: str = "auto",
    cuts: Any = None,
    part: Any = "reward",
) -> PropertyResult:
    monkeypatch.setattr(
        whole_episodes,
        "TrajectoryEvidence",
        lambda *told, **more: SimpleNamespace(judge=lambda name, part: of_episodes),
    )
    caution: Any = None if code is None else SimpleNamespace(code=code, fields={}, text="")
    bench = SimpleNamespace(
        caution=caution,
        touched=touched,
        touches_ends_only=ends_only,
        options=SimpleNamespace(method=method),
        pairs=SimpleNamespace(own_cuts=cuts),
    )
    steps: Any = SimpleNamespace(
        bench=bench, method="paired", judge=lambda name, part: of_steps, refutes=lambda parts: False
    )
    return WholeEpisodes(steps, None).judge("name", part)  # type: ignore[arg-type]


def test_whole_episodes_decide_only_what_setting_a_state_leaves_open(monkeypatch: pytest.MonkeyPatch) -> None:
    open_, passed, failed = result("undecided", HIDDEN), result("passed"), result("failed")

    def explain(*given: Any, **more: Any) -> tuple[str, list[str]]:
        made = judged(monkeypatch, *given, **more)
        return made.verdict, [note.code for note in made.notes] + [cause.code for cause in made.causes]

    assert explain(failed, passed) == ("failed", [])
    assert explain(passed, failed, touched=frozenset()) == ("passed", [])
    assert explain(result("undecided", "another"), failed) == ("undecided", [])
    assert explain(result("undecided"), failed) == ("undecided", [])
    assert explain(open_, passed) == ("passed", ["episodes_instead"])
    assert explain(open_, failed) == ("failed", ["SYM051"])
    assert explain(open_, result("undecided", "few")) == ("undecided", ["episodes_undecided"])
    assert explain(open_, passed, method="paired") == ("undecided", ["episodes_only_refute"])
    assert explain(open_, passed, code="another") == ("undecided", [])
    other = result("undecided", "another")
    assert explain(other, passed, code="another") == ("undecided", ["episodes_only_refute"])
    assert explain(result("undecided", HIDDEN, hidden=3), passed) == ("undecided", ["episodes_detect_less"])
    assert explain(result("undecided", HIDDEN, hidden=3), failed) == ("failed", ["SYM051"])
    assert explain(open_, result("passed", last=250)) == ("undecided", ["episodes_cut_short"])
    assert explain(open_, result("failed", last=250)) == ("failed", ["SYM051"])
    assert explain(open_, passed, ends_only=True, method="paired") == ("passed", ["ends_of_episodes"])
    assert explain(open_, failed, ends_only=True) == ("failed", ["ends_of_episodes"])
    in_distribution = ReasonCode.HIDDEN_STATE_IN_DISTRIBUTION.value
    assert explain(result("undecided", in_distribution), passed, code=in_distribution) == (
        "passed",
        ["episodes_instead"],
    )


def test_ends_that_states_do_not_determine_are_judged_by_episodes(monkeypatch: pytest.MonkeyPatch) -> None:
    for cuts, part, verdict in (
        (None, "termination", "passed"),
        (SimpleNamespace(follow_states=True), "termination", "passed"),
        (SimpleNamespace(follow_states=False), "termination", "failed"),
        (SimpleNamespace(follow_states=False), "reward", "passed"),
    ):
        made = judged(monkeypatch, result("passed"), result("failed"), code=None, cuts=cuts, part=part)
        assert made.verdict == verdict
