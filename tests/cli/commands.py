"""Running `symcheck` in this process, as a user types it."""

from typer.testing import CliRunner

from symcheck.cli.main import app


def run(*words: object) -> tuple[int, str]:
    """The exit code and everything printed; an exception that a user would see as a traceback is raised."""
    result = CliRunner().invoke(app, [str(word) for word in words])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output
