"""Operators register on import: a module of them that nothing imports would silently prove nothing."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import symcheck.engine.networks

FOLDER = Path(symcheck.engine.networks.__file__).parent


def registering_modules(folder: Path, package: str) -> set[str]:
    """The modules in which some function is decorated by `operator(...)`."""
    modules = set()
    for path in folder.rglob("*.py"):
        functions = (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef))
        calls = (call for function in functions for call in function.decorator_list if isinstance(call, ast.Call))
        if any(isinstance(call.func, ast.Name) and call.func.id == "operator" for call in calls):
            modules.add(".".join((package, *path.relative_to(folder).with_suffix("").parts)))
    return modules


@pytest.mark.long
def test_every_module_of_operators_is_loaded_by_the_interpreter() -> None:
    wanted = registering_modules(FOLDER, "symcheck.engine.networks")
    assert len(wanted) > 3
    # A process of its own: another test may have imported a module that the interpreter does not.
    program = "import sys, symcheck.engine.networks.graph.interpreter; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120)
    missing = sorted(wanted - set(done.stdout.split()))
    assert missing == [], "import them in symcheck/engine/networks/graph/interpreter.py"


def test_a_module_with_an_operator_is_found_and_one_without_is_not(tmp_path: Path) -> None:
    (tmp_path / "operators_new.py").write_text('@operator("sinc")\ndef sinc(graph, x):\n    return x\n')
    (tmp_path / "helpers.py").write_text("@cache\ndef operator(x):\n    return x\n")
    assert registering_modules(tmp_path, "p") == {"p.operators_new"}
