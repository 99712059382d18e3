"""Causes of wrong images, by kind: hypotheses that explain all observations.

The correct move map is first inferred from the next states: the moves of an image that lead to the image of the next
board. A wrong policy image differs from it in one of several known ways.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from symcheck.array_types import Ints
from symcheck.engine.games.comparing import Violation, implied_moves
from symcheck.engine.games.context import GameContext
from symcheck.engine.games.positions import Reached, spread
from symcheck.errors import TargetError
from symcheck.games.game import numbers
from symcheck.statements.statement import Statement, state

_LOOKED_AT = 40  # number of positions from which the moves of an image are inferred
_SHOWN = 6
_MOST_EXTRAS = 3  # maximum number of moves without a cell: pass, resign, a swap of colours


@dataclass(frozen=True)
class Seen:
    """The facts about one image with a violation.

    Attributes:
        index: the index of the image.
        given: the place of each entry in the policy image; None if it is not a permutation.
        implied: by move, the unique move that leads to the image of the next board.
        misplaced: moves whose place in the policy image contradicts the next states.
        unmatched: moves for which no move leads to the image.
        moves_board: whether it changes any board.
    """

    index: int
    given: Ints | None
    implied: Mapping[int, int]
    misplaced: frozenset[int]
    unmatched: int
    moves_board: bool

    def wrong(self) -> list[int]:
        """The moves whose policy image differs from the implied move."""
        if self.given is None:
            return []
        return [a for a, b in self.implied.items() if a in self.misplaced and int(self.given[a]) != b]


def causes_of_moves(context: GameContext) -> tuple[Statement, ...]:
    """The causes of wrong legal moves, next states and policy images.

    Args:
        context: the run.

    Returns:
        One statement per kind of mistake, with the affected images; the most frequent kind first.
    """
    if context.causes is None:
        context.causes = _find_causes(context)
    return context.causes


def _find_causes(context: GameContext) -> tuple[Statement, ...]:
    by_code: dict[str, list[int]] = {}
    for seen in _wrong_images(context):
        by_code.setdefault(_kind_of(seen, context), []).append(seen.index)
    return tuple(
        _statement(code, images, context) for code, images in sorted(by_code.items(), key=lambda item: -len(item[1]))
    )


def _statement(code: str, images: list[int], context: GameContext) -> Statement:
    fields = {"images": images, "shown": _list_images(images), "count": len(images)}
    if code == "SYM305":
        return state(code, **fields, extras=len(_extra_moves(context)))
    if code == "SYM307":
        return state(code, **fields, plane=_still_plane(context))
    return state(code, **fields)


def _list_images(images: Sequence[int]) -> str:
    listed = ", ".join(map(str, images[:_SHOWN]))
    more = f" and {len(images) - _SHOWN} more" if len(images) > _SHOWN else ""
    return f"{'image' if len(images) == 1 else 'images'} {listed}{more}"


def _wrong_images(context: GameContext) -> list[Seen]:
    examples = [item for part in ("legal_moves", "next_state", "policy_map") for item in context.tallies[part].examples]
    indices = sorted({item.image for item in examples})
    return [_look_at(context, k, [item for item in examples if item.image == k]) for k in indices]


def _look_at(context: GameContext, k: int, examples: Sequence[Violation]) -> Seen:
    comparison = context.comparison
    candidates: dict[int, set[int]] = {}
    unmatched = 0
    for position in _positions_to_look_at(context, examples):
        if position.node.outcome is not None or k >= len(position.node.images):
            continue
        try:
            twin = comparison.twin(position, k)
            if twin is None or twin.outcome is not None:
                continue
            for action in np.flatnonzero(position.node.legal).tolist():
                others = implied_moves(twin, comparison.expected_boards(position.node, k, action))
                unmatched += not others
                if others:
                    candidates[action] = candidates.get(action, set(others)) & set(others)
        except TargetError:
            unmatched += 1
    implied = {action: min(others) for action, others in candidates.items() if len(others) == 1}
    given = comparison.reference[k] if k < len(comparison.reference) else None
    moved = any(
        k < len(position.node.images) and position.node.images[k].key != position.node.board_key
        for position in context.positions.reached[:200]
    )
    return Seen(k, given, implied, frozenset(comparison.misplaced(k)), unmatched, moved)


def _positions_to_look_at(context: GameContext, examples: Sequence[Violation]) -> list[Reached]:
    """Positions with violations, and others of all game lengths."""
    half = _LOOKED_AT // 2
    return [*(item.position for item in examples[:half]), *spread(context.positions.reached, half)]


def _kind_of(seen: Seen, context: GameContext) -> str:
    """The code of the first hypothesis that explains an image."""
    if seen.given is None:
        return "SYM310"
    for code, explains in _HYPOTHESES:
        if explains(seen, context):
            return code
    return "SYM309" if seen.wrong() else "SYM313"


def _board_shape(context: GameContext) -> tuple[int, ...]:
    array = numbers(context.positions.reached[0].node.board)
    return () if array is None else array.shape


def numbers_of_cells(shape: Sequence[int], actions: int) -> list[int]:
    """Possible numbers of cells that moves refer to: those of the whole board, or of one of its planes.

    Up to three moves may refer to no cell, for instance a pass.

    Example:
        >>> numbers_of_cells((3, 3), 10), numbers_of_cells((2, 5, 5), 100), numbers_of_cells((6, 7), 7)
        ([9], [50, 25, 10], [])
        >>> numbers_of_cells((3, 4), 50)
        [12]
    """
    sizes = [math.prod(shape), math.prod(shape[1:]), math.prod(shape[:-1])] if len(shape) > 2 else [math.prod(shape)]
    return [n for n in sizes if n > 1 and actions % n <= max(1, min(_MOST_EXTRAS, n // 3)) and actions >= n]


def _other_shape(seen: Seen, context: GameContext) -> bool:
    examples = context.tallies["legal_moves"].examples
    # the state was reached by play, not set: an illegal move there is due to a rule
    if context.positions.reached[0].twins:
        return False
    return any(item.image == seen.index and item.where == "the image" for item in examples) and not seen.implied


def _is_identity(places: Ints | None) -> bool:
    return places is not None and np.array_equal(places, np.arange(len(places)))


def _board_stays(seen: Seen, context: GameContext) -> bool:
    return seen.given is not None and not seen.moves_board and not _is_identity(seen.given)


def _not_moved(seen: Seen, context: GameContext) -> bool:
    return seen.moves_board and _is_identity(seen.given) and bool(seen.wrong())


def _not_reversed(seen: Seen, context: GameContext) -> bool:
    """The policy of a game whose moves are columns or rows is unchanged although it should be reversed."""
    last = context.game.actions - 1
    return (
        not numbers_of_cells(_board_shape(context), context.game.actions)
        and _not_moved(seen, context)
        and all(b == last - a for a, b in seen.implied.items())
    )


def _pass_misplaced(seen: Seen, context: GameContext) -> bool:
    if seen.given is None:
        return False
    extras = _extra_moves(context)
    stay = all(seen.implied.get(a, a) == a for a in extras)
    return stay and any(int(seen.given[a]) != a for a in extras)


def _extra_moves(context: GameContext) -> list[int]:
    """The last moves, as many as refer to no cell."""
    actions = context.game.actions
    cells = numbers_of_cells(_board_shape(context), actions)
    return list(range(actions - max((actions % n for n in cells), default=0), actions))


def _channels_stay(seen: Seen, context: GameContext) -> bool:
    if seen.given is None or not seen.wrong():
        return False
    actions = context.game.actions
    places = [(a, b, int(seen.given[a])) for a, b in seen.implied.items()]
    for cells in numbers_of_cells(_board_shape(context), actions):
        channels = actions // cells
        # Cell-major with channels, or channel-major with cells.
        for cell, channel in ((_by(channels, 0), _by(channels, 1)), (_by(cells, 1), _by(cells, 0))):
            if channels > 1 and all(cell(b) == cell(c) and channel(c) == channel(a) for a, b, c in places):
                return True
    return False


def _by(size: int, part: int) -> Callable[[int], int]:
    return lambda index: divmod(index, size)[part]


def _turned_back(seen: Seen, context: GameContext) -> bool:
    given = seen.given
    return given is not None and bool(seen.wrong()) and all(int(given[b]) == a for a, b in seen.implied.items())


def _exchanged(seen: Seen, context: GameContext) -> bool:
    """The correct map with a rotation or reflection before it instead of after it: conjugate to the implied map."""
    given = seen.given
    if given is None or not seen.wrong():
        return False
    for other in context.comparison.reference:
        # r given r^-1: the entry that another image maps to r(a) maps to the image of b under r.
        if other is not None and all(int(given[other[a]]) == int(other[b]) for a, b in seen.implied.items()):
            return True
    return False


def _plane_stays(seen: Seen, context: GameContext) -> bool:
    return (
        seen.moves_board and not seen.wrong() and seen.unmatched > 0 and _still_plane(context, seen.index) is not None
    )


def _still_plane(context: GameContext, image: int | None = None) -> int | None:
    """The plane in which all wrong next boards differ, and which an image leaves unchanged."""
    shape = _board_shape(context)
    examples = [v for v in context.tallies["next_state"].examples if image in (None, v.image)]
    if len(shape) != 3 or not examples:
        return None
    axis = 0 if shape[1] == shape[2] or shape[0] <= shape[2] else 2
    wrong = set()
    for item in examples:
        one, other = numbers(item.expected), numbers(item.actual)
        if one is None or other is None or one.shape != other.shape or one.ndim != 3:
            return None
        rest = tuple(i for i in range(3) if i != axis)
        wrong.update(np.flatnonzero((one != other).any(axis=rest)).tolist())
    return wrong.pop() if len(wrong) == 1 else None


def _canonical_differs(seen: Seen, context: GameContext) -> bool:
    """The boards are images of each other, but their canonical forms are not."""
    game = context.game
    examples = [v for v in context.tallies["next_state"].examples if v.image == seen.index]
    if not examples:
        return False
    for item in examples[:5]:
        twin = context.comparison.twin(item.position, seen.index)
        if seen.given is None or twin is None or item.action is None:
            return False
        here = game.before_canonical(item.position.node.state, item.action)
        there = game.before_canonical(twin.state, int(seen.given[item.action]))
        if here is None or there is None:
            return False
        try:
            images = game.images(here[0], context.rules.probe.policy)
        except TargetError:
            return False
        if seen.index >= len(images) or game.board_key(images[seen.index][0]) != game.board_key(there[0]):
            return False
    return True


def _no_rule(seen: Seen, context: GameContext) -> bool:
    """No move leads to the image of a next board, so the policy is not the cause."""
    return not seen.wrong()


def _varies(seen: Seen, context: GameContext) -> bool:
    """The policy image is another permutation at another position."""
    examples = context.tallies["policy_map"].examples
    return any(item.image == seen.index and item.action is None for item in examples)


_HYPOTHESES: tuple[tuple[str, Callable[[Seen, GameContext], bool]], ...] = (
    ("SYM311", _varies),
    ("SYM314", _other_shape),
    ("SYM305", _pass_misplaced),
    ("SYM316", _board_stays),
    ("SYM302", _not_reversed),
    ("SYM301", _not_moved),
    ("SYM306", _channels_stay),
    ("SYM312", _canonical_differs),
    ("SYM303", _exchanged),
    ("SYM304", _turned_back),
    ("SYM307", _plane_stays),
    ("SYM313", _no_rule),
)


def causes_of_outcome(context: GameContext) -> tuple[Statement, ...]:
    """The cause of different outcomes after correct moves: a rule of winning."""
    if context.tallies["legal_moves"].violated or context.tallies["next_state"].violated:
        return causes_of_moves(context)
    images = sorted({item.image for item in context.tallies["outcome"].examples})
    return (state("SYM317", images=images, shown=_list_images(images), count=len(images)),)


def causes_of_axioms(context: GameContext) -> tuple[Statement, ...]:
    """The causes of images that do not form a group."""
    axioms = context.axioms
    causes = []
    if axioms.no_identity:
        causes.append(state("SYM318", positions=len(axioms.no_identity)))
    if axioms.refused:
        _, image, problem = axioms.refused[0]
        causes.append(state("SYM320", image=image, problem=problem))
    if axioms.conflicting:
        _, first, second = axioms.conflicting[0]
        causes.append(state("SYM321", first=first, second=second, pairs=len(axioms.conflicting)))
    if axioms.not_closed:
        pairs = {(i, j) for _, i, j in axioms.not_closed}
        first, second = min(pairs)
        causes.append(state("SYM319", first=first, second=second, pairs=len(pairs)))
    return tuple(causes)


def causes_of_repetition(context: GameContext) -> tuple[Statement, ...]:
    """The images that coincide."""
    repeated = [group for group in context.classes if len(group) > 1]
    total = sum(len(group) for group in context.classes)
    shown = "; ".join(" = ".join(map(str, group)) for group in repeated[:_SHOWN])
    return (state("SYM308", distinct=len(context.classes), total=total, shown=shown, groups=repeated),)
