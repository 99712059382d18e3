"""Candidate images of a board: rotations and reflections, each with the move map inferred from play.

The permutation of the policy vector is inferred from legal play: a move's image leads to the image of the next board,
and legal moves map to legal moves. Either a permutation remains, or the image is not a symmetry of the rules.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import maximum_bipartite_matching

from symcheck.array_types import Bools, Ints
from symcheck.engine.games.images import move
from symcheck.errors import TargetError
from symcheck.games.game import Game, board_key, numbers

_LONGEST = 300  # maximum number of moves per game
_MOST = 2_000  # maximum number of positions
_NOTHING_NEW = 100  # stop after this number of positions without a newly legal move
# maximum number of entries in all tables of actions by actions: larger policies are tested on fewer positions
_MOST_NUMBERS = 10**9


@dataclass(frozen=True)
class BoardMap:
    """A rotation or reflection of the cells of a board.

    Attributes:
        name: the name, in words.
        turns: quarter turns.
        flipped: the axis reversed after the rotation; None if there is none.
        axes: the array axes of rows and columns.
    """

    name: str
    turns: int
    flipped: int | None
    axes: tuple[int, int]

    def __call__(self, board: Any) -> Any:
        """The image of a board."""
        turned = np.rot90(board, self.turns, self.axes) if self.turns else np.asarray(board)
        return turned if self.flipped is None else np.flip(turned, self.flipped)

    @property
    def code(self) -> str:
        """The same map as a NumPy expression.

        Example:
            >>> BoardMap("m", 0, 1, (0, 1)).code
            'np.flip(board, 1)'
        """
        text = f"np.rot90(board, {self.turns}, {self.axes})" if self.turns else "board"
        return text if self.flipped is None else f"np.flip({text}, {self.flipped})"


@dataclass(frozen=True)
class FoundImage:
    """A rotation or reflection with its permutation of the policy.

    Attributes:
        board_map: the map of the cells.
        places: entry a of the policy moves to places[a].
        seen: whether each action was legal at some position, (actions,); the images of the other actions are a guess.
    """

    board_map: BoardMap
    places: Ints
    seen: Bools

    def __call__(self, board: Any, policy: Any) -> tuple[Any, list[float]]:
        """The image of a position."""
        return self.board_map(board), move(self.places, np.asarray(policy, dtype=np.float64)).tolist()


def board_maps(board: Any) -> tuple[BoardMap, ...]:
    """The rotations and reflections of a board's grid, without the identity.

    Args:
        board: an array: a row, a grid, or planes of one, along the first axis or the last.

    Returns:
        Seven for a square grid, three for another one, one for a row; none for other boards.

    Example:
        >>> [item.name for item in board_maps(np.zeros((6, 7)))]
        ['half turn', 'columns reversed', 'rows reversed']
    """
    array = numbers(board)
    if array is None or array.ndim not in (1, 2, 3):
        return ()
    if array.ndim == 1:
        return (BoardMap("reversed", 0, 0, (0, 0)),)
    shape = array.shape
    first = array.ndim == 3 and (shape[1] == shape[2] or (shape[0] != shape[1] and shape[0] <= shape[2]))
    axes = (1, 2) if first else (0, 1)
    rows, columns = axes
    flat = [("half turn", 2, None), ("columns reversed", 0, columns), ("rows reversed", 0, rows)]
    quarters = [("quarter turn", 1, None), ("three quarter turns", 3, None)]
    diagonals = [("diagonal", 1, rows), ("other diagonal", 1, columns)]
    square = shape[rows] == shape[columns]
    chosen = [*flat, *quarters, *diagonals] if square else flat
    return tuple(BoardMap(name, turns, flipped, axes) for name, turns, flipped in chosen)


def find_image(game: Game, board_map: BoardMap, rng: np.random.Generator) -> FoundImage | str:
    """The permutation of the policy that belongs to a map of boards.

    Args:
        game: the game.
        board_map: the map of the cells.
        rng: plays the games.

    Returns:
        The image, or the reason why there is none.
    """
    possible: Bools = np.ones((game.actions, game.actions), dtype=bool)
    legal_somewhere = np.zeros(game.actions, dtype=bool)
    positions = int(np.clip(_MOST_NUMBERS // game.actions**2, _NOTHING_NEW // 2, _MOST))
    since_new = 0
    for state, twin in _play_beside(game, board_map, possible, positions, rng):
        if board_key(board_map(game.board(state))) != board_key(game.board(twin)):
            return "the images of its moves do not reach the image of a position"
        here, there = game.outcome(state), game.outcome(twin)
        if (here is None) != (there is None):
            return "a game ends, but its image does not"
        if here is not None:
            continue
        problem = _narrow(game, board_map, state, twin, possible)
        if problem:
            return problem
        seen = legal_somewhere | game.legal(state)
        since_new = 0 if (seen != legal_somewhere).any() else since_new + 1
        legal_somewhere = seen
        if since_new >= (_NOTHING_NEW if not seen.all() else _NOTHING_NEW // 4):
            break
    matched = maximum_bipartite_matching(csr_matrix(possible), perm_type="column")
    if (matched < 0).any():
        return "no permutation of the moves makes it a symmetry"
    return FoundImage(board_map, np.asarray(matched, dtype=np.int64), legal_somewhere)


def _play_beside(
    game: Game, board_map: BoardMap, possible: Bools, positions: int, rng: np.random.Generator
) -> Iterator[tuple[Any, Any]]:
    """Positions of random games, each with the state of its image: set, or reached by the matching moves."""
    shown = 0
    while shown < positions:
        state = game.start()
        twin = _image_state(game, board_map, state, game.start())
        for _ in range(_LONGEST):
            yield state, twin
            shown += 1
            if game.outcome(state) is not None or shown >= positions:
                break
            action = int(rng.choice(np.flatnonzero(game.legal(state))))
            fitting = np.flatnonzero(possible[action] & game.legal(twin))
            state = game.step(state, action)
            twin = _image_state(game, board_map, state, twin, fitting)


def _image_state(game: Game, board_map: BoardMap, state: Any, twin: Any, fitting: Any = ()) -> Any:
    whole = game.state_of(board_map(game.board(state)))
    if whole is not None:
        return whole
    # All matching moves lead to the same board.
    return game.step(twin, int(fitting[0])) if len(fitting) else twin


def _narrow(game: Game, board_map: BoardMap, state: Any, twin: Any, possible: Bools) -> str:
    """Keep only the images of moves that a position allows; return why none is left, or ""."""
    legal, legal_there = game.legal(state), game.legal(twin)
    if legal.sum() != legal_there.sum():
        return "an image has more or fewer legal moves"
    possible &= legal[:, None] == legal_there[None, :]
    reached = {int(b): board_key(game.board(game.step(twin, int(b)))) for b in np.flatnonzero(legal_there)}
    for action in np.flatnonzero(legal):
        wanted = board_key(board_map(game.board(game.step(state, int(action)))))
        fits = np.zeros(game.actions, dtype=bool)
        fits[[b for b, key in reached.items() if key == wanted]] = True
        possible[action] &= fits
        if not possible[action].any():
            return "a move has no image: no move of the image leads to the image of the next board"
    return ""


def tried_images(game: Game, seed: int) -> list[tuple[BoardMap, FoundImage | str]]:
    """Every rotation and reflection of a game's board, with its move map or the reason why there is none.

    Args:
        game: the game.
        seed: the seed of the games played, the same games for every map.

    Returns:
        (map, image or reason), in a fixed order.
    """
    board = game.board(game.start())
    tried: list[tuple[BoardMap, FoundImage | str]] = []
    for board_map in board_maps(board):
        try:
            tried.append((board_map, find_image(game, board_map, np.random.default_rng(seed))))
        except TargetError as error:  # the game accepts its own boards, but not this image
            tried.append((board_map, error.problem))
    agreed = iter(_agree_on_unseen([image for _, image in tried if not isinstance(image, str)], np.shape(board)))
    return [(board_map, image if isinstance(image, str) else next(agreed)) for board_map, image in tried]


def _agree_on_unseen(images: list[FoundImage], shape: tuple[int, ...]) -> list[FoundImage]:
    """The same images, with moves that were never legal mapped so that images compose like their board maps.

    Two maps determine their product; moves without any evidence are fixed.
    """
    cells = np.arange(np.prod(shape)).reshape(shape)
    index_of = {image.board_map(cells).tobytes(): k for k, image in enumerate(images)}
    known = [np.where(image.seen, image.places, -1) for image in images]
    for _ in range(3):  # repeat, because products of products determine further images
        for first, second in itertools.product(range(len(images)), repeat=2):
            both = images[second].board_map(images[first].board_map(cells))
            middle = known[first]
            if np.array_equal(both, cells):
                sure = np.flatnonzero(middle >= 0)
                known[second][middle[sure]] = sure
            elif (product := index_of.get(both.tobytes())) is not None:
                last = np.where(middle >= 0, known[second][middle], -1)
                known[product] = np.where(known[product] < 0, last, known[product])
    return [dataclasses.replace(image, places=_complete(places)) for image, places in zip(images, known, strict=True)]


def _complete(places: Ints) -> Ints:
    """Complete a partial permutation: entries without an image are fixed, or get a free position.

    Example:
        >>> _complete(np.array([1, -1, -1])).tolist()
        [1, 0, 2]
    """
    whole = places.copy()
    free = np.setdiff1d(np.arange(len(places)), places[places >= 0])
    stays = free[whole[free] < 0]
    whole[stays] = stays
    whole[whole < 0] = np.setdiff1d(free, stays)
    return whole


Images = Callable[[Any, list[float]], list[tuple[Any, Any]]]


def as_function(images: list[FoundImage], *, original: bool = True) -> Images:
    """The images as a function (board, pi) -> [(board, pi), ...], starting with the position itself if `original`."""
    return lambda board, policy: [
        *([(board, policy)] if original else []),
        *(image(board, policy) for image in images),
    ]
