"""Checks one mirror function, or a model alone: properties and events in order, one result."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from symcheck.engine.checks import check_in_order, deadline_of
from symcheck.engine.events import Emit, RunFinished
from symcheck.engine.mirrors.context import MirrorContext, versions
from symcheck.engine.mirrors.drawing import draw_poses
from symcheck.engine.mirrors.findings import code_columns
from symcheck.engine.mirrors.model import model_context
from symcheck.engine.mirrors.options import MirrorOptions
from symcheck.engine.mirrors.published import publish_columns, publish_differences
from symcheck.engine.registry import registered_properties
from symcheck.engine.results import RunResult
from symcheck.engine.unfinished import run_started
from symcheck.errors import SpecError, TargetError
from symcheck.mirror_functions.grouped_calls import GroupedFunction, as_function, choose_form
from symcheck.mujoco.layouts.document import WrittenLayout
from symcheck.mujoco.layouts.laid_out import ACTION, lay_out
from symcheck.mujoco.layouts.robot import isometries_of, pair_robot
from symcheck.mujoco.loading import LoadedModel
from symcheck.statements.statement import state


def run_mirror(
    function: Callable[..., Any] | None,
    loaded: LoadedModel,
    layout: WrittenLayout,
    *,
    options: MirrorOptions,
    target: str,
    command: str,
    emit: Emit,
    env: Any = None,
) -> RunResult:
    """Compare a mirror function, column by column, with the model's mirror; or the model with its image.

    Args:
        function: a batched mirror function, or an object that transforms both halves; None checks the model.
        loaded: the model.
        layout: the layout of observations and actions; for a model alone, its plane and the number of groups.
        options: how much to test.
        target: the subject's name in reports.
        command: the command line that repeats the run; "" if none exists.
        emit: receives events.
        env: passed to the function.

    Returns:
        One result per property; wrong columns in `columns`.

    Raises:
        SymcheckError: the function, the layout or the model cannot be used.
    """
    started = time.monotonic()
    robot = pair_robot(loaded, *isometries_of(layout))
    context = model_context(robot, options)
    if function is not None:
        context = _with_function(context, function, lay_out(loaded, layout, robot), env)
    properties = [item for item in registered_properties("mirror") if item.applies(context)]
    if not properties:
        raise TargetError("no property of mirrors is registered: nothing would be tested.", where="verify-mirror")
    name = " and ".join(pairing.isometry.name for pairing in robot.pairings)
    begun = run_started("mirror", target, name, robot.group, properties, options, command)
    emit(begun)
    deadline = deadline_of(started, options.max_time)
    results, interrupted = check_in_order(properties, context, emit, deadline=deadline)
    coded = [] if function is None or interrupted else code_columns(context)[0]
    result = replace(
        begun.unfinished,
        symmetry=f"{loaded.label} {name}" if loaded.label != target else name,
        properties=tuple(results),
        duration_s=time.monotonic() - started,
        versions=versions(),
        method_reason=state("method_mirror" if function is not None else "method_model"),
        interrupted=interrupted,
        columns=publish_columns(context, coded),
        differences=publish_differences(context),
        pictures=draw_poses(context) if coded else (),
    )
    emit(RunFinished(result))
    return result


def _with_function(context: MirrorContext, function: Any, laid: Any, env: Any) -> MirrorContext:
    if not laid.observation:
        raise SpecError(
            "no observation group is listed, so there is nothing to compare with the function.",
            where=laid.written.label,
            remedy="List the terms of the observation under [[observation.policy]].",
        )
    widths = {name: group.width for name, group in laid.observation.items()}
    candidate = GroupedFunction(as_function(function), widths, laid.action.width, laid.group.order, env=env)
    batch = replace(context, laid=laid).batch
    observations = {name: table for name, table in batch.items() if name != ACTION}
    context = replace(context, laid=laid, function=choose_form(candidate, observations, batch[ACTION]))
    _refuse_unrepeatable(context)
    return context


def _refuse_unrepeatable(context: MirrorContext) -> None:
    first, again = context.answer, context.answer_to(context.batch)
    pairs = [
        (first.actions, again.actions),
        *((first.observations[n], again.observations[n]) for n in first.observations),
    ]
    if not all(a is None or b is None or np.array_equal(a, b, equal_nan=True) for a, b in pairs):
        raise SpecError(
            f"{context.called.name} gives a different result on the second call.",
            where="TARGET",
            remedy="A mirror is a fixed map: remove noise and running statistics.",
        )
