"""The images of a game's positions form a group."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from symcheck.engine.equations import GROUP_AXIOMS
from symcheck.engine.registry import register
from symcheck.engine.results import PropertyResult
from symcheck.statements.statement import state
from symcheck.verdict import Facts

if TYPE_CHECKING:
    from symcheck.engine.games.context import GameContext


@register(GROUP_AXIOMS.name, kind="game", order=10, claim=GROUP_AXIOMS.claim, meaning=GROUP_AXIOMS.meaning)
def check_game_axioms(context: GameContext) -> PropertyResult:
    """Check that the position itself is an image and that images of images are images; repetitions are ignored.

    If the list omits the position itself, it extends the original position: its images must compose as elements of a
    group, but need not be all of them.

    Args:
        context: the run.

    Returns:
        passed or proved, or failed with the missing images.
    """
    from symcheck.engine.games.causes import causes_of_axioms  # only games need this import
    from symcheck.engine.games.judgement import judge_images, not_repeatable

    axioms = context.axioms
    facts = Facts(
        checked=axioms.checked,
        violations=axioms.violated if context.images_repeat else 0,
        prevented=None if context.images_repeat else not_repeatable(context),
        exhaustive=context.is_exhaustive and axioms.is_complete,
    )
    result = judge_images(context, GROUP_AXIOMS, facts, causes_of_axioms)
    beside = state("images_beside_original", left_out=axioms.left_out) if axioms.without_identity else None
    # If there is no other note next to the verdict, show this one for a pass too.
    return replace(result, unit="images that are missing", reason=result.reason or beside)
