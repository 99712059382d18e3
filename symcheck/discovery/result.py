"""The result of a search: plain data for terminals, pages, JSON and SPEC files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from symcheck.engine.results import SCHEMA, PropertyResult, RunResult, to_json_value
from symcheck.symmetry.symmetry import Symmetry
from symcheck.verdict import Facts, Verdict, decide

if TYPE_CHECKING:
    from symcheck.mdp.homomorphism import Homomorphism  # loads scipy

Route = Literal["states", "rollouts", "table"]
Fate = Verdict | Literal["rejected", "follows", "untried"]


@dataclass(frozen=True)
class Trial:
    """One candidate and its outcome.

    Attributes:
        moves: the observation map, in one line.
        actions: the action map; "" if it was never determined.
        order: the order of the element.
        verdict: the verdict of verification; "rejected" by the search, "follows" from the accepted group, or "untried".
        why: the reason in one sentence.
        residual: median misfit on the screening states, relative to a typical step; None if it was not screened.
        result: the verification, if there was one.
        fields: the SPEC fields of this candidate alone; empty if it was incomplete.
        kind: the reason without its numbers, by which reports group candidates; "" if no other candidate has the same
            reason.
        form: the form of maps that it belongs to, in words.
        another: whether it failed with a fitted map of actions or observations, so that another one may be correct.
    """

    moves: str
    actions: str
    order: int
    verdict: Fate
    why: str
    residual: float | None = None
    result: RunResult | None = None
    fields: dict[str, Any] = field(default_factory=dict)
    kind: str = ""
    form: str = ""
    another: bool = False

    @property
    def is_open(self) -> bool:
        """Whether it remains undecided if a symmetry with this observation map exists."""
        return self.another or self.verdict in ("untried", "undecided")


@dataclass(frozen=True)
class Form:
    """One form of maps, and how much of it was searched.

    Attributes:
        name: description of the maps.
        decided: how many were accepted or rejected; 0 if the structure of the dynamics excludes all of them, or if
            every map of this form has an earlier form too.
        open: how many were not decided; None if the search reached a limit and never listed them.
    """

    name: str
    decided: int
    open: int | None


@dataclass(frozen=True)
class Rotation:
    """A continuous linear symmetry: verified at a generic angle, or found approximately and not claimed.

    Attributes:
        description: the coordinates that rotate, in words.
        residual: relative residual of its equations, for dynamics and reward together.
        reward_residual: the residual of the reward alone.
        angle: the angle of the finite rotation that was verified, in degrees; 0 if a generic angle was verified, so
            that all hold.
        verdict: the verdict of verification for the finite rotation; "undecided" if it could not be verified.
        why: the reason in one sentence.
        result: the verification, if there was one.
    """

    description: str
    residual: float
    reward_residual: float
    angle: float
    verdict: Verdict
    why: str
    result: RunResult | None = None


@dataclass(frozen=True)
class Sensitivities:
    """The table of effects that pruned the search, for pages.

    Attributes:
        names: the names of the coordinates, then of the actions' columns.
        rows: effect of every column on every coordinate, each row scaled to its largest entry.
        centre: the point at which the effects were measured.
    """

    names: tuple[str, ...]
    rows: tuple[tuple[float, ...], ...]
    centre: tuple[float, ...]


@dataclass(frozen=True)
class Discovery:
    """The complete result of one search on one environment.

    Attributes:
        target: the environment.
        route: how states were explored: set, only reached by rollouts, or enumerated from a table.
        how: the route, in words.
        narrowing: the stages of the search: (count in words, the counted things).
        tried: number of candidates compared with the environment; the error budget counts each.
        alpha: the alpha of the whole search.
        level: alpha of each screening run; the claim is accepted at the full alpha.
        seed: the seed of the search.
        trials: the candidates, accepted first.
        group: {"name", "order"} of the verified group, order 1 if nothing was found.
        claim: the verified symmetry; None if nothing was found.
        fields: its SPEC fields; empty if nothing was found, or if a SPEC file cannot express it (callables).
        verified: the verification of exactly these fields; None if nothing was found.
        rotations: continuous symmetries, never claimed.
        remarks: further remarks: limits reached, coordinates not searched, identical actions.
        sensitivities: the table that pruned the search; None on other routes.
        complete: whether every map of the forms searched was decided.
        forms: how many maps of each form were decided, and how many not.
        interrupted: whether it was interrupted.
        duration_s: wall time.
        command: the command line that repeats it.
        orbits: for a table, the homomorphism onto the orbits of its states, for pages; None otherwise.
    """

    target: str
    route: Route
    how: str
    narrowing: tuple[tuple[str, str], ...]
    tried: int
    alpha: float
    level: float
    seed: int
    trials: tuple[Trial, ...] = ()
    group: dict[str, Any] = field(default_factory=lambda: {"name": "C1", "order": 1})
    claim: Symmetry | None = None
    fields: dict[str, Any] = field(default_factory=dict)
    verified: RunResult | None = None
    rotations: tuple[Rotation, ...] = ()
    remarks: tuple[str, ...] = ()
    sensitivities: Sensitivities | None = None
    complete: bool = True
    interrupted: bool = False
    duration_s: float = 0.0
    command: str = ""
    orbits: Homomorphism | None = None
    forms: tuple[Form, ...] = ()

    @property
    def found(self) -> bool:
        """Whether a symmetry was verified."""
        return self.claim is not None

    @property
    def verdict(self) -> Verdict:
        """The verdict on the group found: failed if all candidates were rejected, undecided if some were undecided."""
        if self.verified is not None and self.found:
            return self.verified.verdict
        unjudged = sum(trial.is_open for trial in self.trials) + (not self.complete)
        # Finding no map is a negative result only if every map was decided.
        refuted = not unjudged and not self.interrupted
        return decide(
            Facts(checked=self.tried, violations=int(refuted), unjudged=unjudged, interrupted=self.interrupted)
        ).verdict

    def to_dict(self) -> dict[str, Any]:
        """JSON types only; verifications are objects of the schema `symcheck/2`."""
        head = {"schema": SCHEMA, "kind": "discovery", "target": self.target, "verdict": self.verdict}
        names = ("route", "how", "narrowing", "tried", "alpha", "level", "seed", "group", "remarks")
        body = {name: to_json_value(getattr(self, name)) for name in names}
        tail = {
            name: to_json_value(getattr(self, name)) for name in ("complete", "interrupted", "duration_s", "command")
        }
        return {
            **head,
            **body,
            "symmetry": to_json_value(self.fields) if self.fields else None,
            "report": self.verified.to_dict() if self.verified is not None else None,
            "forms": [to_json_value(asdict(form)) for form in self.forms],
            "candidates": [_trial_to_dict(trial) for trial in self.trials],
            "rotations": [_plain_rotation(rotation) for rotation in self.rotations],
            **tail,
        }


def _trial_to_dict(trial: Trial) -> dict[str, Any]:
    return {
        "moves": trial.moves,
        "actions": trial.actions,
        "order": trial.order,
        "verdict": trial.verdict,
        "why": trial.why,
        "residual": to_json_value(trial.residual),
        "report": None if trial.result is None else trial.result.to_dict(),
    }


def _plain_rotation(rotation: Rotation) -> dict[str, Any]:
    return {
        "description": rotation.description,
        "residual": to_json_value(rotation.residual),
        "reward_residual": to_json_value(rotation.reward_residual),
        "angle": rotation.angle,
        "verdict": rotation.verdict,
        "why": rotation.why,
        "report": None if rotation.result is None else rotation.result.to_dict(),
    }


def is_accepted(result: RunResult) -> bool:
    """Whether the engine's verdict on a run is `passed` or `proved`; no verdict is made here."""
    return result.verdict in ("passed", "proved")


