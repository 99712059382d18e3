"""A layout as written: read from TOML or a dictionary, with every field checked, before any model is consulted.

plane = "xz"
joints = ["FL_hip", "FR_hip"]

[action]
order = ["FR_hip", "FL_hip"]

[[observation.policy]]
term = "joint_pos"
history = 5
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from symcheck.documents import UnreadableError, read_toml
from symcheck.errors import SpecError, suggestion
from symcheck.mujoco.layouts.vocabulary import TERMS

GROUPS = ("C2", "K4", "C4")
PLANES = ("xz", "yz")
ORDERS = ("model", "urdf", "breadth_first")
_FIELDS = ("plane", "group", "joints", "action", "observation", "history")
_HISTORIES = ("frames", "terms")


@dataclass(frozen=True)
class WrittenTerm:
    """One term.

    Attributes:
        kind: a key of the vocabulary.
        arguments: its arguments, by name.
        history: the number of its frames, oldest first.
        where: names it in messages.
    """

    kind: str
    arguments: Mapping[str, Any]
    history: int
    where: str


@dataclass(frozen=True)
class GroupHistory:
    """Frames of a whole observation group.

    Attributes:
        frames: the number of frames.
        layout: "frames" (all terms of one frame, then of the next) or "terms" (term by term, each with its frames).
    """

    frames: int = 1
    layout: str = "frames"


@dataclass(frozen=True)
class WrittenLayout:
    """A whole layout.

    Attributes:
        label: the file or the name that it was read from.
        plane: "xz" or "yz".
        group: "C2", "K4" or "C4".
        joints: "model", "urdf", "breadth_first" or names.
        action: names in the order of the action; None for the order of `joints`.
        observation: the terms of every observation group.
        history: the histories of whole groups.
    """

    label: str
    plane: str = "xz"
    group: str = "C2"
    joints: str | tuple[str, ...] = "model"
    action: tuple[str, ...] | None = None
    observation: Mapping[str, tuple[WrittenTerm, ...]] = field(default_factory=dict)
    history: Mapping[str, GroupHistory] = field(default_factory=dict)


def read_layout(given: Any) -> WrittenLayout:
    """Read a layout.

    Args:
        given: the path of a TOML file, a dictionary of the same fields, or a layout that was read before.

    Returns:
        The layout.

    Raises:
        SpecError: the file is missing or not TOML, or a field, term or argument is unknown, missing or of the wrong
            kind. Messages give the place and the nearest known name.

    Example:
        >>> read_layout({"observation": {"policy": [{"term": "gravity"}]}}).observation["policy"][0].kind
        'gravity'
    """
    if isinstance(given, WrittenLayout):
        return given
    label, table = _load_table(given)
    for name in table:
        if name not in _FIELDS:
            raise SpecError(f"there is an unknown field {name!r}.", where=label, remedy=suggestion(name, _FIELDS))
    plane, group = table.get("plane", "xz"), table.get("group", "C2")
    _check_choice(plane, PLANES, f"{label}, plane")
    _check_choice(group, GROUPS, f"{label}, group")
    if group == "C4" and "plane" in table:
        raise SpecError(
            'plane cannot be combined with group = "C4", whose rotations by 90 degrees are about the z axis.',
            where=f"{label}, plane",
            remedy="Omit plane.",
        )
    if isinstance(table.get("observation"), Mapping) and "action" in table["observation"]:
        raise SpecError(
            "an observation group cannot be called 'action', because reports use this name for the "
            "columns of the action.",
            where=f"{label}, observation",
            remedy="Give the group another name.",
        )
    observation = {
        str(name): _read_terms(terms, f"{label}, observation.{name}")
        for name, terms in _table_of(table.get("observation", {}), f"{label}, observation").items()
    }
    return WrittenLayout(
        label,
        plane,
        group,
        _read_joints(table.get("joints", "model"), f"{label}, joints"),
        _read_action(table.get("action", {}), f"{label}, action"),
        observation,
        _read_histories(table.get("history", {}), observation, label),
    )


def _load_table(given: Any) -> tuple[str, Mapping[str, Any]]:
    if isinstance(given, Mapping):
        return "layout", given
    if not isinstance(given, str | Path):
        raise SpecError(
            f"expected the path of a TOML file or a dictionary, got {given!r} ({type(given).__name__}).", where="layout"
        )
    try:
        return str(given), read_toml(Path(given))
    except FileNotFoundError as error:
        raise SpecError(f"there is no file {given}.", where="layout", remedy="Give the path of a TOML file.") from error
    except (OSError, UnreadableError) as error:
        raise SpecError(f"expected a TOML file, got: {error}.", where=str(given)) from error


def _table_of(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise SpecError(f"expected a table, got {value!r}.", where=where)
    return value


def _read_terms(value: Any, where: str) -> tuple[WrittenTerm, ...]:
    if not isinstance(value, list | tuple) or not value:
        raise SpecError(
            f"expected a list of terms, got {value!r}.", where=where, remedy=f"Write [[{where.rpartition(', ')[2]}]]."
        )
    return tuple(_read_term(item, f"{where}[{i}]") for i, item in enumerate(value))


def _read_term(item: Any, where: str) -> WrittenTerm:
    table = _table_of(item, where)
    kind = table.get("term")
    if not isinstance(kind, str) or kind not in TERMS:
        raise SpecError(
            f"expected term = the name of a known term, got {kind!r}.",
            where=where,
            remedy=suggestion(str(kind), list(TERMS)),
        )
    arguments = {name: value for name, value in table.items() if name not in ("term", "history")}
    known = TERMS[kind].arguments
    for name in arguments:
        if name not in known:
            has = f"It has {', '.join((*known, 'history'))}." if known else "Its only argument is history."
            raise SpecError(f"{kind} has no argument {name!r}.", where=where, remedy=has)
    missing = [name for name in TERMS[kind].required if name not in arguments]
    if missing:
        raise SpecError(f"{kind} needs {' and '.join(missing)}.", where=where)
    return WrittenTerm(kind, arguments, check_count(table.get("history", 1), f"{where}, history"), f"{where} ({kind})")


def _read_joints(value: Any, where: str) -> str | tuple[str, ...]:
    if isinstance(value, str):
        _check_choice(value, ORDERS, where, also="a list of names")
        return value
    return read_names(value, where)


def _read_action(value: Any, where: str) -> tuple[str, ...] | None:
    table = _table_of(value, where)
    for name in table:
        if name != "order":
            raise SpecError(f"there is an unknown field {name!r}; the only field is order.", where=where)
    return read_names(table["order"], f"{where}.order") if "order" in table else None


def _read_histories(
    value: Any, observation: Mapping[str, Sequence[WrittenTerm]], label: str
) -> dict[str, GroupHistory]:
    histories = {}
    for name, item in _table_of(value, f"{label}, history").items():
        where = f"{label}, history.{name}"
        if name not in observation:
            raise SpecError(
                "the history does not belong to any observation group.",
                where=where,
                remedy=suggestion(name, list(observation)),
            )
        table = _table_of(item, where)
        for key in table:
            if key not in ("frames", "layout"):
                raise SpecError(f"there is an unknown field {key!r}; the fields are frames and layout.", where=where)
        both = [term.where for term in observation[name] if term.history > 1]
        if both:
            raise SpecError(
                f"the history belongs either to the whole group or to its terms, but {both[0]} has a "
                "history of its own.",
                where=where,
            )
        layout = table.get("layout", "frames")
        _check_choice(layout, _HISTORIES, f"{where}, layout")
        histories[name] = GroupHistory(check_count(table.get("frames"), f"{where}, frames"), layout)
    return histories


def check_count(value: Any, where: str) -> int:
    """Read an integer of at least 1.

    Raises:
        SpecError: anything else.
    """
    # In Python True is an integer, but it is not a count.
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise SpecError(f"expected a whole number, 1 or more, got {value!r}.", where=where)
    return value


def read_names(value: Any, where: str) -> tuple[str, ...]:
    """Read a list of distinct names.

    Raises:
        SpecError: anything else; the message lists names that occur twice.
    """
    if not isinstance(value, list | tuple) or not value or not all(isinstance(name, str) for name in value):
        raise SpecError(f"expected a list of names, got {value!r}.", where=where)
    twice = sorted({name for name in value if list(value).count(name) > 1})
    if twice:
        raise SpecError(f"names {', '.join(twice)} twice.", where=where)
    return tuple(value)


def _check_choice(value: Any, known: Sequence[str], where: str, also: str = "") -> None:
    if value not in known:
        words = ", ".join(map(repr, known)) + (f" or {also}" if also else "")
        raise SpecError(f"expected one of {words}, got {value!r}.", where=where, remedy=suggestion(str(value), known))
