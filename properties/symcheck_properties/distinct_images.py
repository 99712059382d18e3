"""The images of a position are different boards, unless the position itself is symmetric."""

from __future__ import annotations

from typing import TYPE_CHECKING

from symcheck.engine.equations import DISTINCT_IMAGES
from symcheck.engine.registry import register
from symcheck.engine.results import PropertyResult
from symcheck.verdict import Facts

if TYPE_CHECKING:
    from symcheck.engine.games.context import GameContext

_LEAST = 10  # minimum number of positions, because the first positions of a game are symmetric themselves


@register(DISTINCT_IMAGES.name, kind="game", order=60, claim=DISTINCT_IMAGES.claim, meaning=DISTINCT_IMAGES.meaning)
def check_distinct_images(context: GameContext) -> PropertyResult:
    """Check for repeated images: two images with the same board at every position are one image listed twice.

    Args:
        context: the run.

    Returns:
        passed or proved, or failed with the images that repeat each other.
    """
    from symcheck.engine.games.causes import causes_of_repetition  # only games need this import
    from symcheck.engine.games.judgement import judge_images, not_repeatable

    repeated = sum(len(group) - 1 for group in context.classes)
    positions = context.positions
    checked = len(positions.reached)
    too_few = repeated and checked < _LEAST and not positions.is_complete
    facts = Facts(
        checked=checked,
        least=_LEAST if too_few else 1,
        violations=0 if too_few or not context.images_repeat else repeated,
        prevented=None if context.images_repeat else not_repeatable(context),
        exhaustive=positions.is_complete,
    )
    return judge_images(context, DISTINCT_IMAGES, facts, causes_of_repetition)
