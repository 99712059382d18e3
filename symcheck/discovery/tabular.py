"""The search if the whole transition table is known: the automorphism group, computed and proved."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import gymnasium as gym

from symcheck.discovery.claims import describe_entries
from symcheck.discovery.result import Trial, is_accepted, why_of
from symcheck.engine.environments.runner import run_env
from symcheck.engine.events import Emit
from symcheck.engine.options import EnvOptions
from symcheck.engine.results import RunResult
from symcheck.entries.forms import AffineEntry
from symcheck.errors import SpecError, SymcheckError
from symcheck.groups.group import Group
from symcheck.symmetry.spec import parse_group, symmetry_from_mapping
from symcheck.symmetry.symmetry import Symmetry

if TYPE_CHECKING:
    from symcheck.mdp.homomorphism import Homomorphism  # loads scipy

_DISCOUNT = 0.99  # symmetries do not depend on it


@dataclass
class TableFindings:
    """The results from the table.

    Attributes:
        summary: the order, the orbits and the extent of the enumeration, in a sentence.
        states: number of states.
        actions: number of actions.
        claim: the symmetry; None if there is none.
        fields: its SPEC fields; empty if the action map depends on the state, which data cannot express.
        verified: the run that proves it.
        trials: the claim, generator by generator.
        remarks: further remarks.
        orbits: the homomorphism onto the orbits, for the page; None if there is no symmetry.
    """

    summary: str
    states: int
    actions: int
    claim: Symmetry | None = None
    fields: dict[str, Any] = field(default_factory=dict)
    verified: RunResult | None = None
    trials: list[Trial] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    orbits: Homomorphism | None = None


def search_table(
    make_env: Callable[[], gym.Env[Any, Any]], label: str, options: EnvOptions, emit: Emit
) -> TableFindings:
    """Compute the automorphism group and verify it with the exact method.

    Args:
        make_env: builds an environment with a table `P`.
        label: the name in messages.
        options: the options of the verification.
        emit: receives its events.

    Returns:
        The group as a claim, with its proof.

    Raises:
        SymcheckError: the table cannot be used, or is too large; the message names the size.

    Cost: see `symcheck.mdp.TabularMDP.automorphism_group`.
    """
    from symcheck.mdp.tabular import TabularMDP  # loads scipy

    mdp = TabularMDP.from_gymnasium(make_env(), discount=_DISCOUNT)
    automorphisms = mdp.automorphism_group()
    findings = TableFindings(automorphisms.summary(), mdp.n_states, mdp.n_actions)
    if automorphisms.order == 1:
        return findings
    findings.orbits = automorphisms.homomorphism()
    try:
        claim = automorphisms.symmetry(f"{label} {automorphisms.name}")
    except SpecError as error:
        findings.remarks.append(error.problem.rstrip("."))
        return findings
    if mdp.initial is None:
        findings.remarks.append("the start distribution is not known, so the claim leaves it out (initial = false)")
    result = run_env(make_env, claim, options=options, target=label, command="", emit=emit)
    accepted = is_accepted(result)
    moves, actions = describe_entries(claim)
    findings.trials.append(Trial(moves, actions, claim.group.order, result.verdict, why_of(result), result=result))
    if accepted:
        findings.claim, findings.verified = claim, result
        findings.fields = fields_of(claim)
        if not findings.fields:
            findings.remarks.append(
                "the action map depends on the state, which a SPEC file cannot express; in Python: "
                "TabularMDP.from_gymnasium(env, discount=...).automorphism_group().symmetry()"
            )
    return findings


def fields_of(claim: Symmetry) -> dict[str, Any]:
    """The SPEC fields of a symmetry whose entries are permutations; empty if some entry is a callable."""
    entries = (*claim.observation, *claim.action)
    if not all(isinstance(entry, AffineEntry) and entry.permutation() is not None for entry in entries):
        return {}
    made: dict[str, Any] = {
        "name": claim.name,
        "group": written_group(claim.group),
        "observation": [_images(entry) for entry in claim.observation],
        "action": [_images(entry) for entry in claim.action],
    }
    if not claim.initial:
        made["initial"] = False
    try:
        symmetry_from_mapping(made, claim.name)
    except SymcheckError:  # the catalogue's presentation expects other generators
        made["group"] = _as_permutations(claim.group)
    return made


def _images(entry: Any) -> list[int]:
    return [int(image) for image in entry.index]


def written_group(group: Group) -> str:
    """A string from which `parse_group` builds the group: its name if the catalogue contains it.

    Example:
        >>> from symcheck.groups import catalog
        >>> written_group(catalog.dihedral(4))
        'D4'
    """
    try:
        same = parse_group(group.name, "group")
    except SymcheckError:
        return _as_permutations(group)
    fits = same.order == group.order and len(same.generators) == len(group.generators)
    return group.name if fits else _as_permutations(group)


def _as_permutations(group: Group) -> str:
    return f"from_permutations({[list(g.images) for g in group.generators]})"
