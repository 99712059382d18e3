"""Tests whether results reproduce: a game with randomness, or with memory of earlier calls, gives no violation.

A violation counts only if both sides return the same results every time, for any moves in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symcheck.engine.games.comparing import PARTS, Comparison, Tally, Violation
from symcheck.engine.games.positions import Player, Reached, spread
from symcheck.engine.games.rules import Node, Rules
from symcheck.errors import TargetError
from symcheck.games.game import Game, board_key

_AGAIN = 60  # number of positions that are evaluated a second time
_EXAMPLES = 20
_TIMES = 6  # repetitions: a fair coin on both sides repeats this often with probability at most 1 in 4,000


def count_unrepeatable(game: Game, reached: Sequence[Reached], seed: int) -> int:
    """The positions at which a game returns a different result on the second call.

    Args:
        game: the game.
        reached: positions with their first results.
        seed: the seed of the policy vector.
    """
    chosen = spread(reached, _AGAIN)
    once = [_answers(position.node) for position in chosen]
    # In another order, to detect memory of the last call.
    fresh = Rules(game, seed)
    again = [_answers(fresh.node(position.node.state)) for position in reversed(chosen)][::-1]
    return sum(a != b for a, b in zip(once, again, strict=True))


def _answers(node: Node) -> tuple[Any, ...]:
    pairs = _image_pairs(node)
    if node.outcome is not None:
        return node.outcome, pairs
    moves = np.flatnonzero(node.legal)[:2].tolist()
    return node.legal.tobytes(), pairs, tuple(node.step(a).board_key for a in moves)


def _image_pairs(node: Node) -> tuple[Any, ...]:
    return tuple(image.pair for image in node.images)


def images_repeat(game: Game, reached: Sequence[Reached], seed: int) -> bool:
    """Whether the function of images returns the same list on every call for a position.

    Args:
        game: the game.
        reached: positions with their first images.
        seed: the seed of the policy vector.
    """
    chosen = spread(reached, _AGAIN)
    fresh = [Rules(game, seed) for _ in range(2)]
    return all(
        _image_pairs(rules.node(position.node.state)) == _image_pairs(position.node)
        for position in reversed(chosen)
        for rules in fresh
    )


def is_seen_again(
    examples: Sequence[Violation], part: str, comparison: Comparison, game: Game, reached: Sequence[Reached], seed: int
) -> bool:
    """Whether at least one violation reproduces with the same results every time.

    Args:
        examples: violations of one property.
        part: the property.
        comparison: the comparison that found them.
        game: the game, called again.
        reached: positions from which a move is played between the calls.
        seed: the seed of the policy vector and of those moves.
    """
    rng = np.random.default_rng(seed)
    for example in spread(examples, _EXAMPLES):
        answers = set()
        for _ in range(_TIMES):
            _play_elsewhere(game, reached, rng)
            answers.add(_answer_again(example, part, comparison, Player(Rules(game, seed))))
            if None in answers or len(answers) > 1:
                break
        else:
            return True
    return False


def _play_elsewhere(game: Game, reached: Sequence[Reached], rng: np.random.Generator) -> None:
    """Play one move from a random position, so that a game with memory of its last call changes that memory."""
    other = reached[int(rng.integers(len(reached)))].node
    legal = np.flatnonzero(other.legal) if other.outcome is None else ()
    if len(legal):
        game.step(other.state, int(rng.choice(legal)))


def _answer_again(example: Violation, part: str, comparison: Comparison, player: Player) -> bytes | None:
    """Both sides of a violation, computed again; None if there is none."""
    position: Reached | None = example.position
    if example.position.twins:
        position = player.replay(example.position.moves)
    else:
        position = Reached(player.rules.node(example.position.node.state), example.position.moves)
    if position is None or len(position.node.images) <= example.image:
        return None
    tallies = {name: Tally() for name in PARTS}
    alone = Comparison(comparison.reference)
    try:
        alone.compare(position, [] if example.action is None else [example.action], tallies)
        alone.judge_implied(tallies)
    except TargetError as error:
        return error.problem.encode()
    seen = [item for item in tallies[part].examples if (item.image, item.action) == (example.image, example.action)]
    return board_key([seen[0].expected, seen[0].actual]) if seen else None
