"""Records an episode of a trained network as a GIF or an MP4 (extra `video`)."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from reference_agents.encoding.environment import EncodedEnvironment
from reference_agents.randomness import Purpose, UniformStreams, generator
from symcheck.array_types import Bytes
from symcheck.errors import MissingExtraError, OptionError, TargetError

SUFFIXES = (".gif", ".mp4")
Act = Callable[[npt.NDArray[np.float32], npt.NDArray[np.float64]], Any]
"""Maps one observation and uniform numbers to one action."""


def check_film(target: Path) -> None:
    """Reject a video file that cannot be written, before an episode is played.

    Raises:
        OptionError: a suffix other than .gif or .mp4, or a folder that does not exist.
        MissingExtraError: the extra `video` is not installed.
    """
    if target.suffix not in SUFFIXES:
        raise OptionError(
            f"expected a file ending in .gif or .mp4, got {str(target)!r}.",
            where="--video",
        )
    if not target.parent.is_dir():
        raise OptionError(f"there is no folder {str(target.parent)!r}.", where="--video")
    # Pillow reads and writes GIF, ffmpeg encodes MP4; the latter comes with imageio_ffmpeg.
    for package in ("imageio", "PIL", *(("imageio_ffmpeg",) if target.suffix == ".mp4" else ())):
        try:
            importlib.import_module(package)
        except ImportError as error:
            raise MissingExtraError("video", needed_for="--video") from error


def film(
    encoded: EncodedEnvironment,
    act: Act,
    noise_shape: tuple[int, ...],
    target: Path,
    *,
    seed: int,
    arguments: Mapping[str, Any] | None = None,
    limit: int | None = None,
) -> tuple[int, float]:
    """Play one episode and record what the environment renders.

    Args:
        encoded: an environment that renders `rgb_array`.
        act: maps one encoded observation and uniform numbers to one action.
        noise_shape: the shape of the uniform numbers.
        target: a .gif or .mp4 file.
        seed: the seed of the episode.
        arguments: the arguments of the environment.
        limit: the number of steps after which the episode is truncated; None for no limit.

    Returns:
        The number of steps of the episode, and its return.

    Raises:
        TargetError: the environment cannot be rendered.
        OptionError: the file cannot be written.
    """
    environment = _rendering(encoded, arguments or {})
    try:
        streams = UniformStreams([seed], Purpose.EVALUATION_ACTIONS, noise_shape)
        # The start state and the noise have separate streams, as in evaluations.
        start = int(generator(seed, Purpose.EVALUATION_ENVIRONMENT).integers(2**31))
        observation, _ = environment.reset(seed=start)
        # The first frame shows the start state, so frames are one more than steps.
        frames, total, ended = [_frame(environment)], 0.0, False
        while not ended:
            action = act(encoded.observation.encode(observation), streams.next()[0])
            observation, reward, terminated, truncated, _ = environment.step(encoded.action.decode(action))
            frames.append(_frame(environment))
            total, ended = total + float(reward), terminated or truncated or len(frames) - 1 == limit
        _write(frames, target, float(environment.metadata.get("render_fps", 30)))
    finally:
        environment.close()
    return len(frames) - 1, total


def _rendering(encoded: EncodedEnvironment, arguments: Mapping[str, Any]) -> gym.Env[Any, Any]:
    # Frames are rendered in memory: SDL must not open a display.
    os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
    try:
        return encoded.remake({"render_mode": "rgb_array", **arguments})
    except Exception as error:
        raise TargetError(
            f"a video cannot be recorded, because {encoded.label!r} cannot be made with "
            f"render_mode='rgb_array' ({error}).",
            where="--video",
        ) from error


def _frame(environment: gym.Env[Any, Any]) -> Bytes:
    try:
        frame = environment.render()
    except Exception as error:
        raise TargetError(
            f"a video cannot be recorded, because rendering failed ({error}).",
            where="--video",
            remedy="Classic control needs pygame: pip install 'symcheck[video]'.",
        ) from error
    array: Bytes = np.asarray(frame, dtype=np.uint8)
    if array.ndim != 3 or array.shape[2] != 3:
        raise TargetError(f"expected frames of shape (height, width, 3), got {array.shape}.", where="--video")
    return array[: array.shape[0] // 2 * 2, : array.shape[1] // 2 * 2]  # the MP4 codec requires even sizes


def _write(frames: list[Bytes], target: Path, fps: float) -> None:
    imageio: Any = importlib.import_module("imageio.v2")
    # Write to a temporary file and rename it, so that an interrupted encoder leaves no partial file.
    beside = target.with_name(f".{target.stem}-unfinished{target.suffix}")
    try:
        if target.suffix == ".gif":
            # GIF frame times are multiples of 0.01 s, and viewers slow down below 0.02 s.
            stride = max(1, round(fps / 50.0))
            imageio.mimwrite(beside, frames[::stride], duration=1000.0 * stride / fps, loop=0)
        else:
            imageio.mimwrite(beside, frames, fps=fps, macro_block_size=2)
        beside.replace(target)
    except OSError as error:
        raise OptionError(f"{str(target)!r} cannot be written ({error}).", where="--video") from error
    finally:
        # After the rename, the temporary file no longer exists.
        beside.unlink(missing_ok=True)
