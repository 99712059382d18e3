"""One run over a game: its positions, and the comparisons of every property, computed once for all."""

from __future__ import annotations

import functools
import time
from dataclasses import dataclass

import numpy as np

from symcheck.array_types import Ints
from symcheck.engine.games.axioms import Axioms, check_axioms
from symcheck.engine.games.comparing import PARTS, Comparison, Tally
from symcheck.engine.games.options import GameOptions
from symcheck.engine.games.positions import Player, Positions, Reached, gather_positions
from symcheck.engine.games.repeating import count_unrepeatable, images_repeat, is_seen_again
from symcheck.engine.games.rules import Rules
from symcheck.games.game import Game
from symcheck.statements.statement import Statement

_PLAYED = 4  # maximum number of moves played per position, if not all positions are tested


@dataclass
class GameContext:
    """The argument of every property of games.

    Attributes:
        game: the game.
        options: the options of the run.
        deadline: the deadline in terms of `time.monotonic`; None for none.
        causes: why moves are wrong, computed on first use.
    """

    game: Game
    options: GameOptions
    deadline: float | None = None
    causes: tuple[Statement, ...] | None = None

    @functools.cached_property
    def rules(self) -> Rules:
        """The game's functions, cached per state."""
        return Rules(self.game, self.options.seed)

    @functools.cached_property
    def player(self) -> Player:
        """The player of the game."""
        return Player(self.rules)

    @functools.cached_property
    def positions(self) -> Positions:
        """The tested positions."""
        return gather_positions(self.player, self.options.samples, self.options.seed, self.deadline)

    @functools.cached_property
    def comparison(self) -> Comparison:
        """Compares positions with their images, using the permutations of the longest list."""
        fullest = max((position.node.images for position in self.positions.reached[:200]), key=len)
        return Comparison([image.moves for image in fullest])

    @functools.cached_property
    def tallies(self) -> dict[str, Tally]:
        """By property, the comparisons at all positions."""
        return self._compared[0]

    @property
    def tested(self) -> int:
        """The positions at which everything was compared."""
        return self._compared[1]

    @functools.cached_property
    def _compared(self) -> tuple[dict[str, Tally], int]:
        tallies = {name: Tally() for name in PARTS}
        played = np.zeros(self.game.actions, dtype=np.int64)
        tested = 0
        for position in self.positions.reached:
            if self.deadline is not None and time.monotonic() > self.deadline:
                break
            self.comparison.compare(position, self._choose_actions(position, played), tallies)
            tested += 1
        self.comparison.judge_implied(tallies)
        return tallies, tested

    def _choose_actions(self, position: Reached, played: Ints) -> list[int]:
        """All legal actions if the game is tested completely, otherwise those played least often."""
        if position.node.outcome is not None:
            return []
        legal = np.flatnonzero(position.node.legal)
        if not self.positions.is_complete:
            legal = legal[np.argsort(played[legal], kind="stable")[:_PLAYED]]
        played[legal] += 1
        return [int(a) for a in legal]

    @property
    def is_exhaustive(self) -> bool:
        """Whether every position was compared."""
        return self.positions.is_complete and self.tested == len(self.positions.reached)

    @property
    def time_up(self) -> bool:
        """Whether positions remain untested because the time is up."""
        return self.tested < len(self.positions.reached)

    @functools.cached_property
    def axioms(self) -> Axioms:
        """The comparison of images of images."""
        return check_axioms(self.positions, self.deadline)

    @functools.cached_property
    def classes(self) -> list[list[int]]:
        """The image indices, grouped by equality at every position."""
        count = len(self.comparison.reference)
        lists = [position.node.images for position in self.positions.reached]
        labels: dict[tuple[bytes, ...], list[int]] = {}
        full = [images for images in lists if len(images) == count]
        for k in range(count):
            labels.setdefault(tuple(images[k].key for images in full), []).append(k)
        return list(labels.values())

    @functools.cached_property
    def moves_something(self) -> bool:
        """Whether any image of a position differs from it."""
        rest = np.arange(self.game.actions)
        if any(places is not None and not np.array_equal(places, rest) for places in self.comparison.reference):
            return True
        return any(
            image.key != position.node.board_key
            for position in self.positions.reached
            for image in position.node.images
        )

    @functools.cached_property
    def unrepeatable(self) -> int:
        """Positions at which the game gives a different result on the second call."""
        return count_unrepeatable(self.game, self.positions.reached, self.options.seed)

    @functools.cached_property
    def images_repeat(self) -> bool:
        """Whether the function of images gives the same list on the second call."""
        return images_repeat(self.game, self.positions.reached, self.options.seed)

    def is_seen_again(self, part: str) -> bool:
        """Whether a violation of a property reproduces on every repetition."""
        tally, reached = self.tallies[part], self.positions.reached
        return is_seen_again(tally.examples, part, self.comparison, self.game, reached, self.options.seed)
