"""Pictures of counterexamples, drawn by the environment's own `render`: the state, its image and both next states.

A picture of the leg that moves the wrong way is easier to understand than numbers. A failure while drawing (no
renderer, no display, a driver that crashes, a state that cannot be set again) never affects the verdict; the page
then gives the numbers and says why there is no picture.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import io
import os
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import gymnasium as gym

from symcheck.api import isolation
from symcheck.api.studio import Studio
from symcheck.engine.results import Counterexample, PropertyResult, RunResult
from symcheck.envs.targets import EnvTarget
from symcheck.errors import SymcheckError
from symcheck.symmetry.symmetry import Symmetry
from symcheck_reports import sketches
from symcheck_reports.formatting import one_line

MAX_TOTAL_BYTES = 150_000
_DRAWN = frozenset(("observation_equivariance", "reward_invariance", "transition_invariance", "termination_invariance"))
_VIDEO = "SDL_VIDEODRIVER"  # pygame's video driver; "dummy" needs no display
_LONGEST = 400  # maximum length of a driver's error message, in characters
_FULL = "the pictures above fill this page."


@dataclasses.dataclass(frozen=True)
class _Drawing:
    """The result of drawing one counterexample: pictures, or the reason why there are none."""

    pictures: tuple[tuple[str, Any], ...] = ()
    reason: str = ""


def with_pictures(result: RunResult, target: EnvTarget, symmetry: Symmetry) -> RunResult:
    """Attach pictures to the counterexamples of a run, if the environment can be rendered.

    Args:
        result: the result of the run.
        target: the environment that was checked.
        symmetry: the claim that was checked.

    Returns:
        The same result with `Counterexample.pictures` filled in where possible, and `Counterexample.undrawn` otherwise.
        The verdict never changes, and no error is raised.

    Example:
        >>> run = RunResult("env", "CartPole-v1", "mirror", {"name": "C2", "order": 2}, (), 0.01, 0)
        >>> with_pictures(run, None, None) is run  # nothing failed, nothing is built
        True
    """
    wanted = [p for p in result.properties if p.name in _DRAWN and _has_input(p.counterexample)]
    sketched = sketches.knows(result.target)  # the page draws these environments itself if it knows the next states
    if sketched:
        wanted = [p for p in wanted if p.name in ("reward_invariance", "termination_invariance")]
    if not wanted:
        return result
    try:
        with _quiet():
            drawings = _within_budget(_drawings(wanted, target, symmetry, result.seed, sketched))
    except (Exception, KeyboardInterrupt) as error:  # a failed picture must not cost the verdict
        drawings = [_Drawing(reason="" if sketched else _reason(error))] * len(wanted)
    drawn = {item.name: _attached(item, drawing) for item, drawing in zip(wanted, drawings, strict=True)}
    return dataclasses.replace(result, properties=tuple(drawn.get(p.name, p) for p in result.properties))


def _has_input(example: Counterexample | None) -> bool:
    return example is not None and example.observation is not None and example.image_observation is not None


def _attached(item: PropertyResult, drawing: _Drawing) -> PropertyResult:
    if item.counterexample is None:
        return item
    example = dataclasses.replace(item.counterexample, pictures=drawing.pictures, undrawn=drawing.reason)
    return dataclasses.replace(item, counterexample=example)


def _within_budget(drawings: Sequence[_Drawing]) -> list[_Drawing]:
    """Pictures within the size limit of a page, the first properties first."""
    room, kept = MAX_TOTAL_BYTES, []
    for drawing in drawings:
        room -= sum(len(picture) for _, picture in drawing.pictures)
        kept.append(drawing if room >= 0 else _Drawing(reason=_FULL))
    return kept


def _reason(error: BaseException) -> str:
    if isinstance(error, SymcheckError):
        return one_line(str(error), _LONGEST)
    if isinstance(error, KeyboardInterrupt):
        return "drawing was interrupted."
    return one_line(f"drawing raised {type(error).__name__}: {error}", _LONGEST)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Suppress renderers' messages and windows: they print on import, and warn about unneeded displays."""
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


def _drawings(
    wanted: Sequence[PropertyResult], target: EnvTarget, symmetry: Symmetry, seed: int, sketched: bool
) -> list[_Drawing]:
    """One drawing per counterexample, in a child process if a driver could crash this one."""
    env = target.single()
    work = functools.partial(_photographed, wanted, env, symmetry, seed, sketched)
    if sketched:
        return work()
    if "rgb_array" not in env.metadata.get("render_modes", ()):
        raise SymcheckError('the environment has no render mode "rgb_array".')
    if not isolation.draws_with_opengl(env.unwrapped) or _has_drawn(env.unwrapped):
        return work()
    return isolation.with_backends(work, isolation.backends())


def _has_drawn(base: Any) -> bool:
    """Whether the user's own environment has rendered in this process: its context works and cannot be moved."""
    return bool(getattr(getattr(base, "mujoco_renderer", None), "_viewers", None))


def _photographed(
    wanted: Sequence[PropertyResult], env: gym.Env[Any, Any], symmetry: Symmetry, seed: int, sketched: bool
) -> list[_Drawing]:
    studio = Studio(env, symmetry.bind(env.observation_space, env.action_space), seed)
    take = studio.next_observations if sketched else studio.pictures
    drawings, errors = [], []
    for item in wanted:
        try:
            drawings.append(_Drawing(tuple(take(item))))
        except Exception as error:  # if one state cannot be drawn, still draw the others
            drawings.append(_Drawing(reason="" if sketched else _reason(error)))
            errors.append(error)
    if len(errors) == len(wanted):
        raise errors[0]
    return drawings
