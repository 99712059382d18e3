"""Exit codes, and the decorator that turns an error in the input into one message and code 2."""

from __future__ import annotations

import enum
import functools
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from symcheck.errors import OptionError, SymcheckError

if TYPE_CHECKING:
    from symcheck.verdict import Verdict

Command = TypeVar("Command", bound=Callable[..., Any])


class ExitCode(enum.IntEnum):
    """The exit codes of the process."""

    GOOD = 0
    FAILED = 1
    UNUSABLE = 2
    UNDECIDED = 3
    BROKEN = 4
    INTERRUPTED = 130


class FailOn(enum.StrEnum):
    """Which verdicts exit non-zero."""

    FAILED = "failed"
    UNDECIDED = "undecided"


def parse_fail_on(text: str) -> frozenset[FailOn]:
    """Read `--fail-on`: one verdict, or several separated by commas or bars.

    Args:
        text: for instance "failed" or "failed,undecided".

    Returns:
        The verdicts that exit non-zero.

    Raises:
        OptionError: an unknown word.

    Example:
        >>> sorted(parse_fail_on("failed,undecided"))
        [<FailOn.FAILED: 'failed'>, <FailOn.UNDECIDED: 'undecided'>]
    """
    words = [word.strip() for word in text.replace("|", ",").split(",") if word.strip()]
    try:
        chosen = frozenset(FailOn(word) for word in words)
    except ValueError as error:
        raise OptionError(
            f"expected failed, undecided or failed,undecided; got {text!r}.", where="--fail-on"
        ) from error
    if not chosen:
        raise OptionError("expected failed, undecided or failed,undecided; got an empty value.", where="--fail-on")
    return chosen


def code_of(verdict: Verdict, *, interrupted: bool, fail_on: frozenset[FailOn]) -> ExitCode:
    """The exit code of a run.

    Args:
        verdict: the run's.
        interrupted: whether it was stopped.
        fail_on: the verdicts that exit non-zero.

    Returns:
        INTERRUPTED before anything else, then FAILED, UNDECIDED, GOOD.
    """
    if interrupted:
        return ExitCode.INTERRUPTED
    if verdict == "failed" and FailOn.FAILED in fail_on:
        return ExitCode.FAILED
    if verdict == "undecided" and FailOn.UNDECIDED in fail_on:
        return ExitCode.UNDECIDED
    return ExitCode.GOOD


def echo_problem(message: str) -> None:
    """Print the reason why a command failed; in GitHub Actions also as an annotation."""
    typer.echo(message, err=True)
    if os.environ.get("GITHUB_ACTIONS") == "true":
        escaped = message.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
        typer.echo(f"::error title=symcheck::{escaped}")


def reports_mistakes(command: Command) -> Command:
    """Decorate a command: a `SymcheckError` becomes one message and exit code 2, an interrupt 130."""

    @functools.wraps(command)
    def run_command(*args: Any, **kwargs: Any) -> Any:
        try:
            return command(*args, **kwargs)
        except SymcheckError as error:
            echo_problem(f"symcheck: {error}")
            raise typer.Exit(ExitCode.UNUSABLE) from error
        except KeyboardInterrupt as error:
            typer.echo("interrupted before anything was finished", err=True)
            raise typer.Exit(ExitCode.INTERRUPTED) from error

    return run_command  # type: ignore[return-value]
