"""The errors for invalid user input, and helpers for their messages.

Every message answers four questions: what was expected, what was given, where, and what to do about it. `SymcheckError`
is their base class. For each of these errors, the command line prints one message and exits with code 2.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class SymcheckError(Exception):
    """The input cannot be used as given.

    Raised for invalid groups, representations, symmetries, environments, networks, options and files. A symmetry
    that does not hold is not an error but a `failed` verdict.

    Args:
        message: what was expected and what was given, in one or two sentences.
        where: the argument, file, option or environment at fault; it begins the message if given.
        remedy: what to do; it ends the message if given.

    Example:
        >>> str(SymcheckError("expected 1 sample or more, got 0.", where="--samples", remedy="Omit the option."))
        '--samples: expected 1 sample or more, got 0. Omit the option.'
    """

    def __init__(self, message: str, *, where: str | None = None, remedy: str | None = None) -> None:
        self.where = where
        self.remedy = remedy
        self.problem = shortened(message)
        parts = [f"{shortened(where)}: {self.problem}" if where else self.problem]
        if remedy:
            parts.append(shortened(remedy))
        super().__init__(" ".join(parts))


class GroupError(SymcheckError):
    """The input does not define a finite group within the limits."""


class RepresentationError(SymcheckError):
    """Matrices or images that do not represent the declared group."""


class SpecError(SymcheckError):
    """A symmetry specification that cannot be read, or does not fit the space on which it acts."""


class TargetError(SymcheckError):
    """An environment or network that cannot be found, built or used."""


class OptionError(SymcheckError):
    """An option outside its range."""


class MissingExtraError(SymcheckError):
    """An optional extra that is not installed; the message says how to install it."""

    def __init__(self, extra: str, *, needed_for: str) -> None:
        super().__init__(
            f"{needed_for} needs the optional extra '{extra}', which is not installed.",
            remedy=f"Install it with: pip install 'symcheck[{extra}]'",
        )


class SkippedCheckWarning(UserWarning):
    """A check that could not be run; the message names the argument with which it can be run."""


_LONGEST = 1_000  # maximum length of one part of a message; ours have some 300 characters


def shortened(text: str) -> str:
    """Shorten a long text by omitting its middle, for messages that repeat the input.

    Example:
        >>> len(shortened("9" * 5000)), shortened("short")
        (737, 'short')
    """
    if len(text) <= _LONGEST:
        return text
    left_out = len(text) - 700
    return f"{text[:500]} ... ({left_out:,} characters left out) ... {text[-200:]}"


def described(error: BaseException) -> str:
    r"""Format a third-party exception as one clause for use in our messages: one line, without the full stop.

    Example:
        >>> described(ValueError("no engine.\n  Start it."))
        'ValueError: no engine. Start it'
    """
    # Reduce the exception's text to one line.
    text = " ".join(str(error).split()).rstrip(".")
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def suggestion(given: str, known: Iterable[str]) -> str:
    """A sentence that proposes the nearest known name, or lists the known names.

    Args:
        given: the unknown name.
        known: the existing names.

    Returns:
        "Did you mean 'x'? " or "", followed by the known names, at most twelve of them.

    Example:
        >>> suggestion("cartpol", ["cartpole", "acrobot"])
        "Did you mean 'cartpole'? Known: acrobot, cartpole."
    """
    names = sorted(set(known))
    if not names:
        return "None is known."
    near = difflib.get_close_matches(given, names, n=1)
    lead = f"Did you mean {near[0]!r}? " if near else ""
    # Long lists are truncated, because the nearest name was already proposed.
    shown = ", ".join(names[:12]) + (f" and {len(names) - 12} more" if len(names) > 12 else "")
    return f"{lead}Known: {shown}."
