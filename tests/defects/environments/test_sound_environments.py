"""Symmetric environments that naive checkers accuse: none may fail, and a pass states its evidence."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

import symcheck_properties  # noqa: F401
from symcheck.engine.environments.runner import run_env
from symcheck.engine.options import EnvOptions
from symcheck.engine.results import RunResult
from symcheck.envs import atlas
from symcheck.envs.state_access import register_state_access
from symcheck.envs.targets import resolve_environment
from symcheck.groups import catalog
from symcheck.symmetry.symmetry import Symmetry


class Subject(gym.Env[Any, Any]):
    """State `s`; subclasses say how it starts, moves and shows."""

    observation_space: spaces.Space[Any] = spaces.Box(-np.inf, np.inf, (2,), np.float64)
    action_space: spaces.Space[Any] = spaces.Discrete(2)
    s: Any = None

    def start(self) -> Any:
        return self.np_random.uniform(-0.3, 0.3, 2)

    def move(self, s: Any, a: Any) -> tuple[Any, float, bool]:
        v = 0.9 * s[1] + (0.3 if a else -0.3)
        return np.array([s[0] + 0.1 * v, v]), -float(s[0] ** 2), False

    def show(self) -> Any:
        return self.s.copy()

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.s = self.start()
        return self.show(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.s, reward, terminated = self.move(self.s, action)
        return self.show(), reward, terminated, False, {}


class Float32AboutAPoint(Subject):
    """Mirrored about 0.3 in float32: both sides differ by units in the last place, never by nothing."""

    observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float32)

    def start(self) -> Any:
        return np.float32([0.3 + self.np_random.uniform(-0.2, 0.2), self.np_random.uniform(-0.2, 0.2)])

    def move(self, s: Any, a: Any) -> tuple[Any, float, bool]:
        f = np.float32
        v = f(f(0.9) * s[1] + (f(0.3) if a else f(-0.3)) - f(0.5) * (s[0] - f(0.3)))
        return np.array([f(s[0] + f(0.1) * v), v]), float((s[0] - f(0.3)) ** 2), bool(abs(s[0] - f(0.3)) > 2)


class WrappedAngle(Subject):
    """An angle in (-pi, pi]: the image of pi is -pi, which is the same angle."""

    observation_space = spaces.Box(np.array([-np.pi, -9.0]), np.array([np.pi, 9.0]), dtype=np.float64)

    def start(self) -> Any:
        return np.array([self.np_random.choice([np.pi, 0.0]), 0.0])

    def move(self, s: Any, a: Any) -> tuple[Any, float, bool]:
        w = float(np.clip(0.95 * s[1] + (0.2 if a else -0.2), -9, 9))
        return np.array([np.pi - (np.pi - (s[0] + 0.1 * w)) % (2 * np.pi), w]), math.cos(s[0]), False


class BlindSensor(Subject):
    """Two range sensors, NaN where they see nothing."""

    observation_space = spaces.Box(-np.inf, np.inf, (4,), np.float64)

    def show(self) -> Any:
        x, v = self.s
        return np.array([x, v, 1 + x if x < 0 else np.nan, 1 - x if x > 0 else np.nan])


class FarSensor(BlindSensor):
    """Range sensors that return infinity where nothing is in reach."""

    def show(self) -> Any:
        x, v = self.s
        return np.array([x, v, 1 + x if x < 0 else np.inf, 1 - x if x > 0 else np.inf])


class SymmetricNoise(Subject):
    """Equal seeds would give equal noise, which is not mirrored noise."""

    def move(self, s: Any, a: Any) -> tuple[Any, float, bool]:
        v = 0.9 * s[1] + (0.3 if a else -0.3) + self.np_random.normal()
        return np.array([s[0] + 0.1 * v, v]), 1.0, False


class GlobalNoise(SymmetricNoise):
    """Noise from NumPy's process-wide generator, which reset(seed) does not reach."""

    def move(self, s: Any, a: Any) -> tuple[Any, float, bool]:
        v = 0.9 * s[1] + (0.3 if a else -0.3) + np.random.normal()  # noqa: NPY002
        return np.array([s[0] + 0.1 * v, v]), 1.0, False


