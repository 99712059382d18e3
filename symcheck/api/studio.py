"""Puts an environment into each state of a counterexample in turn, and renders it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from symcheck.array_types import Bytes
from symcheck.engine.results import PropertyResult, to_json_value
from symcheck.envs.state_access import StateAccess, find_state_access
from symcheck.errors import SymcheckError
from symcheck.spaces.from_json import from_json
from symcheck.symmetry.bound import BoundSymmetry, ElementLabel
from symcheck.symmetry.tested import BoundTested
from symcheck_reports import png

# Base64 adds a third: four pictures of each of five properties stay within 320 kB of a page's 500 kB.
MAX_BYTES = 12_000
_WIDTH, _SMALLEST = 240, 40
_STEP = 8  # brightness levels per step: invisible at this size, and improves the compression of shaded surfaces
_MODE = "rgb_array"
# fraction of the camera's distance: a quarter of the way to the edge, which is at tan(45 deg / 2) = 0.41
_OFF_CENTRE = 0.1


@dataclasses.dataclass(frozen=True)
class _Side:
    """One side of a pair: the state to set, the action taken there, and the captions of both pictures."""

    caption: str
    next_caption: str
    place: Any
    action: Any


class Studio:
    """Puts an environment into states and renders it.

    Args:
        env: the environment with its wrappers; it is reset, and its final state is that of the last picture.
        bound: the claim on its spaces.
        seed: the seed of the first reset.

    Raises:
        SymcheckError: the state of the environment cannot be set.
    """

    def __init__(self, env: gym.Env[Any, Any], bound: BoundSymmetry, seed: int) -> None:
        self._env = env
        self._bound = bound
        self._access = _access(env.unwrapped)
        self._home: npt.NDArray[np.float64] | None = None  # the default target of MuJoCo's camera
        self._seed = seed
        env.reset(seed=seed)

    def pictures(self, item: PropertyResult) -> list[tuple[str, str]]:
        """State and image, and both next states if there is an action, as (caption, address)."""
        before, after = [], []
        for side in self._sides(item):
            self._put(side.place)
            self._aim()
            before.append((side.caption + self._refresh(), self._photograph()))
            if side.action is not None and item.name != "observation_equivariance":
                self._put(side.place)
                reached = self._step(side)
                after.append((side.next_caption + _which(reached).replace(" =", ":"), self._photograph()))
        captions, images = zip(*before, *after, strict=True)
        return list(zip(captions, addresses(images), strict=True))

    def next_observations(self, item: PropertyResult) -> list[tuple[str, Any]]:
        """The observations of both next states, as (caption, observation)."""
        found = []
        for side in self._sides(item):
            if side.action is not None:
                self._put(side.place)
                found.append((side.next_caption, to_json_value(self._step(side))))
        return found

    def _refresh(self) -> str:
        """Make an Atari console draw, because its screen shows the previous frame even after its memory was set.

        Returns:
            The addition to the caption.
        """
        base: Any = self._env.unwrapped
        console: Any = getattr(base, "ale", None) or getattr(base, "machine", None)
        if not callable(getattr(console, "act", None)):
            return ""
        console.act(0)  # the no-op action
        return ", one frame later"

    def _photograph(self) -> npt.NDArray[Any]:
        """The environment in its rendering mode; the mode is restored, because it may be the user's own object."""
        base: Any = self._env.unwrapped
        found = base.render_mode
        base.render_mode = _MODE
        try:
            return _checked(self._env.render())
        finally:
            base.render_mode = found

    def _aim(self) -> None:
        """Turn MuJoCo's camera, which does not follow, to a body that has left the middle of the picture.

        Only when a state is set: its successor is drawn with the same camera, so that the motion is visible.
        """
        base: Any = self._env.unwrapped
        renderer = getattr(base, "mujoco_renderer", None)
        # a camera defined by the model or by the user
        if renderer is None or getattr(renderer, "camera_id", None) != -1:
            return
        camera = renderer._get_viewer(render_mode=_MODE).cam
        if self._home is None:
            self._home = np.array(camera.lookat)
        moving = base.data.geom_xpos[base.model.geom_bodyid != 0]  # body 0 is the world: floor and walls
        middle = (moving.min(axis=0) + moving.max(axis=0)) / 2
        strays = float(np.linalg.norm(middle - self._home)) > _OFF_CENTRE * float(camera.distance)
        camera.lookat[:] = middle if strays else self._home

    def _sides(self, item: PropertyResult) -> list[_Side]:
        example = item.counterexample
        if example is None:
            return []
        obs, moved = (self._value(v) for v in (example.observation, example.image_observation))
        state = None if example.state is None else np.array(to_json_value(example.state), dtype=np.float64)
        image = state
        if state is not None and self._bound.has_state:
            image = self._image(example.group_element, state)
        one = "" if item.method == "paired" else "one outcome "
        there = self._state(moved, image if self._bound.has_state else None)
        return [
            _Side(f"s{_which(obs)}, given", f"{one}after a from s", self._state(obs, state), example.action),
            _Side(f"g s{_which(moved)}, the image under g", f"{one}after g a from g s", there, example.image_action),
        ]

    def _put(self, state: Any) -> None:
        self._env.reset(seed=self._seed)  # the same track, map or wind for all pictures
        self._access.set(self._env.unwrapped, state)

    def _step(self, side: _Side) -> Any:
        return self._env.step(from_json(self._env.action_space, to_json_value(side.action)))[0]

    def _value(self, value: Any) -> Any:
        return from_json(self._env.observation_space, to_json_value(value))

    def _state(self, obs: Any, state: Any) -> Any:
        if state is not None:
            return state
        return obs if self._access.from_observation is None else self._access.from_observation(obs)

    def _image(self, label: str, state: Any) -> Any:
        """The image of a state under the element of that name; for continuous groups, the name contains the amounts."""
        if isinstance(label, ElementLabel):
            pinned = self._bound.source.pinned(label.word, label.parameters)
            return BoundTested(pinned, self._bound.observation_space, self._bound.action_space).state((0,), state)
        return self._bound.state(self._word(label), state)

    def _word(self, label: str) -> tuple[int, ...]:
        words = [(i,) for i in range(len(self._bound.group.generators))]
        return next(word for word in words if self._bound.label(word) == label)


