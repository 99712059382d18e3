"""The image of a position has the same outcome as the position."""

from __future__ import annotations

from typing import TYPE_CHECKING

from symcheck.engine.equations import OUTCOME
from symcheck.engine.registry import register
from symcheck.engine.results import PropertyResult

if TYPE_CHECKING:
    from symcheck.engine.games.context import GameContext


@register(OUTCOME.name, kind="game", order=40, claim=OUTCOME.claim, meaning=OUTCOME.meaning)
def check_outcome(context: GameContext) -> PropertyResult:
    """Check all positions reached by legal play, under every image.

    Args:
        context: the run.

    Returns:
        passed or proved, or failed with a position that few moves reach.
    """
    from symcheck.engine.games.causes import causes_of_outcome  # only games need this import
    from symcheck.engine.games.judgement import judge_part

    return judge_part(context, OUTCOME, causes_of_outcome)
