"""The command line: one module a command, all heavy imports inside the commands."""

from __future__ import annotations

import sys

INTERRUPTED = 130


def main() -> None:
    """Run the application; the console script. An interrupt at any moment, imports included, exits with 130."""
    try:
        from reference_agents.cli.app import app

        app()
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(INTERRUPTED)