def _which(observation: Any) -> str:
    """The number of a state if observations are numbers, because a picture does not distinguish 500 states."""
    plain = to_json_value(observation)
    return f" = {plain}" if isinstance(plain, int) and not isinstance(plain, bool) else ""


def _access(base: Any) -> StateAccess:
    found = find_state_access(base)
    if found is not None:
        return found
    if hasattr(base, "s") and hasattr(base, "P"):  # toy text: the state is a number, and the table determines the rest
        return StateAccess(lambda env, state: setattr(env, "s", int(state)), "toy text")
    raise SymcheckError("the environment's state cannot be set.", where=type(base).__name__)


def addresses(images: Sequence[Any]) -> list[str]:
    """Convert rendered images to `data:` URLs of small PNGs, all scaled by the same factor.

    Args:
        images: images from `render` in mode "rgb_array", each of shape (height, width, 3), uint8.

    Returns:
        At most `MAX_BYTES` bytes each, unless even the smallest size needs more.

    Raises:
        SymcheckError: an entry is not such an image.

    Example:
        >>> addresses([np.zeros((300, 600, 3), dtype=np.uint8)])[0][:22]
        'data:image/png;base64,'
    """
    arrays = [_checked(image) for image in images]
    width = _WIDTH
    while True:
        uris = [png.data_uri(png.encode_rgb(_shrunk(array, width).tolist())) for array in arrays]
        if width <= _SMALLEST or max(map(len, uris), default=0) <= MAX_BYTES:
            return uris
        width = width * 3 // 4


def _checked(image: Any) -> npt.NDArray[Any]:
    if image is None:
        raise SymcheckError(f"render() returned no image in mode {_MODE!r}.")
    array = np.asarray(image)
    if array.ndim != 3 or array.shape[2] != 3 or min(array.shape) < 1:
        raise SymcheckError(
            f"render() must return an image of shape (height, width, 3), but returned shape {array.shape}."
        )
    return array.copy()  # some renderers reuse the same buffer


def _shrunk(image: npt.NDArray[Any], width: int) -> Bytes:
    """Means over square blocks, so that the longer side fits `width`, with few brightness levels."""
    factor = max(1, -(-max(image.shape[:2]) // width))
    height, across = (side // factor * factor for side in image.shape[:2])
    blocks = image[:height, :across].reshape(height // factor, factor, across // factor, factor, 3)
    mean = blocks.astype(np.float64).mean(axis=(1, 3))
    return np.asarray(np.clip(np.round(mean / _STEP) * _STEP, 0, 255), dtype=np.uint8)
