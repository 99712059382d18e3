"""The images of a game's positions are those of a group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from symcheck.engine.equations import GROUP_AXIOMS
from symcheck.engine.registry import register
from symcheck.engine.results import PropertyResult
from symcheck.engine.verdict import Facts, decide

if TYPE_CHECKING:
    from symcheck.engine.games.context import GameContext


@register(GROUP_AXIOMS.name, kind="game", order=10, claim=GROUP_AXIOMS.claim, meaning=GROUP_AXIOMS.meaning)
def check_game_axioms(context: GameContext) -> PropertyResult:
    """The position itself is an image, and images of images are images; repetitions do not matter.

    Args:
        context: the run.

    Returns:
        passed or proved, or failed with what is missing.
    """
    from symcheck.engine.games.causes import causes_of_axioms  # only games need it
    from symcheck.engine.games.judgement import positions_note

    axioms = context.axioms
    facts = Facts(
        checked=axioms.checked,
        violations=axioms.violated,
        exhaustive=context.is_exhaustive and axioms.is_complete,
        quantity=GROUP_AXIOMS.noun,
        moved=context.moves_something,
        unrepeatable=context.unrepeatable,
    )
    verdict, reason = decide(facts)
    return PropertyResult(
        name=GROUP_AXIOMS.name,
        verdict=verdict,
        method="complete" if context.positions.is_complete else "positions",
        checked=facts.checked,
        violations=facts.violations,
        unit="images that are missing",
        causes=causes_of_axioms(context) if verdict == "failed" else (),
        notes=(positions_note(context),),
        reason=reason,
        facts=facts,
    )
