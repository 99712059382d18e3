"""Whether the images form a group: the position itself is an image, and images of images are images.

A list without the position itself is used in addition to the original, as image augmentation does. It need not be the
whole group. The requirement is then that the images compose as elements of one group, both for boards and for policies.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from symcheck.engine.games.images import Image, images_of
from symcheck.engine.games.positions import Positions, Reached
from symcheck.engine.games.rules import Node
from symcheck.errors import TargetError

_POSITIONS = 60  # number of positions of a game that is not tested completely
_TELL_APART = 10  # number of positions at which two images must have the same board to count as the same map


@dataclass
class Axioms:
    """The result of the comparison.

    Attributes:
        checked: the number of comparisons, of images of images and of the positions themselves.
        violated: the number of those that failed.
        no_identity: positions that are not among their images.
        not_closed: (position, image, image of the image) that is not an image of the position; the first few.
        refused: (position, image, problem) if the function rejects an image.
        is_complete: whether all selected positions were compared.
        without_identity: whether no position is among its images; `no_identity` is then empty.
        left_out: pairs of images whose product is missing from such a list.
        conflicting: (position, image, image of the image) with the same board as another product at every position, but
            another permutation of the policy.
    """

    checked: int = 0
    violated: int = 0
    no_identity: list[Reached] = field(default_factory=list)
    not_closed: list[tuple[Reached, int, int]] = field(default_factory=list)
    refused: list[tuple[Reached, int, str]] = field(default_factory=list)
    is_complete: bool = True
    without_identity: bool = False
    left_out: int = 0
    conflicting: list[tuple[Reached, int, int]] = field(default_factory=list)


def check_axioms(positions: Positions, deadline: float | None) -> Axioms:
    """Compare the images of images with the images.

    Args:
        positions: the positions reached.
        deadline: the deadline in terms of `time.monotonic`; None for none.

    Returns:
        The comparisons; board and policy are compared together.
    """
    seen = Axioms()
    chosen = positions.reached
    if not positions.is_complete:
        # Prefer positions with many distinct images: they can show the most violations.
        ranked = sorted(chosen, key=lambda p: -len({image.key for image in p.node.images}))
        chosen = tuple(ranked[:_POSITIONS])
    for position in chosen:
        if deadline is not None and seen.checked and time.monotonic() > deadline:
            seen.is_complete = False
            break
        _check_position(position, seen)
    if seen.no_identity and len(seen.no_identity) == len(chosen) and not seen.refused:
        _judge_beside_original(seen, positions.is_complete)
    return seen


def _judge_beside_original(seen: Axioms, is_complete: bool) -> None:
    """Check that a list without the position itself composes as elements of one group."""
    positions, seen.no_identity = seen.no_identity, []
    seen.without_identity = True
    products: dict[tuple[int, ...], tuple[list[bytes], set[bytes | None]]] = {}
    for position in positions:
        for word, image, places in _products(position):
            boards, rearrangements = products.setdefault(word, ([], set()))
            boards.append(image)
            rearrangements.add(places)
    # Among words with the same boards everywhere, the first one determines the permutation.
    known: dict[tuple[bytes, ...], set[bytes | None]] = {}
    wrong = {word for word, (boards, places) in products.items() if places - known.setdefault(tuple(boards), places)}
    if not is_complete and len(positions) < _TELL_APART:
        wrong = set()  # the first positions of a game are often symmetric: different images have the same board
    # A product that is the position itself is not missing, because the original position is included.
    original = products[()][0]
    pairs = {(i, j) for _, i, j in seen.not_closed}
    seen.left_out = len({pair for pair in pairs - wrong if products[pair][0] != original})
    seen.conflicting = [(positions[0], word[0], word[-1]) for word in sorted(wrong)]
    seen.not_closed = []
    seen.violated = len(wrong)


def _products(position: Reached) -> Iterator[tuple[tuple[int, ...], bytes, bytes | None]]:
    """The position, its images and their images: indices, board, and permutation of the policy."""
    node = position.node
    with_policy = all(image.moves is not None for image in node.images)
    yield (), node.board_key, np.arange(node.rules.game.actions).tobytes() if with_policy else None
    for i, image in enumerate(node.images):
        yield (i,), *_board_and_places(image, None, with_policy)
        for j, after in enumerate(_images_of_image(node, i)):
            yield (i, j), *_board_and_places(after, image, with_policy)


def _check_position(position: Reached, seen: Axioms) -> None:
    node = position.node
    images = node.images
    # Policies that are not permutations cannot be composed: then compare only boards.
    with_policy = all(image.moves is not None for image in images)
    known = {_board_and_places(image, None, with_policy) for image in images}
    seen.checked += 1
    rest = np.arange(node.rules.game.actions).tobytes() if with_policy else None
    if (node.board_key, rest) not in known:
        seen.violated += 1
        seen.no_identity.append(position)
    for i, image in enumerate(images):
        try:
            second = _images_of_image(node, i)
        except TargetError as error:
            seen.checked += 1
            seen.violated += 1
            seen.refused.append((position, i, error.problem))
            continue
        for j, after in enumerate(second):
            seen.checked += 1
            if _board_and_places(after, image, with_policy) not in known:
                seen.violated += 1
                seen.not_closed.append((position, i, j))


def _images_of_image(node: Node, k: int) -> tuple[Image, ...]:
    twin = node.twins[k]
    return twin.images if twin is not None else images_of(node.rules.game, node.images[k].board, node.rules.probe)


def _board_and_places(image: Image, first: Image | None, with_policy: bool) -> tuple[bytes, Any]:
    """Board and permutation, relative to a first image."""
    if not with_policy or image.moves is None:
        return image.key, None
    places = image.moves if first is None or first.moves is None else image.moves[first.moves]
    return image.key, places.tobytes()
