"""Black boxes that start alike and repeat are compared pair by pair; all others as whole episodes, with the reason."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

import symcheck_properties  # noqa: F401
from symcheck.engine.environments.cases.workbench import Workbench
from symcheck.engine.environments.methods import replay_access, start
from symcheck.engine.environments.replay import replay
from symcheck.engine.environments.runner import run_env
from symcheck.engine.options import EnvOptions
from symcheck.engine.results import RunResult
from symcheck.groups import catalog
from symcheck.symmetry.symmetry import Symmetry

FLIP = Symmetry("flip", catalog.cyclic(2), [[-1]], [[1, 0]])


class Maze(gym.Env[Any, Any]):
    """A walk on -5..5 that nobody can set; two cells further out push outward, `trap` on one side alone."""

    action_space = spaces.Discrete(2)

    def __init__(self, trap: bool = False, starts: Any = (0,), noise: float = 0.0, hidden: bool = False) -> None:
        self.observation_space = spaces.Box(-9, 9, (1,), np.int64)
        self.trap, self.starts, self.noise, self.hidden = trap, starts, noise, hidden

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.x = int(self.np_random.choice(self.starts))
        self.side = int(self.np_random.choice([-1, 1])) if self.hidden else 0
        return np.array([self.x]), {}

    def step(self, action: Any) -> Any:
        slip = self.np_random.random() < self.noise
        self.x += (1 if action else -1) * (-1 if slip else 1) + (self.side if abs(self.x) == 2 else 0)
        self.x += 1 if self.trap and self.x == 3 else 0
        return np.array([self.x]), -float(abs(self.x)), bool(abs(self.x) >= 5), False, {}


def run(make: Any, symmetry: Symmetry = FLIP, **options: Any) -> RunResult:
    return run_env(make, symmetry, options=EnvOptions(**{"samples": 500, **options}), target="maze", command="")


def test_a_maze_that_nobody_can_set_is_compared_pair_by_pair() -> None:
    result = run(Maze)
    assert result.verdict == "passed"
    assert {one.method for one in result.properties} == {"relations", "paired", "distribution"}
    assert result.method_reason.code == "method_replayed"
    assert "by replaying the actions that led to it, from copies of its only start" in str(result.method_reason)
    assert "action sequences from these starts" in str(result.method_reason)


def test_a_trap_that_few_episodes_reach_is_found_with_the_actions_that_lead_there() -> None:
    result = run(lambda: Maze(trap=True))
    failed = {one.name: one for one in result.properties if one.verdict == "failed"}
    assert "transition_invariance" in failed
    example = failed["transition_invariance"].counterexample
    assert example is not None
    shown = json.loads(json.dumps(result.to_dict()))
    state = next(
        one["counterexample"]["state"] for one in shown["properties"] if one["name"] == "transition_invariance"
    )
    assert state["start"] == [0.0]
    # A step from the state that its actions lead to is the trap, on one of the two sides.
    assert abs(sum(2 * action - 1 for action in state["actions"])) in (2, 3)
    again = replay(
        lambda: Maze(trap=True), FLIP, "transition_invariance",
        next(one["counterexample"] for one in shown["properties"] if one["name"] == "transition_invariance"),
        options=EnvOptions(samples=500), target="maze",
    )  # fmt: skip
    assert again.verdict == "failed"


def test_starts_that_are_images_of_each_other_are_replayed_as_pairs() -> None:
    result = run(lambda: Maze(starts=(-1, 1)))
    assert "copies of its 2 starts" in str(result.method_reason.fields["access"])
    assert result.verdict == "passed"


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: Maze(noise=0.2), "replay_differs"),
        (lambda: Maze(hidden=True), "replay_differs"),
        (lambda: Maze(starts=(1, 2)), "replay_image_no_start"),
        (lambda: Float(), "replay_many_starts"),
        (lambda: Uncopied(), "replay_not_copied"),
    ],
    ids=["random", "hidden", "one-sided starts", "starts in a box", "not copied"],
)
def test_what_cannot_be_replayed_is_tested_by_episodes_and_says_why(make: Any, why: str) -> None:
    result = run(lambda: gym.wrappers.TimeLimit(make(), 20))
    assert result.method_reason.code == "method_trajectory"
    replays = result.method_reason.fields["missing"].fields["replay"]
    assert replays.code == why
    assert str(replays) in str(result.method_reason)
    verdicts = {one.name: one.verdict for one in result.properties}
    assert verdicts["transition_invariance"] in ("passed", "undecided")


def test_copies_of_a_start_come_from_resets_with_seeds_of_their_own() -> None:
    seeds: list[int] = []

    class Seeded(Maze):
        def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
            seeds.append(-1 if seed is None else seed)
            return super().reset(seed=seed, options=options)

    run(Seeded, samples=20)
    given = [seed for seed in seeds if seed >= 0]
    # Two of a hundred draws among 2^31 agree with probability 2e-6.
    assert len(given) >= 64
    assert len(set(given)) > 0.9 * len(given)


class Float(gym.Env[Any, Any]):
    observation_space = spaces.Box(-np.inf, np.inf, (1,), np.float64)
    action_space = spaces.Discrete(2)
    from_zero = False

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.x = 0.0 if self.from_zero else self.np_random.uniform(-1, 1)
        return np.array([self.x]), {}

    def step(self, action: Any) -> Any:
        self.x = 0.9 * self.x + (0.1 if action else -0.1) + self.push(self.x)
        return np.array([self.x]), 0.0, False, False, {}

    def push(self, x: float) -> float:
        return 0.0


class Uncopied(Maze):
    def __deepcopy__(self, memo: Any) -> Any:
        raise TypeError("holds a window")


@pytest.mark.parametrize(("push", "verdict"), [(lambda x: 0.0, "passed"), (lambda x: 1e-3 * (x > 0.3), "failed")])
def test_numbers_may_drift_by_rounding_along_a_replayed_episode(push: Any, verdict: str) -> None:
    class FromZero(Float):
        from_zero = True

        def push(self, x: float) -> float:
            return push(x)

    about = Symmetry("flip", catalog.cyclic(2), [[-1]], [[1, 0]])
    result = run(lambda: gym.wrappers.TimeLimit(FromZero(), 30), about)
    assert {one.name: one.verdict for one in result.properties}["transition_invariance"] == verdict
    assert result.method_reason.code == "method_replayed"


def test_asking_for_episodes_gives_episodes() -> None:
    reason = run(Maze, method="trajectory").method_reason
    assert reason.code == "method_trajectory"
    assert str(reason).startswith("trajectory: requested")


def test_a_replayed_failure_is_reported_and_replayed_at_the_command_line(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from symcheck.cli.main import app

    (tmp_path / "maze.py").write_text(
        Path(__file__).read_text().split("def run(")[0] + "\n\ndef trapped():\n    return Maze(trap=True)\n"
    )
    words = ["verify-env", f"{tmp_path}/maze.py:trapped", "--symmetry", f"{tmp_path}/maze.py:FLIP"]
    report, page = tmp_path / "r.json", tmp_path / "r.html"
    first = CliRunner().invoke(app, [*words, "--samples", "500", "--json", str(report), "--html", str(page)])
    assert first.exit_code == 1, first.output
    assert "actions" in page.read_text()
    second = CliRunner().invoke(app, ["replay", str(report), "--trust"])
    assert second.exit_code == 1, second.output


def test_the_starts_of_a_black_box_are_drawn_once_whether_or_not_it_can_be_replayed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn = []
    honest = start.Resets

    def draw(bench: Workbench, word: tuple[int, ...]) -> start.Resets:
        drawn.append(bench)
        return honest(bench, word)

    monkeypatch.setattr(start, "Resets", draw)
    for maze, method in ((lambda: Maze(noise=0.2), "trajectory"), (Maze, "paired")):
        drawn.clear()
        result = run(maze)
        assert next(one for one in result.properties if one.name == "transition_invariance").method == method
        assert len(drawn) == 1
        assert isinstance(drawn[0].pairs.stepper.env.unwrapped, Maze)  # not what replays it


def test_states_are_400_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(replay_access, "roll_out", lambda stepper, placement, most, *_: asked.append(most))
    stepper = SimpleNamespace(codec=SimpleNamespace(coordinates=None))
    assert not replay_access._gather_reproducible(SimpleNamespace(words=[]), stepper, None).situations
    assert asked == [400]
