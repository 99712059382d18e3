"""The drawings of classic control: mirrored states are drawn mirrored, and what cannot be drawn is not."""

from __future__ import annotations

import dataclasses
import math
import re
import xml.etree.ElementTree as ET
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from symcheck.engine.results import Counterexample, PropertyResult, RunResult
from symcheck_reports import html, sketches
from symcheck_reports.model import run_view
from symcheck_reports.views import CounterexampleView

# Id, an observation, its mirror image, an action and its image.
MIRRORED: list[tuple[str, list[float], list[float], Any, Any]] = [
    ("CartPole-v1", [0.5, 0.1, 0.2, 0.3], [-0.5, -0.1, -0.2, -0.3], 1, 0),
    ("Pendulum-v1", [0.6, 0.8, 1.0], [0.6, -0.8, -1.0], [1.5], [-1.5]),
    ("Acrobot-v1", [0.6, 0.8, 0.8, 0.6, 1.0, 2.0], [0.6, -0.8, 0.8, -0.6, -1.0, -2.0], 0, 2),
]


def _view(observation: Any, image: Any, action: Any, image_action: Any, outcome: Any = None) -> CounterexampleView:
    example = Counterexample(
        "g", observation, None, action, outcome, outcome, 1.0, "x", image_observation=image, image_action=image_action
    )
    failure = PropertyResult("transition_invariance", "failed", "paired", 1, 1, counterexample=example)
    return run_view(RunResult("env", "x", "m", {"name": "C2", "order": 2}, (failure,), 0.01, 0)).counterexamples[0]


def _ends(drawing: str) -> list[tuple[float, float]]:
    """Where every stroke and dot of a drawing is, sorted."""
    found = []
    for part in ET.fromstring(drawing).iter():
        if part.tag == "circle":
            found.append((float(part.attrib["cx"]), float(part.attrib["cy"])))
        elif part.tag == "path" and "l" in part.attrib["d"]:
            steps = [float(n) for n in re.findall(r"-?\d+(?:\.\d+)?", part.attrib["d"])]
            found += list(zip(np.cumsum(steps[0::2]).tolist(), np.cumsum(steps[1::2]).tolist(), strict=True))
    return sorted(found)


@pytest.mark.parametrize(("target", "observation", "image", "action", "image_action"), MIRRORED)
def test_a_mirrored_state_and_action_are_drawn_mirrored(
    target: str, observation: list[float], image: list[float], action: Any, image_action: Any
) -> None:
    given, moved = sketches.scenes(target, _view(observation, image, action, image_action))
    mirrored = sorted((220.0 - x, y) for x, y in _ends(moved.drawing))
    # Coordinates are rounded to a tenth of a unit, strokes step by step.
    assert np.allclose(sorted(mirrored), _ends(given.drawing), atol=0.25)


def test_a_pole_that_leans_right_is_drawn_leaning_right() -> None:
    given, _ = sketches.scenes("CartPole-v1", _view([0, 0, 0.3, 0], [0, 0, -0.3, 0], None, None))
    rod = next(p for p in ET.fromstring(given.drawing).iter("path") if p.get("class") == "body rod")
    assert float(re.findall(r"l(-?[\d.]+)", rod.attrib["d"])[0]) > 0


def test_the_next_state_is_drawn_expected_and_measured() -> None:
    found = sketches.scenes("CartPole-v1", _view([0, 0, 0, 1.0], [0, 0, 0, -1.0], 0, 1, [0.0, 0.2, -0.02, -1.3]))
    assert len(found) == 4
    assert ["ghost" in scene.drawing for scene in found] == [False, False, False, True]


@pytest.mark.parametrize(
    ("target", "observation"),
    [
        ("Unknown-v0", [0.0] * 4),
        ("CartPole-v1", [0.0] * 5),
        ("CartPole-v1", [0.0, 0.0, math.nan, 0.0]),
        ("CartPole-v1", [[0.0, 0.0, 0.0, 0.0]]),
        ("NotMyCartPoleEnv-v1", [0.0] * 4),
    ],
)
def test_what_cannot_be_drawn_is_not_drawn(target: str, observation: list[Any]) -> None:
    assert sketches.scenes(target, _view(observation, observation, 0, 1)) == []


@pytest.mark.parametrize(
    "target", ["CartPole-v1", "Pendulum-v1", "Acrobot-v1", "MountainCar-v0", "MountainCarContinuous-v0"]
)
def test_every_observation_of_the_real_environment_can_be_drawn(target: str) -> None:
    env = gym.make(target)
    observation, _ = env.reset(seed=0)
    env.action_space.seed(0)
    for _ in range(20):
        action = env.action_space.sample()
        found = sketches.scenes(target, _view(observation, observation, action, action, observation))
        assert len(found) == 4
        assert all(ET.fromstring(scene.drawing).tag == "svg" for scene in found)
        observation, _, terminated, truncated, _ = env.step(action)
        if terminated or truncated:
            break
    env.close()


def test_next_observations_are_drawn_if_they_can_be() -> None:
    given = [0.5, 0.1, 0.2, 0.3]
    view = dataclasses.replace(_view(given, given, 0, 1), next_observations=(("at s", given), ("at g s", "lost")))
    captions = [scene.caption for scene in sketches.scenes("CartPole-v1", view)]
    assert captions[2:] == ["next state: at s"]


def test_the_page_shows_the_drawing_beside_the_numbers(failing_run: RunResult) -> None:
    text = html.render_run(failing_run)
    assert text.count("<figcaption>given: s and a</figcaption>") == 1
    other = dataclasses.replace(failing_run, target="my_package:make")
    assert "given: s and a" not in html.render_run(other)
