"""A statement is a code with fields; its sentence is rendered on demand.

The engine states causes, reasons and notes as data. No code parses a sentence: code that needs the coordinate reads the
field. The sentences, one per code, are Jinja2 templates over the fields, in three tables in this folder: `causes.toml`
(SYM001, ..., with the texts of `symcheck explain`), `reasons.toml` (why a verdict is not a plain pass or failure) and
`notes.toml` (the evidence for it).
"""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib import resources
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import jinja2

TABLES = ("causes", "reasons", "notes")
FREE = ""
"""The code for third-party text, from a user's own property or an older report."""


@dataclass(frozen=True)
class Statement:
    """A code with its fields.

    Attributes:
        code: a key of one of the tables, for instance "SYM014"; "" for free text, in the field `text`.
        fields: the fields by name: numbers, text, lists, other statements; `code` and `text` are reserved.

    Example:
        >>> Statement("SYM014", {"sign": "-1", "coordinate": "theta_dot"}).text
        'the claim holds with sign -1 on theta_dot'
    """

    code: str
    fields: Mapping[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The sentence, without a full stop.

        Raises:
            KeyError: no table has the code.
            jinja2.UndefinedError: the sentence names a field that is missing.
        """
        if self.code == FREE:
            return str(self.fields["text"])
        return _template(self.code).render(self.fields).strip()

    def __str__(self) -> str:
        return self.text

    def to_dict(self) -> dict[str, Any]:
        """The published form: `code`, `text`, then the fields; nested statements have the same form.

        Example:
            >>> Statement("fail_fast").to_dict()["code"]
            'fail_fast'
        """
        head = {"code": self.code or None, "text": self.text}
        return {**head, **{name: _plain(value) for name, value in self.fields.items() if name not in head}}


def state(code: str, **fields: Any) -> Statement:
    """The statement with this code and these fields.

    Example:
        >>> state("SYM014", sign="+1", coordinate="x").fields["coordinate"]
        'x'
    """
    return Statement(code, fields)


def free(text: str) -> Statement:
    """Third-party text as a statement.

    Example:
        >>> free("the moon was full").text
        'the moon was full'
    """
    return Statement(FREE, {"text": text})


def as_statements(given: Iterable[Statement | str]) -> tuple[Statement, ...]:
    """Convert plain text to free statements.

    Example:
        >>> [one.text for one in as_statements(["a", free("b")])]
        ['a', 'b']
    """
    return tuple(free(item) if isinstance(item, str) else item for item in given)


def as_paragraph(statements: Iterable[Statement]) -> str:
    """Join statements as sentences, each with a capital and a full stop.

    Example:
        >>> as_paragraph([free("one thing"), free("Another.")])
        'One thing. Another.'
    """
    return " ".join(as_sentence(text) for item in statements if (text := item.text.strip()))


def as_sentence(text: str) -> str:
    """Format a string as a sentence with a capital and a full stop.

    Example:
        >>> as_sentence("one thing"), as_sentence("body.3 fails")
        ('One thing.', 'body.3 fails.')
    """
    if not text.strip():
        return ""
    # Do not capitalise a name such as "body.3" or "q_net".
    first = text.split(maxsplit=1)[0].rstrip(",;:")
    head = text[0].upper() if first.isalpha() else text[0]
    return f"{head}{text[1:].rstrip('.')}."


def _plain(value: Any) -> Any:
    if isinstance(value, Statement):
        return value.to_dict()
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    return value


@functools.cache
def table(name: str) -> Mapping[str, Mapping[str, Any]]:
    """One of the tables, which maps each code to an entry with a `sentence`.

    Args:
        name: one of `TABLES`.

    Example:
        >>> "SYM001" in table("causes")
        True
    """
    text = resources.files("symcheck.statements").joinpath(f"{name}.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def sentence_of(code: str) -> str:
    """The template of a code.

    Raises:
        KeyError: no table has the code.
    """
    for name in TABLES:
        if code in table(name):
            return str(table(name)[code]["sentence"])
    raise KeyError(f"no sentence for the code {code!r}")


@functools.cache
def environment() -> jinja2.Environment:
    """The Jinja2 environment of the templates: a missing field is an error, and numbers have the filters below."""
    import jinja2

    made = jinja2.Environment(undefined=jinja2.StrictUndefined, autoescape=False, trim_blocks=True, lstrip_blocks=True)
    made.filters.update(spec=_with_spec, listed=_listed, plural=_plural, boxed=_describe_box)
    return made


@functools.cache
def _template(code: str) -> jinja2.Template:
    return environment().from_string(sentence_of(code))


def _with_spec(value: Any, spec: str) -> str:
    """A number in Python's format language; -0.0 loses its sign."""
    return format(value + 0.0 if isinstance(value, float) else value, spec)


def _listed(values: Iterable[Any], last: str = "and") -> str:
    """Names as a list in prose: "a, b and c"."""
    texts = [str(value) for value in values]
    return f" {last} ".join([", ".join(texts[:-1]), texts[-1]] if len(texts) > 1 else texts)


def _describe_box(sides: Iterable[Mapping[str, Any]]) -> str:
    """The sides of a box as a list in prose: "x is 0.8 to 0.9 and the step number is 150"."""
    ranges = [(side["name"], *dict.fromkeys((side["low"], side["high"]))) for side in sides]
    return _listed(f"{name} is {' to '.join(_with_spec(end, '.3g') for end in ends)}" for name, *ends in ranges)


def _plural(count: int, noun: str, many: str = "") -> str:
    """A count with its noun: "1 pair", "2,000 pairs"."""
    return f"{count:,} {noun if count == 1 else many or noun + 's'}"
