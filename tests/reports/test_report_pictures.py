"""Counterexamples are drawn by the environment's own renderer where it has one, and a broken one costs nothing."""

from __future__ import annotations

import base64
import html
import os
import re
import signal
import struct
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
import pytest

import symcheck as sc
from symcheck.api import pictures, studio
from symcheck.api.report import DrawableCounterexample, Report
from symcheck.errors import SymcheckError


class Track(gym.Env[npt.NDArray[np.float64], np.int64]):
    """A cart on a track that drifts to the right: no mirror symmetry. It draws itself 640 pixels wide."""

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"]}  # noqa: RUF012 - as Gymnasium declares it

    def __init__(self) -> None:
        self.observation_space = gym.spaces.Box(-10.0, 10.0, (1,), np.float64)
        self.action_space = gym.spaces.Discrete(2)
        self.position = np.zeros(1)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[npt.NDArray[np.float64], dict[str, Any]]:
        super().reset(seed=seed)
        self.position = self.np_random.uniform(-1, 1, 1)
        return self.position.copy(), {}

    def step(self, action: np.int64) -> tuple[npt.NDArray[np.float64], float, bool, bool, dict[str, Any]]:
        self.position = np.clip(self.position + (0.5 if action == 1 else -0.5) + 0.25, -10, 10)
        return self.position.copy(), 0.0, False, False, {}

    def get_state(self) -> npt.NDArray[np.float64]:
        return self.position.copy()

    def set_state(self, state: npt.ArrayLike) -> None:
        self.position = np.asarray(state, dtype=np.float64).reshape(1)

    def render(self) -> Any:
        image = np.full((480, 640, 3), 255, dtype=np.uint8)
        image[200:280, int(320 + 30 * self.position[0]) : int(330 + 30 * self.position[0])] = 0
        return image if self.render_mode == "rgb_array" else None


class Blind(Track):
    def render(self) -> Any:
        raise RuntimeError("no display")


class Shapeless(Track):
    def render(self) -> Any:
        return np.zeros((4, 4))


class Empty(Track):
    def render(self) -> Any:
        return None


class Fixed(Track):
    @property
    def render_mode(self) -> Any:
        return None

    @render_mode.setter
    def render_mode(self, value: Any) -> None:
        raise AttributeError("fixed when it was built")


class Interrupted(Track):
    def render(self) -> Any:
        raise KeyboardInterrupt


class Mute(Track):
    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 - as Gymnasium declares it


@pytest.fixture(scope="module")
def mirror() -> sc.Symmetry:
    return sc.Symmetry("mirror", sc.groups.cyclic(2), observation=[[-1]], action=[[1, 0]])


@pytest.fixture(scope="module")
def drawn(mirror: sc.Symmetry) -> Report:
    return sc.verify_env(Track, mirror, samples=200)


def size_of(uri: str) -> tuple[int, int]:
    """Width and height of a PNG in a `data:` address."""
    header = base64.b64decode(uri.partition(",")[2])[16:24]
    width, height = struct.unpack(">II", header)
    return int(width), int(height)


def test_state_image_and_both_next_states_are_drawn_by_the_environment(drawn: Report) -> None:
    example = drawn["transition_invariance"].counterexample
    assert example is not None
    assert [caption for caption, _ in example.pictures] == [
        "s, given",
        "g s, the image under g",
        "after a from s",
        "after g a from g s",
    ]
    assert len({uri for _, uri in example.pictures}) > 1
    assert all(size_of(uri) == (213, 160) for _, uri in example.pictures)


def test_the_pictures_are_on_the_page_and_not_in_the_json(drawn: Report) -> None:
    report = drawn
    assert report.to_html().count('alt="g s, the image under g, drawn by the environment"') == 1
    assert "data:image" not in report.to_json()
    assert '"pictures"' not in report.to_json()
    assert "undrawn" not in report.to_json()


@pytest.mark.parametrize(
    ("env", "reason"),
    [
        (Blind, "drawing raised RuntimeError: no display"),
        (Shapeless, "render() must return an image of shape (height, width, 3), but returned shape (4, 4)."),
        (Empty, "render() returned no image in mode 'rgb_array'."),
        (Interrupted, "drawing was interrupted."),
        (Mute, 'the environment has no render mode "rgb_array".'),
        (Fixed, "drawing raised AttributeError"),
    ],
)
def test_an_environment_that_cannot_draw_fails_with_numbers_and_says_why(
    env: type[Track], reason: str, mirror: sc.Symmetry, drawn: Report
) -> None:
    plain = sc.verify_env(env, mirror, samples=200)
    assert [p.verdict for p in plain.properties] == [p.verdict for p in drawn.properties]
    example = plain["transition_invariance"].counterexample
    assert example is not None
    assert example.pictures == ()
    assert example.undrawn.startswith(reason)
    assert html.unescape(plain.to_html()).count(f"No picture: <bdi>{example.undrawn}</bdi>") == 1
    assert "No picture" not in drawn.to_html()


