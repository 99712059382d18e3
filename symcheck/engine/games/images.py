"""The images of one position: boards, and the permutation of the policy vector that belongs to each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from symcheck.array_types import Floats, Ints
from symcheck.games.game import Game

_APART = 0.01  # relative to the distance of two entries of a probe; float32 preserves this precision


@dataclass(frozen=True)
class Image:
    """One image of a position.

    Attributes:
        board: the board image.
        key: equal for equal boards.
        moves: entry a of the policy vector moves to position moves[a]; None if the policy image is not a permutation.
        size: length of the policy image.
    """

    board: Any
    key: bytes
    moves: Ints | None
    size: int

    @property
    def pair(self) -> tuple[bytes, bytes | None]:
        """Board and permutation, for comparison with other images."""
        return self.key, None if self.moves is None else self.moves.tobytes()


@dataclass(frozen=True)
class Probe:
    """A policy vector with distinct entries: 1 to n divided by their sum, in random order.

    Attributes:
        ranks: the ranks of the entries, (actions,).
    """

    ranks: Ints

    @staticmethod
    def draw(actions: int, seed: int) -> Probe:
        """A random probe."""
        return Probe(np.random.default_rng(seed).permutation(actions) + 1)

    @property
    def policy(self) -> Floats:
        """The policy vector."""
        return np.asarray(self.ranks / self.ranks.sum())

    def read(self, moved: Floats) -> Ints | None:
        """The new position of each entry; None if the image has other entries.

        Example:
            >>> Probe(np.array([1, 2, 3])).read(np.array([3, 1, 2]) / 6)
            array([1, 2, 0])
            >>> Probe(np.array([1, 2])).read(np.array([1, 1]) / 3) is None
            True
        """
        count = len(self.ranks)
        if len(moved) != count:
            return None
        scaled = moved * (count * (count + 1) // 2)
        ranks = np.rint(scaled)
        # Written so that NaN matches no entry.
        if not (np.abs(scaled - ranks) <= _APART).all() or ranks.min() < 1 or ranks.max() > count:
            return None
        whole = ranks.astype(np.int64)
        place_of_rank = np.full(count + 1, -1)
        place_of_rank[whole] = np.arange(count)
        places: Ints = place_of_rank[self.ranks]
        return None if (places < 0).any() else places


def images_of(game: Game, board: Any, probe: Probe) -> tuple[Image, ...]:
    """The images of a board, each with its permutation of the policy.

    Args:
        game: the game.
        board: a position's board.
        probe: the policy vector to transform with the board.

    Returns:
        The images, in the order of the user's function.
    """
    return tuple(
        Image(image, game.board_key(image), probe.read(moved), len(moved))
        for image, moved in game.images(board, probe.policy)
    )


def move(places: Ints, values: Any) -> Any:
    """Permute a vector of the policy's length: entry a moves to places[a].

    Example:
        >>> move(np.array([1, 2, 0]), np.array([5, 6, 7]))
        array([7, 5, 6])
    """
    moved = np.empty_like(values)
    moved[places] = values
    return moved
