"""From maps to claims: a `Symmetry` to verify, and its SPEC file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gymnasium import spaces

from symcheck.discovery.action_values import values_of
from symcheck.discovery.blocks import write_map
from symcheck.discovery.elements import Recognised
from symcheck.discovery.maps import Candidate
from symcheck.entries.forms import parse_entry
from symcheck.symmetry import text
from symcheck.symmetry.spec import symmetry_from_mapping
from symcheck.symmetry.symmetry import Symmetry


@dataclass(frozen=True)
class Spaces:
    """The spaces for which entries are written.

    Attributes:
        observation: the environment's observation space.
        action: its action space.
        has_state: whether claims include the map of an internal state.
    """

    observation: spaces.Space[Any]
    action: spaces.Space[Any]
    has_state: bool


def observation_entry(candidate: Candidate, where: Spaces) -> Any:
    """The SPEC entry of the observation map: signs, images, a named operator, or a permutation of pixels."""
    return write_map(candidate.observation, where.observation)


def action_entry(candidate: Candidate, where: Spaces) -> Any:
    """The entry of the action map: a permutation of discrete actions, signs or images of components, or a callable."""
    values = values_of(where.action)
    return candidate.action.spec_entry() if values is None else values.write(candidate.action.index)


def is_data(fields: dict[str, Any]) -> bool:
    """Whether a SPEC file can hold the fields: no callable is among them.

    Example:
        >>> is_data({"action": [[1, 0]]}), is_data({"action": [len]})
        (True, False)
    """
    return not any(callable(entry) for entry in fields.get("action", ()))


def fields(name: str, group: Recognised, where: Spaces) -> dict[str, Any]:
    """The fields of a SPEC file."""
    made: dict[str, Any] = {
        "name": name,
        "group": group.written,
        "observation": [observation_entry(generator, where) for generator in group.generators],
        "action": [action_entry(generator, where) for generator in group.generators],
    }
    if where.has_state:
        made["state"] = [generator.state.spec_entry() for generator in group.generators]
    return made


def single(candidate: Candidate) -> Recognised:
    """The cyclic group that one element generates."""
    order = candidate.order
    return Recognised(f"C{order}", f"cyclic({order})", order, (candidate,))


def claim_of(name: str, group: Recognised, where: Spaces) -> Symmetry:
    """The symmetry to verify.

    Raises:
        RepresentationError: the observation maps do not satisfy the group's relations.
    """
    return symmetry_from_mapping(fields(name, group, where), name)


def describe_candidate(candidate: Candidate, where: Spaces) -> tuple[str, str]:
    """A candidate in words: the maps of observations and actions.

    Example:
        >>> from symcheck.discovery.maps import SignedMap
        >>> box, two = spaces.Box(-1, 1, (2,)), spaces.Discrete(2)
        >>> flip = SignedMap.of([0, 1], [-1, -1])
        >>> describe_candidate(Candidate(flip, SignedMap.of([1, 0]), flip), Spaces(box, two, False))
        ('(o0, o1) -> (-o0, -o1)', '0 <-> 1')
    """
    observed = text.describe(parse_entry(observation_entry(candidate, where), "observation"), "o")
    observed = f"{candidate.label}: {observed}" if candidate.label else observed
    values = values_of(where.action)
    if values is not None and not values.single:
        return observed, values.describe(candidate.action.index)
    if values is None and candidate.action.is_identity:
        return observed, "unchanged"
    acted = text.describe(parse_entry(action_entry(candidate, where), "action"), "a")
    return observed, acted


def describe_entries(claim: Symmetry) -> tuple[str, str]:
    """The maps of observations and actions of a claim's generators, in words."""
    observed = "; ".join(text.describe(entry, "o") for entry in claim.observation)
    acted = "; ".join(text.describe(entry, "a") for entry in claim.action)
    return observed, acted


def toml_of(data: dict[str, Any], remarks: Sequence[str] = ()) -> str:
    """A SPEC file.

    Args:
        data: its fields.
        remarks: comment lines at the top.

    Returns:
        TOML text.

    Example:
        >>> print(toml_of({"name": "m", "action": [["-1"], {"signs": [1], "offset": [0.5]}]}), end="")
        name = "m"
        action = [["-1"], { signs = [1], offset = [0.5] }]
    """
    lines = [f"# {remark}" for remark in remarks]
    lines += [f"{key} = {_toml(value)}" for key, value in data.items()]
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    if isinstance(value, bool):  # tested before numbers: True is an int
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_toml(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    return repr(value)
