"""Positions by legal play: all positions of a small game, otherwise those of many games, half of which avoid ending.

Positions are never constructed, and none lies beyond the end of a game, where the results of a correct game are
undefined.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from symcheck.array_types import Ints
from symcheck.engine.games.rules import Node, Rules
from symcheck.errors import TargetError

Item = TypeVar("Item")
ENUMERATED_UP_TO = 20_000
"""Maximum number of positions for which a game is tested completely."""
_GAMES = 40  # minimum number of games; each contributes an equal number of positions
_LONGEST = 2_000  # maximum number of moves per game
_ATTEMPTS = 20  # maximum number of games per requested game, if most repeat positions


@dataclass(frozen=True)
class Reached:
    """One position, and the moves that led to it.

    Attributes:
        node: the state.
        moves: the actions from the start.
        twins: by image, the state that the transformed actions lead to, None if one of them is illegal; empty if boards
            are states.
    """

    node: Node
    moves: tuple[int, ...] = ()
    twins: tuple[Node | None, ...] = ()


@dataclass(frozen=True)
class Positions:
    """The positions reached.

    Attributes:
        reached: distinct positions, each after its predecessors.
        is_complete: whether these are all positions that legal play reaches.
        games: the number of games played; 0 if all positions were enumerated.
        longest: the number of moves of the longest game.
    """

    reached: tuple[Reached, ...]
    is_complete: bool
    games: int
    longest: int


def spread(items: Sequence[Item], most: int) -> list[Item]:
    """An evenly spaced selection from a list, including the first and the last."""
    count = min(len(items), most)
    return [items[int(i)] for i in np.linspace(0, len(items) - 1, count).round()]


class Player:
    """Plays a game and, if boards are not states, its images in parallel.

    Args:
        rules: the rules of the game.
    """

    def __init__(self, rules: Rules) -> None:
        self.rules = rules

    def start(self) -> Reached:
        """The initial position."""
        node = self.rules.start()
        played = self.rules.game.state_of(node.board) is None
        return Reached(node, (), tuple(self.rules.start() for _ in node.images) if played else ())

    def legal_moves(self, position: Reached) -> Ints:
        """The legal actions; none after the end."""
        node = position.node
        return np.empty(0, dtype=np.int64) if node.outcome is not None else np.flatnonzero(node.legal)

    def play(self, position: Reached, action: int) -> Reached:
        """The next position."""
        after = Reached(position.node.step(action), (*position.moves, action))
        if not position.twins:
            return after
        places = [image.moves for image in position.node.images]
        places += [None] * (len(position.twins) - len(places))
        twins = [
            None if twin is None or moved is None else _play_twin(twin, int(moved[action]))
            for twin, moved in zip(position.twins, places, strict=False)
        ]
        return replace(after, twins=tuple(twins))

    def replay(self, moves: tuple[int, ...]) -> Reached | None:
        """The position after a sequence of moves; None if one of them is illegal."""
        position = self.start()
        for action in moves:
            if action not in self.legal_moves(position):
                return None
            position = self.play(position, action)
        return position


def _play_twin(twin: Node, action: int) -> Node | None:
    try:
        return twin.step(action) if twin.outcome is None and twin.legal[action] else None
    except TargetError:  # an image that the game cannot handle is reported by the comparison
        return None


def gather_positions(player: Player, samples: int, seed: int, deadline: float | None) -> Positions:
    """Gather the positions to test.

    Args:
        player: the player of the game.
        samples: the number of positions, unless the game has few.
        seed: the seed of the games played.
        deadline: the deadline in terms of `time.monotonic`; None for none.

    Returns:
        The positions, including at least the start.

    Raises:
        TargetError: no move is legal.
    """
    start = player.start()
    if not len(player.legal_moves(start)):
        why = "no move is legal" if start.node.outcome is None else "the game is over"
        raise TargetError(f"the game cannot be played: {why} at its start.", where="TARGET")
    rng = np.random.default_rng(seed)
    games = [_play_game(player, rng, avoid_ends=bool(i % 2)) for i in range(4)]
    if player.rules.game.is_whole and math.log(ENUMERATED_UP_TO) > max(_log_positions(player, game) for game in games):
        reached = _enumerate(player, deadline)
        if reached is not None:
            return Positions(reached, True, 0, max(len(position.moves) for position in reached))
    return _sample(player, rng, samples, deadline)


def _log_positions(player: Player, game: list[Reached]) -> float:
    """Logarithm of the approximate number of positions after one more ply; orders of one side's moves coincide."""
    most, total = 0.0, 0.0
    for ply, position in enumerate(game[:-1]):
        total += math.log(max(1, len(player.legal_moves(position))))
        most = max(most, total - math.lgamma((ply + 1) / 2 + 1))
    return most


def _enumerate(player: Player, deadline: float | None) -> tuple[Reached, ...] | None:
    """All positions, nearest first; None if there are too many, or time is up."""
    start = player.start()
    seen = {id(start.node): start}
    waiting = deque([start])
    while waiting:
        position = waiting.popleft()
        for action in player.legal_moves(position).tolist():
            after = player.play(position, action)
            key = id(after.node)
            if key not in seen:
                seen[key] = after
                waiting.append(after)
        if len(seen) > ENUMERATED_UP_TO or (deadline is not None and time.monotonic() > deadline):
            return None
    return tuple(seen.values())


def _sample(player: Player, rng: np.random.Generator, samples: int, deadline: float | None) -> Positions:
    seen: dict[bytes, Reached] = {}
    # Several positions per game, not only its end: moves are played only before the end.
    share = max(4, math.ceil(samples / _GAMES))
    played, longest = 0, 0
    while len(seen) < samples and played < _ATTEMPTS * max(_GAMES, samples // share):
        if deadline is not None and played and time.monotonic() > deadline:
            break
        game = _play_game(player, rng, avoid_ends=bool(played % 2))
        played, longest = played + 1, max(longest, len(game) - 1)
        for index in _choose_plies(len(game), share, rng):
            seen.setdefault(game[index].node.board_key, game[index])
    return Positions(tuple(list(seen.values())[:samples]), False, played, longest)


def _choose_plies(length: int, share: int, rng: np.random.Generator) -> Iterator[int]:
    """A selection of plies of a game, always including the last, because terminal positions are rare otherwise."""
    others = rng.permutation(max(0, length - 1))[: share - 1]
    yield from sorted(int(i) for i in others)
    yield length - 1


def _play_game(player: Player, rng: np.random.Generator, *, avoid_ends: bool) -> list[Reached]:
    """Play one random game; to avoid its end, play the first drawn move that does not end it."""
    game = [player.start()]
    while len(game) <= _LONGEST:
        moves = rng.permutation(player.legal_moves(game[-1]))
        if not len(moves):
            break
        after = player.play(game[-1], int(moves[0]))
        for action in moves[1:] if avoid_ends else ():
            if after.node.outcome is None:
                break
            after = player.play(game[-1], int(action))
        game.append(after)
    return game
