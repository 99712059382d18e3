"""Normalising wrappers whose running statistics are not invariant under the claim, named as a cause."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from symcheck.engine.environments.cases.pairs import Pairs
from symcheck.engine.environments.subject.placement import Word
from symcheck.engine.equations import BY_PART, START, Part
from symcheck.engine.results import PropertyResult
from symcheck.envs.stepping.running_statistics import WARMING_STEPS, Normaliser, normalisers
from symcheck.envs.stepping.slots import SlotStepper
from symcheck.spaces.probing import linear_map
from symcheck.statements.statement import state
from symcheck.verdict import ReasonCode, decide

_SHOWN: tuple[Part, ...] = ("observation", "transition")
_BY_PAIRS = ("paired", "exact")  # methods with exact comparison
_APART = 1e-5  # tolerance relative to the standard deviation: statistics are stored in float32


def name_statistics(result: PropertyResult, pairs: Pairs) -> PropertyResult:
    """The result; if a wrapper's statistics violate the claim, the wrapper is named as the first cause.

    Args:
        result: the result of one property.
        pairs: the pairs, with the environment and the symmetry.

    Returns:
        The same result if every normaliser commutes with the claim. Otherwise a failure names the wrapper, and a
        distribution test that did not reject is undecided: a violation is known to exist, but too small for the test's
        power.
    """
    names = (START.name, *(BY_PART[part].name for part in _SHOWN))
    if result.name not in names or result.verdict not in ("failed", "passed"):
        return result
    stepper = pairs.stepper
    env = stepper.slots.vector if isinstance(stepper, SlotStepper) else stepper.env
    words = [(letter,) for letter in range(len(pairs.bound.group.generators))]
    found = [fields for each in normalisers(env) for word in words if (fields := _asymmetry(each, pairs, word))]
    if not found:
        return result
    if result.verdict == "failed":
        return dataclasses.replace(result, causes=(state("SYM032", **found[0]), *result.causes))
    if result.facts is None or result.method in _BY_PAIRS:
        return result
    doubt = state(ReasonCode.STATISTICS_ASYMMETRIC.value, **found[0])
    facts = dataclasses.replace(result.facts, doubts=(doubt, *result.facts.doubts))
    verdict, reason = decide(facts)
    return dataclasses.replace(result, verdict=verdict, reason=reason, facts=facts, bound=None)


def _asymmetry(normaliser: Normaliser, pairs: Pairs, word: Word) -> dict[str, Any] | None:
    """The column whose mean or deviation differs from its image's; None if normalising commutes with the claim."""
    stepper = pairs.stepper
    linear = linear_map(lambda obs: pairs.bound.observation(word, obs), stepper.first_obs)
    if normaliser.statistics is None or linear is None or linear[1].any():
        return None
    mean, deviation = normaliser.moments[0], np.sqrt(normaliser.moments[1])
    matrix, unit = linear[0], np.where(deviation > 0, deviation, 1.0)
    if len(mean) != len(matrix):
        return None
    # Normalising commutes with M if and only if M m = m and M diag(s) = diag(s) M.
    off = np.abs(matrix @ mean - mean) / unit
    wide = np.abs(matrix * (deviation[None, :] - deviation[:, None])).max(axis=1) / unit
    i = int(np.argmax(np.maximum(off, wide)))
    if max(off[i], wide[i]) <= _APART:
        return None
    of_mean = bool(off[i] >= wide[i])
    j = int(np.argmax(np.abs(matrix[i])))
    return {
        "wrapper": type(normaliser.layer).__name__,
        "statistic": "mean" if of_mean else "standard deviation",
        "coordinate": stepper.codec.coordinates.names[i],
        "value": float(mean[i] if of_mean else deviation[i]),
        "image": float((matrix @ mean)[i] if of_mean else deviation[j]),
        **({"steps": WARMING_STEPS} if stepper.warmed else {}),
    }
