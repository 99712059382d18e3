"""The legal moves of an image are the image of the legal moves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from symcheck.engine.equations import LEGAL_MOVES
from symcheck.engine.registry import register
from symcheck.engine.results import PropertyResult

if TYPE_CHECKING:
    from symcheck.engine.games.context import GameContext


@register(LEGAL_MOVES.name, kind="game", order=20, claim=LEGAL_MOVES.claim, meaning=LEGAL_MOVES.meaning)
def check_legal_moves(context: GameContext) -> PropertyResult:
    """Check all positions reached by legal play, under every image.

    Args:
        context: the run.

    Returns:
        passed or proved, or failed with a position that few moves reach.
    """
    from symcheck.engine.games.causes import causes_of_moves  # only games need this import
    from symcheck.engine.games.judgement import judge_part

    return judge_part(context, LEGAL_MOVES, causes_of_moves)
