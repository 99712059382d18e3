"""The functions of a game, evaluated once per state."""

from __future__ import annotations

import functools
from typing import Any

from symcheck.array_types import Bools
from symcheck.engine.games.images import Image, Probe, images_of
from symcheck.games.game import Game, Outcome


class Node:
    """A state with the cached results of the game's functions.

    Args:
        rules: the rules of the game.
        state: the game's own state.
    """

    def __init__(self, rules: Rules, state: Any) -> None:
        self.rules = rules
        self.state = state
        self._after: dict[int, Node] = {}

    @functools.cached_property
    def board(self) -> Any:
        """The board, on which images act."""
        return self.rules.game.board(self.state)

    @functools.cached_property
    def board_key(self) -> bytes:
        """A key that is equal for equal boards."""
        return self.rules.game.board_key(self.board)

    @functools.cached_property
    def legal(self) -> Bools:
        """The legal actions."""
        return self.rules.game.legal(self.state)

    @functools.cached_property
    def outcome(self) -> Outcome | None:
        """The result; None while the game continues."""
        return self.rules.game.outcome(self.state)

    @functools.cached_property
    def images(self) -> tuple[Image, ...]:
        """The images of the board."""
        return images_of(self.rules.game, self.board, self.rules.probe)

    @functools.cached_property
    def twins(self) -> tuple[Node | None, ...]:
        """The states of the images; None if boards cannot be set."""
        states = [self.rules.game.state_of(image.board) for image in self.images]
        return tuple(None if state is None else self.rules.node(state) for state in states)

    def step(self, action: int) -> Node:
        """The next state."""
        if action not in self._after:
            self._after[action] = self.rules.node(self.rules.game.step(self.state, action))
        return self._after[action]


class Rules:
    """A game's functions, evaluated on states; images are read with one policy vector.

    Args:
        game: the game.
        seed: the seed of the policy vector.
    """

    def __init__(self, game: Game, seed: int) -> None:
        self.game = game
        self.probe = Probe.draw(game.actions, seed)
        self._nodes: dict[bytes, Node] = {}

    def node(self, state: Any) -> Node:
        """The node of a state; equal states share a node if boards are complete states."""
        if not self.game.is_whole:
            return Node(self, state)
        key = self.game.key(state)
        if key not in self._nodes:
            self._nodes[key] = Node(self, state)
        return self._nodes[key]

    def start(self) -> Node:
        """The initial node."""
        return self.node(self.game.start())
