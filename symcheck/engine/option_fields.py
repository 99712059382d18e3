"""Options declared once: a dataclass field with its help text, its position on the command line and its parser.

The command line, the settings files, the Python signature and `symcheck replay` are derived from these fields, so a new
option requires changes only in its dataclass and in the code that uses it.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from symcheck.documents import UnreadableError, parse_json
from symcheck.errors import OptionError, suggestion

_META = "symcheck"
_CallableT = TypeVar("_CallableT", bound=Callable[..., Any])


@dataclass(frozen=True)
class OptionField:
    """One option, with all its attributes.

    Attributes:
        name: the name as a Python keyword, for instance "max_time".
        default: its value if it is omitted.
        help: one or two sentences, with units.
        kind: type of the command-line text: int, float, str, bool (a flag) or pathlib.Path.
        panel: heading under which `--help` lists it; None for the default heading.
        flag: its name on the command line, for instance "--max-time".
        read: converts a value of `kind` to the option's value; None if no conversion is needed.
        is_typed: whether it exists on the command line and in settings.
        is_shared: whether `[tool.symcheck]` may set it for all checks at once.
        completion: name of the function in `symcheck.cli.completion` that completes it; "" for none.
        is_required: whether the command line requires it.
    """

    name: str
    default: Any
    help: str
    kind: type
    panel: str | None
    flag: str
    read: Callable[[Any], Any] | None
    is_typed: bool
    is_shared: bool
    completion: str
    is_required: bool

    @property
    def setting(self) -> str:
        """The option's name in settings files and in a report's command line."""
        return self.flag.removeprefix("--")

    def from_text(self, text: str) -> Any:
        """Parse the option from a command line read by `symcheck.api.commands`; a flag has no text."""
        if self.kind is bool:
            return True  # a flag is either present or absent on the command line
        return self.read(text) if self.read is not None else self.kind(text)


def option(
    default: Any,
    help: str,  # noqa: A002  (the name that every option library uses)
    *,
    kind: type = str,
    panel: str | None = None,
    flag: str = "",
    read: Callable[[Any], Any] | None = None,
    is_typed: bool = True,
    is_shared: bool = False,
    completion: str = "",
    is_required: bool = False,
) -> Any:
    """A dataclass field that is an option; for the arguments see `OptionField`."""
    table = {
        "help": help,
        "kind": kind,
        "panel": panel,
        "flag": flag,
        "read": read,
        "is_typed": is_typed,
        "is_shared": is_shared,
        "completion": completion,
        "is_required": is_required,
    }
    return dataclasses.field(default=default, metadata={_META: table})


def option_fields(kind: type[Any]) -> tuple[OptionField, ...]:
    """The options of a dataclass, in the order of its fields.

    Args:
        kind: a dataclass whose fields were made by `option`.

    Example:
        >>> from symcheck.engine.options import EnvOptions
        >>> [field.setting for field in option_fields(EnvOptions)][:2]
        ['samples', 'max-time']
    """
    return tuple(_read_field(field) for field in dataclasses.fields(kind) if _META in field.metadata)


def typed_fields(kind: type[Any]) -> tuple[OptionField, ...]:
    """The options that exist on the command line."""
    return tuple(field for field in option_fields(kind) if field.is_typed)


def _read_field(field: dataclasses.Field[Any]) -> OptionField:
    table = dict(field.metadata[_META])
    table["flag"] = table["flag"] or f"--{field.name.replace('_', '-')}"
    return OptionField(name=field.name, default=field.default, **table)


def from_keywords(kind: type[Any], given: Mapping[str, Any], *, caller: str) -> Any:
    """Build the options from keyword arguments; None means the default unless None is itself a valid value.

    Args:
        kind: the dataclass.
        given: keyword to value.
        caller: the function's name, for the message.

    Returns:
        An instance of `kind`.

    Raises:
        TypeError: an unknown keyword, as Python itself reports it.

    Example:
        >>> from symcheck.engine.options import EnvOptions
        >>> from_keywords(EnvOptions, {"seed": 3, "samples": None}, caller="verify_env").seed
        3
    """
    known = {field.name: field for field in option_fields(kind)}
    for name in given:
        if name not in known:
            raise TypeError(f"{caller}() got an unexpected keyword argument {name!r}. {suggestion(name, known)}")
    # None means the default, unless None is itself a valid value.
    return kind(**{name: value for name, value in given.items() if value is not None or known[name].default is None})


def from_texts(kind: type[Any], texts: Mapping[str, str], *, leave_out: Sequence[str] = ()) -> Any:
    """Build the options from a command line.

    Args:
        kind: the dataclass.
        texts: option name without dashes to string.
        leave_out: names of fields that keep their defaults.

    Returns:
        An instance of `kind`.
    """
    fields = [field for field in typed_fields(kind) if field.setting in texts and field.name not in leave_out]
    return kind(**{field.name: field.from_text(texts[field.setting]) for field in fields})


def shows_options(kind: type[Any]) -> Callable[[_CallableT], _CallableT]:
    """Make `help()` and editors list a function's `**options` individually.

    Args:
        kind: the dataclass built from the keywords.

    Returns:
        A decorator that returns the function itself, with a signature.
    """

    def decorate(function: _CallableT) -> _CallableT:
        signature = inspect.signature(function)
        named = [p for p in signature.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
        function.__signature__ = signature.replace(parameters=[*named, *_parameters(kind)])  # type: ignore[attr-defined]
        return function

    return decorate


def _parameters(kind: type[Any]) -> Iterator[inspect.Parameter]:
    types = {field.name: field.type for field in dataclasses.fields(kind)}
    for field in option_fields(kind):
        yield inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=types[field.name]
        )


def read_json_object(text: str) -> dict[str, Any]:
    """The keyword arguments given with --env-kwargs.

    Raises:
        OptionError: the text is not a JSON object.

    Example:
        >>> read_json_object('{"g": 9.8}')
        {'g': 9.8}
    """
    try:
        value = parse_json(text)
    except UnreadableError as error:
        raise OptionError(
            f"expected a JSON object, got {text!r} ({error}).", where="--env-kwargs", remedy="""Try '{"g": 9.8}'."""
        ) from error
    if not isinstance(value, dict):
        raise OptionError(
            f"expected a JSON object, got {text!r}.", where="--env-kwargs", remedy="""Try '{"g": 9.8}'."""
        )
    return value
