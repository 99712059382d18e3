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
    typer.echo(f"Python {platform.python_version()} on {platform.system()} {platform.machine()} ({sys.executable})")
    missing = [name for name in ("symcheck", *_REQUIRED) if _version(name) is None]
    for name in ("symcheck", *_REQUIRED):
        typer.echo(f"  {name:<12} {_version(name) or 'MISSING: reinstall symcheck'}")
    typer.echo("Optional parts:")
    for extra, (module, purpose) in _EXTRAS.items():
        found = importlib.util.find_spec(module) is not None
        state = _version(module) or "installed" if found else f"pip install 'symcheck[{extra}]'"
        typer.echo(f"  {extra:<12} {purpose}: {state}")
    if missing:
        raise typer.Exit(ExitCode.UNUSABLE)


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
