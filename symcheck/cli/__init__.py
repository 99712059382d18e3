"""The command line: one module a command, all heavy imports inside the commands."""

import sys


def entry() -> None:
    """The console script: an interrupt ends it with 130 even while the command line itself is being imported."""
    try:
        from symcheck.cli.main import main

        main()
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(130)
