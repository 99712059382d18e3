"""`symcheck doctor`: versions, optional parts, and what works here."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import platform
import sys

import typer

from symcheck.cli.exit_codes import ExitCode

_REQUIRED = ("numpy", "scipy", "torch", "hypothesis", "gymnasium", "ale-py", "typer", "rich", "jinja2", "sympy")
_EXTRAS = {
    "box2d": ("Box2D", "Box2D environments"),
    "mujoco": ("mujoco", "MuJoCo environments"),
    "minigrid": ("minigrid", "MiniGrid environments"),
    "distributed": ("distributed", "sweeps over a Dask cluster"),
    "discover": ("igraph", "automorphism groups of large tabular MDPs"),
    "onnx": ("onnx", "ONNX networks"),
    "sb3": ("stable_baselines3", "Stable-Baselines3 policies"),
}


def command() -> None:
    """Print versions, which optional parts are installed, and how to install the others."""
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    console.print(f"Python {platform.python_version()} on {platform.system()} {platform.machine()} ({sys.executable})")
    table = Table("package", "version", "state")
    missing = 0
    for name in ("symcheck", *_REQUIRED):
        version = _version(name)
        missing += version is None
        table.add_row(name, version or "", "ok" if version else "missing: reinstall symcheck")
    for extra, (module, purpose) in _EXTRAS.items():
        found = importlib.util.find_spec(module) is not None
        state = "ok" if found else f"optional: pip install 'symcheck\\[{extra}]'"
        table.add_row(f"{module} ({purpose})", (_version(module) or "") if found else "", state)
    console.print(table)
    if missing:
        raise typer.Exit(ExitCode.UNUSABLE)


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
