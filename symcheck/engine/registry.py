"""Properties as registered functions: the runner runs whatever is registered for its kind.

A property is a name, the claim it makes as a formula, and a function from a run's context to a `PropertyResult`.
Registering is what a property's file does on import (see `symcheck_properties`); the engine names no property.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from symcheck.engine.results import Kind, PropertyResult

Check = Callable[[Any], PropertyResult]
_CheckT = TypeVar("_CheckT", bound=Callable[[Any], PropertyResult])


@dataclass(frozen=True)
class Property:
    """One registered property.

    Attributes:
        name: its published name, unique within its kind.
        kind: "env" or "net".
        order: properties of a kind run in ascending order.
        claim: the equation it checks, for people.
        check: from the runner's context to the verdict.
        applies: from the same context to whether there is anything to check; a property that does not apply is
            left out of the run.
    """

    name: str
    kind: Kind
    order: int
    claim: str
    check: Check
    applies: Callable[[Any], bool]


_PROPERTIES: dict[tuple[Kind, str], Property] = {}


def register(
    name: str, *, kind: Kind, order: int, claim: str, applies: Callable[[Any], bool] = lambda context: True
) -> Callable[[_CheckT], _CheckT]:
    """Register the decorated function as the property `name`.

    Registering a name again replaces it, so that a property can be edited and reloaded in a notebook.

    Args:
        name: the published name, unique within its kind.
        kind: the kind of subject it checks, "env" or "net".
        order: position among the properties of this kind; ties are broken by name.
        claim: the equation that the property checks.
        applies: whether this run has anything to check under it.

    Returns:
        A decorator that returns the function unchanged.

    Example:
        >>> @register("always_true", kind="net", order=999, claim="true")
        ... def always_true(context):
        ...     return PropertyResult("always_true", "passed", "samples", checked=1)
        >>> [entry.claim for entry in registered("net") if entry.name == "always_true"]
        ['true']
        >>> unregister("always_true", kind="net")

    Source: the engine's own plug-in point; see ARCHITECTURE.md.
    """

    def decorate(check: _CheckT) -> _CheckT:
        _PROPERTIES[kind, name] = Property(name, kind, order, claim, check, applies)
        return check

    return decorate


def unregister(name: str, *, kind: Kind) -> None:
    """Forget a property; nothing happens when it is not registered."""
    _PROPERTIES.pop((kind, name), None)


def registered(kind: Kind) -> tuple[Property, ...]:
    """The properties of one kind, in the order in which they run."""
    found = (entry for entry in _PROPERTIES.values() if entry.kind == kind)
    return tuple(sorted(found, key=lambda entry: (entry.order, entry.name)))
