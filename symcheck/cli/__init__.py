"""The command line: one module per command, with all heavy imports inside the commands."""

import sys

from symcheck.cli.supervisor import supervise
from symcheck.streams import run_program


def entry() -> None:
    """The console script; an interrupt exits with 130, even during the import of the command line."""
    supervise(sys.argv[1:], lambda: run_program("symcheck", _main))


def _main() -> None:
    from symcheck.cli.main import main

    main()
