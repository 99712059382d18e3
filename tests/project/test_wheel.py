"""The wheel holds everything that a user needs, and runs in an environment that has nothing of the developers'."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """Built from the sdist, as an installer that finds no wheel would."""
    folder = tmp_path_factory.mktemp("dist")
    build = "import sys; from hatchling.build import build_sdist; print(build_sdist(sys.argv[1]))"
    done = subprocess.run(
        [sys.executable, "-c", build, str(folder)], cwd=ROOT, check=True, capture_output=True, text=True
    )
    sdist = folder / done.stdout.split()[-1]
    pip = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "-q",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        str(folder),
        str(sdist),
    ]
    subprocess.run(pip, check=True)
    return next(folder.glob("*.whl"))


def test_the_wheel_holds_data_templates_and_type_markers_and_no_tests(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()
    sources = {"properties/": "", "reports/": "", "symcheck/": "symcheck/", "reference_agents/": "reference_agents/"}
    expected = {
        inside + path.removeprefix(prefix) if inside == "" else path
        for path in tracked
        for prefix, inside in sources.items()
        if path.startswith(prefix)
    }
    assert expected <= names
    assert not [name for name in names if name.startswith(("tests/", "docs/", "benchmarks/"))]


def test_an_empty_environment_without_developers_tools_verifies_cartpole(wheel, tmp_path):
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "env")], check=True)
    bin_folder = tmp_path / "env" / "bin"
    install = [bin_folder / "python", "-m", "pip", "install", "-q", "-c", ROOT / "constraints.txt", wheel]
    subprocess.run(install, check=True, capture_output=True)
    words = [bin_folder / "symcheck", "verify-env", "CartPole-v1", "--html", "report.html"]
    done = subprocess.run(words, cwd=tmp_path, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "report.html").read_text().rstrip().endswith("</html>")
    listed = subprocess.run([bin_folder / "python", "-m", "pip", "list"], check=True, capture_output=True, text=True)
    assert "pytest" not in listed.stdout
    doctor = subprocess.run([bin_folder / "symcheck", "doctor"], check=False, capture_output=True, text=True)
    assert doctor.returncode == 0, doctor.stdout
