"""Compares both sides of every claim at one position: images, legal moves, next states, outcomes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from symcheck.array_types import Bools, Ints
from symcheck.engine.games.images import Image, move
from symcheck.engine.games.positions import Reached
from symcheck.engine.games.rules import Node
from symcheck.errors import TargetError
from symcheck.games.game import Outcome, numbers

PARTS = ("legal_moves", "next_state", "outcome", "policy_map")
_KEPT = 400  # maximum number of violations of one property that are examined for causes
_SAME_OUTCOME = 1e-9  # outcomes are a few numbers without accumulated rounding


@dataclass(frozen=True)
class Violation:
    """One claim that fails at one position.

    Attributes:
        position: the position.
        image: index of the image.
        action: the action played; None if there is none.
        expected: the value that the claim requires.
        actual: the value that the game gives.
        where: the place in words.
        residual: the number of entries that differ.
    """

    position: Reached
    image: int
    action: int | None
    expected: Any
    actual: Any
    where: str
    residual: float


@dataclass
class Tally:
    """The counts of comparisons for one property.

    Attributes:
        checked: comparisons.
        violated: the number of those that differ.
        examples: the first violations.
        values: the distinct outcomes, as long as there are few.
    """

    checked: int = 0
    violated: int = 0
    examples: list[Violation] = field(default_factory=list)
    values: set[Outcome | None] = field(default_factory=set)

    def add(self, violations: Sequence[Violation], checked: int = 1) -> None:
        """Count one comparison, or several."""
        self.checked += checked
        self.violated += len(violations)
        self.examples.extend(violations[: max(0, _KEPT - len(self.examples))])


@dataclass
class _Implied:
    """A move of an image that leads to a board other than the claim requires.

    Attributes:
        given: the transformed move.
        candidates: the moves that lead to the image of the next board at all positions.
        positions: where it occurred.
    """

    given: int
    candidates: set[int] = field(default_factory=set)
    positions: list[Reached] = field(default_factory=list)


class Comparison:
    """Compares a position with its images.

    Args:
        reference: the permutation of each image in the longest list.
    """

    def __init__(self, reference: Sequence[Ints | None]) -> None:
        self.reference = tuple(reference)
        self._implied: dict[tuple[int, int], _Implied] = {}
        self._places = {places.tobytes() for places in reference if places is not None}

    def twin(self, position: Reached, k: int) -> Node | None:
        """The state corresponding to image k; None if it cannot be reached."""
        if position.twins:
            return position.twins[k] if k < len(position.twins) else None
        same_shape = _board_shape(position.node.board) == _board_shape(position.node.images[k].board)
        return position.node.twins[k] if same_shape else None

    def compare(self, position: Reached, actions: Sequence[int], tallies: dict[str, Tally]) -> None:
        """Compare all claims at one position.

        Args:
            position: a position from legal play.
            actions: the legal actions to play.
            tallies: tallies by property; updated in place.
        """
        tallies["outcome"].values.add(position.node.outcome)
        for k, image in enumerate(position.node.images):
            tallies["policy_map"].add(list(self._fixed(position, k, image)))
            try:
                twin = self.twin(position, k)
                goes_on = self._compare_image(position, k, twin, tallies)
            except TargetError as error:
                # The game accepts the position but not its image, so the image is at fault.
                tallies["legal_moves"].add([Violation(position, k, None, None, error.problem, "the image", 1.0)])
                continue
            if goes_on and twin is not None and image.moves is not None:
                for action in actions:
                    self._compare_step(position, k, twin, action, int(image.moves[action]), tallies)

    def _fixed(self, position: Reached, k: int, image: Image) -> Iterator[Violation]:
        """Check that the policy image is a permutation, and the same one as at other positions."""
        node = position.node
        if image.moves is None:
            what = f"{image.size} entries" if image.size != len(node.rules.probe.ranks) else "other entries"
            yield Violation(position, k, None, "a permutation of the entries of pi", what, f"policy image {k}", 1.0)
        elif len(node.images) == len(self.reference):
            known = self.reference[k]
            if known is not None and not np.array_equal(known, image.moves):
                wrong = np.flatnonzero(known != image.moves)
                yield Violation(
                    position, k, None, known.tolist(), image.moves.tolist(), f"pi[{wrong[0]}]", float(len(wrong))
                )
        # Lists that omit equal images have no fixed order.
        elif image.moves.tobytes() not in self._places:
            yield Violation(position, k, None, "a permutation of another position", image.moves.tolist(), "pi", 1.0)

    def _compare_image(self, position: Reached, k: int, twin: Node | None, tallies: dict[str, Tally]) -> bool:
        """Compare legal moves and outcome; return whether the game continues on both sides."""
        if twin is None:
            reason = "the image of an earlier move is illegal" if position.twins else "an image of another shape"
            tallies["legal_moves"].add([Violation(position, k, None, None, reason, "the image", 1.0)])
            return False
        here, there = position.node.outcome, twin.outcome
        same = _same_outcome(here, there)
        tallies["outcome"].add([] if same else [Violation(position, k, None, here, there, "the outcome", 1.0)])
        if here is not None or there is not None:
            return False
        expected, actual = _moved_legal(position.node, k), twin.legal
        wrong = np.arange(len(actual)) if expected is None else np.flatnonzero(expected != actual)
        if not len(wrong):
            tallies["legal_moves"].add([])
            return True
        listed = None if expected is None else np.flatnonzero(expected).tolist()
        legal = np.flatnonzero(actual).tolist()
        tallies["legal_moves"].add([Violation(position, k, None, listed, legal, _places(wrong), float(len(wrong)))])
        return True

    def _compare_step(
        self, position: Reached, k: int, twin: Node, action: int, moved: int, tallies: dict[str, Tally]
    ) -> None:
        # Only legal moves are played; an illegal image of a move is counted under legal_moves.
        if not twin.legal[moved]:
            return
        expected = self.expected_boards(position.node, k, action)
        after = twin.step(moved)
        if after.board_key in expected:
            tallies["next_state"].add([])
            return
        wanted = next(iter(expected.values()))
        where, residual = _differing(wanted, after.board)
        tallies["next_state"].add([Violation(position, k, action, wanted, after.board, where, residual)])
        implied = self._implied.setdefault((k, action), _Implied(moved))
        # If no candidate move is left, the rules are at fault, not the policy.
        if implied.candidates or not implied.positions:
            others = set(implied_moves(twin, expected))
            implied.candidates = implied.candidates & others if implied.positions else others
        implied.positions.append(position)

    def judge_implied(self, tallies: dict[str, Tally]) -> None:
        """Count the moves whose place in the policy image contradicts all next states."""
        for (k, action), implied in self._implied.items():
            wanted = sorted(implied.candidates)
            violations = [
                Violation(position, k, action, wanted, [implied.given], f"pi[{action}]", 1.0)
                for position in (implied.positions if wanted else ())
            ]
            tallies["policy_map"].add(violations, len(violations))

    def misplaced(self, k: int) -> list[int]:
        """The moves whose place in an image's policy contradicts the next states."""
        return [action for (image, action), implied in self._implied.items() if image == k and implied.candidates]

    def expected_boards(self, node: Node, k: int, action: int) -> dict[bytes, Any]:
        """The image of the next board; all images if the order of the list varies."""
        images = node.step(action).images
        if len(images) == len(self.reference) == len(node.images):
            return {images[k].key: images[k].board}
        return {image.key: image.board for image in images}


