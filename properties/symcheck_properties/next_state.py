"""The image of a move leads from the image of a position to the image of the next position."""

from __future__ import annotations

from typing import TYPE_CHECKING

from symcheck.engine.equations import NEXT_STATE
from symcheck.engine.registry import register
from symcheck.engine.results import PropertyResult

if TYPE_CHECKING:
    from symcheck.engine.games.context import GameContext


@register(NEXT_STATE.name, kind="game", order=30, claim=NEXT_STATE.claim, meaning=NEXT_STATE.meaning)
def check_next_state(context: GameContext) -> PropertyResult:
    """Check all positions reached by legal play, under every image.

    Args:
        context: the run.

    Returns:
        passed or proved, or failed with a position that few moves reach.
    """
    from symcheck.engine.games.causes import causes_of_moves  # only games need this import
    from symcheck.engine.games.judgement import judge_part

    return judge_part(context, NEXT_STATE, causes_of_moves)
