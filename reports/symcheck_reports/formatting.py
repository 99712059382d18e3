"""Formats numbers and external text, in the same way for every writer.

Names, paths and messages are external and may contain any character. `clean` makes every character visible and harmless
to a terminal, to XML and to the direction of the text; HTML is escaped separately where it is written.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from symcheck.engine.results import to_json_value

# Characters that change how their neighbours are shown: direction marks, embeddings, overrides and isolates, line and
# paragraph separators, the byte order mark.
_BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u2028\u2029\ufeff")
MAX_ENTRIES = 12


def clean(text: str) -> str:
    r"""The text with control, direction and unpaired surrogate characters written as visible escapes.

    Args:
        text: any external text.

    Returns:
        Text that is valid in UTF-8 and XML 1.0; newlines and tabs are kept.

    Example:
        >>> clean("a" + chr(27) + "[31mb" + chr(0x202e) + "c")
        'a\\x1b[31mb\\u202ec'
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(character if _is_harmless(character) else _escape(character) for character in text)


def _is_harmless(character: str) -> bool:
    code = ord(character)
    if code < 0x20 or 0x7F <= code < 0xA0:
        return character in "\n\t"
    return not (0xD800 <= code <= 0xDFFF or code in (0xFFFE, 0xFFFF) or character in _BIDI)


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def one_line(text: str, limit: int = 160) -> str:
    """The cleaned text on one line, without its middle if it is longer than `limit` characters.

    Example:
        >>> one_line("a" * 50, limit=11)
        'aaaaa…aaaaa'
    """
    flat = " ".join(clean(text[: 4 * limit] + text[-limit:] if len(text) > 5 * limit else text).split())
    if len(flat) <= limit:
        return flat
    half = (limit - 1) // 2
    return f"{flat[:half]}…{flat[-half:]}"


def count(number: float) -> str:
    """An integer with thousands separated; the order of a continuous group is infinite.

    Example:
        >>> count(20000), count(math.inf)
        ('20,000', 'infinite')
    """
    return f"{number:,}" if math.isfinite(number) else "infinite"


def plural(number: int, noun: str, nouns: str | None = None) -> str:
    """A count with its noun.

    Example:
        >>> plural(1, "check"), plural(2, "property", "properties")
        ('1 check', '2 properties')
    """
    return f"{count(number)} {noun if number == 1 else nouns or noun + 's'}"


def scientific(value: float | str | None) -> str:
    """A residual or tolerance: two digits and an exponent, zero as 0, nothing as a dash.

    Example:
        >>> scientific(0.0312), scientific(0.0), scientific(None), scientific(float("nan"))
        ('3.1e-02', '0', '–', 'NaN')
    """
    if value is None:
        return "–"
    if isinstance(value, str):
        return value
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return "0" if value == 0 else f"{value:.1e}"


def number(value: Any, digits: int = 6) -> str:
    """One entry of an observation, action or outcome, to at most `digits` significant digits.

    Example:
        >>> number(0.5), number(-0.0), number(True), number("NaN"), number(1 / 3)
        ('0.5', '0', 'true', 'NaN', '0.333333')
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value or 0.0:.{digits}g}" if math.isfinite(value) else scientific(value)
    return "none" if value is None else one_line(str(value), 80)


def percent(fraction: float) -> str:
    """Format a small fraction in percent, to two significant digits.

    Example:
        >>> percent(0.0003), percent(0.5), percent(0.99)
        ('0.03%', '50%', '99%')
    """
    return f"{100 * fraction:.2g}%" if fraction < 0.995 else f"{100 * fraction:.4g}%"


def seconds(duration: float) -> str:
    """Format a wall time with a suitable unit.

    Example:
        >>> seconds(0.0021), seconds(3.14), seconds(75.0), seconds(7300.0)
        ('2 ms', '3.1 s', '1 min 15 s', '2 h 1 min')
    """
    if duration < 1:
        return f"{1000 * duration:.0f} ms"
    if duration < 60:
        return f"{duration:.1f} s"
    minutes, rest = divmod(round(duration), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def shape_of(value: Any) -> tuple[int, ...] | None:
    """The shape of regularly nested lists, () for a single number, None if the nesting is ragged or has keys.

    Example:
        >>> shape_of([[1, 2, 3], [4, 5, 6]]), shape_of(1.5), shape_of([[1], 2])
        ((2, 3), (), None)
    """
    if not isinstance(value, list):
        return None if isinstance(value, dict) else ()
    inner = {shape_of(item) for item in value}
    if len(inner) > 1 or None in inner:
        return None
    return (len(value), *(inner.pop() or ())) if inner else (0,)


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every entry of nested lists and mappings, with its place.

    Args:
        value: JSON types, as `to_json_value` returns them.
        path: the place of `value` itself.

    Yields:
        (place, entry); the place is written in Python's indexing syntax.

    Example:
        >>> list(leaves({"goal": [1.0, 2.0]}))
        [('goal[0]', 1.0), ('goal[1]', 2.0)]
        >>> list(leaves(3))
        [('', 3)]
    """
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            place = f"{path[:-1]}, {index}]" if path.endswith("]") else f"{path}[{index}]"
            yield from leaves(item, place)
    else:
        yield path, value


def compact(value: Any, limit: int = MAX_ENTRIES, digits: int = 6) -> str:
    """Format an observation or action on one line; long ones are described by their size and nonzero entries.

    Args:
        value: numbers, arrays, mappings and sequences, with any nesting.
        limit: the largest number of entries that are written out.
        digits: significant digits of each entry.

    Returns:
        The entries in brackets, or for instance "441 numbers, all 0 but [220] = 1".

    Example:
        >>> compact([0.0, 0.5, 0, 0])
        '[0, 0.5, 0, 0]'
        >>> compact([0.0] * 440 + [1.0])
        '441 numbers, all 0 but [440] = 1'
    """
    plain = to_json_value(value)
    entries = list(leaves(plain))
    if len(entries) <= limit:
        return _written(plain, digits)
    nonzero = [(place, entry) for place, entry in entries if entry != 0]
    shown = ", ".join(f"{place} = {number(entry, digits)}" for place, entry in nonzero[:limit])
    more = f" and {count(len(nonzero) - limit)} more" if len(nonzero) > limit else ""
    if not nonzero:
        return f"{count(len(entries))} numbers, all 0"
    if len(nonzero) > len(entries) // 2:
        return f"{count(len(entries))} numbers, the first: " + ", ".join(
            number(entry, digits) for _, entry in entries[:limit]
        )
    return f"{count(len(entries))} numbers, all 0 but {shown}{more}"


def _written(plain: Any, digits: int) -> str:
    if isinstance(plain, dict):
        return (
            "{" + ", ".join(f"{one_line(str(key), 40)}: {_written(item, digits)}" for key, item in plain.items()) + "}"
        )
    if isinstance(plain, list):
        return "[" + ", ".join(_written(item, digits) for item in plain) + "]"
    return number(plain, digits)


def rate_text(rate: float) -> str:
    """Format a learning rate; a dash if another trainer did not record it.

    Example:
        >>> rate_text(0.001), rate_text(float("nan"))
        ('0.001', '–')
    """
    return "–" if math.isnan(rate) else f"{rate:g}"
