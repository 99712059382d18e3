"""The verdict on one property of a game, from the comparisons at all positions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from symcheck.engine.equations import Equation
from symcheck.engine.games.causes import causes_of_moves
from symcheck.engine.games.comparing import Violation
from symcheck.engine.games.context import GameContext
from symcheck.engine.games.drawing import draw
from symcheck.engine.games.shrinking import shrink
from symcheck.engine.results import Counterexample, PropertyResult
from symcheck.statements.statement import Statement, state
from symcheck.verdict import Facts, decide

Causes = Callable[[GameContext], tuple[Statement, ...]]


def judge_part(context: GameContext, equation: Equation, find_causes: Causes = causes_of_moves) -> PropertyResult:
    """Decide one property that is compared position by position.

    Args:
        context: the run.
        equation: the claim.
        find_causes: returns the causes of a failure.

    Returns:
        proved if the game was tested completely; failed with a counterexample in few moves.
    """
    tally = context.tallies[equation.name]
    chance = bool(tally.violated) and not context.is_seen_again(equation.name)
    constant = equation.name == "outcome" and tally.values == {None}
    facts = Facts(
        checked=tally.checked,
        violations=0 if chance else tally.violated,
        prevented=not_repeatable(context) if chance or context.unrepeatable else None,
        exhaustive=context.is_exhaustive,
        time_up=context.time_up,
        doubts=(state("no_end_reached"),) if constant else (),
    )
    result = judge_images(context, equation, facts, find_causes)
    return replace(
        result,
        max_residual=max((item.residual for item in tally.examples), default=0.0),
        counterexample=_smallest(context, equation.name) if result.verdict == "failed" and tally.examples else None,
    )


def judge_images(context: GameContext, equation: Equation, facts: Facts, find_causes: Causes) -> PropertyResult:
    """Decide one property from its counts.

    Args:
        context: the run; doubts about it apply to every property.
        equation: the claim.
        facts: the counts.
        find_causes: returns the causes of a failure.

    Returns:
        The result, without a counterexample.
    """
    counted = replace(facts, quantity=equation.noun, moved=context.moves_something)
    verdict, reason = decide(counted)
    return PropertyResult(
        name=equation.name,
        verdict=verdict,
        method="complete" if context.positions.is_complete else "positions",
        checked=counted.checked,
        violations=counted.violations,
        unit=equation.unit,
        causes=find_causes(context) if verdict == "failed" else (),
        notes=(positions_note(context),),
        reason=reason,
        facts=counted,
    )


def not_repeatable(context: GameContext) -> Statement:
    """The reason for a game that returns different results for the same call."""
    return state("not_repeatable", unrepeatable=max(1, context.unrepeatable), is_game=True)


def positions_note(context: GameContext) -> Statement:
    """The note on which positions were tested."""
    positions = context.positions
    if positions.is_complete:
        return state("method_game_complete", positions=context.tested)
    return state("method_game_sampled", positions=context.tested, games=positions.games, longest=positions.longest)


def _smallest(context: GameContext, part: str) -> Counterexample:
    first = min(context.tallies[part].examples, key=lambda item: len(item.position.moves))
    # For a completely tested game, the nearest position is already known.
    shrunk = first if context.positions.is_complete else shrink(first, part, context.comparison, context.player)
    return counterexample_of(part, shrunk)


def counterexample_of(part: str, violation: Violation) -> Counterexample:
    """A violation in the form of a report."""
    image = violation.position.node.images[violation.image]
    action = violation.action
    return Counterexample(
        group_element=f"image {violation.image}",
        observation=_plain(violation.position.node.board),
        state={"moves": list(violation.position.moves)},
        action=action,
        expected=_plain(violation.expected),
        actual=_plain(violation.actual),
        residual=violation.residual,
        where=violation.where,
        image_observation=_plain(image.board),
        image_action=None if action is None or image.moves is None else int(image.moves[action]),
        pictures=draw(part, violation),
    )


def _plain(value: object) -> object:
    """Arrays as lists; other non-numeric values as text."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    return value if isinstance(value, list | tuple | str | int | float) or value is None else str(value)
