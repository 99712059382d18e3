"""Checks one game under its claimed images: emits events in order, returns one result."""

from __future__ import annotations

import time
from dataclasses import replace

from symcheck.engine.checks import check_in_order, deadline_of
from symcheck.engine.events import Emit, RunFinished
from symcheck.engine.games.context import GameContext
from symcheck.engine.games.group import group_of
from symcheck.engine.games.judgement import positions_note
from symcheck.engine.games.options import GameOptions
from symcheck.engine.mirrors.context import versions
from symcheck.engine.registry import registered_properties
from symcheck.engine.results import RunResult
from symcheck.engine.unfinished import run_started
from symcheck.errors import TargetError
from symcheck.games.game import Game
from symcheck.statements.statement import state


def run_game(game: Game, *, options: GameOptions, target: str, command: str, emit: Emit) -> RunResult:
    """Compare positions with their images: legal moves, next states, outcomes, and the policy vector.

    Args:
        game: the game, with the function of its images.
        options: how much of it to test.
        target: the game's name in reports.
        command: the command line that repeats the run; "" if none exists.
        emit: receives events.

    Returns:
        One result per property.

    Raises:
        SymcheckError: the game cannot be played, or its function of images cannot be read.
    """
    started = time.monotonic()
    deadline = deadline_of(started, options.max_time)
    context = GameContext(game, options, deadline)
    properties = registered_properties("game")
    if not properties:
        raise TargetError("no property of games is registered: nothing would be tested.", where="verify-game")
    unknown = {"name": "images", "order": 1}  # the group of the images is not known yet
    begun = run_started("game", target, game.symmetries_label, unknown, properties, options, command)
    emit(begun)
    # Gathering stops when time is up: the verdict uses the comparisons so far.
    results, interrupted = check_in_order(properties, context, emit, deadline=None)
    result = replace(
        begun.unfinished,
        group=unknown if interrupted else group_of(context),
        properties=tuple(results),
        duration_s=time.monotonic() - started,
        versions=versions(),
        method_reason=state("method_interrupted") if interrupted else positions_note(context),
        interrupted=interrupted,
    )
    emit(RunFinished(result))
    return result
