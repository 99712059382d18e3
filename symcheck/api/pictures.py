"""Pictures of counterexamples, drawn by the environment's own `render`: the state, its image and both next states.

Numbers convince fewer people than a picture of the leg that moves the wrong way. A picture is never worth a verdict,
though: whatever goes wrong while drawing (no renderer, no display, a state that cannot be set again) leaves the
numbers.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import os
import warnings
from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from symcheck.engine.env_replay import from_json
from symcheck.engine.results import Counterexample, PropertyResult, RunResult, to_json_value
from symcheck.envs.state_access import StateAccess, find_state_access
from symcheck.envs.targets import EnvTarget
from symcheck.errors import SymcheckError
from symcheck.symmetry.bound import BoundSymmetry
from symcheck.symmetry.symmetry import Symmetry
from symcheck_reports import png, sketches

# Base64 adds a third: four pictures of each of five properties stay within 320 kB of a page's 500 kB.
MAX_BYTES = 12_000
MAX_TOTAL_BYTES = 150_000
_WIDTH, _SMALLEST = 240, 40
_STEP = 8  # of brightness: invisible at this size, and it lets shaded surfaces compress
_DRAWN = frozenset(("observation_equivariance", "reward_invariance", "transition_invariance", "termination_invariance"))
_VIDEO = "SDL_VIDEODRIVER"  # what pygame draws on; "dummy" needs no display
Image = npt.NDArray[np.uint8]


def with_pictures(result: RunResult, target: EnvTarget, symmetry: Symmetry) -> RunResult:
    """Attach pictures to the counterexamples of a run, where the environment can draw itself.

    Args:
        result: what the run found.
        target: the environment that was checked.
        symmetry: the claim that was checked.

    Returns:
        The same result with `Counterexample.pictures` filled in where possible; never another verdict, never an error.

    Example:
        >>> run = RunResult("env", "CartPole-v1", "mirror", {"name": "C2", "order": 2}, (), 0.01, 0)
        >>> with_pictures(run, None, None) is run  # nothing failed, nothing is built
        True
    """
    wanted = [p for p in result.properties if p.name in _DRAWN and _has_input(p.counterexample)]
    sketched = sketches.knows(result.target)  # the page draws these itself, where it is told the next states
    if sketched:
        wanted = [p for p in wanted if p.name in ("reward_invariance", "termination_invariance")]
    if not wanted:
        return result
    drawn: dict[str, PropertyResult] = {}
    unseen = contextlib.suppress(Exception, KeyboardInterrupt)  # no picture is worth the verdict that is there already
    with unseen, _quiet(), _studio(target, symmetry, result.seed, renders=not sketched) as studio:
        room = MAX_TOTAL_BYTES
        for item in wanted:
            pictures = studio.next_observations(item) if sketched else studio.pictures(item)
            room -= sum(len(picture) for _, picture in pictures)
            if room < 0:
                break
            drawn[item.name] = _attached(item, pictures)
    return dataclasses.replace(result, properties=tuple(drawn.get(p.name, p) for p in result.properties))


def _has_input(example: Counterexample | None) -> bool:
    return example is not None and example.observation is not None and example.image_observation is not None


def _attached(item: PropertyResult, pictures: list[tuple[str, Any]]) -> PropertyResult:
    if item.counterexample is None:
        return item
    example = dataclasses.replace(item.counterexample, pictures=tuple(pictures))
    return dataclasses.replace(item, counterexample=example)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Renderers greet when they are first imported, warn of displays they do not need, and might open a window."""
    found = os.environ.get(_VIDEO)
    os.environ[_VIDEO] = "dummy"
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        if found is None:
            del os.environ[_VIDEO]
        else:
            os.environ[_VIDEO] = found


@contextlib.contextmanager
def _studio(target: EnvTarget, symmetry: Symmetry, seed: int, *, renders: bool) -> Iterator[_Studio]:
    """The environment in its drawing mode, which is taken back afterwards: it may be the user's own object."""
    env = target.single()
    base: Any = env.unwrapped
    found = base.render_mode
    if not renders:
        env.reset(seed=seed)
        yield _Studio(env, symmetry.bind(env.observation_space, env.action_space))
        return
    if "rgb_array" not in env.metadata.get("render_modes", ()) or not _can_draw(base):
        raise SymcheckError("the environment does not draw itself as an array.", where=target.label)
    base.render_mode = "rgb_array"
    try:
        env.reset(seed=seed)
        yield _Studio(env, symmetry.bind(env.observation_space, env.action_space))
    finally:
        base.render_mode = found