def test_one_state_that_cannot_be_drawn_leaves_the_pictures_of_the_others(mirror: sc.Symmetry) -> None:
    class Far(Track):
        def step(self, action: np.int64) -> tuple[npt.NDArray[np.float64], float, bool, bool, dict[str, Any]]:
            found, _, _, _, info = super().step(action)
            return found, float(action), False, False, info

        def render(self) -> Any:
            tries.append(1)
            if len(tries) == 1:
                raise RuntimeError("too far")
            return super().render()

    tries: list[int] = []
    report = sc.verify_env(Far, mirror, samples=200)
    first, second = (report[name].counterexample for name in ("reward_invariance", "transition_invariance"))
    assert first is not None
    assert second is not None
    assert (first.pictures, first.undrawn) == ((), "drawing raised RuntimeError: too far")
    assert (len(second.pictures), second.undrawn) == (4, "")


def test_a_driver_that_ends_its_process_leaves_the_verdict(
    mirror: sc.Symmetry, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Viewer:
        __module__ = "OpenGL.anything"

    class Crashing(Track):
        viewer = Viewer

        def __init__(self) -> None:
            super().__init__()
            self.window = Viewer()

        def render(self) -> Any:
            os.kill(os.getpid(), signal.SIGABRT)

    monkeypatch.delenv("MUJOCO_GL", raising=False)
    monkeypatch.delenv("DISPLAY", raising=False)
    report = sc.verify_env(Crashing, mirror, samples=200)
    example = report["transition_invariance"].counterexample
    assert example is not None
    assert example.undrawn.startswith("rendering failed here: with MUJOCO_GL=egl, the process ended unexpectedly")


def test_pictures_beyond_the_budget_of_a_page_say_so(mirror: sc.Symmetry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "MAX_TOTAL_BYTES", 100)
    example = sc.verify_env(Track, mirror, samples=200)["transition_invariance"].counterexample
    assert example is not None
    assert (example.pictures, example.undrawn) == ((), "the pictures above fill this page.")


def test_the_users_own_environment_keeps_its_render_mode(mirror: sc.Symmetry) -> None:
    class Uncopied(Track):
        def __deepcopy__(self, memo: Any) -> Any:
            raise TypeError("holds a device")

    env = Uncopied()
    example = sc.verify_env(env, mirror, samples=200)["transition_invariance"].counterexample
    assert example is not None
    assert example.pictures
    assert env.render_mode is None


def test_nothing_is_drawn_where_nothing_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "_drawings", lambda *args: pytest.fail("an environment was built"))
    assert sc.verify_env("CartPole-v1", samples=200).verdict == "passed"


@pytest.mark.parametrize("shape", [(2000, 3000, 3), (100, 5, 3), (1, 1, 3)])
def test_every_picture_is_small(shape: tuple[int, int, int]) -> None:
    noise = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    assert len(studio.addresses([noise])[0]) <= studio.MAX_BYTES


def test_pictures_that_are_compared_have_one_size() -> None:
    noise = np.random.default_rng(0).integers(0, 256, (200, 200, 3), dtype=np.uint8)
    alone = studio.addresses([np.zeros_like(noise)])[0]
    beside = studio.addresses([np.zeros_like(noise), noise])
    assert size_of(beside[0]) == size_of(beside[1]) < size_of(alone)


def test_a_renderer_that_fills_its_buffer_again_shows_both_states(mirror: sc.Symmetry) -> None:
    class Reusing(Track):
        def render(self) -> Any:
            buffer[:] = super().render()
            return buffer

    buffer = np.zeros((480, 640, 3), dtype=np.uint8)
    example = sc.verify_env(Reusing, mirror, samples=200)["transition_invariance"].counterexample
    assert example is not None
    assert example.pictures[0][1] != example.pictures[1][1]


def test_the_screen_of_a_console_is_drawn_after_its_memory_was_set(mirror: sc.Symmetry) -> None:
    class Console(Track):
        """Its screen is that of the last frame, whatever was set since; a frame without a button drifts, too."""

        def __init__(self) -> None:
            super().__init__()
            self.ale = self
            self.screen = 0.0

        def act(self, button: int) -> None:
            assert button == 0
            self.position = self.position + 0.01
            self.screen = float(self.position[0])

        def step(self, action: np.int64) -> tuple[npt.NDArray[np.float64], float, bool, bool, dict[str, Any]]:
            found = super().step(action)
            self.screen = float(self.position[0])
            return found

        def render(self) -> Any:
            shown.append(self.screen)
            return super().render()

    shown: list[float] = []
    example = sc.verify_env(Console, mirror, samples=200)["transition_invariance"].counterexample
    assert example is not None
    assert [caption for caption, _ in example.pictures][:2] == [
        "s, given, one frame later",
        "g s, the image under g, one frame later",
    ]
    given, drift = float(example.observation[0]), [-0.25, 0.75]
    expected = [
        given + 0.01,
        given + drift[int(example.action)],
        -given + 0.01,
        -given + drift[int(example.image_action)],
    ]
    assert shown == pytest.approx(expected)


