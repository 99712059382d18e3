"""The command line: one module a command, all heavy imports inside the commands."""

from reference_agents.cli.main import main

__all__ = ["main"]