def _can_draw(base: Any) -> bool:
    """MuJoCo without a display or an off-screen back end can end the process, which no exception handler stops."""
    mujoco = any(cls.__name__ == "MujocoEnv" for cls in type(base).__mro__)
    return not mujoco or bool(os.environ.get("MUJOCO_GL") or os.environ.get("DISPLAY"))


@dataclasses.dataclass(frozen=True)
class _Side:
    """One side of a pair: the state to set, the action taken there, and how pictures of both are called."""

    caption: str
    next_caption: str
    place: Any
    action: Any


class _Studio:
    """Puts an environment into states and photographs it."""

    def __init__(self, env: gym.Env[Any, Any], bound: BoundSymmetry) -> None:
        self._env = env
        self._bound = bound
        self._access = _access(env.unwrapped)

    def pictures(self, item: PropertyResult) -> list[tuple[str, str]]:
        """State and image, and both next states where there is an action, as (caption, address)."""
        before, after = [], []
        for side in self._sides(item):
            self._put(side.place)
            before.append((side.caption, address(self._env.render())))
            if side.action is not None and item.name != "observation_equivariance":
                self._step(side)
                after.append((side.next_caption, address(self._env.render())))
        return [*before, *after]

    def next_observations(self, item: PropertyResult) -> list[tuple[str, Any]]:
        """What both next states show, as (caption, observation)."""
        found = []
        for side in self._sides(item):
            if side.action is not None:
                self._put(side.place)
                found.append((side.next_caption, to_json_value(self._step(side))))
        return found

    def _sides(self, item: PropertyResult) -> list[_Side]:
        example = item.counterexample
        if example is None:
            return []
        obs, moved = (self._value(v) for v in (example.observation, example.image_observation))
        state = None if example.state is None else np.array(to_json_value(example.state), dtype=np.float64)
        image = state
        if state is not None and self._bound.has_state:
            image = self._bound.state(self._word(example.group_element), state)
        one = "" if item.method == "paired" else "one outcome "
        there = self._state(moved, image if self._bound.has_state else None)
        return [
            _Side("s, given", f"{one}after a from s", self._state(obs, state), example.action),
            _Side("g s, moved by g", f"{one}after g a from g s", there, example.image_action),
        ]

    def _put(self, state: Any) -> None:
        self._env.reset()
        self._access.set(self._env.unwrapped, state)

    def _step(self, side: _Side) -> Any:
        return self._env.step(from_json(self._env.action_space, to_json_value(side.action)))[0]

    def _value(self, value: Any) -> Any:
        return from_json(self._env.observation_space, to_json_value(value))

    def _state(self, obs: Any, state: Any) -> Any:
        if state is not None:
            return state
        return obs if self._access.from_observation is None else self._access.from_observation(obs)

    def _word(self, label: str) -> tuple[int, ...]:
        words = [(i,) for i in range(len(self._bound.group.generators))]
        return next(word for word in words if self._bound.label(word) == label)


def _access(base: Any) -> StateAccess:
    found = find_state_access(base)
    if found is not None:
        return found
    if hasattr(base, "s") and hasattr(base, "P"):  # toy text: the state is a number, and the table says the rest
        return StateAccess(lambda env, state: setattr(env, "s", int(state)), "toy text")
    raise SymcheckError("the environment's state cannot be set.", where=type(base).__name__)


def address(image: Any) -> str:
    """A rendered image as the `data:` address of a small PNG.

    Args:
        image: what `render` returned in mode "rgb_array", shape (height, width, 3), uint8.

    Returns:
        At most `MAX_BYTES` bytes, unless even the smallest size needs more.

    Raises:
        SymcheckError: it is no such image.

    Example:
        >>> address(np.zeros((300, 600, 3), dtype=np.uint8))[:22]
        'data:image/png;base64,'
    """
    array = np.asarray(image)
    if array.ndim != 3 or array.shape[2] != 3 or min(array.shape) < 1:
        raise SymcheckError(f"expected an image of shape (height, width, 3), got {array.shape}.", where="render()")
    width = _WIDTH
    while True:
        small = _shrunk(array, width)
        uri = png.data_uri(png.encode_rgb(small.tolist()))
        if len(uri) <= MAX_BYTES or width <= _SMALLEST:
            return uri
        width = width * 3 // 4


def _shrunk(image: npt.NDArray[Any], width: int) -> Image:
    """The mean of square blocks, so many that the longer side fits `width`; few brightness levels."""
    factor = max(1, -(-max(image.shape[:2]) // width))
    height, across = (side // factor * factor for side in image.shape[:2])
    blocks = image[:height, :across].reshape(height // factor, factor, across // factor, factor, 3)
    mean = blocks.astype(np.float64).mean(axis=(1, 3))
    return np.asarray(np.clip(np.round(mean / _STEP) * _STEP, 0, 255), dtype=np.uint8)
