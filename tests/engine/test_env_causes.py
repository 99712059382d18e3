"""Causes, leaks of slots and the group law by themselves: each threshold from both sides, each field of a statement."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from symcheck.engine.environments.causes import diagnosis
from symcheck.engine.environments.causes.violations import Violations
from symcheck.engine.environments.controls import slot_isolation, start_memory
from symcheck.engine.environments.methods import axioms
from symcheck.spaces.coordinates import SpaceCodec

NONE: Any = None
RNG = np.random.default_rng


def box_codec(low: Any = -10.0, high: Any = 10.0, dim: int = 2) -> SpaceCodec:
    bounds = (np.broadcast_to(np.float64(low), dim), np.broadcast_to(np.float64(high), dim))
    return SpaceCodec(spaces.Box(*bounds, dtype=np.float64), "obs")


def violations_of(
    before: Any, *, rewards: Any = None, after: Any = None, other: Any = None, images: Any = None, rows: Any = None
) -> Any:
    """Violations of cases with these observations; every case is one unless rows are given."""
    before = np.asarray(before, dtype=float)
    after = before if after is None else np.asarray(after, dtype=float)
    images = before if images is None else images
    codec, actions = box_codec(dim=before.shape[1]), box_codec(dim=1)
    cases = [
        SimpleNamespace(situation=SimpleNamespace(obs=obs), image=SimpleNamespace(obs=image), action=np.zeros(1))
        for obs, image in zip(before, images, strict=True)
    ]
    gap = np.zeros(len(before)) if rewards is None else np.asarray(rewards, dtype=float)
    left = SimpleNamespace(rewards=np.ones(len(before)), flat=after)
    right = SimpleNamespace(rewards=1.0 + gap, flat=after if other is None else np.asarray(other, dtype=float))
    stepper = SimpleNamespace(codec=codec, action_codec=actions)
    measured = SimpleNamespace(cases=cases, left=left, right=right)
    confirmed = list(range(len(before))) if rows is None else rows
    return SimpleNamespace(pairs=SimpleNamespace(stepper=stepper), measured=measured, confirmed=confirmed)


def test_a_difference_of_rewards_is_told_as_a_multiple_of_the_coordinate_it_follows() -> None:
    before = RNG(0).normal(size=(9, 2))
    after = RNG(1).normal(size=(9, 2))

    def explain(gap: Any, count: int = 9) -> dict[str, object] | None:
        cause = diagnosis._reward_term(violations_of(before[:count], rewards=gap[:count], after=after[:count]))
        return None if cause is None else {"code": cause.code, **cause.fields}

    assert explain(-2.5 * before[:, 1]) == {
        "code": "SYM020", "factor": pytest.approx(-2.5), "coordinate": "obs[1]", "of_next_state": False
    }  # fmt: skip
    assert explain(3.0 * after[:, 0]) == {
        "code": "SYM020", "factor": pytest.approx(3.0), "coordinate": "obs[0]", "of_next_state": True
    }  # fmt: skip
    assert explain(before[:, 0], 8) is not None
    assert explain(before[:, 0], 7) is None
    assert explain(before[:, 0] + before[:, 1]) is None
    assert explain(np.ones(9)) is None
    largest = int(np.argmax(np.abs(before[:, 0])))
    off = np.zeros(9)
    off[(largest + 1) % 9] = 1.0
    for size, found in ((5e-4, True), (3e-3, False)):
        assert (explain(before[:, 0] + size * np.abs(before[largest, 0]) * off) is not None) is found
    infinite = before[:, 0].copy()
    infinite[3] = np.inf
    assert explain(infinite) is None


def test_two_points_are_no_line_and_a_coordinate_that_is_no_number_is_left_out() -> None:
    for values, found in (([1.0, 2.0], False), ([1.0, -1.0, 1.0, -1.0], False), ([1.0, -1.0, 2.0], True),
                          ([0.0, 1.0, 2.0], True)):  # fmt: skip
        column = np.resize(values, 9)
        made = violations_of(np.stack([column, np.zeros(9)], axis=1), rewards=2.0 * column)
        assert (diagnosis._reward_term(made) is not None) is found, values
    column = np.arange(9.0)
    with_nan = np.stack([np.where(column == 4, np.nan, column), column], axis=1)
    cause = diagnosis._reward_term(violations_of(with_nan, rewards=column))
    assert cause is not None
    assert (cause.fields["coordinate"], cause.fields["factor"]) == ("obs[1]", pytest.approx(1.0))


@pytest.mark.parametrize(
    ("count", "share", "told"), [(8, 0.5, True), (7, 0.5, False), (8, 0.61, False), (9, 0.59, True)]
)
def test_a_value_that_eight_violations_and_few_other_pairs_have_is_named(count: int, share: float, told: bool) -> None:
    total = 200
    before = RNG(0).normal(size=(total, 2))
    before[: int(share * total), 1] = 3.0
    made = violations_of(before, rows=list(range(count)))
    causes = diagnosis._shared_value(made.pairs, made.measured, made.confirmed)
    assert [(cause.code, cause.fields) for cause in causes] == (
        [("SYM030", {"coordinate": "obs[1]", "value": 3.0})] if told else [])  # fmt: skip
    before[3, 1] = 4.0
    made = violations_of(before, rows=list(range(count)))
    assert diagnosis._shared_value(made.pairs, made.measured, made.confirmed) == []


def test_a_bound_at_which_one_side_alone_stops_is_named() -> None:
    before = np.zeros((20, 2))
    left, right = RNG(0).normal(size=(2, 20, 2))

    def explain(rows: list[int]) -> list[tuple[str, dict[str, object]]]:
        made = violations_of(before, after=left, other=right, rows=rows)
        return [(cause.code, dict(cause.fields)) for cause in diagnosis._wall(made.pairs, made.measured, rows)]

    assert explain([0, 1, 2]) == []
    assert explain([]) == []
    left[:3, 1] = 10.0
    assert explain([0, 1, 2]) == [("SYM023", {"coordinate": "obs[1]", "side": "upper", "bound": 10.0})]
    assert explain([0, 1, 3]) == []
    right[2, 1] = 10.0
    assert explain([0, 1, 2]) == []  # both sides stop there
    right[:3, 0] = -10.0 + 0.9e-5
    assert explain([0, 1, 2]) == [("SYM023", {"coordinate": "obs[0]", "side": "lower", "bound": -10.0})]
    right[:3, 0] = -10.0 + 1.1e-5
    assert explain([0, 1, 2]) == []
    left[:3, 1] = 0.0
    right[:17, 0] = -10.0
    assert explain([0, 1]) != []
    right[:18, 0] = -10.0
    assert explain([0, 1]) == []  # nearly all pairs stop there


def test_images_outside_the_space_are_told_if_most_violations_have_one() -> None:
    before = np.zeros((6, 2))
    outside = np.zeros((6, 2))
    outside[:3, 1] = 12.0
    for count, told in ((6, False), (5, True)):
        made = violations_of(before, images=outside, rows=list(range(count)))
        causes = diagnosis._places(made)
        assert [cause.code for cause in causes] == (["SYM024"] if told else [])
        if told:
            assert {name: causes[0].fields[name] for name in ("coordinate", "value", "bound")} == {
                "coordinate": "obs[1]", "value": 12.0, "bound": 10.0}  # fmt: skip


def side(terminated: bool, truncated: bool | None = None, *, numbers: int = 2, start: float = 0.0) -> Any:
    cut = None if truncated is None else np.array([truncated])
    flat = start + np.arange(float(numbers))[None]
    return SimpleNamespace(terminated=np.array([terminated]), truncated=cut, flat=flat)


def test_the_side_that_ends_comes_first_and_twelve_numbers_are_shown() -> None:
    ends, goes_on = side(True, start=5.0), side(False)
    for left, right in ((ends, goes_on), (goes_on, ends)):
        told = diagnosis._end_on_one_side(SimpleNamespace(left=left, right=right))  # type: ignore[arg-type]
        assert (told.code, told.fields["ends"], told.fields["goes_on"]) == ("SYM022", [5.0, 6.0], [0.0, 1.0])
        assert told.fields["dimensions"] == 2
        assert "truncated" not in told.fields
    cut = SimpleNamespace(left=side(False, False), right=side(False, True, start=5.0))
    told = diagnosis._end_on_one_side(cut)  # type: ignore[arg-type]
    assert (told.fields["ends"], told.fields["truncated"]) == ([5.0, 6.0], True)
    both = SimpleNamespace(left=side(True, True), right=side(False, False))
    assert "truncated" not in diagnosis._end_on_one_side(both).fields  # type: ignore[arg-type]
    wide = SimpleNamespace(left=side(True, numbers=13), right=side(False, numbers=13))
    assert len(diagnosis._end_on_one_side(wide).fields["ends"]) == 12  # type: ignore[arg-type]


def test_a_case_exceeds_its_tolerance_in_any_coordinate_and_nan_exceeds_every_one() -> None:
    tolerance: Any = SimpleNamespace(of=lambda comparison: np.array([[1.0, 2.0]]))
    made = Violations("reward", NONE, NONE, NONE, tolerance, [], 0.0, False, 1, NONE, NONE)
    residual = np.array([[1.0, 2.0], [1.1, 0.0], [0.0, 2.1], [np.nan, 0.0], [0.0, 0.0]])
    comparison: Any = SimpleNamespace(residual=lambda: residual)
    assert made.exceeding(comparison).tolist() == [False, True, True, True, False]


class LeakySlots:
    """Three slots, each of which adds its action; a neighbour's state may leak into another slot."""

    def __init__(self, leak: float = 0.0, into: int = 1, source: int = 2, noise: float = 0.0) -> None:
        self.count, self.noise = 3, noise
        self._leak, self._into, self._source = leak, into, source
        self._actions = self.drawn = RNG(7)
        self.states = np.zeros(3)

    def actions(self) -> list[Any]:
        return list(self._actions.normal(size=3))

    def step(self, taken: list[Any], read: bool = True) -> Any:
        self.states = self.states + np.asarray(taken, dtype=float)
        shown = self.states.copy()
        shown[self._into] += self._leak * self.states[self._source]
        if self.noise:
            shown = shown + self.drawn.normal(size=3) * self.noise
        ended = np.zeros(3, dtype=bool)
        return SimpleNamespace(observations=[np.array([x, 0.0]) for x in shown], rewards=np.zeros(3),
                               terminated=ended, truncated=ended)  # fmt: skip


