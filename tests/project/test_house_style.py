"""The source reads as the house style asks: measured, with limits that a change must not cross."""

import importlib.util
import re
from pathlib import Path

import pytest

_PATH = Path(__file__).with_name("house_style.py")
_SPEC = importlib.util.spec_from_file_location("house_style", _PATH)
assert _SPEC is not None
house_style = importlib.util.module_from_spec(_SPEC)

# "Known exceptions" of CONTRIBUTING.md.
LONG: set[str] = set()
PARTICIPLES, HOMONYMS, VAGUE, COMMENTS = 0.02, 7, 0.02, 3.0


@pytest.fixture(scope="module", autouse=True)
def loaded():
    import sys

    sys.modules["house_style"] = house_style  # dataclasses look their module up
    _SPEC.loader.exec_module(house_style)
    yield
    del sys.modules["house_style"]


@pytest.fixture(scope="module")
def figures():
    return house_style.measure(house_style.source_files())


@pytest.mark.long
def test_functions_are_called_by_what_they_do_or_return(figures):
    assert figures.participle_share < PARTICIPLES, figures.participles


@pytest.mark.long
def test_no_private_name_stands_everywhere(figures):
    assert len(figures.homonyms) <= HOMONYMS, figures.homonyms


@pytest.mark.long
def test_locals_are_called_by_what_they_hold(figures):
    assert figures.vague_share < VAGUE, sorted(figures.vague)


@pytest.mark.long
def test_lines_that_are_not_obvious_say_why(figures):
    assert figures.comments_per_100 > COMMENTS


@pytest.mark.long
def test_modules_fit_into_450_lines(figures):
    assert {name: lines for name, lines in figures.long.items() if name not in LONG} == {}


PLANTED = '''"""A module."""

def _judged(result):
    """Judge."""
    found = result
    return found  # noqa: RET504

def _judge_steps(steps):
    # Steps that end an episode come first.
    verdicts = steps
    return verdicts

class Thing:
    @property
    def checked(self):
        return 1

    def those(self):
        return 2
'''


def test_planted_names_are_counted_and_good_ones_are_not(tmp_path):
    (tmp_path / "planted.py").write_text(PLANTED)
    figures = house_style.measure([tmp_path / "planted.py"], tmp_path)
    assert figures.participles == ["planted.py:_judged", "planted.py:those"]
    assert figures.vague == ["planted.py:found"]
    assert (figures.functions, figures.comments) == (3, 1)
    assert figures.lines == 12


def test_a_private_name_of_four_modules_is_a_homonym(tmp_path):
    for i in range(4):
        (tmp_path / f"m{i}.py").write_text("def _row():\n    pass\n" if i < 3 else "def _row(): ...\n")
    files = sorted(tmp_path.glob("*.py"))
    assert set(house_style.measure(files, tmp_path).homonyms) == {"_row"}
    assert not house_style.measure(files[:3], tmp_path).homonyms


def test_a_module_of_451_lines_is_too_long(tmp_path):
    for lines in (450, 451):
        (tmp_path / f"m{lines}.py").write_text("x = 1\n" * lines)
    assert house_style.measure(sorted(tmp_path.glob("*.py")), tmp_path).long == {"m451.py": 451}


def test_types_of_arrays_are_named_in_one_module():
    alias = re.compile(r"^[A-Z]\w*(: TypeAlias)? = npt\.NDArray\[", re.MULTILINE)
    naming = {path.name for path in house_style.source_files() if alias.search(path.read_text(encoding="utf-8"))}
    assert naming == {"array_types.py"}
