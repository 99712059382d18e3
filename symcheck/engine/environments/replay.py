"""One counterexample of a report, evaluated again: the same state, action and element, stepped once more.

Statistical findings have no single input; for them the property is checked again from the start, with the run's own
options and seed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from gymnasium import spaces

from symcheck.engine import registry
from symcheck.engine.clock import Clock
from symcheck.engine.environments.cases.pairs import Pairs
from symcheck.engine.environments.methods.axioms import judge_one_relation
from symcheck.engine.environments.methods.paired import PairedEvidence
from symcheck.engine.environments.methods.selection import Chosen, choose
from symcheck.engine.environments.runner import EnvContext
from symcheck.engine.environments.subject.placement import Situation, Word
from symcheck.engine.environments.subject.values import numeric
from symcheck.engine.equations import BY_PART, GROUP_AXIOMS, Part
from symcheck.engine.events import ignore
from symcheck.engine.options import EnvOptions
from symcheck.engine.results import PropertyResult
from symcheck.engine.verdict import Facts, decide
from symcheck.envs.targets import AnyEnv
from symcheck.errors import SymcheckError
from symcheck.statements.statement import state
from symcheck.symmetry.symmetry import Symmetry

_SAMPLES = 500  # enough to measure the conditioning that tolerances need
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
        counterexample_dict: its `counterexample` as a JSON report holds it.
        options: those of the run.
        target: names the environment in messages.

    Returns:
        `failed` where the property is violated again, `passed` where it is not any more.

    Raises:
        SymcheckError: the property or the element is not known, or the values do not fit the environment's spaces.
    """
    entry = next((each for each in registry.registered("env") if each.name == property_name), None)
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
        chosen = choose(make_env, symmetry, options, target, ignore, Clock())
        return entry.check(EnvContext(chosen.bench, chosen))
    small = dataclasses.replace(options, samples=min(options.samples, _SAMPLES))
    chosen = choose(make_env, symmetry, small, target, ignore, Clock())
    if not isinstance(chosen.evidence, PairedEvidence) and entry.name != GROUP_AXIOMS.name:
        # Enumerated, or compared as distributions: the whole comparison is the evidence.
        return entry.check(EnvContext(chosen.bench, chosen))
    word = _find_word(chosen, str(example.get("group_element", "")))
    situation, action = _read_input(chosen, example)
    if entry.name == GROUP_AXIOMS.name:
        return judge_one_relation(entry.name, chosen.bench, word, situation, action)
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
        if bound.label(word) == label:
            return word
    raise SymcheckError(
        f"the report names the element {label!r}, which the symmetry does not have.",
        where="replay",
        remedy="Replay with the symmetry that the report was made with.",
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
            remedy="Replay against the environment that the report was made with.",
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
    return np.array(_floats(held), dtype=np.float64)


def like(form: Any, value: Any) -> Any:
    """A value in the form of another, from its JSON form; parts that JSON cannot hold are those of `form`.

    Args:
        form: mappings, sequences, arrays, numbers and texts, nested at will; anything else is kept as it is.
        value: what a report holds of such a value.

    Raises:
        ValueError: a number or an array does not have the form's.
        TypeError: as ValueError.

    Example:
        >>> like({"x": np.zeros(2), "n": 3, "owner": print}, {"x": [1.0, "NaN"], "n": 4, "owner": "<built-in>"})
        {'x': array([ 1., nan]), 'n': 4, 'owner': <built-in function print>}
    """
    if isinstance(form, Mapping) and isinstance(value, Mapping):
        return {key: like(item, value[str(key)]) if str(key) in value else item for key, item in form.items()}
    if isinstance(form, np.ndarray):
        return np.array(_floats(value), dtype=form.dtype).reshape(form.shape)
    if isinstance(form, list | tuple) and isinstance(value, list) and len(value) == len(form):
        items = [like(*both) for both in zip(form, value, strict=True)]
        return type(form)(*items) if hasattr(form, "_fields") else type(form)(items)
    if form is None or isinstance(form, str | bool):
        return value
    return type(form)(value) if isinstance(form, int | float | np.number) else form


def from_json(space: spaces.Space[Any], value: Any) -> Any:
    """A value of a space from its JSON form; "NaN" and "Infinity" are numbers again.

    Args:
        space: any of Gymnasium's spaces.
        value: lists, mappings, texts and numbers; a graph is [nodes, edges, links].

    Returns:
        A value in the space's own types.

    Raises:
        ValueError: the value does not have the space's shape.

    Example:
        >>> from_json(spaces.Box(-1, 1, (2,)), [0.5, "NaN"])
        array([0.5, nan], dtype=float32)
        >>> from_json(spaces.OneOf([spaces.Discrete(2), spaces.Text(3)]), [1, "ab"])
        (np.int64(1), 'ab')
    """
    if isinstance(space, spaces.Dict):
        return {key: from_json(child, value[str(key)]) for key, child in space.spaces.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(from_json(child, item) for child, item in zip(space.spaces, value, strict=True))
    if isinstance(space, spaces.Sequence):
        return _sequence(space, value)
    if isinstance(space, spaces.Graph):
        nodes, edges, links = value
        pairs = None if links is None else np.array(links, dtype=np.int32).reshape(-1, 2)
        return spaces.GraphInstance(_features(space.node_space, nodes), _features(space.edge_space, edges), pairs)
    if isinstance(space, spaces.OneOf):
        return np.int64(value[0]), from_json(space.spaces[int(value[0])], value[1])
    if isinstance(space, spaces.Discrete):
        return np.int64(value)
    if isinstance(value, str):
        return value
    return np.array(_floats(value), dtype=space.dtype).reshape(space.shape or ())


def _sequence(space: spaces.Sequence, value: Any) -> Any:
    """A sequence, stacked where the space stacks; structured elements arrive stacked as well, part by part."""
    if not space.stack:
        return tuple(from_json(space.feature_space, item) for item in value)
    if isinstance(space.feature_space, spaces.Dict):
        parts = space.feature_space.spaces.items()
        return {key: _sequence(spaces.Sequence(child, stack=True), value[str(key)]) for key, child in parts}
    return _features(space.feature_space, value)


def _features(space: spaces.Space[Any] | None, values: Any) -> Any:
    if space is None or values is None:
        return None
    return np.array(_floats(values), dtype=space.dtype).reshape(-1, *(space.shape or ()))


def _floats(value: Any) -> Any:
    return [_floats(item) for item in value] if isinstance(value, list) else float(value)