class LeakyStepper:
    def __init__(self, slots: LeakySlots, settable: bool, *, seeded: bool = False) -> None:
        self.seeded = seeded
        self.slots, self.access, self.codec = slots, (object() if settable else None), box_codec()
        self.resets: list[int] = []

    def reset(self, seed: int) -> None:
        self.resets.append(seed)
        self.slots.states = RNG(seed).normal(size=3)
        if self.seeded:
            self.slots.drawn = RNG(seed)

    def step_from_states(self, held: Any, taken: Any) -> Any:
        self.slots.states = np.array([float(x) for x in held])
        return self.slots.step(taken)


@pytest.mark.parametrize("settable", [True, False])
@pytest.mark.parametrize(
    ("leak", "into", "source"), [(0.0, 1, 2), (0.5, 1, 2), (-1e-3, 0, 1), (1e-9, 2, 0), (1e-14, 1, 0)]
)
def test_a_slot_that_depends_on_another_is_named_with_its_numbers(
    leak: float, into: int, source: int, settable: bool
) -> None:
    stepper: Any = LeakyStepper(LeakySlots(leak, into, source), settable)
    pool: Any = SimpleNamespace(situations=[SimpleNamespace(state=x) for x in RNG(3).normal(size=20)])
    told = [slot_isolation.find_slot_leak(stepper, pool, RNG(seed)) for seed in range(4)]
    assert len(stepper.resets) >= 4
    # six slots are drawn at random: of three, one is missed in one search of eleven
    assert sum(statement is not None for statement in told) >= (3 if abs(leak) > 1e-12 else 0)
    for statement in told:
        if statement is None:
            continue
        assert abs(leak) > 1e-12
        assert (statement.fields["slot"], statement.fields["coordinate"]) == (into, "obs[0]")
        assert statement.fields["first"] != statement.fields["again"]
        assert statement.fields["settable"] is settable
        assert statement.fields.get("other") == (source if settable else None)