def fails_whatever_the_actions(result: RunResult) -> bool:
    """Whether a run refutes the observation map for every action map: the start distribution differs."""
    return any(each.name == "initial_invariance" and each.verdict == "failed" for each in result.properties)


def fails_in_observations_only(result: RunResult) -> bool:
    """Whether only equations fail that contain the map of observations, so that another such map may be correct."""
    failed = {each.name for each in result.properties if each.verdict == "failed"}
    return failed <= {"transition_invariance", "observation_equivariance", "initial_invariance"}


def why_of(result: RunResult) -> str:
    """The outcome of a verification in one sentence: which properties fail, where and by how much.

    Args:
        result: a finished verification.

    Returns:
        For instance "reward_invariance fails: a difference of 0.62 in reward".
    """
    refused = [each for each in result.properties if each.verdict == "failed"]
    if refused:
        failures = "; ".join(_failure(each) for each in refused)
        others = [each for each in result.properties if each.verdict != "failed"]
        only_start = [each.name for each in refused] == ["initial_invariance"]
        if only_start and all(each.verdict in ("passed", "proved") for each in others):
            return f"{failures}; everything else passed: set initial = false to leave the start out of the claim"
        open_names = [each.name for each in others if each.verdict == "undecided"]
        return f"{failures}; undecided: {', '.join(open_names)}" if open_names else failures
    unsure = [each for each in result.properties if each.verdict == "undecided"]
    if unsure:
        return f"{unsure[0].name} is undecided: {unsure[0].detail}"
    kinds: Sequence[str] = list(dict.fromkeys(_evidence_count(each) for each in result.properties if each.checked > 1))
    return f"checked on {', '.join(kinds)}" if kinds else "holds"


def kind_of(result: RunResult) -> str:
    """The outcome of a verification without numbers: the properties that fail or are undecided.

    Args:
        result: a finished verification.

    Returns:
        For instance "reward_invariance fails".
    """
    said = {"failed": "fails", "undecided": "is undecided"}
    worst = "failed" if any(each.verdict == "failed" for each in result.properties) else "undecided"
    names = [f"{each.name} {said[worst]}" for each in result.properties if each.verdict == worst]
    return ", ".join(names)


def _evidence_count(one: PropertyResult) -> str:
    noun = "episodes" if one.method == "trajectory" else _EVIDENCE.get(one.name, "checks")
    return f"{one.checked:,} {noun}"


_EVIDENCE = {
    "reward_invariance": "rewards",
    "transition_invariance": "transitions",
    "termination_invariance": "terminations",
    "initial_invariance": "pairs of starts",
    "observation_equivariance": "observations",
    "group_axioms": "relations",
}


def _failure(one: PropertyResult) -> str:
    example = one.counterexample
    approximate = " (approximately: small relative to the values)" if one.approximate else ""
    if example is None:
        return f"{one.name} fails{approximate}"
    name, size = example.where, example.residual
    if one.p_value is not None:  # the largest residual is then a statistic, without the unit of the quantity
        return f"{one.name} fails: a difference of {size:.2g} in {name}{approximate}"
    size = max(size, one.max_residual or 0.0)
    if one.per_coordinate:
        worst = max(one.per_coordinate, key=lambda coordinate: float(coordinate["max_residual"]))
        name, size = str(worst["name"]), float(worst["max_residual"])
    where = f" in {name}" if name and name not in ("reward", "terminated") else ""
    return f"{one.name} fails: a difference of up to {size:.2g}{where}{approximate}"
