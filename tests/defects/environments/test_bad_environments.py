"""What breaks its contract is named in one message, with the right exit code, at the command line."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from symcheck.cli.main import app

FILE = Path(__file__).parent / "bad_environments.py"

# environment, symmetry, exit code, what the output says
CASES = [
    ("RaisesInStep", "mirror", 2, "raised RuntimeError: the simulator diverged (action = "),
    ("RaisesInReset", "mirror", 2, "reset() raised OSError: licence expired"),
    ("LeavesPython", "mirror", 2, "raised SystemExit: 0"),
    ("OnlyNaN", "mirror", 3, "Every next observation was NaN on both sides, so nothing could be compared"),
    ("NaNOnOneSide", "mirror", 1, "transition_invariance FAILED"),
    ("ReusesItsBuffer", "mirror", 0, "passed     transition_invariance"),
    (
        "TakesNoSeed",
        "mirror",
        2,
        "unexpected keyword argument 'seed'. reset(*, seed=None, options=None) is Gymnasium's",
    ),
    ("SeedlessNoise", "mirror", 3, "there is randomness that no seed controls"),
    ("GrowsInStep", "mirror", 2, "step() returned an observation of 3 components, but its space has 2"),
    ("ChangesItsSpace", "mirror", 2, "reset() changed the observation space from Box(-inf, inf, (2,), float64) to Box"),
    (
        "RandomNowAndThen",
        "mirror",
        3,
        (
            "did not reproduce when re-run: the environment is intermittently non-deterministic",
            "there is randomness that no seed controls",
            "behave differently when they are set than when a rollout reaches them",
        ),
    ),
    ("OldStep", "mirror", 2, "expected step() to return (observation, reward, terminated, truncated, info), got tuple"),
    ("OldReset", "mirror", 2, "expected reset() to return (observation, info), got ndarray"),
    ("PaysNothing", "mirror", 2, "expected a number as the reward, got None"),
    ("PaysAnArray", "mirror", 0, "passed     reward_invariance"),
    ("EndsTwice", "mirror", 2, "expected true or false as terminated, got [False, False]"),
    ("ShowsText", "mirror", 2, "returned an observation that does not fit its space: hello"),
    ("CannotBeSet", "mirror", 2, "raised ValueError: the scene is locked"),
    ("IgnoresSetting", "mirror", 3, "setting a state has no effect (registered for IgnoresSetting)"),
    ("WrongSample", "mirror", 2, "proposed the state [0.0, 0.0, 0.0], expected 2 numbers, those of an observation"),
    ("SampleRaises", "mirror", 2, "raised TypeError"),
    ("UnevenActions", "negated_actions", 2, "the action map leaves the action space: the image of a = ["),
    ("Point", "action_too_large", 2, "the action map leaves the action space: the image of a = 1 is 2"),
    ("Point", "action_no_number", 2, "the callable must return one whole number, but returned 'left'"),
    ("Point", "action_half", 2, "the callable must return one whole number, but returned 0.5"),
    ("Point", "observation_shorter", 2, "an array of shape (1,) (float64) for a value of shape (2,)"),
    ("Point", "observation_raises", 2, "the callable raised ZeroDivisionError"),
    ("Point", "observation_nothing", 2, "an array of shape () (object) for a value of shape (2,)"),
    ("Track", "state_off_track", 2, "the state map leaves the space of states: the image of ["),
    ("Track", "state_raises", 2, "state[0]: the callable raised ZeroDivisionError"),
    ("Track", "state_longer", 2, "state[0]: the callable returned an array of shape (2,) (float64) for a value"),
]


@pytest.mark.parametrize(("environment", "symmetry", "code", "said"), CASES, ids=[f"{c[0]}-{c[1]}" for c in CASES])
def test_a_broken_contract_is_one_message_and_the_right_exit_code(
    environment: str, symmetry: str, code: int, said: str | tuple[str, ...], tmp_path: Path
) -> None:
    report = tmp_path / "report.json"
    words = ["verify-env", f"{FILE}:{environment}", "--symmetry", f"{FILE}:{symmetry}", "--samples", "500"]
    result = CliRunner().invoke(app, [*words, "--json", str(report)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exc_info
    output = " ".join(result.output.split())
    assert result.exit_code == code, output
    assert any(" ".join(one.split()) in output for one in ([said] if isinstance(said, str) else said)), output
    if code == 2:
        assert output.count("symcheck: ") == 1
        assert "Traceback" not in output
    # A claim that does not fit leaves no report; an environment at fault leaves one of what was finished.
    assert report.exists() == (code != 2 or symmetry == "mirror")
    if code == 2 and report.exists():
        unfinished = [item for item in json.loads(report.read_text())["properties"] if item["verdict"] == "undecided"]
        assert unfinished
        assert {item["reason"]["code"] for item in unfinished} == {"interrupted"}


@pytest.fixture(autouse=True)
def fresh_module(monkeypatch: pytest.MonkeyPatch) -> None:
    """Load the environments anew for each test: noise of a class would depend on the tests before."""
    for name in [name for name in sys.modules if name.startswith("_symcheck_user_bad_environments")]:
        monkeypatch.delitem(sys.modules, name)


@pytest.mark.parametrize("seed", [1, 2, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(3, 7))])
@pytest.mark.parametrize("environment", ["IgnoresSetting", "RandomNowAndThen"])
def test_what_no_statement_is_possible_about_is_undecided_at_every_seed(environment: str, seed: int) -> None:
    words = ["verify-env", f"{FILE}:{environment}", "--symmetry", f"{FILE}:mirror", "--samples", "500"]
    words += ["--alpha", "0.0001"]  # of accusing the start, which is fair
    assert CliRunner().invoke(app, [*words, "--seed", str(seed)]).exit_code == 3