def implied_moves(twin: Node, expected: Mapping[bytes, Any]) -> list[int]:
    """The moves of an image that lead to an expected board."""
    return [b for b in np.flatnonzero(twin.legal).tolist() if twin.step(b).board_key in expected]


def _moved_legal(node: Node, k: int) -> Bools | None:
    """The image of the legal moves; None if it has another length."""
    moves = node.images[k].moves
    if moves is not None:
        return np.asarray(move(moves, node.legal))
    moved = node.rules.game.images(node.board, node.legal.astype(np.float64))[k][1]
    return moved > 0.5 if moved.shape == node.legal.shape else None


def _board_shape(board: Any) -> tuple[int, ...] | None:
    array = numbers(board)
    return None if array is None else array.shape


def _same_outcome(one: Outcome | None, other: Outcome | None) -> bool:
    if one is None or other is None:
        return one is other
    return len(one) == len(other) and bool(np.allclose(one, other, rtol=0, atol=_SAME_OUTCOME))


def _places(wrong: Ints) -> str:
    shown = ", ".join(map(str, wrong[:6].tolist()))
    return f"{'move' if len(wrong) == 1 else 'moves'} {shown}{' and others' if len(wrong) > 6 else ''}"


def _differing(wanted: Any, board: Any) -> tuple[str, float]:
    """The first entry that differs, and the number of entries that do."""
    one, other = numbers(wanted), numbers(board)
    if one is None or other is None or one.shape != other.shape:
        return "the board", 1.0
    wrong = np.argwhere(one != other)
    if not len(wrong):
        return "the board", 0.0
    return f"board[{', '.join(map(str, wrong[0].tolist()))}]", float(len(wrong))