class ReusedBuffer(Subject):
    """Hands out the array that it changes in place."""

    def start(self) -> Any:
        self.buffer = np.zeros(2)
        self.buffer[:] = self.np_random.uniform(-0.3, 0.3, 2)
        return self.buffer

    def move(self, s: Any, a: Any) -> tuple[Any, float, bool]:
        self.buffer[:] = super().move(s, a)[0]
        return self.buffer, -float(self.buffer[0] ** 2), False

    def show(self) -> Any:
        return self.s


class ThreeSums(Subject):
    """Three coordinates, permuted; a sum whose order of addition differs between the sides, against a threshold."""

    observation_space = spaces.Box(-np.inf, np.inf, (3,), np.float64)
    action_space = spaces.Discrete(3)

    def start(self) -> Any:
        return self.np_random.uniform(0, 0.3, 3)

    def move(self, s: Any, a: Any) -> tuple[Any, float, bool]:
        following = 0.97 * s
        following[int(a)] += 0.1
        return following, float(following[0] + following[1] + following[2]), bool(following.sum() > 2)


class Structured(Subject):
    """A Dict of a vector, a switch and a pair."""

    observation_space = spaces.Dict(
        {"arm": spaces.Box(-9, 9, (2,), np.float64), "lamp": spaces.Discrete(2), "height": spaces.Box(-9, 9, (1,))}
    )

    def show(self) -> Any:
        return {"arm": self.s.copy(), "lamp": int(self.s.sum() == 0), "height": np.float32([1.0])}


class SideDependentAction(Subject):
    """Buttons are relative to the centre: K is the identity although L is a flip."""

    observation_space = spaces.Box(-9, 9, (1,), np.int64)

    def start(self) -> Any:
        return np.array([self.np_random.choice([-2, -1, 1, 2])])

    def move(self, s: Any, a: Any) -> tuple[Any, float, bool]:
        side = 1 if s[0] > 0 else -1
        size = abs(int(s[0])) + (1 if a else -1)
        return np.array([side * size if size else -side]), -float(abs(s[0])), bool(size > 3)


def unwrap(obs: Any) -> Any:
    return np.array(obs, dtype=float)[:2]


for subject, setter in {
    Float32AboutAPoint: lambda env, obs: setattr(env, "s", np.array(obs, np.float32)),
    WrappedAngle: lambda env, obs: setattr(env, "s", np.array(obs, float)),
    BlindSensor: lambda env, obs: setattr(env, "s", unwrap(obs)),
    SymmetricNoise: lambda env, obs: setattr(env, "s", np.array(obs, float)),
    ReusedBuffer: lambda env, obs: env.buffer.__setitem__(slice(None), obs),
    ThreeSums: lambda env, obs: setattr(env, "s", np.array(obs, float)),
    Structured: lambda env, obs: setattr(env, "s", np.array(obs["arm"], float)),
    SideDependentAction: lambda env, obs: setattr(env, "s", np.array(obs)),
}.items():
    register_state_access(subject, set=setter)

