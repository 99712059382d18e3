"""Replays one counterexample of a report: the same state, action and element are stepped again.

Statistical results have no single input. For them the property is checked again from the beginning, with the options
and seed of the run.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from symcheck.engine import registry
from symcheck.engine.clock import Clock
from symcheck.engine.environments.cases.own_cuts import OwnCuts
from symcheck.engine.environments.cases.pairs import Pairs
from symcheck.engine.environments.methods.axioms import judge_one_relation
from symcheck.engine.environments.methods.paired import PairedEvidence
from symcheck.engine.environments.methods.selection import Chosen, choose_method, prepare
from symcheck.engine.environments.methods.whole_episodes import WholeEpisodes
from symcheck.engine.environments.runner import EnvContext
from symcheck.engine.environments.subject.placement import Situation, Word
from symcheck.engine.equations import BY_PART, GROUP_AXIOMS, Part
from symcheck.engine.events import ignore
from symcheck.engine.options import EnvOptions
from symcheck.engine.published import element_parameters, element_word
from symcheck.engine.results import PropertyResult
from symcheck.envs.targets import AnyEnv
from symcheck.errors import SymcheckError
from symcheck.spaces.from_json import floats, from_json, like
from symcheck.spaces.values import numeric
from symcheck.statements.statement import state
from symcheck.symmetry.symmetry import Symmetry
from symcheck.verdict import Facts, decide

_SAMPLES = 500  # enough samples to measure the conditioning for tolerances
_PARTS: dict[str, Part] = {equation.name: part for part, equation in BY_PART.items()}


def replay(
    make_env: Callable[[], AnyEnv],
    symmetry: Symmetry,
    property_name: str,
    counterexample_dict: Mapping[str, Any],
    options: EnvOptions,
    *,
    target: str = "environment",
) -> PropertyResult:
    """Evaluate one counterexample again.

    Args:
        make_env: builds the environment, as in the run.
        symmetry: the claim, as in the run.
        property_name: the failed property.
        counterexample_dict: the `counterexample` object of the JSON report.
        options: those of the run.
        target: names the environment in messages.

    Returns:
        `failed` if the property is violated again, `passed` if it no longer is.

    Raises:
        SymcheckError: the property or the element is unknown, or the values do not fit the environment's spaces.
    """
    entry = next((each for each in registry.registered_properties("env") if each.name == property_name), None)
    if entry is None:
        raise SymcheckError(f"no property of environments is called {property_name!r}.", where="replay")
    result = _evaluate(make_env, symmetry, entry, counterexample_dict, options, target)
    return registry.describe(result, entry)


def _evaluate(
    make_env: Callable[[], AnyEnv],
    symmetry: Symmetry,
    entry: registry.Property,
    example: Mapping[str, Any],
    options: EnvOptions,
    target: str,
) -> PropertyResult:
    if example.get("observation") is None:  # a statistical finding
        chosen = choose_method(prepare(make_env, symmetry, options, target, ignore, Clock()))
        return entry.check(EnvContext(chosen.bench, chosen))
    symmetry = symmetry.pinned(element_word(example), element_parameters(example))
    # Few samples, because only the tolerances for one pair are needed.
    small = dataclasses.replace(options, samples=min(options.samples, _SAMPLES))
    chosen = choose_method(prepare(make_env, symmetry, small, target, ignore, Clock()))
    evidence = chosen.evidence.of_steps if isinstance(chosen.evidence, WholeEpisodes) else chosen.evidence
    if not isinstance(evidence, PairedEvidence) and entry.name != GROUP_AXIOMS.name:
        # Enumerated, or compared as distributions: the whole comparison is the evidence.
        return entry.check(EnvContext(chosen.bench, chosen))
    word = _find_word(chosen, element_word(example))
    situation, action = _read_input(chosen, example)
    if entry.name == GROUP_AXIOMS.name:
        return judge_one_relation(entry.name, chosen.bench, word, situation, action)
    # the run found that the state determines truncations
    if "truncated" in (example.get("expected"), example.get("actual")):
        chosen.bench.pairs.own_cuts = OwnCuts(chosen.bench.pairs.stepper, (), ())
    return _compare_again(chosen, entry.name, word, situation, action)


def _compare_again(chosen: Chosen, name: str, word: Word, situation: Situation, action: Any) -> PropertyResult:
    evidence = PairedEvidence(chosen.bench, diagnose=False)
    part = _PARTS[name]
    case = evidence.pairs.case(word, situation, action)
    example, _ = evidence.counterexample(part, case)
    facts = Facts(checked=1, violations=int(evidence.violates(part, case)), quantity=BY_PART[part].noun)
    verdict, reason = decide(facts)
    return PropertyResult(
        name,
        verdict,
        evidence.method,
        checked=1,
        violations=facts.violations,
        max_residual=example.residual,
        unit=BY_PART[part].unit,
        counterexample=example if verdict == "failed" else None,
        notes=(state("one_pair"),),
        reason=reason,
        facts=facts,
    )


def _find_word(chosen: Chosen, label: str) -> Word:
    bound = chosen.bench.pairs.bound
    for word in (*chosen.bench.words, *(tuple(relation) for relation in bound.group.relators)):
        if getattr(bound.label(word), "word", bound.label(word)) == label:
            return word
    raise SymcheckError(
        f"the group of the symmetry does not contain the element {label!r} that the report names.",
        where="replay",
        remedy="Replay the report with its original symmetry.",
    )


def _read_input(chosen: Chosen, example: Mapping[str, Any]) -> tuple[Situation, Any]:
    pairs = chosen.bench.pairs
    try:
        obs = from_json(pairs.bound.observation_space, example["observation"])
        action = None if example.get("action") is None else from_json(pairs.bound.action_space, example["action"])
        held = example.get("state")
        given = None if held is None else _read_state(pairs, held)
    except (ValueError, TypeError, KeyError) as error:
        raise SymcheckError(
            f"the counterexample does not fit the environment's spaces: {error}.",
            where="replay",
            remedy="Replay the report with its original environment.",
        ) from error
    if action is None:
        action = pairs.stepper.env.action_space.sample()
    return pairs.placement.showing(obs, given, "report"), action


def _read_state(pairs: Pairs, held: Any) -> Any:
    placement = pairs.placement
    special = None if placement.kind is None else placement.access.from_report
    if special is not None:
        return special(held)
    if isinstance(placement.form, Mapping | list | tuple) and numeric(placement.form) is None:
        return like(placement.form, held)
    return np.array(floats(held), dtype=np.float64)
