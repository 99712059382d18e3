"""Finding codes: what a cause in a report means, what usually brings it about, and what helps.

Engines say causes in words, because words can name the layer, the coordinate and the size that would do. The codes are
for looking things up: `findings.toml` holds one table per code, with patterns by which causes are recognised, so that
engines need not know the codes and a new finding is a new table.
"""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources

from symcheck.errors import OptionError, suggestion


@dataclass(frozen=True)
class Finding:
    """One code.

    Attributes:
        code: for instance "SYM014"; never reused.
        title: a line.
        meaning: one or two sentences.
        causes: what usually brings it about.
        remedies: what helps.
        patterns: regular expressions that are searched for in a cause.
    """

    code: str
    title: str
    meaning: str
    causes: tuple[str, ...]
    remedies: tuple[str, ...]
    patterns: tuple[re.Pattern[str], ...]


@functools.cache
def findings() -> Mapping[str, Finding]:
    """All codes, in the order in which their patterns are tried.

    Example:
        >>> findings()["SYM014"].title
        'An observation component carries the wrong sign'
    """
    text = resources.files("symcheck.statements").joinpath("causes.toml").read_text(encoding="utf-8")
    return {
        code: Finding(
            code,
            table["title"],
            table["meaning"],
            tuple(table["causes"]),
            tuple(table["remedies"]),
            tuple(re.compile(pattern) for pattern in table["patterns"]),
        )
        for code, table in tomllib.loads(text).items()
    }


def code_of(cause: str) -> str | None:
    """The code of a cause, as engines say it.

    Args:
        cause: the text, with or without the layer's name before it.

    Returns:
        The first code one of whose patterns is found in it; None where there is none.

    Example:
        >>> code_of("holds with sign -1 on theta_dot")
        'SYM014'
        >>> code_of("something new") is None
        True
    """
    return next((f.code for f in findings().values() if any(p.search(cause) for p in f.patterns)), None)


def explain(code: str) -> Finding:
    """Look a code up.

    Args:
        code: in any case; "14" and "SYM14" mean SYM014.

    Returns:
        The finding.

    Raises:
        OptionError: no such code.

    Example:
        >>> explain("sym14").code
        'SYM014'
    """
    digits = code.strip().upper().removeprefix("SYM")
    wanted = f"SYM{int(digits):03d}" if digits.isascii() and digits.isdigit() else code.strip().upper()
    found = findings().get(wanted)
    if found is None:
        raise OptionError(
            f"no finding has the code {code!r}.",
            where="CODE",
            remedy=f"{suggestion(wanted, findings())} `symcheck explain` lists all.",
        )
    return found
