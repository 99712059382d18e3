"""The policy image is one fixed permutation of the policy vector: the permutation that the next states imply."""

from __future__ import annotations

from typing import TYPE_CHECKING

from symcheck.engine.equations import POLICY_MAP
from symcheck.engine.registry import register
from symcheck.engine.results import PropertyResult

if TYPE_CHECKING:
    from symcheck.engine.games.context import GameContext


@register(POLICY_MAP.name, kind="game", order=50, claim=POLICY_MAP.claim, meaning=POLICY_MAP.meaning)
def check_policy_map(context: GameContext) -> PropertyResult:
    """Check all positions reached by legal play, under every image.

    Args:
        context: the run.

    Returns:
        passed or proved, or failed with a position that few moves reach.
    """
    from symcheck.engine.games.causes import causes_of_moves  # only games need this import
    from symcheck.engine.games.judgement import judge_part

    return judge_part(context, POLICY_MAP, causes_of_moves)
