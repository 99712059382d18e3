"""What `symcheck explain` says of a code: what it means, what usually brings it about, and what helps.

The codes are those of the statements that reports make: causes ("SYM014"), reasons ("nan_only") and notes. Their tables
in `symcheck/statements` hold the sentence of each, and of causes what is said here as well.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass

from symcheck.errors import OptionError, suggestion
from symcheck.statements.pattern import pattern_of
from symcheck.statements.statement import TABLES, table

_MEANINGS = {
    "reasons": "A reason: why a verdict is no plain pass or failure.",
    "notes": "A note: on what evidence a verdict stands.",
}


@dataclass(frozen=True)
class Finding:
    """One code.

    Attributes:
        code: for instance "SYM014" or "nan_only"; never reused.
        title: a line; of reasons and notes the sentence itself.
        sentence: what reports say, with the names of its fields in angle brackets.
        meaning: one or two sentences.
        causes: what usually brings it about; empty for reasons and notes.
        remedies: what helps; likewise where the table names none.
    """

    code: str
    title: str
    sentence: str
    meaning: str
    causes: tuple[str, ...] = ()
    remedies: tuple[str, ...] = ()


@functools.cache
def findings(kind: str = "causes") -> Mapping[str, Finding]:
    """All codes of one kind, in the order of their table.

    Args:
        kind: one of "causes", "reasons", "notes".

    Example:
        >>> findings()["SYM014"].title
        'An observation component carries the wrong sign'
        >>> findings("reasons")["nan_only"].sentence
        'every <quantity> was <value> on both sides: nothing could be compared'
    """
    return {code: _finding(kind, code) for code in table(kind)}


def _finding(kind: str, code: str) -> Finding:
    entry, sentence = table(kind)[code], pattern_of(code)
    return Finding(
        code,
        entry.get("title", sentence),
        sentence,
        entry.get("meaning", _MEANINGS.get(kind, "")),
        tuple(entry.get("causes", ())),
        tuple(entry.get("remedies", ())),
    )


def explain(code: str) -> Finding:
    """Look a code up.

    Args:
        code: in any case; "14" and "SYM14" mean SYM014, "nan-only" means nan_only.

    Returns:
        The finding.

    Raises:
        OptionError: no such code.

    Example:
        >>> explain("sym14").code
        'SYM014'
    """
    wanted = _spelled_out(code.strip())
    for kind in TABLES:
        if wanted in findings(kind):
            return findings(kind)[wanted]
    known = [known for kind in TABLES for known in findings(kind)]
    raise OptionError(
        f"no finding has the code {code!r}.",
        where="CODE",
        remedy=f"{suggestion(wanted, known)} `symcheck explain` lists all.",
    )


def _spelled_out(code: str) -> str:
    """The code as the tables have it."""
    digits = code.upper().removeprefix("SYM")
    if digits.isascii() and digits.isdigit():
        return f"SYM{int(digits):03d}"
    return code.lower().replace("-", "_")
