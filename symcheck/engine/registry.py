"""Properties as registered functions: the runner runs all properties registered for its kind.

A property is a name, the claim it makes as a formula, and a function from a run's context to a `PropertyResult`. The
file of a property registers it on import (see `symcheck_properties`); the engine refers to no property by name.

Methods are also registered by name, so that a test can check how each decides when nothing could be compared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from symcheck.engine.results import Kind, PropertyResult
from symcheck.verdict import Facts, decide

Check = Callable[[Any], PropertyResult]
_CheckT = TypeVar("_CheckT", bound=Callable[[Any], PropertyResult])


@dataclass(frozen=True)
class Property:
    """One registered property.

    Attributes:
        name: its published name, unique within its kind.
        kind: "env" or "net".
        order: properties of a kind run in ascending order.
        claim: the equation that it checks, for readers.
        meaning: the claim in words; "" if none was given.
        check: maps the runner's context to the verdict.
        applies: maps the same context to whether there is anything to check; a property that does not apply is left out
            of the run.
    """

    name: str
    kind: Kind
    order: int
    claim: str
    meaning: str
    check: Check
    applies: Callable[[Any], bool]


_PROPERTIES: dict[tuple[Kind, str], Property] = {}


_METHODS: set[str] = set()


def register(
    name: str,
    *,
    kind: Kind,
    order: int,
    claim: str,
    meaning: str = "",
    applies: Callable[[Any], bool] = lambda context: True,
) -> Callable[[_CheckT], _CheckT]:
    """Register the decorated function as the property `name`.

    Registering a name again replaces the property, so that it can be edited and reloaded in a notebook.

    Args:
        name: the published name, unique within its kind.
        kind: the kind of subject it checks, "env" or "net".
        order: position among the properties of this kind; ties are broken by name.
        claim: the equation that the property checks; reports print it.
        meaning: the claim in words; "" if the equation suffices.
        applies: whether the property has anything to check in this run.

    Returns:
        A decorator that returns the function unchanged.

    Example:
        >>> @register("always_true", kind="net", order=999, claim="true")
        ... def always_true(context):
        ...     verdict, reason = decide(Facts(checked=1))
        ...     return PropertyResult("always_true", verdict, "samples", checked=1, reason=reason)
        >>> [entry.claim for entry in registered_properties("net") if entry.name == "always_true"]
        ['true']
        >>> unregister("always_true", kind="net")

    Source: the engine's own plug-in point; see ARCHITECTURE.md.
    """

    def decorate(check: _CheckT) -> _CheckT:
        _PROPERTIES[kind, name] = Property(name, kind, order, claim, meaning, check, applies)
        return check

    return decorate


def unregister(name: str, *, kind: Kind) -> None:
    """Remove a property; does nothing if it is not registered."""
    _PROPERTIES.pop((kind, name), None)


def registered_properties(kind: Kind) -> tuple[Property, ...]:
    """The properties of one kind, in running order."""
    entries = (entry for entry in _PROPERTIES.values() if entry.kind == kind)
    return tuple(sorted(entries, key=lambda entry: (entry.order, entry.name)))


def describe(result: PropertyResult, entry: Property) -> PropertyResult:
    """The result with the equation and the meaning registered for its property.

    Runners call it for every result, so that a user's own property is printed with its own equation everywhere.

    Args:
        result: the result of the property's check.
        entry: the property.

    Returns:
        The result; fields set by the check itself are kept.
    """
    return replace(result, equation=result.equation or entry.claim, meaning=result.meaning or entry.meaning)


def undecided_result(entry: Property, facts: Facts) -> PropertyResult:
    """The result of a property that was not checked.

    Args:
        entry: the property.
        facts: the reason; must not contain a comparison.

    Example:
        >>> nothing = Property("x", "env", 1, "x = x", "", lambda context: None, lambda context: True)
        >>> undecided_result(nothing, Facts(checked=0, stopped=True)).reason.code
        'fail_fast'
    """
    verdict, reason = decide(facts)
    return describe(PropertyResult(entry.name, verdict, "none", checked=0, reason=reason, facts=facts), entry)


def register_method(name: str) -> None:
    """Register a method by the name that appears in results or in tests.

    Every name needs a row of expected verdicts in `tests/engine/guards_table.py`, one for each guard of `decide`.

    Args:
        name: for instance "paired".

    Example:
        >>> register_method("reading tea leaves")
        >>> "reading tea leaves" in methods()
        True
        >>> _METHODS.remove("reading tea leaves")
    """
    _METHODS.add(name)


def methods() -> frozenset[str]:
    """The names of all registered methods."""
    return frozenset(_METHODS)
