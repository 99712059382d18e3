"""The project's own files agree with each other."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
EXTRAS = PYPROJECT["project"]["optional-dependencies"]
PINS = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines() if line and line[0] != "#")


def normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def names(requirements: list[str]) -> list[str]:
    return [normalised(re.split(r"[\[<>=~! ]", item)[0]) for item in requirements]


def spelled_out(requirements: list[str]) -> list[str]:
    """Requirements with `symcheck[a,b]` replaced by what these extras ask for."""
    found = []
    for item in requirements:
        own = re.fullmatch(r"symcheck\[(.*)\]", item)
        extras = own[1].split(",") if own else []
        found += [item] if own is None else [leaf for extra in extras for leaf in spelled_out(EXTRAS[extra])]
    return found


def test_every_dependency_that_ci_installs_has_a_tested_pin():
    needed = PYPROJECT["project"]["dependencies"] + spelled_out(EXTRAS["dev"])
    pinned = {normalised(name) for name in PINS}
    assert set(names(needed)) <= pinned


def test_pins_lie_above_the_lower_bounds():
    from packaging.requirements import Requirement

    pins = {normalised(name): version for name, version in PINS.items()}
    for text in PYPROJECT["project"]["dependencies"]:
        requirement = Requirement(text)
        assert requirement.specifier.contains(pins[normalised(requirement.name)]), text


def test_every_dependency_is_explained():
    decisions = (ROOT / "docs" / "decisions.md").read_text()
    for name in names(PYPROJECT["project"]["dependencies"] + spelled_out(EXTRAS["dev"])):
        assert name in decisions, f"docs/decisions.md does not say why {name} earns its place"


def test_the_readme_starts_with_the_two_commands():
    blocks = re.findall(r"^```sh\n(.*?)^```$", (ROOT / "README.md").read_text(), flags=re.M | re.S)
    assert "symcheck verify-env CartPole-v1" in blocks[0]
    assert "--html report.html" in blocks[0]
    assert "pytest" in blocks[1]
    assert blocks[0].count("\n") == blocks[1].count("\n") == 1


@pytest.mark.parametrize("page", [ROOT / "README.md", ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md"])
def test_paths_named_in_the_pages_exist(page):
    folders = "symcheck|properties|reports|reference_agents|tests|docs|benchmarks|examples"
    named = re.findall(rf"`((?:{folders})/[\w/.]*)`", page.read_text())
    assert named, f"{page.name} names no path that this test can read"
    assert [path for path in named if not (ROOT / path).exists()] == []
