"""Shrinks a violation: moves are removed while the game stays legal and the violation persists."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from symcheck.engine.games.comparing import PARTS, Comparison, Tally, Violation
from symcheck.engine.games.positions import Player

_ATTEMPTS = 300
_LONGEST = 400  # maximum number of moves of a game that is shrunk; longer games take too long to replay


def shrink(violation: Violation, part: str, comparison: Comparison, player: Player) -> Violation:
    """Remove moves from a counterexample.

    Args:
        violation: a violation of one property.
        part: the property.
        comparison: detects violations at a position.
        player: plays the shorter games.

    Returns:
        A violation by the same image after the smallest number of moves found.
    """
    smallest, attempts = violation, 0
    shorter = _shorter(smallest.position.moves)
    while attempts < _ATTEMPTS and len(smallest.position.moves) <= _LONGEST:
        moves = next(shorter, None)
        if moves is None:
            break
        attempts += 1
        found = _violation_after(moves, violation, part, comparison, player)
        if found is not None:
            smallest, shorter = found, _shorter(found.position.moves)
    return smallest


def _shorter(moves: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """The same moves without a contiguous part, long parts first."""
    length = len(moves) // 2
    while length:
        for at in range(0, len(moves) - length + 1):
            yield (*moves[:at], *moves[at + length :])
        length //= 2


def _violation_after(
    moves: tuple[int, ...], violation: Violation, part: str, comparison: Comparison, player: Player
) -> Violation | None:
    position = player.replay(moves)
    if position is None or len(position.node.images) <= violation.image:
        return None
    tallies = {name: Tally() for name in PARTS}
    actions = player.legal_moves(position)
    if violation.action is not None and violation.action in actions:
        actions = np.array([violation.action])
    # The same reference, but no inferences from other positions.
    alone = Comparison(comparison.reference)
    alone.compare(position, [int(a) for a in actions], tallies)
    alone.judge_implied(tallies)
    return next((item for item in tallies[part].examples if item.image == violation.image), None)
