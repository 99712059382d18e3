"""The data of a page (or terminal report) about a search for symmetries, filled by `symcheck discover`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from symcheck.verdict import Verdict
from symcheck_reports.homomorphism_model import HomomorphismModel


@dataclass(frozen=True)
class DiscoveryCandidate:
    """One map that was tried.

    Attributes:
        observation: the map of observations, in words.
        action: the map of actions, in words; "" if it is not known.
        order: the order of the element.
        verdict: "proved", "passed", "failed" or "undecided" from verification; otherwise "follows", "rejected" or
            "untried".
        why: the reason, in a sentence.
        residual: median misfit on the screening states, relative to a typical step; None if it was not screened.
        kind: the reason without its numbers, which groups similar candidates; "" for a reason that no other candidate
            has.
    """

    observation: str
    action: str
    order: float
    verdict: str
    why: str
    residual: float | None = None
    kind: str = ""


@dataclass(frozen=True)
class DiscoveryForm:
    """One form of maps that was searched.

    Attributes:
        name: the form of the maps, in words.
        decided: the number of accepted or rejected maps.
        open: the number of undecided maps; None if not all were listed.
    """

    name: str
    decided: int
    open: int | None


@dataclass(frozen=True)
class DiscoveryRotation:
    """A continuous symmetry, found approximately and never claimed.

    Attributes:
        description: the rotation, in words.
        residual: the residual of the dynamics, relative.
        reward_residual: the residual of the reward, relative.
        angle: the angle of the finite rotation that was verified, in degrees.
        verdict: the verdict of that verification.
        why: the reason, in a sentence.
    """

    description: str
    residual: float
    reward_residual: float
    angle: float
    verdict: Verdict
    why: str


@dataclass(frozen=True)
class DiscoveryModel:
    """One search.

    Attributes:
        target: the environment.
        verdict: the verdict of the group that was found; failed if there is none, undecided if something is open.
        group: the name of the group, "C1" if nothing was found.
        order: the order of the group.
        spec: the SPEC file, "" if nothing was found.
        narrowing: the stages of the search: (count in words, what was counted), from all maps to the verified ones.
        how: the method of the search, in words.
        candidates: the tried maps, accepted ones first.
        rotations: continuous symmetries.
        remarks: further remarks.
        names: the names of the coordinates and actions in `effects`.
        effects: effect of every column on every coordinate, rows scaled to 1; empty if none was measured.
        alpha: the alpha of the whole search.
        level: the alpha of each screening run.
        seed: the seed of the search.
        duration_s: wall time, seconds.
        command: the command line that repeats it; "" if none exists.
        interrupted: whether it was stopped.
        orbits: for a table, the orbits of its states under the group; None otherwise.
        forms: the number of decided and undecided maps of each form.
        exhaustive: whether the group contains all symmetries, because a table was searched completely.
        bounds: for each property of the verified group that has one, its name and `bound`: the violations that are not
            excluded.
    """

    target: str
    verdict: Verdict
    group: str
    order: float
    spec: str
    narrowing: Sequence[tuple[str, str]]
    how: str
    candidates: Sequence[DiscoveryCandidate]
    rotations: Sequence[DiscoveryRotation] = ()
    remarks: Sequence[str] = ()
    names: Sequence[str] = ()
    effects: Sequence[Sequence[float]] = ()
    alpha: float = 0.01
    level: float = 0.01
    seed: int = 0
    duration_s: float = 0.0
    command: str = ""
    interrupted: bool = False
    orbits: HomomorphismModel | None = None
    exhaustive: bool = False
    forms: Sequence[DiscoveryForm] = ()
    bounds: Sequence[tuple[str, dict[str, Any]]] = ()
