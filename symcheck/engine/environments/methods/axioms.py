"""Do the maps form a group action? Relations for data, samples for callables.

A mirror that is no involution can satisfy every equation of the MDP, so this is a verdict of its own: every relation of
the group, applied to observations, states and actions, must change nothing (L_w s = s and K_w^s a = a).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from symcheck.engine.environments.cases.pairs import FLOAT32_EPSILON, FLOAT64_EPSILON
from symcheck.engine.environments.cases.workbench import Workbench
from symcheck.engine.environments.subject.coordinates import Coordinates, SpaceCodec, finite, vector_coordinates
from symcheck.engine.environments.subject.placement import Situation, Word
from symcheck.engine.environments.subject.stepper import numeric
from symcheck.engine.results import Counterexample, PropertyResult
from symcheck.engine.statistics import largest_fraction

_SAMPLES = 500
_LONGEST_ORDER = 24  # powers looked at when a generator has another order than declared
_SAFETY = 16  # rounding units a letter: each application of a map rounds a few times
_UNIT = "max norm over coordinates"
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
        proved where everything is data (its relations were checked when the symmetry was built); otherwise passed or
        failed on samples.
    """
    bound = bench.pairs.bound
    relations = bound.group.relators
    parts = [part for part in _PARTS if part != "state" or bound.has_state]
    if bench.pairs.placement.kind is None and not bound.is_data("state"):
        parts.remove("state")  # no state is ever read, so there is none to apply it to
    if only_data(bench):
        return PropertyResult(
            name,
            "proved",
            "relations",
            checked=len(relations) * len(parts),
            max_residual=0.0,
            unit="entries of the matrices",
            notes=(
                f"Every relation of {bound.group.name} holds for the data that defines the maps ({', '.join(parts)}).",
            ),
        )
    return _on_samples(name, bench, relations, parts)


def only_data(bench: Workbench) -> bool:
    """Whether every map is data, so that the relations were checked when the symmetry was built."""
    bound = bench.pairs.bound
    return bound.is_data("observation") and bound.is_data("action") and bound.is_data("state")


def _on_samples(name: str, bench: Workbench, relations: tuple[Word, ...], parts: list[str]) -> PropertyResult:
    rng = bench.rng("axioms")
    situations = bench.pool.situations
    picked = [situations[i] for i in rng.integers(0, len(situations), size=min(_SAMPLES, 2 * len(situations)))]
    actions = [bench.pairs.stepper.env.action_space.sample() for _ in picked]
    breaks: list[_Break] = []
    checked = 0
    for word in relations:
        for situation, action in zip(picked, actions, strict=True):
            checked += 1
            breaks += _broken(bench, tuple(word), situation, action, parts)
    said = "1 relation" if len(relations) == 1 else f"{len(relations)} relations"
    result = PropertyResult(
        name,
        "passed",
        "samples",
        checked=checked,
        violations=len({(found.word, id(found.situation)) for found in breaks}),
        unit=_UNIT,
        max_residual=max((found.residual for found in breaks), default=0.0),
        notes=(f"{said} of {bound_name(bench)} on {len(picked)} states and actions.",),
    )
    if breaks:  # the equations themselves are looked at by the caller: they may hold all the same
        return _failed(result, bench, breaks, picked, actions)
    alpha = bench.options.alpha
    bound = {
        "kind": "violation_fraction",
        "value": largest_fraction(0, len(picked), alpha),  # every relation is tried on the same samples
        "confidence": 1 - alpha,
        "region": bench.pool.region(),
    }
    return dataclasses.replace(result, bound=bound)


def judge_one_relation(name: str, bench: Workbench, word: Word, situation: Situation, action: Any) -> PropertyResult:
    """One relation on one state and action, as a report's counterexample names them.

    Args:
        name: the property's name.
        bench: the symmetry.
        word: the relation.
        situation: the state.
        action: the action.

    Returns:
        failed where the relation changes any of them, else passed.
    """
    parts = ["observation", "action", *(["state"] if bench.pairs.placement.kind == "map" else [])]
    breaks = _broken(bench, word, situation, action, parts)
    result = PropertyResult(name, "passed", "samples", checked=1, violations=len(breaks), unit=_UNIT)
    return _failed(result, bench, breaks, [situation], [action]) if breaks else result


def bound_name(bench: Workbench) -> str:
    """The group's name."""
    return bench.pairs.bound.group.name


def _broken(bench: Workbench, word: Word, situation: Situation, action: Any, parts: list[str]) -> list[_Break]:
    found = []
    for part in parts:
        value = {"observation": situation.obs, "action": action, "state": situation.state}[part]
        image = _apply(bench, part, word, situation, action)
        coordinates, flatten = _flattener(bench, part, value)
        expected, actual = flatten(value), flatten(image)
        residual = coordinates.residual(expected, actual)
        unit = np.maximum(coordinates.epsilon, FLOAT32_EPSILON * (coordinates.epsilon > 0) * _coarse(value))
        limit = _SAFETY * len(word) * unit * np.maximum(1.0, finite(np.abs(expected)))
        if (~(residual <= limit)).any():
            j = int(np.argmax(residual - limit))
            found.append(_Break(part, word, situation, action, value, image, float(residual[j]), coordinates.names[j]))
    return found


def _coarse(value: Any) -> bool:
    return getattr(value, "dtype", None) == np.float32


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


def _failed(
    result: PropertyResult, bench: Workbench, breaks: list[_Break], picked: list[Situation], actions: list[Any]
) -> PropertyResult:
    worst = min(breaks, key=lambda found: _PARTS.index(found.part))
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
    for part in dict.fromkeys(found.part for found in breaks):
        word = next(found.word for found in breaks if found.part == part)
        causes.append(_said(bench, part, word, picked, actions))
    return dataclasses.replace(result, verdict="failed", counterexample=example, causes=tuple(causes))


def _said(bench: Workbench, part: str, word: Word, picked: list[Situation], actions: list[Any]) -> str:
    """What is wrong with a part, with the order that a generator really has."""
    letters = set(word)
    label = bench.pairs.bound.label((word[0],))
    if len(letters) > 1:
        names = bench.pairs.bound.group.generator_names
        return f"the relation {' '.join(names[i] for i in word)} = e fails on the {part}"
    power = len(word)
    text = {
        "observation": f"{label} is declared of order {power} but {_nested('L', power, 's')} != s",
        "action": f"{_nested('K', power, 'a')} != a",
        "state": f"the map of the internal state, applied {power} times, is not the identity",
    }[part]
    order = _real_order(bench, part, word[0], picked[:50], actions[:50])
    return text + (f" (it has order {order})" if order else f" (its order is above {_LONGEST_ORDER})")


def _nested(symbol: str, times: int, argument: str) -> str:
    return f"{symbol}({_nested(symbol, times - 1, argument)})" if times else argument


def _real_order(bench: Workbench, part: str, letter: int, picked: list[Situation], actions: list[Any]) -> int:
    for order in range(1, _LONGEST_ORDER + 1):
        word = (letter,) * order
        if not any(_broken(bench, word, s, a, [part]) for s, a in zip(picked, actions, strict=True)):
            return order
    return 0