@pytest.mark.parametrize("settable", [True, False])
def test_slots_that_repeat_under_no_seed_and_a_single_slot_are_not_accused(settable: bool) -> None:
    pool: Any = SimpleNamespace(situations=[SimpleNamespace(state=x) for x in RNG(3).normal(size=20)])
    noisy: Any = LeakyStepper(LeakySlots(noise=1.0), settable)
    assert slot_isolation.find_slot_leak(noisy, pool, RNG(0)) is None
    # noise that a reset restores hides no leak
    restored: Any = LeakyStepper(LeakySlots(noise=1.0), settable, seeded=True)
    assert slot_isolation.find_slot_leak(restored, pool, RNG(0)) is None
    restored = LeakyStepper(LeakySlots(0.5, noise=1.0), settable, seeded=True)
    assert slot_isolation.find_slot_leak(restored, pool, RNG(0)) is not None
    single: Any = LeakyStepper(LeakySlots(0.5), settable)
    single.slots.count = 1
    assert slot_isolation.find_slot_leak(single, pool, RNG(0)) is None
    assert single.resets == []


def test_outcomes_of_slots_differ_from_some_thousands_of_roundings_on() -> None:
    parts: dict[str, Any] = {"a": spaces.Box(-9, 9, (1,), np.float32), "b": spaces.Box(-9, 9, (1,), np.float64)}
    space = spaces.Dict({**parts, "c": spaces.Discrete(5)})
    stepper: Any = SimpleNamespace(codec=SpaceCodec(space, "obs"))
    one = np.array([2.0, 2.0, 2.0, 2.0, 0.0])
    limits = [3e-4, 3e-11, 0.0, 3e-4, 0.0]
    for place, limit in enumerate(limits):
        for factor, differs in ((0.99, False), (1.01, True)):
            other = one.copy()
            other[place] += factor * limit if limit else (1.0 if differs else 0.0)
            assert slot_isolation._first_difference(stepper, one, other) == (place if differs else -1)
    both = np.full(5, np.nan)
    assert slot_isolation._first_difference(stepper, both, both) == -1
    assert slot_isolation._first_difference(stepper, one, both) == 0
    infinite = np.full(5, np.inf)
    assert slot_isolation._first_difference(stepper, infinite, infinite) == -1
    leak = slot_isolation._leak(stepper, 2, 3, one, both, settable=True)
    assert (leak.fields["slot"], leak.fields["coordinate"], leak.fields["first"]) == (2, "reward", 2.0)
    assert slot_isolation._leak(stepper, 0, 4, one, both).fields["coordinate"] == "terminated"


