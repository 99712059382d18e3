"""Reads published JSON: the supported schemas, and the upgrade of older reports.

All commands that read a report (`symcheck replay`, `symcheck report`) use this module, so the rest of the program
handles only the current schema. `symcheck/1` stored as prose some fields that `symcheck/2` stores as data. The data of
such a file is kept; its sentences are not parsed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from symcheck.engine.results import SCHEMA
from symcheck.spaces.from_json import floats
from symcheck.statements.statement import free
from symcheck.verdict import AcceptedBy

READABLE = ("symcheck/1", SCHEMA)
"""The supported schemas, the current one last."""

# Options that accept violations, by their names in results.
_ACCEPTING: dict[AcceptedBy, str] = {"baseline": "--baseline", "accept_gap": "--accept-gap"}


def upgrade(report: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a report of any supported schema to the current schema.

    Args:
        report: a run, several runs under `reports`, or a search, parsed from JSON; possibly damaged.

    Returns:
        The same object in the current schema. Damaged parts are left for the reader to reject.

    Example:
        >>> old = {"schema": "symcheck/1", "command": "symcheck verify-env E --accept-gap 5", "properties": [
        ...     {"name": "reward_invariance", "verdict": "passed", "violations": 3, "causes": [], "detail": "Seen."}]}
        >>> new = upgrade(old)
        >>> new["approximate"], new["properties"][0]["accepted_by"], new["properties"][0]["notes"][0]["text"]
        (True, 'accept_gap', 'Seen.')
    """
    upgraded = dict(report)
    if upgraded.get("schema") != READABLE[0]:
        return upgraded
    upgraded["schema"] = SCHEMA
    # keys of the runs in a report of several runs, and in a search
    for holder in ("reports", "candidates", "rotations"):
        if isinstance(items := upgraded.get(holder), list):
            upgraded[holder] = [_with_upgraded_report(item) for item in items]
    if isinstance(upgraded.get("properties"), list):
        by = _accepted_by(str(upgraded.get("command") or ""))
        upgraded["properties"] = [_upgrade_property(item, by) for item in upgraded["properties"]]
        decided = [item for item in upgraded["properties"] if isinstance(item, dict)]
        upgraded["approximate"] = any(item["approximate"] for item in decided)
    whole: dict[str, Any] = _with_upgraded_report(upgraded)
    return whole


def _with_upgraded_report(item: Any) -> Any:
    """The upgraded run; for a candidate of a search, the run under its key `report`."""
    if not isinstance(item, dict):
        return item
    if "properties" in item and item.get("schema") == READABLE[0]:
        return upgrade(item)
    return {**item, "report": upgrade(item["report"])} if isinstance(item.get("report"), dict) else item


def _accepted_by(command: str) -> AcceptedBy | None:
    """How the run accepted violations, if its command determines that."""
    words = command.split()
    by = [name for name, option in _ACCEPTING.items() if option in words]
    return by[0] if len(by) == 1 else None


def _upgrade_property(item: Any, by: AcceptedBy | None) -> Any:
    if not isinstance(item, dict):
        return item
    # Only an accepted violation passed in symcheck/1.
    is_accepted = item.get("verdict") == "passed" and _is_positive(item.get("violations"))
    upgraded = {"reason": None, "approximate": is_accepted, "accepted_by": by if is_accepted else None, **item}
    if isinstance(causes := item.get("causes"), list):
        upgraded["causes"] = [free(cause).to_dict() if isinstance(cause, str) else cause for cause in causes]
    detail = item.get("detail")
    upgraded["notes"] = [free(detail).to_dict()] if isinstance(detail, str) and detail else []
    example = item.get("counterexample")
    if isinstance(example, dict) and isinstance(element := example.get("group_element"), str):
        upgraded["counterexample"] = {**example, "group_element": {"word": element, "parameters": []}}
    return upgraded


def _is_positive(value: Any) -> bool:
    return isinstance(value, int) and value > 0


def element_word(example: Mapping[str, Any]) -> str:
    """The group element of a published counterexample, in the engine's notation.

    Args:
        example: a counterexample of either schema.

    Returns:
        For instance "mirror" or "r^2"; "" if none is named.

    Example:
        >>> element_word({"group_element": {"word": "r^2", "parameters": []}})
        'r^2'
    """
    element = example.get("group_element")
    word = element.get("word") if isinstance(element, Mapping) else element
    return "" if word is None else str(word)


def element_parameters(example: Mapping[str, Any]) -> list[float]:
    """The amounts of a published group element, one per Lie generator in its word; empty for finite groups.

    Example:
        >>> element_parameters({"group_element": {"word": "turn", "parameters": [0.5]}})
        [0.5]
    """
    element = example.get("group_element")
    return floats(element.get("parameters") or []) if isinstance(element, Mapping) else []
