"""Replayed episodes by themselves: which starts are kept, when copies agree, which states lead to their image."""

from __future__ import annotations

import copy
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from worlds_with_settings import MIRROR, Point, Settable, bench_of

from symcheck.engine.environments import replay as replaying
from symcheck.engine.environments.cases.pool import Pool
from symcheck.engine.environments.methods import replay_access
from symcheck.engine.environments.methods.replay_access import replay_episodes
from symcheck.engine.environments.replay import replay
from symcheck.engine.environments.subject.placement import Situation
from symcheck.engine.options import EnvOptions
from symcheck.envs.replayed import History, Starts, start_key
from symcheck.errors import SymcheckError
from symcheck.groups import catalog
from symcheck.spaces.coordinates import SpaceCodec
from symcheck.statements.statement import Statement
from symcheck.symmetry.symmetry import Symmetry

FLIP = Symmetry("flip", catalog.cyclic(2), [[-1]], [[1, 0]])
RNG = np.random.default_rng
NAN = float("nan")


class Walk(gym.Env[Any, Any]):
    """A walk on whole numbers, from given starts."""

    action_space = spaces.Discrete(2)
    observation_space = spaces.Box(-9, 9, (1,), np.float64)

    def __init__(self, starts: Any = (-1.0, 1.0), kind: str = "") -> None:
        self.starts, self.kind = starts, kind

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.x = float(self.np_random.choice(self.starts))
        self.hidden, self.t = float(self.np_random.random()), 0
        return np.array([self.x]), {}

    def step(self, action: Any) -> Any:
        self.t += 1
        self.x += 1.0 if action else -1.0
        late = self.t == 20
        shown = self.x + (self.hidden if self.kind == "state" and late else 0.0)
        reward = -abs(self.x) + (self.hidden if self.kind == "reward" and late else 0.0)
        reward = NAN if self.kind == "nan" else reward
        ended = self.kind == "end" and late and self.hidden > 0.5
        cut = self.kind == "cut" and late and self.hidden > 0.5
        return np.array([shown]), reward, ended, cut, {}

    def __deepcopy__(self, memo: Any) -> Any:
        if self.kind == "uncopied":
            raise TypeError("no copies")
        made = copy.copy(self)
        made._np_random = copy.deepcopy(self._np_random)
        return made


def stepper_of(env: Any) -> Any:
    codec = SpaceCodec(env.observation_space, "observation")
    return SimpleNamespace(env=env, codec=codec, label="walk", reset=lambda seed: env.reset(seed=seed)[0])


def flip(word: Any, obs: Any) -> Any:
    return -np.asarray(obs) if len(word) % 2 else np.asarray(obs)


def starts_of(env: Any, observation: Any = flip, words: Any = ((0,),)) -> Starts | Statement:
    bound: Any = SimpleNamespace(observation=observation)
    return replay_access._copy_starts(stepper_of(env), bound, words, RNG(0))


def values(starts: Any) -> list[float]:
    return sorted(float(np.frombuffer(key, np.float32)[0]) for key in starts.copies)


def test_starts_whose_images_are_starts_are_copied() -> None:
    starts: Any = starts_of(Walk())
    assert values(starts) == [-1.0, 1.0]
    assert sum(map(len, starts.copies.values())) == 64
    assert starts.shown.keys() == starts.copies.keys()
    for key, copies in starts.copies.items():
        assert {float(each.x) for each in copies} == {float(np.frombuffer(key, np.float32)[0])}
        assert len({each.hidden for each in copies}) == len(copies)  # from resets of their own
    assert values(starts_of(Walk((0.0,)))) == [0.0]
    assert values(starts_of(Walk(tuple(range(-4, 5))))) == list(range(-4, 5))


def test_starts_without_their_image_are_dropped_with_those_that_need_them() -> None:
    # One in forty: then 0.9 of the resets can be replayed.
    rare = (0.0,) * 39 + (3.0,)
    assert values(starts_of(Walk(rare))) == [0.0]

    def onward(word: Any, obs: Any) -> Any:
        """0 is its own image; 3 leads to 4, and 4 to 5, which is no start."""
        value = float(np.asarray(obs)[0])
        return np.array([value + 1.0 if value >= 3 else value])

    assert values(starts_of(Walk((0.0,) * 58 + (3.0, 4.0)), onward)) == [0.0]
    half = starts_of(Walk((0.0, 3.0)))
    assert isinstance(half, Statement)
    assert half.code == "replay_image_no_start"
    # Every element needs its image: the second one sends 1 to 2.
    both = starts_of(Walk(), lambda word, obs: flip(word, obs) if word == (0,) else np.asarray(obs) + 1, ((0,), (1,)))
    assert isinstance(both, Statement)


def test_at_most_sixteen_starts_are_replayed() -> None:
    many = starts_of(Walk(tuple(np.linspace(-8, 8, 17))))
    assert isinstance(many, Statement)
    assert many.code == "replay_many_starts"
    assert many.fields["starts"] == 17
    assert 17 <= many.fields["resets"] <= 64
    anywhere = starts_of(Walk(tuple(np.linspace(-8, 8, 9001))))
    assert isinstance(anywhere, Statement)
    assert anywhere.fields["resets"] == 17


