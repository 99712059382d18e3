"""The command line: one module per command, with all heavy imports inside the commands."""

from __future__ import annotations

from symcheck.streams import run_program


def main() -> None:
    """Run the application; the console script. An interrupt at any moment, imports included, exits with 130."""
    run_program("reference-agents", _main)


def _main() -> None:
    from reference_agents.cli.app import app

    app()