C2, S3 = catalog.cyclic(2), catalog.symmetric(3)
SWAP = [[1, 0]]
SOUND: list[tuple[type[gym.Env[Any, Any]], Symmetry]] = [
    (Float32AboutAPoint, Symmetry("flip", C2, [{"signs": [-1, -1], "offset": [0.6, 0]}], SWAP)),
    (Float32AboutAPoint, Symmetry("flip", C2, [lambda o: np.float32([0.6, 0]) - o], [lambda a, o: 1 - a])),
    (WrappedAngle, Symmetry("flip", C2, [[-1, -1]], SWAP)),
    (BlindSensor, Symmetry("flip", C2, [["-1", "-2", "+4", "+3"]], SWAP)),
    (FarSensor, Symmetry("flip", C2, [["-1", "-2", "+4", "+3"]], SWAP)),
    (SymmetricNoise, Symmetry("flip", C2, [[-1, -1]], SWAP)),
    (GlobalNoise, Symmetry("flip", C2, [[-1, -1]], SWAP)),
    (ReusedBuffer, Symmetry("flip", C2, [[-1, -1]], SWAP)),
    (ThreeSums, Symmetry("permutations", S3, [[1, 0, 2], [1, 2, 0]], [[1, 0, 2], [1, 2, 0]])),
    (Structured, Symmetry("flip", C2, [{"arm": [-1, -1]}], SWAP)),
    (SideDependentAction, Symmetry("flip", C2, [[-1]], [[0, 1]])),
]


def run(env: Callable[[], gym.Env[Any, Any]], symmetry: Symmetry, **options: Any) -> RunResult:
    return run_env(env, symmetry, options=EnvOptions(**options), target="sound", command="")


@pytest.mark.parametrize(("env", "symmetry"), SOUND, ids=lambda one: getattr(one, "__name__", ""))
def test_a_symmetric_environment_passes(env: type[gym.Env[Any, Any]], symmetry: Symmetry) -> None:
    result = run(env, symmetry, samples=3000)
    assert result.verdict == "passed", [(one.name, one.verdict, one.detail, one.causes) for one in result.properties]
    for one in result.properties:
        assert one.verdict == "proved" or (one.bound is not None and one.checked > 0)


# The rest of the atlas has a test, and a command, of its own.
KNOWN = ["acrobot", "cartpole", "frozenlake/", "mountaincar", "pendulum"]
OF_IMAGES = ["predator-prey"]


def _entries_named(beginnings: list[str]) -> list[str]:
    return [one.name for one in atlas.entries() if one.name.startswith(tuple(beginnings))]


@pytest.mark.parametrize(
    "name",
    [*_entries_named(KNOWN), *(pytest.param(name, marks=pytest.mark.long) for name in _entries_named(OF_IMAGES))],
)
def test_the_atlas_says_what_verification_finds(name: str) -> None:
    entry = atlas.entry(name)
    for env_id in entry.environments[:1]:
        # Many entries at one seed: the true ones are accused with probability alpha each; swaps cost as 1 / it.
        result = run(resolve_environment(env_id).make, entry.symmetry(), samples=2000, alpha=0.003)
        assert result.verdict == entry.verdict


@pytest.mark.parametrize(
    "wrap",
    [
        lambda env: gym.wrappers.RescaleAction(env, np.float32(-1), np.float32(1)),
        lambda env: gym.wrappers.TransformReward(env, lambda r: 0.1 * r),
        lambda env: gym.wrappers.ClipAction(env),
        lambda env: gym.wrappers.TimeLimit(env, 3),
    ],
)
def test_symmetric_wrappers_change_no_verdict(wrap: Callable[[Any], Any]) -> None:
    mirror = atlas.entry("pendulum/mirror").symmetry()
    result = run(lambda: wrap(gym.make("Pendulum-v1", disable_env_checker=True)), mirror, samples=1000)
    assert result.verdict == "passed"


def test_a_wrapper_that_breaks_the_symmetry_is_seen() -> None:
    mirror = atlas.entry("cartpole/mirror").symmetry()

    def shifted() -> gym.Env[Any, Any]:
        env = gym.make("CartPole-v1", disable_env_checker=True)
        return gym.wrappers.TransformReward(env, lambda reward: reward + 1e-3 * float(env.unwrapped.state[0]))

    verdicts = {one.name: one.verdict for one in run(shifted, mirror, samples=1000).properties}
    assert verdicts["reward_invariance"] == "failed"
    assert verdicts["transition_invariance"] == "passed"


