"""No page names a command, option, environment, symmetry, file or Python name that does not exist."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import names
from pages import ROOT

PAGES = [
    page.relative_to(ROOT).as_posix()
    for page in [*ROOT.glob("*.md"), ROOT / "benchmarks" / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    if "_generated" not in page.parts
]


@pytest.mark.parametrize("page", PAGES)
def test_everything_that_a_page_names_exists(page):
    assert names.missing(ROOT / page) == []


@pytest.mark.parametrize("page", PAGES)
def test_a_file_to_write_is_named_in_the_words_before_it(page):
    assert names.unnamed_files(ROOT / page) == []


def test_a_file_that_only_a_comment_names_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "In `a.py`:\n\n<!-- file: a.py -->\n```python\n```\n\nAnd:\n\n<!-- file: b.py -->\n```python\n```\n"
    )
    assert names.unnamed_files(page) == ["b.py"]


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("symcheck verify-env CartPole-v1 --samples 10", "symcheck verify-env CartPole-v1 --sample 10"),
        ("symcheck explain SYM001", "symcheck describe SYM001"),
        ("reference-agents train cartpole --seeds 5", "reference-agents train cartpole --learning-rates 1"),
        (".venv/bin/symcheck doctor", ".venv/bin/symcheck doctors"),
        ("--fail-on failed", "--fails-on failed"),
        ("sc.testing.assert_env_symmetric(env, mirror)", "sc.testing.assert_env_symmetrical(env, mirror)"),
        ("symcheck.nn.BasisLinear", "symcheck.nn.BasisDense"),
        ("cartpole/mirror", "cartpole/mirrored"),
        ("symcheck/2", "symcheck/3"),
        ("symcheck/PredatorPrey-v0", "symcheck/PreyPredator-v0"),
        ("symcheck/groups/catalog.py", "symcheck/groups/catalogue.py"),
        ("pip install 'symcheck[mujoco,box2d]'", "pip install 'symcheck[mujoko]'"),
        ("python benchmarks/gpu.py --check", "python benchmarks/gpu.py --chick"),
    ],
)
def test_a_wrong_name_planted_in_a_page_is_found(right, wrong, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"Type `{right}`, not `{wrong}`. See [this](page.md) and [that](pages.md#part).\n")
    assert names.missing(page) == [wrong, "pages.md"]


def test_a_command_in_a_block_that_does_not_run_is_looked_at(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("<!-- file: ci.yml -->\n```yaml\nscript:\n  - symcheck run --html a.html --xunit b.xml  # c\n```\n")
    assert names.missing(page) == ["symcheck run --html a.html --xunit b.xml"]
