"""Environments under continuous groups: correct twins pass, and every kind of planted fault is found."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import symcheck as sc
from symcheck.errors import SymcheckError
from symcheck.symmetry.spec import symmetry_from_mapping

_spec = importlib.util.spec_from_file_location("plane_worlds", Path(__file__).parent / "plane_worlds.py")
assert _spec is not None
assert _spec.loader is not None
worlds = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(worlds)
World, particle = worlds.World, worlds.particle
G = sc.groups


def claim(group: str, observation: Any, action: Any, **rest: Any) -> sc.Symmetry:
    fields = {"name": "claim", "group": group, "observation": observation, "action": action, **rest}
    return symmetry_from_mapping(fields, "test")


TURN = claim("so(2)", [{"rotate": [[0, 1], [2, 3]]}], [{"rotate": [[0, 1]]}])
MIRRORED = claim("O(2)", {"representation": "2*vector"}, {"representation": "vector"})
SPACE = claim("so(3)", {"representation": "2*vector"}, {"representation": "vector"})
YAW = claim("so(2)", [{"rotate": [[0, 1], [3, 4]]}], [{"rotate": [[0, 1]]}])
AXIAL = claim("o(3)", {"representation": "vector + axial"}, {"representation": "axial"})
POLAR = claim("o(3)", {"representation": "2*vector"}, {"representation": "vector"})
CAR = claim("so(2)", [{"rotate": [[0, 1], [2, 3]]}], ["identity"])
SHIFT = claim("translations(1)", [{"shift": [1, 0]}], ["identity"], initial=False)
BODIES = {"rotate": [[0, 1], [2, 3], [4, 5], [6, 7]]}
MOTIONS = claim(
    "se(2)",
    [{"shift": [1, 0, 1, 0, 0, 0, 0, 0]}, {"shift": [0, 1, 0, 1, 0, 0, 0, 0]}, BODIES],
    ["identity", "identity", {"rotate": [[0, 1], [2, 3]]}],
    initial=False,
)
EXCHANGE = claim("C2 x so(2)", [BODIES, [2, 3, 0, 1, 6, 7, 4, 5]], [{"rotate": [[0, 1], [2, 3]]}, [2, 3, 0, 1]])


def square(rng: np.random.Generator) -> np.ndarray:
    return rng.uniform(-1.7, 1.7, size=2)


CASES = [
    ("central force", particle(), 4, 2, TURN, None),
    ("Coriolis", particle(coriolis=0.5), 4, 2, TURN, None),
    ("action clipped to a ball", particle(clip="ball"), 4, 2, TURN, None),
    ("central force, mirrored", particle(), 4, 2, MIRRORED, None),
    ("central force in space", particle(), 6, 3, SPACE, None),
    ("gravity leaves the yaw", particle(gravity=0.2), 6, 3, YAW, None),
    ("rotor", worlds.rotor, 6, 3, AXIAL, None),
    ("car", worlds.car(), 5, 2, CAR, None),
    ("track", worlds.track(), 2, 1, SHIFT, None),
    ("two bodies", worlds.two_bodies(), 8, 4, MOTIONS, None),
    ("two bodies exchanged", worlds.two_bodies(), 8, 4, EXCHANGE, None),
    ("Coriolis, mirrored", particle(coriolis=0.5), 4, 2, MIRRORED, "transition_invariance"),
    ("gravity", particle(gravity=0.2), 4, 2, TURN, "transition_invariance"),
    ("force that is only C4", particle(quartic=0.02), 4, 2, TURN, "transition_invariance"),
    ("anisotropy of a thousandth", particle(stretch=1e-3), 4, 2, TURN, "transition_invariance"),
    ("square clip of actions", particle(clip="square"), 4, 2, TURN, "transition_invariance"),
    ("square walls", particle(clip="walls"), 4, 2, TURN, "transition_invariance"),
    ("reward with a direction", particle(tilt=1e-3), 4, 2, TURN, "reward_invariance"),
    ("gravity in space", particle(gravity=0.2), 6, 3, SPACE, "transition_invariance"),
    ("anisotropy in space", particle(stretch=1e-3), 6, 3, SPACE, "transition_invariance"),
    ("rotor, polar", worlds.rotor, 6, 3, POLAR, "transition_invariance"),
    ("wind", worlds.car(wind=1e-3), 5, 2, CAR, "transition_invariance"),
    ("walls", worlds.track(wall=2.0), 2, 1, SHIFT, "transition_invariance"),
    ("weak spring", worlds.track(spring=1e-3), 2, 1, SHIFT, "transition_invariance"),
    ("anchored bodies", worlds.two_bodies(anchor=0.01), 8, 4, MOTIONS, "transition_invariance"),
    ("unequal masses", worlds.two_bodies(unequal=0.01), 8, 4, EXCHANGE, "transition_invariance"),
]


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(("name", "move", "size", "actions", "symmetry", "broken"), CASES, ids=[c[0] for c in CASES])
def test_twins_pass_and_faults_are_found(name, move, size, actions, symmetry, broken, seed: int) -> None:
    start = worlds.car_start if symmetry is CAR else None
    report = sc.verify_env(lambda: World(move, size, actions, start=start), symmetry, samples=1_500, seed=seed)
    failed = {p.name for p in report.results[0].properties if p.verdict == "failed"} - {"initial_invariance"}
    if broken is None:
        assert not failed
        assert report["transition_invariance"].verdict == "passed"
    else:
        assert broken in failed


@pytest.mark.parametrize(
    ("move", "verdict"), [(particle(coriolis=0.5), "passed"), (particle(quartic=0.02), "failed")], ids=["twin", "C4"]
)
def test_a_turn_by_any_angle_in_short(move, verdict: str) -> None:
    report = sc.verify_env(lambda: World(move, 4, 2), TURN, samples=400)
    assert report.verdict == verdict


def test_float64_observations_allow_for_actions_rounded_to_float32() -> None:
    assert sc.verify_env(lambda: World(particle(), 4, 2, dtype=np.float64), TURN, samples=400).verdict == "passed"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("noise", "verdict"),
    [
        (lambda rng: rng.normal(size=2), "passed"),
        (square, "failed"),
        (lambda rng: rng.normal(size=2) * np.array([1.0, 1.5]), "failed"),
    ],
    ids=["isotropic", "square", "stretched"],
)
def test_noise_is_compared_under_haar_elements(noise, verdict: str) -> None:
    report = sc.verify_env(lambda: World(particle(noise=noise), 4, 2), TURN, samples=8_000)
    assert report["transition_invariance"].verdict == verdict
    assert report["transition_invariance"].method == "distribution"


@pytest.mark.slow
def test_black_boxes_are_played_with_actions_that_turns_leave_in_distribution() -> None:
    for seed in range(4):
        assert (
            sc.verify_env(lambda: World(particle(), 4, 2, settable=False), TURN, samples=2_000, seed=seed).verdict
            == "passed"
        )
    tilted = sc.verify_env(lambda: World(particle(gravity=0.5), 4, 2, settable=False), TURN, samples=8_000)
    assert tilted.verdict == "failed"


@pytest.mark.parametrize(("tilt", "verdict"), [(0.0, "passed"), (9.0, "failed")])
def test_rounding_of_turned_episodes_is_no_difference_of_a_reward_that_is_fitted_exactly(tilt, verdict) -> None:
    def drift(state, action, rng):
        return 0.9 * state + 0.1 * action, -state @ state + tilt * state[0], False

    turn = claim("so(2)", [{"rotate": [[0, 1]]}], [{"rotate": [[0, 1]]}])
    report = sc.verify_env(lambda: World(drift, 2, 2, settable=False), turn, samples=1_200)
    reward = report["reward_invariance"]
    assert reward.method == "trajectory"
    assert reward.verdict == verdict
    # Nothing is left of an invariant reward, so that no swap of episodes changes anything.
    assert (reward.p_value == 1) == (tilt == 0)


@pytest.mark.long
def test_a_square_start_is_found() -> None:
    world = lambda: World(particle(), 4, 2, start=lambda rng: rng.uniform(-1, 1, size=4))  # noqa: E731
    report = sc.verify_env(world, TURN, samples=8_000, fail_fast=True)
    assert report["initial_invariance"].verdict == "failed"


def test_the_report_says_what_was_tested_and_replays_it() -> None:
    report = sc.verify_env(lambda: World(particle(gravity=0.5), 4, 2), TURN, samples=300)
    written = json.loads(report.to_json())
    assert written["group"] == {"name": "SO(2)", "order": "Infinity"}
    reward = next(p for p in written["properties"] if p["name"] == "reward_invariance")
    element = reward["counterexample"]["group_element"]
    assert element["word"] == "turn"
    assert len(element["parameters"]) == 1
    tested = next(note for note in reward["notes"] if note["code"] == "elements_tested")
    assert "dense" in tested["text"]
    from symcheck.engine.environments.replay import replay
    from symcheck.engine.options import EnvOptions

    again = replay(
        lambda: World(particle(gravity=0.5), 4, 2),
        TURN,
        "reward_invariance",
        reward["counterexample"],
        EnvOptions(seed=9),
    )
    assert again.verdict == "failed"
    assert again.max_residual == pytest.approx(reward["counterexample"]["residual"])


def test_dense_is_said_of_compact_parts_only() -> None:
    report = sc.verify_env(lambda: World(worlds.track(), 2, 1), SHIFT, samples=300)
    text = report["transition_invariance"].notes[-1].text
    assert "dense" not in text
    assert "No other translations were tested" in text


def test_pairs_that_leave_the_space_are_counted_and_fewer_than_half_decide_nothing() -> None:
    corners = lambda rng: rng.choice([-1.0, 1.0], size=2) * rng.uniform(0.85, 1.0, size=2)  # noqa: E731
    move = lambda state, action, rng: (np.clip(state, -1, 1), -state @ state, False)  # noqa: E731
    turn = claim("so(2)", [{"rotate": [[0, 1]]}], [{"rotate": [[0, 1]]}])
    report = sc.verify_env(lambda: World(move, 2, 2, start=corners, bound=1.0), turn, samples=300)
    assert report["transition_invariance"].verdict == "undecided"
    assert report["transition_invariance"].reason.code == "box_exits"
    fine = sc.verify_env(lambda: World(particle(), 4, 2), TURN, samples=300)
    assert any(note.code == "box_exits" for note in fine["transition_invariance"].notes)


def rotated(value: np.ndarray, t: float) -> np.ndarray:
    pairs = value.reshape(-1, 2)
    cos, sin = np.cos(t), np.sin(t)
    return (pairs @ np.array([[cos, sin], [-sin, cos]])).reshape(-1).astype(value.dtype)


def test_callables_are_tested_on_the_relations_of_the_group() -> None:
    good = sc.Symmetry("f", G.so(2), [rotated], [lambda action, obs, t: rotated(action, t)])
    assert sc.verify_env(lambda: World(particle(), 4, 2), good, samples=300).verdict == "passed"
    half = sc.Symmetry(
        "f", G.so(2), [lambda obs, t: rotated(obs, t / 2)], [lambda action, obs, t: rotated(action, t / 2)]
    )
    report = sc.verify_env(lambda: World(particle(), 4, 2), half, samples=300)
    assert report["group_axioms"].verdict == "failed"
    assert report["transition_invariance"].verdict == "passed"


def test_dict_spaces_take_a_form_by_key() -> None:
    class Parts(World):
        def __init__(self) -> None:
            super().__init__(particle(), 4, 2)
            pair = gym.spaces.Box(-np.inf, np.inf, (2,), np.float32)
            self.observation_space = gym.spaces.Dict(place=pair, speed=pair, mode=gym.spaces.Discrete(2))

        def _shown(self) -> dict[str, Any]:
            return {"place": self.x[:2].astype(np.float32), "speed": self.x[2:].astype(np.float32), "mode": np.int64(1)}

        def reset(self, **options: Any) -> Any:
            gym.Env.reset(self, seed=options.get("seed"))
            self._put(self.start(self.np_random))
            return self._shown(), {}

        def step(self, action: Any) -> Any:
            self.x, reward, ended = self.move(self.x, np.asarray(action, dtype=np.float64), self.np_random)
            self.time += 1
            return self._shown(), float(reward), bool(ended), self.time >= 60, {}

    turn = claim(
        "so(2)",
        {"place": {"representation": "vector"}, "speed": [{"rotate": [[0, 1]]}], "mode": ["identity"]},
        {"representation": "vector"},
        state=[{"rotate": [[0, 1], [2, 3]]}],
    )
    assert sc.verify_env(Parts, turn, samples=200).verdict == "passed"


REFUSED = [
    ({"observation": [{"rotate": [[0, 1]], "frequency": [0.5]}]}, "frequency 0.5"),
    ({"observation": [{"rotate": [[0, 0]]}]}, "two different components"),
    ({"observation": [{"rotate": [[0, 1], [1, 2]]}]}, "frequency 1.41421"),
    ({"observation": [{"algebra": [[0, float("nan")], [1, 0]]}]}, "finite"),
    ({"observation": [{"algebra": [[0, -1, 0], [1, 0, 0]]}]}, "square"),
    ({"observation": [[[0, -1], [1, 0]]]}, "algebra"),
    ({"observation": ["rot90"]}, "C4"),
    ({"observation": {"representation": "2*vektor"}}, "vektor"),
    ({"observation": [{"rotate": [[0, 1]]}] * 2}, "1 entry"),
    ({"group": "o(2)", "observation": [{"rotate": [[0, 1]]}, [1, 1]]}, "reflection turn"),
    ({"group": "so(3)", "observation": [{"rotate": [[0, 1]]}] * 3}, r"\[turn_x, turn_y\]"),
    ({"group": "translations(1)", "observation": [{"shift": [1, 0]}]}, "initial = false"),
]


@pytest.mark.parametrize(("fields", "message"), REFUSED)
def test_what_is_no_claim_is_refused(fields: dict[str, Any], message: str) -> None:
    group = fields.get("group", "so(2)")
    action = {"so(2)": ["identity"], "o(2)": ["identity", [-1, 1]], "so(3)": ["identity"] * 3}.get(group, ["identity"])
    with pytest.raises(SymcheckError, match=message):
        claim(**{"group": group, "action": action, **fields})


def test_spaces_of_whole_numbers_images_and_bounded_shifts_are_refused() -> None:
    pair = gym.spaces.Box(-np.inf, np.inf, (4,), np.float32)
    with pytest.raises(SymcheckError, match="finite group"):
        TURN.bind(gym.spaces.Discrete(4), pair)
    with pytest.raises(SymcheckError, match="image"):
        TURN.bind(gym.spaces.Box(0, 255, (84, 84, 3), np.uint8), pair)
    with pytest.raises(SymcheckError, match="has 3"):
        TURN.bind(gym.spaces.Box(-1, 1, (3,), np.float32), pair)
    moved = claim("translations(1)", ["identity"], [{"shift": [1]}], initial=False)
    with pytest.raises(SymcheckError, match="bounded"):
        moved.bind(pair, gym.spaces.Box(-1, 1, (1,), np.float32))
