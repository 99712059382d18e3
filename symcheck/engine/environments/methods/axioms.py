"""Checks that the maps form a group action: by relations for data, on samples for callables.

A mirror that is not an involution can satisfy every equation of the MDP, so the group law has a separate verdict: every
relation of the group must act as the identity on observations, states and actions (L_w s = s and K_w^s a = a).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from symcheck.engine.environments.cases.workbench import Workbench
from symcheck.engine.environments.subject.placement import Situation, Word
from symcheck.engine.equations import GROUP_AXIOMS
from symcheck.engine.outcomes import outcomes_of
from symcheck.engine.registry import register_method
from symcheck.engine.results import Counterexample, PropertyResult
from symcheck.engine.scales import FLOAT32_EPSILON, FLOAT64_EPSILON
from symcheck.engine.statistics import largest_fraction
from symcheck.spaces.coordinates import Coordinates, SpaceCodec, finite, vector_coordinates
from symcheck.spaces.values import numeric
from symcheck.statements.statement import Statement, state
from symcheck.verdict import Facts, decide

_SAMPLES = 500
_LONGEST_ORDER = 24  # largest power examined if a generator's order differs from the declared one
_SAFETY = 16  # rounding units per letter: each application of a map rounds a few times
_PARTS = ("observation", "action", "state")


@dataclasses.dataclass(frozen=True)
class _Break:
    """A relation that fails on a sample."""

    part: str
    word: Word
    situation: Situation
    action: Any
    expected: Any
    actual: Any
    residual: float
    where: str


def judge_axioms(name: str, bench: Workbench) -> PropertyResult:
    """The verdict on the group action.

    Args:
        name: the property's name.
        bench: the symmetry, states and actions.

    Returns:
        proved if everything is data (the relations were checked when the symmetry was built); otherwise passed or
        failed on samples.
    """
    bound = bench.pairs.bound
    relations = bound.group.relators
    # If states cannot be read, state maps cannot be applied.
    has_state = bound.has_state and (only_data(bench) or bench.pairs.placement.kind is not None)
    parts = [part for part in _PARTS if part != "state" or has_state]
    if only_data(bench):
        facts = Facts(checked=len(relations) * len(parts), exhaustive=True, quantity=GROUP_AXIOMS.noun)
        verdict, reason = decide(facts)
        return PropertyResult(
            name,
            verdict,
            "relations",
            checked=facts.checked,
            max_residual=0.0,
            unit="entries of the matrices",
            notes=(state("relations_proved", group=bound.group.name, parts=parts),),
            reason=reason,
            facts=facts,
        )
    return _on_samples(name, bench, relations, parts)


def only_data(bench: Workbench) -> bool:
    """Whether every map is data, so that the relations were checked when the symmetry was built."""
    bound = bench.pairs.bound
    return bound.is_data("observation") and bound.is_data("action") and bound.is_data("state")


def _on_samples(name: str, bench: Workbench, relations: tuple[Word, ...], parts: list[str]) -> PropertyResult:
    rng, group = bench.rng("axioms"), bench.pairs.bound.group.name
    situations = bench.pool.situations
    picked = [situations[i] for i in rng.integers(0, len(situations), size=min(_SAMPLES, 2 * len(situations)))]
    actions = [bench.pairs.stepper.env.action_space.sample() for _ in picked]
    breaks: list[_Break] = []
    checked = 0
    for word in relations:
        for situation, action in zip(picked, actions, strict=True):
            checked += 1
            breaks += _find_breaks(bench, tuple(word), situation, action, parts)
    # NaN matches NaN, so values that are all NaN give no evidence about a map.
    blank = {part: stuck for part in parts if (stuck := _find_stuck(bench, part, picked, actions))}
    facts = Facts(
        checked=checked,
        violations=len({(each.word, id(each.situation)) for each in breaks}),
        quantity=next(iter(blank), GROUP_AXIOMS.noun),
        finite=not blank,
        stuck=next(iter(blank.values()), "NaN"),
        interrupted=bench.interrupted,
    )
    verdict, reason = decide(facts)
    result = PropertyResult(
        name,
        verdict,
        "samples",
        checked=checked,
        violations=facts.violations,
        unit=GROUP_AXIOMS.unit,
        max_residual=max((each.residual for each in breaks), default=0.0),
        notes=(state("relations_sampled", relations=len(relations), group=group, samples=len(picked)),),
        reason=reason,
        facts=facts,
    )
    if breaks:  # the caller tests the equations themselves: they may still hold
        return _describe_breaks(result, bench, breaks, picked, actions)
    if verdict == "undecided":
        return result
    alpha = bench.options.alpha
    bound = {
        "kind": "violation_fraction",
        "value": largest_fraction(0, len(picked), alpha),  # every relation is tested on the same samples
        "confidence": 1 - alpha,
        "region": bench.pool.region(),
    }
    return dataclasses.replace(result, bound=bound)


def _find_stuck(bench: Workbench, part: str, picked: list[Situation], actions: list[Any]) -> str:
    """The constant value of a part that was never a number; "" if some value was, or if the part is not numeric."""
    flats = []
    for situation, action in zip(picked, actions, strict=True):
        value = {"observation": situation.obs, "action": action, "state": situation.state}[part]
        flats.append(_flattener(bench, part, value)[1](value))
        if np.isfinite(flats[-1]).any():
            return ""
    outcomes = outcomes_of(np.stack(flats))
    return "" if outcomes.finite else outcomes.stuck


def judge_one_relation(name: str, bench: Workbench, word: Word, situation: Situation, action: Any) -> PropertyResult:
    """One relation on one state and action, as named in a report's counterexample.

    Args:
        name: the property's name.
        bench: the symmetry.
        word: the relation.
        situation: the state.
        action: the action.

    Returns:
        failed if the relation changes the observation, the state or the action; otherwise passed.
    """
    parts = ["observation", "action", *(["state"] if bench.pairs.placement.kind == "map" else [])]
    breaks = _find_breaks(bench, word, situation, action, parts)
    facts = Facts(checked=1, violations=len(breaks), quantity=GROUP_AXIOMS.noun)
    verdict, reason = decide(facts)
    result = PropertyResult(
        name, verdict, "samples", 1, violations=len(breaks), unit=GROUP_AXIOMS.unit, reason=reason, facts=facts
    )
    return _describe_breaks(result, bench, breaks, [situation], [action]) if breaks else result


def _find_breaks(bench: Workbench, word: Word, situation: Situation, action: Any, parts: list[str]) -> list[_Break]:
    breaks = []
    for part in parts:
        value = {"observation": situation.obs, "action": action, "state": situation.state}[part]
        image = _apply(bench, part, word, situation, action)
        coordinates, flatten = _flattener(bench, part, value)
        expected, actual = flatten(value), flatten(image)
        residual = coordinates.residual(expected, actual)
        # Float32 values have float32 rounding, whatever the space declares.
        single = getattr(value, "dtype", None) == np.float32
        unit = np.maximum(coordinates.epsilon, FLOAT32_EPSILON * (coordinates.epsilon > 0) * single)
        limit = _SAFETY * len(word) * unit * np.maximum(1.0, finite(np.abs(expected)))
        if (~(residual <= limit)).any():
            j = int(np.argmax(residual - limit))
            breaks.append(_Break(part, word, situation, action, value, image, float(residual[j]), coordinates.names[j]))
    return breaks


def _apply(bench: Workbench, part: str, word: Word, situation: Situation, action: Any) -> Any:
    bound = bench.pairs.bound
    if part == "observation":
        return bound.observation(word, situation.obs)
    if part == "state":
        return bound.state(word, situation.state)
    return bound.action(word, action, situation.obs)


def _flattener(bench: Workbench, part: str, value: Any) -> tuple[Coordinates, Callable[[Any], Any]]:
    if part == "state":
        size = 0 if (vector := numeric(value)) is None else vector.size
        coordinates = vector_coordinates(
            "state", size, epsilon=FLOAT64_EPSILON, angles=bench.pairs.placement.access.angles
        )
        return coordinates, lambda state: np.zeros(0) if (flat := numeric(state)) is None else flat
    codec: SpaceCodec = bench.pairs.stepper.codec if part == "observation" else bench.pairs.stepper.action_codec
    return codec.coordinates, codec.flatten


def _describe_breaks(
    result: PropertyResult, bench: Workbench, breaks: list[_Break], picked: list[Situation], actions: list[Any]
) -> PropertyResult:
    # Observations before actions before states: visible quantities first.
    worst = min(breaks, key=lambda each: _PARTS.index(each.part))
    example = Counterexample(
        group_element=bench.pairs.bound.label(worst.word),
        observation=worst.situation.obs,
        state=worst.situation.state if worst.part == "state" else None,
        action=worst.action,
        expected=worst.expected,
        actual=worst.actual,
        residual=worst.residual,
        where=worst.where,
    )
    causes = []
    for part in dict.fromkeys(each.part for each in breaks):
        word = next(each.word for each in breaks if each.part == part)
        causes.append(_explain_break(bench, part, word, picked, actions))
    return dataclasses.replace(result, counterexample=example, causes=tuple(causes))


def _explain_break(bench: Workbench, part: str, word: Word, picked: list[Situation], actions: list[Any]) -> Statement:
    """Why a part violates the group law, with the actual order of the generator."""
    bound = bench.pairs.bound
    if len(set(word)) > 1:
        return state("SYM002", relation=bound.label(word), part=part)
    return state(
        "SYM001",
        part=part,
        generator=bound.label((word[0],)),
        declared=len(word),
        order=_real_order(bench, part, word[0], picked[:50], actions[:50]),
        longest=_LONGEST_ORDER,
    )


def _real_order(bench: Workbench, part: str, letter: int, picked: list[Situation], actions: list[Any]) -> int:
    """The order of a generator on samples; 0 if it exceeds the largest order tested."""
    for order in range(1, _LONGEST_ORDER + 1):
        word = (letter,) * order
        if not any(_find_breaks(bench, word, s, a, [part]) for s, a in zip(picked, actions, strict=True)):
            return order
    return 0


register_method("axioms")
