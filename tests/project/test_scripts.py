"""Benchmarks are run by hand: what they import from us must still be there."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = {
    "symcheck": ".",
    "reference_agents": ".",
    "symcheck_properties": "properties",
    "symcheck_reports": "reports",
}
SCRIPTS = sorted((ROOT / "benchmarks").rglob("*.py"))


def names_of(module: str) -> set[str]:
    """The names that a module binds, and those of the modules below it; nothing if there is no such module."""
    path = ROOT / PACKAGES[module.split(".")[0]] / module.replace(".", "/")
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    if not file.exists():
        return set()
    bound = {below.stem for below in path.glob("*")}
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            bound.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            bound |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound.add(node.id)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            bound.add(node.value)  # what a package hands out when it is asked for
    return bound


def missing_imports(text: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in PACKAGES:
            known = names_of(str(node.module))
            yield from (f"{node.module}.{alias.name}" for alias in node.names if alias.name not in known)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_a_benchmark_imports_what_is_there(script: Path) -> None:
    assert list(missing_imports(script.read_text(encoding="utf-8"))) == []


def test_an_import_of_what_is_gone_is_noticed() -> None:
    text = "from symcheck.mdp.finite import gone\nfrom symcheck.gone import x\nfrom symcheck.mdp import TabularMDP\n"
    assert list(missing_imports(text)) == ["symcheck.mdp.finite.gone", "symcheck.gone.x"]
