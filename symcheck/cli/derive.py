"""Derive the options of commands from dataclasses: one typer parameter per field."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Annotated, Any, TypeVar, get_type_hints

import typer

from symcheck.cli import completion
from symcheck.engine.option_fields import OptionField, typed_fields

_CommandT = TypeVar("_CommandT", bound=Callable[..., Any])
_PARAMETER_NAMES = {"json": "json_path"}  # otherwise a parameter would shadow the module json


def with_options(*kinds: type[Any], leave_out: Sequence[str] = ()) -> Callable[[_CommandT], _CommandT]:
    """Give a command the options of dataclasses in place of its `**given`.

    Args:
        kinds: the dataclasses; a field of a later one is omitted if an earlier one has the same name.
        leave_out: names of fields without an option in this command.

    Returns:
        A decorator that returns the command itself, with the signature that typer reads.
    """

    def decorate(command: _CommandT) -> _CommandT:
        # Annotations are strings here (PEP 563); typer needs the objects.
        hints = get_type_hints(command, include_extras=True)
        own = [
            parameter.replace(annotation=hints[name], kind=inspect.Parameter.KEYWORD_ONLY)
            for name, parameter in inspect.signature(command).parameters.items()
            if parameter.kind is not inspect.Parameter.VAR_KEYWORD
        ]
        fields = {field.name: field for kind in kinds for field in typed_fields(kind) if field.name not in leave_out}
        derived = [_parameter(field) for field in fields.values()]
        command.__signature__ = inspect.Signature([*own, *derived])  # type: ignore[attr-defined]
        command.__annotations__ = {parameter.name: parameter.annotation for parameter in (*own, *derived)}
        return command

    return decorate


def values_of(kind: type[Any], given: dict[str, Any]) -> dict[str, Any]:
    """The values of one dataclass on a command line, by field, parsed from text.

    Args:
        kind: the dataclass.
        given: parameter name to value, as typer passes them.

    Returns:
        Keywords for `kind`; fields that the command does not have are missing.
    """
    return {
        field.name: _value(field, given[parameter_name(field)])
        for field in typed_fields(kind)
        if parameter_name(field) in given
    }


def parameter_name(field: OptionField) -> str:
    """The name of a field's parameter, which is also its key in typer's default map."""
    return _PARAMETER_NAMES.get(field.name, field.name)


def _value(field: OptionField, value: Any) -> Any:
    return field.read(value) if field.read is not None and isinstance(value, str) else value


def _parameter(field: OptionField) -> inspect.Parameter:
    # A flag that is named has no --no- counterpart.
    info = typer.Option(
        field.flag,
        *_short(field),
        help=field.help,
        rich_help_panel=field.panel,
        autocompletion=getattr(completion, field.completion) if field.completion else None,
    )
    # Typer rejects a default of None if the type does not allow it.
    typed = field.kind | None if field.default is None else field.kind
    return inspect.Parameter(
        parameter_name(field),
        inspect.Parameter.KEYWORD_ONLY,
        default=field.default,
        annotation=Annotated[typed, info],
    )


def _short(field: OptionField) -> list[str]:
    return ["-q"] if field.name == "quiet" else []