def test_an_environment_that_cannot_be_copied_is_named_with_its_error() -> None:
    refused = starts_of(Walk(kind="uncopied"))
    assert isinstance(refused, Statement)
    assert (refused.code, refused.fields["error"]) == ("replay_not_copied", "TypeError: no copies")


@pytest.mark.parametrize(
    ("kind", "agree"),
    [("", True), ("nan", True), ("state", False), ("reward", False), ("end", False), ("cut", False)],
)
def test_copies_of_a_start_agree_if_nothing_hidden_differs_within_25_steps(kind: str, agree: bool) -> None:
    env = Walk((0.0,), kind)
    assert replay_access._copies_agree(starts_of(env), stepper_of(env), RNG(0)) is agree  # type: ignore[arg-type]


@pytest.mark.parametrize(("gap", "scale", "leads"), [(0.0, 0.0, True), (0.9, 0.0, True), (1.1, 0.0, False),
                                                     (9.0, 9.0, True), (11.0, 9.0, False), (-1.1, 0.0, False),
                                                     (NAN, 0.0, False)])  # fmt: skip
def test_a_replayed_image_may_differ_by_a_millionth_of_its_size(gap: float, scale: float, leads: bool) -> None:
    def check(epsilon: float) -> bool:
        poked: list[Any] = []
        placement: Any = SimpleNamespace(
            image=lambda word, situation: Situation("image", np.array([scale]), "image"),
        )
        stepper: Any = SimpleNamespace(
            poke=poked.append,
            codec=SimpleNamespace(flatten=np.asarray),
            base=SimpleNamespace(shown=np.array([scale + gap * 1e-6])),
        )
        coordinates = SimpleNamespace(
            residual=lambda wanted, shown: np.abs(np.asarray(wanted) - shown), epsilon=np.array([epsilon])
        )
        situation = Situation("state", np.zeros(1), "rollout")
        said = replay_access._leads_to_image(stepper, placement, (0,), situation, coordinates)
        assert poked == ["image"]
        return said

    assert check(2.0**-53) is leads
    assert check(0.0) is (gap == 0.0)  # whole numbers do not drift


def test_states_that_lead_elsewhere_are_left_out_and_half_of_the_time_is_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    situations = [Situation(k, np.array([float(k)]), "rollout") for k in range(6)]
    shares: list[float] = []

    def roll_out(stepper: Any, placement: Any, most: int, pool: Pool, in_time: Any) -> None:
        assert most == 400
        assert in_time()
        pool.situations = list(situations)

    monkeypatch.setattr(replay_access, "roll_out", roll_out)
    monkeypatch.setattr(
        replay_access, "_leads_to_image", lambda stepper, placement, word, situation, c: situation.state % 3 != word[0]
    )

    def gather_within(spent: int) -> list[Any]:
        shares.clear()

        def in_time(share: float) -> bool:
            shares.append(share)
            return len(shares) <= 1 + spent

        bench: Any = SimpleNamespace(in_time=in_time, words=((0,), (1,)))
        stepper: Any = SimpleNamespace(codec=SimpleNamespace(coordinates=None))
        return [each.state for each in replay_access._gather_reproducible(bench, stepper, None).situations]  # type: ignore[arg-type]

    assert gather_within(9) == [2, 5]
    assert shares == [0.3, *[0.5] * 6]
    assert gather_within(3) == [2]
    assert gather_within(0) == []


def test_a_replayed_black_box_has_a_workbench_with_its_states_and_a_drift(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay_access, "_MOST_STATES", 24)
    again: Any = replay_episodes(bench_of(Walk, FLIP, samples=5000))
    assert not isinstance(again, Statement)
    assert again.options.samples == 2000
    assert again.pairs.placement.access.what == "its 2 starts"
    assert all(isinstance(each.state, History) for each in again.pool.situations)
    scale = max(1.0, max(abs(float(visit.step.flat[0])) for visit in again.pool.visits))
    assert scale > 1
    assert {part: noise.tolist() for part, noise in again.noise.items()} == {
        "transition": [1e-6 * scale], "reward": [1e-6 * scale]}  # fmt: skip
    one: Any = replay_episodes(bench_of(lambda: Walk((0.0,)), FLIP, samples=100))
    assert (one.options.samples, one.pairs.placement.access.what) == (100, "its only start")
    situation = one.pool.situations[5]
    image = one.pairs.placement.image((0,), situation)
    assert [int(a) for a in image.state.actions] == [1 - int(a) for a in situation.state.actions]
    one.pairs.stepper.poke(image.state)
    np.testing.assert_array_equal(one.pairs.stepper.base.shown, -situation.obs)


@pytest.mark.parametrize(
    ("env", "code"),
    [
        (lambda: Walk((0.0, 3.0)), "replay_image_no_start"),
        (lambda: Walk((0.0,), "state"), "replay_differs"),
        (lambda: Walk(kind="uncopied"), "replay_not_copied"),
    ],
)
def test_a_black_box_that_cannot_be_replayed_is_told_why(env: Any, code: str) -> None:
    why = replay_episodes(bench_of(env, FLIP))
    assert isinstance(why, Statement)
    assert why.code == code