@pytest.mark.parametrize(
    ("kind", "survives"),
    [("seeded", False), ("unseeded", False), ("constant", False), ("drifting", True), ("rounded", False),
     ("a tenth of a thousandth", False), ("a thousandth", True)],
)  # fmt: skip
def test_state_survives_a_reset_if_the_same_seed_starts_elsewhere(
    kind: str, survives: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    episodes, seeds = [0], []

    def reset_all(stepper: Any, seed: int) -> np.ndarray:
        seeds.append(seed)
        start = RNG(seed).normal()
        moved = {"drifting": 0.3, "rounded": 1e-6, "a tenth of a thousandth": 0.9e-4 / 4, "a thousandth": 1e-3}
        start = {"unseeded": RNG(len(seeds)).normal(), "constant": 2.0}.get(kind, start)
        return np.array([start + moved.get(kind, 0.0) * episodes[0], 0.0])

    def play(longest: int) -> None:
        assert longest == 100
        episodes[0] += 1

    monkeypatch.setattr(start_memory, "reset_all", reset_all)
    stepper = SimpleNamespace(play=play, reset=lambda seed: seeds.append(seed), codec=box_codec())
    bench: Any = SimpleNamespace(pairs=SimpleNamespace(stepper=stepper), rng=lambda name: RNG(5))
    assert start_memory.survives_reset(bench).tolist() == [survives, False]
    assert seeds[:16] == seeds[16:32]
    assert (len(seeds), len(set(seeds[:16])), episodes) == (33, 16, [4])


def group_bench(generator: Any, order: int = 2, *, on: str = "observation", dtype: Any = np.float64) -> Any:
    """A bench whose generator acts by this function on one part, and as a reflection on the others."""

    def acting(part: str) -> Any:
        one = generator if part == on else (lambda x: -x)

        def apply(word: Any, x: Any, *_: Any) -> Any:
            for _letter in word:
                x = one(x)
            return x

        return apply

    group = SimpleNamespace(relators=((0,) * order,), name="C")
    acts = {part: acting(part) for part in ("observation", "action", "state")}
    bound = SimpleNamespace(
        group=group, has_state=True, is_data=lambda part: False, label=lambda word: "g" * len(word), **acts
    )
    codec = SpaceCodec(spaces.Box(-10, 10, (2,), dtype), "obs")
    action_space = spaces.Box(-1, 1, (2,), dtype, seed=0)
    stepper = SimpleNamespace(codec=codec, action_codec=SpaceCodec(action_space, "action"),
                              env=SimpleNamespace(action_space=action_space))  # fmt: skip
    placement = SimpleNamespace(kind="map", access=SimpleNamespace(angles=()))
    numbers = RNG(0).uniform(-1, 1, size=(40, 2)).astype(dtype)
    situations = [SimpleNamespace(obs=x, state=x.astype(np.float64)) for x in numbers]
    pool = SimpleNamespace(situations=situations, region=lambda: "here")
    return SimpleNamespace(pairs=SimpleNamespace(bound=bound, stepper=stepper, placement=placement), pool=pool,
                           rng=lambda name: RNG(1), interrupted=False, options=SimpleNamespace(alpha=0.01))  # fmt: skip


TURNS = {
    order: np.array([[np.cos(a := 2 * np.pi / order), -np.sin(a)], [np.sin(a), np.cos(a)]]) for order in (3, 5, 24, 25)
}


@pytest.mark.parametrize("part", ["observation", "action", "state"])
@pytest.mark.parametrize(("order", "told"), [(3, 3), (5, 5), (24, 24), (25, 0)])
def test_a_generator_of_another_order_breaks_its_part_and_the_order_is_told(part: str, order: int, told: int) -> None:
    right = axioms.judge_axioms("axioms", group_bench(lambda x: -x))
    assert (right.verdict, right.violations, right.checked, right.causes) == ("passed", 0, 80, ())
    assert right.bound is not None
    assert right.bound["value"] == pytest.approx(1 - 0.01 ** (1 / 80))
    assert (right.bound["confidence"], right.bound["region"]) == (0.99, "here")
    different = len(set(RNG(1).integers(0, 40, size=80).tolist()))
    wrong = axioms.judge_axioms("axioms", group_bench(lambda x: TURNS[order] @ x, on=part))
    assert (wrong.verdict, wrong.violations, wrong.bound) == ("failed", different, None)
    (cause,) = wrong.causes
    assert (cause.code, cause.fields["part"], cause.fields["generator"]) == ("SYM001", part, "g")
    assert (cause.fields["declared"], cause.fields["order"], cause.fields["longest"]) == (2, told, 24)
    example = wrong.counterexample
    assert example is not None
    assert example.group_element == "gg"
    assert (example.state is not None) is (part == "state")
    assert (wrong.max_residual or 0.0) >= example.residual > 0


@pytest.mark.parametrize(("dtype", "unit"), [(np.float64, 2.0**-52), (np.float32, 2.0**-23)])
def test_a_relation_holds_within_sixteen_roundings_a_letter(dtype: Any, unit: float) -> None:
    """Two letters: the limit is 32 units of 1, as all numbers are below it."""
    for off, holds in ((31 * unit, True), (34 * unit, False)):
        moved = [False]

        def shift(x: Any, off: float = off, moved: list[bool] = moved) -> Any:
            moved[0] = not moved[0]
            return -np.float64(x) if moved[0] else -np.float64(x) + off

        result = axioms.judge_axioms("axioms", group_bench(shift, dtype=dtype))
        assert (result.verdict == "passed") is holds, off


def test_one_relation_is_judged_on_one_state_and_two_letters_make_another_cause() -> None:
    bench = group_bench(lambda x: TURNS[3] @ x)
    situation, action = bench.pool.situations[0], np.zeros(2)
    wrong = axioms.judge_one_relation("axioms", bench, (0, 0), situation, action)
    assert (wrong.verdict, wrong.checked, wrong.violations) == ("failed", 1, 1)
    assert axioms.judge_one_relation("axioms", bench, (0, 0, 0), situation, action).counterexample is not None
    state_only = group_bench(lambda x: TURNS[3] @ x, on="state")
    assert axioms.judge_one_relation("axioms", state_only, (0, 0), situation, action).verdict == "failed"
    state_only.pairs.placement.kind = "observation"
    assert axioms.judge_one_relation("axioms", state_only, (0, 0), situation, action).verdict == "passed"
    told = axioms._explain_break(bench, "observation", (0, 1), [situation], [action])
    assert (told.code, told.fields) == ("SYM002", {"relation": "gg", "part": "observation"})


def test_maps_that_are_data_are_proved_and_values_that_are_no_numbers_are_undecided() -> None:
    data = group_bench(lambda x: TURNS[3] @ x)
    data.pairs.bound.is_data = lambda part: True
    proved = axioms.judge_axioms("axioms", data)
    assert (proved.verdict, proved.method, proved.checked, proved.max_residual) == ("proved", "relations", 3, 0.0)
    for missing in ("observation", "action", "state"):
        data.pairs.bound.is_data = lambda part, missing=missing: part != missing
        assert not axioms.only_data(data)
    data.pairs.bound.is_data, data.pairs.bound.has_state = (lambda part: True), False
    assert axioms.judge_axioms("axioms", data).checked == 2
    blank = group_bench(lambda x: -x)
    for situation in blank.pool.situations:
        situation.obs = np.full(2, np.nan)
    result = axioms.judge_axioms("axioms", blank)
    assert (result.verdict, result.bound) == ("undecided", None)
    assert result.facts is not None
    assert (result.facts.quantity, result.facts.finite) == ("observation", False)
    blank.pool.situations[3].obs = np.zeros(2)
    picked = blank.pool.situations[:4]
    assert axioms._find_stuck(blank, "observation", picked, [0] * 4) == ""
    assert axioms._find_stuck(blank, "observation", picked[:3], [0] * 3) == "NaN"
