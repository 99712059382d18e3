"""The files of a release agree with the project: citation, conda recipe, publishing workflow, templates, versions."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
RECIPE = yaml.safe_load((ROOT / "packaging" / "conda-forge" / "recipe.yaml").read_text())
CONDA_NAMES = {"torch": "pytorch"}


def load(*parts: str):
    return yaml.safe_load(ROOT.joinpath(*parts).read_text())


@pytest.mark.parametrize("version", [load("CITATION.cff")["version"], RECIPE["context"]["version"]])
def test_every_file_that_names_the_version_has_the_projects(version):
    assert version == PROJECT["version"]


def test_the_citation_and_the_bibtex_entry_are_of_this_project():
    citation = load("CITATION.cff")
    assert citation["cff-version"] == "1.2.0"
    assert {"message", "title", "authors"} <= citation.keys()
    (entry,) = re.findall(r"@software\{.*?^\}", (ROOT / "README.md").read_text(), re.M | re.S)
    assert citation["title"].replace(": check", ": Check") in entry
    assert PROJECT["version"] in entry


def test_the_conda_recipe_asks_for_what_pip_asks_for():
    asked = [re.sub(r"\s", "", line) for line in RECIPE["requirements"]["run"] if not line.startswith("python ")]
    wanted = []
    for text in PROJECT["dependencies"]:
        name, bound = re.fullmatch(r"([\w-]+)(.*)", text).groups()
        wanted.append(CONDA_NAMES.get(name, name) + bound)
    assert asked == wanted
    assert RECIPE["context"]["python_min"] in PROJECT["requires-python"]
    scripts = [f"{name} = {target}" for name, target in PROJECT["scripts"].items()]
    assert RECIPE["build"]["python"]["entry_points"] == scripts


def test_publishing_needs_no_secret_and_only_its_own_job_may_do_it():
    text = (ROOT / ".github" / "workflows" / "publish.yml").read_text()
    workflow = yaml.safe_load(text)
    assert "secrets." not in text
    assert "password" not in text
    assert workflow["permissions"] == {}
    allowed = [name for name, job in workflow["jobs"].items() if "id-token" in job["permissions"]]
    assert allowed == ["publish"]
    publish = workflow["jobs"]["publish"]
    assert publish["environment"]["name"] == "pypi"
    assert publish["steps"][-1]["uses"].startswith("pypa/gh-action-pypi-publish@")
    assert workflow[True] == {"release": {"types": ["published"]}}  # YAML reads `on` as true


def test_the_issue_template_asks_for_doctor_and_the_json_report():
    template = load(".github", "ISSUE_TEMPLATE", "wrong-verdict.yml")
    required = {item["id"] for item in template["body"] if item.get("validations", {}).get("required")}
    assert {"doctor", "json"} <= required
    assert "symcheck doctor" in str(template)
    assert "--json" in str(template)


def test_each_tag_becomes_a_version_of_the_documentation():
    build = load(".readthedocs.yaml")
    assert build["version"] == 2
    assert (ROOT / build["sphinx"]["configuration"]).exists()
    assert build["sphinx"]["fail_on_warning"]
    assert "docs" in PROJECT["optional-dependencies"]


def test_the_security_page_says_what_runs_and_where_to_report():
    text = (ROOT / "SECURITY.md").read_text()
    for named in ("symcheck replay", "--trust", "docs/security.md", "privately"):
        assert named in text
