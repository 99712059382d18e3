"""Audits one policy under one symmetry: emits events in order, returns one result."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
from torch import nn

from symcheck.engine.checks import check_in_order, deadline_of
from symcheck.engine.events import Emit, RunFinished
from symcheck.engine.mirrors.context import versions
from symcheck.engine.policies.calling import open_policy
from symcheck.engine.policies.context import PolicyContext
from symcheck.engine.policies.options import PolicyOptions
from symcheck.engine.registry import registered_properties
from symcheck.engine.results import RunResult
from symcheck.engine.unfinished import run_started
from symcheck.errors import TargetError
from symcheck.statements.statement import state
from symcheck.symmetry.symmetry import Symmetry


def run_policy(
    net: nn.Module,
    symmetry: Symmetry,
    observations: Any,
    *,
    options: PolicyOptions,
    target: str,
    command: str,
    emit: Emit,
) -> RunResult:
    """Compare a policy's actions in visited states with its actions in their images.

    Args:
        net: the policy; not modified.
        symmetry: the claim.
        observations: the states, stacked, shape (N, ...); for Dict spaces a dictionary of such arrays.
        options: units and tolerance.
        target: the policy's name in reports.
        command: the command line that repeats the run; "" if none exists.
        emit: receives events.

    Returns:
        One result per property.

    Raises:
        SymcheckError: the policy cannot be run, or the symmetry does not fit it.
    """
    started = time.monotonic()
    states = _fewer(observations, options)
    width = symmetry.action_representation.dim
    few = {key: value[:2] for key, value in states.items()} if isinstance(states, dict) else states[:2]
    names = tuple(f"action[{i}]" for i in range(width))
    claim = symmetry.at_elements(options.seed)
    context = PolicyContext(open_policy(net, few, width), claim, states, options, names)
    properties = registered_properties("policy")
    if not properties:
        raise TargetError("no property of policies is registered: nothing would be tested.", where="audit-policy")
    begun = run_started("policy", target, symmetry.name, symmetry.group, properties, options, command)
    emit(begun)
    deadline = deadline_of(started, options.max_time)
    results, interrupted = check_in_order(properties, context, emit, deadline=deadline)
    result = replace(
        begun.unfinished,
        properties=tuple(results),
        duration_s=time.monotonic() - started,
        versions=versions(),
        method_reason=state("method_policy"),
        interrupted=interrupted,
    )
    emit(RunFinished(result))
    return result


def _fewer(observations: Any, options: PolicyOptions) -> Any:
    """A random subset of the states, if fewer are requested."""
    count = len(next(iter(observations.values()))) if isinstance(observations, dict) else len(observations)
    if options.samples is None or options.samples >= count:
        return observations
    rows = np.sort(np.random.default_rng(options.seed).choice(count, options.samples, replace=False))
    if isinstance(observations, dict):
        return {key: value[rows] for key, value in observations.items()}
    return observations[rows]
