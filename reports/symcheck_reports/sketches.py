"""Draws counterexamples of classic-control environments: the state and its mirror image.

Each drawing is made from one observation and is to scale; geometry and directions follow Gymnasium's `render`. To add
an environment: write a function from its observation to SVG elements, and list it in `_SKETCHES` with the pattern of
its ids and the length of its observation.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from symcheck_reports import svg
from symcheck_reports.views import CounterexampleView

_WIDTH, _HEIGHT = 220.0, 150.0
_MIDDLE = _WIDTH / 2


@dataclass(frozen=True)
class Scene:
    """One drawing with its caption."""

    caption: str
    drawing: Markup


@dataclass(frozen=True)
class _Sketch:
    pattern: re.Pattern[str]
    size: int
    body: Callable[[Sequence[float]], list[Markup]]
    push: Callable[[Sequence[float], float], list[Markup]]


def knows(target: str) -> bool:
    """Whether there is a sketch for an environment of this id.

    Example:
        >>> knows("CartPole-v1"), knows("FrozenLake-v1")
        (True, False)
    """
    return any(sketch.pattern.search(target) for sketch in _SKETCHES)


def scenes(target: str, view: CounterexampleView) -> list[Scene]:
    """Draw a counterexample: the state, its image under g, and both next states if they are known.

    Args:
        target: the environment's id.
        view: the counterexample.

    Returns:
        Two to four scenes; none if there is no sketch for the environment or its values cannot be drawn.
    """
    sketch = next((s for s in _SKETCHES if s.pattern.search(target)), None)
    given, moved = (_vector(value, sketch) for value in (view.observation, view.image_observation))
    if sketch is None or given is None or moved is None:
        return []
    scenes = [
        _scene("given: s and a", sketch, given, view.action, f"{view.anchor}-given"),
        _scene("images under g: g s and g a", sketch, moved, view.image_action, f"{view.anchor}-moved"),
    ]
    for index, (caption, observation) in enumerate(view.next_observations):
        after = _vector(observation, sketch)
        if after is not None:
            scenes.append(_scene(f"next state: {caption}", sketch, after, None, f"{view.anchor}-after{index}"))
    expected, measured = _vector(view.expected, sketch), _vector(view.actual, sketch)
    if view.property_name == "transition_invariance" and expected is not None and measured is not None:
        ghost = svg.element("g", *sketch.body(expected), class_="ghost")
        asked = "expected next state: g T(s, a)"
        came = "measured next state: T(g s, g a), over the expected state (pale)"
        scenes.append(_scene(asked, sketch, expected, None, f"{view.anchor}-asked"))
        scenes.append(Scene(came, _figure([ghost, *sketch.body(measured)], f"{view.anchor}-next", came)))
    return scenes


def _vector(value: Any, sketch: _Sketch | None) -> list[float] | None:
    if sketch is None or not isinstance(value, list) or len(value) != sketch.size:
        return None
    numbers = [v for v in value if isinstance(v, int | float) and not isinstance(v, bool) and math.isfinite(v)]
    return [float(v) for v in numbers] if len(numbers) == sketch.size else None


def _scene(caption: str, sketch: _Sketch, state: Sequence[float], action: Any, name: str) -> Scene:
    direction = action[0] if isinstance(action, list) and len(action) == 1 else action
    drawn = sketch.body(state)
    if isinstance(direction, int | float) and math.isfinite(direction):
        drawn += sketch.push(state, float(direction))
    return Scene(caption, _figure(drawn, name, caption))


def _figure(parts: Sequence[Markup], name: str, caption: str) -> Markup:
    description = "Drawn to scale; the tables have the numbers."
    return svg.figure(parts, name=name, title=caption, description=description, width=_WIDTH, height=_HEIGHT)


def _stroke(points: Sequence[tuple[float, float]], classes: str = "body") -> Markup:
    return svg.element("path", d=Markup(svg.path(points)), class_=classes)


def _dot(x: float, y: float, radius: float, classes: str = "solid") -> Markup:
    return svg.element("circle", cx=x, cy=y, r=radius, class_=classes)


def _arrow(x: float, y: float, length: float) -> list[Markup]:
    """A horizontal arrow from (x, y); nothing for length 0."""
    if length == 0:
        return []
    tip, back = x + length, math.copysign(7, length)
    return [_stroke([(x, y), (tip, y)], "push"), _stroke([(tip - back, y - 5), (tip, y), (tip - back, y + 5)], "push")]


def _turn(x: float, y: float, radius: float, direction: float) -> list[Markup]:
    """An arc with an arrow head around (x, y), counter-clockwise for a positive direction; nothing for 0."""
    if direction == 0:
        return []
    sign = 1.0 if direction > 0 else -1.0
    angles = [math.radians(90 - sign * 50 + sign * step * 10) for step in range(11)]
    points = [(x + radius * math.cos(a), y - radius * math.sin(a)) for a in angles]
    (tip_x, tip_y), head = points[-1], math.radians(90 + sign * 50)
    barbs = [(tip_x + 8 * math.cos(head + sign * b), tip_y - 8 * math.sin(head + sign * b)) for b in (-0.6, -2.2)]
    return [_stroke(points, "push"), _stroke([barbs[0], (tip_x, tip_y), barbs[1]], "push")]


def _cart_x(state: Sequence[float]) -> float:
    return _MIDDLE + min(max(state[0], -2.8), 2.8) * 36


def _cart_pole(state: Sequence[float]) -> list[Markup]:
    """Observation (x, x_dot, theta, theta_dot); theta is 0 upright and positive to the right."""
    x, base = _cart_x(state), 118.0
    tip = (x + 78 * math.sin(state[2]), base - 14 - 78 * math.cos(state[2]))
    cart = [(x - 20, base), (x - 20, base - 16), (x + 20, base - 16), (x + 20, base)]
    return [
        svg.segment(4, base + 7, to_x=_WIDTH - 4, class_="track"),
        svg.segment(_MIDDLE, base + 3, to_y=base + 12, class_="axis"),
        svg.element("path", d=Markup(svg.path(cart, closed=True)), class_="body"),
        _dot(x - 11, base + 3, 4),
        _dot(x + 11, base + 3, 4),
        _stroke([(x, base - 14), tip], "body rod"),
        _dot(x, base - 14, 3.5),
    ]


def _cart_push(state: Sequence[float], action: float) -> list[Markup]:
    sign = 1 if action == 1 else -1
    return _arrow(_cart_x(state) + sign * 24, 110, sign * 30)


def _pendulum(state: Sequence[float]) -> list[Markup]:
    """Observation (cos theta, sin theta, theta_dot); theta is 0 upright and positive counter-clockwise."""
    top = (_MIDDLE - 56 * state[1], 75 - 56 * state[0])
    return [
        _dot(_MIDDLE, 75, 60, "track"),
        _stroke([(_MIDDLE, 75), top], "body rod"),
        _dot(_MIDDLE, 75, 4),
        _dot(*top, 7),
    ]


def _pendulum_push(state: Sequence[float], action: float) -> list[Markup]:
    return _turn(_MIDDLE, 75, 24, action)


def _acrobot(state: Sequence[float]) -> list[Markup]:
    """Observation (cos 1, sin 1, cos 2, sin 2, speeds); both angles are 0 hanging down, the second relative."""
    first = math.atan2(state[1], state[0])
    both = first + math.atan2(state[3], state[2])
    knee = (_MIDDLE + 33 * math.sin(first), 75 + 33 * math.cos(first))
    foot = (knee[0] + 33 * math.sin(both), knee[1] + 33 * math.cos(both))
    return [
        svg.segment(20, 42, to_x=_WIDTH - 20, class_="track"),
        _stroke([(_MIDDLE, 75), knee, foot], "body rod"),
        _dot(_MIDDLE, 75, 4),
        _dot(*knee, 4),
        _dot(*foot, 4),
    ]


def _acrobot_push(state: Sequence[float], action: float) -> list[Markup]:
    first = math.atan2(state[1], state[0])
    return _turn(_MIDDLE + 33 * math.sin(first), 75 + 33 * math.cos(first), 15, action - 1)


def _hill(x: float) -> tuple[float, float]:
    """The height of the road at position x, also for images of states beyond the wall at -1.2."""
    return 8 + (x + 1.75) / 2.4 * 204, 138 - 105 * (0.45 * math.sin(3 * x) + 0.55)


def _mountain_car(state: Sequence[float]) -> list[Markup]:
    """Observation (position, velocity); the wall is at -1.2, the goal at 0.5."""
    x, y = _hill(state[0])
    goal_x, goal_y = _hill(0.5)
    wall_x, wall_y = _hill(-1.2)
    road = [_hill(-1.75 + 0.03 * step) for step in range(81)]
    flag = [(goal_x, goal_y), (goal_x, goal_y - 26), (goal_x - 12, goal_y - 21), (goal_x, goal_y - 16)]
    wall = svg.segment(wall_x, wall_y + 8, to_y=wall_y - 34, class_="axis")
    return [_stroke(road, "body thin-road"), wall, _stroke(flag), _dot(x, y - 7, 7)]


def _mountain_push(state: Sequence[float], action: float) -> list[Markup]:
    x, y = _hill(state[0])
    sign = math.copysign(1, action - 1) if action != 1 else 0
    return _arrow(x + sign * 11, y - 7, sign * 24)


def _mountain_push_continuous(state: Sequence[float], action: float) -> list[Markup]:
    return _mountain_push(state, 1 + action) if action else []


_SKETCHES = (
    _Sketch(re.compile(r"\bCartPole-v\d"), 4, _cart_pole, _cart_push),
    _Sketch(re.compile(r"\bPendulum-v\d"), 3, _pendulum, _pendulum_push),
    _Sketch(re.compile(r"\bAcrobot-v\d"), 6, _acrobot, _acrobot_push),
    _Sketch(re.compile(r"\bMountainCar-v\d"), 2, _mountain_car, _mountain_push),
    _Sketch(re.compile(r"\bMountainCarContinuous-v\d"), 2, _mountain_car, _mountain_push_continuous),
)
