import sys
from pathlib import Path

import pytest

import symcheck_properties  # noqa: F401  (registers the properties)

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """An empty folder, entered."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
