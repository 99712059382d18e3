"""The atlas of robots says what the installed packages ship."""

import sys
from importlib import metadata
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
pytest.importorskip("mujoco")
sys.path.insert(0, str(Path(__file__).parent))
import robot_models  # noqa: E402


@pytest.mark.parametrize("entry", robot_models.PACKAGES, ids=lambda entry: entry[1])
def test_the_atlas_of_robots_is_what_the_models_say(entry):
    made = robot_models.section_of(*entry)
    if made is None:
        pytest.skip(f"{entry[1]} is not installed")
    held = robot_models.sections(robot_models.PAGE.read_text()).get(entry[1])
    if held is None or held[0] != f"## {entry[1]} {metadata.version(entry[1])}":
        pytest.skip(f"the atlas is of another version of {entry[1]}")
    assert "\n".join(made).rstrip("\n").split("\n") == held