def test_observations_that_are_no_arrays_are_not_replayed() -> None:
    bench: Any = SimpleNamespace(
        pairs=SimpleNamespace(
            stepper=SimpleNamespace(env=SimpleNamespace(observation_space=spaces.Dict({"x": spaces.Discrete(2)}))),
            bound=None,
        )
    )
    why = replay_episodes(bench)
    assert isinstance(why, Statement)
    assert why.code == "replay_not_arrays"


def test_a_start_is_known_by_its_float32_digits_and_zero_has_no_sign() -> None:
    assert start_key(np.array([0.0])) == start_key(np.array([-0.0]))
    assert start_key(np.array([1.0])) == start_key(np.array([1.0 + 1e-9]))
    assert start_key(np.array([1.0])) != start_key(np.array([1.0 + 1e-6]))


def example(obs: Any, action: Any, *, state: Any = None, element: str = "g", **more: Any) -> dict[str, Any]:
    return {"group_element": element, "observation": obs, "action": action, "state": state, **more}


def replay_of(make: Any, given: dict[str, Any], name: str = "transition_invariance", **options: Any) -> Any:
    return replay(make, MIRROR, name, given, EnvOptions(**{"samples": 100, **options}))


def broken() -> Settable:
    """Wind in the right half alone."""

    class Broken(Settable):
        def step(self, action: Any) -> Any:
            self.wind = 0.25 if self.x > 0 else 0.0
            return super().step(action)

    return Broken()


def test_a_reported_pair_is_stepped_again_and_fails_or_passes() -> None:
    label = bench_of(Settable).pairs.bound.label((0,))
    failed = replay_of(broken, example([0.5, 0.1], 1, element=str(label)))
    assert (failed.verdict, failed.checked, failed.violations, failed.method) == ("failed", 1, 1, "paired")
    assert [note.code for note in failed.notes] == ["one_pair"]
    assert failed.counterexample.observation.tolist() == [0.5, 0.1]
    assert failed.max_residual == failed.counterexample.residual == pytest.approx(0.25)
    mended = replay_of(Settable, example([0.5, 0.1], 1, element=str(label)))
    assert (mended.verdict, mended.violations, mended.counterexample) == ("passed", 0, None)


def test_what_does_not_fit_the_claim_is_refused_with_its_name() -> None:
    with pytest.raises(SymcheckError, match="no property of environments is called 'nothing'"):
        replay_of(Settable, example([0.0, 0.0], 1), "nothing")
    label = str(bench_of(Settable).pairs.bound.label((0,)))
    for obs, action in (([0.0], 1), ([0.0, 0.0], "left")):
        with pytest.raises(SymcheckError, match="does not fit the environment's spaces"):
            replay_of(Settable, example(obs, action, element=label))


def test_an_element_is_found_by_its_label_among_generators_and_relations() -> None:
    bound = SimpleNamespace(label=lambda word: f"w{len(word)}", group=SimpleNamespace(relators=((0, 0), (0, 0, 0))))
    chosen: Any = SimpleNamespace(bench=SimpleNamespace(pairs=SimpleNamespace(bound=bound), words=((0,),)))
    assert replaying._find_word(chosen, "w1") == (0,)
    assert replaying._find_word(chosen, "w2") == (0, 0)
    assert replaying._find_word(chosen, "w3") == (0, 0, 0)
    with pytest.raises(SymcheckError, match="does not contain the element 'w4'"):
        replaying._find_word(chosen, "w4")


@pytest.mark.parametrize(
    ("form", "held", "read"),
    [
        (np.zeros(2), [1, 2.5], [1.0, 2.5]),
        ({"x": 0.0}, {"x": 1.5}, {"x": 1.5}),
        ((0.0, 0.0), [1, 2], [1.0, 2.0]),
        (None, [1, 2], [1.0, 2.0]),
    ],
)
def test_a_reported_state_is_read_in_the_form_that_get_returns(form: Any, held: Any, read: Any) -> None:
    def pairs(special: Any, kind: Any = "map") -> Any:
        return SimpleNamespace(
            placement=SimpleNamespace(kind=kind, form=form, access=SimpleNamespace(from_report=special))
        )

    got = replaying._read_state(pairs(None), held)
    assert (got.tolist() if isinstance(got, np.ndarray) else got) == read
    assert replaying._read_state(pairs(lambda value: ("own", value)), held) == ("own", held)
    assert not isinstance(replaying._read_state(pairs(lambda value: ("own", value), None), held), str)


def test_a_start_is_checked_again_from_the_beginning() -> None:
    class Leaning(Point):
        def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
            super().reset(seed=seed)
            self.x += 0.5
            return self.observe(), {}

    result = replay_of(Leaning, example(None, None), "initial_invariance", samples=400)
    assert (result.verdict, result.method) == ("failed", "distribution")
    assert result.notes[-1].code == "compared_over_resets"
