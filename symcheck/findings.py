"""The texts of `symcheck explain`: the meaning of a code, its usual causes, and remedies.

The codes are those of the statements in reports: causes ("SYM014"), reasons ("nan_only") and notes. The tables in
`symcheck/statements` contain the sentence of each code and, for causes, these texts too.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass

from symcheck.errors import OptionError, suggestion
from symcheck.statements.pattern import pattern_of
from symcheck.statements.statement import TABLES, table

_MEANINGS = {
    "reasons": "A reason: why a verdict is not a plain pass or failure.",
    "notes": "A note: the evidence for a verdict.",
}


@dataclass(frozen=True)
class Finding:
    """One code.

    Attributes:
        code: for instance "SYM014" or "nan_only"; never reused.
        title: one line; for reasons and notes, the sentence itself.
        sentence: the sentence in reports, with the names of its fields in angle brackets.
        meaning: one or two sentences.
        causes: the usual causes; empty for reasons and notes.
        remedies: the remedies; empty if the table has none.
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
        'An observation component has the wrong sign'
        >>> findings("reasons")["nan_only"].sentence
        'every <quantity> was <value> on both sides, so nothing could be compared'
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
        code: the code, in upper or lower case; "14" and "SYM14" mean SYM014, "nan-only" means nan_only.

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
    raise OptionError(f"no finding has the code {code!r}.", where="CODE", remedy=_what_else(wanted))


def search(text: str, *, most: int = 8) -> tuple[Finding, ...]:
    """The codes whose title, sentence or meaning contains given words, the best matches first.

    Args:
        text: the words to search for.
        most: the largest number of results.

    Example:
        >>> [finding.code for finding in search("observation wrong sign", most=1)]
        ['SYM014']
    """
    stems = {word.rstrip("s")[:7] for word in re.findall(r"[a-z]{3,}", text.lower().replace("_", " "))}
    scored = []
    for kind in TABLES:
        for finding in findings(kind).values():
            title, rest = finding.title.lower(), f"{finding.sentence} {finding.meaning}".lower()
            score = sum(3 if stem in title else int(stem in rest) for stem in stems)
            scored.append((score, finding))
    best = max((score for score, _ in scored), default=0)
    # A match of only one of several words is not informative.
    kept = [item for item in scored if item[0] > 0 and 2 * item[0] >= best]
    return tuple(finding for _, finding in sorted(kept, key=lambda item: -item[0])[:most])


_SUBJECTS = (
    (1, "a claim and an environment"),
    (101, "networks"),
    (201, "mirror functions and models of robots"),
    (250, "policies"),
    (301, "games"),
)
_WORDS = "Describe in words what you saw, as in `symcheck explain wrong sign`; `symcheck explain` lists all codes."


def _what_else(wanted: str) -> str:
    """A suggestion for an unknown code: search by meaning, because digits carry none."""
    if not wanted.upper().startswith("SYM"):
        known = [known for kind in TABLES for known in findings(kind) if known.islower()]
        near = suggestion(wanted, known).partition("Known:")[0]
        about = "; ".join(f"{finding.code} ({finding.title})" for finding in search(wanted, most=3))
        return f"{near}{f'Codes about these words: {about}. ' if about else ''}{_WORDS}"
    numbers = sorted(int(code[3:]) for code in findings() if code.startswith("SYM"))
    blocks = []
    for i, (first, subject) in enumerate(_SUBJECTS):
        end = _SUBJECTS[i + 1][0] if i + 1 < len(_SUBJECTS) else 1000
        last = max(number for number in numbers if number < end)
        blocks.append(f"SYM{first:03d} to SYM{last:03d} are about {subject}")
    return f"{'; '.join(blocks)}. {_WORDS}"


def _spelled_out(code: str) -> str:
    """The code as spelled in the tables."""
    digits = code.upper().removeprefix("SYM")
    if digits.isascii() and digits.isdigit():
        return f"SYM{int(digits):03d}"
    return code.lower().replace("-", "_")
