"""Replays a counterexample: plays the moves and compares the image again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from symcheck.engine.games.comparing import PARTS, Comparison, Tally
from symcheck.engine.games.judgement import counterexample_of
from symcheck.engine.games.positions import Player
from symcheck.engine.games.rules import Rules
from symcheck.engine.published import element_word
from symcheck.engine.results import PropertyResult
from symcheck.errors import SymcheckError
from symcheck.games.game import Game
from symcheck.verdict import Facts, decide


def replay_game(game: Game, name: str, example: Mapping[str, Any], seed: int) -> PropertyResult:
    """Compare the position of a counterexample with its image again.

    Args:
        game: the game.
        name: the name of the property.
        example: the counterexample of the report.
        seed: the seed of the run.

    Returns:
        failed if the image still differs.

    Raises:
        SymcheckError: the moves are not legal in this game, or there is no such image.
    """
    player = Player(Rules(game, seed))
    moves = (example.get("state") or {}).get("moves", []) if isinstance(example.get("state"), Mapping) else []
    position = player.replay(tuple(int(move) for move in moves))
    image = element_word(example).removeprefix("image ")
    if position is None or name not in PARTS or not image.isdigit():
        raise SymcheckError(
            f"the moves {moves} and the {element_word(example) or 'image'} of the counterexample do not fit this game.",
            where="replay",
            remedy="Replay the unchanged report with its original game.",
        )
    # Quantities that must agree between positions are taken from the start position.
    comparison = Comparison([item.moves for item in player.start().node.images])
    tallies = {part: Tally() for part in PARTS}
    comparison.compare(position, [int(a) for a in player.legal_moves(position)], tallies)
    comparison.judge_implied(tallies)
    seen = [item for item in tallies[name].examples if item.image == int(image)]
    seen.sort(key=lambda item: item.action != example.get("action"))  # the move of the report first
    facts = Facts(checked=max(1, tallies[name].checked), violations=len(seen))
    verdict, reason = decide(facts)
    return PropertyResult(
        name=name,
        verdict=verdict,
        method="positions",
        checked=facts.checked,
        violations=facts.violations,
        counterexample=counterexample_of(name, seen[0]) if seen else None,
        reason=reason,
        facts=facts,
    )