def test_pendulum_without_a_state_map_is_set_through_its_observation() -> None:
    mirror = Symmetry("mirror", C2, [[1, -1, -1]], [[-1]])
    result = run(lambda: gym.make("Pendulum-v1"), mirror, samples=1000)
    assert result.verdict == "passed"


@pytest.mark.parametrize(("even", "verdict"), [(True, "passed"), (False, "failed")])
def test_whole_episodes_decide_where_setting_a_state_resets_a_hidden_one(even: bool, verdict: str) -> None:
    class Tiring(Subject):
        """Pushes weaken as an episode goes on; setting the observation does not bring the strength back."""

        def start(self) -> Any:
            self.strength = 1.0
            return super().start()

        def move(self, s: Any, a: Any) -> tuple[Any, float, bool]:
            v = 0.9 * s[1] + (0.3 if a else -0.3) * self.strength
            self.strength *= 0.9 if even or a else 0.0  # if not even, a push to the left tires more
            return np.array([s[0] + 0.1 * v, v]), 0.0, False

    def fresh(env: Any, obs: Any) -> None:
        env.s, env.strength = np.array(obs, float), 1.0

    register_state_access(Tiring, set=fresh)
    result = run(lambda: gym.wrappers.TimeLimit(Tiring(), 30), Symmetry("flip", C2, [[-1, -1]], SWAP), samples=1000)
    found = {one.name: one for one in result.properties}["transition_invariance"]
    assert (found.verdict, found.method) == (verdict, "trajectory")
    assert "hidden state" in " ".join([found.detail, *map(str, found.causes)])


def test_an_environment_that_leaks_between_states_is_undecided() -> None:
    class Leaky(Subject):
        last = 0.0

        def move(self, s: Any, a: Any) -> tuple[Any, float, bool]:
            following, reward, terminated = super().move(s, a)
            following[1] += 0.05 * self.last
            self.last = float(following[1])
            return following, reward, terminated

    register_state_access(Leaky, set=lambda env, obs: setattr(env, "s", np.array(obs, float)))
    result = run(Leaky, Symmetry("flip", C2, [[-1, -1]], SWAP), samples=1000)
    verdicts = {one.name: one for one in result.properties}
    assert result.verdict == "undecided"
    assert verdicts["transition_invariance"].reason.code == "hidden_state_survives"  # type: ignore[union-attr]
    assert "Determinism check failed" in verdicts["transition_invariance"].detail
    assert "To decide, restore all state in set_state" in verdicts["transition_invariance"].detail


def test_what_reset_clears_is_cleared_before_each_state() -> None:
    class ClearedByReset(Subject):
        def start(self) -> Any:
            self.last = 0.0
            return super().start()

        def move(self, s: Any, a: Any) -> tuple[Any, float, bool]:
            following, reward, terminated = super().move(s, a)
            following[1] += 0.05 * self.last
            self.last = float(following[1])
            return following, reward, terminated

    register_state_access(ClearedByReset, set=lambda env, obs: setattr(env, "s", np.array(obs, float)))
    result = run(ClearedByReset, Symmetry("flip", C2, [[-1, -1]], SWAP), samples=500)
    assert "reset before each state" in str(result.method_reason)
    assert result.verdict != "failed"


@pytest.mark.parametrize("method", ["paired", "distribution", "trajectory"])
@pytest.mark.parametrize("env", [BlindSensor, FarSensor])
def test_values_that_are_no_numbers_are_compared_by_every_method(env: type[Subject], method: str) -> None:
    right = Symmetry("flip", C2, [["-1", "-2", "+4", "+3"]], SWAP)
    wrong = Symmetry("flip", C2, [["-1", "-2", "+3", "+4"]], SWAP)
    make = lambda: gym.wrappers.TimeLimit(env(), 20)  # noqa: E731
    assert run(make, right, samples=1000, method=method).verdict == "passed"
    assert run(make, wrong, samples=1000, method=method).verdict == "failed"