@pytest.mark.long
def test_the_camera_turns_to_a_body_that_left_the_picture_and_stays_for_its_next_state(mirror: sc.Symmetry) -> None:
    class Far(Track):
        """What of MuJoCo the camera needs; a body a hundred times as far as the track's cart."""

        def __init__(self) -> None:
            super().__init__()
            self.camera = SimpleNamespace(lookat=np.zeros(3), distance=4.0)
            viewer = SimpleNamespace(cam=self.camera)
            self.mujoco_renderer = SimpleNamespace(camera_id=-1, _get_viewer=lambda render_mode: viewer)
            self.model = SimpleNamespace(geom_bodyid=np.array([0, 1]))

        @property
        def data(self) -> Any:
            return SimpleNamespace(geom_xpos=np.array([[500.0, 0, 0], [100 * self.position[0], 0, 0]]))

        def render(self) -> Any:
            seen.append((float(self.position[0]), float(self.camera.lookat[0])))
            return super().render()

    seen: list[tuple[float, float]] = []
    example = sc.verify_env(Far, mirror, samples=200)["transition_invariance"].counterexample
    assert example is not None
    (given, at), (after, at_after), (moved, at_moved), (_, at_last) = seen
    assert abs(given) > 0.004  # a body within 0.1 of the camera's distance is left where it is
    assert moved == -given != after
    assert (at, at_after, at_moved, at_last) == (100 * given, 100 * given, 100 * moved, 100 * moved)


def test_a_counterexample_plots_state_image_and_both_next_states(drawn: Report) -> None:
    example = drawn["transition_invariance"].counterexample
    assert isinstance(example, DrawableCounterexample)
    page = example.plot()
    assert page.html.count("<img ") == 4
    assert page._repr_html_().startswith("<iframe ")
    assert example._repr_html_() == page._repr_html_()


def test_a_known_environment_is_plotted_as_a_sketch() -> None:
    wrong = sc.Symmetry("wrong", sc.groups.cyclic(2), observation=[[-1, -1, 1, -1]], action=[[1, 0]])
    example = sc.verify_env("CartPole-v1", wrong, samples=200)["transition_invariance"].counterexample
    assert isinstance(example, DrawableCounterexample)
    assert example.plot().html.count("<figure><svg") == 4


def test_a_counterexample_of_no_run_says_so() -> None:
    with pytest.raises(SymcheckError, match="belongs to no run"):
        DrawableCounterexample("g", [0.0], None, 0, None, None, 1.0, "x").plot()


def test_a_sketch_shows_both_next_states_where_the_outcome_is_no_state() -> None:
    wrong = sc.Symmetry("wrong", sc.groups.cyclic(2), observation=[[-1, -1, 1, -1]], action=[[1, 0]])
    example = sc.verify_env("CartPole-v1", wrong, samples=500)["termination_invariance"].counterexample
    assert isinstance(example, DrawableCounterexample)
    assert [caption for caption, _ in example.pictures] == ["after a from s", "after g a from g s"]
    env: Any = gym.make("CartPole-v1").unwrapped
    for (_, shown), state, action in zip(
        example.pictures,
        (example.observation, example.image_observation),
        (example.action, example.image_action),
        strict=True,
    ):
        env.reset()
        env.state = np.array(state, dtype=np.float64)
        np.testing.assert_allclose(shown, env.step(int(action))[0], rtol=1e-6)  # float32 observations
    assert example.plot().html.count("<figure><svg") == 4
    assert "<figcaption>next state: after g a from g s</figcaption>" in example.plot().html


def test_a_numbered_state_is_named_beside_its_picture() -> None:
    example = sc.verify_env("FrozenLake-v1", "frozenlake/transpose", samples=50)["reward_invariance"].counterexample
    assert example is not None
    (given, _), (moved, _), (after, _), (last, _) = example.pictures
    assert given == f"s = {example.observation}, given"
    assert moved == f"g s = {example.image_observation}, the image under g"
    assert re.fullmatch(r"one outcome after a from s: \d+", after)
    assert re.fullmatch(r"one outcome after g a from g s: \d+", last)
